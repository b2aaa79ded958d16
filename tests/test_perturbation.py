"""Perturbed linear algebra finds what holds for one order of summation only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import perturbation

ROOT = Path(__file__).parent.parent

SOURCE = """
import numpy as np

def by_difference(x, y):
    return np.sqrt(np.diag(x @ x.T - y @ y.T))

def by_product(x):
    return np.sqrt(np.diag(x @ x.T))

def product(x, y):
    return x @ y

def summed(x, y):
    return np.einsum("ij,jk->ik", x, y)

def solved(x, y):
    return np.linalg.solve(x, y)

def eigen(x):
    return np.linalg.eigh(x)
"""


@pytest.fixture
def functions() -> dict[str, Any]:
    names = dict(perturbation.NAMES)
    exec(compile(perturbation.wrapped(SOURCE, "planted.py"), "planted.py", "exec"), names)
    return names


def test_differences_fail_and_products_do_not(functions) -> None:
    x = np.random.default_rng(1).normal(size=(40, 30))
    turned = x @ np.linalg.qr(np.random.default_rng(2).normal(size=(30, 30)))[0]
    with perturbation.perturbed(7), np.errstate(invalid="ignore"):
        assert np.isnan(functions["by_difference"](x, turned)).any()
        assert np.isfinite(functions["by_product"](x)).all()


def test_results_are_off_by_little_and_the_same_again(functions) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(5, 7)), rng.normal(size=(7, 4))
    square = x @ x.T
    calls = {"product": (x, y), "summed": (x, y), "solved": (square, square[0])}
    for name, given in calls.items():
        with perturbation.perturbed(None):
            plain = np.concatenate([np.ravel(part) for part in functions[name](*given)])
        with perturbation.perturbed(1):
            first, again = (
                np.concatenate([np.ravel(part) for part in functions[name](*given)])
                for _ in range(2)
            )
        with perturbation.perturbed(2):
            other = np.concatenate([np.ravel(part) for part in functions[name](*given)])
        ratio = first / plain - 1
        assert 0.2e-13 < np.abs(ratio).max() < 1.01e-13, name
        assert (first == again).all()
        assert (first != other).any()


def test_eigenvectors_are_others_where_processors_choose_them(functions) -> None:
    x = np.random.default_rng(3).normal(size=(5, 2))
    # Three eigenvalues are 1
    matrix = np.stack([np.eye(5) + x @ x.T, np.diag([1.0, 2, 3, 4, 5])])
    plain = functions["eigen"](matrix)
    with perturbation.perturbed(1):
        found, again = functions["eigen"](matrix), functions["eigen"](matrix)
    np.testing.assert_array_equal(found[1], again[1])
    np.testing.assert_allclose(found[0], plain[0], rtol=1e-12)
    same = found[1] * found[0][:, None] @ found[1].transpose(0, 2, 1)
    np.testing.assert_allclose(same, matrix, atol=1e-11)
    cosines = np.abs((found[1] * plain[1]).sum(axis=1))
    assert (cosines[0, :3] < 0.999).any()
    np.testing.assert_allclose([*cosines[0, 3:], *cosines[1]], 1, rtol=1e-11)
    assert (found[1][1] == -plain[1][1]).any()  # a sign, up to 1e-13 on what is not 0


def test_whole_numbers_stay_exact_and_symmetric_matrices_symmetric(functions) -> None:
    x = np.random.default_rng(4).normal(size=(6, 3))
    whole = np.rint(10 * x)
    perturbation.begin()
    with perturbation.perturbed(5):
        assert (functions["product"](whole, whole.T) == whole @ whole.T).all()
        assert functions["product"](whole.astype(int), whole.T.astype(int)).dtype == np.int64
        assert not perturbation.numerical()
        found = functions["product"](x, x.T)
    assert (found == found.T).all()
    assert perturbation.numerical()


@pytest.mark.slow
def test_a_planted_difference_fails_only_when_it_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(SOURCE)
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_addoption, pytest_runtest_protocol\n"
        "from tests import perturbation\n"
        "perturbation.install(['planted'])\n"
    )
    (tmp_path / "test_planted.py").write_text(
        "import numpy as np\n"
        "import planted\n\n"
        "X = np.arange(1.0, 7.0).reshape(2, 3) / 10\n\n"
        "def test_difference():\n"
        "    with np.errstate(invalid='ignore'):\n"
        "        assert np.isfinite(planted.by_difference(X, X[:, ::1])).all()\n\n"
        "def test_product():\n"
        "    assert np.isfinite(planted.by_product(X)).all()\n\n"
        "def test_without():\n"
        "    pass\n"
    )
    # Differences of equal products are 0; in the repeat, by a nudge of the second, they are not
    source = (tmp_path / "planted.py").read_text()
    (tmp_path / "planted.py").write_text(
        source.replace("x @ x.T - y @ y.T", "x @ x.T - np.flip(np.flip(y, 0) @ np.flip(y, 0).T)")
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_ADDOPTS", None)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    shown = {
        options: subprocess.run(
            [*run, *options], cwd=tmp_path, env=environment, capture_output=True, text=True
        ).stdout
        for options in ((), ("--once",))
    }
    assert "1 failed, 2 passed" in shown[()]
    assert "FAILED test_planted.py::test_difference" in shown[()]
    assert "results of linear algebra are off by 1e-13" in shown[()]
    assert "3 passed" in shown["--once",]
