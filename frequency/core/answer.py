"""Questions to an estimate, and the answer with its error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from frequency.exceptions import InvalidQuestion, UnknownVariance
from mechdesign.base import Between as Between
from mechdesign.base import Floats, Integers, Items, is_whole, listed, printable, shown, whole

Ends = TypeVar("Ends", bound="float | Floats", covariant=True)

#: Why an answer about several ranges has no variance, where covariances are not known.
SUM_OF_RANGES = "the variance of a sum of ranges is not known: ask for each"


class ConfidenceInterval(NamedTuple, Generic[Ends]):
    """The ends of confidence intervals: floats of one question, else arrays.

    Those of an estimate's items are arrays of floats to a type checker; those of an `Answer` may be
    either, as with NumPy's functions.

    Attributes
    ----------
    low, high : float or numpy.ndarray of float64
        Floats of one question, else of shape (items,), or that of the ranges.
    """

    low: Ends
    high: Ends


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question, or to many, with its error.

    It can be unpacked as ``value, variance``.

    An answer by a model, which is smoothed or shrunk towards what is usual, has two intervals: that
    of the reports alone, which holds for every question, and that of the model, which is shorter
    and holds on average over questions, but not where people look because something is unusual
    there, as at a peak. The variance is the model's.

    Attributes
    ----------
    value : float or numpy.ndarray
        An array for arrays of questions; NaN without reports.
    """

    value: Any
    _variance: Any = None
    _unknown: str = ""
    _interval: Callable[[float], ConfidenceInterval[Any]] | None = None
    _for_each: Callable[[float], ConfidenceInterval[Any]] | None = None
    _average: bool = False

    def __post_init__(self) -> None:
        for name in ("value", "_variance"):  # NumPy's scalars would be printed as such
            object.__setattr__(self, name, plain(getattr(self, name)))

    @property
    def variance(self) -> Any:
        """The variance of the value, shaped like it; infinite without reports.

        Raises
        ------
        UnknownVariance
            None is known for this estimate and question: the message says why.
        """
        if self._variance is None:
            raise UnknownVariance(self._unknown)
        return self._variance

    def interval(
        self, confidence: float = 0.95, *, on_average: bool = False
    ) -> ConfidenceInterval[Any]:
        """An interval that covers the truth with about this probability.

        For several questions each interval holds by itself.

        Parameters
        ----------
        confidence : float, default 0.95
            Strictly between 0 and 1.
        on_average : bool, default False
            True: of a model, the shorter interval that holds on average over questions. Other
            answers have one interval.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shaped like the value.

        Raises
        ------
        UnknownVariance
            Neither a variance nor intervals are known.
        ValueError
            Another confidence.
        """
        z = normal_quantile(confidence)
        if self._for_each is not None and not on_average:
            return ConfidenceInterval(*map(plain, self._for_each(confidence)))
        if self._interval is not None:
            return ConfidenceInterval(*map(plain, self._interval(confidence)))
        half = z * np.sqrt(self.variance)
        middle = np.where(np.isfinite(half), self.value, 0.0)
        return ConfidenceInterval(plain(middle - half), plain(middle + half))

    @property
    def holds_on_average(self) -> bool:
        """Whether its only interval is of a model, and holds on average over questions."""
        return self._average

    @property
    def has_model(self) -> bool:
        """Whether it has a shorter interval, of a model, for ``on_average``."""
        return self._for_each is not None

    def __iter__(self) -> Iterator[Any]:
        yield self.value
        yield self.variance

    def __repr__(self) -> str:
        known = "unknown" if self._variance is None else repr(self._variance)
        return f"Answer(value={self.value!r}, variance={known})"


def on_average(told: Answer) -> Answer:
    """The answer of a model, of which the reports alone tell no interval."""
    return replace(told, _average=True)


def cut(told: Answer, least: Any, most: Any) -> Answer:
    """The answer, with intervals cut to what is possible."""

    def interval(confidence: float) -> ConfidenceInterval[Any]:
        ends = told.interval(confidence, on_average=True)
        return ConfidenceInterval(*(np.clip(end, least, most) for end in ends))

    return replace(told, _interval=interval)


