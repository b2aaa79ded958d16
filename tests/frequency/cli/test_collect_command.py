"""The command collect as a daily job: what it may replace, refuses, and leaves alone."""

import base64
import os
import subprocess
import sys

import numpy as np
import pytest

from frequency import HRR
from frequency.storage import load_aggregate, save_aggregate, save_protocol, write_reports
from frequency.storage.collection import State
from mechdesign.cli import main

PROTOCOL = HRR(64, 2.0)


@pytest.fixture
def job(tmp_path, capsys):
    """Runs the same collection again; returns exit code, output and errors."""
    save_protocol(tmp_path / "protocol.json", PROTOCOL)
    (tmp_path / "reports").mkdir()

    def run(*more, out="aggregate.ldp", resume="state"):
        options = ["--protocol", tmp_path / "protocol.json", "--out", tmp_path / out]
        options += ["--refused", tmp_path / "refused.csv"]
        options += ["--resume", tmp_path / resume] if resume else []
        code = main(["collect", *map(str, [tmp_path / "reports", *options, *more])])
        return code, *capsys.readouterr()

    return run


def report(path, n, seed=1):
    values = np.random.default_rng(seed).integers(0, 64, n)
    reports = PROTOCOL.privatize(values, np.random.default_rng(seed))
    write_reports(path, PROTOCOL, reports)
    return PROTOCOL.aggregate(reports)


def test_a_daily_job_replaces_what_it_wrote(job, tmp_path):
    total = report(tmp_path / "reports" / "0.parquet", 500)
    (tmp_path / "reports" / "bad.parquet").write_text("hello")
    assert job()[0] == 1
    for day in (1, 2):
        total += report(tmp_path / "reports" / f"{day}.parquet", 500, day + 1)
        code, out, err = job()
        assert (code, err) == (1, "")
        assert f"{500 * (day + 1)} reports of {day + 1} files" in out
        assert load_aggregate(tmp_path / "aggregate.ldp", PROTOCOL) == total
    code, _, err = job(resume=None)
    assert (code, "exists; use --force" in err) == (2, True)


def test_batches_and_lines_beside_parquet_files(job, tmp_path):
    """Who sent a report again is no reason to fail; a line that is none is one."""
    total = report(tmp_path / "reports" / "0.parquet", 50)
    total += report(tmp_path / "reports" / "1.ldp", 50, 2)
    lines = tmp_path / "reports" / "2.b64"
    total += report(lines, 50, 3)
    message = PROTOCOL.single_reports_to_bytes(PROTOCOL.privatize([7]))[0]
    total += PROTOCOL.aggregate(PROTOCOL.single_reports_from_bytes([message]))
    lines.write_bytes(lines.read_bytes() + 2 * (base64.b64encode(message) + b" key\n"))
    code, out, err = job()
    assert (code, err) == (0, "")
    assert "151 reports of 3 files counted, 0 files refused" in out
    assert "2.b64: left out 1 repeated" in out
    assert load_aggregate(tmp_path / "aggregate.ldp", PROTOCOL) == total
    assert ",1,repeated" in (tmp_path / "refused.csv").read_text()
    report(tmp_path / "reports" / "3.b64", 50, 4)
    with (tmp_path / "reports" / "3.b64").open("a") as stream:
        stream.write("hello\n")
    code, out, err = job()
    assert (code, err) == (1, "")
    assert "3.b64: left out 1 malformed" in out
    assert load_aggregate(tmp_path / "aggregate.ldp", PROTOCOL).n == 201


@pytest.mark.parametrize("out", ["reports/a.ldp", "reports/a.LDP", "reports/b64/a.b64"])
def test_no_aggregate_is_written_where_reports_are_read(out, job, tmp_path):
    """The next run would take it for reports."""
    report(tmp_path / "reports" / "0.ldp", 50)
    code, _, err = job(out=out)
    assert (code, "or be read as reports the next time" in err) == (2, True)
    assert job(out="reports/a.agg")[0] == 0
    assert job(out="reports/a.agg")[0] == 0


def test_an_aggregate_is_no_file_of_reports(job, tmp_path):
    report(tmp_path / "reports" / "0.ldp", 50)
    save_aggregate(tmp_path / "reports" / "day.ldp", PROTOCOL.aggregate(PROTOCOL.privatize([1])))
    code, out, _ = job()
    assert (code, "day.ldp: no batch of reports: it holds 'aggregate', not reports" in out) == (
        *(1, True),
    )
    assert load_aggregate(tmp_path / "aggregate.ldp", PROTOCOL).n == 50


