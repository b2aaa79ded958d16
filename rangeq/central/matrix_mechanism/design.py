"""The design of strategies: `workload_optimal`, the least variance for given queries."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from mechdesign import ZCDP, ApproximateDP, Privacy
from mechdesign.base import Floats, ProgressMeter, shown
from mechdesign.noise.discrete import LARGEST_SIGMA2
from mechdesign.tables import DesignCache
from rangeq.central.branching import best_branching
from rangeq.central.hierarchy import Hierarchy, Wavelet
from rangeq.central.inputs import LARGEST_DIMENSION, MarginalCounts, checked_shape
from rangeq.central.matrix_mechanism.dense_strategy import SCALE_BITS, DenseStrategy
from rangeq.central.matrix_mechanism.gram_optimum import (
    LARGEST_PATH,
    least_path_error,
    optimal_gram,
    path_weights,
)
from rangeq.central.matrix_mechanism.mechanism import MatrixEstimate, MatrixMechanism, Promise
from rangeq.central.matrix_mechanism.minimax import (
    largest_variance,
    least_largest,
    require_minimax,
)
from rangeq.central.matrix_mechanism.p_identity import laplace_strategy
from rangeq.central.matrix_mechanism.residual_strategy import residual_optimum, tells_differences
from rangeq.central.matrix_mechanism.several_attributes import (
    MOST_BITS,
    exchangeable,
    least_error,
    marginal_optimum,
    marginal_weights,
    product_for_laplace_noise,
    product_optimum,
)
from rangeq.central.matrix_mechanism.spectral_strategy import LEAST_LARGEST_ENTRY, SpectralStrategy
from rangeq.central.matrix_mechanism.staircase_strategy import (
    StaircaseStrategy,
    rows_of_levels,
    strategy_for_cells,
)
from rangeq.central.matrix_mechanism.strategy import (
    LARGEST_PRODUCT,
    Strategy,
    UnanswerableQuery,
)
from rangeq.central.matrix_mechanism.strategy_file import (
    StoredStrategy,
    load_strategy,
    save_strategy,
)
from rangeq.central.matrix_mechanism.workload import (
    Asked,
    InvalidWorkload,
    QuerySet,
    Workload,
    basis_of,
    gram_of,
)
from rangeq.central.mechanism import CentralMechanism

_DOWN = 1 - 2.0**-48  # A factor that rounds a product of a few floats down

_SAME = 1e-6  # the relative difference of variances that rounding of noise makes

_SAFE = 1 - 2.0**-40  # the same where exponentials were taken

# The rho beyond which exponentials overflow, and the loss of users together beyond which a bound
# by their distance falls.
_LARGEST_RHO, _LARGEST_LOSS = 300.0, 4.0

# The most cells for which noise in groups of cells is tried; and such noise alone.
_LARGEST_STAIRCASE, _LARGEST_APART = 256, 100

# The most cells along an attribute of a searched design, but for prefixes and ranges.
_LARGEST_SEARCHED = 1 << 11

#: The cost of a search: decompositions, operations a second, and matrices at a time.
_ROUNDS, _FLOPS, _COPIES = 40, 1e10, 10

_SPARE_BITS = 3  # the bits by which norms of columns are above the largest entry, at most

# The most cells for which prefixes and ranges have a strategy that is written out.
_LARGEST_DENSE = 1 << 10


@dataclass(frozen=True, eq=False)
class StrategyDesign:
    """A strategy for a workload under a promise, and how near it is to the least error.

    Attributes
    ----------
    workload : Workload
        What is asked.
    mechanism : MatrixMechanism
        The strategy with the noise that keeps the promise.
    bound : float
        A proved lower bound, in squared users, on the mean variance of every mechanism that keeps
        the promise and answers the workload without bias, whatever it draws and publishes: none
        stays below it at all tables of counts (see `least_cell_variance`).
    continuous_bound : float
        A proved lower bound for all strategies with continuous noise of this kind, Gaussian or
        Laplace, the same for all numbers in proportion to their sensitivity. Noise in whole steps
        may have less.
    objective : {"mean", "largest"}
        What was made small, and what both bounds are on: the mean variance of the queries, or the
        largest.
    """

    workload: Workload
    mechanism: MatrixMechanism
    bound: float
    continuous_bound: float
    objective: str = "mean"

    @property
    def strategy(self) -> Strategy:
        """The strategy that is measured, in integers."""
        return self.mechanism.strategy

    @cached_property
    def variance(self) -> float:
        """The weighted mean variance of the workload's answers, in squared users."""
        return self.mechanism.workload_variance(self.workload)

    @cached_property
    def largest_variance(self) -> float:
        """The largest variance of the workload's answers, in squared users.

        Raises
        ------
        InvalidWorkload
            It is known of marginals, and of prefixes and ranges of one attribute of 1,024 cells.
        """
        require_minimax(self.workload)
        return _objective_of(self.mechanism, self.workload, "largest")

    @property
    def _value(self) -> float:
        return self.largest_variance if self.objective == "largest" else self.variance

    @property
    def gap(self) -> float:
        """The excess of the objective over `bound`, relative to it."""
        return max(self._value / self.bound - 1, 0.0)

    @property
    def continuous_gap(self) -> float:
        """The excess of the objective over `continuous_bound`, relative to it; may be below 0."""
        return self._value / self.continuous_bound - 1

    def release(
        self, counts: npt.ArrayLike | MarginalCounts, rng: np.random.Generator | None = None
    ) -> MatrixEstimate:
        """Release a histogram once: see `MatrixMechanism.release`.

        Parameters
        ----------
        counts, rng : as of `MatrixMechanism.release`
            The histogram, of the workload's shape, and the randomness.

        Returns
        -------
        MatrixEstimate
            Answers to the workload, and to whatever else follows.

        Raises
        ------
        InvalidHistogram
            For counts that are anything else, before anything is drawn.
        """
        return self.mechanism.release(counts, rng)

    def __str__(self) -> str:
        said = (
            f"{self.mechanism!r}: {self.objective} variance {self._value:.6g} for"
            f" {self.workload!r}; at most"
            f" {100 * self.gap:.2g} % above the least of any unbiased mechanism"
        )
        beyond = 100 * self.continuous_gap
        if beyond < 0:
            return f"{said}, and {-beyond:.2g} % below the bound for strategies of continuous noise"
        return f"{said}, {beyond:.2g} % above that of strategies of continuous noise"


