"""Estimates that answer conjunctions of closed ranges over several attributes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from frequency.core import (
    SUM_OF_RANGES,
    Aggregate,
    Answer,
    Condition,
    ConfidenceInterval,
    OfPopulation,
    checked_sample,
    conditions,
    place_of,
)
from frequency.exceptions import InvalidQuestion
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Between, Floats, Items, printable
from rangeq.core import AttributeQuantiles, Distribution, InvalidRange
from rangeq.grids.cells import MOST_ATTRIBUTES, Queries, Rectangles, grouped, rectangles
from rangeq.grids.fitting import Line, Plane, weighted_update
from rangeq.grids.sampling import (
    CollectionBootstrap,
    Likeness,
    of_users,
    records_of,
    student_quantile,
)

MOST_TOLERANCE = 1e-7

# The most boxes of an answer whose interval is simulated: all are asked in every replicate.
_MOST_BOXES = 256

#: The ends of closed ranges of queries, each about the sum of disjoint boxes: shape (queries,
#: attributes).
Boxes = Sequence[tuple[Items, Items]]


#: The most values of an attribute of synthetic records: each one's frequency is computed.
MOST_SAMPLED = 1 << 22


class PredictedError(NamedTuple):
    """The squared error to expect of an answer, by source (section 4.5).

    Attributes
    ----------
    noise, sampling, non_uniformity : float or numpy.ndarray
        Of the reports, of the group standing for everybody, and of the cells which the borders of
        the query cut. Arrays are shaped as the queries; NaN where no theory gives it.
    """

    noise: Any
    sampling: Any
    non_uniformity: Any

    @property
    def total(self) -> Any:
        """The sum of the three."""
        return self.noise + self.sampling + self.non_uniformity


class ConjunctionEstimate(OfPopulation, AttributeQuantiles):
    """The fraction of the population whose values lie in all the ranges of a query.

    Attributes
    ----------
    n : int
        The number of users: see `OfPopulation`. With no reports all answers are NaN.
    attributes : Domain
        Names and sizes.
    """

    most_attributes: ClassVar[int] = MOST_ATTRIBUTES  #: The most attributes that a query may name.

    def __init__(self, attributes: Domain, n: int) -> None:
        self.attributes = attributes
        self._about(n)
        self._collection: tuple[Any, Aggregate] | None = None

    def collected_by(self, protocol: Any, aggregate: Aggregate) -> Self:
        """Return the estimate itself, which may then run its protocol again for errors of answers.

        Parameters
        ----------
        protocol : ConjunctionProtocol
            What collected the reports.
        aggregate : Aggregate
            Of these.

        Returns
        -------
        ConjunctionEstimate
            This one.
        """
        self._collection = protocol, aggregate
        return self

    @property
    def _records(self) -> Domain:
        return self.attributes

    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """Return the fraction of the population with these values.

        Parameters
        ----------
        where : mapping
            For each attribute that matters, by name or by place, the value, the list of values, or
            the closed range of values that it must have, ``Between(3, 9)`` or "3:9". Integer arrays
            are many questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            NaN with no reports. Its variance is that of noise and sampling, before post-processing:
            see `predicted_error`. It is refused (`UnknownVariance`) where no theory gives it, where
            ranges cut cells, and for lists of values that are no range (but by `WaveEstimate`, of
            attributes of up to 64 values and of categories). Intervals are then those of a
            parametric bootstrap (`rangeq.grids.sampling`), the same at every call (of `HIO` normal
            ones, of its noise); none where `HIO` has a sketch of its levels, and for lists that are
            more than 256 boxes.

        Raises
        ------
        InvalidQuestion
            What is no question.
        """
        shape, asked = conditions(where, self.attributes.names, self.attributes.sizes)
        estimate, ranged = self._ranged(asked)
        return self._by_reports(estimate._of_conditions(shape, ranged), shape, asked)

    def _by_reports(
        self, told: Answer, shape: tuple[int, ...], asked: Sequence[Condition]
    ) -> Answer:
        """The answer, of a model beside what the reports alone tell."""
        return told

    def _ranged(self, asked: Sequence[Condition]) -> tuple[Self, Sequence[Condition]]:
        """The estimate and the question, where it can with lists of values as ranges."""
        return self, asked

    def _of_conditions(self, shape: tuple[int, ...], asked: Sequence[Condition]) -> Answer:
        places = [condition.place for condition in asked]
        boxes = list(product(*(condition.runs() for condition in asked)))
        ends = [
            (_columns([run[0] for run in box], shape), _columns([run[1] for run in box], shape))
            for box in boxes
        ]
        value = np.zeros(shape)
        for left, right in ends:
            value = value + self.answers(places, left, right).reshape(shape)
        if len(ends) != 1:
            few = 0 < len(ends) <= _MOST_BOXES
            simulated = self._simulated(places, ends, shape) if few else None
            return Answer(value, None, SUM_OF_RANGES, simulated)
        error = self.predicted_error(places, left, right)
        if self.reports and (error.non_uniformity > 0).any():
            return Answer(
                value,
                None,
                "the range cuts cells, in which the distribution of users is not known: see"
                " predicted_error",
                self._simulated(places, ends, shape),
            )
        variance = (error.noise + error.sampling).reshape(shape)
        if np.isnan(variance).any():
            return Answer(
                value,
                None,
                "no theory gives the error of this answer",
                self._simulated(places, ends, shape),
            )
        return Answer(value, variance, _interval=self._interval(places, left, right, shape))

    def region(self, first: Any, second: Any, cells: npt.ArrayLike) -> Answer:
        """Return the fraction of the population in a set of pairs of values of two attributes.

        Parameters
        ----------
        first, second : str or int
            Different attributes, by name or by place.
        cells : array_like of bool
            Which pairs, at least one: shape (values of the first, values of the second).

        Returns
        -------
        Answer
            Of a rectangle that of `answer`. Of other sets the sum of those of rectangles, with
            intervals by the bootstrap and without a variance, which only a `WaveEstimate` knows.

        Raises
        ------
        InvalidQuestion
            Attributes that are not here or the same, other cells, or none.
        """
        j, k = (place_of(name, self.attributes.names) for name in (first, second))
        if j == k:
            raise InvalidQuestion(
                f"a region is of two attributes, got {printable(self.attributes.names[j])} twice"
            )
        mask, sizes = np.asarray(cells), (self.attributes.sizes[j], self.attributes.sizes[k])
        if mask.dtype != np.bool_ or mask.shape != sizes:
            raise InvalidQuestion(
                f"cells must be booleans of shape {sizes}, got {mask.dtype} of shape {mask.shape}"
            )
        if not mask.any():
            raise InvalidQuestion("the region is empty")
        if j > k:
            j, k, mask = k, j, mask.T
        boxes = rectangles(mask)
        if len(boxes.left) == 1:
            (a, b), (c, d) = boxes.left[0].tolist(), boxes.right[0].tolist()
            return self.answer({j: Between(a, c), k: Between(b, d)})
        return self._of_region((j, k), mask, boxes)

    def _of_region(
        self, places: tuple[int, int], mask: npt.NDArray[np.bool_], boxes: Rectangles
    ) -> Answer:
        """The answer about a set of pairs of values that is no rectangle."""
        value = float(self.answers(places, *boxes).sum())
        bootstrap, interval = self._bootstrap, None
        if bootstrap is not None:

            def interval(confidence: float) -> ConfidenceInterval[Any]:
                square = bootstrap.squared_error_of_region(places, mask, boxes)
                drawing = float(self._of_drawing(np.array(value)))
                # The root mean square of as many replicates stands for a standard error: Student's
                # t, not the normal quantile
                half = student_quantile(confidence) * math.sqrt(square + drawing)
                ends = min(value, max(value - half, 0.0)), max(value, min(value + half, 1.0))
                return ConfidenceInterval(*ends)

        return Answer(value, None, SUM_OF_RANGES, interval)

    def _interval(
        self, places: Sequence[int], left: Items, right: Items, shape: tuple[int, ...]
    ) -> Callable[[float], ConfidenceInterval[Any]] | None:
        """Intervals of answers by confidence; None: normal ones."""
        return None

    def _likeness(self) -> Likeness | None:
        """Users like the estimate; None where it says nothing of them."""
        return None

    @cached_property
    def _bootstrap(self) -> CollectionBootstrap | None:
        like = self._likeness() if self.reports else None
        if like is None or self._collection is None:
            return None
        return CollectionBootstrap(*self._collection, like)

    def _simulated(
        self, places: Sequence[int], boxes: Boxes, shape: tuple[int, ...]
    ) -> Callable[[float], ConfidenceInterval[Any]] | None:
        """Intervals by the bootstrap, by confidence; None where there is none."""
        if self._bootstrap is None:
            return None

        def within(confidence: float) -> ConfidenceInterval[Any]:
            ends = self._bootstrapped(places, boxes, confidence)
            return ConfidenceInterval(*(end.reshape(shape) for end in ends))

        return within

    def _bootstrapped(
        self, places: Sequence[int], boxes: Boxes, confidence: float
    ) -> tuple[Floats, Floats]:
        """The ends of intervals: shape (queries,) each."""
        assert self._bootstrap is not None
        middle = np.sum([self.answers(places, *box) for box in boxes], axis=0)
        squares = self._bootstrap.squared_errors(places, boxes) + self._of_drawing(middle)
        half = student_quantile(confidence) * np.sqrt(squares)
        return (
            np.minimum(middle, np.maximum(middle - half, 0.0)),
            np.maximum(middle, np.minimum(middle + half, 1.0)),
        )

    def answers(
        self, attributes: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike
    ) -> Floats:
        """Return the answers of many queries of lambda attributes each.

        An attribute asked for in whole restricts nothing; all attributes in whole have the answer
        1.

        Parameters
        ----------
        attributes : array_like
            Places of the attributes, or all names, distinct in a query: shape (m, lambda), or
            (lambda,) for all queries.
        left, right : array_like
            The ends of the closed ranges, integers of shape (m, lambda).

        Returns
        -------
        numpy.ndarray
            Shape (m,): fractions of the population, NaN with no reports.

        Raises
        ------
        InvalidRange
            Its ``index`` is the first bad query.
        """
        m, groups = grouped(self.attributes, attributes, left, right, self.most_attributes)
        result = np.full(m, np.nan)
        if not self.reports:
            return result
        for group in groups:
            result[group.rows] = 1.0
        asked = [group for group in groups if group.places]
        for group, values in zip(asked, self._all_answers(asked), strict=True):
            result[group.rows] = values
        return result

    def response_matrix(self, first: Any, second: Any) -> Floats:
        """Return the estimated frequency of every pair of values of two attributes.

        Parameters
        ----------
        first, second : str or int
            Different attributes, by name or by place.

        Returns
        -------
        numpy.ndarray
            Shape (values of the first, values of the second); NaN with no reports.

        Raises
        ------
        InvalidRange
            For an attribute that is not here.
        """
        j, k = (place_of(name, self.attributes.names, InvalidRange) for name in (first, second))
        if not self.reports:
            return np.full((self.attributes.sizes[j], self.attributes.sizes[k]), np.nan)
        return self._pairs(j, k) if j < k else self._pairs(k, j).T

    def _pairs(self, j: int, k: int) -> Floats:
        """The frequency of every pair of values of the attributes j < k."""
        shape = self.attributes.sizes[j], self.attributes.sizes[k]
        cells = np.stack([axis.ravel() for axis in np.indices(shape)], axis=1)
        return self.answers([j, k], cells, cells).reshape(shape)

    def fitted(self) -> ConjunctionEstimate:
        """The posterior of the distribution given the same reports, under the priors of `WaveGrid`.

        These are of smooth data: where data are, answers err less than the estimate's own, on real
        data too, and mostly elsewhere. Intervals are those of `WaveGrid`: of cells that no report
        tells apart none is taken to be as the model has it. ``docs/benchmarks/grids.md`` says how
        often the model's cover, and what breaks them. It is fitted at the first call.

        Returns
        -------
        ConjunctionEstimate
            Of the same verbs; the estimate of `WaveGrid` itself.

        Raises
        ------
        InvalidQuestion
            The reports do not tell how attributes go together, or the estimate was not made by
            `ConjunctionProtocol.estimate`.
        """
        return self._posterior.of_population(self.n)

    @cached_property
    def _posterior(self) -> ConjunctionEstimate:
        if self._collection is None:
            raise InvalidQuestion("nothing is fitted to an estimate without its reports")
        protocol, aggregate = self._collection
        return protocol._posterior(aggregate)

    def sample(self, n: int, rng: np.random.Generator | None = None) -> Items:
        """Draw synthetic records, for programs that take records: they are nobody's.

        Single attributes and pairs have their estimated distributions, pairs on blocks of values;
        more have in common what these imply: see `rangeq.grids.sampling`.

        Parameters
        ----------
        n : int
            How many, at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, attributes), in random order.

        Raises
        ------
        ValueError
            No number of records, or no reports.
        InvalidQuestion
            An attribute has more than 2^22 values.
        """
        records, _, generator = checked_sample(n, 1, self.reports, rng)
        largest = max(self.attributes.sizes)
        if largest > MOST_SAMPLED:
            raise InvalidQuestion(
                f"records are sampled of attributes of up to {MOST_SAMPLED} values, got {largest}"
            )

        def tables(places: tuple[int, ...], ends: list[Items]) -> Floats:
            # As sums of cells from the first one on: those of few people may be below 0
            last = (
                np.stack(
                    [block_ends.ravel() for block_ends in np.meshgrid(*ends, indexing="ij")], axis=1
                )
                - 1
            )
            table = self.answers(places, np.zeros_like(last), last)
            table = table.reshape([len(block_ends) for block_ends in ends])
            for axis in range(len(places)):
                table = np.diff(table, axis=axis, prepend=0.0)
            return table

        return records_of(self.attributes, tables, records, generator)

    def samples(self, n: int, number: int, rng: np.random.Generator | None = None) -> list[Items]:
        """Draw several synthetic samples, each of another distribution that is as likely.

        Distributions are drawn from `fitted`, and from each so many users as report. The variation
        between samples of a statistic estimates its error: `frequency.of_samples`.

        Parameters
        ----------
        n, number : int
            The records in each, and the samples, at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        list of numpy.ndarray of int64
            Each of shape (n, attributes): nobody's records.

        Raises
        ------
        ValueError
            No number of records or samples, or no reports.
        InvalidQuestion
            As for `fitted`.
        """
        records, times, generator = checked_sample(n, number, self.reports, rng)
        drawn = (self._drawn_from(generator).sample(records, generator) for _ in range(times))
        return [of_users(sampled, self.reports, generator) for sampled in drawn]

    def _drawn_from(self, rng: np.random.Generator) -> ConjunctionEstimate:
        """Draw another estimate that is as likely."""
        return self._posterior._drawn_from(rng)

    def predicted_error(
        self, attributes: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike
    ) -> PredictedError:
        """Return the squared error to expect of `answers`, by source: arrays of shape (m,).

        Noise and sampling are those of the unbiased linear answer from the reports on the query's
        own attributes, cells brought to a sum of 1 by a constant: a range errs as its complement
        does, and the whole population's answer does not err. Other post-processing they do not
        account for. They are infinite with no reports, and NaN for queries that no single group
        answers.

        Parameters
        ----------
        attributes, left, right : array_like
            As for `answers`.

        Returns
        -------
        PredictedError
            Noise, sampling and non-uniformity.

        Raises
        ------
        InvalidRange
            As for `answers`.
        """
        m, groups = grouped(self.attributes, attributes, left, right, self.most_attributes)
        errors = np.full((3, m), np.nan if self.reports else np.inf)
        for group in groups if self.reports else ():
            errors[:, group.rows] = self._errors(group) if group.places else 0.0
            if self._drawn and group.places:
                errors[1, group.rows] += self._of_drawing(self._answers(group))
        return PredictedError(*errors)

    def _all_answers(self, groups: Sequence[Queries]) -> list[Floats]:
        """The answers of several groups."""
        return [self._answers(group) for group in groups]

    @abstractmethod
    def _answers(self, queries: Queries) -> Floats:
        """The answers of checked queries about the same attributes, n > 0."""

    def _errors(self, queries: Queries) -> Floats:
        """The errors of answers by noise, sampling and non-uniformity: shape (3, queries)."""
        return np.full((3, len(queries.rows)), np.nan)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.attributes)} attributes from {self.n} reports>"


def _columns(ends: Sequence[Any], shape: tuple[int, ...]) -> Items:
    """Ends of ranges, an array an attribute, as rows of queries: shape (queries, attributes)."""
    return np.stack([np.broadcast_to(end, shape).ravel() for end in ends], axis=1)


class ProductEstimate(ConjunctionEstimate):
    """Answers as if attributes were independent: products of those of single attributes.

    Attributes
    ----------
    distributions : tuple of Distribution
        One `rangeq.Distribution` for each attribute.
    """

    def __init__(self, attributes: Domain, n: int, distributions: Sequence[Distribution]) -> None:
        super().__init__(attributes, n)
        self.distributions = tuple(distributions)

    def _likeness(self) -> Likeness:
        edges = [tuple(range(size + 1)) for size in self.attributes.sizes]
        first, *others = (distribution.frequencies for distribution in self.distributions)
        return Likeness(edges, first, [distribution[None] for distribution in others])

    def _bootstrapped(
        self, places: Sequence[int], boxes: Boxes, confidence: float
    ) -> tuple[Floats, Floats]:
        # How attributes go together is not known: all that their own distributions allow
        # (Frechet's bounds), with their errors
        # Bonferroni: all attributes' intervals hold together with the confidence asked for
        each = 1 - (1 - confidence) / len(places)
        ends = []
        for axis, place in enumerate(places):
            alone = [(left[:, [axis]], right[:, [axis]]) for left, right in boxes]
            # Boxes differ in other attributes: along this one the same range is counted once
            distinct = list({(a.tobytes(), b.tobytes()): (a, b) for a, b in alone}.values())
            ends.append(super()._bootstrapped([place], distinct, each))
        low, high = (np.array([end[side] for end in ends]) for side in (0, 1))
        return np.maximum(low.sum(axis=0) - (len(places) - 1), 0.0), high.min(axis=0)

    def _answers(self, queries: Queries) -> Floats:
        result = np.ones(len(queries.rows))
        for axis, place in enumerate(queries.places):
            result *= self.distributions[place].range(queries.left[:, axis], queries.right[:, axis])
        return result


class PairwiseEstimate(ConjunctionEstimate):
    """Answers from the distributions of attributes and pairs; of more by weighted update.

    Attributes
    ----------
    lines : tuple of Line
        The distribution of each attribute; none with no reports.
    planes : dict of (int, int) to Plane
        The distribution of each pair (j, k) with j < k; none with no reports.
    """

    def __init__(
        self,
        attributes: Domain,
        n: int,
        lines: Sequence[Line],
        planes: Mapping[tuple[int, int], Plane],
        errors: Callable[[Queries], Floats] | None = None,
    ) -> None:
        super().__init__(attributes, n)
        self.lines, self.planes, self._errors_of = tuple(lines), dict(planes), errors

    def _pairs(self, j: int, k: int) -> Floats:
        return self.planes[j, k].values()

    def _likeness(self) -> Likeness:
        if not self.planes:
            return Likeness([self.lines[0].edges], self.lines[0].cells, [])
        planes = [self.planes[0, k] for k in range(1, len(self.attributes))]
        edges = [planes[0].edges[0], *(plane.edges[1] for plane in planes)]
        return Likeness(
            edges,
            planes[0].cells.sum(axis=1),
            [norm_sub(plane.cells.ravel()).reshape(plane.cells.shape) for plane in planes],
        )

    def quadrants(self, queries: Queries) -> Floats:
        """Return the answers inside and outside of each pair of a query's ranges.

        Parameters
        ----------
        queries : Queries
            Checked, about the same attributes.

        Returns
        -------
        numpy.ndarray of float64
            As `weighted_update` takes them, shape (queries, pairs, 2, 2): inside first,
            non-negative, of sum 1 for each pair.
        """
        pairs = list(combinations(range(len(queries.places)), 2))
        tables = np.empty((len(queries.rows), len(pairs), 2, 2))
        for number, (j, k) in enumerate(pairs):
            plane = self.planes[queries.places[j], queries.places[k]]
            tables[:, number] = plane.quadrants(queries.left[:, [j, k]], queries.right[:, [j, k]])
        tables = np.maximum(tables, 0.0)  # of unbiased estimates some may be negative
        return tables / tables.sum(axis=(2, 3), keepdims=True)

    def _answers(self, queries: Queries) -> Floats:
        if len(queries.places) == 1:
            return self.lines[queries.places[0]].answers(queries.left[:, 0], queries.right[:, 0])
        if len(queries.places) == 2:
            return self.planes[queries.places[0], queries.places[1]].quadrants(
                queries.left, queries.right
            )[:, 0, 0]
        # The rounds end where the change is below what one user is in the fractions
        parts, _ = weighted_update(
            self.quadrants(queries), len(queries.places), min(1 / self.reports, MOST_TOLERANCE)
        )
        return parts.reshape(len(parts), -1)[:, 0].copy()

    def _errors(self, queries: Queries) -> Floats:
        return super()._errors(queries) if self._errors_of is None else self._errors_of(queries)


def even(size: int) -> Distribution:
    """The uniform distribution of an attribute."""
    return Distribution(np.full(size, 1 / size))
