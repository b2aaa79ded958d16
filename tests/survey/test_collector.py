"""The reference collector: what it takes and refuses, and what is left after it was killed."""

from __future__ import annotations

import base64
import http.client
import inspect
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from frequency import GRR, HRR
from frequency.storage import aggregate_files, save_protocol
from tests.survey.collector import BYTES, SCRIPT, Collector, lines_of, posted

PROTOCOL = GRR(domain=60_000, epsilon=8.0)
"""Of so many items that each report can have one of its own."""


def report(item: int) -> bytes:
    return PROTOCOL.wire + np.uint16(item).tobytes()


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    save_protocol(tmp_path / "protocol.json", PROTOCOL)
    return tmp_path / "protocol.json"


def test_a_report_arrives_as_bytes_as_text_and_in_a_batch(protocol: Path, tmp_path: Path) -> None:
    batch = PROTOCOL.reports_to_bytes(np.array([(3,), (4,)], dtype=PROTOCOL.report_dtype))
    with Collector(protocol, tmp_path / "reports") as collector:
        assert collector.post(report(1), "a") == (200, '{"new":1}')
        assert collector.post(base64.b64encode(report(2)) + b"\n", "b", "text/plain")[0] == 200
        assert collector.post(batch, "c") == (200, '{"new":2}')
        assert list((tmp_path / "reports").glob("*.part"))
    keys = {"a": 1, "b": 2, "c.0": 3, "c.1": 4}
    expected = [(base64.b64encode(report(item)), key) for key, item in keys.items()]
    assert list(lines_of(tmp_path / "reports")) == expected


WRONG: list[tuple[str, bytes, str, str, int, str]] = [
    ("no key", report(1), "", BYTES, 400, "Idempotency-Key is needed"),
    ("no key of ours", report(1), "a b", BYTES, 400, "Idempotency-Key is needed"),
    ("a long key", report(1), "a" * 65, BYTES, 400, "Idempotency-Key is needed"),
    ("another kind", report(1), "a", "application/json", 415, "octet-stream"),
    ("no base64", b"@@@", "a", "text/plain", 422, "base64"),
    ("base64 cut short", base64.b64encode(report(1))[:-1], "a", "text/plain", 422, "no base64: "),
    ("cut short", report(1)[:-1], "a", BYTES, 422, "length, .* of 9 bytes, for 10"),
    ("two reports", report(1) * 2, "a", BYTES, 422, "length, .* of 20 bytes, for 10"),
    ("another protocol", HRR(4, 1.0).wire + b"\0\0", "a", BYTES, 422, "foreign: the protocol "),
    ("nothing", b"", "a", BYTES, 422, "of 0 bytes, for 10"),
    ("impossible", report(60_000), "a", BYTES, 422, r"payload of a report \(item: bytes 8 on\)"),
    ("a damaged batch", b"LDPF\0", "a", BYTES, 422, "header of a batch"),
    (
        "an empty batch",
        PROTOCOL.reports_to_bytes(np.zeros(0, PROTOCOL.report_dtype)),
        "a",
        BYTES,
        422,
        "without reports",
    ),
    (
        "a batch with one that is impossible",
        PROTOCOL.reports_to_bytes(np.full(3, 7, PROTOCOL.report_dtype))[:-2] + b"\xff\xff",
        "a",
        BYTES,
        422,
        "impossible: the payload of a report",
    ),
    (
        "a batch with a long key",
        PROTOCOL.reports_to_bytes(np.zeros(3, PROTOCOL.report_dtype)),
        "a" * 63,
        BYTES,
        422,
        "shorter",
    ),
    ("too much", bytes((1 << 20) + 1), "a", BYTES, 413, "more than 1048576 bytes"),
]


def test_what_is_refused(protocol: Path, tmp_path: Path) -> None:
    with Collector(protocol, tmp_path / "reports") as collector:
        for name, body, key, kind, status, message in WRONG:
            found, text = collector.post(body, key, kind)
            assert not re.search(r"\\x|60000|65535", text)  # nothing of what came
            assert (found, bool(re.search(message, text))) == (status, True), (name, found, text)
        connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
        headers = {"Content-Type": BYTES, "Idempotency-Key": "a"}
        # In pieces, whose total nobody announces
        connection.request("POST", "/reports", iter([bytes(100_000)] * 11), headers)
        assert connection.getresponse().status == 413
        connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
        connection.request("GET", "/reports")
        assert connection.getresponse().status == 405
        connection.close()
        assert collector.post(report(1), "a") == (200, '{"new":1}')  # none of these took the key
    assert len(list(lines_of(tmp_path / "reports"))) == 1


