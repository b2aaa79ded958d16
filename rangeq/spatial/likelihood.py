"""LikelihoodProtocol: the maximum likelihood distribution of two attributes.

The common part of the mechanisms for positions that are here to compare with.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.algebra import root
from frequency.core import (
    Aggregate,
    Answer,
    Fit,
    Likelihood,
    Reports,
    smallest_integer,
    stopped_early,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items
from mechdesign.symbolic import BudgetShare, CompositionProof
from rangeq.core import RecordChannel
from rangeq.grids.estimate import ConjunctionEstimate, PairwiseEstimate
from rangeq.grids.fitting import Plane
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.local.square_wave import SquareWave
from rangeq.spatial.grid import SpatialGrid


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
        return (reports["x"] < across) & (reports["y"] < along)

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
        """The sum over outputs of their probability times a number of their own, for each item.

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
    """A protocol for positions in two attributes, estimated by expectation maximisation.

    With ``smooth`` EMS instead of EM: neighbouring cells are averaged after every round.
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
        """The channel that turns a record into a report."""

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


# ------------------------------------------------------------------------------------------------
# SquareWave2D: a square wave on each of two attributes, with half of epsilon each.


@dataclass(frozen=True)
class PartWave(SquareWave):
    """A square wave that is a part of a report; its epsilon is the part's share."""

    ratio: Fraction  # the largest likelihood ratio allowed, about exp(epsilon)

    @property
    def max_ratio(self) -> Fraction:
        return self.ratio


@dataclass(frozen=True)
class WavePair(LikelihoodChannel):
    """The reports of two square waves, each about one of two attributes.

    Parameters
    ----------
    domain, epsilon, attributes : as of `RecordChannel`
        The attributes are two.
    """

    @property
    def _share(self) -> Fraction:
        """The part of epsilon for each attribute of more than one value: at most two."""
        return Fraction(1, max(sum(size > 1 for size in self.attributes.sizes), 1))

    @cached_property
    def waves(self) -> tuple[PartWave, PartWave]:
        """The attributes' waves: the product of their likelihood ratios is at most that allowed."""
        ratio = root(self.max_ratio, self._share.denominator)
        each = float(self.privacy.epsilon) * float(self._share)
        first, other = (PartWave(size, each, ratio) for size in self.attributes.sizes)
        return first, other

    @property
    def report_bits(self) -> int:
        return sum(wave.report_bits for wave in self.waves)

    def _details(self) -> dict[str, Any]:
        return {"waves": [{**wave.parameters} for wave in self.waves]}

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        for name, wave, values in zip(("x", "y"), self.waves, items.T, strict=True):
            part = np.zeros(len(items), dtype=wave.report_dtype)
            wave.fill(values, part, source)
            reports[name] = part["output"]

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return tuple(wave.outputs for wave in self.waves)

    def audit(self) -> Audit:
        first, other = (wave.audit() for wave in self.waves)
        return Audit(
            first.ratio * other.ratio, self.max_ratio, "outputs 0, 0", (0, self.domain - 1)
        )

    def proof(self) -> CompositionProof:
        return CompositionProof(
            tuple(BudgetShare(self._share, 1, wave.proof()) for wave in self.waves),
            name=type(self).__name__,
        )

    @cached_property
    def _tables(self) -> tuple[Floats, Floats]:
        """The probability of each output under each value, for each wave."""
        first, other = (
            np.stack([wave.reported(row) for row in np.eye(wave.domain)], axis=1)
            for wave in self.waves
        )
        return first, other

    def reported(self, frequencies: Floats) -> Floats:
        first, other = self._tables
        # Given the record both reports are independent: one wave along each axis, and no table of
        # records by outputs
        return np.asarray(first @ frequencies @ other.T)

    def backward(self, numbers: Floats) -> Floats:
        first, other = self._tables
        return np.asarray(first.T @ numbers @ other)


