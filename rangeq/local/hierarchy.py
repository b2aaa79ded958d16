"""Hierarchical histograms HH_B: a consistent histogram over the nodes of every level of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.core import Aggregate, Oracle, weights_of
from frequency.oracles import OracleChoice, choices_of, oracle_over
from mechdesign.base import Floats, set_fields
from rangeq.core import (
    ConsistentTree,
    Cuts,
    NodeLaw,
    RangeProtocol,
    Tree,
    consistent,
    contrast_precisions,
    inverse,
    level_estimates,
)


@dataclass(frozen=True)
class LevelHistograms(RangeProtocol):
    """A histogram over the nodes of every level of a tree, each by an oracle of its own.

    See `HierarchicalHistogram` for ``branching``, ``oracle`` and ``probabilities``.
    """

    branching: int | tuple[int, ...] = 4
    oracle: OracleChoice | tuple[OracleChoice, ...] = "OUE"
    probabilities: tuple[Any, ...] | None = None

    listed: ClassVar[tuple[str, ...]] = ("branching", "oracle", "probabilities")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.part_weights, self.parts  # what is wrong with them is wrong now

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.domain, self.branching)

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        return tuple(
            oracle_over(choice, nodes, self.epsilon)
            for choice, nodes in zip(
                choices_of(self.oracle, self.tree.height), self.tree.nodes, strict=True
            )
        )

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return weights_of(self.tree.height, self.probabilities, "level")


@dataclass(frozen=True)
class HierarchicalHistogram(LevelHistograms, ConsistentTree):
    """HH_B with consistency (range queries, section 4.5): every node is the sum of its children.

    All levels are combined by least squares, which is the most accurate. `DecomposedHistogram`
    leaves them as they are. TreeOUE, TreeHRR and TreeOLH of the paper are this, by ``oracle``.

    Least squares multiply the variance of a node by at most B / (B + 1) (Lemma 4.6; thesis Lemma
    10). With V the variance of the oracle for all users, the source bounds the variance of a range
    of r items for B = 8 by V log2(r) log2(D) / 2 (equation 2).

    Parameters
    ----------
    domain, epsilon : as of `RangeProtocol`
        The number of items, and the privacy loss of one report.
    branching : int or tuple of int, default 4
        Children of a node: one number for all levels (the first level has as many nodes as cover
        the domain), or a list from the top. Leaves beyond the domain are padding, always empty and
        never in an answer.
    oracle : str, class, Oracle, Mechanism or tuple of these, default "OUE"
        The oracle of all levels, or one for each: a name such as "OUE", "HRR", "OLH", "GRR" or
        "SubsetSelection", a class of oracles, or for a level of as many nodes an oracle or a
        mechanism of `mechdesign`. See `frequency.oracles.randomized_response`.
    probabilities : sequence of exact rationals, optional
        Of each level from the top, exact rationals that sum to 1; None: all the same.

    Raises
    ------
    ValueError
        A branching, names or probabilities that do not fit the domain or each other.
    """

    privacy_source: ClassVar[str] = "range queries, section 4.4"

    @cached_property
    def _per_user(self) -> Floats:
        """A unit contrast's variance from one random user of an even population, for each level."""
        return np.array(
            [
                per_user(oracle, occupied)
                for oracle, occupied in zip(self.parts, self.tree.occupied, strict=True)
            ]
        )

    def _contrasts(self, users: Floats) -> Floats:
        return inverse(contrast_precisions(self.tree, users / self._per_user))

    def _shares(self, users: Floats) -> tuple[Floats, Floats]:
        """The weights of a level in contrasts above: up[a] * down[l] for levels a <= l."""
        # A contrast at level a is estimated at level l through sums of n_l / n_a nodes, with as
        # many times the variance: its precision there is p_l n_a / n_l, and its share of the
        # least-squares estimate that over the sum of those of all levels from a down. So shares are
        # products of a factor of a and one of l
        precisions, nodes = users / self._per_user, np.array(self.tree.nodes)
        contrasts = inverse(contrast_precisions(self.tree, precisions))
        return np.where(np.isfinite(contrasts), nodes * contrasts, 0.0), precisions / nodes

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        up, down = self._shares(users)
        nodes = self.tree.nodes
        total = np.zeros((len(leaves), nodes[level]))
        for above in range(
            level + 1
        ):  # a contrast between nodes above is seen through the sums of nodes below them
            total += (up[above] * down[level]) * np.repeat(
                self.tree.coverage(leaves, above), nodes[level] // nodes[above], axis=1
            )
        return total

    @cached_property
    def alike(self) -> bool:
        return all(oracle.symmetric for oracle in self.parts)

    @cached_property
    def _laws(self) -> list[NodeLaw]:
        return [NodeLaw.of(oracle) for oracle in self.parts]

    def _cuts(self, users: Floats, mass: Floats) -> Cuts:
        up, down = self._shares(users)
        nodes, each = np.array(self.tree.nodes), np.where(users > 0, inverse(users), 0.0)
        # A report on a level enters with the weight `down`, squared in a variance; `each` is one
        # over the users of the level
        contrast = np.array([law.contrast for law in self._laws]) * down**2 * each * nodes
        of_users = np.array([law.held for law in self._laws]) * down**2 * each
        means = np.tril(np.outer(down * np.sqrt(each), up))
        return Cuts(
            self.tree,
            up**2 / nodes * _below(contrast),
            up,
            _below(of_users),
            means,
            mass,
            self._shared(users),
        )

    def _leaves(self, aggregate: Aggregate) -> Floats:
        return consistent(
            self.tree,
            level_estimates(self.channel, self.parts, aggregate),
            self.channel.part_users(aggregate) / self._per_user,
        )


