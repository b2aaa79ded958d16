"""Transport: how reports travel, one by one or many in a message, and what of them is accepted.

A single report is the eight bytes that name its channel and the payload; a batch is a message with
a header and any number of payloads. What arrives is checked byte by byte: what is malformed, cut
short, of another channel, or such that no client can have sent it, is an error or counted.
``docs/wire.md`` has both byte by byte.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from frequency.clients.device import digest_of
from frequency.core.aggregate import REPORTS, pack, unpack
from frequency.exceptions import InvalidReport
from mechdesign.base import TEXT, matching, shown
from mechdesign.base import reason as plainly

#: A structured array, one row a user, of the channel's ``report_dtype``.
Reports: TypeAlias = npt.NDArray[np.void]

WIRE = 8  #: How many bytes name the channel in front of a single report.

ID = matching("an id of 32 hexadecimal digits", "[0-9a-f]{32}")  #: What `new_id` makes.

# What the header of a batch says beside its version and kind.
_HEADERS = {
    1: {"parameters": TEXT, "count": REPORTS},
    2: {"protocol": TEXT, "count": REPORTS, "id": ID},
}


@dataclass(frozen=True)
class Batch:
    """The content of a message of reports, as its header states it."""

    count: int  #: How many reports were announced.
    #: The random number by which it is known wherever it is copied to; None in version 1.
    id: str | None
    foreign: str | None  #: Whose reports they are, if not this channel's.
    body: memoryview  #: What follows the header.


def new_id() -> str:
    """A random number by which reports are known wherever they are copied to: 32 digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Transport:
    """The transport of the reports of a channel."""

    wire: bytes  #: What names the channel in front of a single report.
    signature: str  #: The channel's parameters as text, which batches of version 1 carry.
    dtype: np.dtype[np.void]  #: The layout of a report.
    #: Which reports some client can have sent: shape (users,), of reports of this shape.
    possible: Callable[[Reports], npt.NDArray[np.bool_]]

    # ----------------------------------------------------------------------------------- one by one

    def singles(self, reports: Reports) -> list[bytes]:
        """Each report as it travels by itself: the channel's `wire`, then its bytes."""
        content = self.accepted(reports, None).tobytes()
        size = self.dtype.itemsize
        return [self.wire + content[at : at + size] for at in range(0, len(content), size)]

    def of_singles(self, messages: Iterable[bytes], tally: Counter[str] | None) -> Reports:
        """The reports that came one by one: see `Channel.single_reports_from_bytes`."""
        kept = []
        for k, message in enumerate(messages):
            reason = self.wrong_of_single(message)
            if reason is None:
                kept.append(message[WIRE:])
            else:
                self.refuse(reason, 1, f"message {k} is {reason}: {shown(message)}", tally)
        return self.accepted(np.frombuffer(b"".join(kept), dtype=self.dtype), tally)

    def wrong_of_single(self, message: bytes) -> str | None:
        """Return why these bytes are no report by itself, in a word; None: they may be one."""
        if len(message) < WIRE:
            return "malformed"
        if message[:WIRE] != self.wire:
            return "foreign"
        beyond = len(message) - WIRE - self.dtype.itemsize
        return "malformed" if beyond > 0 else "truncated" if beyond else None

    # -------------------------------------------------------------------------------------- batches

    def message(self, reports: Reports) -> bytes:
        """A message with any number of reports; InvalidReport if one is not of the channel."""
        self.accepted(reports, None)
        return pack(self.batch_header(len(reports)), reports.tobytes())

    def batch_header(self, count: int) -> dict[str, int | str]:
        """Return the header of a new batch, which holds so many reports."""
        return {
            "version": 2,
            "kind": "reports",
            "protocol": self.wire.hex(),
            "count": count,
            "id": new_id(),
        }

    def batch(self, message: bytes | memoryview) -> Batch:
        """Read the header of a message of reports; ValueError if it does not begin as one."""
        header, body = unpack(message, "reports", _HEADERS)
        if header["version"] == 1:
            given, expected = header["parameters"], self.signature
        else:
            given, expected = header["protocol"], self.wire.hex()
        return Batch(
            header["count"],
            header.get("id"),
            None if given == expected else f"{given!r:.300}",
            body,
        )

    def of_message(self, message: bytes, tally: Counter[str] | None) -> Reports:
        """The reports in a message: see `Channel.reports_from_bytes`."""
        try:
            message = bytes(memoryview(message))
            batch = self.batch(message)
            count, body = batch.count, batch.body
        except ValueError as error:
            return self.refuse("malformed", 1, f"not a message of reports: {plainly(error)}", tally)
        if batch.foreign is not None:
            return self.refuse(
                "foreign",
                max(1, min(count, len(message))),
                f"reports of {batch.foreign}, not of {self.wire.hex()}, {self.signature}",
                tally,
            )
        size = self.dtype.itemsize
        whole, rest = divmod(len(body), size)
        if whole < count:
            self.refuse(
                "truncated",
                min(count - whole, len(message)),
                f"{count} reports were announced, {whole} are whole",
                tally,
            )
        elif whole > count or rest:
            surplus = -(-(len(body) - count * size) // size)
            self.refuse(
                "malformed",
                surplus,
                f"{count} reports were announced, {len(body) - count * size} bytes follow them",
                tally,
            )
        reports = np.frombuffer(body, dtype=self.dtype, count=min(whole, count))
        return self.accepted(reports, tally)

    # -------------------------------------------------------------------------------- what is wrong

    def refuse(self, reason: str, count: int, message: str, tally: Counter[str] | None) -> Reports:
        """No reports, as so many are left out for a reason; without a tally InvalidReport."""
        if tally is None:
            raise InvalidReport(message)
        tally[reason] += count
        return np.zeros(0, dtype=self.dtype)

    def accepted(self, reports: Reports, tally: Counter[str] | None) -> Reports:
        """The reports that clients can have sent; others are counted, or else InvalidReport."""
        masked = isinstance(reports, np.ma.MaskedArray)  # whose masked rows would pass every check
        if (
            masked
            or not isinstance(reports, np.ndarray)
            or reports.dtype != self.dtype
            or reports.ndim != 1
        ):
            description = (
                f"{reports.dtype} of shape {reports.shape}"
                if isinstance(reports, np.ndarray)
                else type(reports).__name__
            )
            count = max(1, reports.size) if isinstance(reports, np.ndarray) else 1
            return self.refuse(
                "malformed",
                count,
                f"reports must be a one-dimensional array of {self.dtype}, got {description}",
                tally,
            )
        possible = self.possible(reports)
        if possible.all():
            return reports
        first = int(np.argmin(possible))
        self.refuse(
            "impossible",
            int((~possible).sum()),
            f"reports[{first}] = {reports[first]} cannot have been sent",
            tally,
        )
        return reports[possible]


# ------------------------------------------------------------------------------------------------
# Descriptions: the client half as data, which runs on devices that have no packages.


_EXACT = 1 << 53  # larger integers are text in JSON, as JavaScript has floats there


Step: TypeAlias = dict[
    str, Any
]  #: A step of a description: its name under "do", and what it needs.


def signed(content: dict[str, Any]) -> dict[str, Any]:
    """A description with its digest."""
    return {**content, "digest": digest_of(content)}


def unstated(channel: object) -> TypeError:
    """The error of channels of one's own without a description."""
    return TypeError(f"{type(channel).__name__} does not state its client half as steps")


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
    settings = {"outcomes": outcomes, "lie": json_integer(lie), "width": width}
    return {"do": "lie", **settings, "field": None, "signs": 0, **more}


# ------------------------------------------------------------------------------------------------
# Reports that public coins draw for users of whom nothing is known, several at a time.


Number = TypeVar("Number", int, Fraction)


class Menu(NamedTuple):
    """Reports of one kind, of which every item makes about as many likely as any other.

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
