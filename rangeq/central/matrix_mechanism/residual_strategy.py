"""ResidualStrategy: residuals of sets of attributes, measured by designed matrices.

Let R_i be a matrix of integers along attribute i whose rows sum to 0: it measures how a histogram
differs from its mean along the attribute. For a set S of attributes, the numbers are products of
the R_i of S and of totals along the others, with a weight. The residuals of different sets are
orthogonal, so with M'M = sum of c_S^2 (x)_{S} R_i'R_i (x) J along the others

    (M'M)^+ = sum of c_S^-2 (x)_{S} (R_i'R_i)^+ (x) J / n_i^2 along the others,

and estimates and variances are sums over sets of products over attributes. With R_i = n_i I - J
these are the residuals of `MarginalStrategy`; others suit ranges and prefixes (Xiao, He, Zhang and
Kifer 2024: ResidualPlanner+).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from rangeq.central.inputs import (
    LARGEST_DOMAIN,
    LARGEST_MARGINALS,
    MarginalCounts,
    checked_shape,
)
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy, along_axes, block_sum
from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram
from rangeq.central.matrix_mechanism.marginal_strategy import (
    require_norm,
    require_products,
)
from rangeq.central.matrix_mechanism.several_attributes import MOST_BITS
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_PRODUCT,
    View,
    ViewStrategy,
    checked_entries,
    subsets,
    sum_of_parts,
)
from rangeq.central.matrix_mechanism.workload import Workload
from rangeq.core import contrasts, cumulated

_NULL = 1e-10  # eigenvalues below it, relative to the largest, are taken for 0


class ResidualStrategy(ViewStrategy):
    """Products of matrices along some attributes and of totals along the others, with weights.

    Parameters
    ----------
    sides : sequence of numpy.ndarray
        For each attribute a matrix of integers, shape (rows, cells): every row sums to 0, and
        nothing but the mean is lost. Of an attribute of one cell [[0]].
    views : sequence of sequence of int
        Sets of attributes of more than one cell, ascending; () for the total. Different ones.
    weights : sequence of int
        A factor for the numbers of each, at least 1.

    Raises
    ------
    ValueError
        Anything else, or entries beyond 2^28.
    """

    kind: ClassVar[str] = "residuals"

    def __init__(
        self,
        sides: Sequence[npt.ArrayLike],
        views: Sequence[Sequence[int]],
        weights: Sequence[int],
    ) -> None:
        self.sides = tuple(_checked_side(np.asarray(side)) for side in sides)
        sizes = [side.shape[1] for side in self.sides]
        self.sizes = checked_shape(sizes, LARGEST_MARGINALS)
        # Along an attribute of one cell nothing differs from the mean: a view with it would measure
        # zeros, and the same statistics would have several names
        wide = {i for i, n in enumerate(self.sizes) if n > 1}
        wrong = "views are different sets of attributes of more than one cell"
        self._take(views, weights, wide, wrong)
        # The largest entry of a Kronecker product is the product of the largest entries, so that no
        # product is written out
        entries = [int(np.abs(side).max()) for side in self.sides]
        largest = max(weight * math.prod(entries[i] for i in view) for view, weight in self._parts)
        if largest > LARGEST_PRODUCT or self.rows > LARGEST_DOMAIN:
            raise ValueError("a product has an entry beyond 2^28, or there are over 2^26 rows")

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(len(self.sides[i]) for i in view) for view in self.views]

    @cached_property
    def l1(self) -> int:
        return self._largest_column(1)

    @cached_property
    def l2_squared(self) -> int:
        return self._largest_column(2)

    def _largest_column(self, power: int) -> int:
        """The largest sum of absolute entries, to a power, of a column: exact."""
        # The absolute value of a Kronecker product is the product of the absolute values, so that
        # its column sums are products of the sides' column sums. All are at least 0: the largest is
        # where each attribute's is. Python's integers, as squares of 2^28 over many rows pass 2^63,
        # and a sensitivity must be exact
        largest = [
            max((np.abs(side).astype(object) ** power).sum(axis=0).tolist()) for side in self.sides
        ]
        return sum(
            weight**power * math.prod(largest[i] for i in view) for view, weight in self._parts
        )

    @property
    def full_rank(self) -> bool:
        # The subspaces of different views are orthogonal, and that of S has dimension prod (n_i -
        # 1): only with all subsets do the dimensions add up to the number of cells
        return len(self.views) == 1 << sum(n > 1 for n in self.sizes)

    def measure(self, counts: Integers | MarginalCounts) -> Integers:
        parts = [
            weight * along_axes([self.sides[i] for i in view], self._marginal(counts, view))
            for view, weight in self._parts
        ]
        return np.concatenate([part.ravel() for part in parts])

    def normal(self, cells: Floats) -> Floats:
        grams = [side.astype(np.float64).T @ side for side in self.sides]
        # Sums along the others, and the same number in each of their cells: the two together are J
        parts = {
            view: weight**2 * self._beyond(view) * along_axes([grams[i] for i in view], sums)
            for view, weight in self._parts
            for sums in [cells.sum(axis=self._others(view))]
        }
        return sum_of_parts(self.sizes, parts)

    @cached_property
    def _spectra(self) -> list[tuple[Floats, Floats]]:
        """Pairs (R'R)^+ and (R'R)^+ R', one for each side."""
        spectra = []
        for side in self.sides:
            floats = side.astype(np.float64)
            # By eigenvectors and not by a solver: R'R is singular, as R loses the mean, and the
            # eigenvalue that belongs to the mean comes out as a rounding error of either sign.
            # Integers make the largest one at least 1, but for the side [[0]] of one cell, of which
            # nothing is kept
            values, vectors = np.linalg.eigh(floats.T @ floats)
            kept = values > _NULL * max(float(values[-1]), 1.0)
            basis = vectors[:, kept]
            inverse = (basis / values[kept]) @ basis.T
            spectra.append((inverse, inverse @ floats.T))
        return spectra

    @property
    def _inverses(self) -> list[Floats]:
        return [inverse for inverse, _ in self._spectra]

    def parts(self, noisy: npt.NDArray[Any]) -> dict[View, Floats]:
        # M^+ y = (M'M)^+ M' y is a sum over views, as their subspaces are orthogonal. Along the
        # others (J / n^2) 1 = 1 / n: what a cell has is the part divided by their number
        return {
            view: along_axes([self._spectra[i][1] for i in view], table) / weight
            for view, weight, table in self._tables(noisy)
        }

    def variance(self, first: Integers, last: Integers) -> Floats:
        widths = (last - first + 1).astype(np.float64)
        # The indicator of a range of width k has the squared norm k, of which k^2 / n is that of
        # its mean
        means = widths**2 / np.array(self.sizes)[:, None]
        forms = [
            block_sum(sums, low, high + 1)
            for sums, low, high in zip(self._sums, first, last, strict=True)
        ]
        return self._variances(np.array(forms), widths - means, means)

    @cached_property
    def _sums(self) -> list[Floats]:
        """The covariances of prefixes, for each side."""
        # w'Cw of the indicator w of a range is the sum over a square block of C: from a summed-area
        # table it takes three entries, however wide the range
        return [*map(cumulated, self._inverses)]

    def variance_of(self, weights: Sequence[Floats]) -> float:
        forms = [
            [float(w @ inverse @ w)] for w, inverse in zip(weights, self._inverses, strict=True)
        ]
        means = np.array([[float(w.sum()) ** 2 / len(w)] for w in weights])
        squares = np.array([[float(w @ w)] for w in weights])
        return float(self._variances(np.array(forms), squares - means, means)[0])

    def _variances(self, own: Floats, beside: Floats, means: Floats) -> Floats:
        """Variances from w'(R'R)^+ w along attributes, and squares beside the mean and of it."""
        if not self.full_rank:
            require_products(self, self.views, beside, means)
        total, weights = np.zeros(own.shape[1]), dict(self._parts)
        shares = means / np.array(self.sizes)[:, None]
        for view in self.parts_of(beside, beside + means, weights):
            inside = list(view)
            part = own[inside].prod(axis=0) * np.delete(shares, inside, axis=0).prod(axis=0)
            # A difference of prefix sums can round to below 0, where a variance is nearly 0
            total += np.maximum(part, 0.0) / weights[view] ** 2
        return total

    def _linear_variance(self, query: Floats) -> float:
        centred = [np.eye(n) - 1 / n for n in self.sizes]
        total = known = 0.0
        for view, weight in self._parts:
            beyond = self._beyond(view)
            sums = query.sum(axis=self._others(view))
            total += _square(sums, [self._inverses[i] for i in view]) / (weight * beyond) ** 2
            # By Pythagoras the squared norms of the projections on all views add up to that of the
            # query, if it follows from them: so `known` decides whether it does
            known += _square(sums, [centred[i] for i in view]) / beyond
        if not self.full_rank:
            require_norm(known, query)
        return total

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            # The sum of w'Cw over queries is tr(GC), and the trace of a Kronecker product is the
            # product of the traces: no query is written out
            # Totals are of the mean alone
            forms = [
                [0.0 if queries.name == "total" else float(np.sum(queries.gram * inverse))]
                for queries, inverse in zip(term.factors, self._inverses, strict=True)
            ]
            means = np.array([[queries.total / queries.size] for queries in term.factors])
            squares = np.array([[queries.trace] for queries in term.factors])
            total += term.weight * float(
                self._variances(np.array(forms), squares - means, means)[0]
            )
        return total / workload.weight

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        sides = {f"attribute{i}": side for i, side in enumerate(self.sides)}
        return {**super().arrays(), **sides}

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> ResidualStrategy:
        names = [f"attribute{i}" for i in range(len(sizes))]
        if sorted(arrays) != sorted(["views", "weights", *names]):
            raise ValueError("residuals have views, weights, and a matrix for each attribute")
        strategy = cls([arrays[name] for name in names], *cls._views_of(sizes, arrays))
        if strategy.sizes != sizes:
            raise ValueError(f"the matrices are over {strategy.sizes} cells, not {sizes}")
        return strategy

    def __repr__(self) -> str:
        numbers = f"{self.rows} numbers of {self._extent}"
        return f"<ResidualStrategy of {len(self.views)} sets of attributes, {numbers}>"


