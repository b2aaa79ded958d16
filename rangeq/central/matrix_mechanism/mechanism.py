"""MatrixMechanism: a strategy's numbers with noise, and the answers that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core import Answer, normal_quantile
from frequency.postprocess import norm_sub
from mechdesign import Privacy
from mechdesign.accounting import ZCDP, ApproximateDP
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.base import Floats, Integers, ball, bit_source, precision, rational_of, shown
from mechdesign.exceptions import PrivacyViolation
from mechdesign.noise.discrete import (
    LARGEST_SCALE,
    LARGEST_SIGMA2,
    LEAST_SIGMA2,
    DiscreteGaussian,
    DiscreteLaplace,
)
from mechdesign.noise.staircase import GroupedNoise
from rangeq.central.estimate import CentralEstimate, HistogramMechanism, weighted_sum
from rangeq.central.inputs import LARGEST_DOMAIN, InvalidHistogram, MarginalCounts, histogram
from rangeq.central.matrix_mechanism.strategy import (
    SLACK,
    Strategy,
    UnanswerableQuery,
    View,
    ViewStrategy,
    require_users,
    sum_of_parts,
)
from rangeq.central.matrix_mechanism.workload import Workload, gram_of
from rangeq.core import BoxSums

#: The promise of a release; two data sets are neighbours when one has one user more.
Promise: TypeAlias = Privacy | ZCDP | ApproximateDP

_BITS = 256

_WHOLE = 1 << 16  # sigma^2 above it is rounded up to an integer

# The sigma^2 of discrete Gaussian noise above which intervals are those of normal noise: half a
# step is then less than a fiftieth of their half widths.
_NORMAL = 256


@dataclass(frozen=True)
class NoiseAudit:
    """The result of an exact check of the noise of a strategy.

    Attributes
    ----------
    noise, allowed : Fraction
        The privacy loss of the numbers that are drawn, and the largest that keeps the promise: for
        Laplace noise at least the largest likelihood ratio, (1 / alpha)^l1 rounded up, for a
        strategy with noise of its own its `Strategy.loss`; for Gaussian noise l2_squared / sigma^2,
        exact.
    """

    noise: Fraction
    allowed: Fraction

    @property
    def holds(self) -> bool:
        """Whether the promise is kept; exact."""
        return self.noise <= self.allowed

    def require(self) -> None:
        """Raise PrivacyViolation unless the promise is kept."""
        if not self.holds:
            raise PrivacyViolation(self.noise, self.allowed, "the noisy numbers", (0, 1))


@dataclass(frozen=True, eq=False)
class MatrixErrors:
    """Variances of a strategy's answers, of the noise that is drawn.

    A query that does not follow from what is measured is an `UnanswerableQuery`.

    Attributes
    ----------
    strategy, noise : Strategy and float
        What is measured, and the variance of the noise of each number.
    """

    strategy: Strategy
    noise: float

    def variance(self, first: Integers, last: Integers) -> Floats:
        """The variances of the sums over boxes: see `Errors`.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Shape (attributes, boxes): closed ends.

        Returns
        -------
        numpy.ndarray of float64
            Shape (boxes,): squared users.

        Raises
        ------
        UnanswerableQuery
            A box does not follow from what is measured.
        """
        return self.noise * self.strategy.variance(first, last)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """The variance of the sum over a product of sets of places: see `Errors`.

        Parameters
        ----------
        weights : sequence of numpy.ndarray of float64
            For each attribute 1 for the places in the set, else 0.

        Returns
        -------
        float
            Squared users.

        Raises
        ------
        UnanswerableQuery
            It does not follow from what is measured.
        """
        return self.noise * self.strategy.variance_of(weights)

    def mean(self) -> float:
        """The mean over all boxes, in squared users."""
        boxes = Workload.of("ranges", self.strategy.sizes)
        return self.noise * self.strategy.workload_variance(boxes)


class MatrixMechanism(HistogramMechanism):
    """The numbers of a strategy with integer noise that keeps a promise exactly.

    Parameters
    ----------
    strategy : Strategy
        What is measured.
    promise : Privacy, ZCDP or ApproximateDP
        What a release keeps: with `Privacy` the noise is discrete Laplace noise, or the strategy's
        own, otherwise discrete Gaussian noise. Neighbours are data sets of which one has one user
        more.
    sigma2 : Fraction, optional
        Of Gaussian noise, instead of the least that keeps the promise: `audit` decides.

    Raises
    ------
    TypeError
        Another promise.
    ValueError
        A promise that is none (alpha = 1), that is about other neighbours, or so strict or so weak
        that there is no such noise.
    """

    def __init__(
        self, strategy: Strategy, promise: Promise, sigma2: Fraction | None = None
    ) -> None:
        if not isinstance(promise, (Privacy, ZCDP, ApproximateDP)):
            raise TypeError(
                "a promise is a Privacy, a ZCDP or an ApproximateDP, got a"
                f" {type(promise).__name__}"
            )
        self.strategy, self.promise = strategy.keeping(promise), promise
        self._sigma2 = sigma2
        self.noise  # noqa: B018  a promise that cannot be kept is found here

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.strategy.sizes

    @cached_property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian | GroupedNoise:
        """The noise of each number; of a strategy with noise of its own that."""
        if not isinstance(self.promise, Privacy):
            sigma2 = self._sigma2 or self.strategy.l2_squared * self.promise.noise_ratio
            if sigma2 > LARGEST_SIGMA2:
                raise ValueError(
                    f"{self.promise!r} is too strict for a strategy of squared sensitivity"
                    f" {float(self.strategy.l2_squared):.3g}: noise would drown everything"
                )
            # Rounded up: the loss l2_squared / sigma^2 only becomes smaller
            noise = DiscreteGaussian(
                math.ceil(sigma2) if sigma2 > _WHOLE else max(sigma2, LEAST_SIGMA2)
            )
            if isinstance(self.promise, ApproximateDP):
                GaussianLoss.of(noise, self.strategy.l2_squared)  # a coarse grid is refused
            return noise
        if self.promise.neighbours != "adjacent" or self.promise.alpha == 1:
            raise ValueError(
                "the promise of a release is a Privacy of adjacent counts with alpha below 1, got"
                f" {self.promise!r}"
            )
        if self.strategy.noise is not None:
            return self.strategy.noise
        # Of a part of epsilon so that rounding alpha keeps the whole
        share = Fraction(self.promise.epsilon) * SLACK / self.strategy.l1
        alpha = Privacy.from_epsilon(share).alpha
        if 1 - alpha < Fraction(1, LARGEST_SCALE):
            raise ValueError(
                f"epsilon {self.promise.epsilon:.3g} is too small for a strategy of sensitivity"
                f" {self.strategy.l1}: noise would drown everything"
            )
        return DiscreteLaplace(alpha=alpha)

    @cached_property
    def noise_variance(self) -> float:
        """The variance of the noise of each number, in its squared units."""
        return float(self.noise.variance)

    @property
    def cost(self) -> Fraction | GaussianLoss:
        """The cost of a release, for `mechdesign.Ledger.spend`.

        With `Privacy` an epsilon, rounded up; otherwise the loss by Gaussian noise.

        Raises
        ------
        ValueError
            The integers of the strategy are so small that only `ZCDP` is proved of the noise.
        """
        if isinstance(self.promise, Privacy):
            return Fraction(self.promise.epsilon)
        assert isinstance(self.noise, DiscreteGaussian)
        return GaussianLoss.of(self.noise, self.strategy.l2_squared)

    def audit(self) -> NoiseAudit:
        """The privacy loss of what is drawn, and what is allowed.

        One user more or less changes the numbers by a column of the strategy's integers, whose norm
        is exact. So no float decides.

        Returns
        -------
        NoiseAudit
            ``audit().holds`` compares exactly.
        """
        # The likelihood ratio of discrete Laplace noise is alpha^-d for a shift by d in a number:
        # over all numbers (1 / alpha)^l1 at most, and of Gaussian noise the divergence is in
        # proportion to l2_squared / sigma^2
        if self.strategy.noise is not None:
            assert isinstance(self.promise, Privacy)
            return NoiseAudit(self.strategy.loss, 1 / self.promise.alpha)
        if isinstance(self.promise, Privacy):
            assert isinstance(self.noise, DiscreteLaplace)
            return NoiseAudit(
                _power_above(1 / self.noise.alpha, self.strategy.l1), 1 / self.promise.alpha
            )
        assert isinstance(self.noise, DiscreteGaussian)
        loss = self.strategy.l2_squared / self.noise.sigma2
        return NoiseAudit(loss, 1 / self.promise.noise_ratio)

    def noisy_numbers(
        self, counts: npt.ArrayLike | MarginalCounts, rng: np.random.Generator | None = None
    ) -> Integers:
        """Draw the noisy numbers of a release: all that it discloses of the histogram.

        Every call is a release of its own, and costs the promise again.

        Parameters
        ----------
        counts, rng : as of `release`
            The histogram, of shape `sizes`, and the randomness. Of a strategy of marginals or
            residuals a `MarginalCounts` instead, if all its tables are in it.

        Returns
        -------
        numpy.ndarray of int64
            Shape (strategy.rows,).

        Raises
        ------
        InvalidHistogram, PrivacyViolation
            As `release`.
        """
        # Before the histogram is looked at: a strategy whose noise is wrong releases nothing
        self.audit().require()
        source = bit_source(rng)
        exactly = self._counted(counts)
        return self.strategy.measure(exactly) + self.noise.draw(self.strategy.rows, source)

    def _counted(self, counts: Any) -> Any:
        """A histogram, or marginals for a strategy that takes them: checked."""
        if isinstance(counts, MarginalCounts) and isinstance(self.strategy, ViewStrategy):
            if counts.sizes != self.sizes:
                raise InvalidHistogram(f"the tables are of {counts.sizes} cells, not {self.sizes}")
            if counts.parts and counts.parts != self.strategy.whole_weights:
                raise InvalidHistogram("users are divided into other parts than what is measured")
            require_users(counts.users)
            return counts
        exactly = histogram(counts, self.sizes)
        require_users(int(exactly.sum()))
        return exactly

    def release(
        self, counts: npt.ArrayLike | MarginalCounts, rng: np.random.Generator | None = None
    ) -> MatrixEstimate:
        return self.estimate(self.noisy_numbers(counts, rng))

    def estimate(self, noisy: Integers) -> MatrixEstimate:
        """Estimate the histogram from noisy numbers.

        Parameters
        ----------
        noisy : numpy.ndarray of int64
            What `noisy_numbers` gave.

        Returns
        -------
        MatrixEstimate
            As of `release`.
        """
        return MatrixEstimate(self, self.strategy.parts(noisy))

    @cached_property
    def errors(self) -> MatrixErrors:
        return MatrixErrors(self.strategy, self.noise_variance)

    def workload_variance(self, workload: Any) -> float:
        """Return the mean variance of a workload's queries.

        Parameters
        ----------
        workload : str, array_like, sequence or Workload
            As for `Workload.of`.

        Returns
        -------
        float
            Squared users.

        Raises
        ------
        InvalidWorkload, UnanswerableQuery
            What is no workload over these cells, or has a query that does not follow from what is
            measured.
        """
        asked = Workload.of(workload, self.sizes)
        return self.noise_variance * self.strategy.workload_variance(asked)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MatrixMechanism):
            return NotImplemented
        mine, others = (self.strategy, self.promise), (other.strategy, other.promise)
        return mine == others and self.noise_variance == other.noise_variance

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MatrixMechanism({self.strategy!r}, {self.promise!r})"


class MatrixEstimate(CentralEstimate):
    """Answers of a matrix mechanism: those of `CentralEstimate`, and to any linear query.

    They are unbiased least-squares estimates. Where the strategy does not determine all cells,
    queries that do not follow from its numbers are refused with `UnanswerableQuery`.

    Parameters
    ----------
    mechanism : MatrixMechanism
        What released it.
    parts : mapping of tuple of int to numpy.ndarray
        See `Strategy.parts`.
    """

    mechanism: MatrixMechanism

    def __init__(self, mechanism: MatrixMechanism, parts: Mapping[View, Floats]) -> None:
        self.mechanism, self._parts = mechanism, parts

    @cached_property
    def _table(self) -> Floats:
        """All cells, also those that do not follow: shape `sizes`, read-only."""
        sizes = self.mechanism.sizes
        cells = sum_of_parts(sizes, self._parts)
        cells.setflags(write=False)
        return cells

    def linear(self, queries: npt.ArrayLike) -> Answer:
        """Return the answers to linear queries.

        Parameters
        ----------
        queries : array_like
            Shape ``sizes``, or (queries, *sizes) for several: the finite weight of each cell.

        Returns
        -------
        Answer
            Weighted numbers of users, with exact variances and intervals; arrays (queries,) for
            several.

        Raises
        ------
        ValueError
            Weights of another shape, or that are not finite.
        UnanswerableQuery
            One does not follow from what is measured.
        """
        given, sizes = np.asarray(queries, dtype=np.float64), self.mechanism.sizes
        many = given if given.ndim > len(sizes) else given[None]
        if many.shape[1:] != sizes or not np.isfinite(many).all():
            raise ValueError(
                f"linear queries are finite weights of shape {sizes} or (queries, *{sizes}), got"
                f" shape {given.shape}"
            )
        variances = self.mechanism.noise_variance * self.mechanism.strategy.linear_variances(many)
        values = many.reshape(len(many), -1) @ self._table.ravel()
        single = given.ndim == len(sizes)
        if single:
            return self._answered(float(values[0]), float(variances[0]))
        return self._answered(values, variances)

    def nonnegative(self, total: float | None = None) -> Floats:
        """The nearest histogram without negative numbers: biased, without variances.

        Near is what answers alike: of one attribute of at most 1,024 cells the squared differences
        of all ranges, prefixes and cells are added up, each kind over its unbiased variance. So the
        sum of these errors is at most the unbiased answers', whatever the table. Of more cells and
        of several attributes the strategy's numbers are compared, and the estimated total is kept.

        Parameters
        ----------
        total : float, optional
            The number of users, where it is public: at least 0. Then it is the sum. None: the sum
            is what follows, near the estimated one.

        Returns
        -------
        numpy.ndarray of float64
            Of the mechanism's shape: users.

        Raises
        ------
        ValueError
            A total that is none.
        UnanswerableQuery
            The strategy cannot tell all cells apart.
        """
        if total is not None and not 0 <= total < math.inf:
            raise ValueError(f"total must be a number of users, got {shown(total)}")
        counts, strategy = self.counts, self.mechanism.strategy
        if len(strategy.sizes) > 1 or strategy.sizes[0] > _MOST_WEIGHED:
            kept = max(self.n, 0.0) if total is None else total
            return nearest_counts(counts, strategy.normal, kept)
        gram = np.zeros((len(counts), len(counts)))
        for name in ("ranges", "prefixes", "cells"):
            asked = Workload.of(name, strategy.sizes)
            gram += gram_of(asked)[0] / (asked.count * strategy.workload_variance(asked))
        return nearest_counts(counts, lambda cells: gram @ cells, total)

    def whole(self) -> Integers:
        """Return the `nonnegative` histogram in whole users, of nearly the same total.

        It is biased, and has no variances.

        Returns
        -------
        numpy.ndarray of int64
            Of the mechanism's shape: users.

        Raises
        ------
        UnanswerableQuery
            The strategy cannot tell all cells apart.
        """
        return whole_counts(self.nonnegative())

    @property
    def step(self) -> float:
        noise = self.mechanism.noise
        if isinstance(noise, DiscreteGaussian) and noise.sigma2 > _NORMAL:
            return 0.0  # answers are as of normal noise
        # Noise is in whole users over the weights
        return 1 / min(self.mechanism.strategy.whole_weights.values(), default=1)

    def deviations(self, confidence: float) -> float:
        if isinstance(self.mechanism.noise, DiscreteGaussian):
            return normal_quantile(confidence)  # answers are sums of normal noise
        return super().deviations(confidence)

    @property
    def counts(self) -> Floats:
        """The number of users in each cell, of shape `sizes`, read-only.

        Raises
        ------
        UnanswerableQuery
            They do not follow, or are more than 2^26.
        """
        if not self.mechanism.strategy.full_rank:
            sizes = self.mechanism.sizes
            if math.prod(sizes) > LARGEST_DOMAIN:
                raise UnanswerableQuery(f"{len(sizes)} attributes have more than 2^26 cells")
            # The variances themselves are thrown away: computing them refuses cells that do not
            # follow
            cells = np.indices(sizes).reshape(len(sizes), -1)
            self.mechanism.strategy.variance(cells, cells)  # refuses what does not follow
        return self._table

    def box_sums(self, first: Integers, last: Integers) -> Floats:
        if not self.mechanism.strategy.full_rank:
            self.mechanism.strategy.variance(first, last)
        shares = (last - first + 1) / np.array(self.mechanism.sizes)[:, None]
        total = np.zeros(first.shape[1])
        for view, outside in self._asked(shares):
            inside = list(view)
            total += self._sums[view].between(first[inside], last[inside] + 1) * outside
        return total

    def weighted(self, weights: Sequence[Floats]) -> float:
        if not self.mechanism.strategy.full_rank:
            self.mechanism.strategy.variance_of(weights)
        shares = np.array([[float(along.mean())] for along in weights])
        return sum(
            weighted_sum(self._parts[view], [weights[i] for i in view]) * float(outside[0])
            for view, outside in self._asked(shares)
        )

    def _asked(self, shares: Floats) -> Iterator[tuple[View, Floats]]:
        """Yield the parts that products of sets have users of, and the others' shares in these.

        Shapes: `shares`, of sets in their attributes, (attributes, sets); the others' (sets,).
        """
        strategy = self.mechanism.strategy
        beside = shares * (1 - shares)
        for view in strategy.parts_of(beside, shares, self._parts):
            yield view, np.delete(shares, list(view), axis=0).prod(axis=0)

    @cached_property
    def _sums(self) -> dict[View, BoxSums]:
        return {view: BoxSums(part) for view, part in self._parts.items()}


def _power_above(base: Fraction, exponent: int) -> Fraction:
    """A rational number of at least a power, nearly equal to it."""
    with precision(_BITS):
        return rational_of((ball(base) ** exponent).upper())


# ------------------------------------------------------------------------------------------------
# Histograms that might be true: without negative numbers, or of whole users.
#
# They are biased, and have no variances: cells that are empty become positive on average. What is
# unbiased is the estimate that they are made from.


# The most steps, and the one that is the last, of the largest share; steps of the power method.
_COUNT_ROUNDS, _COUNT_STEP, _POWERS = 20_000, 1e-9, 30

_MOST_WEIGHED = 1 << 10  # the most cells whose ranges are weighed by a matrix


def nearest_counts(
    estimate: Floats,
    metric: Callable[[Floats], Floats],
    total: float | None = None,
    most: Floats | float = math.inf,
) -> Floats:
    """Return the nearest histogram without negative numbers, perhaps of one total.

    ``metric`` is the product with a positive definite matrix Q, by which distances are x'Q x;
    ``most`` is the largest number of each cell, where there is no total.
    """
    # It minimises (x - z)'Q (x - z) over x >= 0, for the unbiased estimate z, by projected
    # gradients with momentum (Beck and Teboulle 2009), begun anew where they point uphill
    # (O'Donoghue and Candes 2015)
    scale = max(float(np.abs(estimate).max()), 1e-300) if total is None else total
    if scale == 0:
        return np.zeros_like(estimate)
    target = estimate / scale
    step = 1 / _largest(metric, estimate.shape)

    def projected(given: Floats) -> Floats:
        if total is None:
            return np.clip(given, 0.0, most / scale)
        return norm_sub(given.ravel()).reshape(given.shape)

    found = ahead = projected(target)
    momentum = 1.0
    for _ in range(_COUNT_ROUNDS):
        nearer = projected(ahead - step * metric(ahead - target))
        if float(np.sum((ahead - nearer) * (nearer - found))) > 0:
            momentum = 1.0
        moved = float(np.abs(nearer - ahead).max())
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = nearer + (momentum - 1) / following * (nearer - found)
        found, momentum = nearer, following
        if moved <= _COUNT_STEP * float(found.max()):
            break
    return scale * found


def _largest(metric: Callable[[Floats], Floats], shape: tuple[int, ...]) -> float:
    """A number hardly above the largest eigenvalue of a metric, by the power method."""
    # The first vector has parts in all directions; what is missing is allowed for
    vector = np.random.default_rng(1).random(shape) + 1
    length = 1.0
    for _ in range(_POWERS):
        vector = metric(vector / np.linalg.norm(vector))
        length = float(np.linalg.norm(vector))
    return 1.1 * length


def whole_counts(counts: Floats) -> Integers:
    """Round numbers to whole ones next to them, of the same total up to rounding that."""
    # Numbers are rounded down; the largest remainders are rounded up instead
    flat = counts.ravel()
    down = np.floor(flat)
    up = round(float(flat.sum() - down.sum()))
    # The first of equal remainders, so that the result is the same everywhere
    order = np.argsort(down - flat, kind="stable")[:up]
    whole: Integers = down.astype(np.int64)
    whole[order] += 1
    return whole.reshape(counts.shape)
