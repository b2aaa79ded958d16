"""The contract on stated errors for every protocol for marginals.

See `tests.contracts.variances`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from frequency.exceptions import UnknownVariance
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
from frequency.marginals.whole_record import RecordsBySketch
from tests.contracts.variances import Entry, Sample, VarianceContract, fixed

DOMAIN = Domain({"a": 2, "b": 3, "c": 2})
SETS = (("a",), ("b", "c"), ("c", "a"))


def sketched(domain, k, epsilon, run):
    """Over the public random functions, of few cells: every run has another seed."""
    protocol = InpHTCMS(domain, k, epsilon, 4, 16)
    sketch = protocol.channel
    assert isinstance(sketch, RecordsBySketch)
    vars(protocol)["channel"] = replace(sketch, seed=run)
    return protocol


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


def test_protocols_without_stated_variances():
    """InpEM and CALM: proper distributions, whose variances nobody knows are not told."""
    counts = np.full(DOMAIN.size, 1000)
    for kind in (InpEM, CALM):
        protocol = kind(DOMAIN, 2, 1.0)
        estimate = protocol.estimate(protocol.simulate(counts, np.random.default_rng(0)))
        with pytest.raises(UnknownVariance):
            _ = estimate.cells(("a", "b")).variance
