"""SpectralStrategy: near the least error for prefixes or ranges over a million cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers, shown, whole
from rangeq.central.matrix_mechanism.gram_optimum import LARGEST_PATH, ReflectedKernel
from rangeq.central.matrix_mechanism.strategy import LARGEST_ENTRY, LARGEST_PRODUCT, Strategy
from rangeq.central.matrix_mechanism.workload import InvalidWorkload, QuerySet, Workload

LEAST_LARGEST_ENTRY = (
    1 << 12
)  #: The largest entry is at least that, so that rounding is not coarse.

_LEAST = 2.0**-30  # the least eigenvalue of the kernel, relative to the largest

_CHUNK = 1 << 22


class SpectralStrategy(Strategy):
    """A function of the second difference, with columns that are rescaled.

    For prefixes and for ranges the inverse of the workload's Gram matrix G is tridiagonal, with the
    rows (-1, 2, -1) up to a factor: of prefixes the first row is (1, -1). So functions of G are
    ``ReflectedKernel`` matrices, and so is G^(1/4), whose Gram matrix G^(1/2) attains the spectral
    bound but for its diagonal, which is not constant. The strategy is G^(1/4) with its columns
    rescaled to equal norms. `of_workload` makes it; ``least_path_error`` says how near it is.

    Parameters
    ----------
    kernel : array_like
        f(0), f(1), ..: integers >= 0 that do not increase. Either size + 1 of them: then the entry
        of the strategy in row i and column j is (f(i - j) + f(i + j + 1)) scales[j]; or size + 2,
        of which the last is 0: then it is (f(i - j) - f(i + j + 2)) scales[j], and f continues as
        ``ReflectedKernel`` says. So no entry is below 0.
    scales : array_like
        Integers >= 1, shape (size,), size at most 2^20.

    Attributes
    ----------
    kernel, scales : numpy.ndarray of int64
        Read-only.

    Raises
    ------
    ValueError
        Anything else, entries beyond 2^28, or a matrix that cannot be inverted.

    Examples
    --------
    >>> strategy = SpectralStrategy([1, 0, 0, 0], [1, 1])  # the cells themselves
    >>> strategy.l1, strategy.l2_squared
    (1, 1)
    """

    kind: ClassVar[str] = "spectral"

    def __init__(self, kernel: npt.ArrayLike, scales: npt.ArrayLike) -> None:
        self.scales = _checked(scales, "scales", 1)
        size = len(self.scales)
        self.sizes = (size,)
        half = _checked(kernel, "the kernel", 0)
        shift = len(half) - size
        if size > LARGEST_PATH or shift not in (1, 2):
            raise ValueError(
                f"a spectral strategy has at most {LARGEST_PATH} scales, and a kernel of one or two"
                f" numbers more; got {size} and {len(half)}"
            )
        # A kernel that does not increase, with |i - j| <= i + j + 2, makes all entries at least 0:
        # then sums of columns are sums of absolute values, and `l1` takes no matrix
        if (np.diff(half) > 0).any() or (shift == 2 and half[-1] != 0):
            raise ValueError("the kernel must not increase, and the longer one ends with 0")
        if (_largest_entries(half, size) * self.scales > LARGEST_PRODUCT).any():
            raise ValueError("the kernel times the scales gives entries beyond 2^28")
        self.kernel, self._matrix = half, ReflectedKernel(half, size)
        # 2^-30 leaves half of the digits of floats to the inverse that estimates the cells
        spectrum = np.abs(self._matrix.eigenvalues)
        if spectrum.min() <= _LEAST * spectrum.max():
            raise ValueError("the kernel's matrix cannot be inverted")

    @classmethod
    def of_workload(cls, name: str, size: int, largest: int = LARGEST_PRODUCT) -> SpectralStrategy:
        """Make a strategy for prefixes or ranges, near the least error under Gaussian noise.

        Parameters
        ----------
        name : str
            "prefixes" or "ranges".
        size : int
            The number of cells, 1 .. 2^20.
        largest : int, default 2^28
            The bound on entries, 2^12 .. 2^28: noise is in proportion, and large noise needs small
            ones.

        Returns
        -------
        SpectralStrategy
            Its error is within 0.5 % of the least for entries up to 2^28.

        Raises
        ------
        InvalidWorkload, ValueError
            Another name; another size or largest entry.

        Examples
        --------
        >>> SpectralStrategy.of_workload("prefixes", 1 << 10).full_rank
        True
        """
        size = whole(size, "size", 1, LARGEST_PATH)
        if name not in ("prefixes", "ranges"):
            raise InvalidWorkload(
                f"a spectral strategy is for prefixes or ranges, not {shown(name)}"
            )
        half = _fourth_root(1 if name == "prefixes" else 2, size)
        largest = whole(largest, "largest", LEAST_LARGEST_ENTRY, LARGEST_PRODUCT)
        # Bits are shared by kernel and scales so that the rounding of both costs about the same
        bits = (size.bit_length() + largest.bit_length() - 4) // 3
        # The norms are those of the rounded kernel, so that its rounding costs no balance between
        # columns
        rounded = np.rint(half * (2.0**bits / half[0])).astype(np.int64)
        squares = ReflectedKernel(rounded, size).square_diagonal()
        norms = np.sqrt(np.array(squares, dtype=np.float64))
        common = float((largest / _largest_entries(rounded, size) * norms).min())
        # Rounded down: no product passes `largest`
        return cls(rounded, np.floor(common / norms).astype(np.int64))

    @property
    def rows(self) -> int:
        return len(self.scales)

    @cached_property
    def l1(self) -> int:
        # No entry is below 0, and no sum of 2^20 entries beyond 2^48
        return int((self._matrix.column_sums() * self.scales).max())

    @cached_property
    def l2_squared(self) -> int:
        # Python's integers, as squares over 2^20 rows pass 2^63
        norms = self._matrix.square_diagonal()
        return max(norm * scale**2 for norm, scale in zip(norms, self.scales.tolist(), strict=True))

    @property
    def full_rank(self) -> bool:
        return True

    def measure(self, counts: Integers) -> Integers:
        return self._matrix.apply_exactly(self.scales * counts)

    def normal(self, cells: Floats) -> Floats:
        return self.scales * self._square.apply(self.scales * cells)

    @cached_property
    def _square(self) -> ReflectedKernel:
        return self._matrix.power(2)

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        return self._inverse.apply(noisy.astype(np.float64)) / self.scales

    @cached_property
    def _inverse(self) -> ReflectedKernel:
        return self._matrix.power(-1)

    @cached_property
    def _covariance(self) -> ReflectedKernel:
        """The covariance matrix of the estimated cells times the scales."""
        return self._matrix.power(-2)

    def _chunks(self, count: int) -> list[slice]:
        step = max(1, _CHUNK // self.rows)
        return [slice(start, start + step) for start in range(0, count, step)]

    def linear_variances(self, queries: Floats) -> Floats:
        variances = np.empty(len(queries))
        for some in self._chunks(len(queries)):
            # (A'A)^-1 = D^-1 K^-2 D^-1 with the scales D: a variance is the squared norm of K^-1
            # D^-1 w, a sum of squares, and never below 0
            variances[some] = (self._inverse.apply(queries[some] / self.scales) ** 2).sum(axis=1)
        return variances

    def variance_of(self, weights: Sequence[Floats]) -> float:
        return float(self.linear_variances(weights[0][None])[0])

    def variance(self, first: Integers, last: Integers) -> Floats:
        low, high = first[0], last[0] + 1
        variances: Floats = self._prefix_variances[low] + self._prefix_variances[high]
        # One product with the matrix gives the covariances of one prefix and all others
        fewer, other = sorted((low, high), key=lambda ends: len(np.unique(ends)))
        ends, members = np.unique(fewer, return_inverse=True)
        order = np.argsort(members, kind="stable")
        starts = np.searchsorted(members[order], np.arange(len(ends) + 1))
        for some in self._chunks(len(ends)):
            covariances = self._prefix_covariances(ends[some])
            asked = order[starts[some.start] : starts[min(some.stop, len(ends))]]
            variances[asked] -= 2 * covariances[members[asked] - some.start, other[asked]]
        # A difference of large variances that nearly cancel can round to below 0
        return np.maximum(variances, 0.0)

    def _prefix_covariances(self, ends: Integers) -> Floats:
        """Covariances of prefixes: of those with given ends with those with the ends 0 .. size."""
        inside = np.arange(self.rows) < ends[:, None]
        moved = self._covariance.apply(inside / self.scales) / self.scales
        return np.cumsum(np.pad(moved, ((0, 0), (1, 0))), axis=1)

    @cached_property
    def _prefix_variances(self) -> Floats:
        """The variances of the sums of the first 0 .. size cells."""
        weights = 1 / self.scales
        # The variance of a prefix grows by C_ii + 2 sum of C_ij over j < i with its cell i: twice
        # the lower triangle with its diagonal, less the diagonal once
        before = 2 * self._covariance.lower_apply(weights) - self._covariance.diagonal() * weights
        return np.concatenate([[0.0], np.cumsum(before * weights)])

    def workload_variance(self, workload: Workload) -> float:
        if workload.sizes != self.sizes:
            raise ValueError(f"the strategy is for {self.sizes} cells, not {workload.sizes}")
        total = sum(term.weight * self._sum_of(term.factors[0]) for term in workload.terms)
        return total / workload.weight

    def _sum_of(self, queries: QuerySet) -> float:
        """Return the sum of the variances of queries."""
        # That is the sum of G[i, j] C[i, j], C the covariance of the cells. By names G is on and
        # below the diagonal a sum of products of a function of i and one of j, up to i - j = width.
        if queries.matrix is not None:
            return float(self.linear_variances(queries.matrix).sum())
        size, cell = self.rows, np.arange(self.rows, dtype=np.float64)
        ones, width = np.ones(size), size
        if queries.name == "prefixes":
            products = [(size - cell, ones)]
        elif queries.name == "ranges":
            products = [(size - cell, cell + 1)]
        elif queries.name == "total":
            products = [(ones, ones)]
        else:
            width = queries.width
            first = np.minimum(cell, size - width) + 1
            products = [(ones, first), (-np.maximum(cell - width + 1, 0), ones)]
        # G and C are symmetric: the sum over all pairs is twice that over i >= j, less the
        # diagonal. Products of functions of i and of j turn it into a few products with a triangle
        total = 0.0
        for below, beside in products:
            right = beside / self.scales
            part = 2 * self._covariance.lower_apply(right) - self._covariance.diagonal() * right
            # Beyond the width no range covers both cells, and the formula would go below 0
            if width < size:
                part -= 2 * self._covariance.lower_apply(right, width)
            total += float(part @ (below / self.scales))
        return total

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"kernel": self.kernel, "scales": self.scales}

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> SpectralStrategy:
        if sorted(arrays) != ["kernel", "scales"] or sizes != arrays["scales"].shape:
            raise ValueError(
                "a spectral strategy has a kernel and a scale for each cell of one attribute"
            )
        return cls(arrays["kernel"], arrays["scales"])

    def __repr__(self) -> str:
        return f"<SpectralStrategy of {self.rows} cells>"


def _fourth_root(shift: int, size: int) -> Floats:
    """The kernel f of G^(1/4), up to a factor: it decreases."""
    frequency = np.arange(1, size + 1)
    # The second difference has the eigenvalues 4 sin^2: G is its inverse, up to a factor, and the
    # fourth root of that is the power -1/2 of the sine
    angles = np.pi * (2 * frequency - (2 - shift)) / (4 * size + 2 * shift)
    half = ReflectedKernel.of_spectrum(np.sin(angles) ** -0.5, shift).half
    # A multiple of (-1)^d does not matter: that of the next frequency, pi / 2, makes f smooth
    half = half + (-1.0) ** np.arange(len(half)) / (2 * size + shift)
    return half - half[-1] if shift == 2 else half


def _largest_entries(half: Integers, size: int) -> Integers:
    """A bound on the largest entry of each column of a kernel's matrix."""
    # As f does not increase, no entry of column j is above f(0) + f(j + 1), or f(0)
    if len(half) == size + 1:
        return half[0] + half[1:]
    return np.full(size, half[0])


def _checked(given: npt.ArrayLike, name: str, least: int) -> Integers:
    array = np.asarray(given)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be an array of integers of one dimension")
    if (array < least).any() or (array > LARGEST_ENTRY).any():
        raise ValueError(f"{name} must be within {least} .. 2^25")
    integers: Integers = array.astype(np.int64)
    integers.setflags(write=False)
    return integers
