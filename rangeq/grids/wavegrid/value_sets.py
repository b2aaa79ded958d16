"""ValueSets: ways to cut an attribute into a few sets of values, of which a report tells one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.base.arrays import Floats, Items
from rangeq.grids.cells import Edges


@dataclass(frozen=True)
class ValueSets(ABC):
    """Ways to cut the values of an attribute into a few sets: each is a configuration.

    Parameters
    ----------
    size : int
        The number of values of the attribute.
    arcs : int
        The number of sets.
    """

    size: int
    arcs: int

    @property
    @abstractmethod
    def phases(self) -> tuple[int, ...]:
        """How many configurations there are at each level."""

    @property
    @abstractmethod
    def deck(self) -> Items:
        """All configurations, each as often as it is likely."""

    @abstractmethod
    def arc(self, configuration: Items, values: Items) -> Items:
        """Which set holds each value.

        Parameters
        ----------
        configuration : numpy.ndarray of int64
            Numbers of configurations.
        values : numpy.ndarray of int64
            Values 0 .. size - 1, of the same shape.

        Returns
        -------
        numpy.ndarray of int64
            Sets 0 .. arcs - 1, of that shape.
        """

    @abstractmethod
    def shares(self, edges: Edges) -> Floats:
        """Which part of each cell's values lies in each set: (configurations, arcs, cells)."""

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """What client and server must agree on."""

    @property
    @abstractmethod
    def expression(self) -> list[Any]:
        """What `arc` is, as descriptions have it: see ``docs/wire.md``."""

    @property
    def configurations(self) -> int:
        """How many there are."""
        return sum(self.phases)

    @property
    def probabilities(self) -> Floats:
        """Of the configurations."""
        return np.bincount(self.deck) / len(self.deck)
