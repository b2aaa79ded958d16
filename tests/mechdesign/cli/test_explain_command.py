"""The command that explains a mechanism: words, JSON, and a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mechdesign import Mechanism, explain, tables
from mechdesign.cli import main
from mechdesign.losses import binomial, prior


@pytest.mark.parametrize(
    ("option", "weights"),
    [
        ("", None),
        ("--prior binomial:1/3", binomial(8, "1/3")),
        ("--prior 1,2,3,4,5,4,3,2,1", prior([1, 2, 3, 4, 5, 4, 3, 2, 1])),
    ],
)
def test_explain_prints_what_the_module_says(
    option: str, weights: tuple[object, ...] | None, wm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    told = explain(Mechanism.load(wm), weights)
    assert main(f"explain wm.json {option}".split()) == 0
    assert capsys.readouterr().out == f"{told}\n"
    assert main(f"explain wm.json {option} --json".split()) == 0
    assert json.loads(capsys.readouterr().out) == told.to_dict()


@pytest.mark.slow
def test_explain_draws_a_page_and_json_stays_json(
    wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["explain", "wm.json", "--json", "--plot", "one.png"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["alpha"]["exact"] == "9/10"
    assert shown.err == "wrote one.png\n"
    assert (here / "one.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ("absent.json", 2, "absent.json"),
        ("wm.json --prior 1,2", 2, "2 weights for 9 inputs"),
        ("wm.json --prior binomial:3/2", 2, "[0, 1]"),
        ("wm.json --plot one.txt", 2, ".png"),
        ("wm.json --plot wm.json", 2, "would replace what it is made from"),
        ("bad.json", 1, "bad.json"),
    ],
)
def test_explain_refuses_in_one_line(
    arguments: str,
    code: int,
    reason: str,
    wm: Path,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (here / "bad.json").write_text("{}")
    capsys.readouterr()
    assert main(["explain", *arguments.split()]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert reason in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["table", "contingency"])
def test_explain_reads_released_tables(
    here: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    if kind == "table":
        release: Any = tables.release([1, 2, 0, 5], [3, 4, 5, 7], 1, cache=False)
    else:
        release = tables.release_contingency(
            [[1, 2], [0, 4]], {"a": ["x", "y"], "b": ["p", "q"]}, 1, within=["a"], cache=False
        )
    release.save("released.json")
    assert main(["explain", "released.json"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(str(release.statement))
    sizes = list(release.mechanisms)
    for size in (sizes[0], sizes[-1]):
        assert f"groups of at most {size}\n\n{explain(release.mechanisms[size])}" in shown
    assert ("4 sizes in all" in shown) == (kind == "table")
    assert main(["explain", "released.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [group["size"] for group in told["groups"]] == sizes
    assert main(["explain", "released.json", "--prior", "1,1"]) == 2
    assert "for the file of one mechanism" in capsys.readouterr().err
