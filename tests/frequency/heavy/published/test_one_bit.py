"""One bit from each user: the bit is as private as is claimed, exactly, and the reports kept are
like those of the inner protocol.

Reports of small oracles are listed with their exact probabilities by the twins of the oracles' own
tests. False alarms: every statistical test compares a p-value with 1e-6, divided by the number of
its comparisons, and is shown to reject a planted error.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    Aggregate,
    CountMeanSketch,
    HadamardCountMeanSketch,
    IncompatibleAggregate,
    InvalidReport,
    InvalidValue,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.algebra.hash_functions import Coins
from frequency.heavy import OneBit, PrefixExtension, SuccinctHistogram, TreeHist, UniqueHeavyHitter
from frequency.heavy.sampled import SampledOracle
from mechdesign import Privacy, named
from tests.contracts.oracle import exponential_below
from tests.frequency.oracles import twins as oracles
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.own_oracles import Bare, Exclusion
from tests.tape import WORD, played

EPSILONS = (2.0**-20, 0.1, 0.5, math.log(2))

CASES = {
    "GRR": (lambda d, e: GRR(d, e), oracles.TestGRR),
    "HRR": (lambda d, e: HRR(d, e), oracles.TestHRR1),
    "HRR, two coefficients": (
        lambda d, e: HRR(d, e, coefficients=2 if d > 2 else 1),
        oracles.TestHRR2,
    ),
    "OLH": (lambda d, e: OLH(d, e), oracles.TestOLH),
    "OUE": (lambda d, e: OUE(d, e), oracles.TestOUE),
    "SUE": (lambda d, e: SUE(d, e), oracles.TestSUE),
    "subset selection": (lambda d, e: SubsetSelection(d, e), oracles.TestSubsetSelection),
    "projective geometry": (lambda d, e: ProjectiveGeometry(d, e), oracles.TestProjectiveGeometry),
    "JL": (lambda d, e: JLOracle(d, e, rows=7, seed=1), oracles.TestJLOracle),
    "HCMS": (
        lambda d, e: HadamardCountMeanSketch(d, e, hashes=3, width=4, seed=1),
        oracles.TestHadamardCountMeanSketch,
    ),
    "CMS": (
        lambda d, e: CountMeanSketch(d, e, hashes=2, width=4, seed=2),
        oracles.TestCountMeanSketch,
    ),
    "Tabular": (
        lambda d, e: Tabular(named.krr(d, alpha=Privacy.from_epsilon(e, neighbours="all").alpha)),
        oracles.TestTabularKRR,
    ),
    "Tabular, rectangular": (
        lambda d, e: oracles.TestTabularRectangular().make(d, e),
        oracles.TestTabularRectangular,
    ),
}

SMALL = [(name, d) for name in CASES for d in (2, 3, 5)]


@cache
def listed(name, domain, epsilon):
    """The oracle, all its reports, Pr[report | item], and Pr[report | no item]: all exact.

    Without an item every report is as likely as any other; for unary encodings every bit is 1 as
    often as other items' are; of a table it has the mean of its probabilities, in units of 2^-64.
    """
    make, contract = CASES[name]
    oracle = make(domain, epsilon)
    reports, table = contract().twin(oracle)
    if isinstance(oracle, (OUE, SUE)):
        q = Fraction(int(oracle.parameters["q"]), WORD)
        ones = (
            np.unpackbits(reports["bits"], axis=1, count=domain, bitorder="little")
            .sum(axis=1)
            .tolist()
        )
        blank = [q**one * (1 - q) ** (domain - one) for one in ones]
    elif isinstance(oracle, CountMeanSketch):
        q, bits = Fraction(int(oracle.parameters["q"]), WORD), oracle.width
        held = np.unpackbits(reports["bits"], axis=1, count=bits, bitorder="little").sum(axis=1)
        blank = [q**one * (1 - q) ** (bits - one) / oracle.hashes for one in held.tolist()]
    elif isinstance(oracle, Tabular):
        means = [int(sum(row) / len(row) * WORD) for row in table]
        means[means.index(max(means))] += WORD - sum(means)
        blank = [Fraction(mean, WORD) for mean in means]
    else:
        blank = [Fraction(1, len(reports))] * len(reports)
    assert sum(blank) == 1
    return oracle, reports, table, blank


def flat(channel):
    return [ratio for kind in channel.likelihoods for ratio in kind]


def numbers(oracle, reports):
    """Reports as numbers, the same for reports that mean the same: HRR's indices in order, with
    their signs.
    """
    if "index" in (reports.dtype.names or ()) and reports["index"].ndim == 2:
        order = np.argsort(reports["index"], axis=1)
        reports = reports.copy()
        for field in ("index", "sign"):
            reports[field] = np.take_along_axis(reports[field], order, axis=1)
    rows = np.ascontiguousarray(reports).view(np.uint8).reshape(len(reports), -1)
    return [row.tobytes() for row in rows]


def grouped(oracle, reports, probabilities):
    result: dict = {}
    for key, p in zip(numbers(oracle, reports), probabilities, strict=True):
        result[key] = result.get(key, 0) + p
    return result


def acceptances(sampled, oracle, reports):
    """Pr[bit = 1 | coins that draw a report, item] in units of 2^-64: (reports, items), as the
    weights that are compared with.
    """
    weights = sampled._acceptance
    n, d = len(reports), oracle.domain
    which = oracle.likelihood(np.repeat(reports, d), np.tile(np.arange(d), n)).reshape(n, d)
    return [[weights[k] for k in row] for row in which.tolist()]


def worst_ratio(accepted):
    """Over all coins and pairs of items, of ones and of zeros."""
    worst = Fraction(1)
    for row in accepted:
        low, high = min(row), max(row)
        worst = max(worst, Fraction(high, low), Fraction(WORD - low, WORD - high))
    return worst


# ------------------------------------------------------------------------------------ likelihoods


@pytest.mark.parametrize("epsilon", [0.1, math.log(2), 3])
@pytest.mark.parametrize(("name", "domain"), SMALL)
def test_likelihoods_are_ratios_of_enumerated_probabilities(name, domain, epsilon):
    """For every report and item, as fractions; the least comes first in each kind; and their mean
    over blank reports is 1.
    """
    oracle, reports, table, blank = listed(name, domain, epsilon)
    stated = flat(oracle)
    for kind in oracle.likelihoods:
        assert list(kind) == sorted(kind)
    for v in range(domain):
        which = oracle.likelihood(reports, np.full(len(reports), v))
        assert [stated[k] for k in which] == [
            row[v] / b for row, b in zip(table, blank, strict=True)
        ]
        assert sum(b * stated[k] for b, k in zip(blank, which, strict=True)) == 1


@pytest.mark.parametrize("name", CASES)
def test_blank_reports_have_the_stated_distribution(name):
    """From random coins, seeded; and the same coins give the same reports, whoever's company they
    are in.
    """
    oracle, reports, _, blank = listed(name, 5, 0.5)
    words = np.random.default_rng(31).integers(0, WORD, size=40_000, dtype=np.uint64)
    coins = Coins(words, seed=4)
    drawn = oracle.blank(coins)
    assert oracle.possible(drawn).all()
    known = grouped(oracle, reports, blank)
    place = {key: k for k, key in enumerate(known)}
    counts = np.bincount([place[key] for key in numbers(oracle, drawn)], minlength=len(place))
    probabilities = np.array([float(p) for p in known.values()])
    assert goodness(counts, probabilities) > FALSE_ALARM
    # The test can fail: a tenth of the probability is moved to one report.
    wrong = 0.9 * probabilities + 0.1 * (np.arange(len(place)) == np.argmin(probabilities))
    assert goodness(counts, wrong) < FALSE_ALARM
    for chosen in (slice(10, 20), np.array([7, 3, 3])):
        assert oracle.blank(coins[chosen]).tobytes() == drawn[chosen].tobytes()
    assert oracle.blank(Coins(words[:50], seed=5)).tobytes() != drawn[:50].tobytes()


@pytest.mark.parametrize("name", CASES)
def test_kept_reports_are_like_real_ones(name):
    """Pr[report | kept, item] from the weights that are compared with is Pr[report | item], up to
    their rounding.
    """
    oracle, reports, table, blank = listed(name, 5, 0.5)
    accepted = acceptances(OneBit(oracle).channel, oracle, reports)
    for v in range(5):
        kept = [b * row[v] for b, row in zip(blank, accepted, strict=True)]
        total = sum(kept)
        assert all(
            abs(k / total - row[v]) < row[v] * Fraction(1, 1 << 60)
            for k, row in zip(kept, table, strict=True)
        )
        share = Fraction(total, WORD)
        assert abs(share / OneBit(oracle).channel.kept - 1) < Fraction(1, 1 << 39)


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("name", "domain"), SMALL)
def test_audit_is_the_enumerated_ratio(name, domain, epsilon):
    """Of ones and zeros, for all coins, exactly; and it is allowed."""
    oracle, reports, _, _ = listed(name, domain, epsilon)
    channel = OneBit(oracle).channel
    audit = channel.audit()
    assert audit.ratio == worst_ratio(acceptances(channel, oracle, reports))
    assert audit.holds
    assert audit.ratio <= audit.allowed == channel.max_ratio
    assert audit.allowed <= exponential_below(epsilon)
    if epsilon >= 0.1:
        assert math.log(audit.ratio) >= epsilon * (1 - 1e-6), "and the privacy loss is used up"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, math.log(2)])
@pytest.mark.parametrize(("name", "domain"), SMALL)
def test_no_larger_share_can_be_kept(name, domain, epsilon):
    """With ``kept`` a millionth larger, some bit tells more than is allowed: by enumeration of all
    coins' reports.
    """
    oracle, _, table, blank = listed(name, domain, epsilon)
    kept = OneBit(oracle).channel.kept
    ratios = [[p / b for p in row] for row, b in zip(table, blank, strict=True)]

    def lost(share):
        return max((1 - share * min(row)) / (1 - share * max(row)) for row in ratios)

    assert lost(kept) <= oracle.max_ratio
    larger = kept * (1 + Fraction(1, 10**6))
    assert max(larger * max(row) for row in ratios) < 1, "it would be a probability"
    ones = max(max(row) / min(row) for row in ratios)
    assert max(ones, lost(larger)) > oracle.max_ratio
    assert lost(larger) > exponential_below(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.69])
def test_a_half_of_the_paper_is_too_much(epsilon):
    """An item the likeliest by e^eps over the mean, others as likely as it: zeros differ by 1 / (2
    - e^eps), more than e^eps.
    """
    oracle = GRR(10**7, epsilon)
    low, high = flat(oracle)
    ratio = (1 - low / 2) / (1 - high / 2)
    assert ratio > oracle.max_ratio
    assert float(ratio) == pytest.approx(1 / (2 - math.exp(epsilon)), rel=1e-3)
    assert float(ratio) > math.exp(epsilon) * (1 + epsilon**2 / 2)
    assert OneBit(oracle).kept < 1 / 2
    assert OneBit(oracle).kept == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-3)
    assert OneBit(oracle).audit().holds


def test_a_half_may_be_kept_of_signs():
    for epsilon in EPSILONS:
        for oracle in (
            HRR(1000, epsilon),
            JLOracle(1000, epsilon),
            HadamardCountMeanSketch(1000, epsilon),
            GRR(2, epsilon),
        ):
            assert OneBit(oracle).kept == pytest.approx(1 / 2, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_bit_is_drawn_with_the_audited_weights(name):
    """Played back: the first words are the coins, and the bit is 1 for second words below the
    weight and for no others.
    """
    oracle, _, _, _ = listed(name, 5, 0.5)
    channel = OneBit(oracle, seed=3).channel
    coins = [0, 1, WORD - 1, 12345, 1 << 63]
    items = np.arange(5)
    which = oracle.likelihood(oracle.blank(Coins(np.array(coins, dtype=np.uint64), 3)), items)
    weights = [channel._acceptance[k] for k in which]
    for shift, bit in ((-1, 1), (0, 0)):
        reports = np.zeros(5, dtype=channel.report_dtype)
        played(
            lambda source, r=reports: channel.fill(items, r, source),
            [*coins, *(w + shift for w in weights)],
        )
        assert reports["coins"].tolist() == coins
        assert reports["bit"].tolist() == [bit] * 5
    for word, bit in ((0, 1), (WORD - 1, 0)):
        reports = np.zeros(5, dtype=channel.report_dtype)
        played(lambda source, r=reports: channel.fill(items, r, source), [*coins, *[word] * 5])
        assert reports["bit"].tolist() == [bit] * 5


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "make",
    [
        lambda e: PrefixExtension(2, e, lengths=(1, 2)),
        lambda e: TreeHist(3, e),
        lambda e: UniqueHeavyHitter(2, e),
        lambda e: SuccinctHistogram(2, e, hashes=1, channels=2, rows=2),
        lambda e: SuccinctHistogram(2, e, hashes=2, channels=2, rows=1),
    ],
    ids=["extension", "tree", "unique", "succinct", "succinct twice"],
)
def test_bits_about_heavy_hitter_protocols(make, epsilon):
    """For many coins, the likelihoods of all items: no pair of them loses more than the audit says,
    and some pair as much.
    """
    protocol = OneBit(make(epsilon))
    channel, inner = protocol.channel, protocol.channel.inner
    d, coins = inner.domain, np.random.default_rng(2).integers(0, WORD, size=2000, dtype=np.uint64)
    which = inner.coins_likelihood(
        Coins(np.repeat(coins, d), 0), np.tile(np.arange(d), len(coins))
    ).reshape(-1, d)
    audit = protocol.audit()
    found = worst_ratio([[channel._acceptance[k] for k in row] for row in which.tolist()])
    assert audit.holds
    assert audit.allowed <= exponential_below(epsilon)
    assert found == audit.ratio


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0, 8.0, 30.0])
def test_epsilon_above_ln_2_costs_users(epsilon):
    """Signs none; others all but 1 / (e + 1) of them, or a power of e."""
    e = math.exp(epsilon)
    assert OneBit(HRR(100, epsilon)).kept == pytest.approx(1 / 2)
    assert OneBit(GRR(100, epsilon)).kept == pytest.approx((e + 99) / (100 * (e + 1)))
    for inner in (GRR(3, epsilon), PrefixExtension(8, epsilon), OUE(4, min(epsilon, 8.0))):
        audit = OneBit(inner).audit()
        assert audit.holds
        assert audit.allowed <= exponential_below(epsilon)


def test_keeping_next_to_nobody_is_refused():
    for inner in (OUE(4, 30.0), OUE(4, 700.0)):
        with pytest.raises(ValueError, match="would be kept at epsilon"):
            OneBit(inner)


def test_epsilon_may_be_written_in_any_way():
    assert OneBit(GRR(3, math.log(2))).audit().holds
    assert OneBit(GRR(3, Fraction(1, 2))).audit().holds
    assert OneBit(GRR(3, "0.5")).audit().holds


@pytest.mark.parametrize(
    "inner",
    [Tabular(named.geometric(2, alpha=Fraction(3, 5))), Bare(5, 0.5)],
    ids=["Tabular of neighbours", "an oracle of one's own"],
)
def test_what_states_no_probabilities_is_refused(inner):
    with pytest.raises(TypeError, match=r"does not state the probabilities|for local mechanisms"):
        OneBit(inner)


@pytest.mark.parametrize("inner", [None, 5, "GRR", GRR, np.zeros(3)], ids=str)
def test_what_is_no_protocol_is_refused(inner):
    with pytest.raises(TypeError, match="inner must be a protocol, such as"):
        OneBit(inner)


@dataclass(frozen=True)
class Doubled(Exclusion):
    """Of a layout of its own, which does not say what a report of a kind is."""

    @cached_property
    def report_dtype(self):
        return np.dtype([("item", "u1"), ("twice", "u1")])

    def fill(self, items, reports, source):
        super().fill(items, reports, source)
        reports["twice"] = 2 * reports["item"]


@dataclass(frozen=True)
class Backwards(Exclusion):
    """Whose kinds are not what the layout's one number says."""

    def kinds_of(self, reports):
        return self.domain - 1 - super().kinds_of(reports)


