"""Items that the user names have an estimate and an interval, whether they are listed or not.

False alarms: coverages are compared with binomial tails at a probability of 1e-6 each.
"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from frequency import InvalidQuestion
from frequency.algebra.hash_functions import LinearHash
from frequency.core.estimate import Estimate
from frequency.heavy import OneBit, PrefixExtension, SuccinctHistogram, TreeHist, UniqueHeavyHitter
from tests.frequency.heavy.examples import PROTOCOLS


def test_of_what_can_be_listed_it_is_the_oracle_s():
    protocol = PrefixExtension(12, 1.0)
    values = np.repeat([7, 3000], [3000, 1000])
    aggregate = protocol.aggregate(protocol.privatize(values, np.random.default_rng(1)))
    found, channel = protocol.find(aggregate, k=1), protocol.channel
    estimate = channel.parts[0].estimate(channel.part_aggregate(aggregate, 0))
    others = np.array([item for item in range(0, 4096, 7) if item not in found.items])
    answer = found.answer(others)
    assert_allclose(answer.value, estimate.frequencies[others])
    assert_allclose(
        answer.variance, channel.parts[0].variance(4000, np.clip(answer.value, 0, 1)), rtol=1e-9
    )
    assert found.answer(int(others[3])).value == answer.value[3]
    low, high = answer.interval(0.9)
    half = stats.norm.ppf(0.95) * np.sqrt(answer.variance)
    assert (high - answer.value >= half * (1 - 1e-9)).all()
    assert_allclose(high - low, 2 * half, rtol=0.1)
    both = found.answer(np.array([found.items[0], others[0]]))
    assert both.value.tolist() == [found.frequencies[0], answer.value[0]]
    assert both.interval(0.95).low[0] == found.interval(0.95).low[0]


@pytest.mark.slow
def test_of_hashed_items_what_the_listed_ones_add_is_taken_away():
    """From the definition: means over the functions, and a linear system with the heavy ones."""
    protocol = PrefixExtension(32, 4.0)
    rng = np.random.default_rng(2)
    held = np.array([5, 1 << 20, 77_777, 3_000_000_000], dtype=np.uint64)
    values = rng.choice(held, 60_000, p=[0.5, 0.3, 0.15, 0.05])
    aggregate = protocol.aggregate(protocol.privatize(values, rng))
    found, channel = protocol.find(aggregate, k=3), protocol.channel
    assert found.items.tolist() == held[:3].tolist()
    level, cells = channel.levels[-1], 1 << channel.places
    hashes = [LinearHash(f"prefix {part}", 0, channel.places) for part in level.parts]
    # One that shares a cell with the most frequent item
    some = np.arange(1 << 20, dtype=np.uint64)
    sharing = some[hashes[0](some) == hashes[0](held[:1])]
    asked = np.array([held[3], next(x for x in sharing if x not in held), 12345], dtype=np.uint64)
    every = np.concatenate([asked, held[:3]])
    users = channel.part_users(aggregate)[list(level.parts)]
    raw, shared = np.zeros(6), np.zeros((6, 6))
    for part, hash_, mine in zip(level.parts, hashes, users, strict=True):
        told = channel.parts[part].estimate(channel.part_aggregate(aggregate, part)).frequencies
        place, weight = hash_(every), mine / users.sum()
        raw += weight * (told[place] - 1 / cells) * cells / (cells - 1)
        shared += weight * (place[:, None] == place)
    assert shared[1, 3] > 0.2
    assert raw[1] > 0.1
    heavy = np.array([0, 1, 3, 4, 5])  # the second one's estimate is as high
    solved = np.linalg.solve(shared[np.ix_(heavy, heavy)], raw[heavy])
    expected = raw - shared[:, heavy] @ solved
    expected[heavy] = solved
    answer = found.answer(asked)
    assert_allclose(answer.value, expected[:3], atol=1e-6)
    assert abs(answer.value[1]) < 5 * answer.variance[1] ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: PrefixExtension(32, 3.0, text=True, seed=seed),
        lambda seed: TreeHist(32, 3.0, text=True, seed=seed),
        lambda seed: OneBit(PrefixExtension(32, 0.6, text=True, seed=seed)),
        lambda seed: SuccinctHistogram(
            32, 8.0, text=True, hashes=1, channels=2, rows=256, seed=seed
        ),
    ],
    ids=["extension", "tree", "one bit", "succinct"],
)
def test_intervals_hold_the_truth(make):
    """Of words that are named in advance: frequent, rare, and held by nobody."""
    words, repeats = {"ja": 0.5, "nein": 0.3, "jein": 0.02, "oui": 0.0}, 25
    held = np.repeat([*words], [int(3000 * f) for f in words.values()]).tolist()
    held += [f"x{k:03}" for k in range(3000 - len(held))]
    covered = np.zeros(4)
    for seed in range(repeats):
        protocol = make(seed)
        found = protocol.find(protocol.privatize(held, np.random.default_rng([4, seed])))
        answer = found.answer(np.array([*words], dtype=object))
        low, high = answer.interval(0.9)
        truth = np.array([*words.values()])
        covered += (low <= truth) & (truth <= high)
    assert (covered >= stats.binom.ppf(1e-6, repeats, 0.88)).all(), covered
    assert covered.min() < repeats


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_is_no_item_is_refused(name):
    for text in (False, True):
        protocol = PROTOCOLS[name](text)
        value = "a" if text else 1
        found = protocol.find(protocol.privatize([value] * 200, np.random.default_rng(1)), k=1)
        wrong = ("abcdefghi", "a\0", 3) if text else (1 << 16, -1, "a", 1.5, True, None)
        for where in wrong:
            with pytest.raises(InvalidQuestion):
                found.answer(where)
        again = pickle.loads(pickle.dumps(found))
        if not isinstance(protocol, UniqueHeavyHitter):
            for other in ("b", "") if text else (0, 200):
                assert again.answer(other).value == found.answer(other).value


def test_nothing_is_known_without_reports_or_of_others_than_the_unique_item():
    unique = UniqueHeavyHitter(16, 3.0)
    found = unique.find(unique.privatize([5] * 1000, np.random.default_rng(1)))
    assert found.answer(5).value == pytest.approx(1, abs=0.2)
    empty = PrefixExtension(32, 1.0)
    for none in (found, empty.find(empty.aggregate(np.zeros(0, dtype=empty.report_dtype)))):
        with pytest.raises(InvalidQuestion, match="not listed"):
            none.answer(6)


def test_a_succinct_histogram_asks_its_oracle():
    protocol = SuccinctHistogram(16, 20.0, hashes=1, channels=4, rows=64)
    aggregate = protocol.aggregate(protocol.privatize([3] * 500, np.random.default_rng(1)))
    channel = protocol.channel
    expected = Estimate(channel.oracle, channel.of_oracle(aggregate), np.array([9]))
    assert protocol.find(aggregate).answer(9).value == expected.frequencies[0]
