#!/usr/bin/env bash
# A table of counts in another order of rows is written as JSON-stat with its numbers mixed up.
#
# Seen with pyjstat 2.4.0: a Dataset that is read from a DataFrame lists the categories of each
# column in the order of their first rows, and the numbers in the order of the rows, whether the
# rows are all combinations in that order or not. A table that has each combination once, but is
# sorted otherwise, comes out as a valid file in which the numbers of different cells are exchanged,
# without an error or a warning. Where a combination is not in the table, all numbers behind it move
# up. Sort the table by its columns, and give it all combinations, before it is written.
#
# Output seen:
#   table:    {('b', 'f'): 1, ('a', 'm'): 2, ('b', 'm'): 3, ('a', 'f'): 4}
#   pyjstat:  {('b', 'f'): 1, ('b', 'm'): 2, ('a', 'f'): 3, ('a', 'm'): 4}
#   3 of 4:   4 cells with the numbers [1, 2, 3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyjstat==2.4.0 pandas==2.3.3
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json

import pandas as pd
from pyjstat import pyjstat

cells = {("b", "f"): 1, ("a", "m"): 2, ("b", "m"): 3, ("a", "f"): 4}


def written(cells):
    table = pd.DataFrame(
        [(*cell, n) for cell, n in cells.items()], columns=["town", "sex", "value"]
    )
    return json.loads(pyjstat.Dataset.read(table).write("jsonstat"))


def numbers(document):
    """What a file says of each cell, as JSON-stat defines it: the last column runs fastest."""
    towns, sexes = (
        sorted(index, key=index.get)
        for index in (document["dimension"][name]["category"]["index"] for name in document["id"])
    )
    return dict(zip([(town, sex) for town in towns for sex in sexes], document["value"]))


print("table:   ", cells)
found = numbers(written(cells))
print("pyjstat: ", found)
assert found == {("b", "f"): 1, ("b", "m"): 2, ("a", "f"): 3, ("a", "m"): 4}, "it has changed"
ordered = dict(sorted(cells.items()))
assert numbers(written(ordered)) == ordered, "a table that is in order is changed, too"
short = written(dict(list(cells.items())[:3]))
print(f"3 of 4:   {short['size'][0] * short['size'][1]} cells with the numbers {short['value']}")
assert (short["size"], short["value"]) == ([2, 2], [1, 2, 3]), "tables with gaps have changed"
PYTHON
