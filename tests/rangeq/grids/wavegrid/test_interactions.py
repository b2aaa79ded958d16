"""Interactions of pairs: fits, slopes and scales against general optimisers and the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from mechdesign.base.numbers import Floats
from rangeq.grids.wavegrid.interactions import (
    Interaction,
    Pair,
    Scales,
    fitted,
    refitted,
    scaled_to,
    terms,
)
from tests.rangeq.grids.populations import told_halves


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
        found = terms(mass, 4).functions
        assert found.shape == (len(mass), min(4, (mass > 0).sum() - 1))
        np.testing.assert_allclose(
            found.T @ (found * mass[:, None]), np.eye(len(found.T)), atol=1e-9
        )
        np.testing.assert_allclose(mass @ found, 0, atol=1e-9)
    assert (np.diff(terms(np.full(9, 1 / 9), 4).functions[:, 0]) > 0).all()  # the normal score


def test_what_is_apart_has_terms_of_its_own() -> None:
    mass = np.random.default_rng(12).dirichlet(np.ones(9))
    found = terms(mass, 4, 2)
    assert found.numbers == (0, 1, 2, 3, -1, -1)
    functions = found.functions
    np.testing.assert_allclose(functions.T @ (functions * mass[:, None]), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(mass @ functions, 0, atol=1e-9)
    # Smooth ones are those of the other cells, and all others are alike to what is apart
    near = terms(mass[:7] / mass[:7].sum(), 4).functions
    np.testing.assert_allclose(functions[:7, :4], near / mass[:7].sum() ** 0.5)
    np.testing.assert_allclose(functions[7:, :4], 0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(functions[:7, 4:], axis=0), 0, atol=1e-12)
    # Nobody, everybody, and one other value
    assert terms(np.array([0.4, 0.6, 0.0]), 4, 1).numbers == (0,)
    assert terms(np.array([0.0, 0.0, 1.0]), 4, 1).functions.shape == (3, 0)
    assert terms(np.array([0.7, 0.3]), 4, 1).numbers == (-1,)
    assert terms(np.array([0.0, 0.5, 0.5]), 4, 2).numbers == (-1,)


def pair_of(
    rng: np.random.Generator, theta: float, users: float, cells: tuple[int, int] = (7, 6)
) -> tuple[Pair, Floats]:
    rows, columns = margins(rng, cells)
    left, right = (terms(mass, 1).functions.sum(axis=1) for mass in (rows, columns))
    true, _ = scaled_to(theta * np.outer(left, right), rows, columns)
    grams = [
        functions.T @ functions / 30
        for functions in (rng.choice([-1.0, 1.0], size=(30, c)) for c in cells)
    ]
    roots = [np.linalg.cholesky(gram + 1e-12 * np.eye(len(gram))) for gram in grams]
    noise = users**0.5 * roots[0] @ rng.normal(size=cells) @ roots[1].T
    return (
        Pair(
            users * grams[0] @ true @ grams[1] + noise,
            users,
            (grams[0], grams[1]),
            (rows, columns),
            told_halves(true, users / 4),
        ),
        true,
    )


def climbed(pair: Pair, degree: int, tau: float = 0.5) -> tuple[Interaction, Floats, Floats]:
    start = pair.start(degree)
    precision, mean = Scales.of(degree, tau, tau, 0.2).prior(start.terms)
    return pair.climbed(start, precision, mean, 60), precision, mean


def test_fits_keep_margins_and_slopes_are_finite_differences() -> None:
    pair, _ = pair_of(np.random.default_rng(3), 0.8, 2000.0)
    fit, _, _ = climbed(pair, 3)
    np.testing.assert_allclose(fit.joint.sum(axis=1), pair.margins[0], atol=1e-7)
    np.testing.assert_allclose(fit.joint.sum(axis=0), pair.margins[1], atol=1e-7)
    psi, phi = (each.functions for each in fit.terms)
    slopes = pair.slopes(psi, phi, fit.joint).reshape(*fit.theta.shape, *fit.joint.shape)
    for place in np.ndindex(*fit.theta.shape):
        step = np.zeros(fit.theta.shape)
        step[place] = 1e-4
        high, low = (
            scaled_to(psi @ (fit.theta + sign * step) @ phi.T, *pair.margins)[0] for sign in (1, -1)
        )
        np.testing.assert_allclose(slopes[place], (high - low) / 2e-4, atol=2e-4)


@pytest.mark.parametrize("apart", [(0, 0), (1, 0)])
@pytest.mark.parametrize("users", [20.0, 2000.0, 10.0**6])
def test_the_mode_of_coefficients_is_that_of_a_general_optimiser(
    users: float, apart: tuple[int, int]
) -> None:
    pair = replace(pair_of(np.random.default_rng(4), 0.8, users)[0], apart=apart)
    fit, precision, mean = climbed(pair, 2)

    def loss(theta: Floats) -> float:
        table = theta.reshape(fit.theta.shape)
        joint, _ = scaled_to(
            fit.terms[0].functions @ table @ fit.terms[1].functions.T, *pair.margins
        )
        return -pair.likelihood(joint) + 0.5 * float((precision * (table - mean) ** 2).sum())

    expected = optimize.minimize(
        loss,
        fit.theta.ravel(),
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-9, "maxfev": 5000},
    )
    assert loss(fit.theta.ravel()) < expected.fun + 2e-3
    np.testing.assert_allclose(fit.theta.ravel(), expected.x, atol=0.02)


def test_fits_with_many_users_are_the_truth_and_with_none_independence() -> None:
    rng = np.random.default_rng(5)
    many = {k: pair_of(rng, theta, 1e8) for k, theta in enumerate((0.7, -0.4, 0.0))}
    fits, _ = fitted({k: pair for k, (pair, _) in many.items()})
    for k, (_, true) in many.items():
        np.testing.assert_allclose(fits[k].joint, true, atol=2e-3)
    none, _ = pair_of(rng, 0.5, 1e-6)
    np.testing.assert_allclose(fitted({0: none})[0][0].joint, np.outer(*none.margins), atol=1e-6)
    constant, _ = pair_of(rng, 0.0, 100.0, (1, 6))
    np.testing.assert_allclose(
        fitted({0: constant})[0][0].joint, constant.margins[1][None], atol=1e-12
    )


def test_fits_of_merged_cells_that_leave_no_distribution_are_left_out() -> None:
    """With coefficients so large most cells are empty in floating point, and margins are missed."""
    pair, _ = pair_of(np.random.default_rng(15), 0.5, 1e4, (40, 40))
    fit = pair.start(4)
    for size in (1.0, 400.0):
        theta = np.zeros(fit.theta.shape)
        theta[0, 0], theta[1, 1] = size, -size
        (fine,) = pair.refined([replace(fit, theta=theta)])
        assert bool(fine.theta.size) == (size == 1.0)
        np.testing.assert_allclose(fine.joint.sum(axis=1), pair.margins[0], atol=1e-3)
        np.testing.assert_allclose(fine.joint.sum(axis=0), pair.margins[1], atol=1e-3)


def test_scales_along_an_attribute_are_those_of_its_first_term() -> None:
    scales = Scales.of(2, 0.5, 0.1)
    for axis in (0, 1):
        tau = scales.along(axis, 0.7).tau
        np.testing.assert_array_equal(np.moveaxis(tau, axis, 0)[0], 0.7)
        np.testing.assert_array_equal(
            np.moveaxis(tau, axis, 0)[1:], np.moveaxis(scales.tau, axis, 0)[1:]
        )


@pytest.mark.parametrize("users", [20.0, 2000.0, 10.0**6])
def test_fits_under_another_prior_do_not_depend_on_where_they_begin(users: float) -> None:
    pairs = {k: pair_of(np.random.default_rng(20 + k), 0.8 * k, users)[0] for k in range(3)}
    scales = Scales.of(4, 0.3, 0.3)
    found = refitted(pairs, fitted(pairs)[0], scales)
    for key, pair in pairs.items():
        start = pair.start(4)
        alone = pair.climbed(start, *scales.prior(start.terms), 60)
        np.testing.assert_allclose(found[key].joint, alone.joint, atol=2e-3)
        assert scales.pair_evidence(found[key]) == pytest.approx(
            scales.pair_evidence(alone), abs=0.05
        )


def test_what_is_apart_goes_with_others_in_its_own_way() -> None:
    """A row without rank, whose distribution over columns has nothing to do with the others'."""
    rng = np.random.default_rng(13)
    pair, table = pair_of(rng, 0.8, 1.0, (8, 6))
    table[-1] = table[-1].sum() * rng.dirichlet(np.ones(6))
    users, (left, right) = 1e8, pair.grams
    scores = users * left @ table @ right
    told = Pair(
        scores, users, pair.grams, (table.sum(axis=1), table.sum(axis=0)), told_halves(table)
    )
    ranked, apart = (
        np.abs(fitted({0: replace(told, apart=one)})[0][0].joint - table).sum()
        for one in ((0, 0), (1, 0))
    )
    assert apart < 0.25 * ranked
    # Of merged cells, too
    groups = np.array([0, 0, 1, 1, 2, 2, 2, 3]), np.arange(6)
    coarse = replace(told, apart=(1, 0)).merged(groups)
    (fine,) = replace(told, apart=(1, 0)).refined([fitted({0: coarse})[0][0]])
    assert np.abs(fine.joint - table)[-1].sum() < 0.1 * table[-1].sum()


