"""Answers about any set of pairs of values: as rectangles, with variances and intervals.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from frequency import Between
from frequency.exceptions import InvalidQuestion, UnknownVariance
from rangeq.grids import HDG, HIO, MSW, TDG, best
from rangeq.grids.cells import rectangles
from tests.rangeq.grids.populations import collected


def clusters(n, sizes, rng):
    """Two clusters, one of them across the diagonal."""
    far = rng.random((n, 1)) < 0.4
    points = np.where(far, 0.3, 0.65) + 0.1 * rng.normal(size=(n, 2)) @ [[1, 0.6], [0, 0.8]]
    return np.clip((points * sizes).astype(int), 0, np.array(sizes) - 1)


def disc(sizes, radius=0.28, middle=(0.5, 0.4)):
    x, y = ((np.arange(size) + 0.5) / size for size in sizes)
    return (x[:, None] - middle[0]) ** 2 + (y - middle[1]) ** 2 < radius**2


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10_000), st.floats(0.1, 0.9))
@settings(max_examples=80, deadline=None)
def test_rectangles_are_the_region(rows, columns, seed, share) -> None:
    mask = np.random.default_rng(seed).random((rows, columns)) < share
    found = np.zeros(mask.shape, dtype=int)
    boxes = rectangles(mask)
    for (a, b), (c, d) in zip(boxes.left.tolist(), boxes.right.tolist(), strict=True):
        found[a : c + 1, b : d + 1] += 1
    np.testing.assert_array_equal(found, mask)


def test_few_rectangles_where_few_do() -> None:
    mask = np.zeros((20, 30), dtype=bool)
    assert len(rectangles(mask).left) == 0
    mask[3:9, 4:20] = True
    assert [ends.tolist() for ends in rectangles(mask)] == [[[3, 4]], [[8, 19]]]
    mask[12:, :] = True
    assert len(rectangles(mask).left) == 2


@pytest.fixture(scope="module")
def wave():
    records = clusters(40_000, (20, 32), np.random.default_rng(1))
    return collected(best({"x": 20, "y": 32}, 2.0, 40_000), records), records


@pytest.mark.slow
@given(st.integers(0, 19), st.integers(0, 19), st.integers(0, 31), st.integers(0, 31))
@example(0, 0, 0, 20)  # by noise more than the whole row
@settings(max_examples=40, deadline=None)
def test_a_rectangle_has_the_variance_of_its_answer(wave, a, c, b, d) -> None:
    """By the sum over all borders, and by the formula for four corners."""
    estimate, _ = wave
    (a, c), (b, d) = sorted((a, c)), sorted((b, d))
    mask = np.zeros((20, 32), dtype=bool)
    mask[a : c + 1, b : d + 1] = True
    expected = estimate.answer({"x": Between(a, c), "y": Between(b, d)})
    same = estimate.region("x", "y", mask)
    assert same.value == expected.value
    assert same.variance == expected.variance
    if c - a < 19 and d - b < 31:
        other = estimate._of_region((0, 1), mask, rectangles(mask))
        assert other.value == pytest.approx(expected.value, abs=1e-9)
        assert other.variance == pytest.approx(expected.variance, rel=1e-6, abs=1e-12)


def test_the_variance_of_a_region_is_that_of_its_cells_together(wave) -> None:
    """Covariances from the variances of sums: Var[A + B] = 2 Var[A] + 2 Var[B] - Var[A - B]."""
    estimate, _ = wave
    joint = estimate.joints[0, 1]
    one, two = disc((20, 32)).astype(float), disc((20, 32), 0.2, (0.7, 0.6)).astype(float)
    both = joint.variance_of(one + two) + joint.variance_of(one - two)
    assert both == pytest.approx(2 * joint.variance_of(one) + 2 * joint.variance_of(two))
    assert joint.variance_of(one) > 0


def test_attributes_in_either_order(wave) -> None:
    estimate, records = wave
    mask = disc((20, 32))
    one, two = estimate.region("x", "y", mask), estimate.region(1, 0, mask.T)
    assert one.value == two.value
    assert one.variance == two.variance
    truth = mask[records[:, 0], records[:, 1]].mean()
    assert abs(one.value - truth) < 5.3 * math.sqrt(one.variance)
    assert one.value == pytest.approx(estimate.response_matrix("x", "y")[mask].sum(), abs=0.01)
    assert estimate.region("x", "y", mask).value + estimate.region(
        "x", "y", ~mask
    ).value == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
def test_more_values_than_cells() -> None:
    """300 x 200 values in 64 x 64 cells at most: regions are cut by parts of cells."""
    records = clusters(40_000, (300, 200), np.random.default_rng(2))
    estimate = collected(best([300, 200], 2.0, 40_000), records)
    mask = disc((300, 200))
    told = estimate.region(0, 1, mask)
    truth = mask[records[:, 0], records[:, 1]].mean()
    assert abs(told.value - truth) < 5.3 * math.sqrt(told.variance)
    box = np.zeros(mask.shape, dtype=bool)
    box[40:150, 33:120] = True
    expected = estimate.answer({0: Between(40, 149), 1: Between(33, 119)})
    other = estimate._of_region((0, 1), box, rectangles(box))
    assert other.value == pytest.approx(expected.value, abs=1e-9)
    assert other.variance == pytest.approx(expected.variance, rel=1e-6)


def covered(system, sizes, repeats, epsilon=1.5, n=20_000):
    mask, hits, errors = disc(sizes), 0, []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, 5])
        records = clusters(n, sizes, rng)
        told = collected(system(list(sizes), epsilon, n), records, rng).region(0, 1, mask)
        truth = mask[records[:, 0], records[:, 1]].mean()
        low, high = told.interval(0.95)
        hits += low <= truth <= high
        errors.append(told.value - truth)
    return hits, np.array(errors)


@pytest.mark.slow
@pytest.mark.parametrize(("system", "repeats"), [(best, 60), (TDG, 25)], ids=["WaveGrid", "TDG"])
def test_intervals_of_regions_cover(system, repeats) -> None:
    hits, errors = covered(system, (16, 12), repeats)
    # At a coverage of 0.85 fewer are seen in less than one of 10^6 runs
    assert hits >= stats.binom.ppf(1e-6, repeats, 0.85)
    # and intervals around 0 would not pass
    assert np.abs(errors).mean() < 0.05


@pytest.mark.parametrize("system", [HDG, MSW, HIO])
def test_other_systems_sum_rectangles(system) -> None:
    records = clusters(20_000, (16, 16), np.random.default_rng(3))
    estimate = collected(system([16, 16], 2.0, 20_000), records)
    mask = disc((16, 16))
    told = estimate.region(0, 1, mask)
    cells = rectangles(mask) if system is HIO else [np.argwhere(mask)] * 2  # HIO's do not add up
    assert told.value == pytest.approx(estimate.answers([0, 1], *cells).sum(), abs=1e-6)
    with pytest.raises(UnknownVariance):
        _ = told.variance
    if system is HIO:
        with pytest.raises(UnknownVariance):
            told.interval()
    elif system is HDG:
        low, high = told.interval(0.999999)
        assert low <= mask[records[:, 0], records[:, 1]].mean() <= high
        assert low < told.value < high


def test_what_is_no_region(wave) -> None:
    estimate, _ = wave
    good = disc((20, 32))
    for first, second, cells, message in (
        ("x", "x", good, "of two attributes"),
        ("x", "z", good, "an attribute is one of"),
        ("x", "y", good.astype(int), "booleans"),
        ("x", "y", good.T, r"shape \(20, 32\)"),
        ("x", "y", np.zeros((20, 32), dtype=bool), "empty"),
    ):
        with pytest.raises(InvalidQuestion, match=message):
            estimate.region(first, second, cells)


def test_no_reports_no_answer() -> None:
    protocol = best([4, 4], 1.0, 100)
    estimate = protocol.estimate(protocol.simulate([], values=np.zeros((0, 2), dtype=int)))
    assert math.isnan(estimate.region(0, 1, disc((4, 4))).value)
    assert math.isnan(estimate.region(0, 1, np.eye(4, dtype=bool)).value)
