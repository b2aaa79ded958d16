"""What the counts of an aggregate are, for comparing collectors.

They are sums over independent reports; a `Sample` says how one report's vector varies.

Every channel says it of its own counts (`Channel.samples`); `frequency.collector_checks` tests it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Floats


class Sample(NamedTuple):
    """Sums of vectors over ``n`` independent reports.

    One report's vector has the covariance diag(spread) - common common'.

    Attributes
    ----------
    n : int
        The number of reports, at least 0.
    sums : numpy.ndarray of float64
        Shape (cells,): of the reports' vectors.
    spread : numpy.ndarray of float64
        Shape (cells,): see above.
    common : numpy.ndarray of float64, optional
        Shape (cells,): see above; None: 0.
    fixed : bool
        Whether every report's vector has the same sum. The covariance may then differ by a multiple
        of 1 1', and cells without ``common`` are kinds of reports.
    known : bool
        Whether ``spread`` is not estimated but known, the probabilities of the cells.
    view : int
        Samples of different views are not independent of each other.
    """

    n: int
    sums: Floats
    spread: Floats
    common: Floats | None = None
    fixed: bool = False
    known: bool = False
    view: int = 0


def cells(n: int, counts: npt.ArrayLike, view: int = 0) -> Sample:
    """How many of n reports are of each kind.

    Shapes: `counts` (cells,).
    """
    sums = np.asarray(counts, dtype=np.float64).ravel()
    return Sample(n, sums, sums / max(n, 1), fixed=True, view=view)


def public(n: int, counts: npt.ArrayLike, probabilities: Sequence[float] | Floats) -> Sample:
    """How many of n reports are of each kind, where the kinds' probabilities are known.

    Shapes: `counts` (cells,), `probabilities` (cells,).
    """
    return Sample(
        n,
        np.asarray(counts, dtype=np.float64).ravel(),
        np.asarray(probabilities, dtype=np.float64),
        None,
        True,
        True,
    )


def signs(n: int, counts: npt.ArrayLike, share: float) -> Sample:
    """The sums of the signs of each index.

    Shapes: `counts` (indices,).
    """
    sums = np.asarray(counts, dtype=np.float64).ravel()
    return Sample(n, sums, np.full(len(sums), share), sums / max(n, 1))


def bits(n: int, counts: npt.ArrayLike, q: float) -> Sample:
    """How many of n reports have each bit.

    A bit is 1 with probability ``q`` unless it is that of the user's item.

    Shapes: `counts` (bits,).
    """
    sums = np.asarray(counts, dtype=np.float64).ravel()
    mean = sums / max(n, 1)
    return Sample(n, sums, mean * (1 - mean) + (mean - q) ** 2, mean - q)
