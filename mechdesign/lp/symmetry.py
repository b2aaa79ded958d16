"""Orbit reduction by symmetry: a program in which the variables that a symmetry swaps are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechdesign._support.arrays import Integers
from mechdesign.lp.constraints import Rows, canonical
from mechdesign.lp.program import Program


@dataclass(frozen=True)
class Folded:
    """A program in which variables that a symmetry swaps are one, and rows that then say the same
    are one.

    ``orbit[v]`` is the folded variable of variable v. ``origin[g][r]`` is the folded row (numbered
    through all groups) of row r of the g-th group, or -1 where folding made the row say 0 = 0;
    ``sign[g][r]`` is -1 where it is that row negated.
    """

    program: Program
    orbit: Integers
    origin: tuple[Integers, ...]
    sign: tuple[Integers, ...]

    def unfold(self, multipliers: Sequence[Fraction]) -> list[dict[int, Fraction]]:
        """Dual values of the original program, by group, from those of the folded rows: shared
        equally among merged rows.

        They are feasible and have the same value, because the set of rows merged into one is closed
        under the symmetry.
        """
        merged = np.bincount(np.concatenate(self.origin) + 1, minlength=len(multipliers) + 1)[
            1:
        ].tolist()
        share = [value / count for value, count in zip(multipliers, merged, strict=True)]
        return [
            {
                r: sign * share[f]
                for r, (f, sign) in enumerate(zip(origin.tolist(), signs.tolist(), strict=True))
                if f >= 0 and share[f]
            }
            for origin, signs in zip(self.origin, self.sign, strict=True)
        ]


def fold(program: Program, symmetry: Integers) -> Folded | None:
    """The smaller program of mechanisms fixed by a symmetry (an involution), or None where the
    program is not symmetric.

    When costs and rows are unchanged by it, averaging a mechanism with its image keeps feasibility
    and cost (Theorem 8), so nothing is lost. Whether they are unchanged is checked here, row by
    row, not assumed.
    """
    if any(program.cost[v] != program.cost[w] for v, w in enumerate(symmetry.tolist())):
        return None
    size = len(program.rows)
    before_and_after = list(
        canonical([*program.rows, *(group.relabelled(symmetry) for group in program.rows)])
    )
    before, after = (
        {row.tobytes() for codes, _ in half for row in codes}
        for half in (before_and_after[:size], before_and_after[size:])
    )
    if before != after:
        return None
    return _merged(program, np.minimum(np.arange(program.variables), symmetry))


def unfolded(program: Program) -> Folded:
    """The program as it is but for rows that say nothing, in the shape that `fold` returns."""
    return _merged(program, np.arange(program.variables))


def _merged(program: Program, representative: Integers) -> Folded:
    _, orbit = np.unique(representative, return_inverse=True)
    cost = [Fraction(0)] * (int(orbit.max()) + 1)
    for value, v in zip(program.cost, orbit.tolist(), strict=True):
        cost[v] += value
    rows, origins, signs = list[Rows](), list[Integers](), list[Integers]()
    # Folded row -> its number, and the sign of the row that stands for it
    seen: dict[bytes, tuple[int, int]] = {}
    renamed = [group.relabelled(orbit) for group in program.rows]
    repeated = _repeated(program.rows)
    for group, again, (code, sign) in zip(renamed, repeated, canonical(renamed), strict=True):
        kept, origin = [], np.full(len(code), -1, dtype=np.int64)
        # A row that stands in the program twice takes part once: shares are equal among *different*
        # rows.
        for r in np.flatnonzero(~(group.says_nothing() | again)).tolist():
            key = code[r].tobytes()
            if key not in seen:
                seen[key] = (len(seen), int(sign[r]))
                kept.append(r)
            origin[r] = seen[key][0]
            sign[r] *= seen[key][1]
        rows.append(replace(group, cells=group.cells[kept]))
        origins.append(origin)
        signs.append(sign)
    return Folded(Program(tuple(cost), tuple(rows)), orbit, tuple(origins), tuple(signs))


def _repeated(groups: Sequence[Rows]) -> list[npt.NDArray[np.bool_]]:
    """Which rows say what an earlier row says."""
    seen: set[bytes] = set()
    repeated = []
    for codes, _ in canonical(groups):
        again = np.zeros(len(codes), dtype=np.bool_)
        for r, code in enumerate(codes):
            key = code.tobytes()
            again[r] = key in seen
            seen.add(key)
        repeated.append(again)
    return repeated
