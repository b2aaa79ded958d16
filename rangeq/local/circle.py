"""Circular hierarchies: coordinates, variances of cuts, and inverses of Toeplitz matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import Floats, Integers
from rangeq.core import NodeLaw

# ------------------------------------------------------------------------------------------------
# Coordinates on a circular domain in which all that is stationary there is diagonal.


#: The type of results of `numpy.fft.rfft`: shape (..., size // 2 + 1).
Transform = npt.NDArray[np.complex128]


def coordinates(items: Floats) -> Floats:
    """Return coordinates of values on a circle, but for their sum, in the basis of frequencies.

    Real and orthonormal: what is stationary on the circle has independent coordinates. Shapes:
    `items` (..., size); returns (..., 2 (size // 2)).
    """
    return of_transform(np.fft.rfft(items), items.shape[-1])


def of_transform(transform: Transform, size: int) -> Floats:
    """The `coordinates` of what has this `numpy.fft.rfft`: shape (..., size // 2 + 1)."""
    # Real and imaginary parts side by side as reals: a view, and no copy of large arrays
    return np.ascontiguousarray(transform[..., 1:] * _scale(size)).view(np.float64)


def transform_of(values: Floats, total: float, size: int) -> Transform:
    """The `numpy.fft.rfft` of what has these `coordinates` and this sum."""
    return np.insert(values.view(np.complex128) / _scale(size), 0, total, axis=-1)


def items_of(values: Floats, total: float, size: int) -> Floats:
    """The values of the items that have these `coordinates` and this sum: shape (..., size)."""
    return np.fft.irfft(transform_of(values, total, size), size)


def _scale(size: int) -> Floats:
    result = np.full(size // 2, np.sqrt(2 / size))
    if size % 2 == 0:
        # The highest frequency of an even size has a cosine alone, counted once
        result[-1] = np.sqrt(1 / size)
    return result


# ------------------------------------------------------------------------------------------------
# The variance of ranges on a circle of turned blocks, for any population.
#
# The estimate of a prefix weighs the blocks of a width by one curve, moved to where the prefix
# ends: that of a range by the difference of two. Given a user's item and the angle, a report on
# blocks of width w that weigh c (of sum 0) has the mean square C |c|^2 + H c_b^2, b the user's
# block (`NodeLaw.contrast` and `NodeLaw.held`). So over all angles and users it is a sum of c(t)^2
# or of products c(t - i) c(t - j), each with a curve that is the same for all ranges of a length: a
# correlation, which the fast Fourier transform gives for all of them together.


# The exponent up to which lengths are exact: ranges of up to 2^8 items, and all but so many of the
# circle, are computed by themselves; of longer ones 2^7 lengths an octave, with straight lines
# between them.
_EXACT = 8


def windows(values: Floats, width: int) -> Floats:
    """Return sums of so many values in a row around a circle, from each one on: (..., circle)."""
    edges = np.zeros((*values.shape[:-1], 1))
    # Differences of cumulated sums: any width costs the same
    sums = np.cumsum(np.concatenate([edges, values, values[..., : width - 1]], axis=-1), axis=-1)
    return sums[..., width:] - sums[..., :-width]


class CircleLevel(NamedTuple):
    """The weights of reports on blocks of one width in the answer about the prefix before 0."""

    width: int  # the items of a block
    users: float  # the number of users who report on such blocks, above 0
    # Shape (circle,): the weight of the block that begins at each item, but for a constant
    curve: Floats
    law: NodeLaw  # the errors of the estimates of blocks


@dataclass(frozen=True)
class CircleCuts:
    """The variances of ranges for a population, from independent samples of users on each level.

    Where there is padding, how what is known of an even population changes with the angles is not
    counted. At an epsilon of 8, with a sixth of padding and 60 % of the users in one item, that is
    up to 11 % of the variance, and 1 % for most ranges.
    """

    levels: Sequence[CircleLevel]  # those that users report on
    population: Floats  # shape (circle,): the fractions of the population, 0 of the padding
    # Shape (domain + 1,): the part of the error of the sum of all items that each prefix gives up;
    # None: there is no padding
    shared: Floats | None

    @property
    def _size(self) -> int:
        return len(self.population)

    @cached_property
    def _alone(self) -> Floats:
        """The part of products of prefixes, by distance, that is the same for any population."""
        total = np.zeros(self._size // 2 + 1)
        for level in self.levels:
            factor = level.law.contrast / (level.users * level.width)
            total += factor * np.abs(np.fft.rfft(level.curve)) ** 2
        return np.fft.irfft(total, self._size)

    @cached_property
    def _means(self) -> Floats:
        """A user's mean contribution to each prefix, over the root of users: (levels, circle)."""
        spectrum, means = np.fft.rfft(self.population), np.empty((len(self.levels), self._size))
        for row, level in zip(means, self.levels, strict=True):
            counted = np.fft.rfft(np.roll(windows(level.curve, level.width), level.width - 1))
            row[:] = np.fft.irfft(spectrum * counted.conj(), self._size)
            row /= level.width * np.sqrt(level.users)
        return means

    def _apart(self, length: int) -> Floats:
        """The users' part of products of prefixes before each item and a length further on."""
        total = np.zeros(self._size)
        for level in self.levels:
            product = windows(level.curve * np.roll(level.curve, length), level.width)
            # A user in item z is in the blocks that begin at z and up to width - 1 before it
            total += (
                level.law.held / (level.users * level.width) * np.roll(product, level.width - 1)
            )
        spectrum = np.fft.rfft(self.population) * np.fft.rfft(total).conj()
        return np.fft.irfft(spectrum, self._size)

    @cached_property
    def _squares(self) -> Floats:
        return self._apart(0)

    def _with(self, place: int) -> Floats:
        """The users' part of products of the prefix before each item and that before a place."""
        total = np.zeros(self._size // 2 + 1, dtype=np.complex128)
        for level in self.levels:
            seen = np.roll(level.curve, place) * windows(self.population, level.width)
            factor = level.law.held / (level.users * level.width)
            total += factor * np.fft.rfft(seen) * np.fft.rfft(level.curve).conj()
        return np.fft.irfft(total, self._size)

    @cached_property
    def _with_nothing(self) -> Floats:
        return self._with(0)

    @cached_property
    def _with_everything(self) -> Floats:
        assert self.shared is not None
        return self._with(len(self.shared) - 1)

    def _products(self, first: Integers, after: Integers) -> Floats:
        """The users' part of products of the prefixes before the two ends of ranges."""
        result = np.where(first == 0, self._with_nothing[after % self._size], 0.0)
        inner = np.flatnonzero(first)
        start, length = first[inner], after[inner] - first[inner]
        # Products change slowly with the length where that is large: a few lengths are computed,
        # with straight lines between
        short = np.minimum(length, self._size - length)
        step = 1 << np.maximum(np.frexp(short)[1] - _EXACT, 0)
        below = length // step * step
        for near, share in (
            (below, 1 - (length - below) / step),
            (below + step, (length - below) / step),
        ):
            some = np.flatnonzero(share)
            some = some[np.argsort(near[some], kind="stable")]
            bounds = np.flatnonzero(np.diff(near[some])) + 1
            # Ranges of the same length share one correlation
            for part in np.split(some, bounds) if len(some) else []:
                products = self._apart(int(near[part[0]]))
                result[inner[part]] += share[part] * products[start[part]]
        return result

    def ranges(self, first: Integers, last: Integers) -> Floats:
        """Return the variances of ranges, but for what the samples of the levels share."""
        size, ends = self._size, (last + 1) % self._size
        variances = self._alone[0] + self._squares
        result = variances[first] + variances[ends]
        result -= 2 * (self._alone[last + 1 - first] + self._products(first, last + 1))
        given = np.zeros(len(first))
        if self.shared is not None:
            domain = len(self.shared) - 1
            nothing, everything = self._with_nothing, self._with_everything
            alone, places = self._alone, np.arange(size)
            # The product of each prefix and the range of all items
            each = alone + nothing - alone[(places - domain) % size] - everything
            given = self.shared[last + 1] - self.shared[first]
            result -= 2 * given * (each[first] - each[ends])
            result += given**2 * (each[0] - each[domain])
        # The variance of a level is the mean square less the square of the mean
        for mean in self._means:
            of_all = mean[0] - mean[len(self.shared) - 1] if self.shared is not None else 0.0
            result -= (mean[first] - mean[ends] - given * of_all) ** 2
        return result


# ------------------------------------------------------------------------------------------------
# The inverse of a symmetric Toeplitz matrix: products, and sums over blocks of its entries.
#
# By Gohberg and Semencul (1972) it is (L(x) L(x)' - L(y) L(y)') / x_0, where x is its first column,
# y is 0 and the rest of x backwards, and L(z) is the lower triangular Toeplitz matrix whose first
# column is z. So products take a few fast Fourier transforms, and sums over blocks of the entries
# are those of products of running sums of x and y.


#: The residual at which conjugate gradients end, and the steps after which Levinson's recursion is
#: used in their place, which takes as many as the square of the size.
_CLOSE, _STEPS = 1e-13, 1000


@dataclass(frozen=True, eq=False)
class ToeplitzInverse:
    """The inverse of a positive definite symmetric Toeplitz matrix."""

    column: Floats  # shape (size,): its first column

    @classmethod
    def of(cls, first: Floats) -> ToeplitzInverse:
        """Return the inverse of the matrix with this first column."""
        size, unit = len(first), np.zeros(len(first))
        unit[0] = 1.0
        # A Toeplitz matrix is the corner of a circulant of twice the size: products by FFT
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
        solution, left = scipy.sparse.linalg.cg(
            scipy.sparse.linalg.LinearOperator(shape, matvec=times),
            unit,
            rtol=_CLOSE,
            maxiter=_STEPS,
            M=scipy.sparse.linalg.LinearOperator(shape, matvec=nearly),
        )
        # `left` is 0 if conjugate gradients arrived
        return cls(scipy.linalg.solve_toeplitz(first, unit) if left else solution)

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
            spectrum = np.fft.rfft(side, 2 * size)
            upper = np.fft.irfft(spectra * spectrum.conj(), 2 * size)[..., :size]
            total += (
                sign * np.fft.irfft(np.fft.rfft(upper, 2 * size) * spectrum, 2 * size)[..., :size]
            )
        return total

    def blocks(self, first: Integers, after: Integers) -> Floats:
        """The sums of the entries whose row and column are both in first .. after - 1."""
        starts, ends = first.ravel(), after.ravel()
        result, lengths = np.zeros(starts.size), ends - starts
        # Blocks of the same length share one cumulated sum of products
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
