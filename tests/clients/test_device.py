"""The client of the standard library alone makes the reports of the array path, word by word."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frequency
from frequency import heavy
from frequency.clients import ClientError, RefusedValue, load_client
from frequency.core.protocol import channel_of
from frequency.storage import save_protocol
from tests.contracts.examples import PROTOCOLS, WITH_VALUES
from tests.tape import Tape

DEVICE = Path(__file__).parents[2] / "frequency" / "clients" / "device.py"


class Recorded:
    """Random words, and a list of those that were asked for."""

    def __init__(self, seed: int) -> None:
        self.words: list[int] = []
        self._random = random.Random(seed)

    def __call__(self) -> int:
        self.words.append(self._random.getrandbits(64))
        return self.words[-1]


def plain(value: Any) -> Any:
    """A value of NumPy as Python's own."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def drawn(protocol: Any, value: Any, words: list[int]) -> bytes:
    """The report that the array path makes of these words."""
    channel, tape = channel_of(protocol), Tape(words)
    reports = np.zeros(1, dtype=channel.report_dtype)
    channel.fill(channel.items_of(protocol.items_of([value])), reports, tape)
    assert tape.used == len(words)
    return reports.tobytes()


@WITH_VALUES
def test_a_report_is_that_of_the_array_path(protocol, values):
    description = json.loads(json.dumps(protocol.client()))
    words = Recorded(1)
    client = load_client(description, words)
    for value in values[:20]:
        words.words.clear()
        payload = client.privatize_one(plain(value))
        assert payload == drawn(protocol, value, words.words)
        assert len(payload) == description["bytes"] == protocol.report_dtype.itemsize


@pytest.mark.parametrize("protocol", [heavy.UniqueHeavyHitter(8, 1.0)])
@pytest.mark.parametrize("wrapped", [False, True])
def test_users_without_an_item_report_as_arrays_do(protocol, wrapped):
    protocol = heavy.FewBits(protocol, bits=2) if wrapped else protocol
    words = Recorded(2)
    client = load_client(protocol.client(), words)
    for _ in range(20):
        words.words.clear()
        payload = client.privatize_one(None)
        assert payload == protocol.channel.idle(1, Tape(words.words)).tobytes()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
def test_a_report_names_its_protocol(protocol):
    description = protocol.client()
    assert description["wire"] == protocol.wire.hex()
    assert len(protocol.wire) == 8
    assert description["protocol"] == type(protocol).__name__


def test_a_protocol_makes_single_reports():
    oracle = frequency.GRR(7, 1.0)
    payloads = [oracle.privatize_one(3) or b"" for _ in range(2000)]
    reports = np.frombuffer(b"".join(payloads), oracle.report_dtype)
    assert oracle.aggregate(reports).n == 2000
    assert np.bincount(reports["item"], minlength=7).argmax() == 3
    with pytest.raises(RefusedValue, match=r"7 is not an integer in 0 \.\. 6"):
        oracle.privatize_one(7)


def changes(content: Any, path: tuple[Any, ...] = ()) -> Any:
    """Where each number and text of a description is."""
    if isinstance(content, dict | list):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        for key, entry in pairs:
            yield from changes(entry, (*path, key))
    else:
        yield path


def test_whatever_is_changed_in_a_description_is_noticed():
    description = heavy.OneBit(heavy.TreeHist(8, 0.5)).client()
    for path in changes(description):
        changed = json.loads(json.dumps(description))
        place = changed
        for key in path[:-1]:
            place = place[key]
        entry = place[path[-1]]
        place[path[-1]] = entry + 1 if type(entry) is int else f"{entry}1"
        with pytest.raises(ClientError):
            load_client(changed)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "no description"),
        ({"format": "mechdesign.protocol", "client": None}, "no description"),
        ({"format": "mechdesign.client", "version": 2}, "version 2, this client reads 1"),
        ({"format": "mechdesign.client", "version": True}, "version True"),
        ({"format": "mechdesign.client", "version": 1, "digest": "x"}, "digest"),
    ],
)
def test_what_is_no_description_is_refused(content, message):
    with pytest.raises(ClientError, match=message):
        load_client(content)


def test_a_file_is_enough(tmp_path):
    save_protocol(tmp_path / "protocol.json", frequency.OLH(100, 1.0))
    oracle = frequency.OLH(100, 1.0)
    for value in (0, 99):
        report = load_client(tmp_path / "protocol.json").report(value) or b""
        assert report[:8] == oracle.wire
        assert oracle.aggregate(np.frombuffer(report[8:], oracle.report_dtype)).n == 1
    with pytest.raises(ClientError, match="no protocol file"):
        load_client(tmp_path / "nothing.json")


def test_one_copied_file_runs_without_packages(tmp_path):
    (tmp_path / "client.py").write_bytes(DEVICE.read_bytes())
    save_protocol(tmp_path / "protocol.json", frequency.HRR(100, 1.0))
    command = [sys.executable, "-I", "-S", "client.py", "protocol.json"]
    told = subprocess.run([*command, "3", "5"], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 2
    refused = subprocess.run([*command, "100"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "not an integer in 0 .. 99" in refused.stderr


def test_without_randomness_there_is_no_client(monkeypatch):
    def missing(size: int) -> bytes:
        raise NotImplementedError

    description = frequency.GRR(4, 1.0).client()
    monkeypatch.setattr(os, "urandom", missing)
    with pytest.raises(ClientError, match="no source of randomness"):
        load_client(description)
