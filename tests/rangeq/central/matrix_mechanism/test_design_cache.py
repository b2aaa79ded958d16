"""Designs that are kept: made once, found for the same request only, made anew when damaged."""

import numpy as np
import pytest

from mechdesign import ZCDP, ApproximateDP, Privacy
from rangeq.central import Workload, workload_optimal
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
        ("ranges", 3, ZCDP(1), 1e-4),
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
        assert found.gap < 0.001
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
