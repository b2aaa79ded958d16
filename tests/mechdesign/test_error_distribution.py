"""The distribution of the error of an answer, by its definition."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import Mechanism
from mechdesign.losses import L0, prior
from tests.mechdesign.programs import HALF
from tests.mechdesign.tables import tables

SETTINGS = settings(derandomize=True, deadline=None, max_examples=80)


@SETTINGS
@given(tables(), st.data())
def test_error_distribution_by_definition(table, data):
    inputs = len(table[0])
    weights = data.draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(0, 4), min_size=inputs, max_size=inputs).filter(any).map(prior),
        )
    )
    chances = weights or (Fraction(1, inputs),) * inputs
    cells = [(i - j, chances[j] * table[i][j]) for i in range(len(table)) for j in range(inputs)]
    spread = Mechanism(table, HALF).error_distribution(weights)
    assert list(spread.histogram) == list(range(1 - inputs, len(table)))
    for error, chance in spread.histogram.items():
        assert chance == sum(p for e, p in cells if e == error)
    assert sum(spread.histogram.values()) == 1
    for d in range(5):
        assert spread.tail(d) == sum(p for e, p in cells if abs(e) > d)
        assert spread.tail(d) == Mechanism(table, HALF).loss(L0(d, weights))
    assert spread.bias == sum(e * p for e, p in cells)
    assert spread.mean_square == sum(e * e * p for e, p in cells)
    assert spread.rmse == pytest.approx(math.sqrt(sum(e * e * p for e, p in cells)), rel=1e-14)