@pytest.mark.slow
def test_a_body_that_is_announced_as_too_large_is_not_waited_for(
    protocol: Path, tmp_path: Path
) -> None:
    with Collector(protocol, tmp_path / "reports") as collector:
        connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
        connection.putrequest("POST", "/reports")
        for name, value in (("Idempotency-Key", "a"), ("Content-Type", BYTES)):
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(1 << 40))
        connection.endheaders(b"x")
        assert connection.getresponse().status == 413
        connection.close()


def batch_of(items: np.ndarray | list[int]) -> bytes:
    return PROTOCOL.reports_to_bytes(np.array(items, "<u2").view(PROTOCOL.report_dtype))


@pytest.mark.slow
def test_a_request_has_at_most_so_many_reports(protocol: Path, tmp_path: Path) -> None:
    """One more makes nothing of others uncountable, nor do hundreds of thousands."""
    most = np.arange(10_000)
    with Collector(protocol, tmp_path / "reports") as collector:
        assert collector.post(batch_of(most), "a") == (200, '{"new":10000}')
        for count in (10_001, 500_000):
            found, text = collector.post(batch_of(np.zeros(count, int)), "b")
            assert (found, text) == (413, "more than 10000 reports: send several batches")
        text64 = base64.b64encode(batch_of(np.zeros(10_001, int)))
        assert collector.post(text64, "b", "text/plain")[0] == 413
        assert collector.post(report(1), "b") == (200, '{"new":1}')  # none of these took the key
    assert aggregate_files(PROTOCOL, tmp_path / "reports").aggregate.n == 10_001


@pytest.mark.slow
def test_a_batch_is_known_by_its_key_and_by_its_id(protocol: Path, tmp_path: Path) -> None:
    """Whichever of them is the same when it is sent again, also after a restart."""
    first, other = batch_of([1, 2, 3]), batch_of([4, 5])
    again = batch_of([1, 2, 3])  # the same reports with an id of their own
    start = first.index(b'"id":"') + 6
    forged = batch_of([6, 7, 8]).replace(batch_of([])[start : start + 32], b"")
    forged = forged[:start] + first[start : start + 32] + forged[start + 32 :]
    alone = batch_of([9])
    collector = Collector(protocol, tmp_path / "reports").start()
    assert collector.post(first, "a") == (200, '{"new":3}')
    assert collector.post(alone, "z") == (200, '{"new":1}')
    for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        assert collector.post(first, "a") == (200, '{"new":0}')
        assert collector.post(first, "b") == (200, '{"new":0}')
        assert collector.post(again, "b") == (200, '{"new":0}')  # by a key that named it since
        assert collector.post(again, f"c-{how.name}") == (200, '{"new":0}')
        assert collector.post(alone, f"y-{how.name}") == (200, '{"new":0}')
        assert collector.post(forged, "d")[0] == 409
        for key in "abc":
            assert collector.post(other, key if key != "c" else f"c-{how.name}")[0] == 409
        collector.stop(how)
        collector.start()
    assert collector.post(other, "d") == (200, '{"new":2}')  # which nobody has taken
    collector.stop()
    counts = aggregate_files(PROTOCOL, tmp_path / "reports").aggregate.counts
    assert np.flatnonzero(counts).tolist() == [1, 2, 3, 4, 5, 9]
    assert counts.max() == 1


def test_more_is_remembered_than_can_be_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    collector, log = import_module("collector"), import_module("report_log")
    keys = inspect.signature(log.ReportLog).parameters["keys"].default
    most = 2 * collector.CONNECTIONS  # with those that end
    memory = log.Memory(keys)
    memory.add({f"a.{place}": b"" for place in range(collector.REPORTS)})
    assert most * memory.cost < keys
    assert most * 2 < keys  # of names, of which a batch has two


