"""How many rows of a table are in each cell of a schema, a block of rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from frequency.schema import Encoded, Schema
from frequency.schema.attribute import ItemAttribute
from mechdesign.base.linear_algebra import Integers
from mechdesign.base.text import printable
from rangeq.central.inputs import checked_shape


def cells_along(schema: Schema) -> tuple[int, ...]:
    """The shape of the histogram of a schema's attributes."""
    for one in schema:
        if not isinstance(one, ItemAttribute):
            raise ValueError(
                f"{printable(one.name)} is {one.values}: a histogram is of attributes whose items"
                " can be listed"
            )
    return checked_shape(schema.sizes)


def count_cells(schema: Schema, tables: Iterable[Any]) -> Integers:
    """The histogram that a curator releases: exact, and private.

    A row is a user. Rows that a policy skips are in no cell.

    Parameters
    ----------
    schema : Schema
        Of the attributes to count by, whose items are the cells: of up to 8, and 2^26 in all.
    tables : iterable of DataFrame, mapping or Encoded
        Parts of the table, as `Schema.encode` takes or gives them. Only one is held at a time.

    Returns
    -------
    numpy.ndarray of int64
        Shape ``schema.sizes``.

    Raises
    ------
    ValueError
        As for `cells_along`.
    InvalidCell
        The first value that no policy takes.

    Examples
    --------
    >>> from frequency.schema import Boolean, Numeric
    >>> schema = Schema([Numeric("age", low=0, high=2, whole=True), Boolean("smokes")])
    >>> day, night = {"age": [0, 2], "smokes": ["no", "yes"]}, {"age": [2], "smokes": ["yes"]}
    >>> count_cells(schema, [day, night]).tolist()
    [[1, 0], [0, 0], [0, 2]]
    """
    sizes = cells_along(schema)
    counts = np.zeros(math.prod(sizes), dtype=np.int64)
    for table in tables:
        encoded = table if isinstance(table, Encoded) else schema.encode(table)
        cells = np.ravel_multi_index(encoded.columns, sizes)
        np.add.at(counts, cells, 1)
    return counts.reshape(sizes)
