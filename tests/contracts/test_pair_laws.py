"""What every protocol states of its reports among those of others, for `mechdesign.accounting`.

The slow twin lists all reports of a small case, with the published probability of each under each
value (`published.probability`, written apart from the code that is tested), and from these the pair
law of every ordered pair of values under the largest blanket. A stated law is above another one if
its E (W - t)_+ is at least as large at all values that W has in either, W = first - r second; in
fractions, for several r. Between these values both functions are linear.
"""

from fractions import Fraction
from itertools import combinations, permutations
from unittest.mock import patch

import numpy as np
import pytest

import frequency
import rangeq
from frequency import marginals
from frequency.core.blanket import law_above, law_of_ratio
from frequency.core.channel import Channel
from frequency.core.protocol import channel_of
from frequency.heavy import UniqueHeavyHitter
from frequency.heavy.sampled import Sampled
from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import PairClass, merged, require_pair_law
from mechdesign.base.numbers import bit_source
from mechdesign.exceptions import UnstatedLikelihoods
from rangeq import grids
from rangeq.local.item_sets import Slots
from tests.contracts.examples import COLLECTED, PROTOCOLS, SURVEYS
from tests.contracts.published import probability
from tests.contracts.test_laws import CASES, COMPARISONS
from tests.own_oracles import Bare

RATIOS = tuple(map(Fraction, ("1", "21/20", "3/2", "5/2")))
MOST = 3000


def skewed():
    """A table of which no two pairs of columns are alike."""
    rows = [["5/12", "1/4", "1/6"], ["1/4", "5/12", "1/3"], ["1/3", "1/3", "1/2"]]
    return Mechanism(rows, Privacy(alpha="1/3", neighbours="all"))


SMALL = {
    **{name: case.make for name, case in CASES.items()},
    "one item": lambda: frequency.OLH(1, 1.0),
    "two items": lambda: frequency.OLH(2, 1.0),
    "two items, one set": lambda: frequency.SubsetSelection(2, 1.0),
    "sketch of two items": lambda: frequency.HadamardCountMeanSketch(2, 1.0, hashes=3, width=4),
    "sets of one item": lambda: rangeq.PaddedSets(frequency.GRR(2, 1.0), 1),
    "GRR of 9": lambda: frequency.GRR(9, 1.0),
    "HRR of 7": lambda: frequency.HRR(7, 1.0),
    "OLH of 9": lambda: frequency.OLH(9, 0.5),
    "geometry of 7": lambda: frequency.ProjectiveGeometry(7, 0.5),
    "subsets of 6": lambda: frequency.SubsetSelection(6, 0.5),
    "wave of 9": lambda: rangeq.SquareWave(9, 0.1),
    "wave of 12": lambda: rangeq.SquareWave(12, 2.0),
    "HaarHRR of 8": lambda: rangeq.HaarHRR(8, 1.0, ("1/2", "1/8", "3/8")),
    "HaarHRR2D of two sizes": lambda: grids.HaarHRR2D({"x": 8, "y": 3}, 1.0),
    "HaarHRR2D of 3 attributes": lambda: grids.HaarHRR2D({"x": 4, "y": 2, "z": 2}, 1.0),
    "InpHT of all": lambda: marginals.InpHT(marginals.Domain({"a": 4, "b": 3, "c": 2}), 3, 1.0),
    "table": lambda: frequency.Tabular(skewed()),
    "tables of a tree": lambda: rangeq.HierarchicalHistogram(9, 1.2, 3, (skewed(), "GRR")),
}
NAMES = sorted(SMALL)

ABOVE = {
    "CountMeanSketch": "its few hash functions make all items collide",
    "InpHTCMS": "its few hash functions make all items collide",
    "LevelSketch": "its few hash functions make all items collide",
    "HaarHRR2D of two sizes": "the least of the parts' probabilities is taken, in units of 2^-64",
    "JLOracle": "its few rows have one where all signs are the same",
    "HaarHRR2D of 3 attributes": "pairs of attributes are taken one by one",
    "PaddedSets": "slots are not public",
    "SuccinctHistogram": "no items have opposite signs in all rows",
    "tables of a tree": "tables of different columns, in a mixture",
}
"""Whose stated law is above those of all pairs; those of others are of pairs."""


