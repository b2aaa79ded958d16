"""Channels of range protocols: each user reports on one random level of resolution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from frequency.core.channel import Channel
from frequency.core.mixture import Mixture
from mechdesign.base.linear_algebra import Items
from rangeq.core.tree import Tree


@dataclass(frozen=True)
class Levels(Mixture):
    """The levels of a protocol: each channel takes its own items, or the nodes of its level.

    Parameters
    ----------
    domain : int
        The number of items.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    protocol : str
        The protocol's name, which client and server share.
    channels : tuple of Channel
        Of the levels, the coarsest first; some may have more items, which nobody holds.
    weights : tuple of int
        The probability of each level, in units of 2^-64.
    tree : Tree, optional
        Over the domain, whose levels 1 .. height these are; None: all channels take the items.
    """

    protocol: str
    channels: tuple[Channel, ...]
    weights: tuple[int, ...]
    tree: Tree | None = None

    kind: ClassVar[str] = "level"

    @property
    def protocol_name(self) -> str:
        return self.protocol

    @property
    def parts(self) -> tuple[Channel, ...]:
        return self.channels

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return self.weights

    def part_items(self, part: int, items: Items) -> Items:
        return items if self.tree is None else items // self.tree.widths[part]

    def part_expression(self, part: int) -> list[Any]:
        return ["same"] if self.tree is None else ["divide", self.tree.widths[part]]

    def _details(self) -> dict[str, Any]:
        branching = {} if self.tree is None else {"branching": list(self.tree.branching)}
        return {**branching, **super()._details()}
