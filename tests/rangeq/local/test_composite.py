"""Composites: they keep the contract, are dense weighted least squares, and their predictions are
confirmed.

False alarms: at most 1e-6 for each statistical test, which are seeded and reject a planted error.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from frequency import GRR, Aggregate, NotIdentifiable
from frequency.postprocess import norm_sub
from mechdesign import Mechanism, Privacy, PrivacyViolation, named
from mechdesign.local import workload_optimal
from rangeq import (
    Between,
    CircularHistogram,
    Composite,
    HierarchicalHistogram,
    Tree,
    compose,
    optimise,
)
from rangeq.core.tree import WORKLOADS
from rangeq.local.composite import _gram_of_blocks
from rangeq.local.optimisation import describe
from tests.contracts.oracle import close, ratio_of
from tests.rangeq.contract import RangeContract, exact_level, level_twin
from tests.rangeq.core.trees import (
    all_ranges,
    indicators,
    level_matrices,
    of_workload,
    quadratic,
)
from tests.rangeq.local.test_circular import Simulated, choices_of_levels
from tests.tape import WORD


def alpha(epsilon) -> Fraction:
    return Privacy.from_epsilon(epsilon, neighbours="all").alpha


def grr(k: int, epsilon: float) -> Mechanism:
    """The very table of GRR, which is rounded to units of 2^-64."""
    oracle = GRR(k, epsilon)
    return named.krr(k, alpha=oracle.q / oracle.p)


def krr(k: int, epsilon) -> Mechanism:
    return named.krr(k, alpha=alpha(epsilon))


def mixed(k: int, epsilon) -> Mechanism:
    """Outputs of much, of little and of no information, and one that never occurs."""
    a = alpha(epsilon)
    rows = [[p / 2 for p in row] for row in named.krr(k, alpha=a).table]
    weak = named.geometric(k - 1, alpha=1 - (1 - a) / (2 * k)).table
    rows += [[p * Fraction(3, 10) for p in row] for row in weak]
    return Mechanism(
        [*rows, [Fraction(1, 5)] * k, [Fraction(0)] * k], Privacy(alpha=a, neighbours="all")
    )


@cache
def designed(k: int, epsilon, rounds: int = 2) -> Mechanism:
    return workload_optimal("ranges", k, epsilon, rounds=rounds).mechanism


def skewed(k: int, epsilon: float) -> Mechanism:
    """Far from alike in all directions, and for every two inputs."""
    steep = Privacy.from_epsilon(epsilon / (k - 1)).alpha
    return Mechanism(
        named.geometric(k - 1, alpha=steep).table, Privacy(alpha=steep ** (k - 1), neighbours="all")
    )


# ----------------------------------------------------------------------------------- the contract

BLOCKS = {4: 2, 6: 3, 8: 4, 20: 5, 1000: 8}
BELOW = {2: (2,), 4: (2, 2), 125: (5, 5, 5)}
NAMES = ("SubsetSelection", "GRR", "OLH")


class CompositeContract(RangeContract):
    """Of several levels for 4, 6, 8, 20 and 1000 items, of one for 2, 3 and 5; there is none of one
    item.
    """

    domains: tuple[int, ...] = (2, 3, 4, 5, 6, 8)

    def mechanism(self, k, epsilon):
        raise NotImplementedError

    def make(self, domain, epsilon):
        valid = type(domain) is int and 2 <= domain < 1 << 24
        k = BLOCKS.get(domain, domain) if valid else 2
        try:
            mechanism = self.mechanism(k, epsilon)
        except (ValueError, TypeError):  # whatever is wrong is for the protocol to say
            mechanism = self.mechanism(k, 1.0)
        below = BELOW[domain // k] if valid and domain > k else ()
        chances = [
            Fraction(2 * (level + 1), (len(below) + 1) * (len(below) + 2))
            for level in range(len(below) + 1)
        ]
        return Composite(domain, epsilon, mechanism, below, NAMES[: len(below)], chances)

    def pytest_generate_tests(self, metafunc):
        if "big" in metafunc.fixturenames:
            metafunc.parametrize(
                "big", [(3, 3), (20, 0.1), (1000, 1)], ids=["D3-eps3", "D20-eps0.1", "D1000-eps1"]
            )
        else:
            super().pytest_generate_tests(metafunc)


class TestKRR(CompositeContract):
    mechanism = staticmethod(krr)


class TestMixed(CompositeContract):
    """With an output that is never sent."""

    mechanism = staticmethod(mixed)

    def test_outputs_that_never_occur_are_refused(self):
        oracle = self.make(6, 1.0)
        good = oracle.privatize(self.values(6, 300), np.random.default_rng(1))
        first = int(np.flatnonzero(good["level"] == 0)[0])
        for output in (oracle.mechanism.outputs - 1, oracle.mechanism.outputs, 255):
            bad = good.copy()
            bad["body"][first, 0] = output
            self.check_refused(oracle, bad, good, first)


class TestDesigned(CompositeContract):
    """With outputs that are next to never sent, whose counts are far from normal."""

    domains, epsilons = (2, 4, 5, 6), (0.1, 1, 3)
    mechanism = staticmethod(designed)
    test_simulation_of_many_users_has_the_moments = None


# ---------------------------------------------------------------------------- dense least squares


class Dense:
    """The normal equations of all nodes of all levels; the sum of the items is known.

    The first level's nodes weigh by the inverse of the covariance of the mechanism's own estimates,
    by enumeration of its outputs for evenly spread inputs; all others by users over the variance of
    a unit contrast. ``blind`` projects on what is not seen.
    """

    def __init__(self, protocol: Composite, users: np.ndarray) -> None:
        d, k = protocol.domain, protocol.mechanism.inputs
        self.protocol, self.users, self.nodes = protocol, users, level_matrices(protocol.tree)
        table, scores = exact_level(protocol.parts[0], protocol)
        own = (scores.T * table.mean(axis=1)) @ scores - 1 / k**2
        self.weights = [users[0] * np.linalg.pinv(own, rcond=1e-9)]
        for level, n in zip(protocol.parts[1:], users[1:], strict=True):
            variance = level.difference_variance(1) / 2 + 1 / level.domain
            self.weights.append(n / variance * np.eye(level.domain))
        centre = np.eye(d) - 1 / d
        information = sum(g.T @ w @ g for g, w in zip(self.nodes, self.weights, strict=True))
        values, vectors = np.linalg.eigh(centre @ information @ centre)
        known = values > 1e-9 * values.max()
        self.covariance = (vectors[:, known] / values[known]) @ vectors[:, known].T
        self.blind = centre - vectors[:, known] @ vectors[:, known].T

    def effect(self, level: int) -> np.ndarray:
        """What estimates of a level's nodes add to those of the items: shape (domain, nodes)."""
        return self.covariance @ self.nodes[level].T @ self.weights[level]

    def estimate(self, aggregate: Aggregate) -> np.ndarray:
        result = np.full(self.protocol.domain, 1 / self.protocol.domain)
        for k, (oracle, n) in enumerate(zip(self.protocol.parts, self.users, strict=True)):
            if n:
                own = oracle.estimate(
                    self.protocol.channel.part_aggregate(aggregate, k)
                ).frequencies
                result += self.effect(k) @ (own - 1 / oracle.domain)
        return result

    def variances(self, weights: np.ndarray) -> np.ndarray:
        """Of weights (queries, domain), for independent samples of an even population."""
        result = quadratic(weights, self.covariance)
        result[quadratic(weights, self.blind) > 1e-9 * (weights**2).sum(axis=1)] = np.inf
        return result

    def variances_of(self, weights: np.ndarray, frequencies: np.ndarray, n: int) -> np.ndarray:
        """For a population, by enumeration of all reports of all levels; disjoint samples share its
        own variance.
        """
        total = -(weights**2 @ frequencies - (weights @ frequencies) ** 2) / n
        for k, (oracle, g, own) in enumerate(
            zip(self.protocol.parts, self.nodes, self.users, strict=True)
        ):
            table, scores = exact_level(oracle, self.protocol)
            chances = table @ (g @ frequencies)
            added = scores @ self.effect(k).T @ weights.T
            total += (chances @ added**2 - (chances @ added) ** 2) / own
        return total


