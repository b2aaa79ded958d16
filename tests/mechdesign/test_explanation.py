"""Explanations: every number by enumeration, and every percentage in the words on the safe side."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product
from statistics import pstdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import Bands, CountPairs, Counts, InvalidPrior, Mechanism, Privacy, named
from mechdesign.base.text import from_text
from mechdesign.losses import binomial, prior
from mechdesign.mechanism.explanation import LIKELY, QUESTIONS, Explanation, PersonalRisk, explain
from mechdesign.mechanism.values import Values
from tests.mechdesign.drawn_tables import tables
from tests.mechdesign.relations import RELATIONS, distance

SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)


def apart(outputs: Values, inputs: Values, i: int, j: int) -> int:
    """How far output i is from input j, in the words of the documentation."""
    if isinstance(inputs, CountPairs):
        assert isinstance(outputs, CountPairs)
        a, b = divmod(i, outputs.second + 1)
        c, d = divmod(j, inputs.second + 1)
        return abs(a - c) + abs(b - d)
    if isinstance(outputs, Bands):
        low, high = outputs.bands[i]
        return 0 if low <= j <= high else min(abs(low - j), abs(high - j))
    assert isinstance(outputs, Counts)
    return abs(outputs.low + i - j)


@st.composite
def mechanisms(draw: Any) -> Mechanism:
    """Of every kind of values and neighbours; most do not keep the privacy that they claim."""
    table = draw(tables())
    outputs, inputs = len(table), len(table[0])
    kind = draw(st.sampled_from(["counts", "shifted", "bands", "pairs"]))
    values: dict[str, Values] = {}
    relation = draw(st.sampled_from([*RELATIONS])) if inputs > 1 else "adjacent"
    neighbours = RELATIONS[relation](inputs - 1)
    if kind == "shifted":
        low = draw(st.integers(-4, 3))
        values = {"outputs": Counts(low, low + outputs - 1)}
    elif kind == "bands":
        ends = sorted(draw(st.sets(st.integers(-2, 8), min_size=outputs, max_size=outputs)))
        starts = [min(ends[0], -2), *(end + 1 for end in ends[:-1])]
        values = {"outputs": Bands(zip(starts, ends, strict=True))}
    elif kind == "pairs" and inputs > 1:
        pairs = CountPairs(draw(st.sampled_from([0, inputs - 1])), 0)
        pairs = pairs if pairs.first else CountPairs(0, inputs - 1)
        wide = CountPairs(outputs - 1, 0) if pairs.first else CountPairs(0, outputs - 1)
        values = {"outputs": wide, "inputs": pairs}
        neighbours = pairs.neighbours(draw(st.integers(1, 3)))
    return Mechanism(table, Privacy(alpha="1/2", neighbours=neighbours), **values)


@st.composite
def explanations(draw: Any) -> Explanation:
    mechanism = draw(mechanisms())
    weights = st.lists(st.integers(0, 4), min_size=mechanism.inputs, max_size=mechanism.inputs)
    return explain(mechanism, draw(st.none() | weights.filter(any).map(prior)))


def cells(told: Explanation) -> list[tuple[int, int, int, Fraction]]:
    """Output, input, their distance, and the probability of both together."""
    table, prior = told.table, told.prior
    assert prior is not None
    return [
        (
            i,
            j,
            apart(table.output_values, table.input_values, i, j),
            prior[j] * table.table[i][j],
        )
        for i, j in product(range(table.outputs), range(table.inputs))
    ]


@SETTINGS
@given(explanations())
def test_every_number_by_enumeration(told):
    table, found = told.table, cells(told)
    for d in range(12):
        assert told.within(d) == sum(p for _, _, far, p in found if far <= d)
    assert sum(told.distances) == 1
    assert told.distances[-1] > 0
    assert told.mean_square == sum(far**2 * p for _, _, far, p in found)
    assert told.standard_errors.published == pytest.approx(math.sqrt(told.mean_square), rel=1e-12)
    for j, each in enumerate(told.true_counts):
        column = [(far, table.table[i][j]) for i, k, far, _ in found if k == j]
        assert each.label == table.input_values.labels[j]
        assert each.right == sum(p for far, p in column if far == 0)
        assert each.mean_square == sum(far**2 * p for far, p in column)
    for i, (each, row) in enumerate(
        zip(told.published_values, table.posterior(told.prior), strict=True)
    ):
        assert each.label == table.output_values.labels[i]
        assert each.chance == sum(p for k, _, _, p in found if k == i)
        if row is None:
            assert (each.chance, each.right, each.likeliest, each.extent) == (0, None, None, None)
            continue
        true = [row[j] for k, j, far, _ in found if k == i and far == 0]
        assert each.right == (sum(true) if true else None)
        assert each.likeliest == (table.input_values.labels[row.index(max(row))], max(row))
        if isinstance(table.input_values, CountPairs):
            assert each.extent is None
            continue
        first, last, chance = int(each.extent[0]), int(each.extent[1]), each.extent[2]
        runs = [
            (b - a, -sum(row[a : b + 1]), a)
            for a, b in product(range(len(row)), repeat=2)
            if a <= b and sum(row[a : b + 1]) >= LIKELY
        ]
        assert min(runs) == (last - first, -chance, first)


def moves(told: Explanation) -> list[tuple[str, list[tuple[int, int]]]]:
    """What one person may change, and what the claim lists beyond that: ordered pairs of inputs."""
    values, privacy, size = told.table.input_values, told.table.privacy, told.table.inputs
    pairs = [(j, k) for j, k in product(range(size), repeat=2) if j != k]
    steps = [
        (
            "one",
            [(j, k) for j, k in pairs if apart(values, values, j, k) <= 1],
        )
    ]
    if isinstance(values, CountPairs):
        steps.append(("two", [(j, k) for j, k in pairs if apart(values, values, j, k) <= 2]))
    claimed = [(j, k) for j, k in pairs if distance(privacy.neighbours, j, k) is not None]
    if not any(set(claimed) <= set(step) for _, step in steps):
        steps.append(("", claimed))
    return [step for step in steps if step[1]]


@pytest.mark.slow
@SETTINGS
@given(explanations(), st.fractions(0, 1), st.data())
def test_what_one_person_risks_is_the_worst_of_all_observers(told, before, data):
    rows = told.table.table
    expected = moves(told)
    assert len(told.risks) == len(expected)
    for risk, (name, pairs) in zip(told.risks, expected, strict=True):
        assert name in risk.change
        ratios = [
            row[j] / row[k] if row[k] else math.inf for row in rows for j, k in pairs if row[j]
        ]
        assert risk.ratio == max(ratios)
        # Who knows the others' answers: the count is j if the fact is true, and k if it is not.
        beliefs = [
            before * row[j] / (before * row[j] + (1 - before) * row[k])
            for row in rows
            for j, k in pairs
            if before * row[j] + (1 - before) * row[k]
        ]
        assert max(beliefs) <= risk.belief(before) <= 1
        if risk.ratio < math.inf and risk.ratio > 1:
            assert max(beliefs) == risk.belief(before)
    # Who does not know them, but takes them for independent of this person's answer.
    if told.risks and isinstance(told.table.input_values, Counts):
        others = len(rows[0]) - 1
        draw = st.lists(st.integers(0, 5), min_size=others, max_size=others).filter(any).map(prior)
        weights = data.draw(draw)
        for row in rows:
            without = sum(w * p for w, p in zip(weights, row[:-1], strict=True))
            with_ = sum(w * p for w, p in zip(weights, row[1:], strict=True))
            if before * with_ + (1 - before) * without:
                belief = before * with_ / (before * with_ + (1 - before) * without)
                assert belief <= told.risks[0].belief(before)


NUMBER = r"([<>]?)([\d.]+) %"


def claims(text: str, pattern: str) -> list[tuple[tuple[str, ...], str, Fraction]]:
    """Every match: its groups, whether below or above or equal, and the percentage."""
    return [
        (match[:-2], match[-2], Fraction(match[-1]) / 100)
        for match in re.findall(pattern + NUMBER, text)
    ]


def check(sign: str, shown: Fraction, truth: Fraction) -> None:
    """At most one per cent below the truth, and never above it."""
    if sign == "<":
        assert 0 < truth < shown
    else:
        assert shown <= truth <= shown + Fraction(1, 100)
        assert (shown == 1) == (truth == 1)
        assert (shown == 0) == (truth == 0)
        assert sign != ">" or truth < 1


@SETTINGS
@given(explanations())
def test_the_words_claim_no_more_than_is_so(told):
    accuracy, worst, truth, person = told.answers
    for _, sign, shown in claims(accuracy, "(exact|holds the true count) in "):
        check(sign, shown, told.within(0))
    for (_, end), sign, shown in claims(accuracy, r"(within|off by at most) (\d+) in "):
        check(sign, shown, told.within(int(end)))
    assert len(re.findall("%", accuracy)) in (1, 2, 3)
    right = [each.right for each in told.true_counts]
    for _, sign, shown in claims(worst, "(right) in "):
        assert any(sign == "<" or shown <= each <= shown + Fraction(1, 100) for each in right)
    by_label = {each.label: each for each in told.published_values}
    for sentence in re.split(r"(?<!\.)\. ", truth):
        start = re.match(r"A published (\S+) (means|is never)", sentence)
        if not start:
            assert sentence.startswith(("Nothing", "Never"))
            continue
        each = by_label[start[1]]
        first, *later = claims(sentence, "(probability|with) ")
        check(*first[1:], each.right if start[2] == "means" else each.likeliest[1])
        known = [each.likeliest[1], *([] if each.extent is None else [each.extent[2]])]
        for _, sign, shown in later:
            assert any(sign or shown <= p <= shown + Fraction(1, 100) for p in known)
        if "the truth is in" in sentence:
            assert f"{each.extent[0]} .. {each.extent[1]}" in sentence
    odds = re.findall(r"([\d.E+]+) to 1 \(([<>]?)([\d.]+) %\)", person)
    finite = [risk for risk in told.risks if risk.ratio < math.inf]
    if told.risks and told.risks[0].ratio == math.inf:
        output, possible, impossible = told.risks[0].example
        i = told.table.output_values.labels.index(output)
        j, k = (told.table.input_values.labels.index(x) for x in (possible, impossible))
        assert told.table.table[i][j] > 0 == told.table.table[i][k]
        assert "can prove a fact" in person
    elif not told.risks or told.risks[0].ratio == 1:
        assert person.startswith("Nothing")
    else:
        assert len(odds) == len(finite)
        for (ratio, sign, shown), risk in zip(odds, finite, strict=True):
            assert risk.ratio <= Fraction(ratio) <= risk.ratio * Fraction(101, 100)
            even = risk.ratio / (1 + risk.ratio)
            assert sign == ">" or 0 <= Fraction(shown) / 100 - even <= Fraction(1, 1000)
            assert even < 1
        assert ("no limit" in person) == (len(finite) < len(told.risks))


@SETTINGS
@given(explanations())
def test_the_page_of_words_has_all_answers_and_json_all_numbers(told):
    words = " ".join(str(told).split())
    for question, answer in zip(QUESTIONS, told.answers, strict=True):
        assert f"{question} {answer}" in words
    assert max(map(len, str(told).split("\n"))) <= 100
    assert ("NOT PRIVATE" in words) == (not told.table.audit().holds)
    content = told.to_dict()
    assert content["text"] == str(told)

    def value(item):
        if item is None:
            return None
        exact = from_text(item["exact"])
        assert item["decimal"] == float(exact)
        return exact

    assert value(content["alpha"]) == told.table.privacy.alpha
    assert tuple(map(value, content["prior"])) == told.prior
    assert tuple(map(value, content["distances"])) == told.distances
    assert value(content["mean_square"]) == told.mean_square
    assert value(content["bias"]) == told.bias
    for item, each in zip(content["true_counts"], told.true_counts, strict=True):
        assert (item["count"], value(item["right"])) == (each.label, each.right)
        assert value(item["mean_square"]) == each.mean_square
    for item, each in zip(content["published_values"], told.published_values, strict=True):
        assert (item["value"], value(item["chance"])) == (each.label, each.chance)
        assert value(item["right"]) == each.right
        assert (item["likeliest"] is None) == (each.likeliest is None)
        assert (item["extent"] is None) == (each.extent is None)
        if each.extent is not None:
            assert (item["extent"]["first"], item["extent"]["last"]) == each.extent[:2]
            assert value(item["extent"]["chance"]) == each.extent[2]
    for item, risk in zip(content["one_person"], told.risks, strict=True):
        assert value(item["ratio"]) == (None if risk.ratio == math.inf else risk.ratio)


def test_the_text_of_a_known_mechanism():
    told = explain(named.geometric(20, alpha=Privacy.from_epsilon("0.5").alpha))
    assert told.statement == (
        "A count of 20 people, published as 0 .. 20 with epsilon 0.5. True counts are taken to be"
        " equally likely."
    )
    assert told.answers[0].startswith("It is exact in 28 % of cases, within 1 in 58 %, within 4 in")
    assert told.answers[1].startswith("Worst for 10: the typical error is 2.74")
    assert told.answers[2].startswith("A published 0 means a true 0 with probability 39 %; the")
    assert "at most 1.65 to 1 (62.3 %) from one published value" in told.answers[3]
    assert repr(told) == "<Explanation of 21 outputs x 21 inputs>"


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (binomial(4, "1/4"), "binomial: each person counts with probability 0.25."),
        (binomial(4, 0), "binomial: each person counts with probability 0."),
        ([1, 0, 0, 0, 1], "as likely as the prior says: 2 on average, with a standard deviation"),
        ([2, 2, 2, 2, 2], "equally likely."),
        ([5, 2, 1, 0, 0], "as likely as the prior says: 0.5 on average, with a standard deviation"),
    ],
)
def test_the_prior_is_named(weights, said):
    told = explain(named.geometric(4, alpha="1/2"), prior(weights)).statement
    assert f"True counts are taken to be {said}" in told
    if "deviation" in said:
        counts = [j for j, weight in enumerate(weights) for _ in range(weight)]
        assert told.endswith(f"deviation of {pstdev(counts):.3g}.")
    pairs = CountPairs(1, 1)
    privacy = Privacy(alpha="1/2", neighbours=pairs.neighbours())
    table = Mechanism([["1/4"] * 4] * 4, privacy, outputs=pairs, inputs=pairs)
    some = explain(table, prior([1, 2, 3, 4])).statement
    assert some.endswith("True counts are taken to be as likely as the prior says.")


def test_extremes():
    only = explain(named.uniform(0))
    assert only.risks == ()
    assert only.answers[3] == "Nothing: only one true count is possible."
    blind = explain(named.uniform(4))
    assert blind.risks[0].ratio == 1
    assert blind.answers[2].startswith("Nothing: what is published does not depend on the true")
    assert blind.answers[3].startswith("Nothing: what is published does not depend on anybody's")
    tiny = explain(named.geometric(3, alpha="1e-400"))
    assert "1E+400 to 1 (>99.99 %)" in tiny.answers[3]
    assert ">99.99 %" in tiny.answers[0]
    assert tiny.to_dict()["one_person"][0]["ratio"]["decimal"] is None
    assert PersonalRisk("", math.inf, ("0", "0", "1")).belief(Fraction(0)) == 0
    with pytest.raises(InvalidPrior, match="2 weights for 4 inputs"):
        explain(named.uniform(3), ["1/2", "1/2"])


@pytest.mark.parametrize(
    ("neighbours", "words"),
    [
        ("all", "the true count to any other: "),
        (3, "the true count by at most 3: "),
        ([(0, 4), (0, 1)], "any that the claim of privacy has as a neighbour: "),
    ],
)
def test_claims_about_more_than_one_step_are_told_apart(neighbours, words):
    table = named.geometric(4, alpha="1/2").table
    told = explain(Mechanism(table, Privacy(alpha="1/2", neighbours=neighbours)))
    assert [risk.ratio for risk in told.risks] == [2, 16 if neighbours != 3 else 8]
    assert words in told.answers[3]
    assert (
        explain(Mechanism(table, Privacy(alpha="1/2", neighbours=[(1, 2)]))).risks == told.risks[:1]
    )


@pytest.mark.slow
@given(explanations())
@settings(deadline=None)
def test_biases_by_enumeration(told):
    for j, each in enumerate(told.true_counts):
        if isinstance(told.table.input_values, CountPairs):
            assert each.bias is None
            continue
        alone = told.table.error_distribution([int(k == j) for k in range(told.table.inputs)])
        assert each.bias == alone.bias
    if not isinstance(told.table.input_values, CountPairs):
        weighed = zip(told.prior, told.true_counts, strict=True)
        assert sum(p * each.bias for p, each in weighed) == told.bias


@pytest.mark.parametrize("n", [4, 40])
def test_a_bias_of_each_true_count_is_told_where_the_average_is_none(n):
    told = explain(named.geometric(n, alpha="1/2"))
    assert told.bias == 0
    text = " ".join(str(told).split())
    assert "On average over all true counts it is neither too low nor too high" in text
    assert "for each of them it is off by +" in text
    first, last = told.true_counts[0], told.true_counts[-1]
    assert first.bias is not None
    assert last.bias is not None
    assert first.bias == -last.bias > 0
    assert f"{float(first.bias):+.2f} for 0" in text
    assert f"{float(last.bias):+.2f} for {n}" in text
    assert ("..." in text) == (n > 12)
    assert told.to_dict()["true_counts"][0]["bias"]["exact"] == str(first.bias)
    same = explain(named.uniform(0))
    assert "whatever the true count" in str(same)
