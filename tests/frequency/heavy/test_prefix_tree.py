"""Prefix protocols: the walk down the tree against direct estimates of every prefix, and what the
list says of its errors.

False alarms: every statistical test compares a p-value with 1e-6, divided by the number of its
comparisons, and is shown to reject a planted error.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from frequency import HRR, IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.algebra.hash_functions import LinearHash
from frequency.heavy import InvalidString, PrefixExtension, TreeHist, UniqueHeavyHitter
from frequency.heavy.prefixes import Prefixes
from tests.contracts.oracle import exponential_below, one_by_one, ratio_of
from tests.frequency.oracles import twins as oracles
from tests.goodness_of_fit import FALSE_ALARM

EPSILONS = (2.0**-20, 0.1, 0.5, math.log(2), 1, 5, 30)
HASHED = (8, 24)
"""Lengths whose second level is hashed, for 24 bits: the cheapest there are."""


def small(epsilon, functions=2, oracle=HRR, seed=0):
    """Items of 3 bits, whose prefixes of more than one bit are hashed into 2 bits."""
    lengths, shares = (1, 3), (Fraction(1, 3), Fraction(2, 3))
    return Prefixes(
        8, epsilon, lengths, shares, oracle, listed=1, places=2, functions=functions, seed=seed
    )


def twin_of(oracle):
    return {"GRR": oracles.TestGRR, "HRR": oracles.TestHRR1, "OLH": oracles.TestOLH}[
        type(oracle).__name__
    ]().twin(oracle)


def enumerated(channel):
    """Every report and Pr[report | item] as fractions, from the twins of the parts: prefixes,
    hashed by the public functions.
    """
    reports, table = [], []
    for level in channel.levels:
        for part in level.parts:
            inner, weight = channel.parts[part], Fraction(channel.part_weights[part], 1 << 64)
            found, chances = twin_of(inner)
            prefixes = np.arange(channel.domain, dtype=np.uint64) >> np.uint64(
                channel.bits - level.length
            )
            if level.functions:
                nodes = LinearHash(f"prefix {part}", channel.seed, channel.places)(
                    prefixes
                ).tolist()
            else:
                nodes = prefixes.tolist()
            own = np.zeros(len(found), dtype=channel.report_dtype)
            own["part"] = part
            own["body"][:, : found.dtype.itemsize] = found.view(np.uint8).reshape(len(found), -1)
            reports.append(own)
            table += [[weight * row[node] for node in nodes] for row in chances]
    return np.concatenate(reports), table


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "make",
    [
        small,
        lambda e: small(e, functions=3, seed=5),
        lambda e: TreeHist(3, e).channel,
        lambda e: PrefixExtension(3, e, lengths=(1, 2, 3)).channel,
        lambda e: PrefixExtension(1, e).channel,
    ],
    ids=["hashed", "hashed again", "tree", "extension", "one bit"],
)
def test_audit_is_the_enumerated_ratio(make, epsilon):
    channel = make(epsilon)
    if any(type(part).__name__ == "OLH" and epsilon > 3 for part in channel.parts):
        pytest.skip("too many reports to list")
    _, table = enumerated(channel)
    assert [sum(column) for column in zip(*table, strict=True)] == [1] * channel.domain
    audit = channel.audit()
    assert audit.ratio == ratio_of(table, [(v, u) for v in range(channel.domain) for u in range(v)])
    assert audit.holds
    assert audit.allowed <= exponential_below(epsilon)
    if epsilon <= 5:
        assert math.log1p(float(audit.ratio - 1)) >= epsilon * (1 - 1e-6)


def test_likelihoods_are_ratios_of_enumerated_probabilities():
    """A report of no item: the part's own weight, and any report of it as likely as any other."""
    for channel in (
        small(0.5),
        TreeHist(3, 0.5).channel,
        PrefixExtension(3, 0.5, lengths=(1, 3)).channel,
    ):
        reports, table = enumerated(channel)
        stated = [ratio for kind in channel.likelihoods for ratio in kind]
        sizes = Counter(reports["part"].tolist())
        blank = [
            Fraction(channel.part_weights[part], (1 << 64) * sizes[part])
            for part in reports["part"].tolist()
        ]
        for v in range(channel.domain):
            which = channel.likelihood(reports, np.full(len(reports), v))
            assert [stated[k] for k in which] == [
                row[v] / b for row, b in zip(table, blank, strict=True)
            ]


