"""Synthetic records of grid estimates: with the pairs that they were made from."""

from itertools import combinations

import numpy as np
import pytest

from frequency.exceptions import InvalidQuestion
from frequency.schema import Domain
from rangeq.grids import HDG, WaveGrid, sampling
from rangeq.grids.sampling import blocks_of, of_users, records_of

MIXED = Domain({"a": 6, "b": 5, "c": 40})


def population(n, seed):
    """Three attributes, each pair of which is dependent."""
    rng = np.random.default_rng(seed)
    common = rng.beta(2, 4, n)
    parts = [np.clip(common + rng.normal(0, 0.15, n), 0, 1 - 1e-9) for _ in range(3)]
    return np.stack(
        [(x * size).astype(np.int64) for x, size in zip(parts, MIXED.shape, strict=True)], axis=1
    )


def tables_of(records):
    """What an estimate without any error answers."""

    def tables(places, ends):
        edges = [np.concatenate([[0], one]) for one in ends]
        return np.histogramdd(records[:, places], edges)[0] / len(records)

    return tables


def test_samples_have_all_pairs():
    truth = population(30_000, 1)
    sampled = records_of(MIXED, tables_of(truth), 30_000, np.random.default_rng(2))
    assert sampled.shape == truth.shape
    assert (sampled >= 0).all()
    assert (sampled < MIXED.shape).all()
    for one, two in combinations(range(3), 2):
        ends = [np.arange(MIXED.shape[place] + 1) for place in (one, two)]
        found, true = (
            np.histogram2d(held[:, one], held[:, two], ends)[0] / 30_000
            for held in (sampled, truth)
        )
        sums = [np.cumsum(np.cumsum(table, axis=0), axis=1) for table in (found, true)]
        assert np.abs(sums[0] - sums[1]).max() < 0.003
        # Independent attributes with the same single distributions are far from it
        alone = np.outer(true.sum(axis=1), true.sum(axis=0))
        assert np.abs(np.cumsum(np.cumsum(alone, axis=0), axis=1) - sums[1]).max() > 0.03
    for place, size in enumerate(MIXED.shape):
        counts = [np.bincount(held[:, place], minlength=size) / 30_000 for held in (sampled, truth)]
        assert np.abs(np.cumsum(counts[0]) - np.cumsum(counts[1])).max() < 0.003


def test_tables_of_few_cells_are_off_by_few_records(monkeypatch):
    records = np.random.default_rng(3).integers(0, 6, (20_000, 4))
    records[:9000, 1] = records[:9000, 0]
    records[5000:12_000, 3] = np.minimum(records[5000:12_000, 2], 2)
    attributes = Domain.of([6, 6, 6, 6])

    def off() -> float:
        sampled = records_of(attributes, tables_of(records), 20_000, np.random.default_rng(4))
        squares = [
            np.bincount(held[:, one] * 6 + held[:, two], minlength=36)
            for one, two in combinations(range(4), 2)
            for held in (sampled, records)
        ]
        return float(np.sqrt(np.mean((np.array(squares[::2]) - squares[1::2]) ** 2)))

    nearest = off()
    assert nearest < 2
    monkeypatch.setattr(sampling, "_FINE_SWEEPS", 0)
    assert off() > 2 * nearest


def test_blocks_are_of_all_values():
    for size in (1, 2, 32, 33, 1000):
        held = np.random.default_rng(size).dirichlet(np.full(size, 0.1))
        edges = blocks_of(held)
        assert edges[0] == 0
        assert edges[-1] == size
        assert (np.diff(edges) > 0).all()
        assert len(edges) <= 33


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HDG, WaveGrid])
def test_samples_err_as_answers_do(kind):
    truth = population(40_000, 3) % 16
    protocol, rng = kind([16] * 3, 1.0, 40_000), np.random.default_rng(4)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(truth, rng)))
    sampled = estimate.sample(40_000, rng)
    first, last = np.sort(rng.integers(0, 16, (2, 100, 3)), axis=0)
    errors = np.zeros(2)
    for several in (1, 2, 3):
        inside = [
            (
                (held[:, None, :several] >= first[:, :several])
                & (held[:, None, :several] <= last[:, :several])
            )
            .all(axis=2)
            .mean(axis=0)
            for held in (truth, sampled)
        ]
        told = estimate.answers(range(several), first[:, :several], last[:, :several])
        errors += [np.abs(inside[1] - inside[0]).mean(), np.abs(told - inside[0]).mean()]
    assert errors[0] < 1.1 * errors[1]
    with pytest.raises(ValueError, match="n must be"):
        estimate.sample(0)
    nobody = protocol.estimate(protocol.aggregate(protocol.privatize(truth[:0], rng)))
    with pytest.raises(ValueError, match="no reports"):
        nobody.sample(10)