@pytest.mark.slow
def test_a_key_counts_once_also_after_a_restart(protocol: Path, tmp_path: Path) -> None:
    collector = Collector(protocol, tmp_path / "reports").start()
    assert collector.post(report(1), "a") == (200, '{"new":1}')
    assert collector.post(report(1), "a") == (200, '{"new":0}')
    assert collector.post(report(2), "a")[0] == 409
    for how in (signal.SIGTERM, signal.SIGKILL):
        collector.stop(how)
        collector.start()
        assert collector.post(report(1), "a") == (200, '{"new":0}')
        assert collector.post(report(2), "a")[0] == 409
        assert collector.post(report(3), how.name) == (200, '{"new":1}')
    collector.stop()
    assert [key for _, key in lines_of(tmp_path / "reports")] == ["a", "SIGTERM", "SIGKILL"]


@pytest.mark.slow
def test_one_collector_writes_to_a_folder(protocol: Path, tmp_path: Path) -> None:
    with Collector(protocol, tmp_path / "reports") as collector:
        second = subprocess.run(
            [sys.executable, SCRIPT, protocol, tmp_path / "reports", "--port", "0"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert second.returncode == 1
        assert "another collector writes there" in second.stderr
        assert collector.post(report(1), "a")[0] == 200


class Clients:
    """Threads that send a report for each number, and again until it is acknowledged."""

    def __init__(self, address: str, reports: int, threads: int) -> None:
        self.tried: Counter[int] = Counter()
        self.acknowledged: set[int] = set()
        self._next, self._reports, self._turn = 0, reports, threading.Lock()
        self.threads = [
            threading.Thread(target=self._send, args=(address,), daemon=True)
            for _ in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def _send(self, address: str) -> None:
        while True:
            with self._turn:
                number, self._next = self._next, self._next + 1
            if number >= self._reports:
                return
            while number not in self.acknowledged:
                with self._turn:
                    self.tried[number] += 1
                try:
                    status, _ = posted(address, report(number), f"key-{number}")
                except (OSError, http.client.HTTPException):
                    time.sleep(0.02)
                    continue
                if status == 200:
                    self.acknowledged.add(number)
                else:
                    assert status == 503


@pytest.mark.slow
def test_a_killed_collector_loses_nothing_and_counts_nothing_twice(
    protocol: Path, tmp_path: Path
) -> None:
    collector = Collector(protocol, tmp_path / "reports").start()
    clients = Clients(collector.address, reports=1200, threads=12)
    for kills in (1, 2, 3):
        while len(clients.acknowledged) < 250 * kills:
            time.sleep(0.01)
        collector.stop(signal.SIGKILL)
        # What was acknowledged is in the files already
        stored = b"".join(path.read_bytes() for path in (tmp_path / "reports").glob("*.b64*"))
        for number in clients.acknowledged.copy():
            assert b" key-%d\n" % number in stored
        collector.start()
    for thread in clients.threads:
        thread.join(60)
    collector.stop()
    assert len(clients.acknowledged) == 1200
    assert max(clients.tried.values()) > 1  # some had to try again
    stored_once = Counter(lines_of(tmp_path / "reports"))
    expected = {(base64.b64encode(report(number)), f"key-{number}") for number in range(1200)}
    assert stored_once == Counter(expected)
    collected = aggregate_files(PROTOCOL, tmp_path / "reports")
    assert (collected.aggregate.n, collected.refused) == (1200, {})
    assert collected.aggregate.counts[:1200].tolist() == [1] * 1200


@pytest.mark.slow
def test_the_end_of_a_collector_waits_for_who_was_sending(protocol: Path, tmp_path: Path) -> None:
    collector = Collector(protocol, tmp_path / "reports").start()
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
    connection.putrequest("POST", "/reports")
    for name, value in (("Idempotency-Key", "a"), ("Content-Type", BYTES)):
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(report(1))))
    connection.endheaders(report(1)[:4])
    time.sleep(0.3)
    stopping = threading.Thread(target=collector.stop)
    stopping.start()
    time.sleep(0.3)
    connection.send(report(1)[4:])
    assert connection.getresponse().status == 200
    connection.close()
    stopping.join(20)
    assert [key for _, key in lines_of(tmp_path / "reports")] == ["a"]


# --------------------------------------------------------------------------- clients that wait

HEAD = b"POST /reports HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\n"
STALLED = {
    "nothing": b"",
    "half a line": b"POST /rep",
    "half a head": HEAD,
    "half a body": HEAD + b"Idempotency-Key: x\r\nContent-Length: 10\r\n\r\nab",
    "half a chunk": HEAD + b"Idempotency-Key: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "half a body that nobody wants": HEAD.replace(b"POST", b"PUT") + b"Content-Length: 9\r\n\r\na",
    "no reading": b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
}


@contextmanager
def stalled(port: int, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    """Connections that send this, and then nothing."""
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), 20)))
            made[-1].sendall(sent)
        yield made


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """With a file that no buffers of sockets hold."""
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "large").write_bytes(bytes(1 << 25))
    return folder


