"""Groups of exact linear constraints with equal coefficients, which make up a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
import numpy.typing as npt

from mechdesign.base import Integers, Rational, exact


@dataclass(frozen=True, eq=False)
class Constraints:
    """Linear constraints with the same coefficients, each over variables of its own.

    Constraint r is ``sum_k coefficients[k] * x[cells[r, k]] >= bound``, or ``== bound`` if
    ``equality``. A property is usually stated by `at_least`, `equal`, `at_least_value` and slices
    of an index table.

    Parameters
    ----------
    cells : numpy.ndarray of int64
        Variable numbers, integers, shape (constraints, terms). A variable that occurs twice in a
        constraint counts twice.
    coefficients : tuple of Fraction
        One exact number for each term, shape (terms,), the same in all constraints.
    bound : Fraction
        The right side, the same in all constraints.
    equality : bool
        Whether the constraints are equations.
    name : str, default ""
        Identifies the group in a program; a certificate names its multipliers by it.
    kind : str, default ""
        What sort of constraints they are, such as `mechdesign.optimisation.formulation.PRIVACY`; ""
        if of none.

    Raises
    ------
    ValueError
        ``cells`` is not two-dimensional, or has not as many columns as there are coefficients.
    """

    cells: Integers
    coefficients: tuple[Fraction, ...]
    bound: Fraction
    equality: bool
    name: str = ""  #: Identifies the group in a program.
    kind: str = ""  #: The kind of the constraints, for code that states or rewrites programs.

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or self.cells.shape[1] != len(self.coefficients):
            raise ValueError(
                f"cells of shape {self.cells.shape} do not fit {len(self.coefficients)}"
                " coefficients"
            )

    @classmethod
    def at_least(
        cls, larger: npt.ArrayLike, smaller: npt.ArrayLike, factor: Rational = 1
    ) -> Constraints:
        """Return the constraints x[larger] >= factor * x[smaller], entry by entry.

        Parameters
        ----------
        larger, smaller : array_like
            Variable numbers: integer arrays that broadcast together, in row-major order.
        factor : Fraction, int, str or Decimal, default 1
            An exact number of any sign; floats are refused (`InexactNumber`).

        Returns
        -------
        Constraints
        """
        return cls(
            _pairs(larger, smaller), (Fraction(1), -exact(factor, "factor")), Fraction(0), False
        )

    @classmethod
    def equal(cls, first: npt.ArrayLike, second: npt.ArrayLike) -> Constraints:
        """Return the constraints x[first] == x[second], entry by entry.

        Parameters
        ----------
        first, second : array_like
            As for `at_least`.

        Returns
        -------
        Constraints
        """
        return cls(_pairs(first, second), (Fraction(1), Fraction(-1)), Fraction(0), True)

    @classmethod
    def at_least_value(cls, cells: npt.ArrayLike, value: Rational) -> Constraints:
        """Return the constraints x[cells] >= value, entry by entry.

        Parameters
        ----------
        cells : array_like
            Variable numbers: an integer array of any shape, in row-major order.
        value : Fraction, int, str or Decimal
            An exact number; floats are refused (`InexactNumber`).

        Returns
        -------
        Constraints
        """
        return cls(_numbers(cells).reshape(-1, 1), (Fraction(1),), exact(value, "value"), False)

    @classmethod
    def at_most_value(cls, cells: npt.ArrayLike, value: Rational) -> Constraints:
        """Return the constraints x[cells] <= value, entry by entry.

        Parameters
        ----------
        cells : array_like
            Variable numbers, as for `at_least_value`.
        value : Fraction, int, str or Decimal
            An exact number; floats are refused (`InexactNumber`).

        Returns
        -------
        Constraints
        """
        return cls(_numbers(cells).reshape(-1, 1), (Fraction(-1),), -exact(value, "value"), False)

    @classmethod
    def sum_at_least(cls, cells: npt.ArrayLike, value: Rational) -> Constraints:
        """Return the constraints that the sum of x over each row of ``cells`` is >= value.

        Parameters
        ----------
        cells : array_like
            Variable numbers: integers of shape (constraints, terms), or (terms,) for one
            constraint.
        value : Fraction, int, str or Decimal
            An exact number; floats are refused (`InexactNumber`).

        Returns
        -------
        Constraints
        """
        rows = np.atleast_2d(_numbers(cells))
        return cls(rows, (Fraction(1),) * rows.shape[1], exact(value, "value"), False)

    @classmethod
    def sum_at_most(cls, cells: npt.ArrayLike, value: Rational) -> Constraints:
        """Return the constraints that the sum of x over each row of ``cells`` is <= value.

        Parameters
        ----------
        cells : array_like
            Variable numbers, as for `sum_at_least`.
        value : Fraction, int, str or Decimal
            An exact number; floats are refused (`InexactNumber`).

        Returns
        -------
        Constraints
        """
        rows = np.atleast_2d(_numbers(cells))
        return cls(rows, (Fraction(-1),) * rows.shape[1], -exact(value, "value"), False)

    @classmethod
    def equal_to(cls, cells: npt.ArrayLike, value: Rational) -> Constraints:
        """Return the constraints that the sum of x over each row of ``cells`` is == value.

        Parameters
        ----------
        cells : array_like
            Variable numbers, as for `sum_at_least`.
        value : Fraction, int, str or Decimal
            An exact number; floats are refused (`InexactNumber`).

        Returns
        -------
        Constraints
        """
        rows = np.atleast_2d(_numbers(cells))
        return cls(rows, (Fraction(1),) * rows.shape[1], exact(value, "value"), True)

    def named(self, name: str) -> Constraints:
        """Return the same constraints under this name."""
        return replace(self, name=name)

    def violations(self, x: Sequence[int], denominator: int) -> Iterator[int]:
        """Yield the rows of ``cells`` that the point ``x / denominator`` breaks, in order.

        Only integers are multiplied and compared, so the check is exact and quick.

        Parameters
        ----------
        x : sequence of int
            The integer numerator of every variable.
        denominator : int
            Their common denominator, above 0.

        Yields
        ------
        int
        """
        # Both sides times scale * denominator: comparing integers needs no greatest common
        # divisors, which take most of the time of Fraction.
        scale = lcm(self.bound.denominator, *(c.denominator for c in self.coefficients))
        terms = [int(c * scale) for c in self.coefficients]
        bound = int(self.bound * scale) * denominator
        for r, row in enumerate(self.cells.tolist()):
            left = sum(c * x[v] for c, v in zip(terms, row, strict=True))
            if left < bound or (self.equality and left > bound):
                yield r

    def find(self, cells: npt.ArrayLike) -> Integers:
        """Return the numbers of the constraints over these variables; KeyError where there is none.

        Shapes: `cells` (constraints, terms), variable numbers; returns (constraints,).
        """
        rows = np.ascontiguousarray(_numbers(cells))
        return np.array([self._number[row.tobytes()] for row in rows], dtype=np.int64)

    @cached_property
    def _number(self) -> dict[bytes, int]:
        return {row.tobytes(): r for r, row in enumerate(np.ascontiguousarray(self.cells))}

    def relabelled(self, label: Integers) -> Constraints:
        """Return the same constraints over renamed variables."""
        return replace(self, cells=label[self.cells])

    def vacuous(self) -> npt.NDArray[np.bool_]:
        """Return which constraints are over one variable and hold for every x >= 0, as x >= x."""
        net = sum(self.coefficients, Fraction(0))
        # With all cells alike the constraint is net * x >= bound. Reduction by symmetry makes such
        # of constraints between an entry and its image.
        trivial = (net == 0 and self.bound == 0) or (
            not self.equality and net >= 0 and self.bound <= 0
        )
        alike: npt.NDArray[np.bool_] = np.all(self.cells == self.cells[:, :1], axis=1)
        return alike & trivial


def canonical(groups: Sequence[Constraints]) -> Iterator[tuple[Integers, Integers]]:
    """Yield for each group a code for each constraint, and its sign.

    Two constraints are the same, up to sign, if and only if their codes are equal.
    """
    # A code lists the variables with their coefficients in order, then the kind of constraint.
    # ``a - b == 0`` and ``b - a == 0`` are the same with opposite signs; every other constraint has
    # sign 1.
    # Codes are integers, so that rows of bytes can be compared: coefficients and right sides are
    # numbered over all groups together, as equal constraints may be in different groups.
    number = {
        c: k for k, c in enumerate(dict.fromkeys(c for group in groups for c in group.coefficients))
    }
    kinds = {
        kind: k
        for k, kind in enumerate(dict.fromkeys((group.bound, group.equality) for group in groups))
    }
    for group in groups:
        cells, sign = group.cells, np.ones(len(group.cells), dtype=np.int64)
        # A difference that is 0 is the only kind of constraint whose negative is stated by other
        # code: `equal(a, b)` and `equal(b, a)`. Its multiplier changes sign with it.
        if (
            group.equality
            and group.bound == 0
            and len(cells.T) == 2
            and sum(group.coefficients) == 0
        ):
            sign = np.where(cells[:, 0] <= cells[:, 1], 1, -1)
            cells = np.sort(cells, axis=1)
        # One integer for the pair (variable, coefficient): its order is that of pairs, and a sum
        # does not depend on the order of its terms.
        terms = np.sort(
            cells * len(number) + np.array([number[c] for c in group.coefficients]), axis=1
        )
        kind = np.full((len(cells), 1), kinds[group.bound, group.equality])
        yield np.hstack([terms, kind]), sign


def _pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> Integers:
    left, right = np.broadcast_arrays(_numbers(first), _numbers(second))
    return np.column_stack([left.ravel(), right.ravel()])


def _numbers(cells: npt.ArrayLike) -> Integers:
    numbers = np.asarray(cells)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(
            f"variables are numbered by integers (entries of the index table), got {numbers.dtype}"
            f" {cells!r:.60}"
        )
    return numbers.astype(np.int64)
