"""Strategies whose largest variance is least."""

from typing import Any

import numpy as np
import pytest

from mechdesign import ZCDP, ApproximateDP, Privacy
from rangeq.central import DenseStrategy, InvalidWorkload, Workload, workload_optimal
from rangeq.central.matrix_mechanism.minimax import _ends, _gram, largest_variance

ASKED = {
    "prefixes": ("prefixes", 12),
    "ranges": ("ranges", 9),
    "both": ([(3, "ranges"), (1, "prefixes")], 8),
    "one cell": ("ranges", 1),
    "marginals": ("marginals", (4, 2, 6)),
    "unlike marginals": (
        [(1, ["cells", "total", "total"]), (3, ["cells", "cells", "total"])],
        (4, 5, 6),
    ),
}


def written_out(workload):
    return np.concatenate(
        [
            np.array([kron(rows) for rows in _products(term)]).reshape(-1, workload.cells)
            for term in workload.terms
        ]
    )


def _products(term):
    rows: list[tuple[Any, ...]] = [()]
    for queries in term.factors:
        rows = [(*before, row) for before in rows for row in queries.rows()]
    return rows


def kron(rows):
    product = np.ones(1)
    for row in rows:
        product = np.kron(product, row)
    return product


@pytest.mark.parametrize("name", ASKED)
def test_the_largest_variance_is_near_a_bound_that_no_strategy_is_below(name):
    asked, domain = ASKED[name]
    workload = Workload.of(asked, domain)
    design = workload_optimal(asked, domain, ZCDP("1/50"), cache=False, objective="largest")
    mean = workload_optimal(asked, domain, ZCDP("1/50"), cache=False)
    assert design.mechanism.audit().holds
    assert -1e-6 <= design.continuous_gap < 3e-3
    assert design.bound <= design.continuous_bound * 1.0001
    assert design.largest_variance <= mean.largest_variance * 1.003
    assert design.variance >= mean.variance * 0.999
    queries = written_out(workload)
    # The largest, of queries written out
    answers = design.mechanism.noise_variance * design.strategy.linear_variances(
        queries.reshape(-1, *workload.sizes)
    )
    assert design.largest_variance == pytest.approx(answers.max())
    assert f"largest variance {design.largest_variance:.6g}" in str(design)
    # Strategies near it, and any: their columns scaled to norm 1
    unit = float(ZCDP("1/50").noise_ratio)
    rng = np.random.default_rng(1)
    cells = workload.cells
    for _ in range(20):
        rows = rng.normal(size=(2 * cells, cells))
        rows /= np.sqrt((rows**2).sum(axis=0).max())
        inverse = np.linalg.inv(rows.T @ rows)
        other = np.einsum("qi,ij,qj->q", queries, inverse, queries).max()
        assert unit * other >= design.continuous_bound


def test_weighted_grams_are_those_of_ranges_written_out():
    workload = Workload.of("ranges", 7)
    first, last = _ends(workload)
    weights = np.random.default_rng(2).random(len(first))
    gram, error = _gram(weights, first, last, 7)
    rows = workload.terms[0].factors[0].rows()
    assert gram == pytest.approx(rows.T @ (weights[:, None] * rows))
    assert 0 < error < 1e-11
    strategy = DenseStrategy(np.eye(7, dtype=np.int64))
    assert largest_variance(strategy, workload) == pytest.approx(7)


def test_prefixes_gain_what_is_known():
    """Of 64 prefixes: a tenth in standard deviation, for a hundredth of the mean variance."""
    promise = ApproximateDP(1, "1e-6")
    largest = workload_optimal("prefixes", 64, promise, cache=False, objective="largest")
    mean = workload_optimal("prefixes", 64, promise, cache=False)
    assert mean.largest_variance / largest.largest_variance == pytest.approx(1.188, abs=0.005)
    assert largest.variance / mean.variance == pytest.approx(1.011, abs=0.003)


def test_it_is_kept_apart_from_the_least_mean(tmp_path):
    kept = [
        workload_optimal("prefixes", 10, ZCDP(1), cache=tmp_path, objective=objective)
        for objective in ("mean", "largest", "largest")
    ]
    assert len(list(tmp_path.iterdir())) == 2
    assert kept[1].strategy == kept[2].strategy != kept[0].strategy
    assert kept[1].bound == kept[2].bound


@pytest.mark.parametrize(
    ("asked", "domain", "promise", "objective", "said"),
    [
        ("cells", 5, ZCDP(1), "largest", "prefixes and ranges of one"),
        ("ranges", 1025, ZCDP(1), "largest", "at most 1024 cells"),
        ("ranges", (3, 4), ZCDP(1), "largest", "prefixes and ranges of one"),
        ("ranges", 5, Privacy.from_epsilon(1), "largest", "Gaussian noise"),
        ("ranges", 5, ZCDP(1), "smallest", "mean or largest"),
    ],
)
def test_what_is_not_made_small_is_said(asked, domain, promise, objective, said):
    with pytest.raises((InvalidWorkload, ValueError), match=said):
        workload_optimal(asked, domain, promise, objective=objective)


def test_the_largest_of_other_queries_is_not_known():
    design = workload_optimal("cells", 5, ZCDP(1), cache=False)
    with pytest.raises(InvalidWorkload):
        design.largest_variance  # noqa: B018
