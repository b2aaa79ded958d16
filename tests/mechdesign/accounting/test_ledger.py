"""A ledger of budgets: exact sums, groups in parallel, and nothing recorded that exceeds."""

import copy
import errno
import json
import math
import os
import pickle
import re
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency import GRR
from mechdesign import (
    AlreadySpent,
    BudgetExceeded,
    InexactNumber,
    InvalidFile,
    Ledger,
    LedgerChanged,
    Mechanism,
    MechanismError,
    Privacy,
    ShuffledDays,
    named,
    plan,
)
from mechdesign.accounting import DailyReports, PrivacyLoss, compose, shuffled
from mechdesign.accounting.account import Account, Budget, recorded
from mechdesign.accounting.dummy_counts import AmongDummies
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.accounting.inversion import Mean
from mechdesign.accounting.ledger import DAILY, NOT_COVERED, SHUFFLER
from mechdesign.exceptions import DiskFull, UnboundedRatio
from mechdesign.privacy import exact_epsilon
from tests.mechdesign.accounting.enumerated import counted
from tests.processes import heard, tell

ENTRY: dict[str, Any] = {
    "epsilon": "1/2",
    "what": "x",
    "users": None,
    "local": None,
    "shuffled": None,
    "rate": None,
    "profile": [],
}


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
    ledger, recorded = Ledger(3), list[Any]()
    for number, (epsilon, people) in enumerate(entries):
        # Z: in no group
        fits = all(spent_by([*recorded, (epsilon, people)], group) <= 3 for group in "abcz")
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
    ledger.spend("0.4", "north", users="north")
    ledger.spend("0.7", "south", users=["south"])
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
    assert exact_epsilon(0.5) == exact_epsilon("1/2") == Fraction(1, 2)


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
        with pytest.raises(ValueError, match=r"collection|users"):
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
        ledger.spend("0.2", "ages", users="north")
    assert ledger.spent == Fraction(1, 5)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_there_is_one_of_a_ledger(duplicate):
    with pytest.raises(TypeError, match="each copy would spend the whole budget"):
        duplicate(Ledger(1))


def test_the_table_says_what_is_not_covered():
    ledger = Ledger("1")
    ledger.spend(Fraction(1, 3), "ages", users=("north", "south"))
    ledger.spend(0.1, "incomes")
    text = str(ledger)
    assert text.splitlines()[1].split() == ["ages", "north,", "south", "-", "1/3"]
    assert "~0.1" in text, "no short number: marked as rounded"
    assert text.endswith(NOT_COVERED)
    for word in (
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
    ledger.spend(Fraction(1, 3), "ages", users="north")
    ledger.spend(0.1, "incomes")
    ledger.save(path)
    again = Ledger.load(path)
    assert (again.epsilon, again.entries) == (ledger.epsilon, ledger.entries)
    assert again.remaining == 1 - Fraction(1, 3) - Fraction(0.1)
    assert {item.name for item in tmp_path.iterdir()} == {"ledger.json", "ledger.json.lock"}


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
        {"version": 5},
        {"version": 1},
        {"delta": "1"},
        {"delta": "-1/2"},
        {"delta": 0},
        {"local": "-1"},
        {"local": "1/1000000"},
        {"version": 1.0},
        {"version": True},
        {"comment": "harmless"},
        {"epsilon": 1},
        {"epsilon": "0.5"},
        {"epsilon": "1/4"},
        {"epsilon": "-1"},
        {"epsilon": "-1", "entries": []},
        {"entries": None},
        {"entries": [{"epsilon": "1/2", "what": "x"}]},
        {"entries": [{**ENTRY, "note": ""}]},
        {"entries": [ENTRY] * 2},
        {"entries": [{**ENTRY, "users": [3]}]},
        {"entries": [{**ENTRY, "users": "north"}]},
        {"entries": [{**ENTRY, "users": ["north", "north"]}]},
        {"entries": ENTRY},
        {"entries": [{**ENTRY, "local": "0"}]},
        {"entries": [{**ENTRY, "local": "1/2"}]},
        {"entries": [{**ENTRY, "rate": "2"}]},
        {"entries": [{**ENTRY, "shuffled": "3"}]},
        {"entries": [{**ENTRY, "shuffled": 0}]},
        {"entries": [{**ENTRY, "profile": 3}]},
        {"entries": [{**ENTRY, "profile": [["1", "2"]]}]},
        {"entries": [{**ENTRY, "profile": [["1/2", "1/2"]]}]},
        {"entries": [{**ENTRY, "profile": [["9", "1/2"]]}]},
        {"entries": [{**ENTRY, "profile": [["1", "1/3"]] * 257}]},
    ],
)
def test_damaged_files_are_refused(tmp_path, change):
    path, ledger = tmp_path / "ledger.json", Ledger("1", local="1/4")
    ledger.spend("1/2", "ages", local="1/4")
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


