"""CALM: covering sets of attributes, consistent and non-negative views, and the distribution of
most entropy.
"""

import math
import pickle
from itertools import combinations, permutations

import cvxpy as cp
import numpy as np
import pytest
from scipy import stats

from frequency import GRR, OUE, IncompatibleAggregate
from frequency.marginals import CALM, Domain, MargPS, MargRR, consistent, measurements
from frequency.marginals.calm import _slopes, adaptive, covering, most_entropy, nonnegative
from frequency.marginals.consistency import Overlap
from tests.contracts.oracle import exponential_below
from tests.frequency.marginals.populations import MIXED, held_of
from tests.general_solver import solve
from tests.goodness_of_fit import FALSE_ALARM

FIVE = Domain.binary(*"abcde")


def marginal_of(domain, joint, names):
    cells = domain.cells(np.arange(domain.size), names)
    return np.bincount(cells, weights=np.ravel(joint)).reshape(domain.project(names).shape)


def estimated(protocol, n, seed):
    held = held_of(protocol.domain, n, seed)
    return protocol.estimate(protocol.simulate(held, np.random.default_rng(seed + 1))), held / n


# ----------------------------------------------------------------------------- sets of attributes


@pytest.mark.parametrize(
    ("attributes", "covered", "size"),
    [(d, t, s) for d in (1, 2, 5, 9) for t in (1, 2, 3) for s in range(t, d + 1)],
)
def test_every_set_is_inside_a_block(attributes, covered, size):
    blocks = covering(attributes, covered, size)
    assert all(
        len(block) == size
        and list(block) == sorted(set(block))
        and set(block) <= set(range(attributes))
        for block in blocks
    )
    inside = {names for block in blocks for names in combinations(block, covered)}
    assert inside == set(combinations(range(attributes), covered))
    # A block is there for a set that no block before it holds.
    for place, block in enumerate(blocks):
        before = {names for other in blocks[:place] for names in combinations(other, covered)}
        assert set(combinations(block, covered)) - before
    assert len(blocks) >= math.comb(attributes, covered) / math.comb(size, covered)


@pytest.mark.parametrize(("attributes", "size"), [(16, 8), (32, 8), (7, 3), (24, 4)])
def test_coverings_are_near_the_least(attributes, size):
    """Schönheim's bound: each attribute is in enough blocks to meet all others."""
    least = math.ceil(attributes / size * math.ceil((attributes - 1) / (size - 1)))
    assert least <= len(covering(attributes, 2, size)) <= 1.5 * least


