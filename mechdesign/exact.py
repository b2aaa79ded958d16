"""Exact solutions of the linear systems of a basis, primal and dual, in rational arithmetic.

A basis of a mechanism program consists mostly of rows with one or two variables, ``a x + b y = c`` or ``a x = c``. Seen as
edges between variables they fall into connected components, in each of which one unknown, the root, determines all the
others: ``x = slope * root + shift``. A component with one row to spare determines its root, too. Only the few long rows
(column sums) tie components together: a dense system of about n/2 or n unknowns is left, which FLINT solves exactly. The
dual system has the transposed shape and is solved by the same components, stripping leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpq_mat


class SingularBasis(ArithmeticError):
    """The rows of a basis are linearly dependent."""


@dataclass(frozen=True)
class Row:
    """``sum coefficient x[variable] == bound`` over distinct variables."""

    terms: tuple[tuple[int, fmpq], ...]
    bound: fmpq


def solve(rows: Sequence[Row], variables: Sequence[int], cost: Sequence[fmpq]) -> tuple[dict[int, fmpq], list[fmpq]]:
    """The x with ``row x = bound`` for every row, and the y with ``sum_r y[r] row_r = cost`` in every listed variable.

    As many rows as variables; ``rows`` mention only ``variables``; ``cost`` is indexed by variable.
    Raises SingularBasis when they are dependent.
    """
    if len(rows) != len(variables):
        raise SingularBasis(f"{len(rows)} rows for {len(variables)} variables")
    components = _Components(rows, variables)
    return components.primal(), components.dual(cost)


class _Components:
    """Variables as ``slope[v] * root + shift[v]``, one root a component, known where the component has a row to spare."""

    def __init__(self, rows: Sequence[Row], variables: Sequence[int]) -> None:
        self.rows, self.variables = rows, variables
        self.long = [r for r, row in enumerate(rows) if len(row.terms) > 2]
        self.incident: dict[int, list[int]] = {v: [] for v in variables}
        for r, row in enumerate(rows):
            if not row.terms:
                raise SingularBasis("a row without variables")
            if len(row.terms) <= 2:
                for v, _ in row.terms:
                    self.incident[v].append(r)
        self.component: dict[int, int] = {}
        self.slope: dict[int, fmpq] = {}
        self.shift: dict[int, fmpq] = {}
        self.roots: list[int] = []
        self.trees: list[list[tuple[int, int]]] = []  # rows in the order in which they reached a variable, with the variable
        self.spare: list[int | None] = []  # the row that determines the root
        self.known: list[fmpq | None] = []  # the root, if so
        for v in variables:
            if v not in self.component:
                self._walk(v)
        free = [k for k, value in enumerate(self.known) if value is None]
        self.position = {k: place for place, k in enumerate(free)}
        self._long_rows()

    def _walk(self, root: int) -> None:
        number = len(self.roots)
        self.component[root], self.slope[root], self.shift[root] = number, _ONE, _ZERO
        tree, spare, used, stack = list[tuple[int, int]](), list[int](), set[int](), [root]
        while stack:
            u = stack.pop()
            for r in self.incident[u]:
                if r in used:
                    continue
                used.add(r)
                others = dict(self.rows[r].terms)
                a = others.pop(u)
                if not others or next(iter(others)) in self.component:
                    spare.append(r)
                    continue
                ((v, b),) = others.items()
                self.component[v] = number
                self.slope[v], self.shift[v] = -a * self.slope[u] / b, (self.rows[r].bound - a * self.shift[u]) / b
                tree.append((r, v))
                stack.append(v)
        if len(spare) > 1:
            raise SingularBasis("a component has more rows than variables")
        value = None
        if spare:
            slope, shift = self._along(spare[0])
            if slope == 0:
                raise SingularBasis("the rows of a cycle are dependent")
            value = (self.rows[spare[0]].bound - shift) / slope
        self.roots.append(root)
        self.trees.append(tree)
        self.spare.append(spare[0] if spare else None)
        self.known.append(value)

    def _along(self, r: int) -> tuple[fmpq, fmpq]:
        """The left side of a row within one component: slope and shift in its root."""
        terms = self.rows[r].terms
        return sum((a * self.slope[v] for v, a in terms), _ZERO), sum((a * self.shift[v] for v, a in terms), _ZERO)

    def _long_rows(self) -> None:
        size = len(self.position)
        if len(self.long) != size:
            raise SingularBasis(f"{len(self.long)} long rows for {size} components")
        self.right = [self.rows[r].bound for r in self.long]
        system = [[_ZERO] * size for _ in range(size)]
        for k, r in enumerate(self.long):
            for v, a in self.rows[r].terms:
                number = self.component[v]
                root = self.known[number]
                if root is None:
                    system[k][self.position[number]] += a * self.slope[v]
                    self.right[k] -= a * self.shift[v]
                else:
                    self.right[k] -= a * (self.slope[v] * root + self.shift[v])
        self.system = fmpq_mat(size, size, [entry for line in system for entry in line])

    def _dense(self, system: fmpq_mat, right: list[fmpq]) -> list[fmpq]:
        if not right:
            return []
        try:
            return system.solve(fmpq_mat(len(right), 1, right)).entries()
        except ZeroDivisionError as error:
            raise SingularBasis("the long rows are dependent") from error

    def primal(self) -> dict[int, fmpq]:
        roots = list(self.known)
        for number, value in zip(self.position, self._dense(self.system, self.right), strict=True):
            roots[number] = value
        return {v: self.slope[v] * roots[self.component[v]] + self.shift[v] for v in self.variables}

    def dual(self, cost: Sequence[fmpq]) -> list[fmpq]:
        # Weighted by slope[v] and summed over a component, the equations of y lose every short row of its tree: what is
        # left determines the multipliers of the long rows, and then of the row to spare.
        right = [_ZERO] * len(self.position)
        for v in self.variables:
            if (number := self.component[v]) in self.position:
                right[self.position[number]] += self.slope[v] * cost[v]
        y = [_ZERO] * len(self.rows)
        need = {v: cost[v] for v in self.variables}

        def settle(r: int, value: fmpq) -> None:
            y[r] = value
            for v, a in self.rows[r].terms:
                need[v] -= a * value

        for r, value in zip(self.long, self._dense(self.system.transpose(), right), strict=True):
            settle(r, value)
        for root, tree, spare in zip(self.roots, self.trees, self.spare, strict=True):
            if spare is not None:
                total = sum((self.slope[v] * need[v] for _, v in tree), need[root])
                settle(spare, total / self._along(spare)[0])
            for r, v in reversed(tree):
                settle(r, need[v] / next(a for u, a in self.rows[r].terms if u == v))
        return y


_ZERO, _ONE = fmpq(0), fmpq(1)


def to_fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def to_fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))
