"""Patterns generated as they are needed: the optimum that enumeration finds."""

from fractions import Fraction

import pytest

from mechdesign.local import column_generation as generation
from mechdesign.local import extremal
from tests.mechdesign.local.examples import HALF, local
from tests.mechdesign.utilities.worths import ITEMS, UTILITIES, check_prices


@pytest.mark.parametrize("alpha", [Fraction(1, 20), HALF])
@pytest.mark.parametrize("name", UTILITIES)
def test_generating_patterns_finds_what_enumeration_finds(monkeypatch, name, alpha):
    utility = UTILITIES[name][0]
    everything = extremal(ITEMS, local(alpha), utility)
    monkeypatch.setattr(generation, "ENUMERATED", 0)
    generated = extremal(ITEMS, local(alpha), utility)
    assert generated.value <= everything.bound
    assert generated.bound >= everything.value
    assert generated.gap >= 0
    assert float(generated.value) == pytest.approx(float(everything.value), rel=1e-9)
    if name != "information":  # whose relaxation is not tight for so few items
        assert (
            generated.gap <= generated.value / 10**9 if generated.value > 0 else generated.gap == 0
        )
    check_prices(generated, alpha)
