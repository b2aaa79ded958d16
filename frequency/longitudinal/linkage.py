"""Fingerprints: how many users are linked by their permanent reports, and at which error.

Users have a pseudonym for one period, and another for the next. An attacker sees all reports of a
user in the first period, and those of all n users in the second one, and names the pseudonym that
is the same user's. Values do not change: each user has one permanent report.

After unlimited days permanent reports are known, and nothing else tells users apart. If C others
have the user's report, the best attacker names the right one with the probability 1 / (1 + C), and
the mean of that over the users is the number of different reports over n. So *linked* are

    (1/n) E[number of different reports] = (1/n) sum over y of 1 - (1 - p_y)^n,

with p_y the share of users who are expected to have the permanent report y. Nor can more users be
linked if all of both periods are matched at once: every matching of equal reports is as probable.

After T days the permanent report has been sent at least once with the probability s = 1 - m^T, if m
is the chance that a day's report is a draw which says nothing of it. An attacker who is told which
reports these are knows the permanent report, or nothing, and links

    (1/n) (s sum over y of [1 - (1 - s p_y)^n + p_y ((1 - s p_y)^n - s^n (1 - p_y)^n)] + 1 - s):

with the report y the user is one of those who show it; if nobody does, one of those of whom nothing
is seen. Who is not told that links no more. Both are concave functions of each p_y (of the second
one: the second derivative of -(1 - s p)^n (1 - p) is below -2 n s (1 - s p)^(n-1), and that of
-p s^n (1 - p)^n at most 2 n s^n (1 - p)^(n-1), where s (1 - p) <= 1 - s p). All points of the
protocols here are alike, so that of all populations the even one, of all points, has the most
linked users: no population has more.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from frequency.algebra import directions, field_power, most_vectors
from frequency.core import Oracle
from frequency.longitudinal.memoised import Memoised
from frequency.oracles import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    AffineSelection,
    ProjectiveGeometry,
    SubsetSelection,
)
from mechdesign.base import (
    MUTED,
    Rational,
    aligned,
    brief,
    exact,
    look,
    mark_numbers,
    ordered,
    panel,
    whole,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_DAYS = 10**6  #: The most days of a period.

_SPARE = 4  # times as many points as there are items are tried, at most

_TOGETHER = 4  # so many accepted values are tried

#: The oracles that are compared, each with all parameters that are tried.
KINDS: tuple[type[Oracle], ...] = (
    *(GRR, HRR, SubsetSelection, OUE, SUE, OLH, AffineSelection, ProjectiveGeometry),
)


def linked_share(question: Any, n: int, days: int | None = None) -> float:
    """Return the share of n users whom an attacker links by their permanent reports, at most.

    Users have a pseudonym for one period and another for the next, and no value changes. The
    attacker sees the reports of one user in the first period and those of all n in the second one,
    and names the pseudonym that is the same user's: with at most this probability, whatever the
    attack and whatever the distribution of values.

    Parameters
    ----------
    question : Memoised or LongitudinalSystem
        Memoised oracles, or systems of `frequency.longitudinal.published`.
    n : int
        How many users there are, 1 to 10^12.
    days : int, optional
        The reports of each user in each period, 1 to 10^6; None: any number. It matters where a day
        tells nothing of the permanent report with some probability, ``question.missed``: the
        attacker is then one who is told on which days that was so.

    Returns
    -------
    float
        Rounded up. With any number of days, and if all points that the oracle has are items, the
        best attack attains it where all items are equally frequent, with OLH nearly: one of its
        functions is the same for all items. Beyond 8192 bits of a report it is 1.

    Raises
    ------
    ValueError
        A number out of its range.
    TypeError
        A protocol of which the permanent reports are not known.

    Examples
    --------
    >>> from frequency import GRR, SubsetSelection
    >>> for oracle in (GRR(64, "1/2"), SubsetSelection(64, "1/2")):
    ...     print(f"{linked_share(Memoised(oracle, total=1), 500):.3f}")
    0.128
    1.000
    """
    n = whole(n, "n", 1, 10**12, what="a number of users")
    if days is None:
        return question.fingerprints.linked(n)
    days = whole(days, "days", 1, LARGEST_DAYS, what="a number of days")
    return question.fingerprints.linked(n, question.missed, days)


@dataclass(frozen=True)
class LinkagePoint:
    """A protocol with its error and the share of users it lets be linked.

    Attributes
    ----------
    name : str
        Of its oracle or system, with the parameters that were chosen.
    question : Memoised or LongitudinalSystem
        Ready to use.
    error : float
        The standard error of a day's frequency of an item of the share 1/domain.
    linked : float
        See `linked_share`.
    bits : int
        The information in a report.
    """

    name: str
    question: Any = field(repr=False)
    error: float
    linked: float
    bits: int


@dataclass(frozen=True)
class LinkageCurve:
    """The trade-off of error and linkage: the result of `linkage_curve`; ``print`` shows it.

    Attributes
    ----------
    domain, n : int
        The numbers of items and of users.
    total, day : float, Fraction, int or str
        What the reports of all days, and of one, may lose.
    days : int or None
        The reports of each period; None: any number.
    points : tuple of LinkagePoint
        Those that no other one equals or beats in both, from the least linkage to the least error.
    others : tuple of LinkagePoint
        The other protocols, each beaten by one of the points.
    """

    domain: int
    total: float | Rational
    day: float | Rational
    n: int
    days: int | None
    points: tuple[LinkagePoint, ...]
    others: tuple[LinkagePoint, ...]

    def best(self, linked: float | Rational) -> LinkagePoint:
        """Return the most accurate protocol that links at most this share of the users.

        Parameters
        ----------
        linked : float, Fraction, int, str or Decimal
            Above 0, and at most 1.

        Returns
        -------
        LinkagePoint

        Raises
        ------
        ValueError
            There is none, or no such share.
        """
        most = checked_linked(linked)
        found = [point for point in self.points if point.linked <= most]
        if not found:
            first = self.points[0]
            raise ValueError(
                f"no protocol links at most {brief(most, 4)} of {self.n} users: the least is"
                f" {brief(first.linked, 4)}, of {first.name}"
            )
        return found[-1]

    def rows(self) -> list[dict[str, object]]:
        """Return a dictionary for each point and each other protocol, with the columns of `csv`."""
        least = self.points[-1].error
        return [
            {
                "protocol": point.name,
                "best": point in self.points,
                "linked": point.linked,
                "error": point.error,
                "variance over the least": (point.error / least) ** 2,
                "bits": point.bits,
            }
            for point in (*self.points, *self.others)
        ]

    def csv(self) -> str:
        """Return the table as comma-separated values."""
        text = io.StringIO(newline="")
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    @property
    def _question(self) -> str:
        days = "any number of" if self.days is None else str(self.days)
        return (
            f"{self.domain} items, {self.n} users, epsilon {self.day} of a day and {self.total} of"
            f" all; {days} days in each of two periods"
        )

    def __str__(self) -> str:
        rows = [["", "protocol", "linked", "error", "variance", "bits"]]
        for row in self.rows():
            variance = f"{row['variance over the least']:.3f}"
            cells = [f"{row['linked']:.3g}", f"{row['error']:.3g}", variance, str(row["bits"])]
            rows.append(["*" if row["best"] else " ", str(row["protocol"]), *cells])
        return "\n".join(
            [
                self._question,
                *aligned(rows),
                "* no other links fewer users with as small an error; variance: over the least",
            ]
        )

    def plot(self) -> Figure:
        """Draw error against linkage, on logarithmic axes: the curve, and who is above it.

        Returns
        -------
        matplotlib.figure.Figure
            A step for each point of the curve; the other protocols are dots above it.
        """
        figure, axes = panel("share of users linked, at most", "standard error of a frequency", 9.0)
        colour = look(0)["color"]
        linked = [point.linked for point in self.points]
        errors = [point.error for point in self.points]
        most = max(1.0, *(point.linked for point in self.others))
        axes.plot([*linked, most], [*errors, errors[-1]], drawstyle="steps-post", color=colour)
        axes.plot(linked, errors, "o", color=colour)
        highest = max(errors[0], *(point.error for point in self.others))
        axes.set(xscale="log", yscale="log", xlim=(linked[0] / 4, most * 1.8))
        span = highest / errors[-1]
        axes.set_ylim(errors[-1] / span**0.35 / 1.1, highest * span**0.3)
        for point in self.points:  # nothing is to the left of the curve, and below
            axes.annotate(
                point.name,
                (point.linked, point.error),
                xytext=(-4, -4),
                textcoords="offset points",
                ha="right",
                va="top",
                rotation=30,
                rotation_mode="anchor",
                fontsize=7,
                color=colour,
            )
        for together in _near_one_another(self.others):
            first = together[0]
            axes.plot(first.linked, first.error, "o", color=MUTED, markersize=4)
            axes.annotate(
                ", ".join(point.name for point in together),
                (first.linked, first.error),
                xytext=(0, 6),
                textcoords="offset points",
                ha="left",
                rotation=30,
                rotation_mode="anchor",
                fontsize=7,
                color=MUTED,
            )
        for axis in (axes.xaxis, axes.yaxis):
            mark_numbers(axis, logarithmic=True)
        axes.set_title(self._question, fontsize=9, loc="left")
        return figure


def _near_one_another(points: Iterable[LinkagePoint]) -> list[list[LinkagePoint]]:
    """Return points in groups that share a dot: no more than a twentieth apart in both numbers."""
    groups: list[list[LinkagePoint]] = []
    for point in points:
        for group in groups:
            first = group[0]
            apart = (point.linked / first.linked, point.error / first.error)
            if max(abs(math.log(ratio)) for ratio in apart) < 0.05:
                group.append(point)
                break
        else:
            groups.append([point])
    return groups


def linkage_curve(
    domain: int,
    total: float | Rational,
    day: float | Rational,
    n: int,
    days: int | None = None,
) -> LinkageCurve:
    """Return the most accurate protocol for every share of users that may be linked.

    Compared are memoised oracles, with all hyperplanes and blocks of `frequency.ProjectiveGeometry`
    and `frequency.AffineSelection` that have up to four times as many points as there are items,
    and the systems of `frequency.longitudinal.published`, dBitFlipPM with 1, 2, 4, .. bits. No
    protocol with unbiased estimates has fewer than ``domain`` permanent reports: their laws for the
    items are linearly independent.

    Parameters
    ----------
    domain : int
        The number of items, at least 2.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.
    n : int
        The number of users, 1 to 10^12.
    days : int, optional
        As of `linked_share`.

    Returns
    -------
    LinkageCurve

    Raises
    ------
    ValueError
        A number out of its range.

    Examples
    --------
    >>> curve = linkage_curve(64, 1, "1/2", 500)
    >>> [(point.name, round(point.linked, 3)) for point in curve.points][:2]
    [('GRR', 0.128), ('AffineSelection(8, 2, 1)', 0.144)]
    >>> curve.best("1/4").question.protocol
    AffineSelection(domain=64, epsilon='1/2', blocks=(3, 4, 1))
    """
    domain = whole(domain, "domain", 2)
    found = []
    for name, question in _candidates(domain, total, day):
        error = math.sqrt(question.protocol.variance(n, 1 / domain))
        bits = question.protocol.report_bits
        found.append(LinkagePoint(name, question, error, linked_share(question, n, days), bits))
    points: list[LinkagePoint] = []
    others: dict[str, LinkagePoint] = {}
    for point in ordered(
        found, lambda point: point.linked, lambda point: point.error, lambda point: point.bits
    ):
        # By more than rounding, or two that are the same would both be there
        if not points or point.error < points[-1].error * (1 - 1e-9):
            points.append(point)
        else:
            others.setdefault(point.name.partition("(")[0], point)
    on_it = {point.name.partition("(")[0] for point in points}
    rest = (point for name, point in others.items() if name not in on_it)
    return LinkageCurve(domain, total, day, n, days, tuple(points), tuple(rest))


def checked_linked(linked: float | Rational) -> float:
    """Return a share of users that may be linked; ValueError for what is none."""
    most = linked if isinstance(linked, float) else float(exact(linked, "linked"))
    if not 0 < most <= 1:
        raise ValueError(f"linked must be above 0 and at most 1, got {brief(most)}")
    return most


def with_parameters(
    kind: type[Oracle], domain: int, day: float | Rational
) -> Iterator[tuple[str, Oracle]]:
    """Yield the oracles of a class with all parameters that are tried, each under a name."""
    oracle = kind(domain, day)
    own: list[Any] = [oracle.parameters.get(name) for name in ("field", "dimension", "accepted")]
    if kind is ProjectiveGeometry:
        orders = dict.fromkeys([tuple(own[:2]), *_spaces(domain, 2, directions)])
        for order in orders:
            yield f"{kind.__name__}{order}", ProjectiveGeometry(domain, day, order)
    elif kind is AffineSelection:
        blocks = {tuple(own): None}
        for q, t in _spaces(domain, 1, lambda q, t: int(q**t)):
            prime = field_power(q) == (q, 1)
            sizes = range(1, _TOGETHER + 1)
            blocks |= {(q, t, k): None for k in sizes if k == 1 or (2 * k <= q and prime)}
        for each in blocks:
            yield f"{kind.__name__}{each}", AffineSelection(domain, day, each)
    elif kind is HRR:
        for coefficients in range(1, max(1, min(_TOGETHER, (domain - 1).bit_length())) + 1):
            yield f"{kind.__name__}({coefficients})", HRR(domain, day, coefficients)
    else:
        yield kind.__name__, oracle


def _spaces(
    domain: int, least_t: int, capacity: Callable[[int, int], int]
) -> Iterator[tuple[int, int]]:
    """Yield orders and dimensions with room for the items, and few points to spare."""
    limit = most_vectors(domain)
    most = _SPARE * domain
    for t in range(least_t, max(least_t, domain.bit_length()) + 1):
        q = max(2, int((domain / 2) ** (1 / t)))
        first = True
        while q**t <= limit and (first or (t > 1 and capacity(q, t) <= most)):
            if capacity(q, t) >= domain and field_power(q):
                first = False
                yield q, t
            q += 1


def _candidates(
    domain: int, total: float | Rational, day: float | Rational
) -> Iterator[tuple[str, Any]]:
    """Yield names and questions."""
    for kind in KINDS:
        for name, oracle in with_parameters(kind, domain, day):
            yield name, Memoised(oracle, total)
    published = import_module("frequency.longitudinal.published")  # which is for comparisons
    for name in ("LGRR", "LOSUE", "RAPPOR", "BiLOLOHA", "OLOLOHA"):
        yield name, getattr(published, name)(domain, total, day)
    asked = 1
    while asked < 2 * domain:
        question = published.DBitFlipPM(domain, day, min(asked, domain))
        yield f"DBitFlipPM({question.asked})", question
        asked *= 2
