"""Marginals that agree where they overlap, against dense least squares; and what is handed to
programs that fit models.
"""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from frequency.marginals import (
    Domain,
    InpEM,
    InpHT,
    InpPS,
    InpRR,
    MargHT,
    MargPS,
    MargRR,
    consistent,
    measurements,
    to_mbi,
)
from frequency.marginals.consistency import ConsistentEstimate, Overlap
from tests.frequency.marginals.populations import MIXED, held_of
from tests.goodness_of_fit import FALSE_ALARM

PROTOCOLS = [MargRR, MargPS, MargHT]


def truth_of(domain, held, names):
    cells = domain.cells(np.arange(domain.size), names)
    return (np.bincount(cells, weights=held) / held.sum()).reshape(domain.project(names).shape)


def dense_fit(domain, views, tables, precisions):
    """A signed measure on all records, of total 1, whose marginals are nearest: those of such
    measures are the ones that agree.
    """
    rows, right = [], []
    for view, table, precision in zip(views, tables, precisions, strict=True):
        cells = domain.cells(np.arange(domain.size), view)
        rows.append(math.sqrt(precision) * (np.arange(cells.max() + 1)[:, None] == cells))
        right.append(math.sqrt(precision) * np.nan_to_num(table.ravel()))
    matrix, sides = np.concatenate(rows), np.concatenate(right)
    start = np.full(domain.size, 1 / domain.size)
    free = np.linalg.svd(np.ones((1, domain.size)))[2][1:].T  # changes that keep the total
    change = np.linalg.lstsq(matrix @ free, sides - matrix @ start, rcond=None)[0]
    return start + free @ change


@pytest.mark.parametrize(
    "views",
    [
        [("a", "b"), ("a", "d"), ("b", "d"), ("a", "c")],
        [("a", "b", "d"), ("d", "a")],
        [("d", "b"), ("a",), ("c",)],
        [("b", "a", "c"), ("c", "d", "b"), ("a", "d")],
    ],
    ids=str,
)
def test_the_fit_is_that_of_dense_least_squares(views):
    rng = np.random.default_rng(1)
    # Their totals differ, too
    tables = [rng.normal(size=MIXED.project(view).shape) for view in views]
    precisions = rng.uniform(0.1, 10, len(views)).tolist()
    overlap = Overlap(MIXED, views, precisions)
    effects, joint = overlap.effects(tables), dense_fit(MIXED, views, tables, precisions)
    for view in views:
        for size in range(1, len(view) + 1):
            for names in permutations(view, size):
                cells = MIXED.cells(np.arange(MIXED.size), names)
                expected = np.bincount(cells, weights=joint).reshape(MIXED.project(names).shape)
                assert np.allclose(overlap.marginal(effects, names), expected, rtol=0, atol=1e-12)


def test_marginals_that_agree_are_kept():
    held = held_of(MIXED, 1000, 2)
    views = list(combinations(MIXED, 2))
    tables = [truth_of(MIXED, held, view) for view in views]
    overlap = Overlap(MIXED, views, np.random.default_rng(3).uniform(1, 9, len(views)).tolist())
    effects = overlap.effects(tables)
    for view, table in zip(views, tables, strict=True):
        assert np.allclose(overlap.marginal(effects, view), table, rtol=0, atol=1e-14)


