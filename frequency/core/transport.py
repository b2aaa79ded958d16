"""Transport: how reports travel, one by one or many in a message, and what of them is accepted.

A single report is the eight bytes that name its channel and the payload; a batch is a message with
a header and any number of payloads. What arrives is checked byte by byte: what is malformed, cut
short, of another channel, or such that no client can have sent it, is an error or counted.
``docs/wire.md`` has both byte by byte.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import REPORTS, pack, unpack
from frequency.core.deployable import Deployable
from frequency.exceptions import InvalidReport
from mechdesign.base.fields import TEXT, matching
from mechdesign.base.text import reason as plainly
from mechdesign.base.text import shown

Reports: TypeAlias = npt.NDArray[np.void]
"""A structured array, one row a user, of the channel's ``report_dtype``."""

WIRE = 8
"""How many bytes name the channel in front of a single report."""

ID = matching("an id of 32 hexadecimal digits", "[0-9a-f]{32}")
"""What `new_id` makes."""

_HEADERS = {
    1: {"parameters": TEXT, "count": REPORTS},
    2: {"protocol": TEXT, "count": REPORTS, "id": ID},
}
"""What the header of a batch says beside its version and kind."""


@dataclass(frozen=True)
class Batch:
    """What a message of reports says of itself.

    Attributes
    ----------
    count : int
        How many reports were announced.
    id : str or None
        The random number by which it is known wherever it is copied to; None in version 1.
    foreign : str or None
        Whose reports they are, if not this channel's.
    body : memoryview
        What follows the header.
    """

    count: int
    id: str | None
    foreign: str | None
    body: memoryview


def new_id() -> str:
    """A random number by which reports are known wherever they are copied to: 32 digits."""
    return secrets.token_hex(16)


class Transport(Deployable):
    """How the reports of a channel travel."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """The parameters as text, which aggregates carry."""

    @abstractmethod
    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which reports some client can have sent: shape (users,)."""

    # ----------------------------------------------------------------------------------- one by one

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
        content = self.accepted(reports, None).tobytes()
        size = self.report_dtype.itemsize
        return [self.wire + content[at : at + size] for at in range(0, len(content), size)]

    def single_reports_from_bytes(
        self, messages: Iterable[bytes], tally: Counter[str] | None = None
    ) -> Reports:
        """The reports that came one by one.

        Parameters
        ----------
        messages : iterable of bytes
            What devices sent, or anything that came over a network instead.
        tally : collections.Counter, optional
            None: the first thing wrong raises InvalidReport. A Counter: what is wrong is left out
            and counted under the reason ("malformed", "foreign", "truncated", "impossible").

        Returns
        -------
        numpy.ndarray
            The valid reports in their order, of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally: the first thing that is wrong.
        """
        kept = []
        for k, message in enumerate(messages):
            reason = self.wrong_of_single(message)
            if reason is None:
                kept.append(message[WIRE:])
            else:
                self.refuse(reason, 1, f"message {k} is {reason}: {shown(message)}", tally)
        return self.accepted(np.frombuffer(b"".join(kept), dtype=self.report_dtype), tally)

    def wrong_of_single(self, message: bytes) -> str | None:
        """Why these bytes are no report of this channel by itself; None: they may be one.

        Parameters
        ----------
        message : bytes
            Anything that came.

        Returns
        -------
        str or None
            "malformed", "foreign" or "truncated".
        """
        if len(message) < WIRE:
            return "malformed"
        if message[:WIRE] != self.wire:
            return "foreign"
        beyond = len(message) - WIRE - self.report_dtype.itemsize
        return "malformed" if beyond > 0 else "truncated" if beyond else None

    # -------------------------------------------------------------------------------------- batches

    def reports_to_bytes(self, reports: Reports) -> bytes:
        """A message with any number of reports; InvalidReport if one is not of this channel."""
        self.accepted(reports, None)
        return pack(self.batch_header(len(reports)), reports.tobytes())

    def batch_header(self, count: int) -> dict[str, int | str]:
        """What a new batch says of itself, which holds so many reports."""
        return {
            "version": 2,
            "kind": "reports",
            "protocol": self.wire.hex(),
            "count": count,
            "id": new_id(),
        }

    def batch(self, message: bytes | memoryview) -> Batch:
        """What a message of reports says of itself.

        Parameters
        ----------
        message : bytes or memoryview
            The whole of it, or its first bytes.

        Returns
        -------
        Batch
            Its header, compared with this channel, and the bytes behind it, as they are.

        Raises
        ------
        ValueError
            It does not begin as a message of reports.
        """
        header, body = unpack(message, "reports", _HEADERS)
        if header["version"] == 1:
            given, own = header["parameters"], self.signature
        else:
            given, own = header["protocol"], self.wire.hex()
        return Batch(
            header["count"], header.get("id"), None if given == own else f"{given!r:.300}", body
        )

    def reports_from_bytes(self, message: bytes, tally: Counter[str] | None = None) -> Reports:
        """The reports in a message.

        Parameters
        ----------
        message : bytes
            What `reports_to_bytes` made, of this version or an older one, or anything that came
            over a network instead.
        tally : collections.Counter, optional
            None: the first thing wrong raises InvalidReport. A Counter: what is wrong is left out
            and counted under the reason ("malformed", "foreign", "truncated", "impossible"), and
            the rest is returned. What a message announces but does not hold counts for at most as
            many reports as the message has bytes.

        Returns
        -------
        numpy.ndarray
            The valid reports, of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally: the first thing that is wrong.
        """
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
        size = self.report_dtype.itemsize
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
        reports = np.frombuffer(body, dtype=self.report_dtype, count=min(whole, count))
        return self.accepted(reports, tally)

    # -------------------------------------------------------------------------------- what is wrong

    def refuse(self, reason: str, count: int, message: str, tally: Counter[str] | None) -> Reports:
        """No reports, as so many are left out for a reason; without a tally InvalidReport."""
        if tally is None:
            raise InvalidReport(message)
        tally[reason] += count
        return np.zeros(0, dtype=self.report_dtype)

    def accepted(self, reports: Reports, tally: Counter[str] | None) -> Reports:
        """The reports that this channel's clients can have sent.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Anything that may be one.
        tally : collections.Counter or None
            Counts what is left out, under the reason; None: that is an error.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidReport
            Without a tally, unless all of the reports are accepted.
        """
        masked = isinstance(reports, np.ma.MaskedArray)  # whose masked rows would pass every check
        if (
            masked
            or not isinstance(reports, np.ndarray)
            or reports.dtype != self.report_dtype
            or reports.ndim != 1
        ):
            found = (
                f"{reports.dtype} of shape {reports.shape}"
                if isinstance(reports, np.ndarray)
                else type(reports).__name__
            )
            count = max(1, reports.size) if isinstance(reports, np.ndarray) else 1
            return self.refuse(
                "malformed",
                count,
                f"reports must be a one-dimensional array of {self.report_dtype}, got {found}",
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
