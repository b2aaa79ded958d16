"""Empirical Bayes: posteriors of each item's frequency, given the estimates of all items."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core.answer import ConfidenceInterval, normal_quantile
from frequency.core.estimate import Estimate
from frequency.exceptions import InvalidEstimates
from mechdesign.base import Floats, cholesky

# ------------------------------------------------------------------------------------------------
# The mixture of most likelihood: Kiefer and Wolfowitz's estimate of a mixing distribution.


Weights = npt.NDArray[np.float64]

_FIRST = 20  # rounds of expectation maximisation, after which the places of atoms show

_ROUNDS = 200
_LEAST_ATOM = 1e-13  # the least weight of an atom: what is below cannot be told from 0


def likeliest_mixture(kernel: Any, counts: Weights, tolerance: float = 1e-8) -> Weights:
    """Return the weights p that maximise sum_r counts_r log (kernel @ p)_r over distributions.

    It returns once the bound of the distance to the maximum is below ``tolerance`` per count. The
    constrained Newton method of Y. Wang, *On fast computation of the non-parametric maximum
    likelihood estimate of a mixing distribution*, JRSS B 69 (2007); the sum of the weights is free
    in the model, as in Y. Kim, P. Carbonetto, M. Stephens and M. Anitescu, *A fast algorithm for
    maximum likelihood estimation of mixture proportions using sequential quadratic programming*,
    JCGS 29 (2020).

    Shapes: `kernel` (rows, atoms), `counts` (rows,); returns (atoms,).
    """
    share = counts / counts.sum()
    columns = scipy.sparse.csc_array(kernel)
    p = np.full(columns.shape[1], 1.0 / columns.shape[1])
    # EM is slow at the end, and quick at the beginning: after a few rounds the likely places show.
    for _ in range(_FIRST):
        p *= columns.T @ (share / (columns @ p))
        p /= p.sum()
    whole = p
    # Few atoms from here on, since the model below is dense in them: some optimum has no more atoms
    # than there are different rows (Lindsay 1983).
    p = _at_peaks(whole)
    if (columns @ p).min() <= 0.0:
        p = whole
    for _ in range(_ROUNDS):
        g = columns @ p
        derivatives = columns.T @ (share / g)
        # The objective is concave, and its derivatives towards each single atom bound how far it is
        # from its maximum: sum_r counts_r log(g*_r / g_r) <= the sum of the counts times (max D -
        # 1), where D is the mean over the counts of kernel_rj / g_r, as log t <= t - 1
        # KKT: at the optimum D is 1 at every atom and at most 1 elsewhere.
        if derivatives.max() <= 1.0 + tolerance:
            break
        ends = np.pad(derivatives, 1, constant_values=-1.0)
        # Atoms are added at local maxima of D only: its neighbours are all above 1, too, and say
        # the same.
        peaks = (derivatives >= ends[:-2]) & (derivatives >= ends[2:]) & (derivatives > 1.0)
        atoms = np.flatnonzero((p > 0.0) | peaks)
        some = columns[:, atoms]
        relative = scipy.sparse.diags_array(1.0 / g) @ some
        gradient = derivatives[atoms] - 1.0
        step = _maximum(relative, share, gradient, p[atoms]) - p[atoms]
        change, rise, total = relative @ step, float(gradient @ step), float(step.sum())
        # The sum is free in the model: the maximum of the objective less the sum of the weights has
        # sum 1 of itself
        length = 1.0
        while length > 1e-9:
            ratio = 1.0 + length * change
            # Armijo's rule, for the objective less the sum of the weights. By ratios to the present
            # point, so that a gain of 1e-12 is not lost in the size of the objective.
            if ratio.min() > 0.0 and share @ np.log(ratio) - length * total >= 0.01 * length * rise:
                break
            length /= 2.0
        else:  # no step that floats can tell from none grows the likelihood
            break
        p[atoms] = np.maximum(p[atoms] + length * step, 0.0)
        # What is dropped may come back: D says so in the next round.
        p[p < _LEAST_ATOM * p.max()] = 0.0
        p /= p.sum()
    return p


def _at_peaks(weights: Weights) -> Weights:
    """Return weights gathered at their local maxima: each from the basin around it."""
    ends = np.pad(weights, 1, constant_values=-1.0)
    peaks = np.flatnonzero((weights >= ends[:-2]) & (weights > ends[2:]))
    between = [
        first + int(np.argmin(weights[first:last]))
        for first, last in zip(peaks[:-1].tolist(), peaks[1:].tolist(), strict=True)
    ]
    basins = np.add.reduceat(weights, [0, *between])
    gathered = np.zeros_like(weights)
    gathered[peaks] = basins / basins.sum()
    return gathered


def _maximum(relative: Any, share: Weights, gradient: Weights, start: Weights) -> Weights:
    """Return the x >= 0 at which the quadratic model of the objective at a start is largest."""
    rows = scipy.sparse.diags_array(np.sqrt(share)) @ relative
    # The curvature is W'W for the rows W = sqrt(share) relative: a product, so it has a Cholesky
    # factor in every order of summation. With curvature = U'U, the model is least squares in U x
    curvature = (rows.T @ rows).toarray()
    diagonal = np.full(len(curvature), 1e-12 * curvature.diagonal().max())
    root = cholesky(curvature, diagonal)
    target = root.T @ start + scipy.linalg.solve_triangular(root, gradient, lower=True)
    most = 10 * len(root) + 100
    return np.asarray(scipy.optimize.nnls(root.T, target, maxiter=most)[0], dtype=np.float64)


Array = npt.NDArray[np.float64]

# The width of bins of estimates, in deviations: they add 1/768 of a variance to the noise.
_BIN = 1 / 8

_CELL = 1 / 6  # the distance of the prior's atoms, in deviations

_NEAR = 4.0  # the distance above the largest estimate at which the atoms end, in deviations

_BAND = 8.0  # the deviations after which a Gaussian likelihood, exp(-32) of its peak, is neglected

_LEAST = 1e-4  # the least deviation that is told from none: it bounds the number of atoms

_POWERS = (-1.5, -1.0, -0.75, -0.5, -0.25, 1e-3, 0.5, 1.0)
_DECAYS = (0.0, 2.0, 6.0, 20.0)
# The smooth priors: densities x^(power - 1) exp(-decay x / top) from each of so many least
# frequencies up to the top. Zipf's law with exponent s has power -1/s, a geometric law power 0, a
# Dirichlet distribution a power above 0 with decay.
_STARTS = 8

# The difference in log-likelihood beyond which priors are dropped before the sum is looked at.
_FAR = 20.0

_ROWS = 256  # the number of bins that are worked on at a time


class _Grid(NamedTuple):
    """A grid: binned estimates, atoms of priors, and their likelihoods.

    Bins hold items whose estimates are within an eighth of a deviation, and their variances within
    5 %. In units t = integral of dx / deviation(x), noise is even.
    """

    values: Array  #: The estimates of the items.
    bins: npt.NDArray[np.intp]  #: The bin of each item.
    counts: Array  #: The numbers of items in the bins.
    centres: Array  #: Their mean estimate.
    noise: Array  #: Their variance at a frequency of 0.
    slope: float
    atoms: Array  #: Frequencies, ascending from 0.
    scale: Array  #: The same in t.
    low: Array
    high: Array  #: Ends of the cells around atoms.
    kernel: (
        Any  #: Likelihoods of bins under atoms, up to a factor for each bin, in compressed rows.
    )
    offsets: Array  #: The logarithms of these factors.

    def log_likelihood(self, priors: Array) -> Array:
        """Return that of priors over the atoms, shape (atoms,) or (atoms, priors)."""
        return self.of_densities(self.kernel @ priors)

    def of_densities(self, densities: Array) -> Array:
        """Return the same, from the densities of each bin."""
        logs = np.log(np.maximum(densities, 1e-300))
        return np.asarray(self.counts @ logs + self.counts @ self.offsets)


class Posterior:
    """The posteriors of the items' frequencies, given all of the estimates.

    Attributes
    ----------
    frequencies : numpy.ndarray of float64
        Shape (items,): posterior means, fractions of the population. A distribution if all items of
        the domain were estimated; else at least 0.
    """

    def __init__(
        self, frequencies: Array, parts: tuple[_Grid, Any, Array], reports: Estimate
    ) -> None:
        self.frequencies = frequencies
        self._grid, self._wide, self._shift = parts
        self._reports = reports

    def interval(
        self, confidence: float = 0.95, *, on_average: bool = False
    ) -> ConfidenceInterval[Floats]:
        """Return intervals of each item's frequency.

        They hold for each item, by its own reports; the posterior mean is within. Posterior
        intervals, with equal tails, are shorter, and cover about this fraction of the items, also
        of those with the largest posterior means: selection does not matter to a posterior. But of
        a few items that are unlike the others they may miss most.

        Parameters
        ----------
        confidence : float, default 0.95
            The probability that each interval holds, strictly between 0 and 1.
        on_average : bool, default False
            True: posterior intervals. The prior is widened for them by its own uncertainty, see
            `empirical_bayes`.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shape (items,), in [0, 1].

        Raises
        ------
        ValueError
            Another confidence.
        """
        normal_quantile(confidence)
        if not on_average:
            ends = self._reports.interval(confidence)
            least = np.minimum(ends.low, self.frequencies).clip(0.0, 1.0)
            return ConfidenceInterval(least, np.maximum(ends.high, self.frequencies).clip(0.0, 1.0))
        tail = (1.0 - confidence) / 2
        # Where in the cell around 0 a frequency lies cannot be told: an end there is one of it
        cell = float(self._grid.high[0])
        low, high = (self._quantile(level) for level in (tail, 1.0 - tail))
        low = np.where(low > cell, low, 0.0)
        return ConfidenceInterval(low.clip(0.0, 1.0), np.maximum(high, cell).clip(0.0, 1.0))

    def _quantile(self, level: float) -> Array:
        """Return the level's quantile of each posterior, linear within cells."""
        grid, wide = self._grid, self._wide
        # All rows one after the other: row r, with sum 1, runs from r to r + 1.
        sums = np.cumsum(wide.data)
        starts = np.concatenate([[0.0], sums])[wide.indptr]
        wanted = starts[:-1] + level * np.diff(starts)
        place = np.searchsorted(sums, wanted)
        place = np.clip(place, wide.indptr[:-1], wide.indptr[1:] - 1)
        cell = wide.indices[place]
        here = wide.data[place]
        part = np.clip((wanted - sums[place] + here) / np.maximum(here, 1e-300), 0.0, 1.0)
        ends = grid.low[cell] + part * (grid.high - grid.low)[cell]
        return np.asarray(ends[grid.bins] + self._shift)

    def __repr__(self) -> str:
        return f"<Posterior of {len(self.frequencies)} frequencies>"


