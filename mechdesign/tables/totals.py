"""Rows of a table that add up others: each would be one more group with the same people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mechdesign.base import Booleans, Integers, listed, shown
from mechdesign.exceptions import InvalidTable

_LABELS = (
    *("all", "altogether", "overall", "subtotal", "sum", "total", "totals", "alle", "gesamt"),
    *("insgesamt", "summe", "zusammen", "ensemble", "totale", "tous", "totali", "alles", "totaal"),
    *("todas", "todos", "suma", "razem", "ogółem", "łącznie", "celkem", "összesen", "ukupno"),
    *("kaikki", "yhteensä", "samtliga", "totalt", "итого", "всего", "σύνολο", "toplam", "合計"),
)

_COLUMNS = 5  # columns whose combinations make groups of rows; of more each alone, and pairs


def is_total_label(text: str) -> bool:
    """Whether a label says that a row adds up others."""
    return text.strip().casefold() in _LABELS


def refuse_totals(
    counts: npt.ArrayLike,
    sizes: npt.ArrayLike,
    labels: Sequence[Sequence[str]] = (),
    overlap: int = 1,
    lines: Sequence[int] | None = None,
    remedy: str = "overlap",
    *,
    unit: str = "line",
) -> None:
    """Refuse a table in which rows add up others, unless people may be in so many rows.

    A row is a total if its count and its size are the sums of those of two others or more: of all
    rows, or of all with its labels in some of the columns, known totals left out. So is a row with
    a label such as "Total" if no row that it may add up is larger. Shapes: `counts`, `sizes`,
    `labels` and `lines` (rows,); ``unit`` is what lines are called.
    """
    sums = _totals(np.array([counts, sizes], dtype=np.int64), labels)
    inside = 1 + sum(parts.astype(np.int64) for parts in sums.values())
    if not sums or np.max(inside) <= overlap:
        return
    row = min(sums)
    names = [column[row] for column in labels]
    name = next(filter(is_total_label, names), listed(names))
    where = f"row {row + 1}" if lines is None else f"{unit} {lines[row]}"
    several = f" Or say with {remedy} {np.max(inside)} in how many groups a person is, which costs"
    raise InvalidTable(
        f"{where}{f', {shown(name)},' if name else ''} adds up the counts of"
        f" {sums[row].sum()} other rows: the same people would be counted again. Leave totals out,"
        f" they are estimated from the rest.{f'{several} as many times the epsilon' * bool(remedy)}"
    )


def _totals(numbers: Integers, labels: Sequence[Sequence[str]]) -> dict[int, Booleans]:
    """The rows that add up others, and those, also by way of other totals."""
    rows = numbers.shape[1]
    codes = [np.unique(np.array(column), return_inverse=True)[1] for column in labels]
    most = len(codes) if len(codes) <= _COLUMNS else 2
    groupings = []
    for some in (some for k in range(most + 1) for some in combinations(codes, k)):
        groups = np.zeros(rows, dtype=np.int64)
        for code in some:
            groups = np.unique(groups * rows + code, return_inverse=True)[1]
        groupings.append(groups)
    totals: dict[int, Booleans] = {}
    active = np.ones(rows, dtype=bool)
    while True:
        fresh: dict[int, Booleans] = {}
        for groups in groupings:
            sums = np.zeros((2, rows), dtype=np.int64)
            for which in (0, 1):
                np.add.at(sums[which], groups[active], numbers[which, active])
            people = np.bincount(groups[active & (numbers[1] > 0)], minlength=rows)
            halves = (2 * numbers == sums[:, groups]).all(axis=0)
            halves &= active & (numbers[1] > 0) & (people[groups] > 2)
            for row in np.flatnonzero(halves).tolist():
                fresh.setdefault(row, active & (groups == groups[row]))
        if not fresh and not totals:
            fresh = _labelled(numbers[1], codes, labels)
        if not fresh:
            break
        for row, parts in fresh.items():
            parts[row] = False
        totals |= fresh
        active[list(fresh)] = False
    for row in totals:  # Warshall's closure: totals of totals add up what these do
        for parts in totals.values():
            parts |= totals[row] & parts[row]
    return totals


def _labelled(
    sizes: Integers, codes: Sequence[Integers], labels: Sequence[Sequence[str]]
) -> dict[int, Booleans]:
    """The rows that are totals by a label, and those that they may add up."""
    said = [np.array([*map(is_total_label, column)], dtype=bool) for column in labels]
    named = np.logical_or.reduce([np.zeros(len(sizes), dtype=bool), *said])
    totals: dict[int, Booleans] = {}
    for place, column in enumerate(said):
        for row in np.flatnonzero(column).tolist():
            others = [code == code[row] for k, code in enumerate(codes) if k != place]
            parts = np.logical_and.reduce([~named, *others])
            parts = parts if parts.sum() > 1 else ~named
            if parts.sum() > 1 and sizes[row] >= sizes[parts].max():
                totals.setdefault(row, parts.copy())
    return totals
