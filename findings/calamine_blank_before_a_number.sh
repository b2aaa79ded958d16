#!/usr/bin/env bash
# A blank before a number makes a whole workbook unreadable to calamine.
#
# Seen with python-calamine 0.9.1: a sheet of which one cell has a blank before its number in the
# XML, as some programs write (the example workbook "datasets.xlsx" of R's package readxl does), is
# refused with "Parse float error: invalid float literal", and no cell of it can be read. XML Schema
# has blanks around numbers removed before they are read; openpyxl 3.1.5 reads the cell.
#
# Output seen:
#   openpyxl 3.1.5: [('x',), (41,), (15,)]
#   python-calamine 0.9.1: CalamineError: Parse float error: invalid float literal
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet python-calamine==0.9.1 openpyxl==3.1.5
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import openpyxl
import python_calamine

folder = Path(sys.argv[1])
book = openpyxl.Workbook()
for cell in ("x", 41, 15):
    book.active.append([cell])
book.save(folder / "plain.xlsx")
blank = folder / "blank.xlsx"
with zipfile.ZipFile(folder / "plain.xlsx") as plain, zipfile.ZipFile(blank, "w") as changed:
    for name in plain.namelist():
        changed.writestr(name, plain.read(name).replace(b"<v>41</v>", b"<v> 41</v>"))
rows = [*openpyxl.load_workbook(blank).active.values]
print(f"openpyxl {openpyxl.__version__}: {rows}")
assert rows == [("x",), (41,), (15,)], "openpyxl has changed"
plain_rows = python_calamine.load_workbook(folder / "plain.xlsx").get_sheet_by_index(0).to_python()
assert plain_rows == [["x"], [41], [15]], "python-calamine has changed"
try:
    python_calamine.load_workbook(blank).get_sheet_by_index(0).to_python()
except python_calamine.CalamineError as error:
    print(f"python-calamine {version('python-calamine')}: {type(error).__name__}: {error}")
    assert "invalid float literal" in str(error), "python-calamine has changed"
else:
    raise SystemExit("python-calamine has changed: it reads the cell")
PYTHON
