"""Answers about an ordered domain: ranges, prefixes and quantiles, and their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import (
    LARGEST_LIST,
    SUM_OF_RANGES,
    Aggregate,
    Answer,
    ConfidenceInterval,
    Estimate,
    Estimator,
    OfPopulation,
    checked_sample,
    conditions,
    fractions,
    normal_quantile,
    place_along,
    plain,
    quantile,
    shared_out,
    with_items,
    woodruff,
)
from frequency.exceptions import InvalidQuestion
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Between as Between
from mechdesign.base import Floats, Integers, Items, whole
from rangeq.core.boxes import halved
from rangeq.core.levels import NodeSums

# ------------------------------------------------------------------------------------------------
# The ends of closed intervals [a, b] of items, checked.


class InvalidRange(InvalidQuestion):
    """Ends of ranges that are not integers with 0 <= a <= b < domain.

    Attributes
    ----------
    index : int or None
        The place of the first bad range; None if the type or the shape of the ends is wrong.
    """


def checked_ends(
    first: npt.ArrayLike, last: npt.ArrayLike, domain: int
) -> tuple[Integers, Integers]:
    """Both ends of ranges as int64 arrays of one shape."""
    a, b = np.asarray(first), np.asarray(last)
    if any(ends.dtype.kind not in "iu" and ends.size for ends in (a, b)):
        raise InvalidRange(f"ends of a range must be integers, got {a.dtype} and {b.dtype}")
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        raise InvalidRange(
            f"the ends of ranges must have shapes that go together, got {a.shape} and {b.shape}"
        ) from None
    bad = (a < 0) | (a > b) | (b >= domain)
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidRange(f"[{a.flat[k]}, {b.flat[k]}] is not a range within 0 .. {domain - 1}", k)
    return a.astype(np.int64), b.astype(np.int64)


# ------------------------------------------------------------------------------------------------
# Quantiles of one attribute, by the answers about its prefixes.


_BATCH = 1 << 16  # how many prefixes are asked for at a time


class AttributeQuantiles(ABC):
    """Estimates about records, which have quantiles along each of their attributes."""

    @property
    @abstractmethod
    def _records(self) -> Domain:
        """The attributes."""

    @abstractmethod
    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """The fraction of the population with some values: arrays of questions too."""

    def quantile(self, phi: npt.ArrayLike, attribute: str | int | None = None) -> Any:
        """Return the least value with at least the fraction phi of the population at or below it.

        An estimated cdf may reach phi more than once: see `frequency.core.answer.quantile`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        attribute : str or int, optional
            By name or by place; None: the only one.

        Returns
        -------
        int or numpy.ndarray
            Values of the attribute, of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi outside of [0, 1], an attribute of more than 2^26 values, or no reports.
        InvalidQuestion
            No such attribute, or none where there are several.
        """
        wanted = fractions(phi)
        prefixes = self._prefixes(attribute)
        return quantile(np.concatenate([prefix.value for prefix in prefixes]), wanted)

    def quantile_interval(
        self, phi: npt.ArrayLike, confidence: float = 0.95, attribute: str | int | None = None
    ) -> tuple[Any, Any]:
        """The values between which the phi-quantile lies: `frequency.core.answer.woodruff`.

        Parameters
        ----------
        phi, attribute : as of `quantile`
            Fractions in [0, 1], and along which attribute.
        confidence : float, default 0.95
            In (0, 1), of the band at each value.

        Returns
        -------
        tuple
            The first and the last value, ints or arrays of the shape of ``phi``.

        Raises
        ------
        UnknownVariance
            The error of an answer about a prefix is not known.
        ValueError, InvalidQuestion
            As of `quantile`; a confidence outside of (0, 1).
        """
        wanted, _ = fractions(phi), normal_quantile(confidence)
        ends = [prefix.interval(confidence) for prefix in self._prefixes(attribute)]
        band = ConfidenceInterval(*(np.concatenate(end) for end in zip(*ends, strict=True)))
        return woodruff(band, wanted)

    def _prefixes(self, attribute: str | int | None) -> Iterator[Answer]:
        """The answers about all prefixes of an attribute, in order."""
        place = place_along(attribute, self._records.names)
        size = whole(
            self._records.sizes[place], "an attribute's size", 1, LARGEST_LIST, what="a number"
        )
        for start in range(0, size, _BATCH):
            yield self.answer({place: Between(0, np.arange(start, min(start + _BATCH, size)))})


_MOST_DRAWN = 1 << 10  # items of which the variances of all ranges are listed


# Part of the largest variance that frequencies have in any direction, for rounding errors.
_NARROW = 1e-6


class RangeEstimator(Estimator, Protocol):
    """The part of a protocol that a `RangeEstimate` needs: see `RangeProtocol`."""

    def range_variances(self, estimate: RangeEstimate, first: Integers, last: Integers) -> Floats:
        """The variances of an estimate's answers to ranges."""


