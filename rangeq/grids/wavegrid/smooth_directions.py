"""Smooth terms refitted beside local ones: the directions in which they were fitted.

A fit of smooth terms follows part of the noise in their directions, so that residuals have less
noise than scores: taken for all of it they are evidence against local terms. The coefficients theta
of the fit are nuisance parameters instead. Around the posterior mode, theta - mode = z and those of
local terms, c ~ N(0, tau^2), have the quadratic log-posterior

    s'c - (z'z + 2 z'L c + c'(A + tau^-2) c) / 2

in directions z in which the posterior without local terms is N(0, I): L is the information about z
and c, A that about c. All follows from the smaller problem of z, whose precision is
I - L (A + tau^-2)^-1 L': means, variances and the evidence for each tau.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mechdesign.base.linear_algebra import Floats, cholesky
from rangeq.grids.wavegrid.interactions import Interaction, Pair, Scales
from rangeq.grids.wavegrid.shrinkage import Shrinkage, TermBasis

_TOLD = 0.1
"""The least information about a direction, in units of the prior precision: below it a fit follows
little of the noise.
"""

_FAR = 0.25
"""The mean square of relative changes of P above which a change that is linear in z is not to be
trusted: cells would become negative.
"""

_EMPTY = 1e-12
"""A positive number that keeps quotients of nothing by nothing finite."""


class Adjustment(NamedTuple):
    """The adjustment of a fit beside a kind of local terms, for each tau.

    Attributes
    ----------
    moved : numpy.ndarray of float64
        The mean of z: shape (scales, directions).
    evidence : numpy.ndarray of float64
        The term added to the log evidence: shape (scales,).
    covariance : numpy.ndarray of float64
        Of z: shape (scales, directions, directions).
    following : numpy.ndarray of float64
        The decrease of the coefficients' conditional mean for each unit of z: shape (scales,
        directions, a b).
    """

    moved: Floats
    evidence: Floats
    covariance: Floats
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
    """The directions of a fit that reports determine.

    Attributes
    ----------
    slopes : numpy.ndarray of float64
        dP / dz: shape (directions, cells, cells).
    information : numpy.ndarray of float64
        That about z and each entry of the table: shape (directions, cells, cells).
    distances : numpy.ndarray of float64
        Shape (directions, directions): z'(distances) z is the mean square of relative changes of P.
    """

    slopes: Floats
    information: Floats
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
        """The fit beside a kind of local terms.

        Shapes: `scores` (a, b).
        """
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
