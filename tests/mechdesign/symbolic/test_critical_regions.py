"""Optimal mechanisms for every alpha against designs at single alphas, degenerate ones too."""

from dataclasses import replace
from fractions import Fraction as Q
from itertools import pairwise
from random import Random

import matplotlib.mathtext
import pytest
from flint import fmpq, fmpq_mat

from mechdesign import Design, Mechanism, Metric, NotSquare, Privacy, SolverFailure, design, named
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial, prior
from mechdesign.lp.basis import to_fmpq
from mechdesign.symbolic import ALPHA, explicit_fair
from mechdesign.symbolic.critical_regions import CriticalRegion, Unproved, explain, parametric
from mechdesign.symbolic.program import AlphaProgram
from mechdesign.symbolic.semialgebraic import AlphaInterval, between
from tests.mechdesign.symbolic.alphas import PARTLY, RAMP, moved, near, proved, rationals

LINE = Metric([[2 * abs(j - k) for k in range(4)] for j in range(4)])
UNEVEN = Metric([[0 if j == k else 1 + (j + k) % 3 for k in range(4)] for j in range(4)])

DEGENERATE = [
    (3, L0(), ["OR:1/2"], "adjacent"),
    (5, L0(), ["OR:9/10"], "adjacent"),
    (4, L2(worst_case=True), ["OR"], "all"),
]
"""Statements whose designs have multipliers that are not basic in the program as stated."""

SWEPT = [
    *DEGENERATE,
    (1, L1(worst_case=True), ["OR:1/3"], "all"),
    (2, L0(), ["OR:1/2"], 2),
    (2, Power("3/2", worst_case=True), ["RM", "OR"], "adjacent"),
    (3, L1(), ["F", "OR:1/2"], "all"),
    (3, L2(), ["WH", "OR:9/10"], 2),
    (3, L1(prior=binomial(3, "1/3")), ["S", "OR"], "adjacent"),
    (3, L0(d=1), ["OR:9/10"], LINE),
    (3, L2(worst_case=True), ["WH", "OR"], UNEVEN),
    (3, Costs([[0, 3, 1, 2], [2, 0, 1, 5], [3, 1, 0, 1], [4, 2, 7, 0]]), ["OR:1/2"], "all"),
    (4, L0(worst_case=True), ["WH"], "all"),
    (4, L1(), ["OR:1/3"], 3),
    (4, L2(), [], "all"),
    (4, Power("3/2", worst_case=True), ["OR:9/10"], "all"),
    (5, L1(), [], "all"),
    (5, L0(worst_case=True), ["CM"], 2),
]
statements = pytest.mark.parametrize(("n", "loss", "properties", "neighbours"), SWEPT)


@statements
def test_every_design_is_explained(n, loss, properties, neighbours):
    """Near 0, at breakpoints, near 1: the formula is the design's table, at its loss."""
    for alpha in (Q(1, 10**6), Q(1, 3), Q(1, 2), Q(9, 10), 1 - Q(1, 10**6)):
        found = design(n, Privacy(alpha=alpha, neighbours=neighbours), loss, properties)
        piece = explain(found)
        assert alpha in piece.interval
        assert piece.objective(alpha) == found.certificate.objective
        assert piece.mechanism.at(alpha).loss(loss) == found.certificate.objective


@pytest.mark.slow
@statements
def test_pieces_agree_with_designs_inside_and_at_breakpoints(n, loss, properties, neighbours):
    random = Random(n)
    pieces = proved(parametric(n, loss, properties, neighbours=neighbours))
    assert (pieces[0].interval.low, pieces[-1].interval.high) == (0, 1)
    assert all(before.interval.high == after.interval.low for before, after in pairwise(pieces))
    for piece in random.sample(pieces, min(3, len(pieces))):
        assert piece.verify()
        low, high = piece.interval.low, piece.interval.high
        inside = between(low, high)
        tried = [inside, between(low, inside), between(inside, high)]
        tried += [end for end in (low, high) if isinstance(end, Q) and 0 < end < 1]
        for alpha in tried:
            found = design(n, Privacy(alpha=alpha, neighbours=neighbours), loss, properties)
            assert found.certificate.gap == 0
            assert piece.objective(alpha) == found.certificate.objective


def rank(rows, width):
    return fmpq_mat(len(rows), width, [a for row in rows for a in row]).rank()


