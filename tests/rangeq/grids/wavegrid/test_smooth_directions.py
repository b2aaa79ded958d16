"""Smooth terms beside local ones: against dense linear algebra, and on data from the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rangeq.grids.wavegrid import shrinkage
from rangeq.grids.wavegrid import shrinkage as smooth_directions
from rangeq.grids.wavegrid.interactions import Interaction, Pair, Scales, refitted, scaled_to
from rangeq.grids.wavegrid.shrinkage import Shrinkage, SmoothDirections, TermBasis, scores_of
from tests.rangeq.grids.wavegrid.test_local_terms import (
    board,
    dense_information,
    pair_about,
    scores_about,
    terms_of,
)


def kinds_of(pair: Pair) -> list[tuple[TermBasis, TermBasis]]:
    left, right, _ = terms_of(pair)
    return list(zip(left, right, strict=True))


def fitted_under(pair: Pair, scales: Scales, degree: int = 4) -> Interaction:
    return refitted({0: pair}, {0: pair.start(degree)}, scales)[0]


@pytest.mark.parametrize("halved", [0.0, 5000.0])
def test_adjustments_are_those_of_a_dense_gaussian(
    halved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smooth_directions, "_TOLD", 0.0)
    monkeypatch.setattr(smooth_directions, "_FAR", np.inf)
    table = np.exp(-(np.subtract.outer(np.linspace(-2, 2, 7), np.linspace(-2, 2, 6)) ** 2))
    pair = pair_about(np.random.default_rng(1), table / table.sum(), 3000.0, halved)
    scales = Scales.of(4, 0.7, 0.3)
    fit = fitted_under(pair, scales)
    directions = SmoothDirections.of(pair, fit, scales)
    psi, phi = (each.functions for each in fit.terms)
    slopes = pair.slopes(psi, phi, fit.joint)
    told = dense_information(pair)
    precision = np.diag(scales.prior(fit.terms)[0].ravel())
    unexplained = pair.unexplained(fit.joint)
    for tau in (0.1, 1.0):
        monkeypatch.setattr(shrinkage, "SCALES", np.array([tau]))
        for both in kinds_of(pair):
            local = np.kron(both[0].functions, both[1].functions)
            every = np.concatenate([slopes.reshape(len(slopes), -1), local.T])
            hessian = every @ told @ every.T
            smooth, rest = np.s_[: len(slopes)], np.s_[len(slopes) :]
            hessian[smooth, smooth] += precision
            alone = np.linalg.slogdet(hessian[smooth, smooth])[1]
            hessian[rest, rest] += np.eye(local.shape[1]) / tau**2
            pull = np.concatenate([np.zeros(len(slopes)), local.T @ unexplained.ravel()])
            mean, covariance = np.linalg.solve(hessian, pull), np.linalg.inv(hessian)
            evidence = 0.5 * (pull @ mean - np.linalg.slogdet(hessian)[1] + alone)
            evidence -= local.shape[1] * np.log(tau)

            one, scores = Shrinkage.of(pair, both), scores_of(unexplained, both)
            found = directions.adjusted(one, both, scores)
            assert one.evidence(scores)[0] + found.evidence[0] == pytest.approx(evidence, abs=1e-6)
            means, variances = (part.ravel() for part in one.posterior(scores))
            variance = np.diag(covariance)[rest]
            np.testing.assert_allclose(means + found.means[0], mean[rest], atol=1e-7)
            np.testing.assert_allclose(variances + found.variances[0], variance, rtol=1e-6)
            np.testing.assert_allclose(
                np.tensordot(found.moved[0], directions.slopes, axes=1),
                np.tensordot(mean[smooth], slopes, axes=1),
                atol=1e-9,
            )


@pytest.mark.slow
def test_local_terms_are_as_likely_as_they_are_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all tables have them: with fits that do not give way they would seem to be a third.

    A mean of 240 probabilities has an error below 0.03.
    """
    rng, tau, scales = np.random.default_rng(3), 0.4, Scales.of(4, 0.7, 0.3)
    monkeypatch.setattr(shrinkage, "SCALES", np.array([tau]))
    even = np.full((8, 8), 1 / 64)
    likely: list[float] = []
    unadjusted: list[float] = []
    for number in range(240):
        pair = pair_about(rng, even, 1.0)
        both, start = kinds_of(pair)[2], pair.start(4)
        psi, phi = (each.functions for each in start.terms)
        theta = rng.normal(size=start.theta.shape) * scales.prior(start.terms)[0] ** -0.5
        table = scaled_to(psi @ theta @ phi.T, *pair.margins)[0]
        if number % 2:
            left, right = (each.functions for each in both)
            table += left @ rng.normal(0, tau, (left.shape[1], right.shape[1])) @ right.T
        scores = scores_about(rng, pair.grams, table, 600.0)
        pair = replace(pair, scores=scores, precision=600.0)
        fit = fitted_under(pair, scales)
        one, scores = Shrinkage.of(pair, both), scores_of(pair.unexplained(fit.joint), both)
        alone = one.evidence(scores)[0]
        adjustment = SmoothDirections.of(pair, fit, scales).adjusted(one, both, scores)
        for evidence, found in ((alone, unadjusted), (alone + adjustment.evidence[0], likely)):
            found.append(1 / (1 + np.exp(-evidence)))
    assert abs(np.mean(likely) - 0.5) < 0.1
    assert np.mean(unadjusted) < 0.4


def test_fits_do_not_give_way_so_far_that_cells_become_negative() -> None:
    """Halves that exclude each other: local terms tell them, and a fit far from these stays."""
    pair = pair_about(np.random.default_rng(5), board(2, 16), 20_000.0)
    scales = Scales.of(4, 0.7, 0.25)
    fit = fitted_under(pair, scales)
    directions, unexplained = SmoothDirections.of(pair, fit, scales), pair.unexplained(fit.joint)
    stayed = 0
    for both in kinds_of(pair):
        one, scores = Shrinkage.of(pair, both), scores_of(unexplained, both)
        found = directions.adjusted(one, both, scores)
        for moved in found.moved:
            changed = fit.joint + np.tensordot(moved, directions.slopes, axes=1)
            assert changed.clip(max=0).sum() > -0.01
        still = ~found.moved.any(axis=1)
        assert not found.evidence[still].any()
        assert not found.means[still].any()
        assert not found.variances[still].any()
        stayed += int(still.sum())
    assert stayed
