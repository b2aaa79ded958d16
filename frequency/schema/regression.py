"""Least squares lines of numeric attributes, from synthetic samples of what was estimated.

Of two attributes alone: how three depend on each other the models of pairs do not know well enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from frequency.core import Answer, of_samples, place_of
from frequency.exceptions import InvalidQuestion
from frequency.schema.estimate import SurveyEstimate
from frequency.schema.numeric import Numeric
from mechdesign.base import Floats, Integers, printable

_ROWS, _SAMPLES = 20_000, 40  # of each sample, and how many


class FittedLine(NamedTuple):
    """A line of one attribute on another.

    Attributes
    ----------
    intercept : Answer
        In the attribute's unit.
    slope : Answer
        In its unit over that of the other.
    correlation : Answer
        Between the two.
    users : float
        The part of the rows that have values of both.
    """

    intercept: Answer
    slope: Answer
    correlation: Answer
    users: float


def least_squares(
    estimate: SurveyEstimate, of: str, on: str, rng: np.random.Generator | None = None
) -> FittedLine:
    """Return the least squares line of a numeric attribute on another one.

    It is of the users who have values of both. Values are the middles of their bins: so bins that
    are wide beside the spread of an attribute change it, which is in no interval. Each of 40
    distributions that are as likely as the other gives a line, and their differences the errors:
    intervals hold on average over kinds of data, as those of the fitted estimate do.

    Parameters
    ----------
    estimate : SurveyEstimate
        That can be sampled from: of marginals or ranges of several attributes, fitted, or of a
        curator's release.
    of, on : str
        The attribute that the line is about, and the other one.
    rng : numpy.random.Generator, optional
        To draw with. None: the same samples every time.

    Returns
    -------
    FittedLine
        With intervals.

    Raises
    ------
    InvalidQuestion
        No such attributes, or not numeric, or the estimate has no samples.
    ValueError
        By the estimate hardly anybody has different values of both.

    Examples
    --------
    >>> from rangeq.central import CentralFlat, Release, count_cells
    >>> from frequency.schema import Schema
    >>> schema = Schema([Numeric(name, low=0, high=19, whole=True) for name in ("x", "y")])
    >>> rng = np.random.default_rng(1)
    >>> x = rng.integers(0, 15, 20_000)
    >>> counts = count_cells(schema, [{"x": x, "y": x // 2 + rng.integers(0, 5, 20_000)}])
    >>> release = Release.draw(schema, CentralFlat((20, 20), 1), counts, rng)
    >>> low, high = least_squares(release.estimate, "y", "x").slope.interval()
    >>> bool(low < 0.5 < high), bool(high - low < 0.05)
    (True, True)
    """
    schema = estimate.schema
    places = [place_of(name, schema.names) for name in (of, on)]
    if places[0] == places[1]:
        raise InvalidQuestion(f"a line is of one attribute on another, got {printable(of)} twice")
    middles: list[Floats] = []
    for place in places:
        attribute = schema.attributes[place]
        if not isinstance(attribute, Numeric):
            raise InvalidQuestion(f"{printable(attribute.name)} is not numeric: it has no line")
        bins = np.arange(attribute.bins)
        ends = [attribute.values_in(bins, np.full(len(bins), part)) for part in (0.0, 1.0)]
        middles.append((ends[0] + ends[1]) / 2.0)
    generator = np.random.default_rng(0) if rng is None else rng
    drawn = estimate.item_samples(_ROWS, _SAMPLES, generator)
    lines = np.array([_line([items[:, place] for place in places], middles) for items in drawn])
    if not np.isfinite(lines).all():
        raise ValueError("by the estimate hardly anybody has different values: there is no line")
    intercept, slope, correlation = map(of_samples, lines.T[:3])
    return FittedLine(intercept, slope, correlation, float(lines[:, 3].mean()))


def _line(columns: Sequence[Integers], middles: Sequence[Floats]) -> list[float]:
    """The intercept, the slope and the correlation of rows of items, and how many have values."""
    pairs = list(zip(columns, middles, strict=True))
    known = np.logical_and.reduce([column < len(values) for column, values in pairs])
    y, x = (values[column[known]] for column, values in pairs)
    share = float(known.mean())
    if len(x) < 2 or not x.std() or not y.std():
        return [np.nan, np.nan, np.nan, share]
    correlation = float(np.corrcoef(x, y)[0, 1])
    slope = correlation * float(y.std() / x.std())
    return [float(y.mean() - slope * x.mean()), slope, correlation, share]
