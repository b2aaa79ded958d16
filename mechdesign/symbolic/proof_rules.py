"""Rules by which proofs of privacy are composed; each is checked like any other statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mechdesign.symbolic.privacy_proof import NOWHERE, Fault, PrivacyProof, indented
from mechdesign.symbolic.rational_function import ALPHA, RationalFunction, rational
from mechdesign.symbolic.semialgebraic import nonnegative

_ALPHA = rational(ALPHA)

_LONG = 10**6
"""The denominator from which on fractions are printed as decimals."""

_SHOWN = 4
"""The number of parts of a mixture, of different names, that are written out."""


@dataclass(frozen=True)
class PublicDrawProof(PrivacyProof):
    """A rule that a public draw costs nothing: no item decides the setting of the report.

    The part's items are a function of the item and the setting: what holds for any two of them
    holds for any two items.

    Parameters
    ----------
    part : PrivacyProof
        Of the report, whatever the setting.
    settings : tuple of (int, Fraction)
        How many settings have which probability; of sum 1.
    """

    part: PrivacyProof
    settings: tuple[tuple[int, Fraction], ...]

    @property
    def loss(self) -> Fraction:
        return self.part.loss

    @property
    def spreads(self) -> frozenset[RationalFunction]:
        return self.part.spreads

    def faults(self) -> Iterator[Fault]:
        yield from self.part.faults()
        yield from _unless_certain(self.name, self.settings)

    def lines(self) -> Iterator[str]:
        number = sum(number for number, _ in self.settings)
        yield f"public draw of one of {number}, whatever the item: it costs nothing"
        yield from indented(self.part.written())


class MixturePart(NamedTuple):
    """Parts of a mixture that are alike, with their probability.

    Attributes
    ----------
    times : int
        How many there are.
    chance : Fraction
        The probability of each.
    part : PrivacyProof
        Of the report about one of them.
    """

    times: int
    chance: Fraction
    part: PrivacyProof


@dataclass(frozen=True)
class MixtureProof(PrivacyProof):
    """A rule that a mixture costs its worst part: the part is drawn whatever the item, and told.

    Parameters
    ----------
    parts : tuple of MixturePart
        All that can be drawn: their probabilities sum to 1.
    """

    parts: tuple[MixturePart, ...]

    @property
    def loss(self) -> Fraction:
        return max((of.part.loss for of in self.parts), default=Fraction(0))

    @property
    def spreads(self) -> frozenset[RationalFunction]:
        return frozenset[RationalFunction]().union(*(part.spreads for part in self._different))

    @property
    def _different(self) -> list[PrivacyProof]:
        return list(dict.fromkeys(of.part for of in self.parts))

    def faults(self) -> Iterator[Fault]:
        for part in self._different:
            yield from part.faults()
        yield from _unless_certain(self.name, [(of.times, of.chance) for of in self.parts])

    def lines(self) -> Iterator[str]:
        number, different = sum(of.times for of in self.parts), self._different
        yield f"one of {number} parts, drawn whatever the item: the worst one counts"
        shown = list({part.name: part for part in reversed(different)}.values())[-_SHOWN:]
        for part in reversed(shown):
            yield from indented(part.written())
        if len(different) > len(shown):
            yield f"  and {len(different) - len(shown)} other, checked alike"


def _unless_certain(name: str, chances: Sequence[tuple[int, Fraction]]) -> Iterator[Fault]:
    """Yield a fault unless so many times these probabilities, none below 0, sum to 1."""
    whole = sum((times * chance for times, chance in chances), Fraction(0))
    if whole != 1 or any(times < 0 or chance < 0 for times, chance in chances):
        yield Fault(f"{name}: the probabilities of what is drawn sum to {whole}, not to 1", NOWHERE)


class BudgetShare(NamedTuple):
    """Parts of a report that have the same share of epsilon each.

    Attributes
    ----------
    share : Fraction
        Of epsilon, for each of them: their own alpha is alpha^share.
    times : int
        How many there are, at least 0.
    part : PrivacyProof
        In their own alpha.
    """

    share: Fraction
    times: int
    part: PrivacyProof


@dataclass(frozen=True)
class CompositionProof(PrivacyProof):
    """A rule that losses add up: a report of independent parts, each with a share of epsilon.

    The shares of all parts that lose anything must sum to exactly 1.

    Parameters
    ----------
    parts : tuple of BudgetShare
        All of a report, also what says nothing.
    """

    parts: tuple[BudgetShare, ...]

    @property
    def loss(self) -> Fraction:
        return sum((of.share * of.times * of.part.loss for of in self.parts), Fraction(0))

    def faults(self) -> Iterator[Fault]:
        for share, times, part in self.parts:
            for fault in part.faults():
                # A region of the part's own alphas
                yield fault if share == 1 else fault._replace(region=NOWHERE)
            if part.loss > 1:
                yield Fault(f"{part.name}: the loss is {part.loss} times its budget", NOWHERE)
            if share <= 0 or times < 0:
                yield Fault(f"{self.name}: {times} times {share} is no share", NOWHERE)
        losing = [of for of in self.parts if of.part.loss and of.times]
        whole = sum((of.share * of.times for of in losing), Fraction(0))
        if losing and whole != 1:
            yield Fault(f"{self.name}: the shares of epsilon sum to {whole}, not to 1", NOWHERE)

    def lines(self) -> Iterator[str]:
        yield "independent parts, whose losses add up:"
        for part in dict.fromkeys(of.part for of in self.parts if of.times):
            shares = [of for of in self.parts if of.part == part]
            listed = ", ".join(f"{of.times} with {_fraction(of.share)} of epsilon" for of in shares)
            yield f"  {listed if part.loss else f'{shares[0].times} that say nothing'}"
            yield from indented(indented(part.written()))


def _fraction(share: Fraction) -> str:
    if share == 1:
        return "all"
    return str(share) if share.denominator < _LONG else f"about {float(share):.4g}"


@dataclass(frozen=True)
class ProcessedProof(PrivacyProof):
    """A rule that pre- and post-processing of a report cost nothing, if they see nothing else.

    Before: the item is any function of the data, also a random one, since a mixture of likelihoods
    lies between them. After: what is made of the report.

    Parameters
    ----------
    part : PrivacyProof
        Of the report.
    how : str
        What is done, in words.
    """

    part: PrivacyProof
    how: str

    @property
    def loss(self) -> Fraction:
        return self.part.loss

    @property
    def spreads(self) -> frozenset[RationalFunction]:
        return self.part.spreads

    def faults(self) -> Iterator[Fault]:
        yield from self.part.faults()

    def lines(self) -> Iterator[str]:
        yield f"{self.how}: it costs nothing"
        yield from indented(self.part.written())


@dataclass(frozen=True)
class ExponentialProof(PrivacyProof):
    """A rule for places drawn in proportion to weights: the weight counts twice.

    From one data set to a neighbouring one a place's weight changes by some factor at most, and so
    does the sum of all weights. Both have a share of epsilon, which must be a half each.

    Parameters
    ----------
    weights : tuple of (RationalFunction, RationalFunction)
        The weight of a place under one data set and under the other, for each way in which it may
        change: with alpha^share for alpha.
    share : Fraction
        Of epsilon, for each of place and sum.
    """

    weights: tuple[tuple[RationalFunction, RationalFunction], ...]
    share: Fraction

    @property
    def loss(self) -> Fraction:
        return 2 * self.share

    def faults(self) -> Iterator[Fault]:
        if self.share != Fraction(1, 2):
            yield Fault(f"{self.name}: place and sum have {self.share} of epsilon each", NOWHERE)
        for weight, other in self.weights:
            slacks = [weight, other, weight - _ALPHA * other, other - _ALPHA * weight]
            if not all(nonnegative([f.numerator], f.denominator).everywhere for f in slacks):
                yield Fault(f"{self.name}: a weight of {weight} becomes {other}", NOWHERE)

    def lines(self) -> Iterator[str]:
        yield f"in proportion to weights; with α^({self.share}) for α, weights change from"
        yield "  " + ", ".join(f"{weight} to {other}" for weight, other in self.weights)
        yield "  and so does their sum: both count"
