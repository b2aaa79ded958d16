"""Sweeps: a function of many cases, computed in one process, in several, or on a Dask cluster.

Results do not depend on where and in which order cases are computed, if each case has its own
generator, made by `apart`.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from typing import Any

import numpy as np

from mechdesign.base import ProgressMeter


def add_arguments(parser: argparse.ArgumentParser, workers: int = 1, needs: str = "") -> None:
    """Add the arguments that say where to compute: ``--workers`` and ``--scheduler``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser that gets them.
    workers : int, default 1
        The default number of processes.
    needs : str, default ""
        What the cluster's workers must have besides the toolkit.
    """
    what = (
        "processes of this machine; more than one need loky, of the extra 'storage' (default:"
        " %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=workers, metavar="N", help=what)
    what = (
        "of a Dask cluster that computes instead; needs the extra 'distributed', and its workers"
        " this toolkit" + needs
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help=what)


def apart(rng: np.random.Generator, *case: object) -> np.random.Generator:
    """Return a generator for one case alone, the same wherever and whenever the case is computed.

    Parameters
    ----------
    rng : numpy.random.Generator
        Whose seed matters, and not what has been drawn from it.
    *case : object
        What tells the case from others, by its ``repr``.

    Returns
    -------
    numpy.random.Generator
    """
    seeds = rng.bit_generator.seed_seq
    assert isinstance(seeds, np.random.SeedSequence)
    seed = seeds.entropy
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(repr(case).encode())))


def sweep(
    function: Callable[..., Any],
    cases: Sequence[tuple[Any, ...]],
    workers: int = 1,
    scheduler: str | None = None,
    description: str | None = None,
    keep: Callable[[int, Any], object] | None = None,
) -> list[Any]:
    """Return ``function(*case)`` of every case, in their order; progress is on standard error.

    Parameters
    ----------
    function : callable
        What is computed. Functions of scripts, too, go to other processes.
    cases : sequence of tuple
        The arguments of each call.
    workers : int, default 1
        The number of processes. More than one need loky, of the extra "storage".
    scheduler : str, optional
        The address of a Dask scheduler, whose workers compute instead; needs the extra
        "distributed".
    description : str, optional
        What is done, for the progress.
    keep : callable, optional
        Called in this process with the place of a case and its result, as soon as that is there.

    Returns
    -------
    list

    Raises
    ------
    Exception
        What the first case that failed raised; cases that wait are not begun.
    """
    results: list[Any] = [None] * len(cases)
    with ProgressMeter(description or "cases", len(cases), "cases") as meter:

        def have(place: int, result: Any) -> None:
            results[place] = result
            if keep is not None:
                keep(place, result)
            meter.update()

        if scheduler is None and workers == 1:
            for place, case in enumerate(cases):
                have(place, function(*case))
            return results
        with (
            _processes(function, workers) if scheduler is None else _cluster(function, scheduler)
        ) as submit:
            futures = {submit(*case): place for place, case in enumerate(cases)}
            for future in as_completed(futures):
                have(futures[future], future.result())  # the first that fails ends the sweep
    return results


Submit = Callable[..., Future[Any]]


@contextmanager
def _processes(function: Callable[..., Any], workers: int) -> Iterator[Submit]:
    # Takes functions of scripts by value, unlike the standard library's
    try:
        from loky import get_reusable_executor
    except ImportError as error:
        raise ImportError(
            "more than one process needs loky, of the extra 'storage': in a clone,"
            " pip install '.[storage]'; or ask for one worker"
        ) from error
    pool = get_reusable_executor(workers)
    try:
        yield lambda *case: pool.submit(function, *case)
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise


@contextmanager
def _cluster(function: Callable[..., Any], scheduler: str) -> Iterator[Submit]:
    import cloudpickle
    from distributed import Client  # here, as it takes a second to import

    # Like the script: the workers may have an older one
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        Client(scheduler, set_as_default=False) as client,
        client.get_executor(pure=False) as executor,
    ):
        # Bytes, which the scheduler need not understand; the function, with what it holds, goes
        # once to each worker.
        future = client.scatter(cloudpickle.dumps(function), broadcast=True)

        def compute(function: bytes, case: bytes) -> Any:
            return pickle.loads(function)(*pickle.loads(case))

        yield lambda *case: executor.submit(compute, future, cloudpickle.dumps(case))
