"""Importing a package is quick: it loads what most who import it need, and the rest when it is
used.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys

import pytest

PACKAGES = [
    "mechdesign",
    "mechdesign.perturbation",
    "frequency",
    "frequency.heavy",
    "frequency.marginals",
    "frequency.schema",
    "frequency.storage",
    "rangeq",
    "rangeq.central",
    "rangeq.grids",
]
LATER = {
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "matplotlib",
    "highspy",
    "tqdm",
    "pandas",
    "pyarrow",
    "dask",
}
"""Each takes as long to load as all of these packages, or is an extra."""


EXTRAS = [
    "argcomplete",
    "dask",
    "distributed",
    "dp_accounting",
    "duckdb",
    "jinja2",
    "loky",
    "mbi",
    "opendp",
    "openpyxl",
    "pandas",
    "polars",
    "pyarrow",
    "pyreadstat",
    "python_calamine",
    "starlette",
    "statsmodels",
    "uvicorn",
    "xlsxwriter",
]
"""Modules of the extras, and of the tests: not there after a plain installation."""

WITHOUT_EXTRAS = f"""
import sys

sys.modules.update(dict.fromkeys({EXTRAS}))
from frequency import GRR, Categorical, Numeric, Schema, plan_survey
from mechdesign import Privacy, design
from mechdesign.cli import main
from mechdesign.losses import L2
from rangeq.central import Hierarchy, Release, count_cells

found = design(n=8, privacy=Privacy(alpha="9/10"), loss=L2())
found.mechanism.release([3])
oracle = GRR(8, 1)
oracle.privatize_one(3)
oracle.estimate(oracle.aggregate(oracle.privatize([3, 4])))
people = Schema([Numeric("age", low=0, high=63, whole=True), Categorical("sex", ["f", "m"])])
table = {{"age": [5, 60] * 50, "sex": ["f", "m"] * 50}}
survey = plan_survey("ranges", people, "age", epsilon=1, n=100).survey
survey.estimate(survey.aggregate(survey.privatize(table))).answer({{"age": "5:9"}}).interval()
counts = count_cells(people, [table])
release = Release.draw(people, Hierarchy(people.sizes, 1, 4), counts)
release.estimate.answer({{"age": "5:9", "sex": "f"}}).interval()
main(["--help"])
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_large_is_loaded_and_nobody_is_warned(package: str) -> None:
    assert set(run(f"import sys, {package}; print(*sys.modules)").split()) & LATER == set()


@pytest.mark.slow
def test_what_comes_later_is_what_the_environment_has() -> None:
    """No name of the list above is misspelt: each can be loaded, and is then seen."""
    here = {name for name in LATER if importlib.util.find_spec(name)}
    assert here >= LATER - {"pandas", "pyarrow", "dask"}
    assert set(run(f"import sys, {', '.join(sorted(here))}; print(*sys.modules)").split()) >= here


def test_without_extras_counts_are_released_and_collected_and_every_command_has_its_help() -> None:
    assert "privatize" in run(WITHOUT_EXTRAS)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_names_are_there_and_sorted(package: str) -> None:
    module = importlib.import_module(package)
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    assert set(names) - {"__builtins__"} == set(module.__all__) <= set(dir(module))
    assert len(set(module.__all__)) == len(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_classes_and_functions_can_be_pickled(package: str) -> None:
    """They are found again under the names that they were made under."""
    module = importlib.import_module(package)
    for name in module.__all__:
        exported = getattr(module, name)
        if inspect.isclass(exported) or inspect.isfunction(exported):
            assert pickle.loads(pickle.dumps(exported)) is exported, name


def test_a_misspelt_name_is_an_error() -> None:
    import mechdesign

    with pytest.raises(AttributeError, match="__versoin__"):
        mechdesign.__versoin__  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="desing"):
        exec("from mechdesign import desing")
