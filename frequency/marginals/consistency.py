"""Consistent marginals: the least squares fit, which agrees where noisy ones overlap.

It is the consistency step of CALM (Zhang et al., CCS 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from frequency.core import Aggregate
from frequency.marginals.estimate import MarginalEstimate
from frequency.marginals.expectation_maximisation import EMEstimate
from frequency.marginals.views import ViewProtocol, _spread
from frequency.schema import Domain
from mechdesign.base import Floats

Names = tuple[str, ...]


class Overlap:
    """An overlap: marginals of some sets of attributes, the views, that may have some in common.

    The effect of a set A of attributes is what the marginal of A says beyond those of its subsets:
    a table with an axis for each, whose sum along every axis is 0. A marginal is the sum of the
    effects of all subsets, each spread evenly over the attributes that it does not have; these
    terms are orthogonal. Views agree, wherever they overlap and in their total, if and only if one
    effect for each A serves all. So the least squares fit takes each effect by itself: the mean
    over the views that hold A of what they say of it, weighed by the precision there: that of a
    view's cells over the number of cells that were added up.

    ``precisions`` are one over the variance of a cell of each view: 0 for one that says nothing.
    """

    def __init__(self, domain: Domain, views: Sequence[Names], precisions: Sequence[float]) -> None:
        self.domain, self.views, self.precisions = domain, tuple(views), tuple(precisions)
        self._order = {name: place for place, name in enumerate(domain)}

    @cached_property
    def sets(self) -> tuple[Names, ...]:
        """The sets of 1 or more attributes that a view holds, in the domain's order."""
        return tuple(
            sorted(
                {names for view in self.views for names in self.subsets(view)},
                key=lambda names: (len(names), names),
            )
        )

    def subsets(self, attributes: Names) -> list[Names]:
        """Return the nonempty subsets of some attributes, each in the order of the domain."""
        ordered = sorted(attributes, key=self._order.__getitem__)
        return [
            names for size in range(1, len(ordered) + 1) for names in combinations(ordered, size)
        ]

    @cached_property
    def shares(self) -> dict[Names, list[tuple[int, float]]]:
        """The views that hold each set of attributes, and their weights.

        Views that say nothing are left out.
        """
        result: dict[Names, list[tuple[int, float]]] = {names: [] for names in self.sets}
        for part, (view, precision) in enumerate(zip(self.views, self.precisions, strict=True)):
            for names in self.subsets(view) if precision else ():
                result[names].append((part, precision / self.cells(set(view) - set(names))))
        for names, inside in result.items():
            # Inverse variance weights: the best linear unbiased mean of independent estimates.
            total = sum(weight for _, weight in inside)
            result[names] = [(part, weight / total) for part, weight in inside]
        return result

    def cells(self, names: set[str]) -> int:
        """Return the number of combinations of values of some attributes."""
        return math.prod(self.domain[name] for name in names)

    def effects(self, tables: Sequence[Floats]) -> dict[Names, Floats]:
        """Return the least squares fit to the views' marginals, one axis an attribute.

        NaN where no view says anything.
        """
        result = {}
        for names, shares in self.shares.items():
            fit = np.full(self.domain.project(names).shape, 0.0 if shares else np.nan)
            for part, share in shares:
                fit += share * effect(tables[part], self.views[part], names)
            result[names] = fit
        return result

    def marginal(self, effects: dict[Names, Floats], attributes: Names) -> Floats:
        """Return the marginal of attributes that a view holds together; it sums to 1."""
        shape = self.domain.project(attributes).shape
        # The effect of the empty set is the total, which is 1 and not estimated.
        result = np.full(shape, 1 / math.prod(shape))
        for names in self.subsets(attributes):
            spread = self.cells(set(attributes) - set(names))
            result += _along(effects[names], names, attributes) / spread
        return result


def effect(table: Floats, held: Names, names: Names) -> Floats:
    """Return the effect of some of a table's attributes: what no fewer of them explain."""
    axes = tuple(axis for axis, name in enumerate(held) if name not in names)
    result: Floats = table.sum(axis=axes) if axes else table
    left = [name for name in held if name in names]
    result = np.transpose(result, [left.index(name) for name in names])
    for axis in range(len(names)):
        # The projections along different axes commute, so that their order does not matter:
        # together they leave what sums to 0 along every axis (inclusion and exclusion over
        # subsets).
        result = result - result.mean(axis=axis, keepdims=True)
    return result


