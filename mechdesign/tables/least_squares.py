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
"""The type of a ``scipy.sparse.csr_array`` of float64, whose types know little of arithmetic."""

_AT_ONCE = 1 << 22
"""The largest number of numbers of a working array."""

_LEAST_SHARE = 1e-9
"""The least variance of measured sums, as a share of the variance of the sum of their cells.

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
        sizes = sums @ variances
        self._weighed = (sums * variances[None, :]).tocsr()
        measured = np.where(sum_variances > 0, np.maximum(sum_variances, sizes * _LEAST_SHARE), 0.0)
        # Of cells that all are certain nothing is left to say
        self._all = measured + np.where((sizes == 0) & (measured == 0), 1.0, 0.0)

    @cached_property
    def _matrix(self) -> Sparse:
        return scipy.sparse.csc_array(
            scipy.sparse.diags_array(self._all) + self._weighed @ self.sums.T
        )

    def _solve(self, right: Floats) -> Floats:
        """Return (E + M D M')^-1 times the columns."""
        if not len(self._all):
            return right
        solution: Floats = self._factors.solve(right)
        # One step of iterative refinement: known sums, with variance 0, are to hold to rounding.
        solution += self._factors.solve(right - self._matrix @ solution)
        return solution

    @cached_property
    def _factors(self) -> Any:
        # Sparse LU of a system in the sums: there are far fewer than cells, and M has few entries
        # in each row and column. Factorised once, for all right sides.
        return scipy.sparse.linalg.splu(self._matrix)

    def fit(self, measured: Floats, measured_sums: Floats) -> Floats:
        """Return the estimates of the cells.

        Shapes: `measured` (cells,), `measured_sums` (sums,); returns (cells,).
        """
        missing = self._solve(measured_sums - self.sums @ measured)
        cells: Floats = measured + self._weighed.T @ missing
        return cells

    def coefficients(self, weights: Floats) -> Floats:
        """Return the weights of the measurements in weighted sums of the estimated cells.

        Shapes: `weights` (queries, cells); returns (queries, cells + sums).
        """
        of_sums = self._solve(self._weighed @ weights.T).T
        return np.hstack([weights - of_sums @ self.sums, of_sums])

    def cell_coefficients(self) -> Iterator[Floats]:
        """Yield the `coefficients` of each cell, some cells at a time.

        Each has shape (some cells, cells + sums).
        """
        cells = len(self.variances)
        step = max(1, _AT_ONCE // max(cells, 1))
        for start in range(0, cells, step):
            yield self.coefficients(np.eye(min(step, cells - start), cells, start))


def indicators(groups: npt.NDArray[np.int64]) -> Sparse:
    """Return the sums over groups of cells, as a matrix of zeros and ones.

    Shapes: `groups` (cells,); returns (groups, cells).
    """
    places: Any = groups, np.arange(len(groups))
    shape: Any = int(groups.max(initial=-1)) + 1, len(groups)
    return scipy.sparse.csr_array((np.ones(len(groups)), places), shape=shape)
