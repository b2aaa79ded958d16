"""ShiftedHistogram: histograms of several bin widths, each shifted by a random offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.core.mixture import weights_of
from frequency.oracles.choice import OracleChoice, choices_of
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Floats, Items
from mechdesign.base.text import shown
from rangeq.core.protocol import EvenErrors, RangeProtocol
from rangeq.core.tree import padded, spread
from rangeq.local.circle import ToeplitzInverse, windows
from rangeq.local.turned_blocks import Blocks, per_user_of_blocks


@dataclass(frozen=True)
class ShiftedHistogram(RangeProtocol):
    """A hierarchy of histograms whose bins are shifted by a random offset for each user.

    Of each bin width all offsets are equally likely, as in averaged shifted histograms (Scott,
    Annals of Statistics 1985); bins at the ends of the domain are cut off. In `CircularHistogram`
    the last items are next to the first, so that prefixes, which cut the domain at its ends as
    well, are estimated worse than need be. Here the root mean square error of prefixes is 3 to 7 %
    above what any protocol can reach for epsilon up to 1 and from 64 items on, and 12 % at most for
    2 (circles: 13 to 20 %; benchmarks/prefixes.py). That of ranges is larger than in circles.

    The least-squares estimate solves equations with a Toeplitz matrix, the sum over the widths w of
    their precision times max(0, 1 - |x - z| / w) for items x and z.

    The variances that its estimates state are those of the estimated population; of ranges over
    more than 4096 items, those of an even one. Oracles over finite fields count as the mean over
    the ways to number the bins.

    Parameters
    ----------
    widths : tuple of int, optional
        The numbers of items of a bin of each level, descending; 1 the last. None: the powers of two
        below the domain.
    oracle : str, class, Oracle, Mechanism or tuple of these, default "ProjectiveGeometry"
        The oracle of all levels, or one for each, that counts cells, over as many bins as there may
        be: see `CircularHistogram`.
    probabilities : sequence of exact rationals, optional
        Of each level, exact rationals that sum to 1; None: all the same.
    """

    widths: tuple[int, ...] | None = None
    oracle: OracleChoice | tuple[OracleChoice, ...] = "ProjectiveGeometry"
    probabilities: tuple[Any, ...] | None = None

    largest_domain: ClassVar[int] = 1 << 20
    largest_population: ClassVar[int] = 1024

    def __post_init__(self) -> None:
        for name in ("widths", "oracle", "probabilities"):
            value = getattr(self, name)
            if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
                plain = (int(item) if isinstance(item, np.integer) else item for item in value)
                set_fields(self, **{name: tuple(plain)})
        super().__post_init__()
        if self.widths is None:
            set_fields(self, widths=powers_below(self.domain))
        assert self.widths is not None
        if (
            not self.widths
            or any(type(width) is not int for width in self.widths)
            or list(self.widths) != sorted(set(self.widths), reverse=True)
            or self.widths[-1] != 1
            or self.widths[0] > max(1, self.domain - 1)
        ):
            raise ValueError(
                f"widths must be integers below {self.domain}, descending, 1 the last, got"
                f" {shown(self.widths)}"
            )
        _ = self.part_weights, self.parts

    @cached_property
    def parts(self) -> tuple[Blocks, ...]:
        widths = self.widths or ()
        bins = [bins_of(self.domain, width) for width in widths]
        choices = choices_of(self.oracle, len(widths))
        return tuple(
            Blocks(number * width, self.epsilon, number, choice)
            for number, width, choice in zip(bins, widths, choices, strict=True)
        )

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return weights_of(len(self.parts), self.probabilities, "level")

    @cached_property
    def _per_user(self) -> Floats:
        return np.array(
            [per_user_of_blocks(level.base, self.domain, level.width) for level in self.parts]
        )

    def information(self, users: Floats) -> Floats:
        """The first column of the precisions of the items, for so many users on each level."""
        total, item = np.zeros(self.domain), np.arange(self.domain)
        for level, number, variance in zip(self.parts, users, self._per_user, strict=True):
            total += number / variance * np.maximum(1 - item / level.width, 0.0)
        return total

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        users, even = self.channel.part_users(aggregate), np.full(self.domain, 1 / self.domain)
        counted = np.zeros(self.domain)
        for k, (level, variance) in enumerate(zip(self.parts, self._per_user, strict=True)):
            if users[k]:
                counts = self.channel.part_aggregate(aggregate, k).counts
                users_in = level.held_of(counts)
                known = windows(padded(even, level.domain), level.width)
                users_in -= level.reporting(counts, users[k]) * known
                # An item is in the bins that begin at it and up to width - 1 items before it
                sums = np.roll(windows(users_in, level.width), level.width - 1)
                counted += sums[: self.domain] / variance
        solver = _solver(self, tuple(users))
        result = even + solver.inverse.times(counted)
        # All users are somewhere: the constraint of sum 1, by its Lagrange multiplier, in
        # proportion to each item's covariance with the sum
        return result + solver.shares * (1 - result.sum())

    @property
    def even(self) -> EvenErrors:
        return EvenErrors.of(self.domain, self._own_range_variance, self._own_linear_variance)

    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        solver = _solver(self, tuple(users))
        shared = np.append(0.0, np.cumsum(solver.shares))
        # The sum of all items is known: the part of the covariance along it is taken off (Schur
        # complement), and the whole domain has no variance at all
        given = (shared[last + 1] - shared[first]) ** 2 / solver.precision
        variances = np.maximum(solver.inverse.blocks(first, last + 1) - given, 0.0)
        return np.where(last - first + 1 == self.domain, 0.0, variances)

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        solver = _solver(self, tuple(users))
        variances = (weights * solver.inverse.times(weights)).sum(axis=-1)
        variances = variances - (weights @ solver.shares) ** 2 / solver.precision
        return np.where(np.ptp(weights, axis=-1) == 0, 0.0, np.maximum(variances, 0.0))

    def variances_from(self, n: int, users: Floats, weights: Floats, frequencies: Floats) -> Floats:
        solver, total = _solver(self, tuple(users)), -spread(weights, frequencies) / n
        solution = solver.inverse.times(weights - (weights @ solver.shares)[:, None])
        even = np.full(self.domain, 1 / self.domain)
        for level, number, variance in zip(self.parts, users, self._per_user, strict=True):
            if number:
                counted, in_bins, known = (
                    windows(padded(values, level.domain), level.width)
                    for values in (solution * (number / variance), frequencies, even)
                )
                total += level.added_variance(counted, in_bins, known) / number
        return np.where(np.ptp(weights, axis=-1) == 0, 0.0, np.maximum(total, 0.0))


@dataclass(frozen=True)
class Solver:
    """The quantities that depend on the numbers of users alone.

    Attributes
    ----------
    inverse : ToeplitzInverse
        The covariances of the items' estimates, if their sum were not known.
    shares : numpy.ndarray of float64
        Shape (domain,): the part of an error of that sum that each item gives up; they sum to 1.
    precision : float
        The precision of that sum.
    """

    inverse: ToeplitzInverse
    shares: Floats
    precision: float


@lru_cache(maxsize=8)
def _solver(protocol: ShiftedHistogram, users: tuple[float, ...]) -> Solver:
    inverse = ToeplitzInverse.of(protocol.information(np.array(users)))
    covariances = inverse.times(np.ones(protocol.domain))
    variance = float(covariances.sum())
    return Solver(inverse, covariances / variance, 1 / variance)


def bins_of(domain: int, width: int) -> int:
    """The most bins of a width that a domain is cut into, whatever the offset; at least 2."""
    return max(2, -(-(domain + width - 1) // width))


def powers_below(domain: int) -> tuple[int, ...]:
    """The powers of two below the domain, descending; at least 1."""
    return tuple(1 << k for k in reversed(range(max(1, (domain - 1).bit_length()))))
