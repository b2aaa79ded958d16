"""Promises beside pure epsilon: zero-concentrated and (epsilon, delta)-differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import scipy
from flint import ctx

from mechdesign._support.frozen import set_fields
from mechdesign._support.numbers import Rational
from mechdesign._support.text import brief, shown
from mechdesign.accounting.inversion import ball
from mechdesign.accounting.privacy_curve import exact_delta
from mechdesign.privacy import exact_epsilon

_LEAST, _LARGEST = Fraction(1, 1 << 40), Fraction(1 << 10)
"""The limits of rho and epsilon."""

_BITS = 128

_HALVINGS = 60
"""Steps in which the largest rho is found."""


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
        Strictly between 0 and 1: far below one over the number of users.

    Raises
    ------
    ValueError
        A number out of range.

    >>> 20 < ApproximateDP("1", "1e-6").noise_ratio < 25
    True
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: float | Rational, delta: float | Rational) -> None:
        set_fields(self, epsilon=_within(epsilon, "epsilon"), delta=exact_delta(delta))

    @cached_property
    def noise_ratio(self) -> Fraction:
        """A sigma^2 of Gaussian noise, over the squared sensitivity, that is proved to keep it.

        Found by zero-concentrated privacy: rho-zCDP implies this promise if for some order a > 1

            exp((a - 1) (a rho - epsilon)) (1 - 1/a)^a / (a - 1) <= delta

        (Canonne, Kamath and Steinke 2020, corollary 13).
        """
        low, high = 0.0, float(self.epsilon)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._implied(middle) else (low, middle)
        return 1 / (2 * Fraction(low))

    def _implied(self, rho: float) -> bool:
        """Whether rho-zCDP is proved to imply it, by the best order that floats find."""
        epsilon = float(self.epsilon)

        def log_delta(x: float) -> float:
            over = math.exp(x)  # a - 1
            exponent = over * ((1 + over) * rho - epsilon)
            return exponent + (1 + over) * -math.log1p(1 / over) - x

        found = scipy.optimize.minimize_scalar(log_delta, bounds=(-20.0, 40.0), method="bounded")
        with ctx.workprec(_BITS):
            over = ball(Fraction(math.exp(float(found.x))))
            exponent = over * ((1 + over) * ball(Fraction(rho)) - ball(self.epsilon))
            bound = exponent - (1 + over) * (1 + 1 / over).log() - over.log()
            return bool(bound <= ball(self.delta).log())

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
