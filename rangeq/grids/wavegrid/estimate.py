"""The estimate from square waves: distributions of attributes and pairs, answers, their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core.answer import (
    Answer,
    ConfidenceInterval,
    normal_quantile,
    place_of,
    plain,
)
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.blas import one_thread
from rangeq.core.intervals import InvalidRange
from rangeq.grids.cells import Edges, equal_cells
from rangeq.grids.estimate import ConjunctionEstimate, PredictedError
from rangeq.grids.fitting.maximum_entropy import weighted_update
from rangeq.grids.fitting.piecewise import Line
from rangeq.grids.queries import Queries, Rectangles
from rangeq.grids.wavegrid.density import Density, Told, posterior_densities
from rangeq.grids.wavegrid.interactions import Pair, fitted
from rangeq.grids.wavegrid.local_terms import PairExplanation, bases, explained
from rangeq.grids.wavegrid.square_waves import FINE, Heard, Wave

COARSE = 64
"""Cells along each axis of the joint distribution of a pair, at most: twice as many would take four
times as long.
"""

SMOOTH = 32
"""Cells along each axis in which smooth terms are fitted, at most."""

_EVEN = 0.3
"""Which part of the measure that coarse cells have equal shares of is length: none is much longer
than 1/19 of the domain.
"""

_BOTH_SIDES = 6
"""Up to so many attributes of a query values below its ranges are told from those above: 3^lambda
parts instead of 2^lambda.