def test_enumerated_oracles_of_ones_own():
    """Take public coins as they are, if a report is the number of its kind."""
    protocol, values = OneBit(Exclusion(5, 0.5), seed=2), np.repeat([0, 3], [30_000, 10_000])
    assert protocol.audit().holds
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(values, np.random.default_rng(1)))
    )
    off = (estimate.frequencies - [0.75, 0, 0, 0.25, 0]) / np.sqrt(estimate.variances)
    assert np.abs(off).max() < 5.5
    for inner in (Doubled(5, 0.5), Backwards(5, 0.5)):
        with pytest.raises(TypeError, match=r"does not (state which report|read its own)"):
            OneBit(inner)


def test_one_bit_of_one_bit_is_refused():
    with pytest.raises(TypeError):
        OneBit(OneBit(GRR(3, 0.5)))
    with pytest.raises(TypeError, match="does not state"):
        OneBit(OneBit(GRR(3, 0.5)).channel)


# -------------------------------------------------------------------------------- the server half


@pytest.mark.parametrize("name", CASES)
def test_the_server_counts_the_kept_blank_reports(name):
    """Whatever the batches; the slow twin is the inner oracle's own aggregate of the reports that
    the coins draw.
    """
    oracle, _, _, _ = listed(name, 5, 0.5)
    protocol = OneBit(oracle, seed=9)
    reports = protocol.privatize(np.arange(3000) % 5, np.random.default_rng(1))
    whole = protocol.aggregate(reports)
    kept = reports[reports["bit"] == 1]
    assert 0 < len(kept) < 3000
    assert protocol.channel.sampled(whole) == oracle.aggregate(
        oracle.blank(Coins(kept["coins"], 9))
    )
    assert whole.n == 3000
    assert protocol.aggregate(reports[:1000]) + protocol.aggregate(reports[1000:]) == whole
    assert protocol.aggregate(reports[np.random.default_rng(2).permutation(3000)]) == whole
    again = protocol.aggregate_from_bytes(whole.to_bytes())
    assert again == whole
    assert (
        protocol.aggregate(protocol.reports_from_bytes(protocol.reports_to_bytes(reports))) == whole
    )
    estimate = protocol.estimate(whole)
    inner = oracle.estimate(protocol.channel.sampled(whole))
    assert estimate.frequencies.tolist() == inner.frequencies.tolist()
    assert estimate.n == 3000
    assert (
        protocol.estimate(whole, items=[4, 1]).frequencies.tolist()
        == inner.frequencies[[4, 1]].tolist()
    )


