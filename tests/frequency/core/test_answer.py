"""Answers of every family of estimates are those of their short forms, and of sums over records."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from frequency import GRR, HRR, OUE, HadamardCountMeanSketch
from frequency.core.answer import (
    Answer,
    ConfidenceInterval,
    conditions,
    difference,
    normal_quantile,
    on_average,
    place_of,
    ratio,
    share,
)
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.heavy import PrefixExtension
from rangeq import Between, DecomposedHistogram, HaarHRR, HierarchicalHistogram, SquareWave, shaped
from rangeq.central import CentralFlat, Hierarchy, Wavelet
from rangeq.core.estimate import InvalidRange
from rangeq.grids import HDG, TDG, RangeCALM, WaveGrid, best

pytestmark = pytest.mark.every_case

N, DOMAIN = 4000, 16


def estimated(protocol: Any, records: Any = None) -> Any:
    rng = np.random.default_rng(3)
    if records is None:
        records = rng.binomial(DOMAIN - 1, 0.4, N)
    return protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))


# ---------------------------------------------------------------------------------- what is asked


def test_attributes_are_given_by_name_or_by_place() -> None:
    names = ("age", "income")
    assert [place_of(key, names) for key in ("income", 1, np.int64(0))] == [1, 1, 0]
    for key in ("wages", 2, -1, 0.0, None, True):
        with pytest.raises(InvalidRange):
            place_of(key, names, InvalidRange)


def test_conditions_are_sorted_and_broadcast() -> None:
    ends = np.array([3, 4])
    found = conditions({"b": [4, 1, 4], 0: Between(np.array([[1], [2]]), ends)}, ("a", "b"), (8, 5))
    assert found.shape == (2, 2)
    first, second = found.asked
    assert (first.place, second.place) == (0, 1)
    assert first.first.tolist() == [[1, 1], [2, 2]]
    assert first.last.tolist() == [[3, 4], [3, 4]]
    assert second.items is not None
    assert second.items.tolist() == [1, 4]
    assert [(int(a), int(b)) for a, b in second.runs()] == [(1, 1), (4, 4)]


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"c": 0},
        {2: 0},
        {True: 0},
        {"a": 0, 0: 1},
        {"a": 8},
        {"a": -1},
        {"a": True},
        {"a": 1.0},
        {"a": "1"},
        {"a": None},
        {"a": (1,)},
        {"a": (1, 2)},
        {"a": Between(3, 2)},
        {"a": Between(0, 8)},
        {"a": Between(0, 1.5)},
        {"a": "0:8"},
        {"a": "3:2"},
        {"a": "0:1:2"},
        {"a": [8]},
        {"a": [True]},
        {"a": np.array([1.0])},
        {"a": np.array([1, 9])},
        {"a": Between(np.arange(2), np.arange(3))},
        {"a": np.arange(2), "b": np.arange(3)},
        5,
        [1, 2],
    ],
    ids=repr,
)
def test_what_is_no_question(where: Any) -> None:
    with pytest.raises(InvalidQuestion):
        conditions(where, ("a", "b"), (8, 5))


def test_the_first_bad_question_is_named() -> None:
    with pytest.raises(InvalidQuestion, match=r"got the range 2 \.\. 9") as bad:
        conditions(Between(np.array([0, 2]), np.array([3, 9])), ("age",), (8,))
    assert bad.value.index == 1


# ------------------------------------------------------------------ estimates of one attribute

ORACLES = [GRR(DOMAIN, 1.0), OUE(DOMAIN, 1.0), HRR(DOMAIN, 1.0)]
RANGES = [
    HierarchicalHistogram(DOMAIN, 1.0, 4),
    HaarHRR(DOMAIN, 1.0),
    DecomposedHistogram(DOMAIN, 1.0, 4),
]


@pytest.mark.parametrize("protocol", [*ORACLES, *RANGES], ids=repr)
def test_answers_about_one_attribute(protocol: Any) -> None:
    estimate = estimated(protocol)
    low, high = estimate._of_items(0.9)
    one = estimate.answer(5)
    assert one.value == pytest.approx(estimate.frequencies[5])
    assert one.variance == pytest.approx(estimate.variances[5], rel=0.01)
    assert one.interval(0.9) == (low[5], high[5])
    assert isinstance(one.value, float)
    several = estimate.answer(np.array([[5, 0], [3, 3]]))
    assert several.value == pytest.approx(estimate.frequencies[[[5, 0], [3, 3]]])
    assert several.interval(0.9).low.tolist() == low[[[5, 0], [3, 3]]].tolist()
    listed = estimate.answer([9, 2, 2])
    assert tuple(listed) == pytest.approx(tuple(estimate.linear(np.isin(range(DOMAIN), [2, 9]))))
    for where in (Between(3, 9), "3:9", {0: Between(3, 9)}, list(range(3, 10))):
        told = estimate.answer(where)
        if hasattr(estimate, "range"):
            variance = protocol.range_variances(estimate, np.array(3), np.array(9))
            expected = estimate.range(3, 9), float(variance)
        else:
            expected = tuple(estimate.linear(np.isin(range(DOMAIN), range(3, 10))))
        assert tuple(told) == pytest.approx(expected, rel=1e-9)
    ends = np.array([0, 3, 7]), np.array([15, 9, 7])
    many = estimate.answer(Between(*ends))
    alone = [estimate.answer(Between(int(a), int(b))) for a, b in zip(*ends, strict=True)]
    assert many.value == pytest.approx([each.value for each in alone])
    assert many.variance == pytest.approx([each.variance for each in alone])
    assert estimate.answer(np.zeros(0, dtype=np.int64)).value.shape == (0,)
    assert estimate.answer([]).value == 0


@pytest.mark.parametrize(
    "protocol", [*ORACLES, *RANGES, SquareWave(DOMAIN, 1.0), CentralFlat(DOMAIN, 1.0)], ids=repr
)
@pytest.mark.parametrize("where", [5, Between(3, 9), [2, 9, 11]], ids=repr)
def test_one_answer_is_in_numbers_of_python(protocol: Any, where: Any) -> None:
    """NumPy's would be printed as np.float64(0.3)."""
    central = isinstance(protocol, CentralFlat)
    made = protocol.release(np.arange(DOMAIN)) if central else estimated(protocol)
    told = made.answer(where)
    numbers = [told.value]
    with suppress(UnknownVariance):
        numbers.append(told.variance)
    with suppress(UnknownVariance):
        numbers += told.interval()
    assert len(numbers) > 1 or isinstance(protocol, SquareWave)
    assert {type(one) for one in numbers} <= {float, int}


