"""Reports as vectors of zeros and ones, whose sums are an aggregate: for secure aggregation.

Users split such a vector, their measurement, into shares for two or more servers; the servers add
up the shares, and only the sums over all users are ever put together (Prio: Corrigan-Gibbs and
Boneh, NSDI 2017; Prio3 of the IETF's Verifiable Distributed Aggregation Functions). The vectors
here fit Prio3Histogram, Prio3SumVec and Prio3MultihotCountVec.

A measurement is what a report adds to the counts of an aggregate. Where that may be -1 there are
two numbers for a count, as these functions add up no negative ones: the count's own place has the
number of +1, and the numbers of -1 follow after all counts, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.exceptions import IncompatibleAggregate
from mechdesign.base.linear_algebra import Items
from mechdesign.base.numbers import checked_counts
from mechdesign.base.text import shown


class SignSum(NamedTuple):
    """Neighbouring counts that are sums of signs, each +1 or -1.

    Attributes
    ----------
    start, stop : int
        They are ``counts.flat[start:stop]``.
    each : int
        How many of them a report adds a sign to, all different.
    users : int or None
        The place of the count of the reports that do; None: all reports.
    """

    start: int
    stop: int
    each: int = 1
    users: int | None = None

    def within(self, start: int, users: int | None) -> SignSum:
        """The same, where the counts are a part of others.

        Parameters
        ----------
        start : int
            The part's first place.
        users : int or None
            The place of the count of the reports on the part; None: all reports.

        Returns
        -------
        SignSum
            With the places among all counts.
        """
        own = users if self.users is None else start + self.users
        return SignSum(start + self.start, start + self.stop, self.each, own)


def signed_places(sign_sums: Sequence[SignSum]) -> Items:
    """The places of all counts that are sums of signs, in order."""
    return np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.arange(s.start, s.stop) for s in sign_sums)]
    )


def split_signs(counts: npt.NDArray[np.int8], sign_sums: Sequence[SignSum]) -> npt.NDArray[np.int8]:
    """Measurements, from the counts of one report each.

    Shapes: `counts` (users, counts); returns (users, numbers of a measurement).
    """
    minus = counts[:, signed_places(sign_sums)] < 0
    return np.concatenate([counts > 0, minus], axis=1).astype(np.int8)


class DrawnSums(NamedTuple):
    """What the sums of measurements say.

    Attributes
    ----------
    counts : numpy.ndarray of int64
        Shape (counts,): those of the aggregate.
    drawn : numpy.ndarray of int64
        The same as if every sign had been +1: how many reports each count is of.
    """

    counts: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.int64]


def joined_signs(sums: Any, n: int, size: int, sign_sums: Sequence[SignSum]) -> DrawnSums:
    """The counts of n reports, from the sums of their measurements."""
    places = signed_places(sign_sums)
    # Not asarray: that makes floats of integers of which some are 2^63 and more
    exact = sums if isinstance(sums, np.ndarray) else np.array(sums, dtype=object)
    told = checked_counts(exact, n, _not_a_sum)
    if told.shape != (size + len(places),):
        raise IncompatibleAggregate(
            f"expected {size + len(places)} sums, of the measurements of this protocol, got shape"
            f" {told.shape}"
        )
    plus, minus = told[:size], np.zeros(size, dtype=np.int64)
    minus[places] = told[size:]
    if (minus > n - plus).any():  # by difference, as their sum may not fit
        raise IncompatibleAggregate(f"no {n} reports have these sums: more signs than reports")
    drawn = plus + minus
    for part in sign_sums:
        users = n if part.users is None else int(plus[part.users])
        signs = int(drawn[part.start : part.stop].sum(dtype=object))
        if signs != part.each * users:
            raise IncompatibleAggregate(
                f"no {n} reports have these sums: {users} have {part.each * users} signs among"
                f" counts {part.start} .. {part.stop - 1}, not {signs}"
            )
    return DrawnSums(plus - minus, drawn)


def _not_a_sum(place: Any, value: object, n: int) -> IncompatibleAggregate:
    return IncompatibleAggregate(
        f"sums[{place}] = {shown(value)} is not an integer 0 .. {n}, as of {n} reports"
    )
