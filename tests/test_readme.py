"""The README is short, and what it says runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_it_is_short() -> None:
    assert len(README.encode()) <= 5000


def test_its_commands_install_and_test() -> None:
    """`make test` is what runs this very test, and the wheel's test installs."""
    (commands,) = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.split("#")[0].strip() for line in commands.splitlines()]
    assert lines == ["pip install .", "make test"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, r"proved optimal, gap exactly 0\nTrue\n\[\d \d \d\]\n$"),
        (1, r"item +frequency +deviation +95% interval\n(.*\n){4}$"),
        (2, r"^0\.\d+ ConfidenceInterval\(.*\)\n\d\d \(\d\d, \d\d\)\n$"),
    ],
)
def test_every_example_runs(number: int, shown: str, tmp_path: Path) -> None:
    assert len(EXAMPLES) == 3
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(shown, done.stdout), done.stdout


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []
