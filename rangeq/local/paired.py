"""Ranges of items that come with a private bit: the AUC of a score, and means over ranges of keys.

A pair (bit, x) is the item bit * domain + x of a protocol over twice the domain, whose tree asks
for the bit first. So both halves answer ranges of x with the error of a tree, and the bit is as
private as x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.answer import Answer
from frequency.exceptions import InvalidValue
from mechdesign._support.arrays import Floats, Integers
from mechdesign._support.randomness import bit_source
from mechdesign.sampling import checked_counts
from rangeq.core.estimate import RangeEstimate
from rangeq.core.protocol import RangeProtocol


@dataclass(frozen=True)
class Paired:
    """Pairs of a bit and an item, as the items of a range protocol over an even domain.

    Thesis, section 7.1.2.

    Parameters
    ----------
    protocol : RangeProtocol
        A range protocol over twice the domain of the items.

    Raises
    ------
    ValueError
        If its domain is odd.
    """

    protocol: RangeProtocol

    def __post_init__(self) -> None:
        if self.protocol.domain % 2:
            raise ValueError(
                "pairs need a protocol over twice their domain, an even number, got"
                f" {self.protocol.domain}"
            )

    @property
    def domain(self) -> int:
        """The number of items that a bit comes with."""
        return self.protocol.domain // 2

    def items(self, bits: npt.ArrayLike, values: npt.ArrayLike) -> Integers:
        """What the protocol's `privatize` takes, from each user's bit and item.

        Parameters
        ----------
        bits : array_like
            Shape (users,): 0 or 1.
        values : array_like
            Shape (users,): items in 0 .. domain-1.

        Returns
        -------
        numpy.ndarray
            Shape (users,), int64: bit * domain + item.

        Raises
        ------
        InvalidValue
            For the first bad one.
        """
        ones = checked_counts(bits, 1, InvalidValue)
        return ones * self.domain + checked_counts(values, self.domain - 1, InvalidValue)

    def keyed(
        self, keys: npt.ArrayLike, values: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> Integers:
        """What the protocol's `privatize` takes, from keys and numeric values.

        The bit is 1 with probability (1 + value) / 2, which is right on average. The rounding is
        part of the client.

        Parameters
        ----------
        keys : array_like
            Shape (users,): items in 0 .. domain-1.
        values : array_like
            Shape (users,): numbers in [-1, 1].
        rng : numpy.random.Generator, optional
            As for `Oracle.privatize`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), int64.

        Raises
        ------
        ValueError
            For the first value outside of [-1, 1].
        InvalidValue
            For the first bad key.
        """
        numbers = np.asarray(values, dtype=np.float64)
        bad = ~((numbers >= -1) & (numbers <= 1))
        if bad.any():
            index = int(np.argmax(bad))
            raise ValueError(
                f"values[{index}] = {numbers.flat[index]} is not in [-1, 1]; nothing was drawn"
            )
        items = self.items(np.zeros(numbers.shape, dtype=np.int64), keys)
        # 53 bits of a word against the binary number (1 + value) / 2: exact, but for values smaller
        # than 2^-52.
        drawn = (bit_source(rng)(numbers.size) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return items + self.domain * (drawn < (1 + numbers.ravel()) / 2).reshape(items.shape)

    def auc(self, estimate: RangeEstimate) -> Answer:
        """The chance that a random item with bit 1 exceeds one with bit 0, ties counting one half.

        Thesis, equation 7.1, which drops ties. The error is that of the linear terms (the delta
        method) of a ratio of products of estimates, right for many users; the products' own bias,
        of the order of the variance, is not taken off.

        Parameters
        ----------
        estimate : RangeEstimate
            Of this protocol.

        Returns
        -------
        Answer
            ``(value, variance)``.
        """
        d, f = self.domain, estimate.frequencies
        lower, upper = f[:d], f[d:]
        below = np.cumsum(lower) - lower / 2  # of bit 0 below each item, half of those at it
        above = upper.sum() - np.cumsum(upper) + upper / 2
        value = float(upper @ below) / float(lower.sum() * upper.sum())
        slope = np.concatenate([above - value * upper.sum(), below - value * lower.sum()]) / float(
            lower.sum() * upper.sum()
        )
        return Answer(value, estimate.linear(slope).variance)

    def mean(
        self, estimate: RangeEstimate, first: npt.ArrayLike, last: npt.ArrayLike
    ) -> tuple[Any, Any]:
        """The mean value of the keys in first .. last, for items made by `keyed`.

        A ratio of two range estimates; the variance is that of its linear terms, and both are worth
        little where the range holds few users.

        Parameters
        ----------
        estimate : RangeEstimate
            Of the protocol.
        first, last : array_like
            Closed ranges of keys, integers or arrays.

        Returns
        -------
        tuple
            Means and their variances: floats, or arrays of the ends' shape.

        Raises
        ------
        ValueError
            For ends that are not ranges of keys.
        """
        d, plain = self.domain, np.ndim(first) == 0 and np.ndim(last) == 0
        a, b = np.broadcast_arrays(np.atleast_1d(first), np.atleast_1d(last))
        if (b >= d).any():
            raise ValueError(f"keys are 0 .. {d - 1}")
        low, high = estimate.range(a, b), estimate.range(a + d, b + d)
        count = low + high
        means: Floats = (high - low) / count
        variances = np.empty(len(means))
        for k in range(len(means)):
            weights = np.zeros(2 * d)
            weights[a[k] : b[k] + 1] = (-1 - means[k]) / count[k]
            weights[a[k] + d : b[k] + d + 1] = (1 - means[k]) / count[k]
            variances[k] = estimate.linear(weights).variance
        return (float(means[0]), float(variances[0])) if plain else (means, variances)
