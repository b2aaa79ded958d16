"""Try thousands of damaged and forged files: each must be read as it is written, or refused.

    python tools/fuzz.py                                       500 inputs of every format
    python tools/fuzz.py --inputs 20000 --format parquet --seed 7
    python tools/fuzz.py --format parquet --seed 7 --only 1234 --keep input    one of them again

Inputs are made from valid files: bits flip, bytes are spliced, tokens and entries of JSON are
replaced, repeated, moved and removed, numbers of a report or of an aggregate are changed; digests
are mostly computed again, so that the checks behind them are reached. An input depends on the seed,
on its format and on its number alone.

A finding is an error other than those that the reader promises, an input that is accepted although
a plain reading of it, written here without the library, says otherwise, more than 5 CPU seconds, or
more than 500 MB: inputs have at most 100 kB. A process that hangs or dies is a finding too, and
another process continues. The exit code is 1 if there are findings. Needs the extra ``storage``,
and a POSIX system.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import csv
import hashlib
import io
import json
import math
import multiprocessing
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import tomllib
import zipfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frequency import (
    GRR,
    HRR,
    OUE,
    HadamardCountMeanSketch,
    IncompatibleAggregate,
    InvalidReport,
    JLOracle,
    Survey,
)
from frequency.clients import ClientError, load_memoised
from frequency.heavy import OneBit, PrefixExtension, SuccinctHistogram
from frequency.longitudinal import Memoised
from frequency.marginals import CALM, Domain, InpHTCMS
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Text
from frequency.storage import (
    RefusedFile,
    aggregate_files,
    load_protocol,
    read_reports,
    save_protocol,
    write_reports,
)
from mechdesign import InvalidFile, Ledger, Mechanism, MechanismError, Privacy, design, named
from mechdesign.accounting import shuffled
from mechdesign.cli import main as command
from mechdesign.losses import L0, L1
from mechdesign.mechanism.device import Device
from mechdesign.privacy import Metric
from mechdesign.tables import TableRelease, release, release_contingency
from mechdesign.tables.contingency import ContingencyRelease
from rangeq import HierarchicalHistogram
from rangeq.central import (
    CentralFlat,
    CentralMechanism,
    Hierarchy,
    QuantileRelease,
    Release,
    ReleasedQuantiles,
    TreeQuantiles,
    Wavelet,
)
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy, ProductStrategy
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.strategy_file import load_strategy, save_strategy
from rangeq.central.region_release import RegionRelease, release_regions
from rangeq.central.regions import Regions
from rangeq.grids import HDG

SECONDS, MEGABYTES = 5.0, 500
"""What reading an input may cost."""

LONGEST = 100_000
"""The most bytes of an input; longer ones are cut."""

_HANG = 30.0
"""Seconds without a sign of life after which a process is ended."""

_BEGIN = 300.0
"""Seconds in which it has to begin."""

_ADDRESSES = 4 << 30
"""Bytes of address space that an input may ask for."""


# ---------------------------------------------------------------------------------------- mutations


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


# ------------------------------------------------------------------------------------------ formats


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


def whole(text: str) -> int:
    """An integer as files write it."""
    return int(text, 16 if "x" in text else 10)


def rational(text: str) -> Fraction:
    top, slash, bottom = text.partition("/")
    return Fraction(whole(top), whole(bottom) if slash else 1)


def distances(neighbours: Any, inputs: int) -> Iterator[tuple[int, int, int]]:
    """All pairs of neighbours and how many times alpha they may be told apart by."""
    if isinstance(neighbours, dict):
        table = neighbours["distances"]
        pairs = [(j, k) for j in range(inputs) for k in range(j) if table[j][k] is not None]
        yield from ((j, k, table[j][k]) for j, k in pairs)
    elif isinstance(neighbours, list):
        yield from ((j, k, 1) for j, k in neighbours)
    else:
        reach = {"adjacent": 1, "all": inputs}.get(neighbours, neighbours)
        yield from ((j, k, 1) for j in range(inputs) for k in range(max(0, j - reach), j))


def false_table(content: dict[str, Any]) -> str | None:
    """Why a mechanism's table is false; None if it is not.

    It has to be an exact distribution for each input, and as private as claimed.
    """
    weights = [[whole(entry) for entry in row] for row in content["weights"]]
    denominator, alpha = whole(content["denominator"]), rational(content["alpha"])
    if not 0 < alpha <= 1:
        return f"alpha = {alpha}"
    columns = list(zip(*weights, strict=True))
    for j, column in enumerate(columns):
        if sum(column) != denominator or min(column) < 0:
            return f"column {j} is no distribution"
    for j, k, distance in distances(content["neighbours"], len(columns)):
        least = alpha**distance
        for p, q in zip(columns[j], columns[k], strict=True):
            if p < least * q or q < least * p:
                return f"inputs {j} and {k} can be told apart"
    return None


class MechanismFile(JSONFormat):
    """A mechanism, its claim and its certificate."""

    name = "mechanism"
    refusals: ClassVar[tuple[type[Exception], ...]] = (MechanismError,)

    def valid(self) -> Iterator[bytes]:
        half = Privacy(alpha="1/2")
        metric = Privacy(alpha="1/2", neighbours=Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
        for mechanism in (
            named.geometric(4, alpha="9/10"),
            named.krr(3, alpha=Fraction(1, 3)),
            Mechanism(named.geometric(2, alpha="1/2").table, metric),
            design(3, half, L0(), ["WH", "CM"]).mechanism,
            design(3, Privacy(alpha="1/2", neighbours=[(0, 1), (1, 3)]), L1()).mechanism,
        ):
            yield self.saved(mechanism.save)

    def changed(self, value: Any, rng: random.Random) -> Any:
        if rng.randrange(3):
            return mutated_json(value, rng)
        # Some probability goes from one output to another one; and the claim may change as well.
        content = dict(value)
        rows = content["weights"]
        column, some = rng.randrange(len(rows[0])), rng.sample(range(len(rows)), 2)
        most = whole(rows[some[0]][column])
        step = rng.choice([1, 1 + most // 1000, most // 2, most, most + 1])
        for row, sign in zip(some, (-1, 1), strict=True):
            rows[row][column] = str(whole(rows[row][column]) + sign * step)
        alpha = rng.choice(
            [rational(content["alpha"]), Fraction(499, 1000), Fraction(1), Fraction(1, 9)]
        )
        claims = {"alpha": str(alpha), "neighbours": rng.choice(["all", 2, content["neighbours"]])}
        claims |= {"certificate": rng.choice([None, content["certificate"]])}
        return Object((content | claims).items())

    def read(self, path: Path) -> Any:
        return Mechanism.load(path)

    def lie(self, found: Any, data: bytes) -> str | None:
        content = json.loads(data)
        if (reason := false_table(content)) is not None:
            return reason
        denominator = whole(content["denominator"])
        table = [
            [Fraction(whole(entry), denominator) for entry in row] for row in content["weights"]
        ]
        if [list(row) for row in found.table] != table or found.privacy.alpha != rational(
            content["alpha"]
        ):
            return "it is not the table, or not the alpha, of the file"
        return self._false_certificate(content, table)

    def _false_certificate(
        self, content: dict[str, Any], table: list[list[Fraction]]
    ) -> str | None:
        """Why a certificate is false.

        Its loss must be the one of the definition, and its bound no better than a valid file's.
        """
        proof = content["certificate"]
        if proof is None:
            return None
        objective, bound, loss = (
            rational(proof["objective"]),
            rational(proof["bound"]),
            proof["loss"],
        )
        if bound > objective:
            return "the bound is above the objective"
        if "power" in loss and rational(loss["power"]).denominator == 1 and not loss["worst_case"]:
            power, inputs = int(rational(loss["power"])), len(table[0])
            prior = loss["prior"] or [f"1/{inputs}"] * inputs
            mean = sum(
                rational(weight) * row[j] * abs(i - j) ** power
                for i, row in enumerate(table)
                for j, weight in enumerate(prior)
                if abs(i - j) > loss["d"]
            )
            if mean != objective:
                return "the objective is not the loss"
        for original in map(json.loads, self.originals):
            known = original["certificate"]
            if known and _program(original) == _program(content):
                best = rational(known["objective"])
                if bound > best or objective < best:
                    return "the optimum is another one"
        return None


def _program(content: dict[str, Any]) -> Any:
    """What a certificate is about."""
    proof, rows = content["certificate"], content["weights"]
    parts = content["alpha"], content["neighbours"], len(rows), len(rows[0])
    return (*parts, proof["loss"], sorted(proof["properties"])) if proof else None


class DeviceFile(MechanismFile):
    """The same files, as devices read them that have nothing but the standard library."""

    name = "device"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)

    def read(self, path: Path) -> Any:
        return Device(str(path))

    def lie(self, found: Any, data: bytes) -> str | None:
        content = json.loads(data)
        columns = zip(*[[whole(entry) for entry in row] for row in content["weights"]], strict=True)
        drawn = [[b - a for a, b in pairwise([0, *ends])] for ends in found.cumulative]
        if drawn != [list(column) for column in columns]:
            return "it is not the table of the file"
        return false_table(content)


class LedgerFile(JSONFormat):
    """A budget, and what was spent of it. There is no digest: whatever adds up is a ledger."""

    name = "ledger"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile,)

    def valid(self) -> Iterator[bytes]:
        response = Mechanism(
            [["3/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3", neighbours="all")
        )
        for budget, spends in (
            (("1",), []),
            (("1",), [("0.5", "ages", None)]),
            (("1",), [("1/3", "a", "north"), ("1/2", "b", ("x", "y"))]),
            (("2", "1e-6", "3"), [(shuffled(response, 1000), "c", None), ("1/7", "d", "z")]),
        ):
            ledger = Ledger(*budget)
            for spend in spends:
                ledger.spend(*spend)
            path = self.place / "original.json"
            path.unlink(missing_ok=True)
            yield self.saved(ledger.save)

    def read(self, path: Path) -> Any:
        return Ledger.load(path)

    def lie(self, found: Any, data: bytes) -> str | None:
        content, sums, everybody = json.loads(data), Counter[str](), Fraction(0)
        key = "people" if content["version"] == 1 else "users"
        entries = [
            (rational(each["epsilon"]), each["what"], each[key]) for each in content["entries"]
        ]
        for epsilon, _, people in entries:
            if epsilon <= 0:
                return f"a collection costs {epsilon}"
            if people is None:
                everybody += epsilon
            for group in {people} if isinstance(people, str) else {*(people or ())}:
                sums[group] += epsilon  # type: ignore[assignment]
        most = everybody + max(sums.values(), default=0)
        if not rational(content.get("delta", "0")) and most > rational(content["epsilon"]):
            return "more was spent than there is"
        if len({what for _, what, _ in entries}) < len(entries):
            return "one collection twice"
        read = [(entry.epsilon, entry.what) for entry in found.entries]
        if (found.epsilon, read) != (
            rational(content["epsilon"]),
            [entry[:2] for entry in entries],
        ):
            return "it is not what the file says"
        return None


class ProtocolFile(JSONFormat):
    """A protocol, and the parameters that clients and server agree on."""

    name = "protocol"
    refusals: ClassVar[tuple[type[Exception], ...]] = (MechanismError,)

    def valid(self) -> Iterator[bytes]:
        self._protocols: tuple[Any, ...] = (
            GRR(5, 1.0),
            HRR(100, Fraction(7, 5), 2),
            CALM(Domain({"a": 3, "b": 2, "c": 4}), 2, 1.1),
            PrefixExtension(16, 2.0, lengths=(4, 8, 16)),
            HierarchicalHistogram(30, 1.0, branching=(5, 6), oracle=("OUE", "HRR")),
            HDG({"x": 64, "y": 16, "z": 5}, 1.0, 1000),
            HadamardCountMeanSketch(100, 1.0, hashes=4, width=8),
            JLOracle(100, 1.0, rows=8),
            SuccinctHistogram(8, 2.0, n=10**5, hashes=1, channels=4, rows=64),
            InpHTCMS(Domain({"a": 3, "b": 2, "c": 4}), 2, 1.0, hashes=2, width=8),
            OneBit(GRR(5, "1/2")),
            Survey(GRR(11, 1.0), Schema([AGE])),
        )
        for protocol in self._protocols:
            yield self.saved(partial(save_protocol, protocol=protocol))

    def read(self, path: Path) -> Any:
        return load_protocol(path)

    def lie(self, found: Any, data: bytes) -> str | None:
        content = json.loads(data)
        channel = getattr(found, "channel", found)
        if json.loads(json.dumps(channel.parameters)) != content["agreed"]:
            return "it has other parameters than the file"
        for original, protocol in zip(
            map(json.loads, self.originals), self._protocols, strict=True
        ):
            if original["agreed"] == content["agreed"]:
                many = isinstance(protocol, (CALM, HDG, InpHTCMS))
                users: Any = np.zeros((50, 3) if many else 50, dtype=int)
                users = {"age": users} if isinstance(protocol, Survey) else users
                drawn = [p.privatize(users, np.random.default_rng(1)) for p in (found, protocol)]
                if drawn[0].tobytes() != drawn[1].tobytes():
                    return "it draws other reports than a protocol of the same parameters"
        return None


# Releases are of these attributes.

AGE = Numeric("age", low=0, high=9, whole=True, missing="item", outside="clip")
PAY = Numeric("pay", [0, 1, 2.5, 10, 100, 1000], unit="euros")
SMOKES = Boolean("smokes")


def loses_more(content: dict[str, Any], alphas: list[str]) -> bool:
    """Whether noises of these alphas lose more than the file's epsilon."""
    loss = sum(-math.log(rational(alpha)) for alpha in alphas)
    return loss > rational(content["epsilon"]) * (1 + 1e-9)