PROTOCOLS = [
    Composite(8, 1.0, krr(4, 1.0), (2,), ("OUE",)),
    Composite(12, 0.5, designed(6, 0.5), (2,), ("SubsetSelection",), ("1/3", "2/3")),
    Composite(18, 1.1, mixed(3, 1.1), (3, 2), ("GRR", "HRR"), ("1/5", "3/10", "1/2")),
    Composite(24, 2.0, skewed(6, 2.0), (2, 2), ("HRR", "GRR")),
    # The mechanism loses less than is allowed
    Composite(16, 3.0, skewed(4, 1.5), (2, 2), ("GRR", "GRR")),
    Composite(16, 1.1, designed(2, 1.1), (2, 2, 2), ("GRR", "SUE", "ProjectiveGeometry")),
    Composite(7, 1.0, designed(7, 1.0)),
    Composite(6, 1.0, skewed(6, 1.0), (), (), (1,)),
    Composite(2, 1.0, krr(2, 1.0)),
]


def name_of(protocol: Composite) -> str:
    return f"{'x'.join(map(str, protocol.tree.branching))}-{protocol.epsilon}"


protocols = pytest.mark.parametrize("protocol", PROTOCOLS, ids=name_of)


@protocols
def test_estimates_are_those_of_least_squares(protocol) -> None:
    """Of all levels, and of any one or two of them."""
    for seed, asked in enumerate(choices_of_levels(protocol)):
        rng = np.random.default_rng(seed)
        values = np.minimum(
            rng.geometric(0.2, size=80 * len(protocol.parts)) - 1, protocol.domain - 1
        )
        reports = protocol.privatize(values, rng)
        aggregate = protocol.aggregate(reports[np.isin(reports["level"], asked)])
        twin, found = (
            Dense(protocol, protocol.channel.part_users(aggregate)),
            protocol.estimate(aggregate).frequencies,
        )
        close(found, twin.estimate(aggregate), 100 * np.abs(found).max())
        assert found.sum() == pytest.approx(1, abs=1e-12)


