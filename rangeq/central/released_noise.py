"""What a release says of attributes and of pairs, with its noise, for a posterior.

The noisy answers along each attribute and about each two of them are the data. The noise of an
attribute's counts has the covariance that the variances of its ranges say; that of a pair's
interaction (its table less what both margins say) is taken to be in proportion to the product of
both attributes' own, which it is of marginals, of residuals and of products of strategies. Both
enter the model of `rangeq.grids.WaveGrid`, whose users report what here is released.

That model is of a population. The users who were counted are as if drawn from it: their own table
lies between what it expects and the noisy one. As numbers of both kinds are nearly normal, with the
covariances S of drawing users and K of the noise, its mean is N p + S (S + K)^-1 (y - N p).

The model has 512 cells of an attribute that has more. Within each the population is even but for
deviations of every cell by itself, whose variance all cells together tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from frequency.core import covariances_of_prefixes
from frequency.postprocess import norm_sub
from mechdesign.base import Floats, Integers
from rangeq.central.answers import TableAnswers
from rangeq.central.matrix_mechanism.strategy import UnanswerableQuery
from rangeq.core import Told, contrasts, cumulated

if TYPE_CHECKING:
    from rangeq.grids import WaveEstimate
    from rangeq.grids.wavegrid.distributions import Axis
    from rangeq.grids.wavegrid.likelihoods import PairLikelihood

#: The most cells of an attribute in the model.
LARGEST = 1 << 9

_KNOWN = 1e-9  # the part of a largest eigenvalue below which a variance is none


class ReleasedNoise:
    """The likelihoods of attributes and pairs, given unbiased answers and their variances.

    Parameters
    ----------
    estimate : TableAnswers
        Unbiased.
    users : float
        The number of users whose shares are sought.
    apart : sequence of int
        How many of the last cells of each attribute are no neighbours of others.

    Attributes
    ----------
    edges : list of tuple of int
        For each attribute the starts of the cells of the model, and the size.
    grams : list of numpy.ndarray of float64
        For each attribute G, the inverse of its contrasts' covariances.
    users, total : float
        The number of users, and its variance.
    """

    def __init__(self, estimate: TableAnswers, users: float, apart: Sequence[int]) -> None:
        from rangeq.grids.cells import equal_cells

        self._estimate, self.users = estimate, users
        self._sizes = estimate.mechanism.sizes
        self._errors, self._apart = estimate.mechanism.errors, apart
        places = range(len(self._sizes))
        self.edges = [
            tuple(range(size + 1))
            if size <= LARGEST
            else (
                *equal_cells(size - number, LARGEST - number),
                *range(size - number + 1, size + 1),
            )
            for size, number in zip(self._sizes, apart, strict=True)
        ]
        self._counts = [self._table((place,)) for place in places]
        self._noise = [self._covariance(place) for place in places]
        self.total = float(self._noise[0].sum())
        # What both margins say of an interaction is taken off on both sides
        self._contrasts = [contrasts(covariance) for covariance in self._noise]
        self._traces = [float(np.trace(matrix)) for matrix in self._contrasts]
        self.grams = [_pseudo_inverse(matrix) for matrix in self._contrasts]
        # Of each pair that was released its table, and the variance of its interaction in units of
        # the product of both contrasts' covariances
        self._pairs: dict[tuple[int, int], tuple[Floats, float]] = {}

    def _boxes(self, places: Mapping[int, tuple[Any, Any]]) -> tuple[Integers, Integers]:
        """Boxes of these ends along some attributes, and of all others whole."""
        number = np.broadcast_shapes(*(np.shape(end) for ends in places.values() for end in ends))
        first = np.zeros((len(self._sizes), *number), dtype=np.int64)
        last = first + (np.array(self._sizes) - 1)[:, None]
        for place, (low, high) in places.items():
            first[place], last[place] = low, high
        return first, last

    def _table(self, view: Sequence[int]) -> Floats:
        """The unbiased counts of the cells of some attributes."""
        shape = tuple(len(self.edges[place]) - 1 for place in view)
        return self._estimate.box_sums(*self._boxes(self._cells(view))).reshape(shape)

    def _cells(self, view: Sequence[int]) -> dict[int, tuple[Integers, Integers]]:
        """The ends of all cells of some attributes."""
        cells = np.indices([len(self.edges[place]) - 1 for place in view]).reshape(len(view), -1)
        return {
            place: (edges[along], edges[along + 1] - 1)
            for place, along in zip(view, cells, strict=True)
            for edges in [np.array(self.edges[place])]
        }

    def _covariance(self, place: int) -> Floats:
        """The covariance of the counts along an attribute: shape (cells, cells)."""
        edges = np.array(self.edges[place])
        return np.diff(np.diff(self._between(place, edges[None])[0], axis=0), axis=1)

    def _between(self, place: int, starts: Integers) -> Floats:
        """Covariances of the sums from the first of some starts on, for each row of starts."""
        first, last = np.triu_indices(starts.shape[1] - 1)
        low, high = starts[:, first].ravel(), starts[:, last + 1].ravel() - 1
        variances = self._errors.variance(*self._boxes({place: (low, high)}))
        return covariances_of_prefixes(variances.reshape(len(starts), -1), starts.shape[1] - 1)

    def _of_drawing(self, shares: Floats) -> Floats:
        """The covariance of counts of the users, drawn with these shares."""
        return self.users * (np.diag(shares) - np.outer(shares, shares))

    def alone(self, place: int) -> Told:
        """The likelihood of an attribute's frequencies in the population."""
        # Rough frequencies for what drawing the users adds, as evidence is about the population
        counts, widths = self._counts[place], np.diff(self.edges[place]).astype(np.float64)
        rough = (norm_sub(counts / self.users) + widths / widths.sum()) / 2
        # Of counts less the shares of what they sum to, which is not known any better: all sums are
        # 0, and what is added for the inverse is in the direction that neither covariance has
        even = np.ones(len(counts))
        without = np.eye(len(counts)) - np.outer(rough, even)
        both = self._of_drawing(rough) + without @ self._noise[place] @ without.T
        scale = float(np.trace(both)) / len(counts) or 1.0
        both += scale * (np.outer(even, even) / len(counts) + _KNOWN * np.eye(len(counts)))
        precision = np.asarray(np.linalg.inv(both), dtype=np.float64)
        scores = self.users * (precision @ counts)
        return Told(scores, self.users**2 * precision, widths, self._apart[place])

    def pairs(self) -> Iterator[PairLikelihood]:
        """Yield the likelihood of each pair whose table follows from what was released."""
        from rangeq.grids.wavegrid.interactions import Halves
        from rangeq.grids.wavegrid.likelihoods import PairLikelihood

        for j, k in combinations(range(len(self._sizes)), 2):
            if min(self._sizes[j], self._sizes[k]) == 1:
                continue
            with suppress(UnanswerableQuery):
                noise, table = self._variance(j, k), self._table((j, k))
                self._pairs[j, k] = table, noise
                left, right = self.grams[j], self.grams[k]
                # With what drawing the users adds, in the same proportions
                drawing = self.users * (1 - 1 / len(left)) * (1 - 1 / len(right))
                variance = noise + drawing / (self._traces[j] * self._traces[k])
                scores = self.users / variance * (left @ table @ right)
                nothing = Halves(np.ones(len(left)), np.ones(len(right)), 0.0, 0.0)
                yield PairLikelihood((j, k), scores, self.users**2 / variance, nothing)

    def counted(self, population: WaveEstimate) -> WaveEstimate:
        """Return the distribution of the users who were counted, given that of the population."""
        from rangeq.grids import WaveEstimate
        from rangeq.grids.wavegrid.distributions import CountedJoint, FittedJoint

        axes = [self._counted_axis(place, axis) for place, axis in enumerate(population.axes)]
        joints = dict(population.joints)
        for (j, k), (table, noise) in self._pairs.items():
            joint = joints[j, k]
            assert isinstance(joint, FittedJoint)
            rows, columns = (population.axes[place].groups for place in (j, k))
            sides = [
                np.diag(_merged(self._contrasts[place], groups, groups))
                for place, groups in ((j, rows), (k, columns))
            ]
            joints[j, k] = CountedJoint.of(
                joint,
                (axes[j].mass, axes[k].mass),
                contrasts(_merged(table, rows, columns) / self.users),
                noise / self.users**2 * np.outer(*sides),
                self.users,
            )
        return WaveEstimate(
            population.attributes, population.n, axes, joints, population.categorical
        )

    def _counted_axis(self, place: int, axis: Axis) -> Axis:
        """The distribution of an attribute among the users who were counted."""
        noise, expected = self._noise[place], axis.line.cells
        # Normal noise and normal draws: the mean lies between the expected and the noisy counts
        drawing = self._of_drawing(expected)
        trifle = _KNOWN * self.users / len(expected) * np.eye(len(expected))
        gain = np.linalg.solve(noise + drawing + trifle, drawing).T
        counts = self.users * expected + gain @ (self._counts[place] - self.users * expected)
        cells = norm_sub(counts / counts.sum())
        rest = np.eye(len(counts)) - gain
        heard = gain + np.outer(rest @ expected, np.ones(len(counts)))  # of the noise
        covariance = heard @ noise @ heard.T
        covariance += rest @ (drawing + self.users**2 * axis.changes) @ rest.T
        # Of shares: with the total's own, as if that were independent, it is that of counts again
        covariance -= self.total * np.outer(cells, cells)
        covariance = (covariance + covariance.T) / (2 * self.users**2)
        mass: Floats = np.bincount(axis.groups, cells).astype(np.float64)
        axis = axis._replace(
            line=replace(axis.line, cells=cells), covariance=cumulated(covariance), mass=mass
        )
        return axis if len(cells) == self._sizes[place] else self._refined(place, axis)

    def _refined(self, place: int, axis: Axis) -> Axis:
        """The same distribution over all cells of the attribute, each with what is told of it."""
        size, edges = self._sizes[place], np.array(axis.line.edges)
        widths = np.diff(edges)
        single, density = np.arange(size), axis.line.cells / widths
        within = single - np.repeat(edges[:-1], widths)
        # Along a line whose slope is that between both neighbours, and nowhere below 0
        near = len(widths) - self._apart[place]
        slopes = np.zeros(len(widths))
        slopes[:near] = np.gradient(density[:near])
        slopes = np.clip(slopes, -2 * density, 2 * density)
        middle = (within + 0.5) / np.repeat(widths, widths) - 0.5
        shares = np.repeat(density, widths) + np.repeat(slopes, widths) * middle
        noisy = self._estimate.box_sums(*self._boxes({place: (single, single)})) / self.users
        # The covariance of prefixes between cells of the model is as if users were even in these
        cell = np.append(np.repeat(np.arange(len(widths)), widths), len(widths) - 1)
        part = np.append(within, widths[-1]) / widths[cell]
        end = np.arange(size + 1)
        places = np.tile(end, 2), np.concatenate([cell, cell + 1])
        between = csr_array((np.concatenate([1 - part, part]), places))
        prefixes: Floats = between @ (between @ axis.covariance).T
        # The variance of deviations, relative to the squared share: what is left of their squares
        groups = []
        left = total = 0.0
        for width in np.unique(widths[widths > 1]).tolist():
            at = edges[:-1][widths == width][:, None] + np.arange(width)
            noise, expected = self._within(place, at), shares[at]
            off = contrasts(noisy[at] - expected, (-1,))
            drawing = _contrasted_diagonal(expected / self.users)
            left += float((off**2).sum() - np.trace(noise + drawing, axis1=1, axis2=2).sum())
            total += float((expected**2).sum()) * (1 - 1 / width)
            groups.append((at, noise, expected, off))
        rough = max(left, 0.0) / max(total, 1e-300)
        for at, noise, expected, off in groups:
            prior = _contrasted_diagonal(expected / self.users + rough * expected**2)
            gain = prior @ np.linalg.pinv(prior + noise, rcond=_KNOWN, hermitian=True)
            moved = expected + np.einsum("bij,bj->bi", gain, off)
            moved = np.maximum(moved, 0.0)
            kept = expected.sum(axis=1, keepdims=True)
            shares[at] = moved * (kept / np.maximum(moved.sum(axis=1, keepdims=True), 1e-300))
            spread = prior - gain @ prior
            sums = np.cumsum(np.cumsum(spread, axis=1), axis=2)
            inside = at + 1
            prefixes[inside[:, :, None], inside[:, None, :]] += sums
        return axis._replace(
            line=replace(axis.line, edges=tuple(range(size + 1)), cells=shares),
            covariance=prefixes,
            groups=np.repeat(axis.groups, widths),
        )

    def _within(self, place: int, cells: Integers) -> Floats:
        """Covariances of shares within cells of the model: (cells, width) to (.., width, width)."""
        prefixes = self._between(place, np.append(cells, cells[:, -1:] + 1, axis=1))
        covariances = np.diff(np.diff(prefixes, axis=1), axis=2)
        return contrasts(covariances, (-2, -1)) / self.users**2

    def _variance(self, j: int, k: int) -> float:
        """The variance of an interaction, in units of the product of both contrasts' own."""
        # Projections on the total, on each margin's contrasts and on the interaction partition a
        # table: so do the traces of its covariance
        rows, columns = (len(self.edges[place]) - 1 for place in (j, k))
        every = float(self._errors.variance(*self._boxes(self._cells((j, k)))).sum())
        first, second = self._traces[j], self._traces[k]
        margins = first / columns + second / rows + self.total / (rows * columns)
        return max(every - margins, _KNOWN * every) / (first * second)


def _contrasted_diagonal(variances: Floats) -> Floats:
    """Covariances of independent values less their means: (stack, values) to (.., values)."""
    return contrasts(variances[:, :, None] * np.eye(variances.shape[1]), (-2, -1))


def _merged(table: Floats, rows: Integers, columns: Integers) -> Floats:
    """The sums of a table's cells in groups of neighbours: the numbers of groups, from 0 up."""
    for axis, groups in enumerate((rows, columns)):
        table = np.add.reduceat(table, np.flatnonzero(np.diff(groups, prepend=-1)), axis=axis)
    return table


def _pseudo_inverse(matrix: Floats) -> Floats:
    """The inverse of a covariance matrix of contrasts, which has no part in the constant."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _KNOWN * max(float(values[-1]), 1e-300)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)
