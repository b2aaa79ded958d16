"""Posterior draws from grids: likelihoods beside dense ones, coverage, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

import frequency as fq
from frequency import of_samples
from frequency.core.aggregate import Aggregate
from frequency.exceptions import InvalidQuestion
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base.numbers import Floats, Items
from rangeq.core.levels import NodeLaw
from rangeq.grids import (
    HDG,
    HIO,
    LHIO,
    MSW,
    TDG,
    HaarHRR2D,
    HierarchicalHistogram2D,
    PairwiseEstimate,
    RangeCALM,
    Uniform,
    WaveGrid,
)
from rangeq.grids.cells import Edges
from rangeq.grids.wavegrid.likelihoods import Likelihoods, fine_cells
from tests.rangeq.grids.populations import collected, people, queries, truth

KINDS = [TDG, HDG, RangeCALM, LHIO, HierarchicalHistogram2D, HaarHRR2D]


def shares(cut: Edges, fine: Edges) -> Floats:
    """Which part of each fine cell lies in each cell of a grid, value by value."""
    values = np.arange(fine[-1])
    own = np.searchsorted(cut, values, side="right") - 1
    cell = np.searchsorted(fine, values, side="right") - 1
    table = np.zeros((len(cut) - 1, len(fine) - 1))
    np.add.at(table, (own, cell), 1.0)
    return table / table.sum(axis=0)


def contrasts(cells: int) -> Floats:
    """An orthonormal basis of weights of sum 0: shape (cells - 1, cells)."""
    return scipy.linalg.null_space(np.ones((1, cells))).T


def told_by(protocol: Any, records: Any, seed: int = 1) -> tuple[Aggregate, Likelihoods]:
    rng = np.random.default_rng(seed)
    aggregate = protocol.aggregate(protocol.privatize(records, rng))
    return aggregate, protocol._likelihoods(aggregate)


def differences(quadratic: Any, tables: list[Floats]) -> Floats:
    """Of a function's values: but for a constant."""
    found = np.array([quadratic(table) for table in tables])
    return found[1:] - found[0]


