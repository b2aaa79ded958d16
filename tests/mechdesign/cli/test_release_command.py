"""The command that releases a column: what it writes and what it refuses."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from mechdesign import named
from mechdesign.base.files import digest_of
from mechdesign.cli import main
from mechdesign.mechanism.device import Device

MECHANISM = named.geometric(8, alpha="9/10")


def test_release_replaces_the_column_and_keeps_only_what_is_named(wm: Path, here: Path) -> None:
    (here / "true.csv").write_text("ward,secret,count\nA,x,3\nB,y,0\nC,z,8\n")
    command = [
        "release",
        "wm.json",
        "--input",
        "true.csv",
        "--column",
        "count",
        "--keep",
        "ward",
        "--out",
        "released.csv",
        "--seed",
        "1",
    ]
    assert main(command) == 0
    with (here / "released.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["ward"] for row in rows] == ["A", "B", "C"]
    assert set(rows[0]) == {"ward", "count"}
    assert all(0 <= int(row["count"]) <= 8 for row in rows)
    first = (here / "released.csv").read_bytes()
    assert main(command) == 2
    assert main([*command, "--force"]) == 0
    assert (here / "released.csv").read_bytes() == first


def test_release_takes_what_the_device_takes_and_audit_asks_for_the_import(
    wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(wm.read_text())
    content["certificate"]["properties"].append("NOT-DEFINED")
    wm.write_text(json.dumps(content | {"digest": digest_of(content)}))
    (here / "true.csv").write_text("count\n3\n")
    command = "release wm.json --input true.csv --column count --out released.csv"
    assert Device(str(wm)).release(3) in range(9)
    assert main(command.split()) == 0
    assert main(["audit", "wm.json"]) == 1
    assert "import what defines it" in capsys.readouterr().err


def test_release_of_an_empty_column_is_refused(
    wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "true.csv").write_text("count\n")
    command = "release wm.json --input true.csv --column count --out released.csv"
    assert main(command.split()) == 2
    assert "no rows" in capsys.readouterr().err
    assert not (here / "released.csv").exists()


@pytest.mark.parametrize("wrong", ["9", "-1", "2.5", "", "x", "nan", "１"])
def test_a_bad_count_is_named_and_nothing_is_written(
    wrong: str, wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "true.csv").write_text(f"count,other\n3,a\n{wrong},b\n99,c\n")
    assert (
        main(
            [
                "release",
                "wm.json",
                "--input",
                "true.csv",
                "--column",
                "count",
                "--out",
                "released.csv",
            ]
        )
        == 2
    )
    assert "true.csv, line 3:" in capsys.readouterr().err
    assert not (here / "released.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--column absent", "no column 'absent'"),
        ("--column count --keep absent", "no column 'absent'"),
        ("--column count --keep count", "publish the true counts"),
        ("--column count --out nowhere/r.csv", "not a directory"),
    ],
)
def test_release_refuses_wrong_requests(
    arguments: str, reason: str, wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "true.csv").write_text("count\n3\n")
    out = "" if "--out" in arguments else " --out r.csv"
    assert main(f"release wm.json --input true.csv {arguments}{out}".split()) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("out", ["true.csv", "./true.csv"])
def test_release_never_replaces_its_own_input(
    out: str, wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "true.csv").write_text("count\n3\n\n")
    assert (
        main(
            [
                "release",
                "wm.json",
                "--input",
                "true.csv",
                "--column",
                "count",
                "--out",
                out,
                "--force",
            ]
        )
        == 2
    )
    assert "made from" in capsys.readouterr().err
    assert (here / "true.csv").read_text() == "count\n3\n\n"


def test_a_file_that_is_compressed_is_read(wm: Path, here: Path) -> None:
    (here / "true.csv.gz").write_bytes(gzip.compress(b"count\n3\n0\n"))
    command = "release wm.json --input true.csv.gz --column count --out released.csv"
    assert main(command.split()) == 0
    assert len((here / "released.csv").read_text().splitlines()) == 3


def test_the_command_says_what_it_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    MECHANISM.save("gm.json")
    Path("true.csv").write_text("ward|count\nA|3\nB|3\n")
    command = "release gm.json --input true.csv --column count --keep ward --out out.csv"
    assert main(command.split()) == 0
    shown = capsys.readouterr()
    assert shown.err == "mechdesign: read 2 rows of true.csv, separator '|', column 'count'\n"
    assert shown.out == "wrote out.csv: 2 counts\n"
    assert main([*command.split(), "--force", "--separator", "tab"]) == 2
    assert "no column 'count'; its header, split at '\\t'" in capsys.readouterr().err
