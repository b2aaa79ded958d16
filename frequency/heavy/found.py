"""The items that a protocol lists as frequent, with their errors, and what may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core.answer import Answer, ConfidenceInterval
from frequency.exceptions import InvalidQuestion
from mechdesign._support.arrays import Floats
from mechdesign._support.numbers import is_whole
from mechdesign._support.text import shown


@dataclass(frozen=True)
class Gate:
    """One decision on the way to the list: estimates of ``cut`` and more pass.

    ``deviation`` gives the standard deviation of the estimate of an item, or of a group of items,
    held by a fraction of users.

    Parameters
    ----------
    cut : float
        The least estimate that passes, a fraction of the users.
    deviation : callable
        Maps the fraction of the users with an item, or with an item of a group, to the standard
        deviation of the estimate.
    """

    cut: float
    deviation: Callable[[Any], Any]

    def __call__(self, frequency: Floats) -> Floats:
        """The probability that an item of this frequency does not pass, for normal errors.

        It is Phi((cut - f) / deviation).
        """
        result: Floats = scipy.special.ndtr(
            (self.cut - frequency) / np.maximum(self.deviation(frequency), 1e-300)
        )
        return result


@dataclass(frozen=True, repr=False, eq=False)
class Found:
    """Heavy hitters, the most frequent first.

    Attributes
    ----------
    items : numpy.ndarray
        Shape (k,): integers, or strings.
    frequencies : numpy.ndarray of float64
        Shape (k,): estimated fractions of the population, unbiased for an item named in advance.
        Those of listed items are high by their selection; the intervals allow for it.
    variances : numpy.ndarray of float64
        Shape (k,): of the estimates.
    intervals : ConfidenceInterval
        ``low`` and ``high``, shape (k,): of all that are given, the expected share that misses the
        true frequency is at most 1 - confidence although the items were chosen by their estimates
        (Benjamini and Yekutieli, JASA 2005: intervals at level 1 - (1 - confidence) k /
        considered).
    n : int
        The number of reports.
    considered : int
        How many items the listed ones were chosen from.
    noise : float
        What the estimates of the considered items that nobody holds do not exceed, with probability
        ``confidence``.
    confidence : float
        Of the intervals and of ``noise``.
    gates : tuple of callable
        What an item had to pass: each maps frequencies to the probability that an item is lost
        there, at most. Empty if there were too few reports.
    promise : str
        What all of this takes for granted; empty if nothing.
    """

    items: npt.NDArray[Any]
    frequencies: Floats
    variances: Floats
    intervals: ConfidenceInterval
    n: int
    considered: int
    noise: float
    confidence: float
    gates: tuple[Callable[[Any], Any], ...]
    promise: str = ""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def significant(self) -> npt.NDArray[np.bool_]:
        """Shape (k,): whose estimate exceeds `noise`; the others may be held by nobody."""
        return self.frequencies > self.noise

    def answer(self, where: Any) -> Answer:
        """The frequency of a listed item.

        Parameters
        ----------
        where : int or str
            One of ``items``, or a mapping of 0 to it.

        Returns
        -------
        Answer
            A fraction of the population. Its interval is that of ``intervals``, which allows for
            the selection, and is for `confidence` alone.

        Raises
        ------
        InvalidQuestion
            An item that is not listed.
        """
        item = where[0] if isinstance(where, Mapping) and set(where) == {0} else where
        asked = is_whole(item) or isinstance(item, str)
        places = [k for k, listed in enumerate(self.items.tolist()) if asked and listed == item]
        if not places:
            raise InvalidQuestion(f"the item {shown(item)} is not listed")
        place = places[0]

        def interval(confidence: float) -> ConfidenceInterval:
            if confidence != self.confidence:
                raise ValueError(
                    f"the intervals of this list are for the confidence {self.confidence}, got"
                    f" {confidence}"
                )
            return ConfidenceInterval(self.intervals.low[place], self.intervals.high[place])

        return Answer(
            float(self.frequencies[place]), float(self.variances[place]), _interval=interval
        )

    def recall(self, frequency: npt.ArrayLike) -> Any:
        """A lower bound for the probability that an item of this frequency is in the list.

        By the union bound over the gates, for normal errors. The cuts of a list of k items are
        those of this run.

        Parameters
        ----------
        frequency : array_like
            Fractions of the population, 0 to 1: a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Probabilities, shaped like ``frequency``; 0 for a list from too few reports.
        """
        f = np.asarray(frequency, dtype=np.float64)
        missed = np.zeros(f.shape) if self.gates else np.ones(f.shape)
        for gate in self.gates:
            missed = missed + gate(f)
        result = np.clip(1 - missed, 0.0, 1.0)
        return float(result) if result.ndim == 0 else result

    @cached_property
    def complete_above(self) -> float:
        """The least frequency that is listed with probability `confidence`; inf if none is."""
        if not self.gates or self.recall(1.0) < self.confidence:
            return float("inf")
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.recall(middle) >= self.confidence else (middle, high)
        return high

    def table(self) -> str:
        """The list as text, and what it does not say."""
        width = max([4, *(len(repr(item)) for item in self.items.tolist())])
        lines = [f"{'item':>{width}}  {'frequency':>10}  {'deviation':>10}  interval"]
        for place, item in enumerate(self.items.tolist()):
            span = f"[{self.intervals.low[place]:.6f}, {self.intervals.high[place]:.6f}]"
            mark = "" if self.significant[place] else "  may be noise"
            lines.append(
                f"{item!r:>{width}}  {self.frequencies[place]:>10.6f} "
                f" {np.sqrt(self.variances[place]):>10.6f}  {span}{mark}"
            )
        return "\n".join([*lines, self.statement])

    @property
    def statement(self) -> str:
        """What may have been missed, in words."""
        if not self.gates:
            few = (
                f"{self.n} reports are too few"
                if self.n > 1
                else "One report is too little"
                if self.n
                else "No reports"
            )
            return f"{few}: anything may have been missed."
        above = self.complete_above
        missed = (
            f"an item held by {above:.3%} of the users or more is listed with probability"
            f" {100 * self.confidence:g}%"
            if np.isfinite(above)
            else "no frequency is high enough to be listed for sure"
        )
        doubt = int((~self.significant).sum())
        noise = f"; {doubt} of the {len(self)} listed may be noise" if doubt else ""
        provided = f", if {self.promise}" if self.promise else ""
        return f"From {self.n} reports{provided}: {missed}; rarer ones may be missing{noise}."

    def __repr__(self) -> str:
        return f"<{len(self)} items found. {self.statement}>"
