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
