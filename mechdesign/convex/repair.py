"""Exact mechanisms near tables of floats: equations by elimination, inequalities by mixing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from mechdesign.base.arrays import Floats
from mechdesign.convex.affine import Affine
from mechdesign.convex.atoms import rational
from mechdesign.exceptions import Infeasible


class Equations:
    """Equations in exact forms, solved for some of the variables by the others.

    Parameters
    ----------
    forms : iterable of Affine
        Each is to be 0.
    near : numpy.ndarray of float64
        Where solutions will be asked for: of the variables of an equation, one that is large there
        is expressed by the others.

    Raises Infeasible where the equations contradict each other.
    """

    def __init__(self, forms: Iterable[Affine], near: Floats) -> None:
        self.solved: dict[int, Affine] = {}
        for form in sorted(forms, key=lambda form: len(form.terms)):
            rest = self._substituted(form)
            if rest.is_constant:
                if rest.constant:
                    raise Infeasible("no mechanism satisfies all the equations (proved)")
                continue
            v = max(rest.terms, key=lambda v: abs(float(rest.terms[v]) * near[v]))
            self.solved[v] = Affine.variable(v) - rest / rest.terms[v]

    def _substituted(self, form: Affine) -> Affine:
        while known := self.solved.keys() & form.terms.keys():
            for v in known:
                if v in form.terms:
                    form = form + form.terms[v] * (self.solved[v] - Affine.variable(v))
        return form

    def solution(self, near: Floats) -> list[Fraction]:
        """An exact solution near a table of floats, flat."""
        x = [rational(value) for value in near.tolist()]
        for v in reversed(self.solved):
            x[v] = self.solved[v].at(x.__getitem__, Fraction)
        return x


def least_share(
    forms: Iterable[Affine], x: Sequence[Fraction], inside: Sequence[Fraction]
) -> Fraction | None:
    """The least share of ``inside`` in a mixture with ``x`` that makes no form negative.

    None where there is none: a form is negative at ``inside``, or at ``x`` and 0 there. The share
    is a multiple of 2^-60 unless it is 1.
    """
    share = Fraction(0)
    for form in forms:
        here, there = form.at(x.__getitem__, Fraction), form.at(inside.__getitem__, Fraction)
        if there < 0 or (there == 0 and here < 0):
            return None
        if here < 0:
            share = max(share, here / (here - there))
    return min(Fraction(1), Fraction(-(-share * (1 << 60) // 1), 1 << 60))


def mixed(x: Sequence[Fraction], inside: Sequence[Fraction], share: Fraction) -> list[Fraction]:
    """``(1 - share) x + share inside``."""
    return [a + share * (b - a) for a, b in zip(x, inside, strict=True)]
