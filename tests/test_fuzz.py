"""The fuzzer of files finds nothing in a few hundred inputs, and what is planted for it."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("tools.fuzz", reason="the tests may be of an installed package")
from tools.fuzz import runner
from tools.fuzz.formats import LONGEST, Format


@pytest.mark.parametrize("name", runner.FORMATS)
def test_some_inputs_are_read_as_what_they_say_or_refused(name: str, tmp_path: Path) -> None:
    form = runner.FORMATS[name](tmp_path)
    inputs = [runner.input_of(form, 1, number) for number in range(60)]
    assert len(set(inputs)) > 40
    assert [runner.input_of(form, 2, number) for number in range(60)] != inputs
    if name != "state":  # whose paths are those of this directory
        again = runner.FORMATS[name](tmp_path)
        assert [runner.input_of(again, 1, number) for number in range(60)] == inputs
    verdicts = [runner.tried(form, data, k, runner.peak()).verdict for k, data in enumerate(inputs)]
    assert {*verdicts} == {"accepted", "refused"}


@pytest.mark.slow
def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert runner.main(["--inputs", "30", "--format", "ledger"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["format", "inputs", "accepted", "refused", "findings"]
    name, inputs, accepted, refused, findings, *_ = row.split()
    assert (name, inputs, findings) == ("ledger", "30", "0")
    assert int(accepted) + int(refused) == 30
    kept = tmp_path / "input"
    assert runner.main(["--format", "ledger", "--only", "3", "--keep", str(kept)]) == 0
    form = runner.FORMATS["ledger"](tmp_path)
    assert kept.read_bytes() == runner.input_of(form, 1, 3)
    assert capsys.readouterr().out.startswith("ledger 3: ")


def burn(seconds: float) -> None:
    """Take so much time of the processor."""
    began = time.process_time()
    while time.process_time() < began + seconds:
        pass


class Costly(Format):
    """A reader that takes a part of the limits, or more: the input says how much."""

    name: ClassVar[str] = "costly"
    refusals = (ValueError,)

    def valid(self) -> Any:
        yield b"0"

    def mutated(self, data: bytes, rng: Any) -> bytes:
        return b"x" * 200_000

    def read(self, path: Path) -> Any:
        what, _, share = path.read_text().partition(" ")
        if what == "slow":
            burn(float(share) * runner.SECONDS)
        elif what == "large":
            return bytearray(b"x") * int(float(share) * 1e6 * runner.MEGABYTES)
        elif what == "refused":
            burn(float(share) * runner.SECONDS)
            raise ValueError
        return None

    def lie(self, found: Any, data: bytes) -> str | None:
        return None


def verdict_of(place: Path, seconds: float, data: bytes) -> str:
    """What is said of an input to a costly reader, within so many seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "SECONDS", seconds)
        return runner.tried(Costly(place), data, 0, runner.peak()).verdict


@pytest.mark.slow
def test_the_limits_are_those_that_are_promised_and_reject_what_takes_more(tmp_path: Path) -> None:
    """In a process of its own: one that has run other tests may have held more before."""
    assert (runner.SECONDS, runner.MEGABYTES, LONGEST) == (5, 500, 100_000)
    assert len({kind.name for kind in runner.KINDS}) == len(runner.KINDS) == len(runner.FORMATS)
    assert len(runner.input_of(Costly(tmp_path), 1, 0)) == LONGEST
    cases = [
        (0.2, b"slow 0.5", "accepted"),
        (0.2, b"slow 1.5", "accepted after 0."),
        (0.2, b"refused 0.5", "refused"),
        (0.2, b"refused 1.5", "refused after 0."),
        (5.0, b"large 0.1", "accepted"),
        (5.0, b"large 1.5", "accepted with "),  # last, as a process knows the most that it held
    ]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for seconds, data, verdict in cases:
            found = pool.submit(verdict_of, tmp_path, seconds, data).result(60)
            assert found.startswith(verdict)
            assert len(verdict.split()) > 1 or found == verdict


class Planted(Format):
    """A reader with an error of every sort: the input says which."""

    name: ClassVar[str] = "planted"
    refusals = (ValueError,)

    def valid(self) -> Any:
        yield b"accept"

    def mutated(self, data: bytes, rng: Any) -> bytes:
        kinds = [b"accept", b"refuse", b"crash", b"lie", b"slow", b"large", b"die"]
        return rng.choice(kinds)

    def read(self, path: Path) -> Any:
        match path.read_bytes():
            case b"refuse":
                raise ValueError
            case b"crash":
                raise KeyError("planted")
            case b"slow":
                burn(runner.SECONDS + 0.1)
            case b"large":
                return bytearray(b"x") * int(1.2e6 * runner.MEGABYTES)
            case b"die":
                os._exit(7)

    def lie(self, found: Any, data: bytes) -> str | None:
        return "it lies" if data == b"lie" else None


class Stuck(Planted):
    """It never answers."""

    name = "stuck"

    def read(self, path: Path) -> Any:
        if path.read_bytes() != self.originals[0]:
            time.sleep(600)

    def mutated(self, data: bytes, rng: Any) -> bytes:
        return b"stuck"


@pytest.mark.slow
def test_a_process_that_hangs_is_found_and_ended() -> None:
    summary = runner.fuzz(Stuck, 1, 1, hang=1.0)
    assert summary.findings == [(0, "the process did nothing for 1.0 s")]


@pytest.mark.slow
def test_what_is_planted_is_found(tmp_path: Path) -> None:
    inputs, seed = 7, 10
    form = Planted(tmp_path)
    planted = [runner.input_of(form, seed, number).decode() for number in range(inputs)]
    assert {*planted} == {"accept", "refuse", "crash", "lie", "slow", "large", "die"}
    summary = runner.fuzz(Planted, inputs, seed)
    messages = {
        "crash": "KeyError: 'planted'",
        "lie": "accepted, but it lies",
        "slow": "accepted after 5.",
        "large": "accepted with 6",
        "die": "the process died, exit code 7",
    }
    expected = {k: messages[kind] for k, kind in enumerate(planted) if kind in messages}
    assert [number for number, _ in summary.findings] == [*expected]
    for number, verdict in summary.findings:
        assert verdict.startswith(expected[number])
    assert summary.accepted == planted.count("accept")
    assert summary.refused == planted.count("refuse")
