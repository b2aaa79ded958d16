"""Proofs of privacy for every alpha in (0, 1), checked step by step from what they state.

A proof is a tree. Its leaves state the likelihoods of reports as rational functions of alpha
(`mechdesign.symbolic.proof_rules`, `mechdesign.symbolic.table_proof`). Its inner nodes are the
rules for what is composed of them (`mechdesign.symbolic.proof_rules`). Nothing is believed: sums,
signs and ratios are decided by exact algebra whenever a proof is asked whether it holds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

from mechdesign.optimisation.certificate import Verification
from mechdesign.symbolic.semialgebraic import ALPHA, RationalFunction, Region, nonnegative, rational

EVERYWHERE, NOWHERE = Region((), (True,)), Region((), (False,))

_Proof = TypeVar("_Proof", bound="PrivacyProof")


class Fault(NamedTuple):
    """A step of a proof that is wrong.

    Attributes
    ----------
    reason : str
        The fault, in words.
    region : Region
        The alphas for which the step is right all the same.
    """

    reason: str
    region: Region


@dataclass(frozen=True)
class PrivacyProof(ABC):
    """A proof that Pr[report | item] <= alpha^-loss Pr[report | other], for all alpha in (0, 1).

    Numbers that a protocol chooses by epsilon, such as the range of a hash function, stay as they
    are while alpha varies. Of rounding a proof says nothing: what is drawn, in units of 2^-64, is
    for the ``audit()`` of a protocol.

    Parameters
    ----------
    name : str, default ""
        What is private.
    source : str, default ""
        Where it is shown in the literature.
    """

    name: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)

    @property
    @abstractmethod
    def loss(self) -> Fraction:
        """The exponent, in units of epsilon: what follows from the statements, right or wrong."""

    @abstractmethod
    def faults(self) -> Iterator[Fault]:
        """Yield every wrong step, checked anew: those of the parts first."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the derivation below the first line."""

    @property
    def spreads(self) -> frozenset[RationalFunction]:
        """The least likelihood of a report over its largest, at least, for each kind of report."""
        return frozenset({rational(ALPHA ** math.ceil(self.loss))})

    @property
    def region(self) -> Region:
        """The alphas for which all steps are right, and the loss is at most epsilon."""
        region = EVERYWHERE if self.loss <= 1 else NOWHERE
        for fault in self.faults():
            region &= fault.region
        return region

    def verify(self) -> Verification:
        """Check every step from scratch, for all alpha in (0, 1)."""
        for fault in self.faults():
            return Verification(False, fault.reason)
        # The report that is kept is told in full: it must not lose more than the bit may.
        if self.loss > 1:
            return Verification(False, f"the loss is {self.loss} times epsilon")
        return Verification(True, f"ratio at most {bound(self.loss)} for all α in (0, 1)")

    @property
    def holds(self) -> bool:
        """Whether every step is right and the loss at most epsilon, for all alpha in (0, 1)."""
        return self.verify().holds

    def called(self: _Proof, name: str, source: str = "") -> _Proof:
        """Return the same proof under this name.

        Parameters
        ----------
        name : str
            What is private.
        source : str, default ""
            Where it is shown; "": where it was.

        Returns
        -------
        PrivacyProof
        """
        return replace(self, name=name, source=source or self.source)

    def __str__(self) -> str:
        checked = self.verify()
        refused = [] if checked.holds else [f"not proved: {checked.reason}"]
        return "\n".join([*self.written(), *refused])

    def written(self) -> Iterator[str]:
        """Yield the lines of the derivation, without line breaks; parts are indented."""
        source = f" ({self.source})" if self.source else ""
        yield f"{self.name}{source}: ratio at most {bound(self.loss)}"
        yield from indented(self.lines())


def bound(loss: Fraction) -> str:
    """Return the ratio that a loss allows, as text."""
    if loss <= 0:
        return "1"
    return "1/α" if loss == 1 else f"1/α^{loss}" if loss.denominator == 1 else f"1/α^({loss})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Return the lines, two spaces further in."""
    return (f"  {line}" for line in lines)


# ------------------------------------------------------------------------------------------------
# The rule for reports that public coins draw, and users keep or not.


_ALPHA = rational(ALPHA)


class Acceptance(NamedTuple):
    """The probability with which a report of some kind is kept, of some candidates of that kind.

    Attributes
    ----------
    least, largest : RationalFunction
        For the items under which the report is least and most likely; for all others in between.
    candidates : int, default 1
        How many reports there are, one of which may be kept. Of several each is as likely as the
        likeliest or as the least likely.
    fewest : int, default 0
        How many of them an item makes as likely as the likeliest, at least.
    most : int, default 1
        The same at most.
    """

    least: RationalFunction
    largest: RationalFunction
    candidates: int = 1
    fewest: int = 0
    most: int = 1

    def sums(self) -> tuple[RationalFunction, RationalFunction]:
        """Return the least and the largest probability that one of the candidates is kept."""
        few, many = (
            rational(likely) * self.largest + rational(self.candidates - likely) * self.least
            for likely in (self.fewest, self.most)
        )
        return few, many


def acceptances(
    proof: PrivacyProof, menus: tuple[tuple[int, int, int], ...] = ((1, 0, 1),)
) -> tuple[Acceptance, ...]:
    """Return the largest probabilities with which the bit keeps alpha, for each kind of report."""
    unit, kinds = rational(1), []
    for spread in proof.spreads:
        for menu in menus:
            # With c times the likelihoods, Pr[none] is 1 - c many to 1 - c few: c is largest where
            # 1 - c many = alpha (1 - c few).
            few, many = Acceptance(spread, unit, *menu).sums()
            largest = (unit - _ALPHA) / (many - _ALPHA * few)
            # Reports that say nothing may be kept with any probability: a fair bit by convention.
            if spread == unit and menu[0] == 1:
                largest = rational(Fraction(1, 2))
            kinds.append(Acceptance(largest * spread, largest, *menu))
    return tuple(sorted(kinds, key=str))


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
        unit = rational(1)
        if {kind.least / kind.largest for kind in self.kinds} != self.part.spreads:
            yield Fault(f"{self.name}: reports are not kept in proportion", NOWHERE)
        for kind in self.kinds:
            (least, largest), (few, many) = kind[:2], kind.sums()
            checked = {
                "it is no probability": [least, largest - least, unit - many],
                "a 1 loses more than epsilon": [least - _ALPHA * largest],
                "a 0 loses more than epsilon": [unit - many - _ALPHA * (unit - few)],
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
