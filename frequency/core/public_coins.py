"""Channels whose reports public coins can draw for users of whom nothing is known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from frequency.algebra.hash_functions import Coins
from frequency.core.blanket import (
    ALIKE,
    JointLaw,
    attack_law,
    joint_law_of,
    of_two_likelihoods,
    two_likelihoods,
)
from frequency.core.channel import Channel, Reports
from mechdesign.accounting.pair_law import PairLaw, PairLaws
from mechdesign.base.linear_algebra import Items
from mechdesign.base.randomness import BitSource
from mechdesign.exceptions import UnstatedLikelihoods

Number = TypeVar("Number", int, Fraction)


class Menu(NamedTuple):
    """Some reports of one kind, of which every item makes about as many likely as any other.

    Attributes
    ----------
    candidates : int
        How many reports, at least 1. If there are several, their likelihoods have two values.
    least, most : int
        How many of them an item makes likely, the others being unlikely.
    """

    candidates: int
    least: int
    most: int

    @classmethod
    def of(cls, alternatives: int, likely: int, largest: int) -> Menu:
        """The first of some alternatives, of all of which every item makes as many likely.

        Parameters
        ----------
        alternatives : int
            How many there are in all.
        likely : int
            How many of them every item makes likely.
        largest : int
            How many there may be on the menu.

        Returns
        -------
        Menu
            With all bounds that follow.
        """
        if largest == 1:
            return cls(1, 0, 1)
        candidates = min(alternatives, largest)
        least = max(0, candidates - (alternatives - likely))
        return cls(candidates, least, min(candidates, likely))

    def ends(self, low: Number, high: Number) -> tuple[Number, Number]:
        """The least and the largest sum over the menu of numbers ``low`` and ``high``."""
        return (
            self.least * high + (self.candidates - self.least) * low,
            self.most * high + (self.candidates - self.most) * low,
        )


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

    def drawn(self, items: Items, source: BitSource) -> Items:
        """The items that users' reports are about, where users draw these themselves.

        Parameters
        ----------
        items : numpy.ndarray of int64
            One row a user, as of `fill`.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        numpy.ndarray of int64
            One row a user, as `likelihood` takes them: by default the same.
        """
        return items

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

    # Public coins may draw several reports at a time, so that a user with more than one bit chooses
    # among them. By default there is no more than one.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        """What is known of the candidates for each kind of report.

        Parameters
        ----------
        largest : int
            How many candidates there may be, at least 1.

        Returns
        -------
        tuple of Menu
            One for each of the `likelihoods`.
        """
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

    def likely_together(self, items: Items) -> Fraction:
        """The probability that a blank report is likely under all of some items.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Different items, at least one, one row each.

        Returns
        -------
        Fraction
            Exact.

        Raises
        ------
        UnstatedLikelihoods
            The channel does not state it.
        """
        raise UnstatedLikelihoods(type(self).__name__)

    @property
    def least_together(self) -> Fraction:
        """The least probability that a blank report is likely under two items, or less.

        By default that of items 0 and 1, for channels to which all pairs are alike.
        """
        return self.likely_together(np.arange(2))

    @property
    def always_likely(self) -> Fraction:
        """The probability that a blank report is likely under all items, or less."""
        return self.likely_together(self.every_item()) if self.domain == 2 else Fraction(0)

    def joint_law(self, items: Items) -> JointLaw:
        """The law of the likelihoods of a report under some items.

        Parameters
        ----------
        items : numpy.ndarray of int64
            As of `items_of`, at least one row, not all of which need be different.

        Returns
        -------
        JointLaw
            Exact; the likelihoods are relative to the same law of reports for all items.

        Raises
        ------
        UnstatedLikelihoods
            The channel does not state it.
        """
        different, places = np.unique(items, axis=0, return_inverse=True)
        low, high = self.low_and_high
        found = of_two_likelihoods(
            len(different), low, high, lambda chosen: self.likely_together(different[list(chosen)])
        )
        return joint_law_of(
            (probability, [likelihoods[place] for place in places.ravel().tolist()])
            for probability, likelihoods in found
        )

    def dominating_law(self) -> PairLaw:
        """A pair law above those of all pairs of items in convex order, equal ones included.

        Returns
        -------
        PairLaw
            Under a blanket.

        Raises
        ------
        UnstatedLikelihoods
            The channel does not state enough.
        """
        if self.domain == 1:
            return ALIKE
        always = self.always_likely
        return two_likelihoods(*self.low_and_high, max(self.least_together, always), always)

    @property
    def low_and_high(self) -> tuple[Fraction, Fraction]:
        """The two likelihoods; UnstatedLikelihoods if there are others."""
        if len(self.likelihoods) != 1 or len(self.likelihoods[0]) != 2:
            raise UnstatedLikelihoods(type(self).__name__)
        low, high = self.likelihoods[0]
        return low, high

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        return (self.dominating_law(),) if self.domain > 1 else ()

    def attack_items(self) -> list[Items]:
        """Items that tell a user apart well.

        Returns
        -------
        list of numpy.ndarray of int64
            Each of three rows: two items of the user, and the one that all others hold.
        """
        last = min(self.domain, 1 << 63) - 1
        if last < 2:
            return [np.array([0, 1, other]) for other in range(2 * last)]
        half = (last + 1) // 2
        return [np.array(items) for items in ((0, last, half), (0, half, last), (0, 1, 2))]

    def attack_laws(self) -> tuple[PairLaw, ...]:
        laws = (attack_law(self.joint_law(items)) for items in self.attack_items())
        return tuple(dict.fromkeys(laws))


def public_coin_channel(channel: Channel) -> PublicCoinChannel:
    """The channel itself; TypeError if it does not state the likelihoods of its reports."""
    if not isinstance(channel, PublicCoinChannel):
        raise TypeError(f"{type(channel).__name__} does not state the probabilities of its reports")
    _ = channel.likelihoods  # of all of its parts
    return channel


def stating(channel: Channel) -> PublicCoinChannel:
    """The channel itself; UnstatedLikelihoods if it is none that has joint laws."""
    if not isinstance(channel, PublicCoinChannel):
        raise UnstatedLikelihoods(type(channel).__name__)
    return channel
