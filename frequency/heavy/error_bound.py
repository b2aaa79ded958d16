"""What no protocol can beat: the lower bound on the error of histograms under local privacy."""

from __future__ import annotations

import math

from frequency.core.oracle import checked_users
from mechdesign import Privacy
from mechdesign._support.numbers import Rational, whole


def lower_bound(n: int, d: int, epsilon: float | Rational) -> float:
    """A lower bound on the largest error of estimated frequencies, for any protocol.

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

    Parameters
    ----------
    n : int
        The number of users.
    d : int
        The number of items, at least 1 (and no bound but 0 for d = 1, 2).
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of a report, above 0.

    Returns
    -------
    float
        A fraction of the users, 0 to 1/2.

    Raises
    ------
    ValueError
        An argument out of range.

    >>> round(lower_bound(10**6, 2**16, 1.0), 5)
    0.00112
    """
    n, epsilon = checked_users(n), float(Privacy.from_epsilon(epsilon, neighbours="all").epsilon)
    if not epsilon > 0:
        raise ValueError(
            "epsilon must be above 0: without it nothing is told, and every error is possible"
        )
    d = whole(d, "d", 1, what="a number of items")
    if d <= 2:
        return 0.0
    rate = n * math.sinh(min(epsilon / 2, 300.0)) ** 2 / math.log(d)
    room = 1 - math.log(2) / math.log(d)
    t = 1.0 if 3 * rate <= room else math.sqrt(room / (3 * rate))
    return max(0.0, t / 2 * (room - rate * t**2))
