"""Populations and repeated collections of the figures of chapter 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from examples.marginal_figures import SIX, Population, Study, taxi, viewers
from frequency.marginals import Domain, MarginalProtocol
from reproduction.report import Outcome, Settings, of_data, series
from reproduction.stand_ins import stand_in, viewer_records

Kinds = Sequence[type[MarginalProtocol]]


Means = dict[str, list[float]]


MARG = ("MargRR", "MargHT", "MargPS")
"""One random marginal a user."""


def study(settings: Settings, repeats: int = 5) -> Study:
    return Study(np.random.default_rng(4), 2 if settings.quick else repeats, settings.quick)


def of_trips(compute: Callable[[Settings, Population], Outcome]) -> Callable[[Settings], Outcome]:
    """What needs the taxi trips."""
    return of_data(lambda settings, data: compute(settings, taxi(data / "taxis.csv")))


STAND_IN = "**Stand-in**: {} users of movielens (`dslabs`), drawn with replacement"


def watching() -> Population:
    """The viewers; those of a stand-in where there is one, else generated ones."""
    ratings = stand_in("dslabs", "movielens")
    if ratings is None:
        return viewers(np.random.default_rng(1))
    genres, records = viewer_records(ratings, 16)
    return Population(STAND_IN.format(len(records)), genres, records)


def binary(d: int) -> Domain:
    return Domain.binary(*(f"a{k}" for k in range(d)))


def sweep(
    settings: Settings, xs: Sequence[tuple[int, float]], dims: Sequence[int], ways: Sequence[int]
) -> dict[tuple[int, int], Means]:
    """Mean total variation for every dimension, size of marginals and protocol.

    And for every pair of N and epsilon.
    """
    work, population = study(settings, 2), watching()

    def error(kind: type[MarginalProtocol], d: int, k: int, n: int, epsilon: float) -> float:
        # Few attributes have few marginals to average over, and cost little.
        return work.error(
            kind,
            population.some(d),
            n,
            k,
            epsilon,
            repeats=work.repeats if d > 8 else (6 if settings.quick else 20),
        )[0]

    return {
        (d, k): {kind.__name__: [error(kind, d, k, *x) for x in xs] for kind in SIX}
        for d, k in product(dims, ways)
    }


def shape(settings: Settings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return ((4, 8, 10), (1, 2)) if settings.quick else ((4, 8, 16), (1, 2, 3))


def panels(found: Mapping[tuple[int, int], Means], corner: str, x: Sequence[object]) -> str:
    return "\n\n".join(
        series(f"Mean total variation, d = {d}, k = {k}", corner, x, rows)
        for (d, k), rows in found.items()
    )


def typical(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def ratio(rows: Means, a: str, b: str) -> float:
    return typical(rows[a]) / typical(rows[b])


def worst_for(rows: Means, name: str) -> float:
    """The error over the least of the other protocols'."""
    return max(ratio(rows, name, other) for other in rows if other != name)
