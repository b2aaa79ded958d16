"""Try inputs in a process of their own, with bounds of time and memory."""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import tools.fuzz
from tools.fuzz.documents import (
    ContingencyFile,
    DeviceFile,
    LedgerFile,
    MechanismFile,
    PermanentFile,
    ProtocolFile,
    QuantilesFile,
    RegionsFile,
    SchemaFile,
    StrategyFile,
    TableFile,
)
from tools.fuzz.formats import LONGEST, Format
from tools.fuzz.messages import (
    AggregateMessage,
    BatchFile,
    CountsTable,
    LinesFile,
    ReleaseFile,
    ReportsFile,
    ReportsMessage,
    StateFile,
)

SECONDS, MEGABYTES = 5.0, 500

SECONDS, MEGABYTES = 5.0, 500
"""What reading an input may cost."""

_HANG = 30.0
"""Seconds without a sign of life after which a process is ended."""

_BEGIN = 300.0
"""Seconds in which it has to begin."""

_ADDRESSES = 4 << 30
"""Bytes of address space that an input may ask for."""

KINDS: tuple[type[Format], ...] = (
    *(MechanismFile, DeviceFile, LedgerFile, ProtocolFile, ReportsMessage, AggregateMessage),
    *(BatchFile, LinesFile, StateFile, ReportsFile, CountsTable, ReleaseFile, QuantilesFile),
    *(SchemaFile, TableFile, ContingencyFile, RegionsFile, StrategyFile, PermanentFile),
)

FORMATS = {kind.name: kind for kind in KINDS}


class Outcome(NamedTuple):
    """How an input fared: accepted, refused, or else what was found."""

    number: int
    verdict: str
    seconds: float
    megabytes: float


@dataclass
class Summary:
    """What came of the inputs of a format."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    largest: float = 0.0
    findings: list[tuple[int, str]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.slowest = max(self.slowest, outcome.seconds)
        self.largest = max(self.largest, outcome.megabytes)
        if outcome.verdict in ("accepted", "refused"):
            setattr(self, outcome.verdict, getattr(self, outcome.verdict) + 1)
        else:
            self.findings.append((outcome.number, outcome.verdict))


def input_of(form: Format, seed: int, number: int) -> bytes:
    """The input of this number."""
    rng = random.Random(f"{seed} {form.name} {number}")
    return form.mutated(rng.choice(form.originals), rng)[:LONGEST]


def peak() -> float:
    """The most megabytes that this process has held."""
    if (status := Path("/proc/self/status")).exists():  # what follows may be that of its parent
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def tried(form: Format, data: bytes, number: int, before: float) -> Outcome:
    """Read one input, in a process that held at most ``before`` megabytes."""
    path = form.place / "input"
    path.write_bytes(data)
    began = time.process_time()
    found, verdict = None, "accepted"
    try:
        found = form.read(path)
    except form.refusals:
        verdict = "refused"
    except Exception as error:
        verdict = f"{type(error).__name__}: {str(error)[:150]}"
    seconds, megabytes = time.process_time() - began, peak() - before
    if verdict == "accepted":
        try:
            lie = form.lie(found, data)
        except Exception as error:
            lie = f"a plain reading fails: {type(error).__name__}: {str(error)[:100]}"
        if lie:
            verdict = f"accepted, but {lie}"
    if verdict in ("accepted", "refused"):
        if seconds > SECONDS:
            verdict = f"{verdict} after {seconds:.1f} CPU seconds"
        elif megabytes > MEGABYTES:
            verdict = f"{verdict} with {megabytes:.0f} MB"
    return Outcome(number, verdict, seconds, megabytes)


def _work(kind: type[Format], seed: int, numbers: range, place: Path, results: Connection) -> None:
    """Try inputs until one took too much memory, which hides what the next ones take."""
    form = kind(place)
    for data in form.originals:
        outcome = tried(form, data, -1, peak())
        if not outcome.verdict.startswith("accepted") or "but" in outcome.verdict:
            raise AssertionError(f"a valid file: {outcome.verdict}")
    before = peak()
    size = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_held() + _ADDRESSES, size))
    results.send(True)  # it has begun
    for number in numbers:
        outcome = tried(form, input_of(form, seed, number), number, before)
        results.send(outcome)
        if outcome.megabytes > MEGABYTES:
            return


def _held() -> int:
    """Bytes of address space of this process."""
    status = Path("/proc/self/statm")
    return (
        int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 1 << 36
    )


def fuzz(kind: type[Format], inputs: int, seed: int, hang: float = _HANG) -> Summary:
    """Try so many inputs of a format, in a process of their own."""
    summary, number, shown = Summary(), 0, time.monotonic()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as place:
        while number < inputs:
            ours, theirs = context.Pipe(duplex=False)
            arguments = (kind, seed, range(number, inputs), Path(place), theirs)
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            if not ours.poll(_BEGIN) or not _received(ours):
                process.kill()
                raise RuntimeError(f"{kind.name}: its valid files are not read")
            while number < inputs and (alive := ours.poll(hang)):
                outcome = _received(ours)
                if outcome is None:
                    break
                summary.add(outcome)
                number += 1
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    print(f"{kind.name}: {number} of {inputs}", file=sys.stderr, flush=True)
            if not alive:
                process.kill()
            process.join()
            if number < inputs and process.exitcode:
                how = (
                    f"died, exit code {process.exitcode}" if alive else f"did nothing for {hang} s"
                )
                summary.add(Outcome(number, f"the process {how}", 0.0, 0.0))
                number += 1
    return summary


def _received(results: Connection) -> Any:
    """What comes next; None if the process has ended."""
    try:
        return results.recv()
    except EOFError:
        return None


def main(arguments: list[str] | None = None) -> int:
    """Fuzz, and print a table; 1 if there are findings."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz", description=(tools.fuzz.__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--inputs", type=int, default=500, help="of each format (default 500)")
    parser.add_argument("--format", choices=[*FORMATS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input, in this process")
    parser.add_argument("--keep", type=Path, help="with --only: write the input here")
    options = parser.parse_args(arguments)
    chosen = [kind for name, kind in FORMATS.items() if options.format in (name, "all")]
    if options.only is not None:
        with tempfile.TemporaryDirectory() as place:
            form = chosen[0](Path(place))
            data = input_of(form, options.seed, options.only)
            if options.keep is not None:
                options.keep.write_bytes(data)
            outcome = tried(form, data, options.only, peak())
        print(f"{form.name} {outcome.number}: {len(data)} bytes, {outcome.verdict}")
        return int(outcome.verdict not in ("accepted", "refused"))
    print("format       inputs  accepted   refused  findings  slowest  most memory", flush=True)
    found: list[str] = []
    for kind in chosen:
        done = fuzz(kind, options.inputs, options.seed)
        print(
            f"{kind.name:11} {options.inputs:7} {done.accepted:9} {done.refused:9} "
            f"{len(done.findings):9}  {done.slowest:5.2f} s  {done.largest:8.0f} MB",
            flush=True,
        )
        found += [f"{kind.name} {number}: {verdict}" for number, verdict in done.findings]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))
