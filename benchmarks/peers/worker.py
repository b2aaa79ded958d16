"""Runs inside a library's environment: reads tasks, one a line of JSON, and answers with
measurements, one a line of JSON.

    PYTHONPATH=benchmarks python -m peers.worker ADAPTER

A task is an object whose "do" names one of `TASKS`; the other members are its arguments. The answer
is {"value": ...}, {"absent": true} if the library has no such thing, or {"error": "the last line of
the traceback"}. Needs the standard library only.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import os
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any

from peers.adapters import Absent

MOST_USERS = 100_000
MOST_REPEATS = 200


def seconds(call: Callable[[], object]) -> float:
    """Of the processor: what else the machine does in the meantime does not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


def zipf(domain: int, users: int) -> list[int]:
    """How many users have each item: Zipf, exponent 1, over the first half; none the others."""
    return shared_out(
        users, [1 / (rank + 1) if rank < domain // 2 else 0.0 for rank in range(domain)]
    )


def shared_out(users: int, weights: list[float]) -> list[int]:
    bounds = [0.0, *accumulate(weights)]
    return [
        later - earlier
        for earlier, later in pairwise(round(users * bound / bounds[-1]) for bound in bounds)
    ]


def bell(domain: int, users: int) -> list[int]:
    """How many users have each item: a wide bell."""
    return shared_out(
        users, [math.exp(-((item - domain / 2) ** 2) / (domain / 3) ** 2) for item in range(domain)]
    )


def values_of(counts: list[int]) -> list[int]:
    values = [item for item, count in enumerate(counts) for _ in range(count)]
    random.Random(1).shuffle(values)
    return values


def mean_and_error(values: list[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [mean, (sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)) ** 0.5]


def prepared(adapter: ModuleType, values: list[int]) -> Any:
    return getattr(adapter, "prepared", list)(values)


def part(adapter: ModuleType, name: str) -> Any:
    """A function of the adapter."""
    if not hasattr(adapter, name):
        raise Absent(name)
    return getattr(adapter, name)


def affordable(work: Callable[[int], object], budget: float) -> int:
    """How many users or draws ``work`` can do within the budget.

    At most `MOST_USERS`. The first call is not measured.
    """
    work(10)
    count = 10
    while count < MOST_USERS:
        took = seconds(lambda: work(count))
        if took > budget / 2:
            break
        count = min(MOST_USERS, count * max(2, min(100, int(0.7 * budget / max(took, 1e-6)))))
    return count


# ------------------------------------------------------------------------------------------ tasks


def versions(adapter: ModuleType, packages: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"python": sys.version.split()[0], **found}


def features(adapter: ModuleType) -> dict[str, str | None]:
    """For every feature None, or why it does not work."""
    return {name: answer(call).get("error") for name, call in adapter.FEATURES.items()}


def probes(adapter: ModuleType) -> dict[str, dict[str, Any]]:
    return {name: answer(call) for name, call in part(adapter, "PROBES").items()}


def client(adapter: ModuleType, budget: float, **options: Any) -> dict[str, float]:
    """Users a second."""

    def ready() -> tuple[Any, Any, int]:
        oracle = part(adapter, "oracle")(**options)
        values = prepared(adapter, values_of(zipf(options["domain"], MOST_USERS)))
        users = affordable(lambda count: oracle.privatize(values[:count]), budget)
        return oracle, values[:users], users

    oracle, values, users = kept("client", options, ready)
    return {"rate": users / seconds(lambda: oracle.privatize(values))}


def server(adapter: ModuleType, users: int, **options: Any) -> dict[str, float]:
    """Users a second, from reports to the estimates of all items."""

    def ready() -> tuple[Any, Any]:
        oracle = part(adapter, "oracle")(**options)
        reports = oracle.privatize(prepared(adapter, values_of(zipf(options["domain"], users))))
        oracle.estimate(reports[:10])  # compiled and imported when first called
        return oracle, reports

    oracle, reports = kept("server", {**options, "users": users}, ready)
    return {"rate": users / seconds(lambda: oracle.estimate(reports))}


def accuracy(
    adapter: ModuleType, users: int, budget: float, least: int, **options: Any
) -> dict[str, object]:
    """Squared error of all items, and the mean estimate of the items that no user has.

    Each has its standard error.
    """
    counts = zipf(options["domain"], users)
    values = prepared(adapter, values_of(counts))
    make = part(adapter, "oracle")
    squares: list[float] = []
    biases, start = [], time.perf_counter()
    while len(squares) < least or (
        time.perf_counter() - start < budget and len(squares) < MOST_REPEATS
    ):
        oracle = make(**options)
        estimates = [float(value) for value in oracle.estimate(oracle.privatize(values))]
        squares.append(
            sum((e - c / users) ** 2 for e, c in zip(estimates, counts, strict=True)) / len(counts)
        )
        empty = [e for e, c in zip(estimates, counts, strict=True) if not c]
        biases.append(sum(empty) / len(empty))
    return {"repeats": len(squares), "mse": mean_and_error(squares), "bias": mean_and_error(biases)}


def draws(adapter: ModuleType, budget: float, **options: Any) -> dict[str, float]:
    """Private counts a second."""

    def ready() -> tuple[Any, int]:
        draw = part(adapter, "noise")(**options)
        return draw, affordable(lambda count: draw(3, count), budget)

    draw, count = kept("draws", options, ready)
    return {"rate": count / seconds(lambda: draw(3, count))}


def distribution(
    adapter: ModuleType, true: list[int], each: int, **options: Any
) -> list[dict[str, int]]:
    """For every true count, how often each answer came."""
    draw = part(adapter, "noise")(**options)
    tallies = []
    for count in true:
        tally: dict[str, int] = {}
        for value in draw(count, each):
            tally[str(int(value))] = tally.get(str(int(value)), 0) + 1
        tallies.append(tally)
    return tallies


def ranges(
    adapter: ModuleType, users: int, budget: float, least: int, **options: Any
) -> dict[str, object]:
    """Squared error of all ranges of at least a cell, in users, and seconds of a release."""
    counts = zipf(options["domain"], users)
    release = part(adapter, "ranges")(**options)
    release(counts)
    squares: list[float] = []
    times, start = [], time.perf_counter()
    while len(squares) < least or (
        time.perf_counter() - start < budget and len(squares) < MOST_REPEATS
    ):
        cells: list[Any] = []
        times.append(seconds(lambda: cells.extend(release(counts))))
        # Ranges are differences of prefixes, and the sum of all squared differences is m * (sum of
        # squares) - (sum)^2.
        off, prefixes = 0.0, [0.0]
        for cell, count in zip(cells, counts, strict=True):
            off += float(cell) - count
            prefixes.append(off)
        m = len(prefixes)
        squares.append((m * sum(p * p for p in prefixes) - sum(prefixes) ** 2) / (m * (m - 1) / 2))
    return {"repeats": len(squares), "mse": mean_and_error(squares), "times": times}


def quantiles(
    adapter: ModuleType, users: int, budget: float, least: int, **options: Any
) -> dict[str, object]:
    """Squared distance between the quantiles asked for and the ranks of the answers.

    In fractions of the users; the distance is to the ranks of the cell answered.
    """
    counts = bell(options["domain"], users)
    release = part(adapter, "quantiles")(**options)
    release(counts)
    below = [0]
    for count in counts:
        below.append(below[-1] + count)
    squares: list[float] = []
    times, start = [], time.perf_counter()
    while len(squares) < least or (
        time.perf_counter() - start < budget and len(squares) < MOST_REPEATS
    ):
        answers: list[Any] = []
        times.append(seconds(lambda: answers.extend(release(counts))))
        off = []
        for q, value in zip(options["probabilities"], answers, strict=True):
            cell = min(max(int(value), 0), len(counts) - 1)
            off.append(max(0.0, below[cell] / users - q, q - below[cell + 1] / users))
        squares.append(sum(x * x for x in off) / len(off))
    return {"repeats": len(squares), "mse": mean_and_error(squares), "times": times}


def heavy(adapter: ModuleType, users: int, k: int, seed: int, **options: Any) -> dict[str, float]:
    """Seconds of clients and server, and how many of the k most frequent items are found.

    At most k items are listed.
    """
    support = random.Random(1).sample(range(1 << options["bits"]), 1000)
    weights = [(rank + 1) ** -1.5 for rank in range(len(support))]
    values = random.Random(seed + 2).choices(support, weights, k=users)
    protocol = part(adapter, "heavy")(**options)
    reports: list[Any] = []
    spent = seconds(lambda: reports.append(protocol.privatize(values)))
    found: list[Any] = []
    server = seconds(lambda: found.append(protocol.find(reports[0], k)))
    return {
        "client": users / spent,
        "server": server,
        "recall": len({*support[:k]} & {*found[0][:k]}) / k,
    }


TASKS: dict[str, Callable[..., object]] = {
    task.__name__: task
    for task in (
        versions,
        features,
        probes,
        client,
        server,
        accuracy,
        draws,
        distribution,
        ranges,
        quantiles,
        heavy,
    )
}

_KEPT: dict[str, object] = {}


def kept(task: str, options: dict[str, Any], ready: Callable[[], Any]) -> Any:
    """What is made once for all repeats of a task.

    It is kept for the last few tasks only, since reports can be large.
    """
    key = json.dumps([task, options])
    if key not in _KEPT:
        while len(_KEPT) > 3:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = ready()
    return _KEPT[key]


def answer(call: Callable[[], object]) -> dict[str, Any]:
    try:
        return {"value": call()}
    except Absent:
        return {"absent": True}
    except Exception as error:  # whatever is wrong with a library is what is to be reported
        if isinstance(error, AssertionError):
            return {"error": str(error)}  # an adapter's own words
        return {
            "error": traceback.format_exception_only(type(error), error)[-1].strip().splitlines()[0]
        }


def main() -> None:
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    adapter = importlib.import_module(f"peers.adapters.{sys.argv[1]}")
    for line in sys.stdin:
        task = json.loads(line)
        do = TASKS[task.pop("do")]
        print(json.dumps(answer(lambda: do(adapter, **task))), file=answers, flush=True)


if __name__ == "__main__":
    main()