def test_fits_of_merged_cells_that_have_other_terms_are_left_out() -> None:
    """Nearly all users are in two of the cells, or in one of the merged ones."""
    pair, _ = pair_of(np.random.default_rng(14), 0.5, 1e4, (8, 6))
    rows = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0])
    pair = replace(pair, margins=(rows, pair.margins[1]))
    coarse = pair.merged((np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.arange(6)))
    fit = fitted({0: coarse})[0][0]
    assert fit.theta.size == 0
    (found,) = pair.refined([fit])
    assert found.theta.size == 0
    np.testing.assert_allclose(found.joint, np.outer(*pair.margins))


@pytest.mark.parametrize("apart", [(0, 0), (1, 2)])
def test_scales_maximise_their_evidence(apart: tuple[int, int]) -> None:
    rng = np.random.default_rng(6)
    pairs = [replace(pair_of(rng, 0.5, 3e4)[0], apart=apart) for _ in range(6)]
    fits = [climbed(pair, 2)[0] for pair in pairs]
    found = Scales.of(2, 0.5, 0.5).improved(fits, 2000)
    most = found.evidence(fits)
    for place, factor in (
        (p, f) for p in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)) for f in (0.8, 1.25)
    ):
        tau = found.tau.copy()
        tau[place] *= factor
        tau[place[::-1]] = tau[place]
        assert Scales(tau, found.mu).evidence(fits) < most + 1e-6
    assert max(Scales(found.tau, found.mu + by).evidence(fits) for by in (-0.05, 0.05)) < most


