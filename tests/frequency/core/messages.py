"""Oracles, their reports and messages, and slow twins of what reads them.

What is right is decided by the slow twins, written from the definitions of the protocols and of
the format: `sendable` for reports, `countable` for aggregates, `slow_read` for messages.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    RR,
    SUE,
    AffineSelection,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    Oracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from mechdesign import Mechanism, Privacy

TABLE = Mechanism([["2/3", "1/3"], [0, 0], ["1/3", "2/3"]], Privacy(alpha="1/2", neighbours="all"))
"""Output 1 is never sent."""

ORACLES: dict[str, Oracle] = {
    "RR": RR(2, 1.0),
    "GRR": GRR(5, 1.0),
    "GRR, a full byte": GRR(256, 1.0),
    "GRR, two bytes": GRR(300, 4.0),
    "SUE": SUE(11, 1.0),
    "OUE": OUE(9, 1.0),
    "OUE, full bytes": OUE(16, 0.5),
    "SubsetSelection": SubsetSelection(11, 1.0),
    "ProjectiveGeometry": ProjectiveGeometry(11, 1.0),
    "OLH": OLH(11, 1.0),
    "OLH, two bytes": OLH(300, 0.5),
    "HRR": HRR(11, 1.0),
    "HRR, t = 3": HRR(11, 1.0, 3),
    "HRR, two bytes": HRR(300, 1.0, 2),
    "CountMeanSketch": CountMeanSketch(1 << 40, 2.0, hashes=3, width=4, seed=7),
    "HadamardCountMeanSketch": HadamardCountMeanSketch(1 << 40, 1.0, hashes=3, width=8, seed=7),
    "JLOracle": JLOracle(1 << 40, 1.0, rows=300, seed=7),
    "Tabular": Tabular(TABLE),
    "AffineSelection": AffineSelection(24, 0.35),
}

LAYOUTS = {
    "RR": [("item", 1, 1)],
    "GRR": [("item", 1, 1)],
    "GRR, a full byte": [("item", 1, 1)],
    "GRR, two bytes": [("item", 2, 1)],
    "SUE": [("bits", 1, 2)],
    "OUE": [("bits", 1, 2)],
    "OUE, full bytes": [("bits", 1, 2)],
    "SubsetSelection": [("bits", 1, 2)],
    "ProjectiveGeometry": [("hyperplane", 1, 1)],
    "AffineSelection": [("function", 1, 1), ("value", 1, 1)],
    "OLH": [("hash", 1, 1), ("value", 1, 1)],
    "OLH, two bytes": [("hash", 2, 1), ("value", 1, 1)],
    "HRR": [("index", 1, 1), ("sign", 1, 1)],
    "HRR, t = 3": [("index", 1, 3), ("sign", 1, 3)],
    "HRR, two bytes": [("index", 2, 2), ("sign", 1, 2)],
    "CountMeanSketch": [("hash", 1, 1), ("bits", 1, 1)],
    "HadamardCountMeanSketch": [("hash", 1, 1), ("index", 1, 1), ("sign", 1, 1)],
    "JLOracle": [("row", 2, 1), ("sign", 1, 1)],
    "Tabular": [("output", 1, 1)],
}
"""The fields of a report as they travel: name, bytes of a number, how many numbers."""

every_oracle = pytest.mark.parametrize("name", ORACLES)


def some_reports(oracle: Oracle, users: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return oracle.privatize(rng.integers(0, min(oracle.domain, 1 << 20), users), rng)


# --------------------------------------------------------------------------------- the slow twins


def fields(name: str, raw: bytes) -> dict[str, list[int]]:
    found, at = {}, 0
    for field, size, number in LAYOUTS[name]:
        ends = range(at, at + size * number, size)
        found[field] = [
            int.from_bytes(raw[k : k + size], "little", signed=field == "sign") for k in ends
        ]
        at += size * number
    assert at == len(raw)
    return found


def sendable(name: str, raw: bytes) -> bool:
    """Whether some client can have sent these bytes: the definition of the protocol, with the
    published parameters.
    """
    oracle, sent = ORACLES[name], fields(name, raw)
    given = oracle.parameters
    first = {field: numbers[0] for field, numbers in sent.items()}
    match given["protocol"]:
        case "RR" | "GRR":
            return first["item"] < given["domain"]
        case "SUE" | "OUE":
            return int.from_bytes(bytes(sent["bits"]), "little") < 1 << given["domain"]
        case "SubsetSelection":
            chosen = int.from_bytes(bytes(sent["bits"]), "little")
            return chosen < 1 << given["domain"] and chosen.bit_count() == given["size"]
        case "ProjectiveGeometry":
            return first["hyperplane"] < (given["field"] ** given["dimension"] - 1) // (
                given["field"] - 1
            )
        case "AffineSelection":
            return first["function"] < 12 and first["value"] < 5
        case "OLH":
            return (
                first["hash"] < given["field"] ** given["dimension"]
                and first["value"] < given["field"]
            )
        case "HRR":
            padded = max(2, 1 << (given["domain"] - 1).bit_length())
            distinct = len(set(sent["index"])) == given["coefficients"] == len(sent["sign"])
            return (
                distinct
                and all(0 < index < padded for index in sent["index"])
                and set(sent["sign"]) <= {1, -1}
            )
        case "CountMeanSketch":
            return (
                first["hash"] < given["hashes"]
                and int.from_bytes(bytes(sent["bits"]), "little") < 1 << given["width"]
            )
        case "HadamardCountMeanSketch":
            return (
                first["hash"] < given["hashes"]
                and 0 < first["index"] < given["width"]
                and first["sign"] in (1, -1)
            )
        case "JLOracle":
            return first["row"] < given["rows"] and first["sign"] in (1, -1)
        case "Tabular":
            return first["output"] < TABLE.outputs and any(TABLE.weights[first["output"]])
    raise AssertionError(name)


def counts_of_signs(n: int, counts: list[int]) -> bool:
    """Each of n reports adds +1 or -1 to one count."""
    total = sum(map(abs, counts))
    return total <= n and (n - total) % 2 == 0


def countable(oracle: Oracle, n: int, counts: np.ndarray) -> bool:
    """Whether some n reports have these counts."""
    given, flat = oracle.parameters, [int(value) for value in counts.ravel()]
    match given["protocol"]:
        case "RR" | "GRR" | "ProjectiveGeometry" | "OLH":
            return min(flat) >= 0 and sum(flat) == n
        case "Tabular":
            return min(flat) >= 0 and sum(flat) == n and flat[1] == 0
        case "SUE" | "OUE":
            return all(0 <= value <= n for value in flat)
        case "SubsetSelection":
            return all(0 <= value <= n for value in flat) and sum(flat) == n * given["size"]
        case "AffineSelection":
            return all(0 <= value <= n for value in flat) and sum(flat) == n * given["accepted"]
        case "HRR":
            # Index j is in u_j reports, |c_j| <= u_j <= n, of the parity of c_j; the u_j sum to n
            # t.
            t, signed = given["coefficients"], flat[1:]
            most = sum(n - (n - value) % 2 for value in signed)
            total = sum(map(abs, signed))
            return (
                flat[0] == 0
                and all(abs(c) <= n for c in signed)
                and total <= n * t <= most
                and (n * t - total) % 2 == 0
            )
        case "CountMeanSketch":
            rows = [[int(value) for value in row] for row in counts]
            return (
                all(0 <= cell <= row[-1] for row in rows for cell in row)
                and sum(row[-1] for row in rows) == n
            )
        case "HadamardCountMeanSketch":
            return not counts[:, 0].any() and counts_of_signs(n, flat)
        case "JLOracle":
            return counts_of_signs(n, flat)
    raise AssertionError(oracle)


def message(header: Any, body: bytes = b"", magic: bytes = b"LDPF") -> bytes:
    """``header`` as text or bytes, or as a dictionary."""
    text = (
        header
        if isinstance(header, (str, bytes))
        else json.dumps(header, sort_keys=True, separators=(",", ":"))
    )
    text = text.encode() if isinstance(text, str) else text
    return magic + len(text).to_bytes(4, "little") + text + body


def sealed(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


def signature(oracle: Oracle) -> str:
    return json.dumps(oracle.parameters, sort_keys=True, separators=(",", ":"))


def header_of(oracle: Oracle, **other: Any) -> dict[str, Any]:
    return {"version": 1, "kind": "reports", "parameters": signature(oracle), "count": 3, **other}


def wire(oracle: Oracle) -> bytes:
    return hashlib.shake_256(signature(oracle).encode()).digest(8)


def batch_header(oracle: Oracle, **other: Any) -> dict[str, Any]:
    """As `header_of`, in version 2."""
    given = {"version": 2, "kind": "reports", "protocol": wire(oracle).hex(), "count": 3}
    return {**given, "id": "0123456789abcdef" * 2, **other}


def aggregate_header(oracle: Oracle, **other: Any) -> dict[str, Any]:
    shape = oracle.aggregate(some_reports(oracle, 0)).counts.shape
    return {
        "version": 1,
        "kind": "aggregate",
        "parameters": signature(oracle),
        "n": 3,
        "shape": list(shape),
        **other,
    }


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it is written; every other list is a plain one."""


