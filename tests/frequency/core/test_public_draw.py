"""A public draw before an oracle's report: two numbers turn the item, and GRR or sets report it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pytest

from frequency import GRR, InvalidReport, SubsetSelection
from frequency.core.aggregate import Aggregate
from frequency.core.public_draw import PublicDraw


@dataclass(frozen=True)
class Turned(PublicDraw):
    """The item moved on by 0, 1 or 2 places, and by 0 or 3, modulo 6."""

    sets: bool = False

    fields: ClassVar[tuple[str, str]] = ("turn", "cell")

    @cached_property
    def base(self) -> Any:
        return (SubsetSelection if self.sets else GRR)(6, self.epsilon)

    @property
    def _settings(self) -> tuple[int, ...]:
        return (3, 2)

    @property
    def _probabilities(self) -> tuple[Any, ...]:
        return np.full(3, 1 / 3), np.full(2, 1 / 2)

    @property
    def _chances(self) -> tuple[tuple[int, Fraction], ...]:
        return ((6, Fraction(1, 6)),)

    def _draw(self, number: Any) -> tuple[Any, ...]:
        return number(3), number(2)

    def _cell(self, items: Any, setting: tuple[Any, ...]) -> Any:
        return (items + setting[0] + 3 * setting[1]) % 6

    def _details(self) -> dict[str, Any]:
        return {"cells": {**self.base.parameters}}

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("turn", "u1", (2,)), ("cell", self.base.report_dtype)])


CHANNELS = [Turned(6, 1.0), Turned(6, 0.6, sets=True)]


def drawn(channel: Turned, n: int = 12_000) -> Any:
    rng = np.random.default_rng(1)
    return channel.privatize(np.full(n, 4), rng)


@pytest.mark.parametrize("channel", CHANNELS, ids=["GRR", "sets"])
def test_counts_are_those_of_the_base_for_each_setting(channel: Turned) -> None:
    reports = drawn(channel)
    counts = channel.aggregate(reports).counts
    assert counts.shape == (3, 2, 6)
    for first in range(3):
        for second in range(2):
            mine = reports[(reports["turn"] == [first, second]).all(axis=1)]
            own = channel.base.aggregate(np.ascontiguousarray(mine["cell"]))
            assert counts[first, second].tolist() == own.counts.ravel().tolist()
            # The cell that the item turns into is the one reported most
            assert counts[first, second].argmax() == (4 + first + 3 * second) % 6


@pytest.mark.parametrize("channel", CHANNELS, ids=["GRR", "sets"])
def test_reports_and_counts_that_nobody_can_have_sent(channel: Turned) -> None:
    reports = drawn(channel, 10)
    reports["turn"][3, 1] = 2
    with pytest.raises(InvalidReport, match=r"reports\[3\]"):
        channel.aggregate(reports)
    good = channel.aggregate(drawn(channel, 100))
    for place, more in (((0, 0, 0), 1), ((0, 0, 0), -(10**6)), ((1, 1, 1), 1 << 61)):
        counts = good.counts.copy()
        counts[place] += more
        with pytest.raises(ValueError, match="no 100 reports"):
            channel.aggregate_from_bytes(Aggregate(good.parameters, good.n, counts).to_bytes())


def test_a_set_of_two_cells_is_one_report() -> None:
    channel = CHANNELS[1]
    assert channel.base.cells == channel.base.size > 1
    good = channel.aggregate(drawn(channel, 100))
    counts = good.counts.copy()
    counts[0, 0, 0], counts[0, 1, 0] = counts[0, 0, 0] + 1, counts[0, 1, 0] - 1  # half a report
    with pytest.raises(ValueError, match="no 100 reports"):
        channel.aggregate_from_bytes(Aggregate(good.parameters, good.n, counts).to_bytes())


def test_settings_have_the_probabilities_told_whatever_the_item() -> None:
    channel, n = CHANNELS[0], 60_000
    for item in (0, 5):
        reports = channel.privatize(np.full(n, item), np.random.default_rng(item))
        cells = Counter(map(tuple, reports["turn"].tolist()))
        assert all(abs(count - n / 6) < 6 * (n / 6) ** 0.5 for count in cells.values())
    assert channel.audit() == channel.base.audit()
    assert channel.report_bits == 2 + 1 + channel.base.report_bits


def test_its_proof_is_that_of_the_base() -> None:
    for channel in CHANNELS:
        assert channel.proof().holds
        assert channel.proof().part == channel.base.proof()
