"""What every protocol promises of its errors: variances as stated, and intervals that cover.

A suite repeats a collection some hundred times and compares the squared errors of what is answered
with the variances that were stated: beforehand, for the population at hand, and afterwards, by the
estimates themselves. Errors are taken from the truth, so that a bias shows as well.

Errors of one run are dependent, runs are not: in each run the squared errors over the variance are
averaged over the answers, and the mean of these averages over the runs is compared with 1.

False alarms: each comparison is a two-sided t-test of that mean at 1e-6, seeded. What is documented
as approximate has a tolerance on top, a number in the entry of the protocol. A planted wrong
variance is rejected: see `rejected`. So are intervals that miss 15 % of what they cover.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from tests.goodness_of_fit import FALSE_ALARM

EPSILONS = (0.05, 1.0, 8.0)
CONFIDENCE = 0.95


class Band(NamedTuple):
    """By what a mean may differ from the stated one, beyond chance: as stated, or wider and why."""

    low: float = 1.0
    high: float = 1.0


class Entry(NamedTuple):
    """A protocol of the suite.

    ``make(epsilon, run)`` gives the protocol, the same for every run but where it is unbiased over
    public random functions. ``told`` is the band of measured over told variances, ``predicted`` of
    measured over predicted ones, ``covered`` of the probability that 95 % intervals cover; a band
    may depend on epsilon and population: ``wider`` gives those that differ.
    """

    make: object
    told: Band = Band()
    predicted: Band = Band()
    covered: Band = Band(0.94, 0.96)
    wider: dict = {}  # noqa: RUF012
    epsilons: tuple = EPSILONS

    def bands(self, epsilon, population):
        return {**self._asdict(), **self.wider.get((epsilon, population), {})}


class Sample(NamedTuple):
    """What the runs gave.

    ``errors`` and ``told`` have shape (runs, answers); ``predicted`` (answers,), NaN for those that
    are not, or None for all;
    ``covered`` (runs, intervals) or None.
    """

    errors: np.ndarray
    told: np.ndarray
    predicted: np.ndarray | None
    covered: np.ndarray | None


def interval_of(means):
    """Of the mean of independent numbers, at the stated false alarms."""
    runs = len(means)
    error = means.std(ddof=1) / math.sqrt(runs)
    half = stats.t.ppf(1 - FALSE_ALARM / 2, runs - 1) * error
    return means.mean() - half, means.mean() + half


def ratio(errors, variances):
    """Measured over stated variances: the ends between which their mean ratio lies."""
    errors, variances = errors[:, np.isfinite(variances)], variances[np.isfinite(variances)]
    certain = variances <= 1e-12 * variances.max()
    assert (errors[:, certain] ** 2 <= 1e-9 * variances.max() + 1e-20).all()
    return interval_of((errors[:, ~certain] ** 2 / variances[~certain]).mean(axis=1))


def within(found, band):
    return found[0] <= band.high and found[1] >= band.low


def check(sample, told, predicted, covered):
    """Whether what was stated is right; the reason if not."""
    found = ratio(sample.errors, sample.told.mean(axis=0))
    assert within(found, told), f"measured over told variances: {found}"
    if sample.predicted is not None:
        found = ratio(sample.errors, sample.predicted)
        assert within(found, predicted), f"measured over predicted variances: {found}"
    if sample.covered is not None:
        found = interval_of(sample.covered.mean(axis=1))
        assert within(found, covered), f"95% intervals cover {found}"


def rejected(sample, factor, told, predicted):
    """That variances that are wrong by a factor are found, of either kind."""
    wrong = [sample._replace(told=sample.told * factor, covered=None)]
    if sample.predicted is not None:
        wrong.append(sample._replace(predicted=sample.predicted * factor))
    for one in wrong:
        with pytest.raises(AssertionError, match="measured over"):
            check(one, told, predicted, None)


def even(domain, users):
    return np.full(domain, users // domain)


def heaped(domain, users):
    """Half of the users hold one item, most items are held by next to nobody."""
    shares = np.zeros(domain)
    shares[domain // 3], shares[0], shares[-1] = 0.5, 0.2, 0.05
    shares[domain // 2 : domain // 2 + max(1, domain // 8)] += 0.25 / max(1, domain // 8)
    held = np.floor(shares * users).astype(int)
    held[domain // 3] += users - held.sum()
    return held


POPULATIONS = {"even": even, "heaped": heaped}


def sums(domain, rng):
    """Random weighted sums, and sums of a few items in a row."""
    rows = list(rng.normal(size=(9, domain)))
    for first, last in ((0, domain // 2), (1, 2 * domain // 3), (domain // 3, domain // 3)):
        rows.append((np.arange(domain) >= first) & (np.arange(domain) <= last))
    return np.array(rows, dtype=float)


def fixed(make: Callable[[float], Any]) -> Callable[[float, int], Any]:
    """The same protocol in every run, made once for each epsilon."""
    made: dict[float, Any] = {}

    def kept(epsilon: float, run: int) -> Any:
        if epsilon not in made:
            made[epsilon] = make(epsilon)
        return made[epsilon]

    return kept


class VarianceContract:
    """The suite. A subclass has ``entries`` and says what a protocol answers: ``sample``."""

    domain, users, runs = 16, 200_000, 250
    planted: tuple[str, ...] = ()
    planted_at = 8.0
    """Names of entries for which wrong variances are planted, and the epsilon at which they are."""

    populations, planted_in = POPULATIONS, "heaped"
    entries: dict = {}  # noqa: RUF012

    def sample(self, make, epsilon, counts, rng):
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc):
        if "stated" in metafunc.fixturenames:
            grid = [
                pytest.param(
                    (name, epsilon, population),
                    id=f"{name}-{epsilon:g}-{population}",
                    marks=() if epsilon == EPSILONS[1] else pytest.mark.slow,
                )
                for name, entry in self.entries.items()
                for epsilon in entry.epsilons
                for population in self.populations
            ]
            metafunc.parametrize("stated", grid)
        if "wrong" in metafunc.fixturenames:
            metafunc.parametrize("wrong", self.planted)

    def sampled(self, name, epsilon, population):
        counts = self.populations[population](self.domain, self.users)
        rng = np.random.default_rng(20_250_101)
        return self.sample(self.entries[name].make, epsilon, counts, rng)

    def test_variances_and_intervals(self, stated):
        name, epsilon, population = stated
        bands = self.entries[name].bands(epsilon, population)
        sample = self.sampled(name, epsilon, population)
        check(sample, bands["told"], bands["predicted"], bands["covered"])

    @pytest.mark.slow
    def test_wrong_variances_are_rejected(self, wrong):
        entry = self.entries[wrong]
        sample = self.sampled(wrong, self.planted_at, self.planted_in)
        for factor in (0.7, 1.4):
            rejected(sample, factor, entry.told, entry.predicted)
        if sample.covered is not None:
            seen = np.random.default_rng(0).random(sample.covered.shape) < 0.85
            bands = entry.bands(self.planted_at, self.planted_in)
            with pytest.raises(AssertionError, match="intervals cover"):
                check(
                    sample._replace(covered=sample.covered & seen),
                    bands["told"],
                    bands["predicted"],
                    bands["covered"],
                )
