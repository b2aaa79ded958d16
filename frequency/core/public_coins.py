"""Channels whose reports public coins can draw for users of whom nothing is known."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from frequency.algebra.hash_functions import Coins
from frequency.core.channel import Channel, Reports
from mechdesign._support.arrays import Items


class PublicCoinChannel(Channel):
    """Channels that state how likely each report is, relative to that of a user without an item.

    `frequency.heavy.OneBit` draws reports by public coins, and users tell whether to keep theirs.
    """

    @property
    @abstractmethod
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        """The values of Pr[report | item] / Pr[report | no item] for each kind of report.

        The least comes first.

        TypeError if a part of the channel does not state them.
        """

    @abstractmethod
    def blank(self, coins: Coins) -> Reports:
        """The reports of users without an item: one for each of the coins' users."""

    @abstractmethod
    def likelihood(self, reports: Reports, items: Items) -> Items:
        """Which of the likelihoods each report has under an item.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        items : numpy.ndarray of int64
            Shape (users,): an item for each report.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,): places among the `likelihoods`. Those of the first kind of report are
            numbered first, then those of the next.
        """

    def coins_likelihood(self, coins: Coins, items: Items) -> Items:
        """`likelihood` of the blank reports that these coins draw."""
        return self.likelihood(self.blank(coins), items)


def public_coin_channel(channel: Channel) -> PublicCoinChannel:
    """The channel itself; TypeError if it does not state the likelihoods of its reports."""
    if not isinstance(channel, PublicCoinChannel):
        raise TypeError(f"{type(channel).__name__} does not state the probabilities of its reports")
    _ = channel.likelihoods  # of all of its parts
    return channel
