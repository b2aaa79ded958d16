#!/usr/bin/env bash
# A library for tables of a census says nothing of the library that it cannot do without.
#
# Seen with cell_key_perturbation 3.1.0 (Office for National Statistics): its metadata name no
# requirement at all, so that pip installs it alone, and its one function cannot be imported: pandas
# is missing. With pandas beside it, it works. Who pins its releases has to pin pandas, too.
#
# Output seen:
#   cell_key_perturbation 3.1.0 requires: nothing
#   alone: No module named 'pandas'
#   with pandas: 12 people, noise 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cell_key_perturbation==3.1.0
cat > "$folder/look.py" <<'PYTHON'
import contextlib
import io
import sys
from importlib.metadata import requires, version

wanted = requires("cell_key_perturbation")
assert not wanted, f"requirements are stated now: {wanted}"
try:
    from cell_key_perturbation.create_perturbed_table import create_perturbed_table
except ModuleNotFoundError as missing:
    assert sys.argv[1] == "alone", "it cannot be imported with pandas, either"
    print(f"cell_key_perturbation {version('cell_key_perturbation')} requires: nothing")
    print(f"alone: {missing}")
else:
    assert sys.argv[1] == "with pandas", "it can be imported alone now"
    import pandas as pd

    # No noise for any count at any key
    cells = [(count, key, 0) for count in range(1, 751) for key in range(256)]
    noise = pd.DataFrame(cells, columns=["pcv", "ckey", "pvalue"])
    people = pd.DataFrame({"town": ["a"] * 12, "key": [*range(244, 256)]})
    with contextlib.redirect_stdout(io.StringIO()):
        table = create_perturbed_table(
            data=people, ptable=noise, geog=[], tab_vars=["town"], record_key="key"
        )
    (row,) = table.to_dict("records")
    print(f"with pandas: {row['count']:.0f} people, noise {row['pvalue']}")
PYTHON
"$folder/venv/bin/python" "$folder/look.py" alone
"$folder/venv/bin/pip" install --quiet pandas==2.3.3
"$folder/venv/bin/python" -W ignore "$folder/look.py" "with pandas"
