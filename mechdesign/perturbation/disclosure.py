"""What a perturbation table reveals about one person, exactly.

The key of a cell is uniformly distributed as long as one of its records has a key that the attacker
does not know. A cell of nobody has no records, and the sum of no keys is 0: cell_key_perturbation
and `perturb` publish it as the table says for key 0, always the same, and cellKey as 0, unless a
table builder draws a key for it. One cell is then a mechanism; the count with a person and the
count without differ by one. delta(epsilon) is the hockey-stick divergence of the two laws: with
e^epsilon = x it is ``max over sets S of P(S) - x Q(S)``, a convex, piecewise linear function of x
with rational vertices.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from mechdesign.accounting.pair_law import exp_below, log_above
from mechdesign.approximate_privacy import ApproximatePrivacy
from mechdesign.base import (
    Rational,
    aligned,
    brief,
    exact,
    filled,
    percent,
    rounded_up,
    shown,
    to_text,
    whole,
)
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.values import Bands, Counts, Values
from mechdesign.perturbation.table import PerturbationTable
from mechdesign.privacy import Neighbours, Privacy, exact_epsilon

SUPPRESSED = -1  #: What stands for outputs below the threshold, which are not published.

#: The key of a cell of nobody: 0, as the tools have it; or drawn, as those of others.
EmptyKey: TypeAlias = Literal["zero", "drawn"]

#: The epsilons and deltas that texts list.
EPSILONS, DELTAS = ("1/2", "1", "2", "4"), ("1/100", "1/1000", "1/10000", "1/1000000")

_SMALL = 3  # the true counts that texts ask after: 0, 1 and 2

_LISTED = 6  # the most outputs, and the most counts, that texts list


def require_empty_key(given: str) -> None:
    """Raise ValueError for what is no `EmptyKey`."""
    if given not in ("zero", "drawn"):
        raise ValueError(f"the key of a cell of nobody is zero or drawn, got {shown(given)}")


class Piece(NamedTuple):
    """A piece of a curve: from ``start`` on, delta is ``height - slope * ratio``.

    Attributes
    ----------
    start : Fraction
        A ratio e^epsilon, at least 1.
    height, slope : Fraction
        At least 0.
    """

    start: Fraction
    height: Fraction
    slope: Fraction


@dataclass(frozen=True)
class DeltaCurve:
    """delta as a function of the ratio e^epsilon, exact: the largest one of some pairs of laws.

    Attributes
    ----------
    pieces : tuple of Piece
        In the order of their starts, the first of which is 1.
    """

    pieces: tuple[Piece, ...]

    @classmethod
    def of_pairs(cls, pairs: Iterable[Iterable[tuple[int, int]]], total: int) -> DeltaCurve:
        """Return the curve of the worst of some pairs of laws, in both directions.

        Parameters
        ----------
        pairs : iterable of iterable of (int, int)
            For each pair of neighbours the weights of every output under the one and the other.
        total : int
            What the weights of a law add up to, at least 1.

        Returns
        -------
        DeltaCurve
        """
        lines = {(0, 0)}
        for pair in pairs:
            weights = [(p, q) for p, q in pair if p or q]
            for one in (weights, [(q, p) for p, q in weights]):
                # The best set for x holds the outputs whose ratio is above x (Neyman and Pearson).
                above = [(p, q) for p, q in one if p > q]
                above.sort(key=lambda w: Fraction(w[1], w[0]))
                height = slope = 0
                for p, q in above:
                    height, slope = height + p, slope + q
                    lines.add((slope, height))
        return cls(tuple(_envelope(lines, total)))

    def at_ratio(self, ratio: Fraction) -> Fraction:
        """Return delta at e^epsilon = ``ratio``, at least 1."""
        place = bisect_right(self.pieces, ratio, key=lambda piece: piece.start) - 1
        _, height, slope = self.pieces[place]
        return height - slope * ratio

    def delta(self, epsilon: float | Rational) -> Fraction:
        """Return delta at an epsilon.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            At least 0.

        Returns
        -------
        Fraction
            Of 0 to 1. It is exact at a rational number of at most e^epsilon that differs from it by
            less than 2^-120 of it, and so never too small.

        Raises
        ------
        ValueError
            An epsilon that is not finite or below 0.
        """
        return self.at_ratio(exp_below(exact_epsilon(epsilon)))

    def least_ratio(self, delta: Rational) -> Fraction | None:
        """Return the least e^epsilon that holds with a delta; None where none does.

        Parameters
        ----------
        delta : Fraction, int, str or Decimal
            0 to 1.

        Returns
        -------
        Fraction or None

        Raises
        ------
        ValueError
            Another number.
        """
        allowed = exact(delta, "delta")
        if not 0 <= allowed <= 1:
            raise ValueError(f"delta is 0 to 1, got {brief(allowed)}")
        for piece, start in zip(
            self.pieces, [p.start for p in self.pieces[1:]] + [None], strict=True
        ):
            # delta falls along the curve: the first piece that ends below the allowed one
            if start is not None and piece.height - piece.slope * start > allowed:
                continue
            if piece.height - piece.slope * piece.start <= allowed:
                return piece.start
            return (piece.height - allowed) / piece.slope if piece.slope else None
        return None

    def epsilon(self, delta: Rational) -> float:
        """Return the least epsilon that holds with a delta, rounded up; ``math.inf`` without one.

        Parameters
        ----------
        delta : Fraction, int, str or Decimal
            0 to 1.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            Another number.
        """
        ratio = self.least_ratio(delta)
        return math.inf if ratio is None else log_above(ratio)

    @property
    def unbounded(self) -> Fraction:
        """The delta that no epsilon avoids: the chance of an output that is possible once only."""
        return self.pieces[-1].height


def _envelope(lines: Iterable[tuple[int, int]], total: int) -> Iterable[Piece]:
    """Yield the pieces of the largest of the lines (slope, height), from x = 1 on."""
    kept: list[tuple[int, int]] = []
    starts: list[Fraction] = []
    # From the steepest on: each line is below the one before up to where they cross.
    for slope, height in sorted(lines, reverse=True):
        if kept and kept[-1][0] == slope:
            continue  # as steep, and not as high
        start = Fraction(1)
        while kept:
            # height - slope x >= height' - slope' x from this x on
            start = Fraction(kept[-1][1] - height, kept[-1][0] - slope)
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
        kept.append((slope, height))
        starts.append(max(start, Fraction(1)) if len(kept) > 1 else Fraction(1))
    for start, (slope, height) in zip(starts, kept, strict=True):
        yield Piece(start, Fraction(height, total), Fraction(slope, total))


class OneSided(NamedTuple):
    """Outputs that are possible for one of two neighbouring counts only.

    Attributes
    ----------
    truth, other : int
        The count for which they are possible, and its neighbour.
    outputs : tuple of int
        The outputs, in order; `SUPPRESSED` for what is below the threshold.
    chance : Fraction
        The probability of them all.
    """

    truth: int
    other: int
    outputs: tuple[int, ...]
    chance: Fraction


@dataclass(frozen=True)
class Disclosure:
    """What a perturbation table reveals about one person in one cell; ``str()`` is a summary.

    Parameters
    ----------
    table : PerturbationTable
        The table.
    threshold : int, default 0
        Outputs below it are not published, only that they are; cell_key_perturbation applies 10
        unless told otherwise.
    protected : int, default 0
        The least count that is compared with the next one: 1 where it may be seen that a count is
        0, at most the largest count of the table.
    empty_key : str, default "zero"
        The key of a cell of nobody: "zero", as cell_key_perturbation and `perturb` have it, so that
        its noise is always the same (cellKey never changes a 0: the same where the table does not
        for key 0); or "drawn", of table builders that draw one.

    Raises
    ------
    ValueError
        A number out of range.

    Examples
    --------
    >>> table = PerturbationTable(4, [[(4, 0)], [(1, -1), (2, 0), (1, 1)]])
    >>> found = Disclosure(table)
    >>> found.curve.delta(0), found.curve.epsilon("1/100")
    (Fraction(3, 4), inf)
    """

    table: PerturbationTable
    threshold: int = 0
    protected: int = 0
    empty_key: EmptyKey = "zero"

    def __post_init__(self) -> None:
        whole(self.threshold, "the threshold")
        require_empty_key(self.empty_key)
        whole(self.protected, "the least protected count", 0, self.table.largest)

    def law(self, count: int) -> dict[int, int]:
        """Return how many of all keys make each noise of a count, one of nobody included."""
        return self.table.law(count) if count or self.empty_key == "drawn" else self._of_nobody

    @property
    def _of_nobody(self) -> dict[int, int]:
        """The noise of key 0 at count 0, as if all keys had it."""
        ((_, noise), *_) = self.table.rows[0]
        return {noise: self.table.keys}

    def bias(self, count: int) -> Fraction:
        """Return the expected noise of a count, exact."""
        return self._moment(count, 1)

    def mean_square(self, count: int) -> Fraction:
        """Return the expected square of the noise of a count, exact."""
        return self._moment(count, 2)

    def _moment(self, count: int, power: int) -> Fraction:
        law = self.law(count)
        return Fraction(sum(v**power * keys for v, keys in law.items()), self.table.keys)

    def outputs(self, count: int) -> dict[int, int]:
        """Return how many keys publish each output for a count, in rising order."""
        found: dict[int, int] = {}
        for noise, number in self.law(count).items():
            output = count + noise
            output = output if output >= self.threshold else SUPPRESSED
            found[output] = found.get(output, 0) + number
        return found

    @property
    def counts(self) -> range:
        """The counts c that stand, each with c + 1, for all neighbouring counts there are."""
        # Beyond the largest count rows repeat, and pairs do once nothing is below the threshold
        above = self.threshold + self.table.largest_noise
        return range(self.protected, max(self.table.largest + 1, above + self.table.period))

    def pair(self, count: int) -> dict[int, tuple[int, int]]:
        """Return the numbers of keys of each output for a count and for the next one."""
        one, other = self.outputs(count), self.outputs(count + 1)
        return {o: (one.get(o, 0), other.get(o, 0)) for o in sorted({*one, *other})}

    def curve_of(self, count: int) -> DeltaCurve:
        """Return the curve of a count and the next one."""
        return DeltaCurve.of_pairs([self.pair(count).values()], self.table.keys)

    @cached_property
    def curve(self) -> DeltaCurve:
        """The curve of the worst two neighbouring counts at each epsilon."""
        kinds = {tuple(self.pair(count).values()) for count in self.counts}
        return DeltaCurve.of_pairs(kinds, self.table.keys)

    @cached_property
    def one_sided(self) -> tuple[OneSided, ...]:
        """The outputs that show for certain which of two neighbouring counts is true."""
        found = []
        for count in self.counts:
            pair = self.pair(count)
            for side, one, other in ((0, count, count + 1), (1, count + 1, count)):
                outputs = tuple(o for o, weights in pair.items() if not weights[1 - side])
                if outputs:
                    keys = sum(pair[o][side] for o in outputs)
                    chance = Fraction(keys, self.table.keys)
                    found.append(OneSided(one, other, outputs, chance))
        return tuple(found)

    def mechanism(self, largest: int, privacy: Privacy) -> Mechanism:
        """Return one cell as a mechanism for counts up to a largest one.

        Parameters
        ----------
        largest : int
            The largest count, at least ``protected``, and 2,000 at most.
        privacy : Privacy
            Whose epsilon is claimed, between counts that differ by one.

        Returns
        -------
        Mechanism
            What is below the threshold is one output. The claim has the least delta that holds from
            the count ``protected`` on.

        Raises
        ------
        ValueError
            A number out of range.
        """
        n = whole(largest, "the largest count", self.protected, 2000)
        listed = range(n + 1)
        last = n + self.table.largest_noise
        laws = [self.outputs(count) for count in listed]
        shown_outputs = range(self.threshold, last + 1)
        below = [SUPPRESSED] * bool(self.threshold)
        weights = [[law.get(o, 0) for law in laws] for o in (*below, *shown_outputs)]
        outputs: Values = Counts(0, last)
        if self.threshold:
            outputs = Bands([(0, self.threshold - 1), *((o, o) for o in shown_outputs)])
        pairs = [(c, c + 1) for c in range(self.protected, n)]
        ratio = 1 / privacy.alpha
        delta = max((self.curve_of(c).at_ratio(ratio) for c, _ in pairs), default=Fraction(0))
        neighbours: Neighbours = tuple(pairs) if self.protected and pairs else "adjacent"
        claim = ApproximatePrivacy(alpha=privacy.alpha, delta=delta, neighbours=neighbours)
        return Mechanism.from_weights(weights, self.table.keys, claim, outputs=outputs)

    def odds(self, count: int, output: int) -> Fraction | float:
        """Return by what an output multiplies the odds that one more person is in the cell.

        Parameters
        ----------
        count : int
            The count without the person, known to the attacker; at least 0.
        output : int
            What is published; `SUPPRESSED` for what is below the threshold.

        Returns
        -------
        Fraction or float
            Exact; ``math.inf`` where the output shows that the person is in the cell.

        Raises
        ------
        ValueError
            An output that is possible for neither count.
        """
        without, within = self.pair(count).get(output, (0, 0))
        if not (without or within):
            raise ValueError(f"{output} is published neither for {count} nor for {count + 1}")
        return Fraction(within, without) if without else math.inf

    def truth(self, output: int, prior: Sequence[Rational] | None = None) -> dict[int, Fraction]:
        """Return the probability of each true count, given what is published.

        Parameters
        ----------
        output : int
            What is published; `SUPPRESSED` for what is below the threshold.
        prior : sequence of Fraction, int, str or Decimal, optional
            Weights of the counts 0, 1, 2, ..., at least 0; larger ones have weight 0. All counts
            are alike unless it is given.

        Returns
        -------
        dict of int to Fraction
            The counts that are possible, in order; empty if none is.

        Raises
        ------
        ValueError
            A weight below 0.
        """
        noise = self.table.largest_noise
        low, high = max(0, output - noise), output + noise
        if output == SUPPRESSED:
            low, high = 0, self.threshold + noise
        weights = None if prior is None else [exact(weight, "a weight") for weight in prior]
        if weights is not None and min(weights, default=0) < 0:
            raise ValueError("the weights of a prior are at least 0")
        high = high if weights is None else min(high, len(weights) - 1)
        found = {
            count: keys * (Fraction(1) if weights is None else weights[count])
            for count in range(low, high + 1)
            if (keys := self.outputs(count).get(output, 0))
        }
        total = sum(found.values(), Fraction(0))
        return {count: share / total for count, share in found.items() if share}

    def differing(self, count: int) -> Fraction:
        """Return the chance that two tables that differ in one person show different numbers.

        A set of records has the same noise in every table. So different numbers prove that the sets
        differ; the person's key is unknown, and makes the noise of the two sets independent.

        Parameters
        ----------
        count : int
            The count of the smaller set, at least 1; the other one holds one person more.

        Returns
        -------
        Fraction
        """
        alike = sum(one * other for one, other in self.pair(count).values())
        return 1 - Fraction(alike, self.table.keys**2)

    @cached_property
    def differing_extent(self) -> tuple[Fraction, Fraction]:
        """The least and the largest of `differing` over all counts of at least 1."""
        chances = [self.differing(count) for count in self.counts if count]
        return min(chances), max(chances)

    def json(self) -> dict[str, Any]:
        """Return the summary as what JSON holds: fractions as texts, such as "3/256"."""
        curve = self.curve
        return {
            "keys": self.table.keys,
            "largest_count": self.table.largest,
            "period": self.table.period,
            "largest_noise": self.table.largest_noise,
            "threshold": self.threshold,
            "protected": self.protected,
            "empty_key": self.empty_key,
            "curve": [[to_text(value) for value in piece] for piece in curve.pieces],
            "delta": {text: to_text(curve.delta(text)) for text in EPSILONS},
            "epsilon": {
                text: None if math.isinf(least := curve.epsilon(text)) else least for text in DELTAS
            },
            "one_sided": [
                {
                    **each._asdict(),
                    "outputs": list(each.outputs),
                    "chance": to_text(each.chance),
                }
                for each in self.one_sided
            ],
            "bias": [to_text(bias) for bias, _ in self._errors],
            "variance": [to_text(variance) for _, variance in self._errors],
            "small_counts": {
                str(output): {str(count): to_text(chance) for count, chance in truth.items()}
                for output, truth in self._small()
            },
            "differing": [to_text(chance) for chance in self.differing_extent],
        }

    @cached_property
    def _errors(self) -> list[tuple[Fraction, Fraction]]:
        """The bias and the variance of each count with a row."""
        biases = ((self.bias(c), self.mean_square(c)) for c in range(self.table.largest + 1))
        return [(bias, square - bias**2) for bias, square in biases]

    def _small(self) -> list[tuple[int, dict[int, Fraction]]]:
        """Return the outputs that a count of 0, 1 or 2 may lead to, with what is then true."""
        outputs = sorted({output for count in range(_SMALL) for output in self.outputs(count)})
        return [(output, self.truth(output)) for output in outputs]

    def __str__(self) -> str:
        table, curve = self.table, self.curve
        biases, variances = (set(each) for each in zip(*self._errors, strict=True))
        lines = [repr(table)[1:-1]]
        if self.threshold:
            lines.append(f"outputs below {self.threshold} are not published")
        if self.empty_key == "drawn":
            lines.append("a cell of nobody has a key that is drawn")
        elif len(table.law(0)) > 1:
            (noise,) = self._of_nobody
            lines.append(f"a cell of nobody has key 0: {noise} is always published for it")
        lines += [f"bias      {_extent(biases)}", f"variance  {_extent(variances)}", ""]
        least = f" of {self.protected} or more" if self.protected else ""
        lines.append(f"one person more or less in a cell{least}, the worst counts:")
        rows: list[tuple[str, ...]] = [("epsilon", "delta")]
        rows += [(text, rounded_up(curve.delta(text), 4)) for text in EPSILONS]
        rows += [("least epsilon", "for delta")]
        for text in DELTAS:
            epsilon = curve.epsilon(text)
            shown = "infinite" if math.isinf(epsilon) else f"{epsilon:.4f}"
            rows.append((shown, brief(float(Fraction(text)))))
        lines += aligned(rows)
        if self.one_sided:
            lines.append(
                f"no epsilon covers {percent(curve.unbounded, 2, up=True)} of the cells of some"
                f" counts: outputs that are possible for one of two neighbouring counts only"
            )
            worst = sorted(self.one_sided, key=lambda each: (-each.chance, each.truth))
            for each in worst[:_LISTED]:
                named = ", ".join(map(self.label, each.outputs[:_LISTED]))
                lines.append(
                    f"  {named}: for {each.truth}, never for {each.other};"
                    f" {percent(each.chance, 2)} of the time"
                )
            if worst[_LISTED:]:
                lines.append(f"  and for {len(worst) - _LISTED} other pairs of counts")
        lines += ["", "what is true where a count of 0, 1 or 2 may be, all counts alike before:"]
        rows = [("published", "truly 0", "truly 1", "truly 2")]
        for output, truth in self._small():
            chances = [percent(truth.get(count, Fraction(0)), 1) for count in range(_SMALL)]
            rows.append((self.label(output), *chances))
        lines += aligned(rows)
        lines += [
            "",
            "two tables that differ in one person show different numbers, which proves that, with a"
            f" chance of {self._differing}",
        ]
        return "\n".join(lines)

    @property
    def _differing(self) -> str:
        least, most = (percent(chance, 1) for chance in self.differing_extent)
        return least if least == most else f"{least} to {most}"

    def label(self, output: int) -> str:
        """Return an output as it is printed."""
        return f"below {self.threshold}" if output == SUPPRESSED else str(output)

    @property
    def words(self) -> str:
        """The same in words, for somebody who has to decide."""
        curve, table = self.curve, self.table
        one = curve.delta(1)
        parts = [
            "Suppose that somebody knows everybody in a cell but one person, and wants to know"
            " whether that person is in it. The table adds a number that depends on the secret keys"
            f" of all records of the cell: at most {table.largest_noise} either way.",
        ]
        if curve.unbounded:
            worst = max(self.one_sided, key=lambda each: each.chance)
            parts.append(
                f"For some counts this does not hide the person: of cells that count {worst.truth},"
                f" {percent(worst.chance, 1)} publish a number that a cell of {worst.other} never"
                f" does ({', '.join(map(self.label, worst.outputs[:_LISTED]))}). Whoever sees it"
                " knows for certain. No epsilon can be promised for these."
            )
        parts.append(
            "Leaving aside a part of the cells, the odds that the person is in the cell change by a"
            f" factor of at most 2.72 (epsilon 1). That part is at most {percent(one, 2, up=True)}."
        )
        parts.append(
            "Two tables that differ in that person alone are another matter. A set of records has"
            " the same noise everywhere, so that different numbers prove that the sets differ: this"
            f" happens {self._differing} of the time, by the count. Tables on areas or ages that"
            " differ by a few people must not both be published."
        )
        return "\n\n".join(filled(part, 100) for part in parts)


def _extent(values: Iterable[Fraction]) -> str:
    low, high = min(values := list(values)), max(values)
    return brief(low) if low == high else f"{brief(low)} to {brief(high)}"
