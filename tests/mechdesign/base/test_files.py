"""Files that are opened, and replaced in one step or not at all: permissions, links, syncing."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mechdesign import DiskFull, IrregularFile
from mechdesign.base import files
from mechdesign.base.text import reason as plainly


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
    files.synced(tmp_path)


def test_a_reader_opens_regular_files_alone_and_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, place, path = tmp_path / "pipe", tmp_path / "socket", tmp_path / "file"
    os.mkfifo(pipe)
    path.write_text("caf\u00e9\r\n", encoding="utf-8", newline="")
    link = tmp_path / "link"
    link.symlink_to(path)
    for name in (path, link, str(path)):
        with files.opened(name) as stream:
            assert stream.read() == b"caf\xc3\xa9\r\n"
    with files.opened(path, "r", encoding="utf-8", newline="") as stream:
        assert stream.read() == "caf\u00e9\r\n"
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # whose own name may be too long for a socket
        server.bind(place.name)
        for name in (pipe, place, Path(os.devnull)):
            with pytest.raises(IrregularFile, match=f"{name.name}: not a regular file"):
                files.opened(name)
    with pytest.raises(IsADirectoryError):
        files.opened(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.opened(tmp_path / "absent")


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_full_disk_is_said_plainly_and_leaves_what_was_there(saved: Path, kind: int) -> None:
    full = kind != errno.EIO

    def write() -> None:
        with files.replacing(saved) as stream:
            stream.write(b"half")
            raise OSError(kind, os.strerror(kind))

    with pytest.raises(DiskFull if full else OSError) as caught:
        write()
    if full:
        assert str(caught.value) == f"{saved}: there is no room on the disk; nothing was written"
    assert isinstance(caught.value, OSError)
    assert saved.read_bytes() == b"old"
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_errors_of_files_are_told_by_name_and_in_words() -> None:
    for error, told in [
        (OSError(errno.ENOSPC, "No space left on device"), "there is no room on the disk; "),
        (OSError(errno.ENOSPC, "x", "a.json"), "a.json: there is no room on the disk; "),
        (FileNotFoundError(errno.ENOENT, "x", "a.json"), "no such file: a.json"),
        (PermissionError(errno.EACCES, "Permission denied", b"a.json"), "a.json: Permission"),
        (OSError(errno.EIO, "Input/output error", "a", None, "b"), "b: Input/output error"),
        (OSError(errno.EIO, "Input/output error", 3), "Input/output error"),
        (MemoryError("Unable to allocate"), "this takes more memory than there is. Unable"),
    ]:
        assert plainly(error).startswith(told)
