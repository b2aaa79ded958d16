"""What every strategy promises, against its matrix written out."""

from functools import reduce
from inspect import isabstract

import numpy as np
import pytest

from rangeq.central.matrix_mechanism.dense_strategy import LARGEST_ROWS, DenseStrategy
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.residual_strategy import ResidualStrategy
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_ENTRY,
    LARGEST_USERS,
    Strategy,
    UnanswerableQuery,
    checked_entries,
)
from rangeq.central.matrix_mechanism.workload import Workload, gram_of
from tests.rangeq.central.matrix_mechanism.strategies import (
    EXAMPLES,
    dense_of,
    noise_of,
    whitened_of,
)

CASES = [pytest.param(strategy, id=name) for name, strategy in EXAMPLES.items()]


def every_box(sizes):
    ends = [[(a, b) for a in range(n) for b in range(a, n)] for n in sizes]
    grids = np.meshgrid(*[np.arange(len(one)) for one in ends], indexing="ij")
    chosen = [np.array(one)[grid.ravel()] for one, grid in zip(ends, grids, strict=True)]
    return np.array([one[:, 0] for one in chosen]), np.array([one[:, 1] for one in chosen])


def indicators(first, last, sizes):
    rows = []
    for a, b in zip(first.T, last.T, strict=True):
        sides = [
            ((np.arange(n) >= low) & (np.arange(n) <= high)) * 1.0
            for n, low, high in zip(sizes, a, b, strict=True)
        ]
        rows.append(reduce(np.multiply.outer, sides))
    return np.array(rows)


def answerable(matrix, flat):
    """Which queries lie in the row space, by least squares."""
    found = np.linalg.lstsq(matrix.T.astype(float), flat.T, rcond=None)[0]
    return np.abs(matrix.T @ found - flat.T).max(axis=0) < 1e-6


@pytest.mark.parametrize("strategy", CASES)
def test_sensitivities_are_those_of_the_columns(strategy):
    columns = dense_of(strategy).T.tolist()
    assert strategy.l1 == max(sum(abs(x) for x in column) for column in columns)
    assert strategy.l2_squared == max(sum(x * x for x in column) for column in columns)
    assert strategy.rows == len(columns[0])


def test_the_largest_sensitivity_of_a_dense_strategy_is_exact():
    strategy = DenseStrategy(np.full((LARGEST_ROWS, 1), -LARGEST_ENTRY))
    assert strategy.l2_squared == LARGEST_ROWS * LARGEST_ENTRY**2 == 1 << 63


