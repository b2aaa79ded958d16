"""Predicted errors of marginals: as least squares fits them, and as one model does.

The first follows from the protocol, at even frequencies. What shrinking gains depends on the
population: it is predicted on reference ones, by the posterior variance that Laplace's
approximation gives at their true parameters, without drawing anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from frequency.core import Aggregate, Ascent, maximised
from frequency.exceptions import UnknownVariance
from frequency.marginals.estimate import UNKNOWN, MarginalEstimate
from frequency.marginals.log_linear import POOLED, LogLinear, Moments, cas, characters
from frequency.marginals.protocol import MarginalProtocol, Table
from frequency.schema import Domain
from mechdesign.base import Floats, shown, whole

# ------------------------------------------------------------------------------------------------
# Marginals by maximum likelihood: an EM decoder for every protocol.
#
# Source: thesis 4.4.4, the remark.


class LikelihoodEstimate(MarginalEstimate):
    """An estimate of most likelihood: proper distributions, biased; variances are not known.

    Parameters
    ----------
    protocol : MarginalProtocol
        Of the reports.
    aggregate : Aggregate
        Of them.
    tolerance : float
        How far a log-likelihood may be from its maximum, in nats.
    max_iterations : int
        After how many steps to stop in any case.
    """

    def __init__(
        self,
        protocol: MarginalProtocol,
        aggregate: Aggregate,
        tolerance: float,
        max_iterations: int,
    ) -> None:
        super().__init__(protocol, aggregate)
        self._decoded = protocol
        self._limits = tolerance, max_iterations
        self._found: dict[Table, tuple[Floats, Ascent]] = {}

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the marginal, one axis an attribute; NaN where nobody reported on them."""
        names = self._decoded.checked(attributes)
        if names not in self._marginals and self.n:
            shape = self.domain.project(names).shape
            total = np.zeros(int(np.prod(shape)))
            tables = self._decoded.tables_of(self.aggregate, names)
            for table, cells, share in tables:
                if share:
                    part = np.bincount(cells, self._table(table)[0], minlength=len(total))
                    total += share * part
            # NaN where nobody reported on them
            if not any(share for *_, share in tables):
                total[:] = np.nan
            self._marginals[names] = total.reshape(shape)
            self._marginals[names].setflags(write=False)
        return super().marginal(names)

    def report(self, attributes: Sequence[str]) -> list[Ascent]:
        """Return how the search ended for each table that a marginal is read off.

        ValueError with no reports.
        """
        names = self._decoded.checked(attributes)
        if not self.n:
            raise ValueError("no reports: there is nothing to decode")
        tables = self._decoded.tables_of(self.aggregate, names)
        return [self._table(table)[1] for table, _, share in tables if share]

    def _table(self, table: Table) -> tuple[Floats, Ascent]:
        if table not in self._found:
            likelihood = self._decoded.likelihood_of(self.aggregate, table)
            self._found[table] = maximised(likelihood, *self._limits)
        return self._found[table]

    def _variances(self, names: tuple[str, ...], weights: Floats) -> Floats:
        raise UnknownVariance(UNKNOWN.format("maximum likelihood"))


