"""The JavaScript client: its parts beside Python's, what it refuses, and the reports of arrays."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frequency
import mechdesign
import rangeq
from frequency import heavy, marginals
from frequency.algebra.exact_draws import TruthOrLie, bernoulli_bits, uniform
from frequency.algebra.finite_field import field_of, space
from frequency.algebra.hash_functions import Coins, LinearHash, PublicBits, features
from frequency.clients.device import canonical
from frequency.core.protocol import channel_of
from frequency.storage import load_protocol, save_protocol
from mechdesign import Mechanism, Privacy
from rangeq import grids
from rangeq.grids.channel import LevelSketch
from tests.clients.node import CLIENT, NODE, Node, evaluated
from tests.contracts.examples import PROTOCOLS, WITH_VALUES
from tests.tape import WORD, Tape

MODULES = sorted(CLIENT.glob("*.js"))
LARGEST = WORD - 1
ODD_TEXTS = [
    "",
    "".join(map(chr, range(0x300))),
    '"\\/\b\f\n\r\t\x00\x1f\x7f\x80\u2028\u2029\ufeff\uffff',
    "\U0001f600\U0010ffff\ud800 \udfff \udc00\ud800",
    "é".encode().decode("latin-1"),
]


class Recorded:
    """A source of random words that keeps them; the first ones are often extreme.

    So rejections and the ends of intervals are drawn too.
    """

    def __init__(self, seed: int) -> None:
        self.words: list[int] = []
        self._rng = np.random.default_rng(seed)

    def __call__(self, size: int) -> np.ndarray:
        drawn = self._rng.integers(0, WORD, size, dtype=np.uint64)
        for place in range(min(size, 24 - len(self.words))):
            word = int(drawn[place])
            drawn[place] = [word, word, 0, LARGEST, LARGEST - 1, word >> word % 64][word % 6]
        self.words += drawn.tolist()
        return drawn


def described(content: dict[str, Any]) -> dict[str, Any]:
    """A description with the digest that it must have."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    digest = hashlib.shake_256(canonical(rest).encode()).hexdigest(32)
    return {**rest, "digest": f"shake256:{digest}"}


GRR = frequency.GRR(5, 1.0).client()


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with Node() as process:
        yield process


# ------------------------------------------------------------------------------------- reports


def compare(node: Node, protocol: Any, values: Any, file: Path) -> None:
    """Reports of these values are those of the array path, byte for byte and word for word."""
    channel = channel_of(protocol)
    file.write_text(json.dumps(protocol.client()))
    for seed in range(30):
        value = values[seed % len(values)]
        source, reports = Recorded(seed), np.zeros(1, dtype=channel.report_dtype)
        channel.fill(channel.items_of(protocol.items_of([value])), reports, source)
        answer = node.ask(str(file), value, [*source.words, 0])  # of which none is too many
        assert answer == {"report": channel.wire + reports.tobytes(), "words": len(source.words)}


@WITH_VALUES
def test_reports_are_those_of_the_array_path(protocol, values, node, tmp_path):
    compare(node, protocol, values, tmp_path / "client.json")


def values_of(takes: dict[str, Any]) -> list[Any]:
    """Some values that a protocol takes."""
    rng = random.Random(1)
    if takes["kind"] in ("string", "spelt"):
        return ["", "a", "é"[: takes["bytes"] - 1], "x" * takes["bytes"]]
    sizes = [int(size) for size in takes.get("sizes", [takes.get("size", 30)])]
    if takes["kind"] == "set":
        some = [rng.choices(range(sizes[0]), k=count) for count in (1, 2, 3, 5, 9)]
        return [[], *some, list(range(sizes[0]))]
    records = [[rng.choice([0, size - 1, rng.randrange(size)]) for size in sizes] for _ in range(9)]
    return records if takes["kind"] == "record" else [record[0] for record in records]


@pytest.mark.parametrize("place", range(len(PROTOCOLS)))
def test_reports_of_every_protocol_are_those_of_the_array_path(place, node, tmp_path):
    protocol = PROTOCOLS[place]
    compare(node, protocol, values_of(protocol.client()["takes"]), tmp_path / "client.json")


ZEROS = Mechanism(
    [["1/2", "1/4"], ["1/4", "1/2"], ["1/4", "1/4"], [0, 0]], Privacy(alpha="1/2", neighbours="all")
)
BEYOND: dict[str, Any] = {
    "levels": LevelSketch(12, 1.0, marginals.Domain.of({"a": 4, "b": 3}), ((4, 2, 1), (3, 1)), 8),
    "uneven axes": grids.TDG([7, 11], 1.5, 10_000),
    "table": heavy.OneBit(frequency.Tabular(ZEROS)),
    "hyperplane": heavy.OneBit(frequency.ProjectiveGeometry(60, 1.6)),
    "channels": heavy.OneBit(
        heavy.SuccinctHistogram(64, 4.0, n=500, hashes=2, channels=4, rows=64), seed=3
    ),
}
"""What no example reaches."""