class QuantilesFile(JSONFormat):
    """Quantiles that a curator has published."""

    name = "quantiles"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile,)

    def valid(self) -> Iterator[bytes]:
        q = (Fraction(1, 4), Fraction(1, 2))
        for kind in (QuantileRelease, TreeQuantiles):
            for attribute in (AGE, PAY):
                mechanism = kind(attribute.bins, q, Fraction(1, 3))
                found = ReleasedQuantiles(Schema([attribute]), mechanism, (2, 4))
                yield self.saved(found.save)

    def read(self, path: Path) -> Any:
        return ReleasedQuantiles.load(path)

    def lie(self, found: Any, data: bytes) -> str | None:
        content = json.loads(data)
        if [*found.bins] != content["bins"] or [*found.q] != [*map(rational, content["q"])]:
            return "it is not what the file says"
        if loses_more(content, [content["alpha"]]):
            return "it loses more than its epsilon"
        return None


class SchemaFile(JSONFormat):
    """What is asked, in JSON and in TOML."""

    name = "schema"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile,)

    def valid(self) -> Iterator[bytes]:
        day = Dates("day", "2020-01-01", "2020-03-01", "week", missing="skip")
        word = Text("word", bytes=4, outside="clip")
        colour = Categorical("colour", ["red", "green"], outside="item")
        for asked in ((AGE, SMOKES), (PAY, day, word), (colour,)):
            for suffix in (".json", ".toml"):
                yield self.saved(Schema(asked, "a census").save, suffix)

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if data.startswith(b"{"):
            return super().mutated(data, rng)
        if rng.randrange(2):
            return mutated_bytes(data, rng.choice(self.originals), rng)
        lines = data.decode().splitlines()
        odd = [
            "[a.b]",
            "[[attributes]]",
            'x = """',
            "y = [[[[1]]]]",
            "a.b.c = {d.e = 1}",
            "[",
            "# '",
        ]
        odd += [f"{'.'.join('k' * 33)} = 1", f"z = {'[' * 33}{']' * 33}", *TOKENS[:30]]
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(lines))
            name = lines[at].partition(" = ")[0]
            lines[at : at + rng.randrange(2)] = [
                rng.choice([rng.choice(odd), f"{name} = {rng.choice(odd)}", rng.choice(lines)])
            ]
        return "\n".join(lines).encode(*LENIENT)

    def changed(self, value: Any, rng: random.Random) -> Any:
        return Object(entry for entry in mutated_json(value, rng) if entry[0] != "digest")

    def read(self, path: Path) -> Any:
        kind = ".json" if path.read_bytes()[:1] == b"{" else ".toml"
        return Schema.load(shutil.copy(path, path.with_suffix(kind)))

    def lie(self, found: Any, data: bytes) -> str | None:
        text = data.decode()
        content = json.loads(text) if text[:1] == "{" else tomllib.loads(text)
        names = [one["name"] for one in content["attributes"]]
        return None if [*found.names] == names else "it has other attributes"


