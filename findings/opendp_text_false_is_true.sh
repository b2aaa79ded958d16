#!/usr/bin/env bash
# The text "false" is true to OpenDP.
#
# Seen with opendp 0.16.0: the cast of text to bool asks whether the text is empty, so that "false",
# "0" and "no" are True, while false is cast to the text "false": a column read from a CSV file that
# holds true and false is counted as all true. The cast of text to int knows no "1.0" and no blank
# before a digit: with a default, such a cell is 0 without notice; with make_cast it is None.
#
# Output seen:
#   opendp 0.16.0: ['true', 'false', '0', ''] as bool: [True, True, True, False]
#   opendp 0.16.0: [True, False] as str: ['true', 'false']
#   opendp 0.16.0: ['1', ' 2', '3.0'] as int: [1, 0, 0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet opendp==0.16.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import opendp.prelude as dp

dp.enable_features("contrib")
for cells, of, to, expected in (
    (["true", "false", "0", ""], str, bool, [True, True, True, False]),
    ([True, False], bool, str, ["true", "false"]),
    (["1", " 2", "3.0"], str, int, [1, 0, 0]),
):
    domain = dp.vector_domain(dp.atom_domain(T=of))
    found = dp.t.make_cast_default(domain, dp.symmetric_distance(), TOA=to)(cells)
    print(f"opendp {version('opendp')}: {cells} as {to.__name__}: {found}")
    assert found == expected, "opendp has changed"
PYTHON