# --------------------------------------------------------------- a file that several spend from


def test_a_ledger_is_made_once_and_then_continued(tmp_path):
    path = tmp_path / "ledger.json"
    with pytest.raises(FileNotFoundError, match=r"no ledger .*open\(path, epsilon=..\), makes one"):
        Ledger.open(path)
    with Ledger.open(path, epsilon="1") as ledger:
        assert Ledger.load(path).epsilon == 1
        ledger.spend("0.4", "ages")
        assert [entry.what for entry in Ledger.load(path).entries] == ["ages"]
    with pytest.raises(ValueError, match="closed; nothing was recorded"):
        ledger.spend("0.4", "more")
    again = Ledger.open(path, epsilon=1)
    again.spend("0.5", "incomes", users=["north", "south"])
    assert again.entries == Ledger.open(path).entries == Ledger.load(path).entries
    assert (ledger.remaining, again.remaining) == (Fraction(3, 5), Fraction(1, 10))
    with pytest.raises(LedgerChanged, match="is a ledger of 1, not of 2"):
        Ledger.open(path, epsilon=2)
    assert again.remaining == Fraction(1, 10)


def test_open_ledgers_of_one_file_see_what_the_others_spend(tmp_path):
    path, link = tmp_path / "ledger.json", tmp_path / "link.json"
    mine = Ledger.open(path, epsilon=1)
    link.symlink_to(path)
    theirs = Ledger.open(link)
    theirs.spend("0.7", "theirs")
    assert mine.remaining == mine.left("north") == Fraction(3, 10)
    assert [entry.what for entry in mine.entries] == ["theirs"]
    assert "theirs" in str(mine)
    with pytest.raises(BudgetExceeded):
        mine.require("0.7")
    with pytest.raises(BudgetExceeded):
        mine.spend("0.7", "mine")
    with pytest.raises(AlreadySpent):
        mine.spend("0.1", "theirs")
    assert plan("count", 4, ledger=mine).best.epsilon == Fraction(3, 10)
    theirs.spend("0.3", "rest")
    with pytest.raises(BudgetExceeded):
        plan("count", 4, ledger=mine)
    assert link.is_symlink()


