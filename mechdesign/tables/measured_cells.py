"""MeasuredCells: unbiased estimates of many cells, and their errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechdesign.base.linear_algebra import Floats, Integers
from mechdesign.base.randomness import BitSource
from mechdesign.mechanism import Mechanism
from mechdesign.tables.estimates import group_errors
from mechdesign.tables.weighted_estimate import MeasurementErrors


class MeasuredCells:
    """What the outputs of many cells say about their counts.

    Parameters
    ----------
    sizes : numpy.ndarray of int64
        Shape (cells,).
    mechanisms : mapping of int to Mechanism
        That of each size.

    Attributes
    ----------
    worst : numpy.ndarray of float64
        Shape (cells,): the largest variance of the unbiased estimate over true counts.

    Raises
    ------
    NoUnbiasedEstimate
        A mechanism does not determine its count.
    """

    def __init__(self, sizes: Integers, mechanisms: Mapping[int, Mechanism]) -> None:
        distinct, self._which = np.unique(sizes, return_inverse=True)
        self._groups = [group_errors(mechanisms[size]) for size in distinct.tolist()]
        lengths = np.array([len(group.values) for group in self._groups])
        self._start = (np.cumsum(lengths) - lengths)[self._which]
        self._values = np.concatenate([group.values for group in self._groups])
        self._estimates = np.concatenate([group.variance_estimates for group in self._groups])
        self.worst = self._each([group.worst for group in self._groups])

    def _each(self, by_size: list[float]) -> Floats:
        result: Floats = np.array(by_size)[self._which]
        return result

    def values(self, outputs: Integers) -> Floats:
        """The unbiased estimates from the cells' outputs: shape (cells,)."""
        result: Floats = self._values[self._start + outputs]
        return result

    def errors(self, outputs: Integers) -> MeasurementErrors:
        """What is known of the errors of `values`."""
        return MeasurementErrors(
            self._estimates[self._start + outputs],
            self._each([group.least for group in self._groups]),
            self.worst,
            self._each([group.spread for group in self._groups]),
            self._each([group.tails for group in self._groups]),
            self._each([group.step for group in self._groups]),
        )

    def draw(self, counts: Integers, source: BitSource) -> Integers:
        """New outputs.

        Parameters
        ----------
        counts : numpy.ndarray of int64
            Shape (cells,): true counts, from 0 to the sizes.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        numpy.ndarray of int64
            Shape (cells,).
        """
        result = np.empty_like(counts)
        for place, group in enumerate(self._groups):
            cells = self._which == place
            result[cells] = group.mechanism.sampler.outputs(counts[cells], source)
        return result
