"""Weighted least squares: one estimate of cells from measurements of the cells and of sums of them.

Measurements y of the cells, z of the sums M x, and known sums, errors independent. With the
variances D and E that the measurements are weighted by, least squares gives

    x = y + D M' (E + M D M')^-1 (z - M y),

which is linear in y and z. So it is unbiased whatever the weights are, as long as these do not
depend on what was measured; and the variance of a weighted sum of cells follows from the
measurements' true variances, or is estimated without bias from unbiased estimates of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base.linear_algebra import Floats

Sparse: TypeAlias = Any
"""A ``scipy.sparse.csr_array`` of float64, whose types know little of arithmetic."""

_AT_ONCE = 1 << 22
"""How many numbers a working array may have."""

_LEAST_SHARE = 1e-9
"""Measured sums weigh at most as if this were their share of the variance of the sum of the cells.

Weights may be anything, but sums known from several sides must not make the equations singular.
"""


class LeastSquares:
    """The weighted least squares estimate of cells whose sums were measured, too.

    Parameters
    ----------
    variances : numpy.ndarray of float64
        Shape (cells,): what the cells' measurements are weighted by, at least 0; public.
    sums : scipy.sparse.csr_array
        Shape (sums, cells): M, of zeros and ones.
    sum_variances : numpy.ndarray of float64
        Shape (sums,): what the sums' measurements are weighted by. 0: the sum is known. No cell is
        in two sums that are known.
    """

    def __init__(self, variances: Floats, sums: Sparse, sum_variances: Floats) -> None:
        self.variances, self.sums = variances, sums
        own = sums @ variances
        self._weighed = (sums * variances[None, :]).tocsr()
        measured = np.where(sum_variances > 0, np.maximum(sum_variances, own * _LEAST_SHARE), 0.0)
        # Of cells that all are certain nothing is left to say
        self._all = measured + np.where((own == 0) & (measured == 0), 1.0, 0.0)

    @cached_property
    def _matrix(self) -> Sparse:
        return scipy.sparse.csc_array(
            scipy.sparse.diags_array(self._all) + self._weighed @ self.sums.T
        )

    def _solve(self, right: Floats) -> Floats:
        """(E + M D M')^-1 times the columns."""
        if not len(self._all):
            return right
        found: Floats = self._factors.solve(right)
        found += self._factors.solve(right - self._matrix @ found)
        return found

    @cached_property
    def _factors(self) -> Any:
        return scipy.sparse.linalg.splu(self._matrix)

    def fit(self, measured: Floats, measured_sums: Floats) -> Floats:
        """The cells.

        Shapes: `measured` (cells,), `measured_sums` (sums,); returns (cells,).
        """
        missing = self._solve(measured_sums - self.sums @ measured)
        cells: Floats = measured + self._weighed.T @ missing
        return cells

    def coefficients(self, weights: Floats) -> Floats:
        """What weighted sums of the estimated cells are in terms of what was measured.

        Shapes: `weights` (queries, cells); returns (queries, cells + sums).
        """
        of_sums = self._solve(self._weighed @ weights.T).T
        return np.hstack([weights - of_sums @ self.sums, of_sums])

    def cell_coefficients(self) -> Iterator[Floats]:
        """The `coefficients` of each cell, some cells at a time.

        Each has shape (some cells, cells + sums).
        """
        cells = len(self.variances)
        step = max(1, _AT_ONCE // max(cells, 1))
        for start in range(0, cells, step):
            yield self.coefficients(np.eye(min(step, cells - start), cells, start))


def indicators(groups: npt.NDArray[np.int64]) -> Sparse:
    """The sums over groups of cells, as a matrix of zeros and ones.

    Shapes: `groups` (cells,); returns (groups, cells).
    """
    places: Any = groups, np.arange(len(groups))
    shape: Any = int(groups.max(initial=-1)) + 1, len(groups)
    return scipy.sparse.csr_array((np.ones(len(groups)), places), shape=shape)
