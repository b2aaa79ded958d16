"""Reports on many days, made of permanent reports that users keep: what all of them tell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import Rational, whole
from mechdesign.privacy import exact_epsilon

LARGEST_PERMANENT = 10**6
"""The most permanent reports of one user."""


@dataclass(frozen=True)
class DailyReports:
    """Reports of any number of days, all made of a few permanent ones: a cost for a `Ledger`.

    A device draws a permanent report for each value that it has, and again whenever it begins anew,
    as it does after its state was lost. Two users whose values change on the same days, and whose
    devices begin anew on the same days, are told apart by as many permanent reports as there are,
    at most, each of which costs ``total``. That a value has changed, and when, is not bounded.

    Parameters
    ----------
    total : float, Fraction, int, str or Decimal
        What a permanent report, and with it all reports made of it, tells about a value at most:
        above 0.
    values : int, default 1
        How many values a user may have from one start to the next, at least 1. What keeps them so
        few is the device.
    starts : int, default 1
        How often a user's device may begin, at least 1. What keeps them so few is whoever counts
        them: see ``docs/longitudinal.md``.

    Raises
    ------
    ValueError
        A number out of its range, or more than 10^6 permanent reports.

    >>> DailyReports("1/2", values=3, starts=2).epsilon
    Fraction(3, 1)
    """

    total: float | Rational
    values: int = 1
    starts: int = 1

    def __post_init__(self) -> None:
        total = exact_epsilon(self.total)
        if total == 0:
            raise ValueError("total must be above 0: a permanent report tells something")
        values, starts = (
            whole(getattr(self, name), name, 1, LARGEST_PERMANENT) for name in ("values", "starts")
        )
        whole(values * starts, "values times starts", 1, LARGEST_PERMANENT)
        set_fields(self, total=total, values=values, starts=starts)

    @property
    def permanent(self) -> int:
        """How many permanent reports a user draws at most."""
        return self.values * self.starts

    @property
    def epsilon(self) -> Fraction:
        """What the reports of all days together tell about a user's values, exact."""
        return Fraction(exact_epsilon(self.total) * self.permanent)
