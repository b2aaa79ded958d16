"""What a list of heavy hitters says of itself."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from frequency.heavy import Found, Gate, UniqueHeavyHitter
from tests.frequency.heavy.examples import PROTOCOLS


def some(gates=(), items=(5, 9), frequencies=(0.4, 0.1), noise=0.2, confidence=0.95):
    f = np.array(frequencies, dtype=float)
    return Found(
        np.array(items),
        f,
        f * 0 + 1e-4,
        lambda confidence: np.full(len(f), 0.02),
        1000,
        256,
        noise,
        confidence,
        tuple(gates),
    )


def gate(cut, deviation=0.1):
    return Gate(cut, lambda f: np.full(np.shape(f), deviation))


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