@protocols
def test_variances_are_those_of_least_squares(protocol) -> None:
    """Of all ranges and of any weights; infinite for what no level tells."""
    d, rng = protocol.domain, np.random.default_rng(protocol.domain)
    first, last = all_ranges(d)
    ranges, unseen = indicators(first, last, d), False
    for asked in choices_of_levels(protocol):
        users = np.isin(np.arange(len(protocol.parts)), asked) * rng.integers(
            5, 500, len(protocol.parts)
        ).astype(float)
        twin = Dense(protocol, users)
        expected = twin.variances(ranges)
        scale = expected[np.isfinite(expected)].max()
        np.testing.assert_allclose(
            protocol._own_range_variance(first, last, users), expected, rtol=1e-8, atol=1e-9 * scale
        )
        for weights in (
            ranges,
            rng.normal(size=(5, d)),
            np.ones((1, d)),
            np.full((1, d), 0.1),
            ranges * 1e6,
        ):
            found, expected = protocol._own_linear_variance(weights, users), twin.variances(weights)
            scale = expected[np.isfinite(expected)].max(initial=0.0) + np.abs(weights).max() ** 2
            # What is not known is a large number there
            slack = 1e-12 if np.isfinite(twin.variances(ranges)).all() else 1e-5
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=slack * scale)
            unseen = unseen or np.isinf(found).any()
    assert unseen == (len(protocol.parts) > 1)
    users = rng.integers(5, 500, len(protocol.parts)).astype(float)
    many = rng.normal(size=(2, 3, d))
    np.testing.assert_allclose(
        protocol._own_linear_variance(many, users),
        quadratic(many, Dense(protocol, users).covariance),
    )


def test_what_an_estimate_tells_of_its_errors(monkeypatch) -> None:
    """The variances above, less what the levels' samples of the same users share.

    For the estimated population; of ranges over more items than that is done for, for an even one.
    """
    protocol, d = PROTOCOLS[2], 18
    aggregate = protocol.simulate(np.arange(1, d + 1) * 5, np.random.default_rng(0))
    estimate, twin = (
        protocol.estimate(aggregate),
        Dense(protocol, protocol.channel.part_users(aggregate)),
    )
    first, last = all_ranges(d)
    f = (last - first + 1) / d
    expected = twin.variances(indicators(first, last, d)) - f * (1 - f) / aggregate.n
    assert estimate.answer(Between(0, d - 1)).variance == pytest.approx(0, abs=1e-15)
    with monkeypatch.context() as short:
        short.setattr(Composite, "largest_plugged_in", d - 1)
        even = protocol.estimate(aggregate).answer(Between(first, last)).variance
        np.testing.assert_allclose(even, expected, rtol=1e-8, atol=1e-14)
    weights, users = (
        np.concatenate([np.random.default_rng(1).normal(size=(4, d)), indicators(first, last, d)]),
        protocol.channel.part_users(aggregate),
    )
    f = norm_sub(estimate.frequencies)
    expected = -(weights**2 @ f - (weights @ f) ** 2) / aggregate.n
    for k, level in enumerate(protocol.parts):
        table, scores = exact_level(level, protocol)
        own = scores @ (weights @ twin.effect(k)).T
        drawn = table @ (twin.nodes[k] @ f)
        expected += (drawn @ own**2 - (drawn @ own) ** 2) / users[k]
    told = np.concatenate(
        [estimate.linear(weights[:4]).variance, estimate.answer(Between(first, last)).variance]
    )
    np.testing.assert_allclose(told, expected, rtol=1e-8, atol=1e-14)
    low, high = estimate.answer(Between(first, last)).interval()
    assert (low <= estimate.range(first, last)).all()
    assert (estimate.range(first, last) <= high).all()


