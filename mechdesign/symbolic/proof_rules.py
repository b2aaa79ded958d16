"""The rules by which proofs of privacy are composed; each is checked like any other statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mechdesign.symbolic.privacy_proof import (
    NOWHERE,
    Fault,
    PrivacyProof,
    indented,
)
from mechdesign.symbolic.rational_function import ALPHA, RationalFunction, rational
from mechdesign.symbolic.semialgebraic import nonnegative

_ALPHA = rational(ALPHA)

_LONG = 10**6
"""Fractions of this denominator and more are printed as decimals."""

_SHOWN = 4
"""How many parts of a mixture, of different names, are written out."""


@dataclass(frozen=True)
class PublicDrawProof(PrivacyProof):
    """A public draw costs nothing: a setting that no item decides, and a report given it.

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
    """Parts of a mixture that are alike.

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
    """A mixture costs its worst part: the part is drawn whatever the item, and is told.

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
    """A fault unless so many times these probabilities, none below 0, sum to 1."""
    whole = sum((times * chance for times, chance in chances), Fraction(0))
    if whole != 1 or any(times < 0 or chance < 0 for times, chance in chances):
        yield Fault(f"{name}: the probabilities of what is drawn sum to {whole}, not to 1", NOWHERE)


class BudgetShare(NamedTuple):
    """Parts of a report that have a share of the budget each.

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
    """Losses add up: a report of independent parts, each with a share of the budget.

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
            told = ", ".join(f"{of.times} with {_fraction(of.share)} of epsilon" for of in shares)
            yield f"  {told if part.loss else f'{shares[0].times} that say nothing'}"
            yield from indented(indented(part.written()))


def _fraction(share: Fraction) -> str:
    if share == 1:
        return "all"
    return str(share) if share.denominator < _LONG else f"about {float(share):.4g}"


@dataclass(frozen=True)
class ProcessedProof(PrivacyProof):
    """What comes before and after a report costs nothing, as long as it sees nothing else.

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
    """Places with a probability in proportion to weights: the weight counts twice.

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
        for one, other in self.weights:
            slacks = [one, other, one - _ALPHA * other, other - _ALPHA * one]
            if not all(nonnegative([f.numerator], f.denominator).everywhere for f in slacks):
                yield Fault(f"{self.name}: a weight of {one} becomes {other}", NOWHERE)

    def lines(self) -> Iterator[str]:
        yield f"in proportion to weights; with α^({self.share}) for α, weights change from"
        yield "  " + ", ".join(f"{one} to {other}" for one, other in self.weights)
        yield "  and so does their sum: both count"


class Acceptance(NamedTuple):
    """With which probability a report of some kind is kept, of some candidates of that kind.

    Attributes
    ----------
    least, largest : RationalFunction
        For the items under which the report is least and most likely; for all others in between.
    candidates : int, default 1
        How many reports there are, one of which may be kept. Of several each is as likely as the
        likeliest or as the least likely.
    fewest, most : int, default 0 and 1
        How many of them an item makes as likely as the likeliest.
    """

    least: RationalFunction
    largest: RationalFunction
    candidates: int = 1
    fewest: int = 0
    most: int = 1

    def sums(self) -> tuple[RationalFunction, RationalFunction]:
        """The least and the largest probability that one of the candidates is kept."""
        few, many = (
            rational(likely) * self.largest + rational(self.candidates - likely) * self.least
            for likely in (self.fewest, self.most)
        )
        return few, many


def acceptances(
    proof: PrivacyProof, menus: tuple[tuple[int, int, int], ...] = ((1, 0, 1),)
) -> tuple[Acceptance, ...]:
    """The largest with which what is told keeps alpha, for each kind of report of a proof.

    Parameters
    ----------
    proof : PrivacyProof
        Of the reports that are kept or not.
    menus : tuple of (int, int, int), default one candidate
        Candidates, the fewest and the most of them that an item makes likely: each may be of any
        kind of report.

    Returns
    -------
    tuple of Acceptance
        Of reports whose least likelihood is r times the largest, the likeliest are kept with
        probability (1 - alpha) / (s - alpha t), s and t the largest and the least sum of 1 for each
        likely candidate and r for each other one: 1 and r of one candidate, which is kept with 1/2
        where r = 1.
    """
    one, found = rational(1), []
    for spread in proof.spreads:
        for menu in menus:
            few, many = Acceptance(spread, one, *menu).sums()
            largest = (one - _ALPHA) / (many - _ALPHA * few)
            if spread == one and menu[0] == 1:
                largest = rational(Fraction(1, 2))
            found.append(Acceptance(largest * spread, largest, *menu))
    return tuple(sorted(found, key=str))


@dataclass(frozen=True)
class OneBitProof(PrivacyProof):
    """Public coins draw a report, or some, whatever the item; the user tells which one to keep.

    Each is kept with a probability in proportion to its likelihood under the item, none otherwise.
    Keeping less often loses less: with c l to keep one, Pr[none] is 1 - c l, and (1 - c least) / (1
    - c largest) grows with c.

    Parameters
    ----------
    part : PrivacyProof
        Of the report that is kept or not: its likelihoods are at most 1 / alpha apart.
    kinds : tuple of Acceptance
        For each kind of report the largest probabilities to keep it.
    """

    part: PrivacyProof
    kinds: tuple[Acceptance, ...]

    @property
    def loss(self) -> Fraction:
        return Fraction(1)

    def faults(self) -> Iterator[Fault]:
        yield from self.part.faults()
        if self.part.loss > 1:
            yield Fault(f"{self.part.name}: the loss is {self.part.loss} times epsilon", NOWHERE)
        one = rational(1)
        if {kind.least / kind.largest for kind in self.kinds} != self.part.spreads:
            yield Fault(f"{self.name}: reports are not kept in proportion", NOWHERE)
        for kind in self.kinds:
            (least, largest), (few, many) = kind[:2], kind.sums()
            checked = {
                "it is no probability": [least, largest - least, one - many],
                "a 1 loses more than epsilon": [least - _ALPHA * largest],
                "a 0 loses more than epsilon": [one - many - _ALPHA * (one - few)],
            }
            for reason, slacks in checked.items():
                for slack in slacks:
                    region = nonnegative([slack.numerator], slack.denominator)
                    if not region.everywhere:
                        kept = f"a report is kept with probability {largest}"
                        yield Fault(f"{self.name}: {kept}, but {reason}", region)

    def lines(self) -> Iterator[str]:
        yield "public coins draw a report, whatever the item; the bit tells whether it is kept:"
        for least, largest, candidates, fewest, most in self.kinds:
            several = f"{candidates}, {fewest} to {most} of them likely, " if candidates > 1 else ""
            yield f"  {several}with probability {least} to {largest}, or less often in proportion"
        yield from indented(self.part.written())
