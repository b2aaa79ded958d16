"""Workload-optimal releases beside the literature: HDMM's workloads, its figures, OpenDP's tree.

Prints Markdown tables.

python benchmarks/workload_release.py [--quick]

Errors are root mean squares over the queries, divided by the one that HDMM's authors report; in
brackets, what they report of the others, for real noise. Variances are those of the noise that is
drawn: for our integer strategies, and for published ones of whole weights; that of greedy weights
is of real noise, to which integers come as near as they are large. epsilon^2 = 2 or rho = 1/2: then
real noise has the squared sensitivity as its variance.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections.abc import Iterator
from itertools import product

import numpy as np
import strategy_peers as peers
from hdmm_figures import COLUMNS, GAUSSIAN, LAPLACE, OF_2048_CELLS, SECONDS, SEVERAL
from range_queries import one_core, table

from mechdesign import ZCDP, Privacy
from rangeq.central import Hierarchy, Wavelet, Workload, best_branching, workload_optimal

PROMISES: dict[str, Privacy | ZCDP] = {
    "Gaussian": ZCDP("1/2"),
    "Laplace": Privacy.from_epsilon(math.sqrt(2)),
}
NORMS = {"Laplace": 1, "Gaussian": 2}
NONE = "–"


def asked(name: str, cells: int) -> Workload:
    """A workload by its name here: those of the library, and ranges of cells in a random order."""
    if name != "permuted ranges":
        return Workload.of(name, cells)
    order = np.random.default_rng(7).permutation(cells)
    return Workload.of(Workload.of("ranges", cells).terms[0].factors[0].rows()[:, order], cells)


def one_attribute(noise: str, sizes: tuple[int, ...]) -> None:
    """Errors over HDMM's for workloads of one attribute; over ours where its authors have none."""
    figures, norm = (LAPLACE if noise == "Laplace" else GAUSSIAN), NORMS[noise]
    rows = []
    for name, cells in product(("ranges", "prefixes", "width-32", "permuted ranges"), sizes):
        # The ranges of 1024 cells in a random order do not fit in memory, written out
        if name.startswith("permuted") and (cells > 256 or noise == "Gaussian"):
            continue
        workload = asked(name, cells)
        start = time.perf_counter()
        design = workload_optimal(workload, cells, PROMISES[noise])
        seconds = time.perf_counter() - start
        ours, published = math.sqrt(design.variance), figures.get((name, cells), {})
        unit, gram = published.get("HDMM", ours), workload.terms[0].factors[0].gram
        row = [name, str(cells)]
        for column, strategy in (
            ("identity", peers.identity(cells)),
            ("binary tree", peers.tree(cells, 2)),
            ("wavelet", peers.wavelet(cells)),
            ("H_b", peers.hb(cells)),
            ("greedy", peers.greedy(gram, norm)),
        ):
            found = (
                peers.error(strategy, gram, workload.count, norm) * drawn(strategy, noise) / unit
            )
            said = published.get(column, math.nan) / unit
            row.append(f"{found:.3f}" + ("" if math.isnan(said) else f" ({said:.3f})"))
        if noise == "Laplace":
            row.append(best_tree(cells, unit) if name == "ranges" else NONE)
        bounds = [math.sqrt(bound) / unit for bound in (design.continuous_bound, design.bound)]
        row += [f"{ours / unit:.4f}" if published else "1", *(f"{bound:.4f}" for bound in bounds)]
        row += [f"{100 * design.gap:.3g}", f"{seconds:.1f} ({SECONDS[noise, cells]:g})"]
        rows.append(row)
    head = ["workload", "cells", *COLUMNS[:-1], "ours", "bound for real noise", "bound", "gap, %"]
    head.append("design, s")
    if noise == "Laplace":
        head.insert(-5, "best tree here")
    table(f"One attribute, {noise} noise: error over HDMM's", head, rows)


def drawn(strategy: np.ndarray, noise: str) -> float:
    """The deviation of discrete noise over that of real noise, for a strategy of whole weights."""
    sensitivity = float(np.abs(strategy).sum(axis=0).max())
    if noise == "Gaussian" or not np.array_equal(strategy, np.rint(strategy)):
        return 1.0  # of a variance of 1 and more they are the same to seven digits
    rate = math.sqrt(2) / sensitivity
    return math.sqrt(rate**2 / 2 / (math.cosh(rate) - 1))


def best_tree(cells: int, unit: float) -> str:
    """The error over all ranges of this library's best tree, over a unit."""
    fanouts = best_branching(cells, 1.0).best.fanouts
    tree = Hierarchy(cells, math.sqrt(2), fanouts, budget="optimal")
    return f"{math.sqrt(tree.sampled_average_variance()) / unit:.3f}"


