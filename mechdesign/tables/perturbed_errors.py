"""How far a perturbation table is off for a table of counts with its totals, exactly.

Each number has the noise of its own count and key, totals too. The keys of any two cells are
independent, and so are those of a total and of one of its cells as long as somebody is in another:
squares of differences need no more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from mechdesign.base import Floats, Integers, brief, percent, rounded_up, to_text
from mechdesign.perturbation import Disclosure, PerturbationTable
from mechdesign.privacy import Privacy
from mechdesign.tables.suppression import totals_of


@dataclass(frozen=True, eq=False)
class PerturbedErrors:
    """The errors of a perturbation table for one table of counts, and what it reveals.

    Attributes
    ----------
    name : str
        What the perturbation table is called.
    delta, from_one, certain : Fraction
        delta of a person in one cell at the epsilon asked for; the same where it may be seen that
        a count is 0; and the delta that no epsilon avoids. All are of the worst counts there are.
    squares : numpy.ndarray of float64
        The expected square of the noise of each cell and total, of the shape of the table with its
        totals.
    apart : numpy.ndarray of float64
        The expected square of the difference between each published total and the sum of its
        published cells; NaN for cells.
    """

    name: str
    delta: Fraction
    from_one: Fraction
    certain: Fraction
    squares: Floats
    apart: Floats

    @classmethod
    def of(
        cls, name: str, table: PerturbationTable, truth: Integers, privacy: Privacy
    ) -> PerturbedErrors:
        """Return the errors for true counts with their totals."""
        found = Disclosure(table)
        counts = np.unique(truth).tolist()
        bias = {n: found.bias(n) for n in counts}
        square = {n: found.mean_square(n) for n in counts}
        squares = np.vectorize(lambda n: float(square[n]), otypes=[np.float64])(truth)
        apart = np.full(truth.shape, math.nan)
        totals = totals_of(truth.shape)
        for place in map(tuple, np.argwhere(totals).tolist()):
            ends = zip(place, truth.shape, strict=True)
            spans = [range(size - 1) if k == size - 1 else (k,) for k, size in ends]
            cells = [int(truth[each]) for each in product(*spans)]
            total = int(truth[place])
            difference = sum((bias[n] for n in cells), Fraction(0)) - bias[total]
            spread = sum((square[n] - bias[n] ** 2 for n in (*cells, total)), Fraction(0))
            if sum(n > 0 for n in cells) == 1:
                # The cell has the count, the key and so the noise of the total
                difference = sum((bias[n] for n in cells if not n), Fraction(0))
                spread = Fraction(0)
            apart[place] = float(spread + difference**2)
        curve = found.curve
        above = Disclosure(table, protected=min(1, table.largest)).curve
        delta, from_one = (each.at_ratio(1 / privacy.alpha) for each in (curve, above))
        return cls(name, delta, from_one, curve.unbounded, squares, apart)

    def rmse(self, *, totals: bool = False) -> float:
        """The root mean square error over the cells, or over the totals."""
        chosen = self.squares[totals_of(self.squares.shape) == totals]
        return math.sqrt(chosen.mean())

    @property
    def additivity(self) -> float:
        """The root mean square of how far totals and sums of cells are apart, over the totals."""
        return math.sqrt(np.nanmean(self.apart))

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers and texts, for JSON."""
        return {
            "delta": to_text(self.delta),
            "delta_from_one": to_text(self.from_one),
            "certain": to_text(self.certain),
            "rmse": {"cells": self.rmse(), "totals": self.rmse(totals=True)},
            "totals_from_sums": self.additivity,
        }

    def __str__(self) -> str:
        return (
            f"{self.name}: root mean square error over cells {self.rmse():.2f}, over totals"
            f" {self.rmse(totals=True):.2f}; totals and sums of cells are"
            f" {brief(self.additivity, 3)} apart; one person more or less in a cell changes"
            f" likelihoods by no more than the mechanism allows, but for a delta of"
            f" {rounded_up(self.delta, 3)} (from the count 1 on {rounded_up(self.from_one, 3)};"
            f" {percent(self.certain, 2, up=True)} whatever epsilon is)"
        )