def test_a_view_that_says_nothing():
    tables = [np.array([0.25, 0.75]), np.full((2, 3), np.nan), np.full((2, 4), 1 / 8)]
    overlap = Overlap(MIXED, [("a",), ("a", "b"), ("a", "d")], [1.0, 0.0, 4.0])
    effects = overlap.effects(tables)
    # The view of a and d has four times the precision and adds up four cells.
    assert overlap.marginal(effects, ("a",)).tolist() == [0.375, 0.625]
    assert np.isnan(overlap.marginal(effects, ("b",))).all()
    assert np.isnan(overlap.marginal(effects, ("a", "b"))).all()


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_estimates_agree(kind):
    protocol = kind(MIXED, 2, 1.5)
    estimate = protocol.estimate(
        protocol.simulate(held_of(MIXED, 50_000, 4), np.random.default_rng(5))
    )
    fitted = consistent(estimate)
    assert isinstance(fitted, ConsistentEstimate)
    assert consistent(fitted) is fitted
    assert (
        np.abs(
            estimate.marginal(["a", "b"]).sum(axis=1) - estimate.marginal(["a", "d"]).sum(axis=1)
        ).max()
        > 1e-4
    )
    for view in MIXED.views(2):
        table = fitted.marginal(view)
        assert table.sum() == pytest.approx(1, abs=1e-12)
        assert np.allclose(table.sum(axis=1), fitted.marginal(view[:1]), rtol=0, atol=1e-12)
        assert np.allclose(table.sum(axis=0), fitted.marginal(view[1:]), rtol=0, atol=1e-12)
        assert np.array_equal(fitted.marginal(view[::-1]), table.T)
        assert fitted.distribution(view).min() >= 0
        answer = fitted.answer({view[0]: 0, view[1]: 0})
        assert answer.value == pytest.approx(table[0, 0])
        assert answer.variance == pytest.approx(fitted.cells(view).variance[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_unbiased_with_the_variances_it_tells_and_better(kind):
    domain = Domain({"a": 2, "b": 3, "d": 4})
    protocol, held, rng = kind(domain, 2, 2.0), held_of(domain, 3000, 6), np.random.default_rng(7)
    repeats, names = 1000, ("a", "b")
    raw, found, told, told_raw = [], [], [], []
    for _ in range(repeats):
        estimate = protocol.estimate(protocol.simulate(held, rng))
        fitted = consistent(estimate)
        raw.append(estimate.marginal(names).ravel())
        found.append(fitted.marginal(names).ravel())
        told.append(fitted.cells(names).variance.ravel())
        told_raw.append(estimate.cells(names).variance.ravel())
    estimates, truth = np.array(found), truth_of(domain, held, names).ravel()
    deviations = estimates.std(axis=0, ddof=1)
    bound = stats.norm.isf(FALSE_ALARM / 12)
    assert (np.abs(estimates.mean(axis=0) - truth) / deviations * math.sqrt(repeats)).max() < bound
    # A sample variance of 1000 nearly normal numbers has a relative deviation of (2 / 999)^(1/2).
    ratios = deviations**2 / np.mean(told, axis=0)
    assert np.abs(ratios - 1).max() < bound * math.sqrt(2 / (repeats - 1))
    assert np.mean(told) < 0.97 * np.mean(told_raw)
    assert np.abs(deviations**2 / np.mean(told_raw, axis=0) - 1).max() > 0.05
    assert np.array(raw).var(axis=0).mean() > (deviations**2).mean()


def test_weights_are_those_of_the_views_errors():
    """Any other weights do no better: the variance at even frequencies is least, cell by cell."""
    domain = Domain({"a": 2, "b": 3, "d": 4})
    protocol = MargRR(domain, 2, 1.0)
    even = np.full(domain.size, 1000)
    fitted = consistent(protocol.estimate(protocol.simulate(even, np.random.default_rng(8))))
    assert isinstance(fitted, ConsistentEstimate)
    least = fitted.cells(["a", "b"]).variance.mean()
    overlap = fitted.overlap
    for part, factor in ((0, 3.0), (1, 3.0), (2, 3.0), (0, 0.3), (1, 0.3), (2, 0.3)):
        other = consistent(protocol.estimate(fitted.aggregate))
        precisions = list(overlap.precisions)
        precisions[part] *= factor
        vars(other)["overlap"] = Overlap(domain, overlap.views, precisions)
        assert other.cells(["a", "b"]).variance.mean() > least * (1 - 1e-3)


def test_no_reports_and_few():
    protocol = MargPS(MIXED, 2, 1.0)
    fitted = consistent(
        protocol.estimate(protocol.aggregate(protocol.privatize(np.zeros((0, 4), dtype=int))))
    )
    assert np.isnan(fitted.marginal(["a", "b"])).all()
    assert np.isposinf(fitted.cells(["a", "b"]).variance).all()
    assert measurements(fitted) == []
    one = consistent(
        protocol.estimate(
            protocol.aggregate(protocol.privatize([[1, 2, 0, 3]], np.random.default_rng(9)))
        )
    )
    seen = [view for view in MIXED.views(2) if np.isfinite(one.marginal(view)).all()]
    assert seen
    assert all(
        np.isfinite(one.cells(view).variance).all() == (view in seen) for view in MIXED.views(2)
    )


def test_others_agree_already():
    held, small = held_of(MIXED, 5000, 10), Domain({"a": 2, "b": 3})
    estimate = InpHT(MIXED, 2, 1.0).estimate(
        InpHT(MIXED, 2, 1.0).simulate(held, np.random.default_rng(11))
    )
    assert consistent(estimate) is estimate
    assert np.allclose(
        estimate.marginal(["a", "b"]).sum(axis=1), estimate.marginal(["d", "a"]).sum(axis=0)
    )
    for kind in (InpRR, InpPS):
        protocol = kind(small, 2, 1.0)
        estimate = protocol.estimate(
            protocol.simulate(held_of(small, 500, 12), np.random.default_rng(13))
        )
        assert consistent(estimate) is estimate
        assert np.allclose(estimate.marginal(["a", "b"]).sum(axis=1), estimate.marginal(["a"]))
    mixed = InpEM(small, 2, 1.0)
    estimate = mixed.estimate(mixed.simulate(held_of(small, 500, 14), np.random.default_rng(15)))
    unbiased = consistent(estimate)
    assert consistent(unbiased) is unbiased
    assert np.allclose(unbiased.marginal(["a", "b"]).sum(axis=1), unbiased.marginal(["a"]))
    assert [each.attributes for each in measurements(estimate)] == [("a", "b")]


def test_what_is_asked_for():
    protocol = MargRR(MIXED, 2, 1.0)
    fitted = consistent(
        protocol.estimate(protocol.simulate(held_of(MIXED, 500, 16), np.random.default_rng(17)))
    )
    for wrong in (["a", "b", "d"], ["a", "a"], ["x"], []):
        with pytest.raises(ValueError, match="attributes"):
            fitted.marginal(wrong)
    with pytest.raises(ValueError, match="read-only"):
        fitted.marginal(["a", "b"])[0, 0] = 1


@pytest.mark.parametrize("kind", [*PROTOCOLS, InpHT])
def test_measurements(kind):
    protocol = kind(MIXED, 2, 1.0)
    estimate = protocol.estimate(
        protocol.simulate(held_of(MIXED, 5000, 18), np.random.default_rng(19))
    )
    found = measurements(estimate)
    assert [each.attributes for each in found] == list(MIXED.views(2))
    for each in found:
        assert np.array_equal(each.values, 5000 * estimate.marginal(each.attributes).ravel())
        assert each.stddev == pytest.approx(
            5000 * math.sqrt(estimate.cells(each.attributes).variance.mean())
        )


@pytest.mark.filterwarnings("ignore")  # of what mbi imports
def test_measurements_for_mbi():
    mbi = pytest.importorskip("mbi")
    protocol = MargRR(MIXED, 2, 2.0)
    held = held_of(MIXED, 200_000, 20)
    estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(21)))
    model = mbi.estimation.MirrorDescent().estimate(
        mbi.Domain(MIXED.attributes, MIXED.shape), to_mbi(estimate), iters=500
    )
    fitted = np.asarray(model.project(("b", "d")).datavector()).reshape(3, 4) / 200_000
    assert np.abs(fitted - truth_of(MIXED, held, ("b", "d"))).max() < 0.02
