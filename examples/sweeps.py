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
from tqdm import tqdm


def add_arguments(parser: argparse.ArgumentParser, workers: int = 1, needs: str = "") -> None:
    """Add the arguments that say where to compute.

    ``workers`` is the default, ``needs`` what the cluster's workers must have besides the toolkit.
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
    """A generator for this case alone.

    It depends on the seed of ``rng`` and on the case, not on what has been drawn before.
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
) -> list[Any]:
    """``function(*case)`` of every case, in their order; with progress, on a terminal.

    ``workers`` is a number of processes; with the address of a Dask ``scheduler`` its workers
    compute instead.
    """
    progress: dict[str, Any] = {
        "total": len(cases),
        "desc": description,
        "leave": False,
        "disable": None,
    }
    if scheduler is None and workers == 1:
        return [function(*case) for case in tqdm(cases, **progress)]
    with (
        _processes(function, workers) if scheduler is None else _cluster(function, scheduler)
    ) as submit:
        futures = [submit(*case) for case in cases]
        for future in tqdm(as_completed(futures), **progress):
            future.result()  # the first that fails ends the sweep
        return [future.result() for future in futures]


Submit = Callable[..., Future[Any]]


@contextmanager
def _processes(function: Callable[..., Any], workers: int) -> Iterator[Submit]:
    # Takes functions of scripts by value, unlike the standard library's
    from loky import get_reusable_executor

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

    # Like the script: the workers have neither
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        Client(scheduler, set_as_default=False) as client,
        client.get_executor(pure=False) as executor,
    ):
        # Bytes, which the scheduler need not understand; the function, with what it holds, goes
        # once to each worker.
        held = client.scatter(cloudpickle.dumps(function), broadcast=True)

        def compute(function: bytes, case: bytes) -> Any:
            return pickle.loads(function)(*pickle.loads(case))

        yield lambda *case: executor.submit(compute, held, cloudpickle.dumps(case))
