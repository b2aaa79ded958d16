"""Upper bounds on the reduced costs of patterns that are not priced one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit

from mechdesign.base import Floats
from mechdesign.local.optimality import Criterion
from mechdesign.local.patterns import Patterns

# ------------------------------------------------------------------------------------------------
# The least variance of a workload for tables whose second moments of W are bounded.
#
# W is what `mechdesign.accounting.shuffled` sums (`mechdesign.local.windows`). Let u be a row of a
# table, divided by its mean over the items, pi its probability for uniform inputs, and m the least
# entry of u. Then sum pi u = 1; the information is M = sum pi u u'; and the mean over all pairs of
# the second moment of W is, with V(u) the variance of the entries and e = e^epsilon,
#
#     sum pi ((e - 1)^2 + V(u) (1 + e^2 + 2 e / (k - 1))) / m,
#
# at most what the worst pair may have. All three are linear in pi: the least of tr(G M^-1) is a
# convex program over distributions of rows, and any multipliers give a lower bound. With S >= 0
# that has the eigenvectors of the centred G, c >= 0 and numbers l that add up to 0,
#
#     tr(G M^-1) + tr(S M) >= 2 tr((G S)^(1/2)),
#
# and what is left is the largest of u'S u - c (...) / m + l'u over all rows with the least entry m:
# a quadratic form. Where its eigenvalues are positive it is convex, so that it is largest for a row
# with one high entry; where they are negative it is at most 0. For histograms that is exact: no
# table is better than randomised response.


_LARGEST_LOG = 300.0

#: The number of points of a grid, and its ends, in logarithms of odds.
_COARSE, _RANGE = 80, (-4.0, 6.0)

#: The number of times that intervals are split for the bound, and into how many.
_SPLITS, _PIECES = 6, 8

_SHARPNESS = (30.0, 300.0, 3000.0)  # the sharpness of the smooth maxima, one after another


@dataclass(frozen=True)
class MomentProgram:
    """The program of the least average variance, for uniform inputs, under a moment bound."""

    gram: Floats  # the Gram matrix of the queries, shape (domain, domain), of at least two items
    ratio: float  # e^epsilon, above 1
    moment: float  # at most so much is the second moment of W for any two items

    def bound(self, table: Floats) -> float:
        """Return a lower bound on the variance of all tables, from a good one (outputs, domain)."""
        k = len(self.gram)
        values, vectors = self._spectrum
        if not len(values):
            return 0.0
        u = table / table.mean(axis=1)[:, None]
        inverse = np.linalg.inv(table.T @ u)
        # At an optimum the multiplier of the information is the slope, S = M^-1 G M^-1 (the
        # gradient of tr(G M^-1)): that of the given table is a warm start, restricted to the
        # eigenvectors of G.
        begin = np.einsum("ij,ij->j", vectors, inverse @ self.gram @ inverse @ vectors)
        total = float(np.sum(self.gram * inverse))
        excess = total - float(np.trace(self.gram)) / k
        if excess <= 0:
            return 0.0
        # All multipliers may have the same factor: with this one they are of order 1
        logs = np.log(np.maximum(begin, 1e-9 * begin.max()) * (k / total))
        # In logarithms, since S and c have to be at least 0 and differ by orders of magnitude. The
        # start of c makes its price c * moment the share of the variance that the table has in
        # excess.
        z = np.concatenate([logs, [np.log(excess / total / self.moment)], np.zeros(k)])
        # Least entries around those of the table
        grid = expit(logit(float(u.min())) + np.linspace(*_RANGE, _COARSE))
        grid[-1] = 1.0
        # A maximum has no gradient where it is attained twice, as it is at the optimum. A
        # log-sum-exp in its place errs by the unit times the logarithm of the number of terms:
        # sharper each time, from the last solution on, as a sharp one is ill-conditioned far from
        # it.
        for sharpness in _SHARPNESS:
            z = minimize(
                self._objective,
                z,
                args=(grid, sharpness),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 400, "maxcor": 30, "ftol": 1e-10, "gtol": 1e-9},
            ).x
        # Weak duality: whatever multipliers the descent ended with, those prove a bound.
        return max(0.0, self._proved(z, grid))

    @property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """Return the eigenvalues above 0 of the centred Gram matrix over k, with eigenvectors."""
        k = len(self.gram)
        centred = self.gram - self.gram.mean(axis=0)
        centred = (centred - centred.mean(axis=1)[:, None]) / k
        # Symmetrised: rounding of the two subtractions differs, and eigh reads one triangle only.
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        # Centring leaves the eigenvalue 0 of the constant vector, here of the order of rounding.
        kept = values > 1e-12 * max(float(values[-1]), float(np.trace(self.gram)) / k**2)
        return values[kept], vectors[:, kept]

    @property
    def _charge(self) -> float:
        """The factor of the variance V(u) of a row in its second moment of W."""
        return 1 + self.ratio**2 + 2 * self.ratio / (len(self.gram) - 1)

    def _multipliers(self, z: Floats) -> tuple[Floats, float, Floats]:
        """Return the multipliers: the eigenvalues of S, c and l."""
        *logs, c = np.clip(z[: -len(self.gram)], -_LARGEST_LOG, _LARGEST_LOG)
        shift: Floats = z[-len(self.gram) :]
        # The bound does not change with a constant in l (sum pi u = 1): it is taken out, so that
        # the numbers l add up to 0 and their gradient is centred, too.
        return np.exp(logs), float(np.exp(c)), shift - shift.mean()

    def _objective(self, z: Floats, grid: Floats, sharpness: float) -> tuple[float, Floats]:
        """Return minus the logarithm of a bound, with a smooth maximum, and its gradient."""
        # Scaling all multipliers by t makes the bound 2 t^(1/2) A - t B: at most A^2 / B.
        k, drift = len(self.gram), (self.ratio - 1) ** 2
        values, vectors = self._spectrum
        s, c, shift = self._multipliers(z)
        squares, left = vectors**2, 1 - grid
        # For a row that is m but for one high entry, u - 1 is (1 - m) (k e_x - 1): the quadratic
        # form is (1 - m)^2 k times the squared components of the eigenvectors, as the sum of u - 1
        # is 0.
        above = np.maximum(s - c * self._charge / grid[:, None], 0.0)
        rows = k * (left**2)[:, None] * (above @ squares.T) + np.outer(left, shift)
        rows -= (c * drift / grid)[:, None]
        # The temperature is a fraction of the price of the moment, which makes sharpness
        # dimensionless.
        unit = c * self.moment / sharpness
        top = float(rows.max())
        # Shifted by the maximum (log-sum-exp): the largest exponent is 0. Normalised, these are the
        # derivatives of the smooth maximum by its terms.
        odds = np.exp((rows - top) / unit)
        total = float(odds.sum())
        odds /= total
        most = top + unit * np.log(total)
        price = c * self.moment + most
        by_above = np.where(above > 0, k * (left**2)[:, None] * (odds @ squares), 0.0)
        # The temperature depends on c, and the smooth maximum on it, by the entropy of `odds`.
        by_unit = (most - float(np.sum(odds * rows))) / unit
        by_c = self.moment + by_unit * self.moment / sharpness
        by_c -= drift * float(odds.sum(axis=1) @ (1 / grid))
        by_c -= self._charge * float(by_above.sum(axis=1) @ (1 / grid))
        by_shift = left @ odds
        root = np.sqrt(values * s)
        gradient = np.concatenate(
            [
                s * by_above.sum(axis=0) / price - root / root.sum(),
                [c * by_c / price],
                (by_shift - by_shift.mean()) / price,
            ]
        )
        return float(np.log(price) - 2 * np.log(root.sum())), gradient

    def _proved(self, z: Floats, grid: Floats) -> float:
        """Return the bound that these multipliers prove."""
        # The largest m is sought in intervals, with every term at its largest in each. Those whose
        # value exceeds one that is reached are split.
        k, drift = len(self.gram), (self.ratio - 1) ** 2
        values, vectors = self._spectrum
        s, c, shift = self._multipliers(z)

        def most(low: Floats, high: Floats) -> Floats:
            # Each term is monotone or linear in m: it takes its largest value at an end of the
            # interval, and the sum of the largest is an upper bound, which tends to the maximum as
            # intervals shrink.
            above = np.maximum(s - c * self._charge / high[:, None], 0.0)
            rows = k * ((1 - low) ** 2)[:, None] * (above @ (vectors**2).T)
            rows += np.maximum(np.outer(1 - low, shift), np.outer(1 - high, shift))
            result: Floats = rows.max(axis=1) - c * drift / high
            return result

        high, low = grid, np.append(0.0, grid[:-1])
        price, reached = np.inf, -np.inf
        for _ in range(_SPLITS):
            bounds = most(low, high)
            reached = max(reached, float(most(high, high).max()))
            price = max(reached, float(bounds.max()))
            # Intervals whose bound is below a value that is attained cannot contain the maximum.
            open_ = bounds > reached
            low, high = low[open_], high[open_]
            if not len(low):
                break
            step = (high - low)[:, None] / _PIECES * np.arange(_PIECES + 1)
            edges = low[:, None] + step
            low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        price += c * self.moment
        return float(np.sqrt(values * s).sum()) ** 2 / price - float(values.sum())


# ------------------------------------------------------------------------------------------------
# An upper bound on the value of every pattern, where there are too many to price one by one.
#
# A row q = 1 + (r - 1) b of the pattern b has the value u'S u - l'u with u = q / (p'q). It is at
# most T if, and only if, the quadratic form q'(S - (l p' + p l') / 2 - T p p') q is at most 0. That
# form is, up to a constant, b'A b + a'b. Among the patterns with m inputs it is at most the sum of
# the m largest of A_xx + a_x + the m - 1 largest other entries of row x (Gilmore 1962, Lawler
# 1963). Branch and bound tightens that: the patterns of the largest bound are parted by whether
# they have an input.


_CLASSES = 64  # the number of classes of patterns that are parted at a time


def most_valued(
    criterion: Criterion,
    slope: Floats,
    multipliers: Floats,
    standing: float,
    close: float,
    rounds: int,
) -> float:
    """Return an upper bound on `Criterion.priced` over all patterns with both a zero and a one.

    Shapes: `slope` (domain, domain), `multipliers` (domain,).
    """
    k, extra, p = criterion.domain, criterion.ratio - 1, criterion.prior
    # Fractional programming (Dinkelbach 1967): a ratio exceeds T if and only if its numerator minus
    # T times its denominator is above 0. So the ratio of quadratics becomes one quadratic, for T =
    # standing.
    form = slope - (np.outer(multipliers, p) + np.outer(p, multipliers)) / 2
    form -= standing * np.outer(p, p)
    quadratic, linear, constant = extra**2 * form, 2 * extra * form.sum(axis=1), float(form.sum())
    # (p'q)^2 is least for the inputs of least prior: dividing by it makes a difference of values of
    # an excess of the form. Where the form is negative that is no upper bound, but neither is it
    # above `close`, and is dropped.
    lightest = (1 + extra * np.cumsum(np.sort(p))) ** 2

    def excess(held: Patterns, free: Patterns, left: npt.NDArray[np.int64]) -> Floats:
        """Return an upper bound on the excess of the patterns of each class over the guess."""
        value = _most(quadratic, linear, held, free, left) + constant
        result: Floats = value / lightest[held.sum(axis=1) + left - 1]
        return result

    # Classes by size to begin with: with the size the bound of Gilmore and Lawler has a meaning.
    # A class: the patterns that have all inputs of `fixed`, and so many of those that are `free`
    left = np.arange(1, k)
    fixed, free = np.zeros((k - 1, k), dtype=np.bool_), np.ones((k - 1, k), dtype=np.bool_)
    over = excess(fixed, free, left)
    for _ in range(rounds):
        # Invariant: each pattern is in a class of the list, or is worth at most `standing + close`.
        single = (left == 0) | (free.sum(axis=1) == left)  # whose bound is its value
        close = max(close, float(over[single].max(initial=close)))
        kept = (over > close) & ~single
        fixed, free, left, over = fixed[kept], free[kept], left[kept], over[kept]
        if not len(over):
            break
        # Best first: the bound that is returned is the largest of those left, and only splitting
        # that one lowers it. Several at a time, for the sake of numpy.
        order = np.argsort(-over)
        parted, rest = order[:_CLASSES], order[_CLASSES:]
        # By the input that is worth the most
        # The change of b'A b + a'b as input x is added to the inputs that are fixed.
        gains = np.diag(quadratic) + linear + 2 * fixed[parted] @ quadratic
        item = np.argmax(np.where(free[parted], gains, -np.inf), axis=1)
        at = np.arange(len(parted)), item
        without, within = free[parted].copy(), fixed[parted].copy()
        without[at], within[at] = False, True
        new = (
            np.concatenate([within, fixed[parted]]),
            np.concatenate([without, without]),
            np.concatenate([left[parted] - 1, left[parted]]),
        )
        # A part cannot exceed the whole, whose bound may happen to be smaller.
        bounds = np.minimum(excess(*new), np.tile(over[parted], 2))
        fixed, free, left, over = (
            np.concatenate([old[rest], part])
            for old, part in zip((fixed, free, left, over), (*new, bounds), strict=True)
        )
    return standing + float(over.max(initial=close))


def _most(
    quadratic: Floats,
    linear: Floats,
    held: Patterns,
    free: Patterns,
    left: npt.NDArray[np.int64],
) -> Floats:
    """Return an upper bound on b'A b + a'b for each class of patterns; -inf for empty ones."""
    by_held = held @ quadratic
    base = (held * (by_held + linear)).sum(axis=1)
    gains = np.where(free, np.diag(quadratic) + linear + 2 * by_held, -np.inf)
    # Each chosen input brings its gain and its entries with the left - 1 other chosen ones: at most
    # the largest of its row. Inputs choose their companions independently, which makes it a bound.
    others = np.where(free[:, None, :], quadratic, -np.inf)
    # An input is no companion of itself: the diagonal is in its gain.
    others[:, np.arange(len(linear)), np.arange(len(linear))] = -np.inf
    others = np.cumsum(-np.sort(-others, axis=2), axis=2)
    count = np.maximum(left - 2, 0)
    best = np.take_along_axis(others, count[:, None, None], axis=2)[:, :, 0]
    gains = np.cumsum(-np.sort(-(gains + np.where(left[:, None] >= 2, best, 0.0)), axis=1), axis=1)
    most = np.take_along_axis(gains, np.maximum(left - 1, 0)[:, None], axis=1)[:, 0]
    result: Floats = base + np.where(left > 0, most, 0.0)
    return result
