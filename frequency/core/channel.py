"""Channel: how users' items become private reports, and reports integers that add up.

Each user holds one item of ``0 .. domain-1`` and sends one report (`Channel.privatize`, the client
half). The server turns reports into an integer `Aggregate` and merges aggregates (`aggregate`, the
server half). The two share only the channel: a frozen, printable, comparable set of parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import Coins
from frequency.clients.device import Client, canonical, load_client, sponge
from frequency.core.aggregate import (
    Aggregate,
    SignSum,
    differing,
    joined_signs,
    split_signs,
)
from frequency.core.blanket import (
    ALIKE,
    JointLaw,
    attack_law,
    joint_law_of,
    of_two_likelihoods,
    two_likelihoods,
)
from frequency.core.fingerprints import Fingerprints
from frequency.core.tally import Sample, cells
from frequency.core.transport import (
    Menu,
    Step,
    Transport,
    json_integer,
    signed,
    unstated,
    width_of,
)
from frequency.core.transport import Reports as Reports
from frequency.exceptions import IncompatibleAggregate, InvalidValue
from mechdesign import Audit, Privacy
from mechdesign.accounting.pair_law import PairLaw, PairLaws
from mechdesign.base import (
    BitSource,
    Items,
    Rational,
    bit_source,
    checked_counts,
    exact_sum,
    rounded_up,
    set_fields,
    shown,
    to_text,
    whole,
)
from mechdesign.exceptions import UnstatedLikelihoods
from mechdesign.privacy import exact_epsilon
from mechdesign.symbolic import PrivacyProof

LARGEST_LIST = 1 << 26  #: The most items of which a list is made.

#: The largest domain of channels that never number their items: parameters are text, and Python
#: writes no integer of more than 4300 digits.
#:
#: :meta hide-value:
UNNUMBERED = 1 << 14284

#: Below it probabilities in units of 2^-64, and estimates in floats, would lose their meaning.
LEAST_EPSILON = 2.0**-32


@lru_cache(maxsize=64, typed=True)
def _parsed(epsilon: float | Rational) -> Privacy:
    privacy = Privacy.from_epsilon(epsilon, neighbours="all")
    # The alpha of 2^-32 itself is rounded a little
    if privacy.epsilon < LEAST_EPSILON * (1 - 2.0**-20):
        raise ValueError(
            f"epsilon must be at least 2^-32, got {shown(epsilon)}: reports would say nothing"
        )
    return privacy


def local_privacy(epsilon: float | Rational) -> Privacy:
    """Local privacy, in which every two items are neighbours: parsed once for all of a protocol."""
    try:
        hash(epsilon)
    except TypeError:
        exact_epsilon(epsilon)  # which refuses it
    return _parsed(epsilon)


def given_arguments(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return arguments of a channel or protocol, but for those added later that say nothing."""
    arguments = {name: getattr(value, name) for name in names}
    return {
        name: given for name, given in arguments.items() if given or name not in value.added_later
    }


