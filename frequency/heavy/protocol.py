"""HeavyHitterProtocol: the base of protocols that list frequent items."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.core.channel import Reports, local_privacy
from frequency.core.deployable import json_integer
from frequency.core.protocol import Protocol
from frequency.heavy.found import Found
from frequency.heavy.universe import Universe
from frequency.oracles.count_mean_sketch import checked_size
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Words
from mechdesign.base.numbers import Rational, whole
from mechdesign.base.text import shown


@dataclass(frozen=True)
class HeavyHitterProtocol(Protocol):
    """A protocol that lists the frequent items of a universe too large to list.

    Every user has an integer or a string, and sends one report.

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64: items are the integers 0 .. 2^bits - 1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.

    Raises
    ------
    ValueError
        What the protocol cannot do.
    """

    bits: int
    epsilon: float | Rational
    text: bool = False

    longest_text: ClassVar[int] = 8
    """The length in bytes of the longest strings that the protocol takes."""

    def __post_init__(self) -> None:
        set_fields(self, bits=self.universe.bits)
        if self.bits > 8 * self.longest_text:
            raise ValueError(
                f"{type(self).__name__} takes strings of at most {self.longest_text} bytes, which"
                f" are {8 * self.longest_text} bits, got {self.bits} bits; PrefixExtension takes"
                f" longer ones"
            )
        if hasattr(self, "seed"):
            set_fields(self, seed=checked_size("seed", self.seed, 0))
        local_privacy(self.epsilon)  # refuses what is no epsilon, before sizes are computed from it
        _ = self.channel

    @cached_property
    def universe(self) -> Universe:
        """The universe of items."""
        return Universe(self.bits, self.text)

    @property
    def takes(self) -> dict[str, Any]:
        if self.universe.spelling is not None:
            return self.universe.spelling.described
        if self.text:
            return {"kind": "string", "bytes": self.bits // 8}
        return {"kind": "item", "size": json_integer(self.universe.size)}

    def items_of(self, values: Any) -> Words:
        return self.universe.words(values)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters that client and server must agree on."""
        return {
            "protocol": type(self).__name__,
            "text": self.text,
            "channel": self.channel.parameters,
        }

    def find(
        self,
        reports: Reports | Aggregate,
        k: int | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
        population: int | None = None,
    ) -> Found:
        """Return the most frequent items.

        Parameters
        ----------
        reports : structured numpy.ndarray or Aggregate
            Reports, or what they were aggregated to.
        k : int, optional
            At most so many items, at least 1. Protocols over prefixes find some ten thousand of
            long items at most.
        threshold : float, optional
            Only items whose estimated frequency is at least this fraction of the users. Neither: a
            threshold that noise alone would exceed nowhere with probability ``confidence``
            (`Found.noise`).
        confidence : float, default 0.95
            Of the intervals and of the default threshold, strictly between 0 and 1.
        population : int, optional
            How many users there are, if only a random part of them reported; None: all did.

        Returns
        -------
        Found
            The items, most frequent first, with their errors and what may be missing.

        Raises
        ------
        ValueError
            For a k, threshold or confidence out of range, before any work.
        InvalidReport, IncompatibleAggregate
            For what is not of this protocol.
        """
        check_request(k, threshold, confidence)
        aggregate = self.aggregated(reports)
        users = aggregate.n if population is None else population
        return self._find(aggregate, users, k, threshold, confidence)

    @abstractmethod
    def _find(
        self,
        aggregate: Aggregate,
        population: int,
        k: int | None,
        threshold: float | None,
        confidence: float,
    ) -> Found:
        """Return the same, for checked arguments and reports from a part of a ``population``."""


def check_request(k: int | None, threshold: float | None, confidence: float) -> None:
    """Refuse what `HeavyHitterProtocol.find` cannot be asked for."""
    if k is not None:
        whole(k, "k", 1, what="a number of items")
    if threshold is not None and not (
        isinstance(threshold, (int, float, np.number)) and 0 <= threshold <= 1
    ):
        raise ValueError(
            f"threshold must be a fraction of the users, 0 to 1, got {shown(threshold)}"
        )
    if not isinstance(confidence, (int, float, np.number)) or not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {shown(confidence)}")
