"""What several collections from the same people cost together: a ledger of privacy budgets, in exact numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from mechdesign.exceptions import InvalidFile, MechanismError
from mechdesign.formats import content_of, replacing
from mechdesign.privacy import face_value
from mechdesign.rational import Rational
from mechdesign.text import aligned, brief, from_text, keyed, shown, to_text

FORMAT, VERSION = "mechdesign.ledger", 1

NOT_COVERED = """not covered:
- tighter sums: no advanced, Renyi or zero-concentrated composition, no amplification by subsampling or shuffling
- one person in two groups that were declared disjoint: such a person loses the sum
- the same question asked again over time: every answer is a spend of its own; nothing memoises answers
- people whose data depend on each other, as in a family: what all their reports tell of one adds up
- what else is published about these people: by this curator or by others
- one meaning for all: a local and a central epsilon may be added, but the sum protects as the weaker kind does, only against
  those who see nothing but releases (the local part also against whoever receives the reports)"""
"""What a `Ledger` does not know."""


class BudgetExceeded(MechanismError):
    """Spending so much would exceed the budget. Nothing was recorded.

    Attributes: ``asked`` and ``remaining``, exact.
    """

    def __init__(self, asked: Fraction, remaining: Fraction, what: str = "") -> None:
        self.asked, self.remaining, self.what = asked, remaining, what
        of = f" for {what}" if what else ""
        super().__init__(
            f"epsilon {_text(asked)}{of} is more than the {_text(remaining)} that remains; nothing was recorded"
        )


class AlreadySpent(MechanismError, ValueError):
    """A collection of this name is in the ledger. Nothing was recorded."""


class LedgerChanged(MechanismError):
    """The file has collections that this ledger does not: someone else has spent since it was loaded. Nothing was written."""


@dataclass(frozen=True)
class Entry:
    """A collection: its epsilon, its name, and the groups it was from; None is everybody."""

    epsilon: Fraction
    what: str
    people: tuple[str, ...] | None


class Ledger:
    """The budget of every person, and what collections have spent of it, by basic composition.

    Collections from the same people add up. Those from disjoint groups do not: what counts is the largest sum over groups, and a
    collection from everybody counts for every group. That groups are disjoint is the caller's word.

    A ledger is mutable, and there is one of it. Were it a value, each of two holders could spend the whole, and ``spend`` without
    keeping its result would lose a collection. So it cannot be copied or pickled; a name can be spent once, so that a cell of a
    notebook that runs twice does not count twice; and `save` refuses to overwrite a file with collections that it does not know.

    Parameters
    ----------
    epsilon
        Of a person, in all: at least 0. Numbers are exact and nothing is rounded: a float stands for the binary number that it is,
        so that 0.1 is a little more than 1/10 and does not fit three times into "0.3". Strings mean what they say.

    Not covered, and printed below the table: `NOT_COVERED`.

    >>> ledger = Ledger("1")
    >>> ledger.spend("0.5", "ages")
    >>> ledger.spend("0.5", "incomes, north", people="north")
    >>> ledger.spend("0.3", "incomes, south", people="south")
    >>> ledger.spent, ledger.remaining, ledger.left("south")
    (Fraction(1, 1), Fraction(0, 1), Fraction(1, 5))
    """

    def __init__(self, epsilon: float | Rational) -> None:
        self._epsilon = face_value(epsilon)
        self._entries: list[Entry] = []

    @property
    def epsilon(self) -> Fraction:
        """The budget of a person."""
        return self._epsilon

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The collections, in the order in which they were spent."""
        return tuple(self._entries)

    def spend(
        self, epsilon: float | Rational, what: str, people: str | Iterable[str] | None = None
    ) -> None:
        """Record a collection, before it begins.

        Parameters
        ----------
        epsilon
            What it costs each of them, above 0.
        what
            Its name: not empty, and new.
        people
            The group, or groups, that it is from; groups of different names have nobody in common. None: everybody.

        Raises
        ------
        BudgetExceeded
            Some of these people would lose more than their budget.
        AlreadySpent
            A collection of this name is recorded.
        """
        cost, groups = face_value(epsilon), _groups(people)
        if cost == 0:
            raise ValueError("a collection costs an epsilon above 0")
        if not isinstance(what, str) or not what.strip():
            raise ValueError(f"a collection needs a name, got {shown(what)}")
        if any(entry.what == what for entry in self._entries):
            raise AlreadySpent(
                f"{what!r} is spent already: a second collection needs a name of its own; nothing was recorded"
            )
        self.require(cost, what, groups)
        self._entries.append(Entry(cost, what, groups))

    def require(
        self, epsilon: float | Rational, what: str = "", people: str | Iterable[str] | None = None
    ) -> None:
        """Raise BudgetExceeded unless so much is left. Records nothing."""
        cost, left = face_value(epsilon), self.left(people)
        if cost > left:
            raise BudgetExceeded(cost, left, what)

    def left(self, people: str | Iterable[str] | None = None) -> Fraction:
        """What every member of these groups (None: everybody) has left."""
        groups = _groups(people)
        everybody = sum(
            (entry.epsilon for entry in self._entries if entry.people is None), Fraction(0)
        )
        sums = self._sums()
        return (
            self._epsilon
            - everybody
            - max((sums.get(group, Fraction(0)) for group in groups or sums), default=Fraction(0))
        )

    @property
    def spent(self) -> Fraction:
        """The most that anybody has spent."""
        return self._epsilon - self.left()

    @property
    def remaining(self) -> Fraction:
        """What everybody has left: what a collection from everybody may cost."""
        return self.left()

    def _sums(self) -> dict[str, Fraction]:
        """What each group has spent beyond what everybody has."""
        sums: dict[str, Fraction] = {}
        for entry in self._entries:
            for group in entry.people or ():
                sums[group] = sums.get(group, Fraction(0)) + entry.epsilon
        return sums

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON, replacing the file in one step or not at all. There is no lock: one process at a time.

        Raises LedgerChanged when the file is another budget, or has collections that this ledger does not; InvalidFile when it is
        no ledger.
        """
        if Path(path).exists():
            other = Ledger.load(path)
            if (
                other.epsilon != self.epsilon
                or other._entries != self._entries[: len(other._entries)]
            ):
                raise LedgerChanged(
                    f"{path} has what this ledger does not: load it again; nothing was written"
                )
        content = {
            "format": FORMAT,
            "version": VERSION,
            "epsilon": to_text(self._epsilon),
            "entries": [
                {"epsilon": to_text(entry.epsilon), "what": entry.what, "people": entry.people}
                for entry in self._entries
            ],
        }
        with replacing(path) as stream:
            stream.write((json.dumps(content, indent=1) + "\n").encode())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Ledger:
        """Read what `save` wrote. InvalidFile for anything else, and for one that spends more than its budget."""
        content = content_of(path, FORMAT, VERSION, "epsilon", "entries")
        try:
            ledger = Ledger(from_text(content["epsilon"]))
            for entry in content["entries"]:
                keyed(entry, "epsilon", "what", "people")
                ledger.spend(from_text(entry["epsilon"]), entry["what"], entry["people"])
        except (ValueError, TypeError, MechanismError) as error:
            raise InvalidFile(f"{path}: not an intact ledger: {shown(error)}") from error
        return ledger

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a ledger cannot be copied or pickled: each copy would spend the whole budget; use save and load"
        )

    def __str__(self) -> str:
        rows = [("collection", "people", "epsilon")]
        for entry in self._entries:
            rows.append(
                (
                    entry.what,
                    "everybody" if entry.people is None else ", ".join(entry.people),
                    _text(entry.epsilon),
                )
            )
        rows.append(("spent", "by whoever has spent the most", _text(self.spent)))
        rows.append(("remaining", f"of {_text(self._epsilon)}", _text(self.remaining)))
        return "\n".join([*aligned(rows), NOT_COVERED])

    def __repr__(self) -> str:
        return f"<Ledger of {_text(self._epsilon)}: {len(self._entries)} collections, {_text(self.remaining)} remaining>"


def _groups(people: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if people is None:
        return None
    groups = (
        (people,)
        if isinstance(people, str) or not isinstance(people, Iterable)
        else tuple(dict.fromkeys(people))
    )
    if not groups or not all(isinstance(group, str) and group.strip() for group in groups):
        raise ValueError(
            f"people are the name of a group, or several, or None for everybody, got {shown(people)}"
        )
    return groups


def _text(value: Fraction) -> str:
    """In full where that is short; a ~ says where it is not."""
    short = brief(value, 12)
    if Fraction(short) == value:
        return short
    return to_text(value) if value.denominator <= 10**6 else f"~{short}"
