"""The unique heavy hitter: users hold one and the same item, or none.

False alarms: every statistical test compares a p-value with 1e-6, divided by the number of its
comparisons, and is shown to reject a planted error.
"""

import copy
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from frequency import IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.algebra.exact_draws import WORD
from frequency.heavy import Code, InvalidString, UniqueHeavyHitter
from frequency.heavy.published.unique_heavy_hitter import CodeGate
from tests.contracts.oracle import exponential_below, ratio_of
from tests.frequency.algebra.test_error_correcting_codes import codebook
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import played

EPSILONS = (2.0**-20, 0.1, 0.5, math.log(2), 1, 5, 30)


def enumerated(protocol):
    """All reports and Pr[report | item], a column an item and the last one for no item: from the
    published weights.
    """
    public = protocol.channel.parameters
    truth, lie, code = (
        int(public["truth"]),
        int(public["lie"]),
        Code(public["bits"], public["symbol"]),
    )
    signs, m = codebook(code), code.length
    reports = [(j, s) for j in range(m) for s in (1, -1)]
    table = [
        [
            *(Fraction(truth if own == s else lie, WORD * m) for own in signs[:, j].tolist()),
            Fraction(1, 2 * m),
        ]
        for j, s in reports
    ]
    return np.array(reports, dtype=protocol.report_dtype), table


# ---------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("bits", "symbol"), [(1, None), (2, None), (4, 2), (5, 5)])
def test_audit_is_the_enumerated_ratio(bits, symbol, epsilon):
    """Over all pairs of items and no item, exactly."""
    protocol = UniqueHeavyHitter(bits, epsilon, symbol=symbol)
    reports, table = enumerated(protocol)
    values = range((1 << bits) + 1)
    assert [sum(column) for column in zip(*table, strict=True)] == [1] * len(values)
    audit = protocol.audit()
    assert audit.ratio == ratio_of(table, [(v, u) for v in values for u in range(v)])
    assert audit.holds
    assert audit.ratio <= audit.allowed <= exponential_below(epsilon)
    if epsilon <= 5:
        assert math.log1p(float(audit.ratio - 1)) >= epsilon * (1 - 1e-6)
    assert protocol.aggregate(reports).n == len(reports)
    assert 2**protocol.report_bits >= len(reports)


@pytest.mark.parametrize("value", [0, 3, 14, None])
def test_reports_have_the_distribution(value):
    protocol = UniqueHeavyHitter(4, 1.0, symbol=2)
    reports, table = enumerated(protocol)
    drawn = protocol.privatize([value] * 30_000, np.random.default_rng(8))
    order = np.argsort(reports)
    counts = np.bincount(order[np.searchsorted(reports[order], drawn)], minlength=len(reports))
    P = np.array(table, dtype=float)
    assert goodness(counts, P[:, -1 if value is None else value]) > FALSE_ALARM
    for other in (5, 7, -1):
        if other != value and (value, other) != (None, -1):
            assert goodness(counts, P[:, other]) < FALSE_ALARM


