"""Explanation: what a mechanism does to a count, in plain words and exact numbers.

Four questions are answered: how far off a published value is, for which true counts it is worst,
what a published value says about the truth, and what one person risks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from textwrap import indent
from typing import Any

from mechdesign.approximate_privacy import Promise
from mechdesign.base import Integers, Rational, brief, filled, percent, rounded_up, to_text
from mechdesign.losses import binomial, prior_over
from mechdesign.mechanism.closed_form import Law
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.mechanism.table import DeltaAudit, Table
from mechdesign.mechanism.values import (
    Bands,
    CountPairs,
    Counts,
    Unbounded,
    Values,
    distances,
    errors,
)
from mechdesign.privacy import Privacy

#: The questions that `Explanation.answers` answers, in order.
QUESTIONS = (
    "How far off is a published value?",
    "For which true counts is it worst?",
    "What does a published value say about the truth?",
    "What does one person risk?",
)

LIKELY = Fraction(9, 10)  #: The probability of the range that `PublishedValue` names.

_WIDTH = 100

# The most true counts whose biases are all told in words; of more, the first and last ones.
_BIASES = 12

_NOTHING = "Nothing: what is published does not depend on the true count."

_SHOWN = 3  # the number of published values that are explained in words: first, middle and last one


@dataclass(frozen=True)
class TrueCount:
    """The errors of one true count.

    Attributes
    ----------
    label : str
        The count.
    right : Fraction
        The probability that the count itself, or the band that holds it, is published.
    mean_square : Fraction
        The expected square of the distance from what is published to the count.
    bias : Fraction or None
        The expected error, published minus true; None for pairs of counts.
    """

    label: str
    right: Fraction
    mean_square: Fraction
    bias: Fraction | None


@dataclass(frozen=True)
class PublishedValue:
    """The posterior of the truth, given one published value.

    Attributes
    ----------
    label : str
        The value: a count, a band, or a pair of counts.
    chance : Fraction
        The probability that it is published; all below is None if it is 0.
    right : Fraction or None
        The probability that it is right, once it is published; None also if it is so for no count.
    likeliest : tuple of (str, Fraction) or None
        The likeliest truth, the first of several, and its probability.
    extent : tuple of (str, str, Fraction) or None
        The shortest range of true counts that has at least the probability `LIKELY`, from the
        first to the last, and its probability; None also for pairs of counts.
    """

    label: str
    chance: Fraction
    right: Fraction | None = None
    likeliest: tuple[str, Fraction] | None = None
    extent: tuple[str, str, Fraction] | None = None


@dataclass(frozen=True)
class PersonalRisk:
    """The risk of one person: the change of a published value's probability by their answer.

    Attributes
    ----------
    change : str
        What the person's answer changes, in words.
    ratio : Fraction or float
        The largest factor by which the probability of a value changes, exact, at least 1;
        ``math.inf`` where a value becomes possible or impossible. Odds for a fact about the person
        change by at most that factor, for whoever knows all about the others.
    example : tuple of (str, str, str)
        A published value and two true counts, the first of which makes it ``ratio`` times as
        probable as the second.
    """

    change: str
    ratio: Fraction | float
    example: tuple[str, str, str]

    def belief(self, before: Fraction) -> Fraction:
        """Return an upper bound on the probability of a fact about the person, from the prior's."""
        if not isinstance(self.ratio, Fraction):
            return Fraction(before > 0)
        # Bayes: posterior odds are at most the ratio times the prior odds.
        return self.ratio * before / (1 + (self.ratio - 1) * before)


