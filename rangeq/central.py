"""Histograms of ordered cells from a trusted curator: a noisy hierarchy, released once, that answers every range of cells.

The curator holds the exact number of people in each of D ordered cells and adds noise; people's data reach the curator as they are
(the local protocols of this package need no such trust). Two data sets are neighbours when one has one person more. Then one
count of every level of a tree changes, by one.

`Flat` asks for the cells alone; `Hierarchy` for the nodes of a tree over them, all but the root (Qardaji, Yang, Li 2013; Hay et
al. 2010); `Wavelet` for Haar coefficients (Xiao, Wang, Gehrke 2010). Noise is drawn exactly, see `rangeq.discrete`.

>>> import numpy as np
>>> tree = Hierarchy(domain=256, epsilon=1.0, branching=16)
>>> round(tree.average_variance(), 2), round(Wavelet(256, 1.0).average_variance(), 2)
(79.23, 221.13)
>>> estimate = tree.release(np.full(256, 1000), rng=np.random.default_rng(1))
>>> abs(estimate.range(0, 99) - 100_000) < 100
True

Unlike the fractions of local protocols, all answers here are numbers of people. The total number of people is not taken as known.

Literature
----------
Qardaji, Yang, Li 2013: Understanding hierarchical methods for differentially private histograms (PVLDB 6(14)).
Hay, Rastogi, Miklau, Suciu 2010: Boosting the accuracy of differentially private histograms through consistency.
Xiao, Wang, Gehrke 2010: Differential privacy via wavelet transforms.
Cormode, Procopiuc, Srivastava, Shen, Yu 2012: Differentially private spatial decompositions.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, TypeGuard, overload

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from frequency.estimate import normal_quantile
from mechdesign import Audit, Privacy
from mechdesign.privacy import EPSILON_LIMIT
from mechdesign.rational import Rational, exact
from mechdesign.sampling import bit_source
from mechdesign.text import shown
from rangeq.discrete import DiscreteLaplace

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Answer: TypeAlias = float | Floats
"""A float for a range given by two integers, an array for ranges given by arrays."""

LARGEST_DOMAIN = 1 << 26
LARGEST_TOTAL = 1 << 52
"""People that a histogram may hold: up to there, noisy sums of counts are exact in 64-bit integers and in floats."""

LEAST_EPSILON = Fraction(1, 1 << 32)
_SLACK = 1 - Fraction(1, 1 << 24)


class InvalidHistogram(ValueError):
    """Counts that are not a histogram over the domain. Nothing was drawn. ``index`` is the first bad cell, or None."""

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(f"{message}; nothing was drawn")


class InvalidRange(ValueError):
    """Ends of ranges that are not integers with 0 <= a <= b < domain. ``index`` is the first bad one, None if it is their type."""

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(message)


class Interval(NamedTuple):
    """Ends of confidence intervals, shaped like the ranges."""

    low: Answer
    high: Answer


class _Spectrum(NamedTuple):
    """The variance of a range r is the sum over i of ``(q(sizes[i]) - q(sizes[i-1])) * inverse[i]``.

    There q(s) is the squared length of r after averaging over blocks of s cells, and 0 for what is before the first size.

    Why: both least squares on a complete tree and the Haar wavelet have the generalised Haar basis as eigenvectors of their
    precision matrix: the contrasts among the children of a node, with one eigenvalue a level, and the vector of ones.
    """

    sizes: tuple[int, ...]
    inverse: tuple[Fraction, ...]

    def mean(self, moments: Sequence[Fraction]) -> Fraction:
        """The variance of a range whose q(sizes[i]) is moments[i]."""
        return sum((m - n) * v for m, n, v in zip(moments, [Fraction(0), *moments], self.inverse, strict=False)) + Fraction(0)


# ------------------------------------------------------------------------------------------------ averages over all ranges


def _moment(domain: int, size: int) -> Fraction:
    """The mean over all ranges of q(size): the sum over blocks of size cells of (its cells in the range)^2 / size. O(1)."""
    return Fraction(_pairs(domain, size), size * (domain * (domain + 1) // 2))


def _pairs(domain: int, size: int) -> int:
    """How many triples (range, cell of it, cell of it) there are with both cells in one block of size cells. The last block may
    reach beyond the domain. Cells i and k are together in (min + 1)(D - max) ranges: a polynomial, summed in closed form.
    """

    def pairs(width: int, blocks: int, first: int, squares: int) -> int:
        # Over pairs of cells of a block at L: the sum of (L + 1 + min)(D - L - max); then over blocks, sums of 1, L and L^2.
        least = (width - 1) * width * (2 * width - 1) // 6
        most = width * width * (width - 1) - least
        products = (width * (width - 1) // 2) ** 2
        left, right = first + blocks, domain * blocks - first
        both = domain * blocks + first * (domain - 1) - squares
        return width * width * both - left * most + right * least - products * blocks

    full, rest = divmod(domain, size)
    total = pairs(size, full, size * (full * (full - 1) // 2), size * size * ((full - 1) * full * (2 * full - 1) // 6))
    if rest:
        total += pairs(rest, 1, full * size, (full * size) ** 2)
    return total


def _containing(domain: int, size: int) -> int:
    """How many pairs (block, range) there are with the block of size cells inside the range: an exact sum, O(1)."""
    full = domain // size
    first, squares = size * (full * (full - 1) // 2), size * size * ((full - 1) * full * (2 * full - 1) // 6)
    return full * (domain - size + 1) + first * (domain - size) - squares  # of (L + 1)(D - L - size + 1)


def _uses(domain: int, fanouts: Sequence[int], d: int = 1) -> list[int]:
    """For each level from the top, how many nodes it gives to the answers of all ranges (equation (2), but with no root to ask).

    A node is used by the ranges that contain it and not its parent; the root is not asked, so it spares its children nothing.
    """
    sizes = _sizes(fanouts)[1:]
    inside = [_containing(domain, size) ** d for size in sizes]
    return [inside[0]] + [n - b**d * m for n, m, b in zip(inside[1:], inside, fanouts[1:], strict=False)]


def _sizes(fanouts: Sequence[int]) -> tuple[int, ...]:
    """Cells under a node of each level, from the root to the leaves."""
    sizes = [1]
    for b in reversed(fanouts):
        sizes.append(sizes[-1] * b)
    return tuple(reversed(sizes))


def _tree_spectrum(fanouts: Sequence[int], variances: Sequence[Fraction | None], d: int = 1) -> _Spectrum:
    """Least squares on a tree whose level l has noise of variance variances[l]; None: it is not asked.

    A contrast among children of a node above level l is seen by the levels from l down, by each with precision size / variance.
    The root is not asked, so the total is seen like the contrasts among its children.
    """
    sizes = _sizes(fanouts)[1:]
    inverse, precision = [], Fraction(0)
    for size, variance in zip(reversed(sizes), reversed(variances), strict=True):
        precision += Fraction(0) if variance is None else size**d / variance
        inverse.append(1 / precision)
    return _Spectrum(sizes, tuple(reversed(inverse)))


# ------------------------------------------------------------------------------------------------ estimates


class CentralEstimate(ABC):
    """Answers to every range of cells, as numbers of people. Unbiased: they may be negative or fractional."""

    def __init__(self, mechanism: CentralMechanism) -> None:
        self.mechanism = mechanism

    @overload
    def range(self, a: int, b: int) -> float: ...
    @overload
    def range(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Answer: ...
    def range(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Answer:
        """How many people are in the cells a .. b, both included.

        Parameters
        ----------
        a, b
            Integers or integer arrays that broadcast, 0 <= a <= b < domain.

        Raises
        ------
        InvalidRange
            For anything else.
        """
        low, end = self.mechanism._ends(a, b)
        return _scalar(self._between(low, end))

    @overload
    def prefix(self, b: int) -> float: ...
    @overload
    def prefix(self, b: npt.ArrayLike) -> Answer: ...
    def prefix(self, b: npt.ArrayLike) -> Answer:
        """How many people are in the cells 0 .. b, b included; InvalidRange unless 0 <= b < domain."""
        return self.range(0, b)

    def cdf(self) -> Floats:
        """Shape (domain,): every prefix over the estimated total, ending with 1; not made monotone. NaN unless the total is > 0."""
        prefixes = np.atleast_1d(self.prefix(np.arange(self.mechanism.domain)))
        return prefixes / prefixes[-1] if prefixes[-1] > 0 else np.full_like(prefixes, np.nan)

    @property
    @abstractmethod
    def counts(self) -> Floats:
        """Shape (domain,): the number of people in each cell."""

    def variance(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Answer:
        """The variance of ``range(a, b)``, from the noise that was drawn. It does not depend on the data."""
        return self.mechanism.variance(a, b)

    def interval(self, a: npt.ArrayLike, b: npt.ArrayLike, confidence: float = 0.95) -> Interval:
        """Intervals that each hold the true count with about this probability or more.

        Between a single noise and the sum of many, the answers' errors lie between Laplace and normal: the wider of the two
        quantiles is taken, and half a person more, because noise is in whole people. Not clipped at 0.
        """
        z = max(normal_quantile(confidence), -math.log1p(-confidence) / math.sqrt(2))
        value, half = self.range(a, b), z * np.sqrt(self.variance(a, b)) + 0.5
        return Interval(value - half, value + half)

    @abstractmethod
    def _between(self, low: Ints, end: Ints) -> Floats:
        """The sums of the cells low .. end-1, one-dimensional or zero-dimensional."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.mechanism!r}>"


