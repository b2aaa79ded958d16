"""A file and its entry in a ledger: both or neither, wherever a process is killed."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import pytest

from mechdesign.accounting import Ledger, pending
from mechdesign.accounting.account import AlreadySpent, BudgetExceeded
from mechdesign.exceptions import InvalidFile
from tests.killing import killed

_PUBLISH = """
    with Ledger.open(folder / "budget.json") as ledger:
        with ledger.publishing("0.4", "a.txt", folder / "a.txt") as aside:
            with replacing(aside) as stream:
                stream.write(b"whole")
"""


def test_whenever_it_is_killed_both_are_there_or_neither(tmp_path):
    states: Counter[tuple[bool, bool]] = Counter()
    for folder in killed(tmp_path, _PUBLISH):
        there = (folder / "a.txt").exists()  # before anything is finished
        ledger = Ledger.open(folder / "budget.json")
        spent = ledger.spent
        states[there, spent > 0] += 1
        assert (folder / "a.txt").exists() == (spent > 0)
        assert spent in (0, Fraction(2, 5))
        names = {path.name for path in folder.iterdir()} - {"budget.json.lock"}
        if spent:
            assert (folder / "a.txt").read_bytes() == b"whole"
            with pytest.raises(AlreadySpent), ledger.publishing(1, "a.txt", folder / "a.txt"):
                pass
            assert names == {"budget.json", "a.txt"}
        else:
            with ledger.publishing("0.4", "a.txt", folder / "a.txt") as aside:
                aside.write_bytes(b"again")
            assert (folder / "a.txt").read_bytes() == b"again"
        left = {path.name for path in folder.iterdir()} - {"budget.json.lock"}
        # What was begun before there was a journal is empty, and may stay
        assert left - {"budget.json", "a.txt"} <= {
            path.name for path in folder.glob(".a.txt.*.unspent") if not list(path.iterdir())
        } | {path.name for path in folder.glob(".budget.json.pending.*.part")}
    # It was killed before, between and after: else this shows nothing
    assert states[False, False] > 2
    assert states[False, True] > 0
    assert states[True, True] > 1
    assert not states[True, False]


def test_spending_and_then_writing_is_found_out(tmp_path):
    """What was done before: killed between the two, a budget is spent for nothing."""
    naive = """
    Ledger.open(folder / "budget.json").spend("0.4", "a.txt")
    with replacing(folder / "a.txt") as stream:
        stream.write(b"whole")
"""
    found = [
        (folder / "a.txt").exists() == (Ledger.open(folder / "budget.json").spent > 0)
        for folder in killed(tmp_path, naive)
    ]
    assert not all(found)


def test_what_raises_records_nothing_and_leaves_nothing(tmp_path):
    ledger = Ledger.open(tmp_path / "budget.json", epsilon="0.5")
    target = tmp_path / "a.txt"
    target.write_text("before")
    target.chmod(0o640)

    def half() -> None:
        with ledger.publishing("0.4", "a", target) as aside:
            aside.write_text("half")
            assert aside.parent.stat().st_mode & 0o077 == 0
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert (ledger.spent, target.read_text()) == (0, "before")
    with pytest.raises(BudgetExceeded), ledger.publishing("0.6", "a", target):
        raise AssertionError
    with ledger.publishing("0.4", "a", target) as aside:
        aside.write_text("after")
    assert (ledger.spent, target.read_text()) == (Fraction(2, 5), "after")
    assert target.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {
        "a.txt",
        "budget.json",
        "budget.json.lock",
    }
    with ledger:
        pass
    with pytest.raises(ValueError, match="closed"), ledger.publishing("0.1", "b", target):
        raise AssertionError


def test_a_ledger_in_memory_publishes_too(tmp_path):
    ledger, target = Ledger("0.5"), tmp_path / "a.txt"

    def half() -> None:
        with ledger.publishing("0.4", "a", target) as aside:
            aside.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert (ledger.spent, [*tmp_path.iterdir()]) == (0, [])
    with pytest.raises(BudgetExceeded), ledger.publishing("0.6", "a", target):
        raise AssertionError
    with ledger.publishing("0.4", "a", target) as aside:
        aside.write_text("whole")
    assert (ledger.spent, target.read_text()) == (Fraction(2, 5), "whole")
    assert [*tmp_path.iterdir()] == [target]


def test_a_damaged_journal_moves_nothing(tmp_path):
    Ledger.open(tmp_path / "budget.json", epsilon=1)
    (tmp_path / "budget.json.pending").write_text(json.dumps({"format": "mechdesign.pending"}))
    with pytest.raises(InvalidFile):
        Ledger.open(tmp_path / "budget.json")


@pytest.mark.parametrize("aside", ["kept", "deep/.a.txt.xyz.unspent", ".b.txt.xyz.unspent", "."])
def test_a_journal_that_names_another_folder_removes_nothing(tmp_path, aside):
    path = tmp_path / "budget.json"
    Ledger.open(path, epsilon=1)
    (tmp_path / aside).mkdir(parents=True, exist_ok=True)
    (tmp_path / aside / "a.txt").write_text("mine")
    pending._FORM.save(
        tmp_path / "budget.json.pending", {"what": "x", "aside": aside, "target": "a.txt"}
    )
    with pytest.raises(InvalidFile, match="no folder for what is published"):
        Ledger.open(path)
    assert (tmp_path / aside / "a.txt").read_text() == "mine"
