"""The linear program of a mechanism: privacy, loss and properties as exact linear constraints.

Variable ``i * inputs + j`` is P[i, j]; a worst-case loss adds one more, the largest expected cost,
at the end. Nothing here depends on how a program is solved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechdesign.base.linear_algebra import Integers
from mechdesign.index_table import IndexTable
from mechdesign.losses import Loss
from mechdesign.lp.basis import Program
from mechdesign.lp.constraints import Constraints
from mechdesign.privacy import Privacy
from mechdesign.properties import Property, irredundant
from mechdesign.values import Values

PRIVACY = "privacy"
"""The kind of the constraints that state privacy."""


def mechanism_program(
    outputs: Values | int,
    inputs: Values | int,
    privacy: Privacy,
    loss: Loss,
    properties: Iterable[Property],
) -> Program:
    """The linear program of the best mechanism with these properties (thesis 6.3, 6.4; Theorem 9).

    An integer k, of outputs or inputs, stands for the counts 0 .. k-1.

    Constraints that the properties asked for already imply are left out: CH under CM, RH under RM,
    WH under CH or CM, and the half of the privacy constraints that row monotonicity
    implies.
    """
    at = IndexTable(outputs, inputs)
    size = at.inputs.size
    groups = stated_constraints(at, privacy, properties)
    costs, weights = loss.costs(at.outputs, at.inputs), loss.weights(size)
    if min(map(min, costs)) < 0:
        raise ValueError("costs must be at least 0; add a constant to make them so")
    if not loss.worst_case:
        flat = tuple(
            cost * weight for row in costs for cost, weight in zip(row, weights, strict=True)
        )
        return Program(flat, tuple(groups))
    largest = at.size
    for j in range(size):
        cells = np.append(at[:, j], largest)[None, :]
        coefficients = (*(-row[j] * weights[j] for row in costs), Fraction(1))
        groups += _named(f"worst case {j}", [Constraints(cells, coefficients, Fraction(0), False)])
    return Program((Fraction(0),) * at.size + (Fraction(1),), tuple(groups))


def stated_constraints(
    at: IndexTable, privacy: Privacy, properties: Iterable[Property]
) -> list[Constraints]:
    """The named constraints of `mechanism_program`, without those of a worst-case loss."""
    wanted = irredundant(properties, at.aligned)
    groups = list(_named("column sums", [Constraints.equal_to(at.T, 1)]))
    row_monotone = at.aligned and any(p.short == "RM" for p in wanted)
    distances = np.unique(privacy.distances(at.inputs.size)).tolist()
    groups += _named(
        "privacy",
        [privacy_constraints(at, privacy, row_monotone, distance) for distance in distances],
    )
    for item in wanted:
        alone = sum(other.short == item.short for other in wanted) == 1
        groups += _named(item.short if alone else item.text, item.constraints(at, privacy))
    return groups


def privacy_constraints(
    at: Integers, privacy: Privacy, row_monotone: bool = False, distance: int = 1
) -> Constraints:
    """The privacy constraints of the neighbours j, j' at one ``distance`` d.

    They are P[i, j] >= alpha^d P[i, j'] and the reverse, or P[i, j] = P[i, j'] when alpha = 1. When
    the table is row monotone and the neighbours lie on one side of output i, only one of the two is
    needed: the nearer entry is at least as large as the farther one, hence at least alpha^d times
    it.
    """
    outputs, inputs = at.shape
    pairs = privacy.pairs(inputs)[privacy.distances(inputs) == distance]
    low, high = at[:, pairs[:, 0]], at[:, pairs[:, 1]]
    if privacy.alpha == 1:
        return replace(Constraints.equal(low, high), kind=PRIVACY)
    output = np.arange(outputs)[:, None]
    low_is_nearer = row_monotone & (output <= pairs[None, :, 0])
    high_is_nearer = row_monotone & (output >= pairs[None, :, 1])
    larger = np.concatenate([low[~low_is_nearer], high[~high_is_nearer]])
    smaller = np.concatenate([high[~low_is_nearer], low[~high_is_nearer]])
    found = Constraints.at_least(larger, smaller, privacy.alpha**distance)
    return replace(found, kind=PRIVACY)


def reflection(outputs: int, inputs: int, variables: int) -> Integers:
    """The central symmetry P[i, j] <-> P[n-i, n-j] (eq. 6.9) as a permutation of the variables.

    ``outputs`` and ``inputs`` are how many there are; ``variables`` of the program follow theirs.
    """
    size = outputs * inputs
    return np.concatenate([np.arange(size)[::-1], np.arange(size, variables)])


def _named(name: str, groups: Iterable[Constraints]) -> list[Constraints]:
    kept = [group for group in groups if len(group.cells)]
    return [group.named(name if len(kept) == 1 else f"{name} {k}") for k, group in enumerate(kept)]
