"""InpEM: every attribute perturbed by itself, marginals by expectation maximisation."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from scipy import stats

from frequency import IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.core.aggregate import Aggregate
from frequency.marginals import Domain, InpEM, consistent
from tests.contracts.oracle import exponential_below
from tests.goodness_of_fit import FALSE_ALARM

SMALL = Domain({"a": 2, "b": 3, "c": 1, "d": 2})


def table(protocol):
    """Pr[report | record], rows are reports: from the integers that are drawn with, attribute by
    attribute.
    """
    records = list(product(*(range(size) for size in protocol.domain.shape)))
    choices = protocol.channel.choices
    return [
        [
            math.prod(
                (c.p if x == y else c.q for x, y, c in zip(held, told, choices, strict=True)),
                start=Fraction(1),
            )
            for held in records
        ]
        for told in records
    ]


def skewed(domain, n, seed):
    rng = np.random.default_rng(seed)
    common = rng.random((n, 1))
    mixed = (common + 0.6 * rng.random((n, len(domain)))) / 1.6
    return (mixed ** np.linspace(0.6, 2.5, len(domain)) * np.array(domain.shape)).astype(np.int64)


@pytest.mark.parametrize("epsilon", [2.0**-20, 0.3, 1.1, 5, Fraction(7, 3)])
@pytest.mark.parametrize(
    "domain",
    [SMALL, Domain.binary("a", "b", "c"), Domain({"a": 4}), Domain({"a": 1, "b": 1})],
    ids=repr,
)
def test_the_audit_is_the_enumerated_ratio(domain, epsilon):
    protocol = InpEM(domain, 1, epsilon)
    rows = table(protocol)
    assert all(sum(column) == 1 for column in zip(*rows, strict=True))
    audit = protocol.audit()
    assert audit.holds
    assert audit.allowed <= exponential_below(protocol.epsilon)
    assert audit.ratio == max(max(row) / min(row) for row in rows)
    assert audit.ratio == rows[audit.output][audit.inputs[0]] / rows[audit.output][audit.inputs[1]]
    if domain.size > 1:
        assert math.log(audit.ratio) >= epsilon * (1 - 1e-6)


def test_an_attribute_with_one_value_costs_nothing():
    with_it, without = InpEM(SMALL, 2, 1.0), InpEM(Domain({"a": 2, "b": 3, "d": 2}), 2, 1.0)
    assert [c for c in with_it.channel.choices if c.k > 1] == list(without.channel.choices)


def test_reports_are_drawn_as_the_table_says():
    protocol, n = InpEM(SMALL, 2, 1.5), 60_000
    rows = np.array(table(protocol), dtype=float)
    for record in (0, 7, SMALL.size - 1):
        values = np.repeat(SMALL.values(np.array([record])), n, axis=0)
        told = protocol.privatize(values, np.random.default_rng(record))["record"]
        found = np.bincount(told, minlength=SMALL.size)
        assert stats.chisquare(found, n * rows[:, record]).pvalue > FALSE_ALARM
        assert stats.chisquare(found, n * rows[:, (record + 1) % SMALL.size]).pvalue < FALSE_ALARM


def test_reports_are_one_byte_for_eight_binary_attributes():
    protocol = InpEM(Domain.binary(*"abcdefgh"), 2, 1.0)
    assert (protocol.channel.report_dtype.itemsize, protocol.report_bits) == (1, 8)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_aggregates_count_perturbed_marginals(k):
    protocol = InpEM(SMALL, k, 1.0)
    reports = protocol.privatize(skewed(SMALL, 500, 1), np.random.default_rng(2))
    aggregate = protocol.aggregate(reports)
    told = SMALL.values(reports["record"].astype(np.int64))
    for size in range(1, k + 1):
        for names in permutations(SMALL, size):
            assert np.allclose(
                protocol.channel.perturbed(aggregate, names),
                SMALL.marginal(told, names),
                rtol=0,
                atol=1e-12,
            )
    assert aggregate.counts.sum() == 500 * math.comb(4, k)
    # A few reports are counted one by one, many by their record: both the same; and batches add up.
    parts = [protocol.aggregate(reports[start : start + 7]) for start in range(0, 500, 7)]
    assert sum(parts) == aggregate
    assert protocol.aggregate_from_bytes(aggregate.to_bytes()) == aggregate
    assert (
        protocol.aggregate(protocol.reports_from_bytes(protocol.reports_to_bytes(reports)))
        == aggregate
    )


@pytest.mark.slow
def test_simulated_aggregates_have_the_same_distribution():
    protocol, held = InpEM(Domain({"a": 2, "b": 3}), 2, 5.0), np.array([3, 0, 4, 1, 0, 2])
    values = protocol.domain.values(np.repeat(np.arange(6), held))
    rows, rng = np.array(table(protocol), dtype=float), np.random.default_rng(3)
    repeats = 4000
    simulated = np.array([protocol.simulate(held, rng).counts for _ in range(repeats)])
    real = np.array(
        [protocol.aggregate(protocol.privatize(values, rng)).counts for _ in range(repeats)]
    )
    mean = rows @ held
    covariance = sum(
        h * (np.diag(rows[:, v]) - np.outer(rows[:, v], rows[:, v])) for v, h in enumerate(held)
    )
    for found in (simulated, real):
        z = (found.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / repeats)
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 24)
        assert np.abs(np.cov(found.T) - covariance).max() < 0.2
    # Of a mere multinomial
    assert (
        np.abs(np.diag(covariance) - np.diag(np.diag(mean) - np.outer(mean, mean) / 10)).max() > 0.3
    )


def one_step(protocol, names, guess, reports):
    """Algorithm 3, lines 6 and 7, user by user."""
    domain = protocol.domain.project(names)
    choices = [protocol.channel.choices[place] for place in protocol.domain.places(names)]
    after = dict.fromkeys(guess, 0.0)
    likelihood = 0.0
    for report in reports["record"]:
        told = protocol.domain.values(np.array([report]), names)[0]
        joint = {
            cell: (
                guess[cell]
                * math.prod(
                    float(c.p if x == y else c.q)
                    for x, y, c in zip(cell, told, choices, strict=True)
                )
            )
            for cell in product(*(range(size) for size in domain.shape))
        }
        total = sum(joint.values())
        likelihood += math.log(total)
        for cell, share in joint.items():
            after[cell] += share / total / len(reports)
    return after, likelihood / len(reports)


@pytest.mark.parametrize("names", [("a",), ("b", "a"), ("c", "d"), ("d", "a", "b")])
@pytest.mark.parametrize("dense", [True, False])
def test_steps_are_those_of_the_loop_over_users(names, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr("frequency.marginals.expectation_maximisation._DENSE", 0)
    records = skewed(SMALL, 60, 4)
    reports = InpEM(SMALL, 3, 3.0).privatize(records, np.random.default_rng(5))
    shape = SMALL.project(names).shape
    guess = {cell: 1 / math.prod(shape) for cell in np.ndindex(shape)}
    before = -math.inf
    for steps in range(1, 6):
        protocol = InpEM(SMALL, 3, 3.0, tolerance=1e-12, max_iterations=steps)
        estimate = protocol.estimate(protocol.aggregate(reports))
        guess, likelihood = one_step(protocol, names, guess, reports)
        assert likelihood >= before  # of the guess before the step
        before = likelihood
        assert np.allclose(estimate.marginal(names).ravel(), list(guess.values()), rtol=1e-9)
        report = estimate.report(names)
        assert report.iterations == steps
        assert not report.converged
        assert not report.failed
        assert report.log_likelihood == pytest.approx(one_step(protocol, names, guess, reports)[1])


def test_it_ends_at_the_most_likely_marginal():
    """With much budget and a fine tolerance: the inverse of the perturbation, where that is a
    distribution.
    """
    domain = Domain({"a": 2, "b": 3})
    protocol = InpEM(domain, 2, 6, tolerance=1e-13)
    records = np.random.default_rng(6).integers(0, (2, 3), (20_000, 2))
    aggregate = protocol.aggregate(protocol.privatize(records, np.random.default_rng(7)))
    estimate = protocol.estimate(aggregate)
    told = protocol.channel.perturbed(aggregate, ("a", "b")).ravel()
    inverse = np.linalg.solve(np.array(table(protocol), dtype=float), told)
    assert inverse.min() > 0
    assert np.abs(estimate.marginal(["a", "b"]).ravel() - inverse).max() < 1e-9
    assert estimate.report(["a", "b"]).converged


def test_likelihood_never_falls_and_marginals_are_distributions():
    domain = Domain.binary(*"abcdef")
    reports = InpEM(domain, 3, 2.0).privatize(skewed(domain, 5000, 8), np.random.default_rng(9))
    found = []
    for steps in (1, 2, 4, 16, 64, 256, 4096):
        protocol = InpEM(domain, 3, 2.0, tolerance=1e-9, max_iterations=steps)
        estimate = protocol.estimate(protocol.aggregate(reports))
        marginal = estimate.marginal(["a", "d", "f"])
        assert marginal.min() >= 0
        assert marginal.sum() == pytest.approx(1)
        found.append(estimate.report(["a", "d", "f"]).log_likelihood)
    assert all(after >= before - 1e-15 for before, after in pairwise(found))


def test_errors_shrink_with_the_budget_and_orders_agree():
    domain = Domain({"a": 2, "b": 3, "c": 4})
    records = skewed(domain, 100_000, 10)
    errors = []
    for epsilon in (1, 3, 9):
        protocol = InpEM(domain, 2, epsilon)
        estimate = protocol.estimate(
            protocol.aggregate(protocol.privatize(records, np.random.default_rng(11)))
        )
        errors.append(
            max(
                np.abs(estimate.marginal(view) - domain.marginal(records, view)).sum() / 2
                for view in domain.views(2)
            )
        )
        assert np.array_equal(estimate.marginal(["c", "a"]), estimate.marginal(["a", "c"]).T)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


@pytest.mark.slow
def test_failures_of_table_4_2():
    """Thesis Table 4.2 (taxi trips) at N = 2^18, epsilon = 0.1, on other skewed data: 120 of 120
    fail at d = 16, some at d = 8.

    And none with much budget.
    """
    failed = {}
    for d, epsilon in ((16, 0.1), (8, 0.1), (8, 4)):
        domain = Domain.binary(*(f"x{j}" for j in range(d)))
        protocol = InpEM(domain, 2, epsilon)
        held = np.bincount(domain.items(skewed(domain, 1 << 18, 12)), minlength=domain.size)
        estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(13)))
        reports = {view: estimate.report(view) for view in domain.views(2)}
        failed[d, epsilon] = sum(report.failed for report in reports.values())
        for view, report in reports.items():
            assert report.converged
            if report.failed:
                assert report.iterations == 1
                assert np.abs(estimate.marginal(view) - 1 / 4).max() < protocol.tolerance
    assert failed[16, 0.1] == 120
    assert 0 < failed[8, 0.1] < 28
    assert failed[8, 4] == 0


def test_errors_are_those_of_the_inverse_information():
    """Against the Fisher information of the reports, and the law of a report, cell by cell."""
    protocol = InpEM(SMALL, 2, 4.0, tolerance=1e-9)
    n, names = 20_000, ("b", "a")
    estimate = protocol.estimate(
        protocol.simulate(np.full(SMALL.size, n // SMALL.size), np.random.default_rng(15))
    )
    n = estimate.n
    held = estimate.marginal(names).ravel()
    matrix = protocol.perturbation(names)(np.eye(len(held)))  # Pr[report | cell], symmetric
    seen = matrix @ held
    information = matrix.T @ np.diag(n / seen) @ matrix
    # The information of users drawn at random, less what drawing them adds
    drawn = np.linalg.inv(information) - np.outer(held, held) / n
    own = drawn - (np.diag(held) - np.outer(held, held)) / n
    weights = np.random.default_rng(16).normal(size=(5, len(held)))
    told = estimate.linear(names, weights).variance
    assert told == pytest.approx(np.einsum("si,ij,sj->s", weights, own, weights), rel=1e-9)
    assert estimate.cells(names).variance.mean() == pytest.approx(
        protocol.cell_variances(n, names).mean(), rel=0.05
    )
    answer = estimate.answer({"a": 1, "b": [0, 2]})
    assert answer.value == pytest.approx(estimate.marginal(["a", "b"])[1, [0, 2]].sum())
    unbiased = consistent(estimate)
    # Inside the simplex, the most likely marginal is the unbiased one
    assert unbiased.marginal(names) == pytest.approx(estimate.marginal(names), abs=1e-4)
    assert unbiased.cells(names).variance == pytest.approx(estimate.cells(names).variance, rel=1e-3)
    with pytest.raises(ValueError, match="read-only"):
        estimate.marginal(["a", "b"])[0, 0] = 1


def test_no_reports():
    protocol = InpEM(SMALL, 2, 2.0)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(np.zeros((0, 4), dtype=int)))
    )
    assert np.isnan(estimate.marginal(["a", "b"])).all()
    assert np.isposinf(estimate.cells(["a", "b"]).variance).all()
    with pytest.raises(ValueError, match="no reports"):
        estimate.report(["a"])


def test_hostile_reports():
    protocol = InpEM(SMALL, 2, 2.0)
    reports = protocol.privatize(skewed(SMALL, 10, 16), np.random.default_rng(17))
    reports["record"][3] = SMALL.size
    with pytest.raises(InvalidReport, match=r"reports\[3\]"):
        protocol.aggregate(reports)
    tally: Counter[str] = Counter()
    assert protocol.aggregate(reports, tally).n == 9
    assert tally == {"impossible": 1}
    with pytest.raises(InvalidReport):
        protocol.aggregate(reports.view("u1"))
    with pytest.raises(InvalidValue):
        protocol.privatize([[0, 3, 0, 0]])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_hostile_aggregates(k):
    protocol = InpEM(SMALL, k, 2.0)
    good = protocol.aggregate(protocol.privatize(skewed(SMALL, 50, 18), np.random.default_rng(19)))
    assert protocol.estimate(good).n == 50
    moved = good.counts.copy()
    # The total is right; for k > 1 another view tells otherwise
    moved[:2] += [1, -1] if moved[1] else [-1, 1]
    negative = good.counts.copy()
    negative[:2] += [51, -51]
    bad = [
        Aggregate(good.parameters, 51, good.counts),
        Aggregate(good.parameters, 50, negative),
        Aggregate(good.parameters, 50, good.counts[:-1]),
        Aggregate(
            InpEM(SMALL, k, 2.5).aggregate(np.zeros(0, good_dtype(protocol))).parameters,
            50,
            good.counts,
        ),
    ]
    if k > 1:
        bad.append(Aggregate(good.parameters, 50, moved))
    for aggregate in bad:
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(aggregate)
    with pytest.raises(IncompatibleAggregate):
        good + InpEM(SMALL, k % 3 + 1, 2.0).aggregate(np.zeros(0, good_dtype(protocol)))
    assert (
        good
        + InpEM(SMALL, k, 2.0, tolerance=0.1, max_iterations=3).aggregate(
            np.zeros(0, good_dtype(protocol))
        )
        == good
    )


def good_dtype(protocol):
    return protocol.channel.report_dtype


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 5}, "k must be"),
        ({"k": True}, "k must be"),
        ({"domain": {"a": 2}}, "domain must be"),
        ({"epsilon": 2.0**-40}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"tolerance": 0}, "tolerance"),
        ({"tolerance": math.nan}, "tolerance"),
        ({"tolerance": 1}, "tolerance"),
        ({"tolerance": "1e-5"}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": 1.5}, "max_iterations"),
        ({"domain": Domain({f"x{j}": 2 for j in range(60)}), "k": 30}, "cells, more than"),
        ({"domain": Domain({"a": 1 << 31, "b": 1 << 31})}, "cells, more than"),
    ],
)
def test_what_cannot_be_done(arguments, message):
    with pytest.raises(ValueError, match=message):
        InpEM(**{"domain": SMALL, "k": 2, "epsilon": 1.0, **arguments})


def test_marginals_asked_for():
    protocol = InpEM(SMALL, 2, 1.0)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(skewed(SMALL, 50, 20), np.random.default_rng(21)))
    )
    for wrong in (["a", "b", "d"], ["a", "a"], ["x"], []):
        with pytest.raises(ValueError, match="attributes"):
            estimate.marginal(wrong)
        with pytest.raises(ValueError, match="attributes"):
            estimate.report(wrong)
    assert protocol == pickle.loads(pickle.dumps(protocol))


def test_many_attributes():
    """62 binary attributes: records up to 2^62, counted one by one."""
    domain = Domain.binary(*(f"x{j}" for j in range(62)))
    protocol = InpEM(domain, 2, 20.0)
    records = skewed(domain, 5000, 22)
    reports = protocol.privatize(records, np.random.default_rng(23))
    assert reports.dtype.itemsize == 8
    aggregate = protocol.aggregate(reports)
    told = domain.values(reports["record"].astype(np.int64))
    assert np.allclose(
        protocol.channel.perturbed(aggregate, ("x61", "x0")), domain.marginal(told, ["x61", "x0"])
    )
    assert protocol.audit().holds


@pytest.mark.parametrize("dense", [True, False])
def test_marginals_decoded_together_are_those_decoded_alone(dense, monkeypatch):
    if not dense:
        monkeypatch.setattr("frequency.marginals.expectation_maximisation._DENSE", 0)
    domain = Domain({"a": 2, "b": 3, "c": 2, "d": 3})
    protocol = InpEM(domain, 2, 3.0)
    aggregate = protocol.aggregate(
        protocol.privatize(skewed(domain, 5000, 24), np.random.default_rng(25))
    )
    together = protocol.estimate(aggregate)
    reports = {view: together.report(view) for view in domain.views(2)}
    assert len({report.iterations for report in reports.values()}) > 3
    monkeypatch.setattr("frequency.marginals.expectation_maximisation._TOGETHER", 0)
    alone = protocol.estimate(aggregate)
    for view, report in reports.items():
        assert alone.report(view)._replace(log_likelihood=0) == report._replace(log_likelihood=0)
        assert np.allclose(alone.marginal(view), together.marginal(view), rtol=0, atol=1e-12)
