"""The table: construction, value semantics, the exact audit, and what follows by definition."""

import math
import random
import time
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import (
    InexactNumber,
    InvalidMechanism,
    InvalidPrior,
    Mechanism,
    Metric,
    NotSquare,
    Privacy,
    named,
)
from mechdesign.losses import L0, prior
from tests.mechdesign.drawn_tables import tables
from tests.mechdesign.programs import HALF

SETTINGS = settings(derandomize=True, deadline=None, max_examples=80)


BIG = 10**400


neighbourhoods = st.sampled_from(["adjacent", "all", 1, 2, 3, [(0, 1)], [(0, 2), (1, 2)], [(4, 0)]])


@pytest.mark.parametrize("table", [[], [[]], [[1], []], [["1/2", 1], ["1/2"]], [[], []]], ids=repr)
def test_ragged_or_empty(table):
    with pytest.raises(InvalidMechanism, match="rows of one length"):
        Mechanism(table, HALF)


def test_negative_entries_are_named():
    with pytest.raises(InvalidMechanism, match=r"P\[1, 0\] = -0\.5 is negative"):
        Mechanism([["3/2", "1/2"], ["-1/2", "1/2"]], HALF)


@pytest.mark.parametrize(
    ("entry", "sign"),
    [
        ("1/2", "-"),
        (Fraction(2, 3) + Fraction(1, 10**30), "+"),
        (Fraction(2, 3) - Fraction(1, BIG), "-"),
    ],
    ids=["half", "up", "down"],
)
def test_column_sums_are_exact_and_named(entry, sign):
    with pytest.raises(InvalidMechanism, match=f"column 1 sums to 1 \\{sign}"):
        Mechanism([["1/3", "1/3"], ["2/3", entry]], HALF)


@pytest.mark.parametrize("entry", [0.5, np.float64(0.5), True, None], ids=repr)
def test_inexact_entries(entry):
    with pytest.raises(InexactNumber):
        Mechanism([[entry], ["1/2"]], HALF)


def test_a_float_matrix_is_refused():
    with pytest.raises(InexactNumber):
        Mechanism(named.geometric(2, alpha="1/2").matrix, HALF)


@pytest.mark.parametrize("denominator", [0, -2])
def test_bad_denominators(denominator):
    with pytest.raises(InvalidMechanism, match="denominator"):
        Mechanism.from_weights([[1], [1]], denominator, HALF)


@pytest.mark.parametrize("big", [BIG, 10**5000], ids=["1e400", "1e5000"])
def test_entries_beyond_floats(big):
    with pytest.raises(InvalidMechanism, match=r"column 0 sums to 1 \+ 1\.00E\+"):
        Mechanism([[big], [1]], HALF)
    with pytest.raises(InvalidMechanism, match=r"P\[0, 0\] = -1\.00000E\+\d+ is negative"):
        Mechanism([[-big], [big + 1]], HALF)


def test_an_enormous_denominator_is_named():
    with pytest.raises(InvalidMechanism, match="denominator"):
        Mechanism.from_weights([[1], [1]], -(10**5000), HALF)


def test_numpy_weights_do_not_wrap_around():
    with pytest.raises(InvalidMechanism, match="column 0 sums to"):
        Mechanism.from_weights([[np.uint8(200)], [np.uint8(100)]], 44, HALF)
    assert (
        Mechanism.from_weights([[np.uint8(200)], [np.uint8(100)]], np.int64(300), HALF).denominator
        == 3
    )


def test_from_weights_is_in_lowest_terms():
    mechanism = Mechanism.from_weights([[2, 4], [4, 2]], 6, HALF)
    assert mechanism.weights == ((1, 2), (2, 1))
    assert mechanism.denominator == 3
    assert mechanism == Mechanism([["1/3", "2/3"], ["2/3", "1/3"]], HALF)


