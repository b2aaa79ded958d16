"""Weights of rows, and a prior of inputs, for the least variance of the worst input.

With the words of `mechdesign.local.a_optimality`, let f(theta, p) = tr(G M^-1) - sum_x p_x G_xx be
the average variance, for the prior p, of rows with the weights theta. It is convex in theta. It is
concave in p, as the least over all unbiased estimates of what is linear in p. So the least variance
of the worst input is f at a saddle point, and the estimate that is best for that prior attains it.
Newton's method with a barrier finds weights and prior together.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Floats

_STEPS = 100

_SHORTER = 0.95
"""A step goes at most so far towards the boundary."""

_LEAST = 0.1
"""Weights and priors begin no lower, relative to their mean, since steps are short near 0."""

_USUAL = 1e-3
"""Smaller variances, relative to the mean of the diagonal of the Gram matrix, are not resolved."""


def saddle_point(
    gram: Floats, rows: Floats, theta: Floats, prior: Floats, close: float = 1e-7
) -> tuple[Floats, Floats, Floats]:
    """The weights of rows, and the prior, for which the worst input has the least variance.

    Parameters
    ----------
    gram : numpy.ndarray of float64
        The Gram matrix of the queries, shape (domain, domain), positive definite.
    rows : numpy.ndarray of float64
        Shape (outputs, domain), positive, of rank domain.
    theta, prior : numpy.ndarray of float64
        Where to begin: shapes (outputs,) and (domain,), positive.
    close : float, default 1e-7
        When to stop: the duality gap, relative to the variance.

    Returns
    -------
    theta, prior, multipliers : numpy.ndarray of float64
        Positive; the last are those of the equations sum theta rows = 1, shape (domain,).
    """
    count, k = rows.shape
    # Rows of ratio near 1 are all but parallel: in these coordinates they are orthogonal
    turned, lengths, vectors = np.linalg.svd(rows, full_matrices=False)
    apart = vectors.T / lengths
    sums = np.zeros((count + k, k + 1))
    sums[:count, :k], sums[count:, k] = turned, 1.0
    asked = np.append(apart.sum(axis=0), 1.0)
    x = np.concatenate([np.maximum(part, _LEAST * part.mean()) for part in (theta, prior)])
    sign = np.repeat([1.0, -1.0], [count, k])
    usual = _USUAL * float(np.trace(gram)) / k
    dual, z = np.zeros(k + 1), np.zeros(0)
    for _ in range(_STEPS):
        value, slope, hessian = _derivatives(gram, rows, x[:count], x[count:])
        scale = abs(value) + usual
        if not len(z):
            z = 0.1 * scale / (count + k) / x
        complement = float(x @ z)
        missing = asked - sums.T @ x
        residual = sign * slope - sums @ dual - z
        met = np.abs(missing).max() < 1e-9 * (1 + np.abs(asked).max())
        if met and max(complement, np.abs(residual * x).max()) < close * scale:
            break
        aim = 0.1 * complement / (count + k)
        signed = sign[:, None] * hessian
        signed[np.diag_indices(count + k)] += z / x
        # Equations in logarithmic steps, so that small and large weights are treated alike
        system = np.zeros((count + 2 * k + 1, count + 2 * k + 1))
        system[: count + k, : count + k] = x[:, None] * signed * x
        system[: count + k, count + k :] = -x[:, None] * sums
        system[count + k :, : count + k] = sums.T * x
        right = np.concatenate([aim - x * (residual + z), missing])
        found = np.linalg.solve(system, right)
        step = x * found[: count + k]
        z_step = aim / x - z - z * found[: count + k]
        length = min(_within(x, step), _within(z, z_step))
        x, z, dual = x + length * step, z + length * z_step, dual + length * found[count + k :]
    return x[:count], x[count:] / x[count:].sum(), -apart @ dual[:k]


def least_favourable(gram: Floats, table: Floats, prior: Floats, close: float = 1e-9) -> Floats:
    """The prior for which the best estimate from a table has the most average variance.

    That estimate has the least variance for the worst input.

    Parameters
    ----------
    gram : numpy.ndarray of float64
        The Gram matrix of the queries, shape (domain, domain), positive definite.
    table : numpy.ndarray of float64
        Shape (outputs, domain): the probability of each output under each input.
    prior : numpy.ndarray of float64
        Where to begin, shape (domain,), positive.
    close : float, default 1e-9
        When to stop: the duality gap, relative to the variance.
    """
    k, ones = len(gram), np.ones(len(table))
    usual = _USUAL * float(np.trace(gram)) / k
    mu = np.inf
    for _ in range(_STEPS):
        value, slope, hessian = _derivatives(gram, table, ones, prior)
        scale = abs(value) + usual
        mu = min(mu, 0.1 * scale / k)
        curve = prior[:, None] * hessian[-k:, -k:] * prior
        curve[np.diag_indices(k)] -= mu
        system = np.zeros((k + 1, k + 1))
        system[:k, :k], system[:k, k], system[k, :k] = curve, -prior, prior
        right = np.append(-mu - prior * slope[-k:], 1 - prior.sum())
        step = prior * np.linalg.solve(system, right)[:k]
        length = _within(prior, step)
        prior = prior + length * step
        if length == 1.0:
            if mu * k < close * scale:
                break
            mu *= 0.1
    found: Floats = prior / prior.sum()
    return found


def _within(x: Floats, step: Floats) -> float:
    """How far one may go, at most 1, for all numbers to remain positive."""
    shrinking = step < 0
    return min(1.0, _SHORTER * float(np.min(-x[shrinking] / step[shrinking], initial=np.inf)))


def _derivatives(
    gram: Floats, rows: Floats, theta: Floats, prior: Floats
) -> tuple[float, Floats, Floats]:
    """The average variance, its gradient by (theta, prior), and its second derivatives.

    With u = s / (p's) for a row s, m = p's and the slope S = M^-1 G M^-1, the gradient is -m u'S u
    for theta, and sum_s theta m u u'S u - diag(G) for p.
    """
    count, k = rows.shape
    mass = rows @ prior
    u = rows / mass[:, None]
    weighted = u * (theta * mass)[:, None]
    inverse = np.linalg.inv(weighted.T @ u)
    by_slope = u @ inverse @ gram @ inverse
    own = np.einsum("ij,ij->i", by_slope, u)
    crossed = 2 * (by_slope @ u.T) * (u @ inverse @ u.T)
    by_prior = crossed @ weighted
    slope = np.concatenate([-own * mass, weighted.T @ own - np.diag(gram)])
    hessian = np.empty((count + k, count + k))
    hessian[:count, :count] = crossed * np.outer(mass, mass)
    hessian[:count, count:] = mass[:, None] * (own[:, None] * u - by_prior)
    hessian[count:, :count] = hessian[:count, count:].T
    hessian[count:, count:] = weighted.T @ by_prior - 2 * (weighted.T * own) @ u
    value = float(np.sum(gram * inverse) - prior @ np.diag(gram))
    return value, slope, hessian
