"""TableStatement: what the release of a whole table reveals about one person, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mechdesign.base.text import aligned, brief, rounded_up
from mechdesign.privacy import Privacy


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


def randomness(reproducible: bool) -> str:
    """What a statement says of draws that were seeded, or were not."""
    if reproducible:
        return "SEEDED: reproducible, and therefore not private"
    return "of the operating system"


def exactly(alpha: Fraction) -> str:
    """An alpha for a statement: as the fraction that it is, unless that is long."""
    return str(alpha) if alpha.denominator < 10**30 else f"about {brief(alpha, 12)}"
