"""HaarHRR: the discrete Haar transform, each level's coefficients by Hadamard response."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, binary_basis, walsh_hadamard
from frequency.core import Aggregate, Oracle, two_likelihoods, variance_of
from frequency.oracles import OracleChoice, SignChannel
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import Floats, Items
from rangeq.core import ConsistentTree, Cuts, Haar, Levels, Tree, cells_of, inverse
from rangeq.local.hierarchy import level_oracles, per_user_of_levels


@dataclass(frozen=True)
class HaarLevel(SignChannel, Oracle):
    """One level of Haar coefficients: the user's node and side of it, as one bit.

    Items are the children of the nodes, a power of two in number, at least 2. A user's vector is +1
    (left child) or -1 (right) at the user's node and 0 elsewhere; a report is the ``index`` of a
    Walsh-Hadamard coefficient of it, uniform in 0 .. domain/2 - 1, and its ``sign`` by randomised
    response. Only differences between two children of a node can be estimated: the frequencies are
    half of them, with signs.
    """

    @property
    def _indices(self) -> dict[str, range]:
        return {"index": range(self.domain // 2)}

    @property
    def _expression(self) -> list[Any]:
        return ["haar"]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        (coefficient,) = index
        return (np.bitwise_count(coefficient & (items >> 1)) ^ items) & 1

    def differences(self, aggregate: Aggregate) -> Floats:
        """Unbiased estimates of the left less the right fraction of each node."""
        return walsh_hadamard(aggregate.counts.astype(np.float64)) / (aggregate.n * self.contrast)

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        half = self.differences(aggregate) / 2
        both = np.stack([half, -half], axis=1).ravel()
        return both if items is None else both[items]

    @property
    def symmetric(self) -> bool:
        return True

    @cached_property
    def _own_and_other(self) -> tuple[float, float]:
        # A child is estimated as half of its node's difference, with its sign.
        other = 1 / self.contrast**2 / 4
        return other - 1 / 4, other

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # (1 / contrast^2 - 2 / held) / n for the two children of a node
        return float(variance_of(n, 1 / self.contrast**2 - 2 / (held or self.domain)))

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # Of the frequencies estimated, a child's is half of its node's difference, with its sign.
        nodes = (weights[:, 0::2] - weights[:, 1::2]) / 2
        contributed = (nodes**2).sum(axis=1) / self.contrast**2
        contributions = np.stack([nodes, -nodes], axis=2).reshape(len(nodes), -1)
        return variance_of(n, contributed - contributions**2 @ frequencies)

    def share_alike(self, items: Items) -> Fraction:
        # The last digit is the side: opposite sides of one node have opposite signs everywhere
        basis = binary_basis(int(items[0]) ^ item for item in items[1:].tolist())
        return Fraction(1 not in basis, 1 << len(basis))

    def audit(self) -> Audit:
        # The index does not depend on the item; given it, one sign has weight ``truth`` and the
        # other ``lie``.
        return Audit(self._choice.ratio, self.max_ratio, "index 0, sign +1", (0, 1))


@dataclass(frozen=True)
class HaarLevels(Levels):
    """The coefficients of all levels of a tree, each by a `HaarLevel`."""

    def dominating_law(self) -> PairLaw:
        # Of two items that part at a level: above it they are in one node; there they are siblings,
        # whose signs are opposite everywhere; below it they have the same sign half of the time.
        shares = [Fraction(weight, WORD) for weight in self.weights]
        together = min(
            sum(shares[:level], Fraction(0)) / 2 + sum(shares[level + 1 :], Fraction(0)) / 4
            for level in range(len(shares))
        )
        return two_likelihoods(*self.channels[0].low_and_high, together)


@dataclass(frozen=True)
class HaarHRR(ConsistentTree):
    """One bit: a Walsh-Hadamard coefficient of a random level of the item's Haar transform.

    Range queries, section 4.6. The domain is padded to a power of two. Consistent by construction:
    every level determines how the nodes above it split, and nothing else.

    With an ``oracle`` the report is instead about the nodes of the level, and a coefficient is the
    difference of its estimates of the two children.

    With V the variance of HRR for all users, the source bounds the variance of any range by V
    log2(D)^2 / 2 (equation 3).

    Parameters
    ----------
    domain, epsilon : as of `RangeProtocol`
        The number of items, and the privacy loss of one report.
    probabilities : sequence of exact rationals, optional
        Of each level from the top, exact rationals that sum to 1; None: all the same.
    oracle : str, class, Oracle, Mechanism or tuple of these, optional
        Over the nodes of all levels, or of each: see `frequency.oracles.randomized_response`. None:
        the coefficients themselves, by Hadamard response.

    Raises
    ------
    ValueError
        For a domain, an epsilon, probabilities or oracles out of range.
    """

    privacy_source: ClassVar[str] = "range queries, section 4.6"

    probabilities: tuple[Any, ...] | None = None
    oracle: OracleChoice | tuple[OracleChoice, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.part_weights, self.parts

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.domain, 2)

    @cached_property
    def channel(self) -> Levels:
        given, kind = super().channel, HaarLevels if self.oracle is None else Levels
        return kind(*(getattr(given, item.name) for item in fields(given)))

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        if self.oracle is None:
            return tuple(HaarLevel(nodes, self.epsilon) for nodes in self.tree.nodes)
        return level_oracles(self.oracle, self.tree.nodes, self.epsilon)

    @property
    def alike(self) -> bool:
        return self.oracle is None

    def _contrasts(self, users: Floats) -> Floats:
        return inverse(users) * self._per_user

    @cached_property
    def _per_user(self) -> Floats:
        return per_user_of_levels(self.parts, self.tree.occupied)

    def _cuts(self, users: Floats, mass: Floats) -> Cuts:
        # A level's coefficients tell nothing of other levels, and the same of every population.
        none, each = np.zeros(self.tree.height), np.where(users > 0, inverse(users), 0.0)
        means = np.diag(np.sqrt(each))
        return Cuts(self.tree, each * self._per_user, none, none, means, mass, self._shared(users))

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        return self.tree.coverage(leaves, level)

    def _leaves(self, aggregate: Aggregate) -> Floats:
        levels: dict[tuple[int, ...], Floats] = {(0,): np.ones(1)}
        for k, level in enumerate(self.parts):
            part = self.channel.part_aggregate(aggregate, k)
            if part.n:
                children = level.frequencies_of(part, None)
                levels[k + 1,] = children[0::2] - children[1::2]
        return cells_of([Haar(self.tree.leaves)], levels)
