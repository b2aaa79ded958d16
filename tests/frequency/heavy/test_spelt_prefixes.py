"""Long texts: reports are of the hashes that are published, and the walk down the tree finds what
users have, with estimates from all who report on prefixes that decide a text.

False alarms: every statistical test compares with tails of a probability of 1e-6.
"""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from frequency import GRR, OLH, InvalidQuestion, InvalidValue
from frequency.algebra.hash_functions import FEW, LinearHash
from frequency.heavy import (
    InvalidString,
    OneBit,
    PrefixExtension,
    SuccinctHistogram,
    TreeHist,
    UniqueHeavyHitter,
)
from frequency.heavy.prefixes import SpeltPrefixes, Walk
from frequency.planning.tasks import HeavyHitters
from tests.frequency.heavy.test_spelling import spelt

NAMES = {"Reykjavík": 0.4, "Kópavogur": 0.3, "Hafnarfjörður": 0.15, "": 0.1}


def hashed(bits, text, places):
    """The wide hash of a text of 0 and 1, from the page on the wire."""
    limbs = -(-len(bits) // 64)
    bits = bits.ljust(64 * limbs, "0")
    words = [int(bits[64 * k : 64 * k + 64], 2) for k in range(limbs)]
    stream = hashlib.shake_256(text.encode()).digest(8 * places * limbs + 8)
    numbers = [int.from_bytes(stream[k : k + 8], "little") for k in range(0, len(stream), 8)]
    constant, rows = numbers[0] % (1 << places), numbers[1:]
    result = constant
    for i in range(places):
        ones = sum((rows[i * limbs + k] & words[k]).bit_count() for k in range(limbs))
        result ^= (ones & 1) << i
    return result


def some_reports(protocol, n, seed=1, names=NAMES):
    rng = np.random.default_rng(seed)
    rest = [f"{k}" for k in range(n)]
    values = [name for name, share in names.items() for _ in range(round(n * share))]
    return protocol.aggregate(protocol.privatize([*values, *rest][:n], rng))


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 5.5])
def test_items_of_parts_are_the_published_hashes(epsilon):
    protocol = PrefixExtension(26 * 8, epsilon, text=True, seed=5)
    channel = protocol.channel
    texts = ["", "e", "Reykjavík", "x" * 26, "\x01" * 26, "日本語"]
    words = protocol.items_of(texts)
    before = words.copy()
    for level in channel.levels:
        for part in level.parts[::3]:
            name, length, text, places = channel.part_expression(part)
            assert (name, length, places) == ("spelt", level.length, channel.places)
            expected = [
                hashed(spelt(one).ljust(length, "0")[:length], text, places) for one in texts
            ]
            assert channel.part_items(part, words).tolist() == expected
            assert channel.parts[part].domain == 1 << places
    assert (words == before).all()


def test_wide_hashes_are_linear():
    hash_, rng = LinearHash("x", 3, 12, 3), np.random.default_rng(1)
    x, y = rng.integers(0, 1 << 64, (2, 50, 4), dtype=np.uint64)
    assert (hash_(x ^ y) == hash_(x) ^ hash_(y) ^ hash_.zero).all()
    assert (hash_(np.zeros((1, 4), dtype=np.uint64)) == hash_.zero).all()
    other = x.copy()
    other[:, 3] = 0  # beyond the limbs that are hashed
    assert (hash_(x) == hash_(other)).all()


def test_wide_hashes_of_many_words_are_those_of_each():
    hash_, rng = LinearHash("x", 3, 12, 3), np.random.default_rng(1)
    words = rng.integers(0, 1 << 64, (2 * FEW, 4), dtype=np.uint64)
    assert hash_(words).tolist() == [int(hash_(word)) for word in words]


@pytest.mark.parametrize("epsilon", [2.0**-20, 0.3, 1, 2, 3.3, 4, 5, 5.4, 6, 8, 20])
def test_sizes(epsilon):
    protocol = PrefixExtension(512, epsilon, text=True)
    channel, spelling = protocol.channel, protocol.universe.spelling
    assert isinstance(channel, SpeltPrefixes)
    assert spelling is not None
    assert protocol.audit().holds
    assert channel.lengths[0] == 16
    assert set(np.diff(channel.lengths[:-1]).tolist()) == {12}
    assert channel.lengths[-1] == spelling.most
    assert sum(channel.probabilities) == 1
    assert {p * (i + 1) for i, p in enumerate(channel.probabilities)} == {channel.probabilities[0]}
    assert channel.counts_shape[0] < 20_000_000
    assert channel.cells <= 8 << channel.places
    assert {type(part) for part in channel.parts} <= {OLH, GRR}
    assert sum(channel.part_weights) == 1 << 64
    own = Fraction(channel.part_weights[0], 1 << 64)
    assert abs(own * 8 - channel.probabilities[0]) < 1e-15


