"""Answers to queries of many attributes from those of pairs, by weighted update.

Multi-dimensional ranges, section 4.4, Algorithm 2.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mechdesign.base.arrays import Floats

_MOST_ROUNDS = 100
_NUMBERS = 1 << 20
"""How many numbers to work on at a time."""


def weighted_update(tables: Floats, attributes: int, tolerance: float) -> tuple[Floats, Floats]:
    """The answers of queries over ``attributes`` attributes, from those of all their pairs.

    Each query has 2^lambda parts: the records that are inside or outside of each of its ranges. (Or
    3^lambda.) Beginning with equal parts, those which make up a quadrant of a pair are scaled such
    that they sum to the quadrant's answer, pair after pair, until a round changes the parts of no
    query by more than ``tolerance`` in sum (or 100 rounds, for quadrants that no distribution has).

    Algorithm 2 as printed scales to the answer of the query's own quadrant only, and leaves the sum
    of all parts free: three full ranges would then have the answer 0.78. Here all four quadrants of
    a pair count, as in the constraints of appendix A.8, whose distribution of most entropy is what
    this converges to.

    Parameters
    ----------
    tables : numpy.ndarray of float64
        Shape (queries, pairs, s, s), non-negative: for the pairs (j, k), j < k, in the order of
        ``itertools.combinations``; each attribute has s sets of values, inside of the range (index
        0) and outside of it, or else below and above.

    Returns
    -------
    The parts, shape (queries, s, ..., s), and the mean over queries of the change in each round.
    """
    m, _, sets, _ = tables.shape
    shape = (sets,) * attributes
    # Queries last: sums over parts then run along them
    parts = np.full((*shape, m), float(sets) ** -attributes)
    last = np.moveaxis(tables, 0, -1)
    changes: list[float] = []
    step = max(1, _NUMBERS // sets**attributes)
    for start in range(0, m, step):
        block = slice(start, start + step)
        for round_, change in enumerate(
            _update(parts[..., block], last[..., block], attributes, tolerance)
        ):
            if round_ == len(changes):
                changes.append(0.0)
            changes[round_] += change / m
    return np.moveaxis(parts, -1, 0), np.array(changes)


def _update(parts: Floats, tables: Floats, attributes: int, tolerance: float) -> list[float]:
    """The same in place; returns the sum over queries of the change of each round."""
    pairs = list(combinations(range(attributes), 2))
    others = [tuple(axis for axis in range(attributes) if axis not in pair) for pair in pairs]
    active, changes = np.arange(parts.shape[-1]), []
    z, wanted = parts.copy(), np.ascontiguousarray(tables)
    for _ in range(_MOST_ROUNDS):
        before = z.copy()
        for number, axes in enumerate(others):
            held = z
            for axis in axes:  # one by one: sums do not depend on how many queries there are
                held = held.sum(axis=axis, keepdims=True)
            z *= np.divide(
                wanted[number].reshape(held.shape), held, out=np.ones(held.shape), where=held > 0
            )
        before -= z
        change = np.abs(before, out=before).reshape(-1, len(active)).sum(axis=0)
        changes.append(float(change.sum()))
        going = change > tolerance
        if going.all():
            continue
        parts[..., active[~going]] = z[..., ~going]
        active, z, wanted = active[going], z[..., going], wanted[..., going]
        if not len(active):
            break
    parts[..., active] = z
    return changes