class ReleasedFile(JSONFormat):
    """Released counts, and the mechanisms that they were drawn from."""

    refusals: ClassVar[tuple[type[Exception], ...]] = (MechanismError,)

    part: ClassVar[str] = ""
    """The attribute, and the key, of the released cells; "": the whole."""

    def lie(self, found: Any, data: bytes) -> str | None:
        content = json.loads(data)
        if self.part:
            found, content = getattr(found, self.part), content[self.part]
        for mechanism in content["mechanisms"]:
            if (reason := false_table(mechanism)) is not None:
                return reason
        if found.released.tolist() != content["released"]:
            return "it is not what the file says"
        return None


class TableFile(ReleasedFile):
    """A table of groups."""

    name = "table"

    def valid(self) -> Iterator[bytes]:
        for names in (None, ["a", "b", "c"]):
            rng = np.random.default_rng(1)
            yield self.saved(
                release([1, 2, 0], [2, 3, 2], Privacy(alpha="1/2"), names=names, rng=rng).save
            )

    def read(self, path: Path) -> Any:
        return TableRelease.load(path)


class ContingencyFile(ReleasedFile):
    """A table of several attributes."""

    name = "contingency"
    part = "cells"

    def valid(self) -> Iterator[bytes]:
        axes, rng = {"region": ["n", "s"], "answer": ["y", "n"]}, np.random.default_rng(1)
        counts, half = [[1, 2], [0, 1]], Privacy(alpha="1/2")
        margins = {("region",): half, (): half}
        yield self.saved(
            release_contingency(counts, axes, half, caps=3, margins=margins, rng=rng).save
        )
        yield self.saved(release_contingency(counts, axes, half, within=["region"], rng=rng).save)

    def read(self, path: Path) -> Any:
        return ContingencyRelease.load(path)


