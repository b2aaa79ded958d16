"""Closed forms as docs/notation.md prints them, against the optimum for every alpha."""

from fractions import Fraction as Q
from typing import Any

import pytest
from flint import fmpz_poly

from mechdesign.losses import L0
from mechdesign.symbolic import (
    ALPHA,
    RationalFunction,
    SymbolicMechanism,
    explicit_fair,
    geometric,
    parametric,
)
from mechdesign.symbolic.semialgebraic import nonnegative
from tests.mechdesign.symbolic.alphas import ALL, ONE, proved


def polynomial(*coefficients):
    return fmpz_poly(list(coefficients))


WEAKLY_HONEST = {
    2: [
        ((polynomial(0, 4), 3 * (1 + ALPHA)), 0, Q(1, 2)),
        ((2 * polynomial(-1, 4), 9 * ALPHA), Q(1, 2), 1),
    ],
    3: [
        ((polynomial(0, 3), 2 * (1 + ALPHA)), 0, Q(3, 5)),
        ((polynomial(-3, 8, 7), 8 * ALPHA * (1 + ALPHA)), Q(3, 5), 1),
    ],
    4: [
        ((polynomial(0, 8), 5 * (1 + ALPHA)), 0, Q(2, 3)),
        ((2 * polynomial(-2, 1, 11), 25 * ALPHA**2), Q(2, 3), 1),
    ],
}


"""n -> (loss, from alpha, to alpha): the closed forms of the weakly honest mechanism.

As docs/notation.md prints them.
"""


def objectives(pieces):
    """The least loss, piece by piece: pieces that differ in the table only are one."""
    merged: list[Any] = []
    for piece in pieces:
        if merged and merged[-1][0] == piece.objective:
            merged[-1] = (piece.objective, merged[-1][1], piece.interval.high)
        else:
            merged.append((piece.objective, piece.interval.low, piece.interval.high))
    return merged


@pytest.mark.parametrize("n", [2, 3, 4])
def test_closed_forms_of_the_weakly_honest_mechanism(n):
    assert objectives(parametric(n, L0(), ["WH"])) == [
        (RationalFunction(*pair), low, high) for pair, low, high in WEAKLY_HONEST[n]
    ]


