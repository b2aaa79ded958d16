"""The likelihoods of attributes and pairs from reports on grids, for `WaveGrid`'s posterior.

A grid has unbiased frequencies F of its cells. From one user drawn at random weights w of sum 0 of
cells have the variance a w'w + b sum w^2 f - (w'f)^2, of noise and sampling, f the true frequencies
(`NodeLaw`; of oracles that do not treat all items alike a is that of equal frequencies, and b = 0).
So sums of rows of g cells each have a g in place of a, and are estimates of an attribute by itself;
and with weights u and v of the cells along both attributes, 1 / (u_x v_y) about the variance of a
cell, F estimates the pair in functions that are orthogonal under Gram matrices of each attribute.
Where f is needed it is taken from F.

Levels of hierarchies are such grids each. Where all combinations of the levels of two attributes
are equally precise, they have together one Gram matrix for each attribute, the sum of the levels'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from frequency.core import Aggregate
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Floats, Items
from rangeq.core import KERNELS, ContrastLaw, spread
from rangeq.grids.cells import ALPHA1, ALPHA2, Edges, Grid, Queries, overlap
from rangeq.grids.channel import GridChannel
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.interactions import Halves
from rangeq.grids.wavegrid.likelihoods import (
    Likelihoods,
    PairLikelihood,
    Singles,
    least_squares,
    weighted_functions,
)
from rangeq.grids.wavegrid.posterior import estimated

# ------------------------------------------------------------------------------------------------
# Predicted errors of answers from grids: noise, sampling, non-uniformity.
#
# Multi-dimensional ranges, section 4.5 and appendices A.9 and A.10.


_NUMBERS = 1 << 22  # the most weights to hold at a time


@dataclass(frozen=True)
class GridErrors:
    """The errors of the linear answer that the grid of a query's attributes gives.

    A pair has one grid. A single attribute has one too, or else the mean over the grids of its
    pairs, weighed by their users. A grid's cells are known to sum to 1, and brought to it by a
    constant, which takes the mean off the weights of a sum of cells: a range and its complement err
    alike. Noise is the oracle's own unbiased estimate for the reports received; sampling is that of
    a group drawn without replacement.
    """

    channel: GridChannel
    aggregate: Aggregate
    # The frequencies of each grid, negative ones counting as 0: what cut cells hold. The
    # non-uniformity error is ALPHA2 times that (of a range of one attribute ALPHA1 / 2 times): the
    # guideline's assumption, for the query at hand instead of an average one.
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


# The prior probability that a pair has no smooth terms. Grids of a few cells may tell nothing of a
# pair, and that is no reason to take its attributes for independent.
_INDEPENDENT = 0.1

# The number of cells below which they do not show that an attribute is even within them. Two show
# next to nothing: by a slope alone, which every shape is then taken for, answers erred up to twice
# as much as the estimate's own, and by all kernels 1.4 times, and less on most data.
_FEW, _TWO = 16, 2

_ROUNDED = 1e-9  # the relative eigenvalue of a precision, a product, below which it is rounding

# The kernels for wide cells, in which a heavy end is not told from other shapes.
_SEEN = tuple(kernel for kernel in KERNELS if not kernel.ends)

# The kernels for few cells, for which any normal density is as likely.
_UNEVEN = tuple(kernel for kernel in _SEEN if kernel.trend)


class Products(NamedTuple):
    """Unbiased estimates of the sums of f(x) P(x, y) g(y) over the cells of a pair.

    They err independently, and all alike.
    """

    places: tuple[int, int]  # of both attributes, the first before the second
    levels: tuple[int, int]  # the sets of functions that f and g are of
    values: Floats  # shape (functions f, functions g)
    precision: float  # 1 / variance of each


def linear(
    attributes: Domain,
    functions: Sequence[Sequence[Floats]],
    singles: Singles,
    products: Sequence[Products],
) -> Likelihoods:
    """Combine what is known of single attributes with products of functions of pairs.

    Shapes: `functions` (functions, fine cells).
    """
    scores = singles.scores
    grams = [
        sum((level.T @ level for level in matrices), np.zeros((len(score), len(score))))
        for matrices, score in zip(functions, scores, strict=True)
    ]
    together: dict[tuple[int, int], dict[tuple[int, int], Products]] = {}
    for estimate in products:
        together.setdefault(estimate.places, {})[estimate.levels] = estimate

    def pairs() -> Iterator[PairLikelihood]:
        for j, k in attributes.pairs:
            estimates, total = together.get((j, k), {}), np.zeros((len(scores[j]), len(scores[k])))
            levels = list(product(range(len(functions[j])), range(len(functions[k]))))
            precisions = [
                estimates[both].precision if both in estimates else 0.0 for both in levels
            ]
            # One Gram matrix for all levels needs equal precisions: the least of them, so that
            # nothing is claimed that was not measured
            least = min(precisions, default=0.0)
            for level, other in levels if least else ():
                values = estimates[level, other].values
                total += least * (functions[j][level].T @ values @ functions[k][other])
            nothing = Halves(np.zeros(len(scores[j])), np.zeros(len(scores[k])), 0.0, 0.0)
            yield PairLikelihood((j, k), total, least, nothing)

    return Likelihoods(singles.edges, singles.told, grams, pairs())


def posterior(attributes: Domain, n: int, likelihoods: Likelihoods) -> WaveEstimate:
    """The posterior of likelihoods under the priors of `WaveGrid`, chosen by the cells' number."""
    if not n:
        return WaveEstimate(attributes, 0, (), {}, (False,) * len(attributes))
    # What is seen of g cells has the rank g - 1
    seen = [
        np.linalg.matrix_rank(likelihood.precision, rtol=_ROUNDED, hermitian=True) + 1
        for likelihood in likelihoods.told
    ]
    kernels = [
        _UNEVEN if _TWO < cells < min(_FEW, len(likelihood.scores)) else _SEEN
        for cells, likelihood in zip(seen, likelihoods.told, strict=True)
    ]
    return estimated(attributes, n, likelihoods, (False,) * len(attributes), kernels, _INDEPENDENT)


