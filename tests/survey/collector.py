"""A collector as a process of its own, and what its files hold."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "survey" / "collector.py"
BYTES = "application/octet-stream"


class Collector:
    """Runs until the end of a ``with`` statement; started again on the same port.

    ``changed`` are statements that change constants of the module ``collector`` before.
    """

    def __init__(
        self, protocol: Path, folder: Path, page: Path | None = None, changed: str = ""
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        own = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import collector"
        run = ["-c", f"{own}; {changed}; collector.main()"] if changed else [str(SCRIPT)]
        self._command = [sys.executable, "-W", "error", *run, str(protocol), str(folder)]
        self._command += ["--port", str(self.port), *(["--page", str(page)] if page else [])]
        self.address = f"http://127.0.0.1:{self.port}/"

    def start(self) -> Collector:
        self._run = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self._run.stderr is not None
        said = ""
        while f"Uvicorn running on {self.address[:-1]}" not in said:
            line = self._run.stderr.readline()
            assert line, said
            said += line
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it; `said` is then what it wrote to standard error meanwhile."""
        self._run.send_signal(how)
        _, self.said = self._run.communicate(timeout=20)

    def __enter__(self) -> Collector:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGTERM if kind is None else signal.SIGKILL)

    def post(self, body: bytes, key: str = "", kind: str = BYTES) -> tuple[int, str]:
        return posted(self.address, body, key, kind)


def posted(address: str, body: bytes, key: str = "", kind: str = BYTES) -> tuple[int, str]:
    """The status and text of the answer; OSError or HTTPException if there is none."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    try:
        headers = {"Content-Type": kind, **({"Idempotency-Key": key} if key else {})}
        connection.request("POST", "/reports", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def lines_of(folder: Path) -> Iterable[tuple[bytes, str]]:
    """The reports in closed files, in base64, and their keys."""
    assert not list(folder.glob("*.part"))
    for path in sorted(folder.glob("*.b64")):
        first, *lines = path.read_bytes().splitlines()
        assert first.startswith(b"# mechdesign reports ")
        for line in lines:
            if line.startswith(b"# name "):
                continue
            report, key = line.split(b" ")
            yield report, key.decode()