With exact distributions of pairs answers about four attributes of sizes 3 to 1024 err by 0.0009
instead of by 0.005.
"""

_LOOKED_UP = 1 << 16
"""Values of an attribute of which all boundaries are kept."""

_TOLERANCE = 1e-5
"""Of the weighted update: a tenth of the least standard error that 10^7 reports leave."""

_RIDGE, _STEEPEST = 1e-6, 2.0
"""Keep how an answer depends on those of pairs finite where ranges are full or empty."""

_TINY = 1e-300
"""Keeps quotients of nothing by nothing finite."""


class Axis(NamedTuple):
    """The distribution of an attribute.

    Attributes
    ----------
    line : Line
        Of the cells.
    covariance : numpy.ndarray of float64
        Of the cells' sums: shape (cells + 1, cells + 1).
    groups : numpy.ndarray of int64
        Shape (cells,): which coarse cell each cell is in.
    mass : numpy.ndarray of float64
        Shape (coarse cells,): their frequencies.
    """

    line: Line
    covariance: Floats
    groups: Items
    mass: Floats

    @classmethod
    def of(cls, edges: Edges, found: Density) -> Axis:
        """From the posterior of the cells.

        Parameters
        ----------
        edges : tuple of int
            Where the cells begin, and the size.
        found : Density
            The posterior.

        Returns
        -------
        Axis
            With at most `COARSE` coarse cells.
        """
        sums = np.zeros((len(edges), len(edges)))
        sums[1:, 1:] = found.covariance.cumsum(axis=0).cumsum(axis=1)
        groups = balanced(found.frequencies, COARSE)
        mass: Floats = np.bincount(groups, found.frequencies).astype(np.float64)
        return cls(Line(edges, found.frequencies / found.frequencies.sum()), sums, groups, mass)

    @property
    def starts(self) -> Items:
        """Where the coarse cells begin, and the size."""
        first = np.flatnonzero(np.diff(self.groups, prepend=-1))
        return np.array(self.line.edges)[[*first.tolist(), len(self.groups)]]

    def place(self, ends: Items) -> Floats:
        """Where boundaries between values (0 .. size) lie among the coarse cells, by mass.

        The number of a cell and part of it.
        """
        edges = np.array(self.line.edges)
        group = self.groups[
            np.minimum(np.searchsorted(edges, ends, side="right") - 1, len(self.groups) - 1)
        ]
        before = np.concatenate([[0.0], np.cumsum(self.mass)])
        below = self.line.answers(np.zeros_like(ends), ends - 1)
        place: Floats = group + np.clip(
            (below - before[group]) / np.maximum(self.mass[group], _TINY), 0.0, 1.0
        )
        return np.where(ends == edges[-1], float(len(self.mass)), place)

    def merged(self, functions: Floats) -> Floats:
        """The means of functions of cells over those of each coarse cell.

        Shape (..., cells) to (..., coarse cells).
        """
        cells, mass = self.line.cells, self.mass[self.groups]
        even = 1 / np.bincount(self.groups)[self.groups]
        share = np.where(mass > _TINY, cells / np.maximum(mass, _TINY), even)
        merged: Floats = np.add.reduceat(
            functions * share, np.flatnonzero(np.diff(self.groups, prepend=-1)), axis=-1
        )
        return merged

    def nearest(self, ends: Items) -> Items:
        """The ends of cells nearest to boundaries between values."""
        edges = np.array(self.line.edges)
        return np.searchsorted((edges[1:] + edges[:-1]) / 2, ends)


@dataclass(frozen=True, eq=False)
class Joint:
    """The distribution of a pair: the mean of its explanations.

    Parameters
    ----------
    pair : Pair
        What is known of the pair.
    explanations : list of PairExplanation
        Of weights 1 in sum.
    """

    pair: Pair
    explanations: list[PairExplanation]

    @cached_property
    def mean(self) -> Floats:
        """Shape (cells, cells): cells may be negative, by the noise of local terms."""
        return np.asarray(sum(one.weight * one.joint for one in self.explanations))

    @cached_property
    def table(self) -> Floats:
        """The mean brought to cells of at least 0, with the margins of the pair."""
        return distribution(self.mean, *self.pair.margins)

    @cached_property
    def sums(self) -> Floats:
        """Of the mean's cells before each corner: in sums of cells noise cancels."""
        return corners(self.mean)

    @cached_property
    def table_sums(self) -> Floats:
        """Of the table's cells before each corner."""
        return corners(self.table)

    @cached_property
    def conditional(self) -> tuple[Floats, Floats]:
        """Cumulative distributions of either attribute for each cell of the other.

        Of the second for each cell of the first, and of the first for each of the second.
        """
        found = []
        for table in (self.table, self.table.T):
            sums = np.pad(table.cumsum(axis=1), [(0, 0), (1, 0)])
            found.append(sums / np.maximum(sums[:, -1:], _TINY))
        return found[0], found[1]

    @cached_property
    def _explained(self) -> list[tuple[PairExplanation, Floats, Floats, Floats, Floats]]:
        """Of each explanation the sums before corners of its table, slopes and functions."""
        return [
            (
                one,
                corners(one.joint),
                corners(self.pair.slopes(*one.fit.terms, one.fit.joint)),
                np.pad(one.left.cumsum(axis=0), [(1, 0), (0, 0)]),
                np.pad(one.right.cumsum(axis=0), [(1, 0), (0, 0)]),
            )
            for one in self.explanations
        ]

    def variances(self, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
        """The posterior variance of what lies in rectangles, with the margins held.

        Parameters
        ----------
        rows, columns : tuple of (numpy.ndarray of float64, numpy.ndarray of float64)
            Where they begin and where they end, as `before` takes places: shape (queries,) each.

        Returns
        -------
        numpy.ndarray of float64
            Shape (queries,).
        """
        total = np.zeros(len(rows[0]))
        means = []
        for one, sums, slopes, left, right in self._explained:
            means.append(rectangle(sums, rows, columns))
            own = np.zeros(len(total))
            if one.fit.theta.size:
                inside = rectangle(slopes, rows, columns)
                own += (inside * (one.fit.covariance @ inside)).sum(axis=0)
            if one.mean.size:
                a, b = (
                    (at(sides, ends[1]) - at(sides, ends[0])) ** 2
                    for sides, ends in ((left, rows), (right, columns))
                )
                own += ((a @ one.variance) * b).sum(axis=1)
            total += one.weight * own
        weights = np.array([one.weight for one in self.explanations])
        apart = np.array(means) - weights @ np.array(means)
        return np.asarray(total + weights @ apart**2)

    def variance_of(self, region: Floats) -> float:
        """The posterior variance of a weighted sum of cells, with the margins held.

        Parameters
        ----------
        region : numpy.ndarray of float64
            Shape (cells, cells): the weights, such as which part of each cell is in a region.

        Returns
        -------
        float
            At least 0.
        """
        weights = np.array([one.weight for one in self.explanations])
        means = np.array([(region * one.joint).sum() for one in self.explanations])
        total = float(weights @ (means - weights @ means) ** 2)
        for one in self.explanations:
            if one.fit.theta.size:
                slopes = self.pair.slopes(*one.fit.terms, one.fit.joint)
                inside = np.tensordot(slopes, region, axes=2)
                total += one.weight * float(inside @ one.fit.covariance @ inside)
            if one.mean.size:
                inside = one.left.T @ region @ one.right
                total += one.weight * float((inside**2 * one.variance).sum())
        return total


class WaveEstimate(ConjunctionEstimate):
    """Answers with standard errors given their priors: what `WaveGrid` estimates.

    An attribute's distribution is the posterior mean of `rangeq.grids.wavegrid.density`; a pair's
    has these margins and the interaction of `rangeq.grids.wavegrid.interactions`, or none, and the
    terms of `rangeq.grids.wavegrid.local_terms` that the reports tell of, 64 x 64 cells at most,
    within which an attribute is distributed as it is by itself; answers about more attributes come
    from the distribution of most entropy that all pairs allow, of below, inside and above of every
    range.

    Intervals of answers lie within [0, 1]: the normal quantile of the standard errors, which hold
    what local terms leave open, and which model is right (``benchmarks/README.md`` has how often
    they cover). They know nothing of what three attributes have in common beyond their pairs, nor
    of heavy single values in cells of several, where an attribute has more than 256.

    Attributes
    ----------
    axes : tuple of Axis
        The distribution of each attribute; none with no reports.
    joints : dict of (int, int) to Joint
        The distribution of each pair (j, k) with j < k; none with no reports.
    """

    def __init__(
        self,
        attributes: Domain,
        n: int,
        axes: Sequence[Axis],
        joints: Mapping[tuple[int, int], Joint],
    ) -> None:
        super().__init__(attributes, n)
        self.axes, self.joints = tuple(axes), dict(joints)

    def response_matrix(self, first: Any, second: Any) -> Floats:
        """The estimated frequency of every pair of values of two attributes.

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
        if j > k:
            return self.response_matrix(k, j).T
        rows, columns = (
            self.axes[place].place(np.arange(self.attributes.sizes[place] + 1)) for place in (j, k)
        )
        at = before(self.joints[j, k].table_sums, rows[:, None], columns[None])
        return np.asarray(np.diff(np.diff(at, axis=0), axis=1))

    def _interval(
        self, places: Sequence[int], left: Items, right: Items, shape: tuple[int, ...]
    ) -> Callable[[float], ConfidenceInterval]:
        def within(confidence: float) -> ConfidenceInterval:
            errors = np.sqrt(self.predicted_error(places, left, right).total)
            half = normal_quantile(confidence) * errors
            middle = self.answers(places, left, right) if self.reports else np.full(half.shape, 0.5)
            ends = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
            return ConfidenceInterval(*(plain(end.reshape(shape)) for end in ends))

        return within

    def _of_region(
        self, places: tuple[int, int], mask: npt.NDArray[np.bool_], boxes: Rectangles
    ) -> Answer:
        """In one sum, in which the noise of cells cancels, with the variance of the whole.

        The change of an answer is that of a rectangle's, `_variances`, summed over all borders of
        the region across either attribute.
        """
        if not self.reports:
            return super()._of_region(places, mask, boxes)
        joint, inside = self.joints[places], mask.astype(np.float64)
        cuts = [self._at(place, np.arange(self.attributes.sizes[place] + 1)) for place in places]
        shares = [_shares(cut, len(self.axes[k].mass)) for k, cut in zip(places, cuts, strict=True)]
        region = shares[0].T @ inside @ shares[1]
        value = float(np.clip((region * joint.mean).sum(), 0.0, 1.0))
        variance = joint.variance_of(region)
        for axis, place in enumerate(places):
            sums, one = joint.conditional[axis], self.axes[place]
            own, other = (inside, shares[1]) if axis == 0 else (inside.T, shares[0])
            borders = -np.diff(np.pad(own, [(1, 1), (0, 0)]), axis=0) @ other
            rows = np.minimum(cuts[axis].astype(np.int64), len(sums) - 1)
            changes = (borders * np.diff(sums, axis=1)[rows]).sum(axis=1)
            told = np.zeros(len(one.covariance))
            np.add.at(told, one.nearest(np.arange(len(changes))), changes)
            variance += float(told @ one.covariance @ told)
        variance = max(variance, 0.0) + value * (1 - value) / self.reports
        variance += float(self._of_drawing(np.array(value)))

        def within(confidence: float) -> ConfidenceInterval:
            half = normal_quantile(confidence) * math.sqrt(variance)
            ends = max(value - half, 0.0), min(value + half, 1.0)
            return ConfidenceInterval(*(plain(np.array(end)) for end in ends))

        return Answer(value, variance, _interval=within)

    def predicted_error(
        self, attributes: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike
    ) -> PredictedError:
        """The squared error to expect of `answers`: the posterior variance.

        To first order, for queries of any number of attributes. ``noise`` is that of attributes
        and interactions given their priors, and holds that of users divided among pairs;
        ``sampling`` is that of the users as draws of such a distribution. What the priors cannot
        know of is not in it: see `WaveEstimate`.

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
        if len(queries.places) == 1:
            return self.axes[queries.places[0]].line.answers(
                queries.left[:, 0], queries.right[:, 0]
            )
        tables = self._tables(queries)
        if len(queries.places) == 2:
            return tables[:, 0, 0, 0]
        return self._parts(tables, len(queries.places)).reshape(len(tables), -1)[:, 0]

    def _all_answers(self, groups: Sequence[Queries]) -> list[Floats]:
        found = {k: self._answers(one) for k, one in enumerate(groups) if len(one.places) < 3}
        for several in {len(one.places) for one in groups if len(one.places) > 2}:
            # Many groups are few queries each: all are updated at once
            alike = [k for k, one in enumerate(groups) if len(one.places) == several]
            tables = np.concatenate([self._tables(groups[k]) for k in alike])
            answers = self._parts(tables, several).reshape(len(tables), -1)[:, 0]
            ends = np.cumsum([len(groups[k].rows) for k in alike])
            found.update(zip(alike, np.split(answers, ends[:-1]), strict=True))
        return [found[k] for k in range(len(groups))]

    def _places(self, queries: Queries) -> list[tuple[Floats, Floats]]:
        """Where the ranges of each attribute begin and end among coarse cells."""
        ends = zip(queries.places, queries.left.T, queries.right.T, strict=True)
        return [(self._at(place, left), self._at(place, right + 1)) for place, left, right in ends]

    def _at(self, place: int, ends: Items) -> Floats:
        cuts = self._cuts[place]
        return self.axes[place].place(ends) if cuts is None else cuts[ends]

    @cached_property
    def _cuts(self) -> list[Floats | None]:
        """Where all boundaries between values lie, of attributes of not too many."""
        return [
            axis.place(np.arange(size + 1)) if size <= _LOOKED_UP else None
            for axis, size in zip(self.axes, self.attributes.sizes, strict=True)
        ]

    def _tables(self, queries: Queries, linear: bool = True) -> Floats:
        """Of every two of the attributes the frequencies in, below and above of both ranges.

        Shape (queries, pairs, 3, 3): at least 0, of sums of cells of means, or of tables without
        negative cells.
        """
        places, pairs = self._places(queries), list(combinations(range(len(queries.places)), 2))
        found = np.empty((len(queries.rows), len(pairs), 3, 3))
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
            found[:, number] = np.maximum(np.diff(np.diff(at, axis=1), axis=2), 0.0)
        return found[:, :, [1, 0, 2]][:, :, :, [1, 0, 2]]

    def _parts(self, tables: Floats, several: int) -> Floats:
        """The frequencies of all combinations of in, below and above.

        Of many attributes, of in and out.
        """
        if several > _BOTH_SIDES:
            out = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
            tables = np.einsum("ia,jb,mpab->mpij", out, out, tables)
        return weighted_update(tables, several, _TOLERANCE)[0]

    # -------------------------------------------------------------------------------------- errors

    def _errors(self, queries: Queries) -> Floats:
        found = np.zeros((3, len(queries.rows)))
        step = 1 << max(6, 18 - 2 * len(queries.places))  # working arrays of some megabytes
        for start in range(0, len(queries.rows), step):
            rows = np.arange(start, min(start + step, len(queries.rows)))
            part = Queries(rows, queries.places, queries.left[rows], queries.right[rows])
            answers = self._answers(part)
            found[0, rows] = self._variances(part)
            found[1, rows] = np.maximum(answers * (1 - answers), 0.0) / self.reports
        return found

    def _variances(self, queries: Queries) -> Floats:
        """The variances of answers by the delta method.

        An answer's change is sum_j g_j dm_j + sum_jk g_jk dm_jk, those of its ranges' and pairs'
        answers. dm_jk = Pr[k in | j at its end] dF_j(end) - Pr[k in | j at its beginning]
        dF_j(beginning), the same with j and k exchanged, and what the coefficients change, as if
        they were independent of the attributes' distributions.
        """
        several, places = len(queries.places), self._places(queries)
        single, paired = self._sensitivities(queries)
        begins, ends, result = single.copy(), single.copy(), np.zeros(len(queries.rows))
        for number, (j, k) in enumerate(combinations(range(several), 2)):
            joint, weight = self.joints[queries.places[j], queries.places[k]], paired[:, number]
            for axis, own, other, sums in (
                (j, j, k, joint.conditional[0]),
                (k, k, j, joint.conditional[1]),
            ):
                for coefficient, at in zip((begins, ends), places[own], strict=True):
                    row = np.minimum(at.astype(np.int64), len(sums) - 1)
                    inside = along(sums, row, places[other][1]) - along(sums, row, places[other][0])
                    coefficient[:, axis] += weight * np.clip(inside, 0.0, 1.0)
            result += weight**2 * joint.variances(places[j], places[k])
        for axis, place in enumerate(queries.places):
            one, b, e = self.axes[place], begins[:, axis], ends[:, axis]
            first, last = (
                one.nearest(queries.left[:, axis]),
                one.nearest(queries.right[:, axis] + 1),
            )
            matrix = one.covariance
            result += (
                e**2 * matrix[last, last]
                + b**2 * matrix[first, first]
                - 2 * e * b * matrix[last, first]
            )
        return np.maximum(result, 0.0)

    def _sensitivities(self, queries: Queries) -> tuple[Floats, Floats]:
        """g: how answers depend on those of single attributes and of pairs.

        Shapes (queries, attributes) and (queries, pairs). A distribution of most entropy answers
        with Cov(S, S)^-1 Cov(S, all in), S the indicators of the ranges and of their pairs.
        """
        m, several = len(queries.rows), len(queries.places)
        pairs = list(combinations(range(several), 2))
        if several == 1:
            return np.ones((m, 1)), np.zeros((m, 0))
        if several == 2:
            return np.zeros((m, 2)), np.ones((m, 1))
        # Where noise has emptied a field answers would seem not to depend on it
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
        second = np.matmul(features.T, flat[:, :, None] * features)
        covariance = (
            second - mean[:, :, None] * mean[:, None, :] + _RIDGE * np.eye(features.shape[1])
        )
        both = flat[:, :1] * (1 - mean)
        found = np.clip(
            np.linalg.solve(covariance, both[:, :, None])[:, :, 0], -_STEEPEST, _STEEPEST
        )
        return found[:, :several], found[:, several:]


@one_thread
def estimated(
    attributes: Domain, n: int, waves: Sequence[Wave], heard: Sequence[Heard]
) -> WaveEstimate:
    """The estimate from the reports of all parts.

    Parameters
    ----------
    attributes : Domain
        Those of the protocol.
    n : int
        The number of reports, at least 1.
    waves : sequence of Wave
        The wave of each attribute.
    heard : sequence of Heard
        What the reports of each part say.

    Returns
    -------
    WaveEstimate
        With the distributions of all attributes and pairs.
    """
    edges = [equal_cells(size, FINE) for size in attributes.sizes]
    functions = [wave.shares(cut) - 1 / wave.arcs for wave, cut in zip(waves, edges, strict=True)]
    grams = [_gram(wave, function) for wave, function in zip(waves, functions, strict=True)]
    scores, users = [np.zeros(len(cut) - 1) for cut in edges], [0.0] * len(waves)
    for part in heard:
        total = float(part.held.sum())
        for axis, place in enumerate(part.places):
            others = tuple(
                k for k in range(part.held.ndim) if k not in (axis, axis + len(part.places))
            )
            told = waves[place].arcs * part.information * part.held.sum(axis=others)
            scores[place] += np.tensordot(told, functions[place], axes=2)
            users[place] += part.information * total
    densities = posterior_densities(
        [
            Told(score, told * gram, np.diff(cut).astype(np.float64))
            for cut, score, told, gram in zip(edges, scores, users, grams, strict=True)
        ]
    )
    axes = [Axis.of(cut, found) for cut, found in zip(edges, densities, strict=True)]
    if len(attributes) == 1:
        return WaveEstimate(attributes, n, axes, {})
    merged = [axis.merged(function) for axis, function in zip(axes, functions, strict=True)]
    grams = [_gram(wave, function) for wave, function in zip(waves, merged, strict=True)]
    pairs: dict[tuple[int, int], Pair] = {}
    for part in heard:
        j, k = part.places
        half = np.tensordot(merged[j], part.held, axes=([0, 1], [0, 2]))
        products = (
            waves[j].arcs * waves[k].arcs * np.tensordot(half, merged[k], axes=([1, 2], [0, 1]))
        )
        margins = axes[j].mass, axes[k].mass
        pairs[j, k] = Pair(
            part.information * products,
            part.information * float(part.held.sum()),
            (grams[j], grams[k]),
            margins,
        )
    local = [bases(axis.mass, axis.starts, gram) for axis, gram in zip(axes, grams, strict=True)]
    coarse = [balanced(axis.mass, SMOOTH) for axis in axes]
    fits, scales = fitted(
        {(j, k): pair.merged((coarse[j], coarse[k])) for (j, k), pair in pairs.items()}
    )
    found = explained(
        pairs,
        {key: pair.refined(fits[key]) for key, pair in pairs.items()},
        scales,
        {(j, k): (local[j], local[k]) for j, k in pairs},
    )
    return WaveEstimate(
        attributes, n, axes, {pair: Joint(pairs[pair], found[pair]) for pair in pairs}
    )


def _gram(wave: Wave, functions: Floats) -> Floats:
    """E f f' over the configurations and the orthonormal functions of the arcs.

    That is g times that of centred indicators.
    """
    gram: Floats = wave.arcs * np.einsum(
        "k,kax,kay->xy", wave.probabilities, functions, functions, optimize=True
    )
    return gram


def balanced(frequencies: Floats, most: int) -> Items:
    """Neighbouring cells joined into groups of about the same frequency, but none too long.

    Parameters
    ----------
    frequencies : numpy.ndarray of float64
        Shape (cells,): at least 0.
    most : int
        How many groups there may be.

    Returns
    -------
    numpy.ndarray of int64
        Shape (cells,): the number of each cell's group.
    """
    size = len(frequencies)
    if size <= most:
        return np.arange(size)
    weight = (1 - _EVEN) * frequencies / frequencies.sum() + _EVEN / size
    return np.unique(
        np.minimum((np.cumsum(weight) - weight / 2) * most, most - 1).astype(np.int64),
        return_inverse=True,
    )[1]


def corners(tables: Floats) -> Floats:
    """Sums of what comes before each corner of a cell: the last two axes become longer by one."""
    result = np.zeros((*tables.shape[:-2], tables.shape[-2] + 1, tables.shape[-1] + 1))
    result[..., 1:, 1:] = tables.cumsum(axis=-2).cumsum(axis=-1)
    return result


def before(sums: Floats, rows: Floats, columns: Floats) -> Floats:
    """What lies before places within cells, as if cells were uniform.

    Parameters
    ----------
    sums : numpy.ndarray of float64
        `corners` of tables: shape (..., rows + 1, columns + 1).
    rows, columns : numpy.ndarray of float64
        Places: the number of a cell and part of it. They broadcast.

    Returns
    -------
    numpy.ndarray of float64
        Of the tables' leading shape, and then the places' one.
    """
    i, j = (
        np.minimum(rows.astype(np.int64), sums.shape[-2] - 2),
        np.minimum(columns.astype(np.int64), sums.shape[-1] - 2),
    )
    s, t = rows - i, columns - j
    low = sums[..., i, j] * (1 - t) + sums[..., i, j + 1] * t
    high = sums[..., i + 1, j] * (1 - t) + sums[..., i + 1, j + 1] * t
    result: Floats = low * (1 - s) + high * s
    return result


def rectangle(sums: Floats, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
    """What lies between two places along both axes.

    Parameters
    ----------
    sums : numpy.ndarray of float64
        `corners` of tables: shape (..., rows + 1, columns + 1).
    rows, columns : tuple of (numpy.ndarray of float64, numpy.ndarray of float64)
        Where it begins and where it ends, as `before` takes places.

    Returns
    -------
    numpy.ndarray of float64
        As of `before`.
    """
    inside: Floats = before(sums, rows[1], columns[1]) - before(sums, rows[0], columns[1])
    return inside - before(sums, rows[1], columns[0]) + before(sums, rows[0], columns[0])


def _shares(cuts: Floats, cells: int) -> Floats:
    """Which part of each cell belongs to each value: shape (values, cells).

    ``cuts`` are the places of boundaries between values among the cells.
    """
    inside = np.clip(cuts[:, None] - np.arange(cells), 0.0, 1.0)
    return np.diff(inside, axis=0)


def along(sums: Floats, row: Items, columns: Floats) -> Floats:
    """What lies before places along some rows.

    Parameters
    ----------
    sums : numpy.ndarray of float64
        Cumulative sums: shape (rows, columns + 1).
    row : numpy.ndarray of int64
        Which rows.
    columns : numpy.ndarray of float64
        Places along these, of the same shape: the number of a cell and part of it.

    Returns
    -------
    numpy.ndarray of float64
        Of that shape.
    """
    j = np.minimum(columns.astype(np.int64), sums.shape[1] - 2)
    t = columns - j
    result: Floats = sums[row, j] * (1 - t) + sums[row, j + 1] * t
    return result


def at(sums: Floats, places: Floats) -> Floats:
    """Rows of cumulative sums at places: shapes (cells + 1, k) and (m,) to (m, k)."""
    row = np.minimum(places.astype(np.int64), len(sums) - 2)
    part = (places - row)[:, None]
    result: Floats = sums[row] * (1 - part) + sums[row + 1] * part
    return result


def distribution(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """A table without negative cells, brought to its margins by iterative proportional fitting.

    Where noise leaves cells below 0, it leaves as much above 0 in empty ones: norm-sub takes both.
    """
    if (table >= 0).all():
        return table
    kernel = norm_sub(table.ravel()).reshape(table.shape) + 1e-9 * np.outer(rows, columns)
    right = np.ones(len(columns))
    for _ in range(100):
        left = rows / np.maximum(kernel @ right, _TINY)
        right = columns / np.maximum(kernel.T @ left, _TINY)
    return np.asarray(left[:, None] * kernel * right)
