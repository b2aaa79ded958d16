"""Axes: the names and labels of a table of counts with several attributes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import Booleans, Integers, listed, set_fields, shown
from mechdesign.exceptions import InvalidTable

_Number = TypeVar("_Number", np.float64, np.int64)

#: For some axes the label, or the labels, that cells must have.
Where: TypeAlias = Mapping[str, "str | Sequence[str]"]


@dataclass(frozen=True, init=False)
class Axes:
    """The axes of a contingency table.

    Parameters
    ----------
    labels : mapping of str to sequence of str
        For each axis, by its name, the labels along it: one at least, all different. The order of
        the axes is that of the array of counts. Kept as tuples, ``names`` and ``labels``.

    Raises
    ------
    InvalidTable
        No axes, a name or a label that is not a text or is empty, or one that comes twice.

    >>> axes = Axes({"region": ["north", "south"], "answer": ["yes", "no", "unknown"]})
    >>> axes.shape, axes.where({"answer": "no"}).tolist()
    ((2, 3), [[False, True, False], [False, True, False]])
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        names = _texts(labels, "names of axes")
        found = tuple(_texts(labels[name], f"labels of {name!r}") for name in names)
        set_fields(self, names=names, labels=found)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of labels of each axis."""
        return tuple(map(len, self.labels))

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        return {
            name: {label: place for place, label in enumerate(labels)}
            for name, labels in zip(self.names, self.labels, strict=True)
        }

    def cells(self) -> Iterator[tuple[str, ...]]:
        """The labels of each cell, in the order of a flat array of counts."""
        return product(*self.labels)

    def kept(self, names: Sequence[str]) -> tuple[int, ...]:
        """The places of some axes, ascending.

        Raises
        ------
        InvalidTable
            There is no such axis, or one is named twice.
        """
        if isinstance(names, str):
            raise InvalidTable(f"axes are named by a sequence of texts, got {shown(names)}")
        for name in names:
            if name not in self.names or list(names).count(name) > 1:
                raise InvalidTable(
                    f"axes are some of {listed(self.names)}, each once; got {shown(tuple(names))}"
                )
        return tuple(sorted(self.names.index(name) for name in names))

    def groups(self, names: Sequence[str]) -> Integers:
        """Which sum each cell belongs to, of the sums over all axes but some.

        Parameters
        ----------
        names : sequence of str
            The axes that are kept.

        Returns
        -------
        numpy.ndarray of int64
            Shape (cells,): the places of `margin`, as of a flat array.

        Raises
        ------
        InvalidTable
            There is no such axis.
        """
        kept = self.kept(names)
        shape = tuple(self.shape[i] if i in kept else 1 for i in range(len(self.shape)))
        places = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        return np.broadcast_to(places, self.shape).ravel()

    def margin(self, values: npt.NDArray[_Number], names: Sequence[str]) -> npt.NDArray[_Number]:
        """The sums of the values of cells over all axes but some.

        Parameters
        ----------
        values : numpy.ndarray
            Of the table's shape.
        names : sequence of str
            The axes that are kept; none for the total.

        Returns
        -------
        numpy.ndarray
            With these axes, in the table's order.

        Raises
        ------
        InvalidTable
            There is no such axis.
        """
        kept = self.kept(names)
        others = tuple(i for i in range(len(self.shape)) if i not in kept)
        return np.asarray(values.sum(axis=others))

    def where(self, conditions: Where) -> Booleans:
        """Which cells have these labels.

        Parameters
        ----------
        conditions : mapping of str to str or sequence of str
            For some axes, by name, a label or several. No conditions: every cell.

        Returns
        -------
        numpy.ndarray of bool
            Of the table's shape.

        Raises
        ------
        InvalidTable
            There is no such axis or no such label.
        """
        mask = np.ones(self.shape, dtype=np.bool_)
        for name, given in conditions.items():
            (axis,) = self.kept([name])
            known = self._places[name]
            along = np.zeros(len(known), dtype=np.bool_)
            for label in [given] if isinstance(given, str) else given:
                if label not in known:
                    raise InvalidTable(
                        f"{name} has the labels {listed(self.labels[axis][:20])}, got"
                        f" {shown(label)}"
                    )
                along[known[label]] = True
            mask &= along.reshape([-1 if i == axis else 1 for i in range(len(self.names))])
        return mask


def _texts(given: Sequence[str] | Mapping[str, object], what: str) -> tuple[str, ...]:
    """Different texts, none of them empty."""
    found = () if isinstance(given, str) else tuple(given)
    if not found or not all(isinstance(text, str) and text.strip() for text in found):
        raise InvalidTable(f"{what} are texts, one at least, got {shown(given)}")
    if len(set(found)) < len(found):
        twice = next(text for text in found if found.count(text) > 1)
        raise InvalidTable(f"{what} are different, but {shown(twice)} comes twice")
    return found
