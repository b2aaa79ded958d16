"""NodeLaw: the errors of an oracle's estimates of nodes, where all nodes are alike; ContrastLaw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from frequency.core.oracle import Oracle
from mechdesign.base.linear_algebra import Floats


class NodeLaw(NamedTuple):
    """The variances and covariances of an oracle's estimates, from one user with a given item.

    Exact for the oracles that treat all items alike (GRR, SUE, OUE, SubsetSelection and HRR). Over
    finite fields (OLH, ProjectiveGeometry) pairs of items differ a little, and the covariances are
    the means over the ways to number the items.

    Attributes
    ----------
    other, own : float
        The variance of another item's estimate, and of that of the user's own item.
    apart, near : float
        The covariance of the estimates of two other items, and of the own item with another.
    """

    other: float
    own: float
    apart: float
    near: float

    @classmethod
    def of(cls, oracle: Oracle) -> NodeLaw:
        """The law of an oracle of at least 2 items, from the variances that it states."""
        d, other, own = oracle.domain, oracle.variance(1, 0.0), oracle.variance(1, 1.0)
        near = (other + own - oracle.difference_variance(1, 2)) / 2
        if d == 2:
            return cls(other, own, near, near)  # no two items are both other ones
        even = other + (own - other) / d - oracle.difference_variance(1) / 2
        return cls(other, own, (even - 2 * near / d) / (1 - 2 / d), near)

    @property
    def contrast(self) -> float:
        """What each squared weight adds to `drawn`, for weights of nodes that sum to 0."""
        return self.other - self.apart

    @property
    def held(self) -> float:
        """What the squared weight of the user's own node adds to that besides."""
        return self.own - self.other - 2 * (self.near - self.apart) + 1

    def drawn(self, number: Any, fraction: Any) -> Any:
        """The variance of the sum over some nodes' estimates, from one user drawn at random.

        Parameters
        ----------
        number : int or numpy.ndarray
            How many nodes there are in the sum.
        fraction : float or numpy.ndarray
            The fraction of the users that are in them, 0 to 1.

        Returns
        -------
        float or numpy.ndarray
            Squared fractions of the population, of the common shape.
        """
        m, f = number, fraction
        own = m * self.other + (self.own - self.other) * f
        pairs = m * (m - 1) * self.apart + 2 * (m - 1) * f * (self.near - self.apart)
        return own + pairs + f * (1 - f)

    def moments(self, width: float) -> Floats:
        """`drawn` for nodes that hold the fraction ``width`` each: the factors of m and of m^2."""
        one, two = self.drawn(1, width), self.drawn(2, 2 * width)
        return np.array([2 * one - two / 2, two / 2 - one])


_LEAST = 1e-9
"""Less noise than this of one report counts as this: that of an epsilon of 20 is about as much."""


class ContrastLaw(NamedTuple):
    """The variance of weights w of sum 0 of an oracle's estimates, from a user drawn at random.

    It is noise w'w + held sum w^2 f - (w'f)^2, for the true frequencies f.

    Attributes
    ----------
    noise : float
        Above 0. Of oracles that do not treat all items alike that of equal frequencies.
    held : float
        At least 0; 0 for those.
    """

    noise: float
    held: float

    @classmethod
    def of(cls, oracle: Oracle) -> ContrastLaw:
        """The law of an oracle, from the variances that it states; of one item any will do."""
        if oracle.domain < 2:
            return cls(1.0, 0.0)
        if oracle.symmetric:
            law = NodeLaw.of(oracle)
            return cls(max(law.contrast, _LEAST), max(law.held, 0.0))
        return cls(max(oracle.difference_variance(1) / 2 + 1 / oracle.domain, _LEAST), 0.0)

    def information(self, items: int) -> float:
        """What a report tells of an orthonormal function of so many items, equally frequent."""
        return 1 / (self.noise * items + self.held)
