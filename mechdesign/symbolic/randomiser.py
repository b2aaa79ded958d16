"""Leaves of proofs of privacy: reports in classes, each with its likelihoods, up to symmetry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

from mechdesign.symbolic.privacy_proof import NOWHERE, Fault, PrivacyProof
from mechdesign.symbolic.rational_function import ALPHA, Operand, RationalFunction, rational
from mechdesign.symbolic.semialgebraic import nonnegative


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
    """Return a leaf where some reports are 1 / alpha times as likely as all others.

    Randomised response has one such report, subset selection the sets with the item.
    """
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
                (ReportKind(rational(1), first[one] * second[two]),)
                for one in (1, 0)
                for two in (1, 0)
            ),
        )
        for place, (first, second) in (("first", chances), ("second", chances[::-1]))
    )
    return Randomiser(tuple(laws), 1, name=name, source=source)


def in_either(*, name: str = "", source: str = "") -> Randomiser:
    """Return a leaf of a sign by randomised response in one of two places, a fair one in the other.

    Of two items each has a place and a sign: the same place, or different ones.
    """
    truth, half = rational(1) / rational(1 + ALPHA), Fraction(1, 2)
    chance = {True: truth * half, False: truth * ALPHA * half}
    signs = [(one, other) for one in (1, -1) for other in (1, -1)]
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
    """Return a leaf of an integer c, or c + 1, with noise (1 - alpha) / (1 + alpha) alpha^|k|.

    All numbers up to c are told from the one side alike, each alpha times as likely as the next;
    those from c + 1 on from the other. A kind of report stands for all of a side.
    """
    one, alpha = rational(1), rational(ALPHA)
    most = (one - alpha) / (one + alpha)
    powers = one / (one - alpha)  # 1 + alpha + alpha^2 + ..
    sides = (ReportKind(powers, most),), (ReportKind(powers, most * alpha),)
    laws = (ItemLaw("c", sides), ItemLaw("c + 1", sides[::-1]))
    return Randomiser(laws, 1, name=name, source=source)


def unchanged(*chances: Operand, name: str = "", source: str = "") -> Randomiser:
    """Return a leaf for a part that says nothing: each outcome is as likely under all items."""
    classes = tuple((ReportKind(rational(1), rational(chance)),) for chance in chances)
    return Randomiser((ItemLaw("", classes),), 0, name=name, source=source)
