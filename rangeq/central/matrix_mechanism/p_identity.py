"""Strategies for Laplace noise: all cells, and a few weighted sums of them, chosen by descent.

Under Laplace noise the columns of a strategy A have sums of absolute values of at most 1, and the
least error is no convex program. A p-identity strategy has the rows of [I; T] D^-1: the cells, p
rows T besides, and D so that every column has absolute values of sum 1 (McKenna, Miklau, Hay and
Machanavajjhala, PVLDB 11(10), 2018, section 5.2, with T >= 0). With G = W'W of the queries,
K = (I + T'T)^-1 and d = 1 + |T|'1, the sum of their variances is

    tr(G (A'A)^-1) = d'(G o K) d,    K = I - T'(I + T T')^-1 T.

Where G has entries below 0, so may T: then T is a difference of two parts >= 0, and |T| their sum.
The error is made small by projected quasi-Newton steps. That finds one of many local optima, and
the start decides which. At good ones for ranges and the like, the rows T are layers of overlapping
bumps along the cells, of about as many bumps in a layer as such a tree has nodes. So the starts are
such layers, besides random rows and trees: many of them take a few steps, and the best ones more.
The order of the cells is found from the queries (seriation: Atkins, Boman and Hendrickson, SIAM J.
Comput. 28(1), 1998), so that it does not matter how they are numbered. The best tree, with equal
budgets or the best ones, is such a strategy, too. So the result is no worse, if there are queries
that tell all cells apart and connect them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import itemgetter

import numpy as np
import scipy

from mechdesign.base import Floats, Integers, ProgressMeter, one_thread
from rangeq.central.branching import best_branching
from rangeq.central.matrix_mechanism.workload import QuerySet
from rangeq.central.mechanism import best_shares, equal
from rangeq.core import tree_over

# The numbers of bumps of the lowest layer, relative to the root of the number of cells.
_BUMPS = (0.35, 0.45, 0.6, 0.75, 0.9, 1.1, 1.35, 1.65, 2.1, 2.7)

_FANOUTS = (4, 8)  # the ratios of the numbers of bumps of two layers

# The numbers of rows of random starts, relative to the root of the number of cells.
_RANDOM_ROWS = (0.75, 1.5)

# The sum of the bumps of a layer at each cell, where 1 is the weight of the cell itself.
_HEIGHT = 0.8

_LEAST = 1e-12  # entries of G above minus it, relative to the largest, are taken for no less than 0

_LARGEST = 2.0**20  # the largest entry of T: a cell of so little weight beside it is rounded away

# Rounds of the search: the steps from each start, and the number of the best that go on.
_ROUNDS: tuple[tuple[int, int], ...] = ((30, 5), (50, 2), (100, 1), (300, 1))

# The numbers of cells for which the starts for ranges are known, the cells of one of their bumps,
# and the rounds from them. The tests compare them with the search.
_LEAST_RANGES, _MOST_RANGES, _CELLS_OF_BUMP = 24, 256, 19
_RANGES_ROUNDS: tuple[tuple[int, int], ...] = ((200, 1), (300, 1))

_FEW_CELLS = 512  # the number of cells up to which twice as many go on


def laplace_strategy(gram: Floats) -> Floats:
    """Return a strategy of small error under Laplace noise: shape (rows, cells).

    Cells between which no query distinguishes are measured together, and those of no query not at
    all. The same queries give the same strategy, on the same machine. Of 1024 cells it takes half a
    minute; what was searched last is remembered, as designs for several epsilons ask for it again.
    """
    if len(gram) > _FEW_CELLS:  # whose matrices are large
        return _laplace_strategy(gram)
    # Equal to its last bit, or it is another one
    return _remembered(len(gram), np.ascontiguousarray(gram, dtype=np.float64).tobytes()).copy()


@lru_cache(maxsize=16)
def _remembered(cells: int, gram: bytes) -> Floats:
    return _laplace_strategy(np.frombuffer(gram).reshape(cells, cells))


@one_thread
def _laplace_strategy(gram: Floats) -> Floats:
    first, together = merged_cells(gram)
    return _by_components(gram[np.ix_(first, first)]) @ together


def merged_cells(gram: Floats) -> tuple[Integers, Integers]:
    """Return one cell of all that no query tells apart, and which cells these are.

    Shapes (kinds,), (kinds, cells); cells of no query are in none.
    """
    # G = W'W has equal columns for two cells only where W has, as |W(e_i - e_j)|^2 = G_ii - 2 G_ij
    # + G_jj = 0: no query tells them apart, and one row for both keeps A invertible on the rest
    columns, place = np.unique(gram, axis=1, return_inverse=True)
    kinds = np.flatnonzero(columns.any(axis=0))
    together = (place == kinds[:, None]).astype(np.int64)
    return together.argmax(axis=1), together


def cells_in_order(gram: Floats) -> Integers:
    """Return `merged_cells`, those with similar queries beside each other."""
    parts = [cells[_order(gram[np.ix_(cells, cells)])] for cells in _components(gram)]
    return np.concatenate(parts)


def _components(gram: Floats) -> list[Integers]:
    """The cells that chains of queries connect."""
    count, part = scipy.sparse.csgraph.connected_components(gram != 0, directed=False)
    return [np.flatnonzero(part == number) for number in range(count)]


def _by_components(gram: Floats) -> Floats:
    """Return a strategy that measures cells apart that no chain of queries connects."""
    # Instead of a sum over several components, its parts can be measured, as they have no columns
    # in common, and so the same sums of columns
    solved: dict[bytes, Floats] = {}
    blocks = []
    for cells in _components(gram):
        block = gram[np.ix_(cells, cells)]
        # Blocks that are the same, as those of a product with an identity, are searched once
        if block.tobytes() not in solved:
            solved[block.tobytes()] = _p_identity(block)
        rows = solved[block.tobytes()]
        blocks.append(np.zeros((len(rows), len(gram))))
        blocks[-1][:, cells] = rows
    return np.vstack(blocks)


def _p_identity(gram: Floats) -> Floats:
    """A strategy for cells that the queries distinguish and connect."""
    cells = len(gram)
    # The error is in proportion to G: at trace 1 its logarithm and the tolerances of the descent
    # mean the same for every workload
    asked = gram / float(np.trace(gram))
    # The cells alone and the trees are candidates as they are, so that no descent can end above
    # them
    plain, rounds = [np.zeros((1, cells))], _ROUNDS
    pool = [*_for_ranges(asked)] if _LEAST_RANGES <= cells <= _MOST_RANGES else []
    if pool:
        rounds = _RANGES_ROUNDS
    elif cells > 1:
        plain += _trees(cells)
        pool = [*plain[1:], *_layers(asked), *_random(cells)]
    candidates = [(_error(rows[None], asked)[0], rows[None]) for rows in plain]
    pool = [_with_signs(rows, asked) for rows in pool]
    # Successive halving: the first few steps sort the starts well enough to spend the rest on the
    # best
    several = [kept if cells > _FEW_CELLS else 2 * kept for _, kept in rounds]
    sizes = [len(pool), 2 * min(several[0], len(pool))]  # with the heaviest row, and without
    for most in several[1:]:
        sizes.append(min(most, sizes[-1]))
    work = sum(steps * size for (steps, _), size in zip(rounds, sizes, strict=False))
    with ProgressMeter("strategy", work or None, "steps") as meter:
        for number, (steps, _) in enumerate(rounds):
            descended = sorted(
                (_descended(rows, asked, steps, meter.update) for rows in pool), key=itemgetter(0)
            )
            candidates += descended[:1]
            pool = [rows for _, rows in descended[: several[number]]]
            if number == 0:
                # The heaviest row joins after the first round: whether it helps shows only once the
                # others have settled, so the starts with it are not compared with those without
                heaviest = _with_signs(_heaviest(asked), asked)
                pool += [np.concatenate([rows, heaviest], axis=1) for rows in pool]
    best = _signed(min(candidates, key=itemgetter(0))[1])
    # Rows that the bound took to 0 measure nothing; dividing by the column sums is D^-1, so that
    # every column has the sum 1 that Laplace noise is scaled by
    strategy: Floats = np.vstack([np.eye(cells), best[best.any(axis=1)]])
    return strategy / np.abs(strategy).sum(axis=0)


def _trees(cells: int) -> Iterator[Floats]:
    """The rows of the best tree, if there is one, with equal budgets and with the best."""
    tree = tree_over((cells,), best_branching((cells,), 1, drawn=False).best.fanouts)
    place = np.arange(cells)
    for shares in (equal(tree.height), best_shares(tree)):
        # Relative to the budget of the leaves, as the cells' own rows are I. The root's total is
        # not measured
        levels = [
            (place // width == place[: -(-cells // width), None]) * float(share / shares[-1])
            for (width,), share in zip(tree.widths[1:-1], shares[:-1], strict=True)
        ]
        if levels:
            yield np.vstack(levels)


def _layers(gram: Floats) -> Iterator[Floats]:
    """Layers of overlapping bumps along the cells, in an order that is found from the queries."""
    cells = len(gram)
    counts = [math.ceil(share * math.sqrt(cells)) for share in _BUMPS]
    # A cell's place in the order, in the middle of its slot of 0 .. 1, so that bumps are functions
    # of a place and not of a number of a cell
    place = np.empty(cells)
    place[_order(gram)] = (np.arange(cells) + 0.5) / cells

    for bumps in sorted({count for count in counts if 2 <= count < cells}):
        yield _bumps(place, bumps)
        for fanout in _FANOUTS:
            if bumps >= 2 * fanout:
                yield np.vstack([_bumps(place, bumps), _bumps(place, round(bumps / fanout))])


def _bumps(place: Floats, count: int) -> Floats:
    """A layer of so many bumps over cells at these places in 0 .. 1."""
    middles = (np.arange(count)[:, None] + 0.5) / count
    # Above 0 everywhere: an entry that starts on its bound may be held there, and then bumps could
    # only shrink
    return np.asarray(_HEIGHT * np.maximum(1 - np.abs(place - middles) * count, 0.0) + 0.01)


def _for_ranges(gram: Floats) -> Iterator[Floats]:
    """The few starts that are known to do, if the queries are all ranges: a layer of bumps."""
    # From any height or width the descent comes to the same: how many bumps there are decides
    cells, order = len(gram), _order(gram)
    ranges = QuerySet("ranges", cells).gram
    if np.allclose(gram[np.ix_(order, order)], ranges / np.trace(ranges), rtol=1e-9, atol=0):
        place = np.empty(cells)
        place[order] = (np.arange(cells) + 0.5) / cells
        bumps = round(cells / _CELLS_OF_BUMP)
        # A little uneven: a symmetric start stays so, and the best is not always symmetric
        yield from (_bumps(place**1.1, count) for count in range(max(bumps - 1, 1), bumps + 2))


def _order(gram: Floats) -> Integers:
    """Return the cells, those with similar queries beside each other."""
    # By the eigenvector for the second eigenvalue of a Laplacian matrix. If cells have an order in
    # which similarities fall with the distance, as for ranges and prefixes, that is the one.
    if len(gram) == 1:
        return np.zeros(1, dtype=np.int64)
    sizes = np.sqrt(np.diag(gram))
    # As for correlations, so that cells of heavy queries are not similar to everything
    similar = np.abs(gram) / sizes[:, None] / sizes
    laplacian = np.diag(similar.sum(axis=1)) - similar
    # The Fiedler vector. Components are connected here, so the eigenvalue 0 is simple and the
    # second eigenvector is not constant
    _, vectors = scipy.linalg.eigh(laplacian, subset_by_index=[1, 1])
    return np.argsort(vectors[:, 0], kind="stable")


def _heaviest(gram: Floats) -> Floats:
    """Return a row in proportion to the eigenvector for the largest eigenvalue."""
    # For prefixes it falls along the cells. Whether it helps does not show in the first few steps.
    last = len(gram) - 1
    _, vectors = scipy.linalg.eigh(gram, subset_by_index=[last, last])
    row: Floats = np.abs(vectors[:, 0])[None]
    return row * (_HEIGHT / row.max())


def _random(cells: int) -> Iterator[Floats]:
    rng = np.random.default_rng(0)
    for share in _RANDOM_ROWS:
        yield rng.random((math.ceil(share * math.sqrt(cells)), cells))


def _with_signs(rows: Floats, gram: Floats) -> Floats:
    """Return the parts of T, (signs, rows, cells): rows >= 0, or with G's signs at the peak."""
    # One sign where G has no entries below 0, else the positive parts and the negative ones
    if gram.min() > -_LEAST * gram.max():
        return rows[None]
    # The sign of G between a cell and the peak of a row: what queries add up with one sign a row
    # should, too
    positive = gram[rows.argmax(axis=1)] >= 0
    return np.stack([rows * positive, rows * ~positive])