def _objective_of(mechanism: MatrixMechanism, workload: Workload, objective: str) -> float:
    """The mean or the largest variance of a workload's answers, in squared users."""
    if objective == "largest":
        return mechanism.noise_variance * largest_variance(mechanism.strategy, workload)
    return mechanism.workload_variance(workload)


def least_cell_variance(promise: Promise) -> float:
    """What no unbiased estimate of one cell's count has less than, as a variance, at all tables.

    With `Privacy` it is 2 alpha / (1 - alpha)^2, which discrete Laplace noise attains. With `ZCDP`
    it is the largest of three bounds: by Hammersley's, Chapman and Robbins' inequality for one user
    more, and for one more and one less; and by the total variation distance, as for
    `ApproximateDP`, where any number of users more is looked at. These are not attained: of zCDP
    the bound is 10 % below 1 / (2 rho) at rho 1/10, and far below what is known for rho above 1;
    with a delta it is always far below.

    Times the bound of `rangeq.central.matrix_mechanism.gram_optimum` on tr(G X^+) it is one on the
    mean variance of a workload, without its weight.

    Parameters
    ----------
    promise : Privacy, ZCDP or ApproximateDP
        Of tables one of which has one user more.

    Returns
    -------
    float
        In squared users, rounded down.
    """
    # Let T be unbiased answers to W x, C their mean covariance over the tables of a large box, and
    # u a vector. Along cell j the estimate u'T moves by w = (W'u)_j with every user; so u'C u is at
    # least w^2 times what is returned here, but for the tables at the sides of the box. With M =
    # diag(mu) and the polar decomposition M^(1/2) W' = S Q, S = (M^(1/2) G M^(1/2))^(1/2), the
    # columns u_j of Q' have sum u_j u_j' <= I, and (W'u_j)_j = S_jj / mu_j^(1/2). So tr C is at
    # least the sum of S_jj^2 / mu_j, hence (tr S)^2 / sum(mu), times what is returned
    # By the total variation distance d of laws p, q of estimates t of counts that differ by k: from
    # the middle of both k = sum t (p - q), at most the root of 2 d times sum t^2 (p + q), and that
    # sum is twice the mean variance plus k^2 / 4. So that mean is at least k^2 (1 - d) / (4 d)
    if isinstance(promise, Privacy):
        # Of a line of counts: the least variance that `least_unbiased_variances` tends to
        alpha = promise.alpha
        return float(2 * alpha / (1 - alpha) ** 2) * _DOWN
    if isinstance(promise, ZCDP):
        # Of order 2, exp of the divergence is the mean square of the likelihood ratio, at most
        # exp(2 rho). For one user less, too, the product of both ratios has a mean of at least the
        # square of that of its root, which is at least exp(-4 rho), as divergence is at most 4 rho
        rho = float(promise.rho)
        two_sided = 2 / (math.exp(2 * rho) - math.exp(-4 * rho)) if rho < _LARGEST_RHO else 0.0
        one_sided = 1 / math.expm1(2 * rho) if rho < _LARGEST_RHO else 0.0
        # Bretagnolle and Huber: the distance is at most (1 - exp(-rho))^(1/2)
        distance = math.sqrt(-math.expm1(-rho))
        overlap = math.exp(-rho) / (1 + distance)
        return max(one_sided, two_sided, overlap / (4 * distance)) * _SAFE
    epsilon, delta = float(promise.epsilon), float(promise.delta)
    best = 0.0
    for k in range(1, math.ceil(_LARGEST_LOSS / epsilon) + 1):
        # (k epsilon, delta (1 + e^epsilon + .. + e^((k - 1) epsilon))): privacy of k users
        grown = math.expm1(k * epsilon)
        more = delta * grown / math.expm1(epsilon)
        overlap, distance = 2 * (1 - more) / (grown + 2), (grown + 2 * more) / (grown + 2)
        best = max(best, k * k * overlap / (4 * distance))
    return best * _SAFE


