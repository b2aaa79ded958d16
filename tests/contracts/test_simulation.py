"""Simulated aggregates of every protocol have the distribution of those of reports.

The counts of two samples of aggregates are compared: their means in the direction that tells the
first halves of the samples apart best, and their variances in that direction and in some others.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, InvalidValue, heavy
from frequency.core.protocol import channel_of
from tests.contracts.examples import COLLECTED, WITH_VALUES, numbers
from tests.goodness_of_fit import FALSE_ALARM

HELD = (200, 40)
"""How many users have the first of two values, and the second."""

USERS, RUNS, FIRST = sum(HELD), 120, 50

SMALL = [
    *((p, v) for p, v in COLLECTED if np.prod(channel_of(p).counts_shape) < 2000),
    (heavy.SuccinctHistogram(8, 4.0, hashes=1, channels=4, rows=64), numbers(256)),
]


def two_values(values):
    """Those of two users who have nothing in common, far from each other; None if all are equal."""
    order = np.sort(values, axis=0)
    others = order[(order != order[0]).reshape(len(order), -1).all(axis=1)]
    return np.stack([order[0], others[len(others) // 2]]) if len(others) else None


CASES = [
    pytest.param(protocol, two_values(values), id=f"{k}-{type(protocol).__name__}")
    for k, (protocol, values) in enumerate(SMALL)
    if two_values(values) is not None
]


def chance(one, two):
    """The p-value of a difference of two samples of counts, of shape (runs, cells)."""
    both = np.concatenate([one, two])
    scale = both.std(axis=0)
    if not scale.any():
        return float((one == two).all())
    one, two = (sample[:, scale > 0] / scale[scale > 0] for sample in (one, two))
    apart = one[:FIRST].mean(axis=0) - two[:FIRST].mean(axis=0)
    apart *= np.abs(apart) > np.abs(apart).max() / 2  # where most cells say nothing, they are noise
    some = np.random.default_rng(0).choice([-1.0, 1.0], (one.shape[1], 4))
    directions = np.column_stack([apart, some])
    # The sum of all counts, such as the users, may be known
    directions = directions[:, (np.concatenate([one, two]) @ directions).std(axis=0) > 1e-9]
    one, two = (sample[FIRST:] @ directions for sample in (one, two))
    squares = [(sample - sample.mean(axis=0)) ** 2 for sample in (one, two)]
    pairs = [(one[:, :1], two[:, :1]), squares]
    found = np.concatenate([stats.ttest_ind(*pair, equal_var=False).pvalue for pair in pairs])
    return min(1.0, len(found) * float(found.min()))


def counts_of(aggregates):
    return np.array([aggregate.counts.ravel() for aggregate in aggregates], dtype=float)


def of_reports(protocol, values, held):
    """Aggregates of users with these values."""
    users = np.repeat(values, held, axis=0)
    everybody = np.concatenate([users] * RUNS)
    reports = protocol.privatize(everybody, np.random.default_rng(1)).reshape(RUNS, len(users))
    return counts_of(protocol.aggregate(batch) for batch in reports)


def simulated(protocol, values, held):
    rng = np.random.default_rng(2)
    return counts_of(protocol.simulate(held, rng, values) for _ in range(RUNS))


@pytest.mark.parametrize(("protocol", "values"), CASES)
def test_simulation_has_the_distribution_of_reports(protocol, values):
    sent = of_reports(protocol, values, HELD)
    assert chance(simulated(protocol, values, HELD), sent) > FALSE_ALARM
    # Every user by itself
    assert chance(simulated(protocol, np.repeat(values, HELD, axis=0), 1), sent) > FALSE_ALARM
    # Other users would be found, unless the reports hardly tell them apart
    if protocol.audit().ratio > 2:
        assert chance(simulated(protocol, values, (0, USERS)), sent) < FALSE_ALARM


class Copied(GRR):
    """Simulates that all users send the same report."""

    def simulated_counts(self, items, counts, rng):
        drawn = super().simulated_counts(items[:1], np.ones(1, dtype=np.int64), rng)
        return counts.sum() * drawn


def test_reports_that_depend_on_each_other_are_found():
    values = np.array([0, 0])
    sent = of_reports(GRR(2, 0.1), values, HELD)
    assert chance(simulated(GRR(2, 0.1), values, HELD), sent) > FALSE_ALARM
    assert chance(simulated(Copied(2, 0.1), values, HELD), sent) < FALSE_ALARM


def test_every_protocol_is_compared():
    assert {type(one) for one, _ in COLLECTED} == {type(case.values[0]) for case in CASES}


@WITH_VALUES
def test_simulation_of_some_and_of_nobody(protocol, values):
    some, rng = values[:3], np.random.default_rng(3)
    nobody = protocol.aggregate(np.zeros(0, dtype=protocol.report_dtype))
    for held in (0, [0] * len(some), np.zeros(len(some), dtype=np.uint8)):
        assert protocol.simulate(held, rng, some) == nobody
    for held in ([], 1, 0):
        assert protocol.simulate(held, rng, values[:0]) == nobody
    for held, users in ((2, 2 * len(some)), ([0, 4, 1], 5), (np.array([0, 0, 1], np.uint8), 1)):
        first, again = (
            protocol.simulate(held, np.random.default_rng(seed), some) for seed in (4, 4)
        )
        assert first == again
        assert first.n == users
        assert channel_of(protocol).require_own(first) is first
    assert protocol.simulate(1, values=some).n == len(some)
    channel = channel_of(protocol)
    if channel.domain <= 1 << 12:
        everybody = np.arange(channel.domain) % 3
        assert protocol.simulate(everybody, rng).n == everybody.sum()


def check_refused(protocol, values):
    """Wrong counts and values, and sources: nothing is drawn."""
    rng, some = np.random.default_rng(5), values[:3]
    before = copy.deepcopy(rng.bit_generator.state)
    for held in (
        *([1, 2], [1, 2, 3, 4], [[1, 2, 3]], [], [1, -1, 1], -1),
        *(
            [1.0, 2.0, 3.0],
            1.5,
            [True, False, True],
            True,
            ["1", "2", "3"],
            "1",
            [None, 1, 1],
            None,
        ),
        *(
            1 << 62,
            [1 << 62, 1 << 62, 0],
            np.array([1 << 63, 0, 0], dtype=np.uint64),
            [1 << 70, 0, 0],
        ),
        np.ma.MaskedArray([1, 2, 3], mask=[False, True, False]),
    ):
        with pytest.raises((ValueError, OverflowError)):
            protocol.simulate(held, rng, some)
        assert rng.bit_generator.state == before, held
    bad = np.array(["x" * 99]) if some.dtype.kind == "U" else np.full_like(some[:1], -1)
    for wrong in (np.concatenate([some[:2], bad]), bad):
        for draw in (
            lambda wrong=wrong: protocol.simulate(1, rng, wrong),
            lambda wrong=wrong: protocol.simulate(0, rng, wrong),
            lambda wrong=wrong: protocol.privatize(wrong, rng),
        ):
            with pytest.raises(InvalidValue):
                draw()
            assert rng.bit_generator.state == before
    for source in (np.random, np.random.RandomState(0), 0, "seed"):
        with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
            protocol.simulate(1, source, some)


@WITH_VALUES
def test_wrong_counts_and_values_draw_nothing(protocol, values):
    check_refused(protocol, values)


class Hasty(GRR):
    """Draws before it looks."""

    def simulate(self, counts, rng=None, values=None):
        if isinstance(rng, np.random.Generator):
            rng.random()
        return super().simulate(counts, rng, values)


def test_what_is_drawn_too_early_is_found():
    check_refused(GRR(5, 1.0), np.arange(5))
    with pytest.raises(AssertionError):
        check_refused(Hasty(5, 1.0), np.arange(5))