def test_intervals_may_be_known_where_the_variance_is_not() -> None:
    def within(confidence: float) -> ConfidenceInterval[Any]:
        return ConfidenceInterval(np.array([0.5 - confidence / 2]), np.array([0.5]))

    told = Answer(np.array([0.5]), None, "ends lie inside bins", within)
    assert told.interval(0.5) == (np.array([0.25]), np.array([0.5]))
    with pytest.raises(UnknownVariance, match="inside bins"):
        _ = told.variance
    with pytest.raises(UnknownVariance, match="inside bins"):
        _ = tuple(told)
    for wrong in (0.0, 1.0, -0.5, float("nan")):
        with pytest.raises(ValueError, match="confidence"):
            told.interval(wrong)
    with pytest.raises(UnknownVariance, match="inside bins"):
        Answer(0.5, None, "ends lie inside bins").interval()


def test_answers_about_ranges_have_the_intervals_of_ranges() -> None:
    for protocol in RANGES:
        estimate = estimated(protocol)
        assert estimate.answer(Between(3, 9)).interval(0.8) == pytest.approx(
            estimate.answer(Between(3, 9)).interval(0.8)
        )


def test_without_reports_nothing_is_known() -> None:
    everything: list[Any] = [*ORACLES, *RANGES]
    for protocol in everything:
        estimate = protocol.estimate(protocol.aggregate(protocol.privatize(np.zeros(0, dtype=int))))
        for where in (3, Between(3, 9), [1, 5]):
            answer = estimate.answer(where)
            assert np.isnan(answer.value)
            assert answer.variance == np.inf
            assert answer.interval() == (-np.inf, np.inf)


