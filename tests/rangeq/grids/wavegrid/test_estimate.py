"""The estimate from square waves: each step against its definition, and answers against the truth.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

from itertools import combinations

import cvxpy
import numpy as np
import pytest
from scipy import optimize

from mechdesign._support.arrays import Floats
from rangeq.grids import HDG, WaveEstimate, WaveGrid, best
from rangeq.grids.cells import equal_cells
from rangeq.grids.fitting.maximum_entropy import weighted_update
from rangeq.grids.queries import grouped
from rangeq.grids.wavegrid import estimate as wave_estimate
from rangeq.grids.wavegrid.density import KERNELS, Kernel, _mode, _roots, posterior_density
from rangeq.grids.wavegrid.estimate import COARSE, Axis, balanced
from rangeq.grids.wavegrid.interactions import Interaction, Pair, Scales, fitted, scaled_to, terms
from tests.general_solver import solve
from tests.rangeq.grids.populations import collected, people, queries, truth

# ---------------------------------------------------------------------------------- one attribute


def covariance(kernel: Kernel, cells: int) -> Floats:
    """The definition, entry by entry, of the logarithm of the density less its mean."""
    x = [2 * (k + 0.5) / cells - 1 for k in range(cells)]
    matrix = np.empty((cells, cells))
    for i, s in enumerate(x):
        for j, t in enumerate(x):
            smooth = kernel.height**2 * np.exp(-((s - t) ** 2) / 2 / kernel.length**2)
            matrix[i, j] = (
                smooth + kernel.trend**2 * (s * t + s**2 * t**2) + kernel.points**2 * (i == j)
            )
    centre = np.eye(cells) - 1 / cells
    return centre @ matrix @ centre


def test_kernels_are_those_of_the_definition() -> None:
    for kernel, root in zip(KERNELS, _roots(9), strict=True):
        np.testing.assert_allclose(
            root @ root.T, covariance(kernel, 9), atol=1e-4 * np.abs(root @ root.T).max()
        )


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
    for root in _roots(cells)[::5]:
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


# ------------------------------------------------------------------------------------------ pairs


def margins(rng: np.random.Generator, cells: tuple[int, int]) -> tuple[Floats, Floats]:
    first, second = (rng.dirichlet(np.full(c, 2.0)) for c in cells)
    return first, second


def test_terms_are_orthonormal() -> None:
    rng = np.random.default_rng(2)
    for mass in (
        rng.dirichlet(np.ones(20)),
        np.full(3, 1 / 3),
        np.array([0.5, 0, 0.5, 0]),
        np.array([1.0, 0.0]),
        np.ones(1),
    ):
        found = terms(mass, 4)
        assert found.shape == (len(mass), min(4, (mass > 0).sum() - 1))
        np.testing.assert_allclose(
            found.T @ (found * mass[:, None]), np.eye(found.shape[1]), atol=1e-9
        )
        np.testing.assert_allclose(mass @ found, 0, atol=1e-9)
    assert (np.diff(terms(np.full(9, 1 / 9), 4)[:, 0]) > 0).all()  # the normal score


def pair_of(
    rng: np.random.Generator, theta: float, users: float, cells: tuple[int, int] = (7, 6)
) -> tuple[Pair, Floats]:
    rows, columns = margins(rng, cells)
    true, _ = scaled_to(
        theta * np.outer(terms(rows, 1).sum(axis=1), terms(columns, 1).sum(axis=1)), rows, columns
    )
    grams = [
        functions.T @ functions / 30
        for functions in (rng.choice([-1.0, 1.0], size=(30, c)) for c in cells)
    ]
    roots = [np.linalg.cholesky(gram + 1e-12 * np.eye(len(gram))) for gram in grams]
    noise = users**0.5 * roots[0] @ rng.normal(size=cells) @ roots[1].T
    return (
        Pair(
            users * grams[0] @ true @ grams[1] + noise, users, (grams[0], grams[1]), (rows, columns)
        ),
        true,
    )


def climbed(pair: Pair, degree: int, tau: float = 0.5) -> tuple[Interaction, Floats, Floats]:
    start = pair.extended(pair.independent(), degree)
    precision, mean = Scales.of(degree, tau, tau, 0.2).prior(start.theta.shape)
    return pair.climbed(start, precision, mean, 60), precision, mean


def test_fits_keep_margins_and_slopes_are_finite_differences() -> None:
    pair, _ = pair_of(np.random.default_rng(3), 0.8, 2000.0)
    fit, _, _ = climbed(pair, 3)
    np.testing.assert_allclose(fit.joint.sum(axis=1), pair.margins[0], atol=1e-7)
    np.testing.assert_allclose(fit.joint.sum(axis=0), pair.margins[1], atol=1e-7)
    psi, phi = fit.terms
    slopes = pair.slopes(psi, phi, fit.joint).reshape(*fit.theta.shape, *fit.joint.shape)
    for place in np.ndindex(*fit.theta.shape):
        step = np.zeros(fit.theta.shape)
        step[place] = 1e-4
        high, low = (
            scaled_to(psi @ (fit.theta + sign * step) @ phi.T, *pair.margins)[0] for sign in (1, -1)
        )
        np.testing.assert_allclose(slopes[place], (high - low) / 2e-4, atol=2e-4)


@pytest.mark.parametrize("users", [20.0, 2000.0, 10.0**6])
def test_the_mode_of_coefficients_is_that_of_a_general_optimiser(users: float) -> None:
    pair, _ = pair_of(np.random.default_rng(4), 0.8, users)
    fit, precision, mean = climbed(pair, 2)

    def loss(theta: Floats) -> float:
        table = theta.reshape(fit.theta.shape)
        joint, _ = scaled_to(fit.terms[0] @ table @ fit.terms[1].T, *pair.margins)
        return -pair.likelihood(joint) + 0.5 * float((precision * (table - mean) ** 2).sum())

    expected = optimize.minimize(
        loss, fit.theta.ravel(), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
    )
    assert loss(fit.theta.ravel()) < expected.fun + 2e-3
    np.testing.assert_allclose(fit.theta.ravel(), expected.x, atol=0.02)


def test_fits_with_many_users_are_the_truth_and_with_none_independence() -> None:
    rng = np.random.default_rng(5)
    many = {k: pair_of(rng, theta, 1e8) for k, theta in enumerate((0.7, -0.4, 0.0))}
    fits = fitted({k: pair for k, (pair, _) in many.items()})
    for k, (_, true) in many.items():
        np.testing.assert_allclose(fits[k].joint, true, atol=2e-3)
    none, _ = pair_of(rng, 0.5, 1e-6)
    np.testing.assert_allclose(fitted({0: none})[0].joint, np.outer(*none.margins), atol=1e-6)
    constant, _ = pair_of(rng, 0.0, 100.0, (1, 6))
    np.testing.assert_allclose(
        fitted({0: constant})[0].joint, constant.margins[1][None], atol=1e-12
    )


def test_scales_maximise_their_evidence() -> None:
    rng = np.random.default_rng(6)
    fits = [climbed(pair_of(rng, 0.5, 3e4)[0], 2)[0] for _ in range(6)]
    found = Scales.of(2, 0.5, 0.5).improved(fits, 2000)
    most = found.evidence(fits)
    for place, factor in ((p, f) for p in ((0, 0), (0, 1), (1, 1)) for f in (0.8, 1.25)):
        tau = found.tau.copy()
        tau[place] *= factor
        tau[place[::-1]] = tau[place]
        assert Scales(tau, found.mu).evidence(fits) < most + 1e-6
    assert max(Scales(found.tau, found.mu + by).evidence(fits) for by in (-0.05, 0.05)) < most


# -------------------------------------------------------------------------------- many attributes


def pairs_of(joint: Floats) -> Floats:
    d = joint.ndim
    return np.array(
        [
            [
                joint.sum(axis=tuple(k for k in range(d) if k not in pair))
                for pair in combinations(range(d), 2)
            ]
        ]
    )


@pytest.mark.parametrize(("sets", "several"), [(3, 3), (2, 3)])
def test_weighted_update_of_below_in_and_above_has_the_most_entropy(
    sets: int, several: int
) -> None:
    rng = np.random.default_rng(several)
    joint = rng.dirichlet(np.full(sets**several, 2.0)).reshape((sets,) * several)
    tables = pairs_of(joint)
    found, _ = weighted_update(tables, several, 1e-10)
    x = cvxpy.Variable(sets**several)
    indices = np.array(list(np.ndindex(*joint.shape)))
    constraints = [
        cvxpy.sum(x[np.flatnonzero((indices[:, j] == a) & (indices[:, k] == b))])
        == tables[0, number, a, b]
        for number, (j, k) in enumerate(combinations(range(several), 2))
        for a, b in np.ndindex(sets, sets)
    ]
    solve(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(x))), constraints))
    np.testing.assert_allclose(found[0].ravel(), x.value, atol=1e-4)


def test_coarse_cells_are_balanced() -> None:
    rng = np.random.default_rng(7)
    for frequencies in (np.full(256, 1 / 256), rng.dirichlet(np.full(256, 0.05)), np.eye(256)[3]):
        groups = balanced(frequencies, COARSE)
        assert (np.diff(groups) >= 0).all()
        assert set(np.diff(groups)) <= {0, 1}
        assert groups[-1] < COARSE
        assert np.bincount(groups).max() <= 256 / 19 + 1
    assert balanced(np.full(50, 0.02), COARSE).tolist() == list(range(50))


def test_places_of_ends_hold_what_lies_before_them() -> None:
    rng = np.random.default_rng(8)
    for size in (5, 64, 200, 1000):
        edges = equal_cells(size, 256)
        found = rng.dirichlet(np.full(len(edges) - 1, 0.3))
        axis = Axis.of(
            edges,
            posterior_density(1e5 * found, 1e5 * np.eye(len(found)), np.diff(edges).astype(float)),
        )
        ends = np.arange(size + 1)
        place = axis.place(ends)
        assert place[0] == 0
        assert place[-1] == len(axis.mass)
        assert (np.diff(place) >= 0).all()
        below = np.concatenate([[0.0], np.cumsum(axis.mass)])
        held = np.interp(place, np.arange(len(below)), below)
        np.testing.assert_allclose(
            held, axis.line.answers(np.zeros_like(ends), ends - 1), atol=1e-9
        )
        assert (np.array(edges)[axis.nearest(np.array(edges))] == edges).all()


# ----------------------------------------------------------------------------------- from reports


@pytest.mark.parametrize("seed", [9, 10, 11, 12])
def test_a_planted_correlation_is_recovered_and_independence_is_a_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 32, 200_000)
    # The third is the first reversed
    records = np.stack([first, rng.integers(0, 32, 200_000), 31 - first], axis=1)
    estimate = collected(best({"a": 32, "b": 32, "c": 32}, 3.0, 200_000), records)
    # Deviations are below 0.01; a table that is nearly a line must not lose its margins on the way.
    assert estimate.answer({"a": (0, 15), "c": (16, 31)}).value == pytest.approx(0.5, abs=0.05)
    assert estimate.answer({"a": (0, 15), "c": (0, 15)}).value == pytest.approx(0, abs=0.05)
    assert estimate.answer({"a": (0, 15), "b": (0, 15)}).value == pytest.approx(0.25, abs=0.05)
    assert estimate.answer({"a": (0, 15), "b": (0, 15), "c": (16, 31)}).value == pytest.approx(
        0.25, abs=0.05
    )
    for pair in estimate.joints.values():
        np.testing.assert_allclose(pair.fit.joint.sum(axis=1), pair.pair.margins[0], atol=1e-3)
        np.testing.assert_allclose(pair.fit.joint.sum(axis=0), pair.pair.margins[1], atol=1e-3)
    matrix = estimate.response_matrix("a", "b")
    product = estimate.answer({"a": (0, 9)}).value * estimate.answer({"b": (5, 20)}).value
    assert matrix[:10, 5:21].sum() == pytest.approx(product, abs=0.01)
    assert matrix.sum() == pytest.approx(1)
    assert matrix[:10, 5:21].sum() == pytest.approx(
        estimate.answer({"a": (0, 9), "b": (5, 20)}).value
    )


def test_answers_of_several_attributes_agree_with_fewer() -> None:
    records = people("normal", 50_000, 7, 16, np.random.default_rng(10))
    estimate = collected(best([16] * 7, 2.0, 50_000), records)
    for several in range(2, 8):
        left, right = np.zeros((1, several), dtype=int), np.full((1, several), 15)
        assert estimate.answers(np.arange(several), left, right)[0] == pytest.approx(1, abs=1e-4)
        left[0, :2], right[0, :2] = (3, 6), (7, 9)
        two = estimate.answer({0: (3, 7), 1: (6, 9)}).value
        assert estimate.answers(np.arange(several), left, right)[0] == pytest.approx(two, abs=1e-4)
        assert estimate.standard_errors(np.arange(several), left, right)[0] < 0.1
    one = estimate.answer({0: (3, 7)}).value
    assert one == pytest.approx(estimate.answer({0: (3, 7), 1: (0, 15)}).value, abs=1e-5)


@pytest.mark.parametrize(("kind", "epsilon"), [("normal", 1.0), ("laplace", 0.5)])
def test_answers_err_less_than_those_of_grids(kind: str, epsilon: float) -> None:
    rng = np.random.default_rng(11)
    records = people(kind, 200_000, 3, 32, rng)
    waves, grids = (
        collected(system([32] * 3, epsilon, 200_000), records) for system in (WaveGrid, HDG)
    )
    for several, bound in ((1, 0.03), (2, 0.03), (3, 0.03)):
        asked = queries(100, several, 3, 32, rng)
        expected = truth(records, *asked)
        error, other = (
            np.abs(estimate.answers(*asked) - expected).mean() for estimate in (waves, grids)
        )
        assert error < bound  # three times what is measured
        assert error < other
        within = np.abs(waves.answers(*asked) - expected) <= 2 * waves.standard_errors(*asked)
        assert within.mean() > 0.6  # errors of one data set go together: 0.95 on average


def test_errors_fall_with_reports_and_intervals_lie_within_0_and_1() -> None:
    rng = np.random.default_rng(12)
    asked = queries(50, 2, 3, 20, rng)
    means = []
    for n in (2_000, 200_000):
        estimate = collected(best([20] * 3, 1.0, n), people("normal", n, 3, 20, rng))
        assert isinstance(estimate, WaveEstimate)
        error = estimate.predicted_error(*asked)
        np.testing.assert_allclose(estimate.standard_errors(*asked) ** 2, error.total)
        low, high = estimate.interval(*asked)
        middle = estimate.answers(*asked)
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert ((low <= middle) & (middle <= high)).all()
        narrow = estimate.interval(*asked, confidence=0.5)
        assert (narrow.high - narrow.low <= high - low).all()
        means.append(float(estimate.standard_errors(*asked).mean()))
    assert means[1] < means[0] / 3


def test_sensitivities_are_those_of_the_weighted_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wave_estimate, "_BOTH_SIDES", 2)
    records = people("normal", 20_000, 3, 16, np.random.default_rng(13), covariance=0.4)
    estimate = collected(best([16] * 3, 3.0, 20_000), records)
    _, (asked,) = grouped(estimate.attributes, [0, 1, 2], [[7, 5, 0]], [[10, 9, 7]])
    single, paired = estimate._sensitivities(asked)
    table = estimate._tables(asked)
    inside = np.stack(
        [table[:, :, 0, 0], table[:, :, 0, 1:].sum(axis=-1), table[:, :, 1:, 0].sum(axis=-1)],
        axis=-1,
    )
    quadrants = np.concatenate([inside, 1 - inside.sum(axis=-1, keepdims=True)], axis=-1).reshape(
        1, 3, 2, 2
    )

    def answer(change: Floats) -> float:
        return float(weighted_update(quadrants + change, 3, 1e-12)[0][0, 0, 0, 0])

    # As many more inside of both ranges, and as many fewer inside of one: attributes stay as they
    # are
    for number in range(3):
        change = np.zeros((1, 3, 2, 2))
        change[0, number] = 1e-4 * np.array([[1, -1], [-1, 1]])
        slope = (answer(change) - answer(-change)) / 2e-4
        assert paired[0, number] == pytest.approx(slope, abs=0.01)
    assert (np.abs(single) < 1).all()


def test_no_reports_say_nothing() -> None:
    estimate = collected(best([8, 5, 3], 1.0, 100), np.zeros((0, 3), dtype=int))
    assert estimate.n == 0
    assert np.isnan(estimate.answers([0, 1, 2], [[0, 0, 0]], [[7, 4, 2]])).all()
    assert np.isnan(estimate.answer({0: (0, 3)}).value)
    assert np.isnan(estimate.response_matrix(1, 0)).all()
    assert np.isinf(estimate.standard_errors([0, 1], [[0, 0]], [[7, 4]])).all()
    low, high = estimate.interval([0, 1], [[0, 0]], [[7, 4]])
    assert low.tolist() == [0]
    assert high.tolist() == [1]


@pytest.mark.parametrize("n", [1, 2, 40])
@pytest.mark.parametrize("sizes", [[8, 5, 3], [1, 6, 2], [1, 1], [1], [2, 2], [2], [70]])
def test_few_reports_and_small_domains(n: int, sizes: list[int]) -> None:
    estimate = collected(best(sizes, 1.0, 1000), [[size - 1 for size in sizes]] * n)
    for several in range(1, len(sizes) + 1):
        left = np.zeros((20, several), dtype=int)
        right = np.random.default_rng(1).integers(0, sizes[:several], size=(20, several))
        found = estimate.answers(np.arange(several), left, right)
        assert ((found > -1e-9) & (found < 1 + 1e-9)).all()
        assert np.isfinite(estimate.standard_errors(np.arange(several), left, right)).all()
        full = np.array(sizes)[:several] - 1
        assert estimate.answers(np.arange(several), [[0] * several], [full])[0] == pytest.approx(
            1, abs=1e-6
        )


def test_constant_attributes() -> None:
    estimate = collected(best([16, 16], 2.0, 50_000), [[3, 12]] * 50_000)
    assert estimate.answer({0: (3, 3), 1: (12, 12)}).value == pytest.approx(1, abs=0.05)
    assert estimate.answer({0: (8, 15), 1: (0, 7)}).value == pytest.approx(0, abs=0.01)


def test_one_attribute() -> None:
    records = np.clip(np.random.default_rng(14).normal(20, 4, size=(30_000, 1)), 0, 63).astype(int)
    estimate = collected(best([64], 2.0, 30_000), records)
    expected = np.mean((records >= 18) & (records <= 31))
    assert estimate.answer({0: (18, 31)}).value == pytest.approx(expected, abs=0.05)
    assert 0 < estimate.standard_errors([0], [[18]], [[31]])[0] < 0.02


def test_large_domains() -> None:
    rng = np.random.default_rng(15)
    for sizes in ([1 << 20, 1 << 31], [1000, 300, 2]):
        records = np.stack(
            [np.minimum(rng.beta(2, 3, 40_000) * size, size - 1) for size in sizes], axis=1
        ).astype(np.int64)
        estimate = collected(best(sizes, 3.0, 40_000), records)
        ask = {0: (sizes[0] // 5, sizes[0] // 2), 1: (0, sizes[1] // 3)}
        expected = np.mean(
            (records[:, 0] >= sizes[0] // 5)
            & (records[:, 0] <= sizes[0] // 2)
            & (records[:, 1] <= sizes[1] // 3)
        )
        assert estimate.answer(ask).value == pytest.approx(expected, abs=0.05)
        assert np.isfinite(estimate.standard_errors([0, 1], [[3, 4]], [[70, 7]])).all()


def test_estimates_are_determined_by_aggregates() -> None:
    protocol = best([40, 7, 300], 1.0, 20_000)
    records = np.random.default_rng(16).integers(0, [40, 7, 300], size=(20_000, 3))
    reports = protocol.privatize(records, np.random.default_rng(17))
    whole = protocol.aggregate(reports)
    parts = sum(protocol.aggregate(part) for part in np.array_split(reports, 3))
    asked = [0, 1, 2], [[3, 1, 20]], [[20, 4, 150]]
    answers = [
        protocol.estimate(aggregate).answers(*asked)[0] for aggregate in (whole, whole, parts)
    ]
    assert answers[0] == answers[1] == answers[2]
