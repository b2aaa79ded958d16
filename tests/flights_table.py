"""The table and the schema of flights that pages speak of, and their commands."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from examples.flights import SCHEMA, flights_csv


def write_flights(folder: Path, rows: int) -> None:
    """Write ``flights.csv``, with some of its rows, and ``flights.toml``."""
    lines = flights_csv().split(b"\n", rows + 1)[: rows + 1]
    (folder / "flights.csv").write_bytes(b"\n".join([*lines, b""]))
    shutil.copy(SCHEMA, folder)


def commands_in(page: str) -> list[list[str]]:
    """The arguments of each ``mechdesign`` in the shell's blocks of a page."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("mechdesign ")]
