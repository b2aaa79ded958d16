"""Reports and aggregates of every protocol survive bytes; what nobody has sent is left out.

With a tally a message loses what is wrong in it and nothing else, under the right reason; without
one it is refused.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from frequency import GRR, Aggregate, IncompatibleAggregate, InvalidReport
from frequency.core.aggregate import pack
from frequency.core.protocol import channel_of
from frequency.core.transport import Transport
from tests.contracts.examples import COLLECTED, WITH_VALUES
from tests.goodness_of_fit import FALSE_ALARM, at_most

USERS = 30


def some_reports(protocol, values):
    return protocol.privatize(values[:USERS], np.random.default_rng(1))


def check_reading(protocol, message, kept, **wrong):
    """That what is kept of a message are these reports, and what is wrong is so counted."""
    tally: Counter[str] = Counter(foreign=7)
    found = protocol.reports_from_bytes(message, tally)
    assert found.tobytes() == kept.tobytes()
    assert tally - Counter(foreign=7) == Counter(wrong)
    assert protocol.aggregate(found) == protocol.aggregate(kept)
    if wrong:
        with pytest.raises(InvalidReport):
            protocol.reports_from_bytes(message)
    else:
        assert protocol.reports_from_bytes(message).tobytes() == kept.tobytes()


def check_messages(protocol, reports, stranger):
    """Whole messages, and others: cut short, too long, of another protocol, or no messages."""
    size, whole = reports.dtype.itemsize, protocol.reports_to_bytes(reports)
    for some in (reports, reports[:1], reports[:0], reports[::-2]):
        check_reading(protocol, protocol.reports_to_bytes(some), some)
    for lost, missing in ((1, 1), (size, 1), (size + 1, 2), (len(reports) * size, len(reports))):
        kept = reports[: len(reports) - missing]
        check_reading(protocol, whole[: len(whole) - lost], kept, truncated=missing)
    for more, surplus in ((1, 1), (size, 1), (size + 1, -(-(size + 1) // size))):
        check_reading(protocol, whole + bytes(more), reports, malformed=surplus)
    nothing = reports[:0]
    theirs = some_reports(*stranger)
    check_reading(protocol, stranger[0].reports_to_bytes(theirs), nothing, foreign=len(theirs))
    # What is announced and not there counts for no more than the message has bytes
    header = {"kind": "reports", "parameters": channel_of(protocol).signature, "count": 1 << 62}
    check_reading(protocol, pack(header, b""), nothing, truncated=len(pack(header, b"")))
    aggregate = protocol.aggregate(nothing).to_bytes()
    for message in (b"", whole[:9], whole[1:], b"\0" + whole[1:], aggregate, "text", None):
        if not isinstance(message, bytes):
            with pytest.raises((InvalidReport, TypeError)):
                protocol.reports_from_bytes(message)
        else:
            check_reading(protocol, message, nothing, malformed=1)


def check_changes(protocol, reports):
    """Reports of random bytes among the good ones: each is judged by itself, few are possible."""
    channel, rng = channel_of(protocol), np.random.default_rng(2)
    size = reports.dtype.itemsize
    noise = np.frombuffer(rng.bytes(200 * size), dtype=reports.dtype)
    flipped = np.repeat(reports, 4)
    raw = flipped.view(np.uint8).reshape(len(flipped), size)
    bits = 1 << rng.integers(0, 8, len(raw))
    raw[np.arange(len(raw)), rng.integers(0, size, len(raw))] ^= bits.astype(np.uint8)
    mixed = rng.permutation(np.concatenate([reports, noise, flipped]))
    possible = channel.possible(mixed)
    assert possible.tolist() == [bool(channel.possible(one[None])[0]) for one in mixed]
    assert channel.possible(reports).all()
    # At most 2^report_bits reports are possible, of the 2^(8 size) of which the noise is drawn;
    # public coins travel with a report, but say nothing
    told = protocol.report_bits + 64 * ("coins" in reports.dtype.names)
    accepted = int(channel.possible(noise).sum())
    assert at_most(accepted, len(noise), 2.0 ** (told - 8 * size)) > FALSE_ALARM
    kept, tally = mixed[possible], Counter(impossible=2)
    aggregate = protocol.aggregate(mixed, tally)
    assert tally == {"impossible": 2 + int((~possible).sum())}
    assert aggregate == protocol.aggregate(kept)
    assert channel.require_own(aggregate) is aggregate  # so what is possible can be counted
    assert aggregate.n == len(kept)
    if not possible.all():
        for verb in (protocol.aggregate, protocol.reports_to_bytes):
            with pytest.raises(InvalidReport, match=rf"reports\[{int(np.argmin(possible))}\]"):
                verb(mixed)
        header = {"kind": "reports", "parameters": channel.signature, "count": len(mixed)}
        message = pack(header, mixed.tobytes())
        check_reading(protocol, message, kept, impossible=int((~possible).sum()))


def check_aggregates(protocol, reports, stranger):
    """Whole ones, and such that were changed, cut, of another protocol, or that nobody can have."""
    whole = protocol.aggregate(reports)
    message = whole.to_bytes()
    again = protocol.aggregate_from_bytes(message)
    assert again == whole
    assert again.to_bytes() == message
    changed = bytearray(message)
    changed[len(message) // 2] ^= 1
    for wrong in (
        *(message[:-1], message[:40], message + b"\0", bytes(changed), b""),
        protocol.reports_to_bytes(reports),
        stranger[0].aggregate(some_reports(*stranger)).to_bytes(),
    ):
        with pytest.raises(IncompatibleAggregate):
            protocol.aggregate_from_bytes(wrong)
    many = whole.counts.copy()
    many.flat[int(np.argmax(np.abs(many)))] = 2 * whole.n + 1  # which no report adds twice to
    for n, counts in ((whole.n, many), (0, whole.counts), (whole.n, whole.counts[..., None])):
        forged = Aggregate(whole.parameters, n, counts)
        with pytest.raises(IncompatibleAggregate):
            protocol.aggregate_from_bytes(forged.to_bytes())
        for verb in {"estimate", "find"} & set(dir(protocol)):
            with pytest.raises((IncompatibleAggregate, TypeError)) as refused:
                getattr(protocol, verb)(forged)
            # The one verb of a `OneBit` that is not its own
            assert refused.type is IncompatibleAggregate or "use " in str(refused.value)


def stranger_to(protocol):
    """Another protocol with the values of some users."""
    channel = channel_of(protocol)
    return next(pair for pair in COLLECTED if channel_of(pair[0]).signature != channel.signature)


@WITH_VALUES
def test_messages_of_reports(protocol, values):
    check_messages(protocol, some_reports(protocol, values), stranger_to(protocol))


@WITH_VALUES
def test_changed_reports(protocol, values):
    check_changes(protocol, some_reports(protocol, values))


@WITH_VALUES
def test_messages_of_aggregates(protocol, values):
    check_aggregates(protocol, some_reports(protocol, values), stranger_to(protocol))


@WITH_VALUES
def test_what_is_no_array_of_reports(protocol, values):
    reports = some_reports(protocol, values)
    masked = np.ma.MaskedArray(reports, mask=np.zeros(len(reports), dtype=bool))
    raw = reports.view(np.uint8)
    for wrong in (reports.tolist(), raw, reports[None], reports[0], masked, b"", None):
        for verb in (protocol.aggregate, protocol.reports_to_bytes):
            with pytest.raises(InvalidReport):
                verb(wrong)
        tally: Counter[str] = Counter()
        assert protocol.aggregate(wrong, tally).n == 0
        assert set(tally) == {"malformed"}


class Credulous(GRR):
    """Takes every report for possible."""

    def possible(self, reports):
        return np.ones(len(reports), dtype=bool)

    def counts_of(self, reports):
        return super().counts_of(np.minimum(reports["item"], 4).astype(self.report_dtype))


class Impatient(GRR):
    """Stops at the first impossible report."""

    class Transport(Transport):
        def accepted(self, reports, tally):
            found, possible = super().accepted(reports, tally), [*self.possible(reports), False]
            return found if tally is None else found[: int(np.argmin(possible))]

    @property
    def transport(self):
        return self.Transport(self.wire, self.signature, self.report_dtype, self.possible)


class Careless(GRR):
    """Does not look at whose reports these are."""

    def reports_from_bytes(self, message, tally=None):
        try:
            return GRR(5, 2.0).reports_from_bytes(message)
        except InvalidReport:
            return super().reports_from_bytes(message, tally)


@pytest.mark.parametrize("kind", [Credulous, Impatient])
def test_wrong_judgements_of_reports_are_found(kind):
    values = np.arange(USERS) % 5
    check_changes(GRR(5, 1.0), some_reports(GRR(5, 1.0), values))
    with pytest.raises(AssertionError):
        check_changes(kind(5, 1.0), some_reports(kind(5, 1.0), values))


def test_reports_of_others_that_are_read_are_found():
    values, stranger = np.arange(USERS) % 5, (GRR(5, 2.0), np.arange(USERS) % 5)
    check_messages(GRR(5, 1.0), some_reports(GRR(5, 1.0), values), stranger)
    with pytest.raises(AssertionError):
        check_messages(Careless(5, 1.0), some_reports(Careless(5, 1.0), values), stranger)
