"""CircularHistogram: blocks of all sizes, turned by a random angle for each user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.mixture import weights_of
from frequency.oracles.choice import OracleChoice, choices_of
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Floats, Items
from mechdesign.base.numbers import whole
from mechdesign.base.text import shown
from rangeq.core.protocol import EvenErrors, RangeProtocol
from rangeq.core.tree import padded, spread
from rangeq.local.circle import CircleCuts, CircleLevel, windows
from rangeq.local.turned_blocks import Blocks, per_user_of_blocks

_ALL_DIVISORS = 1 << 16
"""The largest circle for which all of its divisors are numbers of blocks, by default."""


@dataclass(frozen=True)
class CircularHistogram(RangeProtocol):
    """A circular hierarchy: nodes of all sizes, turned by a random angle for each user.

    A tree answers some ranges well and others badly: those that cut its large nodes. Turned by a
    random angle ("cycle spinning", Coifman and Donoho 1995, of wavelets) no range is better off
    than another of its length, and the mean over all ranges falls by up to a fifth. The
    least-squares estimate and its variance are diagonal in the Fourier basis: the blocks of width
    w, from all angles together, see frequency f with weight sin^2(pi f w / M) / (w sin^2(pi f /
    M)), M the items of the circular domain. So the variance of a range depends on its length alone,
    and comes within a few parts in a thousand of what any protocol can reach
    (`rangeq.optimise.least_rmse`).

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
        `frequency.oracles.choice`.
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
        for name in ("blocks", "oracle", "probabilities"):
            value = getattr(self, name)
            if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
                set_fields(
                    self,
                    **{
                        name: tuple(
                            int(item) if isinstance(item, np.integer) else item for item in value
                        )
                    },
                )
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

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return weights_of(len(self.parts), self.probabilities, "level")

    @cached_property
    def _per_user(self) -> Floats:
        return np.array(
            [per_user_of_blocks(level.base, self.domain, level.width) for level in self.parts]
        )

    def _padded(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Pad values of items (..., domain) to values of the circle (..., circle), with 0."""
        return padded(values, self.size)

    @cached_property
    def _even(self) -> Floats:
        """The even distribution, from which estimates are differences.

        So the angles add no error of their own.
        """
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
            The spectrum, as `numpy.fft.rfft` gives it, shape (circle // 2 + 1,); and the precision
            of each frequency, of that shape.
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

    @property
    def even(self) -> EvenErrors:
        return EvenErrors.of(self.domain, self._own_range_variance, self._own_linear_variance)

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
        turns = np.exp(-2j * np.pi / self.size * frequency)
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
        population = self._padded(frequencies)
        for level, number, variance in zip(self.parts, users, self._per_user, strict=True):
            if not number:
                continue
            counted, nodes, known = (
                windows(values, level.width)
                for values in (solution * (number / variance), population, self._even)
            )
            total += level.added_variance(counted, nodes, known) / number
        return np.where(
            np.isfinite(even_variances) & (even_variances > 0),
            np.maximum(total, 0.0),
            even_variances,
        )


@dataclass(frozen=True)
class Curve:
    """The quantities that depend on the numbers of users alone.

    Attributes
    ----------
    information : numpy.ndarray of float64
        Shape (circle // 2 + 1,): the precision of each frequency.
    variances : numpy.ndarray of float64
        Shape (domain + 1,): of ranges of the lengths 0 .. domain.
    shared : numpy.ndarray of float64 or None
        Shape (domain + 1,): the covariances of prefixes with the sum of all items. Where no block
        tells that sum, they are the covariances of what no block tells: to know it moves nothing
        else. None: there is no padding.
    """

    information: Floats
    variances: Floats
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
    """The information of blocks of a width about each frequency, all angles together.

    The result has shape (circle // 2 + 1,).
    """
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
    """The default numbers of blocks that a circle is cut into at each level.

    All divisors above 1; of more than 2^16 items, those that are each at least four times the one
    before, from the circle itself downwards. Equally likely levels err less so, by up to 8 %; those
    of the best probabilities (`optimise`) about 1 % more, with half of the counts.
    """
    every = divisors(circle)
    if circle <= _ALL_DIVISORS:
        return every
    chosen = [circle]
    for number in every[::-1]:
        if 4 * number <= chosen[-1]:
            chosen.append(number)
    return tuple(chosen[::-1])


def round_up(domain: int) -> int:
    """The size of a circular domain for so many items, so that it has enough divisors.

    A multiple of the largest power of two up to domain / 16; of 4 for domains from 8.
    """
    step = 1 if domain < 8 else max(4, 1 << max(0, (domain // 16).bit_length() - 1))
    return max(2, -(-domain // step) * step)
