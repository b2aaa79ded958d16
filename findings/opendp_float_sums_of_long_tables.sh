#!/usr/bin/env bash
# The noise on a sum of floats grows with how long a table is said to be at most.
#
# Seen with opendp 0.16.0 and polars 1.36.1: the largest length of a margin is public knowledge, and
# need not be near the number of rows. Of a column of integers the scale of the noise on a bounded
# sum does not depend on it. Of the same column as floats the scale grows in proportion to it, for
# the rounding of floating-point sums: 4 % more noise at 10^7 rows, and 5.4 times as much at 10^8.
# Who states a generous length, and has numbers that could be integers (cents), loses that.
#
# Output seen:
#   at most 10^4 rows: floats 100000, integers 100000
#   at most 10^6 rows: floats 100044, integers 100000
#   at most 10^8 rows: floats 544089, integers 100000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet opendp==0.16.0 polars==1.36.1 pyarrow==22.0.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
frame = pl.LazyFrame({"x": [1.0, 2.0, 3.0]})
floats = pl.col("x").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 100_000.0))
integers = pl.col("x").cast(int).fill_null(0).dp.sum((0, 100_000))


def scale(column, most):
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=most)],
    )
    return context.query().select(column).summarize()["scale"][0]


found = {power: (scale(floats, 10**power), scale(integers, 10**power)) for power in (4, 6, 8)}
for power, (of_floats, of_integers) in found.items():
    print(f"at most 10^{power} rows: floats {of_floats:.0f}, integers {of_integers:.0f}")
assert all(round(each) == 100_000 for _, each in found.values()), "sums of integers have changed"
assert [round(each / 1000) for each, _ in found.values()] == [100, 100, 544], "floats have changed"
PYTHON
