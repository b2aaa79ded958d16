"""Marginals by maximum likelihood: an EM decoder for every protocol.

Source: thesis 4.4.4, the remark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.core.likelihood import Ascent, maximised
from frequency.exceptions import UnknownVariance
from frequency.marginals.estimate import UNKNOWN, MarginalEstimate
from frequency.marginals.protocol import MarginalProtocol, Table
from mechdesign.base.linear_algebra import Floats
from mechdesign.base.numbers import whole
from mechdesign.base.text import shown


class LikelihoodEstimate(MarginalEstimate):
    """An estimate of most likelihood: proper distributions, biased; variances are not known.

    Parameters
    ----------
    protocol : MarginalProtocol
        Of the reports.
    aggregate : Aggregate
        Of them.
    tolerance : float
        How far a log-likelihood may be from its maximum, in nats.
    max_iterations : int
        After how many steps to stop in any case.
    """

    def __init__(
        self,
        protocol: MarginalProtocol,
        aggregate: Aggregate,
        tolerance: float,
        max_iterations: int,
    ) -> None:
        super().__init__(protocol, aggregate)
        self._decoded = protocol
        self._limits = tolerance, max_iterations
        self._found: dict[Table, tuple[Floats, Ascent]] = {}

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the fractions of the population with each combination of values.

        One axis an attribute, in the order asked for; NaN where nobody reported on them.
        """
        names = self._decoded.checked(attributes)
        if names not in self._marginals and self.n:
            shape = self.domain.project(names).shape
            total = np.zeros(int(np.prod(shape)))
            tables = self._decoded.tables_of(self.aggregate, names)
            for table, cells, share in tables:
                if share:
                    part = np.bincount(cells, self._table(table)[0], minlength=len(total))
                    total += share * part
            if not any(share for *_, share in tables):
                total[:] = np.nan
            self._marginals[names] = total.reshape(shape)
            self._marginals[names].setflags(write=False)
        return super().marginal(names)

    def report(self, attributes: Sequence[str]) -> list[Ascent]:
        """Return how the search ended for each table that a marginal is read off.

        ValueError with no reports.
        """
        names = self._decoded.checked(attributes)
        if not self.n:
            raise ValueError("no reports: there is nothing to decode")
        tables = self._decoded.tables_of(self.aggregate, names)
        return [self._table(table)[1] for table, _, share in tables if share]

    def _table(self, table: Table) -> tuple[Floats, Ascent]:
        if table not in self._found:
            likelihood = self._decoded.likelihood_of(self.aggregate, table)
            self._found[table] = maximised(likelihood, *self._limits)
        return self._found[table]

    def _variances(self, names: tuple[str, ...], weights: Floats) -> Floats:
        raise UnknownVariance(UNKNOWN.format("maximum likelihood"))


def most_likely(
    estimate: MarginalEstimate, tolerance: float = 0.01, max_iterations: int = 100_000
) -> LikelihoodEstimate:
    """Return marginals of most likelihood, decoded by expectation maximisation when asked for.

    Proper distributions: no cell is negative, and they sum to 1. Where the unbiased estimate is one
    they hardly differ from it, and thesis 4.4.4 (remark) found no noticeable gain where marginals
    are perturbed. Where whole records are there is one (`python -m reproduction`, section 4.4.4):
    most records are then below the noise; but `MarginalEstimate.distribution` may gain as much.

    The likelihood is that of the reports, as far as the aggregate keeps them:

    - MargPS and InpPS, InpOLH, InpEM, and InpHT on binary attributes: exactly.
    - MargRR and InpRR: that of each bit by itself, all multiplied, as only the ones are counted.
    - MargHT, InpHTCMS, and InpHT on other attributes: exact but for how many reports drew each
      index, which is not counted; it is taken to be the number expected.

    What is decoded as a whole is the table of all records (Inp- protocols but InpHT and InpEM:
    their marginals agree), the marginal itself (InpHT, InpEM), or that of each set of attributes
    that users report on (Marg- protocols and CALM). A smaller marginal is then the mean over the
    sets that hold it, weighed as in the unbiased estimate.

    Parameters
    ----------
    estimate : MarginalEstimate
        Of any protocol of `frequency.marginals`.
    tolerance : float, default 0.01
        Above 0: the search ends when the log-likelihood of the reports is proved to be within so
        many nats of its maximum. A standard deviation is half a nat.
    max_iterations : int, default 100000
        Or after so many steps: see `LikelihoodEstimate.report`.

    Returns
    -------
    LikelihoodEstimate
        All values are NaN with no reports. Variances are refused (`UnknownVariance`).

    Raises
    ------
    ValueError
        A tolerance or a number of steps out of range. When a marginal is asked for: CALM has no set
        that holds it, or InpHT would have to list more than 2^24 signs.

    >>> from frequency.marginals import Domain, MargPS
    >>> protocol = MargPS(Domain.binary("a", "b"), k=2, epsilon=1.0)
    >>> aggregate = protocol.simulate([600_000, 0, 0, 400_000], np.random.default_rng(1))
    >>> most_likely(protocol.estimate(aggregate)).marginal(["a", "b"]).round(1).tolist()
    [[0.6, 0.0], [0.0, 0.4]]
    """
    if (
        isinstance(tolerance, bool)
        or not isinstance(tolerance, (int, float))
        or not 0 < tolerance < np.inf
    ):
        raise ValueError(f"tolerance must be a finite number above 0, got {shown(tolerance)}")
    max_iterations = whole(max_iterations, "max_iterations", 1, what="a number of steps")
    protocol = estimate.protocol
    if not isinstance(protocol, MarginalProtocol):
        raise TypeError(f"{type(protocol).__name__} is no protocol for marginals")
    return LikelihoodEstimate(protocol, estimate.aggregate, tolerance, max_iterations)
