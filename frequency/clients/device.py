"""Make private reports with nothing but the standard library: one file, to copy to a device.

A client runs the description of a protocol's client half, which ``protocol.client()`` gives and
protocol files hold: what a value is, which part of the question is answered, which public coins are
tossed, and how the answer is randomised, by integers alone. ``docs/wire.md`` says what each step
does. A question that is asked every day has reports that the device keeps, in a file: see
`load_memoised`. On a command line (others may see the values there, but not those on standard
input):

    python device.py protocol.json female male      (a report a line, in base64)
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
import struct
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from math import inf, prod
from numbers import Number
from typing import Any, NamedTuple, TypeAlias

WORD = 1 << 64
"""The number of words of 64 bits, in which randomness comes."""

Word: TypeAlias = Callable[[], int]
"""A source of uniform integers 0 .. 2^64 - 1."""


class ClientError(ValueError):
    """A file from which no report can be made: damaged, changed, or of an unknown kind."""


class RefusedValue(ValueError):
    """A value that the protocol does not take: nothing was drawn."""


class Client:
    """Makes reports from values, one user's at a time: see `load_client`.

    Attributes
    ----------
    description : dict
        What is run.
    protocol, epsilon, odds : str
        Its name, and what a report may reveal: by how much it changes anybody's odds at most.
    """

    def __init__(self, description: dict[str, Any], words: Word) -> None:
        self.description, self.protocol = description, str(description["protocol"])
        self.epsilon, self.odds = str(description["epsilon"]), str(description["odds"])
        self._wire, self._item, node = _parts(description, words)
        self._size, self._draw, self._idle = node.size, node.draw, node.idle

    def __reduce__(self) -> Any:
        return load_client, (self.description,)

    def report(self, value: Any) -> bytes | None:
        """One report, as it travels: eight bytes that name the protocol, and the payload.

        Parameters
        ----------
        value : object
            The user's, as the protocol takes it.

        Returns
        -------
        bytes or None
            None if the value is missing and such users do not report.

        Raises
        ------
        RefusedValue
            A value that the protocol does not take; nothing was drawn.
        """
        payload = self.privatize_one(value)
        return None if payload is None else self._wire + payload

    def privatize_one(self, value: Any) -> bytes | None:
        """The payload of `report`: the bytes of one report of the protocol's ``report_dtype``.

        Parameters
        ----------
        value : object
            As for `report`.

        Returns
        -------
        bytes or None
            As for `report`.

        Raises
        ------
        RefusedValue
            As `report`.
        """
        item = self._item(value)
        if item is _SKIPPED:
            return None
        return (self._idle() if item is None else self._draw(item)).to_bytes(self._size, "little")


def load_client(source: Any, words: Word | None = None) -> Client:
    """The client of a protocol.

    Parameters
    ----------
    source : str, os.PathLike or dict
        The path of a protocol file or of a description; or what it holds.
    words : callable, optional
        Gives uniform integers 0 .. 2^64 - 1, for tests; None: the operating system's randomness.

    Returns
    -------
    Client
        Whose reports the protocol's server counts.

    Raises
    ------
    ClientError
        No such file, one that was changed, or no source of randomness.
    """
    return _loaded(source, 1, lambda description: Client(description, words or _word))


class MemoisedClient:
    """Makes one user's reports of many days, from those that it keeps: see `load_memoised`.

    Attributes
    ----------
    description : dict
        What is run.
    protocol, epsilon, odds : str
        Its name, and what all reports about one value together may reveal: by how much they change
        anybody's odds at most.
    day : str
        What the reports of one day may reveal, as ``epsilon``.
    start : int
        Which start of this user's device it is, from 1 on. It may be sent with the reports.
    """

    def __init__(
        self, description: dict[str, Any], path: str, start: int | None, words: Word
    ) -> None:
        self.description, self.protocol = description, str(description["protocol"])
        self.epsilon, self.odds = str(description["epsilon"]), str(description["odds"])
        self._wire, self._item, self._node = _parts(description, words)
        memoised = description["memoised"]
        self._values, self._starts = memoised["values"], memoised["starts"]
        if any(type(count) is not int or count < 1 for count in (self._values, self._starts)):
            raise ClientError("no values or starts in the description")
        self.day, memoised = str(memoised["day"]), _numbers(memoised)
        self._sent = _rational(words, *memoised["kept"])
        self._accepted = [
            [_rational(words, *chance) for chance in memoised[name]]
            for name in ("permanent", "blank")
        ]
        if {len(chances) for chances in self._accepted} != {self._node.likelihoods}:
            raise ClientError("not as many chances as a report has likelihoods")
        self._path = path
        if not os.path.exists(path):
            if start is None:
                raise ClientError(
                    f"{path}: no state. To begin, say which start of this user's device it is:"
                    " start=1 is the first, and each further one reveals as much again"
                )
            if type(start) is not int or not 1 <= start <= self._starts:
                raise ClientError(f"start {start!r:.20} is not one of 1 .. {self._starts}")
            _replace(path, self._state(start, {}))
        self.start, _ = self._read()
        if start not in (None, self.start):
            raise ClientError(f"{path}: a state of start {self.start}, not {start!r:.20}")

    @property
    def held(self) -> int:
        """The number of values with permanent reports, which nobody else may learn."""
        return len(self._read()[1])

    def report(self, value: Any) -> bytes | None:
        """The report of one day, as `Client.report` gives it; ask once a day and send it once.

        A value that is not among those kept gets a permanent report, which is in the file before
        this returns. If there are as many as there may be, the report is about the newest instead.

        Parameters
        ----------
        value : object
            The user's on this day, as the protocol takes it.

        Returns
        -------
        bytes or None
            None if the value is missing and such users do not report.

        Raises
        ------
        RefusedValue
            A value that the protocol does not take; nothing was drawn.
        ClientError
            The file is lost or damaged; nothing was drawn.
        OSError
            It could not be written; the report that was drawn for it is forgotten.
        """
        item = self._item(value)
        if item is _SKIPPED:
            return None
        if item is None:
            raise RefusedValue("no item, of which a report could be kept")
        name = _named(item)
        start, kept = self._read()
        if name not in kept and len(kept) < self._values:
            kept = {**kept, name: self._drawn(item, 0)}
            _replace(self._path, self._state(start, kept))
        payload = kept.get(name) or kept[[*kept][-1]]
        if not self._sent():
            payload = self._drawn([0] * len(item) if isinstance(item, list) else 0, 1)
        return self._wire + payload

    def _drawn(self, item: Any, kind: int) -> bytes:
        """A report, kept with one of the chances of its kind that its likelihood decides."""
        while True:
            number = self._node.draw(item)
            if self._accepted[kind][self._node.place(number, item)]():
                return number.to_bytes(self._node.size, "little")

    def _state(self, start: int, kept: dict[str, bytes]) -> str:
        """The text of a state: see ``docs/wire.md``."""
        reports = [[json.loads(name), payload.hex()] for name, payload in kept.items()]
        client = self.description["digest"]
        state = {"format": _STATE, "version": 1, "client": client, "start": start, "kept": reports}
        return canonical({**state, "digest": digest_of(state)})

    def _read(self) -> tuple[int, dict[str, bytes]]:
        """The start, and the permanent report of each item, in order of appearance."""
        try:
            state = _json_in(self._path)
            if not isinstance(state, dict) or state.get("format") != _STATE:
                raise ClientError("no state of a client")
            if type(state.get("version")) is not int or state["version"] != 1:
                raise ClientError(f"version {state.get('version')!r:.20}, this client reads 1")
            if state.get("digest") != digest_of(state):
                raise ClientError("the digest does not match: the state was changed")
            if state.get("client") != self.description["digest"]:
                raise ClientError("a state of another question, or of other parameters")
            start, kept = state["start"], {_named(k): bytes.fromhex(v) for k, v in state["kept"]}
            if not all(_is_item(self.description["takes"], _numbers(k)) for k, _ in state["kept"]):
                raise ClientError("a state with an item beyond the domain")
            sizes = {len(payload) for payload in kept.values()} | {self._node.size}
            whole = type(start) is int and 1 <= start <= self._starts
            if not whole or len(kept) > self._values or len(sizes) > 1:
                raise ClientError("a state that this client did not write")
            if self._state(start, kept) != canonical(state):
                raise ClientError("a state that this client did not write")
        except OSError as error:
            raise ClientError(f"{self._path}: the state is lost: {error!r:.200}") from error
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise ClientError(f"{self._path}: {error!s:.200}") from error
        return start, kept


def load_memoised(
    source: Any, path: Any, start: int | None = None, words: Word | None = None
) -> MemoisedClient:
    """The client of a question that is asked every day, with the state of one user's device.

    Parameters
    ----------
    source : str, os.PathLike or dict
        A description that `frequency.longitudinal.Memoised.client` gives: a path, or what it holds.
    path : str or os.PathLike
        The file of the state, which is as secret as the values. One thread of one process at a time
        may use it. It is replaced in one step: after any crash it is the old or the new one.
    start : int, optional
        Which start of this user's device it is, 1 for the first: where there is no state yet. None:
        there must be one. A device whose state was lost must be given another number, by whoever
        counts the starts of each user: its reports reveal as much again.
    words : callable, optional
        As for `load_client`.

    Returns
    -------
    MemoisedClient
        Of this user.

    Raises
    ------
    ClientError
        No such description, or one of a question that is asked once; a state that is damaged, of
        another question or of another start; no state, and no start or one beyond the largest.
    """
    place = os.path.realpath(path)
    return _loaded(
        source, 2, lambda description: MemoisedClient(description, place, start, words or _word)
    )


_STATE = "mechdesign.permanent_reports"


def _named(item: Any) -> str:
    """An item as a state has it: canonical JSON, in which large integers are texts."""
    if isinstance(item, list):
        return f"[{','.join(map(_named, item))}]"
    number = int(item)
    return str(number) if number < 1 << 53 else f'"{number}"'


def _is_item(takes: dict[str, Any], item: Any) -> bool:
    """Whether values of this kind have such an item: a number, or one for each part."""
    if takes["kind"] == "schema":
        return _is_item(takes["as"], item)
    several = takes["kind"] == "spelt" or (takes["kind"] == "record" and not takes["number"])
    if takes["kind"] == "spelt":
        sizes = [WORD] * takes["limbs"]
    elif takes["kind"] == "string":
        sizes = [256 ** takes["bytes"]]
    else:
        sizes = [int(size) for size in takes.get("sizes") or [takes["size"]]]
    parts = item if several else [item]
    ends = sizes if several else [prod(sizes)]
    return (
        isinstance(parts, list)
        and len(parts) == len(ends)
        and all(
            type(entry) is int and 0 <= entry < end for entry, end in zip(parts, ends, strict=True)
        )
    )


def _json_in(path: Any) -> Any:
    """The content of a regular file."""

    def regular(name: str, flags: int) -> int:
        handle = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe may never end
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ClientError(f"{name}: not a regular file")
        return handle

    with open(path, encoding="utf-8", opener=regular) as stream:
        return json.load(stream)


def _replace(path: str, text: str) -> None:
    """Write a file that its owner alone may read: durably, and in one step or not at all."""
    aside = f"{path}.{os.urandom(8).hex()}.part"
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.unlink(aside)
        raise
    if os.name == "posix":  # where the entries of a folder are to be written, too
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _loaded(source: Any, version: int, make: Callable[[dict[str, Any]], Any]) -> Any:
    """The client made of an intact description; ClientError if there is none."""
    try:
        os.urandom(1)
        if not isinstance(source, dict):
            source = _json_in(source)
        return make(_checked(source, version))
    except ClientError:
        raise
    except NotImplementedError as error:
        raise ClientError("this system has no source of randomness") from error
    except (OSError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise ClientError(f"no protocol file: {error!r:.200}") from error
    except RecursionError as error:
        raise ClientError("no protocol file: nested too deeply") from error


def _parts(description: dict[str, Any], words: Word) -> tuple[bytes, Callable[[Any], Any], _Node]:
    """The wire, what makes an item of a value, and the step that draws."""
    wire, node = bytes.fromhex(description["wire"]), _node(words, _numbers(description["report"]))
    if node.size != int(description["bytes"]) or len(wire) != 8:
        raise ClientError(f"reports of {node.size} bytes, not {description['bytes']!r:.20}")
    return wire, _taker(description["takes"]), node


def _checked(content: Any, version: int) -> dict[str, Any]:
    """The description, if it is intact and of this version."""
    if isinstance(content, dict) and content.get("format") == "mechdesign.protocol":
        content = content.get("client")
    if not isinstance(content, dict) or content.get("format") != "mechdesign.client":
        raise ClientError("no description of a client: make one with protocol.client()")
    number = content.get("version")
    if type(number) is not int or number not in (1, 2):
        raise ClientError(f"version {number!r:.20}, this client reads 1 and 2")
    if number != version:
        other = "load_memoised" if number == 2 else "load_client"
        raise ClientError(f"version {number}: use {other} for questions that are asked like this")
    if content.get("digest") != digest_of(content):
        raise ClientError("the digest does not match: the description was changed")
    return content


def canonical(content: Any) -> str:
    """The one JSON text of ``content``."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def digest_of(content: dict[str, Any]) -> str:
    """The digest of everything but itself."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return f"shake256:{sponge(canonical(rest), 32).hex()}"


def _numbers(content: Any) -> Any:
    """The same with numbers in the place of texts of digits, as which JSON has large ones."""
    if isinstance(content, list):
        return [_numbers(entry) for entry in content]
    if isinstance(content, dict):
        return {key: _numbers(entry) for key, entry in content.items()}
    return int(content) if isinstance(content, str) and content.isdecimal() else content


def sponge(text: str, size: int) -> bytes:
    """The first bytes of SHAKE-256 of a text."""
    return hashlib.shake_256(text.encode()).digest(size)


# ----------------------------------------------------------- values: from what users have to items

_SKIPPED = object()
"""In the place of an item: the user does not report."""


def _taker(takes: dict[str, Any]) -> Callable[[Any], Any]:
    """A function from values to items, records or sets; to None for a user without an item."""
    made: Any = {"item": _of_item, "string": _of_string, "record": _of_record, "set": _of_set}
    made |= {"schema": _of_schema, "spelt": _of_spelt}
    if takes["kind"] not in made:
        raise ClientError(f"values of an unknown kind: {takes['kind']!r:.40}")
    take: Callable[[Any], Any] = made[takes["kind"]](takes)
    return (lambda v: None if v is None else take(v)) if takes.get("none") else take


def _of_item(takes: dict[str, Any]) -> Callable[[Any], int]:
    size = int(takes["size"])

    def take(value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value < size:
            return value
        raise RefusedValue(f"{_shown(value)} is not an integer in 0 .. {size - 1}")

    return take


def _of_string(takes: dict[str, Any]) -> Callable[[Any], int]:
    size = takes["bytes"]

    def take(value: Any) -> int:
        spelt = _spelling(value)
        if spelt is None or len(spelt) > size:
            what = f"a text of at most {size} bytes of UTF-8 without U+0000"
            raise RefusedValue(f"{_shown(value)} is not {what}")
        return int.from_bytes(spelt.ljust(size, b"\0"), "big")

    return take


def _of_spelt(takes: dict[str, Any]) -> Callable[[Any], list[int]]:
    check, limbs, lengths, codes = _of_string(takes), takes["limbs"], takes["codes"], {}
    code = before = 0
    for length, byte in sorted((length, byte) for byte, length in enumerate(lengths) if length):
        codes[byte] = code << length - before
        code, before = codes[byte] + 1, length

    def take(value: Any) -> list[int]:
        check(value)
        word, bits = 0, 64 * limbs
        for byte in (*value.encode(), 0):
            inside = 0x80 <= byte < 0xC0
            bits -= 6 if inside else lengths[byte]
            word |= (byte & 0x3F if inside else codes[byte]) << bits
        return [word >> 64 * limb & WORD - 1 for limb in range(limbs - 1, -1, -1)]

    return take


def _spelling(value: Any) -> bytes | None:
    """A text in UTF-8; None of other values, of U+0000 and of half a surrogate pair."""
    try:
        return value.encode() if isinstance(value, str) and "\0" not in value else None
    except UnicodeEncodeError:
        return None


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.60}"
    except ValueError:  # Python does not write integers of very many digits
        return "a huge integer"


def _expected(names: list[str], value: Any) -> str:
    absent = [name for name in names if name not in value] if isinstance(value, dict) else []
    got = f"none of {', '.join(absent)}" if absent else _shown(value)
    return f"expected a value of each of {', '.join(names)}, got {got}"


def _of_record(takes: dict[str, Any]) -> Callable[[Any], Any]:
    names, sizes = takes["names"], [int(size) for size in takes["sizes"]]
    entries = [_of_item({"size": size}) for size in sizes]

    def take(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == set(names):
            value = [value[name] for name in names]
        if not isinstance(value, list | tuple) or len(value) != len(names):
            raise RefusedValue(_expected(names, value))
        record = [entry(part) for entry, part in zip(entries, value, strict=True)]
        return _mixed(zip(record, sizes, strict=True)) if takes["number"] else record

    return take


def _of_set(takes: dict[str, Any]) -> Callable[[Any], list[int]]:
    taker, kept = _taker(takes["of"]) if takes["of"] else _of_item(takes), takes["kept"]

    def take(value: Any) -> list[int]:
        if not isinstance(value, list | tuple | set | frozenset):
            raise RefusedValue(f"expected a list of items, got {_shown(value)}")
        return sorted({item for item in map(taker, value) if kept is None or item in kept})

    return take


def _mixed(digits: Any) -> int:
    """The number with these digits, each with its radix, the last counting fastest."""
    result = 0
    for digit, radix in digits:
        result = result * radix + digit
    return result


# --------------------------------------------------- values in labels and units, by their schema

NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
_SPACE, _CLOCK = "[ \t\r\n]*", r"(\d\d)(?::(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?"
NUMBER = re.compile(f"{_SPACE}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?{_SPACE}")
_TIME = re.compile(rf"\s*(\d{{4}})-(\d\d)(?:-(\d\d)(?:[T ](?:{_CLOCK})?)?)?\s*", re.ASCII)
TRUTHS = {"false": 0, "no": 0, "n": 0, "f": 0, "0": 0, "true": 1, "yes": 1, "y": 1, "t": 1, "1": 1}
_REFUSED = -2
"""In the place of an item: no value of this kind, whatever the policies."""


def _of_schema(takes: dict[str, Any]) -> Callable[[Any], Any]:
    names, as_record = (
        [attribute["name"] for attribute in takes["attributes"]],
        takes["as"]["kind"] == "record",
    )
    entries = [
        (_text if attribute["kind"] == "text" else _listed)(attribute)
        for attribute in takes["attributes"]
    ]
    inner = _taker(takes["as"])

    def take(value: Any) -> Any:
        if isinstance(value, dict) and all(name in value for name in names):
            value = [value[name] for name in names]
        elif len(names) == 1 and not isinstance(value, dict):
            value = [value]
        elif not isinstance(value, list | tuple) or len(value) != len(names):
            raise RefusedValue(_expected(names, value))
        items = [entry(part) for entry, part in zip(entries, value, strict=True)]
        if _SKIPPED in items:
            return _SKIPPED
        return inner(items if as_record else items[0])

    return take


def _text(attribute: dict[str, Any]) -> Callable[[Any], Any]:
    absent = {"item": "", "skip": _SKIPPED}.get(attribute["missing"])
    size = attribute["bytes"] if attribute["outside"] == "clip" else None

    def text(value: Any) -> Any:
        if _is_nothing(value):
            return absent
        written = next(iter(_texts(value)), value)
        spelt = _spelling(written)
        return written if spelt is None else spelt[:size].decode(errors="ignore")

    return text


def _listed(attribute: dict[str, Any]) -> Callable[[Any], Any]:
    """The item of a value: its place, 0 .. bins - 1, or what the policies put there."""
    name, missing, outside = (attribute[key] for key in ("name", "missing", "outside"))
    place, bins, expected = _PLACES[attribute["kind"]](attribute)
    below, above = {"clip": (0, bins - 1), "item": (bins, bins)}.get(outside, (_REFUSED, _REFUSED))
    extra = [
        word for word, policy in (("outside", outside), ("missing", missing)) if policy == "item"
    ]
    absent = {"item": bins + (outside == "item"), "skip": _SKIPPED}.get(missing, _REFUSED)

    def item(value: Any) -> Any:
        nothing = _is_nothing(value)
        cell = _REFUSED if nothing else place(value)
        if 0 <= cell < bins:
            return cell
        if isinstance(value, str) and value in extra:
            return bins + extra.index(value)
        nothing = nothing or (isinstance(value, str) and value.strip() in NO_VALUE)
        cell = absent if nothing else {-1: below, bins: above}.get(cell, _REFUSED)
        if cell == _REFUSED:
            raise RefusedValue(f"{name} is {expected}, got {_shown(value)}")
        return cell

    return item


def _is_nothing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    return isinstance(value, Number) and value != value


def _looked_up(places: dict[str, int], plain: Callable[[str], str], expected: str) -> Any:
    bins = max(places.values()) + 1

    def place(value: Any) -> int:
        matches = [places[text] for text in map(plain, _texts(value)) if text in places]
        readable = isinstance(value, str | date) or _is_truth(value) or _is_number(value)
        return matches[0] if matches else bins if readable else _REFUSED

    return place, bins, expected


def _is_truth(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # NumPy's too


def _is_number(value: Any) -> bool:
    other = isinstance(value, complex) or type(value).__name__ == "timedelta64"
    return isinstance(value, Number) and not other and not _is_truth(value)


def _texts(value: Any) -> tuple[str, ...]:
    """The spellings of a label by which the value is looked up; none if it cannot be one."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, date):
        text = value.isoformat()
        if text[10:] in ("", "T00:00:00"):  # midnight is the date
            return text[:10], f"{text[:10]}T00:00:00", f"{text[:10]} 00:00:00"
        return text, text.replace("T", " ", 1)
    if _is_truth(value):
        return (str(value).lower(),)
    number = digits(value) if _is_number(value) else None
    return () if number is None else (number,)


