"""Which pairs of attributes matter: what a first round of reports tells for a second one.

A second round on fewer pairs has more reports on each than one on all pairs. With s^2 the mean
square by which answers about a pair differ from what the tree of the most dependent pairs implies
(from those of independent attributes, for the pairs of the tree itself), and u what a report tells
of that difference, answers still err by about s^2 J / (J + u N) after N reports on the pair, where
J coefficients are to be told: the number of pairs is the one of least sum.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Floats
from rangeq.grids.wavegrid.distributions import FittedJoint, corners
from rangeq.grids.wavegrid.estimate import WaveEstimate

_COEFFICIENTS = 4.0
"""J."""

_PARTNERS = 2
"""In how many pairs each attribute is, at least: with one it would have half as many reports as in
a round on all pairs, and answers about it alone would err more.
"""


def chosen_pairs(
    estimate: WaveEstimate, told_by_all: float, most: int | None = None
) -> tuple[tuple[int, int], ...]:
    """The pairs for a second round to ask about.

    Parameters
    ----------
    estimate : WaveEstimate
        Of the first round, at least 1 report.
    told_by_all : float
        What all reports of the second tell of an orthonormal function of cells: their number times
        `rangeq.grids.wavegrid.square_waves.information`.
    most : int, optional
        How many pairs at most, but for those with which each attribute is in two; None: as many as
        are predicted to err least.

    Returns
    -------
    tuple of (int, int)
        Places of attributes, in order.
    """
    keys, signals, told, before = [], [], [], []
    for key, joint in estimate.joints.items():
        if isinstance(joint, FittedJoint):
            other = joint.implied.cells if joint.implied else np.outer(*joint.margins)
            apart = joint.mean - other
            seen = joint.pair.grams[0] @ apart @ joint.pair.grams[1]
            keys.append(key)
            signals.append(float((corners(apart) ** 2).mean()))
            told.append(float((apart * seen).sum()))
            before.append(joint.pair.precision + joint.pair.halves.precision)
    order = np.argsort(-np.array(signals), kind="stable")
    ranked = [keys[k] for k in order]
    signal, seen_of, precision = (np.array(one)[order] for one in (signals, told, before))
    left = [
        _left(signal, seen_of, precision + np.where(np.arange(len(keys)) < m, told_by_all / m, 0.0))
        for m in range(1, len(keys) + 1)
    ]
    number = int(np.argmin(left)) + 1
    chosen = ranked[: number if most is None else min(number, most)]
    for place in range(len(estimate.attributes)):
        partners = [key for key in ranked if place in key]
        lacking = min(_PARTNERS, len(partners)) - sum(place in key for key in chosen)
        others = [key for key in partners if key not in chosen]
        chosen += others[: max(lacking, 0)]
    return tuple(sorted(chosen))


def _left(signal: Floats, told: Floats, precision: Floats) -> float:
    return float((signal * _COEFFICIENTS / (_COEFFICIENTS + told * precision)).sum())