def _along(table: Floats, names: Names, attributes: Names) -> Floats:
    """Return a table of some attributes, shaped to be added to a table of more."""
    order = [names.index(name) for name in attributes if name in names]
    shape = [table.shape[names.index(name)] if name in names else 1 for name in attributes]
    return np.transpose(table, order).reshape(shape)


class ConsistentEstimate(MarginalEstimate):
    """An estimate of marginals that agree where they overlap, and sum to 1.

    They are unbiased, as are the views that they are fitted to. Variances are those of this linear
    estimator, from what the oracles say of the views' errors. The weights take the errors of a
    view's cells to be alike, as they are for even frequencies; for others the fit is unbiased
    still, and nearly as good.
    """

    def __init__(self, protocol: ViewProtocol, aggregate: Aggregate) -> None:
        super().__init__(protocol, aggregate)
        self._views = protocol

    @cached_property
    def overlap(self) -> Overlap:
        """The overlap of the views, with precisions by how many users reported on each."""
        channel, users = self._views.channel, self._views.channel.part_users(self.aggregate)
        precisions = []
        for part, count in zip(channel.parts, users.tolist(), strict=True):
            # Of a contrast of cells, for one user, who is as likely to be in each.
            variance = part.difference_variance(1) / 2 + 1 / part.domain if part.domain > 1 else 1.0
            precisions.append(count / variance)
        return Overlap(self.domain, self._views.views, precisions)

    @cached_property
    def tables(self) -> list[Floats]:
        """The marginals of the views, each from its own users."""
        channel, tables = self._views.channel, []
        for part, view in enumerate(self._views.views):
            level = channel.part_aggregate(self.aggregate, part)
            cells = (
                channel.parts[part].frequencies_of(level, None)
                if level.n
                else np.full(channel.parts[part].domain, np.nan)
            )
            tables.append(cells.reshape(self.domain.project(view).shape))
        return tables

    @cached_property
    def _effects(self) -> dict[Names, Floats]:
        return self.overlap.effects(self.tables)

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the marginal, one axis an attribute in the order asked for."""
        names = self._views.checked(attributes)
        self._views.inside(names)
        if names not in self._marginals:
            self._marginals[names] = self.overlap.marginal(self._effects, names)
            self._marginals[names].setflags(write=False)
        return self._marginals[names]

    def _variances(self, names: Names, weights: Floats) -> Floats:
        """Return the variances of the sums, as linear functions of the views."""
        # `noise_of` counts users as if they were drawn for each view; the population is fixed, and
        # all views are samples of it without replacement: their sampling variances are that much
        # less.
        shared = _spread(weights, self.marginal(names).ravel()) / self.reports
        return self.noise_of([(names, weights)]) - shared

    def noise_of(self, sums: Sequence[tuple[Names, Floats]]) -> Floats:
        """Return the variances of sums of cells of several marginals, as if users were drawn."""
        overlap, channel = self.overlap, self._views.channel
        rows: dict[int, Floats] = {}
        for names, weights in sums:
            tables = weights.reshape(-1, *self.domain.project(names).shape)
            for subset in overlap.subsets(names):
                if not overlap.shares[subset]:
                    return np.full(len(weights), np.inf)
                spread = overlap.cells(set(names) - set(subset))
                # Weights on the marginal become weights on each effect, and these on each view that
                # has a share in it: the adjoint of `marginal` and `effects`. The projection onto
                # effects is symmetric, and so `effect` serves here, too.
                along = np.stack([effect(table, names, subset) for table in tables]) / spread
                for part, share in overlap.shares[subset]:
                    view = overlap.views[part]
                    shape = self.tables[part].shape
                    added = np.stack(
                        [np.broadcast_to(_along(row, subset, view), shape).ravel() for row in along]
                    )
                    rows[part] = rows.get(part, 0.0) + share * added
        total: Floats = np.zeros(len(sums[0][1]))
        for part, row in rows.items():
            level = channel.part_aggregate(self.aggregate, part)
            frequencies = self.tables[part].ravel()
            # Views have different users: independent, and variances add up.
            noise = channel.parts[part].linear_variances_of(row, level, frequencies, None)
            total = total + noise + _spread(row, frequencies) / level.n
        return total


def consistent(estimate: MarginalEstimate) -> MarginalEstimate:
    """Return unbiased estimates of marginals that agree where they overlap.

    Of MargRR, MargPS, MargHT and CALM: the weighted least squares fit to the marginals that users
    reported on. All others of the unbiased estimates agree as they are: they are read off one set
    of coefficients (InpHT), one estimate for every record (InpRR, InpPS, InpOLH, InpHTCMS), or the
    counts of the same perturbed records (InpEM, by the inverse of the perturbation).

    Parameters
    ----------
    estimate : MarginalEstimate
        Of any protocol of `frequency.marginals`.

    Returns
    -------
    MarginalEstimate
        The reconciled estimate, or the same one.
    """
    if isinstance(estimate, EMEstimate):
        unbiased = MarginalEstimate(estimate.protocol, estimate.aggregate)
        return unbiased.of_population(estimate.n)
    if isinstance(estimate.protocol, ViewProtocol) and not isinstance(estimate, ConsistentEstimate):
        fit = ConsistentEstimate(estimate.protocol, estimate.aggregate)
        return fit.of_population(estimate.n)
    return estimate


class Measurement(NamedTuple):
    """A noisy marginal, in numbers of users.

    Attributes
    ----------
    attributes : tuple of str
        Their names.
    values : numpy.ndarray of float64
        Shape (cells,), flat: the last attribute counts fastest.
    stddev : float
        The standard deviation of a cell.
    """

    attributes: Names
    values: Floats
    stddev: float


def measurements(estimate: MarginalEstimate) -> list[Measurement]:
    """Return a protocol's measurements, for programs that fit a model to noisy marginals.

    The marginals that users reported on, or all of k attributes for protocols that report on all;
    those that nobody reported on are left out. The root of the mean variance of a cell stands for
    all cells, which such programs take for independent.

    Returns
    -------
    list of Measurement
        One for each marginal.
    """
    estimate = consistent(estimate)
    protocol, n, measured = estimate.protocol, estimate.n, []
    if isinstance(protocol, ViewProtocol):
        fit = ConsistentEstimate(protocol, estimate.aggregate)
        for part, (view, table) in enumerate(zip(protocol.views, fit.tables, strict=True)):
            level, cells = protocol.channel.part_aggregate(fit.aggregate, part), table.ravel()
            if level.n:
                noise = protocol.channel.parts[part].variances_of(level, cells, None)
                shares = np.maximum(cells, 0.0) / max(float(np.maximum(cells, 0.0).sum()), 1e-300)
                variance = float((noise + shares * (1 - shares) * (1 / level.n - 1 / n)).mean())
                measured.append(Measurement(view, n * cells, n * math.sqrt(max(variance, 0.0))))
        return measured
    for view in estimate.domain.views(protocol.k) if n else ():
        variance = float(estimate.cells(view).variance.mean())
        if math.isfinite(variance):
            measured.append(
                Measurement(view, n * estimate.marginal(view).ravel(), n * math.sqrt(variance))
            )
    return measured


def to_mbi(estimate: MarginalEstimate) -> list[Any]:
    """Return `measurements` as ``mbi.LinearMeasurement``, for ``mbi.estimation``.

    This needs the package mbi (private-pgm). That of version 2.0.0 computes in single precision
    unless JAX is told otherwise, which is too coarse for what many users tell: of a million its
    LBFGS was off by 257 standard deviations, and InteriorGradient gave NaN. Call
    ``jax.config.update("jax_enable_x64", True)`` before anything else of JAX, or set
    ``JAX_ENABLE_X64=1`` in the environment: then both are right.

    Parameters
    ----------
    estimate : MarginalEstimate
        Of any protocol of `frequency.marginals`.

    Returns
    -------
    list of mbi.LinearMeasurement
        One for each marginal of `measurements`.

    Raises
    ------
    ImportError
        The package is not installed.
    """
    linear_measurement = import_module("mbi").LinearMeasurement
    return [
        linear_measurement(each.values, each.attributes, stddev=each.stddev)
        for each in measurements(estimate)
    ]
