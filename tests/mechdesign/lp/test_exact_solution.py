"""What certify returns is feasible and bounded exactly, even when floats mislead it."""

import math
import random
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mechdesign.lp.exact_solution as certify_module
from mechdesign import Constraints, Infeasible, Privacy, Property, SolverFailure, design, named
from mechdesign.losses import L0, L1, L2, Power, prior
from mechdesign.lp.exact_solution import certify
from mechdesign.lp.highs import FloatProgram, Optimum
from mechdesign.lp.highs import solve as honest_solve
from mechdesign.lp.simplex import Basis, Problem
from tests.mechdesign.programs import HALF, NINE, SUBSETS, build

BIG = 10**400


def check_solution(program, solution):
    """The point is feasible and the multipliers bound every other, in fractions; returns the cost
    and the bound.
    """
    x, y = solution.x, solution.multipliers
    assert len(x) == program.variables
    assert min(x) >= 0
    pulled = [Fraction(0)] * program.variables
    bound, r = Fraction(0), 0
    for group in program.constraints:
        for cells in group.cells.tolist():
            left = sum(c * x[v] for c, v in zip(group.coefficients, cells, strict=True))
            assert left == group.bound if group.equality else left >= group.bound, group.name
            assert group.equality or y[r] >= 0, group.name
            for c, v in zip(group.coefficients, cells, strict=True):
                pulled[v] += c * y[r]
            bound += group.bound * y[r]
            r += 1
    assert r == len(y)
    assert all(total <= cost for total, cost in zip(pulled, program.cost, strict=True))
    cost = sum(c * v for c, v in zip(program.cost, x, strict=True))
    assert bound <= cost
    return cost, bound


# Floats mislead: the answers stay exact, and where exact steps are affordable, optimal.


def cases():
    """Programs of every kind, small."""
    yield build(4, NINE, L0())
    yield build(5, NINE, L2(), ["WH", "CM"])
    yield build(4, NINE, L1(worst_case=True))
    yield build(3, Privacy(alpha="4/5", neighbours="all"), L1(prior=prior([1, 2, 3, 4])), ["RM"])
    yield build(4, HALF, L1(), ["F", "S"], reduced=False)
    yield build(3, HALF, L2(worst_case=True), ["CH"], reduced=False)


every_case = pytest.mark.parametrize(
    "program", list(cases()), ids=["L0", "L2-WH-CM", "worst", "prior-all", "F-S", "worst-CH"]
)


def wrong_cost(rng):
    """The right program but for its cost: a vertex that is feasible, and far from optimal."""
    return lambda floats: replace(floats, cost=np.abs(rng.normal(size=len(floats.cost))) + 1e-3)


def wrong_rows(rng):
    """Looser bounds: a vertex that need not be feasible."""

    def looser(floats):
        rows = np.where(np.isfinite(floats.row_upper), 0, -0.3 * rng.random(len(floats.row_lower)))
        return replace(
            floats,
            row_lower=floats.row_lower + rows,
            lower=floats.lower - 0.3 * rng.random(len(floats.lower)),
        )

    return looser


def mislead(monkeypatch, change, answers=None):
    """The first programs (all, if None) that the solver gets are changed; returns the calls that
    were made.
    """
    asked = []

    def solve(floats, *args, **kwargs):
        asked.append(floats)
        return honest_solve(
            change(floats) if answers is None or len(asked) <= answers else floats, *args, **kwargs
        )

    monkeypatch.setattr(certify_module, "solve", solve)
    return asked


@pytest.mark.parametrize(("n", "loss"), [(32, L0()), (32, L2())], ids=["L0", "L2"])
def test_without_refinements_and_steps_there_is_no_answer(n, loss):
    program = build(n, HALF, loss)
    with pytest.raises(SolverFailure, match="not solved exactly by 0 refinements and 0 simplex"):
        certify(program, max_refinements=0, max_work=0)
    solution = certify(program, max_work=0)
    assert solution.refinements >= 1
    best, proof = check_solution(program, solution)
    assert best == proof


@every_case
def test_an_honest_solver_needs_no_repair(program):
    cost, bound = check_solution(program, certify(program, max_refinements=0, max_work=0))
    assert cost == bound


