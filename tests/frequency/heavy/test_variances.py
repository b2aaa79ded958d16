"""The contract on stated errors for what estimates in `frequency.heavy`.

See `tests.contracts.variances`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from frequency import GRR, HRR, OLH, OUE, HadamardCountMeanSketch
from frequency.heavy import (
    OneBit,
    PrefixExtension,
    SuccinctHistogram,
    TreeHist,
    UniqueHeavyHitter,
)
from tests.contracts.variances import Band, Entry, Sample, VarianceContract, fixed
from tests.frequency.test_variances import OracleVariances


def one_bit(kind, domain, epsilon):
    return OneBit(kind(domain, epsilon)).channel


def of_one_bit(kind):
    """The oracle that a one-bit protocol around an oracle is."""
    return fixed(lambda epsilon: one_bit(kind, 16, epsilon))


class TestOneBit(OracleVariances):
    """Around oracles; a sketch over its public functions."""

    users, runs, planted, planted_at = 12_000, 200, ("OUE",), 0.69
    entries = {  # noqa: RUF012
        **{
            kind.__name__: Entry(of_one_bit(kind), epsilons=(0.05, 0.69))
            for kind in (GRR, OUE, OLH, HRR)
        },
        "HadamardCountMeanSketch": Entry(
            lambda e, run: OneBit(HadamardCountMeanSketch(16, e, 8, 32, seed=run)).channel,
            epsilons=(0.05, 0.69),
        ),
    }


FREQUENT = [7, 100, 180]


def three(domain, users):
    """Three items with three tenths each, and a tenth spread over a quarter of all."""
    counts = np.zeros(domain, dtype=int)
    counts[FREQUENT] = 3 * users // 10
    counts[190:254] += users // 640
    return counts


class TestFound(VarianceContract):
    """The frequencies of items that are found for certain, over the public random functions.

    The intervals allow for the choice of the listed items, and cover more often than they must.
    """

    domain, users, runs, planted = 256, 24_000, 400, ("PrefixExtension", "TreeHist")
    populations, planted_in = {"three": three}, "three"
    wide = Band(0.95, 1.0)
    entries = {  # noqa: RUF012
        "PrefixExtension": Entry(
            lambda e, run: PrefixExtension(8, e, seed=run), covered=wide, epsilons=(1.0, 8.0)
        ),
        "TreeHist": Entry(
            lambda e, run: TreeHist(8, e, seed=run), covered=wide, epsilons=(1.0, 8.0)
        ),
        "OneBit of TreeHist": Entry(
            lambda e, run: OneBit(TreeHist(8, e, seed=run), seed=run),
            covered=wide,
            epsilons=(0.69, 1.0),
        ),
    }
    frequent = FREQUENT

    def sample(self, make, epsilon, counts, rng):
        f, errors, told, covered = counts / counts.sum(), [], [], []
        for run in range(self.runs):
            protocol = make(epsilon, run)
            found = protocol.find(protocol.channel.simulate(counts, rng), k=len(self.frequent))
            order = np.argsort(found.items)
            assert found.items[order].tolist() == self.frequent
            errors.append((found.frequencies - f[found.items])[order])
            told.append(found.variances[order])
            low, high = found.interval()
            covered.append((low <= f[found.items]) & (f[found.items] <= high))
        return Sample(np.array(errors), np.array(told), None, np.array(covered))


class TestFoundAlone(TestFound):
    """Protocols for one item that nearly all hold."""

    users, runs = 6000, 150
    test_wrong_variances_are_rejected: Any = None  # one answer: only errors beyond a half are found
    frequent = [7]  # noqa: RUF012
    populations = {"three": lambda domain, users: three(domain, users) + 2 * users * one_of(domain)}  # noqa: RUF012
    entries = {  # noqa: RUF012
        "UniqueHeavyHitter": Entry(
            fixed(lambda e: UniqueHeavyHitter(8, e)),
            covered=TestFound.wide,
            epsilons=(1.0, 8.0),
        ),
        "SuccinctHistogram": Entry(
            lambda e, run: SuccinctHistogram(
                8, e, n=1000, hashes=3, channels=16, rows=256, seed=run
            ),
            covered=TestFound.wide,
            epsilons=(1.0, 8.0),
        ),
    }


def one_of(domain):
    return (np.arange(domain) == 7).astype(int)
