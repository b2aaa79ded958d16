"""Types of arrays, BLAS on one thread, and factors of positive semidefinite matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

# ------------------------------------------------------------------------------------------------
# Names for the types of arrays.


Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Items: TypeAlias = npt.NDArray[np.int64]
"""Numbers of items, 0 .. domain-1."""
Booleans: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]
"""64 bits each."""


# ------------------------------------------------------------------------------------------------
# Linear algebra on one thread.
#
# The matrices here are small, of tens or hundreds of rows, and the algorithms take thousands of
# steps. A BLAS library that splits each step among threads spends more time on synchronisation than
# on arithmetic, above all if other programs use the same cores.


_LOCK = Lock()
_RUNNING: list[Any] = []
"""The limit once for every wrapped function that runs, in whatever thread."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that the BLAS of numpy and that of scipy use one thread while it runs.

    The limit applies to the whole process until the last of the wrapped functions that run at the
    same time returns. Other threads may run slower meanwhile; their results do not change.
    """

    @wraps(function)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # Only libraries that are loaded are limited, and scipy has its own.
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        with _LOCK:
            _RUNNING.append(_RUNNING[0] if _RUNNING else threadpool_limits(1, "blas"))
        try:
            return function(*args, **kwargs)
        finally:
            with _LOCK:
                limit = _RUNNING.pop()
                if not _RUNNING:
                    limit.restore_original_limits()

    return limited


# ------------------------------------------------------------------------------------------------
# Positive definite matrices that are positive definite in every order of summation.
#
# A product W W' is off by rounding, relative to the lengths of the rows of W; a difference of two
# matrices is off by any factor, and may be indefinite. So what is factored here are products.


_ROUNDED = 2e-13
"""How far entries of a product are off at most, relative to the roots of the diagonal's."""


def cholesky(product: Floats, diagonal: Floats) -> Floats:
    """Cholesky's factor of a product W W' plus a diagonal matrix, whatever their scales.

    Shapes: `product` (rows, rows), `diagonal` (rows,); returns (rows, rows).
    """
    size = len(product)
    scale = np.sqrt(np.diag(product) + diagonal)
    inner = (product + np.diag(diagonal)) / scale / scale[:, None]
    triangle = np.linalg.cholesky(inner + size * _ROUNDED * np.eye(size))
    return np.asarray(triangle * scale[:, None], dtype=np.float64)


def posterior_root(root: Floats, product: Floats) -> tuple[Floats, float]:
    """A root U of root (I + product)^-1 root', and the logarithm of the determinant in it.

    If the product is root' P root, U U' is the posterior covariance ((root root')^-1 + P)^-1, also
    where root has no inverse: positive semidefinite, and not by a difference.

    Shapes: `root` (coordinates, rank), `product` (rank, rank).
    """
    triangle = cholesky(product, np.ones(len(product)))
    half = np.asarray(np.linalg.solve(triangle, root.T).T, dtype=np.float64)
    return half, 2 * float(np.log(np.diag(triangle)).sum())