@pytest.mark.parametrize("covered", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_size_is_the_best_by_the_predicted_error(covered, epsilon):
    n, chosen = 1000, CALM(MIXED, 2, epsilon, covered)

    def error(protocol):
        return sum(
            CALM.cell_variances(wide(protocol), n, names).sum() for names in MIXED.views(covered)
        )

    def wide(protocol):
        return CALM(MIXED, 4, epsilon, covered, len(protocol.views[0]))

    others = [CALM(MIXED, 2, epsilon, covered, size) for size in range(covered, 5)]
    assert error(chosen) <= min(map(error, others)) * (1 + 1e-9)
    assert chosen.views in [other.views for other in others]


def test_the_oracle_is_the_better_one():
    for cells in (1, 2, 3, 5, 8, 12, 20, 100):
        for epsilon in (0.3, 1, 3):
            found = adaptive(cells, epsilon)
            assert isinstance(found, (GRR, OUE))
            if cells > 1:
                assert found.difference_variance(1) == min(
                    kind(cells, epsilon).difference_variance(1) for kind in (GRR, OUE)
                )
    protocol = CALM(Domain({"a": 2, "b": 2, "c": 50}), 2, 1.0, size=2)
    kinds = {
        view: type(part) for view, part in zip(protocol.views, protocol.channel.parts, strict=True)
    }
    assert kinds == {("a", "b"): GRR, ("a", "c"): OUE, ("b", "c"): OUE}
    assert protocol.audit().holds
    assert protocol.audit().allowed <= exponential_below(1.0)


# ---------------------------------------------------------------------- agreeing and not negative

VIEWS = [
    [("a", "b"), ("a", "d"), ("b", "d"), ("a", "c")],
    [("a", "b", "d"), ("b", "c", "d")],
    [("a", "c"), ("b", "d"), ("d",)],
]


@pytest.mark.parametrize("views", VIEWS, ids=str)
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_nonnegative_views_are_the_nearest(views, noise):
    rng = np.random.default_rng(1)
    joint = held_of(MIXED, 1000, 2) / 1000
    tables = [
        marginal_of(MIXED, joint, view) + rng.normal(0, noise, MIXED.project(view).shape)
        for view in views
    ]
    precisions = rng.uniform(0.2, 5, len(views)).tolist()
    found = nonnegative(Overlap(MIXED, views, precisions), tables)

    signed = cp.Variable(MIXED.size)  # what agrees are the marginals of a signed measure
    fits = [
        np.eye(MIXED.project(v).size)[MIXED.cells(np.arange(MIXED.size), v)].T @ signed
        for v in views
    ]
    cost = sum(
        p * cp.sum_squares(fit - table.ravel())
        for p, fit, table in zip(precisions, fits, tables, strict=True)
    )
    problem = cp.Problem(cp.Minimize(cost), [cp.sum(signed) == 1, *(fit >= 0 for fit in fits)])
    solve(problem)
    for fit, table in zip(fits, found, strict=True):
        assert table.min() >= 0
        assert np.allclose(table.ravel(), fit.value, rtol=0, atol=2e-6)
    for (one, table), (other, second) in combinations(zip(views, found, strict=True), 2):
        for names in [(name,) for name in one if name in other]:
            axes = tuple(axis for axis, name in enumerate(one) if name not in names)
            others = tuple(axis for axis, name in enumerate(other) if name not in names)
            assert np.allclose(table.sum(axis=axes), second.sum(axis=others), rtol=0, atol=1e-12)


def test_views_that_need_no_change():
    joint = held_of(MIXED, 1000, 3) / 1000
    views = list(combinations(MIXED, 2))
    tables = [marginal_of(MIXED, joint, view) for view in views]
    for found, table in zip(
        nonnegative(Overlap(MIXED, views, [1.0] * len(views)), tables), tables, strict=True
    ):
        assert np.allclose(found, table, rtol=0, atol=1e-12)


# ----------------------------------------------------------------------------------- most entropy


@pytest.mark.parametrize("views", [*VIEWS, [("a",), ("b",), ("c",), ("d",)], []], ids=str)
def test_most_entropy_is_that_of_a_convex_solver(views):
    joint = held_of(MIXED, 1000, 4, evenness=2.0) / 1000
    known = {view: marginal_of(MIXED, joint, view) for view in views}
    found, how = most_entropy(MIXED, known)
    assert how.converged
    assert found.sum() == pytest.approx(1)
    free = cp.Variable(MIXED.size, nonneg=True)
    rows = [
        np.eye(MIXED.project(v).size)[MIXED.cells(np.arange(MIXED.size), v)].T @ free
        == known[v].ravel()
        for v in views
    ]
    solve(cp.Problem(cp.Maximize(cp.sum(cp.entr(free))), [cp.sum(free) == 1, *rows]))
    assert np.allclose(found.ravel(), free.value, rtol=0, atol=1e-5)


def test_attributes_by_themselves_are_independent():
    known = {("a",): np.array([0.25, 0.75]), ("d",): np.array([0.5, 0.25, 0.125, 0.125])}
    found, how = most_entropy(MIXED, known)
    expected = np.einsum("a,b,c,d->abcd", known[("a",)], np.full(3, 1 / 3), [1.0], known[("d",)])
    assert np.allclose(found, expected, rtol=0, atol=1e-9)
    assert how.iterations <= 2


def test_marginals_that_no_distribution_has():
    """Of three binary attributes no two are equal: every pair agrees on the attributes, and there
    is no such distribution.
    """
    opposite = np.array([[0, 0.5], [0.5, 0]])
    found, how = most_entropy(
        Domain.binary("a", "b", "c"), dict.fromkeys(combinations("abc", 2), opposite)
    )
    assert not how.converged
    assert how.discrepancy > 0.1
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert how.iterations < 1000


# ----------------------------------------------------------------------------------- the protocol


def test_estimates_are_consistent_distributions():
    protocol = CALM(MIXED, 4, 1.0, size=2)
    estimate, _ = estimated(protocol, 3000, 5)
    for size in (1, 2):
        for names in permutations(MIXED, size):
            table = estimate.marginal(names)
            assert table.min() >= 0
            assert table.sum() == pytest.approx(1, abs=1e-9)
            assert np.array_equal(estimate.marginal(names[::-1]), table.T)
            assert estimate.report(names) == (0, True, 0.0)
    for names in permutations(MIXED, 2):
        assert np.allclose(
            estimate.marginal(names).sum(axis=1), estimate.marginal(names[:1]), rtol=0, atol=1e-12
        )
    whole = estimate.marginal(["d", "a", "c", "b"])
    assert whole.shape == (4, 2, 1, 3)
    report = estimate.report(["a", "b", "c", "d"])
    assert report.iterations > 0
    for axes, names in (((2, 3), ("d", "a")), ((0, 2), ("a", "b"))):
        assert (
            np.abs(whole.sum(axis=axes) - estimate.marginal(names)).max()
            <= report.discrepancy * 12 + 1e-8
        )


def test_what_has_most_entropy_is_found():
    """A population of independent attributes, and of a chain: pairs tell all of these."""
    rng = np.random.default_rng(6)
    first = np.array([0.3, 0.7])
    steps = [
        np.array([[0.9, 0.1], [0.2, 0.8]]),
        np.array([[0.6, 0.4], [0.3, 0.7]]),
        np.array([[0.5, 0.5], [0.1, 0.9]]),
    ]
    chain = np.einsum("a,ab,bc,cd->abcd", first, *steps)
    domain, n = Domain.binary(*"abcd"), 10**9
    held = rng.multinomial(n, chain.ravel())
    protocol = CALM(domain, 4, 4.0, size=2)
    estimate = protocol.estimate(protocol.simulate(held, rng))
    assert np.abs(estimate.marginal(["a", "b", "c", "d"]) - chain).max() < 1e-3
    assert estimate.report(["a", "b", "c", "d"]).converged


@pytest.mark.slow
def test_the_consistent_fit_is_unbiased_with_the_predicted_variances():
    """At even frequencies, which is what is predicted."""
    protocol, rng, repeats = CALM(FIVE, 3, 1.5, size=3), np.random.default_rng(7), 800
    held = np.full(FIVE.size, 100)
    found, told = [], []
    for _ in range(repeats):
        fit = consistent(protocol.estimate(protocol.simulate(held, rng)))
        found.append(fit.marginal(["d", "b"]).ravel())
        told.append(fit.cells(["d", "b"]).variance.ravel())
    estimates, predicted = np.array(found), protocol.cell_variances(3200, ["d", "b"]).ravel()
    bound = stats.norm.isf(FALSE_ALARM / 12)
    variances = estimates.var(axis=0, ddof=1)
    assert (np.abs(estimates.mean(axis=0) - 1 / 4) / np.sqrt(variances / repeats)).max() < bound
    assert np.abs(variances / predicted - 1).max() < bound * math.sqrt(2 / (repeats - 1))
    assert np.allclose(np.mean(told, axis=0), predicted, rtol=0.03)
    assert np.abs(variances / (2 * predicted) - 1).max() > bound * math.sqrt(2 / (repeats - 1))


def test_better_than_views_by_themselves():
    """Consistent, non-negative pairs of skewed data, against those from MargRR and MargPS."""
    held = held_of(FIVE, 20_000, 8)
    errors = {}
    for protocol in (CALM(FIVE, 2, 0.7), MargRR(FIVE, 2, 0.7), MargPS(FIVE, 2, 0.7)):
        rng, total = np.random.default_rng(9), 0.0
        for _ in range(20):
            estimate = protocol.estimate(protocol.simulate(held, rng))
            total += sum(
                np.abs(estimate.marginal(names) - marginal_of(FIVE, held / 20_000, names)).sum()
                for names in FIVE.views(2)
            )
        errors[type(protocol).__name__] = total
    assert errors["CALM"] < 0.8 * min(errors["MargRR"], errors["MargPS"])


def test_errors_and_measurements_are_those_of_the_views():
    protocol = CALM(FIVE, 3, 1.0, size=3)
    estimate, _ = estimated(protocol, 5000, 10)
    fit = consistent(estimate)
    for names in (["a", "b"], ["c"], ["b", "a"]):
        assert estimate.cells(names).variance == pytest.approx(fit.cells(names).variance, rel=0.2)
    answer = estimate.answer({"a": 1, "c": 0})
    assert answer.value == pytest.approx(estimate.marginal(["a", "c"])[1, 0])
    assert answer.variance == pytest.approx(estimate.cells(["a", "c"]).variance[1, 0])
    found = measurements(estimate)
    assert [each.attributes for each in found] == list(protocol.views)
    assert all(each.values.shape == (8,) and 0 < each.stddev < 5000 for each in found)
    with pytest.raises(ValueError, match="read-only"):
        estimate.marginal(["a", "b"])[0, 0] = 1


def test_slopes_are_those_of_the_distribution_of_most_entropy():
    """Against differences, for a chain of pairs that overlap."""
    rng, domain = np.random.default_rng(14), Domain({"a": 2, "b": 3, "c": 2})
    joint = rng.dirichlet(np.full(domain.size, 3.0)).reshape(domain.shape)
    moved = rng.dirichlet(np.full(domain.size, 3.0)).reshape(domain.shape)
    sets, weights = [("a", "b"), ("b", "c"), ("a", "c")], rng.normal(size=(4, domain.size))

    def answers(share):
        mixed = (1 - share) * joint + share * moved
        known = {names: marginal_of(domain, mixed, names) for names in sets}
        return weights @ most_entropy(domain, known)[0].ravel()

    held = most_entropy(domain, {names: marginal_of(domain, joint, names) for names in sets})[0]
    cells = [domain.cells(np.arange(domain.size), names) for names in sets]
    sizes = [domain.project(names).size for names in sets]
    slopes = _slopes(held.ravel(), cells, sizes, weights)
    change = sum(
        slope @ (marginal_of(domain, moved, names) - marginal_of(domain, joint, names)).ravel()
        for slope, names in zip(slopes, sets, strict=True)
    )
    step = 1e-3
    assert change == pytest.approx((answers(step) - answers(-step)) / (2 * step), rel=1e-3)


def test_no_reports_and_few():
    protocol = CALM(FIVE, 3, 1.0)
    nobody = protocol.estimate(protocol.aggregate(protocol.privatize(np.zeros((0, 5), dtype=int))))
    assert np.isnan(nobody.marginal(["a", "b", "c"])).all()
    assert np.isposinf(nobody.cells(["a"]).variance).all()
    with pytest.raises(ValueError, match="no reports"):
        nobody.report(["a"])
    # One report is on one set: the others are even, as far as is known.
    one = protocol.estimate(
        protocol.aggregate(protocol.privatize([[1, 0, 1, 0, 1]], np.random.default_rng(11)))
    )
    for names in FIVE.views(3):
        assert one.marginal(names).sum() == pytest.approx(1)
        assert one.marginal(names).min() >= 0
    assert np.isposinf(one.cells(FIVE.views(3)[0]).variance).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 6}, "k must be"),
        ({"domain": {"a": 2}}, "must be"),
        ({"epsilon": 0}, "epsilon"),
        ({"covered": 0}, "covered must be"),
        ({"covered": 6}, "covered must be"),
        ({"covered": True}, "covered must be"),
        ({"covered": 1.0}, "covered must be"),
        ({"size": 1}, "size must be"),
        ({"size": 6}, "size must be"),
        ({"size": "3"}, "size must be"),
        ({"domain": Domain({f"x{j}": 2 for j in range(60)}), "covered": 8}, "too many to cover"),
        ({"domain": Domain({"a": 1 << 11, "b": 1 << 11})}, "cells"),
        ({"size": 5, "domain": Domain(dict.fromkeys("abcde", 20))}, "cells"),
    ],
)
def test_what_cannot_be_done(arguments, message):
    with pytest.raises(ValueError, match=message):
        CALM(**{"domain": FIVE, "k": 2, "epsilon": 1.0, **arguments})


