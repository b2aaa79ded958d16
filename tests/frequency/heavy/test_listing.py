"""Lists of heavy hitters: in order, with intervals, and of what is above a threshold."""

import math

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, OLH
from frequency.heavy import PrefixExtension
from tests.frequency.heavy.examples import PROTOCOLS


@pytest.mark.parametrize("name", PROTOCOLS)
def test_lists_are_consistent(name):
    """Sorted, distinct, with intervals around estimates, and with everything above a threshold and
    nothing below.
    """
    protocol = PROTOCOLS[name]()
    aggregate = protocol.aggregate(
        protocol.privatize(np.repeat([3, 200], [3000, 1000]), np.random.default_rng(1))
    )
    everything = protocol.find(aggregate, threshold=0.0)
    for options in (
        {"k": 1},
        {"k": 2},
        {"k": 5},
        {"threshold": 0.0},
        {"threshold": 0.3},
        {"k": 2, "threshold": 0.3},
        {},
    ):
        found = protocol.find(aggregate, **options)
        assert (
            len(found)
            == len(found.items)
            == len(found.frequencies)
            == len(found.variances)
            == len(found.interval().low)
        )
        assert len(set(found.items.tolist())) == len(found)
        assert (np.diff(found.frequencies) <= 0).all()
        assert (found.frequencies >= options.get("threshold", -np.inf)).all()
        assert len(found) <= options.get("k", math.inf)
        assert (found.interval().low <= found.frequencies).all()
        assert (found.interval().high >= found.frequencies).all()
        assert (found.variances > 0).all()
        assert found.n == 4000
        assert found.confidence == 0.95
        assert "item" in found.table()
        assert 0 <= found.recall(0.5) <= 1
        if options == {"threshold": 0.3}:
            assert found.items.tolist() == [
                item
                for item, f in zip(everything.items, everything.frequencies, strict=True)
                if f >= 0.3
            ]
    sure = protocol.find(aggregate, threshold=0.0, confidence=0.999)
    assert sure.items.tolist() == everything.items.tolist()
    assert (
        sure.interval().high - sure.interval().low
        > everything.interval().high - everything.interval().low
    ).all()
    assert sure.noise > everything.noise


def test_intervals_by_hand():
    """At level 1 - (1 - confidence) k / considered, and as much wider than normal ones as binomial
    tails reach further.
    """
    protocol = PrefixExtension(8, 2.0)
    found = protocol.find(
        protocol.privatize(np.arange(3000) % 3, np.random.default_rng(1)), k=3, confidence=0.9
    )
    oracle = protocol.channel.parts[0]
    assert isinstance(oracle, GRR | OLH)
    p, q = float(oracle.p), float(oracle.q)

    def reach(alpha: float) -> float:
        return (stats.binom.isf(alpha, 3000, q) / 3000 - q) / (p - q)

    zero = math.sqrt(float(oracle.variance(3000, 0.0)))
    level = 0.1 * 3 / 256 / 2
    half = max(stats.norm.isf(level), reach(level) / zero) * np.sqrt(found.variances)
    np.testing.assert_allclose(found.interval().high - found.frequencies, half)
    np.testing.assert_allclose(found.frequencies - found.interval().low, half)
    assert stats.norm.isf(level) * zero < reach(level) < 1.1 * stats.norm.isf(level) * zero
    assert found.noise == pytest.approx(reach(0.1 / 256))
    assert found.considered == 256
    assert found.recall(0.999) < 1 or vars(found.gates[-1])["cut"] == found.frequencies[-1]


@pytest.mark.slow
def test_any_number_of_items_may_be_asked_for():
    protocol = PrefixExtension(24, 3.0, lengths=(8, 16, 24))
    found = protocol.find(protocol.privatize([77] * 5000, np.random.default_rng(1)), k=10**9)
    assert found.items[0] == 77
    assert len(found) < 1 << 25
