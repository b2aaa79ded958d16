"""Log-linear models of records, fitted to noisy moments: distributions with their uncertainty.

The records of attributes of r1, r2, .. values are the elements of a product of cyclic groups, and
its real characters h_a(x) = cas(2 pi sum_j a_j x_j / r_j), cas = cos + sin (Hartley's), are an
orthogonal basis; for binary attributes they are the Walsh functions. The moment E h_a depends on
the marginal of the attributes where a is not 0, and says what no smaller marginal says. The model
is log p(x) = sum_a theta_a h_a(x) - log Z, over the a of some sets of attributes: of all
distributions with its moments, the one of most entropy.

A protocol tells the moments with nearly normal errors. Parameters of a set of attributes are taken
to be normal of mean 0, with a scale that the data tell (empirical Bayes): sets that depend on
each other little are shrunk towards independence. The fit maximises the posterior density by
Gauss-Newton steps; Laplace's approximation there gives the posterior covariance.

Since cas u cas v = cos(u - v) + sin(u + v), all covariances of the h_a under p are read off one
Fourier transform of p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.schema import Domain
from mechdesign.base import Floats, Items, cholesky

_ROUNDS = 60  # the most Gauss-Newton steps, each with new scales of the parameters

_ENOUGH = 1e-3  # the part of a standard deviation by which moments may still move

_ALIKE = 0.02  # the amount by which the logarithms of scales may still change

_SHORTEST = 1e-6  # the shortest part of a step that is tried

_STEPS_OF_A_DRAW = 8  # the most Gauss-Newton steps to a draw from the posterior

#: The number of parameters for which sets of equally many attributes count in a set's scale.
POOLED = 2.0

_DOUBT = 0.5  # the least square scale, in its standard errors at 0

_WIDEST = 4.0  # the largest scale of parameters: a factor of 50 or so between cells


def characters(domain: Domain, names: Sequence[str]) -> Items:
    """Return the indices a, (characters, attributes), that are not 0 exactly at some attributes."""
    inside = np.array(
        list(product(*(range(1, domain[name]) for name in names))), dtype=np.int64
    ).reshape(math.prod(domain[name] - 1 for name in names), len(names))
    result = np.zeros((len(inside), len(domain)), dtype=np.int64)
    result[:, list(domain.places(tuple(names)))] = inside
    return result


def cas(shape: Sequence[int], indices: Items, cells: Items) -> Floats:
    """Return the values of h_a in some cells, (characters, cells).

    Shapes: `indices` (characters, attributes), `cells` (cells, attributes).
    """
    turns = np.zeros((len(indices), len(cells)))
    for place, size in enumerate(shape):
        turns += np.multiply.outer(indices[:, place], cells[:, place]) % size / size
    result: Floats = np.cos(2 * np.pi * turns) + np.sin(2 * np.pi * turns)
    return result


class Moments(NamedTuple):
    """Moments: a protocol's estimates of the Fourier coefficients of one set of attributes."""

    names: tuple[str, ...]  # in the order of the domain
    values: Floats  # in the order of `characters`
    variances: Floats  # of these, above 0


