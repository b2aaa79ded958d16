"""Expectation maximisation: the distribution of items under which reports are most likely."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Floats

_MOST_ROUNDS = 10_000

_NOTHING = 1e-100
"""Frequencies that fall below it are 0: numbers near the least take ten times as long."""


class Fit(NamedTuple):
    """A distribution found by expectation maximisation.

    Attributes
    ----------
    frequencies : numpy.ndarray of float64
        Shape (domain,), or that of the items: non-negative and with sum 1.
    rounds : int
        How many it took.
    log_likelihood : float
        Of the reports under it.
    """

    frequencies: Floats
    rounds: int
    log_likelihood: float


def most_likely(
    counts: npt.NDArray[np.int64],
    shape: tuple[int, ...],
    reported: Callable[[Floats], Floats],
    backward: Callable[[Floats], Floats],
    threshold: float,
    smoothed: Callable[[Floats], Floats] | None = None,
) -> Fit:
    """EM from the uniform distribution, or EMS, which smooths after every round.

    Li et al., SIGMOD 2020, algorithm 1 and section 5.5.

    Parameters
    ----------
    counts : numpy.ndarray of int64
        How often each report came, at least one in all.
    shape : tuple of int
        Of the items.
    reported : callable
        From the frequencies of items to the probabilities of reports.
    backward : callable
        Its transpose: from a number for each report to the sum over reports of their probability
        under each item times that number.
    threshold : float
        It ends when a round changes the log-likelihood by less.
    smoothed : callable, optional
        From a distribution to a smoother one; None: EM.

    Returns
    -------
    Fit
        After at most 10,000 rounds.
    """
    held = counts.astype(np.float64)
    seen = held > 0
    f = np.full(shape, 1 / np.prod(shape))
    expected = reported(f)
    likelihood, rounds = float(held[seen] @ np.log(expected[seen])), 0
    while rounds < _MOST_ROUNDS:
        rounds += 1
        f = f * backward(np.divide(held, expected, out=np.zeros_like(held), where=seen))
        f /= f.sum()
        f[f < _NOTHING] = 0.0
        if smoothed is not None:
            f = smoothed(f)
        expected, before = reported(f), likelihood
        likelihood = float(held[seen] @ np.log(expected[seen]))
        if abs(likelihood - before) < threshold:
            break
    return Fit(f, rounds, likelihood)


def averaged(f: Floats) -> Floats:
    """Each item averaged with its neighbours along every axis, weights 1 : 2 : 1; of sum 1.

    Parameters
    ----------
    f : numpy.ndarray of float64
        A distribution over one or several ordered axes.

    Returns
    -------
    numpy.ndarray of float64
        The first and the last along an axis are averaged with the one neighbour they have.
    """
    result = f
    for axis in range(f.ndim):
        line = np.moveaxis(result, axis, 0)
        if len(line) > 1:
            found = 2 * line
            found[1:] += line[:-1]
            found[:-1] += line[1:]
            found[1:-1] /= 4
            found[[0, -1]] /= 3
            result = np.moveaxis(found, 0, axis)
    return np.asarray(result / result.sum())