def test_what_is_refused():
    for bits in (65, 70, 520, 1 << 40):
        with pytest.raises(ValueError, match="bits"):
            PrefixExtension(bits, 1.0, text=True)
    with pytest.raises(ValueError, match="bits"):
        PrefixExtension(72, 1.0)
    with pytest.raises(ValueError, match="lengths"):
        PrefixExtension(72, 1.0, text=True, lengths=(16, 72))
    for kind in (TreeHist, UniqueHeavyHitter, SuccinctHistogram):
        with pytest.raises(ValueError, match="PrefixExtension takes longer ones"):
            kind(72, 1.0, text=True)
    protocol = PrefixExtension(80, 1.0, text=True)
    for bad in ("x" * 11, "Reykjavík!", "a\0", "\ud800", 3, None):
        with pytest.raises(InvalidString) as refused:
            protocol.privatize(["ok", bad])
        assert isinstance(refused.value, InvalidValue)
        assert refused.value.index == 1
    for wrong in (["a"], np.zeros(3), np.zeros((3, 1), dtype=np.uint64), np.array([[1, 2]])):
        with pytest.raises(ValueError, match=r"words|limbs"):
            protocol.channel.privatize(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 64])
def test_the_frequent_ones_are_found(size):
    names = {name: share for name, share in NAMES.items() if len(name.encode()) <= size}
    protocol = PrefixExtension(8 * size, 4.0, text=True)
    aggregate = some_reports(protocol, 40_000, names=names)
    found = protocol.find(aggregate)
    assert found.items.tolist() == [*names]
    assert found.significant.all()
    low, high = found.interval()
    truth = np.array([*names.values()])
    assert ((low <= truth) & (truth <= high)).all()
    assert (found.frequencies > found.noise).all()
    assert (np.diff(found.variances) < 0).sum() >= 1  # more users count for shorter ones
    assert 0 < found.complete_above < 0.15
    assert found.recall(0.3) > 0.99
    assert "if it is spelt in at most" in found.statement
    two = protocol.find(aggregate, k=2)
    assert two.items.tolist() == [*names][:2]
    assert protocol.find(aggregate, threshold=0.25).items.tolist() == [*names][:2]
    many = protocol.find(aggregate, k=300)
    assert len(many) == 300
    assert {*names} <= {*many.items.tolist()}
    assert (np.diff(many.frequencies) <= 0).all()
    assert not many.significant.all()
    for item in many.items.tolist():
        assert len(item.encode()) <= size


def direct(protocol, aggregate, text, others):
    """The pooled estimate, from the oracle's own estimates of single cells."""
    channel, total, users = protocol.channel, 0.0, 0.0
    cells = 1 << channel.places
    words = protocol.items_of([text, *others])
    for level in channel.levels:
        if level.length < len(spelt(text)):
            continue
        raw, shared, mine = np.zeros(len(words)), np.zeros((len(words), len(words))), 0.0
        for part in level.parts:
            own = channel.part_aggregate(aggregate, part)
            place = channel.part_items(part, words)
            if own.n:
                told = channel.parts[part].estimate(own).frequencies[place]
                raw += own.n * (told - 1 / cells) * cells / (cells - 1)
                shared += own.n * (place[:, None] == place)
                mine += own.n
        if not mine:
            continue
        np.fill_diagonal(shared, mine)
        total += mine * np.linalg.solve(shared, raw)[0]
        users += mine
    return total / users


@pytest.mark.slow
def test_estimates_are_pooled_over_all_lengths_that_decide_a_text():
    protocol = PrefixExtension(160, 6.0, text=True)
    aggregate = some_reports(protocol, 60_000)
    found = protocol.find(aggregate)
    assert found.items.tolist() == [*NAMES]
    for name in NAMES:
        expected = direct(protocol, aggregate, name, [one for one in NAMES if one != name])
        own = found.answer(name)
        # What else is heavy by chance on some length is resolved too
        assert abs(own.value - expected) < 0.3 * own.variance**0.5


@pytest.mark.slow
def test_users_of_longer_prefixes_count():
    protocol = PrefixExtension(160, 3.0, text=True)
    aggregate = some_reports(protocol, 20_000)
    channel, spelling = protocol.channel, protocol.universe.spelling
    walk = Walk(channel, spelling, aggregate, 20_000, 64)
    users = channel.part_users(aggregate).reshape(len(channel.levels), -1).sum(axis=1)
    assert walk.users.tolist() == [users[k:].sum() for k in range(len(users))]
    words = protocol.items_of(["", "Reykjavík", "x" * 20, "\x01" * 20])
    ends = walk.ends_of(words)
    lengths = np.array(channel.lengths)
    for text, end in zip(["", "Reykjavík", "x" * 20, "\x01" * 20], ends.tolist(), strict=True):
        bits = len(spelt(text))
        assert lengths[end] >= bits
        assert not end or lengths[end - 1] < bits
        errors = walk.errors(end)
        assert errors.users == users[end:].sum()
    assert (walk.ends_of(walk.words) == walk.ends).all()
    assert len({row.tobytes() for row in walk.words}) == len(walk.words)
    assert len(walk.gates) == len(channel.levels)


