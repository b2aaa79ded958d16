"""The density of one attribute: kernels and modes against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from frequency import Between
from mechdesign.base.numbers import Floats
from rangeq.core import density
from rangeq.core.density import (
    KERNELS,
    WITH_HEAPS,
    WITH_STEPS,
    Density,
    Kernel,
    Told,
    _first_heap,
    _mode,
    _modes,
    _root,
    adapted,
    posterior_densities,
    tempered,
)
from rangeq.grids import WaveGrid


def posterior_density(scores: Floats, precision: Floats, widths: Floats) -> Density:
    (found,) = posterior_densities([Told(scores, precision, widths)])
    return found


def covariance(kernel: Kernel, cells: int, apart: int = 0, heap: int | None = None) -> Floats:
    """The definition, entry by entry, of the logarithm of the density less its mean."""
    near = cells - apart
    x = [2 * (k + 0.5) / near - 1 for k in range(near)]
    if kernel.logarithmic:
        # From the first value, or from the last, of which the domain is 64
        distances = [32 * (1 + kernel.logarithmic * s) for s in x]
        logarithms = [math.log(1 + distance) / math.log(65) for distance in distances]
        x = [kernel.logarithmic * (2 * one - 1) for one in logarithms]
    matrix = 4.0 * np.eye(cells)
    for i, s in enumerate(x):
        for j, t in enumerate(x):
            distance = abs(s - t) / kernel.length
            correlation = math.exp(-distance) if kernel.walk else math.exp(-(distance**2) / 2)
            matrix[i, j] = (
                kernel.height**2 * correlation
                + kernel.trend**2 * (s * t + s**2 * t**2)
                + kernel.points**2 * (i == j)
            )
    for end in {0, near - 1}:
        matrix[end, end] += kernel.ends**2
    heaps = [] if heap is None else range(heap, near, kernel.heaps)
    for i in heaps:
        matrix[i, i] += 0.49
        for j in heaps:
            matrix[i, j] += 4.0
    centre = np.eye(cells) - 1 / cells
    return centre @ matrix @ centre


@pytest.mark.parametrize("apart", [0, 1, 2, 8])
def test_kernels_are_those_of_the_definition(apart: int) -> None:
    for kernel in WITH_STEPS:
        heap = 2 if kernel.heaps else None
        root = _root(17, kernel, apart, heap)
        expected = covariance(kernel, 17, apart, heap)
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
    for root in [_root(cells, kernel) for kernel in KERNELS[1::5]]:
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


def test_without_data_values_apart_have_a_tenth_of_the_users_or_their_part() -> None:
    widths = np.array([30.0, 40, 40, 40, 1, 1])
    told = Told(np.zeros(6), np.zeros((6, 6)), widths, 2)
    expected = [0.18, 0.24, 0.24, 0.24, 0.05, 0.05]
    np.testing.assert_allclose(told.expected, expected)
    np.testing.assert_allclose(posterior_densities([told])[0].frequencies, expected, atol=1e-6)
    np.testing.assert_allclose(told._replace(apart=0).expected, widths / 152)
    np.testing.assert_allclose(told._replace(apart=5).expected, widths / 152)


def test_tempered_models_have_a_power_of_their_odds_and_as_much_together() -> None:
    rng = np.random.default_rng(6)
    evidence, prior = rng.normal(0, 20, (3, 5)), rng.dirichlet(np.ones(5))
    some = np.array([False, True, True, False, True])
    found = tempered(evidence, prior, some)
    assert found[:, ~some].tolist() == evidence[:, ~some].tolist()
    together = [(np.exp(each) * prior)[:, some].sum(axis=1) for each in (evidence, found)]
    np.testing.assert_allclose(together[0], together[1])
    odds = [np.diff(each[:, some], axis=1) for each in (evidence, found)]
    np.testing.assert_allclose(odds[1], density._TEMPER * odds[0])
    assert tempered(evidence, prior, np.zeros(5, dtype=bool)).tolist() == evidence.tolist()


@pytest.mark.slow
def test_a_tail_is_not_what_the_bulk_says_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ages from 18 on few are young, as fast as a gamma density rises: two kernels explain that.

    One has next to no young, the other twice as many as there are, and either explains all other
    ages better than the other by chance: a weight of nearly 1 was wrong most of the time.
    """
    rng, n = np.random.default_rng(8), 60_000
    age = rng.gamma(9, 5.2, 3 * n) + 3
    age = np.floor(age[(age >= 18) & (age < 98)][:n]).astype(int) - 18
    records = np.stack([age, rng.random(n) < 0.3], axis=1).astype(int)
    protocol = WaveGrid([80, 2], 1.0, n)
    aggregates = [
        protocol.aggregate(protocol.privatize(records, np.random.default_rng(seed)))
        for seed in range(30)
    ]
    lasts = np.array([4, 7, 11])
    truth = (age <= lasts[:, None]).mean(axis=1)

    def told() -> tuple[float, float]:
        """How far answers are from the truth, and how many intervals hold it."""
        answers = [protocol.estimate(one).answer({0: Between(0, lasts)}) for one in aggregates]
        held = [
            (low <= truth) & (truth <= high)
            for low, high in (a.interval(on_average=True) for a in answers)
        ]
        return np.mean([(one.value - truth) ** 2 for one in answers]) ** 0.5, float(np.mean(held))

    error, held = told()
    monkeypatch.setattr(density, "_TEMPER", 1.0)
    sure, rarely = told()
    assert error < 0.95 * sure
    assert held > rarely + 0.15


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_steep_densities_and_heavy_ends_are_not_smeared(reverse: bool) -> None:
    # Log-normal, with all that is above the domain in its last value
    below = stats.lognorm(0.5, scale=0.15).cdf(np.linspace(0, 1, 42)[1:-1]) * 0.95
    p = np.diff([0.0, *below, 1.0])[:: -1 if reverse else 1]
    without = tuple(kernel for kernel in KERNELS if not kernel.ends)
    strength, rng = 1e5, np.random.default_rng(5)
    inside, errors = [], []
    for _ in range(10):
        scores = strength * p + strength**0.5 * rng.normal(size=41)
        told = [Told(scores, strength * np.eye(41), np.ones(41))]
        (found,), (other,) = posterior_densities(told), posterior_densities(told, without)
        apart = np.abs(found.frequencies - p)
        inside.append(apart <= 2 * np.sqrt(np.diag(found.covariance)))
        errors.append([(apart**2).sum(), ((other.frequencies - p) ** 2).sum()])
    own, others = np.sqrt(np.mean(errors, axis=0))
    assert own < 0.8 * others, (own, others)
    assert np.mean(inside) > 0.9


