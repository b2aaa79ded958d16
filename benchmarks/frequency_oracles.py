"""Costs of frequency oracles, and their errors beside theory; `compare.py` has other libraries.

    python benchmarks/frequency_oracles.py            about four minutes
    python benchmarks/frequency_oracles.py --quick    half a minute

Prints one Markdown table a section. Times are wall-clock medians in one run on one core. "M/s" is
millions of users a second; "seeded" is a PCG64 generator, "secure" the operating system's
randomness; a server's time is `aggregate` and `estimate` of the whole domain. Users hold items from
a Zipf distribution with exponent 1. Epsilon is 1.1 unless stated otherwise, and not ln 3: at ln 3
the probability of a bit of OUE is 1/4, which takes two random bits instead of 64, and OUE would
appear faster than it is.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
)

import argparse
import math
import multiprocessing
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    AffineSelection,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    Oracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.oracles.count_mean_sketch import Sketch
from mechdesign import plan

EPSILON = 1.1
SMALL, LARGE = 1 << 10, 1 << 16

ORACLES: dict[str, Oracle] = {
    "GRR": GRR(SMALL, EPSILON),
    "OUE": OUE(SMALL, EPSILON),
    "SUE": SUE(SMALL, EPSILON),
    "SubsetSelection": SubsetSelection(SMALL, EPSILON),
    "OLH": OLH(LARGE, EPSILON),
    "ProjectiveGeometry": ProjectiveGeometry(LARGE, EPSILON),
    "AffineSelection": AffineSelection(LARGE, EPSILON),
    "HRR": HRR(LARGE, EPSILON),
    "HRR, t = 3": HRR(LARGE, EPSILON, coefficients=3),
    "HadamardCountMeanSketch": HadamardCountMeanSketch(LARGE, EPSILON),
    "CountMeanSketch": CountMeanSketch(LARGE, EPSILON),
    "JLOracle": JLOracle(LARGE, EPSILON),
    "Tabular (GRR's table)": Tabular(GRR(64, EPSILON).mechanism),
}
AFFORDABLE = {HadamardCountMeanSketch: 4096, CountMeanSketch: 4096, JLOracle: 512}
"""How many items to estimate in every one of many repeats; of the other oracles, all."""

Row = Sequence[object]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(work: Callable[[], object], repeats: int) -> float:
    return statistics.median(seconds(work) for _ in range(repeats))


def table(title: str, head: Sequence[str], rows: Iterable[Row]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def millions(users: int, took: float) -> str:
    return f"{users / took / 1e6:.2f}"


def zipf(domain: int) -> np.ndarray:
    weights = 1 / np.arange(1, domain + 1)
    return weights / weights.sum()


def population(domain: int, users: int) -> np.ndarray:
    return np.random.default_rng(1).choice(domain, users, p=zipf(domain))


def theory(oracle: Oracle, users: int, frequencies: np.ndarray) -> np.ndarray:
    """The variance of every item's estimate."""
    if isinstance(oracle, Sketch):
        return oracle.variance(users, frequencies, second_moment=(frequencies**2).sum())
    return oracle.variance(users, frequencies)


# ------------------------------------------------------------------------------------------ speed


