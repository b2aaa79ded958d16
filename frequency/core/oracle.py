"""Frequency oracles: a channel, and estimates from what it aggregates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.channel import LARGEST_LIST, Channel, Reports
from frequency.core.estimate import Estimate
from frequency.core.likelihood import Likelihood
from frequency.exceptions import InvalidValue
from mechdesign.base import Floats, Items, checked_counts, shown, to_text, whole

_IN_CACHE = 1 << 17  # how many numbers to transform together


class Support(NamedTuple):
    """The probabilities with which reports of "pure" protocols support items.

    A report supports its sender's item with probability ``p``, any other with probability ``q`` < p
    (Wang et al., USENIX Security 2017, section 3): the frequency of x is estimated by (supporters
    of x / n - q) / (p - q), with variance (f p (1-p) + (1-f) q (1-q)) / (n (p-q)^2).
    """

    p: Fraction  #: Pr[a report supports its sender's item].
    q: Fraction  #: Pr[a report supports a particular other item].

    def frequencies(self, supporters: npt.NDArray[np.int64], n: int) -> Floats:
        """Unbiased estimates, from how many of n reports support each item."""
        return (supporters / n - float(self.q)) / float(self.p - self.q)

    def held(self, supporters: npt.NDArray[np.int64], users: Floats) -> Floats:
        """Unbiased estimates of how many users have each item: shape (..., domain).

        Shapes: `supporters` (..., domain), `users` (...).
        """
        return (supporters - float(self.q) * users[..., None]) / float(self.p - self.q)

    def likelihood(self, supporters: npt.NDArray[np.int64], n: int) -> Likelihood:
        """Return the likelihood of the supporters of each item by itself."""
        q, more = float(self.q), float(self.p - self.q)

        def predict(frequencies: Floats) -> Floats:
            supported = q + more * frequencies
            return np.concatenate([supported, 1 - supported])

        def transposed(numbers: Floats) -> Floats:
            yes, no = np.split(numbers, 2)
            return more * (yes - no) + q * yes.sum() + (1 - q) * no.sum()

        counts = np.concatenate([supporters, n - supporters]).astype(np.float64)
        return Likelihood(len(supporters), counts, predict, transposed)

    @property
    def own_and_other(self) -> tuple[float, float]:
        """The variance from one user with the item, and from one with another."""
        p, q = self
        return float(p * (1 - p) / (p - q) ** 2), float(q * (1 - q) / (p - q) ** 2)


@dataclass(frozen=True, repr=False)
class Oracle(Channel):
    """A frequency protocol under local privacy: see `Channel` for what travels.

    An oracle states its `support`, from which the estimates follow, or `frequencies_of`; and
    `cells_of`, or `counts_of`.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.support is not None and self.support.p <= self.support.q:
            raise ValueError(
                f"epsilon = {shown(self.epsilon)} is too small for {self.domain} items in units of"
                " 2^-64"
            )

    def _details(self) -> dict[str, Any]:
        if self.support is None:
            return super()._details()
        return {name: to_text(chance) for name, chance in self.support._asdict().items()}

    def estimate(self, aggregate: Aggregate, items: npt.ArrayLike | None = None) -> Estimate:
        """Unbiased frequencies with their variances.

        Parameters
        ----------
        aggregate : Aggregate
            Of this oracle.
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
            Items that occur twice, or another shape; more than 2^26 items of which none are named.
        """
        self.require_own(aggregate)
        chosen = None
        if items is None and self.domain > LARGEST_LIST:
            raise ValueError(
                f"{type(self).__name__} has too many items to list: say which to estimate"
            )
        if items is not None:
            chosen = checked_counts(items, self.domain - 1, InvalidValue)
            if chosen.ndim != 1 or len(np.unique(chosen)) != len(chosen):
                raise ValueError("items must be a one-dimensional array of distinct items")
        return Estimate(self, aggregate, chosen)

    # ------------------------------------------------------------------- what every oracle states

    @property
    def support(self) -> Support | None:
        """By which probabilities reports support items; None where they support none."""
        return None

    @property
    def p(self) -> Fraction:
        """Pr[a report supports its sender's item]; TypeError where reports support none."""
        return support_of(self).p

    @property
    def q(self) -> Fraction:
        """Pr[a report supports a particular other item]; TypeError where they support none."""
        return support_of(self).q

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self.domain,)

    def _supporters(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of reports that support each item: by default, the counts.

        Shapes: `counts` (..., *counts_shape), of one aggregate or of many; returns (..., domain).
        """
        return counts

    @property
    def cells(self) -> int:
        """The number of counts that a report adds one to: by default 1, or 0 without `cells_of`."""
        return int(type(self).cells_of is not Oracle.cells_of)

    def cells_of(self, reports: Reports) -> Items:
        """The flat indices of the counts that each report adds to, (users, cells).

        TypeError where reports have no cells.
        """
        raise TypeError(f"the reports of {type(self).__name__} have no cells")

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        size = math.prod(self.counts_shape)
        return np.bincount(self.cells_of(reports).ravel(), minlength=size).reshape(
            self.counts_shape
        )

    def held_of(self, counts: npt.NDArray[np.int64]) -> Floats:
        """Unbiased numbers of users with each item, linear in the counts, where reports have cells.

        Shapes: `counts` (..., *counts_shape), of one aggregate or of many; returns (..., domain).
        """
        axes = tuple(range(-len(self.counts_shape), 0))
        users = counts.sum(axis=axes, dtype=np.float64) / self.cells
        return support_of(self).held(self._supporters(counts), users)

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        """Unbiased estimates of frequencies.

        Parameters
        ----------
        aggregate : Aggregate
            Of this oracle's reports, at least one.
        items : numpy.ndarray of int64 or None
            Which items, distinct; None: all of the domain.

        Returns
        -------
        numpy.ndarray of float64
            Shape (items,): linear in the counts, and the mean of what each report alone would give.
        """
        supporters = self._supporters(aggregate.counts)
        if items is not None:
            supporters = supporters[items]
        return support_of(self).frequencies(supporters, aggregate.n)

    @abstractmethod
    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        """The variances of weighted sums of the estimates, for known frequencies.

        Over the randomness of the protocol; the users' values are fixed. As users are independent,
        it is linear in the frequencies.

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
        numpy.ndarray of float64
            Shape (sums,): the variances of weights @ estimates.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """

    # ---------------------------------- what follows from that, slowly: many oracles state it anew

    @property
    def symmetric(self) -> bool:
        """Whether variances depend on an item's own frequency alone: by default, with `support`."""
        return self.support is not None

    @cached_property
    def _own_and_other(self) -> tuple[float, float]:
        """The mean over items of the variance from one user, with that item and with another."""
        if self.support is not None:
            return self.support.own_and_other
        d, items = self.domain, np.eye(self.domain)
        table = np.array([self.linear_variance(1, items, population) for population in items])
        holder = float(np.trace(table)) / d
        return holder, (float(table.sum()) / d - holder) / max(d - 1, 1)

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """The variance of the estimate of one item's frequency.

        Over the randomness of the protocol; the users' values are fixed. Where items differ it is
        the mean over them, with all other items equally frequent.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        frequency : array_like, default 0.0
            The fraction of the users with the item, 0 to 1.

        Returns
        -------
        float or numpy.ndarray
            Variances of fractions of the population, shaped like ``frequency``.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """
        holder, other = self._own_and_other
        return variance_of(n, other + (holder - other) * np.asarray(frequency, dtype=np.float64))

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
        # The mean over pairs of (e_x - e_z)' C (e_x - e_z) is 2 (tr C - 1'C1 / d) / (d - 1).
        d = held or self.domain
        items = np.eye(self.domain)[:d]
        sums = np.concatenate([items, items.sum(axis=0, keepdims=True)])
        *each, whole = self.linear_variance(n, sums, items.sum(axis=0) / d)
        return float(2 * (sum(each) - whole / d) / max(d - 1, 1))

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Unbiased estimates of the variances of sums of estimates.

        Parameters
        ----------
        weights : numpy.ndarray of float64
            Shape (sums, items).
        aggregate : Aggregate
            Of this oracle's reports, at least one.
        frequencies : numpy.ndarray of float64
            Shape (items,): what `frequencies_of` gives.
        items : numpy.ndarray of int64 or None
            Which items; None: all of the domain.

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,): perhaps negative.
        """
        # Unbiased, as it is linear in the frequencies, and these are
        if items is not None:
            weights = spread_out(weights, items, self.domain)
            frequencies = self.frequencies_of(aggregate, None)
        return self.linear_variance(aggregate.n, weights, frequencies)

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Unbiased estimates of the variances of single estimates.

        Parameters
        ----------
        aggregate : Aggregate
            Of this oracle's reports, at least one.
        frequencies : numpy.ndarray of float64
            Shape (items,): what `frequencies_of` gives.
        items : numpy.ndarray of int64 or None
            Which items; None: all of the domain.

        Returns
        -------
        numpy.ndarray of float64
            Shape (items,): perhaps negative.
        """
        if self.symmetric:
            return np.asarray(self.variance(aggregate.n, frequencies))
        return self.linear_variances_of(np.eye(len(frequencies)), aggregate, frequencies, items)

    def variance_slope(self, n: int) -> float:
        """Return the growth of an item's variance with its own frequency, all else being equal.

        `Estimate` makes its score intervals of it; 0 makes them normal ones, which is right also
        where the variance depends on all of the frequencies.
        """
        return float(self.variance(n, 1.0) - self.variance(n, 0.0)) if self.symmetric else 0.0

    def likelihood_of(self, aggregate: Aggregate) -> Likelihood:
        """The likelihood of an aggregate's counts, for `frequency.core.likelihood.maximised`.

        Parameters
        ----------
        aggregate : Aggregate
            Of this oracle's reports, at least one.

        Returns
        -------
        Likelihood
            Exactly that of the reports where the counts are those of their kinds. Where they keep
            less of a report, that of each count by itself, all multiplied: a composite likelihood,
            whose maximum is as near to the truth for many users.

        Raises
        ------
        TypeError
            It is not known.
        """
        if self.support is None:
            raise TypeError(f"{type(self).__name__} does not state the likelihood of its counts")
        return self.support.likelihood(self._supporters(aggregate.counts), aggregate.n)


