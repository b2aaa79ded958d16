"""The values of a mechanism's inputs and outputs: counts, bands of counts, pairs of counts.

A table numbers its inputs and outputs from 0. Inputs are the counts 0 .. n unless said otherwise,
or pairs of counts; outputs are those, or wider (so that unbiased mechanisms exist), or coarser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechdesign.base import Integers, checked_counts, set_fields, shown, whole
from mechdesign.exceptions import InvalidMechanism, NotSquare

LARGEST = 1 << 62  #: The largest count, of either sign, that inputs and outputs stand for.


class Values(ABC):
    """The values that numbers 0 .. size-1 of inputs or of outputs stand for."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of values."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """A short text for each."""

    def label(self, number: int) -> str:
        """The short text of one."""
        return self.labels[number]

    @abstractmethod
    def at(self, numbers: Integers) -> Integers:
        """Return what is released for outputs of these numbers.

        Shapes: `numbers` any, in 0 .. size-1; the result has their shape, and that of pairs a last
        axis of length two as well.
        """

    @property
    def coordinates(self) -> Integers:
        """The values as numbers that may be added up: shape (size, 1), or (size, 2) of pairs.

        Raises
        ------
        NotSquare
            They are bands, which are no numbers.
        """
        raise NotSquare("bands of counts have no values to add up")