@protocols
def test_estimates_are_unbiased(protocol) -> None:
    """For every item, by enumeration: the effects of the levels' estimates add up to the item."""
    d, h = protocol.domain, len(protocol.parts)
    twin = Dense(protocol, np.arange(1.0, h + 1))
    total = np.zeros((d, d))
    for k, level in enumerate(protocol.parts):
        table, scores = exact_level(level, protocol)
        total += (twin.effect(k) @ (scores - 1 / level.domain).T) @ table @ twin.nodes[k]
    close(1 / d + total, np.eye(d), 10)


@pytest.mark.parametrize(
    ("domain", "branching", "name"), [(12, (4, 3), "OUE"), (24, (3, 2, 4), "GRR"), (5, (5,), "GRR")]
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_with_grr_it_is_a_hierarchical_histogram(domain, branching, name, epsilon) -> None:
    """From the same counts the same estimates, and the same errors."""
    names, height = ("GRR", *[name] * (len(branching) - 1)), len(branching)
    chances = tuple(Fraction(2 * (k + 1), height * (height + 1)) for k in range(height))
    tree = HierarchicalHistogram(domain, epsilon, branching, names, chances)
    composite = Composite(
        domain, epsilon, grr(branching[0], epsilon), branching[1:], names[1:], chances
    )
    assert composite.part_weights == tree.part_weights
    assert composite.audit().ratio == tree.audit().ratio
    rng, (first, last) = np.random.default_rng(1), all_ranges(domain)
    even = np.full(domain, 1 / domain)
    held = rng.integers(0, 300, domain)
    for counts in (held, np.eye(domain, dtype=int)[1]):  # many users, and one: of one level alone
        theirs = tree.simulate(counts, rng)
        mine = Aggregate(composite.channel.signature, theirs.n, theirs.counts.copy())
        one, two = composite.estimate(mine), tree.estimate(theirs)
        close(one.frequencies, two.frequencies, np.abs(two.frequencies).max())
        np.testing.assert_allclose(
            one.answer(Between(first, last)).variance,
            two.answer(Between(first, last)).variance,
            rtol=1e-9,
            atol=1e-14,
        )
        weights = rng.normal(size=(3, domain))
        np.testing.assert_allclose(
            one.linear(weights).variance, two.linear(weights).variance, rtol=1e-9
        )
    for workload in WORKLOADS:
        for f in (None, held / held.sum(), even):
            assert composite.average_rmse(1000, workload, f) == pytest.approx(
                tree.average_rmse(1000, workload, f), rel=1e-9
            )


# ------------------------------------------------------------------------------------ predictions


@protocols
def test_average_rmse_is_the_root_of_the_mean(protocol) -> None:
    """Over all queries of a workload, for even and for other populations. Of a variance that is 0
    but for rounding, 1e-16, the root is 1e-8.
    """
    d, n, rng = protocol.domain, 1000, np.random.default_rng(7)
    first, last = all_ranges(d)
    ranges, users = (
        indicators(first, last, d),
        n * np.array(protocol.part_weights, dtype=float) / WORD,
    )
    twin, f = Dense(protocol, users), (last - first + 1) / d
    heavy = np.where(np.arange(d) == 1, 0.9, 0.1 / (d - 1))
    even = twin.variances(ranges) - f * (1 - f) / n
    populations = [(g, twin.variances_of(ranges, g, n)) for g in (heavy, rng.dirichlet(np.ones(d)))]
    for workload in WORKLOADS:
        rows = of_workload(workload, first, last)
        expected = math.sqrt(max(even[rows].mean(), 0.0))
        assert protocol.average_rmse(n, workload) == pytest.approx(expected, rel=1e-8, abs=1e-7)
        for g, variances in populations:
            expected = math.sqrt(max(variances[rows].mean(), 0.0))
            assert protocol.average_rmse(n, workload, g) == pytest.approx(
                expected, rel=1e-8, abs=1e-7
            )


@pytest.mark.parametrize("workload", WORKLOADS)
def test_levels_of_probability_zero(workload) -> None:
    """Where nobody tells what a workload asks for its error is infinite; where others do, it is
    theirs.
    """
    mechanism, names = designed(4, 1.0), ("GRR", "OUE")
    for chances in itertools.product((0, 1), repeat=3):
        if not any(chances):
            continue
        protocol = Composite(
            16, 1.0, mechanism, (2, 2), names, [Fraction(c, sum(chances)) for c in chances]
        )
        found = protocol.average_rmse(1000, workload)
        assert math.isfinite(found) == bool(chances[-1])
        if chances[-1]:
            users = np.array(chances) * 1000 / sum(chances)
            first, last = all_ranges(16)
            rows, f = of_workload(workload, first, last), (last - first + 1) / 16
            variances = (
                Dense(protocol, users).variances(indicators(first, last, 16)) - f * (1 - f) / 1000
            )
            assert found == pytest.approx(math.sqrt(variances[rows].mean()))
        reports = protocol.privatize(np.arange(1600) % 16, np.random.default_rng(0))
        assert {k for k in range(3) if chances[k]} == set(reports["level"].tolist())
        for aggregate in (
            protocol.aggregate(reports),
            protocol.simulate(np.full(16, 100), np.random.default_rng(0)),
        ):
            assert (aggregate.counts[:3] > 0).tolist() == [bool(c) for c in chances]
            estimate = protocol.estimate(aggregate)
            assert np.isfinite(estimate.frequencies).all()
            estimate.answer(Between(0, np.arange(16))).interval()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "inputs", "domain", "epsilon", "workload"),
    [
        (designed, 8, 16, 0.5, "ranges"),
        (designed, 4, 32, 1.1, "prefixes"),
        (designed, 16, 64, 1.1, "ranges"),
        (skewed, 8, 64, 3.0, "ranges"),
    ],
    ids=["8x2-0.5", "4x2x2x2-1.1", "16x2x2-1.1", "8x2x2x2-3.0"],
)
def test_predictions_against_simulation(make, inputs, domain, epsilon, workload) -> None:
    """All ranges, even populations: within 3%, unbiased."""
    protocol = compose(make(inputs, epsilon), domain, epsilon, workload)
    d = protocol.domain
    held = np.full(d, max(1, 800 // d))
    predicted = protocol.average_rmse(int(held.sum()), "all ranges")
    found = Simulated(protocol, held, 3000 if d < 64 else 2000, 20_250_101)
    assert found.tolerance() < 0.03
    assert not found.rejects(predicted)
    assert found.rejects(predicted * 1.06)
    assert found.rejects(predicted / 1.06)


@pytest.mark.slow
def test_predictions_for_a_population_against_simulation() -> None:
    """Nearly everybody holds one item: the error is not that of an even population, and is what is
    predicted.
    """
    protocol = Composite(16, 3.0, skewed(4, 3.0), (2, 2), ("GRR", "GRR"))
    held = np.r_[3, 400, np.full(14, 3)]
    n = int(held.sum())
    predicted = protocol.average_rmse(n, "all ranges", held / n)
    found = Simulated(protocol, held, 3000, 20_250_102)
    assert found.tolerance() < 0.035
    assert not found.rejects(predicted)
    assert found.rejects(protocol.average_rmse(n, "all ranges"))


@pytest.mark.slow
def test_a_wrong_probability_is_rejected() -> None:
    """A planted error: clients whose mechanism is of another epsilon than the server believes, by
    8%.
    """
    server, client = (
        Composite(16, 1.1, krr(8, epsilon), (2,), ("GRR",), ("3/4", "1/4"))
        for epsilon in (1.1, 1.012)
    )
    held = np.r_[np.full(8, 90), np.full(8, 10)]
    predicted = server.average_rmse(800, "all ranges", held / 800)
    assert not Simulated(server, held, 1500, 5).rejects(predicted)

    class Misled:
        """Takes the clients' reports for its own."""

        aggregate, estimate = server.aggregate, server.estimate

    assert Simulated(client, held, 1500, 5, Misled).rejects(predicted)


@pytest.mark.slow
def test_privatize_and_simulate_agree() -> None:
    """Means and variances of all counts, over a population that is not even; 5.5 standard errors,
    for fewer than 100 counts.
    """
    protocol, held = (
        Composite(6, 1.0, designed(3, 1.0), (2,), ("OLH",), ("2/5", "3/5")),
        np.array([20, 0, 5, 9, 1, 3]),
    )
    rng, runs = np.random.default_rng(5), 1500
    one = np.array([protocol.simulate(held, rng).counts for _ in range(runs)], dtype=float)
    reports = protocol.privatize(np.tile(np.repeat(np.arange(6), held), runs), rng).reshape(
        runs, -1
    )
    two = np.array(
        [protocol.aggregate(np.ascontiguousarray(row)).counts for row in reports], dtype=float
    )
    scale = np.sqrt((one.var(axis=0) + two.var(axis=0)) / runs) + 1e-12
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5.5 * scale).all()
    random = one.var(axis=0) > 1e-9
    assert 10 < random.sum() < 100
    often = random & (one.mean(axis=0) > 0.5)
    assert np.abs(np.log(one.var(axis=0)[often] / two.var(axis=0)[often])).max() < 0.5


# --------------------------------------------------------------------------------------- composed


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("blocks", "width"), [(2, 1), (2, 2), (3, 4), (5, 3), (8, 1), (8, 8), (1, 5)]
)
def test_what_queries_cover_of_blocks(blocks: int, width: int, workload: str) -> None:
    first, last = all_ranges(blocks * width)
    queries = indicators(first, last, blocks * width)[of_workload(workload, first, last)]
    covered = queries.reshape(len(queries), blocks, width).mean(axis=-1)
    np.testing.assert_allclose(
        _gram_of_blocks(blocks, width, workload),
        covered.T @ covered / max(len(queries), 1),
        atol=1e-12,
    )


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("mechanism", "domain", "epsilon"),
    [
        ((designed, 8, 1.1), 8, 1.1),
        ((designed, 8, 1.1), 64, 1.1),
        ((skewed, 5, 2.0), 20, 2.0),
        ((krr, 16, 0.5), 256, 0.5),
    ],
    ids=["8", "8x8", "5x4", "16x16"],
)
def test_probabilities_are_optimal(mechanism, domain, epsilon, workload) -> None:
    """The first-order conditions of a convex problem, by differences; and nothing at random, or
    beside them, is better.
    """
    make, *arguments = mechanism
    mechanism = make(*arguments)
    protocol = compose(mechanism, domain, epsilon, workload)
    assert protocol.tree.branching == (
        mechanism.inputs,
        *[2] * round(math.log2(domain / mechanism.inputs)),
    )
    height, rng = protocol.tree.height, np.random.default_rng(domain)
    shares = np.array(protocol.part_weights, dtype=float) / WORD

    def average(chances) -> float:
        return protocol.even.average(np.array(chances, dtype=float), workload)

    least, step, gains = average(shares), 1e-5, []
    for level in range(height):
        moved = shares * (1 - step) + step * (np.arange(height) == level)
        gains.append((average(moved) - least) / step / least)
    assert min(gains) > -1e-3  # no level would gain
    assert np.abs(np.array(gains)[shares > 1e-2]).max() < 1e-2  # and all that have users are alike
    for other in [*rng.dirichlet(np.ones(height), 50), np.full(height, 1 / height)]:
        for moved in (other, 0.99 * shares + 0.01 * other):
            assert average(moved) >= least * (1 - 1e-8)
    uniform = replace(protocol, probabilities=None)
    assert protocol.average_rmse(1 << 20, workload) <= uniform.average_rmse(1 << 20, workload) * (
        1 + 1e-9
    )
    if height > 1:  # the test can fail: these are not optimal
        assert average(shares[::-1] * 0.5 + 0.5 / height) > least * (1 + 1e-4)


