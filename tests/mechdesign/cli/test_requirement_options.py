"""The options of ``design`` that state requirements, costs, outputs and pairs of counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import Bands, CountPairs, Counts, Mechanism
from mechdesign.cli import main
from mechdesign.losses import Costs
from mechdesign.properties import resolve

OWN = """
from fractions import Fraction
from mechdesign import Constraints, Property
from mechdesign.losses import Loss

class {name}(Property):
    "The two ends are reported equally often."
    short = "{name}"

    def constraints(self, at, privacy):
        yield Constraints.equal(at[0, 0], at[-1, -1])

class {name}Loss(Loss):
    def cost(self, output, input):
        return Fraction(max(2 * (output - input), input - output))
"""


def designed(*words: str) -> Mechanism:
    assert main(["design", *words, "--out", "m.json", "--force"]) == 0
    return Mechanism.load("m.json")


@pytest.fixture
def module(here: Path) -> Iterator[str]:
    name = "own_ends_of_a_test"
    Path(f"{name}.py").write_text(OWN.format(name="OwnEnds"))
    before = [*sys.path]
    yield name
    sys.modules.pop(name, None)
    sys.path[:] = before


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ("--at-least 0,0=0.6 --at-least 4,4=3/5", ["at-least:0,0=3/5", "at-least:4,4=3/5"]),
        ("--at-most 4,0=1/50", ["at-most:4,0=1/50"]),
        ("--within 1=0.8", ["within:1=4/5"]),
        ("--outputs -6:10 --unbiased", ["unbiased"]),
        ("--property CM --within 2=9/10", ["CM", "within:2=9/10"]),
    ],
)
@pytest.mark.usefixtures("here")
def test_requirements_hold_in_what_is_designed(options: str, texts: list[str]) -> None:
    mechanism = designed("--n", "4", "--alpha", "1/2", *options.split())
    assert mechanism.certificate is not None
    assert mechanism.certificate.optimal
    assert [item.text for item in mechanism.certificate.properties] == texts
    assert all(resolve(text).holds(mechanism) for text in texts)


@pytest.mark.usefixtures("here")
def test_a_linear_requirement_and_what_it_costs() -> None:
    plain = designed("--n", "2", "--alpha", "1/2").certificate
    text = "linear:P[0,0] + P[2,2] <= 1"
    bound = designed("--n", "2", "--alpha", "1/2", "--property", text).certificate
    assert plain is not None
    assert bound is not None
    assert plain.objective < bound.objective


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("-2:5", Counts(-2, 5)),
        ("0:3", Counts(0, 3)),
        ("0-1,2-3", Bands([(0, 1), (2, 3)])),
        ("0,1,2-9", Bands([(0, 0), (1, 1), (2, 9)])),
        ("-3--1,0-3", Bands([(-3, -1), (0, 3)])),
    ],
)
@pytest.mark.usefixtures("here")
def test_outputs_also_where_they_begin_with_a_minus_sign(
    text: str, outputs: Counts | Bands, joined: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"--outputs={text}"] if joined else ["--outputs", text]
    assert designed("--n", "3", "--alpha", "1/2", *words).output_values == outputs
    assert "Pr[" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_pairs_of_counts(capsys: pytest.CaptureFixture[str]) -> None:
    mechanism = designed("--n", "1,2", "--alpha", "1/2", "--loss", "L1")
    assert mechanism.input_values == mechanism.output_values == CountPairs(1, 2)
    assert "Pr[0,0 | 0,0]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [
        "0,1,2\n3/2,0,1\n2,1.5,0\n",
        "\ufeff0, 1 ,2\r\n3/2,0,1\r\n\r\n2,1.5,0\r\n",
        ",0,1,2\n0,0,1,2\n1,3/2,0,1\n2,2,1.5,0\n",
        "answer,0,1,2\n0,0,1,2\n1,3/2,0,1\n2,2,1.5,0\n",
        "0;1,0;2\n3/2;0;1\n2;1,5;0\n",
        "0,0\t1,0\t2,0\n1,5\t0\t1\n2\t1,5\t0\n",
        "answer;0;1;2\n0;0;1;2\n1;3/2;0;1\n2;2;1,5;0\n",
    ],
)
@pytest.mark.parametrize(
    "prior",
    [
        "1,1,2",
        "count;weight\n0;0,5\n1;0,5\n2;1\n",
        "0.5\n0.5\n1\n",
        "count,weight\n0,1\n1,1\n2,2\n",
    ],
)
@pytest.mark.usefixtures("here")
def test_a_table_of_costs(content: str, prior: str) -> None:
    Path("costs.csv").write_text(content)
    if "\n" in prior:
        Path("prior.csv").write_text(prior)
        prior = "prior.csv"
    mechanism = designed("--n", "2", "--alpha", "1/2", "--cost", "costs.csv", "--prior", prior)
    certificate = mechanism.certificate
    assert certificate is not None
    half = Fraction(3, 2)
    weights = (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    assert certificate.loss == Costs([[0, 1, 2], [half, 0, 1], [2, half, 0]], weights)
    assert certificate.optimal


@pytest.mark.usefixtures("here")
def test_weights_in_a_file_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    for text, says in (
        ("count,weight\n0,1\n1,many\n", "line 3 does not end in a number"),
        ("1\n2\n", "2 weights for 3 inputs"),
        ("0\n0\n0\n", "not all 0"),
        ("", "at least 0 and not all 0"),
    ):
        Path("prior.csv").write_text(text)
        words = ["design", "--n", "2", "--alpha", "1/2", "--prior", "prior.csv"]
        assert main(words) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("path", [False, True])
def test_properties_and_losses_of_ones_own(module: str, path: bool) -> None:
    given = ["--import", f"{module}.py" if path else module]
    words = ["--n", "3", "--alpha", "1/2", "--property", "OwnEnds", "--worst-case"]
    for _ in range(2):  # a module is imported once
        found = designed(*words, "--loss", f"{module}.OwnEndsLoss", *given).certificate
    assert found is not None
    assert found.loss.worst_case
    assert found.loss.cost(3, 1) == 4
    assert found.loss.cost(1, 3) == 2
    assert [item.text for item in found.properties] == ["OwnEnds"]
    assert main(["audit", "m.json", *given]) == 0


def test_modules_that_cannot_be_imported(
    module: str, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    (here / "broken_in_a_test.py").write_text("1 / 0\n")
    (here / "wrong_in_a_test.py").write_text("def\n")
    (here / "json.py").write_text("")
    words = ["design", "--n", "2", "--alpha", "1/2", "--import"]
    for name, reason in (
        ("broken_in_a_test.py", "ZeroDivisionError: division by zero"),
        ("broken_in_a_test", "ZeroDivisionError: division by zero"),
        ("wrong_in_a_test.py", "SyntaxError"),
        ("absent_in_a_test.py", "no such file: "),
        ("absent_in_a_test", "No module named"),
        ("json.py", "there is another module json"),
    ):
        assert main([*words, name]) == 2
        shown = capsys.readouterr().err
        assert reason in shown
        assert shown.count("\n") == 1
        assert name not in sys.modules
    assert main([*words, f"{module}.py", "--loss", f"{module}.OwnEnds"]) == 2
    assert "no class of losses" in capsys.readouterr().err
    assert main([*words, f"{module}.py", "--loss", f"{module}.Absent"]) == 2
    assert "has no Absent" in capsys.readouterr().err
    assert main([*words, f"{module}.py", "--loss", f"{module}.OwnEndsLoss", "--distance", "1"]) == 2
    assert "--distance fits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        ("--n 3 --at-least 0,0=2", 2, "lies in 0 to 1"),
        ("--n 3 --at-least 0=1/2", 2, "OUTPUT,INPUT=PROBABILITY"),
        ("--n 3 --at-least 0,0=x", 2, "finite rational number"),
        ("--n 3 --at-most 9,0=1/2", 1, "9 is not among"),
        ("--n 3 --within 1", 2, "DISTANCE=PROBABILITY"),
        ("--n 3 --within -1=1/2", 2, "DISTANCE=PROBABILITY"),
        ("--n 3 --property linear:P[0,0]", 2, "one of >=, <=, =="),
        ("--n 3 --property linear:P[9,0]>=1/2", 1, "has not"),
        ("--n 3 --outputs 0:2 --property WH", 2, "some inputs have no true"),
        ("--n 3 --outputs 5:2", 2, "high must be"),
        ("--n 3 --outputs 0-1,3-4", 2, "begins at 2, not at 3"),
        ("--n 3 --outputs a:b", 2, "--outputs is LOW:HIGH"),
        ("--n 3 --outputs 0-1,", 2, "--outputs is LOW:HIGH"),
        ("--n 3 --outputs 0-1,2-3 --unbiased", 2, "no values to add up"),
        ("--n 3 --unbiased", 1, "no mechanism meets unbiased and privacy at epsilon 0.693147"),
        ("--n 3 --at-least 0,0=3/5 --at-most 0,0=1/2", 1, "together, at any epsilon (proved)"),
        ("--n x", 2, "--n is a whole number"),
        ("--n 3,4,5", 2, "--n is a whole number"),
        ("--n 3,-4", 2, "must be"),
        ("--n 1,1 --property CM", 2, "pairs of counts have none"),
        ("--n 1,1 --outputs 0:3", 1, "pairs of counts"),
        ("--n 1,1 --loss total", 2, "for one count"),
        ("--n 3 --outputs 0:9 --loss total", 2, "for one count"),
        ("--n 3 --cost costs.csv --loss total", 2, "do not fit --loss total"),
        ("--n 3 --cost costs.csv --loss L1", 2, "takes the place"),
        ("--n 3 --cost absent.csv", 2, "absent.csv"),
        ("--n 3 --loss mine", 2, "L0, L1"),
        ("--n 3 --loss absent.Loss", 2, "No module named"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(
    options: str, code: int, reason: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", "--alpha", "1/2", *options.split()]) == code
    shown = capsys.readouterr()
    assert reason in shown.err
    assert shown.err.count("\n") == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "0 lines of costs for 3 outputs"),
        ("0,1,2\n1,0,1\n", "2 lines of costs for 3 outputs"),
        ("0,1,2\n1,0\n2,1,0\n", "2 costs for 3 inputs in row 2"),
        ("0,1,2\n1,0,1\n2,-1,0\n", "'-1' in row 3 is no cost"),
        ("0,1,2\n1,0,1\n2,,0\n", "'' in row 3 is no cost"),
        ("0,1,2\n1,nan,1\n2,1,0\n", "'nan' in row 2 is no cost"),
        (",0,1,3\n0,0,1,2\n1,1,0,1\n2,2,1,0\n", "the first line is 0, 1, 3, expected 0, 1, 2"),
        (",0,1,2\n0,0,1,2\n2,1,0,1\n1,2,1,0\n", "the first column is 0, 2, 1, expected 0, 1, 2"),
        ('0,1,2\n1,"0"x,1\n2,1,0\n', "is not a CSV file"),
    ],
)
def test_wrong_tables_of_costs(
    content: str, reason: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "costs.csv").write_text(content)
    assert main(["design", "--n", "2", "--alpha", "1/2", "--cost", "costs.csv"]) == 2
    shown = capsys.readouterr().err
    assert reason in shown
    assert shown.count("\n") == 1


@pytest.mark.usefixtures("here")
def test_bands_and_pairs_are_released() -> None:
    designed("--n", "5", "--alpha", "1/100", "--outputs", "0-1,2-5", "--loss", "L1")
    Path("true.csv").write_text("id,a,b\n1,0,1\n2,5,1\n3,3,0\n")
    words = ["release", "m.json", "--input", "true.csv", "--seed", "3", "--force"]
    assert main([*words, "--column", "a", "--keep", "id", "--out", "bands.csv"]) == 0
    header, *rows = Path("bands.csv").read_text().split()
    assert header == "id,a"
    assert {row.split(",")[1] for row in rows} <= {"0-1", "2-5"}
    designed("--n", "5,1", "--alpha", "1/100", "--loss", "L1")
    assert main([*words, "--column", "a,b", "--keep", "id", "--out", "pairs.csv"]) == 0
    header, *rows = Path("pairs.csv").read_text().split()
    assert header == "id,a,b"
    assert all(int(row.split(",")[1]) <= 5 and int(row.split(",")[2]) <= 1 for row in rows)
    assert len(rows) == 3


@pytest.mark.usefixtures("here")
def test_pairs_are_refused_where_they_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    designed("--n", "5,1", "--alpha", "1/100", "--loss", "L1")
    Path("true.csv").write_text("id,a,b\n1,0,1\n2,5,9\n")
    words = ["release", "m.json", "--input", "true.csv", "--out", "pairs.csv", "--column"]
    capsys.readouterr()
    for column, more, reason in (
        ("a", [], "takes pairs of counts, two columns, got 1"),
        ("a,b,id", [], "two columns, got 3"),
        ("a,c", [], "no column 'c'"),
        ("a,b", ["--keep", "b"], "--keep b would publish"),
        ("a,b", [], "line 3: '5', '9' is not an integer between 0 and 1"),
    ):
        assert main([*words, column, *more]) == 2
        shown = capsys.readouterr().err
        assert reason in shown
        assert not Path("pairs.csv").exists()