# -------------------------------------------------------------------------------------- estimates


def test_estimates_of_prefixes_are_unbiased_over_hash_functions():
    """Given the users of each part, over reports exactly: own frequency, plus the share of
    colliding others, rescaled.
    """
    channel = small(1.0)
    level = channel.levels[1]
    reports, table = enumerated(channel)
    P = np.array(table, dtype=float)
    for part in level.parts:
        mine = np.flatnonzero(reports["part"] == part)
        cells = LinearHash(f"prefix {part}", 0, 2)(np.arange(8, dtype=np.uint64))
        E = []
        for aggregate in one_by_one(channel, reports[mine]):
            tables = channel.tables(aggregate, level)
            E.append(channel.children(level, tables, np.arange(2, dtype=np.uint64), 2).ravel())
        weights = P[mine] / P[mine].sum(axis=0)
        expected = ((cells[:, None] == cells[None]) - 1 / 4) * 4 / 3
        np.testing.assert_allclose(weights.T @ np.array(E), expected, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: PrefixExtension(24, 2.0, lengths=HASHED, seed=3), lambda: TreeHist(16, 2.0)]
)
def test_children_are_direct_estimates(make):
    """Of every prefix of some parents, by asking each part's oracle for the hash of that prefix
    alone.
    """
    channel = make().channel
    rng = np.random.default_rng(2)
    aggregate = channel.aggregate(
        channel.privatize(rng.integers(0, channel.domain, size=3000), rng)
    )
    for before, level in zip((None, *channel.levels), channel.levels, strict=False):
        if level.length not in (8, 13, 15, 16, 24):
            continue
        start = before.length if before else 0
        step = level.length - start
        parents = (
            rng.integers(0, 1 << start, size=4, dtype=np.uint64)
            if start
            else np.zeros(1, dtype=np.uint64)
        )
        found = channel.children(level, channel.tables(aggregate, level), parents, step)
        assert found.shape == (len(parents), 1 << step)
        total = channel.level_users(aggregate, level)
        for row, parent in enumerate(parents.tolist()):
            for low in rng.integers(0, 1 << step, size=5).tolist():
                prefix, mean = (parent << step) | low, 0.0
                for part in level.parts:
                    own = channel.part_aggregate(aggregate, part)
                    node = (
                        int(
                            LinearHash(f"prefix {part}", channel.seed, channel.places)(
                                np.array([prefix], dtype=np.uint64)
                            )[0]
                        )
                        if level.functions
                        else prefix
                    )
                    mean += (
                        own.n / total * float(channel.parts[part].estimate(own).frequencies[node])
                    )
                if level.functions:
                    mean = (mean - 2.0**-channel.places) / (1 - 2.0**-channel.places)
                assert found[row, low] == pytest.approx(mean, rel=1e-9, abs=1e-12)


def test_users_are_split_as_is_said():
    """Chi-square over 50 000 users: the levels' probabilities, a level's functions evenly."""
    channel = PrefixExtension(24, 1.0, lengths=HASHED).channel
    aggregate = channel.aggregate(
        channel.privatize(np.zeros(50_000, dtype=int), np.random.default_rng(1))
    )
    shares = np.array(
        [
            float(p) / len(level.parts)
            for level, p in zip(channel.levels, channel.probabilities, strict=True)
            for _ in level.parts
        ]
    )
    users = aggregate.counts[: len(shares)]
    assert stats.chisquare(users, shares * 50_000).pvalue > FALSE_ALARM
    assert stats.chisquare(users, np.full(len(shares), 50_000 / len(shares))).pvalue < FALSE_ALARM
    assert [channel.level_users(aggregate, level) for level in channel.levels] == [
        users[0],
        users[1:].sum(),
    ]


# ---------------------------------------------------------------------------------------- hashing


