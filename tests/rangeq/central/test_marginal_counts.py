"""Releases of marginals of more attributes than a histogram has."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from frequency import Between
from frequency.schema import Categorical, Numeric, Schema
from mechdesign import ZCDP, Privacy
from rangeq.central import (
    CentralFlat,
    InvalidHistogram,
    InvalidWorkload,
    MarginalCounts,
    MarginalStrategy,
    MatrixMechanism,
    Release,
    ResidualStrategy,
    UnanswerableQuery,
    Workload,
    count_cells,
    count_marginals,
    posterior_optimal,
    workload_optimal,
)

SIZES = (3, 2, 4, 2, 3, 2, 2, 2, 3, 2)
"""Ten attributes of 6,912 cells: more than a histogram has, and few enough to be written out."""

VIEWS = list(combinations(range(len(SIZES)), 2))


def schema_of(sizes):
    return Schema([Numeric(f"q{i}", low=0, high=n, whole=True) for i, n in enumerate(sizes)])


def people(sizes, users, seed=0):
    rng = np.random.default_rng(seed)
    return {f"q{i}": rng.integers(0, n + 1, users) for i, n in enumerate(sizes)}


def test_tables_are_those_of_the_histogram():
    sizes = (3, 2, 4)
    schema = schema_of(sizes)
    parts = [people(sizes, 50), people(sizes, 1, seed=1)]
    cells = count_cells(schema, parts)
    for ways in (1, 2, 3):
        counted = count_marginals(schema, parts, ways)
        assert counted.users == 51
        assert counted.sizes == cells.shape
        for view in combinations(range(3), ways):
            others = tuple(i for i in range(3) if i not in view)
            np.testing.assert_array_equal(counted.marginal(view), cells.sum(axis=others))
    np.testing.assert_array_equal(counted.marginal((2,)), cells.sum(axis=(0, 1)))
    assert counted.marginal(()) == 51
    with pytest.raises(InvalidHistogram, match=r"no table of the attributes \(0, 1\)"):
        count_marginals(schema, parts, 1).marginal((0, 1))
    assert count_marginals(schema, [], 2).users == 0


@pytest.mark.parametrize("promise", [ZCDP("1/2"), Privacy.from_epsilon(1)])
def test_a_release_of_tables_is_that_of_the_histogram(promise):
    sizes = (4, 3, 5)
    schema = schema_of(sizes)
    tables = [people(sizes, 300)]
    mechanism = posterior_optimal(schema.sizes, promise, 300)
    cells = Release.draw(schema, mechanism, count_cells(schema, tables), np.random.default_rng(1))
    counted = count_marginals(schema, tables)
    same = Release.draw(schema, mechanism, counted, np.random.default_rng(1))
    assert same == cells
    with pytest.raises(InvalidHistogram, match="a histogram of all cells"):
        Release.draw(schema, CentralFlat(schema.sizes, 1), counted)
    with pytest.raises(InvalidHistogram, match="counts must"):
        workload_optimal("cells", schema.sizes, ZCDP(1)).release(counted)
    with pytest.raises(InvalidHistogram, match="not"):
        posterior_optimal((4, 3), promise, 9).release(counted)


def written_out(strategy):
    """Its matrix, one Kronecker product after the other."""
    rows = []
    for view, weight in zip(strategy.views, strategy.weights, strict=True):
        block = np.ones((1, 1))
        for i, n in enumerate(strategy.sizes):
            inside = n * np.eye(n) - 1 if strategy.residual else np.eye(n)
            block = np.kron(block, inside if i in view else np.ones((1, n)))
        rows.append(weight * block)
    return np.vstack(rows)


def boxes(where, sizes):
    query = np.zeros(sizes)
    places = (np.atleast_1d(where.get(i, np.arange(n))) for i, n in enumerate(sizes))
    query[np.ix_(*places)] = 1
    return query


@pytest.mark.parametrize("residual", [True, False])
def test_closed_forms_are_those_of_the_matrix_written_out(residual):
    sizes = (3, 2, 2, 1, 2, 2, 2, 2, 2)
    views = [(), (0,), (2,), (0, 1), (1, 2), (0, 4, 8), (5, 6, 7)]
    weights = [5, 2, 7, 3, 1, 2, 4]
    strategy = MarginalStrategy(sizes, views, weights, residual)
    matrix = written_out(strategy)
    assert strategy.l1 == np.abs(matrix).sum(axis=0).max()
    assert strategy.l2_squared == (matrix**2).sum(axis=0).max()
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 30, sizes)
    tables = {view: counts.sum(axis=tuple(set(range(9)) - {*view})) for view in views}
    np.testing.assert_array_equal(strategy.measure(counts), matrix @ counts.ravel())
    np.testing.assert_array_equal(
        strategy.measure(MarginalCounts(sizes, tables)), matrix @ counts.ravel()
    )
    inverse = np.linalg.pinv(matrix, rcond=1e-10)
    noisy = strategy.measure(counts) + rng.integers(-9, 10, strategy.rows)
    assert strategy.estimate(noisy).ravel() == pytest.approx(inverse @ noisy, abs=1e-8)
    x = rng.normal(size=sizes)
    assert strategy.normal(x).ravel() == pytest.approx(matrix.T @ (matrix @ x.ravel()), rel=1e-8)
    estimate = MatrixMechanism(strategy, ZCDP(1)).estimate(noisy)
    covariance = inverse @ inverse.T
    asked: list[dict[int, Any]] = [
        {0: 1, 1: 0},
        {0: [0, 2], 4: 1, 8: 0},
        {5: 1, 7: 0},
        {2: 1},
        {3: 0},
    ]
    for where in asked if not residual else []:
        query = boxes(where, sizes)
        answer = estimate.answer(where)
        assert answer.value == pytest.approx(float(query.ravel() @ inverse @ noisy))
        expected = query.ravel() @ covariance @ query.ravel() * estimate.mechanism.noise_variance
        assert answer.variance == pytest.approx(expected)
        assert estimate.linear(query).variance == pytest.approx(expected)
    for where in ({3: 0}, {2: 1}):
        query = boxes(where, sizes)
        assert estimate.answer(where).value == pytest.approx(query.ravel() @ inverse @ noisy)
    for where in ({0: 1, 5: 1}, {1: 0, 2: 0, 4: 0}):
        with pytest.raises(UnanswerableQuery):
            estimate.answer(where)


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_designs_of_many_attributes_attain_the_bound(ways):
    design = workload_optimal(f"{ways}-way marginals", SIZES, ZCDP("1/2"), cache=False)
    assert design.continuous_gap == pytest.approx(0, abs=1e-6)
    schema = Schema(
        [Categorical(f"q{i}", [f"v{v}" for v in range(n)]) for i, n in enumerate(SIZES)]
    )
    rows = {f"q{i}": np.array([f"v{v % n}" for v in range(40)]) for i, n in enumerate(SIZES)}
    release = Release.draw(
        schema, design.mechanism, count_marginals(schema, [rows], ways), np.random.default_rng(1)
    )
    answer = release.estimate.answer({"q0": "v1"})
    assert abs(answer.value - 13) < 6 * answer.variance**0.5
    assert release.estimate.n == pytest.approx(40, abs=6 * 20)


def test_a_hundred_attributes_are_planned_released_kept_and_asked(tmp_path):
    sizes = (10,) * 100
    design = workload_optimal("1-way marginals", sizes, ZCDP("1/2"), cache=False)
    assert design.continuous_gap < 1e-6
    assert repr(design.workload) == "<Workload: 100 products of queries of 100 attributes>"
    mechanism = posterior_optimal(sizes, ZCDP("1/2"), 1000)
    assert mechanism.strategy.rows == 1 + 100 * 10 + 4950 * 100
    schema = Schema([Numeric(f"q{i}", low=0, high=9, whole=True) for i in range(100)])
    table = {f"q{i}": (np.arange(1000) * (i + 1)) % 10 for i in range(100)}
    release = Release.draw(schema, mechanism, count_marginals(schema, [table]))
    release.save(tmp_path / "many.release")
    again = Release.load(tmp_path / "many.release")
    assert again == release
    answer = again.estimate.answer({"q0": Between(2, 4), "q98": [1, 2]})
    truth = np.sum((table["q0"] >= 2) & (table["q0"] <= 4) & np.isin(table["q98"], [1, 2]))
    assert abs(answer.value - truth) < 6 * answer.variance**0.5
    with pytest.raises(UnanswerableQuery, match="more than 2"):
        again.estimate.estimate.counts  # noqa: B018


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({}, "or none"),
        ({(0,): [1, 2], (1,): [1, 1, 2]}, "different numbers"),
        ({(1, 0): [[1, 2]] * 3}, "no places"),
        ({(0,): [1, -1]}, "not an integer"),
        ({(0,): [1.0, 1.0]}, "integer type"),
        ({(2,): [1]}, "no places"),
        ({(0,): [1, 1, 1]}, "shape"),
    ],
)
def test_what_are_no_tables_is_said(tables, said):
    with pytest.raises(InvalidHistogram, match=said):
        MarginalCounts((2, 3), tables)


def test_what_needs_all_cells_is_refused_for_many_attributes():
    for asked, promise in (("ranges", ZCDP(1)), ("marginals", Privacy.from_epsilon(1))):
        with pytest.raises(ValueError, match="at most 8 attributes"):
            workload_optimal(asked, SIZES, promise)
    with pytest.raises(ValueError, match="at most 100 attributes"):
        Workload.of("marginals", (2,) * 101)
    with pytest.raises(InvalidWorkload, match="need 9 attributes"):
        Workload.of("9-way marginals", (2,) * 8)
    with pytest.raises(ValueError, match="more than 2"):
        count_marginals(schema_of((1 << 14, 1 << 14)), [])


def test_ranges_along_two_of_many_attributes_are_residuals_of_their_own():
    sizes = (4, 5, 3, 2, 4, 2, 3, 2, 2)
    design = workload_optimal("2-way ranges", sizes, ZCDP("1/2"), cache=False)
    strategy = design.strategy
    assert isinstance(strategy, ResidualStrategy)
    assert design.mechanism.audit().holds
    # Its sensitivity, column by column, and its variances, from the matrix written out
    rows = []
    for view, weight in zip(strategy.views, strategy.weights, strict=True):
        block = np.ones((1, 1), dtype=np.int64)
        for i, n in enumerate(sizes):
            side = strategy.sides[i] if i in view else np.ones((1, n), dtype=np.int64)
            block = np.kron(block, side)
        rows.append(weight * block)
    matrix = np.vstack(rows)
    assert strategy.l1 == np.abs(matrix).sum(axis=0).max()
    assert strategy.l2_squared == (matrix**2).sum(axis=0).max()
    least = workload_optimal("marginals", sizes, ZCDP("1/2"), cache=False).mechanism
    assert design.variance < 0.82 * least.workload_variance("2-way ranges")
    schema = schema_of([n - 1 for n in sizes])
    table = people([n - 1 for n in sizes], 400)
    release = Release.draw(schema, design.mechanism, count_marginals(schema, [table]))
    estimate = release.estimate.estimate
    scaled = matrix / np.linalg.norm(matrix)
    inverse = np.linalg.pinv(scaled, rcond=1e-9) / np.linalg.norm(matrix)
    for where in ({0: Between(1, 2), 1: Between(0, 3)}, {4: Between(1, 3)}, {1: [0, 2], 6: 1}):
        chosen = {
            i: np.arange(given.first, given.last + 1) if isinstance(given, Between) else given
            for i, given in where.items()
        }
        query = boxes(chosen, sizes)
        answer = estimate.answer(where)
        row = query.ravel() @ inverse
        expected = row @ row * design.mechanism.noise_variance
        assert answer.variance == pytest.approx(expected, rel=1e-5)
        exact = np.ones(400, dtype=bool)
        for i, places in chosen.items():
            exact &= np.isin(table[f"q{i}"], places)
        assert abs(answer.value - exact.sum()) < 6 * answer.variance**0.5
    with pytest.raises(UnanswerableQuery):
        estimate.answer({0: 1, 1: 1, 2: 1})
    alone = workload_optimal(["ranges", "cells", *["total"] * 7], sizes, ZCDP(1), cache=False)
    assert -1e-6 < alone.continuous_gap < 0.3
    assert release.estimate.fitted().answer({"q0": Between(1, 2)}).value >= 0
