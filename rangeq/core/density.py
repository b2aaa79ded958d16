"""The distribution of an attribute: Gaussian processes for its logarithm, averaged by evidence.

Scores T = sum of r f over reports have the mean N G p and the covariance (N / I) G, for functions f
with E f f' = G of which each report has an unbiased score r of variance 1 / I. So log L(p) = I (T'p
- N p'G p / 2), for p = softmax(h) with h a Gaussian process (Leonard 1978; Riihimaki and Vehtari
2014). One kernel would have to be chosen: instead the modes under many are averaged with their
evidence by Laplace's approximation as weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, posterior_root


class Kernel(NamedTuple):
    """Prior deviations of the parts of the logarithm of a density; half of the domain is 1 long."""

    trend: float  # of a line and a parabola, alone a normal density that the domain cuts off
    height: float  # of a function with correlations exp(-(distance / length)^2 / 2), a smooth one
    length: float
    points: float  # of every cell by itself
    ends: float = 0.0  # of the first cell and the last by themselves: they hold what was clipped
    # The distance of cells: 0 as they lie; 1 by the logarithms of their distances from the first
    # value, -1 from the last. A trend is then a log-normal density.
    logarithmic: int = 0
    # Correlations exp(-distance / length) instead: of a random walk, which may rise at once
    walk: bool = False
    # How many cells apart those are that are higher together, as people round to them; 0: none are
    heaps: int = 0

    @property
    def largest(self) -> float:
        """The largest of the deviations."""
        return max(self.trend, self.height, self.points, self.ends)


#: Densities that vary by factors of e^0.5 or e^2, with 17, 7 or 2.5 lengths along the domain: mixed
#: they do for those between.
_HEIGHTS, _LENGTHS = (0.5, 2.0), (0.12, 0.3, 0.8)

# Wide enough for a normal density whose deviation is a tenth of the domain, without which such data
# would need great heights.
_TREND = 10.0

# Heights of kernels for attributes that are uniform, or nearly so: with these the noise of others
# is not taken for shape.
_FLAT = (0.02, 0.1)

# The deviation of the ends: of 64 cells an end holds a tenth of all users if it is e^2 times as
# high as the others.
_ENDS = 2.0

# The part of the domain next to an end within which logarithms hardly tell values apart.
_NEAREST = 1 / 64

#: The kernels that are averaged: none at all, smooth ones with and without a trend, nearly flat
#: ones, and smooth ones with heavy points or heavy ends, the last two of logarithmic distances:
#: incomes and waiting times, which rise to their mode within a twentieth of the domain, would be
#: smeared otherwise.
KERNELS = (
    Kernel(0.0, 0.0, 1.0, 0.0),
    *(
        Kernel(trend, height, length, 0.0)
        for trend in (0.0, _TREND)
        for height in _HEIGHTS
        for length in _LENGTHS
    ),
    *(Kernel(0.0, height, _LENGTHS[-1], 0.0) for height in _FLAT),
    *(Kernel(0.0, height, _LENGTHS[1], points) for height in _HEIGHTS for points in _HEIGHTS),
    Kernel(0.0, _HEIGHTS[0], _LENGTHS[-1], 0.0, _ENDS),
    *(Kernel(_TREND, _HEIGHTS[0], _LENGTHS[1], 0.0, _ENDS, near) for near in (0, 1, -1)),
)

# Prior deviations of the logarithm of heaps, of all together and of each by itself: more people
# round to tens than to fives.
_HEAPED, _EACH = 2.0, 0.7

#: Those for attributes of many values: the same, and with heaps at multiples of 5, 10 or 12, as
#: people round.
WITH_HEAPS = (
    *KERNELS,
    *(Kernel(_TREND, _HEIGHTS[0], _LENGTHS[1], 0.0, heaps=period) for period in (5, 10, 12)),
)

#: Those for tables that a curator counted: the same, and random walks, as of steps every smooth
#: density has too much between two that are level.
WITH_STEPS = (
    *WITH_HEAPS,
    *(Kernel(0.0, height, _LENGTHS[1], 0.0, walk=True) for height in _HEIGHTS),
)

#: The kernels averaged for categories, none of which are neighbours: each by itself, all alike.
CATEGORIES = tuple(Kernel(0.0, 0.0, 1.0, points) for points in (0.0, 0.1, 0.3, 1.0, 2.0, 4.0))

#: The kernels averaged for few cells, all alike: days of the week, answers on a scale, some bins.
#: These are rarely even to the last, and seldom smooth: one between two others would be smeared.
FEW = (
    Kernel(0.0, 0.0, 1.0, 0.04),
    *(
        Kernel(trend, height, 0.5, points)
        for trend in (0.0, 3.0)
        for height in (0.0, 0.5, 1.5)
        for points in (0.15, 0.5)
    ),
    *(Kernel(0.0, 0.0, 1.0, points) for points in (1.5, 4.0)),
)

# The prior probability that all values are equally frequent, where that is among the kernels.
_EVEN = 0.5

_TEMPER = 0.4  # the power of the evidence that weights smooth kernels, but for flat ones

#: The number of data sets that prior probabilities count as, and steps of adapting them.
STRENGTH, _TURNS = 2.0, 20

#: Prior deviation of the logarithm of a cell that is apart, and the share of all of them before
#: anything is known, at least: from that of any other value, where there are 200, a few per cent of
#: the users would be as far as none at all.
_APART, _APART_SHARE = 2.0, 0.1

_RANK = 1e-5  # directions of less than this part of the largest prior variance are left out

#: The most steps of Gauss-Newton, and the gain of the log-posterior that ends them.
_STEPS, _GAIN = 60, 1e-6

# A step that gains nothing is shortened by this factor, at most so many times.
_SHORTER, _TRIES = 0.3, 12

_NEGLIGIBLE = 1e-3  # kernels of less weight are left out of the covariance


class Density(NamedTuple):
    """The posterior of the frequencies of cells."""

    frequencies: Floats  # shape (cells,): the mean
    covariance: Floats  # shape (cells, cells)


class Told(NamedTuple):
    """The likelihood of an attribute: exp(scores'p - p' precision p / 2)."""

    scores: Floats  # I T: shape (cells,)
    precision: Floats  # I N G: shape (cells, cells)
    # The numbers of values of the cells: without data all that are near others are equally frequent
    widths: Floats
    apart: int = 0  # how many of the last cells are no neighbours of any other

    @property
    def expected(self) -> Floats:
        """The frequencies without data: shape (cells,), of sum 1."""
        # `near` and `apart` are views: scaling them scales the shares
        shares = self.widths / self.widths.sum()
        if self.apart:
            near, apart = shares[: -self.apart], shares[-self.apart :]
            apart *= max(_APART_SHARE / apart.sum(), 1.0)
            near *= (1 - apart.sum()) / near.sum()
        return np.asarray(shares)


def posterior_densities(
    told: Sequence[Told], kernels: tuple[Kernel, ...] = KERNELS
) -> list[Density]:
    """Return posteriors over cells; kernels' probabilities are learnt from all attributes."""
    modes = [_modes(likelihood, kernels) for likelihood in told]
    if not modes:
        return []
    # Where the first kernel has points none is exactly even, and all have the same probability
    even = 1 / len(kernels) if kernels[0].points else _EVEN
    prior = np.full(len(kernels), (1 - even) / (len(kernels) - 1))
    prior[0] = even
    evidence = np.array([[mode.evidence for mode in each] for each in modes])
    smooth = np.array(
        [not (kernel.points or kernel.heaps) and kernel.largest > max(_FLAT) for kernel in kernels]
    )
    weights = adapted(tempered(evidence, prior, smooth), prior)
    return [_mixed(each, shares) for each, shares in zip(modes, weights, strict=True)]


