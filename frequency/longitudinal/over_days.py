"""Estimates from several days of memoised reports: their errors do not average out.

A user's reports of two days are both the permanent one with the probability kept^2, and otherwise
independent. So their contributions s to the estimate of an item have the covariance kept^2 Var(s),
with the variance under the law of the permanent report, if the value is the same on both days, and
0 if it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core import (
    Aggregate,
    Answer,
    EnumeratedOracle,
    Oracle,
    checked_users,
    normal_quantile,
    variance_of,
)
from frequency.exceptions import InvalidValue, UnknownVariance
from frequency.longitudinal.memoised import Memoised
from mechdesign.base import Floats, checked_counts, shown

# ------------------------------------------------------------------------------------------------
# What all reports of a user together tell of the values of all days, by enumeration.


MOST_OUTCOMES = 1 << 16  #: So many sequences of reports at most are enumerated.


def sequence_ratio(
    question: Memoised, first: Sequence[int], second: Sequence[int]
) -> Fraction | float:
    """Return a bound on how far apart all days' reports are under two sequences of values.

    If every two days have the same value in the one sequence where they have in the other, with k
    different values, it is at most the k-th power of ``question.audit().ratio``, for any number of
    days: each of k permanent reports is about one value or the other. If not, there is no such
    bound: that a report comes back shows that the value has not changed.

    Parameters
    ----------
    question : Memoised
        Of an oracle whose reports can be listed, such as `frequency.Tabular`.
    first, second : sequence of int
        The items of a user on each day, as many in both, at least one.

    Returns
    -------
    Fraction or float
        The largest ratio of the probabilities of the same reports, in either direction;
        ``math.inf`` where one sequence alone can give some, as only permanent ones are sent.

    Raises
    ------
    InvalidValue
        Names the first bad item.
    ValueError
        Sequences of different lengths, or more than 2^16 sequences of reports.
    TypeError
        Another protocol.
    """
    oracle = question.protocol
    if not isinstance(oracle, EnumeratedOracle):
        raise TypeError(
            "reports are enumerated for oracles that list them, such as frequency.Tabular, got"
            f" {type(oracle).__name__}"
        )
    days = [checked_counts(items, oracle.domain - 1, InvalidValue) for items in (first, second)]
    if days[0].ndim != 1 or days[0].shape != days[1].shape or not len(days[0]):
        raise ValueError(
            "the sequences must have as many days, at least one, got shapes"
            f" {days[0].shape} and {days[1].shape}"
        )
    kinds = [kind for kind, row in enumerate(oracle.law.weights) if any(row)]
    if len(kinds) ** len(days[0]) > MOST_OUTCOMES:
        raise ValueError(
            f"at most {MOST_OUTCOMES} sequences of reports are enumerated, here are {len(kinds)} to"
            f" the power of {len(days[0])}"
        )
    laws = [_law_of(question, oracle, kinds, tuple(items.tolist())) for items in days]
    pairs = [sorted(chances) for chances in zip(*laws, strict=True) if any(chances)]
    if not all(least for least, _ in pairs):
        return inf
    return max(most / least for least, most in pairs)


def _law_of(
    question: Memoised, oracle: EnumeratedOracle, kinds: list[int], values: tuple[int, ...]
) -> list[Fraction]:
    """The probabilities of all sequences of reports, in the order of `itertools.product`."""
    table, reports = oracle.law.table, oracle.reports_of(np.array(kinds))
    likelihoods = [likelihood for kind in oracle.likelihoods for likelihood in kind]
    blank: list[Fraction] = []
    permanent: dict[int, list[Fraction]] = {}
    for value in dict.fromkeys(values):
        places = oracle.likelihood(reports, np.full(len(kinds), value)).tolist()
        blank = [
            table[kind][value] / likelihoods[place]
            for kind, place in zip(kinds, places, strict=True)
        ]
        permanent[value] = [
            chance * question.stretched(likelihoods[place])
            for chance, place in zip(blank, places, strict=True)
        ]
    days = {value: [day for day, item in enumerate(values) if item == value] for value in permanent}

    @cache
    def of_value(value: int, sent: tuple[int, ...]) -> Fraction:
        """Return the probability of the reports on the days of one value, in any order."""
        fresh = [(1 - question.kept) * blank[report] for report in sent]
        return sum(
            (
                chance
                * prod(
                    other + question.kept * (report == kept)
                    for report, other in zip(sent, fresh, strict=True)
                )
                for kept, chance in enumerate(permanent[value])
            ),
            Fraction(0),
        )

    return [
        prod(
            (
                of_value(value, tuple(sorted(sent[day] for day in mine)))
                for value, mine in days.items()
            ),
            start=Fraction(1),
        )
        for sent in product(range(len(kinds)), repeat=len(values))
    ]


def _covariances(question: Memoised) -> tuple[Fraction, Fraction]:
    """Return the covariances of a user's reports of two days in the estimate of an item.

    The first is for a user who has the item on both days, the second for one who has another.
    """
    oracle = question.protocol
    if not isinstance(oracle, Oracle) or oracle.support is None:
        raise UnknownVariance(
            "covariances between days are known for oracles whose reports support items, such as"
            f" frequency.SubsetSelection, not for {type(oracle).__name__}"
        )
    p, q = oracle.support
    blank = p / oracle.low_and_high[1]  # the probability that a report without an item supports it
    # The permanent report supports the item with these probabilities
    holder, other = (blank + (chance - blank) / question.kept for chance in (p, q))
    scale = (question.kept / (p - q)) ** 2
    return scale * holder * (1 - holder), scale * other * (1 - other)


def day_covariance(question: Memoised, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
    """The covariance of an item's estimates of two days, from users whose values stay the same.

    Parameters
    ----------
    question : Memoised
        Of an oracle whose reports support items: not `HRR`, `Tabular` or one that hashes publicly.
    n : int
        The number of users, at least 1.
    frequency : array_like, default 0.0
        The fraction of the users with the item, 0 to 1.

    Returns
    -------
    float or numpy.ndarray
        Shaped like ``frequency``: squared fractions of the population, at most the variance of a
        day, ``question.protocol.variance(n, frequency)``.

    Raises
    ------
    UnknownVariance
        Of another protocol.
    ValueError
        ``n`` is no number of users.
    """
    holder, other = map(float, _covariances(question))
    return variance_of(n, other + (holder - other) * np.asarray(frequency, dtype=np.float64))


def mean_of_days(
    question: Memoised, aggregates: Sequence[Aggregate], shared: npt.ArrayLike | None = None
) -> Answer:
    """The mean over some days of the frequencies among those who report.

    Parameters
    ----------
    question : Memoised
        As for `day_covariance`.
    aggregates : sequence of Aggregate
        One for each day, at least one.
    shared : array_like, optional
        Shape (days, days), integers: how many users report on both of two days, where some arrive,
        leave, or miss days. None: the same users report on all days.

    Returns
    -------
    Answer
        Shape (domain,): the mean frequency of each item, all days alike. If no value changes, the
        variance is an unbiased estimate, cut at 0; if some do, it is too large on average. Those
        who report on two days are taken to have the item as often as all.

    Raises
    ------
    UnknownVariance
        Of another protocol than `day_covariance` takes.
    ValueError
        No days; or numbers of users that differ between days, or do not go with ``shared``.
    IncompatibleAggregate
        An aggregate of another protocol.
    """
    holder, other = map(float, _covariances(question))  # may not be known
    estimates = [question.protocol.estimate(aggregate) for aggregate in aggregates]
    users = np.array([estimate.n for estimate in estimates], dtype=np.int64)
    if not len(users) or not users.all() or (shared is None and len(set(users.tolist())) > 1):
        raise ValueError(
            "the same users must report on each of the days, or shared must say how many report on"
            f" both of two; got {shown(users.tolist())} users"
        )
    both = np.minimum(users, users[:, None]) if shared is None else _shared_users(shared, users)
    mean = np.mean([estimate.frequencies for estimate in estimates], axis=0)
    pairs = both / np.multiply.outer(users, users).astype(np.float64)
    between = (pairs.sum() - np.trace(pairs)) * (other + (holder - other) * mean)
    each = sum(question.protocol.variance(n, mean) for n in users.tolist())
    return Answer(mean, np.maximum(each + between, 0.0) / len(users) ** 2)


def _shared_users(shared: npt.ArrayLike, users: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    table = np.asarray(shared)
    if (
        table.dtype.kind not in "iu"
        or table.shape != (len(users), len(users))
        or (table != table.T).any()
        or (table < 0).any()
        or (table > np.minimum(users, users[:, None])).any()
        or (np.diagonal(table) != users).any()
    ):
        raise ValueError(
            f"shared must be a symmetric table of {len(users)} days, the users of each day on its"
            " diagonal, and no more of them on two days than on either"
        )
    return table.astype(np.int64)


def _change_variance(
    question: Memoised, n: tuple[int, int], before: Floats, after: Floats, stayed: float
) -> Floats:
    """At most; unbiased if all users stay, or none."""
    oracle, (first, second) = question.protocol, map(checked_users, n)
    if not 0 <= stayed <= min(1, second / first):
        raise ValueError(
            f"stayed must be a fraction of the {first} users of the first day, no more than"
            f" report on the second, {second}; got {shown(stayed)}"
        )
    holder, other = map(float, _covariances(question))
    # Of the users of the first day
    then, now = before, after * (second / first)
    if stayed == 1 and first == second:  # frequencies are the same
        common = other + (holder - other) * (before + after) / 2
    else:
        # Of those who stay some have the item: all of them but those who leave or change, at
        # least, and no more than have it on both days
        left, arrived = 1 - stayed, second / first - stayed
        least = np.clip(np.maximum(then - left, now - arrived), 0.0, stayed)
        most = np.clip(np.minimum(then, now), 0.0, stayed)
        common = other * stayed + np.minimum((holder - other) * least, (holder - other) * most)
    both = oracle.variance(first, before) + oracle.variance(second, after)
    return np.maximum(both - 2 * common / second, 0.0)


def change_of_days(
    question: Memoised, before: Aggregate, after: Aggregate, stayed: float = 0.0
) -> Answer:
    """Return the change of the frequencies from one day to another, with intervals.

    Users may arrive and leave: each day's frequencies are those among its users.

    Parameters
    ----------
    question : Memoised
        As for `day_covariance`.
    before, after : Aggregate
        Of the reports of two days.
    stayed : float, default 0.0
        The fraction of the first day's users of whom it is known, or assumed, that they report on
        both days, with the same value, 0 to 1. Their permanent reports cancel: the more there are,
        the less the error. With 0 intervals hold in any case.

    Returns
    -------
    Answer
        Shape (domain,): the frequencies after less those before, with the variance for ``stayed``.

    Raises
    ------
    UnknownVariance
        Of another protocol than `day_covariance` takes.
    ValueError
        No fraction, more than there are users on the second day, or no users on a day.
    IncompatibleAggregate
        An aggregate of another protocol.
    """
    _covariances(question)  # may not be known
    first, second = map(question.protocol.estimate, (before, after))
    n = (first.n, second.n)
    if not min(n):
        raise ValueError(f"users must report on both days, got {n[0]} and {n[1]}")
    past, now = first.frequencies, second.frequencies
    return Answer(now - past, _change_variance(question, n, past, now, stayed))


def least_change(
    question: Memoised,
    n: int,
    frequency: float = 0.0,
    stayed: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.8,
) -> float:
    """Return the least change of an item's frequency that is found.

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
    share = np.asarray(frequency, dtype=np.float64)
    variance = _change_variance(question, (n, n), share, share, stayed)
    return float((normal_quantile(confidence) + missed) * np.sqrt(variance))
