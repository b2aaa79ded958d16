"""The likelihood of counts of reports, its maximum, and the fits that stop before it.

`maximised` proves how far it is from the maximum. `stopped_early` is the published estimator of
square waves, EM or EMS: its stop smooths, as the maximum follows the noise from item to item.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mechdesign.base import Floats

_MOST_ROUNDS = 10_000

# The frequency below which one is 0: numbers near the least take ten times as long.
_NOTHING = 1e-100


class Likelihood(NamedTuple):
    """A likelihood: counts of reports by kind, and the probabilities of kinds under each item.

    Their log-likelihood at the frequencies f is the sum over kinds of counts * log(P f), in nats.
    It is concave. The probabilities P[kind, item] are never listed: only products with them are.

    Attributes
    ----------
    items : int
        The number of items.
    counts : numpy.ndarray of float64
        Shape (kinds,), at least 0.
    predict : callable
        P @ frequencies: from a distribution, shape (items,), to shape (kinds,). Of a kind by
        itself any multiple will do, as it changes the log-likelihood by a constant.
    transposed : callable
        numbers @ P: from shape (kinds,) to shape (items,).
    """

    items: int
    counts: Floats
    predict: Callable[[Floats], Floats]
    transposed: Callable[[Floats], Floats]

    def log(self, predicted: Floats) -> float:
        """Return the log-likelihood, in nats, at the probabilities of the kinds."""
        some = self.counts > 0
        return float(self.counts[some] @ np.log(predicted[some]))

    def gradient(self, predicted: Floats) -> Floats:
        """Return the derivative of the log-likelihood by each frequency, shape (items,)."""
        some = self.counts > 0
        ratios = np.divide(self.counts, predicted, out=np.zeros_like(predicted), where=some)
        return self.transposed(ratios)


class Ascent(NamedTuple):
    """A report of how the search for the most likely frequencies ended.

    Attributes
    ----------
    iterations : int
        How many steps were made.
    gap : float
        A bound on how far the log-likelihood is from its maximum, in nats: n (max g - 1), where n
        g is its gradient, as a concave function lies below its tangents.
    log_likelihood : float
        The sum over reports of their log-probability, in nats, up to a constant; it never falls.
    converged : bool
        Whether the gap is at most the tolerance; otherwise the limit of steps was reached.
    """

    iterations: int
    gap: float
    log_likelihood: float
    converged: bool


def maximised(
    likelihood: Likelihood, tolerance: float, max_iterations: int
) -> tuple[Floats, Ascent]:
    """Return the distribution of most likelihood, (items,), by expectation maximisation."""
    n = float(likelihood.counts.sum())
    estimate = np.full(likelihood.items, 1 / likelihood.items)
    predicted, power, steps = likelihood.predict(estimate), 1.0, 0
    now, slope = likelihood.log(predicted), likelihood.gradient(predicted) / n
    # Concave: the log-likelihood of any distribution f is at most that of the estimate plus the
    # slope times f less n, which is largest at the single item of the steepest slope.
    while n * (slope.max() - 1) > tolerance and steps < max_iterations:
        # A step makes each frequency f the mean over reports of the probability of its item, given
        # the report: f becomes f g, where n g is the gradient. That is often far too short: f g^a,
        # normalised, is tried with a power a that doubles while the likelihood does not fall
        while True:
            # Divided by the largest slope, so that no power overflows.
            after = estimate * (slope / slope.max()) ** power
            after /= after.sum()
            predicted = likelihood.predict(after)
            reached = likelihood.log(predicted)
            # The power 1 is EM itself, which never lowers the likelihood: no step is tried for
            # ever.
            if reached >= now or power == 1.0:
                break
            power = max(1.0, power / 4)
        estimate, now, steps, power = after, reached, steps + 1, 2 * power
        slope = likelihood.gradient(predicted) / n
    gap = max(n * (float(slope.max()) - 1), 0.0)
    return estimate, Ascent(steps, gap, now, gap <= tolerance)


class Fit(NamedTuple):
    """A fit: a distribution by expectation maximisation that stops early.

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


def stopped_early(
    likelihood: Likelihood, shape: tuple[int, ...], epsilon: float, smooth: bool
) -> Fit:
    """Return the fit of EM from the uniform distribution, or EMS, which smooths after every round.

    It stops when a round changes the log-likelihood by less than 10^-3 exp(epsilon) (EM) or 10^-3
    (EMS), or after 10,000 rounds (Li et al., SIGMOD 2020, algorithm 1 and section 5.5).
    """
    threshold = 1e-3 * (1.0 if smooth else math.exp(min(epsilon, 700.0)))
    f = np.full(likelihood.items, 1 / likelihood.items)
    predicted = likelihood.predict(f)
    now, rounds = likelihood.log(predicted), 0
    while rounds < _MOST_ROUNDS:
        rounds += 1
        f = f * likelihood.gradient(predicted)
        f /= f.sum()
        f[f < _NOTHING] = 0.0
        if smooth:
            f = _averaged(f.reshape(shape)).ravel()
        predicted, before = likelihood.predict(f), now
        now = likelihood.log(predicted)
        if abs(now - before) < threshold:
            break
    return Fit(f.reshape(shape), rounds, now)


def _averaged(f: Floats) -> Floats:
    """Return each item averaged with its neighbours along every axis, weights 1 : 2 : 1; of sum 1.

    The first and the last along an axis are averaged with the one neighbour they have.
    """
    result = f
    for axis in range(f.ndim):
        line = np.moveaxis(result, axis, 0)
        if len(line) > 1:
            mean = 2 * line
            mean[1:] += line[:-1]
            mean[:-1] += line[1:]
            mean[1:-1] /= 4
            mean[[0, -1]] /= 3
            result = np.moveaxis(mean, 0, axis)
    return np.asarray(result / result.sum())


def of_signs(
    items: int,
    drawn: Floats | float,
    sums: Floats,
    contrast: float,
    means: Callable[[Floats], Floats],
    transposed: Callable[[Floats], Floats],
) -> Likelihood:
    """Return the likelihood of signs at random indices, of which the sums are known.

    A report of index j is + with probability (1 + contrast m_j) / 2, with m_j the mean sign there.
    Shapes: `sums` (indices,); `means` from (items,) to (indices,), `transposed` back.
    """
    # The number of reports of an index may be an expectation only: it is at least the sum's size.
    times = np.maximum(drawn, np.abs(sums))

    def predict(frequencies: Floats) -> Floats:
        seen = contrast * means(frequencies)
        return np.concatenate([1 + seen, 1 - seen]) / 2

    def back(numbers: Floats) -> Floats:
        plus, minus = np.split(numbers, 2)
        return (contrast * transposed(plus - minus) + numbers.sum()) / 2

    return Likelihood(items, np.concatenate([times + sums, times - sums]) / 2, predict, back)
