"""The solver in floats."""

from __future__ import annotations

import subprocess
import sys


def test_a_design_prints_nothing() -> None:
    program = "from mechdesign import Privacy, design\ndesign(3, Privacy('1/2'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
