"""Reports that public coins draw, of which a user keeps one or none, as `OneBit` sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, Coins, uniform
from frequency.core import (
    UNNUMBERED,
    Aggregate,
    Channel,
    Menu,
    Oracle,
    Reports,
    Sample,
    SignSum,
    Step,
    forwarded,
    json_integers,
    law_of_ratio,
    public,
    smallest_integer,
    variance_of,
)
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import BitSource, Floats, Items
from mechdesign.symbolic.privacy_proof import OneBitProof, acceptances


@dataclass(frozen=True)
class Sampled(Channel):
    """A channel that tells which report that public coins draw for a user is kept, or none.

    A report is ``coins``, a public number that decides what the candidates are, and what the user
    tells of them: ``bit``, 1 to keep the only one; of 2 bits and more ``choice``, the number of the
    candidate kept, from 1 on, or 0 for none. The counts are how many users kept one, and the inner
    channel's counts of the reports kept.

    Candidate i is kept with probability c L_i, where L_i = Pr[report i | item] / Pr[report i | no
    item], and none with what is left, 1 - c (L_1 + .. + L_K). So a report is kept with probability
    c K, whatever the item, and those kept are distributed like the inner channel's. Kept candidates
    lose what the inner channel does. Where the sum of the likelihoods goes from ``low`` to
    ``high``, none is kept with probability 1 - c high to 1 - c low: these are within the ratio e
    for c = (e - 1) / (e high - low), and for no larger c. Independent candidates may all be likely
    or all unlikely, so that K of them lower c by as much: they gain nothing. But where the inner
    channel knows reports of which every item makes few likely (`Channel.menus`), c K rises with K;
    and if all of them together are as likely whatever the item, to 1.
    """

    inner: Channel  # whose reports public coins draw
    seed: int = 0  # of the public coins
    bits: int = 1  # that a user tells: candidates are at most 2^bits - 1

    largest_domain: ClassVar[int] = UNNUMBERED  # as the inner one's may be

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._acceptance

    privacy = forwarded("inner.privacy")  # of a table it is exact, and its epsilon rounded up
    batch_size = forwarded("inner.batch_size")
    takes = forwarded("inner.takes")
    items_of = forwarded("inner.items_of")
    _every_item = forwarded("inner._every_item")

    @property
    def most(self) -> int:
        """The largest number of candidates."""
        return (1 << self.bits) - 1

    @cached_property
    def _menus(self) -> tuple[Menu, ...]:
        """The candidates of each kind of report."""
        return self.inner.menus(self.most)

    @cached_property
    def _candidates(self) -> npt.NDArray[np.int64]:
        """The number of candidates of each kind of report, for each of the inner likelihoods."""
        kinds = zip(self._menus, self.inner.likelihoods, strict=True)
        return np.array([menu.candidates for menu, kind in kinds for _ in kind])

    @cached_property
    def _acceptance(self) -> tuple[int, ...]:
        """The probability to keep each of the inner likelihoods, in units of 2^-64."""
        share = self.kept * (1 - Fraction(1, 1 << 40))
        # The least is rounded up: rounding keeps both ratios, of candidates kept and of none,
        # within the likelihood ratio.
        return tuple(
            -int(-share * ratio * WORD // menu.candidates)
            if ratio == kind[0]
            else int(share * ratio * WORD / menu.candidates)
            for menu, kind in zip(self._menus, self.inner.likelihoods, strict=True)
            for ratio in kind
        )

    @cached_property
    def kept(self) -> Fraction:
        """The probability that a report is kept: the largest at which epsilon holds for all coins.

        Of one candidate that says nothing of the item it is half.
        """
        e, kinds = self.max_ratio, zip(self._menus, self.inner.likelihoods, strict=True)
        limits, half = [], Fraction(1, 2 if self.bits == 1 else 1)
        for menu, kind in kinds:
            low, high = menu.ends(kind[0], kind[-1])
            if high > low:
                limits.append(menu.candidates * (e - 1) / (e * high - low))
            else:
                limits.append(min(menu.candidates / Fraction(high), half))
        return min(limits)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("coins", "<u8"), (self.field, smallest_integer(self.most))])

    @property
    def field(self) -> str:
        """The name of the user's choice in a report."""
        return "bit" if self.bits == 1 else "choice"

    @property
    def report_bits(self) -> int:
        return self.bits

    def _details(self) -> dict[str, Any]:
        several = (
            {} if self.bits == 1 else {"bits": self.bits, "menus": list(map(list, self._menus))}
        )
        return {
            "seed": self.seed,
            **several,
            "acceptance": [str(weight) for weight in self._acceptance],
            "inner": self.inner.parameters,
        }

    @property
    def client_half(self) -> Step:
        return {
            "do": "choice",
            "seed": self.seed,
            "width": self.report_dtype[self.field].itemsize,
            "most": self.most,
            "acceptance": json_integers(self._acceptance),
            "candidates": self._candidates.tolist(),
            "then": self.inner.client_half,
        }

    def _coins(self, reports: Reports) -> Coins:
        return Coins(reports["coins"], self.seed)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["coins"] = source(len(items))
        drawn = self.inner.drawn(items, source)
        self._keep(reports, self._likelihoods(self._coins(reports), drawn), source(len(items)))

    def _likelihoods(self, coins: Coins, items: Items) -> Iterator[Items]:
        """Yield for each candidate the inner likelihood that it has."""
        if max(menu.candidates for menu in self._menus) == 1:
            yield self.inner.coins_likelihood(coins, items)
            return
        blank = self.inner.blank(coins)
        for number in range(max(menu.candidates for menu in self._menus)):
            yield self.inner.likelihood(self._candidate(blank, np.full(len(coins), number)), items)

    def _candidate(self, blank: Reports, numbers: Items) -> Reports:
        return self.inner.candidate(blank, numbers, self.most) if self.bits > 1 else blank

    def _keep(
        self, reports: Reports, likelihoods: Iterator[Items], words: npt.NDArray[np.uint64]
    ) -> None:
        """Set each user's candidate, which a random word chooses by the likelihoods."""
        weights, below = np.array(self._acceptance, dtype=np.uint64), np.zeros_like(words)
        for number, which in enumerate(likelihoods):
            # Consecutive intervals of the 2^64 words, one for each candidate: what is left keeps
            # none. Their lengths are the integers of the audit.
            above = below + weights[which] * (number < self._candidates[which])
            reports[self.field][(below <= words) & (words < above)] = number + 1
            below = above

    def idle(self, users: int, source: BitSource) -> Reports:
        """Return the reports of users without an item: of a random item of two opposite ones."""
        reports = np.zeros(users, dtype=self.report_dtype)
        reports["coins"] = source(users)
        favoured = uniform(users, 2, source)
        likely = ((favoured == number).astype(np.int64) for number in range(self._candidates[0]))
        self._keep(reports, likely, source(users))
        return reports

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return reports[self.field] <= self._candidates.max()

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (1 + int(np.prod(self.inner.counts_shape)),)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        kept = reports[reports[self.field] > 0]
        counts = np.zeros(self.counts_shape, dtype=np.int64)
        counts[0] = len(kept)
        for start in range(0, len(kept), self.batch_size):
            part = kept[start : start + self.batch_size]
            numbers = part[self.field].astype(np.int64) - 1
            report = self._candidate(self.inner.blank(self._coins(part)), numbers)
            counts[1:] += self.inner.counts_of(report).ravel()
        return counts

    @property
    def sign_sums(self) -> tuple[SignSum, ...]:
        return tuple(part.within(1, 0) for part in self.inner.sign_sums)

    def sampled(self, aggregate: Aggregate) -> Aggregate:
        """Return the inner channel's aggregate of the reports that were kept."""
        return Aggregate(
            self.inner.signature,
            int(aggregate.counts[0]),
            aggregate.counts[1:].reshape(self.inner.counts_shape),
        )

    def consistent(self, aggregate: Aggregate) -> bool:
        return 0 <= int(aggregate.counts[0]) <= aggregate.n and self.inner.consistent(
            self.sampled(aggregate)
        )

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        # Over the coins every item's report is kept as often, and the reports kept are distributed
        # as the inner channel's.
        kept, share = int(counts[0]), float(self.kept)
        return [
            public(n, [kept, n - kept], [share, 1 - share]),
            *self.inner.samples(kept, counts[1:].reshape(self.inner.counts_shape)),
        ]

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        kept = rng.binomial(counts, float(self.kept))
        some = kept > 0
        total = np.zeros(self.counts_shape, dtype=np.int64)
        total[0] = kept.sum()
        total[1:] = self.inner.simulated_counts(items[some], kept[some], rng).ravel()
        return total

    def pair_laws(self) -> tuple[PairLaw, ...]:
        # Whatever the coins. How often they tell two items apart is not stated: they are not
        # independent, and no attack is known exactly
        return (law_of_ratio(Fraction(self.audit().ratio)),) if self.domain > 1 else ()

    def attack_laws(self) -> tuple[PairLaw, ...]:
        return ()

    def audit(self) -> Audit:
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, f"any {self.field}", (0, 0))
        # Whatever the coins, the likelihoods of a kind of report decide what is told.
        worst, place = Fraction(1), 0
        for menu, kind in zip(self._menus, self.inner.likelihoods, strict=True):
            weights = self._acceptance[place : place + len(kind)]
            place += len(kind)
            low, high = menu.ends(min(weights), max(weights))
            worst = max(worst, Fraction(max(weights), min(weights)))
            worst = max(worst, Fraction(WORD - low, WORD - high))
        return Audit(
            worst,
            self.max_ratio,
            f"the {self.field}, for coins where likelihoods are furthest apart",
            (0, 1),
        )

    def proof(self) -> OneBitProof:
        inner = self.inner.proof()
        kinds = acceptances(inner, tuple(dict.fromkeys(self._menus)))
        return OneBitProof(inner, kinds, name=type(self).__name__, source=self.privacy_source)


