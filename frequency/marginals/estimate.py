"""MarginalEstimate: marginals with their errors, and answers to questions about records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from frequency.core import (
    Aggregate,
    Answer,
    OfPopulation,
    by_model,
    checked_sample,
    conditions,
    cut,
)
from frequency.exceptions import UnknownVariance
from frequency.marginals.log_linear import MarginalModel, Moments, cas, characters
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Floats, Items

#: The reason why there is no variance, of a protocol.
UNKNOWN = "the variances of estimates of {} are not known"


class MarginalEstimator(ABC):
    """The part of a protocol that a `MarginalEstimate` needs: see `MarginalProtocol`."""

    domain: Domain
    k: int

    @property
    @abstractmethod
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The sets of attributes that `marginal_of` knows, in the domain's order."""

    @abstractmethod
    def checked(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """Return names of 1 .. k distinct attributes; ValueError for others."""

    @abstractmethod
    def marginal_of(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        """Return unbiased estimates of the cells of a marginal.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.
        attributes : tuple of str
            1 .. k distinct names.

        Returns
        -------
        numpy.ndarray of float64
            Shape (cells,): numbered as `Domain.cells` does, in the order of the attributes.
        """

    @abstractmethod
    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats:
        """Return estimates of the variances of sums of the cells of a marginal.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.
        attributes : tuple of str
            1 .. k distinct names.
        weights : numpy.ndarray of float64
            Shape (sums, cells).

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,).

        Raises
        ------
        UnknownVariance
            They are not known.
        """


class MarginalEstimate(OfPopulation):
    """An estimate of all marginals of up to k attributes, unbiased.

    Cells may be negative, or exceed 1.

    Attributes
    ----------
    n : int
        The number of users: see `OfPopulation`. With no reports all values are NaN, all variances
        infinite.
    domain : Domain
        The attributes.
    """

    def __init__(self, protocol: MarginalEstimator, aggregate: Aggregate) -> None:
        self.protocol, self.aggregate = protocol, aggregate
        self.domain = protocol.domain
        self._about(aggregate.n)
        self._marginals: dict[tuple[str, ...], Floats] = {}

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the fractions of the population with each combination of values.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        numpy.ndarray of float64
            One axis an attribute, in the order asked for, read-only; NaN with no reports.

        Raises
        ------
        ValueError
            Other attributes.
        """
        names = self.protocol.checked(attributes)
        if names not in self._marginals:
            shape = self.domain.project(names).shape
            cells = (
                self.protocol.marginal_of(self.aggregate, names)
                if self.reports
                else np.full(int(np.prod(shape)), np.nan)
            )
            self._marginals[names] = cells.reshape(shape)
            self._marginals[names].setflags(write=False)
        return self._marginals[names]

    def cells(self, attributes: Sequence[str]) -> Answer:
        """Return the answer about each cell of a marginal: what `answer` gives for its values.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        Answer
            Its value is the marginal; variances and intervals are shaped like it.

        Raises
        ------
        ValueError
            Other attributes.
        """
        return self.answer(self.domain.every(self.protocol.checked(attributes)))

    def total_variation(self, attributes: Sequence[str]) -> float:
        """Return the expected total variation distance of the marginal from the truth.

        It follows from the variances, for normal errors.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        float
            Half of the expected sum of the cells' absolute errors.

        Raises
        ------
        UnknownVariance
            The variances are not known.
        ValueError
            Other attributes.
        """
        variances = self.cells(attributes).variance
        # The mean absolute value of a normal error is (2 / pi)^(1/2) deviations.
        return float(np.sqrt(2 / np.pi * variances).sum() / 2)

    @property
    def joined(self) -> int:
        """The most attributes that may be asked about together."""
        return self.protocol.k

    def caveats(self, several: bool) -> tuple[str, ...]:
        """Return what is to be known of answers: see `SurveyEstimate.caveats`."""
        return ("One model of all marginals mostly errs less: without --raw.",)

    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """Return the fraction of the population with these values.

        Parameters
        ----------
        where : mapping
            For each attribute that matters, at most k, the value, the list of values, or the ends
            of the closed range of values that it must have: ``{"a": 1, "b": [2, 5], "c": (0, 3)}``
            asks for the records with a = 1, b = 2 or 5, and c from 0 to 3. Integer arrays are many
            questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            A fraction, with its variance; `UnknownVariance` from protocols that do not know it.

        Raises
        ------
        InvalidQuestion
            What is no question, or values that the attributes do not have.
        ValueError
            More than k attributes.
        """
        question = conditions(where, self.domain.names, self.domain.sizes)
        places = [each.place for each in question.asked]
        names = self.protocol.checked([self.domain.names[place] for place in places])
        return self.linear(names, question.weights({k: self.domain.sizes[k] for k in places}))

    def linear(self, attributes: Sequence[str], weights: npt.ArrayLike) -> Answer:
        """Return weighted sums of cells of a marginal and their variances, covariances included.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.
        weights : array_like
            Shape (..., cells), finite: the last attribute's values next to each other.

        Returns
        -------
        Answer
            Floats, or arrays of shape (...). The variance is cut at 0.

        Raises
        ------
        ValueError
            Other attributes, or weights of another shape, or that are not finite.
        """
        names, given = self.protocol.checked(attributes), np.asarray(weights, dtype=np.float64)
        cells = self.marginal(names).ravel()
        if not given.ndim or given.shape[-1] != len(cells) or not np.isfinite(given).all():
            raise ValueError(
                f"weights must be {len(cells)} finite numbers, one a cell, or rows of them; got"
                f" shape {given.shape}"
            )
        shape, rows = given.shape[:-1], given.reshape(-1, len(cells))
        value = (rows @ cells).reshape(shape)
        if not self.reports or not np.isfinite(value).all():
            return Answer(value, np.full(shape, np.inf))
        try:
            variance = self._variances(names, rows)
        except UnknownVariance as error:
            return Answer(value, None, str(error))
        variance = np.maximum(variance, 0.0) + self._of_drawing_sums(rows, cells)
        return Answer(value, variance.reshape(shape))

    def distribution(self, attributes: Sequence[str]) -> Floats:
        """Return the proper distribution nearest to the marginal: biased, variances unknown.

        See `frequency.postprocess.norm_sub`.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        numpy.ndarray of float64
            Shaped as the marginal: non-negative, of sum 1.

        Raises
        ------
        ValueError
            Other attributes, or no reports.
        """
        marginal = self.marginal(attributes)
        if not self.reports:
            raise ValueError("no reports: there is no distribution")
        return norm_sub(marginal.ravel()).reshape(marginal.shape)

    def fitted(self) -> FittedEstimate:
        """Return a model of the records, fitted to all marginals that were measured.

        Of the distributions with the same marginals it is the one of most entropy; parameters are
        shrunk towards independence as far as the data tell (empirical Bayes). Errors are lower than
        those of the protocol's own, in measurements by 3 to 77 % (`benchmarks/marginals.py`).

        Returns
        -------
        FittedEstimate
            Of the same verbs: marginals are proper distributions, with intervals.
        """
        return FittedEstimate(self)

    def sample(self, n: int, rng: np.random.Generator | None = None) -> Items:
        """Return synthetic records of the fitted model: see `FittedEstimate.sample`.

        Parameters
        ----------
        n : int
            How many, at least 1.
        rng : numpy.random.Generator, optional
            To round and to shuffle with.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, attributes), in random order.

        Raises
        ------
        ValueError
            No number of records, or no reports.
        """
        return self.fitted().sample(n, rng)

    def samples(self, n: int, number: int, rng: np.random.Generator | None = None) -> list[Items]:
        """Return several synthetic samples, each of another distribution drawn from the posterior.

        How what is computed from each differs between them tells its error: `frequency.of_samples`.
        The records are nobody's.

        Parameters
        ----------
        n, number : int
            Records in each sample, and how many samples: each at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        list of numpy.ndarray of int64
            Each of shape (n, attributes).

        Raises
        ------
        ValueError
            No number of records or samples, or no reports.
        """
        return self.fitted().samples(n, number, rng)

    def _variances(self, names: tuple[str, ...], weights: Floats) -> Floats:
        """Return the variances of sums of the cells of a marginal that is known."""
        return self.protocol.linear_variances_of(self.aggregate, names, weights)

    def __repr__(self) -> str:
        return (
            f"<Estimate of marginals of up to {self.protocol.k} of {len(self.domain)} attributes"
            f" from {self.n} reports>"
        )


#: The number of moments of one set of attributes up to which each has its own variance.
MOST_CHARACTERS = 256

_SOME = 64  # the number of moments whose variances stand for those of all others of a large set

_LEAST_VARIANCE = 1e-14  # the least variance of a moment, for one that a report tells for certain


class FittedEstimate(MarginalEstimate):
    """An estimate by one log-linear model, with errors by its posterior distribution.

    The model's interactions are those of the sets of attributes whose marginals were measured: see
    `frequency.marginals.log_linear`. Where records are too many to list (2^20, or 1500 parameters),
    each answer is that of a model of the attributes asked for and of those that depend on them
    most; marginals that overlap then agree only nearly.

    Intervals are those of the reports alone, which hold for each question. Variances, and intervals
    ``on_average``, are posterior ones: on average over populations and questions, 95 % intervals
    cover about 95 % (`benchmarks/marginals.py`); of one population, or one cell, they may cover
    less. Marginals of attributes that were not measured together (of CALM) rest on the model, which
    no interval checks.

    Parameters
    ----------
    estimate : MarginalEstimate
        Of any protocol for marginals.
    """

    def __init__(self, estimate: MarginalEstimate) -> None:
        super().__init__(estimate.protocol, estimate.aggregate)
        self._unbiased = MarginalEstimate(estimate.protocol, estimate.aggregate)
        self._unbiased = self._unbiased.of_population(estimate.n)
        self.n = estimate.n

    def caveats(self, several: bool) -> tuple[str, ...]:
        return ()

    def fitted(self) -> FittedEstimate:
        return self

    def of_population(self, n: int) -> Self:
        return type(self)(self._unbiased.of_population(n))

    @property
    def _drawn(self) -> float:
        return 0.0  # the moments' errors have it already

    @cached_property
    def model(self) -> MarginalModel:
        """The models of all attributes, or of some of them, fitted when asked for."""
        return MarginalModel(self.domain, self.protocol.measured, self._told)

    def _told(self, names: tuple[str, ...]) -> Moments | None:
        """Return the moments that no smaller set tells, unbiased; None if nobody reported any."""
        domain = self.domain.project(names)
        rows = cas(domain.shape, characters(domain, names), domain.values(np.arange(domain.size)))
        protocol, aggregate = self.protocol, self.aggregate
        cells = protocol.marginal_of(aggregate, names)
        some = rows[:: max(1, len(rows) // _SOME)] if len(rows) > MOST_CHARACTERS else rows
        variances = protocol.linear_variances_of(aggregate, names, some)
        variances = variances + self._unbiased._of_drawing_sums(some, cells)
        if not (np.isfinite(cells).all() and np.isfinite(variances).all()):
            return None
        # At even frequencies all moments of a set have the same variance: a sample of them is near
        # enough, where each variance costs a pass over all cells.
        if some is not rows:
            variances = np.full(len(rows), variances.mean())
        return Moments(names, rows @ cells, np.maximum(variances, _LEAST_VARIANCE))

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the marginal, one axis an attribute in the order asked for."""
        names = self.protocol.checked(attributes)
        if names not in self._marginals and self.reports:
            fit = self.model.around(names)
            domain = self.domain.project(names)
            cells = fit.domain.cells(np.arange(fit.domain.size), names)
            table = np.bincount(cells, fit.joint, domain.size).astype(np.float64)
            self._marginals[names] = table.reshape(domain.shape)
            self._marginals[names].setflags(write=False)
        return super().marginal(names)

    def _variances(self, names: tuple[str, ...], weights: Floats) -> Floats:
        fit, domain = self.model.around(names), self.domain.project(names)
        # A cell is the mean over all characters of these attributes of their moments there
        inside = [
            subset for size in range(1, len(names) + 1) for subset in combinations(names, size)
        ]
        indices = np.concatenate([characters(domain, subset) for subset in inside])
        values = domain.values(np.arange(domain.size))
        spread = np.zeros((len(indices), len(fit.domain)), dtype=np.int64)
        spread[:, list(fit.domain.places(names))] = indices
        return fit.variances(spread, weights @ cas(domain.shape, indices, values).T / domain.size)

    def linear(self, attributes: Sequence[str], weights: npt.ArrayLike) -> Answer:
        told = super().linear(attributes, weights)
        given = np.asarray(weights, dtype=np.float64)
        # What distributions allow: from the least weight to the largest
        ends = given.min(axis=-1), given.max(axis=-1)
        with suppress(UnknownVariance):
            reports = self._unbiased.linear(attributes, weights)
            if np.isfinite(reports.variance).all():
                return by_model(cut(told, *ends), reports, *ends)
        return cut(told, *ends)

    def sample(self, n: int, rng: np.random.Generator | None = None) -> Items:
        """Return synthetic records, for programs that take records: they are nobody's.

        Every combination of values gets its share of the fit, rounded at random, so that counts of
        them err hardly more than the answers do. Nothing is in them that the estimate does not
        have; whoever computes on them leaves out the noise that they hide: see `samples`.

        Parameters
        ----------
        n : int
            How many, at least 1.
        rng : numpy.random.Generator, optional
            To round and to shuffle with.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, attributes), in random order.

        Raises
        ------
        ValueError
            No number of records, or no reports.
        """
        records, _, generator = checked_sample(n, 1, self.reports, rng)
        return self.model.sample(records, generator, drawn=False)

    def samples(self, n: int, number: int, rng: np.random.Generator | None = None) -> list[Items]:
        records, times, generator = checked_sample(n, number, self.reports, rng)
        return [self.model.sample(records, generator, drawn=True) for _ in range(times)]

    def __repr__(self) -> str:
        return f"<Fitted {super().__repr__()[1:]}"
