"""A shuffler that adds dummy reports: the accuracy of a curator, without anybody who sees values.

Users send reports of a local protocol, encrypted to the collector. The shuffler, who cannot read
them, adds dummy reports of each kind, mixes, and forwards. The collector decrypts, subtracts the
dummies' expected numbers, and knows the population up to the noise of the dummies and of the
reports. `mechdesign.accounting.dummy_counts` has the proof.

Who is trusted, and with what:

- the shuffler with adding the dummies, not telling how many, and mixing all reports before it
  forwards them: then the collector learns (epsilon, delta), however many of the other users
  collude;
- nobody else: a shuffler that colludes with the collector leaves each report's local epsilon, and
  so does one that adds nothing, but for what `mechdesign.accounting.shuffled` says.

Without dummies, the users' reports hide each other. Noise of that kind (binomial: each user adds a
little) protects two counts as well as normal noise of the same variance does; dummies drawn from
the protocol's own blanket are no better. The shuffler can draw numbers with exponential tails,
which at a small delta protect as well with a fraction of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core import (
    LARGEST_LIST,
    Aggregate,
    EnumeratedOracle,
    Estimate,
    Reports,
    checked_users,
    spread_out,
)
from frequency.exceptions import IncompatibleAggregate
from frequency.oracles import GRR
from mechdesign.accounting.dummy_counts import AmongDummies
from mechdesign.accounting.pair_law import log_above
from mechdesign.base import Floats, Items, Rational, bit_source, set_fields

LARGEST_KINDS = 1 << 12  #: The most kinds of reports: there are dummies of each.

Attack = tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]


@dataclass(frozen=True, init=False)
class AugmentedShuffler:
    """A shuffler that adds dummies to the reports of an oracle, such that (epsilon, delta) holds.

    Neighbouring datasets differ in the value of one user; the number of users is public. The number
    of dummies does not depend on it.

    Parameters
    ----------
    oracle : GRR, RR, or Tabular
        What users send: any oracle whose kinds of reports can be listed, at most 4096. Its epsilon
        is what a report keeps if the shuffler colludes.
    epsilon : float, Fraction, int, str or Decimal
        Of the published collection, above 0.
    delta : float, Fraction, int, str or Decimal
        Of the published collection, strictly between 0 and 1.

    Raises
    ------
    TypeError
        Another oracle.
    ValueError
        Too many kinds of reports, or so small an epsilon or delta that there are too many dummies.

    Examples
    --------
    >>> shuffler = AugmentedShuffler(GRR(domain=64, epsilon=8), 0.25, "1e-8")
    >>> shuffler.dummies_of_each_kind
    129
    >>> plain = GRR(domain=64, epsilon=5.2)  # which n = 10^5 shuffled users need for the same
    >>> [f"{oracle.variance(10**5) ** 0.5:.2g}" for oracle in (shuffler, plain)]
    ['0.00013', '0.00027']
    """

    oracle: GRR | EnumeratedOracle
    epsilon: float | Rational
    delta: float | Rational

    def __init__(
        self,
        oracle: GRR | EnumeratedOracle,
        epsilon: float | Rational,
        delta: float | Rational,
    ) -> None:
        if not isinstance(oracle, (GRR, EnumeratedOracle)):
            raise TypeError(
                "dummies are for oracles whose kinds of reports are listed, GRR and Tabular; got"
                f" {type(oracle).__name__}"
            )
        if not 1 < max(oracle.domain, *oracle.counts_shape) <= LARGEST_KINDS:
            raise ValueError(
                f"there are dummies of each kind of report: 2 to {LARGEST_KINDS} kinds, got"
                f" {max(oracle.counts_shape)}"
            )
        set_fields(self, oracle=oracle, epsilon=epsilon, delta=delta)
        if self.dummies_of_each_kind * len(self._kinds) > LARGEST_LIST:
            raise ValueError(
                f"{self.dummies_of_each_kind} dummies of each of {len(self._kinds)} kinds are more"
                " than 2^26"
            )

    @cached_property
    def privacy(self) -> AmongDummies:
        """The privacy loss of a user in the published collection, bounded on both sides."""
        distance, attack = _apart(self.oracle)
        return AmongDummies.keeping(self.epsilon, self.delta, distance, attack)

    @property
    def local_epsilon(self) -> float:
        """The epsilon of a report towards whoever sees it with its sender; rounded up."""
        ratio = self.oracle.audit().ratio
        return log_above(ratio) if isinstance(ratio, Fraction) else ratio

    @property
    def dummies_of_each_kind(self) -> int:
        """The number of dummies of each kind on average, which is half of the most."""
        return self.privacy.counts.centre

    @cached_property
    def _kinds(self) -> Items:
        """The kinds of reports that users may send."""
        every = np.arange(self.oracle.counts_shape[0])
        return np.flatnonzero(self.oracle.possible(self.oracle.reports_of(every)))

    # ------------------------------------------------------------------------------- the shuffler

    def dummies(self, rng: np.random.Generator | None = None) -> Reports:
        """Return dummy reports, to be encrypted and mixed with those of users; once a collection.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            None: randomness from the operating system. A Generator: reproducible, not private.

        Returns
        -------
        structured numpy.ndarray
            Of the oracle's ``report_dtype``, in the order of their kinds.
        """
        return self.oracle.reports_of(np.repeat(self._kinds, self._drawn(rng)))

    def shuffle(self, reports: Reports, rng: np.random.Generator | None = None) -> Reports:
        """Return the published collection, where the shuffler reads the reports.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Those of all users, shape (users,), of the oracle's ``report_dtype``.
        rng : numpy.random.Generator, optional
            As for `dummies`.

        Returns
        -------
        structured numpy.ndarray
            Theirs and the dummies, in the order of their kinds: only the numbers of each are left.

        Raises
        ------
        InvalidReport
            Another array, or a report that no client can have sent.
        """
        counts = self.oracle.aggregate(reports).counts[self._kinds]
        return self.oracle.reports_of(np.repeat(self._kinds, counts + self._drawn(rng)))

    def _drawn(self, rng: np.random.Generator | None) -> npt.NDArray[np.int64]:
        return self.privacy.counts.draw(len(self._kinds), bit_source(rng))

    # ------------------------------------------------------------------------------ the collector

    def estimate(
        self, aggregate: Aggregate, n: int, items: npt.ArrayLike | None = None
    ) -> Estimate:
        """Return unbiased frequencies with their variances, of users and dummies together.

        Parameters
        ----------
        aggregate : Aggregate
            Of the oracle, with the reports of all users and of one set of dummies.
        n : int
            The number of users, which is public.
        items : array_like, optional
            As for `Oracle.estimate`.

        Returns
        -------
        Estimate
            Of the items asked for, in their order.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol, or has not as many dummies as there may be.
        InvalidValue
            The first item that the domain does not have.
        ValueError
            ``n`` is no number of users; items that occur twice, or another shape.
        """
        n = checked_users(n)
        chosen = self.oracle.estimate(aggregate, items).items
        most = 2 * self.dummies_of_each_kind
        if not 0 <= aggregate.n - n <= most * len(self._kinds):
            raise IncompatibleAggregate(
                f"{aggregate.n} reports are not those of {n} users and of up to {most} dummies of"
                f" each of {len(self._kinds)} kinds"
            )
        counts = aggregate.counts.copy()
        counts[self._kinds] -= self.dummies_of_each_kind
        return Estimate(self, Aggregate(aggregate.parameters, n, counts), chosen)

    def simulate(self, counts: npt.ArrayLike, rng: np.random.Generator | None = None) -> Aggregate:
        """Return an aggregate as of so many users and of dummies, for experiments.

        Parameters
        ----------
        counts : array_like
            Shape (items,), integers >= 0: how many users have each item.
        rng : numpy.random.Generator, optional
            A Generator, or None for a fresh one.

        Returns
        -------
        Aggregate
            For `estimate`.

        Raises
        ------
        ValueError
            Other counts.
        """
        users = self.oracle.simulate(counts, rng)
        return users + self.oracle.aggregate(self.dummies(rng))

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """Return the variance of the estimate of an item's frequency, over reports and dummies.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        frequency : array_like, default 0.0
            The fraction of the users with the item, 0 to 1.

        Returns
        -------
        float or numpy.ndarray
            As `Oracle.variance`.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """
        variance = self.oracle.variance(n, frequency)
        return variance + float(self._of_dummies(np.eye(self.domain), n).mean())

    # ------------------------------------------------- what an Estimate needs, from users' reports

    @property
    def domain(self) -> int:
        """The number of items."""
        return self.oracle.domain

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        """Return unbiased estimates from counts less the dummies' expected numbers."""
        result: Floats = self.oracle.held_of(aggregate.counts) / aggregate.n
        return result if items is None else result[items]

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Return unbiased estimates of the variances of single estimates."""
        variances = self.oracle.variances_of(aggregate, frequencies, items)
        weights = spread_out(np.eye(len(frequencies)), items, self.domain)
        return variances + self._of_dummies(weights, aggregate.n)

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Return unbiased estimates of the variances of weighted sums of estimates."""
        # Reports and dummies are independent: their variances add up.
        variances = self.oracle.linear_variances_of(weights, aggregate, frequencies, items)
        return variances + self._of_dummies(spread_out(weights, items, self.domain), aggregate.n)

    def variance_slope(self, n: int) -> float:
        """Return the slope of a variance by the item's frequency: dummies add nothing to it."""
        return self.oracle.variance_slope(n)

    @cached_property
    def _scores(self) -> Floats:
        """The scores that a report of each kind adds to the items' estimates: (kinds, items)."""
        size = self.oracle.counts_shape[0]
        return self.oracle.held_of(np.eye(size, dtype=np.int64)[self._kinds])

    def _of_dummies(self, weights: Floats, n: int) -> Floats:
        """Return the variances of weighted sums over the numbers of dummies: shape (sums,)."""
        scores = weights @ self._scores.T
        return self.privacy.counts.variance * (scores**2).sum(axis=1) / n**2

    def __str__(self) -> str:
        total = self.dummies_of_each_kind * len(self._kinds)
        return (
            f"{self.oracle!r}, with {total} dummies on average: ({self.epsilon}, {self.delta}) in"
            f" the published collection.\nThe shuffler is trusted to add the dummies, to tell"
            " nobody how many, and to mix all reports before it forwards them. If it does not,"
            f" what holds is each report's epsilon, {self.local_epsilon:.6g}."
        )


def _apart(oracle: GRR | EnumeratedOracle) -> tuple[Fraction, Attack]:
    """Return a bound on the distance between reports of two values, and a test between them."""
    if isinstance(oracle, GRR):
        return oracle.p - oracle.q, ((oracle.p, oracle.q), (oracle.q, oracle.p))
    matrix, weights = oracle.law.matrix, oracle.law.weights
    # The total variation distance, half the sum of absolute differences, of all pairs of columns.
    distances = np.array(
        [np.abs(matrix - matrix[:, [item]]).sum(axis=0) / 2 for item in range(oracle.domain)]
    )
    # Each entry is within one part in 2^53, and sums of so many err by less than as many parts
    bound = Fraction(float(distances.max())) + (len(matrix) + 64) * Fraction(1, 1 << 50)
    x, z = np.unravel_index(int(distances.argmax()), distances.shape)
    more = matrix[:, x] - matrix[:, z]
    kinds = int(more.argmax()), int(more.argmin())
    chances = [
        tuple(Fraction(weights[kind][item], oracle.law.denominator) for kind in kinds)
        for item in (int(x), int(z))
    ]
    first, second = chances
    return min(bound, Fraction(1)), ((first[0], first[1]), (second[0], second[1]))
