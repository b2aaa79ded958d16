#!/usr/bin/env bash
# The order of an ordered category is gone where Arrow has carried it.
#
# Seen with polars 2.1.0 and duckdb 2.0.1: an ordered category of pandas 3.1.1 is a dictionary of
# Arrow that says it is ordered, and a Parquet file keeps that. Polars makes a Categorical of it,
# and sorts it by the alphabet; DuckDB makes text of it. Both without a warning: the highest of
# "low", "middle" and "high" is "middle" to both then. Of the DataFrame itself DuckDB makes an ENUM
# in the order of the categories, so that one question about the same table has two answers.
#
# Output seen:
#   pandas 3.1.1: highest high; Arrow says ordered: True
#   polars 2.1.0: highest middle
#   duckdb 2.0.1: highest of the DataFrame high, of Arrow middle, of Parquet middle
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1
"$folder/venv/bin/python" -W ignore - "$folder/levels.parquet" <<'PYTHON'
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

path = sys.argv[1]
levels = pd.Categorical(["middle", "high", "low"], ["low", "middle", "high"], ordered=True)
frame = pd.DataFrame({"level": levels})
table = pa.Table.from_pandas(frame)
frame.to_parquet(path)
ordered = table.schema.field("level").type.ordered
print(f"pandas {pd.__version__}: highest {frame['level'].max()}; Arrow says ordered: {ordered}")
assert (frame["level"].max(), ordered) == ("high", True), "pandas or pyarrow has changed"
of_polars = pl.from_arrow(table)["level"].sort()[-1]
print(f"polars {pl.__version__}: highest {of_polars}")
assert of_polars == "middle", "polars has changed"
connection = duckdb.connect()
found = [
    connection.sql("select max(level) from data").fetchall()[0][0]
    for data in (frame, table, connection.read_parquet(path))
]
print(f"duckdb {duckdb.__version__}: highest of the DataFrame {found[0]},", end=" ")
print(f"of Arrow {found[1]}, of Parquet {found[2]}")
assert found == ["high", "middle", "middle"], "duckdb has changed"
PYTHON
