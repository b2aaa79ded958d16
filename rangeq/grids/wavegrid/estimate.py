"""The estimate from square waves: distributions of attributes and pairs, answers, their errors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core import (
    Answer,
    Condition,
    ConfidenceInterval,
    by_model,
    normal_quantile,
    on_average,
    place_along,
)
from frequency.exceptions import InvalidQuestion
from frequency.schema import Domain
from frequency.schema.domain import MOST_ATTRIBUTES
from mechdesign.base import Floats, Items, shown
from rangeq.core import Told
from rangeq.grids.cells import Queries, Rectangles
from rangeq.grids.estimate import ConjunctionEstimate, PredictedError
from rangeq.grids.fitting import weighted_update
from rangeq.grids.wavegrid.distributions import (
    Axis,
    Joint,
    along,
    at,
    before,
    parts_before,
)
from rangeq.grids.wavegrid.partitions import tree_answers
from rangeq.grids.wavegrid.reports import ReportsAlone

# The most attributes of a query that is answered from all pairs at once; of more, from a tree of
# their pairs: of many the distribution of most entropy has 2^lambda parts.
_TOGETHER = 12

# The most attributes of a query for which values below its ranges are kept apart from those above:
# 3^lambda parts instead of 2^lambda.
#
# With exact distributions of pairs answers about four attributes of sizes 3 to 1024 err by 0.0009
# instead of by 0.005.
_BOTH_SIDES = 6

_LOOKED_UP = 1 << 16  # the most values of an attribute of which all boundaries are kept

# The tolerance of the weighted update: a tenth of the standard error that 10^7 reports leave.
_TOLERANCE = 1e-5

# The standard error allowed for dependence of three and more attributes beyond their pairs, in
# units of what dependence changes in the answer: tried on what docs/benchmarks/grids.md has.
_BEYOND_PAIRS = 0.05

#: The ridge and the bound of slopes of answers in those of pairs, where ranges are full or empty.
_RIDGE, _STEEPEST = 1e-6, 2.0


class WaveEstimate(ConjunctionEstimate):
    """Answers with standard errors given their priors: what `WaveGrid` estimates.

    An attribute's distribution is the posterior mean of `rangeq.core.density`; a pair's
    has these margins and the interaction of `rangeq.grids.wavegrid.interactions`, or none, or what
    the tree of the most dependent pairs implies (`rangeq.grids.wavegrid.partitions`), and the terms
    of `rangeq.grids.wavegrid.local_terms` that the reports tell of, 64 x 64 cells at most, within
    which an attribute is distributed as it is by itself; answers about more attributes come from
    the distribution of most entropy that all pairs allow, of below, inside and above of every
    range; about more than 12, from that which a tree of their most dependent pairs allows. Of
    categories every one by itself has such terms, and none is a neighbour of another. Pairs that
    nobody was asked about are as a tree of the others implies: answers that need one have no
    errors.

    Intervals of answers about one attribute or two are by the reports alone, and hold for each
    question (`rangeq.grids.wavegrid.reports`); of more attributes, and with ``on_average``, they
    are of the model: the normal quantile of the standard errors, which hold what local terms leave
    open, and which model is right (``docs/benchmarks/grids.md`` says how often they cover). Those
    hold on average over questions, and at a heap or for a small group of another kind far less
    often, where the default ones hold (``docs/limits/rangeq.md``). No report has information about
    the dependence of three attributes beyond that of their pairs: the model's intervals allow for a
    twentieth of what dependence changes in the answer. They know nothing of heavy single values in
    cells of several, where an attribute has more than 256. All lie within [0, 1].

    Attributes
    ----------
    axes : tuple of Axis
        The distribution of each attribute; none with no reports.
    joints : dict of (int, int) to Joint
        The distribution of each pair (j, k) with j < k; none with no reports.
    categorical : tuple of bool
        For each attribute whether its values are categories.
    """

    most_attributes = MOST_ATTRIBUTES

    def caveats(self, several: bool) -> tuple[str, ...]:
        """Return what is to be known of answers: see `SurveyEstimate.caveats`."""
        independence = (
            "Answers about several attributes are drawn towards independence. Where a small group"
            " is unlike all others, such as students who are all young, values may miss the truth"
            " by far. So may intervals that hold on average, which all about more than two"
            " attributes do: for such questions collect marginals."
        )
        return (independence,) if several else ()

    def __init__(
        self,
        attributes: Domain,
        n: int,
        axes: Sequence[Axis],
        joints: Mapping[tuple[int, int], Joint],
        categorical: Sequence[bool],
        told: Sequence[Told] = (),
    ) -> None:
        super().__init__(attributes, n)
        self.axes, self.joints = tuple(axes), dict(joints)
        self.categorical = tuple(categorical)
        self._reports = (
            ReportsAlone(told, self.axes, self.joints, self.categorical) if told else None
        )

    def fitted(self) -> WaveEstimate:
        return self

    def _by_reports(
        self, told: Answer, shape: tuple[int, ...], asked: Sequence[Condition]
    ) -> Answer:
        reports, sizes = self._reports, self.attributes.sizes
        # An attribute that is asked for in whole restricts nothing
        limited = tuple(
            condition
            for condition in asked
            if condition.first.ndim or condition.size < sizes[condition.place]
        )
        if len(limited) > 2:
            return on_average(told)
        if reports is None or not limited:
            return told
        each = partial(reports.interval, limited, shape, self._of_drawing)
        return by_model(told, Answer(told.value, _interval=each))

    def _drawn_from(self, rng: np.random.Generator) -> WaveEstimate:
        """Another estimate that is as likely; pairs that nobody was asked about stay the same."""
        axes = [axis.drawn(rng) for axis in self.axes]
        joints = {
            (j, k): joint.drawn(axes[j].mass, axes[k].mass, rng)
            for (j, k), joint in self.joints.items()
        }
        return WaveEstimate(self.attributes, self.reports, axes, joints, self.categorical)

    def _ranged(self, asked: Sequence[Condition]) -> tuple[WaveEstimate, Sequence[Condition]]:
        """Turn sets of values into ranges of an estimate of the same values in another order."""
        # But those that are ranges as it is
        sets = {
            condition.place: condition.items
            for condition in asked
            if condition.items is not None and self.reports and self.axes[condition.place].separate
        }
        sets = {place: items for place, items in sets.items() if (np.diff(items) != 1).any()}
        if not sets:
            return self, asked
        orders = [np.arange(len(axis.mass)) for axis in self.axes]
        for place, items in sets.items():
            orders[place] = np.concatenate([items, np.setdiff1d(orders[place], items)])
        result = copy.copy(self)
        # `copy` has taken the cached places along, which are those of the old order
        vars(result).pop("_cuts", None)
        result.axes = tuple(
            axis.reordered(orders[place]) if place in sets else axis
            for place, axis in enumerate(self.axes)
        )
        result.joints = {
            (j, k): joint.reordered(orders[j], orders[k]) if {j, k} & set(sets) else joint
            for (j, k), joint in self.joints.items()
        }
        zero = np.zeros((), dtype=np.int64)
        ranged = [
            condition._replace(
                first=zero, last=np.array(len(sets[condition.place]) - 1), items=None
            )
            if condition.place in sets
            else condition
            for condition in asked
        ]
        return result, ranged

    def _prefixes(self, attribute: str | int | None) -> Iterator[Answer]:
        if self.categorical[place_along(attribute, self.attributes.names)]:
            raise InvalidQuestion(
                f"the values of {shown(attribute)} are categories: they have no order"
            )
        return super()._prefixes(attribute)

    def _pairs(self, j: int, k: int) -> Floats:
        rows, columns = (
            self.axes[place].place(np.arange(self.attributes.sizes[place] + 1)) for place in (j, k)
        )
        at = before(self.joints[j, k].table_sums, rows[:, None], columns[None])
        return np.asarray(np.diff(np.diff(at, axis=0), axis=1))

    def _interval(
        self, places: Sequence[int], left: Items, right: Items, shape: tuple[int, ...]
    ) -> Callable[[float], ConfidenceInterval[Any]]:
        def within(confidence: float) -> ConfidenceInterval[Any]:
            errors = np.sqrt(self.predicted_error(places, left, right).total)
            half = normal_quantile(confidence) * errors
            middle = self.answers(places, left, right) if self.reports else np.full(half.shape, 0.5)
            ends = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
            return ConfidenceInterval(*(end.reshape(shape) for end in ends))

        return within

    def _of_region(
        self, places: tuple[int, int], mask: npt.NDArray[np.bool_], boxes: Rectangles
    ) -> Answer:
        """Answer a region in one sum, in which the noise of cells cancels, with its variance."""
        # The change of an answer is that of a rectangle's, `_variances`, summed over all borders of
        # the region across either attribute
        if not self.reports:
            return super()._of_region(places, mask, boxes)
        joint, inside = self.joints[places], mask.astype(np.float64)
        cuts = [self._at(place, np.arange(self.attributes.sizes[place] + 1)) for place in places]
        shares = [
            np.diff(parts_before(cut, len(self.axes[k].mass)), axis=0)
            for k, cut in zip(places, cuts, strict=True)
        ]
        region = shares[0].T @ inside @ shares[1]
        # At most what is in the rows and in the columns that it is in, as of rectangles
        touched = [np.flatnonzero(mask.any(axis=1 - axis)) for axis in (0, 1)]
        alone = [
            self.axes[place].line.answers(values, values).sum()
            for place, values in zip(places, touched, strict=True)
        ]
        value = max(min(float((region * joint.mean).sum()), *map(float, alone)), 0.0)
        variance = joint.variance_of(region)
        if math.isnan(variance):
            return Answer(value, None, "nobody was asked about this pair of attributes")
        for axis, place in enumerate(places):
            sums, distribution = joint.conditional[axis], self.axes[place]
            weights, other = (inside, shares[1]) if axis == 0 else (inside.T, shares[0])
            if self.categorical[place]:  # of which every one changes by itself
                slopes = (weights @ other * np.diff(sums, axis=1)).sum(axis=1)
                variance += float(slopes @ distribution.changes @ slopes)
                continue
            borders = -np.diff(np.pad(weights, [(1, 1), (0, 0)]), axis=0) @ other
            rows = np.minimum(cuts[axis].astype(np.int64), len(sums) - 1)
            changes = (borders * np.diff(sums, axis=1)[rows]).sum(axis=1)
            slopes = np.zeros(len(distribution.covariance))
            # `add.at`, as several borders may have the same nearest cell end
            np.add.at(slopes, distribution.nearest(np.arange(len(changes))), changes)
            variance += float(slopes @ distribution.covariance @ slopes)
        variance = max(variance, 0.0) + value * (1 - value) / self.reports
        variance += float(self._of_drawing(np.array(value)))

        def within(confidence: float) -> ConfidenceInterval[Any]:
            half = normal_quantile(confidence) * math.sqrt(variance)
            ends = max(value - half, 0.0), min(value + half, 1.0)
            return ConfidenceInterval(*ends)

        return Answer(value, variance, _interval=within)

    def predicted_error(
        self, attributes: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike
    ) -> PredictedError:
        """The squared error to expect of `answers`: the posterior variance.

        To first order, for queries of any number of attributes. ``noise`` is that of attributes and
        interactions given their priors, and holds that of users divided among pairs, and an
        allowance for what three and more attributes have in common beyond their pairs; ``sampling``
        is that of the users as draws of such a distribution. What the priors cannot know of is not
        in it: see `WaveEstimate`.

        Parameters
        ----------
        attributes, left, right : array_like
            As for `answers`.

        Returns
        -------
        PredictedError
            Arrays of shape (m,).

        Raises
        ------
        InvalidRange
            As for `answers`.
        """
        return super().predicted_error(attributes, left, right)

    # ------------------------------------------------------------------------------------- answers

    def _answers(self, queries: Queries) -> Floats:
        if len(queries.places) > 2:
            return self._together([queries])[0]
        if len(queries.places) == 1:
            return self._at_most(queries)
        return np.minimum(self._tables(queries)[:, 0, 0, 0], self._at_most(queries))

    def _at_most(self, queries: Queries) -> Floats:
        """Return the frequency of the range of each attribute, the least of them."""
        # Noise of few users may put more in a rectangle than is in its rows or its columns
        ranges = zip(queries.places, queries.left.T, queries.right.T, strict=True)
        alone = [self.axes[place].line.answers(left, right) for place, left, right in ranges]
        return np.asarray(np.minimum.reduce(alone))

    def _all_answers(self, groups: Sequence[Queries]) -> list[Floats]:
        answers = {
            k: self._answers(queries) for k, queries in enumerate(groups) if len(queries.places) < 3
        }
        for several in {len(queries.places) for queries in groups if len(queries.places) > 2}:
            # Many groups are few queries each: all are updated at once
            alike = [k for k, queries in enumerate(groups) if len(queries.places) == several]
            answers.update(zip(alike, self._together([groups[k] for k in alike]), strict=True))
        return [answers[k] for k in range(len(groups))]

    def _together(self, groups: Sequence[Queries]) -> list[Floats]:
        """The answers of queries that all name as many attributes, more than two."""
        split = [self._by_category(part_queries) for part_queries in groups]
        tables = np.concatenate([self._tables(part_queries) for part_queries in split])
        several = len(groups[0].places)
        if several > _TOGETHER:
            answers = tree_answers(_in_and_out(tables), several).answers
        else:
            answers = self._parts(tables, several).reshape(len(tables), -1)[:, 0]
        parts = np.split(
            answers, np.cumsum([len(part_queries.rows) for part_queries in split])[:-1]
        )
        return [
            # Categories of a query add up again
            np.minimum(np.bincount(part_queries.rows, part, len(group.rows)), self._at_most(group))
            for group, part_queries, part in zip(groups, split, parts, strict=True)
        ]

    def _by_category(self, queries: Queries) -> Queries:
        """Return queries of each category of one attribute by itself, with their queries' rows."""
        # The attribute is the categorical one that the others depend on most. The others' joint
        # distribution given that it is one of several categories is not that given each.
        rows, places = np.arange(len(queries.rows)), queries.places
        named = [axis for axis, place in enumerate(places) if self.categorical[place]]
        if not named:
            return queries._replace(rows=rows)

        def told(axis: int) -> float:
            pairs = (tuple(sorted((places[axis], place))) for place in places)
            return sum(self.joints[j, k].dependence for j, k in pairs if j != k)

        axis = max(named, key=told)
        first, many = queries.left[:, axis], queries.right[:, axis] - queries.left[:, axis] + 1
        rows = np.repeat(rows, many)
        left, right = queries.left[rows], queries.right[rows]
        each = first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many)
        left[:, axis] = right[:, axis] = each
        return Queries(rows, places, left, right)

    def _places(self, queries: Queries) -> list[tuple[Floats, Floats]]:
        """The places among coarse cells where the ranges of each attribute begin and end."""
        ends = zip(queries.places, queries.left.T, queries.right.T, strict=True)
        return [(self._at(place, left), self._at(place, right + 1)) for place, left, right in ends]

    def _at(self, place: int, ends: Items) -> Floats:
        cuts = self._cuts[place]
        return self.axes[place].place(ends) if cuts is None else cuts[ends]

    @cached_property
    def _cuts(self) -> list[Floats | None]:
        """The places of all boundaries between values, of attributes of not too many."""
        return [
            axis.place(np.arange(size + 1)) if size <= _LOOKED_UP else None
            for axis, size in zip(self.axes, self.attributes.sizes, strict=True)
        ]

    def _tables(self, queries: Queries, linear: bool = True) -> Floats:
        """The frequencies in, below and above both ranges, of every two attributes of a query.

        Shape (queries, pairs, 3, 3): at least 0, of sums of cells of means, or of non-negative
        tables.
        """
        places, pairs = self._places(queries), list(combinations(range(len(queries.places)), 2))
        tables = np.empty((len(queries.rows), len(pairs), 3, 3))
        for number, (j, k) in enumerate(pairs):
            joint = self.joints[queries.places[j], queries.places[k]]
            sums = joint.sums if linear else joint.table_sums
            cuts = [
                np.stack(
                    [np.zeros_like(start), start, end, np.full_like(end, sums.shape[axis] - 1)],
                    axis=1,
                )
                for axis, (start, end) in enumerate((places[j], places[k]))
            ]
            at = before(sums, cuts[0][:, :, None], cuts[1][:, None, :])
            # Double differences of cumulated sums: nine parts from sixteen corners
            tables[:, number] = np.maximum(np.diff(np.diff(at, axis=1), axis=2), 0.0)
        return tables[:, :, [1, 0, 2]][:, :, :, [1, 0, 2]]

    def _parts(self, tables: Floats, several: int) -> Floats:
        """The frequencies of all combinations of in, below and above; of many, in and out."""
        if several > _BOTH_SIDES:
            tables = _in_and_out(tables)
        return weighted_update(tables, several, _TOLERANCE)[0]

    # -------------------------------------------------------------------------------------- errors

    def _errors(self, queries: Queries) -> Floats:
        errors = np.zeros((3, len(queries.rows)))
        step = 1 << max(6, 18 - 2 * len(queries.places))  # working arrays of some megabytes
        for start in range(0, len(queries.rows), step):
            rows = np.arange(start, min(start + step, len(queries.rows)))
            part = Queries(rows, queries.places, queries.left[rows], queries.right[rows])
            answers = self._answers(part)
            errors[0, rows] = self._variances(part) + self._beyond_pairs(part, answers)
            errors[1, rows] = np.maximum(answers * (1 - answers), 0.0) / self.reports
        return errors

    def _variances(self, queries: Queries) -> Floats:
        """Return the variances of answers by the delta method."""
        # An answer's change is sum_j g_j dm_j + sum_jk g_jk dm_jk, those of its ranges' and pairs'
        # answers. dm_jk = Pr[k in | j at its end] dF_j(end) - Pr[k in | j at its beginning]
        # dF_j(beginning), the same with j and k exchanged, and what the coefficients change, as if
        # they were independent of the attributes' distributions.
        several, places = len(queries.places), self._places(queries)
        single, paired = self._sensitivities(queries)
        begins, ends, result = single.copy(), single.copy(), np.zeros(len(queries.rows))
        # Of categories every one changes by itself
        each = {
            axis: np.repeat(single[:, [axis]], len(self.axes[place].mass), axis=1)
            for axis, place in enumerate(queries.places)
            if self.categorical[place]
        }
        for number, (j, k) in enumerate(combinations(range(several), 2)):
            joint, weight = self.joints[queries.places[j], queries.places[k]], paired[:, number]
            for this, other, sums in ((j, k, joint.conditional[0]), (k, j, joint.conditional[1])):
                if this in each:
                    inside = at(sums.T, places[other][1]) - at(sums.T, places[other][0])
                    each[this] += weight[:, None] * np.clip(inside, 0.0, 1.0)
                    continue
                for coefficient, ending in zip((begins, ends), places[this], strict=True):
                    row = np.minimum(ending.astype(np.int64), len(sums) - 1)
                    inside = along(sums, row, places[other][1]) - along(sums, row, places[other][0])
                    coefficient[:, this] += weight * np.clip(inside, 0.0, 1.0)
            # A weight of 0 must not spread the NaN of a pair that nobody was asked about
            variances = weight**2 * joint.variances(places[j], places[k])
            result += np.where(weight != 0, variances, 0.0)
        for axis, place in enumerate(queries.places):
            distribution, left, right = (
                self.axes[place],
                queries.left[:, axis],
                queries.right[:, axis],
            )
            if axis in each:
                values = np.arange(len(distribution.mass))
                asked = (values >= left[:, None]) & (values <= right[:, None])
                changes = each[axis] * asked
                result += ((changes @ distribution.changes) * changes).sum(axis=1)
                continue
            b, e = begins[:, axis], ends[:, axis]
            first, last = distribution.nearest(left), distribution.nearest(right + 1)
            matrix = distribution.covariance
            result += (
                e**2 * matrix[last, last]
                + b**2 * matrix[first, first]
                - 2 * e * b * matrix[last, first]
            )
        return np.maximum(result, 0.0)

    def _beyond_pairs(self, queries: Queries, answers: Floats) -> Floats:
        """The prior variance of dependence beyond pairs; 0 of one attribute and of two."""
        if len(queries.places) < 3:
            return np.zeros(len(queries.rows))
        ends = zip(queries.places, queries.left.T, queries.right.T, strict=True)
        each = [self.axes[place].line.answers(left, right) for place, left, right in ends]
        return np.square(_BEYOND_PAIRS * (answers - np.prod(each, axis=0)))

    def _sensitivities(self, queries: Queries) -> tuple[Floats, Floats]:
        """Slopes g of answers in single attributes and pairs: (queries, attributes or pairs)."""
        # A distribution of most entropy answers with Cov(S, S)^-1 Cov(S, all in), S the indicators
        # of the ranges and of their pairs
        m, several = len(queries.rows), len(queries.places)
        pairs = list(combinations(range(several), 2))
        if several == 1:
            return np.ones((m, 1)), np.zeros((m, 0))
        if several == 2:
            return np.zeros((m, 2)), np.ones((m, 1))
        # Where noise has emptied a field answers would seem not to depend on it
        if several > _TOGETHER:
            tables = _in_and_out(self._tables(queries, linear=False))
            _, single, paired = tree_answers(tables, several)
            return single, paired
        parts = self._parts(self._tables(queries, linear=False), several)
        if parts.shape[1] == 3:
            for axis in range(1, several + 1):
                inside, below, above = np.moveaxis(parts, axis, 0)
                parts = np.stack([inside, below + above], axis=axis)
        flat = parts.reshape(m, -1)
        flat = flat / flat.sum(axis=1, keepdims=True)
        inside = 1.0 - np.array(list(np.ndindex(*(2,) * several)))
        features = np.concatenate(
            [inside, *(inside[:, [j]] * inside[:, [k]] for j, k in pairs)], axis=1
        )
        mean = flat @ features
        # The covariance of the indicators as a product, so that it is positive semidefinite; full
        # or empty ranges make it singular, which the ridge bridges
        apart = np.sqrt(flat)[:, :, None] * (features - mean[:, None])
        covariance = np.matmul(apart.transpose(0, 2, 1), apart) + _RIDGE * np.eye(features.shape[1])
        # Cov(S, all in) = P(all in) (1 - mean S): where all are in, every indicator is 1
        both = flat[:, :1] * (1 - mean)
        slopes = np.clip(
            np.linalg.solve(covariance, both[:, :, None])[:, :, 0], -_STEEPEST, _STEEPEST
        )
        return slopes[:, :several], slopes[:, several:]


def _in_and_out(tables: Floats) -> Floats:
    """Join below and above as outside: (queries, pairs, 3, 3) to (.., 2, 2)."""
    out = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    return np.asarray(np.einsum("ia,jb,mpab->mpij", out, out, tables))
