"""Sums, means and keys beside OpenDP, Tumult Analytics and SmartNoise SQL.

Every system releases the numbers of people, sums and means of eight groups of 5 to 20,000, with
epsilon 1 in all, one row a person and the same bounds: OpenDP a count and a sum, whose ratio is the
mean; Tumult Analytics the same, or in the place of the sum its average, whichever is better;
SmartNoise SQL a count and a sum. Sums and means are within the bounds: so ratios are clipped.

Of keys that nobody listed, 20 of each number of users from 1 to 100, the share that is kept, with
delta 1e-6: of OpenDP and SmartNoise SQL with their numbers of users, and of Tumult Analytics alone.

Prints Markdown tables: root mean square errors of this project over those of the best peer, the
share of 95 % intervals that held, seconds for a table of 10^6 rows, reading it included; and of how
many keys are kept.

Peers run where ``--opendp``, ``--tumult`` and ``--smartnoise`` name a Python that has opendp 0.16
with polars 1.36.1, tmlt.analytics 0.21 (and Java), smartnoise-sql 1.0.10.

    python benchmarks/curator_peers.py [--repeats N] [--opendp PYTHON] ..            fifteen minutes
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from range_queries import one_core, table

from frequency.schema import Categorical, Numeric, Schema, Text
from mechdesign import Privacy
from rangeq.central import GroupedSums, Release, ReleasedKeys, key_rules

SIZES = (5, 20, 50, 100, 300, 1000, 5000, 20_000)
COPIES = 8  # of each group in a table, with the same numbers: as many errors of one release
LABELS = [f"g{k}-{copy}" for k in range(len(SIZES)) for copy in range(COPIES)]

KINDS: dict[str, tuple[float, float, Any]] = {  # bounds, and what draws the numbers
    "incomes": (0.0, 100_000.0, lambda rng, n: rng.lognormal(10, 0.7, n)),
    "ages": (18.0, 90.0, lambda rng, n: rng.integers(18, 80, n)),
    "yes or no": (0.0, 1.0, lambda rng, n: rng.random(n) < 0.2),
    "scores": (-10.0, 10.0, lambda rng, n: rng.normal(2, 3, n).round(2)),
}

# Each prints a JSON list with, for every repeat, counts, sums and perhaps means by group.
OPENDP = """
import json, sys
import opendp.prelude as dp, polars as pl
path, low, high, repeats = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
dp.enable_features("contrib")
frame = pl.scan_csv(path, schema={"g": pl.String, "x": pl.Float64})
margin = dp.polars.Margin(by=["g"], invariant="keys", max_length=10**5, max_groups=100)
found = []
for _ in range(repeats):
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1, margins=[margin])
    number = pl.col("x").fill_null(0.0).fill_nan(0.0).dp.sum((low, high))
    told = context.query().group_by("g").agg(dp.len(), number).release().collect().sort("g")
    found.append([told["len"].to_list(), told["x"].to_list()])
print(json.dumps(found))
"""

TUMULT = """
import json, sys
import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session
path, low, high, repeats = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1")
spark = spark.config("spark.ui.enabled", "false").getOrCreate()
data = pd.read_csv(path)
people = spark.createDataFrame(data)
labels = sorted(data["g"].unique())
session = Session.from_dataframe(PureDPBudget(float("inf")), "t", people, AddOneRow())
groups = QueryBuilder("t").groupby(KeySet.from_dict({"g": labels}))
asked = [groups.count(name="v"), groups.sum("x", low=low, high=high, name="v"),
         groups.average("x", low=low, high=high, name="v")]
found = []
for _ in range(repeats):
    told = [{row["g"]: float(row["v"])
             for row in session.evaluate(one, PureDPBudget(0.5)).collect()} for one in asked]
    found.append([[each[label] for label in labels] for each in told])
print(json.dumps(found))
"""

SMARTNOISE = """
import json, sys
import pandas as pd, snsql
path, low, high, repeats = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
data = pd.read_csv(path)
column = {"type": "float", "lower": low, "upper": high}
described = {"": {"d": {"t": {"row_privacy": True, "rows": len(data), "censor_dims": False,
                              "g": {"type": "string"}, "x": column}}}}
reader = snsql.from_df(
    data, privacy=snsql.Privacy(epsilon=0.5, delta=1e-9), metadata=described)
asked = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM d.t GROUP BY g"
assert reader.get_privacy_cost(asked)[0] <= 1.0 + 1e-9
found = []
for _ in range(repeats):
    told = sorted(reader.execute(asked)[1:])
    found.append([[float(row[k]) for row in told] for k in (1, 2)])
print(json.dumps(found))
"""

PEERS = {"opendp": OPENDP, "tumult": TUMULT, "smartnoise": SMARTNOISE}

DELTA = "1e-6"

# Each prints a JSON list with, for every repeat, the keys that were kept.
OPENDP_KEYS = """
import json, sys
import opendp.prelude as dp, polars as pl
path, delta, repeats = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
dp.enable_features("contrib")
frame = pl.scan_csv(path, schema={"g": pl.String})
margin = dp.polars.Margin(by=[], max_length=10**6, max_groups=10**5)
found = []
for _ in range(repeats):
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=delta), split_evenly_over=1, margins=[margin])
    found.append(context.query().group_by("g").agg(dp.len()).release().collect()["g"].to_list())
