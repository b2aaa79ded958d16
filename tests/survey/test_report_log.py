"""The log of the reference collector: groups, files, keys, and disks that fail."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import Timeout

from examples.survey import report_log
from examples.survey.report_log import KeyTaken, Memory, NotStored, ReportLog
from tests.survey.collector import lines_of

HEADER = b"# mechdesign reports 0123456789abcdef0123456789abcdef\n"


def reports(*numbers: int) -> dict[str, bytes]:
    return {f"key-{number}": b"AAAA%04d" % number for number in numbers}


def keys(folder: Path) -> list[str]:
    return [key for _, key in lines_of(folder)]


async def stored(log: ReportLog, *groups: dict[str, bytes]) -> list[int]:
    """How many were new of each, one after the other."""
    async with log.taking():
        return [await log.add(group) for group in groups]


def test_many_reports_share_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    sync: Callable[[int], None] = os.fsync

    def slow(file: int) -> None:
        synced.append(file)
        time.sleep(0.05)
        sync(file)

    async def collect() -> list[int]:
        log = ReportLog(tmp_path)
        async with log.taking():
            return await asyncio.gather(*(log.add(reports(number)) for number in range(500)))

    monkeypatch.setattr(os, "fsync", slow)
    assert asyncio.run(collect()) == [1] * 500
    assert len(synced) <= 6  # of the file and its folder, in two groups, and at the end
    assert sorted(keys(tmp_path)) == sorted(reports(*range(500)))


def test_nobody_is_told_before_the_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor those who send the same at the same time."""
    sync, durable = os.fsync, [0]

    def slow(file: int) -> None:
        time.sleep(0.05)
        sync(file)
        durable[0] += 1

    monkeypatch.setattr(os, "fsync", slow)

    async def told(log: ReportLog) -> int:
        await log.add(reports(1))
        return durable[0]

    async def collect() -> list[int]:
        log = ReportLog(tmp_path)
        async with log.taking():
            first = asyncio.create_task(told(log))
            await asyncio.sleep(0.02)  # it is being written
            return [*await asyncio.gather(told(log), told(log)), await first]

    assert min(asyncio.run(collect())) >= 1
    assert keys(tmp_path) == ["key-1"]


def test_a_key_is_for_one_report(tmp_path: Path) -> None:
    async def collect() -> None:
        log = ReportLog(tmp_path)
        async with log.taking():
            assert await log.add(reports(1, 2)) == 2
            assert await log.add(reports(1, 3)) == 1
            with pytest.raises(KeyTaken, match="the key key-3 came with another report"):
                await log.add({**reports(4), "key-3": b"AAAA"})

    asyncio.run(collect())
    assert keys(tmp_path) == ["key-1", "key-2", "key-3"]  # 4 came with a refused one


@pytest.mark.parametrize(
    "tail", [b"", b"AAAA", b"AAAA0009 ", b"AAAA0009 key-9", b"\0\0\0\0", b"AAAA0009\n", b"\0\n"]
)
def test_what_a_killed_log_left_is_closed(tmp_path: Path, tail: bytes) -> None:
    whole = HEADER + b"AAAA0001 key-1\nAAAA0002 key-2\n"
    (tmp_path / "0.b64.part").write_bytes(whole + tail)
    assert asyncio.run(stored(ReportLog(tmp_path), reports(1, 2, 3))) == [1]
    assert (tmp_path / "0.b64").read_bytes() == whole
    assert keys(tmp_path)[-1] == "key-3"


@pytest.mark.parametrize("content", [b"", HEADER[:20], HEADER, HEADER + b"AAAA"])
def test_a_file_without_a_whole_report_is_removed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.b64.part").write_bytes(content)
    ReportLog(tmp_path)
    assert not list(tmp_path.glob("0.*"))


