"""SquareWave: reports near the true value are more probable; distributions are found by EM."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra.exact_draws import WORD, bernoulli, uniform
from frequency.algebra.hash_functions import Coins
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Reports, smallest_integer
from frequency.core.deployable import Step, json_integer
from frequency.core.likelihood import Fit, Likelihood, stopped_early
from frequency.core.public_coins import Menu, PublicCoinChannel
from mechdesign import Audit
from mechdesign.base.arrays import Floats, Items
from mechdesign.base.randomness import BitSource
from mechdesign.symbolic.randomiser import Randomiser, favouring
from rangeq.core.estimate import Distribution


def bandwidth(epsilon: float) -> float:
    """delta, by which a square wave reaches to each side of a value, in units of the domain.

    Multi-dimensional ranges, equation 8: where the most information is passed on.

    Parameters
    ----------
    epsilon : float
        The privacy loss of a report, above 0.

    Returns
    -------
    float
        Below 1/2: 2 delta is the part of the domain whose reports are near a value.
    """
    e = min(epsilon, 700.0)
    if e < 1e-3:  # the formula's two differences cancel; its expansion is 1/2 - e/3
        return 0.5 - e / 3
    # (e exp(e) - exp(e) + 1) / (2 exp(e) (exp(e) - 1 - e))
    return (e - 1 + math.exp(-e)) / (2 * (math.expm1(e) - e))


@dataclass(frozen=True)
class SquareWave(PublicCoinChannel):
    """The discrete square wave: a report near the value is more probable than one far from it.

    Li et al., SIGMOD 2020, sections 5.1 and 5.4; multi-dimensional ranges, equation 8. A report is
    one ``output`` of 0 .. domain + 2 reach - 1. The 2 reach + 1 outputs v .. v + 2 reach are near
    the value v, the other domain - 1 are far; each near one is at most exp(epsilon) times as likely
    as each far one. That a report is near has an integer probability in units of 2^-64, rounded to
    the private side; near and far outputs are uniform among themselves. `reach` is the bandwidth
    delta of equation 8 in items, rounded down.

    Parameters
    ----------
    domain : int
        The number of items.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.

    Raises
    ------
    ValueError
        For a domain or epsilon out of range.

    Examples
    --------
    >>> protocol = SquareWave(domain=64, epsilon=1.0)
    >>> protocol.reach
    16
    >>> values = np.full(20_000, 20)
    >>> reports = protocol.privatize(values, np.random.default_rng(1))
    >>> estimate = protocol.estimate(protocol.aggregate(reports))
    >>> bool(estimate.range(15, 25) > 0.9)
    True
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, equation 8"

    @cached_property
    def reach(self) -> int:
        """b: how many items to each side of the value count as near."""
        return math.floor(bandwidth(self.privacy.epsilon) * self.domain)

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return self.domain + 2 * self.reach

    @property
    def _near(self) -> int:
        return 2 * self.reach + 1

    @cached_property
    def _far_weight(self) -> int:
        """The probability of all far outputs together, in units of 2^-64: rounded up."""
        far = self.domain - 1
        return -int(-WORD * far // (self._near * self.max_ratio + far))

    @property
    def p(self) -> Fraction:
        """Pr[a particular near output]."""
        return Fraction(WORD - self._far_weight, WORD * self._near)

    @property
    def q(self) -> Fraction:
        """Pr[a particular far output]; 0 if there is none."""
        return (
            Fraction(self._far_weight, WORD * (self.domain - 1)) if self.domain > 1 else Fraction(0)
        )

    @cached_property
    def _difference_and_q(self) -> tuple[float, float]:
        """p - q, and q: looked up in every round of a fit."""
        return float(self.p - self.q), float(self.q)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("output", smallest_integer(self.outputs - 1))])

    @property
    def report_bits(self) -> int:
        return (self.outputs - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        return {"reach": self.reach, "far": str(self._far_weight)}

    @property
    def client_half(self) -> Step:
        return {
            "do": "wave",
            "places": self.domain,
            "reach": self.reach,
            "far": json_integer(self._far_weight),
            "width": self.report_dtype.itemsize,
        }

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        far = bernoulli(len(items), self._far_weight, source)
        output = items.copy()
        output[~far] += uniform(int((~far).sum()), self._near, source)
        # The far outputs are those below the value, and those more than 2 reach above it.
        drawn, value = uniform(int(far.sum()), max(self.domain - 1, 1), source), items[far]
        output[far] = drawn + np.where(drawn >= value, self._near, 0)
        reports["output"] = output

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        result: npt.NDArray[np.bool_] = reports["output"] < self.outputs
        return result

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self.outputs,)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(reports["output"], minlength=self.outputs)

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        held = self._held(items, counts)
        total = np.zeros(self.outputs, dtype=np.int64)
        p, q = float(self.p), float(self.q)
        for item in np.flatnonzero(held):
            column = np.full(self.outputs, q)
            column[item : item + self._near] = p
            total += rng.multinomial(held[item], column / column.sum())
        return total

    # Without an item every output is as likely.

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        near, far = self.p * self.outputs, self.q * self.outputs
        return ((far, near) if self.domain > 1 else (near,),)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports["output"] = coins.uniform(0, self.outputs)
        return reports

    # Outputs as far from each other as can be: of so many in a circle, a run of neighbours holds
    # as many as any other of its length, to within one.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        candidates = min(self.outputs, largest)
        if self.domain == 1 or candidates == 1:
            return (Menu(1, 0, 1),)
        least, rest = divmod(candidates * self._near, self.outputs)
        return (Menu(candidates, least, least + (rest > 0)),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result, candidates = reports.copy(), min(self.outputs, largest)
        step = numbers * self.outputs // candidates
        result["output"] = (reports["output"].astype(np.int64) + step) % self.outputs
        return result

    def likelihood(self, reports: Reports, items: Items) -> Items:
        if self.domain == 1:
            return np.zeros(len(items), dtype=np.int64)
        above = reports["output"].astype(np.int64) - items
        return ((above >= 0) & (above < self._near)).astype(np.int64)

    def likely_together(self, items: Items) -> Fraction:
        near = self._near - int(items.max() - items.min())
        return Fraction(max(near, 0), self.outputs)

    @property
    def least_together(self) -> Fraction:
        return self.likely_together(np.array([0, self.domain - 1]))

    @property
    def always_likely(self) -> Fraction:
        return self.least_together

    def audit(self) -> Audit:
        # Output 0 is near item 0 and far from the last one; no ratio is larger.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(self.p / self.q, self.max_ratio, "output 0", (0, self.domain - 1))

    def proof(self) -> Randomiser:
        name, source = type(self).__name__, self.privacy_source
        return favouring(self._near, self.domain - 1, name=name, source=source)

    # ----------------------------------------------------------------------------- the server half

    def estimate(self, aggregate: Aggregate, smooth: bool = False) -> Distribution:
        """The distribution of the users' items, non-negative and with sum 1.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.
        smooth : bool, default False
            False: EM, which the paper stops before the maximum of the likelihood: it follows the
            noise from item to item, but less than the maximum does, and little in ranges.
            True: EMS, which averages neighbours after every round. That is the paper's choice for
            smooth distributions over many items; but the smaller epsilon, the less a round learns
            and the more rounds blur: at 64 items and an epsilon of 0.2, a normal distribution with
            a deviation of 5 items comes out with one of 15.

        Returns
        -------
        Distribution
            All NaN with no reports.

        Raises
        ------
        IncompatibleAggregate
            For the aggregate of another protocol.
        """
        self.require_own(aggregate)
        if not aggregate.n:
            return Distribution(np.full(self.domain, np.nan), 0)
        return Distribution(self.fit(aggregate, smooth).frequencies, aggregate.n)

    def fit(self, aggregate: Aggregate, smooth: bool = False) -> Fit:
        """The distribution with the number of rounds and the log-likelihood.

        It stops where Li et al. stop: see `stopped_early`. A round takes O(domain) steps.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.
        smooth : bool, default False
            As for `estimate`.

        Returns
        -------
        Fit
            See there.

        Raises
        ------
        ValueError
            With no reports.
        IncompatibleAggregate
            For the aggregate of another protocol.
        """
        self.require_own(aggregate)
        if not aggregate.n:
            raise ValueError("no reports: there is nothing to fit")
        counts = aggregate.counts.astype(np.float64)
        likelihood = Likelihood(self.domain, counts, self.reported, self._backward)
        return stopped_early(likelihood, (self.domain,), float(self.epsilon), smooth)

    def reported(self, frequencies: Floats) -> Floats:
        """The probability of each output, for users with these frequencies.

        Parameters
        ----------
        frequencies : numpy.ndarray of float64
            Shape (domain,): the fractions of the users.

        Returns
        -------
        numpy.ndarray of float64
            Shape (outputs,).
        """
        spread = np.zeros(self.outputs + 1)
        spread[: self.domain] += frequencies
        spread[self._near : self._near + self.domain] -= frequencies
        near = np.maximum(np.cumsum(spread[:-1]), 0.0)
        difference, q = self._difference_and_q
        result: Floats = q * frequencies.sum() + difference * near
        return result

    def _backward(self, ratios: Floats) -> Floats:
        """For each item the sum over outputs of their probability times a number of their own."""
        sums = np.concatenate([[0.0], np.cumsum(ratios)])
        near = np.maximum(sums[self._near :] - sums[: self.domain], 0.0)
        difference, q = self._difference_and_q
        result: Floats = q * sums[-1] + difference * near
        return result
