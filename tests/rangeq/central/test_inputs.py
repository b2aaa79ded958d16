"""Which counts a curator's mechanisms take; those refused cost no draw."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rangeq.central import CentralFlat, Hierarchy, InvalidHistogram, Wavelet
from tests.rangeq.central.examples import name


class Untouched(np.random.Generator):
    """A generator that must not be asked for anything."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def integers(self, *args, **kwargs):
        raise AssertionError("something was drawn")


@pytest.mark.parametrize(
    "m", [CentralFlat(3, 1.0), Hierarchy(3, 1.0, 2), Wavelet(3, 1.0)], ids=name
)
@pytest.mark.parametrize(
    ("counts", "index"),
    [
        ([1, -1, 2], 1),
        ([1, 2, -(1 << 63)], 2),
        ([1 << 62, 0, 0], 0),
        ([0, (1 << 52) + 1, 0], 1),
        ([1 << 64, 0, 0], 0),
        (np.array([1, 2, (1 << 64) - 1], dtype=np.uint64), 2),
        ([1 << 51, 1 << 51, 1], None),
        ([1.0, 2.0, 3.0], None),
        ([1, 2, math.nan], None),
        ([True, False, True], None),
        (["1", "2", "3"], None),
        ([1, 2, None], 2),
        ([1, 2], None),
        ([1, 2, 3, 4], None),
        ([[1, 2, 3]], None),
        ([[1], [2, 3], 4], None),
        (7, None),
        ([], None),
        (np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), None),
        (np.array([1, Fraction(1, 2), 3], dtype=object), 1),
    ],
)
def test_refused_counts(m, counts, index):
    with pytest.raises(InvalidHistogram, match="nothing was drawn") as refusal:
        m.release(counts, Untouched())
    assert refusal.value.index == index


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64, object])
def test_counts_of_any_integer_type(dtype):
    found = CentralFlat(3, 30.0).release(np.array([1, 2, 3], dtype=dtype), np.random.default_rng(0))
    np.testing.assert_array_equal(found.counts, [1, 2, 3])
