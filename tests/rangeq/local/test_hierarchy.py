"""HierarchicalHistogram: the contract of range protocols, and what its parameters may be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.lib.recfunctions import structured_to_unstructured

from rangeq import Between, HierarchicalHistogram
from tests.rangeq.contract import RangeContract


class TestTreeOUE(RangeContract):
    def make(self, domain, epsilon):
        return HierarchicalHistogram(domain, epsilon, 2, "OUE")


class TestTreeOfAllKinds(RangeContract):
    """Of several levels, each with its own oracle, and not as likely as others."""

    def make(self, domain, epsilon):
        tree = (
            HierarchicalHistogram(domain, epsilon, 3).tree
            if type(domain) is int and 1 <= domain < 1 << 33
            else None
        )
        height = tree.height if tree else 1
        names = ("GRR", "SubsetSelection", "OLH", "HRR", "OUE", "GRR", "HRR", "OUE")[:height]
        chances = [Fraction(k + 1, height * (height + 1) // 2) for k in range(height)]
        return HierarchicalHistogram(domain, epsilon, 3, names, chances)


@pytest.mark.slow
def test_finite_variances_are_of_unbiased_estimates_when_a_level_is_missing() -> None:
    """D = 3 of 4 leaves, nobody on the leaves' level: the answer to [0, 1] is the one node's, whose
    variance is finite.
    """
    protocol, rng = HierarchicalHistogram(3, 1.0, 2, "OUE"), np.random.default_rng(1)
    values, errors, variance = np.full(20, 2), [], 0.0
    for _ in range(3000):
        reports = protocol.privatize(values, rng)
        top = reports[reports["level"] == 0][:6]
        estimate = protocol.estimate(protocol.aggregate(top))
        variance = estimate.answer(Between(0, 1)).variance
        errors.append(estimate.range(0, 1))
    assert variance < math.inf
    assert abs(np.mean(errors)) < 5 * np.std(errors) / math.sqrt(3000)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "oue",
        "JLOracle",
        "Tabular",
        None,
        5,
        ("OUE",),
        ("OUE", "NOPE"),
        ("OUE",) * 3,
        (),
        [["OUE"], "OUE"],
    ],
)
def test_unknown_oracles(name) -> None:
    with pytest.raises((ValueError, TypeError)):
        HierarchicalHistogram(4, 1.0, 2, name)


def test_lists_are_as_good_as_tuples() -> None:
    lists = HierarchicalHistogram(8, 1.0, [2, 4], ["OUE", "HRR"], ["1/2", "1/2"])
    tuples = HierarchicalHistogram(8, 1.0, (2, 4), ("OUE", "HRR"), ("1/2", "1/2"))
    assert lists == tuples
    assert hash(lists) == hash(tuples)


def test_reports_name_their_level_and_leave_the_rest_empty() -> None:
    protocol = HierarchicalHistogram(100, 1.0, 10, ("GRR", "OUE"))
    reports = protocol.privatize(np.arange(100), np.random.default_rng(0))
    flat = structured_to_unstructured(reports)
    assert flat.shape == (100, 14)
    assert not reports["body"][reports["level"] == 0][:, 1:].any()
    assert protocol.report_bits == 1 + 100
