"""Strategies for Laplace noise: the gradient, figures to be met, and the trees that they beat."""

import math

import numpy as np
import pytest
import scipy

from mechdesign import Privacy
from rangeq.central import CentralFlat, Hierarchy, Wavelet, best_branching
from rangeq.central.matrix_mechanism import p_identity
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.p_identity import _error, _order, laplace_strategy
from rangeq.central.matrix_mechanism.workload import QuerySet, Workload

ONE = Privacy.from_epsilon(1.0)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_error_and_its_gradient(cells, rows, parts):
    rng = np.random.default_rng(cells + rows)
    queries, start = rng.normal(size=(6, cells)), rng.random((parts, rows, cells))
    gram = queries.T @ queries

    def slowly(flat):
        own = flat.reshape(parts, rows, cells)
        strategy = np.vstack([np.eye(cells), own[0] - own[1] if parts == 2 else own[0]])
        strategy = strategy / (1 + own.sum(axis=(0, 1)))
        return np.trace(gram @ np.linalg.inv(strategy.T @ strategy))

    found, slope = _error(start, gram)
    assert found == pytest.approx(slowly(start.ravel()), rel=1e-9)
    expected = scipy.optimize.approx_fprime(start.ravel(), slowly, 1e-7)
    assert slope.ravel() == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("cells", [1, 2, 3, 17, 64])
def test_columns_sum_to_one_and_rank_is_full(cells):
    strategy = laplace_strategy(QuerySet("ranges", cells).gram)
    assert (strategy >= 0).all()
    assert strategy.sum(axis=0) == pytest.approx(np.ones(cells))
    assert np.linalg.matrix_rank(strategy) == cells
    assert np.array_equal(strategy, laplace_strategy(QuerySet("ranges", cells).gram))


@pytest.mark.parametrize(
    "cells",
    [24, 57, *(pytest.param(n, marks=pytest.mark.slow) for n in (38, 100, 129, 178, 213, 256))],
)
def test_few_starts_do_for_ranges(cells, monkeypatch):
    """No search ends below them; nor does the order of the cells matter."""
    gram = QuerySet("ranges", cells).gram
    order = np.random.default_rng(1).permutation(cells)

    def error(gram):
        strategy = laplace_strategy(gram)
        return np.trace(gram @ np.linalg.inv(strategy.T @ strategy))

    found = error(gram)
    assert error(gram[np.ix_(order, order)]) == pytest.approx(found, rel=1e-6)
    monkeypatch.setattr(p_identity, "_MOST_RANGES", 0)
    assert found < error(gram) * (1 + 1e-6)


@pytest.mark.slow
def test_all_ranges_of_256_cells():
    design = workload_optimal("ranges", 256, ONE)
    tree = Hierarchy(256, 1.0, best_branching((256,), 1).best.fanouts)
    assert tree.average_variance() == pytest.approx(79.13, abs=0.01)
    assert design.variance < 0.821 * tree.average_variance()
    assert design.mechanism.audit().holds
    # Rounding to integers costs less than a thousandth
    gram = QuerySet("ranges", 256).gram
    strategy = laplace_strategy(gram)
    exactly = 2 * np.trace(gram @ np.linalg.inv(strategy.T @ strategy)) / (256 * 257 / 2)
    assert design.variance < 1.001 * exactly


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cells", "published"),
    [("ranges", 128, 4.75401217), ("prefixes", 128, 4.45015976), ("prefixes", 256, 5.19885321)],
)
def test_no_worse_than_published(name, cells, published):
    """Root mean square errors at epsilon^2 = 2 that HDMM's authors report: see the benchmarks."""
    queries = QuerySet(name, cells)
    strategy = laplace_strategy(queries.gram)
    error = np.trace(queries.gram @ np.linalg.inv(strategy.T @ strategy)) / queries.count
    assert np.sqrt(error) < published


@pytest.mark.slow
def test_all_ranges_of_512_cells():
    design = workload_optimal("ranges", 512, ONE)
    tree = Hierarchy(512, 1.0, best_branching((512,), 1).best.fanouts)
    assert design.variance < 0.81 * tree.average_variance()


@pytest.mark.slow
@pytest.mark.parametrize("cells", [5, 16, 60, 100])
@pytest.mark.parametrize("name", ["ranges", "prefixes", "width-5", "cells"])
def test_never_above_what_else_there_is(name, cells):
    """For continuous noise, with which designs are compared."""
    design = workload_optimal(name, cells, ONE)
    queries = QuerySet(name, cells).rows()

    def mean(mechanism):
        first, last = queries.argmax(axis=1), cells - 1 - queries[:, ::-1].argmax(axis=1)
        noises = [2 / (1.0 * float(share)) ** 2 if share else None for share in mechanism.shares]
        errors = mechanism.errors_of(noises)
        return float(np.mean(errors.variance(first[None], last[None])))

    fanouts = best_branching((cells,), 1).best.fanouts
    others = [CentralFlat(cells, 1), Wavelet(cells, 1), Hierarchy(cells, 1, 2)]
    others += [Hierarchy(cells, 1, fanouts), Hierarchy(cells, 1, fanouts, budget="optimal")]
    for other in others:
        assert design.variance <= 1.0001 * mean(other), other


