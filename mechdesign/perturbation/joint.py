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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.accounting.pair_law import exp_below
from mechdesign.base import Floats, Integers, Rational, checked_counts, set_fields
from mechdesign.perturbation.disclosure import DeltaCurve
from mechdesign.perturbation.key_assignment import convolved, require_few_keys, spectrum
from mechdesign.perturbation.table import PerturbationTable
from mechdesign.privacy import exact_epsilon

_MOST_STEPS = 1 << 27  # that an exact joint law may take
_MOST_ASSIGNED = 1 << 40  # assignments of keys of an exact joint law
_ROUNDED = 2.0**-6  # how far floats may be from whole numbers of keys
_MOST_OUTPUTS = 20_000  # of other cells, whatever their order, of an exact curve of one axis

# What Fourier coefficients in floats may be off by, and the relative error of sums of powers of
# them: all terms are positive.
_FOURIER, _SUMS = 1e-12, 1 + 1e-6

# How many assignments of keys lead to each sum of keys
_Sums: TypeAlias = npt.NDArray[np.object_]


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
        Another shape, or a law that takes too long: keys^rows times the number of outputs of all
        columns are 2^27 at most, and keys^cells 2^40. That is 2 x 2 cells of three outputs with 256
        keys.
    """
    grid = _checked_grid(counts)
    both, cells = grid.ndim == 2, np.atleast_2d(grid)
    rows, columns = cells.shape
    keys, every = table.keys, tuple(range(rows))
    number = keys ** int((cells > 0).sum())
    if keys**rows > _MOST_STEPS or number > _MOST_ASSIGNED:
        raise ValueError(f"the joint law of {cells.size} cells with {keys} keys is too large")
    # The keys of rows are summed column by column, by Fourier transforms over their group: for each
    # outputs of the columns so far, how many assignments of keys lead to each sum.
    steps = [_column_steps(table, cells[:, j], both) for j in range(columns)]
    if math.prod(map(len, steps)) * keys**rows > _MOST_STEPS:
        raise ValueError(f"the joint law of {cells.size} cells with {keys} keys is too large")
    first, *others = [
        {outputs: np.fft.rfftn(mask, axes=every) for outputs, mask in step.items()}
        for step in steps
    ]
    states: dict[tuple[tuple[int, ...], ...], npt.NDArray[np.complex128]]
    states = {(outputs,): wave for outputs, wave in first.items()}
    for step in others:
        states = {
            (*seen, outputs): wave * other
            for seen, wave in states.items()
            for outputs, other in step.items()
        }
    axes = _axes(keys, rows)
    sums = cells.sum(axis=1)
    published = [n + table.noise(np.full(k.shape, n), k) for n, k in zip(sums, axes, strict=True)]
    total = int(sums.sum())
    published.append(total + table.noise(np.full(axes[0].shape, total), sum(axes)))
    kinds, place = np.unique(
        np.stack(published, axis=-1).reshape(-1, rows + 1), axis=0, return_inverse=True
    )
    law = defaultdict[tuple[int, ...], Fraction](Fraction)
    for seen, wave in states.items():
        found = np.fft.irfftn(wave, s=(keys,) * rows, axes=every)
        weights = np.rint(found)
        # Whole numbers of at most 2^40, of which floats are off by far less
        if np.abs(found - weights).max() > _ROUNDED:
            raise ArithmeticError("the numbers of keys are not known to the unit")
        inside = [outputs[i] for i in range(rows) for outputs in seen]
        columns_of = [outputs[rows] for outputs in seen] if both else []
        for kind, weight in zip(
            kinds.tolist(),
            np.bincount(place.ravel(), weights.ravel(), len(kinds)).tolist(),
            strict=True,
        ):
            if weight:
                beside = [*kind[:-1], *columns_of] if both else []
                law[(*inside, *beside, kind[-1])] += Fraction(int(weight), number)
    return dict(law)


def _axes(keys: int, rows: int) -> list[Integers]:
    """Return the key of each row: arrays of shape (keys,) * rows."""
    return list(np.meshgrid(*[np.arange(keys)] * rows, indexing="ij"))


def _checked_grid(counts: npt.ArrayLike) -> Integers:
    """Return the true counts of a table of one or two axes."""
    grid = checked_counts(counts, 1 << 40)
    if grid.ndim not in (1, 2) or not grid.size:
        raise ValueError(f"counts have shape (cells,) or (rows, columns), got {grid.shape}")
    return grid


def _column_steps(
    table: PerturbationTable, column: Integers, both: bool
) -> dict[tuple[int, ...], Floats]:
    """Return 1 for the keys that lead to each outputs of a column, its total last, else 0."""
    axes = _axes(table.keys, len(column))
    published = [n + table.noise(np.full(k.shape, n), k) for n, k in zip(column, axes, strict=True)]
    if both:
        total = int(column.sum())
        published.append(total + table.noise(np.full(axes[0].shape, total), sum(axes)))
    # The key of a cell of nobody is 0
    possible = np.all([(k == 0) | (n > 0) for n, k in zip(column, axes, strict=True)], axis=0)
    kinds, place = np.unique(
        np.stack(published, axis=-1).reshape(-1, len(published)), axis=0, return_inverse=True
    )
    place = place.reshape(axes[0].shape)
    masks = {tuple(kind): (place == k) & possible for k, kind in enumerate(kinds.tolist())}
    return {kind: mask.astype(np.float64) for kind, mask in masks.items() if mask.any()}


def joint_curve(
    table: PerturbationTable, counts: npt.ArrayLike, cell: int | tuple[int, int]
) -> DeltaCurve:
    """Return the exact curve of one person more in a cell of a table published with its margins.

    Parameters
    ----------
    table : PerturbationTable
        Of few keys; of at most 4,096 if the counts have one axis.
    counts : array_like of int
        As of `joint_law`: the table without the person. Of one axis there may be more cells, as
        long as they have few outputs: cells with the same row of the table are told apart only by
        how often each noise occurs.
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
    without = _checked_grid(counts)
    if without.ndim == 1:
        return _curve_of_a_line(table, without, cell)
    within = without.copy()
    within[cell] += 1
    laws = joint_law(table, without), joint_law(table, within)
    total = math.lcm(*(p.denominator for law in laws for p in law.values()))
    outputs = {*laws[0], *laws[1]}
    weights = [[int(law.get(o, Fraction(0)) * total) for law in laws] for o in outputs]
    return DeltaCurve.of_pairs([[(p, q) for p, q in weights]], total)


