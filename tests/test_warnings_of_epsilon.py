"""An epsilon above 10 is warned of by every command that takes one, or what has one."""

import shlex
from pathlib import Path

import pytest

from mechdesign.cli import main
from mechdesign.cli.program import parser

SCHEMA = """format = "mechdesign.schema"
version = 1

[[attributes]]
name = "smokes"
kind = "boolean"
"""
COMMANDS = {
    "design": "design --n 2 {epsilon}",
    "design-perturbation": "design-perturbation --largest 2 --noise 1 {epsilon} --protected 1",
    "compare": "compare --n 2 {epsilon}",
    "release-table": "release-table t.csv --count n --size size {epsilon} --out o.csv",
    "release-contingency": "release-contingency t.csv --count n --size size {epsilon} --out c.json",
    "release-regions": "release-regions t.csv --region place --count n --size size {epsilon}"
    " --out r.json",
    "compare-suppression": "compare-suppression t.csv --count n --size size --threshold 2"
    " {epsilon}",
    "ledger": "ledger l.json --epsilon {number}",
    "plan": "plan count --n 4 --epsilon {number}",
    "protocol": "protocol frequencies --schema s.toml --attribute smokes --epsilon {number}"
    " --n 100 --out p.json",
    "release-day": "release-day v.stream --days 3 --epsilon {number} --delta 1e-6 --count 2 --out"
    " o.csv",
    "curate": "curate u.csv --schema s.toml --attribute smokes --epsilon {number} --out a.release",
}
WITH_FILES = {
    "release": (
        "design --n 9 {epsilon} --out m.json",
        "release m.json --input t.csv --column n --out x.csv",
    ),
    "privatize": (COMMANDS["protocol"], "privatize u.csv --protocol p.json --out u.parquet"),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("s.toml").write_text(SCHEMA)
    Path("t.csv").write_text("place,n,size\na,1,4\nb,2,5\n")
    Path("u.csv").write_text("smokes\nyes\nno\n")


def run(command: str, number: float) -> int:
    return main(shlex.split(command.format(epsilon=f"--epsilon {number}", number=number)))


@pytest.mark.parametrize("number", [10, 11])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_warn_of_an_epsilon_above_10(
    name: str, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run(COMMANDS[name], number)
    error = capsys.readouterr().err
    assert ("warning: epsilon 11 is above 10" in error) == (number == 11), error


@pytest.mark.parametrize("number", [9.5, 11])
@pytest.mark.parametrize("name", WITH_FILES)
def test_what_a_file_keeps_is_warned_of(
    name: str, number: float, capsys: pytest.CaptureFixture[str]
) -> None:
    make, use = WITH_FILES[name]
    assert run(make, number) == 0
    capsys.readouterr()
    assert run(use, number) == 0
    assert ("is above 10" in capsys.readouterr().err) == (number == 11)


def test_no_command_with_an_epsilon_is_left_out() -> None:
    (commands,) = parser([])._subparsers._group_actions  # type: ignore[union-attr]
    assert commands.choices is not None
    taking = {
        name
        for name, one in dict(commands.choices).items()
        if any("--epsilon" in action.option_strings for action in one._actions)
    }
    assert taking == {*COMMANDS}
