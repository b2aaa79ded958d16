"""The client of the standard library alone makes the reports of the array path, word by word."""

import itertools
import json
import os
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frequency
from frequency import heavy
from frequency.algebra.exact_draws import bernoulli_bits, uniform
from frequency.algebra.hash_functions import features
from frequency.clients import ClientError, RefusedValue, device, load_client
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


@pytest.mark.slow
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
        ({"format": "mechdesign.client", "version": 3}, "version 3, this client reads 1"),
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


def counted(monkeypatch) -> None:
    """Let the operating system's words be 0, 1, 2, .. in a new block, each given once."""
    numbers = itertools.count()

    def urandom(size: int) -> bytes:
        return b"".join(next(numbers).to_bytes(8, "little") for _ in range(size // 8))

    monkeypatch.setattr(device, "_block", [])
    monkeypatch.setattr(os, "urandom", urandom)


def test_no_two_threads_draw_one_word(monkeypatch):
    counted(monkeypatch)
    found: list[list[int]] = [[] for _ in range(8)]

    def draw(mine: list[int]) -> None:
        mine.extend(device._word() for _ in range(5000))

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = list(itertools.chain(*found))
    assert len(set(drawn)) == len(drawn) == 40_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_draws_other_words():
    device._word()  # the parent has words left of its block
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"".join(device._word().to_bytes(8, "little") for _ in range(100)))
        os._exit(0)
    told = os.read(read, 800)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    theirs = set(struct.unpack("<100Q", told))
    ours = {device._word() for _ in range(600)}
    assert len(theirs) == 100
    assert not theirs & ours


def test_a_fork_while_words_are_read_shares_none(monkeypatch):
    """As of a signal's handler: the child's hook runs before the words that came are kept."""
    counted(monkeypatch)
    read = os.urandom

    def forked(size: int) -> bytes:
        monkeypatch.setattr(os, "urandom", read)
        drawn = read(size)
        device._begin_block()
        return drawn

    monkeypatch.setattr(os, "urandom", forked)
    assert device._word() >= 512  # not of the block that the parent read


def test_bits_of_many_lanes_are_those_of_the_array_path():
    for places, weight in itertools.product(
        (1, 63, 64, 65, 1024), (0, 1, 1 << 63, (1 << 64) - 1, 3 << 57, 5 << 58, 0x123456789ABCDEF1)
    ):
        words = Recorded(places)
        drawn = device._bits(words, places, weight)()
        lanes = bernoulli_bits(-(-places // 64), weight, tape := Tape(words.words))
        assert tape.used == len(words.words)
        assert drawn == int.from_bytes(lanes.tobytes(), "little") & ((1 << places) - 1)


def test_cubes_are_those_of_the_array_path():
    draw = random.Random(3)
    items = [0, 1, (1 << 64) - 1, *(draw.getrandbits(draw.randint(1, 64)) for _ in range(300))]
    _, cubes = features(np.array(items, dtype=np.uint64).view(np.int64))
    assert [device._cubed(item) for item in items] == cubes.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 192, 256, 704, 1000, 40_000, 1 << 17])
@pytest.mark.parametrize("count", [1, 255, 256, 3000])
def test_many_numbers_are_those_of_the_array_path(size, count):
    words = Recorded(size)
    ends = [
        number * ((1 << 64) // size) + step for number in range(min(size, 700)) for step in (-1, 0)
    ]
    forced = [word % (1 << 64) for word in ends[:count]]  # where a number begins

    def word() -> int:
        drawn = words()
        if len(words.words) <= len(forced):
            words.words[-1] = drawn = forced[len(words.words) - 1]
        return drawn

    drawn = list(device._belows(word, count, size))
    assert drawn == uniform(count, size, tape := Tape(words.words)).tolist()
    assert tape.used == len(words.words)
