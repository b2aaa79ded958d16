"""Succinct histograms: signs in channels, and one for the frequency oracle; the literal protocol
and its lazy client agree.

False alarms: every statistical test compares a p-value with 1e-6, divided by the number of its
comparisons, and is shown to reject a planted error.
"""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from frequency import IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.algebra.exact_draws import WORD
from frequency.algebra.hash_functions import Coins, LinearHash
from frequency.heavy import Code, OneBit, SuccinctHistogram
from frequency.heavy.published.succinct_histogram import LARGEST_STATE, ChannelsGate
from frequency.heavy.published.unique_heavy_hitter import CodeGate
from tests.contracts.oracle import exponential_below, public_bit
from tests.frequency.algebra.test_error_correcting_codes import codebook
from tests.goodness_of_fit import FALSE_ALARM, goodness

EPSILONS = (2.0**-20, 0.1, 0.5, math.log(2), 1, 5, 30)


def tiny(epsilon=1.0, hashes=1, seed=0):
    """2 bits, so that a codeword has 4 places; 2 channels a hash function; 2 rows: 256 reports for
    one hash function.
    """
    return SuccinctHistogram(2, epsilon, hashes=hashes, channels=2, rows=2, seed=seed)


def theory(n, beta=0.05):
    """The paper's sizes."""
    hashes, channels = SuccinctHistogram.theory_sizes(n, beta)
    return {"hashes": hashes, "channels": channels}


def all_reports(protocol):
    channel = protocol.channel
    signs = list(product(range(channel.code.length), (1, -1)))
    rows = [
        (tuple(j for j, _ in chosen), tuple(s for _, s in chosen), told)
        for chosen in product(signs, repeat=channel.hashes * channel.channels)
        for told in product(range(channel.rows), (1, -1))
    ]
    return np.array(rows, dtype=channel.report_dtype)


def agreements(protocol, reports):
    """How many of the signs that matter are those of each item, from the definitions: (reports,
    items).
    """
    channel, public = protocol.channel, protocol.channel.parameters
    book, seed = codebook(Code(*public["code"])), public["seed"]
    result = np.zeros((len(reports), 4), dtype=int)
    for item in range(4):
        for t in range(public["hashes"]):
            place = (
                LinearHash(f"channel {t}", seed, 1)(np.array([item], dtype=np.uint64))[0]
                + t * public["channels"]
            )
            result[:, item] += (
                reports["sign"][:, place] == book[item, reports["index"][:, place].astype(int)]
            )
        row = 1 - 2 * np.array(
            [public_bit("projection", seed, channel.rows, r, item) for r in range(channel.rows)]
        )
        result[:, item] += reports["oracle"]["sign"] == row[reports["oracle"]["row"]]
    return result


def enumerated_ratio(protocol):
    """The largest ratio of the probabilities of a report under two items: each sign that matters
    has weight truth or lie, all others are fair coins.
    """
    public = protocol.channel.parameters
    truth, lie = (Fraction(2 * int(public[name]), WORD) for name in ("truth", "lie"))
    agree = agreements(protocol, all_reports(protocol))
    most = int((agree.max(axis=1) - agree.min(axis=1)).max())
    assert most <= public["hashes"] + 1
    return (truth / lie) ** most


# ---------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("hashes", "seed"), [(1, 0), (1, 1), (2, 0)])
def test_reports_lose_no_more_than_is_allowed(epsilon, hashes, seed):
    protocol = tiny(epsilon, hashes, seed)
    audit = protocol.audit()
    assert enumerated_ratio(protocol) <= audit.ratio <= audit.allowed <= exponential_below(epsilon)
    assert audit.holds