HELD = np.array([0.5, 0.3, 0.2, 0.0, 0.0])


def sampled_oracle(protocol: OneBit) -> SampledOracle:
    """The channel of a protocol around a frequency oracle, which is one itself."""
    assert isinstance(protocol.channel, SampledOracle)
    return protocol.channel


@pytest.mark.parametrize(
    "name",
    [
        "GRR",
        "HRR",
        "HRR, two coefficients",
        "OLH",
        "OUE",
        "SUE",
        "subset selection",
        "projective geometry",
    ],
)
def test_estimates_are_unbiased_with_the_stated_variance(name):
    """Over 300 runs of 2000 users each: mean, variance, and what the aggregate says of its
    variance.
    """
    oracle, _, _, _ = listed(name, 5, 0.5)
    protocol, n, runs = OneBit(oracle), 2000, 300
    channel = sampled_oracle(protocol)
    values = np.repeat(np.arange(5), (HELD * n).astype(int))
    rng = np.random.default_rng(17)
    estimates = [
        protocol.estimate(protocol.aggregate(protocol.privatize(values, rng))) for _ in range(runs)
    ]
    found = np.array([e.frequencies for e in estimates])
    variance = channel.variance(n, HELD)
    alarm = FALSE_ALARM / 20
    low, high = (stats.chi2.ppf(tail, runs - 1) for tail in (alarm, 1 - alarm))

    def alarms(mean, variance):
        score = np.abs(found.mean(axis=0) - mean) / np.sqrt(variance / runs)
        spread = found.var(axis=0, ddof=1) / variance * (runs - 1)
        return (score > -ndtri(alarm)).any() or (spread < low).any() or (spread > high).any()

    assert not alarms(HELD, variance)
    assert alarms(HELD, 2 * variance)
    assert alarms(HELD + 8 * np.sqrt(variance / runs), variance)
    stated = np.mean([e.variances for e in estimates], axis=0)
    np.testing.assert_allclose(stated, variance, rtol=0.02)
    pair = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    told = np.array([tuple(e.linear(pair)) for e in estimates])
    spread = told[:, 0].var(ddof=1) / told[:, 1].mean() * (runs - 1)
    assert low < spread < high
    assert not low < 2 * spread < high
    # A mean over all pairs of the variance of a difference, if all items are as frequent.
    mean = channel.difference_variance(n)
    flat_ = np.full(5, 0.2)
    assert mean < 2.01 * float(np.mean(channel.variance(n, flat_))) * 5 / 4


