"""Shuffled reports beside published bounds that are proved, and beside an exact law."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechdesign import Privacy, named
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import TableLaws
from tests.mechdesign.accounting.test_shuffling import random_table


def clones(most, n, ratio):
    """Feldman, McMillan and Talwar (FOCS 2021), theorem 3.1, in exact fractions.

    ``most`` is e^(local epsilon). C is binomial with n - 1 and 1 / most, A with C and 1/2; the user
    adds one to A with probability most / (most + 1), or else to C - A.
    """
    own = most / (most + 1)
    first: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for c in range(n):
        chance = math.comb(n - 1, c) * (1 - 1 / most) ** (n - 1 - c) / most**c
        for a in range(c + 1):
            here = chance * Fraction(math.comb(c, a), 2**c)
            first[a + 1, c - a] += here * own
            first[a, c - a + 1] += here * (1 - own)
    return sum(max(p - ratio * first[b, a], Fraction(0)) for (a, b), p in first.items())


TABLES = {
    "binary": named.krr(2, alpha="1/3"),
    "five": named.krr(5, alpha="1/10"),
    "random": random_table(np.random.default_rng(5), 4, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 9])
@pytest.mark.parametrize("name", TABLES)
def test_no_decomposition_gives_less_than_the_blanket(name, n):
    """Su, Cheng and Wang (2025): so the clones do not."""
    bounds, most = shuffled(TABLES[name], n), Fraction(TABLES[name].audit().ratio)
    for share in (0.1, 0.6):
        epsilon = share * bounds.local_epsilon
        published = float(clones(most, n, Fraction(math.exp(epsilon))))
        assert bounds.delta_at_least(epsilon) <= published * (1 + 1e-9)
        assert bounds.delta(epsilon) <= 1.02 * published + 1e-12


@pytest.mark.parametrize("n", [10, 10**4, 10**8])
def test_closed_forms_of_the_blanket(n):
    """Balle, Bell, Gascon and Nissim (2019): Hoeffding's inequality for the same sum."""
    table = named.krr(5, alpha=Privacy.from_epsilon(1).alpha)
    bounds = shuffled(table, n)
    laws = TableLaws(table.sampler.weights)
    for law in map(laws.__getitem__, range(len(laws))):
        gamma = float(sum(item.weight for item in law))
        for epsilon in (1 / math.sqrt(n), 0.5 * bounds.local_epsilon):
            a, e = math.expm1(epsilon), math.exp(epsilon)
            values = [gamma * float(item.first - Fraction(e) * item.second) for item in law]
            wide = max(values) - min(values)
            rate = -math.expm1(-2 * a**2 / wide**2)
            form = wide**2 / (4 * a * gamma * n) * math.exp(n * math.log1p(-gamma * rate))
            assert bounds.delta(epsilon) <= form + 1e-300


def test_binary_response_has_an_exact_law():
    """The sum of two binomial variables, whatever the others hold."""
    n, p = 1000, 0.75
    bounds = shuffled(named.krr(2, alpha="1/3"), n)
    for epsilon in (0.02, 0.15):
        worst = 0.0
        for held in (0, n // 2, n - 1):
            others = np.convolve(
                stats.binom.pmf(np.arange(held + 1), held, p),
                stats.binom.pmf(np.arange(n - held), n - 1 - held, 1 - p),
            )
            first, second = (
                np.append(others, 0) * (1 - q) + np.append(0, others) * q for q in (p, 1 - p)
            )
            worst = max(worst, np.maximum(first - math.exp(epsilon) * second, 0).sum())
        assert bounds.delta_at_least(epsilon) <= worst * (1 + 1e-9) <= bounds.delta(epsilon)
        assert bounds.delta_at_least(epsilon) >= 0.95 * worst
