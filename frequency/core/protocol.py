"""Protocols: what users and server do when a question is asked over a channel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.clients.device import Client, load_client
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Channel, Reports, client_of
from frequency.core.transport import Step
from mechdesign import Audit, Privacy
from mechdesign.accounting.pair_law import PairLaw, PairLaws
from mechdesign.symbolic import PrivacyProof


class Protocol(ABC):
    """The methods of a `Channel`, for values that are first turned into its items."""

    #: Where the literature shows what `proof` proves; "": where it does of the channel.
    privacy_source: ClassVar[str] = ""
    added_later: ClassVar[tuple[str, ...]] = ()  #: As of `Channel`.

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The channel that makes a report of a user's item."""

    @property
    def takes(self) -> dict[str, Any]:
        """A description of a user's value, and of the item it becomes: see ``docs/wire.md``."""
        return self.channel.takes

    @property
    def client_half(self) -> Step:
        """The steps from an item to a report: see `Channel.client_half`."""
        return self.channel.client_half

    @property
    def wire(self) -> bytes:
        """The eight bytes that name the protocol in front of a single report."""
        return self.channel.wire

    def client(self) -> dict[str, Any]:
        """The client half as data: see `Channel.client`."""
        return client_of(self.channel, type(self).__name__, self.takes)

    def privatize_one(self, value: Any) -> bytes | None:
        """One report of one user, by the client that devices run: see `Channel.privatize_one`."""
        return self._device.privatize_one(value)

    @cached_property
    def _device(self) -> Client:
        return load_client(self.client())

    def items_of(self, values: Any) -> Any:
        """The users' values as those of the channel; InvalidValue names the first bad one."""
        return values

    def privatize(self, values: Any, rng: np.random.Generator | None = None) -> Reports:
        """One private report for each user: see `Channel.privatize`.

        Parameters
        ----------
        values : array_like
            The users' values, as the protocol takes them.
        rng : numpy.random.Generator, optional
            None: randomness from the operating system. A Generator: reproducible, for experiments,
            *not* private against someone who knows its state.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        return self.channel.privatize(self.items_of(values), rng)

    def aggregate(self, reports: Reports, tally: Counter[str] | None = None) -> Aggregate:
        """Reports as integers that add up: see `Channel.aggregate`.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        tally : collections.Counter, optional
            None: the first bad report raises InvalidReport. A Counter: bad reports are left out and
            counted under the reason.

        Returns
        -------
        Aggregate
            Of the reports that are valid.

        Raises
        ------
        InvalidReport
            Without a tally: another array, or a report that no client can have sent.
        """
        return self.channel.aggregate(reports, tally)

    def aggregated(self, reports: Reports | Aggregate) -> Aggregate:
        """Reports as integers, or the aggregate itself if it is of this protocol."""
        if isinstance(reports, Aggregate):
            return self.channel.require_own(reports)
        return self.aggregate(reports)

    def simulate(
        self,
        counts: npt.ArrayLike,
        rng: np.random.Generator | None = None,
        values: Any = None,
    ) -> Aggregate:
        """An aggregate with the distribution of that of the reports of so many users.

        For experiments: no user has to exist.

        Parameters
        ----------
        counts : array_like
            Shape (values,), integers >= 0: how many users have each value. With ``values``
            one number for all will do.
        rng : numpy.random.Generator, optional
            A Generator, or None for a fresh one.
        values : array_like, optional
            The values, as `privatize` takes them; None: all items ``0 .. domain-1`` of the channel.

        Returns
        -------
        Aggregate
            Of as many reports as the counts sum up to.

        Raises
        ------
        InvalidValue
            Names the first bad value.
        ValueError
            Other counts, or more than 2^26 items of which none are named.
        """
        given = None if values is None else self.items_of(values)
        return self.channel.simulate(counts, rng, given)

    def single_reports_to_bytes(self, reports: Reports) -> list[bytes]:
        """See `Channel.single_reports_to_bytes`."""
        return self.channel.single_reports_to_bytes(reports)

    def single_reports_from_bytes(
        self, messages: Iterable[bytes], tally: Counter[str] | None = None
    ) -> Reports:
        """The reports that came one by one: see `Channel.single_reports_from_bytes`.

        Parameters
        ----------
        messages : iterable of bytes
            What devices sent, or anything that came over a network instead.
        tally : collections.Counter, optional
            None: the first thing wrong raises InvalidReport. A Counter: what is wrong is left out
            and counted under the reason.

        Returns
        -------
        structured numpy.ndarray
            The valid reports, of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally: the first thing that is wrong.
        """
        return self.channel.single_reports_from_bytes(messages, tally)

    def reports_to_bytes(self, reports: Reports) -> bytes:
        """See `Channel.reports_to_bytes`."""
        return self.channel.reports_to_bytes(reports)

    def reports_from_bytes(self, message: bytes, tally: Counter[str] | None = None) -> Reports:
        """The reports in a message: see `Channel.reports_from_bytes`.

        Parameters
        ----------
        message : bytes
            What `reports_to_bytes` made, or anything that came over a network instead.
        tally : collections.Counter, optional
            None: the first thing wrong raises InvalidReport. A Counter: what is wrong is left out
            and counted under the reason.

        Returns
        -------
        structured numpy.ndarray
            The valid reports, of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally: the first thing that is wrong.
        """
        return self.channel.reports_from_bytes(message, tally)

    def aggregate_from_bytes(self, message: bytes) -> Aggregate:
        """See `Channel.aggregate_from_bytes`."""
        return self.channel.aggregate_from_bytes(message)

    def measurements(self, reports: Reports) -> npt.NDArray[np.int8]:
        """Reports as vectors of zeros and ones that add up: see `Channel.measurements`.

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
        return self.channel.measurements(reports)

    def aggregate_from_sums(self, sums: npt.ArrayLike, n: int) -> Aggregate:
        """The aggregate of n reports from the sums of their measurements.

        See `Channel.aggregate_from_sums`.

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
        return self.channel.aggregate_from_sums(sums, n)

    def audit(self) -> Audit:
        """The exact worst ratio of what is sampled, for any two values: see `Channel.audit`."""
        return self.channel.audit()

    def proof(self) -> PrivacyProof:
        """Prove that reports are private, for every alpha in (0, 1): see `Channel.proof`."""
        return self.channel.proof().called(type(self).__name__, self.privacy_source)

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        """Return laws of the reports of any two values: see `Channel.pair_laws`."""
        return self.channel.pair_laws()

    def attack_laws(self) -> Sequence[PairLaw]:
        """Return such laws where all others hold one value: see `Channel.attack_laws`."""
        return self.channel.attack_laws()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that client and server must agree on: see `Channel.parameters`."""
        return self.channel.parameters

    @property
    def privacy(self) -> Privacy:
        """The claim: local privacy, in which every two values are neighbours."""
        return self.channel.privacy

    @property
    def max_ratio(self) -> Fraction:
        """The largest likelihood ratio allowed: see `Channel.max_ratio`."""
        return self.channel.max_ratio

    @property
    def report_dtype(self) -> np.dtype[np.void]:
        """The published layout of a report: see `Channel.report_dtype`."""
        return self.channel.report_dtype

    @property
    def report_bits(self) -> int:
        """The information in a report, in bits."""
        return self.channel.report_bits


def channel_of(protocol: Any) -> Channel:
    """Return the channel of a protocol's reports; TypeError for what is no protocol."""
    if isinstance(protocol, Channel):
        return protocol
    if isinstance(protocol, Protocol):
        return protocol.channel
    raise TypeError(
        f"expected a protocol, such as frequency.HRR(1024, 1.0), got {type(protocol).__name__}"
    )
