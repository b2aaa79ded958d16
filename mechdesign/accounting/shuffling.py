"""shuffled(...): the privacy of local reports towards those who do not know who sent which.

Two datasets are neighbours if they differ in the value of one user; n, the number of users, is
public. The published collection is the multiset of the n reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from flint import arb, fmpz_mat

from mechdesign.accounting.inversion import Function, Mean, Summands
from mechdesign.accounting.listed_datasets import ListedDatasets
from mechdesign.accounting.pair_law import (
    PairLaw,
    PairLaws,
    PrivacyCurve,
    TableLaws,
    attack_laws_of,
    exact_delta,
    exp_below,
    float_above,
    log_above,
    require_pair_law,
)
from mechdesign.accounting.privacy_loss import PrivacyLoss, dominating
from mechdesign.accounting.shuffled_bits import max_of, orders_of_bits
from mechdesign.base import Floats, Rational, ball, brief, exact, precision, set_fields, whole
from mechdesign.exceptions import TooFewReports, UnboundedRatio, UnstatedLikelihoods
from mechdesign.mechanism.table import Table
from mechdesign.privacy import Metric, Privacy, exact_epsilon

LARGEST_N = 10**12  #: The most users of whom bounds are computed.

_BITS = 192  # the precision of the laws

#: The deltas up to which a profile has many points, and points at all.
_BULK, _END = Fraction(1, 10**16), Fraction(1, 10**40)

_BULK_OF_BITS = Fraction(1, 10**13)  # the first of reports of one bit, whose search takes longer

#: The number of points of a profile up to the one, and from there to the other.
_POINTS, _TAIL = 40, 12

_BRANCHES = 48  # the number of groups of pairs that are looked at for one delta

_NEARLY = 1.02  # the largest factor over the worst pair's delta that may be charged

# For reports of one bit: how many tolerances the cheap curve is raised by, to be above the
# bound nearly always; and the steps of epsilon, and how many, where it is not.
_MORE, _STEP, _STEPS = Fraction(3, 2), 1.5e-4, 8

_FINE = 0.02  # the smoothing of the blanket's bound where that search has been given up

_GIVEN_UP = 2  # the factor between both bounds that tells so

TRUST = (
    "The shuffler is trusted to drop who sent what, when and from where, and to publish only the"
    " whole collection, in random order"
)


class StatesLikelihoods(Protocol):
    """A local protocol that states the likelihoods of its reports."""

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        """Return laws under a blanket, one of which bounds the privacy loss of any two values."""

    def attack_laws(self) -> Sequence[PairLaw]:
        """Return laws of some pairs, where all other users hold one value."""


class Shuffled(PrivacyCurve):
    """The privacy of n shuffled reports: see `shuffled`.

    Attributes
    ----------
    n : int
        At least how many users follow the protocol.
    of_one_day : bool
        They are the reports of one day, and users make those of other days of the same permanent
        reports. The bounds hold if only those of one day are shown to anybody.
    """

    def __init__(
        self, laws: PairLaws, attacks: Iterable[PairLaw], n: int, of_one_day: bool = False
    ) -> None:
        self.n = whole(n, "n", 1, LARGEST_N, what="a number of users")
        self.of_one_day = of_one_day
        self._laws = laws
        self._attacks = tuple(map(require_pair_law, attacks))
        # What is known exactly: reports of one bit, in both orders of neighbours, and few users
        rows = laws.rows if laws else None
        self._bits = orders_of_bits(rows, self.n) if rows and len(rows) == 2 else ()
        self._listed: ListedDatasets | None = None
        if rows and not self._bits and ListedDatasets.few_enough(rows, self.n):
            self._listed = ListedDatasets(rows, self.n)
        self._found: dict[Fraction, arb] = {}

    @property
    def largest_ratio(self) -> Fraction:
        """The largest likelihood ratio of a single report."""
        return self._laws.largest_ratio

    @property
    def local_epsilon(self) -> float:
        """The epsilon of each report towards whoever sees it with its sender; rounded up."""
        return log_above(self.largest_ratio)

    @property
    def largest_epsilon(self) -> float:
        return self.local_epsilon

    def require(self, reports: int) -> None:
        """Raise TooFewReports unless there are at least n reports."""
        if whole(reports, "reports", what="a number of reports") < self.n:
            raise TooFewReports(
                f"{reports} reports are fewer than the {self.n} that were promised: so few hide"
                f" each other less; each of them alone keeps epsilon {self.local_epsilon:.6g}"
            )

    @precision()
    def epsilon(self, delta: float | Rational) -> float:
        # Where delta is known exactly the cheap curve is the bound itself, nearly always.
        if self._bits or self._listed:
            target = exact_delta(delta)
            found = self._crossing(self.nearly, _FINE, target)[1]
            for _ in range(_STEPS):
                if found >= self.local_epsilon:
                    return self.local_epsilon
                ratio = exp_below(Fraction(found))
                bound = self.above(ratio, _FINE)
                if bound.upper() <= ball(target).lower():
                    return found
                if not bound <= _GIVEN_UP * self.nearly(ratio, _FINE):
                    return self._blanket.epsilon(delta)  # the search would be given up again
                found *= 1 + _STEP
        return super().epsilon(delta)

    @precision()
    def above(self, ratio: Fraction, smoothing: float) -> arb:
        if not self._laws or ratio >= self.largest_ratio:
            return arb(0)
        if self._listed:
            return ball(self._listed.delta(ratio))
        if self._bits:
            # Asked again for another smoothing, of which bits have none
            if ratio not in self._found:
                lows, highs = zip(*(bits.delta(ratio) for bits in self._bits), strict=True)
                high = max_of(highs)
                if not high <= _GIVEN_UP * max_of(lows):
                    high = high.min(self._by_blanket(ratio, smoothing))
                self._found = {ratio: high}
            return self._found[ratio]
        return self._by_blanket(ratio, smoothing)

    @cached_property
    def _blanket(self) -> Shuffled:
        """The same, with what the blanket alone bounds."""
        laws = PairLaws([self._laws[k] for k in range(len(self._laws))])
        return Shuffled(laws, (), self.n, self.of_one_day)

    def _by_blanket(self, ratio: Fraction, smoothing: float) -> arb:
        """Return at least delta, by the blanket alone."""
        # Branch and bound over the pairs: groups are split until a law above all of a group is not
        # much worse than the worst single law found.
        # By the central limit theorem the law of the largest variance is the worst, or nearly: it
        # gives the bound that prunes the others.
        order = self._by_variance
        best = self._delta(order[:1], ratio, smoothing)
        groups, accepted = [order[1:]] if len(order) > 1 else [], best
        for _ in range(_BRANCHES):
            if not groups:
                break
            group = groups.pop()
            # Invariant: every law is in a group of the list, or below `accepted`.
            delta = self._delta(group, ratio, smoothing)
            if len(group) == 1:
                best = best.max(delta)
            if len(group) == 1 or delta <= best * _NEARLY:
                accepted = accepted.max(delta)
            else:
                groups += [group[len(group) // 2 :], group[: len(group) // 2]]
        for group in groups:
            accepted = accepted.max(self._delta(group, ratio, smoothing))
        return accepted.min(self._alone(ratio))

    def _alone(self, ratio: Fraction) -> arb:
        """Return at least the delta of a single report, plus twice what roundings amount to."""
        # Many tell no more than one, nor does a rare one among them.
        # Post-processing: a shuffled collection is a function of the user's report and others' that
        # do not depend on it.
        times, most, longest = float(ratio), 0.0, 0
        for weights, first, second in self._laws.floats:
            most = max(most, float(weights @ np.maximum(first - times * second, 0)))
            longest = max(longest, len(weights))
        roundings = self._laws.terms + longest + 64
        return arb(most) + roundings * arb(2) ** -50 * arb(1 + times)

    @precision()
    def nearly(self, ratio: Fraction, smoothing: float) -> arb:
        if self._listed:
            return self.above(ratio, smoothing)
        if self._bits:
            # A little more than the bound will be
            raised = 1 + ball(_MORE * self._bits[0].nearly)
            return max_of([bits.delta_at_ends(ratio) for bits in self._bits]) * raised
        return self._delta(self._by_variance[:1], ratio, smoothing) if self._laws else arb(0)

    @precision()
    def below(self, ratio: Fraction, smoothing: float) -> arb:
        if self._listed:
            return ball(self._listed.delta(ratio))
        if self._bits:
            return max_of([bits.delta_at_ends(ratio) for bits in self._bits])
        best = arb(0)
        for law in self._attacks:
            best = best.max(self._mean(_difference(law, ratio)).lower(smoothing).lower() / self.n)
        return best

    @cached_property
    def profile(self) -> PrivacyLoss:
        """The privacy loss as a single finite distribution, to be composed with others.

        It is the least one whose delta is at least the bounds at some fifty epsilons; from where
        delta is 1e-40 on it is infinite. Nothing is known of it from below.
        """
        if self._bits and not self._bits[0].wide:
            # The search takes a second for each of dozens of epsilons: the blanket's instead
            return self._blanket.profile
        # So does that of wide laws, where delta is tiny
        rest = self._blanket if self._bits else self
        bulk = self.epsilon(_BULK_OF_BITS if self._bits else _BULK)
        end = max(bulk, rest.epsilon(_END))
        grid = {bulk * k / _POINTS: self for k in range(_POINTS)}
        grid |= {bulk + (end - bulk) * k / _TAIL: rest for k in range(1, _TAIL + 1)}
        grid[bulk] = self
        points = []
        for epsilon, curve in sorted(grid.items()):
            ratio = exp_below(Fraction(epsilon))
            points.append((ratio, Fraction(min(1.0, float_above(curve.above(ratio, 0.02))))))
        if end >= self.local_epsilon:
            points.append((self.largest_ratio, Fraction(0)))
        return PrivacyLoss.from_profile(points)

    def _delta(self, group: Sequence[int], ratio: Fraction, smoothing: float) -> arb:
        """Return at least the largest delta of some of the laws."""
        if len(group) == 1:
            law = _difference(self._laws[group[0]], ratio)
        else:
            # The values of W = first - ratio second, whose mean is 1 - ratio
            times, most = float(ratio), self._laws.largest
            law = dominating(
                [_difference_in_floats(self._laws.floats[k], times) for k in group],
                (-ratio * most, most),
                (1 - ratio + ratio * most, Fraction(0)),
                1 + times,
                self._laws.terms,
            )
        return self._mean(law).upper(smoothing) / self.n

    def _mean(self, law: Iterable[tuple[Fraction, Fraction]]) -> Mean:
        """Return the mean of the positive part of a sum of n variables with this law."""
        with precision(_BITS):
            # W = 0 is what is missing to 1, and needs no term of its own.
            pairs = [(ball(weight), ball(value)) for weight, value in law if value]
            weights, values = tuple(w for w, _ in pairs), tuple(x for _, x in pairs)
            return Mean([Summands(weights, values, self.n, True)], arb(0), Function)

    @cached_property
    def _by_variance(self) -> list[int]:
        """The numbers of the laws, that of the largest variance of W first."""
        scores = [float(w @ (u - v) ** 2) for w, u, v in self._laws.floats]
        return sorted(range(len(scores)), key=lambda k: -scores[k])

    def __str__(self) -> str:
        lines = [
            f"{self.n} shuffled reports; each alone keeps epsilon {brief(self.local_epsilon, 6)}",
            "  delta   epsilon of the collection",
        ]
        for power in (6, 8, 10):
            delta = Fraction(1, 10**power)
            lines.append(f"  1e-{power:<2}   {self.epsilon(delta):.4g}")
        return "\n".join([*lines, f"{TRUST}. If it does not, what holds is each report's epsilon."])

    def __repr__(self) -> str:
        return f"<Shuffled: {self.n} reports of epsilon {self.local_epsilon:.6g}>"


def _difference(law: PairLaw, ratio: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Return the law of W = first - ratio second."""
    return [(weight, first - ratio * second) for weight, first, second in law]


