"""How long a table of 5,000 groups with 40 sizes up to 60 takes, the first time and the second.

Each time is that of a whole process, ``mechdesign release-table`` with subtotals and intervals: the
first designs every mechanism, the second reads the designs and audits them again. Also the errors
of the total. Prints a Markdown table.

python benchmarks/count_tables.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mechdesign.base.numbers import Integers

REQUESTS = [
    ("1", ["WH", "CM"], "L0"),
    ("1/2", ["F"], "L0"),
    ("1/2", ["WH"], "total"),
]
"""Epsilon of a cell, properties, and the loss."""


def written(folder: Path, groups: int, sizes: int) -> tuple[Path, Integers]:
    """A file of groups and their true counts: three in ten people are counted, in 20 regions."""
    rng = np.random.default_rng(1)
    kinds = np.unique(np.linspace(1, 60, sizes).round().astype(int))
    people = np.concatenate([kinds, rng.choice(kinds, groups - len(kinds))])
    counts = rng.binomial(people, 0.3)
    rows = zip(range(groups), people.tolist(), counts.tolist(), strict=True)
    lines = ["ward,region,people,ill", *(f"w{k},r{k % 20},{n},{count}" for k, n, count in rows)]
    path = folder / "counts.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, counts


def measured(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Seconds of a process by the clock and of the processor, and what it printed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    elapsed, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return elapsed, used, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 groups with 8 sizes")
    groups, sizes = (200, 8) if parser.parse_args().quick else (5000, 40)
    print(f"{groups} groups, {sizes} sizes up to 60\n")
    print(
        "| epsilon | properties | loss | run | clock, s | processor, s | standard error of the"
        " total | off by |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for epsilon, properties, loss in REQUESTS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path, counts = written(folder, groups, sizes)
            environment = {**os.environ, "MECHDESIGN_CACHE": str(folder / "designs")}
            wanted = [word for each in properties for word in ("--property", each)]
            options = ["--count", "ill", "--size", "people", "--epsilon", epsilon, "--loss", loss]
            options += [*wanted, "--total", "region", "--json", "--force"]
            options += ["--out", str(folder / "released.csv")]
            command = [sys.executable, "-m", "mechdesign", "release-table", str(path), *options]
            for run in ("first", "second"):
                clock, processor, printed = measured(command, environment)
                total = json.loads(printed)["totals"][-1]
                print(
                    f"| {epsilon} | {' '.join(properties)} | {loss} | {run} | {clock:.1f} |"
                    f" {processor:.1f} | {total['variance'] ** 0.5:.1f} |"
                    f" {total['value'] - counts.sum():+.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
