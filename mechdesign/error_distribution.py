"""The exact distribution of the error, output minus input (thesis Figures 6.9-6.13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class ErrorDistribution:
    """The distribution of the error of a mechanism for one distribution of inputs.

    Attributes
    ----------
    histogram : dict of int to Fraction
        error (output minus input) -> exact probability; errors of probability zero inside the range
        are present.
    """

    histogram: dict[int, Fraction]

    @classmethod
    def of(
        cls, weights: Sequence[Sequence[int]], denominator: int, prior: Sequence[Fraction]
    ) -> ErrorDistribution:
        """The error distribution of a table with integer weights.

        Parameters
        ----------
        weights : sequence of sequence of int
            Integer numerators, shape (outputs, inputs): ``weights[i][j] / denominator`` is
            Pr[output i | input j].
        denominator : int
            What every column of ``weights`` sums to, at least 1.
        prior : sequence of Fraction
            Exact probabilities of the inputs, shape (inputs,), which sum to 1.

        Returns
        -------
        ErrorDistribution
            Over the errors -(inputs - 1) .. outputs - 1.
        """
        totals = dict.fromkeys(range(1 - len(prior), len(weights)), Fraction(0))
        for j, share in enumerate(prior):
            if share:
                for i, row in enumerate(weights):
                    totals[i - j] += share * row[j]
        return cls({error: total / denominator for error, total in totals.items()})

    def tail(self, d: int = 0) -> Fraction:
        """Pr[|error| > d], the plain L0,d; ``tail(0)`` is the chance of a wrong answer."""
        return sum((p for error, p in self.histogram.items() if abs(error) > d), Fraction(0))

    @property
    def bias(self) -> Fraction:
        """The expected error."""
        return sum((error * p for error, p in self.histogram.items()), Fraction(0))

    @property
    def mean_square(self) -> Fraction:
        """The expected squared error, exact."""
        return sum((error**2 * p for error, p in self.histogram.items()), Fraction(0))

    @property
    def rmse(self) -> float:
        """The square root of `mean_square`."""
        return math.sqrt(self.mean_square)
