"""Linear programs in floats, by HiGHS.

This is the only file that imports highspy. Nothing here is trusted: it only suggests a basis.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import highspy
import numpy as np
from flint import fmpq
from scipy import sparse

from mechdesign.base import Booleans, Floats
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.lp.simplex import Basis, Problem

#: A function that is called from time to time with a short text about the progress.
Progress: TypeAlias = Callable[[str], None]

#: The number of constraints above which the interior point method, with crossover, is used.
#:
#: There it is quicker on mechanism programs than the dual simplex method.
INTERIOR_POINT_CONSTRAINTS = 5_000


@dataclass(frozen=True)
class FloatProgram:
    """A program: minimise cost x, ``row_lower <= matrix x <= row_upper`` and ``x >= lower``."""

    matrix: sparse.csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    cost: Floats

    @classmethod
    def of(cls, problem: Problem) -> FloatProgram:
        """Return the nearest floats to an exact program."""
        start = np.cumsum([0, *(len(each.terms) for each in problem.constraints)])
        index = np.array([v for each in problem.constraints for v in each.terms])
        # Few coefficients are distinct, and converting one is slow.
        known: dict[fmpq, float] = {}
        terms = (a for each in problem.constraints for a in each.terms.values())
        data = np.array(
            [known[a] if a in known else known.setdefault(a, to_float(a)) for a in terms]
        )
        bounds = np.array([to_float(each.bound) for each in problem.constraints])
        cost = np.array([to_float(c) for c in problem.cost])
        matrix = sparse.csr_array((data, index, start), shape=(len(bounds), len(cost)))
        return cls(
            matrix, bounds, np.where(problem.equality, bounds, np.inf), np.zeros(len(cost)), cost
        )

    def scaled(self, sizes: Floats) -> FloatProgram:
        """Return the same program, of the same bases, in variables divided by ``sizes`` > 0."""
        # Bounds of constraints other than 0 stay the same, the other constraints are scaled to
        # coefficients of at most 1.
        matrix = sparse.csr_array(self.matrix * sizes)
        # Scaling a row with the right side 0 changes nothing but how tolerances count; one with
        # another right side would have to be scaled with it, and sums of probabilities are of order
        # 1 already.
        largest = abs(matrix).max(axis=1).toarray().ravel()
        free = (self.row_lower == 0) & (largest > 0)
        matrix.data /= np.repeat(np.where(free, largest, 1.0), np.diff(matrix.indptr))
        return replace(self, matrix=matrix, lower=self.lower / sizes, cost=self.cost * sizes)


def to_float(value: fmpq) -> float:
    """Return the nearest float, infinite where there is none."""
    try:
        # Python rounds the quotient of two integers correctly, however long they are; a quotient of
        # their floats would overflow.
        return int(value.p) / int(value.q)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True)
class Optimum:
    """The answer of the solver, unproved: a basis, and of its vertex what is told in floats."""

    basis: Basis
    value: float
    y: Floats  # (rows,), the multipliers


def solve(
    program: FloatProgram,
    start: Basis | None = None,
    presolve: bool = True,
    progress: Progress | None = None,
    tolerance: float = 1e-7,
    iterations: int | None = None,
) -> Optimum:
    """Return a basis that is optimal to within floating point tolerances."""
    # If ``iterations`` are given, it is found by at most so many of the simplex method, or
    # SolverFailure raised.
    # It is the last basis if the solver could not tell whether that is optimal.
    highs = _SilentHighs()  # type: ignore[no-untyped-call]
    # Reproducible; and programs of this size gain nothing from threads.
    highs.setOptionValue("threads", 1)
    # It may cycle on badly scaled programs
    limit = 100 * len(program.row_lower) if iterations is None else iterations
    highs.setOptionValue("simplex_iteration_limit", limit)
    highs.setOptionValue("primal_feasibility_tolerance", tolerance)
    highs.setOptionValue("dual_feasibility_tolerance", tolerance)
    # Presolve would discard the basis that is given.
    if start is not None or not presolve:
        highs.setOptionValue("presolve", "off")
    elif iterations is None and len(program.row_lower) > INTERIOR_POINT_CONSTRAINTS:
        highs.setOptionValue("solver", "ipm")
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_, model.col_lower_ = program.cost, program.lower
    model.col_upper_ = np.full(len(program.cost), highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = program.matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = program.matrix.data
    highs.passModel(model)
    if start is not None:
        highs.setBasis(_to_highs(start, program))
    if progress is not None:
        _report(highs, progress)
    _run(highs)
    status = highs.getModelStatus()
    # This only suggests infeasibility: the caller proves or refutes it exactly.
    if status in (
        highspy.HighsModelStatus.kInfeasible,
        highspy.HighsModelStatus.kUnboundedOrInfeasible,
    ):
        raise Infeasible("no mechanism has all of these properties at this privacy")
    statuses = highs.getBasis()
    # Any valid basis will do otherwise, also at the iteration limit or with an unknown status: its
    # vertex is computed exactly, and refined if it is not optimal.
    if (
        not statuses.valid
        or status
        in (
            highspy.HighsModelStatus.kUnbounded,
            highspy.HighsModelStatus.kSolveError,
        )
        or (iterations is not None and status != highspy.HighsModelStatus.kOptimal)
    ):
        raise SolverFailure(f"HiGHS stopped with status {highs.modelStatusToString(status)!r}")
    basis = Basis(_basic(statuses.col_status), _basic(statuses.row_status))
    y = np.array(highs.getSolution().row_dual)
    return Optimum(basis, highs.getInfo().objective_function_value, y)


def _basic(statuses: Any) -> Booleans:
    return np.fromiter(
        (status == highspy.HighsBasisStatus.kBasic for status in statuses), dtype=np.bool_
    )


def _to_highs(basis: Basis, program: FloatProgram) -> highspy.HighsBasis:
    status = highspy.HighsBasisStatus
    result = highspy.HighsBasis()
    bounded = np.isfinite(program.lower)
    result.col_status = [
        # A nonbasic variable rests at a bound: one whose bound is infinite is free, and rests at 0.
        status.kBasic if basic else status.kLower if low else status.kZero
        for basic, low in zip(basis.columns, bounded, strict=True)
    ]
    result.row_status = [status.kBasic if basic else status.kLower for basic in basis.rows]
    result.valid = True
    return result


class _SilentHighs(highspy.Highs):
    """A silent solver: not even the version is printed, as by some releases with callbacks."""

    def enableCallbacks(self) -> None:
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def _run(highs: highspy.Highs) -> None:
    """Run the solver in a thread of its own, so that a keyboard interrupt is handled at once."""
    # Not by `startSolve`, whose locks belong to the class: it refuses where any thread solves.
    # Nor by `join`: where that is interrupted, Python 3.11 takes a thread that runs for one that
    # has ended, as it releases the lock that the thread holds.
    stopped, ended, failures = threading.Event(), threading.Event(), list[BaseException]()

    def stop(event: Any) -> None:
        if stopped.is_set():
            # Interrupted by a callback, since a thread cannot be stopped from outside.
            event.data_in.user_interrupt = True

    def solve() -> None:
        try:
            highs.run()
        except BaseException as failure:
            failures.append(failure)
        finally:
            ended.set()

    highs.cbSimplexInterrupt.subscribe(stop)
    highs.cbIpmInterrupt.subscribe(stop)
    solver = threading.Thread(target=solve, daemon=True)
    try:
        solver.start()
        while not ended.wait(0.1):  # Python handles signals between short waits only
            pass
    except BaseException:
        stopped.set()
        if solver.ident is not None:
            ended.wait()
        raise
    if failures:
        raise failures[0]


def _report(highs: highspy.Highs, progress: Progress) -> None:
    def simplex(event: Any) -> None:
        progress(f"simplex iteration {event.data_out.simplex_iteration_count}")

    def interior(event: Any) -> None:
        if event.data_out.ipm_iteration_count >= 0:  # it is -1 inside an iteration
            progress(f"interior point iteration {event.data_out.ipm_iteration_count}")

    highs.cbSimplexInterrupt.subscribe(simplex)
    highs.cbIpmInterrupt.subscribe(interior)
