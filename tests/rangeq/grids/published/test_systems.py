"""What every system promises: the verbs, privacy, errors for what is wrong, and answers that make
sense whatever the population.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from frequency import Between, IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.exceptions import InvalidQuestion
from frequency.marginals import Domain
from rangeq.core.estimate import InvalidRange
from rangeq.grids import (
    HDG,
    HIO,
    LHIO,
    MSW,
    TDG,
    HaarHRR2D,
    HierarchicalHistogram2D,
    RangeCALM,
    Uniform,
    WaveGrid,
)
from tests.rangeq.grids.populations import collected

SYSTEMS = [
    TDG,
    HDG,
    HIO,
    LHIO,
    RangeCALM,
    MSW,
    Uniform,
    HierarchicalHistogram2D,
    HaarHRR2D,
    WaveGrid,
]
NONNEGATIVE = (TDG, HDG, MSW, Uniform, WaveGrid)
ONE_ATTRIBUTE = (HDG, HIO, MSW, Uniform, WaveGrid)

pytestmark = pytest.mark.parametrize("system", SYSTEMS, ids=lambda kind: kind.__name__)


def test_verbs(system: Any) -> None:
    protocol = system(sizes={"a": 8, "b": 5, "c": 3}, epsilon=1.0, n=3000)
    records = np.random.default_rng(1).integers(0, [8, 5, 3], size=(3000, 3))
    reports = protocol.privatize(records, np.random.default_rng(2))
    assert reports.dtype == protocol.report_dtype
    assert protocol.report_bits <= 8 * reports.dtype.itemsize
    whole = protocol.aggregate(reports)
    merged = sum(protocol.aggregate(part) for part in np.array_split(reports, 5))
    assert merged == whole
    assert protocol.aggregate_from_bytes(whole.to_bytes()) == whole
    assert (protocol.reports_from_bytes(protocol.reports_to_bytes(reports)) == reports).all()
    assert protocol.simulate(1, np.random.default_rng(3), records).n == 3000
    estimate = protocol.estimate(whole)
    assert estimate.n == 3000
    one = estimate.answer({"b": Between(1, 3), "a": Between(0, 3)}).value
    assert (
        one == estimate.answer({0: Between(0, 3), 1: Between(1, 3)}).value
    )  # by name or place, in any order
    assert estimate.answers([0, 1], [[0, 1]] * 3, [[3, 3]] * 3).tolist() == [one] * 3
    assert estimate.answers([[1, 0]], [[1, 0]], [[3, 3]])[0] == one
    assert protocol == system(sizes=Domain({"a": 8, "b": 5, "c": 3}), epsilon=1.0, n=3000)
    assert (
        protocol.parameters
        != system(sizes={"a": 8, "b": 5, "d": 3}, epsilon=1.0, n=3000).parameters
    )
    assert repr(protocol).startswith(system.__name__)
    with pytest.raises(IncompatibleAggregate):
        system(sizes=[8, 5, 4], epsilon=1.0, n=3000).estimate(whole)
    bad = reports.copy()
    bad["group"][7] = 255
    with pytest.raises(InvalidReport):
        protocol.aggregate(bad)
    tally: Counter[str] = Counter()
    assert protocol.aggregate(bad, tally).n == 2999
    assert tally.total() == 1


def test_privacy_is_audited(system: Any) -> None:
    for epsilon in (0.3, 2.0):
        audit = system(sizes=[8, 5, 3], epsilon=epsilon, n=1000).audit()
        assert audit.holds
        assert float(audit.ratio) <= np.exp(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(
    "bad", [[[0, 5, 0]], [[-1, 0, 0]], [[0.5, 0, 0]], [["x", 0, 0]], [[float("nan"), 0, 0]]]
)
def test_records_outside_the_domain_are_refused(system: Any, bad: Any) -> None:
    with pytest.raises(InvalidValue):
        system(sizes=[8, 5, 3], epsilon=1.0, n=100).privatize([[0, 0, 0], *bad])


def test_tables_of_the_wrong_shape_are_refused(system: Any) -> None:
    protocol = system(sizes=[8, 5, 3], epsilon=1.0, n=100)
    with pytest.raises(ValueError, match="shape"):
        protocol.privatize([[0, 0]])
    with pytest.raises(TypeError, match="Generator"):
        protocol.privatize([[0, 0, 0]], rng=np.random.RandomState(1))


BAD_QUESTIONS: list[Any] = [
    {},
    {"z": Between(0, 1)},
    {3: Between(0, 1)},
    {-1: Between(0, 1)},
    {True: Between(0, 1)},
    {0: Between(0, 8)},
    {0: Between(-1, 3)},
    {0: Between(3, 2)},
    {0: Between(0.0, 3)},
    {0: Between(0, 1), "0": Between(2, 3)},
    {0: (0, 1)},
    {0: (0, 1, 2)},
    {0: [0, 8]},
    [(0, 0, 1)],
    "012",
    5,
]


def test_queries_that_are_none_are_refused(system: Any) -> None:
    estimate = collected(system(sizes=[8, 5, 3], epsilon=1.0, n=100), [[1, 1, 1]] * 50)
    for question in BAD_QUESTIONS:
        with pytest.raises(InvalidQuestion):
            estimate.answer(question)
    with pytest.raises(InvalidRange) as caught:
        estimate.answers([[0, 1], [0, 1], [0, 0]], [[0, 0]] * 3, [[7, 4]] * 3)
    assert caught.value.index == 2
    with pytest.raises(InvalidRange) as caught:
        estimate.answers([0, 1], [[0, 0], [0, 3]], [[7, 4], [7, 5]])
    assert caught.value.index == 1
    with pytest.raises(InvalidRange):
        estimate.answers([0, 1], [[0, 0]], [[7, 4], [7, 4]])
    assert estimate.answers(
        np.zeros((0, 2), dtype=int), np.zeros((0, 2), dtype=int), np.zeros((0, 2), dtype=int)
    ).shape == (0,)


def test_no_reports_say_nothing(system: Any) -> None:
    protocol = system(sizes=[8, 5, 3], epsilon=1.0, n=100)
    estimate = collected(protocol, np.zeros((0, 3), dtype=int))
    assert np.isnan(estimate.answer({0: Between(0, 3)}).value)
    assert np.isnan(estimate.answer({0: Between(0, 3), 2: Between(1, 1)}).value)
    assert np.isnan(estimate.answers([0, 1, 2], [[0, 0, 0]], [[7, 4, 2]])).all()
    assert np.isinf(estimate.predicted_error([0], [[0]], [[3]]).noise).all()


@pytest.mark.parametrize("n", [1, 2, 40])
def test_groups_without_users_leave_no_gaps(system: Any, n: int) -> None:
    estimate = collected(system(sizes=[8, 5, 3], epsilon=1.0, n=1000), [[7, 0, 2]] * n)
    for several in (1, 2, 3):
        left = np.zeros((20, several), dtype=int)
        right = np.random.default_rng(1).integers(0, [8, 5, 3][:several], size=(20, several))
        assert np.isfinite(estimate.answers(np.arange(several), left, right)).all()


@pytest.mark.parametrize("sizes", [[8, 5, 3], [2, 2, 2], [1, 6, 2], [3, 7, 10]])
def test_full_ranges_hold_everybody_and_parts_add_up(system: Any, sizes: list[int]) -> None:
    rng = np.random.default_rng(4)
    records = np.minimum(rng.geometric(0.4, size=(20_000, 3)) - 1, np.array(sizes) - 1)
    estimate = collected(system(sizes=sizes, epsilon=2.0, n=20_000), records)
    if system is not HIO:  # whose levels contradict each other
        for several in (1, 2, 3):
            places = np.arange(several)
            full = np.array(sizes)[:several] - 1
            assert estimate.answers(places, [[0] * several], [full])[0] == pytest.approx(
                1, abs=1e-9
            )
    for pair in ((0, 1), (1, 2), (0, 2)):
        points = np.stack(
            np.meshgrid(*(np.arange(sizes[k]) for k in pair), indexing="ij"), axis=-1
        ).reshape(-1, 2)
        values = estimate.answers(pair, points, points)
        if system in NONNEGATIVE:
            assert (values > -1e-12).all()
        if system is not HIO:
            assert values.sum() == pytest.approx(1)
            assert values[: sizes[pair[1]]].sum() == pytest.approx(
                estimate.answers(pair, [[0, 0]], [[0, sizes[pair[1]] - 1]])[0]
            )
    assert 0 < estimate.answer({1: Between(0, 0)}).value < 1 + 0.2 * (system is HIO)
    # A single value that nearly half of the people have; 0.25 is more than 5 deviations for all but
    # HIO's product of many levels.
    if sizes[1] > 2 and system not in (Uniform, HIO, TDG, HDG):
        assert estimate.answer({1: Between(0, 0)}).value == pytest.approx(0.4, abs=0.25)


def test_constant_attributes(system: Any) -> None:
    estimate = collected(system(sizes=[16, 16], epsilon=2.0, n=50_000), [[3, 12]] * 50_000)
    assert np.isfinite(estimate.answers([0, 1], [[0, 8]], [[7, 15]])).all()
    if system is not Uniform:
        # In a quarter that any grid tells apart; the largest deviation here, of HIO, is below 0.03.
        assert estimate.answer({0: Between(0, 7), 1: Between(8, 15)}).value == pytest.approx(
            1, abs=0.2
        )
        assert estimate.answer({0: Between(8, 15), 1: Between(0, 7)}).value == pytest.approx(
            0, abs=0.2
        )


def test_one_attribute(system: Any) -> None:
    if system not in ONE_ATTRIBUTE:
        with pytest.raises(ValueError, match="pairs"):
            system(sizes=[64], epsilon=1.0, n=1000)
        return
    records = np.clip(np.random.default_rng(1).normal(20, 4, size=(30_000, 1)), 0, 63).astype(int)
    estimate = collected(system(sizes=[64], epsilon=2.0, n=30_000), records)
    found = estimate.answer({0: Between(8, 31)}).value
    assert found == pytest.approx(24 / 64 if system is Uniform else 1, abs=0.2)


@pytest.mark.parametrize(
    ("d", "c"),
    [
        *((2, 2), (2, 3), (3, 64), (10, 2)),
        *(pytest.param(d, 1024, marks=pytest.mark.slow) for d in (2, 10)),
    ],
)
def test_domains_of_all_sizes(system: Any, d: int, c: int) -> None:
    if (system is HIO and d * np.log2(c) > 20) or (
        system in (RangeCALM, LHIO, HierarchicalHistogram2D, HaarHRR2D) and d * c > 3000
    ):
        return  # many seconds; HIO has too many levels
    rng = np.random.default_rng(5)
    records = rng.integers(0, c, size=(4000, d))
    records[:, 1] = records[:, 0]
    estimate = collected(system(sizes=[c] * d, epsilon=3.0, n=4000), records)
    assert np.isfinite(estimate.answer({0: Between(0, c // 2), 1: Between(c // 2, c - 1)}).value)
    if d > 2:
        left = np.zeros((3, d), dtype=int)
        assert np.isfinite(estimate.answers(np.arange(d), left, left + c // 2)).all()


@pytest.mark.parametrize("bad", [[], 5, [0], [2.5, 3], "64", {"a": -1}, {3: 4}, [True, 4]])
def test_sizes_that_are_none_are_refused(system: Any, bad: Any) -> None:
    with pytest.raises(ValueError, match="size"):
        system(sizes=bad, epsilon=1.0, n=100)


def test_other_parameters_are_checked(system: Any) -> None:
    with pytest.raises(ValueError, match="n must be"):
        system(sizes=[4, 4], epsilon=1.0, n=0)
    with pytest.raises(ValueError, match="epsilon"):
        system(sizes=[4, 4], epsilon=0.0, n=100)
    if system in (HIO, LHIO):
        with pytest.raises(ValueError, match="branching"):
            system(sizes=[4, 4], epsilon=1.0, branching=1)
    if system in (TDG, HDG):
        with pytest.raises(ValueError, match="n, the number"):
            system(sizes=[4, 4], epsilon=1.0)
        with pytest.raises(ValueError, match="granularity"):
            system(sizes=[4, 4], epsilon=1.0, granularity=0, n=100)
        with pytest.raises(ValueError, match="granularity"):
            system(sizes=[4, 4], epsilon=1.0, granularity=(2, 2, 2), n=100)
