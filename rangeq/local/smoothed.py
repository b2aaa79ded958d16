"""Smoothed, adaptive estimates of ranges on one attribute, which are distributions: `shaped`."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from frequency.core import Aggregate, Answer, Protocol, by_model, checked_users, cut
from frequency.postprocess import norm_sub
from mechdesign.base import Between, Floats, Integers, Rational, one_thread, whole
from rangeq.core import (
    REFERENCE_POPULATIONS,
    EstimatedDistribution,
    Levels,
    RangeEstimate,
    checked_workload,
    mean_over,
    padded,
    reference_shares,
)
from rangeq.local.circle import Transform, items_of
from rangeq.local.circle_smoothing import Smoothing
from rangeq.local.circular import CircularHistogram, divisors, round_up
from rangeq.local.optimisation import CircleLevels, falling_shares, least_shares

# The corner of the collection's smooth reference, |coefficient k|^2 = (1 + (k / 2)^2)^-2: a Laplace
# density, its scale 8 % of the circular domain.
_CORNER = 2.0

# The ratio of its rough reference: independent weights of items with E w^2 / (E w)^2 = 2:
# |coefficient|^2 = 2 / domain everywhere.
_ROUGH = 2.0

#: The factors by which the collection's unbiased error may exceed the least: where rough data lose
#: nothing by it, and in any case.
_MOST, _LEAST = 1.7, 1.03

# The least noise of a frequency, as a part of what drawing the users would add: reports of a large
# epsilon hardly have any.
_LEAST_NOISE = 1e-9

#: The largest domain with any padding; and the number of sizes of most divisors to try.
_SMALL, _TRIED = 64, 3

_FEWEST = 4  # the least domain that has something to smooth


def shaped(domain: int, epsilon: float | Rational, n: int, workload: str = "ranges") -> Shaped:
    """The protocol for ranges of about ``n`` users whose estimates are smoothed: see `Shaped`.

    Users report as for a `CircularHistogram`, but more of them on coarse blocks than unbiased
    estimates would have it: fine scales are smoothed, where the data are smooth. How many more
    follows from the domain, epsilon and n alone. The shares of the levels are the best ones for a
    smooth reference, with a guard against rough data: for items of independent weights the smoothed
    error is to stay at or below that of the best unbiased estimate on the padded domain. Some data
    are worse: see `ShapedEstimate`.

    Parameters
    ----------
    domain : int
        The number of items.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    n : int
        The number of users expected, at least 1. All clients and servers must use the same.
    workload : str, default "ranges"
        What errors should be low for: "ranges", "all ranges" or "prefixes" (the distribution
        function and quantiles), see `rangeq.core.tree.WORKLOADS`.

    Returns
    -------
    Shaped
        The protocol.

    Raises
    ------
    ValueError
        For an unknown workload, or parameters out of range.

    Examples
    --------
    >>> protocol = shaped(domain=256, epsilon=1.0, n=100_000)
    >>> hours = np.random.default_rng(1).binomial(255, 0.3, size=100_000)
    >>> reports = protocol.privatize(hours, np.random.default_rng(2))
    >>> estimate = protocol.estimate(protocol.aggregate(reports))
    >>> bool(abs(estimate.range(70, 80) - np.mean((hours >= 70) & (hours <= 80))) < 0.02)
    True
    """
    users = checked_users(n)
    checked_workload(workload)
    plain = CircularHistogram(domain, epsilon)  # refuses what is out of range
    return Shaped(plain if domain < _FEWEST else _designed(plain.domain, epsilon, users, workload))


@dataclass(frozen=True)
class Shaped(Protocol):
    """A `CircularHistogram` with smoothed, adaptive estimates: made by `shaped`.

    Clients and aggregates are those of the ``collection``; smoothing happens on the server.

    Attributes
    ----------
    collection : CircularHistogram
        The protocol by which users report.
    """

    collection: CircularHistogram

    @property
    def channel(self) -> Levels:
        """The channel that turns an item into a report."""
        return self.collection.channel

    @property
    def domain(self) -> int:
        """The number of items."""
        return self.collection.domain

    @property
    def epsilon(self) -> float | Rational:
        """The privacy loss of one report."""
        return self.collection.epsilon

    def estimate(self, aggregate: Aggregate, apart: int = 0) -> ShapedEstimate:
        """The smoothed estimate.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.
        apart : int, default 0
            The number of the last items that are no neighbours of the others, such as that of
            missing values: nothing is smoothed across. Not all. A `frequency.Survey` knows.

        Returns
        -------
        ShapedEstimate
            All values are NaN with no reports.

        Raises
        ------
        ValueError
            All items, or more, are to be apart.
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        return ShapedEstimate(self.collection, aggregate, apart)


