"""Release a column of counts from a CSV file: rows a second, and memory.

Prints a Markdown table.

python benchmarks/release_column.py [--quick]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from range_queries import one_core, table

from mechdesign import named
from mechdesign.mechanism.mechanism import release_column

LARGEST, BLOCK = 8, 1_000_000


def written(path: Path, rows: int, separator: str, zeros: str) -> None:
    """Identifiers, names of wards and counts."""
    rng = np.random.default_rng(1)
    with path.open("w") as stream:
        stream.write(separator.join(("id", "ward", "count")) + "\n")
        for start in range(0, rows, BLOCK):
            counts = rng.integers(0, LARGEST + 1, min(BLOCK, rows - start)).tolist()
            stream.writelines(
                f"{i}{separator}ward {i % 997}{separator}{count}{zeros}\n"
                for i, count in enumerate(counts, start)
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    rows = 10_000_000 // (10 if parser.parse_args().quick else 1)
    one_core()
    mechanism = named.geometric(LARGEST, alpha="9/10")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "true.csv"), Path(folder, "released.csv")
        for separator, zeros in ((",", ""), (";", ",0")):
            written(source, rows, separator, zeros)
            for keep in ((), ("id", "ward")):
                wall, processor = time.perf_counter(), time.process_time()
                release_column(mechanism, source, target, "count", keep)
                wall, processor = time.perf_counter() - wall, time.process_time() - processor
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                found.append(
                    [
                        f"7{zeros}",
                        separator,
                        f"{len(keep)} of 2",
                        f"{wall:.0f}",
                        f"{processor:.0f}",
                        f"{rows / processor:,.0f}",
                        f"{peak:.0f}",
                    ]
                )
    table(
        f"Release of {rows:,} rows of three columns from CSV to CSV, secure randomness",
        ["counts", "separator", "kept", "s", "processor, s", "rows a processor second", "MB, peak"],
        found,
    )


if __name__ == "__main__":
    main()
