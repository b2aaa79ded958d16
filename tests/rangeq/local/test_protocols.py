"""Range protocols: they keep the contract of oracles; predictions are exact where enumerated, and
simulated elsewhere.

Predictions are about the users themselves, who are fixed and evenly spread: the variance for
independent samples of an even population on each level, less f(1-f)/n for a range of frequency f,
as levels are disjoint samples of the same users.
"""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.lib.recfunctions import structured_to_unstructured

from frequency import IncompatibleAggregate, InvalidReport
from frequency.core.mixture import weights_of
from frequency.postprocess import norm_sub
from rangeq import CircularHistogram, DecomposedHistogram, Flat, HaarHRR, HierarchicalHistogram
from rangeq.core.tree_consistency import consistent
from rangeq.local.circular import Blocks
from rangeq.local.haar import HaarLevel
from tests.contracts.oracle import LN3, OracleContract, Twin, close, moments, ratio_of, reports_of
from tests.frequency.oracles import twins as oracles
from tests.rangeq.core.test_tree import all_ranges, indicators, of_workload
from tests.tape import WORD


def haar_twin(level: HaarLevel) -> Twin:
    """Index j uniform; the sign is (-1)^(j . node) for a left child, its negative for a right one,
    told with weight ``truth``.
    """
    truth, lie = (int(level.parameters[name]) for name in ("truth", "lie"))
    half, items = level.domain // 2, range(level.domain)
    rows = [(j, sign) for j in range(half) for sign in (1, -1)]

    def chance(j: int, sign: int, item: int) -> Fraction:
        own = (-1) ** (j & item // 2).bit_count() * (-1) ** (item % 2)
        return Fraction(truth if sign == own else lie, WORD * half)

    return Twin(reports_of(level, rows), [[chance(*row, item) for item in items] for row in rows])


def blocks_twin(level: Blocks) -> Twin:
    """The angle is uniform; then it is the base oracle's report of the block ((x + angle) mod M) //
    width that x is in.
    """
    base, width = level_twin(level.base), level.domain // level.blocks
    reports = np.zeros(width * len(base.reports), dtype=level.report_dtype)
    reports["angle"] = np.repeat(np.arange(width), len(base.reports))
    reports["block"] = np.tile(base.reports, width)
    table = [
        [row[(x + angle) % level.domain // width] / width for x in range(level.domain)]
        for angle in range(width)
        for row in base.table
    ]
    return Twin(reports, table)


TWINS = {
    "GRR": oracles.TestGRR,
    "SUE": oracles.TestSUE,
    "OUE": oracles.TestOUE,
    "SubsetSelection": oracles.TestSubsetSelection,
    "ProjectiveGeometry": oracles.TestProjectiveGeometry,
    "HRR": oracles.TestHRR1,
    "OLH": oracles.TestOLH,
    "Tabular": oracles.TestTabularKRR,
}


def level_twin(level):
    own: dict[type, Callable[[Any], Twin]] = {HaarLevel: haar_twin, Blocks: blocks_twin}
    kind = type(level)
    return own[kind](level) if kind in own else TWINS[kind.__name__]().twin(level)


class RangeContract(OracleContract):
    """What is true of estimates of one report does not hold here, where one report is of one level:
    see below for estimates.
    """

    domains: tuple[int, ...] = (2, 3, 5)
    epsilons: tuple[float, ...] = (0.1, 1, LN3, 3)
    big_domains = (20, 1000)
    symmetric = False
    test_estimates_are_unbiased: Any = None
    test_estimate_is_the_mean_of_the_estimates_of_its_reports: Any = None
    test_variance_is_the_enumerated_one: Any = None
    test_variances_of_sums_are_unbiased: Any = None
    test_variances_are_unbiased: Any = None
    test_intervals_of_every_report: Any = None
    test_intervals_are_score_intervals: Any = None
    test_chosen_items_are_entries_of_the_full_estimate: Any = None
    test_wrong_items: Any = None

    def twin(self, oracle):
        reports, table, weights = [], [], oracle.parameters["level weights"]
        for k, (level, weight) in enumerate(zip(oracle.parts, weights, strict=True)):
            part = level_twin(level)
            size = part.reports.dtype.itemsize
            rows = np.zeros(len(part.reports), dtype=oracle.report_dtype)
            rows["level"] = k
            rows["body"][:, :size] = (
                np.ascontiguousarray(part.reports).view(np.uint8).reshape(len(rows), size)
            )
            reports.append(rows)
            nodes = oracle._nodes(k, np.arange(oracle.domain))
            table += [
                [Fraction(int(weight), WORD) * row[node] for node in nodes] for row in part.table
            ]
        return Twin(np.concatenate(reports), table)

    def test_nobody(self, big):
        oracle = self.make(*big)
        reports = oracle.privatize([], np.random.default_rng(0))
        assert reports.shape == (0,)
        estimate = oracle.estimate(oracle.aggregate(reports))
        assert estimate.n == 0
        assert estimate.frequencies.shape == (oracle.domain,)
        assert np.isnan(estimate.frequencies).all()
        assert (estimate.variances == math.inf).all()
        last = oracle.domain - 1
        assert math.isnan(estimate.range(0, last))
        assert estimate.variance(0, last) == math.inf
        assert estimate.interval([0, last], last) == pytest.approx(
            np.array([[-math.inf] * 2, [math.inf] * 2])
        )
        assert estimate.quantile_interval(0.5) == (0, last)
        assert "nan" in estimate.table()

    def test_somebody(self, big):
        """One level has one report, the others none: infinite variances, finite values, no
        warnings.
        """
        oracle = self.make(*big)
        for seed in range(5):
            estimate = oracle.estimate(
                oracle.aggregate(oracle.privatize(big[0] - 1, np.random.default_rng(seed)))
            )
            assert np.isfinite(estimate.frequencies).all()
            assert (estimate.variances >= 0).all()
            assert estimate.range(0, big[0] - 1) == pytest.approx(1)
            estimate.interval(0, np.arange(big[0]))
            estimate.quantile_interval([0, 0.5, 1])

    def test_items_must_be_none(self):
        oracle = self.make(3, 1.0)
        aggregate = oracle.aggregate(oracle.privatize([0, 1, 2]))
        with pytest.raises(ValueError, match="items"):
            oracle.estimate(aggregate, items=[0])

    def test_messages(self, big):
        oracle = self.make(*big)
        reports = oracle.privatize(self.values(big[0], 200), np.random.default_rng(1))
        message = oracle.reports_to_bytes(reports)
        assert oracle.reports_from_bytes(message).tobytes() == reports.tobytes()
        aggregate = oracle.aggregate(reports)
        assert oracle.aggregate_from_bytes(aggregate.to_bytes()) == aggregate
        both = oracle.aggregate(reports[:77]) + oracle.aggregate(reports[77:])
        assert both == aggregate
        tally: Counter[str] = Counter()
        assert len(oracle.reports_from_bytes(message[:-1], tally)) == 199
        assert tally == {"truncated": 1}

    def test_changed_reports_are_refused(self):
        oracle = self.make(5, 1.0)
        good = oracle.privatize(self.values(5, 300), np.random.default_rng(1))
        size = good.dtype["body"].itemsize
        for level in (len(oracle.parts), 255):
            bad = good.copy()
            bad["level"][7] = level
            self.check_refused(oracle, bad, good)
        for k, part in enumerate(oracle.parts):
            mine = np.flatnonzero(good["level"] == k)
            for place in range(part.report_dtype.itemsize, size):
                bad = good.copy()
                bad["body"][mine[0], place] = 1
                self.check_refused(oracle, bad, good, mine[0])

    def check_refused(self, oracle, bad, good, position=7):
        with pytest.raises(InvalidReport, match=rf"reports\[{position}\]"):
            oracle.aggregate(bad)
        tally: Counter[str] = Counter()
        assert oracle.aggregate(bad, tally) == oracle.aggregate(np.delete(good, position))
        assert tally == {"impossible": 1}

    def test_impossible_aggregates_are_refused(self):
        oracle = self.make(5, 1.0)
        aggregate = oracle.aggregate(
            oracle.privatize(self.values(5, 300), np.random.default_rng(1))
        )
        for change in ({0: 1}, {0: -10_000, 1: 10_000}, {len(oracle.parts): 10_000}):
            counts = aggregate.counts.copy()
            for place, amount in change.items():
                counts[min(place, len(counts) - 1)] += amount
            with pytest.raises(IncompatibleAggregate):
                oracle.estimate(type(aggregate)(aggregate.parameters, aggregate.n, counts))


class TestTreeOUE(RangeContract):
    def make(self, domain, epsilon):
        return HierarchicalHistogram(domain, epsilon, 2, "OUE")


class TestTreeOfAllKinds(RangeContract):
    """Of several levels, each with its own oracle, and not as likely as others."""

    def make(self, domain, epsilon):
        tree = (
            HierarchicalHistogram(domain, epsilon, 3).tree
            if type(domain) is int and 1 <= domain < 1 << 33
            else None
        )
        height = tree.height if tree else 1
        names = ("GRR", "SubsetSelection", "OLH", "HRR", "OUE", "GRR", "HRR", "OUE")[:height]
        chances = [Fraction(k + 1, height * (height + 1) // 2) for k in range(height)]
        return HierarchicalHistogram(domain, epsilon, 3, names, chances)


class TestInconsistent(RangeContract):
    """By decomposition: sums of leaves are not ranges, and the whole range is not 1 when there is
    padding.
    """

    test_a_million_users: Any = None

    def make(self, domain, epsilon):
        return DecomposedHistogram(domain, epsilon, 2, "GRR")

    def test_somebody(self, big):
        oracle = self.make(*big)
        estimate = oracle.estimate(
            oracle.aggregate(oracle.privatize(big[0] - 1, np.random.default_rng(0)))
        )
        assert np.isfinite(estimate.frequencies).all()
        assert (estimate.variance(0, np.arange(big[0])) >= 0).all()


class TestHaarHRR(RangeContract):
    make = staticmethod(HaarHRR)


# -------------------------------------------------------------------------- exact, by enumeration


def exact_level(level, protocol):
    """Mean and covariance of what one user of the level adds to its estimates, by the twin; items
    are uniform over the domain.
    """
    twin = level_twin(level)
    P = np.array([[float(p) for p in row] for row in twin.table])
    E = np.array(
        [
            level.estimate(level.aggregate(twin.reports[r : r + 1])).frequencies
            for r in range(len(P))
        ]
    )
    return P, E


EXACT = [
    *[
        HierarchicalHistogram(8, epsilon, 2, name)
        for name in ("GRR", "SUE", "OUE", "SubsetSelection", "HRR")
        for epsilon in (0.5, 2.0)
    ],
    HierarchicalHistogram(8, 1.0, (2, 4), ("GRR", "HRR")),
    HierarchicalHistogram(6, 1.0, (3, 2), ("SubsetSelection", "OUE"), ("1/3", "2/3")),
    HierarchicalHistogram(4, 1.0, 4, "OLH"),
    Flat(5, 1.0, oracle="HRR"),
    Flat(6, 1.0, oracle="OUE"),
    HaarHRR(2, 1.0),
    HaarHRR(8, 0.5),
    HaarHRR(8, 2.0, ("1/2", "1/3", "1/6")),
]


@pytest.mark.parametrize(
    "protocol",
    EXACT,
    ids=lambda p: f"{type(p).__name__}-{getattr(p, 'oracle', '')}-{p.domain}-{p.epsilon}",
)
def test_variances_given_the_levels_are_exact(protocol) -> None:
    """Estimates are linear in those of the levels: unbiased, with the covariances predicted.

    The prediction is for the population that is estimated, here with a heavy item.
    """
    d, h = protocol.domain, protocol.tree.height
    held = np.full(d, 500) + 5000 * (np.arange(d) == 1)
    aggregate = protocol.simulate(held, np.random.default_rng(1))
    users, n = aggregate.counts[:h].astype(float), int(held.sum())
    estimate = protocol.estimate(aggregate)
    f = norm_sub(estimate.frequencies)
    if isinstance(protocol, HaarHRR):

        def leaves(estimates):
            solution = np.array([1.0])
            for e in estimates:
                solution = np.repeat(solution / 2, 2) + e
            return solution

    else:
        tau = [
            1 / (level.difference_variance(1) / 2 + 1 / level.domain) for level in protocol.parts
        ]

        def leaves(estimates):
            return consistent(protocol.tree, estimates, users * np.array(tau))

    zeros = [np.zeros(level.domain) for level in protocol.parts]
    origin = leaves(zeros)
    total, covariance = np.zeros((d, d)), np.zeros((d, d))
    for k, level in enumerate(protocol.parts):
        linear = np.array(
            [leaves([*zeros[:k], unit, *zeros[k + 1 :]]) - origin for unit in np.eye(level.domain)]
        )
        P, E = exact_level(level, protocol)
        P = P[:, np.arange(d) // protocol.tree.widths[k]]
        X = E @ linear
        mean, _ = moments(P, X)
        total += mean
        drawn = P @ f
        covariance += ((X.T * drawn) @ X - np.outer(drawn @ X, drawn @ X)) / users[k]
    close(origin + total, np.eye(d), 1)  # unbiased, for every item
    first, last = all_ranges(d)
    covariance -= (np.diag(f) - np.outer(f, f)) / n
    weights = indicators(first, last, d)
    expected = np.maximum(((weights @ covariance) * weights).sum(axis=1), 0)
    scale = expected.max()
    np.testing.assert_allclose(
        estimate.variance(first, last), expected, rtol=1e-6, atol=1e-12 * scale
    )
    random = np.random.default_rng(0).normal(size=(4, d))
    expected = ((random @ covariance) * random).sum(axis=1)
    np.testing.assert_allclose(estimate.linear(random).variance, expected, rtol=1e-6)
    np.testing.assert_allclose(
        estimate.variances, np.diag(covariance), rtol=1e-6, atol=1e-12 * scale
    )


# -------------------------------------------------------------------------------------- simulated

SIMULATED = [
    (HierarchicalHistogram(16, 1.0, 4, "OUE"), 3500),
    (
        HierarchicalHistogram(16, 1.0, (2, 2, 4), ("GRR", "HRR", "OUE"), ("1/5", "3/10", "1/2")),
        3500,
    ),
    (HierarchicalHistogram(16, 2.0, 4, "OLH"), 3000),
    (HierarchicalHistogram(16, 1.0, 4, "SubsetSelection"), 3000),
    (HierarchicalHistogram(13, 1.0, 4, "OUE"), 3500),
    (DecomposedHistogram(16, 1.0, 4, "OUE"), 3500),
    (HaarHRR(16, 1.0), 3500),
    (HaarHRR(11, 1.0), 3500),
    (Flat(16, 1.0), 5000),
]
simulated = pytest.mark.parametrize(
    ("protocol", "repeats"),
    SIMULATED,
    ids=[f"{type(p).__name__}-{getattr(p, 'oracle', '')}-{p.domain}" for p, _ in SIMULATED],
)


def name_of(protocol):
    return f"{type(protocol).__name__}-{protocol.domain}"


@pytest.mark.slow
@simulated
def test_predictions_against_simulation(protocol, repeats) -> None:
    """Standard errors of averages over ranges are about 1%, and asserted to be below 1.2%.

    Average variances within 3.5%; variances of single ranges, unbiasedness and coverage by what
    their standard errors allow.
    """
    d, n = protocol.domain, 40 * protocol.domain
    rng = np.random.default_rng(20_250_101)
    first, last = all_ranges(d)
    errors, covered = np.zeros((repeats, len(first))), 0
    truth = (last - first + 1) / d
    for k in range(repeats):
        estimate = protocol.estimate(protocol.simulate(np.full(d, 40), rng))
        errors[k] = estimate.range(first, last) - truth
        if k < 400:
            low, high = estimate.interval(first, last)
            inside = (low <= truth) & (truth <= high)
            covered += inside[last - first < d - 1].mean() / 400
    for workload in ("ranges", "all ranges"):
        squares = (errors[:, of_workload(workload, first, last)] ** 2).mean(axis=1)
        found, error = squares.mean(), squares.std(ddof=1) / math.sqrt(repeats)
        assert error < 0.012 * found, (workload, error / found)
        # The pairs of OLH are not all alike, and neighbours have less error than the mean pair: 5%
        # here.
        rel = 0.08 if getattr(protocol, "oracle", "") == "OLH" else 0.035
        assert protocol.average_rmse(n, workload) ** 2 == pytest.approx(found, rel=rel), workload
    spread = errors.std(axis=0)
    assert (np.abs(errors.mean(axis=0)) <= 5.5 * spread / math.sqrt(repeats) + 1e-12).all()
    predicted = (
        protocol.estimate(protocol.simulate(np.full(d, 1 << 14), rng)).variance(first, last)
        * (d << 14)
        / n
    )
    ratio = np.divide(spread**2, predicted, out=np.ones(len(first)), where=predicted > 1e-15)
    assert np.abs(ratio - 1).max() < 5.5 * math.sqrt(2 / repeats) + (0.25 if rel > 0.05 else rel)
    assert np.abs(ratio.mean() - 1) < rel
    assert 0.94 < covered < 0.96
    if not isinstance(protocol, DecomposedHistogram):
        whole = last - first == d - 1
        assert np.abs(errors[:, whole]).max() < 1e-12


@pytest.mark.parametrize(
    "protocol",
    [
        HierarchicalHistogram(6, 1.0, (3, 2), ("GRR", "HRR")),
        HaarHRR(7, 1.0),
        HierarchicalHistogram(5, 1.0, 2, "OLH"),
        Flat(5, 1.0),
    ],
    ids=name_of,
)
def test_privatize_and_simulate_agree(protocol) -> None:
    """Means and variances of all counts, over populations that are not even."""
    held = np.array([20, 0, 5, 9, 1, 3, 12])[: protocol.domain]
    values, rng, runs = np.repeat(np.arange(protocol.domain), held), np.random.default_rng(5), 1500
    one = np.array([protocol.simulate(held, rng).counts for _ in range(runs)], dtype=float)
    # All runs' reports at once, then a run at a time.
    reports = protocol.privatize(np.tile(values, runs), rng).reshape(runs, -1)
    two = np.array(
        [protocol.aggregate(np.ascontiguousarray(row)).counts for row in reports[:1500]],
        dtype=float,
    )
    scale = np.sqrt(one.var(axis=0) / runs + two.var(axis=0) / len(two)) + 1e-12
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5 * scale).all()
    random = one.var(axis=0) > 1e-9
    assert (two.var(axis=0)[~random] < 1e-9).all()
    assert np.abs(np.log(one.var(axis=0)[random] / two.var(axis=0)[random])).max() < 0.35


def test_the_users_are_fixed() -> None:
    """Where nearly all the error is in the sampling of users: one level of everybody has none of
    it.
    """
    d, n, repeats = 4, 400, 4000
    rng, (first, last) = np.random.default_rng(3), all_ranges(4)
    f = (last - first + 1) / d
    for protocol in (HierarchicalHistogram(d, 4.0, 2, "OUE"), Flat(d, 4.0)):
        found = np.array(
            [
                protocol.estimate(protocol.simulate(np.full(d, n // d), rng)).range(first, last) - f
                for _ in range(repeats)
            ]
        )
        assert protocol.average_rmse(n, "all ranges") ** 2 == pytest.approx(
            (found**2).mean(), rel=0.06
        )
        assert (f * (1 - f)).mean() / n > 0.15 * (found**2).mean()  # would be seen


# ------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize("domain", [1, 2, 3, 5, 7, 16, 21, 25, 36, 44, 48, 100])
def test_the_whole_range_is_one_and_certain(domain: int) -> None:
    rng = np.random.default_rng(domain)
    for protocol in (
        HaarHRR(domain, 1.1),
        HierarchicalHistogram(domain, 1.1, 4),
        HierarchicalHistogram(domain, 0.3, 3, "HRR"),
        HierarchicalHistogram(domain, 1.1, 2, "GRR"),
        Flat(domain, 1.0),
    ):
        for held in (50, 1000):
            estimate = protocol.estimate(protocol.simulate(np.full(domain, held), rng))
            assert estimate.range(0, domain - 1) == pytest.approx(1, abs=1e-12)
            scale = estimate.variances.max() + 1e-300
            assert 0 <= estimate.variance(0, domain - 1) <= 1e-12 * scale + 1e-15
            low, high = estimate.interval(0, domain - 1)
            assert (low, high) == pytest.approx((1, 1), abs=1e-5)
            estimate.quantile_interval([0.0, 0.5, 1.0])
            assert estimate.linear(np.ones(domain)).variance <= 1e-12 * scale + 1e-15


@pytest.mark.parametrize("domain", [1, 2, 3, 5])
def test_tiny_domains(domain: int) -> None:
    rng = np.random.default_rng(0)
    for protocol in (
        HaarHRR(domain, 1.0),
        HierarchicalHistogram(domain, 1.0),
        HierarchicalHistogram(domain, 1.0, 2),
        Flat(domain, 1.0),
    ):
        reports = protocol.privatize(np.arange(4000) % domain, rng)
        estimate = protocol.estimate(protocol.aggregate(reports))
        first, last = all_ranges(domain)
        score = (estimate.range(first, last) - (last - first + 1) / domain) / np.sqrt(
            estimate.variance(first, last) + 1e-18
        )
        assert np.abs(score).max() < 5
        for workload in ("ranges", "all ranges", "prefixes"):
            assert math.isfinite(protocol.average_rmse(4000, workload))
        assert domain > 1 or protocol.average_rmse(4000, "ranges") == 0


def test_missing_levels_give_infinite_variances_where_they_are_needed() -> None:
    protocol = HierarchicalHistogram(16, 1.0, 4, "OUE")
    reports = protocol.privatize(np.arange(1600) % 16, np.random.default_rng(0))
    top = protocol.estimate(protocol.aggregate(reports[reports["level"] == 0]))
    assert np.isfinite(top.variance([0, 4, 8], [3, 11, 15])).all()
    assert np.isinf(top.variance([0, 1, 8], [2, 11, 14])).all()
    assert np.ptp(top.frequencies.reshape(4, 4), axis=1).max() < 1e-12  # nothing tells them apart
    assert top.interval(0, 2) == (-math.inf, math.inf)
    leaves = protocol.estimate(protocol.aggregate(reports[reports["level"] == 1]))
    assert np.isfinite(leaves.variance([0, 1, 8], [2, 11, 14])).all()
    haar = HaarHRR(8, 1.0)
    reports = haar.privatize(np.arange(800) % 8, np.random.default_rng(0))
    estimate = haar.estimate(haar.aggregate(reports[reports["level"] != 1]))
    assert np.isfinite(estimate.variance(0, 3))
    assert np.isinf(estimate.variance(0, 1))


@pytest.mark.slow
def test_finite_variances_are_of_unbiased_estimates_when_a_level_is_missing() -> None:
    """D = 3 of 4 leaves, nobody on the leaves' level: the answer to [0, 1] is the one node's, whose
    variance is finite.
    """
    protocol, rng = HierarchicalHistogram(3, 1.0, 2, "OUE"), np.random.default_rng(1)
    values, errors, variance = np.full(20, 2), [], 0.0
    for _ in range(3000):
        reports = protocol.privatize(values, rng)
        top = reports[reports["level"] == 0][:6]
        estimate = protocol.estimate(protocol.aggregate(top))
        variance = estimate.variance(0, 1)
        errors.append(estimate.range(0, 1))
    assert variance < math.inf
    assert abs(np.mean(errors)) < 5 * np.std(errors) / math.sqrt(3000)


@pytest.mark.parametrize(
    "chances",
    [
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
        (0, Fraction(1, 2), Fraction(1, 2)),
        (Fraction(1, 2), Fraction(1, 2), 0),
    ],
)
def test_levels_of_probability_zero(chances) -> None:
    for protocol in (
        HierarchicalHistogram(8, 1.0, 2, "OUE", chances),
        HaarHRR(8, 1.0, chances),
    ):
        rng = np.random.default_rng(0)
        reports = protocol.privatize(np.arange(800) % 8, rng)
        assert {k for k in range(3) if chances[k]} == set(reports["level"].tolist())
        for aggregate in (protocol.aggregate(reports), protocol.simulate(np.full(8, 100), rng)):
            assert [bool(c) for c in aggregate.counts[:3]] == [bool(c) for c in chances]
            protocol.estimate(aggregate).interval(0, np.arange(8))


def test_level_weights() -> None:
    assert weights_of(2, None, "level") == (WORD // 2, WORD // 2)
    assert sum(weights_of(7, None, "level")) == WORD
    assert weights_of(3, ("0.1", "1/5", Fraction(7, 10)), "level")[2] in (
        WORD * 7 // 10,
        WORD * 7 // 10 + 1,
    )
    wrong = [
        (),
        (1,),
        ("1/2",),
        ("1/2", "1/3"),
        ("3/2", "-1/2"),
        (0.1, 0.9, 0.0),
        ("a", "b"),
        (0.1, 0.9),
        (math.nan, 1),
    ]
    for chances in wrong:
        for make in (
            lambda c=chances: HierarchicalHistogram(4, 1.0, 2, "OUE", c),
            lambda c=chances: HaarHRR(4, 1.0, c),
        ):
            with pytest.raises((ValueError, TypeError)):
                make()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "oue",
        "JLOracle",
        "Tabular",
        None,
        5,
        ("OUE",),
        ("OUE", "NOPE"),
        ("OUE",) * 3,
        (),
        [["OUE"], "OUE"],
    ],
)
def test_unknown_oracles(name) -> None:
    with pytest.raises((ValueError, TypeError)):
        HierarchicalHistogram(4, 1.0, 2, name)


def test_numpy_integers_are_integers() -> None:
    for kind in (HaarHRR, HierarchicalHistogram, Flat):
        assert kind(np.int64(16), 1.0).parameters == kind(16, 1.0).parameters
    assert HierarchicalHistogram(16, 1.0, np.int64(4)).tree.branching == (4, 4)


def test_lists_are_as_good_as_tuples() -> None:
    lists = HierarchicalHistogram(8, 1.0, [2, 4], ["OUE", "HRR"], ["1/2", "1/2"])
    tuples = HierarchicalHistogram(8, 1.0, (2, 4), ("OUE", "HRR"), ("1/2", "1/2"))
    assert lists == tuples
    assert hash(lists) == hash(tuples)


def test_ratio_of_enumerated_levels() -> None:
    """The audit's worst level: here they differ, as weights are rounded for each."""
    protocol = HierarchicalHistogram(4, 1.3, 2, ("GRR", "SubsetSelection"))
    ratios = [
        ratio_of(level_twin(level).table, [(a, b) for a in range(level.domain) for b in range(a)])
        for level in protocol.parts
    ]
    assert protocol.audit().ratio == max(ratios)
    assert len(set(ratios)) == 2


def test_reports_name_their_level_and_leave_the_rest_empty() -> None:
    protocol = HierarchicalHistogram(100, 1.0, 10, ("GRR", "OUE"))
    reports = protocol.privatize(np.arange(100), np.random.default_rng(0))
    flat = structured_to_unstructured(reports)
    assert flat.shape == (100, 14)
    assert not reports["body"][reports["level"] == 0][:, 1:].any()
    assert protocol.report_bits == 1 + 100


@pytest.mark.parametrize(
    "protocol",
    [HaarHRR(8, 1.0), CircularHistogram(8, 1.0), HierarchicalHistogram(8, 1.0)],
    ids=repr,
)
def test_the_variance_of_sums_is_known_beforehand(protocol):
    """The inherited verb of oracles: single items have the variance that the mean over items has
    for even populations.
    """
    even = protocol.linear_variance(100, np.eye(8), np.full(8, 1 / 8))
    assert even.shape == (8,)
    assert even.mean() == pytest.approx(protocol.variance(100), rel=0.05)


@pytest.mark.parametrize("held", [None, 2, 5, 11])
@pytest.mark.parametrize(
    "protocol",
    [
        HierarchicalHistogram(16, 1.0, 4, "OUE"),
        HierarchicalHistogram(13, 1.0, 3, "GRR"),
        HaarHRR(11, 1.0),
        CircularHistogram(16, 1.0),
        CircularHistogram(13, 1.0),
    ],
    ids=repr,
)
def test_difference_variance_is_the_mean_over_pairs(protocol, held) -> None:
    d, users = held or protocol.domain, protocol._expected_users(100)
    pairs = [
        np.eye(protocol.domain)[x] - np.eye(protocol.domain)[z] for x in range(d) for z in range(x)
    ]
    expected = protocol._own_linear_variance(np.array(pairs), users).mean()
    assert protocol.difference_variance(100, held) == pytest.approx(expected, rel=1e-9)


def test_difference_variance_of_a_large_domain_takes_little_memory() -> None:
    """A matrix of 65536 x 65536 weights takes 32 GiB."""
    protocol = HaarHRR(1 << 16, 1.0)
    tracemalloc.start()
    found = protocol.difference_variance(1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26
    # Of two items far apart: half of it is the variance of either.
    assert found == pytest.approx(2 * protocol.variance(1000), rel=1e-3)
    assert HaarHRR(8, 1.0, (0, "1/2", "1/2")).difference_variance(1000) == math.inf
