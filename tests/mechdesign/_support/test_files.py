"""Files replaced in one step or not at all: their permissions, links, and what is synced."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mechdesign._support import files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604, 0o400])
def test_a_file_that_is_replaced_keeps_its_permissions(saved: Path, mode: int) -> None:
    saved.chmod(mode)
    with files.replacing(saved) as stream:
        (aside,) = (path for path in saved.parent.iterdir() if path != saved)
        assert stat.S_IMODE(aside.stat().st_mode) == 0o600
        stream.write(b"new")
    assert stat.S_IMODE(saved.stat().st_mode) == mode
    assert saved.read_bytes() == b"new"


def test_of_a_symbolic_link_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link, chain = tmp_path / "there" / "file", tmp_path / "link", tmp_path / "chain"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to("there/file")
    chain.symlink_to(link)
    with pytest.raises(TypeError), files.replacing(chain) as stream:
        stream.write("no bytes")  # type: ignore[call-overload]
    assert target.read_bytes() == b"old"
    with files.replacing(chain) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert chain.is_symlink()
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"new", 0o600)
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_links_that_lead_nowhere_and_what_is_no_file_are_not_written_to(tmp_path: Path) -> None:
    dangling, loop, pipe = tmp_path / "dangling", tmp_path / "loop", tmp_path / "pipe"
    dangling.symlink_to(tmp_path / "absent")
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    before = sorted(tmp_path.iterdir())
    for path, reason in [
        (dangling, "leads nowhere"),
        (loop, "leads nowhere"),
        (pipe, "not a regular file"),
        (tmp_path, "not a regular file"),
    ]:
        with pytest.raises(OSError, match=reason), files.replacing(path) as stream:
            stream.write(b"new")
        assert sorted(tmp_path.iterdir()) == before


def test_file_and_directory_are_synced_in_the_order_that_outlives_a_power_cut(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def replaced(source: Any, target: Any) -> None:
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    with files.replacing(saved) as stream:
        stream.write(b"new")
    assert done == ["file", "replace", "directory"]


def test_where_directories_cannot_be_opened_they_are_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Windows; anything else that this would ask of the system is an AttributeError.
    monkeypatch.setattr(files, "os", SimpleNamespace(name="nt"))
    files._sync(tmp_path)