@every_case
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("change", [wrong_cost, wrong_rows])
def test_a_wrong_first_basis(monkeypatch, program, seed, change):
    """Refined or repaired by exact steps it gives the optimum; by neither it is refused."""
    best, proof = check_solution(program, certify(program))
    assert best == proof
    mislead(monkeypatch, change(np.random.default_rng(seed)), answers=1)
    with suppress(SolverFailure):  # some of these bases are right ones
        solution = certify(program, max_refinements=0, max_work=0)
        assert check_solution(program, solution) == (best, best)
    for allowed in ({"max_refinements": 0}, {}):
        mislead(monkeypatch, change(np.random.default_rng(seed)), answers=1)
        assert check_solution(program, certify(program, **allowed)) == (best, best)


def test_refinement_alone_repairs_a_wrong_basis(monkeypatch):
    program = build(4, NINE, L0())
    best, _ = check_solution(program, certify(program))
    mislead(
        monkeypatch,
        lambda floats: replace(floats, cost=floats.cost[::-1].copy() + np.arange(len(floats.cost))),
        answers=1,
    )
    solution = certify(program, max_work=0)
    assert solution.refinements >= 1
    assert check_solution(program, solution) == (best, best)


NOTHING = np.zeros(0)

# Solvers that never tell the truth: (program, arguments) -> Optimum.


def fails(floats, *args, **kwargs):
    raise SolverFailure("out of order")


def denies(floats, *args, **kwargs):
    raise Infeasible("so it says")


def nothing_basic(floats, *args, **kwargs):
    return Optimum(
        Basis(np.zeros(len(floats.cost), dtype=bool), np.zeros(len(floats.row_lower), dtype=bool)),
        0.0,
        NOTHING,
    )


def everything_basic(floats, *args, **kwargs):
    return Optimum(
        Basis(np.ones(len(floats.cost), dtype=bool), np.ones(len(floats.row_lower), dtype=bool)),
        math.nan,
        NOTHING,
    )


def slacks_basic(floats, *args, **kwargs):
    """A basis indeed, of x = 0."""
    return Optimum(
        Basis(np.zeros(len(floats.cost), dtype=bool), np.ones(len(floats.row_lower), dtype=bool)),
        -math.inf,
        NOTHING,
    )


def columns_basic(floats, *args, **kwargs):
    """As many as there are rows, at most, whether they are independent or not."""
    rows, columns = len(floats.row_lower), len(floats.cost)
    return Optimum(Basis(np.arange(columns) < rows, np.arange(rows) >= columns), 1.0, NOTHING)


def at_random():
    rng = np.random.default_rng(7)

    def solve(floats, *args, **kwargs):
        rows, columns = len(floats.row_lower), len(floats.cost)
        chosen = np.isin(np.arange(rows + columns), rng.choice(rows + columns, rows, replace=False))
        return Optimum(Basis(chosen[:columns], chosen[columns:]), 0.0, NOTHING)

    return solve


def always_changed(change):
    rng = np.random.default_rng(8)
    return lambda floats, *args, **kwargs: honest_solve(change(rng)(floats), *args, **kwargs)


def by_turns():
    liars = [
        fails,
        nothing_basic,
        always_changed(wrong_cost),
        denies,
        slacks_basic,
        always_changed(wrong_rows),
        at_random(),
    ]
    turn = iter(range(10**9))
    return lambda *args, **kwargs: liars[next(turn) % len(liars)](*args, **kwargs)


LIARS = {
    "fails": lambda: fails,
    "denies": lambda: denies,
    "nothing basic": lambda: nothing_basic,
    "everything basic": lambda: everything_basic,
    "slacks basic": lambda: slacks_basic,
    "columns basic": lambda: columns_basic,
    "random": at_random,
    "wrong cost": lambda: always_changed(wrong_cost),
    "wrong rows": lambda: always_changed(wrong_rows),
    "by turns": by_turns,
}


@every_case
@pytest.mark.parametrize("liar", LIARS)
def test_exact_steps_need_no_solver(monkeypatch, program, liar):
    """Whatever the solver says, always: the optimum and its proof, with a gap of exactly 0."""
    best, _ = check_solution(program, certify(program))
    monkeypatch.setattr(certify_module, "solve", LIARS[liar]())
    assert check_solution(program, certify(program)) == (best, best)


@pytest.mark.parametrize("liar", ["nothing basic", "everything basic", "fails", "denies"])
def test_without_solver_and_without_steps_there_is_no_answer(monkeypatch, liar):
    program = build(2, NINE, L0())
    monkeypatch.setattr(certify_module, "solve", LIARS[liar]())
    with pytest.raises(Infeasible if liar == "denies" else SolverFailure):
        certify(program, max_work=0)