def large_olh(size: int) -> tuple[float, float, float]:
    """Seconds of aggregate and estimate, with as many users as items, and the peak memory.

    The memory is that of this process, in GiB.
    """
    oracle = OLH(size, math.log(3))
    rng = np.random.default_rng(1)
    reports = oracle.privatize(rng.integers(0, size, size), rng)
    aggregate = oracle.aggregate(reports)
    times = (
        median(lambda: oracle.aggregate(reports), 3),
        median(lambda: oracle.estimate(aggregate), 3),
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # MacOS counts bytes, Linux KiB
    return *times, peak / (2**30 if sys.platform == "darwin" else 2**20)


def large(size: int) -> Iterator[Row]:
    # The first section, since a child's peak starts from its parent's memory.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        aggregate, estimate, peak = pool.submit(large_olh, size).result()
    yield (
        size,
        size,
        f"{aggregate:.2f}",
        f"{estimate:.2f}",
        f"{aggregate + estimate:.2f}",
        f"{peak:.2f}",
    )


def speed(short: int, long: int, repeats: int) -> Iterator[Row]:
    """``short`` and ``long`` count the users: with reports of a few bytes, and of a bit an item."""
    for name, oracle in ORACLES.items():
        users = short if oracle.report_bits <= 64 else long
        values = population(oracle.domain, users)
        rng = np.random.default_rng(2)
        reports = oracle.privatize(values, rng)  # and tables are made, and memory is mapped
        seeded, secure = (
            median(lambda: oracle.privatize(values, source), repeats) for source in (rng, None)
        )
        found = oracle.aggregate(reports)
        aggregate = median(lambda: oracle.aggregate(reports), repeats)
        estimate = median(lambda: oracle.estimate(found), repeats)
        rates = [millions(users, took) for took in (seeded, secure, aggregate)]
        rmse = math.sqrt(theory(oracle, 10**6, zipf(oracle.domain)).mean())
        whole = millions(users, aggregate + estimate)
        yield (
            name,
            oracle.domain,
            users,
            *rates,
            f"{estimate:.2g}",
            whole,
            oracle.report_bits,
            f"{rmse:.2g}",
        )


# --------------------------------------------------------------------------------------- accuracy


def squared_errors(oracle: Oracle, values: np.ndarray, items: int, repeats: int) -> np.ndarray:
    """Squared errors of the first items: shape (repeats, items).

    Every repeat of a sketch has its own public functions.
    """
    # Reports must not be drawn from the seed that the items were drawn from: the same words would
    # decide both.
    truth = np.bincount(values, minlength=items)[:items] / len(values)
    result = np.empty((repeats, items))
    for k in tqdm(range(repeats), desc=type(oracle).__name__, leave=False, disable=None):
        fresh = (
            replace(oracle, seed=k)
            if isinstance(oracle, CountMeanSketch | HadamardCountMeanSketch | JLOracle)
            else oracle
        )
        aggregate = fresh.aggregate(fresh.privatize(values, np.random.default_rng([2, k])))
        found = fresh.estimate(aggregate, np.arange(items) if items < oracle.domain else None)
        result[k] = (found.frequencies - truth) ** 2
    return result


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return values.mean(), values.std(ddof=1) / math.sqrt(len(values))


def accuracy(users: int, error: float) -> Iterator[Row]:
    """Measured over theoretical squared errors.

    For independent items the standard error would be about ``error``.
    """
    for name, oracle in ORACLES.items():
        items = AFFORDABLE.get(type(oracle), oracle.domain)
        repeats = max(8, math.ceil(2 / items / error**2))
        values = population(oracle.domain, users)
        expected = theory(oracle, users, np.bincount(values, minlength=oracle.domain) / users)[
            :items
        ]
        ratio, off = mean_and_error(
            (squared_errors(oracle, values, items, repeats) / expected).mean(axis=1)
        )
        yield name, oracle.domain, items, repeats, f"{ratio:.4f}", f"{off:.4f}"


def geometry_against_subsets(users: int, repeats: int) -> Iterator[Row]:
    for domain in (SMALL, LARGE):
        for epsilon in (0.5, 1.0, 2.0, 3.0):
            ours, best = ProjectiveGeometry(domain, epsilon), SubsetSelection(domain, epsilon)
            own, least = (theory(oracle, users, zipf(domain)).mean() for oracle in (ours, best))
            predicted = own / least
            measured = "too slow"
            if domain == SMALL:
                values = population(domain, users)
                (a, da), (b, db) = (
                    mean_and_error(squared_errors(oracle, values, domain, repeats).mean(axis=1))
                    for oracle in (ours, best)
                )
                measured = f"{a / b:.3f} ± {a / b * math.hypot(da / a, db / b):.3f}"
            yield domain, epsilon, f"{predicted:.4f}", measured, ours.report_bits, best.report_bits


EPSILONS = (0.1, 0.3, 0.35, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.6, 7.0, 8.0, 9.0, 10.0)


def selection_against_subsets() -> Iterator[Row]:
    """Predicted variances of an item that nobody has, and bits."""
    for domain in (4, 64, SMALL, LARGE, 1 << 20):
        cells = []
        for epsilon in EPSILONS:
            ours, best = AffineSelection(domain, epsilon), SubsetSelection(domain, epsilon)
            cells.append(f"{ours.variance(1) / best.variance(1):.4f}, {ours.report_bits}")
        yield domain, *cells


def planes_beside_blocks() -> Iterator[Row]:
    for domain in (20, 31, 64, 100, 127, 1000, 4096, 65_536):
        row = [str(domain)]
        for epsilon in (0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0):
            planes, blocks = ProjectiveGeometry(domain, epsilon), AffineSelection(domain, epsilon)
            ratio = planes.variance(1, 1 / domain) / blocks.variance(1, 1 / domain)
            cell = f"{ratio:.3f}, {planes.report_bits}, {blocks.report_bits}"
            best = plan("frequencies", domain, n=100_000, epsilon=epsilon).best.name
            row.append(f"**{cell}**" if best == "ProjectiveGeometry" else cell)
        yield tuple(row)


def selection_measured(users: int, repeats: int) -> Iterator[Row]:
    """Measured over predicted errors where designs differ, and the server's time."""
    for domain, epsilon in ((SMALL, 0.35), (SMALL, 5.0), (LARGE, 4.0), (LARGE, 6.0), (LARGE, 9.0)):
        oracle, values = AffineSelection(domain, epsilon), population(domain, users)
        expected = theory(oracle, users, np.bincount(values, minlength=domain) / users)
        ratios = (squared_errors(oracle, values, domain, repeats) / expected).mean(axis=1)
        ratio, off = mean_and_error(ratios)
        reports = oracle.privatize(values, np.random.default_rng(2))
        found = oracle.aggregate(reports)
        aggregate, estimate = (
            median(work, 3)
            for work in (lambda: oracle.aggregate(reports), lambda: oracle.estimate(found))
        )
        cells = f"{ratio:.4f} ± {off:.4f}", millions(users, aggregate), f"{estimate:.2g}"
        yield domain, epsilon, ", ".join(map(str, oracle.design)), *cells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer users and repeats")
    quick = parser.parse_args().quick
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, {load}; epsilon = {EPSILON}"
    )

    table(
        "OLH server at its largest, epsilon = ln 3",
        ("D", "users", "aggregate, s", "estimate, s", "both, s", "peak memory, GiB"),
        large(1 << (18 if quick else 22)),
    )
    head: tuple[str, ...] = (
        "oracle",
        "D",
        "users",
        "client, M/s",
        "client secure, M/s",
        "aggregate, M/s",
        "estimate, s",
        "server, M/s",
        "bits",
    )
    head = (*head, "RMSE, n = 10^6")
    table(
        "Speed",
        head,
        speed(1 << (18 if quick else 22), 1 << (15 if quick else 20), 1 if quick else 3),
    )
    head = ("oracle", "D", "items", "repeats", "measured / theory", "standard error")
    users = 20_000 if quick else 200_000
    table(
        f"Squared error over its theory, {users} users",
        head,
        accuracy(users, 0.02 if quick else 0.006),
    )
    head = ("D", "epsilon", "predicted", "measured", "bits", "bits of a subset")
    table(
        "Squared error of ProjectiveGeometry over SubsetSelection's",
        head,
        geometry_against_subsets(1 << 15, 4 if quick else 48),
    )
    table(
        "AffineSelection over SubsetSelection: predicted variance, bits",
        ("D", *map(str, EPSILONS)),
        selection_against_subsets(),
    )
    table(
        "ProjectiveGeometry beside AffineSelection: variance, bits of each",
        ("D", "0.1", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "4"),
        planes_beside_blocks(),
    )
    table(
        "AffineSelection measured",
        ("D", "epsilon", "q, t, accepted", "measured / theory", "aggregate, M/s", "estimate, s"),
        selection_measured(20_000 if quick else 200_000, 4 if quick else 16),
    )


if __name__ == "__main__":
    main()
