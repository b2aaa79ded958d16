"""UnbiasedEstimate: the true count estimated without bias from a released output, with variances.

What a mechanism releases is biased, since its outputs have two ends. Numbers t with
``sum_i t_i P[i, j] = j`` for every true count j remove the bias: t of the output is an unbiased
estimate, and the sum of such estimates over cells is one of their total.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from flint import arb_mat, fmpq, fmpq_mat, fmpz_mat

from mechdesign.base import Floats, Rational, exact, precision
from mechdesign.exceptions import InvalidPrior, NoUnbiasedEstimate
from mechdesign.losses import prior_over
from mechdesign.mechanism.table import Table
from mechdesign.mechanism.values import Counts

_PRECISIONS = (128, 512, 2048)  # the precisions in bits that are tried before exact arithmetic

# The largest error of what is enclosed, relative to the largest number of its kind.
_ACCURACY = 2.0**-51


class UnbiasedEstimate:
    """The unbiased estimate of the true count from each output, with exact variances.

    For a square table with independent columns there is one. Where there are several, this is the
    one of least variance under ``prior``.

    Parameters
    ----------
    table : Table
        A mechanism.
    prior : sequence of Fraction, int, str or Decimal, optional
        Weights of the inputs, shape (inputs,), that sum to one; uniform if None. It matters only
        where there are several unbiased estimates.
    quantity : sequence of Fraction, int, str or Decimal, optional
        What is estimated, a number for each input, shape (inputs,); None: the count. Kept as a
        tuple.

    Raises
    ------
    NoUnbiasedEstimate
        There is none: see the message.
    InvalidPrior
        The prior is no distribution over the inputs; or there are several estimates, and an output
        occurs only for inputs of weight 0.
    ValueError
        The quantity has another length than there are inputs.

    Examples
    --------
    >>> from mechdesign import named
    >>> estimate = UnbiasedEstimate(named.geometric(2, alpha="1/2"))
    >>> estimate.values
    (Fraction(-1, 1), Fraction(1, 1), Fraction(3, 1))
    >>> estimate.variances
    (Fraction(7, 3), Fraction(8, 3), Fraction(7, 3))
    """

    def __init__(
        self,
        table: Table,
        prior: Sequence[Rational] | None = None,
        *,
        quantity: Sequence[Rational] | None = None,
    ) -> None:
        if quantity is None:
            if not isinstance(table.input_values, Counts):
                raise NoUnbiasedEstimate("of pairs of counts say which quantity is estimated")
            quantity = range(table.inputs)
        self.quantity = tuple(exact(value, "a quantity") for value in quantity)
        if len(self.quantity) != table.inputs:
            raise ValueError(
                f"the quantity has {len(self.quantity)} numbers for {table.inputs} inputs"
            )
        goal = [_fmpq(value) for value in self.quantity]
        weights = [_fmpq(weight) for weight in prior_over(table.inputs, prior)]
        columns = fmpz_mat([*zip(*table.weights, strict=True)])
        means = [table.denominator * value for value in goal]
        squares = [table.denominator * value**2 for value in goal]
        solution, second = _solutions(columns, (means, squares), weights)
        if solution is None:
            raise NoUnbiasedEstimate(_reason(table, columns.rank()))
        self._values = solution
        # Squares in integers over one denominator: a sum of fractions would reduce each of them.
        numerators, below = solution.numer_denom()
        square = fmpz_mat([[value**2] for value in numerators.entries()])
        scale = fmpq(1, table.denominator) / below**2
        self._variances = [
            scale * mean - value**2
            for mean, value in zip((columns * square).entries(), goal, strict=True)
        ]
        self._second = second

    @cached_property
    def values(self) -> tuple[Fraction, ...]:
        """The estimates from the outputs, exact, shape (outputs,); 0 for one that never occurs."""
        return _fractions(self._values.entries())

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The variances of the estimate for the true counts, exact, shape (inputs,)."""
        return _fractions(self._variances)

    @cached_property
    def variance_estimates(self) -> tuple[Fraction, ...]:
        """The estimates of the variance from the outputs, exact, shape (outputs,).

        They are unbiased, and may therefore be negative. Where that is impossible, since the square
        of the quantity has no unbiased estimate, each is the largest of `variances`.
        """
        if self._second is None:
            return (max(self.variances),) * len(self.values)
        pairs = zip(self._values.entries(), self._second.entries(), strict=True)
        # t^2 estimates E t^2, and s the square of the quantity without bias: the difference of the
        # two has the mean Var t.
        return _fractions(value**2 - square for value, square in pairs)

    def variance(self, prior: Sequence[Rational] | None = None) -> Fraction:
        """Return the variance for a true count drawn from ``prior``, uniform if None; exact.

        It is the mean of `variances`, which is the expected squared error. Raises InvalidPrior.
        """
        weights = prior_over(len(self.quantity), prior)
        pairs = zip(weights, self._variances, strict=True)
        return _fraction(sum((_fmpq(weight) * variance for weight, variance in pairs), fmpq(0)))

    def standard_error(self, prior: Sequence[Rational] | None = None) -> float:
        """Return the square root of `variance`."""
        return math.sqrt(self.variance(prior))


