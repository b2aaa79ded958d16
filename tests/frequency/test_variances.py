"""The contract on stated errors, of every frequency oracle: see `tests.contracts.variances`."""

from __future__ import annotations

from functools import partial

import numpy as np

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    RR,
    SUE,
    AffineSelection,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from mechdesign import Privacy, named
from tests.contracts.variances import Entry, Sample, VarianceContract, fixed, sums


class OracleVariances(VarianceContract):
    """Weighted sums of frequencies, and intervals of single items."""

    def sample(self, make, epsilon, counts, rng):
        f, n = counts / counts.sum(), int(counts.sum())
        weights = sums(len(counts), rng)
        errors, told, covered = [], [], []
        for run in range(self.runs):
            oracle = make(epsilon, run)
            estimate = oracle.estimate(oracle.simulate(counts, rng))
            value, variance = estimate.linear(weights)
            errors.append(value - weights @ f)
            told.append(variance)
            low, high = estimate.interval()
            covered.append((low <= f) & (f <= high))
        predicted = oracle.linear_variance(n, weights, f)
        return Sample(np.array(errors), np.array(told), predicted, np.array(covered))


def krr(domain, epsilon):
    return Tabular(named.krr(domain, alpha=Privacy.from_epsilon(epsilon, neighbours="all").alpha))


class TestOracles(OracleVariances):
    planted = ("OUE", "Tabular")
    entries = {  # noqa: RUF012
        **{kind.__name__: Entry(fixed(partial(kind, 16))) for kind in (GRR, SUE, OUE)},
        "Tabular": Entry(fixed(partial(krr, 16))),
    }


class TestSlowerOracles(OracleVariances):
    """Whose simulation takes time for every user."""

    users, planted = 20_000, ("HRR",)
    entries = {  # noqa: RUF012
        **{
            kind.__name__: Entry(fixed(partial(kind, 16)))
            for kind in (SubsetSelection, HRR, OLH, ProjectiveGeometry, AffineSelection)
        }
    }


class TestHRRt(OracleVariances):
    users, planted = 4000, ("HRR of 3 coefficients",)
    entries = {"HRR of 3 coefficients": Entry(fixed(lambda epsilon: HRR(16, epsilon, 3)))}  # noqa: RUF012


class TestRR(OracleVariances):
    domain, runs, planted = 2, 1500, ("RR",)
    entries = {"RR": Entry(fixed(partial(RR, 2)))}  # noqa: RUF012


class TestSketches(OracleVariances):
    """Over the public random functions: every run has another seed."""

    users, planted = 8000, ("CountMeanSketch",)
    entries = {  # noqa: RUF012
        "CountMeanSketch": Entry(lambda e, run: CountMeanSketch(16, e, 16, 64, seed=run)),
        "HadamardCountMeanSketch": Entry(
            lambda e, run: HadamardCountMeanSketch(16, e, 16, 64, seed=run)
        ),
        "JLOracle": Entry(lambda e, run: JLOracle(16, e, 256, seed=run)),
    }
