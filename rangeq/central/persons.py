"""Tables with several rows a person: so many rows of each are counted, drawn at random.

Every row has a random priority, and of each person the rows of the least priorities are kept: a
uniform draw, whatever else is in the table, and wherever a person's rows are in it. So two tables
that differ in all rows of one person have kept rows that differ in that person's, at most so many.
A row is counted in one cell: what keeps a promise for one row more or less then keeps a weaker one
for a person, which `for_each_row` turns round.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from frequency.schema import Encoded, Numeric, Schema
from frequency.schema.column import Column, key_of
from mechdesign import ZCDP, Privacy
from mechdesign.base import Booleans, Integers, Items, bit_source, whole
from rangeq.central.matrix_mechanism.mechanism import Promise

LARGEST_ROWS = 1 << 20  #: The most rows of a person.

_LESS = 1 - Fraction(1, 1 << 40)

_PENDING = 1 << 22  # so many rows are gathered before those beyond the limit are left out


def for_each_row(promise: Promise, rows: int, groups: int = 1) -> Promise:
    """The promise for a row that keeps another one for a person with so many.

    Parameters
    ----------
    promise : Privacy, ZCDP or ApproximateDP
        For a person more or less.
    rows : int
        The most rows that are counted of a person: at least 1.
    groups : int, default 1
        In so many groups that are measured apart these are, as many in each. Gaussian noise is then
        in proportion to the root of the sum of squares of a person's rows. 1: all may be together.

    Returns
    -------
    Privacy, ZCDP or ApproximateDP
        Of one row the same promise. Of several a part of epsilon; of Gaussian noise, whose loss
        grows with the square of what a person changes, a `ZCDP`.

    Examples
    --------
    >>> for_each_row(ZCDP(1), 2)
    ZCDP(0.25)
    """
    if rows == 1:
        return promise
    if isinstance(promise, Privacy):
        # Which is rounded up, by less
        return Privacy.from_epsilon(Fraction(promise.epsilon) * _LESS / rows)
    if isinstance(promise, ZCDP):
        return ZCDP(promise.rho / squared_change(rows, groups))
    return ZCDP(1 / (2 * squared_change(rows, groups) * promise.noise_ratio))


def squared_change(rows: int, groups: int = 1) -> Fraction:
    """The largest sum of squares by which so many rows change groups, as many rows in each."""
    return Fraction(rows**2, groups)


class RowsOfPersons:
    """The rows of a table, of each person so many at most.

    Persons are told apart by a keyed BLAKE2 digest of 128 bits of what names them: that two of n
    persons are taken for one has a probability of n^2 / 2^129. Memory is for the rows that are kept
    and some millions more.

    Parameters
    ----------
    most : int
        The most rows of a person, from 1 to 2^20.
    rng : numpy.random.Generator, optional
        None for the operating system's randomness; a generator's results can be repeated, and are
        not private.
    groups : int, default 1
        Of how many groups these are at most, with as many rows in each: a divisor of ``most``. They
        are drawn at random among those of the person, however many rows each has.
    by : int, default 0
        The columns, from the first one, whose items say of which group a row is.

    Raises
    ------
    ValueError, TypeError
        No such numbers.
    """

    def __init__(
        self,
        most: int,
        rng: np.random.Generator | None = None,
        *,
        groups: int = 1,
        by: int = 0,
    ) -> None:
        self.most = whole(most, "max_rows", 1, LARGEST_ROWS, what="a number of rows")
        self.groups = checked_groups(groups, self.most)
        if self.groups > 1 and by < 1:
            raise ValueError("several groups are told apart by columns")
        self._by = by
        self._words = bit_source(rng)
        self._key = os.urandom(32) if rng is None else rng.bytes(32)
        self._parts: list[list[Items]] = []
        self._pending = 0

    def add(self, persons: Column, encoded: Encoded) -> None:
        """Take rows of a table.

        Parameters
        ----------
        persons : Column
            What names the person of each row of a block; rows without are left out.
        encoded : Encoded
            The block as items.
        """
        codes, named = _digests(persons, self._key)
        codes = codes if encoded.reports is None else codes[encoded.reports]
        kept = codes >= 0
        priorities = self._words(int(kept.sum())).view(np.int64)
        columns = [np.asarray(column)[kept] for column in encoded.columns]
        self._parts.append([*named[codes[kept]].T, priorities, *columns])
        self._pending += len(priorities)
        if self._pending > _PENDING:
            self._limit()
            self._pending = 0

    def _limit(self) -> None:
        """Leave out the rows beyond the most."""
        parts = [*map(np.concatenate, zip(*self._parts, strict=True))]
        person, groups = parts[:2], parts[3 : 3 + self._by]
        # What says the order of a person's groups follows from these alone: not from their rows
        mixed = _mixed([*person, *groups])
        order = np.lexsort((parts[2], *groups[::-1], mixed, *person[::-1]))
        parts = [part[order] for part in parts]
        place = np.arange(len(order))
        new = _changes(parts[:2])
        begun = new | _changes(parts[3 : 3 + self._by])
        numbered = np.cumsum(begun)
        group: Integers = numbered - np.maximum.accumulate(np.where(new, numbered, 0))
        row = place - np.maximum.accumulate(np.where(begun, place, 0))
        kept = (group < self.groups) & (row < self.most // self.groups)
        self._parts = [[part[kept] for part in parts]]

    def kept(self) -> Iterator[Encoded]:
        """Yield the rows that count, once all are taken: none of a table without rows.

        Yields
        ------
        Encoded
            All of them.
        """
        if self._parts and any(len(part[0]) for part in self._parts):
            self._limit()
            _, _, _, *columns = self._parts[0]
            yield Encoded(tuple(columns), {}, 0)


class NumbersOfRows:
    """How many rows each person has: exact, and private.

    Of it a quantile may be released, as `QuantileRelease` does, to choose how many rows of a person
    count. Persons are told apart as by `RowsOfPersons`; memory is for the persons.

    Parameters
    ----------
    most : int
        Persons with more rows are counted with those who have so many: 1 to 2^20.

    Raises
    ------
    ValueError, TypeError
        No such number.
    """

    def __init__(self, most: int) -> None:
        self.most = whole(most, "rows of a person", 1, LARGEST_ROWS, what="a number of rows")
        self._key = os.urandom(32)
        self._parts: list[tuple[Items, Items]] = []
        self._pending = 0

    @property
    def schema(self) -> Schema:
        """The schema of `counts`: of one attribute, ``rows``, from 1 to `most`."""
        return Schema([Numeric("rows", low=1, high=self.most, whole=True, outside="clip")])

    def add(self, persons: Column) -> None:
        """Take rows of a table.

        Parameters
        ----------
        persons : Column
            What names the person of each row; rows without are left out.
        """
        codes, named = _digests(persons, self._key)
        numbers = np.bincount(codes[codes >= 0], minlength=len(named))
        self._parts.append((named, numbers.astype(np.int64)))
        self._pending += len(named)
        if self._pending > _PENDING:
            self._add_up()
            self._pending = 0

    def _add_up(self) -> None:
        """Have every person once."""
        named, numbers = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.lexsort(named.T)
        named = named[order]
        first = np.flatnonzero(_changes([*named.T]))
        self._parts = [(named[first], np.add.reduceat(numbers[order], first))]

    def counts(self) -> Integers:
        """Return how many persons have 1, 2, .. rows.

        Returns
        -------
        numpy.ndarray of int64
            Shape (most,).
        """
        if not any(len(named) for named, _ in self._parts):
            return np.zeros(self.most, dtype=np.int64)
        self._add_up()
        ((_, numbers),) = self._parts
        numbers = np.minimum(numbers[numbers > 0], self.most)
        return np.bincount(numbers - 1, minlength=self.most)


def _digests(persons: Column, key: bytes) -> tuple[Items, Items]:
    """Of each row the place of its person, below 0 of nobody, and the persons' digests in two."""
    codes, values = persons.factors()
    digests = b"".join(
        hashlib.blake2b(key_of(value), digest_size=16, key=key).digest() for value in values
    )
    return codes, np.frombuffer(digests, dtype="<i8").reshape(-1, 2)


def checked_groups(groups: int, rows: int) -> int:
    """Check the most groups of a person with so many rows, as many in each."""
    number = whole(groups, "max_groups", 1, max(rows, 1), what="a number of groups")
    if rows % number:
        raise ValueError(f"{rows} rows are not as many in each of {number} groups")
    return number


def _mixed(columns: Sequence[Items]) -> npt.NDArray[np.uint64]:
    """Numbers of 64 bits that look random, of the numbers in columns."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:  # by the constants of SplitMix64
        mixed ^= column.astype(np.int64).view(np.uint64)
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _changes(columns: Sequence[Items]) -> Booleans:
    """Where a row differs from the one before: the first one does, if there are columns."""
    size = len(columns[0]) if columns else 0
    if not size:
        return np.zeros(1, dtype=bool)
    changes = np.zeros(size, dtype=bool)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return changes


def unit_of(rows: int, groups: int = 1, counted: str = "rows") -> str:
    """Whom a promise is about, in words; 0 for a table of which every row is a user."""
    if not rows:
        return "each row"
    if groups > 1:
        each = rows // groups
        return f"each person, with up to {each} row{'s' * (each > 1)} in each of {groups} groups"
    return f"each person, with up to {rows} {counted}" if rows > 1 else "each person"
