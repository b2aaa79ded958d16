"""A ledger of privacy budgets: the privacy loss of several collections from the same users."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, NoReturn

from mechdesign.accounting.account import (
    Account,
    Budget,
    BudgetExceeded,
    Cost,
    Entry,
    entry_of,
    groups_of,
    number,
    recorded,
)
from mechdesign.accounting.pair_law import exact_delta
from mechdesign.accounting.pending import is_pending, published, settle
from mechdesign.accounting.shuffling import LARGEST_N, LARGEST_PERMANENT, TRUST
from mechdesign.base import (
    FRACTION_TEXT,
    TEXT,
    Format,
    Rational,
    aligned,
    intact,
    list_of,
    locked,
    optional,
    printable,
    record,
    row_of,
    whole_number,
)
from mechdesign.exceptions import MechanismError
from mechdesign.privacy import exact_epsilon

_POINTS = 256  # the most points of a profile in a file

_USERS = optional(list_of(TEXT))

_ENTRY = {
    "epsilon": optional(FRACTION_TEXT),
    "what": TEXT,
    "users": _USERS,
    "local": optional(FRACTION_TEXT),
    "shuffled": optional(whole_number(1, LARGEST_N)),
    "rate": optional(FRACTION_TEXT),
    "profile": list_of(row_of(FRACTION_TEXT, FRACTION_TEXT), _POINTS),
}
_GAUSSIAN = {**_ENTRY, "squared_mu": optional(FRACTION_TEXT)}
_PERMANENT = {**_GAUSSIAN, "permanent": optional(whole_number(1, LARGEST_PERMANENT))}

_BUDGET = {
    "epsilon": FRACTION_TEXT,
    "delta": FRACTION_TEXT,
    "local": optional(FRACTION_TEXT),
}


def _first(people: tuple[str, ...] | None, **entry: Any) -> Entry:
    """Return an entry of version 1, which had another word for users."""
    return recorded(users=people, **entry)


_FORM = Format(
    "mechdesign.ledger",
    {
        1: {
            "epsilon": FRACTION_TEXT,
            "entries": list_of(
                record({"epsilon": _ENTRY["epsilon"], "what": TEXT, "people": _USERS}, _first)
            ),
        },
        2: {**_BUDGET, "entries": list_of(record(_ENTRY, recorded))},
        3: {**_BUDGET, "entries": list_of(record(_GAUSSIAN, recorded))},
        4: {**_BUDGET, "entries": list_of(record(_PERMANENT, recorded))},
    },
    sealed=False,
)

#: The text below the table if reports are shuffled.
SHUFFLER = f"""\
shuffled collections: {TRUST[0].lower()}{TRUST[1:]}, of at least so many honest reports. What a\
 shuffler that fails loses is what each report tells: the local epsilon in the third column"""

#: The text below the table if reports are kept.
DAILY = """\
permanent reports: all reports of all days are made of so many of each user, at most; the epsilon
  bounds what they tell of the values, for users whose values change on the same days. That a value
  has changed, and when, many days show; and devices with more values, or more starts, than was
  spent lose more"""

#: The list of what a `Ledger` does not account for.
NOT_COVERED = """not covered:
- one user in two groups that were declared disjoint: such a user loses the sum
- fewer honest reports than a shuffled collection was promised: Shuffled.require refuses fewer
- the same question asked again over time: every answer costs again, unless it is spent as reports\
 that users keep
- users whose data depend on each other, as in a family: what all their reports reveal about one\
 adds up
