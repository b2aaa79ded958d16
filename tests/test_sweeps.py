"""A sweep of the examples gives the same results wherever it is computed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import grid_figures, marginal_figures
from frequency.marginals import InpHT, MargPS
from mechdesign.evaluate import apart, sweep

EXAMPLES = Path(__file__).parent.parent / "examples"
Sweep = Callable[..., list[Any]]

SCRIPT = """
import sys
import numpy as np
from mechdesign.evaluate import apart, sweep

def draw(k):
    return apart(np.random.default_rng(1), k).integers(1 << 30).item()

where = {"workers": int(sys.argv[1])} if sys.argv[1].isdigit() else {"scheduler": sys.argv[1]}
print(sweep(draw, [(k,) for k in range(5)], **where))
"""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    place = str(tmp_path_factory.mktemp("dask"))
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": ":0",
        "local_directory": place,
    }
    with distributed.LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


def marginals(where: Sweep) -> list[Any]:
    study = marginal_figures.Study(np.random.default_rng(1), 2, True, where)
    population = marginal_figures.trips(np.random.default_rng(2), 500)
    return study.errors(
        population.some, [(kind, d, 2000, 2, 1.0) for kind in (InpHT, MargPS) for d in (3, 4)]
    )


def grids(where: Sweep) -> list[Any]:
    study = grid_figures.Study(
        np.random.default_rng(1), False, n=2000, d=3, c=16, repeats=1, queries=5, sweep=where
    )
    asked = study.asked(2)

    def point(study: grid_figures.Study, kind: str, d: float) -> grid_figures.Point:
        return (
            study.records(kind, d=int(d)),
            [asked],
            lambda system: system([study.c] * int(d), 1.0, study.n),
        )

    return study.swept(
        "",
        partial(grid_figures.measured, point),
        [(kind, d) for kind in grid_figures.KINDS for d in (3, 4)],
    )


@pytest.mark.slow
@pytest.mark.of_rounding  # workers are not perturbed
@pytest.mark.parametrize("measure", [marginals, grids])
def test_processes_and_clusters_compute_what_one_process_computes(
    measure: Callable[[Sweep], list[Any]], scheduler: str
) -> None:
    pytest.importorskip("loky")
    expected = np.array(measure(sweep))
    assert len(np.unique(expected)) > expected.size / 2  # not the same draws for all
    for where in ({"workers": 2}, {"scheduler": scheduler}):
        np.testing.assert_array_equal(measure(partial(sweep, **where)), expected)


@pytest.mark.slow
def test_a_script_need_not_be_where_the_workers_are(tmp_path: Path, scheduler: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", str(script), where],
            env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for where in ("1", "2", scheduler)
    ]
    assert len(set(printed)) == 1


def test_a_case_draws_the_same_whatever_was_drawn_before() -> None:
    rng = np.random.default_rng(1)
    first = apart(rng, "a", 0.5).random(4)
    rng.random(100)
    assert (apart(rng, "a", 0.5).random(4) == first).all()
    others = (
        apart(rng, "a", 0.25),
        apart(rng, "b", 0.5),
        apart(np.random.default_rng(2), "a", 0.5),
    )
    assert all((other.random(4) != first).all() for other in others)


@pytest.mark.parametrize("where", [{}, {"workers": 2}])
def test_a_case_that_fails_ends_the_sweep(where: dict[str, int]) -> None:
    if where:
        pytest.importorskip("loky")
    with pytest.raises(ZeroDivisionError):
        sweep(lambda x: 1 // x, [(1,), (0,), (2,)], **where)


def test_records_of_another_covariance_are_others() -> None:
    study = grid_figures.Study(np.random.default_rng(1), True, n=10_000)
    correlation = [
        np.corrcoef(study.records("normal", covariance=covariance).T)[0, 1]
        for covariance in (0.8, 0.0)
    ]
    assert abs(correlation[0] - 0.8) < 0.05
    assert abs(correlation[1]) < 0.05
    assert (
        study.records("normal", covariance=0.0) == study.records("normal", covariance=0.0)
    ).all()
