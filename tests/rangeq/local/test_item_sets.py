"""Users with sets of items: one round with any protocol, and two rounds."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, OUE, IncompatibleAggregate, InvalidValue
from frequency.core.aggregate import Aggregate
from rangeq import (
    Between,
    Flat,
    HaarHRR,
    HierarchicalHistogram,
    ItemSets,
    PaddedSets,
    best_size,
)
from tests.goodness_of_fit import FALSE_ALARM

BASES: list[Any] = [
    GRR(13, 3.0),
    OUE(13, 3.0),
    HaarHRR(13, 3.0),
    HierarchicalHistogram(13, 3.0, 2, "OLH"),
    Flat(13, 3.0),
]
KINDS = [[3, 9, 11], [9], [], [0, 3, 4, 5, 11]]


def named(protocol: object) -> str:
    return type(protocol).__name__


def population(users: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Three sets, one of them empty, each held by a third."""
    kinds = [np.array([3, 9, 20]), np.array([9]), np.array([], dtype=np.int64)]
    return [kinds[k] for k in rng.integers(0, 3, users)]


def slots_of(items: list[int], size: int, kept: tuple[int, ...] | None = None) -> np.ndarray:
    """By definition: the chance that each of 12 items, or an empty slot, is reported on."""
    own = sorted({item for item in items if kept is None or item in kept})
    chances = np.zeros(13)
    chances[own] = 1 / max(len(own), size)
    chances[12] = 1 - chances.sum()
    return chances


def in_slots(protocol: PaddedSets, sets: list[Any], rng: np.random.Generator) -> np.ndarray:
    """What is reported on: with so large an epsilon that reports are true."""
    return protocol.privatize(sets, rng)["item"].astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [None, (3, 5, 9)])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("items", KINDS, ids=str)
def test_slots_are_uniform_over_the_padded_set(items, size, kept) -> None:
    protocol, users = PaddedSets(GRR(13, 40), size, kept), 20_000
    drawn = in_slots(protocol, [items] * users, np.random.default_rng(1))
    found, law = np.bincount(drawn, minlength=13), slots_of(items, size, kept)
    assert not found[law == 0].any()
    some = law > 0
    if some.sum() > 1:
        assert stats.chisquare(found[some], users * law[some]).pvalue > FALSE_ALARM
        other = np.linspace(0.9, 1.1, some.sum()) * law[some]
        assert stats.chisquare(found[some], users * other / other.sum()).pvalue < FALSE_ALARM
    simulated = protocol.simulate([users], np.random.default_rng(2), [items]).counts
    assert not simulated[law == 0].any()
    if some.sum() > 1:
        assert stats.chisquare(simulated[some], users * law[some]).pvalue > FALSE_ALARM


def test_users_of_all_sizes_are_drawn_from_their_own_sets() -> None:
    protocol, rng = PaddedSets(GRR(13, 40), 3), np.random.default_rng(3)
    sets = [KINDS[k] for k in rng.integers(0, 4, 5000)]
    for items, slot in zip(sets, in_slots(protocol, sets, rng), strict=True):
        assert slot in items or (slot == 12 and len(items) < 3)
    # Sets of sets, arrays and repeated items are the same
    same = [{9, 3, 11}, np.array([11, 9, 3]), (3, 3, 9, 11, 11)]
    rows = protocol.channel.items_of(same)
    assert rows.tolist() == [[3, 9, 11]] * 3


@pytest.mark.parametrize("base", BASES, ids=named)
@pytest.mark.parametrize("kept", [None, (3, 9, 10)])
def test_estimates_are_unbiased_with_the_variances_told(base, kept) -> None:
    """Users are drawn anew each time: the variances are those of random users."""
    protocol, rng, n = PaddedSets(base, 5, kept), np.random.default_rng(4), 3000
    shares = np.array([0.3, 0.3, 0.2, 0.2])
    truth = np.zeros(12)
    for items, share in zip(KINDS, shares, strict=True):
        truth[[item for item in items if kept is None or item in kept]] += share
    asked: list[Any] = [3, 9, Between(2, 9), Between(0, 11), [0, 9, 11]]
    right = [truth[3], truth[9], truth[2:10].sum(), truth.sum(), truth[[0, 9, 11]].sum()]
    scores, covered = [], []
    for _ in range(60):
        estimate = protocol.estimate(protocol.simulate(rng.multinomial(n, shares), rng, KINDS))
        answers = [estimate.answer(where) for where in asked]
        scores.append(
            [(a.value - t) / math.sqrt(a.variance) for a, t in zip(answers, right, strict=True)]
        )
        covered.append(
            [a.interval(0.95).low <= t <= a.interval(0.95).high
             for a, t in zip(answers, right, strict=True)]
        )  # fmt: skip
    # Of each of five answers 60 nearly normal scores: means beyond 0.7 and mean squares outside
    # 0.35 .. 2.3 have chances below 1e-6.
    assert np.abs(np.mean(scores, axis=0)).max() < 0.7
    assert np.mean(np.square(scores), axis=0).min() > 0.35
    assert np.mean(np.square(scores), axis=0).max() < 2.3
    assert np.mean(covered) > 0.85
    # Without the factor of the padding the scores would be far off
    wrong = [(answer.value / 5 - t) for answer, t in zip(answers, right, strict=True)]
    assert abs(wrong[3]) > 3 * math.sqrt(answers[3].variance)


