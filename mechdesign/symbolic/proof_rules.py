"""Rules by which proofs of privacy are composed; each is checked like any other statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

from mechdesign.symbolic.privacy_proof import NOWHERE, Fault, PrivacyProof, indented
from mechdesign.symbolic.semialgebraic import (
    ALPHA,
    Operand,
    RationalFunction,
    nonnegative,
    rational,
)

# ------------------------------------------------------------------------------------------------
# Leaves of proofs of privacy: reports in classes, each with its likelihoods, up to symmetry.


class ReportKind(NamedTuple):
    """A kind of reports, of one class and equally likely under an item.

    Attributes
    ----------
    reports : RationalFunction
        How many; of infinitely many, the sum of weights by which their likelihoods are multiplied.
    likelihood : RationalFunction
        The probability of each.
    """

    reports: RationalFunction
    likelihood: RationalFunction


class ItemLaw(NamedTuple):
    """The distribution of a report under some items, which differ only in which report is which.

    Attributes
    ----------
    items : str
        Which items, in words; "" if there are no others.
    classes : tuple of tuple of ReportKind
        For each class of reports, the kinds that it has.
    """

    items: str
    classes: tuple[tuple[ReportKind, ...], ...]


@dataclass(frozen=True)
class Randomiser(PrivacyProof):
    """A leaf: reports in classes, and their likelihoods under each item, up to symmetry.

    Reports of one class are taken to have any two of the class's likelihoods under two items. So
    what is proved holds for all pairs of items, and its size does not depend on how many there are.

    Checked is, for all alpha in (0, 1): no number of reports and no likelihood is negative; under
    every item a class has as many reports, and the probabilities sum to exactly 1; no likelihood of
    a class is below alpha^exponent times another one.

    Parameters
    ----------
    laws : tuple of ItemLaw
        For all items: mostly one.
    exponent : int
        The claim, in powers of alpha: 0 for what says nothing, else 1.
    relative : bool, default False
        Whether numbers of reports are shares of all of them, and likelihoods relative to those of a
        uniform report.
    """

    laws: tuple[ItemLaw, ...]
    exponent: int
    relative: bool = False

    @property
    def loss(self) -> Fraction:
        return Fraction(self.exponent)

    def faults(self) -> Iterator[Fault]:
        if not self.laws or self.exponent < 0:
            yield self._fault("no law, or no exponent")
            return
        sizes = [
            [total(kind.reports for kind in kinds) for kinds in law.classes] for law in self.laws
        ]
        for law, numbers in zip(self.laws, sizes, strict=True):
            mass = total(kind.reports * kind.likelihood for kinds in law.classes for kind in kinds)
            if mass != rational(1):
                yield self._fault(f"probabilities sum to {mass}, not to 1")
            if numbers != sizes[0]:
                yield self._fault("a class has other numbers of reports under other items")
            if self.relative and total(numbers) != rational(1):
                yield self._fault("the shares of all reports do not sum to 1")
        every = (kind for law in self.laws for kinds in law.classes for kind in kinds)
        values = [value for kind in every for value in kind]
        yield from self._wrong(values, "a number of reports or a likelihood is negative")
        power = ALPHA**self.exponent
        # Other numbers of classes have been reported as faults already, by the comparison of sizes.
        for same in zip(*(law.classes for law in self.laws), strict=False):
            likelihoods = dict.fromkeys(kind.likelihood for kinds in same for kind in kinds)
            # Any two likelihoods of a class, from whichever laws: two items may share a law.
            for likelihood, other in permutations(likelihoods, 2):
                worse = f"{likelihood} is less than α^{self.exponent} times {other}"
                yield from self._wrong([likelihood - other * power], worse)

    def _wrong(self, values: Iterable[RationalFunction], reason: str) -> Iterator[Fault]:
        """Yield a fault unless all values are at least 0 for all alpha."""
        for value in dict.fromkeys(values):
            region = nonnegative([value.numerator], value.denominator)
            if not region.everywhere:
                yield Fault(f"{self.name}: {reason}", region)

    def _fault(self, reason: str) -> Fault:
        return Fault(f"{self.name}: {reason}", NOWHERE)

    def lines(self) -> Iterator[str]:
        for law in self.laws:
            kinds = dict[RationalFunction, RationalFunction]()
            for kind in (kind for kinds in law.classes for kind in kinds):
                kinds[kind.likelihood] = kinds.get(kind.likelihood, rational(0)) + kind.reports
            shown = (f"{reports} of {likelihood}" for likelihood, reports in kinds.items())
            items = f"{law.items}: " if law.items else ""
            unit = "shares of densities" if self.relative else "likelihoods"
            yield f"{items}{unit} {', '.join(shown)}"


def total(values: Iterable[RationalFunction]) -> RationalFunction:
    """Return the sum of any number of functions."""
    running = rational(0)
    for value in values:
        running += value
    return running


def favouring(
    likely: Operand, others: Operand, relative: bool = False, *, name: str = "", source: str = ""
) -> Randomiser:
    """Return a leaf where some reports are 1 / alpha times as likely as all others."""
    # Randomised response has one such report, subset selection the sets with the item.
    truth = rational(1) / (rational(ALPHA) * others + likely)
    kinds = [ReportKind(rational(likely), truth), ReportKind(rational(others), truth * ALPHA)]
    given = tuple(kind for kind in kinds if kind.reports != rational(0))
    return Randomiser(
        (ItemLaw("", (given,)),), len(given) - 1, relative=relative, name=name, source=source
    )


def at_two_places(own: Operand, other: Operand, *, name: str = "", source: str = "") -> Randomiser:
    """Return a leaf of two independent bits, the places of two items: all that changes."""
    ones = [rational(own), rational(other)]
    chances = [(rational(1) - chance, chance) for chance in ones]
    laws = (
        ItemLaw(
            f"the item of the {place} place",
            tuple(
                (ReportKind(rational(1), first[first_bit] * second[second_bit]),)
                for first_bit in (1, 0)
                for second_bit in (1, 0)
            ),
        )
        for place, (first, second) in (("first", chances), ("second", chances[::-1]))
    )
    return Randomiser(tuple(laws), 1, name=name, source=source)


def in_either(*, name: str = "", source: str = "") -> Randomiser:
    """Return a leaf of a sign by randomised response in one of two places, a fair one elsewhere."""
    # Of two items each has a place and a sign: the same place, or different ones.
    truth, half = rational(1) / rational(1 + ALPHA), Fraction(1, 2)
    chance = {True: truth * half, False: truth * ALPHA * half}
    signs = [(sign, other) for sign in (1, -1) for other in (1, -1)]
    laws = (
        ItemLaw(
            f"sign {item_sign:+d} in the {which} place",
            tuple((ReportKind(rational(1), chance[pair[place] == item_sign]),) for pair in signs),
        )
        for place, which in enumerate(("first", "second"))
        for item_sign in (1, -1)
    )
    return Randomiser(tuple(laws), 1, name=name, source=source)


def discrete_laplace(*, name: str = "", source: str = "") -> Randomiser:
    """Return a leaf of an integer c, or c + 1, with noise (1 - alpha) / (1 + alpha) alpha^|k|."""
    # All numbers up to c are told from the one side alike, each alpha times as likely as the next;
    # those from c + 1 on from the other. A kind of report stands for all of a side.
    unit, alpha = rational(1), rational(ALPHA)
    most = (unit - alpha) / (unit + alpha)
    powers = unit / (unit - alpha)  # 1 + alpha + alpha^2 + ..
    sides = (ReportKind(powers, most),), (ReportKind(powers, most * alpha),)
    laws = (ItemLaw("c", sides), ItemLaw("c + 1", sides[::-1]))
    return Randomiser(laws, 1, name=name, source=source)


def unchanged(*chances: Operand, name: str = "", source: str = "") -> Randomiser:
    """Return a leaf for a part that says nothing: each outcome is as likely under all items."""
    classes = tuple((ReportKind(rational(1), rational(chance)),) for chance in chances)
    return Randomiser((ItemLaw("", classes),), 0, name=name, source=source)


_ALPHA = rational(ALPHA)

_LONG = 10**6  # the denominator from which on fractions are printed as decimals

_SHOWN = 4  # the number of parts of a mixture, of different names, that are written out


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