def empirical_bayes(estimate: Estimate) -> Posterior:
    """Return posterior means and intervals, with a prior that is learned from all the estimates.

    The frequencies count as draws from one prior, whose mean is 1/d for the d items of a domain.
    Which prior is decided by likelihood. The candidates are

    - the prior of most likelihood of all (Kiefer and Wolfowitz 1956): a few atoms. Equal items
      are found to be equal.
    - power laws with exponential cut-offs (see the source), with the cut-off that the mean gives;
    - and power laws beside many items that do not occur, or many that are equally frequent.

    Posteriors are averaged with the candidates' weights: their likelihoods, for the first with the
    penalty of the Bayesian information criterion for its atoms, times the likelihood that the
    frequencies sum to 1, given the estimates. So there is no method to choose.

    Where it fails: of 16 items whose noise is like their frequencies there is too little to learn
    from, and the best of the other methods of `frequency.postprocess`, in hindsight, errs up to a
    quarter less. So it is for levels of frequency that are all far below the noise (a ratio of 1.6
    was seen for two levels, 4096 items and 10,000 users). `benchmarks/postprocessing.py` has the
    table.

    **Noise.** Errors count as Gaussian, with the variance that each estimate has at a candidate
    frequency, not at the estimate. An error that all items share does not matter, since the sum is
    known: the mean covariance of two estimates is taken off their variances, and what the sum lacks
    is spread in proportion to these. (For fixed sum this is exact if all covariances are equal.)
    Deviations below 10^-4 count as 10^-4.

    **Sum.** That the frequencies sum to 1 is then imposed on the posteriors: each is multiplied by
    exp(t x), with the one t for which their means sum to 1. Such a tilt is the limit, for many
    items, of conditioning independent variables on their sum (the Gibbs conditioning principle).
    A remainder, where posteriors are single atoms, is divided out.

    **Intervals.** A likeliest prior is too certain of itself. For the intervals its mass at t, in
    deviations, is spread by a Gaussian kernel of width (2 / m)^(1/4) deviations, where m is how
    many items it puts within a deviation: m truths that vary less than that cannot be told from
    equal ones, as their variance is known to sqrt(2 / m) noise variances. Of 16 items
    from a Dirichlet distribution with parameter 0.1, with little noise, 87 to 93 % of the intervals
    of 95 % covered, and 84 to 90 % of those of the ten largest. They hold on average over items,
    and not for each: of 64 items of which eight are twice as frequent as the others (OUE, 42,955
    reports), 40 % of the intervals of these eight did. So they are for ``on_average``; the default
    is what the reports of an item alone tell.

    Parameters
    ----------
    estimate : Estimate
        Of all items of an oracle's domain, from at least one report.

    Returns
    -------
    Posterior
        ``frequencies``, a distribution, shape (items,), and ``interval(confidence)``.

    Raises
    ------
    InvalidEstimates
        There are no reports, or only some of the items were estimated: their sum is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from frequency import OUE
    >>> oracle = OUE(100, 1.0)
    >>> counts = oracle.simulate(np.repeat(1000, 100), np.random.default_rng(1))
    >>> posterior = empirical_bayes(oracle.estimate(counts))
    >>> bool(abs(posterior.frequencies - 0.01).max() < 0.001)  # estimates have deviation 0.006
    True
    """
    if not estimate.reports:
        raise InvalidEstimates("there are no reports, and so no estimates")
    if estimate.items is not None:
        raise InvalidEstimates(
            "the prior is learned from estimates of all items, got those of chosen ones"
        )
    grid = _grid(*_independent(estimate))
    priors, weights = _priors(grid, estimate.reports)
    posterior = _tilted(grid, _mixed(grid, priors, weights))
    means = posterior @ grid.atoms
    spread = posterior @ grid.atoms**2 - means**2
    # Tweedie's formula: within a bin an estimate moves its posterior mean by its own distance from
    # the bin's centre, shrunk.
    # The derivative of a posterior mean by the estimate is the posterior's variance over the noise
    shrinkage = np.clip(spread / (grid.noise + grid.slope * means), 0.0, 1.0)
    shift = (grid.values - grid.centres[grid.bins]) * shrinkage[grid.bins]
    frequencies = np.maximum(means[grid.bins] + shift, 0.0)
    wide = _mixed(grid, _widened(grid, priors @ weights)[:, None], np.ones(1))
    parts = grid, _normalised(wide), shift
    return Posterior(frequencies / frequencies.sum(), parts, estimate)


