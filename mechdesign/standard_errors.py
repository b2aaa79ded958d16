"""StandardErrors: how far off one published count is, and one unbiased estimate of it.

They ask for different mechanisms. Who reads single cells wants the first one small; who adds up
cells wants the second one small, since the error of a total adds up from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_mat, ctx, fmpz_mat

from mechdesign._support.numbers import Rational
from mechdesign.exceptions import InvalidPrior, NoUnbiasedEstimate
from mechdesign.losses import L2, prior_over
from mechdesign.table import Table
from mechdesign.unbiased_estimate import UnbiasedEstimate
from mechdesign.values import Counts

UNBIASED = "unbiased SE: of one group's unbiased estimate, from which the error of a total adds up"
"""What a line below a table says of the second error."""

_PRECISIONS = (128, 512, 2048)
"""Bits that are tried before exact arithmetic."""

_BITS = 40
"""Of them so many must be certain in the result."""


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
        >>> print(StandardErrors.of(named.geometric(8, "9/10")))
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
    if not isinstance(table.input_values, Counts):
        return None
    if table.outputs == table.inputs:
        for precision in _PRECISIONS:
            with ctx.workprec(precision):
                variance = _enclosed_variance(table, prior)
                if variance is not None and variance.rel_accuracy_bits() >= _BITS:
                    return float(variance.sqrt().mid())
    try:
        try:
            estimate = UnbiasedEstimate(table, prior)
        except InvalidPrior:  # it leaves open which of several is best
            estimate = UnbiasedEstimate(table)
    except NoUnbiasedEstimate:
        return None
    return _root(estimate.variance(prior))


def _enclosed_variance(table: Table, prior: Sequence[Fraction]) -> arb | None:
    """The expected variance, enclosed; None where the precision does not show an inverse."""
    scale = math.lcm(*(weight.denominator for weight in prior))
    weights = [int(weight * scale) for weight in prior]
    columns = fmpz_mat([*zip(*table.weights, strict=True)])
    counts = [[table.denominator * j] for j in range(table.inputs)]
    try:
        values = arb_mat(columns).solve(arb_mat(counts)).entries()
    except ZeroDivisionError:
        return None
    masses = (fmpz_mat([weights]) * columns).entries()
    squares = sum((arb(mass) * t**2 for mass, t in zip(masses, values, strict=True)), arb(0))
    truth = sum(weight * j**2 for j, weight in enumerate(weights))
    return (squares / table.denominator - truth) / scale


def _root(square: Fraction) -> float:
    """The square root; infinite where floats end."""
    try:
        return math.sqrt(square)
    except OverflowError:
        return math.inf
