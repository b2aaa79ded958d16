"""The smoothing of a distribution on a circular domain, as far as its estimate is smooth.

The estimate is y = f + e, with noise e that is stationary on the circular domain: its Fourier
coefficients are independent, with known variances. The prior takes f as even on the domain, plus a
stationary part, whose spectrum is a mixture of smoothing splines of all strengths and of what is
heaped at multiples of some period, plus shapes of unknown heights: jumps and heaps at the ends of
the domain, and the spikes and steps that stand out from all that. Periods, spikes and steps are
found by forward selection (sparse Bayesian learning: M. E. Tipping and A. C. Faul, *Fast Marginal
Likelihood Maximisation for Sparse Bayesian Models*, AISTATS 2003). Strengths and heights are those
of the largest marginal likelihood: nothing is tuned by hand. All matrices are diagonal in the
Fourier basis up to the rank of the shapes.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.postprocess import norm_sub
from mechdesign.base import Floats, posterior_root
from rangeq.local.circle import Transform, coordinates, items_of, of_transform, transform_of

# The exponent of the parts of the prior, of spectra 1 / (1 + (k / corner)^4): cubic smoothing
# splines, beyond their corner.
_STEEP = 4.0

#: The search for strengths: the most steps, those while there is more to come, and the gain of
#: log-likelihood by an e-fold of any of them that ends it.
_STEPS, _BRIEFLY, _SLOPE = 400, 15, 5e-3

_LEAST, _MOST = 1e-30, 1e30  #: The bounds of strengths and heights.

_NOTHING = 1e-6  # the height of a shape, in terms of its errors, that counts as none

# The expected number of periods, and of spikes and steps, with a variance of their own. They get it
# where evidence outweighs this.
_STRAY = 0.3

# The periods of heaps: data are rounded to products of 2, 3 and 5, or have a cycle, such as a week.
_PERIODS = np.array([p for p in range(2, 1001) if p <= 16 or 30**9 % p == 0])

_LIKELY = 12  # the number of periods tried, of those that the slope of the likelihood favours

#: The number of spikes and steps added between two searches, or as many as there are already; and
#: the most of them.
_TOGETHER, _MOST_SHAPES = 8, 96

_APART = 0.2  # the correlation below which two shapes may be added together

#: The number of their own deviations by which strengths are raised in stated variances, and that of
#: the white part: the likelihood is nearly flat about few of them.
_ALLOWANCE, _OF_WHITE = 0.4, 1.0

# The largest error of prefixes of the most probable distribution, in deviations of a range.
_PRECISION = 0.02


class Smoothing:
    """The posterior of a distribution on a circular domain.

    `transform` is `numpy.fft.rfft` of y, an unbiased estimate that sums to 1, and `information` the
    precision of each frequency, in (items)^-2: shapes (size // 2 + 1,). Users may hold the first
    `domain` of the items; the last `apart` of these are no neighbours of the others, as that of
    missing values, and not smoothed. Each item has the variance `white` at least in the prior: of
    users drawn from a smooth population. `converged` is whether the search for strengths and
    heights found them.
    """

    def __init__(
        self,
        transform: Transform,
        information: Floats,
        size: int,
        domain: int,
        white: float = 0.0,
        apart: int = 0,
    ) -> None:
        self._size, self._domain = size, domain
        ordered = domain - apart
        self._even = coordinates(np.where(np.arange(size) < ordered, 1 / ordered, 0.0))
        self._y = of_transform(transform, size) - self._even
        # How many coordinates of the circular domain belong to each frequency
        self._times = np.full(size // 2, 2.0)
        if size % 2 == 0:
            self._times[-1] = 1.0
        self._noise = 1 / np.maximum(information[1:], 1e-9 * information[1:].max())
        self._spectra, ends, ties = _parts(size, ordered)
        each_apart = coordinates(np.arange(ordered, domain)[:, None] == np.arange(size))
        self._shapes = np.vstack([each_apart, ends])
        self._ties = scipy.linalg.block_diag(np.zeros((apart, 0)), ties)
        # All that is known of a fraction apart is that it is not above 1.
        self._least = np.repeat([1.0, 0.0], [apart, len(ends)])
        # Strengths that are off: those of one part an octave, of the white one, and of periods
        self._uncertain = [*range(1, len(self._spectra) - 1, 2), len(self._spectra) - 1]
        self._white = white
        # Start: the power of y shared by all parts alike, and ends of a tenth of that of its lowest
        # frequencies. The likelihood has several maxima; parts that are too strong can be switched
        # off, while near 0 the slope in the logarithm vanishes, and none comes back
        mean = float(self._y @ self._y) / (size - 1) / len(self._spectra)
        self._strengths = np.full(len(self._spectra), max(mean, _LEAST))
        power = float(self._y[:8] @ self._y[:8])
        self._heights = np.maximum(0.1 * power / (ends[:, :8] ** 2).sum(axis=1), _LEAST)
        self._search(_STEPS)
        # Forward selection: one period at a time, as each explains part of what others would
        while self._new_period():
            self._search(_BRIEFLY)
        self._drop_shapes()
        few = len(self._shapes)
        while self._new_shapes(max(_TOGETHER, len(self._shapes) - few), few + _MOST_SHAPES):
            self._search(_BRIEFLY)
        self.converged = self._search(_STEPS)
        self._prior = self._strengths @ self._spectra + self._white
        self._total, _, (self._root, _), height, rest = self._solved(self._prior, self._variances)
        # Wiener's filter beside the shapes: prior over prior plus noise, frequency by frequency
        gain = np.repeat(self._prior / self._total, 2)
        self._mean = self._even + height @ self._shapes + gain * rest

    @property
    def _variances(self) -> Floats:
        """The variances of the shapes' heights."""
        return np.asarray(self._least + self._ties @ self._heights)

    def _solved(
        self, prior: Floats, heights: Floats
    ) -> tuple[Floats, Floats, tuple[Floats, float], Floats, Floats]:
        """Solve the model for these variances of frequencies and shapes.

        Return the variances of y's frequencies but for the shapes; the shapes' precision from y,
        `posterior_root` and posterior mean; and what y has besides them.
        """
        total, root = prior + self._noise, np.sqrt(heights)
        # Every frequency has a cosine and a sine, of the same variance
        each = np.repeat(np.sqrt(total), 2)
        scaled = self._shapes / each
        precision = scaled @ scaled.T
        # Shapes as a small regression beside a diagonal covariance (Woodbury): nothing is of
        # coordinates by coordinates
        half, volume = posterior_root(np.diag(root), root[:, None] * precision * root)
        height = half @ (half.T @ (scaled @ (self._y / each)))
        return total, precision, (half, volume), height, self._y - height @ self._shapes

    def _loss(self, logarithms: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood of strengths and heights, and its derivatives."""
        strengths, heights = np.split(np.exp(logarithms), [len(self._strengths)])
        prior, variances = (
            strengths @ self._spectra + self._white,
            self._least + self._ties @ heights,
        )
        total, precision, (half, volume), height, rest = self._solved(prior, variances)
        misfit = _pairs(self._y * rest) / total
        # log det V by the matrix determinant lemma: that of the diagonal and `volume`; y'V^-1 y is
        # the product of y with what the posterior mean of the shapes leaves of it
        value = 0.5 * (float(self._times @ np.log(total) + misfit.sum()) + volume)
        # V^-1 y is rest / total; with b the mean of the shapes J and H their prior, J' V^-1 y is
        # H^-1 b, and J' V^-1 J is P C H^-1.
        # The diagonal of V^-1 is 1 / total less the shapes' part, by Woodbury
        of_shapes = _pairs(((half.T @ self._shapes) ** 2).sum(axis=0))
        excess = self._times / total - (of_shapes + _pairs(rest**2)) / total**2
        traces = ((precision @ half) * half).sum(axis=1)
        slope = (traces - height**2 / variances) / variances
        slopes = [strengths * (self._spectra @ excess), heights * (slope @ self._ties)]
        return value, 0.5 * np.concatenate(slopes)

    def _search(self, steps: int) -> bool:
        """Maximise the likelihood over strengths and heights; return whether that has converged."""
        # Logarithms keep variances positive, and make steps relative: they range over 60 orders of
        # magnitude
        start = np.log(np.maximum(np.concatenate([self._strengths, self._heights]), _LEAST))
        optimum = scipy.optimize.minimize(
            self._loss,
            start,
            method="L-BFGS-B",
            jac=True,
            bounds=scipy.optimize.Bounds(np.log(_LEAST), np.log(_MOST)),
            options={"maxiter": steps, "maxcor": 20, "gtol": _SLOPE, "ftol": 1e-10},
        )
        self._strengths, self._heights = np.split(np.exp(optimum.x), [len(self._strengths)])
        return bool(optimum.success)

    def _new_period(self) -> bool:
        """Add the spectrum of a period that data are heaped at; return whether there was one."""
        prior = self._strengths @ self._spectra + self._white
        total, _, _, _, rest = self._solved(prior, self._variances)
        # Observed over expected power: a score test for more variance, with Fisher's information as
        # its scale
        ratio = _pairs(rest**2) / self._times / total
        slope, known = self._times * (ratio - 1) / total, self._times / total**2
        ranked = []
        for period in _PERIODS[self._size / 4 >= _PERIODS]:
            spectra = _periodic(self._size, period)
            scores = spectra @ slope / np.sqrt(spectra**2 @ known)
            ranked += [(score, period, which) for which, score in enumerate(scores)]
        best, most = None, np.log(max(len(ranked), 1) / _STRAY)
        for _, period, which in sorted(ranked, reverse=True)[:_LIKELY]:
            spectrum = _periodic(self._size, period)[which]
            # The likelihood along one strength is not concave: a grid, and a search from the best
            # of it later
            tried = np.geomspace(0.1, 1e6, 36) / np.sqrt(spectrum**2 @ known)
            more = tried[:, None] * spectrum / total
            gain = 0.5 * (ratio * more / (1 + more) - np.log1p(more)) @ self._times
            if gain.max() > most:
                best, most = (spectrum, tried[gain.argmax()]), gain.max()
        if best is None:
            return False
        self._uncertain.append(len(self._spectra))
        self._spectra = np.vstack([self._spectra, best[0]])
        self._strengths = np.append(self._strengths, best[1])
        return True

    def _drop_shapes(self) -> None:
        """Keep the shapes that turned out to have a height."""
        prior = self._strengths @ self._spectra + self._white
        # A height's variance times its precision: below _NOTHING the shape changes no estimate
        seen = (self._shapes**2 / np.repeat(prior + self._noise, 2)).sum(axis=1)
        some = self._variances * seen > _NOTHING
        self._shapes, self._least, self._ties = (
            every[some] for every in (self._shapes, self._least, self._ties)
        )
        used = self._ties.any(axis=0)
        self._ties, self._heights = self._ties[:, used], self._heights[used]

    def _new_shapes(self, together: int, most: int) -> bool:
        """Give items or steps that stand out their own heights; return whether there were any."""
        prior = self._strengths @ self._spectra + self._white
        total, _, (half, _), _, rest = self._solved(prior, self._variances)
        kinds = _spike_and_step(self._size)
        left = np.vstack([rest, self._shapes]) / np.repeat(total, 2)
        gains, variances, reach = [], [], 1
        for kind in kinds:
            # Of such a shape at each place: what V^-1 makes of y along it, and of the shape itself
            transform = np.fft.rfft(kind)
            # Correlations with the shape at all places at once, by one transform
            turned = np.conj(transform) * transform_of(left, 0.0, self._size)
            score, *along = np.fft.irfft(turned, self._size)[:, : self._domain]
            autocorrelation = np.fft.irfft(
                np.abs(transform) ** 2 / np.insert(total, 0, np.inf), self._size
            )
            known = ((half.T @ along) ** 2).sum(axis=0) if along else 0.0
            # What is left of the shape's precision beside the shapes that are there (Schur
            # complement); at a place that has one it is rounding
            precision = np.maximum(autocorrelation[0] - known, 1e-6 * autocorrelation[0])
            # Frequencies are not negative, steps go either way.
            seen = np.maximum(score, 0) if kind is kinds[0] else score
            ratio = seen**2 / precision
            # The gain in log-likelihood by the best variance, at least 1: none for a square below
            square = np.maximum(ratio, 1.0)
            gains.append(0.5 * (square - 1 - np.log(square)))
            variances.append((ratio - 1) / precision)
            reach = max(
                reach, int(np.argmax(np.abs(autocorrelation) < _APART * autocorrelation[0]))
            )
        gain = np.array(gains)
        limit = np.log(gain.size / _STRAY)
        added = False
        while together and len(self._shapes) < most and gain.max() > limit:
            which, place = np.unravel_index(int(np.argmax(gain)), gain.shape)
            # Neighbours explain the same: they wait for the next search
            gain[:, max(place - reach, 0) : place + reach + 1] = 0
            self._shapes = np.vstack([self._shapes, coordinates(np.roll(kinds[which], place))])
            self._heights = np.append(self._heights, variances[which][place])
            self._least = np.append(self._least, 0.0)
            self._ties = scipy.linalg.block_diag(self._ties, np.eye(1))
            together -= 1
            added = True
        return added

    def distribution(self) -> MostProbable:
        """Return the most probable distribution: shape (domain,), non-negative and with sum 1."""
        # This is least squares plus the prior's roughness. But no frequency is penalised by more
        # than the precision of its noise: what positivity moves goes into fine scales, where the
        # prior may be wrong, and not into coarse ones. That keeps the problem well conditioned,
        # too.
        precisions = self._total / (np.maximum(self._prior, self._noise) * self._noise)
        by_length, _, _ = self._curve
        return most_probable(
            self._mean,
            np.repeat(precisions, 2),
            np.repeat(self._noise / self._total, 2) * self._shapes,
            self._root,
            (self._size, self._domain),
            _PRECISION * float(np.sqrt(by_length.mean())),
        )

    @cached_property
    def _curve(self) -> tuple[Floats, Floats, Floats]:
        """The variances of ranges by length but for the shapes, and the shapes' part.

        That is prefix sums of what shapes leave unknown, and a root of the shapes' covariance.
        """
        # Strengths count with an allowance for their own errors: a deviation is (sum P_j^2 / (2
        # total^2))^(-1/2), by Fisher's information, for one part of each octave
        parts = self._spectra[self._uncertain]
        deviations = 1 / np.sqrt(0.5 * parts**2 @ (self._times / self._total**2))
        allowed = np.where((parts == 1).all(axis=1), _OF_WHITE, _ALLOWANCE)
        prior = self._prior + (allowed * deviations) @ parts
        seen = (self._shapes**2 / np.repeat(prior + self._noise, 2)).sum(axis=1)
        heights = self._variances + _ALLOWANCE * np.sqrt(2) / seen
        total, _, (half, _), _, _ = self._solved(prior, heights)
        k = np.arange(1, self._size // 2 + 1)
        # Prefix sums divide the power of a frequency by 4 sin^2(pi k / M), and the variance of a
        # range is twice the difference of their autocovariance at 0 and at its length
        spectrum = prior * self._noise / total / (2 * np.sin(np.pi * k / self._size) ** 2)
        covariances = np.fft.irfft(np.insert(spectrum, 0, 0.0), self._size)
        unknown = items_of(np.repeat(self._noise / total, 2) * self._shapes, 0.0, self._size)
        sums = np.pad(np.cumsum(unknown, axis=1), [(0, 0), (1, 0)])
        return np.maximum(covariances[0] - covariances, 0.0), sums, half

    def variance(self, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> Floats:
        """The posterior variances of the sums over first .. last."""
        by_length, sums, root = self._curve
        lean = sums[:, last + 1] - sums[:, first]
        return np.asarray(
            by_length[(last - first + 1) % self._size]
            + (np.tensordot(root, lean, (0, 0)) ** 2).sum(axis=0)
        )


def _pairs(values: Floats) -> Floats:
    """The sums over the coordinates of each frequency."""
    return values[0::2] + values[1::2]


@lru_cache(maxsize=4)
def _spike_and_step(size: int) -> tuple[Floats, Floats]:
    """The shapes of item 0, and of a step before it: a Bernoulli polynomial, t - 1/2."""
    x = np.arange(size)
    return np.where(x == 0, 1.0, 0.0), (x + 0.5) / size - 0.5


def _periodic(size: int, period: int) -> Floats:
    """Return the spectra of heaps at multiples of a period: shape (some, frequencies)."""
    # Heaps as smooth as a cubic spline with a corner have its spectrum around each of the period's
    # frequencies
    k, apart = np.arange(1, size // 2 + 1), size / period
    square = (k - apart * np.maximum(np.round(k / apart), 1)) ** 2
    corners = 0.5 * 4.0 ** np.arange(max(0, np.log2(apart / 2) // 2) + 1)
    # Squared twice, since powers take ten times as long
    return np.asarray(1 / (1 + (square / corners[:, None] ** 2) ** 2))


@lru_cache(maxsize=4)
def _parts(size: int, domain: int) -> tuple[Floats, Floats, Floats]:
    """The spectra that the prior mixes, the coordinates of shapes at the ends, and their ties.

    Shapes (parts, frequencies), (some, coordinates) and (some, some): the variances of the shapes'
    heights are the ties times parameters.
    """
    # A distribution that is smooth on an interval is not smooth on a circular domain: it is so but
    # for multiples of the Bernoulli polynomials t - 1/2, a jump of the value at 0, and t^2 - t +
    # 1/6, a jump of the slope (Wahba 1990, section 2.1). With padding the domain has two ends
    # there. What is heaped at an end, such as zeros, is smooth on neither side of it: further parts
    # are the first item and exponential densities inward from it, and those of the last. All of a
    # narrow density may as well be in the item at the end, whose variance is at least that.
    k = np.arange(1, size // 2 + 1)
    corners = 2.0 ** np.arange(-1, np.log2(size / 2) + 0.01, 0.5)
    spectra = np.vstack([1 / (1 + (k / corners[:, None]) ** _STEEP), np.ones(len(k))])
    t = (np.arange(size) + 0.5) / size
    ends = [t] if size == domain else [t, (t - domain / size) % 1.0]
    x = np.arange(size)
    inwards = x, domain - 1 - x
    widths = [w for w in 2.0 * 4.0 ** x[:12] if w <= domain / 8]
    jumps = [jump for u in ends for jump in (u - 0.5, u * u - u + 1 / 6)]
    heaps = [
        [inward == 0, *(np.where(x < domain, np.exp(-np.abs(inward) / w), 0.0) for w in widths)]
        for inward in inwards
    ]
    ties = np.eye(len(jumps) + 2 * len(heaps[0]))
    if widths:
        first = len(jumps) + len(heaps[0]) * np.arange(2)
        ties[first, first + 1] = [narrow.sum() ** 2 for _, narrow, *_ in heaps]
    shapes = np.array([*jumps, *heaps[0], *heaps[1]], dtype=np.float64)
    return spectra, coordinates(shapes), ties


# ------------------------------------------------------------------------------------------------
# The most probable distribution of a Gaussian posterior on a circular domain: a convex problem.
#
# By the alternating direction method of multipliers: the quadratic part is diagonal plus low rank
# in the frequencies, the constraints are item by item.


_TURNS, _EVERY = 1000, 10  #: The most turns, and the turns between two looks at the residuals.

# The over-relaxation: the factor by which a step goes beyond the point it is drawn to.
_RELAXED = 1.6

# The first penalty of what violates the constraints, in typical precisions of the posterior.
_STIFF = 10.0

_BALANCE = 3.0  # the ratio of the two residuals at which the penalty changes


class MostProbable(NamedTuple):
    """A distribution, and whether it is as near to the optimum as was asked for."""

    distribution: Floats
    converged: bool


def most_probable(
    mean: Floats,
    precisions: Floats,
    lean: Floats,
    root: Floats,
    shape: tuple[int, int],
    tolerance: float,
) -> MostProbable:
    """Minimise (x - mean)' C^-1 (x - mean) over distributions x, C the posterior's covariance.

    In `coordinates`, where C is diag(1 / precisions) + lean' root root' lean. Shapes: `mean` and
    `precisions` (coordinates,), `lean` (rank, coordinates), `root` (rank, rank); returns (domain,).
    """
    size, domain = shape
    start = items_of(mean, 1.0, size)
    # The mean is the optimum if it meets the constraints
    if start.min() >= 0 and size == domain:
        return MostProbable(start / start.sum(), True)
    # By Woodbury's formula C^-1 is diag(precisions) - pushed' middle middle' pushed.
    pushed, along = precisions * lean, root.T @ lean
    seen = along * np.sqrt(precisions)
    middle, _ = posterior_root(root, seen @ seen.T)
    target = precisions * mean - (middle @ (middle.T @ (pushed @ mean))) @ pushed
    # The geometric mean, as precisions range over many orders; capped, or a few of them would
    # decide
    rho = _STIFF * float(np.exp(np.mean(np.log(np.minimum(precisions, precisions.min() * 1e6)))))
    z = np.concatenate([norm_sub(start[:domain]), np.zeros(size - domain)])
    dual = np.zeros(size)
    stale, converged = True, False
    for turn in range(1, _TURNS + 1):
        # Only a new penalty changes the system: its factor serves all turns until then
        if stale:
            shift, stale = precisions + rho, False
            up = pushed / shift
            # Of C^-1 + rho: p - p^2 / (p + rho) is p rho / (p + rho), which is no difference
            seen = along * np.sqrt(precisions * (rho / shift))
            small, _ = posterior_root(root, seen @ seen.T)
        right = (target + rho * coordinates(z - dual)) / shift
        x = items_of(right + (small @ (small.T @ (pushed @ right))) @ up, 1.0, size)
        before, relaxed = z, _RELAXED * x - (_RELAXED - 1) * z
        # The projection on the constraints, which are item by item: clipping
        z = np.maximum(relaxed + dual, 0.0)
        z[domain:] = 0.0
        dual = dual + relaxed - z
        if turn % _EVERY == 0:
            # Errors of prefixes, which are what ranges are made of: primal and dual residual in
            # their units
            apart, moved = np.abs(np.cumsum(x - z)).max(), np.abs(np.cumsum(z - before)).max()
            converged = bool(apart < tolerance and moved < tolerance / 3)
            if converged:
                break
            primal, other = float(np.linalg.norm(x - z)), float(np.linalg.norm(z - before))
            # Balance the two residuals
            if turn < _TURNS // 2 and max(primal, other) > _BALANCE * min(primal, other):
                # Residual balancing (Boyd et al. 2011, section 3.4.1); it ends halfway, as the
                # method converges for a fixed penalty only. The dual is scaled by 1 / rho, and so
                # changes with it
                factor = float(np.clip(np.sqrt(primal / max(other, 1e-300)), 0.1, 10.0))
                rho, dual, stale = rho * factor, dual / factor, True
    return MostProbable(norm_sub(z[:domain]), converged)
