"""An empirical Bayes estimate of an ordered histogram from a curator's release.

The counts are taken for the sum of an even level, a random walk along the cells (neighbouring cells
are alike) and independent deviations of cells (heaps); the amplitudes of both are those of the
largest marginal likelihood of what was released, whose errors are known. Post-processing: it costs
no privacy. It is biased towards smooth histograms where the release tells little.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import scipy

from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.central.estimate import CentralEstimate, Errors

MOST_BLOCKS = 256
"""Of more cells, blocks of neighbours are smoothed, and each block's change is shared evenly."""

_AMPLITUDES = (0.0, *(4.0**k for k in range(-4, 4)))
"""Mean variances of the random walk, in squares of the even level."""

_DEVIATIONS = (0.0, *(4.0**k for k in range(-3, 5)))
"""Variances of the deviations of cells, likewise."""


def smoothed_counts(estimate: CentralEstimate) -> Floats:
    """The posterior mean of the cells of one attribute.

    The result has shape (cells,).
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