def _checked_side(side: npt.NDArray[Any]) -> Integers:
    if side.shape == (1, 1) and side.dtype.kind in "iu" and not side.any():
        return side.astype(np.int64)
    entries = checked_entries(side, "the matrix of an attribute")
    if entries.sum(axis=1).any():
        raise ValueError("every row of the matrix of an attribute sums to 0")
    # Rows that sum to 0 have a rank of at most n - 1. With less, some difference between cells
    # would have no estimate in any view, and `full_rank` would be wrong
    if np.linalg.matrix_rank(entries.astype(np.float64)) != entries.shape[1] - 1:
        raise ValueError("the matrix of an attribute tells all differences between its cells")
    return entries


def _square(sums: Floats, matrices: Sequence[Floats]) -> float:
    """The quadratic form of matrices along all axes."""
    return float(np.sum(sums * along_axes(matrices, sums)))


# ------------------------------------------------------------------------------------------------
# The best residuals for a sum of products of workloads, under Gaussian noise.
#
# With matrices Y_i = R_i'R_i of ones on the diagonal, and lambda_S >= 0, the strategy whose Gram
# matrix is the sum over S of lambda_S (x)_{S} Y_i (x) J / n_i has columns of squared norm
#
#     sum of c_S lambda_S = 1,    c_S = product of 1 / n_i over the attributes that are not in S,
#
# and the sum of its variances is the sum of g_S / lambda_S, where g_S adds up over the terms of the
# workload the products of tr(G_i Y_i^+) in S and of 1'G_i 1 / n_i outside. For given Y_i the best
# lambda_S is in proportion to (g_S / c_S)^(1/2). For given lambda_S and other sides Y_i is the
# optimum for a workload of one attribute, orthogonal to the mean. Both steps alternate.


