"""CircularHistogram: blocks of all sizes, turned by a random angle for each user."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core import Aggregate, Oracle, PublicDraw, coin, smallest_integer, weights_of
from frequency.oracles import OracleChoice, choices_of, oracle_over
from mechdesign.base import Floats, Items, set_fields, shown, whole
from rangeq.core import EvenErrors, NodeLaw, RangeProtocol, padded, spread
from rangeq.local.circle import CircleCuts, CircleLevel, windows

# ------------------------------------------------------------------------------------------------
# Blocks: a circle of items cut into equal blocks, turned by a random angle for each user.


@dataclass(frozen=True)
class Blocks(PublicDraw):
    """A circular domain, turned by a random angle and cut into equal blocks.

    A report is the ``angle``, uniform in 0 .. width - 1 and public, and ``block``, the report of an
    oracle over the blocks: item x is in block ((x + angle) mod domain) // width.

    Parameters
    ----------
    domain : int
        The number of items of the circular domain.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    blocks : int
        The number of blocks: a divisor of the domain.
    oracle : str, class, Oracle or Mechanism
        One that counts cells, over the blocks: see `frequency.oracles.randomized_response`.

    Raises
    ------
    ValueError
        The blocks do not cut the domain into equal parts, or the oracle does not count cells.
    """

    blocks: int
    oracle: OracleChoice

    fields: ClassVar[tuple[str, str]] = ("angle", "block")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain % self.blocks:
            raise ValueError(
                f"{self.blocks} blocks do not cut a circular domain of {self.domain} items into"
                " equal parts"
            )
        _ = self.base

    @property
    def width(self) -> int:
        """The items of a block."""
        return self.domain // self.blocks

    @cached_property
    def base(self) -> Oracle:
        """The oracle over the blocks."""
        oracle = oracle_over(self.oracle, self.blocks, self.epsilon)
        if not oracle.cells:
            raise ValueError(
                "blocks can be told by an oracle that counts cells, such as GRR or"
                f" ProjectiveGeometry, not {type(oracle).__name__}"
            )
        return oracle

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype(
            [("angle", smallest_integer(self.width - 1)), ("block", self.base.report_dtype)]
        )

    @property
    def _settings(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def _probabilities(self) -> tuple[Floats, ...]:
        return (np.full(self.width, 1 / self.width),)

    @property
    def _chances(self) -> tuple[tuple[int, Fraction], ...]:
        return ((self.width, Fraction(1, self.width)),)

    @property
    def _coins(self) -> list[dict[str, Any]]:
        return [coin(range(self.width))]

    @property
    def _expression(self) -> list[Any]:
        return ["turn", self.domain, self.width]

    def _draw(self, number: Callable[[int], Items]) -> tuple[Items, ...]:
        return (number(self.width),)

    def _cell(self, items: Items, setting: tuple[Items, ...]) -> Items:
        (angle,) = setting
        return (items + angle) % self.domain // self.width

    def cells_together(self, items: Items) -> tuple[Items, Items]:
        # At these angles an item comes into another block
        angles = np.unique(np.append(-items % self.width, 0))
        times = np.diff(angles, append=self.width)
        return self._cell(items[None], (angles[:, None],)), times

    def _details(self) -> dict[str, Any]:
        return {"width": self.width, "blocks": {**self.base.parameters}}

    def held_of(self, counts: npt.NDArray[np.int64]) -> Floats:
        """Estimates of users in the block from each item on, of their angle: shape (domain,)."""
        # At angle a, block b begins at item b width - a
        by_begin = self.base.held_of(counts)[::-1].T.ravel()
        return np.roll(by_begin, 1 - self.width)

    @property
    def alike(self) -> bool:
        """Whether the oracle treats all blocks alike, so that `law` is right."""
        return self.base.symmetric

    @cached_property
    def law(self) -> NodeLaw:
        """The errors of the oracle's estimates."""
        return NodeLaw.of(self.base)

    def added_variance(self, weights: Floats, held: Floats, known: Floats) -> Floats:
        """Return the variance of what a random user's report adds to sums of the blocks' estimates.

        The report is on the blocks of a random angle, and what is known of them is taken off.

        Parameters
        ----------
        weights, held, known : numpy.ndarray of float64
            Of the block that begins at each item: shape (sums, domain), those of an angle summing
            to 0; (domain,), the fraction of the users in it; and what is taken off.

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,).
        """
        # Where all blocks are alike the mean square over reports is linear in the user's block:
        # `NodeLaw`; other oracles are asked angle by angle
        if self.alike:
            squares = weights**2 @ (self.law.contrast + self.law.held * held)
        else:
            squares = weights**2 @ held
            for angle in range(self.width):
                begins = (np.arange(self.blocks) * self.width - angle) % self.domain
                squares += self.base.linear_variance(1, weights[:, begins], held[begins])
        # By angle
        mean, off = (
            (weights * each).reshape(len(weights), -1, self.width).sum(axis=1)
            for each in (held, known)
        )
        result: Floats = squares / self.width + (off**2 - 2 * off * mean).mean(axis=-1)
        # The variance over angles: the mean square less the square of the mean
        return result - (mean - off).mean(axis=-1) ** 2

    def reporting(self, counts: npt.NDArray[np.int64], users: float) -> Floats:
        """Return the number of users who report on the block that begins at each item: (domain,).

        Users of the same angle count alike for all of its blocks. `counts` are of an aggregate of
        this channel, of so many users.
        """
        total = counts.reshape(self.width, -1).sum(axis=1)
        return (total * (users / total.sum()))[-np.arange(self.domain) % self.width]


