"""The least variance of a workload for tables whose second moments of W are bounded.

W is what `mechdesign.accounting.shuffled` sums (`mechdesign.local.windows`). Let u be a row of a
table, divided by its mean over the items, pi its probability for uniform inputs, and m the least
entry of u. Then sum pi u = 1; the information is M = sum pi u u'; and the mean over all pairs of
the second moment of W is, with V(u) the variance of the entries and e = e^epsilon,

    sum pi ((e - 1)^2 + V(u) (1 + e^2 + 2 e / (k - 1))) / m,

at most what the worst pair may have. All three are linear in pi: the least of tr(G M^-1) is a
convex program over distributions of rows, and any multipliers give a lower bound. With S >= 0 that
has the eigenvectors of the centred G, c >= 0 and numbers l that add up to 0,

    tr(G M^-1) + tr(S M) >= 2 tr((G S)^(1/2)),

and what is left is the largest of u'S u - c (...) / m + l'u over all rows with the least entry m: a
quadratic form. Where its eigenvalues are positive it is convex, so that it is largest for a row
with one high entry; where they are negative it is at most 0. For histograms that is exact: no
table is better than randomised response.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from mechdesign.base.arrays import Floats

_LARGEST_LOG = 300.0

_COARSE, _RANGE = 80, (-4.0, 6.0)
"""Points of a grid, and where it begins and ends, in logarithms of odds."""

_SPLITS, _PIECES = 6, 8
"""How often intervals are split for the bound, and in how many."""

_SHARPNESS = (30.0, 300.0, 3000.0)
"""Of the smooth maxima, one after another."""


@dataclass(frozen=True)
class MomentProgram:
    """The least average variance, for uniform inputs, under a bound on the moments.

    Attributes
    ----------
    gram : numpy.ndarray of float64
        The Gram matrix of the queries, shape (domain, domain); at least two items.
    ratio : float
        e^epsilon, above 1.
    moment : float
        At most so much is the second moment of W for any two items.
    """

    gram: Floats
    ratio: float
    moment: float

    def bound(self, table: Floats) -> float:
        """A lower bound on the variance of all tables, found from a good one; at least 0.

        Parameters
        ----------
        table : numpy.ndarray of float64
            Shape (outputs, domain): where the search for multipliers begins. The bound holds
            whatever it is.
        """
        k = len(self.gram)
        values, vectors = self._spectrum
        if not len(values):
            return 0.0
        u = table / table.mean(axis=1)[:, None]
        inverse = np.linalg.inv(table.T @ u)
        begin = np.einsum("ij,ij->j", vectors, inverse @ self.gram @ inverse @ vectors)
        total = float(np.sum(self.gram * inverse))
        excess = total - float(np.trace(self.gram)) / k
        if excess <= 0:
            return 0.0
        # All multipliers may have the same factor: with this one they are of order 1
        logs = np.log(np.maximum(begin, 1e-9 * begin.max()) * (k / total))
        z = np.concatenate([logs, [np.log(excess / total / self.moment)], np.zeros(k)])
        # Least entries around those of the table
        grid = expit(logit(float(u.min())) + np.linspace(*_RANGE, _COARSE))
        grid[-1] = 1.0
        for sharpness in _SHARPNESS:
            z = minimize(
                self._objective,
                z,
                args=(grid, sharpness),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 400, "maxcor": 30, "ftol": 1e-10, "gtol": 1e-9},
            ).x
        return max(0.0, self._proved(z, grid))

    @property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """The eigenvalues above 0 of the centred Gram matrix over k, and the eigenvectors."""
        k = len(self.gram)
        centred = self.gram - self.gram.mean(axis=0)
        centred = (centred - centred.mean(axis=1)[:, None]) / k
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        kept = values > 1e-12 * max(float(values[-1]), float(np.trace(self.gram)) / k**2)
        return values[kept], vectors[:, kept]

    @property
    def _charge(self) -> float:
        """What the variance of a row costs, relative to its square."""
        return 1 + self.ratio**2 + 2 * self.ratio / (len(self.gram) - 1)

    def _multipliers(self, z: Floats) -> tuple[Floats, float, Floats]:
        """The eigenvalues of S, c and l."""
        *logs, c = np.clip(z[: -len(self.gram)], -_LARGEST_LOG, _LARGEST_LOG)
        shift: Floats = z[-len(self.gram) :]
        return np.exp(logs), float(np.exp(c)), shift - shift.mean()

    def _objective(self, z: Floats, grid: Floats, sharpness: float) -> tuple[float, Floats]:
        """Minus the logarithm of a bound, with a smooth maximum, and its gradient.

        Scaling all multipliers by t makes the bound 2 t^(1/2) A - t B: at most A^2 / B.
        """
        k, drift = len(self.gram), (self.ratio - 1) ** 2
        values, vectors = self._spectrum
        s, c, shift = self._multipliers(z)
        squares, left = vectors**2, 1 - grid
        above = np.maximum(s - c * self._charge / grid[:, None], 0.0)
        rows = k * (left**2)[:, None] * (above @ squares.T) + np.outer(left, shift)
        rows -= (c * drift / grid)[:, None]
        unit = c * self.moment / sharpness
        top = float(rows.max())
        odds = np.exp((rows - top) / unit)
        total = float(odds.sum())
        odds /= total
        most = top + unit * np.log(total)
        price = c * self.moment + most
        by_above = np.where(above > 0, k * (left**2)[:, None] * (odds @ squares), 0.0)
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
        """The bound of these multipliers.

        The largest m is sought in intervals, with every term at its largest in each. Those whose
        value exceeds one that is reached are split.
        """
        k, drift = len(self.gram), (self.ratio - 1) ** 2
        values, vectors = self._spectrum
        s, c, shift = self._multipliers(z)

        def most(low: Floats, high: Floats) -> Floats:
            above = np.maximum(s - c * self._charge / high[:, None], 0.0)
            rows = k * ((1 - low) ** 2)[:, None] * (above @ (vectors**2).T)
            rows += np.maximum(np.outer(1 - low, shift), np.outer(1 - high, shift))
            result: Floats = rows.max(axis=1) - c * drift / high
            return result

        high, low = grid, np.append(0.0, grid[:-1])
        price, reached = np.inf, -np.inf
        for _ in range(_SPLITS):
            found = most(low, high)
            reached = max(reached, float(most(high, high).max()))
            price = max(reached, float(found.max()))
            open_ = found > reached
            low, high = low[open_], high[open_]
            if not len(low):
                break
            step = (high - low)[:, None] / _PIECES * np.arange(_PIECES + 1)
            edges = low[:, None] + step
            low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        price += c * self.moment
        return float(np.sqrt(values * s).sum()) ** 2 / price - float(values.sum())
