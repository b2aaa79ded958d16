"""Weighted update (Algorithm 2) against the most entropy by a general solver."""

from __future__ import annotations

from itertools import combinations, product

import cvxpy
import numpy as np
import pytest

from mechdesign.base.numbers import Floats
from rangeq.grids.fitting import weighted_update
from tests.general_solver import solve


def quadrants_of(joint: np.ndarray) -> np.ndarray:
    """Those of one query, whose parts these are: shape (1, pairs, 2, 2)."""
    axes = range(joint.ndim)
    return np.stack(
        [joint.sum(axis=tuple(a for a in axes if a not in pair)) for pair in combinations(axes, 2)]
    )[None]


def most_entropy(quadrants: np.ndarray, several: int) -> np.ndarray:
    """Appendix A.8 by a convex solver: shape (2, .., 2)."""
    parts = cvxpy.Variable(2**several, nonneg=True)
    bits = np.array(list(product((0, 1), repeat=several)))
    constraints = []
    for number, pair in enumerate(combinations(range(several), 2)):
        for x, y in product((0, 1), repeat=2):
            inside = np.flatnonzero((bits[:, pair[0]] == x) & (bits[:, pair[1]] == y))
            constraints.append(cvxpy.sum(parts[inside]) == quadrants[number, x, y])
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(parts))), constraints)
    solve(problem)
    return np.asarray(parts.value).reshape((2,) * several)


@pytest.mark.parametrize("several", [3, 4, 5])
def test_weighted_update_finds_the_most_entropy(several: int) -> None:
    rng = np.random.default_rng(several)
    joints = [rng.dirichlet(np.full(2**several, 1.5)).reshape((2,) * several) for _ in range(3)]
    quadrants = np.concatenate([quadrants_of(joint) for joint in joints])
    found, changes = weighted_update(quadrants, several, 1e-10)
    for row in range(3):
        np.testing.assert_allclose(found[row], most_entropy(quadrants[row], several), atol=2e-4)
        np.testing.assert_allclose(quadrants_of(found[row])[0], quadrants[row], atol=1e-4)
    assert changes[0] > changes[-1]


def test_weighted_update_of_independent_full_and_empty_ranges() -> None:
    inside = np.array(
        [[0.3, 0.5, 0.9, 0.2], [1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.4, 1.0, 1.0]]
    )
    both = np.stack([inside, 1 - inside], axis=2)
    quadrants = np.stack(
        [both[:, j, :, None] * both[:, k, None, :] for j, k in combinations(range(4), 2)], axis=1
    )
    found, _ = weighted_update(quadrants, 4, 1e-12)
    np.testing.assert_allclose(found[:, 0, 0, 0, 0], inside.prod(axis=1), atol=1e-9)


def test_batches_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    # Contradicting each other
    quadrants = rng.dirichlet(np.ones(4), size=(50, 6)).reshape(50, 6, 2, 2)
    together, _ = weighted_update(quadrants, 4, 1e-8)
    alone = np.concatenate([weighted_update(quadrants[k : k + 1], 4, 1e-8)[0] for k in range(50)])
    np.testing.assert_array_equal(together, alone)
    assert np.isfinite(together).all()


def pairs_of(joint: Floats) -> Floats:
    d = joint.ndim
    return np.array(
        [
            [
                joint.sum(axis=tuple(k for k in range(d) if k not in pair))
                for pair in combinations(range(d), 2)
            ]
        ]
    )


@pytest.mark.parametrize(("sets", "several"), [(3, 3), (2, 3)])
def test_weighted_update_of_below_in_and_above_has_the_most_entropy(
    sets: int, several: int
) -> None:
    rng = np.random.default_rng(several)
    joint = rng.dirichlet(np.full(sets**several, 2.0)).reshape((sets,) * several)
    tables = pairs_of(joint)
    found, _ = weighted_update(tables, several, 1e-10)
    x = cvxpy.Variable(sets**several)
    indices = np.array(list(np.ndindex(*joint.shape)))
    constraints = [
        cvxpy.sum(x[np.flatnonzero((indices[:, j] == a) & (indices[:, k] == b))])
        == tables[0, number, a, b]
        for number, (j, k) in enumerate(combinations(range(several), 2))
        for a, b in np.ndindex(sets, sets)
    ]
    solve(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(x))), constraints))
    np.testing.assert_allclose(found[0].ravel(), x.value, atol=1e-4)
