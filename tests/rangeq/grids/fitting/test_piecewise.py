"""Answers of planes and lines against sums of their values."""

from __future__ import annotations

import numpy as np
import pytest

from rangeq.grids.fitting import Plane


def test_planes_answer_by_adding_up_values() -> None:
    rng = np.random.default_rng(4)
    plane = Plane(((0, 3, 4, 10), (0, 2, 7)), rng.dirichlet(np.ones(6)).reshape(3, 2))
    values = plane.values()
    assert values.sum() == pytest.approx(1)
    ends = np.array(
        [
            (a, b, e, f)
            for a in range(10)
            for b in range(a, 10)
            for e in range(7)
            for f in range(e, 7)
        ]
    )
    found = plane.quadrants(ends[:, [0, 2]], ends[:, [1, 3]])
    for (a, b, e, f), quadrants in zip(ends, found, strict=True):
        x, y = np.zeros(10, dtype=bool), np.zeros(7, dtype=bool)
        x[a : b + 1] = y[e : f + 1] = True
        expected = [[values[np.ix_(u, v)].sum() for v in (y, ~y)] for u in (x, ~x)]
        np.testing.assert_allclose(quadrants, expected, atol=1e-12)
    line = plane.marginal(1)
    assert line.answers(np.array([1]), np.array([4]))[0] == pytest.approx(values[:, 1:5].sum())
