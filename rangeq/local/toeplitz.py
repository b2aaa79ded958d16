"""The inverse of a symmetric Toeplitz matrix: products, and sums over blocks of its entries.

By Gohberg and Semencul (1972) it is (L(x) L(x)' - L(y) L(y)') / x_0, where x is its first column, y
is 0 and the rest of x backwards, and L(z) is the lower triangular Toeplitz matrix whose first
column is z. So products take a few fast Fourier transforms, and sums over blocks of the entries
are those of products of running sums of x and y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from mechdesign.base.arrays import Floats, Integers

_CLOSE, _STEPS = 1e-13, 1000
"""The residual at which conjugate gradients end, and after how many steps Levinson's recursion is
used in their place, which takes as many as the square of the size.
"""


@dataclass(frozen=True, eq=False)
class ToeplitzInverse:
    """The inverse of a positive definite symmetric Toeplitz matrix.

    Attributes
    ----------
    column : numpy.ndarray of float64
        Shape (size,): its first column.
    """

    column: Floats

    @classmethod
    def of(cls, first: Floats) -> ToeplitzInverse:
        """The inverse of the matrix with this first column.

        Parameters
        ----------
        first : numpy.ndarray of float64
            Shape (size,), of a positive definite matrix.

        Returns
        -------
        ToeplitzInverse
            The inverse.
        """
        size, unit = len(first), np.zeros(len(first))
        unit[0] = 1.0
        around = np.fft.rfft(np.concatenate([first, [0.0], first[:0:-1]]))
        # T. Chan's circulant, the nearest to the matrix
        k = np.arange(1, size)
        nearest = np.append(first[0], ((size - k) * first[1:] + k * first[:0:-1]) / size)
        eigenvalues = np.fft.rfft(nearest).real

        def times(vector: Floats) -> Floats:
            return np.fft.irfft(around * np.fft.rfft(vector, 2 * size), 2 * size)[:size]

        def nearly(vector: Floats) -> Floats:
            return np.fft.irfft(np.fft.rfft(vector) / eigenvalues, size)

        shape = (size, size)
        found, left = scipy.sparse.linalg.cg(
            scipy.sparse.linalg.LinearOperator(shape, matvec=times),
            unit,
            rtol=_CLOSE,
            maxiter=_STEPS,
            M=scipy.sparse.linalg.LinearOperator(shape, matvec=nearly),
        )
        return cls(scipy.linalg.solve_toeplitz(first, unit) if left else found)

    @cached_property
    def _sides(self) -> tuple[Floats, Floats]:
        """The columns x and y, over the root of x_0."""
        root = np.sqrt(self.column[0])
        return self.column / root, np.append(0.0, self.column[:0:-1]) / root

    def times(self, vectors: Floats) -> Floats:
        """The products with vectors of shape (..., size)."""
        size, total = len(self.column), np.zeros(vectors.shape)
        spectra = np.fft.rfft(vectors, 2 * size)
        for side, sign in zip(self._sides, (1, -1), strict=True):
            own = np.fft.rfft(side, 2 * size)
            upper = np.fft.irfft(spectra * own.conj(), 2 * size)[..., :size]
            total += sign * np.fft.irfft(np.fft.rfft(upper, 2 * size) * own, 2 * size)[..., :size]
        return total

    def blocks(self, first: Integers, after: Integers) -> Floats:
        """The sums of the entries whose row and column are both in first .. after - 1.

        Parameters
        ----------
        first, after : numpy.ndarray of int64
            Of one shape, 0 <= first <= after <= size.

        Returns
        -------
        numpy.ndarray of float64
            Of that shape.
        """
        starts, ends = first.ravel(), after.ravel()
        result, lengths = np.zeros(starts.size), ends - starts
        order = np.argsort(lengths, kind="stable")
        order = order[starts[order] > 0]
        bounds = np.flatnonzero(np.diff(lengths[order])) + 1
        parts = np.split(order, bounds) if len(order) else []
        for side, sign in zip(self._sides, (1, -1), strict=True):
            sums = np.append(0.0, np.cumsum(side))
            squares = np.cumsum(sums**2)
            result += sign * (squares[starts] + squares[ends])
            for part in parts:
                length = int(lengths[part[0]])
                products = np.cumsum(sums[: len(sums) - length] * sums[length:])
                result[part] -= 2 * sign * products[starts[part]]
        return result.reshape(first.shape)
