"""Aggregates, which a server keeps, and their messages.

An aggregate is integers whose number depends on the domain and never on the number of users.

Messages are a magic word, the length of a header, the header (JSON: what it is, of which oracle,
how many), and a body of fixed-width little-endian integers. An aggregate ends with a SHA-256
digest, because one changed number falsifies all estimates; a message of reports has none,
because every report in it is checked by itself. ``docs/wire.md`` has both byte by byte.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.clients.device import canonical
from frequency.core.tally import SparseCounts, sparse
from frequency.exceptions import IncompatibleAggregate
from mechdesign.base import (
    ANYTHING,
    JSON_BYTES,
    TEXT,
    FieldType,
    Items,
    checked_counts,
    from_json,
    from_text,
    list_of,
    opened,
    printable,
    reason,
    record,
    require_version,
    shown,
    whole_number,
)

VERSION = 1  #: Of messages with an aggregate, all of its counts written.

_SPARSE_VERSION = 2  # of those with only the counts that are not 0

REPORTS = whole_number(0)  #: A number of reports, as messages and files hold it: below 2^63.

# Of the header of an aggregate.
_FIELDS = {"parameters": TEXT, "n": REPORTS, "shape": list_of(REPORTS)}

_MAGIC = b"LDPF"
_DIGEST = 32


class Aggregate:
    """The merged reports of ``n`` users, for the oracle with these ``parameters``.

    ``a + b`` merges: associative, commutative, and independent of how the reports were batched.
    ``sum([a, b, c])`` works too. While few of many counts differ from 0, only these take memory.

    Parameters
    ----------
    parameters : str
        `Oracle.parameters` as canonical JSON.
    n : int
        The number of reports.
    counts : numpy.ndarray of int64, or SparseCounts
        The shape and meaning are the oracle's. No entry exceeds n in absolute value.
    """

    __slots__ = ("_counts", "_n", "_parameters")

    def __init__(
        self, parameters: str, n: int, counts: npt.NDArray[np.int64] | SparseCounts
    ) -> None:
        self._parameters, self._n = parameters, n
        self._counts = counts if isinstance(counts, SparseCounts) else sparse(counts)

    @property
    def parameters(self) -> str:
        """`Oracle.parameters` as canonical JSON."""
        return self._parameters

    @property
    def n(self) -> int:
        """The number of reports."""
        return self._n

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """All counts, read-only: an array of int64."""
        return self._counts.dense() if isinstance(self._counts, SparseCounts) else self._counts

    def part(self, place: slice) -> npt.NDArray[np.int64]:
        """Return a part of the counts, without laying out the others.

        Parameters
        ----------
        place : slice
            Of which of them, the last index counting fastest: 0 <= start <= stop <= their number.

        Returns
        -------
        numpy.ndarray of int64
            Shape (stop - start,).
        """
        return self.within("", 0, place, (place.stop - place.start,)).counts

    def within(self, parameters: str, n: int, place: slice, shape: tuple[int, ...]) -> Aggregate:
        """Return the aggregate of a part of the reports, whose counts are not copied.

        Parameters
        ----------
        parameters : str
            What they are of.
        n : int
            How many reports.
        place : slice
            Which counts: see `part`.
        shape : tuple of int
            The shape of the part's counts.

        Returns
        -------
        Aggregate
            That of the part.
        """
        aggregate = object.__new__(Aggregate)
        aggregate._parameters, aggregate._n = parameters, n
        if isinstance(self._counts, SparseCounts):
            aggregate._counts = self._counts.part(place, shape)
        else:
            aggregate._counts = self._counts.reshape(-1)[place].reshape(shape)
        return aggregate

    def under(self, parameters: str) -> Aggregate:
        """The same counts, as those of other parameters."""
        return Aggregate(parameters, self.n, self._counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the counts."""
        return self._counts.shape

    def __reduce__(self) -> tuple[Any, ...]:
        return Aggregate, (self.parameters, self.n, self._counts)  # a copy is read-only too

    def __add__(self, other: Aggregate) -> Aggregate:
        if not isinstance(other, Aggregate):
            return NotImplemented
        if (self.parameters, self.shape) != (other.parameters, other.shape):
            raise IncompatibleAggregate(
                f"cannot merge aggregates of {differing(self.parameters, other.parameters)}"
            )
        if self.n + other.n >= 1 << 63:
            raise OverflowError("an aggregate holds fewer than 2^63 reports")
        mine, theirs = self._counts, other._counts
        if isinstance(mine, SparseCounts):
            total = mine.plus(theirs)
        elif isinstance(theirs, SparseCounts):
            total = theirs.plus(mine)
        else:
            total = mine + theirs
        return Aggregate(self.parameters, self.n + other.n, total)

    def __radd__(self, other: object) -> Aggregate:
        return self if type(other) is int and other == 0 else NotImplemented  # the start of sum()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregate):
            return NotImplemented
        mine, theirs = (
            (aggregate.parameters, aggregate.n, aggregate.shape) for aggregate in (self, other)
        )
        return mine == theirs and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Aggregate of {self.n} reports, {printable(self.parameters)}>"

    def to_bytes(self) -> bytes:
        """A message that `Oracle.aggregate_from_bytes` reads back."""
        stream = io.BytesIO()
        self.write(stream)
        return stream.getvalue()

    def write(self, stream: IO[bytes], kind: str = "aggregate", **more: Any) -> None:
        """Write `to_bytes` to a binary stream, without a copy of the counts.

        Parameters
        ----------
        stream : binary file
            Open for writing.
        kind : str, default "aggregate"
            What the message is: see `read`.
        more : object
            Further entries of its header, of what JSON can hold.
        """
        header = {"parameters": self.parameters, "n": self.n, "shape": list(self.shape)}
        # Of a part of other counts, it is for its own counts to say how they are written
        few = isinstance(self._counts, SparseCounts) and self._counts.pays
        counts = self._counts if few else sparse(self.counts)
        if isinstance(counts, SparseCounts):
            header = {**header, "version": _SPARSE_VERSION, "places": len(counts.places)}
            body: Any = counts.to_bytes()
        else:
            body = np.ascontiguousarray(counts, dtype="<i8").reshape(-1).data
        write_sealed(stream, {**more, "kind": kind, **header}, body)

    @staticmethod
    def from_bytes(message: bytes) -> Aggregate:
        """The aggregate in a message, whatever its oracle.

        `Oracle.aggregate_from_bytes` also checks that it is the oracle's, and its numbers possible.

        Parameters
        ----------
        message : bytes
            What `to_bytes` made, or anything that came over a network instead.

        Returns
        -------
        Aggregate
            Equal to the one that was written.

        Raises
        ------
        IncompatibleAggregate
            The message is not whole, or was changed.
        """
        return Aggregate.read(message)[0]

    @staticmethod
    def read(
        message: bytes, kind: str = "aggregate", more: Mapping[str, FieldType] | None = None
    ) -> tuple[Aggregate, dict[str, Any]]:
        """The aggregate that `write` wrote, and the header of its message.

        Parameters
        ----------
        message : bytes
            All bytes of it.
        kind : str, default "aggregate"
            What the message must be.
        more : mapping of str to FieldType, optional
            The further entries that its header must have: these and no others.

        Returns
        -------
        tuple
            The aggregate, and the header as a dictionary.

        Raises
        ------
        IncompatibleAggregate
            The message is of another kind, is not whole, or was changed.
        """
        try:
            entries = {**_FIELDS, **(more or {})}
            versions = {VERSION: entries, _SPARSE_VERSION: {**entries, "places": REPORTS}}
            header, body = unsealed(message, kind, versions)
            n, shape, parameters = header["n"], header["shape"], header["parameters"]
            counts: npt.NDArray[np.int64] | SparseCounts
            if header["version"] == _SPARSE_VERSION:
                counts = SparseCounts.from_bytes(body, tuple(shape), header["places"])
            else:
                counts = np.frombuffer(body, dtype="<i8").reshape(shape).astype(np.int64)
        except (ValueError, KeyError, TypeError) as error:
            raise IncompatibleAggregate(f"no message of kind {kind!r}: {reason(error)}") from error
        return Aggregate(parameters, n, counts), header


