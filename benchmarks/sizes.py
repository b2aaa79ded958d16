"""Mechanisms, releases and commands by their sizes: seconds, memory and bytes of files.

Beside an earlier commit, whose packages run in the same environment from a checkout of its own;
what takes longer than a minute is stopped. Every row is a process, with a cache of designs that is
empty; memory is the largest resident set, with all libraries. Prints a Markdown table, and draws
how a closed form grows with n.

    python benchmarks/sizes.py [--before COMMIT] [--out sizes.png]   twenty minutes, 300 MB of disk
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

LIMIT = 60  # seconds of a row

TABLE = """
import numpy as np
rng = np.random.default_rng(1)
sizes = rng.permutation(np.unique(np.geomspace(1, 10**6, 9000).astype(int)))[:5000]
lines = [f"a{k},{size},{size // 3}" for k, size in enumerate(sizes.tolist())]
open("groups.csv", "w").write("area,size,count\\n" + "\\n".join(lines) + "\\n")

import pyarrow as pa
from pyarrow.csv import CSVWriter
from frequency.schema import Categorical, Numeric, Schema
from mechdesign.cli import main
labels = [f"region {k:02}" for k in range(50)]
age, region = Numeric("age", low=0, high=99, whole=True), Categorical("region", labels)
Schema([age, region]).save("people.toml")
names, part = ["id", "age", "region", "income"], 10**6
kinds = [pa.int64(), pa.int64(), pa.string(), pa.int64()]
schema = pa.schema(zip(names, kinds))
with CSVWriter("people.csv", schema) as writer:
    for start in range(0, 10**7, part):
        ages, places = rng.binomial(99, 0.4, part), np.array(labels)[rng.integers(0, 50, part)]
        ids, incomes = np.arange(start, start + part), rng.integers(0, 10**5, part)
        writer.write_table(pa.table([ids, ages, places, incomes], schema=schema))
command = "curate people.csv --schema people.toml --attribute age --epsilon 1 --out age.release"
raise SystemExit(main(command.split()))
"""

RELEASE = """
from mechdesign.cli import main
command = "release-table groups.csv --count count --size size --epsilon 0.5 --property WH"
raise SystemExit(main([*command.split(), "--keep", "area", "--no-cache", "--out", "released.json"]))
"""

COMMAND = """
from mechdesign.cli import main
raise SystemExit(main({!r}.split()))
"""

CURATE = "curate people.csv --schema people.toml --attribute age --epsilon 1 --out new.release"

COUNT = """
import duckdb
duckdb.sql("select {0}, count(*) from 'people.csv' group by {0}").fetchall()
"""

ROWS = {
    "GM, n = 100,000: build, audit, file": """
from mechdesign import named
mechanism = named.geometric(100_000, alpha="9/10")
assert mechanism.audit().holds
mechanism.save("gm.json")
""",
    "GM, n = 100,000: 10^6 draws": """
import numpy as np
from mechdesign import named
named.geometric(100_000, alpha="9/10").release(np.full(10**6, 50_012))
""",
    "EM, n = 10^9: errors, explanation, file": """
from mechdesign import named
from mechdesign.mechanism.explanation import explain
mechanism = named.explicit_fair(10**9, alpha="3/5")
str(explain(mechanism)), str(mechanism.error_distribution())
mechanism.save("em.json")
""",
    "design, n = 1,000, L0, WH, epsilon 0.5": """
from mechdesign import Privacy, design
design(1000, Privacy.from_epsilon(0.5), properties=["WH"]).save("wh.json")
""",
    "design, n = 100, L0, WH + CM, epsilon 0.5: two groups": """
from mechdesign import Privacy, tables
privacy = Privacy.from_epsilon(0.5)
tables.release([30, 40], [100, 99], privacy, properties=["WH", "CM"], cache=False).save("two.json")
""",
    "design, n = 300, L0, WH + CM, epsilon 0.5: two groups": """
from mechdesign import Privacy, tables
privacy = Privacy.from_epsilon(0.5)
tables.release([30, 40], [300, 299], privacy, properties=["WH", "CM"], cache=False).save("two.json")
""",
    "release-table, 5,000 groups of 1 to 10^6, WH": RELEASE,
    "curate, 10^7 rows: 100 cells": COMMAND.format(CURATE),
    "DuckDB counts the same": COUNT.format("age"),
    "curate, 10^7 rows: 100 x 50 cells": COMMAND.format(f"{CURATE} --attribute region"),
    "DuckDB counts these": COUNT.format("age, region"),
    "first design for ranges: 100 cells": """
from mechdesign import plan
plan("curated-ranges", 100, epsilon=1)
""",
    "first design for ranges: 100 x 50 cells, the 50 without an order": """
