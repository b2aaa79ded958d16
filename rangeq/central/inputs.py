"""Histograms, integers, and numbers that may be floats, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
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
    set_fields,
    shown,
    whole,
)
from rangeq.core import InvalidRange as InvalidRange
from rangeq.core import checked_ends

LARGEST_DOMAIN = 1 << 26  #: Cells that a histogram may have.

LARGEST_DIMENSION = 8  #: Attributes that a histogram may have.

LARGEST_MARGINALS = 100  #: Attributes whose marginals may be counted without a histogram.

#: Users that a histogram may hold: up to there, noisy sums of counts are exact in 64-bit integers
#: and in floats.
LARGEST_TOTAL = 1 << 52

LARGEST_PARTS = 1 << 60  #: The largest sum of a table of parts of users.

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


def checked_shape(shape: object, most: int = LARGEST_DIMENSION) -> tuple[int, ...]:
    """The number of cells along each attribute; of more than 8 not all cells need be listed."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not 1 <= len(given) <= most:
        raise ValueError(
            f"shape must be an integer, or one for each of at most {most} attributes,"
            f" got {shown(shape)}"
        )
    sizes = tuple(
        whole(size, "shape", 1, LARGEST_DOMAIN, what="a number of cells") for size in given
    )
    if most == LARGEST_DIMENSION and math.prod(sizes) > LARGEST_DOMAIN:
        raise ValueError(f"shape {shown(sizes)} has {math.prod(sizes)} cells, more than 2^26")
    return sizes


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """The exact tables of some sets of attributes, where the table of all is too large.

    They are private. `count_marginals` makes them.

    Parameters
    ----------
    sizes : sequence of int
        The number of cells along each attribute, of 100 at most.
    tables : mapping of tuple of int to array_like
        By places of attributes, ascending, the users in each combination of theirs: integers of
        shape ``[sizes[i] for i in view]``, at least 0. All have the same sum.
    parts : mapping of tuple of int to int, optional
        Of tables in which users are shared among cells, as of `GroupedSums`: how many parts a user
        is divided into in each, and tables are in such parts.

    Raises
    ------
    InvalidHistogram
        They are no such tables.
    """

    sizes: tuple[int, ...]
    tables: Mapping[tuple[int, ...], Integers]
    parts: Mapping[tuple[int, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = checked_shape(tuple(self.sizes), LARGEST_MARGINALS)
        tables, users = {}, set()
        for view, counts in self.tables.items():
            if list(view) != sorted(set(view) & set(range(len(sizes)))):
                raise InvalidHistogram(f"{shown(view)} are no places of attributes, ascending")
            table = histogram(
                counts,
                tuple(sizes[i] for i in view),
                LARGEST_PARTS if self.parts else LARGEST_TOTAL,
            )
            tables[tuple(view)] = table
            users.add(Fraction(int(table.sum()), self.parts.get(view, 1)))
        if len(users) != 1 or users.pop().denominator != 1:
            raise InvalidHistogram("there are tables of different numbers of users, or none")
        if self.parts and (self.parts.keys() != tables.keys() or min(self.parts.values()) < 1):
            raise InvalidHistogram("a user is divided into parts in every table, or in none")
        set_fields(self, sizes=sizes, tables=tables)

    def __add__(self, other: MarginalCounts) -> MarginalCounts:
        if not isinstance(other, MarginalCounts):
            return NotImplemented
        if (self.sizes, self.parts, self.tables.keys()) != (
            other.sizes,
            other.parts,
            other.tables.keys(),
        ):
            raise InvalidHistogram("these are tables of other attributes")
        tables = {view: table + other.tables[view] for view, table in self.tables.items()}
        return MarginalCounts(self.sizes, tables, self.parts)

    @property
    def users(self) -> int:
        """The number of users."""
        view, table = next(iter(self.tables.items()))
        return int(table.sum()) // self.parts.get(view, 1)

    def marginal(self, view: tuple[int, ...]) -> Integers:
        """Return the table of some attributes.

        Parameters
        ----------
        view : tuple of int
            Their places, ascending.

        Returns
        -------
        numpy.ndarray of int64
            Shape ``[sizes[i] for i in view]``.

        Raises
        ------
        InvalidHistogram
            No table was counted that has them all.
        """
        within = [each for each in self.tables if set(view) <= set(each)]
        if not within:
            raise InvalidHistogram(f"no table of the attributes {shown(view)} was counted")
        least = view if view in self.tables else min(within, key=lambda w: self.tables[w].size)
        others = tuple(axis for axis, place in enumerate(least) if place not in view)
        return np.asarray(self.tables[least].sum(axis=others))


def histogram(counts: npt.ArrayLike, shape: tuple[int, ...], most: int = LARGEST_TOTAL) -> Integers:
    """Counts as int64, checked, of a sum of at most a power of two."""
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
        bad = np.array([not is_whole(v) or not 0 <= v <= most for v in values.flat])
    else:
        bad = ((values < 0) | (values > most)).ravel()
    if bad.any():
        k = int(np.argmax(bad))
        places = tuple(int(place) for place in np.unravel_index(k, shape))
        (entry,) = values.ravel()[k : k + 1].tolist()
        raise InvalidHistogram(
            f"counts[{', '.join(map(str, places))}] = {shown(entry)} is not an integer"
            f" from 0 to 2^{most.bit_length() - 1}",
            places if len(shape) > 1 else k,
        )
    exactly = values.astype(np.int64)
    if (total := exact_sum(exactly)) > most:
        raise InvalidHistogram(f"the counts sum to {total}, more than 2^{most.bit_length() - 1}")
    return exactly


# ------------------------------------------------------------------------------------------------
# How many rows of a table are in each cell of a schema, a block of rows at a time.


def cells_along(schema: Schema, most: int = LARGEST_DIMENSION) -> tuple[int, ...]:
    """The shape of the histogram of a schema's attributes: see `checked_shape`."""
    for attribute in schema:
        if not isinstance(attribute, ItemAttribute):
            raise ValueError(
                f"{printable(attribute.name)} is {attribute.values}: a histogram is of attributes"
                " whose items can be listed"
            )
    return checked_shape(schema.sizes, most)


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


def flat_cells(columns: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """The numbers of cells of rows of items, of which the last attribute is the fastest."""
    # Of items that are checked: `ravel_multi_index`, which checks each, takes twice as long
    cells = columns[0]
    for items, size in zip(columns[1:], sizes[1:], strict=True):
        cells = cells * size + items
    return cells


def count_marginals(schema: Schema, tables: Iterable[Any], ways: int = 2) -> MarginalCounts:
    """The tables of all sets of so many attributes: exact, and private.

    As `count_cells`, of up to 100 attributes.

    Parameters
    ----------
    schema, tables : as of `count_cells`
        The attributes, and parts of the table.
    ways : int, default 2
        How many attributes each table has, from 1 to all: 2^26 cells in all tables at most.

    Returns
    -------
    MarginalCounts
        Which a `MatrixMechanism` of marginals releases.

    Raises
    ------
    ValueError, InvalidCell
        As for `count_cells`.
    """
    sizes = cells_along(schema, LARGEST_MARGINALS)
    views = list(combinations(range(len(sizes)), whole(ways, "ways", 1, len(sizes))))
    shapes = [tuple(sizes[i] for i in view) for view in views]
    if sum(map(math.prod, shapes)) > LARGEST_DOMAIN:
        raise ValueError(f"the tables of {ways} attributes have more than 2^26 cells")
    counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
    for table in tables:
        encoded = table if isinstance(table, Encoded) else schema.encode(table)
        columns = [np.asarray(column, dtype=np.int64) for column in encoded.columns]
        for view, total in zip(views, counts, strict=True):
            cells = flat_cells([columns[i] for i in view], [sizes[i] for i in view])
            total += np.bincount(cells, minlength=len(total))
    tables_of = zip(views, shapes, counts, strict=True)
    return MarginalCounts(sizes, {view: total.reshape(shape) for view, shape, total in tables_of})


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
