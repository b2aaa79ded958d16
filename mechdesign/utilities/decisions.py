"""BestDecision: the value of a local mechanism's outputs for making a decision.

Bayes risk and total variation are of this kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq

from mechdesign.base import Rational, exact, set_fields
from mechdesign.losses import prior_over
from mechdesign.lp.basis import ZERO, Program, to_fmpq, to_fraction
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.utilities.sublinear_utility import (
    Merged,
    Number,
    Pattern,
    Utility,
    hypotheses,
    shares,
    summed,
)


@dataclass(frozen=True, repr=False)
class BestDecision(Utility):
    """The utility that is the expected gain of the best decision after seeing the output.

    The utility of a row is the largest of ``gains[d] row`` over decisions d; ``gains[d, x]`` is an
    exact number of any sign: the prior probability of item x times the gain of decision d if the
    item is x. The utility of a mechanism is rational.
    """

    gains: tuple[tuple[Fraction, ...], ...]

    def __init__(self, gains: Iterable[Iterable[Rational]]) -> None:
        rows = tuple(tuple(exact(entry, "a gain") for entry in row) for row in gains)
        if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
            raise ValueError(
                "a table of gains needs at least one decision, one item, and rows of one length"
            )
        set_fields(self, gains=rows)

    @property
    def items(self) -> int:
        return len(self.gains[0])

    def worth(self, row: Sequence[fmpq]) -> Number:
        return max(
            sum((to_fmpq(gain) * entry for gain, entry in zip(each, row, strict=True)), ZERO)
            for each in self.gains
        )

    def merged(self) -> Merged:
        """Merge items with proportional gains: only the weighted sum of their entries matters."""
        columns = list(zip(*self.gains, strict=True))
        weights = [next((abs(gain) for gain in column if gain), Fraction(0)) for column in columns]
        # Columns that are positive multiples have the same gains in other units: scaled to begin
        # with 1 or -1 they are equal, exactly.
        keys = [
            tuple(gain / weight for gain in column) if weight else None
            for column, weight in zip(columns, weights, strict=True)
        ]
        label, share = shares(keys, weights)
        return Merged(BestDecision(summed(row, label) for row in self.gains), label, share)

    def classes(self) -> list[list[int]]:
        columns = list(zip(*self.gains, strict=True))
        # Interchangeable: the set of decisions is closed under the swap. That is an equivalence
        # relation, since transpositions (x y) and (y z) generate (x z): one member of a class
        # represents it.
        ordered = [tuple(sorted(column)) for column in columns]  # a quick necessary condition
        rows = Counter(self.gains)
        classes = list[list[int]]()
        for x in range(self.items):
            home = next(
                (
                    each
                    for each in classes
                    if ordered[each[0]] == ordered[x] and self._swaps(each[0], x, rows)
                ),
                None,
            )
            if home is None:
                classes.append([x])
            else:
                home.append(x)
        return classes

    def _swaps(self, first: int, second: int, rows: Counter[tuple[Fraction, ...]]) -> bool:
        """Whether a swap of two items only renumbers the decisions."""
        moved = (row for row in self.gains if row[first] != row[second])
        swapped = Counter(
            (*row[:first], row[second], *row[first + 1 : second], row[first], *row[second + 1 :])
            for row in moved
        )
        return all(rows[row] == count for row, count in swapped.items())

    def warm_start(self, alpha: fmpq) -> tuple[list[Pattern], list[fmpq]]:
        """Return patterns and prices of an optimal mechanism, by a linear program of its own."""
        # An optimal mechanism needs only one output for each decision. Its rows are then written as
        # sums of patterns: for each threshold, the items whose entries are at least that.
        at = np.arange(len(self.gains) * self.items).reshape(len(self.gains), self.items)
        most = at.size + np.arange(len(at))[:, None]  # the largest entry of each row, or more
        groups = (
            Constraints.equal_to(at.T, 1),
            # alpha m <= P[d, x] <= m with one variable m per row instead of all pairs of items:
            # linear in the number of entries where pairs would be quadratic.
            Constraints.at_least(at, most, to_fraction(alpha)),
            Constraints.at_least(most, at),
        )
        cost = (*(-gain for row in self.gains for gain in row), *(Fraction(0) for _ in self.gains))
        solution = certify(
            Program(cost, tuple(group.named(f"{k}") for k, group in enumerate(groups)))
        )
        table = [[solution.x[v] for v in row] for row in at.tolist()]
        # Layers: a row with entries in [alpha m, m] is a sum of rows with two values, one for each
        # of its values as a threshold.
        patterns = {
            tuple(entry >= bound for entry in row) for row in table for bound in row if bound
        }
        return list(patterns), [-to_fmpq(value) for value in solution.multipliers[: self.items]]

    def pricing(self, prices: Sequence[fmpq], alpha: fmpq) -> tuple[fmpq, list[Pattern]]:
        """Return the exact largest reduced cost, in one pass over the decisions.

        Parameters
        ----------
        prices, alpha : sequence of flint.fmpq, flint.fmpq
            As for `Utility.pricing`.

        Returns
        -------
        tuple[fmpq, list[Pattern]]
            As of `Utility.pricing`, with the best pattern for each decision.
        """
        # The best row for a decision has at level 1 the items whose gain exceeds their price.
        net = [
            [to_fmpq(gain) - price for gain, price in zip(row, prices, strict=True)]
            for row in self.gains
        ]
        # A maximum over decisions and over rows may be taken in either order; for one decision the
        # entries are independent, and each is at the better of its two levels.
        return max(sum((max(v, alpha * v) for v in row), ZERO) for row in net), [
            tuple(v > 0 for v in row) for row in net
        ]


def bayes_decision(
    losses: Iterable[Iterable[Rational]], prior: Iterable[Rational] | None = None
) -> BestDecision:
    """Return minus the Bayes risk of the best decision that sees the output, as a utility.

    Parameters
    ----------
    losses : iterable of iterable of Fraction, int, str or Decimal
        Exact numbers, shape (decisions, items): ``losses[d][x]`` is what decision d costs if the
        item is x.
    prior : iterable of Fraction, int, str or Decimal, optional
        Exact weights of the items, shape (items,), that sum to 1; None: uniform.

    Returns
    -------
    BestDecision
        With gains ``-prior[x] * losses[d][x]``.

    Raises
    ------
    ValueError
        An empty table, or rows of different lengths.
    InvalidPrior
        A prior that is not a distribution over the items.
    """
    table = [[exact(entry, "a loss") for entry in row] for row in losses]
    if not table or not table[0]:
        raise ValueError("a table of losses needs at least one decision and one item")
    weights = prior_over(len(table[0]), prior)
    if any(len(row) != len(weights) for row in table):
        raise ValueError("the rows of a table of losses must have one length")
    return BestDecision(
        [-weight * entry for weight, entry in zip(weights, row, strict=True)] for row in table
    )


def total_variation(first: Iterable[Rational], second: Iterable[Rational]) -> BestDecision:
    """Return the total variation distance of the outputs under two hypotheses about the items.

    It is the sum over outputs of |a - b| / 2, a and b their probabilities under the hypotheses.

    Parameters
    ----------
    first, second : iterable of Fraction, int, str or Decimal
        Exact distributions over the same items, shape (items,).

    Returns
    -------
    BestDecision
        With two decisions, whose gains are ``(first - second) / 2`` and minus that.

    Raises
    ------
    InvalidPrior
        Weights that are negative or do not sum to 1.
    ValueError
        Different numbers of items.
    """
    half = [(a - b) / 2 for a, b in zip(*hypotheses(first, second), strict=True)]
    return BestDecision([half, [-value for value in half]])