@pytest.mark.parametrize(("n", "loss", "properties", "neighbours"), DEGENERATE)
def test_table_and_multipliers_of_a_vertex_are_basic(n, loss, properties, neighbours):
    """By ranks: what is tight determines the table, and the rows with multipliers that are not 0
    are independent in the columns without reduced cost.
    """
    for alpha in (Q(1, 3), Q(1, 2), Q(7, 10), Q(11, 12)):
        found = design(n, Privacy(alpha=alpha, neighbours=neighbours), loss, properties)
        program = AlphaProgram(n + 1, neighbours, loss, found.certificate.properties)
        vertex, point, width = program.vertex(found), to_fmpq(alpha), len(program.cost)
        x = [fmpq(1) * p(point) / vertex.denominator(point) for p in vertex.numerators]
        y = [fmpq(1) * p(point) / vertex.proof.denominator(point) for p in vertex.proof.numerators]
        rows = [
            [line.terms[v](point) if v in line.terms else fmpq(0) for v in range(width)]
            for line in program.constraints
        ]
        slack = [
            sum((a * b for a, b in zip(row, x, strict=True)), -line.bound(point))
            for row, line in zip(rows, program.constraints, strict=True)
        ]
        active = [[fmpq(v == w) for w in range(width)] for v in range(width) if x[v] == 0]
        active += [row for row, value in zip(rows, slack, strict=True) if value == 0]
        assert rank(active, width) == width
        pulled = [
            sum((b * row[v] for b, row in zip(y, rows, strict=True)), fmpq(0)) for v in range(width)
        ]
        free = [v for v in range(width) if pulled[v] == program.cost[v]]
        proof = [[row[v] for v in free] for row, value in zip(rows, y, strict=True) if value != 0]
        assert rank(proof, len(free)) == len(proof)


def test_a_table_between_optimal_ones_is_explained_by_one_of_them():
    """Where every table costs the same, the mean of two, which is no vertex, is optimal as well."""
    loss, privacy = Costs([[1] * 4] * 4), Privacy(alpha="2/5")
    found = design(3, privacy, loss, ["WH"])
    tables = named.geometric(3, alpha="2/5").table, named.explicit_fair(3, alpha="2/5").table
    mean = Mechanism(
        [[(a + b) / 2 for a, b in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)],
        privacy,
    )
    piece = explain(Design(mean, found.certificate))
    assert piece.verify()
    assert piece.mechanism.at("2/5") != mean
    assert piece.objective("2/5") == 1


def test_a_table_without_the_symmetry_of_its_statement_is_explained_by_one_that_has_it():
    """Where every table costs the same, always answering 1 is as good as always answering 2."""
    loss, privacy = Costs([[1] * 4] * 4), Privacy(alpha="9/10")
    one = Mechanism([[0] * 4, [1] * 4, [0] * 4, [0] * 4], privacy)
    piece = explain(Design(one, design(3, privacy, loss).certificate))
    assert piece.verify()
    assert piece.objective("9/10") == 1
    assert piece.mechanism.where("S").everywhere


def test_a_design_at_a_breakpoint_where_an_equality_follows_from_the_rest():
    """At 1/7 a basis leaves out the sum of a column, which its formulas keep at no other alpha."""
    found = design(5, Privacy(alpha="1/7", neighbours=3), L1(worst_case=True), ["F"])
    piece = explain(found)
    assert Q(1, 7) in piece.interval
    assert piece.mechanism.at("1/7") == found.mechanism
    assert piece.objective("1/7") == found.certificate.objective
    assert piece.verify()


def test_a_claim_that_does_not_verify_is_not_explained():
    found = design(2, Privacy(alpha="9/10"), properties=["WH"])
    lie = replace(found.certificate, bound=found.certificate.objective - 1)
    with pytest.raises(SolverFailure, match="not proved optimal"):
        explain(Design(found.mechanism, lie))
    other = Mechanism(named.explicit_fair(2, alpha="9/10").table, found.mechanism.privacy)
    with pytest.raises(SolverFailure, match="not proved optimal: the loss is"):
        explain(Design(other, found.certificate))


# --- solvers that fail ----------------------------------------------------------------------------


def failing(monkeypatch, where):
    """Let `design` fail at some alphas, as `parametric` sees it; the alphas it was asked for."""
    asked = []

    def fails(n, privacy, loss, properties):
        asked.append(privacy.alpha)
        if where(privacy.alpha):
            raise SolverFailure("planted")
        return design(n, privacy, loss, properties)

    monkeypatch.setattr("mechdesign.symbolic.critical_regions.design", fails)
    return asked


def test_where_one_alpha_fails_another_is_taken(monkeypatch):
    expected = [
        (piece.interval, piece.objective) for piece in proved(parametric(3, L0(), ["OR:1/2"]))
    ]
    asked = failing(monkeypatch, lambda alpha: alpha in (Q(1, 2), Q(1, 4), Q(2, 3), Q(11, 16)))
    found = proved(parametric(3, L0(), ["OR:1/2"]))
    assert Q(1, 2) in asked
    assert [(piece.interval, piece.objective) for piece in found] == expected
    assert all(piece.verify() for piece in found)


def test_what_cannot_be_proved_is_reported_between_the_pieces_that_can(monkeypatch):
    """All alphas of one piece fail: its neighbours stand, up to their own ends, and it is a gap."""
    expected = proved(parametric(3, L0(), ["OR:1/2"]))
    lost = expected[1].interval
    asked = failing(monkeypatch, lambda alpha: alpha in lost)
    found = parametric(3, L0(), ["OR:1/2"])
    assert [type(piece) for piece in found] == [
        CriticalRegion,
        Unproved,
        CriticalRegion,
        CriticalRegion,
        CriticalRegion,
    ]
    gap = found[1]
    assert isinstance(gap, Unproved)
    assert gap.interval == AlphaInterval(lost.low, lost.high, (False, False))
    assert "planted (at alpha = " in gap.reason
    assert str(gap).startswith("nothing is proved where 5/12 < α < 0.451026")
    assert not gap.verify()
    assert len(asked) == len(set(asked)) < 60
    for before, after in zip(expected, found, strict=True):
        if isinstance(after, CriticalRegion):
            assert (before.interval, before.objective) == (after.interval, after.objective)
            assert after.verify()


