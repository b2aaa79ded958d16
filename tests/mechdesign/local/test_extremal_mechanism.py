"""Extremal mechanisms for local privacy against enumeration and closed forms."""

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from scipy.optimize import linprog

from mechdesign import InexactNumber, InvalidPrior, Mechanism, Privacy, named
from mechdesign.local import column_generation as generation
from mechdesign.local import extremal, square
from mechdesign.losses import L0, L1, prior, prior_over
from mechdesign.lp.basis import to_fmpq
from mechdesign.utilities import (
    BestDecision,
    ChiSquareDivergence,
    Hellinger,
    KullbackLeibler,
    MutualInformation,
    Utility,
    bayes_decision,
    total_variation,
)
from tests.mechdesign.local.examples import HALF, local, some_prior

# What a row (the probabilities of one output under every item) is worth, in floats and straight
# from the definitions.


def expected(row, weights):
    return sum(float(w) * s for w, s in zip(weights, row, strict=True))


def information(row, weights):
    """The sum over items of Pr[x, y] log(Pr[y | x] / Pr[y])."""
    total = expected(row, weights)
    return sum(float(w) * s * math.log(s / total) for w, s in zip(weights, row, strict=True))


def relative_entropy(row, first, second):
    a, b = expected(row, first), expected(row, second)
    return a * math.log(a / b)


def chi_square(row, first, second):
    a, b = expected(row, first), expected(row, second)
    return (a - b) ** 2 / b


def hellinger(row, first, second):
    a, b = expected(row, first), expected(row, second)
    return (math.sqrt(a) - math.sqrt(b)) ** 2 / 2


def variation(row, first, second):
    return abs(expected(row, first) - expected(row, second)) / 2


def minus_risk(row, losses, weights):
    return -min(
        sum(float(w) * s * c for w, s, c in zip(weights, row, cost, strict=True)) for cost in losses
    )


def best_of_all_patterns(items, alpha, worth):
    """The linear program over all rows with entries 1 and alpha, in floats."""
    rows = list(product([1.0, float(alpha)], repeat=items))
    found = linprog([-worth(row) for row in rows], A_eq=np.array(rows).T, b_eq=np.ones(items))
    assert found.fun is not None
    return -found.fun


ITEMS = 5
FIRST, SECOND, WEIGHTS = some_prior(ITEMS, 1), some_prior(ITEMS, 2), some_prior(ITEMS, 3)
DISTANCES = [[abs(d - x) for x in range(ITEMS)] for d in range(ITEMS)]
UTILITIES = {
    "information": (MutualInformation(WEIGHTS), lambda row: information(row, WEIGHTS)),
    "relative entropy": (
        KullbackLeibler(FIRST, SECOND),
        lambda row: relative_entropy(row, FIRST, SECOND),
    ),
    "chi square": (ChiSquareDivergence(FIRST, SECOND), lambda row: chi_square(row, FIRST, SECOND)),
    "hellinger": (Hellinger(FIRST, SECOND), lambda row: hellinger(row, FIRST, SECOND)),
    "total variation": (total_variation(FIRST, SECOND), lambda row: variation(row, FIRST, SECOND)),
    "bayes": (bayes_decision(DISTANCES, WEIGHTS), lambda row: minus_risk(row, DISTANCES, WEIGHTS)),
}
RATIONAL = {"chi square", "total variation", "bayes"}
ALPHAS = [Fraction(1, 50), Fraction(1, 3), Fraction(9, 10), Fraction(1)]


def check_prices(found, alpha):
    """The proof, evaluated over every pattern of the items themselves: nothing is merged or folded
    here.
    """
    assert sum(found.prices) == found.bound
    with ctx.workprec(256):
        for row in product([Fraction(1), alpha], repeat=found.utility.items):
            cost = sum(price * s for price, s in zip(found.prices, row, strict=True))
            worth = found.utility.worth([to_fmpq(s) for s in row])
            assert (
                worth.lower() <= to_fmpq(cost) if isinstance(worth, arb) else worth <= to_fmpq(cost)
            )


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