def large_domains(quick: bool) -> None:
    """Prefixes and ranges of many cells under rho = 1/2, and the wavelet with Gaussian noise."""
    rows = []
    for bits in (11, 14) if quick else (11, 14, 17, 20):
        cells = 1 << bits
        counts = np.full(cells, 7)
        for name in ("prefixes", "ranges"):
            start = time.perf_counter()
            design = workload_optimal(name, cells, PROMISES["Gaussian"])
            errors = (
                f"{math.sqrt(design.variance):.3f}",
                f"{math.sqrt(design.continuous_bound):.3f}",
            )
            middle = time.perf_counter()
            design.release(counts)
            seconds = f"{middle - start:.1f}", f"{time.perf_counter() - middle:.2f}"
            # Laplace noise is in proportion to the sum of a column, bits + 1, and not to its root
            wavelet = Wavelet(cells, math.sqrt(2)).average_variance() / (bits + 1)
            beside = f"{math.sqrt(wavelet):.3f}" if name == "ranges" else NONE
            gap = f"{100 * design.continuous_gap:.2f}"
            said = f"{OF_2048_CELLS[name]:.3f}" if cells == 2048 else NONE
            rows.append([name, f"2^{bits}", beside, said, *errors, gap, *seconds])
    errors_of = ["wavelet", "HDMM", "ours", "bound"]
    head = ["workload", "cells", *errors_of, "gap, %", "design, s", "release, s"]
    table("Large domains, Gaussian noise: RMSE of a query, rho = 1/2", head, rows)


def union(parts: Iterator[Workload]) -> Workload:
    """All queries of several workloads; what stands twice counts twice."""
    first, *others = parts
    return sum(others, start=first)


def with_total(cells: int) -> np.ndarray:
    """The cells, and their total."""
    return np.concatenate([np.eye(cells), np.ones((1, cells))])


def cps(first: str) -> Workload:
    """On attributes of the Current Population Survey: income, age, marital status, race, sex.

    All products of the first two, asked as the name says, and the cells and the total of each of
    the others. "cells" has the totals of the first two as well, and is all marginals.
    """
    sizes = (50, 100, 7, 4, 2)
    if first == "cells":
        kinds = product(("cells", "total"), repeat=len(sizes))
        return union(Workload.of(list(names), sizes) for names in kinds)
    return Workload.of([first, first, *map(with_total, sizes[2:])], sizes)


def sf1() -> Workload:
    """The person tables of Summary File 1 of the 2010 census, without the relationship.

    Over sex, Hispanic origin, the 64 sets of six races, and 115 years of age: tables P1, P3 to P5,
    P8 to P12 and P12A-I, PCT12 and PCT12A-O, each with its totals.
    """
    sizes = (2, 2, 64, 115)
    races = np.array([[s >> race & 1 for race in range(6)] for s in range(64)])
    number = races.sum(axis=1)
    alone = [(number == 1) & (races[:, race] == 1) for race in range(6)]
    groups = np.array([*alone, ~np.any(alone, axis=0)], dtype=np.float64)
    sets = np.eye(64)[1:]
    numbers = number == np.arange(1, 7)[:, None]
    detailed = np.concatenate([sets, numbers, [number >= 2]]).astype(np.float64)
    hispanic, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    years = np.arange(115)
    adults = (years >= 18)[None].astype(np.float64)

    def age_groups(bounds: list[int]) -> np.ndarray:
        first, after = np.array(bounds[:-1])[:, None], np.array(bounds[1:])[:, None]
        return ((years >= first) & (years < after)).astype(np.float64)

    bounds = "0 5 10 15 18 20 21 22 25 30 35 40 45 50 55 60 62 65 67 70 75 80 85 115"
    grouped = age_groups([int(bound) for bound in bounds.split()])
    single = age_groups([*range(101), 105, 110, 115])
    white = groups[:1]

    def tables() -> Iterator[tuple[str | np.ndarray, ...]]:
        everybody = ("total",) * 4
        yield everybody  # P1
        yield from (("total", "total", groups, "total"), everybody)  # P3
        yield from (("total", "cells", "total", "total"), everybody)  # P4
        yield from (  # P5
            ("total", "cells", groups, "total"),
            ("total", with_total(2), "total", "total"),
        )
        yield from (("total", "total", detailed, "total"), everybody)  # P8
        yield from (  # P9
            ("total", "cells", "total", "total"),
            ("total", other, detailed, "total"),
            everybody,
        )
        of_age = ("total", "total", "total", adults)
        yield from (("total", "total", detailed, adults), of_age)  # P10
        yield from (  # P11
            ("total", "cells", "total", adults),
            ("total", other, detailed, adults),
            of_age,
        )
        for ages, last in ((grouped, white), (single, groups)):  # P12, P12A-I; PCT12, PCT12A-O
            for origin, race in (
                ("total", "total"),
                ("total", groups),
                (hispanic, "total"),
                (other, last),
            ):
                yield ("cells", origin, race, ages)
                yield (with_total(2), origin, race, "total")

    return union(Workload.of(list(one), sizes) for one in tables())


