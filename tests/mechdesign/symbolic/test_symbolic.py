"""Optimal mechanisms for every alpha against designs at single alphas; published closed forms."""

from dataclasses import replace
from fractions import Fraction as Q
from itertools import pairwise
from random import Random
from typing import Any

import matplotlib.mathtext
import pytest
from flint import fmpz_poly

from mechdesign import Design, Mechanism, Metric, NotSquare, Privacy, SolverFailure, design, named
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial, prior
from mechdesign.symbolic import (
    ALPHA,
    RationalFunction,
    SymbolicMechanism,
    explain,
    explicit_fair,
    geometric,
    parametric,
)
from mechdesign.symbolic.semialgebraic import AlphaInterval, between, nonnegative
from tests.mechdesign.symbolic.alphas import ALL, ONE, PARTLY, RAMP, moved, near, proved, rationals

# --- optimal mechanisms ---------------------------------------------------------------------------


STATEMENTS = [
    (0, L1(), ["WH"], "adjacent"),
    (1, L0(), [], "adjacent"),
    (1, L2(), ["WH", "CM"], "all"),
    (2, L0(), ["WH"], "adjacent"),
    (2, L1(), ["WH", "RM", "CM"], "adjacent"),
    (3, L2(), ["CM", "RM", "S"], "adjacent"),
    (4, L0(), ["WH"], "adjacent"),
    (4, L1(), [], "adjacent"),
    (4, L2(), ["WH"], "adjacent"),
    (4, L0(), ["F"], "adjacent"),
    (4, L0(), [], "all"),
    (4, L0(d=1), ["WH", "CM"], 2),
    (4, L0(), ["OR"], "adjacent"),
    (4, L0(), ["OR:1/2"], "adjacent"),
    (4, L1(prior=binomial(4, "1/3")), ["S", "F"], "adjacent"),
    (4, L1(prior=prior([1, 0, 0, 0, 0])), [], "adjacent"),
    (4, L2(worst_case=True), ["WH"], "adjacent"),
    (4, Power("3/2", worst_case=True), ["CH"], "adjacent"),
    (3, Power("1/2"), ["OR:1/3"], ((0, 1), (2, 3))),
    (4, L0(), [], ((0, 1), (3, 4))),
    (2, L0(), ["WH"], RAMP),
    (2, L1(), ["OR"], PARTLY),
    (3, L0(), ["S"], Metric([[min(abs(j - k), 2) for k in range(4)] for j in range(4)])),
    (3, Costs([[0, 1, 2, 3], [2, 0, 1, 5], [3, 1, 0, 1], [4, 2, 7, 0]]), ["RH"], "adjacent"),
    (6, L0(), ["WH", "RM", "CM", "S"], "adjacent"),
    (8, L0(), ["WH"], "adjacent"),
    (8, L1(), ["WH", "RM", "CM", "S"], "adjacent"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "loss", "properties", "neighbours"), STATEMENTS)
def test_pieces_are_certified_optima_at_every_alpha_tried(n, loss, properties, neighbours):
    """Random alphas, and alphas within 1e-9 of every breakpoint on both sides: a certified design
    costs exactly as much.
    """
    pieces = proved(parametric(n, loss, properties, neighbours=neighbours))
    assert pieces[0].interval.low == 0
    assert pieces[-1].interval.high == 1
    assert all(before.interval.high == after.interval.low for before, after in pairwise(pieces))
    assert all(piece.verify() for piece in pieces)
    for piece in pieces:
        assert piece.interval == AlphaInterval.of(piece.interval.low, piece.interval.high)
        inside = [between(piece.interval.low, piece.interval.high)]
        inside += [
            a
            for end in (piece.interval.low, piece.interval.high)
            for a in near(end)
            if a in piece.interval
        ][:4]
        for alpha in inside[: 3 if n == 8 else 5]:
            best = design(n, Privacy(alpha, neighbours), loss, properties)
            mechanism = piece.mechanism.at(alpha)
            assert best.certificate.gap == 0
            assert piece.objective(alpha) == best.certificate.objective == mechanism.loss(loss)
            assert mechanism.audit().holds
            assert all(item.holds(mechanism) for item in best.certificate.properties)
    for alpha in rationals(n, 4):
        values = {piece.objective(alpha) for piece in pieces if alpha in piece.interval}
        assert values == {
            design(n, Privacy(alpha, neighbours), loss, properties).certificate.objective
        }


@pytest.mark.parametrize("seed", range(12))
def test_random_costs_in_the_worst_case(seed):
    """No symmetry, fractional costs, zeros in the table, ties: most bases are degenerate."""
    random = Random(seed)
    n = random.randint(2, 3)
    table = [
        [0 if i == j else Q(random.randint(0, 6), random.randint(1, 3)) for j in range(n + 1)]
        for i in range(n + 1)
    ]
    loss, properties = (
        Costs(table, worst_case=True),
        random.choice([[], ["CH"], ["RH"], ["F"], ["S"]]),
    )
    pieces = proved(parametric(n, loss, properties))
    assert all(piece.verify() for piece in pieces)
    for alpha in rationals(seed, 3):
        values = {piece.objective(alpha) for piece in pieces if alpha in piece.interval}
        assert values == {design(n, Privacy(alpha), loss, properties).certificate.objective}