@pytest.mark.parametrize("strategy", CASES)
def test_numbers_are_exact_for_as_many_users_as_are_allowed(strategy):
    rng = np.random.default_rng(3)
    matrix = dense_of(strategy)
    cells = matrix.shape[1]
    for counts in (
        np.zeros(cells, dtype=np.int64),
        rng.integers(0, 1000, cells),
        np.full(cells, LARGEST_USERS // cells),
    ):
        exactly = [sum(int(m) * int(x) for m, x in zip(row, counts, strict=True)) for row in matrix]
        assert strategy.measure(counts.reshape(strategy.sizes)).tolist() == exactly


@pytest.mark.parametrize("strategy", CASES)
def test_estimates_are_those_of_least_squares(strategy):
    rng = np.random.default_rng(4)
    matrix, root = whitened_of(strategy)
    noisy = rng.integers(-(10**6), 10**6, strategy.rows)
    expected = np.linalg.pinv(matrix) @ root @ (noisy - noise_of(strategy)[0])
    assert strategy.estimate(noisy).shape == strategy.sizes
    assert strategy.estimate(noisy).ravel() == pytest.approx(
        expected, rel=1e-7, abs=1e-7 * np.abs(expected).max()
    )


@pytest.mark.parametrize("strategy", CASES)
def test_normal_is_the_matrix_twice(strategy):
    matrix, _ = whitened_of(strategy)
    cells = np.random.default_rng(6).normal(size=strategy.sizes)
    expected = matrix.T @ (matrix @ cells.ravel())
    close = {"rel": 1e-9, "abs": 1e-9 * np.abs(expected).max()}
    assert strategy.normal(cells).ravel() == pytest.approx(expected, **close)


@pytest.mark.parametrize("strategy", CASES)
def test_variances_are_those_of_the_estimates(strategy):
    matrix, _ = whitened_of(strategy)
    inverse = np.linalg.pinv(matrix)
    covariance = inverse @ inverse.T
    first, last = every_box(strategy.sizes)
    queries = indicators(first, last, strategy.sizes)
    flat = queries.reshape(len(queries), -1)
    known = answerable(matrix, flat)
    assert strategy.full_rank == (np.linalg.matrix_rank(matrix) == matrix.shape[1])
    assert known.all() or not strategy.full_rank
    expected = np.einsum("qi,ij,qj->q", flat, covariance, flat)
    close = {"rel": 1e-7, "abs": 1e-12 * expected.max()}
    assert strategy.variance(first[:, known], last[:, known]) == pytest.approx(
        expected[known], **close
    )
    assert strategy.linear_variances(queries[known]) == pytest.approx(expected[known], **close)
    for k in np.flatnonzero(known)[::5]:
        sides = [
            ((np.arange(n) >= a) & (np.arange(n) <= b)) * 1.0
            for n, a, b in zip(strategy.sizes, first[:, k], last[:, k], strict=True)
        ]
        assert strategy.variance_of(sides) == pytest.approx(expected[k], **close)
    for k in np.flatnonzero(~known)[:10]:
        with pytest.raises(UnanswerableQuery):
            strategy.variance(first[:, [k]], last[:, [k]])
        with pytest.raises(UnanswerableQuery):
            strategy.linear_variances(queries[[k]])
        with pytest.raises(UnanswerableQuery):
            strategy.linear_variances(1e-6 * queries[[k]])


def test_a_box_that_lacks_one_cell_of_many_does_not_follow_from_marginals():
    n, m = 1 << 20, 1 << 5
    one_by_one = MarginalStrategy((n, m), [(0,), (1,)], [1, 1])
    residuals = MarginalStrategy((n, m), [(), (0,), (1,)], [m, 1, 4], residual=True)
    first = np.array([[0], [0]])
    for strategy in (one_by_one, residuals):
        for last in ([n - 2, m - 1], [n - 1, m - 2]):
            assert strategy.variance(first, np.array(last)[:, None]) > 0
        with pytest.raises(UnanswerableQuery):
            strategy.variance(first, np.array([[n - 2], [m - 2]]))
    sides = [np.eye(n, dtype=int)[:-1] - np.eye(n, dtype=int)[1:] for n in (16, 2)]
    designed = ResidualStrategy(sides, [(), (0,), (1,)], [1, 2, 3])
    box = np.ones((1, 16, 2))
    box[0, -1] = box[0, :, -1] = 0
    with pytest.raises(UnanswerableQuery):
        designed.variance(first, np.array([[14], [0]]))
    with pytest.raises(UnanswerableQuery):
        designed.linear_variances(box)


@pytest.mark.parametrize("strategy", CASES)
def test_any_weights_along_the_attributes(strategy):
    rng = np.random.default_rng(5)
    matrix, _ = whitened_of(strategy)
    inverse = np.linalg.pinv(matrix)
    sides = [rng.normal(size=n) for n in strategy.sizes]
    query = reduce(np.multiply.outer, sides).ravel()
    if not strategy.full_rank:
        with pytest.raises(UnanswerableQuery):
            strategy.variance_of(sides)
        return
    assert strategy.variance_of(sides) == pytest.approx(((query @ inverse) ** 2).sum(), rel=1e-7)


@pytest.mark.parametrize("strategy", CASES)
@pytest.mark.parametrize("name", ["cells", "ranges", "prefixes", "total", "1-way marginals"])
def test_workload_variances_are_means(strategy, name):
    workload = Workload.of([(1, name), (2.5, "total")], strategy.sizes)
    matrix, _ = whitened_of(strategy)
    inverse = np.linalg.pinv(matrix)
    gram, _ = gram_of(workload)
    values, vectors = np.linalg.eigh(gram)
    rows = (vectors * np.sqrt(np.maximum(values, 0))).T
    if not answerable(matrix, rows).all():
        with pytest.raises(UnanswerableQuery):
            strategy.workload_variance(workload)
        return
    expected = np.sum(gram * (inverse @ inverse.T)) / workload.weight
    assert strategy.workload_variance(workload) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("strategy", CASES)
def test_arrays_are_all_of_it(strategy):
    arrays = strategy.arrays()
    again = type(strategy).of_arrays(strategy.sizes, arrays)
    assert again == strategy
    assert np.array_equal(dense_of(again), dense_of(strategy))
    for name in arrays:
        fewer = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(ValueError, match=r"."):
            type(strategy).of_arrays(strategy.sizes, fewer)
    with pytest.raises(ValueError, match=r"."):
        type(strategy).of_arrays(strategy.sizes, {**arrays, "more": np.zeros((1, 1), int)})


def test_every_kind_has_an_example():
    def kinds(of):
        return {of, *(kind for sub in of.__subclasses__() for kind in kinds(sub))}

    concrete = {kind for kind in kinds(Strategy) if not isabstract(kind)}
    assert concrete == {type(one) for one in EXAMPLES.values()}


@pytest.mark.parametrize(
    "matrix",
    [[[0.5]], [[0, 0]], [1, 2], [], [[LARGEST_ENTRY + 1]], [[-LARGEST_ENTRY - 1]], [["a"]]],
)
def test_what_is_no_strategy_is_refused(matrix):
    with pytest.raises(ValueError, match="it"):
        checked_entries(np.asarray(matrix), "it")
