"""One user a call: the standard library's client, beside the clients of other libraries.

    python benchmarks/one_user.py

makes the other libraries' environments in .venv-peers if they are not there. Ours draws from the
operating system, theirs from seeded generators. Everything is measured in this one run, in turns;
numbers are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from peers.environments import PEERS, ROOT, THREADS, Worker, installed, python_of

import frequency
from frequency import heavy, marginals
from frequency.clients import load_client
from rangeq import HaarHRR, HierarchicalHistogram, SquareWave, grids, shaped

os.environ.update(THREADS)

KINDS, DOMAINS, REPEATS, BUDGET = ("GRR", "OUE", "OLH", "HRR"), (64, 1024), 5, 0.2
OTHERS = ("pure_ldp", "multi_freq_ldpy", "ldp_toolbox")
BINARY = marginals.Domain.binary(*(f"a{k}" for k in range(16)))

PROTOCOLS: dict[str, tuple[Any, Any]] = {
    "GRR, 1024 items": (frequency.GRR(1024, 1.0), 5),
    "HRR, 1024 items": (frequency.HRR(1024, 1.0), 5),
    "OLH, 1024 items": (frequency.OLH(1024, 1.0), 5),
    "OLH, 2^20 items, epsilon 2.1": (frequency.OLH(1 << 20, 2.1), 99_999),
    "ProjectiveGeometry, 1024 items": (frequency.ProjectiveGeometry(1024, 1.0), 5),
    "OUE, 1024 items": (frequency.OUE(1024, 1.0), 5),
    "SubsetSelection, 1024 items": (frequency.SubsetSelection(1024, 1.0), 5),
    "CountMeanSketch, 2^64 items": (frequency.CountMeanSketch(1 << 64, 1.0), 1 << 63),
    "HadamardCountMeanSketch, 2^64 items": (frequency.HadamardCountMeanSketch(1 << 64, 1.0), 1),
    "HaarHRR, 2^20 items": (HaarHRR(1 << 20, 1.0), 99_999),
    "HierarchicalHistogram, 1024 items": (HierarchicalHistogram(1024, 1.0), 5),
    "SquareWave, 1024 items": (SquareWave(1024, 1.0), 5),
    "shaped, 1024 items": (shaped(1024, 1.0, 10**6), 5),
    "InpHT, 16 attributes": (marginals.InpHT(BINARY, 3, 1.0), [1] * 16),
    "CALM, 16 attributes": (marginals.CALM(BINARY, 3, 1.0), [1] * 16),
    "HIO, 6 x 64": (grids.HIO([64] * 6, 1.0), [5] * 6),
    "HDG, 6 x 64": (grids.HDG([64] * 6, 1.0, 10**6), [5] * 6),
    "WaveGrid, 6 x 64": (grids.WaveGrid([64] * 6, 1.0), [5] * 6),
    "TreeHist, 64 bits": (heavy.TreeHist(64, 1.0), 1 << 63),
    "SuccinctHistogram, 16 bits": (heavy.SuccinctHistogram(16, 2.0, n=200_000), 777),
    "OneBit(HaarHRR), 2^20 items": (heavy.OneBit(HaarHRR(1 << 20, 1.0)), 99_999),
    "FewBits(WaveGrid), 6 x 64": (heavy.FewBits(grids.WaveGrid([64] * 6, 2.0)), [5] * 6),
}


def beside_others(folder: Path) -> None:
    """The rates of ours and of theirs, and whether ours is at least a third of the fastest."""
    peers = {peer.adapter: peer for peer in PEERS if peer.adapter in OTHERS}
    print(
        f"{'users a second':<16}{'here, secure':>16}", *(f"{name:>16}" for name in peers), "  ratio"
    )
    with ExitStack() as stack:
        workers = {"here": stack.enter_context(Worker(sys.executable, "here"))}
        for name, peer in peers.items():
            if "error" not in installed(folder, peer):
                python = python_of(folder, peer)
                workers[name] = stack.enter_context(Worker(python, name))
        for kind in KINDS:
            for domain in DOMAINS:
                rates: dict[str, list[float]] = {name: [] for name in workers}
                for _ in range(REPEATS):
                    for name, worker in workers.items():
                        how = f"{kind}, one by one" if name == "here" else kind
                        asked = {"domain": domain, "epsilon": 1.0, "budget": BUDGET}
                        answer = worker.ask("client", kind=how, **asked).get("value", {})
                        rates[name].append(answer.get("rate", 0.0))
                found = {name: statistics.median(several) for name, several in rates.items()}
                cells = "".join(f"{found.get(name, 0.0):>17,.0f}" for name in ("here", *peers))
                best = max([rate for name, rate in found.items() if name != "here"], default=0.0)
                ratio = f"{found['here'] / best:.2f}" if best else "-"
                print(f"{f'{kind}, {domain}':<16}{cells}  {ratio}")


def microseconds(client: Any, value: Any) -> float:
    """Of one report: the median of several runs."""
    report, number = client.privatize_one, 1
    report(value)  # public functions are computed when they are first needed
    found = list[float]()
    while len(found) < REPEATS:
        start = time.perf_counter()
        for _ in range(number):
            report(value)
        spent = time.perf_counter() - start
        if spent < BUDGET / REPEATS:
            number *= 2
        else:
            found.append(spent / number)
    return statistics.median(found) * 1e6


def every_protocol() -> None:
    """Microseconds of a report, beside those of loading the client and of arrays with one user."""
    print(f"\n{'':<38}{'report, us':>11}{'load, ms':>10}{'array of one, us':>18}")
    for name, (protocol, value) in PROTOCOLS.items():
        description = protocol.client()
        start = time.perf_counter()
        client = load_client(description)
        loaded = time.perf_counter() - start
        protocol.privatize([value])
        start = time.perf_counter()
        for _ in range(5):
            protocol.privatize([value])
        array = (time.perf_counter() - start) / 5
        one = microseconds(client, value)
        print(f"{name:<38}{one:>11.2f}{loaded * 1e3:>10.1f}{array * 1e6:>18.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, default=ROOT / ".venv-peers")
    options = parser.parse_args()
    every_protocol()
    print()
    beside_others(options.environments)


if __name__ == "__main__":
    main()
