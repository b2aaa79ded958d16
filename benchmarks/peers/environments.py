"""A fresh virtual environment for each library, what fails in it, and workers that run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parent.parent
ROOT = BENCHMARKS.parent
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
TIME_LIMIT = 120.0


@dataclass(frozen=True)
class Peer:
    """A library.

    Attributes
    ----------
    adapter
        Its file in `adapters`.
    package
        Its name on the package index.
    requirement
        What pip is asked for; the package itself if empty.
    steps
        Requirements to install beside it, one after the other, while something fails.
    """

    adapter: str
    package: str
    requirement: tuple[str, ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()


PEERS = (
    Peer("here", "mechdesign", ("--editable", str(ROOT))),
    Peer("opendp", "opendp"),
    Peer("diffprivlib", "diffprivlib", (), (("scikit-learn<1.8",),)),
    Peer(
        "pure_ldp",
        "pure-ldp",
        (),
        (("scikit-learn", "statsmodels"), ("xxhash<4",), ("numpy<2", "pandas<3")),
    ),
    Peer("multi_freq_ldpy", "multi-freq-ldpy", (), (("xxhash<4",),)),
    Peer("ldp_toolbox", "ldp-toolbox", (), (("xxhash<4",),)),
    Peer(
        "ldp_hierarchical",
        "ldp-hierarchical-mechanism",
        (),
        (("scipy<1.16",), ("pandas<3",), ("tqdm",)),
    ),
    Peer("python_dp", "python-dp"),
    Peer("tmlt_core", "tmlt.core"),
    # What follows has no clients and no single noise: whether it installs and runs
    Peer("tmlt_analytics", "tmlt.analytics"),
    Peer("smartnoise_sql", "smartnoise-sql"),
    Peer("pipeline_dp", "pipeline-dp"),
    Peer("mbi", "mbi"),
    Peer("dp_accounting", "dp-accounting"),
    Peer("cell_key_perturbation", "cell_key_perturbation", (), (("pandas",),)),
)


class Worker:
    """A process that measures inside an environment; a context manager."""

    def __init__(self, python: Path | str, adapter: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed on exit
        self._process = subprocess.Popen(
            [str(python), "-m", "peers.worker", adapter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **THREADS, "PYTHONPATH": str(BENCHMARKS)},
            text=True,
        )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The worker's answer: see `worker`.

        A worker that has died or took too long gives an error for this task and all later ones.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watch = threading.Timer(TIME_LIMIT, self._process.kill)
        watch.start()
        try:
            stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        late = not watch.is_alive()
        watch.cancel()
        if line:
            return json.loads(line)
        self._errors.seek(0)
        last = [text for text in self._errors.read().splitlines() if text.strip()]
        return {
            "error": (
                f"no answer in {TIME_LIMIT:g} s"
                if late
                else last[-1].strip()
                if last
                else "the process ended"
            )
        }

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def python_of(folder: Path, peer: Peer) -> Path:
    return folder.resolve() / peer.adapter / "bin" / "python"


def run(command: list[str]) -> str | None:
    """None, or why it failed: the last line that says ERROR, or the last line of all."""
    done = subprocess.run(
        command, env={**os.environ, **THREADS}, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()] or [
        f"exit {done.returncode}"
    ]
    return next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1])


def install(folder: Path, peer: Peer) -> dict[str, Any]:
    """Make a new environment and try the library; return the record.

    The record is also kept as record.json in the environment.

    Members: "seconds" of installing; "error" if that failed; "versions" in the end; "features", of
    each the error or None; and "steps", for each that was needed its requirements and the features
    after it.
    """
    home = folder.resolve() / peer.adapter
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    python = str(python_of(folder, peer))
    record: dict[str, Any] = {}
    start = time.perf_counter()
    failed = run([sys.executable, "-m", "venv", str(home)])
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    failed = failed or run([*pip, *(peer.requirement or (peer.package,))])
    record["seconds"] = time.perf_counter() - start
    if failed:
        record["error"] = failed
    else:
        features = record["features"] = tried(python, peer)
        record["steps"] = []
        for requirements in peer.steps:
            if not any(features.values()):
                break
            failed = run([*pip, *requirements])
            features = {"installation": failed} if failed else tried(python, peer)
            record["steps"].append({"requirements": " ".join(requirements), "features": features})
        with Worker(python, peer.adapter) as worker:
            record["versions"] = worker.ask("versions", packages=[peer.package, "numpy"]).get(
                "value", {}
            )
    home.mkdir(exist_ok=True)
    # Errors name files; where the folder is does not matter
    text = json.dumps(record).replace(str(folder.resolve()), folder.name)
    (home / "record.json").write_text(text)
    return json.loads(text)


def tried(python: str, peer: Peer) -> dict[str, str | None]:
    """For every feature None, or why it does not work."""
    with Worker(python, peer.adapter) as worker:
        answer = worker.ask("features")
        return answer.get("value") or {"import": answer["error"]}


def installed(folder: Path, peer: Peer) -> dict[str, Any]:
    """The record of an environment that is there, or else of one made now."""
    path = folder / peer.adapter / "record.json"
    return json.loads(path.read_text()) if path.exists() else install(folder, peer)