@pytest.mark.slow
def test_what_shares_cells_with_a_heavy_text_does_not_hide_others():
    """With few cells, where one text has most of the users."""
    protocol = PrefixExtension(80, 5.4, text=True)
    assert protocol.channel.places == 9
    names = {"Reykjavík": 0.8, "Akureyri": 0.03, "Garður": 0.03}
    found = protocol.find(some_reports(protocol, 400_000, names=names))
    assert found.items.tolist()[0] == "Reykjavík"
    assert {*found.items.tolist()} == {*names}


@pytest.mark.slow
def test_few_reports():
    protocol = PrefixExtension(160, 1.0, text=True)
    for n in (0, 1, 30):
        aggregate = some_reports(protocol, n)
        for options in ({}, {"k": 3}, {"threshold": 0.1}):
            found = protocol.find(aggregate, **options)
            assert found.n == n
            assert len(found) <= options.get("k", 1 << 20)
            assert isinstance(found.table(), str)
    empty = protocol.find(some_reports(protocol, 0))
    with pytest.raises(InvalidQuestion, match="not listed"):
        empty.answer("a")
    one = protocol.find(some_reports(protocol, 1))
    with pytest.raises(InvalidQuestion, match="nobody reported"):
        one.answer("\x01" * 20)


def test_one_private_bit():
    protocol = OneBit(PrefixExtension(80, 0.6, text=True))
    names = {"Reykjavík": 0.6, "Garðabær": 0.4}
    found = protocol.find(some_reports(protocol, 60_000, names=names))
    assert found.items.tolist() == [*names]


@pytest.mark.slow
def test_simulation():
    """Of aggregates: estimates of a named text have the stated mean and variance."""
    protocol = PrefixExtension(80, 2.0, text=True)
    names, rng = np.array([*NAMES][:2], dtype=object), np.random.default_rng(7)
    told = []
    for _ in range(40):
        aggregate = protocol.simulate([3000, 1000], rng, names)
        answer = protocol.find(aggregate).answer(np.array([*names, "none"], dtype=object))
        told.append((answer.value - [0.75, 0.25, 0]) / np.sqrt(answer.variance))
    squares = (np.array(told) ** 2).sum(axis=0)
    assert (squares > stats.chi2.ppf(1e-6, 40)).all()
    assert (squares < stats.chi2.isf(1e-6, 40) * 1.1).all()  # variances are of what was told


@pytest.mark.slow
def test_noise_is_seldom_listed():
    """Nobody has a frequent text: at most one list in twenty names one."""
    protocol, lists = PrefixExtension(160, 3.0, text=True), 25
    wrong = sum(
        len(protocol.find(some_reports(protocol, 3000, seed, {}))) > 0 for seed in range(lists)
    )
    assert wrong <= stats.binom.isf(1e-6, lists, 0.05)


@pytest.mark.slow
def test_recall_is_a_lower_bound():
    protocol, repeats = PrefixExtension(160, 3.0, text=True), 25
    first = protocol.find(some_reports(protocol, 20_000, 0))
    name = "Kópavogur"
    rest = {"Reykjavík": 0.3, name: 0.9 * first.complete_above}
    hits, bounds = 0, []
    for seed in range(repeats):
        found = protocol.find(some_reports(protocol, 20_000, seed, rest))
        if len(found):
            bounds.append(found.recall(rest[name]))
        hits += name in found.items.tolist()
    assert hits >= stats.binom.ppf(1e-6, repeats, np.mean(bounds))
    assert_allclose(np.mean(bounds), 0.8, atol=0.2)


@pytest.mark.slow
def test_the_planner_offers_what_finds_long_texts():
    task, short = HeavyHitters(512, text=True), HeavyHitters(64, text=True)
    assert task.names == ("PrefixExtension",)
    assert {*task.names} < {*short.names}
    offers = [task.offer("PrefixExtension", 4.0, n) for n in (10**5, 10**6)]
    assert 0 < offers[1].error < offers[0].error < 0.1
    assert offers[0].error > short.offer("PrefixExtension", 4.0, 10**5).error
    assert math.isinf(task.offer("PrefixExtension", 4.0, 10).error)
