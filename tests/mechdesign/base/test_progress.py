"""Progress: a bar on a terminal, lines elsewhere, and nothing for what is quick."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction

import pytest

from mechdesign import Privacy, design
from mechdesign.base import files as progress
from mechdesign.base.files import ProgressMeter
from mechdesign.cli import main
from mechdesign.local import extremal, workload_optimal
from mechdesign.symbolic import parametric
from mechdesign.utilities import MutualInformation
from rangeq import optimise


class Terminal(io.StringIO):
    """A standard error that someone looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_REDRAWN", 0.01)
    monkeypatch.setattr(progress, "_WRITTEN", 0.01)


def wait_for(text: str, stream: io.StringIO) -> None:
    """A minute at most: the meter looks at the clock in a thread of its own."""
    until = time.monotonic() + 60
    while text not in stream.getvalue():
        assert time.monotonic() < until, stream.getvalue()
        time.sleep(0.005)


def test_lines_tell_what_goes_on_though_nothing_is_reported(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressMeter("design n = 9") as meter:
        meter.say("building the program")
        wait_for("design n = 9, building the program [00:00]\n", stream)
        stream.truncate(0)
        wait_for("design n = 9, building the program [00:00]\n", stream)
    assert "\r" not in stream.getvalue()


def test_steps_are_counted(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressMeter("files", 200, "B") as meter:
        meter.update(50)
        wait_for("files: 25% [", stream)
    with ProgressMeter("release", unit="rows") as meter:
        meter.update(3)
        meter.update()
        wait_for("release: 4 rows [", stream)


def test_a_terminal_has_a_bar_that_goes_away(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressMeter("protocols", 4) as meter:
        meter.update()
        wait_for("1/4", stream)
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r")


def test_names_in_a_bar_are_escaped(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressMeter("file \x1b[2J") as meter:
            meter.say("a\nforged line")
            wait_for("file \\x1b[2J, a\\nforged line [00:00]", stream)
        assert "\x1b" not in stream.getvalue()


def test_what_is_quick_or_not_to_be_shown_says_nothing(
    quick: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressMeter("hidden", shown=False) as meter:
        meter.update()
        meter.say("nothing")
        time.sleep(0.05)
    monkeypatch.setattr(progress, "_WRITTEN", 60.0)
    with ProgressMeter("quick") as meter:
        meter.say("nothing")
    assert capsys.readouterr().err == ""


def test_no_thread_is_left_after_an_error(quick: None) -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), ProgressMeter("wrong"):
        raise ZeroDivisionError
    assert threading.active_count() <= before


RISING = [Fraction(x, 78) for x in range(1, 13)]
LONG: dict[str, Callable[[], object]] = {
    "design n = 24": lambda: design(24, Privacy(alpha="9/10"), properties=["WH"], progress=True),
    "design of 24 inputs": lambda: workload_optimal("ranges", 24, 1.0, progress=True),
    "extremal k = 12": lambda: extremal(12, 1.0, MutualInformation(RISING), progress=True),
    "parametric n = 3": lambda: parametric(3, properties=["WH"], progress=True),
    "protocols": lambda: optimise(1000, 1.0, 1000, progress=True),
}


@pytest.mark.parametrize("description", LONG)
def test_what_takes_long_says_so_where_nobody_looks(
    description: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_WRITTEN", 0.001)
    LONG[description]()
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith(description) for line in lines)


def test_the_command_says_that_it_goes_on_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_WRITTEN", 0.001)
    assert (
        main(["design", "--n", "24", "--alpha", "9/10", "--property", "WH", "--property", "CM"])
        == 0
    )
    assert "design n = 24, " in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_a_meter_that_an_interrupt_left_open_is_shown_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    meter = ProgressMeter("left open").__enter__()
    watch = meter._watch
    assert watch is not None
    watch.join(0.2)
    assert watch.is_alive()
    del meter
    watch.join(10)
    assert not watch.is_alive()