def by_model(told: Answer, reports: Answer, least: Any = 0.0, most: Any = 1.0) -> Answer:
    """The answer of a model, beside that of the reports alone, whose interval holds for each.

    Where these tell nothing, and the ends of their interval are NaN, that of the model is left.
    """

    def interval(confidence: float) -> ConfidenceInterval[Any]:
        low, high = reports.interval(confidence)
        if np.isnan(low).any():
            inner = told.interval(confidence, on_average=True)
            low, high = (
                np.where(np.isnan(end), own, end)
                for end, own in zip((low, high), inner, strict=True)
            )
        # By the Bayesian argument the value is the better guess: it is never outside
        ends = np.fmin(low, told.value), np.fmax(high, told.value)
        return ConfidenceInterval(*(np.clip(end, least, most) for end in ends))

    return replace(told, _for_each=interval)


def with_items(told: Answer, single: npt.NDArray[np.bool_], items: Answer) -> Answer:
    """The answer to questions, where those about single items have the errors of `items`."""

    # A question is then answered alike by itself and among others
    def interval(confidence: float) -> ConfidenceInterval[Any]:
        ends = []
        for end, item_end in zip(
            told.interval(confidence), items.interval(confidence), strict=True
        ):
            both = np.array(end)
            both[single] = item_end
            ends.append(both)
        return ConfidenceInterval(*ends)

    variance = np.array(told.variance)
    variance[single] = items.variance
    return Answer(told.value, variance, _interval=interval)


def of_samples(values: npt.ArrayLike) -> Answer:
    """Return the mean over several synthetic samples, with the error that their differences tell.

    Parameters
    ----------
    values : array_like
        What was computed from each sample: shape (samples, ...), at least 2 samples.

    Returns
    -------
    Answer
        Their mean, with the variance between samples and that of the mean of so many; intervals
        are by Student's distribution.

    Raises
    ------
    ValueError
        Fewer than two samples, or values that are not finite.

    Examples
    --------
    >>> told = of_samples([0.30, 0.32, 0.31, 0.29, 0.28])
    >>> round(told.value, 3), round(told.variance**0.5, 4)
    (0.3, 0.0173)
    """
    given = np.asarray(values, dtype=np.float64)
    if not given.ndim or len(given) < 2 or not np.isfinite(given).all():
        raise ValueError(f"expected finite values of at least 2 samples, got {shown(values)}")
    middle = np.asarray(given.mean(axis=0))
    variance = np.asarray(given.var(axis=0, ddof=1) * (1 + 1 / len(given)))

    def interval(confidence: float) -> ConfidenceInterval[Any]:
        half = scipy.special.stdtrit(len(given) - 1, (1 + confidence) / 2) * np.sqrt(variance)
        return ConfidenceInterval(middle - half, middle + half)

    return Answer(middle, variance, _interval=interval)


def difference(first: Answer, second: Answer, both: Answer | None = None) -> Answer:
    """Return by how much one answer is larger than another.

    The interval is made of theirs: from each end as far as the two errors there together (Zou and
    Donner, Statistics in Medicine 2008), for errors that are independent, as those of different
    groups in a curator's release of sums are. Shares of one population are not: with the answer
    about both together their covariance is known.

    Parameters
    ----------
    first, second : Answer
        In the same unit.
    both : Answer, optional
        About two groups together that have nobody in common, whose numbers the others are.

    Returns
    -------
    Answer
        The first less the second; without a variance where one is not known.

    Examples
    --------
    >>> told = difference(Answer(30.0, 9.0), Answer(20.0, 16.0))
    >>> told.value, told.variance, bool(told.interval().low > 0)
    (10.0, 25.0, True)
    """
    value = np.asarray(first.value) - second.value
    variance, unknown, scale = None, "", np.array(1.0)
    try:
        alone = np.asarray(first.variance) + second.variance
        # Var(a - b) = 2 Var(a) + 2 Var(b) - Var(a + b)
        variance = alone if both is None else np.maximum(2 * alone - both.variance, 0.0)
        scale = np.sqrt(variance / np.where(alone > 0, alone, 1.0))
    except UnknownVariance as reason:
        unknown = str(reason)

    def interval(confidence: float) -> ConfidenceInterval[Any]:
        a, b = first.interval(confidence), second.interval(confidence)
        below = np.hypot(first.value - a.low, b.high - second.value)
        above = np.hypot(a.high - first.value, second.value - b.low)
        return ConfidenceInterval(value - scale * below, value + scale * above)

    average = first.holds_on_average or second.holds_on_average
    return Answer(value, variance, unknown, interval, _average=average)


