"""Two rounds for sets of items."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from frequency import InvalidValue
from rangeq import ItemSets


def population(users: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Three sets, one of them empty, each held by a third."""
    kinds = [np.array([3, 9, 20]), np.array([9]), np.array([], dtype=np.int64)]
    return [kinds[k] for k in rng.integers(0, 3, users)]


def test_slots_are_uniform_over_the_padded_set() -> None:
    sets = ItemSets(domain=32, epsilon=2.0, size=4, heavy=2)
    rng = np.random.default_rng(1)
    drawn = sets.sampled([[3, 9, 20]] * 40_000, rng)
    # Four slots of a quarter each; beyond 5.5 sigma of 40,000: 4e-8.
    for item in (3, 9, 20, 32):
        assert (drawn == item).mean() == pytest.approx(0.25, abs=5.5 * math.sqrt(0.1875 / 40_000))
    again = sets.sampled_again([[3, 9, 20]] * 40_000, [9, 31], rng)
    assert set(np.unique(again)) == {9, 32}
    assert (again == 9).mean() == pytest.approx(0.5, abs=5.5 * 0.5 / 200)
    large = sets.sampled([list(range(8))] * 40_000, rng)
    assert np.bincount(large, minlength=33)[:8] / 40_000 == pytest.approx(
        np.full(8, 1 / 8), abs=5.5 * math.sqrt(0.11 / 40_000)
    )
    assert (large < 8).all()


def test_two_rounds_find_and_estimate_the_heavy_items() -> None:
    rng = np.random.default_rng(2)
    held = population(60_000, rng)
    protocol = ItemSets(domain=32, epsilon=6.0, size=3, heavy=3)
    first = protocol.first
    estimate = first.estimate(first.aggregate(first.privatize(protocol.sampled(held, rng), rng)))
    frequent = protocol.frequent(estimate)
    assert frequent.tolist() == [3, 9, 20]
    second = protocol.second
    answer = second.estimate(
        second.aggregate(second.privatize(protocol.sampled_again(held, frequent, rng), rng))
    )
    found = protocol.distribution(answer, frequent)
    # A range's deviation is 3 times that of the protocol, about 0.02 here; 0.12 is six of them.
    assert found.range(0, 31) == pytest.approx(4 / 3, abs=0.12)
    assert found.range(4, 15) == pytest.approx(2 / 3, abs=0.12)
    assert found.range(10, 19) == 0
    # Both reports together keep the budget.
    assert (
        first.audit().ratio * second.audit().ratio <= first.audit().allowed * second.audit().allowed
    )
    assert float(first.audit().allowed * second.audit().allowed) <= math.exp(6.0)


def test_odd_sets_and_bad_input() -> None:
    protocol = ItemSets(domain=5, epsilon="1", size=2, heavy=9)
    assert protocol.sampled([]).shape == (0,)
    assert protocol.sampled([[], [2, 2, 2]]).tolist()[0] == 5  # repeated items count once
    with pytest.raises(InvalidValue):
        protocol.sampled([[0], [5]])
    with pytest.raises(InvalidValue):
        protocol.sampled_again([[0]], [5])
    empty = protocol.first.estimate(protocol.first.aggregate(protocol.first.privatize([])))
    assert protocol.frequent(empty).tolist() == [0, 1, 2, 3, 4]
    for wrong in ({"domain": 0}, {"size": 0}, {"heavy": True}, {"size": 1.5}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ItemSets(**{"domain": 5, "epsilon": 1.0, "size": 2, "heavy": 3, **wrong})


def test_both_reports_are_proved_together() -> None:
    """Each has half of epsilon; a report more, or one at epsilon itself, is refused."""
    proof = ItemSets(domain=16, epsilon=1.0, size=4, heavy=3).proof()
    assert proof.verify()
    assert [of.share for of in proof.parts] == [Fraction(1, 2)] * 2
    assert not replace(proof, parts=proof.parts[:1]).holds
    assert not replace(proof, parts=(*proof.parts, proof.parts[0])).holds
    whole = proof.parts[0]._replace(share=Fraction(1))
    assert not replace(proof, parts=(whole, proof.parts[1])).holds