def test_questions_agree_with_each_other() -> None:
    protocol = PaddedSets(HaarHRR(13, 2.0), 3, (0, 4, 5, 11))
    estimate = protocol.estimate(protocol.simulate([500] * 4, np.random.default_rng(5), KINDS))
    assert estimate.frequencies[[1, 2, 3]].tolist() == [0, 0, 0]
    first, last = np.array([0, 2, 4]), np.array([11, 3, 5])
    many = estimate.answer(Between(first, last))
    for k in range(3):
        one = estimate.answer(Between(int(first[k]), int(last[k])))
        assert many.value[k] == pytest.approx(one.value)
        assert many.variance[k] == pytest.approx(one.variance)
    assert estimate.range(2, 3) == 0
    assert estimate.answer(Between(2, 3)).variance == pytest.approx(0, abs=1e-18)
    assert estimate.range(0, 11) == pytest.approx(estimate.frequencies.sum())
    weights = np.arange(12.0)
    assert estimate.linear(weights).value == pytest.approx(weights @ estimate.frequencies)
    assert estimate.linear(np.eye(12)).value == pytest.approx(estimate.frequencies)


def test_messages_and_merging() -> None:
    protocol, rng = PaddedSets(HaarHRR(13, 1.0), 4), np.random.default_rng(6)
    reports = protocol.privatize(KINDS * 50, rng)
    whole = protocol.aggregate(reports)
    parts = protocol.aggregate(reports[:70]) + protocol.aggregate(reports[70:])
    assert parts == whole
    assert protocol.aggregate_from_bytes(whole.to_bytes()) == whole
    assert (protocol.reports_from_bytes(protocol.reports_to_bytes(reports)) == reports).all()
    # Another size, other items and the protocol itself are other protocols
    for other in (PaddedSets(HaarHRR(13, 1.0), 5), PaddedSets(HaarHRR(13, 1.0), 4, (1,))):
        with pytest.raises(IncompatibleAggregate):
            other.estimate(whole)
    with pytest.raises(IncompatibleAggregate):
        protocol.protocol.estimate(whole)
    with pytest.raises(IncompatibleAggregate):
        protocol.estimate(Aggregate(whole.parameters, whole.n + 1, whole.counts))
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert protocol.audit().ratio == protocol.protocol.audit().ratio
    assert protocol.audit().holds


def test_no_users_and_no_items() -> None:
    protocol = PaddedSets(HaarHRR(13, 1.0), 2)
    none = protocol.estimate(protocol.aggregate(protocol.privatize([])))
    assert np.isnan(none.range(0, 3))
    assert none.answer(3).variance == math.inf
    idle = PaddedSets(GRR(13, 40), 2)
    estimate = idle.estimate(idle.aggregate(idle.privatize([[]] * 9, np.random.default_rng(7))))
    assert np.allclose(estimate.frequencies, 0, atol=1e-9)
    smallest = PaddedSets(GRR(2, 40), 1)
    sets: list[list[int]] = [[0], [], [0]]
    found = smallest.estimate(smallest.aggregate(smallest.privatize(sets)))
    assert found.answer(0).value == pytest.approx(2 / 3)


def test_sets_that_are_too_large_lose_items_in_proportion() -> None:
    protocol = PaddedSets(GRR(13, 40), 2)
    estimate = protocol.estimate(protocol.simulate([100_000], np.random.default_rng(8), [KINDS[3]]))
    assert estimate.range(0, 11) == pytest.approx(2)
    assert estimate.frequencies[4] == pytest.approx(2 / 5, abs=0.03)


def test_wrong_arguments() -> None:
    for bad, index in (([[0], [12]], (1, 0)), ([[0], [1, -1]], (1, 1)), ([[0.5]], (0, 0))):
        with pytest.raises(InvalidValue) as raised:
            PaddedSets(HaarHRR(13, 1.0), 2).privatize(bad)
        assert raised.value.index == index
    for size in (0, 1.5, True):
        with pytest.raises(ValueError, match="size"):
            PaddedSets(HaarHRR(13, 1.0), size)
    with pytest.raises(InvalidValue):
        PaddedSets(HaarHRR(13, 1.0), 2, (12,))
    with pytest.raises(TypeError, match="int"):
        PaddedSets(13, 2)
    with pytest.raises(ValueError, match="second item"):
        PaddedSets(GRR(1, 1.0), 2)
    estimate = PaddedSets(GRR(13, 1.0), 2).estimate(PaddedSets(GRR(13, 1.0), 2).simulate([1] * 12))
    for weights in (np.ones(13), 1.0, [math.nan] * 12):
        with pytest.raises(ValueError, match="weights"):
            estimate.linear(weights)
    for where in (12, Between(0, 12), Between(3, 1), (1, 3)):
        with pytest.raises(ValueError, match=r"item|range"):
            estimate.answer(where)


