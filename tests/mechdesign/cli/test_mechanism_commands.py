"""The commands that design, audit, compare and plot: what they write, what they refuse."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import Mechanism, Metric, Privacy, named, tables
from mechdesign.base.files import digest_of
from mechdesign.cli import main
from mechdesign.losses import L0, binomial
from mechdesign.mechanism.comparison import StandardErrors


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
    assert "errors       RMSE 3.3414, unbiased SE 19.455" in shown
    certificate = Mechanism.load("wm.json").certificate
    assert certificate is not None
    assert certificate.gap == 0
    assert (here / "wm.png").read_bytes().startswith(b"\x89PNG")


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


def test_audit_reads_releases_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = tables.release([1, 4, 0], [3, 5, 3], "1/2", cache=False)
    release.save("table.json")
    assert main(["audit", "table.json"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(str(release.statement))
    assert "table.json: digest, mechanisms, privacy and released counts checked" in shown
    content = json.loads(Path("table.json").read_text())
    content["released"][0] = 9
    Path("table.json").write_text(json.dumps({**content, "digest": digest_of(content)}))
    assert main(["audit", "table.json"]) == 1
    assert "never gives 9" in capsys.readouterr().err
    content["released"][0] = 0
    content["mechanisms"] = [{**kept, "alpha": "9/10"} for kept in content["mechanisms"]]
    Path("table.json").write_text(json.dumps({**content, "digest": digest_of(content)}))
    assert main(["audit", "table.json"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("mechdesign: table.json: not private: ")
    assert error.endswith(" exceeds the 1.11111111111 that alpha allows\n")


def test_audit_of_a_missing_file_is_a_wrong_request(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "absent.json"]) == 2
    assert "absent.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ("--n 4 --alpha 1.5", 2, "(0, 1]"),
        ("--n 4 --alpha x", 2, "rational"),
        ("--n -1 --alpha 1/2", 2, "0 to 2^62"),
        ("--n 4 --alpha 1/2 --property XX", 2, "unknown property"),
        ("--n 4 --alpha 1/2 --loss M0", 2, "L0, L1"),
        ("--n 4 --alpha 1/2 --loss L-1", 2, "at least 0"),
        ("--n 4 --alpha 1/2 --prior 1,2", 2, "2 weights for 5 inputs"),
        ("--n 4 --alpha 1/2 --neighbours near", 2, "adjacent, all"),
        ("--n 4 --alpha 1/2 --out m.txt", 2, ".json"),
        ("--n 4 --alpha 1/2 --plot m.txt", 2, ".png"),
        ("--n 4 --alpha 1/2 --out absent/m.json", 2, "not a directory"),
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


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("--alpha 9/10 --property WH", 0, "of all optimal mechanisms (proved); there is no other"),
        ("--alpha 19/20 --neighbours all --loss L2", 0, "(proved); others are not excluded"),
        ("--alpha 9/10 --loss total", 2, "--canonical and --delta do not fit"),
    ],
)
def test_a_canonical_design_states_the_second_proof(
    arguments: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", "--n", "4", *arguments.split(), "--canonical"]) == code
    printed = capsys.readouterr()
    assert said in (printed.err if code else printed.out)


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
        "unbiased",
    ]
    assert "0.94737" in lines[2]
    assert "0.96854" in lines[3]
    assert "0.96169" in lines[4]
    assert "0.96551" in lines[5]
    assert "0.96551" in lines[7]


@pytest.mark.parametrize("prior", ["1,8,28,56,70,56,28,8,1", "binomial:1/2"])
def test_a_prior_is_given_alike_for_designing_and_comparing(
    prior: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"design --n 8 --alpha 9/10 --property CM --prior {prior} --out m.json"
    assert main(line.split()) == 0
    certificate = Mechanism.load("m.json").certificate
    assert certificate is not None
    assert certificate.loss == L0(prior=binomial(8, "1/2"))
    capsys.readouterr()
    assert main(f"compare --n 8 --alpha 9/10 --prior {prior} m.json".split()) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "for counts from the prior"
    assert f" {float(certificate.objective):.5f} " in shown[-2]
    for wrong in ("1,2", "binomial:2", "binomial:", "poisson:1", "1,8,28,56,70,56,28,8,-1"):
        assert main(f"compare --n 8 --alpha 9/10 --prior {wrong}".split()) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_compare_shows_a_loss_and_requirements_that_are_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "--loss L2 --distance 1 --worst-case --property OR:1 --within 1=1/2"
    assert main(f"compare --n 4 --alpha 9/10 {asked}".split()) == 0
    _, titles, *rows = capsys.readouterr().out.splitlines()
    assert "  worst L2 beyond 1  " in titles
    assert titles.split()[-2:] == ["OR:1", "within:1=1/2"]
    assert rows[0].split()[-2:] == ["-", "-"]
    (here / "costs.csv").write_text("0,1\n1,0\n")
    assert main(["compare", "--n", "1", "--alpha", "9/10", "--cost", "costs.csv"]) == 0
    assert "  costs.csv  " in capsys.readouterr().out.splitlines()[1]
    assert main(["compare", "--n", "4", "--alpha", "9/10", "--distance", "1"]) == 0
    assert "  L0 beyond 1  " in capsys.readouterr().out.splitlines()[1]
    for wrong in ("--loss mine.Steep", "--property mine", "--cost costs.csv"):
        assert main(f"compare --n 4 --alpha 9/10 {wrong}".split()) == 2
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", ["heatmap", "errors", "tail"])
def test_plot_draws_every_kind(kind: str, wm: Path, here: Path) -> None:
    assert main(f"plot wm.json --kind {kind} --out p.png".split()) == 0
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    assert main(f"plot wm.json --kind {kind} --out p.png".split()) == 2


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


@pytest.mark.parametrize("arguments", ["--n 100000 --loss L1", "--n 900 --neighbours all"])
def test_a_design_that_is_too_large_is_refused_at_once(
    arguments: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"design --alpha 9/10 {arguments} --out m.json".split()) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "would take about" in shown
    assert "--however-large" in shown
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("command", ["design", "compare"])
def test_a_ratio_beyond_floats_is_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--n", "2", "--alpha", "1e-400"]) == 0
    assert "1.00000" in capsys.readouterr().out


def test_the_command_line_takes_a_table_of_distances(tmp_path, capsys):
    table = tmp_path / "distances.csv"
    table.write_text("0,1, 2,\n1,0,1,2\n2,1,0,1\n,2,1,0\n")
    out = tmp_path / "m.json"
    assert (
        main(
            ["design", "--n", "3", "--alpha", "1/2", "--neighbours", str(table), "--out", str(out)]
        )
        == 0
    )
    mechanism = Mechanism.load(out)
    assert mechanism.privacy == Privacy(
        alpha="1/2",
        neighbours=Metric([[0, 1, 2, None], [1, 0, 1, 2], [2, 1, 0, 1], [None, 2, 1, 0]]),
    )
    assert mechanism.certificate is not None
    assert mechanism.certificate.optimal
    assert main(["audit", str(out)]) == 0
    assert "holds, exactly" in capsys.readouterr().out
    assert main(["design", "--n", "6", "--epsilon", "1", "--neighbours", "3"]) == 0
    assert "neighbours=3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("0,1\n1,0\n", "between 2 inputs"),
        ("0,x\nx,0\n", "'x' is not a distance"),
        ("0,1.0\n1.0,0\n", "not a distance"),
        ("0,-1\n-1,0\n", "not a distance"),
        ("0,1\n2,0\n", "symmetric"),
        ("", "without neighbours"),
        ("0,1\n", "square"),
        (None, "no such file: "),
    ],
)
def test_the_command_line_refuses_other_tables(content, reason, tmp_path, capsys):
    table = tmp_path / "distances.csv"
    if content is not None:
        table.write_text(content)
    assert main(["design", "--n", "3", "--alpha", "1/2", "--neighbours", str(table)]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.slow
def test_a_mechanism_for_totals(tmp_path, capsys):
    out = tmp_path / "total.json"
    words = f"design --n 3 --alpha 9/10 --loss total --property WH --out {out}".split()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "total        standard error of the unbiased estimate: 10." in said
    assert Mechanism.load(out).properties()["WH"]
    assert main([*words[:-2], "--distance", "1"]) == 2
    assert "--loss total" in capsys.readouterr().err


def test_errors_are_those_for_the_prior_that_is_given(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["design", "--n", "2", "--alpha", "1/2", "--out", "m.json", "--force"]
    assert main([*asked, "--prior", "8,1,1"]) == 0
    shown = capsys.readouterr().out
    mechanism, prior = Mechanism.load("m.json"), [Fraction(k, 10) for k in (8, 1, 1)]
    errors = StandardErrors.of(mechanism, prior)
    assert f"errors       {errors}  (for counts from the prior)" in shown
    assert f"L0           {float(mechanism.loss(L0(prior=prior))):.9f}" in shown
    assert "uniform" not in shown
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "(for uniformly distributed counts)" in shown
    assert "scaled L0" in shown
