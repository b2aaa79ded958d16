"""GroupedStrategy: groups of neighbouring cells by a strategy of their own, and every cell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from rangeq.central.inputs import checked_shape
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.strategy import LARGEST_ENTRY, Strategy
from rangeq.central.matrix_mechanism.workload import LARGEST_GRAM, Workload
from rangeq.core import cumulated


class GroupedStrategy(Strategy):
    """Sums of groups of neighbouring cells, measured by a strategy, and each cell by itself.

    What the cells tell of a group is its sum and their deviations from its mean, independently. So
    nothing larger than matrices of groups by groups is made.

    Parameters
    ----------
    groups : DenseStrategy
        Of one attribute, whose cells are the groups: these are as equal as can be.
    weight : int
        A factor for the count of each cell, 1 to 2^25.
    size : int
        The number of cells, at most 4096, and no fewer than groups.

    Attributes
    ----------
    starts : numpy.ndarray of int64
        The first cell of each group, and the size.

    Raises
    ------
    ValueError
        Anything else.

    Examples
    --------
    >>> strategy = GroupedStrategy(DenseStrategy([[1, 1], [1, 0], [0, 1]]), 3, 5)
    >>> strategy.l1, strategy.l2_squared, strategy.starts.tolist()
    (5, 11, [0, 2, 5])
    """

    kind: ClassVar[str] = "groups"

    def __init__(self, groups: DenseStrategy, weight: int, size: int) -> None:
        self.groups, self.weight, self.sizes = groups, int(weight), checked_shape(size)
        number = groups.matrix.shape[1]
        if len(groups.sizes) > 1 or groups.noise is not None:
            raise ValueError("groups are measured by a strategy of one attribute, with usual noise")
        if not number <= self.sizes[0] <= LARGEST_GRAM:
            raise ValueError(
                f"{number} groups have {number} to {LARGEST_GRAM} cells, got {self.sizes[0]}"
            )
        if not 1 <= self.weight <= LARGEST_ENTRY:
            raise ValueError(f"the weight of cells is 1 to 2^25, got {self.weight}")
        self.starts: Integers = np.arange(number + 1) * self.sizes[0] // number

    @property
    def rows(self) -> int:
        return self.groups.rows + self.sizes[0]

    # The column of a cell is that of its group, and the weight
    @property
    def l1(self) -> int:
        return self.groups.l1 + self.weight

    @property
    def l2_squared(self) -> int:
        return self.groups.l2_squared + self.weight**2

    @property
    def full_rank(self) -> bool:
        return True

    @cached_property
    def _widths(self) -> Floats:
        return np.diff(self.starts).astype(np.float64)

    def _sums(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sums of groups, along the last axis."""
        return np.add.reduceat(cells, self.starts[:-1], axis=-1)

    def _each(self, groups: Floats) -> Floats:
        """What groups have, for each of their cells."""
        return np.repeat(groups, np.diff(self.starts))

    @cached_property
    def _precision(self) -> Floats:
        """What the cells tell of the sum of each group."""
        return np.asarray(self.weight**2 / self._widths)

    @cached_property
    def _covariance(self) -> Floats:
        """The covariances of the estimated sums of groups."""
        matrix = self.groups.matrix.astype(np.float64)
        return np.asarray(np.linalg.inv(matrix.T @ matrix + np.diag(self._precision)))

    def measure(self, counts: Integers) -> Integers:
        return np.concatenate([self.groups.measure(self._sums(counts)), self.weight * counts])

    def normal(self, cells: Floats) -> Floats:
        return self._each(self.groups.normal(self._sums(cells))) + self.weight**2 * cells

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        coarse, fine = np.split(noisy.astype(np.float64), [self.groups.rows])
        cells = fine / self.weight
        sums = self._sums(cells)
        told = self.groups.matrix.T @ coarse + self._precision * sums
        return cells + self._each((self._covariance @ told - sums) / self._widths)

    def variance(self, first: Integers, last: Integers) -> Floats:
        low, high = first[0], last[0] + 1
        cells = np.arange(self.sizes[0] + 1)
        group = np.searchsorted(self.starts[1:-1], cells, side="right")
        width = self._widths[group]
        part = (cells - self.starts[group]) / width
        # A prefix lies between those of groups; what is within groups is independent of these
        sums = self._prefixes

        def covariance(one: Integers, other: Integers) -> Floats:
            (i, j), (p, q) = (group[one], group[other]), (part[one], part[other])
            before = sums[i, j] * (1 - q) + sums[i, j + 1] * q
            after = sums[i + 1, j] * (1 - q) + sums[i + 1, j + 1] * q
            return before * (1 - p) + after * p

        between = covariance(low, low) - 2 * covariance(low, high) + covariance(high, high)
        within = part * (1 - part) * width
        across = np.where(group[low] == group[high], part[low] * (1 - part[high]), 0.0)
        inside = within[low] + within[high] - 2 * across * width[low]
        # A difference of prefix sums can round to below 0
        return np.maximum(between + inside / self.weight**2, 0.0)

    @cached_property
    def _prefixes(self) -> Floats:
        """Covariances of the sums of the first groups: shape (groups + 1, groups + 1)."""
        return cumulated(self._covariance)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        return float(self.linear_variances(weights[0][None])[0])

    def linear_variances(self, queries: Floats) -> Floats:
        means = self._sums(queries) / self._widths
        within = (queries**2).sum(axis=1) - means**2 @ self._widths
        between = np.einsum("qi,qi->q", means @ self._covariance, means)
        return between + np.maximum(within, 0.0) / self.weight**2

    def workload_variance(self, workload: Workload) -> float:
        total = 0.0
        for term in workload.terms:
            gram = term.factors[0].gram
            means = self._sums(self._sums(gram).T) / np.outer(self._widths, self._widths)
            within = float(np.trace(gram)) - float(np.diag(means) @ self._widths)
            between = float(np.sum(means * self._covariance))
            total += term.weight * (between + max(within, 0.0) / self.weight**2)
        return total / workload.weight

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"groups": self.groups.matrix, "weight": np.array([[self.weight]])}

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> GroupedStrategy:
        if sorted(arrays) != ["groups", "weight"] or arrays["weight"].shape != (1, 1):
            raise ValueError("a strategy of groups has their matrix, and a weight")
        if len(sizes) > 1:
            raise ValueError("a strategy of groups is of one attribute")
        return cls(DenseStrategy(arrays["groups"]), int(arrays["weight"][0, 0]), sizes[0])

    def __repr__(self) -> str:
        groups = self.groups.matrix.shape[1]
        return (
            f"<GroupedStrategy of {self.rows} numbers of {self.sizes[0]} cells in {groups} groups>"
        )
