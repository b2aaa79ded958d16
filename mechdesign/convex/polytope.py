"""The mechanisms with given privacy and properties, as exact constraints and as float matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from mechdesign.base.arrays import Floats
from mechdesign.convex.affine import Affine
from mechdesign.lp.constraints import Constraints


@dataclass(frozen=True)
class Polytope:
    """Points x >= 0 with exact linear constraints.

    Attributes
    ----------
    size : int
        The number of variables.
    groups : tuple of Constraints
        All constraints but x >= 0.
    """

    size: int
    groups: tuple[Constraints, ...]

    def forms(self, equality: bool) -> Iterator[Affine]:
        """The forms that are 0, or those that are at least 0, x >= 0 among them at the end."""
        for group in self.groups:
            if group.equality == equality:
                for cells in group.cells.tolist():
                    terms: dict[int, Fraction] = {}
                    for v, a in zip(cells, group.coefficients, strict=True):
                        terms[v] = terms.get(v, Fraction(0)) + a
                    yield Affine(-group.bound, {v: a for v, a in terms.items() if a})
        if not equality:
            yield from map(Affine.variable, range(self.size))

    @cached_property
    def equalities(self) -> tuple[sparse.csr_array, Floats]:
        """A and b of the constraints A x = b."""
        return matrix_of([g for g in self.groups if g.equality], self.size)

    @cached_property
    def inequalities(self) -> tuple[sparse.csr_array, Floats]:
        """A and b of the constraints A x >= b, without x >= 0."""
        return matrix_of([g for g in self.groups if not g.equality], self.size)


def matrix_of(groups: Sequence[Constraints], variables: int) -> tuple[sparse.csr_array, Floats]:
    """The constraints of some groups as a sparse matrix and their right sides, in floats."""
    rows, cells, values, bounds = [], [], [], []
    count = 0
    for group in groups:
        number, terms = group.cells.shape
        rows.append(np.repeat(np.arange(count, count + number), terms))
        cells.append(group.cells.ravel())
        values.append(np.tile([float(c) for c in group.coefficients], number))
        bounds.append(np.full(number, float(group.bound)))
        count += number
    if not count:
        return sparse.csr_array((0, variables)), np.zeros(0)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cells)))
    matrix = sparse.csr_array(sparse.coo_array(entries, shape=(count, variables)))
    return matrix, np.concatenate(bounds)


def matrix_of_forms(forms: Iterable[Affine], variables: int) -> tuple[sparse.csr_array, Floats]:
    """The coefficients of some forms as a sparse matrix, and their constants, in floats."""
    rows, cells, values, constants = [], [], [], []
    for r, form in enumerate(forms):
        constants.append(float(form.constant))
        for v, coefficient in form.terms.items():
            rows.append(r)
            cells.append(v)
            values.append(float(coefficient))
    matrix = sparse.coo_array((values, (rows, cells)), shape=(len(constants), variables))
    return sparse.csr_array(matrix), np.array(constants)
