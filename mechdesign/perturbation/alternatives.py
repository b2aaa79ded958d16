"""compare_perturbation(...): perturbation tables beside rounding and unbounded noise.

Rounding is a perturbation table, too. The geometric mechanism on all integers is none, but what it
reveals is known: with alpha = e^-epsilon every output of at most the count is 1 / alpha times as
likely as with one person more, so that delta at e^epsilon' = x is
``max(0, 1 - x alpha) / (1 + alpha)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mechdesign.accounting.pair_law import exp_below
from mechdesign.base import aligned, brief, percent, rounded_up, to_text, whole
from mechdesign.perturbation.disclosure import Disclosure
from mechdesign.perturbation.table import PerturbationTable

#: The epsilons at which tables are compared.
COMPARED = ("1/2", "1", "2")

SUMMED = 10  #: The number of cells whose sum is compared with their total.

_DIGITS = 10**9  # that alpha of the geometric mechanism has at most, to keep its fractions short


def rounding_table(base: int, at_random: bool = False) -> PerturbationTable:
    """Return rounding to multiples of a base, as a perturbation table.

    Parameters
    ----------
    base : int
        At least 2.
    at_random : bool, default False
        Down or up without bias, as the key of the cell tells; otherwise to the nearest multiple,
        halves up.

    Returns
    -------
    PerturbationTable

    Raises
    ------
    ValueError
        A smaller base.
    """
    base = whole(base, "the base", 2)
    if at_random:
        laws = [{-r: base - r, base - r: r} if r else {0: base} for r in range(base)]
    else:
        laws = [{(base - r if 2 * r >= base else -r): base} for r in range(base)]
    return PerturbationTable.of_laws(base, laws, period=base)


class ComparedTable(NamedTuple):
    """What a way of publishing a count reveals, and how far off it is.

    Attributes
    ----------
    name : str
        What it is.
    deltas : tuple of Fraction
        delta of the worst two neighbouring counts at the epsilons of `COMPARED`, rounded up if the
        way is not a table.
    certain : Fraction
        The delta that no epsilon avoids.
    bias : Fraction
        The largest size of a bias of a count.
    mean_square : Fraction
        The largest expected square of the noise of a count.
    apart : Fraction
        The largest expected square of the difference between a published total and the sum of its
        `SUMMED` published cells, or a bound on it; their noise is independent in pairs.
    """

    name: str
    deltas: tuple[Fraction, ...]
    certain: Fraction
    bias: Fraction
    mean_square: Fraction
    apart: Fraction


@dataclass(frozen=True)
class PerturbationComparison:
    """Perturbation tables beside others; ``str()`` is a table.

    Attributes
    ----------
    rows : tuple of ComparedTable
        First the tables that were given.
    """

    rows: tuple[ComparedTable, ...]

    def json(self) -> list[dict[str, object]]:
        """Return the rows as what JSON holds: fractions as texts."""
        return [
            {
                "name": row.name,
                "delta": dict(zip(COMPARED, map(to_text, row.deltas), strict=True)),
                "certain": to_text(row.certain),
                "bias": to_text(row.bias),
                "mean_square": to_text(row.mean_square),
                "apart": to_text(row.apart),
            }
            for row in self.rows
        ]

    def __str__(self) -> str:
        titles = "for certain", "bias", "RMSE", f"total - {SUMMED} cells"
        lines = [("", *(f"delta at {e}" for e in COMPARED), *titles)]
        for row in self.rows:
            deltas = (rounded_up(delta, 3) for delta in row.deltas)
            root, apart = (brief(math.sqrt(x), 3) for x in (row.mean_square, row.apart))
            certain = percent(row.certain, 2, up=True)
            lines.append((row.name, *deltas, certain, brief(row.bias, 3), root, apart))
        return "\n".join(aligned(lines))


def compare_perturbation(
    tables: Mapping[str, PerturbationTable], *, protected: int = 0, threshold: int = 0
) -> PerturbationComparison:
    """Compare tables with rounding to 3 and to 5, and with unbounded noise of the same variance.

    Parameters
    ----------
    tables : mapping of str to PerturbationTable
        Names -> tables, at least one. Unbounded noise has the largest variance of the last one, if
        that is above 0.
    protected : int, default 0
        As of `Disclosure`.
    threshold : int, default 0
        Of the tables that are given, as of `Disclosure`.

    Returns
    -------
    PerturbationComparison

    Raises
    ------
    ValueError
        No table, or a number out of range.
    """
    if not tables:
        raise ValueError("name at least one table to compare")
    rows = [_row(name, Disclosure(t, threshold, protected)) for name, t in tables.items()]
    for base in (3, 5):
        for at_random in (False, True):
            table = rounding_table(base, at_random)
            name = f"rounding to {base}{', at random' if at_random else ''}"
            rows.append(_row(name, Disclosure(table, 0, min(protected, table.largest))))
    *_, last = tables.values()
    variance = max(last.variance(count) for count in range(last.largest + 1))
    if variance:
        rows.append(_unbounded(variance))
    return PerturbationComparison(tuple(rows))


def _row(name: str, found: Disclosure) -> ComparedTable:
    curve, counts = found.curve, range(found.table.largest + 1)
    biases = [found.bias(count) for count in counts]
    squares = [found.mean_square(count) for count in counts]
    variance = max(square - bias**2 for square, bias in zip(squares, biases, strict=True))
    # The total and the cells may be biased in opposite ways
    least, most = min(biases), max(biases)
    beside = max(SUMMED * most - least, most - SUMMED * least)
    return ComparedTable(
        name,
        tuple(map(curve.delta, COMPARED)),
        curve.unbounded,
        max(map(abs, biases)),
        max(squares),
        (SUMMED + 1) * variance + beside**2,
    )


def _unbounded(wanted: Fraction) -> ComparedTable:
    """Return the row of the geometric mechanism with nearly a variance."""
    # 2 alpha / (1 - alpha)^2 rises with alpha
    alpha = Fraction(float(1 + wanted - math.sqrt(1 + 2 * wanted)) / float(wanted))
    alpha = Fraction(int(alpha * _DIGITS), _DIGITS)
    deltas = tuple(
        max(Fraction(0), 1 - exp_below(Fraction(e)) * alpha) / (1 + alpha) for e in COMPARED
    )
    epsilon = -math.log(alpha)
    name = f"unbounded geometric noise, epsilon {epsilon:.3f}"
    square = 2 * alpha / (1 - alpha) ** 2
    return ComparedTable(name, deltas, Fraction(0), Fraction(0), square, (SUMMED + 1) * square)
