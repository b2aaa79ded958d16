"""The posterior of what a curator released: a positive distribution, decided by evidence.

The noisy answers along each attribute and about each two of them are the data. The noise of an
attribute's counts has the covariance that the variances of its ranges say; that of a pair's
interaction (its table less what both margins say) is taken to be in proportion to the product of
both attributes' own, which it is of marginals, of residuals and of products of strategies. Both
enter the model of `rangeq.grids.WaveGrid`, whose users report what here is released.

That model is of a population. The users who were counted are as if drawn from it: their own table
lies between what it expects and the noisy one. As numbers of both kinds are nearly normal, with the
covariances S of drawing users and K of the noise, its mean is N p + S (S + K)^-1 (y - N p).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from frequency.core import Answer, ConfidenceInterval, cut, normal_quantile
from frequency.exceptions import UnknownVariance
from frequency.postprocess import norm_sub
from frequency.schema import Domain, Schema
from frequency.schema.numeric import Ordered
from mechdesign.base import Floats, Integers, shown
from mechdesign.exceptions import MechanismError
from rangeq.central.answers import Errors, TableAnswers
from rangeq.central.inputs import Query
from rangeq.central.matrix_mechanism.strategy import UnanswerableQuery
from rangeq.core import Told, contrasts, cumulated

if TYPE_CHECKING:
    from rangeq.grids import WaveEstimate
    from rangeq.grids.wavegrid.distributions import Axis
    from rangeq.grids.wavegrid.likelihoods import PairLikelihood

#: The most cells along an attribute with a posterior.
MOST_CELLS = 1 << 9

#: As many users as none is a sample of: what drawing users adds is in the shares' variances.
_EVERYBODY = 1 << 62

_KNOWN = 1e-9  # the part of a largest eigenvalue below which a variance is none

_MOST_LISTED = 1 << 20  # cells of a posterior that are written out


class NoPosterior(MechanismError, ValueError):
    """There are no users to be distributed, or too many cells along an attribute."""


class PosteriorErrors:
    """The expected squared errors of sums of cells, from posterior variances of shares.

    Parameters
    ----------
    shares : WaveEstimate
        Of the users.
    users, variance : float
        The estimated number of users, and its variance.
    """

    def __init__(self, shares: WaveEstimate, users: float, variance: float) -> None:
        self._shares, self._users, self._variance = shares, users, variance

    def variance(self, first: Integers, last: Integers) -> Floats:
        """Return those of the sums over boxes: see `Errors`.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Shape (attributes, boxes): closed ends.

        Returns
        -------
        numpy.ndarray of float64
            Shape (boxes,): squared users.
        """
        places = np.arange(len(first))
        noise = self._shares.predicted_error(places, first.T, last.T).noise
        return self.of(self._shares.answers(places, first.T, last.T), noise)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """Return that of the sum over a product of sets of places: see `Errors`.

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
        UnknownVariance
            No theory gives it.
        """
        told = self._shares.answer(_sets(weights))
        return float(self.of(told.value, told.variance))

    def of(self, share: Any, variance: Any) -> Any:
        """Return the variance in squared users from a share and its own.

        Parameters
        ----------
        share, variance : float or numpy.ndarray
            Of the users.

        Returns
        -------
        float or numpy.ndarray
            The number of users is not known either.
        """
        return self._users**2 * np.asarray(variance) + self._variance * np.square(share)

    def mean(self) -> float:
        """The mean over all boxes; NaN, as nobody needs it."""
        return math.nan


class PosteriorEstimate(TableAnswers):
    """What a table probably is, given what was released of it: never negative.

    The noisy numbers are the data, the noise that was drawn the likelihood, by its covariances. The
    prior takes the logarithm of each attribute's distribution for a Gaussian process: smooth, with
    a trend, with points or ends of their own, even (`rangeq.core.density`); and the dependence of
    each two attributes for smooth terms, for local ones, or for none. Which of these is decided by
    their evidence. More attributes together are as their pairs imply: see `rangeq.grids.WaveGrid`.
    Nothing is spent, and nothing of the table is looked at again.

    Answers are biased: where data are as the priors have them they err less than the unbiased ones,
    at low epsilon by much, and intervals are shorter. Their variances are expected squared errors,
    intervals hold on average over questions and kinds of data, not for each: at steps and spikes
    that the noise just hides they hold less often.

    Attributes
    ----------
    mechanism : HistogramMechanism
        What released it.
    shares : WaveEstimate
        The posterior of the users' distribution, in fractions of them.
    n : float
        The estimated number of users.
    """

    def __init__(self, mechanism: Any, shares: WaveEstimate, users: float, variance: float) -> None:
        self.mechanism, self.shares, self._users = mechanism, shares, users
        self._own = PosteriorErrors(shares, users, variance)

    @property
    def n(self) -> float:
        return self._users

    def caveats(self, several: bool) -> tuple[str, ...]:
        """Return what is to be known of answers: see `SurveyEstimate.caveats`."""
        return (
            "These intervals hold on average over questions, not for each: the unbiased answers'"
            " own, without a fit, do.",
            *self.shares.caveats(several),
        )

    def answer(self, where: Any) -> Answer:
        told = self.shares.answer(where)
        value, variance, reason = self._users * told.value, None, ""
        try:
            variance = self._own.of(told.value, told.variance)
        except UnknownVariance as unknown:
            reason = str(unknown)

        def interval(confidence: float) -> ConfidenceInterval:
            if variance is None:
                low, high = told.interval(confidence)
                return ConfidenceInterval(self._users * low, self._users * high)
            half = self.half_width(np.sqrt(variance), confidence)
            return ConfidenceInterval(value - half, value + half)

        return cut(Answer(value, variance, reason, interval), 0.0, np.inf)

    @property
    def counts(self) -> Floats:
        return self._counts

    @cached_property
    def _counts(self) -> Floats:
        sizes = self.mechanism.sizes
        if math.prod(sizes) > _MOST_LISTED:
            raise NoPosterior(
                f"{shown(math.prod(sizes))} cells are not written out: ask for the marginals"
            )
        places = np.indices(sizes).reshape(len(sizes), -1)
        counts = self.box_sums(places, places).reshape(sizes)
        counts.setflags(write=False)
        return counts

    @property
    def _errors(self) -> Errors:
        return self._own

    def half_width(self, deviation: Any, confidence: float) -> Any:
        return normal_quantile(confidence) * deviation

    def box_sums(self, first: Integers, last: Integers) -> Floats:
        places = np.arange(len(first))
        return self._users * self.shares.answers(places, first.T, last.T)

    def weighted(self, weights: Sequence[Floats]) -> float:
        return self._users * float(self.shares.answer(_sets(weights)).value)

    def sample(self, n: int, rng: np.random.Generator | None = None) -> Integers:
        rows = self.shares.sample(n, rng)
        return rows[:, 0] if rows.shape[1] == 1 else rows

    def samples(
        self, n: int, number: int, rng: np.random.Generator | None = None
    ) -> list[Integers]:
        """Return several tables of synthetic rows, each of a distribution drawn from the posterior.

        How what is computed from each differs between them tells its error: `frequency.of_samples`.

        Parameters
        ----------
        n, number : int
            Rows of each, and how many tables: each at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        list of numpy.ndarray of int64
            Each as of `sample`.

        Raises
        ------
        ValueError
            No number of rows or tables.
        """
        drawn = self.shares.samples(n, number, rng)
        return [rows[:, 0] if rows.shape[1] == 1 else rows for rows in drawn]


def _sets(weights: Sequence[Floats]) -> dict[int, list[int]]:
    """The sets of places, of attributes that are not taken whole."""
    return {i: np.flatnonzero(w).tolist() for i, w in enumerate(weights) if not w.all()}


def posterior_of(estimate: TableAnswers, schema: Schema | None = None) -> PosteriorEstimate:
    """Return the posterior of a table: see `CentralEstimate.posterior`."""
    from rangeq.grids.wavegrid.likelihoods import Likelihoods
    from rangeq.grids.wavegrid.posterior import estimated

    sizes = estimate.mechanism.sizes
    if max(sizes) > MOST_CELLS:
        raise NoPosterior(
            f"a posterior is of attributes of at most {MOST_CELLS} cells, got {shown(max(sizes))}"
        )
    users = float(estimate.n)
    if not users >= 1:
        raise NoPosterior(
            f"the estimated number of users is {users:.4g}: noise hides that there are any"
        )
    if schema is None:
        domain, apart = Domain(dict(zip(Query.names(sizes), sizes, strict=True))), [0] * len(sizes)
        categorical = [False] * len(sizes)
    else:
        domain, apart = schema.domain, [schema.apart.get(name, 0) for name in schema.names]
        categorical = [
            size > 2 and not isinstance(attribute, Ordered)
            for attribute, size in zip(schema, sizes, strict=True)
        ]
    told = ReleasedNoise(estimate, users)
    likelihoods = Likelihoods(
        [tuple(range(size + 1)) for size in sizes],
        [told.alone(place, number) for place, number in enumerate(apart)],
        told.grams,
        told.pairs(),
    )
    shares = told.counted(estimated(domain, _EVERYBODY, likelihoods, categorical))
    return PosteriorEstimate(estimate.mechanism, shares, users, told.total)


class ReleasedNoise:
    """The likelihoods of attributes and pairs, given unbiased answers and their variances.

    Parameters
    ----------
    estimate : TableAnswers
        Unbiased.
    users : float
        The number of users whose shares are sought.
    """

    def __init__(self, estimate: TableAnswers, users: float) -> None:
        self._estimate, self._users = estimate, users
        self._sizes = estimate.mechanism.sizes
        self._errors = estimate.mechanism.errors
        places = range(len(self._sizes))
        self._counts = [self._table((place,)) for place in places]
        self._noise = [self._covariance(place) for place in places]
        self.total = float(self._noise[0].sum())
        # What both margins say of an interaction is taken off on both sides
        self._apart = [contrasts(covariance) for covariance in self._noise]
        self._traces = [float(np.trace(apart)) for apart in self._apart]
        #: For each attribute G, the inverse of its contrasts' covariances.
        self.grams = [_pseudo_inverse(apart) for apart in self._apart]
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
        shape = tuple(self._sizes[place] for place in view)
        cells = np.indices(shape).reshape(len(view), -1)
        ends = {place: (along, along) for place, along in zip(view, cells, strict=True)}
        return self._estimate.box_sums(*self._boxes(ends)).reshape(shape)

    def _covariance(self, place: int) -> Floats:
        """The covariance of the counts along an attribute: shape (cells, cells)."""
        # Cov(P, Q) = (Var P + Var Q - Var(P - Q)) / 2 of prefixes P and Q, whose difference is a
        # range
        size = self._sizes[place]
        first, last = np.triu_indices(size)
        ranges = np.zeros((size + 1, size + 1))
        ranges[first, last + 1] = self._errors.variance(*self._boxes({place: (first, last)}))
        ranges += ranges.T
        prefixes = (ranges[0] + ranges[0][:, None] - ranges) / 2
        return np.diff(np.diff(prefixes, axis=0), axis=1)

    def alone(self, place: int, apart: int) -> Told:
        """The likelihood of an attribute's frequencies in the population."""
        # Rough frequencies for what drawing the users adds, as evidence is about the population
        counts, even = self._counts[place], 1 / self._sizes[place]
        rough = (norm_sub(counts / self._users) + even) / 2
        drawing = self._users * _of_drawing(rough)
        precision = np.asarray(np.linalg.inv(self._noise[place] + drawing))
        scores = self._users * (precision @ counts)
        return Told(scores, self._users**2 * precision, np.ones(len(scores)), apart)

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
                drawing = self._users * (1 - 1 / len(left)) * (1 - 1 / len(right))
                variance = noise + drawing / (self._traces[j] * self._traces[k])
                scores = self._users / variance * (left @ table @ right)
                nothing = Halves(np.ones(len(left)), np.ones(len(right)), 0.0, 0.0)
                yield PairLikelihood((j, k), scores, self._users**2 / variance, nothing)

    def counted(self, population: WaveEstimate) -> WaveEstimate:
        """Return the distribution of the users who were counted, given that of the population."""
        from rangeq.grids import WaveEstimate
        from rangeq.grids.wavegrid.distributions import CountedJoint, FittedJoint

        axes = [self._counted_axis(place, axis) for place, axis in enumerate(population.axes)]
        joints = dict(population.joints)
        for (j, k), (table, noise) in self._pairs.items():
            joint = joints[j, k]
            assert isinstance(joint, FittedJoint)
            rows, columns = (axes[place].groups for place in (j, k))
            sides = [
                np.diag(_merged(self._apart[place], groups, groups))
                for place, groups in ((j, rows), (k, columns))
            ]
            joints[j, k] = CountedJoint.of(
                joint,
                (axes[j].mass, axes[k].mass),
                contrasts(_merged(table, rows, columns) / self._users),
                noise / self._users**2 * np.outer(*sides),
                self._users,
            )
        return WaveEstimate(
            population.attributes, population.n, axes, joints, population.categorical
        )

    def _counted_axis(self, place: int, axis: Axis) -> Axis:
        """The distribution of an attribute among the users who were counted."""
        noise, expected = self._noise[place], axis.line.cells
        drawing = self._users * _of_drawing(expected)
        # Normal noise and normal draws: the mean lies between the expected and the noisy counts
        gain = np.linalg.solve(noise + drawing, drawing).T
        counts = self._users * expected + gain @ (self._counts[place] - self._users * expected)
        cells = norm_sub(counts / counts.sum())
        rest = np.eye(len(cells)) - gain
        covariance = (gain @ noise) / self._users**2 + rest @ axis.changes @ rest.T
        covariance = (covariance + covariance.T) / 2
        mass: Floats = np.bincount(axis.groups, cells).astype(np.float64)
        line = replace(axis.line, cells=cells)
        return axis._replace(line=line, covariance=cumulated(covariance), mass=mass)

    def _variance(self, j: int, k: int) -> float:
        """The variance of an interaction, in units of the product of both contrasts' own."""
        # Projections on the total, on each margin's contrasts and on the interaction partition a
        # table: so do the traces of its covariance
        rows, columns = self._sizes[j], self._sizes[k]
        cells = np.indices((rows, columns)).reshape(2, -1)
        ends = {j: (cells[0], cells[0]), k: (cells[1], cells[1])}
        every = float(self._errors.variance(*self._boxes(ends)).sum())
        first, second = self._traces[j], self._traces[k]
        margins = first / columns + second / rows + self.total / (rows * columns)
        return max(every - margins, _KNOWN * every) / (first * second)


def _of_drawing(shares: Floats) -> Floats:
    """The covariance of counts of users who are drawn with these shares, per user."""
    return np.asarray(np.diag(shares) - np.outer(shares, shares))


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
