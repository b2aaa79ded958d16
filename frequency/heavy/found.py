"""The items that a protocol lists as frequent, with their errors, and what may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import Answer, ConfidenceInterval, normal_quantile
from frequency.exceptions import InvalidQuestion, InvalidValue
from mechdesign.base import Floats, is_whole, shown


@dataclass(frozen=True)
class Gate:
    """A gate: a decision on the way to the list, where estimates of ``cut`` and more pass.

    Parameters
    ----------
    cut : float
        The least estimate that passes, a fraction of the users.
    deviation : callable
        Maps the fraction of users with an item, or one of a group, to the deviation.
    """

    cut: float
    deviation: Callable[[Any], Any]

    def __call__(self, frequency: Floats) -> Floats:
        """Return the probability that an item of this frequency does not pass, for normal errors.

        It is Phi((cut - f) / deviation).
        """
        return scipy.special.ndtr(
            (self.cut - frequency) / np.maximum(self.deviation(frequency), 1e-300)
        )


class NamedItems(NamedTuple):
    """The estimates of items that were named, and not found.

    Attributes
    ----------
    frequencies, variances : numpy.ndarray of float64
        Shape (items,): estimated fractions of the population, and their variances.
    half : callable
        Maps a confidence to half of the lengths of the intervals, shape (items,), each by itself.
    """

    frequencies: Floats
    variances: Floats
    half: Callable[[float], Floats]


@dataclass(frozen=True, repr=False, eq=False)
class Found:
    """The heavy hitters that were found, the most frequent first.

    Attributes
    ----------
    items : numpy.ndarray
        Shape (k,): integers, or strings.
    frequencies, variances : numpy.ndarray of float64
        Shape (k,): estimated fractions of the population, and their variances. Unbiased for an item
        named in advance; for the selection of listed ones the intervals allow.
    half : callable
        Maps a confidence to half of the lengths of the intervals, shape (k,): see `interval`.
    n : int
        The number of reports.
    considered : int
        How many items the listed ones were chosen from.
    noise : float or numpy.ndarray of float64
        What the estimates of the considered items that nobody holds do not exceed, with probability
        ``confidence``; shape (k,) where the listed items' estimates are from different numbers of
        users.
    confidence : float
        Of ``noise``, and of the intervals unless another is asked for.
    gates : tuple of callable
        What an item had to pass: each maps frequencies to the probability that an item is lost
        there, at most. Empty if there were too few reports.
    promise : str
        What all of this takes for granted; empty if nothing.
    named : callable, optional
        Maps a list of items to their `NamedItems`; None: nothing is known of unlisted items.
    """

    items: npt.NDArray[Any]
    frequencies: Floats
    variances: Floats
    half: Callable[[float], Floats]
    n: int
    considered: int
    noise: float | Floats
    confidence: float
    gates: tuple[Callable[[Any], Any], ...]
    promise: str = ""
    named: Callable[[list[Any]], NamedItems] | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def significant(self) -> npt.NDArray[np.bool_]:
        """The items whose estimate exceeds `noise`, (k,); the others may be held by nobody."""
        return np.asarray(self.frequencies > self.noise)

    def interval(self, confidence: float | None = None) -> ConfidenceInterval[Floats]:
        """Return intervals for the frequencies of the listed items, which allow for selection.

        Of all that are given, the expected share that misses the true frequency is at most 1 -
        confidence although the items were chosen by their estimates (Benjamini and Yekutieli, JASA
        2005: intervals at level 1 - (1 - confidence) k / considered).

        Parameters
        ----------
        confidence : float, optional
            Strictly between 0 and 1; None: `confidence`.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shape (k,).

        Raises
        ------
        ValueError
            Another confidence.
        """
        level = self.confidence if confidence is None else confidence
        normal_quantile(level)  # refuses what is none
        half = self.half(level)
        return ConfidenceInterval(self.frequencies - half, self.frequencies + half)

    def answer(self, where: Any) -> Answer:
        """Return the frequency of an item, or of many, whether they are listed or not.

        Parameters
        ----------
        where : int, str, numpy.ndarray or mapping
            An item, an array of them, or a mapping of 0 to either.

        Returns
        -------
        Answer
            A fraction of the population. The interval of a listed item is that of `interval`. That
            of any other is for one named in advance: of those that are looked up because of their
            estimates fewer than said hold the truth.

        Raises
        ------
        InvalidQuestion
            What is no item of the universe; or an item that is not listed, from too few reports or
            where the protocol tells nothing of other items.
        """
        asked = where[0] if isinstance(where, Mapping) and set(where) == {0} else where
        given = asked if isinstance(asked, np.ndarray) else np.array(asked, dtype=object)
        if not isinstance(asked, (np.ndarray, str)) and not is_whole(asked):
            raise InvalidQuestion(f"the item {shown(asked)} is not listed")
        order = {item: place for place, item in enumerate(self.items.tolist())}
        wanted = given.ravel().tolist()
        others: list[Any] = []
        for item in wanted:
            if isinstance(item, (bool, float)) or (item not in order and self.named is None):
                raise InvalidQuestion(f"the item {shown(item)} is not listed")
            if item not in order:
                order[item] = len(self) + len(others)
                others.append(item)
        places = np.array([order[item] for item in wanted], dtype=np.int64).reshape(given.shape)
        frequencies, variances, half = self.frequencies, self.variances, self.half
        if others and self.named is not None:
            try:
                more = self.named(others)
            except InvalidValue as error:
                raise InvalidQuestion(
                    f"the item {shown(error.value)} is not one of those that users may have"
                ) from error
            frequencies = np.concatenate([frequencies, more.frequencies])
            variances = np.concatenate([variances, more.variances])
            half = partial(_joined, self.half, more.half)

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            normal_quantile(confidence)  # refuses what is none
            value, width = frequencies[places], half(confidence)[places]
            return ConfidenceInterval(value - width, value + width)

        return Answer(frequencies[places], variances[places], _interval=interval)

    def recall(self, frequency: npt.ArrayLike) -> Any:
        """Return a lower bound for the probability that an item of this frequency is listed.

        By the union bound over the gates, for normal errors, with the cuts of this run.

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
        # Bisection to the last bit of a float: recall rises with the frequency.
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.recall(middle) >= self.confidence else (middle, high)
        return high

    def table(self) -> str:
        """Return the list as text, and what it does not say."""
        width = max([4, *(len(repr(item)) for item in self.items.tolist())])
        low, high = self.interval()
        lines = [f"{'item':>{width}}  {'frequency':>10}  {'deviation':>10}  interval"]
        for place, item in enumerate(self.items.tolist()):
            span = f"[{low[place]:.6f}, {high[place]:.6f}]"
            mark = "" if self.significant[place] else "  may be noise"
            lines.append(
                f"{item!r:>{width}}  {self.frequencies[place]:>10.6f} "
                f" {np.sqrt(self.variances[place]):>10.6f}  {span}{mark}"
            )
        return "\n".join([*lines, self.statement])

    @property
    def statement(self) -> str:
        """The statement of what may have been missed, in words."""
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


def _joined(
    first: Callable[[float], Floats], then: Callable[[float], Floats], confidence: float
) -> Floats:
    return np.concatenate([first(confidence), then(confidence)])