def test_equal_by_value_however_written():
    written = [
        Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], HALF),
        Mechanism([["4/6", Fraction(1, 3)], ["3/9", "2/3"]], Privacy(alpha="0.5", neighbours=1)),
        Mechanism((row for row in [("2/3", "1/3"), ("1/3", "2/3")]), Privacy(alpha=Fraction(2, 4))),
        named.geometric(1, alpha="1/2"),
    ]
    assert len(set(written)) == 1
    assert written[0] != Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/3"))
    assert written[0] != Mechanism(
        [["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/2", neighbours=[(0, 1)])
    )
    assert written[0] != Mechanism([["1/3", "2/3"], ["2/3", "1/3"]], HALF)
    assert written[0] != "a mechanism"


def test_immutable():
    mechanism = named.geometric(2, alpha="1/2")
    for name in ("weights", "denominator", "privacy", "certificate", "table", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(mechanism, name, 1)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(mechanism, name)
    with pytest.raises(ValueError, match="read-only"):
        mechanism.matrix[0, 0] = 1
    assert isinstance(mechanism.weights, tuple)
    assert isinstance(mechanism.weights[0], tuple)
    assert isinstance(mechanism.table[0], tuple)


def test_a_list_given_away_is_not_kept():
    rows = [[1, 1], [1, 1]]
    mechanism = Mechanism.from_weights(rows, 2, HALF)
    rows[0][0] = 5
    assert mechanism.weights == ((1, 1), (1, 1))


def test_matrix_is_the_nearest_float():
    mechanism = Mechanism([["1/3", Fraction(1, BIG)], ["2/3", 1 - Fraction(1, BIG)]], HALF)
    assert mechanism.matrix.tolist() == [[1 / 3, 0.0], [2 / 3, 1.0]]


@SETTINGS
@given(tables(), neighbourhoods)
def test_audit_by_definition(table, neighbours):
    inputs = len(table[0])
    if isinstance(neighbours, list) and max(map(max, neighbours)) >= inputs:
        neighbours = "all"
    mechanism = Mechanism(table, Privacy(alpha="1/3", neighbours=neighbours))
    worst: Fraction | float = Fraction(1)
    for row in table:
        for j, k in mechanism.privacy.pairs(inputs).tolist():
            for top, bottom in ((row[j], row[k]), (row[k], row[j])):
                if top:  # 0/0 leaks nothing: the output is impossible either way
                    worst = max(worst, top / bottom if bottom else math.inf)
    audit = mechanism.audit()
    assert audit.ratio == worst
    assert isinstance(audit.ratio, Fraction) or audit.ratio == math.inf
    assert audit.allowed == 3
    assert audit.holds == (worst <= 3)
    # The place that it names is where the ratio is reached.
    (j, k), row = audit.inputs, table[audit.output]
    if worst > 1:
        assert [min(j, k), max(j, k)] in mechanism.privacy.pairs(inputs).tolist()
        assert row[j] > 0
        assert (row[j] / row[k] if row[k] else math.inf) == worst


def audit_of_every_pair(table, privacy):
    """The first place, output by output and pair by pair, of the largest ratio compared to what is
    allowed.
    """
    pairs, distances = (
        privacy.pairs(len(table[0])).tolist(),
        privacy.distances(len(table[0])).tolist(),
    )
    found: tuple[Fraction | float, Any] = Fraction(1), (0, tuple(pairs[0]))
    best: Fraction | float = Fraction(0)
    for (i, row), ((a, b), d) in product(enumerate(table), zip(pairs, distances, strict=True)):
        for j, k in ((a, b), (b, a)):
            ratio = (row[j] / row[k] if row[k] else math.inf) if row[j] else Fraction(0)
            if ratio > 1 and ratio * privacy.alpha**d > best:
                found, best = (ratio, (i, (j, k))), ratio * privacy.alpha**d
    return found


@SETTINGS
@given(
    tables().filter(lambda table: len(table[0]) > 1),
    st.sampled_from(["all", "reach", "pairs", "metric", "adjacent"]),
)
def test_audit_where_all_are_neighbours_names_the_same_place_as_a_look_at_every_pair(table, kind):
    inputs = len(table[0])
    distances = [[3 * (j != k) for k in range(inputs)] for j in range(inputs)]
    neighbours = {
        "reach": inputs - 1,
        "pairs": list(combinations(range(inputs), 2)),
        "metric": Metric(distances),
    }
    privacy = Privacy(alpha="2/3", neighbours=neighbours.get(kind, kind))
    audit = Mechanism(table, privacy).audit()
    assert (audit.ratio, (audit.output, audit.inputs)) == audit_of_every_pair(table, privacy)
    assert audit.allowed == Fraction(3, 2) ** (3 if kind == "metric" else 1)


@pytest.mark.slow
def test_audit_of_many_outputs_and_inputs():
    """As a local mechanism for 256 items has them: 150 million pairs of entries."""
    rng = random.Random(1)
    low = [rng.getrandbits(48) for _ in range(4600)]
    rows = [[weight << rng.getrandbits(1) for _ in range(256)] for weight in low]
    rows.append([(1 << 62) - sum(column) for column in zip(*rows, strict=True)])
    rows[3000][200], rows[4600][200] = (
        rows[3000][200] + 3 * low[3000],
        rows[4600][200] - 3 * low[3000],
    )
    mechanism = Mechanism.from_weights(rows, 1 << 62, Privacy(alpha="1/3", neighbours="all"))
    began = time.perf_counter()
    audit = mechanism.audit()
    assert time.perf_counter() - began < 10  # by a look at every pair, more than a minute
    assert audit.ratio == Fraction(rows[3000][200], low[3000])
    assert (audit.output, audit.inputs[0]) == (3000, 200)
    assert abs(audit.inputs[1] - 200) == min(
        abs(j - 200) for j, weight in enumerate(rows[3000]) if weight == low[3000]
    )


def test_audit_of_zeros():
    both = Mechanism([[0, 0], ["1/2", "1/2"], ["1/2", "1/2"]], Privacy(alpha=1))
    assert both.audit().ratio == 1
    assert both.audit().holds
    one = Mechanism(
        [["1/2", "1/2"], ["1/2", Fraction(1, 2) - Fraction(1, BIG)], [0, Fraction(1, BIG)]],
        Privacy(alpha=Fraction(1, BIG)),
    )
    assert one.audit().ratio == math.inf
    assert not one.audit().holds
    assert one.audit().output == 2
    assert one.audit().inputs == (1, 0)


@pytest.mark.parametrize("alpha", ["1/2", Fraction(499999, 10**6), Fraction(500001, 10**6)])
def test_audit_at_the_very_limit(alpha):
    mechanism = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha=alpha))
    assert mechanism.audit().holds == (Fraction(alpha) <= Fraction(1, 2))


