"""The estimates of releases, which are unbiased, and what releases them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.schema import Schema
from mechdesign.base import Floats, Integers
from rangeq.central.answers import Errors, TableAnswers
from rangeq.central.inputs import Query
from rangeq.central.posterior import PosteriorEstimate, posterior_of
from rangeq.central.regions import FewestNodes
from rangeq.core import BoxSums


class HistogramMechanism(ABC):
    """The base of what releases a histogram once, with noise, for all queries."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """The number of cells along each attribute."""

    @property
    def domain(self) -> int:
        """The number of cells."""
        return math.prod(self.sizes)

    @property
    @abstractmethod
    def errors(self) -> Errors:
        """The variances of all queries, of the noise that is drawn."""

    @abstractmethod
    def release(
        self, counts: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> CentralEstimate:
        """Release a histogram once, with noise: all queries are answered from it.

        Every call is a release of its own, and costs what the mechanism promises again.

        Parameters
        ----------
        counts : array_like
            Of shape `sizes`, integers >= 0 of an integer type: the users in each cell. Their sum is
            at most 2^52, or 2^33 of a `MatrixMechanism`.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.

        Returns
        -------
        CentralEstimate
            Answers to all ranges and boxes of cells; of a `MatrixMechanism` a `MatrixEstimate`, of
            all linear queries that the strategy can answer.

        Raises
        ------
        InvalidHistogram
            For counts that are anything else, before anything is drawn.
        PrivacyViolation
            Never, unless the audit fails.
        """

    def variance(self, where: Any) -> Any:
        """Return the variance of a release's `CentralEstimate.answer`, of the discrete noise.

        Parameters
        ----------
        where : int, list, tuple, numpy.ndarray or mapping
            As for `CentralEstimate.answer`.

        Returns
        -------
        float or numpy.ndarray
            Squared users; an array for arrays of questions.

        Raises
        ------
        InvalidQuestion, UnanswerableQuery
            What is no question, or does not follow from what is measured.
        """
        return Query.of(where, self.sizes).by(self.errors.variance, self.errors.variance_of)


class CentralEstimate(TableAnswers):
    """Answers to every box of cells, as numbers of users, from a release.

    Unbiased: they may be negative or fractional.

    Attributes
    ----------
    mechanism : HistogramMechanism
        What released it.
    counts : numpy.ndarray of float64
        Of the mechanism's shape: the estimated number of users in each cell, read-only.
    """

    mechanism: HistogramMechanism

    def __init__(self, mechanism: HistogramMechanism, cells: Floats | Integers) -> None:
        self.mechanism = mechanism
        self._cells = cells.astype(np.float64)
        self._cells.setflags(write=False)

    @property
    def counts(self) -> Floats:
        return self._cells

    def posterior(self, schema: Schema | None = None) -> PosteriorEstimate:
        """What the table probably is: never negative, with shorter intervals.

        Parameters
        ----------
        schema : Schema, optional
            Of the attributes: which of them are ordered, and which items have no neighbours. None:
            all are ordered.

        Returns
        -------
        PosteriorEstimate
            Answers and intervals to the same questions; they are biased.

        Raises
        ------
        NoPosterior
            More than 4,096 cells along an attribute, or 512 categories, or an estimated number of
            users below 1.
        UnanswerableQuery
            The strategy cannot tell all cells of an attribute apart.
        """
        return posterior_of(self, schema)


class Summed(CentralEstimate):
    """An estimate that adds up: a box is the sum of its cells, given in the mechanism's shape."""

    @cached_property
    def _sums(self) -> BoxSums:
        return BoxSums(self._cells)

    def box_sums(self, first: Integers, last: Integers) -> Floats:
        return self._sums.between(first, last + 1)

    def weighted(self, weights: Sequence[Floats]) -> float:
        return weighted_sum(self._cells, weights)


class Layered(CentralEstimate):
    """An estimate that adds the fewest nodes that make up a box (Qardaji et al., section 3.2).

    `levels` are the noisy numbers of users in the nodes of each level from the top, and
    `consistent` makes the estimate of them that adds up.
    """

    def __init__(
        self,
        mechanism: HistogramMechanism,
        nodes: FewestNodes,
        levels: Sequence[Integers],
        consistent: Callable[[], CentralEstimate],
    ) -> None:
        self._nodes, self._levels, self._consistent = nodes, levels, consistent
        # The last cell may be a node of more than one level
        cells = np.indices(mechanism.sizes).reshape(len(mechanism.sizes), -1)
        super().__init__(mechanism, self.box_sums(cells, cells).reshape(mechanism.sizes))

    @cached_property
    def _sums(self) -> list[BoxSums]:
        return [BoxSums(level) for level in self._levels]

    def posterior(self, schema: Schema | None = None) -> PosteriorEstimate:
        return self._consistent().posterior(schema)

    def box_sums(self, first: Integers, last: Integers) -> Floats:
        # Whole users: nothing is rounded
        total = np.zeros(first.shape[1], dtype=np.int64)
        for level, sums in enumerate(self._sums, 1):
            total += sums.between(*self._nodes.inside(level, first, last))
            total -= sums.between(*self._nodes.below_inside(level, first, last))
        return total.astype(np.float64)

    def weighted(self, weights: Sequence[Floats]) -> float:
        return sum(
            weighted_sum(level, within) - weighted_sum(level, below)
            for level, (within, below) in zip(
                self._levels, self._nodes.chosen(weights), strict=True
            )
        )


def weighted_sum(values: npt.NDArray[Any], weights: Sequence[Floats]) -> float:
    """An array times weights along each of its axes."""
    for axis_weights in reversed(weights):
        values = values @ axis_weights
    return float(values)
