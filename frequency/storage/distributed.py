"""The same work on a Dask cluster: workers count files, and the counts are added up here.

Needs the extra ``distributed``.

Tasks are pure functions of files that do not change, so that the scheduler may run again whatever a
lost worker had done: the result of a task is fetched once, wherever and however often it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from frequency.core import Reports, channel_of
from frequency.exceptions import WorkersLost
from frequency.storage.workers import Pool

_FAN_IN = 8  # how many aggregates are merged into one, on the cluster, before they travel

_PATIENCE = 120  # seconds that a cluster may be without a worker while there is work


class Cluster(Pool):
    """Calls on the workers of a Dask cluster; their number may change meanwhile."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def width(self) -> int:
        return 2 * max(1, self._threads())

    def submit(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """A future of ``function(argument)``; of what the cluster has yet to compute, of that."""
        with _lost():
            if isinstance(argument, Delayed):
                return self.client.compute(delayed(function)(argument))
            # The same path may hold another file in another call: not pure
            return self.client.submit(function, argument, pure=False)

    def finished(self, futures: Collection[Any]) -> Collection[Any]:
        from distributed import wait  # here, as it takes a second to import

        waiting = list(futures)
        return self._patiently(partial(wait, waiting, return_when="FIRST_COMPLETED")).done

    def result(self, future: Any) -> Any:
        return self._patiently(future.result)

    def _patiently(self, call: Callable[..., Any]) -> Any:
        """Return the result of a call, as long as it takes, while there is a worker."""
        while True:
            with _lost():
                try:
                    return call(timeout=_PATIENCE)
                except TimeoutError:
                    if not self._threads():
                        raise WorkersLost(
                            f"the cluster has no worker, after {_PATIENCE} seconds; resume to go on"
                        ) from None

    def _threads(self) -> int:
        if self.client.status != "running":
            raise WorkersLost("the client is closed, or lost its scheduler; resume to go on")
        with _lost():
            return sum(self.client.nthreads().values())


@contextmanager
def _lost() -> Iterator[None]:
    """Turns what Dask raises when workers, scheduler or client are gone into WorkersLost."""
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except WorkersLost:
        raise
    except (KilledWorker, CancelledError, OSError) as error:
        raise WorkersLost(
            f"the cluster's workers or its scheduler were lost; resume to go on: {error}"
        ) from error


def privatize(protocol: Any, values: Any, seed: int | None = None) -> da.Array:
    """One private report for each row of a Dask dataframe.

    It simulates populations that do not fit in memory.

    Parameters
    ----------
    protocol : Channel or Protocol
        Whose clients the rows are.
    values : dask Series or DataFrame
        A Dask series, the users' values; or a Dask dataframe, for protocols of several attributes,
        with a column for each.
    seed : int, optional
        Partition k draws from ``numpy.random.default_rng([seed, k])``: the same whenever and
        wherever. None: from the operating system; reports that are computed twice then differ.

    Returns
    -------
    dask.array.Array
        Of the protocol's ``report_dtype``, one row a user, lazily; see `aggregate`.

    Raises
    ------
    InvalidValue
        When it is computed: the first bad value of a partition.
    """
    dtype = channel_of(protocol).report_dtype
    blocks = [
        da.from_delayed(
            delayed(_privatized)(protocol, part, None if seed is None else [seed, k]),
            (np.nan,),
            dtype,
        )
        for k, part in enumerate(values.to_delayed())
    ]
    return da.concatenate(blocks)


def _privatized(protocol: Any, part: Any, seed: Sequence[int] | None) -> Reports:
    values = part if part.ndim == 2 else part.to_numpy()
    return protocol.privatize(values, None if seed is None else np.random.default_rng(seed))


def aggregate(protocol: Any, reports: da.Array) -> Any:
    """Reports as integers, lazily, merged in a tree: no process needs all blocks at once."""
    parts = [delayed(protocol.aggregate)(block) for block in reports.to_delayed().ravel()]
    while len(parts) > 1:
        parts = [delayed(sum)(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    return parts[0]
