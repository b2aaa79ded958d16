#!/usr/bin/env bash
# Arrow counts two kinds of zero, and does not join them.
#
# Seen with pyarrow 26.0.1: 0.0 and -0.0 are equal by pyarrow.compute.equal, but grouping,
# value_counts, unique and joins take them for two values: a table by a column of floats has two
# rows "0", and a join on it loses rows. pandas 3.1.1 counts one zero in a column of NumPy's floats,
# and two in one of Arrow's. A -0.0 is what rounding leaves of a small negative number. Add 0.0 to
# the column before.
#
# Output seen:
#   pyarrow 26.0.1: equal True, groups [2, 1], joined rows 0, groups after adding 0.0 [3]
#   pandas 3.1.1: groups of NumPy's floats [3], of Arrow's [2, 1]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1 pandas==3.1.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


def groups(column):
    return (
        pa.table({"x": column})
        .group_by("x")
        .aggregate([([], "count_all")])["count_all"]
        .to_pylist()
    )


zeros = pa.array([0.0, 0.0, round(-0.3, 0)])
equal = pc.equal(zeros[0], zeros[2]).as_py()
joined = pa.table({"x": zeros[:1]}).join(pa.table({"x": zeros[2:]}), "x", join_type="inner")
counted, added = groups(zeros), groups(pc.add(zeros, 0.0))
print(
    f"pyarrow {pa.__version__}: equal {equal}, groups {counted}, joined rows {len(joined)},",
    end=" ",
)
print(f"groups after adding 0.0 {added}")
assert equal is True, "pyarrow has changed"
assert (sorted(counted), len(joined), added) == ([1, 2], 0, [3]), "pyarrow has changed"
of_numpy, of_arrow = (
    pd.DataFrame({"x": pd.Series(zeros.to_pylist(), dtype=kind)}).groupby("x").size().tolist()
    for kind in ("float64", "double[pyarrow]")
)
print(f"pandas {pd.__version__}: groups of NumPy's floats {of_numpy}, of Arrow's {of_arrow}")
assert (of_numpy, sorted(of_arrow)) == ([3], [1, 2]), "pandas has changed"
PYTHON
