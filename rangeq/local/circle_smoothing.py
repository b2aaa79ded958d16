"""Smoothing a distribution on a circular domain as far as its estimate shows it to be smooth.

The estimate is y = f + e, with noise e that is stationary on the circular domain: its Fourier
coefficients are independent, with known variances. The prior takes f as uniform, plus jumps and
heaps at the ends of the domain, plus a stationary part whose spectrum is a mixture of smoothing
splines of all strengths. The strengths are those of the largest marginal likelihood: nothing is
tuned by hand. All matrices are diagonal in the Fourier basis up to the rank of the jumps, a few for
each end.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from frequency.postprocess import norm_sub
from mechdesign._support.arrays import Floats

Spectrum = npt.NDArray[np.complex128]

_STEEP = 4.0
"""Parts of the prior have the spectra 1 / (1 + (k / corner)^4): cubic smoothing splines, beyond
their corner.
"""

_ROUNDS = 150
"""Of the search for strengths; after it their errors are far below those of the noise."""

_STRAY = 0.3
"""How many single frequencies get a strength of their own without reason, on average: data heaped
at round values have some.
"""

_ALLOWANCE = 0.4
"""How many of their own deviations strengths are raised by in stated variances: the likelihood is
nearly flat about few of them.
"""

_TURNS, _PRECISION = 1500, 2e-5
"""Of the convex problem: how often at most, and how far prefixes may still be off."""


class Smoothing:
    """The posterior of a distribution on a circular domain.

    Parameters
    ----------
    transform : Spectrum
        `numpy.fft.rfft` of y, an unbiased estimate that sums to 1.
    information : numpy.ndarray of float64
        The precision of each frequency: the variance of coefficient k is size / information[k].
    """

    def __init__(self, transform: Spectrum, information: Floats, size: int, domain: int) -> None:
        self._size, self._domain, self._y = size, domain, transform[1:]
        # How many frequencies of the circular domain each coefficient stands for
        self._twice = np.full(len(self._y), 2.0)
        if size % 2 == 0:
            self._twice[-1] = 1.0
        self._noise = size / np.maximum(information[1:], 1e-9 * information[1:].max())
        self._spectra, self._jumps = _parts(size, domain)
        self._strengths = np.full(
            len(self._spectra), (np.abs(self._y) ** 2).mean() / len(self._spectra)
        )
        few = slice(0, 4)
        power = (np.abs(self._y[few]) ** 2).sum() / (np.abs(self._jumps[:, few]) ** 2).sum(axis=1)
        self._heights = np.maximum(0.1 * power, 1e-15)
        self._lines = np.zeros(len(self._y))
        self._search(_ROUNDS)
        for _ in range(4):
            if not self._new_lines():
                break
            self._search(_ROUNDS // 3)
        self._prior = self._strengths @ self._spectra + self._lines
        self._total, _, self._covariance, height, rest = self._solved(self._prior, self._heights)
        self._mean = height @ self._jumps + self._prior / self._total * rest

    def _inner(self, a: Spectrum, b: Spectrum) -> Floats:
        """The sums over all frequencies of conj(a) b: (rows of a, rows of b)."""
        return np.asarray(np.real((np.conj(a) * self._twice) @ b.T))

    def _solved(
        self, prior: Floats, heights: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, Spectrum]:
        """What follows from these variances of frequencies and jumps.

        The variances of y's frequencies but for the jumps; the jumps' precision from y, posterior
        covariance and mean; and what y has besides them.
        """
        total = prior + self._noise
        scaled = self._jumps / total
        precision = self._inner(scaled, self._jumps)
        covariance = _updated(np.diag(np.sqrt(heights)), precision)
        height = covariance @ self._inner(scaled, self._y[None])[:, 0]
        return total, precision, covariance, height, self._y - height @ self._jumps

    def _search(self, rounds: int) -> None:
        # Strength s_j of the part with covariance P_j: s_j <- s_j (y' V^-1 P_j V^-1 y / tr(V^-1
        # P_j))^(1/2), which never lowers the likelihood (minorisation by its tangent).
        for _ in range(rounds):
            prior = self._strengths @ self._spectra + self._lines
            total, precision, covariance, height, rest = self._solved(prior, self._heights)
            # J' V^-1 y is H^-1 b, with b the mean of the jumps and H their prior, and J' V^-1 J is
            # P C H^-1.
            own = np.maximum(np.einsum("ij,ji->i", precision, covariance), 1e-300)
            self._heights = np.maximum(np.abs(height) * np.sqrt(self._heights / own), 1e-30)
            of_jumps = np.real(np.conj(self._jumps) * (covariance @ self._jumps)).sum(axis=0)
            inverse = 1 / total - of_jumps / total**2  # the diagonal of V^-1
            fit = self._spectra @ (self._twice * np.abs(rest) ** 2 / total**2)
            expected = self._spectra @ (self._twice * inverse)
            self._strengths = self._strengths * np.sqrt(fit / np.maximum(expected, 1e-300))

    def _new_lines(self) -> bool:
        """Whether some frequency exceeds the decreasing spectrum.

        It gets the strength that explains it.
        """
        prior = self._strengths @ self._spectra + self._lines
        total, _, _, _, rest = self._solved(prior, self._heights)
        power = np.abs(rest) ** 2
        # Relative to its variance the power of a frequency is exponential.
        found = (power > total * np.log(len(total) / _STRAY)) & (self._lines == 0)
        self._lines[found] = (power - total)[found]
        return bool(found.any())

    def _items(self, transform: Spectrum) -> Floats:
        return np.asarray(np.fft.irfft(np.concatenate([[1.0], transform]), self._size))

    def distribution(self) -> Floats:
        """The most probable distribution: shape (domain,), non-negative and with sum 1.

        m and Q are the posterior's mean and precision, so that this is least squares plus the
        prior's roughness. By the alternating direction method: the quadratic part is diagonal plus
        low rank in the frequencies, the constraints are item by item.
        """
        start = self._items(self._mean)
        if start.min() >= 0 and self._size == self._domain:
            return start / start.sum()
        # No frequency is held more tightly than its noise says: what positivity moves goes into
        # fine scales, where the prior may be wrong, and not into coarse ones. That keeps the
        # problem well conditioned, too.
        q = self._total / (np.maximum(self._prior, self._noise) * self._noise) * self._size
        lean = self._noise / self._total * self._jumps
        pushed = q * lean  # by Woodbury's formula Q = diag(q) - pushed' middle pushed
        root = _root(self._covariance)
        middle = _updated(root, self._inner(lean, pushed) / self._size)
        root = _root(middle)
        target = (
            q * self._mean
            - (middle @ (self._inner(pushed, self._mean[None])[:, 0] / self._size)) @ pushed
        )
        rho = float(np.exp(np.mean(np.log(np.minimum(q, q.min() * 1e6)))))
        z = np.concatenate([norm_sub(start[: self._domain]), np.zeros(self._size - self._domain)])
        dual = np.zeros(self._size)
        stale = True
        for turn in range(1, _TURNS + 1):
            if stale:
                shift, stale = q + rho, False
                up = pushed / shift
                small = _updated(root, -self._inner(pushed, up) / self._size)
            right = (target + rho * np.fft.rfft(z - dual)[1:]) / shift
            right = right + (small @ (self._inner(pushed, right[None])[:, 0] / self._size)) @ up
            x = self._items(right)
            before, relaxed = z, 1.6 * x - 0.6 * z
            z = np.maximum(relaxed + dual, 0.0)
            z[self._domain :] = 0.0
            dual = dual + relaxed - z
            if turn % 20 == 0:
                apart, moved = np.abs(np.cumsum(x - z)).max(), np.abs(np.cumsum(z - before)).max()
                if apart < _PRECISION and moved < _PRECISION / 3:
                    break
                primal, other = float(np.linalg.norm(x - z)), float(np.linalg.norm(z - before))
                # Balance the two residuals
                if turn < _TURNS // 2 and max(primal, other) > 5 * min(primal, other):
                    factor = 2.0 if primal > other else 0.5
                    rho, dual, stale = rho * factor, dual / factor, True
        return norm_sub(z[: self._domain])

    @cached_property
    def _curve(self) -> tuple[Floats, Floats, Floats]:
        """The variances of ranges by length but for the jumps, and the jumps' part.

        That is prefix sums of what jumps leave unknown, and the jumps' covariance.

        Strengths count with an allowance for their own errors: a deviation is (sum P_j^2 / (2
        total^2))^(-1/2), by Fisher's information, for one part of each octave.
        """
        octaves = np.vstack([self._spectra[1:-1:2], self._spectra[-1:]])
        deviations = 1 / np.sqrt(0.5 * octaves**2 @ (self._twice / self._total**2))
        prior = self._prior + _ALLOWANCE * deviations @ octaves
        precision = self._inner(self._jumps / (prior + self._noise), self._jumps)
        heights = self._heights + _ALLOWANCE * np.sqrt(2) / np.diag(precision)
        total, _, covariance, _, _ = self._solved(prior, heights)
        k = np.arange(1, self._size // 2 + 1)
        spectrum = (
            prior * self._noise / total / self._size / (2 * np.sin(np.pi * k / self._size) ** 2)
        )
        covariances = np.fft.irfft(np.concatenate([[0.0], spectrum]), self._size)
        unknown = np.pad(self._noise / total * self._jumps, [(0, 0), (1, 0)])
        sums = np.pad(
            np.cumsum(np.fft.irfft(unknown, self._size, axis=1), axis=1), [(0, 0), (1, 0)]
        )
        return np.maximum(covariances[0] - covariances, 0.0), sums, covariance

    def variance(self, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> Floats:
        """The posterior variances of the sums over first .. last.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Arrays of one shape, 0 <= first <= last < domain.

        Returns
        -------
        numpy.ndarray of float64
            Of the ends' shape.
        """
        by_length, sums, covariance = self._curve
        lean = sums[:, last + 1] - sums[:, first]
        return np.asarray(
            by_length[(last - first + 1) % self._size]
            + np.einsum("i...,ij,j...->...", lean, covariance, lean)
        )


def _updated(root: Floats, precision: Floats) -> Floats:
    """((root root')^-1 + precision)^-1, whatever the rank of root and however small."""
    return np.asarray(root @ np.linalg.solve(np.eye(len(root)) + root.T @ precision @ root, root.T))


def _root(covariance: Floats) -> Floats:
    """A matrix whose product with its transpose is the covariance.

    Relative to each deviation, as they differ by far.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


@lru_cache(maxsize=4)
def _parts(size: int, domain: int) -> tuple[Floats, Spectrum]:
    """The spectra that the prior mixes, and the transforms of the jumps.

    Shapes (parts, frequencies) and (some, frequencies).

    A distribution that is smooth on an interval is not smooth on a circular domain: it is so but
    for multiples of the Bernoulli polynomials t - 1/2, a jump of the value at 0, and t^2 - t + 1/6,
    a jump of the slope (Wahba 1990, section 2.1). With padding the domain has two ends there. What
    is heaped at an end, such as zeros, is smooth on neither side of it: further parts are the first
    item and exponential densities inward from it, and those of the last.
    """
    k = np.arange(1, size // 2 + 1)
    corners = 2.0 ** np.arange(-1, np.log2(size / 2) + 0.01, 0.5)
    spectra = np.vstack([1 / (1 + (k / corners[:, None]) ** _STEEP), np.ones(len(k))])
    t = (np.arange(size) + 0.5) / size
    ends = [t] if size == domain else [t, (t - domain / size) % 1.0]
    jumps = [jump for u in ends for jump in (u - 0.5, u * u - u + 1 / 6)]
    x = np.arange(size)
    for inward in (x, domain - 1 - x):
        jumps += [
            inward == 0,
            *(
                np.where(x < domain, np.exp(-np.abs(inward) / w), 0.0)
                for w in 2.0 * 4.0 ** x[:12]
                if w <= domain / 8
            ),
        ]
    return spectra, np.fft.rfft(np.array(jumps, dtype=np.float64), axis=1)[:, 1:]