# --- the size -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "base", [HierarchicalHistogram(65, 2.0, 4, "OUE"), OUE(65, 2.0)], ids=named
)
@pytest.mark.parametrize("n", [2_000, 2_000_000])
def test_the_best_size_is_about_as_good_as_any(base, n) -> None:
    """For sets that were not in the guess: of other sizes and items, and not alike."""
    guess = stats.poisson(3).pmf(np.arange(16))
    rng = np.random.default_rng(9)
    kinds = [
        np.unique(np.minimum(rng.geometric(0.06, 1 + rng.poisson(2.5)) - 1, 63)).tolist()
        for _ in range(100)
    ]
    lower = np.array([sum(item < 32 for item in items) for items in kinds]).mean()
    held, errors = np.full(100, n // 100), {}
    for size in range(1, 13):
        protocol = PaddedSets(base, size)
        found = [
            protocol.estimate(protocol.simulate(held, rng, kinds)).range(0, 31) for _ in range(10)
        ]
        errors[size] = math.sqrt(np.mean(np.square(np.array(found) - lower)))
    chosen = best_size(base, n, guess)
    assert errors[chosen] < 2 * min(errors.values())
    assert max(errors.values()) > 3 * min(errors.values())


def test_more_users_take_larger_sizes() -> None:
    guess = [1, 4, 6, 4, 2, 1, 1]
    chosen = [best_size(HaarHRR(65, 1.0), n, guess) for n in (100, 10_000, 10**6, 10**9)]
    assert chosen == sorted(chosen)
    assert chosen[0] < 3
    assert chosen[-1] == 6
    assert best_size(HaarHRR(65, 1.0), 10, [1]) == 1  # nobody has anything


@pytest.mark.parametrize("sizes", [[], [0, 0], [1, -1], [math.nan], [[1]]], ids=str)
def test_wrong_sizes(sizes) -> None:
    with pytest.raises(ValueError, match="sizes"):
        best_size(HaarHRR(65, 1.0), 100, sizes)


# --- two rounds -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [{}, {"oracle": "OLH", "ranges": Flat}, {"oracle": GRR, "ranges": HierarchicalHistogram}],
)
def test_two_rounds_find_and_estimate_the_heavy_items(more) -> None:
    rng = np.random.default_rng(2)
    held = population(20_000, rng)
    protocol = ItemSets(domain=32, epsilon=6.0, size=3, heavy=3, **more)
    first = protocol.first
    frequent = protocol.frequent(first.estimate(first.aggregate(first.privatize(held, rng))))
    assert frequent.tolist() == [3, 9, 20]
    second = protocol.second(frequent)
    found = second.estimate(second.aggregate(second.privatize(held, rng)))
    # Six deviations
    for where, truth in ((Between(0, 31), 4 / 3), (Between(4, 15), 2 / 3)):
        answer = found.answer(where)
        assert abs(answer.value - truth) < 6 * math.sqrt(answer.variance) < 0.5
    assert found.range(10, 19) == 0
    # Both reports together keep the budget.
    assert (
        first.audit().ratio * second.audit().ratio <= first.audit().allowed * second.audit().allowed
    )
    assert float(first.audit().allowed * second.audit().allowed) <= math.exp(6.0)


def test_odd_sets_and_bad_input() -> None:
    protocol = ItemSets(domain=5, epsilon="1", size=2, heavy=9)
    empty = protocol.first.estimate(protocol.first.aggregate(protocol.first.privatize([])))
    assert protocol.frequent(empty).tolist() == [0, 1, 2, 3, 4]
    assert protocol.second([3, 1]).kept == (1, 3)
    assert protocol.second([3, 1]).size == 2
    with pytest.raises(InvalidValue):
        protocol.second([5])
    for wrong in ({"domain": 0}, {"size": 0}, {"heavy": True}, {"size": 1.5}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ItemSets(**{"domain": 5, "epsilon": 1.0, "size": 2, "heavy": 3, **wrong})
    with pytest.raises(ValueError, match="oracle"):
        ItemSets(5, 1.0, 2, 3, oracle="nothing")


def test_both_reports_are_proved_together() -> None:
    """Each has half of epsilon; a report more, or one at epsilon itself, is refused."""
    proof = ItemSets(domain=16, epsilon=1.0, size=4, heavy=3).proof()
    assert proof.verify()
    assert [of.share for of in proof.parts] == [Fraction(1, 2)] * 2
    assert not replace(proof, parts=proof.parts[:1]).holds
    assert not replace(proof, parts=(*proof.parts, proof.parts[0])).holds
    whole = proof.parts[0]._replace(share=Fraction(1))
    assert not replace(proof, parts=(whole, proof.parts[1])).holds
