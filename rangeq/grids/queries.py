"""Conjunctions of closed intervals, checked, and grouped by the attributes that they ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core.answer import place_of
from frequency.schema import Domain
from mechdesign.base.linear_algebra import Items
from rangeq.core.intervals import InvalidRange

MOST_ATTRIBUTES = 20
"""The most attributes that a query may name: the answer of many is one of 2^lambda numbers that are
estimated together.
"""


class Queries(NamedTuple):
    """Queries that ask about the same attributes, each for less than all of its values.

    Attributes
    ----------
    rows : numpy.ndarray of int64
        Shape (queries,): their positions among all queries.
    places : tuple of int
        The attributes' places, increasing; none for queries that all records answer.
    left, right : numpy.ndarray of int64
        Shape (queries, attributes): the ends of the closed ranges.
    """

    rows: Items
    places: tuple[int, ...]
    left: Items
    right: Items


class Rectangles(NamedTuple):
    """Rectangles that do not overlap.

    Attributes
    ----------
    left, right : numpy.ndarray of int64
        Shape (rectangles, 2): the ends of the closed ranges of both attributes.
    """

    left: Items
    right: Items


def rectangles(mask: npt.NDArray[np.bool_]) -> Rectangles:
    """Cut a region of cells into rectangles: runs of a row, with the same runs of the next rows.

    Shapes: `mask` (rows, columns).
    """
    steps = np.diff(np.pad(mask, [(0, 0), (1, 1)]).astype(np.int8), axis=1)
    open_since, boxes = dict[tuple[int, int], int](), []
    for row in range(len(mask) + 1):
        runs = set[tuple[int, int]]()
        if row < len(mask):
            first, last = np.flatnonzero(steps[row] == 1), np.flatnonzero(steps[row] == -1) - 1
            runs = set(zip(first.tolist(), last.tolist(), strict=True))
        # Invariant: `open_since` has the runs of the row before with the row where they began;
        # those that do not go on are closed
        for run in [run for run in open_since if run not in runs]:
            boxes.append((open_since.pop(run), run[0], row - 1, run[1]))
        for run in runs:
            open_since.setdefault(run, row)
    ends = np.array(boxes, dtype=np.int64).reshape(-1, 2, 2)
    return Rectangles(ends[:, 0], ends[:, 1])


def grouped(
    attributes: Domain,
    places: npt.ArrayLike,
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    most: int = MOST_ATTRIBUTES,
) -> tuple[int, list[Queries]]:
    """The number of queries, and the queries of each set of attributes.

    An attribute asked for in whole restricts nothing, and is left out.

    Shapes: `places` (m, lambda), `left` and `right` (m, lambda).
    """
    p, a, b = np.asarray(places), np.asarray(left), np.asarray(right)
    if p.dtype.kind == "U":
        p = np.array(
            [place_of(str(name), attributes.names, InvalidRange) for name in p.ravel()],
            dtype=np.int64,
        ).reshape(p.shape)
    if any(array.dtype.kind not in "iu" and array.size for array in (p, a, b)):
        raise InvalidRange(
            f"attributes and ends of queries must be integers, got {p.dtype}, {a.dtype} and"
            f" {b.dtype}"
        )
    if (
        a.ndim != 2
        or b.shape != a.shape
        or p.shape not in (a.shape, a.shape[1:])
        or not 1 <= a.shape[1] <= most
    ):
        given = f"attributes {p.shape}, ends {a.shape} and {b.shape}"
        raise InvalidRange(f"queries must have shape (m, lambda), lambda 1 to {most}, got {given}")
    p, a, b = np.broadcast_to(p, a.shape).astype(np.int64), a.astype(np.int64), b.astype(np.int64)
    _first(
        ((p < 0) | (p >= len(attributes))).any(axis=1),
        lambda k: f"attributes are 0 .. {len(attributes) - 1}, got {p[k].tolist()}",
    )
    order = np.argsort(p, axis=1, kind="stable")
    p, a, b = (np.take_along_axis(array, order, axis=1) for array in (p, a, b))
    _first(
        (np.diff(p, axis=1) == 0).any(axis=1),
        lambda k: f"a query must name distinct attributes, got {p[k].tolist()}",
    )
    sizes = np.array(attributes.sizes)[p]
    bad = ((a < 0) | (a > b) | (b >= sizes)).any(axis=1)
    _first(
        bad,
        lambda k: (
            f"{a[k].tolist()} to {b[k].tolist()} are not ranges within {sizes[k].tolist()} values"
        ),
    )
    kept = np.where((a == 0) & (b == sizes - 1), -1, p)
    order = np.argsort(kept, axis=1, kind="stable")
    kept, a, b = (np.take_along_axis(array, order, axis=1) for array in (kept, a, b))
    return len(p), list(_groups(kept, a, b))


def _groups(kept: Items, a: Items, b: Items) -> Iterator[Queries]:
    """Group queries by the places that restrict them, after a -1 for each that does not."""
    if not len(kept):
        return
    sets, which = np.unique(kept, axis=0, return_inverse=True)
    for k, places in enumerate(sets):
        rows, first = np.flatnonzero(which.ravel() == k), int((places < 0).sum())
        yield Queries(rows, tuple(places[first:].tolist()), a[rows, first:], b[rows, first:])


def _first(bad: Any, message: Callable[[int], str]) -> None:
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidRange(message(k), k)
