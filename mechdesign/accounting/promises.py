"""Promises beside pure epsilon: zero-concentrated and (epsilon, delta)-differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mechdesign.accounting.gaussian_loss import LARGEST_SQUARED_MU, LEAST_DELTA, GaussianLoss
from mechdesign.accounting.privacy_curve import exact_delta, exp_below
from mechdesign.base.balls import ball, precision
from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import Rational
from mechdesign.base.text import brief, shown
from mechdesign.privacy import exact_epsilon

_LEAST, _LARGEST = Fraction(1, 1 << 40), Fraction(1 << 10)
"""The limits of rho and epsilon."""

_MARGIN = 1 - Fraction(1, 1 << 32)
"""So that what `GaussianLoss.epsilon` finds is no more than was promised."""

_CLOSE = 2.0**-30
"""How near noise is to the least, relative to it."""


@dataclass(frozen=True, init=False)
class ZCDP:
    """rho-zero-concentrated differential privacy (Bun and Steinke, TCC 2016).

    For every order a > 1 the Renyi divergence between neighbours is at most rho a. The rho of
    several releases add up.

    Parameters
    ----------
    rho : float, Fraction, int, str or Decimal
        From 2^-40 to 1024. A float stands for the binary number that it is.

    Raises
    ------
    ValueError
        A number out of range.

    >>> ZCDP("1/2").noise_ratio
    Fraction(1, 1)
    """

    rho: Fraction

    def __init__(self, rho: float | Rational) -> None:
        set_fields(self, rho=_within(rho, "rho"))

    @property
    def noise_ratio(self) -> Fraction:
        """The least sigma^2 of Gaussian noise, over the squared sensitivity, that keeps it."""
        return 1 / (2 * self.rho)

    def __repr__(self) -> str:
        return f"ZCDP({brief(self.rho, 12)})"


@dataclass(frozen=True, init=False)
class ApproximateDP:
    """(epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float, Fraction, int, str or Decimal
        From 2^-40 to 1024. A float stands for the binary number that it is.
    delta : float, Fraction, int, str or Decimal
        At least 2^-99999 and below 1: far below one over the number of users.

    Raises
    ------
    ValueError
        A number out of range.

    >>> f"{float(ApproximateDP('1', '1e-6').noise_ratio):.4f}"
    '17.8482'
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: float | Rational, delta: float | Rational) -> None:
        exactly = exact_delta(delta)
        if exactly < LEAST_DELTA:
            raise ValueError(f"delta must be at least 2^-99999, got {brief(exactly, 12)}")
        set_fields(self, epsilon=_within(epsilon, "epsilon"), delta=exactly)

    @cached_property
    @precision()
    def noise_ratio(self) -> Fraction:
        """A sigma^2 of Gaussian noise, over the squared sensitivity, that is proved to keep it.

        That is for discrete noise of a sigma of at least 2^16: see
        `mechdesign.accounting.gaussian_loss`. It is nearly the least.
        """
        ratio = exp_below(self.epsilon * _MARGIN)
        low, high = 0.0, float(LARGEST_SQUARED_MU)
        while high > low * (1 + _CLOSE):
            middle = (low + high) / 2 if low else high / 16
            kept = GaussianLoss(Fraction(middle)).above(ratio, 0.0) <= ball(self.delta)
            low, high = (middle, high) if kept else (low, middle)
        return 1 / Fraction(low)

    def __repr__(self) -> str:
        return f"ApproximateDP({brief(self.epsilon, 12)}, {brief(self.delta, 12)})"


def _within(value: float | Rational, name: str) -> Fraction:
    try:
        found = exact_epsilon(value)
    except ValueError:
        found = Fraction(0)
    if not _LEAST <= found <= _LARGEST:
        raise ValueError(f"{name} must be a number from 2^-40 to 1024, got {shown(value)}")
    return found
