"""The Wasserstein-2 distance against the linear program of all pairs of cells, and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from rangeq.spatial import wasserstein


def of_all_pairs(p, q):
    """The definition: a flow from every cell to every cell."""
    places = np.array(list(np.ndindex(p.shape)))
    cost = ((places[:, None] - places) ** 2).sum(axis=-1)
    cells = len(places)
    sums = np.concatenate(
        [np.kron(np.eye(cells), np.ones(cells)), np.kron(np.ones(cells), np.eye(cells))]
    )
    both = np.concatenate([p.ravel(), q.ravel()])
    found = linprog(cost.ravel(), A_eq=sums[:-1], b_eq=both[:-1], method="highs")
    return math.sqrt(found.fun)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (4, 5), (6, 3)])
@pytest.mark.parametrize("seed", [1, 2])
def test_two_steps_are_as_short_as_one(shape, seed) -> None:
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(math.prod(shape), 0.3)).reshape(shape) for _ in range(2))
    expected = of_all_pairs(p, q) if math.prod(shape) > 1 else 0.0
    assert wasserstein(p, q) == pytest.approx(expected, abs=1e-6)
    assert wasserstein(q, p, cell=3.0) == pytest.approx(3 * expected, abs=1e-5)
    assert wasserstein(7 * p, 7 * q) == pytest.approx(expected, abs=1e-6)


def test_a_line_has_a_closed_form() -> None:
    """Quantiles are moved to quantiles."""
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(40), 2)
    cuts = np.unique(np.concatenate([[0.0], np.cumsum(p), np.cumsum(q)]).clip(0, 1))
    middle = (cuts[1:] + cuts[:-1]) / 2
    one, other = (np.searchsorted(np.cumsum(f), middle) for f in (p, q))
    expected = math.sqrt(np.diff(cuts) @ (one - other) ** 2)
    assert wasserstein(p[None], q[None]) == pytest.approx(expected, rel=1e-5)
    assert wasserstein(p[:, None], q[:, None]) == pytest.approx(expected, rel=1e-5)


def test_moved_as_a_whole() -> None:
    p = np.zeros((20, 20))
    p[2:8, 3:9] = np.random.default_rng(4).random((6, 6))
    moved = np.roll(p, (5, 9), axis=(0, 1))
    assert wasserstein(p, moved, cell=250) == pytest.approx(250 * math.hypot(5, 9), rel=1e-6)
    assert wasserstein(p, p) == pytest.approx(0, abs=1e-6)


def test_what_rounding_leaves_of_nothing_is_nothing() -> None:
    rng = np.random.default_rng(5)
    p, q = (np.where(rng.random((9, 9)) < 0.3, rng.random((9, 9)), 7e-18) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    expected = of_all_pairs(*(np.where(one > 1e-9, one, 0) for one in (p, q)))
    assert wasserstein(p, q) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1.0], [1.0], "of one shape"),
        (np.ones((2, 3)), np.ones((3, 2)), "of one shape"),
        ([[1.0, -0.1]], [[0.9, 0.0]], "at least 0"),
        ([[1.0, math.nan]], [[0.9, 0.1]], "at least 0"),
        ([[0.0, 0.0]], [[0.0, 0.0]], "not all 0"),
        ([[1.0, 1.0]], [[1.0, 0.0]], "the same sum"),
        (np.ones((70, 64)), np.ones((70, 64)), "join cells"),
    ],
)
def test_what_has_no_distance(first, second, message) -> None:
    with pytest.raises(ValueError, match=message):
        wasserstein(first, second)
