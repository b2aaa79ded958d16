"""Measures of what answers err by, beside the mean squared error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mechdesign.base.arrays import Floats
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
