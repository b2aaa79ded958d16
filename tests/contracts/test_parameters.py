"""What every protocol and mechanism publishes, and how it is made: privacy, parameters, layouts."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from frequency import GRR
from frequency.core.protocol import channel_of
from mechdesign import Audit
from tests.contracts.examples import CENTRAL, COLLECTED, WITH_VALUES
from tests.contracts.oracle import exponential_below

EVERYTHING = [*(protocol for protocol, _ in COLLECTED), *CENTRAL]
everything = pytest.mark.parametrize(
    "made", EVERYTHING, ids=[f"{k}-{type(made).__name__}" for k, made in enumerate(EVERYTHING)]
)


def epsilon_of(made):
    """The privacy loss that was asked for, as an exact number or a float."""
    epsilon = made.epsilon if hasattr(made, "epsilon") else channel_of(made).epsilon
    return epsilon if isinstance(epsilon, float) else Fraction(epsilon)


def arguments_of(made):
    """What it was made with."""
    return {name: getattr(made, name) for name in inspect.signature(type(made)).parameters}


def check_privacy(made):
    """What is sampled is allowed, and what is allowed is at most exp(epsilon)."""
    audit = made.audit()
    assert isinstance(audit, Audit)
    assert isinstance(audit.ratio, Fraction)
    assert isinstance(audit.allowed, Fraction)
    assert audit.holds
    assert 1 <= audit.ratio <= audit.allowed <= exponential_below(epsilon_of(made))
    assert audit.allowed == 1 / made.privacy.alpha
    assert math.log(audit.allowed) >= float(epsilon_of(made)) * (1 - 1e-6)
    assert made.audit() == audit


def check_published(protocol):
    """Parameters are JSON, the same for client and server; reports have a packed layout."""
    channel, parameters, dtype = channel_of(protocol), protocol.parameters, protocol.report_dtype
    assert json.loads(json.dumps(parameters, allow_nan=False)) == parameters
    name = parameters.get("protocol") or parameters["system"]
    assert name in (type(protocol).__name__, channel._protocol_name)
    assert json.loads(channel.signature) == channel.parameters
    assert parameters == channel.parameters or parameters["channel"] == channel.parameters
    assert Fraction(channel.parameters["alpha"]) == 1 / protocol.max_ratio == protocol.privacy.alpha
    assert dtype == channel.report_dtype
    assert dtype.names
    assert dtype.itemsize == sum(dtype[name].itemsize for name in dtype.names)
    assert all(dtype[name].base.str[0] in "<|" for name in dtype.names)
    assert 0 <= protocol.report_bits <= 8 * dtype.itemsize
    assert isinstance(protocol.report_bits, int)
    assert all(type(length) is int for length in channel.counts_shape)


def check_frozen(made):
    """No parameter can be changed, and what is computed along the way is no part of a protocol."""
    before = repr(made)
    for name in (*(field.name for field in dataclasses.fields(made)), "anything", "_private"):
        with pytest.raises(AttributeError):
            setattr(made, name, 1)
        with pytest.raises(AttributeError):
            delattr(made, name)
    assert repr(made) == before
    assert type(made).__name__ in before
    again = type(made)(**arguments_of(made))
    made.audit()
    assert again == made
    assert hash(again) == hash(made)


def numpy_integers(value, kind):
    """The same with the integers of numpy, those that this type can hold."""
    if type(value) is int:
        return kind(value) if np.iinfo(kind).min <= value <= np.iinfo(kind).max else value
    if type(value) in (tuple, list):
        return type(value)(numpy_integers(each, kind) for each in value)
    if type(value) is dict:
        return {name: numpy_integers(each, kind) for name, each in value.items()}
    return value


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
@everything
def test_the_integers_of_numpy_make_the_same(made, kind):
    given = arguments_of(made)
    again = type(made)(**numpy_integers(given, kind))
    assert again == made
    assert repr(again) == repr(made)
    assert hash(again) == hash(made)
    assert repr(arguments_of(again)) == repr(given)


def check_epsilon(made):
    """Exact numbers and floats are taken, and nothing else."""
    given = arguments_of(made)
    if "epsilon" not in given:
        return  # it is that of what it is made from
    for wrong in (0, 0.0, -1, -1e-300, math.nan, math.inf, -math.inf, None, "much", True, [1.0]):
        with pytest.raises((ValueError, TypeError), match="epsilon"):
            type(made)(**{**given, "epsilon": wrong})
    exact = Fraction(epsilon_of(made))
    same = type(made)(**{**given, "epsilon": exact})
    assert same.privacy == made.privacy
    assert same.audit().allowed == made.audit().allowed
    if not isinstance(made.epsilon, float):
        return
    assert type(made)(**{**given, "epsilon": np.float64(made.epsilon)}).privacy == made.privacy


@everything
def test_privacy(made):
    check_privacy(made)


@everything
def test_frozen(made):
    check_frozen(made)


@everything
def test_epsilon(made):
    check_epsilon(made)


@WITH_VALUES
def test_published(protocol, values):
    check_published(protocol)


class Leaky(GRR):
    """Allows itself more than it says."""

    def audit(self):
        found = super().audit()
        return Audit(found.ratio * 2, found.allowed, found.output, found.inputs)


class Generous(GRR):
    """Claims more than epsilon."""

    @property
    def max_ratio(self):
        return 2 * super().max_ratio


class Trusting(GRR):
    """Takes what is no epsilon."""

    def __post_init__(self):
        if self.epsilon:
            super().__post_init__()


def test_planted_errors_are_found():
    honest = GRR(5, 1.0)
    for check in (check_privacy, check_frozen, check_epsilon, check_published):
        check(honest)
    with pytest.raises(AssertionError):
        check_privacy(Leaky(5, 1.0))
    with pytest.raises(AssertionError):
        check_published(Generous(5, 1.0))
    with pytest.raises(pytest.fail.Exception):
        check_frozen(dataclasses.make_dataclass("Loose", ["domain"])(5))
    with pytest.raises(pytest.fail.Exception):
        check_epsilon(Trusting(5, 1.0))
