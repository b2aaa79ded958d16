"""Recompute every table and figure of the five sources.

python -m reproduction --out docs
python -m reproduction --figure 4.4 --out figures
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from examples import grid_figures, marginal_figures, thesis_figures
from mechdesign.evaluate import add_arguments, sweep
from reproduction.pages import SOURCES, load, overview, pages, read, records, write
from reproduction.report import Outcome, Settings


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("docs"),
        help="where to write reproduction.md, and the pages and claims.csv behind it",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few users and repetitions: shows that everything runs, in a minute",
    )
    parser.add_argument("--data", type=Path, help="a directory with adult.csv and taxis.csv")
    parser.add_argument(
        "--source",
        choices=SOURCES,
        action="append",
        help="only this one, and of the others what claims.csv has; may be repeated",
    )
    parser.add_argument(
        "--figure",
        action="append",
        metavar="NUMBER",
        help="draw this one into --out, and recompute no claim: 4.2 to 4.10 and 6.1 to 6.13 of the"
        " thesis, 1 to 18 of the paper on grids; may be repeated",
    )
    add_arguments(parser, os.cpu_count() or 1, ", this repository and the data")
    options = parser.parse_args()
    if options.figure:
        for number in options.figure:
            draw(number, options)
        return
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    names = options.source or SOURCES
    settings = Settings(options.quick, options.data)
    cases = [(name, i, settings) for name in names for i in range(len(load(name).claims))]
    found = sweep(outcome, cases, options.workers, options.scheduler, "claims")
    folder = options.out / "reproduction"
    folder.mkdir(parents=True, exist_ok=True)
    claims = folder / "claims.csv"
    kept = read(claims) if options.source and claims.exists() else []
    rows = [row for row in kept if row["source"] not in names]
    for name in names:
        mine = [one for one, case in zip(found, cases, strict=True) if case[0] == name]
        for path, text in pages(name, mine, settings).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        rows += records(name, mine)
    rows.sort(key=lambda row: SOURCES.index(row["source"]))
    write(claims, rows)
    front = overview(rows, settings)
    (options.out / "reproduction.md").write_text(front, encoding="utf-8")


def draw(number: str, options: argparse.Namespace) -> None:
    """A picture of one figure, by the example that draws it."""
    arguments = ["--figure", number, "--out", str(options.out)]
    if number.startswith("6."):
        thesis_figures.main(arguments)
        return
    arguments += ["--workers", str(options.workers)]
    arguments += ["--scheduler", options.scheduler] if options.scheduler else []
    arguments += ["--quick"] if options.quick else []
    (marginal_figures if number.startswith("4.") else grid_figures).main(arguments)


def outcome(name: str, i: int, settings: Settings) -> Outcome:
    """What comes of a claim."""
    return load(name).claims[i].compute(settings)


if __name__ == "__main__":
    main()
