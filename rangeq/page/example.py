"""A table of invented people, which anybody may read, to try the page with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from frequency.schema import Categorical, Numeric, Schema
from mechdesign.base import write_csv

PEOPLE = 5000  #: How many are invented.

LABELS = ("North", "East", "South", "West", "Old Town")

SCHEMA = Schema(
    [
        Categorical("district", LABELS),
        Numeric("age", low=0, high=99, whole=True, unit="years", outside="clip"),
        Numeric("income", low=0, high=100_000, bins=50, unit="EUR", outside="clip"),
        Categorical("smokes", ["yes", "no"], missing="item"),
    ]
)


def example_table(folder: Path) -> tuple[str, str]:
    """Write the table and its schema, unless they are there already."""
    table, schema = "example people.csv", "example people.toml"
    rng = np.random.default_rng(11)
    district = rng.choice(5, PEOPLE, p=[0.3, 0.26, 0.25, 0.17, 0.02])
    age = np.clip(rng.normal(42 + 3 * district, 17, PEOPLE), 0, 99).astype(int)
    income = np.round(rng.lognormal(10.1, 0.5, PEOPLE) * (age > 17), 2)
    smokes = rng.choice(["yes", "no", ""], PEOPLE, p=[0.19, 0.73, 0.08])
    if not (folder / table).exists():
        labels = [LABELS[k] for k in district.tolist()]
        columns = [labels, age.tolist(), income.tolist(), smokes.tolist()]
        write_csv(folder / table, [SCHEMA.names, *zip(*columns, strict=True)])
    if not (folder / schema).exists():
        SCHEMA.save(folder / schema)
    return table, schema