@pytest.mark.parametrize("name", ["GRR", "OLH", "OUE", "HRR"])
def test_variances_of_sums_known_beforehand(name):
    """`linear_variance` of a single item is its `variance`, for oracles whose variance depends on
    the item's frequency alone.
    """
    oracle, _, _, _ = listed(name, 5, 0.5)
    channel = sampled_oracle(OneBit(oracle))
    np.testing.assert_allclose(
        oracle.linear_variance(100, np.eye(5), HELD), oracle.variance(100, HELD), rtol=1e-9
    )
    np.testing.assert_allclose(
        channel.linear_variance(100, np.eye(5), HELD), channel.variance(100, HELD), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["GRR", "OLH", "OUE", "HRR"])
def test_variances_of_any_weights_are_those_of_the_items_and_pairs(name):
    """A quadratic form: doubled weights have four times the variance, and the parallelogram law."""
    oracle, _, _, _ = listed(name, 5, 0.5)
    channel, rng = sampled_oracle(OneBit(oracle)), np.random.default_rng(0)
    one, two = rng.normal(size=(2, 4, 5))

    def variance(weights):
        return channel.linear_variance(100, weights, HELD)

    np.testing.assert_allclose(variance(2 * one), 4 * variance(one), rtol=1e-9)
    both = variance(one + two) + variance(one - two)
    np.testing.assert_allclose(both, 2 * variance(one) + 2 * variance(two), rtol=1e-9)
    # An estimate's too, of many users: sums of weights that are far from 1.
    aggregate = channel.simulate(np.array([500, 0, 300, 100, 100]), rng)
    f = channel.estimate(aggregate).frequencies
    one, two = one + 3, two - 2

    def told(weights):
        return channel.linear_variances_of(weights, aggregate, f.clip(0, 1), None)

    np.testing.assert_allclose(told(2 * one), 4 * told(one), rtol=1e-9)
    both = told(one + two) + told(one - two)
    np.testing.assert_allclose(both, 2 * told(one) + 2 * told(two), rtol=1e-9)
    # The choice of the users kept adds the variance of the weights among all users.
    among = one**2 @ HELD - (one @ HELD) ** 2
    share = oracle.linear_variance(100, one, HELD) / float(channel.kept)
    np.testing.assert_allclose(
        variance(one), share + among * float(1 / channel.kept - 1) / 100, rtol=1e-9
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: JLOracle(1000, 0.5, rows=64),
        lambda: HadamardCountMeanSketch(1000, 0.5, hashes=4, width=16),
    ],
)
def test_confusion_does_not_average_out(make):
    """However many users there are, and whatever part of them is kept."""
    inner = make()
    channel = sampled_oracle(OneBit(inner))
    assert channel.variance(10**12) >= float(inner.confusion)
    assert channel.difference_variance(10**15) >= inner.difference_variance(10**15) * (1 - 1e-6)