from mechdesign import plan
plan("curated-ranges", {"age": 100, "region": 50}, epsilon=1, unordered="region")
""",
    "`mechdesign --version`": COMMAND.format("--version"),
    "`query` of a release": COMMAND.format("query age.release --where age=18:64"),
    "`plan ranges`, 1,024 items": COMMAND.format(
        "plan ranges --domain 1024 --n 100000 --epsilon 1"
    ),
    "`plan marginals`, 16 x 9 x 7 x 6 x 5 values": COMMAND.format(
        "plan marginals --domain 16,9,7,6,5 --n 100000 --epsilon 1"
    ),
}

DESIGN = """
from mechdesign import Privacy, design
from mechdesign.losses import L1, L2
assert design({n}, {privacy}, {loss}(), {wanted}).certificate.gap == 0
"""

for n, loss, wanted, alpha in (
    (128, "L2", "WH", "3/5"),
    (128, "L1", "WH CM", "3/5"),
    (128, "L2", "WH CM RM", None),
    (256, "L2", "WH", "9/10"),
    (256, "L2", "WH", "3/5"),
    (256, "L1", "WH CM", "3/5"),
    (256, "L2", "WH CM", "9/10"),
    (256, "L2", "WH CM RM", "3/5"),
    (256, "L2", "WH CM RM", None),
    (256, "L2", "WH CM RM", "9/10"),
):
    privacy = f'Privacy(alpha="{alpha}")' if alpha else "Privacy.from_epsilon(0.5)"
    title = f"design, n = {n}, {loss}, {wanted.replace(' ', ' + ')}, "
    title += f"alpha {alpha}" if alpha else "epsilon 0.5"
    ROWS[title] = DESIGN.format(n=n, loss=loss, privacy=privacy, wanted=wanted.split())


REPORT = """
import atexit, resource
atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def environment(tree: Path, folder: Path) -> dict[str, str]:
    """That of a process which has the packages of a checkout, and no designs yet."""
    shutil.rmtree(designs := folder.with_name("designs"), ignore_errors=True)
    own = {"PYTHONPATH": str(tree), "MECHDESIGN_CACHE": str(designs)}
    return {**os.environ, **own, "OPENBLAS_NUM_THREADS": "1"}


def measured(code: str, tree: Path, folder: Path) -> tuple[str, str, str]:
    """Seconds, megabytes and kilobytes of files of a row, by the packages of a checkout."""
    before = {path.name for path in folder.iterdir()}
    start = time.perf_counter()
    try:
        run = subprocess.run(
            [sys.executable, "-c", REPORT + code],
            cwd=folder,
            env=environment(tree, folder),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"over {LIMIT}", "-", "-"
    seconds = time.perf_counter() - start
    written = [path for path in folder.iterdir() if path.name not in before]
    size = sum(path.stat().st_size for path in written)
    for path in written:
        path.unlink()
    if run.returncode:
        return "refused", "-", "-"
    memory = int(run.stdout.split()[-1]) // 1024
    return f"{seconds:.2f}", f"{memory}", f"{size / 1000:.1f}"


def described(tree: Path) -> None:
    """Give a checkout the entry points by which its commands and tasks are found."""
    groups = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["entry-points"]
    (information := tree / "mechdesign-0.dist-info").mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mechdesign\nVersion: 0\n")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in points.items()))
    ]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")


def grown(out: Path) -> None:
    """Draw how build, audit, explanation and file of GM and of EM grow with n."""
    from mechdesign import named
    from mechdesign.base import figures
    from mechdesign.mechanism.explanation import explain

    sizes = [1 << k for k in (4, 6, 7, 10, 13, 17, 20, 30, 45, 62)]
    str(explain(named.explicit_fair(100, 0.5)))  # imports
    seconds: dict[str, list[float]] = {"GM": [], "EM": []}
    for name, make in (("GM", named.geometric), ("EM", named.explicit_fair)):
        for n in sizes:
            start = time.perf_counter()
            mechanism = make(n, 0.5)
            str(explain(mechanism)), mechanism.audit(), str(mechanism.error_distribution())
            seconds[name].append(time.perf_counter() - start)
    with figures.style():
        figure, axes = figures.panel("n", "seconds: audit, errors, explanation", 6.0)
        for (name, line), colour, dash in zip(
            seconds.items(), figures.COLOURS, figures.DASHES, strict=False
        ):
            axes.plot(sizes, line, "o", linestyle=dash, color=colour, label=name)
        axes.set_xscale("log")
        axes.set_ylim(0, None)
        axes.legend(frameon=False)
        figure.savefig(out, dpi=150)


def main() -> None:
    """Measure every row, now and before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default="874e8c50")
    parser.add_argument("--out", type=Path, default=Path("sizes.png"))
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as name:
        folder, earlier = Path(name) / "work", Path(name) / "before"
        folder.mkdir()
        work = ["git", "-C", str(here), "worktree"]
        subprocess.run([*work, "add", "-q", "--detach", str(earlier), options.before], check=True)
        try:
            described(earlier)
            subprocess.run(  # by the earlier packages, whose release both read
                [sys.executable, "-c", TABLE],
                cwd=folder,
                env=environment(earlier, folder),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            print("| | seconds before | now | MB before | now | kB of files before | now |")
            print("| --- | --- | --- | --- | --- | --- | --- |")
            for title, code in ROWS.items():
                pairs = zip(
                    measured(code, earlier, folder), measured(code, here, folder), strict=True
                )
                cells = [cell for pair in pairs for cell in pair]
                print(f"| {title} | {' | '.join(cells)} |", flush=True)
        finally:
            subprocess.run([*work, "remove", "--force", str(earlier)], check=True)
    grown(options.out)


if __name__ == "__main__":
    main()
