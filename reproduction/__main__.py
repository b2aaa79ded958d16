"""Hold every table and figure of the five sources against this toolkit: `python -m reproduction --out REPRODUCTION.md`."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import Counter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from examples.sweeps import add_arguments, sweep
from reproduction.report import Claim, Outcome, Settings, Source, Verdict, table

SOURCES = ("count_mechanisms", "marginals", "succinct_histograms", "ranges", "central", "grids")
"""Modules of this package, each with a `SOURCE`."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("REPRODUCTION.md"), help="the page to write")
    parser.add_argument("--quick", action="store_true", help="few users and repetitions: shows that everything runs, in a minute")
    parser.add_argument("--data", type=Path, help="a directory with adult.csv and taxis.csv")
    parser.add_argument("--source", choices=SOURCES, action="append", help="only this one; may be repeated")
    add_arguments(parser, os.cpu_count() or 1, ", this repository and the data")
    options = parser.parse_args()
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    names = options.source or SOURCES
    settings = Settings(options.quick, options.data)
    begun = time.perf_counter()
    places = [(name, i) for name in names for i in range(len(load(name).claims))]
    cases = [(*place, settings) for place in places]
    outcomes = dict(zip(places, sweep(outcome, cases, options.workers, options.scheduler, "claims"), strict=True))
    text = page(names, outcomes, settings, time.perf_counter() - begun)
    aside = options.out.with_suffix(".part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(options.out)
    print(f"{options.out}: " + ", ".join(f"{count} {verdict.value}" for verdict, count in counts(outcomes.values()).items()))


def load(name: str) -> Source:
    return import_module(f"reproduction.{name}").SOURCE


def outcome(name: str, i: int, settings: Settings) -> tuple[Outcome, float]:
    """The outcome of a claim, and the seconds that it took."""
    begun = time.perf_counter()
    found = load(name).claims[i].compute(settings)
    return found, time.perf_counter() - begun


def counts(outcomes: object) -> Counter[Verdict]:
    return Counter(found.verdict for found, _ in outcomes)


def page(names: list[str], outcomes: dict[tuple[str, int], tuple[Outcome, float]], settings: Settings, seconds: float) -> str:
    total = counts(outcomes.values())
    made = "make reproduce" + (" QUICK=1" if settings.quick else "") + (" DATA=..." if settings.data else "")
    lines = [
        "# What the sources claim, and what comes out here",
        "",
        f"Every table and figure of the five published sources, recomputed by `{made}` "
        f"(mechdesign {version('mechdesign')}, Python {platform.python_version()}, numpy {version('numpy')}, "
        f"scipy {version('scipy')}; {seconds / 60:.0f} minutes). "
        + ("**A quick run: too few users and repetitions to judge by.** " if settings.quick else "")
        + ("Without the real data sets: claims about them are listed as not reproduced. " if settings.data is None else "")
        + "The verdict is computed, by the tolerance that the remarks name; no entry is left out.",
        "",
        table(
            ["source", *(verdict.value for verdict in Verdict)],
            (
                [f"[{load(name).name}](#{anchor(load(name).name)})"]
                + [sum(o.verdict is verdict for (at, _), (o, _) in outcomes.items() if at == name) for verdict in Verdict]
                for name in names
            ),
        ),
        "",
        "In all: " + ", ".join(f"{total[verdict]} {verdict.value}" for verdict in Verdict) + ".",
    ]
    for name in names:
        source = load(name)
        mine = [(claim, *outcomes[name, i]) for i, claim in enumerate(source.claims)]
        lines += ["", f"## {source.name}", "", source.reference, "", summary(mine)]
        for claim, found, _ in mine:
            if found.detail:
                lines += ["", f"### {claim.label}: {claim.shows}", "", found.detail]
    return "\n".join(lines) + "\n"


def summary(rows: list[tuple[Claim, Outcome, float]]) -> str:
    return table(
        ["", "shows", "theirs", "ours", "verdict", "remarks", "s"],
        (
            [f"**{claim.label}**", claim.shows, found.theirs, found.ours, found.verdict.value, found.remarks, f"{seconds:.0f}"]
            for claim, found, seconds in rows
        ),
    )


def anchor(heading: str) -> str:
    """As the usual renderers make it."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c == "-")


if __name__ == "__main__":
    main()