def _difference_in_floats(law: Floats, ratio: float) -> tuple[Floats, Floats, float]:
    """Return the same in floats, with W = 0 for reports that no blanket hides."""
    weights, first, second = law
    rest = max(0.0, 1 - float(weights.sum()))
    return np.append(weights, rest), np.append(first - ratio * second, 0.0), 0.0


def shuffled(source: Table | StatesLikelihoods, n: int) -> Shuffled:
    """Return the central privacy of n shuffled reports, with proved bounds on both sides.

    Upper bounds are those of the privacy blanket (Balle, Bell, Gascon and Nissim, CRYPTO 2019),
    without the concentration inequalities: with probability gamma another user's report is drawn
    from the blanket, the least probabilities of all reports, whatever the user's value; only these
    hide a report. It is the best decomposition of its kind (Su, Cheng and Wang, arXiv 2504.07414).
    For neighbours x and x',

        delta(epsilon) <= 1/n E (W_1 + ... + W_n)_+,   W = (R_x(y) - e^epsilon R_x'(y)) / omega(y)

    for independent y that have the probability omega(y) under the blanket, and W = 0 otherwise.
    Lower bounds on the worst dataset are exact for one dataset, in which all other users hold the
    same value: the same formula, with omega the law of their reports. The most powerful test
    attains them.

    Of tables with two outputs, and of `frequency.GRR` of two items, delta is known exactly, up to
    bounds that nearly meet (`mechdesign.accounting.shuffled_bits`); of tables with few outputs and
    values and at most nine users, too (`mechdesign.accounting.listed_datasets`).

    The promise is for at least n users who follow the protocol, whatever the others do, who are not
    counted.

    Parameters
    ----------
    source : Table or protocol
        A table with ``neighbours="all"``, whose columns are users' values; or a protocol with
        the methods ``pair_laws`` and ``attack_laws``: those of `frequency` and `rangeq`. Of a
        `frequency.longitudinal.Memoised`, it is the reports of a single day that are shuffled.
    n : int
        The number of users, 1 to 10^12.

    Returns
    -------
    Shuffled

    Raises
    ------
    UnboundedRatio
        A report is possible for one value and impossible for another.
    UnstatedLikelihoods
        A protocol that does not state how likely its reports are.
    ValueError
        Another number of users, or a table whose neighbours are not all inputs.

    Examples
    --------
    >>> from mechdesign import Mechanism, Privacy
    >>> privacy = Privacy(alpha="1/3", neighbours="all")
    >>> response = Mechanism([["3/4", "1/4"], ["1/4", "3/4"]], privacy)
    >>> many = shuffled(response, 10_000)
    >>> f"{many.local_epsilon:.4f} {many.epsilon('1e-6'):.4f} {many.epsilon_at_least('1e-6'):.4f}"
    '1.0986 0.0399 0.0399'
    """
    if isinstance(source, Table):
        if source.privacy.neighbours != "all":
            raise ValueError(
                "reports are private locally: the table needs a Privacy with neighbours='all',"
                f" got {source.privacy!r:.80}"
            )
        weights = source.sampler.weights
        return Shuffled(TableLaws(weights), attack_laws_of(weights), n)
    if not (hasattr(source, "pair_laws") and hasattr(source, "attack_laws")):
        raise UnstatedLikelihoods(type(source).__name__)
    laws = source.pair_laws()
    laws = laws if isinstance(laws, PairLaws) else PairLaws(laws)
    return Shuffled(laws, source.attack_laws(), n, getattr(source, "keeps_reports", False))


