"""The contract on stated errors for every protocol for marginals.

See `tests.contracts.variances`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from frequency.heavy import FewBits, GenProt, OneBit
from frequency.marginals import (
    CALM,
    Domain,
    InpEM,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MargPS,
    MargRR,
)
from frequency.oracles.count_mean_sketch import HadamardCountMeanSketch
from tests.contracts.variances import Band, Entry, Sample, VarianceContract, fixed

DOMAIN = Domain({"a": 2, "b": 3, "c": 2})
SETS = (("a",), ("b", "c"), ("c", "a"))


def sketched(domain, k, epsilon, run):
    """Over the public random functions, of few cells: every run has another seed."""
    protocol = InpHTCMS(domain, k, epsilon, 4, 16)
    sketch = protocol.records
    assert isinstance(sketch, HadamardCountMeanSketch)
    vars(protocol)["records"] = replace(sketch, seed=run)
    del vars(protocol)["channel"]  # that of the other seed
    return protocol


PROPER = Band(0.0, 1.0), Band(0.0, 1.0), Band(0.94, 1.0)


@pytest.mark.slow
class TestMarginals(VarianceContract):
    """All cells of some marginals, and their intervals."""

    domain, users, runs, planted = DOMAIN.size, 24_000, 200, ("InpHT", "MargPS")
    entries = {  # noqa: RUF012
        **{
            kind.__name__: Entry(fixed(partial(kind, DOMAIN, 2)))
            for kind in (InpRR, InpPS, InpHT, InpOLH, MargRR, MargPS, MargHT)
        },
        "OneBit of MargPS": Entry(
            fixed(lambda e: OneBit(MargPS(DOMAIN, 2, e))), epsilons=(0.05, 1.0)
        ),
        "FewBits of InpHT": Entry(fixed(lambda e: FewBits(InpHT(DOMAIN, 2, e), bits=2))),
        # Of distributions: where cells are at 0, errors are smaller than stated
        "CALM": Entry(fixed(partial(CALM, DOMAIN, 2)), *PROPER),
        "InpEM": Entry(fixed(partial(InpEM, DOMAIN, 2)), *PROPER),
        "InpHTCMS": Entry(lambda epsilon, run: sketched(DOMAIN, 2, epsilon, run)),
    }

    def sample(self, make, epsilon, counts, rng):
        truth = {names: truth_of(counts, names) for names in SETS}
        errors, told, covered = [], [], []
        for run in range(self.runs):
            protocol = make(epsilon, run)
            estimate = protocol.estimate(protocol.simulate(counts, rng))
            error, variance, inside = [], [], []
            for names, true in truth.items():
                cells = estimate.cells(names)
                error.append((cells.value - true).ravel())
                variance.append(cells.variance.ravel())
                low, high = cells.interval()
                inside.append(((low <= true) & (true <= high)).ravel())
            errors.append(np.concatenate(error))
            told.append(np.concatenate(variance))
            covered.append(np.concatenate(inside))
        predicted = None
        if np.ptp(counts) == 0:
            n = int(counts.sum())
            predicted = np.concatenate([predicted_of(protocol, n, s).ravel() for s in SETS])
        return Sample(np.array(errors), np.array(told), predicted, np.array(covered))


def predicted_of(protocol, n, names):
    if not isinstance(protocol, GenProt):
        return protocol.cell_variances(n, names)
    inner: Any = protocol.inner
    own = inner.cell_variances(n, names)
    return protocol.predicted_variance(own, n, (1 - 1 / own.size) / own.size)


def truth_of(counts, names):
    cells = DOMAIN.cells(np.arange(DOMAIN.size), names)
    shape = DOMAIN.project(names).shape
    return np.bincount(cells, weights=counts / counts.sum()).reshape(shape)


def measured_over_told(protocol, held, sets, runs, rng):
    """The mean squared error over the mean stated variance, and the coverage of 95 % intervals."""
    errors, told, covered = [], [], []
    for _ in range(runs):
        estimate = protocol.estimate(protocol.simulate(held, rng))
        for names in sets:
            cells, truth = estimate.cells(names), truth_of(held, names)
            low, high = cells.interval()
            errors.append(((cells.value - truth) ** 2).ravel())
            told.append(cells.variance.ravel())
            covered.append(((low <= truth) & (truth <= high)).ravel())
    ratio = np.concatenate(errors).mean() / np.concatenate(told).mean()
    return float(ratio), float(np.concatenate(covered).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sets"),
    [
        (lambda: CALM(DOMAIN, 3, 2.0, size=2), (("a", "b"), ("c",))),
        (lambda: CALM(DOMAIN, 3, 2.0, size=2), (("c", "a", "b"),)),  # which no set holds
        (lambda: InpEM(DOMAIN, 2, 6.0, tolerance=1e-7), (("a", "b"), ("c",))),
    ],
    ids=["CALM", "CALM beyond its sets", "InpEM"],
)
def test_distributions_inside_err_as_stated(make, sets):
    """No cell is near 0, and none depends on more than pairs: nothing but the noise is left.

    Of 8 or 12 cells in 80 runs the ratio has a deviation of at most 0.07, the coverage of 0.015:
    both bounds are five deviations away.
    """
    counts = np.full(DOMAIN.size, 4000)
    found, covered = measured_over_told(make(), counts, sets, 80, np.random.default_rng(5))
    assert 0.65 < found < 1.35
    assert 0.87 < covered <= 1
    assert not 0.65 < 2.2 * found < 1.35  # as it would be with half the variance
