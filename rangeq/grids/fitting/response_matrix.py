"""Response matrices: the joint distribution of a pair from its grid and both finer 1-D grids.

Multi-dimensional ranges, section 4.3, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mechdesign.base.arrays import Floats
from rangeq.grids.cells import Edges, refined
from rangeq.grids.fitting.piecewise import Line, Plane

_MOST_ROUNDS = 1000


class Response(NamedTuple):
    """What `response_matrices` found.

    Attributes
    ----------
    planes : list of Plane
        The matrix of each pair.
    changes : numpy.ndarray of float64
        Shape (rounds,): the mean over pairs of the change in each round.
    """

    planes: list[Plane]
    changes: Floats


def response_matrices(
    lines: Sequence[Line],
    pairs: Sequence[tuple[int, int]],
    planes: Sequence[Plane],
    tolerance: float,
) -> Response:
    """Weighted update: from the uniform matrix, scale each cell to its frequency, grid after grid.

    The 2-D grid comes last, so that the matrix sums to its cells. Where the 1-D grids leave nothing
    of a cell that the 2-D grid gives something, that is spread evenly over the cell. Entries are
    the same wherever no grid tells values apart, so that a matrix is kept as the cells of all three
    grids' common refinement, whatever the sizes of the attributes.

    Where no 1-D cell straddles two rows or columns of 2-D cells, as with the guideline's powers of
    two, one round is enough: a 2-D cell is divided as the 1-D grids divide its row and its column,
    independently, and further rounds change nothing.

    Parameters
    ----------
    lines : sequence of Line
        The 1-D grid of each attribute: non-negative.
    pairs : sequence of (int, int)
        Pairs (j, k) of attributes.
    planes : sequence of Plane
        The 2-D grid of each pair: non-negative.
    tolerance : float
        The sum of the changes of a matrix's entries below which a round is the last (or the
        1000th).

    Returns
    -------
    Response
        The matrices, and how much each round changed.
    """
    found: list[Plane | None] = [None] * len(pairs)
    alike: dict[tuple[Edges, ...], list[int]] = {}
    for number, ((j, k), plane) in enumerate(zip(pairs, planes, strict=True)):
        alike.setdefault((lines[j].edges, lines[k].edges, *plane.edges), []).append(number)
    changes = np.zeros(_MOST_ROUNDS)
    for (line_j, line_k, plane_j, plane_k), numbers in alike.items():
        rows, columns = refined(line_j, plane_j), refined(line_k, plane_k)
        first = np.stack([lines[pairs[number][0]].cells for number in numbers])
        second = np.stack([lines[pairs[number][1]].cells for number in numbers])
        both = np.stack([planes[number].cells for number in numbers])
        even = np.multiply.outer(np.diff(rows) / rows[-1], np.diff(columns) / columns[-1])
        matrices = np.repeat(even[None], len(numbers), axis=0)
        in_j, in_k = _Cells(line_j, rows), _Cells(line_k, columns)
        plane_rows, plane_columns = _Cells(plane_j, rows), _Cells(plane_k, columns)
        for round_ in range(_MOST_ROUNDS):
            before = matrices.copy()
            matrices *= in_j.spread(_factor(first, in_j.sums(matrices.sum(axis=2), 1)), 1)[
                :, :, None
            ]
            matrices *= in_k.spread(_factor(second, in_k.sums(matrices.sum(axis=1), 1)), 1)[
                :, None, :
            ]
            held = plane_columns.sums(plane_rows.sums(matrices, 1), 2)
            matrices *= plane_columns.spread(plane_rows.spread(_factor(both, held), 1), 2)
            change = np.abs(matrices - before).sum(axis=(1, 2))
            changes[round_] += change.sum() / len(pairs)
            if change.max() < tolerance:
                break
        lost = np.where(held > 0, 0.0, both) / plane_columns.sums(plane_rows.sums(even, 0), 1)
        matrices += even * plane_columns.spread(plane_rows.spread(lost, 1), 2)
        for number, matrix in zip(numbers, matrices, strict=True):
            found[number] = Plane((rows, columns), matrix)
    return Response([plane for plane in found if plane is not None], np.trim_zeros(changes, "b"))


class _Cells:
    """Cells of an axis as runs of the cells of a refinement."""

    def __init__(self, edges: Edges, fine: Edges) -> None:
        self._starts = np.searchsorted(fine, edges[:-1])
        self._which = np.repeat(
            np.arange(len(self._starts)), np.diff([*self._starts, len(fine) - 1])
        )

    def sums(self, values: Floats, axis: int) -> Floats:
        result: Floats = np.add.reduceat(values, self._starts, axis=axis)
        return result

    def spread(self, values: Floats, axis: int) -> Floats:
        return np.take(values, self._which, axis=axis)


def _factor(wanted: Floats, held: Floats) -> Floats:
    return np.divide(wanted, held, out=np.ones_like(held), where=held > 0)