def test_full_files_are_closed(tmp_path: Path) -> None:
    groups = [reports(number) for number in range(5)]
    assert asyncio.run(stored(ReportLog(tmp_path, lines=2), *groups)) == [1] * 5
    assert [len(path.read_bytes().splitlines()) for path in sorted(tmp_path.glob("*.b64"))] == [
        3,
        3,
        2,
    ]
    assert keys(tmp_path) == list(reports(*range(5)))
    # The first line tells files with the same reports apart
    assert len({path.read_bytes()[:60] for path in tmp_path.glob("*.b64")}) == 3


def a_batch(name: str, size: int) -> dict[str, bytes]:
    return {
        f"{name}.{place}": b"%b%04d" % (name.encode().ljust(4, b"A"), place)
        for place in range(size)
    }


@pytest.mark.parametrize("lines", [1, 4, 7, 10, 1000])
def test_no_file_has_more_lines_than_it_may(tmp_path: Path, lines: int) -> None:
    """However many batches come at the same time, and however large they are."""
    sizes = [1, 3, 7, 8, 25, 2, 10]
    batches = [a_batch(f"b{number}", size) for number, size in enumerate(sizes)]

    async def collect() -> list[int]:
        log = ReportLog(tmp_path, lines=lines)
        async with log.taking():
            return await asyncio.gather(*map(log.add, batches), *map(log.add, batches))

    assert asyncio.run(collect()) == sizes + [0] * len(sizes)
    found = [path.read_bytes().splitlines() for path in sorted(tmp_path.glob("*.b64"))]
    assert [len(one) - 1 for one in found[:-1]] == [lines] * (len(found) - 1)
    assert len(found[-1]) - 1 <= lines
    assert keys(tmp_path) == [key for batch in batches for key in batch]
    assert asyncio.run(stored(ReportLog(tmp_path), *batches)) == [0] * len(sizes)


@pytest.mark.parametrize("failing", range(1, 12))
def test_what_is_stored_of_many_files_is_stored_once_when_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """At the n-th fsync, with some of a group in files that are closed."""
    sync, calls = os.fsync, [0]

    def failed(file: int) -> None:
        calls[0] += 1
        if calls[0] == failing:
            raise OSError(errno.ENOSPC, "no space left")
        sync(file)

    batches = [a_batch(f"b{number}", 5) for number in range(3)]

    async def collect() -> int:
        log = ReportLog(tmp_path, lines=4)
        refused = 0
        async with log.taking():
            for turn in range(2):
                told = [log.add(one, {f"id{turn}": "b0"}) for one in batches]
                found = await asyncio.gather(*told, return_exceptions=True)
                refused += sum(isinstance(one, NotStored) for one in found)
            assert [await log.add(one) for one in batches] == [0, 0, 0]
        return refused

    monkeypatch.setattr(os, "fsync", failed)
    assert asyncio.run(collect()) == 3
    assert sorted(keys(tmp_path)) == sorted(key for one in batches for key in one)


def test_old_files_are_closed_although_nothing_comes(tmp_path: Path) -> None:
    async def collect() -> None:
        log = ReportLog(tmp_path, seconds=0.1)
        async with log.taking():
            await log.add(reports(1))
            async with asyncio.timeout(20):
                while list(tmp_path.glob("*.part")):
                    await asyncio.sleep(0.05)
            assert keys(tmp_path) == ["key-1"]
            await log.add(reports(2))

    asyncio.run(collect())
    assert keys(tmp_path) == ["key-1", "key-2"]


def test_the_newest_keys_are_remembered(tmp_path: Path) -> None:
    log = ReportLog(tmp_path, lines=2, keys=3)
    groups = [reports(number) for number in range(5)]
    assert asyncio.run(stored(log, *groups, *groups[2:], groups[0])) == [1] * 5 + [0] * 3 + [1]
    log = ReportLog(tmp_path, keys=3)  # which reads them: 3, 4 and 0 again
    assert asyncio.run(stored(log, reports(0), reports(4), reports(3), reports(2))) == [0, 0, 0, 1]


