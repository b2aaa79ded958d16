"""What protocols are tried out on: populations, and the true answers to questions about them."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.base.linear_algebra import Floats, Integers
from mechdesign.base.numbers import whole
from mechdesign.base.text import shown

_ROUNDED = 1e-6
"""How far the sum of shares may be from 1."""


@dataclass(frozen=True, eq=False)
class Population:
    """Users, or what they are drawn from.

    Parameters
    ----------
    name : str
        Of the population.
    given : array_like or mapping
        See `mechdesign.evaluate.evaluate`.
    users : int, optional
        How many are drawn for each repeat; None: those given, all of them each time.

    Raises
    ------
    ValueError
        What is no population, shares without a number of users, or that do not sum to 1; of a
        function when it draws.
    """

    name: str
    given: Any
    users: int | None

    def __post_init__(self) -> None:
        if self.users is not None:
            whole(self.users, "users", 1, what="a number of users")
        if callable(self.given):
            return
        if self.columns is not None:
            lengths = {len(column) for column in self.columns.values()}
            if len(lengths) != 1 or not min(lengths):
                raise ValueError(
                    f"the columns of {shown(self.name)} must be equally long, and not empty, got"
                    f" {shown(sorted(lengths))}"
                )
            return
        counts = self._array
        if counts.ndim == 2 and counts.dtype.kind in "iu" and len(counts):
            return
        if counts.ndim != 1 or not len(counts) or counts.dtype.kind not in "iuf":
            raise ValueError(
                f"{shown(self.name)} must be the counts or shares of items, records of shape"
                f" (users, attributes), or a table of columns, got {shown(self.given)}"
            )
        if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0):
            raise ValueError(f"counts of {shown(self.name)} must be at least 0, and not all 0")
        if counts.dtype.kind == "f" and self.users is None:
            raise ValueError(f"{shown(self.name)} has shares: say how many users are drawn")
        if counts.dtype.kind == "f" and abs(counts.sum() - 1) > _ROUNDED:
            raise ValueError(
                f"{shown(self.name)} has shares, since they are floats, and these sum to"
                f" {float(counts.sum()):.6g}, not to 1; counts are integers"
            )

    @cached_property
    def columns(self) -> dict[str, Any] | None:
        """The columns of a table by name; None for arrays and functions."""
        names = getattr(self.given, "columns", self.given)
        if not isinstance(self.given, Mapping) and not hasattr(self.given, "columns"):
            return None
        return {str(name): np.asarray(self.given[name]) for name in names}

    @cached_property
    def _array(self) -> Any:
        return np.asarray(self.given)

    def drawn(self, rng: np.random.Generator) -> Any:
        """The users of one repeat: counts of items, an array of records, or a table of columns."""
        if callable(self.given):
            return Population(self.name, self.given(rng), self.users).drawn(rng)
        if self.columns is None and self._array.ndim == 1:
            counts = self._array
            if self.users is None:
                return counts.astype(np.int64)
            return rng.multinomial(self.users, counts / counts.sum())
        some = self._array if self.columns is None else next(iter(self.columns.values()))
        rows = slice(None) if self.users is None else rng.integers(0, len(some), self.users)
        if self.columns is None:
            return self._array[rows]
        return {name: column[rows] for name, column in self.columns.items()}


def first(held: Any) -> Any:
    """The first user, of records and tables; all counts."""
    if isinstance(held, dict):
        return {name: column[:1] for name, column in held.items()}
    return held[:1] if held.ndim == 2 else held


def truth(where: Any, held: Any) -> Floats:
    """The fraction of the users of whom the answer to a question tells."""
    if not isinstance(held, dict) and held.ndim == 1:
        return _of_counts(where, held)
    if not isinstance(where, Mapping):
        raise ValueError(f"a question about records is a mapping, got {shown(where)}")
    inside: Any = True
    for name, asked in where.items():
        column = np.asarray(held[name] if isinstance(held, dict) else held[:, int(name)])
        inside = inside & _meets(asked, column)
    return np.asarray(np.mean(inside, axis=-1))


def _of_counts(where: Any, held: Integers) -> Floats:
    total = held.sum()
    if isinstance(where, Mapping):
        (where,) = where.values()
    listed = isinstance(where, (list, AbstractSet, range))
    first, last = where if isinstance(where, tuple) else (where, where)
    for items in (list(where),) if listed else (first, last):
        if np.size(items) and not 0 <= np.min(items) <= np.max(items) < len(held):
            raise ValueError(f"items are 0 to {len(held) - 1}, and a question is {shown(where)}")
    if listed:
        return np.asarray(held[list(where)].sum() / total)
    below = np.concatenate([[0], np.cumsum(held)])
    return np.asarray((below[np.asarray(last) + 1] - below[np.asarray(first)]) / total)


def _meets(asked: Any, column: Any) -> Any:
    """Whether each user's value is what is asked for: shape (*questions, users)."""
    if isinstance(asked, (list, AbstractSet, range)):
        return np.isin(column, list(asked))
    if isinstance(asked, tuple):
        first, last = (np.asarray(end)[..., None] for end in asked)
        return (column >= first) & (column <= last)
    return column == np.asarray(asked)[..., None]
