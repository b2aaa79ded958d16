"""Measures of what answers err by, beside the mean squared error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mechdesign.base.linear_algebra import Floats
from mechdesign.base.numbers import whole

Measure: TypeAlias = Callable[[Floats, Floats], float]
"""A function of answers and of the truth, both of shape (number,)."""


def mean_absolute(answers: Floats, truth: Floats) -> float:
    """The mean absolute error; of all prefixes, the Wasserstein-1 distance in domains.

    Parameters
    ----------
    answers, truth : numpy.ndarray of float64
        Shape (number,).

    Returns
    -------
    float
        At least 0.
    """
    return float(np.abs(answers - truth).mean())


def total_variation(answers: Floats, truth: Floats) -> float:
    """Half the sum of absolute errors, for a family that asks for each cell of a table once.

    Parameters
    ----------
    answers, truth : numpy.ndarray of float64
        Shape (cells,).

    Returns
    -------
    float
        At least 0.
    """
    return float(np.abs(answers - truth).sum() / 2)


def mean_square_of_ranges(answers: Floats, truth: Floats, least: int = 1) -> float:
    """The mean squared error of all ranges, from a family that asks for all prefixes in order.

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
        At least 0.

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
    protocol, population : str
        Their names.
    epsilon : float
        The privacy loss of one report.
    users : int
        How many reported.
    repeat : int
        From 0.
    queries : str
        The family's name.
    number : int
        How many queries it has.
    squared : float
        The mean of their squared errors, in fractions of the users.
    largest : float
        The largest of their absolute errors.
    stated : float
        The mean of the variances that the answers state; NaN where one states none.
    covered : float
        The fraction of the intervals that hold the truth; NaN where one answer has none.
    seconds : float
        From the users to the answers of all families.
    key : str
        What the repeat is of, as a digest: the protocol with its parameters, the population,
        queries, seed and confidence.
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
    protocol, population, epsilon, users, queries : str, str, float, int, str
        As of `RepeatErrors`.
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