# ------------------------------------------------------------------------------------ slow twins


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_single_attributes_beside_a_dense_likelihood(epsilon: float) -> None:
    # Cells of grids cut fine cells: 300 values in 256
    sizes, rng = [300, 20], np.random.default_rng(3)
    records = np.stack([rng.binomial(299, 0.1, 4000), rng.integers(0, 20, 4000)], axis=1)
    protocol = TDG(sizes, epsilon, 4000, granularity=(7, 3))
    aggregate, told = told_by(protocol, records)
    (grid,), (oracle,) = protocol.grids, protocol.channel.parts
    table = protocol.channel.frequencies(aggregate, 0)
    law = NodeLaw.of(oracle)
    for place in (0, 1):
        sums, cells = table.sum(axis=1 - place), grid.shape[place]
        # Any table with the margin that is plugged in
        likely = (4000 * norm_sub(sums) + 1) / (4000 + cells)
        even = np.multiply.outer(likely, np.full(21 // cells, cells / 21)).ravel()
        covariance = np.diag(law.contrast + law.held * even) - np.outer(even, even)
        rows = contrasts(cells) @ np.kron(np.eye(cells), np.ones(21 // cells))
        precision = 4000 * np.linalg.inv(rows @ covariance @ rows.T)
        seen = contrasts(cells) @ shares(grid.edges[place], fine_cells(Domain.of(sizes))[place])

        def dense(
            p: Floats, seen: Floats = seen, sums: Floats = sums, precision: Floats = precision
        ) -> float:
            off = contrasts(len(sums)) @ sums - seen @ p
            return float(-off @ precision @ off / 2)

        one = told.told[place]
        drawn = list(rng.dirichlet(np.ones(len(one.scores)), 5))
        own = differences(lambda p, t=one: t.scores @ p - p @ t.precision @ p / 2, drawn)
        assert own == pytest.approx(differences(dense, drawn), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_pairs_beside_least_squares(epsilon: float) -> None:
    # Of tables whose rows and columns are left open, of weights that are products
    sizes, rng = [300, 20], np.random.default_rng(4)
    first = rng.binomial(299, 0.2, 3000)
    records = np.stack([first, first * 20 // 300], axis=1)
    protocol = TDG(sizes, epsilon, 3000, granularity=(5, 4))
    aggregate, told = told_by(protocol, records)
    (grid,), (oracle,) = protocol.grids, protocol.channel.parts
    table, law = protocol.channel.frequencies(aggregate, 0), NodeLaw.of(oracle)
    likely = norm_sub(table.ravel()).reshape(table.shape)
    roots = []
    for axis in (0, 1):
        users = (3000 * norm_sub(table.sum(axis=1 - axis)) + 1) / (3000 + table.shape[axis])
        typical = (likely**2).sum(axis=1 - axis) / users + 1 / 3000
        roots.append((1 + law.held / law.contrast * typical) ** -0.25)
    scale = np.outer(*roots)  # roots of weights
    fine = fine_cells(Domain.of(sizes))
    left, right = (shares(cut, cells) for cut, cells in zip(grid.edges, fine, strict=True))
    g, h = table.shape
    open_ = np.concatenate(
        [np.kron(np.eye(g), np.ones((h, 1))), np.kron(np.ones((g, 1)), np.eye(h))], axis=1
    )

    def dense(p: Floats) -> float:
        off = (scale * (table - left @ p @ right.T)).ravel()
        columns = scale.ravel()[:, None] * open_
        off = off - columns @ np.linalg.lstsq(columns, off, rcond=None)[0]
        return float(-3000 / law.contrast * (off**2).sum() / 2)

    (pair,) = told.pairs

    def own(p: Floats) -> float:
        seen = (p.T @ told.grams[0] @ p * told.grams[1]).sum()
        return float((pair.scores * p).sum() - pair.precision * seen / 2)

    tables = [
        rng.dirichlet(np.ones(256 * 20)).reshape(256, 20) * rng.uniform(1, 5, (256, 1))
        for _ in range(5)
    ]
    tables = [one / one.sum() for one in tables]
    assert differences(own, tables) == pytest.approx(differences(dense, tables), rel=1e-6)


def test_cells_finer_than_the_posterior_are_joined() -> None:
    rng = np.random.default_rng(5)
    records = rng.integers(0, 600, (2000, 2))
    aggregate, told = told_by(RangeCALM([600, 600], 2.0), records)
    assert [len(one.scores) for one in told.told] == [256, 256]
    (pair,) = told.pairs
    assert pair.scores.shape == (256, 256)
    # Joined first they are the same as joined afterwards, where all are as likely
    table = RangeCALM([600, 600], 2.0).channel.frequencies(aggregate, 0)
    fine = fine_cells(Domain.of([600, 600]))[0]
    coarse = np.add.reduceat(np.add.reduceat(table, fine[:-1], axis=0), fine[:-1], axis=1)
    assert coarse.shape == pair.scores.shape
    assert np.corrcoef(coarse.sum(axis=1), told.told[0].scores)[0, 1] > 0.95


# ---------------------------------------------------------------------------------- calibration


def errors_of_told(protocol: Any, times: int) -> tuple[Floats, float, Items]:
    """Squares of errors of what skewed records tell, in units of their covariance: means.

    Of single attributes they are chi-square of as many degrees of freedom as cells less one, so
    that their mean over 100 collections or more is off by 5 standard errors with a probability of
    6e-7. Of single attributes, over their ranks; of the pair, over the product of both; the ranks.
    """
    n = 20_000
    population = np.outer(0.5 ** np.arange(16), 0.7 ** np.arange(8)) + 0.01 * np.eye(16, 8)
    population /= population.sum()
    records, rng = np.array(list(np.ndindex(16, 8))), np.random.default_rng(6)
    squares, together = [], []
    for _ in range(times):
        aggregate = protocol.simulate(rng.multinomial(n, population.ravel()), rng, records)
        told = protocol._likelihoods(aggregate)
        own = []
        for place, one in enumerate(told.told):
            off = one.scores - one.precision @ population.sum(axis=1 - place)
            own.append(off @ np.linalg.pinv(one.precision, rcond=1e-9) @ off)
        squares.append(own)
        (pair,) = told.pairs
        off = pair.scores - pair.precision * told.grams[0] @ population @ told.grams[1]
        inverse = [np.linalg.pinv(gram, rcond=1e-9) for gram in told.grams]
        together.append((off * (inverse[0] @ off @ inverse[1])).sum() / pair.precision)
    # As what is inverted above: the smallest numbers of a product are rounding
    ranks = np.array([np.linalg.matrix_rank(gram, rtol=1e-9) for gram in told.grams])
    return np.mean(squares, axis=0) / ranks, float(np.mean(together) / np.prod(ranks)), ranks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "oracle"), [(TDG, "OUE"), (TDG, "GRR"), (TDG, "OLH"), (HaarHRR2D, None)]
)
def test_what_is_told_errs_as_it_says(kind: Any, oracle: str | None) -> None:
    more = {} if oracle is None else {"oracle": oracle, "granularity": 8}
    ratios, together, ranks = errors_of_told(kind([16, 8], 4.0, 20_000, **more), 300)
    error = np.sqrt(2 / ranks / 300)
    if oracle in ("OUE", "GRR"):
        assert (np.abs(ratios - 1) < 5 * error + 0.03).all()
        # Twice the precision would be seen
        assert (np.abs(2 * ratios - 1) > 5 * error + 0.03).all()
    else:  # hashes of neighbours are not independent, and squares of coefficients are left out
        assert ((ratios > 0.3) & (ratios < 1.03 + 5 * error)).all()
    # Variances of a pair's cells are taken to be products, right where users are: at this epsilon,
    # of such data, those of empty cells in heavy rows are overstated
    assert 0.35 < together < 1.1


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.9), (4.0, 0.5), (7.0, 0.25)])
def test_what_waves_tell_errs_as_it_says(epsilon: float, least: float) -> None:
    ratios, together, ranks = errors_of_told(WaveGrid([16, 8], epsilon), 100)
    error = np.sqrt(2 / ranks / 100)
    assert (np.abs(ratios - 1) < 5 * error + 0.03).all()
    assert (np.abs(2 * ratios - 1) > 5 * error + 0.03).all()
    assert least < together < 1.1  # as for grids, the more the larger epsilon is


def cover(kind: Any, seeds: range) -> tuple[float, float]:
    """How often intervals from samples hold the truth about ranges of one and two attributes.

    And how often they do from samples that differ half as much.
    """
    held = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        records = people("normal", 40_000, 3, 32, rng)
        estimate = collected(kind([32] * 3, 2.0, 40_000), records, seed)
        samples = estimate.samples(10_000, 16, rng)
        for several in (1, 2):
            asked = queries(40, several, 3, 32, rng)
            values = np.array([truth(one, *asked) for one in samples])
            true = truth(records, *asked)
            for factor in (1.0, 0.5):
                middle = values.mean(axis=0)
                low, high = of_samples(middle + factor * (values - middle)).interval(0.95)
                held.append(np.mean((low <= true) & (true <= high)))
    return float(np.mean(held[0::2])), float(np.mean(held[1::2]))


@pytest.mark.slow
def test_intervals_of_samples_cover() -> None:
    own, halved = cover(HDG, range(3))  # other seeds: 0.92 to 1.00, 0.63 to 0.82
    assert 0.9 < own <= 1.0
    assert halved < 0.88


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_samples_cover_for_every_system(kind: Any) -> None:
    own, halved = cover(kind, range(10, 18))  # of these seeds 0.90 to 0.98, and 0.62 to 0.80
    assert own > 0.85
    assert halved < 0.85


# ------------------------------------------------------------------------------ samples as a whole


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "users"), [(0.01, 500), (20.0, 1), (20.0, 3000)])
def test_any_sizes_and_users(kind: Any, epsilon: float, users: int) -> None:
    sizes, rng = [1, 2, 3, 20], np.random.default_rng(7)
    records = rng.integers(0, sizes, (users, 4))
    estimate = collected(kind(sizes, epsilon, 10_000), records)
    samples = estimate.samples(200, 2, rng)
    assert len(samples) == 2
    for one in samples:
        assert one.shape == (200, 4)
        assert ((one >= 0) & (one < sizes)).all()


