"""MarginalEstimate: marginals with their errors, and answers to questions about records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.core.answer import Answer, ConfidenceInterval, conditions, normal_quantile, plain
from frequency.marginals.domain import Domain
from frequency.postprocess import norm_sub
from mechdesign._support.arrays import Floats


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

    def _marginal(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats: ...
    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats: ...


class MarginalEstimate:
    """Unbiased estimates of all marginals of up to k attributes.

    Cells may be negative, or exceed 1.

    Attributes
    ----------
    n : int
        The number of reports. With none all values are NaN, all variances infinite.
    domain : Domain
        The attributes.
    """

    def __init__(self, protocol: MarginalEstimator, aggregate: Aggregate) -> None:
        self._protocol, self.aggregate = protocol, aggregate
        self.n, self.domain = aggregate.n, protocol.domain
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
        names = self._protocol.checked(attributes)
        if names not in self._marginals:
            shape = self.domain.project(names).shape
            cells = (
                self._protocol._marginal(self.aggregate, names)
                if self.n
                else np.full(int(np.prod(shape)), np.nan)
            )
            self._marginals[names] = cells.reshape(shape)
            self._marginals[names].setflags(write=False)
        return self._marginals[names]

    def variances(self, attributes: Sequence[str]) -> Floats:
        """The variance of each cell, shaped as the marginal.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        numpy.ndarray of float64
            The variance of each cell, shaped as the marginal; infinite with no reports.

        Raises
        ------
        ValueError
            Other attributes.
        """
        names = self._protocol.checked(attributes)
        shape = self.domain.project(names).shape
        return np.asarray(self._linear(names, np.eye(int(np.prod(shape)))).variance).reshape(shape)

    def interval(self, attributes: Sequence[str], confidence: float = 0.95) -> ConfidenceInterval:
        """Confidence intervals for each cell by itself.

        Parameters
        ----------
        attributes : sequence of str
            1 .. k distinct names.
        confidence : float, default 0.95
            Of each interval, strictly between 0 and 1.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shaped as the marginal.

        Raises
        ------
        ValueError
            Other attributes, or another confidence.
        """
        half, middle = (
            normal_quantile(confidence) * np.sqrt(self.variances(attributes)),
            self.marginal(attributes),
        )
        return (
            ConfidenceInterval(middle - half, middle + half)
            if self.n
            else ConfidenceInterval(np.full_like(half, -np.inf), half)
        )

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
        ValueError
            Other attributes.
        """
        return float(np.sqrt(2 / np.pi * self.variances(attributes)).sum() / 2)

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
        names = self._protocol.checked([self.domain.names[one.place] for one in asked])
        weights: Floats = np.ones((*shape, 1))
        for one, name in zip(asked, names, strict=True):
            own = one.weights(np.arange(self.domain[name]))
            product = weights[..., :, None] * own[..., None, :]
            weights = product.reshape(*product.shape[:-2], -1)
        found = self._linear(names, weights.reshape(-1, weights.shape[-1]))
        value, variance = (plain(np.reshape(part, shape)) for part in found)
        if np.isnan(variance).any():
            name = type(self._protocol).__name__
            return Answer(value, None, f"the variances of estimates of {name} are not known")
        return Answer(value, variance)

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
        if not self.n:
            raise ValueError("no reports: there is no distribution")
        return norm_sub(marginal.ravel()).reshape(marginal.shape)

    def _linear(self, names: tuple[str, ...], weights: Floats) -> Answer:
        value = weights @ self.marginal(names).ravel()
        variance = np.full(len(weights), np.inf)
        if self.n:
            variance = np.maximum(
                self._protocol.linear_variances_of(self.aggregate, names, weights), 0.0
            )
        return Answer(value, variance)

    def __repr__(self) -> str:
        return (
            f"<Estimate of marginals of up to {self._protocol.k} of {len(self.domain)} attributes"
            f" from {self.n} reports>"
        )
