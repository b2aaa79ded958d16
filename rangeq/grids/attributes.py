"""Attributes: names and domain sizes, and records as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frequency.marginals.domain import MOST_ATTRIBUTES, checked_records
from mechdesign._support.arrays import Items
from mechdesign._support.numbers import is_whole
from mechdesign._support.text import listed, shown
from rangeq.core.intervals import InvalidRange

_LARGEST = 1 << 32


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

    @classmethod
    def of(cls, sizes: Any) -> Attributes:
        """Attributes from their sizes.

        Parameters
        ----------
        sizes : sequence of int, mapping or Domain
            A sequence of sizes (names are then "0", "1", ...), a mapping of names to sizes, or a
            `frequency.marginals.Domain`.

        Returns
        -------
        Attributes
            The attributes, in the order given.

        Raises
        ------
        ValueError
            For no attributes, names that are not strings, and sizes outside 1 .. 2^32.
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
            raise ValueError(
                "sizes must be a list of domain sizes, or a mapping of names to them, got"
                f" {shown(sizes)}"
            )
        if len(pairs) > MOST_ATTRIBUTES:
            raise ValueError(f"there are {len(pairs)} attributes, more than {MOST_ATTRIBUTES}")
        for name, size in pairs:
            if not isinstance(name, str) or not is_whole(size) or not 1 <= size <= _LARGEST:
                raise ValueError(
                    f"an attribute is a name and a size of 1 to {_LARGEST}, got {shown(name)}:"
                    f" {shown(size)}"
                )
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
        """Where an attribute stands, given by its name or by its place.

        Parameters
        ----------
        attribute : str or int
            The name, or the place 0 .. attributes - 1.

        Returns
        -------
        int
            The place.

        Raises
        ------
        InvalidRange
            An attribute that is not here.
        """
        if isinstance(attribute, str) and attribute in self.names:
            return self.names.index(attribute)
        if is_whole(attribute) and 0 <= attribute < len(self):
            return int(attribute)
        known = f"one of {listed(self.names)}, or a place 0 .. {len(self) - 1}"
        raise InvalidRange(f"an attribute is {known}, got {shown(attribute)}")

    def table(self, records: Any) -> Items:
        """Records as integers of shape (n, attributes).

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            An array of that shape, columns in the attributes' order; or a DataFrame, or a mapping,
            with a column for each name (others are left out).

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, attributes), int64.

        Raises
        ------
        InvalidValue
            The first value that is no integer, or else the first that its attribute does not have.
        """
        return checked_records(records, self.names, self.sizes).astype(np.int64, copy=False)
