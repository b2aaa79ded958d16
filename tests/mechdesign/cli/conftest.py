"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdesign.cli import main


@pytest.fixture
def wm(here: Path) -> Path:
    assert (
        main(
            [
                "design",
                "--n",
                "8",
                "--alpha",
                "9/10",
                "--loss",
                "L0",
                "--property",
                "WH",
                "--property",
                "CM",
                "--out",
                "wm.json",
            ]
        )
        == 0
    )
    return here / "wm.json"
