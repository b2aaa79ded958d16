"""What a release answers: every range of cells, as numbers of users."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from frequency.core.answer import (
    Answer,
    ConfidenceInterval,
    about_ranges,
    conditions,
    normal_quantile,
    plain,
)
from mechdesign._support.arrays import Floats, Integers
from rangeq.core.intervals import checked_ends
from rangeq.core.node_decomposition import added_up
from rangeq.core.quantiles import fractions, quantile
from rangeq.core.tree import Tree

Number: TypeAlias = float | Floats
"""A float for a range given by two integers, an array for ranges given by arrays."""


class Released(Protocol):
    """What a `CentralEstimate` needs of the mechanism that released it."""

    @property
    def domain(self) -> int:
        """The number of cells."""
        ...

    def range_variance(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Number:
        """The variance of the answers to ranges a .. b.

        Parameters
        ----------
        a, b : array_like
            Integers or integer arrays that broadcast, 0 <= a <= b < domain.

        Returns
        -------
        float or numpy.ndarray
            Squared users, of the ends' shape.

        Raises
        ------
        InvalidRange
            Other ends.
        """
        ...


class CentralEstimate(ABC):
    """Answers to every range of cells, as numbers of users.

    Unbiased: they may be negative or fractional.

    Attributes
    ----------
    mechanism : Released
        What released it.
    counts : numpy.ndarray of float64
        Shape (domain,): the estimated number of users in each cell, read-only.
    """

    def __init__(self, mechanism: Released, cells: Floats | Integers) -> None:
        self.mechanism = mechanism
        self._cells = cells[: mechanism.domain].astype(np.float64)
        self._cells.setflags(write=False)

    @overload
    def range(self, a: int, b: int) -> float: ...
    @overload
    def range(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Number: ...
    def range(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Number:
        """How many users are in the cells a .. b, both included.

        Parameters
        ----------
        a, b : array_like
            Integers or integer arrays that broadcast, 0 <= a <= b < domain.

        Returns
        -------
        float or numpy.ndarray
            An array, of the ends' shape, for arrays of ends.

        Raises
        ------
        InvalidRange
            For anything else.
        """
        return plain(self._sums(*checked_ends(a, b, self.mechanism.domain)))

    @overload
    def prefix(self, b: int) -> float: ...
    @overload
    def prefix(self, b: npt.ArrayLike) -> Number: ...
    def prefix(self, b: npt.ArrayLike) -> Number:
        """How many users are in the cells 0 .. b.

        Parameters
        ----------
        b : array_like
            Integers, 0 <= b < domain: a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Shaped like ``b``.

        Raises
        ------
        InvalidRange
            Anything else.
        """
        return self.range(0, b)

    @property
    def n(self) -> float:
        """The estimated number of users in all cells."""
        return self.range(0, self.mechanism.domain - 1)

    def answer(self, where: Any) -> Answer:
        """The number of users in these cells.

        Parameters
        ----------
        where : int, list, tuple, numpy.ndarray or mapping
            A cell, a list of cells, or the ends ``(first, last)`` of a closed range; integer arrays
            in place of cells are many questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            Users. Of lists of cells that are no range the variance is refused (`UnknownVariance`).

        Raises
        ------
        InvalidQuestion
            What is no question.
        """
        _, (asked,) = conditions(where, ("cell",), (self.mechanism.domain,))
        return about_ranges(
            asked.total(self._sums),
            asked.runs(),
            self.mechanism.range_variance,
            self._range_interval,
        )

    def cdf(self) -> Floats:
        """Every prefix over the estimated total: shape (domain,), ending with 1.

        Not made monotone. NaN unless the total is above 0.
        """
        prefixes = np.atleast_1d(self.prefix(np.arange(self.mechanism.domain)))
        return prefixes / prefixes[-1] if prefixes[-1] > 0 else np.full_like(prefixes, np.nan)

    @property
    def counts(self) -> Floats:
        """Shape (domain,): the number of users in each cell, read-only."""
        return self._cells

    @property
    def frequencies(self) -> Floats:
        """Shape (domain,): the counts over their estimated total; NaN unless that is above 0."""
        total = self.n
        return self._cells / total if total > 0 else np.full_like(self._cells, np.nan)

    @property
    def variances(self) -> Floats:
        """Shape (domain,): the variance of each of the counts, in squared users."""
        result: Floats = self._of_each.variance
        return result

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval:
        """Intervals that each hold the true count of a cell with about this probability or more.

        Between a single noise and the sum of many, the answers' errors lie between Laplace and
        normal: the wider of the two quantiles is taken, and half a user more, because noise is in
        whole users. Not clipped at 0. `answer` has those of ranges.

        Parameters
        ----------
        confidence : float, default 0.95
            In (0, 1).

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shape (domain,): users.

        Raises
        ------
        ValueError
            For a confidence outside of (0, 1).
        """
        return self._of_each.interval(confidence)

    @property
    def _of_each(self) -> Answer:
        return self.answer(np.arange(self.mechanism.domain))

    def _range_interval(
        self, first: Integers, last: Integers, confidence: float
    ) -> ConfidenceInterval:
        value = self._sums(first, last)
        half = _z(confidence) * np.sqrt(self.mechanism.range_variance(first, last)) + 0.5
        return ConfidenceInterval(plain(value - half), plain(value + half))

    def quantile(self, phi: npt.ArrayLike) -> Any:
        """The least cell with at least the fraction phi of the users at or below it.

        A noisy cdf may reach phi more than once: see `rangeq.core.quantiles.quantile`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.

        Returns
        -------
        int or numpy.ndarray
            Cells, of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi outside of [0, 1], or if the estimated total is not above 0.
        """
        return quantile(self.cdf(), phi)

    def quantile_interval(self, phi: npt.ArrayLike, confidence: float = 0.95) -> tuple[Any, Any]:
        """The cells between which the phi-quantile lies: Woodruff's interval.

        The quantile is the first cell b with (1 - phi) times the users up to b at least phi times
        those beyond. The deviation of the difference is at most the sum of theirs, whatever their
        covariance: so intervals are somewhat wide, and never too narrow for that.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        confidence : float, default 0.95
            In (0, 1), of the band at each cell.

        Returns
        -------
        tuple
            The first and the last cell, ints or arrays of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi or a confidence out of range.
        """
        wanted, z = fractions(phi), _z(confidence)
        last = self.mechanism.domain - 1
        cell = np.arange(last)  # the last one has everybody at or below it
        up, beyond = (
            self._sums(np.zeros_like(cell), cell),
            self._sums(cell + 1, np.full_like(cell, last)),
        )
        deviations = [
            np.sqrt(self.mechanism.range_variance(np.zeros_like(cell), cell)),
            np.sqrt(self.mechanism.range_variance(cell + 1, last)),
        ]
        ends = np.empty((2, wanted.size), dtype=np.int64)
        for k, share in enumerate(wanted.ravel()):
            lead = (1 - share) * up - share * beyond
            half = z * ((1 - share) * deviations[0] + share * deviations[1]) + 0.5
            ends[0, k] = np.argmax(np.append(lead + half >= 0, True))
            behind = np.flatnonzero(lead - half < 0)
            ends[1, k] = behind[-1] + 1 if len(behind) else 0
        low, high = ends.reshape(2, *wanted.shape)
        return plain(low), plain(high)

    @abstractmethod
    def _sums(self, first: Integers, last: Integers) -> Floats:
        """The sums of the cells first .. last, shaped like both."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.mechanism!r}>"


