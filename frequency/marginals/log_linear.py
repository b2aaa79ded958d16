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
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import shared_out
from frequency.schema import Domain
from mechdesign.base import Floats, Items, cholesky, listed, shown

# ------------------------------------------------------------------------------------------------
# Models of records, for the marginals of a collection: of all attributes, or of parts of many.
#
# Where the records are too many to list, an answer is that of a log-linear model of the attributes
# asked for and of those that depend on them most: all marginals inside are fitted together.


Names = tuple[str, ...]

#: The limits of a model of all attributes: its fit takes some seconds then.
MOST_RECORDS, MOST_PARAMETERS = 1 << 20, 1500

#: The limits up to which attributes are added to those that are asked for.
_RECORDS_OF_A_PART, _PARAMETERS_OF_A_PART = 1 << 14, 400


class Conditional(NamedTuple):
    """A conditional: attributes of a sampled record that are drawn together, given others."""

    names: Names  # what is drawn
    given: Names  # drawn before


class MarginalModel:
    """A collection of log-linear models of a domain's attributes, fitted when they are needed.

    ``told`` gives the moments of each ``measured`` set of attributes, in the domain's order, or
    None. ValueError where a model of more than 1500 parameters, or 2^20 records, is asked for.
    """

    def __init__(
        self, domain: Domain, measured: Sequence[Names], told: Callable[[Names], Moments | None]
    ) -> None:
        self.domain, self._told = domain, told
        self._measured = {
            names: math.prod(domain[name] - 1 for name in names)
            for names in measured
            if all(domain[name] > 1 for name in names)
        }
        self._moments: dict[Names, Moments | None] = {}
        self._fits: dict[Names, LogLinear] = {}
        self._informations: dict[Names, float] = {}

    def _parameters(self, names: Names) -> int:
        return sum(size for inside, size in self._measured.items() if set(inside) <= set(names))

    def _fits_in(self, names: Names, records: int, parameters: int) -> bool:
        size = math.prod(self.domain[name] for name in names)
        return size <= records and self._parameters(names) <= parameters

    def whole(self) -> bool:
        """Whether one model holds all attributes."""
        return self._fits_in(self.domain.attributes, MOST_RECORDS, MOST_PARAMETERS)

    def around(self, names: Names) -> LogLinear:
        """Return the model that answers questions about some attributes."""
        if self.whole():
            return self._fitted(self.domain.attributes)
        inside = set(names)
        while True:
            around = sorted(
                (sum(self._information(name, two) for two in inside), name)
                for name in self.domain
                if name not in inside
            )
            # Greedy: the attribute with most information about those inside, if it still fits; one
            # that does not fit may be followed by one of fewer values that does.
            for gain, name in reversed(around):
                if gain <= 0:
                    continue
                more = self._ordered({*inside, name})
                if self._fits_in(more, _RECORDS_OF_A_PART, _PARAMETERS_OF_A_PART):
                    inside.add(name)
                    break
            else:
                return self._fitted(self._ordered(inside))

    def _ordered(self, names: set[str]) -> Names:
        return tuple(name for name in self.domain if name in names)

    def _fitted(self, names: Names) -> LogLinear:
        if names not in self._fits:
            if not self._fits_in(names, MOST_RECORDS, MOST_PARAMETERS):
                raise ValueError(
                    f"the model of {listed(names)} would have {self._parameters(names)} parameters"
                    f" and {shown(math.prod(self.domain[name] for name in names))} records, more"
                    f" than {MOST_PARAMETERS} or {MOST_RECORDS}"
                )
            moments = []
            for inside in self._measured:
                if set(inside) <= set(names):
                    if inside not in self._moments:
                        self._moments[inside] = self._told(inside)
                    known = self._moments[inside]
                    if known is not None:
                        moments.append(known)
            self._fits[names] = LogLinear(self.domain.project(names), moments)
        return self._fits[names]

    def _information(self, one: str, two: str) -> float:
        """Return the mutual information of two attributes by themselves, shrunk by the data."""
        pair = self._ordered({one, two})
        if pair not in self._informations:
            known = pair in self._measured and self._fits_in(pair, MOST_RECORDS, MOST_PARAMETERS)
            if known:
                # Of the fitted model, whose scales shrink it: that of noisy marginals is far above
                # 0 for independent attributes, too.
                joint = self._fitted(pair).joint.reshape(self.domain.project(pair).shape)
                alone = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
                information = float(scipy.special.rel_entr(joint, alone).sum())
            self._informations[pair] = information if known else 0.0
        return self._informations[pair]

    # ------------------------------------------------------------------------------------ records

    def conditionals(self) -> list[Conditional]:
        """Return the order of drawing: a network where each attribute depends on a few before."""
        if self.whole() or len(self.domain) == 1:
            return [Conditional(self.domain.attributes, ())]
        pairs = combinations(self.domain, 2)
        first = max(pairs, key=lambda pair: self._information(*pair))
        done = self.around(self._ordered(set(first))).domain.attributes
        result = [Conditional(done, ())]
        while left := [name for name in self.domain if name not in done]:
            name = max(
                left, key=lambda candidate: max(self._information(candidate, two) for two in done)
            )
            given: set[str] = set()
            for two in sorted(done, key=lambda two: -self._information(name, two)):
                more = self._ordered({*given, two, name})
                if self._information(name, two) > 0 and self._fits_in(
                    more, _RECORDS_OF_A_PART, _PARAMETERS_OF_A_PART
                ):
                    given.add(two)
            result.append(Conditional((name,), self._ordered(given)))
            done = (*done, name)
        return result

    def sample(self, n: int, rng: np.random.Generator, drawn: bool) -> Items:
        """Return records of the fit, or of a draw from its posterior: shape (n, attributes)."""
        records = np.zeros((n, len(self.domain)), dtype=np.int64)
        for names, given in self.conditionals():
            fit = self._fitted(self._ordered({*names, *given}))
            domain, table = fit.domain, fit.drawn(rng) if drawn else fit.joint
            cells = domain.cells(np.arange(domain.size), (*given, *names))
            rows = domain.project(given).size if given else 1
            joint = np.bincount(cells, table).astype(np.float64).reshape(rows, -1)
            seen = np.zeros(n, dtype=np.int64)
            for name in given:
                seen = seen * self.domain[name] + records[:, self.domain.places((name,))[0]]
            # Every combination of values gets its share of the records but for rounding, at random
            values = self.domain.project(names).values(_shared_out(joint, seen, rng))
            records[:, list(self.domain.places(names))] = values
        return rng.permutation(records)


