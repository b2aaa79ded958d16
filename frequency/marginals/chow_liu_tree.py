"""Chow-Liu trees: the best approximation of a distribution by a tree (thesis 2.5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import scipy

from frequency.marginals.association import mutual_information
from frequency.marginals.estimate import MarginalEstimate
from mechdesign.base.text import printable, shown

Marginals = Callable[[str, str], npt.ArrayLike]
"""A function from the names of two attributes to their proper distribution, of shape (values of
the first, values of the second).
"""


@dataclass(frozen=True)
class ChowLiuTree:
    """A spanning tree of attributes.

    Attributes
    ----------
    attributes : tuple of str
        The nodes.
    edges : tuple of (str, str)
        Pairs of attributes, one fewer than attributes, those of the largest information first.
    informations : tuple of float
        The mutual information of each edge in nats, by the marginals that the tree was learned
        from.
    """

    attributes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    informations: tuple[float, ...]

    def total(self, marginals: Marginals | None = None) -> float:
        """Return the sum of the edges' mutual informations in nats, by the marginals given.

        None: those that the tree was learned from.

        The divergence of the tree's distribution from the true one is a constant less this sum by
        the true marginals (Chow and Liu 1968): how much less it is than the true tree's is what
        learning from estimates loses (thesis Figure 4.9).
        """
        if marginals is None:
            return float(sum(self.informations))
        return float(sum(mutual_information(marginals(a, b)) for a, b in self.edges))

    def __str__(self) -> str:
        return "\n".join(
            printable(f"{a} - {b}  {value:.4f}")
            for (a, b), value in zip(self.edges, self.informations, strict=True)
        )


def chow_liu(
    source: MarginalEstimate | Marginals, attributes: Sequence[str] | None = None
) -> ChowLiuTree:
    """Return the spanning tree of the largest total mutual information.

    Source: Chow and Liu 1968; thesis 2.5.1, 4.5.2.

    Parameters
    ----------
    source : MarginalEstimate or Marginals
        An estimate of marginals (k >= 2), whose proper `MarginalEstimate.distribution` is taken; or
        a function that gives the distribution of two attributes.
    attributes : sequence of str, optional
        The nodes, distinct; None: all of the estimate's. A function needs them.

    Returns
    -------
    ChowLiuTree
        The edges, those of the largest information first.

    Raises
    ------
    ValueError
        No reports, no attributes, the same one twice, or one that the estimate does not have.

    >>> same, apart = [[0.5, 0.0], [0.0, 0.5]], [[0.3, 0.2], [0.2, 0.3]]
    >>> tree = chow_liu(lambda a, b: same if a + b == "xy" else apart, "xyz")
    >>> tree.edges[0], round(tree.total(), 4)
    (('x', 'y'), 0.7133)
    """
    if isinstance(source, MarginalEstimate):
        names = (
            source.domain.attributes if attributes is None else source.domain.checked(attributes)
        )
    else:
        names = tuple(attributes or ())
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a tree needs attributes, distinct ones, got {shown(attributes)}")
    pairs = list(combinations(range(len(names)), 2))
    values = np.array([mutual_information(_marginal(source, names[i], names[j])) for i, j in pairs])
    # A weight of 0 would be no edge to scipy: all are at least 1. Its graphs are of 32-bit indices,
    # older releases know no other.
    rows, columns = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    weights = scipy.sparse.csr_array(
        (1 + values.max(initial=0.0) - values, (rows, columns)), shape=(len(names), len(names))
    )
    # All spanning trees have as many edges: subtracting from a constant turns the maximum into a
    # minimum and keeps the order.
    spanning = scipy.sparse.csgraph.minimum_spanning_tree(weights).tocoo()
    informations = dict(zip(pairs, values.tolist(), strict=True))
    chosen = sorted(
        zip(spanning.row.tolist(), spanning.col.tolist(), strict=True),
        key=lambda edge: (-informations[edge], edge),
    )
    return ChowLiuTree(
        names,
        tuple((names[i], names[j]) for i, j in chosen),
        tuple(informations[edge] for edge in chosen),
    )


def _marginal(source: MarginalEstimate | Marginals, a: str, b: str) -> npt.ArrayLike:
    return source.distribution((a, b)) if isinstance(source, MarginalEstimate) else source(a, b)