def per_user_of_blocks(oracle: Oracle, domain: int, width: int) -> float:
    """The variance of a unit contrast between blocks, from one user drawn at random."""
    occupied = max(-(-domain // width), 2)
    return oracle.difference_variance(1, occupied) / 2 + width / domain


# The largest circle for which all of its divisors are numbers of blocks, by default.
_ALL_DIVISORS = 1 << 16


class BlockHierarchy(RangeProtocol):
    """A hierarchy of levels of blocks of one width each, moved by a random offset for each user."""

    probabilities: tuple[Any, ...] | None

    @property
    @abstractmethod
    def parts(self) -> tuple[Blocks, ...]: ...

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return weights_of(len(self.parts), self.probabilities, "level")

    @cached_property
    def _per_user(self) -> Floats:
        return np.array(
            [per_user_of_blocks(level.base, self.domain, level.width) for level in self.parts]
        )

    @property
    def even(self) -> EvenErrors:
        return EvenErrors.of(self.domain, self._own_range_variance, self._own_linear_variance)

    @abstractmethod
    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        """Return the variances of ranges of an even population, for so many users on each level."""

    @abstractmethod
    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        """Return those of sums with weights of items."""

    def _added_by_levels(
        self, total: Floats, users: Floats, solution: Floats, frequencies: Floats
    ) -> None:
        """Add the variance that each level has by its reports to a total."""
        even = np.full(self.domain, 1 / self.domain)
        for level, number, variance in zip(self.parts, users, self._per_user, strict=True):
            if number:
                counted, inside, known = (
                    windows(padded(values, level.domain), level.width)
                    for values in (solution * (number / variance), frequencies, even)
                )
                total += level.added_variance(counted, inside, known) / number


@dataclass(frozen=True)
class CircularHistogram(BlockHierarchy):
    """A circular hierarchy: nodes of all sizes, turned by a random angle for each user.

    A tree answers some ranges well and others badly: those that cut its large nodes. Turned by a
    random angle ("cycle spinning", Coifman and Donoho 1995, of wavelets) no range is better off
    than another of its length, and the mean over all ranges falls by up to a fifth. The
    least-squares estimate and its variance are diagonal in the Fourier basis: the blocks of width
    w, from all angles together, see frequency f with weight sin^2(pi f w / M) / (w sin^2(pi f /
    M)), M the items of the circular domain. So the variance of a range depends on its length alone,
    and comes within a few parts in a thousand of what any protocol can reach
    (`rangeq.local.optimisation.least_rmse`).

    The variances that its estimates state are those of the estimated population; of ranges over
    more than 2^16 items, those of an even one. At an epsilon of 1 the population changes them
    little; at 8, where the choice of the angle is most of the error, up to thirty times. Over 100
    and 1000 items, with most users in one item, at hours or at one end, 95 % intervals of ranges
    and prefixes cover 91 to 97 % of the truths at epsilons of 1 and 8. Oracles over finite fields
    count as the mean over the ways to number the blocks.

    Parameters
    ----------
    circle : int, optional
        M, at least the domain; the items beyond the domain are padding, always empty and never in
        an answer. None: the domain, rounded up by at most one part in 16 (small domains: to a
        multiple of 4) so that it has enough divisors.
    blocks : tuple of int, optional
        The numbers of blocks that the circle is cut into at each level: divisors of M, the last of
        them M itself. None: all but 1, or of a circle of more than 2^16 items about every other one
        (see `default_blocks`).
    oracle : str, class, Oracle, Mechanism or tuple of these, default "ProjectiveGeometry"
        The oracle of all levels, or one for each, that counts cells: "GRR", "SubsetSelection",
        "ProjectiveGeometry" or "OLH", a class, or for as many blocks an oracle or a mechanism. See
        `frequency.oracles.randomized_response`.
    probabilities : sequence of exact rationals, optional
        Of each level, exact rationals that sum to 1; None: all the same.
    """

    circle: int | None = None
    blocks: tuple[int, ...] | None = None
    oracle: OracleChoice | tuple[OracleChoice, ...] = "ProjectiveGeometry"
    probabilities: tuple[Any, ...] | None = None

    largest_domain: ClassVar[int] = 1 << 24
    largest_plugged_in: ClassVar[int] = 1 << 16
    largest_population: ClassVar[int] = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        circle = round_up(self.domain) if self.circle is None else self.circle
        circle = whole(circle, "circle", max(self.domain, 2), 1 << 25, what="a number of items")
        set_fields(self, circle=circle)
        if self.blocks is None:
            set_fields(self, blocks=default_blocks(circle))
        assert self.blocks is not None
        if (
            not self.blocks
            or any(type(m) is not int or m < 2 or circle % m for m in self.blocks)
            or list(self.blocks) != sorted(set(self.blocks))
            or self.blocks[-1] != circle
        ):
            raise ValueError(
                f"blocks must be divisors of {circle} above 1, ascending, {circle} itself the last,"
                f" got {shown(self.blocks)}"
            )
        _ = self.part_weights, self.parts

    @property
    def size(self) -> int:
        """The number of items of the circular domain, padding included."""
        assert self.circle is not None
        return self.circle

    @cached_property
    def parts(self) -> tuple[Blocks, ...]:
        blocks = self.blocks or ()
        choices = choices_of(self.oracle, len(blocks))
        return tuple(
            Blocks(self.size, self.epsilon, m, choice)
            for m, choice in zip(blocks, choices, strict=True)
        )

    def _padded(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Pad values of items (..., domain) to values of the circle (..., circle), with 0."""
        return padded(values, self.size)

    @cached_property
    def _even(self) -> Floats:
        """The even distribution, from which estimates are differences."""
        # So the angles add no error of their own
        return self._padded(np.full(self.domain, 1 / self.domain))

    # Spectra have the length circle // 2 + 1 of `numpy.fft.rfft`; frequency 0, the sum of all
    # items, is known.

    def information(self, users: Floats) -> Floats:
        """The precision of each frequency, for so many users on each level."""
        total = np.zeros(self.size // 2 + 1)
        for level, number, variance in zip(self.parts, users, self._per_user, strict=True):
            if number:
                total += number / variance * seen(self.size, level.width)
        return total

    def transform(self, aggregate: Aggregate) -> tuple[npt.NDArray[np.complex128], Floats]:
        """The spectrum of the least-squares estimate of the circular domain's items.

        Padding is estimated like all other items.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        tuple
            The spectrum, as `numpy.fft.rfft` gives it, and the precision of each frequency: shape
            (circle // 2 + 1,) both.
        """
        users = self.channel.part_users(aggregate)
        counted = np.zeros(self.size)
        for k, (level, variance) in enumerate(zip(self.parts, self._per_user, strict=True)):
            if users[k]:
                counts = self.channel.part_aggregate(aggregate, k).counts
                users_in = level.held_of(counts)
                if self.size > self.domain:
                    users_in -= level.reporting(counts, users[k]) * windows(self._even, level.width)
                # An item is in the blocks that begin at it and up to width - 1 items before it
                # The score of the likelihood: each block's estimate goes back to its items (the
                # transpose of summing over blocks), with its precision
                counted += np.roll(windows(users_in, level.width), level.width - 1) / variance
        total = np.fft.rfft(counted)
        information = _curve(self, tuple(users)).information
        # The normal equations are diagonal in the frequencies; what no level sees stays 0
        total = np.divide(total, information, out=np.zeros_like(total), where=information > 0)
        return total + np.fft.rfft(self._even), information

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        result = np.fft.irfft(self.transform(aggregate)[0], self.size)[: self.domain]
        shared = _curve(self, tuple(self.channel.part_users(aggregate))).shared
        # Nobody is in the padding: each item gives up what it shares with the error of the sum
        if shared is not None:
            result = result + np.diff(shared) / shared[-1] * (1 - result.sum())
        return result

    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        curve, length = _curve(self, tuple(users)), last - first + 1
        result = curve.variances[length]
        if curve.shared is not None:
            # The sum of all items is known: least squares take off the part that errs with it
            result = result - (curve.shared[last + 1] - curve.shared[first]) ** 2 / curve.shared[-1]
        return np.where(length == self.domain, 0.0, np.maximum(result, 0.0))

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        curve = _curve(self, tuple(users))
        power = np.abs(np.fft.rfft(self._padded(weights))) ** 2 * (2 / self.size)
        power[..., 0] = 0.0
        if self.size % 2 == 0:
            power[..., -1] /= 2
        known = curve.information > 0
        result = power[..., known] @ (1 / curve.information[known])
        if curve.shared is not None:
            result = result - (weights @ np.diff(curve.shared)) ** 2 / curve.shared[-1]
        unseen = power[..., ~known].sum(axis=-1) > 1e-20 * (weights**2).sum(axis=-1)
        result = np.where(unseen, np.inf, np.maximum(result, 0.0))
        return np.where(np.ptp(weights, axis=-1) == 0, 0.0, result)

    def _solved(self, spectra: npt.NDArray[np.complex128], users: Floats) -> Floats:
        """Solve for weights of the blocks' estimates from those of items: shape (..., circle)."""
        information = _curve(self, tuple(users)).information
        known = np.zeros_like(spectra)
        np.divide(spectra, information, out=known, where=information > 0)
        known[..., 0] = 0.0
        return np.fft.irfft(known, self.size)

    def _of_population(
        self, aggregate: Aggregate, sums: Floats, first: Items, last: Items
    ) -> Floats:
        if not all(level.alike for level in self.parts):
            return self._of_indicators(aggregate, np.diff(sums), first, last)
        users, shape = self.channel.part_users(aggregate), first.shape
        inside = sums[last + 1] - sums[first]
        variances = self._cuts(users, np.diff(sums)).ranges(first.ravel(), last.ravel())
        return variances.reshape(shape) - inside * (1 - inside) / aggregate.n

    def _cuts(self, users: Floats, frequencies: Floats) -> CircleCuts:
        frequency = np.arange(self.size // 2 + 1)
        # The spectrum of a prefix sum is 1 / (1 - e^(-i angle))
        turns: npt.NDArray[np.complex128] = np.exp(-2j * np.pi / self.size * frequency)
        turns[0] = 0.0  # the sum of all items is known
        curve = self._solved(1 / (1 - turns), users)
        levels = [
            CircleLevel(
                level.width, number, windows(curve, level.width) * (number / variance), level.law
            )
            for level, number, variance in zip(self.parts, users, self._per_user, strict=True)
            if number
        ]
        shared = _curve(self, tuple(users)).shared
        if shared is not None:
            shared = shared / shared[-1]
        return CircleCuts(levels, self._padded(frequencies), shared)

    def variances_from(self, n: int, users: Floats, weights: Floats, frequencies: Floats) -> Floats:
        even_variances = self._own_linear_variance(weights, users)
        total = -spread(weights, frequencies) / n
        curve = _curve(self, tuple(users))
        if curve.shared is not None:
            weights = weights - (weights @ (np.diff(curve.shared) / curve.shared[-1]))[:, None]
        solution = self._solved(np.fft.rfft(self._padded(weights)), users)
        self._added_by_levels(total, users, solution, frequencies)
        return np.where(
            np.isfinite(even_variances) & (even_variances > 0),
            np.maximum(total, 0.0),
            even_variances,
        )


@dataclass(frozen=True)
class Curve:
    """The quantities that depend on the numbers of users alone."""

    information: Floats  # shape (circle // 2 + 1,): the precision of each frequency
    variances: Floats  # shape (domain + 1,): of ranges of the lengths 0 .. domain
    # Shape (domain + 1,): the covariances of prefixes with the sum of all items. Where no block
    # tells that sum, they are the covariances of what no block tells: to know it moves nothing
    # else. None: there is no padding.
    shared: Floats | None


@lru_cache(maxsize=8)
def _curve(protocol: CircularHistogram, users: tuple[float, ...]) -> Curve:
    size, domain = protocol.size, protocol.domain
    information = protocol.information(np.array(users))
    frequency = np.arange(1, size // 2 + 1)
    spectrum = np.zeros(size // 2 + 1)
    power = 1 / (2 * np.sin(np.pi * frequency / size) ** 2)
    np.divide(power, information[1:], out=spectrum[1:], where=information[1:] > 0)
    # Prefix sums divide the variance of a frequency by 4 sin^2(pi f / M), and the variance of a
    # range is twice the difference of their autocovariance at 0 and at its length
    covariances = np.fft.irfft(spectrum, size)
    length = np.arange(domain + 1)
    variances = np.maximum(covariances[0] - covariances[length % size], 0.0)
    # From all angles, blocks tell ranges as long as multiples of the greatest common divisor of
    # their widths, and no others.
    step = math.gcd(
        size, *(level.width for level, number in zip(protocol.parts, users, strict=True) if number)
    )
    unseen = length % step * (step - length % step) / size
    shared = None
    if size > domain:
        covariances_of = unseen if unseen[domain] else variances
        shared = (covariances_of + covariances_of[domain] - covariances_of[::-1]) / 2
    return Curve(information, np.where(unseen > 0, np.inf, variances), shared)


def seen(circle: int, width: int) -> Floats:
    """The information of blocks of a width about each frequency: shape (circle // 2 + 1,)."""
    frequency = np.arange(circle // 2 + 1)
    result = np.zeros(len(frequency))
    cut = frequency * width % circle
    some = cut > 0
    result[some] = np.sin(np.pi * cut[some] / circle) ** 2 / (
        width * np.sin(np.pi * frequency[some] / circle) ** 2
    )
    return result


def divisors(number: int) -> tuple[int, ...]:
    """All divisors above 1, ascending."""
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(sorted({*small, *(number // k for k in small)} - {1}))


def default_blocks(circle: int) -> tuple[int, ...]:
    """Return the default numbers of blocks that a circle is cut into at each level."""
    # All divisors above 1; of more than 2^16 items, those that are each at least four times the one
    # before, from the circle itself downwards. Equally likely levels err less so, by up to 8 %;
    # those of the best probabilities (`optimise`) about 1 % more, with half of the counts.
    every = divisors(circle)
    if circle <= _ALL_DIVISORS:
        return every
    chosen = [circle]
    for number in every[::-1]:
        if 4 * number <= chosen[-1]:
            chosen.append(number)
    return tuple(chosen[::-1])


def round_up(domain: int) -> int:
    """Return the size of a circle for so many items, so that it has enough divisors."""
    # A multiple of the largest power of two up to domain / 16; of 4 for domains from 8
    step = 1 if domain < 8 else max(4, 1 << max(0, (domain // 16).bit_length() - 1))
    return max(2, -(-domain // step) * step)
