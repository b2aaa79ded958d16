"""The command that plans: its table, its files and its exit codes."""

import sys
from fractions import Fraction

import matplotlib.image
import pytest

from mechdesign import Ledger, plan
from mechdesign.cli import main
from mechdesign.planning.planner import task_names


@pytest.mark.slow
def test_the_command_prints_the_table_and_writes_csv_and_figure(tmp_path, capsys):
    out, picture = tmp_path / "plan.csv", tmp_path / "plan.png"
    arguments = [
        "plan",
        "count",
        "--domain",
        "4",
        "--error",
        "0.3",
        "--detail",
        "loss=L0",
        "--detail",
        "properties=WH,CM",
    ]
    assert main([*arguments, "--out", str(out), "--plot", str(picture)]) == 0
    found = plan("count", 4, error="0.3", loss="L0", properties=["WH", "CM"])
    assert capsys.readouterr().out == f"{found}\nwrote {out}\nwrote {picture}\n"
    assert out.read_text() == found.csv()
    assert matplotlib.image.imread(picture).std() > 0.05
    assert main([*arguments, "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*arguments, "--out", str(out), "--force"]) == 0


def test_without_a_task_all_are_listed_with_an_example_that_works(capsys):
    assert main(["plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names, examples = [line.partition(":")[0] for line in lines[::2]], lines[1::2]
    assert names == list(task_names())
    for name, example in zip(names, examples, strict=True):
        program, command, *arguments = example.split()
        assert (program, command, arguments[0]) == ("mechdesign", "plan", name)
        if name not in ("conjunctions", "shaped"):  # which simulate for a while
            assert main(["plan", *arguments]) == 0
    capsys.readouterr()


def test_the_group_of_a_count_is_its_domain_or_its_n(capsys):
    outs = []
    for option in ("--domain", "--n"):
        assert main(["plan", "count", option, "4", "--epsilon", "1"]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] == f"{plan('count', 4, epsilon='1')}\n"


def test_the_command_on_several_days(capsys):
    arguments = ["plan", "frequencies", "--domain", "16", "--n", "1000", "--epsilon", "4"]
    more = ["--days", "30", "--changes", "1", "--day", "1/2"]
    assert main([*arguments, *more]) == 0
    found = plan("frequencies", 16, n=1000, epsilon="4", days=30, changes=1, day="1/2")
    printed = capsys.readouterr().out
    assert printed == f"{found}\n"
    assert "the reports of one day tell 0.5 at most" in printed
    assert main([*arguments, "--day", "1/2"]) == 2
    assert "give the days" in capsys.readouterr().err
    assert main([*arguments, "--detail", "days=3"]) == 2
    assert "--detail days" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_on_ranges_and_attributes(capsys):
    assert main(["plan", "ranges", "--domain", "32", "--n", "100000", "--epsilon", "1"]) == 0
    printed = capsys.readouterr().out
    assert "* Shaped: error" in printed
    assert "its error rests on the population: even" in printed
    assert main(["plan", "ranges", "--domain", "32", "--n", "100000", "--error", "0.01"]) == 0
    assert "candidate  epsilon  error" in capsys.readouterr().out
    assert (
        main(
            [
                "plan",
                "marginals",
                "--domain",
                "age=5,smokes=2,works=2",
                "--n",
                "99",
                "--epsilon",
                "1",
                "--detail",
                "k=3",
            ]
        )
        == 0
    )
    assert "marginals of 3 of 3 attributes of 5 x 2 x 2 values" in capsys.readouterr().out
    assert main(["plan", "conjunctions", "--domain", "4,4", "--n", "10000", "--epsilon", "1"]) == 0
    assert (
        main(
            [
                "plan",
                "heavy-hitters",
                "--domain",
                "16",
                "--n",
                "10000",
                "--epsilon",
                "2",
                "--detail",
                "text=true",
            ]
        )
        == 0
    )
    assert "strings of up to 2 bytes" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_under_a_central_promise(capsys, tmp_path):
    given_ = {"n": 100_000, "epsilon": "0.25", "delta": "1e-8"}
    command = ["plan", "frequencies", "--domain", "64", "--n", "100000", "--epsilon", "0.25"]
    command += ["--delta", "1e-8", "--trust"]
    for trust in ("shuffled", "curator"):
        out = tmp_path / f"{trust}.csv"
        assert main([*command, trust, "--out", str(out)]) == 0
        found = plan("frequencies", 64, trust=trust, **given_)
        assert capsys.readouterr().out == f"{found}\nwrote {out}\n"
        assert out.read_text() == found.csv()


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (
            2,
            "plan colours --domain 4 --n 5 --epsilon 1",
            "unknown task 'colours'; there are conjunctions, count",
        ),
        (2, "plan range --n 5", "did you mean ranges?"),
        (2, "plan count --domain 4", "exactly one of epsilon and error must be given, got none"),
        (
            2,
            "plan frequencies --domain 4 --n 5",
            "exactly two of n, epsilon and error must be given, got n",
        ),
        (2, "plan count --domain four --epsilon 1", "'four' is not a number"),
        (2, "plan count --epsilon 1", "plan count needs --domain (or --n)"),
        (2, "plan count --n 0 --epsilon 1", "the size of the group, 1 to 128"),
        (2, "plan ranges --n 9 --epsilon 1", "plan ranges needs --domain: the items of"),
        (2, "plan count --domain 4 --n 9 --epsilon 1", "give no n"),
        (2, "plan count --domain 4 --epsilon 0", "epsilon must be above 0"),
        (2, "plan count --domain 4 --epsilon 1 --detail loss", "--detail is NAME=VALUE"),
        (2, "plan count --domain 4 --epsilon 1 --detail size=3", "does not know size"),
        (2, "plan count --domain 4 --epsilon 1 --detail n=3", "--detail n: give it once"),
        (
            2,
            "plan count --domain 4 --epsilon 1 --detail loss=L0 --detail loss=L1",
            "--detail loss: give it once",
        ),
        (2, "plan count --domain 4 --epsilon 1 --plot x.txt", "must end in .png, .pdf, .svg"),
        (2, "plan count --domain 4 --epsilon 1 --out x.json", "must end in .csv"),
        (2, "plan count --domain 4 --epsilon 1 --ledger none.json", "none.json"),
        (2, "plan frequencies --domain 4 --n 9 --epsilon 1 --trust shuffled", "needs a delta"),
        (2, "plan frequencies --domain 4 --n 9 --epsilon 1 --trust me", "trust must be one of"),
        (2, "plan frequencies --domain 4 --n 9 --epsilon 1 --delta 1e-6", "a central promise"),
        (
            2,
            "plan frequencies --domain 4 --n 9 --epsilon 1 --trust shuffled --delta 2",
            "delta must be strictly between 0 and 1, got '2'",
        ),
        (2, "plan marginals --domain a=2,a=3 --n 9 --epsilon 1", "distinct names"),
        (
            1,
            "plan frequencies --domain 100 --n 10 --error 0.00001",
            "no candidate reaches an error of 1e-05",
        ),
    ],
)
def test_exit_codes_of_the_command(code, arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == code
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_takes_epsilon_from_a_ledger_and_leaves_it_alone(tmp_path, capsys):
    path, ledger = tmp_path / "ledger.json", Ledger("1")
    ledger.spend("0.75", "before")
    ledger.save(path)
    before = path.read_bytes()
    assert main(["plan", "count", "--domain", "4", "--ledger", str(path)]) == 0
    assert "epsilon = 0.25" in capsys.readouterr().out
    assert main(["plan", "count", "--domain", "4", "--ledger", str(path), "--epsilon", "0.3"]) == 1
    assert "more than the 0.25 that remains" in capsys.readouterr().err
    assert path.read_bytes() == before


OWN = """
from frequency import GRR

class Better(GRR):
    def variance(self, n, frequency=0.0):
        return 1e-9 + 0 * super().variance(n, frequency)
"""


def test_candidates_of_ones_own(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "my_oracles.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    asked = ["plan", "frequencies", "--domain", "64", "--n", "1000", "--epsilon", "1"]
    assert main([*asked, "--candidate", "my_oracles.Better"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Better" in lines[2] or "* Better" in "".join(lines)
    assert main([*asked, "--import", "my_oracles"]) == 0
    for wrong, message in (
        (["--candidate", "my_oracles.Worse"], "has no Worse"),
        (["--candidate", "Better"], "a module and a name"),
        (["--candidate", "no_such_module.Better"], "no_such_module"),
        (["--import", "no_such_module"], "no_such_module"),
    ):
        assert main([*asked, *wrong]) == 2
        assert message in capsys.readouterr().err


def test_a_population_to_predict_errors_on_comes_from_a_file(tmp_path, capsys):
    path = tmp_path / "before.csv"
    given = ["plan", "ranges", "--domain", "4", "--n", "1000", "--epsilon", "1", "--like"]
    for text in ("age,people\n0,5\n1,20\n2,40\n3,10\n", "5\n20\n40\n10\n"):
        path.write_text(text)
        assert main([*given, str(path)]) == 0
        expected = plan("ranges", 4, n=1000, epsilon=Fraction(1), like=[5, 20, 40, 10])
        assert capsys.readouterr().out == f"{expected}\n"
    path.write_text("people\n1\n2\nx\n4\n")
    assert main([*given, str(path)]) == 2
    assert "line 4 does not end in a number" in capsys.readouterr().err
    path.write_text("1\n2\n")
    assert main([*given, str(path)]) == 2
    assert "like must be 4 numbers, one for each item in order" in capsys.readouterr().err


@pytest.mark.slow
def test_records_to_predict_errors_on_come_from_a_file(tmp_path, capsys):
    path = tmp_path / "pilot.csv"
    given = ["plan", "conjunctions", "--domain", "a=4,b=3", "--n", "1000", "--epsilon", "1"]
    like = [[0, 2], [3, 1], [3, 1]]
    for header in ("", "a,b\n"):
        path.write_text(header + "".join(f"{a},{b}\n" for a, b in like))
        assert main([*given, "--like", str(path)]) == 0
        expected = plan("conjunctions", {"a": 4, "b": 3}, n=1000, epsilon=Fraction(1), like=like)
        assert capsys.readouterr().out == f"{expected}\n"
        assert "over the records given" in str(expected)
    for text, message in (
        ("a,b\n1,2\n1,x\n", "line 3 is not 2 integers"),
        ("1,2\n1\n", "line 2 is not 2 integers"),
        ("1,5\n", "5"),
        ("a,b\n", "like must"),
    ):
        path.write_text(text)
        assert main([*given, "--like", str(path)]) == 2
        assert message in capsys.readouterr().err
