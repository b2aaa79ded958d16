"""Claims of the sources, what this toolkit computes for them, and the page that compares both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import SupportsFloat

import numpy as np


class Verdict(Enum):
    """The result of checking a claim."""

    REPRODUCED = "reproduced"
    """What was computed agrees with what is printed, within the tolerance of the remarks."""
    SOURCE_ERRS = "the source errs"
    """What is printed contradicts the source's own definitions; the remarks show how."""
    DIFFERS = "differs"
    """What was computed disagrees with what is printed, and the remarks say how far the cause is
    known.
    """
    NOT_REPRODUCED = "not reproduced"
    """Nothing was computed, for the reason in the remarks."""


@dataclass(frozen=True)
class Outcome:
    """A claim compared with a computation.

    `theirs` and `ours` are short texts, a few numbers each; `remarks` says settings, tolerance and
    causes; `detail` is a longer table in Markdown, shown below the summary.
    """

    theirs: str
    ours: str
    verdict: Verdict
    remarks: str = ""
    detail: str = ""


def agrees(holds: bool, otherwise: Verdict = Verdict.DIFFERS) -> Verdict:
    """`REPRODUCED` if the comparison that was made holds."""
    return Verdict.REPRODUCED if holds else otherwise


def errs(printed: bool, corrected: bool) -> Verdict:
    """`SOURCE_ERRS` if the printed statement fails and the corrected one holds.

    `REPRODUCED` if the printed statement holds, `DIFFERS` if both fail.
    """
    return Verdict.REPRODUCED if printed else Verdict.SOURCE_ERRS if corrected else Verdict.DIFFERS


@dataclass(frozen=True)
class Settings:
    """How thoroughly to compute.

    `quick` proves that everything runs; `data` is a directory with `adult.csv` and `taxis.csv`.
    """

    quick: bool
    data: Path | None


@dataclass(frozen=True)
class Claim:
    """One table, figure, or numbered result of a source. `compute` is what decides on it."""

    label: str
    shows: str
    compute: Callable[[Settings], Outcome]


@dataclass(frozen=True)
class Source:
    """A published text, and all that it claims by numbers or figures."""

    name: str
    reference: str
    claims: tuple[Claim, ...]


def not_reproduced(theirs: str, reason: str) -> Callable[[Settings], Outcome]:
    """For a claim that nothing here computes: the reason is printed."""
    return lambda _: Outcome(theirs, "-", Verdict.NOT_REPRODUCED, reason)


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    lines = [list(headings)]
    lines += [["---"] * len(lines[0])]
    lines += [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def judged(
    theirs: str,
    ours: str,
    printed: Mapping[str, bool | np.bool],
    true: Mapping[str, bool | np.bool] | None = None,
    remarks: str = "",
    detail: str = "",
) -> Outcome:
    """For a claim made of statements: reproduced if all that are `printed` hold.

    If not, the source errs if all corrections, `true`, hold; without corrections a statement that
    fails is a difference.
    """
    true = true or {}
    failing = [statement for statement, holds in printed.items() if not holds]
    wrong = Verdict.SOURCE_ERRS if true and all(true.values()) else Verdict.DIFFERS
    counted = (
        f"{len(printed) - len(failing)} of {len(printed)} statements hold"
        if len(printed) > 1
        else ""
    )
    rows = [("as printed", statement, holds) for statement, holds in printed.items()]
    rows += [("corrected", statement, holds) for statement, holds in true.items()]
    statements = table(
        ["", "statement", "holds"],
        ((kind, text, "yes" if holds else "**no**") for kind, text, holds in rows),
    )
    return Outcome(
        theirs,
        "; ".join(part for part in (ours, counted) if part),
        agrees(not failing, wrong),
        remarks,
        "\n\n".join(part for part in (statements, detail) if part),
    )


def figures(values: Iterable[SupportsFloat], places: int = 4) -> list[str]:
    return [f"{float(value):.{places}f}" for value in values]


def series(
    title: str,
    corner: str,
    x: Iterable[object],
    rows: Mapping[str, Iterable[SupportsFloat]],
    places: int = 4,
) -> str:
    """A table under its title: a row for each name, a column for each x."""
    return f"{title}\n\n" + table(
        [corner, *map(str, x)], ([name, *figures(values, places)] for name, values in rows.items())
    )


def near(a: float, b: float, relative: float = 1e-6) -> bool:
    return math.isclose(a, b, rel_tol=relative)


def most(cases: Iterable[bool]) -> bool:
    """More than half of them."""
    cases = list(cases)
    return 2 * sum(cases) > len(cases)
