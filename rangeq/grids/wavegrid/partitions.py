"""Sets of values that reports are about, and random partitions of categories into such."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import scipy

from mechdesign.base import Floats, Items
from rangeq.grids.cells import Edges
from rangeq.grids.wavegrid.distributions import Axis, FittedJoint, ImpliedJoint, Link

# ------------------------------------------------------------------------------------------------
# ValueSets: ways to cut an attribute into a few sets of values, of which a report tells one.


@dataclass(frozen=True)
class ValueSets(ABC):
    """Ways to cut the values of an attribute into a few sets: each is a configuration.

    Parameters
    ----------
    size, arcs : int
        The number of values of the attribute, and the number of sets.
    """

    size: int
    arcs: int

    @property
    @abstractmethod
    def phases(self) -> tuple[int, ...]:
        """The numbers of configurations at each level."""

    @property
    @abstractmethod
    def deck(self) -> Items:
        """All configurations, each as often as it is likely."""

    @abstractmethod
    def arc(self, configuration: Items, values: Items) -> Items:
        """Return the set 0 .. arcs - 1 that holds each value.

        Parameters
        ----------
        configuration, values : numpy.ndarray of int64
            Numbers of configurations, and values 0 .. size - 1, of one shape.

        Returns
        -------
        numpy.ndarray of int64
            Of that shape.
        """

    @abstractmethod
    def shares(self, edges: Edges) -> Floats:
        """The part of each cell's values that lies in each set: (configurations, arcs, cells)."""

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """The parameters that client and server must agree on."""

    @property
    @abstractmethod
    def expression(self) -> list[Any]:
        """The expression of `arc` in descriptions: see ``docs/wire.md``."""

    @property
    def configurations(self) -> int:
        """The number of configurations."""
        return sum(self.phases)

    @property
    def probabilities(self) -> Floats:
        """The probabilities of the configurations."""
        return np.bincount(self.deck) / len(self.deck)


# ------------------------------------------------------------------------------------------------
# Categories through random partitions into a few sets, for which no two are neighbours.


# Bit masks of the two bits of a x over the field of 4 elements, for a = 0, 1, w, w + 1: bit b of a
# x is the parity of mask b & x, where x = 2 x_1 + x_0 stands for x_1 w + x_0 and w^2 = w + 1.
_TIMES = ((0, 0), (1, 2), (2, 3), (3, 1))