def test_a_file_that_was_put_back_or_removed_is_not_spent_from(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = Ledger.open(path, epsilon=1)
    before = path.read_bytes()
    ledger.spend("0.9", "ages")
    path.write_bytes(before)
    with pytest.raises(LedgerChanged, match="lacks collections"):
        ledger.spend("0.9", "ages again")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        ledger.spend("0.9", "ages again")
    assert not path.exists()


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_spend_that_cannot_be_written_is_not_recorded(tmp_path, monkeypatch, name):
    path = tmp_path / "ledger.json"
    ledger = Ledger.open(path, epsilon=1)
    ledger.spend("0.1", "before")
    whole = path.read_bytes()

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        with pytest.raises(
            DiskFull, match=r"ledger\.json: there is no room on the disk; nothing was"
        ):
            ledger.spend("0.9", "failed")
    assert path.read_bytes() == whole
    assert ledger.remaining == Fraction(9, 10)
    ledger.spend("0.9", "failed")
    assert ledger.remaining == 0


def test_it_is_on_the_disk_when_spend_returns(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def noted(descriptor):
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        fsync(descriptor)

    ledger = Ledger.open(tmp_path / "ledger.json", epsilon=1)
    monkeypatch.setattr(os, "fsync", noted)
    ledger.spend("0.1", "ages")
    assert synced == [False, True]


RACES = """
import os, sys
from pathlib import Path
from mechdesign import BudgetExceeded, Ledger
os.fsync = lambda descriptor: None  # what is tested is the lock
folder, me, races = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for race in range(races):
    ledger = Ledger.open(folder / f"{race}.json", epsilon=1)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        ledger.spend(1, me)
        print("spent", flush=True)
    except BudgetExceeded:
        print("refused", flush=True)
"""


@pytest.mark.slow
def test_of_two_processes_that_spend_the_whole_budget_one_does(tmp_path):
    races = 400
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RACES, str(tmp_path), me, str(races)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in ("a", "b")
    ]
    winners = set()
    for race in range(races):
        assert [heard(run) for run in runs] == ["ready"] * 2
        for run in runs if race % 2 else runs[::-1]:
            tell(run, "go")
        said = [heard(run) for run in runs]
        assert sorted(said) == ["refused", "spent"]
        (entry,) = Ledger.load(tmp_path / f"{race}.json").entries
        assert entry.what == "ab"[said.index("spent")]
        winners.add(entry.what)
    assert winners == {"a", "b"}, "neither was always first"
    for run in runs:
        run.communicate()
        assert run.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "file"])
