"""Recompute every table and figure of the five sources.

python -m reproduction --out docs/reproduction.md
"""

from __future__ import annotations

import argparse
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from examples.sweeps import add_arguments, sweep
from reproduction.report import Claim, Outcome, Settings, Source, Verdict, table

SOURCES = ("count_mechanisms", "marginals", "succinct_histograms", "ranges", "central", "grids")
"""Modules of this package, each with a `SOURCE`."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("docs/reproduction.md"), help="the page to write"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few users and repetitions: shows that everything runs, in a minute",
    )
    parser.add_argument("--data", type=Path, help="a directory with adult.csv and taxis.csv")
    parser.add_argument(
        "--source", choices=SOURCES, action="append", help="only this one; may be repeated"
    )
    add_arguments(parser, os.cpu_count() or 1, ", this repository and the data")
    options = parser.parse_args()
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    names = options.source or SOURCES
    settings = Settings(options.quick, options.data)
    places = [(name, i) for name in names for i in range(len(load(name).claims))]
    cases = [(*place, settings) for place in places]
    outcomes = dict(
        zip(
            places, sweep(outcome, cases, options.workers, options.scheduler, "claims"), strict=True
        )
    )
    text = page(names, outcomes, settings)
    aside = options.out.with_suffix(".part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(options.out)
    counts = Counter(found.verdict for found in outcomes.values())
    print(
        f"{options.out}: "
        + ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    )


def load(name: str) -> Source:
    return import_module(f"reproduction.{name}").SOURCE


def outcome(name: str, i: int, settings: Settings) -> Outcome:
    """What comes of a claim."""
    return load(name).claims[i].compute(settings)


def page(
    names: Sequence[str], outcomes: Mapping[tuple[str, int], Outcome], settings: Settings
) -> str:
    """The page, of claims by the name of their source and their number there."""
    total = Counter(found.verdict for found in outcomes.values())
    made = (
        "make reproduce"
        + (" QUICK=1" if settings.quick else "")
        + (" DATA=..." if settings.data else "")
    )
    lines = [
        "# What the sources claim, and what comes out here",
        "",
        f"Every table and figure of the five published sources, recomputed by `{made}` (mechdesign"
        f" {version('mechdesign')}, Python {platform.python_version()}, numpy {version('numpy')},"
        f" scipy {version('scipy')}). "
        + ("**A quick run: too few users and repetitions to judge by.** " if settings.quick else "")
        + (
            "Without the real data sets: claims about them are listed as not reproduced. "
            if settings.data is None
            else ""
        )
        + "The verdict is computed, by the tolerance that the remarks name; no entry is left out.",
        "",
        table(
            ["source", *(verdict.value for verdict in Verdict)],
            (
                [f"[{load(name).name}](#{anchor(load(name).name)})"]
                + [
                    sum(
                        found.verdict is verdict
                        for (at, _), found in outcomes.items()
                        if at == name
                    )
                    for verdict in Verdict
                ]
                for name in names
            ),
        ),
        "",
        "In all: " + ", ".join(f"{total[verdict]} {verdict.value}" for verdict in Verdict) + ".",
    ]
    for name in names:
        source = load(name)
        mine = [(claim, outcomes[name, i]) for i, claim in enumerate(source.claims)]
        lines += ["", f"## {source.name}", "", source.reference, "", summary(mine)]
        for claim, found in mine:
            if found.detail:
                lines += ["", f"### {claim.label}: {claim.shows}", "", found.detail]
    return "\n".join(lines) + "\n"


def summary(rows: Sequence[tuple[Claim, Outcome]]) -> str:
    return table(
        ["", "shows", "theirs", "ours", "verdict", "remarks"],
        (
            [
                f"**{claim.label}**",
                claim.shows,
                found.theirs,
                found.ours,
                found.verdict.value,
                found.remarks,
            ]
            for claim, found in rows
        ),
    )


def anchor(heading: str) -> str:
    """As the usual renderers make it."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c == "-")


if __name__ == "__main__":
    main()