# ------------------------------------------------------------------------------------------------
# Reports on many days, made of permanent reports that users keep: what all of them tell.


LARGEST_PERMANENT = 10**6  #: The most permanent reports of one user.


@dataclass(frozen=True)
class DailyReports:
    """The cost, for a `Ledger`, of reports of any number of days made of a few permanent ones.

    A device draws a permanent report for each value that it has, and again whenever it begins anew,
    as it does after its state was lost. Two users whose values change on the same days, and whose
    devices begin anew on the same days, are told apart by as many permanent reports as there are,
    at most, each of which costs ``total``. That a value has changed, and when, is not bounded.

    Parameters
    ----------
    total : float, Fraction, int, str or Decimal
        What a permanent report, and with it all reports made of it, tells about a value at most:
        above 0.
    values : int, default 1
        How many values a user may have from one start to the next, at least 1. What keeps them so
        few is the device.
    starts : int, default 1
        How often a user's device may begin, at least 1. What keeps them so few is whoever counts
        them: see ``docs/longitudinal.md``.

    Raises
    ------
    ValueError
        A number out of its range, or more than 10^6 permanent reports.

    Examples
    --------
    >>> DailyReports("1/2", values=3, starts=2).epsilon
    Fraction(3, 1)
    """

    total: float | Rational
    values: int = 1
    starts: int = 1

    def __post_init__(self) -> None:
        total = exact_epsilon(self.total)
        if total == 0:
            raise ValueError("total must be above 0: a permanent report tells something")
        values, starts = (
            whole(getattr(self, name), name, 1, LARGEST_PERMANENT) for name in ("values", "starts")
        )
        whole(values * starts, "values times starts", 1, LARGEST_PERMANENT)
        set_fields(self, total=total, values=values, starts=starts)

    @property
    def permanent(self) -> int:
        """The largest number of permanent reports that a user draws."""
        return self.values * self.starts

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the reports of all days together about a user's values, exact."""
        return Fraction(exact_epsilon(self.total) * self.permanent)