def test_merged_cells_have_the_likelihood_of_users_independent_within() -> None:
    rng = np.random.default_rng(8)
    pair, _ = pair_of(rng, 0.5, 1e5)
    groups = np.array([0, 0, 1, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 2, 2])
    merged = pair.merged(groups)
    assert merged.scores.shape == (4, 3)
    shares = [
        mass / np.bincount(group, mass)[group]
        for mass, group in zip(pair.margins, groups, strict=True)
    ]
    for _ in range(3):
        coarse = rng.dirichlet(np.ones(12)).reshape(4, 3)
        fine = coarse[groups[0]][:, groups[1]] * np.outer(*shares)
        assert merged.likelihood(coarse) == pytest.approx(pair.likelihood(fine), rel=1e-6)


def test_fits_of_merged_cells_are_nearly_those_of_all() -> None:
    rng = np.random.default_rng(9)
    pair, true = pair_of(rng, 0.5, 1e7, (24, 20))
    whole = fitted({0: pair})[0][0]
    groups = np.arange(24) // 2, np.arange(20) // 2
    fits, _ = fitted({0: pair.merged(groups)})
    (refined,) = pair.refined([fits[0]])
    np.testing.assert_allclose(refined.joint.sum(axis=0), pair.margins[1], atol=1e-6)
    assert np.abs(refined.joint - true).sum() < 0.05
    assert np.abs(refined.joint - whole.joint).sum() < 0.05
    assert np.abs(pair.independent().joint - true).sum() > 0.2
