"""The posterior of what a curator released: a positive distribution, decided by evidence.

See `rangeq.central.released_noise` for what is read of a release, and how.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frequency.core import Answer, ConfidenceInterval, by_model, cut, normal_quantile
from frequency.exceptions import UnknownVariance
from frequency.schema import Domain, Schema
from frequency.schema.numeric import Ordered
from mechdesign.base import Floats, Integers, shown
from mechdesign.exceptions import MechanismError
from rangeq.central.answers import Errors, TableAnswers
from rangeq.central.inputs import Query
from rangeq.central.matrix_mechanism.strategy import UnanswerableQuery
from rangeq.central.released_noise import LARGEST, ReleasedNoise
from rangeq.core import WITH_STEPS

if TYPE_CHECKING:
    from rangeq.grids import WaveEstimate

#: The most cells along an attribute with a posterior.
MOST_CELLS = 1 << 12

#: As many users as none is a sample of: what drawing users adds is in the shares' variances.
_EVERYBODY = 1 << 62

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
    a trend, with points or ends of their own, even, of more than 32 cells also with steps
    (`rangeq.core.density`); and the dependence of each two attributes for smooth terms, for local
    ones, or for none. Which of these is decided by their evidence. More attributes together are as
    their pairs imply: see `rangeq.grids.WaveGrid`. Nothing is spent, and nothing of the table is
    looked at again.

    Answers are biased: where data are as the priors have them they err less than the unbiased ones,
    at low epsilon by much. Their variances are expected squared errors. Intervals are those of the
    unbiased answers, which hold for each question; with ``on_average``, and where what was measured
    tells no unbiased answer, shorter ones, which hold on average over questions and kinds of data,
    but less often at steps and spikes that the noise just hides.

    Attributes
    ----------
    mechanism : HistogramMechanism
        What released it.
    shares : WaveEstimate
        The posterior of the users' distribution, in fractions of them.
    n : float
        The estimated number of users.
    """

    def __init__(
        self, released: TableAnswers, shares: WaveEstimate, users: float, variance: float
    ) -> None:
        self.mechanism, self.shares, self._users = released.mechanism, shares, users
        self._released, self._own = released, PosteriorErrors(shares, users, variance)

    @property
    def n(self) -> float:
        return self._users

    def caveats(self, several: bool) -> tuple[str, ...]:
        """Return what is to be known of answers: see `SurveyEstimate.caveats`."""
        return (
            "Of questions whose answers do not follow from what was measured intervals hold on"
            " average over questions, not for each.",
            *self.shares.caveats(several),
        )

    def answer(self, where: Any) -> Answer:
        told = self.shares.answer(where)
        value, variance, reason = self._users * told.value, None, ""
        try:
            variance = self._own.of(told.value, told.variance)
        except UnknownVariance as unknown:
            reason = str(unknown)

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            if variance is None:
                low, high = told.interval(confidence)
                return ConfidenceInterval(self._users * low, self._users * high)
            half = self.half_width(np.sqrt(variance), confidence)
            return ConfidenceInterval(value - half, value + half)

        fitted = cut(Answer(value, variance, reason, interval), 0.0, np.inf)
        with suppress(UnanswerableQuery):
            return by_model(fitted, self._released.answer(where), 0.0, np.inf)
        return fitted

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

    @property
    def step(self) -> float:
        return 0.0

    def deviations(self, confidence: float) -> float:
        return normal_quantile(confidence)

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
    from rangeq.grids.wavegrid.posterior import chosen_kernels, estimated

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
    if any(named and size > LARGEST for named, size in zip(categorical, sizes, strict=True)):
        raise NoPosterior(f"a posterior is of at most {LARGEST} categories of an attribute")
    told = ReleasedNoise(estimate, users, apart)
    alone = [told.alone(place) for place in range(len(sizes))]
    likelihoods = Likelihoods(told.edges, alone, told.grams, told.pairs())
    kernels = chosen_kernels(likelihoods, categorical, WITH_STEPS)
    shares = told.counted(estimated(domain, _EVERYBODY, likelihoods, categorical, kernels))
    return PosteriorEstimate(estimate, shares, told.users, told.total)
