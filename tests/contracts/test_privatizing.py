"""The client half of every protocol: reports as published, and nothing drawn for bad values."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from frequency import GRR, InvalidValue, Survey
from frequency.core.protocol import channel_of
from frequency.heavy import UniqueHeavyHitter
from tests.contracts.examples import WITH_VALUES


def privatized(protocol, values, seed=1):
    return protocol.privatize(values, np.random.default_rng(seed))


def forms(values):
    """The same values, put in other ways."""
    yield values.tolist()
    yield tuple(values.tolist())
    yield np.repeat(values, 2, axis=0)[::2]
    frozen = values.copy()
    frozen.flags.writeable = False
    yield frozen
    if values.dtype.kind != "U":
        yield np.asfortranarray(values)
        yield values.astype(np.uint64)
        yield values.astype(">i8")
        yield values.astype(float)  # whole numbers, all below 2^53
        yield values.astype(object)


def check_reports(protocol, values):
    """One report a user, of the published type; the same for the same words."""
    before = values.copy()
    reports = privatized(protocol, values)
    assert (values == before).all()
    assert isinstance(reports, np.ndarray)
    assert reports.shape == (len(values),)
    assert reports.dtype == protocol.report_dtype
    assert channel_of(protocol).possible(reports).all()
    assert privatized(protocol, values).tobytes() == reports.tobytes()
    for same in forms(values):
        assert privatized(protocol, same).tobytes() == reports.tobytes()
    assert protocol.privatize(values[:0]).shape == (0,)
    assert protocol.privatize(values[:1]).shape == (1,)
    if protocol.report_bits:  # as some say nothing
        assert privatized(protocol, values, seed=2).tobytes() != reports.tobytes()
        assert protocol.privatize(values).tobytes() != protocol.privatize(values).tobytes()


def bad_values(values, blank, spelt):
    """Values of which the one at place 2 is the first bad one.

    ``blank``: users may have none; ``spelt``: numbers may be texts.
    """
    if values.dtype.kind == "U":
        yield [*values[:2], "x" * 99, *values[2:]]
        yield [*values[:2], 5, "x" * 99]
        if not blank:
            yield [*values[:2], None]
        return
    for wrong in (
        -1,
        1 << 62,
        1 << 70,
        0.5,
        np.nan,
        np.inf,
        "x" if spelt else "0",
        *([] if blank else [None]),
    ):
        bad = values[:4].astype(object)
        bad[2] = wrong
        yield bad.tolist()
    yield np.where(np.arange(4) == 2, -1, values[:4].T).T
    if not blank:
        masked = np.ma.MaskedArray(values[:4].copy())
        masked[2] = np.ma.masked
        yield masked


def check_refusal(protocol, values):
    """The first bad value is named; of what is no list of values nothing is drawn either."""
    rng = np.random.default_rng(1)
    before = copy.deepcopy(rng.bit_generator.state)
    for bad in bad_values(
        values, isinstance(protocol, UniqueHeavyHitter), isinstance(protocol, Survey)
    ):
        with pytest.raises(InvalidValue, match="nothing was drawn") as refused:
            protocol.privatize(bad, rng)
        assert np.ravel(refused.value.index)[0] == 2, bad
        assert rng.bit_generator.state == before
    for shape in (values[None], values[:, None], np.stack([values, values])):
        with pytest.raises(ValueError, match=r"one-dimensional|shape"):
            protocol.privatize(shape, rng)
        assert rng.bit_generator.state == before
    for source in (np.random, np.random.RandomState(0), 0, "seed"):
        with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
            protocol.privatize(values, source)


@WITH_VALUES
def test_reports(protocol, values):
    check_reports(protocol, values[:150])


@WITH_VALUES
def test_bad_values_draw_nothing(protocol, values):
    check_refusal(protocol, values)


@WITH_VALUES
def test_batches_of_any_size(protocol, values, monkeypatch):
    """How many users are handled at a time shows in nothing but the random words' order."""
    reports = privatized(protocol, values[:40])
    whole = protocol.aggregate(reports)
    monkeypatch.setattr(type(channel_of(protocol)), "batch_size", 7)
    fresh = copy.deepcopy(protocol)
    assert fresh.aggregate(reports) == whole
    again = privatized(fresh, values[:40])
    assert again.shape == reports.shape
    assert fresh.aggregate(again).n == len(again)


class Repeated(GRR):
    """Draws from a generator of its own."""

    def privatize(self, values, rng=None):
        return super().privatize(values, np.random.default_rng(1))


class Hasty(GRR):
    """Draws before it looks."""

    def privatize(self, values, rng=None):
        if isinstance(rng, np.random.Generator):
            rng.random()
        return super().privatize(values, rng)


class Unnamed(GRR):
    """Blames the first value, whichever it was."""

    def privatize(self, values, rng=None):
        try:
            return super().privatize(values, rng)
        except InvalidValue as error:
            raise InvalidValue(0, error.value, error.largest) from None


def test_planted_errors_are_found():
    values = np.arange(30) % 5
    check_reports(GRR(5, 1.0), values)
    check_refusal(GRR(5, 1.0), values)
    with pytest.raises(AssertionError):
        check_reports(Repeated(5, 1.0), values)
    for kind in (Hasty, Unnamed):
        with pytest.raises(AssertionError):
            check_refusal(kind(5, 1.0), values)
