#!/usr/bin/env bash
# A zero in a SAS transport file is no zero to pandas.
#
# Seen with pandas 3.1.1 and pyreadstat 1.3.7: pandas.read_sas returns 5.397605346934028e-79, which
# is 16^-65, for every 0 of a version 5 transport file, so that comparisons with 0 and counts of
# zeros fail; other numbers, and missing values, are read as they are. pyreadstat reads 0. In the
# format all bytes of a zero are 0, and its exponent of base 16 is none: it is taken for one.
#
# Output seen:
#   pandas 3.1.1: [5.397605346934028e-79, 1.0, -2.5] zeros: 0
#   pyreadstat 1.3.7: [0.0, 1.0, -2.5] zeros: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1 pyreadstat==1.3.7
"$folder/venv/bin/python" - "$folder/numbers.xpt" <<'PYTHON'
import sys

import pandas as pd
import pyreadstat

path = sys.argv[1]
pyreadstat.write_xport(pd.DataFrame({"x": [0.0, 1.0, -2.5]}), path, file_format_version=5)
by_pandas = pd.read_sas(path)["x"].tolist()
by_pyreadstat = pyreadstat.read_xport(path)[0]["x"].tolist()
print(f"pandas {pd.__version__}: {by_pandas} zeros: {by_pandas.count(0)}")
print(f"pyreadstat {pyreadstat.__version__}: {by_pyreadstat} zeros: {by_pyreadstat.count(0)}")
assert by_pandas == [16.0**-65, 1.0, -2.5], "pandas has changed"
assert by_pyreadstat == [0.0, 1.0, -2.5], "pyreadstat has changed"
PYTHON
