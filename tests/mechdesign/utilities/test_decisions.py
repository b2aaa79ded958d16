"""The best decision, and the total variation of two hypotheses: known optima."""

from fractions import Fraction

import pytest

from mechdesign import named
from mechdesign.local import extremal, square
from mechdesign.losses import L1
from mechdesign.utilities import bayes_decision, total_variation
from tests.mechdesign.local.examples import HALF, local, some_prior


@pytest.mark.parametrize("items", [2, 7, 60])
@pytest.mark.parametrize("alpha", ["1/100", "1/2", "9/10"])
def test_total_variation_is_randomised_response_on_the_likelier_hypothesis(items, alpha):
    """Kairouz, Oh and Viswanath, Theorem 6: (e^eps - 1)/(e^eps + 1) times the distance of the
    hypotheses, at every privacy.
    """
    first, second, a = some_prior(items, 1), some_prior(items, 2), Fraction(alpha)
    found = extremal(items, local(alpha), total_variation(first, second))
    distance = sum(abs(p - q) for p, q in zip(first, second, strict=True)) / 2
    assert found.value == found.bound == (1 - a) / (1 + a) * distance
    likelier = [p >= q for p, q in zip(first, second, strict=True)]
    rows = {
        tuple((1 if high else a) / (1 + a) for high in side)
        for side in (likelier, [not high for high in likelier])
    }
    assert set(found.mechanism.table) == rows


@pytest.mark.parametrize("items", [4, 40])
def test_the_most_likely_guess_is_best_made_from_randomised_response(items):
    wrong = [[int(d != x) for x in range(items)] for d in range(items)]
    found = extremal(items, local(HALF), bayes_decision(wrong))
    assert found.gap == 0
    assert found.mechanism == named.krr(items, alpha=HALF)


def test_bayes_decision_agrees_with_the_square_program():
    """With as many outputs as decisions, and the best decision for each output its own name, the
    two are one problem.
    """
    weights = some_prior(6, 5)
    costs = [[abs(d - x) for x in range(6)] for d in range(6)]
    assert (
        -extremal(6, local(HALF), bayes_decision(costs, weights)).value
        == square(6, local(HALF), L1(prior=weights)).certificate.objective
    )


def test_a_decision_about_many_items():
    found = extremal(
        25, local(HALF), bayes_decision([[abs(d - x) for x in range(25)] for d in range(25)])
    )
    assert found.gap == 0
    assert found.value == -square(25, local(HALF), L1()).certificate.objective
