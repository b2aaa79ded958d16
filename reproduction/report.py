"""Claims of the sources, and what comes of them."""

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


class Kind(Enum):
    """Why a claim is not reproduced as printed."""

    FALSE_CLAIM = "false claim"
    """A statement that does not hold, and that others may build on."""
    CONSTANT = "constant"
    """A wrong factor, term or count: the statement holds with another."""
    MISPRINT = "misprint"
    """A slip of notation or of a caption, which the source itself does not follow."""
    AMBIGUOUS = "ambiguous"
    """One name or sign that has two meanings."""
    DATA = "data"
    """Difference: on other data than the source's."""
    BASELINE = "baseline"
    """Difference: what is compared with is better here than in the source."""
    UNEXPLAINED = "unexplained"
    """Difference: the cause is not known."""


ERRORS = (Kind.FALSE_CLAIM, Kind.CONSTANT, Kind.MISPRINT, Kind.AMBIGUOUS)


@dataclass(frozen=True)
class Number:
    """One printed number beside the one that is computed. `place` goes on from the claim's."""

    place: str
    printed: str
    computed: str


@dataclass(frozen=True)
class Outcome:
    """What comes of a claim.

    `computed` is a short text, a few numbers; `remarks` says settings and causes; `detail` is a
    longer text with tables in Markdown; `numbers` are those of a printed table, one by one.
    """

    computed: str
    verdict: Verdict
    remarks: str = ""
    detail: str = ""
    numbers: tuple[Number, ...] = ()


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


Compute = Callable[[Settings], Outcome]


@dataclass(frozen=True)
class Claim:
    """One table, figure, or numbered result of a source.

    Attributes
    ----------
    place
        In the source.
    shows
        What it is about.
    printed
        What is printed there, in short.
    compute
        What decides on it.
    by
        The public name that computes it; none where a formula is evaluated as it stands.
    tolerance
        Within which computed and printed agree.
    seed
        Of random draws.
    kind
        Why it is not reproduced, where it is not.
    same_as
        The place whose error this one repeats, which is counted there.
    """

    place: str
    shows: str
    printed: str
    compute: Compute
    by: str = ""
    tolerance: str = ""
    seed: str = ""
    kind: Kind | None = None
    same_as: str = ""


def claim(
    place: str,
    shows: str,
    printed: str,
    by: str = "",
    tolerance: str = "",
    seed: str = "",
    kind: Kind | None = None,
    same_as: str = "",
) -> Callable[[Compute], Claim]:
    """Make a `Claim` of the function that decides on it."""
    return lambda compute: Claim(place, shows, printed, compute, by, tolerance, seed, kind, same_as)


@dataclass(frozen=True)
class Part:
    """Claims of a source that belong together, and have a page: `file` is its name."""

    file: str
    name: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Source:
    """A published text, and all that it claims by numbers or figures.

    `papers` are the names of its texts, without extension; `left_out` says what claims nothing.
    """

    name: str
    reference: str
    parts: tuple[Part, ...]
    papers: tuple[str, ...]
    left_out: str = ""

    @property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(claim for part in self.parts for claim in part.claims)


def not_reproduced(reason: str) -> Compute:
    """For a claim that nothing here computes: the reason is printed."""
    return lambda _: Outcome("-", Verdict.NOT_REPRODUCED, reason)


def of_data(compute: Callable[[Settings, Path], Outcome]) -> Compute:
    """For what needs files of `Settings.data`."""

    def outcome(settings: Settings) -> Outcome:
        if settings.data is None:
            return not_reproduced("needs `--data`: a directory with adult.csv and taxis.csv")(
                settings
            )
        return compute(settings, settings.data)

    return outcome


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    lines = [list(headings)]
    lines += [["---"] * len(lines[0])]
    lines += [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def judged(
    computed: str,
    printed: Mapping[str, bool | np.bool],
    true: Mapping[str, bool | np.bool] | None = None,
    remarks: str = "",
    detail: str = "",
    numbers: tuple[Number, ...] = (),
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
        "; ".join(part for part in (computed, counted) if part),
        agrees(not failing, wrong),
        remarks,
        "\n\n".join(part for part in (statements, detail) if part),
        numbers,
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
