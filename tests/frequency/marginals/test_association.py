"""Tests of independence, mutual information and correlation: against definitions, and the size and
power of the test.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, chi2, chi2_contingency

from frequency.exceptions import InvalidEstimates
from frequency.marginals import (
    Domain,
    InpHT,
    InpPS,
    InpRR,
    MarginalProtocol,
    MargPS,
    chi_square,
    most_likely,
    mutual_information,
    pearson,
)
from frequency.marginals.association import _covariance, _critical, _tail, statistic

SHAPE = {"a": 3, "b": 2, "c": 2}
MARGINS = ([0.5, 0.3, 0.2], [0.6, 0.4], [0.7, 0.3])
PROTOCOLS = [InpHT, MargPS, InpRR]


def independent() -> npt.NDArray[np.float64]:
    return np.einsum("a,b,c->abc", *map(np.asarray, MARGINS))


def coupled(strength: float) -> npt.NDArray[np.float64]:
    """b and c agree more often than by chance, with the same margins."""
    table = independent()
    table += strength * np.einsum(
        "a,b,c->abc", np.asarray(MARGINS[0]), np.array([1.0, -1.0]), np.array([1.0, -1.0])
    )
    return table


def simulated(
    protocol: MarginalProtocol, table: npt.NDArray[np.float64], n: int, rng: np.random.Generator
):
    return protocol.estimate(protocol.simulate(rng.multinomial(n, table.ravel()), rng))


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_the_statistic_is_the_textbook_s_where_the_margins_are_those_of_the_marginal(
    kind: type[MarginalProtocol],
) -> None:
    rng = np.random.default_rng(1)
    protocol = kind(Domain(SHAPE), 2, 3.0)
    estimate = simulated(protocol, independent(), 200_000, rng)
    found = chi_square(estimate, "a", "c")
    rows, columns = estimate.marginal(("a",)), estimate.marginal(("c",))
    rows, columns = rows / rows.sum(), columns / columns.sum()
    marginal = estimate.marginal(("a", "c"))
    residual = (
        (np.eye(3) - np.outer(rows, np.ones(3)))
        @ marginal
        @ (np.eye(2) - np.outer(np.ones(2), columns))
    )
    assert found.statistic == pytest.approx(
        200_000 * (residual**2 / np.outer(rows, columns)).sum(), rel=1e-9
    )
    if kind is InpHT:  # consistent: one attribute's marginal is the sum of two attributes'
        assert found.statistic == pytest.approx(
            200_000 * ((marginal - np.outer(rows, columns)) ** 2 / np.outer(rows, columns)).sum()
        )


def test_without_noise_it_is_the_test_of_the_textbooks() -> None:
    rng = np.random.default_rng(2)
    # At epsilon = 40 nobody lies, and of all records that are not there, none is seen.
    protocol = InpPS(Domain(SHAPE), 3, 40.0)
    counts = rng.multinomial(5_000, independent().ravel())
    found = chi_square(protocol.estimate(protocol.simulate(counts, rng)), "a", "b")
    expected = chi2_contingency(counts.reshape(3, 2, 2).sum(axis=2), correction=False)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6)
    assert found.p_value == pytest.approx(expected.pvalue, abs=5e-6)
    assert found.degrees == expected.dof
    assert found.critical == pytest.approx(found.critical_without_noise, rel=1e-5)
    assert found.critical_without_noise == pytest.approx(chi2.isf(0.05, expected.dof))
    exact = counts.reshape(3, 2, 2).sum(axis=2) / 5_000
    assert statistic(exact, 5_000) == pytest.approx(expected.statistic)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_the_covariance_is_that_of_repeated_estimates(kind: type[MarginalProtocol]) -> None:
    rng = np.random.default_rng(3)
    protocol = kind(Domain(SHAPE), 2, 1.0)
    counts = rng.multinomial(20_000, independent().ravel())
    weights = np.array([[1.0, -1, 0, 2, 0, 0], [0.0, 1, 1, 0, -2, 1]])
    estimates = [protocol.estimate(protocol.simulate(counts, rng)) for _ in range(1_500)]
    values = np.array([weights @ estimate.marginal(("a", "c")).ravel() for estimate in estimates])
    measured, predicted = np.cov(values.T), _covariance(estimates[0], ("a", "c"), weights)
    # A covariance of 1,500 normal pairs has a deviation of at most (2 / 1,500)^(1/2) deviations of
    # both: 5.5 of them, and 3 % for what the estimate does not know of the truth.
    scale = np.sqrt(np.outer(np.diag(measured), np.diag(measured)))
    assert (np.abs(measured - predicted) < (5.5 * math.sqrt(2 / 1_500) + 0.03) * scale).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_the_size_is_what_was_asked_for_and_that_of_the_textbook_s_value_is_not(
    kind: type[MarginalProtocol],
) -> None:
    rng = np.random.default_rng(4)
    protocol, repeats = kind(Domain(SHAPE), 2, 1.1), 150
    estimates = [simulated(protocol, independent(), 50_000, rng) for _ in range(repeats)]
    tests = [
        chi_square(estimate, *pair) for estimate in estimates for pair in (("b", "c"), ("a", "b"))
    ]
    rejected = sum(test.dependent for test in tests)
    # Sizes of 3.5 % to 7 % pass; 1e-6 a side.
    assert binom.isf(1e-6, 2 * repeats, 0.07) > rejected > binom.ppf(1e-6, 2 * repeats, 0.035) - 1
    assert np.mean([test.statistic > test.critical_without_noise for test in tests]) > 0.6
    with pytest.raises(ValueError, match="nobody reported"):
        chi_square(protocol.estimate(protocol.simulate(np.zeros(12, dtype=int), rng)), "a", "b")


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_the_power_is_that_of_a_shifted_normal(kind: type[MarginalProtocol]) -> None:
    """One degree of freedom: the root of the statistic over its scale is normal around the true
    root.
    """
    rng = np.random.default_rng(5)
    protocol, n, repeats, strength = kind(Domain(SHAPE), 2, 1.1), 50_000, 150, 0.05
    tests = [
        chi_square(simulated(protocol, coupled(strength), n, rng), "b", "c") for _ in range(repeats)
    ]
    scale = np.mean([test.critical / test.critical_without_noise for test in tests])
    shift = math.sqrt(statistic(coupled(strength).sum(axis=0), n) / scale)
    root = math.sqrt(chi2.isf(0.05, 1))
    power = 0.5 * math.erfc((root - shift) / math.sqrt(2)) + 0.5 * math.erfc(
        (root + shift) / math.sqrt(2)
    )
    rejected = sum(test.dependent for test in tests)
    assert (
        binom.ppf(1e-6, repeats, max(power - 0.05, 0.0))
        <= rejected
        <= binom.isf(1e-6, repeats, min(power + 0.05, 1.0))
    )


@pytest.mark.slow
def test_p_value_critical_value_and_verdict_agree() -> None:
    rng = np.random.default_rng(6)
    protocol = InpHT(Domain({"a": 4, "b": 3}), 2, 1.0)
    table = np.full((4, 3), 1 / 12)
    for _ in range(20):
        found = chi_square(simulated(protocol, table, 10_000, rng), "a", "b", confidence=0.7)
        assert found.dependent == (found.p_value < 0.3)
    flipped = chi_square(simulated(protocol, table, 10_000, np.random.default_rng(7)), "b", "a")
    again = chi_square(simulated(protocol, table, 10_000, np.random.default_rng(7)), "a", "b")
    assert flipped.statistic == pytest.approx(again.statistic)
    assert flipped.p_value == pytest.approx(again.p_value, abs=5e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scales", [[3.0], [1.0, 1.0], [5.0, 0.2], [4.0, 2.0, 1.0, 1.0], [100.0, 1.0, 1.0]]
)
def test_the_tail_of_a_weighted_sum_of_squares(scales: list[float]) -> None:
    weights = np.array(scales)
    if np.ptp(weights) == 0:
        for x in (0.25, 1.0, 7.0):
            assert _tail(weights, x * scales[0]) == pytest.approx(chi2.sf(x, len(scales)), abs=1e-5)
    draws = np.random.default_rng(8).normal(size=(400_000, len(scales))) ** 2 @ weights
    for size in (0.5, 0.1, 0.01):
        critical = _critical(weights, size)
        assert _tail(weights, critical) == pytest.approx(size, abs=1e-5)
        assert abs((draws > critical).mean() - size) < 5 * math.sqrt(size * (1 - size) / 400_000)
    assert _tail(weights, 0.0) == 1.0
    assert _tail(weights, 1e-6) == pytest.approx(1.0, abs=2e-3)
    assert 0 <= _tail(weights, 1e4 * max(scales)) < 1e-5
    # Two terms of different scales, by integrating over one of them.
    if len(scales) == 2:
        nodes, widths = np.polynomial.legendre.leggauss(2_000)
        z = 8 * nodes
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        whole = (
            8 * widths * density * chi2.sf(np.maximum(3 - weights[1] * z**2, 0) / weights[0], 1)
        ).sum()
        assert _tail(weights, 3.0) == pytest.approx(whole, abs=1e-4)


def test_mutual_information_by_its_definition() -> None:
    rng = np.random.default_rng(9)
    for shape in ((2, 2), (3, 5), (1, 4)):
        table = rng.dirichlet(np.ones(np.prod(shape))).reshape(shape)
        table[0, 0] = 0.0
        table /= table.sum()
        total = 0.0
        for i in range(shape[0]):
            for j in range(shape[1]):
                if table[i, j] > 0:
                    total += table[i, j] * math.log(
                        table[i, j] / (sum(table[i]) * sum(table[:, j]))
                    )
        assert mutual_information(table) == pytest.approx(total, abs=1e-12)
        assert mutual_information(table.T) == pytest.approx(total, abs=1e-12)
    assert mutual_information(np.outer([0.2, 0.8], [0.1, 0.9])) == pytest.approx(0, abs=1e-15)


def test_correlation_is_numpy_s() -> None:
    rng = np.random.default_rng(10)
    domain = Domain({"x": 4, "y": 2, "z": 3})
    records = np.stack(
        [rng.integers(0, 4, 5_000), rng.integers(0, 2, 5_000), rng.integers(0, 3, 5_000)], axis=1
    )
    records[:, 1] |= records[:, 0] > 2
    expected = np.asarray(np.corrcoef(records.T))
    assert pearson(domain.marginal(records, ("x", "y"))) == pytest.approx(expected[0, 1])
    protocol = InpPS(domain, 2, 40.0)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    assert np.allclose(pearson(estimate), expected, atol=1e-6)
    assert np.isnan(pearson([[0.3, 0.7]]))


@pytest.mark.parametrize(
    "function", [mutual_information, pearson, lambda table: statistic(table, 10)]
)
@pytest.mark.parametrize(
    "table", [[0.5, 0.5], [[0.5, -0.1], [0.3, 0.3]], [[0.5, 0.4]], [[math.nan, 1.0]], [[]]]
)
def test_what_is_no_distribution_is_refused(function, table) -> None:
    with pytest.raises(InvalidEstimates):
        function(table)


def test_what_cannot_be_tested_is_refused() -> None:
    rng = np.random.default_rng(11)
    protocol = InpHT(Domain({"a": 2, "b": 2, "one": 1}), 2, 1.0)
    estimate = protocol.estimate(protocol.simulate([5, 5, 5, 5], rng))
    for a, b, message in (
        ("a", "a", "distinct"),
        ("a", "x", "is none"),
        ("a", "one", "one has a single value"),
    ):
        with pytest.raises(ValueError, match=message):
            chi_square(estimate, a, b)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            chi_square(estimate, "a", "b", confidence)
    with pytest.raises(ValueError, match="maximum likelihood are not known"):
        chi_square(most_likely(estimate), "a", "b")
    single = InpHT(Domain.binary("a", "b"), 1, 1.0)
    with pytest.raises(ValueError, match="up to 1"):
        chi_square(single.estimate(single.simulate([5, 5, 5, 5], rng)), "a", "b")
