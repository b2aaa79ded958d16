"""Extremal mechanisms for local privacy against enumeration and closed forms."""

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from mechdesign import Mechanism, Privacy, named
from mechdesign.local import column_generation as generation
from mechdesign.local import extremal, square
from mechdesign.losses import L0, prior_over
from mechdesign.utilities import (
    ChiSquareDivergence,
    Hellinger,
    KullbackLeibler,
    MutualInformation,
    bayes_decision,
    total_variation,
)
from tests.mechdesign.local.examples import HALF, local
from tests.mechdesign.utilities.worths import ALPHAS, ITEMS, RATIONAL, UTILITIES, check_prices


def best_of_all_patterns(items, alpha, worth):
    """The linear program over all rows with entries 1 and alpha, in floats."""
    rows = list(product([1.0, float(alpha)], repeat=items))
    found = linprog([-worth(row) for row in rows], A_eq=np.array(rows).T, b_eq=np.ones(items))
    assert found.fun is not None
    return -found.fun


# --- against all patterns -------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", UTILITIES)
def test_against_all_patterns(name, alpha):
    utility, worth = UTILITIES[name]
    found = extremal(ITEMS, local(alpha), utility)
    mechanism = found.mechanism
    assert mechanism.audit().holds
    assert mechanism.outputs <= ITEMS
    assert float(found.value) == pytest.approx(best_of_all_patterns(ITEMS, alpha, worth), abs=1e-9)
    assert float(found.value) == pytest.approx(
        sum(map(worth, mechanism.matrix.tolist())), abs=1e-12
    )
    assert 0 <= found.gap <= (0 if name in RATIONAL else Fraction(1, 10**30))
    assert found.optimal == (found.gap == 0)
    low, high = utility.of(mechanism)
    assert found.value == low <= high
    check_prices(found, alpha)


@pytest.mark.parametrize("name", UTILITIES)
def test_rows_have_two_levels(name):
    alpha = Fraction(1, 20)
    for row in extremal(ITEMS, local(alpha), UTILITIES[name][0]).mechanism.table:
        assert {entry / max(row) for entry in row} <= {1, alpha}


@pytest.mark.parametrize("name", UTILITIES)
def test_less_privacy_is_worth_more(name):
    values = [extremal(ITEMS, local(alpha), UTILITIES[name][0]).value for alpha in reversed(ALPHAS)]
    assert values == sorted(values)
    assert values[0] < values[-1]


def test_no_random_mechanism_is_better():
    """Not only rows of two levels: any table that keeps the privacy stays below the bound."""
    rng, alpha = random.Random(7), Fraction(1, 3)
    for name, (utility, _) in UTILITIES.items():
        bound = extremal(ITEMS, local(alpha), utility).bound
        for _ in range(20):
            first = [
                [alpha + (1 - alpha) * Fraction(rng.randint(0, 6), 6) for _ in range(ITEMS)]
                for _ in range(3)
            ]
            scale = max(map(sum, zip(*first, strict=True)))
            rows = [[entry / scale for entry in row] for row in first]
            rest = [1 - sum(column) for column in zip(*rows, strict=True)]
            if min(rest) >= alpha * max(rest):
                rows += [rest] if any(rest) else []
                mechanism = Mechanism(rows, local(alpha))
                assert mechanism.audit().holds
                assert utility.of(mechanism)[0] <= bound, name


@pytest.mark.parametrize("alpha", [Fraction(1, 10**300), 1 - Fraction(1, 10**15)])
@pytest.mark.parametrize("name", UTILITIES)
def test_extreme_privacy(name, alpha):
    found = extremal(ITEMS, local(alpha), UTILITIES[name][0])
    assert found.mechanism.audit().holds
    assert 0 <= found.gap <= abs(found.value) / 10**30


@pytest.mark.parametrize("enumerated", [0, generation.ENUMERATED])
@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquareDivergence, Hellinger, total_variation])
def test_the_smallest(monkeypatch, kind, enumerated):
    monkeypatch.setattr(generation, "ENUMERATED", enumerated)
    for utility in (kind([1], [1]), kind([HALF, HALF, 0], [HALF, HALF, 0])):
        for alpha in (HALF, 1):
            found = extremal(utility.items, local(alpha), utility)
            assert found.value == found.bound == 0
    certain = extremal(2, local(HALF), kind([1, 0], [0, 1]))
    assert certain.mechanism == named.krr(2, alpha=HALF)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [0, -1, True, 2.0, "3"])
def test_the_domain_is_a_number_of_items(domain):
    with pytest.raises(ValueError, match="whole number of items"):
        square(domain, local(HALF))
    with pytest.raises(ValueError, match="whole number of items"):
        extremal(domain, local(HALF), MutualInformation(prior_over(3)))


def test_other_neighbours_are_refused():
    for neighbours in ("adjacent", 2, [(0, 1)]):
        with pytest.raises(ValueError, match="every two items"):
            square(3, Privacy(alpha=HALF, neighbours=neighbours))
        with pytest.raises(ValueError, match="every two items"):
            extremal(
                3, Privacy(alpha=HALF, neighbours=neighbours), MutualInformation(prior_over(3))
            )


def test_the_utility_fits_the_domain():
    with pytest.raises(ValueError, match="about 3 items, not 4"):
        extremal(4, local(HALF), MutualInformation(prior_over(3)))
    with pytest.raises(TypeError, match="must be a Utility"):
        extremal(4, local(HALF), L0())
    with pytest.raises(ValueError, match="2 inputs, the utility 3 items"):
        MutualInformation(prior_over(3)).of(named.krr(2, alpha=HALF))


def test_what_is_shown():
    found = extremal(3, local(HALF), bayes_decision([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    assert (
        str(found)
        == "BestDecision(3 items) = -0.5 under Privacy(alpha=1/2, neighbours='all'), 3 outputs for"
        " 3 items: proved optimal, gap exactly 0"
    )
    assert "gap at most" in str(extremal(3, local(HALF), MutualInformation(prior_over(3))))
