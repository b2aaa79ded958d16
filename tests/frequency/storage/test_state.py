"""What a state file may say: only what can have been counted."""

import io
import weakref

import numpy as np
import pytest

from frequency import GRR, Aggregate, IncompatibleAggregate
from frequency.storage.counting import FileEntry, Part
from frequency.storage.state import State
from mechdesign import InvalidFile

PROTOCOL = GRR(4, 1.0)


def state_file(path, files, n=5, counts=(2, 3, 0, 0)):
    stream = io.BytesIO()
    aggregate = Aggregate(PROTOCOL._signature, n, np.array(counts))
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
