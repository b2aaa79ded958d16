"""What a state file may say: only what can have been counted; and to go on from it."""

import io
import shutil
import weakref

import numpy as np
import pyarrow as pa
import pytest

from frequency import GRR, HRR, Aggregate, IncompatibleAggregate
from frequency.storage import aggregate_files, save_aggregate, write_reports
from frequency.storage.collection import State
from frequency.storage.workers import FileEntry, Part
from mechdesign import InvalidFile
from tests.contracts.examples import numbers
from tests.frequency.storage.test_parquet import GOOD, foreign

PROTOCOL = GRR(4, 1.0)


def state_file(path, files, n=5, counts=(2, 3, 0, 0)):
    stream = io.BytesIO()
    aggregate = Aggregate(PROTOCOL.signature, n, np.array(counts))
    aggregate.write(stream, "counted files", files=files)
    path.write_bytes(stream.getvalue())
    return path


def test_a_state_of_files_that_were_counted_is_read(tmp_path):
    files = [["a", "x", 4, {}], ["b", "y", 1, {"impossible": 7}]]
    state = State(PROTOCOL, state_file(tmp_path / "state", files))
    assert state.settled.aggregate.n == 5
    assert [(entry.counted, entry.left_out) for entry in state.files.values()] == [
        (4, {}),
        (1, {"impossible": 7}),
    ]


@pytest.mark.parametrize(
    "files",
    [
        [["a", "x", 6, {}], ["b", "y", -1, {}]],
        [["a", "x", 5 + 2**200, {}], ["b", "y", -(2**200), {}]],
        [["a", "x", 5.0, {}]],
        [["a", "x", "5", {}]],
        [["a", "x", 4, {}], ["b", "y", True, {}]],
        [["a", "x", 5, {"impossible": -1}]],
        [["a", "x", 5, {"impossible": 2**63}]],
        [["a", "x", 5, {"impossible": 0.5}]],
        [["a", "x", 5, {"impossible": "many"}]],
        [["a", "x", 5, []]],
        [["a", "x", 5, None]],
        [["a", 3, 5, {}]],
        [[None, "x", 5, {}]],
        [["a", "x", 5]],
        ["ax5{"],
        [5],
        {"a": 5},
        5,
        None,
        [["a", "x", 5, {}], ["b", "x", 0, {}]],
        [["a", "x", 5, {}], ["a", "y", 0, {}]],
    ],
    ids=str,
)
def test_files_that_nobody_can_have_counted_are_refused(files, tmp_path):
    with pytest.raises(InvalidFile):
        State(PROTOCOL, state_file(tmp_path / "state", files))


@pytest.mark.parametrize(
    "counts", [(6, -1, 0, 0), (2, 2, 0, 0), (5, 0, 0), ((2, 3, 0, 0),)], ids=str
)
def test_counts_that_no_reports_have_are_refused(counts, tmp_path):
    with pytest.raises(IncompatibleAggregate, match="no 5 reports have these counts"):
        State(PROTOCOL, state_file(tmp_path / "state", [["a", "x", 5, {}]], counts=counts))


@pytest.mark.parametrize("n", [-1, 2**63, 2**200, 5.0, True, "5", None])
def test_a_number_that_no_reports_can_have_is_refused(n, tmp_path):
    with pytest.raises((InvalidFile, IncompatibleAggregate)):
        State(PROTOCOL, state_file(tmp_path / "state", [["a", "x", 5, {}]], n=n))


def test_counts_are_let_go_when_there_are_new_ones(tmp_path):
    """Saved or not, memory holds one array of counts: they may be hundreds of megabytes."""
    state = State(PROTOCOL, tmp_path / "state")
    state.save()
    for k in range(3):
        old = weakref.ref(state.settled.aggregate.counts)
        state.claimed[str(k)] = str(k)
        state.absorb(Part(np.array([1, 0, 0, 0]), (FileEntry(str(k), str(k), 1, {}, None),)))
        assert old() is None
        state.save()
    assert State(PROTOCOL, tmp_path / "state").settled.aggregate == state.settled.aggregate


def test_nothing_new_is_not_written_again(tmp_path):
    path = tmp_path / "state"
    state = State(PROTOCOL, path)
    state.save()
    for again in (state, State(PROTOCOL, path)):
        inode = path.stat().st_ino
        again.claimed["x"] = "a"
        again.absorb(Part(np.zeros(4, dtype=int), (FileEntry("a", "x", 0, {}, "damaged"),)))
        again.save()
        assert path.stat().st_ino == inode
        assert again.refused == {"a": "damaged"}


