"""The constraints of a property or a program for all alpha at once, polynomials in alpha."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq_poly, fmpz_poly

from mechdesign.base.arrays import Integers
from mechdesign.exceptions import MechanismError
from mechdesign.lp.basis import to_fmpq
from mechdesign.lp.constraints import Constraints
from mechdesign.privacy import Metric, Neighbours, Privacy
from mechdesign.symbolic.rational_function import Polynomials

SAMPLES = tuple(Fraction(k, 1009) for k in (211, 499, 661, 787))
"""Alphas at which constraints are evaluated to see how they depend on alpha.

At such numbers, coefficients that differ as functions of alpha hardly coincide by chance.
"""

MAX_DEGREE = 32
"""The largest degree in alpha that is interpolated; only a `Metric` needs more than two."""

_MORE_SAMPLES = tuple(Fraction(k, 1009) for k in range(223, 787, 17))


class NotPolynomial(MechanismError, ValueError):
    """Constraints have coefficients that are not polynomials of low degree in alpha."""


@dataclass(frozen=True, eq=False)
class AlphaConstraints:
    """`Constraints` whose ``coefficients`` and ``bound`` are polynomials in alpha.

    They are multiplied by ``scale`` > 0 to make their coefficients integers.
    """

    cells: Integers
    coefficients: Polynomials
    bound: fmpz_poly
    equality: bool
    scale: int

    def slacks(self, weights: Polynomials, denominator: fmpz_poly) -> Iterable[fmpz_poly]:
        """The slack of each constraint at ``weights / denominator``, times the denominator.

        The slack is left side minus bound; for equations its negative follows.
        """
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
    """The constraints that ``make`` gives for a privacy, for all alpha < 1.

    They are interpolated at three alphas and checked at a fourth.

    For a `Metric` with distances up to d > 2 they are interpolated at d + 1 alphas and checked at
    one more; d is at most `MAX_DEGREE`.

    Raises NotPolynomial unless the constraints differ between these alphas only in coefficients
    that are polynomials of degree at most two, or d.
    """
    found, nodes = [], _nodes(neighbours)
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
        found.append(AlphaConstraints(first.cells, coefficients, bound, first.equality, scale))
    return found


def _nodes(neighbours: Neighbours) -> tuple[Fraction, ...]:
    if not isinstance(neighbours, Metric):
        return SAMPLES
    farthest = max(
        distance for row in neighbours.distances for distance in row if distance is not None
    )
    return SAMPLES + _MORE_SAMPLES[: max(0, min(farthest, MAX_DEGREE) - 2)]


def _interpolated(nodes: Sequence[Fraction], values: Sequence[Fraction]) -> fmpq_poly:
    """The polynomial of least degree with all values but the last, which it must have, too."""
    if len(set(values)) == 1:
        return fmpq_poly([to_fmpq(values[0])])
    *known, last = map(to_fmpq, nodes)
    total = fmpq_poly([])
    for node, value in zip(known, values, strict=False):
        basis = math.prod(
            (fmpq_poly([-other, 1]) for other in known if other != node), start=fmpq_poly([1])
        )
        total += basis * (to_fmpq(value) / basis(node))
    if total(last) != to_fmpq(values[-1]):
        raise NotPolynomial(
            f"a coefficient is not a polynomial in alpha of degree at most {len(nodes) - 2}"
        )
    return total
