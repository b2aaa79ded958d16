"""Estimates from several days of memoised reports: their errors do not average out.

A user's reports of two days are both the permanent one with the probability kept^2, and otherwise
independent. So their contributions s to the estimate of an item have the covariance kept^2 Var(s),
with the variance under the law of the permanent report, if the value is the same on both days, and
0 if it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.answer import Answer, normal_quantile
from frequency.core.oracle import PureOracle, variance_of
from frequency.core.public_coins import PublicCoinChannel
from frequency.exceptions import UnknownVariance
from frequency.longitudinal.memoised import Memoised
from mechdesign._support.arrays import Floats
from mechdesign._support.text import shown


def _covariances(question: Memoised) -> tuple[Fraction, Fraction]:
    """Of the contributions of a user's two reports to the estimate of an item.

    The first is for a user who has the item on both days, the second for one who has another.
    """
    oracle = question.protocol
    if not isinstance(oracle, PureOracle) or not isinstance(oracle, PublicCoinChannel):
        raise UnknownVariance(
            "covariances between days are known for oracles whose reports support items, such as"
            f" frequency.SubsetSelection, not for {type(oracle).__name__}"
        )
    p, q = oracle.p, oracle.q
    blank = p / oracle.low_and_high[1]  # the probability that a report without an item supports it
    # The permanent report supports the item with these probabilities
    own, other = (blank + (chance - blank) / question.kept for chance in (p, q))
    scale = (question.kept / (p - q)) ** 2
    return scale * own * (1 - own), scale * other * (1 - other)


def day_covariance(question: Memoised, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
    """The covariance of an item's estimates of two days, from users whose values stay the same.

    Parameters
    ----------
    question : Memoised
        Of an oracle whose reports support items: all but `HRR`, `Tabular` and those that hash
        items publicly.
    n : int
        The number of users, at least 1.
    frequency : array_like, default 0.0
        The fraction of the users with the item, 0 to 1; a number or an array.

    Returns
    -------
    float or numpy.ndarray
        Shaped like ``frequency``: squared fractions of the population, at most the variance of
        a day, ``question.protocol.variance(n, frequency)``.

    Raises
    ------
    UnknownVariance
        Of another protocol.
    ValueError
        ``n`` is no number of users.
    """
    own, other = map(float, _covariances(question))
    return variance_of(n, other + (own - other) * np.asarray(frequency, dtype=np.float64))


def mean_of_days(question: Memoised, aggregates: Sequence[Aggregate]) -> Answer:
    """The mean of the frequencies of some days, on each of which the same users report.

    Parameters
    ----------
    question : Memoised
        As for `day_covariance`.
    aggregates : sequence of Aggregate
        One for each day, at least one, each of the reports of all users.

    Returns
    -------
    Answer
        Shape (domain,): the mean frequency of each item. If no value changes, the variance is
        an unbiased estimate, cut at 0; if some do, it is too large on average.

    Raises
    ------
    UnknownVariance
        Of another protocol than `day_covariance` takes.
    ValueError
        No days, or numbers of users that are not the same on all days.
    IncompatibleAggregate
        An aggregate of another protocol.
    """
    _covariances(question)  # may not be known
    estimates = [question.protocol.estimate(aggregate) for aggregate in aggregates]
    users = sorted({estimate.n for estimate in estimates})
    if len(users) != 1 or not users[0]:
        raise ValueError(f"the same users must report on each of the days, got {shown(users)}")
    (n,), days = users, len(estimates)
    mean = np.mean([estimate.frequencies for estimate in estimates], axis=0)
    day, between = question.protocol.variance(n, mean), day_covariance(question, n, mean)
    return Answer(mean, np.maximum(day + (days - 1) * between, 0.0) / days)


def _change_variance(
    question: Memoised, n: tuple[int, int], before: Floats, after: Floats, stayed: float
) -> Floats:
    """At most; unbiased if all users stay, or none."""
    if not 0 <= stayed <= 1:
        raise ValueError(f"stayed must be a fraction of the users, 0 to 1, got {shown(stayed)}")
    own, other = map(float, _covariances(question))
    if stayed == 1:  # frequencies are the same
        common = other + (own - other) * (before + after) / 2
    else:
        # Of those who stay some have the item: all of them but those who have another one on
        # either day, at least, and no more than have it on both
        least = np.clip(stayed - 1 + np.maximum(before, after), 0.0, stayed)
        most = np.clip(np.minimum(before, after), 0.0, stayed)
        common = other * stayed + np.minimum((own - other) * least, (own - other) * most)
    oracle, (first, second) = question.protocol, n
    both = oracle.variance(first, before) + oracle.variance(second, after)
    result: Floats = np.maximum(both - 2 * common / first, 0.0)
    return result


def change_of_days(
    question: Memoised, before: Aggregate, after: Aggregate, stayed: float = 0.0
) -> Answer:
    """How much the frequencies have changed from one day to another, with intervals.

    Parameters
    ----------
    question : Memoised
        As for `day_covariance`.
    before, after : Aggregate
        Of the reports of two days.
    stayed : float, default 0.0
        The fraction of the users of whom it is known, or assumed, that their values are the same
        on both days, 0 to 1. Their permanent reports cancel: the more there are, the less the
        error. With 0 intervals hold in any case, also where others report on the second day.

    Returns
    -------
    Answer
        Shape (domain,): the frequencies after less those before. The variance is that of at least
        so many users who stay.

    Raises
    ------
    UnknownVariance
        Of another protocol than `day_covariance` takes.
    ValueError
        No fraction, no users, or another number of them on the other day where some stay.
    IncompatibleAggregate
        An aggregate of another protocol.
    """
    _covariances(question)  # may not be known
    first, second = map(question.protocol.estimate, (before, after))
    n = (first.n, second.n)
    if not min(n) or (stayed and n[0] != n[1]):
        raise ValueError(f"the same users must report on both days, got {n[0]} and {n[1]}")
    told, now = first.frequencies, second.frequencies
    return Answer(now - told, _change_variance(question, n, told, now, stayed))


def least_change(
    question: Memoised,
    n: int,
    frequency: float = 0.0,
    stayed: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.8,
) -> float:
    """How large a change of an item's frequency is found.

    Parameters
    ----------
    question : Memoised
        As for `day_covariance`.
    n : int
        The number of users, at least 1.
    frequency : float, default 0.0
        Of the item, about, on both days.
    stayed : float, default 0.0
        As for `change_of_days`.
    confidence : float, default 0.95
        Of the interval that must not contain 0, strictly between 0 and 1.
    power : float, default 0.8
        The probability with which it does not, at least 1/2 and less than 1.

    Returns
    -------
    float
        A fraction of the population.

    Raises
    ------
    UnknownVariance
        Of another protocol than `day_covariance` takes.
    ValueError
        A number out of its range.
    """
    if not 0.5 <= power < 1:
        raise ValueError(f"power must be at least 1/2 and less than 1, got {shown(power)}")
    missed = normal_quantile(2 * power - 1) if power > 0.5 else 0.0
    held = np.asarray(frequency, dtype=np.float64)
    variance = _change_variance(question, (n, n), held, held, stayed)
    return float((normal_quantile(confidence) + missed) * np.sqrt(variance))