_ROUNDS = 8

_CLOSE = 1e-3  # rounds end where the error falls by less, relative to it

_WEIGHT_BITS = 9  # the bits of entries that are for weights; the others are for the sides

_LEAST = 1e-9  # an eigenvalue that is taken for 0, relative to the largest

_NOTHING = 1e-13  # A part of the error that is taken for 0, relative to the largest


class _Side(NamedTuple):
    """A matrix along an attribute."""

    gram: Floats  # Y, with a diagonal of at most 1, and rows that sum to 0
    alike: bool  # whether all cells of the attribute are alike to the workload


def tells_differences(workload: Workload) -> bool:
    """Whether the queries determine all differences between cells along every attribute."""
    for i, size in enumerate(workload.sizes):
        queries = [term.factors[i] for term in workload.terms]
        if size > 1 and not all(query_set.exchangeable for query_set in queries):
            # Divided by their traces, so that no term's scale hides the differences that another
            # one asks
            parts = [contrasts(query_set.gram / np.trace(query_set.gram)) for query_set in queries]
            values = np.linalg.eigvalsh(np.sum(parts, axis=0))
            # The least eigenvalue is that of the mean, 0 up to rounding; the next one must be clear
            # of it, or the optimum along this attribute has not rank n - 1, as `residual_optimum`
            # takes for granted
            if not values[1] > _LEAST * values[-1]:
                return False
    return True