def test_the_sign_is_a_lie_for_words_below_the_weight():
    channel = UniqueHeavyHitter(4, 1.0, symbol=2).channel
    lie, book = channel._choice.lie, codebook(channel.code)
    m = channel.code.length
    assert m == 8
    for item, place in ((0, 0), (9, 7), (15, 3)):
        for word, told in ((0, -1), (lie - 1, -1), (lie, 1), (WORD - 1, 1)):
            reports = np.zeros(1, dtype=channel.report_dtype)
            played(
                lambda source, r=reports, x=item: channel.fill(np.array([x]), r, source),
                [place * (WORD // m), word],
            )
            assert reports["index"][0] == place
            assert reports["sign"][0] == told * book[item, place]


def test_no_item_tells_nothing():
    """None, or a masked entry; anywhere in the list; and nobody with an item is changed by it."""
    protocol = UniqueHeavyHitter(8, 1.0)
    rng = np.random.default_rng(0)
    for values in (
        [None, 7, None, 7],
        np.array([None, 7, None, 7], dtype=object),
        np.ma.array([1, 7, 2, 7], mask=[1, 0, 1, 0]),
    ):
        assert protocol.privatize(values, rng).shape == (4,)
    nobody = protocol.aggregate(protocol.privatize([None] * 20_000, rng))
    assert nobody.n == 20_000
    alarm = -stats.norm.ppf(FALSE_ALARM / 256)
    for word in range(256):  # each codeword's score is a sum of fair coins
        score = (
            1
            - 2
            * protocol.code.minus(
                np.array([word], dtype=np.uint64), np.arange(protocol.code.length)
            )
        ) @ nobody.counts
        assert abs(score) < alarm * math.sqrt(20_000)
    everybody = protocol.aggregate(protocol.privatize([7] * 20_000, rng))
    own = (
        1 - 2 * protocol.code.minus(np.array([7], dtype=np.uint64), np.arange(protocol.code.length))
    ) @ everybody.counts
    assert own > alarm * math.sqrt(20_000)
    assert (
        protocol.privatize([None], rng).shape
        == protocol.privatize(np.ma.masked_all(1, dtype=int), rng).shape
        == (1,)
    )
    assert protocol.privatize([], rng).shape == (0,)
    text = UniqueHeavyHitter(16, 1.0, text=True)
    assert text.privatize(["ab", None, ""], rng).shape == (3,)
    assert text.privatize(np.ma.array(["ab", "x"], mask=[0, 1]), rng).shape == (2,)
    assert text.privatize("ab", rng).shape == (1,)


def test_masked_entries_hide_what_is_under_the_mask():
    """Even if that is no item at all."""
    protocol = UniqueHeavyHitter(8, 1.0)
    assert protocol.privatize(
        np.ma.array([7, 9999, -1], mask=[0, 1, 1]), np.random.default_rng(0)
    ).shape == (3,)


@pytest.mark.parametrize("bad", [256, -1, 0.5, "7", math.nan])
def test_bad_items(bad):
    protocol = UniqueHeavyHitter(8, 1.0)
    with pytest.raises(InvalidValue) as refused:
        protocol.privatize([7, bad], np.random.default_rng(0))
    assert refused.value.index == 1
    with pytest.raises(InvalidString):
        UniqueHeavyHitter(8, 1.0, text=True).privatize(["a", "ab"])
    with pytest.raises(ValueError, match="one-dimensional"):
        protocol.privatize(np.zeros((2, 2), dtype=int))


def test_bad_items_are_named_by_their_position():
    with pytest.raises(InvalidValue) as refused:
        UniqueHeavyHitter(8, 1.0).privatize([None, None, 256])
    assert refused.value.index == 2


def test_nothing_is_drawn_for_bad_items():
    rng = np.random.default_rng(0)
    before = copy.deepcopy(rng.bit_generator.state)
    with pytest.raises(InvalidValue, match="nothing was drawn"):
        UniqueHeavyHitter(8, 1.0).privatize([7, 256], rng)
    assert rng.bit_generator.state == before


def test_a_single_numpy_integer():
    assert UniqueHeavyHitter(8, 1.0).privatize(np.int64(7)).shape == (1,)


def test_masked_tables_are_refused():
    with pytest.raises(ValueError, match="one-dimensional"):
        UniqueHeavyHitter(8, 1.0).privatize(np.ma.zeros((2, 2), dtype=int))


def test_a_single_value():
    assert UniqueHeavyHitter(8, 1.0).privatize(7).shape == (1,)


# ---------------------------------------------------------------------------------------- finding


def population(protocol, item, share, n, rng):
    held = round(share * n)
    return protocol.aggregate(protocol.privatize([item] * held + [None] * (n - held), rng))


@pytest.mark.parametrize("bits", [1, 3, 8, 10])
def test_finds_the_likeliest_word(bits):
    """Against the scores of all words, from the sums of signs added up one by one."""
    protocol, item, n = UniqueHeavyHitter(bits, 1.0), (1 << bits) - 1, 6000
    rng = np.random.default_rng(bits)
    reports = protocol.privatize([item] * 4000 + [None] * 2000, rng)
    sums = np.zeros(protocol.code.length)
    for index, sign in reports.tolist():
        sums[index] += sign
    scores = codebook(protocol.code) @ sums
    found = protocol.find(reports, k=1)
    assert found.items.tolist() == [int(scores.argmax())] == [item]
    contrast = (math.e - 1) / (math.e + 1)  # up to the rounding of alpha
    assert found.frequencies[0] == pytest.approx(scores.max() / n / contrast, rel=1e-6)
    f = found.frequencies[0]
    assert found.variances[0] == pytest.approx((contrast**-2 - f) / n, rel=1e-6)
    assert found.n == n


@pytest.mark.slow
def test_estimates_are_unbiased_with_the_stated_variance():
    """Of the item that is there: 400 runs; the alarm is set off by a twentieth of a deviation, or a
    variance twice as large.
    """
    protocol, n, runs, share = UniqueHeavyHitter(4, 2.0), 1000, 400, 0.6
    rng = np.random.default_rng(3)
    found = [protocol.find(population(protocol, 9, share, n, rng), k=1) for _ in range(runs)]
    assert {f.items[0] for f in found} == {9}
    f = np.array([f.frequencies[0] for f in found])
    contrast = protocol.channel.contrast
    variance = (contrast**-2 - share) / n
    alarm = FALSE_ALARM / 4
    low, high = (stats.chi2.ppf(tail, runs - 1) for tail in (alarm, 1 - alarm))
    limit = -stats.norm.ppf(alarm) * math.sqrt(variance / runs)
    spread = f.var(ddof=1) * (runs - 1)
    assert abs(f.mean() - share) < limit < math.sqrt(variance)
    assert low < spread / variance < high
    assert not low < spread / (2 * variance) < high
    covered = sum(bool(x.interval().low[0] <= share <= x.interval().high[0]) for x in found)
    assert stats.binom.cdf(covered, runs, 0.95) > FALSE_ALARM


@pytest.mark.parametrize(
    ("bits", "value"), [(64, 2**64 - 1), (64, 2**63), (33, 2**32), (1, 1), (1, 0)]
)
def test_long_and_short_words(bits, value):
    protocol = UniqueHeavyHitter(bits, 3.0)
    found = protocol.find(
        protocol.privatize(np.full(4000, value, dtype=np.uint64), np.random.default_rng(1)), k=1
    )
    assert found.items.tolist() == [value]
    assert found.significant.all()


def test_text():
    protocol = UniqueHeavyHitter(64, 3.0, text=True)
    for value in ("", "a", "🦆duck", "日本"):
        found = protocol.find(
            protocol.privatize([value] * 3000 + [None] * 1000, np.random.default_rng(1)), k=1
        )
        assert found.items.tolist() == [value]


def test_a_word_that_is_no_string_is_not_listed():
    """If noise decodes to bytes that are not UTF-8 there is nothing to list."""
    protocol = UniqueHeavyHitter(64, 0.1, text=True)
    sizes = {
        len(protocol.find(protocol.privatize([None] * 50, np.random.default_rng(s)), k=1))
        for s in range(5)
    }
    assert 0 in sizes


def hits(protocol, share, n, runs, item=200):
    rng = np.random.default_rng(int(1000 * share))
    return sum(
        item in protocol.find(population(protocol, item, share, n, rng), k=1).items
        for _ in range(runs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16])
def test_decoding_succeeds_as_often_as_is_said(bits):
    """Over 100 runs at several frequencies: the number of successes is not significantly below the
    bound.
    """
    protocol, n, runs = UniqueHeavyHitter(bits, 1.0), 3000, 100
    gate = CodeGate(protocol.code, protocol.channel.contrast, n)
    informative = 0
    for share in (0.2, 0.3, 0.4, 0.5):
        claimed = 1 - float(gate(share))
        found = hits(protocol, share, n, runs)
        assert stats.binom.cdf(found, runs, claimed) > FALSE_ALARM / 4
        informative += claimed > 0.5
    assert informative
    assert stats.binom.cdf(hits(protocol, 0.02, n, runs), runs, 0.6) < FALSE_ALARM, (
        "it would be noticed"
    )


def test_nothing_is_claimed_of_rounded_sums():
    """They fall short of the bound for the sums themselves, which is nearly attained where few
    words are to be told apart.
    """
    protocol, n, runs, share = UniqueHeavyHitter(8, 1.0, soft=False), 3000, 200, 0.225
    soft = CodeGate(protocol.code, protocol.channel.contrast, n)
    assert (
        stats.binom.cdf(hits(protocol, share, n, runs), runs, 1 - float(soft(share))) < FALSE_ALARM
    )
    assert (
        protocol.find(protocol.privatize([1] * n, np.random.default_rng(0)), k=1).recall(1.0) == 0
    )


@pytest.mark.slow
def test_rounding_needs_more_users():
    """Both find an item of most users; at frequencies in between the sums find it clearly more
    often.
    """
    soft, hard = (UniqueHeavyHitter(16, 1.0, soft=soft) for soft in (True, False))
    assert hits(soft, 0.9, 3000, 10) == hits(hard, 0.9, 3000, 10) == 10
    both = [hits(protocol, 0.2, 3000, 150) for protocol in (soft, hard)]
    assert both[0] > both[1]
    assert stats.fisher_exact([[both[0], 150 - both[0]], [both[1], 150 - both[1]]]).pvalue < 1e-3


def test_noise_is_not_listed_by_default():
    """Neither k nor threshold: what noise alone would not exceed, with probability 95 %."""
    protocol, runs = UniqueHeavyHitter(16, 1.0), 60
    alarms = sum(
        len(protocol.find(population(protocol, 1, 0.0, 500, np.random.default_rng(s)))) > 0
        for s in range(runs)
    )
    assert stats.binom.sf(alarms - 1, runs, 0.05) > FALSE_ALARM


def test_thresholds():
    protocol = UniqueHeavyHitter(8, 3.0)
    aggregate = population(protocol, 5, 0.5, 4000, np.random.default_rng(2))
    assert protocol.find(aggregate, threshold=0.4).items.tolist() == [5]
    assert len(protocol.find(aggregate, threshold=0.7)) == 0
    assert protocol.find(aggregate, k=3).items.tolist() == [5]
    quiet = population(protocol, 5, 0.0, 4000, np.random.default_rng(2))
    assert not protocol.find(quiet, k=1).significant.any()


# -------------------------------------------------------------------------------- what is refused


def test_reports_and_aggregates_of_others():
    protocol, other = UniqueHeavyHitter(8, 1.0), UniqueHeavyHitter(8, 2.0)
    reports = protocol.privatize([7, None], np.random.default_rng(0))
    with pytest.raises(IncompatibleAggregate):
        other.find(protocol.aggregate(reports))
    with pytest.raises(InvalidReport):
        other.reports_from_bytes(protocol.reports_to_bytes(reports))
    with pytest.raises(InvalidReport):
        UniqueHeavyHitter(64, 1.0).find(reports)
    for name, value in (
        ("index", protocol.code.length),
        ("index", 255),
        ("sign", 0),
        ("sign", 2),
        ("sign", -128),
    ):
        bad = reports.copy()
        if name == "index" and protocol.code.length > 255:
            continue
        bad[name][0] = min(value, 255) if name == "index" else value
        if bad["index"][0] < protocol.code.length and name == "index":
            continue
        with pytest.raises(InvalidReport):
            protocol.find(bad)
        tally: Counter[str] = Counter()
        assert protocol.aggregate(bad, tally).n == 1
        assert tally == {"impossible": 1}


def test_equality():
    assert UniqueHeavyHitter(8, 1.0) == UniqueHeavyHitter(np.int64(8), 1.0)
    assert UniqueHeavyHitter(8, 1.0).channel == UniqueHeavyHitter(8, 1.0, soft=False).channel
    assert UniqueHeavyHitter(8, 1.0) != UniqueHeavyHitter(8, 1.0, symbol=4)
    assert UniqueHeavyHitter(8, 1.0, symbol=4).channel.parameters["symbol"] == 4


def test_a_numpy_symbol():
    protocol = UniqueHeavyHitter(8, 1.0, symbol=np.int64(4))
    assert protocol.find(protocol.privatize([7] * 1000)).n == 1000


@pytest.mark.parametrize("symbol", [0, 9, 2.0, "4", True])
def test_wrong_symbols(symbol):
    with pytest.raises(ValueError, match="symbol"):
        UniqueHeavyHitter(8, 1.0, symbol=symbol)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, None, "much", True, 2.0**-40])
def test_wrong_epsilon(epsilon):
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        UniqueHeavyHitter(8, epsilon)
