"""MarginalStrategy: weighted marginals of several attributes, or what is new in each.

For a set S of attributes let P_S project a histogram on what depends on all of S and on nothing
else: the difference from the mean along each attribute of S, and the mean along each other one. The
projections add up to the identity, and the Gram matrix M'M of the strategies here is a sum of
lambda_S P_S. So estimates and variances have closed forms, without a matrix of cells by cells.

Of queries that treat the cells of each attribute alike, as those of marginals do, the optimum under
Gaussian noise is such a strategy, and known: with the eigenvalues g_S of the Gram matrix of the
queries and the ranks m_S of the projections, lambda_S is in proportion to the root of g_S, and the
sum of variances is (sum of m_S g_S^(1/2))^2 / cells, which is the spectral bound (Xiao, He, Zhang
and Kifer, NeurIPS 2023: An optimal and scalable matrix mechanism for noisy marginals).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.central.inputs import LARGEST_DIMENSION, LARGEST_DOMAIN, checked_shape
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_ENTRY,
    LARGEST_PRODUCT,
    Strategy,
    UnanswerableQuery,
)
from rangeq.central.matrix_mechanism.workload import Workload

View: TypeAlias = tuple[int, ...]
"""A set of attributes, by their places, ascending."""

_ROUNDING = 1e-11
"""The part of a query's squared norm that is taken for rounding.

