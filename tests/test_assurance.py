"""The page on promises names tests that are there, and says when one fails."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

assurance = pytest.importorskip(
    "tools.assurance", reason="the tests may be of an installed package"
)


def test_the_page_names_all_tests() -> None:
    page = assurance.PAGE.read_text(encoding="utf-8")
    assert assurance.INTRODUCTION in page
    for promise in assurance.PROMISES:
        assert promise.says in page
        for path in promise.tests:
            assert (assurance.ROOT / path).exists()
            assert f"`{path}`" in page
    assert "failed" not in page


def test_a_failure_is_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    promise = assurance.Promise("Water is wet.", "It is.", ("tests/test_water.py",))
    monkeypatch.setattr(assurance, "PROMISES", (promise,))
    monkeypatch.setattr(assurance, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(assurance, "outcomes", lambda promise, cases: (3, 1, 0))
    monkeypatch.setattr(sys, "argv", ["assurance.py"])
    with pytest.raises(SystemExit) as ended:
        assurance.main()
    assert ended.value.code == 1
    assert "3 passed, **1 failed**" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_tests_of_all_guarantees_are_there() -> None:
    page = assurance.PAGE.with_name("guarantees.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`(tests/[\w./]+)`", page))
    assert len(paths) > 30
    assert [path for path in paths if not (assurance.ROOT / path).exists()] == []
