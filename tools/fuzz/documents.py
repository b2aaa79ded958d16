"""Files of JSON, and strategies: what each may hold, read without the library."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import random
import shutil
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from frequency import (
    GRR,
    HRR,
    HadamardCountMeanSketch,
    JLOracle,
    Survey,
)
from frequency.clients import ClientError, load_memoised
from frequency.heavy import OneBit, PrefixExtension, SuccinctHistogram
from frequency.longitudinal import Memoised
from frequency.marginals import CALM, Domain, InpHTCMS
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Text
from frequency.storage import (
    load_protocol,
    save_protocol,
)
from mechdesign import InvalidFile, Ledger, Mechanism, MechanismError, Privacy, design, named
from mechdesign.accounting import shuffled
from mechdesign.losses import L0, L1
from mechdesign.mechanism.device import Device
from mechdesign.privacy import Metric
from mechdesign.tables import TableRelease, release, release_contingency
from mechdesign.tables.contingency import ContingencyRelease
from rangeq import HierarchicalHistogram
from rangeq.central import (
    QuantileRelease,
    ReleasedQuantiles,
    TreeQuantiles,
)
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy, ProductStrategy
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.strategy_file import load_strategy, save_strategy
from rangeq.central.region_release import RegionRelease, release_regions
from rangeq.central.regions import Regions
from rangeq.grids import HDG
from tools.check_certificate import unpacked
from tools.fuzz.formats import (
    LENIENT,
    TOKENS,
    Format,
    JSONFormat,
    Object,
    mutated_bytes,
    mutated_json,
    parsed,
    resealed,
    written,
)

SECONDS, MEGABYTES = 5.0, 500


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
    if "law" in content:
        least = rational(content["alpha"]) if content["law"] != "uniform" else Fraction(0)
        private = least <= rational(content["law_alpha"]) <= 1
        return None if private else "it is not as private as it claims"
    content = listed(content)
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
            Mechanism(named.geometric(50, 0.5).table, Privacy.from_epsilon(0.5)),  # packed
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
        if "law" in content:
            changes: dict[str, list[Any]] = {
                "n": ["3", "4", "65", str(1 << 62), str(1 << 63)],
                "margin": [None, "0", "2"],
            }
            changes |= {
                "law": ["geometric", "explicit fair", "uniform"],
                "law_alpha": ["1", "8/10"],
            }
            return Object(
                (content | {key: rng.choice(these) for key, these in changes.items()}).items()
            )
        if "rows" in content:
            rows, i = [*content["rows"]], rng.randrange(len(content["rows"]))
            j = rng.randrange(len(rows[i]))
            rows[i] = rows[i][:j] + rng.choice("#=<>^o") + rows[i][j + 1 :]
            return Object((content | {"rows": rows}).items())
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
        if "law" in content:
            return _false_law(found, content)
        content = listed(content)
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
            if known and "weights" in original and _program(original) == _program(content):
                best = rational(known["objective"])
                if bound > best or objective < best:
                    return "the optimum is another one"
        return None


def listed(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file with its weights, if they are packed."""
    if "rows" not in content:
        return content
    weights = unpacked(content["rows"], content["numbers"], content["alpha"])
    return {**content, "weights": [[str(entry) for entry in row] for row in weights]}


def _false_law(found: Any, content: dict[str, Any]) -> str | None:
    """Why a closed form is not that of its file, or not as private as it claims."""
    stated = content["law"], whole(content["n"]), rational(content["law_alpha"])
    if (found.law.name, found.law.n, found.law.alpha) != stated:
        return "it is not the closed form of the file"
    alpha = rational(content["alpha"])
    if not 0 < alpha <= 1 or found.privacy.alpha != alpha or stated[2] < alpha:
        return "it is not as private as it claims"
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
        if "law" in content:
            fine = rational(content["law_alpha"]) >= rational(content["alpha"]) > 0
            return None if fine else "it is not as private as it claims"
        content = listed(content)
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
