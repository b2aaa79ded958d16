"""Many quantiles from a trusted curator, from the cells of one tree, smoothed.

Smoothing is an empirical Bayes estimate of an ordered histogram from a curator's release. The
counts are taken for the sum of an even level, a random walk along the cells (neighbouring cells are
alike) and independent deviations of cells (heaps); the amplitudes of both are those of the largest
marginal likelihood of what was released, whose errors are known. Post-processing: it costs no
privacy. It is biased towards smooth histograms where the release tells little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core.quantiles import quantile
from frequency.exceptions import InvalidValue
from mechdesign import Audit
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Floats, Integers
from mechdesign.base.numbers import Rational, checked_counts, whole
from mechdesign.symbolic.proof_rules import ProcessedProof
from rangeq.central.estimate import CentralEstimate, Errors
from rangeq.central.hierarchy import Hierarchy
from rangeq.central.inputs import checked_quantiles

MOST_BLOCKS = 256
"""Of more cells, blocks of neighbours are smoothed, and each block's change is shared evenly."""

_AMPLITUDES = (0.0, *(4.0**k for k in range(-4, 4)))
"""Mean variances of the random walk, in squares of the even level."""

_DEVIATIONS = (0.0, *(4.0**k for k in range(-3, 5)))
"""Variances of the deviations of cells, likewise."""

LARGEST_TREE = 1 << 20
"""The most values of which a tree is made for quantiles."""


