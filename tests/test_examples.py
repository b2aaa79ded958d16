"""The examples do what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mechdesign

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
# The commands of the virtual environment that runs the tests come first.
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for folder in (
        Path(mechdesign.__file__).parent,
        ROOT / "examples",
    ):  # the tests may be of an installed package
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path


def lines(text: str) -> set[str]:
    return {line for line in text.splitlines() if line}


def run(command: list[str], where: Path) -> str:
    done = subprocess.run(
        command, cwd=where, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "told", "figure"),
    [
        (
            "collect_frequencies",
            [
                "largest likelihood ratio of the draws: e^1.999999915, proved <= e^2: True",
                "3 sites, 6365 reports, refused: {'truncated': 1}; an aggregate takes 427 bytes",
                "22 of 24 intervals contain the truth",
            ],
            "frequencies.png",
        ),
        (
            "range_queries",
            [
                "predicted error of a range, the five best of 17 protocols",
                "RMSE over all 2016 ranges: predicted 0.0264, measured 0.0234",
            ],
            "cdf.png",
        ),
    ],
)
def test_examples_of_the_gallery_print_what_they_found(
    clone: Path, script: str, told: list[str], figure: str
) -> None:
    pytest.importorskip("statsmodels", reason="the example's data come with the extra 'data'")
    (command,) = re.findall(rf"^python examples/{script}.py --seed 1$", GALLERY, re.MULTILINE)
    assert set(told) <= lines(run(["bash", "-euc", command], clone))
    assert (clone / "demo" / figure).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--csv", "none.csv", "--column", "a", "--items", "1,2"], "cannot read none.csv"),
        (["--csv", "a.csv", "--column", "b", "--items", "1,2"], "no column 'b'; it has a"),
        (["--csv", "a.csv"], "--csv, --column and --items go together"),
        (["--csv", "a.csv", "--column", "a"], "the list of items must be public"),
        (["--items", "1,2"], "--csv, --column and --items go together"),
        (["--csv", "a.csv", "--column", "a", "--items", "1,1"], "at least two different items"),
        (["--csv", "a.csv", "--column", "a", "--items", "2,3"], "no answer in column 'a'"),
    ],
)
def test_the_example_says_what_is_wrong(clone: Path, arguments: list[str], complaint: str) -> None:
    (clone / "a.csv").write_text("a\n1\n")
    script = str(clone / "examples" / "collect_frequencies.py")
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=clone, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert complaint in done.stderr


def test_answers_that_are_no_items_are_left_out_and_counted(clone: Path) -> None:
    (clone / "a.csv").write_text("\ufeffa\n" + "yes\nno\nno\nsecret\n" * 100)
    (clone / "items.txt").write_text("no\nyes\n\n")
    script = "examples/collect_frequencies.py --csv a.csv --column a --seed 1 --items "
    shown = [
        run([sys.executable, *script.split(), given], clone) for given in ("items.txt", "no,yes")
    ]
    assert shown[0] == shown[1]
    assert shown[0].startswith("100 of 400 answers are no items and were left out\n")
    assert "3 sites, 300 reports" in shown[0]
    assert "secret" not in shown[0]


def test_numbers_beyond_the_domain_are_refused_or_moved_on_demand(clone: Path) -> None:
    (clone / "km.csv").write_text("km\n" + "".join(f"{k}\n" for k in range(1000)))
    script = ["examples/range_queries.py", "--csv", "km.csv", "--column", "km", "--seed", "1"]
    command = [sys.executable, *script]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "936 of 1000 numbers are not in 0 .. 63: give a larger --domain" in done.stderr
    assert done.stdout == ""
    assert "936 of 1000 numbers are not in 0 .. 63 and were moved" in run(
        [*command, "--clamp"], clone
    )


def test_the_count_is_optimal_and_released(clone: Path) -> None:
    pytest.importorskip("statsmodels", reason="the demo's data come with the extra 'data'")
    printed = run(
        [
            sys.executable,
            "-W",
            "error",
            str(ROOT / "examples" / "weakly_honest_release.py"),
            "--out",
            "demo",
        ],
        clone,
    )
    # Optima are not unique: only the loss that was minimised is the same for every solver.
    assert "  objective 456100/531441, bound 456100/531441, gap 0\n" in printed
    assert "\nWH+CM      0.85823  0.96551 " in printed
    assert "795 groups of 8 survey respondents" in printed
    assert re.search(r"\ntrue {7}2  1  5  2  3 .*\nreleased  ", printed) is not None
    assert {path.name for path in (clone / "demo").iterdir()} == {
        "wm.json",
        "heatmaps.png",
        "errors.png",
    }


def test_the_demo_says_what_is_missing_without_its_data(clone: Path) -> None:
    program = """
import sys, runpy
sys.modules["statsmodels"] = None
sys.argv = ["demo", "--out", "demo"]
runpy.run_path({!r}, run_name="__main__")
"""
    script = str(ROOT / "examples" / "weakly_honest_release.py")
    done = subprocess.run(
        [sys.executable, "-c", program.format(script)],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "'.[data]'" in done.stderr


def test_the_classifier_prints_what_its_page_shows(clone: Path) -> None:
    page = (ROOT / "docs" / "protocols" / "ranges" / "per-attribute.md").read_text("utf-8")
    shown = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]
    printed = run([sys.executable, "examples/private_classifier.py", "--out", "demo"], clone)
    assert lines(shown) <= lines(printed)
    assert (clone / "demo" / "classifier.png").read_bytes().startswith(b"\x89PNG")
    rows = "".join(f"{30 + k % 9},{9 + k % 2 * 4},40,{'<>'[k % 2]}50K\n" for k in range(20_000))
    (clone / "adult.csv").write_text("age,education_num,hr_per_week,income\n" + rows)
    command = [sys.executable, "examples/private_classifier.py", "--csv"]
    assert "10000 users; right for 1.000" in run([*command, "adult.csv"], clone)
    (clone / "other.csv").write_text("age\n3\n")
    for name, complaint in (("none.csv", "cannot read"), ("other.csv", "is no table of the Adult")):
        done = subprocess.run(
            [*command, name],
            cwd=clone,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert complaint in done.stderr


def test_the_figures_of_the_thesis_are_drawn(tmp_path: Path) -> None:
    run(
        [
            sys.executable,
            "-W",
            "error",
            str(ROOT / "examples" / "thesis_figures.py"),
            "--out",
            "figures",
        ],
        tmp_path,
    )
    assert len(list((tmp_path / "figures").glob("*.png"))) == 11


def test_the_figures_of_marginals_are_drawn(clone: Path) -> None:
    printed = run(
        [sys.executable, "examples/marginal_figures.py", "--quick", "--out", "demo"], clone
    )
    assert "the trips are made up" in printed
    assert "wrote 9 figures" in printed
    assert {path.name for path in (clone / "demo").iterdir()} == {
        f"figure-4.{k}.png" for k in range(2, 11)
    }


def test_the_figures_of_marginals_say_what_is_wrong(clone: Path) -> None:
    (clone / "trips.csv").write_text("pickup,dropoff\n2019-03-01 20:00:00,2019-03-01 20:10:00\n")
    script = str(clone / "examples" / "marginal_figures.py")
    for name, complaint in (
        ("none.csv", "cannot read none.csv"),
        ("trips.csv", "trips.csv is no file of taxi trips"),
    ):
        command = [sys.executable, script, "--taxi", name]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert complaint in done.stderr
