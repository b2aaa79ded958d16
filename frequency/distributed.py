"""The same work on a Dask cluster: files are counted where the workers are, counts merge in a tree.

Needs the extra ``distributed``.

Tasks are pure functions of files that do not change, so that the scheduler may run again whatever a
lost worker had done: every task counts once in what is merged, wherever and however often it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from frequency.core.aggregate import Aggregate
from frequency.core.channel import Reports
from frequency.core.protocol import channel_of
from frequency.storage.collection import Counting, Job, Part, merge, settle

_FAN_IN = 8
"""How many parts are merged into one, on the cluster, before they travel."""


def on_cluster(
    client: Any, counting: Counting, jobs: Iterator[Job], done: Callable[[int], object]
) -> Iterator[Part]:
    """The settled parts of jobs, several merged into one, with as many under way as keep the
    workers busy.
    """
    from distributed import as_completed  # here, as it takes a second to import

    def submit(function: Callable[..., Part], *arguments: Any) -> Any:
        # The same path may hold another file in another call
        return client.submit(function, *arguments, pure=False)

    def merged(futures: list[Any]) -> Any:
        while len(futures) > 1:
            futures = [
                submit(merge, *futures[k : k + _FAN_IN]) for k in range(0, len(futures), _FAN_IN)
            ]
        return futures[0]

    def begun() -> bool:
        group = list(islice(jobs, _FAN_IN))
        if not group:
            return False
        settled = [
            submit(settle, merged([submit(counting, task) for task in job])) for job in group
        ]
        future = merged(settled)
        sizes[future.key] = sum(piece.size for job in group for task in job for piece in task)
        waiting.add(future)
        return True

    sizes: dict[str, int] = {}
    waiting = as_completed()
    groups = 2 * -(-sum(client.nthreads().values()) // _FAN_IN)
    for _ in range(groups):
        begun()
    for future in waiting:
        part = future.result()
        done(sizes.pop(future.key))
        begun()
        yield part


def privatize(protocol: Any, people: Any, seed: int | None = None) -> da.Array:
    """One private report for each row of a Dask dataframe: to simulate populations that do not fit
    in memory.

    Parameters
    ----------
    protocol
        Whose clients the rows are.
    people
        A Dask series, the users' values; or a Dask dataframe, for protocols of several attributes,
        with a column for each.
    seed
        Partition k draws from ``numpy.random.default_rng([seed, k])``, so that reports are the same
        whenever and wherever they are drawn. None: from the operating system; then reports that are
        computed twice differ.

    Returns
    -------
    A Dask array of the protocol's ``report_dtype``, one row a user, lazily; see `aggregate`.

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
        for k, part in enumerate(people.to_delayed())
    ]
    return da.concatenate(blocks)


def _privatized(protocol: Any, part: Any, seed: Sequence[int] | None) -> Reports:
    values = part if part.ndim == 2 else part.to_numpy()
    reports: Reports = protocol.privatize(
        values, None if seed is None else np.random.default_rng(seed)
    )
    return reports


def aggregate(protocol: Any, reports: da.Array) -> Any:
    """Reports as integers, lazily: a Dask ``Delayed`` of the `Aggregate`, merged in a tree; no
    process needs all blocks at once.
    """
    parts = [delayed(protocol.aggregate)(block) for block in reports.to_delayed().ravel()]
    while len(parts) > 1:
        parts = [delayed(_sum)(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    return parts[0]


def _sum(aggregates: list[Aggregate]) -> Aggregate:
    total: Aggregate = sum(aggregates[1:], aggregates[0])
    return total