def residual_optimum(
    workload: Workload, tolerance: float, bits: int = MOST_BITS
) -> ResidualStrategy:
    """Residuals of small error for a workload over several attributes, under Gaussian noise."""
    sizes, terms = workload.sizes, workload.terms
    places = range(len(sizes))
    # Of totals along an attribute nothing but the mean is asked
    views = sorted(
        {
            view
            for term in terms
            for view in subsets(
                tuple(i for i in places if sizes[i] > 1 and term.factors[i].name != "total")
            )
        }
    )
    weights = np.array([term.weight for term in terms])
    means = np.array([[queries.total / queries.size for queries in term.factors] for term in terms])
    centred = [[contrasts(term.factors[i].gram) for term in terms] for i in places]
    # The start are the residuals of marginals: I - J/n has the diagonal 1 - 1/n, which is 0 for one
    # cell. Sides whose cells are all alike stay there: by symmetry it is their optimum
    sides = [
        _Side(
            contrasts(np.eye(n)) / max(1 - 1 / n, 0.5),
            all(term.factors[i].exchangeable for term in terms),
        )
        for i, n in enumerate(sizes)
    ]
    errors = np.array([_errors(side.gram, centred[i]) for i, side in enumerate(sides)]).T
    scales = {
        view: math.prod(1 / n for i, n in enumerate(sizes) if i not in view) for view in views
    }
    reached, shares = math.inf, dict[View, float]()
    for _ in range(_ROUNDS):
        parts = {view: _products(errors, means, view) for view in views}
        asked = {view: float(weights @ part) for view, part in parts.items()}
        # A view that no query needs has g_S = 0 up to rounding. Its lambda_S would be nearly 0, and
        # 1 / lambda_S would multiply that rounding
        largest = max(asked[view] * scales[view] for view in views)
        asked = {v: part for v, part in asked.items() if part * scales[v] > _NOTHING * largest}
        # Cauchy and Schwarz: sum of g_S / lambda_S with sum of c_S lambda_S = 1 is least for
        # lambda_S in proportion to (g_S / c_S)^(1/2), where it is (sum of (c_S g_S)^(1/2))^2
        total = math.fsum(math.sqrt(part * scales[view]) for view, part in asked.items())
        shares = {view: math.sqrt(part / scales[view]) / total for view, part in asked.items()}
        before, reached = reached, total**2
        # The loop is left here, and not after the sides, so that the weights are those of the sides
        # as they stand
        if reached > (1 - _CLOSE) * before:
            break
        for i in places:
            inside = [view for view in shares if i in view]
            if sides[i].alike or not inside:
                continue
            # For fixed lambda_S and other sides the error as a function of Y_i is tr(G Y_i^+) plus
            # a constant, where G adds up this attribute's Gram matrices with the factors of all
            # others
            factors = weights * sum(
                _products(np.delete(errors, i, 1), np.delete(means, i, 1), _without(view, i))
                / shares[view]
                for view in inside
            )
            gram = sum(w * part for w, part in zip(factors, centred[i], strict=True))
            # The iteration rescales rows and columns, which may bring the mean back in
            optimum = contrasts(optimal_gram(gram, tolerance, rank=sizes[i] - 1).gram)
            sides[i] = sides[i]._replace(gram=optimum / np.diag(optimum).max())
            errors[:, i] = _errors(sides[i].gram, centred[i])
    return _rounded(sides, shares, bits)


