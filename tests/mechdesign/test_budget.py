"""A ledger of budgets: exact sums, groups in parallel, and nothing recorded that exceeds."""

import copy
import json
import pickle
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import (
    AlreadySpent,
    BudgetExceeded,
    InexactNumber,
    InvalidFile,
    Ledger,
    LedgerChanged,
)
from mechdesign.budget import NOT_COVERED
from mechdesign.privacy import face_value


def spent_by(entries, group):
    """By somebody of this group, the slow way."""
    return sum(epsilon for epsilon, people in entries if people is None or group in people)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.fractions(Fraction(1, 60), 2, max_denominator=60),
            st.none() | st.sets(st.sampled_from("abc"), min_size=1).map(tuple),
        ),
        max_size=12,
    )
)
def test_nobody_ever_spends_more_and_the_sums_are_exact(entries):
    ledger, recorded = Ledger(3), []
    for number, (epsilon, people) in enumerate(entries):
        fits = all(
            spent_by([*recorded, (epsilon, people)], group) <= 3 for group in "abcz"
        )  # z: in no group
        if fits:
            ledger.spend(epsilon, str(number), people)
            recorded.append((epsilon, people))
        else:
            with pytest.raises(BudgetExceeded) as caught:
                ledger.spend(epsilon, str(number), people)
            assert caught.value.asked == epsilon > caught.value.remaining == ledger.left(people)
        assert ledger.spent == max(spent_by(recorded, group) for group in "abcz")
        assert ledger.remaining == 3 - ledger.spent
        for group in "abcz":
            assert ledger.left(group) == 3 - spent_by(recorded, group)
    assert len(ledger.entries) == len(recorded)


def test_disjoint_groups_compose_in_parallel_and_everybody_counts_for_all():
    ledger = Ledger("1")
    ledger.spend("0.4", "north", people="north")
    ledger.spend("0.7", "south", people=["south"])
    assert ledger.spent == Fraction(7, 10)
    ledger.spend("0.3", "all")
    assert (
        ledger.spent,
        ledger.left("north"),
        ledger.left(["north", "south"]),
        ledger.left("west"),
    ) == (
        1,
        Fraction(3, 10),
        0,
        Fraction(7, 10),
    )
    with pytest.raises(BudgetExceeded, match="more than the 0 that remains"):
        ledger.spend("1e-30", "a little more")


def test_floats_are_the_binary_numbers_that_they_are():
    ledger = Ledger("0.3")
    ledger.spend(0.1, "first")
    ledger.spend(0.1, "second")
    with pytest.raises(BudgetExceeded):  # 0.1 is above 1/10
        ledger.spend(0.1, "third")
    ledger.spend(ledger.remaining, "the rest")
    assert ledger.remaining == 0
    assert face_value(0.5) == face_value("1/2") == Fraction(1, 2)


@pytest.mark.parametrize("epsilon", [-1, "-0.1", float("nan"), float("inf"), -0.5, "x"])
def test_an_epsilon_is_finite_and_not_negative(epsilon):
    with pytest.raises(ValueError, match=r"epsilon|value"):
        Ledger(epsilon)
    with pytest.raises(ValueError, match=r"epsilon|value"):
        Ledger(1).spend(epsilon, "it")


def test_what_is_no_collection_is_refused_and_not_recorded():
    ledger = Ledger(1)
    for epsilon, what, people in [
        (0, "free", None),
        (1, " ", None),
        (1, 3, None),
        (1, "x", ()),
        (1, "x", ["a", ""]),
        (1, "x", 5),
    ]:
        with pytest.raises(ValueError, match=r"collection|people"):
            ledger.spend(epsilon, what, people)
    for wrong in (None, True, [1]):
        with pytest.raises(InexactNumber):
            ledger.spend(wrong, "it")
    assert ledger.entries == ()