def _curve_of_a_line(
    table: PerturbationTable, counts: Integers, cell: int | tuple[int, ...]
) -> DeltaCurve:
    """Return the exact curve of a table of one axis, as of `joint_curve`."""
    require_few_keys(table)
    place = cell if isinstance(cell, int) else cell[0]
    own, total = int(counts[place]), int(counts.sum())
    others = [n for k, n in enumerate(counts.tolist()) if n and k != place % len(counts)]
    size = math.prod(
        comb(many + len(table.law(row)) - 1, many)
        for row, many in Counter(map(table.place, others)).items()
    )
    if size > _MOST_OUTPUTS:
        raise ValueError(f"{len(others)} cells beside another can publish too much: {size} ways")
    every = np.arange(table.keys)

    def classes(count: int) -> dict[int, npt.NDArray[np.object_]]:
        """Return the keys of each output of a count; a cell of nobody has key 0."""
        noise = table.noise(np.full(table.keys, count), every)
        alone = every == 0 if not count else np.ones(table.keys, dtype=np.bool_)
        # As many assignments of keys, whether or not the cell has one
        scale = 1 if count else table.keys
        found = {v: ((noise == v) & alone).astype(object) * scale for v in set(noise[alone])}
        return {count + int(v): members for v, members in found.items()}

    mine = classes(own), classes(own + 1)
    margins = [
        {n + int(v): noise == v for v in set(noise.tolist())}
        for n in (total, total + 1)
        for noise in [table.noise(np.full(table.keys, n), every)]
    ]
    if not total:  # nobody at all: the total has key 0
        margins[0] = {o: members & (every == 0) for o, members in margins[0].items()}
    weights: list[tuple[int, int]] = []
    for sums in _sums_of_keys(table, others):
        seen = [
            {
                (one, all_): int(joined[members].sum())
                for one, members_of_one in mine[k].items()
                for joined in [convolved(members_of_one, sums)]
                for all_, members in margins[k].items()
            }
            for k in (0, 1)
        ]
        weights += [(seen[0].get(o, 0), seen[1].get(o, 0)) for o in {*seen[0], *seen[1]}]
    return DeltaCurve.of_pairs([weights], table.keys ** (len(others) + 1))