@pytest.mark.parametrize(("period", "heap"), [(5, 0), (5, 3), (10, 9), (12, 4)])
def test_heaps_are_found_where_they_are_and_only_there(period: int, heap: int) -> None:
    cells, users = 80, 1e5
    x = (np.arange(cells) + 0.5) / cells
    smooth = np.exp(-(((x - 0.4) / 0.4) ** 2) / 2)
    heaped = smooth * np.where(np.arange(cells) % period == heap, 6.0, 1.0)
    precision, widths = 20 * users * np.eye(cells), np.ones(cells)
    errors: list[float] = []
    for shares in (heaped / heaped.sum(), smooth / smooth.sum()):
        noise = np.random.default_rng(period).normal(size=cells) / np.sqrt(20 * users)
        told = Told(precision @ (shares + noise), precision, widths)
        modes = _modes(told, WITH_HEAPS)
        best = WITH_HEAPS[int(np.argmax([mode.evidence for mode in modes]))]
        if not errors:
            assert period % best.heaps == 0  # those of fives may differ, too
            assert _first_heap(told, best, modes[:13])[0] == heap % best.heaps
        else:
            assert not best.heaps
        (with_heaps,), (without,) = (
            posterior_densities([told], some) for some in (WITH_HEAPS, KERNELS)
        )
        off = [np.square(found.frequencies - shares).sum() for found in (with_heaps, without)]
        errors.append(math.sqrt(off[0] / off[1]))
    assert errors[0] < 0.9
    assert errors[1] < 1.02


def test_few_cells_have_no_heaps() -> None:
    told = Told(np.zeros(29), np.eye(29), np.ones(29))
    heaped = [kernel for kernel in WITH_HEAPS if kernel.heaps]
    known = [_first_heap(told, kernel, _modes(told, KERNELS[:1]))[0] for kernel in heaped]
    assert known[0] is not None
    assert known[1:] == [None, None]


@pytest.mark.of_rounding
def test_modes_do_not_depend_on_the_basis_of_eigenvectors() -> None:
    # Where eigenvalues are equal another processor may find any basis: here even roots times any
    # orthogonal matrix have the same mode.
    rng = np.random.default_rng(5)
    cells, even = 6, np.log(np.full(6, 1 / 6))
    counts = np.array([200.0, 0, 3, 90, 0, 1])
    scores, precision = 3 * counts, np.diag(np.full(cells, 3 * counts.sum()))
    for kernel in KERNELS[1:]:
        root = _root(cells, kernel)
        turned = root @ stats.ortho_group.rvs(root.shape[1], random_state=rng)
        one, other = (_mode(each, scores, precision, even) for each in (root, turned))
        np.testing.assert_allclose(other.frequencies, one.frequencies, rtol=1e-9, atol=1e-12)
        assert other.evidence == pytest.approx(one.evidence, rel=1e-9)
