"""Local terms of pairs with categories, of which few may be unlike all others.

Categories have no order: the functions of such an attribute raise one category each. The
coefficients of function i of the partner and category j are c_ij ~ N(0, (tau s_j)^2), where the
scales s_j maximise the evidence (MacKay 1992) together with a weak prior, as if one coefficient of
s_j = 1 had been seen. With one tau for all, the few categories that depend on the partner would be
shrunk as much as the many that do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign._support.arrays import Floats
from rangeq.grids.wavegrid.interactions import Pair
from rangeq.grids.wavegrid.local_terms import SCALES, PairTerms, Shrinkage, scores_of
from rangeq.grids.wavegrid.term_kinds import TermBasis, each_cell, turned

_TURNS, _SETTLED = 20, 0.2
"""Steps towards the scales at most, and changes of the logarithms of their squares which none is
needed for.
"""


def category_terms(pair: Pair, ordered: tuple[Sequence[TermBasis] | None, ...]) -> PairTerms:
    """The kinds of terms of a pair with categories.

    Parameters
    ----------
    pair : Pair
        What is known of it.
    ordered : tuple of (sequence of TermBasis or None, sequence of TermBasis or None)
        The kinds of terms of both attributes, None for categories.

    Returns
    -------
    PairTerms
        As many kinds as the ordered attribute has, 1 if neither is ordered.
    """
    kinds = max((len(own) for own in ordered if own is not None), default=1)
    unexplained = pair.unexplained(pair.independent().joint)
    squares = [np.ones(len(mass)) for mass in pair.margins]  # s^2, from one kind to the next
    left, right, scaled = [], [], []
    for kind in range(kinds):
        both = [None if own is None else own[kind] for own in ordered]
        for _ in range(_TURNS):
            before = [each.copy() for each in squares]
            for axis, own in enumerate(ordered):
                if own is None:
                    squares[axis] = _improved(pair, unexplained, both, squares, axis)
            if all(
                np.abs(np.log(new / old)).max() < _SETTLED
                for new, old in zip(squares, before, strict=True)
            ):
                break
        first, second = _bases(pair, both, squares)
        left.append(first[0])
        right.append(second[0])
        scaled.append(sum(0.5 * float((1 - np.log(one) - 1 / one).sum()) for one in squares))
    return PairTerms(left, right, np.array(scaled))


def _bases(
    pair: Pair, both: Sequence[TermBasis | None], squares: Sequence[Floats]
) -> list[tuple[TermBasis, Floats]]:
    """Of both attributes, and the categories' part in each function."""
    return [
        turned(each_cell(mass) * np.sqrt(each), gram) if own is None else (own, np.eye(0))
        for own, mass, gram, each in zip(both, pair.margins, pair.grams, squares, strict=True)
    ]


def _improved(
    pair: Pair,
    unexplained: Floats,
    both: Sequence[TermBasis | None],
    squares: Sequence[Floats],
    axis: int,
) -> Floats:
    """The squares of an attribute's scales after a step towards where the evidence is stationary.

    s_j^2 = sum c_ij^2 / tau^2 / sum (1 - variance / (tau s_j)^2), over i: the denominator is how
    many coefficients of a category are known.
    """
    (first, _), (second, _) = bases = _bases(pair, both, squares)
    shrinkage, scores = Shrinkage.of(pair, (first, second)), scores_of(unexplained, (first, second))
    likeliest = int(np.argmax(shrinkage.evidence(scores)))
    mean, variance = (part[likeliest] for part in shrinkage.posterior(scores))
    if axis == 0:
        mean, variance = mean.T, variance.T
    tau, parts = SCALES[likeliest], bases[axis][1]
    seen = ((mean / tau @ parts.T) ** 2).sum(axis=0)
    known = ((1 - variance / tau**2) @ (parts**2).T).sum(axis=0)
    return np.asarray((squares[axis] * seen + 1) / (np.maximum(known, 0.0) + 1))
