"""Uniform: the benchmark that takes all records for equally frequent (Uni, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from mechdesign.base.linear_algebra import Floats
from rangeq.grids.cells import Grid
from rangeq.grids.channel import GridChannel
from rangeq.grids.estimate import Boxes, ConjunctionEstimate, ProductEstimate, even
from rangeq.grids.protocol import ConjunctionProtocol


@dataclass(frozen=True)
class Uniform(ConjunctionProtocol):
    """The benchmark that answers every query by its share of all possible records.

    Reports are counted, and say nothing of the records.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.

    Examples
    --------
    >>> protocol = Uniform(sizes=[64, 10], epsilon=1.0)
    >>> estimate = protocol.estimate(protocol.aggregate(protocol.privatize([[3, 4]])))
    >>> estimate.answer({0: (0, 15), 1: (0, 4)}).value
    0.125
    """

    untold: ClassVar[str] = "they say nothing of the records"

    @cached_property
    def channel(self) -> GridChannel:
        nothing = Grid((0,), ((0, self.attributes.sizes[0]),))
        return GridChannel(self.attributes.size, self.epsilon, self.attributes, (nothing,), "GRR")

    def _estimate(self, aggregate: Aggregate) -> ConjunctionEstimate:
        distributions = [even(size) for size in self.attributes.sizes]
        return UniformEstimate(self.attributes, aggregate.n, distributions)


class UniformEstimate(ProductEstimate):
    """The estimate from reports that say nothing: any fraction is possible."""

    def _bootstrapped(
        self, places: Sequence[int], boxes: Boxes, confidence: float
    ) -> tuple[Floats, Floats]:
        return np.zeros(len(boxes[0][0])), np.ones(len(boxes[0][0]))
