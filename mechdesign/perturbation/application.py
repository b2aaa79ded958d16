"""perturb(...): a table of people published with the noise that the keys of their cells give.

The same people have the same noise in every table, since the key of a cell is the sum of theirs.
Whoever learns record keys can subtract the noise of every cell of those people: keys are as secret
as the answers, and are kept beside them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

from mechdesign.base import (
    AS_IT_IS,
    Integers,
    ReadOptions,
    bit_source,
    opened_rows,
    shown,
    whole,
    write_csv,
)
from mechdesign.exceptions import InvalidTable
from mechdesign.noise.sampling import uniform
from mechdesign.perturbation.table import MOST_KEYS, PerturbationTable

TOTAL = "total"  #: What stands for a column that is summed over.

MARK = "*"  #: What stands for an output below the threshold.

_LONGEST_KEY = 18  # digits of a record key

_MOST_CELLS = 1 << 22  # that a table may have


@dataclass(frozen=True)
class PerturbedTable:
    """A table with its noise, as it is published: no true count is kept.

    Attributes
    ----------
    columns : tuple of str
        The columns by which people are counted.
    cells : dict of tuple of str to (int or None)
        What is published for the labels of each cell, in order; None for what is below the
        threshold. Impossible cells are not there.
    """

    columns: tuple[str, ...]
    cells: dict[tuple[str, ...], int | None]

    def write(self, path: str | os.PathLike[str], spreadsheet: bool = False) -> None:
        """Write a CSV file, a line for each cell, in one step or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            The file, which is replaced if it exists.
        spreadsheet : bool, default False
            Whether labels that a spreadsheet would take for formulas get an apostrophe.
        """
        lines = ([*labels, MARK if n is None else n] for labels, n in self.cells.items())
        write_csv(Path(path), [[*self.columns, "count"], *lines], spreadsheet=spreadsheet)


def draw_record_keys(
    records: int, keys: int = 256, rng: np.random.Generator | None = None
) -> Integers:
    """Draw a key for each record, uniform and independent.

    Parameters
    ----------
    records : int
        The number of records, at least 0.
    keys : int, default 256
        The number of keys, that of the perturbation table: 1 to 65,536.
    rng : numpy.random.Generator, optional
        The operating system's randomness unless given; a generator with a seed is for experiments
        only, as whoever knows the seed knows all keys.

    Returns
    -------
    numpy.ndarray of int64
        Shape (records,), of 0 .. keys - 1.

    Raises
    ------
    ValueError
        A number out of range.
    """
    number = whole(records, "the number of records")
    return uniform(number, whole(keys, "the number of keys", 1, MOST_KEYS), bit_source(rng))


def perturb(
    table: PerturbationTable,
    labels: Sequence[Sequence[str]],
    keys: Sequence[int],
    *,
    columns: Sequence[str],
    threshold: int = 0,
    totals: bool = False,
    impossible: Iterable[Sequence[str]] = (),
) -> PerturbedTable:
    """Count people by their labels, and add the noise of the keys of cells.

    Parameters
    ----------
    table : PerturbationTable
        The noise. Record keys are added modulo its number of keys.
    labels : sequence of sequence of str
        For each person a label of each column, shape (people, columns). An empty label is one like
        others.
    keys : sequence of int
        The record keys, at least 0, one for each person.
    columns : sequence of str
        The names of the columns, at least one.
    threshold : int, default 0
        Outputs below it are not published.
    totals : bool, default False
        Whether sums over columns are published, too: cells of all people in them.
    impossible : iterable of sequence of str, optional
        Cells in which nobody can be (structural zeros): they are left out. Every other combination
        of labels that occur is published, with key 0 if it holds nobody.

    Returns
    -------
    PerturbedTable

    Raises
    ------
    InvalidTable
        Somebody in an impossible cell, a label `TOTAL` where there are totals, or too many cells.
    ValueError
        Shapes or numbers that do not fit.
    """
    width = len(columns)
    threshold = whole(threshold, "the threshold")
    if not width or len(labels) != len(keys) or any(len(row) != width for row in labels):
        raise ValueError(
            f"there are {len(labels)} rows of labels, expected {len(keys)} of {width} columns, at"
            " least one"
        )
    never = {tuple(cell) for cell in impossible}
    counted: dict[tuple[str, ...], tuple[int, int]] = {}
    for place, (row, key) in enumerate(zip(labels, keys, strict=True)):
        cell = tuple(row)
        if cell in never:
            raise InvalidTable(f"record {place} is in the impossible cell {', '.join(cell)}")
        if totals and TOTAL in cell:
            raise InvalidTable(f"record {place} has the label {TOTAL!r}, which is for totals")
        number, summed = counted.get(cell, (0, 0))
        counted[cell] = number + 1, summed + whole(key, f"the key of record {place}")
    found = dict(_cells(counted, never, width, totals))
    true = np.array([number for number, _ in found.values()], dtype=np.int64)
    sums = np.array([summed % table.keys for _, summed in found.values()], dtype=np.int64)
    outputs = (true + table.noise(true, sums)).tolist()
    published = (output if output >= threshold else None for output in outputs)
    return PerturbedTable(tuple(columns), dict(zip(found, published, strict=True)))


def _cells(
    counted: dict[tuple[str, ...], tuple[int, int]],
    never: set[tuple[str, ...]],
    width: int,
    totals: bool,
) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
    """Yield the labels of each cell in order, totals last, with its count and sum of keys."""
    axes = [[*sorted({cell[k] for cell in counted}), *[TOTAL] * totals] for k in range(width)]
    if (size := math.prod(map(len, axes))) > _MOST_CELLS:
        raise InvalidTable(f"the table has {size} cells, and {_MOST_CELLS} are the most")
    sums = dict(counted)
    if totals:
        for size in range(1, width + 1):
            for summed in combinations(range(width), size):
                for cell, (number, key) in counted.items():
                    name = tuple(TOTAL if k in summed else each for k, each in enumerate(cell))
                    before = sums.get(name, (0, 0))
                    sums[name] = before[0] + number, before[1] + key
    for cell in product(*axes):
        if cell not in never:
            yield cell, sums.get(cell, (0, 0))


# ------------------------------------------------------------------------------------------------
# Files of people.


def read_people(
    source: Path, columns: Sequence[str], record_key: str, options: ReadOptions = AS_IT_IS
) -> tuple[list[list[str]], list[int]]:
    """Return the labels of the people in a file, without blanks around them, and their keys.

    Parameters
    ----------
    source : Path
        A row for each person: CSV, or a table of another format.
    columns : sequence of str
        The columns of the labels.
    record_key : str
        The column of the keys.
    options : ReadOptions, optional
        What the file does not say of itself.

    Returns
    -------
    tuple of list of list of str, and list of int
        The labels, shape (people, columns), and the keys, shape (people,).

    Raises
    ------
    InvalidTable
        A column that is not there, or a key that is no whole number; the message names the line.
    """
    with opened_rows(source, options) as rows:
        *places, key_place = rows.places([*columns, record_key])
        labels, keys = list[list[str]](), list[int]()
        for cells, line in rows.at_least_one():
            text = cells[key_place].strip()
            if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_KEY):
                raise rows.refusal(line, f"the record key {shown(text)} is no whole number")
            keys.append(int(text))
            labels.append([cells[place].strip() for place in places])
    return labels, keys


def write_with_keys(
    source: Path,
    target: Path,
    record_key: str,
    keys: int = 256,
    options: ReadOptions = AS_IT_IS,
    rng: np.random.Generator | None = None,
) -> int:
    """Write a file of people again with a column of new record keys, and return their number.

    Parameters
    ----------
    source, target : Path
        A row for each person; a CSV file is written.
    record_key : str
        What the new, last column is called.
    keys : int, default 256
        The number of keys.
    options : ReadOptions, optional
        What the file does not say of itself.
    rng : numpy.random.Generator, optional
        As of `draw_record_keys`.

    Returns
    -------
    int

    Raises
    ------
    InvalidTable
        There is such a column already: new keys for old ones would change the noise of every cell,
        and two tables of the same people would average it out.
    """
    with opened_rows(source, options) as rows:
        if record_key in rows.header:
            raise InvalidTable(
                f"{source} has a column {record_key!r} already: other keys would give the same"
                " people other noise, which averages out; nothing was written"
            )
        people = [cells for cells, _ in rows.at_least_one()]
        drawn = draw_record_keys(len(people), keys, rng).tolist()
        lines = ([*cells, key] for cells, key in zip(people, drawn, strict=True))
        write_csv(target, [[*rows.header, record_key], *lines], rows.separator, mark=rows.mark)
    return len(people)