class RegionsFile(ReleasedFile):
    """A tree of regions."""

    name = "regions"
    part = "leaves"

    def valid(self) -> Iterator[bytes]:
        tree = Regions([("south", "Kent"), ("south", "Surrey"), ("north", "Durham")])
        rng = np.random.default_rng(1)
        yield self.saved(
            release_regions(tree, [1, 0, 2], [2, 2, 3], Privacy(alpha="1/4"), rng=rng).save
        )

    def read(self, path: Path) -> Any:
        return RegionRelease.load(path)


class StrategyFile(Format):
    """Strategies: archives of arrays, with digests that are mostly made anew."""

    name = "strategy"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile,)

    def valid(self) -> Iterator[bytes]:
        dense = DenseStrategy(np.array([[1, 1, 1], [1, 0, 0], [0, 0, 1]]))
        for strategy in (
            dense,
            ProductStrategy([dense, DenseStrategy(np.array([[1, 0], [1, 1]]))]),
            MarginalStrategy((2, 3), [(0,), (0, 1)], [2, 1]),
        ):
            yield self.saved(partial(save_strategy, strategy=strategy, bound=1.5), ".npz")

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(4) == 0:
            return mutated_bytes(data, rng.choice(self.originals), rng)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        content = parsed(members.pop("strategy.json").decode())
        arrays = sorted(members)
        if rng.randrange(2):
            name = rng.choice(arrays)
            members[name] = self._array(members[name], rng)
            sums = {name: hashlib.sha256(one).hexdigest() for name, one in members.items()}
            content[:] = [(k, Object(sums.items()) if k == "arrays" else v) for k, v in content]
        else:
            content = mutated_json(content, rng)
        stream = io.BytesIO()
        kind = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
        with zipfile.ZipFile(stream, "w", kind) as archive:
            text = resealed(content) if rng.randrange(8) else written(content)
            archive.writestr("strategy.json", text.encode(*LENIENT))
            for name, one in members.items():
                archive.writestr(name, one)
        return stream.getvalue()

    def _array(self, data: bytes, rng: random.Random) -> bytes:
        """An array with other numbers, of another shape, or with a header that lies."""
        if rng.randrange(3) == 0:
            return mutated_bytes(data, data, rng)
        held = np.load(io.BytesIO(data))
        shape = rng.choice([held.shape, held.shape[::-1], (held.size,), (1, held.size), (2, 9)])
        kind = rng.choice(["<i8", "<i8", "<i8", "<f8", ">i8", "|O", "|u1"])
        stream, large = io.BytesIO(), 1 << rng.randrange(8, 40)
        if rng.randrange(4) == 0:  # what it announces, it does not hold
            size = rng.choice([(large,), (large, large), (3, large), (0, large)])
            header = {"descr": "<i8", "fortran_order": False, "shape": size}
            np.lib.format.write_array_header_1_0(stream, header)
            return stream.getvalue() + rng.choice([data[-8:], b"", bytes(10**6)])
        numbers = np.resize(held, shape)
        numbers.flat[rng.randrange(numbers.size)] = rng.choice([0, 1, -1, 7, large, -large, 2**62])
        if kind == "|O":
            np.lib.format.write_array_header_1_0(
                stream, {"descr": "|O", "fortran_order": False, "shape": shape}
            )
            return stream.getvalue() + data[-16:]
        np.save(stream, numbers.astype(kind))
        return stream.getvalue()

    def read(self, path: Path) -> Any:
        found = load_strategy(path)
        strategy = found.strategy
        return found, strategy.l1, strategy.l2_squared

    def lie(self, found: Any, data: bytes) -> str | None:
        stored, l1, _ = found
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            content = json.loads(archive.read("strategy.json"))
            arrays = {
                name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
                for name in content["arrays"]
            }
        own = stored.strategy.arrays()
        if list(stored.strategy.sizes) != content["sizes"] or any(
            not np.array_equal(own[name], array) for name, array in arrays.items()
        ):
            return "it is not what the file says"
        if content["kind"] == "dense" and l1 != abs(arrays["matrix"]).sum(axis=0).max():
            return "it has another sensitivity"
        return None


class PermanentFile(JSONFormat):
    """The reports that a device keeps, of a question that is asked every day."""

    name = "permanent"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ClientError,)

    def valid(self) -> Iterator[bytes]:
        self._question = Memoised(GRR(5, "1/2"), 2).client()
        drawn = random.Random(1)
        for values in ((), (3,)):
            path = self.place / "original.json"
            path.unlink(missing_ok=True)
            client = load_memoised(self._question, path, 1, lambda: drawn.getrandbits(64))
            for value in values:
                client.report(value)
            yield path.read_bytes()

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(5) == 0:
            return mutated_bytes(data, rng.choice(self.originals), rng)
        value = mutated_json(parsed(data.decode()), rng)
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(written(value))
            if isinstance(value, Object) and isinstance(content, dict) and rng.randrange(8):
                rest = {key: one for key, one in content.items() if key != "digest"}
                text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
                seal = "shake256:" + hashlib.shake_256(text.encode()).hexdigest(32)
                value[:] = [(key, seal if key == "digest" else one) for key, one in value]
        return written(value).encode(*LENIENT)

    def read(self, path: Path) -> Any:
        return load_memoised(self._question, path)

    def lie(self, found: Any, data: bytes) -> str | None:
        content = json.loads(data)
        items = [item for item, _ in content["kept"]]
        if found.start != content["start"] or found.held != len(items):
            return "it is not what the file says"
        if not all(type(item) is int and 0 <= item < 5 for item in items):
            return "an item beyond the domain"
        return None


# Reports, aggregates and states are of three oracles whose definitions fit in a line.

ORACLES = (GRR(5, 1.0), OUE(9, 1.0), HRR(16, 1.0, 2))
COUNTS = ((5,), (9,), (16,))
USERS = 40


def reports_of(oracle: Any, users: int = USERS) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    found: np.ndarray[Any, Any] = oracle.privatize(rng.integers(0, oracle.domain, users), rng)
    return found


def sendable(k: int, report: Any) -> bool:
    """Whether a client of the k-th oracle can have sent this."""
    if k == 0:
        return bool(report["item"] < 5)
    if k == 1:
        return bool(report["bits"][1] < 2)
    index, sign = report["index"].tolist(), report["sign"].tolist()
    return 0 not in index and max(index) < 16 and len(set(index)) == 2 and {*sign} <= {-1, 1}