def pack(header: dict[str, Any], body: bytes) -> bytes:
    """A message, read back by `unpack`."""
    text = canonical({"version": VERSION, **header}).encode()
    if len(text) > JSON_BYTES:
        raise ValueError(f"a header of {len(text)} bytes, more than the {JSON_BYTES} that are read")
    return _MAGIC + len(text).to_bytes(4, "little") + text + body


def unpack(
    message: bytes | memoryview, kind: str, versions: Mapping[int, Mapping[str, FieldType]]
) -> tuple[dict[str, Any], memoryview]:
    """Header and body of a message."""
    message = memoryview(message)
    if message[:4] != _MAGIC:
        raise ValueError(f"not a message of this library: it begins with {bytes(message[:4])!r}")
    end = 8 + int.from_bytes(message[4:8], "little")
    if len(message) < max(end, 8):
        raise ValueError(f"cut short within the header: {len(message)} bytes")
    try:
        header = from_json(bytes(message[8:end]))
    except ValueError as error:
        raise ValueError(f"the header is not JSON: {error}") from error
    given = header.get("version") if isinstance(header, dict) else None
    version = require_version(given, versions)
    if header.get("kind") != kind:
        raise ValueError(f"it holds {shown(header.get('kind'))}, not {kind}")
    record({"version": ANYTHING, "kind": TEXT, **versions[version]}).require(header)
    return header, message[end:]


