"""HaarHRR: the contract of range protocols, and differences over a large domain."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from rangeq import HaarHRR
from tests.rangeq.contract import RangeContract


class TestHaarHRR(RangeContract):
    make = staticmethod(HaarHRR)


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
