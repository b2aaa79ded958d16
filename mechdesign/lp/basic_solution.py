"""Basic solutions of linear inequalities in exact arithmetic.

A point of a face is moved to a vertex of that face.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from flint import fmpq, fmpq_mat

from mechdesign.lp.basis import ONE, ZERO


def basic(
    point: Mapping[int, fmpq],
    rows: Sequence[Mapping[int, fmpq]],
    bounds: Sequence[fmpq],
    free: Collection[int] = (),
) -> tuple[dict[int, fmpq], list[fmpq]]:
    """A vertex of the smallest face of ``x >= 0, rows x >= bounds`` that contains a point.

    Variables and slacks that are 0 at the point stay 0. The point itself is returned if it is a
    vertex.

    Parameters
    ----------
    point : mapping of int to flint.fmpq
        The value of every variable, of any sign if it is ``free``.
    rows : sequence of (mapping of int to flint.fmpq)
        The rows of the constraint matrix: the coefficient of each variable, where it is not 0.
    bounds : sequence of flint.fmpq
        The right sides, as many as rows; the point satisfies all constraints.
    free : collection of int, optional
        Variables without a bound: they become 0 only if nothing else can.

    Returns
    -------
    values : dict of int to flint.fmpq
        The value of every variable.
    slacks : list of flint.fmpq
        The slack of every row.
    """
    slack = [
        sum((a * point[v] for v, a in row.items()), -bound)
        for row, bound in zip(rows, bounds, strict=True)
    ]
    # Variables by their number, and the slack of row r as -1 - r.
    values = {**point, **{-1 - r: value for r, value in enumerate(slack)}}
    support = [v for v, value in point.items() if value != 0]
    tight = [row for row, value in zip(rows, slack, strict=True) if value == 0]
    directions = list[dict[int, fmpq]]()
    for change in _kernel([[row.get(v, ZERO) for v in support] for row in tight], len(support)):
        direction = {v: a for v, a in zip(support, change, strict=True) if a != 0}
        for r, row in enumerate(rows):
            moved = sum((a * direction[v] for v, a in row.items() if v in direction), ZERO)
            if moved != 0:
                direction[-1 - r] = moved
        directions.append(direction)
    while directions:
        direction = directions.pop()
        bounded = [v for v in direction if v not in free]
        first = min(bounded or direction, key=lambda v: abs(values[v] / direction[v]))
        step = values[first] / direction[first]
        for v, a in direction.items():
            values[v] -= step * a
        directions = [_without(first, other, direction) for other in directions]
    return {v: values[v] for v in point}, [values[-1 - r] for r in range(len(rows))]


def pivots(matrix: Sequence[Sequence[fmpq]]) -> list[int]:
    """The columns of a matrix that are independent of those before them, as many as its rank."""
    return _reduced(matrix)[1]


def _reduced(matrix: Sequence[Sequence[fmpq]]) -> tuple[fmpq_mat, list[int]]:
    """The reduced row echelon form, and the pivot column of each of its rows that are not 0."""
    width = len(matrix[0]) if matrix else 0
    echelon, rank = fmpq_mat(len(matrix), width, [a for row in matrix for a in row]).rref()
    return echelon, [next(k for k in range(width) if echelon[row, k] != 0) for row in range(rank)]


def _kernel(matrix: Sequence[Sequence[fmpq]], width: int) -> Iterator[list[fmpq]]:
    """Independent vectors that span all x with ``matrix x = 0``."""
    echelon, leading = _reduced(matrix)
    for free in sorted({*range(width)} - {*leading}):
        vector = [ZERO] * width
        vector[free] = ONE
        for row, k in enumerate(leading):
            vector[k] = -echelon[row, free]
        yield vector


def _without(v: int, vector: Mapping[int, fmpq], other: Mapping[int, fmpq]) -> dict[int, fmpq]:
    """A vector minus the multiple of another that makes component v zero."""
    if v not in vector:
        return dict(vector)
    share = vector[v] / other[v]
    total = {k: vector.get(k, ZERO) - share * other.get(k, ZERO) for k in {**vector, **other}}
    return {k: a for k, a in total.items() if a != 0}
