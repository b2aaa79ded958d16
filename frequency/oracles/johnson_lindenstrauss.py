"""The Johnson-Lindenstrauss oracle: one bit about a random projection of the holder's item."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra.hash_functions import MOST_FUNCTIONS, PublicBits, features
from frequency.core.aggregate import Aggregate
from frequency.oracles.count_mean_sketch import (
    Sketch,
    audit_of_signs,
    checked_size,
    moment_of_signs,
    variance_of_signs,
)
from frequency.oracles.sign_response import SignChannel
from mechdesign import Audit
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Floats, Items

_LARGEST_PRODUCT = 1 << 25
"""How many products of signs are added up to compare all pairs of items."""


@dataclass(frozen=True)
class JLOracle(SignChannel, Sketch):
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
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    rows : int, default 16384
        The rows of the public matrix, 1 to 2^24.
    seed : int, default 0
        Of the matrix, 0 to 2^32, chosen without looking at the data.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    privacy_source: ClassVar[str] = "succinct histograms, Theorem 2.4"

    rows: int = 1 << 14
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = checked_size("rows", self.rows, 1, MOST_FUNCTIONS)
        set_fields(self, rows=rows, seed=checked_size("seed", self.seed, 0))

    @property
    def confusion(self) -> Fraction:
        return Fraction(1, self.rows)

    @cached_property
    def _matrix(self) -> PublicBits:
        return PublicBits("projection", self.seed, self.rows)

    def _details(self) -> dict[str, Any]:
        return {"rows": self.rows, "seed": self.seed, **super()._details()}

    @property
    def _indices(self) -> dict[str, range]:
        return {"row": range(self.rows)}

    @property
    def _expression(self) -> list[Any]:
        return ["projection", self._matrix.text, self.rows]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        (row,) = index
        return self._matrix.bits(row, features(items))

    @property
    def least_alike(self) -> Fraction:
        # Of all pairs, if they are few
        if self.domain**2 * self.rows > _LARGEST_PRODUCT:
            return Fraction(0)
        minus = self._minus(np.arange(self.domain)[:, None], np.arange(self.rows))
        signs = 1 - 2 * minus.astype(np.float64)  # of which sums are whole numbers
        return Fraction(self.rows + int((signs @ signs.T).min()), 2 * self.rows)

    def _user_variance(self, squares: Any, total: Any, own: Any) -> Any:
        return variance_of_signs(self, self.confusion, squares, own)

    def second_moment(self, aggregate: Aggregate) -> float:
        return moment_of_signs(self, aggregate, self.rows)

    def audit(self) -> Audit:
        return audit_of_signs(self, self._choice.ratio)

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        chosen, total = self._all(items), aggregate.counts.sum().astype(np.float64)
        result = np.empty(len(chosen))
        rows = np.flatnonzero(aggregate.counts)
        sums = aggregate.counts[rows].astype(np.float64)
        step = max(1, (1 << 22) // max(len(rows), 1))
        for start in range(0, len(chosen), step):
            x, cube = features(chosen[start : start + step])
            minus = self._matrix.bits(rows[:, None], (x[None], cube[None]))
            result[start : start + step] = total - 2 * (sums @ minus)
        return result / (aggregate.n * self.contrast)
