"""Counts of secret samples of the respondents: every sample listed, and amplification."""

import math
from fractions import Fraction
from itertools import product

import pytest

from mechdesign import Bands, InexactNumber, Mechanism, Metric, Privacy, named
from mechdesign.accounting import compose, thinned
from mechdesign.exceptions import UnboundedRatio

TABLES = {
    "GM": named.geometric(4, alpha="1/2"),
    "EM": named.explicit_fair(4, alpha="2/3"),
    "UM": named.uniform(3),
    "one respondent": named.geometric(1, alpha="1/3"),
    "nobody": named.geometric(0, alpha="1/3"),
    "wide": Mechanism(
        [["1/2", "1/4", "1/8"], ["1/2", "3/4", "7/8"]], Privacy(alpha="1/4", neighbours=2)
    ),
}
RATES = ["1/10", "1/2", "2/3", "1"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rate", RATES)
def test_every_sample_is_counted(name, rate):
    table, kept = TABLES[name], Fraction(rate)
    found = thinned(table, rate)
    for j in range(table.inputs):
        column = [Fraction(0)] * table.outputs
        for sample in product((0, 1), repeat=j):
            size = sum(sample)
            probability = kept**size * (1 - kept) ** (j - size)
            for i in range(table.outputs):
                column[i] += probability * table.table[i][size]
        assert [row[j] for row in found.table] == column


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rate", RATES)
def test_the_claim_is_what_is_kept(name, rate):
    table = TABLES[name]
    found = thinned(table, rate)
    assert found.audit().holds
    assert found.privacy == Privacy(
        alpha=1 / found.audit().ratio, neighbours=table.privacy.neighbours
    )
    if table.privacy.neighbours == "adjacent":
        promised = 1 - Fraction(rate) + Fraction(rate) * table.audit().ratio
        assert found.audit().ratio <= promised
    if rate == "1":
        assert found.table == table.table


def test_amplification_is_attained():
    """By the geometric mechanism: no table does better with this rate."""
    found = thinned(named.geometric(8, alpha="1/2"), "1/10")
    assert 1 / found.privacy.alpha == Fraction(11, 10)


@pytest.mark.slow
def test_samples_compose():
    table = named.geometric(8, alpha="9/10")
    alone = compose([table] * 50)
    sampled = compose([thinned(table, "1/10")] * 50)
    assert sampled.epsilon("1e-6") < alone.epsilon_at_least("1e-6") / 8


def test_an_output_that_rules_a_count_out():
    table = Mechanism([["1", "1/2"], ["0", "1/2"]], Privacy(alpha="1/2"))
    assert table.audit().ratio == math.inf
    with pytest.raises(UnboundedRatio, match="output 1 is possible"):
        thinned(table, "1/2")
    # Where nobody in the sample allows every output, every count does
    hidden = Mechanism([["3/4", "1/2", "1"], ["1/4", "1/2", "0"]], Privacy(alpha="1/2"))
    assert thinned(hidden, "1/2").audit().ratio < math.inf


def test_outputs_keep_their_names():
    bands = Mechanism(
        [["2/3", "1/2"], ["1/3", "1/2"]], Privacy(alpha="1/2"), outputs=Bands([(0, 0), (1, 1)])
    )
    assert thinned(bands, "1/2").output_values == bands.output_values


@pytest.mark.parametrize("rate", [0, "-1/2", "3/2"])
def test_rates_are_probabilities(rate):
    with pytest.raises(ValueError, match="a rate must be"):
        thinned(TABLES["GM"], rate)


def test_rates_are_exact():
    with pytest.raises(InexactNumber):
        thinned(TABLES["GM"], 0.1)


@pytest.mark.parametrize(
    "neighbours", ["all", [(0, 1)], Metric([[0, 1], [1, 0]])], ids=["all", "listed", "metric"]
)
def test_samples_are_of_counts(neighbours):
    table = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/2", neighbours=neighbours))
    with pytest.raises(ValueError, match="only a count of respondents"):
        thinned(table, "1/2")
