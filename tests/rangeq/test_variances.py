"""The contract on stated errors, of every range protocol: see `tests.contracts.variances`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from frequency import GRR
from frequency.heavy import FewBits, GenProt, OneBit
from frequency.marginals import Domain
from mechdesign import Privacy, named
from rangeq import (
    Between,
    CircularHistogram,
    Composite,
    DecomposedHistogram,
    Flat,
    HaarHRR,
    HierarchicalHistogram,
    PaddedSets,
    Paired,
    PerAttribute,
    ShiftedHistogram,
    shaped,
)
from tests.contracts.variances import (
    Band,
    Entry,
    Sample,
    VarianceContract,
    check,
    even,
    fixed,
    heaped,
    interval_of,
    sums,
)
from tests.own_oracles import Exclusion, lopsided

FIRST = np.array([0, 1, 3, 3, 8, 0, 5, 12, 10, 2])
LAST = np.array([6, 9, 3, 11, 15, 3, 5, 14, 10, 13])
DOMAIN = 16


def composite(epsilon):
    mechanism = named.krr(4, alpha=Privacy.from_epsilon(epsilon, neighbours="all").alpha)
    return Composite(DOMAIN, epsilon, mechanism, (4,), ("OUE",), ("1/3", "2/3"))


MIXED = ("1/5", "3/10", "1/2")
TREES = {
    "HH_2, OUE": fixed(lambda e: HierarchicalHistogram(DOMAIN, e, 2, "OUE")),
    "HH_4, HRR": fixed(lambda e: HierarchicalHistogram(DOMAIN, e, 4, "HRR")),
    "HH of all kinds": fixed(
        lambda e: HierarchicalHistogram(DOMAIN, e, (2, 2, 4), ("GRR", "SUE", "OUE"), MIXED)
    ),
    "HH_3, padded": fixed(lambda e: HierarchicalHistogram(DOMAIN, e, 3, "OUE")),
    "Flat": fixed(lambda e: Flat(DOMAIN, e)),
    "HaarHRR": fixed(lambda e: HaarHRR(DOMAIN, e)),
    "Decomposed, OUE": fixed(lambda e: DecomposedHistogram(DOMAIN, e, 2, "OUE")),
    "Decomposed, GRR": fixed(lambda e: DecomposedHistogram(DOMAIN, e, 4, "GRR")),
    "HH_4, designed": fixed(
        lambda e: HierarchicalHistogram(DOMAIN, e, 4, (lopsided(e), Exclusion))
    ),
    "HaarHRR, own": fixed(
        lambda e: HaarHRR(DOMAIN, e, oracle=("GRR", lopsided(e), Exclusion, "OUE"))
    ),
    "Decomposed, designed": fixed(
        lambda e: DecomposedHistogram(DOMAIN, e, 4, (lopsided(e), Exclusion))
    ),
    "Decomposed, padded": fixed(lambda e: DecomposedHistogram(DOMAIN, e, 3, "HRR")),
}
CIRCLE = fixed(lambda e: CircularHistogram(DOMAIN, e, oracle="GRR"))
DESIGNED_CIRCLE = fixed(
    lambda e: CircularHistogram(DOMAIN, e, 16, (4, 16), (lopsided(e), Exclusion))
)
COMPOSITE = fixed(composite)
SHIFTED = fixed(lambda e: ShiftedHistogram(DOMAIN, e))
DESIGNED_SHIFTED = fixed(lambda e: ShiftedHistogram(DOMAIN, e, (5, 1), (lopsided(e), Exclusion)))


class TestRanges(VarianceContract):
    """Weighted sums of items, and ranges; intervals of single items and of ranges."""

    domain, users, runs = DOMAIN, 40_000, 160
    planted = ("HH_2, OUE", "Decomposed, OUE", "HaarHRR")
    entries = {  # noqa: RUF012
        **{name: Entry(make) for name, make in TREES.items()},
        "OneBit of HaarHRR": Entry(fixed(lambda e: OneBit(HaarHRR(DOMAIN, e)))),
        "OneBit of Decomposed": Entry(
            fixed(lambda e: OneBit(DecomposedHistogram(DOMAIN, e, 4, "GRR"))), epsilons=(0.05, 1.0)
        ),
        "FewBits of HH_4": Entry(
            fixed(lambda e: FewBits(HierarchicalHistogram(DOMAIN, e, 4, ("GRR", "OLH")), bits=3))
        ),
        "Composite": Entry(COMPOSITE),
        "Circle, designed": Entry(DESIGNED_CIRCLE),
        "Circle": Entry(CIRCLE),
        "Shifted": Entry(SHIFTED),
        "Shifted, designed": Entry(DESIGNED_SHIFTED),
    }

    def sample(self, make, epsilon, counts, rng):
        n, f, protocol = int(counts.sum()), counts / counts.sum(), make(epsilon, 0)
        before = np.concatenate([[0.0], np.cumsum(f)])
        true, weights = before[LAST + 1] - before[FIRST], sums(self.domain, rng)
        errors, told, covered = [], [], []
        for _ in range(self.runs):
            estimate = protocol.estimate(protocol.simulate(counts, rng))
            value, variance = estimate.linear(weights)
            ranges = estimate.answer(Between(FIRST, LAST))
            errors.append(np.concatenate([value - weights @ f, ranges.value - true]))
            told.append(np.concatenate([variance, ranges.variance]))
            (low, high), (left, right) = estimate.interval(), ranges.interval()
            inside = (low <= f) & (f <= high), (left <= true) & (true <= right)
            covered.append(np.concatenate(inside))
        if isinstance(protocol, GenProt):
            inner: Any = protocol.inner
            own = inner.linear_variance(n, weights, f)
            among = weights**2 @ f - (weights @ f) ** 2
            predicted = protocol.predicted_variance(own, n, among)
        else:
            predicted = protocol.linear_variance(n, weights, f)
        # Ranges have predictions as their average: see below.
        predicted = np.concatenate([predicted, np.full(len(true), np.nan)])
        return Sample(np.array(errors), np.array(told), predicted, np.array(covered))


@pytest.mark.parametrize("population", [even, heaped])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("name", [*TREES, "Circle", "Shifted"])
def test_average_errors(name, epsilon, population) -> None:
    """`average_rmse` with frequencies: the mean square over all ranges of at least two items."""
    make = {**TREES, "Circle": CIRCLE, "Shifted": SHIFTED}[name]
    protocol, rng, runs = make(epsilon, 0), np.random.default_rng(1), 100
    counts = population(DOMAIN, 20_000)
    n, f = int(counts.sum()), counts / counts.sum()
    first, last = np.triu_indices(DOMAIN, 1)
    truth = np.concatenate([[0.0], np.cumsum(f)])
    squares = np.array(
        [
            (
                protocol.estimate(protocol.simulate(counts, rng)).range(first, last)
                - (truth[last + 1] - truth[first])
            )
            ** 2
            for _ in range(runs)
        ]
    ).mean(axis=1)
    low, high = interval_of(squares / protocol.average_rmse(n, "ranges", f) ** 2)
    assert low < 1 < high
    assert high - low < 1.5


@pytest.mark.slow
def test_the_variances_of_another_estimator_are_rejected() -> None:
    """Those a decomposed histogram had inherited: of the consistent estimate of the same levels."""
    suite, rng = TestRanges(), np.random.default_rng(0)
    counts = heaped(DOMAIN, suite.users)
    for epsilon in (0.05, 1.0):
        sample = suite.sample(TREES["Decomposed, OUE"], epsilon, counts, rng)
        check(sample, Band(), Band(), Band(0.94, 0.96))
        weights = sums(DOMAIN, np.random.default_rng(0))
        other = HierarchicalHistogram(DOMAIN, epsilon, 2, "OUE")
        f = counts / counts.sum()
        wrong = other.linear_variance(suite.users, weights, f)
        wrong = np.concatenate([wrong, np.full(len(FIRST), np.nan)])
        with pytest.raises(AssertionError, match="predicted variances"):
            check(sample._replace(predicted=wrong), Band(), Band(), Band(0.94, 0.96))


class TestPairs(VarianceContract):
    """Two attributes, the first with two values: both together, and each by itself."""

    domain, users, runs = DOMAIN, 40_000, 160
    planted = ("Paired", "PerAttribute")
    entries = {  # noqa: RUF012
        "Paired": Entry(fixed(lambda e: Paired(HierarchicalHistogram(DOMAIN, e, 2, "OUE")))),
        "PerAttribute": Entry(
            fixed(
                lambda e: PerAttribute.of(
                    Domain({"sex": 2, "age": 8}),
                    e,
                    "sex",
                    partial(HierarchicalHistogram, branching=2, oracle="OUE"),
                )
            )
        ),
        "PerAttribute of three": Entry(
            fixed(
                lambda e: PerAttribute.of(
                    Domain({"sex": 2, "age": 4, "ill": 2}), e, "sex", partial(Flat, oracle="GRR")
                )
            )
        ),
    }

    def sample(self, make, epsilon, counts, rng):
        protocol, table = make(epsilon, 0), counts.reshape(2, -1) / counts.sum()
        size = 4 if isinstance(protocol, PerAttribute) and len(protocol.domain) == 3 else 8
        table = table.reshape(2, size, -1).sum(axis=2)
        first, last = np.array([0, 1, size - 1]), np.array([size // 2, size - 2, size - 1])
        questions = [
            {0: np.arange(2)},
            {1: Between(first, last)},
            {0: np.arange(2)[:, None], 1: np.arange(size)},
        ]
        before = np.pad(np.cumsum(table.sum(axis=0)), (1, 0))
        ranges = before[last + 1] - before[first]
        true = np.concatenate([table.sum(axis=1), ranges, table.ravel()])
        errors, told, covered = [], [], []
        for _ in range(self.runs):
            estimate = protocol.estimate(protocol.simulate(counts, rng))
            answers = [estimate.answer(one) for one in questions]
            errors.append(np.concatenate([np.ravel(one.value) for one in answers]) - true)
            told.append(np.concatenate([np.ravel(one.variance) for one in answers]))
            ends = [np.stack(one.interval()).reshape(2, -1) for one in answers]
            low, high = np.concatenate(ends, axis=1)
            covered.append((low <= true) & (true <= high))
        return Sample(np.array(errors), np.array(told), None, np.array(covered))


class TestSets(VarianceContract):
    """Users with sets of items, drawn at random from a population."""

    domain, users, runs = DOMAIN, 40_000, 200
    planted = ("PaddedSets of HH_4",)
    entries = {  # noqa: RUF012
        "PaddedSets of HH_4": Entry(
            fixed(lambda e: PaddedSets(HierarchicalHistogram(DOMAIN + 1, e, 4, "OUE"), 4))
        ),
        "PaddedSets of GRR": Entry(
            fixed(lambda e: PaddedSets(GRR(DOMAIN + 1, e), 4, (1, 3, 8, 12)))
        ),
    }

    def sample(self, make, epsilon, counts, rng):
        protocol, shares = make(epsilon, 0), counts / counts.sum()
        sets = [(item + np.arange(item % 5) ** 2) % self.domain for item in range(self.domain)]
        held = np.zeros(self.domain)
        for share, items in zip(shares, sets, strict=True):
            held[np.unique(items)] += share
        if protocol.kept is not None:
            held[~np.isin(np.arange(self.domain), protocol.kept)] = 0
        weights = sums(self.domain, rng)
        before = np.concatenate([[0.0], np.cumsum(held)])
        true = before[LAST + 1] - before[FIRST]
        errors, told, covered = [], [], []
        for _ in range(self.runs):
            drawn = rng.multinomial(self.users, shares)
            estimate = protocol.estimate(protocol.simulate(drawn, rng, sets))
            value, variance = estimate.linear(weights)
            answer = estimate.answer(Between(FIRST, LAST))
            errors.append(np.concatenate([value - weights @ held, answer.value - true]))
            told.append(np.concatenate([variance, answer.variance]))
            left, right = answer.interval()
            covered.append((left <= true) & (true <= right))
        return Sample(np.array(errors), np.array(told), None, np.array(covered))


@pytest.mark.slow
def test_means_of_values_by_key() -> None:
    """`Paired`: ratios of ranges, by the delta method."""
    rng, users = np.random.default_rng(0), 200_000
    paired = Paired(HierarchicalHistogram(32, 1.0, 2, "OUE"))
    counts = np.concatenate([heaped(16, users), even(16, users)])
    low, high = counts[:16], counts[16:]
    true = (high[4:12].sum() - low[4:12].sum()) / (high[4:12].sum() + low[4:12].sum())
    found = [tuple(paired.estimate(paired.simulate(counts, rng)).mean(4, 11)) for _ in range(300)]
    values, variances = np.array(found).T
    sample = Sample((values - true)[:, None], variances[:, None], None, None)
    check(sample, Band(0.95, 1.05), Band(), Band())
    with pytest.raises(AssertionError, match="told"):
        check(sample._replace(told=2 * sample.told), Band(0.95, 1.05), Band(), Band())


@pytest.mark.slow
@pytest.mark.parametrize("population", [even, heaped])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_shaped_estimates_cover_on_average(epsilon, population) -> None:
    """Posterior variances: intervals cover 0.9 of the ranges of smooth data, more of flat ones."""
    protocol, rng = shaped(64, epsilon, 100_000), np.random.default_rng(0)
    counts = population(64, 100_000)
    truth = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    first, last = np.triu_indices(64, 3)
    true, covered = truth[last + 1] - truth[first], []
    for _ in range(12):
        estimate = protocol.estimate(protocol.simulate(counts, rng))
        low, high = estimate.answer(Between(first, last)).interval()
        covered.append(((low <= true + 1e-12) & (true <= high + 1e-12)).mean())
    assert interval_of(np.array(covered))[1] > 0.9
