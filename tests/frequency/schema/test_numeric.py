"""Numbers in bins: values that are edges begin their bins, whatever their decimals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency import Numeric


@pytest.mark.parametrize(
    ("low", "high", "bins"), [(0, 100, 100), (0, 0.7, 7), (-1.5, 4.5, 60), (0.1, 1.3, 12)]
)
def test_edges_begin_their_bins(low, high, bins):
    attribute = Numeric("mass", low=low, high=high, bins=bins)
    first, width = Fraction(str(low)), (Fraction(str(high)) - Fraction(str(low))) / bins
    edges = [float(first + width * k) for k in range(bins + 1)]
    assert attribute.coded(edges).items.tolist() == [*range(bins), bins - 1]
    assert attribute.coded([f"{edge:.6f}" for edge in edges]).items.tolist()[:-1] == [*range(bins)]


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    low=st.integers(-(10**5), 10**5),
    width=st.integers(1, 10**5),
    bins=st.integers(1, 50),
    part=st.fractions(0, 1, max_denominator=1000),
)
def test_bins_are_those_of_exact_arithmetic(low, width, bins, part):
    """Of numbers with three decimals."""
    value = low + round(width * part)
    exact = min(Fraction(value - low, width) * bins // 1, bins - 1)
    attribute = Numeric("mass", low=low / 1000, high=(low + width) / 1000, bins=bins)
    assert attribute.coded([value / 1000]).items.tolist() == [exact]


def test_the_ends_of_bins_are_their_edges():
    for edges in ([0.1, 0.3, 0.7, 1.1], [-1e15, 1e-9, 3.3], [1 / 3, 2 / 3, 1]):
        attribute = Numeric("x", edges)
        bins = np.arange(attribute.bins)
        assert attribute.values_in(bins, np.zeros(len(bins))).tolist() == edges[:-1]
        assert attribute.values_in(bins, np.ones(len(bins))).tolist() == edges[1:]


@pytest.mark.parametrize(
    ("attribute", "decimals"),
    [
        (Numeric("price", low=0, high=500, bins=50), 2),
        (Numeric("share", [-0.01, 1 / 3, 2 / 3, 1]), 4),
        (Numeric("pay", low=10, high=1e6, bins=40, spacing="logarithmic"), 3),
        (Numeric("whole", low=0, high=1000, bins=10, whole=True), 0),
        (Numeric("far", low=0, high=1e15, bins=10), 0),
    ],
)
def test_drawn_values_are_in_their_bins_and_short(attribute, decimals) -> None:
    items = np.repeat(np.arange(attribute.bins), 200)
    values = attribute.drawn_in(items, np.random.default_rng(1))
    np.testing.assert_array_equal(attribute.coded(values.tolist()).items, items)
    assert len(np.unique(values)) > 150 * attribute.bins or attribute.whole
    inner = values[~np.isin(values, attribute.cuts)].tolist()
    assert max(len(f"{one!r}".partition(".")[2]) for one in inner) <= max(decimals, 1)


def test_values_of_bins_too_narrow_for_decimals_are_as_drawn() -> None:
    tiny = Numeric("tiny", low=0, high=1e-300, bins=4)
    values = tiny.drawn_in(np.array([0, 3, 1]), np.random.default_rng(1))
    assert tiny.coded(values.tolist()).items.tolist() == [0, 3, 1]


def test_large_numbers_are_written_out():
    pay = Numeric("pay", [0, 0.25, 31.6227766, 100_000, 1_000_000, 1_234_567, 1e14])
    assert pay.values == "a number from 0 to 100000000000000"
    assert tuple(pay.item_labels) == (
        *("0 to 0.25", "0.25 to 31.6228", "31.6228 to 100000", "100000 to 1000000"),
        *("1000000 to 1234567", "1234567 to 100000000000000"),
    )
    assert Numeric("pay", low=0, high=1e6, bins=2).values == "a number from 0 to 1000000"
