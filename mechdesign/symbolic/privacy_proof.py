"""Proofs of privacy for every alpha in (0, 1), checked step by step from what they state.

A proof is a tree. Its leaves state the likelihoods of reports as rational functions of alpha
(`mechdesign.symbolic.randomiser`, `mechdesign.symbolic.table_proof`). Its inner nodes are the rules
for what is composed of them (`mechdesign.symbolic.proof_rules`). Nothing is believed: sums, signs
and ratios are decided by exact algebra whenever a proof is asked whether it holds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

from mechdesign.certificate import Verification
from mechdesign.symbolic.rational_function import ALPHA, RationalFunction, rational
from mechdesign.symbolic.semialgebraic import Region

EVERYWHERE, NOWHERE = Region((), (True,)), Region((), (False,))

_Proof = TypeVar("_Proof", bound="PrivacyProof")


class Fault(NamedTuple):
    """A step of a proof that is wrong.

    Attributes
    ----------
    reason : str
        What is wrong.
    region : Region
        The alphas for which the step is right all the same.
    """

    reason: str
    region: Region


@dataclass(frozen=True)
class PrivacyProof(ABC):
    """That Pr[report | item] <= alpha^-loss Pr[report | other item], for all alpha in (0, 1).

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
        """Everything that is wrong, checked anew: in the parts first."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """The derivation below the first line."""

    @property
    def spreads(self) -> frozenset[RationalFunction]:
        """The least likelihood of a report over its largest, at least, for each kind of report."""
        return frozenset({rational(ALPHA ** math.ceil(self.loss))})

    @property
    def region(self) -> Region:
        """The alphas for which all steps are right, and the loss is at most epsilon."""
        found = EVERYWHERE if self.loss <= 1 else NOWHERE
        for fault in self.faults():
            found &= fault.region
        return found

    def verify(self) -> Verification:
        """Check every step from scratch, for all alpha in (0, 1)."""
        for fault in self.faults():
            return Verification(False, fault.reason)
        if self.loss > 1:
            return Verification(False, f"the loss is {self.loss} times epsilon")
        return Verification(True, f"ratio at most {bound(self.loss)} for all α in (0, 1)")

    @property
    def holds(self) -> bool:
        """Whether every step is right and the loss at most epsilon, for all alpha in (0, 1)."""
        return self.verify().holds

    def called(self: _Proof, name: str, source: str = "") -> _Proof:
        """The same proof, of what has this name.

        Parameters
        ----------
        name : str
            What is private.
        source : str, default ""
            Where it is shown; "": where it was.

        Returns
        -------
        PrivacyProof
            Of the same class.
        """
        return replace(self, name=name, source=source or self.source)

    def __str__(self) -> str:
        checked = self.verify()
        refused = [] if checked.holds else [f"not proved: {checked.reason}"]
        return "\n".join([*self.written(), *refused])

    def written(self) -> Iterator[str]:
        """The lines of the derivation, without line breaks; parts are indented."""
        source = f" ({self.source})" if self.source else ""
        yield f"{self.name}{source}: ratio at most {bound(self.loss)}"
        yield from indented(self.lines())


def bound(loss: Fraction) -> str:
    """The ratio that a loss allows, as text."""
    if loss <= 0:
        return "1"
    return "1/α" if loss == 1 else f"1/α^{loss}" if loss.denominator == 1 else f"1/α^({loss})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines, two spaces further in."""
    return (f"  {line}" for line in lines)
