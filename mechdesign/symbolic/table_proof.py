"""Leaves of proofs of privacy that are whole tables, and tables of numbers followed in alpha."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from flint import fmpz_poly

from mechdesign.exceptions import MechanismError
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.optimisation.optimal import Design
from mechdesign.symbolic.critical_regions import explain
from mechdesign.symbolic.privacy_proof import Fault, PrivacyProof
from mechdesign.symbolic.semialgebraic import (
    ALPHA,
    ONE,
    RationalFunction,
    Region,
    nonnegative,
    rational,
)
from mechdesign.symbolic.table import SymbolicMechanism

_MOST_UNKNOWNS = 8  # the number of different largest entries that rows may have

# The number of inputs up to which designs are explained: of larger ones it takes long.
_MOST_INPUTS = 16


@dataclass(frozen=True)
class TableProof(PrivacyProof):
    """A leaf: the whole table as rational functions, proved by its `SymbolicAudit`.

    A table of plain numbers, of the ratio r, keeps alpha only up to 1 / r: see ``region``.

    Parameters
    ----------
    table : SymbolicMechanism
        Rows are reports and columns items.
    """

    table: SymbolicMechanism

    @property
    def loss(self) -> Fraction:
        return Fraction(1)

    def faults(self) -> Iterator[Fault]:
        private = self._private()
        if not private.everywhere:
            yield Fault(f"{self.name}: the table is private only for {private}", private)

    @property
    def _rows(self) -> set[frozenset[RationalFunction]]:
        """The set of different weights of each row."""
        return {frozenset(map(rational, row)) for row in self.table.weights if any(row)}

    @property
    def spreads(self) -> frozenset[RationalFunction]:
        # Of two entries of a row one is at least the other for all alpha, or alpha is a bound
        ratios = set[RationalFunction]()
        for row in self._rows:
            half = Fraction(1, 2)
            least, largest = (end(row, key=lambda entry: entry(half)) for end in (min, max))
            ends = [*(entry - least for entry in row), *(largest - entry for entry in row)]
            if nonnegative([end.numerator for end in ends], ONE).everywhere:
                ratios.add(least / largest)
            else:
                ratios.add(rational(ALPHA))
        return frozenset(ratios)

    def _private(self) -> Region:
        table = self.table
        if table.neighbours != "all":
            return table.audit().private
        # Any two different entries of a row are compared: rows with the same ones count once
        rows = self._rows
        slacks = [
            (low - high * ALPHA).numerator for row in rows for low, high in permutations(row, 2)
        ]
        entries = (entry.numerator for entry in frozenset().union(*rows))
        return nonnegative([*slacks, *entries], table.denominator)

    def lines(self) -> Iterator[str]:
        table = self.table
        yield f"a table of {table.outputs} reports and {table.inputs} items, every ratio checked"


def in_alpha(mechanism: Mechanism) -> SymbolicMechanism:
    """Return the table for every alpha, of which this one is that for its own.

    It is found where every row's entries are powers of alpha times the largest, as in all extremal
    and all named local mechanisms. Otherwise all entries are constants.
    """
    # The largest entries, taken to be equal functions of alpha where they are equal numbers, follow
    # from the columns' sums. Designs of few inputs that keep their certificate are explained
    # (`mechdesign.symbolic.explain`).
    for attempt in (_followed, _explained):
        table = attempt(mechanism)
        if table is not None and table.at(mechanism.privacy.alpha).table == mechanism.table:
            return table
    weights = tuple(tuple(fmpz_poly([weight]) for weight in row) for row in mechanism.weights)
    denominator = fmpz_poly([mechanism.denominator])
    return SymbolicMechanism(weights, denominator, mechanism.privacy.neighbours)


def _followed(mechanism: Mechanism) -> SymbolicMechanism | None:
    """Return the table whose rows have the same powers of alpha; None unless there is only one."""
    powers = _powers(mechanism)
    if powers is None:
        return None
    largest = [max(row) for row in mechanism.weights]
    kinds = list(dict.fromkeys(top for top in largest if top))
    if len(kinds) > _MOST_UNKNOWNS:
        return None
    # Column j sums to 1: linear in the largest entries, with sums of powers as coefficients.
    equations = [
        [
            sum((row[j] for row, top in zip(powers, largest, strict=True) if top == kind), ONE * 0)
            for kind in kinds
        ]
        for j in range(mechanism.inputs)
    ]
    solution = _solved(equations)
    if solution is None:
        return None
    denominator = ONE
    for value in solution:
        denominator *= value.denominator
    scale = dict(zip(kinds, solution, strict=True))
    common = {top: of.numerator * (denominator // of.denominator) for top, of in scale.items()}
    weights = tuple(
        tuple(entry * common.get(top, ONE) for entry in row)
        for row, top in zip(powers, largest, strict=True)
    )
    return SymbolicMechanism(weights, denominator, mechanism.privacy.neighbours)


def _explained(mechanism: Mechanism) -> SymbolicMechanism | None:
    """Return the table of a design around its own alpha; None if it is no small, proved one."""
    statement = mechanism.certificate
    if statement is None or mechanism.inputs > _MOST_INPUTS:
        return None
    try:
        return explain(Design(mechanism, statement)).mechanism
    except (MechanismError, ValueError):
        return None


def _powers(mechanism: Mechanism) -> list[list[fmpz_poly]] | None:
    """Return each entry over the largest of its row as a power of alpha; None if some is none."""
    alpha = mechanism.privacy.alpha
    if alpha == 1:
        return None
    known = {Fraction(1): ONE, Fraction(0): ONE * 0}
    value, power = alpha, ALPHA
    for _ in range(mechanism.inputs):
        known[value] = power
        value, power = value * alpha, power * ALPHA
    powers = []
    for row in mechanism.weights:
        top = max(row) or 1
        entries = [known.get(Fraction(weight, top)) for weight in row]
        if any(entry is None for entry in entries):
            return None
        powers.append([entry for entry in entries if entry is not None])
    return powers


def _solved(equations: Sequence[Sequence[fmpz_poly]]) -> list[RationalFunction] | None:
    """Return the only numbers with which all sums are 1; None unless there are such."""
    different = dict.fromkeys(tuple(map(rational, row)) for row in equations)
    rows = [[*row, rational(1)] for row in different]
    nothing, unknowns = rational(0), len(equations[0])
    for column in range(unknowns):
        # Gauss-Jordan over the field of rational functions: any entry that is not the function 0
        # will do as a pivot, even one that is 0 at some alpha.
        pivot = next((k for k in range(column, len(rows)) if rows[k][column] != nothing), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = [entry / rows[column][column] for entry in rows[column]]
        for k, row in enumerate(rows):
            if k != column and row[column] != nothing:
                times = row[column]
                rows[k] = [entry - times * other for entry, other in zip(row, lead, strict=True)]
        rows[column] = lead
    if any(entry != nothing for row in rows[unknowns:] for entry in row):
        return None
    return [row[-1] for row in rows[:unknowns]]
