"""What every estimate answers: one question or many, however put, with errors or a reason for none.

A question that is none is refused before anything is computed, and where a variance is not known
it is `UnknownVariance` for every protocol, and never NaN.
"""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext, suppress
from functools import cache

import numpy as np
import pytest

from frequency import (
    GRR,
    RR,
    InvalidQuestion,
    Oracle,
    SubsetSelection,
    Survey,
    Tabular,
    UnknownVariance,
)
from frequency.core.answer import Answer
from frequency.core.channel import LARGEST_LIST
from frequency.core.protocol import channel_of
from frequency.marginals import CALM, InpEM, InpHT, InpPS, MargPS
from rangeq import Between, DecomposedHistogram, RangeProtocol, SquareWave
from rangeq.grids import HIO, ConjunctionProtocol
from rangeq.local.smoothed import Shaped
from tests.contracts.examples import CENTRAL, COLLECTED, collecting

pytestmark = pytest.mark.every_case

EACH = 50
"""How many users have each of the values."""

LARGE = 1 << 16
"""Domains beyond are estimated for some items."""


def estimate_of(protocol, aggregate, items=None):
    """What the protocol says of an aggregate: of some items, where there are too many."""
    if lists(protocol):
        return protocol.find(aggregate)
    if items is not None and channel_of(protocol).domain > LARGE and isinstance(protocol, Oracle):
        return protocol.estimate(aggregate, np.unique(items)[:9])
    return protocol.estimate(aggregate)


@cache
def collected(place):
    """The estimate of the values of a case, and the one of nobody's."""
    protocol, values = COLLECTED[place]
    some = protocol.simulate(EACH, np.random.default_rng(1), values)
    nobody = protocol.aggregate(np.zeros(0, dtype=protocol.report_dtype))
    return tuple(estimate_of(protocol, aggregate, values) for aggregate in (some, nobody))


LONG = ("HDG", "LHIO", "MSW", "TDG", "HaarHRR2D", "HierarchicalHistogram2D")
"""Protocols whose answers take a second."""


def cases(wanted):
    return [
        pytest.param(
            place,
            id=f"{place}-{type(protocol).__name__}",
            marks=pytest.mark.slow if type(collecting(protocol)).__name__ in LONG else (),
        )
        for place, (protocol, _) in enumerate(COLLECTED)
        if wanted(protocol)
    ]


def lists(protocol):
    return hasattr(collecting(protocol), "find")


def several(protocol):
    return len(names_of(protocol)) > 1


def names_of(protocol):
    """The names and sizes of the attributes."""
    protocol = collecting(protocol)
    if hasattr(protocol, "attributes"):
        return dict(zip(protocol.attributes.names, protocol.attributes.sizes, strict=True))
    domain = getattr(protocol, "domain", 0)
    return {} if isinstance(domain, int) else {name: domain[name] for name in domain}


# Surveys are asked in units: see tests/frequency/schema/test_estimate.py
SINGLE = cases(
    lambda protocol: (
        not lists(protocol) and not several(protocol) and not isinstance(protocol, Survey)
    )
)
SEVERAL = cases(several)
LISTS = cases(lists)


def knows_everybody(protocol):
    """Whether its estimates of all values are known to sum to 1: trees add up nodes as they are."""
    exact = (
        RR,
        GRR,
        SubsetSelection,
        Tabular,
        InpPS,
        InpHT,
        MargPS,
        InpEM,
        CALM,
        SquareWave,
        Shaped,
    )
    protocol = collecting(protocol)
    whole = isinstance(protocol, (*exact, RangeProtocol, ConjunctionProtocol))
    return whole and not isinstance(protocol, (HIO, DecomposedHistogram))


def close(one, two):
    np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-12)


