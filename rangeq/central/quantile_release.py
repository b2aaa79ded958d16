"""Quantiles from a trusted curator by the exponential mechanism, with integer weights throughout.

McSherry and Talwar (FOCS 2007); of several quantiles, the middle one first, and then those of the
users below and above it by themselves (Kaplan, Schnapp and Stemmer, ICML 2022).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import plain, quantile
from frequency.exceptions import InvalidValue
from mechdesign import Audit, Privacy
from mechdesign.base import (
    BitSource,
    Floats,
    Integers,
    Rational,
    bit_source,
    checked_counts,
    fraction,
    set_fields,
    shown,
    whole,
)
from mechdesign.noise.discrete import laplace_variance
from mechdesign.symbolic import BudgetShare, CompositionProof, ExponentialProof, ProcessedProof
from mechdesign.symbolic.semialgebraic import ALPHA, rational
from rangeq.central.answers import Errors
from rangeq.central.estimate import CentralEstimate
from rangeq.central.hierarchy import Hierarchy
from rangeq.central.inputs import LARGEST_DOMAIN, checked_quantiles

#: Below it the table of weights would be long, and the answers noise.
LEAST_QUANTILE_EPSILON = Fraction(1, 1 << 12)

# Quantiles are the nearest fractions of at most this denominator: that is no matter of privacy.
_DENOMINATOR = 10**6

_LARGEST = 1 << 62  # the weight of a place without loss

_TIES = 32  # random bits behind each value, by which users with the same value are in order

_BLOCK = 1 << 20  # users whose ties are drawn at a time: there may be many

# Of epsilon, so that what is proved of the parts proves the whole.
_SLACK = 1 - Fraction(1, 1 << 20)


def quantiles(
    values: npt.ArrayLike,
    q: npt.ArrayLike | Sequence[Rational],
    epsilon: float | Rational,
    *,
    domain: int,
    rng: np.random.Generator | None = None,
) -> Any:
    """Quantiles of the users' values, once, by what promises the smaller error.

    That is the exponential mechanism for a few (`QuantileRelease`), and for many the cells of a
    tree (`TreeQuantiles`): see their ``predicted_error``, which no data enter.

    Parameters
    ----------
    values : array_like
        Shape (users,): integers 0 .. domain-1.
    q : array_like
        In [0, 1]: a number, or several.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of all of them together, at least 2^-12. Neighbouring data differ by one
        user.
    domain : int
        How many values there may be, 1 to 2^26. It must not depend on the data.
    rng : numpy.random.Generator, optional
        None for the operating system's randomness, or a generator for repeatable results.

    Returns
    -------
    int or numpy.ndarray
        Values, shaped like ``q``; in their order.

    Raises
    ------
    InvalidValue
        The first bad value; nothing has been drawn.
    ValueError
        A q, epsilon or domain out of range.

    Examples
    --------
    >>> ages = np.random.default_rng(1).binomial(99, 0.4, size=10_000)
    >>> found = quantiles(ages, 0.5, epsilon=1.0, domain=100, rng=np.random.default_rng(2))
    >>> found - int(np.quantile(ages, 0.5))
    0
    """
    asked = np.asarray(q, dtype=object)
    wanted = tuple(asked.ravel().tolist())
    release: QuantileRelease | TreeQuantiles = QuantileRelease(domain, wanted, epsilon)
    if len(wanted) > 1 and release.domain <= LARGEST_TREE:
        tree = TreeQuantiles(domain, wanted, epsilon)
        release = min(release, tree, key=lambda candidate: candidate.predicted_error())
    return plain(release.release(values, rng).reshape(asked.shape))


class UsersBetween(NamedTuple):
    """Users between two quantiles that are known, and what is still asked of them."""

    asked: tuple[Fraction, ...]  # the quantiles, ascending, of all users
    low: Fraction  # the quantiles between which the users lie
    high: Fraction
    places: Integers  # shape (users,), ascending
    first: int  # the quantiles are among the places first .. end - 1
    end: int


@dataclass(frozen=True)
class QuantileRelease:
    """Several quantiles of a value, once, from a trusted curator.

    The loss of a place is by how many users it is off, (1 - q) times those below less q times those
    above, in units of max(q, 1 - q), rounded down: one user changes it by at most 1. A place with
    the loss k is drawn with an integer weight w[k], where w[k + 1] = ceil(beta w[k]). So one user
    changes every weight by a factor of at most 1 / beta, the sum of the weights too, and a draw
    loses at most beta^-2. Of several quantiles the middle one is drawn first; a user is then among
    those below or above it, and in one draw of each round.

    Users with the same value are put in a random order, by 32 random bits behind each value: so
    quantiles may cut a heap. All draws are exact, by integers.

    Every round has an equal part of epsilon, and there are log2 of the number of quantiles. So a
    single quantile errs much less than that of a tree (`Hierarchy`), and many err more
    (`TreeQuantiles`). Of 5,000 users evenly spread over 256 values, at an epsilon of 0.1, the mean
    rank error was 0.07 % for the median, 1.1 % for nine deciles and 1.8 % for 99 quantiles (3.1 %
    where all values are heaped at tenths); that of a tree with branching 16 was 0.8 to 1.0 %
    (``python benchmarks/central_quantiles.py``).

    Parameters
    ----------
    domain : int
        How many values there may be, 1 to 2^26.
    q : sequence of numbers
        The quantiles asked for, each in [0, 1]; one at least.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of all together, at least 2^-12.

    Raises
    ------
    ValueError
        A domain, q or epsilon out of range.
    """

    domain: int
    q: tuple[Any, ...]
    epsilon: float | Rational

    def __post_init__(self) -> None:
        domain = whole(self.domain, "domain", 1, LARGEST_DOMAIN, what="a number of values")
        asked = (number.limit_denominator(_DENOMINATOR) for number in checked_quantiles(self.q))
        set_fields(self, domain=domain, q=tuple(asked))
        if fraction(self.epsilon, "epsilon") < LEAST_QUANTILE_EPSILON:
            raise ValueError(
                f"epsilon must be at least 2^-12, got {shown(self.epsilon)}: noise would drown"
                " everything"
            )

    @cached_property
    def privacy(self) -> Privacy:
        """The claim: a rational alpha >= exp(-epsilon); neighbouring data differ by one user."""
        return Privacy.from_epsilon(fraction(self.epsilon, "epsilon"))

    @cached_property
    def _asked(self) -> tuple[Fraction, ...]:
        return tuple(sorted(set(self.q)))

    @property
    def rounds(self) -> int:
        """The most draws that a user is in."""
        return len(self._asked).bit_length()

    @cached_property
    def beta(self) -> Fraction:
        """The least factor by which a weight falls where one user more is off."""
        share = fraction(self.epsilon, "epsilon") * _SLACK / (2 * self.rounds)
        return Privacy.from_epsilon(share).alpha

    def audit(self) -> Audit:
        """The worst ratio of the probabilities of answers given neighbouring data, at most.

        beta^-2 for each round: the weights of a place, and their sums, each change by a factor of
        at most 1 / beta, since w[k + 1] >= beta w[k] for the integers that are drawn by.
        """
        ratio = 1 / self.beta ** (2 * self.rounds)
        return Audit(ratio, 1 / self.privacy.alpha, "any quantiles, with one user more", (0, 1))

    def proof(self) -> CompositionProof:
        """Why the quantiles are private, for every alpha in (0, 1): a proof that can be checked.

        A place of the loss k has the weight beta^k, for beta = alpha^(1 / (2 rounds)), and a user
        changes losses by at most one. In integers the weights are rounded up, which `audit` covers.

        Returns
        -------
        CompositionProof
            ``proof().holds`` checks every step anew; ``str`` is a short derivation.
        """
        same, less = rational(1), rational(ALPHA)
        changes = ((same, same), (same, less), (less, same))
        source = "McSherry and Talwar 2007"
        draw = ExponentialProof(changes, Fraction(1, 2), name="a draw of a place", source=source)
        how = "one draw of a round is about the user, among places in a random order"
        drawn = ProcessedProof(draw, how, name="a round")
        return CompositionProof(
            (BudgetShare(Fraction(1, self.rounds), self.rounds, drawn),),
            name=type(self).__name__,
            source="Kaplan, Schnapp and Stemmer 2022",
        )

    def predicted_error(self) -> float:
        """The root mean square of the rank errors, in users.

        A draw errs by a discrete Laplace variable, exactly so for medians of different values, and
        a quantile of users between two others as these do, in proportion to its distances.
        """
        share = float(fraction(self.epsilon, "epsilon")) / self.rounds
        variances = {Fraction(0): 0.0, Fraction(1): 0.0}
        todo = [(self._asked, Fraction(0), Fraction(1))]
        while todo:
            asked, low, high = todo.pop()
            if asked:
                middle = len(asked) // 2
                wanted = asked[middle]
                t = float((wanted - low) / (high - low)) if high > low else 0.5
                rate = share / (2 * max(t, 1 - t))  # the loss by a user more, in units of epsilon
                draw_variance = laplace_variance(rate)
                variances[wanted] = (
                    draw_variance + (1 - t) ** 2 * variances[low] + t**2 * variances[high]
                )
                todo.append((asked[:middle], low, wanted))
                todo.append((asked[middle + 1 :], wanted, high))
        return math.sqrt(sum(variances[number] for number in self._asked) / len(self._asked))

    def weights(self, most: int) -> list[int]:
        """The weights of places by their loss 0, 1, .. up to ``most``, or to where they stay."""
        top, bottom = self.beta.numerator, self.beta.denominator
        weights = [_LARGEST]
        while len(weights) <= most:
            below = -(-weights[-1] * top // bottom)
            if below == weights[-1]:
                break
            weights.append(below)
        return weights

    def release(
        self, values: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> npt.NDArray[np.int64]:
        """The quantiles of these users, once.

        Every call is a release of its own, and costs epsilon again.

        Parameters
        ----------
        values : array_like
            Shape (users,): integers 0 .. domain-1; there may be none.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness, or a generator for repeatable results.

        Returns
        -------
        numpy.ndarray
            Shape (quantiles,), in the order of ``q``: values, which ascend with the quantiles.

        Raises
        ------
        InvalidValue
            The first bad value; nothing has been drawn.
        PrivacyViolation
            Never, unless the audit fails.
        """
        self.audit().require()
        places = checked_counts(values, self.domain - 1, InvalidValue).reshape(-1)
        source = bit_source(rng)
        places <<= _TIES  # in place: there may be many users
        for start in range(0, len(places), _BLOCK):
            block = places[start : start + _BLOCK]
            block |= (source(len(block)) >> np.uint64(64 - _TIES)).astype(np.int64)
        places.sort()
        weights = self.weights(len(places))
        results: dict[Fraction, int] = {}
        todo = [
            UsersBetween(self._asked, Fraction(0), Fraction(1), places, 0, self.domain << _TIES)
        ]
        while todo:
            part = todo.pop()
            if part.asked:
                middle = len(part.asked) // 2
                wanted = part.asked[middle]
                place = drawn(part, wanted, weights, source)
                results[wanted] = place
                cut = int(np.searchsorted(part.places, place))
                below, above = part.asked[:middle], part.asked[middle + 1 :]
                todo.append(
                    UsersBetween(below, part.low, wanted, part.places[:cut], part.first, place + 1)
                )
                todo.append(
                    UsersBetween(above, wanted, part.high, part.places[cut:], place, part.end)
                )
        return np.array([results[number] >> _TIES for number in self.q], dtype=np.int64)


def drawn(part: UsersBetween, wanted: Fraction, weights: Sequence[int], source: BitSource) -> int:
    """A place, with the probability in proportion to the weight of its loss."""
    n = len(part.places)
    q = (wanted - part.low) / (part.high - part.low) if part.high > part.low else Fraction(1, 2)
    a, b = q.as_integer_ratio()
    unit = max(a, b - a)
    # So many users are below the places of gap i, i = 0 .. n. Those near the quantile by weight:
    reach = unit * (len(weights) - 1)
    low, high = max(0, -(-(a * n - reach) // b)), min(n, (a * n + reach) // b)
    gaps = np.arange(low, high + 1)
    inner = part.places[low : high + 1]
    ends = np.append(inner, part.end - 1) if high == n else inner
    before = part.first - 1 if low == 0 else int(part.places[low - 1])
    sizes = np.diff(ends, prepend=before)
    losses = _losses(gaps, a, b, n, unit)
    by_loss = np.zeros(len(weights), dtype=np.int64)
    np.add.at(by_loss, np.minimum(losses, len(weights) - 1), sizes)
    numbers = by_loss.tolist()
    numbers[-1] += part.end - part.first - int(sizes.sum())  # far from it, all alike
    totals = list(
        accumulate(number * weight for number, weight in zip(numbers, weights, strict=True))
    )
    ticket = _below(totals[-1], source)
    loss = bisect_right(totals, ticket)
    rest = (ticket - (totals[loss - 1] if loss else 0)) // weights[loss]
    for gap in np.flatnonzero(np.minimum(losses, len(weights) - 1) == loss).tolist():
        if rest < sizes[gap]:
            return int(ends[gap] - sizes[gap] + 1 + rest)
        rest -= int(sizes[gap])
    left = before - part.first + 1  # of the far places, those below
    return int(part.first + rest if rest < left else ends[-1] + 1 + rest - left)


def _losses(gaps: Integers, a: int, b: int, n: int, unit: int) -> Integers:
    """|b i - a n| // unit, also where the products are beyond 64 bits."""
    if b * n < 1 << 62:
        return np.abs(b * gaps - a * n) // unit
    return np.array([abs(b * i - a * n) // unit for i in gaps.tolist()], dtype=np.int64)


def _below(bound: int, source: BitSource) -> int:
    """A uniform integer of 0 .. bound - 1."""
    bits = bound.bit_length()
    words = -(-bits // 64)
    while True:
        number = 0
        for word in source(words).tolist():
            number = number << 64 | word
        number >>= 64 * words - bits
        if number < bound:
            return number


# ------------------------------------------------------------------------------------------------
# Many quantiles from a trusted curator, from the cells of one tree, smoothed.
#
# Smoothing is an empirical Bayes estimate of an ordered histogram from a curator's release. The
# counts are taken for the sum of an even level, a random walk along the cells (neighbouring cells
# are alike) and independent deviations of cells (heaps); the amplitudes of both are those of the
# largest marginal likelihood of what was released, whose errors are known. Post-processing: it
# costs no privacy. It is biased towards smooth histograms where the release tells little.


#: Of more cells, blocks of neighbours are smoothed, and each block's change is shared evenly.
MOST_BLOCKS = 256

# Mean variances of the random walk, in squares of the even level.
_AMPLITUDES = (0.0, *(4.0**k for k in range(-4, 4)))

# Variances of the deviations of cells, likewise.
_DEVIATIONS = (0.0, *(4.0**k for k in range(-3, 5)))

LARGEST_TREE = 1 << 20  #: The most values of which a tree is made for quantiles.


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
    domain, q, epsilon : as of `QuantileRelease`
        But 1 to 2^20 values, and an epsilon of at least 2^-32.

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
        """The tree that is released."""
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
        phi = np.array([float(number) for number in self.q])
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
        values, rng : as of `QuantileRelease.release`
            The users' values, and the randomness.

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
        return quantile(cdf, np.array([float(number) for number in self.q]))


def smoothed_counts(estimate: CentralEstimate) -> Floats:
    """Return the posterior mean of the cells of one attribute: shape (cells,)."""
    cells = estimate.mechanism.sizes[0]
    width = -(-cells // MOST_BLOCKS)
    first = np.arange(0, cells, width, dtype=np.int64)
    last = np.minimum(first + width, cells) - 1
    sizes = last - first + 1.0
    sums = estimate.box_sums(first[None], last[None])
    level = max(sums.sum(), 1.0) * sizes / cells
    covariance = covariances(estimate.mechanism.errors, first, last)
    walk, rest = _walk(len(first)), sums - level
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
    change = (level + posterior - sums) / sizes
    return estimate.counts + np.repeat(change, sizes.astype(np.int64))


def covariances(errors: Errors, first: Integers, last: Integers) -> Floats:
    """Covariances, (blocks, blocks), of sums of neighbouring blocks from ranges' variances."""
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
    return walk * (count / max(float(np.trace(walk)), 1.0))
