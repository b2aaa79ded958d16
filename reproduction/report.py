"""What a source claims, what this toolkit makes of it, and the page that sets the two side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Verdict(Enum):
    """How a claim fared."""

    REPRODUCED = "reproduced"
    """What was computed agrees with what is printed, within the tolerance that the remarks state."""
    SOURCE_ERRS = "the source errs"
    """What is printed contradicts the source's own definitions; the remarks show how."""
    DIFFERS = "differs"
    """What was computed disagrees with what is printed, and the remarks say how far the cause is known."""
    NOT_REPRODUCED = "not reproduced"
    """Nothing was computed, for the reason in the remarks."""


@dataclass(frozen=True)
class Outcome:
    """A claim held against a computation.

    `theirs` and `ours` are short texts, a few numbers each; `remarks` says settings, tolerance and causes; `detail` is a longer
    table in Markdown, shown below the summary.
    """

    theirs: str
    ours: str
    verdict: Verdict
    remarks: str = ""
    detail: str = ""


def agrees(holds: bool, otherwise: Verdict = Verdict.DIFFERS) -> Verdict:
    """`REPRODUCED` if the comparison that was made holds."""
    return Verdict.REPRODUCED if holds else otherwise


@dataclass(frozen=True)
class Settings:
    """How thoroughly to compute: `quick` proves that everything runs; `data` is a directory with `adult.csv` and `taxis.csv`."""

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
