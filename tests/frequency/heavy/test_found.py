"""What a list of heavy hitters says of itself, and what `find` refuses before any work."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, OLH, InvalidReport, InvalidValue
from frequency.core.answer import ConfidenceInterval
from frequency.heavy import (
    Found,
    Gate,
    OneBit,
    PrefixExtension,
    SuccinctHistogram,
    TreeHist,
    UniqueHeavyHitter,
    plot,
)

PROTOCOLS: dict[str, Callable[..., Any]] = {
    "extension": lambda text=False: PrefixExtension(16, 3.0, text),
    "tree": lambda text=False: TreeHist(8, 3.0, text),
    "unique": lambda text=False: UniqueHeavyHitter(16, 3.0, text),
    "succinct": lambda text=False: SuccinctHistogram(16, 30.0, text, hashes=1, channels=4, rows=64),
    "one bit": lambda text=False: OneBit(PrefixExtension(8, 0.6, text)),
}


def some(gates=(), items=(5, 9), frequencies=(0.4, 0.1), noise=0.2, confidence=0.95):
    f = np.array(frequencies, dtype=float)
    return Found(
        np.array(items),
        f,
        f * 0 + 1e-4,
        ConfidenceInterval(f - 0.02, f + 0.02),
        1000,
        256,
        noise,
        confidence,
        tuple(gates),
    )


def gate(cut, deviation=0.1):
    return Gate(cut, lambda f: np.full(np.shape(f), deviation))


# --------------------------------------------------------------------------------------- the list


def test_gate_is_a_normal_tail():
    for f in (0.0, 0.1, 0.3, 1.0):
        assert float(gate(0.2)(f)) == pytest.approx(stats.norm.cdf((0.2 - f) / 0.1))
    assert gate(-np.inf)(np.array([0.0, 1.0])).tolist() == [0, 0]
    assert gate(0.2, 0.0)(np.array([0.1, 0.3])).tolist() == [1, 0]


def test_recall_is_the_union_bound():
    found = some([gate(0.2), gate(0.3, 0.05)])
    f = np.linspace(0, 1, 11)
    missed = stats.norm.cdf((0.2 - f) / 0.1) + stats.norm.cdf((0.3 - f) / 0.05)
    np.testing.assert_allclose(found.recall(f), np.clip(1 - missed, 0, 1))
    assert found.recall(0.4) == pytest.approx(1 - missed[4])
    assert isinstance(found.recall(0.4), float)
    assert found.recall(np.zeros((2, 3))).shape == (2, 3)
    assert (np.diff(found.recall(f)) >= 0).all()


def test_complete_above_is_where_recall_is_the_confidence():
    found = some([gate(0.2), gate(0.3, 0.05)])
    above = found.complete_above
    assert found.recall(above) == pytest.approx(0.95, abs=1e-9)
    assert found.recall(above) >= 0.95
    assert found.recall(above - 1e-9) < 0.95
    assert some([gate(0.9)]).complete_above == math.inf
    assert some([gate(-np.inf)]).complete_above == pytest.approx(0, abs=1e-15)
    assert some([gate(0.2)], confidence=0.99).complete_above > some([gate(0.2)]).complete_above


def test_no_reports_say_nothing():
    found = some(items=(), frequencies=())
    assert len(found) == 0
    assert found.recall(1.0) == 0
    assert found.recall(np.ones(3)).tolist() == [0, 0, 0]
    assert found.complete_above == math.inf
    assert found.significant.shape == (0,)
    assert found.statement == "1000 reports are too few: anything may have been missed."
    assert found.table().splitlines()[-1] == found.statement
    assert repr(found) == f"<0 items found. {found.statement}>"


def test_what_may_be_noise_is_marked():
    found = some([gate(0.05, 0.01)])
    assert found.significant.tolist() == [True, False]
    lines = found.table().splitlines()
    assert len(lines) == 4
    assert "may be noise" not in lines[1]
    assert lines[2].endswith("may be noise")
    assert lines[3] == found.statement
    assert (
        found.statement
        == f"From 1000 reports: an item held by {found.complete_above:.3%} of the users or more is"
        " listed with probability 95%; rarer ones may be missing; 1 of the 2 listed may be"
        " noise."
    )
    assert repr(found) == f"<2 items found. {found.statement}>"
    assert "no frequency is high enough" in some([gate(0.9)]).statement


def test_a_high_confidence_is_not_certainty():
    assert "100%" not in some([gate(0.05, 0.01)], confidence=0.999).statement


def test_strings_are_shown_as_such():
    found = some([gate(0.05, 0.01)], items=("it's\n", "日本"))
    lines = found.table().splitlines()
    assert len(lines) == 4
    assert repr("it's\n") in lines[1]
    assert repr("日本") in lines[2]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_lists_are_consistent(name):
    """Sorted, distinct, with intervals around estimates, and with everything above a threshold and
    nothing below.
    """
    protocol = PROTOCOLS[name]()
    aggregate = protocol.aggregate(
        protocol.privatize(np.repeat([3, 200], [3000, 1000]), np.random.default_rng(1))
    )
    everything = protocol.find(aggregate, threshold=0.0)
    for options in (
        {"k": 1},
        {"k": 2},
        {"k": 5},
        {"threshold": 0.0},
        {"threshold": 0.3},
        {"k": 2, "threshold": 0.3},
        {},
    ):
        found = protocol.find(aggregate, **options)
        assert (
            len(found)
            == len(found.items)
            == len(found.frequencies)
            == len(found.variances)
            == len(found.intervals.low)
        )
        assert len(set(found.items.tolist())) == len(found)
        assert (np.diff(found.frequencies) <= 0).all()
        assert (found.frequencies >= options.get("threshold", -np.inf)).all()
        assert len(found) <= options.get("k", math.inf)
        assert (found.intervals.low <= found.frequencies).all()
        assert (found.intervals.high >= found.frequencies).all()
        assert (found.variances > 0).all()
        assert found.n == 4000
        assert found.confidence == 0.95
        assert "item" in found.table()
        assert 0 <= found.recall(0.5) <= 1
        if options == {"threshold": 0.3}:
            assert found.items.tolist() == [
                item
                for item, f in zip(everything.items, everything.frequencies, strict=True)
                if f >= 0.3
            ]
    sure = protocol.find(aggregate, threshold=0.0, confidence=0.999)
    assert sure.items.tolist() == everything.items.tolist()
    assert (
        sure.intervals.high - sure.intervals.low
        > everything.intervals.high - everything.intervals.low
    ).all()
    assert sure.noise > everything.noise


def test_intervals_by_hand():
    """At level 1 - (1 - confidence) k / considered, and as much wider than normal ones as binomial
    tails reach further.
    """
    protocol = PrefixExtension(8, 2.0)
    found = protocol.find(
        protocol.privatize(np.arange(3000) % 3, np.random.default_rng(1)), k=3, confidence=0.9
    )
    oracle = protocol.channel.parts[0]
    assert isinstance(oracle, GRR | OLH)
    p, q = float(oracle.p), float(oracle.q)

    def reach(alpha: float) -> float:
        return (stats.binom.isf(alpha, 3000, q) / 3000 - q) / (p - q)

    zero = math.sqrt(float(oracle.variance(3000, 0.0)))
    level = 0.1 * 3 / 256 / 2
    half = max(stats.norm.isf(level), reach(level) / zero) * np.sqrt(found.variances)
    np.testing.assert_allclose(found.intervals.high - found.frequencies, half)
    np.testing.assert_allclose(found.frequencies - found.intervals.low, half)
    assert stats.norm.isf(level) * zero < reach(level) < 1.1 * stats.norm.isf(level) * zero
    assert found.noise == pytest.approx(reach(0.1 / 256))
    assert found.considered == 256
    assert found.recall(0.999) < 1 or vars(found.gates[-1])["cut"] == found.frequencies[-1]


# -------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("name", PROTOCOLS)
def test_wrong_arguments(name):
    """Before any work: also when there are no reports at all."""
    protocol = PROTOCOLS[name]()
    empty = np.zeros(0, dtype=protocol.report_dtype)
    for k in (0, -1, True, False, 1.0, "3", math.nan, [1]):
        with pytest.raises(ValueError, match="k must be a number of items"):
            protocol.find(empty, k=k)
    for threshold in (-0.1, 2, 1.0001, math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="threshold must be a fraction"):
            protocol.find(empty, threshold=threshold)
    for confidence in (0, 1, -1, 2, math.nan, math.inf, True):
        with pytest.raises(ValueError, match="confidence must lie strictly"):
            protocol.find(empty, confidence=confidence)
    for reports in (
        None,
        [],
        [1, 2],
        np.zeros(3),
        "reports",
        np.zeros((1, 1), dtype=protocol.report_dtype),
    ):
        with pytest.raises((InvalidReport, TypeError)):
            protocol.find(reports)
    for one in (np.int64(1), 1):
        assert len(protocol.find(empty, k=one, threshold=0, confidence=0.5)) == 0


@pytest.mark.parametrize(
    "wrong", [{"threshold": "x"}, {"confidence": "x"}, {"confidence": None}], ids=str
)
def test_what_is_no_number_is_a_value_error(wrong):
    protocol = PrefixExtension(8, 1.0)
    with pytest.raises(ValueError, match="must"):
        protocol.find(protocol.privatize([1]), **wrong)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_strings_are_no_integers_and_the_reverse(name):
    with pytest.raises(InvalidValue):
        PROTOCOLS[name]().privatize(["a", "b"])
    with pytest.raises(InvalidValue):
        PROTOCOLS[name](text=True).privatize([1, 2])


@pytest.mark.parametrize("name", PROTOCOLS)
def test_reports_of_strings_are_not_those_of_integers(name):
    words, numbers = PROTOCOLS[name](text=True), PROTOCOLS[name]()
    message = words.reports_to_bytes(words.privatize(["a"]))
    with pytest.raises(InvalidReport):
        numbers.reports_from_bytes(message)


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "one bit"])
def test_values_like_any_other(name):
    """Frozen, comparable, hashable; and equal protocols have equal parameters."""
    protocol, same = PROTOCOLS[name](), PROTOCOLS[name]()
    protocol.find(protocol.privatize([1, 2, 3]), k=1)
    assert protocol == same
    assert hash(protocol) == hash(same)
    assert protocol != PROTOCOLS[name](text=True)
    assert protocol.parameters == same.parameters
    assert protocol.parameters != PROTOCOLS[name](text=True).parameters
    for attribute in ("bits", "epsilon", "seed", "anything"):
        with pytest.raises(AttributeError):
            setattr(protocol, attribute, 1)
    for rng in (0, np.random.RandomState(0), "seed"):
        with pytest.raises(TypeError, match="Generator"):
            protocol.privatize([1], rng)


def test_figure():
    protocol = PrefixExtension(8, 2.0)
    found = protocol.find(protocol.privatize(np.arange(3000) % 3, np.random.default_rng(1)), k=5)
    (axes,) = plot.heavy_hitters(found, {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, largest=3).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        str(item) for item in found.items[:3]
    ]
    assert "3 most frequent of 5" in axes.get_title(loc="left")
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.heavy_hitters(found, largest=0)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.heavy_hitters(protocol.find(np.zeros(0, dtype=protocol.report_dtype)))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_lists_can_be_pickled(name):
    protocol = PROTOCOLS[name]()
    found = protocol.find(protocol.privatize([1] * 50, np.random.default_rng(1)), k=2)
    again = pickle.loads(pickle.dumps(found))
    assert again.statement == found.statement
    assert again.recall(0.3) == found.recall(0.3)


def test_a_promise_is_told():
    protocol = UniqueHeavyHitter(8, 2.0)
    statement = protocol.find(
        protocol.privatize([3] * 500 + [9] * 500, np.random.default_rng(1))
    ).statement
    assert "if all who hold an item hold the same one" in statement


@pytest.mark.slow
def test_any_number_of_items_may_be_asked_for():
    protocol = PrefixExtension(24, 3.0, lengths=(8, 16, 24))
    found = protocol.find(protocol.privatize([77] * 5000, np.random.default_rng(1)), k=10**9)
    assert found.items[0] == 77
    assert len(found) < 1 << 25
