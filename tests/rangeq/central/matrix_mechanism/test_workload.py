"""Workloads: Gram matrices against the queries written out, bases, and what is refused."""

import math
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest

from rangeq.central.matrix_mechanism.workload import (
    InvalidWorkload,
    QuerySet,
    Workload,
    basis_of,
    gram_of,
)

NAMES = ["ranges", "prefixes", "cells", "total", "width-1", "width-2", "width-5"]


def listed(name, size):
    """The queries of a name, one by one."""
    ends = {
        "ranges": [(a, b) for a in range(size) for b in range(a, size)],
        "prefixes": [(0, b) for b in range(size)],
        "cells": [(a, a) for a in range(size)],
        "total": [(0, size - 1)],
    }
    if name.startswith("width-"):
        k = int(name[6:])
        ends[name] = [(a, a + k - 1) for a in range(size - k + 1)]
    return np.array([[a <= i <= b for i in range(size)] for a, b in ends[name]], dtype=float)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("name", NAMES)
def test_named_queries_are_what_they_say(name, size):
    if name.startswith("width-") and int(name[6:]) > size:
        with pytest.raises(InvalidWorkload, match="no such range"):
            QuerySet(name, size)
        return
    queries, rows = QuerySet(name, size), listed(name, size)
    assert queries.count == len(rows)
    assert np.array_equal(queries.rows(), rows)
    assert np.array_equal(queries.gram, rows.T @ rows)
    assert queries.total == (rows.sum(axis=1) ** 2).sum()
    assert queries.trace == (rows**2).sum()
    assert queries.gram_error == 0
    assert queries.rank == np.linalg.matrix_rank(rows)
    stacked = np.vstack([rows, queries.basis])
    assert np.linalg.matrix_rank(stacked) == np.linalg.matrix_rank(rows) == len(queries.basis)


@pytest.mark.of_rounding
def test_a_matrix_asks_its_rows():
    rows = np.random.default_rng(1).normal(size=(7, 5))
    queries = QuerySet("matrix", 5, rows)
    assert queries.count == 7
    assert queries.gram == pytest.approx(rows.T @ rows)
    assert np.array_equal(queries.basis, np.eye(5))
    exact = [
        [sum(Fraction(r[i]) * Fraction(r[j]) for r in rows.tolist()) for j in range(5)]
        for i in range(5)
    ]
    lacking = np.array(
        [
            [float(exact[i][j] - Fraction(queries.gram[i, j].item())) for j in range(5)]
            for i in range(5)
        ]
    )
    assert np.linalg.norm(lacking, 2) <= queries.gram_error < 1e-13


def test_the_basis_of_dependent_queries_is_exact():
    rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [0.5, 0.5, 0, 0]])
    basis = QuerySet("matrix", 4, rows).basis
    assert basis.dtype == np.int64
    assert basis.shape == (2, 4)
    assert (basis[:, 0] == basis[:, 1]).all()
    assert (basis[:, 2] == basis[:, 3]).all()
    # A factor of a query changes no row space
    thirds = QuerySet("matrix", 4, rows[:2] * [[1 / 3], [0.7]])
    assert np.array_equal(thirds.basis, rows[:2])
    crooked = QuerySet("matrix", 4, [[0.1, 0.3, 0, 0], [0, 0, 1, 1]])
    with pytest.raises(InvalidWorkload, match="only 2 of them are independent"):
        crooked.basis  # noqa: B018


def test_queries_of_very_different_weights_tell_all_cells_apart():
    assert np.array_equal(QuerySet("matrix", 3, np.diag([1, 1e-9, 1])).basis, np.eye(3))


@pytest.mark.slow
def test_an_error_below_the_roundings_of_its_products_is_kept():
    """Against rational numbers: floats lose what a small matrix adds to a large product."""
    sizes = (3, 7, 5, 3, 7)
    for seed in range(20):
        side = np.random.default_rng(seed).normal(size=(1, 3))
        workload = Workload.of([side, "ranges", "prefixes", "ranges", "ranges"], sizes)
        factors = workload.terms[0].factors
        traces = [Fraction(float(np.trace(f.gram))) for f in factors]
        errors = [Fraction(f.gram_error) for f in factors]
        products = (
            math.prod(trace + error for trace, error in zip(traces, errors, strict=True)),
            math.prod(traces),
        )
        gram, admitted = gram_of(workload)
        rounded = (1 + len(sizes) + 1) * 2.0**-52 * float(np.linalg.norm(gram))
        needed = 2 * float(products[0] - products[1])
        assert admitted - rounded >= needed * (1 - 1e-9) - 2.0**-50 * rounded


def kron(matrices):
    return reduce(np.kron, matrices)


