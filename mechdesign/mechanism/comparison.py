"""Mechanisms side by side: losses, errors and properties in one table."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.base import Rational, aligned, brief, printable
from mechdesign.exceptions import InvalidPrior, NoUnbiasedEstimate
from mechdesign.losses import L0, L1, L2, Loss, prior_over
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.table import Table
from mechdesign.mechanism.unbiased_estimate import (
    ApproximateEstimate,
    UnbiasedEstimate,
    mean_variance,
)
from mechdesign.properties import Property, PropertyLike, resolve


@dataclass(frozen=True)
class Comparison:
    """A table; ``str()`` lays it out, ``rows`` are for code (column name -> text)."""

    rows: tuple[dict[str, str], ...]

    def __str__(self) -> str:
        names = list(self.rows[0])
        lines = aligned([names, *([row[name] for name in names] for row in self.rows)])
        return "\n".join([*lines, UNBIASED])


def compare(
    mechanisms: Mapping[str, Mechanism],
    prior: Sequence[Rational] | None = None,
    *,
    losses: Mapping[str, Loss] | None = None,
    properties: Sequence[PropertyLike] = (),
) -> Comparison:
    """Compare mechanisms: one row each, for inputs drawn from ``prior`` (uniform if None).

    Columns: ``L0`` (plain, the chance of a wrong answer), ``scaled L0`` (eq. 6.1; always for
    uniform inputs), ``L1``, both `StandardErrors`: that of a published count (``RMSE``) and that of
    its unbiased estimate (``unbiased SE``, "-" where there is none), the worst privacy ratio (at
    most 1/alpha), and which of the seven properties hold.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By the names of their rows.
    prior : sequence of exact numbers, optional
        Weights of the inputs; None: uniform.
    losses : mapping of str to Loss, optional
        More columns, by their names; each with the prior of its own.
    properties : sequence of Property, type or str, default ()
        More properties.

    Returns
    -------
    Comparison
        To print.

    Raises
    ------
    ValueError
        Nothing to compare, mechanisms of different numbers of inputs, or an unknown property.
    """
    if not mechanisms:
        raise ValueError("no mechanism to compare")
    if len({mechanism.inputs for mechanism in mechanisms.values()}) > 1:
        sizes = ", ".join(
            f"{printable(name)}: {mechanism.inputs}" for name, mechanism in mechanisms.items()
        )
        raise ValueError(f"only mechanisms with as many inputs can be compared ({sizes})")
    more, asked = losses or {}, [resolve(item) for item in properties]
    return Comparison(
        tuple(_row(name, mechanism, prior, more, asked) for name, mechanism in mechanisms.items())
    )


def _row(
    name: str,
    mechanism: Mechanism,
    prior: Sequence[Rational] | None,
    losses: Mapping[str, Loss],
    properties: Sequence[Property],
) -> dict[str, str]:
    audit = mechanism.audit()
    verdicts = mechanism.properties(*properties)
    return {
        "mechanism": name,
        "L0": f"{float(mechanism.loss(L0(prior=prior))):.5f}",
        "scaled L0": (
            f"{float(mechanism.scaled_l0()):.5f}"
            if mechanism.output_values == mechanism.input_values and mechanism.inputs > 1
            else "-"
        ),
        "L1": f"{float(mechanism.loss(L1(prior=prior))):.4f}",
        **{title: f"{float(mechanism.loss(loss)):.4f}" for title, loss in losses.items()},
        **StandardErrors.of(mechanism, prior).cells(),
        "worst ratio": brief(audit.ratio) + ("" if audit.holds else " NOT PRIVATE"),
        **{short: "yes" if holds else "-" for short, holds in verdicts.items()},
    }


# ------------------------------------------------------------------------------------------------
# StandardErrors: how far off one published count is, and one unbiased estimate of it.
#
# They ask for different mechanisms. Who reads single cells wants the first one small; who adds up
# cells wants the second one small, since the error of a total adds up from it.


#: What a line below a table says of the second error.
UNBIASED = "unbiased SE: of one group's unbiased estimate, from which the error of a total adds up"

_SMALL = 2.0**-16  # A weighted variance below this part of the largest has too few digits in floats


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
        """Return the errors of a table, correct to nine digits at least.

        Parameters
        ----------
        table : Table
            A mechanism.
        prior : sequence of Fraction, int, str or Decimal, optional
            Exact weights of the inputs, shape (inputs,), that sum to one; uniform if None.

        Returns
        -------
        StandardErrors

        Raises
        ------
        InvalidPrior
            The prior is no distribution over the inputs.

        Examples
        --------
        >>> from mechdesign import named
        >>> print(StandardErrors.of(named.geometric(8, alpha="9/10")))
        RMSE 3.8500, unbiased SE 10.748
        """
        if table.closed is not None and prior is None:
            variance = mean_variance(table.closed)
            published = _root(table.closed.moment(2))
            return cls(published, None if variance is None else math.sqrt(variance))
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
