"""Proofs: what certify returns is feasible and bounded exactly, even when floats mislead it; a
forged certificate is refused.
"""

import math
import pickle
import random
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import mechdesign.lp.exact_solution as certify_module
from mechdesign import (
    Certificate,
    Constraints,
    InexactNumber,
    Infeasible,
    Mechanism,
    Privacy,
    Property,
    SolverFailure,
    Verification,
    design,
    named,
)
from mechdesign.certificate import dual_bound
from mechdesign.formulation import mechanism_program
from mechdesign.losses import L0, L1, L2, Costs, Loss, Power, binomial, prior
from mechdesign.lp.exact_solution import certify
from mechdesign.lp.highs import Optimum
from mechdesign.lp.highs import solve as honest_solve
from mechdesign.lp.simplex import Basis
from mechdesign.properties import resolve
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


# The same program, written plainly from the definitions, for another solver.


def plain_optimum(n, alpha, reach, cost, wanted, worst_case=False, weights=None):
    size, alpha = n + 1, float(alpha)
    p = cp.Variable((size, size), nonneg=True)
    rules = [cp.sum(p, axis=0) == 1]
    for j in range(size):
        for k in range(size):
            if j != k and abs(j - k) <= reach:
                rules.append(p[:, j] >= alpha * p[:, k])
    for name in wanted:
        for i in range(size):
            for j in range(size):
                if name == "RH":
                    rules.append(p[i, i] >= p[i, j])
                if name == "CH":
                    rules.append(p[j, j] >= p[i, j])
                if name == "RM" and j != i:
                    rules.append(p[i, j + (1 if j < i else -1)] >= p[i, j])
                if name == "CM" and j != i:
                    rules.append(p[i + (1 if i < j else -1), j] >= p[i, j])
                if name == "S":
                    rules.append(p[i, j] == p[n - i, n - j])
            if name == "F":
                rules.append(p[i, i] == p[0, 0])
            if name == "WH":
                rules.append(p[i, i] >= 1 / size)
    costs = np.array([[cost(i, j) for j in range(size)] for i in range(size)])
    expected = cp.sum(cp.multiply(costs, p), axis=0)
    objective = (
        cp.max(expected)
        if worst_case
        else expected @ (weights if weights is not None else np.full(size, 1 / size))
    )
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(solver=cp.HIGHS)
    return problem.value


CASES = [
    (1, "9/10", "adjacent", 1, 0, 0, False, ""),
    (2, "9/10", "adjacent", 1, 0, 0, False, "WH"),
    (4, "9/10", "adjacent", 1, 0, 0, False, "WH CM"),
    (6, "9/10", "adjacent", 1, 0, 0, False, "CH"),
    (6, "2/3", "adjacent", 1, 1, 0, False, "WH RM CM S"),
    (5, "9/10", "adjacent", 1, 2, 1, False, "RH CH"),
    (6, "9/10", "adjacent", 1, 1, 0, True, ""),
    (5, "4/5", "adjacent", 1, 2, 0, True, "F"),
    (4, "9/10", "adjacent", 1, 0, 2, True, "S RM"),
    (4, "9/10", "all", 9, 0, 0, False, ""),
    (4, "1/3", "all", 9, 1, 0, False, "WH"),
    (5, "9/10", "all", 9, 1, 0, True, "RM CM"),
    (5, "9/10", 2, 2, 0, 0, False, "WH"),
    (6, "3/4", 2, 2, 1, 0, False, "RM F"),
    (4, "9/10", 2, 2, 2, 0, True, ""),
    (4, 1, "adjacent", 1, 0, 0, False, ""),
    (4, 1, "adjacent", 1, 1, 0, False, ""),
    (4, 1, "all", 9, 2, 0, True, "WH"),
    (5, 1, "adjacent", 1, 2, 0, False, "RH RM CH CM F WH S"),
    (5, "99/100", "adjacent", 1, 0, 1, False, "RH RM CH CM F WH S"),
]


@pytest.mark.parametrize(
    ("n", "alpha", "neighbours", "reach", "p", "d", "worst_case", "wanted"), CASES
)
def test_objective_agrees_with_cvxpy(n, alpha, neighbours, reach, p, d, worst_case, wanted):
    found = design(
        n, Privacy(alpha, neighbours), Power(p, d, worst_case=worst_case), wanted.split()
    )

    def cost(i, j):
        return abs(i - j) ** p if abs(i - j) > d else 0

    expected = plain_optimum(n, Fraction(alpha), reach, cost, wanted.split(), worst_case)
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-7)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)


