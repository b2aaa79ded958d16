"""What holds between oracles; and the closed forms of the literature."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    RR,
    SUE,
    CountMeanSketch,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.core.oracle import CellOracle
from mechdesign import named
from tests.contracts.oracle import LN3, close, codes, weights_of
from tests.frequency.oracles import twins
from tests.tape import WORD

# ------------------------------------------------------------------------------------------ cells


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("domain", [1, 2, 3, 5, 8, 11, 64, 200])
@pytest.mark.parametrize("kind", [GRR, SubsetSelection, ProjectiveGeometry, OLH])
def test_a_report_adds_one_to_each_of_its_cells(kind, domain, epsilon):
    """What is aggregated is a count of cells, as many distinct ones for each report; and supporters
    of many aggregates at once.
    """
    oracle, rng = kind(domain, epsilon), np.random.default_rng(domain)
    assert isinstance(oracle, CellOracle)
    reports = oracle.privatize(rng.integers(domain, size=60), rng)
    cells = oracle._cells(reports)
    assert cells.shape == (60, oracle.size if isinstance(oracle, SubsetSelection) else 1)
    assert oracle._cells(reports[:0]).shape[0] == 0
    total = np.zeros(math.prod(oracle._shape), dtype=np.int64)
    counts = []
    for row, report in zip(cells.tolist(), reports, strict=True):
        assert len(set(row)) == len(row)
        one = np.zeros_like(total)
        for cell in row:
            one[cell] += 1
            total[cell] += 1
        counts.append(one.reshape(oracle._shape))
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
    for aggregate in (oracle._aggregate, lambda part: CellOracle._aggregate(oracle, part)):
        found = aggregate(reports)
        assert found.shape == oracle._shape
        assert found.ravel().tolist() == total.tolist()
        for k in range(60):
            assert (aggregate(reports[k : k + 1]) == counts[k]).all()
    stack = np.array(counts).reshape(3, 20, *oracle._shape)
    together = oracle._supporters(stack)
    assert together.shape == (3, 20, domain)
    for i, j in product(range(3), range(20)):
        assert together[i, j].tolist() == oracle._supporters(stack[i, j]).tolist()
    assert (
        together.sum(axis=(0, 1)).tolist()
        == oracle._supporters(total.reshape(oracle._shape)).tolist()
    )


# ----------------------------------------------------------------------------------- closed forms

EPSILONS = (0.1, 1.0, LN3, 3.0, 10.0)


def is_near(found, expected):
    """The weights are rounded to the private side, by less than one part in 10^6 of epsilon."""
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 5, 20, 1000])
def test_variances_of_the_literature(domain, epsilon):
    e = math.exp(epsilon)
    is_near(OUE(domain, epsilon).variance(10), 4 * e / (10 * (e - 1) ** 2))  # thesis eq. 2.7
    root = math.exp(epsilon / 2)
    is_near(SUE(domain, epsilon).variance(10), root / (10 * (root - 1) ** 2))  # thesis eq. 2.6
    # Wang et al. 2017, eq. 5
    is_near(GRR(domain, epsilon).variance(10), (domain - 2 + e) / (10 * (e - 1) ** 2))
    olh = OLH(domain, epsilon)
    g = olh.hashes_to
    # Wang et al. 2017, section 5
    is_near(olh.variance(10), (e + g - 1) ** 2 / (10 * (e - 1) ** 2 * (g - 1)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 3, 8, 1000, 1024])
def test_variance_of_hadamard_response(domain, epsilon):
    """A user's report is +-scale, scale = ((S-1)/S) (e+1)/(e-1), times the sign of the item; its
    mean is 1 - 1/S or -1/S.
    """
    e, s = math.exp(epsilon), 1 << max(1, (domain - 1).bit_length())
    scale = (s - 1) / s * (e + 1) / (e - 1)
    is_near(HRR(domain, epsilon).variance(10, 1.0), (scale**2 - (1 - 1 / s) ** 2) / 10)
    is_near(HRR(domain, epsilon).variance(10, 0.0), (scale**2 - 1 / s**2) / 10)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 3, 5, 20])
def test_grr_is_the_named_mechanism(domain, epsilon):
    """`mechdesign.named.krr` at the ratio that is sampled, entry by entry, is what GRR samples by
    definition.
    """
    oracle = GRR(domain, epsilon)
    truth, lie = weights_of(oracle, "truth", "lie")
    table = [
        [Fraction(truth if y == v else lie, WORD) for v in range(domain)] for y in range(domain)
    ]
    assert [list(row) for row in oracle.mechanism.table] == table
    assert oracle.mechanism == named.krr(domain, Fraction(lie, truth))
    assert [list(row) for row in oracle.mechanism.table] == twins.TestGRR().twin(oracle).table
    assert oracle.mechanism.audit().ratio == oracle.audit().ratio


def test_the_mechanism_of_grr_estimates_as_grr():
    """Deployed as a table it has the same reports and estimates."""
    oracle = GRR(5, 1.0)
    table = Tabular(oracle.mechanism)
    reports = oracle.privatize(np.arange(500) % 5, np.random.default_rng(0))
    other = np.array([(int(r["item"]),) for r in reports], dtype=table.report_dtype)
    mine, theirs = (
        oracle.estimate(oracle.aggregate(reports)),
        table.estimate(table.aggregate(other)),
    )
    close(mine.frequencies, theirs.frequencies, [1.0])
    w = np.arange(5.0)
    close(mine.linear(w).variance, theirs.linear(w).variance, [1.0])


def test_binary_randomised_response_is_the_thesis_s():
    for epsilon in EPSILONS:
        found = RR(2, epsilon).mechanism.matrix
        is_near(found[0, 0], math.exp(epsilon) / (math.exp(epsilon) + 1))
        assert found[0, 0] == found[1, 1]


def test_reports_of_different_oracles_do_not_mix():
    oracles = [
        kind(5, 1.0) for kind in (GRR, SUE, OUE, SubsetSelection, ProjectiveGeometry, OLH, HRR)
    ]
    for mine, theirs in permutations(oracles, 2):
        with pytest.raises(ValueError, match="an aggregate of"):
            mine.estimate(theirs.aggregate(theirs.privatize([0, 1])))


def test_oracles_print_as_they_are_made():
    for oracle in (
        GRR(5, 1.5),
        RR(2, 1.5),
        HRR(5, LN3, coefficients=2),
        JLOracle(5, 1, rows=7),
        CountMeanSketch(5, Fraction(1, 2), width=8),
    ):
        assert eval(repr(oracle)) == oracle


def test_codes_tell_reports_apart():
    oracle = HRR(5, 1.0, coefficients=3)
    reports = twins.TestHRR3().twin(oracle).reports
    assert len(set(codes(reports).tolist())) == len(reports) == 7 * 6 * 5 * 8


def test_a_table_of_the_largest_says_that_they_were_picked():
    oracle = GRR(20, 1.0)
    estimate = oracle.estimate(oracle.simulate(np.full(20, 50), np.random.default_rng(1)))
    *lines, last = estimate.table(largest=3).splitlines()
    assert len(lines) == 4
    assert last.startswith("The largest of 20, and so too large on average")
    assert (
        len(estimate.table(largest=None).splitlines())
        == len(estimate.table(largest=20).splitlines())
        == 21
    )
