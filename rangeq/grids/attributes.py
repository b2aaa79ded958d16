"""Attributes: names and domain sizes, and records as rows of a table; however many different records there may be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frequency.channel import Items
from frequency.exceptions import InvalidValue
from mechdesign.sampling import checked_counts
from mechdesign.text import shown
from rangeq.ends import InvalidRange

_LARGEST = 1 << 32


@dataclass(frozen=True)
class Attributes:
    """Ordinal attributes in their order; attribute t has the values 0 .. sizes[t] - 1. Made by `Attributes.of`."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Any) -> Attributes:
        """From a sequence of sizes (names are then "0", "1", ...), a mapping of names to sizes, or a `frequency.marginals.Domain`.

        Raises ValueError for no attributes, names that are not strings, and sizes outside 1 .. 2^32.
        """
        if isinstance(sizes, Attributes):
            return sizes
        pairs: list[tuple[Any, Any]]
        if isinstance(sizes, Mapping):
            pairs = list(sizes.items())
        elif hasattr(sizes, "attributes") and hasattr(sizes, "shape"):
            pairs = list(zip(sizes.attributes, sizes.shape, strict=True))
        elif isinstance(sizes, (Sequence, np.ndarray)) and not isinstance(sizes, (str, bytes)):
            pairs = [(str(place), size) for place, size in enumerate(sizes)]
        else:
            pairs = []
        if not pairs:
            raise ValueError(f"sizes must be a list of domain sizes, or a mapping of names to them, got {shown(sizes)}")
        for name, size in pairs:
            whole = isinstance(size, (int, np.integer)) and not isinstance(size, (bool, np.bool_))
            if not isinstance(name, str) or not whole or not 1 <= size <= _LARGEST:
                raise ValueError(f"an attribute is a name and a size of 1 to {_LARGEST}, got {shown(name)}: {shown(size)}")
        return cls(tuple(name for name, _ in pairs), tuple(int(size) for _, size in pairs))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def records(self) -> int:
        """The number of different records."""
        return math.prod(self.sizes)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All (j, k) with j < k."""
        return tuple((j, k) for j in range(len(self)) for k in range(j + 1, len(self)))

    def place(self, attribute: Any) -> int:
        """Where an attribute stands, given by its name or by its place. InvalidRange for one that is not here."""
        if isinstance(attribute, str) and attribute in self.names:
            return self.names.index(attribute)
        whole = isinstance(attribute, (int, np.integer)) and not isinstance(attribute, (bool, np.bool_))
        if whole and 0 <= attribute < len(self):
            return int(attribute)
        known = f"one of {', '.join(self.names)}, or a place 0 .. {len(self) - 1}"
        raise InvalidRange(f"an attribute is {known}, got {shown(attribute)}")

    def table(self, records: Any) -> Items:
        """Records as integers of shape (n, attributes).

        Parameters
        ----------
        records
            An array of that shape, columns in the attributes' order; or a DataFrame, or a mapping, with a column for each name
            (others are left out).

        Raises
        ------
        InvalidValue
            The first value that is no integer, or else the first that its attribute does not have.
        """
        if isinstance(records, Mapping) or hasattr(records, "columns"):
            columns = list(getattr(records, "columns", records))
            for name in self.names:
                if columns.count(name) != 1:
                    many = "more than one column" if name in columns else "no column"
                    raise ValueError(f"the table has {many} {name!r}; its columns are {shown(columns)}")
            records = np.stack([np.asarray(records[name]) for name in self.names], axis=1)
        table = np.asarray(records)
        if table.ndim != 2 or table.shape[1] != len(self):
            raise ValueError(f"records must have shape (n, {len(self)}), one column an attribute, got {table.shape}")
        if isinstance(records, np.ma.MaskedArray) or table.dtype.kind not in "iu":
            table = checked_counts(records, _LARGEST, self._refusal)
        # Extremes first: they take one pass each, and no array as large as the table.
        if len(table) and ((table.min(axis=0) < 0).any() or (table.max(axis=0) >= np.array(self.sizes)).any()):
            bad = (table < 0) | (table >= np.array(self.sizes))
            row, column = divmod(int(np.argmax(bad)), len(self))
            raise self._refusal((row, column), int(table[row, column]))
        return table.astype(np.int64, copy=False)

    def _refusal(self, position: int | tuple[int, ...], value: object, _: int = 0) -> InvalidValue:
        column = position[-1] if isinstance(position, tuple) else 0
        return InvalidValue(position, value, self.sizes[min(column, len(self) - 1)] - 1)
