"""Costs of count mechanisms: proofs over a grid, time to design, time of plain cvxpy, draws.

    python benchmarks/count_mechanisms.py            about twenty minutes on one core
    python benchmarks/count_mechanisms.py --quick    a few seconds

Prints one Markdown table a section. Times are wall-clock medians on one core, in one run.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from importlib.metadata import version

import cvxpy
import numpy as np
from tqdm import tqdm

from mechdesign import Privacy, design, named
from mechdesign.losses import L0, L1, L2
from mechdesign.lp.basis import reduce_by_symmetry
from mechdesign.lp.highs import FloatProgram, solve
from mechdesign.lp.simplex import Problem
from mechdesign.optimisation.formulation import mechanism_program, reflection
from mechdesign.properties import resolve

SIZES = (2, 3, 4, 5, 7, 8, 12, 16, 24, 32)
ALPHAS = tuple(
    Fraction(text) for text in ("1/2", "62/100", "2/3", "76/100", "9/10", "10/11", "99/100")
)
SETS = ("", "WH", "WH RM", "WH CM", "WH RM CM", "F", "RH RM CH CM F WH S")
STRONGEST = "WH RM CM"


def median(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def proofs(sizes: Sequence[int]) -> Iterable[Sequence[object]]:
    """Designs over the whole grid whose certificate has gap exactly 0."""
    cases = [
        (n, a, loss, names)
        for n in sizes
        for a in ALPHAS
        for loss in (L0(), L1(), L2())
        for names in SETS
    ]
    proved, slowest, unproved = 0, 0.0, []
    for n, alpha, loss, names in tqdm(cases, desc="grid", leave=False, disable=None):
        start = time.perf_counter()
        certificate = design(n, Privacy(alpha=alpha), loss, names.split()).certificate
        slowest = max(slowest, time.perf_counter() - start)
        proved += certificate.optimal
        if not certificate.optimal:
            unproved.append(f"n={n} alpha={alpha} {loss!r} {names}: {float(certificate.gap):.1g}")
    yield len(cases), proved, f"{slowest:.2f} s", "; ".join(unproved) or "none"


def times(sizes: Sequence[int], repeats: int) -> Iterable[Sequence[object]]:
    """design() from nothing to a checked certificate."""
    for n in sizes:
        for alpha in (Fraction(9, 10), Fraction(99, 100))[: 1 if n > 128 else 2]:
            for loss, names in ((L0(), STRONGEST), (L0(), "WH"), (L2(), "WH")):
                found = []
                took = median(
                    lambda: found.append(
                        design(n, Privacy(alpha=alpha), loss, names.split()).certificate
                    ),
                    1 if n > 64 else repeats,
                )
                gap = found[0].gap
                yield (
                    n,
                    alpha,
                    f"{loss!r}",
                    names,
                    f"{took:.2f}",
                    "0 (exactly)" if gap == 0 else f"{float(gap):.2g}",
                )


def large(n: int) -> Iterable[Sequence[object]]:
    """Seconds of design() for L0, for every set of properties and alpha; the gap is always 0."""
    for names in SETS:
        row = []
        for alpha in ALPHAS:
            found = []
            took = median(
                lambda: found.append(design(n, Privacy(alpha=alpha), L0(), names.split())), 1
            )
            assert found[0].certificate.optimal
            row.append(f"{took:.1f}")
        yield names or "none", *row


def plain_cvxpy(n: int, alpha: float) -> None:
    """The WH + RM + CM program as its formulas read."""
    size = n + 1
    p = cvxpy.Variable((size, size), nonneg=True)
    rows = [
        cvxpy.sum(p, axis=0) == 1,
        p[:, :-1] >= alpha * p[:, 1:],
        p[:, 1:] >= alpha * p[:, :-1],
        cvxpy.diag(p) >= 1 / size,
    ]
    for k in range(size):
        rows += [p[k, :k] <= p[k, 1 : k + 1]] * (k > 0) + [p[k, k + 1 :] <= p[k, k:-1]] * (k < n)
        rows += [p[:k, k] <= p[1 : k + 1, k]] * (k > 0) + [p[k + 1 :, k] <= p[k:-1, k]] * (k < n)
    cvxpy.Problem(cvxpy.Minimize(1 - cvxpy.trace(p) / size), rows).solve(solver=cvxpy.HIGHS)


def floats_only(n: int, alpha: Fraction) -> None:
    """The same program up to the optimal basis in floats: built, reduced, solved, not certified."""
    size = n + 1
    program = mechanism_program(
        size, size, Privacy(alpha=alpha), L0(), [resolve(name) for name in STRONGEST.split()]
    )
    reduced = reduce_by_symmetry(program, reflection(size, size, program.variables))
    assert reduced is not None
    solve(FloatProgram.of(Problem.of(reduced.program)))


def against_cvxpy(sizes: Sequence[int], repeats: int) -> Iterable[Sequence[object]]:
    alpha = Fraction(9, 10)
    for n in sizes:
        count = 1 if n > 64 else repeats
        theirs, ours = (
            median(lambda: plain_cvxpy(n, float(alpha)), count),
            median(lambda: floats_only(n, alpha), count),
        )
        yield n, f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.1f}"


def draws(size: int, repeats: int) -> Iterable[Sequence[object]]:
    mechanism = named.explicit_fair(16, alpha="9/10")
    counts = np.random.default_rng(1).integers(0, 17, size)
    mechanism.release(counts[:10])
    seeded, secure = np.random.default_rng(2), None
    for name, rng in (("seeded (PCG64)", seeded), ("secure (operating system)", secure)):
        took = median(lambda: mechanism.release(counts, rng), repeats)
        yield name, f"{size / took / 1e6:.1f} million/s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    packages = f"highspy {version('highspy')}, cvxpy {cvxpy.__version__}, numpy {np.__version__}"
    print(f"Python {platform.python_version()}, {packages}")
    repeats = 3
    table("Draws, n = 16", ("randomness", "draws"), draws(1_000_000 if quick else 10_000_000, 5))
    table(
        "Design",
        ("n", "alpha", "loss", "properties", "design and certificate, s", "gap"),
        times((8, 32) if quick else (8, 16, 32, 64, 128, 256), repeats),
    )
    size = 65 if quick else 256
    table(f"L0 at n = {size}, s", ("properties", *map(str, ALPHAS)), large(size))
    table(
        "L0 with WH + RM + CM, alpha = 9/10, against plain cvxpy",
        ("n", "cvxpy with HiGHS, s", "here before certification, s", "ratio"),
        against_cvxpy((32,) if quick else (32, 64, 128), repeats),
    )
    table(
        "Proofs over the grid",
        ("designs", "gap exactly 0", "slowest", "others"),
        proofs(SIZES[:6] if quick else SIZES),
    )


if __name__ == "__main__":
    main()