def workload_optimal(
    workload: Asked,
    domain: int | Sequence[int],
    promise: Promise,
    tolerance: float = 1e-4,
    progress: bool = False,
    cache: str | os.PathLike[str] | bool = True,
    *,
    objective: Literal["mean", "largest"] = "mean",
) -> StrategyDesign:
    """The strategy whose answers to a workload have the least mean variance under a promise.

    Or of which the largest is least, under Gaussian noise, for marginals and for prefixes and
    ranges of one attribute (`rangeq.central.matrix_mechanism.minimax`): no query is answered much
    worse than others.

    Under Gaussian noise (`ZCDP`, `ApproximateDP`) that is a convex program, solved to within the
    tolerance of a proved bound. For prefixes or ranges over 1025 to 2^20 cells the strategy is a
    `SpectralStrategy`, within 0.5 % of the bound unless rho is below 2^-12. Under Laplace noise
    (`Privacy`) it is not convex: the best of several searches is taken
    (`rangeq.central.matrix_mechanism.p_identity`), and the bound, which follows from the convex
    program, is far below.

    No data enter the design.

    Parameters
    ----------
    workload, domain : as of `Workload.of`
        "ranges", "prefixes", "cells", "width-32", "marginals", a name for each attribute, a matrix
        of queries, or a weighted sum; the number of cells of one attribute, or along each of
        several: up to 100 where marginals are asked, with Gaussian noise, and no table is made.
    promise : Privacy, ZCDP or ApproximateDP
        What a release keeps, for one user more or less.
    tolerance : float, default 1e-4
        In (0, 1): how far, relative to the bound, the variance may be above it, if that is convex.
    progress : bool, default False
        Whether to write on standard error how long it has taken so far.
    cache : str, os.PathLike or bool, default True
        A directory where designs are kept, so that one that was made before is read; True: that of
        `mechdesign.tables.DesignCache`; False: none. Where it cannot be written only time is lost.
        Only who may write it can make `bound` wrong there; privacy does not rest on it.
    objective : {"mean", "largest"}, default "mean"
        Which variance is made small. The largest is within 0.3 % of its bound or so.

    Returns
    -------
    StrategyDesign
        ``.release(counts)`` releases a histogram.

    Raises
    ------
    InvalidWorkload
        What is no workload over these cells, or is too large to be designed for.
    ValueError, TypeError
        Another domain, promise or tolerance.

    Examples
    --------
    >>> from mechdesign import ZCDP
    >>> design = workload_optimal("ranges", 64, ZCDP("1/2"))
    >>> design.continuous_gap < 0.001, design.mechanism.audit().holds
    (True, True)
    """
    asked = Workload.of(workload, domain)
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must be a number between 0 and 1, got {tolerance}")
    if not isinstance(promise, (Privacy, ZCDP, ApproximateDP)):
        raise TypeError(
            f"a promise is a Privacy, a ZCDP or an ApproximateDP, got a {type(promise).__name__}"
        )
    if objective not in ("mean", "largest"):
        raise ValueError(f"objective must be mean or largest, got {shown(objective)}")
    if objective == "largest":
        require_minimax(asked)
        if isinstance(promise, Privacy):
            raise ValueError("the largest variance is made small under Gaussian noise alone")
    if not asked.has_table:
        # Only residuals of few attributes each, with Gaussian noise, need no table of all cells
        together = (sum(part.name != "total" for part in term.factors) for term in asked.terms)
        if isinstance(promise, Privacy) or max(together) > LARGEST_DIMENSION:
            checked_shape(asked.sizes)
        if not (exchangeable(asked) or tells_differences(asked)):
            checked_shape(asked.sizes)
    folder = None if isinstance(cache, bool) else cache
    kept = DesignFile(DesignCache(folder).folder, asked, promise, tolerance, objective)
    stored = kept.load() if cache is not False else None
    if stored is None:
        with ProgressMeter(f"strategy for {asked.cells} cells", shown=progress):
            if objective == "largest":
                assert not isinstance(promise, Privacy)
                bits = _bits(asked, promise.noise_ratio)
                strategy, largest = least_largest(asked, tolerance, bits)
                stored = StoredStrategy(strategy, largest * asked.weight)
            elif isinstance(promise, Privacy):
                stored = StoredStrategy(*_for_laplace_noise(asked, tolerance, promise))
            else:
                stored = StoredStrategy(*_for_gaussian_noise(asked, tolerance, promise))
        if cache is not False:
            kept.save(stored)
    assert stored.bound is not None
    # Rounded down, as the bounds are proved
    least = stored.bound / asked.weight * _DOWN
    unit = 2 / promise.epsilon**2 if isinstance(promise, Privacy) else float(promise.noise_ratio)
    mechanism = MatrixMechanism(stored.strategy, promise)
    bound = least * least_cell_variance(promise)
    return StrategyDesign(asked, mechanism, bound, least * unit, objective)


