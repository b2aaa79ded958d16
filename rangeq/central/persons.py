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
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from frequency.schema import Encoded
from frequency.schema.column import Column, key_of
from mechdesign import ZCDP, Privacy
from mechdesign.base import Items, bit_source, whole
from rangeq.central.matrix_mechanism.mechanism import Promise

LARGEST_ROWS = 1 << 20  #: The most rows of a person.

_LESS = 1 - Fraction(1, 1 << 40)

_PENDING = 1 << 22  # so many rows are gathered before those beyond the limit are left out


def for_each_row(promise: Promise, rows: int) -> Promise:
    """The promise for a row that keeps another one for a person with so many.

    Parameters
    ----------
    promise : Privacy, ZCDP or ApproximateDP
        For a person more or less.
    rows : int
        The most rows that are counted of a person, which may be in the same cell: at least 1.

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
        return ZCDP(promise.rho / rows**2)
    return ZCDP(1 / (2 * rows**2 * promise.noise_ratio))


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
    distinct : bool, default False
        Whether of a person's rows with the same first item one alone counts, in its place among the
        others that of the least priority.

    Raises
    ------
    ValueError, TypeError
        No such number.
    """

    def __init__(
        self, most: int, rng: np.random.Generator | None = None, *, distinct: bool = False
    ) -> None:
        self._distinct = distinct
        self.most = whole(most, "max_rows", 1, LARGEST_ROWS, what="a number of rows")
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
        codes, values = persons.factors()
        digests = b"".join(
            hashlib.blake2b(key_of(value), digest_size=16, key=self._key).digest()
            for value in values
        )
        named = np.frombuffer(digests, dtype="<i8").reshape(-1, 2)
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
        if self._distinct:
            first, second, priorities, items = parts[:4]
            order = np.lexsort((priorities, items, second, first))
            same = np.ones(len(order) - 1, dtype=bool)
            for part in (first, second, items):
                same &= part[order[1:]] == part[order[:-1]]
            alone = order[np.append(True, ~same)]
            parts = [part[alone] for part in parts]
        first, second, priorities, *columns = parts
        order = np.lexsort((priorities, second, first))
        first, second = first[order], second[order]
        new = np.append(True, (first[1:] != first[:-1]) | (second[1:] != second[:-1]))
        place = np.arange(len(order))
        among = place - np.maximum.accumulate(np.where(new, place, 0))
        kept = among < self.most
        rows = order[kept]
        self._parts = [
            [first[kept], second[kept], priorities[rows], *(column[rows] for column in columns)]
        ]

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


def unit_of(rows: int) -> str:
    """Whom a promise is about, in words; 0 for a table of which every row is a user."""
    if not rows:
        return "each row"
    return f"each person, with up to {rows} rows" if rows > 1 else "each person, with one row"