def test_every_level_has_the_best_oracle() -> None:
    protocol = compose(designed(8, 1.1), 64, 1.1)
    for k in range(len(protocol.oracle)):
        for name in ("GRR", "OUE", "HRR", "SubsetSelection"):
            names = [*protocol.oracle[:k], name, *protocol.oracle[k + 1 :]]
            assert replace(protocol, oracle=names).average_rmse(1 << 20) >= protocol.average_rmse(
                1 << 20
            ) * (1 - 1e-9)


def test_a_mechanism_that_says_next_to_nothing_is_not_asked() -> None:
    weak = krr(8, 0.01)
    protocol = compose(weak, 64, 2.0)
    assert protocol.part_weights[0] < WORD / 100
    assert protocol.average_rmse(1 << 20) < replace(protocol, probabilities=None).average_rmse(
        1 << 20
    )
    assert protocol.audit().holds


def test_the_table_names_it() -> None:
    protocol = Composite(8, 1.0, krr(2, 1.0), (2, 2), ("GRR", "OUE"), ("1/4", "1/4", "1/2"))
    assert describe(protocol) == "Composite mechanism 0.250, GRR 0.250, OUE 0.500"


LARGE = 1 << 26


@cache
def large() -> Mechanism:
    return designed(128, 1.1)


