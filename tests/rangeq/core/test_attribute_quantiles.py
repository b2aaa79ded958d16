"""Quantiles of one attribute of records: against those read off one prefix at a time.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import InvalidQuestion, UnknownVariance
from frequency.schema import Domain
from rangeq import Between, Flat, HaarHRR, PerAttribute
from rangeq.core import estimate as attribute_quantiles
from rangeq.grids import HDG, LHIO, MSW, TDG, RangeCALM, WaveGrid
from rangeq.local import per_attribute
from tests.goodness_of_fit import FALSE_ALARM

DOMAIN = Domain({"age": 12, "ill": 2, "one": 1})
PHIS = np.array([0.0, 0.05, 0.25, 0.5, 0.77, 1.0])
KNOWN: dict[str, Any] = {
    "RangeCALM": RangeCALM(DOMAIN, 1.0),
    "HDG": HDG(DOMAIN, 1.0, 2000, granularity=12, line_granularity=12),
    "WaveGrid": WaveGrid(DOMAIN, 1.0),
    "PerAttribute": PerAttribute.of(Domain({"age": 12, "ill": 2}), 2.0),
    "PerAttribute given": PerAttribute.of(DOMAIN, 2.0, "ill", partial(Flat, oracle="GRR")),
}
known = pytest.mark.parametrize("protocol", KNOWN.values(), ids=list(KNOWN))


def people(n: int, attributes: int = 3, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    age = rng.binomial(11, 0.4, n)
    return np.stack([age, (age > 5).astype(int), 0 * age], axis=1)[:, :attributes]


def attributes_of(protocol: Any) -> Domain:
    return protocol.domain if isinstance(protocol, PerAttribute) else protocol.attributes


def estimated(protocol: Any, n: int = 2000, seed: int = 2) -> Any:
    records = people(n, len(attributes_of(protocol)))
    rng = np.random.default_rng(seed)
    return protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))


def reaching(values: list[float], phi: float) -> tuple[int, int]:
    """The first value to reach phi, and the first from which on all do."""
    last = len(values) - 1
    first = next((v for v, f in enumerate(values) if f >= phi - 1e-12), last)
    below = [v for v, f in enumerate(values) if f < phi - 1e-12]
    return first, min(below[-1] + 1 if below else 0, last)


@known
def test_quantiles_are_those_of_the_prefixes(protocol: Any) -> None:
    estimate = estimated(protocol)
    domain = attributes_of(protocol)
    for place, (name, size) in enumerate(zip(domain.names, domain.sizes, strict=True)):
        one = [estimate.answer({name: Between(0, v)}) for v in range(size)]
        cdf = [told.value for told in one]
        ends = [told.interval(0.8) for told in one]
        expected = [sum(reaching(cdf, phi)) // 2 for phi in PHIS]
        assert estimate.quantile(PHIS, name).tolist() == expected
        low, high = estimate.quantile_interval(PHIS, 0.8, place)
        assert low.tolist() == [reaching([e.high for e in ends], phi)[0] for phi in PHIS]
        assert high.tolist() == [reaching([e.low for e in ends], phi)[1] for phi in PHIS]
        assert (low <= expected).all()
        assert (high >= expected).all()
        assert estimate.quantile(0.5, np.int64(place)) == expected[3]
        assert isinstance(estimate.quantile(0.5, name), int)
        assert estimate.quantile_interval(0.5, 0.8, name) == (low[3], high[3])
        shaped = PHIS.reshape(2, 3)
        assert estimate.quantile(shaped, name).tolist() == np.reshape(expected, (2, 3)).tolist()
        assert estimate.quantile_interval(shaped, attribute=name)[0].shape == (2, 3)


@known
def test_many_prefixes_are_asked_for_in_batches(
    protocol: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = estimated(protocol)
    whole = estimate.quantile(PHIS, 0), estimate.quantile_interval(PHIS, attribute=0)
    monkeypatch.setattr(attribute_quantiles, "_BATCH", 5)
    monkeypatch.setattr(per_attribute, "_AT_ONCE", 30)
    assert estimate.quantile(PHIS, 0).tolist() == whole[0].tolist()
    low, high = estimate.quantile_interval(PHIS, attribute=0)
    assert (low.tolist(), high.tolist()) == tuple(end.tolist() for end in whole[1])


def test_a_single_attribute_has_the_quantiles_of_its_own_protocol() -> None:
    own, values = HaarHRR(64, 1.0), np.random.default_rng(1).binomial(63, 0.3, 5000)
    protocol = PerAttribute(Domain({"a": 64}), (own,))
    aggregate = protocol.aggregate(protocol.privatize(values[:, None], np.random.default_rng(2)))
    estimate = protocol.estimate(aggregate)
    twin = own.estimate(protocol.channel.part_aggregate(aggregate, 0))
    assert estimate.quantile(PHIS).tolist() == twin.quantile(PHIS).tolist()
    for ours, theirs in zip(
        estimate.quantile_interval(PHIS, 0.9), twin.quantile_interval(PHIS, 0.9), strict=True
    ):
        assert ours.tolist() == theirs.tolist()
    grid: Any = MSW([64], 1.0)
    found = grid.estimate(grid.aggregate(grid.privatize(values[:, None], np.random.default_rng(3))))
    assert found.quantile(PHIS).tolist() == found.distributions[0].quantile(PHIS).tolist()


@pytest.mark.parametrize(
    "name",
    [
        "RangeCALM",
        pytest.param("WaveGrid", marks=pytest.mark.slow),
        "PerAttribute",
        "PerAttribute given",
    ],
)
def test_intervals_cover_the_true_quantile(name: str) -> None:
    """At least nine in ten of intervals of 95%; and one beside the quantile is seen."""
    protocol, runs, phi = KNOWN[name], 30, 0.4
    ages = np.sort(people(2000)[:, 0])
    true = int(ages[math.ceil(phi * len(ages)) - 1])
    covered, beside = 0, 0
    for seed in range(runs):
        low, high = estimated(protocol, 2000, seed).quantile_interval(phi, attribute="age")
        covered += low <= true <= high
        beside += low <= true + 6 <= high
    assert stats.binom.cdf(covered, runs, 0.9) > FALSE_ALARM
    assert stats.binom.cdf(beside, runs, 0.9) < FALSE_ALARM


@pytest.mark.slow
def test_intervals_where_variances_are_not_known() -> None:
    for protocol in (
        HDG(DOMAIN, 1.0, 2000, granularity=2, line_granularity=3),
        TDG(DOMAIN, 1.0, 2000, granularity=2),
        MSW(DOMAIN, 1.0),
        LHIO(DOMAIN, 1.0),
    ):
        estimate = estimated(protocol)
        median = estimate.quantile(0.5, "age")
        with pytest.raises(UnknownVariance):
            _ = estimate.answer({"age": Between(0, median)}).variance
        low, high = estimate.quantile_interval(0.5, attribute="age")  # by the bootstrap
        assert 0 <= low <= median <= high < 12


@known
def test_wrong_questions(protocol: Any) -> None:
    estimate = estimated(protocol, 50)
    for ask in (estimate.quantile, estimate.quantile_interval):
        for phi in (-0.1, 1.1, math.nan, [0.5, 2.0]):
            with pytest.raises(ValueError, match="phi must lie"):
                ask(phi, attribute="age")
        with pytest.raises(InvalidQuestion, match="attributes: say which one, of age, ill"):
            ask(0.5)
        for wrong in ("", "wages", 3, -1, 0.0, False):
            with pytest.raises(InvalidQuestion, match="an attribute is one of"):
                ask(0.5, attribute=wrong)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            estimate.quantile_interval(0.5, confidence, "age")


@known
def test_no_reports_have_no_quantiles(protocol: Any) -> None:
    estimate = estimated(protocol, 0)
    with pytest.raises(ValueError, match="no reports"):
        estimate.quantile(0.5, "age")
    assert estimate.quantile_interval(0.5, attribute="age") == (0, 11)


def test_prefixes_that_are_too_many_to_list_are_refused() -> None:
    protocol = HDG([1 << 27, 2], 1.0, 100)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize([[5, 1]])))
    for ask in (estimate.quantile, estimate.quantile_interval):
        with pytest.raises(ValueError, match=r"an attribute's size must be .* 2\^26"):
            ask(0.5, attribute=0)
    assert estimate.quantile(0.5, attribute=1) in (0, 1)
