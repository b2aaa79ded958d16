"""Shifted histograms: they keep the contract, their Toeplitz solution is dense least squares, their
predictions are the enumerated errors, and prefixes err less than in circles.

False alarms: at most 1e-6 for the statistical test, which is seeded and rejects planted errors.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg

from frequency.postprocess import norm_sub
from rangeq import Between, CircularHistogram, ShiftedHistogram, optimise
from rangeq.local.circle import ToeplitzInverse
from rangeq.local.circular import per_user_of_blocks
from rangeq.local.composite import bins_of, powers_below
from rangeq.local.optimisation import describe
from tests.contracts.oracle import moments
from tests.own_oracles import lopsided
from tests.rangeq.contract import RangeContract
from tests.rangeq.core.trees import all_ranges, indicators, of_workload, quadratic
from tests.rangeq.local.test_circular import Enumerated, Simulated, arrangements
from tests.tape import WORD

WORKLOADS = ("ranges", "all ranges", "prefixes")


class TestShifted(RangeContract):
    """By default; and with levels of other widths, oracles and probabilities."""

    make = staticmethod(ShiftedHistogram)


class TestMixed(RangeContract):
    domains = (3, 4, 5)
    names = ("GRR", "OLH", "SubsetSelection")

    def make(self, domain, epsilon):
        if type(domain) is not int or not 3 <= domain < 1 << 20:
            return ShiftedHistogram(domain, epsilon)
        widths = (domain - 1, *((2,) if domain > 3 else ()), 1)
        chances = [Fraction(k + 1, sum(range(len(widths) + 1))) for k in range(len(widths))]
        return ShiftedHistogram(domain, epsilon, widths, self.names[: len(widths)], chances)


# -------------------------------------------------------------------------- Toeplitz matrices


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 301])
def test_the_inverse_of_a_toeplitz_matrix(size) -> None:
    rng, k = np.random.default_rng(size), np.arange(size)
    for widths in ((1,), (1, 2, size), (3,), (1, 7, size / 2 + 1)):
        first = sum(np.maximum(1 - k / width, 0) / width for width in widths)
        inverse, dense = ToeplitzInverse.of(first), np.linalg.inv(scipy.linalg.toeplitz(first))
        near = {"rtol": 0, "atol": 1e-8 * np.abs(dense).max()}
        vectors = rng.normal(size=(2, 3, size))
        np.testing.assert_allclose(inverse.times(vectors), vectors @ dense, **near)
        ends = np.sort(rng.integers(0, size + 1, (2, 5, 8)), axis=0)
        sums = indicators(ends[0].ravel(), ends[1].ravel() - 1, size)
        expected = quadratic(sums, dense).reshape(5, 8)
        np.testing.assert_allclose(
            inverse.blocks(*ends), expected, rtol=0, atol=near["atol"] * size
        )


def test_where_conjugate_gradients_do_not_end(monkeypatch) -> None:
    first = np.maximum(1 - np.arange(40) / 8, 0)
    expected = ToeplitzInverse.of(first).column
    monkeypatch.setattr("rangeq.local.circle._STEPS", 1)
    np.testing.assert_allclose(ToeplitzInverse.of(first).column, expected, atol=1e-10)


# ---------------------------------------------------------------------------- dense least squares


PROTOCOLS = [
    ShiftedHistogram(1, 1.0),
    ShiftedHistogram(2, 1.0),
    ShiftedHistogram(7, 0.5, (5, 2, 1), ("GRR", "OLH", "SubsetSelection"), ("1/2", "1/4", "1/4")),
    ShiftedHistogram(16, 1.0),
    ShiftedHistogram(13, 3.0, (12, 3, 1), "GRR"),
    ShiftedHistogram(10, 2.0, (4, 1), (lopsided(2.0), "GRR")),
]


def bins(domain: int, width: int) -> np.ndarray:
    """Which items each bin holds, by its offset: shape (offsets, bins, domain)."""
    cells = (np.arange(domain) + np.arange(width)[:, None]) // width
    return (cells[:, None] == np.arange(bins_of(domain, width))[:, None]).astype(float)


class Dense:
    """The normal equations of all bins of all offsets, given that all items sum to 1."""

    def __init__(self, protocol: ShiftedHistogram, users: np.ndarray) -> None:
        d, self.protocol, self.users = protocol.domain, protocol, users
        widths = protocol.widths or ()
        self.bins = [bins(d, width) for width in widths]
        self.precisions = [
            n / per_user_of_blocks(level.base, d, width)
            for n, level, width in zip(users, protocol.parts, widths, strict=True)
        ]
        information = sum(
            tau / len(b) * np.einsum("abx,aby->xy", b, b)
            for tau, b in zip(self.precisions, self.bins, strict=True)
        )
        inverse = np.linalg.inv(information)
        self.shares = inverse.sum(axis=0) / inverse.sum()
        self.inverse = inverse
        self.covariance = inverse - np.outer(self.shares, self.shares) * inverse.sum()

    def estimate(self, aggregate) -> np.ndarray:
        d = self.protocol.domain
        right, even = np.zeros(d), np.full(d, 1 / d)
        for k, (level, b) in enumerate(zip(self.protocol.parts, self.bins, strict=True)):
            if self.users[k]:
                counts = self.protocol.channel.part_aggregate(aggregate, k).counts
                for offset, holds in enumerate(b):
                    told = level.base.held_of(counts[offset])
                    n = counts[offset].sum() / counts.sum() * self.users[k]
                    right += (
                        self.precisions[k] / self.users[k] * holds.T @ (told - n * holds @ even)
                    )
        result = even + self.inverse @ right
        return result + self.shares * (1 - result.sum())


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=describe)
def test_estimates_and_variances_are_those_of_dense_least_squares(protocol) -> None:
    d, rng = protocol.domain, np.random.default_rng(1)
    first, last = all_ranges(d)
    for held in (rng.integers(0, 300, d), np.eye(d, dtype=int)[0]):  # many users, and one
        aggregate = protocol.simulate(held, rng)
        users = protocol.channel.part_users(aggregate)
        if users[-1] == 0:
            continue
        twin, estimate = Dense(protocol, users), protocol.estimate(aggregate)
        expected = twin.estimate(aggregate)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(estimate.frequencies, expected, rtol=0, atol=1e-8 * scale)
        weights = rng.normal(size=(3, d))
        np.testing.assert_allclose(
            protocol._own_linear_variance(weights, users),
            quadratic(weights, twin.covariance),
            rtol=1e-7,
            atol=1e-9,
        )
        np.testing.assert_allclose(
            protocol._own_range_variance(first, last, users),
            quadratic(indicators(first, last, d), twin.covariance),
            rtol=1e-7,
            atol=1e-9,
        )


@pytest.mark.parametrize(
    ("protocol", "people"),
    [
        (
            ShiftedHistogram(
                5, 1.0, (3, 2, 1), ("GRR", "SubsetSelection", "GRR"), ("1/2", "1/4", "1/4")
            ),
            (0, 0, 0, 1, 3, 3, 4, 4),
        ),
        (ShiftedHistogram(7, 2.0, (4, 1), "SubsetSelection", ("1/2", "1/2")), (6, 6, 6, 1)),
        (ShiftedHistogram(10, 2.0, (4, 1), (lopsided(2.0), "GRR"), ("1/2", "1/2")), (0, 0, 3, 9)),
        (ShiftedHistogram(4, 0.5, (1,), "GRR"), (0, 1, 1, 1)),
    ],
    ids=lambda value: describe(value) if isinstance(value, ShiftedHistogram) else "",
)
def test_the_error_for_a_population_is_the_enumerated_one(protocol, people) -> None:
    """Over all ways to give the people to levels, and all reports that they may send then."""
    d, n, people = protocol.domain, len(people), np.array(people)
    users = tuple(round(n * weight / WORD) for weight in protocol.part_weights)
    twin, (first, last) = Enumerated(protocol, users), all_ranges(d)
    ranges = indicators(first, last, d)
    moment = [
        moments(p, x @ ranges.T / k)
        for p, x, k in zip(twin.chances, twin.effects, users, strict=True)
    ]
    mean, variance = (np.array([m[j][people] for m in moment]) for j in range(2))
    person, ways = np.arange(n), np.array(list(arrangements(users)))
    expectations = np.array([mean[way, person].sum(axis=0) for way in ways])
    total = expectations.var(axis=0) * (n - 1) / n + np.mean(
        [variance[way, person].sum(axis=0) for way in ways], axis=0
    )
    f = np.bincount(people, minlength=d) / n
    np.testing.assert_allclose(
        protocol.linear_variance(n, ranges, f), total, rtol=1e-6, atol=1e-8 * total.max()
    )
    for workload in WORKLOADS:
        expected = np.sqrt(total[of_workload(workload, first, last)].mean())
        assert protocol.average_rmse(n, workload, f) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(twin.mean(), np.eye(d), atol=1e-8)  # unbiased


@pytest.mark.parametrize("protocol", PROTOCOLS[1:], ids=describe)
def test_average_rmse_is_the_root_of_the_mean(protocol) -> None:
    d, n = protocol.domain, 1000
    first, last = all_ranges(d)
    users = n * np.array(protocol.part_weights, dtype=float) / WORD
    inside = (last - first + 1) / d
    variances = quadratic(indicators(first, last, d), Dense(protocol, users).covariance)
    variances -= inside * (1 - inside) / n
    for workload in WORKLOADS:
        expected = np.sqrt(max(variances[of_workload(workload, first, last)].mean(), 0))
        # The square root of what rounding leaves of a variance of 0
        assert protocol.average_rmse(n, workload) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_answers_have_the_variances_of_the_estimated_population(monkeypatch) -> None:
    protocol, d = ShiftedHistogram(16, 4.0, oracle="GRR"), 16
    held = np.array([3000, *range(100, 115)])
    estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(1)))
    first, last = all_ranges(d)
    users = protocol.channel.part_users(estimate.aggregate)
    expected = protocol.variances_from(
        int(held.sum()), users, indicators(first, last, d), norm_sub(estimate.frequencies)
    )
    np.testing.assert_allclose(
        estimate.answer(Between(first, last)).variance, expected, rtol=1e-9, atol=1e-15
    )
    assert estimate.answer(Between(0, d - 1)).variance == 0
    monkeypatch.setattr(ShiftedHistogram, "largest_plugged_in", d - 1)
    even = protocol.estimate(estimate.aggregate).answer(Between(first, last)).variance
    some = last - first + 1 < d
    assert np.abs(even[some] / expected[some] - 1).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("domain", [16, 50])
def test_predictions_against_simulation(domain) -> None:
    """All ranges: within 3%, unbiased; of an even population, and of one with a heavy item."""
    protocol = optimise(domain, 1.0, 10**4, "prefixes").protocol
    assert isinstance(protocol, ShiftedHistogram)
    for held in (np.full(domain, 800 // domain), np.r_[3, 400, np.full(domain - 2, 3)]):
        n = int(held.sum())
        predicted = protocol.average_rmse(n, "all ranges", held / n)
        found = Simulated(protocol, held, 3000, 20_261_124)
        assert found.tolerance() < 0.035
        assert not found.rejects(predicted)
        assert found.rejects(predicted * 1.07)
        assert found.rejects(predicted / 1.07)


# ------------------------------------------------------------------------------- prefixes, choices


@pytest.mark.slow
@pytest.mark.parametrize("domain", [16, 50, 256, 1000, 1 << 16])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
def test_prefixes_err_less_than_in_circles(domain, epsilon) -> None:
    found = optimise(domain, epsilon, 10**6, "prefixes")
    circle = min(r for other, r in found.alternatives if isinstance(other, CircularHistogram))
    assert isinstance(found.protocol, ShiftedHistogram)
    assert found.rmse < 0.98 * circle
    if domain >= 64:
        assert found.rmse < 1.1 * found.bound


@pytest.mark.slow
def test_other_shares_of_the_users_err_more() -> None:
    """Within one part in a thousand, and where levels were added by the rule for large domains."""
    for domain in (100, 3000):
        best = optimise(domain, 1.0, 10**6, "prefixes").protocol
        assert isinstance(best, ShiftedHistogram)
        shares = np.array(best.part_weights) / WORD
        rng = np.random.default_rng(0)
        for _ in range(8):
            other = shares * np.exp(rng.normal(size=len(shares)) * 0.3)
            exact = [Fraction(round(share * 2**32)) for share in other / other.sum()]
            changed = ShiftedHistogram(
                domain,
                1.0,
                best.widths,
                best.oracle,
                tuple(share / sum(exact) for share in exact),
            )
            assert changed.average_rmse(10**6, "prefixes") > 0.999 * best.average_rmse(
                10**6, "prefixes"
            )


@pytest.mark.parametrize("domain", [1, 2, 3, 5, 16, 17, 100])
def test_the_whole_range_is_one_and_certain(domain) -> None:
    protocol, rng = ShiftedHistogram(domain, 1.1), np.random.default_rng(domain)
    for held in (50, 1000):
        estimate = protocol.estimate(protocol.simulate(np.full(domain, held), rng))
        assert estimate.range(0, domain - 1) == pytest.approx(1, abs=1e-9)
        assert estimate.answer(Between(0, domain - 1)).variance == 0
        assert estimate.linear(np.ones(domain)).variance <= 1e-15
        estimate.quantile_interval([0.0, 0.5, 1.0])


def test_default_widths() -> None:
    assert [powers_below(d) for d in (1, 2, 3, 4, 5, 16, 17)] == [
        (1,),
        (1,),
        (2, 1),
        (2, 1),
        (4, 2, 1),
        (8, 4, 2, 1),
        (16, 8, 4, 2, 1),
    ]
    for domain in range(1, 40):
        for width in range(1, domain + 1):
            cells = (np.arange(domain) + np.arange(width)[:, None]) // width
            assert bins_of(domain, width) == max(2, cells.max() + 1)


@pytest.mark.parametrize("widths", [(), (2,), (1, 2), (16, 1), (2, 2, 1), (3, 0), (2.0, 1), "1"])
def test_wrong_widths(widths) -> None:
    with pytest.raises(ValueError, match="widths must be integers below 16, descending"):
        ShiftedHistogram(16, 1.0, widths)
