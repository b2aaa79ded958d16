"""Reports as lines: what the slow twin reads, in bounded memory, each key once."""

import base64
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency import GRR, HRR, OUE, InvalidReport
from frequency.storage import RefusedFile, aggregate_files, line_file, read_reports, write_reports
from frequency.storage.line_file import decode, encode
from frequency.storage.protocol_file import file_of
from tests.contracts.examples import WITH_VALUES, numbers
from tests.frequency.storage.lines import line_of, slow_lines

PROTOCOL, OTHER = HRR(16, 1.0), HRR(16, 2.0)
HEADER = b"# mechdesign reports " + b"0123456789abcdef" * 2 + b"\n"


def some_lines(protocol, n, seed=1, keys=False):
    reports = protocol.privatize(numbers(16, n), np.random.default_rng(seed))
    single = protocol.single_reports_to_bytes(reports)
    return [line_of(one, b"k%d" % k if keys else b"") for k, one in enumerate(single)]


def check(protocol, content, path, batch=None):
    """That a file is read as the slow twin reads it: its reports, what is left out, and why it is
    refused.
    """
    path.write_bytes(content)
    kept, wrong = slow_lines(protocol, content)
    refused = not kept and not wrong["repeated"] and wrong.keys() & {"malformed", "foreign"}
    possible = np.array(kept, dtype=f"S{protocol.report_dtype.itemsize}")
    payloads = np.frombuffer(b"".join(kept), dtype=protocol.report_dtype)
    good = protocol.possible(payloads)
    if not good.all():
        wrong["impossible"] = int((~good).sum())
    wrong = Counter({reason: count for reason, count in wrong.items() if count})
    assert len(possible) == len(payloads)
    collected = aggregate_files(protocol, path, batch=batch)
    tally = Counter[str]()
    if refused:
        (reason,) = collected.refused.values()
        assert reason.startswith("foreign: " if not wrong["malformed"] else "it holds no report: ")
        assert (collected.counted, collected.aggregate.n) == ({}, 0)
        with pytest.raises(RefusedFile):
            read_reports(path, protocol, tally)
        assert not tally
        return
    assert collected.refused == {}
    assert collected.counted == {str(path): int(good.sum())}
    assert collected.left_out == ({str(path): wrong} if wrong else {})
    assert collected.aggregate == protocol.aggregate(payloads[good])
    assert np.array_equal(read_reports(path, protocol, tally), payloads[good])
    assert tally == wrong
    if wrong - Counter(repeated=wrong["repeated"]):
        with pytest.raises(InvalidReport):
            read_reports(path, protocol)
    else:
        assert np.array_equal(read_reports(path, protocol), payloads)


@WITH_VALUES
def test_reports_are_what_they_were(protocol, values, tmp_path):
    reports = protocol.privatize(values, np.random.default_rng(2))
    path = tmp_path / "day=1" / "reports.b64"
    parts = (part for part in np.array_split(reports, 3))
    assert write_reports(path, protocol, parts) == len(reports)
    first, *lines = path.read_bytes().splitlines()
    assert first.startswith(b"# mechdesign reports ")
    assert len(first) == 53
    sent = protocol.single_reports_to_bytes(reports)
    assert lines == [base64.b64encode(message) for message in sent]
    assert np.array_equal(read_reports(path, protocol), reports)
    for batch in (7, None):
        collected = aggregate_files(protocol, tmp_path, batch=batch)
        assert collected.aggregate == protocol.aggregate(reports)
        assert collected.counted == {str(path): len(reports)}
        assert (collected.refused, collected.left_out) == ({}, {})


@pytest.mark.parametrize("size", [*range(1, 40), 300])
def test_base64_is_that_of_the_standard_library(size):
    content = np.random.default_rng(size).integers(0, 256, (200, size), dtype=np.uint8)
    text = encode(content)
    assert [row.tobytes() for row in text] == [base64.b64encode(row) for row in content]
    found, good = decode(text, size)
    assert good.all()
    assert np.array_equal(found, content)
    assert decode(text[:0], size)[0].shape == (0, size)


@pytest.mark.parametrize("size", [9, 10, 11, 12])
def test_of_base64_every_other_character_in_every_place_is_judged(size):
    """One text for each report: padding where it belongs, and no bits behind the last byte."""
    row = base64.b64encode(bytes(range(100, 100 + size)))
    changed = [row[:k] + bytes([c]) + row[k + 1 :] for k in range(len(row)) for c in range(256)]
    text = np.frombuffer(b"".join(changed), dtype=np.uint8).reshape(len(changed), len(row))
    found, good = decode(text, size)
    for one, raw, judged in zip(changed, found, good, strict=True):
        try:
            expected = base64.b64decode(one, validate=True)
        except ValueError:
            expected = b""
        whole = len(expected) == size and base64.b64encode(expected) == one
        assert bool(judged) == whole, one
        if whole:
            assert raw.tobytes() == expected