def test_a_cell_of_a_notebook_that_runs_twice_does_not_count_twice():
    ledger = Ledger(1)
    ledger.spend("0.2", "ages")
    with pytest.raises(AlreadySpent, match="'ages' is spent already"):
        ledger.spend("0.2", "ages")
    with pytest.raises(AlreadySpent):
        ledger.spend("0.2", "ages", people="north")
    assert ledger.spent == Fraction(1, 5)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_there_is_one_of_a_ledger(duplicate):
    with pytest.raises(TypeError, match="each copy would spend the whole budget"):
        duplicate(Ledger(1))


def test_the_table_says_what_is_not_covered():
    ledger = Ledger("1")
    ledger.spend(Fraction(1, 3), "ages", people=("north", "south"))
    ledger.spend(0.1, "incomes")
    text = str(ledger)
    assert text.splitlines()[1].split() == ["ages", "north,", "south", "1/3"]
    assert "~0.1" in text, "no short number: marked as rounded"
    assert text.endswith(NOT_COVERED)
    for word in (
        "Renyi",
        "subsampling",
        "disjoint",
        "over time",
        "depend on each other",
        "else is published",
        "central",
    ):
        assert word in NOT_COVERED


def test_a_file_outlives_the_process_and_its_numbers_are_exact(tmp_path):
    path, ledger = tmp_path / "ledger.json", Ledger("1")
    ledger.save(path)
    ledger.spend(Fraction(1, 3), "ages", people="north")
    ledger.spend(0.1, "incomes")
    ledger.save(path)
    again = Ledger.load(path)
    assert (again.epsilon, again.entries) == (ledger.epsilon, ledger.entries)
    assert again.remaining == 1 - Fraction(1, 3) - Fraction(0.1)
    assert [item.name for item in tmp_path.iterdir()] == ["ledger.json"]


def test_what_another_has_spent_is_not_overwritten(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger(1).save(path)
    mine, theirs = Ledger.load(path), Ledger.load(path)
    theirs.spend("0.9", "theirs")
    theirs.save(path)
    mine.spend("0.9", "mine")
    with pytest.raises(LedgerChanged):
        mine.save(path)
    with pytest.raises(LedgerChanged):
        Ledger(2).save(path)
    assert [entry.what for entry in Ledger.load(path).entries] == ["theirs"]


@pytest.mark.parametrize(
    "change",
    [
        {"format": "mechdesign.mechanism"},
        {"version": 2},
        {"version": 1.0},
        {"version": True},
        {"comment": "harmless"},
        {"epsilon": 1},
        {"epsilon": "0.5"},
        {"epsilon": "1/4"},
        {"epsilon": "-1"},
        {"entries": None},
        {"entries": [{"epsilon": "1/2", "what": "x"}]},
        {"entries": [{"epsilon": "1/2", "what": "x", "people": None, "note": ""}]},
        {"entries": [{"epsilon": "1/2", "what": "x", "people": None}] * 2},
        {"entries": [{"epsilon": "1/2", "what": "x", "people": [3]}]},
    ],
)
def test_damaged_files_are_refused(tmp_path, change):
    path, ledger = tmp_path / "ledger.json", Ledger("1")
    ledger.spend("1/2", "ages")
    ledger.save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(InvalidFile):
        Ledger.load(path)


def test_a_ledger_with_two_budgets_is_refused(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger("1").save(path)
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "1", "epsilon": "9"'))
    with pytest.raises(InvalidFile, match="'epsilon' occurs twice"):
        Ledger.load(path)


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "ledger.json"
    for text in ("", "[]", "{}", "3", '{"format": "mechdesign.ledger"', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(InvalidFile):
            Ledger.load(path)
        with pytest.raises(InvalidFile):
            Ledger(1).save(path)
        assert path.read_text() == text
    with pytest.raises(FileNotFoundError):
        Ledger.load(tmp_path / "none.json")


def test_every_order_of_spending_is_the_same():
    spends = [("0.2", "a", None), ("0.3", "b", "north"), ("0.5", "c", "south")]
    seen = set()
    for order in product(spends, repeat=3):
        if len(set(order)) == 3:
            ledger = Ledger(1)
            for epsilon, what, people in order:
                ledger.spend(epsilon, what, people)
            seen.add((ledger.spent, ledger.left("north")))
    assert seen == {(Fraction(7, 10), Fraction(1, 2))}
