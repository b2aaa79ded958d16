"""Linear algebra on one thread.

The matrices here are small, of tens or hundreds of rows, and the algorithms take thousands of
steps. A BLAS library that splits each step among threads spends more time on synchronisation than
on arithmetic, above all if other programs use the same cores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

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
