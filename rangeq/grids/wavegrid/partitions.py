"""Sets of values that reports are about, and random partitions of categories into such."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from mechdesign.base.linear_algebra import Floats, Items
from rangeq.grids.cells import Edges

# ------------------------------------------------------------------------------------------------
# ValueSets: ways to cut an attribute into a few sets of values, of which a report tells one.


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
        """The numbers of configurations at each level."""

    @property
    @abstractmethod
    def deck(self) -> Items:
        """All configurations, each as often as it is likely."""

    @abstractmethod
    def arc(self, configuration: Items, values: Items) -> Items:
        """The set that holds each value.

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
        """The part of each cell's values that lies in each set: (configurations, arcs, cells)."""

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """The parameters that client and server must agree on."""

    @property
    @abstractmethod
    def expression(self) -> list[Any]:
        """The expression of `arc` in descriptions: see ``docs/wire.md``."""

    @property
    def configurations(self) -> int:
        """The number of configurations."""
        return sum(self.phases)

    @property
    def probabilities(self) -> Floats:
        """The probabilities of the configurations."""
        return np.bincount(self.deck) / len(self.deck)


# ------------------------------------------------------------------------------------------------
# Categories through random partitions into a few sets, for which no two are neighbours.


_TIMES = ((0, 0), (1, 2), (2, 3), (3, 1))
"""Bit masks of the two bits of a x over the field of 4 elements, for a = 0, 1, w, w + 1: bit b of a
x is the parity of mask b & x, where x = 2 x_1 + x_0 stands for x_1 w + x_0 and w^2 = w + 1.
"""


@dataclass(frozen=True)
class Partition(ValueSets):
    """Ways to cut the values of an attribute into a few sets that do not rest on their order.

    A configuration is a linear function of a value, as a vector over the field of ``arcs``
    elements, but for constant factors: with 2 sets the rows of a Hadamard matrix. Any two values
    are in different sets in equally many configurations, if there are as many values as vectors.

    Parameters
    ----------
    size : int
        The number of values of the attribute, 2 to 256.
    arcs : int
        The number of sets: 2 or 4, or 3 of 3 values.
    """

    @cached_property
    def masks(self) -> Items:
        """Bits of the set that holds a value: parities of its bits under masks.

        Shape (configurations, bits): bit b of the set's number is the parity of mask b & the value.
        """
        if self.arcs == 2:
            return np.arange(1, 1 << (self.size - 1).bit_length())[:, None]
        digits = -(-(self.size - 1).bit_length() // 2)
        # Vectors whose first digit other than 0 is 1: one of each class of multiples, as factors
        # only number the sets anew
        masks = [
            [sum(_TIMES[a][bit] << 2 * place for place, a in enumerate(vector)) for bit in (0, 1)]
            for vector in product(range(4), repeat=digits)
            if next((a for a in vector if a), 0) == 1
        ]
        return np.array(masks, dtype=np.int64)

    @property
    def phases(self) -> tuple[int, ...]:
        """The number of configurations, each as likely: one level of them."""
        return (len(self.masks),)

    @property
    def deck(self) -> Items:
        return np.arange(self.configurations)

    def arc(self, configuration: Items, values: Items) -> Items:
        masks = self.masks[configuration]
        parities = np.bitwise_count(masks & np.asarray(values)[..., None]).astype(np.int64) & 1
        return np.asarray((parities << np.arange(masks.shape[-1])).sum(axis=-1))

    def shares(self, edges: Edges) -> Floats:
        sets = self.arc(np.arange(self.configurations)[:, None], np.arange(self.size)[None])
        inside = (sets[:, None] == np.arange(self.arcs)[:, None]).astype(np.float64)
        return np.asarray(np.add.reduceat(inside, edges[:-1], axis=2) / np.diff(edges))

    @property
    def details(self) -> dict[str, Any]:
        return {"categories": self.size, "arcs": self.arcs}

    @property
    def expression(self) -> list[Any]:
        return ["masks", self.size, self.arcs, self.masks.tolist()]
