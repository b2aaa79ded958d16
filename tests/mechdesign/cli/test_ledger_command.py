"""The command that makes, shows and spends from a ledger."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import Ledger, named, tables
from mechdesign.cli import main


def test_a_ledger_is_made_spent_from_and_shown(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "budget.json", "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(str(Ledger.open("budget.json")))
    assert "factor of at most 1, the whole budget by 2.719" in shown
    spend = ["ledger", "budget.json", "--spend"]
    assert main([*spend, "0.3", "--what", "ages", "--reports"]) == 0
    north = [*spend, "1/2", "--what", "ill", "--users", "north", "--users", "east"]
    assert main(north) == 0
    ledger = Ledger.open("budget.json")
    ages, ill = ledger.entries
    assert (ages.what, ages.epsilon, ages.local) == ("ages", Fraction(3, 10), Fraction(3, 10))
    assert (ill.epsilon, ill.local, ill.users) == (Fraction(1, 2), None, ("north", "east"))
    capsys.readouterr()
    assert main(["ledger", "budget.json"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(str(ledger))
    assert "factor of at most 2.226, the whole budget by 2.719" in shown
    before = (here / "budget.json").read_bytes()
    assert main([*spend, "0.3", "--what", "more"]) == 1
    assert main([*spend, "0.1", "--what", "ages"]) == 2
    assert (here / "budget.json").read_bytes() == before


def test_it_is_made_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ["ledger", "budget.json", "--epsilon", "2", "--delta", "1e-9", "--local", "4"]
    for _ in range(2):  # asking again for the same is no change
        assert main(made) == 0
    ledger = Ledger.open("budget.json")
    assert (ledger.epsilon, ledger.delta) == (2, Fraction(1, 10**9))
    assert "in odds" not in capsys.readouterr().out  # which a delta does not bound
    before = (here / "budget.json").read_bytes()
    assert main(["ledger", "budget.json", "--epsilon", "3"]) == 2
    assert (here / "budget.json").read_bytes() == before


def test_files_say_what_they_cost(here: Path) -> None:
    named.geometric(3, alpha="1/2").save("m.json")
    release = tables.release([1, 2], [3, 4], "1/4", overlap=2, cache=False)
    release.save("table.json")
    assert (
        main(["ledger", "budget.json", "--epsilon", "2", "--spend", "m.json", "--what", "a"]) == 0
    )
    assert main(["ledger", "budget.json", "--spend", "table.json", "--what", "b"]) == 0
    first, second = Ledger.open("budget.json").entries
    assert 0.6931 < float(first.epsilon or 0) < 0.6932
    assert second.epsilon == Fraction(release.statement.epsilon)
    (here / "table.json").write_text(
        (here / "table.json").read_text().replace("sha256:", "sha256:0")
    )
    assert main(["ledger", "budget.json", "--spend", "table.json", "--what", "c"]) == 1
    assert len(Ledger.open("budget.json").entries) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no ledger budget.json: mechdesign ledger FILE --epsilon"),
        (["--epsilon", "1", "--spend", "1"], "--spend and --what go together"),
        (["--epsilon", "1", "--what", "ages"], "--spend and --what go together"),
        (["--epsilon", "1", "--users", "north"], "belong to --spend"),
        (["--epsilon", "1", "--reports"], "belong to --spend"),
        (["--local", "1"], "belong to --epsilon"),
        (["--epsilon", "-1"], "must not be negative"),
        (["--epsilon", "1", "--spend", "x.json", "--what", "ages"], "x.json"),
        (["--epsilon", "1", "--spend", "0", "--what", "ages"], "above 0"),
    ],
)
def test_what_is_no_request_makes_no_ledger(
    arguments: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "budget.json", *arguments]) == 2
    shown = capsys.readouterr()
    assert (shown.out, message in shown.err) == ("", True), shown.err
    assert not (here / "budget.json").exists()
