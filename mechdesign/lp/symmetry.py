"""Orbit reduction by symmetry: a program in which the variables that a symmetry swaps are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Integers
from mechdesign.lp.basis import Program
from mechdesign.lp.constraints import Constraints, canonical


@dataclass(frozen=True)
class Reduced:
    """A reduced program: one variable for each orbit of a symmetry, and no constraint twice.

    Attributes
    ----------
    program : Program
        The smaller program.
    orbit : numpy.ndarray of int64
        Shape (variables,): for each variable of the original, the one of ``program`` it became.
    origin : tuple of numpy.ndarray of int64
        ``origin[g][r]`` is the constraint of ``program``, numbered through all groups, that stands
        for constraint r of group g; -1 if constraint r is vacuous, or repeats an earlier one.
    sign : tuple of numpy.ndarray of int64
        ``sign[g][r]`` is -1 if that constraint is constraint r negated, else 1.
    """

    program: Program
    orbit: Integers
    origin: tuple[Integers, ...]
    sign: tuple[Integers, ...]

    def expand(self, multipliers: Sequence[Fraction]) -> list[dict[int, Fraction]]:
        """Return dual values of the original program, by group, from those of the smaller one.

        Constraints that became one share its value equally. The result is feasible and has the
        same value, because the set of constraints merged into one is closed under the symmetry.
        """
        # Counted from -1 on, so that vacuous and repeated constraints fall into the bin that is cut
        # off.
        merged = np.bincount(np.concatenate(self.origin) + 1, minlength=len(multipliers) + 1)[
            1:
        ].tolist()
        share = [value / count for value, count in zip(multipliers, merged, strict=True)]
        return [
            {
                # Equal shares: multipliers that are constant on orbits pull equally at the
                # variables of an orbit, so that reduced costs that are at least 0 in sum are so for
                # each of them.
                r: sign * share[f]
                for r, (f, sign) in enumerate(zip(origin.tolist(), signs.tolist(), strict=True))
                if f >= 0 and share[f]
            }
            for origin, signs in zip(self.origin, self.sign, strict=True)
        ]


def reduce_by_symmetry(program: Program, symmetry: Integers) -> Reduced | None:
    """Return the orbit reduction by a symmetry (an involution); None for an asymmetric program.

    When costs and constraints are unchanged by it, averaging a mechanism with its image keeps
    feasibility and cost (Theorem 8), so the optimum stays the same. Whether they are unchanged is
    checked here, constraint by constraint.
    """
    if any(program.cost[v] != program.cost[w] for v, w in enumerate(symmetry.tolist())):
        return None
    size = len(program.constraints)
    before_and_after = list(
        canonical(
            [*program.constraints, *(group.relabelled(symmetry) for group in program.constraints)]
        )
    )
    # As sets of codes, regardless of order and group: the symmetry may carry a constraint into
    # another group.
    before, after = (
        {row.tobytes() for codes, _ in half for row in codes}
        for half in (before_and_after[:size], before_and_after[size:])
    )
    if before != after:
        return None
    # Orbits of an involution have one or two elements: the lesser stands for both.
    return _merged(program, np.minimum(np.arange(program.variables), symmetry))


def unreduced(program: Program) -> Reduced:
    """Return the program without vacuous and repeated constraints, as `reduce_by_symmetry` does."""
    return _merged(program, np.arange(program.variables))


def _merged(program: Program, representative: Integers) -> Reduced:
    _, orbit = np.unique(representative, return_inverse=True)
    cost = [Fraction(0)] * (int(orbit.max()) + 1)
    for value, v in zip(program.cost, orbit.tolist(), strict=True):
        # Summed, not averaged: the reduced variable is the common value of its orbit.
        cost[v] += value
    groups, origins, signs = list[Constraints](), list[Integers](), list[Integers]()
    # Reduced constraint -> its number, and the sign of the one that stands for it
    seen: dict[bytes, tuple[int, int]] = {}
    renamed = [group.relabelled(orbit) for group in program.constraints]
    repeated = _repeated(program.constraints)
    for group, again, (code, sign) in zip(renamed, repeated, canonical(renamed), strict=True):
        kept, origin = [], np.full(len(code), -1, dtype=np.int64)
        # A constraint that is in the program twice takes part once: shares are equal among
        # *different* constraints.
        for r in np.flatnonzero(~(group.vacuous() | again)).tolist():
            key = code[r].tobytes()
            if key not in seen:
                seen[key] = (len(seen), int(sign[r]))
                kept.append(r)
            origin[r] = seen[key][0]
            sign[r] *= seen[key][1]
        groups.append(replace(group, cells=group.cells[kept]))
        origins.append(origin)
        signs.append(sign)
    return Reduced(Program(tuple(cost), tuple(groups)), orbit, tuple(origins), tuple(signs))


def _repeated(groups: Sequence[Constraints]) -> list[npt.NDArray[np.bool_]]:
    """Return which constraints repeat an earlier one."""
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
