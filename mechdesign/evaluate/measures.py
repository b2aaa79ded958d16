"""Measures of what answers err by, beside the mean squared error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mechdesign.base import Between, Floats, Integers, shown, whole

#: A function of answers and of the truth, both of shape (number,).
Measure: TypeAlias = Callable[[Floats, Floats], float]


def mean_absolute(answers: Floats, truth: Floats) -> float:
    """Return the mean absolute error; of all prefixes, the Wasserstein-1 distance in domains.

    Parameters
    ----------
    answers, truth : numpy.ndarray of float64
        Shape (number,).

    Returns
    -------
    float
    """
    return float(np.abs(answers - truth).mean())


def total_variation(answers: Floats, truth: Floats) -> float:
    """Return half the sum of absolute errors, for a family of each cell of a table once.

    Parameters
    ----------
    answers, truth : numpy.ndarray of float64
        Shape (cells,).

    Returns
    -------
    float
    """
    return float(np.abs(answers - truth).sum() / 2)


def mean_square_of_ranges(answers: Floats, truth: Floats, least: int = 1) -> float:
    """Return the mean squared error of all ranges, from a family of all prefixes in order.

    A range is answered as the difference of two prefixes: what consistent estimates do. The family
    is ``[(0, numpy.arange(domain))]``; time and memory are linear in the domain.

    Parameters
    ----------
    answers, truth : numpy.ndarray of float64
        Shape (domain,), the whole domain last.
    least : {1, 2}, default 1
        How many items a range has at least.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Another ``least``, or no range is as long.
    """
    whole(least, "least", 1, 2, what="the least number of items of a range")
    points = len(answers) + 1  # a range is a pair of them
    ranges = points * (points - 1) // 2 - (points - 1 if least == 2 else 0)
    if not ranges:
        raise ValueError(f"a domain of {len(answers)} items has no range of {least}")
    errors = np.concatenate([[0.0], answers - truth])
    squares = points * ((errors - errors.mean()) ** 2).sum()
    if least == 2:
        squares = max(0.0, squares - (np.diff(errors) ** 2).sum())
    return float(squares / ranges)


# ------------------------------------------------------------------------------------------------
# What an evaluation measures, row by row, and in sum.


class RepeatErrors(NamedTuple):
    """The errors of the answers to the queries of one family, in one repeat.

    Attributes
    ----------
    protocol, population, queries : str
        Their names; of the family of queries.
    epsilon : float
        The privacy loss of one report.
    users : int
        How many reported.
    repeat : int
        From 0.
    number : int
        How many queries the family has.
    squared, largest : float
        The mean of their squared errors, and the largest absolute one, in fractions of the users.
    stated : float
        The mean of the variances that the answers state; NaN where one states none.
    covered : float
        The fraction of the intervals that hold the truth; NaN where one answer has none.
    seconds : float
        From the users to the answers of all families.
    key : str
        A digest of the protocol with its parameters, population, queries, seed and confidence.
    measures : dict of str to float
        The other measures that were asked for, by name.
    """

    protocol: str
    population: str
    epsilon: float
    users: int
    repeat: int
    queries: str
    number: int
    squared: float
    largest: float
    stated: float
    covered: float
    seconds: float
    key: str
    measures: dict[str, float]


class Summary(NamedTuple):
    """All repeats of a family of queries together.

    Attributes
    ----------
    protocol, population, queries : str
        Their names; of the family of queries.
    epsilon : float
        The privacy loss of one report.
    users : int
        How many reported.
    repeats : int
        How many there are.
    error : float
        The root of the mean squared error, in fractions of the users.
    standard_error : float
        Of ``error``, by the spread of the repeats; NaN of one.
    stated : float
        The root of the mean stated variance; NaN where it is not known.
    covered : float
        The fraction of the intervals that hold the truth; NaN where there are none.
    measures : dict of str to float
        The means of the other measures over the repeats, by name.
    """

    protocol: str
    population: str
    epsilon: float
    users: int
    queries: str
    repeats: int
    error: float
    standard_error: float
    stated: float
    covered: float
    measures: dict[str, float]


# ------------------------------------------------------------------------------------------------
# EstimatedBy: a protocol with another estimate.


class EstimatedBy:
    """A protocol for `evaluate`, with another way to estimate from the same reports.

    Parameters
    ----------
    protocol : object
        Makes and aggregates the reports, or simulates them.
    estimate : callable
        From an aggregate an estimate, that has ``answer(where)``: post-processed, as fitted.
    """

    def __init__(self, protocol: Any, estimate: Callable[[Any], Any]) -> None:
        self.protocol = protocol
        self.estimate = estimate

    def __getattr__(self, name: str) -> Any:
        if name in ("privatize", "aggregate", "simulate"):
            return getattr(self.protocol, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


# ------------------------------------------------------------------------------------------------
# What protocols are tried out on: populations, and the true answers to questions about them.


_ROUNDED = 1e-6  # how far the sum of shares may be from 1


@dataclass(frozen=True, eq=False)
class Population:
    """Users, or what they are drawn from, as `mechdesign.evaluate.evaluate` takes it.

    Raises ValueError for what is no population, and for shares without a number of users, or that
    do not sum to 1; of a function when it draws.
    """

    name: str
    given: Any
    users: int | None  # how many are drawn for each repeat; None: all of those given

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
    asked = where if isinstance(where, Between) else Between(where, where)
    first, last = asked.first, asked.last
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
    if isinstance(asked, Between):
        first, last = (np.asarray(end)[..., None] for end in (asked.first, asked.last))
        return (column >= first) & (column <= last)
    return column == np.asarray(asked)[..., None]
