"""The Wasserstein-2 distance of two distributions over the cells of a grid, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

MOST_FLOWS = 1 << 19
"""How many flows the linear program may have: that of 64 x 64 cells."""


_NEGLIGIBLE = 1e-12
"""Of all mass: cells with less have none."""


def wasserstein(first: npt.ArrayLike, second: npt.ArrayLike, cell: float = 1.0) -> float:
    """How far one distribution is from another: the Wasserstein-2 distance.

    The root of the least mean squared distance by which the first is moved to become the second,
    from middles of cells to middles of cells. Squared distances are sums over both axes, so that
    mass may be moved along one axis first and then along the other (Auricchio et al., NeurIPS
    2018): X Y (X + Y) flows instead of X^2 Y^2, in a linear program that HiGHS solves.

    Parameters
    ----------
    first, second : array_like
        Shape (X, Y) both: at least 0, of the same positive sum; they are brought to sum 1.
    cell : float, default 1
        The side of a cell: the distance is in its unit.

    Returns
    -------
    float
        At least 0.

    Raises
    ------
    ValueError
        Shapes that differ or are not of two axes, negative or not finite numbers, sums that differ
        by more than one part in 10^6, or more than `MOST_FLOWS` flows.

    Examples
    --------
    >>> wasserstein([[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]], cell=500)
    707.1067811865476
    """
    p, q = (np.asarray(one, dtype=np.float64) for one in (first, second))
    if p.ndim != 2 or p.shape != q.shape:
        raise ValueError(f"expected two arrays of one shape (X, Y), got {p.shape} and {q.shape}")
    if not all(np.isfinite(one).all() and (one >= 0).all() and one.sum() > 0 for one in (p, q)):
        raise ValueError("frequencies must be finite, at least 0, and not all 0")
    if not np.isclose(p.sum(), q.sum(), rtol=1e-6, atol=0):
        raise ValueError(f"both must have the same sum, got {p.sum():g} and {q.sum():g}")
    across, along = p.shape
    if across * along * (across + along) > MOST_FLOWS:
        raise ValueError(
            f"{across} x {along} cells have {across * along * (across + along)} flows, more than"
            f" {MOST_FLOWS}: join cells first"
        )
    cells = across * along
    p, q = (np.where(one > _NEGLIGIBLE * one.sum(), one, 0.0) for one in (p, q))
    p, q = cells * p / p.sum(), cells * q / q.sum()  # about 1, to which the solver's tolerance fits
    # From (x, y) to (z, y), and from there to (z, w), where there is something to move, or to hold
    x, z, y = (axis.ravel() for axis in np.indices((across, across, along)))
    x, z, y = (axis[p[x, y] > 0] for axis in (x, z, y))
    u, v, w = (axis.ravel() for axis in np.indices((across, along, along)))
    u, v, w = (axis[q[u, w] > 0] for axis in (u, v, w))
    left, right = np.arange(len(x)), len(x) + np.arange(len(u))
    rows = [x * along + y, cells + z * along + y, cells + u * along + v, 2 * cells + u * along + w]
    signs = np.repeat([1.0, 1.0, -1.0, 1.0], [len(x), len(x), len(u), len(u)])
    columns = np.concatenate([left, left, right, right])
    balance: Any = scipy.sparse.csr_array(
        (signs, (np.concatenate(rows), columns)), shape=(3 * cells, len(x) + len(u))
    )
    held = np.concatenate([p.ravel(), np.zeros(cells), q.ravel()])
    lengths = np.concatenate([(x - z) ** 2, (v - w) ** 2]).astype(np.float64)
    # One balance follows from the others, and rounding must not contradict it: the largest
    kept = np.arange(3 * cells) != 2 * cells + int(np.argmax(q))
    found = scipy.optimize.linprog(lengths, A_eq=balance[kept], b_eq=held[kept], method="highs")
    if found.status:
        raise ArithmeticError(f"the linear program was not solved: {found.message}")
    return float(cell * np.sqrt(max(found.fun or 0.0, 0.0) / cells))