def _independent(estimate: Estimate) -> tuple[Array, Array, float]:
    """Return estimates with errors taken as independent, their variances at 0, and their slope."""
    values = np.array(estimate.frequencies, dtype=np.float64)
    noise, slope = estimate.variances_at(0.0), max(float(estimate.variance_slope), 0.0)
    d = len(values)
    if d > 1:
        whole = float(estimate.linear(np.ones(d)).variance)
        # The mean covariance of two estimates: the variance of the sum less those of its terms,
        # over the number of pairs.
        noise = noise - (whole - float(estimate.variances.sum())) / (d * (d - 1))
    noise = np.maximum(noise, max(1e-3 * float(noise.mean()), _LEAST**2))
    # With covariances C = D + c 11' and both f and the estimates v on the hyperplane of sum 1, (v -
    # f)' C^-1 (v - f) is (v - f)' D^-1 (v - f)
    share = noise + slope * np.maximum(values, 0.0)
    # The projection on sum 1 in the metric of D, which is diagonal: each takes its share of the
    # variance.
    return values + share * ((1.0 - values.sum()) / share.sum()), noise, slope


def _grid(values: Array, noise: Array, slope: float) -> _Grid:
    """Return bins of the estimates, and the likelihoods of atoms from 0 to beyond the largest."""
    least = float(noise.min())
    root = math.sqrt(least)

    # Variance stabilising: the integral of dx / (least + slope x)^(1/2), written without
    # cancellation for a small slope, and its inverse. In these units atoms are equally spaced where
    # they can be told apart equally well.
    def even(x: Array) -> Array:
        up = np.maximum(x, 0.0)
        return np.where(x < 0.0, x / root, 2 * up / (np.sqrt(least + slope * up) + root))

    def back(t: Array) -> Array:
        return np.asarray(t * root + slope * t * t / 4)

    level = np.floor(np.log(noise / least) / 0.05).astype(np.int64)
    place = np.floor(even(values) / _BIN).astype(np.int64)
    place -= place.min()
    # Items in a bin share a posterior up to the shift: the cost depends on the number of bins, not
    # of items.
    _, bins, sizes_of_bins = np.unique(
        place * (int(level.max()) + 1) + level, return_inverse=True, return_counts=True
    )
    counts = sizes_of_bins.astype(np.float64)
    centres, spread = (np.bincount(bins, of) / counts for of in (values, noise))
    middle, reach = even(centres), np.sqrt(spread / least)
    top = float((middle + _NEAR * reach).max())
    scale = np.arange(max(math.ceil(top / _CELL), 1) + 1, dtype=np.float64) * _CELL
    atoms = back(scale)
    low, high = back(np.maximum(scale - _CELL / 2, 0.0)), back(scale + _CELL / 2)
    start = np.minimum(np.searchsorted(scale, middle - _BAND * reach), len(scale) - 1)
    stop = np.maximum(np.searchsorted(scale, middle + _BAND * reach), start + 1)
    sizes = stop - start
    ends = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.arange(ends[-1]) - np.repeat(ends[:-1] - start, sizes)
    variance = np.repeat(spread, sizes) + slope * atoms[columns]
    logs = -0.5 * ((np.repeat(centres, sizes) - atoms[columns]) ** 2 / variance + np.log(variance))
    # Each row is scaled by its largest likelihood: none underflows to a row of zeros.
    offsets = np.maximum.reduceat(logs, ends[:-1])
    kernel = scipy.sparse.csr_array(
        (np.exp(logs - np.repeat(offsets, sizes)), columns, ends), shape=(len(counts), len(atoms))
    )
    return _Grid(
        values, bins, counts, centres, spread, slope, atoms, scale, low, high, kernel, offsets
    )


