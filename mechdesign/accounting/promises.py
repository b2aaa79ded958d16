"""Promises beside pure epsilon: zero-concentrated and (epsilon, delta)-differential privacy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb

from mechdesign.accounting.gaussian_loss import LARGEST_SQUARED_MU, LEAST_DELTA, GaussianLoss
from mechdesign.accounting.pair_law import exact_delta, exp_below
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.approximate_privacy import ApproximatePrivacy
from mechdesign.base import Rational, ball, brief, fraction, precision, set_fields, shown
from mechdesign.privacy import Neighbours, exact_epsilon

_LEAST, _LARGEST = Fraction(1, 1 << 40), Fraction(1 << 10)  #: The limits of rho and epsilon.

# The margin by which `GaussianLoss.epsilon` finds no more than was promised.
_MARGIN = 1 - Fraction(1, 1 << 32)

_CLOSE = 2.0**-30  # the relative excess of noise over the least


@dataclass(frozen=True, init=False)
class ZCDP:
    """The promise of rho-zero-concentrated differential privacy (Bun and Steinke, TCC 2016).

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

    Examples
    --------
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
    """The promise of (epsilon, delta)-differential privacy.

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

    Examples
    --------
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
        """The sigma^2 of Gaussian noise, over the squared sensitivity, that is proved to keep it.

        It is nearly the least, for the noise of `mechdesign.accounting.gaussian_loss`: sigma >=
        2^16.
        """
        ratio = exp_below(self.epsilon * _MARGIN)
        low, high = 0.0, float(LARGEST_SQUARED_MU)
        while high > low * (1 + _CLOSE):
            # Geometric steps until something is proved, then bisection. Invariant: `low` is proved,
            # once it is above 0, and the inverse of it is returned: the noise errs upwards.
            middle = (low + high) / 2 if low else high / 16
            kept = GaussianLoss(Fraction(middle)).above(ratio, 0.0) <= ball(self.delta)
            low, high = (middle, high) if kept else (low, middle)
        return 1 / Fraction(low)

    def between(
        self, neighbours: Neighbours | Iterable[tuple[int, int]] = "adjacent"
    ) -> ApproximatePrivacy:
        """Return the same promise for the table of a mechanism, between such inputs.

        Parameters
        ----------
        neighbours : str, int, or iterable of pairs of int, default "adjacent"
            As of `mechdesign.ApproximatePrivacy`.

        Returns
        -------
        ApproximatePrivacy
            Of an epsilon that is a little smaller, as `Privacy.from_epsilon` has it.

        Raises
        ------
        ValueError
            A `Metric`.
        """
        return ApproximatePrivacy.from_epsilon(self.epsilon, self.delta, neighbours)

    def __repr__(self) -> str:
        return f"ApproximateDP({brief(self.epsilon, 12)}, {brief(self.delta, 12)})"


def _within(value: float | Rational, name: str) -> Fraction:
    try:
        asked = exact_epsilon(value)
    except ValueError:
        asked = Fraction(0)
    if not _LEAST <= asked <= _LARGEST:
        raise ValueError(f"{name} must be a number from 2^-40 to 1024, got {shown(value)}")
    return asked


# ------------------------------------------------------------------------------------------------
# Renyi divergences of composed privacy losses, and the least rho of zero-concentrated privacy.
#
# For a privacy loss L under the first of two distributions, let K(s) = ln E e^(sL). The Renyi
# divergence of order a is K(a - 1) / (a - 1) (Mironov, CSF 2017), and those of independent releases
# add up. A mechanism keeps rho-zCDP if for every order a > 1 it is at most rho a (Bun and Steinke,
# TCC 2016, definition 1.1): with s = a - 1,
#
#     rho >= K(s) / (s (s + 1))    for every s > 0.
#
# All orders are covered, not a list of them. K is convex and K(0) = 0, so between two places it is
# below its chord, and beyond the last place below a line that rises by the largest loss. For a line
# B s - A, where A, B >= 0, calculus gives
#
#     max over s > 0 of (B s - A) / (s (s + 1)) = (sqrt(A + B) - sqrt(A))^2.
#
# The largest such number over pieces that cover all s is a bound. No line is above K outside of its
# piece, so it says too much only by the bend of K in the piece: those that bound worst are halved
# until that gains nothing.


_BITS = 192

_GAIN = 2.0**-20  # the relative excess of the bound over rho at which it is tight enough

_PIECES = 400  # the most pieces; reached only where K is as small as its rounding


@dataclass(frozen=True)
class RenyiCurve:
    """The Renyi divergence by its order of some privacy losses, each as often as stated."""

    parts: Sequence[tuple[PrivacyLoss, int]]  # of independent or adaptive releases

    def divergence(self, order: Fraction) -> arb:
        """Return the divergence of an order above 1: a ball, infinite if a loss may be."""
        if self._unbounded:
            return arb("inf")
        with precision(_BITS):
            s = ball(order - 1)
            return self._log_moment(s) / s

    def rho(self) -> arb:
        """Return at least the least rho of zero-concentrated privacy: the ball's upper end."""
        if self._unbounded:
            return arb("inf")
        with precision(_BITS):
            moments = {Fraction(0): arb(0), Fraction(1): self._log_moment(arb(1))}
            pieces: dict[tuple[Fraction, Fraction | None], arb] = {}

            def cover(start: Fraction, end: Fraction | None) -> None:
                if end is None:
                    slope = self._largest
                else:
                    slope = (moments[end] - moments[start]) / ball(end - start)
                # The line through (start, K(start)) with this slope: B s - A with A = B start -
                # K(start), at least 0, as K is convex and 0 at 0.
                pieces[start, end] = _most(slope, slope * ball(start) - moments[start])

            cover(Fraction(0), Fraction(1))
            cover(Fraction(1), None)
            reached = arb(0)
            while True:
                # Bound and attained value meet: `reached` is a value of the function at one order,
                # the largest piece an upper bound for all orders.
                worst = max(pieces, key=lambda piece: float(pieces[piece]))
                bound = pieces[worst]
                if not bound > reached * (1 + _GAIN) or len(pieces) == _PIECES:
                    return bound
                start, end = worst
                middle = 2 * start if end is None else (start + end) / 2
                s = ball(middle)
                moments[middle] = self._log_moment(s)
                reached = reached.max((moments[middle] / (s * (s + 1))).lower())
                del pieces[worst]
                cover(start, middle)
                cover(middle, end)

    @cached_property
    def _unbounded(self) -> bool:
        return any(loss.infinite for loss, _ in self.parts)

    @cached_property
    def _losses(self) -> list[tuple[list[arb], list[arb], int]]:
        return [
            ([ball(p) for _, p in loss.ratios], [ball(r).log() for r, _ in loss.ratios], times)
            for loss, times in self.parts
        ]

    @property
    def _largest(self) -> arb:
        return sum((times * losses[-1] for _, losses, times in self._losses), arb(0))

    def _log_moment(self, s: arb) -> arb:
        """Return K(s)."""
        total = arb(0)
        for probabilities, losses, times in self._losses:
            terms = zip(probabilities, losses, strict=True)
            total += times * sum((p * (s * x).exp() for p, x in terms), arb(0)).log()
        return total


def exact_order(order: float | Rational) -> Fraction:
    """Return the exact order, without rounding; ValueError unless it is finite and above 1."""
    value = fraction(order, "an order of Renyi divergence", "finite and above 1")
    if value <= 1:
        raise ValueError(f"an order of Renyi divergence must be above 1, got {brief(value)}")
    return value


def _most(slope: arb, drop: arb) -> arb:
    """Return the maximum of (slope s - drop) / (s (s + 1)) over s > 0: it falls with the drop."""
    slope, drop = slope.upper().nonnegative_part(), drop.lower().nonnegative_part()
    if slope == 0:
        return arb(0)
    # sqrt(A + B) - sqrt(A) without cancellation, where A is far larger than B.
    return (slope / ((slope + drop).sqrt() + drop.sqrt())) ** 2
