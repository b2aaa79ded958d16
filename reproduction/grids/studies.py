"""Systems and populations of the figures of Yang et al."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from examples.grid_figures import Queries, Study, truth
from mechdesign.base.numbers import Floats
from rangeq.grids import HDG, LHIO, MSW, TDG, ConjunctionProtocol, RangeCALM, Uniform
from reproduction.report import Settings, table

Errors = dict[tuple[str, str, int], list[float]]
"""Mean absolute errors by system, population and number of attributes of the queries; along what is
varied.
"""


DATA = (
    "Ipums, Bfive, Loan and Acs are not part of this repository: the Normal and Laplace data alone."
)


class InconsistentTDG(TDG):
    """ITDG of the paper: without Phase 2."""

    def _agreeing(self, tables: list[Floats], precisions: Floats) -> list[Floats]:
        return tables


class InconsistentHDG(HDG):
    """IHDG of the paper."""

    def _agreeing(self, tables: list[Floats], precisions: Floats) -> list[Floats]:
        return tables


SYSTEMS: dict[str, Callable[..., ConjunctionProtocol]] = {
    "Uni": Uniform,
    "MSW": partial(MSW, smooth=True),
    "CALM": partial(RangeCALM, nonnegative=True),
    "LHIO": partial(LHIO, nonnegative=True),
    "TDG": TDG,
    "HDG": HDG,
}
"""The baselines with their published post-processing: EMS, and norm-sub with consistency."""
AS_HERE: dict[str, Callable[..., ConjunctionProtocol]] = {
    "MSW, EM": MSW,
    "CALM, linear": RangeCALM,
    "LHIO, linear": LHIO,
}
"""The baselines as they are here unless they are asked for otherwise: better."""
BASELINES = "MSW with EMS, CALM and LHIO with norm-sub: see Figure 1. "


def study(settings: Settings, seed: int, n: int = 1_000_000, repeats: int = 1) -> Study:
    """The defaults of section 5.1, with fewer queries and repeats.

    A quick run has a twentieth of the users, and the normal records only.
    """
    if settings.quick:
        return Study(np.random.default_rng(seed), True, n // 20, repeats=1, queries=16)
    return Study(np.random.default_rng(seed), False, n, repeats=repeats, queries=100)


class Setting(NamedTuple):
    """One point of a figure: records of c values, and lists of queries.

    ``several`` has the number of attributes of each list of queries.
    """

    records: np.ndarray
    asked: Sequence[Queries]
    several: Sequence[int]
    epsilon: float = 1.0
    c: int = 64


def sweep(
    at: Study,
    points: Iterable[Any],
    point: Callable[[str, Any], Setting],
    systems: dict[str, Callable[..., ConjunctionProtocol]],
) -> Errors:
    """For each population, point and system the errors, over users and queries, of each list."""
    found: Errors = {}
    for kind in at.kinds:
        for value in points:
            now = point(kind, value)
            true = [truth(now.records, queries) for queries in now.asked]
            for name, system in systems.items():
                protocol = system([now.c] * now.records.shape[1], now.epsilon, len(now.records))
                for number, error in zip(
                    now.several, at.errors(protocol, now.records, now.asked, true), strict=True
                ):
                    found.setdefault((name, kind, number), []).append(error)
    return found


def detail(found: Errors, points: Iterable[object]) -> str:
    rows = (
        [kind, number, name, *(f"{x:.4f}" for x in errors)]
        for (name, kind, number), errors in sorted(found.items(), key=order)
    )
    return table(["data", "attributes", "system", *map(str, points)], rows)


def order(item: tuple[tuple[str, str, int], list[float]]) -> tuple[str, int]:
    return item[0][1], item[0][2]


def best_share(
    found: Errors, name: str, among: Iterable[str], numbers: Iterable[int], margin: float = 1.05
) -> float:
    """In which share of all points a system errs at most a little more than every other."""
    among, numbers = list(among), list(numbers)
    wins = [
        errors[k]
        <= margin * min(np.nan_to_num(found[other, kind, number][k], nan=np.inf) for other in among)
        for (system, kind, number), errors in found.items()
        if system == name and number in numbers
        for k in range(len(errors))
    ]
    return float(np.mean(wins))