class Distribution(OfPopulation):
    """Frequencies of the items 0 .. domain-1 as answers to queries. Intervals [a, b] are closed.

    Attributes
    ----------
    frequencies : numpy.ndarray of float64
        Shape (domain,), read-only.
    n : int
        The number of users: see `OfPopulation`; 0 if it is not from reports.
    """

    frequencies: Floats

    def __init__(self, frequencies: Floats, n: int = 0) -> None:
        self.frequencies = frequencies
        self._about(n)
        self.frequencies.setflags(write=False)

    @cached_property
    def _sums(self) -> Floats:
        """The prefixes, the empty one first: shape (domain + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.frequencies)])

    def cdf(self) -> Floats:
        """The fraction of the population at or below each item: shape (domain,)."""
        return self._sums[1:].copy()

    def range(self, first: npt.ArrayLike, last: npt.ArrayLike) -> Any:
        """Return the fraction of the population in first .. last, both included.

        Parameters
        ----------
        first, last : array_like
            Integers, or arrays of integers that broadcast, with 0 <= first <= last < domain.

        Returns
        -------
        float or numpy.ndarray
            An array, of the ends' shape, for arrays of ends.

        Raises
        ------
        InvalidRange
            A ValueError, for any other ends.
        """
        return plain(self._between(*self._ends(first, last)))

    def _between(self, first: Integers, last: Integers) -> Floats:
        """The answers of checked ranges."""
        return self._sums[last + 1] - self._sums[first]

    def answer(self, where: Any) -> Answer:
        """The fraction of the population with these items.

        Parameters
        ----------
        where : int, list, tuple, numpy.ndarray or mapping
            An item, a list of items, or the ends ``(first, last)`` of a closed range; integer
            arrays in place of items are many questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            A fraction of the population. Its variance and interval are refused (`UnknownVariance`)
            where they are not known.

        Raises
        ------
        InvalidQuestion
            What is no question.
        """
        _, (asked,) = conditions(where, ("item",), (len(self.frequencies),))
        return self._answer(asked.total(self._between), asked.runs())

    @property
    def variances(self) -> Floats:
        """The frequencies' variances, shape (domain,); UnknownVariance where none is known."""
        return self._of_each.variance

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval[Floats]:
        """Intervals that each cover the true frequency of an item with about this probability.

        Parameters
        ----------
        confidence : float, default 0.95
            Strictly between 0 and 1.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shape (domain,).

        Raises
        ------
        UnknownVariance
            Where no variance is known.
        ValueError
            Another confidence.
        """
        return self._of_each.interval(confidence)

    @property
    def _of_each(self) -> Answer:
        return self.answer(np.arange(len(self.frequencies)))

    def _answer(self, value: Any, runs: list[tuple[Integers, Integers]]) -> Answer:
        """The answer about the union of some ranges."""
        return Answer(value, None, f"the errors of a {type(self).__name__} are not known")

    def prefix(self, last: npt.ArrayLike) -> Any:
        """Return the fraction of the population in 0 .. last; see `range`.

        Parameters
        ----------
        last : array_like
            Integers, 0 <= last < domain: a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Shaped like ``last``.

        Raises
        ------
        InvalidRange
            Anything else.
        """
        return self.range(np.zeros_like(np.asarray(last)), last)

    def quantile(self, phi: npt.ArrayLike) -> Any:
        """The least item with at least the fraction phi of the population at or below it.

        An estimated cdf may fall here and there, and so reach phi more than once: see
        `frequency.core.answer.quantile`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.

        Returns
        -------
        int or numpy.ndarray
            Items, of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi outside of [0, 1], or if there are no reports.
        """
        return quantile(self._sums[1:], phi)

    def sample(self, n: int, rng: np.random.Generator | None = None) -> Integers:
        """Synthetic items, for programs that take a value for each user: they are nobody's.

        If frequencies are negative, range by range each half gets what is nearest to its answer and
        not negative. Each item has its share, rounded at random. So ranges of them err about as the
        answers do.

        Parameters
        ----------
        n : int
            How many, at least 1.
        rng : numpy.random.Generator, optional
            To round and to shuffle with.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n,), in random order.

        Raises
        ------
        ValueError
            No number of items, or no reports.
        """
        known = len(self.frequencies) if np.isfinite(self.frequencies).all() else 0
        items, _, generator = checked_sample(n, 1, known, rng)
        # Noise in empty items would add up if negative ones were set to 0 one by one
        mass = halved(lambda first, last: self._between(first[0], last[0]), (known,), 1.0)
        return shared_out(mass, items, generator)

    def _ends(self, first: npt.ArrayLike, last: npt.ArrayLike) -> tuple[Integers, Integers]:
        return checked_ends(first, last, len(self.frequencies))


