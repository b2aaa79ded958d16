"""Granularities of the guideline: the published table, and limits of the domain."""

from __future__ import annotations

import pytest

from rangeq.grids import TDG, granularities

# Table 2: (d, lg n) and (g1, g2) at epsilon = 0.2, 0.4, .., 2.0, alpha1 = 0.7, alpha2 = 0.03, c =
# 64.
TABLE_2 = """
3 6.0  8 2 16 4 32 4 32 4 32 4 32 4 32 8 64 8 64 8 64 8
4 6.0  8 2 16 2 16 4 32 4 32 4 32 4 32 4 32 4 32 8 64 8
5 6.0  8 2 16 2 16 4 16 4 32 4 32 4 32 4 32 4 32 4 32 8
6 6.0  8 2 16 2 16 2 16 4 16 4 32 4 32 4 32 4 32 4 32 4
6 5.0  4 2 4 2 8 2 8 2 8 2 16 2 16 2 16 2 16 2 16 4
6 5.2  4 2 8 2 8 2 8 2 16 2 16 2 16 2 16 4 16 4 16 4
6 5.4  4 2 8 2 8 2 16 2 16 2 16 2 16 4 16 4 16 4 32 4
6 5.6  4 2 8 2 8 2 16 2 16 2 16 4 16 4 32 4 32 4 32 4
6 5.8  8 2 8 2 16 2 16 2 16 4 16 4 32 4 32 4 32 4 32 4
"""


@pytest.mark.parametrize("row", TABLE_2.strip().splitlines())
def test_table_2(row: str) -> None:
    d, lg, *values = row.split()
    printed = list(zip(map(int, values[::2]), map(int, values[1::2]), strict=True))
    found = [
        granularities(int(d), round(10 ** float(lg)), tenths / 10, 64) for tenths in range(2, 21, 2)
    ]
    assert found == printed


def test_granularities_stay_within_the_domain() -> None:
    assert granularities(2, 10**9, 5.0, 3) == (3, 3)
    assert granularities(6, 1, 0.01, 64) == (2, 2)
    assert granularities(6, 10**6, 1.0, 1) == (1, 1)
    assert granularities(1, 10**6, 1.0, 1024)[0] == 64
    assert TDG([64] * 6, 2.0, 10**6).granularity == (8,) * 6
    with pytest.raises(ValueError, match="at least 1"):
        granularities(6, 0, 1.0, 64)
