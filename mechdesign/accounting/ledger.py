"""A ledger of privacy budgets: what several collections from the same users cost together.

All numbers are exact.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import NoReturn

from filelock import FileLock

from mechdesign._support.files import replacing
from mechdesign._support.numbers import Rational
from mechdesign._support.strict_json import content_of, keyed
from mechdesign._support.text import aligned, brief, from_text, shown, to_text
from mechdesign.exceptions import InvalidFile, MechanismError
from mechdesign.privacy import exact_epsilon

FORMAT, VERSION = "mechdesign.ledger", 1

NUMBER_BITS = 2048
"""The longest numerator, denominator, or common denominator of the epsilons of a ledger."""

NOT_COVERED = """not covered:
- tighter sums: no advanced, Renyi or zero-concentrated composition, no amplification by\
 subsampling or shuffling
- one user in two groups that were declared disjoint: such a user loses the sum
- the same question asked again over time: every answer costs again; answers are not memoised
- users whose data depend on each other, as in a family: what all their reports reveal about one\
 adds up
- what else is published about these users: by this curator or by others
- the kind of trust: a local and a central epsilon may be added, but the sum protects only against\
 readers of the releases,
  as central privacy does (the local part also against the collector of the reports)"""
"""What a `Ledger` does not account for."""


class BudgetExceeded(MechanismError):
    """Spending so much would exceed the budget. Nothing was recorded.

    Attributes: ``asked`` and ``remaining``, exact.
    """

    def __init__(self, asked: Fraction, remaining: Fraction, what: str = "") -> None:
        self.asked, self.remaining, self.what = asked, remaining, what
        of = f" for {what}" if what else ""
        super().__init__(
            f"epsilon {_text(asked)}{of} is more than the {_text(remaining)} that remains; nothing"
            " was recorded"
        )


class AlreadySpent(MechanismError, ValueError):
    """A collection of this name is in the ledger. Nothing was recorded."""


class LedgerChanged(MechanismError):
    """The file has another budget, or lacks or adds collections. Nothing was written."""


@dataclass(frozen=True)
class Entry:
    """A collection: its epsilon, its name, and the groups of users; None: all users."""

    epsilon: Fraction
    what: str
    users: tuple[str, ...] | None


class _Account:
    """A budget, its collections, and the sums that every spend needs."""

    def __init__(self, epsilon: Fraction) -> None:
        self.epsilon = epsilon
        self.entries: list[Entry] = []
        self._names: set[str] = set()
        self._all_users = Fraction(0)
        self._groups: dict[str, Fraction] = {}
        """What each group has spent on collections that were not from all users."""
        self._largest = Fraction(0)
        """The largest of these."""
        self._denominator = _bounded(epsilon, 1)

    def left(self, groups: tuple[str, ...] | None) -> Fraction:
        beyond = self._largest
        if groups is not None:
            beyond = max(self._groups.get(group, Fraction(0)) for group in groups)
        return self.epsilon - self._all_users - beyond

    def check(self, entry: Entry) -> None:
        """Raise unless the entry may be added."""
        if entry.what in self._names:
            raise AlreadySpent(
                f"{entry.what!r} is spent already: a second collection needs a name of its own; "
                "nothing was recorded"
            )
        left = self.left(entry.users)
        if entry.epsilon > left:
            raise BudgetExceeded(entry.epsilon, left, entry.what)
        _bounded(entry.epsilon, self._denominator)

    def add(self, entry: Entry) -> None:
        """Add an entry that `check` accepts."""
        self._denominator = math.lcm(self._denominator, entry.epsilon.denominator)
        self.entries.append(entry)
        self._names.add(entry.what)
        if entry.users is None:
            self._all_users += entry.epsilon
            return
        for group in entry.users:
            before = self._groups.get(group)
            self._groups[group] = entry.epsilon if before is None else before + entry.epsilon
            self._largest = max(self._largest, self._groups[group])


class Ledger:
    """The privacy budget of every user, and what collections have spent of it.

    The accounting is basic composition: collections from the same users add up. Those from disjoint
    groups do not: the largest sum over groups counts, and a collection from all users counts for
    every group. Whether groups are disjoint is not checked; the caller is responsible for it.

    A ledger is usually kept in a file, see `open`. ``Ledger(epsilon)`` makes one in memory, which
    `save` writes. Threads may share both kinds.

    A ledger is mutable, and cannot be copied or pickled: two copies could each spend the whole
    budget. A name can be spent once, so that a cell of a notebook that runs twice does not count
    twice. `save` refuses to overwrite a file with collections that the ledger lacks.

    Parameters
    ----------
    epsilon : float, Fraction, int, str or Decimal
        The budget of each user, in all: at least 0. Numbers are exact and nothing is rounded: a
        float stands for the binary number that it is, so that 0.1 is a little more than 1/10 and
        does not fit three times into "0.3". A string is read as the exact number it spells.

    Not covered, and printed below the table: `NOT_COVERED`.

    >>> ledger = Ledger("1")
    >>> ledger.spend("0.5", "ages")
    >>> ledger.spend("0.5", "incomes, north", users="north")
    >>> ledger.spend("0.3", "incomes, south", users="south")
    >>> ledger.spent, ledger.remaining, ledger.left("south")
    (Fraction(1, 1), Fraction(0, 1), Fraction(1, 5))
    """

    def __init__(self, epsilon: float | Rational) -> None:
        self._account = _Account(exact_epsilon(epsilon))
        self._path: Path | None = None
        self._closed = False
        self._guard = RLock()

    @staticmethod
    def open(path: str | os.PathLike[str], epsilon: float | Rational | None = None) -> Ledger:
        """The ledger in a file, from which many processes and threads may spend at once.

        `spend` reads the file again, and writes it durably before it returns: whenever a process
        ends, no budget is spent twice and no collection is lost. `left`, `spent` and `remaining`
        read the file, too. After a ``with`` statement the ledger cannot be spent from.

        Parameters
        ----------
        path : str or os.PathLike
            A JSON file in the format of `save`. While one process spends, others wait for a lock
            on a second file, ``path`` with ".lock" appended.
        epsilon : float, Fraction, int, str or Decimal, optional
            The budget of each user, at least 0. If there is no file, one is made; the budget of
            an existing file must be the same. None: the file must exist.

        Returns
        -------
        Ledger
            Bound to the file.

        Raises
        ------
        FileNotFoundError
            There is no file, and no epsilon.
        LedgerChanged
            The file has another budget.
        InvalidFile
            It is not a ledger, or spends more than its budget.

        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "budget.json"
        >>> with Ledger.open(path, epsilon="1") as ledger:
        ...     ledger.spend("0.4", "ages")
        >>> Ledger.open(path).remaining
        Fraction(3, 5)
        """
        ledger = Ledger(0 if epsilon is None else epsilon)
        ledger._path = Path(os.path.realpath(path))
        if epsilon is None:
            ledger._account = _read(ledger._path)
            return ledger
        with _locked(ledger._path):
            if not ledger._path.exists():
                _write(ledger._path, ledger._account.epsilon, [])
            ledger._refresh()
        return ledger

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self._closed = True

    @property
    def epsilon(self) -> Fraction:
        """The budget of each user."""
        return self._account.epsilon

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The collections, in the order in which they were spent."""
        with self._guard:
            self._refresh()
            return tuple(self._account.entries)

    def spend(
        self, epsilon: float | Rational, what: str, users: str | Iterable[str] | None = None
    ) -> None:
        """Record a collection before it begins.

        It is recorded when this returns.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            What it costs each of its users, above 0.
        what : str
            Its name: not empty, and new.
        users : str or iterable of str, optional
            The group of users that it is from, or several; groups of different names are disjoint.
            None: all users.

        Raises
        ------
        BudgetExceeded
            Some of these users would lose more than their budget.
        AlreadySpent
            A collection of this name is recorded.
        LedgerChanged
            The file lacks collections that this ledger has, or has another budget.
        OSError
            The file could not be written. The collection is not recorded here. If the file has it
            all the same (the disk failed after the file was replaced), it counts when the file is
            read next.
        """
        entry = _entry(epsilon, what, users)
        if self._path is None:
            with self._guard:
                self._account.check(entry)
                self._account.add(entry)
            return
        if self._closed:
            raise ValueError(f"the ledger in {self._path} is closed; nothing was recorded")
        with self._guard, _locked(self._path):
            self._refresh()
            self._account.check(entry)
            _write(self._path, self.epsilon, [*self._account.entries, entry])
            self._account.add(entry)

    def require(
        self, epsilon: float | Rational, what: str = "", users: str | Iterable[str] | None = None
    ) -> None:
        """Raise BudgetExceeded unless so much is left. Records nothing.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            What a collection would cost each user, at least 0.
        what : str, default ""
            Its name, for the message only.
        users : str or iterable of str, optional
            The group of users that it would be from, or several; None: all users.

        Raises
        ------
        BudgetExceeded
            Some of these users have less left.
        """
        cost, left = exact_epsilon(epsilon), self.left(users)
        if cost > left:
            raise BudgetExceeded(cost, left, what)

    def left(self, users: str | Iterable[str] | None = None) -> Fraction:
        """What every user of these groups (None: every user) has at least left."""
        groups = _groups(users)
        with self._guard:
            self._refresh()
            return self._account.left(groups)

    @property
    def spent(self) -> Fraction:
        """The most that any user has spent."""
        return self.epsilon - self.left()

    @property
    def remaining(self) -> Fraction:
        """What every user has left: the most that a collection from all users may cost."""
        return self.left()

    def _refresh(self) -> None:
        """Read the file of an open ledger again."""
        if self._path is None or self._closed:
            return
        found = _read(self._path)
        if found.epsilon != self.epsilon:
            raise LedgerChanged(
                f"{self._path} is a ledger of {_text(found.epsilon)}, not of {_text(self.epsilon)}"
            )
        if not _continues(found, self._account):
            raise LedgerChanged(f"{self._path} lacks collections that were in it before")
        self._account = found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON, replacing the file in one step or not at all.

        Raises
        ------
        LedgerChanged
            The file has another budget, or collections that this ledger lacks: another process has
            spent since it was loaded.
        InvalidFile
            The file is not a ledger.
        """
        with self._guard, _locked(path):
            self._refresh()
            if Path(path).exists() and not _continues(self._account, _read(path)):
                raise LedgerChanged(
                    f"{path} has collections that this ledger lacks: load it again; nothing"
                    " was written"
                )
            _write(path, self.epsilon, self._account.entries)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Ledger:
        """A ledger in memory, with what a file holds now: to look at, or to spend from and `save`.

        Raises
        ------
        InvalidFile
            It is not a ledger, or spends more than its budget.
        """
        ledger = Ledger(0)
        ledger._account = _read(path)
        return ledger

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a ledger cannot be copied or pickled: each copy would spend the whole budget; "
            "open its file wherever it is spent from"
        )

    def __str__(self) -> str:
        rows = [("collection", "users", "epsilon")]
        for entry in self.entries:
            users = "all users" if entry.users is None else ", ".join(entry.users)
            rows.append((entry.what, users, _text(entry.epsilon)))
        account = self._account
        left = account.left(None)
        rows.append(("spent", "the most of any user", _text(account.epsilon - left)))
        rows.append(("remaining", f"of {_text(account.epsilon)}", _text(left)))
        return "\n".join([*aligned(rows), NOT_COVERED])

    def __repr__(self) -> str:
        account = self._account
        return (
            f"<Ledger of {_text(account.epsilon)}: {len(account.entries)} collections, "
            f"{_text(account.left(None))} remaining>"
        )


def _locked(path: str | os.PathLike[str]) -> AbstractContextManager[object]:
    """The lock of a ledger's file, which one thread of one process holds at a time.

    The lock is on a second file, since the ledger's own is replaced meanwhile. The second file is
    not removed; the system releases the lock of a process that ends.
    """
    return FileLock(f"{os.path.realpath(path)}.lock").acquire(poll_interval=0.005)


def _read(path: str | os.PathLike[str]) -> _Account:
    """What a file holds; InvalidFile unless it is a ledger within its budget."""
    content = content_of(path, FORMAT, {VERSION: ("epsilon", "entries")})
    try:
        account = _Account(exact_epsilon(from_text(content["epsilon"])))
        if not isinstance(content["entries"], list):
            raise ValueError(f"entries are a list, got {shown(content['entries'])}")
        for found in content["entries"]:
            keyed(found, "epsilon", "what", "people")
            users = found["people"]
            entry = _entry(from_text(found["epsilon"]), found["what"], users)
            if users is not None and users != list(entry.users or ()):
                raise ValueError(f"people are a list of different groups, got {shown(users)}")
            account.check(entry)
            account.add(entry)
    except (ValueError, TypeError, MechanismError) as error:
        raise InvalidFile(f"{path}: not an intact ledger: {error!s:.300}") from error
    return account


def _write(path: str | os.PathLike[str], epsilon: Fraction, entries: Sequence[Entry]) -> None:
    content = {
        "format": FORMAT,
        "version": VERSION,
        "epsilon": to_text(epsilon),
        "entries": [
            {"epsilon": to_text(entry.epsilon), "what": entry.what, "people": entry.users}
            for entry in entries
        ],
    }
    with replacing(path) as stream:
        stream.write((json.dumps(content, indent=1) + "\n").encode())


def _continues(later: _Account, earlier: _Account) -> bool:
    """Whether ``later`` has the budget of ``earlier``, and begins with all its collections."""
    known = earlier.entries
    return later.epsilon == earlier.epsilon and later.entries[: len(known)] == known


def _entry(epsilon: float | Rational, what: str, users: str | Iterable[str] | None) -> Entry:
    cost, groups = exact_epsilon(epsilon), _groups(users)
    if cost == 0:
        raise ValueError("a collection costs an epsilon above 0")
    if not isinstance(what, str) or not what.strip():
        raise ValueError(f"a collection needs a name, got {shown(what)}")
    return Entry(cost, what, groups)


def _bounded(epsilon: Fraction, denominator: int) -> int:
    """The common denominator of an epsilon and others; ValueError if numbers become too long."""
    if max(epsilon.numerator, epsilon.denominator).bit_length() <= NUMBER_BITS:
        common = math.lcm(denominator, epsilon.denominator)
        if common.bit_length() <= NUMBER_BITS:
            return common
    raise ValueError(
        f"epsilon {_text(epsilon)}: sums of what is spent are exact, and would have numbers of more"
        f" than {NUMBER_BITS} bits; nothing was recorded"
    )


def _groups(users: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if users is None:
        return None
    groups = (
        (users,)
        if isinstance(users, str) or not isinstance(users, Iterable)
        else tuple(dict.fromkeys(users))
    )
    if not groups or not all(isinstance(group, str) and group.strip() for group in groups):
        raise ValueError(
            f"users are the name of a group, or several, or None for all users, got {shown(users)}"
        )
    return groups


def _text(value: Fraction) -> str:
    """The number in full if that is short, else rounded and with a ~ before it."""
    short = brief(value, 12)
    if Fraction(short) == value:
        return short
    return to_text(value) if value.denominator <= 10**6 else f"~{short}"