@dataclass(frozen=True)
class SampledOracle(Sampled, Oracle):
    """A `Sampled` channel around a frequency oracle, itself one: it estimates from users kept."""

    @property
    def _oracle(self) -> Oracle:
        """The inner channel, which is an oracle too."""
        assert isinstance(self.inner, Oracle)
        return self.inner

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        kept = self.sampled(aggregate)
        if kept.n:
            return self._oracle.frequencies_of(kept, items)
        return np.full(self.domain if items is None else len(items), np.nan)

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        # That of the inner oracle from the reports kept, about n times `kept` of them. With what
        # drawing these users adds: f (1 - f) for each
        f = np.asarray(frequency, dtype=np.float64)
        return self._of_kept(lambda m: np.asarray(self._oracle.variance(m, f)), f * (1 - f), n)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # That of the inner oracle from the reports kept, about n times `kept` of them
        return float(
            self._of_kept(
                lambda m: self._oracle.difference_variance(m, held), 2 / (held or self.domain), n
            )
        )

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # That of the inner oracle from the reports kept, about n times `kept` of them. With what
        # drawing these users adds: the variance of the weight of a user's item
        among = weights**2 @ frequencies - (weights @ frequencies) ** 2
        return self._of_kept(
            lambda m: self._oracle.linear_variance(m, weights, frequencies), among, n
        )

    def _of_kept(self, inner: Callable[[int], Any], among: Any, n: int) -> Any:
        """Return the variance from the users kept of n.

        ``inner`` is that of the inner oracle from so many users, ``among`` that among all users.
        """
        # The inner one is a part for each user and a part, the confusion of sketches, that more
        # users do not lessen
        # v(m) = users / m + rest, from its values at m = 1 and 2.
        first, second = inner(1), inner(2)
        users, rest = 2 * (first - second), 2 * second - first
        return variance_of(n, users / float(self.kept) + among * float(1 / self.kept - 1)) + rest

    def variance_slope(self, n: int) -> float:
        return self._oracle.variance_slope(n) / float(self.kept)

    def _spread(self, aggregate: Aggregate) -> float:
        """Return the factor by which choosing users multiplies the variance among all users."""
        return 1 / max(int(aggregate.counts[0]), 1) - 1 / aggregate.n

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        kept = self.sampled(aggregate)
        if not kept.n:
            return np.full(len(frequencies), np.inf)
        f = np.clip(frequencies, 0.0, 1.0)
        return self._oracle.variances_of(kept, frequencies, items) + f * (1 - f) * self._spread(
            aggregate
        )

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        kept = self.sampled(aggregate)
        if not kept.n:
            return np.full(len(weights), np.inf)
        f = np.clip(frequencies, 0.0, 1.0)
        among = weights**2 @ f - (weights @ f) ** 2
        return self._oracle.linear_variances_of(
            weights, kept, frequencies, items
        ) + among * self._spread(aggregate)
