"""What travels: exact round trips, published layouts, committed vectors, and a typed refusal for
everything corrupted or forged.

What is right is decided by slow twins, written from the definitions of the protocols and of the
format: `sendable` for reports, `countable` for aggregates, `slow_read` for messages. ``python -m
tests.frequency.core.test_messages`` rewrites the vectors.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
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
    Aggregate,
    CountMeanSketch,
    HadamardCountMeanSketch,
    IncompatibleAggregate,
    InvalidReport,
    JLOracle,
    Oracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from mechdesign import Mechanism, Privacy

VECTORS = Path(__file__).with_name("vectors.json")

TABLE = Mechanism([["2/3", "1/3"], [0, 0], ["1/3", "2/3"]], Privacy("1/2", neighbours="all"))
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


def layout_of(dtype: np.dtype[np.void]) -> Mapping[str, tuple[Any, ...]]:
    """The type and the offset of each field."""
    assert dtype.fields is not None
    return dtype.fields


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
    if type(version) is not int or version != 1:
        return None
    return header, data[end:]


def slow_read(name: str, data: bytes) -> tuple[list[bytes], Counter[str]]:
    """The reports in a message that can have been sent, and what is wrong with the others."""
    found = slow_header(data)
    header, body = found or ({}, b"")
    count = header.get("count")
    if (
        header.keys() != {"version", "kind", "parameters", "count"}
        or header["kind"] != "reports"
        or type(count) is not int
        or not 0 <= count < 1 << 63
    ):
        return [], Counter(malformed=1)
    if header.get("parameters") != signature(ORACLES[name]):
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


# -------------------------------------------------------------- round trips and what is published


@every_oracle
def test_the_layout_is_packed_little_endian_and_as_published(name: str) -> None:
    dtype = ORACLES[name].report_dtype
    at = 0
    assert list(dtype.names) == [field for field, _, _ in LAYOUTS[name]]
    for field, size, number in LAYOUTS[name]:
        part, offset = layout_of(dtype)[field][:2]
        assert (offset, part.itemsize) == (at, size * number)
        assert part.base.str in (
            ("<" if size > 1 else "|") + ("i" if field == "sign" else "u") + str(size),
        )
        at += size * number
    assert dtype.itemsize == at
    assert ORACLES[name].report_bits <= 8 * at


@pytest.mark.parametrize(
    ("domain", "size"), [(1, 1), (256, 1), (257, 2), (1 << 16, 2), ((1 << 16) + 1, 4), (1 << 32, 4)]
)
def test_items_take_as_few_bytes_as_hold_them(domain: int, size: int) -> None:
    assert GRR(domain, 1.0).report_dtype == np.dtype([("item", f"<u{size}")])


@every_oracle
@pytest.mark.parametrize("users", [0, 1, 3, 1000])
def test_round_trips_are_exact(name: str, users: int) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, users)
    assert all(sendable(name, raw.tobytes()) for raw in reports)
    sent = oracle.reports_to_bytes(reports)
    tally: Counter[str] = Counter()
    for back in (oracle.reports_from_bytes(sent), oracle.reports_from_bytes(sent, tally)):
        assert back.dtype == oracle.report_dtype
        assert np.array_equal(back, reports)
    assert not tally
    assert sent == message(header_of(oracle, count=users), reports.tobytes())

    aggregate = oracle.aggregate(reports)
    data = aggregate.to_bytes()
    assert aggregate.n == users
    assert countable(oracle, users, aggregate.counts)
    shape = list(aggregate.counts.shape)
    assert data == sealed(
        message(
            aggregate_header(oracle, n=users, shape=shape), aggregate.counts.astype("<i8").tobytes()
        )
    )
    for again in (Aggregate.from_bytes(data), oracle.aggregate_from_bytes(data)):
        assert again == aggregate
        assert (again.n, again.counts.dtype, again.counts.shape) == (
            users,
            np.int64,
            aggregate.counts.shape,
        )
        assert again.to_bytes() == data
        assert not again.counts.flags.writeable


@every_oracle
def test_any_view_of_reports_travels(name: str) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, 12)
    assert np.array_equal(
        oracle.reports_from_bytes(oracle.reports_to_bytes(reports[::-3])), reports[::-3]
    )
    assert np.array_equal(
        oracle.reports_from_bytes(bytearray(oracle.reports_to_bytes(reports))), reports
    )
    assert oracle.aggregate(reports[::2]) + oracle.aggregate(reports[1::2]) == oracle.aggregate(
        reports
    )


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


def damaged_reports(name: str, rng: np.random.Generator) -> bytes:
    """Reports with every bit flipped, of edge values, with swapped bytes, and of noise."""
    size = ORACLES[name].report_dtype.itemsize
    good = np.frombuffer(some_reports(ORACLES[name], 60).tobytes(), dtype="u1").reshape(-1, size)
    flips = np.packbits(np.eye(8 * size, dtype=bool), axis=1)
    noise = rng.integers(0, 256, (REPORTS_EACH // 2, size), dtype=np.uint8)
    edges = rng.choice(
        np.array([0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 127, 128, 254, 255], dtype=np.uint8),
        (REPORTS_EACH // 4, size),
    )
    small = (
        good[rng.integers(0, 60, REPORTS_EACH // 4)]
        + rng.integers(-1, 2, (REPORTS_EACH // 4, size))
    ).astype(np.uint8)
    parts = [
        good,
        (good[:, None] ^ flips).reshape(-1, size),
        np.roll(good, 1, axis=1),
        noise,
        edges,
        small,
    ]
    return np.concatenate(parts)[rng.permutation(sum(map(len, parts)))].tobytes()


def test_the_fuzz_tests_make_more_than_four_hundred_thousand_inputs() -> None:
    # Each test counts its own
    assert len(ORACLES) * (REPORTS_EACH + MESSAGES_EACH + AGGREGATES_EACH) > 4 * 10**5


@every_oracle
def test_corrupted_reports_are_kept_exactly_if_they_can_have_been_sent(name: str) -> None:
    oracle, size = ORACLES[name], ORACLES[name].report_dtype.itemsize
    body = damaged_reports(name, np.random.default_rng(2))
    number = len(body) // size
    assert number >= REPORTS_EACH
    raw = [body[at : at + size] for at in range(0, len(body), size)]
    known = {piece: sendable(name, piece) for piece in set(raw)}
    kept = [piece for piece in raw if known[piece]]
    assert kept
    sent = message(header_of(oracle, count=number), body)
    everything = np.frombuffer(body, dtype=oracle.report_dtype)
    wrong = Counter(impossible=number - len(kept)) if len(kept) < number else Counter()

    tally: Counter[str] = Counter()
    found = oracle.reports_from_bytes(sent, tally)
    assert found.tobytes() == b"".join(kept)
    assert tally == wrong
    tally.clear()
    aggregate = oracle.aggregate(everything, tally)
    assert tally == wrong
    assert aggregate == oracle.aggregate(found)
    assert aggregate.n == len(kept)
    assert countable(oracle, aggregate.n, aggregate.counts)
    if wrong:
        first = next(k for k, piece in enumerate(raw) if not known[piece])
        for refuse in (
            lambda: oracle.reports_from_bytes(sent),
            lambda: oracle.aggregate(everything),
        ):
            with pytest.raises(
                InvalidReport, match=rf"^reports\[{first}\] = .* cannot have been sent"
            ):
                refuse()
        with pytest.raises(InvalidReport, match=rf"^reports\[{first}\] "):
            oracle.reports_to_bytes(everything)


def corrupted_messages(name: str, rng: np.random.Generator) -> Iterator[bytes]:
    oracle = ORACLES[name]
    good = oracle.reports_to_bytes(some_reports(oracle, 3))
    body = some_reports(oracle, 3).tobytes()
    yield from (message(header, body) for header in odd_headers(header_of(oracle)))
    yield from damaged(good, rng, 2500)
    yield from (message(header_of(oracle, count=count), body) for count in range(20))
    yield from (
        message(header_of(oracle), body + extra) for extra in (b"\0", body, body[1:], bytes(100))
    )
    yield from (message(header_of(other), body) for other in ORACLES.values())
    yield from (
        message(header_of(oracle), body, magic)
        for magic in (b"LDPG", b"ldpf", b"FPDL", b"\0\0\0\0", b"", b"LDP")
    )
    yield oracle.aggregate(some_reports(oracle, 3)).to_bytes()
    yield from (
        b"LDPF" + size.to_bytes(4, "little") + good[8:]
        for size in (0, 1, 2**31, 2**32 - 1, len(good), len(good) - 8)
    )
    yield from (rng.bytes(length) for length in range(200))
    yield from (b"LDPF" + rng.bytes(length) for length in range(100))


@every_oracle
def test_corrupted_messages_give_what_the_definition_says_or_a_typed_error(name: str) -> None:
    oracle, made, kept_some = ORACLES[name], 0, 0
    for data in corrupted_messages(name, np.random.default_rng(3)):
        made += 1
        kept, wrong = slow_read(name, data)
        tally: Counter[str] = Counter()
        found = oracle.reports_from_bytes(data, tally)
        assert found.dtype == oracle.report_dtype
        assert found.tobytes() == b"".join(kept), data
        kept_some += bool(kept)
        assert tally == wrong, data
        assert sum(tally.values()) <= max(1, len(data))
        try:
            assert oracle.reports_from_bytes(data).tobytes() == b"".join(kept)
            assert not wrong, data
        except InvalidReport:
            assert wrong, data
    assert made >= MESSAGES_EACH
    assert kept_some > 100


def corrupted_aggregates(oracle: Oracle, rng: np.random.Generator, number: int) -> Iterator[bytes]:
    """Changed bytes of an aggregate, without its digest."""
    aggregate = oracle.aggregate(some_reports(oracle, 3))
    body = aggregate.counts.astype("<i8").tobytes()
    header = aggregate_header(oracle)
    yield from (message(odd, body) for odd in odd_headers(header))
    yield from (message(odd, b"") for odd in odd_headers(header))
    small = oracle.aggregate_from_bytes(aggregate.to_bytes()).to_bytes()[:-32]
    if len(small) < 1000:
        yield from damaged(small, rng, number)
    for _ in range(number):
        counts = aggregate.counts.copy().ravel()
        for _ in range(rng.integers(1, 4)):
            at, step = (
                rng.integers(counts.size),
                int(rng.choice([-(2**62), -4, -2, -1, 1, 2, 4, 2**62])),
            )
            counts[at] = max(-(2**63), min(2**63 - 1, int(counts[at]) + step))
        yield message(
            {**header, "n": int(rng.choice([0, 1, 2, 3, 3, 3, 4, 5]))},
            counts.astype("<i8").tobytes(),
        )
    yield from (
        message({**header, "parameters": signature(other)}, body)
        for other in ORACLES.values()
        if other != oracle
    )
    yield message(header_of(oracle), body)


@every_oracle
def test_changed_aggregates_are_never_accepted(name: str) -> None:
    oracle, made = ORACLES[name], 0
    whole = oracle.aggregate(some_reports(oracle, 3)).to_bytes()
    rng = np.random.default_rng(4)
    cases = damaged(whole if len(whole) < 1000 else whole[:300] + whole[-300:], rng, 2000)
    digest = whole[-32:]
    resealed = (content + digest for content in corrupted_aggregates(oracle, rng, 1000))
    for data in itertools.chain(
        cases,
        resealed,
        (rng.bytes(length) for length in range(100)),
        [hashlib.sha256(b"").digest()],
    ):
        made += 1
        for read in (Aggregate.from_bytes, oracle.aggregate_from_bytes):
            try:
                read(data)
                assert data == whole
            except IncompatibleAggregate:
                assert data != whole
    assert made >= AGGREGATES_EACH


@every_oracle
def test_forged_aggregates_are_accepted_only_if_possible_whatever_the_digest(name: str) -> None:
    oracle, accepted = ORACLES[name], 0
    for content in corrupted_aggregates(oracle, np.random.default_rng(5), 1000):
        found = slow_header(content)
        try:
            read = oracle.aggregate_from_bytes(sealed(content))
        except IncompatibleAggregate:
            continue
        assert found is not None
        header, body = found
        assert (header["kind"], header["parameters"], header["n"]) == (
            "aggregate",
            signature(oracle),
            read.n,
        )
        assert type(header["n"]) is int
        assert read.counts.tobytes() == body
        assert list(read.counts.shape) == aggregate_header(oracle)["shape"]
        assert countable(oracle, read.n, read.counts), content
        accepted += 1
    assert accepted


# -------------------------------------------------------------------------------------- the tally


@every_oracle
def test_each_fault_is_counted_under_its_reason_and_good_reports_stay_in_order(name: str) -> None:
    oracle = ORACLES[name]
    reports, size = some_reports(oracle, 9), oracle.report_dtype.itemsize
    body = reports.tobytes()
    tally: Counter[str] = Counter()

    def check(data: bytes, kept: np.ndarray, **wrong: int) -> None:
        tally.clear()
        assert np.array_equal(oracle.reports_from_bytes(data, tally), kept)
        assert tally == Counter(wrong)
        with pytest.raises(InvalidReport):
            oracle.reports_from_bytes(data)

    check(message(header_of(oracle, count=12), body), reports, truncated=3)
    check(message(header_of(oracle, count=9), body[:-1]), reports[:8], truncated=1)
    check(message(header_of(oracle, count=9), body[: 4 * size]), reports[:4], truncated=5)
    check(message(header_of(oracle, count=7), body), reports[:7], malformed=2)
    check(message(header_of(oracle, count=9), body + b"\1"), reports, malformed=1)
    check(message(header_of(oracle, count=9, parameters="else"), body), reports[:0], foreign=9)
    check(message(header_of(oracle, kind="aggregate"), body), reports[:0], malformed=1)
    check(message(header_of(oracle, version=2), body), reports[:0], malformed=1)
    check(b"", reports[:0], malformed=1)
    check(oracle.aggregate(reports).to_bytes(), reports[:0], malformed=1)
    if bad := HOSTILE[name][1]:
        mixed = np.zeros(9 + 3, dtype=oracle.report_dtype)
        mixed[[0, 1, 3, 4, 5, 6, 8, 9, 11]] = reports
        for at in (2, 7, 10):
            mixed[at] = np.array(bad[at % len(bad)], dtype=oracle.report_dtype)
        check(message(header_of(oracle, count=12), mixed.tobytes()), reports, impossible=3)
        check(
            message(header_of(oracle, count=14), mixed.tobytes()),
            reports,
            impossible=3,
            truncated=2,
        )
        check(
            message(header_of(oracle, count=12), mixed.tobytes() + b"\0"),
            reports,
            impossible=3,
            malformed=1,
        )
        with pytest.raises(InvalidReport, match=r"^reports\[2\] = .* cannot have been sent"):
            oracle.aggregate(mixed)
        tally.clear()
        assert oracle.aggregate(mixed, tally) == oracle.aggregate(reports)
        assert tally == Counter(impossible=3)


@every_oracle
def test_a_message_counts_for_no_more_reports_than_it_has_bytes(name: str) -> None:
    """Whatever it announces: of what did not arrive there is no word but its own."""
    oracle = ORACLES[name]
    tally: Counter[str] = Counter()
    reports = some_reports(oracle, 2)
    for parameters, kept in (("else", 0), (signature(oracle), 2)):
        sent = message(header_of(oracle, count=2**63 - 1, parameters=parameters), reports.tobytes())
        tally.clear()
        assert len(oracle.reports_from_bytes(sent, tally)) == kept
        assert sum(tally.values()) == len(sent)


def test_one_tally_collects_over_messages() -> None:
    oracle, tally = ORACLES["GRR"], Counter(foreign=5)
    oracle.reports_from_bytes(message(header_of(GRR(6, 1.0), count=4), b"\0\0\0\0"), tally)
    oracle.reports_from_bytes(b"noise", tally)
    oracle.reports_from_bytes(message(header_of(oracle, count=3), b"\0\7"), tally)
    assert tally == Counter(foreign=9, malformed=1, truncated=1, impossible=1)


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


@every_oracle
def test_reports_at_the_edge_are_accepted_and_beyond_refused(name: str) -> None:
    oracle = ORACLES[name]
    good, bad = (np.array(rows, dtype=oracle.report_dtype) for rows in HOSTILE[name])
    assert all(sendable(name, raw.tobytes()) for raw in good)
    assert not any(sendable(name, raw.tobytes()) for raw in bad)
    assert oracle.aggregate(good).n == len(good)
    assert np.array_equal(oracle.reports_from_bytes(oracle.reports_to_bytes(good)), good)
    for k in range(len(bad)):
        one = bad[k : k + 1]
        for refuse in (
            lambda one=one: oracle.aggregate(one),
            lambda one=one: oracle.reports_to_bytes(one),
            lambda one=one: oracle.reports_from_bytes(
                message(header_of(oracle, count=1), one.tobytes())
            ),
        ):
            with pytest.raises(InvalidReport, match=r"^reports\[0\] = .* cannot have been sent"):
                refuse()


@every_oracle
def test_what_is_no_array_of_reports_is_refused(name: str) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, 4)
    wider = [
        (field, ">u4" if part.base.kind == "u" else ">i4", part.shape)
        for field, (part, *_) in layout_of(oracle.report_dtype).items()
    ]
    renamed = reports.astype(
        [(field + "_", part) for field, (part, *_) in layout_of(oracle.report_dtype).items()]
    )
    things: list[tuple[Any, int]] = [
        *(
            (None, 1),
            (3, 1),
            ("reports", 1),
            (b"\0", 1),
            ([], 1),
            (reports.tolist(), 1),
            (list(reports), 1),
            (reports[0], 1),
        ),
        *(
            (reports.reshape(2, 2), 4),
            (reports[:, None], 4),
            (reports[0:1].reshape(()), 1),
            (reports.astype(object), 4),
        ),
        *(
            (reports.astype(wider), 4),
            (renamed, 4),
            (reports.view(f"V{oracle.report_dtype.itemsize}"), 4),
        ),
        *(
            (np.arange(4), 4),
            (np.zeros(4), 4),
            (np.array(["a", "b"]), 2),
            (np.array([None]), 1),
            (reports[next(iter(layout_of(oracle.report_dtype)))], 0),
        ),
    ]
    for thing, count in things:
        tally: Counter[str] = Counter()
        assert oracle.aggregate(thing, tally).n == 0
        assert tally == Counter(malformed=count or thing.size)
        for refuse in (oracle.aggregate, oracle.reports_to_bytes):
            with pytest.raises(InvalidReport, match="must be a one-dimensional array"):
                refuse(thing)


@every_oracle
def test_reports_under_a_mask_are_refused(name: str) -> None:
    oracle = ORACLES[name]
    masked = np.ma.array(some_reports(oracle, 4))
    masked[0] = np.ma.masked
    masked.data[0] = np.frombuffer(
        b"\xff" * oracle.report_dtype.itemsize, dtype=oracle.report_dtype
    )[0]
    for refuse in (oracle.aggregate, oracle.reports_to_bytes):
        with pytest.raises(InvalidReport):
            refuse(masked)


# ------------------------------------------------------------------------------------- aggregates

TINY: list[Oracle] = [
    *(
        RR(2, 1.0),
        GRR(1, 1.0),
        GRR(3, 1.0),
        SUE(3, 1.0),
        OUE(2, 1.0),
        SubsetSelection(4, 0.5),
        SubsetSelection(5, 0.1),
    ),
    *(ProjectiveGeometry(3, 1.0), OLH(2, 0.2), OLH(2, 1.0), HRR(2, 1.0), HRR(4, 1.0), HRR(2, 0.5)),
    *(
        CountMeanSketch(5, 1.0, hashes=2, width=2),
        HadamardCountMeanSketch(5, 1.0, hashes=2, width=4),
        JLOracle(5, 1.0, rows=3),
    ),
    *(HRR(4, 1.0, 2), HRR(5, 1.0, 3), Tabular(TABLE)),
]


def kinds_of_reports(oracle: Oracle) -> set[tuple[int, ...]]:
    """The counts of every report that can be sent."""
    size = oracle.report_dtype.itemsize
    if isinstance(oracle, HRR):
        t, signs = oracle.coefficients, itertools.product((1, -1), repeat=oracle.coefficients)
        rows = itertools.product(itertools.combinations(range(1, oracle.padded), t), signs)
        everything = np.array(list(rows), dtype=oracle.report_dtype)
    else:
        noise = (
            np.indices((256,) * size if size < 3 else (4, 8, 256)).reshape(size, -1).T.astype("u1")
        )
        everything = np.frombuffer(noise.tobytes(), dtype=oracle.report_dtype)
    kept = everything[oracle._possible(everything)]
    return {
        tuple(oracle.aggregate(kept[k : k + 1]).counts.ravel().tolist()) for k in range(len(kept))
    }


@pytest.mark.parametrize(
    "oracle",
    TINY,
    ids=repr,
)
def test_counts_are_accepted_exactly_if_reports_have_them(oracle: Oracle) -> None:
    kinds = np.array(sorted(kinds_of_reports(oracle)))
    shape = oracle.aggregate(some_reports(oracle, 0)).counts.shape
    cells, rng = int(np.prod(shape)), np.random.default_rng(6)
    zero = np.zeros(cells, dtype=int)
    # All counts of up to two reports; those of three are such counts and one report more.
    pairs = (kinds[:, None] + kinds).reshape(-1, cells)
    possible = [set(map(tuple, counts.tolist())) for counts in (zero[None], kinds, pairs)]
    for n in range(4):
        some = kinds[rng.integers(0, len(kinds), (300, n))].sum(axis=1)
        near = some[:200] + rng.integers(-2, 3, (200, cells)) * (rng.random((200, cells)) < 0.4)
        noise = rng.integers(-n - 1, n + 2, (200, cells))
        sums = rng.integers(0, n + 1, (200, cells))
        for counts in np.unique(np.concatenate([some, near, noise, sums]), axis=0):
            array = counts.reshape(shape)
            data = Aggregate(signature(oracle), n, array).to_bytes()
            fewer = counts - kinds if n == 3 else counts[None]
            right = not possible[min(n, 2)].isdisjoint(map(tuple, fewer.tolist()))
            assert countable(oracle, n, array) == right, (n, array)
            try:
                assert oracle.aggregate_from_bytes(data).n == n
                assert right, (n, array)
            except IncompatibleAggregate:
                assert not right, (n, array)


@every_oracle
def test_tampered_counts_with_a_fresh_digest_are_refused(name: str) -> None:
    oracle = ORACLES[name]
    good = oracle.aggregate(some_reports(oracle, 40))
    kind = oracle.parameters["protocol"]

    def refused(n: int, counts: np.ndarray) -> None:
        with pytest.raises(IncompatibleAggregate):
            oracle.aggregate_from_bytes(Aggregate(signature(oracle), n, counts).to_bytes())

    def change(*changes: tuple[int, int]) -> np.ndarray:
        counts = good.counts.copy()
        for cell, value in changes:
            counts.flat[cell] += value
        return counts

    last = good.counts.size - 1
    signed = kind in ("HRR", "HadamardCountMeanSketch", "JLOracle")
    refused(good.n, change((last, 2**62)))
    refused(good.n, change((last, -(2**62))))
    refused(good.n, good.counts.ravel()[:-1].copy())
    refused(good.n, np.append(good.counts, 0))
    refused(good.n, good.counts[None].copy())
    refused(good.n, good.counts[..., None].copy())
    refused(good.n, np.zeros((0,), dtype=np.int64))
    refused(good.n, np.array(0))
    refused(0, good.counts.copy())
    if kind not in ("SUE", "OUE"):
        refused(good.n, change((last, 1)))
        refused(good.n, change((last, -1)))
    if kind not in ("SUE", "OUE") and not (
        kind == "HRR" and oracle.parameters["coefficients"] == 2
    ):
        refused(good.n + 1, good.counts.copy())
    if signed and kind != "JLOracle":  # the constant coefficient
        refused(good.n, change((0, 2)))
    if not signed:
        at = int(np.flatnonzero(good.counts.ravel())[0])
        refused(
            good.n,
            change(
                (at, -int(good.counts.flat[at]) - 1),
                ((at + 1) % (last + 1), int(good.counts.flat[at]) + 1),
            ),
        )
    if good.counts.ndim == 2:
        refused(good.n, good.counts.ravel().copy())
        refused(good.n, np.ascontiguousarray(good.counts.T))
    for n in (-1, 2**63, 2**64, 10**40):
        with pytest.raises(IncompatibleAggregate, match="is not a number of reports"):
            oracle.aggregate_from_bytes(
                sealed(message(aggregate_header(oracle, n=n), good.counts.tobytes()))
            )


@pytest.mark.parametrize("shape", [5, -1, None, [-1], [-5]], ids=str)
def test_a_shape_that_is_not_written_out_is_refused(shape: Any) -> None:
    data = sealed(message(aggregate_header(ORACLES["GRR"], n=0, shape=shape), bytes(40)))
    with pytest.raises(IncompatibleAggregate):
        ORACLES["GRR"].aggregate_from_bytes(data)


OTHERS: list[tuple[Oracle, Oracle]] = [
    *((GRR(5, 1.0), other) for other in (GRR(5, 1.0000001), GRR(6, 1.0), GRR(5, 2.0), SUE(5, 1.0))),
    *(
        (SUE(9, 1.0), other)
        for other in (OUE(9, 1.0), SUE(9, 1.5), SUE(10, 1.0), SubsetSelection(9, 1.0))
    ),
    (RR(2, 1.0), GRR(2, 1.0)),
    (OLH(11, 1.0), OLH(12, 1.0)),
    (ProjectiveGeometry(11, 1.0), ProjectiveGeometry(12, 1.0)),
    *((HRR(11, 1.0), other) for other in (HRR(11, 1.0, 2), HRR(12, 1.0))),
    *(
        (CountMeanSketch(9, 1.0, 4, 8, 1), other)
        for other in (
            *(
                CountMeanSketch(9, 1.0, 4, 8, 2),
                CountMeanSketch(9, 1.0, 8, 4, 1),
                CountMeanSketch(9, 1.0, 4, 16, 1),
            ),
            *(CountMeanSketch(8, 1.0, 4, 8, 1), HadamardCountMeanSketch(9, 1.0, 4, 8, 1)),
        )
    ),
    (HadamardCountMeanSketch(9, 1.0, 4, 8, 1), HadamardCountMeanSketch(9, 1.0, 4, 8, 2)),
    *(
        (JLOracle(9, 1.0, 40, 1), other)
        for other in (JLOracle(9, 1.0, 40, 2), JLOracle(9, 1.0, 41, 1), JLOracle(9, 2.0, 40, 1))
    ),
    (
        Tabular(TABLE),
        Tabular(
            Mechanism([["2/3", "1/3"], ["1/3", "2/3"], [0, 0]], Privacy("1/2", neighbours="all"))
        ),
    ),
    (Tabular(TABLE), Tabular(Mechanism([["2/3", "1/3"], [0, 0], ["1/3", "2/3"]], Privacy("1/2")))),
]


@pytest.mark.parametrize(("mine", "other"), OTHERS, ids=repr)
def test_what_is_of_another_oracle_is_refused(mine: Oracle, other: Oracle) -> None:
    a, b = mine.aggregate(some_reports(mine, 5)), other.aggregate(some_reports(other, 5))
    assert a != b
    for refuse in (
        *(
            lambda: a + b,
            lambda: b + a,
            lambda: sum([a, b]),
            lambda: mine.estimate(b),
            lambda: other.estimate(a),
        ),
        *(
            lambda: mine.aggregate_from_bytes(b.to_bytes()),
            lambda: other.aggregate_from_bytes(a.to_bytes()),
        ),
    ):
        with pytest.raises(IncompatibleAggregate):
            refuse()
    tally: Counter[str] = Counter()
    assert len(mine.reports_from_bytes(other.reports_to_bytes(some_reports(other, 5)), tally)) == 0
    assert tally == Counter(foreign=5)
    with pytest.raises(InvalidReport, match=r"^reports of .*, not of "):
        mine.reports_from_bytes(other.reports_to_bytes(some_reports(other, 5)))


@every_oracle
def test_aggregates_add_compare_and_cannot_be_written_to(name: str) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, 30)
    parts = [
        oracle.aggregate(reports[:1]),
        oracle.aggregate(reports[1:13]),
        oracle.aggregate(reports[13:]),
        oracle.aggregate(reports[:0]),
    ]
    whole = oracle.aggregate(reports)
    for order in itertools.permutations(parts):
        assert sum(order) == whole
    assert (parts[0] + parts[1]) + parts[2] == parts[0] + (parts[1] + parts[2]) == whole
    assert whole + parts[3] == whole
    assert whole != parts[0]
    assert whole != 0
    assert whole != oracle.aggregate(np.concatenate([reports, reports]))
    assert oracle.aggregate(reports[::-1]) == whole
    for aggregate in (whole, parts[0] + parts[1], oracle.aggregate_from_bytes(whole.to_bytes())):
        with pytest.raises(ValueError, match="read-only"):
            aggregate.counts[...] = 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(whole)
    for thing in (1, None, "0", whole.counts.tolist()):
        with pytest.raises(TypeError):
            thing + whole
        with pytest.raises(TypeError):
            whole + thing  # type: ignore[operator]
    assert sum([]) == 0  # nothing knows of which oracle it would be
    with pytest.raises((AttributeError, TypeError)):
        whole.n = 3  # type: ignore[misc]  # read-only


@pytest.mark.parametrize("beyond", [1, 2, 1000, 2**31, 2**32 - 1000])
def test_a_header_cut_short_is_refused_even_where_its_text_is_whole(beyond: int) -> None:
    oracle = ORACLES["GRR"]
    data = bytearray(oracle.reports_to_bytes(some_reports(oracle, 0)))
    data[4:8] = (int.from_bytes(data[4:8], "little") + beyond).to_bytes(4, "little")
    with pytest.raises(InvalidReport, match="cut short within the header"):
        oracle.reports_from_bytes(bytes(data))


@pytest.mark.parametrize("parameters", [None, 3, True, [], {}, ["x"], {"protocol": "GRR"}], ids=str)
def test_parameters_that_are_no_text_are_refused_before_the_oracle_is_known(
    parameters: Any,
) -> None:
    data = sealed(message(aggregate_header(ORACLES["GRR"], parameters=parameters, n=0), bytes(40)))
    with pytest.raises(IncompatibleAggregate, match="not text"):
        Aggregate.from_bytes(data)


def test_counts_are_compared_and_summed_without_wrapping_around() -> None:
    oracle = ORACLES["GRR"]
    mine, other = (
        oracle.aggregate(some_reports(oracle, 5)),
        oracle.aggregate(some_reports(oracle, 5, seed=2)),
    )
    assert mine.n == other.n
    assert mine != other
    wrapped = np.array([2**62, 2**62, 2**62, 2**62, 3])  # 2^64 + 3
    with pytest.raises(IncompatibleAggregate):
        oracle.aggregate_from_bytes(Aggregate(signature(oracle), 3, wrapped).to_bytes())


def test_fewer_than_two_to_the_63_reports_fit() -> None:
    oracle = ORACLES["SUE"]

    def of(n: int) -> Aggregate:
        return oracle.aggregate_from_bytes(
            Aggregate(signature(oracle), n, np.full(11, n // 2)).to_bytes()
        )

    most = of(2**62) + of(2**62 - 1)
    assert most.n == 2**63 - 1
    assert oracle.aggregate_from_bytes(most.to_bytes()) == most
    assert np.isfinite(oracle.estimate(most).frequencies).all()
    for a, b in ((of(2**62), of(2**62)), (most, of(1)), (most, most)):
        with pytest.raises(OverflowError):
            a + b


def test_counts_of_valid_aggregates_do_not_overflow_when_added() -> None:
    oracle, n = ORACLES["HRR, t = 3"], 2**61 + 2
    counts = np.zeros(16, dtype=np.int64)
    counts[1] = 2**62 + 2
    # An index occurs at most once in a report: no more than n times
    with pytest.raises(IncompatibleAggregate):
        oracle.aggregate_from_bytes(Aggregate(signature(oracle), n, counts).to_bytes())


def test_aggregates_whose_counts_have_other_shapes_do_not_add() -> None:
    oracle = ORACLES["SUE"]
    mine = oracle.aggregate(some_reports(oracle, 5))
    for shape in ((1,), (4,), (11, 1), (0,)):
        forged = Aggregate.from_bytes(
            Aggregate(signature(oracle), 2, np.ones(shape, dtype=np.int64)).to_bytes()
        )
        for refuse in (lambda forged=forged: mine + forged, lambda forged=forged: forged + mine):
            with pytest.raises(IncompatibleAggregate):
                refuse()


# ------------------------------------------------------------------------------------ huge counts


def times(q: int, a: int, b: int) -> int:
    """In F_q, q prime or 4."""
    return a * b % q if q != 4 else [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]][a][b]


def product(q: int, t: int, a: int, x: int) -> int:
    terms = [times(q, a // q**j % q, x // q**j % q) for j in range(t)]
    return (
        sum(terms) % q
        if q != 4
        else terms[0] ^ (terms[1] if t > 1 else 0) ^ (terms[2] if t > 2 else 0)
    )


def huge(cells: int, n: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Counts that sum to n: all in one cell, evenly spread, and at random."""
    yield [n] + [0] * (cells - 1)
    yield [n // cells + (k < n % cells) for k in range(cells)]
    for _ in range(4):
        cuts = sorted(int(cut) * n >> 62 for cut in rng.integers(0, 1 << 62, cells - 1))
        yield [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def check_exact(oracle: GRR | OUE | OLH, n: int, counts: list[int], supporters: list[int]) -> None:
    found = oracle.estimate(
        oracle.aggregate_from_bytes(Aggregate(signature(oracle), n, np.array(counts)).to_bytes())
    )
    exact = [float((Fraction(s, n) - oracle.q) / (oracle.p - oracle.q)) for s in supporters]
    assert found.frequencies == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert np.isfinite(found.variances).all()


@pytest.mark.parametrize("n", [2**39 + 1, 2**53 + 1, 2**62 + 12345, 2**63 - 1])
@pytest.mark.parametrize(
    ("oracle", "order"),
    [(OLH(9, 0.5), 3), (OLH(12, 1.0), 4), (OLH(2, 1.0), 4), (OLH(60, 1.0), 4)],
    ids=repr,
)
def test_olh_estimates_from_huge_counts_as_exact_integers_do(
    oracle: OLH, order: int, n: int
) -> None:
    q, t = oracle.parameters["field"], oracle.parameters["dimension"]
    assert q == order
    reports = np.array([(a, y) for a in range(q**t) for y in range(q)], dtype=oracle.report_dtype)
    of_cell = {
        int(np.argmax(oracle.aggregate(reports[k : k + 1]).counts)): tuple(map(int, reports[k]))
        for k in range(len(reports))
    }
    for counts in huge(len(of_cell), n, np.random.default_rng(7)):
        held = [
            sum(counts[c] for c, (a, y) in of_cell.items() if product(q, t, a, x) == y)
            for x in range(oracle.domain)
        ]
        check_exact(oracle, n, counts, held)


@pytest.mark.parametrize("n", [2**39 + 1, 2**53 + 1, 2**62 + 12345, 2**63 - 1])
@pytest.mark.parametrize(
    ("oracle", "order"),
    [
        (ProjectiveGeometry(7, 0.4), 2),
        (ProjectiveGeometry(11, 1.0), 3),
        (ProjectiveGeometry(21, 1.2), 4),
        (ProjectiveGeometry(6, 1.6), 5),
    ],
    ids=repr,
)
def test_projective_geometry_estimates_from_huge_counts_as_exact_integers_do(
    oracle: ProjectiveGeometry, order: int, n: int
) -> None:
    q, t = oracle.parameters["field"], oracle.parameters["dimension"]
    assert q == order
    points = [q**j + low for j in range(t) for low in range(q**j)]  # leading digit 1, in order
    for counts in huge(len(points), n, np.random.default_rng(8)):
        on = [
            sum(c for a, c in zip(points, counts, strict=True) if product(q, t, a, x) == 0)
            for x in points[: oracle.domain]
        ]
        check_exact(oracle, n, counts, on)


@pytest.mark.parametrize(
    ("t", "n"),
    [
        *((1, n) for n in (2**40, 2**62 + 12346, 2**63 - 2)),
        *((t, n) for n in (2**40, 2**61) for t in (2, 3)),
        *((t, n) for n in (2**62 + 12346, 2**63 - 2) for t in (2, 3)),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_hrr_estimates_from_huge_counts_as_exact_integers_do(
    t: int, n: int, epsilon: float
) -> None:
    oracle = HRR(8, epsilon, t)
    truth, lie = (int(oracle.parameters[key]) for key in ("truth", "lie"))
    scale = Fraction(7, 8 * t) / (Fraction(truth - lie, 1 << 64) * n)
    rng = np.random.default_rng(9)
    for users in huge(7, n * t, rng):
        # Indices at most n times each; what is over goes to others.
        for k in range(7):
            over = max(0, users[k] - n)
            users[k] -= over
            users[(k + 1) % 7] += over
        for signs in ([1] * 7, [-1] * 7, [int(s) for s in rng.choice([1, -1], 7)]):
            counts = [0, *(s * u for s, u in zip(signs, users, strict=True))]
            aggregate = Aggregate(signature(oracle), n, np.array(counts))
            assert countable(oracle, n, aggregate.counts)
            found = oracle.estimate(oracle.aggregate_from_bytes(aggregate.to_bytes()))
            sums = [
                sum((-1) ** (j & x).bit_count() * counts[j] for j in range(8)) for x in range(8)
            ]
            assert found.frequencies == pytest.approx(
                [float(Fraction(1, 8) + scale * s) for s in sums], rel=1e-12, abs=1e-12
            )


def test_projective_geometry_is_for_small_epsilon_too() -> None:
    oracle = ProjectiveGeometry(3, 0.2)
    assert oracle.audit().holds
    assert oracle.aggregate(some_reports(oracle, 5)).n == 5


# -------------------------------------------------------------------------- the committed vectors


def make_vectors() -> dict[str, Any]:
    """What today's code sends, stores and estimates; and messages that are wrong."""
    right: dict[str, Any] = {}
    for k, (name, oracle) in enumerate(ORACLES.items()):
        values = [0, 1, min(oracle.domain, 1 << 33) - 1]
        reports = oracle.privatize(values, np.random.Generator(np.random.PCG64(k)))
        aggregate = oracle.aggregate(reports)
        right[name] = {
            "parameters": oracle.parameters,
            "seed": k,
            "values": values,
            "reports": oracle.reports_to_bytes(reports).hex(),
            "aggregate": aggregate.to_bytes().hex(),
            "items": values if oracle.domain > 1000 else None,
            "frequencies": [
                float(f"{f:.12g}")
                for f in oracle.estimate(
                    aggregate, None if oracle.domain <= 1000 else values
                ).frequencies
            ],
        }
    grr, body = ORACLES["GRR"], b"\0\1\2"
    wrong = [
        ("GRR", "malformed", 1, b""),
        ("GRR", "malformed", 1, message(header_of(grr), body, b"LDPX")),
        ("GRR", "malformed", 1, message(header_of(grr), body)[:20]),
        ("GRR", "malformed", 1, message(header_of(grr, version=2), body)),
        ("GRR", "malformed", 1, message(header_of(grr, kind="aggregate"), body)),
        ("GRR", "malformed", 1, message(header_of(grr, count=3.0), body)),
        ("GRR", "malformed", 2, message(header_of(grr), body + b"\0\0")),
        ("GRR", "foreign", 3, message(header_of(GRR(5, 2.0)), body)),
        ("GRR", "foreign", 3, message(header_of(grr, parameters=grr.parameters), body)),
        ("GRR", "truncated", 1, message(header_of(grr), body[:2])),
        *(
            (
                name,
                "impossible",
                len(bad),
                message(
                    header_of(oracle, count=len(bad)), np.array(bad, oracle.report_dtype).tobytes()
                ),
            )
            for name, oracle in ORACLES.items()
            if (bad := HOSTILE[name][1])
        ),
    ]
    keys = ("oracle", "reason", "count", "message")
    return {
        "right": right,
        "wrong": [dict(zip(keys, (*case[:3], case[3].hex()), strict=True)) for case in wrong],
    }


def load_vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(VECTORS.read_text())
    return found


@every_oracle
def test_the_committed_vectors_still_mean_the_same(name: str) -> None:
    oracle, vector = ORACLES[name], load_vectors()["right"][name]
    assert oracle.parameters == vector["parameters"]
    data, stored = bytes.fromhex(vector["reports"]), bytes.fromhex(vector["aggregate"])
    reports, aggregate = oracle.reports_from_bytes(data), oracle.aggregate_from_bytes(stored)
    assert len(reports) == aggregate.n == 3
    assert oracle.aggregate(reports) == aggregate
    assert oracle.reports_to_bytes(reports) == data
    assert aggregate.to_bytes() == stored
    assert oracle.estimate(aggregate, vector["items"]).frequencies == pytest.approx(
        vector["frequencies"], rel=1e-11, abs=1e-11
    )
    assert np.array_equal(
        oracle.privatize(vector["values"], np.random.Generator(np.random.PCG64(vector["seed"]))),
        reports,
    )


def test_the_committed_vectors_are_of_every_oracle() -> None:
    assert load_vectors()["right"].keys() == ORACLES.keys()
    reasons = {(case["oracle"], case["reason"]) for case in load_vectors()["wrong"]}
    assert {reason for _, reason in reasons} == {"malformed", "foreign", "truncated", "impossible"}
    assert {name for name, reason in reasons if reason == "impossible"} == {
        name for name in ORACLES if HOSTILE[name][1]
    }


@pytest.mark.parametrize(
    "case",
    load_vectors()["wrong"] if VECTORS.exists() else [],
    ids=lambda case: f"{case['oracle']}-{case['reason']}",
)
def test_the_committed_wrong_messages_are_refused_for_their_reason(case: dict[str, Any]) -> None:
    oracle, data = ORACLES[case["oracle"]], bytes.fromhex(case["message"])
    tally: Counter[str] = Counter()
    oracle.reports_from_bytes(data, tally)
    assert tally == Counter({case["reason"]: case["count"]})
    with pytest.raises(InvalidReport):
        oracle.reports_from_bytes(data)


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(make_vectors(), indent=1) + "\n")
