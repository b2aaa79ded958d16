"""A program with fewer rows and the same optimum, for the solver; what it proves is carried back to
the program as stated.

`mechanism_program` states privacy as it is defined, by a row for every output and every two
neighbours: about n^3 rows when all inputs are neighbours. Most of them follow from fewer:

- those of a pair of inputs, from a chain of pairs whose distances add up to no more than its own;
- in a row monotone table, P[i, j] >= alpha^d P[i, j'], from the same with j farther from output i,
  or with j' nearer to it;
- where s inputs are all within distance d of each other, the s (s - 1) rows of an output, from 2 s
  rows with one variable more, the floor: every P[i, j] is at least the floor, and the floor is at
  least alpha^d times every P[i, j].

Combining rows of the last kind so that the floor cancels gives back the rows of the statement
(Fourier and Motzkin's elimination), and so do their multipliers: hence a certificate never mentions
floors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechdesign._support.arrays import Integers
from mechdesign.formulation import PRIVACY, reflection
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.program import Program
from mechdesign.privacy import Privacy

_UNRELATED = 1 << 40
"""The distance of inputs that are not neighbours: more than any chain of neighbours can have."""


@dataclass(frozen=True)
class Clique:
    """Inputs, in order, that are all within ``distance`` of each other."""

    inputs: tuple[int, ...]
    distance: int


@dataclass(frozen=True)
class Compact:
    """A shorter program, and the way back.

    Its groups are those of ``stated``, with only the rows ``kept`` of each, and then two for each
    clique: above the floor, and below. Its variables are those of ``stated`` and then the floors:
    one for each output, clique by clique. ``symmetry`` is the central reflection of all of them.
    """

    program: Program
    symmetry: Integers
    stated: Program
    kept: tuple[Integers, ...]
    cliques: tuple[Clique, ...]
    inputs: int

    def restored(
        self, multipliers: Sequence[Mapping[int, Fraction]]
    ) -> dict[str, dict[int, Fraction]]:
        """Dual values of the program as stated, by name of group, from those of the shorter one, by
        number of group.

        They prove the same bound: every floor costs nothing, so at least as much is taken from the
        rows above it as from the rows below it, and what is taken from both at once is taken from a
        row of the statement.
        """
        stated = [
            {int(kept[r]): value for r, value in chosen.items()}
            for kept, chosen in zip(self.kept, multipliers[: len(self.kept)], strict=True)
        ]
        rows: dict[tuple[int, int], Fraction] = {}
        for c, clique in enumerate(self.cliques):
            above, below = multipliers[len(self.kept) + 2 * c : len(self.kept) + 2 * c + 2]
            for i in {r // len(clique.inputs) for r in below}:
                for (j, k), value in _matched(clique, i, above, below).items():
                    cell = i * self.inputs + j, i * self.inputs + k
                    rows[cell] = rows.get(cell, Fraction(0)) + value
        for group, chosen in zip(self.stated.constraints, stated, strict=True):
            if rows and group.kind == PRIVACY:
                for r, value in _found(group, rows, self.stated.variables):
                    chosen[r] = chosen.get(r, Fraction(0)) + value
        return {
            group.name: chosen
            for group, chosen in zip(self.stated.constraints, stated, strict=True)
        }


def compact(
    program: Program, outputs: int, inputs: int, privacy: Privacy, row_monotone: bool
) -> Compact:
    """The shorter form of a program of `mechanism_program`, which had these arguments;
    ``row_monotone`` if RM is among its rows.
    """
    pairs, lengths = privacy.pairs(inputs), privacy.distances(inputs)
    distance = np.full((inputs, inputs), _UNRELATED)
    distance[pairs[:, 0], pairs[:, 1]] = distance[pairs[:, 1], pairs[:, 0]] = lengths
    needed = _unchained(distance) if privacy.alpha < 1 else _connecting(distance)
    cliques = _cliques(distance, needed) if privacy.alpha < 1 and not row_monotone else []
    for clique in cliques:
        inside = np.ix_(clique.inputs, clique.inputs)
        needed[inside] &= distance[inside] != clique.distance
    shortest = np.where(needed, distance, _UNRELATED)
    groups, kept = list[Constraints](), list[Integers]()
    for group in program.constraints:
        rows = np.arange(len(group.cells))
        if group.kind == PRIVACY:
            (i, j), k = np.divmod(group.cells[:, 0], inputs), group.cells[:, 1] % inputs
            keep = needed[j, k]
            if row_monotone and privacy.alpha < 1:
                farther, nearer = np.clip(j + np.sign(j - i), 0, inputs - 1), k + np.sign(i - k)
                keep &= (farther == j) | (shortest[farther, k] > distance[j, k])
                keep &= (nearer == k) | (shortest[j, nearer] > distance[j, k])
            rows = np.flatnonzero(keep)
        groups.append(replace(group, cells=group.cells[rows]))
        kept.append(rows)
    at = np.arange(outputs * inputs).reshape(outputs, inputs)
    floors = program.variables + np.arange(len(cliques) * outputs).reshape(len(cliques), outputs)
    for c, clique in enumerate(cliques):
        cells, floor = at[:, list(clique.inputs)], floors[c][:, None]
        groups.append(Constraints.at_least(cells, floor).named(f"above floor {c}"))
        groups.append(
            Constraints.at_least(floor, cells, privacy.alpha**clique.distance).named(
                f"below floor {c}"
            )
        )
    mirrored = [
        Clique(tuple(inputs - 1 - j for j in reversed(each.inputs)), each.distance)
        for each in cliques
    ]
    # Without a mirror image of every clique the program is not symmetric, which
    # `reduce_by_symmetry` finds out.
    image = [cliques.index(each) if each in cliques else c for c, each in enumerate(mirrored)]
    symmetry = np.concatenate(
        [reflection(outputs, inputs, program.variables), floors[image, ::-1].ravel()]
    )
    lean = Program(program.cost + (Fraction(0),) * floors.size, tuple(groups))
    return Compact(lean, symmetry, program, tuple(kept), tuple(cliques), inputs)


def _unchained(distance: Integers) -> npt.NDArray[np.bool_]:
    """The pairs of neighbours without a detour that is no longer: chains of them make up all
    others, as distances are positive.
    """
    needed = distance < _UNRELATED
    for via in range(len(distance)):
        needed &= distance[:, via, None] + distance[None, via, :] > distance
    return needed


def _connecting(distance: Integers) -> npt.NDArray[np.bool_]:
    """The pairs to equate when neighbours must look alike: of one input and the next, where those
    are all neighbours.
    """
    needed = distance < _UNRELATED
    following = np.eye(len(distance), k=1, dtype=np.bool_)
    return needed & (following | following.T) if needed[following].all() else needed


def _cliques(distance: Integers, needed: npt.NDArray[np.bool_]) -> list[Clique]:
    """Cliques whose floors halve the rows that they stand for: among those that are all of the
    neighbours of some input.
    """
    found = dict[Clique, None]()
    for length in np.unique(distance[needed]).tolist():
        near = (distance <= length) | np.eye(len(distance), dtype=np.bool_)
        for row in near:
            inputs = np.flatnonzero(row)
            inside = np.ix_(inputs, inputs)
            saved = np.count_nonzero(needed[inside] & (distance[inside] == length))
            if saved >= 4 * len(inputs) and near[inside].all():
                found[Clique(tuple(inputs.tolist()), length)] = None
    return list(found)


def _matched(
    clique: Clique, output: int, above: Mapping[int, Fraction], below: Mapping[int, Fraction]
) -> dict[tuple[int, int], Fraction]:
    """The multipliers of P[i, j] >= alpha^d P[i, j'], by (j, j'), that the multipliers around one
    floor stand for.
    """
    size = len(clique.inputs)
    supply = [
        (j, above[r])
        for j, r in zip(clique.inputs, range(output * size, (output + 1) * size), strict=True)
        if r in above
    ]
    found: dict[tuple[int, int], Fraction] = {}
    for k, r in zip(clique.inputs, range(output * size, (output + 1) * size), strict=True):
        need = below.get(r, Fraction(0))
        while need > 0:
            j, left = supply.pop()
            taken = min(need, left)
            need -= taken
            if left > taken:
                supply.append((j, left - taken))
            if j != k:  # P[i, j] >= alpha^d P[i, j] goes without saying
                found[j, k] = found.get((j, k), Fraction(0)) + taken
    return found


def _found(
    group: Constraints, rows: Mapping[tuple[int, int], Fraction], variables: int
) -> list[tuple[int, Fraction]]:
    """Which of ``rows``, by the variables on their two sides, are in a group, and where."""
    codes = group.cells[:, 0] * variables + group.cells[:, 1]
    order = np.argsort(codes)
    wanted = np.array([a * variables + b for a, b in rows])
    place = order[np.minimum(np.searchsorted(codes, wanted, sorter=order), len(codes) - 1)]
    return [
        (r, value)
        for r, code, value in zip(place.tolist(), wanted, rows.values(), strict=True)
        if codes[r] == code
    ]