def test_of_four_threads_that_spend_the_whole_budget_one_does(where, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for race in range(300):
                path = tmp_path / f"{race}.json"
                ledger = Ledger(1) if where == "memory" else Ledger.open(path, epsilon=1)
                gate = Barrier(4)

                def spend(me, ledger=ledger, gate=gate):
                    gate.wait()
                    try:
                        ledger.spend(1, str(me))
                    except BudgetExceeded:
                        return 0
                    return 1

                assert sum(pool.map(spend, range(4))) == 1
                assert len(ledger.entries) == 1
    finally:
        sys.setswitchinterval(before)


KILLED = """
import sys
from mechdesign import Ledger
with Ledger.open(sys.argv[1], epsilon=1) as ledger:
    print("ready", flush=True)
    for k in range(int(sys.argv[2]), 10**6):
        ledger.spend("1/1000000", str(k))
        print(k, flush=True)
"""


@pytest.mark.slow
def test_a_kill_leaves_a_ledger_that_has_every_spend_that_returned(tmp_path):
    path, random, returned = tmp_path / "ledger.json", np.random.default_rng(1), []
    for _ in range(5):
        first = len(Ledger.load(path).entries) if path.exists() else 0
        run = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(first)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert heard(run) == "ready"
        time.sleep(random.uniform(0, 0.2))
        run.kill()
        returned += run.communicate()[0].split()
        names = [entry.what for entry in Ledger.open(path).entries]
        assert set(returned) <= set(names)
        assert len(names) <= first + len(returned) + 1
    assert len(returned) > 10


# ------------------------------------------------------------------ both currencies, and a delta


RESPONSE = Mechanism([["3/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3", neighbours="all"))


@pytest.mark.slow
def test_shuffled_reports_cost_what_the_collection_tells_and_print_what_a_report_does():
    ledger = Ledger("0.17", delta="1e-8")
    reports = shuffled(RESPONSE, 10_000)
    ledger.spend(reports, "browsers")
    alone = reports.epsilon("1e-8")
    assert alone <= ledger.spent <= Fraction(102, 100) * Fraction(alone)
    assert float(ledger.local) == reports.local_epsilon
    assert ledger.remaining == Fraction(17, 100) - ledger.spent
    first, *_ = str(ledger).splitlines()[1:]
    assert "~1.09861" in first
    assert "at least 10000 shuffled" in first
    assert SHUFFLER in str(ledger)
    for k in range(6):
        ledger.spend(reports, f"browsers again {k}")
    assert ledger.spent < 7 * Fraction(alone) * Fraction(3, 4)  # tighter than the sum
    composed = [compose([reports.profile] * k).epsilon("1e-8") for k in (7, 12)]
    assert composed[0] <= float(ledger.spent) * (1 + 1e-3) < 0.17 < composed[1]
    for k in range(6, 11):
        before = ledger.entries
        try:
            ledger.spend(reports, f"browsers again {k}")
        except BudgetExceeded:
            assert ledger.entries == before
            break
    assert len(ledger.entries) < 12


@pytest.mark.slow
def test_composed_epsilons_are_never_below_those_of_the_releases_themselves():
    table = named.geometric(4, alpha="2/3")
    ledger, releases = Ledger("9", delta="1e-6"), []
    for k in range(8):
        ledger.spend(table, f"counts {k}")
        ledger.spend("0.2", f"sums {k}")
        releases += [table, PrivacyLoss.pure("0.2")]
    assert ledger.spent >= compose(releases).epsilon_at_least("1e-6")
    pure = 8 * Fraction("0.2") + 8 * Fraction(math.log(1.5))
    assert ledger.spent < pure
    assert Ledger("1").delta == 0


@pytest.mark.slow
def test_disjoint_groups_compose_in_parallel_with_a_delta_too():
    ledger = Ledger("1.4", delta="1e-6")
    for group in ("north", "south", "west"):
        for k in range(30):
            ledger.spend("0.05", f"{group} {k}", users=group)
    composed = compose([PrivacyLoss.pure("0.05")] * 30)
    assert ledger.spent == Fraction(composed.quick_epsilon("1e-6")) < 1.4
    assert composed.epsilon("1e-6") <= ledger.spent <= composed.epsilon("1e-6") * 1.0002
    assert ledger.left("east") == Fraction("1.4")
    with pytest.raises(BudgetExceeded):
        ledger.spend("0.9", "everybody")


def test_the_budget_of_reports_is_kept_apart():
    ledger = Ledger("2", local="1")
    ledger.spend("0.6", "first", local="0.6")
    ledger.spend("0.6", "released")
    with pytest.raises(BudgetExceeded, match=r"the reports of second is more than the 0\.4"):
        ledger.spend("0.5", "second", local="0.5")
    ledger.spend("0.4", "third", local="0.4", users="north")
    assert (ledger.local, ledger.spent) == (1, Fraction(8, 5))
    with pytest.raises(BudgetExceeded):
        ledger.spend(shuffled(RESPONSE, 10_000), "shuffled")


def test_a_sample_with_a_rate_costs_less():
    table = named.geometric(8, alpha="1/2")
    whole, sample = Ledger("1", delta="1e-9"), Ledger("1", delta="1e-9")
    whole.spend(table, "all")
    sample.spend(table, "some", rate="1/10")
    assert sample.spent < Fraction(15, 100) * whole.spent
    assert sample.entries[0].rate == Fraction(1, 10)
    assert "a secret sample with rate 0.1" in str(sample)
    for cost in ("0.5", shuffled(RESPONSE, 100)):
        with pytest.raises(ValueError, match="a rate is that of a sample"):
            sample.spend(cost, "none", rate="1/10")


def test_both_currencies_outlive_the_process(tmp_path):
    path = tmp_path / "ledger.json"
    with Ledger.open(path, "1", "1e-8", "9") as ledger:
        ledger.spend(shuffled(RESPONSE, 5000), "browsers", users=["a", "b"])
        ledger.spend(named.geometric(3, alpha="1/2"), "counts", rate="1/4", users="c")
        ledger.spend("0.1", "asked", local="0.1")
        spent, entries = ledger.spent, ledger.entries
    again = Ledger.open(path)
    assert (again.entries, again.spent, again.delta) == (entries, spent, Fraction("1e-8"))
    assert Ledger.open(path, "1", "1e-8", "9").epsilon == 1
    for other in (("1", "1e-9", "9"), ("1", "1e-8", None), ("1", 0, "9")):
        with pytest.raises(LedgerChanged, match="is a ledger of 1 at delta"):
            Ledger.open(path, *other)
    assert len(path.read_bytes()) < 20_000


def test_a_file_of_the_first_version_is_read_and_continued(tmp_path):
    path = tmp_path / "ledger.json"
    entry = {"epsilon": "1/4", "what": "ages", "people": ["north"]}
    content = {"format": "mechdesign.ledger", "version": 1, "epsilon": "1", "entries": [entry]}
    path.write_text(json.dumps(content))
    with Ledger.open(path, "1") as ledger:
        assert ledger.left("north") == Fraction(3, 4)
        ledger.spend("3/4", "incomes")
    assert json.loads(path.read_text())["version"] == 4
    assert [entry.what for entry in Ledger.load(path).entries] == ["ages", "incomes"]


@pytest.mark.parametrize("delta", [-1, 1, 2.0, math.nan, "x"])
def test_a_delta_is_a_small_probability(delta):
    with pytest.raises(ValueError, match="delta"):
        Ledger("1", delta=delta)


def test_an_output_that_is_impossible_for_a_neighbour_has_no_epsilon():
    table = Mechanism([["1/2", "0"], ["1/2", "1"]], Privacy(alpha="1/2"))
    with pytest.raises(UnboundedRatio):
        Ledger("1", delta="1e-6").spend(table, "open")


def test_numbers_that_are_much_too_large():
    ledger = Ledger("1e300", delta="1e-6")
    ledger.spend("1e200", "everything")
    assert ledger.remaining == Fraction("1e300") - Fraction("1e200")
    ledger = Ledger("1", delta="1e-6")
    with pytest.raises(BudgetExceeded):
        ledger.spend("1e200", "everything")


@pytest.mark.slow
def test_a_hundred_shuffled_collections_are_read_at_once(tmp_path):
    """Whether they are within the budget is worked out when more is spent."""
    path, reports = tmp_path / "ledger.json", shuffled(RESPONSE, 10**6)
    ledger = Ledger("200", delta="1e-8")
    for k in range(100):
        ledger.spend(reports, str(k))
    ledger.save(path)
    assert ledger.spent < Fraction(1, 5)
    assert len(Ledger.load(path).entries) == 100


def test_costs_that_differ_and_have_the_same_loss_all_count():
    """As two reports of the same profile and other numbers may have."""
    points = (("1", "1/10"), ("11/10", "1/100"), ("2", "0"))
    profile = tuple((Fraction(ratio), Fraction(delta)) for ratio, delta in points)
    account = Account(Budget(Fraction(9), Fraction(1, 1000)))
    entries = [
        recorded(
            Fraction(epsilon), epsilon, None, local=None, rate=None, shuffled=None, profile=profile
        )
        for epsilon in ("0.7", "0.71", "0.72")
    ]
    for entry in entries:
        account.add(entry)
    loss = PrivacyLoss.from_profile(profile)
    expected = compose([loss] * 3).epsilon("1/1000")
    assert (
        9 - account.left(None) == Fraction(expected) > Fraction(compose([loss]).epsilon("1/1000"))
    )


def test_reports_among_dummies():
    reports = AmongDummies.keeping("0.3", "1e-8", Fraction(1), [(Fraction(1), Fraction(0))])
    ledger = Ledger("1", delta="1e-8")
    with pytest.raises(ValueError, match="local="):
        ledger.spend(reports, "browsers")
    ledger.spend(reports, "browsers", local="8")
    assert (ledger.local, ledger.spent) == (8, Fraction(compose([reports]).epsilon("1e-8")))
    assert ledger.spent < Fraction(31, 100)
    assert SHUFFLER in str(ledger)


def test_reports_of_many_days_are_one_collection(tmp_path):
    path = tmp_path / "ledger.json"
    with Ledger.open(path, "7/2", local="3") as ledger:
        ledger.spend(DailyReports("1/2", values=2, starts=3), "mood", users="north")
        with pytest.raises(BudgetExceeded):
            ledger.spend(DailyReports("1/1000000"), "sleep", users="north")  # of reports
        (entry,) = ledger.entries
        assert (entry.epsilon, entry.local, entry.permanent) == (3, 3, 6)
        assert ledger.left("north") == Fraction(1, 2)
        ledger.spend("1/2", "a release of a curator", users="north")
    (again, _) = Ledger.load(path).entries
    assert again == entry
    text = str(Ledger.load(path))
    assert "3, permanent reports of each user: at most 6" in text
    assert DAILY in text
    assert DAILY not in str(Ledger("1"))


@pytest.mark.parametrize("arguments", [(0,), (-1,), (1, 0), (1, 1, 0), (1, 1.0), (1, 10**6, 2)])
def test_numbers_of_permanent_reports(arguments):
    with pytest.raises(ValueError, match=r"total|values|starts|epsilon"):
        DailyReports(*arguments)


def test_daily_reports_say_what_they_tell():
    with pytest.raises(ValueError, match="say themselves"):
        Ledger("1").spend(DailyReports("1/2"), "mood", local="1/2")


@pytest.mark.parametrize("change", [{"permanent": 0}, {"permanent": "2"}, {"local": "1/4"}])
def test_a_file_with_other_permanent_reports_is_refused(tmp_path, change):
    path = tmp_path / "ledger.json"
    ledger = Ledger("1")
    ledger.spend(DailyReports("1/4", values=2), "mood")
    ledger.save(path)
    content = json.loads(path.read_text())
    content["entries"][0] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile):
        Ledger.load(path)


@pytest.mark.slow
def test_days_are_not_shuffled_unless_it_is_said():
    class Kept:
        keeps_reports = True
        pair_laws, attack_laws = GRR(4, 1).pair_laws, GRR(4, 1).attack_laws

    days, once = shuffled(Kept(), 10_000), shuffled(GRR(4, 1), 10_000)
    ledger = Ledger("1", delta="1e-8")
    with pytest.raises(ShuffledDays, match=r"^Monday: .*only_day=True.*nothing was recorded") as no:
        ledger.spend(days, "Monday")
    assert isinstance(no.value, MechanismError)
    assert ledger.entries == ()
    ledger.spend(days, "Monday", only_day=True)
    alone = Ledger("1", delta="1e-8")
    alone.spend(once, "Monday")
    assert ledger.entries == alone.entries
    for cost in (once, "1/2", DailyReports("1/2")):
        with pytest.raises(ValueError, match="only_day"):
            ledger.spend(cost, "Tuesday", only_day=True)


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 4, 9])
def test_groups_of_different_epsilons_take_few_bounds(each, monkeypatch):
    ledger = Ledger("10", delta="1e-6")
    costs: dict[int, list[PrivacyLoss]] = {}
    for group in range(100):
        for k in range(each):
            epsilon = Fraction(1, 15) + Fraction((group * 7919 + k * 104729) % 1000, 100_000)
            ledger.spend(epsilon, f"{group}, {k}", users=f"g{group}")
            costs.setdefault(group, []).append(PrivacyLoss.pure(epsilon))
    bounds: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(Mean, "upper", counted(bounds, Mean.upper))
        spent = ledger.spent
    assert len(bounds) <= (0 if each < 9 else 130)
    # The slow twin: each group by itself
    most = max(map(compose, costs.values()), key=lambda composed: composed.epsilon("1e-6"))
    assert float(spent) == pytest.approx(most.epsilon("1e-6"), rel=3e-4)
    assert float(spent) >= most.epsilon_at_least("1e-6")