def test_a_batch_is_remembered_until_so_many_others_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of more reports than keys are remembered, at the limit and one beyond."""
    monkeypatch.setattr(report_log, "SHARE", 5)
    first = a_batch("a", 50)  # as much as ten keys
    for restarted in (False, True):
        for others, forgotten in ((2, 0), (3, 50)):
            folder = tmp_path / f"{restarted}{others}"
            rest = [reports(number) for number in range(others)]
            log = ReportLog(folder, lines=20, keys=12)
            if restarted:
                assert asyncio.run(stored(log, first, *rest)) == [50] + [1] * others
                log = ReportLog(folder, lines=20, keys=12)
                assert asyncio.run(stored(log, first)) == [forgotten]
            else:
                assert asyncio.run(stored(log, first, *rest, first))[-1] == forgotten


@pytest.mark.parametrize("size", [1, 40])
def test_what_is_on_its_way_is_never_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Although only one key is remembered: each batch comes a second time before it is stored."""
    sync: Callable[[int], None] = os.fsync

    def slow(file: int) -> None:
        time.sleep(0.02)
        sync(file)

    monkeypatch.setattr(os, "fsync", slow)

    async def collect() -> int:
        log, new = ReportLog(tmp_path, keys=1), 0
        async with log.taking():
            waiting = set[asyncio.Task[int]]()
            for number in range(30):
                for name in ("x", "y"):
                    key = log.key_of([f"id{number}"], f"{name}{number}")
                    one = log.add(a_batch(key, size), {f"id{number}": key})
                    waiting.add(asyncio.create_task(one))
                    await asyncio.sleep(0.001)
            for task in waiting:
                new += await task
        return new

    assert asyncio.run(collect()) == 30 * size
    assert len(keys(tmp_path)) == 30 * size


def test_other_names_of_a_batch_outlive_the_log(tmp_path: Path) -> None:
    batch = a_batch("a", 3)

    async def collect(log: ReportLog, name: str) -> tuple[str, int]:
        async with log.taking():
            key = log.key_of((name, "b"), "b")
            return key, await log.add(batch, {name: key, "b": key, "a": "a"})

    async def begin(log: ReportLog) -> int:
        async with log.taking():
            return await log.add(batch, {"id": "a"})

    assert asyncio.run(begin(ReportLog(tmp_path))) == 3
    assert asyncio.run(collect(ReportLog(tmp_path), "id")) == ("a", 0)
    assert asyncio.run(collect(ReportLog(tmp_path), "another")) == ("a", 0)  # by "b"
    assert ReportLog(tmp_path).key_of(["another"], "c") == "a"
    assert keys(tmp_path) == list(batch)


@pytest.mark.parametrize("seed", range(20))
def test_keys_in_runs_are_what_a_dictionary_holds(seed: int) -> None:
    """One by one and in batches; the newest are removed first, the oldest forgotten."""
    rng = random.Random(seed)
    pool = [f"{name}.{place}" for name in ("a", "a.0", "") for place in range(8)]
    pool += ["a", "b", "a.", "a.00", "a.01", "a.0.", "1", "a.123456789123456789"]
    memory, twin = Memory(1000 if seed % 2 else 6), dict[str, int]()
    for _ in range(400):
        keys = [rng.choice(pool)]
        if rng.random() < 0.3:
            front = rng.choice(["a", "a.0", "b"])
            keys = [f"{front}.{place}" for place in range(rng.randint(1, 5))]
        batch = {key: b"%d" % rng.randrange(3) for key in keys}
        if any(twin.get(key, hash(one)) != hash(one) for key, one in batch.items()):
            with pytest.raises(KeyTaken):
                memory.new(batch)
        else:
            new = memory.new(batch)
            assert new == {key: one for key, one in batch.items() if key not in twin}
            memory.add(new)
            twin |= {key: hash(one) for key, one in new.items()}
        if rng.random() < 0.3:
            for last in list(reversed(twin))[: rng.randint(1, 3)]:
                memory.remove(last)
                del twin[last]
        if seed % 2 == 0:
            memory.forget(())
            assert memory.cost <= 6
            gone = [key for key in twin if memory.get(key) is None]
            twin = {key: one for key, one in twin.items() if key not in gone}
        assert {one: memory.get(one) for one in pool} == {one: twin.get(one) for one in pool}
    for last in reversed([*twin]):
        memory.remove(last)
    assert memory.cost == 0