def _noise(asked: Workload, promise: Promise) -> str:
    """Name what a strategy depends on of a promise."""
    if isinstance(promise, Privacy):
        # Noise in whole steps has other optima at every epsilon
        return f"Laplace {promise.alpha}"
    # Integers are smaller, the larger the noise
    ratio = promise.noise_ratio
    if ratio < 1 and asked.cells <= _LARGEST_STAIRCASE:  # and so little noise has other optima
        return f"Gaussian, {ratio}"
    # Two promises of the same bits have the same design, and share a file
    return f"Gaussian {ratio if asked.cells > _LARGEST_DENSE else _bits(asked, ratio)}"


def _for_gaussian_noise(
    asked: Workload, tolerance: float, promise: ZCDP | ApproximateDP
) -> tuple[Strategy, float]:
    """A strategy, and a lower bound on the weighted sum of variances, for columns of norm 1."""
    strategy, bound = _for_continuous_noise(asked, tolerance, promise.noise_ratio)
    if promise.noise_ratio >= 1 or asked.cells > _LARGEST_STAIRCASE:
        return strategy, bound
    # Noise in whole steps has less variance where it is small
    whole = [np.eye(asked.cells, dtype=np.int64)]
    whole += [rows_of_levels(mechanism)[0] for mechanism in _published(asked.sizes, 1.0)]
    tried = (DenseStrategy(rows, asked.sizes) for rows in whole)
    return _least([strategy, *tried], asked, promise), bound