class EstimatedDistribution(Distribution):
    """A distribution whose ranges have confidence intervals, and so have its quantiles."""

    @abstractmethod
    def _range_variance(self, first: Integers, last: Integers) -> Floats:
        """The variances of the answers to checked ranges."""

    def _range_answer(self, first: Integers, last: Integers) -> Answer:
        """The answer about checked ranges, each by itself."""
        return Answer(self._between(first, last), self._range_variance(first, last))

    def samples(
        self, n: int, number: int, rng: np.random.Generator | None = None
    ) -> list[Integers]:
        """Draw several synthetic samples, each of another distribution that is as likely.

        Frequencies are drawn with the covariance that the variances of all ranges tell, normal, and
        then moved to the nearest distribution by that covariance. How what is computed from each
        sample differs between them tells its error: `frequency.of_samples`.

        Parameters
        ----------
        n, number : int
            The items in each, and the samples, at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        list of numpy.ndarray of int64
            Each of shape (n,): nobody's values.

        Raises
        ------
        ValueError
            No number of items or samples, no reports, or more than 1024 items in the domain.
        """
        domain = len(self.frequencies)
        known = domain if np.isfinite(self.frequencies).all() else 0
        items, times, generator = checked_sample(n, number, known, rng)
        if domain > _MOST_DRAWN:
            raise ValueError(
                f"samples are drawn with the variances of all ranges, of at most {_MOST_DRAWN}"
                f" items, got {domain}"
            )
        first, last = np.triu_indices(domain)
        variances = np.zeros((domain + 1, domain + 1))
        variances[first, last + 1] = self._range_variance(first, last)
        variances += variances.T
        prefixes = (variances[0][:, None] + variances[0] - variances) / 2
        values, vectors = np.linalg.eigh(np.diff(np.diff(prefixes, axis=0), axis=1))
        roots = np.sqrt(np.maximum(values, _NARROW * max(float(values.max()), 1e-300)))
        # The last row keeps the sum at 1
        sides = np.concatenate([(vectors / roots).T, np.full((1, domain), 1 / roots.min())])
        middle, samples = norm_sub(self.frequencies), []
        for _ in range(times):
            drawn = (vectors / roots).T @ middle + generator.normal(size=domain)
            nearest, _ = scipy.optimize.nnls(sides, np.append(drawn, 1 / roots.min()))
            samples.append(shared_out(nearest, items, generator))
        return samples

    def _answer(self, value: Any, runs: list[tuple[Integers, Integers]]) -> Answer:
        return (
            Answer(value, None, SUM_OF_RANGES) if len(runs) != 1 else self._range_answer(*runs[0])
        )

    def quantile_interval(self, phi: npt.ArrayLike, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return the items between which the phi-quantile lies: where the cdf's band crosses phi.

        See `frequency.core.answer.woodruff`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        confidence : float, default 0.95
            In (0, 1), of the band at each item.

        Returns
        -------
        tuple
            The first and the last item, ints or arrays of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi outside of [0, 1] or a confidence outside of (0, 1).
        """
        last = np.arange(len(self.frequencies))
        return woodruff(self._range_answer(np.zeros_like(last), last).interval(confidence), phi)


class RangeEstimate(Estimate, EstimatedDistribution):
    """The estimate of a range protocol: unbiased and linear, so that its errors are known.

    Values may be negative or exceed 1. `frequency.Estimate` is about single items and weighted sums
    of them, `Distribution` about ranges.

    The variance of an answer is that of the protocol's noise and of its sampling of users to
    levels, with all covariances, given the users of each level and for the population as it is
    estimated (over very many items, for an even one: see the protocols). Intervals are normal for
    ranges, and score intervals for items.

    Attributes
    ----------
    n : int
        The number of reports. With none all values are NaN, all variances infinite.
    frequencies, variances : numpy.ndarray of float64
        Shape (domain,): estimated fractions of the population, read-only, and their variances.
    nodes : NodeSums or None
        Of what ranges are sums, if not of items: then no range is a difference of two prefixes.
    """

    _oracle: RangeEstimator

    def __init__(
        self,
        oracle: RangeEstimator,
        aggregate: Aggregate,
        items: Items | None,
        nodes: NodeSums | None = None,
    ) -> None:
        super().__init__(oracle, aggregate, items)
        self.nodes = nodes

    @cached_property
    def _sums(self) -> Floats:
        if self.nodes is None:
            return super()._sums
        last = np.arange(len(self.frequencies))
        return np.concatenate([[0.0], self.nodes.between(np.zeros_like(last), last)])

    def _between(self, first: Integers, last: Integers) -> Floats:
        if self.nodes is None:
            return super()._between(first, last)
        return self.nodes.between(first, last)

    @cached_property
    def nearest_sums(self) -> Floats:
        """The prefixes of the nearest distribution, the empty one first: shape (domain + 1,)."""
        return np.concatenate([[0.0], np.cumsum(norm_sub(self.frequencies))])

    def _range_variance(self, first: Integers, last: Integers) -> Floats:
        if not self.reports:
            return np.full(np.shape(first), np.inf)
        variances = self._oracle.range_variances(self, first, last)
        return variances + self._of_drawing(self._between(first, last))

    def answer(self, where: Any) -> Answer:
        return EstimatedDistribution.answer(self, where)

    def _answer(self, value: Any, runs: list[tuple[Integers, Integers]]) -> Answer:
        if len(runs) != 1:  # of items here and there all covariances are known
            weights = np.zeros(len(self.frequencies))
            for first, last in runs:
                weights[int(first) : int(last) + 1] = 1.0
            return self.linear(weights)
        ((first, last),) = runs
        answer, single = EstimatedDistribution._answer(self, value, runs), first == last
        return with_items(answer, single, self._single(first[single])) if single.any() else answer

    def nonnegative(self) -> Distribution:
        """The nearest distribution in L2, by `frequency.postprocess.norm_sub`.

        It is biased, and its variances are not known.
        """
        return Distribution(norm_sub(self.frequencies), self.n)

    def monotone(self) -> Distribution:
        """The distribution whose cdf is the monotone one nearest to the estimated one in L2.

        By isotonic regression, cut to [0, 1].

        Returns
        -------
        Distribution
            Non-negative, of sum 1.

        Raises
        ------
        ValueError
            There are no reports.
        """
        if not self.reports:
            raise ValueError("no reports: there is no distribution to shape")
        cdf = (
            scipy.optimize.isotonic_regression(self._sums[1:-1]).x.clip(0.0, 1.0)
            if len(self.frequencies) > 1
            else np.zeros(0)
        )
        return Distribution(np.diff(np.concatenate([[0.0], cdf, [1.0]])), self.n)