@pytest.mark.parametrize("wanted", [[], ["WH", "CM"], ["S"]], ids=" ".join)
def test_priors_and_costs_agree_with_cvxpy(wanted):
    weights = binomial(4, "1/3")
    found = design(4, NINE, L1(prior=weights), wanted)
    expected = plain_optimum(
        4, 0.9, 1, lambda i, j: abs(i - j), wanted, weights=np.array([float(w) for w in weights])
    )
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-7)
    # Underestimates cost three times as much.
    table = [[3 * max(j - i, 0) + max(i - j, 0) for j in range(5)] for i in range(5)]
    found = design(4, NINE, Costs(table), wanted)
    assert float(found.certificate.objective) == pytest.approx(
        plain_optimum(4, 0.9, 1, lambda i, j: table[i][j], wanted), abs=1e-7
    )


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest(n):
    for alpha in ("1/2", 1):
        for loss in (L0(), L2(), L1(worst_case=True)):
            found = design(n, Privacy(alpha, "all"), loss, ["WH", "F", "S"])
            assert found.certificate.optimal
            assert found.mechanism == Mechanism(
                named.krr(n + 1, alpha).table, Privacy(alpha, "all")
            )


# Forgeries.


@pytest.fixture(scope="module")
def honest():
    found = design(4, NINE, L1(), ["WH", "CM"])
    assert found.certificate.verify(found.mechanism)
    assert found.certificate.gap == 0
    return found


def refused(certificate, mechanism, reason):
    verdict = certificate.verify(mechanism)
    assert isinstance(verdict, Verification)
    assert not verdict
    assert reason in verdict.reason


def first_multiplier(certificate, name):
    r = min(r for r, value in certificate.multipliers[name].items() if value)
    return r, certificate.multipliers[name][r]


def with_multiplier(certificate, name, r, value):
    return replace(
        certificate,
        multipliers={
            **certificate.multipliers,
            name: {**certificate.multipliers.get(name, {}), r: value},
        },
    )


def test_tampered_multipliers(honest):
    good = honest.certificate
    for name in good.multipliers:
        if not any(good.multipliers[name].values()):
            continue
        r, value = first_multiplier(good, name)
        for other in (0, value * 2, value + Fraction(1, BIG), value - Fraction(1, BIG)):
            assert not with_multiplier(good, name, r, Fraction(other)).verify(honest.mechanism), (
                name,
                other,
            )
        refused(
            replace(good, multipliers={k: v for k, v in good.multipliers.items() if k != name}),
            honest.mechanism,
            "",
        )


def test_a_larger_column_multiplier_exceeds_a_cost(honest):
    r, value = first_multiplier(honest.certificate, "column sums")
    refused(
        with_multiplier(honest.certificate, "column sums", r, value + 1),
        honest.mechanism,
        "exceed the cost of variable",
    )


def test_negative_multipliers_of_inequalities(honest):
    good = honest.certificate
    names = [name for name in good.multipliers if name != "column sums"]
    assert any(name.startswith("privacy") for name in names)
    for name in names:
        refused(
            with_multiplier(good, name, 0, Fraction(-1, BIG)),
            honest.mechanism,
            f"a multiplier of the inequalities {name!r} is negative",
        )


def test_unknown_rows(honest):
    for name in ("F", "", "WHO", "worst case 0"):
        refused(
            with_multiplier(honest.certificate, name, 0, Fraction(0)),
            honest.mechanism,
            f"there are no constraints called {name!r}",
        )
    for r in (-1, 5, 10**30):
        refused(
            with_multiplier(honest.certificate, "column sums", r, Fraction(0)),
            honest.mechanism,
            "constraints 'column sums' are 0 .. 4",
        )


@pytest.mark.parametrize(
    "change", [1, -1, Fraction(1, BIG), Fraction(-1, BIG)], ids=["+1", "-1", "+tiny", "-tiny"]
)
def test_tampered_objective_and_bound(honest, change):
    good = honest.certificate
    refused(replace(good, objective=good.objective + change), honest.mechanism, "as certified")
    refused(
        replace(good, bound=good.bound + change),
        honest.mechanism,
        "the multipliers prove the bound",
    )
    refused(
        replace(good, objective=good.objective + change, bound=good.bound + change),
        honest.mechanism,
        "as certified",
    )


