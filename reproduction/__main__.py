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

DRAWN = {
    number: example
    for example in (marginal_figures, thesis_figures, grid_figures)
    for number in example.NUMBERS
}
"""The example that draws a figure, by its number."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="where to write reproduction.md, and the pages and claims.csv behind it (default:"
        " docs), or pictures (default: figures)",
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
        help="draw this one into --out, and recompute no claim; may be repeated. Of the thesis:"
        f" {', '.join((*marginal_figures.NUMBERS, *thesis_figures.NUMBERS))}; of the paper on"
        f" grids: {', '.join(grid_figures.NUMBERS)}",
    )
    add_arguments(parser, os.cpu_count() or 1, ", this repository and the data")
    options = parser.parse_args()
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    for number in options.figure or ():
        if number not in DRAWN:
            parser.error(f"--figure {number} is not drawn; there are {', '.join(DRAWN)}")
    if options.figure:
        for number in options.figure:
            draw(number, options)
        return
    names, out = options.source or SOURCES, options.out or Path("docs")
    settings = Settings(options.quick, options.data)
    cases = [(name, i, settings) for name in names for i in range(len(load(name).claims))]
    found = sweep(outcome, cases, options.workers, options.scheduler, "claims")
    folder = out / "reproduction"
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
    (out / "reproduction.md").write_text(front, encoding="utf-8")


def draw(number: str, options: argparse.Namespace) -> None:
    """A picture of one figure, by the example that draws it."""
    arguments = ["--figure", number, "--out", str(options.out or Path("figures"))]
    example = DRAWN[number]
    if example is thesis_figures:
        thesis_figures.main(arguments)
        return
    arguments += ["--workers", str(options.workers)]
    arguments += ["--scheduler", options.scheduler] if options.scheduler else []
    arguments += ["--quick"] if options.quick else []
    if example is marginal_figures and options.data is not None:
        arguments += ["--taxi", str(options.data / "taxis.csv")]
    example.main(arguments)


def outcome(name: str, i: int, settings: Settings) -> Outcome:
    """What comes of a claim."""
    return load(name).claims[i].compute(settings)


if __name__ == "__main__":
    main()