@pytest.mark.slow
def test_a_thousand_values_and_one_attribute() -> None:
    rng = np.random.default_rng(8)
    for kind, sizes in ((HDG, [1000, 7]), (HDG, [50]), (HDG, [1]), (HaarHRR2D, [1000, 3])):
        records = rng.integers(0, sizes, (3000, len(sizes)))
        estimate = collected(kind(sizes, 2.0, 3000), records)
        assert estimate.samples(100, 2, rng)[0].shape == (100, len(sizes))


def test_an_aggregate_that_was_merged_and_loaded() -> None:
    rng = np.random.default_rng(9)
    protocol = HDG([16, 16, 4], 2.0, 5000)
    reports = protocol.privatize(rng.integers(0, [16, 16, 4], (5000, 3)), rng)
    whole = protocol.aggregate(reports)
    parts = protocol.aggregate(reports[:2000]) + protocol.aggregate(reports[2000:])
    loaded = Aggregate.from_bytes(parts.to_bytes())
    drawn = [
        protocol.estimate(one).samples(500, 2, np.random.default_rng(1)) for one in (whole, loaded)
    ]
    assert all((a == b).all() for a, b in zip(*drawn, strict=True))
    assert (drawn[0][0] != drawn[0][1]).any()


@pytest.mark.slow
def test_posterior_answers_as_samples_do() -> None:
    rng = np.random.default_rng(10)
    protocol = HDG([32] * 3, 2.0, 40_000)
    aggregate = protocol.aggregate(protocol.privatize(people("normal", 40_000, 3, 32, rng), rng))
    estimate = protocol.estimate(aggregate)
    samples = estimate.samples(20_000, 30, rng)
    asked = queries(20, 2, 3, 32, rng)
    told = of_samples([truth(one, *asked) for one in samples])
    found = estimate.fitted()
    error = np.sqrt(found.predicted_error(*asked).total)
    assert (np.abs(told.value - found.answers(*asked)) < error + 0.002).all()
    assert 0.6 < np.mean(np.sqrt(told.variance) / error) < 1.5
    waves = WaveGrid([4, 4], 1.0)
    own = waves.estimate(waves.aggregate(waves.privatize(rng.integers(0, 4, (500, 2)), rng)))
    assert own.fitted() is own
    some = estimate.of_population(60_000).fitted()
    assert (some.n, some.reports) == (60_000, 40_000)
    assert (some.predicted_error(*asked).sampling > found.predicted_error(*asked).sampling).all()
    assert some.answers(*asked).tolist() == found.answers(*asked).tolist()


