"""The errors of the estimate of an item: its deviation, and what noise may reach among many."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from frequency.core.oracle import Oracle
from frequency.oracles.hadamard_response import HRR
from mechdesign.base.linear_algebra import Floats


@dataclass(frozen=True)
class ItemErrors:
    """The errors of estimates from reports of a random part of a population.

    They are relative to all of the population.

    Parameters
    ----------
    users : int
        The number of reports, at least 1.
    population : int
        The number of users of whom these are a random part.
    noise : callable
        Maps frequencies to the variance of the protocol.
    null : callable
        Maps a probability to what the estimate of an item that nobody holds exceeds with at most
        this probability.
    confusion : float, default 0.0
        The variance that other items add to every estimate.
    """

    users: int
    population: int
    noise: Callable[[Any], Any]
    null: Callable[[float], float]
    confusion: float = 0.0

    @classmethod
    def of(cls, oracle: Oracle, users: int, population: int, confusion: float = 0.0) -> ItemErrors:
        """Return the errors of a frequency oracle."""
        return cls(
            users,
            population,
            partial(oracle.variance, users),
            partial(null_of, oracle, users),
            confusion,
        )

    def deviation(self, frequency: Floats) -> Floats:
        """Return the standard deviation of the estimates of items of these frequencies."""
        f = np.clip(frequency, 0.0, 1.0)
        # Sampling without replacement: nothing where all of the population reported.
        sampling = f * (1 - f) * (1 / self.users - 1 / self.population)
        return np.asarray(
            np.sqrt(np.maximum(np.asarray(self.noise(f)) + sampling + self.confusion, 0.0))
        )

    def beyond(self, alpha: float) -> float:
        """Return what the estimate of an absent item exceeds with probability ``alpha`` at most."""
        return float(
            np.hypot(self.null(alpha), scipy.special.ndtri(alpha) * np.sqrt(self.confusion))
        )


def null_of(oracle: Oracle, users: int, alpha: float) -> float:
    """Return `ItemErrors.null` of an oracle.

    It is exact for oracles that count supporters or signs; for others errors are taken for normal.
    The supporters of an item that nobody holds are binomial, which far in the tail is not normal:
    with large epsilon or few users noise reaches further.
    """
    if oracle.support is not None:
        p, q = oracle.support
        return (reach(users, float(q), alpha) / users - float(q)) / float(p - q)
    if isinstance(oracle, HRR) and oracle.coefficients == 1:
        return null_of_signs(oracle.scale, users, alpha) + 1 / oracle.padded
    return -float(scipy.special.ndtri(alpha) * np.sqrt(oracle.variance(users, 0.0)))


def noise_of_signs(scale: float, users: int, frequency: Any) -> Any:
    """Return the variance of the mean of signs times a scale, whose mean is the frequency.

    The result is shaped like `frequency`.
    """
    return (scale**2 - frequency) / users


def null_of_signs(scale: float, users: int, alpha: float) -> float:
    """Return what the mean of fair signs, scaled, exceeds with probability ``alpha`` at most."""
    return scale * (2 * reach(users, 0.5, alpha) - users) / users


def reach(users: int, q: float, alpha: float) -> int:
    """Return the least number that a binomial count exceeds with probability ``alpha`` at most.

    It is found however small ``alpha`` is.
    """
    # Pr[count > k] is the regularised incomplete beta function I_q(k + 1, users - k), accurate far
    # in the tail, where 1 - (a distribution function) would be 0. It falls with k: bisection.
    return bisect_left(
        range(users), True, key=lambda k: bool(scipy.special.betainc(k + 1, users - k, q) <= alpha)
    )
