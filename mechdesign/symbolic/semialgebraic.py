"""Sets of alphas in (0, 1), exactly: finite unions of intervals with algebraic ends.

Such a set is where polynomials in alpha have given signs. Integer polynomials are factored, and the
real roots of the factors isolated by Descartes' rule of signs and bisection. No float takes part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, total_ordering
from itertools import pairwise
from typing import TypeAlias

from flint import fmpq, fmpz_poly

from mechdesign.base import Rational, exact
from mechdesign.lp.basis import to_fmpq, to_fraction

# ------------------------------------------------------------------------------------------------
# RationalFunction: a rational function of alpha, exact, and how it is printed.


Polynomials: TypeAlias = Sequence[fmpz_poly]

ALPHA = fmpz_poly([0, 1])  #: The polynomial alpha.

ONE, NIL = fmpz_poly([1]), fmpz_poly([])


class RationalFunction:
    """A rational function of alpha, ``numerator / denominator``, in lowest terms.

    Call it with an exact number; `str` and `latex` give its factors.

    Parameters
    ----------
    numerator, denominator : flint.fmpz_poly
        Integer polynomials in `ALPHA`, the denominator not 0. Common factors are cancelled, and
        signs changed so that the denominator is positive just below alpha = 1.

    Raises
    ------
    ZeroDivisionError
        The denominator is the polynomial 0.

    Examples
    --------
    >>> f = RationalFunction(2 * ALPHA * (1 - ALPHA), 1 - ALPHA**2)
    >>> f, f("1/3")
    (RationalFunction(2α/(1 + α)), Fraction(1, 2))

    Sums, differences, products and quotients are exact, also with integers, fractions and
    polynomials on the right.
    """

    def __init__(self, numerator: fmpz_poly, denominator: fmpz_poly) -> None:
        if denominator.is_zero():
            raise ZeroDivisionError("the denominator of a rational function is 0")
        # FLINT's gcd is of integer polynomials, contents included: lowest terms are unique up to
        # the sign, which makes equal functions equal in their parts, and hashes agree.
        common = numerator.gcd(denominator)
        if falls(denominator // common):
            common = -common
        self.numerator, self.denominator = numerator // common, denominator // common

    def __call__(self, alpha: Rational) -> Fraction:
        """Return the value; ZeroDivisionError at a pole."""
        point = to_fmpq(exact(alpha, "alpha"))
        return to_fraction(self.numerator(point) / self.denominator(point))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RationalFunction)
            and self.numerator == other.numerator
            and self.denominator == other.denominator
        )

    def __hash__(self) -> int:
        return hash((str(self.numerator), str(self.denominator)))

    def __add__(self, other: Operand) -> RationalFunction:
        right = rational(other)
        return RationalFunction(
            self.numerator * right.denominator + right.numerator * self.denominator,
            self.denominator * right.denominator,
        )

    def __sub__(self, other: Operand) -> RationalFunction:
        return self + rational(other) * -1

    def __mul__(self, other: Operand) -> RationalFunction:
        right = rational(other)
        return RationalFunction(
            self.numerator * right.numerator, self.denominator * right.denominator
        )

    def __truediv__(self, other: Operand) -> RationalFunction:
        right = rational(other)
        return RationalFunction(
            self.numerator * right.denominator, self.denominator * right.numerator
        )

    def __str__(self) -> str:
        if self.denominator == ONE:
            return _product(self.numerator, False, alone=True)[0]
        top, (bottom, factors) = (
            _product(self.numerator, False)[0],
            _product(self.denominator, False),
        )
        return f"{top}/({bottom})" if factors > 1 else f"{top}/{bottom}"

    def __repr__(self) -> str:
        return f"RationalFunction({self})"

    def latex(self) -> str:
        """Return the function in LaTeX, without dollar signs."""
        top, bottom = (_product(p, True, alone=True)[0] for p in (self.numerator, self.denominator))
        return top if bottom == "1" else rf"\frac{{{top}}}{{{bottom}}}"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def rational(value: Operand) -> RationalFunction:
    """Return the number or polynomial as a rational function; a rational function as it is."""
    if isinstance(value, RationalFunction):
        return value
    if isinstance(value, fmpz_poly):
        return RationalFunction(value, ONE)
    return RationalFunction(fmpz_poly([value.numerator]), fmpz_poly([value.denominator]))


#: The type of what can be added to a rational function, or multiplied with it.
Operand: TypeAlias = RationalFunction | fmpz_poly | Fraction | int


def falls(polynomial: fmpz_poly) -> bool:
    """Whether a polynomial that is not 0 is negative just below 1."""
    # Expanded around 1, the lowest power decides the sign, also where the polynomial is 0 at 1.
    return next(c for c in polynomial(1 - ALPHA).coeffs() if c != 0) < 0


def _power(base: str, exponent: int, latex: bool) -> str:
    return base if exponent == 1 else f"{base}^{{{exponent}}}" if latex else f"{base}^{exponent}"


def written(polynomial: fmpz_poly, latex: bool) -> str:
    """Return a polynomial written out, lowest power first."""
    # The order is reversed if only then it begins with a positive coefficient.
    terms = [(k, int(c)) for k, c in enumerate(polynomial.coeffs()) if c != 0]
    text = ""
    for k, c in terms[::-1] if terms[0][1] < 0 < terms[-1][1] else terms:
        size = str(abs(c)) if k == 0 or abs(c) != 1 else ""
        power = _power(r"\alpha" if latex else "α", k, latex) if k else ""
        text += ((" - " if c < 0 else " + ") if text else "-" * (c < 0)) + size + power
    return text


def _product(polynomial: fmpz_poly, latex: bool, alone: bool = False) -> tuple[str, int]:
    """Return a polynomial as a product of factors, and their number."""
    # Factors are positive just below 1. If ``alone``, a single sum needs no parentheses.
    if polynomial.is_zero():
        return "0", 1
    constant, factors = polynomial.factor()
    number, pieces = int(constant), list[str]()
    for factor, exponent in sorted(
        factors, key=lambda item: (item[0][0] != 0, item[0].degree(), str(item[0]))
    ):
        if falls(factor):
            factor, number = -factor, number * (-1) ** exponent
        text = written(factor, latex)
        bare = factor == ALPHA or (alone and number == len(factors) == exponent == 1)
        pieces.append(_power(text if bare else f"({text})", exponent, latex))
    if abs(number) != 1 or not pieces:
        pieces.insert(0, str(abs(number)))
    return ("-" if number < 0 else "") + "".join(pieces), len(pieces)


@total_ordering
class Root:
    """An irrational algebraic number in (0, 1), compared exactly with others and rational numbers.

    Attributes
    ----------
    coefficients : tuple of int
        Of its irreducible integer polynomial, constant term first.
    index : int
        Which of that polynomial's roots in (0, 1) it is, from 0 upwards.
    """

    def __init__(
        self, coefficients: tuple[int, ...], index: int, low: Fraction, high: Fraction
    ) -> None:
        self.coefficients, self.index = coefficients, index
        # With this root in it and no other; made narrower when a comparison needs it
        self._bracket = low, high
        self._rising = fmpz_poly(list(coefficients))(to_fmpq(high)) > 0

    def bracket(self, width: Fraction) -> tuple[Fraction, Fraction]:
        """Return rational numbers below and above, at most ``width`` apart."""
        polynomial, (low, high) = fmpz_poly(list(self.coefficients)), self._bracket
        while high - low > width:
            middle = (low + high) / 2
            # Irreducible of degree 2 or more: no rational root, so that no value is 0, and all
            # roots are simple, so that the sign changes at the one in the bracket.
            if (polynomial(to_fmpq(middle)) > 0) == self._rising:
                high = middle
            else:
                low = middle
        # Kept for later comparisons: bisection is never repeated.
        self._bracket = low, high
        return low, high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Root) and (self.coefficients, self.index) == (
            other.coefficients,
            other.index,
        )

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
            # Four more bits at a time: numbers that differ are separated after finitely many.
            width /= 16

    def __float__(self) -> float:
        return float(self.bracket(Fraction(1, 1 << 80))[0])

    def __str__(self) -> str:
        return f"{self._decimals()}... (where {self._equation(False)} = 0)"

    def __repr__(self) -> str:
        return f"Root({self})"

    def latex(self) -> str:
        """Return the number in LaTeX, without dollar signs."""
        return rf"{self._decimals()}\ldots\;({self._equation(True)} = 0)"

    def _decimals(self) -> str:
        return f"0.{math.floor(self.bracket(Fraction(1, 1 << 80))[0] * 10**6):06}"

    def _equation(self, latex: bool) -> str:
        polynomial = fmpz_poly(list(self.coefficients))
        return written(-polynomial if falls(polynomial) else polynomial, latex)


Endpoint: TypeAlias = Fraction | Root


def _bracket(value: Root | Fraction | int, width: Fraction) -> tuple[Fraction, Fraction]:
    return value.bracket(width) if isinstance(value, Root) else (Fraction(value), Fraction(value))


def between(low: Endpoint, high: Endpoint) -> Fraction:
    """Return a short rational number strictly between two numbers, low < high."""
    scale = 4
    while True:
        (_, start), (end, _) = _bracket(low, Fraction(1, scale)), _bracket(high, Fraction(1, scale))
        # Small denominators first: designs are solved exactly at this alpha, and long rationals
        # would make their tables long.
        middle = ((start + end) / 2).limit_denominator(scale)
        if start < middle < end:
            return middle
        scale *= 2


@dataclass(frozen=True)
class AlphaInterval:
    """An interval of alpha from ``low`` to ``high``; an end belongs to it if it is ``closed``.

    Attributes
    ----------
    low, high : Fraction or Root
        0 <= low <= high <= 1.
    closed : tuple of bool
        Shape (2,), for each end; the numbers 0 and 1 never belong to the interval.
    """

    low: Endpoint
    high: Endpoint
    closed: tuple[bool, bool]

    @classmethod
    def of(cls, low: Endpoint, high: Endpoint) -> AlphaInterval:
        """Return the interval that includes each end inside (0, 1).

        Parameters
        ----------
        low, high : Fraction or Root
            0 <= low <= high <= 1.

        Returns
        -------
        AlphaInterval
        """
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
        return Region(
            tuple(end for end in (self.low, self.high) if 0 < end < 1), (*below, True, *above)
        )

    def __str__(self) -> str:
        if self.low == self.high:
            return f"α = {self.low}"
        signs = ["≤" if closed else "<" for closed in self.closed]
        return f"{self.low} {signs[0]} α {signs[1]} {self.high}"

    def latex(self) -> str:
        """Return the interval in LaTeX, without dollar signs."""
        low, high = _latex_number(self.low), _latex_number(self.high)
        if self.low == self.high:
            return rf"\alpha = {low}"
        signs = [r"\le" if closed else "<" for closed in self.closed]
        return rf"{low} {signs[0]} \alpha {signs[1]} {high}"


@dataclass(frozen=True)
class Region:
    """A set of alpha in (0, 1): a finite union of intervals and points.

    Regions that `of` makes are equal exactly if they are the same set.

    Attributes
    ----------
    points : tuple of (Fraction or Root)
        The numbers in (0, 1) at which something may change, in increasing order.
    inside : tuple of bool
        Whether each part of (0, 1) belongs, 2 len(points) + 1 flags: the open interval below the
        first point, that point, the open interval above it, and so on.
    """

    points: tuple[Endpoint, ...]
    inside: tuple[bool, ...]

    @classmethod
    def of(cls, points: Sequence[Endpoint], inside: Sequence[bool]) -> Region:
        """Return the region with these points, without those at which nothing changes.

        Parameters
        ----------
        points : sequence of (Fraction or Root)
            Numbers in (0, 1), in increasing order.
        inside : sequence of bool
            2 len(points) + 1 flags, as in `Region`.

        Returns
        -------
        Region
        """
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
        return (
            0 < alpha < 1
            and self.inside[sum(1 + (point < alpha) for point in self.points if point <= alpha)]
        )

    def complement(self) -> Region:
        """Return the alpha in (0, 1) that do not belong."""
        return Region(self.points, tuple(not flag for flag in self.inside))

    @property
    def intervals(self) -> tuple[AlphaInterval, ...]:
        """The maximal intervals of which it consists, in order; single points are closed ones."""
        ends: tuple[Endpoint, ...] = (Fraction(0), *self.points, Fraction(1))
        pieces, start = list[AlphaInterval](), None
        for k, flag in enumerate((*self.inside, False)):
            if flag and start is None:
                start = k
            elif not flag and start is not None:
                # Flag k is of the cell above ends[k / 2] if k is even, else of the point
                # ends[(k + 1) / 2].
                pieces.append(
                    AlphaInterval(
                        ends[(start + 1) // 2], ends[(k + 1) // 2], (start % 2 == 1, k % 2 == 0)
                    )
                )
                start = None
        return tuple(pieces)

    def around(self, alpha: Endpoint) -> AlphaInterval | None:
        """Return the interval that holds ``alpha``; None if it does not belong."""
        return next((interval for interval in self.intervals if alpha in interval), None)

    def covers(self, interval: AlphaInterval) -> bool:
        """Whether all of an interval belongs."""
        return self & interval.region == interval.region

    def __and__(self, other: Region) -> Region:
        # Between neighbouring points neither set changes: one sample decides each open interval.
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
        """Return the set in LaTeX, without dollar signs."""
        return (
            r" \;\text{or}\; ".join(interval.latex() for interval in self.intervals) or r"\emptyset"
        )


def roots(polynomial: fmpz_poly) -> list[Endpoint]:
    """Return the real roots in (0, 1) of a polynomial that is not 0, each once, in no order."""
    return [
        root
        # Irreducible factors, not square-free ones: equal roots of different polynomials then have
        # the same minimal polynomial, and are compared by it.
        for factor, _ in polynomial.factor()[1]
        for root in _isolated(tuple(map(int, factor.coeffs())))
    ]


@lru_cache(maxsize=4096)
def _isolated(coefficients: tuple[int, ...]) -> tuple[Endpoint, ...]:
    """Return the roots in (0, 1) of an irreducible polynomial."""
    # They are isolated by Descartes' rule of signs and bisection (Vincent, Collins, Akritas).
    if len(coefficients) == 2:
        root = Fraction(-coefficients[0], coefficients[1])
        return (root,) if 0 < root < 1 else ()
    isolated = list[Endpoint]()
    # Polynomials moved so that their interval is (0, 1)
    stack = [(fmpz_poly(list(coefficients)), Fraction(0), Fraction(1))]
    while stack:
        moved, low, high = stack.pop()
        # No change proves that there is no root, one that there is exactly one; with more the
        # interval is halved. That ends, as all roots are simple (Vincent's theorem).
        signs = [c > 0 for c in _on_half_line(moved) if c != 0]
        changes = sum(a != b for a, b in pairwise(signs))
        if changes == 1:
            isolated.append(Root(coefficients, len(isolated), low, high))
        elif changes > 1:
            degree, middle = moved.degree(), (low + high) / 2
            left = fmpz_poly([c << (degree - k) for k, c in enumerate(map(int, moved.coeffs()))])
            # p(x / 2) 2^degree and its shift by 1 stay integer polynomials. The left half is taken
            # first, so that roots are numbered upwards.
            stack += [(left(ALPHA + 1), middle, high), (left, low, middle)]
    return tuple(isolated)


def _on_half_line(polynomial: fmpz_poly) -> list[int]:
    """Return the coefficients of (1+x)^degree p(1/(1+x))."""
    # Their changes of sign are as many as p has roots in (0, 1), or more by an even number.
    return [int(c) for c in fmpz_poly(polynomial.coeffs()[::-1])(ALPHA + 1).coeffs()]


def where(nonnegative: Iterable[fmpz_poly], nonzero: Iterable[fmpz_poly] = ()) -> Region:
    """Return where in (0, 1) the first polynomials are all at least 0, and no second one is 0."""
    excluded = {root for polynomial in nonzero for root in roots(polynomial)}
    distinct = {tuple(map(int, p.coeffs())): p for p in nonnegative}
    # Coefficients that are all at least 0, in either form, prove that a polynomial is at least 0 on
    # all of (0, 1): most slacks are, and need no factors.
    decided = [
        (p, set(roots(p)))
        for p in distinct.values()
        if min(p.coeffs(), default=0) < 0 and min(_on_half_line(p)) < 0
    ]
    points = sorted(excluded.union(*(zeros for _, zeros in decided)))
    inside = list[bool]()
    ends: list[Endpoint] = [Fraction(0), *points, Fraction(1)]
    for point, following in pairwise(ends):
        sample = to_fmpq(between(point, following))
        negative = [zeros for p, zeros in decided if p(sample) < 0]
        if point != 0:
            # A polynomial that is not 0 at a point has there the sign that it has in the cell
            # beyond.
            inside.append(point not in excluded and all(point in zeros for zeros in negative))
        inside.append(not negative)
    return Region.of(points, inside)


def nonnegative(numerators: Iterable[fmpz_poly], denominator: fmpz_poly) -> Region:
    """Return the alpha at which every ``numerator / denominator`` is finite and at least 0."""
    # Times the square of the denominator; only its sign matters, and mostly it is the same
    # everywhere.
    sign = denominator if roots(denominator) else ONE if denominator(fmpq(1, 2)) > 0 else -ONE
    return where((numerator * sign for numerator in numerators), [denominator])


def _latex_number(value: Endpoint) -> str:
    if isinstance(value, Root):
        return value.latex()
    return (
        str(value)
        if value.denominator == 1
        else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    )
