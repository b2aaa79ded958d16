"""The incidence transform of few counts in a large plane: their lines are walked, point by point.

A hash to many values is over a field whose plane has many more points than there are items.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frequency.algebra.finite_field import VectorSpace

_POINTS_AS_FAST = 8
"""The number of points of lines that take as long as the transform of a point of the plane."""

_LARGEST = 1 << 16
"""The largest order of a field: products of two elements of larger ones exceed 32 bits."""


def walkable(space: VectorSpace, counts: npt.NDArray[np.int64], domain: int) -> bool:
    """Whether `walked` takes these, and is faster than `VectorSpace.incident`.

    Shapes: `counts` (..., directions, q).
    """
    if space.t != 2 or space.field.k > 1 or space.q > _LARGEST or counts.ndim != 2:
        return False
    points = np.count_nonzero(counts) * -(-domain // space.q)
    return points <= _POINTS_AS_FAST * space.size


def walked(space: VectorSpace, counts: npt.NDArray[np.int64], domain: int) -> npt.NDArray[np.int64]:
    """Return the first ``domain`` entries of ``space.incident(counts)``, if it is `walkable`.

    Shapes: `counts` (directions, q); returns (domain,).
    """
    q, rows = space.q, -(-domain // space.q)
    result = np.zeros((rows, q), dtype=np.int64)
    # A vector is (its number mod q, the rest); direction 0 is (1, 0), and direction 1 + a is (a, 1)
    result += counts[0]
    result += counts[1, :rows, None]
    places = np.flatnonzero(counts[2:])
    times = counts[2:].ravel()[places]
    direction, value = divmod(places, q)
    # In each row a line has one point, inverse (value - row): from row to row it moves by -inverse.
    # a x + row = value
    inverse = space.field.inverse(direction + 1)
    first = (inverse * value % q).astype(np.uint32)
    step = (q - inverse).astype(np.uint32)
    for row in range(rows):
        x = (first + np.uint32(row) * step) % np.uint32(q)
        np.add.at(result[row], x.astype(np.intp), times)
    return result.ravel()[:domain]
