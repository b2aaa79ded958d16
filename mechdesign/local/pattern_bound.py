"""An upper bound on the value of every pattern, where there are too many to price one by one.

A row q = 1 + (r - 1) b of the pattern b has the value u'S u - l'u with u = q / (p'q). It is at most
T if, and only if, the quadratic form q'(S - (l p' + p l') / 2 - T p p') q is at most 0. That form
is, up to a constant, b'A b + a'b. Among the patterns with m inputs it is at most the sum of the m
largest of A_xx + a_x + the m - 1 largest other entries of row x (Gilmore 1962, Lawler 1963). Branch
and bound tightens that: the patterns of the largest bound are parted by whether they have an input.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.base.arrays import Floats
from mechdesign.local.a_optimality import Criterion
from mechdesign.local.patterns import Patterns

_CLASSES = 64
"""So many classes of patterns are parted at a time."""


def most_valued(
    criterion: Criterion,
    slope: Floats,
    multipliers: Floats,
    standing: float,
    close: float,
    rounds: int,
) -> float:
    """An upper bound on `Criterion.priced` over all patterns with both a zero and a one.

    Parameters
    ----------
    criterion : Criterion
        The prior and the ratio.
    slope : numpy.ndarray of float64
        Shape (domain, domain), symmetric.
    multipliers : numpy.ndarray of float64
        Shape (domain,).
    standing : float
        A guess of the result; the bound is no lower, and best where the guess is right.
    close : float
        Stop as soon as the bound exceeds the guess by no more.
    rounds : int
        Stop after so many rounds of branch and bound.
    """
    k, extra, p = criterion.domain, criterion.ratio - 1, criterion.prior
    form = slope - (np.outer(multipliers, p) + np.outer(p, multipliers)) / 2
    form -= standing * np.outer(p, p)
    quadratic, linear, constant = extra**2 * form, 2 * extra * form.sum(axis=1), float(form.sum())
    lightest = (1 + extra * np.cumsum(np.sort(p))) ** 2

    def excess(held: Patterns, free: Patterns, left: npt.NDArray[np.int64]) -> Floats:
        """How much the patterns of each class exceed the guess at most."""
        value = _most(quadratic, linear, held, free, left) + constant
        result: Floats = value / lightest[held.sum(axis=1) + left - 1]
        return result

    # A class: the patterns that have all inputs held, and so many of those that are free
    left = np.arange(1, k)
    held, free = np.zeros((k - 1, k), dtype=np.bool_), np.ones((k - 1, k), dtype=np.bool_)
    over = excess(held, free, left)
    for _ in range(rounds):
        single = (left == 0) | (free.sum(axis=1) == left)  # whose bound is its value
        close = max(close, float(over[single].max(initial=close)))
        kept = (over > close) & ~single
        held, free, left, over = held[kept], free[kept], left[kept], over[kept]
        if not len(over):
            break
        order = np.argsort(-over)
        parted, rest = order[:_CLASSES], order[_CLASSES:]
        # By the input that is worth the most
        gains = np.diag(quadratic) + linear + 2 * held[parted] @ quadratic
        item = np.argmax(np.where(free[parted], gains, -np.inf), axis=1)
        at = np.arange(len(parted)), item
        without, within = free[parted].copy(), held[parted].copy()
        without[at], within[at] = False, True
        new = (
            np.concatenate([within, held[parted]]),
            np.concatenate([without, without]),
            np.concatenate([left[parted] - 1, left[parted]]),
        )
        bounds = np.minimum(excess(*new), np.tile(over[parted], 2))
        held, free, left, over = (
            np.concatenate([old[rest], part])
            for old, part in zip((held, free, left, over), (*new, bounds), strict=True)
        )
    return standing + float(over.max(initial=close))


def _most(
    quadratic: Floats,
    linear: Floats,
    held: Patterns,
    free: Patterns,
    left: npt.NDArray[np.int64],
) -> Floats:
    """An upper bound on b'A b + a'b for each class of patterns; -inf for those without any."""
    by_held = held @ quadratic
    base = (held * (by_held + linear)).sum(axis=1)
    own = np.where(free, np.diag(quadratic) + linear + 2 * by_held, -np.inf)
    others = np.where(free[:, None, :], quadratic, -np.inf)
    others[:, np.arange(len(linear)), np.arange(len(linear))] = -np.inf
    others = np.cumsum(-np.sort(-others, axis=2), axis=2)
    count = np.maximum(left - 2, 0)
    best = np.take_along_axis(others, count[:, None, None], axis=2)[:, :, 0]
    own = np.cumsum(-np.sort(-(own + np.where(left[:, None] >= 2, best, 0.0)), axis=1), axis=1)
    most = np.take_along_axis(own, np.maximum(left - 1, 0)[:, None], axis=1)[:, 0]
    result: Floats = base + np.where(left > 0, most, 0.0)
    return result
