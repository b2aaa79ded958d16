"""What a row is worth straight from the definitions, and what a proof has to say of every row."""

import math
from fractions import Fraction
from itertools import product

from flint import arb, ctx

from mechdesign.lp.basis import to_fmpq
from mechdesign.utilities import (
    ChiSquareDivergence,
    Hellinger,
    KullbackLeibler,
    MutualInformation,
    bayes_decision,
    total_variation,
)
from tests.mechdesign.local.examples import some_prior

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
