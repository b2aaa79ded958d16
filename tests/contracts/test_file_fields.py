"""Every field of every format holds what is declared of it: nothing is converted in silence."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from frequency import GRR, HRR, OLH, JLOracle, Survey
from frequency.exceptions import FrequencyError
from frequency.heavy import SuccinctHistogram
from frequency.marginals import CALM, Domain
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Text
from frequency.storage import aggregate_files, load_protocol, save_protocol, write_reports
from mechdesign import ZCDP, Ledger, Mechanism, MechanismError, Privacy, design, named
from mechdesign.accounting import shuffled
from mechdesign.base.files import digest_of
from mechdesign.losses import L0
from mechdesign.privacy import Metric
from mechdesign.tables import TableRelease, release, release_contingency
from mechdesign.tables.contingency import ContingencyRelease
from rangeq import HierarchicalHistogram
from rangeq.central import (
    CentralFlat,
    Hierarchy,
    MatrixMechanism,
    QuantileRelease,
    Release,
    ReleasedQuantiles,
)
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.strategy_file import load_strategy, save_strategy
from rangeq.central.region_release import RegionRelease, release_regions
from rangeq.central.regions import Regions

OTHERS: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 0.5, 1.0, 1e300, 2**40, 2**70, -(2**70)),
    *("", "x", "true", "1", "-1", "1/2", "1/0", "0x", [], {}, [[]], [None], ["x"], {"x": 1}),
)
"""What is put in the place of each field: values of all types, and out of any domain."""


PYTHON = ("Error", "object is not", "has no attribute", "unhashable", "Exceeds")
"""Words of Python's own messages."""


class Sealed(NamedTuple):
    """How a format holds its content: it is taken out, and put back with digests made anew."""

    content: Callable[[bytes], Any]
    sealed: Callable[[bytes, Any], bytes]


def _resealed(content: Any) -> Any:
    if isinstance(content, dict) and "digest" in content:
        return {**content, "digest": digest_of(content)}
    return content


def _end(data: bytes) -> int:
    return 8 + int.from_bytes(data[4:8], "little")


def _message(data: bytes, content: Any, digest: bool) -> bytes:
    header = json.dumps(content).encode()
    body = data[_end(data) : -32] if digest else data[_end(data) :]
    message = b"LDPF" + len(header).to_bytes(4, "little") + header + body
    return message + hashlib.sha256(message).digest() * digest


def _archive(data: bytes, content: Any) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            kept = json.dumps(_resealed(content)) if name == "strategy.json" else old.read(name)
            new.writestr(name, kept)
    return stream.getvalue()


def _in_archive(data: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read("strategy.json"))


def _schema(_: bytes, content: Any) -> bytes:
    rest = {key: value for key, value in content.items() if key not in ("format", "version")}
    return json.dumps({**content, "digest": digest_of(rest)}).encode()


SCHEMA_JSON = Sealed(json.loads, _schema)
JSON = Sealed(json.loads, lambda _, content: json.dumps(_resealed(content)).encode())
MESSAGE = Sealed(lambda data: json.loads(data[8 : _end(data)]), partial(_message, digest=True))
BATCH = Sealed(MESSAGE.content, partial(_message, digest=False))
ARCHIVE = Sealed(_in_archive, _archive)


class Format(NamedTuple):
    """A file that is valid, and how it is read and written again."""

    suffix: str
    sealed: Sealed
    save: Callable[[Path], Any]
    load: Callable[[Path], Any]
    saved_again: Callable[[Any, Path], Any] | None = None
    """None: an object that was read has a method ``save``."""


PAY = Numeric("pay", [0, 1, 2.5, 10])
AGE = Numeric("age", low=0, high=5, whole=True, missing="item", outside="clip", unit="years")
SCHEMA = Schema(
    [
        PAY,
        AGE,
        Numeric("mass", low=1.0, high=9.0, bins=3, spacing="logarithmic"),
        Categorical("colour", ["red", "blue"], outside="item"),
        Boolean("smokes"),
        Dates("day", "2020-01-01", "2020-02-01", "week"),
        Text("word", bytes=4, outside="clip"),
    ],
    public_source="a census",
)
RNG = partial(np.random.default_rng, 1)