class ApproximateEstimate(NamedTuple):
    """An `UnbiasedEstimate` of the count in floats, for statistics of many groups.

    Of each array the errors are at most 2^-50 of its largest number, whatever the table.
    """

    values: Floats  # shape (outputs,)
    variances: Floats  # shape (inputs,)
    variance_estimates: Floats  # shape (outputs,)

    @classmethod
    def of(cls, table: Table) -> ApproximateEstimate:
        """Return the numbers of ``UnbiasedEstimate(table)``, far faster where they are long."""
        # They are enclosed by intervals of increasing precision, and exact if none is enough.
        if table.outputs == table.inputs and isinstance(table.input_values, Counts):
            columns = fmpz_mat([*zip(*table.weights, strict=True)])
            for bits in _PRECISIONS:
                with precision(bits):
                    enclosed = _enclosed(columns, table.denominator)
                if enclosed is not None:
                    return cls(*enclosed)
        exact = UnbiasedEstimate(table)
        lists = exact.values, exact.variances, exact.variance_estimates
        return cls(*(np.array([*map(float, numbers)]) for numbers in lists))


def _enclosed(columns: fmpz_mat, denominator: int) -> list[Floats] | None:
    """Return values, variances and variance estimates of a square table, or None if too rough."""
    inputs = columns.nrows()
    goals = [[denominator * j, denominator * j**2] for j in range(inputs)]
    try:
        solved = arb_mat(columns).solve(arb_mat(goals)).tolist()
    except ZeroDivisionError:
        return None
    squares = arb_mat([[value**2] for value, _ in solved])
    means = (arb_mat(columns) * squares).entries()
    lists = (
        [value for value, _ in solved],
        [mean / denominator - j**2 for j, mean in enumerate(means)],
        [value**2 - square for value, square in solved],
    )
    arrays = []
    for numbers in lists:
        middles = np.array([float(number.mid()) for number in numbers])
        radius = max(float(number.rad()) for number in numbers)
        # `not <=` also refuses radii that are not numbers.
        if not radius <= _ACCURACY * np.abs(middles).max() < math.inf:
            return None
        arrays.append(middles)
    return arrays


def _solutions(
    columns: fmpz_mat, goals: Sequence[Sequence[fmpq]], prior: Sequence[fmpq]
) -> list[fmpq_mat | None]:
    """Return for each goal the t with ``columns t = goal`` of least mean square, or None.

    Shapes: `columns` (inputs, outputs), `goals` (goals, inputs), `prior` (inputs,); t (outputs, 1).
    """
    if columns.nrows() == columns.ncols():
        try:
            solution = fmpq_mat(columns).solve(fmpq_mat([*zip(*goals, strict=True)]))
        except ZeroDivisionError:  # the columns are dependent
            pass
        else:
            return [_column(each) for each in zip(*solution.tolist(), strict=True)]
    # The t of least sum_i m_i t_i^2 is t_i = (B' y)_i / m_i, with B a basis of the columns. Others
    # are combinations of it: there is a t if their goals are the same combinations.
    reduced, below, rank = columns.transpose().rref()
    sums = reduced.tolist()[:rank]
    chosen = [row.index(below) for row in sums]
    basis = fmpq_mat([columns.tolist()[j] for j in chosen])
    means = (fmpq_mat([prior]) * fmpq_mat(columns)).entries()
    occurs = [any(output) for output in zip(*columns.tolist(), strict=True)]
    solutions: list[fmpq_mat | None] = []
    for goal in goals:
        known = fmpq_mat([[goal[j] for j in chosen]])
        if known * fmpq_mat(fmpz_mat(sums)) != below * fmpq_mat([goal]):
            solutions.append(None)
            continue
        if any(possible and not mean for possible, mean in zip(occurs, means, strict=True)):
            raise InvalidPrior(
                "an output occurs only for inputs of weight 0: the prior does not say which"
                " unbiased estimate is best"
            )
        shares = [1 / mean if mean else mean for mean in means]
        weighted = fmpq_mat(
            [
                [share * entry for share, entry in zip(shares, row, strict=True)]
                for row in basis.tolist()
            ]
        )
        solved = (weighted * basis.transpose()).solve(known.transpose())
        solutions.append(weighted.transpose() * solved)
    return solutions


def _reason(table: Table, rank: int) -> str:
    """Return why there is no unbiased estimate."""
    columns = [*zip(*table.weights, strict=True)]
    for (j, first), (k, second) in combinations(enumerate(columns), 2):
        if first == second:
            return (
                f"there is no unbiased estimate: inputs {j} and {k} give every output with the same"
                " probability"
            )
    return (
        f"there is no unbiased estimate: the {table.inputs} columns of the table have rank {rank},"
        " so that the distribution of the output does not determine what is estimated"
    )


def _column(values: Iterable[fmpq]) -> fmpq_mat:
    return fmpq_mat([[value] for value in values])


def _fractions(values: Iterable[fmpq]) -> tuple[Fraction, ...]:
    return tuple(map(_fraction, values))


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)