class LogLinear:
    """A log-linear model, fitted to some moments of different sets of attributes, perhaps to none.

    Shapes: ``joint``, the fitted distribution of the records, (records,); ``parameters``, the
    theta_a, and ``scales``, the standard deviation that each has beforehand, (parameters,).
    """

    def __init__(self, domain: Domain, moments: Sequence[Moments]) -> None:
        self.domain = domain
        parts = [characters(domain, each.names) for each in moments]
        self.indices = np.concatenate([np.zeros((0, len(domain)), dtype=np.int64), *parts])
        self._which = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self._orders = np.array([len(each.names) for each in moments])
        self._values = np.concatenate([np.zeros(0), *(each.values for each in moments)])
        self._precisions = 1 / np.concatenate([np.ones(0), *(each.variances for each in moments)])
        self._steps = np.array(domain.steps, dtype=np.int64)
        self._places = self.indices @ self._steps
        self.parameters, self.scales = np.zeros(len(self._values)), self._first_scales()
        self.joint = np.full(domain.size, 1 / domain.size)
        if len(self._values):
            self._fit()

    # ------------------------------------------------------------------------- the distribution

    def distribution(self, parameters: Floats) -> Floats:
        """Return the distribution with these parameters, flat."""
        spectrum = np.zeros(self.domain.size)
        spectrum[self._places] = parameters
        turned = scipy.fft.fftn(spectrum.reshape(self.domain.shape))
        # sum_a theta_a (cos + sin) at x: the transform with exp(-i) has -sin as its imaginary part.
        logs = (turned.real - turned.imag).ravel()
        # Log-sum-exp: the constant log Z cancels, and nothing overflows.
        weights = np.exp(logs - logs.max())
        result: Floats = weights / weights.sum()
        return result

    def _spectrum(self, joint: Floats) -> npt.NDArray[np.complex128]:
        """Return E exp(2 pi i sum_j m_j x_j / r_j) for every m, flat."""
        result: npt.NDArray[np.complex128] = np.conj(
            scipy.fft.fftn(joint.reshape(self.domain.shape))
        ).ravel()
        return result

    def _moments(self, spectrum: npt.NDArray[np.complex128]) -> Floats:
        coefficients = spectrum[self._places]
        result: Floats = coefficients.real + coefficients.imag
        return result

    def _pairs(self, rows: Items, sign: int) -> Items:
        """Return the place of a + b, or a - b, among all m, for pairs of a row and a parameter."""
        result = np.zeros((len(rows), len(self.indices)), dtype=np.int64)
        for place, size in enumerate(self.domain.shape):
            digit = np.add.outer(rows[:, place], sign * self.indices[:, place]) % size
            result += digit * self._steps[place]
        return result

    @cached_property
    def _own_pairs(self) -> tuple[Items, Items]:
        return self._pairs(self.indices, -1), self._pairs(self.indices, 1)

    @property
    def covariances(self) -> Floats:
        """The covariances of the h_a under the fit: shape (parameters, parameters)."""
        return self._covariances(self._spectrum(self.joint))

    def _covariances(self, spectrum: npt.NDArray[np.complex128]) -> Floats:
        """Return the covariances of the h_a, from a Fourier transform of the distribution."""
        minus, plus = self._own_pairs
        means = self._moments(spectrum)
        result: Floats = spectrum.real[minus] + spectrum.imag[plus] - np.outer(means, means)
        return result

    # ---------------------------------------------------------------------------------- the fit

    def _fit(self) -> None:
        """Take Gauss-Newton steps, each of which is followed by new scales of the parameters."""
        nothing = np.zeros(len(self._values))
        for _ in range(_ROUNDS):
            before, root = self._moments(self._spectrum(self.joint)), self._root(self.joint)
            self.parameters, self.joint = self._stepped(
                self.parameters, self.joint, root, self._values, nothing
            )
            moved = np.abs(self._moments(self._spectrum(self.joint)) - before)
            # Scales follow the root before the step: it has been factorised already, and at the
            # fixed point, where both have settled, there is no difference.
            scales, self.scales = self.scales, self._scales_of(root)
            if (moved * np.sqrt(self._precisions)).max() < _ENOUGH and np.abs(
                np.log(self.scales / scales)
            ).max() < _ALIKE:
                break

    def _root(self, joint: Floats) -> Floats:
        """Return Cholesky's factor of the curvature of half the loss, by Gauss and Newton."""
        # In an exponential family the Jacobian of the moments by the parameters is their covariance
        # C: the curvature is C P C + S^-2. As a product it is positive definite in spite of
        # rounding.
        half = self._covariances(self._spectrum(joint)) * np.sqrt(self._precisions)
        return cholesky(half @ half.T, self.scales**-2.0)

    def _stepped(
        self, start: Floats, joint: Floats, root: Floats, values: Floats, centre: Floats
    ) -> tuple[Floats, Floats]:
        """Take a step towards moments, with parameters around a centre; halved if too long."""
        spectrum = self._spectrum(joint)
        left = values - self._moments(spectrum)
        slope = self._covariances(spectrum) @ (self._precisions * left)
        slope -= (start - centre) / self.scales**2
        # Positive definite, so that the step descends, and some fraction of it lowers the loss.
        step = scipy.linalg.cho_solve((root, True), slope, check_finite=False)
        least, length = self._loss(left, start - centre), 1.0
        while True:
            after = start + length * step
            trial = self.distribution(after)
            if self._loss(values - self._moments(self._spectrum(trial)), after - centre) <= least:
                return after, trial
            length /= 2
            if length < _SHORTEST:
                return start, joint

    def _loss(self, left: Floats, change: Floats) -> float:
        return float((self._precisions * left**2).sum() + ((change / self.scales) ** 2).sum())

    def _first_scales(self) -> Floats:
        """Return scales as if records were nearly even, where parameters are nearly the moments."""
        energies = np.maximum(self._values**2 - 1 / self._precisions, 0.0)
        return self._pooled(energies, np.ones(len(energies)), self._precisions)

    def _scales_of(self, root: Floats) -> Floats:
        """Return scales by MacKay's step: the energy of parameters over how many are determined."""
        precisions = np.maximum((root**2).sum(axis=1) - self.scales**-2.0, 1e-300)
        variances = np.diag(scipy.linalg.cho_solve((root, True), np.eye(len(root))))
        # 1 - posterior variance / prior variance: 1 for a parameter that the data determine, 0 for
        # one that the prior does. The fixed point maximises the evidence (MacKay 1992).
        known = np.maximum(1 - variances / self.scales**2, 1e-9)
        return self._pooled(self.parameters**2, known, precisions)

    def _pooled(self, energies: Floats, known: Floats, precisions: Floats) -> Floats:
        """Return the scale of each set's parameters, with what equally large sets say of it."""
        sets = len(self._orders)
        energy, count = (np.bincount(self._which, each, sets) for each in (energies, known))
        result = np.zeros(sets)
        for order in set(self._orders.tolist()):
            some = self._orders == order
            middle = energy[some].sum() / count[some].sum()
            inside = some[self._which]
            # Not below what so many parameters, with errors of these precisions, could tell from 0:
            # else noise would make it 0 by chance, and all intervals with it
            least = _DOUBT * math.sqrt(2 / inside.sum()) / precisions[inside].mean()
            pooled = (energy[some] + POOLED * middle) / (count[some] + POOLED)
            result[some] = np.maximum(pooled, least)
        return np.minimum(np.sqrt(result), _WIDEST)[self._which]

    # ------------------------------------------------------------------------ what it leaves open

    @cached_property
    def _curvature(self) -> Floats:
        return self._root(self.joint)

    def variances(self, indices: Items, weights: Floats) -> Floats:
        """Return the posterior variances, (sums,), of sums of moments.

        Shapes: `indices`, any a, (characters, attributes); `weights` (sums, characters).
        """
        if not len(self._values):
            return np.zeros(len(weights))
        spectrum = self._spectrum(self.joint)
        coefficients = spectrum[indices @ self._steps]
        covariances = spectrum.real[self._pairs(indices, -1)]
        covariances += spectrum.imag[self._pairs(indices, 1)]
        covariances -= np.outer(coefficients.real + coefficients.imag, self._moments(spectrum))
        # w' C H^-1 C' w as the square of a triangular solution: never negative.
        half = scipy.linalg.solve_triangular(
            self._curvature, (weights @ covariances).T, lower=True, check_finite=False
        )
        result: Floats = (half**2).sum(axis=0)
        return result

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Return a distribution drawn from the posterior, (records,)."""
        if not len(self._values):
            return self.joint
        # The fit to other moments, and around other parameters, which are drawn with the deviations
        # that both have: for linear models that is a draw from the posterior, and it keeps to
        # distributions (randomise, then optimise: Bardsley et al. 2014)
        values = self._values + rng.normal(size=len(self._values)) / np.sqrt(self._precisions)
        centre = self.scales * rng.normal(size=len(self._values))
        parameters, joint = self.parameters, self.joint
        for step in range(_STEPS_OF_A_DRAW):
            root = self._root(joint) if step else self._curvature
            before = joint
            parameters, joint = self._stepped(parameters, joint, root, values, centre)
            moved = np.abs(self._moments(self._spectrum(joint) - self._spectrum(before)))
            if (moved * np.sqrt(self._precisions)).max() < 50 * _ENOUGH:
                break
        return joint
