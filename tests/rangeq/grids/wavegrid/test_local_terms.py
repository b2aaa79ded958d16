"""Local terms: kinds, evidence and posteriors against dense linear algebra, and planted ones.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frequency import Between
from mechdesign.base.numbers import Floats
from rangeq.grids import HDG, WaveGrid
from rangeq.grids.wavegrid import local_terms, shrinkage
from rangeq.grids.wavegrid.distributions import FittedJoint, parts_before
from rangeq.grids.wavegrid.interactions import Pair, fitted
from rangeq.grids.wavegrid.local_terms import PairCandidate, PairCandidates, PairTerms, SmoothPrior
from rangeq.grids.wavegrid.shrinkage import KINDS, LEVELS, TermCells, bases, dyadic
from tests.rangeq.grids.populations import collected, told_halves, truth


def gram_of(rng: np.random.Generator, cells: int) -> Floats:
    functions = rng.choice([-1.0, 1.0], size=(40, cells))
    return np.asarray(functions.T @ functions / 40)


def scores_about(
    rng: np.random.Generator, grams: tuple[Floats, Floats], joint: Floats, users: float
) -> Floats:
    roots = [np.linalg.cholesky(gram) for gram in grams]
    noise = users**0.5 * roots[0] @ rng.normal(size=joint.shape) @ roots[1].T
    return np.asarray(users * grams[0] @ joint @ grams[1] + noise)


def pair_about(rng: np.random.Generator, joint: Floats, users: float, halved: float = 0.0) -> Pair:
    """What is known of a pair of this distribution, by users asked about waves and about halves."""
    grams = gram_of(rng, joint.shape[0]), gram_of(rng, joint.shape[1])
    return Pair(
        scores_about(rng, grams, joint, users),
        users,
        grams,
        (joint.sum(axis=1), joint.sum(axis=0)),
        told_halves(joint, halved),
    )


def explanations(pair: Pair) -> list[local_terms.PairExplanation]:
    return candidates(pair).explained()[0]


LIKELY = np.repeat([0.95, 0.05 / KINDS], [1, KINDS])


def terms_of(pair: Pair) -> PairTerms:
    left, right = (
        bases(TermCells(mass, np.arange(len(mass) + 1), gram))
        for mass, gram in zip(pair.margins, pair.grams, strict=True)
    )
    return PairTerms(left, right)


def candidates(pair: Pair) -> PairCandidates[int]:
    fits, scales = fitted({0: pair})
    prior = SmoothPrior(scales, 1.0)
    return PairCandidates.of({0: pair}, {0: terms_of(pair)}, LIKELY, [prior], {0: [fits[0]]})


def board(fields: int, cells: int) -> Floats:
    """A checkerboard."""
    colour = np.arange(cells) * fields // cells % 2
    table = (colour[:, None] == colour).astype(np.float64)
    return np.asarray(table / table.sum())


def test_dyadic_functions_move_mass_between_halves() -> None:
    mass = np.random.default_rng(1).dirichlet(np.ones(8))
    levels = dyadic(mass, np.arange(9))
    assert [level.shape for level in levels] == [(8, 1), (8, 2), (8, 4)]
    for depth, level in enumerate(levels):
        for node in range(1 << depth):
            start, width = node * (8 >> depth), 8 >> depth
            first, second = (
                slice(start, start + width // 2),
                slice(start + width // 2, start + width),
            )
            p, q = mass[first].sum(), mass[second].sum()
            expected = np.zeros(8)
            expected[first], expected[second] = 2 * q / (p + q), -2 * p / (p + q)
            np.testing.assert_allclose(level[:, node], mass * expected, atol=1e-15)
    assert dyadic(np.ones(1), np.array([0, 5]))[0].shape == (1, 0)
    # Cells of several values: intervals are halved by values
    assert dyadic(np.full(3, 1 / 3), np.array([0, 8, 12, 16]))[0][:, 0].tolist() == pytest.approx(
        [4 / 9, -2 / 9, -2 / 9]
    )


def test_functions_have_no_margins_and_are_orthogonal() -> None:
    rng = np.random.default_rng(2)
    mass, gram = rng.dirichlet(np.ones(12)), gram_of(rng, 12)
    kinds = bases(TermCells(mass, np.arange(13), gram))
    assert len(kinds) == len(bases(TermCells(np.array([0.2, 0.8]), np.arange(3), gram[:2, :2])))
    assert len(kinds) > 2 * LEVELS
    for functions, told in kinds:
        np.testing.assert_allclose(functions.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(functions.T @ gram @ functions, np.diag(told), atol=1e-10)


def test_local_terms_of_what_is_apart_are_its_own() -> None:
    """The order of two values apart tells nothing, and neither is near to any other value."""
    rng = np.random.default_rng(13)
    mass, gram = rng.dirichlet(np.ones(12)), gram_of(rng, 12)
    order = np.array([*range(10), 11, 10])
    kinds = bases(TermCells(mass, np.arange(13), gram, 2))
    turned = bases(TermCells(mass[order], np.arange(13), gram[np.ix_(order, order)], 2))
    assert len(kinds) == len(turned) == KINDS
    for one, other in zip(kinds, turned, strict=True):
        covariance, moved = (each.functions @ each.functions.T for each in (one, other))
        np.testing.assert_allclose(moved, covariance[np.ix_(order, order)], atol=1e-12)
        np.testing.assert_allclose(one.functions.sum(axis=0), 0, atol=1e-12)


def dense_information(pair: Pair) -> Floats:
    """About all entries of the table."""
    halves = np.kron(pair.halves.left, pair.halves.right)
    waves = pair.precision * np.kron(*pair.grams)
    return np.asarray(waves + pair.halves.precision * np.outer(halves, halves))


def dense(pair: Pair, joint: Floats, functions: Floats, tau: float) -> tuple[float, Floats, Floats]:
    """Evidence against no terms, mean of the table, covariance of coefficients: one Gaussian's."""
    noise = dense_information(pair)
    told = noise @ functions
    unexplained = pair.unexplained(joint).ravel()
    with_terms = noise + tau**2 * told @ told.T
    change = unexplained @ np.linalg.solve(noise, unexplained)
    change -= unexplained @ np.linalg.solve(with_terms, unexplained)
    evidence = (change - np.linalg.slogdet(with_terms)[1] + np.linalg.slogdet(noise)[1]) / 2
    gain = tau**2 * told.T @ np.linalg.inv(with_terms)
    left = tau**2 * np.eye(functions.shape[1]) - tau**2 * gain @ told
    return float(evidence), functions @ gain @ unexplained, left


