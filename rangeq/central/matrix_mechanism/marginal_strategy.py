"""MarginalStrategy: weighted marginals of several attributes, or their residuals.

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
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from rangeq.central.inputs import LARGEST_DOMAIN, checked_shape
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_ENTRY,
    LARGEST_PRODUCT,
    UnanswerableQuery,
    View,
    ViewStrategy,
)
from rangeq.central.matrix_mechanism.workload import Workload

# The part of a query's squared norm that is taken for rounding.
#
# Whatever of a box of up to 2^26 cells is new in a set of attributes is above it.
_ROUNDING = 1e-11


_UNANSWERABLE = "a query does not follow from the marginals that the strategy measures"


class MarginalStrategy(ViewStrategy):
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

    Examples
    --------
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
        self.sizes = checked_shape(sizes)
        self.residual = bool(residual)
        wrong = (
            "views are different sets of attributes, one at least, each by their places in"
            f" ascending order, from 0 to {len(self.sizes) - 1}"
        )
        self._take(views, weights, set(range(len(self.sizes))), wrong)
        largest = max(
            weight * (math.prod(self.sizes[i] for i in view) if residual else 1)
            for view, weight in self._parts
        )
        if largest > (LARGEST_PRODUCT if residual else LARGEST_ENTRY):
            raise ValueError(
                f"a {'residual' if residual else 'marginal'} has an entry of {largest}"
            )
        if self.rows > LARGEST_DOMAIN:
            raise ValueError(f"there are over 2^26 rows: {self.rows}")
        self._covariances = self._inverted()

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        return [
            tuple(n if i in view else 1 for i, n in enumerate(self.sizes)) for view in self.views
        ]

    @property
    def l1(self) -> int:
        return sum(self._column(view, weight, 1) for view, weight in self._parts)

    @property
    def l2_squared(self) -> int:
        return sum(self._column(view, weight, 2) for view, weight in self._parts)

    def _column(self, view: View, weight: int, power: int) -> int:
        """The sum of the absolute entries of a column to a power: the same for all columns."""
        # A column of n I - J has n - 1 once and -1 in the n - 1 other rows, and that of a product
        # is the product; a marginal's has a single 1
        each = [((n := self.sizes[i]) - 1) ** power + n - 1 for i in view if self.residual]
        return weight**power * math.prod(each)

    def _inverted(self) -> dict[View, float]:
        """Return 1 / lambda_S for each S that is measured."""
        eigenvalues: dict[View, int] = {}
        for view, weight in self._parts:
            if self.residual:
                # (n I - J)^2 = n^2 (I - J/n): the factor n^2 along each attribute of S, and nothing
                # but P_S. An attribute of one cell leaves n I - J = 0
                factor = math.prod(self.sizes[i] ** 2 for i in view)
                parts = {view: factor} if all(self.sizes[i] > 1 for i in view) else {}
            else:
                # The identity along S is the sum of the projections of all subsets of S: a marginal
                # tells of its totals, too
                parts = dict.fromkeys(subsets(view), 1)
            for part, factor in parts.items():
                # J along the others has the eigenvalue n on the mean, and projections multiply to
                # 0: so eigenvalues of several marginals add up, and the inverse is taken one by one
                eigenvalues[part] = eigenvalues.get(part, 0) + weight**2 * factor * self._beyond(
                    view
                )
        # Along an attribute of one cell nothing can differ from the mean
        return {
            view: 1 / value
            for view, value in sorted(eigenvalues.items())
            if all(self.sizes[i] > 1 for i in view)
        }

    @property
    def full_rank(self) -> bool:
        # P_S of all subsets add up to the identity, so that all must be measured
        wide = sum(n > 1 for n in self.sizes)
        return len(self._covariances) == 1 << wide

    def measure(self, counts: Integers) -> Integers:
        return np.concatenate([self._measured(counts, *part).ravel() for part in self._parts])

    def _measured(self, counts: Integers, view: View, weight: int) -> Integers:
        others = tuple(i for i in range(len(self.sizes)) if i not in view)
        table: Integers = counts.sum(axis=others, keepdims=True)
        if self.residual:
            for i in view:
                table = self.sizes[i] * table - table.sum(axis=i, keepdims=True)
        return weight * table

    def normal(self, cells: Floats) -> Floats:
        parts = _decomposed(cells, self._covariances)
        return self._sum({view: part / self._covariances[view] for view, part in parts.items()})

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        parts: dict[View, Floats] = {}
        for view, weight, table in self._tables(noisy):
            factor = math.prod(self.sizes[i] for i in view) if self.residual else 1
            asked = [view] if self.residual else subsets(view)
            # P_S (M'M)^+ M'y: of what is broadcast back from a marginal the part in S, divided by
            # lambda_S. n I - J is n times the identity on a residual
            known = [subset for subset in asked if subset in self._covariances]
            for subset, part in _decomposed(table, known).items():
                share = weight * factor * self._covariances[subset] * part
                parts[subset] = parts[subset] + share if subset in parts else share
        return self._sum(parts)

    def _sum(self, parts: dict[View, Floats]) -> Floats:
        total = np.zeros(self.sizes)
        for part in parts.values():
            total += part
        return total

    def variance(self, first: Integers, last: Integers) -> Floats:
        widths = (last - first + 1).astype(np.float64)
        return self._variances(widths, widths**2 / np.array(self.sizes)[:, None])

    def variance_of(self, weights: Sequence[Floats]) -> float:
        squares = np.array([[float(along @ along)] for along in weights])
        means = np.array([[float(along.sum()) ** 2 / len(along)] for along in weights])
        return float(self._variances(squares, means)[0])

    def _variances(self, squares: Floats, means: Floats) -> Floats:
        """Variances from the squared norms along each attribute, and those of the means alone."""
        beside = squares - means
        if not self.full_rank:
            require_products(self._covariances, beside, means)
        total = np.zeros(squares.shape[1])
        for view, covariance in self._covariances.items():
            # P_S of a product of weights is a product: along S what is beside the mean, else the
            # mean. Rounding can leave a difference of squares below 0
            sides = [beside[i] if i in view else means[i] for i in range(len(self.sizes))]
            total += covariance * np.maximum(np.prod(sides, axis=0), 0.0)
        return total

    def _linear_variance(self, query: Floats) -> float:
        cells, known, total = math.prod(self.sizes), 0.0, 0.0
        for view, part in _decomposed(query, self._covariances).items():
            # The part is kept with one place along the other axes, and stands for so many equal
            # cells
            norm = float((part * part).sum()) * cells / part.size
            known, total = known + norm, total + self._covariances[view] * norm
        if not self.full_rank:
            require_norm(known, query)
        return total

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            # Sums over queries of squared norms are traces of Gram matrices, so that no query is
            # written out
            squares = np.array([[queries.trace] for queries in term.factors])
            means = np.array([[queries.total / queries.size] for queries in term.factors])
            total += term.weight * float(self._variances(squares, means)[0])
        return total / workload.weight

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {**super().arrays(), "residual": np.array([[int(self.residual)]])}

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> MarginalStrategy:
        if sorted(arrays) != ["residual", "views", "weights"]:
            raise ValueError("a strategy of marginals has views, weights, and residual")
        residual = arrays["residual"]
        if residual.shape != (1, 1) or residual[0, 0] not in (0, 1):
            raise ValueError("residual is 0 or 1")
        return cls(sizes, *cls._views_of(sizes, arrays), bool(residual[0, 0]))

    def __repr__(self) -> str:
        what = "residuals" if self.residual else "marginals"
        cells = math.prod(self.sizes)
        return (
            f"<MarginalStrategy of {len(self.views)} {what}, {self.rows} numbers of {cells} cells>"
        )


def subsets(view: View) -> list[View]:
    """All subsets of a set of attributes."""
    result: list[View] = [()]
    for i in view:
        result += [(*subset, i) for subset in result]
    return result


def _decomposed(values: Floats, asked: Any) -> dict[View, Floats]:
    """The projections P_S of an array for some S, with one place along all other axes."""
    wanted = set(asked)
    # Only beginnings of wanted sets are followed: all 2^attributes parts would take as many copies
    # of the array
    reach = {prefix[:k] for prefix in wanted for k in range(len(prefix) + 1)}
    parts: dict[View, Floats] = {(): values}
    for axis in range(values.ndim):
        split: dict[View, Floats] = {}
        for view, part in parts.items():
            # Invariant: after an axis, `parts` has one array for each beginning up to it, and their
            # sum is the array that was given, but for what is left out
            mean = part.mean(axis=axis, keepdims=True)
            split[view] = mean
            if (*view, axis) in reach:
                split[*view, axis] = part - mean
        parts = split
    return {view: part for view, part in parts.items() if view in wanted}


def require_products(views: Collection[View], beside: Floats, means: Floats) -> None:
    """Refuse products of queries along the attributes that do not follow from residuals."""
    least = _ROUNDING * (beside + means)
    differs, sums = beside > least, means > least
    # Only where each factor is new, or a sum, as the set has it
    # A product has a part in S if it has a factor of each kind that S needs. The number of parts
    # that are not 0 is the product over attributes of how many of the two kinds there are: a query
    # follows if so many are measured
    known = np.zeros(beside.shape[1], dtype=np.int64)
    for view in views:
        known += np.all([differs[i] if i in view else sums[i] for i in range(len(sums))], axis=0)
    if (known < np.prod(differs.astype(np.int64) + sums, axis=0)).any():
        raise UnanswerableQuery(_UNANSWERABLE)


def require_norm(known: float, query: Floats) -> None:
    """Refuse a query of which a part does not follow from what is measured."""
    if known < (1 - _ROUNDING) * float((query * query).sum()):
        raise UnanswerableQuery(_UNANSWERABLE)
