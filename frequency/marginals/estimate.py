"""MarginalEstimate: marginals with their errors, and answers to questions about records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.answer import Answer, conditions, plain
from frequency.core.population import OfPopulation
from frequency.exceptions import UnknownVariance
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign._support.arrays import Floats

UNKNOWN = "the variances of estimates of {} are not known"
"""Why there is no variance, of a protocol."""


class MarginalEstimator(Protocol):
    """What a `MarginalEstimate` needs of a protocol: see `MarginalProtocol` for what these are."""

    @property
    def domain(self) -> Domain:
        """The attributes."""
        ...

    @property
    def k(self) -> int:
        """How many attributes a marginal may have at most."""
        ...

    def checked(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """Names of 1 .. k distinct attributes; ValueError for others."""
        ...

    def marginal_of(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        """Unbiased estimates of the cells of a marginal, n > 0: shape (cells,)."""
        ...

    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats:
        """Estimates of the variances of weights @ cells, n > 0; weights: shape (sums, cells)."""
        ...


class MarginalEstimate(OfPopulation):
    """Unbiased estimates of all marginals of up to k attributes.

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
        """The fractions of the population with each combination of values.

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
        """The answer about each cell of a marginal: what `answer` gives for its values.

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
        """The expected total variation distance of the marginal from the truth.

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
        return float(np.sqrt(2 / np.pi * variances).sum() / 2)

    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """The fraction of the population with these values.

        Parameters
        ----------
        where : mapping
            For each attribute that matters the value, the list of values, or the ends of the closed
            range of values that it must have: ``{"a": 1, "b": [2, 5], "c": (0, 3)}`` asks for the
            records with a = 1, b = 2 or 5, and c from 0 to 3. At most k attributes. Integer arrays
            are many questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            A fraction of the population, with its variance, which is refused (`UnknownVariance`) by
            protocols that do not know it.

        Raises
        ------
        InvalidQuestion
            What is no question, or values that the attributes do not have.
        ValueError
            More than k attributes.
        """
        shape, asked = conditions(where, self.domain.names, self.domain.sizes)
        names = self.protocol.checked([self.domain.names[one.place] for one in asked])
        weights: Floats = np.ones((*shape, 1))
        for one, name in zip(asked, names, strict=True):
            own = one.weights(np.arange(self.domain[name]))
            product = weights[..., :, None] * own[..., None, :]
            weights = product.reshape(*product.shape[:-2], -1)
        return self.linear(names, weights.reshape(*shape, -1))

    def linear(self, attributes: Sequence[str], weights: npt.ArrayLike) -> Answer:
        """Weighted sums of the cells of a marginal and their variances, covariances included.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.
        weights : array_like
            Shape (..., cells), finite: of the cells of the marginal, the last attribute's values
            next to each other.

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
        value = plain((rows @ cells).reshape(shape))
        if not self.reports or not np.isfinite(value).all():
            return Answer(value, plain(np.full(shape, np.inf)))
        try:
            variance = self._variances(names, rows)
        except UnknownVariance as error:
            return Answer(value, None, str(error))
        variance = np.maximum(variance, 0.0) + self._of_drawing_sums(rows, cells)
        return Answer(value, plain(variance.reshape(shape)))

    def distribution(self, attributes: Sequence[str]) -> Floats:
        """The proper distribution nearest to the marginal: biased, variances unknown.

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

    def _variances(self, names: tuple[str, ...], weights: Floats) -> Floats:
        """Those of sums of the cells of a marginal that is known."""
        return self.protocol.linear_variances_of(self.aggregate, names, weights)

    def __repr__(self) -> str:
        return (
            f"<Estimate of marginals of up to {self.protocol.k} of {len(self.domain)} attributes"
            f" from {self.n} reports>"
        )
