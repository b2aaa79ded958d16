"""Mixtures: every user reports on one part of the question, chosen at random."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, Coins
from frequency.core.aggregate import Aggregate, SignSum
from frequency.core.blanket import JointLaw, mixed, mixed_law
from frequency.core.channel import Channel, Reports, forwarded, smallest_integer
from frequency.core.oracle import checked_users
from frequency.core.tally import Sample, public
from frequency.core.transport import Menu, Step, json_integers, unstated
from mechdesign import Audit, PrivacyViolation
from mechdesign.accounting.pair_law import PairLaw, PairLaws
from mechdesign.base import BitSource, Floats, Items, exact, exact_sum
from mechdesign.symbolic import MixturePart, MixtureProof, PrivacyProof


@dataclass(frozen=True)
class Mixture(Channel):
    """A random part of the question, and the report of that part's own channel.

    A report is the number of the part and ``body``, the bytes of the part's report, padded with
    zeros. The part does not depend on the item: a report's privacy loss is that of its part's.
    """

    kind: ClassVar[str] = "part"  #: What a part is called, in reports and parameters.

    @property
    @abstractmethod
    def parts(self) -> tuple[Channel, ...]:
        """The channels of the parts that users may report on."""

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        """The probability of each part, in units of 2^-64: by default all the same."""
        return weights_of(len(self.parts), None, self.kind)

    @abstractmethod
    def part_items(self, part: int, items: Items) -> Items:
        """The item of a part's channel that stands for each item.

        Parameters
        ----------
        part : int
            The part's number.
        items : numpy.ndarray of int64
            Shape (users,): items of this channel.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,): items of the part's channel.
        """

    def part_expression(self, part: int) -> list[Any]:
        """Return the item of `part_items` as an expression of descriptions: see ``docs/wire.md``.

        Parameters
        ----------
        part : int
            The part's number.

        Returns
        -------
        list
            The expression's name, and what it needs.

        Raises
        ------
        TypeError
            A mixture of one's own that does not state it.
        """
        raise unstated(self)

    @property
    def part_axes(self) -> list[Any]:
        """The axes of grids that expressions of parts name by their places."""
        return []

    @property
    def client_half(self) -> Step:
        channels, kinds = self._channels
        equal = self.part_weights == weights_of(len(self.parts), None)
        return {
            "do": "mixture",
            "width": self.report_dtype[self.kind].itemsize,
            "weights": None if equal else json_integers(self.part_weights),
            "channels": [channel.client_half for channel in channels],
            "kinds": kinds.tolist(),
            "maps": [self.part_expression(part) for part in range(len(self.parts))],
            "axes": self.part_axes,
        }

    def _nodes_of(self, parts: npt.NDArray[Any], items: Items) -> Items:
        """The same for items that each go with a part of their own."""
        result = np.empty(len(items), dtype=np.int64)
        for k, mine in _groups(parts):
            result[mine] = self.part_items(k, items[mine])
        return result

    @cached_property
    def _channels(self) -> tuple[tuple[Channel, ...], npt.NDArray[np.uint64]]:
        """The different channels among those of the parts, and which of them each part has."""
        places: dict[Channel, int] = {}
        kinds = [places.setdefault(channel, len(places)) for channel in self.parts]
        return tuple(places), np.array(kinds, dtype=smallest_integer(len(places) - 1))

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        longest = max(channel.report_dtype.itemsize for channel in self.parts)
        return np.dtype(
            [(self.kind, smallest_integer(len(self.parts) - 1)), ("body", "u1", (longest,))]
        )

    @cached_property
    def report_bits(self) -> int:
        return (len(self.parts) - 1).bit_length() + max(
            channel.report_bits for channel in self.parts
        )

    @cached_property
    def batch_size(self) -> int:
        return min(min(channel.batch_size for channel in self.parts) * len(self.parts), 1 << 20)

    def _details(self) -> dict[str, Any]:
        weights = [str(weight) for weight in self.part_weights]
        return {
            f"{self.kind} weights": weights,
            f"{self.kind}s": [{**channel.parameters} for channel in self.parts],
        }

    @cached_property
    def _ends(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """The parts that are asked about, and the word at which each but the last one ends."""
        asked = [k for k, weight in enumerate(self.part_weights) if weight]
        ends = list(accumulate(self.part_weights[k] for k in asked))[:-1]
        return np.array(asked), np.array(ends, dtype=np.uint64)

    def _part(self, words: npt.NDArray[np.uint64]) -> Items:
        """The part that each random word chooses."""
        asked, ends = self._ends
        return asked[np.searchsorted(ends, words, side="right")]

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        chosen = self._part(source(len(items))).astype(reports.dtype[self.kind])
        reports[self.kind] = chosen
        nodes = self._nodes_of(chosen, items)
        channels, kinds = self._channels
        for kind, mine in _groups(kinds[chosen]):
            channel = channels[kind]
            size = channel.report_dtype.itemsize
            for start in range(0, len(mine), channel.batch_size):
                users = mine[start : start + channel.batch_size]
                part = np.zeros(len(users), dtype=channel.report_dtype)
                channel.fill(nodes[users], part, source)
                reports["body"][users, :size] = part.view(np.uint8).reshape(len(users), size)

    def _split(self, reports: Reports) -> Iterator[tuple[int, Channel, Items, Reports]]:
        """Yield each part that occurs: its number, channel, places of reports, and reports."""
        for k, mine in _groups(reports[self.kind]):
            if k < len(self.parts):
                channel = self.parts[k]
                body = np.ascontiguousarray(
                    reports["body"][mine][:, : channel.report_dtype.itemsize]
                )
                yield k, channel, mine, body.view(channel.report_dtype).reshape(-1)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        good = np.zeros(len(reports), dtype=np.bool_)
        for _, channel, mine, part in self._split(reports):
            unused = reports["body"][mine][:, channel.report_dtype.itemsize :]
            good[mine] = channel.possible(part) & ~unused.any(axis=1)
        return good

    # The counts are the number of reports of each part, then the counts of the parts' own
    # aggregates, one after the other.

    @cached_property
    def _places(self) -> list[slice]:
        sizes = [int(np.prod(channel.counts_shape)) for channel in self.parts]
        ends = list(accumulate(sizes, initial=len(self.parts)))
        return [slice(start, end) for start, end in pairwise(ends)]

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self._places[-1].stop,)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        counts = np.zeros(self.counts_shape, dtype=np.int64)
        for k, channel, mine, part in self._split(reports):
            counts[k] = len(mine)
            counts[self._places[k]] = channel.counts_of(part).ravel()
        return counts

    @cached_property
    def sign_sums(self) -> tuple[SignSum, ...]:
        return tuple(
            part.within(place.start, k)
            for k, (channel, place) in enumerate(zip(self.parts, self._places, strict=True))
            for part in channel.sign_sums
        )

    def part_aggregate(self, aggregate: Aggregate, k: int) -> Aggregate:
        """The aggregate of the reports on one part.

        Parameters
        ----------
        aggregate : Aggregate
            Of this channel.
        k : int
            The part's number.

        Returns
        -------
        Aggregate
            Of the part's channel.
        """
        channel = self.parts[k]
        users = int(aggregate.part(slice(k, k + 1))[0])
        return aggregate.within(channel.signature, users, self._places[k], channel.counts_shape)

    def part_users(self, aggregate: Aggregate) -> Floats:
        """Return the number of users who reported on each part."""
        return aggregate.part(slice(0, len(self.parts))).astype(np.float64)

    def expected_users(self, n: int) -> Floats:
        """The same, expected of n users."""
        return checked_users(n) * np.array([weight / WORD for weight in self.part_weights])

    def consistent(self, aggregate: Aggregate) -> bool:
        users = aggregate.part(slice(0, len(self.parts)))
        if (users < 0).any() or exact_sum(users) != aggregate.n:
            return False
        return all(
            channel.consistent(self.part_aggregate(aggregate, k))
            for k, channel in enumerate(self.parts)
        )

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        samples = [
            public(n, counts[: len(self.parts)], [weight / WORD for weight in self.part_weights])
        ]
        for k, channel in enumerate(self.parts):
            samples += channel.samples(
                int(counts[k]), counts[self._places[k]].reshape(channel.counts_shape)
            )
        return samples

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        total = np.zeros(self.counts_shape, dtype=np.int64)
        for k, mine, user_counts in self._assigned(items, counts, rng):
            channel, users = self.parts[k], int(user_counts.sum())
            if users:
                total[k] = users
                drawn = channel.simulated_counts(self.part_items(k, mine), user_counts, rng)
                total[self._places[k]] = drawn.ravel()
        return total

    def joined(self, told: Mapping[int, tuple[int, npt.NDArray[np.int64]]]) -> Aggregate:
        """The aggregate of what the users of some parts report; nobody reports on the others.

        Parameters
        ----------
        told : mapping of int to (int, numpy.ndarray of int64)
            By the number of a part, how many report on it, and their counts, of the shape that its
            channel has.

        Returns
        -------
        Aggregate
            Of the reports of all these users.
        """
        total = np.zeros(self.counts_shape, dtype=np.int64)
        for k, (users, counts) in told.items():
            total[k] = users
            total[self._places[k]] = counts.ravel()
        return Aggregate(self.signature, sum(users for users, _ in told.values()), total)

    def _assigned(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> Iterator[tuple[int, Items, Items]]:
        """For each part, the items of its users and how many have each."""
        users = int(counts.sum())
        if users <= len(items):  # each user by itself: a part's users are a part of a permutation
            sizes = rng.multinomial(users, [weight / WORD for weight in self.part_weights])
            order = np.repeat(np.arange(len(items)), counts)[rng.permutation(users)]
            for k, mine in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
                yield k, items[mine], np.ones(len(mine), dtype=np.int64)
            return
        left, rest = counts, WORD
        for k, weight in enumerate(self.part_weights):
            # Of the users not yet on a part, each takes this one with its share of the weight that
            # is left.
            if weight:
                here = left if weight == rest else rng.binomial(left, weight / rest)
                left, rest = left - here, rest - weight
                some = here > 0
                yield k, items[some], here[some]

    @cached_property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        different = dict.fromkeys(self.parts)
        return tuple(kind for channel in different for kind in channel.likelihoods)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports[self.kind] = self._part(coins.words(0))
        part_coins = coins.after(1)
        for k, mine in _groups(reports[self.kind]):
            part = self.parts[k].blank(part_coins[mine])
            reports["body"][mine, : part.itemsize] = part.view(np.uint8).reshape(
                len(mine), part.itemsize
            )
        return reports

    @cached_property
    def _firsts(self) -> list[int]:
        """The place of each part's first likelihood among all."""
        places: dict[Channel, int] = {}
        total = 0
        for channel in dict.fromkeys(self.parts):
            places[channel] = total
            total += sum(map(len, channel.likelihoods))
        return [places[channel] for channel in self.parts]

    def menus(self, largest: int) -> tuple[Menu, ...]:
        different = dict.fromkeys(self.parts)
        return tuple(menu for channel in different for menu in channel.menus(largest))

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        for k, channel, mine, part in self._split(reports):
            candidates = self.parts[k].candidate(part, numbers[mine], largest)
            size = channel.report_dtype.itemsize
            result["body"][mine, :size] = candidates.view(np.uint8).reshape(len(mine), size)
        return result

    def likelihood(self, reports: Reports, items: Items) -> Items:
        result = np.empty(len(items), dtype=np.int64)
        for k, _, mine, part in self._split(reports):
            nodes = self.part_items(k, items[mine])
            result[mine] = self._firsts[k] + self.parts[k].likelihood(part, nodes)
        return result

    def joint_law(self, items: Items) -> JointLaw:
        cells = Counter[tuple[Channel, bytes]]()
        for k in self._ends[0].tolist():
            nodes = self.part_items(k, items).astype(np.int64)
            cells[self.parts[k], nodes.tobytes()] += self.part_weights[k]
        return mixed(
            (Fraction(weight, WORD), part.joint_law(np.frombuffer(nodes, dtype=np.int64)))
            for (part, nodes), weight in cells.items()
        )

    def dominating_law(self) -> PairLaw:
        weights = Counter[Channel]()
        for k in self._ends[0].tolist():
            weights[self.parts[k]] += self.part_weights[k]
        return mixed_law(
            (Fraction(weight, WORD), part.dominating_law()) for part, weight in weights.items()
        )

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        asked = self._ends[0].tolist()
        if len(asked) == 1 and self.domain > 1:
            return self.parts[asked[0]].pair_laws()
        return super().pair_laws()

    def audit(self) -> Audit:
        return max((channel.audit() for channel in self.parts), key=lambda audit: audit.ratio)

    def proof(self) -> MixtureProof:
        channels, proofs = self._channels[0], dict[Channel, PrivacyProof]()
        for channel in channels:  # whose alphas are at least this one's
            audit = channel.audit()
            if audit.ratio > self.max_ratio:
                raise PrivacyViolation(audit.ratio, self.max_ratio, audit.output, audit.inputs)
            proofs[channel] = channel.proof()
        alike = Counter(zip(self.parts, self.part_weights, strict=True))
        parts = (
            MixturePart(times, Fraction(weight, WORD), proofs[channel])
            for (channel, weight), times in alike.items()
        )
        return MixtureProof(tuple(parts), name=type(self).__name__)


