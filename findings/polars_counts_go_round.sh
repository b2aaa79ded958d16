#!/usr/bin/env bash
# Numbers of people in Polars go round: 1 less 2 is 4,294,967,295.
#
# Seen with polars 2.1.0: the sizes of groups are unsigned 32-bit integers, and their differences
# are, too, so that the change between two groups, or a count with a negative noise on it, goes
# round at 0 without an error. A sum of 32-bit integers is one of 32 bits and goes round at 2^31,
# though one of 8 or 16 bits is widened to 64 before: 1,000 wages of 3 million make 3 * 10^9, and a
# sum below 0. Cast to Int64 first.
#
# Output seen:
#   polars 2.1.0: sizes of groups [2, 1], less 2: [0, 4294967295]
#   polars 2.1.0: sum of 1000 times 3000000: -1294967296, as Int64: 3000000000
#   polars 2.1.0: sum of 1000 times 30000, of 16 bits: 30000000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import polars as pl

polars = f"polars {pl.__version__}"
sizes = pl.DataFrame({"town": ["a", "a", "b"]}).group_by("town").len().sort("town")["len"]
print(f"{polars}: sizes of groups {sizes.to_list()}, less 2: {(sizes - 2).to_list()}")
assert (sizes - 2).to_list() == [0, 2**32 - 1], "sizes of groups have changed"
wages = pl.Series([3_000_000] * 1000, dtype=pl.Int32)
widened = wages.cast(pl.Int64).sum()
print(f"{polars}: sum of 1000 times 3000000: {wages.sum()}, as Int64: {widened}")
assert wages.sum() == 3 * 10**9 - 2**32, "sums of 32 bits have changed"
assert widened == 3 * 10**9, "sums of 64 bits have changed"
short = pl.Series([30_000] * 1000, dtype=pl.Int16)
print(f"{polars}: sum of 1000 times 30000, of 16 bits: {short.sum()}")
assert short.sum() == 30_000_000, "sums of 16 bits have changed"
PYTHON