def test_one_record():
    tables = tables_of(population(500, 5))
    assert records_of(MIXED, tables, 1, np.random.default_rng(6)).shape == (1, 3)
    single = Domain({"a": 6})
    assert records_of(single, tables, 50, np.random.default_rng(7)).shape == (50, 1)


def test_single_attributes_keep_their_distributions_when_pairs_contradict():
    """Of three attributes no two can differ always: noise in pairs has to go somewhere."""
    single = np.array([0.5, 0.5])

    def tables(places, ends):
        return single if len(places) == 1 else np.array([[0.02, 0.48], [0.48, 0.02]])

    sampled = records_of(Domain.of([2, 2, 2]), tables, 30_001, np.random.default_rng(8))
    assert (np.abs(sampled.sum(axis=0) - 30_001 / 2) < 2).all()
    for one, two in combinations(range(3), 2):  # a third of all records has to be alike in each
        assert abs(np.mean(sampled[:, one] == sampled[:, two]) - 1 / 3) < 0.05


def test_records_have_most_entropy():
    """The three-way interaction is that of a log-linear model without one; trees have another."""
    cells = np.array(list(np.ndindex(2, 2, 2)))
    signs = 1 - 2 * cells
    strong = 0.7 * signs[:, 0] * signs[:, 1] + 0.7 * signs[:, 1] * signs[:, 2]
    weights = np.exp(strong + 0.7 * signs[:, 0] * signs[:, 2] + 0.3 * signs[:, 0])
    records = np.repeat(cells, np.round(weights / weights.sum() * 1e6).astype(int), axis=0)
    sampled = records_of(
        Domain.of([2, 2, 2]), tables_of(records), 100_000, np.random.default_rng(9)
    )
    held = np.bincount(sampled @ [4, 2, 1], minlength=8) / 100_000
    true = weights / weights.sum()
    # Six standard errors of one cell of as many people drawn one by one
    assert (np.abs(held - true) < 6 * np.sqrt(true / 100_000)).all()
    pairs = true.reshape(2, 2, 2)
    first, second = pairs.sum(axis=2), pairs.sum(axis=0)
    tree = first[:, :, None] * second[None] / second.sum(axis=1)[None, :, None]
    assert (np.abs(tree.ravel() - true) > 6 * np.sqrt(true / 100_000)).any()


@pytest.mark.slow
def test_many_records_are_as_few_are():
    """They grow out of fewer: no record of these counts for more than another."""
    truth = population(30_000, 10)
    sampled = records_of(MIXED, tables_of(truth), 200_000, np.random.default_rng(11))
    for one, two in combinations(range(3), 2):
        ends = [np.arange(MIXED.shape[place] + 1) for place in (one, two)]
        found, true = (
            np.histogram2d(held[:, one], held[:, two], ends)[0] / len(held)
            for held in (sampled, truth)
        )
        assert np.abs(np.cumsum(np.cumsum(found - true, axis=0), axis=1)).max() < 0.002


@pytest.mark.parametrize(("n", "users"), [(100, 1000), (400, 500), (500, 500), (2000, 500)])
def test_records_have_the_chance_of_users(n, users):
    """The share of a value varies as that of so many users drawn, and its mean stays."""
    rng, times = np.random.default_rng(13), 2000
    records = np.repeat([[0, 5], [1, 7]], [3 * n // 10, n - 3 * n // 10], axis=0)
    drawn = [of_users(records, users, rng) for _ in range(times)]
    assert all(one.shape == records.shape for one in drawn)
    assert all((one[:, 1] == 5 + 2 * one[:, 0]).all() for one in drawn)
    shares = np.array([1 - one[:, 0].mean() for one in drawn])
    variance = 0.3 * 0.7 / users
    # Five standard errors, a false alarm of 6e-7; the mean's chance of n drawn is in the first two
    assert abs(shares.mean() - 0.3) < 5 * np.sqrt(variance / times)
    assert abs(shares.var() / variance - 1) < 5 * np.sqrt(2 / times)


@pytest.mark.slow
def test_samples_of_too_many_values_are_refused():
    protocol, rng = WaveGrid([1 << 31, 4], 1.0), np.random.default_rng(12)
    records = np.stack([rng.integers(0, 1 << 31, 50), rng.integers(0, 4, 50)], axis=1)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    for refused in (estimate.sample, lambda n: estimate.samples(n, 2)):
        with pytest.raises(InvalidQuestion, match="of up to 4194304 values, got 2147483648"):
            refused(10)
