"""Rounding to keys: integer programs in floats, whose solutions are checked exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mechdesign.base import brief
from mechdesign.exceptions import SolverFailure
from mechdesign.lp.basis import Program
from mechdesign.optimisation.infeasibility import together
from mechdesign.perturbation.noise_rules import (
    NoiseRules,
    Objective,
    broken_rules,
    linear,
    objective_of,
    program_of,
    request_of,
)
from mechdesign.perturbation.table import PerturbationTable

# What rounding may take, in variables times nodes of branch and bound: some seconds. A limit in
# seconds would let the load of the machine decide which table is found; this one only ends large
# programs.
_WORK, _SECONDS = 700_000, 60.0

_MARGIN = 1e-6  # how far integers of floats may be from privacy

_IMPOSSIBLE = 2  # the status of an integer program without a solution


class Unroundable(SolverFailure):
    """The error that there is no table of so many keys that keeps some rules.

    That is found by branch and bound in floats: a table would be checked exactly, that there is
    none is not proved.

    Attributes
    ----------
    keys : int
        The number of keys.
    conflict : tuple of str
        Rules that no table of so many keys keeps together: any fewer are kept by some.
    """

    def __init__(self, keys: int, conflict: Sequence[str]) -> None:
        self.keys, self.conflict = keys, tuple(conflict)
        super().__init__(
            f"no table of {keys} keys keeps {together(self.conflict)} (by floats): they must be"
            " eased a little, or there must be other keys"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.keys, self.conflict)


@dataclass(frozen=True)
class RoundedDesign:
    """A table of a given number of keys, beside the design that it is rounded from.

    Attributes
    ----------
    table : PerturbationTable
        It keeps every rule, which is checked exactly. The noise rises with the key:
        `mechdesign.perturbation.scattered` assigns keys that leak less.
    value : Fraction
        Its objective.
    lost : Fraction
        How much of the objective rounding costs at most: ``value`` less what no noise with any
        number of keys is below.
    least : float or None
        What the objective of no table with so many keys is below, as branch and bound in floats
        has it: where that is ``value``, no other is better. None of the entropy, and of a table
        that is rounded.
    """

    table: PerturbationTable
    value: Fraction
    lost: Fraction
    least: float | None = None


class _Found(NamedTuple):
    """What an integer program came to."""

    status: int
    numbers: list[int] | None  # of keys, where some were found
    least: float | None  # a bound on the cost of all, over the number of keys


def rounded_design(
    rules: NoiseRules,
    objective: Objective,
    exact_table: PerturbationTable,
    bound: Fraction,
    keys: int,
) -> RoundedDesign:
    """Return the best table of so many keys that keeps the rules; ``bound`` is that of all."""
    cells, near = rules.cells, None
    if objective == "entropy":
        near = [Fraction(exact_table.law(c).get(v, 0), exact_table.keys) for c, v in cells]
        program = program_of(rules, "L0")
    else:
        program = program_of(rules, objective)
    least: float | None = None
    for margin in (0.0, _MARGIN):
        status, numbers, below = _integers(program, len(cells), keys, near, margin)
        least = least if margin or near is not None else below  # with a margin there are fewer
        if status == _IMPOSSIBLE and not margin:
            raise Unroundable(keys, _conflict(rules, keys, objective == "delta"))
        if numbers is None:
            break
        laws: list[dict[int, int]] = [{} for _ in range(rules.largest + 1)]
        for (c, v), number in zip(cells, numbers, strict=True):
            if number:
                laws[c][v] = number
        table = PerturbationTable.of_laws(keys, laws)
        # Floats decide nothing: the integers keep the rules, or another try is made.
        if not broken_rules(rules, table):
            value = objective_of(rules, objective, table)
            return RoundedDesign(table, value, value - bound, least)
    raise SolverFailure(
        f"no table of {keys} keys that keeps the rules exactly was found in time: ease rules that"
        " leave no room a little, or take other keys"
    )


def rounded_table(table: PerturbationTable, keys: int) -> RoundedDesign:
    """Return the table nearest to another one, count by count."""
    known: dict[tuple[tuple[int, int], ...], tuple[dict[int, int], Fraction]] = {}
    laws, apart = [], Fraction(0)
    for count in range(table.largest + 1):
        law = tuple(table.law(count).items())
        if law not in known:
            known[law] = _rounded_law(law, table.keys, keys)
        laws.append(known[law][0])
        apart += known[law][1] / (table.largest + 1)
    return RoundedDesign(PerturbationTable.of_laws(keys, laws, table.period), apart, apart)


def _rounded_law(
    law: Sequence[tuple[int, int]], total: int, keys: int
) -> tuple[dict[int, int], Fraction]:
    size = len(law)
    bias = round(Fraction(sum(v * number for v, number in law), total) * keys)
    row = tuple(range(size))
    groups = (
        linear(row, (Fraction(1),) * size, Fraction(1), True),
        linear(row, tuple(Fraction(v) for v, _ in law), Fraction(bias, keys), True),
    )
    near = [Fraction(number, total) for _, number in law]
    status, numbers, _ = _integers(Program((Fraction(0),) * size, groups), size, keys, near, 0.0)
    if status == _IMPOSSIBLE:
        raise Unroundable(keys, [f"the outputs of a count with a bias of {brief(groups[1].bound)}"])
    if numbers is None:
        raise SolverFailure(f"no noise of {keys} keys that keeps the bias was found in time")
    moments = sum(v * number for (v, _), number in zip(law, numbers, strict=True))
    if sum(numbers) != keys or moments != bias:
        raise SolverFailure(f"no noise of {keys} keys that keeps the bias was found")
    apart = sum((abs(n - p * keys) for n, p in zip(numbers, near, strict=True)), Fraction(0))
    return {v: n for (v, _), n in zip(law, numbers, strict=True) if n}, apart / keys


def _conflict(rules: NoiseRules, keys: int, least_delta: bool) -> list[str]:
    """Return as few rules as possible that no table of so many keys keeps, by their texts."""
    request = request_of(rules, least_delta)
    free = (Fraction(0),) * request.variables
    kept = list(request.properties)
    for rule in request.properties:
        others = [each for each in kept if each is not rule]
        fewer = replace(request, properties=tuple(others))
        program = Program(free, tuple(fewer.constraints()))
        status, *_ = _integers(program, len(rules.cells), keys, None, 0.0, _WORK // 4)
        if status == _IMPOSSIBLE:
            kept = others
    return [each.text for each in kept]


def _integers(
    program: Program,
    integers: int,
    keys: int,
    near: Sequence[Fraction] | None,
    margin: float,
    work: int = _WORK,
) -> _Found:
    """Return the numbers of keys for the first variables of a program, by an integer program.

    They are the nearest ones to the probabilities ``near`` where these are given. Inequalities are
    kept with a margin, in keys.
    """
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    size = program.variables
    columns, values, rows = list[int](), list[float](), list[int]()
    low, high = list[float](), list[float]()

    def add(cells: Sequence[int], numbers: Sequence[float], bound: float, equality: bool) -> None:
        rows.extend([len(low)] * len(cells))
        columns.extend(cells)
        values.extend(numbers)
        low.append(bound)
        high.append(bound if equality else np.inf)

    for group in program.constraints:
        coefficients = [float(a) for a in group.coefficients]
        # Whole numbers need no margin
        whole_numbers = all(a.denominator == 1 for a in (*group.coefficients, group.bound))
        slack = 0.0 if group.equality or whole_numbers else margin
        for row in group.cells.tolist():
            add(row, coefficients, float(group.bound * keys) + slack, group.equality)
    cost = [float(price) for price in program.cost]
    if near is not None:
        cost = [0.0] * size + [1.0] * integers
        for k, p in enumerate(near):
            add([size + k, k], [1.0, -1.0], -float(p * keys), False)
            add([size + k, k], [1.0, 1.0], float(p * keys), False)
    shape = (len(low), len(cost))
    # 32-bit indices: milp of scipy below 1.15 takes no others
    places = np.array(rows, np.int32), np.array(columns, np.int32)
    matrix = sparse.csr_array((values, places), shape=shape)
    result = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        integrality=(np.arange(len(cost)) < integers).astype(np.int64),
        bounds=Bounds(0, np.inf),
        options={
            "node_limit": max(work // len(cost), 1),
            "time_limit": _SECONDS,
            "mip_rel_gap": 1e-4,
        },
    )
    bound = getattr(result, "mip_dual_bound", None)
    least = None if bound is None or not np.isfinite(bound) else bound / keys
    numbers = None if result.x is None else [round(x) for x in result.x[:integers].tolist()]
    return _Found(result.status, numbers, least)