class _Summed(CentralEstimate):
    """An estimate that adds up: a range is a difference of two prefixes."""

    def __init__(self, mechanism: CentralMechanism, starts: Floats, cells: Floats) -> None:
        super().__init__(mechanism)
        self._starts, self._cells = starts, cells
        self._cells.setflags(write=False)

    @property
    def counts(self) -> Floats:
        return self._cells

    def _between(self, low: Ints, end: Ints) -> Floats:
        return self._starts[end] - self._starts[low]


class _Layered(CentralEstimate):
    """An estimate that adds the fewest nodes that make up a range (Qardaji et al., section 3.2)."""

    def __init__(self, mechanism: Hierarchy, levels: list[Ints]) -> None:
        super().__init__(mechanism)
        self._fanouts = mechanism.fanouts
        self._sums = [np.concatenate([[0], np.cumsum(level)]) for level in levels]
        self._cells = levels[-1][: mechanism.domain].astype(np.float64)
        self._cells.setflags(write=False)

    @property
    def counts(self) -> Floats:
        return self._cells

    def _between(self, low: Ints, end: Ints) -> Floats:
        total = np.zeros(low.shape, dtype=np.int64)
        for level, first, second, third, fourth in _nodes(self._fanouts, low, end):
            sums = self._sums[level]
            total += sums[second] - sums[first] + sums[fourth] - sums[third]
        return total.astype(np.float64)


