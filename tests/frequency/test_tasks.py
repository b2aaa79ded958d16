"""The oracles planned for agree with measurement, and the one taken with its own table."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from frequency import (
    GRR,
    AffineSelection,
    HadamardCountMeanSketch,
    SubsetSelection,
    postprocess,
)
from frequency.core.oracle import Oracle
from frequency.marginals import MarginalProtocol, consistent
from frequency.oracles.count_mean_sketch import Sketch
from frequency.planning.tasks import Frequencies, Marginals
from frequency.schema import Domain
from mechdesign import Plan, plan


def chosen(domain: int, epsilon: float, n: int) -> Plan:
    return plan("frequencies", domain, epsilon=epsilon, n=n)


def measured_rmse(
    oracle: Oracle, held: np.ndarray, repeats: int, rng: np.random.Generator
) -> float:
    truth = held / held.sum()
    errors = [
        oracle.estimate(oracle.simulate(held, rng)).frequencies - truth for _ in range(repeats)
    ]
    return math.sqrt(np.mean(np.square(errors)))


@pytest.mark.slow
def test_plans_name_the_recommended_post_processing() -> None:
    told = str(chosen(24, 1.0, 3000))
    shuffled = str(plan("frequencies", 4, n=3000, epsilon=1.0, delta="1e-6", trust="shuffled"))
    for text in (told, shuffled):
        (name,) = re.findall(r"frequency\.postprocess\.(\w+)", text)
        assert callable(getattr(postprocess, name))
    assert "postprocess" not in str(plan("marginals", [2, 2], n=3000, epsilon=1.0))


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "epsilon"), [(5, 1.0), (60, 1.0), (60, 3.0)])
def test_the_predicted_error_is_the_measured_one(domain: int, epsilon: float) -> None:
    rng = np.random.default_rng(5)
    held = rng.multinomial(
        3000, 1 / np.arange(1, domain + 1) / (1 / np.arange(1, domain + 1)).sum()
    )
    candidates = chosen(domain, epsilon, 3000).candidates
    assert len(candidates) == 11
    for item in candidates:
        if isinstance(item.protocol, Sketch):
            continue  # whose prediction is the worst case over populations: see below
        measured = measured_rmse(item.protocol, held, 400 if domain == 5 else 60, rng)
        # At least 2000 squared errors, correlated at D = 5: the ratio has a standard deviation of
        # at most 0.03.
        assert measured == pytest.approx(item.error, rel=0.15), type(item.protocol).__name__


@pytest.mark.slow
def test_sketches_are_predicted_at_their_worst() -> None:
    rng = np.random.default_rng(6)
    one_item = np.zeros(50, dtype=np.int64)
    one_item[7] = 3000
    for item in chosen(50, 3.0, 3000).candidates:
        if isinstance(item.protocol, Sketch):
            assert measured_rmse(item.protocol, one_item, 20, rng) < 1.2 * item.error


@pytest.mark.parametrize(
    ("domain", "epsilon", "kind"),
    [
        (1, 1.0, GRR),
        (2, 0.1, GRR),
        (8, 1.1, GRR),  # 3 e^1.1 + 2 = 11.01
        (10, 1.1, SubsetSelection),  # of GRR the variance is 1.2 times another of its bits
        (24, 2.0, GRR),  # 24.17
        (16, 1.1, AffineSelection),
        (1024, 0.1, AffineSelection),
        (1024, 1.0, AffineSelection),
        (65536, 3.0, AffineSelection),
        (65536, 8.0, AffineSelection),
        (1 << 40, 1.0, HadamardCountMeanSketch),
    ],
)
def test_what_is_recommended(domain: int, epsilon: float, kind: type[Oracle]) -> None:
    found = chosen(domain, epsilon, 100_000)
    assert type(found.best.protocol) is kind
    assert (found.best.protocol.domain, found.best.protocol.epsilon) == (domain, epsilon)
    errors = [item.error for item in found.candidates]
    assert errors == pytest.approx(sorted(errors), rel=1e-12)
    assert (found.best.bits or 0) <= 64
    if 3 * math.exp(epsilon) + 2 <= domain < 1 << 30:
        assert found.best.error <= 1.05 * errors[0]
        assert f"{found.best.error:.3g}"[:5] in found.reason
    assert f"*  {kind.__name__}" in str(found)


@pytest.mark.parametrize("domain", [4, 6, 13, 20, 50, 64, 100, 140, 1024, 65_536, 1 << 20])
@pytest.mark.parametrize("epsilon", [0.1, 0.35, 1.0, 2.0, 3.0, 5.0, 6.0, 8.0, 10.0])
def test_none_is_recommended_above_another_of_its_size(domain: int, epsilon: float) -> None:
    found = chosen(domain, epsilon, 100_000)
    assert found.best.bits is not None
    alike = [item.error for item in found.candidates if (item.bits or 0) <= found.best.bits]
    assert found.best.error**2 <= 1.05 * min(alike) ** 2


def test_a_table_too_large_for_a_server_is_left_out() -> None:
    kinds = {type(item.protocol) for item in chosen(1 << 30, 1.0, 1000).candidates}
    assert all(issubclass(kind, Sketch) for kind in kinds)
    with pytest.raises(ValueError, match="too much memory"):
        Frequencies(1 << 28).offer("OLH", 8.0, 1000)


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
        chosen(**{"domain": 10, "epsilon": 1.0, "n": 100, **bad})


def test_attributes_of_marginals_come_in_many_forms() -> None:
    given: tuple[Any, ...] = ([5, 2], {"0": 5, "1": 2}, Domain({"0": 5, "1": 2}))
    assert {Marginals(form).domain for form in given} == {given[2]}
    for wrong, message in (
        ([1 << 31, 1 << 32], r"different records, more than 2\^62"),
        ("52", "list of domain sizes"),
    ):
        with pytest.raises(ValueError, match=message):
            Marginals(wrong)


def test_more_users_shrink_every_error_alike_but_for_confusion() -> None:
    few, many = (chosen(100, 1.0, n).candidates for n in (100, 10_000))
    by_kind = {type(item.protocol): item.error for item in many}
    for item in few:
        ratio = item.error / by_kind[type(item.protocol)]
        assert (
            ratio == pytest.approx(10) if not isinstance(item.protocol, Sketch) else 5 < ratio < 10
        )


@pytest.mark.slow
def test_the_protocol_whose_fitted_marginals_err_least_is_taken():
    for domain in ({"a": 5, "b": 2, "c": 2}, [2] * 12):
        found = plan("marginals", domain, n=10_000, epsilon=1)
        fitted = {one.name: dict(one.other_errors)["fitted"] for one in found.candidates}
        assert fitted[found.best.name] == min(fitted.values())
        assert "fitted" in found.reason
        for one in found.candidates:
            raw = dict(one.other_errors)["raw"]
            assert fitted[one.name] < one.error <= raw * (1 + 1e-9)
        assert "intervals" in str(found)
    # Of too many values to predict the fit, the first of the ranking
    wide = plan("marginals", [40, 40], n=10_000, epsilon=1)
    assert np.isnan(dict(wide.best.other_errors)["fitted"])
    assert wide.best is wide.candidates[0]


def test_the_prediction_of_margps_is_that_of_its_consistent_fit():
    """At d = 8 the marginals as they are err half as much again."""
    task = Marginals([2] * 8)
    offer = task.offer("MargPS", 1.0, 100_000)
    raw = dict(task.other_errors(offer.protocol, 100_000))["raw"]
    assert raw > 1.4 * offer.error
    protocol, rng, errors = offer.protocol, np.random.default_rng(1), []
    for _ in range(10):
        estimate = protocol.estimate(protocol.simulate(np.full(256, 391), rng))
        fit = consistent(estimate)
        errors += [((fit.marginal(v) - 1 / 4) ** 2).mean() for v in protocol.domain.views(2)]
    assert np.sqrt(np.mean(errors)) == pytest.approx(offer.error, rel=0.1)


@pytest.mark.parametrize(("sizes", "epsilon"), [((2, 2), 0.5), ((2, 2, 2), 3.0), ((3, 3, 3), 1.0)])
def test_equal_protocols_for_marginals_are_ranked_alike_on_every_machine(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], epsilon: float
) -> None:
    """Of binary attributes CALM, MargPS and InpPS have equal errors; floats say which is below."""
    as_it_is, rng = Marginals._known, np.random.default_rng(3)
    names = Marginals(sizes).names
    tables = {str(plan("marginals", sizes, n=10_000, epsilon=epsilon))}
    for _ in range(10):

        def known(self: Marginals, protocol: MarginalProtocol, n: int) -> Any:
            found = as_it_is(self, protocol, n)
            return type(found)(*(error * (1 + 1e-13 * rng.uniform(-1, 1)) for error in found))

        monkeypatch.setattr(Marginals, "_known", known)
        found = plan("marginals", sizes, n=10_000, epsilon=epsilon)
        tables.add(str(found))
        ties = [
            [(item.bits or 0, names.index(item.name)) for item in (one, other)]
            for one, other in pairwise(found.candidates)
            if one.error == pytest.approx(other.error, rel=1e-12)
        ]
        assert ties
        assert all(one < other for one, other in ties)
    assert len(tables) == 1
