"""Errors of answers by parametric bootstrap: the protocol run again on users like the estimate.

Where no theory gives the error of a post-processed answer, or of one that cuts cells, users are
drawn from the estimate, report by the same protocol, and are estimated in the same way; answers
then err against a truth that is known (Efron and Tibshirani 1993). Within cells, about which
reports have no information, users are drawn from densities as uneven as exp(+-`UNEVEN`): an
assumption, which the guideline of the grids makes too, by a number for all queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import Aggregate
from frequency.postprocess import norm_sub
from mechdesign.base import Floats, Items
from rangeq.grids.cells import Edges, Rectangles

REPLICATES = (
    20  #: The number of collections: errors have Student's t of as many degrees of freedom.
)

UNEVEN = 3.0  #: The deviation of slope and curvature of the logarithm of a density within a cell.

_RECORDS = 1 << 16  # the most different records of a collection: each may be several users'

# The most numbers in an aggregate for which replicates are kept, not made anew each time.
_KEPT = 1 << 20

_STEPS = 16  # the number of steps of the cumulative distribution within a cell

_NUMBERS = 1 << 24  # the most comparisons of records with queries at a time


class Likeness:
    """Users like an estimate: the first attribute, and each other given the first.

    Shapes: `first` (cells,); each of `others` (cells of the first, cells), or (1, cells) where
    it is independent of the first. Rows need not have sum 1.
    """

    def __init__(self, edges: Sequence[Edges], first: Floats, others: Sequence[Floats]) -> None:
        self._edges = [np.array(cut) for cut in edges]
        self._first = np.cumsum(norm_sub(np.asarray(first)))
        self._others = []
        for table in others:
            rows = np.maximum(table, 0.0)
            total = rows.sum(axis=1, keepdims=True)
            even = np.full(rows.shape, 1 / rows.shape[1])
            shares = np.divide(rows, total, out=even, where=total > 0)
            # Row k of the cumulative distributions is shifted by k: all rows are one increasing
            # sequence, and one search draws from any of them
            sums = np.arange(len(rows))[:, None] + np.minimum(shares.cumsum(axis=1), 1.0)
            self._others.append(sums)

    def records(self, n: int, rng: np.random.Generator) -> Items:
        """Draw records: values, shape (n, attributes)."""
        cell = np.minimum(np.searchsorted(self._first, rng.random(n)), len(self._first) - 1)
        cells = [cell]
        for sums in self._others:
            row, width = (cell if len(sums) > 1 else np.zeros_like(cell)), sums.shape[1]
            drawn = np.searchsorted(sums.ravel(), row + rng.random(n))
            cells.append(np.clip(drawn - row * width, 0, width - 1))
        return np.stack(
            [
                _within(edges, cell_of, rng)
                for edges, cell_of in zip(self._edges, cells, strict=True)
            ],
            axis=1,
        )


def _within(edges: Items, cell: Items, rng: np.random.Generator) -> Items:
    """Draw a value in each cell: each cell of an attribute has one density, drawn anew."""
    widths = np.diff(edges)
    if (widths == 1).all():
        return edges[cell]
    # Slope and curvature on -1 .. 1: the first two Legendre polynomials
    x = (np.arange(_STEPS) + 0.5) / _STEPS * 2 - 1
    slope, curve = UNEVEN * rng.normal(size=(2, len(widths), 1))
    density = np.exp(slope * x + curve * (1.5 * x**2 - 0.5))
    sums = density.cumsum(axis=1) / density.sum(axis=1, keepdims=True)
    flat = (np.arange(len(widths))[:, None] + sums).ravel()
    step = np.clip(np.searchsorted(flat, cell + rng.random(len(cell))) - cell * _STEPS, 0, None)
    part = (np.minimum(step, _STEPS - 1) + rng.random(len(cell))) / _STEPS
    return np.minimum(edges[cell] + (part * widths[cell]).astype(np.int64), edges[cell + 1] - 1)


class Replicate(NamedTuple):
    """Users, and the estimate from their reports."""

    records: Items  # shape (records, attributes)
    counts: Items  # the number of users of each record
    estimate: Any  # a `ConjunctionEstimate`


class CollectionBootstrap:
    """Collections by a protocol from users like the estimate of an aggregate of its reports."""

    def __init__(self, protocol: Any, aggregate: Aggregate, like: Likeness) -> None:
        self._protocol, self._n, self._like = protocol, aggregate.n, like
        self._few = aggregate.counts.size <= _KEPT

    def squared_errors(self, places: Sequence[int], boxes: Sequence[tuple[Items, Items]]) -> Floats:
        """The mean squared error of answers over replicates, each the sum of those about boxes.

        Shapes: `boxes` (queries, attributes); returns (queries,).
        """
        total = np.zeros(len(boxes[0][0]))
        for records, counts, estimate in self._replicates():
            values, off = records[:, list(places)], np.zeros(len(total))
            for left, right in boxes:
                off += estimate.answers(places, left, right) - _shares(values, counts, left, right)
            total += off**2
        return total / REPLICATES

    def squared_error_of_region(
        self, places: tuple[int, int], mask: npt.NDArray[np.bool_], boxes: Rectangles
    ) -> float:
        """The mean squared error of the answer about a region over replicates.

        Shapes: `mask` (values of one, values of the other).
        """
        total = 0.0
        for records, counts, estimate in self._replicates():
            inside = mask[records[:, places[0]], records[:, places[1]]]
            true = counts[inside].sum() / counts.sum()
            total += (estimate.answers(places, *boxes).sum() - true) ** 2
        return float(total) / REPLICATES

    def _replicates(self) -> Iterator[Replicate]:
        for number in range(REPLICATES):
            yield self._kept[number] if self._few else self._replicate(number)

    @cached_property
    def _kept(self) -> list[Replicate]:
        return [self._replicate(number) for number in range(REPLICATES)]

    def _replicate(self, number: int) -> Replicate:
        """A replicate: records, their users, and the estimate from these, the same every time."""
        # The seed is the replicate's number and the number of users: the same interval at every
        # call, and as many draws as records, not users
        rng = np.random.default_rng([number, self._n])
        different = min(self._n, _RECORDS)
        records = self._like.records(different, rng)
        counts = np.full(different, self._n // different)
        counts[: self._n % different] += 1
        aggregate = self._protocol.simulate(counts, rng, records)
        return Replicate(records, counts, self._protocol.estimate(aggregate))


def _shares(records: Items, counts: Items, left: Items, right: Items) -> Floats:
    """The part of the users that lies in each box: shape (queries,)."""
    total, shares = counts.sum(), np.empty(len(left))
    if records.shape[1] == 1:
        order = np.argsort(records[:, 0])
        sums = np.concatenate([[0], counts[order].cumsum()]) / total
        values = records[order, 0]
        last = np.searchsorted(values, right[:, 0], side="right")
        return np.asarray(sums[last] - sums[np.searchsorted(values, left[:, 0])])
    columns = np.ascontiguousarray(records.T)
    weights = counts.astype(np.float64)
    step = max(1, _NUMBERS // len(records))
    for start in range(0, len(left), step):
        block = slice(start, start + step)
        inside = np.ones((len(left[block]), len(records)), dtype=bool)
        for column, a, b in zip(columns, left[block].T, right[block].T, strict=True):
            inside &= (column >= a[:, None]) & (column <= b[:, None])
        shares[block] = inside @ weights / total
    return shares


def student_quantile(confidence: float) -> float:
    """The half-width of a central interval, in root mean squares of replicates' errors."""
    return float(scipy.special.stdtrit(REPLICATES, (1 + confidence) / 2))
