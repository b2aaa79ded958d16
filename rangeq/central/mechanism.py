"""The base of mechanisms of a trusted curator: noise, its audit, releases, exact variances."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, cast, overload

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign import Audit, Privacy
from mechdesign.base import Floats, Integers, Rational, bit_source, fraction, set_fields, shown
from mechdesign.noise.discrete import LARGEST_SCALE, DiscreteLaplace
from mechdesign.privacy import EPSILON_LIMIT
from mechdesign.symbolic.proof_rules import BudgetShare, CompositionProof, discrete_laplace
from rangeq.central.answers import Errors, Number
from rangeq.central.estimate import CentralEstimate, HistogramMechanism
from rangeq.central.inputs import Query, checked_shape, histogram
from rangeq.core import BoxTree, LevelInference, pairs_together, queries

# ------------------------------------------------------------------------------------------------
# Splits of a budget over the levels of a tree.


#: How epsilon is split over the levels of a tree: by a rule, or in proportion to weights, from the
#: top.
Budget: TypeAlias = Literal["equal", "geometric", "optimal"] | Sequence[float | Rational]


def equal(h: int) -> list[Fraction]:
    """The same weight for each of h levels."""
    return [Fraction(1)] * h


def geometric(h: int) -> list[Fraction]:
    """Return weights that grow by 2^(1/3) from each level to the next (Cormode et al. 2012)."""
    return [Fraction(2.0 ** (level / 3)) for level in range(h)]


def exact_split(alpha: Fraction, weights: Sequence[Fraction]) -> tuple[Fraction | None, ...]:
    """Alphas of levels whose product is exactly a given one."""
    asked = [level for level, level_weight in enumerate(weights) if level_weight]
    epsilon, total = Fraction(Privacy(alpha=alpha).epsilon), sum(weights)
    result: list[Fraction | None] = [None] * len(weights)
    rest = alpha
    for level in asked[1:]:
        result[level] = part = Privacy.from_epsilon(epsilon * weights[level] / total).alpha
        rest /= part
    if not rest < 1:
        raise ValueError("the first weight above 0 is too small a share of all weights")
    result[asked[0]] = rest
    return tuple(result)


def best_shares(tree: BoxTree) -> list[Fraction]:
    """Find shares of epsilon for a small average variance of a tree with inference."""
    # First as if no cells were missing at the ends: shares w >= 0 of sum 1 for a small sum of
    # gains[i] / (sum over l >= i of sizes[l] w[l]^2), where `sizes` are the cells below a node, and
    # `gains` what a unit of variance of a level's contrasts adds, times these. That is not convex:
    # a level without a share is a tree without it, and every such tree may have its own minimum. So
    # the search starts from equal shares and from the trees that keep every k-th level. Where cells
    # are missing, it goes on from the best with the variance as it is.
    h = tree.height
    if h == 1:
        return [Fraction(1)]
    sizes = np.array([math.prod(widths) for widths in tree.widths[1:]], dtype=np.float64)
    moments = [
        math.prod(
            pairs_together(n, width) / (width * queries(n, "all ranges"))
            for n, width in zip(tree.shape, widths, strict=True)
        )
        for widths in tree.widths[1:]
    ]
    gains = np.diff([0.0, *moments])

    def full(w: Floats) -> tuple[float, Floats]:
        precision = np.cumsum((sizes * w * w)[::-1])[::-1]
        slope = np.cumsum(gains / precision**2)
        return float((gains / precision).sum()), -2 * sizes * w * slope

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = _shares(logs)
        variance, gradient = full(w)
        return math.log(variance), w * (gradient - gradient @ w) / variance

    def value(w: Floats) -> float:
        return float(LevelInference(tree, [1 / share**2 if share else None for share in w]).mean())

    even = np.full(h, 1 / h)
    best = even
    for step in range(1, h + 1):
        start = np.full(h, -5.0 if step > 1 else 0.0)
        start[::-step] = 0.0
        w = _shares(
            scipy.optimize.minimize(
                objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
            ).x
        )
        for trial in (w, np.where(w < 1e-3 * w.max(), 0.0, w) / w[w >= 1e-3 * w.max()].sum()):
            if trial[-1] > 0 and full(trial)[0] < full(best)[0]:
                best = trial
    # A tiny share adds no precision and needs enormous noise.
    best = np.where(best > 1e-6, best, 0.0)
    if any(n % width for n, width in zip(tree.shape, tree.widths[0], strict=True)):
        asked = np.flatnonzero(best)

        def with_ends(logs: Floats) -> float:
            w = np.zeros(h)
            w[asked] = _shares(logs)
            return math.log(value(w))

        optimum = scipy.optimize.minimize(
            with_ends, np.log(best[asked]), method="L-BFGS-B", options={"maxiter": 50}
        )
        trial = np.zeros(h)
        trial[asked] = _shares(optimum.x)
        best = min(trial, best, even, key=value)
    return [Fraction(float(share)) for share in best]


def _shares(logs: Floats) -> Floats:
    # A search may try steps so far that a share, and what is divided by it, would be 0
    w = np.exp(np.maximum(logs - logs.max(), -100.0))
    return w / w.sum()


def weight(value: float | Rational) -> Fraction:
    """Return a given weight, exactly; ValueError below 0."""
    result = fraction(value, "a weight")
    if result < 0:
        raise ValueError(f"weights must be at least 0, got {shown(value)}")
    return result


LEAST_EPSILON = Fraction(1, 1 << 32)  #: The smallest epsilon of a release.

_LEAST_VARIANCE = 2.0**-1000  # under it floats would underflow

_SLACK = 1 - Fraction(1, 1 << 24)


@dataclass(frozen=True)
class CentralMechanism(HistogramMechanism):
    """The base of releases: epsilon is split over levels of counts, and noise added to each.

    Parameters
    ----------
    shape : int or sequence of int
        The number of cells of one attribute, or along each of up to 8 attributes: 2^26 in all at
        most. Places along an attribute are ``0 .. size-1``.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one release, at least 2^-32. A float stands for the binary number that
        it is. More than 1024 is treated as 1024.

    Raises
    ------
    ValueError, InexactNumber
        At construction, for a shape or epsilon outside its range.
    """

    shape: int | Sequence[int]
    epsilon: float | Rational

    privacy_source: ClassVar[str] = ""  #: Where the literature shows what `proof` proves.

    def __post_init__(self) -> None:
        set_fields(self, shape=checked_shape(self.shape))
        if self.given_epsilon < LEAST_EPSILON:
            raise ValueError(
                f"epsilon must be at least 2^-32, got {shown(self.epsilon)}: noise would drown"
                " everything"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self.shape)

    @cached_property
    def given_epsilon(self) -> Fraction:
        """The exact epsilon, at most the largest that makes a difference."""
        return min(fraction(self.epsilon, "epsilon"), Fraction(EPSILON_LIMIT))

    @cached_property
    def privacy(self) -> Privacy:
        """The claim: a rational alpha >= exp(-epsilon); neighbouring data differ by one user."""
        return Privacy.from_epsilon(self.given_epsilon)

    @cached_property
    @abstractmethod
    def shares(self) -> tuple[Fraction, ...]:
        """The part of epsilon of each level, from the top: of sum 1; 0 where it is not asked."""

    @cached_property
    def noise(self) -> tuple[DiscreteLaplace | None, ...]:
        """The noise of each level, from the top; None where it is not asked.

        A level's alpha is a rational at least exp(-epsilon * share), chosen with a slack that lets
        `audit` prove the whole.
        """
        # Privacy.from_epsilon(e).alpha <= exp(-e (1 - 2^-24)): so levels of epsilon (1 - 2^-24) in
        # all keep what it allows.
        laws = {}
        for share in set(self.shares) - {0}:
            alpha = Privacy.from_epsilon(self.given_epsilon * _SLACK * share).alpha
            if 1 - alpha < Fraction(1, LARGEST_SCALE):
                raise ValueError(
                    f"epsilon {shown(self.epsilon)} is too small for a level with"
                    f" {float(share):.3g} of it: noise would drown everything"
                )
            laws[share] = DiscreteLaplace(alpha=alpha)
        return tuple(laws.get(share) for share in self.shares)

    @cached_property
    def _audited(self) -> Audit:
        ratio = Fraction(1)
        for noise in self.noise:
            ratio = ratio if noise is None else ratio / noise.alpha
        return Audit(ratio, 1 / self.privacy.alpha, "no count above that without the user", (0, 1))

    def audit(self) -> Audit:
        """The exact worst likelihood ratio of what is sampled, and what is allowed.

        The ratio is that of the answers' probabilities given neighbouring data: the product of the
        1 / alpha of all levels, as one count of each changes, by one. ``audit().allowed`` is a
        rational at most exp(epsilon), by directed rounding; ``audit().holds`` compares exactly.
        """
        return self._audited

    def proof(self) -> CompositionProof:
        """Why a release is private, for every alpha in (0, 1): a proof that can be checked.

        A level's noise has the alpha alpha^share. One user changes one number of each level, by
        one; the others have the same noise with and without the user. Of the rounding of the
        levels' alphas it says nothing: that is for `audit`.

        Returns
        -------
        CompositionProof
            ``proof().holds`` checks every step anew; ``str`` is a short derivation.
        """
        randomiser = discrete_laplace(name="the number of a level that a user changes")
        levels = Counter(share for share in self.shares if share)
        parts = (BudgetShare(share, times, randomiser) for share, times in levels.items())
        name, source = type(self).__name__, self.privacy_source
        return CompositionProof(tuple(parts), name=name, source=source)

    def release(
        self, counts: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> CentralEstimate:
        return self.estimate(self.noisy_levels(counts, rng))

    def noisy_levels(
        self, counts: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> list[Integers]:
        """Draw the numbers of `release`: all that it tells of the histogram.

        Every call is a release of its own, and costs epsilon again.

        Parameters
        ----------
        counts, rng : as of `release`
            The histogram, and the randomness.

        Returns
        -------
        list of numpy.ndarray of int64
            As `levels`, with noise; of a level that is not asked, nothing.

        Raises
        ------
        InvalidHistogram, PrivacyViolation
            As `release`.
        """
        self.audit().require()
        source = bit_source(rng)
        exactly = histogram(counts, self.sizes)
        noisy = []
        for level, noise in zip(self.levels(exactly), self.noise, strict=True):
            noisy.append(
                np.zeros(0, dtype=np.int64)
                if noise is None
                else level + noise.draw(level.size, source).reshape(level.shape)
            )
        return noisy

    @abstractmethod
    def levels(self, counts: Integers) -> list[Integers]:
        """Return the exact numbers that are asked, level by level from the top.

        One user changes one number of each level, by one.

        Parameters
        ----------
        counts : numpy.ndarray of int64
            Of the mechanism's shape.

        Returns
        -------
        list of numpy.ndarray of int64
            One array a level.
        """

    @abstractmethod
    def estimate(self, noisy: list[Integers]) -> CentralEstimate:
        """Return the estimate from noisy numbers of all levels.

        Parameters
        ----------
        noisy : list of numpy.ndarray of int64
            As `levels`; of a level that is not asked, nothing.

        Returns
        -------
        CentralEstimate
            Answers to all ranges and boxes of cells.
        """

    def range_variance(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Number:
        """The variance of a release's answer to the range a .. b of its one attribute.

        Parameters
        ----------
        a, b : array_like
            Integers or integer arrays that broadcast, 0 <= a <= b < domain; both ends are included.

        Returns
        -------
        float or numpy.ndarray
            Squared users, of the ends' shape.

        Raises
        ------
        InvalidRange
            For other ends, and with several attributes.
        """
        return Query.range(a, b, self.sizes).by(self.errors.variance)

    @overload
    def average_variance(self, exact: Literal[False] = False) -> float: ...
    @overload
    def average_variance(self, exact: Literal[True]) -> Fraction: ...
    def average_variance(self, exact: bool = False) -> float | Fraction:
        """The mean variance over all boxes, for continuous Laplace noise, as papers print it.

        V_Avg of Qardaji et al., section 2.2: over all ranges 0 <= a <= b < size along each
        attribute, single cells included, for noise of variance 2 / (epsilon share)^2. What is drawn
        has a little less: `sampled_average_variance`. ``exact=True`` gives a Fraction.
        """
        variances = [
            2 / (self.given_epsilon * share) ** 2 if share else None for share in self.shares
        ]
        value = self.errors_of(variances).mean()
        return value if exact else float(value)

    @overload
    def sampled_average_variance(self, exact: Literal[False] = False) -> float: ...
    @overload
    def sampled_average_variance(self, exact: Literal[True]) -> Fraction: ...
    def sampled_average_variance(self, exact: bool = False) -> float | Fraction:
        """The mean of `variance` over all boxes, of the discrete noise that is drawn."""
        value = self.errors_of(self.noise_variances).mean()
        return value if exact else float(value)

    @cached_property
    def noise_variances(self) -> list[Fraction | None]:
        """The variance of the noise of each level, from the top; None where it is not asked."""
        return [None if noise is None else noise.variance for noise in self.noise]

    @cached_property
    def rounded_variances(self) -> list[float | None]:
        """`noise_variances` as floats, none of them 0."""
        return [
            None if variance is None else max(float(variance), _LEAST_VARIANCE)
            for variance in self.noise_variances
        ]

    @cached_property
    def errors(self) -> Errors:
        return self.errors_of(self.rounded_variances)

    @abstractmethod
    def errors_of(self, variances: Sequence[Any]) -> Errors:
        """Return the variances of all queries, for noise of these variances.

        Parameters
        ----------
        variances : sequence of float or Fraction or None
            By level, from the top; None where it is not asked. Fractions give exact results.

        Returns
        -------
        Errors
            In squared users.
        """
