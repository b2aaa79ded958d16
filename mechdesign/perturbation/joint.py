"""Tables published with margins: what the sums of keys give away.

The key of a union is the sum of the keys of its parts, modulo the number of keys K. Keys of any two
cells are independent; those of cells and of their total are not. Given what cells publish, the key
of the total is distributed as a convolution over the group of keys, of the sets of keys that lead
to each noise. With keys in order these sets are intervals, and sums of few intervals are far from
uniform; scattered, they are nearly uniform.

How far is a matter of Fourier coefficients, rho of `mechdesign.perturbation.key_assignment`. Of
independent cells i the mean over all outputs of the squared distance (chi squared) of the key of
their total from a uniform one is ``sum over f != 0 of product over i of rho_i(f)``; by Cauchy and
Schwarz, half of its root bounds the total variation distance.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.accounting.pair_law import exp_below
from mechdesign.base import Floats, Integers, Rational, checked_counts, set_fields, whole
from mechdesign.perturbation.disclosure import DeltaCurve
from mechdesign.perturbation.key_assignment import require_few_keys, spectrum
from mechdesign.perturbation.table import PerturbationTable
from mechdesign.privacy import exact_epsilon

_MOST_STEPS = 1 << 27  # that an exact joint law may take

# What Fourier coefficients in floats may be off by, and the relative error of sums of powers of
# them: all terms are positive.
_FOURIER, _SUMS = 1e-12, 1 + 1e-6

# The outputs of columns so far -> the weights of the sums of keys of rows
_States: TypeAlias = dict[tuple[tuple[int, ...], ...], npt.NDArray[np.object_]]


# ------------------------------------------------------------------------------------------------
# Small tables: the exact joint law.


def joint_law(table: PerturbationTable, counts: npt.ArrayLike) -> dict[tuple[int, ...], Fraction]:
    """Return the exact joint law of what a table publishes with its margins.

    Parameters
    ----------
    table : PerturbationTable
        Of few keys.
    counts : array_like of int
        True counts: shape (cells,), published with their total; or (rows, columns), published with
        the totals of rows, of columns, and of all. A cell of nobody has key 0; every record key is
        unknown and uniform.

    Returns
    -------
    dict of tuple of int to Fraction
        By the outputs: of the cells, row after row, of the totals of rows and of columns if there
        are such, and of the total.

    Raises
    ------
    ValueError
        Another shape, or a law that takes too long: keys^(2 rows) times the number of outputs of
        the cells are 2^27 at most.
    """
    grid = _checked_grid(counts)
    both, cells = grid.ndim == 2, np.atleast_2d(grid)
    rows, columns = cells.shape
    keys, size = table.keys, math.prod(cells.shape)
    classes = max(len(table.law(int(c))) for c in cells.ravel())
    if keys ** (2 * rows) * classes**size > _MOST_STEPS:
        raise ValueError(f"the joint law of {size} cells with {keys} keys is too large")
    # The keys of rows are summed column by column (a transfer matrix): for each outputs of the
    # columns so far, how many assignments of keys lead to each sum.
    start = np.zeros((keys,) * rows, dtype=object)
    start[(0,) * rows] = 1
    states: _States = {(): start}
    for j in range(columns):
        steps = list(_column_steps(table, cells[:, j], both))
        following: _States = {}
        for seen, weights in states.items():
            for outputs, shift in steps:
                moved = np.roll(weights, shift, axis=tuple(range(rows)))
                name = (*seen, outputs)
                following[name] = following.get(name, 0) + moved
        states = following
    number = keys ** int((cells > 0).sum())
    sums, law = cells.sum(axis=1), defaultdict[tuple[int, ...], Fraction](Fraction)
    for seen, weights in states.items():
        for summed in np.argwhere(weights).tolist():
            margins = [_output(table, int(n), k) for n, k in zip(sums, summed, strict=True)]
            total = _output(table, int(sums.sum()), sum(summed))
            inside = [outputs[i] for i in range(rows) for outputs in seen]
            beside = [*margins, *(outputs[rows] for outputs in seen)] if both else []
            law[(*inside, *beside, total)] += Fraction(weights[tuple(summed)], number)
    return dict(law)


def _checked_grid(counts: npt.ArrayLike) -> Integers:
    """Return the true counts of a table of one or two axes."""
    grid = checked_counts(counts, 1 << 40)
    if grid.ndim not in (1, 2) or not grid.size:
        raise ValueError(f"counts have shape (cells,) or (rows, columns), got {grid.shape}")
    return grid


def _column_steps(
    table: PerturbationTable, column: Integers, both: bool
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the outputs of a column, its total last if that is published, and its keys."""
    choices = [range(table.keys) if count else range(1) for count in column.tolist()]
    for keys in product(*choices):
        outputs = [_output(table, n, k) for n, k in zip(column.tolist(), keys, strict=True)]
        margin = [_output(table, int(column.sum()), sum(keys))] if both else []
        yield (*outputs, *margin), keys


def _output(table: PerturbationTable, count: int, key: int) -> int:
    return count + int(table.noise(np.array([count]), np.array([key]))[0])


