"""Frequency oracles: a channel, and estimates from what it aggregates."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.channel import Channel, Reports
from frequency.core.estimate import Estimate
from frequency.exceptions import InvalidValue
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.numbers import whole
from mechdesign._support.text import shown
from mechdesign.sampling import checked_counts


@dataclass(frozen=True)
class Oracle(Channel):
    """A frequency protocol under local privacy: see `Channel` for what travels.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.

    Raises
    ------
    ValueError
        A domain or epsilon outside the range of the protocol.
    """

    def estimate(self, aggregate: Aggregate, items: npt.ArrayLike | None = None) -> Estimate:
        """Unbiased frequencies with their variances.

        Parameters
        ----------
        aggregate : Aggregate
            Of this oracle (else IncompatibleAggregate).
        items : array_like, optional
            The items to estimate, distinct; None: all of the domain.

        Returns
        -------
        Estimate
            Of the items asked for, in their order.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol.
        InvalidValue
            The first item that the domain does not have.
        ValueError
            Items that occur twice, or another shape.
        """
        self._own(aggregate)
        chosen = None
        if items is not None:
            chosen = checked_counts(items, self.domain - 1, InvalidValue)
            if chosen.ndim != 1 or len(np.unique(chosen)) != len(chosen):
                raise ValueError("items must be a one-dimensional array of distinct items")
        return Estimate(self, aggregate, chosen)

    # -------------------------------------------------------------------- what is known beforehand

    @abstractmethod
    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """The variance of the estimate of one item's frequency.

        Over the randomness of the protocol; the users' values are fixed.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        frequency : array_like, default 0.0
            The fraction of the users with the item, 0 to 1; a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Variances of fractions of the population, shaped like ``frequency``.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """

    @abstractmethod
    def difference_variance(self, n: int, held: int | None = None) -> float:
        """The mean of Var(f_x - f_z) over pairs of the items that occur, all equally frequent.

        The variance of a weighted sum whose weights add up to 0 is half of this times the sum of
        their squares: what protocols weigh estimates by. (Over finite fields, where pairs differ a
        little, it is the mean over the ways to number the items.)

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        held : int, optional
            How many items occur, the first ones, at least 2; None: all of the domain.

        Returns
        -------
        float
            The variance of a difference of two estimated fractions.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """

    @abstractmethod
    def _frequencies(self, aggregate: Aggregate, items: Items | None) -> Floats:
        """Unbiased estimates for the items (None: all), n > 0."""

    def _variances(self, aggregate: Aggregate, frequencies: Floats, items: Items | None) -> Floats:
        """Unbiased estimates of their variances, n > 0."""
        return np.asarray(self.variance(aggregate.n, frequencies))

    def _slope(self, n: int) -> float:
        """How much the variance grows with the frequency, for the intervals of `Estimate`."""
        return float(self.variance(n, 1.0) - self.variance(n, 0.0))

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        """The variances of weighted sums of the estimates, for known frequencies.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        weights : numpy.ndarray of float64
            Shape (sums, domain).
        frequencies : numpy.ndarray of float64
            Shape (domain,): the true fractions of the users.

        Returns
        -------
        numpy.ndarray
            Shape (sums,): the variances of weights @ estimates.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """
        kinds: Any = self._kinds(frequencies)  # as if they were counts, of one user
        one = self._linear_variance(
            weights, Aggregate(self._signature, 1, kinds), frequencies, None
        )
        result: Floats = variance_of(n, one)
        return result

    def _kinds(self, frequencies: Floats) -> Floats:
        """The probability of each kind of report, where `_linear_variance` looks at those."""
        return np.zeros(0)

    @abstractmethod
    def _linear_variance(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Unbiased estimates of the variances of the sums weights @ frequencies, n > 0.

        Weights have shape (sums, items).
        """


