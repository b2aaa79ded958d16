"""The estimated distributions of an attribute and of a pair, with posterior covariances."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from frequency.postprocess import norm_sub
from mechdesign.base import Floats, Items
from rangeq.core import Density, contrasts, cumulated
from rangeq.grids.cells import Edges
from rangeq.grids.fitting import Line, nonnegative, with_margins
from rangeq.grids.wavegrid.interactions import Pair, scaled_to
from rangeq.grids.wavegrid.local_terms import PairExplanation

#: The most cells along each axis of the joint distribution of a pair: twice as many would take four
#: times as long.
COARSE = 64

# The weight of length in the measure that coarse cells have equal shares of: none is much longer
# than 1/19 of the domain.
_EVEN = 0.3

# The part of what independent attributes have in a cell that is its share at least, when the users
# are drawn.
_RULED_OUT = 0.1

_TINY = 1e-300  # A positive number that keeps quotients of nothing by nothing finite


class Axis(NamedTuple):
    """The distribution of an attribute."""

    line: Line  # of the cells
    covariance: Floats  # of the cells' sums: shape (cells + 1, cells + 1)
    groups: Items  # shape (cells,): the coarse cell that each cell is in
    mass: Floats  # shape (coarse cells,): their frequencies

    @classmethod
    def of(cls, edges: Edges, found: Density, most: int = COARSE, apart: int = 0) -> Axis:
        """The distribution of an attribute, from the posterior of its cells."""
        # Covariances of prefixes, not of cells: those of ranges are differences of a few entries
        sums = cumulated(found.covariance)
        groups = balanced(found.frequencies, most, apart)
        mass: Floats = np.bincount(groups, found.frequencies).astype(np.float64)
        return cls(Line(edges, found.frequencies / found.frequencies.sum()), sums, groups, mass)

    @property
    def starts(self) -> Items:
        """The starts of the coarse cells, and the size."""
        first = np.flatnonzero(np.diff(self.groups, prepend=-1))
        return np.array(self.line.edges)[[*first.tolist(), len(self.groups)]]

    @property
    def changes(self) -> Floats:
        """The covariance of the cells: shape (cells, cells)."""
        return np.diff(np.diff(self.covariance, axis=0), axis=1)

    @property
    def separate(self) -> bool:
        """Whether every value is a coarse cell of its own."""
        return len(self.mass) == self.line.edges[-1]

    def reordered(self, order: Items) -> Axis:
        """The distribution of the same values in another order, each a coarse cell of its own."""
        sums = cumulated(self.changes[np.ix_(order, order)])
        line = Line(self.line.edges, self.line.cells[order])
        return Axis(line, sums, self.groups, self.mass[order])

    def drawn(self, rng: np.random.Generator) -> Axis:
        """Another distribution that is as likely, of the same cells."""
        # Frequencies sum to 1, so their covariance is singular, and Cholesky's factor may not
        # exist; rounding leaves the least eigenvalues on either side of 0
        values, vectors = np.linalg.eigh(self.changes)
        off = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=len(values)))
        cells = nonnegative((self.line.cells + off)[:, None])[:, 0]
        cells /= cells.sum()
        mass: Floats = np.bincount(self.groups, cells).astype(np.float64)
        return self._replace(line=Line(self.line.edges, cells), mass=mass)

    def place(self, ends: Items) -> Floats:
        """The places of boundaries between values (0 .. size): a coarse cell and part of it."""
        edges = np.array(self.line.edges)
        group = self.groups[
            np.minimum(np.searchsorted(edges, ends, side="right") - 1, len(self.groups) - 1)
        ]
        before = np.concatenate([[0.0], np.cumsum(self.mass)])
        below = self.line.answers(np.zeros_like(ends), ends - 1)
        # By mass and not by length: within a coarse cell the line says where its users are, so that
        # what is uniform in it is the place and not the value
        place: Floats = group + np.clip(
            (below - before[group]) / np.maximum(self.mass[group], _TINY), 0.0, 1.0
        )
        return np.where(ends == edges[-1], float(len(self.mass)), place)

    def merged(self, functions: Floats) -> Floats:
        """Return the means of functions (..., cells) over the cells of each coarse cell."""
        cells, mass = self.line.cells, self.mass[self.groups]
        even = 1 / np.bincount(self.groups)[self.groups]
        # Conditional means given the coarse cell; in an empty one all of its cells count alike
        share = np.where(mass > _TINY, cells / np.maximum(mass, _TINY), even)
        return np.add.reduceat(
            functions * share, np.flatnonzero(np.diff(self.groups, prepend=-1)), axis=-1
        )

    def nearest(self, ends: Items) -> Items:
        """The ends of cells nearest to boundaries between values."""
        edges = np.array(self.line.edges)
        return np.searchsorted((edges[1:] + edges[:-1]) / 2, ends)


class Joint(ABC):
    """The distribution of a pair of attributes, in coarse cells."""

    @cached_property
    @abstractmethod
    def mean(self) -> Floats:
        """The mean, shape (cells, cells): cells may be negative, by the noise of local terms."""

    @property
    @abstractmethod
    def margins(self) -> tuple[Floats, Floats]:
        """The distribution of each attribute."""

    @abstractmethod
    def variances(self, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
        """Return the posterior variance of what lies in rectangles, with the margins held.

        Shapes: `rows` and `columns` are places as of `before`, (queries,) of each end; returns
        (queries,), NaN where it is not known.
        """

    @abstractmethod
    def variance_of(self, region: Floats) -> float:
        """Return the posterior variance of a weighted sum of cells; NaN where it is not known.

        Shapes: `region` (cells, cells), the weights, such as a region's part of each. Margins are
        held.
        """

    @abstractmethod
    def reordered(self, rows: Items, columns: Items) -> Joint:
        """The distribution with cells in another order: the cells' numbers, shape (cells,) each."""

    def drawn(self, rows: Floats, columns: Floats, rng: np.random.Generator) -> Joint:
        """Draw another distribution that is as likely, with these margins, if that is known."""
        return self

    @cached_property
    def table(self) -> Floats:
        """The mean brought to cells of at least 0, with the margins of the pair."""
        return distribution(self.mean, *self.margins)

    @cached_property
    def sums(self) -> Floats:
        """Sums of the mean's cells before each corner: in sums of cells noise cancels."""
        return cumulated(self.mean)

    @cached_property
    def table_sums(self) -> Floats:
        """Sums of the table's cells before each corner."""
        return cumulated(self.table)

    @cached_property
    def conditional(self) -> tuple[Floats, Floats]:
        """Cumulative distributions of the second for each cell of the first, and the other way."""
        cumulative = []
        for table in (self.table, self.table.T):
            # Of the table without negative cells, as conditional distributions must increase
            sums = cumulated(table, (1,))
            cumulative.append(sums / np.maximum(sums[:, -1:], _TINY))
        return cumulative[0], cumulative[1]

    @cached_property
    def dependence(self) -> float:
        """The mutual information of both attributes, in nats."""
        return float(scipy.special.rel_entr(self.table, np.outer(*self.margins)).sum())