def test_a_group_within_the_budget_costs_one_bound(monkeypatch):
    ledger = Ledger("1.5", delta="1e-6")
    for k in range(30):
        ledger.spend(Fraction(1, 20) + Fraction(k, 10_000), f"{k}")
    bounds: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(Mean, "upper", counted(bounds, Mean.upper))
        ledger.spend("0.05", "one more")
    assert len(bounds) == 1


@pytest.mark.slow
def test_many_groups_are_remembered(monkeypatch):
    ledger = Ledger("2", delta="1e-6")
    for group in range(600):
        for k in range(2):
            ledger.spend(GaussianLoss(Fraction(1, 100 + group)), f"{group}, {k}", users=f"g{group}")
    said = str(ledger)
    calls: list[object] = []
    monkeypatch.setattr(GaussianLoss, "above", counted(calls, GaussianLoss.above))
    assert str(ledger) == said
    assert len(calls) <= 600  # that each group has lost less than the first, and nothing else


ALIKE = ["Nord", " Nord", "Nord\n", "\u00a0Nord "], ["N\u00f6rd", "No\u0308rd", "No\u0308rd "]


@pytest.mark.parametrize("names", ALIKE)
def test_groups_that_look_alike_are_one(names):
    ledger = Ledger(1)
    for place, name in enumerate(names[:2]):
        ledger.spend("0.5", f"{place}", users=name)
    for name in names:
        assert ledger.left(name) == 0
        with pytest.raises(BudgetExceeded):
            ledger.spend("0.1", "more", users=[name, "other"])
    assert ledger.entries[1].users == ledger.entries[0].users


