"""Fixtures of the tests of a curator's releases."""

import pytest


@pytest.fixture(autouse=True)
def _own_designs(monkeypatch, tmp_path):
    """Each run of a test designs for itself, also the one with results that are off."""
    monkeypatch.setenv("MECHDESIGN_CACHE", str(tmp_path / "designs"))
