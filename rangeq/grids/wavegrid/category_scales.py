"""Local terms of an ordered attribute with categories, of which few may be unlike all others.

Categories have no order: the functions of such an attribute raise one category each. The
coefficients of function i of the partner and category j are c_ij ~ N(0, (tau s_j)^2), where the
scales s_j maximise the evidence (MacKay 1992) together with a weak prior, as if one coefficient of
s_j = 1 had been seen. With one tau for all, the few categories that depend on the partner would be
shrunk as much as the many that do not.

The evidence is that of the best scales, not a mean over all: weak dependence is seen sooner, and
many categories that are independent of the partner are answered with more noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.base.arrays import Floats
from rangeq.grids.wavegrid.interactions import Pair
from rangeq.grids.wavegrid.local_terms import PairTerms
from rangeq.grids.wavegrid.shrinkage import SCALES, Shrinkage, scores_of
from rangeq.grids.wavegrid.term_kinds import TermBasis, each_cell, turned

_TURNS, _SETTLED = 20, 0.2
"""Steps towards the scales at most, and changes of the logarithms of their squares which none is
needed for.
"""


def category_terms(pair: Pair, ordered: Sequence[TermBasis], axis: int) -> PairTerms:
    """The kinds of terms of a pair with categories.

    Parameters
    ----------
    pair : Pair
        What is known of it.
    ordered : sequence of TermBasis
        The kinds of terms of the attribute that has an order.
    axis : int
        The place in the pair of the one that has none: 0 or 1.

    Returns
    -------
    PairTerms
        As many kinds.
    """
    unexplained = pair.unexplained(pair.independent().joint)
    squares = np.ones(len(pair.margins[axis]))  # s^2, from one kind to the next
    own, scaled = [], []
    for partner in ordered:
        for _ in range(_TURNS):
            before, squares = squares, _improved(pair, unexplained, partner, squares, axis)
            if np.abs(np.log(squares / before)).max() < _SETTLED:
                break
        own.append(_categories(pair, squares, axis)[0])
        scaled.append(0.5 * float((1 - np.log(squares) - 1 / squares).sum()))
    left, right = (own, ordered) if axis == 0 else (ordered, own)
    return PairTerms(left, right, np.array(scaled))


def _categories(pair: Pair, squares: Floats, axis: int) -> tuple[TermBasis, Floats]:
    """Functions of the categories with these scales, and each one's part in every function."""
    return turned(each_cell(pair.margins[axis]) * np.sqrt(squares), pair.grams[axis])


def _improved(
    pair: Pair, unexplained: Floats, partner: TermBasis, squares: Floats, axis: int
) -> Floats:
    """The squares of the scales after a step towards where the evidence is stationary.

    s_j^2 = sum c_ij^2 / tau^2 / sum (1 - variance / (tau s_j)^2), over i, for the likeliest tau:
    the denominator is how many coefficients of a category are known. No reports on halves are
    about categories, so that coefficients are told one by one.
    """
    own, parts = _categories(pair, squares, axis)
    both = (own, partner) if axis == 0 else (partner, own)
    shrinkage, scores = Shrinkage.of(pair, both), scores_of(unexplained, both)
    likeliest = int(np.argmax(shrinkage.evidence(scores)))
    mean, variance = (part[likeliest] for part in shrinkage.posterior(scores))
    if axis == 0:
        mean, variance = mean.T, variance.T
    tau = SCALES[likeliest]
    seen = ((mean / tau @ parts.T) ** 2).sum(axis=0)
    known = ((1 - variance / tau**2) @ (parts**2).T).sum(axis=0)
    return np.asarray((squares * seen + 1) / (np.maximum(known, 0.0) + 1))