@pytest.mark.parametrize("name", ["ranges", "prefixes", "width-20"])
def test_the_order_of_cells_is_found(name):
    order = np.random.default_rng(0).permutation(100)
    gram = QuerySet(name, 100).gram
    steps = np.diff(order[_order(gram[np.ix_(order, order)])])
    assert set(steps.tolist()) in ({1}, {-1})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranges", "prefixes"])
def test_the_order_of_cells_does_not_matter(name):
    """Permuted ranges, as HDMM's authors ask."""
    order = np.random.default_rng(0).permutation(64)
    queries = QuerySet(name, 64).rows()
    plain = workload_optimal(name, 64, ONE)
    permuted = workload_optimal(queries[:, order], 64, ONE)
    assert permuted.variance == pytest.approx(plain.variance, rel=0.002)


@pytest.mark.parametrize("seed", range(3))
def test_queries_of_any_signs(seed):
    queries = np.random.default_rng(seed).normal(size=(40, 24))
    gram = queries.T @ queries
    strategy = laplace_strategy(gram)
    assert np.abs(strategy).sum(axis=0) == pytest.approx(np.ones(24))
    assert np.trace(gram @ np.linalg.inv(strategy.T @ strategy)) <= np.trace(gram)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranges", "prefixes"])
def test_signs_of_cells_do_not_matter(name):
    """With -x for x in some cells, a strategy with its columns' signs changed is as good."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 64)
    gram = QuerySet(name, 64).gram
    plain, changed = laplace_strategy(gram), laplace_strategy(signs[:, None] * gram * signs)
    assert changed.min() < 0
    least = np.trace(gram @ np.linalg.inv(plain.T @ plain))
    changed = changed * signs
    assert np.trace(gram @ np.linalg.inv(changed.T @ changed)) == pytest.approx(least, rel=0.002)


@pytest.mark.parametrize("weight", [3, 300])
def test_differences_are_measured(weight):
    """Cells once, and differences of pairs so often: without signs nothing beats the cells."""
    pairs = np.kron(np.eye(6), [[1.0, -1.0]])
    gram = np.eye(12) + weight * (pairs.T @ pairs)
    strategy = laplace_strategy(gram)
    pair = gram[:2, :2]
    shares = np.linspace(0, 1, 2001)[1:]
    # All that a strategy for a pair with the cells and their difference can do
    errors = [
        np.trace(pair @ np.linalg.inv(a**2 * np.eye(2) + (1 - a) ** 2 * (2 * np.eye(2) - 1)))
        for a in shares
    ]
    found = np.trace(gram @ np.linalg.inv(strategy.T @ strategy))
    assert found == pytest.approx(6 * min(errors), rel=1e-4)
    assert (found < 0.95 * np.trace(gram)) == (weight == 300)


@pytest.mark.slow
def test_cells_of_no_query_beside_another_attribute():
    queries = np.zeros((3, 60))
    queries[0, :3] = queries[1, 2:5] = queries[2, 7] = 1
    design = workload_optimal(Workload.of([queries, "ranges"], (60, 80)), (60, 80), ONE)
    # Of products the noise is Laplace, of the strategies for each attribute
    norms = []
    ranges = QuerySet("ranges", 80)
    for gram in (queries.T @ queries / 3, ranges.gram / (80 * 81 / 2)):
        strategy = laplace_strategy(gram)
        norms.append(float(np.trace(gram @ np.linalg.pinv(strategy.T @ strategy))))
    assert design.variance == pytest.approx(2 * math.prod(norms), rel=0.01)


@pytest.mark.parametrize(
    ("workload", "domain", "variance"),
    [
        ("total", 9, 2),
        ("cells", 9, 2),
        ([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]], 4, 2),
        ([[0, 1, 0, 0], [0, 0, 1, 0]], 4, 2),
        ("ranges", 1, 2),
    ],
)
def test_cells_that_no_query_tells_apart_are_measured_together(workload, domain, variance):
    design = workload_optimal(workload, domain, ONE)
    assert design.continuous_bound == pytest.approx(variance, rel=1e-5)
    assert design.variance == pytest.approx(1 / (math.cosh(1) - 1), rel=1e-5)
    assert design.gap < 1e-5
    if domain == 4:
        assert design.strategy.rows == 2


@pytest.mark.slow
def test_weaker_and_stricter_promises_scale():
    strict, weak = (workload_optimal("ranges", 16, Privacy.from_epsilon(e)) for e in ("0.01", 8))
    assert strict.mechanism.audit().holds
    assert weak.mechanism.audit().holds
    assert strict.continuous_bound == pytest.approx(800**2 * weak.continuous_bound, rel=1e-5)
    # Noise in whole steps of little privacy has next to no variance
    assert weak.variance < 0.1 * weak.continuous_bound
    assert strict.continuous_gap < 1


def test_other_promises_are_refused():
    with pytest.raises(TypeError, match="a promise is"):
        workload_optimal("ranges", 8, 1.0)


def test_what_is_remembered_is_not_changed_by_who_asked():
    gram = QuerySet("ranges", 9).gram
    first = laplace_strategy(gram)
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(laplace_strategy(gram), kept)
