"""Affine forms with exact coefficients, and what an expression does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import TypeVar

Number = TypeVar("Number")


@dataclass(frozen=True, eq=False)
class Affine:
    """``constant + sum terms[v] x[v]``, exact; not changed once made.

    Sums, differences, multiples and quotients by exact numbers are affine forms too, so that an
    array of them, of type object, follows the arithmetic of numpy.

    Attributes
    ----------
    constant : Fraction
        What is added.
    terms : mapping of int to Fraction
        Number of a variable -> its coefficient, never 0.
    """

    constant: Fraction
    terms: Mapping[int, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object) -> Affine:
        """The form itself, or that of an exact number. TypeError for anything else."""
        if isinstance(value, Affine):
            return value
        if isinstance(value, Rational):
            return cls(Fraction(value))
        raise TypeError(f"{value!r:.60} is neither an affine form nor an exact number")

    @classmethod
    def variable(cls, number: int) -> Affine:
        """The form x[number]."""
        return cls(Fraction(0), {number: Fraction(1)})

    @property
    def is_constant(self) -> bool:
        """Whether no variable occurs."""
        return not self.terms

    def at(self, x: Callable[[int], Number], convert: Callable[[Fraction], Number]) -> Number:
        """The value at x, in the arithmetic of ``Number``: floats or balls."""
        total = convert(self.constant)
        for v, coefficient in self.terms.items():
            total = total + convert(coefficient) * x(v)  # type: ignore[operator]
        return total

    def __add__(self, other: object) -> Affine:
        try:
            right = Affine.of(other)
        except TypeError:
            return NotImplemented
        terms = dict(self.terms)
        for v, coefficient in right.terms.items():
            total = terms.get(v, 0) + coefficient
            if total:
                terms[v] = total
            else:
                del terms[v]
        return Affine(self.constant + right.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: object) -> Affine:
        return self + -Affine.of(other)

    def __rsub__(self, other: object) -> Affine:
        return -self + other

    def __mul__(self, other: object) -> Affine:
        try:
            right = Affine.of(other)
        except TypeError:
            return NotImplemented
        if not right.is_constant:
            if not self.is_constant:
                raise ArithmeticError("a product of two expressions of the table is not affine")
            return right * self
        factor = right.constant
        terms = {v: c * factor for v, c in self.terms.items()} if factor else {}
        return Affine(self.constant * factor, terms)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Affine:
        right = Affine.of(other)
        if not right.is_constant:
            raise ArithmeticError("a quotient by an expression of the table is not affine")
        return self * (1 / right.constant)

    def __rtruediv__(self, other: object) -> Affine:
        return Affine.of(other) / self


def combined(weights: Iterable[Fraction], forms: Iterable[Affine]) -> Affine:
    """The sum of the forms, each times its weight."""
    terms: dict[int, Fraction] = {}
    constant = Fraction(0)
    for weight, form in zip(weights, forms, strict=True):
        if weight:
            constant += weight * form.constant
            for v, coefficient in form.terms.items():
                terms[v] = terms.get(v, Fraction(0)) + weight * coefficient
    return Affine(constant, {v: c for v, c in terms.items() if c})
