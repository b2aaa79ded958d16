"""Every protocol of every package is itself again after a file, a pickle and a copy."""

from __future__ import annotations

import copy
import inspect
import json
import pickle

import numpy as np
import pytest

from frequency.core.channel import Channel
from frequency.core.protocol import Protocol, channel_of
from frequency.marginals import Domain, InpHTCMS, InpOLH, InpPS, InpRR
from frequency.storage.protocol_file import load_protocol, save_protocol
from rangeq import central
from tests.contracts.examples import CENTRAL, COLLECTED, DOMAIN, PACKAGES, PROTOCOLS

protocols = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__)


def public(package, *bases):
    return {
        kind
        for kind in (getattr(package, name) for name in package.__all__)
        if isinstance(kind, type) and issubclass(kind, bases)
    }


def test_every_public_protocol_is_here() -> None:
    kinds = set().union(*(public(package, Channel, Protocol) for package in PACKAGES))
    known = {kind for kind in kinds if not inspect.isabstract(kind)}
    assert known == {type(protocol) for protocol in PROTOCOLS}
    assert known == {type(protocol) for protocol, _ in COLLECTED}
    kinds = public(central, central.CentralMechanism) - {central.CentralMechanism}
    assert kinds == set(map(type, CENTRAL))


def same(one, two):
    assert two == one
    assert type(two) is type(one)
    assert hash(two) == hash(one)
    assert repr(two) == repr(one)


@protocols
def test_files_pickles_and_copies(protocol, tmp_path) -> None:
    save_protocol(tmp_path / "protocol.json", protocol)
    again = (
        load_protocol(tmp_path / "protocol.json"),
        pickle.loads(pickle.dumps(protocol)),
        copy.copy(protocol),
        copy.deepcopy(protocol),
    )
    for other in again:
        same(protocol, other)
        mine, theirs = channel_of(protocol), channel_of(other)
        same(mine, theirs)
        assert theirs.signature == mine.signature
        assert other.audit() == protocol.audit()
        empty = np.zeros(0, dtype=mine.report_dtype)
        assert protocol.aggregate(empty) + other.aggregate(empty) == protocol.aggregate(empty)


@protocols
def test_equal_channels_have_equal_signatures(protocol) -> None:
    """A channel is what it is compared by: made anew from its fields it has the same parameters."""
    channel = channel_of(protocol)
    fields = {name: getattr(channel, name) for name in inspect.signature(type(channel)).parameters}
    again = type(channel)(**fields)
    same(channel, again)
    assert again.signature == channel.signature
    assert json.loads(json.dumps(again.parameters)) == json.loads(channel.signature)


@protocols
def test_others_are_not_equal(protocol, tmp_path) -> None:
    save_protocol(tmp_path / "protocol.json", protocol)
    content = json.loads((tmp_path / "protocol.json").read_text())
    assert protocol != content
    for other in PROTOCOLS:
        assert (other == protocol) == (other is protocol)
        if type(channel_of(other)) is not type(channel_of(protocol)):
            assert channel_of(other).signature != channel_of(protocol).signature


@pytest.mark.parametrize("mechanism", CENTRAL, ids=repr)
def test_mechanisms_of_a_curator(mechanism) -> None:
    for other in (
        pickle.loads(pickle.dumps(mechanism)),
        copy.copy(mechanism),
        copy.deepcopy(mechanism),
    ):
        same(mechanism, other)
        assert other.audit() == mechanism.audit()
        one, two = (
            m.release(np.arange(m.domain), np.random.default_rng(1)) for m in (mechanism, other)
        )
        assert one.counts.tolist() == two.counts.tolist()


def test_channels_of_records_know_their_attributes() -> None:
    """As many records of other attributes are another channel."""
    for kind in (InpRR, InpPS, InpOLH, InpHTCMS):
        one, two = kind(DOMAIN, 2, 0.5).channel, kind(Domain({"a": 2, "b": 3}), 2, 0.5).channel
        assert one != two
        assert one.signature != two.signature
        assert one.parameters["attributes"] == [["age", 3], ["sex", 2]]