def _for_continuous_noise(
    asked: Workload, tolerance: float, ratio: Fraction
) -> tuple[Strategy, float]:
    """A strategy and a bound as of `_for_gaussian_noise`, for noise of any size."""
    size, weights = asked.cells, path_weights(asked)
    # In order of how near the optimum a design is known to be: closed forms first, then what needs
    # matrices of cells by cells
    if size > _LARGEST_DENSE and weights is not None:
        return _spectral(asked, weights, ratio), least_path_error(*weights, size) * _DOWN
    if exchangeable(asked) and len(asked.sizes) > 1:
        return marginal_optimum(asked, entry_bits(ratio))
    _require_short(asked)
    if len(asked.sizes) > 1 and size > _LARGEST_DENSE:
        several: list[Strategy] = []
        if asked.has_table:
            several.append(product_optimum(asked, tolerance, entry_bits(ratio)))
        if not several or (len(asked.terms) > 1 and tells_differences(asked)):
            several.append(residual_optimum(asked, tolerance, entry_bits(ratio)))
        # Both are only local optima over different families: the better one is taken, at equal
        # sensitivity
        best = min(
            several, key=lambda strategy: strategy.l2_squared * strategy.workload_variance(asked)
        )
        return best, least_error(asked, tolerance)
    gram, error = gram_of(asked)
    basis = basis_of(asked)
    optimum = optimal_gram(gram, tolerance, error, len(basis))
    bits = min(entry_bits(ratio), SCALE_BITS)
    return DenseStrategy.of_gram(optimum.gram, basis, asked.sizes, bits), optimum.bound


def _bits(asked: Workload, ratio: Fraction) -> int:
    """The bits of entries of a strategy: see `entry_bits`."""
    return min(entry_bits(ratio), SCALE_BITS) if len(asked.sizes) == 1 else entry_bits(ratio)


def entry_bits(ratio: Fraction) -> int:
    """The bits of entries for which noise of this ratio to squared norms can still be drawn."""
    # sigma^2 = ratio times the squared norm must not pass the largest variance that is drawn: so
    # norms, and with them entries, have a largest size
    norm = math.isqrt(math.floor(LARGEST_SIGMA2 / ratio))
    return min(max(norm.bit_length() - 1 - _SPARE_BITS, 1), MOST_BITS)


def _require_short(asked: Workload) -> None:
    """Refuse a search that takes long: tens of decompositions of matrices of cells by cells."""
    size = max(asked.sizes)
    if size > _LARGEST_SEARCHED:
        minutes = _ROUNDS * 10.0 * size**3 / _FLOPS / 60
        raise InvalidWorkload(
            f"a design for {size} cells along an attribute would take some {minutes:.2g} minutes"
            f" and {_COPIES * 8 * size**2 / 1e9:.2g} GB: it is made for at most"
            f" {_LARGEST_SEARCHED}, or under Gaussian noise for prefixes or ranges of one attribute"
            f" for up to 2^{LARGEST_PATH.bit_length() - 1}; a Hierarchy takes more"
        )


def _spectral(asked: Workload, weights: tuple[float, float], ratio: Fraction) -> SpectralStrategy:
    """The better one of the strategies for prefixes and for ranges."""
    # Squared norms are below the square of the largest entry, and noise has a largest variance
    largest = math.isqrt(math.floor(LARGEST_SIGMA2 / ratio))
    largest = min(max(largest, LEAST_LARGEST_ENTRY), LARGEST_PRODUCT)
    names = [name for name, w in zip(("prefixes", "ranges"), weights, strict=True) if w]
    tried = [SpectralStrategy.of_workload(name, asked.cells, largest) for name in names]
    return min(tried, key=lambda strategy: strategy.l2_squared * strategy.workload_variance(asked))


def _for_laplace_noise(
    asked: Workload, tolerance: float, promise: Privacy
) -> tuple[Strategy, float]:
    """A strategy and a lower bound as of `_for_gaussian_noise`, for columns of absolute sum 1."""
    tried: list[Strategy] = []
    if not exchangeable(asked):
        _require_short(asked)
    dense = asked.cells <= _LARGEST_DENSE or len(asked.sizes) == 1
    gram, error = gram_of(asked) if dense else (np.zeros((0, 0)), 0.0)
    if exchangeable(asked) and len(asked.sizes) > 1:
        tried.append(marginal_weights(asked))
        # |column|_1 >= |column|_2, so that a strategy for Laplace noise, scaled, is one for
        # Gaussian noise of no larger error: the convex program bounds both
        bound = marginal_optimum(asked)[1]
    elif dense:
        bound = optimal_gram(gram, tolerance, error).bound
    else:
        bound = least_error(asked, tolerance)
    # The dense search is tried beside marginals, too: it may do better where there are few cells
    if dense:
        rows = laplace_strategy(gram)
        rounded = np.rint(rows * 2.0**SCALE_BITS).astype(np.int64)
        tried.append(DenseStrategy(rounded, asked.sizes))
        # The cells alone need no rounding, which costs a strategy near them more than it gains
        tried.append(DenseStrategy(np.eye(asked.cells, dtype=np.int64), asked.sizes))
        if asked.cells <= _LARGEST_STAIRCASE:
            tried += _with_whole_steps(asked.sizes, gram, promise, rows)
    else:
        tried.append(product_for_laplace_noise(asked))
    return _least(tried, asked, promise), bound


