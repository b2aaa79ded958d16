"""Utility: how useful outputs are, a sum over outputs of a sublinear function of their rows.

A row is the tuple of the probabilities of one output under every item. Kairouz, Oh and Viswanath
(Extremal mechanisms for local differential privacy, JMLR 17, 2016) treat exactly these: U(Q) = sum
over outputs of mu(row), with mu convex and mu(c row) = c mu(row) for c >= 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import arb, fmpq

from mechdesign.base import Rational, precision
from mechdesign.losses import prior_over
from mechdesign.lp.basis import ZERO, to_fmpq, to_fraction
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