@pytest.mark.parametrize("halved", [0.0, 5000.0])
def test_evidence_and_posterior_are_those_of_a_dense_gaussian(
    halved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(30)).reshape(6, 5)
    pair = pair_about(rng, joint, 3000.0, halved)
    kinds = [
        bases(TermCells(mass, np.arange(len(mass) + 1), gram))
        for mass, gram in zip(pair.margins, pair.grams, strict=True)
    ]
    even = pair.independent()
    candidate = PairCandidate(even, even.likelihood)
    for tau in (0.1, 1.0):
        monkeypatch.setattr(shrinkage, "SCALES", np.array([tau]))
        for both in zip(*kinds, strict=True):
            details = PairTerms([both[0]], [both[1]])
            functions = np.kron(both[0].functions, both[1].functions)
            evidence, mean, covariance = dense(pair, even.joint, functions, tau)
            (none, told), *_ = local_terms._logarithms(pair, [candidate], details)
            assert told - none == pytest.approx(evidence, rel=1e-6)
            one = local_terms._explanation(pair, candidate, both, 1.0, False)
            np.testing.assert_allclose(one.joint - even.joint, mean.reshape(6, 5), atol=1e-9)
            np.testing.assert_allclose(one.variance.ravel(), np.diag(covariance), rtol=1e-6)
            if not halved:
                apart = covariance - np.diag(np.diag(covariance))
                np.testing.assert_allclose(apart, 0, atol=1e-9 * covariance.max())


@pytest.mark.slow
def test_planted_terms_are_found_and_none_are_seen_where_there_are_none() -> None:
    rng = np.random.default_rng(4)
    for fields in (2, 4, 8):
        table = board(fields, 16)
        found = explanations(pair_about(rng, table, 100_000.0))
        assert sum(one.weight for one in found if one.mean.size) > 0.99
        mean = sum(one.weight * one.joint for one in found)
        assert np.abs(mean - table).sum() < 0.3 * np.abs(1 / 256 - table).sum()
    # The evidence for any kind is above r times that of none in at most one of r data sets: here
    # prior odds of 19 are, for all kinds together, and two of five have each less than 10^-3.
    alarms = [
        sum(
            one.weight
            for one in explanations(pair_about(rng, np.full((8, 8), 1 / 64), 5000.0))
            if one.mean.size
        )
        for _ in range(5)
    ]
    assert sum(alarm > 0.5 for alarm in alarms) < 3


