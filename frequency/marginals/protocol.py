"""MarginalProtocol: the base of the protocols for marginals of several attributes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from frequency.core import Aggregate, Likelihood, Protocol, Reports
from frequency.marginals.estimate import MarginalEstimate, MarginalEstimator
from frequency.schema import Domain
from mechdesign.base import Floats, Items, Rational, set_fields, shown, whole

Table: TypeAlias = Hashable  #: The type of the name of a table that is decoded as a whole.


@dataclass(frozen=True)
class MarginalProtocol(Protocol, MarginalEstimator):
    """A protocol in which every user reports on a record, and the server estimates marginals.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.

    Raises
    ------
    ValueError
        What the protocol cannot do.
    """

    domain: Domain
    k: int
    epsilon: float | Rational

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain must be a frequency.schema.Domain, got {shown(self.domain)}")
        self.domain.require_numbered()
        k = whole(self.k, "k", 1, len(self.domain), what="a number of attributes")
        set_fields(self, k=k)
        _ = self.channel

    @property
    def takes(self) -> dict[str, Any]:
        return self.domain.takes(numbered=True)

    def items_of(self, values: Any) -> Any:
        return self.domain.items(values)

    def privatize(self, records: Any, rng: np.random.Generator | None = None) -> Reports:
        """Return a private report for each record.

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            See `Domain.records`.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        return super().privatize(records, rng)

    def estimate(self, aggregate: Aggregate) -> MarginalEstimate:
        """Return unbiased estimates of all marginals of up to k attributes.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        MarginalEstimate
            All values are NaN with no reports.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        return MarginalEstimate(self, self.channel.require_own(aggregate))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters that client and server must agree on."""
        attributes = [[name, self.domain[name]] for name in self.domain]
        return {
            "protocol": type(self).__name__,
            "attributes": attributes,
            "k": self.k,
            "channel": self.channel.parameters,
        }

    def checked(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """Return names of 1 .. k distinct attributes; ValueError for others."""
        names = self.domain.checked(attributes)
        if len(names) > self.k:
            raise ValueError(
                f"this protocol estimates marginals of up to {self.k} attributes, got {len(names)}:"
                f" {shown(names)}"
            )
        return names

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The sets of up to k attributes whose marginals are estimated without bias."""
        return tuple(view for size in range(1, self.k + 1) for view in self.domain.views(size))

    # Below, cells of a marginal are numbered as `Domain.cells` does, in the order of the attributes
    # asked for.

    @abstractmethod
    def tables_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...]
    ) -> list[tuple[Table, Items, float]]:
        """Return the tables that a marginal is read off by maximum likelihood: see `most_likely`.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.
        attributes : tuple of str
            1 .. k distinct names.

        Returns
        -------
        list of tuple
            For each table its name, the marginal's cell that each of its cells is in, and the share
            that it has in the marginal: all shares are 0 if nobody reported on these attributes.
        """

    @abstractmethod
    def likelihood_of(self, aggregate: Aggregate, table: Table) -> Likelihood:
        """Return the likelihood of one of these tables, given the reports.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.
        table : hashable
            As `tables_of` names it.

        Returns
        -------
        Likelihood
            Its items are the cells of the table.
        """

    @abstractmethod
    def cell_variances(self, n: int, attributes: Sequence[str]) -> Floats:
        """Return the variance of each cell's estimate for users spread evenly over all records.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        numpy.ndarray
            Variances of fractions, one axis an attribute, in the order asked for.

        Raises
        ------
        ValueError
            Other attributes, or no number of users.
        """

    def moment_variances(self, n: int) -> dict[tuple[str, ...], float]:
        """Return the variances of the moments that consistent marginals are made of.

        See `frequency.marginals.log_linear`: those of a set of attributes are what their marginal
        says beyond those of fewer; all of one set have the same variance at even frequencies.

        Parameters
        ----------
        n : int
            The number of users, at least 1, spread evenly over all records.

        Returns
        -------
        dict of tuple of str to float
            For each set in `measured` the variance of each of its moments.
        """
        known: dict[tuple[int, ...], float] = {}
        variances: dict[tuple[str, ...], float] = {}
        for names in self.measured:  # smaller ones first; sets of one shape are alike
            shape = tuple(sorted(self.domain[name] for name in names))
            if shape not in known:
                # `linear_variance`, solved for the variance of the largest set: by Parseval the sum
                # over all subsets is the mean variance of a cell times the square of the number of
                # cells.
                total = math.prod(shape) ** 2 * float(self.cell_variances(n, names).mean())
                for size in range(1, len(names)):
                    for fewer in combinations(names, size):
                        count = math.prod(self.domain[name] - 1 for name in fewer)
                        total -= count * variances[fewer]
                moments = math.prod(size - 1 for size in shape)
                known[shape] = max(total, 0.0) / moments if moments else 0.0
            variances[names] = known[shape]
        return variances

    def total_variation(self, n: int, attributes: Sequence[str]) -> float:
        """Return the expected total variation distance of a marginal's estimate from the truth.

        Half the cells' summed mean absolute errors, each (2 / pi)^(1/2) deviations if normal.

        Parameters
        ----------
        n : int
            The number of users, at least 1, spread evenly over all records.
        attributes : sequence of str
            1 .. k distinct names.

        Returns
        -------
        float
            0 to 1 for good estimates; larger where noise dominates.
        """
        return float(np.sqrt(2 / np.pi * self.cell_variances(n, attributes)).sum() / 2)