def colliding(hashes, word, bits):
    """Another word of so many bits with the same hash under all these functions: x with M (x ^
    word) = 0, by elimination.
    """
    basis: list[tuple[int, int]] = []  # (image under all functions, word), reduced
    zero = [hash_.zero for hash_ in hashes]
    for place in range(bits):
        x, image = 1 << place, 0
        for k, hash_ in enumerate(hashes):
            image |= (int(hash_(np.array([x], dtype=np.uint64))[0]) ^ zero[k]) << (20 * k)
        for known, y in basis:
            if image ^ known < image:
                image, x = image ^ known, x ^ y
        if not image:
            return word ^ x
        basis.append((image, x))
        basis.sort(reverse=True)
    return None


@pytest.mark.slow
def test_collisions_are_resolved():
    """Items that share the cells of half of the functions: their prefixes lend each other half of
    their users, until resolved.
    """
    channel = PrefixExtension(64, 8.0, lengths=(20, 36, 52, 64), seed=2).channel
    level = channel.levels[-1]
    hashes = [channel._hashes[part] for part in level.parts]
    word = 0x123456789ABCDEF0
    other = colliding(hashes[:2], word, 64)
    assert other is not None
    assert other != word
    assert [
        int(h(np.array([other], dtype=np.uint64))[0] == h(np.array([word], dtype=np.uint64))[0])
        for h in hashes
    ] == [
        1,
        1,
        0,
        0,
    ]
    values = np.full(20_000, word, dtype=np.uint64)
    aggregate = channel.aggregate(channel.privatize(values, np.random.default_rng(1)))
    tables = channel.tables(aggregate, level)
    both = np.array([word, other, 77], dtype=np.uint64)
    raw = np.concatenate(
        [
            channel.children(level, tables, both[k : k + 1] >> np.uint64(4), 4)[
                :, int(both[k]) & 15
            ]
            for k in range(3)
        ]
    )
    assert raw[0] == pytest.approx(1, abs=0.05)
    assert raw[1] == pytest.approx(0.5, abs=0.05)
    found = channel.resolved(tables, both, raw, 0.1)
    np.testing.assert_allclose(found, [1, 0, 0], atol=0.05)
    # Two that no function tells apart get the same, and nothing is divided by zero.
    same = np.array([word, word], dtype=np.uint64)
    assert np.isfinite(channel.resolved(tables, same, raw[[0, 0]], 0.1)).all()


def test_confusion_is_the_variance_over_functions():
    """Of the share of the functions under which two items collide, rescaled: 3000 seeds of small
    functions, within 20 %.
    """
    channel = small(1.0)
    level, seeds = channel.levels[1], 3000
    leaks = []
    for seed in range(seeds):
        cells = [
            LinearHash(f"prefix {part}", seed, 2)(np.array([1, 6], dtype=np.uint64))
            for part in level.parts
        ]
        leaks.append((np.mean([a == b for a, b in cells]) - 1 / 4) * 4 / 3)
    aggregate = channel.aggregate(channel.privatize(np.full(50_000, 6), np.random.default_rng(1)))
    # Of one item that everybody holds
    confusion = channel.confusion(level, channel.tables(aggregate, level))
    assert np.var(leaks) == pytest.approx(confusion, rel=0.2)
    assert abs(np.mean(leaks)) < 5 * math.sqrt(confusion / seeds)
    assert channel.confusion(channel.levels[0], []) == 0


# ---------------------------------------------------------------------------------------- finding


MAKE = {
    "listed": lambda e=3.0, **k: PrefixExtension(10, e, **k),
    "two lengths": lambda e=3.0, **k: PrefixExtension(10, e, lengths=(5, 10), **k),
    "hashed": lambda e=3.0, **k: PrefixExtension(24, e, lengths=HASHED, **k),
    "tree": lambda e=3.0, **k: TreeHist(10, e, **k),
}


@pytest.mark.parametrize("name", MAKE)
def test_everybody_is_equal(name):
    protocol = MAKE[name]()
    found = protocol.find(protocol.privatize([777] * 6000, np.random.default_rng(1)), threshold=0.5)
    assert found.items.tolist() == [777]
    assert found.frequencies[0] == pytest.approx(1, abs=6 * math.sqrt(found.variances[0]))
    assert found.interval().low[0] <= 1 <= found.interval().high[0]
    assert found.significant.all()
    assert found.n == 6000