@pytest.mark.slow
def test_reports_on_halves_tell_of_even_attributes_of_which_halves_exclude_each_other() -> None:
    """Waves of random phases see a ninth of that: errors without those reports are larger."""
    protocol, rng = WaveGrid([16, 16], 1.0), np.random.default_rng(12)
    squares = np.zeros(2)
    for _ in range(6):
        x = rng.integers(0, 16, 20_000)
        y = (x // 8 ^ 1) * 8 + rng.integers(0, 8, len(x))
        reports = protocol.privatize(np.stack([x, y], axis=1), rng)
        aggregate = protocol.aggregate(reports)
        waves, _ = protocol.channel.heard(aggregate)
        for k, estimate in enumerate(
            (protocol.estimate(aggregate), protocol._from(aggregate.n, waves, []))
        ):
            lower = estimate.answer({0: Between(0, 7), 1: Between(0, 7)})
            squares[k] += lower.value**2
    assert squares[0] < 0.2 * squares[1]


def checkerboard(rng: np.random.Generator, n: int) -> Any:
    """Fields of one colour of a board of 8 x 8, of 32 values each side."""
    first = rng.integers(0, 32, n)
    field = 2 * rng.integers(0, 4, n) + first // 4 % 2
    return np.stack([first, 4 * field + rng.integers(0, 4, n)], axis=1)


def clusters(rng: np.random.Generator, n: int) -> Any:
    """Two, with deviations of a twentieth of the domain."""
    centre = np.where(rng.random((n, 1)) < 0.5, 16, 48)
    return np.clip(np.round(centre + 3 * rng.normal(size=(n, 3))).astype(int), 0, 63)


def error_of(system: Any, records: Any, epsilon: float, several: int, size: int) -> float:
    rng = np.random.default_rng(6)
    d = records.shape[1]
    places = np.array([rng.choice(d, several, replace=False) for _ in range(150)])
    left, right = np.sort(rng.integers(0, size, size=(2, 150, several)), axis=0)
    estimate = collected(system([size] * d, epsilon, len(records)), records)
    asked = places, left, right
    return float(np.abs(estimate.answers(*asked) - truth(records, *asked)).mean())


@pytest.mark.slow
def test_errors_fall_on_a_checkerboard(monkeypatch: pytest.MonkeyPatch) -> None:
    people = [checkerboard(np.random.default_rng(seed), 200_000) for seed in (5, 25, 35)]

    def error(system: Any, epsilon: float) -> float:
        return sum(error_of(system, records, epsilon, 2, 32) for records in people)

    waves = {epsilon: error(WaveGrid, epsilon) for epsilon in (2.0, 4.0)}
    assert waves[4.0] < waves[2.0]
    assert all(waves[epsilon] < 1.1 * error(HDG, epsilon) for epsilon in waves)
    # Smooth terms alone stay far off
    monkeypatch.setattr(shrinkage, "SCALES", np.array([1e-9]))
    assert error(WaveGrid, 4.0) > 2 * waves[4.0]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_clusters_are_answered_as_well_as_by_grids(epsilon: float) -> None:
    people = [clusters(np.random.default_rng(seed), 150_000) for seed in (7, 8, 9)]
    for several in (2, 3):
        waves, grids = (  # of one collection either may err twice as much as of the next
            sum(error_of(system, records, epsilon, several, 64) for records in people)
            for system in (WaveGrid, HDG)
        )
        assert waves < 1.1 * grids


def test_a_table_that_other_pairs_imply_is_taken_where_it_explains_the_reports() -> None:
    rng = np.random.default_rng(8)
    for table, other, weight in (
        (board(2, 16), board(2, 16), 1.0),
        (board(2, 16), board(4, 16), 0.0),
        (np.full((16, 16), 1 / 256), board(2, 16), 0.0),
    ):
        pair = pair_about(rng, table, 6000.0)
        alone = candidates(pair)
        found = alone.with_tables({0: other}).explained()[0]
        assert abs(sum(one.weight for one in found if one.implied) - weight) < 0.2
        assert alone.with_tables({}).explained() == {}


def test_constant_attributes_say_nothing_about_the_others() -> None:
    """However many of their pairs there are, another one is answered as if it were alone."""
    rng = np.random.default_rng(10)
    slope = np.linspace(-1, 1, 16)
    told = pair_about(rng, (1 + 0.3 * np.outer(slope, slope)) / 256, 4000.0)
    constant = pair_about(rng, np.full((16, 1), 1 / 16), 4000.0)
    fit, scales = fitted({0: told})
    weights = []
    for several in (0, 8):
        pairs = {0: told, **dict.fromkeys(range(1, several + 1), constant)}
        details = {key: terms_of(pair) for key, pair in pairs.items()}
        fits = {key: [fit.get(key, pair.start(4))] for key, pair in pairs.items()}
        found = PairCandidates.of(pairs, details, LIKELY, [SmoothPrior(scales, 1.0)], fits)
        one = found.explained()[0]
        weights.append(sum(each.weight for each in one if not each.fit.theta.size))
    assert 0.1 < weights[0] < 0.9
    assert weights[1] == pytest.approx(weights[0], abs=0.1)


def test_all_ways_to_a_variance_agree() -> None:
    rng = np.random.default_rng(9)
    table = board(2, 16) * 0.4 + np.outer(*rng.dirichlet(np.ones(16), size=2)) * 0.6
    pair = pair_about(rng, table, 4000.0)
    joint = FittedJoint(pair, explanations(pair))
    assert len(joint.explanations) > 1
    ends = np.sort(rng.uniform(0, 16, size=(2, 6, 2)))
    rows, columns = ((side[:, 0], side[:, 1]) for side in ends)
    left, right = (
        parts_before(last, 16) - parts_before(first, 16) for first, last in (rows, columns)
    )
    found = joint.variances(rows, columns)
    assert (found > 0).all()
    np.testing.assert_allclose(joint.product_variances(left, right), found, rtol=1e-9)
    regions = [joint.variance_of(np.outer(a, b)) for a, b in zip(left, right, strict=True)]
    np.testing.assert_allclose(regions, found, rtol=1e-9)