# ------------------------------------------------------------------------------------------------
# thinned(...): the mechanism that counts a secret random sample of the respondents.


def thinned(table: Table, rate: Rational) -> Table:
    """Return the table of a count of a sample: each respondent is in it with probability ``rate``.

    Who is in the sample is drawn for every respondent independently, and kept secret. Then the
    count of a sample of j respondents has the binomial law B(j, rate), so that sampling and
    releasing together are one more exact table,

        P'[i, j] = sum over m of C(j, m) rate^m (1 - rate)^(j - m) P[i, m],

    and what it keeps is read off its entries. It is at least what amplification by sampling
    promises, 1 - rate + rate e^epsilon in the place of e^epsilon (Balle, Barthe and Gaboardi,
    NeurIPS 2018, theorem 8), for counts that differ by one: a respondent who is there or not, or
    whose answer counts or not.

    Parameters
    ----------
    table : Table
        A mechanism for counts from 0 of which those that differ by one, or by at most k, are
        neighbours.
    rate : Fraction, int, str or Decimal
        Above 0 and at most 1. Floats are refused (`InexactNumber`).

    Returns
    -------
    Table
        Of the count of all. It claims exactly what it keeps; divided by ``rate``, its outputs,
        which are of the sample, estimate that count.

    Raises
    ------
    UnboundedRatio
        An output is possible for one count and impossible for a neighbour, also after sampling.
    ValueError
        Another rate, or a table whose inputs are no counts of respondents.

    Examples
    --------
    >>> from mechdesign import named
    >>> sampled = thinned(named.geometric(8, alpha="1/2"), "1/10")
    >>> sampled.privacy.alpha, sampled.audit().holds
    (Fraction(10, 11), True)
    """
    rate = exact(rate, "rate")
    if not 0 < rate <= 1:
        raise ValueError(f"a rate must be above 0 and at most 1, got {brief(rate)}")
    neighbours = table.privacy.neighbours
    if neighbours == "all" or isinstance(neighbours, (tuple, Metric)):
        raise ValueError(
            "only a count of respondents can be one of a sample of them: neighbours must be counts"
            f" that differ by one or a few, got {table.privacy!r:.80}"
        )
    weights = (fmpz_mat(table.weights) * fmpz_mat(_samples(table.inputs, rate))).tolist()
    made = partial(
        Table.from_weights,
        [[int(weight) for weight in row] for row in weights],
        table.denominator * rate.denominator ** (table.inputs - 1),
        outputs=table.output_values,
        inputs=table.input_values,
    )
    audit = made(table.privacy).audit()
    if isinstance(audit.ratio, float):
        raise UnboundedRatio(
            f"output {audit.output} is possible for one of the counts {audit.inputs} and impossible"
            " for the other, whoever is in the sample"
        )
    return made(Privacy(alpha=1 / audit.ratio, neighbours=neighbours))


def _samples(inputs: int, rate: Fraction) -> list[list[int]]:
    """Return the probability of each sample size (rows) for each number of respondents (columns).

    In units of the denominator of the rate, to the power of the largest count.
    """
    kept, whole = rate.numerator, rate.denominator
    # One respondent more: Pascal's rule with probabilities. Integers in one unit, and the divisions
    # are exact, as column j is a multiple of whole^(inputs - 1 - j).
    columns = [[whole ** (inputs - 1), *[0] * (inputs - 1)]]
    for _ in range(inputs - 1):
        last = columns[-1]
        columns.append(
            [
                ((whole - kept) * out + kept * joined) // whole
                for out, joined in zip(last, [0, *last], strict=False)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]