# --- closed forms ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquareDivergence, Hellinger])
def test_at_high_privacy_two_outputs_are_best_for_any_divergence(kind):
    """Theorem 5 of the same: then the binary mechanism is optimal, which is the one of the total
    variation.
    """
    first, second = some_prior(8, 1), some_prior(8, 2)
    binary = extremal(8, local("999/1000"), total_variation(first, second)).mechanism
    assert set(extremal(8, local("999/1000"), kind(first, second)).mechanism.table) == set(
        binary.table
    )


@pytest.mark.parametrize("items", [3, 5, 16])
def test_at_low_privacy_information_is_best_kept_by_randomised_response(items):
    found = extremal(items, local("1/1000"), MutualInformation(prior_over(items)))
    assert found.mechanism == named.krr(items, "1/1000")


def subset_information(items, size, alpha):
    """I(X; Y) of subset selection under a uniform prior: a row has ``size`` entries in proportion 1
    and the others alpha.
    """
    mean = (size + (items - size) * alpha) / items
    return (size * math.log(1 / mean) + (items - size) * alpha * math.log(alpha / mean)) / (
        items * mean
    )


@pytest.mark.parametrize("items", [6, 20, 60])
@pytest.mark.parametrize("alpha", ["1/20", "1/3", "1/2", "9/10"])
def test_information_under_a_uniform_prior_is_kept_by_subsets_of_the_best_size(items, alpha):
    values = {
        size: subset_information(items, size, float(Fraction(alpha)))
        for size in range(1, items + 1)
    }
    best = max(values, key=values.get)
    found = extremal(items, local(alpha), MutualInformation(prior_over(items)))
    assert float(found.value) == pytest.approx(values[best], rel=1e-12)
    assert found.gap < Fraction(1, 10**30)
    assert {sum(entry == max(row) for entry in row) for row in found.mechanism.table} == {best}
    # Not all subsets: one in n/gcd shifts will do
    assert found.mechanism.outputs == items // math.gcd(items, best)


@pytest.mark.parametrize("items", [4, 40])
def test_the_most_likely_guess_is_best_made_from_randomised_response(items):
    wrong = [[int(d != x) for x in range(items)] for d in range(items)]
    found = extremal(items, local(HALF), bayes_decision(wrong))
    assert found.gap == 0
    assert found.mechanism == named.krr(items, HALF)


@pytest.mark.parametrize("enumerated", [0, generation.ENUMERATED])
@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquareDivergence, Hellinger, total_variation])
def test_the_smallest(monkeypatch, kind, enumerated):
    monkeypatch.setattr(generation, "ENUMERATED", enumerated)
    for utility in (kind([1], [1]), kind([HALF, HALF, 0], [HALF, HALF, 0])):
        for alpha in (HALF, 1):
            found = extremal(utility.items, local(alpha), utility)
            assert found.value == found.bound == 0
    certain = extremal(2, local(HALF), kind([1, 0], [0, 1]))
    assert certain.mechanism == named.krr(2, HALF)


def test_an_item_that_tells_nothing_changes_nothing():
    plain = extremal(2, local(HALF), ChiSquareDivergence(["1/3", "2/3"], ["3/4", "1/4"]))
    padded = extremal(3, local(HALF), ChiSquareDivergence(["1/3", "2/3", 0], ["3/4", "1/4", 0]))
    assert padded.value == plain.value == padded.bound


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


# --- interchangeable items and generation --------------------------------------------------------


def test_interchangeable_items_change_nothing():
    """Two classes of interchangeable items, and the same items told apart by perturbing nothing but
    the classes.
    """

    class Plain(MutualInformation):
        def classes(self):
            return Utility.classes(self)

    weights = prior([1, 1, 1, 1, 3, 3, 3])
    for alpha in (Fraction(1, 10), HALF, Fraction(9, 10)):
        merged, plain = (
            extremal(7, local(alpha), kind(weights)) for kind in (MutualInformation, Plain)
        )
        assert float(merged.value) == pytest.approx(float(plain.value), rel=1e-15)
        assert merged.mechanism.outputs <= 7
        check_prices(merged, alpha)


def test_merging_changes_nothing():
    class Plain(ChiSquareDivergence):
        def merged(self):
            return Utility.merged(self)

    first, second = prior([1, 2, 3, 4, 0, 1]), prior([2, 4, 1, 3, 1, 0])
    merged, plain = (
        extremal(6, local(HALF), kind(first, second)) for kind in (ChiSquareDivergence, Plain)
    )
    assert merged.value == plain.value
    assert merged.gap == plain.gap == 0
    check_prices(merged, HALF)
    assert all(row[0] == row[1] for row in merged.mechanism.table)


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


