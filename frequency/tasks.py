"""The planner's tasks of this package: "frequencies", "marginals" and "heavy hitters"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, islice
from typing import Any, ClassVar

import numpy as np

from frequency.heavy import Gate, PrefixExtension, TreeHist, Universe, lower_bound
from frequency.heavy.errors import ItemErrors
from frequency.heavy.listing import nothing
from frequency.heavy.prefix_tree import Level, PartEstimates, Prefixes, PrefixProtocol, _kept
from frequency.marginals import (
    CALM,
    Domain,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MarginalProtocol,
    MargPS,
    MargRR,
)
from frequency.marginals.whole_record import InputProtocol
from frequency.oracles.choice import Choice, choose
from mechdesign._support.numbers import whole
from mechdesign.planning.task import Offer, Task

_CONFIDENCE = 0.95
"""Of the statement about heavy hitters."""

_VIEWS = 64
"""Of how many marginals, at most, the errors are averaged."""

_choose = lru_cache(maxsize=64)(choose)


@dataclass(frozen=True)
class Frequencies(Task):
    """How frequent each item is: `frequency.choose`.

    Attributes
    ----------
    domain : int
        The number of items.
    """

    symbols: ClassVar[str] = "D items, q values of a hash or of a field's element, n reports"

    def __post_init__(self) -> None:
        choose(self.domain, 1.0, 1)  # refuses what no oracle takes
        object.__setattr__(self, "domain", int(self.domain))

    @property
    def question(self) -> str:
        return f"frequencies of {self.domain} items"

    @property
    def error_is(self) -> str:
        return "standard error of the frequency of one rare item"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_by_name(_choose(self.domain, 1.0, 1)))

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        """An oracle with the standard error of one rare item's frequency.

        Parameters
        ----------
        name : str
            One of `names`.
        epsilon : float or Fraction
            The privacy loss of one report, above 0.
        n : int
            The number of reports.

        Returns
        -------
        Offer
            The oracle, its error, the bits of a report, and its costs.

        Raises
        ------
        ValueError
            The oracle needs too much memory.
        """
        item = _by_name(_choose(self.domain, epsilon, n)).get(name)
        if item is None:
            raise ValueError(f"{name} needs too much memory for {self.domain} items")
        return Offer(item.oracle, item.rmse, item.bits, item.client, item.server)

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        """The oracle that `frequency.choose` recommends, and why.

        Parameters
        ----------
        epsilon : float or Fraction
            The privacy loss of one report, above 0.
        n : int
            The number of reports.

        Returns
        -------
        tuple
            Its name, and the reason.
        """
        found = _choose(self.domain, epsilon, n)
        return type(found.recommended).__name__, found.reason


def _by_name(found: Choice) -> dict[str, Any]:
    return {type(item.oracle).__name__: item for item in found.candidates}


_MARGINALS: dict[type[MarginalProtocol], tuple[str, str]] = {
    InpRR: ("R", "n R"),
    InpPS: ("1", "n + R"),
    InpOLH: ("log R", "n + q R log R"),
    InpHTCMS: ("log w", "n + h (w log w + R)"),
    MargRR: ("c", "n c"),
    MargPS: ("1", "n + v c"),
    MargHT: ("1", "n + v c log c"),
    InpHT: ("d", "n + v c log c"),
    CALM: ("c", "n c"),
}
"""Elementary steps up to a constant, as `frequency.choose` states them."""

_RECORDS = 1 << 16
"""Different records beyond which protocols that tell them apart one by one are left out: errors
grow with their root.
"""


@dataclass(frozen=True)
class Marginals(Task):
    """Joint distributions of any ``k`` of several attributes.

    Offered are the protocols of `frequency.marginals` whose errors are known.

    Attributes
    ----------
    domain : sequence of int, mapping or Domain
        The numbers of values of the attributes: a list, a mapping of names to them, or a
        `frequency.marginals.Domain`.
    k : int
        How many attributes a marginal has.
    """

    k: int = 2

    symbols: ClassVar[str] = (
        "R different records, d attributes, v marginals of c cells, w cells and h functions of a"
        " sketch, q hash values, n reports"
    )

    def __post_init__(self) -> None:
        sizes = self.domain
        if isinstance(sizes, Sequence) and not isinstance(sizes, str):
            sizes = {str(place): size for place, size in enumerate(sizes)}
        object.__setattr__(self, "domain", sizes if isinstance(sizes, Domain) else Domain(sizes))
        whole(self.k, "k", 1, len(self.domain), what="a number of attributes")

    @property
    def question(self) -> str:
        return (
            f"marginals of {self.k} of {len(self.domain)} attributes of"
            f" {' x '.join(map(str, self.domain.shape))} values"
        )

    @property
    def error_is(self) -> str:
        return (
            f"standard error of a cell of a marginal of {self.k} attributes, root mean square, for"
            " evenly spread records"
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(kind.__name__ for kind in _MARGINALS)

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        """A protocol with the standard error of a cell, root mean square over marginals.

        Parameters
        ----------
        name : str
            One of `names`.
        epsilon : float or Fraction
            The privacy loss of one report, above 0.
        n : int
            The number of reports.

        Returns
        -------
        Offer
            The protocol, its error, the bits of a report, and its costs.

        Raises
        ------
        ValueError
            There are too many different records, or the protocol cannot be made for these
            attributes.
        """
        kind = next(kind for kind in _MARGINALS if kind.__name__ == name)
        if issubclass(kind, InputProtocol) and self.domain.size > _RECORDS:
            raise ValueError(
                f"{name} tells records apart one by one, and {self.domain.size} are too many"
            )
        if (
            kind is InpOLH
            and self.domain.size * max(self.domain.project(view).size for view, _ in self._alike)
            > _RECORDS
        ):
            raise ValueError(
                f"{name}'s error takes too long to predict for {self.domain.size} different records"
            )
        covered = {"covered": self.k} if kind is CALM else {}
        protocol = kind(self.domain, self.k, epsilon, **covered)
        views = self._some if kind is CALM else self._alike
        squares = sum(
            times * float(protocol.cell_variances(n, view).mean()) for view, times in views
        )
        error = math.sqrt(squares / sum(times for _, times in views))
        return Offer(protocol, error, protocol.report_bits, *_MARGINALS[kind])

    @cached_property
    def _alike(self) -> list[tuple[tuple[str, ...], int]]:
        """A marginal of each shape, and how many have it: all but CALM treat these alike."""
        found: dict[tuple[int, ...], tuple[tuple[str, ...], int]] = {}
        for view in combinations(self.domain, self.k):
            shape = tuple(sorted(self.domain[name] for name in view))
            found[shape] = (
                (view, 1) if shape not in found else (found[shape][0], found[shape][1] + 1)
            )
        return list(found.values())

    @cached_property
    def _some(self) -> list[tuple[tuple[str, ...], int]]:
        """All marginals, or some of them far apart."""
        number = math.comb(len(self.domain), self.k)
        step = max(1, -(-number // _VIEWS))
        return [(view, 1) for view in islice(combinations(self.domain, self.k), 0, None, step)]


@dataclass(frozen=True)
class HeavyHitters(Task):
    """Which items of a universe too large to list are frequent.

    Offered are the protocols over prefixes, for any number of frequent items.

    The prediction is for users of whom none but the item in question is frequent:
    `Found.complete_above` of such a run, with the levels' cuts where noise is expected to put them.

    Attributes
    ----------
    domain : int
        The length of an item in bits, 1 .. 64.
    text : bool
        Items are strings of up to domain / 8 bytes.
    """

    text: bool = False

    symbols: ClassVar[str] = (
        "b bits, m prefixes looked at on each of L levels of up to s cells, n reports"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", Universe(self.domain, self.text).bits)

    @property
    def question(self) -> str:
        what = (
            f"strings of up to {self.domain // 8} bytes"
            if self.text
            else f"items of {self.domain} bits"
        )
        return f"heavy hitters among {what}"

    @property
    def error_is(self) -> str:
        return f"the smallest frequency listed with {_CONFIDENCE:.0%}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_HEAVY)

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        """A protocol with the smallest frequency that it lists with 95 % probability.

        Parameters
        ----------
        name : str
            One of `names`.
        epsilon : float or Fraction
            The privacy loss of one report, above 0.
        n : int
            The number of reports.

        Returns
        -------
        Offer
            The protocol, its error (see `smallest_listed`), the bits of a report, and its costs.

        Raises
        ------
        ValueError
            The protocol cannot be made for these items.
        """
        kind, client, server = _HEAVY[name]
        protocol = kind(self.domain, epsilon, self.text)
        return Offer(protocol, smallest_listed(protocol, n), protocol.report_bits, client, server)

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        """The lower bound on the error of any protocol: see `frequency.heavy.lower_bound`.

        Parameters
        ----------
        epsilon : float or Fraction
            The privacy loss of one report, above 0.
        n : int
            The number of reports.

        Returns
        -------
        str
            A sentence.
        """
        least = lower_bound(n, 1 << self.domain, epsilon)
        return (
            f"no protocol's largest error of a frequency is below {least:.3g} on average, for some"
            " distribution of the items"
        )


_HEAVY: dict[str, tuple[type[PrefixProtocol], str, str]] = {
    "PrefixExtension": (PrefixExtension, "b", "n + L (s log s + m)"),
    "TreeHist": (TreeHist, "b", "n + L (s log s + m)"),
}


def smallest_listed(protocol: PrefixProtocol, n: int, confidence: float = _CONFIDENCE) -> float:
    """The least frequency of an item that is expected to be listed with this probability.

    By the union bound over the levels, for normal errors, among items that are otherwise rare: as
    `Found.complete_above` says afterwards, with the cuts of the run.

    Parameters
    ----------
    protocol : PrefixProtocol
        Over prefixes.
    n : int
        The number of users, at least 1.
    confidence : float, default 0.95
        The probability, strictly between 0 and 1.

    Returns
    -------
    float
        A fraction of the users; infinite if there is none.
    """
    channel = protocol.channel
    kept, considered, gates = _kept(channel.lengths), 1, []
    errors, before = None, 0
    for level, share in zip(channel.levels, channel.probabilities, strict=True):
        users = round(n * share)
        if users < 2:
            return math.inf
        considered = min(considered, kept) << (level.length - before)
        errors = ItemErrors.of(
            channel.parts[level.first],
            users,
            n,
            channel.confusion(level, _noise(channel, level, users)),
        )
        gates.append(
            Gate(
                errors.beyond(kept / considered) if considered > kept else -math.inf,
                errors.deviation,
            )
        )
        before = level.length
    assert errors is not None
    gates.append(Gate(errors.beyond((1 - confidence) / considered), errors.deviation))
    return replace(nothing(protocol.universe, confidence, n), gates=tuple(gates)).complete_above


def _noise(channel: Prefixes, level: Level, users: int) -> list[PartEstimates]:
    """What the parts of a level say on average, by its size, where nobody holds anything often."""
    own = max(1, users // len(level.parts))
    return [
        PartEstimates(
            part,
            own,
            1 / len(level.parts),
            np.full(oracle.domain, math.sqrt(oracle.variance(own, 1 / oracle.domain))),
        )
        for part in level.parts
        for oracle in [channel.parts[part]]
        if level.functions
    ]
