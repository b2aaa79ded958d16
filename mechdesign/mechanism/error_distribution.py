"""The exact distribution of the error, output minus input (thesis Figures 6.9-6.13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.base import aligned, brief, percent

_ALL_UP_TO = 10  # below this distance a printed table has every error

# From it on, those of these distances that occur, and the largest.
_BEYOND = tuple(step * 10**power for power in range(1, 11) for step in (1, 2, 5))


@dataclass(frozen=True, repr=False)
class ErrorDistribution:
    """The distribution of the error of a mechanism for one distribution of inputs.

    ``str()`` is a table of percentages, rounded down, with the bias and the root mean square.

    Attributes
    ----------
    histogram : dict of int to Fraction
        error (output minus input) -> exact probability; errors of probability zero inside the range
        are present.
    """

    histogram: dict[int, Fraction]

    @classmethod
    def of(
        cls,
        weights: Sequence[Sequence[int]],
        denominator: int,
        prior: Sequence[Fraction],
        errors: Sequence[Sequence[int]],
    ) -> ErrorDistribution:
        """Return the error distribution of a table with integer weights, over its range of errors.

        Parameters
        ----------
        weights : sequence of sequence of int
            Integer numerators, shape (outputs, inputs): ``weights[i][j] / denominator`` is
            Pr[output i | input j].
        denominator : int
            What every column of ``weights`` sums to, at least 1.
        prior : sequence of Fraction
            Exact probabilities of the inputs, shape (inputs,), which sum to 1.
        errors : sequence of sequence of int
            The error of each output for each input, shape (outputs, inputs).

        Returns
        -------
        ErrorDistribution
        """
        least, largest = min(map(min, errors)), max(map(max, errors))
        totals = dict.fromkeys(range(least, largest + 1), Fraction(0))
        for j, share in enumerate(prior):
            if share:
                for row, apart in zip(weights, errors, strict=True):
                    totals[apart[j]] += share * row[j]
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

    def __str__(self) -> str:
        largest = max((abs(error) for error, p in self.histogram.items() if p), default=0)
        steps = (d for d in (*range(_ALL_UP_TO), *_BEYOND) if d < largest)
        rows = [("d", "error -d", "error +d", "|error| <= d")]
        for d in (*steps, largest):
            below, above = (percent(self.histogram.get(error, Fraction(0)), 2) for error in (-d, d))
            rows.append((str(d), below if d else "", above, percent(1 - self.tail(d), 2)))
        return "\n".join([*aligned(rows), self._summary()])

    def __repr__(self) -> str:
        ends = f"{min(self.histogram)} .. {max(self.histogram)}"
        return f"<ErrorDistribution over {ends}: {self._summary()}>"

    def _summary(self) -> str:
        return f"bias {brief(self.bias, 4)}, RMSE {brief(self.rmse, 4)}"