def test_two_logs_do_not_share_a_folder(tmp_path: Path) -> None:
    log = ReportLog(tmp_path)
    with pytest.raises(Timeout):
        ReportLog(tmp_path)
    assert asyncio.run(stored(log, reports(1))) == [1]
    assert asyncio.run(stored(ReportLog(tmp_path), reports(1))) == [0]


@pytest.mark.parametrize("failing", range(1, 8))
def test_nothing_is_half_stored_when_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """At the n-th fsync; whoever waited is told, and may try again with the same key."""
    sync, calls = os.fsync, [0]

    def failed(file: int) -> None:
        calls[0] += 1
        if calls[0] == failing:
            raise OSError(errno.ENOSPC, "no space left")
        sync(file)

    async def told(log: ReportLog, number: int) -> bool:
        try:
            await log.add(reports(number))
        except NotStored:
            return False
        return True

    async def collect() -> tuple[list[bool], list[bool]]:
        log = ReportLog(tmp_path, lines=3)
        async with log.taking():
            groups = [
                await asyncio.gather(*(told(log, 2 * turn + k) for k in (0, 1, 0)))
                for turn in range(4)
            ]
            first = [one for group in groups for one in group]
            return first, [await told(log, number) for number in range(8)]

    monkeypatch.setattr(os, "fsync", failed)
    first, second = asyncio.run(collect())
    assert all(second)
    assert first.count(False) == 3  # all of the group, and the one who sent the same
    assert sorted(keys(tmp_path)) == sorted(reports(*range(8)))


def test_who_gives_up_takes_nobody_along(tmp_path: Path) -> None:
    async def collect() -> int:
        log = ReportLog(tmp_path)
        async with log.taking():
            leaving = asyncio.create_task(log.add(reports(1)))
            staying = asyncio.create_task(log.add(reports(2)))
            await asyncio.sleep(0)
            leaving.cancel()
            return await staying

    assert asyncio.run(collect()) == 1
    assert keys(tmp_path) == ["key-1", "key-2"]


@pytest.fixture
def failing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes its time to say that it is full, once: after the first group."""
    sync, calls = os.fsync, [0]

    def failed(file: int) -> None:
        calls[0] += 1
        if calls[0] == 3:
            time.sleep(0.2)
            raise OSError(errno.ENOSPC, "no space left")
        sync(file)

    monkeypatch.setattr(os, "fsync", failed)


@pytest.mark.usefixtures("failing_once")
def test_who_came_while_a_group_failed_is_told_too(tmp_path: Path) -> None:
    """One sends what is about to fail again, another one something else."""

    async def collect() -> tuple[list[object], int]:
        log = ReportLog(tmp_path)
        async with log.taking():
            await log.add(reports(0))
            first = asyncio.create_task(log.add(reports(1)))
            await asyncio.sleep(0.05)  # it is being written
            others = log.add(reports(1)), log.add(reports(2))
            found = await asyncio.gather(first, *others, return_exceptions=True)
            return [type(one) for one in found], await log.add(reports(1, 2))

    assert asyncio.run(collect()) == ([NotStored] * 3, 2)
    assert keys(tmp_path) == ["key-0", "key-1", "key-2"]


@pytest.mark.usefixtures("failing_once")
def test_what_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    async def collect() -> bytes:
        log = ReportLog(tmp_path)
        async with log.taking():
            await log.add(reports(0))
            with pytest.raises(NotStored):
                await log.add(reports(1, 2, 3))
            await log.add(reports(4))
            (part,) = tmp_path.glob("*.part")
            return part.read_bytes()

    lines = asyncio.run(collect()).splitlines()
    assert lines[1:] == [b"AAAA0000 key-0", b"AAAA0004 key-4"]