def _nodes(fanouts: Sequence[int], low: Ints, end: Ints) -> Iterator[tuple[int, Ints, Ints, Ints, Ints]]:
    """Of each level from the leaves up, the nodes first .. second-1 and third .. fourth-1 that make up the cells low .. end-1."""
    for level in range(len(fanouts) - 1, 0, -1):
        b = fanouts[level]
        up_low, up_end = -(-low // b), end // b
        spent = up_low >= up_end  # no parent is inside: all that is left is taken here
        yield level, low, np.where(spent, end, up_low * b), np.where(spent, end, up_end * b), end
        low, end = np.where(spent, 0, up_low), np.where(spent, 0, up_end)
    yield 0, low, end, end, end


def _scalar(values: npt.NDArray[np.float64]) -> Answer:
    return float(values) if values.ndim == 0 else values


# ------------------------------------------------------------------------------------------------ mechanisms


@dataclass(frozen=True)
class CentralMechanism(ABC):
    """What all releases share: a budget, split over levels of counts each of which one person changes by one in all.

    Parameters
    ----------
    domain
        The number of cells, 1 to 2^26; cells are ``0 .. domain-1``.
    epsilon
        The privacy loss of one release, at least 2^-32. A float stands for the binary number that it is. More than 1024 is
        treated as 1024.

    Raises
    ------
    ValueError, InexactNumber
        At construction, for a domain or epsilon outside its range.
    """

    domain: int
    epsilon: float | Rational

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", _whole("domain", self.domain, 1, LARGEST_DOMAIN))
        if self._epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least 2^-32, got {shown(self.epsilon)}: noise would drown everything")

    @cached_property
    def _epsilon(self) -> Fraction:
        return min(_fraction(self.epsilon, "epsilon"), Fraction(EPSILON_LIMIT))

    @cached_property
    def privacy(self) -> Privacy:
        """The claim: a rational alpha >= exp(-epsilon), neighbours being data sets that differ by one person."""
        return Privacy.from_epsilon(self._epsilon)

    @cached_property
    @abstractmethod
    def shares(self) -> tuple[Fraction, ...]:
        """The part of epsilon that each level gets, from the top; they sum to 1. A level with 0 is not asked."""

    @cached_property
    def noise(self) -> tuple[DiscreteLaplace | None, ...]:
        """The noise of each level, from the top; None where it is not asked.

        A level's alpha is a rational at least exp(-epsilon * share), chosen with a slack that lets `audit` prove the whole.
        """
        # Privacy.from_epsilon(e).alpha <= exp(-e (1 - 2^-24)): so levels of epsilon (1 - 2^-24) in all keep what it allows.
        return tuple(
            DiscreteLaplace(Privacy.from_epsilon(self._epsilon * _SLACK * share).alpha) if share else None for share in self.shares
        )

    @cached_property
    def _audited(self) -> Audit:
        ratio = Fraction(1)
        for noise in self.noise:
            ratio = ratio if noise is None else ratio / noise.alpha
        return Audit(ratio, 1 / self.privacy.alpha, "no count above that without the person", (0, 1))

    def audit(self) -> Audit:
        """The exact worst ratio Pr[answers | data] / Pr[answers | neighbouring data] of what is sampled, and what is allowed.

        The ratio is the product of the 1 / alpha of all levels: one count of each changes, by one. ``audit().allowed`` is a
        rational at most exp(epsilon), by directed rounding; ``audit().holds`` compares exactly.
        """
        return self._audited

    def release(self, counts: npt.ArrayLike, rng: np.random.Generator | None = None) -> CentralEstimate:
        """Noise, once, and everything that follows from it.

        Every call is a release of its own, and costs epsilon again.

        Parameters
        ----------
        counts
            Shape (domain,): how many people are in each cell. Integers >= 0 of an integer type, of sum at most 2^52.
        rng
            None for the operating system's randomness, or a generator for results that can be repeated.

        Raises
        ------
        InvalidHistogram
            For counts that are anything else, before anything is drawn.
        PrivacyViolation
            Never, unless the audit fails.
        """
        self.audit().require()
        source = bit_source(rng)
        exactly = _histogram(counts, self.domain)
        noisy = []
        for level, noise in zip(self._levels(exactly), self.noise, strict=True):
            noisy.append(np.zeros(0, dtype=np.int64) if noise is None else level + noise.draw(len(level), source))
        return self._estimate(noisy)

    @abstractmethod
    def _levels(self, counts: Ints) -> list[Ints]:
        """The exact numbers that are asked, level by level from the top. One person changes one number of each level, by one."""

    @abstractmethod
    def _estimate(self, noisy: list[Ints]) -> CentralEstimate: ...

    def variance(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Answer:
        """The variance of a release's answer to the range a .. b, both ends included, from that of the discrete noise.

        InvalidRange unless 0 <= a <= b < domain.
        """
        low, end = self._ends(a, b)
        return _scalar(self._variances(low, end))

    def _variances(self, low: Ints, end: Ints) -> Floats:
        result, before = np.zeros(low.shape), np.zeros(low.shape)
        for size, inverse in zip(*self._sampled, strict=True):
            first, last = low // size, end // size
            left, right = ((first + 1) * size - low).astype(np.float64), (end - last * size).astype(np.float64)
            apart = (left * left + right * right) / size + (last - first - 1) * float(size)
            now = np.where(first == last, (end - low).astype(np.float64) ** 2 / size, apart)
            result += (now - before) * float(inverse)
            before = now
        return result

    @overload
    def average_variance(self, exact: Literal[False] = False) -> float: ...
    @overload
    def average_variance(self, exact: Literal[True]) -> Fraction: ...
    def average_variance(self, exact: bool = False) -> float | Fraction:
        """The mean variance over all ranges 0 <= a <= b < domain, single cells included, for continuous Laplace noise of variance
        2 / (epsilon share)^2: the number that papers print (Qardaji et al., section 2.2, V_Avg).

        What is drawn has a little less: `sampled_average_variance`. ``exact=True`` gives a Fraction.
        """
        variances = [2 / (self._epsilon * share) ** 2 if share else None for share in self.shares]
        value = self._average(variances)
        return value if exact else float(value)

    @overload
    def sampled_average_variance(self, exact: Literal[False] = False) -> float: ...
    @overload
    def sampled_average_variance(self, exact: Literal[True]) -> Fraction: ...
    def sampled_average_variance(self, exact: bool = False) -> float | Fraction:
        """The mean of ``variance(a, b)`` over all ranges: as `average_variance`, but of the discrete noise that is drawn."""
        value = self._average(self._noise_variances)
        return value if exact else float(value)

    @cached_property
    def _noise_variances(self) -> list[Fraction | None]:
        return [None if noise is None else noise.variance for noise in self.noise]

    @cached_property
    def _sampled(self) -> _Spectrum:
        return self._spectrum(self._noise_variances)

    @abstractmethod
    def _spectrum(self, variances: Sequence[Fraction | None]) -> _Spectrum: ...

    def _average(self, variances: Sequence[Fraction | None]) -> Fraction:
        spectrum = self._spectrum(variances)
        return spectrum.mean([_moment(self.domain, size) for size in spectrum.sizes])

    def _ends(self, a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Ints, Ints]:
        """``a`` and ``b + 1``, broadcast; InvalidRange for what is not a range."""
        first, last = np.asarray(a), np.asarray(b)
        for name, ends in (("a", first), ("b", last)):
            if ends.dtype.kind not in "iu" and ends.size:
                raise InvalidRange(f"the ends of ranges must be integers, got {name} of type {ends.dtype}")
        try:
            first, last = np.broadcast_arrays(first, last)
        except ValueError:
            raise InvalidRange(
                f"the ends of ranges must have shapes that go together, got {first.shape} and {last.shape}"
            ) from None
        bad = (first < 0) | (last >= self.domain) | (first > last)
        if bad.any():
            k = int(np.argmax(bad))
            pair = f"[{first.ravel()[k]}, {last.ravel()[k]}]"
            raise InvalidRange(f"range {k}, {pair}, is not one of 0 <= a <= b < {self.domain}", k)
        return first.astype(np.int64), last.astype(np.int64) + 1


@dataclass(frozen=True)
class Flat(CentralMechanism):
    """Every cell with noise of its own, and ranges that add them up: the baseline (Qardaji et al., section 3.1).

    The variance of a range is its length times that of the noise.
    """

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def _levels(self, counts: Ints) -> list[Ints]:
        return [counts]

    def _estimate(self, noisy: list[Ints]) -> CentralEstimate:
        starts = np.concatenate([[0], np.cumsum(noisy[0])])
        return _Summed(self, starts.astype(np.float64), noisy[0].astype(np.float64))

    def _spectrum(self, variances: Sequence[Fraction | None]) -> _Spectrum:
        return _tree_spectrum((self.domain,), variances)


Budget: TypeAlias = Literal["equal", "geometric", "optimal"] | Sequence[float | Rational]


@dataclass(frozen=True)
class Hierarchy(CentralMechanism):
    """A tree of counts over the cells: H_b, or H_b^c with inference (Qardaji et al., sections 3.2 and 3.3).

    The root is not asked. With inference the answers are the least-squares estimates from all noisy counts (weighted by the levels'
    variances; Hay et al. for equal ones), which also add up; without, a range is the sum of the fewest nodes that make it up.

    A domain that is no product of the branchings is padded with empty cells at the right. They get noise like all others, but for
    whole children of the root, which nothing else depends on and which are left out; answers never show them.

    Parameters
    ----------
    branching
        An integer b >= 2: every node has b children, the root as few as needed: the least h with b^h >= domain levels.
        Or a list from the top, [2, 16, 16] for 2 children of the root; the product must reach the domain, and that of all
        but the first must not.
    inference
        Whether to combine all levels by least squares.
    budget
        How epsilon is split: "equal" over levels; "geometric", a level having 2^(1/3) times as much as the one
        above (Cormode et al. 2012); "optimal", for the smallest average variance: in closed form without inference, and with it
        the best of several local searches, never worse than equal ones. Or weights >= 0, one a level from the top; a level of
        weight 0 is not asked (with inference, and not the leaves).

    Attributes
    ----------
    fanouts
        The number of children of nodes, from the root down, as really used.
    """

    branching: int | Sequence[int]
    inference: bool = True
    budget: Budget = "equal"
    fanouts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.branching, (int, np.integer)):
            object.__setattr__(self, "branching", _whole("branching", self.branching, 2, LARGEST_DOMAIN))
        elif isinstance(self.branching, (list, tuple, np.ndarray)) and len(self.branching):
            numbers = tuple(_whole("each branching", b, 2, LARGEST_DOMAIN) for b in self.branching)
            object.__setattr__(self, "branching", numbers)
        else:
            raise ValueError(f"branching must be an integer >= 2 or a list of them, got {shown(self.branching)}")
        object.__setattr__(self, "fanouts", _fanouts(self.domain, self.branching))
        if not isinstance(self.inference, (bool, np.bool_)):
            raise TypeError(f"inference must be True or False, got {shown(self.inference)}")
        if not isinstance(self.budget, str):
            object.__setattr__(self, "budget", tuple(self.budget))
        self.noise  # noqa: B018  a budget that cannot be used is found here

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        h = len(self.fanouts)
        if isinstance(self.budget, str):
            if self.budget not in ("equal", "geometric", "optimal"):
                raise ValueError(f"budget must be 'equal', 'geometric', 'optimal' or weights, got {self.budget!r}")
            weights = {"equal": _equal, "geometric": _geometric, "optimal": self._optimal}[self.budget](h)
        else:
            weights = [_weight(w) for w in self.budget]
            if len(weights) != h or weights[-1] == 0 or (0 in weights and not self.inference):
                raise ValueError(
                    f"budget must be {h} weights >= 0, one a level from the top, positive for the leaves and, "
                    f"without inference, for all levels; got {shown(self.budget)}"
                )
        total = sum(weights)
        return tuple(weight / total for weight in weights)

    def _optimal(self, h: int) -> list[Fraction]:
        if not self.inference:
            # Minimise the sum of uses / share^2 over shares of sum 1: shares as the cube roots.
            return [Fraction(math.exp(math.log(n) / 3)) for n in _uses(self.domain, self.fanouts)]
        sizes = _sizes(self.fanouts)[1:]
        moments = [float(_moment(self.domain, size)) for size in sizes]
        return _best_shares(np.array(sizes, dtype=np.float64), np.diff([0.0, *moments]))

    def _spectrum(self, variances: Sequence[Fraction | None]) -> _Spectrum:
        return _tree_spectrum(self.fanouts, variances)

    def _average(self, variances: Sequence[Fraction | None]) -> Fraction:
        return (
            super()._average(variances)
            if self.inference
            else _node_average(_uses(self.domain, self.fanouts), variances, self.domain)
        )

    def _variances(self, low: Ints, end: Ints) -> Floats:
        if self.inference:
            return super()._variances(low, end)
        result = np.zeros(low.shape)
        for level, first, second, third, fourth in _nodes(self.fanouts, low, end):
            variance = self._noise_variances[level]
            assert variance is not None  # no level is left out without inference
            result += (second - first + fourth - third) * float(variance)
        return result

    def _levels(self, counts: Ints) -> list[Ints]:
        level = np.zeros(math.prod(self.fanouts), dtype=np.int64)
        level[: len(counts)] = counts
        levels = [level]
        for b in reversed(self.fanouts[1:]):
            level = level.reshape(-1, b).sum(axis=1)
            levels.append(level)
        return levels[::-1]

    def _estimate(self, noisy: list[Ints]) -> CentralEstimate:
        if not self.inference:
            return _Layered(self, noisy)
        precisions = [0.0 if variance is None else 1 / float(variance) for variance in self._noise_variances]
        # Up: the best estimate of a node from itself and what is below it (weighted averaging), with its precision.
        below = [noisy[-1].astype(np.float64)]
        precision = precisions[-1]
        for level in range(len(noisy) - 2, -1, -1):
            b = self.fanouts[level + 1]
            children = below[-1].reshape(-1, b).sum(axis=1)
            own, theirs = precisions[level], precision / b
            below.append((own * noisy[level] + theirs * children) / (own + theirs) if own else children)
            precision = own + theirs
        # Down: what a parent knows better than its children together is shared among them (mean consistency). The prefix of
        # every node is carried along, so that rounding errors grow with the depth and not with the number of cells.
        nodes = below.pop()
        starts = np.cumsum(nodes) - nodes
        for b in self.fanouts[1:]:
            children = below.pop().reshape(-1, b)
            children = children + ((nodes - children.sum(axis=1)) / b)[:, None]
            starts = (starts[:, None] + np.cumsum(children, axis=1) - children).ravel()
            nodes = children.ravel()
        return _Summed(self, np.append(starts, starts[-1] + nodes[-1])[: self.domain + 1], nodes[: self.domain].copy())


@dataclass(frozen=True)
class Wavelet(CentralMechanism):
    """Privelet: noise on the Haar coefficients (Xiao, Wang, Gehrke 2010; Qardaji et al., section 4).

    Asked are the total and, for each inner node of the binary tree, the difference left half - right half: 1 + log2 D levels of
    numbers, of each of which a person changes one by one. The paper's coefficients are these differences over the number of cells
    below, and its weights multiply by that number again: the noise is the same. A domain that is no power of two is padded with
    empty cells at the right, which answers never show.
    """

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        levels = 1 + (self.domain - 1).bit_length()
        return (Fraction(1, levels),) * levels

    def _spectrum(self, variances: Sequence[Fraction | None]) -> _Spectrum:
        # A difference is a coordinate times the squared length of its vector: the number of cells under the node.
        h = len(variances) - 1
        noise = [variance for variance in variances if variance is not None]
        sizes = [1 << (h - level) for level in range(h + 1)]
        return _Spectrum(tuple(sizes), tuple(v / s for v, s in zip(noise, [sizes[0], *sizes], strict=False)))

    def _levels(self, counts: Ints) -> list[Ints]:
        sums = np.zeros(1 << (len(self.shares) - 1), dtype=np.int64)
        sums[: len(counts)] = counts
        levels = []
        while len(sums) > 1:
            halves = sums.reshape(-1, 2)
            levels.append(halves[:, 0] - halves[:, 1])
            sums = halves.sum(axis=1)
        return [sums, *levels[::-1]]

    def _estimate(self, noisy: list[Ints]) -> CentralEstimate:
        nodes, starts = noisy[0].astype(np.float64), np.zeros(1)
        for differences in noisy[1:]:
            left = (nodes + differences) / 2
            starts = np.stack([starts, starts + left], axis=1).ravel()
            nodes = np.stack([left, nodes - left], axis=1).ravel()
        return _Summed(self, np.append(starts, starts[-1] + nodes[-1])[: self.domain + 1], nodes[: self.domain].copy())


# ------------------------------------------------------------------------------------------------ budgets


def _equal(h: int) -> list[Fraction]:
    return [Fraction(1)] * h


def _geometric(h: int) -> list[Fraction]:
    return [Fraction(2.0 ** (level / 3)) for level in range(h)]


def _best_shares(sizes: Floats, gains: Floats) -> list[Fraction]:
    """Shares w >= 0 of sum 1 for a small sum over i of gains[i] / (sum over levels l >= i of sizes[l] w[l]^2).

    That is not convex: a level without a share is a tree without it, and every such tree may have its own minimum. So the search
    starts from equal shares and from the trees that keep every k-th level.
    """
    h = len(sizes)
    if h == 1:
        return [Fraction(1)]

    def value(w: Floats) -> tuple[float, Floats]:
        precision = np.cumsum((sizes * w * w)[::-1])[::-1]
        slope = np.cumsum(gains / precision**2)
        return float((gains / precision).sum()), -2 * sizes * w * slope

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = np.exp(logs - logs.max())
        total = w.sum()
        w /= total
        found, gradient = value(w)
        return math.log(found), w * (gradient - gradient @ w) / found

    best = np.full(h, 1 / h)
    for step in range(1, h + 1):
        start = np.full(h, -5.0 if step > 1 else 0.0)
        start[::-step] = 0.0
        logs = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        w = np.exp(logs - logs.max())
        for trial in (w / w.sum(), np.where(w < 1e-3 * w.max(), 0.0, w) / w[w >= 1e-3 * w.max()].sum()):
            if trial[-1] > 0 and value(trial)[0] < value(best)[0]:
                best = trial
    # A share that is next to nothing buys nothing and asks for enormous noise.
    return [Fraction(float(share)) if share > 1e-6 else Fraction(0) for share in best]


def _weight(value: float | Rational) -> Fraction:
    weight = _fraction(value, "a weight")
    if weight < 0:
        raise ValueError(f"weights must be at least 0, got {shown(value)}")
    return weight


# ------------------------------------------------------------------------------------------------ which tree


class Branching(NamedTuple):
    """A tree and its average variance over all ranges, as `Hierarchy.average_variance`."""

    fanouts: tuple[int, ...]
    average_variance: float


class Branchings(NamedTuple):
    """The best tree, and the best few with it first."""

    best: Branching
    table: tuple[Branching, ...]

    def __str__(self) -> str:
        width = max(len(str(list(row.fanouts))) for row in self.table)
        return "\n".join(f"{list(row.fanouts)!s:<{width}}  {row.average_variance:>14.4f}" for row in self.table)


def best_branching(domain: int, epsilon: float | Rational, padded: bool = True, alternatives: int = 10) -> Branchings:
    """The tree with the smallest average variance, of equal budgets and with inference, and the best alternatives to it.

    Exhaustive: over all lists that `Hierarchy` takes, integers being among them, and [domain], which is flat. Lists whose lower
    levels already cost more than the best trees are passed over with all that begins below like them. Epsilon scales all
    variances alike. A domain of 2^12 takes a fraction of a second, one of 2^16 some seconds, one of 2^20 minutes; with
    ``padded=False`` all are quick.

    Parameters
    ----------
    padded
        False: only lists whose product is the domain.
    alternatives
        How many trees the table has at most, at least 1.

    >>> best_branching(512, 1.0).best.fanouts, best_branching(512, 1.0, padded=False).best.fanouts
    ((24, 22), (8, 8, 8))
    """
    flat = Flat(domain, epsilon)
    _whole("alternatives", alternatives, 1, LARGEST_DOMAIN)
    domain, unit = flat.domain, 2 / flat._epsilon**2
    ranges = domain * (domain + 1) // 2
    moments = np.full(domain + 1, np.nan)  # by size; NaN for sizes that are not allowed, which no comparison lets through
    for size in range(1, domain + 1):
        if padded or domain % size == 0:
            moments[size] = _pairs(domain, size) / (size * ranges)
    best: list[tuple[float, tuple[int, ...]]] = []  # a heap of minus the variance: the worst of the best is first

    def value(fanouts: tuple[int, ...]) -> float:
        h = len(fanouts)
        spectrum = _tree_spectrum(fanouts, [unit * h**2] * h)
        return float(spectrum.mean([_moment(domain, size) for size in spectrum.sizes]))

    # Enough trees are known to be this good, so nothing worse needs looking at.
    known = sorted(value(f) for f in {_fanouts(domain, b) for b in range(2, min(domain, 256) + 1)}) if padded else []
    ceiling = known[alternatives - 1] / float(unit) * (1 + 1e-9) if len(known) >= alternatives else math.inf

    def worst() -> float:
        return min(ceiling, -best[0][0]) if len(best) == alternatives else ceiling

    def grow(below: tuple[int, ...], size: int, precision: float, settled: float) -> None:
        """Trees that end with the levels ``below``, whose topmost nodes have ``size`` cells.

        ``settled`` is the part of the variance from contrasts below those nodes, ``precision`` that of the contrasts above.
        """
        levels = len(below) + 1
        tree = -(levels**2) * (settled + float(moments[size]) / precision), (-(-domain // size), *below)
        (heapq.heappush if len(best) < alternatives else heapq.heappushpop)(best, tree)
        above = np.arange(2 * size, domain, size)
        lower = settled + (moments[size] - moments[above]) / precision
        # The contrasts further up cost at least this: the blocks there are smaller than the domain, and each at most half the next.
        least = (levels + 1) ** 2 * (lower + moments[above] / (precision + above + 2 * domain)) * (1 - 1e-9)
        for k in np.flatnonzero(least < worst()):
            if least[k] < worst():
                grow((int(above[k]) // size, *below), int(above[k]), precision + float(above[k]), float(lower[k]))

    grow((), 1, 1.0, 0.0)
    table = [Branching(fanouts, value(fanouts)) for _, fanouts in sorted(best, reverse=True)]
    return Branchings(table[0], tuple(table))


# ------------------------------------------------------------------------------------------------ several dimensions


@overload
def flat_average_variance(side: int, d: int, epsilon: float | Rational, exact: Literal[False] = False) -> float: ...
@overload
def flat_average_variance(side: int, d: int, epsilon: float | Rational, exact: Literal[True]) -> Fraction: ...
def flat_average_variance(side: int, d: int, epsilon: float | Rational, exact: bool = False) -> float | Fraction:
    """The mean variance over all boxes of a grid of side^d cells, each cell having Laplace noise of variance 2 / epsilon^2.

    ``((side + 2) / 3)^d * 2 / epsilon^2`` (Qardaji et al., section 3.1, for each dimension).
    """
    value = _grid(side, d, epsilon)[1] * Fraction(side + 2, 3) ** d
    return value if exact else float(value)


@overload
def hierarchy_average_variance(
    side: int,
    d: int,
    branching: int | Sequence[int],
    epsilon: float | Rational,
    inference: bool = True,
    exact: Literal[False] = False,
) -> float: ...
@overload
def hierarchy_average_variance(
    side: int, d: int, branching: int | Sequence[int], epsilon: float | Rational, inference: bool = True, *, exact: Literal[True]
) -> Fraction: ...
def hierarchy_average_variance(
    side: int,
    d: int,
    branching: int | Sequence[int],
    epsilon: float | Rational,
    inference: bool = True,
    exact: bool = False,
) -> float | Fraction:
    """The mean variance over all boxes of a grid of side^d cells, for a tree that splits every dimension at each level.

    A node has branching^d children (Qardaji et al., section 2.2); the root is not asked; epsilon is split equally; Laplace noise
    of variance 2 / epsilon_l^2. For d = 1 it is `Hierarchy.average_variance`.

    Parameters
    ----------
    branching
        In each dimension; as for `Hierarchy`.
    inference
        Least squares, or the fewest nodes that make up a box.
    """
    side, unit = _grid(side, d, epsilon)
    fanouts = Hierarchy(side, epsilon, branching).fanouts
    variances = [unit * len(fanouts) ** 2] * len(fanouts)
    if inference:
        spectrum = _tree_spectrum(fanouts, variances, d)
        value = spectrum.mean([_moment(side, size) ** d for size in spectrum.sizes])
    else:
        value = _node_average(_uses(side, fanouts, d), variances, side, d)
    return value if exact else float(value)


def _grid(side: int, d: int, epsilon: float | Rational) -> tuple[int, Fraction]:
    """The side, checked, and the variance 2 / epsilon^2."""
    _whole("d", d, 1, 64)
    flat = Flat(side, epsilon)
    return flat.domain, 2 / flat._epsilon**2


def _node_average(uses: Sequence[int], variances: Sequence[Fraction | None], side: int, d: int = 1) -> Fraction:
    total = sum((n * v for n, v in zip(uses, variances, strict=True) if v is not None), Fraction(0))
    return total / (side * (side + 1) // 2) ** d


# ------------------------------------------------------------------------------------------------ what people hand over


def _fanouts(domain: int, branching: int | Sequence[int]) -> tuple[int, ...]:
    """Children of a node of each level, the root's cut to those that reach into the domain."""
    if isinstance(branching, int):
        levels = 1
        while branching**levels < domain:
            levels += 1
        branching = (branching,) * levels
    below = math.prod(branching[1:])
    if below * branching[0] < domain or (len(branching) > 1 and below >= domain):
        raise ValueError(
            f"the product of the branchings must reach the domain, {domain}, and that of all but the first must not; "
            f"got {shown(list(branching))}"
        )
    return (-(-domain // below), *branching[1:])


def _fraction(value: float | Rational, name: str) -> Fraction:
    """A float as the binary number that it is; anything else must be exact. ValueError for infinities and NaN."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
        return Fraction(float(value))
    return exact(value, name)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _whole(name: str, value: object, least: int, largest: int) -> int:
    if not _is_integer(value) or not least <= value <= largest:
        raise ValueError(f"{name} must be an integer from {least} to {largest}, got {shown(value)}")
    return int(value)


def _histogram(counts: npt.ArrayLike, domain: int) -> Ints:
    """``counts`` as int64, or InvalidHistogram."""
    if isinstance(counts, np.ma.MaskedArray):
        raise InvalidHistogram("a masked array has counts that are missing")
    try:
        values = np.asarray(counts)
    except ValueError:
        raise InvalidHistogram(f"counts must be {domain} integers, got rows of different lengths") from None
    if values.shape != (domain,):
        raise InvalidHistogram(f"counts must have shape ({domain},), got {values.shape}")
    if values.dtype.kind not in "iuO":
        raise InvalidHistogram(f"counts must be of an integer type, got {values.dtype}")
    if values.dtype.kind == "O":
        bad = np.array([not _is_integer(v) or not 0 <= v <= LARGEST_TOTAL for v in values])
    else:
        bad = (values < 0) | (values > LARGEST_TOTAL)
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidHistogram(f"counts[{k}] = {shown(values[k])} is not an integer from 0 to 2^52", k)
    exactly = values.astype(np.int64)
    half = (1 << 26) - 1
    total = (int((exactly >> 26).sum()) << 26) + int((exactly & half).sum())  # two halves: no sum overflows
    if total > LARGEST_TOTAL:
        raise InvalidHistogram(f"the counts sum to {total}, more than 2^52")
    return exactly
