"""The table of `choose` agrees with measurement, and its recommendation with its own table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from frequency import GRR, HRR, HadamardCountMeanSketch, ProjectiveGeometry, SubsetSelection, choose
from frequency.core.oracle import Oracle
from frequency.oracles.count_mean_sketch import Sketch


def measured_rmse(
    oracle: Oracle, held: np.ndarray, repeats: int, rng: np.random.Generator
) -> float:
    truth = held / held.sum()
    errors = [
        oracle.estimate(oracle.simulate(held, rng)).frequencies - truth for _ in range(repeats)
    ]
    return math.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize(("domain", "epsilon"), [(5, 1.0), (60, 1.0), (60, 3.0)])
def test_the_predicted_error_is_the_measured_one(domain: int, epsilon: float) -> None:
    rng = np.random.default_rng(5)
    held = rng.multinomial(
        3000, 1 / np.arange(1, domain + 1) / (1 / np.arange(1, domain + 1)).sum()
    )
    candidates = choose(domain, epsilon, n=3000).candidates
    assert len(candidates) == 10
    for item in candidates:
        if isinstance(item.oracle, Sketch):
            continue  # whose prediction is the worst case over populations: see below
        measured = measured_rmse(item.oracle, held, 400 if domain == 5 else 60, rng)
        # At least 2000 squared errors, correlated at D = 5: the ratio has a standard deviation of
        # at most 0.03.
        assert measured == pytest.approx(item.rmse, rel=0.15), type(item.oracle).__name__


@pytest.mark.slow
def test_sketches_are_predicted_at_their_worst() -> None:
    rng = np.random.default_rng(6)
    one_item = np.zeros(50, dtype=np.int64)
    one_item[7] = 3000
    for item in choose(50, 3.0, n=3000).candidates:
        if isinstance(item.oracle, Sketch):
            assert measured_rmse(item.oracle, one_item, 20, rng) < 1.2 * item.rmse


@pytest.mark.parametrize(
    ("domain", "epsilon", "kind"),
    [
        (1, 1.0, GRR),
        (2, 0.1, GRR),
        (10, 1.1, GRR),  # 3 e^1.1 + 2 = 11.01
        (24, 2.0, GRR),  # 24.17
        (16, 1.1, SubsetSelection),  # sixteen bits
        (1024, 0.1, HRR),
        (1024, 1.0, ProjectiveGeometry),
        (65536, 3.0, ProjectiveGeometry),
        (1 << 40, 1.0, HadamardCountMeanSketch),
    ],
)
def test_what_is_recommended(domain: int, epsilon: float, kind: type[Oracle]) -> None:
    choice = choose(domain, epsilon, n=100_000)
    assert type(choice.recommended) is kind
    assert (choice.recommended.domain, choice.recommended.epsilon) == (domain, epsilon)
    errors = [item.rmse for item in choice.candidates]
    assert errors == sorted(errors)
    chosen = next(item for item in choice.candidates if item.oracle == choice.recommended)
    assert chosen.bits <= 64
    if domain >= 3 * math.exp(epsilon) + 2 and domain < 1 << 30:
        assert chosen.rmse <= 1.05 * errors[0]
    assert f"{chosen.rmse:.3g}" in choice.reason
    assert f"* {kind.__name__}" in str(choice)
    assert len(str(choice).splitlines()) == len(errors) + 2


def test_a_table_too_large_for_a_server_is_left_out() -> None:
    kinds = {type(item.oracle) for item in choose(1 << 30, 1.0, n=1000).candidates}
    assert all(issubclass(kind, Sketch) for kind in kinds)
    assert all(item.memory <= 1 << 32 for item in choose(1 << 26, 1.0, n=1000).candidates)


@pytest.mark.parametrize(
    "bad",
    [
        {"domain": 0},
        {"domain": "5"},
        {"domain": 2.0},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"n": 0},
        {"n": 1.5},
    ],
)
def test_bad_arguments(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        choose(**{"domain": 10, "epsilon": 1.0, "n": 100, **bad})


def test_more_users_shrink_every_error_alike_but_for_confusion() -> None:
    few, many = (choose(100, 1.0, n).candidates for n in (100, 10_000))
    by_kind = {type(item.oracle): item.rmse for item in many}
    for item in few:
        ratio = item.rmse / by_kind[type(item.oracle)]
        assert ratio == pytest.approx(10) if not isinstance(item.oracle, Sketch) else 5 < ratio < 10