def most_likely(
    estimate: MarginalEstimate, tolerance: float = 0.01, max_iterations: int = 100_000
) -> LikelihoodEstimate:
    """Return marginals of most likelihood, decoded by expectation maximisation when asked for.

    Proper distributions: no cell is negative, and they sum to 1. Where the unbiased estimate is one
    they hardly differ from it, and thesis 4.4.4 (remark) found no noticeable gain where marginals
    are perturbed. Where whole records are there is one (`python -m reproduction`, section 4.4.4):
    most records are then below the noise; but `MarginalEstimate.distribution` may gain as much.

    The likelihood is that of the reports, as far as the aggregate keeps them:

    - MargPS and InpPS, InpOLH, InpEM, and InpHT on binary attributes: exactly.
    - MargRR and InpRR: that of each bit by itself, all multiplied, as only the ones are counted.
    - MargHT, InpHTCMS, and InpHT on other attributes: exact but for how many reports drew each
      index, which is not counted; it is taken to be the number expected.

    What is decoded as a whole is the table of all records (Inp- protocols but InpHT and InpEM:
    their marginals agree), the marginal itself (InpHT, InpEM), or that of each set of attributes
    that users report on (Marg- protocols and CALM). A smaller marginal is then the mean over the
    sets that hold it, weighed as in the unbiased estimate.

    Parameters
    ----------
    estimate : MarginalEstimate
        Of any protocol of `frequency.marginals`.
    tolerance : float, default 0.01
        Above 0: the search ends when the log-likelihood of the reports is proved to be within so
        many nats of its maximum. A standard deviation is half a nat.
    max_iterations : int, default 100000
        Or after so many steps: see `LikelihoodEstimate.report`.

    Returns
    -------
    LikelihoodEstimate
        All values are NaN with no reports. Variances are refused (`UnknownVariance`).

    Raises
    ------
    ValueError
        A tolerance or a number of steps out of range. When a marginal is asked for: CALM has no set
        that holds it, or InpHT would have to list more than 2^24 signs.

    Examples
    --------
    >>> from frequency.marginals import Domain, MargPS
    >>> protocol = MargPS(Domain.binary("a", "b"), k=2, epsilon=1.0)
    >>> aggregate = protocol.simulate([600_000, 0, 0, 400_000], np.random.default_rng(1))
    >>> most_likely(protocol.estimate(aggregate)).marginal(["a", "b"]).round(1).tolist()
    [[0.6, 0.0], [0.0, 0.4]]
    """
    if (
        isinstance(tolerance, bool)
        or not isinstance(tolerance, (int, float))
        or not 0 < tolerance < np.inf
    ):
        raise ValueError(f"tolerance must be a finite number above 0, got {shown(tolerance)}")
    max_iterations = whole(max_iterations, "max_iterations", 1, what="a number of steps")
    protocol = estimate.protocol
    if not isinstance(protocol, MarginalProtocol):
        raise TypeError(f"{type(protocol).__name__} is no protocol for marginals")
    return LikelihoodEstimate(protocol, estimate.aggregate, tolerance, max_iterations)


Names = tuple[str, ...]

#: The limits of a reference population: of more attributes some are taken.
_RECORDS, _PARAMETERS = 1 << 12, 250

#: The limits with as few attributes as a marginal has; beyond, nothing is predicted.
_MOST_RECORDS, _MOST_PARAMETERS = 1 << 14, 1000

_EXACT = 1e-10  # the variance of moments that are known

# The scale of parameters that are all 0, which an estimate cannot know for certain.
_LEAST_SCALE = 0.02


def parameters_of(domain: Domain, names: Names) -> int:
    """Return the number of moments of a set of attributes that no smaller set tells."""
    return math.prod(domain[name] - 1 for name in names)


def moments_in(names: Names) -> list[Names]:
    """Return the sets of attributes whose moments make a marginal: all nonempty subsets."""
    return [inside for size in range(1, len(names) + 1) for inside in combinations(names, size)]


def linear_variance(domain: Domain, names: Names, variances: Mapping[Names, float]) -> float:
    """Return the mean variance of a cell of a marginal that is made of moments."""
    total = sum(parameters_of(domain, inside) * variances[inside] for inside in moments_in(names))
    # Parseval: a cell is the mean of moments times characters, whose squares have the mean 1.
    return total / domain.project(names).size ** 2


def _shares(size: int, share: float) -> Floats:
    """Return frequencies of values: each next one is rarer by the same factor."""
    powers = share ** np.arange(size)
    return powers / powers.sum()


def _skewed(domain: Domain) -> Floats:
    """Return records of independent attributes, of which each next value is half as frequent."""
    joint = np.ones(1)
    for name in domain:
        joint = np.multiply.outer(joint, _shares(domain[name], 0.5)).ravel()
    return joint


def _dependent(domain: Domain) -> Floats:
    """Return records of which half have the value of the attribute before, if there is one."""
    joint, before = _shares(next(iter(domain.shape)), 0.5)[None, :], 0
    for place, size in enumerate(domain.shape):
        if place:
            alone = np.tile(_shares(size, 0.5), (before, 1))
            same = np.minimum(np.arange(before), size - 1)
            step = 0.5 * alone + 0.5 * (same[:, None] == np.arange(size))
            joint = (joint[:, :, None] * step).reshape(-1, size)
        before = size
    return joint.ravel()


def _rare(domain: Domain) -> Floats:
    """Return records of which three in a hundred have mostly values other than the first."""
    result = np.zeros(domain.size)
    for share, other in ((0.03, 0.5), (0.97, 0.01)):
        joint = np.full(1, share)
        for size in domain.shape:
            rest = np.full(size, other / max(size - 1, 1))
            rest[0] = 1 - other if size > 1 else 1.0
            joint = np.multiply.outer(joint, rest).ravel()
        result += joint
    return result


