"""Private reports, releases and trials of a table in a file: rows a second, and memory.

By ``mechdesign privatize``, ``mechdesign curate`` and ``mechdesign simulate``.

Prints a Markdown table. Every row is measured in its own process; memory is the largest resident
set, with all libraries.

    python benchmarks/tables.py [--quick]        a minute, 250 MB of disk
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from range_queries import table

from frequency import GRR, Categorical, Numeric, Schema, Survey
from frequency.storage import save_protocol
from mechdesign import plan
from mechdesign.cli import main as command
from rangeq import HaarHRR

AGE = Numeric("age", low=0, high=127, whole=True, unit="years")
STATE = Categorical("state", [f"state {letter}" for letter in "ABCDEFGHIJKLMNOP"])
EPSILON, USERS, BLOCK = 1, 10**7, 10**6


def surveys() -> dict[str, Survey]:
    """The protocol that is planned for ranges of ages, and one for the sixteen states."""
    best: Any = plan("ranges", AGE.size, n=USERS, epsilon=EPSILON).best
    return {
        "age": Survey(best.protocol, Schema([AGE])),
        "state": Survey(GRR(STATE.size, EPSILON), Schema([STATE])),
    }


def written(path: Path, rows: int) -> None:
    """Identifiers, ages and states."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    rng, labels = np.random.default_rng(1), np.array(STATE.labels)
    names = ("id", "age", "state")
    schema = pa.schema(zip(names, (pa.int64(), pa.int64(), pa.string()), strict=True))
    kind = pc.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
    with kind(path, schema) as writer:
        for start in range(0, rows, BLOCK):
            size = min(BLOCK, rows - start)
            ids = np.arange(start, start + size)
            ages, states = rng.integers(0, AGE.size, size), rng.integers(0, STATE.size, size)
            writer.write_table(pa.table([ids, ages, labels[states]], schema=schema))


def privatized(path: Path, protocol: Path) -> tuple[float, float, float]:
    """Private reports of a table: see `measured`."""
    out = path.with_name("reports.parquet")
    return measured("privatize", path, "--protocol", protocol, "--out", out, "--force")


def simulated(path: Path, protocol: Path) -> tuple[float, float, float]:
    """Predicted beside measured errors, from twenty repeats: see `measured`."""
    return measured("simulate", path, "--protocol", protocol)


def measured(*given: Any) -> tuple[float, float, float]:
    """Wall and processor seconds, and MB of memory, of a command."""
    wall, processor = time.perf_counter(), time.process_time()
    with redirect_stdout(StringIO()):
        if command([*map(str, given)]):
            raise SystemExit("the command failed")
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return wall, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def curated(path: Path, schema: Path, *asked: str) -> tuple[float, float, float]:
    """A curator's release of some attributes, or of a quantile: see `measured`."""
    out = path.with_name("people.release")
    given = ["curate", path, "--schema", schema, "--epsilon", EPSILON, "--out", out, "--force"]
    for one in asked:
        option, _, number = one.partition(" ")
        given += ["--quantile", number] if number else ["--attribute", option]
    return measured(*given)


def alone(function: Any, *arguments: Any) -> Any:
    """Call a function of this module in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    most = USERS // (10 if parser.parse_args().quick else 1)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, survey in surveys().items():
            save_protocol(protocol := Path(folder, f"{name}.json"), survey)
            for suffix in (".csv", ".parquet"):
                for rows in (most // 10, most):
                    alone(written, path := Path(folder, f"people{suffix}"), rows)
                    wall, processor, memory = alone(privatized, path, protocol)
                    found.append(
                        [
                            f"{name}, {survey.schema.sizes[0]} items",
                            type(survey.protocol).__name__,
                            suffix[1:],
                            f"{rows:,}",
                            f"{wall:.1f}",
                            f"{processor:.1f}",
                            f"{rows / wall / 1e6:.1f}",
                            f"{memory:.0f}",
                        ]
                    )
    table(
        "Private reports of one column of three, secure randomness",
        ["column", "protocol", "file", "rows", "s", "processor, s", "million rows/s", "MB, peak"],
        found,
    )
    table(
        "A curator's releases of columns of three, secure randomness, epsilon 1",
        ["columns", "file", "rows", "s", "processor, s", "million rows/s", "MB, peak"],
        list(releases(most)),
    )
    table(
        "Twenty trials of a survey, of one column of three",
        ["column", "protocol", "rows", "s", "processor, s", "MB, peak"],
        list(trials(most // 10)),
    )


def releases(rows: int) -> Iterator[list[str]]:
    """The rows of the table of `curated`."""
    with tempfile.TemporaryDirectory() as folder:
        Schema([AGE, STATE]).save(schema := Path(folder, "people.toml"))
        for suffix in (".csv", ".parquet"):
            alone(written, path := Path(folder, f"people{suffix}"), rows)
            for more in (["age"], ["age", "state"], ["age", "quantile 0.5"]):
                wall, processor, memory = alone(curated, path, schema, *more)
                numbers = f"{wall:.1f}", f"{processor:.1f}", f"{rows / wall / 1e6:.1f}"
                yield [", ".join(more), suffix[1:], f"{rows:,}", *numbers, f"{memory:.0f}"]


def trials(rows: int) -> Iterator[list[str]]:
    """The rows of the table of `simulated`."""
    haar = {"age ": Survey(HaarHRR(AGE.size, EPSILON), Schema([AGE]))}
    with tempfile.TemporaryDirectory() as folder:
        alone(written, path := Path(folder, "people.csv"), rows)
        for name, survey in (surveys() | haar).items():
            save_protocol(protocol := Path(folder, "protocol.json"), survey)
            wall, processor, memory = alone(simulated, path, protocol)
            what = f"{name.strip()}, {survey.schema.sizes[0]} items", type(survey.protocol).__name__
            yield [*what, f"{rows:,}", f"{wall:.1f}", f"{processor:.1f}", f"{memory:.0f}"]


if __name__ == "__main__":
    main()
