"""Exact solutions of the linear systems of a basis, primal and dual, in rational arithmetic.

A basis of a mechanism program consists mostly of rows with one or two variables, ``a x + b y = 0`` or ``a x = b``. Seen as
edges between variables (and one extra node for the constant 1) they fall into connected components, in each of which one
unknown determines all the others. Only the few long rows (column sums) tie components together: a dense system of about
n/2 or n unknowns is left, which FLINT solves exactly. The dual system has the transposed shape and is solved by the same
components, stripping leaves.
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


_CONSTANT = -1
"""The node of the constant 1."""


class _Components:
    """Variables as ``weight[v] * root``, one root a component; the root of the constant's component is 1.

    A component whose rows contradict every value of its root but 0 has root 0 and is called dead.
    """

    def __init__(self, rows: Sequence[Row], variables: Sequence[int]) -> None:
        self.rows, self.variables = rows, variables
        self.long: list[int] = []
        self.ends: list[tuple[int, fmpq, int | None, fmpq]] = [(0, _ZERO, None, _ZERO)] * len(rows)
        self.incident: dict[int, list[int]] = {v: [] for v in (_CONSTANT, *variables)}
        for r, row in enumerate(rows):
            terms = row.terms if row.bound == 0 else (*row.terms, (_CONSTANT, -row.bound))
            if not row.terms:
                raise SingularBasis("a row without variables")
            if len(terms) > 2:
                self.long.append(r)
                continue
            (u, a), (v, b) = terms[0], terms[1] if len(terms) == 2 else (None, _ZERO)
            self.ends[r] = (u, a, v, b)
            self.incident[u].append(r)
            if v is not None:
                self.incident[v].append(r)
        self._walk()
        self._long_rows()

    def _walk(self) -> None:
        """Weights along a spanning tree of each component, its rows in the order they were reached, and the rows left over."""
        self.component: dict[int, int] = {}
        self.weight: dict[int, fmpq] = {}
        self.tree: list[list[tuple[int, int]]] = []  # (row, the variable it reached)
        self.extra: list[list[int]] = []  # rows that close a cycle, or have one variable
        self.roots: list[int] = []
        for root in self.incident:
            if root in self.component:
                continue
            number = len(self.roots)
            self.roots.append(root)
            tree, extra, used = list[tuple[int, int]](), list[int](), set[int]()
            self.component[root], self.weight[root] = number, _ONE
            stack = [root]
            while stack:
                u = stack.pop()
                for r in self.incident[u]:
                    if r in used:
                        continue
                    used.add(r)
                    first, a, second, b = self.ends[r]
                    v = second if first == u else first
                    if v is None or v in self.component:
                        extra.append(r)
                        continue
                    self.component[v] = number
                    self.weight[v] = self.weight[u] * (-a / b if first == u else -b / a)
                    tree.append((r, v))
                    stack.append(v)
            self.tree.append(tree)
            self.extra.append(extra)
        if self.extra[0] or any(len(extra) > 1 for extra in self.extra):
            raise SingularBasis("the short rows are dependent")
        self.dead = [bool(extra) for extra in self.extra]
        for number, extra in enumerate(self.extra):
            if extra and self._mismatch(extra[0]) == 0:
                raise SingularBasis(f"the short rows of component {number} are dependent")
        live = [number for number in range(1, len(self.tree)) if not self.dead[number]]
        self.position = {number: k for k, number in enumerate(live)}

    def _mismatch(self, r: int) -> fmpq:
        u, a, v, b = self.ends[r]
        return a * self.weight[u] + (b * self.weight[v] if v is not None else _ZERO)

    def _long_rows(self) -> None:
        size = len(self.position)
        if len(self.long) != size:
            raise SingularBasis(f"{len(self.long)} long rows for {size} components")
        self.known = [self.rows[r].bound for r in self.long]
        system = [[_ZERO] * size for _ in range(size)]
        for k, r in enumerate(self.long):
            for v, a in self.rows[r].terms:
                number = self.component[v]
                if number == 0:
                    self.known[k] -= a * self.weight[v]
                elif not self.dead[number]:
                    system[k][self.position[number]] += a * self.weight[v]
        self.system = fmpq_mat(size, size, [entry for line in system for entry in line])

    def _dense(self, system: fmpq_mat, right: list[fmpq]) -> list[fmpq]:
        if not right:
            return []
        try:
            return system.solve(fmpq_mat(len(right), 1, right)).entries()
        except ZeroDivisionError as error:
            raise SingularBasis("the long rows are dependent") from error

    def primal(self) -> dict[int, fmpq]:
        roots = self._dense(self.system, self.known)
        values = {}
        for v in self.variables:
            number = self.component[v]
            if number == 0:
                values[v] = self.weight[v]
            else:
                values[v] = _ZERO if self.dead[number] else self.weight[v] * roots[self.position[number]]
        return values

    def dual(self, cost: Sequence[fmpq]) -> list[fmpq]:
        # Weighted by weight[v] and summed over a live component, the equations of y lose every short row: what is left
        # determines the multipliers of the long rows.
        right = [_ZERO] * len(self.position)
        for v in self.variables:
            number = self.component[v]
            if number in self.position:
                right[self.position[number]] += self.weight[v] * cost[v]
        y = [_ZERO] * len(self.rows)
        for r, value in zip(self.long, self._dense(self.system.transpose(), right), strict=True):
            y[r] = value
        need = {v: cost[v] for v in self.variables}
        need[_CONSTANT] = _ZERO  # the constant asks nothing: its component's tree hangs from it
        for r in self.long:
            for v, a in self.rows[r].terms:
                need[v] -= a * y[r]
        for number, tree in enumerate(self.tree):
            if self.dead[number]:
                extra = self.extra[number][0]
                members = [v for _, v in tree]
                root = self.roots[number]
                total = sum((self.weight[v] * need[v] for v in members), self.weight[root] * need[root])
                self._settle(y, need, extra, total / self._mismatch(extra))
            for r, v in reversed(tree):
                first, a, _, b = self.ends[r]
                self._settle(y, need, r, need[v] / (a if first == v else b))
        return y

    def _settle(self, y: list[fmpq], need: dict[int, fmpq], r: int, value: fmpq) -> None:
        y[r] = value
        u, a, v, b = self.ends[r]
        need[u] -= a * value
        if v is not None:
            need[v] -= b * value


_ZERO, _ONE = fmpq(0), fmpq(1)


def to_fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def to_fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))
