"""The tree, oracles and level probabilities of least predicted error for a workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from tqdm import tqdm

from frequency.oracle import Oracle
from mechdesign.rational import Rational
from rangeq.flat import Flat
from rangeq.haar import HaarHRR
from rangeq.hierarchy import ORACLES, HierarchicalHistogram, per_user
from rangeq.protocol import RangeProtocol
from rangeq.tree import WORKLOADS, Floats, Tree

_LONGEST = 256
"""Bits of a report that are still little to send: where the best oracle for a level takes more, the best of the others is taken."""

_BRANCHINGS = (2, 3, 5, 7)
"""A tree with levels left out is a tree of larger branching, so powers need no trees of their own."""


@dataclass(frozen=True)
class Optimised:
    """What `optimise` found; ``print`` shows the table.

    Attributes
    ----------
    protocol
        The one with the least predicted error.
    rmse
        Its root of the average variance over the workload.
    alternatives
        (protocol, rmse), the best first: optimised trees, and the published protocols.
    """

    protocol: RangeProtocol
    rmse: float
    alternatives: tuple[tuple[RangeProtocol, float], ...]

    def __str__(self) -> str:
        lines = [f"{'RMSE':>10}  {'ratio':>6}  {'bits':>6}  protocol"]
        for protocol, rmse in self.alternatives:
            ratio = rmse / self.rmse if self.rmse else 1.0
            lines.append(f"{rmse:>10.4g}  {ratio:>6.3f}  {protocol.report_bits:>6}  {describe(protocol)}")
        return "\n".join(lines)


def describe(protocol: RangeProtocol) -> str:
    """A protocol in a line."""
    if not isinstance(protocol, HierarchicalHistogram):
        return type(protocol).__name__
    if isinstance(protocol, Flat):
        return f"Flat, {protocol.oracle}"
    shape = "x".join(map(str, protocol.tree.branching))
    if isinstance(protocol.oracle, str):
        return f"HH {shape}, {protocol.oracle}"
    shares = ", ".join(f"{name} {float(p):.3f}" for name, p in zip(protocol.oracle, protocol.probabilities or (), strict=True))
    return f"HH {shape}: {shares}"


def optimise(domain: int, epsilon: float | Rational, n: int, workload: str = "ranges", *, progress: bool = False) -> Optimised:
    """The protocol of least average variance over a workload, among trees with an oracle and a probability for each level.

    The average variance of a consistent tree is a sum over levels of parents of a constant of the workload over a precision, and
    precisions are linear in the probabilities: a convex problem, solved by multiplicative updates. Levels that get next to no
    users are left out, which makes larger branchings. Each level has the oracle of least variance among its nodes.

    Parameters
    ----------
    domain, epsilon
        As for every oracle.
    n
        The number of users.
    workload
        "ranges", "all ranges" or "prefixes", see `rangeq.tree.WORKLOADS`; a population without heavy nodes.
    progress
        Show a bar on standard error.
    """
    if workload not in WORKLOADS:
        raise ValueError(f"workload must be one of {', '.join(WORKLOADS)}, got {workload!r}")
    candidates = [*_published(domain, epsilon), *_optimised(domain, epsilon, workload)]
    found = [(p, p.average_rmse(n, workload)) for p in tqdm(candidates, disable=not progress, desc="protocols", leave=False)]
    found.sort(key=lambda pair: pair[1])
    return Optimised(*found[0], tuple(found))


def _published(domain: int, epsilon: float | Rational) -> Iterator[RangeProtocol]:
    yield Flat(domain, epsilon, oracle="OUE")
    yield HaarHRR(domain, epsilon)
    for branching in (2, 4, 8, 16):
        for name in ("OUE", "HRR"):
            yield HierarchicalHistogram(domain, epsilon, branching, name)


def _optimised(domain: int, epsilon: float | Rational, workload: str) -> Iterator[RangeProtocol]:
    trees = {Tree.of(domain, branching) for branching in _BRANCHINGS}
    trees.add(Tree(domain, (max(2, domain),)))
    for tree in sorted(trees, key=lambda tree: tree.branching):
        oracles = [best_oracle(nodes, held, epsilon) for nodes, held in zip(tree.nodes, tree.occupied, strict=True)]
        shares = probabilities(tree, np.array([variance for _, variance in oracles]), workload)
        kept = [level for level in range(tree.height) if shares[level] > 1e-4 or level == tree.height - 1]
        nodes = [1, *(tree.nodes[level] for level in kept)]
        branching = tuple(below // above for above, below in pairwise(nodes))
        exact = [Fraction(round(shares[level] * 2**32)) for level in kept]
        chances = tuple(share / sum(exact) for share in exact)
        names = tuple(type(oracles[level][0]).__name__ for level in kept)
        yield HierarchicalHistogram(domain, epsilon, branching, names, True, chances)


def best_oracle(nodes: int, held: int, epsilon: float | Rational) -> tuple[Oracle, float]:
    """The oracle of least variance for a level with so many nodes, ``held`` of them not padding; and its `per_user`."""
    made = [kind(nodes, epsilon) for kind in ORACLES.values()]
    rated = [(per_user(oracle, held), oracle.report_bits, k) for k, oracle in enumerate(made)]
    short = [item for item in rated if item[1] <= _LONGEST]
    variance, _, k = min(short)
    return made[k], variance


def probabilities(tree: Tree, variances: Floats, workload: str) -> Floats:
    """The probabilities of levels that minimise the average variance, given `per_user` of each level."""
    height = tree.height
    costs = tree.costs(workload)
    seen = np.zeros((height, height))  # what one user on a level adds to the precision of the contrasts of each level of parents
    for above in range(height):
        for level in range(above, height):
            seen[above, level] = tree.nodes[above] / tree.nodes[level] / variances[level]
    shares = np.full(height, 1 / height)
    for _ in range(10_000):
        precision = seen @ shares
        gains = (costs / precision**2) @ seen
        total = float(shares @ gains)  # the average variance itself, as it is homogeneous in 1 / shares
        if total == 0 or gains.max() <= total * (1 + 1e-9):
            break  # no level would gain from another's users: optimal to one part in 10^9
        shares = shares * np.sqrt(gains / total)
        shares /= shares.sum()
    return shares