def _sums_of_keys(table: PerturbationTable, others: Iterable[int]) -> Iterator[_Sums]:
    """Yield how many keys of some cells lead to each sum, for each noise that they may have.

    Cells with the same row are alike: noise in another order is counted, and not yielded again.
    """
    start = np.array([1] + [0] * (table.keys - 1), dtype=object)
    found: Iterator[_Sums] = iter([start])
    for row, many in Counter(map(table.place, others)).items():
        noise = table.noise(np.full(table.keys, row), np.arange(table.keys))
        powers = []
        for v in table.law(row):
            powers.append([start])
            for _ in range(many):
                powers[-1].append(convolved(powers[-1][-1], (noise == v).astype(object)))
        found = _with_alike(found, powers, many)
    yield from found


def _with_alike(
    found: Iterator[_Sums], powers: Sequence[Sequence[_Sums]], many: int
) -> Iterator[_Sums]:
    """Yield the sums of keys with so many cells more, for each number of them with each noise.

    ``powers[v][k]`` is how many keys of k cells with the noise v lead to each sum.
    """
    first, *rest = powers
    for sums in found:
        for k in range(many + 1) if rest else (many,):
            more = convolved(sums, first[k]) * comb(many, k) if k else sums
            if rest:
                yield from _with_alike(iter([more]), rest, many - k)
            else:
                yield more


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
        True counts, shape (cells,) or (rows, columns), without the person.

    Raises
    ------
    ValueError
        Another shape, or too many keys.
    """

    table: PerturbationTable
    counts: Integers

    def __post_init__(self) -> None:
        grid = _checked_grid(self.counts)
        require_few_keys(self.table)
        set_fields(self, counts=grid)

    @cached_property
    def independent(self) -> DeltaCurve:
        """The curve of the worst `covered` cell if the noise of all numbers were independent."""
        places = map(tuple, np.argwhere(self.covered).tolist())
        return self._curve_of({self._affected(place) for place in places})

    @cached_property
    def covered(self) -> npt.NDArray[np.bool_]:
        """The cells that bounds are about: of the shape of the counts.

        Whoever is counted there is not alone: the rest of the cell's row holds somebody, and so do
        the rest of its column and the rest of the table. Elsewhere a total has the key of a cell.
        """
        held = (self.counts > 0).astype(np.int64)
        if held.ndim == 1:
            covered: npt.NDArray[np.bool_] = held.sum() > held
            return covered
        row, column = held.sum(axis=1, keepdims=True), held.sum(axis=0, keepdims=True)
        beside = held.sum() - row - column + held
        inside: npt.NDArray[np.bool_] = (row > held) & (column > held) & (beside > 0)
        return inside

    def independent_of(self, cell: int | tuple[int, ...]) -> DeltaCurve:
        """Return the curve of one cell if the noise of cells and of totals were independent."""
        return self._curve_of({self._affected(cell if isinstance(cell, tuple) else (cell,))})

    def _affected(self, place: tuple[int, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return the weights of the outputs that a person in a cell changes."""
        changed = [int(self.counts[place]), int(self.counts.sum())]
        if self.counts.ndim == 2:
            changed += [int(self.counts[place[0]].sum()), int(self.counts[:, place[1]].sum())]
        return tuple(sorted(map(self._pair, changed)))

    def _curve_of(self, kinds: Iterable[tuple[tuple[tuple[int, int], ...], ...]]) -> DeltaCurve:
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
            # Rows and columns of nobody publish what is known
            cells = cells[cells.any(axis=1)][:, cells.any(axis=0)]
            if min(cells.shape, default=0) == 0:
                return 1.0
            largest = np.array([self._rho(int(n)) for n in np.unique(cells[cells > 0])]).max(axis=0)
            rows, columns = cells.shape
            # A cell of nobody has key 0, and rho = 1: as many of them in each line at most
            empty = max(int((cells == 0).sum(axis=axis).max()) for axis in (0, 1))
            # The keys of margins, given the cells; and of the total, given the other margins
            parts = [
                min(
                    _chi_squared_of_margins(largest, *size, empty)
                    for size in ((rows, columns), (columns, rows))
                )
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
        """Return bounds on the joint delta of one person, in whichever `covered` cell.

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
            An epsilon that is not finite or below 0, or no cell is covered.
        """
        if not self.covered.any():
            raise ValueError("in every cell a person is alone in its row, its column or the table")
        # |P(S) - x Q(S)| changes by the distance of P, and by x times that of Q. It does not become
        # smaller: of a person's cell, row, column and the rest let the keys be a, R, C and S. The
        # outputs that the person changes are functions of a, a + R, a + C and a + R + C + S, which
        # are independent and uniform. The others tell something of R, C and S, and as much with the
        # person as without: given them, delta is a mean of deltas, and convex, so that it is at
        # least that of the mean of the laws, independent noise.
        ratio = exp_below(exact_epsilon(epsilon))
        apart = (1 + ratio) * Fraction(self.dependence)
        middle = self.independent.at_ratio(ratio)
        return middle, min(Fraction(1), middle + apart)


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


def _chi_squared_of_margins(rho: Floats, rows: int, columns: int, empty: int = 0) -> float:
    """Return a bound on the chi squared of the keys of all rows and columns, given the cells.

    Shapes: `rho` (keys,), a bound on that of every cell but at most ``empty`` ones of each row and
    each column, which may have any.
    """
    # A character is a frequency f_i of each row and g_j of each column, up to (f + t, g - t); its
    # mean squared coefficient is the product of rho(f_i + g_j). With
    #     sigma_i(g) = sum over t of product over the cells j of row i of rho(t + g_j)
    # chi squared + 1 is the sum over g of the product of sigma_i(g), over K. By a shift the
    # commonest of the g_j is 0; let it be so for n of them. For n = columns sigma is known. For
    # others there are two bounds. Hoelder's inequality: let m be the number of cells of row i, at
    # least n - empty of which have g_j = 0, where it is not. With
    #     T_m(d) = sum over t of rho(t)^(n - empty) rho(t + d)^m
    # sigma_i(g) is at most the product over these cells of T_m(g_j)^(1 / m), or T_0 if there are
    # none; and each column has a cell in all rows but ``empty``, so that the sum over each g_j is
    # apart. And as no value occurs more than n times, sigma_i(g) is at most K times the product of
    # the largest values of rho, each taken n times.
    keys, least = len(rho), columns - empty
    positive = np.maximum(rho, 1e-300)
    shifted = positive[(np.arange(keys)[:, None] + np.arange(keys)) % keys]  # [d, t]
    powers: dict[int, Floats] = {}
    descending = np.sort(np.log(positive))[::-1]
    total = math.expm1(min(700.0, rows * math.log1p(float((positive[1:] ** least).sum()))))
    for n in range(-(-columns // keys), columns):
        rest, near = columns - n, positive ** max(0, n - empty)
        largest = np.zeros(keys - 1)
        for m in range(max(1, rest - empty), rest + 1):
            if m not in powers:
                powers[m] = shifted[1:] ** m
            largest = np.maximum(largest, (powers[m] @ near) ** (1 / m))
        by_hoelder = rest * math.log(
            float(np.where(largest < 1, largest ** (rows - empty), largest**rows).sum())
        )
        if rest <= empty:
            by_hoelder += rows * math.log(max(1.0, float(near.sum())))
        sizes = np.repeat(descending, n)[:least].sum() + math.log(keys)
        by_size = rest * math.log(keys - 1) + rows * float(sizes)
        exponent = math.log(comb(columns, n)) + min(by_hoelder, by_size)
        total += math.exp(min(700.0, exponent))
    return total
