"""Mechanisms as measurements of OpenDP, in its chains; privacy maps are never too small."""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign import (
    Bands,
    CountPairs,
    Counts,
    Mechanism,
    Metric,
    Privacy,
    PrivacyViolation,
    design,
    named,
)
from mechdesign.base.numbers import bit_source
from tests.goodness_of_fit import goodness

dp: Any = pytest.importorskip("opendp.prelude")


@pytest.fixture(autouse=True)
def features() -> Any:
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


def counting() -> Any:
    return dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())


def exact_loss(mechanism: Mechanism, difference: int) -> Fraction | float:
    """The largest ratio of the table between counts that differ by at most so much."""
    return max(
        Fraction(row[j], row[k]) if row[k] else math.inf if row[j] else Fraction(1)
        for row in mechanism.weights
        for j in range(mechanism.inputs)
        for k in range(mechanism.inputs)
        if abs(j - k) <= difference
    )


MECHANISMS = {
    "GM": named.geometric(8, alpha="9/10"),
    "WM": named.weakly_honest(4, alpha="2/3"),
    "k-RR": named.krr(5, alpha="1/3"),
    "uniform": named.uniform(3),
    "one count": named.uniform(0),
    "reach 2": design(5, Privacy(alpha="1/2", neighbours=2)).mechanism,
    "epsilon 1": named.geometric(5, alpha=Privacy.from_epsilon(1.0).alpha),
    "strong": named.geometric(3, alpha=Privacy.from_epsilon(1e-12).alpha),
    "weak": named.geometric(3, alpha=Privacy.from_epsilon(700).alpha),
    "wide": design(
        3, Privacy(alpha="1/2"), properties=["unbiased"], outputs=Counts(-3, 6)
    ).mechanism,
    "bands": design(3, Privacy(alpha="1/2"), outputs=Bands([(0, 1), (2, 3)])).mechanism,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_privacy_map_bounds_the_exact_loss_and_is_tight(name: str) -> None:
    mechanism = MECHANISMS[name]
    measurement, privacy = mechanism.to_opendp(), mechanism.privacy
    context = Context(prec=50)
    for difference in range(mechanism.inputs + 3):
        stated = measurement.map(difference)
        ratio = exact_loss(mechanism, difference)
        steps = privacy.steps(min(difference, mechanism.inputs - 1))
        assert ratio <= (1 / privacy.alpha) ** steps
        claimed = context.multiply(
            context.ln(context.divide(Decimal(privacy.alpha.denominator), privacy.alpha.numerator)),
            steps,
        )
        assert Decimal(stated) >= claimed
        assert stated <= float(claimed) * (1 + 4 * sys.float_info.epsilon)
    assert measurement.map(0) == 0


def test_a_loss_is_rounded_up_where_it_is_no_float() -> None:
    epsilon = Fraction(MECHANISMS["GM"].privacy.epsilon)
    exact = [epsilon * d for d in range(9)]
    assert any(float(each) < each for each in exact), "rounding to nearest would be too small"
    measurement = MECHANISMS["GM"].to_opendp()
    assert all(measurement.map(d) >= each for d, each in enumerate(exact))


def test_it_follows_a_transformation_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a seed in the place of the operating system; false alarms below 1e-6."""
    source = bit_source(np.random.default_rng(20))
    monkeypatch.setattr("mechdesign.noise.sampling.bit_source", lambda rng: source)
    gm = MECHANISMS["GM"]
    chain = counting() >> gm.to_opendp()
    assert chain.map(1) == gm.privacy.epsilon
    drawn = np.bincount([chain([5] * 3) for _ in range(1000)], minlength=9)
    assert goodness(drawn, gm.matrix[:, 3]) > 1e-6
    assert goodness(drawn, gm.matrix[:, 8]) < 1e-6
    shifted = chain >> (lambda count: count + 100)
    assert 100 <= shifted([1, 2]) <= 108
    name = "make_composition" if hasattr(dp.c, "make_composition") else "make_basic_composition"
    both = getattr(dp.c, name)([chain, chain])
    assert both.map(1) == 2 * gm.privacy.epsilon


def test_counts_beyond_the_table_are_taken_as_its_ends() -> None:
    certain = Mechanism([[1, 0], [0, 1]], Privacy(alpha="1/2", neighbours=[(0, 1)]))
    with pytest.raises(PrivacyViolation):
        certain.to_opendp()
    measurement = named.geometric(2, alpha=Fraction(1, 10**9)).to_opendp()
    answers = {count: measurement(count) for count in (-(2**31), -1, 0, 1, 2, 3, 2**31 - 1)}
    assert list(answers.values()) == [0, 0, 0, 1, 2, 2, 2]


def test_outputs_are_what_release_returns() -> None:
    wide, bands = MECHANISMS["wide"].to_opendp(), MECHANISMS["bands"].to_opendp()
    assert {wide(0) for _ in range(300)} <= set(range(-3, 7))
    assert min(wide(0) for _ in range(300)) < 0
    assert {bands(3) for _ in range(100)} == {0, 1}


@pytest.mark.parametrize(
    "neighbours", [[(0, 1), (1, 2)], Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]])]
)
def test_privacy_that_is_not_about_the_difference_is_refused(neighbours: Any) -> None:
    privacy = Privacy(alpha="1/2", neighbours=neighbours)
    with pytest.raises(ValueError, match="not said by their difference"):
        Mechanism(named.geometric(2, alpha="1/2").table, privacy).to_opendp()


def test_pairs_of_counts_are_refused() -> None:
    found = design(CountPairs(1, 1), Privacy(alpha="1/2", neighbours="all")).mechanism
    with pytest.raises(ValueError, match="pairs of counts"):
        found.to_opendp()


def test_opendp_asks_for_its_features() -> None:
    dp.disable_features("honest-but-curious")
    with pytest.raises(Exception, match="honest-but-curious"):
        MECHANISMS["GM"].to_opendp()
