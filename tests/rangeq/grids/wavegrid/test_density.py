"""The density of one attribute: kernels and modes against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from mechdesign._support.arrays import Floats
from rangeq.grids.wavegrid.density import (
    KERNELS,
    Density,
    Kernel,
    Told,
    _mode,
    _roots,
    adapted,
    posterior_densities,
)


def posterior_density(scores: Floats, precision: Floats, widths: Floats) -> Density:
    (found,) = posterior_densities([Told(scores, precision, widths)])
    return found


def covariance(kernel: Kernel, cells: int, apart: int = 0) -> Floats:
    """The definition, entry by entry, of the logarithm of the density less its mean."""
    near = cells - apart
    x = [2 * (k + 0.5) / near - 1 for k in range(near)]
    matrix = 9.0 * np.eye(cells)
    for i, s in enumerate(x):
        for j, t in enumerate(x):
            smooth = kernel.height**2 * np.exp(-((s - t) ** 2) / 2 / kernel.length**2)
            matrix[i, j] = (
                smooth + kernel.trend**2 * (s * t + s**2 * t**2) + kernel.points**2 * (i == j)
            )
    centre = np.eye(cells) - 1 / cells
    return centre @ matrix @ centre


@pytest.mark.parametrize("apart", [0, 1, 2, 8])
def test_kernels_are_those_of_the_definition(apart: int) -> None:
    for kernel, root in zip(KERNELS, _roots(9, KERNELS, apart), strict=True):
        expected = covariance(kernel, 9, apart)
        np.testing.assert_allclose(root @ root.T, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("strength", [1.0, 1e3, 1e6])
def test_the_posterior_mode_is_that_of_a_general_optimiser(strength: float) -> None:
    rng = np.random.default_rng(1)
    cells, even = 5, np.log(np.array([2.0, 1, 1, 1, 2]) / 7)
    functions = rng.choice([-1.0, 1.0], size=(12, cells))
    gram = functions.T @ functions / 12
    precision, scores = (
        strength * gram,
        strength * gram @ rng.dirichlet(np.ones(cells)) + strength**0.5 * rng.normal(size=cells),
    )
    # A sum of squares but for a constant: of these residuals and of w.
    factor = np.linalg.cholesky(precision)
    data = np.linalg.solve(factor, scores)
    for root in _roots(cells)[1::5]:
        mode = _mode(root, scores, precision, even)

        def residuals(w: Floats, root: Floats = root) -> Floats:
            return np.concatenate([factor.T @ _softmax(even + root @ w) - data, w])

        def slope(w: Floats, root: Floats = root) -> Floats:
            p = _softmax(even + root @ w)
            return np.vstack(
                [factor.T @ (np.diag(p) - np.outer(p, p)) @ root, np.eye(root.shape[1])]
            )

        # Trust regions bound the steps, and no exponential overflows, whatever path they take.
        tries = [
            optimize.least_squares(
                residuals, start * rng.normal(size=root.shape[1]), slope, xtol=1e-12, ftol=1e-12
            )
            for start in (0.0, 0.3)
        ]
        expected = min(tries, key=lambda result: result.cost)
        p = _softmax(even + root @ expected.x)
        deviations = np.sqrt(np.diag(mode.covariance()))
        assert (np.abs(mode.frequencies - p) < 0.1 * deviations + 1e-6).all()
        # The covariance is that of p = softmax(h) to first order, at the mode.
        slopes = np.array([slope_at(expected.x, even, root, k) for k in range(cells)])
        inner = np.linalg.inv(slopes.T @ precision @ slopes + np.eye(root.shape[1]))
        expected_covariance = slopes @ inner @ slopes.T
        np.testing.assert_allclose(
            mode.covariance(), expected_covariance, atol=0.1 * np.abs(expected_covariance).max()
        )


def slope_at(weights: Floats, even: Floats, root: Floats, cell: int) -> Floats:
    """The slope of a cell's probability in the weights of the root, by differences."""

    def probability(at: Floats) -> float:
        return float(_softmax(even + root @ at)[cell])

    return optimize.approx_fprime(weights, probability, 1e-7)


def _softmax(h: Floats) -> Floats:
    p: Floats = np.exp(h - h.max())
    return p / p.sum()


def test_densities_without_data_are_even_and_with_much_are_the_data() -> None:
    widths = np.array([3.0, 4, 4, 4, 4, 5])
    none = posterior_density(np.zeros(6), np.zeros((6, 6)), widths)
    np.testing.assert_allclose(none.frequencies, widths / 24, atol=1e-6)
    p = np.array([0.02, 0.3, 0.03, 0.15, 0.4, 0.1])
    much = posterior_density(1e7 * p, 1e7 * np.eye(6), widths)
    np.testing.assert_allclose(much.frequencies, p, atol=2e-3)
    np.testing.assert_allclose(much.covariance.sum(axis=0), 0, atol=1e-12)
    assert np.sqrt(np.diag(much.covariance)).max() < 4e-4
    assert posterior_density(np.zeros(1), np.zeros((1, 1)), np.ones(1)).frequencies.tolist() == [
        1.0
    ]


def test_attributes_with_nothing_to_tell_are_taken_for_even() -> None:
    rng = np.random.default_rng(3)
    widths = np.ones(16)
    strength = 2000.0  # counts of as many users
    counts = [rng.multinomial(2000, np.full(16, 1 / 16)) for _ in range(4)]
    shaped = rng.multinomial(2000, np.arange(1, 17) / 136)
    told = [Told(16 * each, 16 * strength * np.eye(16), widths) for each in (*counts, shaped)]
    found = posterior_densities(told)
    for each, one in zip(counts, found[:4], strict=True):
        apart = np.abs(one.frequencies - 1 / 16).max()
        assert apart < 0.2 * np.abs(each / 2000 - 1 / 16).max()
    assert np.abs(found[4].frequencies - np.arange(1, 17) / 136).max() < 0.02


def test_models_share_prior_probabilities() -> None:
    evidence = np.array([[0.0, 1.0, -3.0], [0.0, 0.5, -1.0], [2.0, 0.0, 0.0]])
    prior = np.array([0.5, 0.3, 0.2])
    found = adapted(evidence, prior)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    # The fixed point: probabilities by Bayes' rule, shares the mean of these and of the prior
    shares = (2 * prior + found.sum(axis=0)) / 5
    again = np.exp(evidence) * shares
    np.testing.assert_allclose(found, again / again.sum(axis=1, keepdims=True), atol=1e-3)
