"""Reports that public coins draw for users of whom nothing is known, several at a time."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, TypeVar

Number = TypeVar("Number", int, Fraction)


class Menu(NamedTuple):
    """Some reports of one kind, of which every item makes about as many likely as any other.

    Attributes
    ----------
    candidates : int
        How many reports, at least 1. If there are several, their likelihoods have two values.
    least, most : int
        How many of them an item makes likely, the others being unlikely.
    """

    candidates: int
    least: int
    most: int

    @classmethod
    def of(cls, alternatives: int, likely: int, largest: int) -> Menu:
        """The menu of the first up to ``largest`` of some alternatives, with all its bounds.

        Every item makes ``likely`` of all alternatives likely.
        """
        if largest == 1:
            return cls(1, 0, 1)
        candidates = min(alternatives, largest)
        least = max(0, candidates - (alternatives - likely))
        return cls(candidates, least, min(candidates, likely))

    def ends(self, low: Number, high: Number) -> tuple[Number, Number]:
        """The least and the largest sum over the menu of numbers ``low`` and ``high``."""
        return (
            self.least * high + (self.candidates - self.least) * low,
            self.most * high + (self.candidates - self.most) * low,
        )
