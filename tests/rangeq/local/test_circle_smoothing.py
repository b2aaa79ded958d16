"""Smoothing against dense Gaussian algebra, a general solver, and the marginal likelihood written
out.

False alarms: at most 1e-6 for each statistical test, which are seeded and reject a planted error.
"""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from scipy import stats

from frequency.postprocess import norm_sub
from rangeq.local import circle_smoothing
from rangeq.local import circle_smoothing as smoothing
from rangeq.local.circle import items_of
from rangeq.local.circle_smoothing import Smoothing
from tests.general_solver import solve
from tests.goodness_of_fit import FALSE_ALARM

SHAPES = [(4, 4), (5, 5), (16, 16), (21, 21), (16, 13), (15, 9), (12, 5), (24, 23)]
shapes = pytest.mark.parametrize(
    ("size", "domain"), SHAPES, ids=[f"{domain}of{size}" for size, domain in SHAPES]
)


# ---------------------------------------------------------------------------------- the slow twin


def held(domain: int, kind: str = "bump") -> np.ndarray:
    x = (np.arange(domain) + 0.5) / domain
    values = {
        "bump": np.exp(-(((x - 0.3) / 0.15) ** 2)) + 0.02,
        "edge": np.arange(domain) == domain - 1,
        "ramp": x**2,
        "even": np.ones(domain),
        "comb": 1.0 + 9 * (np.arange(domain) % 4 == 0),
        "spikes": np.where(np.arange(domain) % 7 == 3, 1.0, 1e-3),
        "steps": np.where((x > 0.3) & (x < 0.7), 1.0, 0.1),
    }[kind].astype(float)
    return values / values.sum()