def _ledger(path: Path) -> None:
    ledger = Ledger("2", "1e-6", "3")
    response = Mechanism([["3/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3", neighbours="all"))
    ledger.spend(shuffled(response, 1000), "a")
    ledger.spend("1/7", "b", ("north", "south"), local="1/7")
    ledger.save(path)


def _released(mechanism: Any, schema: Schema, path: Path) -> None:
    counts = np.arange(np.prod(schema.sizes)).reshape(schema.sizes)
    Release.draw(schema, mechanism, counts, RNG()).save(path)


def _table(path: Path) -> None:
    release([1, 2, 0], [2, 3, 2], Privacy(alpha="1/2"), names=["a", "b", "c"], rng=RNG()).save(path)


def _contingency(path: Path) -> None:
    axes = {"region": ["north", "south"], "answer": ["yes", "no"]}
    found = release_contingency(
        [[1, 2], [0, 1]],
        axes,
        Privacy(alpha="1/2"),
        caps=3,
        margins={("region",): "1/2"},
        rng=RNG(),
    )
    found.save(path)


def _regions(path: Path) -> None:
    tree = Regions([("south", "Kent"), ("south", "Surrey"), ("north", "Durham")])
    release_regions(tree, [1, 0, 2], [2, 2, 3], Privacy(alpha="1/4"), rng=RNG()).save(path)


def _state(path: Path) -> None:
    days = path.parent / "days"
    days.mkdir(exist_ok=True)
    for day in range(2):
        write_reports(days / f"{day}.ldp", HRR(16, 1.0), HRR(16, 1.0).privatize([day] * 3, RNG()))
    aggregate_files(HRR(16, 1.0), days, 1, resume=path)


def _resumed(path: Path) -> bytes:
    aggregate_files(HRR(16, 1.0), [], resume=path)  # which leaves the file as it is
    return path.read_bytes()


PROTOCOLS = (
    GRR(5, 1.0),
    OLH(9, Fraction(7, 5)),
    JLOracle(100, 1.0, rows=8),
    CALM(Domain({"a": 3, "b": 2, "c": 4}), 2, 1.1),
    SuccinctHistogram(16, 2.0, n=200_000, soft=False),
    HierarchicalHistogram(30, 1.0, branching=(5, 6), oracle=("OUE", "HRR")),
    Survey(GRR(7, 1.0), Schema([AGE])),
)


def _aggregate(path: Path) -> None:
    oracle = GRR(5, 1.0)
    path.write_bytes(oracle.aggregate(oracle.privatize([1, 2, 2], RNG())).to_bytes())


def _strategy(path: Path) -> None:
    save_strategy(path, DenseStrategy(np.array([[1, 1, 1], [1, 0, 0], [0, 0, 1]])), 1.5)


AGES = Schema([Numeric("age", low=0, high=5, whole=True)])
COLOURS = Schema([Categorical("colour", ["red", "blue", "green"])])
DISTANCES = Privacy(alpha="1/2", neighbours=Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))

