"""Proofs are checked from what they state: right ones hold, planted mistakes are refused."""

from dataclasses import replace
from fractions import Fraction as Q

import pytest

from mechdesign.symbolic import (
    ALPHA,
    ItemLaw,
    Randomiser,
    RationalFunction,
    ReportKind,
    optimized_unary,
)
from mechdesign.symbolic.proof_rules import (
    at_two_places,
    discrete_laplace,
    favouring,
    in_either,
    unchanged,
)
from mechdesign.symbolic.semialgebraic import rational
from tests.mechdesign.symbolic.alphas import NONE

A = rational(ALPHA)
ONE = rational(1)


def law(*kinds, items=""):
    """Of a single class: (number of reports, likelihood)."""
    return ItemLaw(items, (tuple(ReportKind(rational(n), rational(p)) for n, p in kinds),))


TRUTH = ONE / (ONE + A * 3)


@pytest.mark.parametrize(("likely", "others"), [(1, 1), (1, 4), (7, 200), (5, 0)])
def test_some_reports_are_favoured(likely, others):
    proof = favouring(likely, others, name="told")
    assert proof.verify()
    assert proof.loss == (1 if others else 0)
    for alpha in (Q(1, 7), Q(2, 3)):
        (kinds,) = proof.laws[0].classes
        assert sum(kind.reports(alpha) * kind.likelihood(alpha) for kind in kinds) == 1
        assert kinds[-1].likelihood(alpha) == (alpha if others else 1) * kinds[0].likelihood(alpha)


def test_shares_are_as_good_as_numbers():
    shares, numbers = favouring(Q(2, 5), Q(3, 5), True), favouring(2, 3)
    assert shares.holds
    assert [kind.likelihood for kind in shares.laws[0].classes[0]] == [
        kind.likelihood * 5 for kind in numbers.laws[0].classes[0]
    ]
    assert not favouring(2, 3, True).holds  # no shares


def test_two_places():
    """OUE of two items is the table of its four reports."""
    proof = at_two_places(Q(1, 2), A / (ONE + A), name="two bits")
    assert proof.verify()
    table = optimized_unary(2)
    for alpha in (Q(1, 4), Q(5, 6)):
        for j, items in enumerate(proof.laws):
            stated = sorted(kinds[0].likelihood(alpha) for kinds in items.classes)
            assert stated == sorted(table[i, j](alpha) for i in range(4))


def test_either_place():
    proof = in_either(name="either")
    assert proof.verify()
    assert len(proof.laws) == 4
    assert not replace(proof, exponent=0).holds


def test_what_says_nothing():
    assert unchanged(Q(1, 3), Q(2, 3)).holds
    assert unchanged(Q(1, 3), Q(2, 3)).loss == 0
    assert not unchanged(Q(1, 3), Q(1, 3)).holds


@pytest.mark.parametrize("alpha", [Q(1, 3), Q(9, 10)])
def test_discrete_laplace_noise(alpha):
    """Its sides, added up number by number, and the likelihoods of each under c and c + 1."""
    proof = discrete_laplace(name="noise")
    assert proof.verify()
    assert not replace(proof, exponent=0).holds

    def chance(k):
        return (1 - alpha) / (1 + alpha) * alpha ** abs(k)

    for law, c in zip(proof.laws, (0, 1), strict=True):
        for (kind,), side in zip(law.classes, (range(0, -400, -1), range(1, 401)), strict=True):
            told = [chance(k - c) for k in side]
            value, times = kind.likelihood(alpha), kind.reports(alpha)
            assert told == [value * alpha**k for k in range(400)]
            assert 0 < times - sum(told) / value < Q(1, 10**10)
    for k in range(-9, 9):  # every number is of one of the two kinds of ratios
        assert chance(k) / chance(k - 1) in (alpha, 1 / alpha)


WRONG = {
    "sum": (law((1, TRUTH), (2, TRUTH * A)), 1, "sum to"),
    "factor": (law((1, TRUTH * A), (3, TRUTH * A)), 1, "sum to"),
    "negative": (law((1, A * 2), (1, ONE - A * 2)), 1, "negative"),
    "exponent": (law((1, TRUTH), (3, TRUTH * A)), 0, "less than"),
    "ratio": (law((1, ONE / (ONE + A * A)), (1, A * A / (ONE + A * A))), 1, "less than"),
    "none": (law((1, ONE), (1, rational(0))), 1, "less than"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_law_is_refused(name):
    wrong, exponent, reason = WRONG[name]
    proof = Randomiser((wrong,), exponent, name=name)
    assert not proof.holds
    assert reason in proof.verify().reason
    assert name in proof.verify().reason
    assert not proof.region.everywhere


def test_where_a_law_is_right():
    """1/2 + a and 1/2 - a are alpha apart up to an alpha: the region is exact."""
    half, step = rational(Q(1, 2)), rational(Q(1, 6))
    proof = Randomiser((law((1, half + step), (1, half - step)),), 1, name="constants")
    assert str(proof.region) == "0 < α ≤ 1/2"


def test_what_is_not_proved_is_not_printed_as_a_proof():
    half, step = rational(Q(1, 2)), rational(Q(1, 6))
    wrong = Randomiser((law((1, half + step), (1, half - step)),), 1, name="constants")
    assert str(wrong).splitlines()[-1] == f"not proved: {wrong.verify().reason}"
    right = Randomiser((law((1, half), (1, half)),), 0, name="nothing")
    assert right.holds
    assert "not proved" not in str(right)


def test_items_are_compared_with_each_other():
    """Each law sums to 1 by itself; together they must keep alpha, and have as many reports."""
    told = favouring(1, 1)
    fair = law((2, Q(1, 2)), items="no item")
    assert replace(told, laws=(*told.laws, fair)).holds
    rare = law((1, A * A), (1, ONE - A * A), items="no item")
    assert not replace(told, laws=(*told.laws, rare)).holds
    more = law((4, Q(1, 4)), items="no item")
    assert "numbers of reports" in replace(told, laws=(*told.laws, more)).verify().reason


def test_a_pole_is_refused():
    pole = RationalFunction(ALPHA, 2 * ALPHA - 1)
    proof = Randomiser((law((1, pole), (1, ONE - pole)),), 1)
    assert not proof.holds


def test_no_law_and_a_larger_exponent():
    assert not Randomiser((), 1).holds
    assert not replace(favouring(1, 1), exponent=2).holds  # right, but not alpha
    assert replace(favouring(1, 1), exponent=2).region == NONE
    assert "2 times" in replace(favouring(1, 1), exponent=2).verify().reason


def test_a_proof_is_text():
    assert str(favouring(1, 4, name="GRR", source="a book")).splitlines() == [
        "GRR (a book): ratio at most 1/α",
        "  likelihoods 1 of 1/(1 + 4α), 4 of α/(1 + 4α)",
    ]
    assert str(unchanged(1, name="nothing")).startswith("nothing: ratio at most 1\n")
    assert favouring(1, 4, name="a", source="b").called("c").source == "b"
