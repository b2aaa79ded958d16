"""Mechanisms for totals: the least variance of the unbiased estimate of a count.

The error of a total adds up from those of the unbiased estimates of its cells. Among all mechanisms
for counts 0 .. n with alpha between adjacent counts, whatever their outputs, GM has the least
variance of this estimate, at every true count j at once:

    (2 - (alpha^j + alpha^(n-j)) / (1 + alpha)) alpha / (1 - alpha)^2,

which the notation page proves. Where GM lacks a property that is asked for, `least_variance`
searches for a mechanism that has it, and says how far from this bound it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.optimize
from scipy import sparse

from mechdesign import named
from mechdesign.base import Floats, ProgressMeter, Rational, brief, whole
from mechdesign.exceptions import Infeasible, NoUnbiasedEstimate, SolverFailure
from mechdesign.losses import L0, L1, Costs, prior_over
from mechdesign.lp.highs import FloatProgram
from mechdesign.lp.simplex import Problem
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.optimisation.formulation import mechanism_program
from mechdesign.optimisation.optimal import checked, design
from mechdesign.optimisation.theory import LARGEST_GROUP
from mechdesign.privacy import Metric, Privacy
from mechdesign.properties import Property, PropertyLike
from mechdesign.requirements import Unbiased

# The factors by which values of outputs that no mechanism has are spread, until one has them.
_SCALES = (1.0, 1.03, 1.1, 1.3, 2.0, 4.0, 8.0)

#: The parts of their range by which values of outputs are changed at once, at first and at last.
_FIRST_RADIUS, _LAST_RADIUS = 0.2, 1e-4

# The share of the variance by which a step must lower it, or the next ones are shorter.
_GAIN = 1e-3

# The denominators of values of outputs; the first that costs at most `_ROUNDING` is taken.
_DENOMINATORS = (10, 100, 1000, 10**4, 10**6)

_ROUNDING = 1e-4  # the share by which short values of outputs may raise the variance


@dataclass(frozen=True)
class LeastVariance:
    """A mechanism for totals, and a proved bound for all others."""

    # The table, with the properties asked for. Its certificate, if it has one, says that no
    # mechanism with these properties has a smaller variance when the same numbers are estimated
    # from its outputs.
    mechanism: Mechanism
    estimate: UnbiasedEstimate  # what is estimated from each output, with exact variances
    variance: Fraction  # that of the estimate of one count, drawn from the prior; exact
    # No mechanism of this privacy has less, whatever its outputs and properties. Equal to
    # ``variance`` where the mechanism is GM.
    bound: Fraction

    def __str__(self) -> str:
        error, least = (brief(math.sqrt(value), 6) for value in (self.variance, self.bound))
        if self.variance == self.bound:
            return f"standard error of the unbiased estimate: {error}, the least possible (proved)"
        return (
            f"standard error of the unbiased estimate: {error}; no mechanism of this privacy has"
            f" less than {least} (proved)"
        )


def least_unbiased_variances(
    n: int, privacy: Privacy | float | Rational | None = None, *, alpha: Rational | None = None
) -> tuple[Fraction, ...]:
    """Return the least variance of an unbiased estimate, (n + 1,), which GM attains."""
    n = whole(n, "n", what="a whole number of respondents")
    a = Privacy.of(privacy, alpha=alpha).alpha
    if n == 0:
        return (Fraction(0),)
    if a == 1:
        raise NoUnbiasedEstimate("there is no unbiased estimate: at alpha 1 outputs tell nothing")
    scale = a / (1 - a) ** 2
    return tuple((2 - (a**j + a ** (n - j)) / (1 + a)) * scale for j in range(n + 1))


def least_variance(
    n: int,
    privacy: Privacy | float | Rational,
    properties: Iterable[PropertyLike] = (),
    *,
    prior: Sequence[Rational] | None = None,
    progress: bool = False,
) -> LeastVariance:
    """Return a mechanism whose unbiased estimate of the count has a small variance, for totals.

    Without properties, or where it has them, that is GM, and no mechanism is better. Otherwise
    numbers for the outputs are searched for; ``bound`` says how much better any could be. With n 8,
    alpha 9/10 and WH + CM the standard error is 10.90, the bound 10.75; WM has 19.5.

    Shapes: `prior` (n + 1,).
    """
    # Given the numbers, the best mechanism is a linear program, which `design` solves and
    # certifies. The variance as a function of them has several minima, so the mechanism need not be
    # the best.
    privacy = Privacy.of(privacy)
    n = whole(n, "n", what="a whole number of respondents")
    inputs, _, wanted = checked(n, None, properties)
    if isinstance(privacy.neighbours, (Metric, tuple)):
        raise ValueError("the least variance is known between adjacent counts only")
    size = inputs.size
    weights = prior_over(size, prior)
    variances = least_unbiased_variances(size - 1, alpha=privacy.alpha)
    bound = sum((w * v for w, v in zip(weights, variances, strict=True)), Fraction(0))
    best = Mechanism.from_parts(named.geometric(size - 1, alpha=privacy.alpha), None)
    if privacy.neighbours == "adjacent" and all(item.holds(best) for item in wanted):
        return LeastVariance(best, UnbiasedEstimate(best, weights), bound, bound)
    whole(n, "n", 0, LARGEST_GROUP, what="a group whose mechanisms can be searched")
    search = _Search(size, privacy, wanted, weights)
    minima: list[tuple[float, Floats]] = []
    with ProgressMeter(f"least variance n = {size - 1}", shown=progress) as meter:
        starts = list(_starts(size, privacy, wanted))
        for k, start in enumerate(starts):
            meter.say(f"start {k + 1} of {len(starts)}")
            minima += search.minimum(start)
        meter.say("exact design")
        best_first = (values for _, values in sorted(minima, key=lambda each: each[0]))
        mechanism = next(filter(None, (_exact(search, values) for values in best_first)), None)
        if mechanism is None:
            raise Infeasible(
                "no mechanism with these properties and an unbiased estimate was found"
            )
    estimate = UnbiasedEstimate(mechanism, weights)
    return LeastVariance(mechanism, estimate, estimate.variance(weights), bound)


class _Search:
    """A search for the least variance of mechanisms whose outputs have given values, in floats."""

    def __init__(
        self,
        size: int,
        privacy: Privacy,
        properties: Sequence[Property],
        prior: Sequence[Fraction],
    ) -> None:
        self.size, self.privacy, self.properties, self.prior = size, privacy, properties, prior
        program = FloatProgram.of(
            Problem.of(mechanism_program(size, size, privacy, L0(), properties))
        )
        equations = program.row_lower == program.row_upper
        self._matrix = -program.matrix[~equations]
        self._bounds = -program.row_lower[~equations]
        self._equations, self._sides = program.matrix[equations], program.row_lower[equations]
        self._weights = np.array([float(weight) for weight in prior])
        self._truth = np.arange(size, dtype=np.float64)
        self._each_input = sparse.eye_array(size)

    def table(self, values: Floats) -> tuple[float, Floats] | None:
        """Return the least variance, and its table, of these values of outputs; None if none."""
        apart = values[:, None] - self._truth
        # For fixed values the variance is linear in the table, and so is unbiasedness.
        optimum = self._solved(
            (apart**2 * self._weights).ravel(), sparse.kron(values[None, :], self._each_input)
        )
        return None if optimum is None else (optimum[0], optimum[1].reshape(self.size, self.size))

    def minimum(self, start: Floats) -> Iterator[tuple[float, Floats]]:
        """Yield a local minimum near some values of outputs, spread until a mechanism has them."""
        # Values and table are changed together, by linear programs in which their product is
        # replaced by its linear part; values change by at most a radius, which shrinks.
        middle = (self.size - 1) / 2
        for scale in _SCALES:
            values = middle + scale * (start - middle)
            solution = self.table(values)
            if solution is not None:
                yield self._descended(values, *solution)
                return

    def _descended(self, values: Floats, variance: float, table: Floats) -> tuple[float, Floats]:
        radius = _FIRST_RADIUS * float(np.ptp(values))
        while radius > _LAST_RADIUS * float(np.ptp(values)):
            change = self._step(values, table, radius)
            tried = None if change is None else self.table(values + change)
            gained = 0.0 if tried is None else variance - tried[0]
            # A trust region: the linear part describes the product near the present point only, so
            # that the radius shrinks where a step does not keep what it promised.
            if gained < _GAIN * variance:
                radius /= 4
            if change is not None and tried is not None and gained > 0:
                values, (variance, table) = values + change, tried
        return variance, values

    def _step(self, values: Floats, table: Floats, radius: float) -> Floats | None:
        """Return by how much to change the values, at most ``radius`` each, in floats."""
        apart = values[:, None] - self._truth
        # The change is a variable from 0 to twice the radius, less the radius
        cost = np.concatenate(
            [(apart**2 * self._weights).ravel(), 2 * (apart * table) @ self._weights]
        )
        unbiased = sparse.kron(values[None, :], self._each_input)
        moved = table.T @ np.full(self.size, radius)
        solution = self._solved(
            cost,
            sparse.hstack([unbiased, sparse.csr_array(table.T)]),
            moved,
            2 * radius,
        )
        return None if solution is None else solution[1][-self.size :] - radius

    def _solved(
        self,
        cost: Floats,
        unbiased: sparse.sparray,
        offset: Floats | float = 0.0,
        width: float = 0.0,
    ) -> tuple[float, Floats] | None:
        """Solve the linear program of mechanisms, with more variables from 0 to ``width``."""
        more = len(cost) - self.size**2
        widened = (
            sparse.hstack([matrix, sparse.csr_array((matrix.shape[0], more))])
            for matrix in (self._matrix, self._equations)
        )
        matrix, equations = widened
        result = scipy.optimize.linprog(
            cost,
            matrix,
            self._bounds,
            sparse.vstack([equations, unbiased]),
            np.concatenate([self._sides, self._truth + offset]),
            [(0, None)] * self.size**2 + [(0, width)] * more,
            method="highs",
        )
        if result.status or result.fun is None or result.x is None:
            return None
        return float(result.fun), result.x


def _starts(size: int, privacy: Privacy, properties: Sequence[Property]) -> Iterator[Floats]:
    """Yield values of outputs to start from: of mechanisms best for single counts, and of GM."""
    # Those of GM have its two ends repeated: the first k outputs then stand for the same, and so do
    # the last k.
    for loss in (L0(), L1()):
        mechanism = design(size - 1, privacy, loss, properties).mechanism
        with suppress(NoUnbiasedEstimate):
            yield np.array([float(value) for value in UnbiasedEstimate(mechanism).values])
    beyond = float(privacy.alpha / (1 - privacy.alpha))
    for k in sorted({1, size // 4, size // 3, size // 2} - {0}):
        values = np.arange(size, dtype=np.float64)
        values[:k], values[size - k :] = -beyond, size - 1 + beyond
        yield values


def _exact(search: _Search, values: Floats) -> Mechanism | None:
    """Return the exact mechanism for values of outputs that are found in floats, made short."""
    wanted = search.table(values)
    for denominator in _DENOMINATORS:
        # Few digits first: the exact design's numbers grow with those of its costs.
        short = np.round(values * denominator)
        rounded = search.table(short / denominator)
        if wanted is None or rounded is None or rounded[0] > wanted[0] * (1 + _ROUNDING):
            continue
        exact_values = [Fraction(int(value), denominator) for value in short]
        costs = [[(value - j) ** 2 for j in range(search.size)] for value in exact_values]
        properties = [*search.properties, Unbiased(exact_values)]
        with suppress(Infeasible, SolverFailure):  # what floats took for a mechanism may be none
            loss = Costs(costs, search.prior)
            return design(search.size - 1, search.privacy, loss, properties).mechanism
    return None