def _priors(grid: _Grid, users: int) -> tuple[Array, Array]:
    """Return candidate priors of mean 1/d, shape (atoms, priors), and their weights."""
    items = float(grid.counts.sum())
    mean, cost = 1.0 / items, math.log(max(items, 2.0)) / 2
    free = _free(grid, mean)
    places = np.flatnonzero(free > 1e-6)
    # Neighbouring atoms of the grid stand for one between them: they count as one parameter pair.
    groups = np.split(places, np.flatnonzero(np.diff(places) > 2) + 1)
    # Each atom has a place and a weight; that the weights sum to 1 and the mean take two.
    smooth = _cut_off(grid, users, mean)
    priors = [free[:, None], smooth]
    scores = [
        np.atleast_1d(grid.log_likelihood(free)) - 2 * (len(groups) - 1) * cost,
        grid.log_likelihood(smooth) - math.log(max(smooth.shape[1], 1)),
    ]
    zero, equal = np.zeros_like(free), np.zeros_like(free)
    zero[0] = 1.0
    heavy = max(groups, key=lambda group: float(free[group].sum()))
    equal[heavy] = free[heavy] / free[heavy].sum()
    smooth = np.stack(
        [
            _power_law(grid, start, power, decay)
            for start in np.geomspace(0.1 / users, float(grid.high[-1]) / 2, _STARTS)
            for power in _POWERS
            for decay in _DECAYS
        ],
        axis=1,
    )
    densities, means = grid.kernel @ smooth, grid.atoms @ smooth
    for beside, parameters in ((zero, 0), (equal, 1)):
        place = float(grid.atoms @ beside)
        share = (means - mean) / np.where(means == place, np.inf, means - place)
        some = np.flatnonzero((share > 0.0) & (share < 1.0))
        share = share[some]
        mixed = share * (grid.kernel @ beside)[:, None] + (1 - share) * densities[:, some]
        scores.append(grid.of_densities(mixed) - parameters * cost - math.log(max(len(some), 1)))
        priors.append(share * beside[:, None] + (1 - share) * smooth[:, some])
    logs, candidates = np.concatenate(scores), np.concatenate(priors, axis=1)
    likely = logs > logs.max() - _FAR
    logs, candidates = logs[likely], candidates[:, likely]
    logs = logs + _of_sum(grid, candidates)
    weights = np.exp(logs - logs.max())
    keep = weights > 1e-3
    return candidates[:, keep], weights[keep] / weights[keep].sum()