- what else is published about these users: by this curator or by others
- the kind of trust: of a curator's release the curator knows the truth; an epsilon without a local\
 one beside it
  protects against readers of the releases only, as central privacy does"""


class LedgerChanged(MechanismError):
    """The error for a file with another budget, or other collections. Nothing was written."""


class Ledger:
    """A privacy accountant: the budget of every user, and what collections have spent of it.

    It keeps two currencies. What is released, or shuffled and then published, tells its readers at
    most a central (epsilon, delta). What users report tells whoever sees the reports with their
    senders at most a local epsilon, which is printed beside the central one.

    With a delta of 0 epsilons add up, exactly. With a delta above 0 collections are composed:
    epsilon at that delta is the least that `mechdesign.accounting.compose` proves, and the sum if
    that is less. Local epsilons always add up. Collections from disjoint groups of users do not
    add up: the group that has lost most counts, and a collection from all users counts for every
    group. Whether groups are disjoint is not checked; the caller is responsible for it.

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
    delta : float, Fraction, int, str or Decimal, default 0
        The delta of (epsilon, delta)-differential privacy, below 1: 1e-8, say, much less than one
        over the number of users.
    local : float, Fraction, int, str or Decimal, optional
        The budget of what a user's reports tell whoever sees them all; None: no limit.

    Not covered, and printed below the table: `NOT_COVERED`.

    Examples
    --------
    >>> ledger = Ledger("1")
    >>> ledger.spend("0.5", "ages")
    >>> ledger.spend("0.5", "incomes, north", users="north")
    >>> ledger.spend("0.3", "incomes, south", users="south")
    >>> ledger.spent, ledger.remaining, ledger.left("south")
    (Fraction(1, 1), Fraction(0, 1), Fraction(1, 5))
    """

    def __init__(
        self,
        epsilon: float | Rational,
        delta: float | Rational = 0,
        local: float | Rational | None = None,
    ) -> None:
        self._account = Account(_budget(epsilon, delta, local))
        self._path: Path | None = None
        self._closed = False
        self._guard = RLock()

    @staticmethod
    def open(
        path: str | os.PathLike[str],
        epsilon: float | Rational | None = None,
        delta: float | Rational = 0,
        local: float | Rational | None = None,
    ) -> Ledger:
        """Return the ledger in a file, from which many processes and threads may spend at once.

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
        delta, local : float, Fraction, int, str or Decimal, optional
            As of `Ledger`, where an epsilon is given.

        Returns
        -------
        Ledger

        Raises
        ------
        FileNotFoundError
            There is no file, and no epsilon.
        LedgerChanged
            The file has another budget.
        InvalidFile
            It is not a ledger, or spends more than its budget (looked at if delta is 0).

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "budget.json"
        >>> with Ledger.open(path, epsilon="1") as ledger:
        ...     ledger.spend("0.4", "ages")
        >>> Ledger.open(path).remaining
        Fraction(3, 5)
        """
        ledger = Ledger(0 if epsilon is None else epsilon, delta, local)
        ledger._path = Path(os.path.realpath(path))
        if epsilon is None:
            if not ledger._path.exists():
                raise FileNotFoundError(
                    f"there is no ledger {printable(str(path))}: mechdesign ledger FILE --epsilon"
                    " .., or in Python Ledger.open(path, epsilon=..), makes one, with the budget of"
                    " a user"
                )
            if is_pending(ledger._path):
                with locked(ledger._path):
                    settle(ledger._path, ledger._names)
            ledger._account = _read(ledger._path)
            return ledger
        with locked(ledger._path):
            if not ledger._path.exists():
                _write(ledger._path, ledger._account.budget, [])
            settle(ledger._path, ledger._names)
            ledger._refresh()
        return ledger

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self._closed = True

    @property
    def epsilon(self) -> Fraction:
        """The budget of each user, at the delta of the budget."""
        return self._account.budget.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta of the budget."""
        return self._account.budget.delta

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The collections, in the order in which they were spent."""
        with self._guard:
            self._refresh()
            return tuple(self._account.entries)

    def spend(
        self,
        cost: Cost,
        what: str,
        users: str | Iterable[str] | None = None,
        *,
        local: float | Rational | None = None,
        rate: Rational | None = None,
        only_day: bool = False,
    ) -> None:
        """Record a collection before it begins: it is recorded when this returns.

        Parameters
        ----------
        cost : number, Table, Shuffled, AmongDummies, GaussianLoss, DailyReports or PrivacyLoss
            What it costs each of its users: an epsilon above 0; a mechanism for counts, by its
            exact entries; the shuffled reports that `mechdesign.accounting.shuffled` describes, or
            reports among a shuffler's dummies (with ``local``); Gaussian noise, if the budget has a
            delta above 0; the reports of all days together of a question that is asked every day,
            see `frequency.longitudinal.Memoised.cost`; or a privacy loss, of which a curve is kept.
        what : str
            Its name: not empty, and new.
        users : str or iterable of str, optional
            The group of users that it is from, or several; groups of different names are disjoint.
            None: all users.
        local : float, Fraction, int, str or Decimal, optional
            What each report tells whoever sees it with its sender, where users randomise what they
            report. None: a curator's release, or what ``cost`` says of shuffled reports.
        rate : Fraction, int, str or Decimal, optional
            Of a mechanism for counts: each respondent is in the sample that is counted with this
            probability, and nobody learns who is. None: all respondents are counted.
        only_day : bool, default False
            Of shuffled reports that are made of permanent ones: True states that the reports of no
            other day are ever shown to anybody, shuffled or not.

        Raises
        ------
        BudgetExceeded
            Some of these users would lose more than their budget.
        ShuffledDays
            The reports of one day of several, shuffled, without ``only_day``.
        AlreadySpent
            A collection of this name is recorded.
        LedgerChanged
            The file lacks collections that this ledger has, or has another budget.
        OSError
            The file could not be written. The collection is not recorded here. If the file has it
            all the same (the disk failed after it was replaced), it counts when the file is read
            next.
        """
        entry = entry_of(cost, what, users, local, rate, only_day)
        if self._path is None:
            with self._guard:
                self._account.check(entry)
                self._account.add(entry)
            return
        with self._spending(entry):
            self._record(entry)

    @contextmanager
    def publishing(
        self,
        cost: Cost,
        what: str,
        path: str | os.PathLike[str],
        users: str | Iterable[str] | None = None,
    ) -> Iterator[Path]:
        """A context manager that publishes a file, and records what it costs: both, or neither.

        Whenever a process ends, be it killed: the next `open`, `spend` or `publishing` of this
        ledger moves the file to its place if its cost is recorded, and removes it if it is not. If
        the block raises, nothing is recorded, and no file is left. A ledger in memory ends with its
        process.

        Parameters
        ----------
        cost, what, users : object
            As of `spend`, of a curator's release.
        path : str or os.PathLike
            The file, which is replaced if there is one.

        Yields
        ------
        Path
            Where the block writes the file: another path, in a folder that others cannot open. The
            ledger is locked meanwhile.

        Raises
        ------
        BudgetExceeded, AlreadySpent, LedgerChanged
            As of `spend`, before the block begins.
        ValueError
            The ledger is closed.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Ledger.open(folder / "budget.json", epsilon="1") as ledger:
        ...     with ledger.publishing("0.4", "ages", folder / "ages.txt") as aside:
        ...         _ = aside.write_text("12.3")
        >>> (folder / "ages.txt").read_text(), ledger.spent
        ('12.3', Fraction(2, 5))
        """
        entry = entry_of(cost, what, users, None, None, False)
        target = Path(os.path.realpath(path))
        if self._path is None:
            with self._guard, TemporaryDirectory(prefix=".", dir=target.parent) as folder:
                self._account.check(entry)
                yield (aside := Path(folder) / target.name)
                self._account.add(entry)
                aside.replace(target)
            return
        with (
            self._spending(entry),
            published(self._path, entry.what, target, self._names) as aside,
        ):
            yield aside
            self._record(entry)

    @contextmanager
    def _spending(self, entry: Entry) -> Iterator[None]:
        """Lock the file, and check that the entry may be recorded."""
        if self._closed:
            raise ValueError(f"the ledger in {self._path} is closed; nothing was recorded")
        assert self._path is not None
        with self._guard, locked(self._path):
            settle(self._path, self._names)
            self._refresh()
            self._account.check(entry)
            yield

    def _record(self, entry: Entry) -> None:
        """Write an entry into the file, which is locked."""
        assert self._path is not None
        # Written before it is added: if the disk fails, what is in memory is not ahead of the
        # file, and nobody relies on a collection that is not recorded.
        _write(self._path, self._account.budget, [*self._account.entries, entry])
        self._account.add(entry)

    def _names(self) -> set[str]:
        """The names of the collections in the file."""
        assert self._path is not None
        return {entry.what for entry in _read(self._path).entries}

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
        """Return the epsilon that each user of these groups (None: of all users) has left."""
        groups = groups_of(users)
        with self._guard:
            self._refresh()
            return self._account.left(groups)

    @property
    def spent(self) -> Fraction:
        """The most that any user has spent, at the delta of the budget."""
        return self.epsilon - self.left()

    @property
    def local(self) -> Fraction:
        """The most that the reports of any user tell whoever sees them all with their sender."""
        with self._guard:
            self._refresh()
            return self._account.local(None)

    @property
    def remaining(self) -> Fraction:
        """The epsilon that every user has left: the most that a collection from all may cost."""
        return self.left()

    def _refresh(self) -> None:
        """Read the file of an open ledger again."""
        if self._path is None or self._closed:
            return
        stored = _read(self._path)
        if stored.budget != self._account.budget:
            raise LedgerChanged(
                f"{self._path} is a ledger of {stored.budget}, not of {self._account.budget}"
            )
        if not _continues(stored, self._account):
            raise LedgerChanged(f"{self._path} lacks collections that were in it before")
        self._account = stored

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
        with self._guard, locked(path):
            self._refresh()
            if Path(path).exists() and not _continues(self._account, _read(path)):
                raise LedgerChanged(
                    f"{path} has collections that this ledger lacks: load it again; nothing"
                    " was written"
                )
            _write(path, self._account.budget, self._account.entries)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Ledger:
        """Return a ledger in memory with what a file holds now, to see, or spend from and `save`.

        Raises
        ------
        InvalidFile
            It is not a ledger, or spends more than its budget (looked at if delta is 0).
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
        rows = [("collection", "users", "each report", "epsilon")]
        entries = self.entries
        for entry in entries:
            users = "all users" if entry.users is None else ", ".join(entry.users)
            local = "-" if entry.local is None else number(entry.local)
            rows.append((entry.what, users, local, self._cost(entry)))
        account = self._account
        budget, left, reports = account.budget, account.left(None), account.local(None)
        at = f" at delta {number(budget.delta)}" if budget.delta else ""
        limit = "no limit" if budget.local is None else number(budget.local - reports)
        spent = number(budget.epsilon - left)
        rows.append(("spent", "the most of any user", number(reports), f"{spent}{at}"))
        rows.append(("remaining", f"of {number(budget.epsilon)}{at}", limit, number(left)))
        shuffled = any(entry.shuffled is not None for entry in entries)
        kept = any(entry.permanent is not None for entry in entries)
        notes = [*[SHUFFLER] * shuffled, *[DAILY] * kept, NOT_COVERED]
        return "\n".join([*aligned(rows), *notes])

    def _cost(self, entry: Entry) -> str:
        """Return what an entry costs by itself, in words."""
        delta = self._account.budget.delta
        composed = entry.profile or entry.squared_mu
        at = f" at delta {number(delta)}" if delta and composed else ""
        said = f"{number(self._account.alone(entry))}{at}"
        if entry.shuffled is not None:
            said += f", at least {entry.shuffled} shuffled"
        if entry.permanent is not None:
            said += f", permanent reports of each user: at most {entry.permanent}"
        if entry.rate is not None:
            said += f", a secret sample with rate {number(entry.rate)}"
        return said

    def __repr__(self) -> str:
        account = self._account
        return (
            f"<Ledger of {account.budget}: {len(account.entries)} collections, "
            f"{number(account.left(None))} remaining>"
        )