def write_sealed(stream: IO[bytes], header: dict[str, Any], *bodies: Any) -> None:
    """Write a message that ends with a digest of all of it."""
    digest = hashlib.sha256()
    for part in (pack(header, b""), *bodies):
        digest.update(part)
        stream.write(part)
    stream.write(digest.digest())


def unsealed(
    message: bytes | memoryview, kind: str, versions: Mapping[int, Mapping[str, FieldType]]
) -> tuple[dict[str, Any], memoryview]:
    """Header and body of a message that `write_sealed` wrote."""
    view = memoryview(message).cast("B")
    if hashlib.sha256(view[:-_DIGEST]).digest() != view[-_DIGEST:]:
        raise ValueError("cut short or changed: the digest does not match")
    return unpack(view[:-_DIGEST], kind, versions)


def beginning(stream: IO[bytes], most: int) -> bytes:
    """The first bytes of a message, with all of its header, for `unpack`."""
    start = stream.read(8)
    length = int.from_bytes(start[4:], "little") if start[:4] == _MAGIC else 0
    return start + stream.read(min(length, most))


def message_kind(path: str | os.PathLike[str]) -> str:
    """Return the kind in a file's header, such as "aggregate" or "reports"; OSError if unreadable.

    "" of what does not begin as a message does, and "damaged" of what only begins so.
    """
    with opened(path) as stream:
        start = beginning(stream, JSON_BYTES)
    if start[:4] != _MAGIC:
        return ""
    try:
        return str(from_json(start[8:])["kind"])
    except (ValueError, LookupError, TypeError):
        return "damaged"


def differing(ours: str, theirs: str) -> str:
    """Return the difference of two protocols: "A and of B, which differ in ..."."""
    try:
        mine, other = from_json(ours), from_json(theirs)
        names = [content["protocol"] for content in (mine, other)]
        if names[0] != names[1]:
            return f"{names[0]!s:.60} and of {names[1]!s:.60}"
        keys = sorted(
            key for key in {*mine, *other} if canonical(mine.get(key)) != canonical(other.get(key))
        )
        if keys == ["channel"]:  # of surveys with one schema
            return differing(canonical(mine["channel"]), canonical(other["channel"]))
        keys = [
            key for key in keys if key in ("schema", "domain", "alpha")
        ] or keys  # from which the others follow
        mine, other = _legible(mine), _legible(other)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return f"{ours:.200} and of {theirs:.200}"
    shown_ = [f"{key!s:.40}: {mine.get(key)!s:.60} and {other.get(key)!s:.60}" for key in keys[:4]]
    return (
        f"{names[0]} and of {names[1]}, which differ in"
        f" {'; '.join(shown_) or 'the shape of their counts'}"
    )


def _legible(content: dict[str, Any]) -> dict[str, Any]:
    """The same parameters for a message: nobody reads fractions of so many digits, or digests."""
    short = {}
    if "alpha" in content:
        short["alpha"] = f"that of epsilon {-math.log(from_text(content['alpha'])):.6g}"
    if "schema" in content:
        channel = content["channel"]
        parts = channel.get("attributes", [])  # lists of names and sizes, in one order or another
        names = [entry for part in parts for entry in part if isinstance(entry, str)]
        about = ", ".join(names) or f"{channel['domain']} kinds of records"
        short["schema"] = f"{about:.42} ({content['schema']:.15})"
    return {**content, **short}


