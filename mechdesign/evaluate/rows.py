"""What an evaluation measures, row by row, and in sum."""

from __future__ import annotations

from typing import NamedTuple


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
