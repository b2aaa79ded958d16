"""The linear program of a mechanism as data: exact rational sparse rows over non-negative
variables, folded by symmetry.

Variable ``i * inputs + j`` is P[i, j]; a worst-case loss adds one more, the largest expected cost,
at the end. Nothing here knows how a program is solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechdesign.losses import Loss
from mechdesign.lp.constraints import IntArray, Rows, canonical
from mechdesign.privacy import Privacy
from mechdesign.properties import Property, closure


@dataclass(frozen=True)
class Program:
    """Minimise ``sum cost[v] x[v]`` over x >= 0 subject to ``rows``."""

    cost: tuple[Fraction, ...]
    rows: tuple[Rows, ...]

    @property
    def variables(self) -> int:
        """How many there are."""
        return len(self.cost)


@dataclass(frozen=True)
class Folded:
    """A program in which variables that a symmetry swaps are one, and rows that then say the same
    are one.

    ``orbit[v]`` is the folded variable of variable v. ``origin[g][r]`` is the folded row (numbered
    through all groups) of row r of the g-th group, or -1 where folding made the row say 0 = 0;
    ``sign[g][r]`` is -1 where it is that row negated.
    """

    program: Program
    orbit: IntArray
    origin: tuple[IntArray, ...]
    sign: tuple[IntArray, ...]

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


def mechanism_program(
    outputs: int, inputs: int, privacy: Privacy, loss: Loss, properties: Iterable[Property]
) -> Program:
    """The program whose optimum is the best mechanism with these properties (thesis 6.3, 6.4;
    Theorem 9).

    Rows that the properties asked for already imply are left out: CH under CM, RH under RM, WH
    under CH or CM, and the half of the privacy rows that row monotonicity makes weaker than itself.
    """
    at = np.arange(outputs * inputs).reshape(outputs, inputs)
    wanted = closure(properties)
    groups = list(_named("column sums", [Rows.equal_to(at.T, 1)]))
    row_monotone = any(p.short == "RM" for p in wanted)
    distances = np.unique(privacy.distances(inputs)).tolist()
    groups += _named(
        "privacy", [privacy_rows(at, privacy, row_monotone, distance) for distance in distances]
    )
    for item in wanted:
        groups += _named(item.short, item.rows(at, privacy))
    costs, weights = loss.costs(outputs, inputs), loss.weights(inputs)
    if min(map(min, costs)) < 0:
        raise ValueError("costs must be at least 0; add a constant to make them so")
    if not loss.worst_case:
        flat = tuple(
            cost * weight for row in costs for cost, weight in zip(row, weights, strict=True)
        )
        return Program(flat, tuple(groups))
    largest = at.size
    for j in range(inputs):
        cells = np.append(at[:, j], largest)[None, :]
        coefficients = (*(-costs[i][j] for i in range(outputs)), Fraction(1))
        groups += _named(f"worst case {j}", [Rows(cells, coefficients, Fraction(0), False)])
    return Program((Fraction(0),) * at.size + (Fraction(1),), tuple(groups))


def privacy_rows(
    at: IntArray, privacy: Privacy, row_monotone: bool = False, distance: int = 1
) -> Rows:
    """P[i, j] >= alpha^d P[i, j'] and the reverse for neighbours j, j' at ``distance`` d; P[i, j] =
    P[i, j'] when alpha = 1.

    When the table is row monotone and the neighbours lie on one side of output i, only the farther
    entry needs its row: the nearer one is at least as large, hence at least alpha^d times the
    farther.
    """
    outputs, inputs = at.shape
    pairs = privacy.pairs(inputs)[privacy.distances(inputs) == distance]
    low, high = at[:, pairs[:, 0]], at[:, pairs[:, 1]]
    if privacy.alpha == 1:
        return Rows.equal(low, high)
    output = np.arange(outputs)[:, None]
    low_is_nearer = row_monotone & (output <= pairs[None, :, 0])
    high_is_nearer = row_monotone & (output >= pairs[None, :, 1])
    larger = np.concatenate([low[~low_is_nearer], high[~high_is_nearer]])
    smaller = np.concatenate([high[~low_is_nearer], low[~high_is_nearer]])
    return Rows.at_least(larger, smaller, privacy.alpha**distance)


def is_privacy(group: Rows) -> bool:
    """Whether a group of `mechanism_program` holds privacy rows; no property has a name that begins
    so.
    """
    return group.name.partition(" ")[0] == "privacy"


def reflection(outputs: int, inputs: int, variables: int) -> IntArray:
    """The central symmetry P[i, j] <-> P[n-i, n-j] (eq. 6.9) as a permutation of the variables."""
    size = outputs * inputs
    return np.concatenate([np.arange(size)[::-1], np.arange(size, variables)])


def fold(program: Program, symmetry: IntArray) -> Folded | None:
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


def _merged(program: Program, representative: IntArray) -> Folded:
    _, orbit = np.unique(representative, return_inverse=True)
    cost = [Fraction(0)] * (int(orbit.max()) + 1)
    for value, v in zip(program.cost, orbit.tolist(), strict=True):
        cost[v] += value
    rows, origins, signs = list[Rows](), list[IntArray](), list[IntArray]()
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


def _named(name: str, groups: Iterable[Rows]) -> list[Rows]:
    kept = [group for group in groups if len(group.cells)]
    return [group.named(name if len(kept) == 1 else f"{name} {k}") for k, group in enumerate(kept)]
