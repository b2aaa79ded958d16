"""Requirements of one's own: what they demand, how they are written and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign import (
    Bands,
    CertificateRejected,
    CountPairs,
    Counts,
    InexactNumber,
    InvalidFile,
    InvalidMechanism,
    Mechanism,
    NotSquare,
    Privacy,
    design,
    named,
)
from mechdesign.base.files import digest_of
from mechdesign.losses import L0, L1, L2
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.values import distances
from mechdesign.properties import resolve
from mechdesign.requirements import AtLeast, AtMost, Inequality, Linear, Unbiased, Within
from tests.mechdesign.drawn_tables import tables

HALF, NINE = Privacy(alpha="1/2"), Privacy(alpha="9/10")


@pytest.mark.parametrize(
    "item",
    [
        AtLeast(0, 0, "0.6"),
        AtLeast(-3, 2, Fraction(1, 3)),
        AtMost(1, 8, Decimal("0.05")),
        Within(3, "9/10"),
        Unbiased(),
        Linear("P[0,0] + 2P[1,1] >= 1.5"),
        Linear("-1/3*P[2, 2] <= -1e-3; 1 * P[0,0] - P[3,3]== 0"),
        Linear([Inequality({(0, 1): 2, (1, 0): 0}, "<=", "1/2")]),
    ],
    ids=lambda item: item.text,
)
def test_texts_are_read_back(item):
    assert resolve(item.text) == item
    assert hash(resolve(item.text)) == hash(item)
    assert resolve(item.text).text == item.text
    assert type(item).__name__ in repr(item)


@pytest.mark.parametrize(
    "text",
    [
        "at-least",
        "at-least:",
        "at-least:0=1/2",
        "at-least:0,0",
        "at-least:0,0=1.5",
        "at-least:0,0=-1/2",
        "at-least:0.5,0=1/2",
        "at-most:a,b=1/2",
        "within:3",
        "within:-1=1/2",
        "within:1=2",
        "unbiased:x",
        "unbiased:",
        "linear",
        "linear:",
        "linear:P[0,0]",
        "linear:>= 1",
        "linear:P[0,0] P[1,1] >= 1",
        "linear:P[0,0] + P[0,0] >= 1",
        "linear:P[0,0] >= 1; ",
        "linear:P[-1,0] >= 1",
        "linear:0*P[0,0] >= 1",
        "linear:2 >= 1",
        "linear:P[0,0] >= x",
        "linear:P[0,0] > 1",
        "linear:1/0*P[0,0] >= 1",
        "linear:+ - P[0,0] >= 1",
    ],
)
def test_texts_that_say_nothing_are_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        resolve(text)


def test_floats_are_refused():
    for make in (
        lambda: AtLeast(0, 0, 0.6),
        lambda: Within(3, 0.9),
        lambda: Linear([Inequality({(0, 0): 0.5}, ">=", 1)]),  # type: ignore[dict-item]
    ):
        with pytest.raises(InexactNumber):
            make()
    with pytest.raises(ValueError, match="relation"):
        Linear([Inequality({(0, 0): 1}, ">", 1)])
    with pytest.raises(ValueError, match="no linear"):
        Linear([])


def test_numpy_integers_are_integers():
    assert AtLeast(np.int64(1), np.uint8(0), "1/2") == AtLeast(1, 0, "1/2")
    assert Within(np.int32(2), "1/2") == Within(2, "1/2")
    assert Linear([Inequality({(np.int64(0), np.int64(1)): 1}, "==", 0)]) == Linear("P[0,1] == 0")  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="a count"):
        AtLeast(True, 0, "1/2")


@given(tables(), st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.data())
def test_they_hold_where_their_words_do(rows, i, j, d, data):
    inputs, outputs = len(rows[0]), len(rows)
    mechanism = Mechanism(
        rows, Privacy(alpha="1/9", neighbours=[(0, inputs - 1)]) if inputs > 1 else HALF
    )
    p = data.draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)]))
    if i < outputs and j < inputs:
        assert AtLeast(i, j, p).holds(mechanism) == (rows[i][j] >= p)
        assert AtMost(i, j, p).holds(mechanism) == (rows[i][j] <= p)
        for relation, told in ((">=", rows[i][j] >= p), ("<=", rows[i][j] <= p)):
            assert Linear([Inequality({(i, j): 1}, relation, p)]).holds(mechanism) == told
        assert Linear([Inequality({(i, j): 3}, "==", 3 * p)]).holds(mechanism) == (rows[i][j] == p)
    else:
        with pytest.raises(InvalidMechanism, match="among"):
            AtLeast(i, j, p).holds(mechanism)
        with pytest.raises(InvalidMechanism, match="names an entry"):
            Linear([Inequality({(i, j): 1}, ">=", p)]).holds(mechanism)
    near = distances(mechanism.output_values, mechanism.input_values) <= d
    least = min(
        sum((rows[i][j] for i in range(outputs) if near[i, j]), Fraction(0)) for j in range(inputs)
    )
    assert Within(d, p).holds(mechanism) == (least >= p)
    means = [sum(i * rows[i][j] for i in range(outputs)) for j in range(inputs)]
    assert Unbiased().holds(mechanism) == (means == list(range(inputs)))


def test_bands_and_pairs():
    bands = Mechanism([["1/2"] * 4] * 2, HALF, outputs=Bands([(0, 1), (2, 5)]))
    assert AtLeast(4, 0, "1/2").holds(bands)
    assert not AtLeast(1, 3, "2/3").holds(bands)
    assert Within(1, "1/2").holds(bands)
    with pytest.raises(InvalidMechanism, match="9 is not among"):
        AtLeast(9, 0, "1/2").holds(bands)
    with pytest.raises(NotSquare, match="no values to add up"):
        Unbiased().holds(bands)
    pairs = design(CountPairs(1, 1), Privacy(alpha="1/2"), L1(), ["within:0=1/4"]).mechanism
    assert min(pairs.table[k][k] for k in range(4)) >= Fraction(1, 4)
    with pytest.raises(InvalidMechanism, match="not among"):
        AtLeast(0, 0, "1/2").holds(pairs)
    truth = Mechanism(
        [[int(i == j) for j in range(4)] for i in range(4)],
        Privacy(alpha="1/2", neighbours=CountPairs(1, 1).neighbours()),
        outputs=CountPairs(1, 1),
        inputs=CountPairs(1, 1),
    )
    assert Unbiased().holds(truth)
    assert not Unbiased().holds(pairs)


@pytest.mark.parametrize(
    "wanted",
    [
        ["at-least:0,0=0.6"],
        ["at-least:0,0=1/2", "at-least:4,4=1/2", "CM"],
        ["at-most:4,0=1/100", "at-most:0,4=1/100"],
        ["within:1=0.75", "WH"],
        ["within:0=2/5", "within:2=4/5"],
        ["linear:P[0,0] + P[4,4] >= 6/5; P[2,2] == 1/3"],
    ],
    ids=lambda wanted: " ".join(wanted),
)
def test_designs_with_requirements_are_certified(wanted, tmp_path):
    found = design(4, HALF, L1(), wanted)
    assert found.certificate.gap == 0
    assert all(resolve(text).holds(found.mechanism) for text in wanted)
    assert found.certificate.objective >= design(4, HALF, L1()).certificate.objective
    found.save(tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json").certificate == found.certificate


def test_an_unbiased_design_is_at_least_as_good_as_noise_cut_wide():
    # Two-sided geometric noise cut at 24 away, its rest on the ends so as to stay unbiased nearly:
    # the variance of the untruncated noise is 2 alpha / (1 - alpha)^2 = 4
    found = design(6, HALF, L2(), [Unbiased()], outputs=Counts(-24, 30))
    assert found.certificate.gap == 0
    assert found.mechanism.error_distribution().bias == 0
    assert float(found.certificate.objective) < 4


def test_a_broken_requirement_is_refused_by_the_file(tmp_path):
    path = tmp_path / "m.json"
    design(4, HALF, L0(), ["at-least:0,0=0.6"]).save(path)
    for text, error in (
        ("at-least:0,0=3/4", CertificateRejected),
        ("at-least:0,0=0.6", InvalidFile),  # not as it would be written
        ("at-least:9,0=3/5", CertificateRejected),
        ("within:0=1", CertificateRejected),
    ):
        content = json.loads(path.read_text())
        content["certificate"]["properties"] = [text]
        content["digest"] = digest_of(content)
        (tmp_path / "forged.json").write_text(json.dumps(content))
        with pytest.raises(error):
            Mechanism.load(tmp_path / "forged.json")


def test_a_hostile_text_is_refused_at_once(tmp_path):
    path = tmp_path / "m.json"
    design(1, HALF, L0(), ["at-least:0,0=0.6"]).save(path)
    content = json.loads(path.read_text())
    content["certificate"]["properties"] = [f"linear:{'7' * 900_000}*P[0,0] >= 0"]
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile):
        Mechanism.load(path)


def test_sums_of_cells():
    class Ends:
        sums = (
            Constraints.sum_at_least([[0, 1], [2, 3]], "1/2"),
            Constraints.sum_at_most([0, 3], "1/2"),
            Constraints.at_most_value([[0], [3]], "1/3"),
        )

    point, denominator = [1, 1, 0, 2], 4
    assert [list(each.violations(point, denominator)) for each in Ends.sums] == [[], [0], [1]]
    assert all(not each.equality for each in Ends.sums)
    with pytest.raises(InexactNumber):
        Constraints.sum_at_least([0, 1], 0.5)


def test_the_named_mechanisms_meet_what_they_must():
    gm = named.geometric(8, alpha="9/10")
    truth = gm.table[0][0]
    assert AtLeast(0, 0, truth).holds(gm)
    assert not AtLeast(0, 0, truth + Fraction(1, 10**30)).holds(gm)
    assert AtMost(0, 0, truth).holds(gm)
    assert not AtMost(0, 0, truth - Fraction(1, 10**30)).holds(gm)
    assert not Unbiased().holds(gm)
    assert design(8, NINE, L2(), [Unbiased()], outputs=Counts(-40, 48)).certificate.gap == 0
