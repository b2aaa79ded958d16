"""The commands about perturbation tables: judged, designed and exported."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import Privacy
from mechdesign.cli import main
from mechdesign.losses import L1
from mechdesign.perturbation import Disclosure, PerturbationTable, joint_curve, key_leak
from tests.mechdesign.perturbation.random_tables import published_rule

DESIGN = (
    "design-perturbation --largest 4 --noise 2 --variance 1 --protected 1 --objective L2"
    " --epsilon 1 --delta 1/4"
)


@pytest.fixture
def rule(here: Path) -> Path:
    published_rule().write("rule.csv")
    return here / "rule.csv"


def test_audit_and_explain_take_perturbation_tables(
    rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Disclosure(PerturbationTable.read(rule), 10)
    assert main(["audit", "rule.csv", "--threshold", "10"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{found}\n\n")
    assert "no noise varies with the key" in shown
    assert main(["explain", "rule.csv", "--threshold", "10"]) == 0
    assert capsys.readouterr().out.startswith(found.words)
    assert main(["explain", "rule.csv", "--threshold", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**found.json(), "keys_in_use": None}
    assert main(["audit", "rule.csv", "--protected", "100"]) == 0
    assert "in a cell of 100 or more" in capsys.readouterr().out


def test_files_of_tables_are_drawn_and_compared_as_mechanisms(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laws = [{0: 8}, {-1: 1, 0: 6, 1: 1}, {-1: 1, 0: 5, 1: 1, 2: 1}]
    table = PerturbationTable.of_laws(8, laws)
    table.write("t.csv")
    assert main(["explain", "t.csv", "--plot", "e.png", "--protected", "1"]) == 0
    assert main(["plot", "t.csv", "--out", "h.png", "--empty-key", "drawn"]) == 0
    assert all(Path(name).stat().st_size > 5000 for name in ("e.png", "h.png"))
    capsys.readouterr()
    assert main(["compare", "--n", "4", "--epsilon", "1", "t.csv"]) == 0
    *_, row = [line for line in capsys.readouterr().out.splitlines() if "t.csv" in line]
    cell = Disclosure(table).mechanism(4, Privacy.from_epsilon(1))
    assert f"{float(cell.loss(L1())):.4f}" in row
    assert cell.promise.delta == max(
        Disclosure(table).curve_of(c).at_ratio(1 / cell.promise.alpha) for c in range(4)
    )
    assert cell.audit().holds
    hidden = Disclosure(table, threshold=2, protected=1).mechanism(4, Privacy(alpha="1/2"))
    assert hidden.output_values.labels[:2] == ("0-1", "2")
    assert hidden.promise.neighbours == ((1, 2), (2, 3), (3, 4))
    assert hidden.audit().holds
    with pytest.raises(ValueError, match="the largest count"):
        Disclosure(table).mechanism(2001, Privacy(alpha="1/2"))


def test_a_designed_table_goes_to_every_tool(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"{DESIGN} --out one.csv".split()) == 0
    shown = capsys.readouterr().out
    assert "proved: gap exactly 0" in shown
    assert "wrote one.csv" in shown
    table = PerturbationTable.read("one.csv")
    assert (table.keys, table.period) == (256, 1)
    assert all(table.bias(count) == 0 and table.variance(count) <= 1 for count in range(5))
    assert key_leak(table, 4).chi_squared < 1.1 * key_leak(table, 4).least
    assert main(["audit", "one.csv", "--protected", "1"]) == 0
    assert "in order" not in capsys.readouterr().out
    for form in ("tau-argus", "sas", "ons"):
        assert main(f"export-perturbation one.csv --form {form} --out two.txt --force".split()) == 0
        other = PerturbationTable.read("two.txt")
        assert other.keys != 256 or other == table  # the noise that is published is the same
        assert [other.law(c) for c in range(9)] == [table.law(c) for c in range(9)]
    words = "export-perturbation one.csv --order rising --keys 64 --out three.csv"
    assert main(words.split()) == 0
    assert "rounded to 64 keys" in capsys.readouterr().out
    assert len(PerturbationTable.read("three.csv").rows[-1]) <= 5
    assert main(["explain", "one.csv", "--json"]) == 0
    keys = json.loads(capsys.readouterr().out)["keys_in_use"]
    assert keys["count"] == table.largest
    joint, alone = (
        Fraction(keys[name]["1"]) for name in ("delta_of_two_cells", "delta_if_independent")
    )
    assert joint == joint_curve(table, [4, 4], 0).delta(1) >= alone > 0
    assert main(["audit", "one.csv"]) == 0
    assert f"one person more in one of two cells of {table.largest} that" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (f"{DESIGN} --stay 99/100", 1, "no noise meets"),
        ("design-perturbation --largest 4 --noise 2", 2, "needs an epsilon"),
        ("audit absent.csv", 2, "absent.csv"),
        ("audit bad.csv", 2, "no perturbation table"),
        ("audit bad.json --threshold 3", 2, "--threshold, --protected and --empty-key are for"),
        ("explain bad.csv --prior 1,2", 2, "--prior is for"),
        ("export-perturbation rule.csv --form sas --out x.csv", 2, "the last row stands"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: str, code: int, reason: str, rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.csv").write_text("a,b\n1,2\n")
    Path("bad.json").write_text("{}")
    assert main(arguments.split()) == code
    shown = capsys.readouterr().err
    assert reason in shown
    assert len(shown.splitlines()) == 1
