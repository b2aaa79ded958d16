#!/usr/bin/env bash
# Tables of a SAS transport file behind the first are read as rows of the first.
#
# Seen with pyreadstat 1.3.7 and pandas 3.1.1: of a version 5 transport file with two tables, which
# the format provides for and SAS writes of a library, both return the rows of the first table and
# then, without an error or a warning of it, the headers and the data of the second one cut into
# rows of the first: 115 rows in the place of 3, with numbers such as 3.7e-40. The first rows are
# right, so that a look at the head of the table shows nothing. Version 8 files say how many rows a
# table has: pyreadstat stops there, and names no other table.
#
# Output seen:
#   pyreadstat 1.3.7: 115 rows, age of row 3: 3.687825414344431e-40
#   pandas 3.1.1: 115 rows, age of row 3: 3.687825414344431e-40
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1 pyreadstat==1.3.7
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
import warnings
from pathlib import Path

import pandas as pd
import pyreadstat

folder = Path(sys.argv[1])
people = pd.DataFrame({"age": [35.0, 17.0, 60.0], "sex": ["f", "m", "f"]})
others = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 10})
for name, table in (("people", people), ("others", others)):
    path = str(folder / f"{name}.xpt")
    pyreadstat.write_xport(table, path, table_name=name.upper(), file_format_version=5)
# A library is its header, of three records of 80 bytes, and then one table after the other
first, second = ((folder / f"{name}.xpt").read_bytes() for name in ("people", "others"))
library = folder / "library.xpt"
library.write_bytes(first + second[240:])
warnings.simplefilter("ignore")  # of encodings, which both tables have
for module, read in (
    (pyreadstat, lambda: pyreadstat.read_xport(str(library))[0]),
    (pd, lambda: pd.read_sas(library)),
):
    table = read()
    print(f"{module.__name__} {module.__version__}: {len(table)} rows, age of row 3: {table['age'][3]}")
    assert table["age"][:3].tolist() == [35.0, 17.0, 60.0], f"{module.__name__} has changed"
    assert len(table) == 115, f"{module.__name__} has changed"
PYTHON
