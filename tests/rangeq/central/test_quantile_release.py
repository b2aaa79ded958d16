"""Quantiles by the exponential mechanism: the exact law, its privacy, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from frequency import InvalidValue
from rangeq.central import QuantileRelease, quantiles
from rangeq.central.quantile_release import UsersBetween, drawn
from tests.goodness_of_fit import FALSE_ALARM, goodness

ALL = Fraction(0), Fraction(1)


def losses(places: Any, q: Fraction, first: int, end: int) -> list[int]:
    """The slow twin: of each place, by counting."""
    unit, n = max(q, 1 - q), len(places)
    below = [sum(one < place for one in places) for place in range(first, end)]
    return [int(abs((1 - q) * i - q * (n - i)) / unit) for i in below]


def law(release: QuantileRelease, places: Any, q: Fraction, end: int) -> list[Fraction]:
    weights = release.weights(len(places))
    found = [weights[min(k, len(weights) - 1)] for k in losses(places, q, 0, end)]
    return [Fraction(weight, sum(found)) for weight in found]


CASES = [[], [3], [0, 0, 0], [5, 5, 2, 9, 9, 9, 1], [11] * 6, list(range(12)) * 2]


@pytest.mark.parametrize("epsilon", ["1/10", 1, 5])
@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1, 3)])
def test_one_user_more_changes_no_probability_by_more_than_is_allowed(q, epsilon) -> None:
    """Exactly, for every place that the user may have."""
    release = QuantileRelease(12, (q,), epsilon)
    assert release.audit().holds
    worst = Fraction(1)
    for places in CASES:
        own = law(release, places, q, 12)
        for user in range(12):
            more = law(release, [*places, user], q, 12)
            worst = max(worst, *(max(a / b, b / a) for a, b in zip(own, more, strict=True)))
    assert worst <= release.audit().ratio
    assert worst > release.audit().ratio ** Fraction(1, 4)  # and not by far less


@pytest.mark.parametrize("places", CASES, ids=str)
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 5), Fraction(1)])
def test_what_is_drawn_has_the_law(q, places) -> None:
    """A chi-square test that alarms falsely once in a million; of another quantile it does."""
    release, rng = QuantileRelease(12, (q,), "1/2"), np.random.default_rng(7)

    def source(size: int) -> Any:
        return rng.integers(0, 1 << 64, size=size, dtype=np.uint64)

    part = UsersBetween((q,), *ALL, np.sort(np.array(places, dtype=np.int64)), 0, 12)
    weights = release.weights(len(places))
    found = np.bincount([drawn(part, q, weights, source) for _ in range(4000)], minlength=12)
    assert goodness(found, [float(p) for p in law(release, places, q, 12)]) > FALSE_ALARM
    if len(set(places)) > 3:
        other = [float(p) for p in law(release, places, 1 - q / 3, 12)]
        assert goodness(found, other) < FALSE_ALARM


@pytest.mark.slow
def test_far_places_are_drawn_alike() -> None:
    """A table of two weights: all places but the nearest have the last one."""
    places = np.array([2, 3, 7, 8, 8, 10])
    part, rng = UsersBetween((Fraction(1, 2),), *ALL, places, 0, 12), np.random.default_rng(3)

    def source(size: int) -> Any:
        return rng.integers(0, 1 << 64, size=size, dtype=np.uint64)

    weights = [9, 1]
    near = [k == 0 for k in losses(places, Fraction(1, 2), 0, 12)]
    expected = np.where(near, 9, 1) / np.where(near, 9, 1).sum()
    found = np.bincount(
        [drawn(part, Fraction(1, 2), weights, source) for _ in range(20_000)], minlength=12
    )
    assert goodness(found, expected) > FALSE_ALARM


def test_weights_fall_by_no_more_than_beta() -> None:
    for epsilon in ("1/4096", "1/10", 1, 30):
        release = QuantileRelease(100, (0.1, 0.5, 0.9), epsilon)
        weights = release.weights(10**7 if epsilon != "1/4096" else 10**4)
        assert all(b >= release.beta * a for a, b in pairwise(weights))
        assert all(a > b > 0 for a, b in pairwise(weights))
    assert QuantileRelease(9, (0.5,), 1).weights(0) == [1 << 62]


@pytest.mark.parametrize("population", ["even", "heaped", "spiky"])
def test_ranks_are_near(population) -> None:
    rng, n = np.random.default_rng(1), 20_000
    values = {
        "even": rng.integers(0, 1000, n),
        "heaped": rng.integers(0, 10, n) * 100,
        "spiky": np.where(rng.random(n) < 0.6, 333, rng.integers(0, 1000, n)),
    }[population]
    asked = [0.01, 0.25, 0.5, 0.75, 0.99]
    found = quantiles(values, asked, 1.0, domain=1000, rng=rng)
    assert (np.diff(found) >= 0).all()
    for q, value in zip(asked, found, strict=True):
        low, high = (values < value).mean(), (values <= value).mean()
        assert low - 0.01 < q < high + 0.01


def test_shapes_orders_and_seeds() -> None:
    values = np.arange(1000) % 50
    one = quantiles(values, 0.5, 1.0, domain=50, rng=np.random.default_rng(3))
    assert isinstance(one, int)
    table = quantiles(
        values, [[0.9, 0.1], [0.5, 0.9]], 1.0, domain=50, rng=np.random.default_rng(3)
    )
    assert table.shape == (2, 2)
    assert table[0, 0] == table[1, 1] >= table[1, 0] >= table[0, 1]
    again = quantiles(
        values, [[0.9, 0.1], [0.5, 0.9]], 1.0, domain=50, rng=np.random.default_rng(3)
    )
    assert table.tolist() == again.tolist()
    assert 0 <= quantiles(values, "1/3", 1.0, domain=50) < 50  # by the operating system's
    assert quantiles([], [0.0, 1.0], 1.0, domain=1).tolist() == [0, 0]
    assert 0 <= quantiles([], 0.5, 1.0, domain=7) < 7
    assert quantiles([6], 0.0, 20.0, domain=7) in range(7)
    release = QuantileRelease(50, (0.5, "1/4", Fraction(1, 4)), 1.0)
    assert release == QuantileRelease(50, [0.5, 0.25, 0.25], 1.0)
    assert release.rounds == 2
    assert QuantileRelease(50, tuple(k / 100 for k in range(1, 100)), 1.0).rounds == 7


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"q": ()}, ValueError, "q must be"),
        ({"q": (1.5,)}, ValueError, "q must be"),
        ({"q": (-0.1,)}, ValueError, "q must be"),
        ({"q": (float("nan"),)}, ValueError, "q must be"),
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": 1e-4}, ValueError, "epsilon"),
        ({"epsilon": float("inf")}, ValueError, "epsilon"),
        ({"domain": 0}, ValueError, "domain"),
        ({"domain": 1 << 27}, ValueError, "domain"),
    ],
)
def test_what_cannot_be(change, error, message) -> None:
    with pytest.raises(error, match=message):
        QuantileRelease(**{"domain": 9, "q": (0.5,), "epsilon": 1.0, **change})


def test_wrong_values_and_sources_are_refused_before_any_draw() -> None:
    release, rng = QuantileRelease(9, (0.5,), 1.0), np.random.default_rng(1)
    before = rng.bit_generator.state
    for values in ([9], [-1], [0.5], ["a"], [None], np.ma.masked_array([1, 2], [True, False])):
        with pytest.raises((InvalidValue, ValueError)):
            release.release(values, rng)
    assert rng.bit_generator.state == before
    with pytest.raises(TypeError):
        release.release([1], 5)


def test_products_beyond_64_bits() -> None:
    q = Fraction(123_457, 1_000_000)
    part = UsersBetween((q,), *ALL, np.arange(50), 0, 50)
    fine = Fraction(123_457 * 10**30, 10**36 + 1)
    part_fine = part._replace(asked=(fine,))
    release = QuantileRelease(50, (q,), 1.0)
    weights = release.weights(50)

    def source(size: int) -> Any:
        return np.full(size, 1 << 61, dtype=np.uint64)

    assert drawn(part, q, weights, source) == drawn(part_fine, fine, weights, source)


@pytest.mark.parametrize("epsilon", ["1/5", 1, 3, 6])
def test_the_predicted_error_is_that_of_what_is_drawn(epsilon) -> None:
    """Of the median of different values, by its exact law: not that of continuous noise."""
    release = QuantileRelease(401, (Fraction(1, 2),), epsilon)
    chances = law(release, list(range(400)), Fraction(1, 2), 401)
    square = sum(chance * (place - 200) ** 2 for place, chance in enumerate(chances))
    assert release.predicted_error() == pytest.approx(float(square) ** 0.5, rel=0.01)
