"""Statements of what the release of a whole table reveals about one person, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

from mechdesign.base.text import aligned, brief, listed, rounded_up
from mechdesign.privacy import Privacy

Neighbours: TypeAlias = Literal["changed", "added"]
"""One person moves to another cell of their group; or is in the counts or not."""


@dataclass(frozen=True)
class TableStatement:
    """Who is protected by the release of a table, and how well; ``str()`` is for readers.

    A released table is a product of independent draws, one for each cell. If one person's answer
    changes, so do the counts of at most ``overlap`` cells, and the probability of every possible
    table changes by a factor of at most (1 / alpha)^overlap.

    Attributes
    ----------
    cells : int
        How many counts are released.
    overlap : int
        In how many cells one person can be. That is the one assumption about the data.
    privacy : Privacy
        That of each cell.
    ratio : Fraction
        The largest factor between neighbouring counts in ``overlap`` cells, as audited: at most
        1 / `alpha`.
    reproducible : bool
        Whether the draws were seeded: they then protect nobody who knows the seed.
    """

    cells: int
    overlap: int
    privacy: Privacy
    ratio: Fraction
    reproducible: bool

    @cached_property
    def alpha(self) -> Fraction:
        """The alpha of a person over all cells, exact."""
        return self.privacy.alpha**self.overlap

    @property
    def epsilon(self) -> float:
        """-ln of `alpha`, rounded up."""
        return Privacy(alpha=self.alpha).epsilon

    def __str__(self) -> str:
        alpha = self.privacy.alpha
        change = {"adjacent": "by at most one", "all": "to any other"}.get(
            str(self.privacy.neighbours), f"by at most {self.privacy.neighbours}"
        )
        cells = "one cell" if self.overlap == 1 else f"at most {self.overlap:,} cells"
        power = "" if self.overlap == 1 else f"^{self.overlap}"
        exactly = f"({alpha}){power}, exactly" if power else f"{alpha}, exactly"
        if alpha.denominator >= 10**20:
            exactly = f"about {brief(self.alpha, 12)}"
        rows = [
            ("protected", f"a person who is counted in {cells}: each of these counts may change"),
            ("", f"{change} with their answer"),
            (
                "loss",
                f"no table of {self.cells:,} counts is more than {rounded_up(1 / self.alpha, 9)}"
                " times as likely with one answer as with another",
            ),
            ("", f"(alpha{power} = {exactly}; epsilon at most {self.epsilon:.9g}, rounded up)"),
            (
                "audited",
                f"every mechanism, exactly: the worst factor is {rounded_up(self.ratio, 9)}",
            ),
            ("public", "the sizes of groups, and which cells there are"),
            ("randomness", randomness(self.reproducible)),
        ]
        return "\n".join(aligned(rows))


@dataclass(frozen=True)
class ContingencyStatement:
    """Whom the release of a contingency table protects, and by how much, exactly.

    Attributes
    ----------
    neighbours : str
        ``"changed"`` or ``"added"``: see `release_contingency`.
    within : tuple of str
        The axes of the groups whose sizes are public; of ``"changed"``.
    alpha : Fraction
        Of each cell: its likelihood ratio is at most 1 / alpha for counts that differ by one.
    margins : mapping of tuple of str to Fraction
        The alpha of each family of margins, by the axes that it keeps.
    reproducible : bool
        Whether the draws were seeded: they then protect nobody who knows the seed.
    """

    neighbours: Neighbours
    within: tuple[str, ...]
    alpha: Fraction
    margins: Mapping[tuple[str, ...], Fraction]
    reproducible: bool = False

    @property
    def changed(self) -> int:
        """How many cells one person changes: 2 or 1."""
        return 2 if self.neighbours == "changed" else 1

    @property
    def total_alpha(self) -> Fraction:
        """That of the whole release: likelihood ratios are at most one over it, exactly."""
        return (self.alpha * math.prod(self.margins.values())) ** self.changed

    @property
    def epsilon(self) -> float:
        """-ln of `total_alpha`, rounded up."""
        return Privacy(alpha=self.total_alpha).epsilon

    def __str__(self) -> str:
        each = "two" if self.changed == 2 else "one"
        changes = [f"{each} of the cells"]
        changes += [
            f"{each} of the sums by {listed(names)}" if names else f"{each} total"
            for names in self.margins
        ]
        factors = [exactly(self.alpha), *map(exactly, self.margins.values())]
        product = " * ".join(f"({factor})^2" if self.changed == 2 else factor for factor in factors)
        total = exactly(self.total_alpha)
        if self.neighbours == "changed":
            groups = f"group ({listed(self.within)})" if self.within else "table"
            who = f"one person who changes to another cell of the same {groups}"
            public = "the number of people of each group" if self.within else "their number"
        else:
            who, public = "one person more or less in the counts", "the caps of cells"
        above = "counts above their caps are taken for these: a cap stands for that or more people"
        rows = [
            ("protected", who),
            *([("counted", above)] if self.neighbours == "added" else []),
            ("changed by one", ", ".join(changes)),
            ("loss", "likelihoods change by a factor of at most 1/alpha,"),
            ("", f"alpha = {' = '.join(dict.fromkeys([product, total]))}, exactly;"),
            ("", f"epsilon at most {self.epsilon:.9g}, rounded up"),
            ("public", public),
            ("randomness", randomness(self.reproducible)),
        ]
        return "\n".join(aligned(rows))


def randomness(reproducible: bool) -> str:
    """What a statement says of draws that were seeded, or were not."""
    if reproducible:
        return "SEEDED: reproducible, and therefore not private"
    return "of the operating system"


def exactly(alpha: Fraction) -> str:
    """An alpha for a statement: as the fraction that it is, unless that is long."""
    return str(alpha) if alpha.denominator < 10**30 else f"about {brief(alpha, 12)}"