def test_items_that_were_not_estimated_are_refused() -> None:
    sketch = HadamardCountMeanSketch(1 << 40, 1.0, 16, 64)
    rng = np.random.default_rng(1)
    aggregate = sketch.aggregate(sketch.privatize(rng.integers(0, 9, N), rng))
    estimate = sketch.estimate(aggregate, items=[7, 5, 1 << 39])
    assert estimate.answer(5).value == estimate.frequencies[1]
    assert estimate.answer([7, 1 << 39]).value == pytest.approx(estimate.frequencies[[0, 2]].sum())
    for where in (6, Between(5, 7), [5, 6], np.array([5, 6])):
        with pytest.raises(InvalidQuestion, match="not estimated"):
            estimate.answer(where)


def test_smoothed_estimates_answer_ranges() -> None:
    estimate = estimated(shaped(DOMAIN, 1.0, N))
    answer = estimate.answer(Between(3, 9))
    half = normal_quantile(0.95) * np.sqrt(answer.variance)
    ends = np.clip([answer.value - half, answer.value + half], 0, 1)
    assert answer.interval(on_average=True) == pytest.approx(tuple(ends))
    assert answer.interval() != answer.interval(on_average=True)
    apart = estimate.answer([1, 5])
    assert apart.value == pytest.approx(estimate.frequencies[[1, 5]].sum())
    with pytest.raises(UnknownVariance, match="sum of ranges"):
        _ = apart.variance
    assert "unknown" in repr(apart)


def test_distributions_without_errors_say_so() -> None:
    for estimate in (estimated(SquareWave(DOMAIN, 1.0)), estimated(RANGES[0]).nonnegative()):
        assert estimate.n == N
        answer = estimate.answer(Between(3, 9))
        assert answer.value == pytest.approx(estimate.range(3, 9))
        with pytest.raises(UnknownVariance):
            answer.interval()


@pytest.mark.parametrize(
    "mechanism",
    [CentralFlat(DOMAIN, 1.0), Hierarchy(DOMAIN, 1.0, 4), Wavelet(DOMAIN, 1.0)],
    ids=repr,
)
def test_a_curator_answers_in_users(mechanism: Any) -> None:
    counts = np.random.default_rng(2).integers(0, 50, DOMAIN)
    estimate = mechanism.release(counts, np.random.default_rng(3))
    assert estimate.n == estimate.range(0, DOMAIN - 1)
    answer = estimate.answer(Between(3, 9))
    assert tuple(answer) == (estimate.range(3, 9), mechanism.range_variance(3, 9))
    low, high = answer.interval(0.9)
    assert low < answer.value < high
    assert estimate.answer(np.array([1, 2])).value == pytest.approx(estimate.counts[[1, 2]])
    assert estimate.answer([1, 5]).value == pytest.approx(estimate.counts[[1, 5]].sum())
    assert estimate.answer([1, 5]).variance == mechanism.variance([1, 5]) > 0
    assert estimate.answer([]).value == 0


# ------------------------------------------------------------------ estimates of several attributes