@pytest.mark.parametrize("name", MAKE)
def test_nobody_and_somebody(name):
    protocol = MAKE[name]()
    nobody = protocol.find(protocol.privatize([]))
    assert (len(nobody), nobody.n, nobody.complete_above, nobody.recall(1.0)) == (
        0,
        0,
        math.inf,
        0.0,
    )
    somebody = protocol.find(protocol.privatize(5, np.random.default_rng(0)), k=3)
    assert somebody.n == 1
    assert len(somebody) in (0, 3)
    assert somebody.complete_above > 0.5


def test_one_report_is_no_heavy_hitter():
    """At most one item can be held; with probability 95 % no other is listed."""
    protocol, runs = PrefixExtension(10, 3.0), 60
    alarms = sum(any(item != 5 for item in f.items) for f in runs_of(protocol, [5], runs))
    assert stats.binom.sf(alarms - 1, runs, 0.05) > FALSE_ALARM


@pytest.mark.parametrize("name", MAKE)
def test_merging_is_concatenation(name):
    protocol = MAKE[name]()
    reports = protocol.privatize(np.arange(3000) % 7, np.random.default_rng(1))
    whole = protocol.aggregate(reports)
    assert protocol.aggregate(reports[:1000]) + protocol.aggregate(reports[1000:]) == whole
    assert protocol.aggregate(reports[np.random.default_rng(2).permutation(3000)]) == whole
    assert protocol.aggregate_from_bytes(whole.to_bytes()) == whole
    assert (
        protocol.aggregate(protocol.reports_from_bytes(protocol.reports_to_bytes(reports))) == whole
    )
    a, b = protocol.find(reports[::-1], k=7), protocol.find(whole, k=7)
    assert (a.items.tolist(), a.frequencies.tolist()) == (b.items.tolist(), b.frequencies.tolist())


@pytest.mark.parametrize("make", [PrefixExtension, TreeHist])
def test_one_bit_items(make):
    protocol = make(1, 2.0)
    found = protocol.find(
        protocol.privatize([1] * 3000 + [0] * 1000, np.random.default_rng(1)), k=5
    )
    assert found.items.tolist() == [1, 0]
    assert found.frequencies.tolist() == pytest.approx([0.75, 0.25], abs=0.1)
    assert found.considered == 2


def test_more_items_than_there_are():
    for protocol in (
        PrefixExtension(4, 3.0),
        PrefixExtension(4, 3.0, lengths=(2, 4)),
        TreeHist(4, 3.0),
    ):
        found = protocol.find(
            protocol.privatize(np.arange(2000) % 16, np.random.default_rng(1)), k=10**6
        )
        assert sorted(found.items.tolist()) == list(range(16))
        assert (np.diff(found.frequencies) <= 0).all()


@pytest.mark.slow
def test_words_of_64_bits_and_strings():
    protocol = PrefixExtension(64, 6.0)
    top = 2**64 - 1
    values = np.repeat(np.array([top, 2**63], dtype=np.uint64), [6000, 4000])
    found = protocol.find(protocol.privatize(values, np.random.default_rng(1)))
    assert found.items.tolist() == [top, 2**63]
    assert found.items.dtype == np.uint64
    text = PrefixExtension(24, 6.0, text=True, lengths=HASHED)
    found = text.find(
        text.privatize(["日"] * 5000 + ["ab"] * 3000 + [""] * 2000, np.random.default_rng(1)), k=3
    )
    assert found.items.tolist() == ["日", "ab", ""]
    with pytest.raises(InvalidString):
        text.privatize(["ab", "abcd"])


def test_only_strings_are_listed():
    """However many are asked for: all 128 of one byte, and of two bytes only what is UTF-8."""
    one = PrefixExtension(8, 1.0, text=True)
    found = one.find(one.privatize(["a", "b"] * 500, np.random.default_rng(1)), k=1000)
    assert sorted(map(ord, filter(None, found.items.tolist()))) == list(range(1, 128))
    assert found.considered == 128
    two = PrefixExtension(16, 1.0, text=True, lengths=(3, 11, 16))
    found = two.find(two.privatize(["a", "b"] * 500, np.random.default_rng(1)), k=1000)
    assert all(len(item.encode()) <= 2 and "\0" not in item for item in found.items)