def _groups(numbers: npt.NDArray[Any]) -> Iterator[tuple[int, Items]]:
    """Each number that occurs, and where."""
    if len(numbers) == 1:  # a client's one report
        yield int(numbers[0]), np.zeros(1, dtype=np.int64)
        return
    order = np.argsort(numbers, kind="stable")  # in linear time for one or two bytes
    sequence = numbers[order]
    starts = (
        np.flatnonzero(np.concatenate([[True], sequence[1:] != sequence[:-1]]))
        if len(sequence)
        else order
    )
    yield from zip(sequence[starts].tolist(), np.split(order, starts)[1:], strict=True)


def weights_of(
    parts: int, probabilities: Sequence[Any] | None, name: str = "part"
) -> tuple[int, ...]:
    """Probabilities of parts as integers that sum to 2^64.

    Parameters
    ----------
    parts : int
        How many there are, at least 1.
    probabilities : sequence or None
        One for each part, exact; None: all the same.
    name : str, default "part"
        What a part is called in error messages.

    Returns
    -------
    tuple
        The weight of each part, in units of 2^-64.

    Raises
    ------
    ValueError
        Negative probabilities, another number of them, or ones that do not sum to exactly 1.
    """
    given = (
        [Fraction(1, parts)] * parts
        if probabilities is None
        else [exact(p, f"a {name}'s probability") for p in probabilities]
    )
    if len(given) != parts or min(given) < 0 or sum(given) != 1:
        raise ValueError(
            f"{name} probabilities must be {parts} numbers of at least 0 that sum to exactly 1"
        )
    ends = [int(end * WORD) for end in accumulate(given)]
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


