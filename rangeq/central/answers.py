"""Answers about a table of cells: every box of them, as numbers of users."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from frequency.core import (
    Answer,
    checked_sample,
    fractions,
    normal_quantile,
    place_along,
    plain,
    quantile,
    shared_out,
)
from frequency.core import ConfidenceInterval as ConfidenceInterval
from mechdesign.base import Floats, Integers
from rangeq.central.inputs import Query
from rangeq.core import halved

#: A float for a range given by two integers, an array for ranges given by arrays.
Number: TypeAlias = float | Floats


class Errors(Protocol):
    """The variances of queries."""

    def variance(self, first: Integers, last: Integers) -> Any:
        """Return those of the sums over boxes.

        Shapes: `first` and `last` (attributes, boxes), closed ends; returns (boxes,), squared
        users.
        """

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """Return that of the sum over a product of sets of places, in squared users.

        Shapes: `weights` (places of an attribute,) each: 1 for the places in the set, else 0.
        """

    def mean(self) -> Any:
        """The mean over all boxes: float or Fraction, squared users."""


class TableAnswers(ABC):
    """The base of answers to every box of cells, as numbers of users.

    Attributes
    ----------
    mechanism : HistogramMechanism
        What released the table.
    """

    mechanism: Any

    @overload
    def range(self, a: int, b: int) -> float: ...
    @overload
    def range(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Number: ...
    def range(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Number:
        """Return how many users are in the cells a .. b of the only attribute, both included.

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
            For anything else, and with several attributes: `answer` has their boxes.
        """
        return Query.range(a, b, self.mechanism.sizes).by(self.box_sums)

    @overload
    def prefix(self, b: int) -> float: ...
    @overload
    def prefix(self, b: npt.ArrayLike) -> Number: ...
    def prefix(self, b: npt.ArrayLike) -> Number:
        """Return how many users are in the cells 0 .. b of the only attribute.

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
            Anything else, and with several attributes.
        """
        return self.range(0, b)

    @property
    def n(self) -> float:
        """The estimated number of users in all cells."""
        first, last = self._up_to(0, np.array([self.mechanism.sizes[0] - 1]))
        return float(self.box_sums(first, last)[0])

    def answer(self, where: Any) -> Answer:
        """The number of users in these cells.

        Parameters
        ----------
        where : int, list, Between, str, numpy.ndarray or mapping
            For each attribute that matters, by its place ``0 .. attributes-1``: a place along it, a
            list of places, or a closed range, ``Between(3, 9)`` or "3:9"; integer arrays instead
            are many questions: see `frequency.core.answer.conditions`. Of one attribute the mapping
            may be left out.

        Returns
        -------
        Answer
            Users. Its variance is exact, also for lists.

        Raises
        ------
        InvalidQuestion
            What is no question.
        """
        query = Query.of(where, self.mechanism.sizes)
        value = query.by(self.box_sums, self.weighted)
        errors = self._errors
        variance = query.by(errors.variance, errors.variance_of)

        return self._answered(value, variance)

    @property
    def _errors(self) -> Errors:
        """The variances of answers."""
        return self.mechanism.errors

    def _answered(self, value: Any, variance: Any) -> Answer:
        def interval(confidence: float) -> ConfidenceInterval[Any]:
            half = self.half_width(np.sqrt(variance), confidence)
            return ConfidenceInterval(value - half, value + half)

        return Answer(value, variance, _interval=interval)

    def half_width(self, deviation: Any, confidence: float) -> Any:
        """Return half the width of an interval, in users: see `interval`.

        Parameters
        ----------
        deviation : float or numpy.ndarray
            The standard deviations of answers, in users.
        confidence : float
            In (0, 1).

        Returns
        -------
        float or numpy.ndarray
            Of the deviations' shape.

        Raises
        ------
        ValueError
            For a confidence outside of (0, 1).
        """
        return self.deviations(confidence) * deviation + self.step / 2

    @property
    def step(self) -> float:
        """The step between answers, in users: 1, as noise is in whole users."""
        return 1.0

    def deviations(self, confidence: float) -> float:
        """Return how many standard deviations an interval reaches from its answer.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        float
            The wider of the normal and the Laplace quantile.

        Raises
        ------
        ValueError
            For a confidence outside of (0, 1).
        """
        return max(normal_quantile(confidence), -math.log1p(-confidence) / math.sqrt(2))

    def cdf(self, attribute: str | int | None = None) -> Floats:
        """Return every prefix along an attribute over the estimated total, ending with 1.

        Not made monotone. NaN unless the total is above 0.

        Parameters
        ----------
        attribute : int, optional
            Its place; None: the only one.

        Returns
        -------
        numpy.ndarray of float64
            Shape (places of the attribute,).

        Raises
        ------
        InvalidQuestion
            No such attribute, or none where there are several.
        """
        place = self._place(attribute)
        prefixes = self.box_sums(*self._up_to(place, np.arange(self.mechanism.sizes[place])))
        return prefixes / prefixes[-1] if prefixes[-1] > 0 else np.full_like(prefixes, np.nan)

    @property
    @abstractmethod
    def counts(self) -> Floats:
        """The number of users in each cell, of the mechanism's shape, read-only."""

    @property
    def frequencies(self) -> Floats:
        """The counts over their estimated total; NaN unless that is above 0."""
        total = self.n
        return self.counts / total if total > 0 else np.full_like(self.counts, np.nan)

    @property
    def variances(self) -> Floats:
        """The variance of each of the counts, in squared users."""
        return self._of_each.variance

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval[Floats]:
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
            ``low`` and ``high``, of the shape of the counts: users.

        Raises
        ------
        ValueError
            For a confidence outside of (0, 1).
        """
        return self._of_each.interval(confidence)

    @property
    def _of_each(self) -> Answer:
        places = np.indices(self.mechanism.sizes)
        return self.answer(dict(enumerate(places)))

    def _place(self, attribute: str | int | None) -> int:
        return place_along(attribute, Query.names(self.mechanism.sizes))

    def _up_to(self, place: int, cells: Integers) -> tuple[Integers, Integers]:
        """The boxes up to these cells along an attribute, and of everything else."""
        last = np.array(self.mechanism.sizes)[:, None] - 1 + np.zeros_like(cells)
        last[place] = cells
        return np.zeros_like(last), last

    def quantile(self, phi: npt.ArrayLike, attribute: str | int | None = None) -> Any:
        """Return the least cell with at least the fraction phi of the users at or below it.

        A noisy cdf may reach phi more than once: see `frequency.core.answer.quantile`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        attribute : int, optional
            The place of the attribute along which; None: the only one.

        Returns
        -------
        int or numpy.ndarray
            Cells, of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi outside of [0, 1], or if the estimated total is not above 0.
        InvalidQuestion
            No such attribute, or none where there are several.
        """
        return quantile(self.cdf(attribute), phi)

    def quantile_interval(
        self, phi: npt.ArrayLike, confidence: float = 0.95, attribute: str | int | None = None
    ) -> tuple[Any, Any]:
        """The cells between which the phi-quantile lies: Woodruff's interval.

        The quantile is the first cell b with (1 - phi) times the users up to b at least phi times
        those beyond. The deviation of the difference is at most the sum of theirs, whatever their
        covariance: so intervals are somewhat wide, and never too narrow for that.

        Parameters
        ----------
        phi, attribute : as of `quantile`
            Fractions in [0, 1], and along which attribute.
        confidence : float, default 0.95
            In (0, 1), of the band at each cell.

        Returns
        -------
        tuple
            The first and the last cell, ints or arrays of the shape of ``phi``.

        Raises
        ------
        ValueError, InvalidQuestion
            For a phi or a confidence out of range; as for `quantile`.
        """
        wanted, place = fractions(phi), self._place(attribute)
        # The last one has everybody at or below it
        cell = np.arange(self.mechanism.sizes[place] - 1)
        zero, up_to = self._up_to(place, cell)
        _, everything = self._up_to(place, np.full_like(cell, self.mechanism.sizes[place] - 1))
        beyond = zero.copy()
        beyond[place] = cell + 1
        up, rest = self.box_sums(zero, up_to), self.box_sums(beyond, everything)
        errors = self._errors
        deviations = [
            np.sqrt(errors.variance(zero, up_to)),
            np.sqrt(errors.variance(beyond, everything)),
        ]
        ends = np.empty((2, wanted.size), dtype=np.int64)
        for k, share in enumerate(wanted.ravel()):
            lead = (1 - share) * up - share * rest
            deviation = (1 - share) * deviations[0] + share * deviations[1]
            half = self.half_width(deviation, confidence)
            ends[0, k] = np.argmax(np.append(lead + half >= 0, True))
            behind = np.flatnonzero(lead - half < 0)
            ends[1, k] = behind[-1] + 1 if len(behind) else 0
        low, high = ends.reshape(2, *wanted.shape)
        return plain(low), plain(high)

    def sample(self, n: int, rng: np.random.Generator | None = None) -> Integers:
        """Synthetic rows, for programs that take a row for each user: they are nobody's.

        Cells are shared out by `rangeq.core.boxes.halved`, rounded at random, so that ranges
        and boxes of the rows err hardly more than the answers do. Nothing is spent: they are made
        of what was released.

        Parameters
        ----------
        n : int
            How many, at least 1.
        rng : numpy.random.Generator, optional
            To round and to shuffle with.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n,), or (n, attributes) with several: places, in random order.

        Raises
        ------
        ValueError
            No number of rows, or the estimated number of users is not above 0.
        UnanswerableQuery
            What was released does not tell all boxes.
        """
        rows, _, generator = checked_sample(n, 1, 1, rng)
        if not self.n > 0:
            raise ValueError(f"the estimated number of users is {self.n:.6g}: there are no rows")
        cells = halved(self.box_sums, self.mechanism.sizes, self.n)
        items = shared_out(cells.ravel(), rows, generator)
        if cells.ndim == 1:
            return items
        return np.stack(np.unravel_index(items, cells.shape), axis=1)

    @abstractmethod
    def box_sums(self, first: Integers, last: Integers) -> Floats:
        """Return the numbers of users in boxes.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Shape (attributes, boxes): checked, closed ends.

        Returns
        -------
        numpy.ndarray of float64
            Shape (boxes,).
        """

    @abstractmethod
    def weighted(self, weights: Sequence[Floats]) -> float:
        """Return the number of users in a product of sets of places.

        Parameters
        ----------
        weights : sequence of numpy.ndarray of float64
            For each attribute 1 for the places in the set, else 0.

        Returns
        -------
        float
            Users.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.mechanism!r}>"
