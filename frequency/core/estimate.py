"""Estimates of frequencies and of their sums, with variances and confidence intervals."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.answer import (
    Answer,
    Condition,
    ConfidenceInterval,
    conditions,
    normal_quantile,
    with_items,
)
from frequency.exceptions import InvalidQuestion
from mechdesign.base import Floats, Items, whole

# ------------------------------------------------------------------------------------------------
# Estimates about a population of which only a random part reported.


class OfPopulation:
    """An estimate about the users who reported, or about all of whom they are a random part."""

    n: int  #: The number of users that the estimate is about.
    reports: int  #: How many of them it is from: all, unless it is made by `of_population`.

    def _about(self, reports: int) -> None:
        """The estimate is from so many reports, and about their senders."""
        self.n = self.reports = reports

    def of_population(self, n: int) -> Self:
        """The same estimate, about more users, of whom those who reported are a random part.

        Variances grow by what drawing the part without replacement adds: for an answer v that is
        v (1 - v) (1 / reports - 1 / n).

        Parameters
        ----------
        n : int
            The number of users, at least that of the reports.

        Returns
        -------
        OfPopulation
            Another estimate of the same kind.

        Raises
        ------
        ValueError
            Fewer users than reports.
        """
        result = copy.copy(self)
        result.n = whole(n, "n", self.reports, what="a number of users")
        vars(result).pop("variances", None)  # which may have been computed already
        return result

    @property
    def _drawn(self) -> float:
        """The factor of a variance among all users that drawing those who reported makes."""
        return 1 / self.reports - 1 / self.n if self.n > self.reports > 0 else 0.0

    def _of_drawing(self, values: npt.ArrayLike) -> Floats:
        """Return the variances that drawing the users who reported adds to these fractions."""
        if not self._drawn:
            return np.zeros(np.shape(values))
        f = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
        return f * (1 - f) * self._drawn

    def _of_drawing_sums(self, weights: Any, frequencies: Floats) -> Floats:
        """The same of weighted sums of fractions: weights have shape (sums, items)."""
        if not self._drawn:
            return np.zeros(len(weights))
        f = np.clip(frequencies, 0.0, 1.0)
        f = f / max(float(f.sum()), 1.0)  # of noise, which may be more than everybody
        mean = np.asarray(weights @ f)
        # About the mean, where who has none of the items has weight 0: squares, and no difference
        others = max(1.0 - float(f.sum()), 0.0) * mean**2
        return ((weights - mean[:, None]) ** 2 @ f + others) * self._drawn


class Estimator(Protocol):
    """The part of an oracle that an `Estimate` needs: see `Oracle`."""

    @property
    def domain(self) -> int:
        """The number of items."""

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        """Unbiased estimates of frequencies."""

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Estimates of their variances."""

    def variance_slope(self, n: int) -> float:
        """Return the growth of an item's variance with its own frequency."""

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Estimates of the variances of weighted sums."""


class Estimate(OfPopulation):
    """Estimated frequencies of items, with their errors.

    They are unbiased: values may be negative, exceed 1, and not sum to 1.

    See `frequency.postprocess` for a distribution that errs less. With n = 0 all values are NaN,
    all variances infinite.

    Attributes
    ----------
    n : int
        The number of users: see `OfPopulation`.
    items : numpy.ndarray of int64 or None
        The items that were asked for, in that order; None stands for the whole domain.
    frequencies : numpy.ndarray of float64
        Shape (items,): estimated fractions of the population, read-only.
    """

    def __init__(self, oracle: Estimator, aggregate: Aggregate, items: Items | None) -> None:
        self._oracle, self.aggregate, self.items = oracle, aggregate, items
        self._about(aggregate.n)
        length = oracle.domain if items is None else len(items)
        self.frequencies: Floats = (
            oracle.frequencies_of(aggregate, items) if self.reports else np.full(length, np.nan)
        )
        self.frequencies.setflags(write=False)

    @cached_property
    def variances(self) -> Floats:
        """Estimated variances of the frequencies over the protocol's randomness, shape (items,).

        Unbiased, but for being cut at 0 (which a handful of reports may need) and for what sketches
        say of theirs.
        """
        if not self.reports:
            return np.full(len(self.frequencies), np.inf)
        noise = self._oracle.variances_of(self.aggregate, self.frequencies, self.items)
        return np.maximum(noise, 0.0) + self._of_drawing(self.frequencies)

    @property
    def variance_slope(self) -> float:
        """The growth of an item's variance with its own frequency, where that is small."""
        return self._oracle.variance_slope(self.reports) + self._drawn

    def variances_at(self, frequency: float) -> Floats:
        """Return the variances as if every item by itself had another frequency.

        Parameters
        ----------
        frequency : float
            A fraction of the users, 0 to 1.

        Returns
        -------
        numpy.ndarray of float64
            Shape (items,): at least 0; infinite with no reports.
        """
        if not self.reports:
            return np.full(len(self.frequencies), np.inf)
        noise = self._oracle.variances_of(self.aggregate, self.frequencies, self.items)
        moved = self._oracle.variance_slope(self.reports) * (frequency - self.frequencies)
        return np.maximum(noise + moved, 0.0) + self._of_drawing(frequency)

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval[Floats]:
        """Intervals that each cover the true frequency with about this probability.

        Score intervals: all f with (estimate - f)^2 <= z^2 Var(f), where the variance is the one at
        f and not at the estimate (Wilson's interval, for this protocol). Not clipped to [0, 1].

        Parameters
        ----------
        confidence : float, default 0.95
            Of each interval by itself, strictly between 0 and 1.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shape (items,); infinite with no reports.

        Raises
        ------
        ValueError
            Another confidence.
        """
        return self._of_items(confidence)

    def _of_items(self, confidence: float) -> ConfidenceInterval[Floats]:
        z = normal_quantile(confidence)
        if not self.reports:
            return ConfidenceInterval(
                np.full(len(self.frequencies), -np.inf), np.full(len(self.frequencies), np.inf)
            )
        shift = z * z * self._oracle.variance_slope(self.reports) / 2
        half = np.sqrt(z * z * self.variances + shift * shift)
        return ConfidenceInterval(self.frequencies + shift - half, self.frequencies + shift + half)

    def linear(self, weights: npt.ArrayLike) -> Answer:
        """The weighted sum of frequencies and its variance, covariances included.

        Parameters
        ----------
        weights : array_like
            Shape (items,), or (sums, items) for several sums. Finite.

        Returns
        -------
        Answer
            Floats, or arrays of shape (sums,). The variance is an unbiased estimate, cut at 0.

        Raises
        ------
        ValueError
            Weights of another shape, or that are not finite.
        """
        given = np.asarray(weights, dtype=np.float64)
        rows = np.atleast_2d(given)
        if (
            given.ndim not in (1, 2)
            or rows.shape[1] != len(self.frequencies)
            or not np.isfinite(rows).all()
        ):
            raise ValueError(
                f"weights must be {len(self.frequencies)} finite numbers, one an item, or rows of"
                f" them; got shape {given.shape}"
            )
        value = rows @ self.frequencies
        variance = np.full(len(rows), np.inf)
        if self.reports and len(rows):
            noise = self._oracle.linear_variances_of(
                rows, self.aggregate, self.frequencies, self.items
            )
            variance = np.maximum(noise, 0.0) + self._of_drawing_sums(rows, self.frequencies)
        if given.ndim == 1:
            return Answer(float(value[0]), float(variance[0]))
        return Answer(value, variance)

    def answer(self, where: Any) -> Answer:
        """The fraction of the population with these items.

        Parameters
        ----------
        where : int, list, Between, str, numpy.ndarray or mapping
            An item, a list of items, or a closed range, ``Between(3, 9)`` or "3:9"; integer arrays
            in place of items are many questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            A fraction, with its variance. The intervals of single items are those of `interval`.

        Raises
        ------
        InvalidQuestion
            What is no question, or items that were not estimated.
        """
        shape, (asked,) = conditions(where, ("item",), (self._oracle.domain,))
        if asked.items is not None:
            return self._sum_of(asked)
        single = asked.first == asked.last
        if single.all():
            return self._single(asked.first)
        ends = np.stack([asked.first.ravel(), asked.last.ravel()])
        answers = [
            self._sum_of(asked._replace(first=a, last=b)) for a, b in np.moveaxis(ends, 1, 0)
        ]
        value, variance = (np.array(part).reshape(shape) for part in zip(*answers, strict=True))
        if not single.any():
            return Answer(value, variance)
        items = self._single(asked.first[single])
        value[single], variance[single] = items
        return with_items(Answer(value, variance), single, items)

    def _sum_of(self, asked: Condition) -> Answer:
        """The answer to one question: a weighted sum of the frequencies."""
        known = np.arange(self._oracle.domain) if self.items is None else self.items
        weights = asked.weights(known)
        if weights.sum() != asked.size:
            raise InvalidQuestion("some of the items that are asked for were not estimated")
        return self.linear(weights)

    def _single(self, items: Items) -> Answer:
        """The answers about single items."""
        places = items
        if self.items is not None:
            order = np.argsort(self.items)
            ranks = np.searchsorted(self.items, items, sorter=order)
            places = np.append(order, 0)[ranks]
            if not np.array_equal(np.append(self.items, -1)[places], items):
                raise InvalidQuestion("some of the items that are asked for were not estimated")

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            low, high = self._of_items(confidence)
            return ConfidenceInterval(low[places], high[places])

        return Answer(self.frequencies[places], self.variances[places], _interval=interval)

    def table(self, confidence: float = 0.95, largest: int | None = 10) -> str:
        """The frequencies with their intervals, as text.

        Parameters
        ----------
        confidence : float, default 0.95
            Of each interval by itself, strictly between 0 and 1.
        largest : int or None, default 10
            How many of the largest frequencies to show; None: all, in the order of the items.

        Returns
        -------
        str
            A table with one line for each item.
        """
        low, high = self._of_items(confidence)
        order = (
            np.arange(len(low))
            if largest is None
            else np.argsort(-self.frequencies, kind="stable")[:largest]
        )
        lines = [
            f"{'item':>12}  {'frequency':>10}  {'deviation':>10} "
            f" {f'{confidence:.0%} interval':>24}"
        ]
        for k in order:
            item = k if self.items is None else self.items[k]
            span = f"[{low[k]:.6f}, {high[k]:.6f}]"
            lines.append(
                f"{item:>12}  {self.frequencies[k]:>10.6f}  {np.sqrt(self.variances[k]):>10.6f} "
                f" {span:>24}"
            )
        if len(order) < len(low):
            lines.append(
                f"The largest of {len(low)}, and so too large on average: the intervals are for"
                " items chosen beforehand."
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<Estimate of {len(self.frequencies)} frequencies from {self.n} reports,"
            f" {self._oracle!r}>"
        )