def countable(k: int, n: int, counts: list[int]) -> bool:
    """Whether n reports to the k-th oracle can have these counts."""
    if k == 0:
        return min(counts) >= 0 and sum(counts) == n
    if k == 1:
        return all(0 <= count <= n for count in counts)
    size, most = sum(map(abs, counts)), sum(n - (n - count) % 2 for count in counts[1:])
    return (
        counts[0] == 0
        and max(map(abs, counts)) <= n
        and size <= 2 * n <= most
        and (2 * n - size) % 2 == 0
    )


def signature(oracle: Any) -> str:
    return json.dumps(oracle.parameters, sort_keys=True, separators=(",", ":"))


def wire(oracle: Any) -> bytes:
    return hashlib.shake_256(signature(oracle).encode()).digest(8)


def batch_of(k: int, version: int) -> bytes:
    """A batch of the k-th oracle, whose id is no random number: reproducible."""
    reports, oracle = reports_of(ORACLES[k]), ORACLES[k]
    named = (
        {"parameters": signature(oracle)}
        if version == 1
        else {"protocol": wire(oracle).hex(), "id": f"{k:032x}"}
    )
    header = {"version": version, "kind": "reports", "count": len(reports), **named}
    return message(json.dumps(header).encode(), reports.tobytes())


def message(header: bytes, body: bytes) -> bytes:
    return b"LDPF" + len(header).to_bytes(4, "little") + header + body


def split(data: bytes) -> tuple[bytes, bytes]:
    end = 8 + int.from_bytes(data[4:8], "little")
    return data[8:end], data[end:]


class MessageFormat(Format):
    """A header of JSON, and integers behind it; sealed by a digest, which is mostly made anew."""

    sealed: ClassVar[bool]

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        content = data[:-32] if self.sealed else data
        header, body = split(content)
        match rng.randrange(6):
            case 0:
                content = mutated_bytes(content, rng.choice(self.originals), rng)
            case 1 | 2 | 3:
                text = written(mutated_json(parsed(header.decode()), rng))
                content = message(text.encode(*LENIENT), body)
            case 4:
                content = message(header, self.changed(body, rng))
            case 5:
                other = rng.choice(self.originals)
                content = message(header, split(other[:-32] if self.sealed else other)[1])
        if not self.sealed:
            return content
        digest = hashlib.sha256(content).digest() if rng.randrange(8) else data[-32:]
        return content + digest

    def changed(self, body: bytes, rng: random.Random) -> bytes:
        """Other integers, or bytes."""
        if not self.sealed or len(body) % 8 or not body:
            return mutated_bytes(body, body, rng) if body else rng.randbytes(9)
        counts = [
            int.from_bytes(body[at : at + 8], "little", signed=True)
            for at in range(0, len(body), 8)
        ]
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(counts))
            step = rng.choice([-1, 1, -2, 2, USERS, -USERS, 2**62, -(2**62)])
            counts[at] = max(-(2**63), min(2**63 - 1, counts[at] + step))
        return b"".join(count.to_bytes(8, "little", signed=True) for count in counts)

    def which(self, data: bytes) -> int:
        """Whose message it is."""
        header = json.loads(split(data)[0])
        if "parameters" in header:
            return [*map(signature, ORACLES)].index(header["parameters"])
        return [wire(oracle).hex() for oracle in ORACLES].index(header["protocol"])


class ReportsMessage(MessageFormat):
    """Reports on their way, read by each of the three oracles."""

    name = "reports"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)
    sealed = False

    def valid(self) -> Iterator[bytes]:
        yield from (batch_of(k, version) for version in (1, 2) for k in range(len(ORACLES)))

    def read(self, path: Path) -> Any:
        data, found = path.read_bytes(), []
        for k, oracle in enumerate(ORACLES):
            tally: Counter[str] = Counter()
            reports = oracle.reports_from_bytes(data, tally)
            found.append((k, reports, tally))
        for oracle in ORACLES:
            with contextlib.suppress(InvalidReport):
                oracle.reports_from_bytes(data)
                return found
        raise InvalidReport("by all of them")

    def lie(self, found: Any, data: bytes) -> str | None:
        for k, reports, tally in found:
            if not all(sendable(k, report) for report in reports):
                return "a report that nobody can have sent"
            if not all(0 < count <= max(1, len(data)) for count in tally.values()):
                return f"{tally}"
            if len(reports) and (
                k != self.which(data) or len(reports) > json.loads(split(data)[0])["count"]
            ):
                return "reports that are not in it"
        return None


class AggregateMessage(MessageFormat):
    """Sums of reports."""

    name = "aggregate"
    refusals: ClassVar[tuple[type[Exception], ...]] = (IncompatibleAggregate,)
    sealed = True

    def valid(self) -> Iterator[bytes]:
        yield from (oracle.aggregate(reports_of(oracle)).to_bytes() for oracle in ORACLES)

    def read(self, path: Path) -> Any:
        data = path.read_bytes()
        for oracle in ORACLES:
            with contextlib.suppress(IncompatibleAggregate):
                return oracle.aggregate_from_bytes(data)
        raise IncompatibleAggregate("of none of them")

    def lie(self, found: Any, data: bytes) -> str | None:
        k = self.which(data)
        header, body = split(data[:-32])
        counts = found.counts.ravel().tolist()
        if found.counts.astype("<i8").tobytes() != body or found.n != json.loads(header)["n"]:
            return "it is not what the message says"
        if found.counts.shape != COUNTS[k] or not countable(k, found.n, counts):
            return f"no {found.n} reports have these counts"
        return None


class ReleaseFile(MessageFormat):
    """The histogram that a curator has published."""

    name = "release"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile,)
    sealed = True

    def valid(self) -> Iterator[bytes]:
        for schema, kind in (
            (Schema([AGE]), partial(Hierarchy, branching=[3, 4], budget=(1, 2))),
            (Schema([PAY, SMOKES]), partial(Hierarchy, branching=2, inference=False)),
            (Schema([AGE, PAY, SMOKES]), CentralFlat),
            (Schema([AGE, PAY]), Wavelet),
        ):
            mechanism: CentralMechanism = kind(schema.sizes, Fraction(1, 2))
            counts = np.arange(mechanism.domain).reshape(mechanism.sizes)
            found = Release.draw(schema, mechanism, counts, np.random.default_rng(1))
            yield self.saved(found.save)

    def read(self, path: Path) -> Any:
        found = Release.load(path)
        found.estimate.cells()
        return found

    def lie(self, found: Any, data: bytes) -> str | None:
        header, body = split(data[:-32])
        content = json.loads(header)
        alphas = [alpha for alpha in content["alphas"] if alpha is not None]
        if b"".join(level.astype("<i8").tobytes() for level in found.levels) != body:
            return "it is not what the file says"
        drawn = [noise.alpha for noise in found.mechanism.noise if noise is not None]
        if drawn != [*map(rational, alphas)]:
            return "its noise is not that of the file"
        if loses_more(content["mechanism"], alphas):
            return "it loses more than its epsilon"
        return None


