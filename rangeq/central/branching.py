"""The choice of a tree: a search for the branchings of least average variance."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mechdesign.base import Floats, Rational, whole
from mechdesign.noise.discrete import laplace_variance
from rangeq.central.hierarchy import CentralFlat
from rangeq.central.inputs import LARGEST_DOMAIN
from rangeq.core import BoxTree, LevelInference, pairs_in_blocks, queries, tree_over


class Branching(NamedTuple):
    """A tree and its average variance.

    Attributes
    ----------
    fanouts : tuple of int, or of tuple of int
        Into how many nodes are split, from the root down: as `Hierarchy.fanouts`.
    average_variance : float
        Over all boxes, in squared users: as `Hierarchy.sampled_average_variance`, or, for
        continuous noise, `Hierarchy.average_variance`.
    """

    fanouts: tuple[Any, ...]
    average_variance: float


class Branchings(NamedTuple):
    """The trees that `best_branching` found; ``print`` shows the table.

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
        names = [
            " x ".join(str(list(fanouts)) for fanouts in row.fanouts)
            if isinstance(row.fanouts[0], tuple)
            else str(list(row.fanouts))
            for row in self.table
        ]
        width = max(map(len, names))
        return "\n".join(
            f"{name:<{width}}  {row.average_variance:>14.4f}"
            for name, row in zip(names, self.table, strict=True)
        )


def best_branching(
    shape: int | Sequence[int],
    epsilon: float | Rational,
    padded: bool = True,
    alternatives: int = 10,
    exhaustive: bool = True,
    drawn: bool = True,
) -> Branchings:
    """The tree with the smallest average variance, of equal budgets and with inference.

    The tree that splits once, [size], is the flat release. The larger epsilon, the more cells it is
    the best for: noise in whole steps has less variance than continuous noise, most where all of
    epsilon is for one level.

    Of one attribute the search is exhaustive: over all lists that `Hierarchy` takes, integers being
    among them. Lists whose lower levels already cost more than the best trees are passed over with
    all that begins below like them. A domain of 2^12 takes a fraction of a second, one of 2^16 some
    seconds, one of 2^20 minutes; with ``padded=False`` all are quick.

    Of several attributes, and with ``exhaustive=False``, it is a local search, from the trees of
    all integers: what it finds is no worse than any of these. Of one attribute of 2^16 cells it
    takes a tenth of a second, and what it found was mostly the best, and at most a thousandth above
    it (the tests compare the two searches).

    Parameters
    ----------
    shape : int or sequence of int
        The number of cells of one attribute, or along each of several.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of the release.
    padded : bool, default True
        False: only lists whose product is the size, of one attribute.
    alternatives : int, default 10
        How many trees the table has at most, at least 1.
    exhaustive : bool, default True
        False: the local search, also of one attribute.
    drawn : bool, default True
        False: for continuous Laplace noise, as papers have it, whose variances epsilon scales
        alike.

    Returns
    -------
    Branchings
        The best tree, and the best alternatives to it.

    Raises
    ------
    ValueError
        For numbers out of range, and ``padded=False`` with several attributes or without the
        exhaustive search.

    Examples
    --------
    >>> best_branching(512, 1.0).best.fanouts, best_branching(512, 1.0, padded=False).best.fanouts
    ((24, 22), (32, 16))
    >>> best_branching((64, 64), 1.0).best.fanouts
    ((16, 4), (16, 4))
    """
    flat = CentralFlat(shape, epsilon)
    alternatives = whole(alternatives, "alternatives", 1, LARGEST_DOMAIN)
    exhaustive = exhaustive and len(flat.sizes) == 1
    if not padded and not exhaustive:
        raise ValueError("padded=False is for the exhaustive search, of one attribute")
    noise = partial(_drawn if drawn else _continuous, float(flat.given_epsilon))
    candidates: Sequence[tuple[Any, ...]]
    if exhaustive:
        candidates = _all_lists(flat.domain, padded, alternatives, noise)
    else:
        candidates = _local_search(flat.sizes, alternatives, noise)
        if len(flat.sizes) == 1:
            candidates = [only for (only,) in candidates]
    table = []
    for fanouts in candidates:
        tree = tree_over(flat.sizes, fanouts)
        table.append(Branching(fanouts, noise(tree.height) * _value(tree)))
    table.sort(key=lambda row: row.average_variance)
    return Branchings(table[0], tuple(table))


#: The variance of the noise of a level, for a number of levels.
_Noise: TypeAlias = Callable[[int], float]


def _drawn(epsilon: float, levels: int) -> float:
    return laplace_variance(epsilon / levels)


def _continuous(epsilon: float, levels: int) -> float:
    return 2 * (levels / epsilon) ** 2


def _value(tree: BoxTree) -> float:
    """The average variance, in units of that of the noise of a level."""
    return float(LevelInference(tree, [1.0] * tree.height).mean())


class Below(NamedTuple):
    """A tree's lower levels, with the top one of them: what matters of them for levels above."""

    fanouts: tuple[int, ...]  # from that level's nodes down
    size: Any  # the cells of a node
    inner: Any  # V of a node that is not the last: see `rangeq.core.tree_inference`
    last: Any  # and of the last
    square: Any  # the sum over all ranges of W^2 of the last node
    beyond: Any  # sum over its cells of weight in W times the cells from there on
    settled: Any  # the variances over all ranges in sum, were this the top level