Whatever of a box of up to 2^26 cells is new in a set of attributes is above it.
"""


_UNANSWERABLE = "a query does not follow from the marginals that the strategy measures"


class MarginalStrategy(Strategy):
    """Marginals, each with a weight, of sizes that treat all cells of an attribute alike.

    Parameters
    ----------
    sizes : int or sequence of int
        The number of cells along each attribute.
    views : sequence of sequence of int
        The attributes of each marginal, ascending; () for the total. Different ones.
    weights : sequence of int
        A factor for the counts of each, at least 1.
    residual : bool, default False
        Whether of each marginal its residuals are measured, instead of its counts: along each of
        its n cells of an attribute, n times the count less the sum along it.

    Raises
    ------
    ValueError
        Anything else, or entries beyond 2^25 (2^28 of residuals).

    >>> MarginalStrategy((2, 3), [(0,), (0, 1)], [3, 1]).l1
    4
    """

    kind: ClassVar[str] = "marginals"

    def __init__(
        self,
        sizes: int | Sequence[int],
        views: Sequence[Sequence[int]],
        weights: Sequence[int],
        residual: bool = False,
    ) -> None:
        self._sizes = checked_shape(sizes)
        self.views: tuple[View, ...] = tuple(tuple(int(i) for i in view) for view in views)
        self.weights = tuple(int(weight) for weight in weights)
        self.residual = bool(residual)
        places = range(len(self._sizes))
        if (
            not self.views
            or len(set(self.views)) != len(self.views)
            or any(list(view) != sorted(set(view) & set(places)) for view in self.views)
        ):
            raise ValueError(
                "views are different sets of attributes, one at least, each by their places in"
                f" ascending order, from 0 to {len(self._sizes) - 1}"
            )
        if len(self.weights) != len(self.views) or min(self.weights) < 1:
            raise ValueError("each view has a weight, an integer of at least 1")
        largest = max(
            weight * (math.prod(self._sizes[i] for i in view) if residual else 1)
            for view, weight in zip(self.views, self.weights, strict=True)
        )
        if largest > (LARGEST_PRODUCT if residual else LARGEST_ENTRY):
            raise ValueError(
                f"a {'residual' if residual else 'marginal'} has an entry of {largest}"
            )
        if self.rows > LARGEST_DOMAIN:
            raise ValueError(f"there are over 2^26 rows: {self.rows}")
        self._covariances = self._inverted()

    @property
    def sizes(self) -> tuple[int, ...]:
        return self._sizes

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """That of each marginal, 1 along the attributes that it has not."""
        return [self._shape(view) for view in self.views]

    def _shape(self, view: View) -> tuple[int, ...]:
        return tuple(n if i in view else 1 for i, n in enumerate(self._sizes))

    @property
    def rows(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def l1(self) -> int:
        return sum(self._column(view, weight, 1) for view, weight in self._parts)

    @property
    def l2_squared(self) -> int:
        return sum(self._column(view, weight, 2) for view, weight in self._parts)

    @property
    def _parts(self) -> list[tuple[View, int]]:
        return list(zip(self.views, self.weights, strict=True))

    def _column(self, view: View, weight: int, power: int) -> int:
        """The sum of the absolute entries of a column to a power: the same for all columns."""
        each = [((n := self._sizes[i]) - 1) ** power + n - 1 for i in view if self.residual]
        return weight**power * math.prod(each)

    def _inverted(self) -> dict[View, float]:
        """1 / lambda_S, for each S that is measured."""
        eigenvalues: dict[View, int] = {}
        for view, weight in self._parts:
            beyond = math.prod(n for i, n in enumerate(self._sizes) if i not in view)
            if self.residual:
                own = math.prod(self._sizes[i] ** 2 for i in view)
                parts = {view: own} if all(self._sizes[i] > 1 for i in view) else {}
            else:
                parts = dict.fromkeys(subsets(view), 1)
            for part, own in parts.items():
                eigenvalues[part] = eigenvalues.get(part, 0) + weight**2 * own * beyond
        # Along an attribute of one cell nothing can differ from the mean
        return {
            view: 1 / value
            for view, value in sorted(eigenvalues.items())
            if all(self._sizes[i] > 1 for i in view)
        }

    @property
    def full_rank(self) -> bool:
        wide = sum(n > 1 for n in self._sizes)
        return len(self._covariances) == 1 << wide

    def measure(self, counts: Integers) -> Integers:
        return np.concatenate([self._measured(counts, *part).ravel() for part in self._parts])

    def _measured(self, counts: Integers, view: View, weight: int) -> Integers:
        others = tuple(i for i in range(len(self._sizes)) if i not in view)
        table: Integers = counts.sum(axis=others, keepdims=True)
        if self.residual:
            for i in view:
                table = self._sizes[i] * table - table.sum(axis=i, keepdims=True)
        return weight * table

    def normal(self, cells: Floats) -> Floats:
        parts = _decomposed(cells, self._covariances)
        return self._sum({view: part / self._covariances[view] for view, part in parts.items()})

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        found: dict[View, Floats] = {}
        tables = np.split(noisy.astype(np.float64), ends[:-1])
        for (view, weight), flat, shape in zip(self._parts, tables, self.shapes, strict=True):
            own = math.prod(self._sizes[i] for i in view) if self.residual else 1
            asked = [view] if self.residual else subsets(view)
            known = [one for one in asked if one in self._covariances]
            for one, part in _decomposed(flat.reshape(shape), known).items():
                told = weight * own * self._covariances[one] * part
                found[one] = found[one] + told if one in found else told
        return self._sum(found)

    def _sum(self, parts: dict[View, Floats]) -> Floats:
        total = np.zeros(self._sizes)
        for part in parts.values():
            total += part
        return total

    def variance(self, first: Integers, last: Integers) -> Floats:
        widths = (last - first + 1).astype(np.float64)
        return self._variances(widths, widths**2 / np.array(self._sizes)[:, None])

    def variance_of(self, weights: Sequence[Floats]) -> float:
        squares = np.array([[float(own @ own)] for own in weights])
        means = np.array([[float(own.sum()) ** 2 / len(own)] for own in weights])
        return float(self._variances(squares, means)[0])

    def _variances(self, squares: Floats, means: Floats) -> Floats:
        """From the squared norms along each attribute, and those of the means alone."""
        beside = squares - means
        if not self.full_rank:
            require_products(self._covariances, beside, means)
        total = np.zeros(squares.shape[1])
        for view, own in self._covariances.items():
            sides = [beside[i] if i in view else means[i] for i in range(len(self._sizes))]
            total += own * np.maximum(np.prod(sides, axis=0), 0.0)
        return total

    def linear_variances(self, queries: Floats) -> Floats:
        return np.array([self._linear_variance(query) for query in queries])

    def _linear_variance(self, query: Floats) -> float:
        cells, known, total = math.prod(self._sizes), 0.0, 0.0
        for view, part in _decomposed(query, self._covariances).items():
            norm = float((part * part).sum()) * cells / part.size
            known, total = known + norm, total + self._covariances[view] * norm
        if not self.full_rank:
            require_norm(known, query)
        return total

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            squares = np.array([[own.trace] for own in term.factors])
            means = np.array([[own.total / own.size] for own in term.factors])
            total += term.weight * float(self._variances(squares, means)[0])
        return total / workload.weight

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        places = range(len(self._sizes))
        return {
            "views": np.array([[int(i in view) for i in places] for view in self.views]),
            "weights": np.array([self.weights]),
            "residual": np.array([[int(self.residual)]]),
        }

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> MarginalStrategy:
        """The strategy that gave these `arrays`.

        Parameters
        ----------
        sizes : tuple of int
            The number of cells along each attribute.
        arrays : dict of str to numpy.ndarray
            "views", "weights" and "residual".

        Returns
        -------
        MarginalStrategy
            Equal to the one that gave them.

        Raises
        ------
        ValueError
            They are none of marginals.
        """
        if sorted(arrays) != ["residual", "views", "weights"]:
            raise ValueError("a strategy of marginals has views, weights, and residual")
        views, weights, residual = (arrays[name] for name in ("views", "weights", "residual"))
        if (
            views.shape != (weights.size, len(sizes))
            or weights.shape != (1, len(views))
            or residual.shape != (1, 1)
            or not np.isin(views, (0, 1)).all()
            or residual[0, 0] not in (0, 1)
            or len(views) > 1 << LARGEST_DIMENSION
        ):
            raise ValueError("views, weights and residual do not fit each other")
        named = [np.flatnonzero(row).tolist() for row in views]
        return cls(sizes, named, weights[0].tolist(), bool(residual[0, 0]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MarginalStrategy):
            return NotImplemented
        return (self.sizes, self._parts, self.residual) == (
            other.sizes,
            other._parts,
            other.residual,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        what = "residuals" if self.residual else "marginals"
        cells = math.prod(self.sizes)
        return (
            f"<MarginalStrategy of {len(self.views)} {what}, {self.rows} numbers of {cells} cells>"
        )


def subsets(view: View) -> list[View]:
    """All subsets of a set of attributes."""
    found: list[View] = [()]
    for i in view:
        found += [(*one, i) for one in found]
    return found


def _decomposed(values: Floats, asked: Any) -> dict[View, Floats]:
    """The projections P_S of an array for some S, with one place along all other axes."""
    wanted = set(asked)
    reach = {one[:k] for one in wanted for k in range(len(one) + 1)}
    parts: dict[View, Floats] = {(): values}
    for axis in range(values.ndim):
        split: dict[View, Floats] = {}
        for view, part in parts.items():
            mean = part.mean(axis=axis, keepdims=True)
            split[view] = mean
            if (*view, axis) in reach:
                split[*view, axis] = part - mean
        parts = split
    return {view: part for view, part in parts.items() if view in wanted}


def require_products(views: Collection[View], beside: Floats, means: Floats) -> None:
    """Refuse products of queries along the attributes that do not follow from residuals.

    Shapes: `beside` and `means` (attributes, queries).
    """
    least = _ROUNDING * (beside + means)
    differs, sums = beside > least, means > least
    # Only where each factor is new, or a sum, as the set has it
    known = np.zeros(beside.shape[1], dtype=np.int64)
    for view in views:
        known += np.all([differs[i] if i in view else sums[i] for i in range(len(sums))], axis=0)
    if (known < np.prod(differs.astype(np.int64) + sums, axis=0)).any():
        raise UnanswerableQuery(_UNANSWERABLE)


def require_norm(known: float, query: Floats) -> None:
    """Refuse a query of which a part does not follow from what is measured."""
    if known < (1 - _ROUNDING) * float((query * query).sum()):
        raise UnanswerableQuery(_UNANSWERABLE)
