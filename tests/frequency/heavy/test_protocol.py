"""Protocols for heavy hitters are values, and refuse wrong arguments before any work."""

import math

import numpy as np
import pytest

from frequency import InvalidReport, InvalidValue
from frequency.heavy import PrefixExtension
from tests.frequency.heavy.examples import PROTOCOLS


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
