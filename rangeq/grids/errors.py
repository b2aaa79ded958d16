"""Predicted errors of answers from grids: noise, sampling, non-uniformity.

Multi-dimensional ranges, section 4.5 and appendices A.9 and A.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from frequency.core.aggregate import Aggregate
from mechdesign.base.linear_algebra import Floats, Items
from rangeq.core.tree import spread
from rangeq.grids.cells import Edges
from rangeq.grids.channel import GridChannel
from rangeq.grids.guideline import ALPHA1, ALPHA2
from rangeq.grids.queries import Queries

_NUMBERS = 1 << 22
"""The most weights to hold at a time."""


@dataclass(frozen=True)
class GridErrors:
    """The errors of the linear answer that the grid of a query's attributes gives.

    A pair has one grid. A single attribute has one too, or else the mean over the grids of its
    pairs, weighed by their users. A grid's cells are known to sum to 1, and brought to it by a
    constant, which takes the mean off the weights of a sum of cells: a range and its complement err
    alike. Noise is the oracle's own unbiased estimate for the reports received; sampling is that of
    a group drawn without replacement.

    Attributes
    ----------
    channel : GridChannel
        What users report by.
    aggregate : Aggregate
        Of its reports.
    tables : mapping of int to numpy.ndarray of float64
        The frequencies of each grid by its number, negative ones counting as 0: what cut cells
        hold. The non-uniformity error is ALPHA2 times that (of a range of one attribute ALPHA1 / 2
        times): the guideline's assumption, for the query at hand instead of an average one.
    """

    channel: GridChannel
    aggregate: Aggregate
    tables: Mapping[int, Floats]

    def __call__(self, queries: Queries) -> Floats:
        """The squared errors by noise, sampling and non-uniformity: shape (3, queries)."""
        errors = np.full((3, len(queries.rows)), np.nan)
        exact = [k for k, grid in enumerate(self.channel.grids) if grid.places == queries.places]
        parts = exact or [
            k for k, grid in enumerate(self.channel.grids) if set(queries.places) < set(grid.places)
        ]
        users = self.channel.part_users(self.aggregate)[parts]
        if len(queries.places) > 2 or not parts:
            return errors
        if not users.any():
            errors[:2] = np.inf
            return errors
        shares = users / users.sum()
        step = max(1, _NUMBERS // max(self.channel.grids[k].cells for k in parts))
        for start in range(0, len(queries.rows), step):
            block = slice(start, start + step)
            errors[:, block] = self._block(queries, block, parts, shares)
        return errors

    def _block(self, queries: Queries, block: slice, parts: list[int], shares: Floats) -> Floats:
        noise = sampling = cut = np.zeros(len(queries.rows[block]))
        everybody = 0.0
        for k, share in zip(parts, shares.tolist(), strict=True):
            if not share:
                continue
            weights, table = (
                self._weights(queries, block, k),
                np.maximum(self.tables[k].ravel(), 0.0),
            )
            table = table / table.sum()
            oracle, level = self.channel.parts[k], self.channel.part_aggregate(self.aggregate, k)
            frequencies = oracle.frequencies_of(level, None)
            # Cells are brought to a sum of 1 by a constant, which is the projection that takes the
            # mean off the weights
            centred = weights - weights.mean(axis=1, keepdims=True)
            noise = noise + share**2 * np.maximum(
                oracle.linear_variances_of(centred, level, frequencies, None), 0.0
            )
            apart = spread(weights, table)
            # A group drawn without replacement from the users: the variance of its mean less that
            # of everybody's, which all groups share
            sampling, everybody = (
                sampling + share**2 * apart / level.n,
                everybody + share * apart / self.aggregate.n,
            )
            cut = cut + share * ((weights > 0) & (weights < 1)) @ table
        alpha = ALPHA2 if len(queries.places) == 2 else ALPHA1 / 2
        return np.stack([noise, np.maximum(sampling - everybody, 0.0), (alpha * cut) ** 2])

    def _weights(self, queries: Queries, block: slice, part: int) -> Floats:
        """The part of each cell that lies in each query: shape (queries, cells)."""
        grid = self.channel.grids[part]
        result = np.ones((len(queries.rows[block]), 1))
        for place, edges in zip(grid.places, grid.edges, strict=True):
            if place in queries.places:
                axis = queries.places.index(place)
                inside = overlap(edges, queries.left[block, axis], queries.right[block, axis])
            else:
                inside = np.ones((len(result), len(edges) - 1))
            result = (result[:, :, None] * inside[:, None, :]).reshape(len(result), -1)
        return result


def overlap(edges: Edges, left: Items, right: Items) -> Floats:
    """The part of each cell that lies in each range.

    Shapes: `left` and `right` (ranges,); returns (ranges, cells).
    """
    begin, end = np.array(edges[:-1]), np.array(edges[1:])
    inside = np.minimum(end, right[:, None] + 1) - np.maximum(begin, left[:, None])
    result: Floats = np.maximum(inside, 0) / (end - begin)
    return result