def test_what_is_asked_for():
    protocol = CALM(FIVE, 3, 1.0, size=2)
    estimate, _ = estimated(protocol, 500, 12)
    for wrong in (["a", "b", "c", "d"], ["a", "a"], ["x"], []):
        with pytest.raises(ValueError, match="attributes"):
            estimate.marginal(wrong)
    with pytest.raises(ValueError, match="no view holds"):
        consistent(estimate).marginal(["a", "b", "c"])
    with pytest.raises(ValueError, match="no view holds"):
        protocol.cell_variances(100, ["a", "b", "c"])
    wide = CALM(Domain(dict.fromkeys("abc", 200)), 3, 1.0)
    with pytest.raises(ValueError, match="cells"):
        wide.checked(["a", "b", "c"])


def test_what_travels():
    protocol = CALM(FIVE, 3, 1.0)
    records = FIVE.values(np.repeat(np.arange(FIVE.size), 10))
    reports = protocol.privatize(records, np.random.default_rng(13))
    aggregate = protocol.aggregate(reports)
    assert (
        protocol.aggregate(protocol.reports_from_bytes(protocol.reports_to_bytes(reports)))
        == aggregate
    )
    assert protocol.aggregate_from_bytes(aggregate.to_bytes()) == aggregate
    assert protocol.aggregate(reports[:100]) + protocol.aggregate(reports[100:]) == aggregate
    assert protocol == pickle.loads(pickle.dumps(protocol)) == CALM(FIVE, np.int64(3), 1.0)
    for other in (
        CALM(FIVE, 3, 1.1),
        CALM(FIVE, 3, 1.0, covered=3),
        CALM(Domain.binary(*"abcdf"), 3, 1.0),
    ):
        with pytest.raises(IncompatibleAggregate):
            other.estimate(aggregate)
