"""Ranges of every attribute of a record, alone or with a given one."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from frequency import GRR, IncompatibleAggregate, InvalidQuestion, InvalidValue
from frequency.marginals import Domain
from rangeq import Between, Flat, HaarHRR, PerAttribute

DOMAIN = Domain({"age": 16, "ill": 2, "pay": 8})
KINDS: list[Any] = [partial(Flat, oracle="GRR"), HaarHRR]


def people(n: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    age = rng.binomial(15, 0.4, n)
    ill = (rng.random(n) < 0.1 + age / 30).astype(int)
    return np.stack([age, ill, rng.binomial(7, 0.3 + 0.3 * ill)], axis=1)


def truth(records: np.ndarray, where: dict[str, Any]) -> float:
    held = np.ones(len(records), dtype=bool)
    for name, asked in where.items():
        values = records[:, DOMAIN.names.index(name)]
        if isinstance(asked, Between):
            held &= (values >= asked.first) & (values <= asked.last)
        else:
            held &= np.isin(values, asked)
    return float(held.mean())


QUESTIONS: list[dict[str, Any]] = [
    {"age": Between(4, 7)},
    {"pay": [0, 3, 7]},
    {"age": Between(0, 15)},
]
GIVEN: list[dict[str, Any]] = [
    *QUESTIONS,
    {"ill": 1},
    {"ill": 1, "age": Between(5, 15)},
    {"ill": 0, "pay": 2},
    {"ill": Between(0, 1), "pay": Between(0, 3)},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [None, "ill"])
def test_estimates_are_unbiased_with_the_variances_told(kind, given) -> None:
    records, rng = people(4000), np.random.default_rng(2)
    domain = DOMAIN if given else Domain({"age": 16, "pay": 8})
    held = records if given else records[:, [0, 2]]
    protocol = PerAttribute.of(domain, 2.0, given, kind)
    asked = GIVEN if given else QUESTIONS
    right = [truth(records, where) for where in asked]
    scores = []
    for _ in range(40):
        estimate = protocol.estimate(protocol.aggregate(protocol.privatize(held, rng)))
        row = []
        for where, true in zip(asked, right, strict=True):
            value, variance = estimate.answer(where)
            row.append((value - true) / math.sqrt(max(variance, 1e-18)))
        scores.append(row)
    sure = np.abs(scores).max(axis=0) < 1e-3  # everybody, and what trees know
    # 40 nearly normal scores: means beyond 0.85 and mean squares outside 0.2 .. 2.7 have chances
    # below 1e-6 each.
    assert np.abs(np.mean(scores, axis=0)).max() < 0.85
    squares = np.mean(np.square(scores), axis=0)[~sure]
    assert squares.min() > 0.2
    assert squares.max() < 2.7
    low, high = estimate.answer({"age": Between(4, 7)}).interval()
    assert low < estimate.answer({"age": Between(4, 7)}).value < high


def test_many_questions_are_answered_as_one() -> None:
    protocol, records = PerAttribute.of(DOMAIN, 3.0, "ill"), people(3000)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(records, np.random.default_rng(3)))
    )
    first, last, ill = np.array([0, 3, 5]), np.array([3, 9, 15]), np.array([0, 1])[:, None]
    many = estimate.answer({"ill": ill, "age": Between(first, last)})
    assert many.value.shape == many.variance.shape == (2, 3)
    for k in range(3):
        one = estimate.answer({"ill": 1, "age": Between(int(first[k]), int(last[k]))})
        assert many.value[1, k] == pytest.approx(one.value)
        assert many.variance[1, k] == pytest.approx(one.variance)
    whole = estimate.answer({"age": Between(0, 9)}).value
    assert estimate.answer(
        {"ill": np.array([0, 1]), "age": Between(0, 9)}
    ).value.sum() == pytest.approx(whole)
    for where in ({"age": 3, "pay": 2}, {"age": 3, "pay": 2, "ill": 1}):
        with pytest.raises(InvalidQuestion, match="nobody reports on"):
            estimate.answer(where)


def test_a_report_is_private_as_a_whole() -> None:
    for given in (None, "ill"):
        protocol = PerAttribute.of(DOMAIN, "1/2", given)
        assert protocol.audit().holds
        assert float(protocol.audit().allowed) <= math.exp(0.5)
        assert protocol.audit().ratio == max(own.audit().ratio for own in protocol.protocols)


def test_few_reports_and_other_protocols() -> None:
    protocol = PerAttribute.of(DOMAIN, 1.0, "ill")
    none = protocol.estimate(protocol.aggregate(protocol.privatize(np.zeros((0, 3), dtype=int))))
    one = protocol.estimate(protocol.aggregate(protocol.privatize([[3, 1, 2]])))
    for where in ({"age": 3}, {"ill": 1}, {"ill": 1, "pay": Between(0, 3)}):
        assert math.isnan(none.answer(where).value)
        assert none.answer(where).variance == math.inf
        assert one.n == 1
        assert one.answer(where).variance >= 0
    with pytest.raises(IncompatibleAggregate):
        PerAttribute.of(DOMAIN, 1.0).estimate(protocol.simulate([1], values=[[0, 0, 0]]))
    with pytest.raises(InvalidValue):
        protocol.privatize([[3, 2, 2]])


def test_wrong_arguments() -> None:
    own = (HaarHRR(32, 1.0), HaarHRR(16, 1.0))
    assert PerAttribute(DOMAIN, own, "ill") == PerAttribute.of(DOMAIN, 1.0, "ill")
    for protocols in (own[:1], (*own, own[0]), own[::-1], (GRR(32, 1.0), own[1]), ()):
        with pytest.raises(ValueError, match="range protocols over"):
            PerAttribute(DOMAIN, protocols, "ill")
    with pytest.raises(ValueError, match="same privacy loss"):
        PerAttribute(DOMAIN, (own[0], HaarHRR(16, 2.0)), "ill")
    with pytest.raises(ValueError, match="range protocols over"):
        PerAttribute(Domain({"ill": 2}), (), "ill")
    for wrong in ("sick", "", 3):
        with pytest.raises(ValueError, match="attributes must be"):
            PerAttribute.of(DOMAIN, 1.0, wrong)
    with pytest.raises(ValueError, match="domain must be"):
        PerAttribute({"age": 3}, own)
    with pytest.raises(ValueError, match="epsilon"):
        PerAttribute.of(DOMAIN, -1.0)