@pytest.mark.parametrize("names", ALIKE)
def test_a_collection_is_spent_once_under_names_that_look_alike(names):
    ledger = Ledger(10)
    ledger.spend("0.5", names[0])
    for name in names:
        with pytest.raises(AlreadySpent):
            ledger.spend("0.5", name)


@pytest.mark.parametrize(
    "name", ["north\u200b", "nor\u00adth", "north\x00", "nor\u202eth", "\u2800"]
)
def test_what_is_invisible_is_in_no_name(name):
    ledger = Ledger(1)
    with pytest.raises(ValueError, match="characters that can be seen, and no others"):
        ledger.spend("0.5", "ages", users=name)
    with pytest.raises(ValueError, match="characters that can be seen, and no others"):
        ledger.spend("0.5", name)
    assert ledger.entries == ()


def test_files_that_tell_such_names_apart_count_them_as_one(tmp_path):
    """As earlier versions wrote them: the groups share what they have spent."""
    path = tmp_path / "ledger.json"
    with Ledger.open(path, 1) as ledger:
        for name in ("north", "south"):
            ledger.spend("0.6", name, users=name)
    path.write_text(path.read_text().replace('"south"', '"north\\u200b "'))
    with Ledger.open(path) as ledger:
        assert ledger.left("north") == Fraction(-1, 5)
        assert ledger.left("west") == 1
        with pytest.raises(BudgetExceeded):
            ledger.spend("0.1", "more", users="north")
        ledger.spend("0.1", "ages", users="west")
    assert len(Ledger.load(path).entries) == 3
    for budget in ("0", "1/2"):  # less than what the file says of one name alone
        written = re.sub('"epsilon": "[^"]*"', f'"epsilon": "{budget}"', path.read_text(), count=1)
        path.write_text(written)
        with pytest.raises(InvalidFile, match="more is spent than the budget"):
            Ledger.load(path)


def test_who_spends_floats_is_told_of_decimals():
    ledger = Ledger(1.0)
    for k in range(9):
        ledger.spend(0.1, f"{k}")
    with pytest.raises(
        BudgetExceeded, match=r"the float 0\.1 is not the decimal 0\.1: write .0\.1."
    ):
        ledger.spend(0.1, "9")
    with pytest.raises(BudgetExceeded, match=r"nothing was recorded$"):
        ledger.spend(0.5, "9")
    ledger = Ledger(1.0)
    for k in range(10):
        ledger.spend("0.1", f"{k}")
    assert ledger.remaining == 0