@pytest.mark.parametrize(
    "liar", ["slacks basic", "random", "wrong rows", "wrong cost", "columns basic", "by turns"]
)
@pytest.mark.parametrize("work", [0, 100, 1000])
def test_with_too_little_work_the_answer_is_exact_or_refused(monkeypatch, liar, work):
    """A typed refusal, or the optimum and its proof: never something in between."""
    for program in cases():
        best, _ = check_solution(program, certify(program))
        with monkeypatch.context() as patch:
            patch.setattr(certify_module, "solve", LIARS[liar]())
            try:
                solution = certify(program, max_work=work)
            except (SolverFailure, Infeasible):
                continue
            assert check_solution(program, solution) == (best, best)


@pytest.mark.parametrize("liar", LIARS)
def test_infeasibility_is_proved_without_a_solver(monkeypatch, liar):
    """And a solver that finds an answer where there is none is not believed."""
    monkeypatch.setattr(certify_module, "solve", LIARS[liar]())
    for item in (Certain(), Contrary(), Zero()):
        for loss in (L0(), L1(worst_case=True)):
            with pytest.raises(Infeasible):
                certify(build(2, NINE, loss, [item]))


def test_a_denial_may_be_proved_otherwise(monkeypatch):
    """What is called where floats find no point may raise; if it does not, exact steps decide."""
    calls = []
    program = build(2, NINE, L0())
    best = check_solution(program, certify(program, denied=lambda: calls.append("in vain")))
    assert not calls
    monkeypatch.setattr(certify_module, "solve", denies)
    assert check_solution(program, certify(program, denied=lambda: calls.append(1))) == best
    assert calls == [1]

    def prove():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        certify(program, denied=prove)


def test_progress_tells_what_is_going_on(monkeypatch):
    told: list[str] = []
    certify(build(5, NINE, L2(), ["WH"]), told.append)
    assert all(isinstance(text, str) for text in told)
    mislead(monkeypatch, wrong_cost(np.random.default_rng(0)), answers=1)
    certify(build(4, NINE, L0()), told.append)
    assert "refinement 1" in told
    monkeypatch.setattr(certify_module, "solve", slacks_basic)
    certify(build(4, NINE, L0()), told.append)
    assert "exact simplex steps" in told


# The ends of the range of alpha, where floats see hardly any program at all.

EXTREMES = {
    "1e-9": Fraction(1, 10**9),
    "1e-3": Fraction(1, 1000),
    "1-1e-4": Fraction(9999, 10000),
    "1-1e-9": 1 - Fraction(1, 10**9),
    "1-1e-10": 1 - Fraction(1, 10**10),
    "1e-310": Fraction(1, 10**310),
    "1e-400": Fraction(1, BIG),
}


LOSSES = [
    L0(),
    L1(),
    L2(),
    L0(1),
    Power("1/2"),
    L0(worst_case=True),
    L1(worst_case=True),
    L2(1, worst_case=True),
]


@pytest.mark.slow
@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("n", range(1, 9))
def test_extreme_alphas_are_solved_to_the_end(alpha, n):
    """Losses, neighbours and properties are a fixed sample; every alpha and n meets some. The gap
    is exactly 0.
    """
    rng = random.Random(f"{alpha} {n}")
    for _ in range(3 if n < 6 else 2):
        privacy = Privacy(
            alpha=EXTREMES[alpha], neighbours=rng.choice(["adjacent", "adjacent", "all", 2])
        )
        loss, wanted = rng.choice(LOSSES), rng.choice(SUBSETS)
        found = design(n, privacy, loss, wanted)
        assert found.certificate.gap == 0, (privacy, loss, wanted)
        assert found.certificate.verify(found.mechanism)
        assert found.mechanism.audit().holds


@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("wanted", [[], ["WH", "RM"], ["F"]], ids=["none", "WH-RM", "F"])
def test_extreme_alphas_have_the_known_optimum(alpha, wanted):
    best = named.recommend(3, alpha=EXTREMES[alpha], properties=wanted).mechanism.loss(L0())
    assert design(3, Privacy(alpha=EXTREMES[alpha]), L0(), wanted).certificate.objective == best


@pytest.mark.parametrize("alpha", ["1-1e-9", "1-1e-10", "1e-310"])
def test_extreme_alphas_without_exact_steps(alpha):
    """The optimum, or a typed refusal; never a mechanism that is not one."""
    for wanted in ([], ["F"], ["WH", "CM"]):
        program = build(4, Privacy(alpha=EXTREMES[alpha]), L1(), wanted)
        for refinements in (0, 40):
            try:
                solution = certify(program, max_refinements=refinements, max_work=0)
            except (SolverFailure, Infeasible):
                continue
            check_solution(program, solution)


