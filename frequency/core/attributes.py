"""Attributes: names and domain sizes, and records as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.answer import place_of
from frequency.exceptions import InvalidValue
from mechdesign._support.arrays import Items
from mechdesign._support.numbers import is_whole
from mechdesign._support.text import shown
from mechdesign.sampling import checked_counts

LARGEST_RECORDS = 1 << 62
"""How many different records there may be where they are numbered."""

MOST_ATTRIBUTES = 1 << 8
"""How many attributes there may be, those of one value included."""

LARGEST_SIZE = 1 << 32
"""How many values an ordinal attribute may have."""


@dataclass(frozen=True)
class Attributes:
    """Ordinal attributes in their order, made by `Attributes.of`.

    However many different records there may be.

    Attributes
    ----------
    names : tuple of str
        The names, in order.
    sizes : tuple of int
        Attribute names[t] has the values 0 .. sizes[t] - 1.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(sizes: Any, largest: int = LARGEST_SIZE) -> Attributes:
        """Attributes from their sizes.

        Parameters
        ----------
        sizes : sequence of int, mapping or Domain
            A sequence of sizes (names are then "0", "1", ...), a mapping of names to sizes, or a
            `frequency.marginals.Domain`.
        largest : int
            The largest size of an attribute.

        Returns
        -------
        Attributes
            The attributes, in the order given.

        Raises
        ------
        ValueError
            For no attributes, names that are not strings, and sizes outside 1 .. largest.
        """
        if isinstance(sizes, Attributes):
            return Attributes(sizes.names, sizes.sizes)
        pairs: list[tuple[Any, Any]]
        if isinstance(sizes, Mapping):
            pairs = list(sizes.items())
        elif isinstance(sizes, (Sequence, np.ndarray)) and not isinstance(sizes, (str, bytes)):
            pairs = [(str(place), size) for place, size in enumerate(sizes)]
        else:
            pairs = []
        if not pairs:
            raise ValueError(
                "sizes must be a list of domain sizes, or a mapping of names to them, got"
                f" {shown(sizes)}"
            )
        if len(pairs) > MOST_ATTRIBUTES:
            raise ValueError(f"there are {len(pairs)} attributes, more than {MOST_ATTRIBUTES}")
        for name, size in pairs:
            if not isinstance(name, str) or not is_whole(size) or not 1 <= size <= largest:
                raise ValueError(
                    f"an attribute is a name and a size of 1 to {largest}, got {shown(name)}:"
                    f" {shown(size)}"
                )
        return Attributes(tuple(name for name, _ in pairs), tuple(int(size) for _, size in pairs))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def size(self) -> int:
        """The number of different records."""
        return math.prod(self.sizes)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All (j, k) with j < k."""
        return tuple((j, k) for j in range(len(self)) for k in range(j + 1, len(self)))

    def every(self, names: Sequence[str]) -> dict[str, Items]:
        """The questions that ask for each combination of values, as `answer` takes them.

        Parameters
        ----------
        names : sequence of str
            Of distinct attributes.

        Returns
        -------
        dict of str to numpy.ndarray
            For each attribute its values, along an axis of its own.

        Raises
        ------
        InvalidQuestion
            Names that are not here.
        """
        places = [place_of(name, self.names) for name in names]
        axes = np.ix_(*(np.arange(self.sizes[place]) for place in places))
        return {self.names[place]: axis for place, axis in zip(places, axes, strict=True)}

    def records(self, records: Any) -> Items:
        """Records as an integer array of shape (n, attributes).

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            An integer array of that shape, columns in the attributes' order; or a pandas DataFrame,
            or a mapping, with a column for each attribute (others are left out).

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, attributes).

        Raises
        ------
        ValueError
            A column that is missing or there twice, or another shape.
        InvalidValue
            The first value that is no integer, or else the first that its attribute does not have.
        """
        return np.array(self._checked_records(records), dtype=np.int64)

    def _checked_records(self, records: Any) -> npt.NDArray[Any]:
        """The records as an array of integers of any width."""

        def refusal(position: int | tuple[int, ...], value: object, _: int = 0) -> InvalidValue:
            column = position[-1] if isinstance(position, tuple) else 0
            return InvalidValue(position, value, self.sizes[min(column, len(self.sizes) - 1)] - 1)

        if isinstance(records, Mapping) or hasattr(records, "columns"):
            columns = list(getattr(records, "columns", records))
            for name in self.names:
                if columns.count(name) != 1:
                    many = "more than one column" if name in columns else "no column"
                    raise ValueError(
                        f"the table has {many} {name!r}; its columns are {shown(columns)}"
                    )
            records = np.stack([np.asarray(records[name]) for name in self.names], axis=1)
        table = np.asarray(records)
        if table.ndim != 2 or table.shape[1] != len(self.names):
            raise ValueError(
                f"records must have shape (n, {len(self)}), one column an attribute, got"
                f" {table.shape}"
            )
        if isinstance(records, np.ma.MaskedArray) or table.dtype.kind not in "iu":
            table = checked_counts(records, LARGEST_RECORDS, refusal)
        # Extremes first: they take one pass each, and no array as large as the table.
        if len(table) and (
            (table.min(axis=0) < 0).any() or (table.max(axis=0) >= np.array(self.sizes)).any()
        ):
            row, column = divmod(
                int(np.argmax((table < 0) | (table >= np.array(self.sizes)))), len(self.names)
            )
            raise refusal((row, column), int(table[row, column]))
        return table