@pytest.mark.slow
def test_gains_at_65536_items() -> None:
    """With 128 blocks: at most 0.95 of the error of the best tree."""
    alternatives = optimise(1 << 16, 1.1, LARGE).alternatives
    best = min(
        rmse for protocol, rmse in alternatives if not isinstance(protocol, CircularHistogram)
    )
    assert compose(large(), 1 << 16, 1.1).average_rmse(LARGE) <= 0.95 * best


@pytest.mark.slow
def test_the_prediction_is_confirmed() -> None:
    """4096 items in 128 blocks, all 8386560 ranges, two users of each item; the root mean square,
    within 3%.
    """
    protocol, d, repeats = compose(large(), 1 << 12, 1.1), 1 << 12, 240
    rng, held, squares = np.random.default_rng(4), np.full(1 << 12, 2), np.zeros(240)
    for k in range(repeats):
        errors = protocol.estimate(protocol.simulate(held, rng)).frequencies - 1 / d
        sums = np.concatenate([[0.0], np.cumsum(errors)])
        # Over all pairs of cuts, less single items; see `rangeq.core.tree`.
        squares[k] = (len(sums) * (sums**2).sum() - sums.sum() ** 2 - (errors**2).sum()) / (
            d * (d - 1) / 2
        )
    error = squares.std(ddof=1) / math.sqrt(repeats) / squares.mean() / 2
    assert error < 0.03 / 4.95
    assert math.sqrt(squares.mean()) == pytest.approx(protocol.average_rmse(2 * d), rel=0.03)


