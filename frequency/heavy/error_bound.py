"""The lower bound on the error of histograms under local privacy, which no protocol can beat.

With it, what a report can tell about an item at most, and what a degraded item keeps private:
Bassily and Smith 2015, section 5, with constants, for (epsilon, delta)-local privacy: Pr[report in
S | item] <= e^epsilon Pr[report in S | other item] + delta for all sets S and all pairs of items.
The formulas of the source are lost in the text used; all are derived here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from frequency.core import Oracle, checked_users
from frequency.oracles import HRR
from mechdesign import Privacy
from mechdesign.base import Floats, Rational, shown, whole

# ------------------------------------------------------------------------------------------------
# The errors of the estimate of an item: its deviation, and what noise may reach among many.


@dataclass(frozen=True)
class ItemErrors:
    """The errors of estimates from reports of a random part of a population.

    They are relative to all of the population.
    """

    users: int  # reports, at least 1
    population: int  # of whom these users are a random part
    noise: Callable[[Any], Any]  # the variance of the protocol, by frequencies
    # what an item that nobody holds exceeds with at most this probability
    null: Callable[[float], float]
    confusion: float = 0.0  # the variance that other items add to every estimate

    @classmethod
    def of(cls, oracle: Oracle, users: int, population: int, confusion: float = 0.0) -> ItemErrors:
        """Return the errors of a frequency oracle."""
        return cls(
            users,
            population,
            partial(oracle.variance, users),
            partial(null_of, oracle, users),
            confusion,
        )

    def deviation(self, frequency: Floats) -> Floats:
        """Return the standard deviation of the estimates of items of these frequencies."""
        f = np.clip(frequency, 0.0, 1.0)
        # Sampling without replacement: nothing where all of the population reported.
        sampling = f * (1 - f) * (1 / self.users - 1 / self.population)
        return np.asarray(
            np.sqrt(np.maximum(np.asarray(self.noise(f)) + sampling + self.confusion, 0.0))
        )

    def beyond(self, alpha: float) -> float:
        """Return what the estimate of an absent item exceeds with probability ``alpha`` at most."""
        return float(
            np.hypot(self.null(alpha), scipy.special.ndtri(alpha) * np.sqrt(self.confusion))
        )


def null_of(oracle: Oracle, users: int, alpha: float) -> float:
    """Return `ItemErrors.null` of an oracle: exact of counted supporters or signs, else normal."""
    if oracle.support is not None:
        # Supporters of an item that nobody holds are binomial, which far in the tail is not normal:
        # with large epsilon or few users noise reaches further
        p, q = oracle.support
        return (reach(users, float(q), alpha) / users - float(q)) / float(p - q)
    if isinstance(oracle, HRR) and oracle.coefficients == 1:
        return null_of_signs(oracle.scale, users, alpha) + 1 / oracle.padded
    return -float(scipy.special.ndtri(alpha) * np.sqrt(oracle.variance(users, 0.0)))


def noise_of_signs(scale: float, users: int, frequency: Any) -> Any:
    """Return the variance of the mean of signs times a scale, whose mean is the frequency."""
    return (scale**2 - frequency) / users


def null_of_signs(scale: float, users: int, alpha: float) -> float:
    """Return what the mean of fair signs, scaled, exceeds with probability ``alpha`` at most."""
    return scale * (2 * reach(users, 0.5, alpha) - users) / users


def reach(users: int, q: float, alpha: float) -> int:
    """Return the least number that a binomial count exceeds with probability ``alpha`` at most."""
    # Pr[count > k] is the regularised incomplete beta function I_q(k + 1, users - k), accurate far
    # in the tail, where 1 - (a distribution function) would be 0. It falls with k: bisection.
    return bisect_left(
        range(users), True, key=lambda k: bool(scipy.special.betainc(k + 1, users - k, q) <= alpha)
    )


def degraded(epsilon: float | Rational, delta: float, kept: float) -> tuple[float, float]:
    """Return the privacy of an item that is replaced by a uniform one, unless by chance it is kept.

    Bassily and Smith 2015, Claim 5.5 (the degrading channel of eq. 14), which has O(kept epsilon)
    and O(kept delta): the report of an (epsilon, delta)-private protocol is then (epsilon',
    delta')-private with

        e^epsilon' = 1 + kept (e^epsilon - 1),  delta' = kept delta,

    and no less, for many items. Let a, b and m be the probabilities of a set of reports under two
    items and their mean over all items. Then b and m are at least (a - delta) e^-epsilon, and with
    r = e^epsilon' the excess kept a + (1 - kept) m - r (kept b + (1 - kept) m) falls with b and
    with m: it is at most kept a - (kept + r - 1) (a - delta) e^-epsilon = kept delta; and kept a is
    less where a < delta.

    Parameters
    ----------
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of the protocol, above 0.
    delta : float
        Its delta, at least 0 and below 1.
    kept : float
        The probability that the item is kept, 0 to 1.

    Returns
    -------
    tuple of float
        epsilon' and delta'.

    Raises
    ------
    ValueError
        An argument out of range.

    Examples
    --------
    >>> tuple(round(number, 9) for number in degraded(1.0, 1e-6, 0.1))
    (0.158565069, 1e-07)
    """
    loss, delta, kept = _loss(epsilon), _probability(delta, "delta"), _share(kept)
    return _degraded(loss, kept), kept * delta


def information_bound(
    d: int, epsilon: float | Rational, delta: float = 0.0, kept: float = 1.0
) -> float:
    """Return the most that a private report can tell about a uniform item, in nats.

    Bassily and Smith 2015, Claim 5.4, which has O(epsilon^2 + (delta / epsilon) ln(d epsilon /
    delta)) for ``kept`` = 1. Here, for all epsilon and delta,

        (1 - delta) e tanh(e / 2) + delta (d ln d - e exp(e)) / (d - exp(e)),  e = epsilon,

    about epsilon^2 / 2 + delta ln d, without 1 / epsilon; less where d is below exp(e), or delta
    large. A protocol that tells the item aloud with probability delta has the second term.

    Let r be the probability of a report under an item over the mean of all items: 0 to d, of mean
    1, and the information is the mean of r ln r. As the mean of all items is as private, the mean
    of (r - e^epsilon)+ is at most delta, and so is that of (1 - e^epsilon r)+. Between the values
    0, e^-epsilon, e^epsilon and d these two are linear and r ln r is convex, so that r has no other
    values where it tells most; and then it is 0 with probability delta, d with delta / (d -
    e^epsilon), and e^-epsilon is e^epsilon times as likely as the two largest together.

    Without delta the items are compared in pairs, which tells more: at each report the r of all
    items are within a factor of e^epsilon. The most is x - 1 - ln x with x = epsilon / (1 -
    e^-epsilon), about epsilon^2 / 8.

    An item that is replaced by a uniform one, unless it is kept with probability ``kept``, has 1 +
    kept (r - 1) instead of r (`degraded`).

    Parameters
    ----------
    d : int
        The number of items, at least 1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of a report, above 0.
    delta : float, default 0.0
        The delta of a report, at least 0 and below 1.
    kept : float, default 1.0
        The probability that the report is of the item, 0 to 1.

    Returns
    -------
    float
        Nats, at most ln d.

    Raises
    ------
    ValueError
        An argument out of range.

    Examples
    --------
    >>> round(information_bound(1000, 0.5), 5), round(information_bound(1000, 0.5, 1e-3), 5)
    (0.03114, 0.12926)
    """
    d = whole(d, "d", 1, what="a number of items")
    return _information(d, _loss(epsilon), _probability(delta, "delta"), _share(kept))


def lower_bound(n: int, d: int, epsilon: float | Rational, delta: float = 0.0) -> float:
    """Return a lower bound on the largest error of estimated frequencies, for any protocol.

    For some distribution of the users' items the error exceeds this number on average.

    Bassily and Smith 2015, Lemma 5.1 and Theorem 5.2, with constants: every eps-LDP protocol for n
    users and d items has, for some distribution p from which the items are drawn, E max_x
    |estimate(x) - p(x)| of at least

        max over 0 < t <= 1 of  (t / 2) (1 - (n t^2 sinh^2(eps / 2) + ln 2) / ln d),

    which is about 2 / (3 sqrt 3) sqrt(ln d / (n eps^2)), 0.385 sqrt(ln d / n) / eps, for large d
    and small eps. The error for the frequencies among the users themselves differs by no more than
    what drawing the users adds, E max_x |share(x) - p(x)|.

    Let v be a uniform item and p = t [x = v] + (1 - t) / d. A user's report tells at most t^2
    sinh^2(eps / 2) nats about v: given v, its distribution is a mixture of v's with weight t and of
    the average over all items; its divergence from the average is at most its chi-square
    divergence, t^2 times that of v's distribution; and numbers that average 1 and lie within a
    factor of e^eps have variance at most (e^eps - 1)^2 / (4 e^eps). By Fano's inequality v is not
    told with probability at least 1 - (n t^2 sinh^2(eps / 2) + ln 2) / ln d; but estimates with all
    errors below t / 2 tell it.

    With delta, t^2 sinh^2(eps / 2) becomes `information_bound` of an item that is kept with
    probability t: the bound is of the same order while n delta is small, as in the source, and at
    most that without delta. As it tends to it, about 1 / sqrt 2 of that is left: what is told of an
    item is then compared with the mean of all, not with the others.

    Parameters
    ----------
    n : int
        The number of users.
    d : int
        The number of items, at least 1 (and no bound but 0 for d = 1, 2).
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of a report, above 0.
    delta : float, default 0.0
        The delta of a report, at least 0 and below 1.

    Returns
    -------
    float
        A fraction of the users, 0 to 1/2.

    Raises
    ------
    ValueError
        An argument out of range.

    Examples
    --------
    >>> round(lower_bound(10**6, 2**16, 1.0), 5)
    0.00112
    """
    n, loss, delta = checked_users(n), _loss(epsilon), _probability(delta, "delta")
    d = whole(d, "d", 1, what="a number of items")
    if d <= 2:
        return 0.0
    rate = n * math.sinh(min(loss / 2, 300.0)) ** 2 / math.log(d)
    room = 1 - math.log(2) / math.log(d)
    # The maximum of t (room - rate t^2) / 2: its derivative is 0 at t^2 = room / (3 rate).
    t = 1.0 if 3 * rate <= room else math.sqrt(room / (3 * rate))
    pure = max(0.0, t / 2 * (room - rate * t**2))
    if not delta:
        return pure
    # Every t gives a bound, so that the best of a grid is one, too
    bounds = [
        t / 2 * (room - n * _information(d, loss, delta, t) / math.log(d))
        for t in np.geomspace(1e-12, 1, 2000).tolist()
    ]
    return min(pure, max(0.0, *bounds))


def _degraded(loss: float, kept: float) -> float:
    # ln(1 + kept (e^loss - 1)): by expm1 where loss is small, and with the exponential taken out
    # where it would overflow.
    if loss < 1:
        return math.log1p(kept * math.expm1(loss))
    return loss + math.log(kept + (1 - kept) * math.exp(-loss))


def _information(d: int, loss: float, delta: float, kept: float) -> float:
    loss = min(loss, 600.0)  # of which nothing is left to be told
    ratio = math.exp(loss)

    def told(*cases: tuple[float, float]) -> float:
        """Return the mean of r ln r over pairs of r, before degrading, and its probability."""
        total = 0.0
        for r, probability in cases:
            more = kept * (r - 1)
            # Less r - 1, whose mean is 0: nothing cancels
            total += probability * ((1 + more) * math.log1p(more) - more if more > -1 else 1.0)
        return total

    # The report that names the item: no law of r with these bounds tells more.
    all_of_it = told((0.0, 1 - 1 / d), (float(d), 1 / d))
    if delta == 0:
        degraded_loss = _degraded(loss, kept)
        x = degraded_loss / -math.expm1(-degraded_loss) - 1 if degraded_loss else 0.0
        return min(all_of_it, x - math.log1p(x))
    low, upper = 1 / ratio, (1 - delta) / (1 + ratio)
    most = delta / (d - ratio) if d > ratio else math.inf
    if most <= upper:
        return told((0.0, delta), (low, ratio * upper), (ratio, upper - most), (float(d), most))
    most = (1 - (1 - delta) * low) / (d - low)  # so that the mean is 1 without e^epsilon
    if most <= 1 - delta:
        return told((0.0, delta), (low, 1 - delta - most), (float(d), most))
    return all_of_it


def _loss(epsilon: Any) -> float:
    loss = float(Privacy.from_epsilon(epsilon, neighbours="all").epsilon)
    if not loss > 0:
        raise ValueError(
            "epsilon must be above 0: without it nothing is told, and every error is possible"
        )
    return loss


def _share(kept: Any) -> float:
    return 1.0 if kept == 1 and not isinstance(kept, bool) else _probability(kept, "kept")


def _probability(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a number of at least 0 and below 1, got {shown(value)}")
    return float(value)