def _z(confidence: float) -> float:
    """The wider of the normal and the Laplace quantile, in deviations."""
    return max(normal_quantile(confidence), -math.log1p(-confidence) / math.sqrt(2))


class Summed(CentralEstimate):
    """An estimate that adds up: a range is the difference of two prefixes.

    Both arrays may reach beyond the domain: what padding holds is not shown.

    Parameters
    ----------
    mechanism : Released
        What released it.
    starts : numpy.ndarray of float64
        Shape (cells,): the prefixes before each cell.
    cells : numpy.ndarray of float64
        Shape (cells,): the estimated numbers of users.
    """

    def __init__(self, mechanism: Released, starts: Floats, cells: Floats) -> None:
        super().__init__(mechanism, cells)
        self._starts = np.append(starts, starts[-1] + cells[-1])[: mechanism.domain + 1]

    def _sums(self, first: Integers, last: Integers) -> Floats:
        return self._starts[last + 1] - self._starts[first]


class Layered(CentralEstimate):
    """An estimate that adds the fewest nodes that make up a range (Qardaji et al., section 3.2).

    Parameters
    ----------
    mechanism : Released
        What released it.
    tree : Tree
        Over the cells.
    levels : sequence of numpy.ndarray of int64
        The noisy numbers of users in the nodes of each level from the top.
    """

    def __init__(self, mechanism: Released, tree: Tree, levels: Sequence[Integers]) -> None:
        super().__init__(mechanism, levels[-1])
        self._tree, self._cumulated = (
            tree,
            [np.concatenate([[0], np.cumsum(level)]) for level in levels],
        )

    def _sums(self, first: Integers, last: Integers) -> Floats:
        # Whole users: nothing is rounded
        total: Integers = added_up(self._tree, self._cumulated, first, last, root=False)
        return total.astype(np.float64)
