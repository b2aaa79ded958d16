"""Functions that processes of a pool call: they import them from here."""

import os
import signal
from pathlib import Path

from rangeq.central import count_cells


def dying_once(schema, mark, blocks):
    """Count cells; the first process that does is killed in the middle."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return count_cells(schema, blocks)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def dying(blocks):
    os.kill(os.getpid(), signal.SIGKILL)