def test_where_there_are_no_files_of_reports(job, tmp_path):
    (tmp_path / "reports" / "x.b64.part").write_text("")
    code, _, err = job()
    assert code == 2
    assert "no file that ends in .parquet, .ldp, .b64 in" in err


@pytest.mark.parametrize("content", [b"precious", b"", None])
def test_what_is_no_aggregate_of_this_protocol_is_not_replaced(content, job, tmp_path):
    report(tmp_path / "reports" / "0.parquet", 500)
    assert job()[0] == 0
    target = tmp_path / "aggregate.ldp"
    if content is None:
        other = HRR(64, 1.0)
        save_aggregate(target, other.aggregate(other.privatize(np.arange(64))))
        content = target.read_bytes()
    target.write_bytes(content)
    code, _, err = job()
    assert (code, "exists; use --force" in err) == (2, True)
    assert target.read_bytes() == content
    assert job("--force")[0] == 0
    assert load_aggregate(target, PROTOCOL).n == 500


def test_an_aggregate_of_other_reports_is_not_replaced(job, tmp_path):
    """A slip of the pen: the output of another job of the same protocol."""
    report(tmp_path / "reports" / "0.parquet", 500)
    other = report(tmp_path / "other.parquet", 450, seed=7)
    save_aggregate(tmp_path / "other.ldp", other)
    code, _, err = job(out="other.ldp")
    assert (code, "of reports that are not in" in err) == (2, True)
    assert load_aggregate(tmp_path / "other.ldp", PROTOCOL) == other
    assert job(out="mine.ldp")[0] == 0
    assert job("--force", out="other.ldp")[0] == 0


def test_only_an_account_of_refused_files_is_replaced(job, tmp_path):
    report(tmp_path / "reports" / "0.parquet", 500)
    (tmp_path / "refused.csv").write_text("file,precious\n")
    code, _, err = job()
    assert (code, "refused.csv exists; use --force" in err) == (2, True)
    assert not (tmp_path / "state").exists()


def test_no_aggregate_when_every_file_is_refused(job, tmp_path):
    bad = tmp_path / "reports" / "bad.parquet"
    bad.write_text("hello")
    for resume in (None, "state"):
        code, out, err = job("--force", resume=resume)
        assert (code, "1 file refused" in out) == (1, True)
        assert "every file was refused" in err
        assert not (tmp_path / "aggregate.ldp").exists()
        assert "damaged" in (tmp_path / "refused.csv").read_text()
    report(tmp_path / "reports" / "0.parquet", 500)
    assert job()[0] == 1
    aggregate, inode = tmp_path / "aggregate.ldp", (tmp_path / "aggregate.ldp").stat().st_ino
    os.rename(tmp_path / "reports" / "0.parquet", tmp_path / "counted")
    code, _, err = job()  # what was counted is there, but of today's files there is none
    assert (code, "every file was refused" in err) == (1, True)
    assert aggregate.stat().st_ino == inode


def test_an_interrupt_says_what_is_kept(job, tmp_path, monkeypatch):
    report(tmp_path / "reports" / "0.parquet", 500)
    absorb = State.absorb

    def interrupted(self, part):
        absorb(self, part)
        raise KeyboardInterrupt

    monkeypatch.setattr(State, "absorb", interrupted)
    code, _, err = job()
    assert (code, "state keeps what was counted" in err) == (130, True)
    code, _, err = job(resume=None)
    assert (code, "nothing was written" in err) == (130, True)
    monkeypatch.undo()
    assert job()[0] == 0


LOST = """
import sys
from distributed import LocalCluster
from frequency.storage import distributed
from mechdesign.cli import main
distributed._PATIENCE = 0.5
if __name__ == "__main__":
    with LocalCluster(
        n_workers=0, processes=False, dashboard_address=":0", host="127.0.0.1", protocol="tcp"
    ) as cluster:
        code = main(["collect", *sys.argv[1:], "--scheduler", cluster.scheduler_address])
    sys.exit(code)
"""


@pytest.mark.slow
def test_a_lost_cluster_is_one_line_in_a_shell(tmp_path):
    save_protocol(tmp_path / "protocol.json", PROTOCOL)
    report(tmp_path / "0.parquet", 500)
    options = ["0.parquet", "--protocol", "protocol.json", "--out", "out", "--resume", "state"]
    run = subprocess.run(
        [sys.executable, "-c", LOST, *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 2
    assert [line for line in run.stderr.splitlines() if not line.startswith("files")] == [
        "mechdesign: the cluster has no worker, after 0.5 seconds; resume to go on"
    ]
    assert not (tmp_path / "out").exists()
