"""Reports that the reference collector acknowledges in a second, over 100 connections.

    python benchmarks/collector_load.py                 half a minute, 100 MB of disk

The collector of examples/survey is one process; the connections are those of another, on the same
machine, and each sends its next request when the last one is answered. Every report that is
acknowledged is found in the files in the end, once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from frequency import OLH
from frequency.storage import save_protocol

COLLECTOR = Path(__file__).parent.parent / "examples" / "survey" / "collector.py"
CONNECTIONS = 100
SECONDS = 5.0
BATCHES = (1, 100, 1000)


def started(protocol: Path, folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A collector that answers, and its port."""
    command = [sys.executable, str(COLLECTOR), str(protocol), str(folder), "--port", "0"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    for line in run.stderr:
        if "running on" in line:
            return run, int(line.split("127.0.0.1:")[1].split()[0])
    raise SystemExit("the collector did not start")


async def sender(port: int, bodies: Any, end: float) -> list[float]:
    """Send until the end: the seconds that each acknowledged request took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    own, took = secrets.token_hex(8), []
    for number in itertools.count():
        begun = time.perf_counter()
        if begun > end:
            break
        body = next(bodies)
        if body.startswith(b"LDPF"):  # a batch is known by its id, too
            start = body.index(b'"id":"') + 6
            body = body[:start] + secrets.token_hex(16).encode() + body[start + 32 :]
        head = (
            "POST /reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream"
            f"\r\nIdempotency-Key: {own}-{number}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(answer.decode())
        length = answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        took.append(time.perf_counter() - begun)
    writer.close()
    await writer.wait_closed()
    return took


async def load(port: int, bodies: list[bytes]) -> list[float]:
    end = time.perf_counter() + SECONDS
    turns = [itertools.cycle(bodies[k:] + bodies[:k]) for k in range(CONNECTIONS)]
    took = await asyncio.gather(*(sender(port, turn, end) for turn in turns))
    return list(itertools.chain.from_iterable(took))


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    protocol = OLH(domain=256, epsilon=1.0)
    rng = np.random.default_rng(1)
    print("| reports in a request | reports / s | requests / s | median, ms | 99 %, ms |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as top:
        save_protocol(Path(top) / "protocol.json", protocol)
        for size in BATCHES:
            folder = Path(top) / f"{size}"
            reports = [protocol.privatize(rng.integers(0, 256, size), rng) for _ in range(100)]
            many = size > 1
            bodies = [
                protocol.reports_to_bytes(one) if many else protocol.single_reports_to_bytes(one)[0]
                for one in reports
            ]
            run, port = started(Path(top) / "protocol.json", folder)
            begun = time.perf_counter()
            took = asyncio.run(load(port, bodies))
            seconds = time.perf_counter() - begun
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=60)
            lines = [
                line
                for path in folder.glob("*.b64")
                for line in path.read_bytes().splitlines()
                if not line.startswith(b"#")
            ]
            assert len(lines) == len(set(lines)) == size * len(took), "reports were lost"
            requests = len(took) / seconds
            median, most = (1000 * np.quantile(took, part) for part in (0.5, 0.99))
            row = (
                f"| {size} | {size * requests:,.0f} | {requests:,.0f} | {median:.0f} | {most:.0f} |"
            )
            print(row, flush=True)


if __name__ == "__main__":
    main()