def _budget(
    epsilon: float | Rational, delta: float | Rational, local: float | Rational | None
) -> Budget:
    reports = None if local is None else exact_epsilon(local)
    whole = exact_epsilon(epsilon)
    return Budget(whole, exact_delta(delta) if delta else Fraction(0), reports)


def _read(path: str | os.PathLike[str]) -> Account:
    """Return the account of a file; InvalidFile unless it is a ledger within its budget."""
    content = _FORM.load(path)
    with intact(path, "not an intact ledger"):
        stored = {"delta": Fraction(0), "local": None, **_FORM.read(content)}
        account = Account(_budget(stored["epsilon"], stored["delta"], stored["local"]))
        for entry in stored["entries"]:
            account.check_number(entry)
            account.add(entry)
        # With a delta, the next spend composes what there is
        if not (account.budget.delta or account.within):
            raise ValueError("more is spent than the budget")
    return account


def _write(path: str | os.PathLike[str], budget: Budget, entries: Sequence[Entry]) -> None:
    _FORM.save(path, {**vars(budget), "entries": entries})


def _continues(later: Account, earlier: Account) -> bool:
    """Whether ``later`` has the budget of ``earlier``, and begins with all its collections."""
    known = earlier.entries
    return later.budget == earlier.budget and later.entries[: len(known)] == known
