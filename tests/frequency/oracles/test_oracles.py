"""What holds between oracles; and the closed forms of the literature."""

import math
from fractions import Fraction
from itertools import permutations

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
)
from tests.contracts.oracle import LN3, codes
from tests.frequency.oracles import twins
from tests.frequency.oracles.closed_forms import EPSILONS, is_near


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
