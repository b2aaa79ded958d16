"""Aggregates as files, and which of them go on from others."""

import numpy as np
import pytest

from frequency import HRR, OLH, IncompatibleAggregate
from frequency.storage import continues, load_aggregate, save_aggregate
from tests.contracts.examples import numbers


def test_an_aggregate_is_what_it_was(tmp_path):
    protocol = OLH(50, 1.0)
    aggregate = protocol.aggregate(protocol.privatize(numbers(50)))
    path = tmp_path / "aggregate"
    save_aggregate(path, aggregate)
    assert load_aggregate(path, protocol) == aggregate
    with pytest.raises(IncompatibleAggregate):
        load_aggregate(path, OLH(50, 2.0))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IncompatibleAggregate):
        load_aggregate(path, protocol)


def test_an_aggregate_that_continues_another():
    protocol = HRR(64, 1.0)
    reports = protocol.privatize(np.arange(3000) % 64, np.random.default_rng(1))
    first, both = protocol.aggregate(reports[:1000]), protocol.aggregate(reports)
    other = protocol.aggregate(protocol.privatize(np.arange(2900) % 7, np.random.default_rng(2)))
    assert continues(protocol, both, first)
    assert continues(protocol, both, both)
    assert not continues(protocol, first, both)
    assert not continues(protocol, both, other)
    foreign = HRR(64, 2.0).aggregate(reports[:10])
    for pair in ((both, foreign), (foreign, both)):
        with pytest.raises(ValueError, match="not an aggregate of this protocol"):
            continues(protocol, *pair)