def error_of(answer):
    """The variance of an answer, checked; None if unknown, though an interval may be."""
    try:
        variance = answer.variance
    except UnknownVariance:
        with pytest.raises(UnknownVariance):
            tuple(answer)
        with suppress(UnknownVariance):
            low, high = answer.interval()
            assert np.all((low <= answer.value) & (answer.value <= high))
        return None
    for confidence in (0, 1.0, -0.5, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            answer.interval(confidence)
    assert np.shape(variance) == np.shape(answer.value)
    assert (np.asarray(variance) >= 0).all()  # and so not NaN
    low, high = answer.interval()
    assert np.shape(low) == np.shape(high) == np.shape(answer.value)
    slack = 1e-9 * (1 + np.abs(answer.value))
    unknown = np.isnan(answer.value)
    assert ((low <= answer.value + slack) | (unknown & (low <= 0))).all()
    assert ((high >= answer.value - slack) | (unknown & (high >= 1))).all()
    assert isinstance(answer.value, np.ndarray if np.shape(answer.value) else float)
    return variance


def check_same(answer, others):
    """An answer to many questions is the answers to each."""
    variance, each = error_of(answer), [error_of(other) for other in others]
    flat = np.ravel(answer.value)
    close(flat, [other.value for other in others])
    if variance is None:
        assert None in each
    else:
        close(np.ravel(variance), each)
        low, high = answer.interval()
        ends = zip(np.ravel(low), np.ravel(high), strict=True)
        close(list(ends), [other.interval() for other in others])


def check_verbs(estimate, items):
    """Frequencies, variances and intervals are the answers about each item."""
    values = getattr(estimate, "counts", estimate.frequencies)
    found = estimate.answer(items)
    close(found.value, values)
    variance = error_of(found)
    if variance is None:
        for verb in (lambda: estimate.variances, estimate.interval):
            with pytest.raises(UnknownVariance):
                verb()
    else:
        assert estimate.variances == pytest.approx(variance, rel=1e-7, abs=1e-12)
        for confidence in (0.5, 0.95):
            close(estimate.interval(confidence), found.interval(confidence))
        with pytest.raises(ValueError, match="confidence"):
            estimate.interval(1.0)
    some = items[:: max(1, len(items) // 7)]
    check_same(estimate.answer(some), [estimate.answer(int(item)) for item in some])
    check_same(
        estimate.answer(Between(some, some)), [estimate.answer([int(item)]) for item in some]
    )
    square = np.stack([some, some[::-1]])
    assert estimate.answer(square).value.shape == square.shape
    check_same(estimate.answer({0: square}), [estimate.answer(int(item)) for item in square.flat])
    assert estimate.answer(items[:0]).value.shape == (0,)


def check_ranges(estimate, size, additive=True):
    """Ranges of the whole domain, and lists of items."""
    first = np.array([0, 0, size // 3, size // 2])
    last = np.array([size - 1, size // 2, size - 1, size // 2])
    ends = list(zip(first.tolist(), last.tolist(), strict=True))
    check_same(
        estimate.answer(Between(first, last)), [estimate.answer(Between(*pair)) for pair in ends]
    )
    for a, b in ends:
        check_same(estimate.answer(Between(a, b)), [estimate.answer(list(range(a, b + 1)))])
        check_same(estimate.answer(Between(a, b)), [estimate.answer({0: set(range(a, b + 1))})])
    if additive:
        values = getattr(estimate, "counts", estimate.frequencies)
        close(estimate.answer(Between(0, size - 1)).value, values.sum())
        apart = [0, size - 1]
        answer = estimate.answer(apart)
        error_of(answer)
        close(answer.value, values[sorted(set(apart))].sum())
    assert estimate.answer([]).value == 0 or not estimate.n


NOT_ONE = [-1, 1 << 40, 1.5, "a", None, True, (0,), (0, 0), (0, 0, 0), [1 << 40]]
NOT_ONE += [Between(0, 1 << 40), Between(-1, 0), Between(0, 0.5), "0:1099511627776", "1:0", "0::0"]
NOT_ONE += [[0.5], [True], {}, {1: 0}, {"x": 0}, {0: -1}, np.array([0.0]), np.array([0, 1 << 40])]
NOT_ONE += [np.array(["0"]), Between(np.zeros(2, dtype=int), np.zeros(3, dtype=int))]

WORKING = ("_between", "_single", "_sums", "linear", "marginal", "answers", "predicted_error")


def check_refused(estimate, questions, monkeypatch):
    """That these are refused, before any of the methods that answer is asked."""

    def asked(*_, **__):
        raise AssertionError("something was computed for a question that is none")

    with monkeypatch.context() as patch:
        for name in WORKING:
            if hasattr(type(estimate), name):
                patch.setattr(type(estimate), name, asked)
        for where in questions:
            with pytest.raises(InvalidQuestion):
                estimate.answer(where)


# -------------------------------------------------------------------------------- one attribute


@pytest.mark.parametrize("place", SINGLE)
def test_answers_about_one_attribute(place, monkeypatch):
    protocol, _ = COLLECTED[place]
    domain = channel_of(protocol).domain
    for estimate in collected(place):
        whole = getattr(estimate, "items", None) is None
        items = np.arange(domain) if whole else estimate.items
        # A decomposed histogram takes the variances of answers from the nearest distribution
        check_verbs(estimate, items)
        if whole and domain <= 1 << 10:
            check_ranges(
                estimate, domain, not isinstance(collecting(protocol), DecomposedHistogram)
            )
            if knows_everybody(protocol) and estimate.n:
                everybody = estimate.answer(Between(0, domain - 1))
                close(everybody.value, 1)
                assert (error_of(everybody) or 0.0) < 1e-12
        wrong = NOT_ONE if domain < 1 << 40 else []
        check_refused(estimate, [*wrong, (domain - 1, 0)] if domain > 1 else wrong, monkeypatch)
    some, nobody = collected(place)
    assert some.n == EACH * len(COLLECTED[place][1])
    assert nobody.n == 0
    assert np.isnan(nobody.frequencies).all()
    for where in (0, [0], Between(0, 0), np.array([0, 0])):
        if whole or 0 in nobody.items:
            check_unknown(nobody.answer(where))


def check_unknown(answer):
    """The answer from no reports."""
    assert np.isnan(answer.value).all()
    variance = error_of(answer)
    if variance is not None:
        assert np.isposinf(variance).all()
        low, high = answer.interval()  # all numbers, or all fractions
        assert (np.asarray(low) <= 0).all()
        assert (np.asarray(high) >= 1).all()


@pytest.mark.parametrize("mechanism", CENTRAL, ids=repr)
def test_answers_of_a_curator(mechanism, monkeypatch):
    held, domain = np.arange(mechanism.domain) * 7, mechanism.domain
    for counts in (held, 0 * held):
        estimate = mechanism.release(counts, np.random.default_rng(1))
        check_verbs(estimate, np.arange(domain))
        check_ranges(estimate, domain)
        close(estimate.answer(Between(0, domain - 1)).value, estimate.n)
        check_refused(estimate, [*NOT_ONE, (1, 0)], monkeypatch)


def check_sums(linear, values, rng):
    """Weighted sums of what is estimated: linear, with a variance that is a quadratic form."""
    one, two = rng.normal(size=(2, len(values)))
    sums = linear(np.stack([one, two, one + two, one - two, 2 * one, 0 * one]))
    variance = error_of(sums)
    close(sums.value[:2], np.stack([one, two]) @ values)
    check_same(sums, [linear(row) for row in (one, two, one + two, one - two, 2 * one, 0 * one)])
    if variance is None:
        return
    assert np.isfinite(variance).all()
    a, b, plus, minus, twice, none = variance
    near = 1e-7 * variance.max()
    assert plus + minus == pytest.approx(2 * a + 2 * b, abs=near)
    assert twice == pytest.approx(4 * a, abs=near)
    assert none == pytest.approx(0, abs=near)


@pytest.mark.parametrize("place", SINGLE)
def test_sums_of_items(place):
    some, nobody = collected(place)
    if hasattr(some, "linear"):
        check_sums(some.linear, some.frequencies, np.random.default_rng(3))
        check_unknown(nobody.linear(np.ones(len(nobody.frequencies))))
        for wrong in ([np.nan] * len(some.frequencies), [], [[[1.0]]], "a"):
            with pytest.raises(ValueError, match=r"weights|convert"):
                some.linear(wrong)


@pytest.mark.parametrize("place", SEVERAL)
def test_sums_of_cells(place):
    some, nobody = collected(place)
    if hasattr(some, "linear"):
        names = list(names_of(COLLECTED[place][0]))[:2]
        cells = some.marginal(names).ravel()
        check_sums(lambda rows: some.linear(names, rows), cells, np.random.default_rng(3))
        check_unknown(nobody.linear(names, np.ones(len(cells))))
        answer = some.cells(names)
        close(answer.value, some.marginal(names))
        check_same(answer, [some.linear(names, row) for row in np.eye(len(cells))])
        for wrong in ([np.nan] * len(cells), [], [[[1.0]]], "a"):
            with pytest.raises(ValueError, match=r"weights|convert"):
                some.linear(names, wrong)


# --------------------------------------------------------------------------- several attributes


def some_of(size):
    return np.unique(np.linspace(0, size - 1, 5).astype(np.int64))


def check_cells(estimate, sizes):
    """Pairs and single attributes: by name and place, in any order, one by one and all together."""
    names = list(sizes)
    for chosen in ([names[0]], [names[-1], names[0]]):
        axes = np.ix_(*(some_of(sizes[name]) for name in chosen))
        where = dict(zip(chosen, axes, strict=True))
        cells = [array.ravel().tolist() for array in np.broadcast_arrays(*axes)]
        each = [dict(zip(chosen, cell, strict=True)) for cell in zip(*cells, strict=True)]
        answer = estimate.answer(where)
        assert np.shape(answer.value) == np.broadcast_shapes(*(axis.shape for axis in axes))
        alone = [estimate.answer(one) for one in each]
        check_same(answer, alone)
        by_place = {names.index(name): values for name, values in reversed(where.items())}
        check_same(estimate.answer(by_place), alone)
        check_same(
            estimate.answer({name: Between(axis, axis) for name, axis in where.items()}), alone
        )
        for one, found in list(zip(each, alone, strict=True))[:3]:
            check_same(found, [estimate.answer({name: [item] for name, item in one.items()})])
        last = {
            name: Between(size // 2, size - 1) for name, size in sizes.items() if name in chosen
        }
        check_same(
            estimate.answer({name: f"{a.first}:" for name, a in last.items()}),
            [estimate.answer(last)],
        )
        if max(sizes.values()) < LARGE:
            as_lists = {name: list(range(a.first, a.last + 1)) for name, a in last.items()}
            check_same(estimate.answer(last), [estimate.answer(as_lists)])


def not_several(sizes):
    name, size = next(iter(sizes.items()))
    bad = [
        size,
        -1,
        1.5,
        None,
        "a",
        True,
        (0,),
        (0, 0),
        Between(0, size),
        [size],
        [0.5],
        np.array([0.0]),
    ]
    named = [{name: one} for one in bad]
    return [
        *named,
        {},
        {"no such": 0},
        {99: 0},
        {-1: 0},
        {name: 0, 0: 0},
        0,
        [0],
        (0, 1),
        "a",
        None,
    ]


@pytest.mark.parametrize("place", SEVERAL)
def test_answers_about_several_attributes(place, monkeypatch):
    protocol, values = COLLECTED[place]
    sizes, (some, nobody) = names_of(protocol), collected(place)
    check_cells(some, sizes)
    check_cells(nobody, sizes)
    assert some.n == EACH * len(values)
    assert nobody.n == 0
    for estimate in (some, nobody):
        check_refused(estimate, not_several(sizes), monkeypatch)
    for name in sizes:
        check_unknown(nobody.answer({name: 0}))
        check_unknown(nobody.answer({name: Between(0, np.arange(2))}))


@pytest.mark.parametrize("place", SEVERAL)
def test_the_values_of_an_attribute_add_up(place):
    """To everybody, who are 1 where the estimate knows it; of a pair to the range of all values."""
    protocol, _ = COLLECTED[place]
    sizes, (some, _) = names_of(protocol), collected(place)
    if max(sizes.values()) > LARGE or isinstance(
        collecting(protocol), HIO
    ):  # which adds up other nodes
        return
    for name, size in sizes.items():
        whole = some.answer({name: Between(0, size - 1)})
        if knows_everybody(protocol):
            close(whole.value, 1)
        close(some.answer({name: np.arange(size)}).value.sum(), whole.value)
        other = next(another for another in sizes if another != name)
        within = some.answer({name: Between(0, size - 1), other: 0}).value
        close(some.answer({name: np.arange(size), other: 0}).value.sum(), within)


def told(answer):
    """Value and variance as lists of numbers."""
    variance = error_of(answer)
    return [
        np.ravel(part).tolist() for part in (answer.value, () if variance is None else variance)
    ]


@pytest.mark.parametrize("place", [*SINGLE, *SEVERAL])
def test_answers_follow_from_the_aggregate(place):
    """Whatever was asked before: also of one that was read from bytes, by an equal protocol."""
    protocol, values = COLLECTED[place]
    aggregate = protocol.simulate(EACH, np.random.default_rng(1), values)
    counts = aggregate.counts.copy()
    names = list(names_of(protocol))[:2]
    questions = [{0: 0}, *({name: 0} for name in names), {0: Between(0, 0)}]
    questions += [dict.fromkeys(names, 0)] if names else []
    other = copy.deepcopy(protocol)
    one = estimate_of(protocol, aggregate, np.zeros(1, dtype=int))
    two = estimate_of(
        other, other.aggregate_from_bytes(aggregate.to_bytes()), np.zeros(1, dtype=int)
    )
    first = [told(one.answer(where)) for where in questions]
    second = [told(two.answer(where)) for where in reversed(questions)]
    assert first == second[::-1]
    assert first == [told(one.answer(where)) for where in questions]
    assert aggregate.counts.tolist() == counts.tolist()


# --------------------------------------------------------------------------------- listed items


@pytest.mark.parametrize("place", LISTS)
def test_answers_about_listed_items(place):
    protocol, values = COLLECTED[place]
    often = protocol.simulate([160, 40], np.random.default_rng(1), values[:2])
    for found in (protocol.find(often, k=2), *collected(place)):
        alone = [found.answer(item) for item in found.items.tolist()]
        everything = found.answer(found.items)
        check_same(everything, alone)
        check_same(found.answer({0: found.items[::-1]}), alone[::-1])
        assert everything.value.tolist() == found.frequencies.tolist()
        assert everything.variance.tolist() == found.variances.tolist()
        for confidence in (0.5, found.confidence):
            close(found.interval(confidence), everything.interval(confidence))
        close(found.interval(), everything.interval(found.confidence))
        with pytest.raises(ValueError, match="confidence"):
            found.interval(1.0)
        known, large = found.named is not None, 1 << 40 < channel_of(protocol).domain <= 1 << 64
        for where in [one for one in NOT_ONE if not isinstance(one, str)]:
            if known and isinstance(where, np.ndarray) and where.dtype.kind == "U":
                continue
            item = str(where) in (str(1 << 40), str(np.array([0, 1 << 40])))
            with nullcontext() if known and large and item else pytest.raises(InvalidQuestion):
                found.answer(where)
        with pytest.raises(InvalidQuestion):
            found.answer("no text of this protocol")
    assert protocol.find(often, k=2).n == 200
    reports = protocol.privatize(values[:30], np.random.default_rng(1))
    one, two = protocol.find(reports, k=3), protocol.find(protocol.aggregate(reports), k=3)
    assert one.items.tolist() == two.items.tolist()
    assert one.frequencies.tolist() == two.frequencies.tolist()
    assert collected(place)[1].n == len(collected(place)[1]) == 0


@pytest.mark.parametrize("place", SINGLE)
def test_domains_that_are_too_large_to_list(place):
    """Are not listed: neither for an estimate nor for a simulation."""
    protocol, _ = COLLECTED[place]
    if channel_of(protocol).domain > LARGEST_LIST:
        nobody = protocol.aggregate(np.zeros(0, dtype=protocol.report_dtype))
        for verb in (lambda: protocol.estimate(nobody), lambda: protocol.simulate([1])):
            with pytest.raises(ValueError, match="too many items to list"):
                verb()


# ------------------------------------------------------------------------------- planted errors


class Faulty:
    """An estimate of which one answer is wrong."""

    def __init__(self, estimate, change):
        self.estimate, self.change = estimate, change

    def __getattr__(self, name):
        return getattr(self.estimate, name)

    def answer(self, where):
        return self.change(where, self.estimate.answer(where))


@pytest.mark.parametrize(
    "change",
    [
        lambda where, told: Answer(told.value, np.nan * told.value),
        lambda where, told: Answer(told.value, 2 * told.variance),
        lambda where, told: Answer(told.value, told.variance) if np.ndim(where) else told,
        lambda where, told: told if np.ndim(where) else Answer(told.value + 0.1, told.variance),
        lambda where, told: Answer(np.ravel(told.value), np.ravel(told.variance)),
        lambda where, told: Answer(told.value, None, "unknown"),
    ],
    ids=["NaN", "variance", "interval", "single", "shape", "unknown"],
)
def test_planted_errors_are_found(change):
    protocol = GRR(5, 1.0)
    estimate = estimate_of(protocol, protocol.simulate([9, 2, 3, 4, 5]))
    check_verbs(estimate, np.arange(5))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_verbs(Faulty(estimate, change), np.arange(5))


class Late:
    """Computes an answer before it looks at the question."""

    def linear(self, where):
        return where

    def answer(self, where):
        self.linear(where)
        raise InvalidQuestion("too late")


def test_a_sum_of_deviations_is_found():
    """As if errors of items were the same error."""
    protocol = GRR(5, 1.0)
    estimate = estimate_of(protocol, protocol.simulate([900, 200, 300, 400, 500]))

    def linear(rows):
        spread = np.abs(rows) @ np.sqrt(estimate.variances)
        return Answer(estimate.linear(rows).value, spread**2)

    check_sums(estimate.linear, estimate.frequencies, np.random.default_rng(3))
    with pytest.raises(AssertionError):
        check_sums(linear, estimate.frequencies, np.random.default_rng(3))


def test_work_before_a_refusal_is_found(monkeypatch):
    with pytest.raises(AssertionError, match="something was computed"):
        check_refused(Late(), [-1], monkeypatch)
