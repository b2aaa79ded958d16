"""Every system keeps what it promises: a day's report has the law of its protocol, and all days
together keep the permanent report's ratio, exactly.

Of false alarms, see `tests.goodness_of_fit`.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from frequency import InvalidValue, SubsetSelection
from frequency.longitudinal import Memoised
from frequency.longitudinal.published import (
    LGRR,
    LOSUE,
    OLOLOHA,
    RAPPOR,
    BiLOLOHA,
    DBitFlipPM,
    LongitudinalSystem,
)
from mechdesign.base.numbers import bit_source
from tests.contracts.measure import law
from tests.contracts.published import probability
from tests.contracts.test_laws import equal, of_ratio
from tests.frequency.longitudinal.published.rounds import joint_law, response, worst_ratio
from tests.goodness_of_fit import FALSE_ALARM, goodness

SMALL: dict[str, LongitudinalSystem] = {
    "RAPPOR": RAPPOR(3, 2, 1),
    "RAPPOR, two items": RAPPOR(2, "3/2", "1/2"),
    "L-OSUE": LOSUE(3, 2, 1),
    "L-OSUE, two items": LOSUE(2, "3/2", "1/2"),
    "L-GRR": LGRR(4, 2, 1),
    "L-GRR, two items": LGRR(2, "1/2", "1/20"),
    "BiLOLOHA": BiLOLOHA(3, 2, 1),
    "OLOLOHA": OLOLOHA(4, 2, 1),
    "dBitFlipPM, one bit": DBitFlipPM(3, 1, 1),
    "dBitFlipPM, two bits": DBitFlipPM(3, 1, 2),
    "dBitFlipPM, all bits": DBitFlipPM(3, 1, 3),
}
TWO_ROUNDS = {name: system for name, system in SMALL.items() if "dBit" not in name}
systems = pytest.mark.parametrize("name", SMALL)
two_rounds = pytest.mark.parametrize("name", TWO_ROUNDS)


@systems
def test_a_day_has_exactly_the_law_of_the_protocol(name: str) -> None:
    system = SMALL[name]
    for value in range(system.domain):
        day = joint_law(system, [value])
        assert sum(day.values()) == 1
        rows = np.frombuffer(b"".join(day), system.protocol.report_dtype)
        for row, chance in zip(rows, day.values(), strict=True):
            assert chance == probability(system.protocol, row, value)


@systems
def test_unchanged_values(name: str) -> None:
    """One day loses the epsilon of a day, more days more, and none more than ``total``; by
    enumeration of all reports of up to three days.
    """
    system = SMALL[name]
    days = 3 if system.domain < 4 and len(joint_law(system, [0])) < 13 else 2
    audit = system.audit()
    assert audit.holds
    assert audit.ratio == system.permanent.audit().ratio
    for number in range(1, days + 1):
        found = [
            worst_ratio(system, [v] * number, [u] * number)
            for v, u in ((0, 1), (1, 2), (2, 0))
            if max(v, u) < system.domain
        ]
        assert max(found) == system.audit(number).ratio <= audit.ratio
    assert system.audit(1).ratio == system.protocol.audit().ratio
    assert system.audit(1).allowed == audit.allowed


@two_rounds
def test_more_days_come_near_the_permanent_report(name: str) -> None:
    system = TWO_ROUNDS[name]
    ratios = [system.audit(days).ratio for days in (1, 2, 4, 8, 16, 1000)]
    assert all(one < other for one, other in pairwise(ratios))
    assert system.audit().ratio * Fraction(999, 1000) < ratios[-1] < system.audit().ratio


@pytest.mark.parametrize("name", ["RAPPOR, two items", "L-OSUE, two items", "L-GRR, two items"])
def test_values_that_change_on_the_same_days(name: str) -> None:
    """All pairs of sequences of three days: two values cost at most twice the total."""
    system = SMALL[name]
    for first, second in product(product((0, 1), repeat=3), repeat=2):
        if first < second and all(
            (a == b)
            for a, b in zip(map(first.index, first), map(second.index, second), strict=True)
        ):
            assert worst_ratio(system, first, second) <= system.audit().ratio ** len(set(first))


@pytest.mark.parametrize("system", [BiLOLOHA(2, "1/10", "1/20"), RAPPOR(2, "1/10", "1/20")])
def test_changes_show_in_every_system(system: LongitudinalSystem) -> None:
    """Users with two values, and LOLOHA with two hashes, are said to lose twice ``total`` at most.
    It is not so where only one of two users changes.
    """
    assert worst_ratio(system, [0, 0], [0, 1]) > system.audit().ratio ** 2
    assert worst_ratio(system, [0, 0], [1, 1]) < system.audit().ratio


def test_one_round_shows_every_change() -> None:
    with pytest.raises(OverflowError):
        Fraction(worst_ratio(DBitFlipPM(2, 1, 2), [0, 0], [0, 1]))


# ------------------------------------------------------------------------- what is drawn, measured


def sent(system: LongitudinalSystem, values: list[int], rng: np.random.Generator) -> bytes:
    state = system.start(values[:1], rng)
    return b"".join(system.privatize(state, [value], rng).tobytes() for value in values)


@pytest.mark.parametrize(
    ("system", "values"),
    [
        (LGRR(2, 2, 1), [0]),
        (BiLOLOHA(2, 2, 1), [1]),
        *(
            pytest.param(system, values, marks=pytest.mark.slow)
            for system, values in (
                (LGRR(3, 2, 1), [2]),
                (LGRR(2, 2, 1), [0, 0]),
                (LGRR(2, 2, 1), [0, 1, 0]),
                (BiLOLOHA(2, 2, 1), [0, 0]),
                (BiLOLOHA(2, 2, 1), [0, 1]),
                (OLOLOHA(3, 2, 1), [2]),
            )
        ),
    ],
)
def test_symbols_are_drawn_as_published(system: LongitudinalSystem, values: list[int]) -> None:
    """Word by word, on all days together."""
    measured = law(partial(sent, system, values))
    expected = joint_law(system, values)
    equal(measured, expected.get)
    assert set(expected) <= set(measured)


@pytest.mark.slow
def test_a_second_round_that_keeps_too_much_shows() -> None:
    """By one part in 256: in what is drawn, and in what the audit says of a day."""
    honest, leaky = LGRR(2, 2, 1), LGRR(2, 2, 1)
    vars(leaky)["kept"] = leaky.kept * Fraction(257, 256)
    with pytest.raises(AssertionError):
        equal(law(partial(sent, leaky, [0])), joint_law(honest, [0]).get)
    assert leaky.audit(1).ratio > honest.protocol.max_ratio >= honest.audit(1).ratio


@pytest.mark.parametrize("kind", [RAPPOR, LOSUE])
def test_bits_are_changed_as_published(kind: Any) -> None:
    """The second round, word by word, of every permanent report; here a quarter of the bits. Of
    probabilities with other digits see `bernoulli_bits`.
    """
    system = kind(2, 2, 1)
    vars(system)["kept"] = Fraction(1, 2)
    bit = response(2, system.kept)
    for kept in range(4):

        def draw(rng: np.random.Generator, kept: int = kept) -> int:
            reports = np.zeros(1, dtype=system.protocol.report_dtype)
            reports["bits"] = kept
            system.second_round(reports, bit_source(rng))
            return int(reports["bits"][0, 0])

        chances = {told: bit[told & 1][kept & 1] * bit[told >> 1][kept >> 1] for told in range(4)}
        equal(law(draw, bits=(0, 2, 2)), chances.get)


@pytest.mark.slow
def test_one_round_is_drawn_as_published() -> None:
    with of_ratio(Fraction(9)):
        system = DBitFlipPM(2, 1, 1)
        for value in (0, 1):
            measured = law(partial(sent, system, [value, value]), bits=(1, 2, 3))
            published = joint_law(system, [value, value])
            equal(measured, lambda told, published=published: published.get(told, Fraction(0)))


def test_of_two_values_one_is_not_asked_for() -> None:
    """Both of them have a permanent report, drawn apart."""
    rng = np.random.default_rng(2)
    system, users = DBitFlipPM(4, 1, 1), 40_000
    state = system.start(np.zeros(users, dtype=int), rng)
    found = Counter(
        row.tobytes()
        for row in np.stack([system.privatize(state, [v] * users, rng) for v in (0, 1, 2)], axis=1)
    )
    expected = joint_law(system, [0, 1, 2])
    order = sorted(expected)
    counts = np.array([found[row] for row in order])
    some = np.array([expected[row] > 0 for row in order])
    assert counts[~some].sum() == 0
    assert counts.sum() == users
    shares = np.array([float(expected[row]) for row in order])
    assert goodness(counts[some], shares[some]) > FALSE_ALARM
    assert set(state.held.tolist()) == {1, 2}


@systems
def test_two_days_of_many_users(name: str) -> None:
    """Unchanged values, then changed ones; and the law of other days is rejected."""
    system, rng, users = SMALL[name], np.random.default_rng(3), 40_000
    for values, other in (([0, 0], [0, 1]), ([0, 1], [0, 0])):
        state = system.start([values[0]] * users, rng)
        days = np.stack([system.privatize(state, [v] * users, rng) for v in values], axis=1)
        found = Counter(row.tobytes() for row in days)
        laws = [joint_law(system, told) for told in (values, other)]
        order = [row for row in sorted(laws[0]) if laws[0][row] or laws[1][row]]
        assert set(found) <= set(order)
        counts = np.array([found[row] for row in order])
        for told, honest in zip(laws, (True, False), strict=True):
            shares = np.array([float(told[row]) for row in order])
            possible = shares > 0
            lost = counts[~possible].sum()
            p = goodness(counts[possible], shares[possible]) if not lost else 0.0
            if honest:
                assert p > FALSE_ALARM
            elif name != "L-GRR, two items":  # of little privacy loss: they hardly differ
                assert p < FALSE_ALARM


# --------------------------------------------------------------------------------- what users keep


def test_a_user_of_lololoha_keeps_a_report_for_each_hash() -> None:
    system, rng = BiLOLOHA(50, 2, 1), np.random.default_rng(4)
    state = system.start(np.zeros(300, dtype=int), rng)
    for value in range(50):
        reports = system.privatize(state, np.full(300, value), rng)
        assert np.array_equal(reports["hash"], state.lasting["hash"])
    # The function that gives all items 0 is one of 64
    assert set(state.held.tolist()) == {1, 2}
    assert ((state.held == 1) == (state.lasting["hash"] == 0)).all()


def test_a_user_of_d_bit_flip_keeps_one_report_more_than_bits() -> None:
    system, rng = DBitFlipPM(12, 2, 3), np.random.default_rng(4)
    state = system.start(np.zeros(100, dtype=int), rng)
    told = [system.privatize(state, np.full(100, value), rng) for value in range(12)]
    assert (state.held == 4).all()
    assert all(np.array_equal(day["asked"], state.lasting["asked"]) for day in told)
    again = system.privatize(state, np.full(100, 5), rng)
    assert np.array_equal(again, told[5])


@systems
def test_users_may_miss_days(name: str) -> None:
    system, rng = SMALL[name], np.random.default_rng(6)
    state = system.start(np.zeros(30, dtype=int), rng)
    some = rng.permutation(30)[:20]
    reports = system.privatize(state, np.ones(20, dtype=int), rng, users=some)
    assert len(reports) == 20
    assert state.users == 30
    assert (np.delete(state.held, some) == 1).all()
    for users in ([1, 1], [[0, 1]], [0, 30], [0]):
        with pytest.raises(ValueError, match=r"users|values"):
            system.privatize(state, [0, 1], rng, users=users)
    with pytest.raises(InvalidValue, match=rf"values\[1\] = {system.domain}"):
        system.start([0, system.domain], rng)
    with pytest.raises(ValueError, match="of another system"):
        LGRR(4, 3, 1).privatize(state, [0] * 30, rng)
    with pytest.raises(ValueError, match="days"):
        system.audit(0)


@systems
def test_nobody_and_one_value(name: str) -> None:
    system = SMALL[name]
    assert len(system.privatize(system.start([]), [])) == 0
    kind: Any = type(system)
    alone = kind(1, 2, 1)
    assert alone.audit().ratio == alone.audit(5).ratio == 1
    assert len(alone.privatize(alone.start([0, 0]), [0, 0])) == 2


@two_rounds
def test_equal_epsilons_leave_the_second_round_out(name: str) -> None:
    kind: Any = type(TWO_ROUNDS[name])
    system = kind(5, 1, 1)
    assert system.kept == 1
    assert system.audit(1).ratio == system.audit().ratio
    state = system.start(np.arange(5))
    for _ in range(5):
        assert np.array_equal(system.privatize(state, np.arange(5)), state.reports[0])
    with pytest.raises(ValueError, match="total must be at least the epsilon of a day, 2, got 1"):
        kind(5, 1, 2)


@two_rounds
def test_memoised_is_as_accurate_as_a_system_of_its_protocol(name: str) -> None:
    """The two have one law of a day, and lose as much in all days together."""
    system: Any = TWO_ROUNDS[name]
    question = Memoised(system.protocol, system.total)
    assert question.protocol is system.protocol
    assert question.audit().allowed == system.audit().allowed


@pytest.mark.parametrize("domain", [16, 64, 1024])
@pytest.mark.parametrize(("total", "day"), [(1, "1/2"), (2, "1/2"), (2, 1), (3, "3/2"), (4, 2)])
def test_subset_selection_is_never_above_a_system(domain: int, total: Any, day: Any) -> None:
    """Of a rare item, and in the mean over all items, whatever the population is; of an item that
    most users have others err less.
    """
    question = Memoised(SubsetSelection(domain, day), total=total)
    ours = [question.protocol.variance(1, f) for f in (0, 1 / domain, 1)]
    named: list[Any] = [
        *(kind(domain, total, day) for kind in (RAPPOR, LOSUE, LGRR, BiLOLOHA, OLOLOHA)),
        *(DBitFlipPM(domain, day, bits) for bits in (1, domain // 2, domain)),
    ]
    for system in named:
        rare, mean, frequent = (system.protocol.variance(1, f) for f in (0, 1 / domain, 1))
        assert ours[0] < rare
        assert ours[1] < mean
        if isinstance(system, BiLOLOHA) and (total, day) == (4, 2):
            assert ours[2] > 2 * frequent
