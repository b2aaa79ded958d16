"""SymbolicMechanism: a table of rational functions of alpha, and what is true of it.

Privacy and the seven properties are linear inequalities between entries, so that for a table in
alpha each is a statement about the signs of polynomials. Where it holds is a finite union of
intervals, found exactly: `mechdesign.symbolic.semialgebraic`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from flint import fmpz_poly

from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import Rational
from mechdesign.exceptions import InvalidMechanism, NotSquare
from mechdesign.index_table import IndexTable
from mechdesign.losses import Loss
from mechdesign.lp.basis import to_fmpq, to_fraction
from mechdesign.mechanism import Mechanism
from mechdesign.privacy import Neighbours, Privacy
from mechdesign.properties import SEVEN, PropertyLike, resolve
from mechdesign.symbolic.constraints import constraints_in_alpha
from mechdesign.symbolic.rational_function import ALPHA, NIL, RationalFunction
from mechdesign.symbolic.semialgebraic import Region, nonnegative


@dataclass(frozen=True)
class SymbolicAudit:
    """What a proof of privacy for all alpha found.

    Attributes
    ----------
    private : Region
        The alpha at which no entry is negative and none exceeds 1/alpha times the one of a
        neighbouring input.
    tight : bool
        Whether some ratio is exactly 1/alpha for every alpha: the privacy is used in full.
    violations : tuple of (int, tuple of int, Region)
        (output i, inputs (j, j'), alpha at which P[i, j'] < alpha P[i, j]), for every entry and
        neighbour that break it anywhere.

    Under a `Metric` alpha^d takes the place of alpha for neighbours at distance d.
    """

    private: Region
    tight: bool
    violations: tuple[tuple[int, tuple[int, int], Region], ...]

    @property
    def holds(self) -> bool:
        """Whether the mechanism is private for every alpha in (0, 1)."""
        return self.private.everywhere


@dataclass(frozen=True, eq=False)
class SymbolicMechanism:
    """A table of rational functions of alpha that claims privacy alpha.

    ``P[i, j] = weights[i][j] / denominator`` is Pr[output i | input j]; ``m[i, j]`` is an entry as
    a `RationalFunction`. Signs and privacy are not checked on construction: `audit` proves them, or
    says where they fail.

    Attributes
    ----------
    weights : tuple of tuple of flint.fmpz_poly
        Integer polynomials in alpha, shape (outputs, inputs).
    denominator : flint.fmpz_poly
        An integer polynomial in alpha, not 0.
    neighbours : str, int, tuple of pairs of int, or Metric
        Which inputs are neighbours, as in `Privacy`.

    Raises
    ------
    InvalidMechanism
        A ragged or empty table, a denominator of 0, or a column that does not sum to one for all
        alpha.
    """

    weights: tuple[tuple[fmpz_poly, ...], ...]
    denominator: fmpz_poly
    neighbours: Neighbours = "adjacent"
    """Which inputs are neighbours, as in `Privacy`."""

    def __post_init__(self) -> None:
        if not self.weights or not self.weights[0] or len({len(row) for row in self.weights}) != 1:
            raise InvalidMechanism(
                "a mechanism needs at least one output, one input, and rows of one length"
            )
        if self.denominator.is_zero():
            raise InvalidMechanism("the common denominator is 0")
        for j, column in enumerate(zip(*self.weights, strict=True)):
            if sum(column, NIL) != self.denominator:
                raise InvalidMechanism(
                    f"column {j} sums to {RationalFunction(sum(column, NIL), self.denominator)}, "
                    "not to 1 for all alpha"
                )
        set_fields(self, weights=tuple(map(tuple, self.weights)))
        privacy = Privacy(alpha=1, neighbours=self.neighbours)
        privacy.pairs(self.inputs)  # an explicit neighbour list must fit the table
        set_fields(self, neighbours=privacy.neighbours)

    @property
    def outputs(self) -> int:
        """The number of outputs (rows)."""
        return len(self.weights)

    @property
    def inputs(self) -> int:
        """The number of inputs (columns)."""
        return len(self.weights[0])

    def __getitem__(self, cell: tuple[int, int]) -> RationalFunction:
        return RationalFunction(self.weights[cell[0]][cell[1]], self.denominator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicMechanism) and (self.neighbours, self.table) == (
            other.neighbours,
            other.table,
        )

    def __hash__(self) -> int:
        return hash((self.neighbours, self.table))

    @cached_property
    def table(self) -> tuple[tuple[RationalFunction, ...], ...]:
        """The entries in lowest terms, rows are outputs."""
        return tuple(tuple(self[i, j] for j in range(self.inputs)) for i in range(self.outputs))

    def at(self, alpha: Rational) -> Mechanism:
        """The exact mechanism for one alpha.

        InvalidMechanism where an entry is negative, ZeroDivisionError at a pole.
        """
        privacy = Privacy(alpha=alpha, neighbours=self.neighbours)
        point = to_fmpq(privacy.alpha)
        scale = self.denominator(point)
        return Mechanism(
            [[to_fraction(weight(point) / scale) for weight in row] for row in self.weights],
            privacy,
        )

    def audit(self) -> SymbolicAudit:
        """Privacy between all neighbours and all outputs, for all alpha in (0, 1) at once."""
        privacy = Privacy(alpha=1, neighbours=self.neighbours)
        pairs, distances = (
            privacy.pairs(self.inputs).tolist(),
            privacy.distances(self.inputs).tolist(),
        )
        allowed = {d: ALPHA**d for d in set(distances)}
        ordered = [
            (j, k, d)
            for (a, b), d in zip(pairs, distances, strict=True)
            for j, k in ((a, b), (b, a))
        ]
        slacks = {
            (i, (j, k)): row[k] - allowed[d] * row[j]
            for i, row in enumerate(self.weights)
            for j, k, d in ordered
        }
        private = nonnegative(
            [*slacks.values(), *(weight for row in self.weights for weight in row)],
            self.denominator,
        )
        broken = []
        if not private.everywhere:
            broken = [
                (i, pair, nonnegative([slack], self.denominator).complement())
                for (i, pair), slack in slacks.items()
            ]
        tight = any(
            slack.is_zero()
            for (i, (j, _)), slack in slacks.items()
            if not self.weights[i][j].is_zero()
        )
        return SymbolicAudit(private, tight, tuple(item for item in broken if item[2]))

    def where(self, item: PropertyLike) -> Region:
        """The alpha at which a property holds.

        Nowhere if it is one of the seven and not defined for a table of this shape.

        Raises NotPolynomial for a property of your own whose constraints depend on alpha in another
        way than `constraints_in_alpha` supports.
        """
        wanted = resolve(item)
        at = IndexTable(self.outputs, self.inputs)
        flat = [weight for row in self.weights for weight in row]
        try:
            groups = constraints_in_alpha(
                lambda privacy: wanted.constraints(at, privacy), self.neighbours
            )
        except NotSquare:
            if wanted not in SEVEN:
                raise
            return Region((), (False,))
        slacks = (slack for rows in groups for slack in rows.slacks(flat, self.denominator))
        return nonnegative(slacks, self.denominator)

    def properties(self) -> dict[str, Region]:
        """Where each of the seven properties of thesis 6.4 holds, by short name."""
        return {item.short: self.where(item) for item in SEVEN}

    def loss(self, loss: Loss) -> RationalFunction:
        """The expected cost under the loss's prior.

        ValueError for a worst case, which is no rational function.
        """
        if loss.worst_case:
            raise ValueError(
                "the worst case over the inputs is the largest of several functions of alpha; "
                "ask for a prior instead"
            )
        costs, prior = loss.costs(self.outputs, self.inputs), loss.weights(self.inputs)
        prices = [cost * share for row in costs for cost, share in zip(row, prior, strict=True)]
        scale = math.lcm(*(price.denominator for price in prices))
        flat = (weight for row in self.weights for weight in row)
        total = sum(
            (int(price * scale) * weight for price, weight in zip(prices, flat, strict=True)), NIL
        )
        return RationalFunction(total, self.denominator * scale)

    def __str__(self) -> str:
        cells = dict[RationalFunction, list[str]]()
        for i, row in enumerate(self.table):
            for j, entry in enumerate(row):
                cells.setdefault(entry, []).append(f"P[{i}, {j}]")
        return "\n".join(f"{' = '.join(names)} = {entry}" for entry, names in cells.items())

    def latex(self) -> str:
        """The table as a LaTeX array, without dollar signs."""
        rows = (" & ".join(entry.latex() for entry in row) for row in self.table)
        body = " \\\\\n".join(rows)
        return f"\\left(\\begin{{array}}{{{'c' * self.inputs}}}\n{body}\n\\end{{array}}\\right)"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"