def _all_lists(
    domain: int, padded: bool, alternatives: int, noise: _Noise
) -> list[tuple[int, ...]]:
    """The best lists of one attribute, by exhaustive search."""
    n = float(domain)
    # A heap of minus the variance: the worst of the best is first
    best: list[tuple[float, tuple[int, ...]]] = []
    # Enough trees are known to be this good, so nothing worse needs looking at.
    known = (
        sorted(
            noise(tree.height) * _value(tree) * queries(domain, "all ranges")
            for tree in {
                tuple(tree.fanouts): tree
                for tree in (tree_over((domain,), b) for b in range(2, min(domain, 256) + 1))
            }.values()
        )
        if padded
        else []
    )
    ceiling = known[alternatives - 1] * (1 + 1e-9) if len(known) >= alternatives else math.inf

    def worst() -> float:
        return min(ceiling, -best[0][0]) if len(best) == alternatives else ceiling

    def offer(fanouts: tuple[int, ...], value: float) -> None:
        if value <= worst() or len(best) < alternatives:
            (heapq.heappush if len(best) < alternatives else heapq.heappushpop)(
                best, (-value, fanouts)
            )

    def grow(below: Below) -> None:
        """All trees with these lower levels, and at least one level more."""
        levels, size = len(below.fanouts) + 2, int(below.size)
        sizes = np.arange(2 * size, domain, size)
        if not padded:
            sizes = sizes[domain % sizes == 0]
        if not len(sizes):
            return
        tops, least = _on_top(n, below, sizes.astype(np.float64))
        values = noise(levels) * tops.settled
        least = noise(levels + 1) * least * (1 - 1e-9)
        for k in np.flatnonzero((values <= worst()) | (least < worst())):
            fanouts = (int(sizes[k]) // size, *below.fanouts)
            offer((-(-domain // int(sizes[k])), *fanouts), float(values[k]))
            if least[k] < worst():
                grow(Below(fanouts, *(float(column[k]) for column in tops[1:])))

    cells = Below((), 1.0, 1.0, 1.0, n, 1.0, float(pairs_in_blocks(domain, 1, domain)))
    offer((domain,), noise(1) * float(cells.settled))
    grow(cells)
    return [fanouts for _, fanouts in sorted(best, reverse=True)]


def _on_top(n: float, below: Below, above: Floats) -> tuple[Below, Floats]:
    """Put a level of larger nodes on top, of all these sizes at once.

    Also return the least sum of the variances over all ranges with more levels on top of it.
    """
    size, fanout = below.size, above / below.size
    inner_nodes = np.ceil(n / above) - 1
    start = inner_nodes * above  # of the last node
    children = np.ceil(n / size) - inner_nodes * fanout
    run = (children - 1) * size  # its cells but those of its last child
    inner_sum = fanout * below.inner
    last_sum = (children - 1) * below.inner + below.last
    inner, last = inner_sum / (1 + inner_sum), last_sum / (1 + last_sum)
    each, part = below.inner / (last_sum * size), below.last / last_sum
    before = run * (2 * start + run + 1) / 2
    squares = pairs_in_blocks(n, above, inner_nodes) / above**2
    square = (
        each**2 * pairs_in_blocks(n, run, 1, start)
        + 2 * each * part * before * below.beyond
        + part**2 * below.square
    )
    beyond = each * (run * (n + 1) - before) + part * below.beyond
    # Were the counts of these nodes known
    known = below.settled - inner_sum * squares - last_sum * square
    settled = known + inner * squares + last * square
    # They are known at best as if every level above told each of them by itself, and the nodes of
    # such levels, each at most half the next, have 2 n / above of these in all.
    least = known + (squares + square) / (1 / np.minimum(inner, last) + 2 * n / above)
    return Below((), above, inner, last, square, beyond, settled), least


def _local_search(
    shape: tuple[int, ...], alternatives: int, noise: _Noise
) -> list[tuple[tuple[int, ...], ...]]:
    """Good lists of several attributes."""
    values: dict[tuple[tuple[int, ...], ...], float] = {}

    def value(lists: tuple[tuple[int, ...], ...]) -> float:
        if lists not in values:
            tree = tree_over(shape, lists)
            values[lists] = noise(tree.height) * _value(tree)
        return values[lists]

    starts: set[tuple[tuple[int, ...], ...]] = {tuple((n,) for n in shape)}
    for b in range(2, min(max(shape), 256) + 1):
        starts.add(tuple(zip(*tree_over(shape, b).fanouts, strict=True)))
    for lists in sorted(starts, key=value)[:4]:
        while (neighbour := min(_neighbours(shape, lists), key=value, default=lists)) != lists:
            if value(neighbour) >= value(lists):
                break
            lists = neighbour
    return sorted(values, key=value)[:alternatives]


def _neighbours(
    shape: tuple[int, ...], lists: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The lists with one number changed by one, or that of a level for all attributes."""
    height = len(lists[0])
    for level, step in product(range(1, height), (-1, 1)):
        for which in (*((i,) for i in range(len(shape))), tuple(range(len(shape)))):
            changed = []
            for i, (n, fanouts) in enumerate(zip(shape, lists, strict=True)):
                below = list(fanouts[1:])
                below[level - 1] += step * (i in which)
                changed.append((-(-n // math.prod(below)) if min(below) else 0, *below))
            splits = (max(level) > 1 for level in zip(*changed, strict=True))
            if min(map(min, changed)) >= 1 and all(splits):
                yield tuple(changed)
