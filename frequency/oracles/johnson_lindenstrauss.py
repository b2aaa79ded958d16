"""The Johnson-Lindenstrauss oracle: one bit about a random projection of the holder's item."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.algebra.exact_draws import uniform
from frequency.algebra.hash_functions import Coins, PublicBits, features
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Reports, smallest_integer
from frequency.oracles.count_mean_sketch import SignSketch, checked_size
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.randomness import BitSource


@dataclass(frozen=True)
class JLOracle(SignSketch):
    """PROT-FO: one sign of a random projection of the item, by randomised response.

    Source: Bassily and Smith, STOC 2015, section 2.2, Algorithms 1 to 3.

    The public matrix has ``rows`` rows and a column of signs for each item, divided by sqrt(rows);
    its entries are 5-wise independent, computed from ``seed`` when needed and never stored. The
    user picks a row and tells, by randomised response, the sign of the item there: a report is
    ``row`` and ``sign`` (+1 or -1), one bit where the row is fixed by other means.

    Section 2.2 takes log(d + 1) log(2/b) e^2 n / log(2d/b) rows for n users, failure probability b
    and domain d, so that the confusion of items is no larger than the noise; the server's cost for
    an item is the number of rows.

    Parameters
    ----------
    domain, epsilon
        See `Oracle`.
    rows
        The rows of the public matrix, 1 to 2^32.
    seed
        Of the matrix, 0 to 2^32, chosen without looking at the data.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    rows: int = 1 << 14
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rows", checked_size("rows", self.rows, 1))
        object.__setattr__(self, "seed", checked_size("seed", self.seed, 0))

    @property
    def confusion(self) -> Fraction:
        return Fraction(1, self.rows)

    @property
    def _rows(self) -> int:
        return self.rows

    @cached_property
    def _matrix(self) -> PublicBits:
        return PublicBits("projection", self.seed, self.rows)

    def _details(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "seed": self.seed,
            "truth": str(self._choice.truth),
            "lie": str(self._choice.lie),
        }

    @property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("row", smallest_integer(self.rows - 1)), ("sign", "i1")])

    @property
    def report_bits(self) -> int:
        return (self.rows - 1).bit_length() + 1

    def _privatize(self, items: Items, reports: Reports, source: BitSource) -> None:
        row = uniform(len(items), self.rows, source)
        minus = self._matrix.bits(row, features(items)) ^ self._choice.draw(len(items), source)
        reports["row"], reports["sign"] = row, 1 - 2 * minus

    def _blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports["row"], reports["sign"] = coins.uniform(0, self.rows), 1 - 2 * coins.uniform(1, 2)
        return reports

    def _likelihood(self, reports: Reports, items: Items) -> Items:
        minus = self._matrix.bits(reports["row"].astype(np.int64), features(items)).astype(np.int64)
        return (reports["sign"] == 1 - 2 * minus).astype(np.int64)

    def _possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return (reports["row"] < self.rows) & ((reports["sign"] == 1) | (reports["sign"] == -1))

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.rows,)

    def _aggregate(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(reports["row"], weights=reports["sign"], minlength=self.rows).astype(
            np.int64
        )

    def _frequencies(self, aggregate: Aggregate, items: Items | None) -> Floats:
        chosen, total = self._all(items), aggregate.counts.sum().astype(np.float64)
        result = np.empty(len(chosen))
        rows = np.flatnonzero(aggregate.counts)
        sums = aggregate.counts[rows].astype(np.float64)
        step = max(1, (1 << 22) // max(len(rows), 1))
        for start in range(0, len(chosen), step):
            x, cube = features(chosen[start : start + step])
            minus = self._matrix.bits(rows[:, None], (x[None], cube[None]))
            result[start : start + step] = total - 2 * (sums @ minus)
        return result / (aggregate.n * float(self._contrast))
