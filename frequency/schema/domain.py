"""Domain: named attributes with the number of their values, and records as rows of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core import place_of
from frequency.exceptions import InvalidQuestion, InvalidValue
from frequency.schema.column import require_columns
from mechdesign.base import Floats, Items, checked_counts, is_whole, listed, set_fields, shown

LARGEST_RECORDS = 1 << 62  #: The largest number of different records where they are numbered.

MOST_ATTRIBUTES = 1 << 8  #: The largest number of attributes, those of one value included.

LARGEST_SIZE = 1 << 32  #: The largest number of values of an ordinal attribute.

_BATCH = 1 << 12  # records handled at a time, so that the working arrays stay in cache


@dataclass(frozen=True, init=False, repr=False)
class Domain:
    """A domain: attributes in their order, each with the values 0 .. size - 1.

    An attribute of two values is called binary.

    A record is one value of each; as an item it is a single number, the last attribute's value
    counting fastest. There may be any number of different records, but more than 2^62 have no
    numbers. In the spirit of ``mbi.Domain``: ``Domain({"age": 5, "smokes": 2})``.

    Parameters
    ----------
    cardinalities : mapping of str to int
        The number of values of each attribute, 1 to 2^62, by its name.

    Attributes
    ----------
    names : tuple of str
        The names, in order.
    sizes : tuple of int
        Attribute names[t] has the values 0 .. sizes[t] - 1.

    Raises
    ------
    ValueError
        No attributes or more than 256, names that are no strings or occur twice, other numbers.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __init__(self, cardinalities: Mapping[str, int]) -> None:
        if not isinstance(cardinalities, Mapping) or not cardinalities:
            raise ValueError(
                "a domain is a mapping of names to numbers of values, such as {'age': 5}, got"
                f" {shown(cardinalities)}"
            )
        names, sizes = _checked(list(cardinalities.items()), LARGEST_RECORDS)
        set_fields(self, names=names, sizes=sizes)

    @classmethod
    def of(cls, sizes: Any, largest: int = LARGEST_SIZE) -> Domain:
        """Return ordinal attributes from their sizes.

        Parameters
        ----------
        sizes : sequence of int, mapping or Domain
            Sizes (names are then "0", "1", ...), a mapping of names to sizes, or a domain.
        largest : int
            The largest size of an attribute.

        Returns
        -------
        Domain
            The attributes, in the order given.

        Raises
        ------
        ValueError
            For no attributes, names that are not strings, and sizes outside 1 .. largest.
        """
        pairs: list[tuple[Any, Any]]
        if isinstance(sizes, Domain):
            pairs = list(zip(sizes.names, sizes.sizes, strict=True))
        elif isinstance(sizes, Mapping):
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
        return cls(dict(zip(*_checked(pairs, largest), strict=True)))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.sizes, strict=True))

    @classmethod
    def binary(cls, *names: str) -> Domain:
        """Return attributes of two values each.

        Raises
        ------
        ValueError
            A name occurs twice.
        """
        if len(set(names)) < len(names):
            raise ValueError(f"attributes must have distinct names, got {shown(names)}")
        return cls(dict.fromkeys(names, 2))

    @property
    def size(self) -> int:
        """The number of different records."""
        return math.prod(self.sizes)

    def require_numbered(self) -> None:
        """Check that records can be numbered.

        Raises
        ------
        ValueError
            There are more than 2^62 different ones.
        """
        if self.size > LARGEST_RECORDS:
            raise ValueError(f"there are {shown(self.size)} different records, more than 2^62")

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The places (j, k), j < k, of all pairs of attributes."""
        return tuple(combinations(range(len(self)), 2))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names, in order."""
        return self.names

    @property
    def shape(self) -> tuple[int, ...]:
        """The cardinalities, in the attributes' order."""
        return self.sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __getitem__(self, name: str) -> int:
        return self._sizes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def __repr__(self) -> str:
        return f"Domain({self._sizes!r})"

    def project(self, attributes: Sequence[str]) -> Domain:
        """The domain of some attributes.

        Parameters
        ----------
        attributes : sequence of str
            Distinct names of this domain.

        Returns
        -------
        Domain
            Of these, in the order asked for.

        Raises
        ------
        ValueError
            Other names.
        """
        return Domain({name: self._sizes[name] for name in self.checked(attributes)})

    def checked(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """Return names of distinct attributes of this domain.

        Parameters
        ----------
        attributes : sequence of str
            The names; a single string is one name.

        Returns
        -------
        tuple of str
            The same, in the same order.

        Raises
        ------
        ValueError
            Names that occur twice or are not here, or none.
        """
        names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        unknown = [name for name in names if name not in self._sizes]
        if unknown or not names or len(set(names)) < len(names):
            what = f"{shown(unknown[0])} is none" if unknown else f"got {shown(names)}"
            raise ValueError(
                f"attributes must be distinct names among {listed(self._sizes)}; {what}"
            )
        return names

    def views(self, k: int) -> tuple[tuple[str, ...], ...]:
        """Return all sets of k attributes, in order.

        Parameters
        ----------
        k : int
            How many attributes a set has, at least 0.

        Returns
        -------
        tuple of tuples of str
            In the domain's order.
        """
        return tuple(combinations(self._sizes, k))

    def places(self, attributes: Sequence[str]) -> tuple[int, ...]:
        """Return where attributes stand in the domain's order."""
        order = {name: place for place, name in enumerate(self._sizes)}
        return tuple(order[name] for name in attributes)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The amounts that one more of each attribute's value adds to the item.

        Raises
        ------
        ValueError
            There are more than 2^62 different records.
        """
        self.require_numbered()
        sizes = self.shape
        return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))

    def takes(self, numbered: bool) -> dict[str, Any]:
        """Return what clients take as a record: see ``docs/wire.md``.

        Parameters
        ----------
        numbered : bool
            Whether it becomes a single number, or stays a list of values.

        Returns
        -------
        dict
            As descriptions have it.
        """
        sizes = [size if size < 1 << 53 else str(size) for size in self.sizes]
        return {"kind": "record", "names": list(self.names), "sizes": sizes, "number": numbered}

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
            Names that are not here, or occur twice.
        """
        places = [place_of(name, self.names) for name in names]
        if len(set(places)) < len(places):
            raise InvalidQuestion(f"attributes must have distinct names, got {shown(names)}")
        axes = np.ix_(*(np.arange(self.sizes[place]) for place in places))
        return {self.names[place]: axis for place, axis in zip(places, axes, strict=True)}

    def records(self, records: Any) -> Items:
        """Return records as an integer array of shape (n, attributes).

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
            require_columns(self.names, list(getattr(records, "columns", records)))
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

    def items(self, records: Any) -> Items:
        """Return each record as one number, the last attribute counting fastest.

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            See `records`.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n,): 0 .. size - 1.

        Raises
        ------
        ValueError, InvalidValue
            As for `records`; or ValueError where there are more than 2^62 different ones.
        """
        self.require_numbered()
        table = self._checked_records(records)
        result = np.zeros(len(table), dtype=np.int64)
        for start in range(0, len(table), _BATCH):
            part = result[start : start + _BATCH]
            for column, size in zip(
                table[start : start + _BATCH].T.astype(np.int64, order="C"), self.shape, strict=True
            ):
                part *= size
                part += column
        return result

    def values(self, items: Items, attributes: Sequence[str] | None = None) -> Items:
        """The values of some attributes of records that are given as numbers.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Shape (n,): records as numbers, 0 .. size - 1.
        attributes : sequence of str, optional
            Their names; None: all.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, attributes).

        Raises
        ------
        ValueError
            Other names, or more than 2^62 different records.
        """
        names = self.names if attributes is None else self.checked(attributes)
        places = self.places(names)
        return np.stack(
            [items // self.steps[place] % self.shape[place] for place in places], axis=-1
        )

    def cells(self, items: Items, attributes: Sequence[str]) -> Items:
        """The cell of the marginal of some attributes that holds each record.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Records as numbers, 0 .. size - 1.
        attributes : sequence of str
            Distinct names; the value of the last one counts fastest.

        Returns
        -------
        numpy.ndarray
            Cells as numbers, shaped like ``items``.

        Raises
        ------
        ValueError
            Other names, or more than 2^62 different records.
        """
        sizes = [self._sizes[name] for name in attributes]
        result = np.zeros(np.shape(items), dtype=np.int64)
        for value, size in zip(
            np.moveaxis(self.values(items, attributes), -1, 0), sizes, strict=True
        ):
            result = result * size + value
        return result

    def marginal(self, records: Any, attributes: Sequence[str]) -> Floats:
        """The true marginal of records.

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            See `records`.
        attributes : sequence of str
            Distinct names.

        Returns
        -------
        numpy.ndarray
            Fractions of the records, one axis an attribute, in the order asked for.

        Raises
        ------
        ValueError
            An attribute that is not there, or twice.
        InvalidValue
            The first bad value of the records.
        """
        names = self.checked(attributes)
        domain = self.project(names)
        cells = domain.items(self._checked_records(records)[:, self.places(names)])
        counts: npt.NDArray[Any] = np.bincount(cells, minlength=domain.size).reshape(domain.shape)
        return counts / max(len(cells), 1)


def _checked(
    pairs: Sequence[tuple[Any, Any]], largest: int
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return names and sizes of attributes; ValueError for the first thing wrong."""
    if len(pairs) > MOST_ATTRIBUTES:
        raise ValueError(f"there are {len(pairs)} attributes, more than {MOST_ATTRIBUTES}")
    names: dict[str, int] = {}
    for name, size in pairs:
        if not isinstance(name, str) or not is_whole(size) or not 1 <= size <= largest:
            raise ValueError(
                f"an attribute is a name and a size of 1 to {largest}, got {shown(name)}:"
                f" {shown(size)}"
            )
        if name in names:
            raise ValueError(f"attributes must have distinct names, got {shown(name)} twice")
        names[name] = int(size)
    return tuple(names), tuple(names.values())
