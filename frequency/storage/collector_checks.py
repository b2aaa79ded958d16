"""Manipulation checks of collectors, by comparing the reports of each with those of the others.

Whoever sends reports, or counts them for others, can lie within the format. Three defences need no
trust: impossible reports are refused and tallied (`Channel.aggregate`); the tallies stand next to
each other, collector by collector; and `check_collectors` makes two chi-square tests of each one's
counts:

- **Public draws.** Which part of the question a user reports on, with which hash function, or
  whether public coins keep the report, does not depend on the user's item, and its distribution is
  known. Counts that show it are compared with what the protocol says. No population explains a
  difference: these reports were not drawn by the protocol's clients.
- **The rest.** The counts are compared with those of all other collectors together. Both are sums
  over independent reports. If their users are random samples of one population, the difference D of
  the means has the covariance C (1/n + 1/m), C that of one report, estimated from all n + m; then
  D' C^-1 D / (1/n + 1/m) is about chi-square distributed.

C is diag(d) - u u', but for what maps D to 0, so that inverting it takes a line. With the mean r of
a report:

==========================================  ========================  ============  ===============
counts                                      d                         u             freedom
==========================================  ========================  ============  ===============
kinds of reports (`cells`)                  r                         r             K - 1: Pearson's
signs of K indices, each drawn with         t                         r             K
probability t (`signs`)
bits, 1 with probability q, or p for the    r (1 - r) + u^2           r - q         K
user's item, independently (`bits`)
sets of a fixed size; several signs of HRR  see `samples` of          affine in r   K - 1
(`Sample.fixed`)                            `SubsetSelection`, `HRR`
==========================================  ========================  ============  ===============

The parts of a mixture, and the reports of each hash function, are samples of their own, given how
many reports each has: chi-squares and degrees of freedom add up. The marginals that `InpEM` counts
overlap: there the least p-value counts, times their number.

What is approximate: cells with fewer than `LEAST` reports expected are summed up, the rarest first,
until they have as many. If cells are many against the reports, and in the channels of
`SuccinctHistogram`, their correlations are left out. For collectors of hundreds of reports and more
no departure from the stated false alarm rate was seen; with some tens of reports small p-values
came up to twice as often. From `MANY` degrees of freedom on tests are two-sided: counts that are
*too much* like the others', or like the expected ones, were copied or made up, not drawn.

What it cannot do
-----------------
- A flag is a question, not a verdict. Collectors whose users differ, by
  region or by the hour, are unlike the rest without any manipulation. Only differences in public
  draws have no such explanation.
- Someone who knows the protocol can draw reports of made-up users as frequent as the rest's, or
  shift a frequency by less than the noise. Of ten collectors with 10^5 reports each, 64 items of
  Zipf's law and epsilon = 1, one that makes up a share of its reports, for one rare item, is
  flagged in at most one of ten cases below the first share, and at least nine of ten above the
  second: GRR 0.2 % and 0.5 %, HRR 1.5 % and 4 %, OLH 1 % and 2.5 %. Its own estimate of that item
  is then off by 0.08 to 0.19 (GRR), 0.03 to 0.09 (HRR and OLH); that of all collectors by a tenth
  of it. A test of one item, chosen beforehand, sees less.
- The rest is taken to be right. A large manipulated collector makes the others unlike
  *it*: look into the least p-value first, and check again without it. Of two collectors both are
  unlike the rest, or none. If most collude, the honest ones are flagged.
- Collectors of some tens of reports are hardly tested, and one that is alone only for its public
  draws.
- Collectors are tested, not reports: nothing says which are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import Aggregate, Sample, channel_of
from mechdesign.base import Floats, aligned, shown

if TYPE_CHECKING:
    from frequency.storage.collection import Collected


#: How many reports a cell must be expected to have in the smaller sample: fewer are not nearly
#: normal.
LEAST = 10.0

MANY = 20  #: Degrees of freedom from which a chi-square can be too small.


# ------------------------------------------------------------------------------------ chi-squares


class ChiSquareStatistic(NamedTuple):
    """A chi-square, at least 0, and its degrees of freedom; 0 if there was nothing to test."""

    value: float = 0.0
    freedom: int = 0

    @property
    def p(self) -> float:
        """The p-value; NaN if there was nothing to test."""
        if not self.freedom:
            return float("nan")
        # The probability of a value as large, or from `MANY` degrees of freedom on as far out on
        # either side
        above = float(scipy.special.chdtrc(self.freedom, self.value))
        below = 1.0 if self.freedom < MANY else float(scipy.special.chdtr(self.freedom, self.value))
        return min(1.0, 2 * min(above, below)) if self.freedom >= MANY else above


def _added(values: Sequence[ChiSquareStatistic]) -> ChiSquareStatistic:
    return ChiSquareStatistic(
        sum(value.value for value in values), sum(value.freedom for value in values)
    )


def _groups(expected: Floats) -> npt.NDArray[np.int64]:
    """The group of each cell: each is expected to have `LEAST` reports, or is the only one."""
    small = np.flatnonzero(expected < LEAST)
    group = np.zeros(len(expected), dtype=np.int64)
    large = np.flatnonzero(expected >= LEAST)
    group[large] = np.arange(len(large))
    if len(small):
        # Equally rare ones in a fixed disorder: neighbours have often opposite signs, which would
        # cancel.
        order = small[
            np.lexsort((np.random.default_rng(0).permutation(len(small)), expected[small]))
        ]
        total = np.cumsum(expected[order])
        place = np.minimum(total // (2 * LEAST), max(total[-1] // (2 * LEAST) - 1, 0)).astype(
            np.int64
        )
        # Too few for a group: they join the rarest of the others
        if total[-1] < LEAST and len(large):
            group[order] = group[large[np.argmin(expected[large])]]
        else:
            group[order] = len(large) + place
    return group


def _summed(values: Floats, group: npt.NDArray[np.int64]) -> Floats:
    return np.bincount(group, values).astype(np.float64)


def _chi_square(gap: Floats, pool: Sample, scale: float, least: float) -> ChiSquareStatistic:
    """The chi-square of the difference ``gap`` of two means, of ``least`` reports and more."""
    spread, common, sizes = pool.spread, pool.common, None
    if least * spread.min() < LEAST:
        group = _groups(least * spread)
        gap, spread = _summed(gap, group), _summed(spread, group)
        common = None if common is None else _summed(common, group)
        sizes = np.bincount(group).astype(np.float64)
        if least * spread.min() < LEAST:
            return ChiSquareStatistic()
    number = len(gap)
    # Its covariance is `scale` times that of a report of the pool
    value, freedom = float((gap**2 / spread).sum()), number - pool.fixed
    if common is None:
        return ChiSquareStatistic(value / scale, freedom)
    if pool.fixed:
        # The covariance maps 1 to 0: only what is orthogonal to 1 matters, and `common` may be
        # shifted along 1.
        ones = np.ones(number) if sizes is None else sizes
        weight = float((ones**2 / spread).sum())
        common = common - ones * float((ones * common / spread).sum()) / weight
        value -= float((ones * gap / spread).sum()) ** 2 / weight
    if number > pool.n / 10:  # it is mostly noise: only what it takes off each cell's own variance
        return ChiSquareStatistic(float((gap**2 / (spread - common**2)).sum()) / scale, freedom)
    length = float((common**2 / spread).sum())
    if length > number / pool.n:
        # Less its own noise
        along, lost = float((common * gap / spread).sum()) ** 2 / length, length - number / pool.n
        if least * (1 - lost) >= LEAST:
            value += along * lost / (1 - lost)
        else:  # nearly constant in this direction: too few reports differ to be normal
            value, freedom = value - along, freedom - 1
    return ChiSquareStatistic(value / scale, max(freedom, 0))


def _against_known(sample: Sample) -> ChiSquareStatistic:
    if not sample.n:
        return ChiSquareStatistic()
    return _chi_square(sample.sums / sample.n - sample.spread, sample, 1 / sample.n, sample.n)


def _against_rest(sample: Sample, pool: Sample) -> ChiSquareStatistic:
    n, rest = sample.n, pool.n - sample.n
    if not n or not rest:
        return ChiSquareStatistic()
    gap = sample.sums / n - (pool.sums - sample.sums) / rest
    return _chi_square(gap, pool, 1 / n + 1 / rest, min(n, rest))


# ------------------------------------------------------------------------------------- collectors


class Check(NamedTuple):
    """A test of one collector."""

    chi_square: ChiSquareStatistic  #: Of several views that of the least p-value
    p: float  #: Of this test alone, NaN if there was nothing to test
    adjusted: float  #: With all tests together taken into account (Holm 1979)


class CollectorResult(NamedTuple):
    """The reports of one collector, and their tests."""

    collector: str
    reports: int  #: How many were counted.
    share: float  #: Of all reports, 0 to 1.
    #: Not counted, impossible or malformed; 0 for an `Aggregate`, which does not know
    left_out: int
    rest: Check  #: The comparison with all other collectors
    draws: Check  #: That of the public draws with the protocol


@dataclass(frozen=True)
class CollectorChecks:
    """Collectors side by side; ``print(checks)`` shows the table.

    Attributes
    ----------
    collectors : tuple of CollectorResult
        In the order given.
    level : float
        The probability that any collector is flagged if all are honest and their users random
        samples of one population.
    """

    collectors: tuple[CollectorResult, ...]
    level: float

    def verdict(self, item: CollectorResult) -> str:
        """The verdict: "not drawn as the protocol says", "unlike the rest", or nothing."""
        if item.draws.adjusted <= self.level:
            return "not drawn as the protocol says"
        return "unlike the rest" if item.rest.adjusted <= self.level else ""

    @property
    def flagged(self) -> tuple[str, ...]:
        """The names of the collectors to ask about."""
        return tuple(item.collector for item in self.collectors if self.verdict(item))

    def rows(self) -> list[list[str]]:
        """The table, its head first. p-values are adjusted; "-" where there was nothing to test."""
        head = ["collector", "reports", "share", "left out", "p: rest", "p: draws", "verdict"]
        return [
            head,
            *(
                [
                    item.collector,
                    str(item.reports),
                    f"{item.share:.1%}",
                    str(item.left_out),
                    *(
                        "-" if np.isnan(check.p) else f"{check.adjusted:.2g}"
                        for check in (item.rest, item.draws)
                    ),
                    self.verdict(item),
                ]
                for item in self.collectors
            ),
        ]

    def __str__(self) -> str:
        note = (
            f"flags among honest collectors of one population: in {self.level:.3g} of all"
            " such checks"
        )
        return "\n".join([*aligned(self.rows()), note])


def check_collectors(
    protocol: Any, collectors: Mapping[str, Aggregate | Collected], level: float = 1e-3
) -> CollectorChecks:
    """Compare collectors with each other, and their public draws with the protocol.

    The module's docstring says what this tells, and what not.

    Parameters
    ----------
    protocol : Channel or Protocol
        What the reports are of.
    collectors : mapping of str to Aggregate or Collected
        What each has brought; `frequency.storage.aggregate_files` returns what its files have.
    level : float, default 0.001
        The probability of a false alarm, for all tests together, strictly between 0 and 1.

    Returns
    -------
    CollectorChecks
        The tests of each collector, in the order given.

    Raises
    ------
    IncompatibleAggregate
        One is of another protocol.
    TypeError
        It is no protocol, or of a channel that does not say how its counts vary.

    Examples
    --------
    >>> import numpy as np
    >>> from frequency import OLH
    >>> oracle, rng = OLH(domain=16, epsilon=1.0), np.random.default_rng(1)
    >>> names = ("north", "east", "south")
    >>> found = {name: oracle.simulate(np.full(16, 500), rng) for name in names}
    >>> liar = np.zeros(8000, dtype=oracle.report_dtype)  # all the same
    >>> found["west"] = oracle.aggregate(liar)
    >>> print(check_collectors(oracle, found).collectors[3].draws.adjusted)
    0.0
    """
    channel = channel_of(protocol)
    if not isinstance(level, float) or not 0 < level < 1:
        raise ValueError(
            f"level must be a probability, strictly between 0 and 1, got {shown(level)}"
        )
    aggregates = {name: channel.require_own(_counts(value)) for name, value in collectors.items()}
    if not aggregates:
        raise ValueError("no collectors: there is nothing to compare")
    everything = reduce(add, aggregates.values())
    pools = channel.samples(everything.n, everything.counts)
    checks: list[ChiSquareStatistic] = []
    values: list[float] = []
    for aggregate in aggregates.values():
        draws, rest = list[ChiSquareStatistic](), dict[int, list[ChiSquareStatistic]]()
        for sample, pool in zip(channel.samples(aggregate.n, aggregate.counts), pools, strict=True):
            if sample.known:
                draws.append(_against_known(sample))
            else:
                rest.setdefault(sample.view, []).append(_against_rest(sample, pool))
        views = [view for view in map(_added, rest.values()) if view.freedom]
        least = min(views, key=lambda view: view.p, default=ChiSquareStatistic())
        checks += [least, _added(draws)]
        values += [min(1.0, len(views) * least.p) if views else float("nan"), checks[-1].p]
    results = [Check(*row) for row in zip(checks, values, _adjusted(values), strict=True)]
    tested = [
        CollectorResult(
            str(name),
            aggregate.n,
            aggregate.n / max(everything.n, 1),
            _left_out(collectors[name]),
            *results[2 * place : 2 * place + 2],
        )
        for place, (name, aggregate) in enumerate(aggregates.items())
    ]
    return CollectorChecks(tuple(tested), level)


def _counts(brought: Any) -> Any:
    return getattr(brought, "aggregate", brought)


def _left_out(brought: Any) -> int:
    return sum(sum(reasons.values()) for reasons in getattr(brought, "left_out", {}).values())


def _adjusted(values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, whatever depends on what; 1 for NaN, which is no test."""
    p = np.array(values)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaNs come last
    result = np.ones(len(p))
    result[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return result.tolist()