@dataclass(frozen=True)
class TreeQuantiles:
    """Several quantiles of a value, once: those of the smoothed cells of a `Hierarchy`.

    The cells are estimated by empirical Bayes from the release of a tree with 16 children and the
    best budget (`smoothed_counts`): the errors do not grow with the number of quantiles.

    Of 5,000 users over 256 values, at an epsilon of 0.1, the rank errors of nine deciles and of 99
    quantiles were 0.3 to 0.4 % for even values (of the tree alone 0.7 to 0.8 %), 0.3 to 0.6 % for
    binomial, heaped, exponential, bimodal and stepped ones (0.2 to 0.8 %), and those of the tree or
    up to a tenth more where half of the users have one value, and for Zipf's law, most of whose
    users are at the very end (``python benchmarks/central_quantiles.py``).

    Parameters
    ----------
    domain : int
        How many values there may be, 1 to 2^20.
    q : sequence of numbers
        The quantiles asked for, each in [0, 1]; one at least.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of all together, at least 2^-32. Neighbouring data differ by one user.

    Raises
    ------
    ValueError
        A domain, q or epsilon out of range.
    """

    domain: int
    q: tuple[Any, ...]
    epsilon: float | Rational

    def __post_init__(self) -> None:
        domain = whole(self.domain, "domain", 1, LARGEST_TREE, what="a number of values")
        set_fields(self, domain=domain, q=checked_quantiles(self.q))
        _ = self.tree

    @cached_property
    def tree(self) -> Hierarchy:
        """What is released."""
        return Hierarchy(self.domain, self.epsilon, 16, budget="optimal")

    def audit(self) -> Audit:
        """The exact worst likelihood ratio of the released tree, and what is allowed."""
        return self.tree.audit()

    def proof(self) -> ProcessedProof:
        """Why the quantiles are private, for every alpha in (0, 1): because the tree is."""
        return ProcessedProof(
            self.tree.proof(), "only its smoothed cells are used", name=type(self).__name__
        )

    def predicted_error(self) -> float:
        """The root mean square of the rank errors of the tree alone, in users.

        For values that are evenly spread. Those of the smoothed cells are mostly less.
        """
        phi = np.array([float(one) for one in self.q])
        cell = np.minimum((phi * self.domain).astype(np.int64), self.domain - 1)[None]
        nothing, last = np.zeros_like(cell), np.full_like(cell, self.domain - 1)
        errors = self.tree.errors
        below, everything = errors.variance(nothing, cell), errors.variance(nothing, last)
        above = np.where(cell < last, errors.variance(np.minimum(cell + 1, last), last), 0.0)[0]
        shared = (everything - below - above) / 2
        lead = (1 - phi) ** 2 * below + phi**2 * above - 2 * phi * (1 - phi) * shared
        return float(np.sqrt(lead.mean()))

    def release(
        self, values: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> npt.NDArray[np.int64]:
        """The quantiles of these users, once: as `QuantileRelease.release`.

        Parameters
        ----------
        values : array_like
            Shape (users,): integers 0 .. domain-1; there may be none.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness, or a generator for results that can be
            repeated.

        Returns
        -------
        numpy.ndarray
            Shape (quantiles,), in the order of ``q``: values, which ascend with the quantiles.

        Raises
        ------
        InvalidValue
            The first bad value; nothing has been drawn.
        """
        items = checked_counts(values, self.domain - 1, InvalidValue).reshape(-1)
        estimate = self.tree.release(np.bincount(items, minlength=self.domain), rng)
        prefixes = np.cumsum(smoothed_counts(estimate))
        cdf = prefixes / max(float(prefixes[-1]), 1.0)
        found: npt.NDArray[np.int64] = quantile(cdf, np.array([float(one) for one in self.q]))
        return found


def smoothed_counts(estimate: CentralEstimate) -> Floats:
    """The posterior mean of the cells of one attribute.

    Shapes: returns (cells,).
    """
    cells = estimate.mechanism.sizes[0]
    width = -(-cells // MOST_BLOCKS)
    first = np.arange(0, cells, width, dtype=np.int64)
    last = np.minimum(first + width, cells) - 1
    sizes = last - first + 1.0
    found = estimate.box_sums(first[None], last[None])
    level = max(found.sum(), 1.0) * sizes / cells
    covariance = covariances(estimate.mechanism.errors, first, last)
    walk, rest = _walk(len(first)), found - level
    best, posterior = -math.inf, np.zeros_like(rest)
    for amplitude, deviation in product(_AMPLITUDES, _DEVIATIONS):
        prior = np.outer(level, level) * (amplitude * walk)
        prior[np.diag_indices_from(prior)] += deviation * level**2
        total = prior + covariance
        # Where noise is nothing a walk alone is singular
        total[np.diag_indices_from(total)] += 1e-9 * total.diagonal().max()
        factor, _ = scipy.linalg.cho_factor(total, lower=True)
        explained = scipy.linalg.solve_triangular(factor, rest, lower=True)
        likelihood = -0.5 * explained @ explained - np.log(np.diag(factor)).sum()
        if likelihood > best:
            best = likelihood
            posterior = prior @ scipy.linalg.solve_triangular(factor.T, explained, lower=False)
    change = (level + posterior - found) / sizes
    result: Floats = estimate.counts + np.repeat(change, sizes.astype(np.int64))
    return result


def covariances(errors: Errors, first: Integers, last: Integers) -> Floats:
    """The covariances of the sums of neighbouring blocks of cells, from variances of ranges.

    Shapes: `first` and `last` (blocks,); returns (blocks, blocks).
    """
    blocks = len(first)
    low, high = np.triu_indices(blocks)
    # Of the blocks low .. high - 1, by how many; none has no variance
    ranges = np.zeros((blocks + 1, blocks + 1))
    ranges[low, high + 1] = errors.variance(first[None, low], last[None, high])
    inner = np.zeros((blocks, blocks))
    inner[:-1, 1:] = ranges[1:-1, 1:-1]
    outer = ranges[:-1, 1:] - ranges[:-1, :-1] - ranges[1:, 1:] + inner
    result = np.triu(outer, 1) / 2
    result += result.T
    result[np.diag_indices(blocks)] = np.diag(ranges[:-1, 1:])
    return result


def _walk(count: int) -> Floats:
    """The covariances of a random walk less its mean, of mean variance 1."""
    place = np.arange(count, dtype=np.float64)
    walk = np.minimum(place[:, None], place)
    walk -= walk.mean(axis=0) + walk.mean(axis=1)[:, None] - walk.mean()
    result: Floats = walk * (count / max(float(np.trace(walk)), 1.0))
    return result