# ------------------------------------------------------------------------- what is said of errors


def runs_of(protocol, values, runs, **options):
    rng = np.random.default_rng(12)
    return [protocol.find(protocol.privatize(values, rng), **options) for _ in range(runs)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["listed", "two lengths", "tree"])
def test_recall_is_a_lower_bound(name):
    """For items of four frequencies: listed in not significantly fewer of 120 runs than is said, on
    average over the runs.
    """
    protocol, n, runs = MAKE[name](1.0), 8000, 120
    held = {3: 0.1, 500: 0.2, 700: 0.3, 1000: 0.4}
    values = np.repeat(list(held), [round(f * n) for f in held.values()])
    found = runs_of(protocol, values, runs, threshold=0.15)
    for item, share in held.items():
        hits = sum(item in f.items for f in found)
        claimed = float(np.mean([f.recall(share) for f in found]))
        assert stats.binom.cdf(hits, runs, claimed) > FALSE_ALARM / 4
    assert found[0].recall(0.4) > 0.5
    assert stats.binom.cdf(runs // 2, runs, 0.75) < FALSE_ALARM


@pytest.mark.slow
def test_every_selection_is_a_gate():
    """Wherever more prefixes were considered than kept, an item can be lost: the gate has a cut."""
    protocol = PrefixExtension(40, 3.0)
    assert len(protocol.channel.lengths) == 3
    aggregate = protocol.aggregate(protocol.privatize(np.arange(3000), np.random.default_rng(1)))
    for step in protocol._walk(aggregate, aggregate.n, 1024):
        assert step.considered == len(step.prefixes) or step.cut > -np.inf


@pytest.mark.parametrize("name", ["listed", "two lengths", "tree"])
def test_intervals_cover(name):
    """The mean share of intervals that miss, over 60 runs, is at most 5 %, by a one-sided t test;
    20 % would be noticed.
    """
    protocol, n, runs = MAKE[name](2.0), 6000, 60
    held = {3: 0.1, 500: 0.2, 700: 0.3, 1000: 0.4}
    values = np.repeat(list(held), [round(f * n) for f in held.values()])
    missed = []
    for found in runs_of(protocol, values, runs, k=6):
        true = np.array([held.get(item, 0.0) for item in found.items.tolist()])
        missed.append(np.mean((found.interval().low > true) | (found.interval().high < true)))
    assert stats.ttest_1samp([*missed, 0.0, 0.3], 0.05, alternative="greater").pvalue > FALSE_ALARM
    wrong = [0.2 + m + 0.01 * (k % 3) for k, m in enumerate(missed)]
    assert stats.ttest_1samp([*wrong, 0.0, 0.3], 0.05, alternative="greater").pvalue < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", ["listed", "two lengths", "tree"])
def test_noise_is_not_listed_by_default(name):
    """All users hold one item, at small epsilon: another one is listed in not significantly more
    than 5 % of 120 runs.
    """
    protocol, runs = MAKE[name](1.0), 120
    alarms = sum(any(item != 7 for item in f.items) for f in runs_of(protocol, [7] * 3000, runs))
    assert stats.binom.sf(alarms - 1, runs, 0.05) > FALSE_ALARM
    assert stats.binom.sf(round(0.25 * runs) - 1, runs, 0.05) < FALSE_ALARM, (
        "a quarter would be noticed"
    )


def test_noise_is_not_listed_by_default_at_large_epsilon():
    """Where few users support an item by chance, 1000 / (e^5 + 1) = 7 of them, the threshold is too
    low.
    """
    protocol, runs = PrefixExtension(12, 5.0), 60
    alarms = sum(any(item != 7 for item in f.items) for f in runs_of(protocol, [7] * 1000, runs))
    assert stats.binom.sf(alarms - 1, runs, 0.05) > FALSE_ALARM


# -------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("name", MAKE)
def test_corrupted_reports(name):
    protocol = MAKE[name]()
    reports = protocol.privatize(np.arange(200), np.random.default_rng(1))
    bad = reports.copy()
    bad["part"][[3, 9]] = 255
    with pytest.raises(InvalidReport, match=r"reports\[3\]"):
        protocol.find(bad)
    tally: Counter[str] = Counter()
    assert protocol.aggregate(bad, tally).n == 198
    assert tally == {"impossible": 2}
    message = protocol.reports_to_bytes(reports)
    tally = Counter()
    assert len(protocol.reports_from_bytes(message[:-1], tally)) == 199
    assert tally["truncated"] == 1
    for junk in (b"", b"junk", message[:20]):
        tally = Counter()
        assert len(protocol.reports_from_bytes(junk, tally)) == 0
        assert sum(tally.values()) == 1


@pytest.mark.parametrize("name", MAKE)
def test_reports_and_aggregates_of_others(name):
    protocol = MAKE[name]()
    reports = protocol.privatize(np.arange(50), np.random.default_rng(1))
    others = [MAKE[other]() for other in MAKE if other != name] + [
        MAKE[name](2.0),
        MAKE[name](seed=1),
        UniqueHeavyHitter(10, 3.0),
    ]
    for other in others:
        with pytest.raises(IncompatibleAggregate):
            other.find(protocol.aggregate(reports))
        with pytest.raises(InvalidReport):
            other.reports_from_bytes(protocol.reports_to_bytes(reports))


@pytest.mark.parametrize(
    "lengths",
    [
        (),
        (4,),
        (0, 8),
        (-1, 8),
        (4, 4, 8),
        (8, 4),
        (4, 9),
        (4, 8, 8),
        (4.0, 8),
        (True, 8),
        ("4", 8),
        "ab",
        (4, None, 8),
        (8, 16),
    ],
    ids=str,
)
def test_wrong_lengths(lengths):
    with pytest.raises(ValueError, match="lengths must increase"):
        PrefixExtension(8, 1.0, lengths=lengths)


def test_more_wrong_lengths():
    for lengths in ((21, 24), (1, 24), (7, 24), (24,)):
        with pytest.raises(ValueError, match="the first length can be 20 bits at most"):
            PrefixExtension(24, 1.0, lengths=lengths)
    with pytest.raises(TypeError):
        PrefixExtension(8, 1.0, lengths=5)


def test_lengths():
    assert PrefixExtension(8, 1.0, lengths=[4, np.int64(8)]) == PrefixExtension(
        8, 1.0, lengths=(4, 8)
    )
    assert (
        len(
            {
                PrefixExtension(8, 1.0, lengths=[4, 8]),
                PrefixExtension(8, 1.0, lengths=(4, 8)),
                PrefixExtension(8, 1.0),
            }
        )
        == 2
    )
    for bits in range(1, 65):
        lengths = PrefixExtension(bits, 1.0).channel.lengths
        steps = np.diff((0, *lengths))
        assert lengths[-1] == bits
        assert steps.min() >= 1
        assert steps[0] <= 20
        assert max(steps[1:], default=0) <= 12
        assert sum(PrefixExtension(bits, 1.0).channel.part_weights) == 1 << 64
        assert TreeHist(bits, 1.0).channel.lengths == tuple(range(1, bits + 1))
        assert sum(TreeHist(bits, 1.0).channel.probabilities) == 1


@pytest.mark.parametrize("seed", [-1, 1.5, None, "1", True])
@pytest.mark.parametrize("make", [PrefixExtension, TreeHist])
def test_wrong_seeds(make, seed):
    with pytest.raises(ValueError, match="seed"):
        make(8, 1.0, seed=seed)


@pytest.mark.parametrize("make", [PrefixExtension, TreeHist])
def test_wrong_values(make):
    for bad in (256, -1, None, "1", 0.5, math.nan):
        with pytest.raises(InvalidValue):
            make(8, 1.0).privatize([0, bad])
    for bits in (0, 65, "8", 8.0, True, None):
        with pytest.raises(ValueError, match="bits"):
            make(bits, 1.0)
    for epsilon in (0, -1, math.nan, None, "much"):
        with pytest.raises((ValueError, TypeError), match="epsilon"):
            make(8, epsilon)
