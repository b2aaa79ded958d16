"""A survey from its schema to an answer: the page and its collector, on this machine.

    python examples/survey/survey.py --out demo/survey [--check]

It asks about one of the flights of examples/flights.toml, at odds of at most 3, on
http://127.0.0.1:8000 until Ctrl-C. With --check 600 reports are sent instead, by clients that have
nothing but the protocol file; some are sent twice. All are then counted, each once.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path

from make_page import write_page

from frequency import GRR, Schema, Survey
from frequency.clients import load_client
from frequency.storage import aggregate_files, load_protocol, save_protocol

HERE = Path(__file__).parent
TRUTH = Counter(EWR=300, JFK=200, LGA=100)


def prepare(folder: Path) -> None:
    """The protocol file, and the page that is made of it."""
    folder.mkdir(parents=True, exist_ok=True)
    origin = Schema.load(HERE.parent / "flights.toml")["origin"]
    save_protocol(folder / "protocol.json", Survey(GRR(origin.size, "1.0986"), Schema([origin])))
    asked = {"origin": "From which airport of New York did you last leave?"}
    write_page(folder / "protocol.json", folder / "page", "Departures", asked)


def collector(folder: Path, port: int) -> list[str]:
    """The command that serves the page and takes reports."""
    files = [str(folder / name) for name in ("protocol.json", "reports")]
    page = ["--page", str(folder / "page"), "--port", str(port)]
    return [sys.executable, str(HERE / "collector.py"), *files, *page]


def sent(address: str, key: str, report: bytes) -> str:
    headers = {"Idempotency-Key": key, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{address}/reports", report, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


def check(folder: Path) -> None:
    """Send and count: an error unless every report is counted once."""
    prepare(folder)
    run = subprocess.Popen(collector(folder, 0), stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    address = next(line.split()[4] for line in run.stderr if "Uvicorn running on" in line)
    for name in ("", "page.js", "client/index.js"):
        with urllib.request.urlopen(f"{address}/{name}", timeout=20) as answer:
            assert answer.status == 200
    client = load_client(folder / "page" / "protocol.json")
    for number, value in enumerate(TRUTH.elements()):
        report = client.report(value)
        assert report is not None  # every one of these users reports
        assert sent(address, f"{number}", report) == '{"new":1}'
        if number % 10 == 0:  # as if the answer had been lost
            assert sent(address, f"{number}", report) == '{"new":0}'
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=20)
    survey = load_protocol(folder / "protocol.json")
    collected = aggregate_files(survey, folder / "reports")
    print(collected)
    estimate = survey.estimate(collected.aggregate)
    assert estimate.n == TRUTH.total()
    for label, count in TRUTH.items():
        found, true = estimate.answer({"origin": label}), count / TRUTH.total()
        low, high = found.interval(0.95)
        print(f"{label}: {found.value:.2f} ({low:.2f} to {high:.2f}), truly {true:.2f}")
        assert abs(found.value - true) < 7 * found.variance**0.5  # fails once in 10^11 runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo/survey"))
    parser.add_argument("--check", action="store_true", help="send reports, count them, and end")
    given = parser.parse_args()
    if given.check:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))
        return
    prepare(given.out)
    reports, protocol = given.out / "reports", given.out / "protocol.json"
    print("Reports are counted, once the collector has ended or a file is an hour old, by")
    print(
        f"    mechdesign collect {reports} --protocol {protocol} --out {given.out / 'survey.agg'}"
    )
    subprocess.run(collector(given.out, 8000), check=False)


if __name__ == "__main__":
    main()
