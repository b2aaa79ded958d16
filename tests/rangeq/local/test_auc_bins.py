"""How many bins, for the AUC: the bound on the bias, and the choice on scores of other laws."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, OUE
from rangeq import HierarchicalHistogram, PaddedSets, Paired, auc_error, best_bins
from rangeq.local.paired import auc_and_slope

FINE = 1 << 13

NORMAL = stats.truncnorm(-5, 5, loc=0.5, scale=0.1)
SCORES: dict[str, tuple[Any, Any]] = {  # of bit 0 and bit 1, on [0, 1]
    "linear": (stats.beta(1, 2), stats.beta(2, 1)),
    "bell": (stats.beta(4, 6), stats.beta(6, 4)),
    "narrow": (NORMAL, stats.truncnorm(-5, 5, loc=0.58, scale=0.08)),
    "skewed": (stats.beta(2, 9), stats.beta(2, 4)),
    "alike": (stats.beta(3, 3), stats.beta(3, 3)),
}


def chances(law: Any, bins: int) -> np.ndarray:
    return np.diff(law.cdf(np.linspace(0, 1, bins + 1)))


def smoothness(*laws: Any) -> float:
    x = np.linspace(0, 1, 20_001)
    return max(float(np.abs(np.diff(law.pdf(x)) / np.diff(x)).max()) for law in laws)


def auc(laws: tuple[Any, Any], bins: int) -> float:
    return auc_and_slope(*(chances(law, bins) for law in laws))[0]


@pytest.mark.parametrize("name", SCORES)
def test_the_bias_is_within_its_bound(name) -> None:
    """And not a tenth of it everywhere; where the classes are alike there is none."""
    laws, closest = SCORES[name], 0.0
    truth, rate = auc(laws, FINE), smoothness(*laws)
    for bins in (1, 2, 3, 5, 8, 16, 64, 100):
        bound = auc_error(Paired(GRR(2 * bins, 1.0)), 100, rate).discretisation
        bias = abs(auc(laws, bins) - truth)
        assert bias <= bound + 1e-6
        closest = max(closest, bias / bound)
    assert closest > 0.02 or name == "alike"


def test_the_bias_of_narrow_bins() -> None:
    """(h^2 / 12) times the integral of p q' - p' q, p the density of bit 1."""
    laws = SCORES["bell"]
    x = (np.arange(100_000) + 0.5) / 100_000
    q, p = (law.pdf(x) for law in laws)
    integral = float(np.mean(p * np.gradient(q, x) - np.gradient(p, x) * q))
    for bins in (32, 64):
        told = auc(laws, bins) - auc(laws, FINE)
        assert told == pytest.approx(integral / (12 * bins**2), rel=0.02)


def measured(pairs: Paired, laws: tuple[Any, Any], n: int, positives: float, seed: int) -> float:
    """The root of the mean square error of the AUC of so many users, whose scores have the laws."""
    rng, bins, truth = np.random.default_rng(seed), pairs.domain, auc(laws, FINE)
    held = np.concatenate(
        [
            share * chances(law, bins)
            for share, law in zip((1 - positives, positives), laws, strict=True)
        ]
    )
    counts = np.floor(held * n).astype(np.int64)
    found = [pairs.estimate(pairs.simulate(counts, rng)).auc().value for _ in range(60)]
    return math.sqrt(np.mean(np.square(np.array(found) - truth)))


KINDS: dict[str, Any] = {
    "tree": lambda bins: Paired(HierarchicalHistogram(2 * bins, 1.0, 2, "OUE")),
    "flat": lambda bins: Paired(OUE(2 * bins, 1.0)),
}
CANDIDATES = (2, 4, 8, 16, 32, 64, 128)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCORES)
def test_the_choice_is_nearly_the_best(kind, name) -> None:
    """For scores of which the choice knows nothing but the slope, and of other shares."""
    laws, n = SCORES[name], 100_000
    chosen = best_bins(KINDS[kind], n, smoothness(*laws), candidates=CANDIDATES)
    errors = {bins: measured(KINDS[kind](bins), laws, n, 0.3, bins) for bins in CANDIDATES}
    # Of classes that are alike two bins tell all, which the slope does not
    assert errors[chosen.bins] < 2 * min(errors.values()) or name == "alike"
    assert 0.5 * chosen.rmse < errors[chosen.bins] < 2.2 * chosen.rmse
    if kind == "flat":  # where too many bins cost most
        assert errors[128] > 1.5 * min(errors.values())


def test_more_users_take_more_bins() -> None:
    for kind in KINDS.values():
        chosen = [best_bins(kind, n, 5.0) for n in (300, 10_000, 1_000_000, 10**8)]
        assert all(few.bins <= many.bins for few, many in pairwise(chosen))
        assert chosen[0].bins < chosen[-1].bins
        assert all(few.rmse > many.rmse for few, many in pairwise(chosen))
        assert best_bins(kind, 10_000, 0.1).bins <= best_bins(kind, 10_000, 100.0).bins


@pytest.mark.slow
def test_the_noise_is_that_of_estimates() -> None:
    pairs = KINDS["tree"](16)
    told = auc_error(pairs, 50_000, 1.0, 0.25)
    assert told.rmse == pytest.approx(math.hypot(told.discretisation, told.noise))
    rng, held = np.random.default_rng(1), np.repeat([37_500 // 16, 12_500 // 16], 16)
    found = [pairs.estimate(pairs.simulate(held, rng)).auc().value for _ in range(200)]
    # Of 200 nearly normal values: a ratio outside 0.75 .. 1.3 has a chance below 1e-6
    assert 0.75 < np.std(found) / told.noise < 1.3


def test_wrong_arguments() -> None:
    pairs = KINDS["flat"](4)
    for wrong in (0, -1.0, math.nan, math.inf, True, "1"):
        with pytest.raises(ValueError, match="smoothness"):
            auc_error(pairs, 100, wrong)
    for share in (0, 1, -0.1, math.nan, True, None):
        with pytest.raises(ValueError, match="positives"):
            auc_error(pairs, 100, 1.0, share)
    with pytest.raises(ValueError, match="candidates"):
        best_bins(KINDS["flat"], 100, 1.0, candidates=())
    with pytest.raises(TypeError, match="sets"):
        auc_error(Paired(PaddedSets(OUE(9, 1.0), 2)), 100, 1.0)