def _shared_out(joint: Floats, seen: Items, rng: np.random.Generator) -> Items:
    """Return cells for each row of a table that is seen: each its share, rounded at random."""
    result = np.zeros(len(seen), dtype=np.int64)
    order = np.argsort(seen, kind="stable")
    numbers = np.bincount(seen, minlength=len(joint))
    ends = np.cumsum(numbers)
    for row in np.flatnonzero(numbers).tolist():
        inside = order[ends[row] - numbers[row] : ends[row]]
        result[inside] = shared_out(joint[row], len(inside), rng)
    return result


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
    return np.cos(2 * np.pi * turns) + np.sin(2 * np.pi * turns)


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
        self.parameters = np.zeros(len(self._values))
        # As if records were nearly even, where parameters are nearly the moments
        energies = np.maximum(self._values**2 - 1 / self._precisions, 0.0)
        self.scales = self._pooled(energies, np.ones(len(energies)), self._precisions)
        self.joint = np.full(domain.size, 1 / domain.size)
        if len(self._values):
            self._fit()

    # ------------------------------------------------------------------------- the distribution

    def distribution(self, parameters: Floats) -> Floats:
        """Return the distribution with these parameters, flat."""
        spectrum = np.zeros(self.domain.size)
        spectrum[self._places] = parameters
        turned = np.fft.fftn(spectrum.reshape(self.domain.shape))
        # sum_a theta_a (cos + sin) at x: the transform with exp(-i) has -sin as its imaginary part.
        logs = (turned.real - turned.imag).ravel()
        # Log-sum-exp: the constant log Z cancels, and nothing overflows.
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def _spectrum(self, joint: Floats) -> npt.NDArray[np.complex128]:
        """Return E exp(2 pi i sum_j m_j x_j / r_j) for every m, flat."""
        return np.conj(np.fft.fftn(joint.reshape(self.domain.shape))).ravel()

    def _moments(self, spectrum: npt.NDArray[np.complex128]) -> Floats:
        coefficients = spectrum[self._places]
        return coefficients.real + coefficients.imag

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
        return spectrum.real[minus] + spectrum.imag[plus] - np.outer(means, means)

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
        return (half**2).sum(axis=0)

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