@pytest.mark.parametrize(
    "protocol",
    [
        TDG([8, 8], 2.0, N, granularity=2),
        HDG([8, 8], 2.0, N, granularity=2),
        RangeCALM([8, 8], 2.0, N),
        best([8, 8], 2.0, N),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_answers_about_several_attributes(protocol: Any) -> None:
    estimate = estimated(protocol, np.random.default_rng(1).integers(0, 8, (N, 2)))
    answer = estimate.answer({0: Between(0, 3), 1: Between(4, 7)})
    assert answer.value == estimate.answers([0, 1], [[0, 4]], [[3, 7]])[0]
    # No cell is cut
    error = estimate.predicted_error([0, 1], [[0, 4]], [[3, 7]])
    assert answer.variance == pytest.approx((error.noise + error.sampling)[0])
    low, high = answer.interval(0.9)
    assert low < answer.value < high
    many = estimate.answer({1: Between(4, 7), 0: Between(np.array([0, 0]), np.array([3, 7]))})
    assert many.value == pytest.approx(
        [answer.value, estimate.answer({1: Between(4, 7)}).value], abs=0.05
    )
    apart = estimate.answer({0: [0, 1, 5], 1: [2]})
    parts = [estimate.answer({0: where, 1: 2}).value for where in (Between(0, 1), 5)]
    assert apart.value == pytest.approx(sum(parts))
    if isinstance(protocol, WaveGrid):  # whose values are told one by one, in any order
        low, high = apart.interval()
        assert low < apart.value < high
        assert apart.variance > 0
    else:
        with pytest.raises(UnknownVariance):
            _ = apart.variance


def test_answers_that_cut_cells_have_no_variance() -> None:
    estimate = estimated(TDG([8, 8], 2.0, N, granularity=2), np.full((N, 2), 3))
    with pytest.raises(UnknownVariance, match="cuts cells"):
        _ = estimate.answer({0: Between(0, 2)}).variance


# ------------------------------------------------------------------------------------ heavy hitters


def test_the_answer_about_a_listed_item() -> None:
    protocol, rng = PrefixExtension(8, 4.0), np.random.default_rng(1)
    found = protocol.find(protocol.privatize(np.where(rng.random(20_000) < 0.5, 77, 5), rng))
    answer: Answer = found.answer(77)
    place = found.items.tolist().index(77)
    assert tuple(answer) == (found.frequencies[place], found.variances[place])
    assert answer.interval(0.95) == (found.interval().low[place], found.interval().high[place])
    low, high = answer.interval(0.9)
    assert found.interval().low[place] < low < answer.value < high < found.interval().high[place]
    both = found.answer(np.array([[77, 5]]))
    assert both.value.shape == both.interval().low.shape == (1, 2)
    assert both.value[0, 0] == answer.value
    with pytest.raises(InvalidQuestion, match="not one of those"):
        found.answer(256)


def test_normal_quantiles():
    for confidence in (1e-12, 0.5, 0.95, 0.999, 1 - 1e-9):
        expected = ndtri((1 + confidence) / 2)
        assert normal_quantile(confidence) == pytest.approx(expected, rel=1e-8)
    assert normal_quantile(np.nextafter(1.0, 0.0)) == pytest.approx(-ndtri(2.0**-54), rel=1e-12)
    for wrong in (0.0, 1.0, -0.5, np.nan):
        with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1"):
            normal_quantile(wrong)


@pytest.mark.parametrize("part", [0.0, 0.03, 0.4, 0.97])
def test_intervals_of_shares_of_a_group_cover(part: float) -> None:
    rng, draws, size = np.random.default_rng(3), 4000, 200
    sides = [size * part, size * (1 - part)]
    inside, outside = (rng.normal(mean, 7, draws) for mean in sides)
    told = share(Answer(inside, np.full(draws, 49.0)), Answer(inside + outside, np.full(draws, 98)))
    low, high = told.interval()
    assert ((low >= 0) & (low <= told.value) & (told.value <= high) & (high <= 1)).all()
    held = ((low <= part) & (part <= high)).mean()
    # Wider than they must be, as the part is counted in the group: 5 deviations of 0.95 below
    assert held > 0.95 - 5 * (0.95 * 0.05 / draws) ** 0.5
    far = ((low <= part + 0.3) & (part + 0.3 <= high)).mean()
    assert far < 0.01


def test_what_is_made_of_an_answer_on_average_is_one() -> None:
    plain = Answer(0.4, 0.01)
    of_model = on_average(plain)
    for made in (difference, ratio, share):
        assert not made(plain, plain).holds_on_average
        assert made(of_model, plain).holds_on_average
        assert made(plain, of_model).holds_on_average