def support_of(oracle: Oracle) -> Support:
    """By which probabilities an oracle's reports support items; TypeError where they do not."""
    if oracle.support is None:
        raise TypeError(f"{type(oracle).__name__} states neither its support nor its estimates")
    return oracle.support


def checked_users(n: int) -> int:
    """``n`` as a number of users. ValueError unless it is an integer of at least 1."""
    return whole(n, "n", 1, what="a number of users")


def variance_of(n: int, per_user: Any) -> Any:
    """``per_user / n``: a float if it is one number."""
    result = np.asarray(per_user, dtype=np.float64) / checked_users(n)
    return float(result) if np.ndim(result) == 0 else result


def spread_out(weights: Floats, items: Items | None, domain: int) -> Floats:
    """Weights of chosen items, (sums, items), as weights of the whole domain, (sums, domain)."""
    first = weights.shape[1]
    if items is None and first == domain:
        return weights
    result = np.zeros((len(weights), domain))
    result[:, slice(first) if items is None else items] = weights
    return result


def in_blocks(weights: Floats, size: int) -> Iterator[Floats]:
    """Yield blocks of sums, for oracles whose scores of a sum are computed by a transform.

    Short transforms are fastest together, long ones by themselves. Shapes: yields (sums, items).
    """
    step = max(1, _IN_CACHE // size)
    for start in range(0, max(len(weights), 1), step):
        yield weights[start : start + step]


def variance_of_scores(
    n: int, scores: Floats, kinds: Floats, weights: Floats, frequencies: Floats
) -> Floats:
    """The variances of weighted sums from the scores that reports contribute.

    Shapes: `scores` (sums, kinds), `kinds` (kinds,), `weights` (sums, items), `frequencies`
    (items,); returns (sums,).
    """
    # A report of kind r contributes scores[:, r] to weights @ estimates. Users are independent, and
    # one with item v contributes w_v on average: the variance is the mean square of what is
    # contributed less the sum of f_v w_v^2, divided by n
    return (scores**2 @ kinds - weights**2 @ frequencies) / checked_users(n)


def population_mean(chosen: Floats, zero: Floats, frequencies: Floats) -> Floats:
    """The mean over users of a function of their item.

    Shapes: `chosen` (sums, items), `zero` (sums, 1), `frequencies` (items,); returns (sums,).
    """
    return chosen @ frequencies + zero[:, 0] * (1 - frequencies.sum())
