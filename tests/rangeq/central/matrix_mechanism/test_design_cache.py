"""Designs that are kept: made once, found for the same request only, made anew when damaged."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mechdesign import ZCDP, ApproximateDP, Privacy, plan
from mechdesign.tables import DesignCache
from rangeq.central import Workload, choice, workload_optimal
from rangeq.central.matrix_mechanism import design as designs
from rangeq.central.matrix_mechanism.strategy_file import load_strategy, save_strategy

MATRIX = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 0]])


@pytest.fixture
def made(monkeypatch):
    """How often something is designed."""
    calls = []
    for name in ("_for_gaussian_noise", "_for_laplace_noise"):
        search = getattr(designs, name)

        def counted(*arguments, search=search):
            calls.append(arguments)
            return search(*arguments)

        monkeypatch.setattr(designs, name, counted)
    return calls


@pytest.mark.parametrize(
    ("workload", "domain"),
    [("ranges", 16), (MATRIX, 3), ("marginals", (2, 3)), ([(2, "cells"), (1, "prefixes")], 9)],
    ids=str,
)
@pytest.mark.parametrize("promise", [ZCDP("1/2"), Privacy(alpha="1/2")], ids=repr)
def test_a_design_is_made_once(workload, domain, promise, made, tmp_path):
    directory = tmp_path / "designs" / "here"
    first = workload_optimal(workload, domain, promise, cache=directory)
    again = workload_optimal(workload, domain, promise, cache=directory)
    assert len(made) == 1
    assert again.strategy == first.strategy
    assert (again.bound, again.variance) == (first.bound, first.variance)
    assert len(list(directory.iterdir())) == 1


def test_other_requests_are_other_designs(made, tmp_path):
    matrix = MATRIX.copy()
    matrix[0, 0] += 1e-9
    requests = [
        ("ranges", 3, ZCDP("1/2"), 1e-4),
        ("ranges", 3, ZCDP(1), 1e-4),  # so little noise has other optima
        ("ranges", 4, ZCDP(1), 1e-4),
        ("prefixes", 3, ZCDP(1), 1e-4),
        ("ranges", 3, ZCDP(1), 1e-5),
        ("ranges", 3, Privacy(alpha="1/2"), 1e-4),
        (2.0 * Workload.of("ranges", 3), 3, ZCDP(1), 1e-4),
        (MATRIX, 3, ZCDP(1), 1e-4),
        (matrix, 3, ZCDP(1), 1e-4),
        (["ranges", "cells"], (3, 2), ZCDP(1), 1e-4),
        (["cells", "ranges"], (3, 2), ZCDP(1), 1e-4),
    ]
    for workload, domain, promise, tolerance in requests:
        workload_optimal(workload, domain, promise, tolerance, cache=tmp_path)
    assert len(made) == len(requests) == len(list(tmp_path.iterdir()))
    # The same strategy with another noise
    for promise in (ZCDP("1/9"), ApproximateDP(1, "1e-6")):
        found = workload_optimal("ranges", 3, promise, cache=tmp_path)
        assert found.mechanism.promise == promise
        assert found.continuous_gap < 0.001
    assert len(made) == len(requests)


def test_what_is_damaged_is_made_anew(made, tmp_path):
    first = workload_optimal("ranges", 8, ZCDP(1), cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert workload_optimal("ranges", 8, ZCDP(1), cache=tmp_path).strategy == first.strategy
    assert path.read_bytes() == whole
    save_strategy(path, first.strategy)  # without a bound
    assert workload_optimal("ranges", 8, ZCDP(1), cache=tmp_path).bound == first.bound
    assert load_strategy(path).bound is not None
    assert len(made) == 3


def test_nothing_is_kept_of_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="got 'rings'"):
        workload_optimal("rings", 8, ZCDP(1), cache=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_designs_are_kept_where_others_are(made, monkeypatch):
    folder = DesignCache().folder
    first = workload_optimal("ranges", 8, ZCDP(1))
    assert workload_optimal("ranges", 8, ZCDP(1)).strategy == first.strategy
    (path,) = folder.iterdir()
    assert len(made) == 1
    path.unlink()
    assert workload_optimal("ranges", 8, ZCDP(1), cache=False).strategy == first.strategy
    assert not [*folder.iterdir()]
    for _ in range(2):  # two processes that plan the same
        choice._strategy.cache_clear()
        found = plan("curated-ranges", 30, epsilon=1)
    assert found.best.name == "strategy"
    assert (len(made), len([*folder.iterdir()])) == (3, 1)


@pytest.mark.parametrize("promise", [ZCDP(1), Privacy(alpha="1/2")], ids=repr)
def test_what_is_foreign_is_made_anew(promise, made, tmp_path):
    """An intact file of another request, that lacks queries, or whose bound cannot be."""
    first = workload_optimal("ranges", 6, promise, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    bound = load_strategy(path).bound
    assert bound is not None
    save_strategy(path, first.strategy, 2 * bound * (1 + first.gap))
    forged = path.read_bytes()
    total = workload_optimal(np.ones((1, 6)), 6, promise, cache=False).strategy
    save_strategy(path, total, 1e-9)
    lacking = path.read_bytes()
    foreign = []
    for workload, domain in (("ranges", 7), ("cells", (2, 3)), (["ranges", "cells"], (6, 2))):
        workload_optimal(workload, domain, promise, cache=tmp_path / "others")
        (other,) = (tmp_path / "others").iterdir()
        foreign.append(other.read_bytes())
        other.unlink()
    (tmp_path / "others").rmdir()
    for wrong in (forged, lacking, *foreign, b"", whole[:-9], b"\0", b"PK\3\4" + whole[9:]):
        path.write_bytes(wrong)
        again = workload_optimal("ranges", 6, promise, cache=tmp_path)
        assert (again.strategy, again.bound) == (first.strategy, first.bound)
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_used_only_costs_time(tmp_path):
    first = workload_optimal("ranges", 6, ZCDP(1), cache=False)
    (tmp_path / "file").write_text("not a folder")
    found = workload_optimal("ranges", 6, ZCDP(1), cache=tmp_path / "file" / "designs")
    assert found.strategy == first.strategy
    workload_optimal("ranges", 6, ZCDP(1), cache=tmp_path / "designs")
    (path,) = (tmp_path / "designs").iterdir()
    path.unlink()
    path.mkdir()  # in the place of the file
    found = workload_optimal("ranges", 6, ZCDP(1), cache=tmp_path / "designs")
    assert found.strategy == first.strategy


def test_a_full_disk_only_costs_time(full_disk, tmp_path):
    first = workload_optimal("ranges", 6, ZCDP(1), cache=False)
    with full_disk():
        found = workload_optimal("ranges", 6, ZCDP(1), cache=tmp_path)
    assert found.strategy == first.strategy
    assert [*tmp_path.iterdir()] == []


def test_what_is_interrupted_leaves_nothing(monkeypatch, tmp_path):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    for owner, name in (
        (designs, "optimal_gram"),  # while it is solved
        (Path, "replace"),  # and while it is written
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                workload_optimal("ranges", 6, ZCDP(1), cache=tmp_path)
        assert [*tmp_path.iterdir()] == []
    (tmp_path / ".abc.npz.0123.part").write_bytes(b"PK")  # of a process that was killed
    found = workload_optimal("ranges", 6, ZCDP(1), cache=tmp_path)
    assert found.continuous_gap < 0.001
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.slow
def test_processes_design_the_same_at_once(tmp_path):
    program = (
        "import sys\n"
        "from mechdesign import Privacy\n"
        "from rangeq.central import workload_optimal\n"
        "sys.stdin.readline()\n"
        "design = workload_optimal('prefixes', 20, Privacy(alpha='1/2'), cache=sys.argv[1])\n"
        "print(design.variance, design.bound, design.strategy.l1)\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    time.sleep(5)  # until both are ready
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("\n")
        run.stdin.flush()
    first, second = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert first == second != ""
    assert len([*tmp_path.iterdir()]) == 1
