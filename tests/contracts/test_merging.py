"""Aggregates of every protocol merge in any order, and with those of no other protocol."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

from frequency import GRR, IncompatibleAggregate, InvalidReport
from frequency.core.protocol import channel_of
from tests.contracts.examples import COLLECTED, PROTOCOLS, WITH_VALUES

USERS = 41
KNOWN = [*PROTOCOLS, *(protocol for protocol, _ in COLLECTED)]
"""Two of every class, and more."""


def verbs(protocol):
    """What asks something of an aggregate."""
    return [
        *(getattr(protocol, name) for name in ("estimate", "find") if hasattr(protocol, name)),
        channel_of(protocol).require_own,
        lambda aggregate: protocol.aggregate_from_bytes(aggregate.to_bytes()),
    ]


def check_merging(protocol, values):
    """Any batches, in any order, in any brackets: also through bytes, and with none at all."""
    rng = np.random.default_rng(1)
    reports = protocol.privatize(values[:USERS], rng)
    whole, empty = protocol.aggregate(reports), protocol.aggregate(reports[:0])
    assert whole.n == len(reports)
    assert channel_of(protocol).require_own(whole) is whole
    assert not empty.counts.any()
    for parts in (1, 3):
        ends = np.sort(rng.integers(0, len(reports) + 1, parts))
        batches = np.split(reports[rng.permutation(len(reports))], ends)
        before = [protocol.aggregate(batch) for batch in batches]
        merged = copy.deepcopy(before)
        assert sum(merged) == functools.reduce(lambda a, b: b + a, merged) == whole
        while len(merged) > 1:
            place = int(rng.integers(len(merged) - 1))
            merged[place : place + 2] = [merged[place] + merged[place + 1]]
        assert merged[0] + empty == empty + merged[0] == whole
        sent = [protocol.aggregate_from_bytes(batch.to_bytes()) for batch in before]
        assert sent == before
        assert sum(sent) == whole
    assert whole == protocol.aggregate(reports)  # what is merged stays as it was


def check_refusal(protocol, others):
    """Aggregates of these are neither added nor asked."""
    mine = protocol.aggregate(np.zeros(0, dtype=protocol.report_dtype))
    for other in others:
        theirs = other.aggregate(np.zeros(0, dtype=other.report_dtype))
        assert mine != theirs
        for add in (lambda a=mine, b=theirs: a + b, lambda a=theirs, b=mine: sum([a, b])):
            with pytest.raises(IncompatibleAggregate):
                add()
        for verb in verbs(protocol):
            with pytest.raises((IncompatibleAggregate, TypeError)) as refused:
                verb(theirs)
            # The one verb of a `OneBit` that is not its own
            assert refused.type is IncompatibleAggregate or "use " in str(refused.value)


@WITH_VALUES
def test_batches_merge_in_any_order(protocol, values):
    check_merging(protocol, values)


@WITH_VALUES
def test_aggregates_of_other_protocols_are_refused(protocol, values):
    mine = channel_of(protocol).signature
    others = [one for one in KNOWN if channel_of(one).signature != mine]
    # Of the same class with other parameters, and some of other classes
    chosen = [one for one in others if type(one) is type(protocol)]
    assert chosen
    check_refusal(protocol, chosen + others[:: max(1, len(others) // 6)])


@WITH_VALUES
def test_what_is_no_aggregate_is_not_added(protocol, values):
    mine = protocol.aggregate(np.zeros(0, dtype=protocol.report_dtype))
    for other in (1, None, mine.counts, mine.to_bytes()):
        with pytest.raises(TypeError):
            mine + other
        for verb in verbs(protocol)[:-1]:
            with pytest.raises((TypeError, InvalidReport)):  # some take reports, too
                verb(other)


class DroppedReport(GRR):
    """Counts all reports of a batch but the last of several."""

    def counts_of(self, reports):
        return super().counts_of(reports[: max(len(reports) - 1, 1)])


class StickyCounts(GRR):
    """Adds the reports of a batch to those of the batch before."""

    def counts_of(self, reports):
        before = vars(self).setdefault("before", np.zeros(self.domain, dtype=np.int64))
        before += super().counts_of(reports)
        return before.copy()


class Unsigned(GRR):
    """Does not say which epsilon it has."""

    def _details(self):
        return {"alpha": ""}


@pytest.mark.parametrize("kind", [DroppedReport, StickyCounts])
def test_aggregates_that_depend_on_batches_are_found(kind):
    with pytest.raises((AssertionError, IncompatibleAggregate)):
        check_merging(kind(5, 1.0), np.arange(USERS) % 5)


def test_parameters_that_are_not_told_are_found():
    check_refusal(GRR(5, 1.0), [GRR(5, 2.0)])
    with pytest.raises(AssertionError):
        check_refusal(Unsigned(5, 1.0), [Unsigned(5, 2.0)])