def test_refusals() -> None:
    rng = np.random.default_rng(11)
    records = rng.integers(0, 4, (100, 2))
    for kind, why in ((MSW, "go together"), (HIO, "any pair"), (Uniform, "nothing")):
        protocol = kind([4, 4], 1.0)
        estimate = collected(protocol, records)
        for refused in (lambda one: one.samples(10, 2), lambda one: one.fitted()):
            with pytest.raises(InvalidQuestion, match=f"{kind.__name__} do not tell.*{why}"):
                refused(estimate)
        with pytest.raises(ValueError, match="no reports"):
            collected(protocol, records[:0]).samples(10, 2)
    grids = TDG([4, 4], 1.0, 100)
    estimate = collected(grids, records)
    wrong: list[tuple[int, Any, str]] = [(0, 2, "n must"), (10, 0, "number"), (10, 1.5, "number")]
    for n, number, what in wrong:
        with pytest.raises(ValueError, match=what):
            estimate.samples(n, number)
    nobody = grids.aggregate(grids.privatize(records[:0], rng))
    with pytest.raises(ValueError, match="no reports"):
        grids.estimate(nobody).samples(10, 2)
    assert np.isnan(grids.estimate(nobody).fitted().answers([0], [[0]], [[1]])).all()
    alone = PairwiseEstimate(estimate.attributes, 100, estimate.lines, estimate.planes)
    with pytest.raises(InvalidQuestion, match="without its reports"):
        alone.samples(10, 2)


def test_in_labels_and_units() -> None:
    schema = fq.Schema(
        [
            fq.Numeric("age", low=20, high=69, bins=10, unit="years"),
            fq.Numeric("hours", low=0, high=79, whole=True, unit="hours"),
        ]
    )
    rng = np.random.default_rng(12)
    age = rng.uniform(20, 69, 20_000)
    hours = rng.binomial(79, age / 140)
    survey = fq.Survey(HDG(schema.domain, 3.0, 20_000), schema)
    table = {"age": age, "hours": hours}
    told = survey.estimate(survey.aggregate(survey.privatize(table, rng)))
    rows = told.samples(5000, 12, rng)
    assert list(rows[0]) == ["age", "hours"]
    young = of_samples([np.mean((one["age"] < 40) & (one["hours"] < 25)) for one in rows])
    true = np.mean((age < 40) & (hours < 25))
    assert abs(young.value - true) < 5 * young.variance**0.5
    assert young.variance**0.5 < 0.05
    silent = fq.Survey(MSW(schema.domain, 3.0), schema)
    estimate = silent.estimate(silent.aggregate(silent.privatize(table, rng)))
    with pytest.raises(InvalidQuestion, match="go together"):
        estimate.samples(10, 2)
