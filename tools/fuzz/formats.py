"""Damaged and forged inputs of a format, and the plain reading that says what is in one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

LONGEST = 100_000
"""The most bytes of an input; longer ones are cut."""


class Object(list[tuple[str, Any]]):
    """A JSON object as it is written: keys may repeat, and have an order."""


LENIENT = "utf-8", "surrogatepass"


class Token(str):
    """Written as it is, whether it is JSON or not."""


TOKENS = [
    *("null", "true", "false", "0", "-0", "-1", "1", "2", "1.0", "1e0", "0.5", "1e-400", "1e400"),
    *("NaN", "Infinity", "-Infinity", "01", "0x1", "", "}", "]", '"', '"\\ud800"', '"\\u0000"'),
    *(str(n) for n in (2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 2**200, -(2**200))),
    *("9" * 4300, "9" * 4301, "1e99999", "[]", "{}", "[[]]", "[1]", '{"a":1}', '""', '"0"', '"1"'),
    *('"-1"', '"1/2"', '"1/0"', '"0/1"', '"-1/2"', '"2/1"', '"0x"', '"0x1"', '"1e9"', '"1.5"'),
    *('"' + "9" * 5000 + '"', '"0x' + "f" * 100_000 + '"', '"1/0x1' + "0" * 100_000 + '"'),
    *(
        '"' + "x" * 3000 + '"',
        "[" * 70 + "]" * 70,
        "[" * 100_000,
        '{"a":' * 2000 + "1" + "}" * 2000,
    ),
    *("[" + "0," * 5000 + "0]", '"all"', '"adjacent"', '"\\u202e"', '"frequency.GRR"'),
]


def parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=Object, parse_float=Token)


def written(value: Any) -> str:
    if isinstance(value, Token):
        return value
    if isinstance(value, Object):
        return "{" + ",".join(f"{json.dumps(k)}:{written(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def _places(value: Any) -> Iterator[tuple[list[Any], int]]:
    """Every entry of every list and object."""
    if isinstance(value, list):
        for k, entry in enumerate(value):
            yield value, k
            yield from _places(entry[1] if isinstance(value, Object) else entry)


def _entry(place: tuple[list[Any], int]) -> Any:
    held, k = place
    return held[k][1] if isinstance(held, Object) else held[k]


def _put(place: tuple[list[Any], int], value: Any) -> None:
    held, k = place
    held[k] = (held[k][0], value) if isinstance(held, Object) else value


def _moved(value: Any, rng: random.Random) -> Any:
    """A number, or a text that is one, that differs a little; else an odd token."""
    if type(value) is int:
        large = 1 << rng.randrange(8, 64)
        return rng.choice(
            [value + 1, value - 1, -value, 2 * value, value + 10**6, large, Token(f"{value}.0")]
        )
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,4000}", value):
        return str(int(value) + rng.choice([-1, 1, int(value), -2 * int(value), 10**9]))
    if isinstance(value, str) and value:
        k = rng.randrange(len(value))
        return value[:k] + rng.choice("0123456789/-xe .") + value[k + rng.randrange(2) :]
    return Token(rng.choice(TOKENS))


def mutated_json(value: Any, rng: random.Random) -> Any:
    """A few changes; ``value`` itself is changed."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = list(_places(value))
        if not places:
            return Token(rng.choice(TOKENS))
        here, other = rng.choice(places), rng.choice(places)
        held, k = here
        match rng.randrange(10):
            case 0 | 1:
                _put(here, Token(rng.choice(TOKENS)))
            case 2 | 3 | 4:
                _put(here, _moved(_entry(here), rng))
            case 5:
                held.insert(rng.randrange(len(held) + 1), held[k])  # a key twice, or an entry
            case 6:
                del held[k]
            case 7:
                first, second = deepcopy(_entry(here)), deepcopy(_entry(other))
                _put(here, second)
                _put(other, first)
            case 8:
                rng.shuffle(held)
            case 9 if isinstance(held, Object):
                held[k] = (rng.choice([held[k][0] + "x", "", "more", "__class__"]), held[k][1])
                if rng.randrange(2):
                    held.append(("more", rng.choice([None, 1, "x"])))
            case _:
                _put(here, [_entry(here)])
    return value


def mutated_bytes(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """A few changes; ``other`` is what is spliced in."""
    result = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not result:
            break
        at, to = sorted(rng.randrange(len(result) + 1) for _ in range(2))
        near = min(to, at + rng.randrange(1, 17))
        match rng.randrange(8):
            case 0 | 1:
                result[min(at, len(result) - 1)] ^= 1 << rng.randrange(8)
            case 2:
                result[min(at, len(result) - 1)] = rng.choice([0, 1, 127, 128, 255])
            case 3:
                del result[at:near]
            case 4:
                result[at:at] = rng.randbytes(rng.randrange(1, 17))
            case 5:
                result[at:near] = rng.randbytes(near - at)
            case 6:
                del result[to:]
            case 7:
                start = rng.randrange(len(other))
                result[at:near] = other[start : start + rng.randrange(1, 100)]
    return bytes(result)


class Format(ABC):
    """A sort of file: valid ones, how to change them, and what to hold against what is read."""

    name: ClassVar[str]
    refusals: ClassVar[tuple[type[Exception], ...]]
    """The errors by which an input may be refused."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.originals = list(self.valid())

    @abstractmethod
    def valid(self) -> Iterator[bytes]:
        """Some valid files."""

    @abstractmethod
    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        """One of them, changed."""

    @abstractmethod
    def read(self, path: Path) -> Any:
        """What the library makes of a file."""

    @abstractmethod
    def lie(self, found: Any, data: bytes) -> str | None:
        """Why what was read cannot be what the file says; None if it can."""

    def saved(self, save: Callable[[Path], object], suffix: str = ".json") -> bytes:
        """What ``save`` writes."""
        path = self.place / f"original{suffix}"
        save(path)
        return path.read_bytes()


def digest_of(content: dict[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def resealed(value: Any) -> str:
    """As text, its digest made anew if it is an object that has one and can be read."""
    if isinstance(value, Object):
        with contextlib.suppress(ValueError, RecursionError):
            right = digest_of(json.loads(written(value)))
            value[:] = [(key, right if key == "digest" else entry) for key, entry in value]
    return written(value)


class JSONFormat(Format):
    """Text; its digest, if there is one, is mostly made anew."""

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(5) == 0:
            return mutated_bytes(data, rng.choice(self.originals), rng)
        value = self.changed(parsed(data.decode()), rng)
        return (resealed(value) if rng.randrange(8) else written(value)).encode(*LENIENT)

    def changed(self, value: Any, rng: random.Random) -> Any:
        """What the text says, changed; ``value`` itself may be."""
        return mutated_json(value, rng)
