"""The command line as a whole: its help, its exit codes, and what is left when it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from frequency import GRR, Numeric, Schema, Survey
from frequency.storage import save_protocol
from mechdesign.cli import main

ROOT = Path(__file__).parents[3]


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--help"],
        *(
            [name, "--help"]
            for name in ("design", "audit", "explain", "release", "compare", "plot")
        ),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert "mechdesign " in capsys.readouterr().out.split("example", 1)[1]


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        ("desing --n 3 --alpha 1/2", "; did you mean design?"),
        ("design --n 3 --alpha 1/2 --propety WH", "--propety WH; did you mean --property?"),
        (
            "plan ranges --domain 8 --epsilon 1 --n 9 --xyz 3",
            "unrecognized arguments: --xyz 3",
        ),
        ("frobnicate", "'simulate')"),
    ],
)
def test_what_is_nearly_a_command_or_an_option_is_named(
    arguments: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == 2
    # Python 3.12 shows choices without quotes
    assert capsys.readouterr().err.replace("'", "").rstrip().endswith(end.replace("'", ""))


@pytest.mark.usefixtures("here")
def test_values_may_begin_with_a_minus_sign() -> None:
    """Ranges of negative numbers are values of the option before them; after -- nothing is."""
    words = ["design", "--n", "2", "--alpha", "1/2"]
    assert main([*words, "--outputs", "-1:3", "--out", "-1:3.json"]) == 0
    assert main(["audit", "--", "-1:3.json"]) == 0
    with pytest.raises(SystemExit):
        main([*words, "--outputs", "--force"])
    with pytest.raises(SystemExit):
        main(["audit", "-x:3.json"])


@pytest.mark.slow
def test_an_interrupt_stops_a_long_solve_at_once(here: Path) -> None:
    command = "design --n 240 --alpha 9/10 --loss L1 --property RM --property CM --out m.json"
    with subprocess.Popen(
        [sys.executable, "-m", "mechdesign", *command.split()],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            assert process.stderr is not None
            shown = iter(process.stderr.readline, b"")
            assert any(b"design n = 240" in line for line in shown)  # there for a minute
            process.send_signal(signal.SIGINT)
            errors = process.stderr.read()
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == b"mechdesign: interrupted; nothing was written"
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


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("audit none.json", "none.json"),
        ("release none.json --input a.csv --column a --out b.csv", "none.json"),
        ("compare-suppression none.csv --threshold 3 --epsilon 1", "none.csv"),
        ("plan ranges --domain 8 --n 9 --epsilon 1 --like none.csv", "none.csv"),
        ("privatize a.csv --protocol none.json --out a.parquet", "none.json"),
        ("query none.release", "none.release"),
        ("sample none.release --rows 1 --out a.csv", "none.release"),
        ("schema none.toml", "none.toml"),
        ("schema none.parquet --public", "none.parquet"),
    ],
)
def test_a_missing_file_is_named(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, path: str
) -> None:
    assert main(command.split()) == 2
    assert capsys.readouterr().err == f"mechdesign: no such file: {path}\n"


def test_other_errors_of_files_name_them_too(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(here)]) == 2
    assert capsys.readouterr().err == f"mechdesign: {here}: Is a directory\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mechdesign ", {"design", "plan", "collect", "query", "protocol"}),
        ("mechdesign pro", {"protocol"}),
        ("mechdesign plan --e", {"--epsilon", "--error"}),
        ("mechdesign query --co", {"--confidence"}),
        ("mechdesign design --out ", {"mine.json"}),
    ],
)
def test_a_shell_completes_the_commands_of_all_packages(
    line: str, expected: set[str], here: Path
) -> None:
    (here / "mine.json").touch()
    asked = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
    asked |= {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": "completions"}
    subprocess.run(
        [sys.executable, "-m", "mechdesign"],
        env={**os.environ, **asked, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        check=True,
    )
    found = {word.strip() for word in (here / "completions").read_text().split("\v")}
    assert found >= expected


def test_without_argcomplete_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert main(["plan", "count", "--domain", "4", "--epsilon", "1"]) == 0
    assert capsys.readouterr().out.startswith("the count of a group of 4")


FULL_DISK = """
import resource, sys
from mechdesign import plot
from frequency import GRR
from frequency.storage import save_protocol
from mechdesign.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
print(*(main([*line.split(), "--force"]) for line in sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_full_disk_leaves_every_output_as_it_was(wm: Path, here: Path) -> None:
    (here / "true.csv").write_text("count\n" + "3\n" * 100)
    commands = {
        "design --n 2 --alpha 1/2 --out": "d.json",
        "design --n 2 --alpha 1/2 --plot": "d.png",
        "release wm.json --input true.csv --column count --out": "r.csv",
        "plot wm.json --out": "p.pdf",
        "explain wm.json --plot": "e.png",
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
    assert run.stdout.splitlines()[-1] == "2 2 2 2 2 2 2"
    assert run.stderr.count("there is no room on the disk; nothing was written") == len(commands)
    assert sorted(here.iterdir()) == before
    assert {(here / name).read_text() for name in commands.values()} == {"precious"}


def test_conditions_without_quotes_are_told_to_have_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["query", "a.agg", "--where", "age", "15:"])
    assert 'arguments: 15:; what holds spaces needs quotes, such as --where "age 18:64"' in (
        capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        main(["query", "a.agg", "--were", "age"])
    assert "quotes" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "audit {}",
        "explain {}",
        "release {} --input true.csv --column count --out out.csv",
        "release wm.json --input {} --column count --out out.csv",
        "release-table {} --count a --size b --epsilon 1 --out out.csv",
        "compare-suppression {} --threshold 3 --epsilon 1",
        "compare --n 2 --alpha 1/2 {}",
        "plan ranges --domain 8 --n 9 --epsilon 1 --like {}",
        "plan count --domain 4 --epsilon 1 --ledger {}",
        "ledger {}",
        "ledger {} --epsilon 1",
        "query {}",
        "query {} --protocol p.json",
        "query a.agg --protocol {}",
        "sample {} --rows 1 --out out.csv",
        "privatize {} --protocol p.json --out out.parquet",
        "privatize true.csv --protocol {} --out out.parquet",
        "collect reports --protocol {} --out out.agg",
        "schema {}",
        "schema {} --public",
        "curate true.csv --schema {} --attribute count --epsilon 1 --out out.release",
    ],
)
def test_a_named_pipe_is_refused_and_not_waited_for(
    command: str, wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle = GRR(5, 1.0)
    asked = Schema([Numeric("count", low=0, high=4, whole=True)])
    (here / "true.csv").write_text("count\n1\n")
    (here / "reports").mkdir()
    save_protocol(here / "p.json", Survey(oracle, asked))
    (here / "a.agg").write_bytes(oracle.aggregate(oracle.privatize([1])).to_bytes())
    pipe = "pipe.json"
    if command.startswith("privatize {}") or command.endswith("--public"):
        pipe = "pipe.csv"
    elif "schema {}" in command:
        pipe = "pipe.toml"
    os.mkfifo(here / pipe)
    before = {*here.iterdir()}
    assert main(command.format(pipe).split()) in (1, 2)
    assert f"{pipe}: not a regular file" in capsys.readouterr().err
    assert {*here.iterdir()} - before <= {here / f"{pipe}.lock"}


def test_python_s_own_words_do_not_reach_the_user(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for content, told in [
        ("[" * 100_000, "nested deeper than 64"),
        ("9" * 4301, "a number of more than 4300 digits"),
    ]:
        (here / "x.json").write_text(content)
        assert main(["audit", "x.json"]) == 1
        assert told in capsys.readouterr().err

    def deep(*_: object, **__: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr("mechdesign.cli.mechanism_commands.design", deep)
    assert main(["design", "--n", "4", "--alpha", "9/10"]) == 2
    assert capsys.readouterr().err == "mechdesign: nested too deeply\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_standard_output_is_said_in_words(wm: Path) -> None:
    line = [sys.executable, "-c", "import sys; from mechdesign.cli import main; sys.exit(main())"]
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [*line, "audit", str(wm)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 2
    assert run.stderr == "mechdesign: there is no room on the disk; nothing was written\n"
