"""DenseStrategy: a strategy whose matrix is written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import Floats, Integers
from rangeq.central.inputs import LARGEST_DIMENSION, LARGEST_DOMAIN, checked_shape
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_ENTRY,
    LARGEST_PRODUCT,
    Strategy,
    UnanswerableQuery,
    checked_entries,
)
from rangeq.central.matrix_mechanism.workload import LARGEST_GRAM, Term, Workload, kronecker
from rangeq.core import cumulated

LARGEST_ROWS = 1 << 13

SCALE_BITS = 20  #: A designed strategy with columns of norm 1 is rounded to multiples of 2^-20.

_NULL = 1e-10  # eigenvalues below it, relative to the largest, are taken for 0

_BESIDE = 1e-6  # the part of a query's squared norm outside the range that is taken for rounding

_CHUNK = 1 << 24


class DenseStrategy(Strategy):
    """A strategy whose matrix is written out, over up to 4096 cells.

    Parameters
    ----------
    matrix : array_like
        Shape (rows, cells): integers of absolute value at most 2^25; at most 2^13 rows.
    sizes : int or sequence of int, optional
        The cells along each attribute, of which the last is the fastest; None: one attribute.

    Attributes
    ----------
    matrix : numpy.ndarray of int64
        Read-only.

    Raises
    ------
    ValueError
        Anything else.

    Examples
    --------
    >>> strategy = DenseStrategy([[1, 1], [1, 0], [0, 1]])
    >>> strategy.l1, strategy.l2_squared
    (2, 2)
    """

    kind: ClassVar[str] = "dense"

    def __init__(self, matrix: npt.ArrayLike, sizes: int | Sequence[int] | None = None) -> None:
        self.matrix = checked_entries(np.asarray(matrix), "the matrix of a strategy")
        rows, cells = self.matrix.shape
        self.sizes = checked_shape(cells if sizes is None else sizes)
        if math.prod(self.sizes) != cells or cells > LARGEST_GRAM or rows > LARGEST_ROWS:
            raise ValueError(
                f"the matrix of a dense strategy has at most {LARGEST_ROWS} rows and a column for"
                f" each of at most {LARGEST_GRAM} cells, got {rows} x {cells}"
            )

    @classmethod
    def of_gram(
        cls,
        gram: Floats,
        basis: Integers,
        sizes: int | Sequence[int] | None = None,
        bits: int = SCALE_BITS,
    ) -> DenseStrategy:
        """Make a strategy A with A'A near a matrix, and its row space exactly that of a basis.

        Parameters
        ----------
        gram : numpy.ndarray of float64
            A'A, shape (cells, cells), with a diagonal of at most 1, of the same range as the basis.
        basis : numpy.ndarray of int64
            Linearly independent integer rows, shape (rank, cells).
        sizes : int or sequence of int, optional
            As for `DenseStrategy`.
        bits : int, default 20
            Entries are rounded to multiples of 2^-bits.

        Returns
        -------
        DenseStrategy
            A, rounded, times 2^bits.
        """
        # A'A = R'R for the triangle R of a QR of any root of it: a triangle has half the entries,
        # and is the same for any signs and order of eigenvectors, but for the signs of its rows.
        # Not Cholesky's factor: A'A is singular where the basis is smaller than the cells, and
        # rounding makes it indefinite
        values, vectors = np.linalg.eigh(gram)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        # In coordinates of an integer basis, so that the rounded rows are integer combinations of
        # it: rounded cell by cell they would leave the row space, and measure what no query asks
        if len(basis) < len(gram):  # else it is the identity
            root = root @ np.linalg.pinv(basis.astype(np.float64))
        triangle = scipy.linalg.qr(root, mode="r")[0][: len(basis)]
        rounded = np.rint(triangle * 2.0**bits).astype(np.int64)
        return cls(rounded @ basis if len(basis) < len(gram) else rounded, sizes)

    def finer(self) -> Strategy:
        spare = (LARGEST_ENTRY // int(np.abs(self.matrix).max())).bit_length() - 1
        if self.noise is not None or not spare:
            return self
        return DenseStrategy(self.matrix << spare, self.sizes)

    @property
    def rows(self) -> int:
        return len(self.matrix)

    @cached_property
    def l1(self) -> int:
        return int(np.abs(self.matrix).sum(axis=0).max())

    @cached_property
    def l2_squared(self) -> int:
        # At most 2^13 squares of at most 2^50, which reach 2^63
        return int((self.matrix * self.matrix).sum(axis=0, dtype=np.uint64).max())

    @property
    def full_rank(self) -> bool:
        return self._beside is None

    def measure(self, counts: Integers) -> Integers:
        return self.matrix @ counts.ravel()

    def normal(self, cells: Floats) -> Floats:
        scaled = self._scaled
        product: Floats = scaled.T @ (scaled @ cells.ravel()) * self._square
        return product.reshape(self.sizes)

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        cells: Floats = self._covariance @ (self._scaled.T @ (noisy / self._unit))
        return cells.reshape(self.sizes)

    @cached_property
    def inverse(self) -> Floats:
        """The pseudoinverse of the matrix, which estimates the cells: shape (cells, rows)."""
        return self._covariance @ self._scaled.T / self._unit

    @property
    def _square(self) -> float:
        """The largest squared norm of a column."""
        return self.l2_squared

    @property
    def _unit(self) -> float:
        return math.sqrt(self._square)

    @cached_property
    def _scaled(self) -> Floats:
        # Columns of norm at most 1, so that thresholds on eigenvalues and parts of queries mean the
        # same for any integers
        return self.matrix / self._unit

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """The eigenvalues above 0 of A'A, A of columns of norm at most 1, and their vectors."""
        scaled = self._scaled
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        # Rounding leaves eigenvalues of the null space near 1e-16 of the largest, and of either
        # sign; inverted they would be all of the covariance
        kept = values > _NULL * values[-1]
        return values[kept], vectors[:, kept]

    @cached_property
    def _covariance(self) -> Floats:
        """The covariance matrix of the estimated cells, for noise of variance _square."""
        values, vectors = self._spectrum
        return (vectors / values) @ vectors.T

    @cached_property
    def _beside(self) -> Floats | None:
        """The projection on what is not measured; None if that is nothing."""
        values, vectors = self._spectrum
        cells = len(vectors)
        return None if len(values) == cells else np.eye(cells) - vectors @ vectors.T

    def variance(self, first: Integers, last: Integers) -> Floats:
        if len(self.sizes) > 1:
            return self._box_variances(first, last)
        low, high = first[0], last[0] + 1
        if self._beside is not None:
            # The squared norm of an indicator is its width
            norms = (high - low).astype(np.float64)
            self._require(block_sum(self._beside_sums, low, high), norms)
        # A difference of prefix sums can round to below 0
        return np.maximum(block_sum(self._sums, low, high), 0.0) / self._square

    @cached_property
    def _sums(self) -> Floats:
        """Covariances of prefixes: entry (i, j) is that of the first i and the first j cells."""
        return cumulated(self._covariance)

    @cached_property
    def _beside_sums(self) -> Floats:
        assert self._beside is not None
        return cumulated(self._beside)

    def _box_variances(self, first: Integers, last: Integers) -> Floats:
        places = np.indices(self.sizes).reshape(len(self.sizes), -1)
        variances = np.empty(first.shape[1])
        # Boxes are written out as queries, in chunks of 128 MB
        step = max(1, _CHUNK // places.shape[1])
        for start in range(0, len(variances), step):
            some = slice(start, start + step)
            low, high = first[:, some, None], last[:, some, None]
            inside = ((places[:, None] >= low) & (places[:, None] <= high)).all(axis=0)
            queries: Floats = np.asarray(inside, dtype=np.float64)
            variances[some] = self.linear_variances(queries)
        return variances

    def variance_of(self, weights: Sequence[Floats]) -> float:
        query: Floats = kronecker(weights).reshape(1, *self.sizes)
        return float(self.linear_variances(query)[0])

    def linear_variances(self, queries: Floats) -> Floats:
        flat = queries.reshape(len(queries), -1)
        if self._beside is not None:
            outside = np.einsum("qi,qi->q", flat @ self._beside, flat)
            self._require(outside, (flat * flat).sum(axis=1))
        return np.einsum("qi,qi->q", flat @ self._covariance, flat) / self._square

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            gram = kronecker([factor.gram for factor in term.factors])
            if self._beside is not None:
                # tr(G P) with the projection P on what is not measured is the sum of the squared
                # parts of all queries there: one number refuses a workload without any query
                # written out
                outside, norm = float(np.sum(gram * self._beside)), float(np.trace(gram))
                self._require(np.array([outside]), np.array([norm]))
            total += term.weight * float(np.sum(gram * self._covariance))
        return total / self._square / workload.weight

    def _require(self, outside: Floats, norms: Floats) -> None:
        bad = outside > _BESIDE * norms
        if bad.any():
            raise UnanswerableQuery(
                f"the strategy measures {len(self._spectrum[0])} independent numbers of"
                f" {self.matrix.shape[1]} cells, from which query {int(np.argmax(bad))} does not"
                " follow"
            )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"matrix": self.matrix}

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> DenseStrategy:
        if list(arrays) != ["matrix"]:
            raise ValueError(f"a dense strategy has one matrix, got {', '.join(arrays) or 'none'}")
        return cls(arrays["matrix"], sizes)

    def __repr__(self) -> str:
        return f"<DenseStrategy of {self.rows} numbers of {self.matrix.shape[1]} cells>"


