"""Channels of records: their items are rows, those of more records than can be listed too."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from frequency import InvalidValue
from frequency.core.channel import UNNUMBERED
from frequency.core.protocol import channel_of
from frequency.schema import Domain
from rangeq import Between, PerAttribute
from rangeq.core.protocol import RecordChannel
from rangeq.grids import HDG, MSW, HaarHRR2D, WaveGrid
from rangeq.grids.channel import LevelSketch

DOMAIN = Domain({"a": 4, "b": 3, "c": 2})
PROTOCOLS: list[Any] = [
    HDG(DOMAIN, 1.0, granularity=2, line_granularity=3),
    HaarHRR2D(DOMAIN, 1.0),
    MSW(DOMAIN, 1.0),
    WaveGrid(DOMAIN, 1.0),
    PerAttribute.of(DOMAIN, 1.0),
    LevelSketch(DOMAIN.size, 1.0, DOMAIN, ((4, 1), (3, 1), (2, 1)), 4),
]
channels = pytest.mark.parametrize(
    "channel",
    [channel_of(protocol) for protocol in PROTOCOLS],
    ids=lambda channel: type(channel).__name__,
)


@channels
def test_items_are_rows(channel: Any) -> None:
    assert isinstance(channel, RecordChannel)
    every = list(product(*map(range, DOMAIN.sizes)))
    assert channel._every_item().tolist() == [list(row) for row in every]
    assert channel.items_of(every[::-1]).tolist() == [list(row) for row in every[::-1]]
    with pytest.raises(InvalidValue) as refused:
        channel.privatize([[0, 0, 0], [3, 3, 0]])
    assert refused.value.index == (1, 1)
    for places in ([0], [2, 0], [1, 2], [0, 1, 2]):
        shape = [DOMAIN.sizes[place] for place in places]
        expected = [int(np.ravel_multi_index([row[p] for p in places], shape)) for row in every]
        assert channel.combined(channel._every_item(), places).tolist() == expected


def test_rows_need_no_numbers() -> None:
    """1,024^7 records: 2^70 of them."""
    domain = Domain(dict.fromkeys("abcdefg", 1 << 10))
    assert UNNUMBERED > domain.size > 1 << 62
    protocol, records = PerAttribute.of(domain, 8.0), np.full((7000, 7), 1023)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(records, np.random.default_rng(1)))
    )
    for name in domain:  # about 100 users tell the half, and 3 in 10,000 lie
        assert estimate.answer({name: Between(512, 1023)}).value > 0.8
        assert estimate.answer({name: Between(0, 511)}).value < 0.2
    with pytest.raises(ValueError, match="too many items to list"):
        protocol.channel._every_item()


def test_the_most_records_that_there_may_be_are_few_enough() -> None:
    """Of grids; those of wider attributes can have a number that Python does not write as text."""
    largest = Domain.of([1 << 32] * 256)
    assert largest.size < UNNUMBERED < Domain(dict.fromkeys(map(str, range(256)), 1 << 62)).size
    assert len(str(UNNUMBERED)) == 4300
    assert MSW([2] * 256, 1.0).channel.domain == 1 << 256
