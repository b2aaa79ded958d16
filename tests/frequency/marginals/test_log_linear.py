"""Log-linear fits, against tables of all records and a general optimiser."""

from itertools import combinations

import numpy as np
import pytest
import scipy

from frequency.marginals import Domain
from frequency.marginals.log_linear import LogLinear, MarginalModel, Moments, cas, characters

MIXED = Domain({"a": 2, "b": 3, "one": 1, "d": 4})
SETS = [("a",), ("b",), ("d",), ("a", "b"), ("b", "d")]


def everything(domain, names_of_sets):
    """The characters of sets of attributes in all records: shape (characters, records)."""
    indices = np.concatenate([characters(domain, names) for names in names_of_sets])
    return indices, cas(domain.shape, indices, domain.values(np.arange(domain.size)))


def noisy(domain, sets, deviation, seed, concentration=0.5):
    """Moments of a random population, with errors, and the population."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(domain.size, concentration))
    told = []
    for names in sets:
        _, table = everything(domain, [names])
        variances = deviation**2 * rng.uniform(0.5, 2, len(table))
        errors = rng.normal(size=len(table)) * np.sqrt(variances)
        told.append(Moments(names, table @ joint + errors, variances))
    return told, joint


def loss(parameters, fit, table, told):
    """What the fit minimises, by the table of all records."""
    logs = parameters @ table
    joint = np.exp(logs - scipy.special.logsumexp(logs))
    values = np.concatenate([one.values for one in told])
    variances = np.concatenate([one.variances for one in told])
    left = (values - table @ joint) ** 2 / variances
    return float(left.sum() + ((parameters / fit.scales) ** 2).sum())


def test_characters_are_an_orthogonal_basis():
    sets = [names for size in range(5) for names in combinations(MIXED, size)]
    indices, table = everything(MIXED, sets)
    assert len(indices) == MIXED.size
    assert np.allclose(table @ table.T, MIXED.size * np.eye(MIXED.size), rtol=0, atol=1e-9)
    # A character of some attributes does not depend on the others
    for names, part in ((names, everything(MIXED, [names])[1]) for names in sets):
        cells = MIXED.cells(np.arange(MIXED.size), names) if names else np.zeros(MIXED.size, int)
        for cell in np.unique(cells):
            assert np.ptp(part[:, cells == cell], axis=1).max(initial=0) < 1e-12


@pytest.mark.parametrize("deviation", [0.3, 0.02])
def test_the_fit_is_that_of_a_general_optimiser(deviation):
    told, _ = noisy(MIXED, SETS, deviation, 1)
    fit = LogLinear(MIXED, told)
    _, table = everything(MIXED, SETS)
    logs = fit.parameters @ table
    assert fit.joint == pytest.approx(np.exp(logs - scipy.special.logsumexp(logs)), rel=1e-9)
    best = scipy.optimize.minimize(
        loss, fit.parameters, (fit, table, told), method="BFGS", options={"gtol": 1e-7}
    )
    assert loss(fit.parameters, fit, table, told) <= best.fun * (1 + 1e-3) + 1e-3
    logs = best.x @ table
    near = np.exp(logs - scipy.special.logsumexp(logs))
    assert table @ fit.joint == pytest.approx(table @ near, abs=0.1 * deviation)
    # Away from it the loss is larger
    assert loss(0.5 * fit.parameters, fit, table, told) > best.fun + 0.01


def test_the_scales_are_where_the_evidence_is_largest():
    """Against the Laplace evidence on a grid: of the pairs, that have one scale with one set."""
    domain = Domain({"a": 4, "b": 5})
    told, _ = noisy(domain, [("a", "b")], 0.02, 2, concentration=20.0)
    fit = LogLinear(domain, told)
    scale = fit.scales[0]
    assert np.all(fit.scales == scale)
    values, noise = told[0].values, told[0].variances

    def evidence(factor):
        # Records are nearly even, so that moments are nearly the parameters
        total = noise + (factor * scale) ** 2
        return float(-(values**2 / total + np.log(total)).sum())

    assert evidence(1.0) > evidence(0.6)
    assert evidence(1.0) > evidence(1.7)


def test_posterior_variances_are_those_of_explicit_matrices():
    told, _ = noisy(MIXED, SETS, 0.05, 3)
    fit = LogLinear(MIXED, told)
    _, table = everything(MIXED, SETS)
    joint = fit.joint
    covariance = (table * joint) @ table.T - np.outer(table @ joint, table @ joint)
    precisions = 1 / np.concatenate([one.variances for one in told])
    curvature = covariance @ np.diag(precisions) @ covariance + np.diag(fit.scales**-2.0)
    # Of all moments: also of sets that have no parameters
    others = [*SETS, ("a", "d"), ("a", "b", "d")]
    indices, wide = everything(MIXED, others)
    slopes = (wide * joint) @ table.T - np.outer(wide @ joint, table @ joint)
    expected = slopes @ np.linalg.inv(curvature) @ slopes.T
    weights = np.random.default_rng(4).normal(size=(6, len(indices)))
    assert fit.variances(indices, weights) == pytest.approx(
        np.einsum("si,ij,sj->s", weights, expected, weights), rel=1e-6
    )


@pytest.mark.slow
def test_draws_have_the_posterior_s_mean_and_variances():
    """Where Laplace's approximation is good. 600 draws: a variance has a deviation of 6 %."""
    told, _ = noisy(MIXED, SETS, 0.01, 5, concentration=5.0)
    fit, rng = LogLinear(MIXED, told), np.random.default_rng(6)
    indices, table = everything(MIXED, SETS)
    drawn = np.array([table @ fit.drawn(rng) for _ in range(600)])
    variances = fit.variances(indices, np.eye(len(indices)))
    assert np.abs(drawn.mean(axis=0) - table @ fit.joint).max() < 6 * np.sqrt(variances / 600).max()
    ratios = drawn.var(axis=0, ddof=1) / variances
    assert 0.65 < ratios.min() <= ratios.max() < 1.5
    assert not 0.65 < 2 * ratios.max() < 1.5