@dataclass(frozen=True, eq=False)
class FittedJoint(Joint):
    """The distribution of a pair that users reported on: the mean of its explanations."""

    pair: Pair
    explanations: list[PairExplanation]  # of weights 1 in sum
    implied: ImpliedJoint | None = None  # what other pairs imply; None for the pairs of their tree

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(
            sum(explanation.weight * explanation.joint for explanation in self.explanations)
        )

    @property
    def margins(self) -> tuple[Floats, Floats]:
        return self.pair.margins

    def reordered(self, rows: Items, columns: Items) -> FittedJoint:
        both = np.ix_(rows, columns)
        pair = replace(
            self.pair,
            scores=self.pair.scores[both],
            grams=(
                self.pair.grams[0][np.ix_(rows, rows)],
                self.pair.grams[1][np.ix_(columns, columns)],
            ),
            margins=(self.margins[0][rows], self.margins[1][columns]),
            halves=replace(
                self.pair.halves,
                left=self.pair.halves.left[rows],
                right=self.pair.halves.right[columns],
            ),
        )
        return FittedJoint(
            pair,
            [
                replace(
                    explanation,
                    fit=replace(
                        explanation.fit,
                        terms=(
                            explanation.fit.terms[0].reordered(rows),
                            explanation.fit.terms[1].reordered(columns),
                        ),
                        joint=explanation.fit.joint[both],
                    ),
                    smooth=explanation.smooth[both],
                    left=explanation.left[rows],
                    right=explanation.right[columns],
                )
                for explanation in self.explanations
            ],
            self.implied and self.implied.reordered(rows, columns),
        )

    @cached_property
    def _explained(self) -> list[tuple[PairExplanation, Floats, Floats, Floats, Floats]]:
        """Sums before corners of the table, slopes and functions of each explanation."""
        return [
            (
                explanation,
                cumulated(explanation.joint),
                cumulated(slopes, (-2, -1)),
                cumulated(explanation.left, (0,)),
                cumulated(explanation.right, (0,)),
            )
            for explanation, slopes in zip(self.explanations, self._slopes, strict=True)
        ]

    @cached_property
    def _slopes(self) -> list[Floats]:
        """Slopes of the table of each explanation in the coefficients of its smooth terms."""
        return [
            self.pair.slopes(
                explanation.fit.terms[0].functions,
                explanation.fit.terms[1].functions,
                explanation.fit.joint,
            )
            for explanation in self.explanations
        ]

    def variances(self, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
        means, variances = [], []
        for explanation, sums, slopes, left, right in self._explained:
            sides = (
                at(left, rows[1]) - at(left, rows[0]),
                at(right, columns[1]) - at(right, columns[0]),
            )
            means.append(rectangle(sums, rows, columns))
            # All from cumulated slopes and functions: the cost of a query does not depend on how
            # many cells it covers
            variances.append(_spread(explanation, rectangle(slopes, rows, columns), *sides))
        if self.implied and self._partly_implied:
            left, right = (
                parts_before(ends[1], len(mass)) - parts_before(ends[0], len(mass))
                for ends, mass in zip((rows, columns), self.margins, strict=True)
            )
            variances = self._with(variances, self.implied.product_variances(left, right))
        return self._mixed(means, variances)

    def product_variances(self, left: Floats, right: Floats) -> Floats:
        """The posterior variance of sums of cells with weights that are products: (queries,)."""
        means, variances = [], []
        for explanation, slopes in zip(self.explanations, self._slopes, strict=True):
            inside = (np.matmul(left, slopes) * right).sum(axis=2)
            means.append(((left @ explanation.joint) * right).sum(axis=1))
            variances.append(
                _spread(explanation, inside, left @ explanation.left, right @ explanation.right)
            )
        if self.implied and self._partly_implied:
            variances = self._with(variances, self.implied.product_variances(left, right))
        return self._mixed(means, variances)

    def variance_of(self, region: Floats) -> float:
        means, variances = [], []
        for explanation, slopes in zip(self.explanations, self._slopes, strict=True):
            inside = np.tensordot(slopes, region, axes=2)
            local = (
                (explanation.left.T @ region @ explanation.right) ** 2 * explanation.variance
            ).sum()
            means.append(np.asarray((region * explanation.joint).sum()))
            variances.append(np.asarray(inside @ explanation.fit.covariance @ inside + local))
        if self.implied and self._partly_implied:
            variances = self._with(variances, np.asarray(self.implied.region_variance(region)))
        return float(self._mixed(means, variances))

    @property
    def _partly_implied(self) -> bool:
        return any(explanation.implied for explanation in self.explanations)

    def _with(self, variances: list[Floats], implied: Floats) -> list[Floats]:
        """Variances of the explanations, with those of what other pairs imply."""
        both = zip(self.explanations, variances, strict=True)
        return [
            variance + implied if explanation.implied else variance
            for explanation, variance in both
        ]

    def _mixed(self, means: list[Floats], variances: list[Floats]) -> Floats:
        """The variance of a mixture of the explanations, given their means and variances."""
        weights = np.array([explanation.weight for explanation in self.explanations])
        # Law of total variance: explanations that disagree about an answer make it uncertain, too
        apart = np.array(means) - weights @ np.array(means)
        return np.asarray(weights @ np.array(variances) + weights @ apart**2)

    def drawn(self, rows: Floats, columns: Floats, rng: np.random.Generator) -> ImpliedJoint:
        """Draw another distribution that is as likely, with these margins."""
        weights = np.array([explanation.weight for explanation in self.explanations])
        explanation = self.explanations[rng.choice(len(weights), p=weights / weights.sum())]
        # One explanation is drawn, then its parameters: a draw of the mixture, not of a normal law
        # of its mean and variance
        joint = np.outer(rows, columns)
        if explanation.implied and self.implied:
            joint = scaled_to(np.log(self.implied.changed(rng)), rows, columns)[0]
        if explanation.fit.theta.size:
            theta = rng.multivariate_normal(
                np.zeros(explanation.fit.theta.size), explanation.fit.covariance
            )
            psi, phi = (each.functions for each in explanation.fit.terms)
            logarithms = psi @ theta.reshape(explanation.fit.theta.shape) @ phi.T
            # The drawn change of the coefficients multiplies the posterior mean of the table,
            # relative to independence; scaling then brings the margins back
            logarithms += np.log(
                explanation.smooth.clip(_TINY) / np.outer(*self.margins).clip(_TINY)
            )
            joint = scaled_to(logarithms, rows, columns)[0]
        if explanation.mean.size:
            coefficients = explanation.mean + np.sqrt(
                np.maximum(explanation.variance, 0)
            ) * rng.normal(size=explanation.mean.shape)
            joint = joint + explanation.left @ coefficients @ explanation.right.T
        return ImpliedJoint(with_margins(nonnegative(joint), rows, columns))


class Link(NamedTuple):
    """A pair on the path of a tree between two attributes, and how cells of these depend on it."""

    joint: FittedJoint
    # Of the first attribute for each cell of the pair's nearer one: shape (cells, cells)
    first: Floats
    second: Floats  # of the second attribute for each cell of the other
    swapped: bool  # whether the nearer one is the pair's second attribute


@dataclass(frozen=True, eq=False)
class ImpliedJoint(Joint):
    """The distribution of two attributes that are independent given those between them."""

    cells: Floats  # shape (cells, cells)
    links: tuple[Link, ...] = ()  # the pairs between both attributes

    @cached_property
    def mean(self) -> Floats:
        return self.cells

    @property
    def margins(self) -> tuple[Floats, Floats]:
        return self.cells.sum(axis=1), self.cells.sum(axis=0)

    def variances(self, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
        return np.full(len(rows[0]), np.nan)  # whether they are independent so, nobody was asked

    def variance_of(self, region: Floats) -> float:
        return math.nan

    def product_variances(self, left: Floats, right: Floats) -> Floats:
        """The variances of `FittedJoint.product_variances`, if the attributes are independent so.

        To first order in the links, as if these were independent of each other.
        """
        # An implied table is a product of conditional distributions; its change is linear in the
        # change of each link, with the others as they are
        total = np.zeros(len(left))
        for joint, first, second, swapped in self.links:
            sides = left @ first.T, right @ second.T
            total += joint.product_variances(*(sides[::-1] if swapped else sides))
        return total

    def region_variance(self, region: Floats) -> float:
        """The variance of `Joint.variance_of`, if the attributes are independent so."""
        total = 0.0
        for joint, first, second, swapped in self.links:
            weights = first @ region @ second.T
            total += joint.variance_of(weights.T if swapped else weights)
        return total

    def changed(self, rng: np.random.Generator) -> Floats:
        """Another distribution that is as likely: shape (cells, cells), all above 0."""
        cells = self.cells
        for joint, first, second, swapped in self.links:
            change = joint.drawn(*joint.margins, rng).cells - joint.table
            cells = cells + first.T @ (change.T if swapped else change) @ second
        return np.maximum(cells, _TINY)

    def reordered(self, rows: Items, columns: Items) -> ImpliedJoint:
        links = tuple(
            link._replace(first=link.first[:, rows], second=link.second[:, columns])
            for link in self.links
        )
        return ImpliedJoint(self.cells[np.ix_(rows, columns)], links)


@dataclass(frozen=True, eq=False)
class CountedJoint(Joint):
    """The distribution of a pair among users who were all counted, not of what they were drawn of.

    Each cell lies between what a distribution of the population has and what was counted, as their
    variances say: that of so many users who are drawn, and that of the noise.
    """

    population: FittedJoint
    own: tuple[Floats, Floats]  # the distribution of each attribute among these users
    cells: Floats  # shape (cells, cells)
    expected: Floats  # the part of each cell that is the population's: (cells, cells)
    left: Floats  # the variance that each cell has beside that: (cells, cells)

    @classmethod
    def of(
        cls,
        population: FittedJoint,
        own: tuple[Floats, Floats],
        interaction: Floats,
        noise: Floats,
        users: float,
    ) -> CountedJoint:
        """The distribution that follows from an unbiased interaction and its variances."""
        # A model may take cells for empty that hold some users all the same
        mean = np.maximum(population.mean, _RULED_OUT * np.outer(*population.margins))
        drawn = mean / users
        told = drawn / np.maximum(drawn + noise, _TINY)
        # What margins add has been told by themselves; of the rest, too, only what no margin has
        apart = told * (interaction - contrasts(population.mean))
        rows, columns = population.margins
        cells = population.mean + contrasts(apart)
        cells = cells + np.outer(own[0] - rows, columns) + np.outer(own[0], own[1] - columns)
        return cls(population, own, cells, 1 - told, told * noise)

    @cached_property
    def mean(self) -> Floats:
        return self.cells

    @property
    def margins(self) -> tuple[Floats, Floats]:
        return self.own

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        """Sums before corners of the variances, and of what is the population's."""
        weight = np.maximum(self.population.mean, 0.0)
        return cumulated(self.left), np.stack(
            [cumulated(weight * self.expected), cumulated(weight)]
        )

    def variances(self, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
        left, both = self._sums
        part, whole = rectangle(both, rows, columns)
        share = np.clip(part / np.maximum(whole, _TINY), 0.0, 1.0)
        return share**2 * self.population.variances(rows, columns) + np.maximum(
            rectangle(left, rows, columns), 0.0
        )

    def variance_of(self, region: Floats) -> float:
        expected = self.population.variance_of(region * self.expected)
        return expected + float((region**2 * self.left).sum())

    def drawn(self, rows: Floats, columns: Floats, rng: np.random.Generator) -> ImpliedJoint:
        """Draw another distribution that is as likely, with these margins."""
        change = self.population.drawn(*self.population.margins, rng).cells - self.population.table
        cells = self.cells + self.expected * change
        cells = cells + contrasts(np.sqrt(self.left) * rng.normal(size=cells.shape))
        return ImpliedJoint(with_margins(nonnegative(cells), rows, columns))

    def reordered(self, rows: Items, columns: Items) -> CountedJoint:
        both = np.ix_(rows, columns)
        return CountedJoint(
            self.population.reordered(rows, columns),
            (self.own[0][rows], self.own[1][columns]),
            self.cells[both],
            self.expected[both],
            self.left[both],
        )


def balanced(frequencies: Floats, most: int, apart: int = 0) -> Items:
    """Join neighbouring cells into groups, (cells,), about equally frequent, but none too long."""
    size = len(frequencies)
    if size <= most:
        return np.arange(size)
    if apart:
        groups = balanced(frequencies[: size - apart], most - apart)
        return np.concatenate([groups, groups[-1] + 1 + np.arange(apart)])
    weight = (1 - _EVEN) * frequencies / frequencies.sum() + _EVEN / size
    # Heavy cells may leave a number without cells: `unique` numbers groups anew, without gaps
    return np.unique(
        np.minimum((np.cumsum(weight) - weight / 2) * most, most - 1).astype(np.int64),
        return_inverse=True,
    )[1]


def before(sums: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the mass before places, as if cells were uniform; `sums` as of `cumulated`."""
    i, j = (
        np.minimum(rows.astype(np.int64), sums.shape[-2] - 2),
        np.minimum(columns.astype(np.int64), sums.shape[-1] - 2),
    )
    s, t = rows - i, columns - j
    low = sums[..., i, j] * (1 - t) + sums[..., i, j + 1] * t
    high = sums[..., i + 1, j] * (1 - t) + sums[..., i + 1, j + 1] * t
    return low * (1 - s) + high * s


def parts_before(places: Floats, cells: int) -> Floats:
    """Return the part of each cell before places, as if cells were uniform: shape (m, cells)."""
    return np.clip(places[:, None] - np.arange(cells), 0.0, 1.0)


def rectangle(sums: Floats, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]) -> Floats:
    """Return the mass between two places along both axes; `sums` as of `cumulated`."""
    inside: Floats = before(sums, rows[1], columns[1]) - before(sums, rows[0], columns[1])
    return inside - before(sums, rows[1], columns[0]) + before(sums, rows[0], columns[0])


def along(sums: Floats, row: Items, columns: Floats) -> Floats:
    """Return the mass before places along some rows: `sums` (rows, columns + 1)."""
    j = np.minimum(columns.astype(np.int64), sums.shape[1] - 2)
    t = columns - j
    return sums[row, j] * (1 - t) + sums[row, j + 1] * t


def at(sums: Floats, places: Floats) -> Floats:
    """Rows of cumulative sums at places: shapes (cells + 1, k) and (m,) to (m, k)."""
    row = np.minimum(places.astype(np.int64), len(sums) - 2)
    part = (places - row)[:, None]
    return sums[row] * (1 - part) + sums[row + 1] * part


def distribution(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Bring a table without negative cells to its margins by iterative proportional fitting."""
    # Where noise leaves cells below 0, it leaves as much above 0 in empty ones: norm-sub takes both
    if (table >= 0).all():
        return table
    return with_margins(norm_sub(table.ravel()).reshape(table.shape), rows, columns)


def _spread(one: PairExplanation, inside: Floats, left: Floats, right: Floats) -> Floats:
    """Return the variance of sums of cells given an explanation.

    Shapes: `inside` (terms, queries) of smooth terms' slopes, `left` and `right` (queries,
    functions) of local ones.
    """
    local = ((left**2 @ one.variance) * right**2).sum(axis=1)
    return np.asarray((inside * (one.fit.covariance @ inside)).sum(axis=0) + local)