def digits(value: Any) -> str | None:
    """A number in full; None if it has no end, or too many digits."""
    try:
        if isinstance(value, Fraction):
            text = digits(value.numerator if value.denominator == 1 else float(value))
            return text if text is not None and Fraction(text) == value else None
        if not isinstance(value, Decimal):
            if value % 1 == 0:
                return str(int(value))
            value = Decimal(repr(float(value)))
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -400 or value.adjusted() > 400:
            return None
        whole = value.to_integral_value()  # which no context rounds
        return str(int(whole)) if whole == value else f"{value:f}".rstrip("0")
    except (ArithmeticError, TypeError, ValueError):  # of so many digits that Python refuses
        return None


def _binned(attribute: dict[str, Any], read: Callable[[Any], float], expected: str) -> Any:
    cuts, whole = attribute["cuts"], attribute.get("whole", True)
    if isinstance(cuts, dict):
        first, step = cuts["first"], cuts["step"]
        edges: Sequence[float] = range(first, first + step * cuts["bins"] + 1, step)
    else:
        edges = [float(cut) if isinstance(cut, str) else cut for cut in cuts]

    def place(value: Any) -> int:
        number = read(value)
        if abs(number) == inf or (whole and number % 1):
            return _REFUSED
        closed = number == edges[-1] and not whole
        return bisect_right(edges, number) - 1 - closed

    return place, len(edges) - 1, expected.format(edges[0], edges[-1])


