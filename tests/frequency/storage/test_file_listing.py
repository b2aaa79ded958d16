"""Whatever is below a directory is listed, or refused by name."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from frequency import GRR
from frequency.storage import aggregate_files, read_reports, write_reports
from frequency.storage.protocol_file import listing_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes")

PROTOCOL = GRR(3, 1.0)


@pytest.fixture
def nested(tmp_path: Path) -> Iterator[Path]:
    """A directory that is gone afterwards, however deep: pytest's own removal recurses."""
    (tmp_path / "nested").mkdir()
    yield tmp_path / "nested"
    subprocess.run(["rm", "-rf", tmp_path / "nested"], check=True)


def written(path, n=4, seed=1):
    values = np.random.default_rng(seed).integers(0, 3, n)
    write_reports(path, PROTOCOL, PROTOCOL.privatize(values, np.random.default_rng(seed)))


def relative(paths, top):
    return sorted(os.path.relpath(path, top) for path in paths)


def test_what_is_no_file_is_refused_by_name_and_the_rest_goes_on(tmp_path):
    written(tmp_path / "a" / "good.parquet")
    written(tmp_path / "b" / "good.parquet", seed=2)
    (tmp_path / "a" / "nothing.parquet").symlink_to(tmp_path / "missing")
    (tmp_path / "a" / "loop.parquet").symlink_to(tmp_path / "a" / "loop.parquet")
    (tmp_path / "a" / "unmounted").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "a" / "pipe.parquet")
    os.mkfifo(tmp_path / "a" / "pipe")  # nobody's business
    collected = aggregate_files(PROTOCOL, tmp_path)
    assert relative(collected.counted, tmp_path) == ["a/good.parquet", "b/good.parquet"]
    reasons = {os.path.basename(path): reason for path, reason in collected.refused.items()}
    assert list(reasons) == ["loop.parquet", "nothing.parquet", "pipe.parquet", "unmounted"]
    assert "symbolic links" in reasons["loop.parquet"]
    assert "No such file" in reasons["nothing.parquet"]
    assert "No such file" in reasons["unmounted"]
    assert reasons["pipe.parquet"] == "no regular file"
    assert collected.found == 6


def test_a_path_that_is_named_must_be_there(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "loop.parquet").symlink_to(tmp_path / "loop.parquet")
    for name, error in (("missing", FileNotFoundError), ("loop.parquet", OSError)):
        with pytest.raises(error):
            listing_of([tmp_path, tmp_path / name])
    with pytest.raises(ValueError, match="no regular file"):
        listing_of(tmp_path / "pipe.parquet")


def test_linked_directories_are_listed_once_and_loops_are_refused(tmp_path):
    top, elsewhere = tmp_path / "top", tmp_path / "elsewhere"
    written(top / "z" / "1.parquet")
    written(elsewhere / "inside" / "2.parquet", seed=2)
    (top / "a").symlink_to(top / "z")  # before it in any order
    (top / "far").symlink_to(elsewhere)
    (top / "z" / "again").symlink_to(elsewhere / "inside")
    (top / "z" / "self").symlink_to(top / "z")
    (elsewhere / "up").symlink_to(tmp_path)
    found = listing_of(top)
    assert relative(found.sizes, top) == ["far/inside/2.parquet", "z/1.parquet"]
    assert relative(found.refused, top) == ["far/up", "z/self"]
    assert set(found.refused.values()) == {"a link to a directory that it is in"}
    assert listing_of([top, top / "a", top]) == found
    assert aggregate_files(PROTOCOL, top).aggregate.n == 8


@pytest.mark.slow
def test_a_thousand_directories_one_in_the_other(nested):
    here = os.getcwd()
    try:  # their paths together are longer than the system takes
        os.chdir(nested)
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    deep = nested.joinpath(*["d"] * 1200)
    written(deep / "x.parquet")
    collected = aggregate_files(PROTOCOL, nested)
    assert (list(collected.counted), collected.refused) == ([str(deep / "x.parquet")], {})


def test_a_path_too_long_is_refused_by_name(nested):
    here, name = os.getcwd(), "d" * 200
    try:
        os.chdir(nested)
        for _ in range(25):
            os.mkdir(name)
            os.chdir(name)
    finally:
        os.chdir(here)
    written(nested / "good.parquet")
    collected = aggregate_files(PROTOCOL, nested)
    assert collected.aggregate.n == 4
    (reason,) = collected.refused.values()
    assert "too long" in reason


def test_any_case_and_any_bytes_in_names(tmp_path):
    names = ["x.PARQUET", "y.Parquet", os.fsdecode(b"caf\xe9.parquet"), ".z.parquet"]
    for k, name in enumerate(names):
        written(tmp_path / f"{k}", seed=k)
        os.rename(tmp_path / f"{k}", tmp_path / name)
    for _ in range(2):
        collected = aggregate_files(PROTOCOL, tmp_path, resume=tmp_path / "state")
        assert relative(collected.counted, tmp_path) == sorted(names[:3])
        assert collected.refused == {}
    assert len(read_reports(tmp_path / names[2], PROTOCOL)) == 4


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root lists anything")
def test_a_directory_that_cannot_be_listed(tmp_path):
    written(tmp_path / "good.parquet")
    (tmp_path / "closed").mkdir(mode=0o000)
    assert relative(listing_of(tmp_path).refused, tmp_path) == ["closed"]
    with pytest.raises(PermissionError):
        listing_of(tmp_path / "closed")