@pytest.mark.parametrize(("low", "high"), [(Q(0), Q(5, 12)), (Q(17, 25), Q(1))])
def test_gaps_at_the_ends_are_reported(monkeypatch, low, high):
    failing(monkeypatch, lambda alpha: low <= alpha <= high)
    found = parametric(3, L0(), ["OR:1/2"])
    assert (found[0].interval.low, found[-1].interval.high) == (0, 1)
    assert all(before.interval.high == after.interval.low for before, after in pairwise(found))
    gap = found[0] if low == 0 else found[-1]
    assert [piece for piece in found if isinstance(piece, Unproved)] == [gap]


def test_where_nothing_is_proved_the_reason_is_raised(monkeypatch):
    asked = failing(monkeypatch, lambda alpha: True)
    with pytest.raises(SolverFailure, match=r"planted \(at alpha = 1/2\)"):
        parametric(2, L0(), ["WH"])
    assert len(asked) < 20


def test_explaining_at_a_breakpoint_does_not_need_other_designs(monkeypatch):
    """What lies beside one may not be found: then the interval is what the design alone proves."""
    found = design(2, Privacy(alpha="1/2"), properties=["WH"])
    failing(monkeypatch, lambda alpha: True)
    piece = explain(found)
    assert Q(1, 2) in piece.interval
    assert piece.verify()
    assert piece.objective("1/2") == found.certificate.objective


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
            best = design(n, Privacy(alpha=alpha, neighbours=neighbours), loss, properties)
            mechanism = piece.mechanism.at(alpha)
            assert best.certificate.gap == 0
            assert piece.objective(alpha) == best.certificate.objective == mechanism.loss(loss)
            assert mechanism.audit().holds
            assert all(item.holds(mechanism) for item in best.certificate.properties)
    for alpha in rationals(n, 4):
        values = {piece.objective(alpha) for piece in pieces if alpha in piece.interval}
        assert values == {
            design(
                n, Privacy(alpha=alpha, neighbours=neighbours), loss, properties
            ).certificate.objective
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
        assert values == {design(n, Privacy(alpha=alpha), loss, properties).certificate.objective}


@pytest.mark.parametrize("properties", [["WH"], ["WH", "CM"], ["OR:1/2"], []])
@pytest.mark.parametrize("loss", [L0(), L1(), L1(worst_case=True)])
@pytest.mark.parametrize("alpha", [Q(1, 3), Q(1, 2), Q(2, 3), Q(9, 10)])
def test_explain_is_the_design_and_its_interval_is_maximal(alpha, loss, properties):
    """Half and two thirds are breakpoints. Just beyond an end the table is no longer feasible, or
    no longer the best.
    """
    found = design(4, Privacy(alpha=alpha), loss, properties)
    piece = explain(found)
    assert alpha in piece.interval
    assert piece.interval.low < piece.interval.high
    assert piece.mechanism.at(alpha) == found.mechanism
    assert piece.objective(alpha) == found.certificate.objective
    assert piece.verify()
    for end, outside in ((piece.interval.low, min), (piece.interval.high, max)):
        if 0 < end < 1:
            beyond = outside(near(end))
            best = design(4, Privacy(alpha=beyond), loss, properties)
            mechanism = (
                piece.mechanism.at(beyond) if beyond in piece.mechanism.audit().private else None
            )
            assert (
                mechanism is None
                or not all(item.holds(mechanism) for item in best.certificate.properties)
                or mechanism.loss(loss) > best.certificate.objective
            )


def test_explain_shows_table_interval_objective_and_properties():
    piece = explain(design(2, Privacy(alpha="2/5"), properties=["WH"]))
    assert (
        str(piece) == "The least L0() with WH, n = 2, where 0 < α ≤ 1/2, is 4α/(3(1 + α)):\n"
        "P[0, 0] = P[2, 2] = 1/(1 + α)\n"
        "P[0, 1] = P[2, 1] = α/(1 + α)\n"
        "P[0, 2] = P[2, 0] = α^2/(1 + α)\n"
        "P[1, 0] = P[1, 2] = α(1 - α)/(1 + α)\n"
        "P[1, 1] = (1 - α)/(1 + α)\n"
        "properties: RH, RM, CH, CM, WH, S"
    )
    wide = explain(design(4, Privacy(alpha="2/5"), properties=["WH"]))
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
        explain(design(2, Privacy(alpha=1)))
    found = design(2, Privacy(alpha="9/10"), properties=["WH"])
    # Half of the optimum, half of another mechanism: feasible, but neither optimal nor a vertex.
    other = named.explicit_fair(2, alpha="9/10").table
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
    tall = Mechanism([["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]], Privacy(alpha="9/10"))
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