ODD = [
    b"\n",
    b"#\n",
    b"# a comment\n",
    b" \n",
    b"=\n",
    b"====\n",
    b"AAAA\n",
    b"AAAAAAAAAAA=\n",
    b"AAAAAAAAAAB=\n",  # bits behind the last byte
    b"not base64\n",
    b"\r\n",
    b"\x00\n",
    b"\xff" * 16 + b"\n",
    b"A" * 300 + b"\n",
    line_of(bytes(8)),
    line_of(bytes(10)),
    line_of(bytes(10), b"key"),
    line_of(PROTOCOL.wire),
    line_of(PROTOCOL.wire + b"\1"),
    line_of(PROTOCOL.wire + b"\1\1\1"),
    line_of(PROTOCOL.wire + b"\0\0"),
    line_of(PROTOCOL.wire + b"\1\1")[:-1] + b"\r\n",
    line_of(PROTOCOL.wire + b"\1\1", b"a" * 64),
    line_of(PROTOCOL.wire + b"\1\1", b"a" * 65),
    line_of(PROTOCOL.wire + b"\1\1", b"a b"),
    line_of(PROTOCOL.wire + b"\1\1", b" a"),
    line_of(PROTOCOL.wire + b"\1\1", b"a,b"),
    line_of(PROTOCOL.wire + b"\1\1", b"\xc3\xa9"),
    line_of(PROTOCOL.wire + b"\1\1")[:-1] + b" \n",
    line_of(PROTOCOL.wire + b"\1\1")[:-1] + b"\tk\n",
    line_of(OTHER.wire + b"\1\1", b"k1"),
    line_of(PROTOCOL.wire + b"\1\1", b"A.b_c-9"),
    line_of(PROTOCOL.wire + b"\1\1", b"k1"),
]


