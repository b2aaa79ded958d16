"""The least variance of an unbiased estimate: the bound, its proof, and mechanisms near it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import cvxpy
import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import (
    Mechanism,
    Metric,
    NoUnbiasedEstimate,
    Privacy,
    UnbiasedEstimate,
    design,
    named,
)
from mechdesign.losses import L0
from mechdesign.optimisation.unbiased_design import least_unbiased_variances, least_variance
from mechdesign.properties import SEVEN, resolve

ALPHAS = ("1/100", "1/3", "1/2", "9/10", "99/100")
NINE = Privacy(alpha="9/10")


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 13])
def test_the_bound_is_the_variance_of_gm(n, alpha):
    variances = UnbiasedEstimate(named.geometric(n, alpha=alpha)).variances
    assert variances == least_unbiased_variances(n, alpha=alpha)


def chains(n):
    """Rows that a private mechanism can have: neighbouring entries within a factor alpha."""
    return st.lists(st.fractions(0, 1, max_denominator=20), min_size=n + 1, max_size=n + 1)


def row(alpha, shares):
    """A row whose ratios lie between alpha and 1/alpha, by the shares."""
    found = [Fraction(1)]
    for share in shares[1:]:
        found.append(found[-1] * (alpha + share * (1 / alpha - alpha)))
    return [entry * (shares[0] + Fraction(1, 20)) for entry in found]


def coordinates(alpha, values):
    """A row as a combination of those of GM, by the inverse of alpha^|i - k|, which has three
    diagonals.
    """
    size = len(values)
    kernel = fmpq_mat(
        [
            [fmpq(alpha.numerator, alpha.denominator) ** abs(i - k) for i in range(size)]
            for k in range(size)
        ]
    )
    solved = kernel.solve(fmpq_mat([[fmpq(v.numerator, v.denominator)] for v in values]))
    return [Fraction(int(v.p), int(v.q)) for v in solved.entries()]


@given(st.integers(1, 5), st.sampled_from(ALPHAS), st.data())
def test_every_step_of_the_proof(n, alpha, data):
    alpha = Fraction(alpha)
    j = data.draw(st.integers(0, n))
    likelihood = row(alpha, data.draw(chains(n)))
    x = [
        y * alpha ** abs(i - j) for i, y in enumerate(coordinates(alpha, likelihood))
    ]  # times the row of GM with a peak at i, scaled to 1 at j
    assert sum(x) == likelihood[j]
    # 1. Sums of x from either end are at least 0
    for s in range(n + 2):
        assert sum(x[:s]) >= 0
        assert sum(x[s:]) >= 0
    # 2. Hence so is this form, since t does not decrease
    t = UnbiasedEstimate(named.geometric(n, alpha=alpha)).values
    assert list(t) == sorted(t)
    form = sum(
        (x[i] * x[k] * (t[i] - t[k]) ** 2 for i in range(n + 1) for k in range(i)), Fraction(0)
    )
    assert form >= 0
    # 3. which is the slack in the bound on the square of lambda L
    mean = sum(xi * (ti - j) for xi, ti in zip(x, t, strict=True))
    square = sum(xi * (ti - j) ** 2 for xi, ti in zip(x, t, strict=True))
    assert likelihood[j] * square - mean**2 == form


def test_a_row_that_is_not_private_breaks_the_first_step():
    x = coordinates(Fraction(1, 2), [Fraction(1), Fraction(3), Fraction(1)])
    assert min(sum(x[:s]) for s in range(4)) < 0


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(0, 3), st.sampled_from(ALPHAS[1:]), st.data())
def test_no_mechanism_has_less(n, more, alpha, data):
    alpha = Fraction(alpha)
    rows = [row(alpha, data.draw(chains(n))) for _ in range(n + 1 + more)]
    # Mixed with one more row so that columns sum to one: constant minus the rest is private too,
    # if the rest is small
    most = max(sum(column) for column in zip(*rows, strict=True))
    scale = (1 - alpha) / most
    small = [[entry * scale for entry in each] for each in rows]
    small.append([1 - sum(column) for column in zip(*small, strict=True)])
    mechanism = Mechanism(small, Privacy(alpha=alpha))
    if not mechanism.audit().holds:
        return
    try:
        estimate = UnbiasedEstimate(mechanism)
    except NoUnbiasedEstimate:
        return
    least = least_unbiased_variances(n, alpha=alpha)
    assert all(v >= bound for v, bound in zip(estimate.variances, least, strict=True))


@pytest.mark.parametrize(("n", "alpha"), [(2, 0.9), (4, 0.6), (6, 0.5)])
def test_all_mechanisms_at_once(n, alpha):
    # Any mechanism splits into rows at the corners of the cone of private rows; the information
    # about the count is linear in their weights
    corners = np.array(
        [np.cumprod([1, *signs]) for signs in itertools.product((alpha, 1 / alpha), repeat=n)]
    )
    rng = np.random.default_rng(n)
    prior = rng.dirichlet(np.ones(n + 1))
    corners /= (corners @ prior)[:, None]
    weights = cvxpy.Variable(len(corners), nonneg=True)
    information = corners.T @ cvxpy.diag(weights) @ corners
    counts = np.arange(n + 1.0)
    program = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.matrix_frac(counts, information)), [corners.T @ weights == 1]
    )
    program.solve(solver="CLARABEL")
    least = least_unbiased_variances(n, alpha=str(alpha))
    bound = sum(float(v) * p for v, p in zip(least, prior, strict=True))
    assert program.value - counts**2 @ prior == pytest.approx(bound, rel=1e-4)


def test_gm_where_it_has_the_properties():
    for names in ([], ["S", "RM"], ["RH"]):
        found = least_variance(8, NINE, names)
        assert (
            found.variance
            == found.bound
            == UnbiasedEstimate(named.geometric(8, alpha="9/10")).variance()
        )
        assert "least possible" in str(found)
    assert least_variance(8, Privacy(alpha="1/2"), ["CM", "WH"]).mechanism == named.geometric(
        8, alpha="1/2"
    )
    assert least_variance(0, NINE).variance == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("| WH | 159 | 10.78 | 10.75 |", ["WH"]),
        ("| WH + CM | 19.45 (WM) | 10.90 | 10.75 |", ["WH", "CM"]),
        ("| F | 20.76 (EM: 35.5) | 10.83 | 10.75 |", ["F"]),
        ("| all seven | 42.5 (EM: 35.5) | 19.69 | 10.75 |", [item.short for item in SEVEN]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_the_table_of_the_notation_page(row, names):
    page = Path(__file__).parents[2] / "docs" / "notation" / "counts.md"
    assert row in page.read_text(encoding="utf-8")
    _, _, plain, found, bound, _ = row.split("|")
    least = least_variance(8, NINE, names)
    of_l0 = UnbiasedEstimate(design(8, NINE, L0(), names).mechanism).variance()
    assert float(of_l0) ** 0.5 == pytest.approx(float(plain.split()[0]), rel=5e-3)
    assert float(least.variance) ** 0.5 == pytest.approx(float(found), abs=6e-3)
    assert float(least.bound) ** 0.5 == pytest.approx(float(bound), abs=6e-3)
    if "EM" in row:
        em = UnbiasedEstimate(named.explicit_fair(8, alpha="9/10")).variance()
        assert float(em) ** 0.5 == pytest.approx(35.5, abs=0.06)


@pytest.mark.parametrize(
    ("n", "names", "error"),
    [
        (4, ["WH"], 10.6),
        pytest.param(8, ["WH", "CM"], 10.95, marks=pytest.mark.slow),
        (5, ["F"], 10.9),
        (4, [item.short for item in SEVEN], 17.6),
    ],
    ids=str,
)
def test_mechanisms_with_properties_come_near(n, names, error):
    found = least_variance(n, NINE, names)
    mechanism = found.mechanism
    assert all(resolve(name).holds(mechanism) for name in names)
    assert mechanism.audit().holds
    assert mechanism.certificate is not None
    assert mechanism.certificate.verify(mechanism)
    assert mechanism.certificate.gap == 0
    estimate = found.estimate
    for j in range(n + 1):
        pairs = zip(estimate.values, mechanism.table, strict=True)
        assert sum(value * line[j] for value, line in pairs) == j
    assert found.bound <= found.variance <= mechanism.certificate.objective
    assert float(found.variance) ** 0.5 < error
    single = UnbiasedEstimate(design(n, NINE, L0(), names).mechanism).variance()
    assert found.variance < single
    assert "no mechanism of this privacy" in str(found)


@pytest.mark.slow
def test_a_prior_weighs_the_counts():
    prior = ["7/8", "1/16", "1/16"]
    found = least_variance(2, NINE, ["F"], prior=prior)
    assert found.variance == found.estimate.variance([Fraction(p) for p in prior])
    assert found.variance >= found.bound
    assert found.variance <= least_variance(2, NINE, ["F"]).estimate.variance(
        [Fraction(p) for p in prior]
    ) * Fraction(1001, 1000)


def test_other_neighbours():
    local = least_variance(2, Privacy(alpha="1/2", neighbours="all"))
    assert local.mechanism.audit().holds
    assert local.variance > local.bound
    with pytest.raises(ValueError, match="adjacent"):
        least_variance(2, Privacy(alpha="1/2", neighbours=[(0, 2)]))
    with pytest.raises(ValueError, match="adjacent"):
        least_variance(1, Privacy(alpha="1/2", neighbours=Metric([[0, 1], [1, 0]])))


def test_what_cannot_be_is_refused():
    with pytest.raises(NoUnbiasedEstimate):
        least_variance(3, Privacy(alpha=1))
    with pytest.raises(ValueError, match="searched"):
        least_variance(33, NINE, ["F"])
    with pytest.raises(ValueError, match="whole number"):
        least_variance(-1, NINE)
    with pytest.raises(TypeError):
        least_variance(3, NINE, "WH")
