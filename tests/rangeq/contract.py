"""The contract of oracles, for range protocols; twins of their levels, by the definition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from frequency import Between, IncompatibleAggregate, InvalidReport
from rangeq.local.circular import Blocks
from rangeq.local.haar import HaarLevel
from tests.contracts.oracle import LN3, OracleContract, Twin, close, one_by_one, reports_of
from tests.frequency.oracles import twins as oracles
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
    """What is true of estimates of one report holds here of one report on each level; of variances
    see the tests of `rangeq.core.protocol`.
    """

    domains: tuple[int, ...] = (2, 3, 5)
    epsilons: tuple[float, ...] = (0.1, 1, LN3, 3)
    big_domains = (20, 1000)
    symmetric = False
    test_variance_is_the_enumerated_one: Any = None
    test_variances_of_sums_are_unbiased: Any = None
    test_variances_are_unbiased: Any = None
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
            nodes = oracle.channel.part_items(k, np.arange(oracle.domain))
            table += [
                [Fraction(int(weight), WORD) * row[node] for node in nodes] for row in part.table
            ]
        return Twin(np.concatenate(reports), table)

    def levels(self, case):
        """The protocol, and of each level that users are asked about the reports and, by value,
        their probabilities there.
        """
        oracle, reports, _, P, _ = self.enumerated(case)
        chance = P[:, 0]
        found = []
        for level in range(len(oracle.parts)):
            mine = reports["level"] == level
            if chance[mine].any():
                found.append((reports[mine], P[mine] / P[mine].sum(axis=0)))
        return oracle, found

    def test_estimates_are_unbiased(self, case):
        """Given one report on each level: the estimate is a sum of what each of these adds."""
        oracle, levels = self.levels(case)
        first = np.concatenate([reports[:1] for reports, _ in levels])
        rng = np.random.default_rng(7)

        def estimate(places):
            chosen = first.copy()
            for level, place in places.items():
                chosen[level] = levels[level][0][place]
            return oracle.estimate(oracle.aggregate(chosen)).frequencies

        base, added = estimate({}), []
        for level, (reports, _) in enumerate(levels):
            added.append(np.array([estimate({level: r}) for r in range(len(reports))]) - base)
        scale = np.concatenate([base[None], *added])
        mean = base + sum(P.T @ own for (_, P), own in zip(levels, added, strict=True))
        close(mean, np.eye(oracle.domain), scale)
        for _ in range(3):
            places = {k: int(rng.integers(len(reports))) for k, (reports, _) in enumerate(levels)}
            total = base + sum(added[level][place] for level, place in places.items())
            close(estimate(places), total, scale)

    def test_estimate_is_the_mean_of_the_estimates_of_its_reports(self, case):
        """Where as many are on each level: as of a report on each, so of any number on each."""
        oracle, levels = self.levels(case)
        rng = np.random.default_rng(5)
        sets = [
            np.concatenate([reports[rng.integers(len(reports), size=1)] for reports, _ in levels])
            for _ in range(6)
        ]
        each = [oracle.estimate(oracle.aggregate(reports)).frequencies for reports in sets]
        estimate = oracle.estimate(oracle.aggregate(np.concatenate(sets)))
        close(estimate.frequencies, np.mean(each, axis=0), np.abs(each))
        assert estimate.n == 6 * len(levels)

    def test_intervals_of_every_report(self, case):
        """No warnings, no negative variances, and the estimate lies inside: though of one level
        alone nothing may follow.
        """
        oracle, reports, _, _, _ = self.enumerated(case)
        for aggregate in one_by_one(oracle, reports[:: max(1, len(reports) // 100)]):
            estimate = oracle.estimate(aggregate)
            assert (estimate.variances >= 0).all()
            low, high = estimate.interval()
            slack = 1e-9 * (1 + np.abs(estimate.frequencies))
            assert (low <= estimate.frequencies + slack).all()
            assert (estimate.frequencies <= high + slack).all()
            unknown = np.isinf(estimate.variances)
            assert (np.isinf(low) == unknown).all()
            assert (np.isinf(high) == unknown).all()

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
        assert estimate.answer(Between(0, last)).variance == math.inf
        assert estimate.answer(Between([0, last], last)).interval() == pytest.approx(
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
            estimate.answer(Between(0, np.arange(big[0]))).interval()
            estimate.quantile_interval([0, 0.5, 1])

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
        items = self.domains[-1]
        oracle = self.make(items, 1.0)
        good = oracle.privatize(self.values(items, 300), np.random.default_rng(1))
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
        items = self.domains[-1]
        oracle = self.make(items, 1.0)
        aggregate = oracle.aggregate(
            oracle.privatize(self.values(items, 300), np.random.default_rng(1))
        )
        for change in ({0: 1}, {0: -10_000, 1: 10_000}, {len(oracle.parts): 10_000}):
            counts = aggregate.counts.copy()
            for place, amount in change.items():
                counts[min(place, len(counts) - 1)] += amount
            with pytest.raises(IncompatibleAggregate):
                oracle.estimate(type(aggregate)(aggregate.parameters, aggregate.n, counts))


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
