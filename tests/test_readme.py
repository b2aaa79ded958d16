"""The README is short, and what it says runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mechdesign import Privacy, design, explain
from mechdesign.cli import main
from mechdesign.properties import ColumnMonotone, WeakHonesty
from tests.flights_table import commands_in, write_flights

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_it_is_short() -> None:
    assert len(README.encode()) <= 5000


def test_its_first_commands_set_all_up_and_the_next_make_the_files_of_the_others() -> None:
    """Both run in CI; the wheel's test installs, and the demo runs the script."""
    first, commands = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    assert [line.split("#")[0].strip() for line in commands.splitlines()[:4]] == [
        ". .venv/bin/activate",
        "bash examples/flights.sh demo/flights",
        "cd demo && cp flights/flights.* .",
        "",
    ]


def test_how_often_a_published_count_is_exact_is_said() -> None:
    (said,) = re.findall(r"release\(.*# .*: one in (\w+) is exact$", README, re.MULTILINE)
    best = design(
        8, Privacy.from_epsilon(0.5), properties=[WeakHonesty(), ColumnMonotone()]
    ).mechanism
    exact = float(explain(best).within(0))
    assert round(1 / exact) == {"three": 3}[said]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, r"^ConfidenceInterval\(.*\)\n +carrier +frequency .*\n(\d+ .*\n){16}$"),
        (1, r"proved optimal, gap exactly 0\nTrue\n\[\d \d \d\]\n$"),
    ],
)
def test_every_example_runs(number: int, shown: str, tmp_path: Path) -> None:
    assert len(EXAMPLES) == 2
    write_flights(tmp_path, 20_000)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(shown, done.stdout), done.stdout


@pytest.mark.slow
def test_its_commands_run_and_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_flights(tmp_path, 336_776)
    commands = commands_in(README)
    assert len(commands) == 8
    for command in commands:
        assert main(command) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    shown = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[0].splitlines()
    for line in shown:  # the numbers are others each time
        question = re.sub(r" {2}.*", "", line)
        assert re.search(rf"^{re.escape(question)} .* {line.split()[-1]}$", printed, re.MULTILINE)
    assert (tmp_path / "delay.png").read_bytes().startswith(b"\x89PNG")


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []
