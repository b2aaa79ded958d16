"""Staircase noise: its distribution, what a step changes of it, and its moments.

False alarms: as for discrete Laplace noise.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from mechdesign import InexactNumber
from mechdesign.base import bit_source
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.noise.staircase import MOST_POINTS, GroupedNoise, Staircase, staircase_moments
from tests.goodness_of_fit import FALSE_ALARM

LAWS = {
    "one": [[0]],
    "one, moved": [[-3]],
    "a gap": [[4], [-1]],
    "a pair": [[0, 0], [1, -1], [-1, 1]],
    "between": [[0, 0], [1, -1]],
    "skewed": [[0, 0, 0], [1, -1, 0], [0, 1, -2], [5, 0, 0]],
    "four": [[0, 0, 0, 0], [1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]],
}

CASES = [pytest.param(points, id=name) for name, points in LAWS.items()]


def law_of(points, alpha, reach):
    """The probabilities on a box, vector by vector, and their sum before they are scaled."""
    points = np.array(points)
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach
    vectors = np.array(list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))))
    away = np.abs(vectors[:, None, :] - points).sum(axis=2).min(axis=1)
    weights = float(alpha) ** away
    return vectors, weights / weights.sum(), weights.sum()


@pytest.mark.parametrize("points", CASES)
@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(1, 50)])
def test_moments_are_those_of_the_probabilities(points, alpha):
    if len(points[0]) == 4:
        alpha /= 4  # so that a box holds nearly all
    law = Staircase(alpha=alpha, points=points)
    vectors, chances, total = law_of(points, alpha, {1: 60, 2: 40, 3: 22, 4: 9}[law.numbers])
    mean = chances @ vectors
    away = vectors - mean
    close = {"rel": 1e-6, "abs": 1e-6}
    assert law.mean == pytest.approx(mean, **close)
    assert law.covariance == pytest.approx((away * chances[:, None]).T @ away, **close)
    assert staircase_moments(law.points, float(alpha))[0] == pytest.approx(total, **close)
    proposals = len(points) * ((1 + alpha) / (1 - alpha)) ** law.numbers
    assert law.acceptance == pytest.approx(total / float(proposals), **close)
    assert 1 / len(points) * (1 - 1e-12) <= law.acceptance <= 1 + 1e-12


@pytest.mark.parametrize("points", CASES)
def test_one_number_changed_by_one_changes_no_probability_by_more_than_alpha(points):
    """In whole distances: the probabilities are powers of alpha by them."""
    points = np.array(points)
    vectors = np.array(list(product(range(-5, 6), repeat=points.shape[1])))

    def distance(of):
        return np.abs(of[:, None, :] - points).sum(axis=2).min(axis=1)

    for step in np.eye(points.shape[1], dtype=int):
        assert set(distance(vectors + step) - distance(vectors)) <= {-1, 0, 1}


@pytest.mark.parametrize("points", CASES)
@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(4, 5)])
def test_draws_have_the_probabilities(points, alpha):
    if len(points[0]) > 2:
        alpha /= 3  # so that a box holds nearly all
    law = Staircase(alpha=alpha, points=points)
    draws = law.draw(40_000, bit_source(np.random.default_rng(7)))
    assert draws.shape == (40_000, law.numbers)
    vectors, chances, _ = law_of(points, alpha, {1: 90, 2: 60, 3: 20, 4: 9}[law.numbers])
    order = np.argsort(-chances, kind="stable")[:200]
    order = order[chances[order] * len(draws) > 10]
    places = {tuple(vector): i for i, vector in enumerate(vectors[order].tolist())}
    found = np.bincount(
        [places.get(tuple(draw), len(order)) for draw in draws.tolist()], minlength=len(order) + 1
    )
    expected = np.append(chances[order], 1 - chances[order].sum()) * len(draws)
    kept = expected > 10
    expected[~kept], scale = 0, found[kept].sum() / expected[kept].sum()
    assert stats.chisquare(found[kept], expected[kept] * scale).pvalue > FALSE_ALARM
    if len(points) > 1:  # independent noise of the same alpha is told from it
        other = DiscreteLaplace(alpha=alpha).draw(draws.size, bit_source(np.random.default_rng(8)))
        other = other.reshape(draws.shape) + np.round(law.mean).astype(int)
        wrong = np.bincount(
            [places.get(tuple(draw), len(order)) for draw in other.tolist()],
            minlength=len(order) + 1,
        )
        scale = wrong[kept].sum() / expected[kept].sum()
        assert stats.chisquare(wrong[kept], expected[kept] * scale).pvalue < FALSE_ALARM


@pytest.mark.parametrize("numbers", [1, 2, 3])
def test_proposals_are_kept_for_the_first_of_the_nearest_points(numbers):
    """Against all distances, within and far beyond the box."""
    rng = np.random.default_rng(numbers)
    every = np.stack(np.meshgrid(*[np.arange(-4, 4)] * numbers), axis=-1).reshape(-1, numbers)
    law = Staircase(alpha="9/10", points=rng.permutation(every)[: len(every) // 2])
    around = rng.integers(0, len(law.points), 3000)
    noise = rng.geometric(0.4, (3000, numbers)) * rng.integers(-1, 2, (3000, numbers))
    drawn = law.points[around] + noise
    distances = np.abs(drawn[:, None] - law.points).sum(axis=2)
    found = law._is_of(drawn, around, np.abs(noise).sum(axis=1))
    assert found.tolist() == (distances.argmin(axis=1) == around).tolist()
    assert 0 < found.sum() < 3000


def test_around_one_point_it_is_discrete_laplace_noise_word_by_word():
    alpha = Fraction(7, 9)
    law, laplace = Staircase(alpha=alpha, points=[[0, 0]]), DiscreteLaplace(alpha=alpha)
    drawn = law.draw(1000, bit_source(np.random.default_rng(3)))
    plain = laplace.draw(2000, bit_source(np.random.default_rng(3)))
    assert np.array_equal(drawn.ravel(), plain)
    assert law.covariance == pytest.approx(float(laplace.variance) * np.eye(2))
    assert law.draw(0, bit_source(np.random.default_rng(3))).shape == (0, 2)


def test_groups_draw_each_their_own_law():
    pair = Staircase(alpha="1/1000000", points=[[5, -5], [7, -7]])
    one = Staircase(alpha="1/1000000", points=[[100]])
    noise = GroupedNoise([pair, one, pair])
    assert noise.alphas == [Fraction(1, 10**6)] * 3
    drawn = np.array([noise.draw(5, bit_source(np.random.default_rng(k))) for k in range(200)])
    assert set(np.unique(drawn[:, 2])) <= {99, 100, 101}
    assert (drawn[:, 0] + drawn[:, 1] == 0).mean() > 0.99
    assert 0 < (drawn[:, 0] == 5).mean() < 1
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 3])[0, 1]) < 0.4  # drawn apart


@pytest.mark.parametrize(
    "points",
    [
        [],
        [[]],
        [0, 1],
        [[0.0]],
        [["a"]],
        [[0], [0]],
        [[0] * 9],
        [[0], [1 << 23]],
        [[1 << 23]],
        [[0] * 8, [9] * 8],
        np.arange(MOST_POINTS + 1)[:, None],
    ],
    ids=lambda points: f"{np.shape(points)}",
)
def test_what_are_no_points_is_refused(points):
    with pytest.raises(ValueError, match=r"point|law"):
        Staircase(alpha="1/2", points=points)


def test_what_is_no_alpha_is_refused():
    for alpha in (0, 1, 2, "-1/2"):
        with pytest.raises(ValueError, match="alpha must lie above 0"):
            Staircase(alpha=alpha, points=[[0]])
    with pytest.raises(InexactNumber):
        Staircase(alpha=0.5, points=[[0]])
