"""Attributes of every kind, and noisy estimates of them."""

from __future__ import annotations

import numpy as np

from frequency import Boolean, Categorical, Dates, Numeric

AGE = Numeric("age", low=0, high=120, whole=True, unit="years", missing="item")
CHILDREN = Numeric("children", low=0, high=5, whole=True)
MASS = Numeric("body mass", low=2500, high=6500, bins=20, unit="g", missing="item")
ONE = Numeric("mass", low=2500, high=6500, bins=1)
DELAY = Numeric("delay", [-60, 0, 15, 60, 600], unit="minutes")
INCOME = Numeric(
    "income",
    low=100,
    high=1e6,
    bins=24,
    spacing="logarithmic",
    unit="USD",
    missing="item",
    outside="item",
)
DATES = {
    every: Dates("flown", first, last, every)
    for every, first, last in (
        ("minute", "2013-01-01 05:00", "2013-01-01 06:30"),
        ("hour", "2013-01-01", "2013-01-03 12:00"),
        ("day", "2013-01-29", "2013-02-03"),
        ("week", "2013-01-01", "2013-03-31"),
        ("month", "2001-01-01", "2013-12-31"),
        ("year", "1900-01-01", "2013-12-31"),
    )
}
ORDERED = [AGE, CHILDREN, MASS, ONE, DELAY, INCOME, *DATES.values()]
SEX = Categorical("sex", ["female", "male"], missing="item")
ISLAND = Categorical("island", ["Biscoe", "Dream", "Torgersen"])
WORK = Categorical("occupation", [f"Working in occupation number {k}" for k in range(9)])
COUNTRY = Categorical(
    "country", [f"Country {k:02d} of the world" for k in range(60)], missing="item", outside="item"
)
SMOKES = Boolean("smokes")


def noisy(shape, scale=1.0, error=0.02):
    """Values with some below 0, and their intervals."""
    rng = np.random.default_rng(1)
    values = scale * (rng.dirichlet(np.ones(np.prod(shape))) + rng.normal(0, error, np.prod(shape)))
    values = values.reshape(shape)
    return values, (values - 2 * scale * error, values + 2 * scale * error)