def _of_sum(grid: _Grid, priors: Array) -> Array:
    """Return the log-likelihoods of the sum 1: posteriors have a sum and a variance."""
    densities = np.maximum(grid.kernel @ priors, 1e-300)
    first, second = (
        grid.kernel @ (priors * power[:, None]) / densities for power in (grid.atoms, grid.atoms**2)
    )
    sums = grid.counts @ first
    # A variance below that of one estimate counts as this: priors have their own uncertainty
    variances = np.maximum(grid.counts @ (second - first**2), float(grid.noise.mean()))
    return np.asarray(-0.5 * ((1.0 - sums) ** 2 / variances + np.log(variances)))


def _free(grid: _Grid, mean: float) -> Array:
    """Return the likeliest of all priors with this mean."""
    relative = grid.atoms / mean - 1.0
    # Where all factors 1 + m (x / mean - 1) are at least 0: x goes from 0 to the last atom.
    low, high, multiplier = -1.0 / relative[-1], 1.0, 0.0
    # With a multiplier m for the mean, the optimality conditions are those of the likeliest mixture
    # q of kernel_j / (1 + m (x_j / mean - 1)), with p_j = q_j / (1 + m (x_j / mean - 1)): p has sum
    # 1 where its mean is right, and its mean falls with m
    while True:
        factor = 1.0 + multiplier * relative
        p = likeliest_mixture(grid.kernel @ scipy.sparse.diags_array(1 / factor), grid.counts)
        p = p / factor
        excess = float(relative @ p) / float(p.sum())
        if abs(excess) < 1e-3 or high - low < 1e-6 * max(abs(multiplier), -low):
            return np.asarray(p / p.sum())
        low, high = (multiplier, high) if excess > 0 else (low, multiplier)
        multiplier = (low + high) / 2


