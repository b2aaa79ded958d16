"""Fixtures of the tests of mechdesign."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdesign import properties


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Properties that a test defines are forgotten after it."""
    monkeypatch.setattr(properties, "_REGISTRY", dict(properties._REGISTRY))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