FORMATS: dict[str, Format] = {
    "mechanism": Format(".json", JSON, named.geometric(2, alpha="1/2").save, Mechanism.load),
    "certified mechanism": Format(
        ".json", JSON, design(2, Privacy(alpha="1/2"), L0(), ["WH"]).mechanism.save, Mechanism.load
    ),
    "mechanism with distances": Format(
        ".json",
        JSON,
        Mechanism(
            named.geometric(2, alpha="1/2").table,
            Privacy(alpha="1/2", neighbours=Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]])),
        ).save,
        Mechanism.load,
    ),
    "ledger": Format(".json", JSON, _ledger, Ledger.load),
    "table": Format(".json", JSON, _table, TableRelease.load),
    "contingency": Format(".json", JSON, _contingency, ContingencyRelease.load),
    "regions": Format(".json", JSON, _regions, RegionRelease.load),
    "quantiles": Format(
        ".json",
        JSON,
        ReleasedQuantiles(
            Schema([AGE]), QuantileRelease(6, (Fraction(1, 4), Fraction(1, 2)), "1/3"), (2, 4)
        ).save,
        ReleasedQuantiles.load,
    ),
    "flat release": Format(
        ".release",
        MESSAGE,
        partial(
            _released, CentralFlat((6,), "1/2"), Schema([Numeric("age", low=0, high=5, whole=True)])
        ),
        Release.load,
    ),
    "hierarchy release": Format(
        ".release",
        MESSAGE,
        partial(
            _released,
            Hierarchy((6,), "1/2", [2, 3], budget=(1, 2)),
            AGES,
        ),
        Release.load,
    ),
    "matrix release": Format(
        ".release",
        MESSAGE,
        partial(
            _released,
            MatrixMechanism(DenseStrategy(np.eye(3, dtype=int)), ZCDP("1/2")),
            COLOURS,
        ),
        Release.load,
    ),
    "strategy": Format(
        ".npz",
        ARCHIVE,
        _strategy,
        load_strategy,
        lambda found, path: save_strategy(path, found.strategy, found.bound),
    ),
    "aggregate": Format(
        ".agg",
        MESSAGE,
        _aggregate,
        lambda path: GRR(5, 1.0).aggregate_from_bytes(path.read_bytes()),
        lambda found, path: path.write_bytes(found.to_bytes()),
    ),
    "state": Format(
        ".state", MESSAGE, _state, _resumed, lambda found, path: path.write_bytes(found)
    ),
    "schema": Format(".json", SCHEMA_JSON, SCHEMA.save, Schema.load),
    **{
        type(one).__name__: Format(
            ".json",
            JSON,
            partial(save_protocol, protocol=one),
            load_protocol,
            lambda found, path: save_protocol(path, found),
        )
        for one in PROTOCOLS
    },
}


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field, and of long lists the first entries."""
    if path:
        yield path
    if isinstance(content, dict):
        for key, value in content.items():
            if key != "digest" and path[:1] != ("client",):
                yield from places(value, (*path, key))
    elif isinstance(content, list):
        for k, value in enumerate(content[:2]):
            yield from places(value, (*path, k))


def replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = deepcopy(content)
    held = result
    for key in path[:-1]:
        held = held[key]
    held[path[-1]] = value
    return result


def canonical(content: Any) -> str:
    rest = {key: value for key, value in content.items() if key != "digest"}
    return json.dumps(rest, sort_keys=True)


@pytest.mark.parametrize("name", FORMATS)
def test_a_field_of_another_type_or_range_is_refused_or_kept(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    path, again = tmp_path / f"original{form.suffix}", tmp_path / f"again{form.suffix}"
    form.save(path)
    data = path.read_bytes()
    content = form.sealed.content(data)
    wrong, tried, kept = [], 0, 0

    def rewritten(found: Any) -> str:
        again.unlink(missing_ok=True)
        if form.saved_again is None:
            found.save(again)
        else:
            form.saved_again(found, again)
        return canonical(form.sealed.content(again.read_bytes()))

    path.write_bytes(form.sealed.sealed(data, content))
    assert rewritten(form.load(path)) == canonical(content)  # resealing by itself changes nothing
    for place in places(content):
        for value in OTHERS:
            changed = replaced(content, place, value)
            if json.dumps(changed) == json.dumps(content):
                continue
            path.write_bytes(form.sealed.sealed(data, changed))
            tried += 1
            try:
                found = form.load(path)
            except (MechanismError, FrequencyError) as error:
                said = str(error)
                if any(word in said for word in PYTHON):
                    wrong.append((place, value, said))
                continue
            except Exception as error:
                wrong.append((place, value, repr(error)[:200]))
                continue
            kept += 1
            if rewritten(found) != canonical(changed):
                wrong.append((place, value, "converted"))
    assert tried > 100
    assert not wrong, f"{len(wrong)} of {tried}, {kept} kept: " + "\n".join(map(str, wrong[:40]))
