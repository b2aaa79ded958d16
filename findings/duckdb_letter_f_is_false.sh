#!/usr/bin/env bash
# A column in which everybody is "f" is a column of false to DuckDB.
#
# Seen with duckdb 2.0.1: where all values of a column of a CSV file are "f" or "t", its type is
# said to be BOOLEAN, so that the sex of the women of a survey is read as false, without a warning;
# with a single "m" among them the column is text. In a file sorted by sex the "m" may come after
# the rows that the type is told from (20,480): then reading ends in a conversion error. Polars
# 2.1.0 and pyarrow 26.0.1 read text. Name the type of each column (types={"sex": "VARCHAR"}).
#
# Output seen:
#   duckdb 2.0.1: ['f', 'f'] is read as BOOLEAN [False, False]
#   duckdb 2.0.1: ['f', 'm'] is read as VARCHAR ['f', 'm']
#   duckdb 2.0.1: 30,000 times f, then m: ConversionException
#   polars 2.1.0: ['f', 'f'], pyarrow 26.0.1: ['f', 'f']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1
"$folder/venv/bin/python" -W ignore - "$folder/people.csv" <<'PYTHON'
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv

path = Path(sys.argv[1])


def write(values):
    path.write_text("id,sex\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))


for values, expected in (
    (["f", "f"], ("BOOLEAN", [False, False])),
    (["f", "m"], ("VARCHAR", ["f", "m"])),
):
    write(values)
    table = duckdb.read_csv(str(path))
    found = str(table.types[1]), [sex for _, sex in table.fetchall()]
    print(f"duckdb {duckdb.__version__}: {values} is read as", *found)
    assert found == expected, "duckdb has changed"
write(["f"] * 30_000 + ["m"])
try:
    duckdb.read_csv(str(path)).fetchall()
except duckdb.ConversionException as error:
    print(f"duckdb {duckdb.__version__}: 30,000 times f, then m: {type(error).__name__}")
else:
    raise SystemExit("duckdb has changed: it reads the file")
write(["f", "f"])
of_polars = pl.read_csv(path)["sex"].to_list()
of_arrow = pyarrow.csv.read_csv(path)["sex"].to_pylist()
print(f"polars {pl.__version__}: {of_polars}, pyarrow {pa.__version__}: {of_arrow}")
assert of_polars == of_arrow == ["f", "f"], "polars or pyarrow has changed"
PYTHON
