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
from rangeq.central.inputs import (
    LARGEST_DOMAIN,
    LARGEST_MARGINALS,
    MarginalCounts,
    checked_shape,
)
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_ENTRY,
    LARGEST_PRODUCT,
    ROUNDING,
    UnanswerableQuery,
    View,
    ViewStrategy,
    subsets,
    sum_of_parts,
)
from rangeq.central.matrix_mechanism.workload import Workload
from rangeq.core import contrasts

_UNANSWERABLE = "a query does not follow from the marginals that the strategy measures"


class MarginalStrategy(ViewStrategy):
    """Marginals, each with a weight, of sizes that treat all cells of an attribute alike.

    The table of all cells is never made, so there may be up to 100 attributes: of more than 8, or
    of more than 2^26 cells, a `MarginalCounts` is released instead of a histogram.

    Parameters
    ----------
    sizes : int or sequence of int
        The number of cells along each attribute.
    views : sequence of sequence of int
        The attributes of each marginal, ascending; () for the total. One may be measured twice.
    weights : sequence of int
        A factor for the counts of each, at least 1.
    residual : bool, default False
        Whether of each marginal its residuals are measured, instead of its counts: along each of
        its n cells of an attribute, n times the count less the sum along it.

    Attributes
    ----------
    precisions : dict of tuple of int to float
        For each set of attributes of which the residuals of a marginal follow, their precision per
        unit of noise variance.

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
        self.sizes = checked_shape(sizes, LARGEST_MARGINALS)
        self.residual = bool(residual)
        wrong = (
            "views are sets of attributes, one at least, each by their places in"
            f" ascending order, from 0 to {len(self.sizes) - 1}"
        )
        self._take(views, weights, set(range(len(self.sizes))), wrong, again=True)
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
        self.precisions = self._told()

    @property
    def whole_weights(self) -> dict[View, int]:
        again = self.residual or len(set(self.views)) < len(self.views)
        return {} if again else dict(self._parts)

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.sizes[i] for i in view) for view in self.views]

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

    def _told(self) -> dict[View, float]:
        """Return for each S that is measured what is told of the residuals of its marginal.

        That is lambda_S over the number of cells along the other attributes: the precision of the
        residuals, which sum to 0 along each attribute, per unit of noise variance.
        """
        precisions: dict[View, float] = {}
        for view, weight in self._parts:
            if self.residual:
                # (n I - J)^2 = n^2 (I - J/n): the factor n^2 along each attribute of S, and nothing
                # but P_S. An attribute of one cell leaves n I - J = 0
                factor = math.prod(self.sizes[i] ** 2 for i in view)
                if all(self.sizes[i] > 1 for i in view):
                    precisions[view] = precisions.get(view, 0.0) + float(weight**2 * factor)
                continue
            # The identity along a set is the sum of the projections of all its subsets: a marginal
            # tells of its totals, too, each of which has the noise of all that it adds up. As
            # projections multiply to 0, what several marginals tell adds up
            for part in subsets(view):
                summed = math.prod(self.sizes[i] for i in view if i not in part)
                precisions[part] = precisions.get(part, 0.0) + weight**2 / summed
        # Along an attribute of one cell nothing can differ from the mean
        return {
            view: value
            for view, value in sorted(precisions.items())
            if all(self.sizes[i] > 1 for i in view)
        }

    @property
    def full_rank(self) -> bool:
        # P_S of all subsets add up to the identity, so that all must be measured
        wide = sum(n > 1 for n in self.sizes)
        return len(self.precisions) == 1 << wide

    def measure(self, counts: Integers | MarginalCounts) -> Integers:
        return np.concatenate([self._measured(counts, *part).ravel() for part in self._parts])

    def _measured(self, counts: Integers | MarginalCounts, view: View, weight: int) -> Integers:
        table = self._marginal(counts, view)
        if self.residual:
            for axis, i in enumerate(view):
                table = self.sizes[i] * table - table.sum(axis=axis, keepdims=True)
        # Users may be divided into as many parts already
        shared = isinstance(counts, MarginalCounts) and counts.parts
        return table if shared else weight * table

    def normal(self, cells: Floats) -> Floats:
        # P_S of the cells, times lambda_S: the residual is that of sums, of as many cells
        parts = {
            view: self.precisions[view] * self._beyond(view) * contrasts(sums)
            for view in self.precisions
            for sums in [cells.sum(axis=self._others(view))]
        }
        return sum_of_parts(self.sizes, parts)

    def parts(self, noisy: npt.NDArray[Any]) -> dict[View, Floats]:
        parts: dict[View, Floats] = {}
        for view, weight, table in self._tables(noisy):
            # n I - J is n times the identity on a residual
            factor = math.prod(self.sizes[i] for i in view) if self.residual else 1
            for part in [view] if self.residual else subsets(view):
                if part not in self.precisions:
                    continue
                others = tuple(axis for axis, i in enumerate(view) if i not in part)
                summed = math.prod(table.shape[axis] for axis in others)
                # Each estimate of the residual counts as its precision
                told = (weight * factor) ** 2 / summed / self.precisions[part]
                known = contrasts(table.sum(axis=others)) * (told / (weight * factor))
                parts[part] = parts[part] + known if part in parts else known
        return parts

    def variance(self, first: Integers, last: Integers) -> Floats:
        widths = (last - first + 1).astype(np.float64)
        return self._variances(widths, widths)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        squares = np.array([[float(along @ along)] for along in weights])
        sums = np.array([[float(along.sum())] for along in weights])
        return float(self._variances(squares, sums)[0])

    def _variances(self, squares: Floats, sums: Floats) -> Floats:
        """Variances from the squared norms along each attribute, and the sums."""
        shares = sums / np.array(self.sizes)[:, None]
        means = shares * sums
        beside = squares - means
        if not self.full_rank:
            require_products(self, self.precisions, beside, means)
        total = np.zeros(squares.shape[1])
        outside = shares**2
        for view in self.parts_of(beside, squares, self.precisions):
            # P_S of a product of weights is a product: along S what is beside the mean, else the
            # mean. Rounding can leave a difference of squares below 0
            inside = list(view)
            others = np.delete(outside, inside, axis=0).prod(axis=0)
            sides = np.maximum(beside[inside].prod(axis=0), 0.0)
            total += sides * others / self.precisions[view]
        return total

    def _linear_variance(self, query: Floats) -> float:
        known = total = 0.0
        for view, precision in self.precisions.items():
            # P_S of the query: the residual of its sums, over so many equal cells
            norm = float((contrasts(query.sum(axis=self._others(view))) ** 2).sum())
            known += norm / self._beyond(view)
            total += norm / self._beyond(view) ** 2 / precision
        if not self.full_rank:
            require_norm(known, query)
        return total

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            # Sums over queries of squared norms are traces of Gram matrices, so that no query is
            # written out
            squares = np.array([[queries.trace] for queries in term.factors])
            sums = np.array([[math.sqrt(queries.total)] for queries in term.factors])
            total += term.weight * float(self._variances(squares, sums)[0])
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
        numbers = f"{self.rows} numbers of {self._extent}"
        return f"<MarginalStrategy of {len(self.views)} {what}, {numbers}>"


def require_products(
    strategy: ViewStrategy, views: Collection[View], beside: Floats, means: Floats
) -> None:
    """Refuse products of queries along the attributes that do not follow from residuals."""
    least = ROUNDING * (beside + means)
    differs, sums = beside > least, means > least
    # Only where each factor is new, or a sum, as the set has it
    # A product has a part in S if it has a factor of each kind that S needs. The number of parts
    # that are not 0 is the product over attributes of how many of the two kinds there are: a query
    # follows if so many are measured
    known = np.zeros(beside.shape[1])
    for view in strategy.parts_of(beside, beside + means, views):
        inside = list(view)
        known += differs[inside].all(axis=0) & np.delete(sums, inside, axis=0).all(axis=0)
    if (known < np.prod(differs.astype(np.float64) + sums, axis=0)).any():
        raise UnanswerableQuery(_UNANSWERABLE)


def require_norm(known: float, query: Floats) -> None:
    """Refuse a query of which a part does not follow from what is measured."""
    if known < (1 - ROUNDING) * float((query * query).sum()):
        raise UnanswerableQuery(_UNANSWERABLE)
