"""Histograms, integers, and numbers that may be floats, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core import conditions, plain
from frequency.schema import Encoded, Schema
from frequency.schema.attribute import ItemAttribute
from mechdesign.base import (
    FRACTION_TEXT,
    Floats,
    Integers,
    exact_sum,
    fraction,
    from_text,
    is_whole,
    printable,
    shown,
    whole,
)
from rangeq.core import InvalidRange as InvalidRange
from rangeq.core import checked_ends

LARGEST_DOMAIN = 1 << 26  #: Cells that a histogram may have.

LARGEST_DIMENSION = 8  #: Attributes that a histogram may have.

#: Users that a histogram may hold: up to there, noisy sums of counts are exact in 64-bit integers
#: and in floats.
LARGEST_TOTAL = 1 << 52

_LONGEST_NUMBER = 1 << 12


class InvalidHistogram(ValueError):
    """Counts that are not a histogram over the domain. Nothing was drawn.

    Attributes
    ----------
    index : int or tuple of int or None
        The first bad cell, by its places along several attributes; None if it is not a single one.
    """

    def __init__(self, message: str, index: int | tuple[int, ...] | None = None) -> None:
        self.index = index
        super().__init__(f"{message}; nothing was drawn")


def stored_number(text: Any) -> Fraction:
    """A number that a file holds, as `mechdesign.base.text.to_text` wrote it."""
    if isinstance(text, str) and len(text) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} characters, more than {_LONGEST_NUMBER}")
    return from_text(text)


STORED_NUMBER = replace(FRACTION_TEXT, read=stored_number)  #: Such a number, as a field.


def checked_quantiles(q: Any) -> tuple[Fraction, ...]:
    """Quantiles that are asked for, exactly."""
    asked = tuple(fraction(number, "q") for number in (q if isinstance(q, (tuple, list)) else (q,)))
    if not asked or min(asked) < 0 or max(asked) > 1:
        raise ValueError(f"q must be numbers from 0 to 1, one at least, got {shown(q)}")
    return asked


def checked_shape(shape: object) -> tuple[int, ...]:
    """The number of cells along each attribute."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not 1 <= len(given) <= LARGEST_DIMENSION:
        raise ValueError(
            f"shape must be an integer, or one for each of at most {LARGEST_DIMENSION} attributes,"
            f" got {shown(shape)}"
        )
    sizes = tuple(
        whole(size, "shape", 1, LARGEST_DOMAIN, what="a number of cells") for size in given
    )
    if math.prod(sizes) > LARGEST_DOMAIN:
        raise ValueError(f"shape {shown(sizes)} has {math.prod(sizes)} cells, more than 2^26")
    return sizes


def histogram(counts: npt.ArrayLike, shape: tuple[int, ...]) -> Integers:
    """Counts as int64, checked."""
    if isinstance(counts, np.ma.MaskedArray):
        raise InvalidHistogram("a masked array has counts that are missing")
    try:
        values = np.asarray(counts)
    except ValueError:
        raise InvalidHistogram(
            f"counts must be integers of shape {shape}, got rows of different lengths"
        ) from None
    if values.shape != shape:
        raise InvalidHistogram(f"counts must have shape {shape}, got {values.shape}")
    if values.dtype.kind not in "iuO":
        raise InvalidHistogram(f"counts must be of an integer type, got {values.dtype}")
    if values.dtype.kind == "O":
        bad = np.array([not is_whole(v) or not 0 <= v <= LARGEST_TOTAL for v in values.flat])
    else:
        bad = ((values < 0) | (values > LARGEST_TOTAL)).ravel()
    if bad.any():
        k = int(np.argmax(bad))
        places = tuple(int(place) for place in np.unravel_index(k, shape))
        (entry,) = values.ravel()[k : k + 1].tolist()
        raise InvalidHistogram(
            f"counts[{', '.join(map(str, places))}] = {shown(entry)} is not an integer"
            " from 0 to 2^52",
            places if len(shape) > 1 else k,
        )
    exactly = values.astype(np.int64)
    if (total := exact_sum(exactly)) > LARGEST_TOTAL:
        raise InvalidHistogram(f"the counts sum to {total}, more than 2^52")
    return exactly


# ------------------------------------------------------------------------------------------------
# How many rows of a table are in each cell of a schema, a block of rows at a time.


