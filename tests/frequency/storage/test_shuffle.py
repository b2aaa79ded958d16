"""Reports in random order: all of them, and in whatever order they came."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, HRR, OLH, OUE
from frequency.storage import table as shuffle
from frequency.storage.table import shuffled
from mechdesign.base.numbers import bit_source

FALSE_ALARM = 1e-6


def source(seed):
    return bit_source(np.random.default_rng(seed))


@pytest.mark.parametrize("held", [16, 1 << 18])  # most piles are files, or none is
@pytest.mark.parametrize("protocol", [GRR(5, 1.0), HRR(64, 1.0), OLH(1000, 1.0), OUE(77, 1.0)])
def test_no_report_is_lost_or_changed(protocol, held, monkeypatch):
    monkeypatch.setattr(shuffle, "_HELD", held)
    reports = protocol.privatize(np.arange(3000) % 5, np.random.default_rng(1))
    parts = np.split(reports, [0, 1, 10, 1000, 1000])
    found = np.concatenate(list(shuffled(parts, protocol.report_dtype, source(1))))
    assert found.dtype == protocol.report_dtype
    assert sorted(map(bytes, found)) == sorted(map(bytes, reports))
    assert not np.array_equal(found, reports)


def test_there_may_be_none():
    protocol = GRR(5, 1.0)
    assert list(shuffled([], protocol.report_dtype, source(1))) == []


def test_a_pile_comes_in_every_order_alike(monkeypatch):
    """Of 6000 piles of three."""
    monkeypatch.setattr(shuffle, "_PILES", 1)
    reports = np.array([(0,), (1,), (2,)], dtype=GRR(3, 1.0).report_dtype)
    words, orders = source(1), Counter[tuple[int, ...]]()
    for _ in range(6000):
        (pile,) = shuffled([reports], reports.dtype, words)
        orders[tuple(pile["item"].tolist())] += 1
    assert len(orders) == 6
    assert stats.chisquare([*orders.values()]).pvalue > FALSE_ALARM
    orders[0, 1, 2] += 200  # a planted error
    assert stats.chisquare([*orders.values()]).pvalue < FALSE_ALARM


def test_equal_words_are_drawn_again(monkeypatch):
    """They would leave two reports in the order of their rows."""
    monkeypatch.setattr(shuffle, "_PILES", 1)
    reports = np.array([(0,), (1,), (2,)], dtype=GRR(3, 1.0).report_dtype)
    draws = iter([[0], [7, 7, 1], [1, 3, 1], [3, 2, 1]])
    (pile,) = shuffled([reports], reports.dtype, lambda size: np.array(next(draws), np.uint64))
    assert pile["item"].tolist() == [2, 1, 0]


def evidence(piles):
    """The p-value of independence of a report, of the first or second half, and its pile."""
    counts = [[(pile["item"] == half).sum() for pile in piles] for half in (0, 1)]
    return stats.chi2_contingency(counts).pvalue


def test_the_pile_of_a_report_does_not_depend_on_its_place():
    """Reports 0 and then reports 1, as of a sorted table."""
    dtype = GRR(2, 1.0).report_dtype
    reports = np.repeat(np.array([(0,), (1,)], dtype=dtype), 20_000)
    piles = list(shuffled(np.split(reports, 777 * np.arange(1, 50)), dtype, source(1)))
    sizes = np.array(list(map(len, piles)))
    assert evidence(piles) > FALSE_ALARM
    assert stats.chisquare(sizes).pvalue > FALSE_ALARM
    assert evidence(np.array_split(reports, 128)) < FALSE_ALARM  # as they came
    assert evidence([reports[k::2] for k in range(2)] + [reports[:99]]) < FALSE_ALARM