class PureOracle(Oracle):
    """Oracles whose reports each support some items.

    A report supports its sender's item with probability ``p``, any other with probability ``q`` <
    p.

    "Pure" protocols (Wang et al., USENIX Security 2017, section 3): the frequency of x is estimated
    by (supporters of x / n - q) / (p - q), with variance (f p (1-p) + (1-f) q (1-q)) / (n (p-q)^2).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p <= self.q:
            raise ValueError(
                f"epsilon = {shown(self.epsilon)} is too small for {self.domain} items in units of"
                " 2^-64"
            )

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """Pr[a report supports its sender's item]."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """Pr[a report supports a particular other item]."""

    @abstractmethod
    def _supporters(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many reports support each item, from the counts of one or of many aggregates.

        The shape (..., *shape) becomes (..., domain).
        """

    def _frequencies(self, aggregate: Aggregate, items: Items | None) -> Floats:
        supporters = self._supporters(aggregate.counts)
        if items is not None:
            supporters = supporters[items]
        return (supporters / aggregate.n - float(self.q)) / float(self.p - self.q)

    @cached_property
    def _unit_variances(self) -> tuple[float, float]:
        """n times the variance at frequency 0 and at frequency 1."""
        p, q = self.p, self.q
        return float(q * (1 - q) / (p - q) ** 2), float(p * (1 - p) / (p - q) ** 2)

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)^2) for an item of frequency f.

        Source: Wang et al., USENIX Security 2017, section 3.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        frequency : array_like, default 0.0
            The fraction of the users with the item, 0 to 1; a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Variances of fractions of the population, shaped like ``frequency``.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """
        other, own = self._unit_variances
        return variance_of(n, other + (own - other) * np.asarray(frequency, dtype=np.float64))


class CellOracle(PureOracle):
    """A report adds one to each of a fixed number of an aggregate's counts: those of its cells."""

    @property
    def cells(self) -> int:
        """How many counts each report adds to."""
        return 1

    @abstractmethod
    def _cells(self, reports: Reports) -> Items:
        """The flat indices of the counts that each report adds to: shape (users, cells)."""

    def _aggregate(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(self._cells(reports).ravel(), minlength=math.prod(self._shape)).reshape(
            self._shape
        )


def checked_users(n: int) -> int:
    """``n`` as a number of users. ValueError unless it is an integer of at least 1."""
    return whole(n, "n", 1, what="a number of users")


def variance_of(n: int, per_user: Any) -> Any:
    """``per_user / n``: a float if it is one number.

    Parameters
    ----------
    n : int
        The number of users, at least 1.
    per_user : array_like
        Variances with a single user.

    Returns
    -------
    float or numpy.ndarray
        Variances with n users, of the same shape.

    Raises
    ------
    ValueError
        ``n`` is no number of users.
    """
    result = np.asarray(per_user, dtype=np.float64) / checked_users(n)
    return float(result) if np.ndim(result) == 0 else result


def spread_out(weights: Floats, items: Items | None, domain: int) -> Floats:
    """Weights of chosen items as weights of the whole domain.

    Parameters
    ----------
    weights : numpy.ndarray of float64
        Shape (sums, items).
    items : numpy.ndarray of int64 or None
        Shape (items,), which items these are; None: all of the domain.
    domain : int
        The number of items.

    Returns
    -------
    numpy.ndarray of float64
        Shape (sums, domain): 0 for items that were not chosen.
    """
    if items is None:
        return weights
    result = np.zeros((len(weights), domain))
    result[:, items] = weights
    return result


def variance_of_scores(
    scores: Floats, aggregate: Aggregate, weights: Floats, frequencies: Floats
) -> Floats:
    """The variances of weighted sums from the scores that reports contribute.

    A report of kind r contributes scores[:, r] to weights @ frequencies, and the counts are of
    kinds. Users are independent, and one with item v contributes w_v on average: the variance is
    the mean square of what was contributed less the sum of f_v w_v^2, divided by n. Both have
    unbiased estimates.

    Parameters
    ----------
    scores : numpy.ndarray of float64
        Shape (sums, kinds).
    aggregate : Aggregate
        How many reports are of each kind; n > 0.
    weights : numpy.ndarray of float64
        Shape (sums, items).
    frequencies : numpy.ndarray of float64
        Shape (items,): the estimated ones.

    Returns
    -------
    numpy.ndarray of float64
        Shape (sums,).
    """
    square = scores**2 @ aggregate.counts.ravel() / aggregate.n
    result: Floats = (square - weights**2 @ frequencies) / aggregate.n
    return result


def population_mean(chosen: Floats, zero: Floats, frequencies: Floats) -> Floats:
    """The mean over users of a function of their item.

    Parameters
    ----------
    chosen : numpy.ndarray of float64
        Shape (sums, items): its values for the items.
    zero : numpy.ndarray of float64
        Shape (sums, 1): its value for all other items.
    frequencies : numpy.ndarray of float64
        Shape (items,): the fractions of the users who hold the items.

    Returns
    -------
    numpy.ndarray of float64
        Shape (sums,).
    """
    result: Floats = chosen @ frequencies + zero[:, 0] * (1 - frequencies.sum())
    return result
