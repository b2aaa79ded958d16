"""A cluster of two processes does what one process does, also when one of the two is killed in the
middle.
"""

import os
import signal
import threading
import time
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from frequency import HRR, InvalidValue
from frequency.exceptions import WorkersLost
from frequency.marginals import Domain, InpHT
from frequency.storage import aggregate_files, distributed, parquet, write_reports
from frequency.storage.collection import State
from frequency.storage.protocol_file import SUFFIXES
from rangeq import HierarchicalHistogram
from tests.frequency.storage.dying import Dying


def values(domain, n):
    return np.random.default_rng(1).integers(0, domain, n)


@pytest.mark.slow
def test_the_same_integers(client, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP", 4000)  # so that the large file is counted in pieces
    protocol = HierarchicalHistogram(256, 1.0, oracle="HRR")
    reports = protocol.privatize(values(256, 40_000), np.random.default_rng(2))
    for k, part in enumerate(np.array_split(reports[:20_000], 30)):
        write_reports(tmp_path / "reports" / f"{k}{SUFFIXES[k % 3]}", protocol, part)
    write_reports(tmp_path / "reports" / "large.parquet", protocol, reports[20_000:])
    content = (tmp_path / "reports" / "large.parquet").read_bytes()
    (tmp_path / "reports" / "cut.parquet").write_bytes(content[:5000])
    state = tmp_path / "state"
    for _ in range(2):
        collected = aggregate_files(
            protocol, tmp_path / "reports", client=client, batch=900, resume=state
        )
        assert collected.aggregate == protocol.aggregate(reports)
        assert (len(collected.counted), len(collected.refused)) == (31, 1)
    assert (
        aggregate_files(protocol, tmp_path / "reports", resume=state).aggregate
        == collected.aggregate
    )
    assert aggregate_files(protocol, [], client=client).aggregate.n == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_worker_killed_in_the_middle(client, tmp_path):
    protocol = HRR(1 << 16, 1.0)
    reports = protocol.privatize(values(1 << 16, 400_000), np.random.default_rng(2))
    for k, part in enumerate(np.array_split(reports, 200)):
        write_reports(tmp_path / f"{k}.parquet", protocol, part)
    victims = list(client.run(os.getpid).values())
    killed = threading.Event()

    def kill():
        time.sleep(0.3)
        os.kill(victims[0], signal.SIGKILL)
        killed.set()

    done: list[Any] = []
    killer = threading.Thread(target=kill)
    killer.start()
    while not (killed.is_set() and len(done) > 1):  # one before or across the kill, one after it
        done.append(aggregate_files(protocol, tmp_path, client=client, batch=2000))
    killer.join()
    for collected in done:
        assert collected.aggregate == protocol.aggregate(reports)
        assert (len(collected.counted), collected.refused) == (200, {})
    client.wait_for_workers(2)
    assert victims[0] not in client.run(os.getpid).values()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_task_that_kills_workers(client, tmp_path, monkeypatch):
    protocol = HRR(64, 1.0)
    write_reports(tmp_path / "0.parquet", protocol, protocol.privatize(values(64, 100)))
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(WorkersLost, match="resume to go on"):
        aggregate_files(Dying(64, 1.0), tmp_path, client=client, resume=tmp_path / "state")
    client.wait_for_workers(2)
    collected = aggregate_files(protocol, tmp_path, client=client, resume=tmp_path / "state")
    assert (collected.aggregate.n, collected.refused) == (100, {})


@pytest.fixture
def threads(tmp_path):
    """A client of a cluster without workers, which would be threads of this process."""
    with (
        LocalCluster(
            n_workers=0, processes=False, dashboard_address=":0", local_directory=str(tmp_path)
        ) as cluster,
        Client(cluster, timeout=1) as client,
    ):
        yield client


def ten_files(place):
    protocol = HRR(64, 1.0)
    reports = protocol.privatize(values(64, 1000), np.random.default_rng(2))
    for k, part in enumerate(np.split(reports, 10)):
        write_reports(place / "reports" / f"{k}.parquet", protocol, part)
    return protocol, protocol.aggregate(reports)


def test_a_cluster_that_starts_workers_when_there_is_work(threads, tmp_path):
    protocol, expected = ten_files(tmp_path)
    threads.cluster.adapt(minimum=0, maximum=1, interval="50ms")
    assert threads.nthreads() == {}
    assert aggregate_files(protocol, tmp_path / "reports", client=threads).aggregate == expected


def test_a_cluster_without_workers_is_an_error(threads, tmp_path, monkeypatch):
    protocol, expected = ten_files(tmp_path)
    monkeypatch.setattr(distributed, "_PATIENCE", 0.3)
    state = tmp_path / "state"
    with pytest.raises(WorkersLost, match="no worker"):
        aggregate_files(protocol, tmp_path / "reports", client=threads, resume=state)
    assert aggregate_files(protocol, tmp_path / "reports", resume=state).aggregate == expected


@pytest.mark.parametrize("lost", ["workers", "scheduler", "client"])
def test_a_cluster_that_is_lost_in_the_middle(lost, threads, tmp_path, monkeypatch):
    protocol, expected = ten_files(tmp_path)
    monkeypatch.setattr(distributed, "_PATIENCE", 1)
    threads.cluster.scale(1)
    threads.wait_for_workers(1)
    absorb, state = State.absorb, tmp_path / "state"

    def absorbed(self, part):
        absorb(self, part)
        if len(self.files) == 2:
            if lost == "workers":
                threads.cluster.scale(0)
                while threads.nthreads():
                    time.sleep(0.01)
            else:
                (threads if lost == "client" else threads.cluster).close()

    monkeypatch.setattr(State, "absorb", absorbed)
    with pytest.raises(WorkersLost):
        aggregate_files(protocol, tmp_path / "reports", client=threads, resume=state, batch=100)
    monkeypatch.undo()
    assert State(protocol, state).settled.aggregate.n == 200
    assert aggregate_files(protocol, tmp_path / "reports", resume=state).aggregate == expected


@pytest.mark.slow
def test_reports_of_a_dask_dataframe(client):
    protocol, items = HRR(64, 1.0), values(64, 1000)
    frame = dd.from_pandas(pd.DataFrame({"item": items}), npartitions=4)
    reports = distributed.privatize(protocol, frame["item"], seed=7)
    assert reports.dtype == protocol.report_dtype
    expected = [
        protocol.privatize(part["item"].compute().to_numpy(), np.random.default_rng([7, k]))
        for k, part in enumerate(frame.partitions)
    ]
    assert np.array_equal(reports.compute(), np.concatenate(expected))
    assert distributed.aggregate(protocol, reports).compute() == protocol.aggregate(
        np.concatenate(expected)
    )
    unseeded = distributed.privatize(protocol, frame["item"])
    assert distributed.aggregate(protocol, unseeded).compute().n == 1000
    with pytest.raises(InvalidValue):
        distributed.privatize(HRR(8, 1.0), frame["item"]).compute()


@pytest.mark.slow
def test_records_of_a_dask_dataframe(client):
    protocol = InpHT(Domain({"a": 2, "b": 3}), 2, 2.0)
    people = pd.DataFrame({"b": values(3, 2000), "a": values(2, 2000), "name": "x"})
    reports = distributed.privatize(protocol, dd.from_pandas(people, npartitions=12), seed=1)
    aggregate = distributed.aggregate(protocol, reports).compute()
    assert aggregate.n == 2000
    assert aggregate == protocol.aggregate(reports.compute())
