"""Exact vertices and exact simplex steps against dense tableau algebra, and from every start to the
optimum of certify.
"""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from mechdesign import Constraints, Infeasible, Privacy
from mechdesign.losses import L0, L1, L2, Power, binomial
from mechdesign.lp.basis import Program, SingularBasis, to_fmpq
from mechdesign.lp.exact_solution import certify
from mechdesign.lp.simplex import Basis, LinearConstraint, Problem, Vertex, reoptimised
from tests.mechdesign.programs import NINE, SUBSETS, build

PLENTY = 10_000


def slack_basis(problem):
    """Every row basic and no column: x = 0, y = 0."""
    return Basis(
        np.zeros(len(problem.cost), dtype=bool), np.ones(len(problem.constraints), dtype=bool)
    )


def random_basis(problem, rng, basic_columns):
    """That many columns, chosen at random, and tight rows that happen to be independent on them
    (equalities first).
    """
    columns = np.zeros(len(problem.cost), dtype=bool)
    columns[rng.sample(range(len(problem.cost)), basic_columns)] = True
    inside = np.flatnonzero(columns).tolist()
    order = rng.sample(range(len(problem.constraints)), len(problem.constraints))
    order.sort(key=lambda r: not problem.constraints[r].equality)
    tight = list[int]()
    for r in order:
        wanted = fmpq_mat(
            len(tight) + 1,
            len(inside),
            [problem.constraints[k].terms.get(v, 0) for k in [*tight, r] for v in inside],
        )
        if wanted.rank() == len(tight) + 1:
            tight.append(r)
        if len(tight) == len(inside):
            break
    if len(tight) < len(inside):
        return None
    rows = np.ones(len(problem.constraints), dtype=bool)
    rows[tight] = False
    return Basis(columns, rows)


def some_vertices(problem, rng, count):
    """The all-slack basis and random ones of every size."""
    found = [slack_basis(problem)]
    while len(found) < count:
        basis = random_basis(problem, rng, rng.randrange(1, len(problem.cost) + 1))
        if basis is not None:
            found.append(basis)
    return [Vertex(problem, basis) for basis in found]


class Tableau:
    """The dense truth about a basis: ``A x - s = b`` solved for the basic variables, among columns
    and slacks alike.
    """

    def __init__(self, problem, basis):
        rows, size = len(problem.constraints), len(problem.cost)
        self.entries = [
            [line.terms.get(v, fmpq(0)) for v in range(size)]
            + [fmpq(-int(r == k)) for k in range(rows)]
            for r, line in enumerate(problem.constraints)
        ]
        joined = [*basis.columns.tolist(), *basis.rows.tolist()]
        self.basic = [v for v, inside in enumerate(joined) if inside]
        self.nonbasic = [v for v, inside in enumerate(joined) if not inside]
        matrix = self.part(self.basic)
        self.values = dict.fromkeys(range(size + rows), fmpq(0))
        bounds = fmpq_mat(rows, 1, [line.bound for line in problem.constraints])
        self.values |= dict(zip(self.basic, matrix.solve(bounds).entries(), strict=True))
        cost = [*problem.cost, *[fmpq(0)] * rows]
        self.y = (
            matrix.transpose().solve(fmpq_mat(rows, 1, [cost[v] for v in self.basic])).entries()
        )
        self.reduced = [
            cost[v]
            - sum((y * line[v] for y, line in zip(self.y, self.entries, strict=True)), fmpq(0))
            for v in range(size + rows)
        ]
        # Basic variables as functions of the nonbasic ones: x_B = ... - B^-1 N x_N.
        self.change = (-1) * matrix.solve(self.part(self.nonbasic)) if self.nonbasic else None

    def part(self, chosen):
        return fmpq_mat(
            len(self.entries), len(chosen), [line[v] for line in self.entries for v in chosen]
        )

    def at(self, basic, nonbasic):
        assert self.change is not None
        return self.change[self.basic.index(basic), self.nonbasic.index(nonbasic)]