#: The distributions of the records, flat, by their names.
POPULATIONS: dict[str, Callable[[Domain], Floats]] = {
    "even": lambda domain: np.full(domain.size, 1 / domain.size),
    "skewed": _skewed,
    "dependent": _dependent,
    "rare": _rare,
}


class FittedErrors:
    """The errors of fitted marginals of k attributes, on the reference populations.

    Of a domain of many attributes, some that are far apart stand for all.
    """

    def __init__(self, domain: Domain, k: int) -> None:
        self.domain, self.k = self._some(domain, k), k
        self._sets = [
            names
            for size in range(1, k + 1)
            for names in self.domain.views(size)
            if parameters_of(self.domain, names)
        ]
        self._references = [
            (name, *self._reference(joint(self.domain))) for name, joint in POPULATIONS.items()
        ]

    @staticmethod
    def _some(domain: Domain, k: int) -> Domain:
        for number in range(len(domain), k - 1, -1):
            places = np.unique(np.linspace(0, len(domain) - 1, number).round().astype(int))
            some = domain.project([domain.attributes[place] for place in places])
            most = (_RECORDS, _PARAMETERS) if number > k else (_MOST_RECORDS, _MOST_PARAMETERS)
            if some.size <= most[0] and _all_parameters(some, k) <= most[1]:
                return some
        raise ValueError(f"fitted marginals of {k} attributes of so many values are not predicted")

    def _reference(self, joint: Floats) -> tuple[Floats, Floats]:
        """Return the covariances of the moments, and the squared scales of their parameters."""
        values = self.domain.values(np.arange(self.domain.size))
        moments = []
        for names in self._sets:
            table = cas(self.domain.shape, characters(self.domain, names), values)
            moments.append(Moments(names, table @ joint, np.full(len(table), _EXACT)))
        # The true parameters: the fit to exact moments, whose precision leaves the prior no say.
        fit = LogLinear(self.domain, moments)
        counts = np.array([parameters_of(self.domain, names) for names in self._sets])
        which, orders = (
            np.repeat(np.arange(len(counts)), counts),
            np.array([len(names) for names in self._sets]),
        )
        # As the fit takes them, with what sets of as many attributes say of each other
        energies = np.bincount(which, fit.parameters**2, len(counts))
        squares = np.zeros(len(counts))
        for order in set(orders.tolist()):
            some = orders == order
            middle = energies[some].sum() / counts[some].sum()
            squares[some] = (energies[some] + POOLED * middle) / (counts[some] + POOLED)
        squares = np.maximum(squares, _LEAST_SCALE**2)[which]
        return fit.covariances, squares

    def on_populations(self, variances: Mapping[Names, float]) -> tuple[tuple[str, float], ...]:
        """Return the predicted root mean square error of a cell, for each population."""
        counts = [parameters_of(self.domain, names) for names in self._sets]
        precisions = np.repeat([1 / max(variances[names], _EXACT) for names in self._sets], counts)
        views = self.domain.views(self.k)
        weights = dict.fromkeys(self._sets, 0.0)
        for view in views:
            for inside in moments_in(view):
                if inside in weights:
                    weights[inside] += 1 / self.domain.project(view).size ** 2 / len(views)
        spread = np.repeat([weights[names] for names in self._sets], counts)
        predicted = []
        for name, covariances, squares in self._references:
            # Laplace: the posterior covariance of parameters is the inverse of C P C + S^-2, that
            # of moments C times it times C. Only its diagonal is needed, weighted by how often
            # moments are in a cell.
            curvature = (covariances * precisions) @ covariances + np.diag(1 / squares)
            left = np.linalg.solve(curvature, covariances)
            errors = np.einsum("ij,ji->i", covariances, left)
            predicted.append((name, math.sqrt(max(float(spread @ errors), 0.0))))
        return tuple(predicted)


def _all_parameters(domain: Domain, k: int) -> int:
    sizes = [1] + [0] * k  # of sets of 0, 1, .. k attributes
    for size in domain.shape:
        sizes = [1] + [more + (size - 1) * sizes[place] for place, more in enumerate(sizes[1:])]
    return sum(sizes[1:])
