"""workload_optimal(...): the local mechanism of least variance for linear queries, with a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers, ProgressMeter, Rational, one_thread, shown, whole
from mechdesign.exceptions import InvalidPrior
from mechdesign.local.bounds import most_valued
from mechdesign.local.extremal_mechanism import local_privacy
from mechdesign.local.optimality import (
    Criterion,
    least_favourable,
    mixture,
    saddle_point,
    variances_by_input,
    weigh,
)
from mechdesign.local.patterns import Patterns, balanced, best_of, climb, gram, turn_climb, turned
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.privacy import Privacy

_UNITS = 1 << 62  # weights of the table are integers that add up to this in every column

# The share of users who answer by a weaker mechanism, which takes up all rounding.
_REPAIR = Fraction(1, 1 << 20)

# The largest number of inputs with which every pattern is priced, for an exact bound.
_ALL_PATTERNS = 16

# The largest number of inputs with which all patterns are weighed at once for the worst one.
_AT_ONCE = 8

# The largest number of inputs with which rows are weighed one by one; beyond, in balanced sets.
#
# Up to twice as many inputs, rows are weighed one by one at the end only.
_ONE_BY_ONE = 64

_LEAST_SHARE = 1e-3

#: The tolerance and the rounds of branch and bound over all patterns: every time, and every
#: `_PATIENCE` rounds, where a second try is for gaps that are not small after the first.
_CLOSE, _QUICK, _THOROUGH = 2e-3, (4,), (60, 2000)

#: The number of rounds of pricing after which a larger gap is enough, and that gap.
_PATIENCE, _ENOUGH = 30, 0.01

# The probability, relative to the largest, below which rows are dropped, if no more variance than
# that is lost.
_NEGLIGIBLE = 1e-5

_ROUNDING = 5e-13  # the rounding error of a variance of 0, relative to the variance of a histogram


@dataclass(frozen=True)
class WorkloadDesign:
    """A local mechanism for a workload of linear queries.

    Attributes
    ----------
    mechanism : Mechanism
        Exact and audited, ``neighbours="all"``: rows are outputs, almost all with two values of
        ratio 1 / alpha.
    criterion : str
        "average" or "worst".
    queries : int
        How many queries the workload has.
    variance : float
        The sum over all queries of the variance of the best unbiased estimate from one user:
        averaged over the prior of the user's input, or for the worst input (beyond 128 inputs, of
        a nearly best estimate). For n users, divide by n.
    bound : float
        No mechanism has less, with one output a user: proved by `Criterion.ideal` or by pricing
        all patterns, by branch and bound if there are many; computed in floats.
    gram : numpy.ndarray of float64
        The Gram matrix of the queries, shape (domain, domain).
    prior : numpy.ndarray of float64
        Of the inputs, shape (domain,); for the worst case the least favourable one. The estimate is
        best for it.
    """

    mechanism: Mechanism
    criterion: str
    queries: int
    variance: float
    bound: float
    gram: Floats
    prior: Floats

    @property
    def gap(self) -> float:
        """The excess of the variance over the bound, relative to it; infinite when that is 0.

        It is 0 when the variance is only rounding, as for a workload that asks for the total alone.
        """
        ratio = float(1 / self.mechanism.privacy.alpha)
        usual = max(1.0, 4 * ratio / (ratio - 1) ** 2) * float(np.trace(self.gram))
        if self.variance <= _ROUNDING * usual:
            return 0.0
        return self.variance / self.bound - 1 if self.bound > 0 else np.inf

    @cached_property
    def variances(self) -> Floats:
        """The total variance over all queries for each input: shape (domain,)."""
        return variances_by_input(self.mechanism.matrix, self.gram, self.prior)

    def __str__(self) -> str:
        m = self.mechanism
        return (
            f"{m.outputs} outputs for {m.inputs} inputs, alpha = {float(m.privacy.alpha):.6g}:"
            f" {self.criterion} variance {self.variance / self.queries:.6g} a query, at most"
            f" {100 * self.gap:.2g}% above the least possible"
        )


@one_thread
def workload_optimal(
    workload: str | npt.ArrayLike,
    domain: int,
    epsilon: Privacy | float | Rational,
    criterion: str = "average",
    *,
    prior: npt.ArrayLike | None = None,
    tolerance: float = 0.003,
    rounds: int = 200,
    progress: bool = False,
) -> WorkloadDesign:
    """Return the local mechanism of nearly least total variance for a workload.

    An optimal mechanism has rows of two values, 1 and e^epsilon up to scale (Kairouz, Oh and
    Viswanath, JMLR 2016): a convex program over the 2^domain patterns, see
    `mechdesign.local.optimality`. It is begun with families of patterns that are good for ordered
    and for binary attributes, and goes on by pricing: patterns that would lower the variance are
    searched for and added.

    Parameters
    ----------
    workload : str or array_like
        "histogram", "prefixes", "ranges" (all 0 <= a <= b < domain), or a matrix of shape (queries,
        domain), as those of `mechdesign.local.patterns`.
    domain : int
        The number of inputs, 1 to 512.
    epsilon : Privacy, float, Fraction, int, str or Decimal
        The privacy loss, from 1e-4 to 20, or the privacy itself. Every two inputs are neighbours.
    criterion : str, default "average"
        "average": for inputs drawn from the prior. "worst": for the worst input.
    prior : array_like, optional
        Shape (domain,): positive numbers that add up to 1; None: uniform. Only for "average".
    tolerance : float, default 0.003
        Stop as soon as the gap to the bound is no larger; after 30 rounds 0.01 is enough.
    rounds : int, default 200
        Stop after so many rounds of pricing.
    progress : bool, default False
        Show how far it is, on standard error.

    Returns
    -------
    WorkloadDesign

    Raises
    ------
    ValueError
        A workload, domain, epsilon or criterion outside these.
    InvalidPrior
        The prior is not a positive distribution over the inputs.
    """
    k = whole(domain, "domain", 1, 512, what="a number of inputs")
    if criterion not in ("average", "worst"):
        raise ValueError(f"criterion must be 'average' or 'worst', got {shown(criterion)}")
    matrix, queries = gram(workload, k)
    privacy = local_privacy(epsilon)
    ratio = float(1 / max(privacy.alpha, Fraction(1, 1 << 40)))
    if not 1 + 1e-4 <= ratio <= 1e9:  # below, the values of a row are too close for floats
        raise ValueError(f"epsilon must be between 1e-4 and 20, got {shown(epsilon)}")
    if prior is None:
        p: Floats = np.full(k, 1 / k)
    else:
        p = np.asarray(prior, dtype=np.float64)
        if criterion == "worst":
            raise ValueError("the worst input has no prior")
        if p.shape != (k,) or not (p > 0).all() or abs(p.sum() - 1) > 1e-9:
            raise InvalidPrior(f"prior must be {k} positive numbers that add up to 1")
        p = p / p.sum()
    if k == 1:
        return WorkloadDesign(Mechanism([[1]], privacy), criterion, queries, 0.0, 0.0, matrix, p)
    # Inputs that are alike to every query share their column: to answer as one of them, drawn from
    # the prior, takes nothing from an unbiased estimate, and adds nothing to its variance.
    first, place = _alike(matrix)
    if len(first) == 1:  # only the total is asked for, which is known: any mechanism will do
        first, place, rounds = np.arange(k), np.arange(k), 0
    reduced = matrix[np.ix_(first, first)]
    shares: Floats = np.bincount(place, weights=p).astype(np.float64)
    # The added identity keeps every frequency estimable, also if the workload does not need it.
    least = np.eye(len(first)) * (1e-7 * np.trace(reduced) / len(first) or 1e-7)
    asked = Criterion(reduced + least, shares, ratio)
    with ProgressMeter(f"design of {k} inputs", unit="rounds", shown=progress) as meter:
        search = _Search(asked, reduced, tolerance, rounds, meter)
        patterns, theta, bound = search.run() if criterion == "average" else search.run_worst()
    table = _exact(patterns[:, place], theta, privacy)
    mechanism = Mechanism.from_weights(table, _UNITS, privacy)
    mechanism.audit().require()
    inputs_prior = search.criterion.prior
    if criterion == "worst" and len(first) <= 2 * _ONE_BY_ONE:
        inputs_prior = least_favourable(asked.gram, mechanism.matrix[:, first], inputs_prior)
    # Merged inputs share the probability of their class in proportion to their own.
    inputs_prior = inputs_prior[place] * p / shares[place]
    variances = variances_by_input(mechanism.matrix, matrix, inputs_prior)
    variance = max(float(variances.max()) if criterion == "worst" else float(p @ variances), 0.0)
    bound = max(min(bound, variance), 0.0)
    return WorkloadDesign(mechanism, criterion, queries, variance, bound, matrix, inputs_prior)


class _Search:
    """The search: patterns and their weights, improved round by round."""

    def __init__(
        self,
        criterion: Criterion,
        gram: Floats,
        tolerance: float,
        rounds: int,
        meter: ProgressMeter,
    ) -> None:
        self.criterion, self.gram, self.tolerance, self.rounds, self.meter = (
            criterion,
            gram,
            tolerance,
            rounds,
            meter,
        )
        self.rng = np.random.default_rng(0)  # so that a design is reproducible
        self.sets: list[Patterns] = list(balanced(criterion.domain, criterion.ratio, self.rng))
        self.shares = np.full(len(self.sets), 1 / len(self.sets))

    def _rows(self, patterns: Patterns) -> Floats:
        return np.where(patterns, self.criterion.ratio, 1.0)

    def _information(self, patterns: Patterns) -> Floats:
        """Return the information matrix of a balanced set, taken as a mechanism."""
        rows = self._rows(patterns)
        # Balanced: all columns have the same sum, so that one factor makes them sum to 1.
        return self.criterion.information(rows, 1 / float(rows[:, 0].sum()))

    def _mix(self, steps: int) -> Floats:
        """Weigh the balanced sets, and drop those with a negligible weight."""
        slope: Floats = np.zeros(0)
        # Twice: without the sets that were dropped the others' weights move a little.
        for _ in range(2):
            parts = np.array([self._information(part) for part in self.sets])
            self.shares, slope = mixture(self.criterion, list(parts), self.shares, steps)
            kept = self._needed(parts)
            if kept.all():
                break
            self.sets = [patterns for patterns, keep in zip(self.sets, kept, strict=True) if keep]
            self.shares = self.shares[kept] / self.shares[kept].sum()
        return slope

    def _needed(self, parts: Floats) -> Patterns:
        """Return which sets are kept, shape (sets,): those with a weight above a threshold."""
        # The threshold is lowered until the smallest eigenvalue of the information matrix keeps a
        # tenth of its value: frequencies that the workload does not need may be estimable by sets
        # of small weight only.
        flat = parts.reshape(len(parts), -1)
        least = np.linalg.eigvalsh((self.shares @ flat).reshape(parts[0].shape))[0]
        threshold = _LEAST_SHARE
        while True:
            kept: Patterns = self.shares > threshold
            left = (self.shares * kept @ flat).reshape(parts[0].shape)
            if kept.all() or threshold < 1e-20 or np.linalg.eigvalsh(left)[0] > least / 10:
                return kept
            threshold /= 10

    def _theta(self) -> tuple[Patterns, Floats]:
        """Return the rows of all balanced sets, equal ones together, and their weights."""
        parts = zip(self.sets, self.shares, strict=True)
        weights = [
            np.full(len(part), share / self._rows(part)[:, 0].sum()) for part, share in parts
        ]
        patterns, place = np.unique(np.concatenate(self.sets), axis=0, return_inverse=True)
        theta = np.zeros(len(patterns))
        np.add.at(theta, place.ravel(), np.concatenate(weights))
        return patterns, theta

    def _variance(self, patterns: Patterns, theta: Floats) -> float:
        inverse = np.linalg.inv(self.criterion.information(self._rows(patterns), theta))
        return float(np.sum(self.criterion.gram * inverse)) - self.criterion.held

    def _ideal(self) -> float:
        """Return the bound that holds for all sizes, without the added identity."""
        asked = Criterion(self.gram, self.criterion.prior, self.criterion.ratio)
        return asked.ideal() - asked.held

    def run(self) -> tuple[Patterns, Floats, float]:
        bound = self._ideal()
        slope = self._mix(400)
        patterns, theta = self._theta()
        if self.criterion.domain <= _ONE_BY_ONE:
            return self._run_rows(patterns, theta, bound, self.rounds)
        reached = np.inf
        for _ in range(self.rounds):
            self.meter.update()
            before, reached = reached, self._variance(patterns, theta)
            if reached <= (1 + self.tolerance) * bound or reached > 0.999 * before:
                break
            ratio, k = self.criterion.ratio, self.criterion.domain
            new = []
            for _ in range(12):
                # Randomised rounding of the size at which a row has the largest variance (`ideal`).
                size = int(k / (1 + ratio) + self.rng.random())
                cells = 2 ** int(self.rng.integers(1, k.bit_length()))
                # Random blocks of random widths: starts at every scale of the order of items.
                order = self.rng.permutation(cells)[np.arange(k) * cells // k]
                start = order < np.sort(order)[min(max(size, 1), k - 1)]
                if start.any():
                    new.append(turned(turn_climb(self.criterion, slope, start)))
            best = np.argsort([float(np.sum(slope * self._information(part))) for part in new])[-4:]
            self.sets += [new[place] for place in best]
            # Multiplicative updates never raise a share from 0: new sets need some to begin with.
            self.shares = np.concatenate([0.9 * self.shares, np.full(len(best), 0.1 / len(best))])
            slope = self._mix(100)
            patterns, theta = self._theta()
        if self.criterion.domain <= 2 * _ONE_BY_ONE and reached > (1 + self.tolerance) * bound:
            return self._run_rows(patterns, theta, bound, min(self.rounds, 3))
        return patterns, theta, bound

    def _run_rows(
        self, patterns: Patterns, theta: Floats, bound: float, rounds: int, worst: bool = False
    ) -> tuple[Patterns, Floats, float]:
        """Weigh single rows, and add those that pricing finds."""
        # For the worst input rows of negligible weight are kept, since they hold the prior in
        # place.
        weighed = self._for_the_worst if worst else self._for_the_prior
        k = self.criterion.domain
        everything = _all_patterns(k) if k <= _ALL_PATTERNS else None
        tolerance = self.tolerance if everything is None else min(self.tolerance, 1e-4)
        for round_ in range(rounds):
            self.meter.update()
            pi = theta * (self._rows(patterns) @ self.criterion.prior)
            least = 0.0 if worst else 1e-7 * pi.max()
            # A Newton step costs the cube of the number of rows: at most so many, the likeliest
            # ones. An optimal design needs at most k (k + 1) / 2 rows, and far fewer in practice.
            kept = pi >= max(least, np.sort(pi)[-min(256 + 16 * k, len(pi))])
            patterns, rows = patterns[kept], self._rows(patterns[kept])
            theta, slope, multipliers = weighed(rows, theta[kept])
            criterion = self.criterion
            variance = self._variance(patterns, theta)
            new = (
                self._candidates(patterns, slope, multipliers) if everything is None else everything
            )
            last, thorough = round_ == rounds - 1, round_ % _PATIENCE == _PATIENCE - 1
            enough = tolerance if round_ < _PATIENCE - 1 else max(tolerance, _ENOUGH)
            # The bound of any prior holds for the worst input (minimax), and each round has another
            # prior.
            bound = max(bound, self._ideal()) if worst else bound
            tries = _THOROUGH if last or thorough else _QUICK
            bound = max(bound, self._bound(rows, theta, multipliers, new, tries))
            if variance <= (1 + enough) * bound or last:
                break
            pi = theta * (rows @ criterion.prior)
            # The equivalence theorem: all rows with positive weights have this value at the
            # optimum, and a pattern above it lowers the variance.
            standing = float(pi @ criterion.priced(slope, multipliers, rows)) / float(pi.sum())
            worth = criterion.priced(slope, multipliers, self._rows(new))
            # More than rounding and than the barrier's inexactness, so that rounds do not repeat.
            least_worth = standing + 1e-7 * (variance + criterion.held)
            better = best_of(new, worth, least_worth, patterns, 4 * k)
            if not len(better):
                bound = max(bound, self._bound(rows, theta, multipliers, new, _THOROUGH))
                break
            new = better
            patterns = np.concatenate([patterns, new])
            added = 0.05 / len(new) / (self._rows(new) @ criterion.prior)
            theta = np.concatenate([0.95 * theta, added])
        return patterns, theta, bound

    def _for_the_prior(self, rows: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Weigh rows for the average; return the weights, the slope and the multipliers."""
        mass = rows @ self.criterion.prior
        pi, slope, multipliers = weigh(self.criterion, rows, theta * mass)
        return pi / mass, slope, multipliers

    def _for_the_worst(self, rows: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Weigh rows for the worst input, and take the prior that is least favourable to them."""
        gram, ratio = self.criterion.gram, self.criterion.ratio
        theta, prior, multipliers = saddle_point(gram, rows, theta, self.criterion.prior)
        self.criterion = Criterion(gram, prior, ratio)
        inverse = np.linalg.inv(self.criterion.information(rows, theta))
        return theta, inverse @ gram @ inverse, multipliers

    def _candidates(self, patterns: Patterns, slope: Floats, multipliers: Floats) -> Patterns:
        """Return patterns that pricing finds, by a search from `_starts`."""
        starts = self._starts(patterns, slope, 2 * self.criterion.domain)
        new = np.array([climb(self.criterion, slope, multipliers, start) for start in starts])
        return new[new.any(axis=1) & ~new.all(axis=1)]

    def _bound(
        self,
        rows: Floats,
        theta: Floats,
        multipliers: Floats,
        known: Patterns,
        tries: Sequence[int],
    ) -> float:
        """Return a lower bound on the variance of any mechanism, from the information of one."""
        # tr(G M^-1) >= 2 t^(1/2) least - t (most + multipliers' 1), maximised over t > 0. The most
        # that a pattern is worth is that of the known ones if they are all, otherwise a bound, by
        # so many rounds of branch and bound.
        asked, gram = self.criterion, self.gram
        inverse = np.linalg.inv(asked.information(rows, theta))
        # The multiplier t S, with S = M^-1 G M^-1: tr(G N^-1) + t tr(S N) >= 2 t^(1/2) tr(G M^-1)
        # for every information N, by the inequality of arithmetic and geometric means for matrices;
        # and tr(S N) = sum pi u'S u <= most + multipliers'1, as sum pi u = 1. The best t gives
        # least^2 / (most + multipliers'1), for any M and any multipliers (weak duality).
        slope, least = inverse @ gram @ inverse, float(np.sum(gram * inverse))
        total, given_input = float(multipliers.sum()), float(asked.prior @ np.diag(gram))
        most = float(asked.priced(slope, multipliers, self._rows(known)).max(initial=-np.inf))
        # All patterns were priced: `most` is exact.
        if asked.domain <= _ALL_PATTERNS:
            return least**2 / (most + total) - given_input
        most, bound = max(most, float(asked.priced(slope, multipliers, rows).max())), -np.inf
        for parted in tries:
            valued = most_valued(asked, slope, multipliers, most, _CLOSE * least, parted)
            bound = least**2 / (valued + total) - given_input
            if least - given_input <= (1 + _ENOUGH) * bound:
                break
        return bound

    def _starts(self, patterns: Patterns, slope: Floats, count: int) -> Patterns:
        """Return starting patterns for the search."""
        # Half are present rows with a few changes; half follow random directions in which the slope
        # is steep.
        k = self.criterion.domain
        values, vectors = np.linalg.eigh(slope)
        # A tenth of the entries flipped: out of the local maximum that the row is, but near it.
        near = patterns[self.rng.integers(len(patterns), size=count // 2)] ^ (
            self.rng.random((count // 2, k)) < 0.1
        )
        along = (self.rng.normal(size=(count // 2, k)) * values) @ vectors.T
        steep = along > np.quantile(
            along, 1 - 1 / (1 + self.criterion.ratio), axis=1, keepdims=True
        )
        starts = np.concatenate([near, steep])
        return starts[starts.any(axis=1) & ~starts.all(axis=1)]

    def run_worst(self) -> tuple[Patterns, Floats, float]:
        """Minimise the worst case over inputs, by the least favourable prior."""
        # The smallest worst case equals the largest, over priors, of the smallest average
        # (minimax).
        if self.criterion.domain <= _ONE_BY_ONE:
            if self.criterion.domain <= _AT_ONCE:
                self.sets, self.shares = [_all_patterns(self.criterion.domain)], np.ones(1)
            patterns, theta = self._theta()
            return self._fewer(
                *self._run_rows(patterns, theta, self._ideal(), self.rounds, worst=True)
            )
        for _ in range(20):  # first with the balanced sets only, which is quick
            self._mix(100)
            if self._follow(*self._theta()) <= 1 + self.tolerance / 2:
                break
        best, bound, chosen = np.inf, 0.0, (*self._theta(), self.criterion)
        for _ in range(3):  # the prior moves towards the inputs of large variance
            patterns, theta, average = self.run()
            criterion, bound = self.criterion, max(bound, average)
            mean = self._variance(patterns, theta)
            worst = self._follow(patterns, theta) * mean
            if worst < best:
                best, chosen = worst, (patterns, theta, criterion)
            if best <= (1 + self.tolerance) * bound:
                break
        self.criterion = chosen[2]
        return chosen[0], chosen[1], bound

    def _fewer(
        self, patterns: Patterns, theta: Floats, bound: float
    ) -> tuple[Patterns, Floats, float]:
        """Return the same without rows of negligible weight, unless they are needed."""
        before, variance = self.criterion, self._variance(patterns, theta)
        mass = theta * (self._rows(patterns) @ before.prior)
        kept = mass > _NEGLIGIBLE * mass.max()
        rows = self._rows(patterns[kept])
        # The frequencies of all inputs must stay estimable.
        if np.linalg.matrix_rank(rows) == before.domain:
            fewer = self._for_the_worst(rows, theta[kept])[0]
            if self._variance(patterns[kept], fewer) <= (1 + _NEGLIGIBLE) * variance:
                return patterns[kept], fewer, bound
        self.criterion = before
        return patterns, theta, bound

    def _follow(self, patterns: Patterns, theta: Floats) -> float:
        """Move the prior towards the inputs of most variance; return the largest over the mean."""
        p = self.criterion.prior
        variances = variances_by_input(
            self._rows(patterns) * theta[:, None], self.criterion.gram, p
        )
        excess = float(variances.max() / (p @ variances))
        # A multiplicative step towards the least favourable prior: at a saddle point all inputs
        # with positive probability have the largest variance. None falls to 0, from where it would
        # not return.
        p = np.maximum(p * variances / variances.max(), 1e-4 / len(p) * p.sum())
        self.criterion = Criterion(self.criterion.gram, p / p.sum(), self.criterion.ratio)
        return excess


def _alike(gram: Floats) -> tuple[Integers, Integers]:
    """Return the first of each class of inputs alike to every query, and each input's class."""
    # Equal columns of the workload have equal rows in its Gram matrix, and conversely: if <a, c> =
    # <b, c> for all columns c, then |a - b|^2 = 0.
    _, firsts, place = np.unique(gram, axis=0, return_index=True, return_inverse=True)
    first, place = np.unique(firsts[place.ravel()], return_inverse=True)
    return first, place


def _all_patterns(k: int) -> Patterns:
    return (np.arange(1, (1 << k) - 1)[:, None] >> np.arange(k) & 1).astype(np.bool_)


def _exact(patterns: Patterns, theta: Floats, privacy: Privacy) -> list[list[int]]:
    """Return integer weights that add up to `_UNITS` per column, with no ratio above 1 / alpha."""
    # The given rows get all but `_REPAIR` of the users, rounded down. The rest is given to rows
    # that favour one input each by a ratio of about the square root of what is allowed. That margin
    # is enough to absorb what the rounding left of each column.
    k, ratio = patterns.shape[1], 1 / privacy.alpha
    table = []
    for pattern, weight in zip(patterns.tolist(), theta.tolist(), strict=True):
        # Down, and `high` down from the exact ratio: high / low <= 1 / alpha, exactly.
        low = int(weight * (1 - float(_REPAIR)) * _UNITS)
        if low:
            high = int(low * ratio)
            table.append([high if favoured else low for favoured in pattern])
    left = [_UNITS - sum(column) for column in zip(*table, strict=True)]
    root = Fraction(float(ratio) ** 0.5).limit_denominator(1 << 32)
    # What columns have left is 1e-6 of the whole, and differs by the residual of sum pi u = 1 only,
    # rounding after full Newton steps: far less than the other factor `root` that is allowed.
    low = int(sum(left) / (k * (k - 1 + root)))
    for place in range(k):
        table.append([low] * k)
        table[-1][place] = left[place] - (k - 1) * low
    return table