def _below(values: Floats) -> Floats:
    """The sums over each level and those below it."""
    return np.cumsum(values[::-1])[::-1]


def per_user(oracle: Oracle, held: int) -> float:
    """The variance of a unit contrast between nodes, from one user drawn at random."""
    # A unit contrast of two nodes is their difference over the root of 2, hence half of its noise;
    # sampling adds the frequency of a node, 1 / held, if the population is even
    return oracle.difference_variance(1, max(held, 2)) / 2 + 1 / max(held, 2)


# ------------------------------------------------------------------------------------------------
# The flat method: one histogram over the items, and ranges by adding up.


@dataclass(frozen=True)
class Flat(LevelHistograms, ConsistentTree):
    """One histogram over the items, and ranges by adding up (range queries, section 4.2).

    The estimates are shifted to sum to 1, since every user is somewhere: a range of r items then
    has the variance r (1 - r/D) V instead of the r V of Fact 1, which ``DecomposedHistogram(D,
    epsilon, D)`` has. `rangeq.central.CentralFlat` trusts a curator.

    Parameters
    ----------
    domain, epsilon : as of `RangeProtocol`
        The number of items, and the privacy loss of one report.
    oracle : str, class, Oracle or Mechanism, default "OUE"
        Over the items themselves: see `frequency.oracles.randomized_response`.
    branching : int or tuple of int, default ()
        Not used: there is one level.
    probabilities : sequence, optional
        Not used: there is one level.
    """

    privacy_source: ClassVar[str] = "range queries, section 4.2"

    branching: int | tuple[int, ...] = ()
    oracle: OracleChoice | tuple[OracleChoice, ...] = "OUE"

    def __post_init__(self) -> None:
        if isinstance(self.domain, (int, np.integer)):
            set_fields(self, branching=(max(2, int(self.domain)),))
        super().__post_init__()

    @cached_property
    def _histogram(self) -> HierarchicalHistogram:
        """The hierarchical histogram of one level that this is."""
        return HierarchicalHistogram(self.domain, self.epsilon, self.branching, self.oracle)

    @property
    def alike(self) -> bool:
        return self._histogram.alike

    def _contrasts(self, users: Floats) -> Floats:
        return self._histogram._contrasts(users)

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        return self._histogram._level_weights(leaves, users, level)

    def _cuts(self, users: Floats, mass: Floats) -> Cuts:
        return self._histogram._cuts(users, mass)

    def _leaves(self, aggregate: Aggregate) -> Floats:
        return self._histogram._leaves(aggregate)