# ------------------------------------------------------------------------------------------ edges


def test_parameters() -> None:
    m = designed(4, 1.0)
    protocol = Composite(16, 1.0, m, (2, 2), ("GRR", "OLH"), ("1/3", "1/3", "1/3"))
    lists = Composite(np.int64(16), 1.0, m, [np.int64(2), 2], ["GRR", "OLH"], ["1/3", "1/3", "1/3"])
    assert protocol == lists
    assert hash(protocol) == hash(lists)
    assert protocol.parameters == lists.parameters
    assert protocol.tree == Tree(16, (4, 2, 2))
    assert [type(level).__name__ for level in protocol.parts] == ["Tabular", "GRR", "OLH"]
    assert [level.domain for level in protocol.parts] == [4, 8, 16]
    assert protocol.report_bits == 2 + max(level.report_bits for level in protocol.parts)
    # All that decides what a report means is in the parameters.
    others = [
        Composite(16, 1.0, krr(4, 1.0), (2, 2), ("GRR", "OLH"), ("1/3", "1/3", "1/3")),
        Composite(16, 1.0, m, (4,), ("OLH",), ("1/3", "2/3")),
        Composite(16, 1.0, m, (2, 2), ("OLH", "GRR"), ("1/3", "1/3", "1/3")),
        Composite(16, 1.0, m, (2, 2), ("GRR", "OLH"), ("1/4", "1/4", "1/2")),
        Composite(16, 1.5, m, (2, 2), ("GRR", "OLH"), ("1/3", "1/3", "1/3")),
    ]
    assert len({p.channel.signature for p in (protocol, *others)}) == 6


def test_the_audit_is_the_worst_level() -> None:
    for mechanism, worst in ((krr(3, 1.3), "either"), (krr(3, 0.4), "below")):
        protocol = Composite(6, 1.3, mechanism, (2,), ("SubsetSelection",))
        tables = [level_twin(level).table for level in protocol.parts]
        ratios = [ratio_of(t, [(a, b) for a in range(len(t[0])) for b in range(a)]) for t in tables]
        assert protocol.audit().ratio == max(ratios)
        assert protocol.audit().holds
        assert worst == "either" or max(ratios) == ratios[1]