@dataclass(frozen=True)
class Partition(ValueSets):
    """Ways to cut the values of an attribute into a few sets that do not rest on their order.

    A configuration is a linear function of a value, as a vector over the field of ``arcs``
    elements, but for constant factors: with 2 sets the rows of a Hadamard matrix. Any two values
    are in different sets in equally many configurations, if there are as many values as vectors.

    There are 2 to 256 values, and 2 or 4 sets, or 3 of 3 values.
    """

    @cached_property
    def masks(self) -> Items:
        """Bit b of a set is the parity of mask b & the value: shape (configurations, bits)."""
        if self.arcs == 2:
            return np.arange(1, 1 << (self.size - 1).bit_length())[:, None]
        digits = -(-(self.size - 1).bit_length() // 2)
        # Vectors whose first digit other than 0 is 1: one of each class of multiples, as factors
        # only number the sets anew
        masks = [
            [sum(_TIMES[a][bit] << 2 * place for place, a in enumerate(vector)) for bit in (0, 1)]
            for vector in product(range(4), repeat=digits)
            if next((a for a in vector if a), 0) == 1
        ]
        return np.array(masks, dtype=np.int64)

    @property
    def phases(self) -> tuple[int, ...]:
        """The number of configurations, each as likely: one level of them."""
        return (len(self.masks),)

    @property
    def deck(self) -> Items:
        return np.arange(self.configurations)

    def arc(self, configuration: Items, values: Items) -> Items:
        masks = self.masks[configuration]
        parities = np.bitwise_count(masks & np.asarray(values)[..., None]).astype(np.int64) & 1
        return np.asarray((parities << np.arange(masks.shape[-1])).sum(axis=-1))

    def shares(self, edges: Edges) -> Floats:
        sets = self.arc(np.arange(self.configurations)[:, None], np.arange(self.size)[None])
        inside = (sets[:, None] == np.arange(self.arcs)[:, None]).astype(np.float64)
        return np.asarray(np.add.reduceat(inside, edges[:-1], axis=2) / np.diff(edges))

    @property
    def details(self) -> dict[str, Any]:
        return {"categories": self.size, "arcs": self.arcs}

    @property
    def expression(self) -> list[Any]:
        return ["masks", self.size, self.arcs, self.masks.tolist()]


# ------------------------------------------------------------------------------------------------
# Trees of the most dependent pairs: what other pairs imply, and answers about many attributes.
#
# A distribution of which only the pairs of a tree are known has most entropy if attributes are
# independent given those between them (Chow and Liu 1968).


_TINY = 1e-300  # A positive number that keeps quotients of nothing by nothing finite


def implied(
    joints: Mapping[tuple[int, int], FittedJoint], axes: Sequence[Axis]
) -> dict[tuple[int, int], ImpliedJoint]:
    """Distributions of all other pairs, as the tree of the most dependent pairs implies them."""
    weights = np.full((1, len(axes), len(axes)), -1.0)
    for (j, k), joint in joints.items():
        weights[0, j, k] = weights[0, k, j] = joint.dependence
    parents, order = (rows[0].tolist() for rows in spanning_tree(weights))
    # Pairs that nobody was asked about have the weight -1: an edge of such a pair is none, and the
    # tree falls into several
    above = {
        place: parent
        for place, parent in enumerate(parents)
        if parent >= 0 and weights[0, place, parent] >= 0
    }
    # Given an attribute of the tree: the distribution of each for every cell of it
    # Markov chains along the tree: the distribution given a farther attribute is a product of
    # conditional tables, built up in the order in which Prim's algorithm reached them
    given = {(place, place): np.eye(len(axis.mass)) for place, axis in enumerate(axes)}
    done: list[int] = []
    for place in order:
        if place in above:
            parent = above[place]
            table = joints[_key(parent, place)].table
            table = table if parent < place else table.T
            step = table / np.maximum(table.sum(axis=1, keepdims=True), _TINY)
        for other in done:
            if place in above:
                given[other, place] = given[other, parent] @ step
            else:
                given[other, place] = np.tile(axes[place].mass, (len(axes[other].mass), 1))
            # and the other way round
            # Bayes, with the distributions of single attributes
            back = given[other, place] * axes[other].mass[:, None]
            given[place, other] = (back / np.maximum(back.sum(axis=0), _TINY)).T
        done.append(place)

    def link(j: int, u: int, v: int, k: int) -> Link:
        first, second = given[u, j], given[v, k]
        return Link(joints[_key(u, v)], first, second, u > v)

    return {
        (j, k): ImpliedJoint(
            given[j, k] * axes[j].mass[:, None],
            tuple(link(j, u, v, k) for u, v in pairwise(_path(above, j, k))),
        )
        for j, k in combinations(range(len(axes)), 2)
        if above.get(j) != k and above.get(k) != j
    }


def _key(j: int, k: int) -> tuple[int, int]:
    return (j, k) if j < k else (k, j)


def _path(above: Mapping[int, int], j: int, k: int) -> list[int]:
    """The attributes between two of a forest, these included: none if they are not connected."""
    up = [[j], [k]]
    for steps in up:
        while steps[-1] in above:
            steps.append(above[steps[-1]])
    # The lowest common ancestor
    common = next((place for place in up[0] if place in up[1]), None)
    if common is None:
        return []
    first, second = (steps[: steps.index(common)] for steps in up)
    return [*first, common, *second[::-1]]


def spanning_tree(told: Floats) -> tuple[Items, Items]:
    """The trees of largest sum of graphs `told` (graphs, attributes, attributes), by Prim."""
    graphs, several, _ = told.shape
    rows = np.arange(graphs)
    parents, order = np.full((graphs, several), -1), np.zeros((graphs, several), dtype=np.int64)
    weight, near = told[:, 0].copy(), np.zeros((graphs, several), dtype=np.int64)
    inside = np.zeros((graphs, several), dtype=bool)
    inside[:, 0] = True
    for step in range(1, several):
        best = np.argmax(np.where(inside, -np.inf, weight), axis=1)
        parents[rows, best], order[:, step] = near[rows, best], best
        inside[rows, best] = True
        # Invariant: weight and near are the largest edge from each attribute into the tree, and the
        # end of it
        closer = told[rows, best] > weight
        near = np.where(closer, best[:, None], near)
        weight = np.maximum(weight, told[rows, best])
    return parents, order


class TreeAnswers(NamedTuple):
    """Answers from trees of the pairs of queries, and their slopes in those of pairs."""

    answers: Floats  # shape (queries,)
    single: Floats  # slopes in the answers of single attributes: shape (queries, attributes)
    paired: Floats  # and of pairs: shape (queries, pairs)


def tree_answers(tables: Floats, several: int) -> TreeAnswers:
    """Return the answers of queries over many attributes, from a tree of their pairs for each.

    With the pairs' answers p_jk and those of single attributes p_j, it is the product of p_jk over
    the tree divided by that of p_j^(neighbours of j - 1). Shapes: `tables` (queries, pairs, 2, 2).
    """
    pairs = list(combinations(range(several), 2))
    m = len(tables)
    tables = tables / np.maximum(tables.sum(axis=(2, 3), keepdims=True), _TINY)
    rows, columns = tables.sum(axis=3, keepdims=True), tables.sum(axis=2, keepdims=True)
    dependence, number = (
        np.zeros((m, several, several)),
        np.zeros((several, several), dtype=np.int64),
    )
    single = np.zeros((m, several))
    information = scipy.special.rel_entr(tables, rows * columns).sum(axis=(2, 3))
    for place, (j, k) in enumerate(pairs):
        number[j, k] = number[k, j] = place
        dependence[:, j, k] = dependence[:, k, j] = information[:, place]
        # Noise gives an attribute a slightly different answer in each of its pairs: their mean
        single[:, j] += rows[:, place, 0, 0] / (several - 1)
        single[:, k] += columns[:, place, 0, 0] / (several - 1)
    parents, order = spanning_tree(dependence)
    queries = np.arange(m)
    taken, neighbours = np.zeros((m, len(pairs)), dtype=bool), np.zeros((m, several))
    answers = single[:, 0].copy()
    for child in order[:, 1:].T:
        parent = parents[queries, child]
        place = number[parent, child]
        taken[queries, place] = True
        neighbours[queries, parent] += 1
        neighbours[queries, child] += 1
        both = tables[queries, place, 0, 0]
        # Pr[child in | parent in] along the edges, in the order in which the tree grew; clipped, as
        # the mean above need not fit this pair
        answers *= np.clip(both / np.maximum(single[queries, parent], _TINY), 0.0, 1.0)
    inside = tables[:, :, 0, 0]
    return TreeAnswers(
        answers,
        -(neighbours - 1) * answers[:, None] / np.maximum(single, _TINY),
        np.where(taken, answers[:, None] / np.maximum(inside, _TINY), 0.0),
    )