def test_nothing_told_leaves_records_even():
    fit = LogLinear(MIXED, [])
    assert fit.joint == pytest.approx(1 / MIXED.size)
    assert np.array_equal(fit.drawn(np.random.default_rng(7)), fit.joint)
    assert not fit.variances(np.zeros((1, 4), dtype=np.int64), np.ones((2, 1))).any()


# ----------------------------------------------------------------------------- parts of attributes


def chain(size, states, n, rng):
    """Records in which each attribute is mostly the one before."""
    records = rng.integers(0, states, (n, size))
    for place in range(1, size):
        same = rng.random(n) < 0.7
        records[same, place] = records[same, place - 1]
    return records


def model_of(domain, records, deviation, seed):
    rng = np.random.default_rng(seed)
    measured = [names for size in (1, 2) for names in domain.views(size)]

    def told(names):
        table = cas(domain.shape, characters(domain, names), records)
        values = table.mean(axis=1) + rng.normal(0, deviation, len(table))
        return Moments(names, values, np.full(len(table), deviation**2))

    return MarginalModel(domain, measured, told)


@pytest.mark.slow
def test_answers_of_many_attributes_are_those_of_their_neighbours(monkeypatch):
    domain = Domain({f"x{k}": 3 for k in range(7)})
    records = chain(7, 3, 20_000, np.random.default_rng(8))
    whole = model_of(domain, records, 0.01, 9)
    assert whole.whole()
    exact = whole.around(("x2", "x4"))
    monkeypatch.setattr("frequency.marginals.log_linear.MOST_RECORDS", 500)
    monkeypatch.setattr("frequency.marginals.log_linear._RECORDS_OF_A_PART", 81)
    parts = model_of(domain, records, 0.01, 9)
    assert not parts.whole()
    fit = parts.around(("x2", "x4"))
    assert fit.domain.attributes == ("x1", "x2", "x3", "x4") or "x3" in fit.domain.attributes
    assert fit.domain.size <= 81
    one, two = (
        np.bincount(each.domain.cells(np.arange(each.domain.size), ("x2", "x4")), each.joint)
        for each in (exact, fit)
    )
    assert one == pytest.approx(two, abs=0.01)
    # Sampled one after the other, each by those that it depends on
    order = parts.conditionals()
    assert sorted(name for each in order for name in each.names) == sorted(domain)
    assert all(each.given for each in order[1:])
    sampled = parts.sample(20_000, np.random.default_rng(10), drawn=False)
    for first, last in (("x0", "x1"), ("x2", "x4"), ("x0", "x6")):
        places = list(domain.places((first, last)))
        tables = [
            np.bincount(held[:, places] @ [3, 1], minlength=9) / len(held)
            for held in (records, sampled)
        ]
        assert tables[0] == pytest.approx(tables[1], abs=0.02)
    monkeypatch.setattr("frequency.marginals.log_linear.MOST_RECORDS", 8)
    with pytest.raises(ValueError, match="more than"):
        model_of(domain, records, 0.01, 9).around(("x2", "x4"))


def test_samples_share_out_the_fit():
    domain = Domain({"a": 3, "b": 4})
    model = model_of(domain, chain(2, 3, 1000, np.random.default_rng(11)), 0.01, 12)
    joint = model.around(("a", "b")).joint
    for n in (1, 7, 100_000):
        records = model.sample(n, np.random.default_rng(n), drawn=False)
        counts = np.bincount(domain.items(records), minlength=12)
        assert counts.sum() == n
        assert np.abs(counts - n * joint).max() < 1 + 1e-6