def _modes(told: Told, kernels: tuple[Kernel, ...]) -> list[_Mode]:
    """Return the modes under all kernels, each sought from 0 or from that of the one it extends."""
    # That is the first of the same smooth functions, which has nothing else
    even = np.log(told.expected)
    modes: list[_Mode] = []
    plain: list[_Mode] = []
    first: dict[Kernel, Floats] = {}
    for kernel in kernels:
        smooth = kernel._replace(trend=0.0, points=0.0, ends=0.0, heaps=0)
        heap, prior = _first_heap(told, kernel, plain)
        root = _root(len(told.scores), kernel, told.apart, heap)
        mode = _mode(root, told.scores, told.precision, even, first.get(smooth))
        if not kernel.points:
            plain.append(mode)
        modes.append(mode._replace(evidence=mode.evidence + prior))
        # The mode of the plain smooth kernel is nearly that of all that add points or ends to it: a
        # start there saves most steps
        first.setdefault(smooth, modes[-1].logarithms)
    return modes


def _first_heap(told: Told, kernel: Kernel, plain: Sequence[_Mode]) -> tuple[int | None, float]:
    """The first cell that is a heap, and the logarithm of its prior probability among others.

    That is where most is left of what densities without points explain.
    """
    near = len(told.scores) - told.apart
    if not kernel.heaps or near < 3 * kernel.heaps:
        return None, 0.0
    best = max(plain, key=lambda mode: mode.evidence).frequencies
    left = best * (told.scores - told.precision @ best)
    sums = [float(left[place : near : kernel.heaps].sum()) for place in range(kernel.heaps)]
    return int(np.argmax(sums)), -math.log(kernel.heaps)