@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquareDivergence, Hellinger])
def test_a_divergence_of_many_items(kind):
    found = extremal(20, local(HALF), kind(some_prior(20, 1), some_prior(20, 2)))
    assert found.mechanism.audit().holds
    assert 0 <= found.gap <= found.value / 10**9


def test_a_decision_about_many_items():
    found = extremal(
        25, local(HALF), bayes_decision([[abs(d - x) for x in range(25)] for d in range(25)])
    )
    assert found.gap == 0
    assert found.value == -square(25, local(HALF), L1()).certificate.objective


@pytest.mark.parametrize(
    "weights", [some_prior(30, 3), prior([1] * 10 + [2] * 20 + [3] * 15 + [4] * 25)]
)
def test_the_information_of_many_items(weights):
    found = extremal(len(weights), local(HALF), MutualInformation(weights))
    assert found.mechanism.audit().holds
    assert found.mechanism.outputs <= len(weights)
    assert 0 <= found.gap <= found.value / 10**4


def test_a_pricing_bound_holds_for_every_pattern():
    rng, alpha = random.Random(3), Fraction(1, 4)
    for utility, _ in UTILITIES.values():
        for _ in range(5):
            prices = [to_fmpq(Fraction(rng.randint(-20, 60), 100)) for _ in range(ITEMS)]
            bound, _ = utility.pricing(prices, to_fmpq(alpha))
            for row in product([to_fmpq(Fraction(1)), to_fmpq(alpha)], repeat=ITEMS):
                worth = utility.worth(row)
                net = worth - sum(
                    (p * s for p, s in zip(prices, row, strict=True)), to_fmpq(Fraction(0))
                )
                low = net.lower().fmpq() if isinstance(net, arb) else net
                assert low <= bound or row == (to_fmpq(alpha),) * ITEMS


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
            square(3, Privacy(HALF, neighbours=neighbours))
        with pytest.raises(ValueError, match="every two items"):
            extremal(3, Privacy(HALF, neighbours=neighbours), MutualInformation(prior_over(3)))


def test_the_utility_fits_the_domain():
    with pytest.raises(ValueError, match="about 3 items, not 4"):
        extremal(4, local(HALF), MutualInformation(prior_over(3)))
    with pytest.raises(TypeError, match="must be a Utility"):
        extremal(4, local(HALF), L0())
    with pytest.raises(ValueError, match="2 inputs, the utility 3 items"):
        MutualInformation(prior_over(3)).of(named.krr(2, HALF))


def test_utilities_want_exact_distributions():
    with pytest.raises(InvalidPrior):
        MutualInformation([HALF, HALF, HALF])
    with pytest.raises(InvalidPrior):
        MutualInformation([])
    with pytest.raises(InexactNumber):
        MutualInformation([0.5, 0.5])
    with pytest.raises(InvalidPrior):
        ChiSquareDivergence([HALF, HALF], [2, -1])
    with pytest.raises(ValueError, match="same items"):
        total_variation([1], [HALF, HALF])
    with pytest.raises(InexactNumber):
        BestDecision([[0.5]])
    tables: list[list[list[int]]] = [[], [[]], [[1, 2], [3]]]
    for table in tables:
        with pytest.raises(ValueError, match=r"one length|at least one decision"):
            BestDecision(table)
        with pytest.raises(ValueError, match=r"one length|at least one decision"):
            bayes_decision(table)
    with pytest.raises(InvalidPrior):
        bayes_decision([[0, 1]], [HALF])


def test_a_mechanism_without_privacy_has_no_value():
    with pytest.raises(ValueError, match="no privacy at all"):
        KullbackLeibler([HALF, HALF], [1, 0]).of(Mechanism([[1, 0], [0, 1]], local(HALF)))


def test_what_is_shown():
    found = extremal(3, local(HALF), bayes_decision([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    assert (
        str(found)
        == "BestDecision(3 items) = -0.5 under Privacy(alpha=1/2, neighbours='all'), 3 outputs for"
        " 3 items: proved optimal, gap exactly 0"
    )
    assert "gap at most" in str(extremal(3, local(HALF), MutualInformation(prior_over(3))))
