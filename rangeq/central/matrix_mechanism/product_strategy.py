"""ProductStrategy: every product of one row for each attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.central.inputs import LARGEST_DIMENSION, LARGEST_DOMAIN, checked_shape
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_PRODUCT,
    Strategy,
    UnanswerableQuery,
)
from rangeq.central.matrix_mechanism.workload import Term, Workload

_BESIDE = 1e-10
"""The part of a query's squared norm outside the range that is taken for rounding: less than one
cell of 2^26."""


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
        self._sizes = checked_shape([factor.sizes[0] for factor in self.factors])
        largest = [int(np.abs(factor.matrix).max()) for factor in self.factors]
        if math.prod(largest) > LARGEST_PRODUCT or self.rows > LARGEST_DOMAIN:
            raise ValueError("a product has an entry beyond 2^28, or more than 2^26 rows")

    @property
    def sizes(self) -> tuple[int, ...]:
        return self._sizes

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
        return along_axes([_normal(factor.matrix) for factor in self.factors], cells)

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        numbers = noisy.reshape([factor.rows for factor in self.factors]).astype(np.float64)
        return along_axes([factor.inverse for factor in self.factors], numbers)

    def variance(self, first: Integers, last: Integers) -> Floats:
        variances = [
            factor.variance(first[i : i + 1], last[i : i + 1])
            for i, factor in enumerate(self.factors)
        ]
        product: Floats = np.prod(variances, axis=0)
        return product

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
            if float(((back - query) ** 2).sum()) > _BESIDE * float((query**2).sum()):
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
        """The strategy that gave these `arrays`.

        Parameters
        ----------
        sizes : tuple of int
            The number of cells along each attribute.
        arrays : dict of str to numpy.ndarray
            One for each attribute: "attribute0" and so on.

        Returns
        -------
        ProductStrategy
            Equal to the one that gave them.

        Raises
        ------
        ValueError
            They are none of a product.
        """
        names = [f"attribute{i}" for i in range(len(sizes))]
        if sorted(arrays) != sorted(names):
            raise ValueError(f"a product has a matrix for each of {len(sizes)} attributes")
        return cls([DenseStrategy(arrays[name], n) for name, n in zip(names, sizes, strict=True)])

    @cached_property
    def _shown(self) -> str:
        return " x ".join(str(factor.rows) for factor in self.factors)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProductStrategy):
            return NotImplemented
        return self.factors == other.factors

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ProductStrategy of {self._shown} numbers of {math.prod(self.sizes)} cells>"


def along_axes(matrices: Sequence[npt.NDArray[Any]], values: npt.NDArray[Any]) -> Any:
    """The Kronecker product of matrices times an array: each along its own axis.

    Shapes: `matrices` (new size, size).
    """
    for axis, matrix in enumerate(matrices):
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    return np.ascontiguousarray(values)


def _normal(matrix: Integers) -> Floats:
    floats = matrix.astype(np.float64)
    return floats.T @ floats