def test_products_sums_and_weights():
    sizes = (3, 4)
    first = Workload.of(["ranges", "total"], sizes)
    both = 2 * first + Workload.of("prefixes", sizes)
    assert first.count == 6
    assert both.count == 6 + 12
    assert both.weight == 2 * 6 + 12
    rows = kron([listed("ranges", 3), listed("total", 4)])
    more = kron([listed("prefixes", 3), listed("prefixes", 4)])
    gram, error = gram_of(both)
    assert np.array_equal(gram, 2 * rows.T @ rows + more.T @ more)
    assert error == 0
    pairs = Workload.of([(2, first), (1.0, "prefixes")], sizes)
    assert np.array_equal(gram_of(pairs)[0], gram)
    assert Workload.of(both, sizes) is both
    assert "2 * ranges of 3 cells x total of 4 cells" in repr(both)


def test_a_matrix_for_one_of_several_attributes():
    rows = np.array([[1.0, 2, 0], [0, 1, 1]])
    workload = Workload.of(["prefixes", rows], (2, 3))
    queries = kron([listed("prefixes", 2), rows])
    assert np.array_equal(gram_of(workload)[0], queries.T @ queries)
    with pytest.raises(InvalidWorkload, match="shape"):
        Workload.of(["prefixes", rows], (2, 4))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_marginals_are_all_cells_of_all_views(k):
    sizes = (2, 3, 4)
    name = "marginals" if k == 2 else f"{k}-way marginals"
    workload = Workload.of(name, sizes)
    views = list(combinations(range(3), k))
    rows = np.vstack(
        [
            kron([np.eye(n) if i in view else np.ones((1, n)) for i, n in enumerate(sizes)])
            for view in views
        ]
    )
    assert workload.count == len(rows)
    assert np.array_equal(gram_of(workload)[0], rows.T @ rows)
    basis = basis_of(workload)
    assert (
        len(basis) == np.linalg.matrix_rank(rows) == np.linalg.matrix_rank(np.vstack([rows, basis]))
    )


@pytest.mark.parametrize(
    ("workload", "domain", "message"),
    [
        ("range", 8, "got 'range'"),
        ("width-0", 8, "got 'width-0'"),
        ("width-9", 8, "no such range"),
        ("marginals", 8, "need 2 attributes"),
        ("4-way marginals", (2, 2, 2), "need 4 attributes"),
        (["ranges"], (8, 8), "1 names are for 1 attributes"),
        ([[1.0, float("nan")]], 2, "query 0 has the weight nan at cell 1"),
        ([[1.0, float("inf")]], 2, "query 0 has the weight inf at cell 1"),
        ([[1, 1], [0, 0]], 2, "query 1 is all 0"),
        ([[1, 1, 1]], 2, r"shape \(queries, 2\)"),
        ([1, 1], 2, r"shape \(queries, 2\)"),
        (np.zeros((0, 2)), 2, r"shape \(queries, 2\)"),
        ([["a", "b"], ["c", "d"]], 2, "got 'b'"),
        ([[1e200, 1]], 2, "more than 2"),
        ([[1, 1], [1e-200, 0]], 2, "query 1 has no weight of 2"),
        ([[5e-324, 0]], 2, "query 0 has no weight of 2"),
        (np.broadcast_to(np.int8(1), (10**6, 4096)), 4096, "32.8 GB"),
        ([(1e300, "ranges")], 8, "a weight is"),
        ([(10**400, "ranges")], 8, "a weight is"),
        ([(1e20, [(1e20, "ranges")])], 8, "a product of weights"),
        (None, 2, r"shape"),
        ([[1, 2, 3, 4]], (2, 2), "a matrix is for one attribute"),
        ([(0, "ranges")], 8, "a weight is"),
        ([(float("nan"), "ranges")], 8, "a weight is"),
        ([(-1, "ranges")], 8, "a weight is"),
    ],
)
def test_what_is_no_workload_is_refused(workload, domain, message):
    with pytest.raises(InvalidWorkload, match=message):
        Workload.of(workload, domain)


def test_workloads_of_other_cells_and_huge_ones_are_refused():
    eight = Workload.of("ranges", 8)
    with pytest.raises(InvalidWorkload, match="over 8 cells, not 9"):
        Workload.of(eight, 9)
    with pytest.raises(InvalidWorkload, match="do not add up"):
        eight + Workload.of("ranges", 9)
    huge = Workload.of("ranges", 1 << 20)
    with pytest.raises(InvalidWorkload, match="GB"):
        gram_of(huge)
    with pytest.raises(InvalidWorkload, match="GB"):
        huge.terms[0].factors[0].gram  # noqa: B018
    with pytest.raises(InvalidWorkload, match="too many to write out"):
        huge.terms[0].factors[0].rows()
    with pytest.raises(ValueError, match="shape"):
        Workload.of("ranges", 0)
