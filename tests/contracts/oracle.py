"""What every frequency oracle promises.

An oracle's tests are a subclass of `OracleContract` that says how it is made and gives its twin:
all possible reports, with their exact probabilities for every item, from the definition of the
protocol in the literature and the integer weights that the oracle publishes.

Of false alarms, see `tests.goodness_of_fit`.
"""

import copy
import hashlib
import json
import math
import pickle
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from frequency import Aggregate, IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.core.protocol import channel_of
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD, Constant, Tape

LN3 = math.log(3)


class Twin(NamedTuple):
    """``table[r][v]`` is Pr[reports[r] | value v], exact."""

    reports: np.ndarray
    table: list


class Enumerated(NamedTuple):
    """A twin with, for every report alone, the estimate (reports, items)."""

    oracle: object
    reports: np.ndarray
    table: list
    P: np.ndarray
    E: np.ndarray


def reports_of(oracle, rows):
    """A list of tuples as reports."""
    return np.array(rows, dtype=oracle.report_dtype)


def subset_bytes(items, domain):
    """A set of items as bytes, least significant bit first."""
    number = sum(1 << item for item in items)
    return list(number.to_bytes(-(-domain // 8), "little"))


def weights_of(oracle, *names):
    """Published integer weights."""
    return [int(oracle.parameters[name]) for name in names]


def subsets(items):
    """All of them, the smaller ones first."""
    return [chosen for size in range(len(items) + 1) for chosen in combinations(items, size)]


def one_by_one(oracle, reports):
    return [oracle.aggregate(reports[r : r + 1]) for r in range(len(reports))]


@cache
def enumerated(contract, domain, epsilon):
    case = contract()
    oracle = case.make(domain, epsilon)
    twin = case.twin(oracle)
    P = np.array([[float(p) for p in row] for row in twin.table])
    E = np.array([oracle.estimate(a).frequencies for a in one_by_one(oracle, twin.reports)])
    return Enumerated(oracle, twin.reports, twin.table, P, E)


def codes(reports):
    """Reports of at most 8 bytes as integers."""
    size = reports.dtype.itemsize
    wide = np.zeros((len(reports), 8), dtype=np.uint8)
    wide[:, :size] = np.ascontiguousarray(reports).view(np.uint8).reshape(len(reports), size)
    return wide.view("<u8").ravel()


def positions(reports, known):
    """Where each report is in ``known``; an assertion fails if one is not."""
    key = codes(known)
    order = np.argsort(key)
    assert (np.diff(key[order]) > 0).all(), "the twin lists a report twice"
    found = order[np.minimum(np.searchsorted(key[order], codes(reports)), len(known) - 1)]
    assert (key[found] == codes(reports)).all(), "a report that the twin does not know"
    return found


def uniform_words(value, k):
    """Words at both ends of the cell that stands for ``value`` among k equally likely ones."""
    step = WORD // k
    return [value * step, value * step + step - 1]


def rejected_words(k):
    """A word that stands for none of k equally likely values, if there is one: another must be
    drawn.
    """
    return [WORD // k * k] if WORD % k else []


def choice_words(k, truth, lie):
    """(word, outcome) at both sides of every threshold: the first k - 1 intervals of ``lie`` words
    are lies, the rest the truth.
    """
    assert truth + (k - 1) * lie == WORD
    ends = [(i * lie, i + 1 if i < k - 1 else 0) for i in range(k)] + [
        (i * lie - 1, i) for i in range(1, k)
    ]
    return [*ends, (WORD - 1, 0)]


def planes(number, threshold):
    """The words by which `bernoulli_bits` sees all 64 uniform numbers be ``number``: no more than
    it needs for ``threshold``.
    """
    lowest = (threshold & -threshold).bit_length() - 1
    return [(WORD - 1) * (number >> place & 1) for place in range(63, lowest - 1, -1)]


def exponential_below(epsilon):
    """A rational at most exp(epsilon), to 80 digits; Decimal.exp is correctly rounded."""
    context = Context(prec=80, Emax=10**6, Emin=-(10**6))
    exact = (
        Decimal(epsilon)
        if isinstance(epsilon, (int, float))
        else context.divide(epsilon.numerator, epsilon.denominator)
    )
    return Fraction(context.next_minus(context.exp(context.next_minus(context.plus(exact)))))


def ratio_of(table, pairs):
    """The largest ratio of two entries of a row over pairs of values."""
    worst = Fraction(1)
    for row in table:
        for v, u in pairs:
            low, high = sorted((row[v], row[u]))
            if high:
                if not low:
                    return math.inf
                worst = max(worst, high / low)
    return worst


def moments(P, X):
    """Mean and variance of the columns of X (reports, k) by value: two (values, k) tables."""
    mean = P.T @ X
    return mean, P.T @ X**2 - mean**2


def close(found, expected, scale):
    """Equal up to rounding of numbers as large as ``scale``."""
    np.testing.assert_allclose(
        found, expected, rtol=1e-9, atol=1e-11 + 2e-13 * float(np.max(np.abs(scale)))
    )


def some_weights(domain, seed=0):
    """Rows of weights: random, a range, one item, all."""
    rng = np.random.default_rng(seed)
    rows = [
        rng.normal(size=domain),
        rng.normal(size=domain),
        np.arange(domain) < (domain + 1) // 2,
        np.ones(domain),
    ]
    return np.array([*rows, np.arange(domain) == domain - 1], dtype=float)


class OracleContract:
    """The suite; see the module. ``make(domain, epsilon)`` and ``twin(oracle)`` are for the
    subclass to write.
    """

    domains: tuple[int, ...] = (1, 2, 3, 5)
    """Those whose reports are listed, the largest last. What needs one domain takes `few` items,
    and `other` ones, so that a protocol may have a smallest domain of its own.
    """
    epsilons: tuple[float, ...] = (0.01, 0.1, 1, LN3, 3, 10, 1e-6, 50, 700)
    big_domains: tuple[int, ...] = (20, 1000)
    symmetric = True
    """The variance of an estimate depends on the item's own frequency alone, and estimates are
    unbiased for every seed.
    """
    tight = True
    """The privacy loss is used up."""

    def make(self, domain, epsilon):
        raise NotImplementedError

    def twin(self, oracle):
        raise NotImplementedError

    def fits(self, domain, epsilon):
        """Whether all reports can be listed."""
        return True

    def pairs(self, oracle):
        """The values that must not be told apart."""
        return [(v, u) for v in range(oracle.domain) for u in range(v)]

    def tapes(self, oracle):
        """(value, words, report or predicate): what these words must give, on both sides of every
        threshold.
        """
        return []

    @property
    def few(self):
        """The smallest domain of at least three items."""
        return min((domain for domain in self.domains if domain >= 3), default=3)

    @property
    def other(self):
        """Another domain, of more than one item."""
        return next((domain for domain in self.domains if domain not in (1, self.few)), 2)

    @classmethod
    def small(cls):
        grid = [
            (d, e) for d, e in product(cls.domains, cls.epsilons) if d in (2, 5) or e in (0.1, 1, 3)
        ]
        return [(d, e) for d, e in grid if cls().fits(d, e)]

    def pytest_generate_tests(self, metafunc):
        grids = {
            "case": self.small(),
            "sampled": [(d, e) for d, e in self.small() if d > 1 and e in (0.1, 1, 3)],
            "big": [
                *([(1, 1)] if 1 in self.domains else []),
                (self.few, 3),
                *((d, e) for d, e in ((20, 0.1), (1000, 1)) if d in self.big_domains),
            ],
        }
        for name, grid in grids.items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, grid, ids=[f"D{d}-eps{e:.3g}" for d, e in grid])

    def enumerated(self, case):
        return enumerated(type(self), *case)

    def values(self, domain, users, seed=3):
        rng = np.random.default_rng(seed)
        return np.minimum(rng.geometric(min(1.0, 3 / domain), size=users) - 1, domain - 1)

    # ---------------------------------------------------------------------------- the distribution

    def test_twin_is_a_distribution(self, case):
        """The published weights are a distribution, exactly; and the oracle accepts all of these
        reports and no others.
        """
        oracle, reports, table, _, _ = self.enumerated(case)
        assert [sum(column) for column in zip(*table, strict=True)] == [1] * oracle.domain
        assert all(p >= 0 for row in table for p in row)
        assert oracle.aggregate(reports).n == len(reports)
        size = oracle.report_dtype.itemsize
        assert 2**oracle.report_bits >= len(reports)
        assert oracle.report_bits <= 8 * size
        if size <= 2:
            everything = np.arange(1 << 8 * size, dtype=f"<u{size}").view(oracle.report_dtype)
            accepted = set(codes(everything[channel_of(oracle).possible(everything)]).tolist())
            assert accepted == set(codes(reports).tolist())

    def test_audit_is_the_enumerated_ratio(self, case):
        oracle, _, table, _, _ = self.enumerated(case)
        audit = oracle.audit()
        assert audit.ratio == ratio_of(table, self.pairs(oracle))
        assert audit.holds

    def test_privacy(self):
        """What is allowed is at most exp(epsilon), by directed rounding; what is sampled is
        allowed, and not much less.
        """
        for domain, epsilon in product((*self.domains, *self.big_domains), self.epsilons):
            if domain in (2, 1000) or epsilon in (0.1, 3):
                self.check_privacy(self.make(domain, epsilon))

    def check_privacy(self, oracle):
        audit = oracle.audit()
        assert isinstance(audit.ratio, Fraction)
        assert isinstance(audit.allowed, Fraction)
        assert audit.allowed == oracle.max_ratio
        epsilon = Fraction(oracle.epsilon)
        assert audit.allowed <= exponential_below(
            epsilon if not isinstance(oracle.epsilon, float) else oracle.epsilon
        )
        assert 1 <= audit.ratio <= audit.allowed
        assert audit.holds
        if oracle.domain > 1 and oracle.epsilon <= 10 and self.tight:
            assert math.log1p(float(audit.ratio - 1)) >= oracle.epsilon * (1 - 1e-6)

    def test_epsilon_may_be_exact(self):
        if self.tight:
            oracle = self.make(self.few, Fraction(11, 10))
            assert oracle.audit().allowed <= exponential_below(Fraction(11, 10))
            assert oracle.parameters["alpha"] == self.make(self.few, "1.1").parameters["alpha"]

    # ------------------------------------------------------------------------------- the estimator

    def test_estimates_are_unbiased(self, case):
        oracle, _, _, P, E = self.enumerated(case)
        close(P.T @ E, np.eye(oracle.domain), E)

    def test_estimate_is_the_mean_of_the_estimates_of_its_reports(self, case):
        """So what is true of one report is true of any number of independent ones."""
        oracle, reports, _, _, E = self.enumerated(case)
        drawn = np.random.default_rng(5).integers(0, len(reports), size=7)
        estimate = oracle.estimate(oracle.aggregate(reports[drawn]))
        close(estimate.frequencies, E[drawn].mean(axis=0), E)
        assert estimate.n == 7

    def test_variance_is_the_enumerated_one(self, case):
        """For all items and holders: n variance(n, 1) for the holder's own item, n variance(n, 0)
        for others, and mixtures.
        """
        oracle, _, _, P, E = self.enumerated(case)
        _, V = moments(P, E)
        own = np.eye(oracle.domain, dtype=bool)
        if not self.symmetric:  # then it is the mean over items
            V = np.where(own, V[own].mean(), V[~own].mean() if oracle.domain > 1 else 0.0)
        close(V[own], oracle.variance(1, 1.0), E**2)
        close(V[~own], oracle.variance(1, 0.0), E**2)
        if oracle.domain > 1:
            grid = np.array([0.0, 0.25, 1.0])
            close(7 * oracle.variance(7, grid), V[0, 0] * grid + V[1, 0] * (1 - grid), E**2)
            assert isinstance(oracle.variance(7, 0.25), float)

    def test_variances_of_sums_are_unbiased(self, case):
        """For every item held, the mean over reports of `linear(w).variance` (before it is cut at
        0) is the enumerated variance.
        """
        oracle, reports, _, P, E = self.enumerated(case)
        for items in (None, np.arange(oracle.domain)[:0:-1]):
            chosen = E if items is None else E[:, items]
            if chosen.shape[1] == 0:
                continue
            w = some_weights(chosen.shape[1])
            found = np.array(
                [
                    oracle.linear_variances_of(w, aggregate, row, items)
                    for aggregate, row in zip(one_by_one(oracle, reports), chosen, strict=True)
                ]
            )
            sums = chosen @ w.T
            # Where estimates are large each report's variance has terms as much larger that cancel
            terms = np.concatenate([sums**2, found]) * max(1.0, np.abs(chosen).max())
            close(P.T @ found, moments(P, sums)[1], terms)
            # Of several reports it is the sum of theirs over n^2: unbiased for every mixed
            # population too.
            drawn = np.random.default_rng(6).integers(0, len(reports), size=6)
            aggregate = oracle.aggregate(reports[drawn])
            estimate = oracle.estimate(aggregate, items)
            together = oracle.linear_variances_of(w, aggregate, estimate.frequencies, items)
            # A mean over users is one of large terms when estimates are large
            scale = len(drawn) * found * max(1.0, np.abs(chosen).max())
            close(36 * together, found[drawn].sum(axis=0), scale)
            value, variance = estimate.linear(w)
            close(value, w @ estimate.frequencies, chosen)
            close(36 * variance, np.maximum(36 * together, 0), scale)
            assert tuple(estimate.linear(w[0])) == pytest.approx((value[0], variance[0]))

    def test_variances_are_unbiased(self, case):
        """Before they are cut at 0."""
        oracle, reports, _, P, E = self.enumerated(case)
        found = np.array(
            [
                oracle.variances_of(a, row, None)
                for a, row in zip(one_by_one(oracle, reports), E, strict=True)
            ]
        )
        close(P.T @ found, moments(P, E)[1], np.concatenate([E**2, found]))

    def test_intervals_of_every_report(self, case):
        """No warnings, no negative variances, and the estimate lies inside."""
        oracle, reports, _, _, _ = self.enumerated(case)
        for aggregate in one_by_one(oracle, reports[:: max(1, len(reports) // 100)]):
            estimate = oracle.estimate(aggregate)
            assert (estimate.variances >= -1e-9 * (1 + np.abs(estimate.variances).max())).all()
            low, high = estimate.interval()
            slack = 1e-9 * (1 + np.abs(estimate.frequencies))
            assert (low <= estimate.frequencies + slack).all()
            assert (estimate.frequencies <= high + slack).all()
            assert np.isfinite([low, high]).all()

    def test_intervals_are_score_intervals(self, big):
        """Their ends f solve (estimate - f)^2 = z^2 variance(n, f)."""
        if not self.symmetric:
            return
        oracle = self.make(*big)
        estimate = oracle.estimate(
            oracle.aggregate(oracle.privatize(self.values(big[0], 50), np.random.default_rng(2)))
        )
        for confidence in (0.5, 0.95):
            z = ndtri((1 + confidence) / 2)
            for end in estimate.interval(confidence=confidence):
                scale = np.abs([estimate.frequencies, end]).max() ** 2
                close((estimate.frequencies - end) ** 2, z**2 * oracle.variance(50, end), scale)

    # --------------------------------------------------------------------------------- the sampler

    def test_sampler_has_the_distribution(self, sampled):
        oracle, reports, table, P, _ = self.enumerated(sampled)
        rng, users = np.random.default_rng(20_250_101), 20_000
        alarm = FALSE_ALARM / oracle.domain
        counts = []
        for v in range(oracle.domain):
            found = positions(oracle.privatize(np.full(users, v), rng), reports)
            counts.append(np.bincount(found, minlength=len(reports)))
            assert goodness(counts[v], P[:, v]) > alarm, v
            # The test can fail: a tenth of the probability is moved to the least likely report.
            wrong = 0.9 * P[:, v] + 0.1 * (np.arange(len(P)) == np.argmin(P[:, v]))
            assert len(reports) == 1 or goodness(counts[v], wrong) < alarm
        for v, u in product(range(oracle.domain), repeat=2):
            apart = sum(abs(row[u] - row[v]) for row in table)
            if apart > Fraction(1, 5):
                assert goodness(counts[v], P[:, u]) < alarm, (v, u)

    def test_sampler_with_the_operating_system(self):
        """Not seeded, by nature: this one alarms falsely once in a million runs."""
        case = (self.few, 1)
        oracle, reports, _, P, _ = self.enumerated(case)
        found = positions(oracle.privatize(np.full(2000, 1)), reports)
        assert goodness(np.bincount(found, minlength=len(reports)), P[:, 1]) > FALSE_ALARM
        assert (
            codes(oracle.privatize(np.full(200, 1))).tolist()
            != codes(oracle.privatize(np.full(200, 1))).tolist()
        )

    def test_extreme_words_give_possible_reports(self, sampled, monkeypatch):
        oracle, reports, _, P, _ = self.enumerated(sampled)
        for word, calls in product(
            (0, 1, WORD - 1, WORD - 2, WORD // 2, WORD // 2 - 1, WORD // 3), (1, 2, 3, 70)
        ):
            monkeypatch.setattr(
                "frequency.core.channel.bit_source", lambda rng, w=word, c=calls: Constant(w, c)
            )
            values = np.arange(oracle.domain)
            found = positions(oracle.privatize(values), reports)
            assert (P[found, values] > 0).all()

    def test_thresholds_are_where_the_weights_say(self, case, monkeypatch):
        oracle = self.enumerated(case).oracle
        for value, words, expected in self.tapes(oracle):
            tape = Tape(words, np.random.default_rng(0))
            monkeypatch.setattr("frequency.core.channel.bit_source", lambda rng, tape=tape: tape)
            report = oracle.privatize([value])[0]
            assert tape.used >= len(words)
            if callable(expected):
                assert expected(report), (value, words)
            else:
                assert report == reports_of(oracle, [expected])[0], (value, words)

    # ---------------------------------------------------------------------------------- simulation

    @pytest.mark.slow  # moments of many users, below, are quick
    def test_simulation_of_two_users_has_the_distribution(self):
        """Every pair of reports, hence the exact distribution of the aggregate."""
        oracle, reports, _, P, _ = self.enumerated((self.few, 1))
        held = np.array([0, 1, 1, *[0] * (self.few - 3)])
        counts = np.array([a.counts.ravel() for a in one_by_one(oracle, reports)])
        right: dict = {}
        wrong: dict = {}
        for r, s in product(range(len(reports)), repeat=2):
            key = (counts[r] + counts[s]).tobytes()
            right[key] = right.get(key, 0) + P[r, 1] * P[s, 2]
            wrong[key] = wrong.get(key, 0) + P[r, 1] * P[s, 1]
        place = {key: k for k, key in enumerate(right)}
        rng = np.random.default_rng(8)
        found = np.zeros(len(place), dtype=np.int64)
        for _ in range(self.simulations):
            aggregate = oracle.simulate(held, rng)
            assert aggregate.n == 2
            found[place[aggregate.counts.tobytes()]] += 1
        assert goodness(found, [right[key] for key in place]) > FALSE_ALARM
        assert goodness(found, [wrong[key] for key in place]) < FALSE_ALARM

    simulations = 3000

    @pytest.mark.parametrize("more", [False, True])
    def test_simulation_of_many_users_has_the_moments(self, more):
        """Mean and variance of every count, for populations where not all items occur."""
        domain = 5 if more and 5 in self.domains else self.few
        oracle, reports, _, P, _ = self.enumerated((domain, 1))
        held = np.resize([700, 0, 300, 50, 1], domain)
        counts = np.array([a.counts.ravel() for a in one_by_one(oracle, reports)], dtype=float)
        mean, variance = (held @ m for m in moments(P, counts))
        runs, rng = 150, np.random.default_rng(9)
        found = np.array([oracle.simulate(held, rng).counts.ravel() for _ in range(runs)])
        random = variance > 1e-9
        assert (np.abs(found - mean)[:, ~random] < 1e-6).all()
        alarm = FALSE_ALARM / (4 * random.sum())

        def alarms(mean, variance):
            score = np.abs(found.mean(axis=0) - mean)[random] / np.sqrt(variance[random] / runs)
            spread = (found.var(axis=0, ddof=1) / np.where(random, variance, 1))[random] * (
                runs - 1
            )
            low, high = (stats.chi2.ppf(tail, runs - 1) for tail in (alarm, 1 - alarm))
            return (score > -ndtri(alarm)).any() or (spread < low).any() or (spread > high).any()

        assert not alarms(mean, variance)
        assert alarms(mean + 10 * np.sqrt(variance / runs), variance)
        assert alarms(mean, 4 * variance)

    def test_simulation_of_nobody(self, big):
        oracle = self.make(*big)
        aggregate = oracle.simulate(np.zeros(oracle.domain, dtype=int), np.random.default_rng(0))
        assert aggregate == oracle.aggregate(oracle.privatize([]))
        assert aggregate.n == 0

    def test_simulation_is_reproducible(self, big):
        oracle = self.make(*big)
        held = np.bincount(self.values(big[0], 300), minlength=big[0])
        first, again = (oracle.simulate(held, np.random.default_rng(4)) for _ in range(2))
        assert first == again
        assert oracle.simulate(held).n == 300
        oracle.estimate(first)

    def test_simulation_of_wrong_counts(self):
        oracle, rng = self.make(self.few, 1.0), np.random.default_rng(0)
        before = copy.deepcopy(rng.bit_generator.state)
        rest = [0] * (self.few - 3)
        for counts in [
            [1, 2],
            [1, 2, 3, 4, *rest],
            [[1, 2, 3, *rest]],
            [1.0, 2.0, 3.0, *rest],
            [True, False, True, *(count > 0 for count in rest)],
            [1, -1, 1, *rest],
            ["1", "2", "3", *map(str, rest)],
            [None, 1, 1, *rest],
            5,
            np.array([1 << 63, 0, 0, *rest], dtype=np.uint64),
            [1 << 62, 1 << 62, 0, *rest],
            [1 << 70, 0, 0, *rest],
        ]:
            with pytest.raises((ValueError, OverflowError), match=r"counts|2\^63"):
                oracle.simulate(counts, rng)
            assert rng.bit_generator.state == before

    # ---------------------------------------------------------------------------------- aggregates

    def test_batches_and_order_do_not_matter(self, big):
        oracle = self.make(*big)
        reports = oracle.privatize(self.values(big[0], 101), np.random.default_rng(1))
        whole = oracle.aggregate(reports)
        rng = np.random.default_rng(2)
        for _ in range(4):
            pieces = np.split(
                reports[rng.permutation(101)],
                np.sort(rng.integers(0, 102, size=rng.integers(1, 6))),
            )
            assert sum(oracle.aggregate(piece) for piece in pieces) == whole
        singly = [oracle.aggregate(reports[k : k + 1]) for k in range(101)]
        assert sum(singly) == whole
        assert (singly[0] + singly[1]) + singly[2] == singly[2] + (singly[1] + singly[0])
        empty = oracle.aggregate(reports[:0])
        assert whole + empty == empty + whole == whole
        assert whole.n == 101
        assert channel_of(oracle).require_own(whole) is whole

    def test_large_batches(self, monkeypatch):
        """How many users are handled at a time shows in nothing but the random words' order."""
        oracle = self.make(self.few, 1.0)
        values = np.arange(1000) % self.few
        reports = oracle.privatize(values, np.random.default_rng(0))
        whole = oracle.aggregate(reports)
        monkeypatch.setattr(type(channel_of(oracle)), "batch_size", 7)
        assert oracle.aggregate(reports) == whole
        assert oracle.aggregate(oracle.privatize(values, np.random.default_rng(0))).n == 1000
        assert len(oracle.privatize(values[:701], np.random.default_rng(0))) == 701

    @pytest.mark.slow
    def test_a_million_users(self):
        items, n = self.domains[-1], 1_000_000
        oracle, values = self.make(items, 1.0), self.values(items, n)
        reports = oracle.privatize(values, np.random.default_rng(1))
        assert reports.shape == (n,)
        assert reports.dtype == oracle.report_dtype
        whole = oracle.aggregate(reports)
        assert oracle.aggregate(reports[: n // 3]) + oracle.aggregate(reports[n // 3 :]) == whole
        estimate, true = oracle.estimate(whole), np.bincount(values, minlength=items) / n
        deviation = np.sqrt(oracle.linear_variance(n, np.eye(items), true))
        assert (
            np.abs(estimate.frequencies - true) < -ndtri(FALSE_ALARM / (2 * items)) * deviation
        ).all()

    def test_nobody(self, big):
        oracle = self.make(*big)
        reports = oracle.privatize([], np.random.default_rng(0))
        assert reports.shape == (0,)
        assert reports.dtype == oracle.report_dtype
        for items in (None, [0]):
            estimate = oracle.estimate(oracle.aggregate(reports), items)
            length = oracle.domain if items is None else 1
            assert estimate.n == 0
            assert estimate.frequencies.shape == (length,)
            assert np.isnan(estimate.frequencies).all()
            assert (estimate.variances == np.inf).all()
            low, high = estimate.interval()
            assert (low == -np.inf).all()
            assert (high == np.inf).all()
            value, variance = estimate.linear(np.ones(length))
            assert math.isnan(value)
            assert variance == math.inf
            assert "nan" in estimate.table()

    def test_somebody(self, big):
        oracle = self.make(*big)
        reports = oracle.privatize(big[0] - 1, np.random.default_rng(0))
        assert reports.shape == (1,)
        estimate = oracle.estimate(oracle.aggregate(reports))
        assert np.isfinite(estimate.frequencies).all()
        assert np.isfinite(estimate.variances).all()
        assert (estimate.variances >= -1e-9).all()

    def test_chosen_items_are_entries_of_the_full_estimate(self, big):
        oracle = self.make(*big)
        aggregate = oracle.aggregate(
            oracle.privatize(self.values(big[0], 500), np.random.default_rng(1))
        )
        full = oracle.estimate(aggregate)
        rng = np.random.default_rng(2)
        items = rng.permutation(oracle.domain)[: max(1, oracle.domain // 3)]
        part = oracle.estimate(aggregate, items=items)
        scale = np.concatenate([full.frequencies, full.frequencies**2, full.variances])
        close(part.frequencies, full.frequencies[items], scale)
        close(part.variances, full.variances[items], scale)
        close(
            part.interval(confidence=0.9), np.array(full.interval(confidence=0.9))[:, items], scale
        )
        weights = rng.normal(size=(2, len(items)))
        spread = np.zeros((2, oracle.domain))
        spread[:, items] = weights
        close(tuple(part.linear(weights)), tuple(full.linear(spread)), len(items) * scale)
        close(tuple(part.linear(weights[0])), tuple(full.linear(spread[0])), len(items) * scale)
        assert not full.frequencies.flags.writeable
        everything = oracle.estimate(aggregate, items=np.arange(oracle.domain))
        close(everything.frequencies, full.frequencies, scale)

    def test_wrong_items(self):
        oracle = self.make(self.few, 1.0)
        aggregate = oracle.aggregate(oracle.privatize([0, 1, 2], np.random.default_rng(0)))
        for items in [[0, 0], [self.few], [-1], [0.5], [[0, 1]], 0, ["0"], [math.nan]]:
            with pytest.raises(ValueError, match="item"):
                oracle.estimate(aggregate, items=items)

    def test_wrong_weights(self):
        oracle = self.make(self.few, 1.0)
        estimate = oracle.estimate(
            oracle.aggregate(oracle.privatize([0, 1, 2], np.random.default_rng(0)))
        )
        for weights in [
            [1.0],
            [1.0, math.nan, *[0] * (self.few - 2)],
            [math.inf, *[0] * (self.few - 1)],
            np.ones((2, 2)),
            np.ones((1, 1, self.few)),
            1.0,
        ]:
            with pytest.raises(ValueError, match=f"weights must be {self.few} finite numbers"):
                estimate.linear(weights)

    def test_wrong_number_of_users(self):
        oracle = self.make(self.few, 1.0)
        for n in [0, -1, 1.5, True, None, "5"]:
            with pytest.raises(ValueError, match="n must be a number of users"):
                oracle.linear_variance(n, np.eye(self.few), np.full(self.few, 1 / self.few))

    def test_reports_of_other_types_are_refused(self):
        oracle = self.make(self.few, 1.0)
        reports = oracle.privatize([0, 1], np.random.default_rng(0))
        for wrong in (
            reports.tolist(),
            reports.view(np.uint8),
            reports.reshape(1, 2),
            np.zeros(2),
            None,
        ):
            with pytest.raises(InvalidReport):
                oracle.aggregate(wrong)

    # ---------------------------------------------------------------------- a value like any other

    def test_frozen(self):
        oracle = self.make(self.few, 1.0)
        for name in ("domain", "epsilon", "seed", "p", "anything", "_signature"):
            with pytest.raises(AttributeError):
                setattr(oracle, name, 1)
        for name in ("domain", "epsilon"):
            with pytest.raises(AttributeError):
                delattr(oracle, name)

    def test_equality_hash_and_repr(self):
        oracle, same = self.make(self.few, 1.0), self.make(self.few, 1.0)
        oracle.aggregate(oracle.privatize([0]))  # what is computed along the way is no part of it
        assert oracle == same
        assert hash(oracle) == hash(same)
        assert len({oracle, same, self.make(self.few, 2.0), self.make(self.other, 1.0)}) == 3
        assert oracle != (3, 1.0)
        assert type(oracle).__name__ in repr(oracle)
        assert repr(oracle) == repr(same)
        assert len(repr(oracle)) < 500

    def test_pickles_and_copies(self):
        oracle = self.make(self.few, 1.0)
        values, aggregate = np.array([0, 1, 2, 2]), oracle.aggregate(oracle.privatize([0, 1, 2, 2]))
        for other in (pickle.loads(pickle.dumps(oracle)), copy.copy(oracle), copy.deepcopy(oracle)):
            assert other == oracle
            assert other.parameters == oracle.parameters
            mine, theirs = (o.privatize(values, np.random.default_rng(7)) for o in (oracle, other))
            assert mine.tobytes() == theirs.tobytes()
            assert (
                other.estimate(aggregate).frequencies.tolist()
                == oracle.estimate(aggregate).frequencies.tolist()
            )
        again = pickle.loads(pickle.dumps(aggregate))
        assert again == aggregate
        assert (
            oracle.estimate(copy.deepcopy(aggregate)).frequencies.tolist()
            == oracle.estimate(aggregate).frequencies.tolist()
        )

    def test_aggregates_are_frozen(self):
        oracle = self.make(self.few, 1.0)
        aggregate = oracle.aggregate(oracle.privatize([0, 1]))
        assert isinstance(aggregate, Aggregate)
        with pytest.raises(AttributeError):
            aggregate.n = 5  # type: ignore[misc]  # read-only
        with pytest.raises(ValueError, match="read-only"):
            aggregate.counts[...] = 0
        copied = pickle.loads(pickle.dumps(aggregate))
        for merged in (aggregate + aggregate, sum([aggregate]), copied):
            assert isinstance(merged, Aggregate)
            with pytest.raises(ValueError, match="read-only"):
                merged.counts[...] = 0

    def test_parameters_are_json(self):
        oracle = self.make(self.few, 1.0)
        assert json.loads(json.dumps(oracle.parameters)) == oracle.parameters
        assert oracle.parameters["protocol"] == type(oracle).__name__
        assert oracle.parameters["domain"] == self.few
        assert Fraction(oracle.parameters["alpha"]) == 1 / oracle.max_ratio

    def test_report_types_are_published_layouts(self, big):
        """Packed and little-endian on every machine."""
        dtype = self.make(*big).report_dtype
        assert dtype.names
        assert dtype.itemsize == sum(dtype[name].itemsize for name in dtype.names)
        assert all(dtype[name].base.str[0] in "<|" for name in dtype.names)

    def test_reproducible_by_seed(self, big):
        oracle = self.make(*big)
        values = self.values(big[0], 500)
        first, again, other = (
            oracle.privatize(values, np.random.default_rng(seed)) for seed in (3, 3, 4)
        )
        assert first.tobytes() == again.tobytes()
        assert big[0] == 1 or first.tobytes() != other.tobytes()

    def test_other_parameters_are_incompatible(self):
        oracle = self.make(self.few, 1.0)
        mine = oracle.aggregate(oracle.privatize([0, 1]))
        for other in (self.make(self.few, 1.25), self.make(self.other, 1.0)):
            theirs = other.aggregate(other.privatize([0, 1]))
            with pytest.raises(IncompatibleAggregate):
                mine + theirs
            with pytest.raises(IncompatibleAggregate):
                sum([mine, theirs])
            with pytest.raises(IncompatibleAggregate):
                oracle.estimate(theirs)
            assert mine != theirs
        with pytest.raises(TypeError):
            mine + 1

    # ----------------------------------------------------------------------------- what is refused

    def test_wrong_domain(self):
        for domain in (0, -1, 1.5, 2.0, True, "5", None, math.nan, 1 << 70):
            with pytest.raises(ValueError, match="domain"):
                self.make(domain, 1.0)

    def test_wrong_epsilon(self):
        for epsilon in [
            0,
            0.0,
            -1,
            -1e-300,
            math.nan,
            math.inf,
            -math.inf,
            None,
            "much",
            True,
            [1.0],
        ]:
            with pytest.raises((ValueError, TypeError), match="epsilon"):
                self.make(self.few, epsilon)

    def test_wrong_values(self):
        oracle, rng = self.make(self.few, 1.0), np.random.default_rng(0)
        before = copy.deepcopy(rng.bit_generator.state)
        for values, index in [
            ([0, self.few], 1),
            ([0, 1, -1], 2),
            ([0.5], 0),
            ([0.0, math.nan], 1),
            ([math.inf], 0),
            (["0"], 0),
            ([0, None], 1),
            ([1 << 70], 0),
            ([1e300], 0),
            (np.ma.array([0, 1, 2], mask=[False, True, False]), 1),
            (np.array([1 << 63], dtype=np.uint64), 0),
            (["0", 1], 0),
        ]:
            with pytest.raises(InvalidValue, match="nothing was drawn") as refused:
                oracle.privatize(values, rng)
            assert isinstance(refused.value, ValueError)
            assert refused.value.index == index
            assert refused.value.largest == self.few - 1
            assert rng.bit_generator.state == before

    def test_tables_of_values_are_refused(self):
        oracle, rng = self.make(self.few, 1.0), np.random.default_rng(0)
        before = copy.deepcopy(rng.bit_generator.state)
        with pytest.raises(ValueError, match="one-dimensional"):
            oracle.privatize([[0, 1], [1, 2]], rng)
        assert rng.bit_generator.state == before

    def test_values_may_be_any_integers(self):
        oracle = self.make(self.few, 1.0)
        kinds = (
            [0, 2, 1],
            (0, 2, 1),
            np.array([0, 2, 1], dtype=np.uint8),
            np.array([0.0, 2.0, 1.0]),
            [np.int16(0), 2, 1.0],
        )
        found = {oracle.privatize(values, np.random.default_rng(1)).tobytes() for values in kinds}
        assert len(found) == 1

    @pytest.mark.parametrize(
        "rng", [np.random, np.random.RandomState(0), 0, "seed"], ids=lambda r: type(r).__name__
    )
    def test_other_sources_are_refused(self, rng):
        with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
            self.make(self.few, 1.0).privatize([0], rng)


class PublicTable:
    """Public bits given outright: ``table[row, item]``."""

    def __init__(self, table):
        self.table = table

    def bits(self, row, features):
        return self.table[row, features[0].astype(np.int64)]


def no_bits(row, item):
    return 0


@cache
def families_of(contract):
    return list(contract().listed())


class SketchContract(OracleContract):
    """Oracles that are unbiased over a public random function: the exact averages over all
    functions from 3 items take its place.

    Bits that are 5-wise independent are independent for 3 items, so these averages are those over
    the seed.
    """

    symmetric = False
    patched = "_public"
    kind: Callable[..., Any]
    sizes: tuple[str, ...]

    def twin(self, oracle, public=None):
        raise NotImplementedError

    def families(self):
        """(oracle, rows of bits): small enough that all tables of bits can be listed."""
        raise NotImplementedError

    def seeded(self, seed):
        """A larger oracle for 20 items and epsilon 3."""
        raise NotImplementedError

    def members(self):
        """For each family: the members' (oracle, P, E)."""
        return families_of(type(self))

    def listed(self):
        for base, rows in self.families():
            family = []
            for bits in product((0, 1), repeat=3 * rows):
                oracle = copy.copy(base)
                table = np.array(bits, dtype=np.uint8).reshape(rows, 3)
                vars(oracle)[self.patched] = PublicTable(table)
                twin = self.twin(oracle, lambda row, item, table=table: int(table[row, item]))
                P = np.array([[float(p) for p in row] for row in twin.table])
                E = np.array(
                    [oracle.estimate(a).frequencies for a in one_by_one(oracle, twin.reports)]
                )
                family.append((oracle, P, E))
            yield family

    populations = ([1, 0, 0], [0, 2, 1], [1, 1, 2], [3, 3, 3])

    def test_estimates_are_unbiased(self):  # type: ignore[override]  # not case by case
        for family in self.members():
            close(np.mean([P.T @ E for _, P, E in family], axis=0), np.eye(3), family[0][2])

    def test_variance_is_the_enumerated_one(self):  # type: ignore[override]  # not case by case
        """Total variance: the mean over functions of the variance, and the variance over functions
        of the mean.
        """
        for family in self.members():
            oracle = family[0][0]
            for held in np.array(self.populations):
                n, f = int(held.sum()), held / held.sum()
                within = np.mean([f @ moments(P, E)[1] for _, P, E in family], axis=0) / n
                between = np.var([f @ (P.T @ E) for _, P, E in family], axis=0)
                found = oracle.variance(n, f, second_moment=float(f @ f))
                close(found, within + between, found)
                # The worst case for item 1: all others are one item
                if np.count_nonzero(held) < 3 and held[0] == 0:
                    assert oracle.variance(n, f[1]) == pytest.approx(float(within[1] + between[1]))
                assert (oracle.variance(n, f) >= found * (1 - 1e-12)).all()

    def test_variances_of_sums_are_unbiased(self):  # type: ignore[override]  # not case by case
        """On average over estimates of the enumerated covariance, with the true second moment."""
        for family in self.members():
            for held in np.array(self.populations):
                n, f = int(held.sum()), held / held.sum()
                oracle = copy.copy(family[0][0])
                vars(oracle)["second_moment"] = lambda _, f=f: float(f @ f)
                aggregate = oracle.simulate(held, np.random.default_rng(0))
                w = some_weights(3)
                if oracle.confusion == 1:
                    assert np.isinf(oracle.variances_of(aggregate, f, None)).all()
                    assert np.isinf(oracle.linear_variances_of(w, aggregate, f, None)).all()
                    continue
                means = np.array([f @ (P.T @ E) for _, P, E in family])
                squares = [np.einsum("v,rv,ri,rj->ij", f, P, E, E) for _, P, E in family]
                inner = [np.einsum("v,vi,vj->ij", f, P.T @ E, P.T @ E) for _, P, E in family]
                covariance = np.mean(np.subtract(squares, inner), axis=0) / n
                covariance += np.cov(means.T, bias=True)
                values, vectors = np.linalg.eigh(covariance)
                off = np.sqrt(3 * np.maximum(values, 0.0)) * vectors
                # Six estimates with the mean f and this covariance: what is quadratic in them has
                # its exact mean
                estimates = [f + sign * column for column in off.T for sign in (1, -1)]
                users, found = np.mean(
                    [oracle._estimated_variances(aggregate, each) for each in estimates], axis=0
                )
                close(found, covariance.diagonal(), found)
                assert (oracle.variances_of(aggregate, f, None) >= users - 1e-12).all()
                for items in (None, np.array([2, 0])):
                    chosen = slice(None) if items is None else items
                    some = some_weights(len(f[chosen]))
                    _, found = np.mean(
                        [
                            oracle._estimated_of_sums(some, aggregate, each[chosen])
                            for each in estimates
                        ],
                        axis=0,
                    )
                    part = covariance[chosen][:, chosen]
                    close(found, np.einsum("wi,ij,wj->w", some, part, some), found)

    test_variances_are_unbiased: Any = None  # in the same test

    def test_linear_is_cut_at_zero(self):
        oracle = self.make(3, 1.0)
        estimate = oracle.estimate(
            oracle.aggregate(oracle.privatize([0, 1, 2, 2], np.random.default_rng(0)))
        )
        w = some_weights(3)
        raw = oracle.linear_variances_of(w, estimate.aggregate, estimate.frequencies, None)
        assert estimate.linear(w).variance.tolist() == np.maximum(raw, 0).tolist()
        assert estimate.linear(w).value == pytest.approx(w @ estimate.frequencies, rel=1e-9)

    def test_second_moment_of_two_users_is_unbiased(self, monkeypatch):
        """Exactly, when it is not cut: 1 if they hold the same item, 1/2 if not, on average over
        functions and reports.
        """
        monkeypatch.setattr(
            "frequency.oracles.count_mean_sketch.min", lambda most, value: value, raising=False
        )
        monkeypatch.setattr(
            "frequency.oracles.count_mean_sketch.max", lambda value, least: value, raising=False
        )
        for family in self.members():
            mean = np.zeros((3, 3))
            for oracle, P, _ in family:
                counts = [a.counts for a in one_by_one(oracle, self.twin(oracle, no_bits).reports)]
                moment = [
                    [oracle.second_moment(Aggregate(oracle.signature, 2, a + b)) for b in counts]
                    for a in counts
                ]
                mean += P.T @ np.array(moment) @ P / len(family)
            close(mean, (1 + np.eye(3)) / 2, 100)

    def test_second_moment_is_unbiased(self):
        """Over seeds, and away from where it is cut."""
        held = np.zeros(20, dtype=int)
        held[[0, 3, 19]] = 1500, 600, 900
        true, runs = 0.38, 120
        base = self.seeded(0)
        assert self.patched not in vars(base)  # nothing that depends on the seed is known yet
        oracles = [copy.copy(base) for _ in range(runs)]
        for seed, oracle in enumerate(oracles):
            vars(oracle)["seed"] = seed
        rng = np.random.default_rng(11)
        found = np.array([oracle.second_moment(oracle.simulate(held, rng)) for oracle in oracles])
        assert found.min() > 1 / 20
        assert found.max() < 1
        error = found.std(ddof=1) / math.sqrt(runs)
        alarm = -stats.t.ppf(FALSE_ALARM / 2, runs - 1)
        assert abs(found.mean() - true) < alarm * error
        assert alarm * error < 0.06 * true  # six per cent would be noticed
        assert oracles[0].second_moment(oracles[0].aggregate(oracles[0].privatize([]))) == 1

    @pytest.mark.parametrize("size", [0, -1, 1.5, True, None, "8"])
    def test_wrong_sizes(self, size):
        for name in self.sizes:
            with pytest.raises(ValueError, match=name):
                self.kind(3, 1.0, **{name: size})
        if size not in (0, False):
            with pytest.raises(ValueError, match="seed"):
                self.kind(3, 1.0, seed=size)

    def test_other_seeds_are_incompatible(self):
        mine, theirs = (
            oracle.aggregate(oracle.privatize([0])) for oracle in (self.seeded(1), self.seeded(2))
        )
        with pytest.raises(IncompatibleAggregate):
            mine + theirs


def public_bit(label, seed, rows, row, item):
    """Bit ``row`` of ``rows`` of an item: <a, x> + <b, x^3> + c over GF(2), with a, b, c from
    SHAKE-256; x in GF(2^64).
    """
    stream = hashlib.shake_256(f"frequency:{label}:{seed}".encode()).digest(17 * rows)
    a, b = (int.from_bytes(stream[8 * k : 8 * k + 8], "little") for k in (row, rows + row))
    return (
        (a & item).bit_count()
        + (b & gf64(item, gf64(item, item))).bit_count()
        + stream[16 * rows + row]
    ) % 2


def gf64(x, y):
    """The product in GF(2^64), modulo x^64 + x^4 + x^3 + x + 1."""
    result = 0
    for place in range(y.bit_length()):
        result ^= (y >> place & 1) * (x << place)
    for place in range(result.bit_length() - 1, 63, -1):
        if result >> place & 1:
            result ^= (1 << 64 | 0b11011) << (place - 64)
    return result