@dataclass(frozen=True)
class Counts(Values):
    """The whole numbers ``low`` .. ``high``, both included.

    Parameters
    ----------
    low, high : int
        At most 2^62 in size; ``low`` is at most ``high``.

    Raises
    ------
    ValueError
        They are not such numbers.

    Examples
    --------
    >>> Counts(-1, 2).labels
    ('-1', '0', '1', '2')
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        low = whole(self.low, "low", -LARGEST, LARGEST)
        set_fields(self, low=low, high=whole(self.high, "high", low, LARGEST))

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.low, self.high + 1)))

    def label(self, number: int) -> str:
        return str(self.low + number)

    def at(self, numbers: Integers) -> Integers:
        return np.asarray(numbers + self.low)

    @property
    def coordinates(self) -> Integers:
        return np.arange(self.low, self.high + 1)[:, None]


@dataclass(frozen=True)
class Unbounded(Values):
    """All integers: what is released by noise that is not clamped."""

    @property
    def size(self) -> int:
        raise NotSquare("any integer may be released: there is no table of infinitely many")

    @property
    def labels(self) -> tuple[str, ...]:
        raise NotSquare("any integer may be released: there is no list of infinitely many")

    def label(self, number: int) -> str:
        return str(number)

    def at(self, numbers: Integers) -> Integers:
        return numbers


@dataclass(frozen=True)
class Bands(Values):
    """Bands of consecutive counts, such as 0-4, 5-9, 10-20; an output tells only the band.

    Parameters
    ----------
    bands : iterable of (int, int)
        The least and the largest count of each band, both included. A band begins where the one
        before it ends.

    Raises
    ------
    ValueError
        No bands, an empty one, or bands that overlap or leave a gap; the message names it.

    Examples
    --------
    >>> Bands([(0, 4), (5, 9)]).labels
    ('0-4', '5-9')
    """

    bands: tuple[tuple[int, int], ...]

    def __init__(self, bands: Iterable[tuple[int, int]]) -> None:
        ends: list[tuple[int, int]] = []
        for low, high in bands:
            least = whole(low, "the least count of a band", -LARGEST, LARGEST)
            ends.append((least, whole(high, "the largest count of a band", least, LARGEST)))
            if len(ends) > 1 and least != ends[-2][1] + 1:
                raise ValueError(
                    f"the band after {ends[-2][0]}-{ends[-2][1]} begins at"
                    f" {ends[-2][1] + 1}, not at {least}"
                )
        if not ends:
            raise ValueError("bands of counts need at least one band")
        set_fields(self, bands=tuple(ends))

    @property
    def size(self) -> int:
        return len(self.bands)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(low) if low == high else f"{low}-{high}" for low, high in self.bands)

    def at(self, numbers: Integers) -> Integers:
        return numbers


@dataclass(frozen=True)
class CountPairs(Values):
    """Pairs (a, b) of counts, a in 0 .. ``first`` and b in 0 .. ``second``, b varying fastest.

    Parameters
    ----------
    first, second : int
        The largest counts, at least 0.

    Raises
    ------
    ValueError
        They are not such numbers.

    Examples
    --------
    >>> CountPairs(1, 2).labels
    ('0,0', '0,1', '0,2', '1,0', '1,1', '1,2')
    """

    first: int
    second: int

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            largest = whole(getattr(self, name), f"the largest {name} count", 0, 1 << 15)
            set_fields(self, **{name: largest})

    @property
    def size(self) -> int:
        return (self.first + 1) * (self.second + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{a},{b}" for a, b in self.coordinates.tolist())

    def at(self, numbers: Integers) -> Integers:
        return np.stack(np.divmod(numbers, self.second + 1), axis=-1)

    @property
    def coordinates(self) -> Integers:
        return self.at(np.arange(self.size))

    def neighbours(self, distance: int = 1) -> tuple[tuple[int, int], ...]:
        """The numbers of every two pairs that differ by at most ``distance`` in all.

        With 1, one of the two counts differs by one. Who is in both counts, or moves from one to
        the other, changes them by two in all: twice the privacy loss, by a chain of two.
        """
        apart = distances(self, self)
        first, second = np.nonzero(np.triu((apart > 0) & (apart <= distance)))
        return tuple(zip(first.tolist(), second.tolist(), strict=True))


def values_of(values: Values | int) -> Values:
    """The values themselves; for a number of counts those from 0."""
    if isinstance(values, Values):
        return values
    return Counts(0, whole(values, "how many counts there are", 1) - 1)


def numbers_of(values: Values, given: npt.ArrayLike) -> Integers:
    """The numbers of true counts among the inputs ``values``."""
    if not isinstance(values, CountPairs):
        return checked_counts(given, values.size - 1)
    pairs = given if isinstance(given, np.ndarray) else np.asarray(given)
    if pairs.dtype.kind not in "biuf":
        pairs = np.array(given, dtype=object)  # so that no entry was turned into text
    if pairs.ndim == 0 or pairs.shape[-1] != 2:
        raise ValueError(f"pairs of counts have a last axis of length two, got {pairs.shape}")
    first = checked_counts(pairs[..., 0], values.first)
    return first * (values.second + 1) + checked_counts(pairs[..., 1], values.second)


def distances(outputs: Values, inputs: Values) -> Integers:
    """Return how far every output is from every input: shape (outputs, inputs), at least 0.

    Of two counts their difference; of a count from a band 0 inside; of pairs the sum of both.
    """
    if isinstance(outputs, CountPairs) and isinstance(inputs, CountPairs):
        apart = outputs.coordinates[:, None] - inputs.coordinates[None]
        return np.asarray(np.abs(apart).sum(axis=2))
    return np.abs(errors(outputs, inputs))


def errors(outputs: Values, inputs: Values) -> Integers:
    """Every output minus every input: shape (outputs, inputs); of a band its nearest count."""
    if isinstance(inputs, Counts):
        counts = inputs.coordinates[:, 0]
        if isinstance(outputs, Counts):
            return outputs.coordinates - counts
        if isinstance(outputs, Bands):
            ends = np.array(outputs.bands)
            return np.asarray(np.clip(counts, ends[:, :1], ends[:, 1:]) - counts)
    raise InvalidMechanism(
        f"outputs that are {_kind(outputs)} have no difference from inputs that are {_kind(inputs)}"
    )


def _kind(values: Values) -> str:
    kinds = {
        Counts: "counts",
        Bands: "bands",
        CountPairs: "pairs of counts",
        Unbounded: "all integers",
    }
    return kinds.get(type(values), shown(values))