_Side: TypeAlias = tuple[int, Edges]  # an attribute, and a way to cut it


class _Cut(NamedTuple):
    """The cut of an attribute by grids, as far as fine cells show it."""

    starts: Items  # of groups of the grids' cells
    counts: Floats  # of cells in each
    shares: Floats  # of each fine cell in each group: (groups, fine cells)

    @classmethod
    def of(cls, cut: Edges, fine: Edges) -> _Cut:
        # More cells than fine ones are joined where fine ones begin
        edges, starts = np.array(cut), np.arange(len(cut) - 1)
        if len(cut) > len(fine):
            starts = np.unique(np.searchsorted(edges, fine[:-1], side="right") - 1)
        ends = np.append(edges[starts], edges[-1])
        counts = np.diff(np.append(starts, len(cut) - 1)).astype(np.float64)
        return cls(starts, counts, overlap(fine, ends[:-1], ends[1:] - 1))


def of_grids(attributes: Domain, channel: GridChannel, aggregate: Aggregate) -> Likelihoods:
    """The likelihoods of reports on grids of one attribute and of two."""
    singles = Singles(attributes)
    fine = singles.edges
    cuts = {
        side: _Cut.of(side[1], fine[side[0]])
        for side in dict.fromkeys(side for grid in channel.grids for side in _sides(grid))
    }
    tables = []
    heavy: dict[_Side, list[Floats]] = {}
    for part, (grid, users) in enumerate(
        zip(channel.grids, channel.part_users(aggregate).tolist(), strict=True)
    ):
        if grid.cells == 1 or not users:
            continue
        law, sides = ContrastLaw.of(channel.parts[part]), _sides(grid)
        here = [cuts[side] for side in sides]
        table = channel.frequencies(aggregate, part)
        for axis, cut in enumerate(here):
            table = np.add.reduceat(table, cut.starts, axis=axis)
        sums = [table] if len(here) == 1 else [table.sum(axis=1), table.sum(axis=0)]
        for (place, _), cut, total in zip(sides, here, sums, strict=True):
            if len(total) > 1:
                # A row of a pair's grid is the sum of as many cells as the other attribute has: so
                # many times the noise
                counts = cut.counts * (grid.cells / cut.counts.sum())
                users_in, about = users * total[None], _likely(total, users)[None]
                each = np.array([float(users)])
                likelihood = least_squares(cut.shares[None], users_in, about, counts, law, each)
                singles.add(place, *likelihood)
        if len(here) == 2 and min(table.shape) > 1:
            tables.append((sides, table, users / law.noise))
            likely = norm_sub(table.ravel()).reshape(table.shape)
            # Sampling adds to the variance of a cell where it is heavy; averaged along the other
            # attribute, as the precision must be a product
            squares = likely**2 / np.multiply.outer(here[0].counts, here[1].counts)
            for axis, side in enumerate(sides):
                # The mean frequency of the cells in which the users of a row are
                mean = squares.sum(axis=1 - axis) / _likely(sums[axis], users) + 1 / users
                heavy.setdefault(side, []).append(law.held / law.noise * mean)
    functions: list[list[Floats]] = [[] for _ in fine]
    numbers: dict[_Side, int] = {}
    roots: dict[_Side, Floats] = {}
    for side, larger in heavy.items():
        cut, own_functions = cuts[side], functions[side[0]]
        # An attribute has one set of functions for all its pairs with this cut, so one weight as
        # well
        more = np.mean(larger, axis=0)[None]
        (here,), (roots[side],) = weighted_functions(cut.shares[None], more, cut.counts)
        numbers[side] = len(own_functions)
        own_functions.append(here)
    products = [
        Products(
            (first[0], other[0]),
            (numbers[first], numbers[other]),
            roots[first][:, None] * table * roots[other],
            precision,
        )
        for (first, other), table, precision in tables
    ]
    return linear(attributes, functions, singles, products)


def _sides(grid: Grid) -> tuple[_Side, ...]:
    return tuple(zip(grid.places, grid.edges, strict=True))


def _likely(frequencies: Floats, users: float) -> Floats:
    """A distribution, with one more user in each cell: no cell is known to be empty."""
    distribution = norm_sub(frequencies.ravel()).reshape(frequencies.shape)
    return (users * distribution + 1) / (users + distribution.size)