def smoothing_of(
    collection: CircularHistogram,
    transform: Transform,
    information: Floats,
    n: int,
    apart: int = 0,
) -> Smoothing:
    """Return the posterior of n users' fractions."""
    # Drawing the users, from an even population a variance of 1 / n, is counted by the precisions,
    # but belongs to their fractions
    drawing = 1 / (collection.domain * n)
    exact = 1 / report_variances(information, drawing)
    return Smoothing(transform, exact, collection.size, collection.domain, drawing, apart)


def report_variances(precision: Floats, drawing: float) -> Floats:
    """The variances of frequencies of these users' fractions, by the noise of reports alone."""
    # Where nothing is known the variance is infinite, without a warning
    with np.errstate(divide="ignore"):
        return np.maximum(1 / precision - drawing, _LEAST_NOISE * drawing)


class NotConverged(UserWarning):
    """A warning: a search stopped short of its optimum."""


class ShapedEstimate(EstimatedDistribution):
    """A distribution as smooth as the data say: the most probable one under an adaptive prior.

    Non-negative and with sum 1; see `rangeq.local.circle_smoothing`. Estimates are biased toward
    smooth ones with few spikes and steps, by less than what they gain in variance.

    The variance of an answer is the expected squared error: the posterior variance, with an
    allowance for what the prior does not know. Intervals lie within [0, 1]. Those of an answer hold
    for each question, by what the reports alone tell. With ``on_average`` they are the shorter ones
    of the model: over kinds of data 95 % of ranges and prefixes covered 0.94 to 0.99, from epsilon
    0.2 to 8 (``benchmarks/any_data.py``), but hardly ever a spike that the noise just hides
    (``benchmarks/where_people_look.py``), and their far tails are heavier than normal.

    Attributes
    ----------
    n : int
        The number of reports. With none all values are NaN.
    unbiased : RangeEstimate
        The unbiased `RangeEstimate` from the same reports.
    converged : bool
        Whether the fit about reached its optimum; else a `NotConverged` warning says so.
    """

    @one_thread
    def __init__(self, collection: CircularHistogram, aggregate: Aggregate, apart: int = 0) -> None:
        domain = collection.domain
        apart = whole(apart, "apart", 0, domain - 1, what="some of the items, not all")
        self.unbiased: RangeEstimate = collection.estimate(aggregate)
        n = aggregate.n
        self._smoothing, self.converged = None, True
        if not n:
            super().__init__(np.full(domain, np.nan), n)
        elif domain < _FEWEST:
            super().__init__(norm_sub(self.unbiased.frequencies), n)
        else:
            transform, information = collection.transform(aggregate)
            self._smoothing = smoothing_of(collection, transform, information, n, apart)
            distribution, positive = self._smoothing.distribution()
            self.converged = self._smoothing.converged and positive
            if not self.converged:
                warnings.warn(
                    "the smoothing has not converged: the estimate is a distribution, but may be"
                    " further from the truth than its intervals say; estimate.unbiased is exact",
                    NotConverged,
                    stacklevel=3,
                )
            super().__init__(distribution, n)

    def _range_variance(self, first: Integers, last: Integers) -> Floats:
        drawing = self._of_drawing(self._between(first, last))
        if self._smoothing is None:
            return np.asarray(self.unbiased.answer(Between(first, last)).variance) + drawing
        everyone = last - first + 1 == len(self.frequencies)
        return np.where(everyone, 0.0, self._smoothing.variance(first, last) + drawing)

    def _range_answer(self, first: Integers, last: Integers) -> Answer:
        told = cut(super()._range_answer(first, last), 0.0, 1.0)
        if self._smoothing is None:
            return told
        reports = self.unbiased.of_population(self.n) if self._drawn else self.unbiased
        return by_model(told, reports.answer(Between(first, last)))

    def __repr__(self) -> str:
        return f"<ShapedEstimate of {len(self.frequencies)} items from {self.n} reports>"


