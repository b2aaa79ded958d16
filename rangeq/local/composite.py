"""Composite: a designed mechanism for the large nodes, and a tree for the items within each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from frequency import Tabular
from frequency.core import Aggregate, Oracle
from frequency.oracles import OracleChoice, choices_of
from mechdesign import Mechanism, PrivacyViolation
from mechdesign.base import Floats, Items, set_fields, shown
from rangeq.core import (
    ConsistentTree,
    Tree,
    consistent,
    contrast_precisions,
    inverse,
    level_estimates,
    padded,
    spread,
)
from rangeq.local.circle import ToeplitzInverse, windows
from rangeq.local.circular import BlockHierarchy, Blocks
from rangeq.local.hierarchy import level_oracles, per_user_of_levels


@dataclass(frozen=True)
class Composite(ConsistentTree):
    """A tree whose first level is answered by any mechanism of `mechdesign`, say one for ranges.

    The errors of a designed mechanism are not alike in all directions, so that its estimates and
    those that the levels below it give of its nodes are combined in its own principal axes; below,
    everything is as in `HierarchicalHistogram`.

    The variances that its estimates state are those of the estimated population; of ranges over
    more than 4096 items, those of an even one.

    Parameters
    ----------
    mechanism : Mechanism
        Local, ``neighbours="all"``: its inputs are equal blocks of neighbouring items, the nodes of
        the first level. With as many inputs as there are items it answers for everything.
    branching : tuple of int, optional
        The children of the nodes of each further level, from the top; the product with the
        mechanism's inputs is the domain.
    oracle : tuple, optional
        The oracle of each further level: see `frequency.oracles.randomized_response`.
    probabilities : sequence of exact rationals, optional
        Of each level, the mechanism's first: exact rationals that sum to 1; None: all the same.

    Raises
    ------
    ValueError
        The mechanism is not a local one, or of a single input; the product is not the domain; names
        or probabilities do not fit.
    PrivacyViolation
        The mechanism loses more than epsilon.
    NotIdentifiable
        The mechanism's outputs do not determine the frequencies of its inputs.
    """

    mechanism: Mechanism
    branching: tuple[int, ...] = ()
    oracle: tuple[OracleChoice, ...] = ()
    probabilities: tuple[Any, ...] | None = None

    largest_plugged_in: ClassVar[int] = 4096

    def __post_init__(self) -> None:
        for name in ("branching", "oracle", "probabilities"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"{name} must be a list, one for each level, got {shown(given)}")
        super().__post_init__()
        audit = checked_local(self.mechanism).audit()
        if audit.ratio > self.max_ratio:
            raise PrivacyViolation(audit.ratio, self.max_ratio, audit.output, audit.inputs)
        if self.tree.leaves != self.domain:
            raise ValueError(
                f"{self.mechanism.inputs} inputs and branching {shown(self.branching)} are not"
                f" {self.domain} items"
            )
        _ = self.part_weights, self.parts

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.domain, (self.mechanism.inputs, *self.branching))

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        below = level_oracles(self.oracle, self.tree.nodes[1:], self.epsilon)
        return Tabular(self.mechanism), *below

    @property
    def alike(self) -> bool:
        return True

    @cached_property
    def _axes(self) -> tuple[Floats, Floats]:
        """Precisions (k - 1,) and directions (k, k - 1) of a report about evenly spread inputs."""
        matrix = self.mechanism.matrix
        seen = matrix.mean(axis=1)
        table = matrix[seen > 0]
        # Fisher's information of one report about the inputs, at even frequencies: M' diag(1 /
        # outputs) M; outputs that never come tell nothing
        information = (table.T / seen[seen > 0]) @ table
        k = len(information)
        # Frequencies sum to 1: directions that change the sum are taken off on both sides
        centred = information - information.mean(axis=0)
        values, directions = np.linalg.eigh(centred - centred.mean(axis=1, keepdims=True))
        # The smallest, 0, is the direction of the sum.
        return np.maximum(values[1:], 0.0), directions[:, 1:] - directions[:, 1:].sum(axis=0) / k

    @cached_property
    def _per_user(self) -> Floats:
        return per_user_of_levels(self.parts[1:], self.tree.nodes[1:])

    def _below(self, users: Floats) -> Floats:
        """The precisions of the levels' own estimates; none of the first."""
        # The mechanism's own precision is not one number: it enters by its axes, in `_top`
        return np.concatenate([[0.0], users[1:] / self._per_user])

    def _top(self, users: Floats) -> Floats:
        """The precisions along the axes of the first level, from all levels."""
        return users[0] * self._axes[0] + contrast_precisions(self.tree, self._below(users))[0]

    def precisions(self, users: Floats) -> Floats:
        """The precisions along the first level's axes, then of contrasts: (k + height - 2,)."""
        return np.concatenate(
            [self._top(users), contrast_precisions(self.tree, self._below(users))[1:]]
        )

    def costs(self, workload: str) -> Floats:
        """The cost of a unit of variance of each of these in the mean over a workload."""
        directions, below = self._axes[1], self.tree.costs(workload)[1:]
        along = (
            directions
            * (_gram_of_blocks(self.mechanism.inputs, self.tree.widths[0], workload) @ directions)
        ).sum(axis=0)
        return np.concatenate([along, below])

    def _contrasts(self, users: Floats) -> Floats:
        """The variances of contrasts below the first level; 0 stands for that."""
        result = inverse(contrast_precisions(self.tree, self._below(users)))
        result[0] = 0.0 if users[0] else result[0]
        return result

    def _leaves(self, aggregate: Aggregate) -> Floats:
        users = self.channel.part_users(aggregate)
        estimates = level_estimates(self.channel, self.parts, aggregate)
        leaves = consistent(self.tree, estimates, self._below(users))
        if not users[0]:
            return leaves
        values, directions = self._axes
        nodes = self.tree.sums(leaves, 0)
        # In the principal axes both estimates of the first level are independent: each axis is
        # their mean by precision
        share = users[0] * values / self._top(users)
        change = directions @ (share * (directions.T @ (estimates[0] - nodes)))
        return leaves + np.repeat(change / self.tree.widths[0], self.tree.widths[0])

    # A range covers the first level's nodes as the difference of two prefixes does: all nodes up to
    # one, and part of that.

    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        below = super()._own_range_variance(first, last, users)
        if not users[0]:
            return below
        values, directions = self._top(users), self._axes[1]
        sums = np.concatenate(
            [np.zeros((1, len(values))), np.cumsum(directions, axis=0), np.zeros((1, len(values)))]
        )
        covariances, width = (sums / values) @ sums.T, self.tree.widths[0]

        def between(x: Items, y: Items) -> Floats:
            (i, a), (j, b) = divmod(x, width), divmod(y, width)
            up, right = a / width, b / width
            lower = (1 - right) * covariances[i, j] + right * covariances[i, j + 1]
            upper = (1 - right) * covariances[i + 1, j] + right * covariances[i + 1, j + 1]
            return (1 - up) * lower + up * upper

        after = last + 1
        variances = between(after, after) + between(first, first) - 2 * between(first, after)
        return below + np.maximum(variances, 0.0)

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        below = super()._own_linear_variance(weights, users)
        if not users[0]:
            return below
        along = (
            weights.reshape(*weights.shape[:-1], self.mechanism.inputs, -1).mean(axis=-1)
        ) @ self._axes[1]
        return below + along**2 @ (1 / self._top(users))

    def _own_average(self, users: Floats, workload: str) -> float:
        costs, precisions = self.costs(workload), self.precisions(users)
        asked = costs > 0
        # A direction that is asked about and that nobody reports on
        if (precisions[asked] <= 0).any():
            return math.inf
        return float((costs[asked] / precisions[asked]).sum())

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        values, directions = self._axes
        below = self._below(users)
        q, nodes = contrast_precisions(self.tree, below), self.tree.nodes
        across = (self.tree.coverage(leaves, 0) @ directions) / self._top(users)
        if level == 0:
            return users[0] * (across * values) @ directions.T
        total = (
            below[level]
            * nodes[0]
            / nodes[level]
            * np.repeat(across @ directions.T, nodes[level] // nodes[0], axis=1)
        )
        for above in range(1, level + 1):
            share = below[level] * nodes[above] / nodes[level] / q[above]
            total += share * np.repeat(
                self.tree.coverage(leaves, above), nodes[level] // nodes[above], axis=1
            )
        return total


def checked_local(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism if it is a local one of two inputs or more, else raise ValueError."""
    if (
        not isinstance(mechanism, Mechanism)
        or mechanism.privacy.neighbours != "all"
        or mechanism.inputs < 2
    ):
        raise ValueError(
            "the mechanism must be a local one: a Mechanism of two inputs or more, neighbours='all'"
        )
    return mechanism


def _gram_of_blocks(blocks: int, width: int, workload: str) -> Floats:
    """Return the mean over a workload of w w', w the part of each block that a query covers."""
    domain, block = blocks * width, np.arange(blocks)
    # A prefix covers the blocks before one, and of that 0, 1 / width, ..: so much in all; the last
    # one covers everything.
    part, square = (width - 1) / 2, (width - 1) * (2 * width - 1) / (6 * width)
    later = blocks - 1.0 - np.maximum.outer(block, block)
    same, one_of_both = np.eye(blocks), 1.0 - np.eye(blocks)
    squares = width * later + part * one_of_both + square * same + 1
    if workload == "prefixes":
        return squares / domain
    sums = width * (blocks - 1.0 - block) + part + 1
    # A range is the difference of two prefixes: see `mean_over`.
    # Sums over all pairs of prefixes: (D + 1) times the sum of squares less the square of the sum
    total, ranges = (domain + 1) * squares - np.outer(sums, sums), domain * (domain + 1) // 2
    if workload == "ranges":
        total, ranges = total - same / width, ranges - domain
    return total / max(ranges, 1)


# ------------------------------------------------------------------------------------------------
# ShiftedHistogram: histograms of several bin widths, each shifted by a random offset.


@dataclass(frozen=True)
class ShiftedHistogram(BlockHierarchy):
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
        self._added_by_levels(total, users, solution, frequencies)
        return np.where(np.ptp(weights, axis=-1) == 0, 0.0, np.maximum(total, 0.0))


@dataclass(frozen=True)
class Solver:
    """The quantities that depend on the numbers of users alone."""

    inverse: ToeplitzInverse  # the covariances of the items' estimates, if their sum were not known
    # Shape (domain,): the part of an error of that sum that each item gives up; they sum to 1
    shares: Floats
    precision: float  # of that sum


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
