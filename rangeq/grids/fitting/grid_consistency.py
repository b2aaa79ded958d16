"""Phase 2, removing negativity and inconsistency: distributions that agree on every attribute.

Multi-dimensional ranges, section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from frequency.postprocess import norm_sub
from mechdesign.base.arrays import Floats
from rangeq.grids.cells import Grid, common

_MOST_ROUNDS = 50
_TOLERANCE = 1e-9


class _Share(NamedTuple):
    """What one grid says of an attribute.

    Its number and axis, which cells of the axis begin a block, |S| of each block, and the precision
    of a cell.
    """

    grid: int
    axis: int
    starts: list[int]
    sizes: Floats
    precision: float


class Agreement:
    """The consistency step: what grids say of an attribute's cells becomes their weighted mean.

    For each attribute the blocks are the finest that all its grids can tell of. A grid's frequency
    of a block is the sum of |S| of its cells, so its variance is |S| times a cell's; the mean of
    least variance weighs each grid by its cells' precision over |S|; and each of the |S| cells
    takes an equal share of what is missing to the mean. Where the blocks of a grid have different
    |S|, weights differ between blocks, and means might not sum to 1: each then gives up what is too
    much in proportion to its variance, as in least squares with a known sum.

    Parameters
    ----------
    grids : sequence of Grid
        Any, of one or more attributes each.
    precisions : sequence of float or numpy.ndarray of float64
        One over the variance of a cell of each grid: proportional to its users; 0 for a grid that
        says nothing. Where all grids of an attribute are such, they count alike.
    """

    def __init__(self, grids: Sequence[Grid], precisions: Sequence[float] | Floats) -> None:
        self._attributes: list[list[_Share]] = []
        for place in sorted({place for grid in grids for place in grid.places}):
            inside = [
                (number, grid.places.index(place))
                for number, grid in enumerate(grids)
                if place in grid.places
            ]
            blocks = common(*(grids[number].edges[axis] for number, axis in inside))
            heard = any(precisions[number] for number, _ in inside)
            shares = []
            for number, axis in inside:
                grid = grids[number]
                starts = [grid.edges[axis].index(edge) for edge in blocks[:-1]]
                sizes = np.diff([*starts, grid.shape[axis]]) * (grid.cells // grid.shape[axis])
                shares.append(
                    _Share(
                        number,
                        axis,
                        starts,
                        sizes.astype(np.float64),
                        float(precisions[number]) if heard else 1.0,
                    )
                )
            if len(shares) > 1:
                self._attributes.append(shares)

    def apply(self, tables: Sequence[Floats]) -> list[Floats]:
        """New tables, one for each grid, that agree on every attribute.

        The given ones must all have the same sum: it stays.
        """
        result = [table.copy() for table in tables]
        for shares in self._attributes:
            said = [_blocks(result[share.grid], share) for share in shares]
            weights = [share.precision / share.sizes for share in shares]
            total = np.sum(weights, axis=0)
            mean = (
                np.sum([weight * own for weight, own in zip(weights, said, strict=True)], axis=0)
                / total
            )
            mean += (said[0].sum() - mean.sum()) / total / (1 / total).sum()
            for share, own in zip(shares, said, strict=True):
                table = result[share.grid]
                lengths = np.diff([*share.starts, table.shape[share.axis]])
                missing = np.repeat((mean - own) / share.sizes, lengths)
                table += missing.reshape(
                    [-1 if axis == share.axis else 1 for axis in range(table.ndim)]
                )
        return result


def _blocks(table: Floats, share: _Share) -> Floats:
    """The sum of a table over each block of an axis."""
    line = (
        table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != share.axis))
        if table.ndim > 1
        else table
    )
    result: Floats = np.add.reduceat(line, share.starts)
    return result


def clean(
    grids: Sequence[Grid], tables: Sequence[Floats], precisions: Sequence[float] | Floats
) -> list[Floats]:
    """Distributions, one for each grid, that agree on the attributes.

    The two steps by turns until neither changes anything. Begins and ends with the step of
    non-negativity, norm-sub, which leaves no negative cell and a sum of 1; what then disagrees does
    so by less than 1e-9, or is what 50 rounds leave.

    Parameters
    ----------
    grids : sequence of Grid
        Any, of one or more attributes each.
    tables : sequence of numpy.ndarray of float64
        The estimated frequencies of each grid's cells, shaped as the grid.
    precisions : sequence of float or numpy.ndarray of float64
        One over the variance of a cell of each grid; 0 for a grid that says nothing.

    Returns
    -------
    list of numpy.ndarray of float64
        The tables, of the same shapes.
    """
    agreement = Agreement(grids, precisions)
    current = [_distribution(table) for table in tables]
    for _ in range(_MOST_ROUNDS):
        agreed = agreement.apply(current)
        current, before = [_distribution(table) for table in agreed], current
        if (
            max(
                (float(np.abs(new - old).max()) for new, old in zip(current, before, strict=True)),
                default=0.0,
            )
            < _TOLERANCE
        ):
            break
    return current


def agreeing(
    grids: Sequence[Grid], tables: Sequence[Floats], precisions: Sequence[float] | Floats
) -> list[Floats]:
    """The step of consistency alone, for tables brought to a sum of 1 by a constant.

    Linear, so that cells may be negative, and what is unbiased stays so. Where cells are many and
    each mostly noise, that is far better for sums of them than `clean`.

    Parameters
    ----------
    grids : sequence of Grid
        Any, of one or more attributes each.
    tables : sequence of numpy.ndarray of float64
        The estimated frequencies of each grid's cells, shaped as the grid.
    precisions : sequence of float or numpy.ndarray of float64
        One over the variance of a cell of each grid; 0 for a grid that says nothing.

    Returns
    -------
    list of numpy.ndarray of float64
        The tables, of the same shapes.
    """
    shifted = [table + (1 - table.sum()) / table.size for table in tables]
    return Agreement(grids, precisions).apply(shifted)


def _distribution(table: Floats) -> Floats:
    return norm_sub(table.ravel()).reshape(table.shape)