@pytest.mark.parametrize("field", ["objective", "bound"])
def test_tampered_beyond_floats(honest, field):
    refused(
        replace(honest.certificate, **{field: Fraction(BIG)}),
        honest.mechanism,
        "certified" if field == "objective" else "bound",
    )


def test_another_statement(honest):
    good = honest.certificate
    refused(replace(good, loss=L2()), honest.mechanism, "as certified")
    refused(replace(good, loss=L1(worst_case=True)), honest.mechanism, "as certified")
    refused(replace(good, privacy=HALF), honest.mechanism, "the certificate is about")
    refused(
        replace(good, privacy=Privacy("9/10", "all")), honest.mechanism, "the certificate is about"
    )
    # Without the rows of WH its multipliers have nothing to stand on.
    assert not replace(good, properties=(resolve("CH"),)).verify(honest.mechanism)
    refused(
        replace(good, properties=(*good.properties, resolve("F"))),
        honest.mechanism,
        "lacks the property F",
    )


def test_another_mechanism(honest):
    good = honest.certificate
    refused(good, named.uniform(4, NINE), "the loss is")
    refused(good, named.geometric(4, "9/10"), "lacks the property")
    refused(good, Mechanism(honest.mechanism.table, HALF), "the mechanism claims")
    refused(good, Mechanism(np.eye(5, dtype=int).tolist(), NINE), "not private: ratio inf")
    refused(good, design(3, NINE, L1(), ["WH", "CM"]).mechanism, "")
    refused(good, design(5, NINE, L1(), ["WH", "CM"]).mechanism, "")
    # Another optimal table, if there is one, is proved by the same multipliers; a certificate is
    # about the program.
    assert good.verify(Mechanism(honest.mechanism.table, NINE))


