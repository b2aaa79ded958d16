"""What counts of reports say of the frequencies of items: their likelihood, and its maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mechdesign.base.linear_algebra import Floats


class Likelihood(NamedTuple):
    """How many reports are of each kind, and the probability of each kind under each item.

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


class Ascent(NamedTuple):
    """How the search for the most likely frequencies ended.

    Attributes
    ----------
    iterations : int
        How many steps were made.
    gap : float
        A bound on how far the log-likelihood is from its maximum, in nats: n (max g - 1), where n
        g is its gradient, as a concave function lies below its tangents.
    log_likelihood : float
        The sum over reports of the log of their probability, in nats, up to a constant. No step
        lowers it.
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
    """The distribution of most likelihood, by expectation maximisation from the uniform one.

    A step of expectation maximisation makes each frequency f the mean over reports of the
    probability of its item, given the report: f becomes f g, where n g is the gradient of the
    log-likelihood. It never lowers the likelihood, and is often far too short: f g^a, normalised,
    is tried with a power a that doubles from step to step while the likelihood does not fall, and
    comes down to 1 otherwise.

    Parameters
    ----------
    likelihood : Likelihood
        With at least one report.
    tolerance : float
        It ends when the log-likelihood is proved to be within so many nats of its maximum.
    max_iterations : int
        Or after so many steps, at least 1.

    Returns
    -------
    tuple
        The frequencies, shape (items,), non-negative of sum 1, and how the search ended.
    """
    counts, n = likelihood.counts, float(likelihood.counts.sum())
    some = counts > 0

    def of(predicted: Floats) -> float:
        return float(counts[some] @ np.log(predicted[some]))

    def gradient(predicted: Floats) -> Floats:
        ratios = np.divide(counts, predicted, out=np.zeros_like(predicted), where=some)
        return likelihood.transposed(ratios) / n

    found = np.full(likelihood.items, 1 / likelihood.items)
    predicted, power, steps = likelihood.predict(found), 1.0, 0
    now, slope = of(predicted), gradient(predicted)
    while n * (slope.max() - 1) > tolerance and steps < max_iterations:
        while True:
            after = found * (slope / slope.max()) ** power
            after /= after.sum()
            told = likelihood.predict(after)
            reached = of(told)
            if reached >= now or power == 1.0:
                break
            power = max(1.0, power / 4)
        found, predicted, now, steps, power = after, told, reached, steps + 1, 2 * power
        slope = gradient(predicted)
    gap = max(n * (float(slope.max()) - 1), 0.0)
    return found, Ascent(steps, gap, now, gap <= tolerance)


def of_signs(
    items: int,
    drawn: Floats | float,
    sums: Floats,
    contrast: float,
    means: Callable[[Floats], Floats],
    transposed: Callable[[Floats], Floats],
) -> Likelihood:
    """The likelihood of signs at random indices, of which the sums are known.

    A report of index j is + with probability (1 + contrast m_j) / 2, where m_j is the mean of the
    users' signs there.

    Parameters
    ----------
    items : int
        The number of items.
    drawn : numpy.ndarray of float64 or float
        How many reports drew each index; where sums alone are counted, how many are expected to.
        It is taken to be no less than the sum of the signs allows.
    sums : numpy.ndarray of float64
        Shape (indices,): of the reported signs.
    contrast : float
        The mean of a reported sign times the true one.
    means : callable
        From a distribution of the items, shape (items,), to m, shape (indices,).
    transposed : callable
        Its transpose: from shape (indices,) to shape (items,).

    Returns
    -------
    Likelihood
        The kinds are + at each index, then - at each.
    """
    times = np.maximum(drawn, np.abs(sums))

    def predict(frequencies: Floats) -> Floats:
        seen = contrast * means(frequencies)
        return np.concatenate([1 + seen, 1 - seen]) / 2

    def back(numbers: Floats) -> Floats:
        plus, minus = np.split(numbers, 2)
        result: Floats = (contrast * transposed(plus - minus) + numbers.sum()) / 2
        return result

    return Likelihood(items, np.concatenate([times + sums, times - sums]) / 2, predict, back)
