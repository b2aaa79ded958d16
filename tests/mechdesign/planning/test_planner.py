"""What a plan takes and refuses, on a task of the tests' own."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest

from mechdesign import BudgetExceeded, InvalidRequest, Ledger, UnknownTask, Unreachable, plan
from mechdesign.planning.planner import task_names
from mechdesign.planning.trust import LARGEST_N


@pytest.mark.usefixtures("toy")
def test_an_epsilon_is_the_least_of_four_digits_and_what_has_a_floor_is_unreachable():
    found = plan("toy", 5, n=10_000, error=0.009)
    assert {item.name: item.epsilon for item in found.candidates} == {
        "large epsilon only": 2,
        "noise": Fraction(2223, 1000),
    }
    assert found.best.name == "large epsilon only"
    assert (found.unreachable, found.unknown) == (("floor",), ("mystery",))
    assert "with an epsilon of at most 16: floor\nnothing is predicted of: mystery" in str(found)


@pytest.mark.usefixtures("toy")
def test_a_number_of_users_is_exact():
    found = plan("toy", 5, epsilon="1/2", error=0.02)
    assert {item.name: item.n for item in found.candidates} == {"noise": 40_000, "floor": 13_334}
    assert found.best.name == "floor"
    assert (found.unreachable, found.unknown) == (("large epsilon only",), ("mystery",))


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("n", "epsilon", "within"),
    [(100, None, "an epsilon of at most 16"), (None, 1e-9, "at most 1000000000000")],
)
def test_unreachable_says_the_least_there_is(n, epsilon, within):
    with pytest.raises(Unreachable, match=within) as caught:
        plan("toy", 5, n=n, epsilon=epsilon, error=1e-6)
    assert caught.value.least > caught.value.error == 1e-6


@pytest.mark.usefixtures("toy")
def test_where_no_candidate_can_serve_the_reason_is_passed_on():
    with pytest.raises(ValueError, match="noise cannot serve"):
        plan("toy", 5, n=100, epsilon=1, broken=True)
    with pytest.raises(Unreachable, match="no candidate has a predicted error there"):
        plan("toy", 5, n=100, error=1, broken=True)


@pytest.mark.usefixtures("toy")
def test_a_ledger_gives_what_remains_and_nothing_more_and_planning_spends_nothing():
    ledger = Ledger("1")
    ledger.spend("1/3", "before")
    assert plan("toy", 5, n=100, ledger=ledger).best.epsilon == Fraction(2, 3)
    assert plan("toy", 5, error=0.1, ledger=ledger).best.epsilon == Fraction(2, 3)
    assert plan("toy", 5, n=100, epsilon="2/3", ledger=ledger).best.epsilon == Fraction(2, 3)
    with pytest.raises(BudgetExceeded):
        plan("toy", 5, n=100, epsilon=0.7, ledger=ledger)
    assert plan("toy", 5, n=100, error=0.5, ledger=ledger).best.epsilon < Fraction(2, 3)
    with pytest.raises(Unreachable, match=r"an epsilon of at most 0\.666667"):
        plan("toy", 5, n=100, error=0.01, ledger=ledger)
    assert [entry.what for entry in ledger.entries] == ["before"]
    found = plan("toy", 5, n=100, ledger=ledger)
    ledger.spend(found.best.epsilon, "toys")
    assert ledger.remaining == 0
    for given_ in ({"n": 100}, {"error": 1}, {"n": 100, "error": 1}):
        with pytest.raises(BudgetExceeded, match="smallest plan is more than the 0 that remains"):
            plan("toy", 5, ledger=ledger, **given_)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    "given_",
    [
        {},
        {"n": 5},
        {"epsilon": 1},
        {"error": 1},
        {"n": 5, "epsilon": 1, "error": 1},
        *({"epsilon": 1, "n": n} for n in (0, -1, 1.0, True, "5", LARGEST_N + 1, math.nan)),
        *(
            {"n": 5, "epsilon": epsilon}
            for epsilon in (0, 0.0, -1, math.nan, math.inf, "much", True, [1], "0")
        ),
        *({"n": 5, "error": error} for error in (0, -0.1, math.nan, math.inf, "x", True, 10**400)),
        {"n": 5, "epsilon": 1, "colour": "red"},
        {"n": 5, "epsilon": 1, "domain_": 4},
    ],
)
def test_a_request_is_two_numbers_in_range_and_known_details(given_):
    with pytest.raises(InvalidRequest):
        plan("toy", 5, **given_)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("name", ["toys", "", None, 3, "toy toy"])
def test_a_wrong_name_lists_the_tasks_there_are(name):
    with pytest.raises(UnknownTask, match=r"^unknown task .*; there are toy(; did you .*)?$"):
        plan(name, 5, n=1, epsilon=1)


def test_the_package_has_its_tasks_and_names_are_forgiving():
    assert set(task_names()) >= {
        "conjunctions", "count", "frequencies", "heavy-hitters", "marginals", "prefixes",
        "quantiles", "ranges",
    }  # fmt: skip
    for name in ("heavy hitters", "Heavy-Hitters", "heavy_hitters"):
        assert plan(name, 12, n=10_000, epsilon=2).task.domain == 12


@pytest.mark.slow
def test_importing_the_package_imports_neither_tasks_nor_figures():
    code = (
        "import sys, mechdesign; mechdesign.plan; print([m for m in ('frequency', 'rangeq',"
        " 'matplotlib') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
