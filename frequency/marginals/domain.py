"""Domain: named attributes with the number of their values, and records as rows of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.attributes import LARGEST_RECORDS, Attributes
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.text import listed, shown

_BATCH = 1 << 12
"""Records handled at a time, so that the working arrays stay in cache."""


class Domain(Attributes):
    """Attributes in their order, each with the values 0 .. cardinality - 1.

    An attribute of two values is called binary.

    A record is one value of each; as an item it is a single number, the last attribute's value
    counting fastest. In the spirit of ``mbi.Domain``: ``Domain({"age": 5, "smokes": 2})``.

    Parameters
    ----------
    cardinalities : mapping of str to int
        The number of values of each attribute, at least 1, by its name.

    Raises
    ------
    ValueError
        No attributes or more than 256, names that are not strings, cardinalities below 1, or more
        than 2^62 records.
    """

    def __init__(self, cardinalities: Mapping[str, int]) -> None:
        if not isinstance(cardinalities, Mapping) or not cardinalities:
            raise ValueError(
                "a domain is a mapping of names to numbers of values, such as {'age': 5}, got"
                f" {shown(cardinalities)}"
            )
        given = Attributes.of(cardinalities, LARGEST_RECORDS)
        super().__init__(given.names, given.sizes)
        if self.size > LARGEST_RECORDS:
            raise ValueError(f"there are {shown(self.size)} different records, more than 2^62")

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.sizes, strict=True))

    @classmethod
    def binary(cls, *names: str) -> Domain:
        """Attributes of two values each.

        Raises
        ------
        ValueError
            A name occurs twice.
        """
        if len(set(names)) < len(names):
            raise ValueError(f"attributes must have distinct names, got {shown(names)}")
        return cls(dict.fromkeys(names, 2))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names, in order."""
        return self.names

    @property
    def shape(self) -> tuple[int, ...]:
        """The cardinalities, in the attributes' order."""
        return self.sizes

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
        """Names of distinct attributes of this domain.

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
        """All sets of k attributes, in order.

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
        """Where attributes stand in the domain's order."""
        order = {name: place for place, name in enumerate(self._sizes)}
        return tuple(order[name] for name in attributes)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """How much one more of each attribute's value adds to the item."""
        sizes = self.shape
        return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))

    def items(self, records: Any) -> Items:
        """Each record as one number, the last attribute counting fastest.

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
        InvalidValue
            The first value that is no integer, or else the first that its attribute does not have.
        """
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
        numpy.ndarray
            Shape (n, attributes), int64.
        """
        places = range(len(self)) if attributes is None else self.places(attributes)
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
            Names; the value of the last one counts fastest.

        Returns
        -------
        numpy.ndarray
            Cells as numbers, shaped like ``items``.
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
        cells = self.cells(self.items(records), names)
        shape = self.project(names).shape
        counts: npt.NDArray[Any] = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        result: Floats = counts / max(len(cells), 1)
        return result
