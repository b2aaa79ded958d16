"""DecomposedHistogram: ranges by the fewest nodes, sums of items by leaves, with variances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rangeq
from frequency.storage.protocol_file import load_protocol, save_protocol
from rangeq import Between, DecomposedHistogram, HierarchicalHistogram
from rangeq.core.levels import average_nodes, runs
from rangeq.core.tree import WORKLOADS, spread
from tests.rangeq.contract import RangeContract
from tests.rangeq.core.test_node_law import SYMMETRIC
from tests.rangeq.core.trees import ranges_of


def by_nodes(protocol, users, n, f, first, last):
    """The obvious definition: each level's oracle states the variance of its nodes' sum."""
    tree, result = protocol.tree, []
    held = tree.padded(f)
    for a, b in zip(first, last, strict=True):
        total, inside = 0.0, f[a : b + 1].sum()
        for level, oracle in enumerate(protocol.parts):
            left, end, start, right = runs(tree, np.array(a), np.array(b), level)
            w = np.zeros((1, oracle.domain))
            w[0, left:end] = w[0, start:right] = 1
            nodes = tree.sums(held, level)
            if w.any():
                total += (oracle.linear_variance(1, w, nodes) + spread(w, nodes))[0] / users[level]
        result.append(total - inside * (1 - inside) / n if total else 0.0)
    return np.array(result)


CASES = [
    *(DecomposedHistogram(16, epsilon, 2, name) for name in SYMMETRIC for epsilon in (0.3, 6.0)),
    DecomposedHistogram(21, 1.0, 3, ("GRR", "HRR", "OUE"), ("1/5", "3/10", "1/2")),
    DecomposedHistogram(11, 8.0, 11, "OUE"),
    DecomposedHistogram(30, 8.0, (2, 5, 3), "OUE"),
]


@pytest.mark.parametrize("protocol", CASES, ids=repr)
def test_errors_of_ranges_are_those_of_their_nodes(protocol) -> None:
    d, n = protocol.domain, 10_000
    users = protocol.channel.expected_users(n)
    heap = np.random.default_rng(d).dirichlet(np.full(d, 0.2))
    for f, given in ((np.full(d, 1 / d), None), (heap, heap)):
        for workload in WORKLOADS:
            first, last = ranges_of(d, workload)
            expected = by_nodes(protocol, users, n, f, first, last)
            found = protocol.average_rmse(n, workload, given)
            assert found == pytest.approx(math.sqrt(expected.mean()), rel=1e-6), workload
    counts = (heap * 2000).astype(int)
    counts[0] += 1
    aggregate = protocol.simulate(counts, np.random.default_rng(0))
    estimate = protocol.estimate(aggregate)
    users, n = protocol.channel.part_users(aggregate), estimate.n
    first, last = ranges_of(d, "all ranges")
    found = protocol.range_variances(estimate, first, last)
    # The levels contradict each other: each tells its own fractions.
    own = by_levels(protocol, estimate, users, first, last)
    assert found == pytest.approx(own, rel=1e-6, abs=1e-12 * own.max())


def by_levels(protocol, estimate, users, first, last):
    result = []
    for a, b in zip(first, last, strict=True):
        total = inside = 0.0
        for level, sums in enumerate(estimate.nodes.nearest):
            left, end, start, right = (
                int(x) for x in runs(protocol.tree, np.array(a), np.array(b), level)
            )
            number = end - left + right - start
            held = sums[end] - sums[left] + sums[right] - sums[start]
            if number:
                w = np.arange(protocol.tree.nodes[level]) < number
                f = np.where(w, held / number, (1 - held) / max(len(w) - number, 1))
                oracle = protocol.parts[level]
                one = oracle.linear_variance(1, w[None].astype(float), f)[0]
                total += (one + held * (1 - held)) / users[level]
                inside += held
        result.append(max(total - inside * (1 - inside) / estimate.n, 0.0) if total else 0.0)
    return np.array(result)


@pytest.mark.slow
def test_sums_of_items_are_sums_of_leaves() -> None:
    """The variance that a consistent tree has for the same sum is 20 times less: it was stated."""
    protocol, n = DecomposedHistogram(64, 1.0, 4, "OUE"), 100_000
    asked = ((np.arange(64) >= 3) & (np.arange(64) <= 36)).astype(float)[None]
    even, rng = np.full(64, 1 / 64), np.random.default_rng(0)
    predicted = protocol.linear_variance(n, asked, even)[0]
    other = HierarchicalHistogram(64, 1.0, 4, "OUE").linear_variance(n, asked, even)[0]
    counts = np.full(64, n // 64)
    counts[:32] += 1
    estimates = [protocol.estimate(protocol.simulate(counts, rng)) for _ in range(1000)]
    measured = np.var([e.frequencies[3:37].sum() for e in estimates], ddof=1)
    # 5 deviations of a variance from 1000 normal draws: alarms falsely once in two millions.
    slack = 5.1 * math.sqrt(2 / 999)
    assert abs(measured / predicted - 1) < slack
    assert abs(measured / estimates[0].linear(asked[0]).variance - 1) < slack
    assert measured > 10 * other
    difference = np.var([e.frequencies[3] - e.frequencies[36] for e in estimates], ddof=1)
    pair = np.eye(64)[[3]] - np.eye(64)[[36]]
    assert abs(difference / protocol.linear_variance(n, pair, counts / n)[0] - 1) < slack
    ranges = np.var([e.range(3, 36) for e in estimates], ddof=1)
    assert abs(ranges / estimates[0].answer(Between(3, 36)).variance - 1) < slack + 0.02
    assert ranges < measured / 4


def test_items_have_the_variance_of_their_frequency() -> None:
    protocol, n = DecomposedHistogram(16, 8.0, 4, "OUE", ("1/4", "3/4")), 1000
    f = np.zeros(16)
    f[[2, 9]] = 0.9, 0.1
    known = protocol.linear_variance(n, np.eye(16), f)
    assert known[2] > 50 * known[0]
    counts = (1000 * f).astype(int)
    estimate = protocol.estimate(protocol.simulate(counts, np.random.default_rng(0)))
    item = np.arange(16)
    assert estimate.variances == pytest.approx(estimate.linear(np.eye(16)).variance)
    ranges = protocol.range_variances(estimate, item, item)
    assert estimate.variances[[2, 9]] == pytest.approx(ranges[[2, 9]], rel=0.1)
    assert (ranges >= protocol.parts[-1].variance(1000, 0.0)).all()  # also where nobody is seen
    assert estimate.frequencies.tolist() == pytest.approx(estimate.range(item, item).tolist())


def test_nobody_on_a_level() -> None:
    protocol = DecomposedHistogram(16, 1.0, 4, "OUE", (1, 0))
    assert protocol.average_rmse(10) == math.inf
    estimate = protocol.estimate(protocol.simulate(np.full(16, 100), np.random.default_rng(0)))
    assert (estimate.variances == math.inf).all()
    assert estimate.linear(np.ones(16)).variance == math.inf
    assert np.isfinite(estimate.answer(Between([0, 4, 0], [3, 11, 15])).variance).all()
    assert np.isinf(estimate.answer(Between([0, 3], [4, 3])).variance).all()


def test_the_whole_range_is_known() -> None:
    protocol = DecomposedHistogram(16, 1.0, 4)
    estimate = protocol.estimate(protocol.simulate(np.full(16, 100), np.random.default_rng(0)))
    assert (estimate.range(0, 15), estimate.answer(Between(0, 15)).variance) == (1.0, 0.0)
    assert estimate.linear(np.ones(16)).variance > 0
    assert estimate.frequencies.sum() != pytest.approx(1.0)


def test_populations_are_checked() -> None:
    protocol = DecomposedHistogram(4, 1.0, 2)
    for wrong in ([0.5, 0.5], [1, 1, 1, 1], [-1, 1, 1, 0]):
        with pytest.raises(ValueError, match="frequencies"):
            protocol.average_rmse(10, "ranges", wrong)
    with pytest.raises(ValueError, match="workload"):
        protocol.average_rmse(10, "boxes")


def test_files(tmp_path) -> None:
    protocol = DecomposedHistogram(12, 1.0, (3, 4), ("OUE", "HRR"), ("1/3", "2/3"))
    save_protocol(tmp_path / "p.json", protocol)
    assert load_protocol(tmp_path / "p.json") == protocol
    assert "DecomposedHistogram" in rangeq.__all__
    assert average_nodes(protocol.tree, "ranges").shape == (2,)


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
        assert (estimate.answer(Between(0, np.arange(big[0]))).variance >= 0).all()
