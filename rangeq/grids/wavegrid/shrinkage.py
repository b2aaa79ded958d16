"""Local terms of pairs: their kinds, and the posteriors of their coefficients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mechdesign.base import Floats, Items, cholesky
from rangeq.grids.wavegrid.interactions import Interaction, Pair, Scales, terms

# ------------------------------------------------------------------------------------------------
# Kinds of functions of an attribute of which products are local terms of its pairs.


LEVELS = 6  #: The number of levels of dyadic intervals of an attribute's values: down to a 64th.

KINDS = 2 * LEVELS + 2  #: The number of kinds that `bases` returns.

# The lengths of rough functions of the rank, with correlations exp(-distance / length).
_LENGTHS = (0.1, 0.4)

#: Smooth terms along an attribute, for its pairs with categories, and the deviation of the rough
#: functions that go with them: edges would be smeared otherwise.
DEGREES, _ROUGH = (1, 2, 4), 0.5

_RANK = 1e-9  # the part of the largest square below which functions are left out


class TermBasis(NamedTuple):
    """Functions of an attribute of one kind, orthogonal under its Gram matrix."""

    functions: Floats  # p w: shape (cells, functions), of sum 0 each
    told: Floats  # shape (functions,): their squares under the Gram matrix


class TermCells(NamedTuple):
    """The coarse cells of an attribute, and the Gram matrix of its functions."""

    mass: Floats  # shape (cells,): the distribution of the attribute
    starts: Items  # shape (cells + 1,): where the cells begin, and the size
    gram: Floats  # shape (cells, cells)
    apart: int = 0  # how many of the last cells are no neighbours of others


def bases(cells: TermCells) -> list[TermBasis]:
    """Return the kinds of local terms of an attribute, in the same order for all."""
    # Attributes of few cells have fewer different ones
    mass, starts, gram, apart = cells
    near = len(mass) - apart
    levels = [
        np.pad(level, ((0, apart), (0, 0))) for level in dyadic(mass[:near], starts[: near + 1])
    ]
    # Values apart move mass by themselves, from the coarsest kind on
    levels[0] = np.concatenate([levels[0], each_cell(mass)[:, near:]], axis=1)
    roots = [np.concatenate(levels[: deepest + 1], axis=1) for deepest in range(LEVELS)]
    roots += [levels[min(level, len(levels) - 1)] for level in range(1, LEVELS)]
    roots += [_rough(mass, length, apart) for length in _LENGTHS]
    roots.append(each_cell(mass))
    return [turned(root, gram)[0] for root in roots]


def smooth_bases(cells: TermCells) -> list[TermBasis]:
    """More kinds of terms of an ordered attribute, for pairs with categories: smooth ones."""
    mass, _, gram, apart = cells
    rough = _ROUGH * _rough(mass, _LENGTHS[0], apart)
    smooth = [mass[:, None] * terms(mass, degree, apart).functions for degree in DEGREES]
    return [turned(np.concatenate([each, rough], axis=1), gram)[0] for each in smooth]


def each_cell(mass: Floats) -> Floats:
    """Functions that raise one cell each, and lower all: shape (cells, cells)."""
    return np.asarray(np.diag(mass) - np.outer(mass, mass))


def turned(root: Floats, gram: Floats) -> tuple[TermBasis, Floats]:
    """Turn functions (cells, k) so that they are orthogonal under a Gram matrix; also the turn."""
    # The eigenvectors of the functions' Gram matrix: in turned functions scores are uncorrelated,
    # and the prior N(0, tau^2) of all coefficients is the same as before
    squares, turns = np.linalg.eigh(root.T @ gram @ root)
    kept = squares > _RANK * squares.max(initial=1e-300)
    return TermBasis(root @ turns[:, kept], squares[kept]), turns[:, kept]


def dyadic(mass: Floats, starts: Items) -> list[Floats]:
    """Functions that move mass between both halves of an interval, for each level of halving."""
    # Relative to the distribution they are 2 p_2 / (p_1 + p_2) in the first half, of mass p_1, and
    # -2 p_1 / (p_1 + p_2) in the second
    middles, result = (starts[1:] + starts[:-1]) / 2, []
    for level in range(LEVELS):
        part = np.minimum((middles * (2 << level) / starts[-1]).astype(np.int64), (2 << level) - 1)
        columns = []
        for node in np.unique(part >> 1):
            first, second = part == 2 * node, part == 2 * node + 1
            both = mass[first].sum(), mass[second].sum()
            # Where a half is empty there is no mass to move
            if min(both) > 0:
                relative = 2 * (both[1] * first - both[0] * second) / sum(both)
                columns.append(mass * relative)
        if columns:
            result.append(np.array(columns).T)
    return result or [np.zeros((len(mass), 0))]


def _rough(mass: Floats, length: float, apart: int) -> Floats:
    """The root of a covariance that falls off with distances of ranks: shape (cells, cells)."""
    near = len(mass) - apart
    rank = (np.cumsum(mass) - mass / 2) / max(float(mass[:near].sum()), _RANK)
    covariance = np.exp(-np.abs(rank[:, None] - rank) / length)
    covariance[near:] = covariance[:, near:] = 0.0
    # Cells apart are correlated with nothing; the diagonal again, as their rows were cleared
    covariance.flat[:: len(mass) + 1] = 1.0
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(each_cell(mass) @ (vectors * np.sqrt(np.maximum(values, 0.0))))


# ------------------------------------------------------------------------------------------------
# What reports tell of local terms: posteriors and evidence of all their coefficients.
#
# For terms D(x, y) = p(x) q(y) sum_ij c_ij w_i(x) v_j(y) of a pair, with c_ij ~ N(0, tau^2), beside
# a table that is known. The scores that it leaves unexplained have the mean I N G D H and the
# covariance I N G x H: with functions orthogonal under G and under H coefficients are told one by
# one, but for what reports on halves tell.


#: tau, each as likely: relative deviations of a density from P.
SCALES = np.geomspace(0.02, 16.0, 12)


def scores_of(unexplained: Floats, both: tuple[TermBasis, TermBasis]) -> Floats:
    """Return the scores of the coefficients of local terms: (of the first, of the second)."""
    left, right = both
    return np.asarray(left.functions.T @ unexplained @ right.functions)


class Shrinkage(NamedTuple):
    """The posterior covariance of the coefficients of a kind of local terms, whatever the scores.

    For each tau of `SCALES`. The precision of the coefficients is diagonal plus the outer product
    that reports on halves add (Sherman and Morrison).
    """

    alone: Floats  # their variances without reports on halves: shape (scales, a, b)
    along: Floats  # these times what reports on halves tell: shape (scales, a, b)
    stretched: Floats  # the factor of halves in the determinant of tau^2 precision: shape (scales,)
    lost: Floats  # the logarithm of that

    @classmethod
    def of(cls, pair: Pair, both: tuple[TermBasis, TermBasis]) -> Shrinkage:
        """The posterior covariance for a kind of terms of a pair."""
        left, right = both
        precision = pair.precision * np.outer(left.told, right.told)
        halves = np.sqrt(pair.halves.precision) * np.outer(
            left.functions.T @ pair.halves.left, right.functions.T @ pair.halves.right
        )
        # The determinant of tau^2 times the precision, entry by entry: the diagonal part of the
        # evidence
        grown = 1 + np.multiply.outer(SCALES**2, precision)
        alone = (SCALES**2)[:, None, None] / grown
        along = alone * halves
        # The matrix determinant lemma for the one rank that halves add: det(D + h h') = det D (1 +
        # h' D^-1 h)
        stretched = 1 + _sums(along, halves)
        return cls(alone, along, stretched, np.log(grown).sum(axis=(1, 2)) + np.log(stretched))

    def evidence(self, scores: Floats) -> Floats:
        """The log evidence beyond that of no terms: shape (scales,)."""
        # Sherman and Morrison: the quadratic form in the covariance is that of its diagonal less
        # one square
        pulled = _sums(self.along, scores) ** 2 / self.stretched
        explained = _sums(self.alone, scores**2)
        return np.asarray(0.5 * (explained - pulled - self.lost))

    def times_covariance(self, tables: Floats) -> Floats:
        """Tables of coefficients times the covariance of these: shape (scales, tables, a b)."""
        flat = tables.reshape(len(tables), self.along[0].size)
        along = self.along.reshape(len(SCALES), 1, flat.shape[1])
        pulled = (along @ flat.T).transpose(0, 2, 1) / self.stretched[:, None, None]
        result = self.alone.reshape(along.shape) * flat
        result -= pulled * along
        return np.asarray(result)

    def posterior(self, scores: Floats) -> tuple[Floats, Floats]:
        """Means and variances of the coefficients: shape (scales, a, b)."""
        # Of a Gaussian posterior the mean is the covariance times the score
        means = self.times_covariance(scores[None]).reshape(self.alone.shape)
        # Of the others halves tell at least nothing
        stretched = self.stretched[:, None, None]
        others = np.maximum(stretched - self.along**2 / self.alone, 1.0)
        return means, self.alone * (others / stretched)


def _sums(tables: Floats, weights: Floats) -> Floats:
    """The sums of the products of each table with the weights: shape (tables,)."""
    return np.asarray(tables.reshape(len(tables), -1) @ weights.ravel())


# ------------------------------------------------------------------------------------------------
# Smooth terms refitted beside local ones: the directions in which they were fitted.
#
# A fit of smooth terms follows part of the noise in their directions, so that residuals have less
# noise than scores: taken for all of it they are evidence against local terms. The coefficients
# theta of the fit are nuisance parameters instead. Around the posterior mode, theta - mode = z and
# those of local terms, c ~ N(0, tau^2), have the quadratic log-posterior
#
#     s'c - (z'z + 2 z'L c + c'(A + tau^-2) c) / 2
#
# in directions z in which the posterior without local terms is N(0, I): L is the information about
# z and c, A that about c. All follows from the smaller problem of z, whose precision is I - L (A +
# tau^-2)^-1 L': means, variances and the evidence for each tau.


# The least information about a direction, in units of the prior precision: below it a fit follows
# little of the noise.
_TOLD = 0.1

# The mean square of relative changes of P above which a change that is linear in z is not to be
# trusted: cells would become negative.
_FAR = 0.25

_EMPTY = 1e-12  # A positive number that keeps quotients of nothing by nothing finite


class Adjustment(NamedTuple):
    """The adjustment of a fit beside a kind of local terms, for each tau."""

    moved: Floats  # the mean of z: shape (scales, directions)
    evidence: Floats  # the term added to the log evidence: shape (scales,)
    covariance: Floats  # of z: shape (scales, directions, directions)
    # The decrease of the coefficients' conditional mean for each unit of z: shape (scales,
    # directions, a b)
    following: Floats

    @property
    def means(self) -> Floats:
        """The terms added to the means of the coefficients: shape (scales, a b)."""
        return np.asarray(-(self.moved[:, None] @ self.following)[:, 0])

    @property
    def variances(self) -> Floats:
        """The terms added to the variances of the coefficients: shape (scales, a b)."""
        return np.asarray(((self.covariance @ self.following) * self.following).sum(axis=1))


class SmoothDirections(NamedTuple):
    """The directions of a fit that reports determine."""

    slopes: Floats  # dP / dz: shape (directions, cells, cells)
    # That about z and each entry of the table: shape (directions, cells, cells)
    information: Floats
    # Shape (directions, directions): z'(distances) z is the mean square of relative changes of P
    distances: Floats

    @classmethod
    def of(cls, pair: Pair, fit: Interaction, scales: Scales) -> SmoothDirections:
        """The directions of a fit."""
        deviations = scales.prior(fit.terms)[0].ravel() ** -0.5
        # In units of the prior deviations information is relative to the prior, and its
        # eigenvectors are directions that are determined one by one
        informations, turns = np.linalg.eigh(deviations[:, None] * fit.information * deviations)
        turns = deviations[:, None] * turns[:, informations > _TOLD]
        psi, phi = (each.functions for each in fit.terms)
        slopes = np.tensordot(turns.T, pair.slopes(psi, phi, fit.joint), axes=1)
        shape, flat = slopes.shape, slopes.reshape(len(slopes), fit.joint.size)
        information = pair.information(slopes).reshape(flat.shape)
        # The prior of the turned coefficients is N(0, I)
        # Whitening: with the factor of I + information the posterior of z is N(0, I), as the
        # module's docstring has it. The information is a product, so the factor exists
        root = cholesky(pair.told_of(slopes), np.ones(len(flat)))
        flat, information = (
            np.asarray(np.linalg.solve(root, table), dtype=np.float64)
            for table in (flat, information)
        )
        distances = (flat / (fit.joint.ravel() + _EMPTY)) @ flat.T
        return cls(flat.reshape(shape), information.reshape(shape), distances)

    def adjusted(
        self, shrinkage: Shrinkage, both: tuple[TermBasis, TermBasis], scores: Floats
    ) -> Adjustment:
        """Return the adjustment of the fit beside a kind of local terms."""
        left, right = both
        lost = left.functions.T @ self.information @ right.functions
        # c is integrated out (Schur complement): z sees I - L C L' with the covariance C of c, and
        # its conditional mean moves by -C L'z
        following = shrinkage.times_covariance(lost)
        precision = np.eye(len(lost)) - following @ lost.reshape(len(lost), scores.size).T
        covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        pulled = following @ scores.ravel()
        moved = -(covariance @ pulled[:, :, None])[:, :, 0]
        gained = -(moved * pulled).sum(axis=1) - np.linalg.slogdet(precision)[1]
        # A change that is linear in z holds for small ones only: beyond, the fit stays as it is for
        # that tau
        near = ((moved @ self.distances) * moved).sum(axis=1) < _FAR
        return Adjustment(
            near[:, None] * moved,
            0.5 * near * gained,
            covariance,
            near[:, None, None] * following,
        )
