"""What frequency oracles cost here, how near to theory they come, and other libraries beside them.

    python benchmarks/frequency_oracles.py            about four minutes
    python benchmarks/frequency_oracles.py --quick    half a minute

Prints one Markdown table a section. Times are wall-clock medians in one run on one core. "M/s" is millions of users a second;
"seeded" is a PCG64 generator, "secure" the operating system's randomness; a server's time is `aggregate` and `estimate` of the
whole domain. Users hold items from a Zipf distribution with exponent 1. Where nothing else is said epsilon is 1.1, not ln 3: there
the probability of a bit of OUE is 1/4, two binary digits instead of 64, and OUE would look better than it is.

The last section needs other libraries in the same environment; those that are missing or do not run are said to be:

    pip install pure-ldp scikit-learn statsmodels multi-freq-ldpy ldp-toolbox opendp 'xxhash<4'

None of them has a client for many users at once: theirs is called in a loop, ours once for all users. Called for one user at a
time ours is slower than all of them but opendp, which the last column says. Randomness is like against like: opendp's is secure,
the others' a seeded generator.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import argparse
import math
import multiprocessing
import platform
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import repeat

import numpy as np
from tqdm import tqdm

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    Oracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.sketch import Sketch

EPSILON = 1.1
SMALL, LARGE = 1 << 10, 1 << 16

ORACLES: dict[str, Oracle] = {
    "GRR": GRR(SMALL, EPSILON),
    "OUE": OUE(SMALL, EPSILON),
    "SUE": SUE(SMALL, EPSILON),
    "SubsetSelection": SubsetSelection(SMALL, EPSILON),
    "OLH": OLH(LARGE, EPSILON),
    "ProjectiveGeometry": ProjectiveGeometry(LARGE, EPSILON),
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


# ---------------------------------------------------------------------------------------------------------------- speed


def large_olh(size: int) -> tuple[float, float, float]:
    """Seconds of aggregate and estimate for as many users as items, and the peak memory of this process in GiB."""
    oracle = OLH(size, math.log(3))
    rng = np.random.default_rng(1)
    reports = oracle.privatize(rng.integers(0, size, size), rng)
    aggregate = oracle.aggregate(reports)
    times = median(lambda: oracle.aggregate(reports), 3), median(lambda: oracle.estimate(aggregate), 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return *times, peak / (2**30 if sys.platform == "darwin" else 2**20)  # macOS counts bytes, Linux KiB


def large(size: int) -> Iterator[Row]:
    # The first section, since a child's peak starts from its parent's memory.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        aggregate, estimate, peak = pool.submit(large_olh, size).result()
    yield size, size, f"{aggregate:.2f}", f"{estimate:.2f}", f"{aggregate + estimate:.2f}", f"{peak:.2f}"


def speed(short: int, long: int, repeats: int) -> Iterator[Row]:
    """``short`` and ``long`` are the users with reports of a few bytes and of a bit for each item."""
    for name, oracle in ORACLES.items():
        users = short if oracle.report_bits <= 64 else long
        values = population(oracle.domain, users)
        rng = np.random.default_rng(2)
        reports = oracle.privatize(values, rng)  # and tables are made, and memory is mapped
        seeded, secure = (median(lambda: oracle.privatize(values, source), repeats) for source in (rng, None))  # noqa: B023
        found = oracle.aggregate(reports)
        aggregate = median(lambda: oracle.aggregate(reports), repeats)  # noqa: B023
        estimate = median(lambda: oracle.estimate(found), repeats)  # noqa: B023
        rates = [millions(users, took) for took in (seeded, secure, aggregate)]
        rmse = math.sqrt(theory(oracle, 10**6, zipf(oracle.domain)).mean())
        whole = millions(users, aggregate + estimate)
        yield name, oracle.domain, users, *rates, f"{estimate:.2g}", whole, oracle.report_bits, f"{rmse:.2g}"


# ------------------------------------------------------------------------------------------------------------- accuracy


def squared_errors(oracle: Oracle, values: np.ndarray, items: int, repeats: int) -> np.ndarray:
    """Shape (repeats, items): of the first items. Every repeat of a sketch has its own public functions."""
    # Reports must not be drawn from the seed that the items were drawn from: the same words would decide both.
    truth = np.bincount(values, minlength=items)[:items] / len(values)
    result = np.empty((repeats, items))
    for k in tqdm(range(repeats), desc=type(oracle).__name__, leave=False, disable=None):
        fresh = replace(oracle, seed=k) if isinstance(oracle, Sketch) else oracle
        aggregate = fresh.aggregate(fresh.privatize(values, np.random.default_rng([2, k])))
        found = fresh.estimate(aggregate, np.arange(items) if items < oracle.domain else None)
        result[k] = (found.frequencies - truth) ** 2
    return result


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return values.mean(), values.std(ddof=1) / math.sqrt(len(values))


def accuracy(users: int, error: float) -> Iterator[Row]:
    """Measured over theoretical squared errors, with about this standard error if items were independent."""
    for name, oracle in ORACLES.items():
        items = AFFORDABLE.get(type(oracle), oracle.domain)
        repeats = max(8, math.ceil(2 / items / error**2))
        values = population(oracle.domain, users)
        expected = theory(oracle, users, np.bincount(values, minlength=oracle.domain) / users)[:items]
        ratio, off = mean_and_error((squared_errors(oracle, values, items, repeats) / expected).mean(axis=1))
        yield name, oracle.domain, items, repeats, f"{ratio:.4f}", f"{off:.4f}"


def geometry_against_subsets(users: int, repeats: int) -> Iterator[Row]:
    for domain in (SMALL, LARGE):
        for epsilon in (0.5, 1.0, 2.0, 3.0):
            ours, best = ProjectiveGeometry(domain, epsilon), SubsetSelection(domain, epsilon)
            predicted = np.divide(*(theory(oracle, users, zipf(domain)).mean() for oracle in (ours, best)))
            measured = "too slow"
            if domain == SMALL:
                values = population(domain, users)
                (a, da), (b, db) = (
                    mean_and_error(squared_errors(oracle, values, domain, repeats).mean(axis=1)) for oracle in (ours, best)
                )
                measured = f"{a / b:.3f} ± {a / b * math.hypot(da / a, db / b):.3f}"
            yield domain, epsilon, f"{predicted:.4f}", measured, ours.report_bits, best.report_bits


# ---------------------------------------------------------------------------------------------------------------- peers

ITEM = 777
REPEATS = 3


def client_rate(call: Callable[..., object], *arguments: object) -> float:
    """Users a second of a client called for one user at a time."""

    def loop(count: int) -> None:
        for _ in repeat(None, count):
            call(*arguments)

    loop(3)  # compiled and imported when first called
    count = 10
    while seconds(partial(loop, count)) < 0.05:
        count *= 3
    return count / median(partial(loop, count), REPEATS)


def our_client(oracle: Oracle, secure: bool = False) -> tuple[float, str]:
    """Users a second, all in one call and, as text, one a call."""
    users = 1 << (20 if oracle.report_bits <= 64 else 17)
    values, rng = np.full(users, ITEM), None if secure else np.random.default_rng(1)
    oracle.privatize(values, rng)
    rate = users / median(lambda: oracle.privatize(values, rng), REPEATS)
    return rate, f"{client_rate(oracle.privatize, ITEM, rng):,.0f}"


def our_server(oracle: Oracle, users: int) -> tuple[float, str]:
    reports = oracle.privatize(np.full(users, ITEM), np.random.default_rng(1))
    oracle.estimate(oracle.aggregate(reports))
    return users / median(lambda: oracle.estimate(oracle.aggregate(reports)), REPEATS), ""


def pure_ldp_client(name: str, domain: int, **options: object) -> float:
    make = getattr(import_module("pure_ldp.frequency_oracles"), f"{name}Client")
    return client_rate(make(EPSILON, domain, **options).privatise, ITEM + 1)


def pure_ldp_server(name: str, users: int, keep: Callable[[object], object], **options: object) -> float:
    module = import_module("pure_ldp.frequency_oracles")
    client, server = (getattr(module, f"{name}{side}")(EPSILON, LARGE, **options) for side in ("Client", "Server"))
    reports = [keep(client.privatise(ITEM + 1)) for _ in range(users)]

    def work() -> None:
        server.reset()
        server.aggregate_all(reports)
        server.check_and_update_estimates()

    return users / median(work, REPEATS)


def multi_freq_ldpy_client(module: str, domain: int, *options: object) -> float:
    call = getattr(import_module(f"multi_freq_ldpy.pure_frequency_oracles.{module}"), f"{module}_Client")
    return client_rate(call, ITEM, domain, EPSILON, *options)


def multi_freq_ldpy_server(users: int) -> float:
    module = import_module("multi_freq_ldpy.pure_frequency_oracles.LH")
    reports = [module.LH_Client(ITEM, LARGE, EPSILON, True) for _ in range(users)]
    return users / median(lambda: module.LH_Aggregator_MI(reports, LARGE, EPSILON, True), REPEATS)


def ldp_toolbox_client(module: str, name: str, domain: int) -> float:
    make = getattr(import_module(f"ldp_toolbox.protocols.frequency.{module}"), name)
    return client_rate(make(domain, EPSILON).obfuscate, ITEM)


def ldp_toolbox_server(users: int) -> float:
    oracle = import_module("ldp_toolbox.protocols.frequency.lh").LocalHashing(LARGE, EPSILON)
    reports = [oracle.obfuscate(ITEM) for _ in range(users)]
    return users / median(lambda: oracle.estimate(reports), REPEATS)


def opendp_grr() -> float:
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    odds = math.exp(EPSILON)
    return client_rate(dp.m.make_randomized_response(list(range(SMALL)), odds / (odds + SMALL - 1)), ITEM)


def opendp_sue() -> float:
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    domain, flip = dp.bitvector_domain(max_weight=1), 2 / (math.exp(EPSILON / 2) + 1)
    bits = np.packbits(np.arange(SMALL) == ITEM).tobytes()
    return client_rate(dp.m.make_randomized_response_bitvec(domain, dp.discrete_distance(), f=flip), bits)


Task = tuple[str, Callable[[], tuple[float, str]], dict[str, Callable[[], float]]]


def tasks(olh_users: int, hadamard_users: int) -> Iterator[Task]:
    """A task, its rate here, and the rates of libraries that have it."""
    yield (
        f"GRR client, D = {SMALL}",
        partial(our_client, GRR(SMALL, EPSILON)),
        {
            "pure-ldp": partial(pure_ldp_client, "DE", SMALL),
            "multi-freq-ldpy": partial(multi_freq_ldpy_client, "GRR", SMALL),
            "ldp-toolbox": partial(ldp_toolbox_client, "grr", "GeneralizedRandomizedResponse", SMALL),
        },
    )
    yield f"GRR client, secure, D = {SMALL}", partial(our_client, GRR(SMALL, EPSILON), secure=True), {"opendp": opendp_grr}
    yield (
        f"OUE client, D = {SMALL}",
        partial(our_client, OUE(SMALL, EPSILON)),
        {
            "pure-ldp": partial(pure_ldp_client, "UE", SMALL, use_oue=True),
            "multi-freq-ldpy": partial(multi_freq_ldpy_client, "UE", SMALL, True),
            "ldp-toolbox": partial(ldp_toolbox_client, "ue", "UnaryEncoding", SMALL),
        },
    )
    yield f"SUE client, secure, D = {SMALL}", partial(our_client, SUE(SMALL, EPSILON), secure=True), {"opendp": opendp_sue}
    yield (
        f"OLH client, D = {LARGE}",
        partial(our_client, OLH(LARGE, EPSILON)),
        {
            "pure-ldp": partial(pure_ldp_client, "LH", LARGE, use_olh=True),
            "multi-freq-ldpy": partial(multi_freq_ldpy_client, "LH", LARGE, True),
            "ldp-toolbox": partial(ldp_toolbox_client, "lh", "LocalHashing", LARGE),
        },
    )
    yield (
        f"OLH server, D = {LARGE}, {olh_users} users",
        partial(our_server, OLH(LARGE, EPSILON), olh_users),
        {
            "pure-ldp": partial(pure_ldp_server, "LH", olh_users, lambda report: report, use_olh=True),
            "multi-freq-ldpy": partial(multi_freq_ldpy_server, olh_users),
            "ldp-toolbox": partial(ldp_toolbox_server, olh_users),
        },
    )
    yield (
        f"HRR client, D = {LARGE}",
        partial(our_client, HRR(LARGE, EPSILON)),
        {"pure-ldp": partial(pure_ldp_client, "HadamardMech", LARGE, t=1)},
    )
    yield (
        f"HRR server, D = {LARGE}, {hadamard_users} users",
        partial(our_server, HRR(LARGE, EPSILON), hadamard_users),
        {"pure-ldp": partial(pure_ldp_server, "HadamardMech", hadamard_users, tuple, t=1)},  # a report is an iterator
    )
    yield (
        f"Subset selection client, D = {SMALL}",
        partial(our_client, SubsetSelection(SMALL, EPSILON)),
        {
            "multi-freq-ldpy": partial(multi_freq_ldpy_client, "SS", SMALL),
            "ldp-toolbox": partial(ldp_toolbox_client, "ss", "SubsetSelection", SMALL),
        },
    )


def peers(olh_users: int, hadamard_users: int) -> Iterator[Row]:
    for task, here, others in tasks(olh_users, hadamard_users):
        ours, one_by_one = here()
        for library, there in others.items():
            try:
                theirs = there()
                yield task, f"{library} {version(library)}", f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:,.0f}", one_by_one
            except Exception as error:  # whatever is wrong with another library, the others are still measured
                yield task, library, f"does not run: {type(error).__name__}", f"{ours:,.0f}", "", one_by_one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer users and repeats")
    quick = parser.parse_args().quick
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.filterwarnings("ignore")  # of the other libraries
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {load}; epsilon = {EPSILON}")

    head = ("D", "users", "aggregate, s", "estimate, s", "both, s", "peak memory, GiB")
    table("OLH server at its largest, epsilon = ln 3", head, large(1 << (18 if quick else 22)))
    head = ("oracle", "D", "users", "client, M/s", "client secure, M/s", "aggregate, M/s", "estimate, s", "server, M/s", "bits")
    head = (*head, "RMSE, n = 10^6")
    table("Speed", head, speed(1 << (18 if quick else 22), 1 << (15 if quick else 20), 1 if quick else 3))
    head = ("oracle", "D", "items", "repeats", "measured / theory", "standard error")
    users = 20_000 if quick else 200_000
    table(f"Squared error over its theory, {users} users", head, accuracy(users, 0.02 if quick else 0.006))
    head = ("D", "epsilon", "predicted", "measured", "bits", "bits of a subset")
    table(
        "Squared error of ProjectiveGeometry over SubsetSelection's",
        head,
        geometry_against_subsets(1 << 15, 4 if quick else 48),
    )
    head = ("task", "library", "users/s", "here, users/s", "ratio", "here, one user a call")
    table("Other libraries", head, peers(*((10, 2000) if quick else (200, 20_000))))


if __name__ == "__main__":
    main()
