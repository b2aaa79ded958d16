"""The example from a schema to an answer, as ``make survey CHECK=1`` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "examples" / "survey" / "survey.py"


@pytest.mark.slow
def test_reports_are_counted_once_each(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, "--check"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "600 reports of 1 file counted, 0 files refused" in done.stdout
    assert "JFK: 0." in done.stdout