@pytest.mark.parametrize("hashes", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_audit_is_the_enumerated_ratio(epsilon, hashes):
    """Of two items in different channels, 2 truth in one times 1 / (2 lie) in the other: truth /
    lie for each hash function.
    """
    protocol = tiny(epsilon, hashes)
    assert protocol.audit().ratio == enumerated_ratio(protocol)
    assert math.log(enumerated_ratio(protocol)) > epsilon * (1 - 1e-6), (
        "and the privacy loss is used up"
    )


@pytest.mark.parametrize("epsilon", [2.0**-32, 2.0**-20, 1e-3, 1, 10, 100, 600])
@pytest.mark.parametrize("hashes", [1, 3, 10])
def test_shares_of_epsilon_are_within_it(epsilon, hashes):
    if epsilon / (2 * hashes + 1) < 2.0**-32:
        with pytest.raises(ValueError, match="epsilon"):
            SuccinctHistogram(8, epsilon, hashes=hashes, channels=4).audit()
    else:
        assert SuccinctHistogram(8, epsilon, hashes=hashes, channels=4).audit().holds


def test_kinds_of_epsilon():
    for epsilon in (Fraction(1, 2), "0.5", "1/2"):
        protocol = SuccinctHistogram(8, epsilon, hashes=1, channels=4, rows=8)
        assert protocol.audit().holds
        assert protocol.find(protocol.privatize([1, 2, 3])).n == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_reports_have_the_distribution(seed):
    """All 256 reports; and holders of other items have another one."""
    protocol = tiny(4.0, seed=seed)
    reports = all_reports(protocol)
    assert protocol.aggregate(reports).n == len(reports) == 256
    public = protocol.channel.parameters
    weights = np.array([int(public["lie"]), int(public["truth"])], dtype=float) / WORD * 2
    agree = agreements(protocol, reports)
    P = weights[0] ** (2 - agree) * weights[1] ** agree / 256
    np.testing.assert_allclose(P.sum(axis=0), 1)
    place = {row.tobytes(): k for k, row in enumerate(reports)}
    rng = np.random.default_rng(5)
    for item in range(4):
        drawn = protocol.privatize(np.full(30_000, item), rng)
        counts = np.bincount([place[row.tobytes()] for row in drawn], minlength=256)
        assert goodness(counts, P[:, item]) > FALSE_ALARM / 4
        assert goodness(counts, P[:, (item + 1) % 4]) < FALSE_ALARM


def test_likelihoods_are_ratios_of_enumerated_probabilities():
    """Exactly: (2 lie)^(T + 1 - k) (2 truth)^k for k agreements."""
    for hashes in (1, 2):
        channel = tiny(0.5, hashes).channel
        reports = all_reports(tiny(0.5, hashes))[:: 1 if hashes == 1 else 37]
        agree = agreements(tiny(0.5, hashes), reports)
        (stated,) = channel.likelihoods
        lie, truth = (
            Fraction(2 * int(channel.parameters[name]), WORD) for name in ("lie", "truth")
        )
        assert stated == tuple(lie ** (hashes + 1 - k) * truth**k for k in range(hashes + 2))
        for item in range(4):
            assert (
                channel.likelihood(reports, np.full(len(reports), item)).tolist()
                == agree[:, item].tolist()
            )


def test_blank_reports_are_uniform():
    protocol = tiny(0.5)
    coins = Coins(np.random.default_rng(1).integers(0, WORD, size=60_000, dtype=np.uint64), 3)
    place = {row.tobytes(): k for k, row in enumerate(all_reports(protocol))}
    counts = np.bincount(
        [place[row.tobytes()] for row in protocol.channel.blank(coins)], minlength=256
    )
    flat = np.full(256, 1 / 256)
    assert goodness(counts, flat) > FALSE_ALARM
    flat[0], flat[1] = 1.5 / 256, 0.5 / 256
    assert goodness(counts, flat) < FALSE_ALARM


# ----------------------------------------------------------------------------------- public coins


@pytest.mark.parametrize(
    "protocol",
    [
        tiny(0.5, 2),
        SuccinctHistogram(16, 0.6, hashes=3, channels=64, rows=100, seed=5),
        SuccinctHistogram(64, 0.6, hashes=2, channels=4, rows=64),
        SuccinctHistogram(9, 0.6, n=20, **theory(20)),
    ],
    ids=["tiny", "16 bits", "64 bits", "of theory"],
)
def test_a_client_computes_only_what_matters(protocol, monkeypatch):
    """`coins_likelihood` is `likelihood` of the whole blank report; whatever the batches."""
    channel, rng = protocol.channel, np.random.default_rng(7)
    coins = Coins(rng.integers(0, WORD, size=500, dtype=np.uint64), 11)
    items = rng.integers(0, 1 << protocol.bits, size=500, dtype=np.uint64).view(np.int64)
    blank = channel.blank(coins)
    lazy = channel.coins_likelihood(coins, items)
    assert lazy.tolist() == channel.likelihood(blank, items).tolist()
    assert len(set(lazy.tolist())) > 1
    monkeypatch.setattr(type(channel), "batch_size", 7)
    assert channel.blank(coins).tobytes() == blank.tobytes()


def test_the_server_adds_up_the_kept_blank_reports():
    """The aggregate of one-bit reports is the literal aggregate of what the coins of those kept
    say: sign by sign.
    """
    inner = SuccinctHistogram(8, 0.69, hashes=2, channels=8, rows=16, seed=2)
    protocol, channel = OneBit(inner, seed=6), inner.channel
    reports = protocol.privatize(np.arange(600) % 256, np.random.default_rng(1))
    sampled = protocol.channel.sampled(protocol.aggregate(reports))
    blank = channel.blank(Coins(reports["coins"][reports["bit"] == 1], 6))
    assert sampled == inner.aggregate(blank)
    sums = np.zeros((16, channel.code.length), dtype=int)
    for row in blank:
        for k, (index, sign) in enumerate(zip(row["index"], row["sign"], strict=True)):
            sums[k, index] += sign
    assert (channel.sums(sampled) == sums).all()
    told = np.zeros(16, dtype=int)
    np.add.at(told, blank["oracle"]["row"], blank["oracle"]["sign"])
    assert (channel.of_oracle(sampled).counts == told).all()
    found = protocol.find(reports, k=3)
    assert found.n == 600


def test_one_bit_finds_items():
    inner = SuccinctHistogram(16, 0.69, hashes=1, channels=16, rows=256, seed=1)
    protocol, n = OneBit(inner), 30_000
    found = protocol.find(
        protocol.privatize(np.repeat([5, 40_000], [20_000, 10_000]), np.random.default_rng(1)), k=2
    )
    assert found.items[0] == 5
    assert found.n == n
    assert found.interval().low[0] < 2 / 3 < found.interval().high[0]


# ---------------------------------------------------------------------------------------- finding


@pytest.mark.slow
def test_the_paper_s_sizes_for_200_users():
    """8 bits and a large epsilon: both items are found, and nothing else by default."""
    protocol = SuccinctHistogram(8, 30.0, n=200, **theory(200))
    channel = protocol.channel
    assert (channel.hashes, channel.channels) == (3, 4096)
    found = protocol.find(
        protocol.privatize(np.repeat([7, 200], [120, 80]), np.random.default_rng(1))
    )
    assert found.items.tolist() == [7, 200]
    assert np.abs(found.frequencies - [0.6, 0.4]).max() < 6 * np.sqrt(found.variances).max()


def test_sizes_follow_the_theory():
    """channels >= n^(3/2); T hash functions leave none of sqrt(n) items without a channel of its
    own, but for beta / 3.
    """
    for n, beta in ((2, 0.5), (20, 0.05), (100, 0.01), (200, 0.3), (1000, 0.05)):
        sizes = theory(n, beta)
        channel = SuccinctHistogram(8, 1.0, n=n, beta=beta, **sizes).channel
        assert n**1.5 <= channel.channels < 2 * max(n**1.5, 1.01)
        alone = (n / channel.channels) ** channel.hashes
        assert math.sqrt(n) * alone <= beta / 3 * (1 + 1e-9)
        assert (n / channel.channels) ** (channel.hashes - 2) > beta / 3, (
            "one fewer would not do, by the same union bound"
        )
    sizes = theory(200, 0.1)
    protocol = SuccinctHistogram(16, 1.0, n=200, beta=0.1, **sizes)
    t, d, share = protocol.channel.hashes, 1 << 16, 1.0 / (protocol.channel.hashes + 1)
    gamma2 = math.log(2 * d / 0.1) / (share**2 * 200)
    assert protocol.channel.rows == max(64, math.ceil(math.log(d + 1) * math.log(2 / 0.1) / gamma2))
    assert protocol.theory_threshold == pytest.approx(
        (t + 1) * math.sqrt(math.log(d) * math.log(1 / 0.1) / 200)
    )
    assert SuccinctHistogram(16, 1.0, n=1, hashes=1, channels=2).channel.rows == 64
    assert SuccinctHistogram(16, 100.0, n=10**9, hashes=1, channels=2).channel.rows == 1 << 20


def collisions(protocol, words):
    """For each pair of words, under how many hash functions they share a channel."""
    cells = protocol.channel.channel_of(np.array(words, dtype=np.uint64))
    return (cells[:, None] == cells[None]).sum(axis=2)


def test_items_that_share_channels():
    """By construction: found if alone in some channel, whoever is met in the others; lost together
    if never apart.
    """
    protocol = SuccinctHistogram(10, 40.0, hashes=2, channels=8, rows=512, seed=4)
    shared = collisions(protocol, np.arange(1024))
    once = int(np.flatnonzero(shared[1] == 1)[0])
    twice = int(np.flatnonzero(shared[1] == 2)[1])
    apart = int(np.flatnonzero((shared[1] == 0) & (shared[once] == 0) & (shared[twice] == 0))[0])
    assert twice != 1
    n, rng = 3000, np.random.default_rng(1)
    found = protocol.find(protocol.privatize(np.repeat([1, once], n), rng), k=5)
    assert set(found.items[:2].tolist()) == {1, once}
    found = protocol.find(protocol.privatize(np.repeat([1, twice, apart], n), rng), k=5)
    assert apart in found.items
    assert not {1, twice} <= set(found.items.tolist())


def test_the_channels_are_pairwise_independent():
    """Over seeds, two words share a channel of 8 with probability 1/8: 4000 seeds, and 1/6 would be
    noticed.
    """
    words = np.array([3, 2**63 + 9], dtype=np.uint64)
    runs = 4000
    met = sum(
        len(set(LinearHash("channel 0", seed, 3)(words).tolist())) == 1 for seed in range(runs)
    )
    assert stats.binomtest(met, runs, 1 / 8).pvalue > FALSE_ALARM
    assert stats.binomtest(met, runs, 1 / 6).pvalue < FALSE_ALARM


@pytest.mark.slow
def test_isolation_and_decoding_succeed_as_often_as_is_said():
    """Over seeds, among 40 rarer items: 40 runs at each of three frequencies, against the gates of
    the same runs.
    """
    n, runs, informative = 1500, 40, 0
    rng = np.random.default_rng(3)
    for share in (0.25, 0.5, 0.8):
        hits, claims = 0, []
        for seed in range(runs):
            protocol = SuccinctHistogram(
                8, 12.0, hashes=2, channels=64, rows=64, symbol=4, seed=seed
            )
            held = round(share * n)
            values = np.concatenate([np.full(held, 99), rng.integers(0, 40, size=n - held)])
            found = protocol.find(protocol.privatize(values, rng), threshold=share / 2)
            hits += 99 in found.items
            claims.append(found.recall(share))
        claimed = min(claims)
        informative += claimed > 0.8
        assert stats.binom.cdf(hits, runs, claimed) > FALSE_ALARM / 3
    assert informative
    assert stats.binom.cdf(runs // 2, runs, 0.9) < FALSE_ALARM, (
        "half of the runs failing would be noticed"
    )


def test_gate_by_hand():
    gate = ChannelsGate(CodeGate(Code.best(8), 0.5, 1000), 2, 1 << 20, 1000)
    decoding = CodeGate(Code.best(8), 0.5, 1000)
    for f in (0.2, 0.5, 1.0):
        alone = 1000 * (1 - f) / (1 << 20) + float(decoding(f))
        shares = [k / 20 for k in range(1, 20)]
        ahead = min((1 - f) / ((1 << 20) * s * f) + float(decoding((1 - s) * f)) for s in shares)
        assert float(gate(f)) == pytest.approx(min(1, alone, ahead) ** 2)
        assert float(decoding(f)) == pytest.approx(
            min(1, 255 * stats.norm.cdf(-f * 0.5 * math.sqrt(0.5 * 1000)))
        )
    assert gate(np.array([0.0, 1.0])).tolist()[0] == 1.0


# ------------------------------------------------------------------------- sizes that are chosen


def populations(n, least):
    """Users of one item at the least frequency, and of others: many just below, as the bound takes
    them to be, or falling as Zipf's law.
    """
    few, held = 1, math.ceil(least * n)
    rest = n - few * held
    ranks = 1 / np.arange(1, 200) ** 1.1
    below = max(1, held * 3 // 10)
    yield "rivals", few, held, np.full(max(rest // below, 1), below)
    yield "Zipf", few, held, (rest * ranks / ranks.sum()).astype(int)


@pytest.mark.slow
def test_chosen_sizes_find_what_they_say():
    """Over seeds, items at the least frequency are found as often as is said, in any company; and
    those of a fifth of it are not, so that the statement says something. Real sizes are measured by
    ``benchmarks/heavy_hitters.py``.
    """
    runs, bits, epsilon, n = 12, 8, 4.0, 3000
    least = SuccinctHistogram(bits, epsilon, n=n).least_frequency
    assert 0 < least < 0.2
    hits: Counter[str] = Counter()
    for seed in range(runs):
        protocol = SuccinctHistogram(bits, epsilon, n=n, seed=seed)
        assert protocol.channel.hashes * protocol.channel.channels * n <= 1 << 28
        rng = np.random.default_rng([11, seed])
        for name, few, held, others in populations(n, least):
            items = rng.choice(1 << bits, few + len(others), replace=False)
            counts = np.concatenate([np.full(few, held), others])
            found = protocol.find(protocol.simulate(counts, rng, items))
            hits[name] += items[0] in found.items  # one a run: they share hash functions
        counts = np.concatenate([np.full(few, held // 5), others])
        hits["rare"] += items[0] in protocol.find(protocol.simulate(counts, rng, items)).items
    for name in ("rivals", "Zipf"):
        assert stats.binom.cdf(hits[name], runs, 0.95) > FALSE_ALARM / 4
    assert hits["rare"] < runs * 3 // 4
    assert stats.binom.cdf(runs // 3, runs, 0.95) < FALSE_ALARM / 4, "a third would be noticed"


def test_sizes_at_scale():
    """Chosen, with what can be found: more users find rarer items, other sizes no rarer ones."""
    protocol = SuccinctHistogram(16, 2.0, n=200_000)
    assert (protocol.channel.hashes, protocol.channel.channels) == (1, 1024)
    assert protocol.least_frequency < 0.07
    assert "an item held by 6.43% of them or more is found with probability 95%" in str(protocol)
    assert protocol.expected.recall(protocol.least_frequency) >= 0.95
    assert SuccinctHistogram(16, 2.0, n=10**6).least_frequency < protocol.least_frequency
    assert SuccinctHistogram(16, "2", n=200_000).parameters == protocol.parameters
    assert SuccinctHistogram(16, Fraction(2), n=200_000).parameters == protocol.parameters
    for hashes in (1, 2, 3):
        for channels in (64, 128, 256, 512):
            if hashes * channels <= 1024:
                other = SuccinctHistogram(16, 2.0, n=200_000, hashes=hashes, channels=channels)
                assert other.least_frequency > protocol.least_frequency / 1.1
    # Of what is given the rest is chosen
    assert SuccinctHistogram(16, 2.0, n=200_000, channels=64).channel.channels == 64
    assert SuccinctHistogram(16, 2.0, n=200_000, hashes=2).channel.hashes == 2
    assert SuccinctHistogram(16, 2.0, n=200_000, symbol=8).channel.code.symbol == 8


def test_noise_is_not_listed_by_default():
    """Over seeds, users who all hold different items: false alarms no more often than 5 %; 30 %
    would be noticed.
    """
    runs, alarms = 80, 0
    for seed in range(runs):
        protocol = SuccinctHistogram(16, 2.0, hashes=1, channels=8, rows=128, symbol=4, seed=seed)
        values = np.random.default_rng(seed).integers(0, 1 << 16, size=400)
        alarms += (
            len(protocol.find(protocol.privatize(values, np.random.default_rng(1000 + seed)))) > 0
        )
    assert stats.binom.sf(alarms - 1, runs, 0.05) > FALSE_ALARM
    assert stats.binom.sf(round(0.3 * runs) - 1, runs, 0.05) < FALSE_ALARM


def test_strings():
    protocol = SuccinctHistogram(32, 30.0, text=True, hashes=1, channels=16, rows=256)
    values = ["日"] * 1500 + [""] * 800 + ["🦆"] * 700
    found = protocol.find(protocol.privatize(values, np.random.default_rng(2)), k=3)
    assert set(found.items.tolist()) <= {"日", "", "🦆"} | {
        item for item in found.items.tolist() if isinstance(item, str)
    }
    assert found.items[0] == "日"


# ------------------------------------------------------------------------------------- aggregates


def test_aggregates_add_up():
    protocol = SuccinctHistogram(8, 5.0, hashes=2, channels=8, rows=16)
    reports = protocol.privatize(np.arange(300) % 5, np.random.default_rng(1))
    whole = protocol.aggregate(reports)
    assert sum(protocol.aggregate(part) for part in np.split(reports, [10, 10, 150])) == whole
    assert protocol.aggregate(reports[::-1]) == whole
    assert protocol.aggregate_from_bytes(whole.to_bytes()) == whole
    a, b = protocol.find(reports, k=3), protocol.find(whole, k=3)
    assert a.items.tolist() == b.items.tolist()
    assert a.frequencies.tolist() == b.frequencies.tolist()
    assert len(protocol.find(reports[:0])) == 0
    assert len(protocol.find(reports[:1], k=1)) <= 1


def test_impossible_reports():
    protocol = SuccinctHistogram(9, 5.0, hashes=1, channels=4, rows=10)
    reports = protocol.privatize([1, 2, 3], np.random.default_rng(1))
    assert protocol.channel.code.length < 256

    def index(r):
        r["index"][1, 2] = protocol.channel.code.length

    def sign(r):
        r["sign"][1, 0] = 0

    def row(r):
        r["oracle"]["row"][1] = 10

    def told(r):
        r["oracle"]["sign"][1] = 3

    for change in (index, sign, row, told):
        bad = reports.copy()
        change(bad)
        with pytest.raises(InvalidReport):
            protocol.find(bad)
        tally: Counter[str] = Counter()
        assert protocol.aggregate(bad, tally).n == 2
        assert tally == {"impossible": 1}


def test_foreign_aggregates():
    make = {"hashes": 1, "channels": 4, "rows": 10}
    protocol = SuccinctHistogram(8, 5.0, **make)
    aggregate = protocol.aggregate(protocol.privatize([1, 2, 3], np.random.default_rng(1)))
    for other in (
        SuccinctHistogram(8, 5.0, **make, seed=1),
        SuccinctHistogram(8, 4.0, **make),
        SuccinctHistogram(8, 5.0, **(make | {"rows": 11})),
        SuccinctHistogram(8, 5.0, **(make | {"channels": 8})),
        SuccinctHistogram(8, 5.0, **make, symbol=4),
    ):
        with pytest.raises(IncompatibleAggregate):
            other.find(aggregate)
    forged = aggregate.counts.copy()
    forged[0] += 1
    with pytest.raises(IncompatibleAggregate, match="counts"):
        protocol.find(type(aggregate)(aggregate.parameters, aggregate.n, forged))


# -------------------------------------------------------------------------------- what is refused


def test_sizes_that_the_server_could_not_hold():
    with pytest.raises(ValueError, match=r"channels must be an integer, 2 to 2\^27"):
        SuccinctHistogram(8, 1.0, **theory(10**6))
    with pytest.raises(ValueError, match=r"channels must be an integer, 2 to 2\^27"):
        SuccinctHistogram(8, 1.0, channels=1 << 62)
    length = Code.best(8).length
    with pytest.raises(ValueError, match="choose fewer channels"):
        SuccinctHistogram(8, 1.0, hashes=1, channels=2 * LARGEST_STATE // length)
    SuccinctHistogram(8, 1.0, hashes=1, channels=LARGEST_STATE // length)


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "epsilon", "n"), [(8, 0.5, 10), (64, 1.0, 1000), (16, 2.0, 100)])
def test_what_finds_nothing_is_refused(bits, epsilon, n):
    """The message says how many users, or which epsilon, are enough; and nine tenths are not."""
    with pytest.raises(ValueError, match=f"{n} users are too few to find anything") as refused:
        SuccinctHistogram(bits, epsilon, n=n)
    (users,) = map(int, re.findall(r"about (\d+) users", str(refused.value)))
    assert SuccinctHistogram(bits, epsilon, n=users + users // 100).least_frequency <= 1
    with pytest.raises(ValueError, match="too few"):
        SuccinctHistogram(bits, epsilon, n=users * 9 // 10)
    for larger in map(float, re.findall(r"epsilon of about ([\d.]+)", str(refused.value))):
        assert SuccinctHistogram(bits, 1.01 * larger, n=n).least_frequency <= 1
        with pytest.raises(ValueError, match="too few"):
            SuccinctHistogram(bits, 0.9 * larger, n=n)
    given = SuccinctHistogram(bits, epsilon, n=n, hashes=1, channels=8)  # may be tried all the same
    assert given.least_frequency == math.inf
    assert "nothing is found" in str(given)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "4"])
@pytest.mark.parametrize("name", ["hashes", "channels", "rows"])
def test_wrong_sizes(name, wrong):
    with pytest.raises(ValueError, match=f"{name} must be an integer"):
        SuccinctHistogram(8, 1.0, **{"hashes": 1, "channels": 4, name: wrong})


def test_other_wrong_parameters():
    for channels in (3, 6, 100):
        with pytest.raises(ValueError, match="power of two"):
            SuccinctHistogram(8, 1.0, channels=channels)
    with pytest.raises(ValueError, match="channels must be an integer, 2 to"):
        SuccinctHistogram(8, 1.0, channels=1)
    for beta in (0, 1, -1, 2, math.nan, math.inf):
        with pytest.raises(ValueError, match="beta"):
            SuccinctHistogram(8, 1.0, beta=beta)
    for n in (0, -1, 1.5, True, None, "5", 10**30):
        with pytest.raises(ValueError, match="n must be"):
            SuccinctHistogram(8, 1.0, n=n)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "5"])
def test_wrong_seeds(seed):
    with pytest.raises(ValueError, match="seed"):
        SuccinctHistogram(8, 1.0, hashes=1, channels=4, seed=seed)


def test_bad_values():
    protocol = SuccinctHistogram(8, 1.0, hashes=1, channels=4)
    for bad in (256, -1, None, "1"):
        with pytest.raises(InvalidValue):
            protocol.privatize([0, bad])