class StateFile(AggregateMessage):
    """What was counted, and of which files."""

    name = "state"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile, IncompatibleAggregate)

    def valid(self) -> Iterator[bytes]:
        for k, oracle in enumerate(ORACLES):
            reports, days = reports_of(oracle), self.place / f"days{k}"
            for day in range(3):
                write_reports(days / f"{day}.parquet", oracle, reports[10 * day : 10 * day + 10])
            yield self.saved(partial(aggregate_files, oracle, days, 1), str(k))

    def read(self, path: Path) -> Any:
        reasons: list[Exception] = []
        for oracle in ORACLES:
            try:
                return aggregate_files(oracle, [], resume=path)
            except self.refusals as error:
                reasons.append(error)
        raise reasons[0]

    def lie(self, found: Any, data: bytes) -> str | None:
        numbers = [
            *found.counted.values(),
            *(n for t in found.left_out.values() for n in t.values()),
        ]
        if any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
            return "a number that no reports can have"
        if sum(found.counted.values()) != found.aggregate.n:
            return "the files do not add up to the counts"
        return super().lie(found.aggregate, data)


class ReportsFile(Format):
    """Parquet files. Their footers mostly say what is in them, as changed."""

    name = "parquet"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)

    def valid(self) -> Iterator[bytes]:
        self._headers = []
        for k, oracle in enumerate(ORACLES):
            path = self.place / "original.parquet"
            write_reports(path, oracle, reports_of(oracle))
            header = json.loads(pq.read_metadata(path).metadata[b"mechdesign"])
            self._headers.append({**header, "id": f"{k:032x}"})  # no random number: reproducible
            yield self._file(k, reports_of(oracle), self._headers[k])

    def _file(self, k: int, reports: np.ndarray[Any, Any], header: dict[str, Any] | str) -> bytes:
        columns = {}
        for name in reports.dtype.names or ():
            column = np.ascontiguousarray(reports[name])
            if column.ndim == 1:
                columns[name] = pa.array(column)
            else:
                rows = [row.tobytes() for row in column]
                columns[name] = pa.array(rows, pa.binary(column[0].nbytes))
        schema = pa.schema([pa.field(n, c.type, nullable=False) for n, c in columns.items()])
        if isinstance(header, dict):
            groups = [reports[at : at + 15] for at in range(0, len(reports), 15)]
            header["groups"] = [[len(g), hashlib.sha256(g.tobytes()).hexdigest()] for g in groups]
            header["digest"] = digest_of(header)
            header = json.dumps(header)
        table = pa.table(columns, schema=schema).replace_schema_metadata({"mechdesign": header})
        stream = io.BytesIO()
        pq.write_table(
            table, stream, row_group_size=15, write_page_checksum=True, compression="zstd"
        )
        return stream.getvalue()

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        kind, k = rng.randrange(4), rng.randrange(len(ORACLES))
        if kind < 2:
            return mutated_bytes(data, rng.choice(self.originals), rng)
        reports = reports_of(ORACLES[k])
        if kind == 2:
            changed = mutated_bytes(reports.tobytes(), reports.tobytes(), rng)
            size = reports.itemsize
            changed = changed[: len(changed) // size * size] or bytes(size)
            return self._file(k, np.frombuffer(changed, reports.dtype), dict(self._headers[k]))
        header = dict(self._headers[k])
        self._file(k, reports, header)  # which fills the header in
        value = mutated_json(parsed(json.dumps(header)), rng)
        text = resealed(value) if rng.randrange(8) else written(value)
        return self._file(k, reports, text.encode(*LENIENT).decode("utf-8", "replace"))

    def read(self, path: Path) -> Any:
        found = None
        for k, oracle in enumerate(ORACLES):
            tally: Counter[str] = Counter()
            with contextlib.suppress(RefusedFile):
                found = k, read_reports(path, oracle, tally), tally
        if found is None:
            raise RefusedFile("by all of them")
        return found

    def lie(self, found: Any, data: bytes) -> str | None:
        k, reports, tally = found
        if not all(sendable(k, report) for report in reports):
            return "a report that nobody can have sent"
        header = json.loads(pq.read_metadata(io.BytesIO(data)).metadata[b"mechdesign"])
        if header["digest"] != digest_of(header):
            return "it was changed"
        if len(reports) + tally.total() != sum(n for n, _ in header["groups"]):
            return "not as many reports as it says"
        if not tally:
            ends = np.cumsum([0, *(n for n, _ in header["groups"])])
            groups = [reports[a:b] for a, b in pairwise(ends)]
            if [hashlib.sha256(g.tobytes()).hexdigest() for g in groups] != [
                digest for _, digest in header["groups"]
            ]:
                return "other reports than it says"
        return None


class BatchFile(MessageFormat):
    """Batches in files, which must be whole, each beside one that is."""

    name = "batch"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)
    sealed = False

    def valid(self) -> Iterator[bytes]:
        yield from (batch_of(k, version) for version in (1, 2) for k in range(len(ORACLES)))

    def read(self, path: Path) -> Any:
        return counted_twice(path, self.place, ".ldp")

    def lie(self, found: Any, data: bytes) -> str | None:
        k, reports, tally = found
        if not all(sendable(k, report) for report in reports):
            return "a report that nobody can have sent"
        header, body = split(data)
        size = ORACLES[k].report_dtype.itemsize
        if k != self.which(data) or len(body) != size * json.loads(header)["count"]:
            return "it is not whole, or of another protocol"
        if len(reports) + tally.total() != len(body) // size or {*tally} - {"impossible"}:
            return f"{len(reports)} reports, and left out {tally}"
        return None