@dataclass(frozen=True, repr=False)
class Explanation:
    """An explanation of a mechanism, for true counts drawn from a prior; ``str()`` is in words.

    All numbers are exact. In words, probabilities are rounded down and risks are rounded up, so
    that each is a bound.

    Attributes
    ----------
    table : Table
        The mechanism.
    prior : tuple of Fraction or None
        Exact probabilities of the true counts, shape (inputs,); None: equally likely ones.
    """

    table: Table
    prior: tuple[Fraction, ...] | None

    @cached_property
    def distances(self) -> tuple[Fraction, ...]:
        """The probabilities of distances 0, 1, ... of the published value from the true count.

        The last is above 0. A band is at distance 0 from the counts in it; of pairs of counts both
        differences are added.
        """
        weights = [0] * (int(self._apart.max()) + 1)
        for row, apart in zip(self._joint, self._apart.tolist(), strict=True):
            for weight, distance in zip(row, apart, strict=True):
                weights[distance] += weight
        while not weights[-1]:
            weights.pop()
        return tuple(Fraction(weight, self._total) for weight in weights)

    def within(self, distance: int) -> Fraction:
        """Return the probability that a published value is at most so far from the true count."""
        return sum(self.distances[: distance + 1], Fraction(0))

    @property
    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """The numbers of the inputs of `true_counts`, and of the outputs of `published_values`."""
        return range(self.table.inputs), range(self.table.outputs)

    def reach(self, share: Fraction) -> int:
        """Return the distance within which at least this share of published values are."""
        return next(d for d in range(len(self.distances)) if self.within(d) >= share)

    @property
    def mean_square(self) -> Fraction:
        """The expected square of the distance."""
        return sum((d**2 * chance for d, chance in enumerate(self.distances)), Fraction(0))

    @cached_property
    def bias(self) -> Fraction | None:
        """The expected error, published minus true; None for pairs of counts.

        The error of a band is that of its nearest count.
        """
        if isinstance(self.table.input_values, CountPairs):
            return None
        return self.table.error_distribution(self.prior).bias

    @cached_property
    def standard_errors(self) -> StandardErrors:
        """The errors of a published count, and of an unbiased estimate of it, for totals."""
        return StandardErrors.of(self.table, self.prior)

    @cached_property
    def true_counts(self) -> tuple[TrueCount, ...]:
        """The errors of each true count: shape (inputs,)."""
        counts = []
        columns = zip(*self.table.weights, strict=True)
        labels, below = self.table.input_values.labels, self.table.denominator
        pairs_of_counts = isinstance(self.table.input_values, CountPairs)
        signed = (
            self._apart
            if pairs_of_counts
            else errors(self.table.output_values, self.table.input_values)
        )
        each = zip(labels, columns, self._apart.T.tolist(), signed.T.tolist(), strict=True)
        for label, column, apart, error in each:
            pairs = [*zip(column, apart, strict=True)]
            right = sum(weight for weight, distance in pairs if not distance)
            square = sum(weight * distance**2 for weight, distance in pairs)
            off = sum(weight * distance for weight, distance in zip(column, error, strict=True))
            bias = None if pairs_of_counts else Fraction(off, below)
            counts.append(TrueCount(label, Fraction(right, below), Fraction(square, below), bias))
        return tuple(counts)

    @cached_property
    def published_values(self) -> tuple[PublishedValue, ...]:
        """The posteriors of the truth, given each published value: shape (outputs,)."""
        return tuple(map(self._published, range(self.table.outputs)))

    @cached_property
    def risks(self) -> tuple[PersonalRisk, ...]:
        """The risks of one person if the answer changes a count by one, and then if by more.

        More: where the claim of privacy has such neighbours, and for pairs of counts, since one
        person may be in both. There is nothing where only one true count is possible.
        """
        values, privacy = self.table.input_values, self.table.promise
        claimed = {(j, k) for j, k in privacy.pairs(values.size).tolist()}
        if isinstance(values, CountPairs):
            changes = {
                "one of the two counts by at most one": set(values.neighbours(1)),
                "the two counts by at most two in all": set(values.neighbours(2)),
            }
        else:
            changes = {
                "the true count by at most one": {(j, j + 1) for j in range(values.size - 1)}
            }
        if not any(claimed <= pairs for pairs in changes.values()):
            changes[_reach(privacy)] = claimed
        return tuple(self._risk(change, pairs) for change, pairs in changes.items() if pairs)

    @property
    def statement(self) -> str:
        """The statement of what is published under which privacy, and of the prior."""
        outputs, inputs, privacy = (
            self.table.output_values,
            self.table.input_values,
            self.table.promise,
        )
        epsilon = rounded_up(Fraction(privacy.epsilon), 4)
        besides = f" and delta {rounded_up(privacy.delta, 4)}" if privacy.delta else ""
        text = (
            f"{_described(inputs)}, published as {_range(outputs)} with epsilon {epsilon}{besides}."
            f" True counts are taken to be {_assumed(self.prior, inputs)}."
        )
        audit = self.table.audit()
        if not audit.holds:
            reached = "unlimited" if audit.ratio == math.inf else brief(audit.ratio)
            beyond = f"the ratio is {reached}; the claim allows {brief(audit.allowed)}"
            if isinstance(audit, DeltaAudit):
                allowed = brief(audit.allowed_delta)
                beyond = f"delta is {brief(audit.delta)}; the claim allows {allowed}"
            text += f" NOT PRIVATE: {beyond}."
        return text

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """The answers to `QUESTIONS`, each a few sentences."""
        return self._accuracy(), self._worst(), self._truth(), self._risks()

    def __str__(self) -> str:
        lines = [filled(self.statement, _WIDTH)]
        for question, answer in zip(QUESTIONS, self.answers, strict=True):
            lines += ["", question, indent(filled(answer, _WIDTH - 2), "  ")]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation of {self.table.outputs} outputs x {self.table.inputs} inputs>"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, for JSON: probabilities and ratios as exact text beside decimals.

        Returns
        -------
        dict of str to object
            An exact number is ``{"exact": "1/3", "decimal": 0.333...}``; the decimal is null beyond
            the range of floats. None is null, as is a ratio without a limit.
        """
        typical = self.standard_errors
        return {
            "alpha": _number(self.table.promise.alpha),
            "epsilon": self.table.promise.epsilon,
            "delta": _number(self.table.promise.delta),
            "private": self.table.audit().holds,
            "prior": self.prior and [_number(chance) for chance in self.prior],
            "distances": [_number(chance) for chance in self.distances],
            "bias": _number(self.bias),
            "mean_square": _number(self.mean_square),
            "root_mean_square": _finite(typical.published),
            "unbiased_standard_error": _finite(typical.unbiased),
            "true_counts": [
                {
                    "count": each.label,
                    "right": _number(each.right),
                    "mean_square": _number(each.mean_square),
                    "bias": _number(each.bias),
                }
                for each in self.true_counts
            ],
            "published_values": [
                {
                    "value": each.label,
                    "chance": _number(each.chance),
                    "right": _number(each.right),
                    "likeliest": each.likeliest
                    and {"count": each.likeliest[0], "chance": _number(each.likeliest[1])},
                    "extent": each.extent
                    and {
                        "first": each.extent[0],
                        "last": each.extent[1],
                        "chance": _number(each.extent[2]),
                    },
                }
                for each in self.published_values
            ],
            "one_person": [
                {"changes": each.change, "ratio": _number(each.ratio)} for each in self.risks
            ],
            "text": str(self),
        }

    @cached_property
    def _apart(self) -> Integers:
        return distances(self.table.output_values, self.table.input_values)

    @cached_property
    def _joint(self) -> list[list[int]]:
        """The probabilities of published values and true counts together, times `_total`."""
        weights = [int(chance * self._scale) for chance in self._weights]
        return [
            [weight * entry for weight, entry in zip(weights, row, strict=True)]
            for row in self.table.weights
        ]

    @cached_property
    def _scale(self) -> int:
        return math.lcm(*(chance.denominator for chance in self._weights))

    @property
    def _weights(self) -> tuple[Fraction, ...]:
        return prior_over(self.table.inputs, self.prior)

    @property
    def _total(self) -> int:
        return self._scale * self.table.denominator

    def _published(self, output: int) -> PublishedValue:
        label, joint = self.table.output_values.labels[output], self._joint[output]
        total = sum(joint)
        if not total:
            return PublishedValue(label, Fraction(0))
        labels, apart = self.table.input_values.labels, self._apart[output].tolist()
        right = [weight for weight, distance in zip(joint, apart, strict=True) if not distance]
        best = max(range(len(joint)), key=joint.__getitem__)
        extent = None
        if isinstance(self.table.input_values, Counts):
            first, last = _shortest(joint, LIKELY)
            extent = (
                labels[first],
                labels[last],
                Fraction(sum(joint[first : last + 1]), total),
            )
        return PublishedValue(
            label,
            Fraction(total, self._total),
            Fraction(sum(right), total) if right else None,
            (labels[best], Fraction(joint[best], total)),
            extent,
        )

    def _risk(self, change: str, pairs: Iterable[tuple[int, int]]) -> PersonalRisk:
        table = self.table
        audit = Table.from_weights(
            table.weights, table.denominator, Privacy(alpha=1, neighbours=pairs)
        ).audit()
        first, second = (table.input_values.labels[j] for j in audit.inputs)
        assert isinstance(audit.output, int)
        example = table.output_values.labels[audit.output], first, second
        return PersonalRisk(change, audit.ratio, example)

    def _accuracy(self) -> str:
        outputs = self.table.output_values
        right, near = {
            Bands: ("The published band holds the true count", "off by at most"),
            CountPairs: ("Both published counts are exact", "together off by at most"),
        }.get(type(outputs), ("It is exact", "within"))
        parts = [f"{right} in {percent(self.within(0))} of cases"]
        ends = map(self.reach, (Fraction(1, 2), LIKELY))
        parts += [f"{near} {d} in {percent(self.within(d))}" for d in dict.fromkeys(ends) if d]
        typical = self.standard_errors
        text = f"{', '.join(parts)}. Its typical error (root mean square) is"
        text += f" {_size(typical.published)}."
        if isinstance(outputs, (Counts, Unbounded)) and self.bias is not None:
            text += f" {self._biases(self.bias)}"
        if isinstance(outputs, CountPairs):
            return text
        if typical.unbiased is None:
            return f"{text} Totals of many counts cannot be estimated without bias."
        return (
            f"{text} For totals, an unbiased estimate of each count has a standard error of"
            f" {_size(typical.unbiased)}."
        )

    def _biases(self, average: Fraction) -> str:
        """Return how far what is published is off on average, for each true count."""
        shown, some = self._shown_counts()
        if len({count.bias for count in shown}) == 1:
            return f"On average it is {_off(average)}, whatever the true count."
        biases = [f"{float(count.bias or 0):+.2f} for {count.label}" for count in shown]
        biases[4:4] = ["..."] * some
        return (
            f"On average over all true counts it is {_off(average)}; for each of them it is off by"
            f" {', '.join(biases)}."
        )

    def _shown_counts(self) -> tuple[Sequence[TrueCount], bool]:
        """The counts whose biases are told in words, all or the first and last ones."""
        each = self.true_counts
        if len({count.bias for count in each}) == 1 or len(each) <= _BIASES:
            return each, False
        return [*each[:4], *each[-4:]], True

    def _extremes(self) -> tuple[Sequence[TrueCount], Sequence[TrueCount]]:
        """The counts of largest and of smallest error, all of them where all are alike."""
        squares = [each.mean_square for each in self.true_counts]
        worst, best = (
            [each for each in self.true_counts if each.mean_square == square]
            for square in (max(squares), min(squares))
        )
        return worst, best

    def _worst(self) -> str:
        worst, best = self._extremes()
        if worst[0].mean_square == best[0].mean_square:
            return f"For none: the typical error is {_root(worst[0].mean_square)} for all."
        return " ".join(
            f"{name} for {_some([each.label for each in chosen])}: the typical error is"
            f" {_root(chosen[0].mean_square)}, and what is published is right in"
            f" {percent(min(each.right for each in chosen))} of cases."
            for name, chosen in (("Worst", worst), ("Best", best))
        )

    def _truth(self) -> str:
        if self.table.inputs == 1:
            return "Nothing: only one true count is possible."
        if len({*zip(*self.table.weights, strict=True)}) == 1:
            return _NOTHING
        possible = [each for each in self.published_values if each.chance]
        chosen = dict.fromkeys([possible[0], possible[(len(possible) - 1) // 2], possible[-1]])
        sentences = [self._meaning(each) for each in chosen]
        labels = self.table.output_values.labels
        never = [
            label for label, row in zip(labels, self.table.weights, strict=True) if not any(row)
        ]
        if never:
            sentences.append(f"Never published: {_some(never, 'and')}.")
        return " ".join(sentences)

    def _meaning(self, value: PublishedValue) -> str:
        assert value.likeliest is not None
        likeliest, most = value.likeliest
        if value.right is None:
            text = f"A published {value.label} is never the truth: {likeliest} is the likeliest,"
            text += f" with probability {percent(most)}"
        else:
            kind = "count in " if isinstance(self.table.output_values, Bands) else ""
            text = f"A published {value.label} means a true {kind}{value.label} with probability"
            text += f" {percent(value.right)}"
            if most > value.right:
                text += f"; {likeliest} is the likeliest, with {percent(most)}"
        inputs = self.table.input_values
        ends = inputs.label(0), inputs.label(inputs.size - 1)
        first, last, chance = value.extent or (*ends, Fraction(1))
        if first != last and (first, last) != ends:
            text += f"; the truth is in {first} .. {last} with {percent(chance)}"
        return f"{text}."

    def _risks(self) -> str:
        if not self.risks:
            return "Nothing: only one true count is possible."
        first, *others = self.risks
        if first.ratio == 1:
            return "Nothing: what is published does not depend on anybody's answer."
        text = f"One person's answer changes {first.change}, and thereby "
        if not isinstance(first.ratio, Fraction):
            output, possible, impossible = first.example
            return (
                f"{text}what is possible at all: a published {output} for a true {possible}, and"
                f" never for a true {impossible}. So it can prove a fact about one person."
            )
        text += (
            f"the probability of any published value by a factor of at most"
            f" {rounded_up(first.ratio)}. An observer who knows all about the others, and whose"
            f" odds for a fact about this person were 1 to 1, can reach {_odds(first)}"
            " from one published value. With several values about one person these factors"
            " multiply. Where answers go together, as in a family, those of others may tell more."
        )
        return " ".join(
            [text, *(f"An answer that changes {each.change}: {_odds(each)}." for each in others)]
        )


def explain(mechanism: Table, prior: Sequence[Rational] | None = None) -> Explanation:
    """Explain what a mechanism does, in exact numbers and in words.

    Parameters
    ----------
    mechanism : Table
        A `Mechanism`, or another exact table.
    prior : sequence of Fraction, int, str or Decimal, optional
        How likely the true counts are: exact weights, shape (inputs,), that sum to one, such as
        `losses.binomial`; uniform if None.

    Returns
    -------
    Explanation
        ``print`` it, or draw it with `mechdesign.plot.explanation_page`.

    Raises
    ------
    InvalidPrior
        The prior is no distribution over the true counts.

    Examples
    --------
    >>> from mechdesign import named
    >>> told = explain(named.geometric(1, alpha="1/4"))
    >>> told.within(0), told.risks[0].ratio
    (Fraction(4, 5), Fraction(4, 1))
    >>> print(told.answers[1])
    For none: the typical error is 0.447 for all.
    """
    if mechanism.closed is not None and prior is None:
        return LawExplanation(mechanism, None)
    return Explanation(mechanism, prior_over(mechanism.inputs, prior))


_PLACES = 101  # the counts and published values of a closed form that are told, evenly spread

_DISTANCES = 1000  # its distances that are listed at most


class LawExplanation(Explanation):
    """The explanation of a closed form, for true counts that are equally likely.

    Its `true_counts` and `published_values` are some, evenly spread with the first and the last,
    and its `distances` the first ones. Numbers are those of `Law`.
    """

    @property
    def _law(self) -> Law:
        assert self.table.closed is not None
        return self.table.closed

    @cached_property
    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """The counts, and the published values, that are told."""
        n = self._law.n
        most = min(n, _PLACES - 1)
        some = [n * k // most for k in range(most + 1)]
        return some, some

    @cached_property
    def distances(self) -> tuple[Fraction, ...]:
        last = min(self.reach(1 - Fraction(1, 10**6)), _DISTANCES)
        return tuple((2 if d else 1) * self._law.chance(d) for d in range(last + 1))

    def within(self, distance: int) -> Fraction:
        return 1 - self._law.moment(0, distance)

    def reach(self, share: Fraction) -> int:
        beyond = next(1 << k for k in range(64) if self.within(1 << k) >= share)
        return self._law._least(lambda d: self.within(d) >= share, beyond, 0)

    @property
    def mean_square(self) -> Fraction:
        return self._law.moment(2)

    def _count(self, count: int) -> TrueCount:
        law = self._law
        right, square = law.entry(count, count), law.moment_of(count, 2)
        return TrueCount(str(count), right, square, law.bias_of(count))

    @cached_property
    def true_counts(self) -> tuple[TrueCount, ...]:
        return tuple(map(self._count, self.places[0]))

    def _published(self, output: int) -> PublishedValue:
        chance, right, likeliest, most, extent = self._law.posterior(output, LIKELY)
        first, last, share = extent
        ends = str(first), str(last), share
        return PublishedValue(str(output), chance, right, (str(likeliest), most), ends)

    @cached_property
    def published_values(self) -> tuple[PublishedValue, ...]:
        return tuple(map(self._published, self.places[1]))

    def _shown_counts(self) -> tuple[Sequence[TrueCount], bool]:
        n = self._law.n
        if n < _BIASES:
            return [*map(self._count, range(n + 1))], False
        return [*map(self._count, (0, 1, 2, 3, n - 3, n - 2, n - 1, n))], True

    def _extremes(self) -> tuple[Sequence[TrueCount], Sequence[TrueCount]]:
        worst, best = (
            [*map(self._count, dict.fromkeys(each))] for each in self._law.extreme_counts
        )
        return worst or [self._count(0)], best or [self._count(0)]

    def _truth(self) -> str:
        if self._law.ratio == 1:
            return super()._truth() if not self._law.n else _NOTHING
        n = self._law.n
        return " ".join(map(self._meaning, map(self._published, dict.fromkeys((0, n // 2, n)))))

    @cached_property
    def risks(self) -> tuple[PersonalRisk, ...]:
        """The risk of one person, whose answer changes the count by at most one."""
        change = "the true count by at most one"
        label = self.table.output_values.label(0)
        return (PersonalRisk(change, self._law.ratio, (label, "0", "1")),) if self._law.n else ()


def _reach(privacy: Promise) -> str:
    """Return how far apart neighbours are."""
    if privacy.neighbours == "all":
        return "the true count to any other"
    if isinstance(privacy.neighbours, int):
        return f"the true count by at most {privacy.neighbours}"
    return "the true count to any that the claim of privacy has as a neighbour"


def _described(inputs: Values) -> str:
    """Return what is counted."""
    if isinstance(inputs, CountPairs):
        return f"Two counts, of {inputs.first} and of {inputs.second} people"
    people = inputs.size - 1
    return f"A count of {people} {'person' if people == 1 else 'people'}"


def _assumed(prior: tuple[Fraction, ...] | None, inputs: Values) -> str:
    """Return how likely the true counts are."""
    if prior is None or len(set(prior)) == 1:
        return "equally likely"
    if not isinstance(inputs, Counts):
        return "as likely as the prior says"
    mean = sum((j * chance for j, chance in enumerate(prior)), Fraction(0))
    probability = mean / (inputs.size - 1)
    if prior == binomial(inputs.size - 1, probability):
        return f"binomial: each person counts with probability {brief(probability)}"
    variance = sum(((j - mean) ** 2 * chance for j, chance in enumerate(prior)), Fraction(0))
    return (
        f"as likely as the prior says: {_size(float(inputs.low + mean))} on average, with a"
        f" standard deviation of {_root(variance)}"
    )


def _range(outputs: Values) -> str:
    """Return what is published."""
    if isinstance(outputs, CountPairs):
        return f"0 .. {outputs.first} and 0 .. {outputs.second}"
    if isinstance(outputs, Bands):
        return f"one of the bands {', '.join(outputs.labels)}"
    if isinstance(outputs, Unbounded):
        return "any integer"
    return " .. ".join(dict.fromkeys((outputs.label(0), outputs.label(outputs.size - 1))))


def _some(labels: Sequence[str], word: str = "or") -> str:
    """Return the first few labels; pairs, which have commas, in brackets."""
    shown = [f"({label})" if "," in label else label for label in labels]
    if len(shown) > _SHOWN + 1:
        shown = [*shown[:_SHOWN], f"{len(shown) - _SHOWN} others"]
    return f" {word} ".join([", ".join(shown[:-1])] * (len(shown) > 1) + shown[-1:])


def _shortest(joint: Sequence[int], share: Fraction) -> tuple[int, int]:
    """Return the ends of the shortest run of numbers with this share of their sum."""
    # Of several such runs it is the one of the largest sum, and of those the first.
    needed = math.ceil(share * sum(joint))
    best, ends = (len(joint) + 1, 0), (0, len(joint) - 1)
    first = mass = 0
    # Two ends that only move forwards: for each last number the shortest run that ends there.
    for last, weight in enumerate(joint):
        mass += weight
        while mass - joint[first] >= needed:
            mass -= joint[first]
            first += 1
        if mass >= needed and (last + 1 - first, -mass) < best:
            best, ends = (last + 1 - first, -mass), (first, last)
    return ends


def _odds(risk: PersonalRisk) -> str:
    if not isinstance(risk.ratio, Fraction):
        return "there is no limit"
    even = Fraction(1, 2)
    return f"at most {rounded_up(risk.ratio)} to 1 ({percent(risk.belief(even), 1, up=True)})"


def _root(square: Fraction) -> str:
    return _size(math.sqrt(square))


def _off(bias: Fraction) -> str:
    """Return a bias in words."""
    if not bias:
        return "neither too low nor too high"
    return f"{_size(float(abs(bias)))} too {'low' if bias < 0 else 'high'}"


def _size(error: float) -> str:
    """Return an error to three digits at least."""
    return f"{error:,.0f}" if 1000 <= error < math.inf else brief(error, 3)


def _number(value: Fraction | float | None) -> dict[str, Any] | None:
    if not isinstance(value, Fraction):  # None, or a ratio without a limit
        return None
    try:
        decimal: float | None = float(value)
    except OverflowError:
        decimal = None
    return {"exact": to_text(value), "decimal": decimal}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
