"""What a curator's estimate of several attributes is asked, and what is refused."""

import numpy as np
import pytest

from frequency import Between
from frequency.exceptions import InvalidQuestion
from rangeq.central import CentralFlat, Hierarchy, InvalidHistogram, InvalidRange, Wavelet

COUNTS = np.random.default_rng(0).integers(0, 90, (6, 5))


@pytest.fixture(params=[CentralFlat, Wavelet, lambda s, e: Hierarchy(s, e, 3)])
def estimate(request):
    return request.param((6, 5), 50.0).release(COUNTS, np.random.default_rng(1))


def test_questions(estimate):
    assert estimate.counts.shape == (6, 5)
    assert estimate.n == pytest.approx(COUNTS.sum(), abs=3)
    for where, expected in (
        ({0: 2}, COUNTS[2].sum()),
        ({0: Between(1, 3), 1: Between(0, 2)}, COUNTS[1:4, :3].sum()),
        ({1: [0, 4]}, COUNTS[:, [0, 4]].sum()),
        ({0: [0, 2, 5], 1: Between(1, 1)}, COUNTS[[0, 2, 5], 1].sum()),
        ({"attribute 1": 3}, COUNTS[:, 3].sum()),
        ({0: []}, 0),
    ):
        told = estimate.answer(where)
        assert isinstance(told.value, float)
        assert told.value == pytest.approx(expected, abs=3)
        assert told.variance >= 0
        low, high = told.interval()
        assert low <= expected <= high
    rows = estimate.answer({0: np.arange(6), 1: Between(0, 3)})
    assert rows.value == pytest.approx(COUNTS[:, :4].sum(axis=1), abs=3)
    mixed = estimate.answer({0: np.arange(6).reshape(2, 3), 1: [0, 2]})
    expected = COUNTS[:, [0, 2]].sum(axis=1).reshape(2, 3)
    assert mixed.value == pytest.approx(expected, abs=3)
    assert mixed.variance.shape == (2, 3)
    assert estimate.variances.shape == estimate.interval().low.shape == (6, 5)
    assert estimate.frequencies.sum() == pytest.approx(1, abs=0.2)


def test_quantiles_along_each_attribute(estimate):
    for attribute in (0, 1):
        ranks = np.cumsum(COUNTS.sum(axis=1 - attribute)) / COUNTS.sum()
        for q in (0.1, 0.5, 0.9):
            expected = int(np.argmax(ranks >= q))
            assert estimate.quantile(q, attribute) == expected
            low, high = estimate.quantile_interval(q, attribute=attribute)
            assert low <= expected <= high
        assert estimate.cdf(attribute)[-1] == 1
    assert estimate.quantile([0.5, 0.9], "attribute 1").shape == (2,)


def test_refused_questions(estimate):
    for where in (
        3,
        Between(0, 1),
        {2: 0},
        {0: 6},
        {0: Between(3, 2)},
        {0: (2, 3)},
        {},
        {"cell": 1},
        {0: 1.0},
    ):
        with pytest.raises(InvalidQuestion):
            estimate.answer(where)
        with pytest.raises(InvalidQuestion):
            estimate.mechanism.variance(where)
    for ask in (estimate.range, estimate.mechanism.range_variance):
        with pytest.raises(InvalidRange, match="there are 2"):
            ask(0, 1)
    for refused in (None, 2, "cell", True):
        with pytest.raises(InvalidQuestion):
            estimate.quantile(0.5, refused)


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (3, 1, 5), (2,) * 8])
@pytest.mark.parametrize("epsilon", [2.0**-20, 1, 1024, "1/3"])
def test_odd_shapes_and_any_epsilon(shape, epsilon):
    kinds = [CentralFlat(shape, epsilon), Hierarchy(shape, epsilon, 2)]
    kinds += [Hierarchy(shape, epsilon, 2, inference=False)]
    kinds += [Wavelet(shape, epsilon)] if len(shape) < 8 else []
    for mechanism in kinds:
        assert mechanism.audit().holds
        estimate = mechanism.release(np.ones(shape, dtype=int), np.random.default_rng(1))
        told = estimate.answer({0: 0})
        assert np.isfinite([told.value, *told.interval()]).all()
        assert told.variance > 0
        if epsilon == 1024:
            assert told.value == pytest.approx(np.prod(shape[1:]))


def test_refused_counts():
    mechanism = Hierarchy((2, 3), 1.0, 2)
    with pytest.raises(InvalidHistogram, match=r"counts\[1, 2\] = -1") as refusal:
        mechanism.release([[1, 2, 3], [4, 5, -1]])
    assert refusal.value.index == (1, 2)
    for counts in ([1, 2, 3, 4, 5, 6], [[1, 2], [3, 4], [5, 6]], [[1.0] * 3] * 2):
        with pytest.raises(InvalidHistogram):
            mechanism.release(counts)