# ------------------------------------------------------------------------------------------------
# Relabelled: a channel whose reports are those of another, under parameters of its own.


@dataclass(frozen=True)
class Relabelled(Channel):
    """A channel whose reports are those of `inner`; a subclass says what its parameters are."""

    inner: Channel

    def __post_init__(self) -> None:
        pass  # the inner channel has been checked

    max_ratio = forwarded("inner.max_ratio")
    takes = forwarded("inner.takes")
    client_half = forwarded("inner.client_half")
    items_of = forwarded("inner.items_of")
    report_dtype = forwarded("inner.report_dtype")
    report_bits = forwarded("inner.report_bits")
    batch_size = forwarded("inner.batch_size")
    fill = forwarded("inner.fill")
    possible = forwarded("inner.possible")
    counts_shape = forwarded("inner.counts_shape")
    counts_of = forwarded("inner.counts_of")
    sign_sums = forwarded("inner.sign_sums")
    add_counts = forwarded("inner.add_counts")
    samples = forwarded("inner.samples")
    _every_item = forwarded("inner._every_item")
    simulated_counts = forwarded("inner.simulated_counts")
    audit = forwarded("inner.audit")
    proof = forwarded("inner.proof")
    pair_laws = forwarded("inner.pair_laws")
    attack_laws = forwarded("inner.attack_laws")

    def consistent(self, aggregate: Aggregate) -> bool:
        return self.inner.consistent(self.inner_aggregate(aggregate))

    def inner_aggregate(self, aggregate: Aggregate) -> Aggregate:
        """The same counts, as those of the inner channel."""
        return aggregate.under(self.inner.signature)
