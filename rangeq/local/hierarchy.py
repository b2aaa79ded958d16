"""Hierarchical histograms HH_B: a histogram over the nodes of every level of a tree, with or
without consistency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import frequency
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Floats
from frequency.core.mixture import weights_of
from frequency.core.oracle import Oracle
from mechdesign._support.text import shown
from rangeq.core.estimate import RangeEstimate
from rangeq.core.node_decomposition import DecomposedEstimate, average_nodes
from rangeq.core.protocol import TreeProtocol, even_rmse
from rangeq.core.tree import Tree
from rangeq.core.tree_consistency import consistent, contrast_precisions

ORACLES: dict[str, type[Oracle]] = {
    kind.__name__: kind
    for kind in (
        frequency.GRR,
        frequency.SUE,
        frequency.OUE,
        frequency.SubsetSelection,
        frequency.ProjectiveGeometry,
        frequency.OLH,
        frequency.HRR,
    )
}
"""The oracles that a level may have, by name."""


@dataclass(frozen=True)
class HierarchicalHistogram(TreeProtocol):
    """HH_B and HH_B with consistency (range queries 4.4, 4.5): TreeOUE, TreeHRR, TreeOLH of the
    paper by ``oracle``.

    Parameters
    ----------
    branching
        Children of a node: one number for all levels (the first level has as many nodes as cover
        the domain), or a list from the top. Leaves beyond the domain are padding, always empty and
        never in an answer.
    oracle
        The name of an oracle of `frequency` for all levels, or one for each: "OUE", "HRR", "OLH",
        "GRR", "SubsetSelection", ...
    consistent
        Combine all levels by least squares, which is the most accurate. Otherwise a range is the
        sum of the fewest nodes that make it up (4.4), and estimates of nodes and of their children
        contradict each other.
    probabilities
        Of each level from the top, exact rationals that sum to 1; None: all the same.
    """

    branching: int | tuple[int, ...] = 4
    oracle: str | tuple[str, ...] = "OUE"
    consistent: bool = True
    probabilities: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("branching", "oracle", "probabilities"):
            value = getattr(self, name)
            if isinstance(value, np.integer):
                object.__setattr__(self, name, int(value))
            elif isinstance(value, Sequence) and not isinstance(value, str):
                object.__setattr__(
                    self,
                    name,
                    tuple(int(item) if isinstance(item, np.integer) else item for item in value),
                )
        super().__post_init__()
        if not isinstance(self.oracle, (str, tuple)) or not all(
            isinstance(name, str) for name in self._names
        ):
            raise ValueError(
                f"oracle must be a name or one name for each level, got {shown(self.oracle)}"
            )
        names = self._names
        unknown = sorted({name for name in names if name not in ORACLES})
        if unknown or len(names) != self.tree.height:
            what = (
                f"unknown: {', '.join(map(str, unknown))}"
                if unknown
                else f"{len(names)} for {self.tree.height} levels"
            )
            raise ValueError(
                f"oracle must be one of {', '.join(ORACLES)}, or one for each level; {what}"
            )
        _ = self.level_weights, self.levels  # what is wrong with them is wrong now

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.oracle,) * self.tree.height if isinstance(self.oracle, str) else self.oracle

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.domain, self.branching)

    @cached_property
    def levels(self) -> tuple[Oracle, ...]:
        return tuple(
            ORACLES[name](nodes, self.epsilon)
            for name, nodes in zip(self._names, self.tree.nodes, strict=True)
        )

    @cached_property
    def level_weights(self) -> tuple[int, ...]:
        return weights_of(self.tree.height, self.probabilities, "level")

    @cached_property
    def _per_user(self) -> Floats:
        """For each level, the variance of a contrast of unit length from one user drawn at random
        from an even population.
        """
        return np.array(
            [
                per_user(oracle, held)
                for oracle, held in zip(self.levels, self.tree.occupied, strict=True)
            ]
        )

    def _contrasts(self, users: Floats) -> Floats:
        precisions = contrast_precisions(self.tree, users / self._per_user)
        return np.divide(
            1.0, precisions, out=np.full(len(precisions), np.inf), where=precisions > 0
        )

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        precisions = users / self._per_user
        q, nodes = contrast_precisions(self.tree, precisions), self.tree.nodes
        total = np.zeros((len(leaves), nodes[level]))
        # A contrast between nodes above is seen through the sums of nodes below them
        for above in range(level + 1):
            share = precisions[level] * nodes[above] / nodes[level] / q[above]
            total += share * np.repeat(
                self.tree.coverage(leaves, above), nodes[level] // nodes[above], axis=1
            )
        return total

    def _estimates(self, aggregate: Aggregate) -> list[Floats]:
        """Of the nodes of each level by itself; zeros where nobody reported."""
        parts = [(oracle, self._level(aggregate, k)) for k, oracle in enumerate(self.levels)]
        return [
            oracle._frequencies(part, None) if part.n else np.zeros(oracle.domain)
            for oracle, part in parts
        ]

    def _leaves(self, aggregate: Aggregate) -> Floats:
        return consistent(
            self.tree, self._estimates(aggregate), self._users(aggregate) / self._per_user
        )

    def estimate(self, aggregate: Aggregate, items: npt.ArrayLike | None = None) -> RangeEstimate:
        estimate = super().estimate(aggregate, items)
        if self.consistent or not aggregate.n:
            return estimate
        return DecomposedEstimate(
            self, aggregate, self._estimates(aggregate), self._per_node(self._users(aggregate))
        )

    def _per_node(self, users: Floats) -> Floats:
        """The variance of a node's estimate on each level, from users drawn at random from an even
        population.
        """
        ones = [
            o.variance(1, 1 / held) + (1 - 1 / held) / held
            for o, held in zip(self.levels, self.tree.occupied, strict=True)
        ]
        return np.divide(ones, users, out=np.full(len(users), np.inf), where=users > 0)

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        if self.consistent:
            return super().variance(n, frequency)
        light = (1 - 1 / self.domain) / self.domain
        mean = float(self._per_node(self._expected_users(n))[-1]) - light / n
        return mean if np.ndim(frequency) == 0 else np.full(np.shape(frequency), mean)

    def average_rmse(
        self, n: int, workload: str = "ranges", frequencies: npt.ArrayLike | None = None
    ) -> float:
        if self.consistent:
            return super().average_rmse(n, workload, frequencies)
        if frequencies is not None:
            raise ValueError(
                "without consistency the error is predicted for a population without heavy nodes"
                " only"
            )
        nodes = average_nodes(self.tree, workload)
        variance = float(nodes @ np.where(nodes > 0, self._per_node(self._expected_users(n)), 0.0))
        return even_rmse(self.domain, n, workload, variance)


def per_user(oracle: Oracle, held: int) -> float:
    """The variance of a unit contrast between nodes, from one user drawn at random from those
    spread evenly over ``held`` nodes.
    """
    return oracle.difference_variance(1, max(held, 2)) / 2 + 1 / max(held, 2)
