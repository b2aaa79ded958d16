"""The demonstration's answers are those that its examples print."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from examples import demo
from examples.demo import QUESTIONS, Question, answered


def test_every_example_is_there() -> None:
    assert all((demo.HERE / question.script).exists() for question in QUESTIONS)


@pytest.mark.parametrize("change", ["answer", "picture", "none"])
def test_an_example_that_prints_something_else_is_noticed(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = "12 towns" if change != "answer" else "nothing"
    drawn = "pass" if change == "picture" else "(out / 'towns.png').write_bytes(b'')"
    (tmp_path / "towns.py").write_text(
        f"import sys, pathlib\nout = pathlib.Path(sys.argv[-1])\nprint({printed!r})\n{drawn}\n"
    )
    monkeypatch.setattr(demo, "HERE", tmp_path)
    question = Question("Where?", "towns.py", (), r"(\d+) towns", "in {0}", "towns.png", "a map")
    if change != "none":
        with pytest.raises(LookupError, match="no answer, or no picture"):
            answered(question, tmp_path)
        return
    assert answered(question, tmp_path)[:2] == ["Where?", "  in 12"]
    assert (tmp_path / "towns.txt").read_text() == "12 towns\n"


@pytest.mark.slow
def test_every_question_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path)])
    demo.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 * len(QUESTIONS)
    assert lines[::4] == [question.asked for question in QUESTIONS]