def test_a_file_that_was_renamed_since_is_not_counted_again_and_told_why(tmp_path):
    protocol, state, days = HRR(16, 1.0), tmp_path / "state", tmp_path / "days"
    first, copy = days / "1.parquet", days / "2.parquet"
    write_reports(first, protocol, protocol.privatize(numbers(16, 60), np.random.default_rng(1)))
    shutil.copy(first, copy)
    once = aggregate_files(protocol, days, resume=state)
    assert once.refused == {str(copy): f"holds the same reports as {first}"}
    first.unlink()
    again = aggregate_files(protocol, days, resume=state)
    told = f"was counted already, as {first}, which is there no more"
    assert (again.aggregate, again.refused) == (once.aggregate, {str(copy): told})


def test_resuming_counts_what_is_new_and_nothing_twice(tmp_path):
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16, 300), np.random.default_rng(1))
    state, days = tmp_path / "state", tmp_path / "days"
    for day in range(3):
        write_reports(days / f"{day}.parquet", protocol, reports[100 * day : 100 * (day + 1)])
        collected = aggregate_files(protocol, days, resume=state)
        assert collected.aggregate == protocol.aggregate(reports[: 100 * (day + 1)])
        assert len(collected.counted) == day + 1
    later = aggregate_files(protocol, [], resume=state)  # nothing new: what has been counted
    assert (later.aggregate, later.counted) == (collected.aggregate, collected.counted)

    # A file that was counted is replaced by another, or comes again from elsewhere.
    shutil.copy(days / "1.parquet", days / "moved.parquet")
    write_reports(days / "1.parquet", protocol, reports[:50])
    collected = aggregate_files(protocol, days, resume=state)
    assert collected.aggregate == protocol.aggregate(reports)
    assert sorted(collected.refused) == [str(days / "1.parquet"), str(days / "moved.parquet")]

    # A file that was refused is tried again.
    content = (days / "0.parquet").read_bytes()
    other = tmp_path / "other"
    (days / "late.parquet").write_bytes(content[:200])
    assert str(days / "late.parquet") in aggregate_files(protocol, days, resume=state).refused
    write_reports(days / "late.parquet", protocol, reports[:7])
    collected = aggregate_files(protocol, days, resume=state)
    assert collected.counted[str(days / "late.parquet")] == 7

    save_aggregate(other, collected.aggregate)
    for wrong, error in ((other, InvalidFile), (days / "0.parquet", InvalidFile)):
        with pytest.raises(error):
            aggregate_files(protocol, days, resume=wrong)
    message = state.read_bytes()
    for damaged in (b"", message[:-1], message[:50] + b"x" + message[51:]):
        other.write_bytes(damaged)
        with pytest.raises(InvalidFile, match="cut short or changed"):
            aggregate_files(protocol, days, resume=other)
    n = collected.aggregate.n
    for files in (
        [["a", "b", 3, {}]],
        [["a", "b", n, {}], ["a", "c", 0, {}]],
        [["a", "b", n, {}], ["c", "b", 0, {}]],
    ):
        with other.open("wb") as stream:
            collected.aggregate.write(stream, "counted files", files=files)
        with pytest.raises(InvalidFile, match="do not add up"):
            aggregate_files(protocol, days, resume=other)
    with pytest.raises(IncompatibleAggregate, match="alpha"):
        aggregate_files(HRR(16, 2.0), days, resume=state)
    assert state.read_bytes() == message


def test_left_out_reports_are_remembered(tmp_path):
    protocol = HRR(16, 1.0)
    foreign(tmp_path / "x.parquet", protocol, pa.table(GOOD | {"index": pa.array([0], pa.uint8())}))
    for _ in range(2):
        collected = aggregate_files(protocol, tmp_path, resume=tmp_path / "state")
        assert collected.left_out == {str(tmp_path / "x.parquet"): {"impossible": 1}}
        assert collected.counted == {str(tmp_path / "x.parquet"): 0}


def test_what_was_counted_before_an_error_is_kept(tmp_path, monkeypatch):
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16, 300), np.random.default_rng(1))
    for k in range(3):
        write_reports(tmp_path / f"{k}.parquet", protocol, reports[100 * k : 100 * (k + 1)])
    absorb = State.absorb

    def interrupted(self, part):
        absorb(self, part)
        raise KeyboardInterrupt

    monkeypatch.setattr(State, "absorb", interrupted)
    for k in range(3):
        with pytest.raises(KeyboardInterrupt):
            aggregate_files(protocol, tmp_path, resume=tmp_path / "state", batch=10)
        assert State(protocol, tmp_path / "state").settled.aggregate.n == 100 * (k + 1)
    monkeypatch.undo()
    assert aggregate_files(
        protocol, tmp_path, resume=tmp_path / "state"
    ).aggregate == protocol.aggregate(reports)