@pytest.fixture
def many_files() -> Iterator[int]:
    """How many connections the server has, if there may be so many open files here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("no 4096 open files are allowed")
    if soft != resource.RLIM_INFINITY and soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    yield 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["nothing", "half a head", "half a body"])
def test_connections_that_wait_keep_nobody_out(
    protocol: Path, tmp_path: Path, many_files: int, sent: str
) -> None:
    with Collector(protocol, tmp_path / "reports") as collector:
        for turn in range(2):
            with stalled(collector.port, STALLED[sent], many_files + 50):
                for place in range(3):
                    status = collector.post(report(place), f"{turn}-{place}")
                    assert status == (200, '{"new":1}')
    assert len(list(lines_of(tmp_path / "reports"))) == 6


@pytest.mark.slow
def test_downloads_that_nobody_reads_keep_nobody_out(
    protocol: Path, tmp_path: Path, page: Path
) -> None:
    folder = tmp_path / "reports"
    few = Collector(protocol, folder, page, "collector.CONNECTIONS = 20")
    with few as collector, stalled(collector.port, STALLED["no reading"], 30):
        # While all twenty answers are being prepared nobody waits, and who comes has to come again
        status, until = None, time.monotonic() + 20
        while status is None and time.monotonic() < until:
            with suppress(OSError, http.client.HTTPException):
                status = collector.post(report(1), "a")
        assert status == (200, '{"new":1}')


@pytest.mark.slow
def test_who_sends_is_not_closed_for_who_waits(protocol: Path, tmp_path: Path) -> None:
    """A client that came before others do, and sends slowly, if there are not too many."""
    folder = tmp_path / "reports"
    with Collector(protocol, folder, changed="collector.CONNECTIONS = 20") as collector:
        head = HEAD + b"Idempotency-Key: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
        with (
            stalled(collector.port, b"", 18),
            stalled(collector.port, head, 1) as (slow,),
            stalled(collector.port, b"", 15),  # for which the first 18 are closed
        ):
            slow.sendall(report(1))
            assert slow.recv(1000).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.slow
@pytest.mark.parametrize("sent", [name for name in STALLED if name != "no reading"])
def test_a_connection_that_waits_ends(protocol: Path, tmp_path: Path, sent: str) -> None:
    """The first one of it, and one on which a request was answered before."""
    answered = HEAD + b"Idempotency-Key: b\r\nContent-Length: 10\r\n\r\n" + report(2)
    patience = "collector.SECONDS = 1.0"
    with Collector(protocol, tmp_path / "reports", changed=patience) as collector:
        for before in (b"", answered):
            with stalled(collector.port, before + STALLED[sent], 1) as (one,):
                one.settimeout(20)
                try:
                    while one.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    pass
        assert collector.post(report(1), "a") == (200, '{"new":1}')


@pytest.mark.slow
def test_a_download_that_nobody_reads_ends(protocol: Path, tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "reports"
    impatient = Collector(protocol, folder, page, "collector.SECONDS = 1.0").start()
    with stalled(impatient.port, STALLED["no reading"], 1):
        time.sleep(0.2)
        impatient.stop()  # which waits for connections
    assert impatient.said.count("Traceback") == 0


@pytest.mark.slow
def test_who_leaves_writes_no_traceback(protocol: Path, tmp_path: Path, page: Path) -> None:
    """At whatever moment; a report that came whole is stored all the same."""
    whole = HEAD + b"Idempotency-Key: whole\r\nContent-Length: 10\r\n\r\n" + report(3)
    collector = Collector(protocol, tmp_path / "reports", page).start()
    for sent in (*STALLED.values(), whole):
        for reset in (False, True):
            with stalled(collector.port, sent, 1) as (one,):
                time.sleep(0.1)
                if reset:
                    linger = (1).to_bytes(4, sys.byteorder) + bytes(4)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert collector.post(report(1), "a") == (200, '{"new":1}')
    collector.stop()
    assert not re.search("Traceback|Exception|Error", collector.said), collector.said
    assert [key for _, key in lines_of(tmp_path / "reports")] == ["whole", "a"]
