"""SymbolicMechanism: a table of rational functions of alpha, and what is true of it.

Privacy and the seven properties are linear inequalities between entries, so that for a table in
alpha each is a statement about the signs of polynomials. Where it holds is a finite union of
intervals, found exactly: `mechdesign.symbolic.semialgebraic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from flint import fmpq_poly, fmpz_poly

from mechdesign.base import Integers, Rational, set_fields, whole
from mechdesign.exceptions import InvalidMechanism, MechanismError, NotSquare
from mechdesign.losses import Loss
from mechdesign.lp.basis import to_fmpq, to_fraction
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.table import IndexTable
from mechdesign.named import explicit_fair_weights, geometric_weights, krr_weights
from mechdesign.privacy import Metric, Neighbours, Privacy
from mechdesign.properties import SEVEN, PropertyLike, resolve
from mechdesign.symbolic.semialgebraic import (
    ALPHA,
    NIL,
    ONE,
    Polynomials,
    RationalFunction,
    Region,
    nonnegative,
)


@dataclass(frozen=True)
class SymbolicAudit:
    """The result of an audit of privacy for all alpha at once.

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
    neighbours: Neighbours = "adjacent"  #: The neighbours among the inputs, as in `Privacy`.

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
        """The table of entries in lowest terms, rows are outputs."""
        return tuple(tuple(self[i, j] for j in range(self.inputs)) for i in range(self.outputs))

    def at(self, alpha: Rational) -> Mechanism:
        """Return the exact mechanism for one alpha.

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
        """Audit privacy between all neighbours and outputs, for all alpha in (0, 1) at once."""
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
        # P[i, k] >= alpha^d P[i, j] in both directions, times the common denominator: signs of
        # polynomials.
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
        # All slacks together decide first, in one pass; the culprits are sought only if there are
        # some.
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
        """Return the alpha at which a property holds: nowhere if one of the seven is not defined.

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
        """Return where each of the seven properties of thesis 6.4 holds, by short name."""
        return {item.short: self.where(item) for item in SEVEN}

    def loss(self, loss: Loss) -> RationalFunction:
        """Return the expected cost under the loss's prior.

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
        """Return the table as a LaTeX array, without dollar signs."""
        rows = (" & ".join(entry.latex() for entry in row) for row in self.table)
        body = " \\\\\n".join(rows)
        return f"\\left(\\begin{{array}}{{{'c' * self.inputs}}}\n{body}\n\\end{{array}}\\right)"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


# ------------------------------------------------------------------------------------------------
# The constraints of a property or a program for all alpha at once, polynomials in alpha.


#: The alphas at which constraints are evaluated to see how they depend on alpha.
#:
#: At such numbers, coefficients that differ as functions of alpha hardly coincide by chance.
SAMPLES = tuple(Fraction(k, 1009) for k in (211, 499, 661, 787))

#: The largest degree in alpha that is interpolated; only a `Metric` needs more than two.
MAX_DEGREE = 32

_MORE_SAMPLES = tuple(Fraction(k, 1009) for k in range(223, 787, 17))


class NotPolynomial(MechanismError, ValueError):
    """The error for constraints whose coefficients are not polynomials of low degree in alpha."""


@dataclass(frozen=True, eq=False)
class AlphaConstraints:
    """A group of `Constraints` whose ``coefficients`` and ``bound`` are polynomials in alpha.

    They are multiplied by ``scale`` > 0 to make their coefficients integers.
    """

    cells: Integers
    coefficients: Polynomials
    bound: fmpz_poly
    equality: bool
    scale: int

    def slacks(self, weights: Polynomials, denominator: fmpz_poly) -> Iterable[fmpz_poly]:
        """Yield the slack of constraints at ``weights / denominator``, times the denominator."""
        # The slack is left side minus bound; for equations its negative follows.
        offset = self.bound * denominator
        for row in self.cells.tolist():
            slack = sum(
                (c * weights[v] for c, v in zip(self.coefficients, row, strict=True)), -offset
            )
            yield slack
            if self.equality:
                yield -slack


def constraints_in_alpha(
    make: Callable[[Privacy], Iterable[Constraints]], neighbours: Neighbours
) -> list[AlphaConstraints]:
    """Return the constraints that ``make`` gives for a privacy, for all alpha < 1.

    Raises NotPolynomial unless they are polynomials of degree at most two in alpha; of a `Metric`
    with distances up to d > 2, of degree d, at most `MAX_DEGREE`.
    """
    # They are interpolated at three alphas, or d + 1, and checked at one more.
    joined, nodes = [], _nodes(neighbours)
    samples = [list(make(Privacy(alpha=alpha, neighbours=neighbours))) for alpha in nodes]
    if len({len(groups) for groups in samples}) > 1:
        raise NotPolynomial("the number of groups of constraints changes with alpha")
    for same in zip(*samples, strict=True):
        first = same[0]
        if any(
            group.equality != first.equality or not np.array_equal(group.cells, first.cells)
            for group in same
        ):
            raise NotPolynomial(
                f"the constraints {first.name!r} are about other entries for other alpha"
            )
        values = zip(*((*group.coefficients, group.bound) for group in same), strict=True)
        numbers = [_interpolated(nodes, each) for each in values]
        scale = math.lcm(*(int(p.denom()) for p in numbers))
        *coefficients, bound = ((p * scale).numer() for p in numbers)
        joined.append(AlphaConstraints(first.cells, coefficients, bound, first.equality, scale))
    return joined


def _nodes(neighbours: Neighbours) -> tuple[Fraction, ...]:
    if not isinstance(neighbours, Metric):
        return SAMPLES
    farthest = max(
        distance for row in neighbours.distances for distance in row if distance is not None
    )
    return SAMPLES + _MORE_SAMPLES[: max(0, min(farthest, MAX_DEGREE) - 2)]


def _interpolated(nodes: Sequence[Fraction], values: Sequence[Fraction]) -> fmpq_poly:
    """Return the polynomial of least degree with all values but the last; that must fit, too."""
    if len(set(values)) == 1:
        return fmpq_poly([to_fmpq(values[0])])
    *known, last = map(to_fmpq, nodes)
    total = fmpq_poly([])
    for node, value in zip(known, values, strict=False):
        # Lagrange's formula, exact over the rationals: there are few nodes.
        basis = math.prod(
            (fmpq_poly([-other, 1]) for other in known if other != node), start=fmpq_poly([1])
        )
        total += basis * (to_fmpq(value) / basis(node))
    # A function that is no polynomial of this degree differs from its interpolant almost
    # everywhere.
    if total(last) != to_fmpq(values[-1]):
        raise NotPolynomial(
            f"a coefficient is not a polynomial in alpha of degree at most {len(nodes) - 2}"
        )
    return total


# ------------------------------------------------------------------------------------------------
# The named mechanisms in closed form, for every alpha at once.


def geometric(n: int) -> SymbolicMechanism:
    """Return GM for counts 0 .. n, see `named.geometric`."""
    n = _counts(n) - 1
    return _mechanism(*geometric_weights(n, ALPHA)) if n else uniform(0)


def explicit_fair(n: int) -> SymbolicMechanism:
    """Return EM for counts 0 .. n, see `named.explicit_fair`.

    Its exponents are whole numbers for odd n, too.
    """
    n = _counts(n) - 1
    return _mechanism(*explicit_fair_weights(n, ALPHA))


def uniform(n: int) -> SymbolicMechanism:
    """Return UM for counts 0 .. n (Definition 23), which is private for every alpha."""
    size = _counts(n)
    return _mechanism([[ONE] * size] * size, size * ONE)


def randomized_response() -> SymbolicMechanism:
    """Return RR on one bit, see `named.randomized_response`."""
    return geometric(1)


def krr(k: int) -> SymbolicMechanism:
    """Return GRR over k items, local privacy, see `named.krr`."""
    return _mechanism(*krr_weights(_items(k), ALPHA), "all")


def optimized_unary(k: int) -> SymbolicMechanism:
    """Return OUE over k items (thesis 2.4).

    The user's own bit is reported truthfully with probability 1/2; every other bit is 1 with
    probability alpha / (1 + alpha). Output o is the vector of the binary digits of o, 2^k in all;
    local privacy.
    """
    k = _items(k)
    # Bits of other items that are 1 are alpha times as likely as 0, each by itself; the bit of the
    # user's item is fair whatever it is, so that it is masked out of the exponent.
    weights = [
        [ALPHA ** (output & ~(1 << j)).bit_count() for j in range(k)] for output in range(1 << k)
    ]
    return _mechanism(weights, 2 * (1 + ALPHA) ** (k - 1), "all")


def hadamard(order: int) -> SymbolicMechanism:
    """Return HRR over ``order`` items, a power of two >= 2 (thesis 4.7).

    A user reports one of order - 1 Walsh-Hadamard coefficients, its sign by randomized response.
    Output 2 (r - 1) + s is coefficient r with sign (-1)^s; the constant coefficient, r = 0, is left
    out. Local privacy.
    """
    order = _items(order)
    if order < 2 or order & (order - 1):
        raise ValueError(
            f"the order of a Hadamard matrix here is a power of two, at least 2, got {order}"
        )
    # Row 0 of the Walsh-Hadamard matrix is constant: its sign says nothing about the item.
    reports = [(r, s) for r in range(1, order) for s in (0, 1)]
    weights = [
        [ONE if (r & j).bit_count() % 2 == s else ALPHA for j in range(order)] for r, s in reports
    ]
    return _mechanism(weights, (order - 1) * (1 + ALPHA), "all")


def subset_selection(k: int, size: int) -> SymbolicMechanism:
    """Return subset selection over k items (Ye and Barg 2018).

    A user reports a set of ``size`` items. Sets without the user's item are alpha times as probable
    as sets with it. Outputs are the sets in lexicographic order; local privacy. With size 1 this is
    GRR.

    Parameters
    ----------
    k : int
        The number of items, at least 1.
    size : int
        The number of items in a set, 1 .. k.

    Returns
    -------
    SymbolicMechanism
        A table of shape (binomial(k, size), k), with ``neighbours="all"``.

    Raises
    ------
    ValueError
        ``k`` is not a whole number of at least 1, or ``size`` is out of range.
    """
    k = _items(k)
    size = whole(size, "the size of a set", 1, k, what="a number of items")
    weights = [
        [ONE if j in chosen else ALPHA for j in range(k)] for chosen in combinations(range(k), size)
    ]
    # Sets with the item, of weight 1, and sets without it, of weight alpha.
    denominator = math.comb(k - 1, size - 1) + math.comb(k - 1, size) * ALPHA
    return _mechanism(weights, denominator, "all")


def _mechanism(
    weights: Sequence[Sequence[fmpz_poly]],
    denominator: fmpz_poly,
    neighbours: Neighbours = "adjacent",
) -> SymbolicMechanism:
    return SymbolicMechanism(tuple(map(tuple, weights)), denominator, neighbours)


def _counts(n: int) -> int:
    """Return the number of possible counts of n respondents."""
    return whole(n, "n", what="a whole number of respondents") + 1


def _items(k: int) -> int:
    return whole(k, "k", 1, what="a number of items")
