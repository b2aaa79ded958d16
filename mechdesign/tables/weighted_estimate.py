"""Independent unbiased measurements of cells, weighted sums of them, and how good these are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mechdesign.base import BitSource, Floats, Integers
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.noise.discrete_laplace import DiscreteLaplace
from mechdesign.tables.estimates import group_errors, half_width, whole_ends


class MeasurementErrors(NamedTuple):
    """The errors of independent unbiased measurements, as far as they are known.

    All have shape (measurements,), as in `mechdesign.tables.estimates`.
    """

    variances: Floats  # unbiased estimates of the variances
    least: Floats  # the smallest variance, whatever the true count is
    worst: Floats  # the largest
    spread: Floats  # the largest variance of the estimate of the variance
    tails: Floats  # the largest fourth cumulant of the measurement
    step: Floats  # the largest distance of two neighbouring values of the measurement

    @classmethod
    def of_noise(cls, alphas: Sequence[Fraction | None]) -> MeasurementErrors:
        """Return those of sums with discrete Laplace noise."""
        laws = {alpha: DiscreteLaplace(alpha=alpha) for alpha in set(alphas) if alpha is not None}
        fixed: dict[Fraction | None, tuple[float, float, float]] = {None: (0.0, 0.0, 0.0)}
        for alpha, law in laws.items():
            fourth = law.fourth_moment - 3 * law.variance**2
            fixed[alpha] = float(law.variance), float(fourth), 1.0
        variance, tails, step = np.array([fixed[alpha_] for alpha_ in alphas]).reshape(-1, 3).T
        return cls(variance, variance.copy(), variance.copy(), np.zeros(len(alphas)), tails, step)

    def and_then(self, others: MeasurementErrors) -> MeasurementErrors:
        """Return those of these measurements and of others after them."""
        pairs = zip(self, others, strict=True)
        return MeasurementErrors(*(np.concatenate(pair) for pair in pairs))


class MeasuredCells:
    """The measurements of many cells, each with an unbiased estimate of its count.

    Shapes: `sizes` (cells,); `worst` (cells,), the largest variance of each estimate over true
    counts.
    """

    def __init__(self, sizes: Integers, mechanisms: Mapping[int, Mechanism]) -> None:
        distinct, self._which = np.unique(sizes, return_inverse=True)
        self._groups = [group_errors(mechanisms[size]) for size in distinct.tolist()]
        lengths = np.array([len(group.values) for group in self._groups])
        self._start = (np.cumsum(lengths) - lengths)[self._which]
        self._values = np.concatenate([group.values for group in self._groups])
        self._estimates = np.concatenate([group.variance_estimates for group in self._groups])
        self.worst = self._each([group.worst for group in self._groups])

    def _each(self, by_size: list[float]) -> Floats:
        result: Floats = np.array(by_size)[self._which]
        return result

    def values(self, outputs: Integers) -> Floats:
        """Return the unbiased estimates from the cells' outputs: shape (cells,)."""
        result: Floats = self._values[self._start + outputs]
        return result

    def errors(self, outputs: Integers) -> MeasurementErrors:
        """Return what is known of the errors of `values`."""
        return MeasurementErrors(
            self._estimates[self._start + outputs],
            self._each([group.least for group in self._groups]),
            self.worst,
            self._each([group.spread for group in self._groups]),
            self._each([group.tails for group in self._groups]),
            self._each([group.step for group in self._groups]),
        )

    def draw(self, counts: Integers, source: BitSource) -> Integers:
        """Draw new outputs, (cells,), for counts (cells,)."""
        result = np.empty_like(counts)
        for place, group in enumerate(self._groups):
            cells = self._which == place
            result[cells] = group.mechanism.sampler.outputs(counts[cells], source)
        return result


@dataclass(frozen=True)
class WeightedEstimate:
    """An unbiased estimate of a number of people, from several measurements.

    Attributes
    ----------
    value : float
        The estimate. It is not clipped: it may be negative, or exceed the number of people.
    coefficients : numpy.ndarray of float64
        Shape (measurements,): the weight of each.
    errors : MeasurementErrors
    people : int
        The largest number that is possible.
    """

    value: float
    coefficients: Floats
    errors: MeasurementErrors
    people: int

    @cached_property
    def variance(self) -> float:
        """The variance of `value`, estimated without bias, then moved into its possible range."""
        least = float(self._squares @ self.errors.least)
        return min(max(float(self._squares @ self.errors.variances), least), self.worst_variance)

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance of `value` over all possible true counts."""
        return float(self._squares @ self.errors.worst)

    @property
    def standard_error(self) -> float:
        """The square root of `variance`."""
        return math.sqrt(self.variance)

    def interval(self, confidence: float = 0.95) -> tuple[int, int]:
        """Return an interval in 0 .. `people` that covers the number with about this probability.

        As that of `mechdesign.tables.TotalEstimate` for several groups, with the weights of the
        measurements: at least about the confidence. Both ends are included.

        Parameters
        ----------
        confidence : float, default 0.95
            Strictly between 0 and 1.

        Raises
        ------
        ValueError
            Another confidence.
        """
        half = half_width(
            confidence,
            float(self._squares @ self.errors.variances),
            float(self._squares**2 @ self.errors.spread),
            self.worst_variance,
            float(self._squares**2 @ self.errors.tails),
            float((np.abs(self.coefficients) * self.errors.step).max(initial=0.0)),
        )
        return whole_ends(self.value, half, self.people)

    @property
    def _squares(self) -> Floats:
        return self.coefficients**2

    def __repr__(self) -> str:
        return f"WeightedEstimate(value={self.value:.6g}, standard_error={self.standard_error:.4g})"
