"""The ends of closed intervals [a, b] of items, checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frequency.exceptions import InvalidQuestion
from mechdesign.base.linear_algebra import Integers


class InvalidRange(InvalidQuestion):
    """Ends of ranges that are not integers with 0 <= a <= b < domain.

    Attributes
    ----------
    index : int or None
        The place of the first bad range; None if the type or the shape of the ends is wrong.
    """


def checked_ends(
    first: npt.ArrayLike, last: npt.ArrayLike, domain: int
) -> tuple[Integers, Integers]:
    """Both ends of ranges as int64 arrays of one shape."""
    a, b = np.asarray(first), np.asarray(last)
    if any(ends.dtype.kind not in "iu" and ends.size for ends in (a, b)):
        raise InvalidRange(f"ends of a range must be integers, got {a.dtype} and {b.dtype}")
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        raise InvalidRange(
            f"the ends of ranges must have shapes that go together, got {a.shape} and {b.shape}"
        ) from None
    bad = (a < 0) | (a > b) | (b >= domain)
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidRange(f"[{a.flat[k]}, {b.flat[k]}] is not a range within 0 .. {domain - 1}", k)
    return a.astype(np.int64), b.astype(np.int64)
