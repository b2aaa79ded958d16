"""Perturbation tables: the least delta beside the greatest entropy, rounding, joint leaks, seconds.

Prints Markdown tables.

python benchmarks/perturbation_tables.py [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from range_queries import one_core, table

from mechdesign import ApproximateDP, Incompatible, Privacy, design
from mechdesign.losses import L0, L2
from mechdesign.perturbation import (
    Disclosure,
    JointDisclosure,
    PerturbationDesign,
    PerturbationTable,
    best_guess,
    best_guess_of_table,
    design_perturbation,
    joint_curve,
    key_leak,
    rounding_table,
    scattered,
)

SIZES = ((3, 1), (5, 2), (8, 4), (10, 5))
ALL: dict[str, Any] = {"variance": 5, "blocked": 2, "stay": "1/10", "monotone": True}


def short(value: Fraction) -> str:
    return f"{float(value):.3g}"


def timed(work: Callable[[], Any]) -> tuple[Any, str]:
    start = time.perf_counter()
    found = work()
    return found, f"{time.perf_counter() - start:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes only")
    sizes = SIZES[:2] if parser.parse_args().quick else SIZES
    one_core()
    designs(sizes)
    rules(10 if sizes == SIZES else 5)
    joint()
    margins()
    with_a_delta(64 if sizes == SIZES else 16)
    audit()


def designs(sizes: tuple[tuple[int, int], ...]) -> None:
    rows = []
    for noise, variance in sizes:
        entropy = design_perturbation(noise, noise=noise, variance=variance, objective="entropy")
        broad = Disclosure(entropy.table).curve_of(noise)
        for epsilon in ("1", "1/2"):

            def least(protected: int, blocked: int = 0, epsilon: str = epsilon) -> Any:
                try:
                    return design_perturbation(
                        noise + 5,
                        noise=noise,
                        variance=variance,
                        objective="delta",
                        epsilon=epsilon,
                        protected=protected,
                        blocked=blocked,
                    ).certificate
                except Incompatible as error:
                    return type(error).__name__

            inner, seconds = timed(lambda: least(noise))
            others = [least(1), least(3, 2)]
            shown = [
                each if isinstance(each, str) else f"{float(each.value):.3g}" for each in others
            ]
            delta = broad.delta(epsilon)
            rows.append(
                [
                    *(str(noise), str(variance), epsilon, f"{float(inner.value):.3g}"),
                    *(str(inner.gap), f"{float(delta):.3g}", f"{float(delta / inner.value):.1f}"),
                    *shown,
                    *(seconds, f"{float(entropy.certificate.gap):.1g}"),
                ]
            )
    table(
        "The least delta of unbiased noise, and that of the greatest entropy",
        [
            *("D", "V", "epsilon", "counts >= D", "gap", "entropy", "times", "counts >= 1"),
            *("counts >= 3, js = 2", "seconds", "gap of the entropy"),
        ],
        rows,
    )


def rules(noise: int) -> None:
    rows = []
    for objective in ("L0", "L1", "L2", "delta", "entropy"):
        given: dict[str, Any] = {**ALL, "epsilon": 1, "protected": 1, "objective": objective}
        if objective != "delta":
            given["delta"] = "1/10"

        def work(given: dict[str, Any] = given) -> PerturbationDesign:
            return design_perturbation(20, noise=noise, **given)

        found, seconds = timed(work)
        rounded, more = timed(found.rounded)
        certificate = found.certificate
        rows.append(
            [
                *(objective, f"{float(certificate.value):.5g}", f"{float(certificate.gap):.1g}"),
                *(seconds, f"{float(rounded.value):.5g}", f"{float(rounded.lost):.2g}", more),
            ]
        )
    table(
        f"All rules at once: counts to 20, D = {noise}, 256 keys",
        ["objective", "optimum", "gap", "seconds", "rounded", "lost at most", "seconds"],
        rows,
    )


def joint() -> None:
    three = PerturbationTable.of_laws(256, [{0: 256}, {-1: 64, 0: 128, 1: 64}])
    entropy = design_perturbation(5, noise=5, variance=2, objective="entropy").rounded().table
    rows = []
    for name, first in {"1/4, 1/2, 1/4": three, "entropy, D = 5, V = 2": entropy}.items():
        for order, each in {"in order": first, "scattered": scattered(first)}.items():
            two, three_cells = best_guess(each, 2), best_guess(each, 3)
            leak = key_leak(each, each.largest)
            counts = np.full((50, 50), 9)
            found, seconds = timed(lambda: JointDisclosure(each, counts))
            bounds, seconds = timed(lambda: found.delta(1))
            rows.append(
                [
                    *(
                        name,
                        order,
                        f"{float(two.right):.4f}",
                        f"{float(two.right_if_independent):.4f}",
                    ),
                    *(short(two.certain), short(three_cells.right)),
                    short(three_cells.right_if_independent),
                    *(f"{leak.chi_squared:.4f}", f"{leak.least:.4f}", f"{found.dependence:.1g}"),
                    *(" to ".join(f"{float(bound):.4g}" for bound in bounds), seconds),
                ]
            )
    table(
        "Cells with totals: guesses of one cell; 50 x 50 cells with all margins",
        [
            *("noise", "keys", "2 cells", "if independent", "certain", "3 cells", "if independent"),
            *("chi squared", "least", "distance of 50 x 50", "delta at epsilon 1", "seconds"),
        ],
        rows,
    )


def split(table: PerturbationTable, width: float, rng: np.random.Generator) -> PerturbationTable:
    """Intervals wider than a part of all keys split, and shuffled, as ptable 0.4.0 does."""
    most, rows = round(width * table.keys), []
    for row in table.rows:
        parts = []
        for keys, noise in row if len(row) > 1 else ():
            parts += [(most, noise)] * (keys // most) + [(keys % most, noise)]
        rows.append(tuple(parts[k] for k in rng.permutation(len(parts))) if parts else row)
    return PerturbationTable(table.keys, tuple(rows), table.period)


def margins() -> None:
    three = PerturbationTable.of_laws(256, [{0: 256}, {-1: 64, 0: 128, 1: 64}])
    entropy = design_perturbation(5, noise=5, variance=2, objective="entropy").rounded().table
    rows = []
    orders: dict[str, Callable[[PerturbationTable, int], PerturbationTable]] = {
        "in order": lambda table, seed: table,
        "split at 0.2": lambda table, seed: split(table, 0.2, np.random.default_rng(seed)),
        "split at 0.05": lambda table, seed: split(table, 0.05, np.random.default_rng(seed)),
        "scattered": lambda table, seed: scattered(table),
    }
    for name, order in orders.items():
        leaks = [
            np.median([key_leak(order(each, seed), 5).chi_squared for seed in range(20)])
            for each in (three, entropy)
        ]
        guess, seconds = timed(partial(best_guess_of_table, order(three, 0), (2, 2)))
        rows.append([name, *(f"{leak:.3g}" for leak in leaks)])
        rows[-1] += [f"{float(x):.3f}" for x in (guess.certain, guess.certain_if_independent)]
        rows[-1].append(seconds)
    table(
        "Orders of keys, the median of 20 shuffles; 2 x 2 cells with all margins",
        ["keys", "leak of 1/4, 1/2, 1/4", "of entropy", "certain", "if independent", "seconds"],
        rows,
    )
    rows = []
    for name, order in orders.items():
        row = [name]
        for cells in (2, 3, 4, 5):
            make = partial(joint_curve, order(entropy, 0), [9] * cells, 0)
            curve, seconds = timed(make)
            row.append(f"{float(curve.delta(1)):.4f}, {float(curve.unbounded):.4f}")
        rows.append([*row, seconds])
    table(
        "Cells and their total, entropy noise: delta at epsilon 1, and the delta of no epsilon",
        ["keys", "2 cells", "3 cells", "4 cells", "5 cells", "seconds of the last"],
        rows,
    )
    apart, rng, rows = scattered(entropy), np.random.default_rng(1), []
    for share in (0, 0.02, 0.1, 0.2, 0.3):
        counts = rng.integers(1, 20, size=(50, 50))
        counts[rng.random((50, 50)) < share] = 0
        found = JointDisclosure(apart, counts)
        bounds, seconds = timed(partial(found.delta, 1))
        shown = " to ".join(dict.fromkeys(f"{float(bound):.4f}" for bound in bounds))
        rows.append([f"{share:.0%}", f"{found.dependence:.1g}", shown, seconds])
    table(
        "50 x 50 cells, some of nobody: keys scattered over entropy noise",
        ["cells of nobody", "distance", "delta at epsilon 1", "seconds"],
        rows,
    )


def with_a_delta(largest: int) -> None:
    rows = []
    for n in (8, 16, 32, 64):
        for loss, properties in ((L0(), ["WH"]), (L2(), ["CM"])):
            if n > largest:
                continue
            pure = design(n, Privacy.from_epsilon(1), loss, properties).certificate
            row = [str(n), repr(loss), *properties, f"{float(pure.objective):.5g}"]
            for delta in ("1e-3", "1e-2"):
                made, seconds = timed(partial(design, n, ApproximateDP(1, delta), loss, properties))
                found = made.certificate
                row += [f"{float(found.objective):.5g}", str(found.gap), seconds]
            rows.append(row)
    table(
        "design(...) at epsilon 1, with a delta",
        [
            *("n", "loss", "property", "delta 0", "delta 0.001", "gap", "seconds"),
            *("delta 0.01", "gap", "seconds"),
        ],
        rows,
    )


def audit() -> None:
    laws = rounding_table(5).rows
    noise = [[run[0][1]] * 256 for run in laws]
    whole = PerturbationTable.of_noise(np.array(noise), 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        whole.write(path)
        read, reading = timed(lambda: PerturbationTable.read(path))
        _, judging = timed(lambda: str(Disclosure(read)))
    table(
        "Audit of 751 counts x 256 keys",
        ["seconds of reading", "of the summary"],
        [[reading, judging]],
    )


if __name__ == "__main__":
    main()