def _number(value: Any) -> float:
    """A number, or what a text spells; infinity of anything else."""
    spelt = NUMBER.fullmatch(value) if isinstance(value, str) else _is_number(value)
    try:
        return float(value) if spelt else inf
    except (ArithmeticError, TypeError, ValueError):
        return inf


def _seconds(value: Any) -> float:
    """The seconds from 1970 to a date or time, or to what a text spells; infinity of others."""
    text = value.isoformat() if isinstance(value, date) else value
    spelt = _TIME.fullmatch(text) if isinstance(text, str) else None
    if not spelt:
        return inf
    year, month, day, hour, minute, second = (int(digits or 0) for digits in spelt.groups())
    try:
        moment = datetime(2000 + year % 400, month, day if spelt[3] else 1, hour, minute, second)
    except ValueError:  # such as the 30th of February
        return inf
    return (moment - datetime(1970, 1, 1)) // timedelta(seconds=1) + (year // 400 - 5) * 12622780800


_PLACES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "categorical": lambda attribute: _looked_up(
        {label: place for place, label in enumerate(attribute["labels"])},
        str,
        f"one of {', '.join(attribute['labels'][:8])}"
        f"{', ..' if len(attribute['labels']) > 8 else ''}",
    ),
    "boolean": lambda attribute: _looked_up(TRUTHS, lambda text: text.strip().lower(), "yes or no"),
    "numeric": lambda attribute: _binned(
        attribute,
        _number,
        "an integer from {} to below {}" if attribute["whole"] else "a number from {} to {}",
    ),
    "dates": lambda attribute: _binned(
        attribute, _seconds, "a date or time in its range, without a zone"
    ),
}