def _errors(gram: Floats, queries: list[Floats]) -> list[float]:
    # Y has no inverse, as it loses the mean; hermitian: by eigenvalues, so that the result is
    # symmetric
    inverse = np.linalg.pinv(gram, rcond=1e-9, hermitian=True)
    return [max(float(np.sum(query_gram * inverse)), 0.0) for query_gram in queries]


def _products(errors: Floats, means: Floats, view: View) -> Floats:
    """Products of errors along a view and of means along the others, for each term."""
    columns = [errors[:, i] if i in view else means[:, i] for i in range(errors.shape[1])]
    return np.prod(columns, axis=0) if columns else np.ones(len(errors))


def _without(view: View, place: int) -> View:
    """A view of the other attributes, when one is taken away."""
    return tuple(i - (i > place) for i in view if i != place)


def _rounded(sides: list[_Side], shares: dict[View, float], most: int) -> ResidualStrategy:
    """Round a design to integers: the matrices first, then the weights that suit them."""
    sizes = [len(side.gram) for side in sides]
    searched = [i for i, side in enumerate(sides) if not side.alike and sizes[i] > 2]
    # The bits of a product's entries add up over its factors, and are shared by those that need a
    # fine grid; what is left is the weight's
    factors = max((len({*view} & {*searched}) for view in shares), default=1)
    bits = max(min((most - _WEIGHT_BITS) // max(factors, 1), 12), 2)
    matrices = [_matrix(side, bits if i in searched else None) for i, side in enumerate(sides)]
    squares = [float((matrix.astype(float) ** 2).sum(axis=0).max()) for matrix in matrices]
    weights = []
    for view, share in shares.items():
        beyond = math.prod(n for i, n in enumerate(sizes) if i not in view)
        norm = math.prod(squares[i] for i in view)
        # lambda_S = weight^2 times the squared column norms, but for n of the others, that J / n_i
        # has not. The norms are those of the rounded matrices, so that their rounding does not
        # change lambda_S
        weights.append(max(1, round(2.0**most * math.sqrt(share / beyond / norm))))
    return ResidualStrategy(matrices, list(shares), weights)


def _matrix(side: _Side, bits: int | None) -> Integers:
    """Rows that sum to 0: of integers up to 2^bits, or small ones where all cells are alike."""
    size = len(side.gram)
    if size == 1:
        return np.zeros((1, 1), dtype=np.int64)
    if bits is None:
        alike = size * np.eye(size, dtype=np.int64) - 1
        return alike if size > 2 else alike[:1]
    # Differences of neighbours are a basis of all rows that sum to 0: integer combinations of them
    # sum to 0 exactly, whatever the factor was rounded to
    differences = np.eye(size, dtype=np.int64)[:-1] - np.eye(size, k=1, dtype=np.int64)[:-1]
    return DenseStrategy.of_gram(side.gram, differences, bits=bits).matrix
