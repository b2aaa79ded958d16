"""Children that are killed before each of their changes of files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from mechdesign.accounting import Ledger

# Of each child everything is the same but when it ends: before its k-th change of a file.
_KILLED = """
import os, sys
from pathlib import Path
from mechdesign.accounting import Ledger
from mechdesign.base import replacing
{imports}

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "open")

def act(folder):
{act}

def killed(folder, k):
    seen = 0
    def watch(event, given):
        nonlocal seen
        if event not in CHANGES or (event == "open" and not (given[2] or 0) & (
            os.O_WRONLY | os.O_RDWR | os.O_CREAT
        )):
            return
        if not str(given[0]).startswith(str(folder)):
            return
        if seen == k:
            os._exit(9)
        seen += 1
    sys.addaudithook(watch)
    act(folder)
    os._exit(0)

for k in range(200):
    folder = Path(sys.argv[1]) / str(k)
    child = os.fork()
    if not child:
        try:
            killed(folder, k)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(k, code, flush=True)
    if code != 9:
        break
"""


def killed(tmp_path: Path, act: str, imports: str = "", delta: Any = 0) -> list[Path]:
    """The folders that are left by children that are killed at each change of a file."""
    script = _KILLED.format(act=act, imports=imports)
    for k in range(200):  # each with a ledger, before any child
        folder = tmp_path / str(k)
        folder.mkdir()
        Ledger.open(folder / "budget.json", epsilon=1, delta=delta)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    codes = [int(line.split()[1]) for line in done.stdout.splitlines()]
    assert codes == [9] * (len(codes) - 1) + [0], codes
    return [tmp_path / str(k) for k in range(len(codes))]
