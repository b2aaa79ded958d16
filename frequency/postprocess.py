"""Opt-in clean-up of frequencies that were estimated under local privacy.

Such frequencies may be negative and need not sum to one.

**Take `empirical_bayes`**: it learns from all the estimates how frequencies are distributed, errs
as little as the best of the other methods or less on nearly all data, and has intervals. Those
others are for comparison, and for estimates of which only the numbers are known.

The methods and their names are those of T. Wang, M. Lopuhaä-Zwakenberg, Z. Li, B. Škorić and N. Li,
*Locally Differentially Private Frequency Estimation with Consistency*, NDSS 2020, arXiv:1905.08320
("the paper"). They read nothing but the estimates, so they cost no privacy. All but `norm` give up
unbiasedness.

In every function ``values`` holds one estimate for each of the d >= 1 items, shape (d,): a fraction
of the population, with 1 for everybody. A new float64 array of that shape is returned, and the
input is never changed. Permuting the items permutes the result. InvalidEstimates (a ValueError) is
raised for an empty array, for one that is not one-dimensional, and for NaN and infinite entries.
"Sums to 1", and every identity below, is meant up to the rounding of floats. `empirical_bayes`
alone takes the estimate itself, and works out the deviations.

``deviations`` are the standard deviations that the estimates have at a true frequency of 0, as
fractions: one number, or one for each item. A "distribution" is non-negative and sums to 1.

| function | non-negative | sums to 1 | least change in L2 | keeps the order | idempotent |
| --- | --- | --- | --- | --- | --- |
| `base_pos` | yes | | to non-negative | yes | yes |
| `base_cut` | yes | | | for one deviation | yes |
| `norm` | | yes | to sum 1 | yes | yes |
| `norm_mul` | yes | yes | | yes | yes |
| `norm_sub` | yes | yes | to a distribution | yes | yes |
| `norm_cut` | yes | at most 1 | | yes | yes |
| `mle_apx` | yes | yes | weighted, see there | yes | yes |
| `power` | yes | | | for one deviation | |
| `power_ns` | yes | yes | | for one deviation | |
| `empirical_bayes` | yes | yes | | for one deviation | |
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import empirical_bayes
from frequency.exceptions import InvalidEstimates

__all__ = [
    "base_cut",
    "base_pos",
    "empirical_bayes",
    "mle_apx",
    "norm",
    "norm_cut",
    "norm_mul",
    "norm_sub",
    "power",
    "power_ns",
    "project_simplex",
]

Array = npt.NDArray[np.float64]

# The largest exponent that `power` fits: a prior this steep has its mean at about 9/8 of the least
# frequency.
_STEEPEST = 10.0

# The deviations after which a Gaussian likelihood, exp(-32) = 1.3e-14 of its peak, is neglected
# above the peak.
_REACH = 8.0

_PANELS = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# The items integrated at a time: memory holds a few arrays of 8 x 16 x 2 x 2048 floats.
_ROWS = 2048


def base_pos(values: npt.ArrayLike) -> Array:
    """Base-Pos: replace negative estimates by 0.

    The result is the nearest non-negative array in L2, and the same estimate where positive.

    >>> base_pos([0.75, -0.25, 0.5]).tolist()
    [0.75, 0.0, 0.5]
    """
    return _positive(_estimates(values))


def base_cut(values: npt.ArrayLike, deviations: npt.ArrayLike, level: float = 0.05) -> Array:
    """Base-Cut: replace estimates that noise alone explains by 0, and keep the others.

    Kept is what exceeds Phi^-1(1 - level / d) deviations (and 0). If the errors are Gaussian, at
    most ``level`` is the probability that any item with a true frequency of 0 is kept, by the union
    bound over the d items.

    Parameters
    ----------
    values : array_like
        Shape (d,): estimated fractions of the population.
    deviations : array_like
        Standard deviations at a true frequency of 0: one number, or shape (d,), at least 0.
    level : float, default 0.05
        A probability, strictly between 0 and 1.

    Returns
    -------
    numpy.ndarray
        Shape (d,): non-negative.

    Raises
    ------
    InvalidEstimates
        Deviations that are negative, not finite, or of another shape.
    ValueError
        A level outside (0, 1).

    Examples
    --------
    >>> base_cut([0.5, 0.04, -0.1], 0.02).tolist()
    [0.5, 0.0, 0.0]
    """
    estimates = _estimates(values)
    noise = _deviations(deviations, estimates)
    if not 0 < level < 1:
        raise ValueError(
            f"the level must be a probability between 0 and 1, exclusive, got {level!r}"
        )
    # -Phi^-1(x) is Phi^-1(1 - x) without the rounding of 1 - x. It is negative only for d = 1 and a
    # level above 1/2.
    threshold = max(0.0, -float(scipy.special.ndtri(level / estimates.size))) * noise
    return np.where(estimates > threshold, estimates, 0.0)


def norm(values: npt.ArrayLike) -> Array:
    """Norm: add one constant to all estimates, so that they sum to 1.

    The nearest array with sum 1 in L2 (orthogonal projection on a hyperplane). All differences
    between items are kept, and so are negative estimates. Unbiased estimates stay unbiased.

    >>> norm([0.75, 0.75, -0.25, 0.25]).tolist()
    [0.625, 0.625, -0.375, 0.125]
    """
    estimates = _estimates(values)
    return estimates + (1.0 - float(estimates.sum())) / estimates.size


def norm_mul(values: npt.ArrayLike) -> Array:
    """Norm-Mul: replace negative estimates by 0, and scale the others to sum to 1.

    Keeps the ratios between positive estimates; if there are none, the result is uniform.

    >>> norm_mul([1.5, 0.5, -0.25]).tolist()
    [0.75, 0.25, 0.0]
    """
    positive = base_pos(values)
    largest = float(positive.max())
    if largest == 0.0:
        return np.full_like(positive, 1.0 / positive.size)
    # Scaled first, so that the sum neither overflows nor is lost among the smallest floats.
    positive /= largest
    positive /= positive.sum()
    return positive


def norm_sub(values: npt.ArrayLike) -> Array:
    """Norm-Sub: return max(values + delta, 0), with the constant delta for which this sums to 1.

    This is the Euclidean projection on the probability simplex, also here as `project_simplex`: of
    all distributions, the one that changes the estimates least in L2. A distribution is returned as
    it is. A few rounds of O(d).

    Proof. Minimising sum (f_i - v_i)^2 / 2 over f >= 0 with sum 1 is strictly convex, so that the
    KKT conditions single out the optimum: f_i = v_i + delta + mu_i with a multiplier delta of the
    sum, and multipliers mu_i >= 0 of f_i >= 0 that are 0 wherever f_i > 0. If v_i + delta > 0 then
    f_i > 0, mu_i = 0 and f_i = v_i + delta; else f_i = 0. That is f = max(v + delta, 0), and the
    sum grows with delta from 0 without bound, so that it is 1 for exactly one delta.

    >>> norm_sub([0.75, 0.5, -0.5]).tolist()
    [0.625, 0.375, 0.0]
    >>> norm_sub([0.5, -0.25]).tolist()
    [0.875, 0.125]
    """
    estimates = _estimates(values)
    # A constant added to all changes nothing but delta; from the largest down, what is kept lies
    # within 1 and rounds well.
    lowered = estimates - estimates.max()
    count, total = _support(lowered, 0.0)
    return _positive(lowered + (1.0 - total) / count)


#: The Euclidean projection on the probability simplex: the same function as `norm_sub`, whose
#: docstring has the proof.
project_simplex = norm_sub


def norm_cut(values: npt.ArrayLike) -> Array:
    """Norm-Cut: replace negative and small estimates by 0, so that the rest sums to at most 1.

    The rest is unchanged, and its sum as near to 1 as can be.

    Kept is every estimate of at least theta, the least theta > 0 for which their sum does not
    exceed 1; items with equal estimates are kept or cut together. So positive estimates that sum to
    at most 1 are all kept, and the result may sum to less. If even the largest estimate (with its
    equals) is too much, those share 1 equally: the most frequent item is never cut. O(d log d).

    (The authors' code, github.com/vvv214/LDP_Protocols, keeps one item more and divides by the
    sum.)

    >>> norm_cut([0.25, 0.5, 0.375, -0.125]).tolist()
    [0.0, 0.5, 0.375, 0.0]
    >>> norm_cut([0.25, 1.25]).tolist()
    [0.0, 1.0]
    """
    positive = base_pos(values)
    descending = np.sort(positive)[::-1]
    # The rounding of a running sum up to 1 is less than d eps; a distribution must not lose an item
    # to it.
    fitting = np.count_nonzero(
        descending.cumsum() <= 1.0 + positive.size * np.finfo(np.float64).eps
    )
    if fitting == positive.size:
        return positive
    first_cut, largest = descending[fitting], descending[0]
    if largest == first_cut:
        top = positive == largest
        return np.where(top, 1.0 / np.count_nonzero(top), 0.0)
    return np.where(positive > first_cut, positive, 0.0)


def mle_apx(values: npt.ArrayLike, p: float, q: float) -> Array:
    """MLE-Apx: return the distribution that maximises an approximate likelihood.

    It allows for the other noise of frequent items. In a pure protocol a report supports the user's
    own item with probability p and any other item with probability q, 0 < q < p < 1; an estimate
    has variance proportional to 1 + b f at a true frequency f, where b = (p - q) (1 - p - q) / (q
    (1 - q)). The result minimises sum (v_i - f_i)^2 / (1 + b f_i) over all distributions f: it
    maximises a Gaussian likelihood of independent errors without its normalising factor. A
    distribution is returned as it is, and for p + q = 1 (b = 0: symmetric randomised response) this
    is `norm_sub`. The number of users cancels. A few rounds of O(d).

    Proof. 1 + b f > 0 on [0, 1], because 1 + b = p (1-p) / (q (1-q)); and 1 + b v_i > 0 for all
    estimates in [-q, 1 - q] / (p - q), as it is at both ends. So every term is strictly convex (its
    second derivative is 2 (1 + b v_i)^2 / (1 + b f_i)^3) and KKT is sufficient. With r_i = (v_i -
    f_i) / (1 + b f_i), half the derivative of a term is -(r_i + b r_i^2 / 2), and 1 + b r_i = (1 +
    b v_i) / (1 + b f_i) > 0, where r + b r^2 / 2 increases. So r_i is one number r wherever f_i >
    0, and f_i = 0 where v_i <= r: f_i = max(0, (v_i - r) / (1 + b r)). That the sum is 1 gives r =
    (sum of kept v - 1) / (kept + b).

    Parameters
    ----------
    values : array_like
        Shape (d,): estimates in [-q, 1 - q] / (p - q), outside which no count of reports leads.
    p, q : float
        The probabilities of support, 0 < q < p < 1.

    Returns
    -------
    numpy.ndarray
        Shape (d,): non-negative, with sum 1.

    Raises
    ------
    ValueError
        The probabilities are not 0 < q < p < 1.
    InvalidEstimates
        An estimate outside its range.

    Examples
    --------
    >>> mle_apx([0.75, 0.5, -0.5], 0.75, 0.25).tolist()
    [0.625, 0.375, 0.0]
    """
    estimates = _estimates(values)
    if not 0 < q < p < 1:
        raise ValueError(
            f"the probabilities of a pure protocol must satisfy 0 < q < p < 1, got p = {p!r} and q"
            f" = {q!r}"
        )
    low, high = -q / (p - q), (1 - q) / (p - q)
    slack = 1e-9 * (high - low)
    _refuse(
        (estimates < low - slack) | (estimates > high + slack),
        estimates,
        "values",
        f"is no estimate of this protocol, which lies between {low:.6g} and {high:.6g}",
    )
    b = (p - q) * (1 - p - q) / (q * (1 - q))
    count, total = _support(estimates, b)
    r = (total - 1.0) / (count + b)
    return _positive((estimates - r) / (1.0 + b * r))


def power(values: npt.ArrayLike, deviations: npt.ArrayLike, users: int) -> Array:
    """Power: return posterior means of the frequencies under a power law, for Gaussian errors.

    The prior density is proportional to x^-s on [1 / users, 1], with the s for which its mean is
    the mean of the estimates; the posterior mean is the estimator of least expected squared error
    under it.

    The prior stops at 1 / users, one user, because a power law with s >= 1 has no finite mass near
    0. s is confined to 0 .. 10: a mean above that of the uniform prior, about 1/2, gives s = 0, and
    one below about 9/8 of 1 / users gives s = 10. With that one nearly all estimates shrink to
    almost nothing: do not use this with about as many items as users, or more.

    Integrated by 256 Gauss-Legendre nodes for each item, with a relative error below 1e-6; a
    million items take seconds.

    Parameters
    ----------
    values : array_like
        Shape (d,): estimated fractions of the population.
    deviations : array_like
        Standard deviations at a true frequency of 0: one number, or shape (d,), above 0.
    users : int
        The number of reports behind the estimates, at least 2.

    Returns
    -------
    numpy.ndarray
        Shape (d,), in [1 / users, 1]. Need not sum to 1: see `power_ns`.

    Raises
    ------
    InvalidEstimates
        Deviations that are not positive and finite, or of another shape.
    ValueError
        ``users`` is below 2.

    Examples
    --------
    >>> power([0.5, 0.1, 0.01, -0.05], 0.02, 10_000).round(4).tolist()
    [0.4993, 0.0959, 0.0074, 0.0021]
    """
    estimates = _estimates(values)
    noise = np.broadcast_to(_deviations(deviations, estimates), estimates.shape)
    _refuse(noise == 0.0, noise, "deviations", "must be above 0")
    if users < 2:
        raise ValueError(f"users must be at least 2, got {users!r}")
    s = _exponent(float(estimates.mean()), users)
    result = np.empty_like(estimates)
    for start in range(0, estimates.size, _ROWS):
        rows = slice(start, start + _ROWS)
        result[rows] = _posterior_means(estimates[rows], noise[rows], users, s)
    return result


def power_ns(values: npt.ArrayLike, deviations: npt.ArrayLike, users: int) -> Array:
    """PowerNS: `power`, then `norm_sub`, so that the result is a distribution.

    Parameters
    ----------
    values, deviations : array_like
        As of `power`.
    users : int
        The number of reports behind the estimates, at least 2.

    Returns
    -------
    numpy.ndarray
        Shape (d,): non-negative, with sum 1.

    Raises
    ------
    InvalidEstimates, ValueError
        See `power`.
    """
    return norm_sub(power(values, deviations, users))


def _positive(array: Array) -> Array:
    return np.asarray(np.maximum(array, 0.0))


def _support(estimates: Array, b: float) -> tuple[int, float]:
    """Return how many of the largest estimates `norm_sub` or `mle_apx` keeps, and their sum."""
    count, total = estimates.size, float(estimates.sum())
    while True:
        # What stays is above r = (the sum of what stays - 1) / (its number + b), with b = 0 in
        # `norm_sub`. If more is kept, the quotient is at most r, since what is kept too much is at
        # most r. So all are kept at first, and what is not above the quotient is dropped until
        # nothing is: mostly in a few rounds, and each drops at least one. The largest stays, as 1 +
        # b u > 0 for it
        # Invariant: all estimates that stay are among those counted. Selection instead of sorting:
        # linear in the number of items, in a few rounds.
        above = estimates > (total - 1.0) / (count + b)
        fewer = int(np.count_nonzero(above))
        if not 0 < fewer < count:
            # Pairwise, hence more accurate than the product
            kept = estimates[above] if fewer else estimates.max(keepdims=True)
            return kept.size, float(kept.sum())
        count, total = fewer, float(estimates @ above)


def _exponent(mean: float, users: int) -> float:
    """Return the exponent s in 0 .. 10 of the power law with this mean, or the nearest to it.

    The density is proportional to x^-s on [1 / users, 1].
    """
    length = math.log(users)

    def excess(s: float) -> float:
        # The integral of x^-s dx is that of exp((1 - s) t) dt over -length .. 0, which is length *
        # exprel((s - 1) length).
        return (
            float(
                scipy.special.exprel((s - 2.0) * length) / scipy.special.exprel((s - 1.0) * length)
            )
            - mean
        )

    if excess(0.0) <= 0.0:
        return 0.0
    if excess(_STEEPEST) >= 0.0:
        return _STEEPEST
    return float(scipy.optimize.brentq(excess, 0.0, _STEEPEST))


def _posterior_means(estimates: Array, noise: Array, users: int, s: float) -> Array:
    """Return the posterior means of frequencies under a power law, for Gaussian errors.

    The integral of x w(x) dx over that of w(x) dx, with w(x) = x^-s exp(-(x - v)^2 / (2 noise^2)),
    over [1 / users, 1].
    """
    # Everything is in users, y = users * x, and in t = log y, in which a power law is smooth. There
    # are two stretches: one around the peak of the likelihood, up to where it has dropped by
    # exp(-32), and one below, where a steep prior can still outweigh it. Above, both fall
    values, sigma = (estimates * users)[:, None], (noise * users)[:, None]
    peak = values.clip(1.0, users)
    # The solution of (peak +- fall - v)^2 = (peak - v)^2 + (_REACH sigma)^2 away from v, written
    # without cancellation.
    beyond = np.abs(peak - values)
    fall = (_REACH * sigma) ** 2 / (beyond + np.hypot(beyond, _REACH * sigma))
    # A posterior narrower than a billionth of its peak counts as that wide: a stretch must not
    # vanish in rounding.
    fall = np.maximum(fall, 1e-9 * peak)
    # The upper stretch spans a factor of 32 at most, which its panels resolve; below that, an only
    # partly low likelihood is flat.
    top = peak + fall
    low, high = (
        np.log(end.clip(1.0 + 1e-9, users)) for end in (np.maximum(peak - fall, top / 32.0), top)
    )
    nodes = (np.arange(_PANELS)[:, None] + (_NODES + 1.0) / 2.0).ravel() / _PANELS
    weights = np.tile(_WEIGHTS, _PANELS)
    t = np.concatenate([low * nodes, low + (high - low) * nodes], axis=1)
    y = np.exp(t)
    # (y - v)^2 less its least value (peak - v)^2, factored.
    log_density = (1.0 - s) * t - (y - peak) * (y + (peak - 2.0 * values)) / (2.0 * sigma**2)
    # Factors that numerator and denominator share cancel: the largest exponent is made 0
    # (log-sum-exp).
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density *= np.concatenate([low * weights, (high - low) * weights], axis=1)
    return np.asarray((density * y).sum(axis=1) / density.sum(axis=1)).clip(1.0, users) / users


def _estimates(values: npt.ArrayLike) -> Array:
    estimates = np.asarray(values, dtype=np.float64)
    if estimates.ndim != 1 or estimates.size == 0:
        raise InvalidEstimates(
            "values must hold one estimate for each of at least one item, got shape"
            f" {estimates.shape}"
        )
    _refuse(~np.isfinite(estimates), estimates, "values", "is not finite")
    return estimates


def _deviations(deviations: npt.ArrayLike, estimates: Array) -> Array:
    noise = np.asarray(deviations, dtype=np.float64)
    if noise.shape not in ((), estimates.shape):
        raise InvalidEstimates(
            f"deviations must be one number or of shape {estimates.shape}, got shape {noise.shape}"
        )
    _refuse(
        ~(np.isfinite(noise) & (noise >= 0.0)), noise, "deviations", "must be finite and at least 0"
    )
    return noise


def _refuse(bad: npt.NDArray[np.bool_], array: Array, name: str, reason: str) -> None:
    if bad.any():
        index = int(np.argmax(bad))
        raise InvalidEstimates(f"{name}[{index}] = {array.flat[index]:.6g} {reason}", index)
