"""Memoised reports: each day's law is the one-shot law, exactly, and all days together keep the
permanent report's ratio.

The algebra is checked in fractions on every protocol of few reports; the draws of some are measured
word by word, on one day and on two.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import frequency
import rangeq
from frequency import GRR, HRR, OUE, InvalidValue, SubsetSelection, heavy, marginals
from frequency.algebra.exact_draws import chances
from frequency.longitudinal import Memoised
from mechdesign import Mechanism, Privacy, named
from mechdesign.base.numbers import bit_source
from mechdesign.exceptions import UnstatedLikelihoods
from tests.contracts.measure import law
from tests.contracts.published import probability
from tests.contracts.test_laws import CASES, channel_of, equal, of_ratio
from tests.contracts.test_proofs import every_report
from tests.goodness_of_fit import FALSE_ALARM, goodness

TOTAL = Fraction(5, 2)
REFUSED = {name for name in CASES if name.startswith("PaddedSets")}


def weighted(law_of_day: dict[bytes, Fraction], weight: Any) -> dict[bytes, Fraction]:
    """The law whose probabilities are those times a weight of each report."""
    products = {report: chance * weight(report) for report, chance in law_of_day.items()}
    total = sum(products.values())
    return {report: value / total for report, value in products.items()}


def laws_of(question: Memoised, value: Any) -> tuple[dict[bytes, Fraction], ...]:
    """The published law of a day; and what remains of it where reports are kept with some chance:
    the permanent report's, and that of a report that says nothing.
    """
    day = every_report(question.protocol, value)
    channel: Any = channel_of(question.protocol)
    likelihoods = [likelihood for kind in channel.likelihoods for likelihood in kind]
    reports = np.frombuffer(b"".join(day), channel.report_dtype)
    item = channel.items_of(
        [value] if channel is question.protocol else question.protocol.items_of([value])
    )
    places = channel.likelihood(reports, np.repeat(item, len(reports), axis=0)).tolist()
    told = {report: likelihoods[place] for report, place in zip(day, places, strict=True)}
    return (
        day,
        weighted(day, lambda report: 1 - (1 - question.kept) / told[report]),
        weighted(day, lambda report: 1 / told[report]),
    )


@pytest.mark.parametrize("name", sorted(set(CASES) - REFUSED))
def test_a_day_has_exactly_the_one_shot_law(name: str) -> None:
    """Of permanent reports and of reports that say nothing, mixed; whatever the protocol."""
    case = CASES[name]
    with of_ratio(case.ratio):
        question = Memoised(case.make(), total=TOTAL)
        assert 0 < question.kept <= 1
        found = [laws_of(question, value) for value in case.values]
        for day, permanent, blank in found:
            for report, chance in day.items():
                mixed = question.kept * permanent[report] + (1 - question.kept) * blank[report]
                assert mixed == chance
            assert blank == found[0][2]  # whatever the value
        (_, one, _), (_, other, _) = found
        ratio = max(one[report] / other[report] for report in one)
        audit = question.audit()
        assert ratio <= audit.ratio <= audit.allowed
        assert audit.holds
        if len(set(channel_of(question.protocol).likelihoods)) == 1 < len(set(audit.inputs)):
            assert ratio == audit.ratio == audit.allowed  # parts of a mixture may fall short of it


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_sets_are_refused(name: str) -> None:
    """Their users draw what they report about: a fresh item each day would tell of the others."""
    with pytest.raises(UnstatedLikelihoods, match="Slots"):
        Memoised(CASES[name].make(), total=TOTAL)


# ------------------------------------------------------------------------- what is drawn, measured

TABLE = frequency.Tabular(
    Mechanism(
        [["1/2", "1/3", "1/4"], ["1/4", "1/3", "1/4"], ["1/4", "1/3", "1/2"]],
        Privacy(alpha="1/2", neighbours="all"),
    )
)


def joint_law(question: Memoised, values: list[int]) -> dict[bytes, Fraction]:
    """Of the reports of all days together, from the published law of one."""
    laws = {value: laws_of(question, value) for value in dict.fromkeys(values)}
    blank = laws[values[0]][2]

    def chance(sent: tuple[bytes, ...]) -> Fraction:
        result = Fraction(1)
        for value, (_, permanent, _) in laws.items():
            mine = [report for report, held in zip(sent, values, strict=True) if held == value]
            result *= sum(
                permanent[kept]
                * prod(
                    question.kept * (report == kept) + (1 - question.kept) * blank[report]
                    for report in mine
                )
                for kept in permanent
            )
        return result

    return {b"".join(sent): chance(sent) for sent in product(blank, repeat=len(values))}


def sent(question: Memoised, values: list[int], rng: np.random.Generator) -> bytes:
    state = question.start(values[:1], rng)
    return b"".join(question.privatize(state, [value], rng).tobytes() for value in values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (GRR(2, 1), [0]),
        (GRR(3, 1), [2]),
        (HRR(2, 1), [1]),
        (GRR(2, 1), [0, 0]),
        (GRR(2, 1), [0, 1]),
        (GRR(2, 1), [1, 0, 1]),
        (HRR(2, 1), [1, 1]),
        (TABLE, [1]),
    ],
)
def test_what_is_drawn_has_the_joint_law_of_all_days(protocol: Any, values: list[int]) -> None:
    question = Memoised(protocol, total=TOTAL)
    measured = law(partial(sent, question, values))
    expected = joint_law(question, values)
    equal(measured, expected.get)
    assert set(expected) <= set(measured)
    if len(values) == 1:
        (item,) = protocol.items_of(values)
        for report, chance in expected.items():
            row = np.frombuffer(report, protocol.report_dtype)[0]
            assert chance == probability(protocol, row, item)


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(5, 7), Fraction(0), Fraction(1)])
def test_chances_are_those_asked_for(chance: Fraction) -> None:
    which = np.zeros(1, dtype=np.int64)
    measured = law(lambda rng: bool(chances([chance], which, bit_source(rng))[0]))
    equal(measured, {True: chance, False: 1 - chance}.get)


def test_each_bit_has_the_chance_of_its_own() -> None:
    rng, which = np.random.default_rng(1), np.tile(np.arange(3), 20_000)
    found = chances([Fraction(1), Fraction(1, 3), Fraction(0)], which, bit_source(rng))
    assert found[which == 0].all()
    assert not found[which == 2].any()
    assert goodness(np.bincount(found[which == 1].astype(int)), [2, 1]) > FALSE_ALARM


# ------------------------------------------------------------------------------------ many users


def kinds_of(reports: np.ndarray) -> list[bytes]:
    return [report.tobytes() for report in reports]


def p_value(question: Memoised, found: Counter[bytes], value: int, other: int | None = None):
    """Of reports of the days of a value, against the published law of one day."""
    day = laws_of(question, value if other is None else other)[0]
    assert set(found) <= set(day)
    order = sorted(day)
    return goodness(
        np.array([found[report] for report in order]), [float(day[report]) for report in order]
    )


MANY = [
    GRR(5, 1),
    OUE(4, 1),
    SubsetSelection(6, 1),
    frequency.ProjectiveGeometry(7, 1),
    frequency.OLH(5, 1),
    rangeq.HierarchicalHistogram(4, 1, branching=2, oracle=("GRR", "OUE")),
    marginals.InpEM(marginals.Domain({"a": 2, "b": 3}), 2, 1),
]


@pytest.mark.parametrize("protocol", MANY, ids=lambda protocol: type(protocol).__name__)
def test_each_day_of_many_users(protocol: Any) -> None:
    """On the first day, on one after a change, and on one after changing back."""
    question, rng = Memoised(protocol, total=2), np.random.default_rng(3)
    one, other = ([0, 0], [1, 2]) if isinstance(protocol, marginals.InpEM) else (0, 3)
    users = 20_000
    state = question.start([one] * users, rng)
    for value in (one, other, one):
        found = Counter(kinds_of(question.privatize(state, [value] * users, rng)))
        assert p_value(question, found, value) > FALSE_ALARM
        assert p_value(question, found, value, other if value == one else one) < FALSE_ALARM
    assert (state.held == 2).all()


def test_a_value_that_comes_back_has_its_report_back() -> None:
    """Users keep one report for each value, whatever the order in which values come."""
    question, rng = Memoised(SubsetSelection(40, 1), total=2), np.random.default_rng(4)
    days = rng.integers(0, 3, (12, 500))
    state = question.start(days[0], rng)
    told = [question.privatize(state, values, rng) for values in days]
    assert (state.held == [len(set(mine)) for mine in days.T.tolist()]).all()
    seen = 0
    for user in range(500):
        kept = dict(
            zip(
                state.items[: state.held[user], user].tolist(),
                kinds_of(state.reports[: state.held[user], user]),
                strict=True,
            )
        )
        assert set(kept) == set(days[:, user].tolist())
        seen += sum(
            told[day][user].tobytes() == kept[value] for day, value in enumerate(days[:, user])
        )
    # A fresh report of 7 items of 40 is hardly ever the same
    assert goodness(np.array([seen, 6000 - seen]), [question.kept, 1 - question.kept]) > FALSE_ALARM


def test_users_may_miss_days() -> None:
    """What the others keep is not touched, and the reports are of those who take part, in order."""
    question, rng = Memoised(SubsetSelection(40, 1), total=2), np.random.default_rng(6)
    state = question.start(np.zeros(300, dtype=int), rng)
    first = state.reports.copy()
    some = rng.permutation(300)[:200]
    told = question.privatize(state, np.full(200, 7), rng, users=some)
    assert np.array_equal(np.flatnonzero(state.held == 2), np.sort(some))
    assert np.array_equal(state.reports[0], first[0])
    seen = int((told == state.reports[1, some]).sum())
    assert goodness(np.array([seen, 200 - seen]), [question.kept, 1 - question.kept]) > FALSE_ALARM
    for users in ([1, 1], [[0, 1]], [0, 300], [0]):
        with pytest.raises(ValueError, match=r"users|values"):
            question.privatize(state, [0, 1], rng, users=users)


def test_nothing_is_kept_of_values_that_are_refused() -> None:
    question, rng = Memoised(GRR(4, 1), total=2), np.random.default_rng(5)
    state = question.start([0, 1], rng)
    before = [state.held.copy(), state.items.copy(), state.reports.copy()]
    with pytest.raises(InvalidValue, match=r"values\[1\] = 4"):
        question.privatize(state, [2, 4], rng)
    with pytest.raises(ValueError, match="2 users, got 3"):
        question.privatize(state, [2, 3, 0], rng)
    with pytest.raises(ValueError, match="of another protocol or total"):
        Memoised(GRR(4, 1), total=3).privatize(state, [2, 3], rng)
    for kept, was in zip((state.held, state.items, state.reports), before, strict=True):
        assert np.array_equal(kept, was)
    with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
        question.start([0, 1], 7)


def test_the_state_is_its_own() -> None:
    question, values = Memoised(GRR(4, 1), total=2), np.zeros(100, dtype=np.int64)
    state = question.start(values)
    values[:] = 3
    question.privatize(state, values)
    assert (state.held == 2).all()


def test_no_users() -> None:
    question = Memoised(GRR(4, 1), total=2)
    assert len(question.privatize(question.start([]), [])) == 0


def test_one_value() -> None:
    question = Memoised(GRR(1, 1), total=2)
    assert question.audit().ratio == 1
    assert question.privatize(question.start([0]), [0])["item"].tolist() == [0]


def test_secure_randomness_is_the_default() -> None:
    question = Memoised(HRR(1 << 20, 1), total=2)
    assert len({question.start([7]).reports.tobytes() for _ in range(4)}) > 1


# ------------------------------------------------------------------------------------ parameters


def test_total_equal_to_day_sends_the_permanent_report_alone() -> None:
    question = Memoised(GRR(1 << 10, 2), total=2)
    assert 1 - question.kept < Fraction(1, 1 << 40)
    state = question.start(np.arange(200))
    assert (question.privatize(state, np.arange(200)) == state.reports[0]).all()


@pytest.mark.parametrize("kind", [GRR, HRR, SubsetSelection], ids=lambda kind: kind.__name__)
def test_the_permanent_report_is_that_of_the_same_family(kind: Any) -> None:
    """At the total, up to the units of 2^-64 of the one-shot protocol; where its sets are as large
    then: L - 1 grows by the same factor c.
    """
    day, most = kind(4, 1), kind(4, "3/2")
    question = Memoised(day, total="3/2")
    assert getattr(day, "size", 0) == getattr(most, "size", 0)
    for one, other in zip(day.likelihoods[0], most.likelihoods[0], strict=True):
        assert abs(question.stretched(one) - other) < Fraction(1, 1 << 58)


@pytest.mark.parametrize(("day", "total"), [(1, 2), ("1/2", 1), (2, 4)])
def test_the_permanent_bits_of_unary_encoding(day: Any, total: Any) -> None:
    """Other bits stay as they are; the own one is 1 with p of p (1 - q) / (q (1 - p)) = e^total."""
    for oracle in (OUE(8, day), frequency.SUE(8, day)):
        question, q = Memoised(oracle, total=total), oracle.q
        p = question.max_ratio * q / (1 - q + question.max_ratio * q)
        assert [question.stretched(value) for value in oracle.likelihoods[0]] == [
            (1 - p) / (1 - q),
            p / q,
        ]
        assert question.kept == (oracle.p - q) / (p - q)


def test_a_function_makes_the_protocol() -> None:
    question = Memoised(partial(SubsetSelection, 16), total=2, day="1/2")
    assert question.protocol == SubsetSelection(16, "1/2")
    assert question == Memoised(SubsetSelection(16, "1/2"), total=2)
    assert question != Memoised(SubsetSelection(16, "1/2"), total=3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"protocol": GRR(4, 1), "total": 0.9}, ValueError, "at least the epsilon of a day, 1,"),
        ({"protocol": GRR(4, 1), "total": -1}, ValueError, "epsilon"),
        ({"protocol": GRR(4, 1), "total": 2, "day": 1}, ValueError, "day must be None"),
        ({"protocol": partial(GRR, 4), "total": 2}, ValueError, "day must be the epsilon"),
        ({"protocol": 4, "total": 2}, TypeError, "expected a protocol"),
        ({"protocol": lambda day: "GRR", "total": 2, "day": 1}, TypeError, "expected a protocol"),
        (
            {"protocol": heavy.OneBit(GRR(4, 1)), "total": 2},
            UnstatedLikelihoods,
            "SampledOracle does not state",
        ),
        (
            {"protocol": frequency.Tabular(named.geometric(3, alpha=Fraction(1, 2))), "total": 2},
            UnstatedLikelihoods,
            "Tabular does not state",
        ),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Memoised(**arguments)


def test_a_survey_is_refused() -> None:
    schema = frequency.Schema([frequency.Numeric("few", range(5), whole=True)])
    with pytest.raises(UnstatedLikelihoods, match="SurveyChannel"):
        Memoised(frequency.Survey(GRR(4, 1), schema), total=2)
