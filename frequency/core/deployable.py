"""Deployable: what runs on devices that have no packages, by a description that is data."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from frequency.clients.device import Client, load_client
from frequency.core.aggregate import canonical
from mechdesign import Privacy
from mechdesign.base.text import rounded_up

_EXACT = 1 << 53
"""Larger integers are text in JSON, as JavaScript has floats there."""


Step: TypeAlias = dict[str, Any]
"""A step of a description: its name under "do", and what it needs."""


class Deployable(ABC):
    """What has a client half: channels and protocols."""

    @property
    @abstractmethod
    def takes(self) -> dict[str, Any]:
        """What a user's value is, and how it becomes an item: see ``docs/wire.md``."""

    @property
    @abstractmethod
    def client_half(self) -> Step:
        """How an item becomes a report, as the steps of a description: see ``docs/wire.md``.

        TypeError where it is not stated.
        """

    @property
    @abstractmethod
    def wire(self) -> bytes:
        """The eight bytes that name the protocol in front of a single report."""

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype[np.void]:
        """The published layout of a report: a packed, little-endian structure."""

    @property
    @abstractmethod
    def max_ratio(self) -> Fraction:
        """The largest likelihood ratio allowed: 1 / alpha, a rational at most exp(epsilon)."""

    @property
    @abstractmethod
    def privacy(self) -> Privacy:
        """The claim."""

    def client(self) -> dict[str, Any]:
        """The client half as data, which `frequency.clients.load_client` and JavaScript run.

        Returns
        -------
        dict
            A description, as JSON has it: see ``docs/wire.md``.

        Raises
        ------
        TypeError
            A protocol of one's own that does not state its `client_half`.
        """
        content = {
            "format": "mechdesign.client",
            "version": 1,
            "protocol": type(self).__name__,
            "wire": self.wire.hex(),
            "bytes": self.report_dtype.itemsize,
            "epsilon": rounded_up(Fraction(self.privacy.epsilon), 4),
            "odds": rounded_up(self.max_ratio, 4),
            "takes": self.takes,
            "report": self.client_half,
        }
        return {**content, "digest": f"shake256:{sponge(canonical(content), 32).hex()}"}

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


def unstated(channel: object) -> TypeError:
    """The error of channels of one's own without a description."""
    return TypeError(f"{type(channel).__name__} does not state its client half as steps")


def sponge(text: str, size: int) -> bytes:
    """The first bytes of SHAKE-256 of a text."""
    return hashlib.shake_256(text.encode()).digest(size)


def json_integer(value: int) -> int | str:
    """An integer as descriptions hold it: as text where JavaScript would round it."""
    return int(value) if abs(value) < _EXACT else str(int(value))


def json_integers(values: Iterable[int]) -> list[int | str]:
    """Integers as descriptions hold them."""
    return [json_integer(value) for value in values]


def width_of(largest: int) -> int:
    """The bytes of the narrowest unsigned integer that holds 0 .. largest."""
    return next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))


def coin(values: range) -> dict[str, Any]:
    """A public coin that is each of some numbers with the same probability."""
    count, width = json_integer(len(values)), width_of(values.stop - 1)
    return {"start": values.start, "count": count, "width": width}


def tossed(
    coins: Sequence[dict[str, Any]], cell: list[Any], then: dict[str, Any]
) -> dict[str, Any]:
    """The step that tosses public coins, and goes on with what they make of the item."""
    return {"do": "public", "coins": list(coins), "distinct": False, "cell": cell, "then": then}


def lies(outcomes: int, lie: int, width: int = 1, **more: Any) -> Step:
    """The step that tells one of so many outcomes by randomised response."""
    told = {"outcomes": outcomes, "lie": json_integer(lie), "width": width}
    return {"do": "lie", **told, "field": None, "signs": 0, **more}
