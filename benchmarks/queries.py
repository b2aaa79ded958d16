"""Answers in a shell, by `mechdesign query`: how long the command takes, from its start to its end.

Prints a Markdown table. Every command is a new process; of several runs the median counts.

    python benchmarks/queries.py [--quick]        half a minute
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from range_queries import table

from frequency import GRR, OLH, Numeric, Schema, Survey
from frequency.storage import save_aggregate, save_protocol
from rangeq import CircularHistogram, HaarHRR, SquareWave, shaped
from rangeq.central import Release, Wavelet

DOMAIN, EPSILON, USERS = 1024, 1.0, 100_000

QUESTIONS = {
    "a range": ["--where", "age 18:64", "--table"],
    "the median": ["--quantile", "0.5"],
    "nothing": [],
    "a picture": ["--plot", "picture.png", "--force"],
}


def commands(folder: Path) -> dict[str, list[str]]:
    """Files of what was collected or released, and the options that name them."""
    schema = Schema([Numeric("age", low=0, high=DOMAIN - 1, whole=True, unit="years")])
    rng = np.random.default_rng(1)
    counts = rng.multinomial(USERS, rng.dirichlet(np.ones(DOMAIN)))
    protocols: list[Any] = [kind(DOMAIN, EPSILON) for kind in (GRR, OLH, HaarHRR)]
    protocols += [CircularHistogram(DOMAIN, EPSILON), shaped(DOMAIN, EPSILON, USERS)]
    protocols.append(SquareWave(DOMAIN, EPSILON))
    found = {}
    for protocol in protocols:
        survey, name = Survey(protocol, schema), type(protocol).__name__
        save_protocol(folder / f"{name}.json", survey)
        save_aggregate(folder / f"{name}.agg", survey.simulate(counts, rng))
        found[name] = [f"{name}.agg", "--protocol", f"{name}.json"]
    Release.draw(schema, Wavelet((DOMAIN,), EPSILON), counts, rng).save(folder / "age.release")
    return {**found, "a curator's release": ["age.release"]}


def taken(folder: Path, given: list[str], runs: int) -> tuple[float, float]:
    """Wall and processor seconds of the command: medians."""
    code = "import sys; from mechdesign.cli import main; sys.exit(main(sys.argv[1:]))"
    walls, processors = [], []
    for _ in range(runs):
        wall, before = time.perf_counter(), os.times()
        subprocess.run(
            [sys.executable, "-c", code, "query", *given],
            check=True,
            cwd=folder,
            capture_output=True,
        )
        after = os.times()
        walls.append(time.perf_counter() - wall)
        processors.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return float(np.median(walls)), float(np.median(processors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one run of each")
    runs = 1 if parser.parse_args().quick else 5
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, options in commands(folder).items():
            for question, asked in QUESTIONS.items():
                if question == "the median" and what in ("GRR", "OLH"):
                    continue
                wall, processor = taken(folder, [*options, *asked], runs)
                rows.append([what, question, f"{wall:.2f}", f"{processor:.2f}"])
    table(f"Answers about {DOMAIN} items", ["from", "asked for", "s", "processor, s"], rows)


if __name__ == "__main__":
    main()
