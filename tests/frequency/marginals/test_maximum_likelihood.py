"""Marginals by maximum likelihood, against the laws of single reports and a general solver."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy

from frequency import CountMeanSketch
from frequency.core.likelihood import maximised
from frequency.exceptions import UnknownVariance
from frequency.marginals import (
    CALM,
    Domain,
    InpEM,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MargPS,
    MargRR,
    consistent,
    most_likely,
)
from tests.frequency.marginals.examples import ALL, B2, B3, MIXED, make
from tests.frequency.marginals.populations import held_of
from tests.frequency.marginals.test_expectation_maximisation import table as law_of_records

EVERY = [*(make(kind, MIXED, 2, 1.0) for kind in ALL), CALM(MIXED, 2, 1.0), InpEM(MIXED, 2, 1.0)]
EXACT = [kind(B3, 2, 1.5) for kind in (MargPS, InpPS, InpOLH, InpHT, InpEM)]
"""Whose aggregates keep the kinds of all reports."""


def named(protocol):
    return type(protocol).__name__


def collected(protocol, n=3000, seed=1, evenness=0.3):
    held = held_of(protocol.domain, n, seed, evenness)
    return held, protocol.simulate(held, np.random.default_rng(seed + 1))


def drawn(protocol, n, seed):
    rng, domain = np.random.default_rng(seed), protocol.domain
    items = rng.choice(domain.size, n, p=rng.dirichlet(np.full(domain.size, 0.5)))
    return protocol.privatize(domain.values(items), rng)


def log_likelihood(likelihood, frequencies):
    some = likelihood.counts > 0
    return float(likelihood.counts[some] @ np.log(likelihood.predict(frequencies)[some]))


def chances_of(protocol, report):
    """Pr[report | record] for all records, up to a factor: the ratios that public coins draw by."""
    channel, size = protocol.channel, protocol.domain.size
    ratios = np.array([float(ratio) for kind in channel.likelihoods for ratio in kind])
    return ratios[channel.likelihood(np.repeat(report[None], size), np.arange(size))]


def table_of(protocol, report, names):
    """What a report is about: the name of its table, and the cell of each record in it."""
    domain = protocol.domain
    if "view" in report.dtype.names:
        part = int(report["view"])
        return part, domain.cells(np.arange(domain.size), protocol.views[part])
    if "direction" in report.dtype.names or isinstance(protocol, InpEM):
        return names, domain.cells(np.arange(domain.size), names)
    return "records", np.arange(domain.size)


@pytest.mark.parametrize("protocol", EVERY[:-1], ids=named)
def test_one_report_has_the_likelihood_of_its_law(protocol):
    """Among users who all have the same cell, also where only parts of reports are counted."""
    different = 0
    for report in drawn(protocol, 40, 3):
        aggregate = protocol.aggregate(report[None].copy())
        found, cells = table_of(protocol, report, ("a", "b"))
        if isinstance(protocol, InpHT):
            direction = protocol.channel.directions[int(report["direction"])]
            if direction[2] or direction[3]:  # about another attribute
                continue
        likelihood = protocol.likelihood_of(aggregate, found)
        told = np.array([log_likelihood(likelihood, one) for one in np.eye(likelihood.items)])
        law = np.log(chances_of(protocol, report))
        assert np.allclose(told[cells] - told[cells][0], law - law[0], rtol=0, atol=1e-9)
        different += np.ptp(law) > 0
    assert different


@pytest.mark.parametrize("protocol", EVERY, ids=named)
def test_products_are_those_of_one_matrix(protocol):
    _, aggregate = collected(protocol)
    rng = np.random.default_rng(5)
    for found, cells, _ in protocol.tables_of(aggregate, ("b", "a")):
        likelihood = protocol.likelihood_of(aggregate, found)
        assert len(cells) == likelihood.items
        columns = np.stack([likelihood.predict(one) for one in np.eye(likelihood.items)], axis=1)
        some, numbers = rng.dirichlet(np.ones(likelihood.items)), rng.normal(size=len(columns))
        assert np.allclose(likelihood.predict(some), columns @ some, rtol=0, atol=1e-12)
        assert np.allclose(likelihood.transposed(numbers), numbers @ columns, rtol=0, atol=1e-9)
        assert (likelihood.counts >= 0).all()


def told_by_reports(protocol, reports, names):
    """Pr[report | cell] of every report on a table, and its name: shape (reports, cells)."""
    rows = []
    for report in reports:
        found, cells = table_of(protocol, report, names)
        if isinstance(protocol, MargPS) and protocol.views[found] != names:
            continue
        if isinstance(protocol, InpHT):
            direction = protocol.channel.directions[int(report["direction"])]
            if any(direction[place] for place in range(3) if B3.attributes[place] not in names):
                continue
        if isinstance(protocol, InpEM):  # of all reports with the cell that this one has
            law = np.array(law_of_records(protocol), dtype=float)
            chances = law[cells == cells[report["record"]]].sum(axis=0)
        else:
            chances = chances_of(protocol, report)
        rows.append([chances[cells == cell][0] for cell in range(cells.max() + 1)])
        last = found
    return last, np.array(rows)


@pytest.mark.parametrize("protocol", EXACT, ids=named)
def test_the_likelihood_is_that_of_all_reports(protocol):
    reports, names, rng = drawn(protocol, 300, 6), ("a", "c"), np.random.default_rng(7)
    found, rows = told_by_reports(protocol, reports, names)
    likelihood = protocol.likelihood_of(protocol.aggregate(reports), found)
    assert likelihood.counts.sum() == pytest.approx(len(rows))
    some = rng.dirichlet(np.ones(likelihood.items), 20)
    told = np.array([log_likelihood(likelihood, one) for one in some])
    slow = np.log(rows @ some.T).sum(axis=0)
    assert np.allclose(told - told[0], slow - slow[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("protocol", EXACT, ids=named)
def test_no_distribution_is_more_likely(protocol):
    """Against a general solver, on the reports themselves."""
    reports, names = drawn(protocol, 400, 8), ("a", "c")
    found, rows = told_by_reports(protocol, reports, names)
    cells = rows.shape[1]

    def misfit(f):
        return -np.log(rows @ f).sum()

    best = scipy.optimize.minimize(
        misfit,
        np.full(int(cells), 1 / cells),
        method="SLSQP",
        bounds=[(0, 1)] * cells,
        constraints=scipy.optimize.LinearConstraint(np.ones(cells), 1, 1),
        options={"maxiter": 500, "ftol": 1e-12},
    )
    likelihood = protocol.likelihood_of(protocol.aggregate(reports), found)
    even = np.full(cells, 1 / cells)
    most = log_likelihood(likelihood, even) - best.fun - np.log(rows @ even).sum()
    for tolerance in (1.0, 1e-2, 1e-6):
        frequencies, ascent = maximised(likelihood, tolerance, 100_000)
        assert ascent.converged
        assert most - ascent.gap - 1e-6 <= ascent.log_likelihood <= most + 1e-4
    assert np.abs(frequencies - best.x).max() < 2e-2
    if protocol.domain.size == cells:
        return
    estimate = most_likely(protocol.estimate(protocol.aggregate(reports)), 1e-6)
    assert np.allclose(estimate.marginal(names).ravel(), frequencies, rtol=0, atol=1e-12)


@pytest.mark.parametrize("protocol", EVERY, ids=named)
def test_marginals_are_distributions_and_the_likelihood_never_falls(protocol):
    held, aggregate = collected(protocol, n=20_000)
    estimate = most_likely(protocol.estimate(aggregate))
    cells = protocol.domain.cells(np.arange(MIXED.size), ("b", "a"))
    truth = (np.bincount(cells, held) / held.sum()).reshape(3, 2)
    found = estimate.marginal(["b", "a"])
    assert found.shape == (3, 2)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert np.array_equal(estimate.marginal(["a", "b"]), found.T)
    # In a sketch of so few cells the items that collide are not told apart
    assert np.abs(found - truth).max() < (0.5 if isinstance(protocol, InpHTCMS) else 0.15)
    assert all(ascent.converged for ascent in estimate.report(["a", "b"]))
    (first, *_) = protocol.tables_of(aggregate, ("a", "b"))
    likelihood = protocol.likelihood_of(aggregate, first[0])
    steps = [maximised(likelihood, 1e-9, most)[1] for most in (1, 2, 3, 5, 8, 20, 100)]
    assert all(
        after.log_likelihood >= before.log_likelihood - 1e-7 for before, after in pairwise(steps)
    )
    assert all(step.log_likelihood + step.gap >= steps[-1].log_likelihood - 1e-7 for step in steps)


def test_the_first_step_is_the_mean_of_what_each_report_says():
    protocol = MargPS(B2, 2, 1.0)
    reports = drawn(protocol, 200, 9)
    _, rows = told_by_reports(protocol, reports, ("a", "b"))
    found, ascent = maximised(protocol.likelihood_of(protocol.aggregate(reports), 0), 1e-9, 1)
    assert ascent.iterations == 1
    assert np.allclose(found, (rows / rows.sum(axis=1, keepdims=True)).mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("kind", [MargPS, MargRR, MargHT, InpPS, InpOLH, InpHT, InpRR])
def test_unbiased_estimates_that_are_distributions_are_hardly_changed(kind):
    protocol = kind(B2, 2, 3.0)
    _, aggregate = collected(protocol, 100_000, 10, evenness=20.0)
    unbiased = protocol.estimate(aggregate)
    assert unbiased.marginal(["a", "b"]).min() > 0.02
    distance = np.abs(
        most_likely(unbiased, 1e-6).marginal(["a", "b"]) - unbiased.marginal(["a", "b"])
    ).max()
    # The unbiased estimate of bits does not sum to 1, and InpOLH weighs all hashes alike
    noise = float(np.sqrt(unbiased.cells(["a", "b"]).variance.max()))
    assert distance < (1e-6 if kind in (MargPS, InpPS) else 2 * noise)
    assert distance < 0.01


def test_inp_em_ends_where_its_own_decoding_does():
    protocol = InpEM(MIXED, 2, 4.0, tolerance=1e-10)
    _, aggregate = collected(protocol, 5000, 11)
    estimate = protocol.estimate(aggregate)
    own, found = estimate.report(["b", "d"]), most_likely(estimate, 1e-6)
    assert found.report(["b", "d"])[0].log_likelihood / 5000 == pytest.approx(own.log_likelihood)
    assert np.abs(found.marginal(["b", "d"]) - estimate.marginal(["b", "d"])).max() < 1e-3


def test_marginals_of_whole_records_agree_and_those_of_views_are_weighed():
    whole, views = InpPS(MIXED, 2, 2.0), MargPS(MIXED, 2, 2.0)
    for protocol in (whole, views):
        _, aggregate = collected(protocol, 4000, 12)
        estimate = most_likely(protocol.estimate(aggregate), 1e-8)
        sums = [estimate.marginal(["a", other]).sum(axis=1) for other in ("b", "c", "d")]
        single = estimate.marginal(["a"])
        if protocol is whole:
            assert all(np.allclose(one, single, rtol=0, atol=1e-12) for one in sums)
        else:
            assert np.stack(sums).min(axis=0)[0] < single[0] < np.stack(sums).max(axis=0)[0]
            assert len(estimate.report(["a"])) == 3


@pytest.mark.slow
def test_extremes():
    for kind in ALL:
        one = make(kind, Domain({"a": 1}), 1, 1.0)
        assert most_likely(one.estimate(one.simulate([3]))).marginal(["a"]).tolist() == [1.0]
    records = [[0, 1]] * 30 + [[1, 1]] * 20
    for exact in (MargPS, InpPS, InpOLH, InpHT, InpEM):
        sure, faint = exact(B2, 2, 80), exact(B2, 2, 2.0**-30)
        aggregate = sure.aggregate(sure.privatize(records, np.random.default_rng(13)))
        found = most_likely(sure.estimate(aggregate)).marginal(["a", "b"])
        assert np.abs(found - [[0, 0.6], [0, 0.4]]).max() < (0.3 if exact is InpHT else 0.01)
        aggregate = faint.aggregate(faint.privatize(records, np.random.default_rng(14)))
        found = most_likely(faint.estimate(aggregate)).marginal(["a", "b"])
        assert np.abs(found - 1 / 4).max() < 1e-3


@pytest.mark.parametrize("protocol", EVERY, ids=named)
def test_few_reports(protocol):
    none = most_likely(protocol.estimate(protocol.simulate(np.zeros(MIXED.size, dtype=int))))
    assert np.isnan(none.marginal(["a", "b"])).all()
    with pytest.raises(ValueError, match="no reports"):
        none.report(["a", "b"])
    _, aggregate = collected(protocol, 1)
    found = most_likely(protocol.estimate(aggregate)).marginal(["a", "b"])
    assert np.isnan(found).all() or found.sum() == pytest.approx(1)


def test_errors_are_refused():
    protocol = MargPS(MIXED, 2, 1.0)
    _, aggregate = collected(protocol)
    estimate = most_likely(protocol.estimate(aggregate))
    answer = estimate.answer({"a": 1, "b": [0, 2]})
    assert answer.value == pytest.approx(estimate.marginal(["a", "b"])[1, [0, 2]].sum())
    with pytest.raises(UnknownVariance, match="maximum likelihood"):
        answer.interval()
    with pytest.raises(ValueError, match="read-only"):
        estimate.marginal(["a"])[0] = 1
    with pytest.raises(ValueError, match="up to 2 attributes"):
        estimate.marginal(["a", "b", "d"])
    assert consistent(estimate).cells(["a"]).variance.min() > 0  # the unbiased fit, once more
    for wrong in (0, -1.0, math.nan, math.inf, True, "1"):
        with pytest.raises(ValueError, match="tolerance"):
            most_likely(estimate, wrong)
    for steps in (0, 1.5, True):
        with pytest.raises(ValueError, match="max_iterations"):
            most_likely(estimate, 0.01, steps)
    sketch = CountMeanSketch(4, 1.0, 2, 4)
    with pytest.raises(TypeError, match="CountMeanSketch"):
        sketch.likelihood_of(sketch.simulate([1, 1, 1, 1]))


@pytest.mark.slow
def test_what_is_too_large_or_not_held():
    wide = InpHT(Domain.binary(*(f"x{k}" for k in range(13))), 13, 1.0)
    reports = wide.privatize(np.zeros((5, 13), dtype=int), np.random.default_rng(15))
    estimate = most_likely(wide.estimate(wide.aggregate(reports)))
    with pytest.raises(ValueError, match="signs"):
        estimate.marginal(list(wide.domain))
    calm = CALM(Domain.binary(*"abcdef"), 4, 1.0, size=3)
    _, aggregate = collected(calm)
    with pytest.raises(ValueError, match="no view holds"):
        most_likely(calm.estimate(aggregate)).marginal(["a", "b", "c", "d"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [InpRR, MargRR, MargHT])
def test_parts_of_reports_tell_nearly_all(kind):
    """Where an aggregate keeps less than the reports, the maximum is near that of their likelihood.

    The mean square distance, over 10 collections, is less than a twentieth of the variance.
    """
    protocol, lost, noise = kind(B2, 2, 1.0), [], []
    for seed in range(10):
        reports = drawn(protocol, 300, 100 + seed)
        rows = np.array([chances_of(protocol, report) for report in reports])
        f = np.full(4, 1 / 4)
        for _ in range(1000):
            f = f * (rows / (rows @ f)[:, None]).mean(axis=0)
        estimate = protocol.estimate(protocol.aggregate(reports))
        found = most_likely(estimate, 1e-6).marginal(["a", "b"]).ravel()
        lost.append(((found - f) ** 2).sum())
        noise.append(estimate.cells(["a", "b"]).variance.sum())
    assert np.mean(lost) < 0.05 * np.mean(noise)
