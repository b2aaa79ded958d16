"""The pages of the documentation about the sources, and the table that they are made from."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from reproduction.report import (
    ERRORS,
    Claim,
    Outcome,
    Part,
    Settings,
    Source,
    Verdict,
    table,
)

SOURCES = ("count_mechanisms", "marginals", "succinct_histograms", "ranges", "central", "grids")
"""Folders of this package, each with a `SOURCE`."""
COLUMNS = (
    "source",
    "place",
    "claim",
    "kind",
    "public name",
    "printed",
    "computed",
    "tolerance",
    "seed",
    "verdict",
    "same as",
)
"""Of claims.csv. A number of a printed table has a row of its own, without a verdict of its own:
its claim's row comes before it.
"""
Row = dict[str, str]


def load(name: str) -> Source:
    source: Source = import_module(f"reproduction.{name}").SOURCE
    return source


def records(name: str, outcomes: Sequence[Outcome]) -> list[Row]:
    """The rows of a source: each claim, and after it the numbers of its table."""
    rows = []
    for claim, found in zip(load(name).claims, outcomes, strict=True):
        wrong = found.verdict in (Verdict.SOURCE_ERRS, Verdict.DIFFERS)
        cells = (
            name,
            claim.place,
            claim.shows,
            claim.kind.value if wrong and claim.kind else "",
            claim.by,
            claim.printed,
            found.computed,
            claim.tolerance,
            claim.seed,
            found.verdict.value,
            claim.same_as if found.verdict is Verdict.SOURCE_ERRS else "",
        )
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
        for number in found.numbers:
            place = f"{claim.place}: {number.place}"
            cells = (
                *(name, place, "a number of it", "", claim.by, number.printed, number.computed),
                *(claim.tolerance, claim.seed, "", ""),
            )
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: Iterable[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def anchor(heading: str) -> str:
    """As the usual renderers make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def link(name: str, place: str) -> str:
    """Where a claim's entry is, from the folder of all pages."""
    file = next(
        part.file for part in load(name).parts if any(claim.place == place for claim in part.claims)
    )
    return f"{name}/{file}.md#{anchor(place)}"


def entry(claim: Claim, found: Outcome, row: Row) -> str:
    """What was computed for a claim."""
    facts = [
        ("Printed", claim.printed),
        ("Computed", found.computed),
        ("By", f"`{claim.by}`" if claim.by else ""),
        ("Tolerance", claim.tolerance),
        ("Seed", claim.seed),
        ("Remarks", found.remarks.strip()),
    ]
    lines = [f"## {claim.place}", "", f"{claim.shows}: **{verdict_of(row)}**"]
    lines += ["", "<details><summary>what was computed</summary>", ""]
    lines += [f"- {what}: {escaped(text)}" for what, text in facts if text]
    if found.detail:
        lines += ["", found.detail]
    if found.numbers:
        cells = ([n.place, n.printed, n.computed] for n in found.numbers)
        lines += ["", table(["number", "printed", "computed"], cells)]
    return "\n".join([*lines, "", "</details>"])


def pages(name: str, outcomes: Sequence[Outcome], settings: Settings) -> dict[str, str]:
    """The page of a source, and one for each part of it, by their paths."""
    source = load(name)
    rows = [row for row in records(name, outcomes) if row["verdict"]]
    entries = {
        claim.place: entry(claim, found, row)
        for claim, found, row in zip(source.claims, outcomes, rows, strict=True)
    }
    return {f"{name}.md": contents(name, rows, settings)} | {
        f"{name}/{part.file}.md": part_page(name, part, entries, settings) for part in source.parts
    }


def contents(name: str, rows: Sequence[Row], settings: Settings) -> str:
    """The page of a source: its claims, linked to their entries, in a table for each part."""
    source, by_place = load(name), {row["place"]: row for row in rows}
    lines = [f"# {source.name}", "", source.reference]
    if source.left_out:
        lines += ["", source.left_out]
    lines += ["", *warnings(settings)]
    lines.append(
        "[All sources](../reproduction.md). A place is linked to what was computed for it."
    )
    for part in source.parts:
        mine = [by_place[claim.place] for claim in part.claims]
        cells = (
            [f"[{row['place']}]({link(name, row['place'])})", row["claim"], verdict_of(row)]
            for row in mine
        )
        lines += ["", f"## [{part.name}]({name}/{part.file}.md)"]
        lines += ["", table(["place", "claim", "verdict"], cells)]
    return "\n".join(lines) + "\n"


def part_page(name: str, part: Part, entries: Mapping[str, str], settings: Settings) -> str:
    """The page of a part of a source: the entry of each of its claims."""
    lines = [f"# {part.name}", "", *warnings(settings)]
    lines += [f"[{load(name).name}](../{name}.md), all entries."]
    for claim in part.claims:
        lines += ["", entries[claim.place]]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text as Markdown: what is printed has stars and underscores that mean themselves."""
    return text if "`" in text else re.sub(r"([*_<\[\]])", r"\\\1", text)


def verdict_of(row: Row) -> str:
    kind = f" ({row['kind']})" if row["kind"] else ""
    return row["verdict"] + kind + (f", as {row['same as']}" if row["same as"] else "")


def warnings(settings: Settings) -> list[str]:
    lines = []
    if settings.quick:
        lines += ["**A quick run: too few users and repetitions to judge by.**", ""]
    if settings.data is None:
        lines += ["Without the real data sets: claims about them are not reproduced.", ""]
    return lines


def overview(rows: Iterable[Row], settings: Settings) -> str:
    """The first page: a text, and for each source a table of places by verdict."""
    claims = [row for row in rows if row["verdict"]]
    count = {verdict: sum(row["verdict"] == verdict.value for row in claims) for verdict in Verdict}
    distinct = sum(
        row["verdict"] == Verdict.SOURCE_ERRS.value and not row["same as"] for row in claims
    )
    lines = [
        *warnings(settings),
        f"{len(claims)} claims: "
        + ", ".join(f"{number} {verdict.value}" for verdict, number in count.items())
        + f". Those where the source errs are {distinct} distinct errors"
        + " ("
        + ", ".join(
            f"{sum(row['kind'] == kind.value and not row['same as'] for row in claims)} of the kind"
            f" *{kind.value}*"
            for kind in ERRORS
        )
        + "): a slip that several places repeat is counted once.",
    ]
    for name in SOURCES:
        mine = [row for row in claims if row["source"] == name]
        if not mine:
            continue
        groups: dict[str, list[str]] = {}
        for verdict in Verdict:
            for row in sorted(
                (row for row in mine if row["verdict"] == verdict.value),
                key=lambda row: row["kind"],
            ):
                what = row["verdict"] + (f": {row['kind']}" if row["kind"] else "")
                place = f"[{row['place']}](reproduction/{link(name, row['place'])})"
                groups.setdefault(what, []).append(place)
        lines += [
            "",
            f"### [{load(name).name}](reproduction/{name}.md)",
            "",
            table(
                ["verdict", "", "places"],
                ([what, len(links), " · ".join(links)] for what, links in groups.items()),
            ),
        ]
    text = (Path(__file__).parent / "overview.md").read_text(encoding="utf-8")
    return text.replace("{tables}", "\n".join(lines))