class LinesFile(Format):
    """Lines of base64, perhaps with keys."""

    name = "lines"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)

    def valid(self) -> Iterator[bytes]:
        for k, oracle in enumerate(ORACLES):
            lines = [
                base64.b64encode(wire(oracle) + report.tobytes()) for report in reports_of(oracle)
            ]
            keys = [b" k%d" % (number % 30) for number in range(len(lines))]
            yield b"\n".join([*lines, b""])
            yield b"\n".join([*(line + key for line, key in zip(lines, keys, strict=True)), b""])
            yield b"\n".join([b"# mechdesign reports %032x" % k, *lines, b""])

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(2):
            return mutated_bytes(data, rng.choice(self.originals), rng)
        lines = data.split(b"\n")
        if not rng.randrange(4):  # none of them is a report
            start = rng.randrange(1, 12)
            return b"\n".join(line[start:] for line in lines)
        others = [*lines, *rng.choice(self.originals).split(b"\n"), b"#", b"", b"=", b"a" * 3000]
        for _ in range(rng.randrange(1, 6)):
            at, line = rng.randrange(len(lines)), rng.choice(others)
            cut = rng.randrange(len(line) + 1)
            ends = [b"\r", b" ", b" k1", b" \xff", b" " + b"k" * 65, b"=", b"==", b"\n", b"\0"]
            lines[at] = rng.choice([line, line[:cut], line[cut:], line + rng.choice(ends)])
        return b"\n".join(lines * rng.choice([1, 1, 1, 50]))

    def read(self, path: Path) -> Any:
        return counted_twice(path, self.place, ".b64")

    def lie(self, found: Any, data: bytes) -> str | None:
        k, reports, tally = found
        *lines, last = data.split(b"\n")
        own, keys, left = [], set[bytes](), 1 if last else 0
        for line in lines:
            text, *key = line.split(b" ", 1)
            try:
                raw = base64.b64decode(text, validate=True)
            except ValueError:
                raw = b""
            right = base64.b64encode(raw) == text and raw[:8] == wire(ORACLES[k])
            right &= not key or bool(re.fullmatch(rb"[A-Za-z0-9_.-]{1,64}", key[0]))
            right &= len(raw) == 8 + reports.itemsize and not keys.intersection(key)
            if right:
                keys.update(key)
                own.append(raw[8:])
            left += not right and not line.startswith(b"#")
        sent = np.frombuffer(b"".join(own), reports.dtype)
        kept = [report for report in sent if sendable(k, report)]
        if [report.tobytes() for report in reports] != [report.tobytes() for report in kept]:
            return "other reports than it holds"
        if tally.total() != left + len(sent) - len(kept):
            return f"{tally} were left out"
        return None


def counted_twice(path: Path, place: Path, suffix: str) -> tuple[int, Any, Counter[str]]:
    """Whose reports they are, these, and what was left out; but they and a copy count once."""
    first, second = place / f"first{suffix}", place / f"second{suffix}"
    shutil.copy(path, first)
    shutil.copy(path, second)
    for k, oracle in enumerate(ORACLES):
        with contextlib.suppress(RefusedFile):
            tally: Counter[str] = Counter()
            reports = read_reports(first, oracle, tally)
            collected = aggregate_files(oracle, [first, second])
            if len(collected.counted) != 1 or collected.aggregate != oracle.aggregate(reports):
                raise AssertionError(f"{collected}")
            if collected.left_out != ({str(first): tally} if tally else {}):
                raise AssertionError(f"left out: {collected.left_out}, not {tally}")
            return k, reports, tally
    for oracle in ORACLES:
        if aggregate_files(oracle, [first, second]).counted:
            raise AssertionError("counted, although it is refused")
    raise RefusedFile("by all of them")


class CountsTable(Format):
    """CSV files of true counts, for ``mechdesign release``."""

    name = "counts"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)
    tables: ClassVar[tuple[str, ...]] = (
        "id,count,note\n1,0,a\n2,4,b\n3,2,c\n",
        "\ufeffid;count\r\n1;3\r\n2;2,0\r\n",
        'id\tcount\n"a\nb"\t1\nc\t4\n',
        'count,"id"\n"3","x, y"\n4,"z ""w"""\n0,\n',
    )

    def valid(self) -> Iterator[bytes]:
        self._mechanism = self.place / "wm.json"
        named.geometric(4, alpha="9/10").save(self._mechanism)
        yield from (table.encode() for table in self.tables)

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(2):
            return mutated_bytes(data, rng.choice(self.originals), rng)
        odd = ["", "-1", "5", "4.0", "2.5", "1e0", "١", "0x1", " 3", "3 ", "007", "nan", "9" * 5000]
        odd += [
            '"',
            '""',
            '"3',
            "3\n4",
            "3,4",
            "\x00",
            "\ufeff",
            "=1+1",
            "x" * 200_000,
            "\r",
            "1_0",
        ]
        cells = re.split(r"([,;\t\n\r]+)", data.decode())
        for _ in range(rng.randrange(1, 4)):
            cells[rng.randrange(len(cells))] = rng.choice([*odd, *",;\t\n"])
        return "".join(cells * rng.choice([1, 1, 1, 40])).encode()

    def read(self, path: Path) -> Any:
        out, said = self.place / "released.csv", io.StringIO()
        out.unlink(missing_ok=True)
        given = ["release", self._mechanism, "--input", path, "--out", out, "--force"]
        names = ["--column", "count", "--keep", "id"]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = command([*map(str, given), *names])
        if code:
            if code != 2 or out.exists() or not said.getvalue().startswith("mechdesign: "):
                raise AssertionError(f"exit code {code}: {said.getvalue()[:200]}")
            raise ValueError(said.getvalue())
        return out.read_bytes().decode()

    def lie(self, found: Any, data: bytes) -> str | None:
        text = data.decode("utf-8-sig")
        separator = next(mark for mark in ",;\t|" if f"id{mark}count" in found)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        while rows and not rows[-1]:
            rows.pop()
        out = list(
            csv.reader(io.StringIO(found.removeprefix("\ufeff"), newline=""), delimiter=separator)
        )
        count, kept = rows[0].index("count"), rows[0].index("id")
        if [row[0] for row in out] != [row[kept] for row in rows]:
            return "other rows than in the file"
        for row, (_, released) in zip(rows[1:], out[1:], strict=True):
            plain = re.fullmatch(r"\s*0*([0-4])([.,]0{1,2})?\s*", row[count], re.ASCII)
            if not plain or released not in "01234":
                return f"a count of {row[count]!r:.40} was released as {released!r:.40}"
        return None