def several_attributes(quick: bool) -> None:
    """Errors over HDMM's for workloads of several attributes."""
    workloads = {
        "all boxes, 256 x 256": Workload.of("ranges", (256, 256)),
        "CPS, marginals": cps("cells"),
        "CPS, prefixes": cps("prefixes"),
        "SF1": sf1(),
        "marginals of 2, 8 x 8 x 8 x 8": Workload.of("marginals", (8,) * 4),
        "marginals of 2, 75 x 16 x 5 x 2 x 20": Workload.of("marginals", (75, 16, 5, 2, 20)),
        "boxes, 64 x 64": Workload.of("ranges", (64, 64)),
    }
    rows = []
    for name, workload in workloads.items():
        if quick and workload.cells > 1 << 13:
            continue
        for noise, promise in PROMISES.items():
            start = time.perf_counter()
            design = workload_optimal(workload, workload.sizes, promise)
            seconds = time.perf_counter() - start
            published = SEVERAL.get((name, noise), math.nan)
            ratio = math.sqrt(design.variance) / published
            rows.append(
                [
                    name,
                    noise,
                    f"{math.sqrt(design.variance):.4f}",
                    NONE if math.isnan(published) else f"{published:.4f}",
                    NONE if math.isnan(published) else f"{ratio:.3f}",
                    f"{100 * design.continuous_gap:.2f}",
                    f"{seconds:.1f}",
                ]
            )
    head = ["workload", "noise", "ours", "HDMM", "ratio", "above the bound for real noise, %"]
    head.append("design, s")
    table("Several attributes: error, over HDMM's", head, rows)


def opendp_tree(cells: int, repeats: int) -> None:
    """OpenDP's consistent tree, measured over all ranges, beside ours at the same epsilon."""
    try:
        import opendp.prelude as dp
    except ImportError:
        print("\nOpenDP is not installed: pip install '.[opendp]'")
        return
    dp.enable_features("contrib")
    epsilon, counts = math.sqrt(2), [100] * cells
    rows = []
    for b in (int(dp.t.choose_branching_factor(cells)), 16, 2):
        start = dp.t.make_b_ary_tree(
            dp.vector_domain(dp.atom_domain(T=int), size=cells),
            dp.l1_distance(T=int),
            leaf_count=cells,
            branching_factor=b,
        )
        scale = dp.binary_search_param(
            lambda s: start >> dp.m.then_laplace(scale=s), d_in=1, d_out=epsilon
        )
        measured, consistent = (
            start >> dp.m.then_laplace(scale=scale),
            dp.t.make_consistent_b_ary_tree(branching_factor=b),
        )
        found, began = [], time.perf_counter()
        for _ in range(repeats):
            sums = np.cumsum(np.asarray(consistent(measured(counts)))[:cells] - 100)
            error = np.concatenate([[0.0], sums])
            found.append((cells + 1) * (error @ error) - error.sum() ** 2)
        seconds = (time.perf_counter() - began) / repeats
        squares = np.array(found) / (cells * (cells + 1) / 2)
        rmse = math.sqrt(squares.mean())
        spread = squares.std(ddof=1) / math.sqrt(repeats) / 2 / rmse
        rows.append([f"OpenDP, {b} children", f"{rmse:.2f} ± {spread:.2f}", f"{1e3 * seconds:.1f}"])
    for noise, promise in PROMISES.items():
        design = workload_optimal("ranges", cells, promise)
        own = np.array(counts)
        design.release(own)
        began = time.perf_counter()
        for _ in range(10):
            design.release(own)
        seconds = (time.perf_counter() - began) / 10
        rows.append([f"ours, {noise}", f"{math.sqrt(design.variance):.2f}", f"{1e3 * seconds:.1f}"])
    table(
        f"All ranges of {cells} cells, epsilon^2 = 2 (Gaussian: rho = 1/2)",
        ["release", "RMSE of a range", "a release, ms"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="128 cells, and up to 2^13 of several")
    quick = parser.parse_args().quick
    one_core()
    for noise in PROMISES:
        one_attribute(noise, (128,) if quick else (128, 256, 1024))
    large_domains(quick)
    several_attributes(quick)
    opendp_tree(128 if quick else 256, 100 if quick else 400)


if __name__ == "__main__":
    main()