PROBLEMS = {
    "plain": lambda: build(2, reduced=False),
    "reduced": lambda: build(3, NINE, L1(), ["CM", "F"]),
    "worst": lambda: build(2, NINE, L1(worst_case=True), ["WH"]),
    "all": lambda: build(
        2,
        Privacy(alpha="1/3", neighbours="all"),
        L2(prior=binomial(2, "1/3")),
        ["S", "RM"],
        reduced=False,
    ),
    "perfect": lambda: build(2, Privacy(alpha=1), L0(), ["F"], reduced=False),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_vertex_is_the_dense_solution(name):
    """Values, multipliers, reduced costs, rows and columns of the tableau: every one of them."""
    problem = Problem.of(PROBLEMS[name]())
    size = len(problem.cost)
    for vertex in some_vertices(problem, random.Random(name), 6):
        truth = Tableau(problem, vertex.basis)
        assert [*vertex.x, *vertex.slack] == [
            truth.values[v] for v in range(size + len(problem.constraints))
        ]
        assert vertex.y == truth.y
        assert [*vertex.reduced, *vertex.y] == truth.reduced
        fixed = {size + r for r, line in enumerate(problem.constraints) if line.equality}
        assert list(vertex.basic()) == [(v, truth.values[v], v in fixed) for v in truth.basic]
        assert list(vertex.nonbasic()) == [
            (v, truth.reduced[v]) for v in truth.nonbasic if v not in fixed
        ]
        for b in truth.basic:
            found = vertex.row(b)
            assert {v: found.get(v, 0) for v in truth.nonbasic} == {
                v: truth.at(b, v) for v in truth.nonbasic
            }
            assert set(found) <= set(truth.nonbasic)
        for v in truth.nonbasic:
            assert vertex.column(v) == {
                b: truth.at(b, v) for b in truth.basic if truth.at(b, v) != 0
            }


@pytest.mark.parametrize("name", PROBLEMS)
def test_violations_are_what_they_say(name):
    """The farthest that anything is outside its bounds; 0 for both exactly when the vertex is
    optimal.
    """
    problem = Problem.of(PROBLEMS[name]())
    vertices = some_vertices(problem, random.Random(name), 8)
    vertices += [reoptimised(vertex, PLENTY) for vertex in vertices]
    assert {vertex.optimal for vertex in vertices} == {False, True}
    for vertex in vertices:
        outside = [fmpq(0), *(-value for value in vertex.x)]
        cheap = [fmpq(0), *(-value for value in vertex.reduced)]
        for r, line in enumerate(problem.constraints):
            left = sum((a * vertex.x[v] for v, a in line.terms.items()), fmpq(0)) - line.bound
            outside += [left, -left] if line.equality else [-left]
            cheap += [] if line.equality else [-vertex.y[r]]
        assert vertex.primal_violation == max(outside)
        assert vertex.dual_violation == max(cheap)
        assert vertex.optimal == (max(outside) == max(cheap) == 0)


def test_an_exchange_moves_one_in_and_one_out():
    basis = Basis(np.array([True, False]), np.array([False, True, True]))
    other = basis.exchanged(3, 1)
    assert (other.columns.tolist(), other.rows.tolist()) == ([True, True], [False, False, True])
    other = basis.exchanged(0, 2)
    assert (other.columns.tolist(), other.rows.tolist()) == ([False, False], [True, True, True])
    assert (basis.columns.tolist(), basis.rows.tolist()) == ([True, False], [False, True, True])


def test_a_problem_is_the_program():
    """Row by row, a variable that occurs twice counting twice, and not at all where it cancels."""
    rows = (
        Constraints(
            np.array([[0, 1, 0], [1, 1, 0]]),
            (Fraction(1), Fraction(2), Fraction(-1)),
            Fraction(1, 2),
            False,
        ),
        Constraints.equal_to([[0, 1]], 1),
    )
    problem = Problem.of(Program((Fraction(1, 3), Fraction(0)), rows))
    assert problem.cost == [fmpq(1, 3), fmpq(0)]
    half = fmpq(1, 2)
    assert problem.constraints == [
        LinearConstraint({1: fmpq(2)}, half, False),
        LinearConstraint({1: fmpq(3), 0: fmpq(-1)}, half, False),
        LinearConstraint({0: fmpq(1), 1: fmpq(1)}, fmpq(1), True),
    ]
    assert problem.equality.tolist() == [False, False, True]
    assert problem.slack([fmpq(1), fmpq(2)]) == [fmpq(7, 2), fmpq(9, 2), fmpq(2)]
    assert problem.reduced([fmpq(1), fmpq(0), fmpq(-1)]) == [fmpq(4, 3), fmpq(-1)]


def test_a_basis_of_the_wrong_size_or_rank():
    problem = Problem.of(build(1, reduced=False))
    every = Basis(np.ones(4, dtype=bool), np.ones(len(problem.constraints), dtype=bool))
    none = Basis(np.zeros(4, dtype=bool), np.zeros(len(problem.constraints), dtype=bool))
    alike = slack_basis(
        Problem([LinearConstraint({0: fmpq(1), 1: fmpq(1)}, fmpq(1), False)] * 2, [fmpq(1)] * 2)
    )
    for basis in (every, none):
        with pytest.raises(SingularBasis):
            Vertex(problem, basis)
    with pytest.raises(SingularBasis):
        Vertex(
            Problem(
                [LinearConstraint({0: fmpq(1), 1: fmpq(1)}, fmpq(1), False)] * 2, [fmpq(1)] * 2
            ),
            Basis(alike.rows, alike.columns),
        )


def value(problem, x):
    return sum((c * v for c, v in zip(problem.cost, x, strict=True)), fmpq(0))


def best_value(program, problem):
    solution = certify(program)
    proof = sum(
        (
            y * to_fmpq(bound)
            for y, bound in zip(map(to_fmpq, solution.multipliers), bounds(program), strict=True)
        ),
        fmpq(0),
    )
    best = value(problem, [to_fmpq(entry) for entry in solution.x])
    assert proof == best
    return best


def bounds(program):
    return [group.bound for group in program.constraints for _ in group.cells]


LOSSES = [
    L0(),
    L1(),
    L2(1),
    Power("1/2"),
    L1(worst_case=True),
    L0(1, worst_case=True),
    L1(prior=(Fraction(1, 2),) * 2),
]
NEIGHBOURS = ["adjacent", "adjacent", "all", 2, 3]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_every_start_leads_to_the_optimum(n, seed):
    """From the all-slack basis and from random ones, feasible or not, dual feasible or not."""
    rng = random.Random(10 * n + seed)
    for _ in range(3 if n < 4 else 1):
        privacy = Privacy(
            alpha=rng.choice(["9/10", "1/2", "1/50", 1]), neighbours=rng.choice(NEIGHBOURS)
        )
        loss = rng.choice(LOSSES if n == 1 else LOSSES[:-1])
        wanted = rng.choice(SUBSETS)
        program = build(n, privacy, loss, wanted, reduced=n > 2 or rng.random() < 0.5)
        problem = Problem.of(program)
        best = best_value(program, problem)
        for vertex in some_vertices(problem, rng, 4):
            end = reoptimised(vertex, PLENTY)
            assert end.optimal, (privacy, loss, wanted)
            assert end.problem is problem
            assert min(end.x) >= 0
            assert end.slack == problem.slack(end.x)
            assert end.reduced == problem.reduced(end.y)
            assert (
                value(problem, end.x)
                == best
                == sum(
                    (y * line.bound for y, line in zip(end.y, problem.constraints, strict=True)),
                    fmpq(0),
                )
            )


def test_an_optimal_vertex_stays():
    problem = Problem.of(build(3, NINE, L1(), ["WH"]))
    end = reoptimised(Vertex(problem, slack_basis(problem)), PLENTY)
    assert reoptimised(end, PLENTY) is end
    assert reoptimised(end, 0) is end


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9])
def test_no_more_steps_than_allowed(steps, monkeypatch):
    """A vertex for every step; the dual phase needs two more, to change the cost and back."""
    problem = Problem.of(build(3, NINE, L1(), ["WH"], reduced=False))
    for vertex in some_vertices(problem, random.Random(3), 5):
        exchanged: list[Any] = []
        exchange = Basis.exchanged
        with monkeypatch.context() as patch:
            patch.setattr(
                Basis,
                "exchanged",
                lambda *args, note=exchanged, do=exchange: note.append(args[1:]) or do(*args),
            )
            end = reoptimised(vertex, steps)
        assert len(exchanged) <= steps
        assert len(exchanged) == steps or end.optimal
        assert end.problem is problem
        before, after = ([*b.columns.tolist(), *b.rows.tolist()] for b in (vertex.basis, end.basis))
        assert sum(a != b for a, b in zip(before, after, strict=True)) <= 2 * steps
        assert sum(before) == sum(after)