# ----------------------------------------------------------------------- randomness, word for word

_block: list[int] = []


def _word() -> int:
    """A word of the operating system's randomness, which is read in blocks."""
    while True:
        block = _block
        try:
            return block.pop()
        except IndexError:
            block.extend(struct.unpack("<512Q", os.urandom(4096)))


def _begin_block() -> None:
    """Go on with other words: a child must not draw those that its parent has read."""
    global _block
    _block = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_block)


def _below(word: Word, size: int) -> Word:
    """Uniform numbers 0 .. size - 1."""
    step = WORD // size

    def draw() -> int:
        while (number := word() // step) >= size:
            pass
        return number

    return draw if size > 1 else lambda: 0


def _raw(word: Word, count: int) -> bytes:
    """The bytes of so many words."""
    if word is _word:
        return os.urandom(8 * count)
    return b"".join(word().to_bytes(8, "little") for _ in range(count))


_HIGHEST = {1 << bits: bytes(byte >> 8 - bits for byte in range(256)) for bits in range(1, 9)}
"""For each size the number 0 .. size - 1 that the highest byte of a word decides."""


@cache
def _of_highest(size: int) -> list[int]:
    """The number that the two highest bytes of a word decide; -1 where the others matter."""
    step, ends = WORD // size, range(0, WORD + 1, 1 << 48)
    decided = (low // step == (high - 1) // step for low, high in pairwise(ends))
    return [low // step if sure else -1 for low, sure in zip(ends, decided, strict=False)]


def _belows(word: Word, count: int, size: int) -> Sequence[int]:
    """Several such numbers: those that were too large are drawn again after all others."""
    if size == 1:
        return [0] * count
    raw, step = _raw(word, count), WORD // size
    if size in _HIGHEST:
        return raw[7::8].translate(_HIGHEST[size])
    if count < 256:
        numbers = [drawn // step for drawn in struct.unpack(f"<{count}Q", raw)]
    else:  # many small numbers are looked up in half of the time that large ones are divided in
        highest, place = bytearray(2 * count), -1
        highest[::2], highest[1::2] = raw[6::8], raw[7::8]
        table = _of_highest(size)
        numbers = list(map(table.__getitem__, struct.unpack(f"<{count}H", highest)))
        for _ in range(numbers.count(-1)):
            place = numbers.index(-1, place + 1)
            numbers[place] = int.from_bytes(raw[8 * place : 8 * place + 8], "little") // step
    while max(numbers) >= size:
        numbers = [number if number < size else word() // step for number in numbers]
    return numbers


def _lies(word: Word, outcomes: int, lie: int) -> Word:
    """0 for the truth, 1 .. outcomes - 1 for the lies, for each of which ``lie`` words stand."""
    last = outcomes - 1
    if last and not 0 < last * lie < WORD:
        raise ClientError(f"{last} lies of {lie!r:.40} words each leave none for the truth")

    def draw() -> int:
        place = word() // lie
        return place + 1 if place < last else 0

    return draw if last else lambda: 0


def _chance(word: Word, weight: int) -> Callable[[], bool]:
    """True with probability weight / 2^64."""
    if not 0 <= weight <= WORD:
        raise ClientError(f"a weight of {weight!r:.40} words")
    return (lambda: True) if weight == WORD else lambda: word() < weight


def _rational(word: Word, numerator: int, denominator: int) -> Callable[[], bool]:
    """True with any rational probability: 64 more binary places are looked at while they tie."""
    if not 0 <= numerator <= denominator or not denominator:
        raise ClientError(f"{numerator!r:.40} of {denominator!r:.40} is no probability")

    def draw() -> bool:
        rest = numerator
        while True:
            places, rest = divmod(rest << 64, denominator)
            drawn = word()
            if drawn != places or not rest:
                return drawn < places

    return draw


def _bits(word: Word, places: int, weight: int) -> Word:
    """Numbers of so many bits, each of which is 1 with probability weight / 2^64."""
    lanes, last = -(-places // 64), (weight & -weight).bit_length() - 1 if weight else 63
    first = [weight >> place & 1 for place in range(63, max(last, 58) - 1, -1)]
    rest = [weight >> place & 1 for place in range(57, last - 1, -1)]
    full, kept, layout = (1 << 64 * lanes) - 1, (1 << places) - 1, struct.Struct(f"<{lanes}Q")

    # Every bit compares its own uniform number with the weight, the highest place first; 64 of them
    # are a lane, and from place 57 on a lane without an undecided bit draws no more
    def draw() -> int:
        result, undecided = 0, full
        for digit in first:
            drawn = word() if lanes == 1 else int.from_bytes(_raw(word, lanes), "little")
            drawn &= undecided
            undecided ^= drawn
            if digit:
                result |= undecided
                undecided = drawn
        if not rest or not undecided:
            return result & kept
        ones, play = (
            [0] * lanes,
            list(enumerate(layout.unpack(undecided.to_bytes(8 * lanes, "little")))),
        )
        for digit in rest:
            left, play = [pair for pair in play if pair[1]], []
            for lane, bits in left:
                drawn = word() & bits
                if digit:
                    ones[lane] |= bits ^ drawn
                play.append((lane, drawn if digit else bits ^ drawn))
            if not left:
                break
        return (result | int.from_bytes(layout.pack(*ones), "little")) & kept

    return draw


class _Coins(NamedTuple):
    """Public words of a user, any of them computed when it is needed (SplitMix64)."""

    user: int
    first: int = 0

    def word(self, place: int) -> int:
        return _stirred(_stirred(self.user) + (self.first + place + 1) * 0x9E3779B97F4A7C15)

    def below(self, place: int, size: int) -> int:
        return self.word(place) * size >> 64

    def after(self, count: int) -> _Coins:
        return _Coins(self.user, self.first + count)


def _stirred(word: int) -> int:
    word %= WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WORD
    return word ^ word >> 31


# ------------------------------------------------------------------- finite fields and public bits


def _parity(value: int) -> int:
    return value.bit_count() & 1


class _Field:
    """F_q, q = p^k: digits of 0 .. q - 1 in base p are coefficients of polynomials, x^k is top."""

    def __init__(self, p: int, k: int, top: int) -> None:
        self.p, self.k, self.top, self.q = p, k, top, p**k
        self.multiply, self.inverse = cache(self._multiply), cache(self._inverse)

    def add(self, a: int, b: int) -> int:
        if self.p == 2:
            return a ^ b
        if a < self.p > b:
            return (a + b) % self.p
        return (a + b) % self.p + self.p * self.add(a // self.p, b // self.p)

    def _multiply(self, a: int, b: int) -> int:
        if self.k == 1:
            return a * b % self.p
        result, high = 0, self.q // self.p
        for place in reversed(range(self.k)):  # Horner's rule
            over, result = result // high, result % high * self.p
            for summand, times in ((self.top, over), (b, a // self.p**place % self.p)):
                for _ in range(times):
                    result = self.add(result, summand)
        return result

    def _inverse(self, a: int) -> int:
        if self.k == 1:
            return pow(a, -1, self.p)
        return next(b for b in range(self.q) if self.multiply(a, b) == 1)

    def dot(self, a: int, x: int) -> int:
        """The inner product of vectors, which are integers with digits in base q."""
        if self.q == 2:
            return _parity(a & x)
        total = 0
        while a and x:
            total = self.add(total, self.multiply(a % self.q, x % self.q))
            a, x = a // self.q, x // self.q
        return total


def _cells(text: str, rows: int) -> Callable[[int, int, int], int]:
    """Public random bits of items, so many from a row on as one number."""
    stream = cache(lambda: sponge(text, 17 * rows))

    def cell(first: int, places: int, x: int) -> int:
        drawn, cube, result = stream(), _cubed(x), 0
        for row in range(first, first + places):
            at = 8 * row, 8 * (rows + row)
            linear, cubic = (int.from_bytes(drawn[k : k + 8], "little") for k in at)
            bit = _parity(linear & x ^ cubic & cube) ^ drawn[16 * rows + row] & 1
            result |= bit << row - first
        return result

    return cell


def _cubed(x: int) -> int:
    """x^3 in GF(2^64)."""
    square, cube = int(f"{x:b}", 4), 0  # the bits of x, each followed by a zero
    for place in range(x.bit_length()):
        if x >> place & 1:
            cube ^= square << place
    while high := cube >> 64:  # times x^64 = x^4 + x^3 + x + 1
        cube = cube % WORD ^ high ^ high << 1 ^ high << 3 ^ high << 4
    return cube


def _linear_hash(text: str, places: int) -> Callable[[int], int]:
    constant, *rows = struct.unpack(f"<{places + 1}Q", sponge(text, 8 * places + 8))
    constant %= 1 << places
    return lambda x: constant ^ sum(_parity(row & x) << place for place, row in enumerate(rows))


def _codeword(symbol: int, field: Sequence[int], through: Any) -> Callable[[int, int], int]:
    """A function that says which signs of an item's codeword are -1."""
    multiply, half = _Field(*field).multiply, symbol - 1

    def minus(x: int, index: int) -> int:
        value = 0
        for i, factor in enumerate(through[index >> half]):
            value ^= multiply(factor, x >> symbol * i & (1 << symbol) - 1)
        return _parity(value & index & (1 << half) - 1) ^ value >> half

    return minus


# --------- expressions: what is made of an item or a record v, and of public coins c, if there are


def _spelt(length: int, text: str, places: int) -> Any:
    """The hash of the first bits of a word, which is a list of integers of 64 bits."""
    limbs, rest = -(-length // 64), -length % 64
    constant, *rows = struct.unpack(f"<{places * limbs + 1}Q", sponge(text, 8 * places * limbs + 8))
    constant %= 1 << places

    def hashed(v: Sequence[int]) -> int:
        words = [*v[: limbs - 1], v[limbs - 1] >> rest << rest]
        parities = (
            sum(_parity(row & word) for row, word in zip(rows[k:], words, strict=False)) & 1
            for k in range(0, places * limbs, limbs)
        )
        return constant ^ sum(bit << place for place, bit in enumerate(parities))

    return hashed


def _hashed(shift: int, text: str, places: int) -> Any:
    hashed = _linear_hash(text, places)
    return lambda v: hashed(v >> shift)


def _grid(cuts: Any) -> Any:
    """The number of the cell along axes, which are widths and numbers of cells, or inner edges."""
    axes = []
    for place, axis in cuts:
        even, cells = (
            isinstance(axis, dict),
            axis["cells"] if isinstance(axis, dict) else 1 + len(axis),
        )
        axes.append((place, cells, axis["width"] if even else None, axis))

    def cell(v: Sequence[int]) -> int:
        result = 0
        for place, cells, width, axis in axes:
            interval = min(v[place] // width, cells - 1) if width else bisect_right(axis, v[place])
            result = result * cells + interval
        return result

    return cell


def _sides(steps: Any) -> Any:
    def item(v: Sequence[int]) -> int:
        node = side = 0
        for place, shift, bits in steps:
            child = v[place] >> shift
            node, side = (node << bits) + (child >> 1), side ^ child & 1
        return 2 * node + side

    return item


def _cell(text: str, hashes: int, places: int) -> Any:
    cell = _cells(text, hashes * places)
    return lambda v, c: cell(c[0] * places, places, v)


def _sketch(text: str, hashes: int, places: int) -> Any:
    cell = _cell(text, hashes, places)
    return lambda v, c: _parity(c[1] & cell(v, c))


def _projection(text: str, rows: int) -> Any:
    cell = _cells(text, rows)
    return lambda v, c: cell(c[0], 1, v)


def _code(*described: Any) -> Any:
    minus = _codeword(*described)
    return lambda v, c: minus(v, c[0])


def _dot(field: Sequence[int]) -> Any:
    dot = _Field(*field).dot
    return lambda v, c: dot(c[0], v)


def _multiple(field: Sequence[int], factors: int) -> Any:
    space = _Field(*field)

    def hashed(v: Any, c: Any) -> int:
        (direction, factor), power = divmod(c[0], factors), 1
        while direction >= power:
            direction, power = direction - power, power * space.q
        dot = space.dot(direction + power, v)
        return space.multiply(factor + 1, dot) if factor else dot

    return hashed


def _waves(waves: Any) -> Any:
    return _cuts([["wave", *wave] for wave in waves])


def _cuts(cuts: Any) -> Any:
    arcs = [_CUTS[kind](size, many, how) for kind, size, many, how in cuts]

    def cell(v: int, c: Sequence[int]) -> int:
        result, scale = 0, 1
        for (_, size, many, _), arc, coin in list(zip(cuts, arcs, c, strict=True))[::-1]:
            v, value = divmod(v, size)
            result += arc(value, coin) * scale
            scale *= many
        return result

    return cell


def _wave_arc(size: int, arcs: int, phases: Sequence[int]) -> Any:
    outcomes = [(level, phase, many) for level, many in enumerate(phases) for phase in range(many)]

    def arc(value: int, coin: int) -> int:
        level, phase, many = outcomes[coin]
        place = (2 * value + 1 << level) * arcs * many + (2 * phase + 1) * size
        return place // (2 * many * size) % arcs

    return arc


def _mask_arc(size: int, arcs: int, masks: Sequence[Sequence[int]]) -> Any:
    def arc(value: int, coin: int) -> int:
        return sum(_parity(mask & value) << bit for bit, mask in enumerate(masks[coin]))

    return arc


_CUTS: dict[str, Callable[..., Any]] = {"wave": _wave_arc, "masks": _mask_arc}


def _levels(text: str, places: int, widths: Any) -> Any:
    firsts = list(accumulate((places * len(sizes) for sizes in widths), initial=0))
    cell = _cells(text, firsts[-1])

    def minus(v: Sequence[int], c: Sequence[int]) -> int:
        level, hashed = c[0], 0
        for value, sizes, first in list(zip(v, widths, firsts, strict=False))[::-1]:
            level, mine = divmod(level, len(sizes))
            hashed ^= cell(first + places * mine, places, value // sizes[mine])
        return _parity(hashed & c[1])

    return minus


_EXPRESSIONS: dict[str, Any] = {
    "same": lambda: lambda v: v,
    "divide": lambda width: lambda v: v // width,
    "hashed": _hashed,
    "spelt": _spelt,
    "digits": lambda steps: lambda v: _mixed((v // step % size, size) for step, size in steps),
    "phase": lambda steps, order: (
        lambda v: sum(v // step % size * factor for step, size, factor in steps) % order
    ),
    "combine": lambda places: lambda v: _mixed((v[place], size) for place, size in places),
    "grid": _grid,
    "sides": _sides,
    "turn": lambda size, width: lambda v, c: (v + c[0]) % size // width,
    "half": lambda order: lambda v, c: int((v + c[0]) % order >= (order + 1) // 2),
    "dot": _dot,
    "multiple": _multiple,
    "walsh": lambda: lambda v, c: sum(_parity(index & v) << i for i, index in enumerate(c)),
    "haar": lambda: lambda v, c: _parity(c[0] & v >> 1) ^ v & 1,
    "projection": _projection,
    "cell": _cell,
    "sketch": _sketch,
    "code": _code,
    "waves": _waves,
    "cuts": _cuts,
    "levels": _levels,
}


def _expression(described: Sequence[Any]) -> Any:
    if described[0] not in _EXPRESSIONS:
        raise ClientError(f"unknown expression {described[0]!r:.40}")
    return _EXPRESSIONS[described[0]](*described[1:])


# ------------------------------------------------------------- steps: how an item becomes a report


class _Node(NamedTuple):
    """A step of a description: a report is a number of so many bytes, drawn for an item.

    ``likely(coins, item, number, most)`` says which of so many likelihoods the candidate of this
    number has that public coins draw, and ``place(report, item)`` which a report has; ``idle``
    draws a report of nobody's item; ``slot`` draws what a report is about: of a set one of its
    items.
    """

    size: int
    draw: Callable[[Any], int]
    likely: Callable[[_Coins, Any, int, int], int]
    place: Callable[[int, Any], int]
    likelihoods: int = 2
    idle: Any = None
    slot: Callable[[Any], Any] = lambda item: item


def _node(word: Word, step: dict[str, Any]) -> _Node:
    given = {key: value for key, value in step.items() if key != "do"}
    if step["do"] not in _NODES:
        raise ClientError(f"unknown step {step['do']!r:.40}")
    return _NODES[step["do"]](word, **given)


def _lie(word: Word, outcomes: int, lie: int, width: int, field: Any, signs: int) -> _Node:
    lies, fair = _lies(word, outcomes, lie), _below(word, outcomes)
    add = _Field(*field).add if field else None

    def draw(item: int) -> int:
        return add(item, lies()) if add else (item + lies()) % outcomes

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        if signs:
            blank = sum((coins.word(0) >> 63 - i & 1) << i for i in range(signs))
            return (blank ^ number % outcomes) == item
        return (coins.below(0, outcomes) + number) % outcomes == item

    if not signs:
        return _Node(width, draw, likely, lambda report, item: report == item, idle=fair)
    return _Node(
        signs,
        lambda item: _signs(item ^ lies(), signs),
        likely,
        lambda report, item: report == _signs(item, signs),
        idle=lambda: _signs(fair(), signs),
    )


def _window(word: Word, outcomes: int, accepted: int, inside: int, width: int, field: Any) -> _Node:
    if not 0 < accepted < outcomes:
        raise ClientError(f"{accepted!r:.40} of {outcomes!r:.40} values are no window")
    true, space = _chance(word, inside), _Field(*field)
    near, far = _below(word, accepted), _below(word, outcomes - accepted)

    def less(item: int, told: int) -> int:
        return space.add(item, space.multiply(space.p - 1, told))

    def draw(item: int) -> int:
        # All are drawn, so that the time is the same for what is told
        on, window, other = true(), near(), far()
        return less(item, window if on else accepted + other)

    def place(report: int, item: int) -> int:
        return less(item, report) < accepted

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        return place((coins.below(0, outcomes) + number) % outcomes, item)

    return _Node(width, draw, likely, place, idle=_below(word, outcomes))


def _signs(minus: int, count: int) -> int:
    """Signs as bytes: 1, and 255 where a bit is set."""
    return sum(_SIGNS[minus >> i & 1] << 8 * i for i in range(count))


_SIGNS = bytes((1, 255, *range(2, 256)))


def _with_bit(report: int, item: int, one: bool) -> int:
    return report | 1 << item if one else report & ~(1 << item)


def _unary(word: Word, places: int, own: int, other: int) -> _Node:
    mine, bits = _chance(word, own), _bits(word, places, other)
    return _Node(
        -(-places // 8),
        lambda item: _with_bit(bits(), item, mine()),
        lambda coins, item, number, most: coins.word(item) < other,
        _bit_of,
    )


def _bit_of(report: int, item: int) -> int:
    return report >> item & 1


def _subset(word: Word, places: int, size: int, inclusion: int, start: int) -> _Node:
    mine, other = _chance(word, inclusion), _below(word, places)
    bits = _bits(word, places, start)

    def draw(item: int) -> int:
        report = _with_bit(bits(), item, mine())
        while excess := report.bit_count() - size:
            picked = other()
            if picked != item and (report >> picked & 1) == (excess > 0):
                report ^= 1 << picked
        return report

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        return (item - number) % places in sorted(range(places), key=coins.word)[:size]

    return _Node(-(-places // 8), draw, likely, _bit_of)


def _hyperplane(word: Word, field: Any, dimension: int, lie: int, width: int) -> _Node:
    space = _Field(*field)
    q, powers = space.q, [space.q**place for place in range(dimension + 1)]
    firsts = [(power - 1) // (q - 1) for power in powers]
    lies, vectors = _lies(word, q, lie), _below(word, powers[-1])

    def vector(direction: int) -> int:
        place = bisect_right(firsts, direction) - 1
        return direction - firsts[place] + powers[place]

    def draw(item: int) -> int:
        product, point, a = lies(), vector(item), 0
        power = powers[bisect_right(powers, point) - 1]
        while not a:
            a = vectors()
            missing = space.add(product, space.multiply(space.p - 1, space.dot(a, point)))
            a += (space.add(a // power % q, missing) - a // power % q) * power
        place = bisect_right(powers, a) - 1
        scale = space.inverse(a // powers[place])
        unit = sum(space.multiply(scale, a // power % q) * power for power in powers[:-1])
        return unit - powers[place] + firsts[place]

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        return place((coins.below(0, firsts[-1]) + number) % firsts[-1], item)

    def place(report: int, item: int) -> int:
        return not space.dot(vector(report), vector(item))

    return _Node(width, draw, likely, place)


def _table(word: Word, denominator: int, columns: Any, width: int) -> _Node:
    ends = [
        [divmod(end << 64, denominator) for end in accumulate(column) if end < denominator]
        for column in columns
    ]
    wholes = [[whole for whole, _ in column] for column in ends]

    def draw(item: int) -> int:
        first = word()
        low, high = bisect_left(wholes[item], first), bisect_right(wholes[item], first)
        rests, prefix, bits = [rest for _, rest in ends[item][low:high]], 0, 0
        while True:  # until the digits read so far decide
            scaled = [rest << bits for rest in rests]
            least = bisect_right(scaled, prefix * denominator)
            if least == bisect_right(scaled, (prefix + 1) * denominator - 1):
                return low + least
            prefix, bits = prefix << 64 | word(), bits + 64

    outputs = [output for output, row in enumerate(zip(*columns, strict=True)) if any(row)]
    rows = [tuple(column[output] for column in columns) for output in outputs]
    means = [WORD * sum(row) // (denominator * len(columns)) for row in rows]
    means[means.index(max(means))] += WORD - sum(means)
    blanks, values = list(accumulate(means))[:-1], [sorted(set(row)) for row in rows]
    before = list(accumulate(map(len, values), initial=0))

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        return kind(bisect_right(blanks, coins.word(0)), item)

    def kind(report: int, item: int) -> int:
        return before[report] + values[report].index(rows[report][item])

    def place(output: int, item: int) -> int:
        return kind(outputs.index(output), item)

    return _Node(width, draw, likely, place, before[-1])


def _wave(word: Word, places: int, reach: int, far: int, width: int) -> _Node:
    near, outputs = 2 * reach + 1, places + 2 * reach
    away, close, beyond = _chance(word, far), _below(word, near), _below(word, max(places - 1, 1))

    def draw(item: int) -> int:
        if not away():
            return item + close()
        drawn = beyond()
        return drawn + near if drawn >= item else drawn

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        first = coins.below(0, outputs)
        return place((first + number * outputs // min(outputs, most)) % outputs, item)

    def place(report: int, item: int) -> int:
        return places > 1 and 0 <= report - item < near

    return _Node(width, draw, likely, place, min(places, 2))


def _attributes(word: Word, attributes: Any, width: int, places: Any) -> _Node:
    sizes = [size for size, _ in attributes]
    lies = [_lies(word, size, lie) for size, lie in attributes]
    steps = list(accumulate(sizes[:0:-1], lambda a, b: a * b, initial=1))[::-1]
    kinds = Counter(size for size in sizes if size > 1)

    def draw(item: int) -> int:
        columns = zip(steps, sizes, lies, strict=True)
        return _mixed(((item // step + lie()) % size, size) for step, size, lie in columns)

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        digits = zip((coins.below(j, size) for j, size in enumerate(sizes)), sizes, strict=True)
        return place(_mixed(digits), item)

    def place(report: int, item: int) -> int:
        columns = zip(steps, sizes, strict=True)
        same = Counter(s for step, s in columns if report // step % s == item // step % s)
        return int(places[_mixed((same[size], many + 1) for size, many in kinds.items())])

    return _Node(width, draw, likely, place, len(set(places)))


def _channels(
    word: Word,
    *,
    channels: int,
    length: int,
    lie: int,
    texts: Any,
    code: Any,
    width: int,
    oracle: Any,
) -> _Node:
    every, minus, then = len(texts) * channels, _codeword(*code), _node(word, oracle)
    lies, places = _lies(word, 2, lie), channels.bit_length() - 1
    hashes = [_linear_hash(text, places) for text in texts]

    def mine(item: int) -> list[int]:
        return [t * channels + hashed(item) for t, hashed in enumerate(hashes)]

    def draw(item: int) -> int:
        index, signs = _belows(word, every, length), bytearray(_belows(word, every, 2))
        for channel in mine(item):
            signs[channel] = minus(item, index[channel]) ^ lies()
        indices = bytes(index) if width == 1 else struct.pack(f"<{every}{'__H_I'[width]}", *index)
        bytes_ = indices + signs.translate(_SIGNS) + then.draw(item).to_bytes(then.size, "little")
        return int.from_bytes(bytes_, "little")

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        drawn = {channel: coins.below(channel, 2 * length) for channel in mine(item)}
        agree = sum((coin & 1) == minus(item, coin >> 1) for coin in drawn.values())
        return agree + then.likely(coins.after(every), item, number, most)

    def place(report: int, item: int) -> int:
        indices, signs = report, report >> 8 * width * every
        agree = sum(
            (signs >> 8 * c & 0xFF == _SIGNS[1])
            == minus(item, indices >> 8 * width * c & (1 << 8 * width) - 1)
            for c in mine(item)
        )
        return agree + then.place(signs >> 8 * every, item)

    return _Node((width + 1) * every + then.size, draw, likely, place, len(texts) + 2)


def _joined(numbers: Any, widths: Sequence[int]) -> int:
    """Numbers of so many bytes each, the first one lowest."""
    shifts = accumulate(widths, initial=0)
    return sum(number << 8 * shift for number, shift in zip(numbers, shifts, strict=False))


def _public(word: Word, coins: Sequence[Any], distinct: bool, cell: Any, then: Any) -> _Node:
    projection, rest, sides = (
        _expression(cell),
        _node(word, then),
        [_sides_of(coin) for coin in coins],
    )
    widths, most = [*(coin["width"] for coin in coins), rest.size], len(sides[0])
    throws = [(side, _below(word, len(side))) for side in sides]

    def toss() -> list[int]:
        while distinct:
            numbers = _belows(word, len(coins), most)
            if len(set(numbers)) == len(coins):
                return [sides[0][number] for number in numbers]
        return [side[draw()] for side, draw in throws]

    def draw(item: Any) -> int:
        public = toss()
        return _joined([*public, rest.draw(projection(item, public))], widths)

    def likely(drawn: _Coins, item: Any, number: int, most: int) -> int:
        public = list[int]()
        for place, side in enumerate(sides):
            size = len(side) - (len(sides) - 1 - place if distinct else 0)
            outcome = side[drawn.below(place, size)]
            public.append(side[size - 1] if distinct and outcome in public else outcome)
        return rest.likely(drawn.after(len(sides)), projection(item, public), number, most)

    shifts = list(accumulate((8 * width for width in widths), initial=0))

    def place(report: int, item: Any) -> int:
        public = [report >> low & (1 << high - low) - 1 for low, high in pairwise(shifts[:-1])]
        return rest.place(report >> shifts[-2], projection(item, public))

    def idle() -> int:
        return _joined([*toss(), rest.idle()], widths)

    return _Node(sum(widths), draw, likely, place, rest.likelihoods, idle)


def _sides_of(coin: dict[str, Any]) -> Sequence[int]:
    """The numbers that a coin may say, all as likely."""
    if "phases" not in coin:
        return range(coin["start"], coin["start"] + coin["count"])
    phases, deck = coin["phases"], list[int]()
    for level, many in enumerate(phases):
        times = max(phases) // many << len(phases) - 1 - level
        deck += [sum(phases[:level]) + phase for phase in range(many) for _ in range(times)]
    return deck


def _mixture(
    word: Word, *, width: int, weights: Any, channels: Any, kinds: Any, maps: Any, axes: Any
) -> _Node:
    nodes, parts = [_node(word, each) for each in channels], range(len(maps))
    items = [
        _grid([(place, axes[axis]) for place, axis in each[1]])
        if each[0] == "grid"
        else _expression(each)
        for each in maps
    ]
    asked = [part for part in parts if not weights or weights[part]]
    ends = [(part + 1) * WORD // len(parts) for part in parts]
    if weights:
        ends = list(accumulate(weights[part] for part in asked))
    ends.pop()
    before = list(accumulate((node.likelihoods for node in nodes), initial=0))

    def draw(item: Any) -> int:
        part = asked[bisect_right(ends, word())]
        return nodes[kinds[part]].draw(items[part](item)) << 8 * width | part

    def likely(coins: _Coins, item: Any, number: int, most: int) -> int:
        part = asked[bisect_right(ends, coins.word(0))]
        likelihood = nodes[kinds[part]].likely(coins.after(1), items[part](item), number, most)
        return before[kinds[part]] + likelihood

    def place(report: int, item: Any) -> int:
        part = report & (1 << 8 * width) - 1
        node, part_item = nodes[kinds[part]], items[part](item)
        return before[kinds[part]] + node.place(report >> 8 * width, part_item)

    return _Node(width + max(node.size for node in nodes), draw, likely, place, before[-1])


def _slots(word: Word, size: int, empty: int, then: Any) -> _Node:
    rest = _node(word, then)

    def slot(items: Sequence[int]) -> int:
        chosen = _below(word, max(len(items), size))()
        return items[chosen] if chosen < len(items) else empty

    return rest._replace(draw=lambda items: rest.draw(slot(items)), slot=slot)


def _choice(
    word: Word, *, seed: int, width: int, most: int, acceptance: Any, candidates: Any, then: Any
) -> _Node:
    rest, favour, numbers = _node(word, then), _below(word, 2), range(max(candidates))

    def kept(user: int, likelihoods: Iterable[int]) -> int:
        drawn, above = word(), 0
        for number, likelihood in enumerate(likelihoods):
            above += acceptance[likelihood] if number < candidates[likelihood] else 0
            if drawn < above:
                return user | number + 1 << 64
        return user

    def draw(value: Any) -> int:
        user = word()
        item, coins = rest.slot(value), _Coins((user + seed) % WORD)
        return kept(user, (rest.likely(coins, item, number, most) for number in numbers))

    def idle() -> int:
        user, favoured = word(), favour()
        return kept(user, (favoured == number for number in range(candidates[0])))

    return _Node(8 + width, draw, rest.likely, rest.place, idle=idle)


_NODES: dict[str, Callable[..., _Node]] = {
    "lie": _lie,
    "window": _window,
    "bits": _unary,
    "subset": _subset,
    "hyperplane": _hyperplane,
    "table": _table,
    "wave": _wave,
    "attributes": _attributes,
    "channels": _channels,
    "public": _public,
    "mixture": _mixture,
    "slots": _slots,
    "choice": _choice,
}


def main(arguments: list[str]) -> int:
    """Print a report of each value named after the file, or of each line of standard input.

    Returns the exit code: 2, after a message, if anything is wrong.
    """
    if not arguments or arguments[0].startswith("-"):
        print("usage: device.py PROTOCOL.json [VALUE ...]", file=sys.stderr)
        return 2
    try:
        client = load_client(arguments[0])
        takes = client.description["takes"]
        plain = takes["kind"] in ("string", "spelt") or len(takes.get("attributes", ())) == 1
        texts = arguments[1:] or sys.stdin.read().splitlines()
        reports = [client.report(text if plain else _spoken(text)) for text in texts]
    except ValueError as error:
        print(f"device.py: {error}", file=sys.stderr)
        return 2
    print(*(base64.b64encode(report).decode() for report in reports if report), sep="\n")
    return 0


def _spoken(text: str) -> Any:
    """A value on a command line: JSON where it is some, or a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