@dataclass(frozen=True)
class Channel(ABC):
    """A protocol for N users who need not trust the server.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32. A float stands for the binary number that it
        is. Integer weights are chosen such that what is really sampled loses no more: see `audit`.

    Raises
    ------
    ValueError
        A domain or epsilon outside the range of the protocol.
    """

    domain: int
    epsilon: float | Rational

    largest_domain: ClassVar[int] = 1 << 32  #: The most items that the protocol takes.
    privacy_source: ClassVar[str] = ""  #: Where the literature shows what `proof` proves.

    #: Arguments of the class that `repr` and a protocol file have only where they say anything: so
    #: those that have none stay as they were.
    added_later: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        # Of dataclasses with repr=False, which were given arguments later: as they were without
        given = given_arguments(self, [field.name for field in fields(self) if field.repr])
        told = (f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__qualname__}({', '.join(told)})"

    def __post_init__(self) -> None:
        domain = whole(self.domain, "domain", 1, self.largest_domain, what="a number of items")
        set_fields(self, domain=domain)
        _ = self.privacy  # an epsilon out of range is refused

    @cached_property
    def privacy(self) -> Privacy:
        """The claim of local privacy: every two items are neighbours.

        alpha is a rational number of at least exp(-epsilon).
        """
        return local_privacy(self.epsilon)

    @property
    def max_ratio(self) -> Fraction:
        """The largest likelihood ratio allowed: 1 / alpha, a rational at most exp(epsilon)."""
        return 1 / self.privacy.alpha

    @property
    def _protocol_name(self) -> str:
        """The name of the protocol in the parameters."""
        return type(self).__name__

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters of both halves: protocol, domain, alpha, and how reports are drawn."""
        public = {
            "protocol": self._protocol_name,
            "domain": self.domain,
            "alpha": to_text(self.privacy.alpha),
        }
        return {**public, **self._details()}

    @cached_property
    def signature(self) -> str:
        """The parameters as text, which messages and aggregates carry."""
        return canonical(self.parameters)

    @cached_property
    def wire(self) -> bytes:
        """The eight bytes that name the channel: the first of SHAKE-256 of the `signature`."""
        return sponge(self.signature, 8)

    # ----------------------------------------------------------------------------- the client half

    @property
    def takes(self) -> dict[str, Any]:
        """A description of a user's value, and of the item it becomes: see ``docs/wire.md``."""
        return {"kind": "item", "size": json_integer(self.domain)}

    @property
    def client_half(self) -> Step:
        """The steps from an item to a report, as in ``docs/wire.md``; TypeError if not stated."""
        raise unstated(self)

    def client(self) -> dict[str, Any]:
        """The client half as data, which `frequency.clients.load_client` and JavaScript run.

        Returns
        -------
        dict
            A description, as JSON has it: see ``docs/wire.md``.

        Raises
        ------
        TypeError
            A protocol of one's own does not state its `client_half`.
        """
        return client_of(self, type(self).__name__, self.takes)

    def privatize_one(self, value: Any) -> bytes | None:
        """One report of one user, by the client that devices run: the fastest way to one.

        Its law is that of `privatize`; the randomness is the operating system's.

        Parameters
        ----------
        value : object
            The user's value: an item, a record as a list or by names, or a set of items.

        Returns
        -------
        bytes or None
            A report of ``report_dtype``; None of a user who does not report.

        Raises
        ------
        RefusedValue
            A value that the protocol does not take; nothing has been drawn.
        """
        return self._device.privatize_one(value)

    @cached_property
    def _device(self) -> Client:
        return load_client(self.client())

    def privatize(self, values: npt.ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        """One private report for each user.

        Parameters
        ----------
        values : array_like
            The users' items, integers in 0 .. domain-1, one-dimensional (or a single integer).
        rng : numpy.random.Generator, optional
            None: randomness from the operating system. A Generator: reproducible, for experiments,
            *not* private against someone who knows its state, and biased if the values were drawn
            from another generator of the same seed.

        Returns
        -------
        numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        source = bit_source(rng)
        items = self.items_of(values)
        reports = np.zeros(len(items), dtype=self.report_dtype)
        for start in range(0, len(items), self.batch_size):
            self.fill(
                items[start : start + self.batch_size],
                reports[start : start + self.batch_size],
                source,
            )
        return reports

    def items_of(self, values: Any) -> Items:
        """The users' values as `fill` takes them, one row a user.

        InvalidValue names the first bad one.
        """
        items = checked_counts(values, self.domain - 1, InvalidValue)
        if items.ndim > 1:
            raise ValueError(
                f"values must be one-dimensional, one item a user, got shape {items.shape}"
            )
        return items.reshape(-1)

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype[np.void]:
        """The published layout of a report: a packed, little-endian structure."""

    @property
    def report_bits(self) -> int:
        """The information in a report, in bits. It travels as ``report_dtype.itemsize`` bytes."""
        return 8 * self.report_dtype.itemsize

    @abstractmethod
    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        """Fill in the reports of users, in place.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Shape (users,): checked items.
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``, all zeros.
        source : callable
            Gives as many random 64-bit words as it is asked for.
        """

    def _details(self) -> dict[str, Any]:
        """Return whatever else decides a report's distribution, for `parameters`: the fields."""
        # A channel should add the integers that it draws by: versions that draw otherwise are then
        # told apart
        names = (item.name for item in fields(self) if item.name not in ("domain", "epsilon"))
        return {name: str(getattr(self, name)) for name in names}

    @property
    def batch_size(self) -> int:
        """The number of users at a time with which the working arrays stay in cache."""
        return 1 << 16

    # ------------------------------------------------------------------------- how reports travel

    @property
    def transport(self) -> Transport:
        """The transport of reports, which says which are accepted."""
        return Transport(self.wire, self.signature, self.report_dtype, self.possible)

    @abstractmethod
    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Return whether some client can have sent each report: shape (users,)."""

    def single_reports_to_bytes(self, reports: Reports) -> list[bytes]:
        """Each report as it travels by itself: the channel's `wire`, then its bytes.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Returns
        -------
        list of bytes
            As devices send them, in the same order.

        Raises
        ------
        InvalidReport
            One of them is not of this channel.
        """
        return self.transport.singles(reports)

    def single_reports_from_bytes(
        self, messages: Iterable[bytes], tally: Counter[str] | None = None
    ) -> Reports:
        """The reports that came one by one.

        Parameters
        ----------
        messages : iterable of bytes
            What devices sent, or anything that came over a network instead.
        tally : collections.Counter, optional
            As of `reports_from_bytes`.

        Returns
        -------
        numpy.ndarray
            The valid reports in their order, of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally: the first thing that is wrong.
        """
        return self.transport.of_singles(messages, tally)

    def reports_to_bytes(self, reports: Reports) -> bytes:
        """A message with any number of reports; InvalidReport if one is not of this channel."""
        return self.transport.message(reports)

    def reports_from_bytes(self, message: bytes, tally: Counter[str] | None = None) -> Reports:
        """The reports in a message.

        Reports that a message announces but lacks count for at most as many as it has bytes.

        Parameters
        ----------
        message : bytes
            Made by `reports_to_bytes` of this version or an older one, or anything from a network.
        tally : collections.Counter, optional
            None: the first thing wrong raises InvalidReport. A Counter: what is wrong is left out
            and counted by reason ("malformed", "foreign", "truncated", "impossible").

        Returns
        -------
        numpy.ndarray
            The valid reports, of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally: the first thing that is wrong.
        """
        return self.transport.of_message(message, tally)

    # ----------------------------------------------------------------------------- the server half

    def aggregate(self, reports: Reports, tally: Counter[str] | None = None) -> Aggregate:
        """Reports as integers that add up.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        tally : collections.Counter, optional
            None: the first bad report raises InvalidReport. A Counter: bad reports are left out and
            counted under the reason, as in `reports_from_bytes`.

        Returns
        -------
        Aggregate
            Of the reports that are valid.

        Raises
        ------
        InvalidReport
            Without a tally: another array, or a report that no client can have sent.
        """
        reports = self.transport.accepted(reports, tally)
        return Aggregate(self.signature, len(reports), self.add_counts(reports))

    def add_counts(
        self, reports: Reports, counts: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.int64]:
        """The counts of any number of valid reports.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        counts : numpy.ndarray of int64, optional
            Shape `counts_shape`: what they are added to, in place; None: zeros.

        Returns
        -------
        numpy.ndarray of int64
            Shape `counts_shape`.
        """
        size = math.prod(self.counts_shape)
        step = max(self.batch_size, size)  # a batch costs as much as the state is large
        for start in range(0, max(len(reports), 1), step):
            part = self.counts_of(reports[start : start + step])
            if counts is None:
                counts = part
            else:
                counts += part
        assert counts is not None
        return counts

    @property
    @abstractmethod
    def counts_shape(self) -> tuple[int, ...]:
        """The shape of an aggregate's counts."""

    @abstractmethod
    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        """The counts of a batch of valid reports: of shape `counts_shape`."""

    @property
    def sign_sums(self) -> Sequence[SignSum]:
        """The counts that are sums of signs; the others are never negative."""
        return ()

    def measurements(self, reports: Reports) -> npt.NDArray[np.int8]:
        """Reports as vectors of zeros and ones that add up: what users submit to a VDAF.

        Secure aggregation gives only their sums to the server, for `aggregate_from_sums`. What the
        numbers stand for: see `frequency.core.aggregate`.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Returns
        -------
        numpy.ndarray of int8
            Shape (users, numbers): 0 or 1.

        Raises
        ------
        InvalidReport
            Another array, or a report that no client can have sent.
        """
        reports = self.transport.accepted(reports, None)
        counts = np.zeros((len(reports), math.prod(self.counts_shape)), dtype=np.int8)
        for user in range(len(reports)):
            counts[user] = self.counts_of(reports[user : user + 1]).ravel()
        return split_signs(counts, self.sign_sums)

    def aggregate_from_sums(self, sums: npt.ArrayLike, n: int) -> Aggregate:
        """The aggregate of reports of which only the sums of their `measurements` are known.

        Parameters
        ----------
        sums : array_like
            One-dimensional: of the measurements of all n reports, integers in 0 .. n.
        n : int
            How many reports were added up.

        Returns
        -------
        Aggregate
            Equal to that of the same reports.

        Raises
        ------
        IncompatibleAggregate
            Another number of sums, other numbers, or sums that no n reports have.
        """
        n = whole(n, "n", 0, (1 << 63) - 1, what="a number of reports", error=IncompatibleAggregate)
        shape = self.counts_shape
        totals = joined_signs(sums, n, math.prod(shape), self.sign_sums)
        # Whatever the signs of reports are, they might all have been +1
        for counts in (totals.drawn, totals.counts):
            aggregate = self.require_own(Aggregate(self.signature, n, counts.reshape(shape)))
        return aggregate

    def aggregate_from_bytes(self, message: bytes) -> Aggregate:
        """Read what `Aggregate.to_bytes` wrote.

        Raises
        ------
        IncompatibleAggregate
            The message is not whole, or the aggregate is of another channel or impossible.
        """
        return self.require_own(Aggregate.from_bytes(message))

    def require_own(self, aggregate: Aggregate) -> Aggregate:
        """The aggregate itself.

        Raises
        ------
        IncompatibleAggregate
            It is of another channel, or no reports have these counts.
        TypeError
            It is no aggregate.
        """
        if not isinstance(aggregate, Aggregate):
            raise TypeError(
                "expected an Aggregate, which aggregate(reports) makes, got"
                f" {type(aggregate).__name__}"
            )
        if aggregate.parameters != self.signature:
            raise IncompatibleAggregate(
                "not an aggregate of this protocol: of"
                f" {differing(aggregate.parameters, self.signature)}"
            )
        if aggregate.shape != self.counts_shape or not self.consistent(aggregate):
            raise IncompatibleAggregate(f"no {aggregate.n} reports have these counts")
        return aggregate

    def consistent(self, aggregate: Aggregate) -> bool:
        """Whether reports may have these counts: here that they are counts of kinds of reports."""
        return bool((aggregate.counts >= 0).all()) and exact_sum(aggregate.counts) == aggregate.n

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        """The counts of n reports as `frequency.storage.collector_checks` compares them.

        Parameters
        ----------
        n : int
            The number of reports.
        counts : numpy.ndarray of int64
            Shape `counts_shape`. By default they are those of kinds of reports.

        Returns
        -------
        list of Sample
            What is known of how the counts vary from one sample of users to another.

        Raises
        ------
        TypeError
            It is not known.
        """
        if int(counts.sum()) != n:
            raise TypeError(
                f"{type(self).__name__} does not say how its counts vary from one sample of users"
                " to another"
            )
        return [cells(n, counts)]

    def simulate(
        self,
        counts: npt.ArrayLike,
        rng: np.random.Generator | None = None,
        values: npt.ArrayLike | None = None,
    ) -> Aggregate:
        """An aggregate with the distribution of that of the reports of so many users.

        For experiments: no user's value has to exist. Where theory allows the cost does not depend
        on the number of users.

        Parameters
        ----------
        counts : array_like
            Shape (values,), integers >= 0: how many users have each value. With ``values``
            one number for all will do.
        rng : numpy.random.Generator, optional
            A Generator, or None for a fresh one.
        values : array_like, optional
            The values, as `privatize` takes them; None: all items ``0 .. domain-1``.

        Returns
        -------
        Aggregate
            Of as many reports as the counts sum up to.

        Raises
        ------
        InvalidValue
            Names the first bad value.
        ValueError
            Another shape, negative counts, a sum of 2^63 and more, or a domain of more than 2^26
            items of which none are named.
        """
        bit_source(rng)  # refuses what is not a generator
        items = self._every_item() if values is None else self.items_of(values)
        user_counts = np.asarray(counts)
        if not user_counts.size:
            user_counts = user_counts.astype(np.int64)  # an empty list is one of floats
        if (
            isinstance(counts, np.ma.MaskedArray)  # whose masked counts would pass every check
            or user_counts.shape not in ((len(items),), () if values is not None else None)
            or user_counts.dtype.kind not in "iu"
            or (user_counts < 0).any()
            or exact_sum(user_counts) * (1 if user_counts.ndim else len(items)) >= 1 << 63
        ):
            raise ValueError(
                f"counts must be {len(items)} integers >= 0 with a sum below 2^63, got"
                f" {user_counts.dtype} of shape {user_counts.shape}"
            )
        user_counts = np.broadcast_to(user_counts.astype(np.int64), (len(items),))
        some = user_counts > 0
        generator = np.random.default_rng() if rng is None else rng
        drawn = self.simulated_counts(items[some], user_counts[some], generator)
        return Aggregate(self.signature, int(user_counts.sum()), drawn)

    def _every_item(self) -> Items:
        """All items, as `fill` takes them; ValueError for more than 2^26."""
        if self.domain > LARGEST_LIST:
            raise ValueError(
                f"{type(self).__name__} has too many items to list: give the values that occur"
            )
        return np.arange(self.domain)

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Counts with the distribution of those of so many users with these items.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Checked items, one row each, perhaps some more than once.
        counts : numpy.ndarray of int64
            Shape (items,): how many users have each item, at least 1.
        rng : numpy.random.Generator
            The randomness.

        Returns
        -------
        numpy.ndarray of int64
            Shape `counts_shape`.
        """
        # By default user by user, in batches: no shortcut has the same distribution
        ends, source = np.cumsum(counts), bit_source(rng)
        total = np.zeros(self.counts_shape, dtype=np.int64)
        users = int(ends[-1]) if len(ends) else 0
        for start in range(0, users, self.batch_size):
            batch = np.arange(start, min(start + self.batch_size, users))
            reports = np.zeros(len(batch), dtype=self.report_dtype)
            self.fill(items[np.searchsorted(ends, batch, side="right")], reports, source)
            self.add_counts(reports, total)
        return total

    def _held(self, items: Items, counts: Items) -> Items:
        """Return the number of users with each item of the domain, from the counts of some."""
        user_counts = np.zeros(self.domain, dtype=np.int64)
        np.add.at(user_counts, items, counts)
        return user_counts

    @abstractmethod
    def audit(self) -> Audit:
        """The exact worst likelihood ratio of what is sampled, and the one allowed.

        The ratio is the largest Pr[report | value] / Pr[report | other value].

        ``audit().allowed`` is a rational at most exp(epsilon), by directed rounding;
        ``audit().holds`` compares exactly.
        """

    def proof(self) -> PrivacyProof:
        """Prove that reports are private, for every alpha in (0, 1): the proof can be checked.

        The likelihoods are rational functions of alpha, those of the law before its rounding to
        units of 2^-64, which is for `audit`. The choices by epsilon, as of a hash's range, stay.

        Returns
        -------
        PrivacyProof
            ``proof().holds`` checks every step anew; ``str`` is a short derivation.

        Raises
        ------
        TypeError
            The channel states none.
        """
        raise TypeError(f"{type(self).__name__} does not state the likelihoods of its reports")

    # What public coins ask, such as those of `frequency.heavy.OneBit`: how likely each report is,
    # relative to that of a user without an item

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        """Pr[report | item] / Pr[report | no item] for each kind of report, the least first.

        TypeError if the channel, or a part of it, does not state them.
        """
        raise unknown(self)

    def _require_likelihoods(self) -> None:
        """Raise UnstatedLikelihoods unless the channel has some of its own."""
        if type(self).likelihoods is Channel.likelihoods:
            raise UnstatedLikelihoods(type(self).__name__)

    def drawn(self, items: Items, source: BitSource) -> Items:
        """The items that users' reports are about, where users draw these themselves.

        By default the same, one row a user.
        """
        # By default the same
        return items

    def blank(self, coins: Coins) -> Reports:
        """The reports of users without an item: one for each of the coins' users."""
        raise unknown(self)

    def likelihood(self, reports: Reports, items: Items) -> Items:
        """Return which of the likelihoods each report has under an item.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        items : numpy.ndarray of int64
            Shape (users,): an item for each report.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,): places among the `likelihoods`, numbered on from kind to kind of report.
        """
        raise unknown(self)

    @property
    def fingerprints(self) -> Fingerprints:
        """The law of reports of users with all values equally often; TypeError if not stated."""
        raise unknown(self)

    # Public coins may draw several reports at a time, so that a user with more than one bit chooses
    # among them. By default there is no more than one.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        """Return the menus of up to ``largest`` candidates, one for each kind of report."""
        return (Menu(1, 0, 1),) * len(self.likelihoods)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        """The candidates of some numbers, of those that go with blank reports.

        Candidate 0 is the report itself; over the coins every candidate is distributed as it is.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,): blank reports.
        numbers : numpy.ndarray of int64
            Shape (users,), each 0 or more; those beyond the menu count on from its beginning.
        largest : int
            As for `menus`.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        """
        return reports

    def coins_likelihood(self, coins: Coins, items: Items) -> Items:
        """`likelihood` of the blank reports that these coins draw."""
        return self.likelihood(self.blank(coins), items)

    # Among the reports of others: see `frequency.core.blanket`. By default there is one kind of
    # report, with two likelihoods. As those of an item have mean 1, all items then make as many
    # blank reports likely.

    def _likely_together(self, items: Items) -> Fraction:
        """The exact probability that a blank report is likely under all of some different items.

        Shapes: `items` (items, ...), at least one. UnstatedLikelihoods where it is not stated.
        """
        raise UnstatedLikelihoods(type(self).__name__)

    @property
    def _least_together(self) -> Fraction:
        """The least probability that a blank report is likely under two items, or a lower bound.

        By default that of items 0 and 1, for channels to which all pairs are alike.
        """
        # All pairs are alike to most channels
        return self._likely_together(np.arange(2))

    @property
    def _always_likely(self) -> Fraction:
        """The probability that a blank report is likely under all items, or less."""
        return self._likely_together(self._every_item()) if self.domain == 2 else Fraction(0)

    def joint_law(self, items: Items) -> JointLaw:
        """The exact law of the likelihoods of a report under some items, which may repeat.

        They are relative to one law of reports for all items; UnstatedLikelihoods where the channel
        does not state it. Shapes: `items` (items, ...), at least one.
        """
        different, places = np.unique(items, axis=0, return_inverse=True)
        low, high = self.low_and_high
        law = of_two_likelihoods(
            len(different), low, high, lambda chosen: self._likely_together(different[list(chosen)])
        )
        return joint_law_of(
            (probability, [likelihoods[place] for place in places.ravel().tolist()])
            for probability, likelihoods in law
        )

    def dominating_law(self) -> PairLaw:
        """A pair law above those of all pairs of items in convex order, equal ones included.

        It is that of a blanket; UnstatedLikelihoods where the channel does not state enough.
        """
        self._require_likelihoods()
        if self.domain == 1:
            return ALIKE
        always = self._always_likely
        return two_likelihoods(*self.low_and_high, max(self._least_together, always), always)

    @property
    def low_and_high(self) -> tuple[Fraction, Fraction]:
        """The two likelihoods; UnstatedLikelihoods if there are others."""
        self._require_likelihoods()
        if len(self.likelihoods) != 1 or len(self.likelihoods[0]) != 2:
            raise UnstatedLikelihoods(type(self).__name__)
        low, high = self.likelihoods[0]
        return low, high

    def _attack_items(self) -> list[Items]:
        """Items that tell a user apart well: two of the user, and the one that all others hold."""
        last = min(self.domain, 1 << 63) - 1
        if last < 2:
            return [np.array([0, 1, other]) for other in range(2 * last)]
        half = (last + 1) // 2
        return [np.array(items) for items in ((0, last, half), (0, half, last), (0, 1, 2))]

    # What `mechdesign.accounting.shuffled` asks

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        """Return laws that compare the reports of any two values with a blanket that hides them.

        Returns
        -------
        sequence of PairLaw or PairLaws
            For any two values, whatever others hold, a shuffled collection tells at most the
            largest bound that one of these gives: they may be laws above those of the pairs. Empty
            where there are no two values.

        Raises
        ------
        UnstatedLikelihoods
            The channel states none.
        """
        self._require_likelihoods()
        return (self.dominating_law(),) if self.domain > 1 else ()

    def attack_laws(self) -> Sequence[PairLaw]:
        """Return laws that compare reports of two values with those of users who hold a third.

        Returns
        -------
        sequence of PairLaw
            Each exact for some three values that exist, chosen to reveal a user well. Empty where
            there are no two values, or no such law is known.

        Raises
        ------
        UnstatedLikelihoods
            The channel states none.
        """
        self._require_likelihoods()
        laws = (attack_law(self.joint_law(items)) for items in self._attack_items())
        return tuple(dict.fromkeys(laws))


def forwarded(path: str) -> Any:
    """Return an attribute or a method of a class that is the one at a path, as "inner.fill"."""
    return property(attrgetter(path))


def unknown(channel: Channel) -> TypeError:
    """The error of channels that do not state how likely each report is."""
    return TypeError(f"{type(channel).__name__} does not state the probabilities of its reports")


def client_of(channel: Channel, protocol: str, takes: dict[str, Any]) -> dict[str, Any]:
    """The client half of a protocol over a channel, which takes these values, as data."""
    content = {
        "format": "mechdesign.client",
        "version": 1,
        "protocol": protocol,
        "wire": channel.wire.hex(),
        "bytes": channel.report_dtype.itemsize,
        "epsilon": rounded_up(Fraction(channel.privacy.epsilon), 4),
        "odds": rounded_up(channel.max_ratio, 4),
        "takes": takes,
        "report": channel.client_half,
    }
    return signed(content)


def smallest_integer(largest: int) -> str:
    """The numpy type of the narrowest unsigned integer that holds 0 .. largest, little-endian."""
    return f"<u{width_of(largest)}"
