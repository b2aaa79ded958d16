"""What was drawn and written with a seed is drawn, written and read in the same way."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.contracts.examples import COLLECTED
from tests.frozen import FILES, NUMBERS, of_mechanisms, of_protocol
from tools.fuzz.runner import FORMATS

pytestmark = [pytest.mark.every_case, pytest.mark.of_rounding]

KEPT = json.loads(NUMBERS.read_text(encoding="utf-8"))


def same(kept, now) -> None:
    """Texts are equal, and numbers but for rounding."""
    assert kept.keys() == now.keys()
    for name, value in kept.items():
        if name in ("frequencies", "counts", "variances", "answers"):
            for one, other in zip(value, now[name], strict=True):
                # Iterations that end by a float's comparison end a step apart on other processors.
                rel = 1e-5 if name == "answers" else 1e-6
                assert other == pytest.approx(one, rel=rel, abs=1e-9), name
        else:
            assert now[name] == value, name


@pytest.mark.parametrize("name", KEPT["protocols"])
def test_protocols(name: str) -> None:
    same(KEPT["protocols"][name], of_protocol(int(name.split()[0])))


def test_all_protocols_are_kept() -> None:
    assert list(KEPT["protocols"]) == [
        f"{place} {type(protocol).__name__}" for place, (protocol, _) in enumerate(COLLECTED)
    ]


def test_mechanisms() -> None:
    now = of_mechanisms()
    assert now.keys() == KEPT["mechanisms"].keys()
    for name, kept in KEPT["mechanisms"].items():
        found = now[name]
        assert found == (kept if isinstance(kept, str) else pytest.approx(kept, rel=1e-6)), name


def test_files_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES) as archive:
        readers = {}
        for name in archive.namelist():
            kind = name.rpartition("-")[0]
            if kind not in readers:
                (tmp_path / kind).mkdir()
                readers[kind] = FORMATS[kind](tmp_path / kind)
            path = tmp_path / "file"
            path.write_bytes(archive.read(name))
            found = readers[kind].read(path)
            assert readers[kind].lie(found, path.read_bytes()) is None, name
    assert readers.keys() == FORMATS.keys()
