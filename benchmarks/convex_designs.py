"""Twenty convex designs: their objectives, the proved lower bounds, and how long both took.

    python benchmarks/convex_designs.py            about a minute on one core
    python benchmarks/convex_designs.py --quick    the first five

Prints a Markdown table. The relative gap is proved, by `mechdesign.ConvexCertificate`; "cvxpy" is
the optimum of the same program written plainly, by Clarabel, less the objective that was reached.
Exits with 1 if a gap exceeds 1e-6 or a certificate does not verify.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from mechdesign import Bands, Counts, Privacy, design
from mechdesign.base.numbers import Floats
from mechdesign.mechanism.values import Values

LARGEST_GAP = 1e-6


@dataclass(frozen=True)
class Worked:
    """A program: what is asked, of how many, with what privacy."""

    name: str
    n: int
    alpha: str
    objective: Callable[[Any], Any] | None
    constraints: Callable[[Any], Sequence[Any]] | None = None
    properties: tuple[str, ...] = ()
    outputs: Values | None = None


def powers(P: Any, power: int) -> Any:
    """The expected |error|^power for each count."""
    i, j = np.indices(P.shape)
    return cp.sum(cp.multiply(np.abs(i - j) ** power, P), axis=0)


def binomial(size: int) -> Floats:
    """A prior in the middle: of fair coins."""
    row = np.ones(1)
    for _ in range(size - 1):
        row = (np.append(row, 0) + np.append(0, row)) / 2
    return row


def information(P: Any, prior: Floats) -> Any:
    """The mutual information of count and output, in nats."""
    joint = P @ np.diag(prior)
    return cp.sum(cp.rel_entr(joint, cp.outer(P @ prior, prior)))


def uniform(size: int) -> Floats:
    return np.full(size, 1 / size)


def chi_square(P: Any) -> Any:
    """The mean chi-square divergence of a column from the mean column, uniform prior."""
    mean = P @ uniform(P.shape[1])
    rows = [cp.quad_over_lin(P[k] - mean[k], mean[k]) for k in range(P.shape[0])]
    return cp.sum(cp.hstack(rows)) / P.shape[1]


def wanted(P: Any) -> Floats:
    """Right, or off by one: each of the three alike."""
    i, j = np.indices(P.shape)
    near = 1.0 * (abs(i - j) <= 1)
    return near / near.sum(axis=0)


def variance(P: Any, values: Floats) -> Any:
    """For each count the variance of an unbiased release of these values."""
    return values**2 @ P - np.arange(P.shape[1]) ** 2


def bias(P: Any) -> Any:
    return np.arange(P.shape[0]) @ P - np.arange(P.shape[1])


def design_matrix(P: Any) -> Any:
    """The information matrix of a line fitted to what is released, uniform prior."""
    x = np.linspace(-1, 1, P.shape[0])
    basis = np.vstack([np.ones(P.shape[0]), x])
    return basis @ cp.diag(P @ uniform(P.shape[1])) @ basis.T


WIDE = Counts(-6, 14)
VALUES = np.arange(-6.0, 15.0)
PROGRAMS = (
    Worked("largest mean squared error", 8, "9/10", lambda P: cp.max(powers(P, 2))),
    Worked(
        "mutual information, errors bounded",
        8,
        "9/10",
        lambda P: information(P, uniform(9)),
        lambda P: [cp.max(powers(P, 2)) <= 14.5],
    ),
    Worked("Frobenius distance to a table", 8, "9/10", lambda P: cp.norm(P - wanted(P), "fro")),
    Worked("L1 distance to a table", 8, "9/10", lambda P: cp.norm1(P - wanted(P)), None, ("CM",)),
    Worked("log-loss", 8, "9/10", lambda P: -cp.sum(cp.log(cp.diag(P))) / 9),
    Worked(
        "mutual information and error, binomial prior",
        10,
        "1/2",
        lambda P: information(P, binomial(11)) + powers(P, 1) @ binomial(11),
    ),
    Worked(
        "entropy of what is released, and error",
        10,
        "2/3",
        lambda P: -cp.sum(cp.entr(P @ uniform(11))) + cp.sum(powers(P, 2)) / 100,
    ),
    Worked("chi-square and error", 8, "2/3", lambda P: chi_square(P) + cp.max(powers(P, 2)) / 20),
    Worked(
        "norm of variances, unbiased, wide outputs",
        8,
        "1/2",
        lambda P: cp.norm(variance(P, VALUES)),
        None,
        ("unbiased",),
        WIDE,
    ),
    Worked(
        "largest variance, unbiased, wide outputs",
        8,
        "1/2",
        lambda P: cp.max(variance(P, VALUES)),
        None,
        ("unbiased",),
        WIDE,
    ),
    Worked(
        "mean error of the worst 30% of counts (CVaR)",
        8,
        "9/10",
        lambda P: cp.cvar(powers(P, 1), 0.7),
        None,
        ("WH", "CM"),
    ),
    Worked(
        "sum of norms: change between columns, and error",
        8,
        "1/2",
        lambda P: cp.sum(cp.norm(P[:, 1:] - P[:, :-1], 2, axis=0)) + cp.sum(powers(P, 2)) / 30,
    ),
    Worked(
        "quadratic form of the bias",
        8,
        "9/10",
        lambda P: cp.quad_form(bias(P), 0.5 ** abs(np.subtract.outer(np.arange(9), np.arange(9)))),
        lambda P: [cp.trace(P) >= 1.2],
    ),
    Worked(
        "wrong answers, near a table, entries fixed",
        8,
        "9/10",
        None,
        lambda P: [cp.norm(P - wanted(P), "fro") <= 1.45, P[0, 0] == 0.25, P[5, :] <= P[4, 4]],
    ),
    Worked("exponential utility", 8, "9/10", lambda P: cp.sum(cp.exp(powers(P, 1)))),
    Worked("smooth maximum of errors", 12, "2/3", lambda P: cp.log_sum_exp(3 * powers(P, 2))),
    Worked("geometric mean of hits", 8, "9/10", lambda P: -cp.geo_mean(cp.diag(P)), None, ("S",)),
    Worked(
        "fitted line (A-optimality)",
        8,
        "9/10",
        lambda P: cp.matrix_frac(np.array([0, 1.0]), design_matrix(P)) + cp.sum(powers(P, 2)) / 90,
    ),
    Worked(
        "information in bands",
        8,
        "1/2",
        lambda P: information(P, uniform(9)) - cp.sum(P[0, :3] + P[1, 3:6] + P[2, 6:]) / 9,
        None,
        (),
        Bands([(0, 2), (3, 5), (6, 8)]),
    ),
    Worked(
        "mutual information and error",
        20,
        "9/10",
        lambda P: information(P, uniform(21)) + cp.max(powers(P, 2)) / 100,
    ),
)


def plain(worked: Worked) -> float:
    """The optimum of the program as cvxpy has it, with privacy written plainly; else not a number.

    Not of those with properties, which have no counterpart in cvxpy.
    """
    if worked.properties or worked.objective is None:
        return float("nan")
    rows = worked.n + 1 if worked.outputs is None else worked.outputs.size
    P, alpha = cp.Variable((rows, worked.n + 1)), to_float(worked.alpha)
    limits = [P >= 0, cp.sum(P, axis=0) == 1]
    limits += [P[:, :-1] >= alpha * P[:, 1:], P[:, 1:] >= alpha * P[:, :-1]]
    limits += worked.constraints(P) if worked.constraints else []
    problem = cp.Problem(cp.Minimize(worked.objective(P)), limits)
    return float(problem.solve(solver="CLARABEL"))


def to_float(text: str) -> float:
    top, bottom = text.split("/")
    return int(top) / int(bottom)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="the first five programs only")
    chosen = PROGRAMS[:5] if parser.parse_args().quick else PROGRAMS
    print("| program | n | alpha | objective | proved bound | relative gap | cvxpy | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    failed = 0
    for worked in chosen:
        start = time.perf_counter()
        d = design(
            Counts(0, worked.n),
            Privacy(alpha=worked.alpha),
            objective=worked.objective,
            constraints=worked.constraints,
            properties=worked.properties,
            outputs=worked.outputs,
        )
        seconds = time.perf_counter() - start
        proof = d.convex
        assert proof is not None
        true = proof.verify(d.mechanism) and d.mechanism.audit().holds
        failed += not true or proof.relative_gap > LARGEST_GAP
        apart = plain(worked) - float(proof.objective)
        cells = (
            worked.name,
            worked.n,
            worked.alpha,
            f"{float(proof.objective):.9f}",
            f"{float(proof.bound):.9f}",
            f"{proof.relative_gap:.1e}",
            "–" if np.isnan(apart) else "fails" if np.isinf(apart) else f"{apart:+.1e}",
            f"{seconds:.2f}",
        )
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