def tempered(evidence: Floats, prior: Floats, some: npt.NDArray[np.bool_]) -> Floats:
    """Temper the evidence of models some of which are all a little wrong: (data sets, models)."""
    # Where no model is true, the one that is nearest overall gets a weight of nearly 1, though
    # others are nearer in parts: between two that extrapolate a tail differently, weights are
    # decided by the fit to the bulk. So such models are weighted by a power of their evidence
    # (Gruenwald and van Ommen 2017), and all together have as much as before.
    if not some.any():
        return evidence
    given, logarithms = evidence[:, some], np.log(prior[some])
    powers = _TEMPER * given
    # Renormalised so that all tempered models together keep their evidence against the others: the
    # power only redistributes it among them
    total = np.logaddexp.reduce(given + logarithms, axis=1) - np.logaddexp.reduce(
        powers + logarithms, axis=1
    )
    result = evidence.copy()
    result[:, some] = powers + total[:, None]
    return result


def adapted(evidence: Floats, prior: Floats, strength: float = STRENGTH) -> Floats:
    """Return posterior probabilities, (data sets, models), of models which share prior ones.

    These are the mode of a Dirichlet distribution about the ones given, by the EM algorithm.
    """
    shares = prior
    for _ in range(_TURNS):
        joint = evidence + np.log(shares)
        # Log-sum-exp: evidence differs by hundreds
        weights: Floats = np.exp(joint - joint.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        # The M step with a Dirichlet prior worth `strength` data sets; without it a model could
        # reach the share 0 and never come back
        shares = (strength * prior + weights.sum(axis=0)) / (strength + len(evidence))
    return weights


def _mixed(modes: Sequence[_Mode], weights: Floats) -> Density:
    mean: Floats = weights @ np.array([mode.frequencies for mode in modes])
    mean /= mean.sum()
    covariance = np.zeros((len(mean), len(mean)))
    for weight, mode in zip(weights, modes, strict=True):
        # Law of total covariance: the mean of the covariances and the covariance of the means. A
        # covariance is a callable, as that of most kernels is never asked for
        if weight > _NEGLIGIBLE:
            apart = mode.frequencies - mean
            covariance += weight * (mode.covariance() + np.outer(apart, apart))
    return Density(mean, covariance)


class _Mode(NamedTuple):
    frequencies: Floats
    logarithms: Floats  # root w
    evidence: float
    covariance: Callable[[], Floats]


def _mode(
    root: Floats, scores: Floats, precision: Floats, even: Floats, near: Floats | None = None
) -> _Mode:
    """The mode over w of scores'p - p' precision p / 2 - w'w / 2, p = softmax(even + root w)."""
    # Sought from where root w is nearest to `near`, if that is better than 0

    def at(w: Floats) -> tuple[float, Floats]:
        h = even + root @ w
        # The maximum off: softmax does not change, and the exponential does not overflow
        p = np.exp(h - h.max())
        p /= p.sum()
        return float(scores @ p - 0.5 * p @ precision @ p - 0.5 * w @ w), p

    w = np.zeros(root.shape[1])
    value, p = at(w)
    # The even kernel has no parameters: its evidence is its likelihood
    if not len(w):
        return _Mode(p, np.zeros(len(p)), value, lambda: np.zeros((len(p), len(p))))
    if near is not None:
        other = root.T @ near / (root**2).sum(axis=0)  # columns of roots are orthogonal
        elsewhere, q = at(other)
        w, value, p = (other, elsewhere, q) if elsewhere > value else (w, value, p)
    # Steps are shortened until they gain, and not damped by the diagonal (Marquardt): where
    # eigenvalues of a kernel are equal, its eigenvectors are others on another processor, and so
    # would be the path, and where it ends
    gain, length = math.inf, 1.0
    for turn in range(_STEPS + 1):
        # dp / dw = (diag(p) - p p') R
        slopes = p[:, None] * root - np.outer(p, p @ root)
        told = slopes.T @ precision @ slopes
        if gain < _GAIN or turn == _STEPS:
            break
        # Gauss-Newton: second derivatives of p are left out, so the Hessian is at least the
        # identity of the prior, and the step exists
        gradient = slopes.T @ (scores - precision @ p) - w
        step, gain = np.linalg.solve(told + np.eye(len(w)), gradient), 0.0
        for _ in range(_TRIES):
            new, moved = at(w + length * step)
            if new > value:
                w, gain, value, p = w + length * step, new - value, new, moved
                length = min(1.0, length / _SHORTER)
                break
            length *= _SHORTER
    # Laplace: log-posterior at the mode less half of log det(I + S'QS); the factors 2 pi cancel, as
    # the prior is N(0, I)
    half, volume = posterior_root(slopes, told)
    return _Mode(p, root @ w, value - 0.5 * volume, lambda: np.asarray(half @ half.T))


@lru_cache(maxsize=512)  # all kernels of some 16 sizes
def _root(cells: int, kernel: Kernel, apart: int = 0, heap: int | None = None) -> Floats:
    """Return a matrix R for a kernel, R R' its covariance but for what scales densities.

    `heap` is the first cell of its heaps; None: there are none.
    """
    near = cells - apart
    x = _positions(near, kernel.logarithmic)
    variances = np.repeat((kernel.points**2, _APART**2), (near, apart))
    variances[[0, near - 1]] += kernel.ends**2
    distances = np.abs(x[:, None] - x) / kernel.length
    matrix = np.zeros((cells, cells))
    matrix[:near, :near] = kernel.height**2 * np.exp(
        -distances if kernel.walk else -0.5 * distances**2
    ) + kernel.trend**2 * (np.outer(x, x) + np.outer(x**2, x**2))
    if heap is not None:
        places = np.arange(heap, near, kernel.heaps)
        matrix[np.ix_(places, places)] += _HEAPED**2
        variances[places] += _EACH**2
    matrix += np.diag(variances)
    # A constant in the logarithm does not change softmax: the covariance is centred on both sides,
    # so that no direction is spent on it
    matrix += matrix.mean() - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(matrix)
    # Smooth kernels have few directions of note: the mode is sought over these, not over all cells
    kept = values > max(_RANK * values[-1], 1e-12)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _positions(cells: int, logarithmic: int) -> Floats:
    """The places of the middles of cells, the ends of the domain at -1 and 1: see `Kernel`."""
    x = (np.arange(cells) + 0.5) / cells
    if logarithmic < 0:
        return -_positions(cells, -logarithmic)[::-1]
    if logarithmic:
        x = np.log1p(x / _NEAREST) / math.log1p(1 / _NEAREST)
    return np.asarray(2 * x - 1)