def test_nobody_and_nobody_kept():
    protocol = OneBit(GRR(3, 0.5))
    nobody = protocol.estimate(protocol.aggregate(protocol.privatize([])))
    assert nobody.n == 0
    assert np.isnan(nobody.frequencies).all()
    reports = np.zeros(4, dtype=protocol.report_dtype)  # all bits are 0
    for estimate in (
        protocol.estimate(protocol.aggregate(reports)),
        protocol.estimate(protocol.aggregate(reports), items=[1]),
    ):
        assert estimate.n == 4
        assert np.isnan(estimate.frequencies).all()
        assert (estimate.variances == np.inf).all()
        assert estimate.linear(np.ones(len(estimate.frequencies))).variance == np.inf
    for inner in (
        PrefixExtension(8, 0.5),
        TreeHist(8, 0.5),
        UniqueHeavyHitter(8, 0.5),
        SuccinctHistogram(8, 0.5, n=8, hashes=1, channels=8),
    ):
        finder = OneBit(inner)
        for count in (0, 4):
            found = finder.find(np.zeros(count, dtype=finder.report_dtype))
            assert len(found) == 0
            assert found.complete_above == np.inf
            assert found.n == count or isinstance(inner, UniqueHeavyHitter)


def test_nobody_kept_by_the_unique_heavy_hitter():
    protocol = OneBit(UniqueHeavyHitter(8, 0.5))
    assert protocol.find(np.zeros(4, dtype=protocol.report_dtype)).n == 4


