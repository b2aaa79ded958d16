"""What all days together tell: bounded where values change on the same days, and not elsewhere."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import inf

import pytest

from frequency import GRR, InvalidValue, Tabular
from frequency.longitudinal import Memoised, sequence_ratio
from mechdesign import Ledger, Mechanism, Privacy, ShuffledDays
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import exp_above, exp_below
from mechdesign.privacy import exact_epsilon
from tests.frequency.longitudinal.test_memoised import joint_law

TABLE = Mechanism(
    [["1/2", "1/3", "1/4"], ["1/4", "1/3", "1/4"], ["1/4", "1/3", "1/2"]],
    Privacy(alpha="1/2", neighbours="all"),
)
QUESTIONS = {
    "two items": Memoised(Tabular(GRR(2, "1/2").mechanism), total=1),
    "three items": Memoised(Tabular(GRR(3, "1/2").mechanism), total=1),
    "a table": Memoised(Tabular(TABLE), total=2),
    "little privacy loss": Memoised(Tabular(GRR(2, "1/20").mechanism), total="1/10"),
}


def pattern(values: tuple[int, ...]) -> tuple[int, ...]:
    """The first day of each day's value."""
    return tuple(map(values.index, values))


@pytest.mark.parametrize("name", QUESTIONS)
def test_values_that_change_on_the_same_days(name: str) -> None:
    """All pairs of sequences of three days: k different values cost at most k times, one once."""
    question, of_days = QUESTIONS[name], 0
    allowed = question.audit().ratio
    assert allowed <= question.audit().allowed
    sequences = list(product(range(question.protocol.domain), repeat=3))
    for first, second in product(sequences, sequences):
        if first < second and pattern(first) == pattern(second):
            of_days += 1
            assert sequence_ratio(question, first, second) <= allowed ** len(set(first))
    assert of_days >= 4


def test_a_cost_covers_the_exact_audit() -> None:
    """Every pair of sequences with at most so many changes, on the same days, from each start."""
    question = QUESTIONS["three items"]
    sequences = list(product(range(3), repeat=3))
    worst = [Fraction(1)] * 3
    for first, second in product(sequences, sequences):
        if pattern(first) == pattern(second):
            changes = sum(one != other for one, other in pairwise(first))
            ratio = sequence_ratio(question, first, second)
            assert isinstance(ratio, Fraction)
            worst[changes] = max(worst[changes], ratio)
    for changes, ratio in enumerate(worst):
        for starts in (1, 3):  # what different starts draw is independent
            cost = question.cost(changes, starts)
            assert ratio**starts <= exp_below(cost.epsilon)
            assert cost.epsilon == (changes + 1) * starts * exact_epsilon(question.total)
    # Not of fewer permanent reports: one day of each of two values tells as much as that
    question = QUESTIONS["little privacy loss"]
    apart = sequence_ratio(question, [0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    assert apart > exp_above(question.cost().epsilon)


def test_several_days_are_not_shuffled_one_by_one() -> None:
    question = Memoised(GRR(4, 1), total=2)
    monday, one = shuffled(question, 1000), shuffled(question.protocol, 1000)
    assert monday.epsilon("1e-6") == one.epsilon("1e-6")
    with pytest.raises(ShuffledDays):
        Ledger("9", delta="1e-6").spend(monday, "Monday")


@pytest.mark.parametrize(("changes", "starts"), [(-1, 1), (0, 0), (0.5, 1), (10**6, 1)])
def test_numbers_of_changes_and_starts(changes: int, starts: int) -> None:
    with pytest.raises(ValueError, match=r"changes|starts"):
        QUESTIONS["two items"].cost(changes, starts)


@pytest.mark.parametrize("name", QUESTIONS)
def test_one_day_and_many(name: str) -> None:
    """A day keeps its own epsilon; more days come near that of the permanent report."""
    question = QUESTIONS[name]
    last = question.protocol.domain - 1
    ratios = [sequence_ratio(question, [0] * days, [last] * days) for days in range(1, 7)]
    assert ratios[0] == question.protocol.audit().ratio
    assert all(one < other for one, other in pairwise(ratios))
    assert ratios[-1] < question.audit().ratio < ratios[-1] * Fraction(41, 40)


def test_against_the_joint_law() -> None:
    """From the published law of a day, report by report."""
    question = QUESTIONS["a table"]
    for first, second in (([0, 1, 0], [2, 2, 1]), ([1], [2]), ([0, 0], [1, 2])):
        laws = [joint_law(question, values) for values in (first, second)]
        ratios = [laws[0][sent] / laws[1][sent] for sent in laws[0]]
        expected = max(max(ratios), 1 / min(ratios))
        assert sequence_ratio(question, first, second) == expected
        assert sequence_ratio(question, second, first) == expected


def test_a_change_is_not_hidden() -> None:
    """Two values do not cost twice the total where only one of two users changes: two days show
    it where epsilon is small, and some more days where it is not.
    """
    question = QUESTIONS["little privacy loss"]
    twice = question.audit().allowed ** 2
    assert sequence_ratio(question, [0, 0], [0, 1]) > twice
    question = QUESTIONS["two items"]
    twice = question.audit().allowed ** 2
    halves = [
        sequence_ratio(question, [0] * days, [0] * (days // 2) + [1] * (days // 2))
        for days in (2, 4, 6, 8)
    ]
    assert halves[1] < twice < halves[2]
    # It grows without end, by about as much every two days
    assert 3 * halves[1] < halves[2] < halves[3] / 3


def test_permanent_reports_alone_show_every_change() -> None:
    oracle = Tabular(
        Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/2", neighbours="all"))
    )
    question = Memoised(oracle, total=oracle.epsilon)
    assert question.kept == 1
    assert sequence_ratio(question, [0, 0], [1, 1]) == 2
    assert sequence_ratio(question, [0, 0], [0, 1]) == inf


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        ([0], [0, 1], ValueError, "as many days"),
        ([], [], ValueError, "as many days"),
        ([[0]], [[1]], ValueError, "as many days"),
        ([0, 2], [0, 1], InvalidValue, r"values\[1\] = 2"),
        ([0] * 17, [1] * 17, ValueError, "at most 65536 sequences"),
    ],
)
def test_what_is_refused(
    first: list[int], second: list[int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sequence_ratio(QUESTIONS["two items"], first, second)


def test_reports_that_are_not_listed() -> None:
    with pytest.raises(TypeError, match="got GRR"):
        sequence_ratio(Memoised(GRR(2, 1), total=2), [0], [1])
