"""Variances of ranges by the nodes that they cut, against those of their weights of all nodes."""

from __future__ import annotations

import numpy as np
import pytest

from rangeq import Between, HaarHRR, HierarchicalHistogram
from tests.rangeq.core.trees import all_ranges, indicators

SHAPES = [
    (64, 4, None),
    (50, 3, None),
    (37, (5, 2, 4), None),
    (64, 2, (0, "1/6", "1/6", "1/6", "1/4", "1/4")),
    (64, 4, ("1/2", 0, "1/2")),
    (64, 4, ("1/2", "1/2", 0)),
    (5, 2, None),
    (7, 7, None),
    (2, 2, None),
    (1, 2, None),
]
ORACLES = ("GRR", "SUE", "OUE", "SubsetSelection", "HRR")


def heaped(domain, seed):
    held = np.random.default_rng(seed).integers(0, 20, domain)
    held[domain // 2] = 3000
    return held


@pytest.mark.parametrize("epsilon", [0.3, 8.0])
@pytest.mark.parametrize(("domain", "branching", "chances"), SHAPES)
def test_ranges_have_the_variance_of_their_sums(domain, branching, chances, epsilon) -> None:
    protocols = [HierarchicalHistogram(domain, epsilon, branching, n, chances) for n in ORACLES]
    protocols.append(HaarHRR(domain, epsilon))
    first, last = all_ranges(domain)
    weights = indicators(first, last, domain)
    for protocol in protocols:
        rng = np.random.default_rng(domain)
        estimate = protocol.estimate(protocol.simulate(heaped(domain, 1), rng))
        slow, fast = (
            np.asarray(estimate.linear(weights).variance),
            estimate.answer(Between(first, last)).variance,
        )
        assert (np.isinf(slow) == np.isinf(fast)).all()
        known = np.isfinite(slow)
        scale = slow[known].max(initial=0.0)
        assert fast[known] == pytest.approx(slow[known], rel=1e-8, abs=1e-10 * scale + 1e-15)
        one = estimate.answer(Between(int(first[0]), int(last[0]))).variance
        assert one == pytest.approx(fast[0], abs=1e-10 * scale + 1e-15)


def test_an_even_population_has_other_variances() -> None:
    """What was stated before, for heaped data at a large epsilon: 20 times the variance of some."""
    protocol, rng = HierarchicalHistogram(64, 8.0, 4, "OUE"), np.random.default_rng(0)
    estimate = protocol.estimate(protocol.simulate(heaped(64, 1), rng))
    first, last = all_ranges(64)
    users = protocol.channel.part_users(estimate.aggregate)
    even = protocol._own_range_variance(first, last, users)
    inner = last - first < 63
    ratio = estimate.answer(Between(first, last)).variance[inner] / even[inner]
    assert ratio.min() < 0.1
    assert ratio.max() > 1.2
