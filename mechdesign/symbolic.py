"""Mechanisms whose entries are rational functions of alpha: closed forms, and proofs for every alpha in (0, 1) at once.

Privacy and the seven properties are linear inequalities between entries, so that for a table in alpha each is a statement
about the signs of polynomials. Where it holds is a finite union of intervals with algebraic ends, found exactly: integer
polynomials are factored, and the real roots of the factors isolated by Descartes' rule of signs and bisection. No float
takes part.

>>> geometric(4).audit().holds
True
>>> print(geometric(4).where("WH"))
0 < α ≤ 2/3
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, total_ordering
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np
from flint import fmpq, fmpq_poly, fmpz_poly

from mechdesign.exact import to_fmpq, to_fraction
from mechdesign.exceptions import InvalidMechanism, MechanismError
from mechdesign.losses import Loss
from mechdesign.mechanism import Mechanism
from mechdesign.named import _em_power
from mechdesign.privacy import Neighbours, Privacy
from mechdesign.properties import SEVEN, PropertyLike, resolve
from mechdesign.rational import Rational, exact
from mechdesign.rows import IntArray, Rows
from mechdesign.text import shown

Polynomials: TypeAlias = Sequence[fmpz_poly]

ALPHA, ONE, NIL = fmpz_poly([0, 1]), fmpz_poly([1]), fmpz_poly([])

SAMPLES = tuple(Fraction(k, 1009) for k in (211, 499, 661, 787))
"""Where rows are evaluated to see how they depend on alpha: numbers at which nothing happens by coincidence."""


class NotPolynomial(MechanismError, ValueError):
    """Rows of a property depend on alpha in another way than by coefficients that are polynomials of degree at most two."""


# Numbers and sets -------------------------------------------------------------------------------------------------------


@total_ordering
class Root:
    """An irrational algebraic number in (0, 1); compares exactly with others and with rational numbers.

    Attributes
    ----------
    coefficients
        Of its irreducible integer polynomial, constant term first.
    index
        Which of that polynomial's roots in (0, 1) it is, from 0 upwards.
    """

    def __init__(self, coefficients: tuple[int, ...], index: int, low: Fraction, high: Fraction) -> None:
        self.coefficients, self.index = coefficients, index
        self._bracket = low, high  # with this root in it and no other; made narrower when a comparison needs it
        self._rising = fmpz_poly(list(coefficients))(to_fmpq(high)) > 0

    def bracket(self, width: Fraction) -> tuple[Fraction, Fraction]:
        """Rational numbers below and above, at most ``width`` apart."""
        polynomial, (low, high) = fmpz_poly(list(self.coefficients)), self._bracket
        while high - low > width:
            middle = (low + high) / 2
            if (polynomial(to_fmpq(middle)) > 0) == self._rising:
                high = middle
            else:
                low = middle
        self._bracket = low, high
        return low, high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Root) and (self.coefficients, self.index) == (other.coefficients, other.index)

    def __hash__(self) -> int:
        return hash((self.coefficients, self.index))

    def __lt__(self, other: Root | Fraction | int) -> bool:
        if self == other:
            return False
        width = Fraction(1)
        while True:  # they differ: other roots have other polynomials, or lie outside this bracket
            (low, high), (other_low, other_high) = self.bracket(width), _bracket(other, width)
            if high <= other_low or other_high <= low:
                return high <= other_low
            width /= 16

    def __float__(self) -> float:
        return float(self.bracket(Fraction(1, 1 << 80))[0])

    def __str__(self) -> str:
        return f"{self._decimals()}... (where {self._equation(False)} = 0)"

    def __repr__(self) -> str:
        return f"Root({self})"

    def latex(self) -> str:
        return rf"{self._decimals()}\ldots\;({self._equation(True)} = 0)"

    def _decimals(self) -> str:
        return f"0.{math.floor(self.bracket(Fraction(1, 1 << 80))[0] * 10**6):06}"

    def _equation(self, latex: bool) -> str:
        polynomial = fmpz_poly(list(self.coefficients))
        return _sum(-polynomial if _falls(polynomial) else polynomial, latex)


Endpoint: TypeAlias = Fraction | Root


def _bracket(value: Root | Fraction | int, width: Fraction) -> tuple[Fraction, Fraction]:
    return value.bracket(width) if isinstance(value, Root) else (Fraction(value), Fraction(value))


def between(low: Endpoint, high: Endpoint) -> Fraction:
    """A short rational number strictly between two numbers, low < high."""
    scale = 4
    while True:
        (_, start), (end, _) = _bracket(low, Fraction(1, scale)), _bracket(high, Fraction(1, scale))
        middle = ((start + end) / 2).limit_denominator(scale)
        if start < middle < end:
            return middle
        scale *= 2


@dataclass(frozen=True)
class Interval:
    """The alpha from ``low`` to ``high``; an end belongs to it if it is ``closed``. 0 and 1 never do."""

    low: Endpoint
    high: Endpoint
    closed: tuple[bool, bool]

    @classmethod
    def of(cls, low: Endpoint, high: Endpoint) -> Interval:
        """With both ends, but for 0 and 1."""
        return cls(low, high, (low > 0, high < 1))

    def __contains__(self, alpha: Endpoint) -> bool:
        return alpha in self.region

    @property
    def region(self) -> Region:
        """The same set, as a region."""
        if self.low == self.high:
            return Region((self.low,), (False, True, False))
        below = (False, self.closed[0]) if self.low > 0 else ()
        above = (self.closed[1], False) if self.high < 1 else ()
        return Region(tuple(end for end in (self.low, self.high) if 0 < end < 1), (*below, True, *above))

    def __str__(self) -> str:
        if self.low == self.high:
            return f"α = {self.low}"
        signs = ["≤" if closed else "<" for closed in self.closed]
        return f"{self.low} {signs[0]} α {signs[1]} {self.high}"

    def latex(self) -> str:
        low, high = _latex_number(self.low), _latex_number(self.high)
        if self.low == self.high:
            return rf"\alpha = {low}"
        signs = [r"\le" if closed else "<" for closed in self.closed]
        return rf"{low} {signs[0]} \alpha {signs[1]} {high}"


@dataclass(frozen=True)
class Region:
    """A set of alpha in (0, 1): ``inside`` says, in turn, for the cells between ``points`` and the points, whether they belong.

    Two regions are equal exactly if they are the same set.
    """

    points: tuple[Endpoint, ...]
    inside: tuple[bool, ...]

    @classmethod
    def of(cls, points: Sequence[Endpoint], inside: Sequence[bool]) -> Region:
        """The region with these points, in increasing order, without those at which nothing changes."""
        kept = [k for k in range(len(points)) if len(set(inside[2 * k : 2 * k + 3])) > 1]
        flags = [flag for k in kept for flag in inside[2 * k : 2 * k + 2]]
        return cls(tuple(points[k] for k in kept), (*flags, inside[-1]))

    @property
    def everywhere(self) -> bool:
        """Whether it is all of (0, 1)."""
        return all(self.inside)

    def __bool__(self) -> bool:
        return any(self.inside)

    def __contains__(self, alpha: Endpoint) -> bool:
        return 0 < alpha < 1 and self.inside[sum(1 + (point < alpha) for point in self.points if point <= alpha)]

    def complement(self) -> Region:
        """The alpha in (0, 1) that do not belong."""
        return Region(self.points, tuple(not flag for flag in self.inside))

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The maximal intervals of which it consists, in order; single points are closed ones."""
        ends: tuple[Endpoint, ...] = (Fraction(0), *self.points, Fraction(1))
        found, start = list[Interval](), None
        for k, flag in enumerate((*self.inside, False)):
            if flag and start is None:
                start = k
            elif not flag and start is not None:
                # Flag k even is of the cell above ends[k / 2], k odd of the point ends[(k + 1) / 2].
                found.append(Interval(ends[(start + 1) // 2], ends[(k + 1) // 2], (start % 2 == 1, k % 2 == 0)))
                start = None
        return tuple(found)

    def around(self, alpha: Endpoint) -> Interval | None:
        """The interval that holds ``alpha``; None if it does not belong."""
        return next((interval for interval in self.intervals if alpha in interval), None)

    def covers(self, interval: Interval) -> bool:
        """Whether all of an interval belongs."""
        return self & interval.region == interval.region

    def __and__(self, other: Region) -> Region:
        points = sorted({*self.points, *other.points})
        inside = list[bool]()
        for low, high in pairwise([Fraction(0), *points, Fraction(1)]):
            inside += [alpha in self and alpha in other for alpha in (low, between(low, high))]
        return Region.of(points, inside[1:])

    def __str__(self) -> str:
        if self.everywhere:
            return "all α"
        return " or ".join(str(interval) for interval in self.intervals) or "no α"

    def latex(self) -> str:
        return r" \;\text{or}\; ".join(interval.latex() for interval in self.intervals) or r"\emptyset"


def roots(polynomial: fmpz_poly) -> list[Endpoint]:
    """The real roots in (0, 1) of a polynomial that is not 0, each once, in no particular order."""
    return [root for factor, _ in polynomial.factor()[1] for root in _isolated(tuple(map(int, factor.coeffs())))]


@lru_cache(maxsize=4096)
def _isolated(coefficients: tuple[int, ...]) -> tuple[Endpoint, ...]:
    """The roots in (0, 1) of an irreducible polynomial, by Descartes' rule of signs and bisection (Vincent, Collins, Akritas)."""
    if len(coefficients) == 2:
        root = Fraction(-coefficients[0], coefficients[1])
        return (root,) if 0 < root < 1 else ()
    found = list[Endpoint]()
    stack = [(fmpz_poly(list(coefficients)), Fraction(0), Fraction(1))]  # polynomials moved so that their interval is (0, 1)
    while stack:
        moved, low, high = stack.pop()
        signs = [c > 0 for c in _on_half_line(moved) if c != 0]
        changes = sum(a != b for a, b in pairwise(signs))
        if changes == 1:
            found.append(Root(coefficients, len(found), low, high))
        elif changes > 1:
            degree, middle = moved.degree(), (low + high) / 2
            left = fmpz_poly([c << (degree - k) for k, c in enumerate(map(int, moved.coeffs()))])
            stack += [(left(ALPHA + 1), middle, high), (left, low, middle)]
    return tuple(found)


def _on_half_line(polynomial: fmpz_poly) -> list[int]:
    """Coefficients of (1+x)^degree p(1/(1+x)): as many changes of sign as p has roots in (0, 1), or more by an even number."""
    return [int(c) for c in fmpz_poly(polynomial.coeffs()[::-1])(ALPHA + 1).coeffs()]


def where(nonnegative: Iterable[fmpz_poly], nonzero: Iterable[fmpz_poly] = ()) -> Region:
    """The alpha in (0, 1) at which all the first polynomials are at least 0 and none of the second is 0."""
    excluded = {root for polynomial in nonzero for root in roots(polynomial)}
    distinct = {tuple(map(int, p.coeffs())): p for p in nonnegative}
    decided = [(p, set(roots(p))) for p in distinct.values() if min(p.coeffs(), default=0) < 0 and min(_on_half_line(p)) < 0]
    points = sorted(excluded.union(*(zeros for _, zeros in decided)))
    inside = list[bool]()
    ends: list[Endpoint] = [Fraction(0), *points, Fraction(1)]
    for point, following in pairwise(ends):
        sample = to_fmpq(between(point, following))
        negative = [zeros for p, zeros in decided if p(sample) < 0]
        if point != 0:
            # A polynomial that is not 0 at a point has there the sign that it has in the cell beyond.
            inside.append(point not in excluded and all(point in zeros for zeros in negative))
        inside.append(not negative)
    return Region.of(points, inside)


def nonnegative(numerators: Iterable[fmpz_poly], denominator: fmpz_poly) -> Region:
    """The alpha in (0, 1) at which every ``numerator / denominator`` is finite and at least 0."""
    # Times the square of the denominator; only its sign matters, and mostly it is the same everywhere.
    sign = denominator if roots(denominator) else ONE if denominator(fmpq(1, 2)) > 0 else -ONE
    return where((numerator * sign for numerator in numerators), [denominator])


# Functions of alpha ------------------------------------------------------------------------------------------------------


class Formula:
    """A rational function of alpha in lowest terms: ``numerator / denominator``, integer polynomials.

    Call it with an exact number; `str`, `latex` give its factors.

    >>> f = Formula(2 * ALPHA * (1 - ALPHA), 1 - ALPHA**2)
    >>> f, f("1/3")
    (Formula(2α/(1 + α)), Fraction(1, 2))
    """

    def __init__(self, numerator: fmpz_poly, denominator: fmpz_poly) -> None:
        if denominator.is_zero():
            raise ZeroDivisionError("the denominator of a formula is 0")
        common = numerator.gcd(denominator)
        if _falls(denominator // common):
            common = -common
        self.numerator, self.denominator = numerator // common, denominator // common

    def __call__(self, alpha: Rational) -> Fraction:
        """The value; ZeroDivisionError at a pole."""
        point = to_fmpq(exact(alpha, "alpha"))
        return to_fraction(self.numerator(point) / self.denominator(point))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.numerator == other.numerator and self.denominator == other.denominator

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        if self.denominator == ONE:
            return _product(self.numerator, False, alone=True)[0]
        top, (bottom, factors) = _product(self.numerator, False)[0], _product(self.denominator, False)
        return f"{top}/({bottom})" if factors > 1 else f"{top}/{bottom}"

    def __repr__(self) -> str:
        return f"Formula({self})"

    def latex(self) -> str:
        top, bottom = (_product(p, True, alone=True)[0] for p in (self.numerator, self.denominator))
        return top if bottom == "1" else rf"\frac{{{top}}}{{{bottom}}}"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def _falls(polynomial: fmpz_poly) -> bool:
    """Whether a polynomial that is not 0 is negative just below 1."""
    return next(c for c in polynomial(1 - ALPHA).coeffs() if c != 0) < 0


def _power(base: str, exponent: int, latex: bool) -> str:
    return base if exponent == 1 else f"{base}^{{{exponent}}}" if latex else f"{base}^{exponent}"


def _sum(polynomial: fmpz_poly, latex: bool) -> str:
    """A polynomial written out, lowest power first, unless only the highest has a positive coefficient to begin with."""
    terms = [(k, int(c)) for k, c in enumerate(polynomial.coeffs()) if c != 0]
    text = ""
    for k, c in terms[::-1] if terms[0][1] < 0 < terms[-1][1] else terms:
        size = str(abs(c)) if k == 0 or abs(c) != 1 else ""
        power = _power(r"\alpha" if latex else "α", k, latex) if k else ""
        text += ((" - " if c < 0 else " + ") if text else "-" * (c < 0)) + size + power
    return text


def _product(polynomial: fmpz_poly, latex: bool, alone: bool = False) -> tuple[str, int]:
    """A polynomial as a product of factors, positive just below 1, and their number; ``alone``: one sum needs no parentheses."""
    if polynomial.is_zero():
        return "0", 1
    constant, factors = polynomial.factor()
    number, pieces = int(constant), list[str]()
    for factor, exponent in sorted(factors, key=lambda item: (item[0][0] != 0, item[0].degree(), str(item[0]))):
        if _falls(factor):
            factor, number = -factor, number * (-1) ** exponent
        text = _sum(factor, latex)
        bare = factor == ALPHA or (alone and number == len(factors) == exponent == 1)
        pieces.append(_power(text if bare else f"({text})", exponent, latex))
    if abs(number) != 1 or not pieces:
        pieces.insert(0, str(abs(number)))
    return ("-" if number < 0 else "") + "".join(pieces), len(pieces)


def _latex_number(value: Endpoint) -> str:
    if isinstance(value, Root):
        return value.latex()
    return str(value) if value.denominator == 1 else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


# Rows and tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AlphaRows:
    """`Rows` with polynomials in alpha for ``coefficients`` and ``bound``, multiplied by ``scale`` > 0 to make them integer."""

    cells: IntArray
    coefficients: Polynomials
    bound: fmpz_poly
    equality: bool
    scale: int

    def slacks(self, weights: Polynomials, denominator: fmpz_poly) -> Iterable[fmpz_poly]:
        """Left side minus bound at ``weights / denominator``, times the denominator, of each row; of equalities minus that, too."""
        offset = self.bound * denominator
        for row in self.cells.tolist():
            slack = sum((c * weights[v] for c, v in zip(self.coefficients, row, strict=True)), -offset)
            yield slack
            if self.equality:
                yield -slack


def rows_in_alpha(make: Callable[[Privacy], Iterable[Rows]], neighbours: Neighbours) -> list[AlphaRows]:
    """The rows that ``make`` gives for a privacy, for all alpha < 1: interpolated at three alphas and checked at a fourth.

    Raises NotPolynomial when the rows are not the same at all four but for coefficients that are polynomials of degree <= 2.
    """
    found = []
    samples = [list(make(Privacy(alpha, neighbours))) for alpha in SAMPLES]
    if len({len(groups) for groups in samples}) > 1:
        raise NotPolynomial("the number of groups of rows changes with alpha")
    for same in zip(*samples, strict=True):
        first = same[0]
        if any(rows.equality != first.equality or not np.array_equal(rows.cells, first.cells) for rows in same):
            raise NotPolynomial(f"the rows {first.name!r} are about other entries for other alpha")
        numbers = [_interpolated(values) for values in zip(*((*rows.coefficients, rows.bound) for rows in same), strict=True)]
        scale = math.lcm(*(int(p.denom()) for p in numbers))
        *coefficients, bound = ((p * scale).numer() for p in numbers)
        found.append(AlphaRows(first.cells, coefficients, bound, first.equality, scale))
    return found


def _interpolated(values: Sequence[Fraction]) -> fmpq_poly:
    """The polynomial of least degree with these values at the samples."""
    if len(set(values)) == 1:
        return fmpq_poly([to_fmpq(values[0])])
    *nodes, last = map(to_fmpq, SAMPLES)
    total = fmpq_poly([])
    for node, value in zip(nodes, values, strict=False):
        others = [other for other in nodes if other != node]
        basis = math.prod((fmpq_poly([-other, 1]) for other in others), start=fmpq_poly([1]))
        total += basis * (to_fmpq(value) / basis(node))
    if total(last) != to_fmpq(values[-1]):
        raise NotPolynomial("a coefficient is not a polynomial in alpha of degree at most two")
    return total


@dataclass(frozen=True)
class SymbolicAudit:
    """What a proof of privacy for all alpha found.

    Attributes
    ----------
    private
        The alpha at which no entry is negative and none exceeds 1/alpha times the one of a neighbouring input.
    tight
        Whether some ratio is exactly 1/alpha for every alpha: no privacy is left unused.
    violations
        (output i, inputs (j, j'), alpha at which P[i, j'] < alpha P[i, j]), for every entry and neighbour that break it anywhere.
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
    """A table ``P[i, j] = weights[i][j] / denominator`` of rational functions of alpha that claims privacy alpha.

    Columns sum to one identically, or InvalidMechanism is raised. Signs and privacy are not checked on construction:
    `audit` proves them, or says where they fail. ``m[i, j]`` is an entry as a `Formula`.
    """

    weights: tuple[tuple[fmpz_poly, ...], ...]
    denominator: fmpz_poly
    neighbours: Neighbours = "adjacent"

    def __post_init__(self) -> None:
        if not self.weights or not self.weights[0] or len({len(row) for row in self.weights}) != 1:
            raise InvalidMechanism("a mechanism needs at least one output, one input, and rows of one length")
        if self.denominator.is_zero():
            raise InvalidMechanism("the common denominator is 0")
        for j, column in enumerate(zip(*self.weights, strict=True)):
            if sum(column, NIL) != self.denominator:
                raise InvalidMechanism(f"column {j} sums to {Formula(sum(column, NIL), self.denominator)}, not to 1 for all alpha")
        object.__setattr__(self, "weights", tuple(map(tuple, self.weights)))
        privacy = Privacy(1, self.neighbours)
        privacy.pairs(self.inputs)  # an explicit neighbour list must fit the table
        object.__setattr__(self, "neighbours", privacy.neighbours)

    @property
    def outputs(self) -> int:
        """The number of outputs (rows)."""
        return len(self.weights)

    @property
    def inputs(self) -> int:
        """The number of inputs (columns)."""
        return len(self.weights[0])

    def __getitem__(self, cell: tuple[int, int]) -> Formula:
        return Formula(self.weights[cell[0]][cell[1]], self.denominator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicMechanism) and (self.neighbours, self.table) == (other.neighbours, other.table)

    def __hash__(self) -> int:
        return hash((self.neighbours, self.table))

    @cached_property
    def table(self) -> tuple[tuple[Formula, ...], ...]:
        """The entries in lowest terms, rows are outputs."""
        return tuple(tuple(self[i, j] for j in range(self.inputs)) for i in range(self.outputs))

    def at(self, alpha: Rational) -> Mechanism:
        """The exact mechanism for one alpha. InvalidMechanism where an entry is negative, ZeroDivisionError at a pole."""
        privacy = Privacy(alpha, self.neighbours)
        point = to_fmpq(privacy.alpha)
        scale = self.denominator(point)
        return Mechanism([[to_fraction(weight(point) / scale) for weight in row] for row in self.weights], privacy)

    def audit(self) -> SymbolicAudit:
        """Privacy between all neighbours and all outputs, for all alpha in (0, 1) at once."""
        pairs = Privacy(1, self.neighbours).pairs(self.inputs).tolist()
        ordered = [(j, k) for first, second in pairs for j, k in ((first, second), (second, first))]
        slacks = {(i, (j, k)): row[k] - ALPHA * row[j] for i, row in enumerate(self.weights) for j, k in ordered}
        private = nonnegative([*slacks.values(), *(weight for row in self.weights for weight in row)], self.denominator)
        broken = []
        if not private.everywhere:
            broken = [(i, pair, nonnegative([slack], self.denominator).complement()) for (i, pair), slack in slacks.items()]
        tight = any(slack.is_zero() for (i, (j, _)), slack in slacks.items() if not self.weights[i][j].is_zero())
        return SymbolicAudit(private, tight, tuple(item for item in broken if item[2]))

    def where(self, item: PropertyLike) -> Region:
        """The alpha at which a property holds. As in `Mechanism.properties`, a rectangular table has none of the seven but S.

        Raises NotPolynomial for rows of your own that depend on alpha in another way than a polynomial of degree <= 2.
        """
        wanted = resolve(item)
        if self.outputs != self.inputs and wanted in SEVEN and wanted.short != "S":
            return Region((), (False,))
        at = np.arange(self.outputs * self.inputs).reshape(self.outputs, self.inputs)
        flat = [weight for row in self.weights for weight in row]
        groups = rows_in_alpha(lambda privacy: wanted.rows(at, privacy), self.neighbours)
        slacks = (slack for rows in groups for slack in rows.slacks(flat, self.denominator))
        return nonnegative(slacks, self.denominator)

    def properties(self) -> dict[str, Region]:
        """Where each of the seven properties of thesis 6.4 holds, by short name."""
        return {item.short: self.where(item) for item in SEVEN}

    def loss(self, loss: Loss) -> Formula:
        """The expected cost under the loss's prior. ValueError for a worst case, which is no rational function."""
        if loss.worst_case:
            raise ValueError("the worst case over the inputs is the largest of several functions of alpha; ask for a prior instead")
        costs, prior = loss.costs(self.outputs, self.inputs), loss.weights(self.inputs)
        prices = [cost * share for row in costs for cost, share in zip(row, prior, strict=True)]
        scale = math.lcm(*(price.denominator for price in prices))
        flat = (weight for row in self.weights for weight in row)
        total = sum((int(price * scale) * weight for price, weight in zip(prices, flat, strict=True)), NIL)
        return Formula(total, self.denominator * scale)

    def __str__(self) -> str:
        cells = dict[Formula, list[str]]()
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


# The named mechanisms ----------------------------------------------------------------------------------------------------


def geometric(n: int) -> SymbolicMechanism:
    """GM for counts 0 .. n, see `named.geometric`."""
    size = _counts(n)
    if n == 0:
        return uniform(0)
    cells = ((ONE if i in (0, n) else 1 - ALPHA) * ALPHA ** abs(i - j) for i in range(size) for j in range(size))
    return _mechanism(cells, size, 1 + ALPHA)


def explicit_fair(n: int) -> SymbolicMechanism:
    """EM for counts 0 .. n, see `named.explicit_fair`. Its exponents are whole numbers for odd n, too."""
    size = _counts(n)
    cells = [ALPHA ** _em_power(i, j, n) for i in range(size) for j in range(size)]
    return _mechanism(cells, size, sum(cells[::size], NIL))


def uniform(n: int) -> SymbolicMechanism:
    """UM for counts 0 .. n (Definition 23), which keeps every privacy."""
    size = _counts(n)
    return _mechanism([ONE] * size**2, size, size * ONE)


def randomized_response() -> SymbolicMechanism:
    """RR on one bit, see `named.randomized_response`."""
    return geometric(1)


def krr(k: int) -> SymbolicMechanism:
    """GRR over k items, local privacy, see `named.krr`."""
    _items(k)
    return _mechanism((ONE if i == j else ALPHA for i in range(k) for j in range(k)), k, 1 + (k - 1) * ALPHA, "all")


def optimized_unary(k: int) -> SymbolicMechanism:
    """OUE over k items (thesis 2.4): the own bit is told with probability 1/2, every other is 1 with alpha / (1 + alpha).

    Output o is the vector of the binary digits of o, 2^k in all; local privacy.
    """
    _items(k)
    ones = ((output & ~(1 << j)).bit_count() for output in range(1 << k) for j in range(k))
    return _mechanism((ALPHA**others for others in ones), k, 2 * (1 + ALPHA) ** (k - 1), "all")


def hadamard(order: int) -> SymbolicMechanism:
    """HRR over ``order`` items, a power of two >= 2 (thesis 4.7): one of order - 1 coefficients, its sign by randomized response.

    Output 2 (r - 1) + s is coefficient r with sign (-1)^s; the constant coefficient, r = 0, is left out. Local privacy.
    """
    if _items(order) < 2 or order & (order - 1):
        raise ValueError(f"the order of a Hadamard matrix here is a power of two, at least 2, got {order}")
    reports = [(r, s) for r in range(1, order) for s in (0, 1)]
    cells = (ONE if (r & j).bit_count() % 2 == s else ALPHA for r, s in reports for j in range(order))
    return _mechanism(cells, order, (order - 1) * (1 + ALPHA), "all")


def subset_selection(k: int, size: int) -> SymbolicMechanism:
    """Subset selection over k items (Ye and Barg 2018): a set of ``size`` items, alpha times as likely without one's own.

    Outputs are the sets in lexicographic order; local privacy. With size 1 this is GRR.
    """
    if not 1 <= size <= _items(k):
        raise ValueError(f"a set holds from 1 to k = {k} items, got {size}")
    cells = (ONE if j in chosen else ALPHA for chosen in combinations(range(k), size) for j in range(k))
    return _mechanism(cells, k, math.comb(k - 1, size - 1) + math.comb(k - 1, size) * ALPHA, "all")


def _mechanism(
    cells: Iterable[fmpz_poly], inputs: int, denominator: fmpz_poly, neighbours: Neighbours = "adjacent"
) -> SymbolicMechanism:
    """The table whose cells are given row after row."""
    flat = tuple(cells)
    return SymbolicMechanism(tuple(flat[k : k + inputs] for k in range(0, len(flat), inputs)), denominator, neighbours)


def _counts(n: int) -> int:
    """How many counts there are with n people."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ValueError(f"n must be a whole number of people, at least 0, got {shown(n)}")
    return n + 1


def _items(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a number of items, at least 1, got {shown(k)}")
    return k
