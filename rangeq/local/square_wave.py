"""SquareWave: reports near the true value are more probable; distributions by EM."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, Coins, bernoulli, uniform
from frequency.core import (
    Aggregate,
    Channel,
    Fit,
    Likelihood,
    Menu,
    Reports,
    Step,
    json_integer,
    smallest_integer,
    stopped_early,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, shown
from mechdesign.symbolic.proof_rules import Randomiser, favouring
from rangeq.core import Distribution
from rangeq.local.item_sets import PaddedSets
from rangeq.local.paired import Paired, auc_and_slope


def bandwidth(epsilon: float) -> float:
    """Return the half-width delta of a square wave about a value, in units of the domain."""
    # Multi-dimensional ranges, equation 8: where the most information is passed on
    # Beyond 700 the exponential overflows, and the bandwidth is 0 to all digits long before
    e = min(epsilon, 700.0)
    if e < 1e-3:  # the formula's two differences cancel; its expansion is 1/2 - e/3
        return 0.5 - e / 3
    # (e exp(e) - exp(e) + 1) / (2 exp(e) (exp(e) - 1 - e))
    return (e - 1 + math.exp(-e)) / (2 * (math.expm1(e) - e))


@dataclass(frozen=True)
class SquareWave(Channel):
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
        """The number b of items to each side of the value that count as near."""
        return math.floor(bandwidth(self.privacy.epsilon) * self.domain)

    @property
    def outputs(self) -> int:
        """The number of different reports."""
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
        """The probability of a particular near output."""
        return Fraction(WORD - self._far_weight, WORD * self._near)

    @property
    def q(self) -> Fraction:
        """The probability of a particular far output; 0 if there is none."""
        return (
            Fraction(self._far_weight, WORD * (self.domain - 1)) if self.domain > 1 else Fraction(0)
        )

    @cached_property
    def _difference_and_q(self) -> tuple[float, float]:
        """The difference p - q, and q: looked up in every round of a fit."""
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
        return reports["output"] < self.outputs

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self.outputs,)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(reports["output"], minlength=self.outputs)

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        users = self._held(items, counts)
        total = np.zeros(self.outputs, dtype=np.int64)
        p, q = float(self.p), float(self.q)
        for item in np.flatnonzero(users):
            column = np.full(self.outputs, q)
            column[item : item + self._near] = p
            total += rng.multinomial(users[item], column / column.sum())
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

    def _likely_together(self, items: Items) -> Fraction:
        near = self._near - int(items.max() - items.min())
        return Fraction(max(near, 0), self.outputs)

    @property
    def _least_together(self) -> Fraction:
        return self._likely_together(np.array([0, self.domain - 1]))

    @property
    def _always_likely(self) -> Fraction:
        return self._least_together

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
        # Each item adds to a run of outputs: the differences of the runs' ends, cumulated, in
        # O(outputs) instead of items times outputs
        spread[: self.domain] += frequencies
        spread[self._near : self._near + self.domain] -= frequencies
        # Rounding of the cumulated sum may leave a mass below 0, and at a large epsilon, where q is
        # nearly 0, a probability, whose logarithm the fit takes
        near = np.maximum(np.cumsum(spread[:-1]), 0.0)
        difference, q = self._difference_and_q
        return q * frequencies.sum() + difference * near

    def _backward(self, ratios: Floats) -> Floats:
        """The sum over outputs of their probability times a number of their own, for each item."""
        # The transpose of `reported`, as EM needs it: sums over the same runs
        sums = np.concatenate([[0.0], np.cumsum(ratios)])
        near = np.maximum(sums[self._near :] - sums[: self.domain], 0.0)
        difference, q = self._difference_and_q
        return q * sums[-1] + difference * near


# ------------------------------------------------------------------------------------------------
# How many bins to cut a score into, for the AUC: discretisation against noise.
#
# Thesis, section 7.1.2: "the first key challenge is to analytically find an expression for error in
# estimation as a function of D under suitable smoothness assumptions on the input distribution".


#: The numbers of bins to choose from.
POWERS_OF_TWO = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


class AucError(NamedTuple):
    """The error that the AUC of a score in so many bins is predicted to have.

    Attributes
    ----------
    bins : int
        The number of bins.
    discretisation : float
        A bound on the bias from ties within bins, for densities of this smoothness.
    noise : float
        The standard deviation from the protocol, to first order, where both classes are even.
    """

    bins: int
    discretisation: float
    noise: float

    @property
    def rmse(self) -> float:
        """The root of the mean square error, at most."""
        return math.hypot(self.discretisation, self.noise)


def auc_error(pairs: Paired, n: int, smoothness: float, positives: float = 0.5) -> AucError:
    """The error to expect of the AUC of a score that is cut into equal bins.

    Let the score have a density in each class, on [0, 1], with slopes of at most L in absolute
    value. In D bins the pairs of scores in one bin count one half each, and the AUC is wrong by at
    most

        L / (4 D^2).

    Of a bin of width h, it is wrong by the integral of p(x) q(y) s(x, y), where p and q are the
    densities and s is 1/2 - [x > y], which changes its sign with x and y exchanged: by half of that
    of (p(x) q(y) - p(y) q(x)) s(x, y). The difference is at most L |x - y| (p(y) + q(y)), the
    integral of |x - y| over x at most h^2 / 2, and |s| is 1/2; the bin's error is at most L h^2 / 8
    times its share of both classes, which add up to 2. (As h tends to 0, the bias is (h^2 / 12)
    times the integral of p q' - p' q.)

    The noise is that of the weighted sum of frequencies that the AUC is to first order, for even
    densities. For trees it hardly grows with D, for frequency oracles with its root. Scores that
    gather in few bins have more, by about half in the tests (tests/rangeq/local/test_auc_bins.py):
    there the number of bins that was chosen has less than twice the error of the best.

    Parameters
    ----------
    pairs : Paired
        Over as many items as there are bins, of one pair a user.
    n : int
        The number of users, at least 1.
    smoothness : float
        L, above 0, for scores scaled to [0, 1]: 2 for a density that grows linearly from 0, 4
        for a triangle over all of [0, 1], 0.24 / s^2 for a normal one of deviation s.
    positives : float, default 0.5
        The fraction of users with bit 1, guessed: strictly between 0 and 1.

    Returns
    -------
    AucError
        Bias and deviation.

    Raises
    ------
    ValueError
        An argument out of range.
    TypeError
        Pairs in sets.
    """
    for name, value, most in (("smoothness", smoothness, math.inf), ("positives", positives, 1.0)):
        fine = not isinstance(value, bool) and isinstance(value, (int, float))
        if not fine or not 0 < value < most:
            raise ValueError(
                f"{name} must be a number above 0 and below {most}, got {shown(value)}"
            )
    if isinstance(pairs.protocol, PaddedSets):
        raise TypeError("the AUC of sets of pairs is not predicted")
    bins = pairs.domain
    population = np.repeat([1 - positives, positives], bins) / bins
    _, slope = auc_and_slope(population[:bins], population[bins:])
    (variance,) = pairs.protocol.linear_variance(n, slope[None], population)
    return AucError(bins, smoothness / (4 * bins**2), math.sqrt(max(float(variance), 0.0)))


def best_bins(
    make: Callable[[int], Paired],
    n: int,
    smoothness: float,
    positives: float = 0.5,
    candidates: Iterable[int] = POWERS_OF_TWO,
) -> AucError:
    """The number of bins for which the AUC has the least predicted error.

    Parameters
    ----------
    make : callable
        Makes the protocol from a number of bins: ``lambda bins: Paired(HaarHRR(2 * bins, 1.0))``.
    n : int
        The number of users, at least 1.
    smoothness, positives : float
        As for `auc_error`.
    candidates : iterable of int, default `POWERS_OF_TWO`
        The numbers of bins to choose from.

    Returns
    -------
    AucError
        ``bins``, and the error predicted.

    Raises
    ------
    ValueError
        An argument out of range, or no candidates.

    Examples
    --------
    >>> from rangeq import HaarHRR
    >>> best_bins(lambda bins: Paired(HaarHRR(2 * bins, 1.0)), n=100_000, smoothness=8.0).bins
    32
    """
    errors = [auc_error(make(bins), n, smoothness, positives) for bins in candidates]
    if not errors:
        raise ValueError("there are no candidates to choose from")
    return min(errors, key=lambda error: error.rmse)
