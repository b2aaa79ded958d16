"""What all reports of a user together tell of the values of all days, by enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf, prod

import numpy as np

from frequency.core.enumerated_oracle import EnumeratedOracle
from frequency.exceptions import InvalidValue
from frequency.longitudinal.memoised import Memoised
from mechdesign.base.numbers import checked_counts

MOST_OUTCOMES = 1 << 16
"""So many sequences of reports at most are enumerated."""


def sequence_ratio(
    question: Memoised, first: Sequence[int], second: Sequence[int]
) -> Fraction | float:
    """How far apart the reports of all days are under two sequences of values, at most.

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
        ``math.inf`` where only one of the sequences can give some reports, as permanent ones alone
        are sent.

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
    told, reports = oracle.law.table, oracle.reports_of(np.array(kinds))
    likelihoods = [likelihood for kind in oracle.likelihoods for likelihood in kind]
    blank: list[Fraction] = []
    permanent: dict[int, list[Fraction]] = {}
    for value in dict.fromkeys(values):
        own = oracle.likelihood(reports, np.full(len(kinds), value)).tolist()
        blank = [
            told[kind][value] / likelihoods[place] for kind, place in zip(kinds, own, strict=True)
        ]
        permanent[value] = [
            chance * question.stretched(likelihoods[place])
            for chance, place in zip(blank, own, strict=True)
        ]
    days = {value: [day for day, held in enumerate(values) if held == value] for value in permanent}

    @cache
    def of_value(value: int, sent: tuple[int, ...]) -> Fraction:
        """Of the reports on the days of one value, in any order."""
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
