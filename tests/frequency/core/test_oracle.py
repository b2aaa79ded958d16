"""What an oracle counts: cells, as many for each report."""

import math
from itertools import product

import numpy as np
import pytest

from frequency import GRR, OLH, ProjectiveGeometry, SubsetSelection
from frequency.core.oracle import Oracle


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("domain", [1, 2, 3, 5, 8, 11, 64, 200])
@pytest.mark.parametrize("kind", [GRR, SubsetSelection, ProjectiveGeometry, OLH])
def test_a_report_adds_one_to_each_of_its_cells(kind, domain, epsilon):
    """What is aggregated is a count of cells, as many distinct ones for each report; and supporters
    of many aggregates at once.
    """
    oracle, rng = kind(domain, epsilon), np.random.default_rng(domain)
    assert oracle.cells
    reports = oracle.privatize(rng.integers(domain, size=60), rng)
    cells = oracle.cells_of(reports)
    assert cells.shape == (60, oracle.size if isinstance(oracle, SubsetSelection) else 1)
    assert oracle.cells_of(reports[:0]).shape[0] == 0
    total = np.zeros(math.prod(oracle.counts_shape), dtype=np.int64)
    counts = []
    for row, report in zip(cells.tolist(), reports, strict=True):
        assert len(set(row)) == len(row)
        one = np.zeros_like(total)
        for cell in row:
            one[cell] += 1
            total[cell] += 1
        counts.append(one.reshape(oracle.counts_shape))
        if kind is GRR:
            assert row == [report["item"]]
        elif kind is SubsetSelection:
            assert (
                row
                == np.flatnonzero(
                    np.unpackbits(report["bits"], count=domain, bitorder="little")
                ).tolist()
            )
        elif kind is ProjectiveGeometry:
            assert row == [report["hyperplane"]]
    for aggregate in (oracle.counts_of, lambda part: Oracle.counts_of(oracle, part)):
        found = aggregate(reports)
        assert found.shape == oracle.counts_shape
        assert found.ravel().tolist() == total.tolist()
        for k in range(60):
            assert (aggregate(reports[k : k + 1]) == counts[k]).all()
    stack = np.array(counts).reshape(3, 20, *oracle.counts_shape)
    together = oracle._supporters(stack)
    assert together.shape == (3, 20, domain)
    for i, j in product(range(3), range(20)):
        assert together[i, j].tolist() == oracle._supporters(stack[i, j]).tolist()
    assert (
        together.sum(axis=(0, 1)).tolist()
        == oracle._supporters(total.reshape(oracle.counts_shape)).tolist()
    )


@pytest.mark.parametrize("together", [1, 100, 1 << 20])
@pytest.mark.parametrize("epsilon", [0.3, 1, 2.5])
@pytest.mark.parametrize("domain", [1, 2, 8, 40])
@pytest.mark.parametrize("kind", [ProjectiveGeometry, OLH])
def test_variances_of_sums_do_not_depend_on_which_are_transformed_together(
    kind, domain, epsilon, together, monkeypatch
):
    oracle, rng = kind(domain, epsilon), np.random.default_rng(1)
    weights, frequencies = rng.normal(size=(9, domain)), rng.dirichlet(np.ones(domain))
    one_by_one = [oracle.linear_variance(7, row[None], frequencies)[0] for row in weights]
    monkeypatch.setattr("frequency.core.oracle._IN_CACHE", together)
    found = oracle.linear_variance(7, weights, frequencies)
    np.testing.assert_allclose(found, one_by_one, rtol=1e-10, atol=1e-14)
    assert oracle.linear_variance(7, weights[:0], frequencies).shape == (0,)
