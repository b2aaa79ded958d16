"""StandardErrors: how far off one published count is, and one unbiased estimate of it.

They ask for different mechanisms. Who reads single cells wants the first one small; who adds up
cells wants the second one small, since the error of a total adds up from it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.base.numbers import Rational
from mechdesign.exceptions import InvalidPrior, NoUnbiasedEstimate
from mechdesign.losses import L2, prior_over
from mechdesign.table import Table
from mechdesign.unbiased_estimate import ApproximateEstimate, UnbiasedEstimate

UNBIASED = "unbiased SE: of one group's unbiased estimate, from which the error of a total adds up"
"""What a line below a table says of the second error."""

_SMALL = 2.0**-16
"""A weighted variance below this part of the largest has too few digits in floats."""


@dataclass(frozen=True)
class StandardErrors:
    """Both errors of a mechanism, for true counts drawn from a prior.

    Attributes
    ----------
    published : float
        The root mean square error of a published count.
    unbiased : float or None
        The root mean square standard error of the unbiased estimate of one count, see
        `UnbiasedEstimate`; that of a total of k counts is sqrt(k) times as large. None where there
        is no such estimate, and for pairs of counts.
    """

    published: float
    unbiased: float | None

    @classmethod
    def of(cls, table: Table, prior: Sequence[Rational] | None = None) -> StandardErrors:
        """The errors of a table.

        Parameters
        ----------
        table : Table
            A mechanism.
        prior : sequence of Fraction, int, str or Decimal, optional
            Exact weights of the inputs, shape (inputs,), that sum to one; uniform if None.

        Returns
        -------
        StandardErrors
            Correct to nine digits at least.

        Raises
        ------
        InvalidPrior
            The prior is no distribution over the inputs.

        >>> from mechdesign import named
        >>> print(StandardErrors.of(named.geometric(8, alpha="9/10")))
        RMSE 3.8500, unbiased SE 10.748
        """
        weights = prior_over(table.inputs, prior)
        return cls(_root(table.loss(L2(prior=weights))), _unbiased(table, weights))

    def cells(self) -> dict[str, str]:
        """Both as texts, for a row of a table; "-" where there is no unbiased estimate."""
        return {
            name: "-" if value is None else f"{value:#.5g}".rstrip(".")
            for name, value in (("RMSE", self.published), ("unbiased SE", self.unbiased))
        }

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.cells().items())


def _unbiased(table: Table, prior: Sequence[Fraction]) -> float | None:
    try:
        if table.outputs == table.inputs:  # floats are enough, unless the prior picks small ones
            variances = ApproximateEstimate.of(table).variances
            weighted = math.fsum(map(operator.mul, map(float, prior), variances.tolist()))
            if weighted >= _SMALL * variances.max():
                return math.sqrt(weighted)
        return _root(UnbiasedEstimate(table, prior).variance(prior))
    except OverflowError:
        return math.inf
    except (InvalidPrior, NoUnbiasedEstimate):
        return None


def _root(square: Fraction) -> float:
    """The square root; infinite where floats end."""
    try:
        return math.sqrt(square)
    except OverflowError:
        return math.inf
