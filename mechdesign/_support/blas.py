"""Linear algebra on one thread.

Matrices here are small, of some tens or hundreds of rows, and there are thousands of steps: the
threads among which a BLAS library shares each of them wait for each other far longer than they
work, above all where other programs want the same cores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that BLAS, numpy's and scipy's, has one thread while it runs.

    Afterwards it has as many as before. The number is that of the process: what other threads
    compute meanwhile may be slowed down, but is not changed.
    """

    @wraps(function)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # Only what is loaded is limited, and scipy has a library of its own.
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        with threadpool_limits(1, "blas"):
            return function(*args, **kwargs)

    return limited
