"""Ends of closed ranges: what is taken, and the first that is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rangeq.core.estimate import InvalidRange, checked_ends


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0, 0),
        (0, 7),
        ([0, 3], 7),
        ([[0], [1]], [1, 2, 3]),
        (np.uint8([2]), np.int16([2])),
        ([], []),
    ],
)
def test_ends_broadcast(first: Any, last: Any) -> None:
    a, b = checked_ends(first, last, 8)
    assert a.shape == b.shape == np.broadcast_shapes(np.shape(first), np.shape(last))
    assert a.dtype == b.dtype == np.int64


@pytest.mark.parametrize(
    ("first", "last", "index"),
    [
        (1.0, 2, None),
        ("1", "2", None),
        (True, 3, None),
        (None, 3, None),
        ([0, 1], [1, 2, 3], None),
        (-1, 2, 0),
        (3, 2, 0),
        (0, 8, 0),
        ([0, 4, 5], [3, 4, 9], 2),
    ],
)
def test_the_first_bad_range_is_named(first: Any, last: Any, index: int | None) -> None:
    with pytest.raises(InvalidRange) as bad:
        checked_ends(first, last, 8)
    assert bad.value.index == index
    assert isinstance(bad.value, ValueError)
