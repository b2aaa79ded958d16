"""Strategy: what the matrix mechanism measures, as integers, and what follows from its answers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign import Privacy
from mechdesign.accounting import ZCDP, ApproximateDP
from mechdesign.base import Floats, Integers
from mechdesign.noise.staircase import GroupedNoise
from rangeq.central.inputs import LARGEST_DOMAIN, InvalidHistogram, MarginalCounts
from rangeq.central.matrix_mechanism.workload import Workload

View: TypeAlias = tuple[int, ...]  #: A set of attributes, by their places, ascending.

#: The most users of a histogram here: more than there are people, and no sum overflows.
LARGEST_USERS = 1 << 33

#: The part of epsilon that noise is made for: rounding alphas loses less than the rest.
SLACK = 1 - Fraction(1, 1 << 23)

LARGEST_VIEWS = 1 << 14  #: The most sets of attributes of a strategy.

# The part of a query's squared norm that is taken for rounding.
#
#: Whatever of a box of up to 2^26 cells is new in a set of attributes is above it.
ROUNDING = 1e-11

LARGEST_ENTRY = 1 << 25  #: The largest entry of a matrix of a strategy.

#: The largest product of entries of several: times 2^33 users it stays within 62 bits.
LARGEST_PRODUCT = 1 << 28


class UnanswerableQuery(ValueError):
    """The error for a query that does not follow from what the strategy measures."""


class Strategy(ABC):
    """A matrix of integers M, one row for each number that is measured, one column for each cell.

    Noise is added to the exact numbers M x of a histogram x, the same for all rows. It must be in
    proportion to the sensitivity: how far one user more or less moves the numbers. That is exact
    here, column by column: `l1` for Laplace noise, `l2_squared` for Gaussian noise.

    Estimates of the cells are least-squares estimates. Variances are per unit of noise variance.
    """

    kind: ClassVar[str]  #: The name of the kind in files.

    #: Noise of its own, whose variances are in those below; else it is the same for all rows.
    noise: GroupedNoise | None = None

    sizes: tuple[int, ...]  #: The number of cells along each attribute.

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, each of which is measured."""

    @property
    @abstractmethod
    def l1(self) -> int:
        """The largest sum of absolute entries of a column."""

    @property
    @abstractmethod
    def l2_squared(self) -> int:
        """The largest sum of squared entries of a column."""

    @property
    @abstractmethod
    def full_rank(self) -> bool:
        """Whether the numbers determine all cells: then every query is answered."""

    @property
    def loss(self) -> Fraction:
        """The largest likelihood ratio of numbers with noise of its own, rounded up."""
        raise TypeError(f"a {type(self).__name__} has no noise of its own")

    def keeping(self, promise: Privacy | ZCDP | ApproximateDP) -> Strategy:
        """Return the strategy with noise of its own that keeps a promise, if it has some.

        Parameters
        ----------
        promise : Privacy, ZCDP or ApproximateDP
            What a release shall keep.

        Returns
        -------
        Strategy
            Itself, or the same numbers with other noise.

        Raises
        ------
        ValueError
            Its noise keeps no such promise.
        """
        return self

    @property
    def whole_weights(self) -> dict[View, int]:
        """The weights of tables of counts, where these are what is measured, each once; else {}."""
        return {}

    def finer(self) -> Strategy:
        """Return the same numbers in units so fine that more is proved of Gaussian noise on them.

        Returns
        -------
        Strategy
            Itself, if its integers cannot be larger, or its noise is its own.
        """
        return self

    @abstractmethod
    def measure(self, counts: Integers) -> Integers:
        """Return the exact numbers M x.

        Parameters
        ----------
        counts : numpy.ndarray of int64
            Of shape `sizes`: at least 0, of sum at most 2^33. A `ViewStrategy` takes a
            `MarginalCounts`, too.

        Returns
        -------
        numpy.ndarray of int64
            Shape (rows,).
        """

    @abstractmethod
    def normal(self, cells: Floats) -> Floats:
        """Return the product M'M x, in floats.

        Parameters
        ----------
        cells : numpy.ndarray of float64
            x, of shape `sizes`.

        Returns
        -------
        numpy.ndarray of float64
            Of shape `sizes`.
        """

    @abstractmethod
    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        """Return the least-squares estimate of the cells; the shortest one, if there are several.

        Parameters
        ----------
        noisy : numpy.ndarray of int64
            M x with noise, shape (rows,).

        Returns
        -------
        numpy.ndarray of float64
            Of shape `sizes`.
        """

    def parts(self, noisy: npt.NDArray[Any]) -> dict[View, Floats]:
        """Return the estimate of the cells as a sum of tables, each of some attributes.

        Parameters
        ----------
        noisy : numpy.ndarray of int64
            As of `estimate`.

        Returns
        -------
        dict of tuple of int to numpy.ndarray
            By the places of attributes, ascending, numbers of users along these: what each cell
            has of them is the number divided by that of the cells along the other attributes.
        """
        return {tuple(range(len(self.sizes))): self.estimate(noisy)}

    def parts_of(self, beside: Floats, squares: Floats, views: Collection[View]) -> Iterable[View]:
        """Return the views among some in which products of queries have a part.

        Parameters
        ----------
        beside, squares : numpy.ndarray of float64
            Shape (attributes, products): of the queries along each attribute what is beside their
            mean, and their squared norm.
        views : collection of tuple of int
            Keys of `parts`.

        Returns
        -------
        iterable of tuple of int
            All but those in which no product has any.
        """
        return views

    @abstractmethod
    def variance(self, first: Integers, last: Integers) -> Floats:
        """The variances of the sums over boxes, per unit of noise variance.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Shape (attributes, boxes): closed ends.

        Returns
        -------
        numpy.ndarray of float64
            Shape (boxes,).

        Raises
        ------
        UnanswerableQuery
            A box does not follow from what is measured.
        """

    @abstractmethod
    def variance_of(self, weights: Sequence[Floats]) -> float:
        """Return the variance of a product of weights along each attribute, by noise variance.

        Parameters
        ----------
        weights : sequence of numpy.ndarray of float64
            One for each attribute: of a query the weight of a cell is the product of its places'.

        Returns
        -------
        float
            At least 0, per unit of noise variance.

        Raises
        ------
        UnanswerableQuery
            It does not follow from what is measured.
        """

    @abstractmethod
    def linear_variances(self, queries: Floats) -> Floats:
        """Return the variances of linear queries, per unit of noise variance.

        Parameters
        ----------
        queries : numpy.ndarray of float64
            Shape (queries, *sizes): the weight of each cell in each query.

        Returns
        -------
        numpy.ndarray of float64
            Shape (queries,).

        Raises
        ------
        UnanswerableQuery
            One does not follow from what is measured.
        """

    @abstractmethod
    def workload_variance(self, workload: Workload) -> float:
        """Return the weighted mean variance of a workload's queries, per unit of noise variance.

        Parameters
        ----------
        workload : Workload
            Over the same cells.

        Returns
        -------
        float
            Above 0.

        Raises
        ------
        UnanswerableQuery
            One of the queries does not follow from what is measured.
        """

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays that, with `sizes`, are all of it: by name, as for `of_arrays`."""

    @classmethod
    @abstractmethod
    def of_arrays(cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]) -> Strategy:
        """Return the strategy that gave these `arrays`.

        Parameters
        ----------
        sizes : tuple of int
            The number of cells along each attribute.
        arrays : dict of str to numpy.ndarray
            Their names and numbers are checked.

        Returns
        -------
        Strategy
            Equal to the one that gave them.

        Raises
        ------
        ValueError
            They are those of no such strategy.
        """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strategy):
            return NotImplemented
        mine, others = self.arrays(), other.arrays()
        same = (self.kind, self.sizes, mine.keys()) == (other.kind, other.sizes, others.keys())
        return same and all(np.array_equal(mine[name], others[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]


class ViewStrategy(Strategy):
    """The base of strategies that measure something of several sets of attributes.

    Attributes
    ----------
    views : tuple of tuple of int
        Sets of attributes by their places, ascending; () for the total.
    weights : tuple of int
        A factor for the numbers of each, at least 1.
    """

    views: tuple[View, ...]
    weights: tuple[int, ...]

    def _take(
        self,
        views: Sequence[Sequence[int]],
        weights: Sequence[int],
        places: set[int],
        wrong: str,
        again: bool = False,
    ) -> None:
        """Set views of some attributes, perhaps twice, and weights; ValueError for others."""
        self.views = tuple(tuple(int(i) for i in view) for view in views)
        self.weights = tuple(int(weight) for weight in weights)
        if (
            not self.views
            or (len(set(self.views)) != len(self.views) and not again)
            or any(list(view) != sorted(set(view) & places) for view in self.views)
        ):
            raise ValueError(wrong)
        if len(self.weights) != len(self.views) or min(self.weights) < 1:
            raise ValueError("each view has a weight, an integer of at least 1")

    @property
    def _parts(self) -> list[tuple[View, int]]:
        return list(zip(self.views, self.weights, strict=True))

    @property
    @abstractmethod
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of the numbers of each view: along its own attributes."""

    @property
    def rows(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    @abstractmethod
    def parts(self, noisy: npt.NDArray[Any]) -> dict[View, Floats]:
        """Return estimates of residuals: see `Strategy.parts`.

        Parameters
        ----------
        noisy : numpy.ndarray of int64
            As of `estimate`.

        Returns
        -------
        dict of tuple of int to numpy.ndarray
            They sum to 0 along every attribute, and do not depend on each other.
        """

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        return sum_of_parts(self.sizes, self.parts(noisy))

    @property
    def _extent(self) -> str:
        """What the numbers are of, in words."""
        cells = math.prod(self.sizes)
        return f"{cells} cells" if cells <= LARGEST_DOMAIN else f"{len(self.sizes)} attributes"

    def _others(self, view: View) -> tuple[int, ...]:
        """The places of the attributes that a view lacks."""
        return tuple(i for i in range(len(self.sizes)) if i not in view)

    def _beyond(self, view: View) -> int:
        """The number of cells along these."""
        return math.prod(self.sizes[i] for i in self._others(view))

    def _marginal(self, counts: Integers | MarginalCounts, view: View) -> Integers:
        """The exact table of the attributes of a view."""
        if isinstance(counts, MarginalCounts):
            return counts.marginal(view)
        return np.asarray(counts.sum(axis=self._others(view)))

    def parts_of(self, beside: Floats, squares: Floats, views: Collection[View]) -> Iterable[View]:
        # Where all queries are even along an attribute, nothing of a residual along it is in any
        inside = np.flatnonzero((beside > ROUNDING * squares).any(axis=1)).tolist()
        if 1 << len(inside) < len(views):
            return [view for view in subsets(tuple(inside)) if view in views]
        return [view for view in views if set(view) <= set(inside)]

    def _tables(self, noisy: npt.NDArray[Any]) -> Iterator[tuple[View, int, Floats]]:
        """Yield each view, its weight, and its numbers among those that were measured."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        tables = np.split(noisy.astype(np.float64), ends[:-1])
        for (view, weight), flat, shape in zip(self._parts, tables, self.shapes, strict=True):
            yield view, weight, flat.reshape(shape)

    def linear_variances(self, queries: Floats) -> Floats:
        return np.array([self._linear_variance(query) for query in queries])

    @abstractmethod
    def _linear_variance(self, query: Floats) -> float:
        """The variance of a query, as of `linear_variances`."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        places = range(len(self.sizes))
        return {
            "views": np.array([[int(i in view) for i in places] for view in self.views]),
            "weights": np.array([self.weights]),
        }

    @staticmethod
    def _views_of(
        sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> tuple[list[list[int]], list[int]]:
        """The views and weights of `arrays`."""
        views, weights = arrays["views"], arrays["weights"]
        if (
            views.shape != (weights.size, len(sizes))
            or weights.shape != (1, len(views))
            or not np.isin(views, (0, 1)).all()
            or len(views) > LARGEST_VIEWS
        ):
            raise ValueError("views and weights do not fit each other")
        return [np.flatnonzero(row).tolist() for row in views], weights[0].tolist()


def subsets(view: View) -> list[View]:
    """All subsets of a set of attributes."""
    result: list[View] = [()]
    for i in view:
        result += [(*subset, i) for subset in result]
    return result


def sum_of_parts(sizes: Sequence[int], parts: Mapping[View, Floats]) -> Floats:
    """Return the cells that are a sum of tables of some attributes: see `Strategy.parts`."""
    total = np.zeros(sizes)
    for view, part in parts.items():
        beyond = math.prod(n for i, n in enumerate(sizes) if i not in view)
        total += part.reshape([n if i in view else 1 for i, n in enumerate(sizes)]) / beyond
    return total


def require_users(users: int) -> None:
    """Refuse a histogram of more than 2^33 users."""
    if users > LARGEST_USERS:
        raise InvalidHistogram("the counts sum to more than 2^33")


def checked_entries(matrix: npt.NDArray[Any], name: str) -> Integers:
    """Check a matrix of a strategy, and return it as integers, read-only."""
    given = np.asarray(matrix)
    if given.ndim != 2 or given.dtype.kind not in "iu" or not given.any():
        raise ValueError(f"{name} must be a matrix of integers that are not all 0")
    if (given > LARGEST_ENTRY).any() or (given < -LARGEST_ENTRY).any():
        raise ValueError(f"{name} has an entry beyond 2^25")
    entries: Integers = given.astype(np.int64)
    entries.setflags(write=False)
    return entries
