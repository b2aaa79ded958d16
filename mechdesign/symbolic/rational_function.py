"""RationalFunction: a rational function of alpha, exact, and how it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import fmpz_poly

from mechdesign.base.numbers import Rational, exact
from mechdesign.lp.basis import to_fmpq, to_fraction

Polynomials: TypeAlias = Sequence[fmpz_poly]

ALPHA = fmpz_poly([0, 1])
"""The polynomial alpha."""

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


Operand: TypeAlias = RationalFunction | fmpz_poly | Fraction | int
"""The type of what can be added to a rational function, or multiplied with it."""


def falls(polynomial: fmpz_poly) -> bool:
    """Whether a polynomial that is not 0 is negative just below 1."""
    # Expanded around 1, the lowest power decides the sign, also where the polynomial is 0 at 1.
    return next(c for c in polynomial(1 - ALPHA).coeffs() if c != 0) < 0


def _power(base: str, exponent: int, latex: bool) -> str:
    return base if exponent == 1 else f"{base}^{{{exponent}}}" if latex else f"{base}^{exponent}"


def written(polynomial: fmpz_poly, latex: bool) -> str:
    """Return a polynomial written out, lowest power first.

    The order is reversed if only then it begins with a positive coefficient.
    """
    terms = [(k, int(c)) for k, c in enumerate(polynomial.coeffs()) if c != 0]
    text = ""
    for k, c in terms[::-1] if terms[0][1] < 0 < terms[-1][1] else terms:
        size = str(abs(c)) if k == 0 or abs(c) != 1 else ""
        power = _power(r"\alpha" if latex else "α", k, latex) if k else ""
        text += ((" - " if c < 0 else " + ") if text else "-" * (c < 0)) + size + power
    return text


def _product(polynomial: fmpz_poly, latex: bool, alone: bool = False) -> tuple[str, int]:
    """Return a polynomial as a product of factors, and their number.

    Factors are positive just below 1. If ``alone``, a single sum needs no parentheses.
    """
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
