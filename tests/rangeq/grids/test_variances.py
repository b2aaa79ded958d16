"""The contract on stated errors for every system for several attributes.

See `tests.contracts.variances`.

Systems with grids state noise and sampling of the unbiased linear answer of a pair's grid, whose
cells are brought to a sum of 1: exact.
What they answer is processed after that, and errs no more (for cells that hold what they are taken
to hold). A `WaveGrid` states posterior variances. Trees, products and guesses state nothing.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from frequency import Between
from frequency.heavy import OneBit
from rangeq.grids import (
    HDG,
    HIO,
    LHIO,
    MSW,
    TDG,
    HaarHRR2D,
    HierarchicalHistogram2D,
    RangeCALM,
    Uniform,
    WaveEstimate,
    WaveGrid,
)
from tests.contracts.examples import collecting
from tests.contracts.variances import (
    POPULATIONS,
    Band,
    Entry,
    Sample,
    VarianceContract,
    interval_of,
    ratio,
    within,
)

SIZES = (8, 8, 8)
PAIRS = ((0, 1), (0, 2), (1, 2))
LEFT = np.array([[0, 0], [2, 4], [0, 6], [4, 0]])
RIGHT = np.array([[3, 3], [5, 7], [5, 7], [5, 5]])
"""Along the borders of four cells of two values each."""


def records_of(counts):
    return np.stack(np.unravel_index(np.repeat(np.arange(len(counts)), counts), SIZES), axis=1)


def entry(make):
    """What is processed errs less than is stated, so that intervals may cover more often."""
    return Entry(make, covered=Band(0.94, 1.0))


class TestGrids(VarianceContract):
    """Aligned ranges of pairs; the intervals are those of processed answers."""

    domain, users, runs, planted = 512, 20_480, 120, ("TDG",)
    entries = {  # noqa: RUF012
        "TDG": entry(lambda e, run: TDG(SIZES, e, granularity=4, oracle="OUE")),
        "HDG": entry(lambda e, run: HDG(SIZES, e, granularity=4, line_granularity=8, oracle="GRR")),
        "RangeCALM": entry(lambda e, run: RangeCALM(SIZES, e, oracle="HRR")),
        "OneBit of TDG": entry(lambda e, run: OneBit(TDG(SIZES, e, granularity=4, oracle="HRR"))),
    }

    def sample(self, make, epsilon, counts, rng):
        return self.both(make, epsilon, counts, rng)[0]

    def both(self, make, epsilon, counts, rng):
        """Of the linear answers, and of those that are processed."""
        protocol, records = make(epsilon, 0), records_of(counts)
        shares = [
            [
                ((records[:, pair] >= a) & (records[:, pair] <= b)).all(axis=1).mean()
                for a, b in zip(LEFT, RIGHT, strict=True)
            ]
            for pair in PAIRS
        ]
        true, channel = np.concatenate(shares), collecting(protocol).channel
        raws, processed, told, covered = [], [], [], []
        for _ in range(self.runs):
            aggregate = protocol.simulate(1, rng, records)
            estimate = protocol.estimate(aggregate)
            sampled = isinstance(protocol, OneBit)
            brought = protocol.channel.sampled(aggregate) if sampled else aggregate
            raw, answers, variances, inside = [], [], [], []
            for pair, held in zip(PAIRS, np.split(true, len(PAIRS)), strict=True):
                part = next(k for k, grid in enumerate(channel.grids) if grid.places == pair)
                table = channel.frequencies(brought, part)
                table = table + (1 - table.sum()) / table.size
                width = 8 // len(table)
                for a, b in zip(LEFT // width, (RIGHT + 1) // width, strict=True):
                    raw.append(table[a[0] : b[0], a[1] : b[1]].sum())
                answers.append(estimate.answers(np.array(pair), LEFT, RIGHT))
                error = estimate.predicted_error(np.array(pair), LEFT, RIGHT)
                assert (error.non_uniformity == 0).all()
                variances.append(error.noise + error.sampling)
                where = {p: Between(LEFT[:, k], RIGHT[:, k]) for k, p in enumerate(pair)}
                low, high = estimate.answer(where).interval()
                inside.append((low <= held) & (held <= high))
            raws.append(np.array(raw) - true)
            processed.append(np.concatenate(answers) - true)
            told.append(np.concatenate(variances))
            covered.append(np.concatenate(inside))
        stated = np.array(told), None, np.array(covered)
        return Sample(np.array(raws), *stated), Sample(np.array(processed), *stated)

    @pytest.mark.slow
    @pytest.mark.parametrize("population", POPULATIONS)
    @pytest.mark.parametrize("name", entries)
    def test_processed_answers_err_no_more(self, name, population):
        counts, rng = POPULATIONS[population](512, self.users), np.random.default_rng(2)
        _, sample = self.both(self.entries[name].make, 1.0, counts, rng)
        found = ratio(sample.errors, sample.told.mean(axis=0))
        assert within(found, Band(0.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_intervals_of_waves_cover(epsilon, population) -> None:
    """Given the priors: from 0.88 to always for data that follow them (`WaveEstimate.interval`)."""
    protocol, rng = WaveGrid(SIZES, epsilon), np.random.default_rng(3)
    records = records_of(POPULATIONS[population](512, 20_480))
    left = rng.integers(0, 8, size=(200, 2))
    right = np.maximum(left, rng.integers(0, 8, size=(200, 2)))
    true = np.array(
        [
            ((records[:, :2] >= a) & (records[:, :2] <= b)).all(axis=1).mean()
            for a, b in zip(left, right, strict=True)
        ]
    )
    covered = []
    for _ in range(8):
        estimate = protocol.estimate(protocol.simulate(1, rng, records))
        assert isinstance(estimate, WaveEstimate)
        where = {place: Between(left[:, place], right[:, place]) for place in (0, 1)}
        low, high = estimate.answer(where).interval()
        covered.append(((low <= true + 1e-9) & (true <= high + 1e-9)).mean())
    assert interval_of(np.array(covered))[1] > 0.88


@pytest.mark.parametrize(
    "kind",
    [
        HIO,
        LHIO,
        MSW,
        Uniform,
        HaarHRR2D,
        HierarchicalHistogram2D,
        partial(RangeCALM, nonnegative=True),
    ],
)
def test_systems_that_state_no_errors(kind) -> None:
    protocol = kind(sizes=SIZES[:2], epsilon=1.0, n=1000)
    records = np.zeros((100, 2), dtype=int)
    estimate = protocol.estimate(protocol.simulate(1, np.random.default_rng(0), records))
    assert np.isnan(estimate.predicted_error(np.array([0, 1]), LEFT, RIGHT).total).all()
