"""CircularHistogram: blocks of all sizes, turned by a random angle for each user."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.channel import smallest_integer
from frequency.core.deployable import coin
from frequency.core.mixture import weights_of
from frequency.core.oracle import CellOracle, Oracle
from frequency.core.public_draw import PublicDraw
from frequency.oracles.choice import OracleChoice, choices_of, oracle_over
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.frozen import set_fields
from mechdesign._support.numbers import whole
from mechdesign._support.text import shown
from rangeq.core.protocol import AdditiveProtocol, RangeProtocol
from rangeq.core.tree import mean_over, padded, spread

_PLUGGED_IN = 128
"""Variances of answers over domains up to this are those of the estimated population; beyond, that
takes too long, and they are those of an even one.
"""


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
        How many blocks: a divisor of the domain.
    oracle : str, class, Oracle or Mechanism
        One that counts cells, over the blocks: see `frequency.oracles.choice`.

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
    def base(self) -> CellOracle:
        """The oracle over the blocks."""
        oracle = oracle_over(self.oracle, self.blocks, self.epsilon)
        if not isinstance(oracle, CellOracle):
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
        """Estimates of how many users are in the block that begins at each item: shape (domain,).

        Of users of the angle by which the block begins there.
        """
        result = np.empty(self.domain)
        begins = (
            np.arange(self.blocks) * self.width - np.arange(self.width)[:, None]
        ) % self.domain
        result[begins] = self.base.held_of(counts)
        return result

    def reporting(self, counts: npt.NDArray[np.int64], users: float) -> Floats:
        """How many users report on the block that begins at each item.

        Users of the same angle count alike for all of its blocks.

        Parameters
        ----------
        counts : numpy.ndarray of int64
            Of an aggregate of this channel.
        users : float
            How many users the counts are of.

        Returns
        -------
        numpy.ndarray of float64
            Shape (domain,).
        """
        total = counts.reshape(self.width, -1).sum(axis=1)
        result: Floats = (total * (users / total.sum()))[-np.arange(self.domain) % self.width]
        return result


@dataclass(frozen=True)
class CircularHistogram(AdditiveProtocol):
    """A circular hierarchy: nodes of all sizes, turned by a random angle for each user.

    A tree answers some ranges well and others badly: those that cut its large nodes. Turned by a
    random angle ("cycle spinning", Coifman and Donoho 1995, of wavelets) no range is better off
    than another of its length, and the mean over all ranges falls by up to a fifth. The
    least-squares estimate and its variance are diagonal in the Fourier basis: the blocks of width
    w, from all angles together, see frequency f with weight sin^2(pi f w / M) / (w sin^2(pi f /
    M)), M the items of the circular domain. So the variance of a range depends on its length alone,
    and comes within a few parts in a thousand of what any protocol can reach
    (`rangeq.optimise.least_rmse`).

    The variances that its estimates tell are those of an even population (`linear_variance` takes
    any). Where one item holds half of the population they are right within a tenth at an epsilon of
    1. At 8, where the choice of the angle is most of the error, those of single ranges are up to
    thirty times too large or three times too small, and 95 % intervals cover at least 90 % of
    ranges on average (tests/rangeq/test_variances.py).

    Parameters
    ----------
    circle : int, optional
        M, at least the domain; the items beyond the domain are padding, always empty and never in
        an answer. None: the domain, rounded up by at most one part in 16 (small domains: to a
        multiple of 4) so that it has enough divisors.
    blocks : tuple of int, optional
        How many blocks the circle is cut into at each level: divisors of M, the last of them M
        itself. None: all but 1.
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
    largest_population: ClassVar[int] = 256

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
            set_fields(self, blocks=divisors(circle))
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
        """Values of items (..., domain) as values of the circle (..., circle), 0 of the padding."""
        return padded(values, self.size)

    @cached_property
    def _even(self) -> Floats:
        """All items equally frequent: what estimates are differences from.

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
        total = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        for k, (level, variance) in enumerate(zip(self.parts, self._per_user, strict=True)):
            if users[k]:
                counts = self.channel.part_aggregate(aggregate, k).counts
                found = level.held_of(counts)
                if self.size > self.domain:
                    found -= level.reporting(counts, users[k]) * _windows(self._even, level.width)
                block = np.zeros(self.size)
                block[: level.width] = 1.0
                total += np.fft.rfft(block) * np.fft.rfft(found) / variance
        information = self.information(users)
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
            result = result - (curve.shared[last + 1] - curve.shared[first]) ** 2 / curve.shared[-1]
        return np.where(length == self.domain, 0.0, np.maximum(result, 0.0))

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        information, curve = self.information(users), _curve(self, tuple(users))
        power = np.abs(np.fft.rfft(self._padded(weights))) ** 2 * (2 / self.size)
        power[..., 0] = 0.0
        if self.size % 2 == 0:
            power[..., -1] /= 2
        known = information > 0
        result = power[..., known] @ (1 / information[known])
        if curve.shared is not None:
            result = result - (weights @ np.diff(curve.shared)) ** 2 / curve.shared[-1]
        unseen = power[..., ~known].sum(axis=-1) > 1e-20 * (weights**2).sum(axis=-1)
        result = np.where(unseen, np.inf, np.maximum(result, 0.0))
        return np.where(np.ptp(weights, axis=-1) == 0, 0.0, result)

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        even = super().linear_variances_of(weights, aggregate, frequencies, items)
        if self.domain > _PLUGGED_IN:
            return even
        found = RangeProtocol.linear_variances_of(self, weights, aggregate, frequencies, items)
        return np.where(np.isfinite(even) & (even > 0), found, even)

    def _of_answers(
        self, aggregate: Aggregate, frequencies: Floats, first: Items, last: Items
    ) -> Floats:
        even = super()._of_answers(aggregate, frequencies, first, last)
        if self.domain > _PLUGGED_IN:
            return even
        found = self._of_indicators(aggregate, frequencies, first, last)
        return np.where(np.isfinite(even) & (even > 0), found, even)

    def _average_variance(self, n: int, workload: str) -> float:
        users, item = self.channel.expected_users(n), np.arange(self.domain)
        prefixes = self._own_range_variance(np.zeros_like(item), item, users)
        sums = self._own_linear_variance((self.domain - item).astype(np.float64)[None], users)
        return mean_over(
            workload, prefixes, float(sums[0]), self._own_range_variance(item, item, users)
        )

    def variances_from(self, n: int, users: Floats, weights: Floats, frequencies: Floats) -> Floats:
        size = self.size
        total = -spread(weights, frequencies) / n
        curve = _curve(self, tuple(users))
        if curve.shared is not None:
            weights = weights - (weights @ (np.diff(curve.shared) / curve.shared[-1]))[:, None]
        information = self.information(users)
        spectrum = np.divide(
            np.fft.rfft(self._padded(weights)),
            information,
            out=np.zeros((len(weights), size // 2 + 1), complex),
            where=information > 0,
        )
        spectrum[:, 0] = 0.0
        solution, held = np.fft.irfft(spectrum, size), self._padded(frequencies)
        beyond = held - self._even
        for level, number, variance in zip(self.parts, users, self._per_user, strict=True):
            if not number:
                continue
            square, mean = np.zeros(len(weights)), np.zeros(len(weights))
            for angle in range(level.width):
                turned = np.roll(solution, angle, axis=-1)
                own = turned.reshape(len(weights), level.blocks, level.width).sum(axis=-1)
                own *= number / variance
                nodes = np.roll(held, angle).reshape(level.blocks, -1).sum(axis=-1)
                here = own @ np.roll(beyond, angle).reshape(level.blocks, -1).sum(axis=-1)
                square += level.base.linear_variance(1, own, nodes) + spread(own, nodes) + here**2
                mean += here
            total += (square / level.width - (mean / level.width) ** 2) / number
        return np.maximum(total, 0.0)


@dataclass(frozen=True)
class Curve:
    """The variances of ranges by their length, and what prefixes share with the sum of all items.

    Attributes
    ----------
    variances : numpy.ndarray of float64
        Shape (domain + 1,): of ranges of the lengths 0 .. domain.
    shared : numpy.ndarray of float64 or None
        Shape (domain + 1,): the covariances of prefixes with the sum of all items. Where no block
        tells that sum, they are the covariances of what no block tells: to know it moves nothing
        else. None: there is no padding.
    """

    variances: Floats
    shared: Floats | None


def per_user_of_blocks(oracle: Oracle, domain: int, width: int) -> float:
    """The variance of a unit contrast between blocks, from one user drawn at random.

    Parameters
    ----------
    oracle : Oracle
        Over the blocks.
    domain : int
        Over how many items the users are spread evenly.
    width : int
        The items of a block, whatever angle they begin at.

    Returns
    -------
    float
        In squared fractions of one user.
    """
    held = max(-(-domain // width), 2)
    return oracle.difference_variance(1, held) / 2 + width / domain


@lru_cache(maxsize=8)
def _curve(protocol: CircularHistogram, users: tuple[float, ...]) -> Curve:
    size, domain = protocol.size, protocol.domain
    information = protocol.information(np.array(users))
    frequency = np.arange(1, size // 2 + 1)
    spectrum = np.zeros(size // 2 + 1)
    power = 1 / (2 * np.sin(np.pi * frequency / size) ** 2)
    np.divide(power, information[1:], out=spectrum[1:], where=information[1:] > 0)
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
        told = unseen if unseen[domain] else variances
        shared = (told + told[domain] - told[::-1]) / 2
    return Curve(np.where(unseen > 0, np.inf, variances), shared)


def _windows(values: Floats, width: int) -> Floats:
    """The sums of so many values in a row around a circle, from each one on."""
    sums = np.cumsum(np.concatenate([[0.0], values, values[: width - 1]]))
    return sums[width:] - sums[:-width]


def seen(circle: int, width: int) -> Floats:
    """How much blocks of a width see of each frequency, all angles together.

    Parameters
    ----------
    circle : int
        The items of the circular domain, at least 1.
    width : int
        The items of a block: a divisor of ``circle``.

    Returns
    -------
    numpy.ndarray of float64
        Shape (circle // 2 + 1,): exactly 0 where they see nothing.
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


def round_up(domain: int) -> int:
    """The size of a circular domain for so many items, so that it has enough divisors.

    A multiple of the largest power of two up to domain / 16; of 4 for domains from 8.
    """
    step = 1 if domain < 8 else max(4, 1 << max(0, (domain // 16).bit_length() - 1))
    return max(2, -(-domain // step) * step)