def test_a_mechanism_that_loses_more_than_epsilon() -> None:
    mechanism = krr(4, 1.0)
    with pytest.raises(PrivacyViolation) as refused:
        Composite(8, 0.99, mechanism, (2,), ("GRR",))
    assert refused.value.ratio == 1 / alpha(1.0)
    with pytest.raises(PrivacyViolation):
        compose(mechanism, 8, 0.99)
    # A table that does not keep what it claims itself, though it keeps epsilon.
    with pytest.raises(PrivacyViolation):
        Composite(4, 1.0, Mechanism(mechanism.table, Privacy(alpha="9/10", neighbours="all")))
    assert Composite(8, 1.01, mechanism, (2,), ("GRR",)).audit().holds


@pytest.mark.parametrize(
    "mechanism",
    [None, "krr", 4, [[1]], named.geometric(3, alpha="1/2"), GRR(4, 1.0)],
    ids=lambda m: type(m).__name__,
)
def test_mechanisms_that_are_not_local(mechanism) -> None:
    with pytest.raises(ValueError, match="must be a local one"):
        Composite(4, 1.0, mechanism)


def test_a_mechanism_of_one_input() -> None:
    with pytest.raises(ValueError, match="two inputs"):
        Composite(2, 1.0, Mechanism([[1]], Privacy(alpha="1/2", neighbours="all")), (2,), ("GRR",))


def test_mechanisms_that_do_not_identify() -> None:
    for mechanism in (
        named.uniform(3, Privacy(alpha=1, neighbours="all")),
        Mechanism(
            [["1/2", "1/4", "1/4", "1/2"], ["1/2", "3/4", "3/4", "1/2"]],
            Privacy(alpha="1/3", neighbours="all"),
        ),
    ):
        with pytest.raises(NotIdentifiable, match="rank"):
            Composite(8, 2.0, mechanism, (2,), ("GRR",))


@pytest.mark.parametrize(
    "arguments",
    [
        {"domain": 8},
        {"domain": 17},
        {"domain": 32},
        {"branching": ()},
        {"branching": (2,)},
        {"branching": (2, 3)},
        {"branching": (4, 1)},
        {"branching": (2, 2, 2)},
        {"branching": (2.0, 2)},
        {"branching": (-2, -2)},
        {"branching": "22"},
        {"branching": 4},
        {"branching": None},
        {"oracle": ()},
        {"oracle": ("GRR",)},
        {"oracle": ("GRR",) * 3},
        {"oracle": ("GRR", "NOPE")},
        {"oracle": ("GRR", "grr")},
        {"oracle": ("GRR", None)},
        {"oracle": ("GRR", ["GRR"])},
        {"oracle": "GRR"},
        {"oracle": None},
        {"probabilities": ("1/2", "1/2")},
        {"probabilities": ("1/2", "1/2", "1/2")},
        {"probabilities": ("3/2", "-1/2", 0)},
        {"probabilities": (0.2, 0.3, 0.5)},
        {"probabilities": "100"},
    ],
    ids=str,
)
def test_wrong_parameters(arguments) -> None:
    right = {
        "domain": 16,
        "epsilon": 1.0,
        "mechanism": krr(4, 1.0),
        "branching": (2, 2),
        "oracle": ("GRR", "GRR"),
    }
    assert Composite(**right).audit().holds
    with pytest.raises((ValueError, TypeError)):
        Composite(**{**right, **arguments})


@pytest.mark.parametrize(
    ("domain", "epsilon", "workload"),
    [(2, 1.0, "ranges"), (6, 1.0, "ranges"), (12, 1.0, "ranges"), (8, 0.0, "ranges"), (8, 1.0, "")],
)
def test_wrong_compositions(domain, epsilon, workload) -> None:
    with pytest.raises(ValueError, match=r"items|workload|epsilon"):
        compose(krr(4, 1.0), domain, epsilon, workload)


@pytest.mark.parametrize(
    "mechanism", [None, 4, named.geometric(3, alpha="1/2")], ids=lambda m: type(m).__name__
)
def test_wrong_mechanisms_to_compose(mechanism) -> None:
    with pytest.raises(ValueError, match="local"):
        compose(mechanism, 8, 1.0)
