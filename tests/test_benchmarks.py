"""The comparison with other libraries: workers, environments and the page, with this project alone
and without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the comparison, which is no installed package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = ("environments", "page", "tasks", "worker")
    return SimpleNamespace(**{name: import_module(f"peers.{name}") for name in names})


@pytest.fixture
def worker(peers: SimpleNamespace) -> Iterator[Any]:
    with peers.environments.Worker(sys.executable, "here") as running:
        yield running


@pytest.mark.slow
def test_a_worker_answers(worker: Any) -> None:
    features = worker.ask("features")["value"]
    assert "import" in features
    assert set(features.values()) == {None}
    assert all("value" in answer for answer in worker.ask("probes")["value"].values())
    oracle = {"domain": 8, "epsilon": 1.0}
    found = worker.ask("accuracy", kind="GRR", **oracle, users=500, budget=0.0, least=5)["value"]
    assert found["repeats"] == 5
    assert worker.ask("client", kind="OUE, one by one", **oracle, budget=0.001)["value"]["rate"] > 0
    assert worker.ask("client", kind="nothing", **oracle, budget=0.001) == {"absent": True}
    assert "error" in worker.ask("client", kind="GRR", domain=8, epsilon=-1.0, budget=0.001)
    # An error ends nothing
    assert worker.ask("client", kind="GRR", **oracle, budget=0.001)["value"]["rate"] > 0


def test_errors_are_of_ranges_and_ranks(peers: SimpleNamespace) -> None:
    adapter = SimpleNamespace(
        ranges=lambda kind, domain, epsilon: lambda counts: [count + 1 for count in counts],
        quantiles=lambda kind, domain, epsilon, probabilities: (
            lambda counts: [0 for _ in probabilities]
        ),
    )
    options = {"kind": "", "domain": 3, "epsilon": 1.0, "users": 100, "budget": 0.0, "least": 3}
    # Three ranges of a cell are off by 1, two of two by 2, and the whole by 3.
    assert peers.worker.ranges(adapter, **options)["mse"] == [
        pytest.approx((3 * 1 + 2 * 4 + 9) / 6),
        0.0,
    ]
    below = peers.worker.bell(3, 100)[0] / 100
    assert peers.worker.quantiles(adapter, **options, probabilities=[0.9])["mse"][
        0
    ] == pytest.approx((0.9 - below) ** 2)


def test_a_worker_that_cannot_start_says_why(peers: SimpleNamespace) -> None:
    with peers.environments.Worker(sys.executable, "of_nothing") as running:
        for _ in range(2):
            assert running.ask("features") == {
                "error": "ModuleNotFoundError: No module named 'peers.adapters.of_nothing'"
            }


@pytest.mark.slow
def test_what_fails_is_recorded_and_shown(
    peers: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    environments, tasks = peers.environments, peers.tasks
    missing = environments.Peer("opendp", "no-such-library")
    # Installs, being there; the adapter's library is not
    broken = environments.Peer("pure_ldp", "pip", (), (("pip",),))
    records = {peer.adapter: environments.install(tmp_path, peer) for peer in (missing, broken)}
    assert records["opendp"]["error"].startswith(
        "ERROR: No matching distribution found for no-such-library"
    )
    assert (
        records["pure_ldp"]["features"]["import"]
        == "ModuleNotFoundError: No module named 'pure_ldp'"
    )
    assert records["pure_ldp"]["steps"][0]["features"] == records["pure_ldp"]["features"]
    # And nothing is made again
    assert environments.installed(tmp_path, broken) == records["pure_ldp"]

    ours = environments.Peer("here", "mechdesign")
    tiny = tasks.Size(
        repeats=1,
        budget=0.001,
        patience=0.0,
        users=300,
        heavy_users=500,
        draws=1000,
        least=3,
        share=0.01,
    )
    python = environments.python_of(tmp_path, broken)
    with (
        environments.Worker(sys.executable, "here") as here,
        environments.Worker(python, "pure_ldp") as there,
    ):
        records["here"] = {
            "seconds": 1.0,
            "features": here.ask("features")["value"],
            "versions": {"mechdesign": "0"},
            "steps": [],
        }
        said = {"here": here.ask("probes")["value"], "pure_ldp": there.ask("probes")["value"]}
        reported: list[str] = []
        results = tasks.measured({"here": here, "pure_ldp": there}, tiny, reported.append)
    text = peers.page.page((ours, missing, broken), records, said, results, tiny)

    assert len(reported) > 60
    assert (
        "| no-such-library | – | **no**: `ERROR: No matching distribution found for"
        " no-such-library` |" in text
    )
    assert "0 of 5 work; fails: import, frequency oracles" in text
    assert "| GRR | pure-ldp | fails: ModuleNotFoundError: No module named 'pure_ldp' |" in text
    for cells in (
        "| GRR | here |",
        "| tree, best, D = 1024 | here |",
        "| PEM | here |",
        "| truncated | here, secure |",
    ):
        assert cells in text
    assert all(
        "value" in answer
        for rows in results.values()
        for row in rows.values()
        for answer in row.get("here", [])
    )
    widths: list[int] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            widths = []
        else:
            widths.append(line.replace("\\|", "").count("|"))
            assert widths[0] == widths[-1], line