def _cut_off(grid: _Grid, users: int, mean: float) -> Array:
    """Return power laws with the decay that gives them this mean, shape (atoms, priors)."""
    top = float(grid.high[-1])
    starts = np.geomspace(min(0.1 / users, 0.01 * mean), 0.9 * mean, _STARTS)
    laws = [_power_law(grid, start, power, 0.0) for start in starts for power in _POWERS]
    priors = np.stack(laws, axis=1)
    low, high = np.full(len(laws), -100.0), np.full(len(laws), 100.0 * top / mean)
    tilted = priors
    for _ in range(32):
        # Bisection for all priors at once: the mean falls as the decay rises.
        decay = (low + high) / 2
        logs = np.outer(grid.atoms / top, -decay)
        tilted = priors * np.exp(logs - logs.max(axis=0))
        tilted /= np.maximum(tilted.sum(axis=0), 1e-300)
        over = grid.atoms @ tilted > mean
        low, high = np.where(over, decay, low), np.where(over, high, decay)
    return tilted[:, np.abs(grid.atoms @ tilted / mean - 1.0) < 0.01]


def _power_law(grid: _Grid, start: float, power: float, decay: float) -> Array:
    """Return masses in the cells of x^(power - 1) exp(-decay x / top) from ``start`` on."""
    low, high = np.maximum(grid.low, start), np.maximum(grid.high, start)
    masses = (high**power - low**power) / power * np.exp(-decay * grid.atoms / grid.high[-1])
    return np.asarray(masses / masses.sum())