@pytest.mark.parametrize("properties", [["WH"], ["WH", "CM"], ["OR:1/2"], []])
@pytest.mark.parametrize("loss", [L0(), L1(), L1(worst_case=True)])
@pytest.mark.parametrize("alpha", [Q(1, 3), Q(1, 2), Q(2, 3), Q(9, 10)])
def test_explain_is_the_design_and_its_interval_is_maximal(alpha, loss, properties):
    """Half and two thirds are breakpoints. Just beyond an end the table is no longer feasible, or
    no longer the best.
    """
    found = design(4, Privacy(alpha), loss, properties)
    piece = explain(found)
    assert alpha in piece.interval
    assert piece.interval.low < piece.interval.high
    assert piece.mechanism.at(alpha) == found.mechanism
    assert piece.objective(alpha) == found.certificate.objective
    assert piece.verify()
    for end, outside in ((piece.interval.low, min), (piece.interval.high, max)):
        if 0 < end < 1:
            beyond = outside(near(end))
            best = design(4, Privacy(beyond), loss, properties)
            mechanism = (
                piece.mechanism.at(beyond) if beyond in piece.mechanism.audit().private else None
            )
            assert (
                mechanism is None
                or not all(item.holds(mechanism) for item in best.certificate.properties)
                or mechanism.loss(loss) > best.certificate.objective
            )


def test_explain_shows_table_interval_objective_and_properties():
    piece = explain(design(2, Privacy("2/5"), properties=["WH"]))
    assert (
        str(piece) == "The least L0() with WH, n = 2, where 0 < α ≤ 1/2, is 4α/(3(1 + α)):\n"
        "P[0, 0] = P[2, 2] = 1/(1 + α)\n"
        "P[0, 1] = P[2, 1] = α/(1 + α)\n"
        "P[0, 2] = P[2, 0] = α^2/(1 + α)\n"
        "P[1, 0] = P[1, 2] = α(1 - α)/(1 + α)\n"
        "P[1, 1] = (1 - α)/(1 + α)\n"
        "properties: RH, RM, CH, CM, WH, S"
    )
    wide = explain(design(4, Privacy("2/5"), properties=["WH"]))
    assert "properties: RH, RM, CH (0 < α ≤ 1/2), CM (0 < α ≤ 1/2), WH, S" in str(wide)
    for text in (piece.latex(), wide.latex(), wide.mechanism.latex()):
        assert text.count("{") == text.count("}")
        assert text.count(r"\begin{") == text.count(r"\end{") > 0
        assert text.count(r"\left(") == text.count(r"\right)") == 1
        assert "$" not in text
    assert r"\frac{\alpha(1 - \alpha)}{1 + \alpha} & \frac{1 - \alpha}{1 + \alpha}" in piece.latex()
    assert r"\text{CM} (0 < \alpha \le \frac{1}{2})" in wide.latex()
    assert piece._repr_latex_() == rf"$\displaystyle {piece.latex()}$"
    assert piece.mechanism._repr_latex_() == rf"$\displaystyle {piece.mechanism.latex()}$"
    parser = matplotlib.mathtext.MathTextParser("path")
    for entry in {entry for row in wide.mechanism.table for entry in row}:
        parser.parse(entry._repr_latex_())


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(ValueError, match="alpha = 1"):
        explain(design(2, Privacy(1)))
    found = design(2, Privacy("9/10"), properties=["WH"])
    # Half of the optimum, half of another mechanism: feasible, but neither optimal nor a vertex.
    other = named.explicit_fair(2, "9/10").table
    mixed = Mechanism(
        [
            [(a + b) / 2 for a, b in zip(*rows, strict=True)]
            for rows in zip(found.mechanism.table, other, strict=True)
        ],
        found.mechanism.privacy,
    )
    certificate = replace(found.certificate, objective=mixed.loss(L0()))
    with pytest.raises(SolverFailure):
        explain(Design(mixed, certificate))
    tall = Mechanism([["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]], Privacy("9/10"))
    with pytest.raises(NotSquare):
        explain(Design(tall, found.certificate))


def test_pieces_that_lie_do_not_verify():
    """Each part of a piece replaced by something plausible and wrong."""
    low, high = proved(parametric(3, L0(), ["WH"]))[:2]
    proof, linear = low.proofs[0], proved(parametric(3, L1()))[0]
    lies = {
        "only for": replace(low, interval=AlphaInterval.of(Q(1, 10), Q(7, 10))),
        "the loss is": replace(low, mechanism=explicit_fair(3)),
        "the multipliers do not prove": replace(low, proofs=high.proofs),
        "prove a bound only for": replace(
            linear, proofs=(replace(linear.proofs[0], interval=AlphaInterval.of(Q(0), Q(9, 10))),)
        ),
        "nothing is proved beyond": replace(
            low, proofs=(replace(proof, interval=AlphaInterval.of(Q(0), Q(1, 2))),)
        ),
        "not symmetric": replace(low, mechanism=moved(low.mechanism, 0, 1, 0, ALPHA)),
    }
    for reason, piece in lies.items():
        verdict = piece.verify()
        assert not verdict
        assert reason in verdict.reason
    gap = tuple(replace(proof, interval=AlphaInterval.of(Q(k, 5), Q(k + 1, 5))) for k in (0, 2))
    assert "nothing is proved beyond 1/5" in replace(low, proofs=gap).verify().reason
    # Nothing protects input 2, so that only the signs of its own entries are left to break.
    (unprotected, *_) = proved(parametric(4, L0(), neighbours=[(0, 1), (3, 4)]))
    negative = moved(moved(unprotected.mechanism, 0, 2, 2, ALPHA), 4, 2, 2, ALPHA)
    assert replace(unprotected, mechanism=negative).verify().reason.endswith("only for no α")
    doubled = replace(
        proof, numerators=tuple(2 * y for y in proof.numerators), denominator=2 * proof.denominator
    )
    assert replace(low, proofs=(doubled,)).verify()


# --- closed forms ---------------------------------------------------------------------------------


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