def _with_whole_steps(
    sizes: tuple[int, ...], gram: Floats, promise: Privacy, rows: Floats
) -> Iterator[Strategy]:
    """Strategies with noise of their own: of cells, with and without a strategy's other rows."""
    # Of many cells none but the best rows leave enough to the cells
    for beside in (None, rows) if len(gram) <= _LARGEST_APART else (rows,):
        with suppress(ValueError):  # an epsilon for which such noise is not drawn
            yield strategy_for_cells(gram, promise.epsilon, sizes, beside)
    with suppress(ValueError):
        for mechanism in _published(sizes, promise.epsilon):
            yield StaircaseStrategy.of_levels(mechanism)


def _published(sizes: tuple[int, ...], epsilon: float) -> Iterator[CentralMechanism]:
    """The trees and the wavelet that are known for ranges, whatever is asked."""
    if max(sizes) > 1:
        best = best_branching(sizes, epsilon, alternatives=1, exhaustive=False).best.fanouts
        for budget in ("equal", "optimal"):
            yield Hierarchy(sizes, epsilon, best, budget=budget)
        yield Wavelet(sizes, epsilon)


def _least(tried: Iterable[Strategy], asked: Workload, promise: Promise) -> Strategy:
    """The strategy of least variance, of the noise that is drawn."""
    best: tuple[float, Strategy] | None = None
    refused = ValueError("no strategy was tried")
    for strategy in tried:
        try:
            mechanism = MatrixMechanism(strategy, promise)
            variance = mechanism.workload_variance(asked)
        except UnanswerableQuery:
            continue
        except ValueError as error:  # noise beyond what is drawn, for this strategy
            refused = error
            continue
        # Of those that are as good the one that measures less
        if (
            best is None
            or variance < best[0] * (1 - _SAME)
            or (variance < best[0] * (1 + _SAME) and strategy.rows < best[1].rows)
        ):
            best = variance, mechanism.strategy
    if best is None:
        raise refused
    return best[1]


# ------------------------------------------------------------------------------------------------
# Where a design is kept, so that it is made once: a file for each request.


VERSION = 2  #: The number of changes of the search: designs of another version are not read.


class DesignFile:
    """The file of a request, of a workload with some noise, in a directory of designs.

    What is there is as good as what is designed, or it is designed anew: it is intact, answers this
    workload, and has a bound that its own error does not contradict. The rest of the bound is taken
    on trust, the sensitivities are not.
    """

    def __init__(
        self,
        directory: Path,
        workload: Workload,
        promise: Promise,
        tolerance: float,
        objective: str = "mean",
    ) -> None:
        self.workload, self.promise, self.objective = workload, promise, objective
        terms = [
            [float(term.weight).hex(), [_told(queries) for queries in term.factors]]
            for term in workload.terms
        ]
        # Floats as `hex` writes them: exact, and the same on every machine
        noise = _noise(workload, promise)
        asked = [VERSION, list(workload.sizes), terms, noise, float(tolerance).hex()]
        asked += [objective] * (objective != "mean")
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        self.path = directory / f"{digest[:32]}.npz"

    def load(self) -> StoredStrategy | None:
        """The strategy and its bound, if there is a file with both that fit."""
        with suppress(OSError, ValueError):
            stored = load_strategy(self.path)
            strategy, bound = stored
            if bound is None or strategy.sizes != self.workload.sizes:
                return None
            mechanism = MatrixMechanism(strategy, self.promise)
            variance = _objective_of(mechanism, self.workload, self.objective)
            least = bound / self.workload.weight * least_cell_variance(self.promise)
            # The least error may be rounded to a little below its bound
            if least <= variance * (1 + 1e-9):
                return stored
        return None

    def save(self, found: StoredStrategy) -> None:
        """Keep a design, in one step or not at all."""
        # Without the file only time is lost
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_strategy(self.path, *found)


def _told(queries: QuerySet) -> str:
    if queries.matrix is None:
        return queries.name
    shape, data = queries.matrix.shape, queries.matrix.astype("<f8").tobytes()
    return f"{shape} {hashlib.sha256(data).hexdigest()}"
