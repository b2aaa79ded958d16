"""Which tree: an exhaustive search for the branchings of least average variance."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from mechdesign._support.numbers import Rational, whole
from rangeq.central.flat import CentralFlat
from rangeq.central.hierarchy import fanouts_of
from rangeq.central.inputs import LARGEST_DOMAIN
from rangeq.central.spectrum import tree_over, tree_spectrum
from rangeq.core.workload_sums import pairs_together, queries


class Branching(NamedTuple):
    """A tree and its average variance.

    Attributes
    ----------
    fanouts : tuple of int
        The number of children of nodes, from the root down.
    average_variance : float
        Over all ranges, in squared users: as `Hierarchy.average_variance`.
    """

    fanouts: tuple[int, ...]
    average_variance: float


class Branchings(NamedTuple):
    """What `best_branching` found; ``print`` shows the table.

    Attributes
    ----------
    best : Branching
        The best tree.
    table : tuple of Branching
        The best few, with it first.
    """

    best: Branching
    table: tuple[Branching, ...]

    def __str__(self) -> str:
        width = max(len(str(list(row.fanouts))) for row in self.table)
        return "\n".join(
            f"{list(row.fanouts)!s:<{width}}  {row.average_variance:>14.4f}" for row in self.table
        )


def best_branching(
    domain: int, epsilon: float | Rational, padded: bool = True, alternatives: int = 10
) -> Branchings:
    """The tree with the smallest average variance, of equal budgets and with inference.

    Exhaustive: over all lists that `Hierarchy` takes, integers being among them, and [domain],
    which is flat. Lists whose lower levels already cost more than the best trees are passed over
    with all that begins below like them. Epsilon scales all variances alike. A domain of 2^12 takes
    a fraction of a second, one of 2^16 some seconds, one of 2^20 minutes; with ``padded=False`` all
    are quick.

    Parameters
    ----------
    domain : int
        The number of cells.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of the release.
    padded : bool, default True
        False: only lists whose product is the domain.
    alternatives : int, default 10
        How many trees the table has at most, at least 1.

    Returns
    -------
    Branchings
        The best tree, and the best alternatives to it.

    Raises
    ------
    ValueError
        For numbers out of range.

    Examples
    --------
    >>> best_branching(512, 1.0).best.fanouts, best_branching(512, 1.0, padded=False).best.fanouts
    ((24, 22), (8, 8, 8))
    """
    flat = CentralFlat(domain, epsilon)
    whole(alternatives, "alternatives", 1, LARGEST_DOMAIN)
    domain, unit = flat.domain, 2 / flat.given_epsilon**2
    ranges = queries(domain, "all ranges")
    # By size; NaN for sizes that are not allowed, which no comparison lets through
    moments = np.full(domain + 1, np.nan)
    for size in range(1, domain + 1):
        if padded or domain % size == 0:
            moments[size] = pairs_together(domain, size) / (size * ranges)
    # A heap of minus the variance: the worst of the best is first
    best: list[tuple[float, tuple[int, ...]]] = []

    def value(fanouts: tuple[int, ...]) -> float:
        h = len(fanouts)
        tree = tree_over(domain, fanouts)
        return float(tree_spectrum(tree, [unit * h**2] * h).mean(tree.moments()))

    # Enough trees are known to be this good, so nothing worse needs looking at.
    known = (
        sorted(value(f) for f in {fanouts_of(domain, b) for b in range(2, min(domain, 256) + 1)})
        if padded
        else []
    )
    ceiling = (
        known[alternatives - 1] / float(unit) * (1 + 1e-9)
        if len(known) >= alternatives
        else math.inf
    )

    def worst() -> float:
        return min(ceiling, -best[0][0]) if len(best) == alternatives else ceiling

    def grow(below: tuple[int, ...], size: int, precision: float, settled: float) -> None:
        """Trees that end with the levels ``below``, whose topmost nodes have ``size`` cells.

        ``settled`` is the part of the variance from contrasts below those nodes, ``precision`` that
        of the contrasts above.
        """
        levels = len(below) + 1
        tree = (
            -(levels**2) * (settled + float(moments[size]) / precision),
            (-(-domain // size), *below),
        )
        (heapq.heappush if len(best) < alternatives else heapq.heappushpop)(best, tree)
        above = np.arange(2 * size, domain, size)
        lower = settled + (moments[size] - moments[above]) / precision
        # The contrasts further up cost at least this: the blocks there are smaller than the domain,
        # and each at most half the next.
        least = (
            (levels + 1) ** 2
            * (lower + moments[above] / (precision + above + 2 * domain))
            * (1 - 1e-9)
        )
        for k in np.flatnonzero(least < worst()):
            if least[k] < worst():
                grow(
                    (int(above[k]) // size, *below),
                    int(above[k]),
                    precision + float(above[k]),
                    float(lower[k]),
                )

    grow((), 1, 1.0, 0.0)
    table = [Branching(fanouts, value(fanouts)) for _, fanouts in sorted(best, reverse=True)]
    return Branchings(table[0], tuple(table))