@pytest.mark.parametrize("chunk", [1, 1 << 20])
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_lines_are_what_the_slow_twin_says(odd, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(line_file, "_CHUNK", chunk)
    good, keyed = some_lines(PROTOCOL, 5), some_lines(PROTOCOL, 5, 2, keys=True)
    path = tmp_path / "x.b64"
    for lines in ([odd], [odd, *good], [*good, odd], [*keyed, odd, *good, odd], [*good, odd[:-1]]):
        check(PROTOCOL, b"".join(lines), path)
    check(PROTOCOL, HEADER + b"".join([*good, odd]), path)
    check(PROTOCOL, b"".join(ODD), path)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_mixture_of_lines_cut_and_changed_anywhere(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "x.b64"
    protocol = data.draw(st.sampled_from([PROTOCOL, GRR(300, 1.0), OUE(20, 1.0)]))
    pool = [*some_lines(protocol, 8), *some_lines(protocol, 8, 2, keys=True), *ODD, HEADER]
    content = b"".join(data.draw(st.lists(st.sampled_from(pool), max_size=25)))
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            at = data.draw(st.integers(0, len(content) - 1))
            kind = data.draw(st.integers(0, 3))
            byte = bytes([data.draw(st.integers(0, 255))])
            content = [
                content[:at],
                content[:at] + byte + content[at + 1 :],
                content[:at] + content[at + 1 :],
                content[:at] + byte + content[at:],
            ][kind]
    check(protocol, content, path, data.draw(st.sampled_from([None, 1, 3])))


@pytest.mark.slow
def test_chunks_of_any_size_read_the_same(tmp_path, monkeypatch):
    lines = some_lines(PROTOCOL, 3000, keys=True) + some_lines(PROTOCOL, 3000, 2) + ODD[3:]
    rng = np.random.default_rng(1)
    content = b"".join(lines[k] for k in rng.permutation(len(lines)).tolist())
    for chunk in (1, 100, 1000, 7777, 1 << 20):
        monkeypatch.setattr(line_file, "_CHUNK", chunk)
        check(PROTOCOL, content, tmp_path / f"{chunk}.b64")


def test_of_lines_with_one_key_in_a_file_the_first_counts(tmp_path):
    lines = some_lines(PROTOCOL, 4)
    first, second = line_of(PROTOCOL.wire + b"\1\1", b"k"), line_of(PROTOCOL.wire + b"\2\1", b"k")
    path = tmp_path / "a.b64"
    path.write_bytes(b"".join([first, *lines, second, second, first]))
    collected = aggregate_files(PROTOCOL, path)
    assert collected.left_out == {str(path): {"repeated": 3}}
    found = read_reports(path, PROTOCOL)
    assert found["index"][0] == 1
    assert len(found) == 5
    (tmp_path / "b.b64").write_bytes(b"".join([second, *lines]))  # of another file
    assert aggregate_files(PROTOCOL, tmp_path).aggregate.n == 10


@pytest.mark.parametrize("chunk", [1, 600, 1 << 20])
@pytest.mark.parametrize("held", [1, 2, 9, 59, 60])
def test_a_file_may_have_any_number_of_keys(held, chunk, tmp_path, monkeypatch):
    """More than are held: lines without keys, known keys and odd lines stay where they are."""
    monkeypatch.setattr(line_file, "_CHUNK", chunk)
    monkeypatch.setattr(line_file, "_KEYS", held)
    keyed, plain = some_lines(PROTOCOL, 60, keys=True), some_lines(PROTOCOL, 60, 2)
    path = tmp_path / "a.b64"
    check(PROTOCOL, b"".join(keyed * 2), path)
    check(PROTOCOL, b"".join(keyed + keyed[::-1])[:-3], path)
    lines = [*keyed, *plain, *keyed[::2], *ODD]
    rng = np.random.default_rng(held)
    for header in (b"", HEADER):
        order = rng.permutation(len(lines)).tolist()
        check(PROTOCOL, header + b"".join(lines[k] for k in order), path)


@pytest.mark.slow
def test_the_keys_of_large_files_take_bounded_memory(tmp_path, monkeypatch):
    """Also what waits for its turn does."""
    monkeypatch.setattr(line_file, "_KEYS", 1 << 12)
    monkeypatch.setattr(line_file, "_HELD", 1 << 16)
    reports = PROTOCOL.privatize(numbers(16, 30_000), np.random.default_rng(1))
    single = PROTOCOL.single_reports_to_bytes(reports)
    peaks = []
    for count in (10_000, 30_000):
        path = tmp_path / f"{count}.b64"
        path.write_bytes(
            b"".join(line_of(single[k % count], b"%064d" % (k % count)) for k in range(2 * count))
        )
        tracemalloc.start()
        parts = file_of(path, PROTOCOL).batches(None, 1 << 10, tally := Counter[str]())
        assert sum(map(len, parts)) == count
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        peaks.append(peak)
        assert tally == Counter(repeated=count)
    assert peaks[1] < 1.2 * peaks[0], peaks


@pytest.mark.slow
def test_more_keys_than_are_held_are_counted(tmp_path):
    """A million and some more, as they come."""
    count = line_file._KEYS + 1000
    report = base64.b64encode(PROTOCOL.wire + b"\1\1")
    (tmp_path / "a.b64").write_bytes(b"".join(b"%b %d\n" % (report, k) for k in range(count)))
    collected = aggregate_files(PROTOCOL, tmp_path)
    assert (collected.aggregate.n, collected.refused, collected.left_out) == (count, {}, {})


def test_a_file_is_known_by_its_id_or_else_by_its_content(tmp_path):
    lines = b"".join(some_lines(PROTOCOL, 3))
    contents = {
        "1.b64": HEADER + lines,
        "2.b64": HEADER + lines,
        "3.b64": HEADER.replace(b"0", b"a") + lines,
        "4.b64": lines,
        "5.b64": lines,
        "6.b64": HEADER + lines[:-3],
        "7.b64": b"# another comment\n" + lines,
        "8.b64.part": HEADER.replace(b"0", b"b") + lines,
        "9.B64": b"",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    collected = aggregate_files(PROTOCOL, tmp_path)
    names = {path.rpartition("/")[2]: n for path, n in collected.counted.items()}
    assert names == {"1.b64": 3, "3.b64": 3, "4.b64": 3, "7.b64": 3, "9.B64": 0}
    reasons = {path.rpartition("/")[2]: reason for path, reason in collected.refused.items()}
    assert reasons == {
        "2.b64": f"holds the same reports as {tmp_path / '1.b64'}",
        "5.b64": f"holds the same reports as {tmp_path / '4.b64'}",
        "6.b64": f"it has the id of {tmp_path / '1.b64'}, but other bytes: it was written"
        " anew, or one of them is made up",
    }


@pytest.mark.parametrize("header", [HEADER, b""])
def test_a_file_that_was_replaced_is_refused(header, tmp_path):
    path = tmp_path / "a.b64"
    path.write_bytes(header + b"".join(some_lines(PROTOCOL, 30)))
    file = file_of(path, PROTOCOL)
    digest = file.outline().digest
    assert sum(map(len, file.batches((0,), 7, Counter(), digest))) == 30
    path.write_bytes(header.replace(b"0", b"a") + b"".join(some_lines(PROTOCOL, 30, 2)))
    with pytest.raises(RefusedFile, match="it was replaced while it was being counted"):
        next(file.batches((0,), 7, Counter(), digest))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file_nor_with_its_lines(tmp_path):
    """Many lines, and one that is as long as they are together."""
    lines = b"".join(some_lines(PROTOCOL, 20_000))
    long = tmp_path / "long.b64"
    with long.open("wb") as stream:
        for start in (b"# ", b"A", b""):
            stream.write(start)
            for _ in range(60):
                stream.write(b"QUJD" * (1 << 17))
            stream.write(b"\n" + lines)
    many = tmp_path / "many.b64"
    many.write_bytes(lines * 150)
    assert many.stat().st_size > 40 << 20
    for path, counted, wrong in ((long, 60_000, 2), (many, 3_000_000, 0)):
        tracemalloc.start()
        parts = file_of(path, PROTOCOL).batches(None, 1 << 16, tally := Counter[str]())
        assert sum(map(len, parts)) == counted
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 30 << 20, path
        assert tally == Counter(malformed=wrong)