def test_impossible_reports_and_aggregates():
    protocol, other = OneBit(GRR(3, 0.5)), OneBit(GRR(3, 0.5), seed=1)
    reports = protocol.privatize([0, 1, 2, 2], np.random.default_rng(0))
    bad = reports.copy()
    bad["bit"][2] = 2
    with pytest.raises(InvalidReport):
        protocol.aggregate(bad)
    tally: Counter[str] = Counter()
    assert protocol.aggregate(bad, tally).n == 3
    assert tally == {"impossible": 1}
    with pytest.raises(IncompatibleAggregate):
        other.estimate(protocol.aggregate(reports))
    with pytest.raises(IncompatibleAggregate):
        protocol.aggregate(reports) + other.aggregate(reports)
    with pytest.raises(InvalidReport):
        other.reports_from_bytes(protocol.reports_to_bytes(reports))
    whole = protocol.aggregate(reports)
    for change in ([5, 0, 0, 0], [-1, 0, 0, 0], [2, 1, 0, 0], [1, 2, -1, 0]):
        forged = Aggregate(whole.parameters, whole.n, np.array(change))
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(forged)
    for values in ([3], [-1], ["0"], [None], [0.5]):
        with pytest.raises(InvalidValue):
            protocol.privatize(values)


def test_the_wrong_verb():
    oracle, finder = OneBit(GRR(3, 0.5)), OneBit(PrefixExtension(8, 0.5))
    with pytest.raises(TypeError, match="use estimate"):
        oracle.find(oracle.privatize([1]))
    with pytest.raises(TypeError, match="use find"):
        finder.estimate(finder.aggregate(finder.privatize([1])))
    for wrong in ({"k": 0}, {"threshold": 2}, {"confidence": 1}):
        with pytest.raises(ValueError, match="must"):
            finder.find(finder.privatize([1]), **wrong)
    assert repr(oracle) == "OneBit(inner=GRR(domain=3, epsilon=0.5), seed=0)"
    assert oracle.report_bits == 1
    assert oracle.epsilon == 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrefixExtension(16, 0.6),
        lambda: PrefixExtension(16, 0.6, lengths=(8, 16)),
        lambda: TreeHist(10, 0.6),
    ],
)
def test_finds_what_the_inner_protocol_would(make):
    """From the kept users' blank reports; strong enough a signal that missing it is an error and
    not chance.
    """
    inner = make()
    protocol, n = OneBit(inner), 40_000
    values = np.repeat([3, 700], [n // 2, n // 2])
    found = protocol.find(protocol.privatize(values, np.random.default_rng(6)), k=2)
    assert sorted(found.items.tolist()) == [3, 700]
    assert found.n == n
    assert np.abs(found.frequencies - 0.5).max() < 6 * np.sqrt(found.variances).max()
    assert (found.interval().low < 0.5).all()
    assert (found.interval().high > 0.5).all()


@pytest.mark.slow
def test_words_of_64_bits():
    protocol = OneBit(UniqueHeavyHitter(64, 0.69))
    word = 2**64 - 3
    found = protocol.find(
        protocol.privatize(np.full(40_000, word, dtype=np.uint64), np.random.default_rng(1)), k=1
    )
    assert found.items.tolist() == [word]


def test_users_without_an_item():
    """The promise of `UniqueHeavyHitter` has users without an item: they keep a report with
    probability c.
    """
    protocol = OneBit(UniqueHeavyHitter(8, 0.69))
    values = [200] * 15_000 + [None] * 5_000
    found = protocol.find(protocol.privatize(values, np.random.default_rng(1)))
    assert found.items.tolist() == [200]
    assert abs(found.frequencies[0] - 0.75) < 6 * math.sqrt(found.variances[0])


@pytest.mark.parametrize("seed", [-1, 1.5, None, "1", True, 1 << 64])
def test_wrong_seeds(seed):
    with pytest.raises(ValueError, match="seed"):
        OneBit(GRR(3, 0.5), seed=seed)