# ------------------------------------------------------------------------------------------------
# Reports as vectors of zeros and ones, whose sums are an aggregate: for secure aggregation.
#
# Users split such a vector, their measurement, into shares for two or more servers; the servers add
# up the shares, and only the sums over all users are ever put together (Prio: Corrigan-Gibbs and
# Boneh, NSDI 2017; Prio3 of the IETF's Verifiable Distributed Aggregation Functions). The vectors
# here fit Prio3Histogram, Prio3SumVec and Prio3MultihotCountVec.
#
# A measurement is what a report adds to the counts of an aggregate. Where that may be -1 there are
# two numbers for a count, as these functions add up no negative ones: the count's own place has the
# number of +1, and the numbers of -1 follow after all counts, in the same order.


class SignSum(NamedTuple):
    """Neighbouring counts ``counts.flat[start:stop]`` that are sums of signs, each +1 or -1.

    Attributes
    ----------
    start, stop : int
        Places of the first, and after the last.
    each : int
        How many of them a report adds a sign to, all different.
    users : int or None
        The place of the count of the reports that do; None: all reports.
    """

    start: int
    stop: int
    each: int = 1
    users: int | None = None

    def within(self, start: int, users: int | None) -> SignSum:
        """The same, where the counts are a part of others.

        Parameters
        ----------
        start : int
            The part's first place.
        users : int or None
            The place of the count of the reports on the part; None: all reports.

        Returns
        -------
        SignSum
            With the places among all counts.
        """
        place = users if self.users is None else start + self.users
        return SignSum(start + self.start, start + self.stop, self.each, place)


def signed_places(sign_sums: Sequence[SignSum]) -> Items:
    """The places of all counts that are sums of signs, in order."""
    return np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.arange(s.start, s.stop) for s in sign_sums)]
    )


def split_signs(counts: npt.NDArray[np.int8], sign_sums: Sequence[SignSum]) -> npt.NDArray[np.int8]:
    """The measurements, (users, numbers), from the counts of one report each, (users, counts)."""
    minus = counts[:, signed_places(sign_sums)] < 0
    return np.concatenate([counts > 0, minus], axis=1).astype(np.int8)


class DrawnSums(NamedTuple):
    """The content of the sums of measurements."""

    counts: npt.NDArray[np.int64]  #: shape (counts,), of the aggregate
    #: the same had every sign been +1: of how many reports each count is
    drawn: npt.NDArray[np.int64]


def joined_signs(sums: Any, n: int, size: int, sign_sums: Sequence[SignSum]) -> DrawnSums:
    """The counts of n reports, from the sums of their measurements."""
    places = signed_places(sign_sums)
    # Not asarray: that makes floats of integers of which some are 2^63 and more
    exact = sums if isinstance(sums, np.ndarray) else np.array(sums, dtype=object)
    totals = checked_counts(exact, n, _not_a_sum)
    if totals.shape != (size + len(places),):
        raise IncompatibleAggregate(
            f"expected {size + len(places)} sums, of the measurements of this protocol, got shape"
            f" {totals.shape}"
        )
    plus, minus = totals[:size], np.zeros(size, dtype=np.int64)
    minus[places] = totals[size:]
    if (minus > n - plus).any():  # by difference, as their sum may not fit
        raise IncompatibleAggregate(f"no {n} reports have these sums: more signs than reports")
    drawn = plus + minus
    for part in sign_sums:
        users = n if part.users is None else int(plus[part.users])
        signs = int(drawn[part.start : part.stop].sum(dtype=object))
        if signs != part.each * users:
            raise IncompatibleAggregate(
                f"no {n} reports have these sums: {users} have {part.each * users} signs among"
                f" counts {part.start} .. {part.stop - 1}, not {signs}"
            )
    return DrawnSums(plus - minus, drawn)


def _not_a_sum(place: Any, value: object, n: int) -> IncompatibleAggregate:
    return IncompatibleAggregate(
        f"sums[{place}] = {shown(value)} is not an integer 0 .. {n}, as of {n} reports"
    )