def _mixed(grid: _Grid, priors: Array, weights: Array) -> Any:
    """Return the average over priors of the posteriors of each bin, in compressed rows."""
    densities = np.maximum(grid.kernel @ priors, 1e-300)
    result = grid.kernel.copy()
    for start in range(0, len(densities), _ROWS):
        ends = result.indptr[start : start + _ROWS + 1]
        averages = (weights / densities[start : start + _ROWS]) @ priors.T
        rows, here = np.repeat(np.arange(len(averages)), np.diff(ends)), slice(ends[0], ends[-1])
        result.data[here] *= averages[rows, result.indices[here]]
    return result


def _normalised(rows: Any) -> Any:
    """Return rows divided by their sums."""
    result = rows.copy()  # of which the order within rows stays, as of a product it does not
    result.data /= np.repeat(np.maximum(rows.sum(axis=1), 1e-300), np.diff(rows.indptr))
    return result


def _tilted(grid: _Grid, posterior: Any) -> Any:
    """Return posteriors times exp(t x), with the t for which the means of all items sum to 1."""
    distance = grid.atoms[posterior.indices] - np.repeat(grid.centres, np.diff(posterior.indptr))
    tilt, unit = 0.0, 1.0 / math.sqrt(float(grid.noise.max()))
    tilted = _normalised(posterior)
    for _ in range(50):
        means = tilted @ grid.atoms
        slope = float(grid.counts @ np.maximum(tilted @ grid.atoms**2 - means**2, 0.0))
        lack = 1.0 - float(grid.counts @ means)
        if abs(lack) < 1e-12 or slope < 1e-30:
            break
        # Newton's method: the sum of the means is the derivative of a convex function
        # (log-sum-exp), and the posteriors' variances are its second derivative. Steps are cut
        # where that is flat.
        tilt += float(np.clip(lack / slope, -unit, unit))
        tilted = posterior.copy()
        # Relative to each row's centre: a factor per row is divided out, and the exponents stay
        # small.
        tilted.data *= np.exp(np.clip(tilt * distance, -500.0, 500.0))
        tilted = _normalised(tilted)
    return tilted


def _widened(grid: _Grid, prior: Array) -> Array:
    """Return a prior spread by as much as the items that it stands on cannot tell."""
    cut = np.concatenate([[0.0], np.cumsum(prior)])
    first, last = (np.searchsorted(grid.scale, grid.scale + side) for side in (-1.0, 1.0))
    local = np.maximum((cut[last] - cut[first]) * grid.counts.sum(), 0.5)
    # In cells; of the kernels, the part on the grid is all that there is.
    width = (2.0 / local) ** 0.25 / _CELL
    size = len(prior)
    reach = min(math.ceil(4.0 * float(width.max())), size - 1)
    steps = np.arange(-reach, reach + 1)
    total = np.zeros(size)
    for step in steps.tolist():
        total[max(-step, 0) : size - max(step, 0)] += np.exp(
            -0.5 * (step / width[max(-step, 0) : size - max(step, 0)]) ** 2
        )
    result = np.zeros(size)
    for step in steps.tolist():
        here = slice(max(-step, 0), size - max(step, 0))
        result[here.start + step : here.stop + step] += (
            prior[here] * np.exp(-0.5 * (step / width[here]) ** 2) / total[here]
        )
    return result
