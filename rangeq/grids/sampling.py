"""Synthetic records with the pairs of attributes that a grid estimate answers: they are nobody's.

A tree of the most dependent pairs is sampled first; then records are weighed until every pair has
its estimated table of blocks (iterative proportional fitting over the records), and drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import scipy

from frequency.core.synthetic import shared_out
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign._support.arrays import Floats, Items
from rangeq.grids.fitting.nonnegative_tables import nonnegative, with_margins

_BLOCKS = 32
"""Of an attribute, at most: of equal shares, about."""

_SWEEPS, _ENOUGH = 30, 1e-4
"""Over all pairs; and the largest total variation of a table that may be left."""

_HEAVIEST = 20.0
"""By how much a record may be weighed in one sweep."""

Tables = Callable[[tuple[int, ...], list[Items], list[Items]], Floats]
"""From places of attributes, and for each the first and last values of blocks, to a table."""


def blocks_of(frequencies: Floats) -> Items:
    """Where blocks of an attribute's values begin, and the number of values: ascending.

    Parameters
    ----------
    frequencies : numpy.ndarray of float64
        A distribution.

    Returns
    -------
    numpy.ndarray of int64
        At most 33 places, the first is 0.
    """
    size = len(frequencies)
    if size <= _BLOCKS:
        return np.arange(size + 1)
    # Half by shares, half by values, so that no block is wide where few users are
    mixed = np.cumsum((frequencies + 1 / size) / 2)
    inner = np.searchsorted(mixed, np.arange(1, _BLOCKS) / _BLOCKS)
    return np.unique(np.concatenate([[0], inner, [size]]))


def records_of(attributes: Domain, tables: Tables, n: int, rng: np.random.Generator) -> Items:
    """Records whose pairs of attributes are those of tables.

    Parameters
    ----------
    attributes : Domain
        Names and sizes.
    tables : callable
        The estimated fractions of users in blocks of one or two attributes.
    n : int
        How many records, at least 1.
    rng : numpy.random.Generator
        To draw with.

    Returns
    -------
    numpy.ndarray of int64
        Shape (n, attributes), in random order.
    """
    places = range(len(attributes))
    singles, edges = [], []
    for place, size in enumerate(attributes.shape):
        items = np.arange(size)
        singles.append(norm_sub(tables((place,), [items], [items]).ravel()))
        edges.append(blocks_of(singles[-1]))
    shares = [np.add.reduceat(one, edge[:-1]) for one, edge in zip(singles, edges, strict=True)]
    pairs = {}
    for pair in combinations(places, 2):
        first, last = [edges[one][:-1] for one in pair], [edges[one][1:] - 1 for one in pair]
        table = tables(pair, first, last)
        rows, columns = (shares[one] for one in pair)
        table = table + (1 - table.sum()) / table.size
        pairs[pair] = with_margins(nonnegative(table), rows, columns)
    records = _of_tree(singles, edges, pairs, n, rng)
    if len(pairs) < 2:
        return records
    blocks = [
        np.searchsorted(edge, column, side="right") - 1
        for edge, column in zip(edges, records.T, strict=True)
    ]
    weights = _weighed(blocks, pairs, n)
    return records[shared_out(weights, n, rng)]


def _of_tree(
    singles: list[Floats],
    edges: list[Items],
    pairs: dict[tuple[int, int], Floats],
    n: int,
    rng: np.random.Generator,
) -> Items:
    """Records in which each attribute depends on one before: on the one that tells most of it."""
    told = np.zeros((len(singles), len(singles)))
    for (one, two), table in pairs.items():
        alone = np.outer(table.sum(axis=1), table.sum(axis=0))
        told[one, two] = told[two, one] = scipy.special.rel_entr(table, alone).sum()
    blocks = np.zeros((n, len(singles)), dtype=np.int64)
    shares = [np.add.reduceat(one, edge[:-1]) for one, edge in zip(singles, edges, strict=True)]
    blocks[:, 0] = shared_out(shares[0], n, rng)
    done = [0]
    while len(done) < len(singles):
        left = [place for place in range(len(singles)) if place not in done]
        last, near = max(((one, two) for one in left for two in done), key=lambda pair: told[pair])
        table = pairs[near, last] if near < last else pairs[last, near].T
        for block in range(len(table)):
            rows = np.flatnonzero(blocks[:, near] == block)
            some = table[block] if table[block].sum() > 0 else shares[last]
            blocks[rows, last] = shared_out(some, len(rows), rng)
        done.append(last)
    records = np.zeros_like(blocks)
    for place, (single, edge) in enumerate(zip(singles, edges, strict=True)):
        for block, (first, end) in enumerate(pairwise(edge)):
            rows, inside = np.flatnonzero(blocks[:, place] == block), single[first:end]
            inside = inside if inside.sum() > 0 else np.ones(end - first)
            records[rows, place] = first + shared_out(inside, len(rows), rng)
    return records


def _weighed(blocks: list[Items], pairs: dict[tuple[int, int], Floats], n: int) -> Floats:
    """Weights of records with which each pair has its table, as far as there are records."""
    weights = np.full(n, 1 / n)
    cells = {pair: blocks[pair[0]] * pairs[pair].shape[1] + blocks[pair[1]] for pair in pairs}
    for _ in range(_SWEEPS):
        apart = 0.0
        for pair, table in pairs.items():
            held = np.bincount(cells[pair], weights, table.size)
            apart = max(apart, float(np.abs(held - table.ravel()).sum()) / 2)
            factor = np.clip(table.ravel() / np.maximum(held, 1e-300), 1 / _HEAVIEST, _HEAVIEST)
            weights = weights * factor[cells[pair]]
        weights = weights / weights.sum()
        if apart < _ENOUGH:
            break
    return weights