def values_of(channel):
    """All values: items, records, or sets as rows."""
    if isinstance(channel, Slots):
        held = range(channel.domain) if channel.kept is None else channel.kept
        sets = [s for size in range(len(held) + 1) for s in combinations(held, size)]
        return channel.items_of(sets)
    return channel._every_item()


def told(channel, value):
    """A value as `probability` takes it."""
    if isinstance(channel, Slots):
        return [item for item in value if item >= 0]
    return value if value.ndim else int(value)


def table_of(protocol):
    """The probability of every report under each value: rows are reports.

    Reports are drawn until those found have a probability of exactly 1 under every value.
    """
    channel, source = channel_of(protocol), bit_source(np.random.default_rng(1))
    values, found = values_of(channel), np.zeros(0, dtype=channel.report_dtype)
    rows = [told(channel, value) for value in values]
    if isinstance(protocol, UniqueHeavyHitter):
        rows.append(None)  # users without an item
    while len(found) <= MOST:
        drawn = np.zeros(4000, dtype=channel.report_dtype)
        channel.fill(values[np.arange(len(drawn)) % len(values)], drawn, source)
        found = np.unique(np.concatenate([found, drawn]))
        table = [[probability(channel, report, row) for row in rows] for report in found]
        if all(sum(column) == 1 for column in zip(*table, strict=True)):
            return table
    raise AssertionError("too many reports to list")


def law_of(table, omega, first, second):
    """The pair law of two columns."""
    return merged(
        PairClass(w, row[first] / w, row[second] / w) for row, w in zip(table, omega, strict=True)
    )


def pairs_of(table):
    """The laws of all ordered pairs of values, under the largest blanket."""
    omega = [min(row) for row in table]
    return {law_of(table, omega, *pair) for pair in permutations(range(len(table[0])), 2)}


def call(law, ratio, point):
    """E (W - t)_+, with W = 0 for reports that no blanket hides."""
    rest = 1 - sum(item.weight for item in law)
    return rest * max(-point, 0) + sum(w * max(u - ratio * v - point, 0) for w, u, v in law)


def above(law, other):
    return all(
        call(law, ratio, point) >= call(other, ratio, point)
        for ratio in RATIOS
        for point in {Fraction(0), *(u - ratio * v for _, u, v in (*law, *other))}
    )


def check_pairs(name):
    protocol = SMALL[name]()
    stated, pairs = protocol.pair_laws(), pairs_of(table_of(protocol))
    differ = any(u != v for law in pairs for _, u, v in law)
    assert bool(stated) == differ
    for law in stated:
        assert require_pair_law(law) == law
        assert all(max(u, v) <= protocol.max_ratio * min(u, v) for _, u, v in law)
    for pair in pairs if differ else ():
        assert any(above(law, pair) for law in stated)
    return stated, pairs


def check_attacks(name):
    protocol = SMALL[name]()
    table, stated = table_of(protocol), set(protocol.attack_laws())
    values = range(len(table[0]))
    assert bool(stated) == (len(values) > 1)
    attacks = (
        law_of(table, [row[held] for row in table], *pair)
        for pair in permutations(values, 2)
        for held in values
    )
    while stated:
        attack = next(attacks, None)
        assert attack is not None
        stated.discard(attack)


@pytest.mark.parametrize("name", NAMES)
def test_no_pair_is_above_the_stated_laws(name):
    stated, pairs = check_pairs(name)
    assert (set(stated) <= pairs) == (name not in ABOVE)


@pytest.mark.parametrize("name", NAMES)
def test_attacks_are_exact(name):
    check_attacks(name)


