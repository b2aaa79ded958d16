"""A mechanism: its copies, its text, its properties, and what it refuses to release."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import Mechanism, Privacy, PrivacyViolation, design, named
from mechdesign.losses import L0
from tests.mechdesign.programs import HALF

BIG = 10**400


@pytest.mark.parametrize(
    "twin",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies(twin):
    for mechanism in (
        design(2, Privacy(alpha="9/10", neighbours="all"), L0(), ["WH"]).mechanism,
        named.uniform(3),
    ):
        # Cached values must not get in the way
        mechanism.audit(), mechanism.matrix, mechanism.release([0])
        other = twin(mechanism)
        assert other == mechanism
        assert hash(other) == hash(mechanism)
        assert other.certificate == mechanism.certificate
        assert other.certificate is None or other.certificate.verify(other)


def test_the_certificate_is_not_part_of_equality():
    found = design(2, HALF).mechanism
    assert found.certificate is not None
    assert found == Mechanism(found.table, HALF)


def test_repr_says_what_matters():
    assert (
        repr(named.geometric(2, alpha="1/2"))
        == "<Mechanism 3x3, Privacy(alpha=1/2, neighbours='adjacent'), private; properties: RH RM"
        " CH CM WH S>"
    )
    assert "NOT PRIVATE" in repr(Mechanism([[1, 0], [0, 1]], HALF))
    assert "properties: none" in repr(Mechanism([[0, "1/2"], [1, "1/4"], [0, "1/4"]], HALF))


def test_properties_of_rectangular_tables():
    holds = Mechanism([["1/4", "1/4"], ["1/2", "1/2"], ["1/4", "1/4"]], HALF).properties()
    assert holds == {
        "RH": True,
        "RM": True,
        "CH": False,
        "CM": False,
        "F": False,
        "WH": False,
        "S": True,
    }
    narrow = Mechanism([["1/2"] * 3] * 2, HALF).properties()  # where 2 is never the answer
    assert [name for name, held in narrow.items() if held] == ["S"]


@pytest.mark.parametrize(
    "table",
    [
        [[1, 0], [0, 1]],
        [["3/4", "1/4"], ["1/4", "3/4"]],
        [
            [Fraction(2, 3) + Fraction(1, 10**30), "1/3"],
            [Fraction(1, 3) - Fraction(1, 10**30), "2/3"],
        ],
    ],
    ids=["infinite", "three", "barely"],
)
def test_release_refuses_and_draws_nothing(table, monkeypatch):
    mechanism = Mechanism(table, HALF)
    rng = np.random.default_rng(5)
    before = rng.bit_generator.state
    monkeypatch.setattr(
        "mechdesign.base.numbers.os.urandom",
        lambda size: pytest.fail("randomness was drawn"),
    )
    for source in (rng, None):
        with pytest.raises(PrivacyViolation, match="not private") as caught:
            mechanism.release([0, 1], source)
    assert rng.bit_generator.state == before
    error = caught.value
    assert error.ratio == mechanism.audit().ratio
    assert error.allowed == 2
    assert (error.output, error.inputs) == (mechanism.audit().output, mechanism.audit().inputs)


@pytest.mark.parametrize(
    ("table", "alpha"),
    [
        ([[Fraction(1, BIG), "1/2"], [1 - Fraction(1, BIG), "1/2"]], "1/2"),
        ([[0, "1/2"], [1, "1/2"]], Fraction(1, BIG)),
    ],
    ids=["ratio", "allowed"],
)
def test_release_refuses_ratios_beyond_floats(table, alpha):
    with pytest.raises(PrivacyViolation):
        Mechanism(table, Privacy(alpha=alpha)).release([0])


def test_a_mechanism_cannot_be_initialised_again():
    mechanism = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/2"))
    assert mechanism.audit().holds
    with pytest.raises(AttributeError, match="immutable"):
        Mechanism.__init__(mechanism, [[1, 0], [0, 1]], Privacy(alpha="1/2"))
    assert mechanism.table[0][0] == Fraction(2, 3)
