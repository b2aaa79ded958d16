"""ConjunctionProtocol: the common part of the systems for ranges over several attributes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from frequency.algebra import WORD
from frequency.core import Aggregate, Channel, Mixture, Protocol, Reports, checked_users
from frequency.exceptions import InvalidQuestion
from frequency.schema import Domain
from mechdesign.base import Rational, set_fields
from rangeq.grids.estimate import ConjunctionEstimate
from rangeq.grids.grid_likelihoods import posterior
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.likelihoods import Likelihoods

MOST_GROUPS = 1 << 14  #: The most groups that users may be divided among.


class Simulation(NamedTuple):
    """The way in which the errors of a protocol's answers are simulated, to predict them."""

    largest: int = 64  # the most values of an attribute: larger ones are simulated with these
    others: bool = True  # whether reports on a third attribute tell of a pair
    #: The step between the epsilons and numbers of users that are simulated, in between which a
    #: power law is assumed: 0 for simulations of just those that are asked about.
    step: int = 0
    #: The number of users from which errors are taken to stay as they are: what systems cannot see
    #: is left by then.
    most_users: float = 1e8


class Miniature(NamedTuple):
    """A protocol over some of the attributes of another, which stands for that."""

    protocol: ConjunctionProtocol
    #: The probabilities of a part of the other one that tells of one attribute, or of two.
    alone: float
    together: float
    coarser: float = 1.0  # what squared errors of the other one are larger by


@dataclass(frozen=True)
class ConjunctionProtocol(Protocol):
    """A protocol for records of d ordinal attributes, which answers conjunctions of ranges.

    Each user takes part in one group, chosen by the client at random with equal probabilities, so
    that groups vary in size.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute, in a mapping by its name. Values are 0 .. size - 1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        How many users are expected, where a system needs it to choose how finely it looks. Any
        number may come.

    Raises
    ------
    ValueError
        What the protocol cannot do.
    """

    #: The reason why nothing is fitted to the reports, if nothing is.
    untold: ClassVar[str] = "there is no model of them"

    simulation: ClassVar[Simulation | None] = None  #: None: no errors are predicted.

    sizes: Any
    epsilon: float | Rational
    n: int | None = None

    def __post_init__(self) -> None:
        set_fields(self, sizes=Domain.of(self.sizes))
        if self.n is not None:
            set_fields(self, n=checked_users(self.n))
        _ = self.channel

    @property
    def attributes(self) -> Domain:
        """The attributes, with names and sizes."""
        return self.sizes

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The channel that turns a record into a report."""

    @property
    def takes(self) -> dict[str, Any]:
        return self.attributes.takes(numbered=False)

    def items_of(self, values: Any) -> Any:
        return self.attributes.records(values)

    def privatize(self, records: Any, rng: np.random.Generator | None = None) -> Reports:
        """Draw one private report for each record.

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            See `Domain.records` for what they may be.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness, or a generator for repeatable results.

        Returns
        -------
        numpy.ndarray
            Shape (users,), of `report_dtype`.

        Raises
        ------
        InvalidValue
            For the first value that its attribute does not have; nothing was drawn.
        """
        return super().privatize(records, rng)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters that client and server must agree on."""
        return {"system": type(self).__name__, "channel": self.channel.parameters}

    def estimate(self, aggregate: Aggregate) -> ConjunctionEstimate:
        """Return answers to conjunctions of ranges.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        ConjunctionEstimate
            All answers are NaN with no reports.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        checked = self.channel.require_own(aggregate)
        return self._estimate(checked).collected_by(self, checked)

    @property
    def groups(self) -> int:
        """The number of groups that users are divided among."""
        assert isinstance(self.channel, Mixture)
        return len(self.channel.parts)

    @property
    def errs_as_noise(self) -> bool:
        """Whether answers are unbiased: errors fall as 1 / sqrt(n), alike on all populations."""
        return False

    def miniature(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> Miniature:
        """Return this protocol over some attributes only, of perhaps fewer values.

        Parameters
        ----------
        places : tuple of int
            The attributes: two that are asked about, and perhaps a third.
        sizes : tuple of int
            Their numbers of values in the miniature.

        Returns
        -------
        Miniature
        """
        return Miniature(replace(self, **self._shrunk(places, sizes)), *self._chances)

    @property
    def _chances(self) -> tuple[float, float]:
        """The probabilities of a part that tells of one attribute, and of one about two."""
        assert isinstance(self.channel, Mixture)
        weights = self.channel.part_weights
        return weights[0] / WORD, weights[-1] / WORD

    def _shrunk(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> dict[str, Any]:
        """The fields that differ in a miniature."""
        # Hash functions would be simulated user by user, and the other one errs about as much
        oracle = {"oracle": "OUE"} if getattr(self, "oracle", None) == "OLH" else {}
        return {"sizes": list(sizes), **oracle}

    def _posterior(self, aggregate: Aggregate) -> WaveEstimate:
        """The estimate of `ConjunctionEstimate.fitted`, from the protocol's own reports."""
        return posterior(self.attributes, aggregate.n, self._likelihoods(aggregate))

    def _likelihoods(self, aggregate: Aggregate) -> Likelihoods:
        """The likelihoods of attributes and pairs, as far as they are modelled."""
        raise InvalidQuestion(
            f"the reports of {type(self).__name__} do not tell which distributions are likely:"
            f" {self.untold}"
        )

    @abstractmethod
    def _estimate(self, aggregate: Aggregate) -> ConjunctionEstimate:
        """The estimate from an aggregate of this protocol."""

    def _require_groups(self, number: int) -> None:
        if number > MOST_GROUPS:
            raise ValueError(
                f"{type(self).__name__} would divide users among {number} groups, more than"
                f" {MOST_GROUPS}"
            )

    def _require_pairs(self) -> None:
        if len(self.attributes) < 2:
            raise ValueError(
                f"{type(self).__name__} looks at pairs of attributes, and there is one; HDG and MSW"
                " take one"
            )