def by_symmetry(denominator, *rows):
    """The table whose first rows, the middle one included, are given."""
    flat = [weight for row in rows for weight in row]
    size = len(rows[0])
    flat = flat[: (size**2 + 1) // 2]
    whole = flat + flat[: size**2 // 2][::-1]
    return SymbolicMechanism([whole[k : k + size] for k in range(0, size**2, size)], denominator)


HALF_OF_4 = (
    [c * ALPHA**2 for c in (ALPHA, ONE, ALPHA, ALPHA**2, ALPHA**3)],
    [c * ALPHA**2 for c in (ALPHA**2, ALPHA, ONE)],
)


TOP_OF_4 = [(2 - ALPHA) * c for c in (ONE, ALPHA, ALPHA**2)] + [ALPHA * polynomial(-2, 5, -1, -1)]


PUBLISHED = [
    (by_symmetry(3 * ALPHA, [ONE, ALPHA, ALPHA**2], [polynomial(-1, 3, -1), ALPHA]), "1/2 ≤ α < 1"),
    (
        by_symmetry(
            4 * ALPHA * (1 + ALPHA),
            [*((3 - ALPHA) * ALPHA**k for k in range(3)), polynomial(-3, 5, 3, -2, -1)],
            [c * ALPHA * (1 + ALPHA) for c in (ALPHA, ONE, ALPHA, ALPHA**2)],
        ),
        "3/5 ≤ α < 1",
    ),
    (
        by_symmetry(5 * ALPHA**2, [*TOP_OF_4, polynomial(-2, 1, 5, -1, -1, -1)], *HALF_OF_4),
        "2/3 ≤ α ≤ 0.881239... (where α^3 + 2α^2 + 2α - 4 = 0)",
    ),
    (
        by_symmetry(
            5 * ALPHA**2,
            [*TOP_OF_4, polynomial(-2, 5, -1, -1)],
            [*HALF_OF_4[0][:4], ALPHA * (2 - ALPHA) * polynomial(-2, 2, 1)],
            HALF_OF_4[1],
        ),
        "0.881239... (where α^3 + 2α^2 + 2α - 4 = 0) ≤ α < 1",
    ),
]


"""The tables of docs/notation.md beyond GM, and where they are optimal."""


@pytest.mark.parametrize(("table", "alphas"), PUBLISHED)
def test_published_tables_of_the_weakly_honest_mechanism(table, alphas):
    """Private and weakly honest exactly where docs/notation.md says, at the least possible loss."""
    n = table.inputs - 1
    assert str(table.audit().private & table.where("WH")) == alphas
    assert table.where("S") == ALL
    assert table.loss(L0()) == RationalFunction(*WEAKLY_HONEST[n][1][0])


def bound_for_weak_honesty(n, alpha):
    """docs/notation.md: the middle column, or the mean of the middle two, bounds P[0, 0] + P[n, n];
    other diagonal entries are least.
    """
    m, odd = divmod(n, 2)
    inner = sum(alpha**k for k in range(1, m))
    if odd:
        ends = (2 - Q(2, n + 1) * (1 + alpha) * sum(alpha**k for k in range(m))) / (
            alpha**m * (1 + alpha)
        )
    else:
        ends = (1 - Q(1, n + 1) * (1 + 2 * inner)) / alpha**m
    return 1 - (Q(n - 1, n + 1) + ends) / (n + 1)


def bound_for_column_monotonicity(n, alpha):
    m, odd = divmod(n, 2)
    powers = [alpha**-k for k in range(m + 1)]
    trace = 4 * sum(powers) / (1 + alpha) if odd else 2 * sum(powers) - 1
    return 1 - trace / (n + 1) ** 2


@pytest.mark.parametrize("n", range(2, 11))
def test_the_closed_form_for_every_number_of_respondents(n):
    """WH alone: GM's loss up to n/(n+2), from there on the bound of docs/notation.md, which is thus
    attained. Asking for RM and S as well never costs anything, at no alpha.
    """
    low, high = objectives(parametric(n, L0(), ["WH"]))
    threshold = Q(n, n + 2)
    assert low == (geometric(n).loss(L0()), 0, threshold)
    assert high[1:] == (threshold, 1)
    # Rational functions of these degrees that agree at so many points are one.
    alphas = [Q(k, 3 * n + 7) for k in range(1, 3 * n + 7)]
    assert all(high[0](alpha) == bound_for_weak_honesty(n, alpha) for alpha in alphas)
    if n <= 6:
        assert objectives(parametric(n, L0(), ["WH", "RM", "S"])) == [low, high]


@pytest.mark.slow
@pytest.mark.parametrize("n", range(2, 9))
def test_the_closed_form_with_column_monotonicity(n):
    """WH + RM + CM: GM's loss up to 1/2, the bound of docs/notation.md from m/(m+1) on, m = n // 2.

    Between them the formulas are others.
    """
    pieces = objectives(parametric(n, L0(), ["WH", "RM", "CM", "S"]))
    m = n // 2
    assert pieces[0] == (geometric(n).loss(L0()), 0, Q(1, 2))
    assert pieces[-1][1:] == (Q(m, m + 1), 1)
    assert all(
        pieces[-1][0](Q(k, 3 * n + 7)) == bound_for_column_monotonicity(n, Q(k, 3 * n + 7))
        for k in range(1, 3 * n + 7)
    )
    assert len(pieces) == {2: 2, 3: 2, 4: 3, 5: 3}.get(n, len(pieces))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_weakly_honest_is_less_than_fair_at_every_alpha(n):
    """Section 6.7.1 says that they become equal for large alpha; the difference is positive on all
    of (0, 1), and 0 only at 1.
    """
    fair = explicit_fair(n).loss(L0())
    for piece in proved(parametric(n, L0(), ["WH", "RM", "CM"])):
        worse = (
            piece.objective.numerator * fair.denominator
            - fair.numerator * piece.objective.denominator
        )
        assert (
            not nonnegative([worse], piece.objective.denominator * fair.denominator)
            & piece.interval.region
        )