@lru_cache(maxsize=64)
def _designed(domain: int, epsilon: float | Rational, n: int, workload: str) -> CircularHistogram:
    """Return the circular hierarchy that collects."""
    # Its padding keeps the ends of the domain apart, which would be neighbours without: a tenth to
    # a fifth of the domain, what costs unbiased estimates least
    least, most = -(-domain * 11 // 10), -(-domain * 6 // 5)
    tried = range(least, most + 1, 1 if domain <= _SMALL else max(1, (most - least) // 3))
    sizes = sorted({size if domain <= _SMALL else round_up(size) for size in tried})
    sizes = sorted(sizes, key=lambda size: -len(divisors(size)))[:_TRIED]
    candidates = []
    for circle in sizes:
        levels = CircleLevels.of(domain, epsilon, circle, workload)
        shares = least_shares(levels.costs, n * levels.gains)
        candidates.append((_unshaped(levels, n, shares), circle, levels, shares))
    _, _, levels, shares = min(candidates, key=lambda item: item[:2])
    return levels.histogram(_tilted(levels, n, shares))


def _noise(precision: Floats, levels: CircleLevels, n: int) -> Floats:
    """The variances of frequencies of these users' fractions."""
    return report_variances(precision, 1 / (levels.domain * n))


def _unshaped(levels: CircleLevels, n: int, shares: Floats) -> float:
    return float(levels.costs @ _noise(n * levels.gains @ shares, levels, n))


def _smooth(levels: CircleLevels) -> Floats:
    """The prior precision of each frequency under the smooth reference."""
    return np.asarray(levels.circle * (1 + (levels.frequencies / _CORNER) ** 2) ** 2)


def _tilted(levels: CircleLevels, n: int, unbiased: Floats) -> Floats:
    """Return the shares of the levels for data that are probably smooth."""
    # They minimise sum c v / (1 + v smooth) + g sum c v for the least guard g that keeps errors low
    # for rough data. v is the variance of each frequency from n users, c its costs. The first sum
    # is the smoothed error on the smooth reference, the second the unbiased one: least for
    # `unbiased`.
    rough = levels.circle * levels.domain / _ROUGH
    chosen, least = unbiased, _unshaped(levels, n, unbiased)
    low, high = math.log(1e-2), math.log(30.0)
    # Bisection of the guard's logarithm: both errors fall as it grows. Shares of the last guard
    # that was enough are a warm start, and always feasible
    for _ in range(9):
        guard = (low + high) / 2
        shares = _guarded(levels, n, _smooth(levels), math.exp(guard), chosen)
        noise = _noise(n * levels.gains @ shares, levels, n)
        loss, of_rough = levels.costs @ noise, levels.costs @ (noise / (1 + noise * rough))
        if loss <= _LEAST * least or (loss <= _MOST * least and of_rough <= least):
            high, chosen = guard, shares
        else:
            low = guard
    return chosen


def _guarded(levels: CircleLevels, n: int, prior: Floats, guard: float, start: Floats) -> Floats:
    """The shares of least costs @ (v / (1 + v prior) + guard v), v the variance of frequencies."""

    information = n * levels.gains

    def gains(shares: Floats) -> Floats:
        precision = information @ shares
        noise = _noise(precision, levels, n)
        slope = levels.costs * (1 / (1 + noise * prior) ** 2 + guard) / precision**2
        return np.asarray(slope @ information)

    # Multiplicative steps cannot leave 0: every level begins with some users
    shares = np.maximum(start, 1e-4)
    return falling_shares(gains, shares / shares.sum(), 600, 1e-5)


# ------------------------------------------------------------------------------------------------
# What smoothed estimates err by, which rests on the population: predicted by simulation.


_COARSE = 256  # the most items of a simulated domain

_RUNS = 8  # the simulated collections of each population: predictions are off by a quarter or so

# The epsilons and numbers of users of each decade that are simulated: predictions in between follow
# from the nearest by a power law.
_PER_DECADE = 10


def shaped_errors(
    domain: int,
    epsilon: float | Rational,
    n: int,
    workload: str = "ranges",
    like: tuple[float, ...] | None = None,
) -> tuple[tuple[str, float], ...]:
    """The root mean square errors of `shaped` over a workload, on some populations.

    Of eight simulated collections each, with fixed seeds, at the nearest of ten epsilons and of ten
    numbers of users a decade; nearby, errors are taken to fall as 1 / (epsilon sqrt(n)). Beyond 256
    items, of 256 that stand for several each; the error is then multiplied by what unbiased
    estimates of the collection err more over all items, which is more than smoothed ones do.
    Measured errors were 0.74 to 1.29 times the predicted root mean square over the populations.

    Parameters
    ----------
    domain, epsilon, n, workload : as of `optimise`
        The numbers of items and of users, the privacy loss of one report, and what is asked.
    like : tuple of float, optional
        Shares of the items, with sum 1: the population to expect. None: the
        `rangeq.core.workload_sums.REFERENCE_POPULATIONS`.

    Returns
    -------
    tuple of (str, float)
        The populations' names, "like" for that one, and the errors as fractions of the users.

    Raises
    ------
    ValueError
        For an unknown workload, or parameters out of range.
    """
    loss = float(epsilon)
    near, users = _nearest(loss), max(1, round(_nearest(n)))
    scale = near / loss * math.sqrt(users / n)
    errors = _errors(domain, near, users, workload, like)
    return tuple((name, scale * error) for name, error in errors)


def _nearest(number: float) -> float:
    return float(10.0 ** (round(math.log10(number) * _PER_DECADE) / _PER_DECADE))


@lru_cache(maxsize=256)
def _errors(
    domain: int, epsilon: float, n: int, workload: str, like: tuple[float, ...] | None
) -> tuple[tuple[str, float], ...]:
    coarse = min(domain, _COARSE)
    protocol, factor = shaped(coarse, epsilon, n, workload), 1.0
    if coarse < domain:
        fine = shaped(domain, epsilon, n, workload).collection.average_rmse(n, workload)
        factor = fine / protocol.collection.average_rmse(n, workload)
    shares: dict[str, Floats]
    if like is None:
        shares = {name: reference_shares(name, coarse) for name in REFERENCE_POPULATIONS}
    else:
        places = np.arange(domain) * coarse // domain
        shares = {"like": np.bincount(places, like, coarse).astype(np.float64)}
    return tuple(
        (name, factor * _simulated(protocol, n, workload, share)) for name, share in shares.items()
    )


@one_thread
def _simulated(protocol: Shaped, n: int, workload: str, share: Floats) -> float:
    """Simulate errors with normal noise of the reports' variances: users cost no time."""
    collection = protocol.collection
    domain, size = collection.domain, collection.size
    information = collection.information(collection.channel.expected_users(n))
    known = np.maximum(information[1:], 1e-9 * information[1:].max())
    deviations = np.repeat(np.sqrt(report_variances(known, 1 / (domain * n))), 2)
    squares = []
    for run in range(_RUNS):
        rng = np.random.default_rng(run)
        truth = rng.multinomial(n, share / share.sum()) / n
        noise = items_of(rng.normal(size=2 * (size // 2)) * deviations, 0.0, size)
        transform = np.fft.rfft(padded(truth, size) + noise)
        estimate = smoothing_of(collection, transform, information, n).distribution().distribution
        prefixes = np.cumsum(estimate - truth)
        squares.append(
            mean_over(workload, prefixes**2, float(prefixes.sum()) ** 2, (estimate - truth) ** 2)
        )
    return float(np.sqrt(np.mean(squares)))
