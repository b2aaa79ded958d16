"""What public coins draw in place of a user has the law that the channel states, exactly, and what
a user tells of it loses no more than the audit says: for every protocol.

The published laws of reports (`published.probability`) are written apart from the code that is
tested. False alarms: every statistical test compares a p-value with 1e-6, divided by the number of
its comparisons, and is shown to reject a planted error.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from frequency import GRR, HRR, OLH, SubsetSelection
from frequency.algebra.hash_functions import Coins
from frequency.core.protocol import channel_of
from frequency.core.transport import Menu
from frequency.heavy import FewBits, OneBit
from rangeq import SquareWave
from tests.contracts.measure import law
from tests.contracts.published import probability
from tests.contracts.test_laws import CASES, equal, worst
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD

CHOSEN = [
    name for name in CASES if not name.startswith("PaddedSets")
]  # of which users draw an item
NAMES = pytest.mark.parametrize("name", CHOSEN)


def drawn(channel, users, seed=1):
    words = np.random.default_rng(seed).integers(0, WORD, size=users, dtype=np.uint64)
    return channel.blank(Coins(words, 5))


def items_of(protocol, channel):
    """All items of a small domain, or those of records."""
    return channel._every_item() if channel.domain <= 8 else channel._every_item()[:8]


def likelihoods(channel, reports, item):
    """Pr[report | item] / Pr[report | no item] of each report."""
    flat = [ratio for kind in channel.likelihoods for ratio in kind]
    which = channel.likelihood(reports, np.repeat(item[None], len(reports), axis=0))
    return [flat[k] for k in which.tolist()]


def blank_law(channel, reports, items):
    """Pr[report | no item] of each, which must be the same by what is stated of any item."""
    found = []
    for item in items:
        stated = likelihoods(channel, reports, item)
        mine = item if item.ndim else int(item)
        found.append(
            [
                probability(channel, report, mine) / ratio
                for report, ratio in zip(reports, stated, strict=True)
            ]
        )
    assert all(one == other for one, other in pairwise(found))
    return found[0]


@NAMES
def test_blank_reports_have_the_stated_law(name):
    """As fractions, for every item; and by what coins draw."""
    protocol = CASES[name].make()
    channel = channel_of(protocol)
    for kind in channel.likelihoods:
        assert list(kind) == sorted(kind)
    reports = drawn(channel, 4000)
    assert channel.possible(reports).all()
    different, counts = np.unique(reports, return_counts=True)
    few = np.argsort(-counts, kind="stable")[:150]
    blank = blank_law(channel, different[few], items_of(protocol, channel))
    assert sum(blank) <= 1
    rest = 1 - sum(blank)
    assert not rest or len(different) >= len(few)
    probabilities = np.array([float(p) for p in (*blank, rest)])
    observed = np.array([*counts[few], 4000 - counts[few].sum()])
    if not rest:
        assert observed[-1] == 0
        probabilities, observed = probabilities[:-1], observed[:-1]
    if name != "HRR, t = 2":  # whose indices coins draw in another order, as likely in any
        assert goodness(observed, probabilities) > FALSE_ALARM / len(CHOSEN)


def test_another_blank_law_is_rejected():
    channel = SquareWave(4, 1.0)
    counts = np.bincount(drawn(channel, 4000)["output"])
    wrong = np.full(channel.outputs, 1.0)
    wrong[0] = 1.5
    assert goodness(counts, wrong) < FALSE_ALARM / len(CHOSEN)


@NAMES
@pytest.mark.parametrize("largest", [3, 7])
def test_candidates_are_as_the_menu_says(name, largest):
    """As likely without an item; of which every item favours as many as is said."""
    protocol = CASES[name].make()
    channel = channel_of(protocol)
    reports, items = np.unique(drawn(channel, 40)), items_of(protocol, channel)
    menus = channel.menus(largest)
    assert len(menus) == len(channel.likelihoods)
    assert all(1 <= menu.candidates <= largest for menu in menus)
    kinds = np.repeat(np.arange(len(menus)), [len(kind) for kind in channel.likelihoods])
    first = channel.likelihood(reports, np.repeat(items[:1], len(reports), axis=0))
    sizes = np.array([menu.candidates for menu in menus])[kinds[first]]
    tables = [
        channel.candidate(reports, np.full(len(reports), number), largest)
        for number in range(sizes.max())
    ]
    assert tables[0].tobytes() == reports.tobytes()
    blank = blank_law(channel, reports, items)
    for number, table in enumerate(tables):
        assert len(np.unique(table)) == len(reports)  # given the number, one to one
        some = sizes > number
        assert blank_law(channel, table[some], items) == [
            p for p, here in zip(blank, some, strict=True) if here
        ]
    for row in range(len(reports)):
        mine = np.concatenate([table[row : row + 1] for table in tables[: sizes[row]]])
        menu, kind = (
            menus[kinds[first[row]]],
            channel.likelihoods[kinds[first[row]]],
        )
        if menu.candidates > 1:
            low, high = menu.ends(kind[0], kind[-1])
            sums = [sum(likelihoods(channel, mine, item)) for item in items]
            assert all(low <= total <= high for total in sums)


@pytest.mark.parametrize("alternatives", range(1, 7))
def test_menus_by_enumeration(alternatives):
    """Any candidates of alternatives of which any so many are likely."""
    for likely in range(1, alternatives + 1):
        for largest in range(2, 9):
            menu = Menu.of(alternatives, likely, largest)
            found = {
                (favoured >> np.arange(menu.candidates) & 1).sum()
                for favoured in range(1 << alternatives)
                if favoured.bit_count() == likely
            }
            assert (menu.least, menu.most) == (min(found), max(found))


@pytest.mark.parametrize("domain", [2, 3, 7, 16])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_square_waves_spread_their_candidates(domain, epsilon):
    """Of every output and item, by enumeration: as many are near as for others, to within one."""
    channel = SquareWave(domain, epsilon)
    reports = np.zeros(channel.outputs, dtype=channel.report_dtype)
    reports["output"] = np.arange(channel.outputs)
    for largest in range(2, 10):
        (menu,) = channel.menus(largest)
        counts = np.zeros((channel.outputs, domain), dtype=int)
        for number in range(menu.candidates):
            told = channel.candidate(reports, np.full(len(reports), number), largest)
            for item in range(domain):
                counts[:, item] += channel.likelihood(told, np.full(len(told), item))
        assert menu.least <= counts.min() <= counts.max() <= menu.most <= menu.least + 1


# ------------------------------------------------------------------------------------------ privacy


def told(protocol, coins):
    """Pr[what a user tells | coins, item] in units of 2^-64: shape (coins, items, choices)."""
    channel = protocol.channel
    items, weights = items_of(protocol, channel.inner), np.array(channel._acceptance, dtype=object)
    blank = channel.inner.blank(Coins(coins, channel.seed))
    most = int(channel._candidates.max())
    table = np.zeros((len(coins), len(items), most + 1), dtype=object)
    for place, item in enumerate(items):
        rows = np.repeat(item[None], len(coins), axis=0)
        for number in range(most):
            numbers = np.full(len(coins), number)
            reports = channel.inner.candidate(blank, numbers, channel.most) if most > 1 else blank
            which = channel.inner.likelihood(reports, rows)
            there = number < channel._candidates[which]
            table[:, place, number + 1] = np.where(there, weights[which], 0)
        table[:, place, 0] = WORD - table[:, place].sum(axis=1)
    return table


def worst_of(table):
    """The largest ratio over coins, choices that can be made, and pairs of items."""
    low, high = table.min(axis=1), table.max(axis=1)
    assert ((low > 0) | (high == 0)).all()
    ends = {(int(a), int(b)) for a, b in zip(low.ravel(), high.ravel(), strict=True) if b}
    return max(Fraction(b, a) for a, b in ends)


SELDOM = {"PrefixExtension", "TreeHist", "Uniform"}
"""Whose worst coins, or items, are not among those that are tried; of a single cell there are none.
"""


@NAMES
@pytest.mark.parametrize("bits", [1, 2])
def test_no_coins_lose_more_than_the_audit_says(name, bits):
    """For many coins and all items, exactly; and some coins lose as much."""
    protocol = CASES[name].make()
    chosen = FewBits(protocol, bits=bits)
    assert chosen.audit().holds
    coins = np.random.default_rng(2).integers(0, WORD, size=400, dtype=np.uint64)
    table = told(chosen, coins)
    found = worst_of(table)
    assert found <= chosen.audit().ratio <= chosen.audit().allowed == protocol.audit().allowed
    assert found == chosen.audit().ratio or name in SELDOM
    # What is kept is the same of all items, on average over all coins.
    kept = 1 - table[..., 0].astype(np.float64) / WORD
    assert np.abs(kept.mean(axis=0) - chosen.kept).max() < 0.2
    planted = table.copy()
    planted[:, 0] += planted[:, 0] // 256 * np.where(np.arange(table.shape[2]), 1, -1)
    assert worst_of(planted) > chosen.audit().ratio or found < chosen.audit().ratio


@pytest.mark.parametrize(
    ("inner", "bits"),
    [
        (GRR(5, 1.0), 2),
        (OLH(4, 1.0), 2),
        (HRR(4, 2.0), 2),
        (SubsetSelection(4, 0.5), 2),
        (SquareWave(4, 1.5), 2),
        (CASES["MSW"].make(), 2),
        (CASES["InpHT"].make(), 2),
        (CASES["HDG"].make(), 1),
        (CASES["InpEM"].make(), 1),
        (CASES["CircularHistogram"].make(), 2),
        (CASES["WaveGrid"].make(), 2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_told_is_drawn_by_these_weights(inner, bits):
    """Measured word by word, given the coins."""
    protocol = FewBits(inner, bits=bits, seed=3)
    values = protocol.channel._every_item()
    channel, word = protocol.channel, 77
    table = told(protocol, np.array([word], dtype=np.uint64))[0]
    laws = []
    for value, row in zip(values[:2], table[:2].tolist(), strict=True):
        measured = law(
            lambda rng, v=value: int(channel.privatize(v[None], rng)[channel.field][0]),
            given=[word],
        )
        equal(measured, lambda choice, r=row: Fraction(r[choice], WORD))
        laws.append(measured)
    assert worst(laws) <= protocol.audit().ratio


def test_one_bit_is_one_of_few():
    """The same coins and words choose the same; the bytes differ, by what parameters say."""
    one, few = OneBit(GRR(5, 0.5), seed=3), FewBits(GRR(5, 0.5), seed=3, bits=1)
    values = np.arange(200) % 5
    reports = [p.privatize(values, np.random.default_rng(1)) for p in (one, few)]
    assert reports[0].tobytes() == reports[1].tobytes()
    assert one.parameters == few.parameters
    assert FewBits(GRR(5, 0.5), seed=3, bits=2).parameters["bits"] == 2


@pytest.mark.parametrize("name", sorted(set(CASES) - set(CHOSEN)))
def test_users_who_draw_an_item_first(name):
    """Given the coins, what is told has the mean law over the items that are drawn."""
    inner = CASES[name].make()
    protocol, alone = OneBit(inner), OneBit(inner.protocol)
    for word in (0, 1, 77):
        coins = np.array([word], dtype=np.uint64)
        table = told(alone, coins)[0]
        laws = []
        for value in CASES[name].values:
            mine = [one for one in value if inner.kept is None or one in inner.kept]
            held = mine + [inner.domain] * (inner.size - len(mine))
            measured = law(
                lambda rng, v=value: int(protocol.privatize([v], rng)["bit"][0]), given=[word]
            )
            one = Fraction(sum(int(table[item, 1]) for item in held), WORD * len(held))
            equal(measured, {0: 1 - one, 1: one}.get)
            laws.append(measured)
        assert worst(laws) <= protocol.audit().ratio


# --------------------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("domain", [2, 3, 50])
def test_the_fraction_kept_of_randomised_response(domain, epsilon):
    """K (e + k - 1) / (k (e + K)) for K of k values, all with K = k; more bits keep more."""
    oracle, before = GRR(domain, epsilon), 0.0
    e = float(oracle.max_ratio)
    for bits in range(1, 8):
        protocol, k = FewBits(oracle, bits=bits), min(domain, (1 << bits) - 1)
        kept = 1.0 if k == domain else k * (e + domain - 1) / (domain * (e + k))
        assert protocol.kept == pytest.approx(kept, rel=1e-9)
        assert before <= protocol.kept <= 1
        before = protocol.kept


def test_protocols_of_signs_need_two_bits():
    for name in ("HaarHRR", "HaarHRR2D", "InpHT", "UniqueHeavyHitter", "MargHT"):
        protocol = CASES[name].make()
        assert OneBit(protocol).kept == pytest.approx(0.5, rel=1e-9)
        assert FewBits(protocol, bits=2).kept == 1


@pytest.mark.parametrize("bits", [0, -1, 17, 1.5, None, "2", True])
def test_wrong_bits(bits):
    with pytest.raises(ValueError, match="bits"):
        FewBits(GRR(3, 0.5), bits=bits)