def test_audit_sees_only_neighbours():
    table = [["8/9", "4/9", "2/9"], ["1/9", "5/9", "7/9"]]
    assert Mechanism(table, Privacy(alpha="1/2", neighbours=[(0, 2)])).audit().ratio == 7
    assert Mechanism(table, Privacy(alpha="1/2", neighbours=2)).audit().ratio == 7
    assert Mechanism(table, HALF).audit().ratio == 5
    assert Mechanism(table, Privacy(alpha="1/2", neighbours=[(1, 2)])).audit().ratio == 2


@pytest.mark.parametrize(
    "table", [[["1/2"], ["1/2"]], [[1, 1, 1]], [[1]]], ids=["one input", "one output", "one by one"]
)
def test_audit_of_tables_that_cannot_leak(table):
    mechanism = Mechanism(table, Privacy(alpha=1, neighbours="all"))
    assert mechanism.audit().ratio == 1
    assert mechanism.audit().holds
    assert mechanism.release([0]).shape == (1,)


@SETTINGS
@given(tables(), st.data())
def test_posterior_is_bayes_rule(table, data):
    inputs = len(table[0])
    weights = prior(
        data.draw(st.lists(st.integers(0, 4), min_size=inputs, max_size=inputs).filter(any))
    )
    uniform = (Fraction(1, inputs),) * inputs
    mechanism = Mechanism(table, HALF)
    for given_prior, found in (
        (weights, mechanism.posterior(weights)),
        (uniform, mechanism.posterior()),
    ):
        assert len(found) == len(table)
        for row, answer in zip(table, found, strict=True):
            evidence = sum(p * w for p, w in zip(row, given_prior, strict=True))
            if evidence == 0:
                assert answer is None
            else:
                assert answer == tuple(
                    p * w / evidence for p, w in zip(row, given_prior, strict=True)
                )
                assert sum(answer) == 1


def test_impossible_outputs_have_no_posterior():
    mechanism = Mechanism([[1, 0], [0, 1], [0, 0]], HALF)
    assert mechanism.posterior() == ((1, 0), (0, 1), None)
    assert mechanism.posterior([1, 0]) == ((1, 0), None, None)


def test_priors_of_the_wrong_length():
    mechanism = named.geometric(2, alpha="1/2")
    for call in (
        mechanism.posterior,
        mechanism.error_distribution,
        lambda p: mechanism.loss(L0(prior=p)),
    ):
        with pytest.raises(InvalidPrior):
            call(["1/2", "1/2"])
        with pytest.raises(InvalidPrior):
            call(["1/2", "1/3", "1/3"])
        with pytest.raises(InexactNumber):
            call([0.25, 0.5, 0.25])


@SETTINGS
@given(tables(square=True), st.integers(0, 3))
def test_scaled_l0_by_definition(table, d):
    size = len(table)
    mechanism = Mechanism(table, HALF)
    if size == 1:
        with pytest.raises(NotSquare):
            mechanism.scaled_l0(d)
        return
    wrong = sum(table[i][j] for i in range(size) for j in range(size) if abs(i - j) > d)
    assert mechanism.scaled_l0(d) == wrong / size * Fraction(size, size - 1)


def test_scaled_l0_of_known_mechanisms():
    assert named.uniform(4).scaled_l0() == 1
    # 2 alpha / (1 + alpha), Theorem 12
    assert named.geometric(5, alpha="2/3").scaled_l0() == Fraction(4, 5)
    with pytest.raises(NotSquare):
        Mechanism([["1/2"] * 3] * 2, HALF).scaled_l0()