def test_steps_in_instalments_lead_to_the_same_optimum():
    """Stopped anywhere, the vertex is a start like any other."""
    program = build(3, NINE, L1(worst_case=True), ["RM"], reduced=False)
    problem = Problem.of(program)
    best = best_value(program, problem)
    for instalment in (7, 30):
        vertex = Vertex(problem, slack_basis(problem))
        for _ in range(200):
            if vertex.optimal:
                break
            vertex = reoptimised(vertex, instalment)
        # Bland's rule ends a run; runs that start anew need not, so only the value of one that
        # ended is compared.
        assert not vertex.optimal or value(problem, vertex.x) == best
    assert value(problem, reoptimised(vertex, PLENTY).x) == best


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_reduced_cost_is_negative_in_the_dual_phase(name, monkeypatch):
    """Costs are raised just enough for that: the dual simplex method is sure to end only then."""
    problem = Problem.of(PROBLEMS[name]())
    seen = []

    class Watched(Vertex):
        def __init__(self, *args):
            super().__init__(*args)
            seen.append(self)

    starts = some_vertices(problem, random.Random(name), 8)
    monkeypatch.setattr("mechdesign.lp.simplex.Vertex", Watched)
    for vertex in starts:
        reoptimised(vertex, PLENTY)
    raised = [vertex for vertex in seen if vertex.problem is not problem]
    assert len(raised) > len(starts)
    for vertex in raised:
        assert vertex.dual_violation == 0
        assert vertex.problem.constraints is problem.constraints