def joint_curve(
    table: PerturbationTable, counts: npt.ArrayLike, cell: int | tuple[int, int]
) -> DeltaCurve:
    """Return the exact curve of one person more in a cell of a table published with its margins.

    Parameters
    ----------
    table : PerturbationTable
        Of few keys.
    counts : array_like of int
        As of `joint_law`: the table without the person.
    cell : int or tuple of int
        The place of the cell that the person is in.

    Returns
    -------
    DeltaCurve

    Raises
    ------
    ValueError
        As `joint_law` does.
    """
    without = checked_counts(counts, 1 << 40)
    within = without.copy()
    within[cell] += 1
    laws = joint_law(table, without), joint_law(table, within)
    total = math.lcm(*(p.denominator for law in laws for p in law.values()))
    outputs = {*laws[0], *laws[1]}
    weights = [[int(law.get(o, Fraction(0)) * total) for law in laws] for o in outputs]
    return DeltaCurve.of_pairs([[(p, q) for p, q in weights]], total)


# ------------------------------------------------------------------------------------------------
# Large tables: how far the joint law is from independent noise.


@dataclass(frozen=True, eq=False)
class JointDisclosure:
    """What a table published with its margins reveals about one person: see `joint_law`.

    Parameters
    ----------
    table : PerturbationTable
        Of at most 4,096 keys.
    counts : array_like of int
        True counts, shape (cells,) or (rows, columns), without the person. Of two axes none is 0: a
        cell of nobody has a known key.

    Raises
    ------
    ValueError
        Another shape, too many keys, or a cell of nobody in a table of two axes.
    """

    table: PerturbationTable
    counts: Integers

    def __post_init__(self) -> None:
        grid = _checked_grid(self.counts)
        if grid.ndim == 2 and not grid.all():
            raise ValueError("the bound of two axes is for tables without a cell of nobody")
        require_few_keys(self.table)
        set_fields(self, counts=grid)

    @cached_property
    def independent(self) -> DeltaCurve:
        """The curve of the worst cell if the noise of cells and of totals were independent."""
        kinds, total = set(), int(self.counts.sum())
        for place in np.ndindex(self.counts.shape):
            changed = [int(self.counts[place]), total]
            if self.counts.ndim == 2:
                changed += [int(self.counts[place[0]].sum()), int(self.counts[:, place[1]].sum())]
            kinds.add(tuple(sorted(map(self._pair, changed))))
        numbers = 2 * self.counts.ndim
        return DeltaCurve.of_pairs(map(_products, kinds), self.table.keys**numbers)

    def _pair(self, count: int) -> tuple[tuple[int, int], ...]:
        """Return the weights of the outputs of a count and of the next one, in a fixed order."""
        one, other = (
            {c + v: keys for v, keys in _law(self.table, c).items()} for c in (count, count + 1)
        )
        return tuple(sorted((one.get(o, 0), other.get(o, 0)) for o in {*one, *other}))

    @cached_property
    def dependence(self) -> float:
        """A proved bound on how far the joint law is from that of independent noise; at most 1.

        The distance is total variation, of the table with the person and of that without.
        """
        cells = self.counts
        if cells.ndim == 1:
            parts = [_chi_squared([self._rho(int(n)) for n in cells if n], self.table.keys)]
        else:
            largest = np.max([self._rho(int(n)) for n in np.unique(cells)], axis=0)
            rows, columns = cells.shape
            # The keys of margins, given the cells; and of the total, given the other margins
            parts = [
                min(_chi_squared_of_margins(largest, *s) for s in (cells.shape, (columns, rows)))
            ]
            parts += [
                _chi_squared([self._rho(int(n)) for n in cells.sum(axis=axis)], self.table.keys)
                for axis in (0, 1)
            ]
        return min(1.0, sum(math.sqrt(part) / 2 for part in parts) * _SUMS)

    def _rho(self, count: int) -> Floats:
        """Return a bound on rho(f) of a count, with one person more or without."""
        return self._rhos(self.table.place(count), self.table.place(count + 1))

    @cached_property
    def _known(self) -> dict[tuple[int, int], Floats]:
        return {}

    def _rhos(self, one: int, other: int) -> Floats:
        if (one, other) not in self._known:
            larger = np.maximum(spectrum(self.table, one), spectrum(self.table, other))
            self._known[one, other] = np.minimum(1.0, larger + _FOURIER)
        return self._known[one, other]

    def delta(self, epsilon: float | Rational) -> tuple[Fraction, Fraction]:
        """Return bounds on the joint delta of one person, in whichever cell.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            At least 0.

        Returns
        -------
        tuple of Fraction
            A lower and an upper bound, 0 to 1, both proved.

        Raises
        ------
        ValueError
            An epsilon that is not finite or below 0.
        """
        # |P(S) - x Q(S)| changes by the distance of P, and by x times that of Q
        ratio = exp_below(exact_epsilon(epsilon))
        apart = (1 + ratio) * Fraction(self.dependence)
        middle = self.independent.at_ratio(ratio)
        return max(Fraction(0), middle - apart), min(Fraction(1), middle + apart)


