"""The best attack on one cell: its true count, given it and all that is published with it, exactly.

Keys of cells are independent and uniform, but for cells of nobody, which have key 0. What is
published tells which keys are possible for each true count; sums of keys are followed by
convolutions over the group of keys.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import Integers, Rational, exact, whole
from mechdesign.perturbation.key_assignment import convolved, require_few_keys
from mechdesign.perturbation.table import PerturbationTable

# ------------------------------------------------------------------------------------------------
# The best guess of one cell.


_MOST_STEPS = 1 << 27  # that following keys may take
_MOST_RESIDUALS = 1 << 20  # that independent noise of all margins may leave
_MOST_CONVOLUTIONS = 200_000  # of keys of one axis: some minutes with 256 keys
_MOST_ENTRIES = 1 << 16  # of an array of the sums of keys of rows


@dataclass(frozen=True)
class CellGuess:
    """How well one cell can be told from all cells and their totals, all counts alike before.

    Attributes
    ----------
    right, certain : Fraction
        The chances that the best guess of a cell is right, and that only one count is possible.
    right_if_independent, certain_if_independent : Fraction
        The same if the noise of totals did not depend on that of the cells.
    """

    right: Fraction
    certain: Fraction
    right_if_independent: Fraction
    certain_if_independent: Fraction


def best_guess(table: PerturbationTable, cells: int, count: int | None = None) -> CellGuess:
    """Return how well the count of a cell is told from some cells and their total, exactly.

    Parameters
    ----------
    table : PerturbationTable
        Of at most 4,096 keys.
    cells : int
        The number of cells, at least 2.
    count : int, optional
        The row of this count holds for all cells and for the total, the largest unless given:
        interior counts, all of which are as likely before.

    Returns
    -------
    CellGuess

    Raises
    ------
    ValueError
        Fewer cells, or more keys.
    """
    require_few_keys(table)
    cells = whole(cells, "the number of cells", 2)
    row = table.largest if count is None else whole(count, "a count")
    noise = table.noise(np.full(table.keys, row), np.arange(table.keys))
    sets = {v: (noise == v).astype(object) for v in sorted(set(noise.tolist()))}
    # Of the other cells only the sum of the noise counts: their counts may be anything.
    others = {0: np.array([1] + [0] * (table.keys - 1), dtype=object)}
    for _ in range(cells - 1):
        following: dict[int, npt.NDArray[np.object_]] = {}
        for summed, weights in others.items():
            for v, members in sets.items():
                moved = convolved(weights, members)
                following[summed + v] = following.get(summed + v, 0) + moved
        others = following
    sums = {w: int(weights.sum()) for w, weights in others.items()}
    joint, alone = (defaultdict[int, Counter[int]](Counter) for _ in range(2))
    for v, members in sets.items():
        for w, weights in others.items():
            both = convolved(members, weights)
            for u, total in sets.items():
                # Known is the noise of the total less that of the cells
                joint[u - v - w][v] += int(both[total == 1].sum()) * table.keys
                alone[u - v - w][v] += int(members.sum()) * sums[w] * int(total.sum())
    everything = table.keys ** (cells + 1)
    return CellGuess(*(c for each in (joint, alone) for c in _chances(each.values(), everything)))


# ------------------------------------------------------------------------------------------------
# The best guess in a table of two axes, by Fourier transforms over the keys of its rows.

# What is known of columns so far: the noise of the first cell, the residual of each column (the
# noise of its total less that of its cells), and the sum of the noise of each row
_Seen: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]


def best_guess_of_table(
    table: PerturbationTable, shape: tuple[int, int], count: int | None = None
) -> CellGuess:
    """Return how well the count of a cell is told from a small table with all of its margins.

    Parameters
    ----------
    table : PerturbationTable
        Of few keys and of little noise: keys^cells are below 2^40, such as 256 keys and 2 x 2
        cells, and the noise is at most 2 for these, 1 for 2 x 3 cells.
    shape : tuple of int
        The numbers of rows and of columns, each at least 2.
    count : int, optional
        As of `best_guess`.

    Returns
    -------
    CellGuess

    Raises
    ------
    ValueError
        Another shape, or a table that takes too long.
    """
    rows, columns = (whole(size, "a number of rows or columns", 2) for size in shape)
    row = table.largest if count is None else whole(count, "a count")
    classes, keys = len(table.law(row)), table.keys
    # Arrays of sums of keys, by the outputs of columns; residuals of independent noise, one of each
    # margin of so many terms
    arrays = classes ** ((rows + 1) * columns)
    spans = [columns + 1] * rows + [rows + 1] * columns + [rows * columns + 1]
    left = math.prod(2 * table.largest_noise * span + 1 for span in spans)
    if (
        keys ** (rows * columns) >= 1 << 40
        or arrays * keys**rows > _MOST_STEPS // 2
        or left > _MOST_RESIDUALS
    ):
        raise ValueError(f"a table of {rows} x {columns} cells with {keys} keys is too large")
    noise = table.noise(np.full(keys, row), np.arange(keys))
    axes, sums_of_keys = _keys_of_rows(keys, rows)
    summed = noise[sums_of_keys]
    column: dict[_Seen, npt.NDArray[np.float64]] = {}
    for cells in product(sorted({*noise.tolist()}), repeat=rows):
        members = np.all([noise[k] == v for k, v in zip(axes, cells, strict=True)], axis=0)
        for v in sorted({*noise.tolist()}):
            array = (members & (summed == v)).astype(np.float64)
            if array.any():
                column[cells[0], (v - sum(cells),), cells] = array
    every = tuple(range(rows))
    waves = {seen: np.fft.rfftn(array, axes=every) for seen, array in column.items()}
    states = waves
    for _ in range(columns - 1):
        following: dict[_Seen, npt.NDArray[np.complex128]] = {}
        for (first, residuals, noises), wave in states.items():
            for (_, (residual,), cells), other in waves.items():
                total = tuple(a + b for a, b in zip(noises, cells, strict=True))
                seen = first, (*residuals, residual), total
                following[seen] = following.get(seen, 0) + wave * other
        states = following
    joint = defaultdict[tuple[Any, ...], Counter[int]](Counter)
    outputs = np.stack([noise[k] for k in (*axes, sums_of_keys)], axis=-1).reshape(-1, rows + 1)
    kinds, place = np.unique(outputs, axis=0, return_inverse=True)
    for (first, residuals, noises), wave in states.items():
        # Numbers below 2^40: transforms of so few terms are off by far less than a half
        weights = np.rint(np.fft.irfftn(wave, s=(keys,) * rows, axes=every)).ravel()
        sums = np.bincount(place.ravel(), weights, len(kinds))
        for kind, weight in zip(kinds.tolist(), sums.tolist(), strict=True):
            if weight:
                beyond = tuple(v - n for v, n in zip(kind, (*noises, sum(noises)), strict=True))
                joint[residuals, beyond][first] += int(weight)
    everything = keys ** (rows * columns)
    if sum(each.total() for each in joint.values()) != everything:
        raise ArithmeticError("the keys that were counted are not all that there are")
    return CellGuess(*_chances(joint.values(), everything), *_alone(table, row, rows, columns))


@lru_cache(maxsize=1)  # of one table at a time
def _keys_of_rows(keys: int, rows: int) -> tuple[tuple[Integers, ...], Integers]:
    """Return the keys of each row, and their sums: shapes (keys,) * rows, for all combinations."""
    axes = np.meshgrid(*[np.arange(keys)] * rows, indexing="ij")
    return tuple(axes), np.asarray(sum(axes) % keys)


def _chances(found: Iterable[Counter[int]], everything: int) -> tuple[Fraction, Fraction]:
    """Return the chances that the best guess is right, and that there is only one."""
    seen = [[weight for weight in each.values() if weight] for each in found]
    right = sum(max(each) for each in seen if each)
    certain = sum(each[0] for each in seen if len(each) == 1)
    return Fraction(right, everything), Fraction(certain, everything)


def _alone(
    table: PerturbationTable, row: int, rows: int, columns: int
) -> tuple[Fraction, Fraction]:
    """Return the chances if the noise of all cells and margins were independent."""
    # The residuals of the cell's row, of its column and of all tell of the cell only with those of
    # others; what is known is a linear function of the noise, followed cell by cell.
    law = table.law(row)
    states: dict[tuple[int, ...], Counter[int]] = {(0,) * (rows + columns + 1): Counter({0: 1})}

    def added(places: Sequence[int], sign: int, first: bool) -> None:
        nonlocal states
        following: dict[tuple[int, ...], Counter[int]] = {}
        for residuals, weights in states.items():
            for v, keys in law.items():
                name = list(residuals)
                for place in places:
                    name[place] += sign * v
                into = following.setdefault(tuple(name), Counter())
                for known, weight in weights.items():
                    into[v if first else known] += weight * keys
        states = following

    for i in range(rows):
        for j in range(columns):
            added((i, rows + j, rows + columns), -1, i == j == 0)
    for margin in range(rows + columns + 1):
        added((margin,), 1, False)
    number = rows * columns + rows + columns + 1
    return _chances(states.values(), table.keys**number)


# ------------------------------------------------------------------------------------------------
# What one published table tells of one cell.


def true_count(
    table: PerturbationTable,
    published: npt.ArrayLike,
    total: int,
    *,
    rows: Sequence[int] | None = None,
    columns: Sequence[int] | None = None,
    cell: int | tuple[int, int] = 0,
    prior: Sequence[Rational] | None = None,
) -> dict[int, Fraction]:
    """Return the probability of each true count of a cell, given all that a table publishes.

    Parameters
    ----------
    table : PerturbationTable
        Of at most 4,096 keys; of two axes keys^rows, times what counts are possible, must be few.
    published : array_like of int
        What is published for the cells: shape (cells,), or (rows, columns).
    total : int
        What is published for the total of all.
    rows, columns : sequence of int, optional
        What is published for the totals of rows and of columns, of a table of two axes.
    cell : int or tuple of int, default 0
        The place of the cell that is asked for.
    prior : sequence of Fraction, int, str or Decimal, optional
        Weights of the true counts 0, 1, 2, ... of each cell, at least 0; larger ones have weight 0.
        All counts are alike unless it is given.

    Returns
    -------
    dict of int to Fraction
        The true counts that are possible, in order; empty if the table cannot publish this.

    Raises
    ------
    ValueError
        Shapes that do not fit, a weight below 0, or what takes too long.

    Examples
    --------
    >>> noise = PerturbationTable(4, [[(4, 0)], [(1, -1), (2, 0), (1, 1)]])
    >>> true_count(noise, [3, 5], 9)
    {2: Fraction(1, 9), 3: Fraction(4, 9), 4: Fraction(4, 9)}
    """
    require_few_keys(table)
    grid = np.asarray(published)
    both = grid.ndim == 2
    if grid.ndim not in (1, 2) or grid.dtype.kind not in "iu" or not grid.size:
        raise ValueError(f"cells have shape (cells,) or (rows, columns), got {grid.shape}")
    margins = [() if m is None else tuple(m) for m in (rows, columns)]
    if [len(m) for m in margins] != (list(grid.shape) if both else [0, 0]):
        raise ValueError("totals of rows and columns are for two axes, one for each of them")
    weights = None if prior is None else [exact(weight, "a weight") for weight in prior]
    if weights is not None and min(weights, default=0) < 0:
        raise ValueError("the weights of a prior are at least 0")
    cells = grid if both else grid[None, :]
    if isinstance(cell, tuple) != both:
        raise ValueError("the place of a cell is a number, and two of a table of two axes")
    place = cell if isinstance(cell, tuple) else (0, cell)
    for axis, k in enumerate(place):
        whole(k, "a place", 0, cells.shape[axis] - 1)
    # Sums of counts and of keys of one axis: so many convolutions
    if not both and (cells.size * (2 * table.largest_noise + 1)) ** 2 > _MOST_CONVOLUTIONS:
        raise ValueError(f"{cells.size} cells with such noise take too long to follow")
    # The column of the cell comes first, so that its count is known from then on
    order = [place[1], *(j for j in range(cells.shape[1]) if j != place[1])]
    attack = _Attack(table, weights)
    states = attack.column(cells[:, order[0]].tolist(), margins[1][order[0]] if both else None)
    known = {(n[place[0]], n): array for n, array in states.items()}
    for j in order[1:]:
        column = attack.column(cells[:, j].tolist(), margins[1][j] if both else None)
        known = attack.joined(known, column)
    found = Counter[int]()
    for (own, counts), array in known.items():
        found[own] += attack.seen(counts, array, margins[0], total)
    everything = found.total()
    return {n: Fraction(w, everything) for n, w in sorted(found.items()) if w}


_Arrays: TypeAlias = dict[tuple[int, ...], npt.NDArray[np.object_]]


class _Attack:
    """Numbers of keys, by the counts and by the sums of keys of rows: arrays of (keys,) * rows."""

    def __init__(self, table: PerturbationTable, prior: Sequence[Fraction] | None) -> None:
        self.table, self.keys = table, table.keys
        scale = math.lcm(*(weight.denominator for weight in prior or ()))
        self.prior = None if prior is None else [int(weight * scale) for weight in prior]

    def possible(self, output: int) -> dict[int, npt.NDArray[np.object_]]:
        """Return the weights of the keys of a cell for each true count of an output."""
        found = {}
        noise = self.table.largest_noise
        for count in range(max(0, output - noise), output + noise + 1):
            weight = 1 if self.prior is None else (*self.prior, *[0] * (count + 1))[count]
            mask = self.publishes(count, output)
            if not count:  # the key of a cell of nobody is 0
                weight, mask = weight * self.keys, mask & (np.arange(self.keys) == 0)
            if weight and mask.any():
                found[count] = mask.astype(object) * weight
        return found

    def publishes(self, count: int, output: int) -> npt.NDArray[np.bool_]:
        """Return the keys with which a count publishes an output."""
        every = np.arange(self.keys)
        found: npt.NDArray[np.bool_] = (
            self.table.noise(np.full(self.keys, count), every) == output - count
        )
        return found

    def column(self, outputs: Sequence[int], total: int | None) -> _Arrays:
        """Return the arrays of a column of cells, and of its total if that is published."""
        rows = len(outputs)
        if self.keys**rows > _MOST_ENTRIES:
            raise ValueError(f"{rows} rows of cells with {self.keys} keys are too many to follow")
        options = [self.possible(output) for output in outputs]
        _, summed = _keys_of_rows(self.keys, rows)
        found: _Arrays = {}
        for counts in product(*options):
            each = [options[i][n] for i, n in enumerate(counts)]
            array = each[0]
            for other in each[1:]:
                array = np.multiply.outer(array, other)
            if total is not None:
                array = array * self.publishes(sum(counts), total)[summed]
            if array.any():
                found[counts] = array
        return found

    def joined(
        self, known: dict[tuple[int, tuple[int, ...]], npt.NDArray[np.object_]], column: _Arrays
    ) -> dict[tuple[int, tuple[int, ...]], npt.NDArray[np.object_]]:
        """Return the arrays with one column more."""
        steps = len(known) * sum(np.count_nonzero(array) for array in column.values())
        rows = len(next(iter(column), ()))
        if (rows > 1) * steps * self.keys**rows > _MOST_STEPS:
            raise ValueError(f"{rows} rows of cells with {self.keys} keys take too long to follow")
        following: dict[tuple[int, tuple[int, ...]], npt.NDArray[np.object_]] = {}
        for (own, counts), array in known.items():
            for more, other in column.items():
                name = own, tuple(a + b for a, b in zip(counts, more, strict=True))
                moved = convolved(array, other) if rows == 1 else _rolled(array, other)
                following[name] = following.get(name, 0) + moved
        return following

    def seen(
        self,
        counts: tuple[int, ...],
        array: npt.NDArray[np.object_],
        rows: Sequence[int],
        total: int,
    ) -> int:
        """Return the weight of the keys with which rows and the total are published so."""
        axes, summed = _keys_of_rows(self.keys, len(counts))
        mask = self.publishes(sum(counts), total)[summed]
        for axis, count, output in zip(axes, counts, rows, strict=False):
            mask = mask & self.publishes(count, output)[axis]
        return int(array[mask].sum()) if mask.any() else 0


def _rolled(
    one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """Return the cyclic convolution of two arrays of several axes, exactly."""
    total = np.zeros_like(one)
    every = tuple(range(one.ndim))
    for shift in np.argwhere(other).tolist():
        total += np.roll(one, shift, axis=every) * other[tuple(shift)]
    return total