KINDS: tuple[type[Format], ...] = (
    *(MechanismFile, DeviceFile, LedgerFile, ProtocolFile, ReportsMessage, AggregateMessage),
    *(BatchFile, LinesFile, StateFile, ReportsFile, CountsTable, ReleaseFile, QuantilesFile),
    *(SchemaFile, TableFile, ContingencyFile, RegionsFile, StrategyFile, PermanentFile),
)

FORMATS = {kind.name: kind for kind in KINDS}


# --------------------------------------------------------------------------------------------- work


class Outcome(NamedTuple):
    """How an input fared: accepted, refused, or else what was found."""

    number: int
    verdict: str
    seconds: float
    megabytes: float


@dataclass
class Summary:
    """What came of the inputs of a format."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    largest: float = 0.0
    findings: list[tuple[int, str]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.slowest = max(self.slowest, outcome.seconds)
        self.largest = max(self.largest, outcome.megabytes)
        if outcome.verdict in ("accepted", "refused"):
            setattr(self, outcome.verdict, getattr(self, outcome.verdict) + 1)
        else:
            self.findings.append((outcome.number, outcome.verdict))


def input_of(form: Format, seed: int, number: int) -> bytes:
    """The input of this number."""
    rng = random.Random(f"{seed} {form.name} {number}")
    return form.mutated(rng.choice(form.originals), rng)[:LONGEST]


def peak() -> float:
    """The most megabytes that this process has held."""
    if (status := Path("/proc/self/status")).exists():  # what follows may be that of its parent
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def tried(form: Format, data: bytes, number: int, before: float) -> Outcome:
    """Read one input, in a process that held at most ``before`` megabytes."""
    path = form.place / "input"
    path.write_bytes(data)
    began = time.process_time()
    found, verdict = None, "accepted"
    try:
        found = form.read(path)
    except form.refusals:
        verdict = "refused"
    except Exception as error:
        verdict = f"{type(error).__name__}: {str(error)[:150]}"
    seconds, megabytes = time.process_time() - began, peak() - before
    if verdict == "accepted":
        try:
            lie = form.lie(found, data)
        except Exception as error:
            lie = f"a plain reading fails: {type(error).__name__}: {str(error)[:100]}"
        if lie:
            verdict = f"accepted, but {lie}"
    if verdict in ("accepted", "refused"):
        if seconds > SECONDS:
            verdict = f"{verdict} after {seconds:.1f} CPU seconds"
        elif megabytes > MEGABYTES:
            verdict = f"{verdict} with {megabytes:.0f} MB"
    return Outcome(number, verdict, seconds, megabytes)


def _work(kind: type[Format], seed: int, numbers: range, place: Path, results: Connection) -> None:
    """Try inputs until one took too much memory, which hides what the next ones take."""
    form = kind(place)
    for data in form.originals:
        outcome = tried(form, data, -1, peak())
        if not outcome.verdict.startswith("accepted") or "but" in outcome.verdict:
            raise AssertionError(f"a valid file: {outcome.verdict}")
    before = peak()
    size = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_held() + _ADDRESSES, size))
    results.send(True)  # it has begun
    for number in numbers:
        outcome = tried(form, input_of(form, seed, number), number, before)
        results.send(outcome)
        if outcome.megabytes > MEGABYTES:
            return


def _held() -> int:
    """Bytes of address space of this process."""
    status = Path("/proc/self/statm")
    return (
        int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 1 << 36
    )


def fuzz(kind: type[Format], inputs: int, seed: int, hang: float = _HANG) -> Summary:
    """Try so many inputs of a format, in a process of their own."""
    summary, number, shown = Summary(), 0, time.monotonic()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as place:
        while number < inputs:
            ours, theirs = context.Pipe(duplex=False)
            arguments = (kind, seed, range(number, inputs), Path(place), theirs)
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            if not ours.poll(_BEGIN) or not _received(ours):
                process.kill()
                raise RuntimeError(f"{kind.name}: its valid files are not read")
            while number < inputs and (alive := ours.poll(hang)):
                outcome = _received(ours)
                if outcome is None:
                    break
                summary.add(outcome)
                number += 1
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    print(f"{kind.name}: {number} of {inputs}", file=sys.stderr, flush=True)
            if not alive:
                process.kill()
            process.join()
            if number < inputs and process.exitcode:
                how = (
                    f"died, exit code {process.exitcode}" if alive else f"did nothing for {hang} s"
                )
                summary.add(Outcome(number, f"the process {how}", 0.0, 0.0))
                number += 1
    return summary


def _received(results: Connection) -> Any:
    """What comes next; None if the process has ended."""
    try:
        return results.recv()
    except EOFError:
        return None


def main(arguments: list[str] | None = None) -> int:
    """Fuzz, and print a table; 1 if there are findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--inputs", type=int, default=500, help="of each format (default 500)")
    parser.add_argument("--format", choices=[*FORMATS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input, in this process")
    parser.add_argument("--keep", type=Path, help="with --only: write the input here")
    options = parser.parse_args(arguments)
    chosen = [kind for name, kind in FORMATS.items() if options.format in (name, "all")]
    if options.only is not None:
        with tempfile.TemporaryDirectory() as place:
            form = chosen[0](Path(place))
            data = input_of(form, options.seed, options.only)
            if options.keep is not None:
                options.keep.write_bytes(data)
            outcome = tried(form, data, options.only, peak())
        print(f"{form.name} {outcome.number}: {len(data)} bytes, {outcome.verdict}")
        return int(outcome.verdict not in ("accepted", "refused"))
    print("format       inputs  accepted   refused  findings  slowest  most memory", flush=True)
    found: list[str] = []
    for kind in chosen:
        done = fuzz(kind, options.inputs, options.seed)
        print(
            f"{kind.name:11} {options.inputs:7} {done.accepted:9} {done.refused:9} "
            f"{len(done.findings):9}  {done.slowest:5.2f} s  {done.largest:8.0f} MB",
            flush=True,
        )
        found += [f"{kind.name} {number}: {verdict}" for number, verdict in done.findings]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