print(json.dumps(found))
"""

TUMULT_KEYS = """
import json, sys
import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, ApproxDPBudget, QueryBuilder, Session
path, delta, repeats = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1")
spark = spark.config("spark.ui.enabled", "false").getOrCreate()
people = spark.createDataFrame(pd.read_csv(path))
session = Session.from_dataframe(ApproxDPBudget(float("inf"), 1), "t", people, AddOneRow())
asked, budget = QueryBuilder("t").get_groups(["g"]), ApproxDPBudget(1, delta)
found = [[row["g"] for row in session.evaluate(asked, budget).collect()] for _ in range(repeats)]
print(json.dumps(found))
"""

SMARTNOISE_KEYS = """
import json, sys
import pandas as pd, snsql
path, delta, repeats = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
data = pd.read_csv(path)
described = {"": {"d": {"t": {"row_privacy": True, "rows": len(data), "censor_dims": True,
                              "g": {"type": "string"}}}}}
reader = snsql.from_df(data, privacy=snsql.Privacy(epsilon=1.0, delta=delta), metadata=described)
asked = "SELECT g, COUNT(*) AS n FROM d.t GROUP BY g"
found = [[row[0] for row in reader.execute(asked)[1:]] for _ in range(repeats)]
print(json.dumps(found))
"""

KEYS = {"opendp": OPENDP_KEYS, "tumult": TUMULT_KEYS, "smartnoise": SMARTNOISE_KEYS}

LARGEST, ALIKE, SHOWN = 100, 20, (10, 12, 13, 14, 15, 16, 18, 20)


def people(kind: str, sizes: tuple[int, ...], seed: int = 1) -> pd.DataFrame:
    """A table of groups of these sizes."""
    low, high, drawn = KINDS[kind]
    rng = np.random.default_rng(seed)
    groups = [np.asarray(drawn(rng, size), dtype=float) for size in sizes]
    numbers = np.concatenate([group for group in groups for _ in range(COPIES)])
    labels = np.repeat(LABELS, np.repeat(sizes, COPIES))
    frame = pd.DataFrame({"g": labels, "x": np.clip(numbers, low, high).round(2)})
    return frame.sample(frac=1, random_state=seed)


def of_peer(python: str, script: str, *arguments: Any) -> list[Any]:
    """What a peer released."""
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    given = [python, "-c", script, *map(str, arguments)]
    with tempfile.TemporaryDirectory() as where:  # Spark leaves tables where it runs
        ran = subprocess.run(
            given, capture_output=True, text=True, env=environment, cwd=where, check=False
        )
    if ran.returncode:
        raise SystemExit(f"{python} failed:\n{ran.stderr[-2000:]}")
    found: list[Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return found


def own(frame: pd.DataFrame, kind: str, repeats: int) -> tuple[list[Any], dict[str, float]]:
    """Counts, sums and means that are released here, and the shares of intervals that held."""
    low, high, _ = KINDS[kind]
    schema = Schema([Categorical("g", LABELS), Numeric("x", low=low, high=high, bins=10)])
    sums = GroupedSums(schema)
    mechanism = sums.mechanism(Privacy.from_epsilon(1))
    counts = sums.count([frame], mechanism)
    grouped = frame.groupby("g")["x"]
    truths = {"total": grouped.sum(), "mean": grouped.mean()}
    rng, found = np.random.default_rng(2), []
    held: dict[str, list[bool]] = {"total": [], "mean": []}
    for _ in range(repeats):
        estimate = Release.draw(schema, mechanism, counts, rng, sums=sums).estimate
        numbers = [estimate.answer({"g": label}).value for label in LABELS]
        told: dict[str, list[float]] = {"total": [], "mean": []}
        for name, label in ((name, label) for name in told for label in LABELS):
            try:
                answer = getattr(estimate, name)("x", {"g": label})
            except ValueError:  # nobody is estimated to be there: the middle is as good as any
                told[name].append((low + high) / 2)
                continue
            told[name].append(answer.value)
            first, last = answer.interval()
            slack = 1e-9 * abs(truths[name][label])
            held[name].append(first - slack <= truths[name][label] <= last + slack)
        found.append([numbers, told["total"], told["mean"]])
    return found, {name: float(np.mean(each)) for name, each in held.items()}


def errors(found: list[Any], frame: pd.DataFrame, kind: str) -> dict[str, Any]:
    """The root mean square errors of sums and means by group: the better of two ways."""
    low, high, _ = KINDS[kind]
    grouped = frame.groupby("g")["x"]
    sums, means = grouped.sum().to_numpy(), grouped.mean().to_numpy()
    told = np.array(found, dtype=float)  # (repeats, numbers, groups)
    count = np.maximum(told[:, 0], 1.0)
    ways = [(told[:, 1], told[:, 1] / count)]
    if told.shape[1] > 2:
        ways += [(told[:, 0] * told[:, 2], told[:, 2])]

    def error(values: Any, truth: Any) -> Any:
        squares = np.mean((values - truth) ** 2, axis=0)
        return np.sqrt(squares.reshape(len(SIZES), COPIES).mean(axis=1))

    return {
        "sum": np.min([error(total, sums) for total, _ in ways], axis=0),
        "mean": np.min([error(np.clip(mean, low, high), means) for _, mean in ways], axis=0),
    }


KEYS_HEAD = ["of users", *map(str, SHOWN), f"10 to {LARGEST}, of {ALIKE * (LARGEST - 9)}"]


def kept_keys(folder: Path, pythons: dict[str, str], repeats: int) -> Iterator[list[str]]:
    """The shares of keys that are kept by their numbers of users, and how many in all."""
    counts = {f"c{c}_{k}": c for c in range(1, LARGEST + 1) for k in range(ALIKE)}
    rows = np.repeat(list(counts), list(counts.values()))
    path = folder / "keys.csv"
    pd.DataFrame({"g": rows}).to_csv(path, index=False)
    schema, rule = Schema([Text("g")]), key_rules(1, DELTA)[0]
    rng = np.random.default_rng(1)
    told = [ReleasedKeys.draw(schema, rule, counts, rng).labels for _ in range(10 * repeats)]
    found: dict[str, list[Any]] = {"here": told}
    for name, python in pythons.items():
        found[name] = of_peer(python, KEYS[name], path, DELTA, max(repeats // 4, 2))
    for name, lists in found.items():
        kept = np.zeros(LARGEST + 1)
        for key in (key for labels in lists for key in labels):
            kept[counts[key]] += 1 / len(lists)
        yield [name, *(f"{kept[c] / ALIKE:.2f}" for c in SHOWN), f"{kept[10:].sum():.1f}"]


def whole_process(path: Path, folder: Path) -> str:
    """The seconds and megabytes of the command for a table of 10^6 rows."""
    schema = folder / "t.toml"
    low, high, _ = KINDS["incomes"]
    Schema([Categorical("g", LABELS), Numeric("x", low=low, high=high, bins=10)]).save(schema)
    given = ["/usr/bin/time", "-f", "%e s, %M kB", sys.executable, "-m", "mechdesign", "curate"]
    given += [str(path), "--schema", str(schema), "--mean", "x", "--by", "g", "--epsilon", "1"]
    given += ["--out", str(folder / "t.release")]
    start = time.perf_counter()
    ran = subprocess.run(given, capture_output=True, text=True, check=False)
    if ran.returncode:
        return f"{time.perf_counter() - start:.1f} s ({ran.stderr.strip()[-80:]})"
    return ran.stderr.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=30)
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    options = parser.parse_args()
    one_core()
    # Absolute, as peers run elsewhere
    pythons = {
        name: str(Path(shutil.which(given) or given).absolute())
        for name in PEERS
        if (given := getattr(options, name))
    }
    rows: list[list[str]] = []
    logs: list[float] = []
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        for kind in KINDS:
            frame, path = people(kind, SIZES), folder / "t.csv"
            low, high, _ = KINDS[kind]
            frame.to_csv(path, index=False)
            # Each peer's repeats are slow, and ours are not
            found, held = own(frame, kind, 5 * options.repeats)
            here = errors(found, frame, kind)
            peers = {
                name: errors(
                    of_peer(python, PEERS[name], path, low, high, options.repeats), frame, kind
                )
                for name, python in pythons.items()
            }
            for what, interval in (("sum", "total"), ("mean", "mean")):
                cells = [f"{error:.3g}" for error in here[what]]
                rows.append([kind, what, "here", *cells, f"{held[interval]:.3f}"])
                for name, theirs in peers.items():
                    rows.append([kind, what, name, *(f"{e:.3g}" for e in theirs[what]), ""])
                if peers:
                    best = np.min([theirs[what] for theirs in peers.values()], axis=0)
                    ratios = here[what] / best
                    logs += np.log(ratios).tolist()
                    rows.append(
                        [kind, what, "here over the best", *map("{:.2f}".format, ratios), ""]
                    )
        title = "Root mean square errors by the size of groups, epsilon 1"
        table(title, ["numbers", "of", "by", *map("{:,}".format, SIZES), "held"], rows)
        if logs:
            print(
                f"over the best peer: geometric mean {math.exp(np.mean(logs)):.2f}, worst"
                f" {math.exp(max(logs)):.2f}\n"
            )
        table("Keys that are kept", KEYS_HEAD, kept_keys(folder, pythons, options.repeats))
        large = folder / "large.csv"
        share = 10**6 // len(LABELS)
        people("incomes", (share,) * len(SIZES)).to_csv(large, index=False)
        print(f"10^6 rows of a CSV file, whole process: {whole_process(large, folder)}")


if __name__ == "__main__":
    main()
