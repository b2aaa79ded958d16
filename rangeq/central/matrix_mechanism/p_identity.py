"""Strategies for Laplace noise: all cells, and a few weighted sums of them, chosen by descent.

Under Laplace noise the columns of a strategy A have sums of absolute values of at most 1, and the
least error is no convex program. A p-identity strategy has the rows of [I; T] D^-1: the cells, p
rows T >= 0 besides, and D so that every column sums to 1 (McKenna, Miklau, Hay and
Machanavajjhala, PVLDB 11(10), 2018, section 5.2). With G = W'W of the queries, K = (I + T'T)^-1 and
d = 1 + T'1, the sum of their variances is

    tr(G (A'A)^-1) = d'(G o K) d,    K = I - T'(I + T T')^-1 T.

It is made small by projected quasi-Newton steps from several starts. A tree of equal budgets over
the cells is such a strategy, too: the best one is among the starts, so the result is no worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy

from mechdesign._support.arrays import Floats
from mechdesign._support.progress import ProgressMeter
from rangeq.central.branching import best_branching

_SHARES = (0.75, 1.5, 2.0)
"""How many rows random starts have, relative to the square root of the number of cells."""

_STEPS = 300


def laplace_strategy(gram: Floats) -> Floats:
    """A strategy of small error under Laplace noise.

    The same for the same queries, on the same machine. Of 1024 cells it takes most of a minute.
    Cells that no query tells apart are measured together, and those of no query not at all.

    Parameters
    ----------
    gram : numpy.ndarray of float64
        G, shape (cells, cells): symmetric, positive semidefinite, not 0.

    Returns
    -------
    numpy.ndarray of float64
        A, shape (rows, cells): entries >= 0, and every column of sum 1, or 0 for a cell that no
        query asks for. All queries follow from it.
    """
    columns, place = np.unique(gram, axis=1, return_inverse=True)
    kinds = np.flatnonzero(columns.any(axis=0))
    first = [int(np.argmax(place == kind)) for kind in kinds]
    strategy: Floats = _p_identity(gram[np.ix_(first, first)]) @ (place == kinds[:, None])
    return strategy


def _p_identity(gram: Floats) -> Floats:
    scale = float(np.trace(gram))
    asked = gram / scale
    best, least = np.zeros((0, len(gram))), 1.0  # the identity's is tr(G)
    with ProgressMeter("strategy", len(_SHARES) + 1, "starts") as meter:
        for start in _starts(len(gram)):
            for rows in (start, _descended(start, asked)):
                found = _error(rows, asked)[0]
                if found < least:
                    best, least = rows, found
            meter.update()
    below = best[best.any(axis=1)]
    strategy: Floats = np.vstack([np.eye(len(gram)), below])
    return strategy / strategy.sum(axis=0)


def _starts(cells: int) -> Iterator[Floats]:
    """The rows of the best tree, if there is one, and random ones."""
    if cells > 2:
        widths = [1]
        for fanout in reversed(best_branching((cells,), 1).best.fanouts[1:]):
            widths.append(widths[-1] * fanout)
        place = np.arange(cells)
        levels = [place // width == place[: -(-cells // width), None] for width in widths[1:]]
        if levels:
            yield np.vstack(levels).astype(np.float64)
    rng = np.random.default_rng(0)
    for share in _SHARES:
        yield rng.random((math.ceil(share * math.sqrt(cells)), cells))


def _descended(start: Floats, gram: Floats) -> Floats:
    def error(flat: Floats) -> tuple[float, Floats]:
        value, slope = _error(flat.reshape(start.shape), gram)
        return value, slope.ravel()

    found = scipy.optimize.minimize(
        error,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=scipy.optimize.Bounds(0.0, np.inf),
        options={"maxiter": _STEPS, "maxfun": 2 * _STEPS, "maxcor": 20},
    )
    rows: Floats = found.x.reshape(start.shape)
    return rows


def _error(rows: Floats, gram: Floats) -> tuple[float, Floats]:
    """tr(G (A'A)^-1) for the rows T, and its gradient in them."""
    sums = 1 + rows.sum(axis=0)
    short = np.linalg.solve(np.eye(len(rows)) + rows @ rows.T, rows)  # T K
    weighted = -(rows.T @ short)
    weighted[np.diag_indices(len(gram))] += 1
    weighted *= gram  # G o K
    slope = weighted @ sums
    scaled = short @ (sums[:, None] * gram * sums)  # T K D G D
    through = scaled - (scaled @ rows.T) @ short  # times K
    return float(sums @ slope), 2 * (slope - through)