def strict(value: Any, depth: int = 0) -> Any:
    """A parsed value with its objects as dicts; ValueError where it has no one meaning."""
    if depth > 64 or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(value)
    if isinstance(value, Pairs):
        if len({key for key, _ in value}) < len(value):
            raise ValueError(value)
        return {key: strict(inner, depth + 1) for key, inner in value}
    return [strict(inner, depth + 1) for inner in value] if isinstance(value, list) else value


def slow_header(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    if len(data) < 8 or data[:4] != b"LDPF":
        return None
    end = 8 + int.from_bytes(data[4:8], "little")
    if end > len(data):
        return None
    try:
        header = strict(json.loads(data[8:end].decode("utf-8"), object_pairs_hook=Pairs))
    except (ValueError, RecursionError):
        return None
    version = header.get("version") if isinstance(header, dict) else None
    if type(version) is not int or version not in (1, 2):
        return None
    return header, data[end:]


def slow_read(name: str, data: bytes) -> tuple[list[bytes], Counter[str]]:
    """The reports in a message that can have been sent, and what is wrong with the others."""
    found = slow_header(data)
    header, body = found or ({}, b"")
    count = header.get("count")
    own: dict[str, Any] = {"parameters": signature(ORACLES[name])}
    named = {"id"} if header.get("version") == 2 else set()
    if named:
        own = {"protocol": wire(ORACLES[name]).hex()}
    identity = header.get("id", "0" * 32)
    if (
        header.keys() != {"version", "kind", "count", *own, *named}
        or header["kind"] != "reports"
        or not all(isinstance(header[key], str) for key in own)
        or type(count) is not int
        or not 0 <= count < 1 << 63
        or not isinstance(identity, str)
        or len(identity) != 32
        or not set(identity) <= set("0123456789abcdef")
    ):
        return [], Counter(malformed=1)
    if any(header[key] != value for key, value in own.items()):
        return [], Counter(foreign=max(1, min(count, len(data))))
    size = sum(width * number for _, width, number in LAYOUTS[name])
    wrong: Counter[str] = Counter()
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    sent = [piece for piece in pieces[:count] if len(piece) == size]
    if len(sent) < count:
        wrong["truncated"] = min(count - len(sent), len(data))
    elif len(pieces) > count:
        wrong["malformed"] = len(pieces) - count
    kept = [piece for piece in sent if sendable(name, piece)]
    if len(kept) < len(sent):
        wrong["impossible"] = len(sent) - len(kept)
    return kept, wrong


# ---------------------------------------------------------------------------------------- fuzzing

REPORTS_EACH, MESSAGES_EACH, AGGREGATES_EACH = 8000, 5500, 10_000
"""At least this many corrupted inputs of each sort for each oracle."""

ODD = [
    *(
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "1",
        "2",
        "4",
        "1.0",
        "1e0",
        "3.0",
        "1e400",
        "-1e400",
        "NaN",
        "Infinity",
    ),
    *(
        str(2**31),
        str(2**63 - 1),
        str(2**63),
        str(2**64),
        str(2**70),
        str(-(2**63)),
        "9" * 4300,
        "9" * 4301,
        "-" + "9" * 4301,
    ),
    *(
        '""',
        '"1"',
        '"3"',
        '"reports"',
        '"aggregate"',
        '"\\ud800"',
        '"\\u0000"',
        '"é"',
        '"' + "x" * 3000 + '"',
    ),
    *(
        "[]",
        "{}",
        "[1]",
        "[3]",
        "[[3]]",
        "[3,3]",
        "[true]",
        "[1.0]",
        "[-1]",
        "[-1,-1]",
        "[null]",
        '{"a":1}',
        "[NaN]",
    ),
    *(
        f"[{2**63}]",
        f"[{2**64},0]",
        f"[{2**62},{2**62}]",
        f"[0,{2**63}]",
        f"[{2**32},{2**32}]",
        "[" + "1," * 99 + "3]",
    ),
    *(
        "[" * 400 + "]" * 400,
        "[" * 3000 + "]" * 3000,
        '{"a":' * 400 + "1" + "}" * 400,
        '{"a":' * 3000 + "1" + "}" * 3000,
        "[" * 3000,
    ),
    *(
        "",
        "01",
        "+1",
        "1,",
        "'1'",
        "tru",
        "nan",
        "0x1",
        "1_0",
        '"',
        "\\",
        "}",
        "{",
        '1,"x":',
        "1 ",
        "\t1",
    ),
]


def odd_headers(header: dict[str, Any]) -> Iterator[str | bytes]:
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    for key, odd in itertools.product(header, ODD):
        part = f'"{key}":{json.dumps(header[key], separators=(",", ":"))}'
        assert part in text
        yield text.replace(part, f'"{key}":{odd}')
        if len(odd) < 10:
            yield text[:-1] + f',"{key}":{odd}}}'  # twice: refused
            yield f'{{"{key}":{odd},' + text[1:]
    for key in header:
        yield json.dumps({other: value for other, value in header.items() if other != key})
        yield text.replace(f'"{key}"', f'"{key.upper()}"')
    yield from ODD
    yield from (
        text.encode("utf-16"),
        text.encode("utf-32"),
        b"\xef\xbb\xbf" + text.encode(),
        text.encode() + b"\x00",
    )
    yield from (
        f"[{text}]",
        text * 2,
        text[:-1],
        f" {text}\n",
        text.replace('"', "'"),
        json.dumps(text),
        f"/**/{text}",
    )


def damaged(whole: bytes, rng: np.random.Generator, number: int) -> Iterator[bytes]:
    """Every truncation, missing beginning and flipped bit; ``number`` changes, insertions,
    deletions, swaps, repetitions, noise.
    """
    number_of, bits = int.from_bytes(whole, "big"), 8 * len(whole)
    yield from ((number_of ^ 1 << bit).to_bytes(len(whole), "big") for bit in range(bits))
    yield from (whole[:length] for length in range(len(whole)))
    yield from (whole[start:] for start in range(1, len(whole)))
    for kind, at, to, value in zip(
        rng.integers(0, 7, number),
        *rng.integers(0, len(whole), (2, number)),
        rng.integers(0, 256, number),
        strict=True,
    ):
        copy, low, high = bytearray(whole), min(at, to), max(at, to)
        match kind:
            case 0:
                copy[at] ^= 1 << value % 8
            case 1:
                copy[at] = value
            case 2:
                copy.insert(at, value)
            case 3:
                del copy[low : low + 1 + value % 9]
            case 4:
                copy[at], copy[to] = copy[to], copy[at]
            case 5:
                copy[high:high] = copy[low:high]
            case 6:
                copy[low:high] = rng.bytes(high - low)
        yield bytes(copy)


# -------------------------------------------------------------------------------- hostile reports

HOSTILE: dict[str, tuple[list[Any], list[Any]]] = {
    "RR": ([(0,), (1,)], [(2,), (255,)]),
    "GRR": ([(0,), (4,)], [(5,), (255,)]),
    "GRR, a full byte": ([(0,), (255,)], []),
    "GRR, two bytes": ([(0,), (299,)], [(300,), (65535,)]),
    "SUE": ([([0, 0],), ([255, 7],)], [([0, 8],), ([0, 128],), ([255, 15],)]),
    "OUE": ([([0, 0],), ([255, 1],)], [([0, 2],), ([0, 128],), ([255, 3],)]),
    "OUE, full bytes": ([([0, 0],), ([255, 255],)], []),
    "SubsetSelection": (
        [([7, 0],), ([0, 7],), ([129, 4],)],
        [
            ([0, 0],),
            ([3, 0],),
            ([15, 0],),
            ([1, 24],),
            ([3, 8],),
            ([0, 224],),
            ([7, 8],),
            ([255, 255],),
        ],
    ),
    "ProjectiveGeometry": ([(0,), (12,)], [(13,), (255,)]),
    "AffineSelection": ([(0, 0), (11, 4)], [(12, 0), (0, 5), (255, 255)]),
    "OLH": ([(0, 0), (0, 3), (15, 0), (15, 3)], [(16, 0), (0, 4), (255, 255), (0, 255)]),
    "OLH, two bytes": ([(0, 0), (728, 2)], [(729, 0), (0, 3), (65535, 0)]),
    "HRR": (
        [([1], [1]), ([15], [-1])],
        [([0], [1]), ([16], [1]), ([255], [1]), ([3], [0]), ([3], [2]), ([3], [-2]), ([3], [-128])],
    ),
    "HRR, t = 3": (
        [([1, 2, 3], [1, 1, -1]), ([15, 1, 14], [-1, -1, -1])],
        [
            *(
                ([1, 1, 2], [1, 1, 1]),
                ([1, 2, 1], [1, -1, 1]),
                ([2, 1, 1], [1, 1, 1]),
                ([3, 3, 3], [1, 1, 1]),
            ),
            *(
                ([0, 1, 2], [1, 1, 1]),
                ([1, 2, 0], [1, 1, 1]),
                ([1, 16, 2], [1, 1, 1]),
                ([1, 2, 255], [1, 1, 1]),
            ),
            *(
                ([1, 2, 3], [1, 0, 1]),
                ([1, 2, 3], [1, 1, 2]),
                ([1, 2, 3], [-128, 1, 1]),
                ([1, 2, 3], [1, 127, 1]),
            ),
        ],
    ),
    "HRR, two bytes": (
        [([1, 511], [1, -1])],
        [([1, 512], [1, 1]), ([0, 1], [1, 1]), ([9, 9], [1, 1]), ([257, 65535], [1, 1])],
    ),
    "CountMeanSketch": (
        [(0, [0]), (2, [15])],
        [(3, [0]), (255, [0]), (0, [16]), (0, [128]), (2, [31])],
    ),
    "HadamardCountMeanSketch": (
        [(0, 1, 1), (2, 7, -1)],
        [(3, 1, 1), (0, 0, 1), (0, 8, 1), (0, 1, 0), (0, 1, 2), (0, 1, -128), (255, 255, -1)],
    ),
    "JLOracle": ([(0, 1), (299, -1)], [(300, 1), (65535, 1), (0, 0), (0, 2), (0, -2), (0, -128)]),
    "Tabular": ([(0,), (2,)], [(1,), (3,), (255,)]),
}
"""For each oracle reports at the edge of what can be sent, and just beyond."""
