"""A curator's releases of 10^9 rows: seconds and memory by one process, by two, and by Dask.

Makes Parquet files of an age, a district and an income, some gigabytes in a folder that is removed
at the end, and releases a histogram of age and district, and means of income by district. Prints a
Markdown table; memory is the largest resident set of any process.

    python benchmarks/curated_billion.py [--rows N] [--folder FOLDER]            fifteen minutes
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from range_queries import table

from frequency.schema import Categorical, Numeric, Schema
from frequency.storage.table import count_table
from rangeq.central import count_cells

SCHEMA = Schema(
    [
        Numeric("age", low=0, high=99, whole=True),
        Categorical("district", [f"d{k}" for k in range(20)]),
        Numeric("income", low=0, high=100_000, whole=True, bins=20),
    ]
)

ROWS = 1 << 24  # of a file


def made(folder: Path, rows: int) -> None:
    """Write so many rows, in files."""
    labels = pa.array([f"d{k}" for k in range(20)])
    for k, first in enumerate(range(0, rows, ROWS)):
        rng, here = np.random.default_rng(k), min(ROWS, rows - first)
        district = pa.array(rng.integers(0, 20, here, dtype=np.int8))
        columns = {
            "age": rng.integers(0, 100, here, dtype=np.int8),
            "district": pa.DictionaryArray.from_arrays(district, labels),
            "income": rng.integers(0, 100_001, here, dtype=np.int32),
        }
        pq.write_table(pa.table(columns), folder / f"{k:03}.parquet", row_group_size=1 << 20)


def ran(folder: Path, *asked: str) -> list[str]:
    """The seconds and megabytes of the command."""
    given = ["/usr/bin/time", "-f", "%e %M", sys.executable, "-m", "mechdesign", "curate"]
    given += [str(folder / "rows"), "--schema", str(folder / "people.toml"), "--epsilon", "1"]
    given += ["--out", str(folder / "a.release"), "--force", *asked]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    seconds, kilobytes = done.stderr.strip().splitlines()[-1].split()
    return [f"{float(seconds):.0f}", f"{int(kilobytes) / 1e3:.0f}"]


def on_dask(folder: Path) -> list[str]:
    """The seconds and megabytes of counting on a cluster of two processes."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        frame = dd.read_parquet(folder / "rows", split_row_groups=4)
        names = ["age", "district"]
        count = partial(count_cells, SCHEMA.project(names))
        counts = count_table(frame, names, count, client=client)
        seconds = time.perf_counter() - start
        memory: Any = client.run(_largest)
    assert counts.sum() == sum(
        pq.ParquetFile(file).metadata.num_rows for file in (folder / "rows").iterdir()
    )
    return [f"{seconds:.0f}", f"{max(memory.values()):.0f}"]


def _largest() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        (folder / "rows").mkdir()
        SCHEMA.save(folder / "people.toml")
        made(folder / "rows", options.rows)
        size = sum(file.stat().st_size for file in (folder / "rows").iterdir())
        cells = ("--attribute", "age", "--attribute", "district")
        means = ("--mean", "income", "--by", "district")
        lines = []
        for name, asked in (("histogram of 2,000 cells", cells), ("means by 20 groups", means)):
            for workers in (1, 2):
                told = ran(folder, *asked, "--workers", str(workers))
                lines.append([name, f"{workers} process{'es' * (workers > 1)}", *told])
        lines.append(["histogram of 2,000 cells", "Dask, two workers", *on_dask(folder)])
        title = f"{options.rows:,} rows, {size / 1e9:.1f} GB of Parquet"
        table(title, ["release", "counted by", "seconds", "largest process, MB"], lines)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