def _signed(parts: Floats) -> Floats:
    """The rows T, from their positive and negative parts."""
    return parts[0] if len(parts) == 1 else parts[0] - parts[1]


def _descended(
    start: Floats, gram: Floats, steps: int, report: Callable[[int], None]
) -> tuple[float, Floats]:
    """The error after some steps, and the rows; all steps are reported, of an early end too."""
    left = steps

    def done(xk: object) -> None:
        nonlocal left
        left -= 1
        report(1)

    def error(flat: Floats) -> tuple[float, Floats]:
        value, slope = _error(flat.reshape(start.shape), gram)
        # The logarithm, so that steps and `ftol` are relative to an error that may be of any size
        return math.log(value), slope.ravel() / value

    optimum = scipy.optimize.minimize(
        error,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=scipy.optimize.Bounds(0.0, _LARGEST),
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-8},
        callback=done,
    )
    report(left)
    return math.exp(optimum.fun), optimum.x.reshape(start.shape)


def _error(parts: Floats, gram: Floats) -> tuple[float, Floats]:
    """tr(G (A'A)^-1) for the parts of the rows T, and its gradient in them."""
    rows = _signed(parts)
    sums = 1 + parts.sum(axis=(0, 1))
    # Woodbury: I + T T' is rows by rows, a small part of cells by cells, and never singular, as its
    # eigenvalues are at least 1. By the push-through identity (I + T T')^-1 T = T K
    short = np.linalg.solve(np.eye(len(rows)) + rows @ rows.T, rows)  # T K
    scaled = (short * sums) @ gram  # T K D G
    # (G o K) d with K = I - T' T K, without G o K: row sums of T' times what is above
    slope = np.diag(gram) * sums - (rows * scaled).sum(axis=0)  # (G o K) d
    scaled *= sums
    # dK = -K (dT' T + T' dT) K gives the gradient -2 T K D G D K; the sums d = 1 + |T|'1 give 2 (G
    # o K) d, with the sign that the part has in T itself
    through = scaled - (scaled @ rows.T) @ short  # T K D G D K
    both = [slope - through, slope + through][: len(parts)]
    return float(sums @ slope), 2 * np.stack(both)
