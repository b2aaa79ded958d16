"""Statements of the sources about frequency oracles: those that hold, and what is true where they
do not (docs/notation.md).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from frequency import GRR, HRR, OLH, OUE, SUE

EPSILONS = (0.1, 1.0, math.log(3), 2.0, 4.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_thesis_lemma_3_has_a_plus_that_must_be_a_minus(epsilon: float) -> None:
    half = math.exp(epsilon / 2)
    assert SUE(100, epsilon).variance(1) == pytest.approx(half / (half - 1) ** 2, rel=1e-6)
    assert SUE(100, epsilon).variance(1) > 1.2 * half / (half + 1) ** 2


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_thesis_equation_2_7_holds_for_oue(epsilon: float) -> None:
    assert OUE(100, epsilon).variance(1) == pytest.approx(
        4 * math.exp(epsilon) / math.expm1(epsilon) ** 2, rel=1e-6
    )


def test_thesis_grr_truth_probability_is_nearer_three_per_cent() -> None:
    assert float(GRR(100, 1.1).p) == pytest.approx(0.0295, abs=5e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [3, 20, 1000])
def test_thesis_lemma_4_takes_the_variance_of_a_lie_for_another(
    epsilon: float, domain: int
) -> None:
    e, oracle, f = math.exp(epsilon), GRR(domain, epsilon), np.array([0.0, 0.3, 1.0])
    true = (e + domain - 2 + f * (domain - 2) * (e - 1)) / (e - 1) ** 2
    assert oracle.variance(1, f) == pytest.approx(true, rel=1e-6)
    printed = e * (f * (domain - 2) + 1) / (e - 1) ** 2
    assert printed[0] == pytest.approx(true[0] * e / (e + domain - 2))
    # The final bound, attained
    assert oracle.variance(1, 1.0) == pytest.approx(e * (domain - 1) / (e - 1) ** 2, rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_hrr_has_the_variance_of_choosing_a_coefficient_on_top_of_oue_s(epsilon: float) -> None:
    e, size = math.exp(epsilon), 1 << 16
    printed = 4 * e / (e - 1) ** 2
    assert HRR(size, epsilon).variance(1) == pytest.approx(printed + 1, rel=1e-4)
    # Exactly: without the constant coefficient, and for an item that nobody holds.
    contrast = (e - 1) / (e + 1)
    small = 8
    exact = ((small - 1) / small) ** 2 * (1 / contrast**2) - 1 / small**2
    assert HRR(small, epsilon).variance(1) == pytest.approx(exact, rel=1e-6)


def test_more_coefficients_are_better_above_epsilon_1_342() -> None:
    size, border = 1 << 20, math.log(1 + 2 * math.sqrt(2))
    for t in (1, 2, 3):
        for epsilon in EPSILONS:
            e = math.exp(epsilon)
            expected = (e + 2**t - 1) ** 2 / (t * (e - 1) ** 2)
            assert HRR(size, epsilon, t).variance(1) == pytest.approx(expected, rel=1e-4)
    assert HRR(size, border - 0.01, 1).variance(1) < HRR(size, border - 0.01, 2).variance(1)
    assert HRR(size, border + 0.01, 1).variance(1) > HRR(size, border + 0.01, 2).variance(1)


def test_the_noise_of_one_coefficient_is_least_for_one_as_thesis_4_7_says() -> None:
    for epsilon in EPSILONS:
        e = math.exp(epsilon)
        kept = [float(HRR(1 << 10, epsilon, t)._contrast) for t in range(1, 6)]
        truth = [(e + 2 ** (t - 1) - 1) / (e + 2**t - 1) for t in range(1, 6)]
        assert [(1 + k) / 2 for k in kept] == pytest.approx(truth, rel=1e-6)
        noise = [p * (1 - p) / (2 * p - 1) ** 2 for p in truth]
        assert noise == sorted(noise)
        assert noise == pytest.approx(
            [2 ** (t - 1) * (e + 2 ** (t - 1) - 1) / (e - 1) ** 2 for t in range(1, 6)]
        )


def test_a_prime_power_costs_olh_little() -> None:
    def cost(epsilon: float) -> float:
        return OLH(1024, epsilon).variance(1) * math.expm1(epsilon) ** 2 / (4 * math.exp(epsilon))

    assert max(cost(float(epsilon)) for epsilon in np.arange(0.05, 5.5, 0.05)) < 1.03
    assert max(cost(float(epsilon)) for epsilon in np.arange(0.9, 5.5, 0.05)) < 1.01