@pytest.mark.parametrize(
    ("loss", "wanted", "table"),
    [
        (L0(), [], named.geometric(3, "1/2").table),
        (L0(prior=binomial(2, "1/3")), [], named.geometric(3, "1/2").table),
        (Costs([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), [], named.geometric(3, "1/2").table),
        (L0(), ["WH"], [["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]]),
    ],
    ids=["larger", "prior", "costs", "rectangular"],
)
def test_a_mechanism_of_another_size(loss, wanted, table):
    """A statement that does not fit the table is not proved about it; that is an answer, and no
    error.
    """
    certificate = design(2, HALF, loss, wanted).certificate
    refused(certificate, Mechanism(table, HALF), "")
    assert certificate.verify(Mechanism(table, HALF)).reason


@pytest.mark.parametrize("wanted", ["RH", "RM", "CH", "CM", "F", "WH", "S", "OR"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2), (4, 4)], ids=str)
def test_a_mechanism_of_another_shape(wanted, shape):
    found = design(2, HALF, L1(), [wanted])
    outputs, inputs = shape
    refused(found.certificate, Mechanism([[Fraction(1, outputs)] * inputs] * outputs, HALF), "")
    explicit = design(2, Privacy("1/2", [(0, 1), (1, 2)]), L1(worst_case=True), [wanted])
    if inputs >= 3:
        refused(
            explicit.certificate,
            Mechanism([[Fraction(1, outputs)] * inputs] * outputs, explicit.certificate.privacy),
            "",
        )


def test_a_ratio_beyond_floats(honest):
    table = [[Fraction(1, BIG)] + [Fraction(1, 5)] * 4] + [
        [(1 - Fraction(1, BIG)) / 4] + [Fraction(1, 5)] * 4
    ] * 4
    refused(honest.certificate, Mechanism(table, NINE), "not private")


def test_a_weaker_proof_is_a_proof_with_a_gap(honest):
    """Scaling all multipliers down keeps them valid: the gap tells, and nothing is claimed to be
    optimal.
    """
    good = honest.certificate
    weaker = {
        name: {r: value / 2 for r, value in chosen.items()}
        for name, chosen in good.multipliers.items()
    }
    with_gap = replace(good, multipliers=weaker, bound=good.bound / 2)
    verdict = with_gap.verify(honest.mechanism)
    assert verdict
    assert not with_gap.optimal
    assert with_gap.gap == good.objective / 2
    assert "within" in verdict.reason
    nothing = replace(good, multipliers={}, bound=Fraction(0))
    assert nothing.verify(honest.mechanism)
    assert nothing.gap == good.objective


def test_dual_bound_by_hand():
    """n = 1, L0: 1/(1+alpha) is the best truth, so alpha/(1+alpha) the least error (Theorem 10)."""
    program = mechanism_program(2, 2, HALF, L0(), [])
    names = [group.name for group in program.constraints]
    assert dual_bound(program, {}) == 0
    assert dual_bound(program, {names[0]: {0: Fraction(0)}}) == 0
    with pytest.raises(ValueError, match="exceed the cost of variable"):
        dual_bound(program, {"column sums": {0: Fraction(1, BIG)}})
    with pytest.raises(ValueError, match="there are no constraints"):
        dual_bound(program, {"nothing": {}})
    assert design(1, HALF).certificate.bound == Fraction(1, 3)


# Floats mislead: the answers stay exact, and where exact steps are affordable, optimal.


def cases():
    """Programs of every kind, small."""
    yield build(4, NINE, L0())
    yield build(5, NINE, L2(), ["WH", "CM"])
    yield build(4, NINE, L1(worst_case=True))
    yield build(3, Privacy("4/5", "all"), L1(prior=prior([1, 2, 3, 4])), ["RM"])
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


# Solvers that never tell the truth: (program, arguments) -> Optimum.


def fails(floats, *args, **kwargs):
    raise SolverFailure("out of order")


def denies(floats, *args, **kwargs):
    raise Infeasible("so it says")


def nothing_basic(floats, *args, **kwargs):
    return Optimum(
        Basis(np.zeros(len(floats.cost), dtype=bool), np.zeros(len(floats.row_lower), dtype=bool)),
        0.0,
    )


def everything_basic(floats, *args, **kwargs):
    return Optimum(
        Basis(np.ones(len(floats.cost), dtype=bool), np.ones(len(floats.row_lower), dtype=bool)),
        math.nan,
    )


def slacks_basic(floats, *args, **kwargs):
    """A basis indeed, of x = 0."""
    return Optimum(
        Basis(np.zeros(len(floats.cost), dtype=bool), np.ones(len(floats.row_lower), dtype=bool)),
        -math.inf,
    )


def columns_basic(floats, *args, **kwargs):
    """As many as there are rows, at most, whether they are independent or not."""
    rows, columns = len(floats.row_lower), len(floats.cost)
    return Optimum(Basis(np.arange(columns) < rows, np.arange(rows) >= columns), 1.0)


def at_random():
    rng = np.random.default_rng(7)

    def solve(floats, *args, **kwargs):
        rows, columns = len(floats.row_lower), len(floats.cost)
        chosen = np.isin(np.arange(rows + columns), rng.choice(rows + columns, rows, replace=False))
        return Optimum(Basis(chosen[:columns], chosen[columns:]), 0.0)

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


@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("n", range(1, 9))
def test_extreme_alphas_are_solved_to_the_end(alpha, n):
    """Losses, neighbours and properties are a fixed sample; every alpha and n meets some. The gap
    is exactly 0.
    """
    rng = random.Random(f"{alpha} {n}")
    for _ in range(3 if n < 6 else 2):
        privacy = Privacy(EXTREMES[alpha], rng.choice(["adjacent", "adjacent", "all", 2]))
        loss, wanted = rng.choice(LOSSES), rng.choice(SUBSETS)
        found = design(n, privacy, loss, wanted)
        assert found.certificate.gap == 0, (privacy, loss, wanted)
        assert found.certificate.verify(found.mechanism)
        assert found.mechanism.audit().holds


@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("wanted", [[], ["WH", "RM"], ["F"]], ids=["none", "WH-RM", "F"])
def test_extreme_alphas_have_the_known_optimum(alpha, wanted):
    best = named.recommend(3, EXTREMES[alpha], wanted).mechanism.loss(L0())
    assert design(3, Privacy(EXTREMES[alpha]), L0(), wanted).certificate.objective == best


@pytest.mark.parametrize("alpha", ["1-1e-9", "1-1e-10", "1e-310"])
def test_extreme_alphas_without_exact_steps(alpha):
    """The optimum, or a typed refusal; never a mechanism that is not one."""
    for wanted in ([], ["F"], ["WH", "CM"]):
        program = build(4, Privacy(EXTREMES[alpha]), L1(), wanted)
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
    found = design(n, Privacy(1 - Fraction(1, 10**digits)), loss, wanted)
    assert found.certificate.verify(found.mechanism)
    assert found.certificate.optimal


@pytest.mark.parametrize(
    ("n", "digits", "neighbours", "wanted"),
    [(3, 7, "adjacent", []), (9, 6, "all", ["WH"])],
    ids=["adjacent", "all"],
)
def test_what_certify_returns_is_feasible_next_to_one(n, digits, neighbours, wanted):
    """A vertex next to one that floats find must itself be feasible, exactly."""
    program = build(n, Privacy(1 - Fraction(1, 10**digits), neighbours), L0(), wanted)
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
    found = design(3, Privacy(Fraction(1, 10**15)), L0(), [Rare()])
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


def test_barely_feasible_and_barely_not():
    """The truth can be at least 1/(1+alpha) for one person, and not a bit more."""
    best = 1 / (1 + Fraction(9, 10))

    def wanted(share):
        class Share(Property):
            short = "SHARE"

            def constraints(self, at, privacy):
                yield Constraints.at_least_value(np.diagonal(at), share)

        return Share()

    found = design(1, NINE, L0(), [wanted(best)])
    assert found.mechanism.table[0][0] == best
    with pytest.raises(Infeasible):
        design(1, NINE, L0(), [wanted(best + Fraction(1, 1000))])


@pytest.mark.parametrize("n", [-1, 1.5, True, "3", None], ids=repr)
def test_bad_sizes(n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        design(n, HALF)


@pytest.mark.parametrize("privacy", ["9/10", Fraction(9, 10), 0.9, None], ids=repr)
def test_bad_privacy(privacy):
    with pytest.raises(TypeError, match="privacy must be a Privacy"):
        design(2, privacy)


def test_the_gap_is_exact_and_the_text_says_so(honest):
    assert isinstance(honest.certificate.gap, Fraction)
    assert math.isclose(float(honest.certificate.objective), float(honest.mechanism.loss(L1())))
    assert "proved optimal" in str(honest.certificate)
    assert honest.certificate.verify(honest.mechanism).reason == "optimal"


class TestNumbersOfCertificates:
    """The uniform mechanism is not optimal: every one of these would have to prove a bound that is
    false.
    """

    privacy = Privacy("1/2")
    uniform = Mechanism([["1/2"] * 2] * 2, privacy)

    def test_integers_do_not_wrap_around(self):
        huge = np.int64(2**63 - 1)
        multipliers = {"column sums": {0: 1, 1: 1}, "privacy": {0: huge, 3: huge}}
        assert not Certificate(self.privacy, Costs([[0, 4], [4, 0]]), (), 2, 2, multipliers).verify(
            self.uniform
        )

    def test_a_fraction_with_a_hidden_sign_is_negative(self):
        hidden: Any = Fraction(1)
        hidden._numerator, hidden._denominator = 1, -4
        multipliers = {
            "column sums": {0: Fraction(1, 4), 1: Fraction(1, 4)},
            "privacy": {0: hidden, 3: hidden},
        }
        assert not Certificate(
            self.privacy, L0(), (), Fraction(1, 2), Fraction(1, 2), multipliers
        ).verify(self.uniform)

    @pytest.mark.parametrize("numbers", [(0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5)])
    def test_floats_are_refused(self, numbers):
        objective, bound, multiplier = numbers
        with pytest.raises(InexactNumber):
            Certificate(self.privacy, L0(), (), objective, bound, {"column sums": {0: multiplier}})

    def test_multipliers_are_read_only_and_travel(self):
        certificate = design(2, Privacy("9/10"), L0(), ["WH"]).certificate
        with pytest.raises(TypeError):
            certificate.multipliers["privacy"] = {}  # type: ignore[index]  # read-only
        with pytest.raises(TypeError):
            certificate.multipliers["column sums"][0] = 1  # type: ignore[index]  # read-only
        assert pickle.loads(pickle.dumps(certificate)) == certificate

    def test_negative_costs_are_refused(self):
        class Gain(Loss):
            def cost(self, output, input):
                return Fraction(-(output == input))

        constant = Mechanism([[1, 1], [0, 0]], self.privacy)
        assert not Certificate(self.privacy, Gain(worst_case=True), (), 0, 0, {}).verify(constant)
        with pytest.raises(ValueError, match="at least 0"):
            design(1, self.privacy, Gain())