def line(terms, bound, equality=False):
    return LinearConstraint({v: fmpq(a) for v, a in terms.items()}, fmpq(bound), equality)


@pytest.mark.parametrize(
    "lines",
    [
        [line({0: 1}, 1, True), line({0: 1}, 2, True)],
        [line({0: 1, 1: 1}, 1, True), line({0: 1}, 1), line({1: 1}, 1)],
        [line({0: -1}, 1)],
        [line({0: -1, 1: -1}, 1, True)],
        [line({0: 1, 1: 1}, -1, True)],
        [line({0: 1, 1: 1}, 1, True), line({0: 1, 1: -1}, 2, True)],
        [line({}, 1)],
        [line({}, 1, True)],
        [line({}, -1, True)],
        [
            LinearConstraint({0: fmpq(1), 1: fmpq(-1)}, fmpq(1, 10**24), False),
            line({0: -1, 1: 1}, 0),
        ],
    ],
    ids=range(10),
)
@pytest.mark.parametrize("cost", [(0, 0), (1, 0), (1, 2), (-1, -3)], ids=str)
def test_infeasible_problems(lines, cost):
    """Proved from the all-slack basis, whatever the cost; but not claimed without a step to prove
    it.
    """
    problem = Problem(lines, [fmpq(c) for c in cost])
    vertex = Vertex(problem, slack_basis(problem))
    with pytest.raises(Infeasible, match="proved"):
        reoptimised(vertex, PLENTY)
    assert reoptimised(vertex, 0).basis is vertex.basis


@pytest.mark.parametrize("seed", range(3))
def test_infeasible_mechanisms_from_any_start(seed):
    """A share of the truth just above what privacy allows one person, 1/(1 + alpha)."""
    best = 1 / (1 + NINE.alpha)
    for share, feasible in ((best, True), (best + Fraction(1, 10**30), False)):
        program = build(1, reduced=False)
        program = Program(
            program.cost,
            (*program.constraints, Constraints.at_least_value([0, 3], share).named("share")),
        )
        problem = Problem.of(program)
        for vertex in some_vertices(problem, random.Random(seed), 4):
            if feasible:
                assert reoptimised(vertex, PLENTY).x[0] == to_fmpq(best)
            else:
                with pytest.raises(Infeasible):
                    reoptimised(vertex, PLENTY)


def test_a_degenerate_problem_does_not_cycle():
    """Beale's example, on which the rule of the largest coefficient cycles; an equality with a
    slack of 0 is in the way, too.
    """
    cost: list[Any] = [Fraction(-3, 4), 20, Fraction(-1, 2), 6]
    rows: list[Any] = [
        ({0: Fraction(-1, 4), 1: 8, 2: 1, 3: -9}, 0, False),
        ({0: Fraction(-1, 2), 1: 12, 2: Fraction(1, 2), 3: -3}, 0, False),
        ({2: -1}, -1, False),
        ({0: 1, 2: -1}, 0, True),
    ]
    for count in (3, 4):
        lines = [
            LinearConstraint({v: to_fmpq(Fraction(a)) for v, a in t.items()}, fmpq(b), equality)
            for t, b, equality in rows[:count]
        ]
        problem = Problem(lines, [to_fmpq(Fraction(c)) for c in cost])
        end = reoptimised(Vertex(problem, slack_basis(problem)), 1000)
        assert end.optimal
        assert value(problem, end.x) == fmpq(-5, 4)
