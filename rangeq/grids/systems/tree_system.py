"""TreeSystem: the common part of the systems that cut every attribute by a tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from frequency.oracles.choice import OracleChoice
from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import whole
from rangeq.grids.cells import MOST_EDGES, Edges, tree_cells, tree_widths
from rangeq.grids.protocol import ConjunctionProtocol


@dataclass(frozen=True)
class TreeSystem(ConjunctionProtocol):
    """A system with a tree of intervals for each attribute: cells are made of levels of trees.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        How many users are expected.
    branching : int, default 4
        The children of a node.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.

    Raises
    ------
    ValueError
        ``branching`` is not an integer of at least 2, or the protocol cannot be made.
    """

    branching: int = 4
    oracle: OracleChoice = "OLH"

    def __post_init__(self) -> None:
        set_fields(self, branching=whole(self.branching, "branching", 2))
        super().__post_init__()
        _ = self.channel.report_dtype  # an oracle that cannot be is refused now

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The height of the tree of each attribute: one less than the number of its levels."""
        return tuple(len(tree_widths(s, self.branching)) - 1 for s in self.attributes.sizes)

    @cached_property
    def levels(self) -> tuple[tuple[Edges, ...], ...]:
        """The cells of each level of the tree of each attribute, from the root."""
        cells = sum(
            -(-size // width)
            for size in self.attributes.sizes
            for width in tree_widths(size, self.branching)
        )
        if cells > MOST_EDGES:
            raise ValueError(f"the attributes' trees have {cells} nodes, more than {MOST_EDGES}")
        return tuple(tree_cells(size, self.branching) for size in self.attributes.sizes)
