"""Weights of rows that minimise the average variance, or that of the worst input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mechdesign.base import Floats

# ------------------------------------------------------------------------------------------------
# Convex design: the weights of rows that minimise the average variance of a workload.
#
# Let the rows of a mechanism be theta_s s, and p the prior of the inputs. The best unbiased
# estimate of the frequencies has the information matrix M = sum_s theta_s s s' / (p's), linear in
# theta, and queries with the Gram matrix G have the sum of variances tr(G M^-1) - sum_x p_x G_xx
# when inputs are drawn from p: an A-optimal design. With u = s / (p's) and pi = theta (p's), the
# probability of the output, M = sum_s pi_s u u' where sum_s pi_s u = 1.


@dataclass(frozen=True)
class Criterion:
    """The criterion tr(gram M^-1), for inputs drawn from ``prior``, to be minimised.

    Mechanisms have rows with the values 1 and ``ratio``, up to scale.
    """

    gram: Floats
    prior: Floats
    ratio: float

    @property
    def domain(self) -> int:
        """The number of items."""
        return len(self.gram)

    @property
    def held(self) -> float:
        """The difference of tr(gram M^-1) and the average variance: sum_x p_x G_xx."""
        return float(self.prior @ np.diag(self.gram))

    def information(self, rows: Floats, theta: Floats | float) -> Floats:
        """Return the information matrix of ``theta * rows``: rows of shape (outputs, domain)."""
        weights = theta / (rows @ self.prior)
        result: Floats = (rows.T * weights) @ rows
        return result

    def ideal(self) -> float:
        """Return a lower bound on tr(G M^-1) over all mechanisms."""
        # M p = 1, so that M = 11' + Z with Z p = 0, and tr(G M^-1) = p'Gp + tr(G Z^+). In the
        # coordinates p^(1/2) of the inputs the trace of Z is the mean over outputs of
        # sum_x p_x (u_x - 1)^2, convex in the row: at most (ratio - 1)^2 / (4 ratio), reached by a
        # row with 1 / (ratio + 1) of the prior at its upper value. And
        # tr(G Z^-1) >= (tr G^(1/2))^2 / tr Z, attained if Z is proportional to G^(1/2).
        root = np.sqrt(self.prior)
        scaled = self.gram * np.outer(root, root)
        # Projected from both sides onto the complement of p^(1/2), where Z is 0.
        centred = scaled - np.outer(root, root @ scaled)
        centred -= np.outer(centred @ root, root)
        # Rounding makes eigenvalues of 0 slightly negative; their roots would not be numbers.
        roots = np.sqrt(np.linalg.eigvalsh((centred + centred.T) / 2).clip(0.0))
        known = float(self.prior @ self.gram @ self.prior)
        return known + float(roots.sum()) ** 2 * 4 * self.ratio / (self.ratio - 1) ** 2

    def priced(self, slope: Floats, multipliers: Floats, rows: Floats) -> Floats:
        """Return u' slope u - multipliers' u for each row."""
        u = rows / (rows @ self.prior)[:, None]
        result: Floats = np.einsum("ij,ij->i", u @ slope, u) - u @ multipliers
        return result


def mixture(
    criterion: Criterion, parts: Sequence[Floats], shares: Floats, steps: int, close: float = 1e-4
) -> tuple[Floats, Floats]:
    """Return optimal shares of mechanisms with these information matrices, and M^-1 G M^-1.

    By multiplicative updates (Silvey, Titterington and Torsney 1978). The slope M^-1 G M^-1 is
    taken at the mixture; no part exceeds the mean by more than ``close``, relatively.
    """
    flat = np.array([part.ravel() for part in parts])
    k = criterion.domain
    slope = np.zeros((k, k))
    for _ in range(steps):
        inverse = np.linalg.inv((shares @ flat).reshape(k, k))
        slope = inverse @ criterion.gram @ inverse
        gains = flat @ slope.ravel()
        total = float(shares @ gains)
        # The equivalence theorem: at the optimum no part has a directional derivative above the
        # mean, which is tr(slope M) = tr(G M^-1).
        if gains.max() <= total * (1 + close):
            break
        # The power 1/2 makes each update lower tr(G M^-1), where the power 1 may oscillate. Shares
        # stay positive, so that no constraint is needed, but never become 0 either: see `_needed`.
        shares = shares * np.sqrt(gains / total)
        shares /= shares.sum()
    return shares, slope


def weigh(
    criterion: Criterion, rows: Floats, pi: Floats, close: float = 1e-5
) -> tuple[Floats, Floats, Floats]:
    """Return the best probabilities of rows, by Newton's method with a barrier.

    Also the slope M^-1 G M^-1 there, and the multipliers of sum pi u = 1.
    Shapes: `rows` (outputs, domain), `pi` (outputs,).
    """
    # Every row with pi > 0 has the same value of `Criterion.priced` at the optimum, and no row a
    # larger one (the equivalence theorem for A-optimality under linear constraints); a row outside
    # the program with a larger one lowers the objective if it is added.
    u = rows / (rows @ criterion.prior)[:, None]
    count, k = u.shape
    multipliers: Floats = np.zeros(k)
    mu = 0.0
    slope: Floats = np.zeros((k, k))
    for _ in range(100):
        inverse = np.linalg.inv((u.T * pi) @ u)
        slope = inverse @ criterion.gram @ inverse
        total = float(np.sum(criterion.gram * inverse))
        # The duality gap of the barrier -mu sum log pi is mu * count: a tenth of the objective
        # first.
        mu = mu or 0.1 * total / count
        by_slope = u @ slope
        # d tr(G M^-1) / d pi_s = -u'S u; second derivatives are 2 (u'S v)(u'M^-1 v), a Hadamard
        # product of Gram matrices and hence positive semidefinite (Schur): with the barrier
        # positive definite.
        gradient = -np.einsum("ij,ij->i", by_slope, u) - mu / pi
        hessian = 2 * (by_slope @ u.T) * (u @ inverse @ u.T)
        hessian[np.diag_indices(count)] += mu / pi**2
        # One factorisation for the k constraints and the gradient; k equations remain in the
        # multipliers.
        factor = scipy.linalg.cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
        solved = scipy.linalg.cho_solve(factor, np.column_stack([u, gradient]), check_finite=False)
        missing = 1 - u.T @ pi
        # The Schur complement U' H^-1 U of the KKT system; least squares, as it is singular where
        # rows do not span all inputs, and to rounding near the boundary.
        dual = np.linalg.lstsq(u.T @ solved[:, :k], missing + u.T @ solved[:, k], rcond=None)[0]
        multipliers = -np.asarray(dual, dtype=np.float64)
        step = -solved[:, k] - solved[:, :k] @ multipliers
        # 0.95 of the way to the boundary at most: the barrier is infinite there.
        shrinking = step < 0
        length = min(1.0, 0.95 * float(np.min(-pi[shrinking] / step[shrinking], initial=np.inf)))
        pi = pi + length * step
        # mu is lowered only after a nearly full Newton step, on the central path; lowered off it,
        # the steps that follow would be cut short.
        if length > 0.5:
            if mu * count < close * total and np.abs(missing).max() < 1e-8:
                break
            mu *= 0.2
    return pi, slope, multipliers


def variances_by_input(table: Floats, gram: Floats, prior: Floats) -> Floats:
    """Return for each input the sum of variances of the unbiased estimate best for the prior.

    Shapes: `table` (outputs, domain), `gram` (domain, domain); `prior` and the result (domain,).
    """
    seen = table @ prior
    # Outputs that never occur would divide by 0 and inform of nothing.
    table, seen = table[seen > 0], seen[seen > 0]
    inverse = np.linalg.inv((table.T / seen) @ table)
    # Generalised least squares: the columns are the estimated frequencies for each output, and
    # E[e'G e] - G_xx is the sum of variances for input x, as the estimate is unbiased.
    estimator = inverse @ (table.T / seen)
    squares = np.einsum("ij,ij->j", estimator, gram @ estimator)
    result: Floats = squares @ table - np.diag(gram)
    return result


# ------------------------------------------------------------------------------------------------
# Weights of rows, and a prior of inputs, for the least variance of the worst input.
#
# With the words above, let f(theta, p) = tr(G M^-1) - sum_x p_x G_xx
# be the average variance, for the prior p, of rows with the weights theta. It is convex in theta.
# It is concave in p, as the least over all unbiased estimates of what is linear in p. So the least
# variance of the worst input is f at a saddle point, and the estimate that is best for that prior
# attains it. Newton's method with a barrier finds weights and prior together.


_STEPS = 100

_SHORTER = 0.95  # the largest step, as a fraction of the distance to the boundary

# The least starting weights and priors, relative to their mean, since steps are short near 0.
_LEAST = 0.1

# The resolution of variances, relative to the mean of the diagonal of the Gram matrix.
_USUAL = 1e-3


def saddle_point(
    gram: Floats, rows: Floats, theta: Floats, prior: Floats, close: float = 1e-7
) -> tuple[Floats, Floats, Floats]:
    """Return the weights of rows, and the prior, for which the worst input has the least variance.

    Shapes: `gram` (domain, domain), `rows` (outputs, domain), `theta` (outputs,), `prior`
    (domain,).
    """
    count, k = rows.shape
    # Rows of ratio near 1 are all but parallel: in these coordinates they are orthogonal
    turned, lengths, vectors = np.linalg.svd(rows, full_matrices=False)
    apart = vectors.T / lengths
    # The constraints sum theta s = 1, in those coordinates, and sum p = 1.
    sums = np.zeros((count + k, k + 1))
    sums[:count, :k], sums[count:, k] = turned, 1.0
    asked = np.append(apart.sum(axis=0), 1.0)
    x = np.concatenate([np.maximum(part, _LEAST * part.mean()) for part in (theta, prior)])
    # Minimised in theta, maximised in p: the sign makes both stationarity conditions one system.
    sign = np.repeat([1.0, -1.0], [count, k])
    usual = _USUAL * float(np.trace(gram)) / k
    dual, z = np.zeros(k + 1), np.zeros(0)
    for _ in range(_STEPS):
        value, slope, hessian = _derivatives(gram, rows, x[:count], x[count:])
        scale = abs(value) + usual
        if not len(z):
            # Multipliers of x >= 0 with all products x z alike: a start on the central path.
            z = 0.1 * scale / (count + k) / x
        complement = float(x @ z)
        missing = asked - sums.T @ x
        # KKT: stationarity, feasibility and complementarity x z = 0. Their residuals times x are in
        # units of the objective, whatever the size of a weight.
        residual = sign * slope - sums @ dual - z
        met = np.abs(missing).max() < 1e-9 * (1 + np.abs(asked).max())
        if met and max(complement, np.abs(residual * x).max()) < close * scale:
            break
        # Primal-dual: the next point of the central path has a tenth of the complementarity.
        aim = 0.1 * complement / (count + k)
        signed = sign[:, None] * hessian
        # z is eliminated by its equation x dz + z dx = aim - x z.
        signed[np.diag_indices(count + k)] += z / x
        # Equations in logarithmic steps, so that small and large weights are treated alike
        system = np.zeros((count + 2 * k + 1, count + 2 * k + 1))
        system[: count + k, : count + k] = x[:, None] * signed * x
        system[: count + k, count + k :] = -x[:, None] * sums
        system[count + k :, : count + k] = sums.T * x
        right = np.concatenate([aim - x * (residual + z), missing])
        # LU, not Cholesky: a saddle point's system is indefinite.
        newton = np.linalg.solve(system, right)
        step = x * newton[: count + k]
        z_step = aim / x - z - z * newton[: count + k]
        length = min(_within(x, step), _within(z, z_step))
        x, z, dual = x + length * step, z + length * z_step, dual + length * newton[count + k :]
    return x[:count], x[count:] / x[count:].sum(), -apart @ dual[:k]


def least_favourable(gram: Floats, table: Floats, prior: Floats, close: float = 1e-9) -> Floats:
    """Return the prior for which the best estimate from a table has the most average variance.

    Shapes: `gram` (domain, domain), `table` (outputs, domain), `prior` (domain,).
    """
    # The estimate best for it has the least variance for the worst input.
    k, ones = len(gram), np.ones(len(table))
    usual = _USUAL * float(np.trace(gram)) / k
    mu = np.inf
    for _ in range(_STEPS):
        value, slope, hessian = _derivatives(gram, table, ones, prior)
        scale = abs(value) + usual
        # The barrier falls with the objective too, which may be far larger at the start than at the
        # end.
        mu = min(mu, 0.1 * scale / k)
        # Only the block of the prior: the weights of rows are those of the table. Concave, so that
        # the barrier enters with a minus, and in logarithmic steps as above.
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
    normalised: Floats = prior / prior.sum()
    return normalised


def _within(x: Floats, step: Floats) -> float:
    """Return the largest step length, at most 1, for all numbers to remain positive."""
    shrinking = step < 0
    return min(1.0, _SHORTER * float(np.min(-x[shrinking] / step[shrinking], initial=np.inf)))


def _derivatives(
    gram: Floats, rows: Floats, theta: Floats, prior: Floats
) -> tuple[float, Floats, Floats]:
    """Return the average variance, its gradient by (theta, prior), and its second derivatives."""
    # With u = s / (p's) for a row s, m = p's and the slope S = M^-1 G M^-1, the gradient is -m u'S
    # u for theta, and sum_s theta m u u'S u - diag(G) for p.
    count, k = rows.shape
    mass = rows @ prior
    u = rows / mass[:, None]
    weighted = u * (theta * mass)[:, None]
    inverse = np.linalg.inv(weighted.T @ u)
    by_slope = u @ inverse @ gram @ inverse
    squares = np.einsum("ij,ij->i", by_slope, u)
    crossed = 2 * (by_slope @ u.T) * (u @ inverse @ u.T)
    by_prior = crossed @ weighted
    slope = np.concatenate([-squares * mass, weighted.T @ squares - np.diag(gram)])
    hessian = np.empty((count + k, count + k))
    hessian[:count, :count] = crossed * np.outer(mass, mass)
    hessian[:count, count:] = mass[:, None] * (squares[:, None] * u - by_prior)
    hessian[count:, :count] = hessian[:count, count:].T
    hessian[count:, count:] = weighted.T @ by_prior - 2 * (weighted.T * squares) @ u
    value = float(np.sum(gram * inverse) - prior @ np.diag(gram))
    return value, slope, hessian
