"""LikelihoodProtocol: two attributes whose distribution is the one that makes reports most likely.

What the mechanisms for positions have in common that are here to compare with.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.channel import Reports, smallest_integer
from frequency.core.likelihood import Fit, Likelihood, stopped_early
from mechdesign.base.arrays import Floats
from rangeq.core.record_channel import RecordChannel
from rangeq.grids.estimate import PairwiseEstimate
from rangeq.grids.fitting.piecewise import Plane
from rangeq.grids.protocol import ConjunctionProtocol


@dataclass(frozen=True)
class LikelihoodChannel(RecordChannel):
    """A channel over two attributes that knows the probabilities of its reports as a linear map.

    A report is a cell of a table, ``x`` and ``y``.
    """

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        across, along = self.counts_shape
        return np.dtype([("x", smallest_integer(across - 1)), ("y", smallest_integer(along - 1))])

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        across, along = self.counts_shape
        result: npt.NDArray[np.bool_] = (reports["x"] < across) & (reports["y"] < along)
        return result

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        cell = reports["x"].astype(np.int64) * self.counts_shape[1] + reports["y"]
        return np.bincount(cell, minlength=math.prod(self.counts_shape)).reshape(self.counts_shape)

    @abstractmethod
    def reported(self, frequencies: Floats) -> Floats:
        """The probability of each output, for users with these frequencies.

        Parameters
        ----------
        frequencies : numpy.ndarray of float64
            The fractions of the users: shaped as the attributes.

        Returns
        -------
        numpy.ndarray of float64
            Of `counts_shape`.
        """

    @abstractmethod
    def backward(self, numbers: Floats) -> Floats:
        """For each item the sum over outputs of their probability times a number of their own.

        Parameters
        ----------
        numbers : numpy.ndarray of float64
            Of `counts_shape`, at least 0.

        Returns
        -------
        numpy.ndarray of float64
            Shaped as the attributes.
        """


@dataclass(frozen=True)
class LikelihoodProtocol(ConjunctionProtocol):
    """Positions in two attributes, estimated by expectation maximisation.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The values of two attributes: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.
    smooth : bool, default False
        EMS instead of EM: neighbouring cells are averaged after every round.
    """

    smooth: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.attributes) != 2:
            name = type(self).__name__
            raise ValueError(f"{name} takes two attributes, got {len(self.attributes)}")

    @property
    @abstractmethod
    def channel(self) -> LikelihoodChannel:
        """How a record becomes a report."""

    def fit(self, aggregate: Aggregate) -> Fit:
        """The distribution with the number of rounds and the log-likelihood.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.

        Returns
        -------
        Fit
            Ended as `SquareWave.fit` is.

        Raises
        ------
        ValueError
            With no reports.
        IncompatibleAggregate
            For the aggregate of another protocol.
        """
        channel = self.channel
        counts = channel.require_own(aggregate).counts
        if not aggregate.n:
            raise ValueError("no reports: there is nothing to fit")
        shape = self.attributes.sizes
        likelihood = Likelihood(
            math.prod(shape),
            counts.ravel().astype(np.float64),
            lambda frequencies: channel.reported(frequencies.reshape(shape)).ravel(),
            lambda numbers: channel.backward(numbers.reshape(counts.shape)).ravel(),
        )
        return stopped_early(likelihood, shape, float(self.epsilon), self.smooth)

    def _estimate(self, aggregate: Aggregate) -> PairwiseEstimate:
        if not aggregate.n:
            return PairwiseEstimate(self.attributes, 0, (), {})
        first, second = (tuple(range(size + 1)) for size in self.attributes.sizes)
        plane = Plane((first, second), self.fit(aggregate).frequencies)
        lines = plane.marginal(0), plane.marginal(1)
        return PairwiseEstimate(self.attributes, aggregate.n, lines, {(0, 1): plane})
