"""Files of strategies: read back equal, refused when damaged."""

import hashlib
import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from mechdesign import InvalidFile
from mechdesign.base.files import digest_of
from rangeq.central.matrix_mechanism.strategy_file import digest, load_strategy, save_strategy
from tests.rangeq.central.matrix_mechanism.strategies import EXAMPLES


@pytest.mark.parametrize("strategy", [pytest.param(s, id=n) for n, s in EXAMPLES.items()])
def test_a_file_is_read_back(strategy, tmp_path):
    path = tmp_path / "strategy.npz"
    save_strategy(path, strategy, 0.1)
    again = load_strategy(path)
    assert again.strategy == strategy
    assert again.bound == 0.1
    assert digest(again.strategy) == digest(strategy)
    first = path.read_bytes()
    save_strategy(path, again.strategy, again.bound)
    assert path.read_bytes() == first
    with np.load(path) as arrays:  # NumPy reads it, too
        assert {f"{name}.npy" for name in strategy.arrays()} <= {
            name if name.endswith(".npy") else f"{name}.npy" for name in arrays.files
        }


def test_digests_tell_strategies_apart():
    digests = [digest(strategy) for strategy in EXAMPLES.values()]
    assert len(set(digests)) == len(digests)


def test_damaged_files_are_refused(tmp_path):
    path, rng = tmp_path / "strategy.npz", np.random.default_rng(1)
    save_strategy(path, EXAMPLES["dense"])
    whole = path.read_bytes()
    for cut in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(InvalidFile, match="no strategy"):
            load_strategy(path)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with suppress(InvalidFile):
            assert load_strategy(path).strategy == EXAMPLES["dense"]  # a time or an attribute


def rewritten(path, change, resealed=True, more=()):
    """The file with another content."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(members["strategy.json"])
    change(content)
    if resealed:
        content["digest"] = digest_of(content)
    members["strategy.json"] = json.dumps(content).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in [*members.items(), *more]:
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="mechdesign.mechanism"), "format"),
        (lambda c: c.update(version=2), "version 2, this library reads version 1"),
        (lambda c: c.update(kind="sparse"), "a strategy is one of"),
        (lambda c: c.update(kind=["dense"]), "kind must be a text"),
        (lambda c: c.update(sizes=[5]), "cells"),
        (lambda c: c.update(sizes=6), "sizes must be a list"),
        (lambda c: c.update(sizes=[1 << 40]), "shape"),
        (lambda c: c.update(bound="nan"), "a bound is"),
        (lambda c: c.update(arrays={}), "members"),
        (lambda c: c.update(arrays={"matrix.npy": "0"}), "digest of 'matrix.npy'"),
        (lambda c: c.update(more=1), "unknown key"),
        (lambda c: c.pop("kind"), "missing"),
    ],
)
def test_forged_files_are_refused(change, message, tmp_path):
    path = tmp_path / "strategy.npz"
    save_strategy(path, EXAMPLES["dense"])
    rewritten(path, change)
    with pytest.raises(InvalidFile, match=message):
        load_strategy(path)
    save_strategy(path, EXAMPLES["dense"])
    rewritten(path, change, resealed=False)
    with pytest.raises(InvalidFile, match=r"digest|format|version|key|missing"):
        load_strategy(path)


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "strategy.npz"
    for write in (
        lambda: path.write_bytes(b""),
        lambda: path.write_bytes(b"not a zip file at all"),
        lambda: np.savez(path, matrix=np.eye(3)),
        lambda: path.write_bytes(_bomb()),
    ):
        write()
        with pytest.raises(InvalidFile, match="no strategy"):
            load_strategy(path)
    with pytest.raises(FileNotFoundError):
        load_strategy(tmp_path / "none.npz")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_compression_are_refused(method: int, tmp_path) -> None:
    """Also where members are intact: damaged ones raise errors of their own libraries."""
    path, other = tmp_path / "strategy.npz", tmp_path / "other.npz"
    save_strategy(path, EXAMPLES["dense, one cell"])
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w", method) as again:
        for name in archive.namelist():
            again.writestr(name, archive.read(name))
    with pytest.raises(InvalidFile, match="compressed in another way"):
        load_strategy(other)


def test_floats_and_objects_are_refused(tmp_path):
    path = tmp_path / "strategy.npz"
    for array in (np.ones((3, 6)), np.array([[object()] * 6] * 3)):
        save_strategy(path, EXAMPLES["dense"])
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, allow_pickle=True)
        data = stream.getvalue()
        with zipfile.ZipFile(path) as archive:
            content = json.loads(archive.read("strategy.json"))
        content["arrays"]["matrix.npy"] = hashlib.sha256(data).hexdigest()
        content["digest"] = digest_of(content)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("strategy.json", json.dumps(content))
            archive.writestr("matrix.npy", data)
        with pytest.raises(InvalidFile, match=r"64-bit integers|Object arrays"):
            load_strategy(path)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846975,)}",
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        b"{'descr': '<i8', (",
        b"{'descr': '<i8', 'shape': '''",
        b"  {\n 1",
        b"[" * 5000,
    ],
    ids=["huge", "beyond 64 bits", "open", "open text", "indented", "deep"],
)
def test_forged_headers_of_arrays_are_refused(header, tmp_path):
    path = tmp_path / "strategy.npz"
    save_strategy(path, EXAMPLES["dense"])
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(path) as archive:
        content = json.loads(archive.read("strategy.json"))
    content["arrays"]["matrix.npy"] = hashlib.sha256(data).hexdigest()
    del content["digest"]
    content["digest"] = digest_of(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("strategy.json", json.dumps(content))
        archive.writestr("matrix.npy", data)
    with pytest.raises(InvalidFile, match="no strategy"):
        load_strategy(path)


def _bomb():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("strategy.json", b" " * (1 << 26))
    return stream.getvalue()
