"""Circular histograms: they keep the contract, their Fourier solution is dense least squares, their
predictions are confirmed.

False alarms: at most 1e-6 for each statistical test, which are seeded and reject a planted error.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from frequency import Aggregate, InvalidReport, ProjectiveGeometry, SubsetSelection
from frequency.postprocess import norm_sub
from rangeq import Between, CircularHistogram, Composite, optimise
from rangeq.local.circular import Blocks, default_blocks, divisors, round_up, seen
from tests.contracts.oracle import close, moments, ratio_of
from tests.own_oracles import lopsided
from tests.rangeq.contract import RangeContract, level_twin
from tests.rangeq.core.trees import all_ranges, indicators, of_workload, quadratic
from tests.tape import WORD

WORKLOADS = ("ranges", "all ranges", "prefixes")


class TestCircle(RangeContract):
    """Items all around, no padding: with one level for a prime number of items, and up to three."""

    domains = (2, 3, 4, 5, 6)

    def make(self, domain, epsilon):
        valid = type(domain) is int and 2 <= domain < 1 << 24
        return CircularHistogram(domain, epsilon, circle=domain if valid else None)

    def test_changed_reports_are_refused(self):
        super().test_changed_reports_are_refused()
        oracle = self.make(6, 1.0)
        good = oracle.privatize(self.values(6, 300), np.random.default_rng(1))
        for k, level in enumerate(oracle.parts):
            first = int(np.flatnonzero(good["level"] == k)[0])
            for name, least in (("angle", level.width), ("block", level.base.counts_shape[0])):
                for value in (least, 255):
                    part = level.privatize([0], np.random.default_rng(0))
                    if name == "angle":
                        part["angle"] = value
                    else:
                        part["block"]["hyperplane"] = value
                    with pytest.raises(InvalidReport, match="cannot have been sent"):
                        level.aggregate(part)
                    bad = good.copy()
                    bad["body"][first, : part.itemsize] = part.view(np.uint8)
                    self.check_refused(oracle, bad, good, first)


class TestPaddedCircle(RangeContract):
    """Of several levels, each with its own oracle, and not as likely as others; two to five items
    of padding.
    """

    domains = (2, 3, 4, 5)
    names = ("GRR", "OLH", "SubsetSelection", "ProjectiveGeometry", "GRR")

    def make(self, domain, epsilon):
        if type(domain) is not int or not 1 <= domain < 1 << 24:
            return CircularHistogram(domain, epsilon)
        circle = (
            4 if domain == 1 else 6 if domain <= 4 else 8 if domain == 5 else 4 * (domain // 4 + 1)
        )
        blocks = divisors(circle)
        names = tuple(self.names[k % len(self.names)] for k in range(len(blocks)))
        chances = [
            Fraction(2 * (k + 1), len(blocks) * (len(blocks) + 1)) for k in range(len(blocks))
        ]
        return CircularHistogram(domain, epsilon, circle, blocks, names, chances)


class TestRoundedCircle(RangeContract):
    """As it is by default."""

    make = staticmethod(CircularHistogram)
    big_domains = (20, 1000)


# ---------------------------------------------------------------------------- dense least squares


def incidences(level: Blocks) -> np.ndarray:
    """Which items of the circle are in each block, by angle: shape (width, blocks, circle)."""
    x, angle = np.arange(level.domain), np.arange(level.domain // level.blocks)
    inside = (x + angle[:, None]) % level.domain // len(angle)
    return (inside[:, None, :] == np.arange(level.blocks)[:, None]).astype(float)


def user_variance(protocol: CircularHistogram, level: Blocks) -> float:
    """Of a unit contrast of blocks from one random user: of the difference of occupied blocks, and
    of sampling the user.
    """
    width = incidences(level).shape[0]
    held = max(2, math.ceil(protocol.domain / width))
    return level.base.difference_variance(1, held) / 2 + width / protocol.domain


class Dense:
    """The normal equations of all blocks of all levels and angles, weighed by users over variance;
    the sum of the circle is known.

    ``covariance`` is that of the circle's items, in what blocks see; ``blind`` projects on what
    they do not see. With padding the sum of the items is known too, and each item gives up what it
    shares with the error of that sum: where no block tells the sum, in proportion to what the item
    shares of what is not seen.
    """

    def __init__(self, protocol: CircularHistogram, users: np.ndarray) -> None:
        self.protocol, self.users, m = protocol, users, protocol.circle
        assert m is not None
        self.precisions = [
            n / user_variance(protocol, level)
            for n, level in zip(users, protocol.parts, strict=True)
        ]
        self.blocks = [incidences(level) for level in protocol.parts]
        information = sum(
            tau / len(b) * np.einsum("abx,aby->xy", b, b)
            for tau, b in zip(self.precisions, self.blocks, strict=True)
        )
        centre = np.eye(m) - 1 / m
        values, vectors = np.linalg.eigh(centre @ information @ centre)
        known = values > 1e-9 * max(values.max(), 1e-300)
        self.covariance = (vectors[:, known] / values[known]) @ vectors[:, known].T
        self.blind = centre - vectors[:, known] @ vectors[:, known].T
        self.items = np.arange(m) < protocol.domain
        self.shares = np.zeros(m)
        everything = self.items.astype(float)
        if protocol.domain < m:
            form = self.blind if everything @ self.blind @ everything > 1e-9 else self.covariance
            self.shares = form @ everything / (everything @ form @ everything)

    def estimate(self, aggregate) -> np.ndarray:
        """How much the supporters of each block exceed what an even population would give it, over
        the number expected.
        """
        even = np.where(self.items, 1 / self.protocol.domain, 0.0)
        right = np.zeros(len(even))
        for k, (level, b) in enumerate(zip(self.protocol.parts, self.blocks, strict=True)):
            if self.users[k]:
                counts = self.protocol.channel.part_aggregate(aggregate, k).counts
                for angle, seen_from in enumerate(b):
                    told = level.base.held_of(counts[angle])
                    n = counts[angle].sum() / counts.sum() * self.users[k]
                    # Q n / (p - q) as well, but that is the same for all blocks of the angle
                    beyond = told - n * seen_from @ even
                    right += (
                        self.precisions[k] / self.users[k] * seen_from.T @ (beyond - beyond.mean())
                    )
        result = even + self.covariance @ right
        return (result + self.shares * (1 - result[self.items].sum()))[self.items]

    def variances(self, weights: np.ndarray) -> np.ndarray:
        """Of weights (queries, domain): infinite where some of the weight is on what is not seen,
        but for constant weights.
        """
        wide = np.zeros((len(weights), len(self.items)))
        wide[:, self.items] = weights
        given = wide - (wide @ self.shares)[:, None] * self.items
        result = quadratic(given, self.covariance)
        result[quadratic(wide, self.blind) > 1e-9 * (weights**2).sum(axis=1)] = np.inf
        result[np.ptp(weights, axis=1) == 0] = 0.0
        return result


FULL = [
    CircularHistogram(6, 1.0),
    CircularHistogram(12, 0.5, circle=12),
    CircularHistogram(
        16,
        1.1,
        circle=16,
        blocks=(2, 16),
        oracle=("GRR", "ProjectiveGeometry"),
        probabilities=("1/3", "2/3"),
    ),
    CircularHistogram(
        30,
        3.0,
        circle=30,
        oracle=("GRR", "OLH", "SubsetSelection", "GRR", "OLH", "ProjectiveGeometry", "OLH"),
    ),
    CircularHistogram(7, 1.0),
    CircularHistogram(2, 1.0),
]
PADDED = [
    CircularHistogram(9, 1.0, circle=12),
    CircularHistogram(10, 1.1, circle=12, oracle="SubsetSelection"),
    CircularHistogram(
        13, 0.5, circle=16, blocks=(4, 8, 16), oracle=("OLH", "GRR", "ProjectiveGeometry")
    ),
    CircularHistogram(11, 2.0, circle=30, blocks=(3, 15, 30), probabilities=("1/2", "1/3", "1/6")),
    CircularHistogram(31, 1.0),
    CircularHistogram(1, 1.0),
    CircularHistogram(1, 1.0, circle=6),
    CircularHistogram(2, 1.0, circle=7),
]


def named(protocol: CircularHistogram) -> str:
    return f"{protocol.domain}of{protocol.circle}-{'-'.join(map(str, protocol.blocks))}"


circles = pytest.mark.parametrize("protocol", FULL + PADDED, ids=named)


def some_reports(protocol: CircularHistogram, seed: int, asked: tuple[int, ...]):
    """Of a population that is not even, and of some levels only."""
    rng = np.random.default_rng(seed)
    reports = protocol.privatize(
        np.minimum(rng.geometric(0.2, size=60 * len(protocol.parts)) - 1, protocol.domain - 1), rng
    )
    return protocol.aggregate(reports[np.isin(reports["level"], asked)])


def choices_of_levels(protocol: CircularHistogram | Composite) -> list[tuple[int, ...]]:
    """All single levels, all pairs, and all levels."""
    number = len(protocol.parts)
    return [
        asked for size in {1, 2, number} for asked in itertools.combinations(range(number), size)
    ]


@circles
def test_the_fourier_solution_is_least_squares(protocol) -> None:
    """Of all levels, and of any one or two of them."""
    for seed, asked in enumerate(choices_of_levels(protocol)[:12]):
        aggregate = some_reports(protocol, seed, asked)
        twin, found = (
            Dense(protocol, protocol.channel.part_users(aggregate)),
            protocol.estimate(aggregate).frequencies,
        )
        np.testing.assert_allclose(
            found, twin.estimate(aggregate), rtol=0, atol=1e-9 * max(1, np.abs(found).max())
        )
        assert found.sum() == pytest.approx(1, abs=1e-9)


@circles
def test_variances_are_those_of_least_squares(protocol) -> None:
    """Of all ranges and of any weights; infinite for what no block tells."""
    d, rng = protocol.domain, np.random.default_rng(protocol.domain)
    first, last = all_ranges(d)
    ranges, random = indicators(first, last, d), rng.normal(size=(5, d))
    smooth = np.cos(2 * np.pi * np.arange(d) * np.arange(1, 4)[:, None] / protocol.circle)
    some_inf = False
    for asked in choices_of_levels(protocol)[:12]:
        users = np.where(
            np.isin(np.arange(len(protocol.parts)), asked),
            rng.integers(5, 500, len(protocol.parts)),
            0,
        ).astype(float)
        twin = Dense(protocol, users)
        expected = twin.variances(ranges)
        scale = expected[np.isfinite(expected)].max(initial=0.0)
        np.testing.assert_allclose(
            protocol._own_range_variance(first, last, users), expected, rtol=1e-9, atol=1e-9 * scale
        )
        np.testing.assert_allclose(
            protocol._own_linear_variance(ranges, users), expected, rtol=1e-9, atol=1e-9 * scale
        )
        for weights in (random, smooth, np.ones((1, d)), np.full((1, d), 0.1), ranges * 1e6):
            expected = twin.variances(weights)
            scale = expected[np.isfinite(expected)].max(initial=0.0)
            found = protocol._own_linear_variance(weights, users)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)
            some_inf = some_inf or np.isinf(found).any()
        if not np.isinf(twin.variances(ranges)).any():
            for workload in WORKLOADS:
                rows = of_workload(workload, first, last)
                each = twin.variances(ranges)
                mean = each[rows].mean() if rows.any() else 0.0
                assert protocol.even.average(users, workload) == pytest.approx(
                    mean, rel=1e-9, abs=1e-9 * each.max()
                )
    assert some_inf == (len(protocol.parts) > 1 and d > 1)


@circles
def test_average_rmse_is_the_root_of_the_mean(protocol) -> None:
    """Over all queries of a workload: dense variances, less what disjoint samples of the same users
    share.
    """
    d, n = protocol.domain, 1000
    first, last = all_ranges(d)
    users = n * np.array(protocol.part_weights, dtype=float) / WORD
    f = (last - first + 1) / d
    variances = Dense(protocol, users).variances(indicators(first, last, d)) - f * (1 - f) / n
    for workload in WORKLOADS:
        rows = of_workload(workload, first, last)
        expected = variances[rows].mean() if rows.any() else 0.0
        # Squares: where the error is 0 the root of a rounded difference of variances is 1e-7
        assert protocol.average_rmse(n, workload) ** 2 == pytest.approx(
            expected, rel=2e-7, abs=1e-12
        )


@pytest.mark.parametrize("circle", [2, 3, 4, 7, 12, 16, 30])
def test_what_blocks_see(circle) -> None:
    """The eigenvalues of the sum over all blocks of their squared sums, over the width; exactly 0
    where they see nothing.
    """
    for m in divisors(circle):
        level = Blocks(circle, 1.0, m, "GRR")
        b = incidences(level).reshape(circle, circle)
        wave = np.exp(2j * np.pi * np.outer(np.arange(circle // 2 + 1), np.arange(circle)) / circle)
        expected = (np.abs(wave @ b.T) ** 2).sum(axis=1) / (circle * level.width)
        found = seen(circle, level.width)
        np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-12, atol=1e-12)
        assert ((found[1:] == 0) == (expected[1:] < 1e-12)).all()
        assert found[0] == 0


# -------------------------------------------------------------------------- exact, by enumeration


class Enumerated:
    """All reports of each level, with their probabilities, and what one more of each adds to the
    estimate.

    With so many users on each level the estimate is affine in the counts. So its expectation is
    ``origin``, the estimate when all users of a level send the first report in the list, and for
    each level the mean of ``effects``: what changes when its users send another one. Shapes:
    ``chances`` (reports, domain), ``effects`` (reports, domain).
    """

    def __init__(self, protocol: CircularHistogram, users: tuple[int, ...]) -> None:
        self.protocol, self.users, self.rows, self.chances = protocol, users, [], []
        for k, level in enumerate(protocol.parts):
            twin = level_twin(level)
            rows = np.zeros(len(twin.reports), dtype=protocol.report_dtype)
            rows["level"] = k
            rows["body"][:, : twin.reports.dtype.itemsize] = twin.reports.view(np.uint8).reshape(
                len(rows), -1
            )
            self.rows.append(rows)
            self.chances.append(
                np.array([[float(p) for p in row[: protocol.domain]] for row in twin.table])
            )
        first = [rows[0] for rows in self.rows]
        self.origin = self.estimate(first)
        self.effects = []
        for k, rows in enumerate(self.rows):
            others = (
                [self.estimate([*first[:k], row, *first[k + 1 :]]) for row in rows]
                if users[k]
                else np.zeros((len(rows), 1))
            )
            self.effects.append(np.array(others) - self.origin)
            if not users[k]:
                self.effects[k] = np.zeros((len(rows), protocol.domain))

    def estimate(self, reports) -> np.ndarray:
        sent = np.repeat(np.array(reports, dtype=self.protocol.report_dtype), self.users)
        return self.protocol.estimate(self.protocol.aggregate(sent)).frequencies

    def mean(self) -> np.ndarray:
        """The expectation of the estimate (columns) when everybody holds an item (rows)."""
        return self.origin + sum(p.T @ x for p, x in zip(self.chances, self.effects, strict=True))


SMALL = [
    CircularHistogram(4, 1.0, 4, (4,)),
    CircularHistogram(5, 0.5, 5, (5,), "GRR"),
    CircularHistogram(4, 1.0, 4),
    CircularHistogram(
        6, 1.0, 6, (2, 3, 6), ("GRR", "OLH", "SubsetSelection"), ("1/2", "1/4", "1/4")
    ),
    CircularHistogram(6, 0.5, 6),
    CircularHistogram(4, 1.0, 6, (6,), "OLH"),
    CircularHistogram(
        4, 2.0, 6, (2, 3, 6), ("OLH", "GRR", "ProjectiveGeometry"), ("1/2", "1/4", "1/4")
    ),
    CircularHistogram(5, 1.0, 6, (3, 6), "SubsetSelection", ("1/4", "3/4")),
    CircularHistogram(9, 1.0, 12),
    CircularHistogram(9, 1.0, 12, (4, 12), ("GRR", "ProjectiveGeometry")),
]
small = pytest.mark.parametrize("protocol", SMALL, ids=lambda p: f"{named(p)}-{p.epsilon}")


@small
def test_estimates_are_unbiased(protocol) -> None:
    """For every item, whatever the numbers of users of the levels; with any reports at all they are
    affine in the counts.
    """
    rng = np.random.default_rng(1)
    for users in (
        tuple(range(1, len(protocol.parts) + 1)),
        tuple(rng.integers(1, 40, len(protocol.parts)).tolist()),
    ):
        twin = Enumerated(protocol, users)
        close(twin.mean(), np.eye(protocol.domain), 10)
        for _ in range(3):
            drawn = [
                rng.integers(len(rows), size=n) for rows, n in zip(twin.rows, users, strict=True)
            ]
            reports = np.concatenate([rows[d] for rows, d in zip(twin.rows, drawn, strict=True)])
            expected = twin.origin + sum(
                x[d].mean(axis=0) for x, d in zip(twin.effects, drawn, strict=True)
            )
            close(
                protocol.estimate(protocol.aggregate(rng.permutation(reports))).frequencies,
                expected,
                10,
            )


@small
def test_finite_variances_are_of_unbiased_estimates(protocol) -> None:
    """Where levels have no users: of ranges that are told, the expectation is right; of all others
    nothing is promised.
    """
    d = protocol.domain
    first, last = all_ranges(d)
    ranges = indicators(first, last, d)
    for asked in choices_of_levels(protocol)[:12]:
        users = tuple(5 if k in asked else 0 for k in range(len(protocol.parts)))
        mean = Enumerated(protocol, users).mean() @ ranges.T
        finite = np.isfinite(
            protocol._own_range_variance(first, last, np.array(users, dtype=float))
        )
        close(mean[:, finite], ranges.T[:, finite], 10)
        assert finite.any()
        # The test can fail; with padding some are told by what is known of the sum
        if not finite.all() and protocol.circle == d:
            assert np.abs(mean - ranges.T)[:, ~finite].max() > 1e-3


def test_a_wrong_sign_of_the_angle_is_biased(monkeypatch) -> None:
    """A planted error: enumeration sees it."""
    protocol = CircularHistogram(6, 0.5, 6)

    def held_of(self, counts):
        result = np.empty(self.domain)
        begins = (
            np.arange(self.blocks) * self.width + np.arange(self.width)[:, None]
        ) % self.domain
        result[begins] = self.base.held_of(counts)
        return result

    monkeypatch.setattr(Blocks, "held_of", held_of)
    assert np.abs(Enumerated(protocol, (1, 2, 3)).mean() - np.eye(6)).max() > 0.05


@pytest.mark.parametrize(
    "names", ["GRR", "SubsetSelection", ("SubsetSelection", "GRR", "GRR", "SubsetSelection", "GRR")]
)
def test_variances_of_an_even_population_are_exact(names) -> None:
    """Where no pairs of blocks differ from others, and without padding."""
    protocol, users = CircularHistogram(12, 1.0, 12, oracle=names), (3, 4, 5, 6, 7)
    twin = Enumerated(protocol, users)
    covariance = np.zeros((12, 12))
    for n, chances, effects in zip(users, twin.chances, twin.effects, strict=True):
        even = chances.mean(axis=1)
        covariance += ((effects.T * even) @ effects - np.outer(even @ effects, even @ effects)) / n
    first, last = all_ranges(12)
    np.testing.assert_allclose(
        protocol._own_range_variance(first, last, np.array(users, dtype=float)),
        quadratic(indicators(first, last, 12), covariance),
        rtol=1e-6,
        atol=1e-12,
    )


def arrangements(counts: tuple[int, ...]):
    """All distinct ways to give the people 0 .. n - 1 to groups of these sizes."""
    if len(counts) == 1:
        yield (0,) * counts[0]
        return
    n = sum(counts)
    for chosen in itertools.combinations(range(n), counts[-1]):
        for rest in arrangements(counts[:-1]):
            others = iter(rest)
            yield tuple(
                len(counts) - 1 if person in chosen else next(others) for person in range(n)
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "people"),
    [
        (
            CircularHistogram(
                6, 1.0, 6, (2, 3, 6), ("GRR", "OLH", "SubsetSelection"), ("1/2", "1/4", "1/4")
            ),
            (0, 0, 0, 1, 3, 3, 4, 5),
        ),
        (
            CircularHistogram(
                4, 2.0, 6, (2, 3, 6), ("OLH", "GRR", "ProjectiveGeometry"), ("1/2", "1/4", "1/4")
            ),
            (0, 0, 0, 0, 0, 1, 3, 3),
        ),
        (
            CircularHistogram(5, 1.0, 6, (3, 6), "SubsetSelection", ("1/4", "3/4")),
            (4, 4, 4, 4, 2, 2, 1, 0),
        ),
        (
            CircularHistogram(9, 0.5, 12, (4, 12), "SubsetSelection", ("1/2", "1/2")),
            (8, 8, 8, 2),
        ),
        (CircularHistogram(4, 0.5, 6, (6,), "GRR"), (0, 1, 1, 1)),
        (CircularHistogram(7, 2.0, 8, (4, 8), (lopsided(2.0), "GRR")), (0, 0, 3, 6)),
    ],
    ids=lambda value: named(value) if isinstance(value, CircularHistogram) else "",
)
def test_the_error_for_a_population_is_the_enumerated_one(protocol, people) -> None:
    """Eight people or fewer: over all ways to give them to levels, and all reports that they may
    send then.

    But for the n / (n - 1) by which samples of so few vary more: predictions are for many users.
    """
    d, n, people = protocol.domain, len(people), np.array(people)
    users = tuple(round(n * weight / WORD) for weight in protocol.part_weights)
    twin, (first, last) = Enumerated(protocol, users), all_ranges(d)
    ranges = indicators(first, last, d)
    # For each level and person: the mean and the variance of what they add to each range.
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
        protocol.linear_variance(n, ranges, f), total, rtol=1e-6, atol=1e-9 * total.max()
    )
    for workload in WORKLOADS:
        expected = math.sqrt(total[of_workload(workload, first, last)].mean())
        assert protocol.average_rmse(n, workload, f) == pytest.approx(expected, rel=1e-6)
        wrong = protocol.average_rmse(n, workload, np.roll(f, 1))
        # The population matters
        assert (f[0] == f[-1]) or wrong != pytest.approx(expected, rel=1e-6)


# -------------------------------------------------------------------------------------- simulated


class Simulated:
    """The mean squared error over all ranges, with the standard error of that, and of each prefix:
    for a population of n.
    """

    def __init__(
        self, protocol: CircularHistogram, held: np.ndarray, repeats: int, seed: int, server=None
    ) -> None:
        rng, d, n = np.random.default_rng(seed), protocol.domain, int(held.sum())
        server = server or protocol
        reports = protocol.privatize(np.tile(np.repeat(np.arange(d), held), repeats), rng)
        squares, errors = np.zeros(repeats), np.zeros((repeats, d))
        for k in range(repeats):
            sent = server.aggregate(reports[k * n : (k + 1) * n])
            errors[k] = np.cumsum(server.estimate(sent).frequencies - held / n)
            sums = np.concatenate([[0.0], errors[k]])
            # Over all pairs of cuts
            squares[k] = (len(sums) * (sums**2).sum() - sums.sum() ** 2) / (d * (d + 1) / 2)
        self.mean, self.error = squares.mean(), squares.std(ddof=1) / math.sqrt(repeats)
        self.bias = np.abs(errors[:, :-1].mean(axis=0)) / (
            errors[:, :-1].std(axis=0) / math.sqrt(repeats)
        )

    def rejects(self, rmse: float) -> bool:
        """A false alarm rate of 1e-6 in all: 4.95 standard errors for the mean and, by Bonferroni,
        5.95 for up to 99 prefixes.

        Another 0.4% of the root is for what a prediction from the expected numbers of users of the
        levels neglects.
        """
        far = abs(self.mean / rmse**2 - 1) > 4.95 * self.error / rmse**2 + 0.008
        return bool(far or self.bias.max() > 5.95)

    def tolerance(self) -> float:
        """Of the root, relative."""
        return 4.95 * self.error / self.mean / 2 + 0.004


SIMULATED = [
    CircularHistogram(16, 0.5, 16, (2, 4, 16)),
    CircularHistogram(13, 1.1, 16, oracle=("GRR", "OLH", "SubsetSelection", "ProjectiveGeometry")),
    CircularHistogram(64, 1.1, 64, (4, 16, 64), "ProjectiveGeometry", ("1/2", "3/10", "1/5")),
    CircularHistogram(
        64, 3.0, 70, (5, 14, 70), ("GRR", "ProjectiveGeometry", "ProjectiveGeometry")
    ),
    CircularHistogram(100, 0.5, 108, (2, 6, 108), ("GRR", "OLH", "SubsetSelection")),
]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SIMULATED, ids=named)
def test_predictions_against_simulation(protocol) -> None:
    """All ranges, even populations: within 3%, unbiased."""
    d = protocol.domain
    held = np.full(d, max(1, 800 // d))
    predicted = protocol.average_rmse(int(held.sum()), "all ranges")
    found = Simulated(protocol, held, 3000 if d < 64 else 2000, 20_250_101)
    assert found.tolerance() < 0.03
    assert not found.rejects(predicted)
    assert found.rejects(predicted * 1.06)
    assert found.rejects(predicted / 1.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", [CircularHistogram(16, 4.0, 16, (4, 16)), CircularHistogram(13, 4.0, 15)], ids=named
)
def test_predictions_for_a_population_against_simulation(protocol) -> None:
    """Nearly everybody holds one item: the error is not that of an even population, and is what is
    predicted.
    """
    d = protocol.domain
    held = np.r_[3, 400, np.full(d - 2, 3)]
    n = int(held.sum())
    predicted = protocol.average_rmse(n, "all ranges", held / n)
    found = Simulated(protocol, held, 3000, 20_250_102)
    assert found.tolerance() < 0.035
    assert not found.rejects(predicted)
    assert found.rejects(protocol.average_rmse(n, "all ranges"))


@pytest.mark.slow
def test_a_wrong_probability_is_rejected() -> None:
    """A planted error: clients of another epsilon than the server believes, by 8%."""
    server, client = (CircularHistogram(16, epsilon, 16, (4, 16)) for epsilon in (1.1, 1.012))
    held = np.r_[np.full(8, 90), np.full(8, 10)]
    predicted = server.average_rmse(800, "all ranges", held / 800)
    assert not Simulated(server, held, 1500, 5).rejects(predicted)
    assert Simulated(client, held, 1500, 5, server).rejects(predicted)


# ------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize("domain", [1, 2, 3, 5, 7, 16, 17, 21, 100])
def test_the_whole_range_is_one_and_certain(domain) -> None:
    rng = np.random.default_rng(domain)
    for protocol in (
        CircularHistogram(domain, 1.1),
        CircularHistogram(domain, 1.1, 2 * domain + 4, oracle="GRR"),
    ):
        for held in (1, 50, 1000):
            estimate = protocol.estimate(protocol.simulate(np.full(domain, held), rng))
            assert estimate.range(0, domain - 1) == pytest.approx(1, abs=1e-9)
            assert estimate.answer(Between(0, domain - 1)).variance == 0
            assert estimate.answer(Between(0, domain - 1)).interval() == pytest.approx(
                (1, 1), abs=1e-9
            )
            assert estimate.linear(np.ones(domain)).variance <= 1e-15
            estimate.quantile_interval([0.0, 0.5, 1.0])


@pytest.mark.parametrize("domain", [1, 2, 3, 5, 17])
def test_tiny_domains(domain) -> None:
    protocol, rng = CircularHistogram(domain, 1.0), np.random.default_rng(0)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(np.arange(4000) % domain, rng))
    )
    first, last = all_ranges(domain)
    truth = np.bincount(np.arange(4000) % domain, minlength=domain).cumsum() / 4000
    errors = estimate.range(first, last) - (truth[last] - np.r_[0, truth][first])
    assert (
        np.abs(errors) <= 5.9 * np.sqrt(estimate.answer(Between(first, last)).variance) + 1e-9
    ).all()
    for workload in WORKLOADS:
        assert (protocol.average_rmse(4000, workload) > 1e-6) == (
            domain > (2 if workload == "ranges" else 1)
        )
    assert protocol.audit().holds


def test_one_user_of_a_large_domain() -> None:
    """Of one level, and of no other: finite values; variances are infinite where its blocks tell
    nothing.
    """
    protocol = CircularHistogram(1000, 1.0)
    reports = protocol.privatize(np.full(300, 999), np.random.default_rng(0))
    for k, level in enumerate(protocol.parts):
        alone = protocol.estimate(protocol.aggregate(reports[reports["level"] == k][:1]))
        assert np.isfinite(alone.frequencies).all()
        assert alone.range(0, 999) == pytest.approx(1)
        length = np.arange(1, 1000)
        assert (
            np.isfinite(alone.answer(Between(0, length - 1)).variance)
            == (length % level.width == 0)
        ).all()


@pytest.mark.parametrize("size", [1 << 14, 1 << 18, 3 << 16])
def test_long_ranges_of_large_circular_hierarchies(size) -> None:
    """Whether blocks tell a range is decided without rounding: all of one level only, and two whose
    widths share a factor.
    """
    blocks = (2, size // 64, size // 16, size)
    protocol = CircularHistogram(size, 1.0, size, blocks, "ProjectiveGeometry")
    length = np.unique(
        np.r_[np.arange(1, 200), size // 2 + np.arange(-3, 4), size - np.arange(1, 200)]
    )
    for users, step in (
        ((5.0, 0, 0, 0), size // 2),
        ((0, 3.0, 4.0, 0), 16),
        ((0, 7.0, 0, 0), 64),
        ((1.0, 0, 0, 2.0), 1),
    ):
        found = protocol._own_range_variance(np.zeros_like(length), length - 1, np.array(users))
        assert (np.isfinite(found) == (length % step == 0)).all()
        assert (found > 0).all()
    odd = np.zeros((2, size))
    odd[0, :-1], odd[1, : size - 16] = 1.0, 1.0
    assert np.isfinite(protocol._own_linear_variance(odd, np.array([0, 3.0, 4.0, 0]))).tolist() == [
        False,
        True,
    ]


@pytest.mark.slow
def test_privatize_and_simulate_agree() -> None:
    """Means and variances of all counts, over a population that is not even; 5.5 standard errors,
    for fewer than 200 counts.
    """
    protocol, held = (
        CircularHistogram(5, 1.0, 6, oracle=("GRR", "OLH", "SubsetSelection")),
        np.array([20, 0, 5, 9, 1]),
    )
    rng, runs = np.random.default_rng(5), 1500
    one = np.array([protocol.simulate(held, rng).counts for _ in range(runs)], dtype=float)
    reports = protocol.privatize(np.tile(np.repeat(np.arange(5), held), runs), rng).reshape(
        runs, -1
    )
    two = np.array([protocol.aggregate(row).counts for row in reports], dtype=float)
    scale = np.sqrt((one.var(axis=0) + two.var(axis=0)) / runs) + 1e-12
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5.5 * scale).all()
    random = one.var(axis=0) > 1e-9
    assert random.sum() < 200
    assert np.abs(np.log(one.var(axis=0)[random] / two.var(axis=0)[random])).max() < 0.5


def test_levels_of_probability_zero() -> None:
    protocol = CircularHistogram(9, 1.0, 12, (3, 6, 12), "GRR", (0, "1/2", "1/2"))
    reports = protocol.privatize(np.arange(900) % 9, np.random.default_rng(0))
    assert set(reports["level"].tolist()) == {1, 2}
    for aggregate in (
        protocol.aggregate(reports),
        protocol.simulate(np.full(9, 100), np.random.default_rng(0)),
    ):
        assert [bool(c) for c in aggregate.counts[:3]] == [False, True, True]
        assert np.isfinite(
            protocol.estimate(aggregate).answer(Between(0, np.arange(9))).variance
        ).all()
    assert math.isfinite(protocol.average_rmse(100))


def test_divisors() -> None:
    for number in (*range(2, 200), 720, 65_536, 1 << 24, 30_030, 65_537):
        known = tuple(k for k in range(2, number + 1) if number % k == 0) if number < 1000 else None
        found = divisors(number)
        assert found == (known or found)
        assert list(found) == sorted(set(found))
        assert found[-1] == number
        assert all(number % k == 0 and number // k in (*found, 1) for k in found)


def test_round_up() -> None:
    for domain in (*range(1, 3000), 65_535, 65_536, 65_537, 10**6, (1 << 24) - 1, 1 << 24):
        circle = round_up(domain)
        assert max(2, domain) <= circle
        assert circle - domain <= max(3, domain / 16)
        assert domain < 8 or circle % 4 == 0
        assert circle <= 1 << 25
        # Powers of two stay
        assert (circle > domain) <= (domain & (domain - 1) != 0 or domain == 1)
        assert round_up(circle) == circle or domain < 8


def test_parameters() -> None:
    protocol = CircularHistogram(9, 1.0, 12, (4, 12), ("GRR", "OLH"), ("1/3", "2/3"))
    lists = CircularHistogram(
        np.int64(9), 1.0, np.int64(12), [np.int64(4), 12], ["GRR", "OLH"], ["1/3", "2/3"]
    )
    assert protocol == lists
    assert hash(protocol) == hash(lists)
    assert protocol.parameters == lists.parameters
    assert protocol.circle == 12
    assert [level.width for level in protocol.parts] == [3, 1]
    assert [type(level.base).__name__ for level in protocol.parts] == ["GRR", "OLH"]
    assert protocol.report_bits == 1 + max(level.report_bits for level in protocol.parts)
    assert protocol.parts[0].report_bits == 2 + 2
    # All that decides what a report means is in the parameters.
    others = [
        CircularHistogram(9, 1.0, 12, (3, 12), ("GRR", "OLH"), ("1/3", "2/3")),
        CircularHistogram(9, 1.0, 16, (4, 16), ("GRR", "OLH"), ("1/3", "2/3")),
        CircularHistogram(9, 1.0, 12, (4, 12), ("OLH", "GRR"), ("1/3", "2/3")),
        CircularHistogram(9, 1.0, 12, (4, 12), ("GRR", "OLH"), ("2/3", "1/3")),
        CircularHistogram(10, 1.0, 12, (4, 12), ("GRR", "OLH"), ("1/3", "2/3")),
    ]
    assert len({p.channel.signature for p in (protocol, *others)}) == 6


@pytest.mark.parametrize(
    "arguments",
    [
        {"circle": 8},
        {"circle": 1 << 26},
        {"circle": 12.0},
        {"circle": True},
        {"circle": "12"},
        {"blocks": (3, 6)},
        {"blocks": (5, 12)},
        {"blocks": (1, 12)},
        {"blocks": (12, 3)},
        {"blocks": (3, 3, 12)},
        {"blocks": ()},
        {"blocks": (3.0, 12)},
        {"blocks": (True, 12)},
        {"oracle": "OUE"},
        {"oracle": "HRR"},
        {"oracle": "SUE"},
        {"oracle": "grr"},
        {"oracle": None},
        {"oracle": 5},
        {"oracle": ("GRR", "GRR")},
        {"oracle": ("GRR",) * 4 + ("NOPE",)},
        {"oracle": ("GRR",) * 4 + (["GRR"],)},
        {"probabilities": ("1/2", "1/2")},
        {"probabilities": ("1/5", "1/5", "1/5", "1/5", "2/5")},
        {"probabilities": (0.1, 0.2, 0.3, 0.4, 0.0)},
    ],
    ids=str,
)
def test_wrong_parameters(arguments) -> None:
    with pytest.raises((ValueError, TypeError)):
        CircularHistogram(9, 1.0, **{"circle": 12, **arguments})


def test_blocks_that_do_not_divide_the_domain() -> None:
    with pytest.raises(ValueError, match="equal parts"):
        Blocks(12, 1.0, 5, "GRR")
    with pytest.raises(ValueError, match="counts cells"):
        Blocks(12, 1.0, 4, "OUE")


def test_the_audit_is_the_worst_level() -> None:
    protocol = CircularHistogram(6, 1.3, 6, (2, 3, 6), ("GRR", "SubsetSelection", "OLH"))
    ratios = [
        ratio_of(level_twin(level).table, [(a, b) for a in range(6) for b in range(a)])
        for level in protocol.parts
    ]
    assert protocol.audit().ratio == max(ratios)
    assert len(set(ratios)) > 1


@pytest.mark.parametrize("n", [0, 1.5, None])
def test_wrong_numbers_of_users(n) -> None:
    with pytest.raises(ValueError, match="n must be a number of users"):
        CircularHistogram(9, 1.0).average_rmse(n)


def test_wrong_populations() -> None:
    protocol = CircularHistogram(4, 1.0)
    for frequencies in (
        [0.5, 0.5],
        [0.5, 0.5, 0.5, -0.5],
        [1.0, 1.0, 0, 0],
        [math.nan, 1, 0, 0],
        np.full((1, 4), 0.25),
    ):
        with pytest.raises(ValueError, match="frequencies must be"):
            protocol.average_rmse(100, "ranges", frequencies)
    large = CircularHistogram(protocol.largest_population + 1, 1.0)
    with pytest.raises(ValueError, match="at most 1024"):
        large.average_rmse(100, "ranges", np.full(large.domain, 1 / large.domain))


@pytest.mark.parametrize("circle", [65_537, 69_632, 100_352, 131_072, 114_688 * 3])
def test_large_circles_have_fewer_levels(circle) -> None:
    """Each of at least four times the blocks before, as close to that as divisors are."""
    blocks, every = default_blocks(circle), divisors(circle)
    assert blocks[-1] == circle
    for few, many in itertools.pairwise(blocks):
        assert few == max(number for number in every if 4 * number <= many)
    assert all(4 * number > blocks[0] for number in every)
    assert CircularHistogram(circle, 1.0, circle).blocks == blocks


def test_fewer_levels_err_less() -> None:
    for domain in (70_000, 1 << 18):
        few = CircularHistogram(domain, 1.0)
        many = CircularHistogram(domain, 1.0, blocks=divisors(few.size))
        assert few.average_rmse(10**6) < many.average_rmse(10**6)


@pytest.mark.parametrize("name", ["GRR", "OLH", "SubsetSelection", "ProjectiveGeometry"])
def test_what_blocks_can_have_counted(name) -> None:
    """All counts of up to two reports, by listing the reports; of all small counts no others are
    accepted.
    """
    level = Blocks(6, 0.1, 3, name) if name != "SubsetSelection" else Blocks(10, 0.1, 5, name)
    reports = level_twin(level).reports
    ones = np.array([level.aggregate(reports[r : r + 1]).counts for r in range(len(reports))])
    assert not isinstance(level.base, SubsetSelection) or level.base.size == 2
    two = {(a + b).tobytes() for a in ones for b in ones}
    size, rng = math.prod(level.counts_shape), np.random.default_rng(0)
    every = (ones[:, None] + ones).reshape(-1, *level.counts_shape)
    for number, counts in enumerate(every[:: max(1, len(every) // 300)]):
        assert level.consistent(Aggregate(level.signature, 2, counts))
        assert not level.consistent(Aggregate(level.signature, 3, counts))
        moved = counts.ravel().copy()
        for _ in range(3):  # one of the counts is moved to another cell
            held = rng.choice(np.flatnonzero(moved))
            moved[held] -= 1
            moved[rng.integers(size)] += 1
            wanted = moved.reshape(level.counts_shape).tobytes() in two
            assert (
                level.consistent(
                    Aggregate(level.signature, 2, moved.reshape(level.counts_shape).copy())
                )
                == wanted
            ), number
    for change in (1 << 62, -1):
        wrong = every[0].copy()
        wrong.ravel()[:] += change
        assert not level.consistent(Aggregate(level.signature, 2, wrong))
    empty = np.zeros(level.counts_shape, dtype=np.int64)
    assert level.consistent(Aggregate(level.signature, 0, empty))


# ------------------------------------------------------------------- answers of uneven populations


def zero_inflated(domain: int, n: int) -> np.ndarray:
    tail = np.exp(-np.arange(domain) / (domain / 10))
    return np.random.default_rng(3).multinomial(
        n, 0.6 * (np.arange(domain) == 0) + 0.4 * tail / tail.sum()
    )


@pytest.mark.parametrize(
    ("protocol", "within"),
    [
        (CircularHistogram(12, 4.0, oracle="GRR"), 1e-9),
        (CircularHistogram(12, 1.0, blocks=(2, 12)), 1e-9),
        (CircularHistogram(13, 4.0, 16, (4, 16), (lopsided(4.0), "GRR")), 1e-9),
        (CircularHistogram(51, 8.0, 60, oracle="SubsetSelection"), 0.15),  # padded
        (CircularHistogram(600, 8.0, oracle="GRR"), 0.05),  # long ranges
    ],
    ids=lambda value: named(value) if isinstance(value, CircularHistogram) else "",
)
def test_answers_have_the_variances_of_the_estimated_population(
    protocol, within, monkeypatch
) -> None:
    """Those of `variances_from` at the nearest distribution; where it takes too long, of an even
    one.
    """
    d, rng = protocol.domain, np.random.default_rng(1)
    estimate = protocol.estimate(protocol.simulate(zero_inflated(d, 5000), rng))
    first, last = np.triu_indices(d)
    some = rng.permutation(len(first))[:200]
    first, last = np.append(first[some], [0, 0]), np.append(last[some], [d - 2, d - 1])
    item = np.arange(d)
    inside = (item >= first[:, None]) & (item <= last[:, None])
    users = protocol.channel.part_users(estimate.aggregate)
    expected = protocol.variances_from(
        5000, users, inside.astype(float), norm_sub(estimate.frequencies)
    )
    found = estimate.answer(Between(first, last)).variance
    some = last - first + 1 < d
    np.testing.assert_allclose(found[some], expected[some], rtol=within)
    assert (found[~some] == 0).all()
    np.testing.assert_allclose(np.median(found[some] / expected[some]), 1, rtol=within / 10)
    monkeypatch.setattr(CircularHistogram, "largest_plugged_in", d - 1)
    even = estimate.answer(Between(first, last)).variance
    assert np.abs(even[some] / found[some] - 1).max() > 0.1


def test_oracles_over_finite_fields_are_as_their_mean_over_numberings() -> None:
    """Where all users are in one of 12 of 13 points: within a fifth, 2 % on average."""
    protocol, at = CircularHistogram(9, 0.5, 12, (12,)), np.eye(9)[8]
    assert isinstance(protocol.parts[0].base, ProjectiveGeometry)
    first, last = all_ranges(9)
    ranges = indicators(first, last, 9)
    twin = Enumerated(protocol, (100,))
    _, variance = moments(twin.chances[0], twin.effects[0] @ ranges.T / 100)
    found = protocol.variances_from(100, np.array([100.0]), ranges, at)
    whole = last - first + 1 == 9
    np.testing.assert_allclose(found[~whole], 100 * variance[8][~whole], rtol=0.2)
    assert found[~whole].mean() == pytest.approx(100 * variance[8][~whole].mean(), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_intervals_cover_where_most_users_are_at_one_end(epsilon: float) -> None:
    protocol, held = optimise(100, epsilon, 20_000).protocol, zero_inflated(100, 20_000)
    assert isinstance(protocol, CircularHistogram)
    truth, last, covered, narrow = np.cumsum(held)[:-1] / 20_000, np.arange(99), [], []
    for seed in range(60):
        estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(seed)))
        low, high = estimate.answer(Between(np.zeros_like(last), last)).interval()
        middle, half = (low + high) / 2, (high - low) / 2
        covered.append(np.mean(np.abs(truth - middle) <= half))
        narrow.append(np.mean(np.abs(truth - middle) <= half * 0.6))  # planted
    assert np.mean(covered) >= 0.91
    assert np.mean(narrow) < 0.88
