"""HaarHRR: the contract of range protocols, and differences over a large domain."""

from __future__ import annotations

from rangeq import HaarHRR
from tests.rangeq.contract import RangeContract


class TestHaarHRR(RangeContract):
    make = staticmethod(HaarHRR)
