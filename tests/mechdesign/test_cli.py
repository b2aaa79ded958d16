"""The command line: what it writes, what it refuses, and its exit codes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mechdesign import Mechanism, named
from mechdesign.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wm(here: Path) -> Path:
    assert (
        main(
            [
                "design",
                "--n",
                "8",
                "--alpha",
                "9/10",
                "--loss",
                "L0",
                "--property",
                "WH",
                "--property",
                "CM",
                "--out",
                "wm.json",
            ]
        )
        == 0
    )
    return here / "wm.json"


def test_design_prints_the_proof_and_writes_table_and_picture(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (
        "design --n 8 --alpha 9/10 --loss L0 --property WH --property CM --out wm.json --plot"
        " wm.png"
    )
    assert main(command.split()) == 0
    shown = capsys.readouterr().out
    assert "proved optimal, gap exactly 0" in shown
    assert "scaled L0    0.965511694" in shown
    assert "WH:yes" in shown
    certificate = Mechanism.load("wm.json").certificate
    assert certificate is not None
    assert certificate.gap == 0
    assert (here / "wm.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_overwritten_without_force(wm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = wm.read_bytes()
    command = ["design", "--n", "2", "--alpha", "1/2", "--out", "wm.json"]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert wm.read_bytes() == before
    assert main([*command, "--force"]) == 0
    assert Mechanism.load(wm) == named.geometric(2, "1/2")


def test_audit_accepts_the_file_and_refuses_one_that_lies(
    wm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "wm.json"]) == 0
    content = json.loads(wm.read_text())
    content["alpha"] = "99/100"
    wm.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["audit", "wm.json"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "digest" in shown.err


def test_audit_of_a_missing_file_is_a_wrong_request(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "absent.json"]) == 2
    assert "absent.json" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ("--n 4 --alpha 1.5", 2, "(0, 1]"),
        ("--n 4 --alpha x", 2, "rational"),
        ("--n -1 --alpha 1/2", 2, "at least 0"),
        ("--n 4 --alpha 1/2 --property XX", 2, "unknown property"),
        ("--n 4 --alpha 1/2 --loss M0", 2, "L0, L1"),
        ("--n 4 --alpha 1/2 --loss L-1", 2, "at least 0"),
        ("--n 4 --alpha 1/2 --prior 1,2", 2, "2 weights for 5 inputs"),
        ("--n 4 --alpha 1/2 --neighbours near", 2, "adjacent, all"),
        ("--n 4 --alpha 1/2 --out m.txt", 2, ".json"),
        ("--n 4 --alpha 1/2 --plot m.txt", 2, ".png"),
        ("--n 4 --alpha 1/2 --out absent/m.json", 2, "not a directory"),
        ("--n 4 --alpha 1/2 --worst-case --prior 1,1,1,1,1", 2, "no prior"),
    ],
)
def test_design_refuses_wrong_requests_in_one_line(
    arguments: str, code: int, reason: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", *arguments.split()]) == code
    shown = capsys.readouterr()
    assert reason in shown.err
    assert shown.err.count("\n") == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        "--n 3 --epsilon 0.5 --loss L1 --distance 1 --prior 1,2,2,1 --property OR:9/10",
        "--n 3 --alpha 1/2 --neighbours all --loss L0.5 --worst-case",
        "--n 3 --alpha 1/2 --neighbours 2 --loss L3/2",
        "--n 0 --alpha 1 --allow-zero-epsilon",
    ],
)
def test_design_takes_every_option(
    arguments: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", *arguments.split(), "--out", "m.json"]) == 0
    assert main(["audit", "m.json"]) == 0
    assert "gap exactly 0" in capsys.readouterr().out


def test_epsilon_is_rounded_to_the_private_side(here: Path) -> None:
    assert main(["design", "--n", "2", "--epsilon", "0.1", "--out", "m.json"]) == 0
    assert Mechanism.load("m.json").privacy.epsilon <= 0.1


def test_compare_lists_the_named_mechanisms_and_files(
    wm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["compare", "--n", "8", "--alpha", "9/10", "wm.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "for",
        "mechanism",
        "GM",
        "EM",
        "WM",
        "WM",
        "UM",
        "wm.json",
    ]
    assert "0.94737" in lines[2]
    assert "0.96854" in lines[3]
    assert "0.96169" in lines[4]
    assert "0.96551" in lines[5]
    assert "0.96551" in lines[7]


@pytest.mark.parametrize("kind", ["heatmap", "errors", "tail"])
def test_plot_draws_every_kind(kind: str, wm: Path, here: Path) -> None:
    assert main(f"plot wm.json --kind {kind} --out p.png".split()) == 0
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    assert main(f"plot wm.json --kind {kind} --out p.png".split()) == 2


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--help"],
        *([name, "--help"] for name in ("design", "audit", "release", "compare", "plot")),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert "mechdesign " in capsys.readouterr().out.split("example", 1)[1]


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


def test_files_of_the_same_name_are_both_shown_and_other_sizes_refused(
    wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "other").mkdir()
    named.uniform(8).save(here / "other" / "wm.json")
    assert main(["compare", "--n", "8", "--alpha", "9/10", "wm.json", "other/wm.json"]) == 0
    assert "other/wm.json" in capsys.readouterr().out
    assert main(["compare", "--n", "7", "--alpha", "9/10", "wm.json"]) == 2
    assert "as many inputs" in capsys.readouterr().err


def test_a_design_that_never_reports_some_counts_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["design", "--n", "7", "--alpha", "62/100", "--loss", "L1"]) == 0
    assert "never reports 0, 7" in capsys.readouterr().out


def test_an_interrupt_stops_a_long_solve_at_once(here: Path) -> None:
    command = "design --n 240 --alpha 9/10 --property WH --property RM --property CM --out m.json"
    with subprocess.Popen(
        [sys.executable, "-m", "mechdesign", *command.split()],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            assert process.stderr is not None
            shown = iter(process.stderr.readline, b"")
            assert any(b"interior point" in line for line in shown)  # there for half a minute
            process.send_signal(signal.SIGINT)
            errors = process.stderr.read()
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == b"mechdesign: interrupted; nothing was written"
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("command", ["design", "compare"])
@pytest.mark.parametrize("budget", ["--epsilon 0", "--epsilon 0.0", "--alpha 1"])
def test_epsilon_0_needs_a_word_of_its_own(
    command: str, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--n", "3", *budget.split()]) == 2
    assert "--allow-zero-epsilon if that is wanted" in capsys.readouterr().err
    assert main([command, "--n", "3", *budget.split(), "--allow-zero-epsilon"]) == 0


@pytest.mark.parametrize("arguments", ["--n 100000", "--n 900 --neighbours all"])
def test_a_design_that_is_too_large_is_refused_at_once(
    arguments: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"design --alpha 9/10 {arguments} --out m.json".split()) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "would take about" in shown
    assert "--however-large" in shown
    assert list(here.iterdir()) == []


def test_memory_that_is_not_there_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def filled(*_: object, **options: object) -> None:
        assert options["however_large"] is True
        raise MemoryError("Unable to allocate 74.5 GiB")

    monkeypatch.setattr("mechdesign.cli.mechanism_commands.design", filled)
    assert main(["design", "--n", "100000", "--alpha", "9/10", "--however-large"]) == 2
    shown = capsys.readouterr().err
    assert (
        shown == "mechdesign: this takes more memory than there is. Unable to allocate 74.5 GiB\n"
    )


@pytest.mark.parametrize("command", ["design", "compare"])
def test_a_ratio_beyond_floats_is_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--n", "2", "--alpha", "1e-400"]) == 0
    assert "1.00000" in capsys.readouterr().out


FULL_DISK = """
import resource, sys
from mechdesign import plot
from mechdesign.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
print(*(main([*line.split(), "--force"]) for line in sys.argv[1:]))
"""


def test_a_full_disk_leaves_every_output_as_it_was(wm: Path, here: Path) -> None:
    (here / "true.csv").write_text("count\n" + "3\n" * 100)
    commands = {
        "design --n 2 --alpha 1/2 --out": "d.json",
        "design --n 2 --alpha 1/2 --plot": "d.png",
        "release wm.json --input true.csv --column count --out": "r.csv",
        "plot wm.json --out": "p.pdf",
        "plan count --domain 4 --epsilon 1 --out": "l.csv",
        "plan count --domain 4 --epsilon 1 --plot": "l.svg",
    }
    for name in commands.values():
        (here / name).write_text("precious")
    before = sorted(here.iterdir())
    lines = [f"{command} {name}" for command, name in commands.items()]
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *lines], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "2 2 2 2 2 2"
    assert run.stderr.count("File too large") == len(commands)
    assert sorted(here.iterdir()) == before
    assert {(here / name).read_text() for name in commands.values()} == {"precious"}


def test_a_symbolic_link_that_leads_nowhere_is_refused_before_any_work(
    wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "link.png").symlink_to(here / "absent.png")
    assert main(["plot", "wm.json", "--out", "link.png", "--force"]) == 2
    assert "leads nowhere" in capsys.readouterr().err
    assert not (here / "absent.png").exists()