@pytest.mark.parametrize("name", BEYOND)
def test_reports_of_other_steps_are_those_of_the_array_path(name, node, tmp_path):
    protocol = BEYOND[name]
    compare(node, protocol, values_of(protocol.client()["takes"]), tmp_path / "client.json")


def test_a_table_reads_on_where_words_are_at_its_thresholds(node):
    """Its ends have 64 bits in common, or 128: which of them are passed is read in later words."""
    rows = [
        [Fraction(1, 3), Fraction(1, 2)],
        [Fraction(1, 3 << 66)] * 2,
        [Fraction(1, 5 << 130)] * 2,
    ]
    rows.append([1 - sum(column) for column in zip(*rows, strict=True)])
    protocol = frequency.Tabular(Mechanism(rows, Privacy(alpha="1/2", neighbours="all")))
    description, channel = protocol.client(), channel_of(protocol)
    first, drawn = WORD // 3, set()
    for second in (0, first // 4, first // 4 + first, first, 2 * first, LARGEST):
        for third in (0, first, WORD // 5 * 3, LARGEST):
            tape, reports = Tape([first, second, third, 0]), np.zeros(1, channel.report_dtype)
            channel.fill(np.array([0]), reports, tape)
            answer = node.ask(description, 0, tape.words)
            assert answer == {"report": channel.wire + reports.tobytes(), "words": tape.used}
            drawn.add((reports.tobytes(), tape.used))
    assert {used for _, used in drawn} >= {2, 3}
    assert len(drawn) > 3


@pytest.mark.parametrize("wrapped", [False, True])
def test_users_without_an_item_report_as_arrays_do(wrapped, node):
    alone = heavy.UniqueHeavyHitter(8, 1.0)
    protocol: Any = heavy.FewBits(alone, bits=2) if wrapped else alone
    description, channel = protocol.client(), protocol.channel
    for seed in range(20):
        source = Recorded(seed)
        reports = channel.idle(1, source)
        answer = node.ask(description, None, [*source.words, 0])
        assert answer == {"report": channel.wire + reports.tobytes(), "words": len(source.words)}


@pytest.mark.parametrize("item", [0, (1 << 53) - 1, 1 << 53, (1 << 63) + 1, LARGEST])
def test_items_may_have_64_bits(item, node):
    protocol = heavy.PrefixExtension(64, 2.0, lengths=(20, 35, 50, 64))
    values = np.array([item], dtype=np.uint64)
    channel = channel_of(protocol)
    for seed in range(10):
        source, reports = Recorded(seed), np.zeros(1, dtype=channel.report_dtype)
        channel.fill(channel.items_of(protocol.items_of(values)), reports, source)
        answer = node.ask(protocol.client(), item, source.words)
        assert answer == {"report": channel.wire + reports.tobytes(), "words": len(source.words)}


def test_big_and_other_integers_are_the_same_item(node):
    protocol = frequency.HRR(100, 1.0)
    given = [
        node.ask(protocol.client(), value, range(9)) for value in (77, {"integer": "77"}, 77.0)
    ]
    assert given[0] == given[1] == given[2]
    assert "report" in given[0]


def test_the_reports_of_the_system_differ_and_are_counted(node):
    protocol = frequency.OUE(64, 1.0)
    payloads = [node.ask(protocol.client(), 3)["report"] for _ in range(50)]
    assert len(set(payloads)) == 50
    assert {payload[:8] for payload in payloads} == {protocol.wire}
    reports = np.frombuffer(b"".join(one[8:] for one in payloads), dtype=protocol.report_dtype)
    assert protocol.aggregate(reports).n == 50


# --------------------------------------------------------------------------- what it is made of


def test_the_sponge_is_that_of_hashlib():
    sizes = [0, 1, 7, 8, 31, 32, 135, 136, 137, 271, 272, 273, 1000]
    texts = ["x" * length for length in range(280)] + ["ä\U0001f600" * 60, "a" * 5000]
    given = [(text, sizes[k % len(sizes)]) for k, text in enumerate(texts)]
    found = evaluated(
        """
        const { hex, sponge } = await import("CLIENT/description.js");
        console.log(JSON.stringify(given.map(([text, size]) => hex(sponge(text, size)))));
        """,
        given,
    )
    assert found == [hashlib.shake_256(text.encode()).hexdigest(size) for text, size in given]


def test_canonical_json_is_pythons():
    rng = random.Random(1)
    units = "".join(
        chr(rng.choice([rng.randrange(0x80), rng.randrange(0x10000)])) for _ in range(9999)
    )
    content = {
        "texts": [*ODD_TEXTS, units],
        "numbers": [0, -1, (1 << 53) - 1, 1 - (1 << 53)],
        "b": {"z": None, "B": True, "a": False, "": [], "_": {}, "__proto__": [[1]]},
    }
    found = evaluated(
        """
        const { canonical } = await import("CLIENT/description.js");
        console.log(JSON.stringify(canonical(given)));
        """,
        content,
    )
    assert found == json.dumps(content, sort_keys=True, separators=(",", ":"))


def test_base64_is_pythons():
    given = [random.Random(length).randbytes(length) for length in [*range(100), 100_000]]
    found = evaluated(
        """
        const { base64 } = await import("CLIENT/index.js");
        console.log(JSON.stringify(given.map((bytes) => base64(Uint8Array.from(bytes)))));
        """,
        [list(one) for one in given],
    )
    assert found == [base64.b64encode(one).decode() for one in given]


def test_draws_are_those_of_numpy():
    weights = [0, 1, WORD // 3, 1 << 63, 3 << 62, LARGEST, (1 << 63) + 1, 5 << 40]
    sizes = [1, 2, 3, 255, 256, 257, (1 << 53) + 1, (1 << 63) - 1, 1 << 63]
    tapes = []
    expected: list[Any] = []
    for seed in range(8):
        source = Recorded(seed)
        for weight in weights:
            for places in (1, 64, 65, 200):
                lanes = bernoulli_bits(-(-places // 64), weight, source)
                kept = int.from_bytes(lanes.astype("<u8").tobytes(), "little") % (1 << places)
                expected.append(kept.to_bytes(-(-places // 8), "little").hex())
        for size in sizes:
            expected += [str(uniform(1, size, source)[0]), *map(str, uniform(5, size, source))]
            lie = TruthOrLie(size, WORD // (size + 1))
            expected.append(str(lie.draw(1, source)[0]))
        tapes.append([str(word) for word in source.words])
    found = evaluated(
        """
        const { below, belows, bits, lies } = await import("CLIENT/draws.js");
        const { hex } = await import("CLIENT/description.js");
        const found = [];
        for (const tape of given.tapes) {
          let used = 0;
          const word = () => BigInt(tape[used++]);
          for (const weight of given.weights.map(BigInt)) {
            for (const places of [1, 64, 65, 200]) found.push(hex(bits(word, places, weight)));
          }
          for (const size of given.sizes.map(BigInt)) {
            found.push(below(word, size)(), ...belows(word, 5, size));
            found.push(lies(word, size, (1n << 64n) / (size + 1n))());
          }
          if (used !== tape.length) throw new Error(`${used} words, not ${tape.length}`);
        }
        console.log(JSON.stringify(found.map(String)));
        """,
        {"tapes": tapes, "weights": list(map(str, weights)), "sizes": list(map(str, sizes))},
    )
    assert found == expected


def test_public_coins_and_functions_are_those_of_the_server():
    rng = random.Random(1)
    items = [0, 1, 2, LARGEST, *(rng.getrandbits(64) for _ in range(40))]
    array = np.array(items, dtype=np.uint64).astype(np.int64)
    coins = Coins(np.array(items, dtype=np.uint64), seed=99).after(3)
    linear, public = LinearHash("a", 5, 11), PublicBits("b", 6, 22)
    cells = public.bits(np.arange(22), features(array[:, None])).astype(np.int64)
    found = evaluated(
        """
        const { Coins } = await import("CLIENT/draws.js");
        const { expression, linearHash } = await import("CLIENT/expressions.js");
        const items = given.map(BigInt), hash = linearHash("frequency:a:5", 11);
        const cell = expression(["cell", "frequency:b:6", 2n, 11n]);
        const found = items.map((item) => {
          const coins = new Coins(item + 99n).after(3n);
          return [coins.word(7n), coins.below(8n, 1000n), hash(item), cell(item, [1n])].map(String);
        });
        console.log(JSON.stringify(found));
        """,
        [str(item) for item in items],
    )
    columns = (
        coins.words(7).tolist(),
        coins.uniform(8, 1000).tolist(),
        linear(np.array(items, dtype=np.uint64)).tolist(),
        (cells[:, 11:] @ (1 << np.arange(11))).tolist(),
    )
    assert found == [list(map(str, row)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8, 9, 16, 25, 27, 49, 64, 125, 128, 243, 251, 256])
def test_fields_are_those_of_the_server(q):
    field, rng = field_of(q), random.Random(q)
    pairs = [[rng.randrange(q), rng.randrange(q)] for _ in range(200)]
    a, b = np.array(pairs).T
    dimension = 3
    vectors = [[rng.randrange(q**dimension) for _ in range(2)] for _ in range(100)]
    found = evaluated(
        """
        const { Field } = await import("CLIENT/expressions.js");
        const field = new Field(given.field.map(BigInt));
        const found = given.pairs.map((pair) => pair.map(BigInt)).map(([a, b]) => {
          return [field.add(a, b), field.multiply(a, b), a ? field.inverse(a) : 0n].map(Number);
        });
        const dots = given.vectors.map(([a, x]) => Number(field.dot(BigInt(a), BigInt(x))));
        console.log(JSON.stringify([found, dots]));
        """,
        {"field": field.described, "pairs": pairs, "vectors": vectors},
    )
    inverses = np.where(a > 0, field.inverse(np.maximum(a, 1)), 0)
    assert found[0] == np.stack([field.add(a, b), field.multiply(a, b), inverses], axis=1).tolist()
    assert found[1] == space(q, dimension).dot(*np.array(vectors).T).tolist()


# ------------------------------------------------------------------------------- what is refused


def load_error(content: Any, words: str = "undefined") -> str:
    """The message of the ClientError for this file."""
    error: str = evaluated(
        f"""
        const {{ ClientError, load }} = await import("CLIENT/index.js");
        let message = null;
        try {{
          load(given, {words});
        }} catch (error) {{
          if (!(error instanceof ClientError) || error.name !== "ClientError") throw error;
          message = error.message;
        }}
        console.log(JSON.stringify(message));
        """,
        content,
    )
    return error


@pytest.mark.slow
def test_whatever_character_of_a_description_is_changed_is_noticed():
    """Each in turn is replaced, left out, and doubled."""
    text = json.dumps(frequency.OLH(5, 1.0).client())
    loaded = evaluated(
        """
        const { ClientError, load } = await import("CLIENT/index.js");
        const loaded = [], same = JSON.stringify(JSON.parse(given));
        const equal = (changed) => {
          try {
            return JSON.stringify(JSON.parse(changed)) === same;
          } catch {
            return false;
          }
        };
        const attempt = (changed) => {
          try {
            load(changed);
            if (!equal(changed)) loaded.push(changed);
          } catch (error) {
            if (!(error instanceof ClientError)) throw error;
          }
        };
        load(given);
        for (let k = 0; k < given.length; k++) {
          const [before, after] = [given.slice(0, k), given.slice(k + 1)];
          const other = String.fromCharCode(given.charCodeAt(k) ^ 1);
          for (const text of [other, "0", "1", " ", ".", "e", "-", "", given[k] + given[k]]) {
            if (text !== given[k]) attempt(before + text + after);
          }
        }
        console.log(JSON.stringify(loaded));
        """,
        text,
    )
    assert loaded == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no protocol file"),
        ("nonsense", "no protocol file"),
        ("[" * 100_000, "no protocol file"),
        (None, "no description"),
        ([], "no description"),
        ({}, "no description"),
        ("{}", "no description"),
        ({**GRR, "format": "mechdesign.mechanism"}, "no description"),
        ({"format": "mechdesign.protocol"}, "no description"),
        ({"format": "mechdesign.protocol", "client": None}, "no description"),
        ({**GRR, "version": 3}, "version 3, this client reads 1"),
        ({**GRR, "version": "1"}, 'version "1"'),
        ({**GRR, "version": True}, "version true"),
        ({**GRR, "bytes": 2}, "the digest does not match"),
        ({**GRR, "more": 1}, "the digest does not match"),
        ({key: GRR[key] for key in GRR if key != "digest"}, "the digest does not match"),
        (described({**GRR, "bytes": 2}), "reports of 1 bytes, not 2"),
        (described({**GRR, "bytes": "1"}), "reports of 1 bytes, not 1"),
        (described({**GRR, "wire": "00"}), "no name of the protocol"),
        (described({**GRR, "takes": {"kind": "picture"}}), 'an unknown kind: "picture"'),
        (described({**GRR, "takes": {"kind": "constructor"}}), "an unknown kind"),
        (described({**GRR, "report": {**GRR["report"], "do": "think"}}), 'unknown step "think"'),
        (described({**GRR, "report": {**GRR["report"], "do": "toString"}}), "unknown step"),
        (described({**GRR, "report": {**GRR["report"], "more": 1}}), "step of other parts"),
        (described({**GRR, "report": {"do": "lie"}}), "step of other parts"),
        (described({**GRR, "report": {**GRR["report"], "lie": 0.5}}), "0.5 .* is no integer"),
        (described({**GRR, "report": {**GRR["report"], "lie": 1 << 53}}), "too large"),
        (described({**GRR, "report": None}), "malformed"),
        (described({key: GRR[key] for key in GRR if key != "takes"}), "malformed"),
    ],
)
def test_what_is_no_description_is_refused(content, message):
    found = load_error(content)
    assert found is not None
    assert re.search(message, found), found


@pytest.mark.parametrize("cell", [["think"], ["constructor"], ["same", 1], ["divide"], [], "same"])
def test_an_unknown_expression_is_refused(cell):
    description = frequency.OLH(5, 1.0).client()
    report = {**description["report"], "cell": cell}
    assert "unknown expression" in load_error(described({**description, "report": report}))


def test_a_protocol_file_is_read_and_its_other_parts_are_not(tmp_path, node):
    save_protocol(tmp_path / "protocol.json", frequency.GRR(5, 1.0))
    alone, file = node.ask(GRR, 3, [LARGEST]), json.loads((tmp_path / "protocol.json").read_text())
    assert node.ask(str(tmp_path / "protocol.json"), 3, [LARGEST]) == alone
    assert node.ask({"format": file["format"], "client": file["client"]}, 3, [LARGEST]) == alone


def test_what_runs_is_what_was_loaded():
    """What becomes of the object that was given changes nothing, and nobody can change the rest."""
    protocol = marginals.InpPS(marginals.Domain({"a": 5, "b": 2}), 1, 1.0)
    found = evaluated(
        """
        const { load } = await import("CLIENT/index.js");
        const client = load(given, () => (1n << 64n) - 1n), before = client.report([3, 1]);
        given.wire = "0000000000000000";
        given.report.outcomes = 2;
        let changes = 0;
        for (const change of [
          () => client.takes.names.pop(),
          () => (client.takes.number = false),
          () => (client.report = null),
        ]) {
          try {
            change();
            changes++;
          } catch {}
        }
        console.log(JSON.stringify([[...before], [...client.report([3, 1])], changes]));
        """,
        protocol.client(),
    )
    assert found[0] == found[1] == [*protocol.wire, 7]
    assert found[2] == 0


@pytest.mark.parametrize("crypto", ["undefined", "{}", "{ getRandomValues: 1 }"])
def test_without_randomness_there_is_no_client(crypto):
    found = evaluated(
        f"""
        Object.defineProperty(globalThis, "crypto", {{ value: {crypto} }});
        const {{ ClientError, batch, load }} = await import("CLIENT/index.js");
        const messages = [];
        for (const attempt of [() => load(given), () => batch(load(given, () => 0n), [])]) {{
          try {{
            attempt();
          }} catch (error) {{
            if (error instanceof ClientError) messages.push(error.message);
          }}
        }}
        console.log(JSON.stringify(messages));
        """,
        GRR,
    )
    assert found == 2 * ["this system has no crypto.getRandomValues to draw randomness from"]


WRONG_INTEGERS = {
    "BigInt.asUintN": [
        "BigInt.asUintN = BigInt.asIntN",
        # The sign alone, where it is the only bit
        "const right = BigInt.asUintN; const half = 1n << 63n;"
        " BigInt.asUintN = (n, x) => right(n, x) === half && n === 64 ? -half : right(n, x)",
        "BigInt.asUintN = (n, x) => x",
        "const right = BigInt.asUintN; BigInt.asUintN = (n, x) => right(64, x)",
    ],
    "BigUint64Array": [
        "globalThis.BigUint64Array = BigInt64Array",
        "const Right = BigUint64Array; globalThis.BigUint64Array = class extends Right {"
        " constructor(given) { super(given); if (this[0] >> 63n) this[0] = 0n; } }",
    ],
    "DataView.getBigUint64": [
        "DataView.prototype.getBigUint64 = DataView.prototype.getBigInt64",
        "const right = DataView.prototype.getBigUint64; DataView.prototype.getBigUint64 ="
        " function (at) { return right.call(this, at, false); }",
    ],
}
"""What takes the place of the system's own, which is right."""


@pytest.mark.parametrize("name", WRONG_INTEGERS)
@pytest.mark.parametrize("load", ["load(given)", "loadMemoised(given, {}, 1)"])
def test_a_system_whose_integers_are_wrong_is_refused(name, load):
    """Before it draws reports that would be wrong in silence: it reads no word."""
    for wrong in WRONG_INTEGERS[name]:
        found = evaluated(
            f"""
            let drawn = 0;
            const crypto = {{ getRandomValues: (bytes) => (drawn++, bytes) }};
            Object.defineProperty(globalThis, "crypto", {{ value: crypto }});
            const {{ ClientError, load, loadMemoised }} = await import("CLIENT/index.js");
            {wrong};
            let message = null;
            try {{
              {load};
            }} catch (error) {{
              if (error instanceof ClientError) message = error.message;
            }}
            console.log(JSON.stringify([message, drawn]));
            """,
            GRR,
        )
        assert found[0] is not None, wrong
        assert found[0].startswith("this system computes wrongly with ")
        assert name in found[0]
        assert found[1] == 0


def test_a_system_without_text_encoder_reports_all_but_other_texts():
    """Of ASCII nothing needs it: descriptions, batches, texts; of others the client says so."""
    text = heavy.PrefixExtension(16, 2.0, text=True).client()
    schema = frequency.Schema([frequency.Categorical("a", ["\u00e4", "b"])])
    survey = frequency.Survey(frequency.GRR(2, 1.0), schema).client()
    found = evaluated(
        """
        delete globalThis.TextEncoder;
        const { ClientError, batch, load } = await import("CLIENT/index.js");
        const [text, survey] = given.map((one) => load(one));
        const sizes = [text.report("ab").length, survey.report("\u00e4").length];
        sizes.push(batch(text, [text.report("a")]).length > 8);
        let message = null;
        try {
          text.report("\u00e4");
        } catch (error) {
          if (error instanceof ClientError) message = error.message;
        }
        console.log(JSON.stringify([...sizes, message]));
        """,
        [text, survey],
    )
    assert found == [8 + text["bytes"], 9, True, "this system has no TextEncoder"]


def test_the_bytes_of_a_text_are_those_of_utf8():
    found = evaluated(
        """
        const { utf8 } = await import("CLIENT/description.js");
        console.log(JSON.stringify(given.map((text) => [...utf8(text)])));
        """,
        ODD_TEXTS,
    )
    lone = re.compile("[\ud800-\udfff]")
    assert found == [[*lone.sub("\ufffd", text).encode()] for text in ODD_TEXTS]


def test_randomness_that_fails_makes_no_report():
    found = evaluated(
        """
        const crypto = { getRandomValues: (bytes) => bytes };
        Object.defineProperty(globalThis, "crypto", { value: crypto });
        const { load } = await import("CLIENT/index.js");
        const client = load(given);
        crypto.getRandomValues = () => {
          throw new Error("no entropy");
        };
        let message = null;
        try {
          client.report(1);
        } catch (error) {
          message = error.message;
        }
        console.log(JSON.stringify(message));
        """,
        GRR,
    )
    assert found == "no entropy"


def test_only_the_systems_randomness_is_used():
    """Math.random is not called, nor named, and the words are those of crypto."""
    assert not any("Math.random" in path.read_text(encoding="utf-8") for path in MODULES)
    descriptions = [protocol.client() for protocol in PROTOCOLS]
    values = [values_of(description["takes"])[0] for description in descriptions]
    calls = evaluated(
        """
        let calls = 0;
        const system = globalThis.crypto.getRandomValues.bind(globalThis.crypto);
        const getRandomValues = (bytes) => {
          calls++;
          return system(bytes);
        };
        Object.defineProperty(globalThis, "crypto", { value: { getRandomValues } });
        Math.random = Date.now = () => {
          throw new Error("not random");
        };
        const { load } = await import("CLIENT/index.js");
        const found = given.map(([description, value]) => {
          const client = load(description), before = calls;
          const { length } = client.report(value);
          return [length, calls > before];
        });
        console.log(JSON.stringify(found));
        """,
        list(zip(descriptions, values, strict=True)),
    )
    assert calls == [[description["bytes"] + 8, True] for description in descriptions]


ITEM, TEXT = frequency.GRR(5, 1.0), heavy.TreeHist(24, 1.0, text=True)
RECORD = marginals.InpHT(marginals.Domain({"age": 3, "constructor": 2}), 2, 1.0)
SETS = rangeq.PaddedSets(rangeq.HaarHRR(9, 0.5), 3, (1, 4))
NO_INTEGERS = [-1, 0.5, "1", "", None, True, [1], {"a": 1}, {"number": "NaN"}, {"undefined": True}]
REFUSED = [
    *((ITEM, value) for value in [*NO_INTEGERS, 5, 1 << 64, {"number": "Infinity"}, 1e300]),
    *((ITEM, {"integer": text}) for text in ("-1", "5", str(1 << 70))),
    *((heavy.PrefixExtension(64, 2.0), value) for value in (1 << 64, 1e18, -1)),
    *(
        (TEXT, value)
        for value in ("abcd", "aé\U0001f600", "a\0", "\ud800", "é\udc00", 7, None, ["a"])
    ),
    *((RECORD, [value, 0]) for value in [*NO_INTEGERS, 3]),
    *((RECORD, value) for value in ([], [1], [1, 1, 1], [0, 2], 1, None, "ab", [[1, 1]])),
    *((RECORD, {"age": 1, **more}) for more in ({}, {"sex": 1}, {"constructor": 1, "sex": 0})),
    (RECORD, {"age": 1, "constructor": "1"}),
    *((SETS, [value]) for value in [*NO_INTEGERS, 8]),
    *((SETS, value) for value in (1, None, "12", {"0": 1})),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_a_value_outside_is_refused_before_anything_is_drawn(place, node):
    protocol, value = REFUSED[place]
    answer = node.ask(protocol.client(), value, range(1000))
    assert answer.keys() == {"error", "words"}
    assert answer["words"] == 0
    assert re.search(r"is not|expected", answer["error"]), answer


def test_objects_that_json_does_not_have_are_refused():
    """A hole in a list is not left out, and what an object inherits is none of its values."""
    refused = evaluated(
        """
        const { ClientError, load } = await import("CLIENT/index.js");
        const words = () => {
          throw new Error("drawn");
        };
        const refused = (description, value) => {
          try {
            return load(description, words).report(value);
          } catch (error) {
            return error instanceof ClientError;
          }
        };
        const records = [
          [, 1],
          [0, ,],
          Object.create({ age: 1, constructor: 1 }),
          new Map([["age", 1], ["constructor", 1]]),
          new Uint8Array(2),
          { age: 1, get constructor() { return "1"; } },
        ];
        const sets = [[, 1], new Uint8Array(2), new Map([[1, 1]]), "11", new Set(["1"])];
        const items = [new Date(0), new Number(1), Object(1n), [1], Symbol("1"), () => 1];
        console.log(JSON.stringify([
          ...records.map((value) => refused(given.record, value)),
          ...sets.map((value) => refused(given.set, value)),
          ...items.map((value) => refused(given.item, value)),
        ]));
        """,
        {"record": RECORD.client(), "set": SETS.client(), "item": ITEM.client()},
    )
    assert refused == [True] * 17


def test_a_record_is_a_list_or_an_object(node):
    description = RECORD.client()
    reports = [
        node.ask(description, value, range(1000))
        for value in ([2, 1], {"constructor": 1, "age": 2}, {"age": 2.0, "constructor": 1})
    ]
    assert reports[0] == reports[1] == reports[2]
    assert "report" in reports[0]


# ---------------------------------------------------------------------- batches and the package


def batches(reports: list[bytes | None]) -> str:
    """The file of these reports in hexadecimal digits, or the message of its ClientError."""
    text: str = evaluated(
        """
        const { ClientError, batch, load } = await import("CLIENT/index.js");
        const { hex } = await import("CLIENT/description.js");
        const reports = given.reports.map((one) => one && Uint8Array.from(one));
        try {
          console.log(JSON.stringify(hex(batch(load(given.description), reports))));
        } catch (error) {
          if (!(error instanceof ClientError)) throw error;
          console.log(JSON.stringify(error.message));
        }
        """,
        {
            "description": GRR,
            "reports": [None if report is None else list(report) for report in reports],
        },
    )
    return text


@pytest.mark.parametrize("payloads", [[], [1], [3, 0, 0, 4, 2]])
def test_a_batch_has_a_header_and_the_payloads(payloads):
    wire = bytes.fromhex(GRR["wire"])
    written = bytes.fromhex(batches([*(wire + bytes([one]) for one in payloads), None]))
    length = int.from_bytes(written[4:8], "little")
    header = json.loads(written[8 : 8 + length])
    assert written[:4] == b"LDPF"
    assert written[8:] == canonical(header).encode() + bytes(payloads)
    assert re.fullmatch("[0-9a-f]{32}", header.pop("id"))
    expected = {"count": len(payloads), "kind": "reports", "protocol": GRR["wire"], "version": 2}
    assert header == expected
    read = frequency.GRR(5, 1.0).reports_from_bytes(written)
    assert read["item"].tolist() == payloads


def test_batches_are_told_apart():
    assert batches([]) != batches([])


@pytest.mark.parametrize("report", ["00" * 9, GRR["wire"], f"{GRR['wire']}0000", ""])
def test_a_batch_of_other_reports_is_refused(report):
    own = bytes.fromhex(GRR["wire"]) + b"\1"
    assert batches([own, bytes.fromhex(report)]) == "not all of these are reports of GRR"
    assert batches([bytes.fromhex(report), own]) == "not all of these are reports of GRR"


def readme_block(language: str) -> str:
    text = (CLIENT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return str(block)


@pytest.fixture
def page(tmp_path, monkeypatch) -> Path:
    """A folder as the README tells to make it."""
    (tmp_path / "client").mkdir()
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    for name in [*package["files"], "package.json"]:
        (tmp_path / "client" / name).write_bytes((CLIENT / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(readme_block("python"), "README.md", "exec"), {})
    return tmp_path


def ran(page: Path, source: str) -> list[str]:
    (page / "page.mjs").write_text(source, encoding="utf-8")
    done = subprocess.run([NODE, "page.mjs"], cwd=page, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_readme_runs_in_node(page):
    (first, *lines) = ran(page, readme_block("js"))
    protocol = load_protocol(page / "protocol.json")
    assert first == f"Survey: odds change by a factor of {protocol.client()['odds']} at most"
    reports = [base64.b64decode(line) for line in lines]
    assert [report[:8] for report in reports] == [protocol.wire] * 3
    batch = protocol.reports_from_bytes((page / "reports.ldp").read_bytes())
    assert batch.tobytes() == b"".join(report[8:] for report in reports)
    assert protocol.aggregate(batch).n == 3


def test_the_page_of_the_readme_runs(page):
    """With what a browser's fetch would do."""
    (script,) = re.findall("<script.*?>(.*?)</script>", readme_block("html"), re.DOTALL)
    fetch = """
        import { readFileSync } from "node:fs";
        globalThis.fetch = async (address, sent) => {
          if (sent) console.log(address, sent.method, sent.body);
          return { text: async () => readFileSync(address, "utf8") };
        };
        await import("./script.mjs");
    """
    (page / "script.mjs").write_text(script, encoding="utf-8")
    ((address, method, body),) = (line.split() for line in ran(page, fetch))
    assert (address, method) == ("/reports", "POST")
    assert base64.b64decode(body)[:8] == load_protocol(page / "protocol.json").wire


def test_the_package_has_all_that_it_imports_and_no_dependencies():
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == mechdesign.__version__
    assert not [name for name in package if "ependencies" in name]
    shipped = {name for name in package["files"] if name.endswith(".js")}
    assert shipped == {path.name for path in MODULES} - {"run.js"}
    for name in shipped:
        text = (CLIENT / name).read_text(encoding="utf-8")
        for source in re.findall(r'\bfrom "(.*?)"|\bimport\("(.*?)"\)', text):
            assert "".join(source).removeprefix("./") in shipped
    types = (CLIENT / "index.d.ts").read_text(encoding="utf-8")
    found = evaluated('console.log(JSON.stringify(Object.keys(await import("CLIENT/index.js"))));')
    assert found == sorted(found)
    assert set(found) == set(re.findall(r"^export (?:function|class) (\w+)", types, re.MULTILINE))


def test_lines_end_at_column_100():
    for path in [*MODULES, CLIENT / "index.d.ts"]:
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 100, path.name


# ------------------------------------------------------------------- values in labels and units


def test_values_are_those_of_the_schema():
    """`Schema.encode` says what is right: see tools/value_vectors.py."""
    vectors = json.loads((CLIENT.parent / "vectors" / "values.json").read_text(encoding="utf-8"))
    found = evaluated(
        """
        import { readFileSync } from "node:fs";
        const { ClientError, load } = await import("CLIENT/index.js");
        const { hex } = await import("CLIENT/description.js");
        const file = readFileSync(new URL("CLIENT/../vectors/values.json"), "utf8");
        const { words, values, groups } = JSON.parse(file);
        let drawn = 0;
        const word = () => {
          drawn++;
          return BigInt(words);
        };
        const told = (client, value) => {
          drawn = 0;
          try {
            const report = client.report(value);
            return report && hex(report.subarray(8));
          } catch (error) {
            if (!(error instanceof ClientError) || drawn) throw error;
            return false;
          }
        };
        const found = groups.map(({ client, own }) => {
          const loaded = load(client, word);
          return [...values, ...own].map((value) => told(loaded, value));
        });
        console.log(JSON.stringify(found));
        """,
    )
    for group, results in zip(vectors["groups"], found, strict=True):
        assert results == group["results"], group["name"]