def precisions(size: int, n: float) -> np.ndarray:
    """Fine frequencies are told less about than coarse ones; of frequency 0 nothing is read."""
    return n * size / (1 + 0.2 * np.arange(size // 2 + 1))


def observed(
    size: int, domain: int, kind: str = "bump", n: float = 1000.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The transform of an estimate of such a distribution, with noise of these precisions; and the
    precisions.
    """
    information = precisions(size, n)
    white = np.fft.rfft(np.random.default_rng(seed).standard_normal(size))
    noise = white / np.sqrt(information)
    noise[0] = 0
    return np.fft.rfft(np.pad(held(domain, kind), (0, size - domain))) + noise, information


def model(
    size: int, domain: int, kind: str = "bump", n: float = 1000.0, seed: int = 0, apart: int = 0
) -> Smoothing:
    return Smoothing(*observed(size, domain, kind, n, seed), size, domain, apart=apart)


def circulant(variances: np.ndarray, size: int) -> np.ndarray:
    """The covariance of items whose coordinates of frequencies 1, 2, ... have these variances: as a
    sum of cosines.
    """
    result, apart = np.zeros((size, size)), np.arange(size)[:, None] - np.arange(size)
    for k, variance in enumerate(variances, start=1):
        result += (
            variance / size * np.cos(2 * np.pi * k * apart / size) * (1 if 2 * k == size else 2)
        )
    return result


def jumps(size: int, domain: int) -> np.ndarray:
    """Bernoulli's first two polynomials from each end of the domain, with sum 0: (size, 2 or 4)."""
    columns = []
    for end in (0,) if size == domain else (0, domain):
        t = ((np.arange(size) - end) % size + 0.5) / size
        columns += [t - 0.5, t**2 - t + 1 / 6]
    return np.array([column - column.mean() for column in columns]).T


class Dense:
    """All in matrices over the items, in coordinates of what sums to 0."""

    def __init__(self, of: Smoothing) -> None:
        size, domain = of._size, of._domain
        self.size, self.domain, self.of = size, domain, of
        self.parts = [circulant(part, size) for part in of._spectra]
        self.white = circulant(np.full(size // 2, of._white), size)
        self.noise = circulant(of._noise, size)
        self.jumps = items_of(of._shapes, 0.0, size).T
        ordered = domain - np.count_nonzero(of._least)
        self.even = np.where(np.arange(size) < ordered, 1 / ordered, 0.0)
        self.basis = np.linalg.svd(np.ones((1, size)))[2][1:].T  # orthonormal columns that sum to 0
        self.y = items_of(of._y, 0.0, size)

    def stationary(self, strengths: np.ndarray) -> np.ndarray:
        return self.white + sum(s * part for s, part in zip(strengths, self.parts, strict=True))

    def prior(self, strengths: np.ndarray, variances: np.ndarray) -> np.ndarray:
        return self.stationary(strengths) + self.jumps @ np.diag(variances) @ self.jumps.T

    def inverse(self, covariance: np.ndarray) -> np.ndarray:
        return self.basis @ np.linalg.inv(self.basis.T @ covariance @ self.basis) @ self.basis.T

    def likelihood(self, strengths: np.ndarray, heights: np.ndarray) -> float:
        prior = self.prior(strengths, self.of._least + self.of._ties @ heights)
        total = self.basis.T @ (prior + self.noise) @ self.basis
        y = self.basis.T @ self.y
        return float(-0.5 * np.linalg.slogdet(total)[1] - 0.5 * y @ np.linalg.solve(total, y))

    def posterior(
        self, strengths: np.ndarray, variances: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        prior = self.prior(strengths, variances)
        gain = prior @ self.inverse(prior + self.noise)
        return self.even + gain @ self.y, prior - gain @ prior

    def cautious(self) -> tuple[np.ndarray, np.ndarray]:
        """Strengths and heights' variances with the allowance: deviations by Fisher's information
        about one part an octave at a time.
        """
        of, allowance = self.of, smoothing._ALLOWANCE
        seen = self.inverse(self.stationary(of._strengths) + self.noise)
        strengths = of._strengths.copy()
        white = len(smoothing._parts(self.size, self.domain)[0]) - 1
        periods = range(white + 1, len(strengths))
        for j in sorted({*range(1, white, 2), white, *periods}):
            product = seen @ self.parts[j]
            raised = smoothing._OF_WHITE if j == white else allowance
            strengths[j] += raised / np.sqrt(0.5 * np.trace(product @ product))
        seen = self.inverse(self.stationary(strengths) + self.noise)
        return strengths, of._variances + allowance * np.sqrt(2) / np.diag(
            self.jumps.T @ seen @ self.jumps
        )


def test_the_twin_has_the_models_parts() -> None:
    """Octaves of the fourth power and a white part, by their variances and by dense matrices."""
    for size, domain in SHAPES:
        of = model(size, domain)
        k = np.arange(1, size // 2 + 1)
        corners = [2 ** (j / 2 - 1) for j in range(len(of._spectra) - 1)]
        assert corners[-1] <= size / 2 * 1.01 < corners[-1] * 2**0.5
        expected = [1 / (1 + (k / corner) ** 4) for corner in corners] + [np.ones(len(k))]
        np.testing.assert_allclose(of._spectra, expected, rtol=1e-12)
        _, shapes, ties = smoothing._parts(size, domain)
        ends = jumps(size, domain)
        np.testing.assert_allclose(items_of(shapes[: ends.shape[1]], 0.0, size).T, ends, atol=1e-12)
        # What is in the item at an end, and the narrow density there of the same sum
        parts = items_of(shapes, 0.0, size)[ends.shape[1] :]
        inward = np.stack([np.arange(domain), np.arange(domain)[::-1]])
        wide = np.where(domain >= 16, np.exp(-inward / 2).sum(axis=1) ** 2, np.nan)
        tied = ties[ends.shape[1] :, ends.shape[1] :] - np.eye(len(parts))
        assert tied[tied > 0].tolist() == pytest.approx(wide[wide > 0].tolist())
        for item, narrow in np.argwhere(tied > 0).tolist():
            end = 0 if item == 0 else domain - 1
            np.testing.assert_allclose(parts[item], np.eye(size)[end] - 1 / size, atol=1e-12)
            density = np.pad(np.exp(-np.abs(np.arange(domain) - end) / 2), (0, size - domain))
            np.testing.assert_allclose(parts[narrow], density - density.mean(), atol=1e-12)
        np.testing.assert_allclose(of._noise, 1 / precisions(size, 1000.0)[1:])
        rng = np.random.default_rng(0)
        x = (
            rng.standard_normal((20_000, size))
            @ np.linalg.cholesky(circulant(of._noise, size) + 1e-12 * np.eye(size)).T
        )
        # The mean of 20,000 squares of relative deviation at most sqrt(2): 4 % is 4 deviations, and
        # the seed is fixed.
        np.testing.assert_allclose(
            (np.abs(np.fft.rfft(x, axis=1)[:, 1:]) ** 2).mean(axis=0) / size, of._noise, rtol=0.04
        )


# -------------------------------------------------------------------------------------- posterior


@shapes
@pytest.mark.parametrize("kind", ["bump", "edge", "ramp", "even", "comb"])
@pytest.mark.parametrize("apart", [0, 2])
def test_the_posterior_is_gaussian_algebra(size: int, domain: int, kind: str, apart: int) -> None:
    of = model(size, domain, kind, apart=apart)
    twin = Dense(of)
    mean, _ = twin.posterior(of._strengths, of._variances)
    np.testing.assert_allclose(items_of(of._mean, 1.0, size), mean, atol=1e-9)
    _, covariance = twin.posterior(*twin.cautious())
    first, last = np.triu_indices(domain)
    inside = (np.arange(size) >= first[:, None]) & (np.arange(size) <= last[:, None])
    variances = np.einsum("ri,ij,rj->r", inside, covariance, inside)
    np.testing.assert_allclose(of.variance(first, last), variances, rtol=1e-6, atol=1e-13)
    assert of.variance(first.reshape(1, -1), last.reshape(1, -1)).shape == (1, len(first))
    assert of.variance(np.int64(0), np.int64(1)).shape == ()


def test_stated_variances_allow_for_the_errors_of_strengths() -> None:
    """They exceed those of strengths taken for true, and stay below those of the noise with no
    prior.
    """
    of = model(16, 16, "even")
    twin = Dense(of)
    _, taken = twin.posterior(of._strengths, of._variances)
    first, last = np.triu_indices(15)
    inside = ((np.arange(16) >= first[:, None]) & (np.arange(16) <= last[:, None])).astype(float)
    stated, unshaped = (
        of.variance(first, last),
        np.einsum("ri,ij,rj->r", inside, twin.noise, inside),
    )
    assert (stated > 1.05 * np.einsum("ri,ij,rj->r", inside, taken, inside)).all()
    assert (stated < unshaped).all()


# ----------------------------------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("size", "domain", "kind"),
    [(16, 16, "bump"), (15, 9, "edge"), (21, 21, "even"), (16, 13, "comb")],
)
@pytest.mark.parametrize("n", [50.0, 1e6])
def test_the_loss_is_minus_the_likelihood(size: int, domain: int, kind: str, n: float) -> None:
    """Up to a constant; and its slopes are those of differences."""
    of = model(size, domain, kind, n)
    twin = Dense(of)
    count, rng, values = len(of._strengths), np.random.default_rng(1), []
    at_end = np.log(np.maximum(np.concatenate([of._strengths, of._heights]), 1e-9))
    for _ in range(4):
        point = at_end + rng.normal(0, 2, len(at_end))
        value, slopes = of._loss(point)
        values.append(value + twin.likelihood(*np.split(np.exp(point), [count])))
        for k in range(len(point)):
            step = np.where(np.arange(len(point)) == k, 1e-4, 0.0)
            sides = [twin.likelihood(*np.split(np.exp(point + s), [count])) for s in (step, -step)]
            assert slopes[k] == pytest.approx(-(sides[0] - sides[1]) / 2e-4, rel=2e-3, abs=2e-3)
    np.testing.assert_allclose(values, values[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "domain", "kind"),
    [(16, 16, "bump"), (24, 20, "bump"), (21, 21, "spikes"), (16, 16, "even")],
)
def test_the_search_ends_near_the_maximum(size: int, domain: int, kind: str) -> None:
    """A tenth of a unit of log-likelihood is far less than data say about any strength; and no
    strength could still gain much.
    """
    of = model(size, domain, kind)
    twin = Dense(of)
    end = twin.likelihood(of._strengths, of._heights)
    heights, strengths = of._heights.copy(), of._strengths.copy()
    of._search(smoothing._STEPS)
    assert end <= twin.likelihood(of._strengths, of._heights) + 1e-9 < end + 0.1
    assert twin.likelihood(strengths * 1.5, heights) < end + 0.1
    assert twin.likelihood(strengths / 1.5, heights) < end + 0.1
    # Stationary, or at 0: the derivatives by strengths, in units of what the noise in y gives them.
    v = twin.inverse(twin.prior(of._strengths, of._variances) + twin.noise)
    shared = [(twin.jumps * tie) @ twin.jumps.T for tie in of._ties.T]
    for strength, part in [
        *zip(of._strengths, twin.parts, strict=True),
        *zip(of._heights, shared, strict=True),
    ]:
        slope = 0.5 * (twin.y @ v @ part @ v @ twin.y - np.trace(v @ part))
        unit = np.sqrt(0.5 * np.trace(v @ part @ v @ part))
        assert slope < 0.05 * unit
        assert abs(slope * strength) < 0.05


@pytest.mark.parametrize(("size", "period"), [(64, 4), (90, 10), (77, 7), (128, 2)])
def test_heaped_data_have_their_period(size: int, period: int) -> None:
    """Also where the circular domain is no multiple of it. The twin: a likelihood that rises."""
    x = np.arange(size)
    values = np.exp(-(((x / size - 0.4) / 0.3) ** 2)) * np.where(x % period == 0, 10.0, 1.0)
    even, information = observed(size, size, "even", 1e5, seed=1)
    y = even + np.fft.rfft(values / values.sum() - 1 / size)
    of = Smoothing(y, information, size, size)
    own = len(smoothing._parts(size, size)[0])
    assert len(of._spectra) > own
    spectra = smoothing._periodic(size, period)
    assert any(np.array_equal(of._spectra[own], spectrum) for spectrum in spectra)
    # By how much more than for one that is there by chance, in the likelihood written out
    twin, without = Dense(of), of._strengths.copy()
    without[own:] = 0
    found = twin.likelihood(of._strengths, of._heights)
    assert found > twin.likelihood(without, of._heights) + np.log(100)
    heaps = np.where((x % period == 0) & (values > values.max() / 10), values / values.sum(), 0)
    np.testing.assert_allclose(
        of.distribution().distribution[heaps > 0], heaps[heaps > 0], rtol=0.2
    )


@pytest.mark.parametrize(("size", "period"), [(24, 2), (24, 5), (31, 7), (64, 16)])
def test_the_spectra_of_a_period(size: int, period: int) -> None:
    """By the distance of each frequency to the nearest multiple of the period's, one by one."""
    spectra = smoothing._periodic(size, period)
    corners = [0.5 * 4**j for j in range(9) if j == 0 or 0.5 * 4**j <= size / period / 4]
    multiples = np.arange(1, period + 2) * size / period
    expected = [
        [1 / (1 + (min(abs(multiples - k)) / corner) ** 4) for k in range(1, size // 2 + 1)]
        for corner in corners
    ]
    np.testing.assert_allclose(spectra, expected, rtol=1e-12)


@pytest.mark.slow
def test_smooth_data_have_no_period() -> None:
    found = [
        len(model(64, 64, "even", 1000.0, seed)._spectra) - len(smoothing._parts(64, 64)[0])
        for seed in range(120)
    ]
    # At most 0.3 by chance: 120 models may have as many as a Poisson variable of mean 36 has once
    # in a million.
    most = stats.poisson.isf(FALSE_ALARM, smoothing._STRAY * len(found))
    assert sum(found) <= most
    # Planted: at the level of one frequency of three, many more would be found.
    bad = 0
    for seed in range(120):
        y, information = observed(64, 64, "even", 1000.0, seed)
        bad += int((np.abs(y[1:]) ** 2 > 64 / information[1:] * np.log(3)).sum())
    assert bad > most


def best_of_one_more(twin: Dense, shape: np.ndarray) -> float:
    """The log-likelihood with one more shape, of the best of many variances."""
    old = twin.prior(twin.of._strengths, twin.of._variances) + twin.noise
    y = twin.basis.T @ twin.y
    values = []
    for variance in np.append(0.0, np.geomspace(1e-9, 1e3, 600)):
        total = twin.basis.T @ (old + variance * np.outer(shape, shape)) @ twin.basis
        values.append(-0.5 * np.linalg.slogdet(total)[1] - 0.5 * y @ np.linalg.solve(total, y))
    return float(max(values))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "domain"), [(16, 13), (15, 12)])
@pytest.mark.parametrize("kind", ["spikes", "ramp", "steps"])
def test_the_shape_that_is_taken_in_raises_the_likelihood_most(
    size: int, domain: int, kind: str, monkeypatch
) -> None:
    """Of all spikes upwards and all steps; if any does, and by more than they are unlikely."""
    with monkeypatch.context() as patched:
        patched.setattr(Smoothing, "_new_shapes", lambda *_: False)
        of = model(size, domain, kind, 3e4, seed=1)
    twin = Dense(of)
    before, t = twin.likelihood(of._strengths, of._heights), (np.arange(size) + 0.5) / size - 0.5
    # Upwards: where it is drawn to a positive height
    inverse = twin.inverse(twin.prior(of._strengths, of._variances) + twin.noise)
    upwards = inverse @ twin.y > 0
    gains = [
        [best_of_one_more(twin, shape) - before for shape in shapes]
        for shapes in (
            [np.eye(size)[x] * upwards[x] for x in range(domain)],
            [np.roll(t, x) for x in range(domain)],
        )
    ]
    count, limit = len(of._shapes), np.log(2 * domain / smoothing._STRAY)
    assert of._new_shapes(1, 1 + count) is bool(np.max(gains) > limit)
    assert len(of._shapes) == len(of._least) == count + (np.max(gains) > limit)
    if np.max(gains) > limit:
        kind_taken, place = np.unravel_index(np.argmax(gains), (2, domain))
        shape = np.roll(t, place) if kind_taken else np.eye(size)[place] - 1 / size
        np.testing.assert_allclose(items_of(of._shapes[-1], 0.0, size), shape, atol=1e-12)
        with_it = Dense(of).likelihood(of._strengths, of._heights)
        assert with_it == pytest.approx(before + np.max(gains), abs=1e-3)
        assert not of._new_shapes(1, len(of._shapes))  # there is room for no more


@pytest.mark.slow
def test_spikes_have_heights_of_their_own_and_smooth_data_have_none() -> None:
    """0.3 were expected of even data; evidence must outweigh that, so fewer are found."""
    twin = np.zeros(64)
    twin[[9, 40]] = 0.3, 0.2
    y, information = observed(64, 64, "even", 1e5)
    of = Smoothing(0.5 * y + np.fft.rfft(twin), information, 64, 64)
    taken = items_of(of._shapes, 0.0, 64)
    for place in (9, 40):
        assert any(np.allclose(shape, np.eye(64)[place] - 1 / 64) for shape in taken)
    found = of.distribution().distribution
    np.testing.assert_allclose(found[[9, 40]], [0.3 + 0.5 / 64, 0.2 + 0.5 / 64], atol=0.01)
    ends = len(smoothing._parts(64, 64)[1])
    shapes = [model(64, 64, "even", 1000.0, seed)._shapes for seed in range(120)]
    most = stats.poisson.isf(FALSE_ALARM, 0.3 * 120)
    assert sum(max(0, len(each) - ends) for each in shapes) <= most


def test_the_prior_has_at_least_the_variance_of_drawing() -> None:
    y, information = observed(16, 16, "even", 1e9)
    assert Smoothing(y, information, 16, 16)._prior.min() < 1e-8
    drawn = Smoothing(y, information, 16, 16, white=1e-3)
    assert drawn._prior.min() >= 1e-3
    twin = Dense(drawn)  # whose white part has this variance
    mean, _ = twin.posterior(drawn._strengths, drawn._variances)
    np.testing.assert_allclose(items_of(drawn._mean, 1.0, 16), mean, atol=1e-9)


# ----------------------------------------------------------------------------------- distribution


def program(of: Smoothing) -> tuple[np.ndarray, np.ndarray]:
    """Mean and precision of the convex problem: those of the posterior, but no frequency is held
    more tightly than its noise says.

    The covariance is a circulant one, noise^-1 + 1 / max(prior, noise) where the posterior has
    noise^-1 + 1 / prior, and what the jumps leave unknown.
    """
    twin = Dense(of)
    mean, _ = twin.posterior(of._strengths, of._variances)
    prior = of._prior
    spread = np.maximum(prior, of._noise) * of._noise / (prior + of._noise)
    leaves = twin.noise @ twin.inverse(twin.stationary(of._strengths) + twin.noise) @ twin.jumps
    seen = twin.jumps.T @ twin.inverse(twin.stationary(of._strengths) + twin.noise) @ twin.jumps
    unknown = np.linalg.inv(np.diag(1 / np.maximum(of._variances, 1e-100)) + seen)
    return mean, twin.inverse(circulant(spread, of._size) + leaves @ unknown @ leaves.T)


def solved(of: Smoothing) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """The optimum by a general solver, its value, and the problem: scaled, as solvers like it."""
    mean, precision = program(of)
    unit = np.linalg.eigvalsh(precision)[-1]
    root = np.linalg.cholesky(precision / unit + np.eye(of._size) * 1e-13).T
    x = cvxpy.Variable(of._size)
    constraints = [
        x >= 0,
        cvxpy.sum(x) == 1,
        *([x[of._domain :] == 0] if of._domain < of._size else []),
    ]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(root @ (x - mean))), constraints)
    solve(problem, 1e-7, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    found = np.maximum(x.value[: of._domain], 0)
    return found / found.sum(), unit, mean, precision


@shapes
@pytest.mark.parametrize(("kind", "n"), [("bump", 30.0), ("edge", 300.0), ("spikes", 1e5)])
def test_the_distribution_is_that_of_a_general_solver(
    size: int, domain: int, kind: str, n: float, monkeypatch
) -> None:
    of = model(size, domain, kind, n, seed=size)
    expected, _, mean, precision = solved(of)
    quick = of.distribution().distribution
    deviation = np.sqrt(of._curve[0].mean())
    assert np.abs(np.cumsum(quick - expected)).max() < 0.1 * deviation  # 0.02 is wanted, in steps
    monkeypatch.setattr(circle_smoothing, "_TURNS", 200_000)
    monkeypatch.setattr(smoothing, "_PRECISION", 1e-9)
    found = of.distribution().distribution
    assert np.abs(np.cumsum(found - expected)).max() < 1e-5
    # The conditions of an optimum: the slope is the same wherever something is held, and nowhere
    # less.
    slope = precision[:domain] @ (np.pad(found, (0, size - domain)) - mean)
    unit = np.abs(precision).max() * 1e-6
    some = found > 1e-6
    assert np.ptp(slope[some]) < unit
    assert slope.min() > slope[some].mean() - unit
    for result in (quick, found):
        assert (result >= 0).all()
        assert result.sum() == pytest.approx(1, abs=1e-12)
    # Planted: norm_sub of the mean, the nearest distribution in another norm, is not the optimum.
    if kind == "edge" and domain > 8:
        other = norm_sub(mean[:domain])
        slope = precision[:domain] @ (np.pad(other, (0, size - domain)) - mean)
        assert (
            np.ptp(slope[other > 1e-6]) > 20 * unit
            or slope.min() < slope[other > 1e-6].mean() - 20 * unit
        )


def test_a_mean_that_is_a_distribution_is_the_answer() -> None:
    of = model(16, 16, "even", 1e5)
    assert items_of(of._mean, 1.0, 16).min() > 0
    np.testing.assert_allclose(
        of.distribution().distribution, items_of(of._mean, 1.0, 16), atol=1e-12
    )


@pytest.mark.parametrize("turns", [1, 20, 21])
def test_a_problem_that_is_not_solved_in_time_still_gives_a_distribution(
    turns: int, monkeypatch
) -> None:
    monkeypatch.setattr(circle_smoothing, "_TURNS", turns)
    for kind in ("edge", "spikes"):
        result, converged = model(24, 23, kind, 1e5).distribution()
        assert converged is (turns > 1)
        assert (result >= 0).all()
        assert result.sum() == pytest.approx(1, abs=1e-12)


# ------------------------------------------------------------------------------------- degenerate


@pytest.mark.parametrize(("size", "domain"), [(16, 16), (15, 9), (24, 23)])
def test_frequencies_that_nobody_tells_are_guessed_from_the_others(size: int, domain: int) -> None:
    """Without information about every third frequency, what y has there does not matter; nor does
    how little there is.
    """
    y, information = observed(size, domain, n=1e4)
    information[3::3] = 0.0
    results = []
    for shift in (0.0, 0.01):
        other = y.copy()
        other[3::3] = shift
        results.append(Smoothing(other, information, size, domain))
        assert np.isfinite(results[-1].variance(*np.triu_indices(domain))).all()
        assert np.isfinite(results[-1].distribution().distribution).all()
    assert results[0]._noise.max() == pytest.approx(1e9 * results[0]._noise.min())
    np.testing.assert_allclose(
        results[0].distribution().distribution, results[1].distribution().distribution, atol=2e-3
    )
    truth = np.cumsum(held(domain))
    assert np.abs(np.cumsum(results[0].distribution().distribution) - truth).max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 5, 16, 64])
def test_extreme_estimates(size: int) -> None:
    """No signal at all, far too much of it, and one frequency told."""
    information = precisions(size, 1000.0)
    flat = np.zeros(size // 2 + 1, dtype=complex)
    flat[0] = 1
    for y in (
        flat,
        np.where(np.arange(len(flat)) == 1, 1e6, flat),
        flat + 1e-300,
        np.full(len(flat), -1e9 + 0j),
    ):
        for told in (
            information,
            np.where(np.arange(len(flat)) == 1, information, 0.0),
            information * 1e-15,
            information * 1e15,
        ):
            of = Smoothing(y, told, size, size)
            result, variance = (
                of.distribution().distribution,
                of.variance(np.arange(size - 1), np.arange(1, size)),
            )
            assert (result >= 0).all()
            assert result.sum() == pytest.approx(1, abs=1e-12)
            assert np.isfinite(variance).all()
            assert (variance > -1e-12 * np.abs(variance).max()).all()
    np.testing.assert_allclose(
        Smoothing(flat, information, size, size).distribution().distribution, 1 / size, atol=1e-12
    )


@pytest.mark.parametrize("turn", [1, 7])
def test_mirrored_data_give_the_mirrored_estimate(turn: int, monkeypatch) -> None:
    """Mirrored data give the mirrored estimate: both ends are alike, with padding and without."""
    monkeypatch.setattr(smoothing, "_SLOPE", 1e-7)
    monkeypatch.setattr(smoothing, "_PRECISION", 1e-4)
    for size, domain in ((24, 24), (24, 19)):
        y, information = observed(size, domain, "ramp", seed=turn)
        items = np.fft.irfft(y, size)
        mirrored = np.roll(items[::-1], domain)  # item x is now domain - 1 - x, around the circle
        assert mirrored[0] == pytest.approx(items[domain - 1])
        there, back = (
            Smoothing(y, information, size, domain),
            Smoothing(np.fft.rfft(mirrored), information, size, domain),
        )
        np.testing.assert_allclose(
            there.distribution().distribution, back.distribution().distribution[::-1], atol=2e-5
        )
        first, last = np.triu_indices(domain)
        np.testing.assert_allclose(
            there.variance(first, last),
            back.variance(domain - 1 - last, domain - 1 - first),
            rtol=1e-4,
            atol=1e-15,
        )