@pytest.mark.parametrize("name", NAMES)
def test_less_than_the_laws_of_all_pairs_is_above_every_pair(name):
    """By the blanket, the ratio and the distance alone; and by the ratio alone."""
    protocol = SMALL[name]()
    table, ratio = table_of(protocol), protocol.audit().ratio
    if ratio == 1:
        return
    columns = list(zip(*table, strict=True))
    apart = max(
        sum(abs(p - q) for p, q in zip(one, other, strict=True)) / 2
        for one, other in combinations(columns, 2)
    )
    coarse = law_above(sum(map(min, table)), ratio, apart)
    ratio_alone = law_of_ratio(ratio)
    assert require_pair_law(coarse) == coarse
    assert require_pair_law(ratio_alone) == ratio_alone
    assert all(above(coarse, pair) for pair in pairs_of(table))
    assert above(ratio_alone, coarse)


def test_planted_errors_are_found():
    """Items likely together more often than they are, or less; and a blanket that is too heavy."""

    def more(honest):
        return lambda self: getattr(honest, "fget", honest)(self) + Fraction(1, 1000)

    honest = Channel._least_together
    with patch.object(Channel, "_least_together", property(more(honest))):
        for name in ("GRR of 9", "OLH of 9", "CircularHistogram", "PaddedSets"):
            with pytest.raises(AssertionError):
                check_pairs(name)
    with patch.object(Channel, "_always_likely", property(lambda self: Fraction(1, 1000))):
        for name in ("GRR of 9", "subsets of 6"):
            with pytest.raises(AssertionError):
                check_pairs(name)
    together = frequency.GRR._likely_together
    for factor in (Fraction(999, 1000), Fraction(1001, 1000)):
        with patch.object(
            frequency.GRR,
            "_likely_together",
            lambda self, items, factor=factor: factor * together(self, items),
        ):
            for name in ("GRR", "MargPS", "PaddedSets"):
                with pytest.raises(AssertionError):
                    check_attacks(name)


@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(protocol, id=f"{k}-{type(protocol).__name__}")
        for k, protocol in enumerate([*PROTOCOLS, *(protocol for protocol, _ in COLLECTED)])
    ],
)
def test_every_protocol_states_laws(protocol):
    pairs, attacks = protocol.pair_laws(), protocol.attack_laws()
    ratio = protocol.audit().ratio
    assert bool(pairs) == (ratio > 1)
    if not isinstance(channel_of(protocol), Sampled):  # of which no attack is known exactly
        assert bool(attacks) == (channel_of(protocol).domain > 1)
    for law in (*pairs, *attacks):
        assert require_pair_law(law) == law
        assert all(max(u, v) <= ratio * min(u, v) for _, u, v in law)
    assert all(item.weight <= 1 and min(item[1:]) >= 1 for law in pairs for item in law)
    few = shuffled(protocol, 50)
    assert few.delta_at_least(0.05) <= few.delta(0.05)


def test_a_survey_states_what_its_protocol_does():
    for survey in SURVEYS:
        assert survey.pair_laws() == survey.protocol.pair_laws()
        assert survey.attack_laws() == survey.protocol.attack_laws()


def test_what_states_no_likelihoods_is_refused():
    for own in (Bare(5, 1.0), rangeq.Flat(5, 1.0, oracle=Bare)):
        for ask in (own.pair_laws, own.attack_laws, lambda own=own: shuffled(own, 10)):
            with pytest.raises(UnstatedLikelihoods, match=r"Bare .*pair_laws\(\)"):
                ask()
    for case in COMPARISONS.values():
        with pytest.raises(UnstatedLikelihoods):
            shuffled(case.make(), 10)


def test_tables_of_adjacent_counts_are_refused():
    adjacent = frequency.Tabular(named.geometric(3, alpha=Fraction(1, 2)))
    for ask in (adjacent.pair_laws, adjacent.attack_laws):
        with pytest.raises(ValueError, match="neighbours"):
            ask()