def cells_along(schema: Schema) -> tuple[int, ...]:
    """The shape of the histogram of a schema's attributes."""
    for attribute in schema:
        if not isinstance(attribute, ItemAttribute):
            raise ValueError(
                f"{printable(attribute.name)} is {attribute.values}: a histogram is of attributes"
                " whose items can be listed"
            )
    return checked_shape(schema.sizes)


def count_cells(schema: Schema, tables: Iterable[Any]) -> Integers:
    """The histogram that a curator releases: exact, and private.

    A row is a user. Rows that a policy skips are in no cell.

    Parameters
    ----------
    schema : Schema
        Of the attributes to count by, whose items are the cells: of up to 8, and 2^26 in all.
    tables : iterable of DataFrame, mapping or Encoded
        Parts of the table, as `Schema.encode` takes or gives them. Only one is held at a time.

    Returns
    -------
    numpy.ndarray of int64
        Shape ``schema.sizes``.

    Raises
    ------
    ValueError
        As for `cells_along`.
    InvalidCell
        The first value that no policy takes.

    Examples
    --------
    >>> from frequency.schema import Boolean, Numeric
    >>> schema = Schema([Numeric("age", low=0, high=2, whole=True), Boolean("smokes")])
    >>> day, night = {"age": [0, 2], "smokes": ["no", "yes"]}, {"age": [2], "smokes": ["yes"]}
    >>> count_cells(schema, [day, night]).tolist()
    [[1, 0], [0, 0], [0, 2]]
    """
    sizes = cells_along(schema)
    counts = np.zeros(math.prod(sizes), dtype=np.int64)
    for table in tables:
        encoded = table if isinstance(table, Encoded) else schema.encode(table)
        cells = np.ravel_multi_index(encoded.columns, sizes)
        np.add.at(counts, cells, 1)
    return counts.reshape(sizes)


# ------------------------------------------------------------------------------------------------
# What is asked of a curator's estimate, along every attribute.


class Query(NamedTuple):
    """Boxes of cells, or products of sets of places."""

    shape: tuple[int, ...]  # of the answers: () for one question
    first: Integers  # shape (attributes, questions): closed ends of boxes
    last: Integers
    # For each question and attribute 1 for the places in the set, else 0; None where the boxes say
    # it all
    weights: list[list[Floats]] | None = None

    @classmethod
    def of(cls, where: Any, sizes: Sequence[int]) -> Query:
        """Read the question of `CentralEstimate.answer`."""
        shape, asked = conditions(where, cls.names(sizes), sizes)
        ends = np.zeros((2, len(sizes), int(np.prod(shape))), dtype=np.int64)
        ends[1] = np.array(sizes)[:, None] - 1
        sets = {}
        for condition in asked:
            runs = condition.runs()
            if len(runs) == 1:
                ends[:, condition.place] = [np.broadcast_to(end, shape).ravel() for end in runs[0]]
            else:
                sets[condition.place] = condition.weights(np.arange(sizes[condition.place]))
        if not sets:
            return cls(shape, ends[0], ends[1])
        weights = []
        for first, last in zip(*(end.T for end in ends), strict=True):
            places = [np.arange(size) for size in sizes]
            weights.append(
                [
                    sets[i] if i in sets else ((place >= first[i]) & (place <= last[i])) * 1.0
                    for i, place in enumerate(places)
                ]
            )
        return cls(shape, ends[0], ends[1], weights)

    @staticmethod
    def names(sizes: Sequence[int]) -> list[str]:
        """Return the names of the attributes."""
        return ["cell"] if len(sizes) == 1 else [f"attribute {i}" for i in range(len(sizes))]

    @classmethod
    def range(cls, first: npt.ArrayLike, last: npt.ArrayLike, sizes: Sequence[int]) -> Query:
        """Ranges of the only attribute."""
        if len(sizes) > 1:
            raise InvalidRange(
                f"a range is of one attribute, and there are {len(sizes)}: ask by answer"
            )
        a, b = checked_ends(first, last, sizes[0])
        return cls(a.shape, a.reshape(1, -1), b.reshape(1, -1))

    def by(
        self,
        boxes: Callable[[Integers, Integers], Any],
        sets: Callable[[Sequence[Floats]], Any] | None = None,
    ) -> Any:
        """Return what functions of boxes and of sets say of each question."""
        if self.weights is None or sets is None:
            answers = np.asarray(boxes(self.first, self.last))
        else:
            answers = np.array([sets(weights) for weights in self.weights], dtype=np.float64)
        return plain(answers.reshape(self.shape))
