"""Utility: how useful outputs are, a sum over outputs of a sublinear function of their rows.

A row is the tuple of the probabilities of one output under every item. Kairouz, Oh and Viswanath
(Extremal mechanisms for local differential privacy, JMLR 17, 2016) treat exactly these: U(Q) = sum
over outputs of mu(row), with mu convex and mu(c row) = c mu(row) for c >= 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, fmpq

from mechdesign.base import Rational, exact, precision, set_fields
from mechdesign.losses import prior_over
from mechdesign.lp.basis import ZERO, Program, to_fmpq, to_fraction
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.mechanism.mechanism import Mechanism

#: An exact number, or a ball (an interval with error bounds) that contains the value.
Number: TypeAlias = fmpq | arb

#: The type of a pattern: the items at level 1 in a row whose other items are at level alpha.
Pattern: TypeAlias = tuple[bool, ...]

PRECISION = 128  #: The precision of values that are not rational, in bits.


@dataclass(frozen=True)
class Merged:
    """A utility over fewer items to which another one reduces.

    Some optimal mechanism has equal columns for items with the same ``label``.

    Attributes
    ----------
    utility : Utility
        Over the items that are left.
    label : tuple of int
        Shape (items,), original ones: the item of ``utility`` that represents it.
    share : tuple of Fraction
        Shape (items,): its weight in the average over its label, at least 0, of sum 1 for a label.
    """

    utility: Utility
    label: tuple[int, ...]
    share: tuple[Fraction, ...]


@dataclass(frozen=True, repr=False)
class Utility(ABC):
    """The utility of the outputs of a mechanism over items 0 .. items-1."""

    @property
    @abstractmethod
    def items(self) -> int:
        """The number of items, the length of a row."""

    @abstractmethod
    def worth(self, row: Sequence[fmpq]) -> Number:
        """Return the utility mu of a row of positive numbers, exactly if it is rational.

        It is convex and homogeneous of degree 1.
        """

    @abstractmethod
    def pricing(self, prices: Sequence[fmpq], alpha: fmpq) -> tuple[fmpq, list[Pattern]]:
        """Return a proved upper bound on ``worth(row) - prices row``, and patterns near it.

        Parameters
        ----------
        prices : sequence of flint.fmpq
            One exact number for each item, shape (items,).
        alpha : flint.fmpq
            The lower of the two entries of a row, in (0, 1].

        Returns
        -------
        tuple[fmpq, list[Pattern]]
            The bound, over all rows with entries 1 and alpha, and the patterns of rows near it, in
            no particular order; there may be none.
        """

    def warm_start(self, alpha: fmpq) -> tuple[list[Pattern], list[fmpq]] | None:
        """Return patterns and prices from which column generation starts; None unless overridden.

        The patterns, maybe none, are the first columns of the master program, and `pricing` turns
        the prices, shape (items,), into a first bound, which may already prove that the best
        mechanism of these patterns is optimal. None: generation starts from the constant row. Not
        used where all patterns are enumerated.

        Parameters
        ----------
        alpha : flint.fmpq
            The lower of the two entries of a row, in (0, 1].
        """
        return None

    def merged(self) -> Merged:
        """Return the same utility with items merged that need no distinction; by default none."""
        return Merged(self, tuple(range(self.items)), (Fraction(1),) * self.items)

    def classes(self) -> list[list[int]]:
        """Return the items by classes, within which swaps of entries do not change `worth`."""
        return [[item] for item in range(self.items)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.items} items)"

    def of(self, mechanism: Mechanism) -> tuple[Fraction, Fraction]:
        """Return proved lower and upper bounds on the utility of a mechanism.

        They are equal if it is rational, and otherwise computed with at least `PRECISION` bits.

        Raises ValueError unless the mechanism has an input for every item, and every output that
        occurs can occur under each.
        """
        if mechanism.inputs != self.items:
            raise ValueError(
                f"the mechanism has {mechanism.inputs} inputs, the utility {self.items} items"
            )
        rows = [row for row in mechanism.table if any(row)]
        if not all(map(all, rows)):
            raise ValueError(
                "an output is possible under one item and impossible under another: there is no"
                " privacy at all"
            )
        # Entries have that many bits, and rows differ in the last of them: utilities of nearly
        # equal columns are differences of numbers that agree in twice as many.
        with precision(PRECISION + 2 * mechanism.denominator.bit_length()):
            total = sum((self.worth([to_fmpq(entry) for entry in row]) for row in rows), ZERO)
            return to_fraction(lower(total)), to_fraction(upper(total))


def upper(value: Number) -> fmpq:
    """Return the least upper bound that is known."""
    return value.upper().fmpq() if isinstance(value, arb) else value


def lower(value: Number) -> fmpq:
    """Return the greatest lower bound that is known."""
    return value.lower().fmpq() if isinstance(value, arb) else value


def distribution(weights: Iterable[Rational]) -> tuple[Fraction, ...]:
    """Return exact weights that sum to 1; InvalidPrior otherwise."""
    values = tuple(weights)
    return prior_over(len(values), values)


def hypotheses(
    first: Iterable[Rational], second: Iterable[Rational]
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return two distributions over the same items; ValueError otherwise."""
    left, right = distribution(first), distribution(second)
    if len(left) != len(right):
        raise ValueError(
            f"the hypotheses must be about the same items, got {len(left)} and {len(right)} weights"
        )
    return left, right


def alike(keys: Sequence[Hashable]) -> list[list[int]]:
    """Return the positions of equal keys, in order of the first."""
    positions: dict[Hashable, list[int]] = defaultdict(list)
    for x, key in enumerate(keys):
        positions[key].append(x)
    return list(positions.values())


def shares(
    keys: Sequence[Hashable], weights: Sequence[Fraction]
) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
    """Return the label of each item, equal for equal keys, and its share of its label's weight."""
    label, share = [0] * len(keys), [Fraction(0)] * len(keys)
    for number, group in enumerate(alike(keys)):
        total = sum((weights[x] for x in group), Fraction(0))
        for x in group:
            label[x], share[x] = number, weights[x] / total if total else Fraction(1, len(group))
    return tuple(label), tuple(share)


def summed(values: Sequence[Fraction], label: Sequence[int]) -> list[Fraction]:
    """Return the sum of the values of each label."""
    sums = [Fraction(0)] * (max(label) + 1)
    for value, number in zip(values, label, strict=True):
        sums[number] += value
    return sums


# ------------------------------------------------------------------------------------------------
# BestDecision: the value of a local mechanism's outputs for making a decision.
#
# Bayes risk and total variation are of this kind.


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
        prices : sequence of flint.fmpq
            One exact number for each item, shape (items,).
        alpha : flint.fmpq
            The lower of the two entries of a row, in (0, 1].

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
