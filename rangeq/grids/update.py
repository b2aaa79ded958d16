"""Answers to queries of many attributes from those of pairs, by weighted update (section 4.4, Algorithm 2)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from frequency.channel import Floats

_MOST_ROUNDS = 100
_NUMBERS = 1 << 20
"""How many numbers to work on at a time."""


def weighted_update(quadrants: Floats, attributes: int, tolerance: float) -> tuple[Floats, Floats]:
    """The answers of queries over ``attributes`` attributes, from those of all their pairs.

    Each query has 2^lambda parts: the records that are inside or outside of each of its ranges. Beginning with equal parts, those
    which make up a quadrant of a pair are scaled such that they sum to the quadrant's answer, pair after pair, until a round
    changes the parts of no query by more than ``tolerance`` in sum (or 100 rounds, for quadrants that no distribution has).

    Algorithm 2 as printed scales to the answer of the query's own quadrant only, and leaves the sum of all parts free: three full
    ranges would then have the answer 0.78. Here all four quadrants of a pair count, as in the constraints of appendix A.8, whose
    distribution of most entropy is what this converges to.

    Parameters
    ----------
    quadrants
        Shape (queries, pairs, 2, 2), non-negative: for the pairs (j, k), j < k, in the order of ``itertools.combinations``;
        index 0 of the last two axes is inside of the range.

    Returns
    -------
    The parts, shape (queries, 2, ..., 2), and the mean over queries of the change in each round.
    """
    m, shape = len(quadrants), (2,) * attributes
    parts = np.full((m, *shape), 0.5**attributes)
    changes: list[float] = []
    step = max(1, _NUMBERS >> attributes)
    for start in range(0, m, step):
        block = slice(start, start + step)
        for round_, change in enumerate(_update(parts[block], quadrants[block], attributes, tolerance)):
            if round_ == len(changes):
                changes.append(0.0)
            changes[round_] += change / m
    return parts, np.array(changes)


def _update(parts: Floats, quadrants: Floats, attributes: int, tolerance: float) -> list[float]:
    """The same in place; returns the sum over queries of the change of each round."""
    pairs = list(combinations(range(attributes), 2))
    others = [tuple(axis + 1 for axis in range(attributes) if axis not in pair) for pair in pairs]
    active, changes = np.arange(len(parts)), []
    z = parts.copy()
    for _ in range(_MOST_ROUNDS):
        before = z.copy()
        for number, axes in enumerate(others):
            held = z.sum(axis=axes, keepdims=True)
            wanted = quadrants[active, number].reshape(held.shape)
            z *= np.divide(wanted, held, out=np.ones_like(held), where=held > 0)
        change = np.abs(z - before).reshape(len(z), -1).sum(axis=1)
        changes.append(float(change.sum()))
        going = change > tolerance
        parts[active[~going]] = z[~going]
        active, z = active[going], z[going]
        if not len(active):
            break
    parts[active] = z
    return changes
