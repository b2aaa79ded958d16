"""GaussianLoss: the privacy loss of discrete Gaussian noise on a fine grid, with proved bounds.

Independent discrete Gaussian noise Z_i of parameter sigma_i^2 is added to integers, which one user
moves by v_i; let mu^2 = sum of v_i^2 / sigma_i^2, and let every sigma_i be at least S = 2^16. Then
for all epsilon the hockey-stick divergence of order e^epsilon is at most that of normal noise with

    mu'^2 = mu^2 (1 + 2^-16),   delta = Phi(mu'/2 - epsilon/mu') - e^epsilon Phi(-mu'/2 -
    epsilon/mu')

(Balle and Wang, ICML 2018, theorem 8), plus 2^-100000. It also holds if the v_i are chosen after
earlier numbers have been seen, as long as their mu^2 adds up to no more.

Proof. Under the second of the two distributions the privacy loss is L = -mu^2/2 - sum of v_i Z_i /
sigma_i^2, and delta = E (e^L - e^epsilon)_+ is an average of a convex function of e^L. So an
independent normal N with E e^N = 1 and variance t^2 = mu^2 2^-16 may be added to L: delta does not
fall. By Poisson's summation formula

    E e^(z v Z / sigma^2) = e^(z^2 v^2 / (2 sigma^2)) theta(z) / theta(0),
    theta(z) = sum over k of e^(-2 pi^2 sigma^2 k^2 - 2 pi i k v z),

and for |Im z| <= B = pi S / (2 mu), as |v| <= mu sigma, theta is within 4 e^(-pi^2 S^2) of 1. There
L + N has the transform of a normal variable of variance mu'^2 and mean -mu'^2/2, up to a factor
within 1 +- e^(-10^10) (for fewer than 2^63 numbers). Elsewhere on the line Re z = 2 both are at
most e^(mu'^2 - t^2 Im(z)^2 / 2). The transform of (e^x - e^epsilon)_+ is e^((1 - z) epsilon) / (z
(z - 1)), whose absolute value integrates to at most pi on that line for epsilon >= 0. So the two
deltas differ by at most e^(-10^10 + mu'^2) + e^(mu'^2 - (t B)^2 / 2), where t B = pi 2^7: less than
2^-100000 if mu^2 <= 400. For epsilon < 0 use delta(-epsilon) = 1 - e^-epsilon + e^-epsilon
delta(epsilon), of the other order, whose L is the same.

If parts of v are chosen later, each has an N of its own, so that the variance of L + N is that of
the most that was allowed, whatever was seen. Given what was seen before, the transform of each part
is then that of the same normal variable up to the same factors, or as small: so the transforms of
the sums differ by at most the sum, from the last part to the first, of these differences times
e^(mu'^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from mechdesign.accounting.pair_law import PrivacyCurve, exact_delta, exp_below
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.base import Rational, ball, brief, exact, precision, set_fields
from mechdesign.noise.discrete import DiscreteGaussian

LEAST_SIGMA2 = 1 << 32  #: The least sigma^2 of discrete Gaussian noise on a fine grid.

COARSE = (
    "the integers with this noise are too small: an epsilon with a delta is proved of noise on a"
    " finer grid; multiply their matrix by a large integer, which changes nothing else"
)

#: The largest squared mu of which anything is proved here: epsilon is above 200 then.
LARGEST_SQUARED_MU = Fraction(400)

_SPREAD = 1 + Fraction(1, 1 << 16)  # the ratio mu'^2 / mu^2

_REST = 100_000  # the negative binary logarithm of what is added to delta

LEAST_DELTA = Fraction(2, 1 << _REST)  #: The least delta at which anything is proved here.

_BITS = 512

_CLOSE = 2.0**-36  # the tolerance of an epsilon, relative to it

_LARGEST_EPSILON = 2.0**16

_PLACES = 200  # the number of binary places of a delta in a profile

#: The number of points of a profile, and how many deviations it reaches.
_POINTS, _DEVIATIONS = 160, 14


@dataclass(frozen=True, init=False)
class GaussianLoss(PrivacyCurve):
    """The privacy of numbers with discrete Gaussian noise of a sigma of at least 2^16.

    Upper bounds are proved, and within a hundred-thousandth of those of normal noise; no lower ones
    are. The sum of two is that of both together.

    Parameters
    ----------
    squared_mu : Fraction, int, str or Decimal
        The squared L2 sensitivity over sigma^2, added up over all numbers: above 0, at most 400.
        It is twice the rho of zero-concentrated privacy.

    Raises
    ------
    ValueError
        A number out of range.

    Examples
    --------
    >>> f"{GaussianLoss(1).epsilon('1e-6'):.3f}, {(GaussianLoss(1) + GaussianLoss(3)).delta(8):.2e}"
    '4.887, 4.95e-04'
    """

    squared_mu: Fraction

    def __init__(self, squared_mu: Rational) -> None:
        value = exact(squared_mu, "squared_mu")
        if not 0 < value <= LARGEST_SQUARED_MU:
            raise ValueError(
                f"squared_mu must lie above 0 and at most at {LARGEST_SQUARED_MU}, got"
                f" {brief(value, 12)}"
            )
        set_fields(self, squared_mu=value)

    @classmethod
    def of(cls, noise: DiscreteGaussian, l2_squared: int) -> GaussianLoss:
        """Return the privacy loss of a release of integers with noise added.

        Parameters
        ----------
        noise : DiscreteGaussian
            Of a sigma^2 of at least 2^32.
        l2_squared : int
            The squared L2 sensitivity of the integers, at least 1.

        Returns
        -------
        GaussianLoss

        Raises
        ------
        ValueError
            The grid of the noise is too coarse: delta may be larger than for normal noise. Or it is
            so little noise that nothing is proved of it.
        """
        if noise.sigma2 < LEAST_SIGMA2:
            raise ValueError(COARSE)
        return cls(Fraction(l2_squared) / noise.sigma2)

    def __add__(self, other: GaussianLoss) -> GaussianLoss:
        if not isinstance(other, GaussianLoss):
            return NotImplemented
        return GaussianLoss(self.squared_mu + other.squared_mu)

    @property
    def rho(self) -> Fraction:
        """The rho of zero-concentrated privacy, which the noise keeps whatever its sigma."""
        return self.squared_mu / 2

    @property
    def largest_epsilon(self) -> float:
        return math.inf

    def above(self, ratio: Fraction, smoothing: float) -> arb:
        with precision(_BITS):
            mu = ball(self.squared_mu * _SPREAD).sqrt()
            along = ball(ratio).log() / mu
            # Far in the tail the two terms agree in nearly all digits: 512 bits leave enough.
            normal = _below(mu / 2 - along) - ball(ratio) * _below(-mu / 2 - along)
            return normal.nonnegative_part() + arb(2) ** -_REST

    def below(self, ratio: Fraction, smoothing: float) -> arb:
        return arb(0)

    @precision()
    def epsilon(self, delta: float | Rational) -> float:
        """Return an epsilon as `PrivacyCurve.epsilon` does, and nearer to the least."""
        target = exact_delta(delta)

        def kept(epsilon: float) -> bool:
            return bool(self.above(exp_below(Fraction(epsilon)), 0.0) <= ball(target))

        if kept(0.0):
            return 0.0
        # Floats say where to look, and two bounds prove it
        near, step = self._near(float(target)), _CLOSE / 2
        if near and kept(near * (1 + step)) and not kept(near * (1 - step)):
            return near * (1 + step)
        high = 2.0**-60
        while not kept(high):
            if high > _LARGEST_EPSILON:
                return math.inf  # a delta below 2^-100000
            high *= 2
        low = high / 2
        while high > low * (1 + _CLOSE):
            middle = (low + high) / 2
            low, high = (low, middle) if kept(middle) else (middle, high)
        return high

    def _near(self, delta: float) -> float:
        """Return about the epsilon at a delta, in floats; 0 where they do not reach."""
        if not delta:
            return 0.0
        # Imported here: answers of other kinds do not need them
        from scipy.optimize import brentq
        from scipy.special import log_ndtr

        mu = math.sqrt(self.squared_mu * _SPREAD)

        def apart(epsilon: float) -> float:
            # In logarithms: the distribution functions underflow long before delta is 2^-100000.
            first, second = log_ndtr([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
            return float(first + np.log1p(-np.exp(epsilon + second - first))) - math.log(delta)

        with np.errstate(all="ignore"):
            high = 2.0**-30
            while apart(high) > 0 and high < _LARGEST_EPSILON:
                high *= 2
            if not apart(high) <= 0 or not apart(high / 2) > 0:
                return 0.0
            return float(brentq(apart, high / 2, high, xtol=1e-300, rtol=2.0**-48))

    @cached_property
    def profile(self) -> PrivacyLoss:
        """The finite privacy loss of at least this delta everywhere, to be composed with others."""
        mu = math.sqrt(self.squared_mu)
        # The loss has mean mu^2 / 2 and deviation mu: the grid reaches 14 deviations beyond, where
        # delta is about 1e-44. What is left becomes infinite loss.
        step = mu * (mu / 2 + _DEVIATIONS) / _POINTS
        ratios = [Fraction(math.exp(k * step)) for k in range(_POINTS + 1)]
        return PrivacyLoss.from_profile(
            (ratio, _rounded_up(self.above(ratio, 0.0))) for ratio in dict.fromkeys(ratios)
        )


def _below(x: arb) -> arb:
    """Return the standard normal distribution function."""
    return (-x / arb(2).sqrt()).erfc() / 2


def _rounded_up(x: arb) -> Fraction:
    """Return a short rational number of at least a ball, at most 1."""
    with precision(_BITS):
        units = (x * arb(2) ** _PLACES).upper().ceil().unique_fmpz()
    assert units is not None
    return min(Fraction(int(units), 1 << _PLACES), Fraction(1))
