"""Sums over boxes against the definition, and how little rounding adds to them."""

import numpy as np
import pytest

from rangeq.central.box_sums import BoxSums
from tests.rangeq.central.examples import ranges


def boxes_of(shape, rng, count=200):
    every = [ranges(size) for size in shape]
    chosen = [ends[:, rng.integers(0, ends.shape[1], count)] for ends in every]
    return np.array([a for a, _ in chosen]), np.array([b for _, b in chosen])


@pytest.mark.parametrize("shape", [(1,), (9,), (4, 5), (3, 1, 4), (2, 3, 2, 3)])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_sums_by_definition(shape, kind):
    rng = np.random.default_rng(1)
    values = rng.integers(-1000, 1000, shape)
    values = values if kind is np.int64 else values / 7
    first, last = boxes_of(shape, rng)
    found = BoxSums(values).between(first, last + 1)
    assert found.dtype == kind
    for k, (low, high) in enumerate(zip(first.T, last.T, strict=True)):
        inside = tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))
        assert found[k] == pytest.approx(values[inside].sum(), abs=1e-9)
        assert kind is np.float64 or found[k] == values[inside].sum()


def test_empty_boxes_and_large_values():
    values = np.zeros((64, 64))
    values[3, 3], values[40, 40] = 2.0**51, 2.0**51
    values += 1 / 3
    sums = BoxSums(values)
    assert sums.between(np.array([[5], [5]]), np.array([[5], [9]])).tolist() == [0]
    inside = sums.between(np.array([[10], [10]]), np.array([[40], [40]]))
    assert inside[0] == pytest.approx(300, abs=1e-6)  # what floats cumulated would lose
    assert np.cumsum(values)[-1] - np.cumsum(values)[40 * 64 + 40] != pytest.approx(511.67, abs=0.1)
