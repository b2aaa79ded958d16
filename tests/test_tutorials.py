"""The tutorials do what they say: their blocks run in order, in a fresh folder."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.node import NODE

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "tutorials"
# The commands of the virtual environment that runs the tests come first, and its Node.
FIRST = [str(Path(sys.executable).parent), str(NODE.parent), os.environ["PATH"]]
ENVIRONMENT = {**os.environ, "PATH": os.pathsep.join(FIRST), "OPENBLAS_NUM_THREADS": "1"}
COMMANDS = {
    "python": [sys.executable, "-W", "error", "-c"],
    "sh": ["bash", "-euc"],
}
SAME: dict[str, Callable[[str], str]] = {
    "text": str.rstrip,
    "none": lambda line: " ".join(re.sub(r"-?\d[\d.]*", "#", line).split()),
}


def output(text: str, folder: Path) -> str:
    """What the blocks of a page print, one after the other.

    A block whose first line is a comment with the name of a file is that file.
    """
    printed = []
    for language, block in blocks(text):
        named = re.match(r"(?:#|//) ([\w/.-]+\.\w+)\n", block)
        if named is not None:
            (folder / named[1]).write_text(block, encoding="utf-8")
        elif language in COMMANDS:
            command = [*COMMANDS[language], block]
            done = subprocess.run(
                command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            printed.append(done.stdout)
    return "".join(printed)


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of the blocks of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def unseen(text: str, printed: str) -> list[str]:
    """The first lines of blocks that show output, but were not printed in this order.

    In blocks of ``none`` numbers stand for any: they are drawn, or depend on the solver.
    """
    missing = []
    for language, block in blocks(text):
        if language in SAME:
            left = iter([SAME[language](line) for line in printed.splitlines()])
            lines = block.splitlines()
            missing += [line for line in lines if SAME[language](line) not in left][:1]
    return missing


def clone(folder: Path) -> Path:
    """A folder where paths that begin at the root of a clone lead somewhere."""
    for name in ("clients", "examples", "tools"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.mark.slow
def test_the_statistician_sees_what_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="the data come with the extra 'data'")
    text = (PAGES / "statistician.md").read_text(encoding="utf-8")
    assert unseen(text, output(text, clone(tmp_path))) == []
    assert (tmp_path / "explained.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_not_printed_is_found(tmp_path: Path) -> None:
    shown = "```sh\nseq 3\n```\n\n```text\n1\n{}\n```\n"
    printed = output(shown, tmp_path)
    assert unseen(shown.format(3), printed) == []
    assert unseen(shown.format(4), printed) == ["4"]
    assert unseen("```text\n2\n1\n```\n", printed) == ["1"]
    assert unseen("```none\n7\n8\nnine\n```\n", printed) == ["nine"]
    with pytest.raises(AssertionError, match="false"):
        output("```sh\nfalse\ntrue\n```\n", tmp_path)


@pytest.mark.slow
def test_the_engineer_sees_what_is_shown(tmp_path: Path) -> None:
    text = (PAGES / "engineer.md").read_text(encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert unseen(text, output(text.replace("8000", f"{port}"), clone(tmp_path))) == []
    assert (tmp_path / "carriers.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_analyst_sees_what_is_shown(tmp_path: Path) -> None:
    text = (PAGES / "analyst.md").read_text(encoding="utf-8")
    assert unseen(text, output(text, clone(tmp_path))) == []
    for name in ("quarters.png", "delay.png", "hubs.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_no_tutorial_is_long(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 250
