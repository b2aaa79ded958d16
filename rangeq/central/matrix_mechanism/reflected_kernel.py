"""ReflectedKernel: functions of the discrete Laplacian on an interval, applied by FFT."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from flint import fmpz_poly

from mechdesign.base.arrays import Floats, Integers

_LEAF = 32


class ReflectedKernel:
    """A symmetric matrix whose entries depend on the distance of two cells, and of a reflection.

    For a sequence f it is one of

        K[i, j] = f(i - j) + f(i + j + 1),  f even and antiperiodic: f(d + 2 size + 1) = -f(d),
        K[i, j] = f(i - j) - f(i + j + 2),  f even and periodic: f(d + 2 size + 2) = f(d).

    These matrices are the functions of the second difference with a free left end and a fixed right
    end, and of that with two fixed ends: they have the eigenvectors cos(pi (2k - 1) (2i + 1) /
    (4 size + 2)), or sin(pi k (i + 1) / (size + 1)), k = 1 .. size, whatever f is. So products,
    powers and diagonals come from FFTs. With f(d) (-1)^d the first kind is f(i - j) - f(i + j + 1)
    of period 2 size + 1, apart from signs of rows and columns, so that both are computed alike.

    Parameters
    ----------
    half : numpy.ndarray
        f(0), f(1), .. : integers or floats, size + 1 of them for the first kind, size + 2 for the
        second.
    size : int
        The number of cells.
    """

    def __init__(self, half: npt.NDArray[Any], size: int) -> None:
        self.half, self.size = half, size
        self.shift = len(half) - size
        self.period = 2 * size + self.shift
        self._signs = (-1) ** np.arange(size) if self.shift == 1 else np.ones(size, dtype=np.int64)
        self._mirror = 1 if self.shift == 1 else -1

    @classmethod
    def of_spectrum(cls, eigenvalues: Floats, shift: int) -> ReflectedKernel:
        """The matrix with given eigenvalues.

        Parameters
        ----------
        eigenvalues : numpy.ndarray of float64
            Shape (size,): in order of frequency, from the largest eigenvalue of the inverse second
            difference to the least.
        shift : int
            1 or 2: the kind.

        Returns
        -------
        ReflectedKernel
            Of the sequences f that give it, the shortest one.
        """
        size = len(eigenvalues)
        spectrum = np.zeros(size + shift)
        spectrum[1 : size + 1] = eigenvalues[::-1] if shift == 1 else eigenvalues
        half = scipy.fft.irfft(spectrum, n=2 * size + shift)[: size + shift]
        if shift == 1:
            half *= (-1.0) ** np.arange(size + 1)
        return cls(half, size)

    @cached_property
    def _table(self) -> npt.NDArray[Any]:
        """One period of f with the signs that make it even and periodic."""
        half = self.half
        if self.shift == 1:
            half = half * (-1) ** np.arange(len(half))
        return np.concatenate([half, half[1 : self.period - len(half) + 1][::-1]])

    @cached_property
    def eigenvalues(self) -> Floats:
        """Shape (size,): in order of frequency."""
        spectrum = scipy.fft.rfft(self._table.astype(np.float64)).real[1 : self.size + 1]
        return spectrum[::-1] if self.shift == 1 else spectrum

    def power(self, exponent: float) -> ReflectedKernel:
        """A power of the matrix.

        Parameters
        ----------
        exponent : float
            Any, if no eigenvalue is 0.

        Returns
        -------
        ReflectedKernel
            Of the same kind, in floats.
        """
        return ReflectedKernel.of_spectrum(self.eigenvalues**exponent, self.shift)

    def _reflected(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The odd sequence of one period that values begin."""
        odd = np.zeros((*values.shape[:-1], self.period), dtype=values.dtype)
        odd[..., : self.size] = values * self._signs
        odd[..., self.size + 1 : 2 * self.size + 1] = -odd[..., : self.size][..., ::-1]
        return odd

    def apply(self, values: Floats) -> Floats:
        """The matrix times vectors.

        Parameters
        ----------
        values : numpy.ndarray of float64
            Shape (..., size).

        Returns
        -------
        numpy.ndarray of float64
            The same shape.
        """
        spectrum = np.zeros(self.period // 2 + 1)
        spectrum[1 : self.size + 1] = self.eigenvalues[:: -1 if self.shift == 1 else 1]
        moved = scipy.fft.rfft(self._reflected(values)) * spectrum
        found: Floats = scipy.fft.irfft(moved, n=self.period)[..., : self.size] * self._signs
        return found

    def apply_exactly(self, values: Integers) -> Integers:
        """A matrix of integers times a vector of integers, by exact multiplication of polynomials.

        Parameters
        ----------
        values : numpy.ndarray of int64
            Shape (size,): max(abs(half)) * sum(abs(values)) is at most 2^61.

        Returns
        -------
        numpy.ndarray of int64
            Shape (size,).
        """
        product = fmpz_poly(self._table.tolist()) * fmpz_poly(self._reflected(values).tolist())
        found = [int(c) for c in product.coeffs()[: self.period + self.size]]
        found += [0] * (self.period + self.size - len(found))
        once = np.array(found[: self.size], dtype=np.int64)
        again = np.array(found[self.period :], dtype=np.int64)
        return (once + again) * self._signs

    def square_diagonal(self) -> list[int]:
        """The exact diagonal of the square of the matrix, which is of integers."""
        table = fmpz_poly(self._table.tolist())
        found = [int(c) for c in (table * table).coeffs()]
        found += [0] * (2 * self.period - len(found))
        folded = [a + b for a, b in zip(found, found[self.period :], strict=False)]
        return [folded[0] - folded[2 * j + self.shift] for j in range(self.size)]

    @cached_property
    def _full(self) -> npt.NDArray[Any]:
        """f(0 .. period - 1)."""
        rest = self.half[1 : self.period - len(self.half) + 1][::-1]
        return np.concatenate([self.half, -self._mirror * rest])

    def diagonal(self) -> npt.NDArray[Any]:
        """K[i, i], shape (size,)."""
        return self.half[0] + self._mirror * self._full[self.shift :: 2][: self.size]

    def column_sums(self) -> npt.NDArray[Any]:
        """The sums of the columns, shape (size,): exact for integers."""
        sums = np.concatenate([[0], np.cumsum(self._full)])
        j = np.arange(self.size)
        near = sums[j + 1] + sums[self.size - j] - self.half[0]
        far = sums[self.size + j + self.shift] - sums[j + self.shift]
        return near + self._mirror * far

    def lower_apply(self, values: Floats, lag: int = 0) -> Floats:
        """The part of the matrix on and below a diagonal, times a vector.

        Parameters
        ----------
        values : numpy.ndarray of float64
            Shape (size,).
        lag : int, default 0
            Entries with i - j >= lag count, 0 <= lag < size.

        Returns
        -------
        numpy.ndarray of float64
            Shape (size,): for each i the sum of K[i, j] values[j] over j <= i - lag.
        """
        rest = self.size - lag
        length = scipy.fft.next_fast_len(2 * rest, real=True)
        product = scipy.fft.rfft(self._full[lag : self.size], length)
        product = product * scipy.fft.rfft(values[:rest], length)
        found = np.zeros(self.size)
        found[lag:] = scipy.fft.irfft(product, length)[:rest]
        far = self._full[self.shift + lag :][: 2 * rest - 1]
        found[lag:] += self._mirror * _hankel_triangle(far, values[:rest])
        return found


def _hankel_triangle(kernel: Floats, values: Floats) -> Floats:
    """For each i the sum of kernel[i + j] values[j] over j <= i.

    The triangle is cut into squares, each half as large as the one before, down to small triangles.
    All squares of a size are done at once.
    """
    size = len(values)
    blocks = 1 << max(0, (size - 1) // _LEAF).bit_length()
    padded = _LEAF * blocks
    given, wide, found = np.zeros(padded), np.zeros(2 * padded), np.zeros(padded)
    given[:size], wide[: len(kernel)] = values, kernel
    place = np.arange(padded).reshape(blocks, _LEAF)
    leaves, results = given.reshape(blocks, _LEAF), found.reshape(blocks, _LEAF)
    for apart in range(_LEAF):
        inside = slice(0, _LEAF - apart)
        results[:, apart:] += wide[2 * place[:, inside] + apart] * leaves[:, inside]
    width = _LEAF
    while width < padded:
        square = scipy.fft.rfft(wide.reshape(-1, 4 * width)[:, width : 3 * width])
        left = scipy.fft.rfft(given.reshape(-1, 2, width)[:, 0], 2 * width)
        product = scipy.fft.irfft(square * left.conj(), 2 * width)
        found.reshape(-1, 2, width)[:, 1] += product[:, :width]
        width *= 2
    return found[:size]