def ratio(first: Answer, second: Answer) -> Answer:
    """Return how many times one answer is another, whose errors are independent.

    Both are of what is not negative. The interval is made of theirs (Donner and Zou, Statistical
    Methods in Medical Research 2012); without an upper end where that of the second holds 0.

    Parameters
    ----------
    first, second : Answer
        As of `difference`.

    Returns
    -------
    Answer
        The first over the second, NaN where that is not above 0; the variance is that of a ratio
        whose denominator is far from 0.

    Examples
    --------
    >>> told = ratio(Answer(30.0, 9.0), Answer(20.0, 1.0))
    >>> told.value, round(told.interval().low, 2), round(told.interval().high, 2)
    (1.5, 1.18, 1.85)
    """
    a, b = (np.asarray(answer.value, dtype=np.float64) for answer in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(b > 0, a / b, np.nan)

    def interval(confidence: float) -> ConfidenceInterval[Any]:
        (low_a, high_a), (low_b, high_b) = (
            np.maximum(answer.interval(confidence), 0.0) for answer in (first, second)
        )
        # m for which a - m b is as far from 0 as the errors of both parts together
        with np.errstate(divide="ignore", invalid="ignore"):
            first_part, last_part = low_a * (2 * a - low_a), high_b * (2 * b - high_b)
            root = np.sqrt(np.maximum((a * b) ** 2 - first_part * last_part, 0.0))
            low = np.where(first_part > 0, first_part / (a * b + root), 0.0)
            first_part, last_part = high_a * (2 * a - high_a), low_b * (2 * b - low_b)
            root = np.sqrt(np.maximum((a * b) ** 2 - first_part * last_part, 0.0))
            high = np.where(low_b > 0, (a * b + root) / last_part, np.inf)
        return ConfidenceInterval(low, high)

    average = first.holds_on_average or second.holds_on_average
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = (np.asarray(first.variance) + value**2 * second.variance) / b**2
    except UnknownVariance as unknown:
        return Answer(value, None, str(unknown), interval, _average=average)
    return Answer(value, variance, _interval=interval, _average=average)


def share(part: Answer, whole: Answer) -> Answer:
    """Return what fraction of a group some of it are: `ratio`, from 0 to 1.

    The two errors go together, as the part is counted in the group: the interval, for which they
    are independent, is wider than it must be.

    Parameters
    ----------
    part, whole : Answer
        How many users there are, of the group and in all of it, in the same unit.

    Returns
    -------
    Answer
        As of `ratio`; its value is at most 1.

    Examples
    --------
    >>> told = share(Answer(30.0, 9.0), Answer(40.0, 16.0))
    >>> told.value, round(told.interval().low, 2), round(told.interval().high, 2)
    (0.75, 0.57, 0.99)
    """
    told = ratio(part, whole)
    return replace(cut(told, 0.0, 1.0), value=np.clip(told.value, 0.0, 1.0))


class Condition(NamedTuple):
    """The part of a question that is about one attribute.

    Attributes
    ----------
    place : int
        Of the attribute.
    first, last : numpy.ndarray of int64
        The ends of closed ranges, of the question's shape; scalars with ``items``.
    items : numpy.ndarray of int64 or None
        Distinct items, ascending, instead of a range.
    """

    place: int
    first: Integers
    last: Integers
    items: Items | None

    @property
    def size(self) -> int:
        """The number of items that one question asks for."""
        return int(self.last - self.first) + 1 if self.items is None else len(self.items)

    def runs(self) -> list[tuple[Integers, Integers]]:
        """The closed ranges of which it is the union: one, or those of a set of items."""
        if self.items is None:
            return [(self.first, self.last)]
        ends = np.flatnonzero(np.diff(self.items) != 1)
        first = np.concatenate([self.items[:1], self.items[ends + 1]])
        last = np.concatenate([self.items[ends], self.items[-1:]])
        return list(zip(first, last, strict=True))

    def total(self, between: Callable[[Integers, Integers], Any]) -> Any:
        """The sum of what is ``between`` the ends of each of these ranges."""
        return plain(sum((np.asarray(between(*run)) for run in self.runs()), np.zeros(())))

    def weights(self, items: Items) -> Floats:
        """Return 1 for the items that are asked for, else 0: shape (\\*shape, items)."""
        if self.items is not None:
            return np.isin(items, self.items).astype(np.float64)
        inside = (items >= self.first[..., None]) & (items <= self.last[..., None])
        return inside.astype(np.float64)


class Conditions(NamedTuple):
    """The conditions on each attribute that matters, in the attributes' order.

    Attributes
    ----------
    shape : tuple of int
        That of the answers: () for one question.
    asked : tuple of Condition
        One for each attribute.
    """

    shape: tuple[int, ...]
    asked: tuple[Condition, ...]

    def weights(self, sizes: Mapping[int, int]) -> Floats:
        """Return 1 for the cells that are asked for, else 0: shape (\\*shape, cells).

        ``sizes`` has the attributes of the cells by their places, the last counting fastest.
        """
        result: Floats = np.ones((*self.shape, 1))
        asked = {condition.place: condition for condition in self.asked}
        for place, size in sizes.items():
            values = np.arange(size)
            inside = asked[place].weights(values) if place in asked else np.ones(size)
            product = result[..., :, None] * inside[..., None, :]
            result = product.reshape(*self.shape, -1)
        return result


def by_place(where: Any, names: Sequence[str]) -> dict[int, Any]:
    """Return what a question asks of each attribute, by the attribute's place."""
    if not isinstance(where, Mapping):
        if len(names) > 1:
            raise InvalidQuestion(
                "a question about several attributes is a mapping, such as"
                f" {{{names[0]!r}: Between(0, 1)}}, got {shown(where)}"
            )
        where = {0: where}
    if not where:
        raise InvalidQuestion("the question is empty: it names no attribute")
    asked: dict[int, Any] = {}
    for name, given in where.items():
        place = place_of(name, names)
        if place in asked:
            raise InvalidQuestion(f"the attribute {printable(names[place])} is named twice")
        asked[place] = given
    return asked


def conditions(where: Any, names: Sequence[str], sizes: Sequence[int]) -> Conditions:
    """Return the questions of ``answer(where)``, checked."""
    questions = {
        place: _condition(place, given, names[place], sizes[place])
        for place, given in by_place(where, names).items()
    }
    try:
        shape = np.broadcast_shapes(*(condition.first.shape for condition in questions.values()))
    except ValueError:
        shapes = ", ".join(str(condition.first.shape) for condition in questions.values())
        raise InvalidQuestion(f"arrays of questions must broadcast, got shapes {shapes}") from None
    return Conditions(
        shape,
        tuple(
            condition._replace(
                first=np.broadcast_to(condition.first, shape),
                last=np.broadcast_to(condition.last, shape),
            )
            for _, condition in sorted(questions.items())
        ),
    )


def place_of(name: Any, names: Sequence[str], error: type[Exception] = InvalidQuestion) -> int:
    """Return the place of an attribute, given by its name or by its place."""
    if isinstance(name, str) and name in names:
        return list(names).index(name)
    if is_whole(name) and 0 <= name < len(names):
        return int(name)
    known = f"one of {listed(names)}, or the number of its place, 0 .. {len(names) - 1}"
    raise error(f"an attribute is {known}, got {shown(name)}")


def _condition(place: int, given: Any, name: str, size: int) -> Condition:
    nothing = np.zeros((), dtype=np.int64)
    if isinstance(given, (list, AbstractSet, range)):
        if not all(is_whole(item) and 0 <= item < size for item in given):
            raise InvalidQuestion(
                f"{printable(name)} has the values 0 .. {size - 1}, got {shown(given)}"
            )
        items = np.unique(np.array(list(given), dtype=np.int64))
        if len(items) == 1:  # which is answered like the item itself
            return Condition(place, items[0], items[0], None)
        return Condition(place, nothing, nothing, items)
    if isinstance(given, tuple):
        raise bare_tuple(given)
    if isinstance(given, str) and (ends := _RANGE.fullmatch(given)):
        given = Between(*(int(end) if end else None for end in ends.groups()))
    if isinstance(given, Between):
        first = _whole(0 if given.first is None else given.first, name)
        last = _whole(size - 1 if given.last is None else given.last, name)
    else:
        first = last = _whole(given, name)
    try:
        first, last = np.broadcast_arrays(first, last)
    except ValueError:
        raise InvalidQuestion(
            f"the ends of ranges must broadcast, got shapes {first.shape} and {last.shape}"
        ) from None
    bad = (first < 0) | (first > last) | (last >= size)
    if bad.any():
        k = int(np.argmax(bad))
        low, high = first.flat[k], last.flat[k]
        what = f"the value {low}" if low == high else f"the range {low} .. {high}"
        raise InvalidQuestion(
            f"{printable(name)} has the values 0 .. {size - 1}, got {what}",
            k if bad.ndim else None,
        )
    return Condition(place, first, last, None)


_RANGE = re.compile(r"\s*([0-9]{0,18})\s*:\s*([0-9]{0,18})\s*", re.ASCII)


def bare_tuple(given: tuple[Any, ...]) -> InvalidQuestion:
    """Return the error about a tuple, which could be a range as well as values."""
    if len(given) != 2:
        return InvalidQuestion(
            f"values are given in a list, and a range by Between, got {shown(given)}"
        )
    if any(isinstance(end, np.ndarray) for end in given):
        return InvalidQuestion("a pair of arrays may be ranges or values: ranges are Between(a, b)")
    first, last = map(shown, given)
    return InvalidQuestion(
        f"({first}, {last}) may be a range or two values: the range is Between({first}, {last}),"
        f" and the values are [{first}, {last}]"
    )


def _whole(end: Any, name: str) -> Integers:
    if not isinstance(end, (np.ndarray, list)) and not is_whole(end):
        raise InvalidQuestion(f"items of {printable(name)} are integers, got {shown(end)}")
    array = np.asarray(end)
    if array.dtype.kind not in "iu":
        raise InvalidQuestion(f"items of {printable(name)} are integers, got {array.dtype}")
    return array.astype(np.int64)


def plain(values: Any) -> Any:
    """One number of NumPy's as Python's, more as they are."""
    if isinstance(values, (np.ndarray, np.generic)) and values.ndim == 0:
        return values.item()
    return values


def of_each(confidence: float, questions: int) -> float:
    """The confidence of each of several intervals with which all hold at once, by Bonferroni."""
    normal_quantile(confidence)  # refuses what is none
    return 1 - (1 - confidence) / questions


def normal_quantile(confidence: float) -> float:
    """The z such that a normal error stays within z deviations with this probability."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    # The lower tail, which is exact where the confidence is near 1
    return -NormalDist().inv_cdf((1 - confidence) / 2)


# ------------------------------------------------------------------------------------------------
# Quantiles of a distribution function that falls here and there, by noise.


def quantile(cdf: Floats, phi: npt.ArrayLike) -> Any:
    """Return the least items with at least the fraction phi at or below them, monotone in phi.

    An estimated cdf may reach phi more than once. Then it is the middle between the first item that
    reaches it and the first after which all do; the first alone would be biased low by the noise.
    Shapes: `cdf` (items,); returns like `phi`.
    """
    if np.isnan(cdf[-1]):
        raise ValueError("no reports: there are no quantiles")
    wanted = fractions(phi)
    return plain((first_reaching(cdf, wanted) + reaching_for_good(cdf, wanted)) // 2)


def woodruff(band: ConfidenceInterval[Floats], phi: npt.ArrayLike) -> tuple[Any, Any]:
    """Return the items between which the phi-quantile lies: where the cdf's band crosses phi.

    Woodruff's interval, from the first item where the band's upper end reaches phi to the first
    from which on its lower end does. An end is beyond the quantile only if the band misses the cdf
    right there: noise elsewhere widens it but never makes it wrong.
    Shapes: `band` (items,); returns like `phi`.
    """
    wanted = fractions(phi)
    return (
        plain(first_reaching(band.high, wanted)),
        plain(reaching_for_good(band.low, wanted)),
    )


def place_along(attribute: str | int | None, names: Sequence[str]) -> int:
    """Return the place of the attribute of which quantiles are wanted."""
    if attribute is not None:
        return place_of(attribute, names)
    if len(names) > 1:
        raise InvalidQuestion(
            f"there are {len(names)} attributes: say which one, of {listed(names)}"
        )
    return 0


def first_reaching(cdf: Floats, phi: Floats) -> Integers:
    """Return the first items with at least phi at or below them: shaped like `phi`."""
    # A cdf summed up in floats may end just below 1
    places = np.searchsorted(np.maximum.accumulate(cdf), phi - 1e-12)
    # Past the end where the whole cdf is below phi: the last item then.
    return np.minimum(places, len(cdf) - 1)


def reaching_for_good(cdf: Floats, phi: Floats) -> Integers:
    """Return the first items with at least phi at or below them and all later ones."""
    # The running minimum from the right: the largest monotone function below the cdf, as the
    # running maximum is the least one above.
    return first_reaching(np.minimum.accumulate(cdf[::-1])[::-1], phi)


def fractions(phi: npt.ArrayLike) -> Floats:
    """Return numbers from 0 to 1; ValueError for others."""
    wanted = np.asarray(phi, dtype=np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"phi must lie in [0, 1], got {shown(phi)}")
    return wanted


# ------------------------------------------------------------------------------------------------
# Synthetic records of an estimated distribution: they are nobody's.


def shared_out(weights: Floats, n: int, rng: np.random.Generator) -> Items:
    """Items in random order, (n,), of which each has its share, rounded at random.

    The numbers of items in any run from the first one on are off by less than one, and not by the
    root of n as if they were drawn one by one. Shapes: `weights` (items,).
    """
    parts = np.cumsum(weights)
    parts = parts / parts[-1] * n
    parts[-1] = n
    counts = np.diff(np.floor(parts + rng.random()), prepend=0).astype(np.int64)
    return rng.permutation(np.repeat(np.arange(len(weights)), counts))


def checked_sample(
    n: int, number: int, reports: int, rng: np.random.Generator | None
) -> tuple[int, int, np.random.Generator]:
    """Return the numbers of records and samples asked for, and the generator, checked."""
    records = whole(n, "n", 1, what="a number of records")
    samples = whole(number, "number", 1, what="a number of samples")
    if not reports:
        raise ValueError("no reports: there is no distribution to sample from")
    return records, samples, np.random.default_rng() if rng is None else rng


# ------------------------------------------------------------------------------------------------
# Quantiles among the users who meet a condition, from the answers of any estimate.


class ConditionalQuantiles:
    """The bins of an ordered attribute in which quantiles of some of the users lie.

    The answer up to a bin, less the fraction phi of the answer to all bins, is (1 - phi) times the
    answer up to the bin, less phi times that of the bins beyond it: it crosses 0 at the quantile.

    ``answer`` takes a mapping of attributes' places to items, ranges or arrays of the ends of
    ranges; ``condition`` is such a mapping of the others, for the users who count.
    """

    def __init__(
        self,
        answer: Callable[[Mapping[int, Any]], Answer],
        condition: Mapping[int, Any],
        place: int,
        bins: int,
    ) -> None:
        last = np.arange(bins)
        self._up = answer({**condition, place: Between(np.zeros_like(last), last)})
        self.cumulative: Floats = np.asarray(self._up.value, dtype=np.float64)
        # Of the last bin there is nothing beyond
        beyond = Between(last[1:], np.full(bins - 1, bins - 1))
        self._rest = answer({**condition, place: beyond}) if bins > 1 else None

    def bins(self, phi: npt.ArrayLike) -> Integers:
        """Return the bins of quantiles, shaped like `phi`.

        Where the answers cross more than once, it is the middle.
        """
        self._require_users()
        return np.asarray(quantile(self.cumulative / self.cumulative[-1], phi))

    def _require_users(self) -> None:
        if not self.cumulative[-1] > 0:
            raise ValueError("by the estimate nobody meets the condition: there are no quantiles")

    def ends(self, phi: npt.ArrayLike, confidence: float) -> tuple[Integers, Integers]:
        """Return the bins between which quantiles lie, with at least about this probability.

        They are shaped like `phi`.
        """
        self._require_users()
        wanted, low, high = fractions(phi)[..., None], *np.zeros((2, self.cumulative.size))
        if self._rest is not None:
            low[:-1], high[:-1] = self._rest.interval(confidence)
        least, most = map(np.asarray, self._up.interval(confidence))
        # Where the interval of the difference holds 0. Both of its answers are taken to err
        # together, whatever their correlation
        could = (1 - wanted) * most - wanted * low >= 0
        could[..., -1] = True
        behind = (1 - wanted) * least - wanted * high < 0
        behind[..., -1] = False
        after = behind.shape[-1] - behind[..., ::-1].argmax(axis=-1)
        return np.asarray(could.argmax(axis=-1)), np.where(behind.any(axis=-1), after, 0)


# ------------------------------------------------------------------------------------------------
# Means and sums of an attribute's values among the users who meet a condition.


_MOST_EDGES = 512  # prefixes whose covariances are asked for: a range of every two


def covariances_of_prefixes(variances: Floats, cells: int) -> Floats:
    """The covariances of the sums over the first 0, 1, .. cells, from variances of all ranges.

    Cov(P, Q) = (Var P + Var Q - Var(P - Q)) / 2 of two prefixes, whose difference is a range.
    Shapes: `variances` (.., ranges), in the order of ``np.triu_indices(cells)``; returns
    (.., cells + 1, cells + 1).
    """
    first, last = np.triu_indices(cells)
    ranges = np.zeros((*variances.shape[:-1], cells + 1, cells + 1))
    ranges[..., first, last + 1] = variances
    ranges += np.swapaxes(ranges, -2, -1)
    return np.asarray((ranges[..., :1, :] + ranges[..., 0, :, None] - ranges) / 2)


class WeightedCounts:
    """Sums of users in the bins of an attribute, each times the value of its bin.

    Covariances follow from variances of ranges. Of more than 512 bins the values are those of
    groups of bins for the variance, which leaves out less than a hundredth of it.

    ``answer`` and ``condition`` are as of `ConditionalQuantiles`; ``quantile`` gives how many
    standard errors are on each side of an interval, for its confidence.
    """

    def __init__(
        self,
        answer: Callable[[Mapping[int, Any]], Answer],
        condition: Mapping[int, Any],
        place: int,
        bins: int,
        quantile: Callable[[float], float] = normal_quantile,
    ) -> None:
        self._answer, self._condition, self._place = answer, condition, place
        self._quantile = quantile
        cell = np.arange(bins)
        prefixes = np.asarray(self._up_to(np.zeros_like(cell), cell).value, dtype=np.float64)
        self.counts: Floats = np.diff(prefixes, prepend=0.0)
        self._edges = np.unique(np.linspace(0, bins, min(bins, _MOST_EDGES) + 1).astype(np.int64))

    def _up_to(self, first: Integers, last: Integers) -> Answer:
        return self._answer({**self._condition, self._place: Between(first, last)})

    @cached_property
    def _covariance(self) -> Floats:
        """The covariance of the counts between edges; UnknownVariance where it is not known."""
        groups = len(self._edges) - 1
        first, last = np.triu_indices(groups)
        told = self._up_to(self._edges[first], self._edges[last + 1] - 1).variance
        prefixes = covariances_of_prefixes(np.asarray(told), groups)
        return np.diff(np.diff(prefixes, axis=0), axis=1)

    def total(self, values: Floats) -> Answer:
        """The sum of these values of bins over the users: shape of `values` (bins,)."""
        total = float(values @ self.counts)
        try:
            grouped = self._grouped(values)
            variance = max(float(grouped @ self._covariance @ grouped), 0.0)
        except UnknownVariance as unknown:
            return Answer(total, None, str(unknown))

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            half = self._quantile(confidence) * math.sqrt(variance)
            return ConfidenceInterval(total - half, total + half)

        return Answer(total, variance, _interval=interval)

    def _grouped(self, values: Floats) -> Floats:
        """The mean value of the bins between edges."""
        return np.add.reduceat(values, self._edges[:-1]) / np.diff(self._edges)

    def mean(self, values: Floats) -> Answer:
        """The mean of these values over the users, with Fieller's interval.

        The interval is of the means m at which the sum of values less m is not told from 0; it is
        within the values, and all of these where the number of users is not told from 0.
        """
        return self._ratio(values, float(values.min()), float(values.max()))

    def variance(self, values: Floats, squares: Floats) -> Answer:
        """The variance of these values over the users; `squares` are of values less the first.

        With the estimated mean m, the mean of squares of values less m is the variance and the
        square of the error of m, which the interval for the mean bounds: so the interval's lower
        end is less than Fieller's by that square.
        """
        mean, off = self.mean(values), values - values[0]
        middle, width = mean.value - values[0], float(np.ptp(values))
        # Nothing between two ends varies more than half at each does
        told = self._ratio(squares - 2 * middle * off + middle**2, 0.0, width**2 / 4)
        try:
            variance = told.variance
        except UnknownVariance as unknown:
            return Answer(told.value, None, str(unknown))

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            low, high = told.interval(confidence)
            away = max(abs(end - mean.value) for end in mean.interval(confidence))
            return ConfidenceInterval(max(low - away**2, 0.0), high)

        return Answer(told.value, variance, _interval=interval)

    def _ratio(self, values: Floats, least: float, largest: float) -> Answer:
        """The sum of these values over the users, over their number: between two numbers."""
        users = float(self.counts.sum())
        if not users > 0:
            raise ValueError("by the estimate nobody meets the condition: there is no mean")
        middle = (least + largest) / 2
        off = values - middle
        total = float(off @ self.counts)
        try:
            covariance = self._covariance
        except UnknownVariance as unknown:
            return Answer(
                float(np.clip(middle + total / users, least, largest)), None, str(unknown)
            )
        grouped, ones = self._grouped(off), np.ones(len(covariance))
        of_sum, of_users = (float(side @ covariance @ side) for side in (grouped, ones))
        both = float(grouped @ covariance @ ones)
        # A number of users that is hardly told from 0 tells little: without the second summand the
        # ratio would be anything. Noise may also put more users into some bins than there are
        squared_users = users**2 + max(of_users, 0.0)
        mean = float(np.clip(total * users / squared_users, least - middle, largest - middle))

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            # (S - m N)^2 <= z^2 Var(S - m N), a quadratic inequality in m
            z2 = self._quantile(confidence) ** 2
            square = users**2 - z2 * of_users
            if square <= 0:
                return ConfidenceInterval(least, largest)
            half = total * users - z2 * both
            rest = total**2 - z2 * of_sum
            root = math.sqrt(max(half**2 - square * rest, 0.0))
            ends = middle + (half + root * np.array([-1, 1])) / square
            low, high = np.clip(ends, least, largest).tolist()
            return ConfidenceInterval(low, high)

        squared = of_sum - 2 * mean * both + mean**2 * of_users
        return Answer(middle + mean, max(squared, 0.0) / squared_users, _interval=interval)