@dataclass(frozen=True)
class SquareWave2D(LikelihoodProtocol):
    """The square wave in two dimensions: every user reports on both attributes, by halves.

    The joint distribution is found by expectation maximisation over both reports together. `MSW`
    has all of epsilon for one attribute, and has no information about the dependence of both.
    Devices without packages have no description of it.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The values of two attributes, and the privacy loss of one report; ``n`` is not used.
    smooth : bool, default False
        EMS instead of EM: neighbouring cells are averaged after every round.

    Examples
    --------
    >>> protocol = SquareWave2D({"x": 15, "y": 15}, epsilon=2.0)
    >>> [wave.reach for wave in protocol.channel.waves]
    [3, 3]
    >>> protocol.audit().holds
    True
    """

    @cached_property
    def channel(self) -> WavePair:
        return WavePair(self.attributes.size, self.epsilon, self.attributes)


# ------------------------------------------------------------------------------------------------
# SpatialEstimate: the density of users on a map, and how many are in any region of it.


class SpatialEstimate:
    """An estimate of the attributes of a `SpatialGrid`, in the units of the map.

    Attributes
    ----------
    grid : SpatialGrid
        The cells.
    estimate : ConjunctionEstimate
        Of its ``x`` and ``y``: by any protocol over ``grid.domain``.

    Raises
    ------
    ValueError
        An estimate of other attributes.

    Examples
    --------
    >>> from rangeq.grids import best
    >>> rng, grid = np.random.default_rng(1), SpatialGrid((0.0, 0.0), 1.0, (16, 16))
    >>> points = np.clip(rng.normal(0, 2, size=(50_000, 2)), -8, 8)
    >>> protocol = best(grid.domain, epsilon=2.0, n=50_000)
    >>> reports = protocol.privatize(grid.records(points), rng)
    >>> found = SpatialEstimate(grid, protocol.estimate(protocol.aggregate(reports)))
    >>> triangle = grid.within([(-4, -4), (4, -4), (0, 4)])
    >>> low, high = found.answer(triangle).interval(0.999999)
    >>> bool(low <= (triangle * grid.counts(points)).sum() / 50_000 <= high)
    True
    """

    def __init__(self, grid: SpatialGrid, estimate: ConjunctionEstimate) -> None:
        of = getattr(estimate, "attributes", None)
        if not isinstance(estimate, ConjunctionEstimate) or of != grid.domain:
            raise ValueError(
                f"expected an estimate by a protocol over grid.domain, {grid.domain!r}, got"
                f" {estimate!r} of {of!r}"
            )
        self.grid, self.estimate = grid, estimate

    @property
    def n(self) -> int:
        """The number of users that the estimate is about."""
        return self.estimate.n

    @cached_property
    def frequencies(self) -> Floats:
        """The fraction of the users in each cell: of the grid's shape; NaN with no reports."""
        return self.estimate.response_matrix("x", "y")

    def density(self) -> Floats:
        """The density of users in each cell.

        Returns
        -------
        numpy.ndarray of float64
            Of the grid's shape: users per square kilometre if the grid is geographic, else per
            squared unit of its coordinates. NaN with no reports.
        """
        return self.n * self.frequencies / self.grid.cell_area

    def answer(self, region: npt.ArrayLike) -> Answer:
        """The fraction of the users in a region.

        Parameters
        ----------
        region : array_like of bool
            Of the grid's shape: which cells, such as those that `SpatialGrid.within` finds.

        Returns
        -------
        Answer
            With an interval where the estimate knows one: see `ConjunctionEstimate.region`.

        Raises
        ------
        InvalidQuestion
            Another shape, or no cell.
        """
        return self.estimate.region("x", "y", region)

    def users(self, region: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
        """The number of users in a region, with the ends of an interval.

        Parameters
        ----------
        region : array_like of bool
            As for `answer`.
        confidence : float, default 0.95
            Strictly between 0 and 1.

        Returns
        -------
        tuple of float
            The estimate, and the lower and the upper end.

        Raises
        ------
        InvalidQuestion, UnknownVariance
            As for `answer`; the estimate knows no intervals.
        """
        answer = self.answer(region)
        low, high = answer.interval(confidence)
        return self.n * float(answer.value), self.n * float(low), self.n * float(high)

    def __repr__(self) -> str:
        across, along = self.grid.shape
        return f"<SpatialEstimate of {across} x {along} cells from {self.estimate.reports} reports>"