def _law(table: PerturbationTable, count: int) -> dict[int, int]:
    """Return the numbers of keys of each noise of a cell; one of nobody has key 0."""
    if count:
        return table.law(count)
    return {int(table.noise(np.array([0]), np.array([0]))[0]): table.keys}


def _products(pairs: Iterable[Iterable[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Return the pairs of weights of independent outputs."""
    found = Counter({(1, 1): 1})
    for pair in pairs:
        following = Counter[tuple[int, int]]()
        for (p, q), times in found.items():
            for a, b in pair:
                following[p * a, q * b] += times
        found = following
    # Outputs with the same weights are as one, with as much of both
    return [(p * times, q * times) for (p, q), times in found.items() if p or q]


def _chi_squared(rhos: Iterable[Floats], keys: int) -> float:
    """Return the sum over f != 0 of the products of some rho(f)."""
    return float(np.prod([np.ones(keys), *rhos], axis=0)[1:].sum())


def _chi_squared_of_margins(rho: Floats, rows: int, columns: int) -> float:
    """Return a bound on the chi squared of the keys of all rows and columns, given the cells.

    Shapes: `rho` (keys,), a bound on that of every cell.
    """
    # A character is a frequency f_i of each row and g_j of each column, up to (f + t, g - t); its
    # mean squared coefficient is the product of rho(f_i + g_j). With
    #     sigma(g) = sum over t of product over j of rho(t + g_j)
    # chi squared + 1 is the sum of sigma(g)^rows over g, over K. By a shift the commonest of the
    # g_j is 0; let it be so for n of them. For n = columns sigma is known. For others there are two
    # bounds. Hoelder's inequality, with T(d) = sum over t of rho(t)^n rho(t + d)^(columns - n):
    #     sigma(g) <= product over g_j != 0 of T(g_j)^(1 / (columns - n));
    # and as no value occurs more than n times, sigma(g) <= K times the product of the largest
    # values of rho, each taken n times.
    keys = len(rho)
    positive = np.maximum(rho, 1e-300)
    shifted = positive[(np.arange(keys)[:, None] + np.arange(keys)) % keys]  # [d, t]
    descending = np.sort(np.log(positive))[::-1]
    total = math.expm1(min(700.0, rows * math.log1p(float((positive[1:] ** columns).sum()))))
    for n in range(-(-columns // keys), columns):
        rest = columns - n
        inner = (shifted[1:] ** rest) @ (positive**n)
        by_hoelder = rest * math.log(float((inner ** (rows / rest)).sum()))
        largest = np.repeat(descending, n)[:columns].sum() + math.log(keys)
        by_size = rest * math.log(keys - 1) + rows * float(largest)
        exponent = math.log(comb(columns, n)) + min(by_hoelder, by_size)
        total += math.exp(min(700.0, exponent))
    return total


# ------------------------------------------------------------------------------------------------
# The best guess of one cell.


@dataclass(frozen=True)
class CellGuess:
    """How well one cell can be told from all cells and their total, all counts alike before.

    Attributes
    ----------
    right, certain : Fraction
        The chances that the best guess of a cell is right, and that only one count is possible.
    right_if_independent, certain_if_independent : Fraction
        The same if the noise of the total did not depend on that of the cells.
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
                moved = _convolved(weights, members)
                following[summed + v] = following.get(summed + v, 0) + moved
        others = following
    sums = {w: int(weights.sum()) for w, weights in others.items()}
    joint, alone = (defaultdict[int, Counter[int]](Counter) for _ in range(2))
    for v, members in sets.items():
        for w, weights in others.items():
            both = _convolved(members, weights)
            for u, total in sets.items():
                # Known is the noise of the total less that of the cells
                joint[u - v - w][v] += int(both[total == 1].sum()) * table.keys
                alone[u - v - w][v] += int(members.sum()) * sums[w] * int(total.sum())
    everything = table.keys ** (cells + 1)
    chances = []
    for found in (joint, alone):
        seen = [[weight for weight in each.values() if weight] for each in found.values()]
        seen = [each for each in seen if each]
        chances.append(Fraction(sum(map(max, seen)), everything))
        chances.append(Fraction(sum(each[0] for each in seen if len(each) == 1), everything))
    return CellGuess(*chances)


def _convolved(
    one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """Return the cyclic convolution of two arrays of integers of at least 0, exactly."""
    # As the product of two long integers, which have a number in each so many bits (Kronecker)
    keys = len(one)
    size = (int(one.max()) * int(other.max()) * keys).bit_length() // 8 + 1
    numbers = (
        int.from_bytes(b"".join(int(x).to_bytes(size, "little") for x in each), "little")
        for each in (one, other)
    )
    product_ = math.prod(numbers).to_bytes(2 * keys * size, "little")
    flat = [int.from_bytes(product_[k * size :][:size], "little") for k in range(2 * keys)]
    return np.array([flat[k] + flat[k + keys] for k in range(keys)], dtype=object)