def block_sum(sums: Floats, low: Integers, high: Integers) -> Floats:
    """Return the sum over a square block of a symmetric matrix, from its prefix sums."""
    return sums[high, high] - 2 * sums[low, high] + sums[low, low]


# ------------------------------------------------------------------------------------------------
# ProductStrategy: every product of one row for each attribute.


# The part of a query's squared norm outside the range that is taken for rounding: less than one
# cell of 2^26.
_BESIDE_FACTORS = 1e-10


class ProductStrategy(Strategy):
    """The Kronecker product of a strategy for each attribute.

    Its sensitivities are the products of theirs, exactly, and so are the variances of boxes.

    Parameters
    ----------
    factors : sequence of DenseStrategy
        One for each attribute, each of one attribute.

    Raises
    ------
    ValueError
        None or more than eight, or products of entries beyond 2^28, or more than 2^26 rows.
    """

    kind: ClassVar[str] = "product"

    def __init__(self, factors: Sequence[DenseStrategy]) -> None:
        self.factors = tuple(factors)
        if not 1 <= len(self.factors) <= LARGEST_DIMENSION:
            raise ValueError(f"a product is of 1 to {LARGEST_DIMENSION} strategies")
        if any(len(factor.sizes) > 1 for factor in self.factors):
            raise ValueError("the factors of a product are strategies of one attribute each")
        self.sizes = checked_shape([factor.sizes[0] for factor in self.factors])
        largest = [int(np.abs(factor.matrix).max()) for factor in self.factors]
        if math.prod(largest) > LARGEST_PRODUCT or self.rows > LARGEST_DOMAIN:
            raise ValueError("a product has an entry beyond 2^28, or more than 2^26 rows")

    @property
    def rows(self) -> int:
        return math.prod(factor.rows for factor in self.factors)

    @property
    def l1(self) -> int:
        return math.prod(factor.l1 for factor in self.factors)

    @property
    def l2_squared(self) -> int:
        return math.prod(factor.l2_squared for factor in self.factors)

    @property
    def full_rank(self) -> bool:
        return all(factor.full_rank for factor in self.factors)

    def measure(self, counts: Integers) -> Integers:
        # No sum on the way is above 2^28 times the users: each factor has an entry of at least 1
        measured: Integers = along_axes([factor.matrix for factor in self.factors], counts)
        return measured.ravel()

    def normal(self, cells: Floats) -> Floats:
        matrices = [factor.matrix.astype(np.float64) for factor in self.factors]
        return along_axes([matrix.T @ matrix for matrix in matrices], cells)

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        numbers = noisy.reshape([factor.rows for factor in self.factors]).astype(np.float64)
        return along_axes([factor.inverse for factor in self.factors], numbers)

    def variance(self, first: Integers, last: Integers) -> Floats:
        variances = [
            factor.variance(first[i : i + 1], last[i : i + 1])
            for i, factor in enumerate(self.factors)
        ]
        return np.prod(variances, axis=0)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        return math.prod(
            factor.variance_of([along]) for factor, along in zip(self.factors, weights, strict=True)
        )

    def linear_variances(self, queries: Floats) -> Floats:
        return np.array([self._linear_variance(query) for query in queries])

    def _linear_variance(self, query: Floats) -> float:
        # q'x is estimated by (M^+' q)' y: its variance per unit of noise is the squared norm of
        # M^+' q, and M' M^+' q is the projection of q on what is measured
        coefficients = along_axes([factor.inverse.T for factor in self.factors], query)
        if not self.full_rank:
            back = along_axes(
                [factor.matrix.T.astype(float) for factor in self.factors], coefficients
            )
            if float(((back - query) ** 2).sum()) > _BESIDE_FACTORS * float((query**2).sum()):
                raise UnanswerableQuery("a query does not follow from what the strategy measures")
        return float((coefficients * coefficients).sum())

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            parts = [
                factor.workload_variance(Workload(factor.sizes, (Term(1.0, (queries,)),)))
                for factor, queries in zip(self.factors, term.factors, strict=True)
            ]
            # A factor gives means over its queries, so that the count makes the product of means a
            # sum
            total += term.weight * term.count * math.prod(parts)
        return total / workload.weight

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {f"attribute{i}": factor.matrix for i, factor in enumerate(self.factors)}

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> ProductStrategy:
        names = [f"attribute{i}" for i in range(len(sizes))]
        if sorted(arrays) != sorted(names):
            raise ValueError(f"a product has a matrix for each of {len(sizes)} attributes")
        return cls([DenseStrategy(arrays[name], n) for name, n in zip(names, sizes, strict=True)])

    def __repr__(self) -> str:
        rows = " x ".join(str(factor.rows) for factor in self.factors)
        return f"<ProductStrategy of {rows} numbers of {math.prod(self.sizes)} cells>"


def along_axes(matrices: Sequence[npt.NDArray[Any]], values: npt.NDArray[Any]) -> Any:
    """Return the Kronecker product of matrices times an array: each along its own axis."""
    for axis, matrix in enumerate(matrices):
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    return np.ascontiguousarray(values).reshape(np.shape(values))  # which has an axis at least