@pytest.mark.parametrize(
    ("n", "wanted", "loss", "digits"),
    [
        (6, ["F"], L2(), 7),
        (6, ["F"], L2(), 8),
        (6, ["WH"], L0(), 12),
        (6, ["CM", "RM", "S"], L2(), 20),
        (6, [], L0(), 10),
    ],
    ids=str,
)
def test_alphas_next_to_one_are_feasible(n, wanted, loss, digits):
    """A float basis may break an equality slightly: no reason to call the program infeasible (the
    seven never are).
    """
    found = design(n, Privacy(alpha=1 - Fraction(1, 10**digits)), loss, wanted)
    assert found.certificate.verify(found.mechanism)
    assert found.certificate.optimal


@pytest.mark.parametrize(
    ("n", "digits", "neighbours", "wanted"),
    [(3, 7, "adjacent", []), (9, 6, "all", ["WH"])],
    ids=["adjacent", "all"],
)
def test_what_certify_returns_is_feasible_next_to_one(n, digits, neighbours, wanted):
    """A vertex next to one that floats find must itself be feasible, exactly."""
    program = build(
        n, Privacy(alpha=1 - Fraction(1, 10**digits), neighbours=neighbours), L0(), wanted
    )
    check_solution(program, certify(program))
    check_solution(program, certify(program, max_work=0))


def test_small_coefficients_in_an_equality():
    """The solver drops coefficients below 1e-9; what is left over exactly is no contradiction."""

    class Rare(Property):
        short = "RARE"

        def constraints(self, at, privacy):
            yield Constraints(
                np.array([[at[0, 1], at[1, 1]]]),
                (Fraction(1), Fraction(-1, 10**10)),
                Fraction(0),
                True,
            )

    # A mechanism that has it exists: Pr[0 | 1] may be anything from alpha to 1 times Pr[0 | 0], and
    # this is in between.
    found = design(3, Privacy(alpha=Fraction(1, 10**15)), L0(), [Rare()])
    assert found.certificate.verify(found.mechanism)


# No mechanism at all.


class Certain(Property):
    short = "CERTAIN"

    def constraints(self, at, privacy):
        yield Constraints.at_least_value(np.diagonal(at), Fraction(9, 10))


class Contrary(Property):
    short = "CONTRARY"

    def constraints(self, at, privacy):
        yield Constraints.equal_to([[at[0, 0]], [at[-1, -1]]], Fraction(2, 3))
        yield Constraints.equal_to([[at[0, 0], at[-1, -1]]], Fraction(1, 2))


class Zero(Property):
    short = "ZERO"

    def constraints(self, at, privacy):
        yield Constraints.equal_to(at[:, :1], 0)


@pytest.mark.parametrize("item", [Certain(), Contrary(), Zero()], ids=lambda item: item.short)
@pytest.mark.parametrize("loss", [L0(), L1(worst_case=True)], ids=repr)
def test_infeasible(item, loss):
    for n in (1, 3):
        with pytest.raises(Infeasible):
            design(n, NINE, loss, [item])


@pytest.mark.parametrize("wanted", [(), ("RM", "CM")], ids=" ".join)
def test_scaled_variables_have_the_same_optimum(wanted, monkeypatch):
    """As for large programs, by the interior point method."""
    for module in ("exact_solution", "highs"):
        monkeypatch.setattr(f"mechdesign.lp.{module}.INTERIOR_POINT_CONSTRAINTS", 0)
    program = build(9, HALF, L1(), wanted, reduced=False)
    sizes = np.full(program.variables, 1.0)
    sizes[:100] = 0.5 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10))).ravel()
    plain, scaled = certify(program), certify(program, sizes=sizes)
    costs = [
        sum((c * x for c, x in zip(program.cost, found.x, strict=True)), Fraction(0))
        for found in (plain, scaled)
    ]
    assert costs[0] == costs[1]


def test_scaling_keeps_what_a_program_says():
    problem = Problem.of(build(4, HALF, L1(), ("WH",), reduced=False))
    floats = FloatProgram.of(problem)
    sizes = 2.0 ** -np.arange(len(floats.cost))
    scaled = floats.scaled(sizes)
    x = np.random.default_rng(5).random(len(floats.cost))
    assert scaled.cost @ (x / sizes) == pytest.approx(floats.cost @ x)
    before, after = floats.matrix @ x, scaled.matrix @ (x / sizes)
    known = floats.row_lower != 0
    assert after[known] == pytest.approx(before[known])
    assert np.array_equal(np.sign(after[~known]), np.sign(before[~known]))
