"""What utilities of every kind promise, and what they refuse."""

import random
from fractions import Fraction
from itertools import product

import pytest
from flint import arb

from mechdesign import InexactNumber, InvalidPrior
from mechdesign.lp.basis import to_fmpq
from mechdesign.utilities import (
    BestDecision,
    ChiSquareDivergence,
    MutualInformation,
    bayes_decision,
    total_variation,
)
from tests.mechdesign.local.examples import HALF
from tests.mechdesign.utilities.worths import ITEMS, UTILITIES


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
