"""Tables of windows against their definition, and the gradients of the search."""

import numpy as np
import pytest

from mechdesign.local.optimality import variances_by_input
from mechdesign.local.patterns import gram
from mechdesign.local.windows import (
    Target,
    Windows,
    _Program,
    largest_moment,
    optimised,
    randomised_response,
)

UNITS = 1 << 62


def some_windows(k, widths, seed):
    rng = np.random.default_rng(seed)
    heights, shares = rng.random(sum(widths)), rng.random(len(widths))
    return Windows(k, tuple(widths), heights / heights.sum(), shares / shares.sum())


CASES = [(2, (1,)), (2, (1, 2)), (3, (4,)), (5, (1, 3)), (7, (2, 5, 1))]


def by_definition(windows, gamma):
    """Windows one by one: of width w the first ends at item 0, the last begins at the last item."""
    rows, before = [], 0
    for width, share in zip(windows.widths, windows.shares, strict=True):
        count = windows.domain + width - 1
        for first in range(1 - width, windows.domain):
            rows.append([gamma * share / count] * windows.domain)
            for place in range(width):
                if 0 <= first + place < windows.domain:
                    height = windows.heights[before + place]
                    rows[-1][first + place] += (1 - gamma) * height
        before += width
    return np.array(rows)


def moments_by_definition(table, ratio):
    """E W^2 for all pairs, with the probability omega of each output written out."""
    k = table.shape[1]
    found = []
    for x in range(k):
        for z in range(k):
            if x != z:
                each = [
                    min(row) * ((row[x] - ratio * row[z]) / min(row)) ** 2 for row in table.tolist()
                ]
                found.append(sum(each))
    return found


@pytest.mark.parametrize(("k", "widths"), CASES)
@pytest.mark.parametrize("gamma", [0.01, 0.3, 0.99])
def test_weights_are_the_table_of_the_definition(k, widths, gamma):
    windows = some_windows(k, widths, k)
    weights = windows.weights(gamma, UNITS)
    assert all(type(weight) is int and weight > 0 for row in weights for weight in row)
    assert {sum(column) for column in zip(*weights, strict=True)} == {UNITS}
    table = np.array(weights, dtype=float) / UNITS
    np.testing.assert_allclose(table, by_definition(windows, gamma), rtol=1e-9)
    np.testing.assert_allclose(
        gamma * windows.blanket[:, None] + (1 - gamma) * windows.truth, table, rtol=1e-9
    )


@pytest.mark.parametrize(("k", "widths"), CASES)
def test_pairs_equally_far_apart_are_alike_exactly(k, widths):
    windows = some_windows(k, widths, 1)
    rows = list(zip(windows.part.tolist(), windows.weights(0.2, UNITS), strict=True))
    for apart in range(1, k):
        laws = {
            tuple(sorted((part, row[x], row[x + apart]) for part, row in rows))
            for x in range(k - apart)
        }
        assert len(laws) == 1


@pytest.mark.parametrize(("k", "widths"), CASES)
@pytest.mark.parametrize("ratio", [1.001, 1.3, 2.7])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_the_blanket_is_what_the_moment_asks_for(k, widths, ratio, share):
    windows = some_windows(k, widths, 3)
    table = by_definition(windows, share)
    # Every output has an item that it does not cover, so that the blanket is the least of each row
    if max(widths) < k:
        moments = moments_by_definition(table, ratio)
        assert largest_moment(table, ratio) == pytest.approx(max(moments), rel=1e-9)
        target = Target(np.eye(k), ratio, max(moments))
        assert target.blanket(windows.apart(ratio))[0] == pytest.approx(share, rel=1e-6)


def test_the_derivative_of_the_blanket():
    target = Target(np.eye(3), 1.4, 50.0)
    for apart in (2.0, 30.0, 1000.0):
        step = 1e-5 * apart
        numeric = (target.blanket(apart + step)[0] - target.blanket(apart - step)[0]) / (2 * step)
        assert target.blanket(apart)[1] == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize(("k", "widths"), CASES)
@pytest.mark.parametrize("sharpness", [1, 30, 300])
def test_gradients_are_those_of_finite_differences(k, widths, sharpness):
    target = Target(gram("prefixes", k)[0], 1.3, 40.0)
    program = _Program(target, some_windows(k, widths, 2))
    z = np.random.default_rng(0).normal(size=len(widths) + sum(widths))
    _, gradient = program.objective(z, sharpness)
    numeric = [
        (program.objective(z + h, sharpness)[0] - program.objective(z - h, sharpness)[0]) / 2e-6
        for h in 1e-6 * np.eye(len(z))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("k", "widths"), CASES)
def test_the_objective_is_the_variance_under_the_moment(k, widths):
    target = Target(gram("ranges", k)[0], 1.3, 40.0)
    windows = some_windows(k, widths, 4)
    z = np.log(np.concatenate([windows.shares, windows.heights]))
    value, _ = _Program(target, windows).objective(z, 3000)
    table = by_definition(windows, target.blanket(windows.apart(1.3))[0])
    variance = variances_by_input(table, target.gram, np.full(k, 1 / k)).mean()
    assert np.exp(value) == pytest.approx(variance, rel=0.01)


def test_what_is_hardly_sent_is_left_out():
    windows = Windows(
        6, (3, 2, 1), np.array([0, 0.4, 1e-9, 0.3, 0.2999, 1e-9]), np.array([0.5, 0.49999, 1e-5])
    )
    kept = windows.trimmed(0.2)
    assert kept.widths == (1, 2)
    assert kept.heights.sum() == pytest.approx(1)
    assert kept.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(kept.heights, [0.4, 0.3, 0.3], atol=1e-3)


@pytest.mark.parametrize("name", ["histogram", "prefixes", "ranges"])
@pytest.mark.parametrize(("k", "moment"), [(2, 3.0), (5, 30.0), (12, 5.0), (12, 300.0)])
def test_a_search_ends_below_where_it_may_begin(name, k, moment):
    target = Target(gram(name, k)[0], 1.1, moment)
    even = np.full(k, 1 / k)

    def variance(windows):
        gamma = target.blanket(windows.apart(1.1))[0]
        return variances_by_input(by_definition(windows, gamma), target.gram, even).mean()

    found = optimised(target)
    part = {("prefixes", 5.0): 0.83, ("ranges", 5.0): 0.92}.get((name, moment), 1.005)
    assert variance(found) <= variance(randomised_response(k)) * part
