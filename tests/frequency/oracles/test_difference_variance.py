"""`Oracle.difference_variance` against the enumerated one: the mean over pairs of the items held,
each by as many users.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from tests.contracts.oracle import one_by_one
from tests.frequency.oracles import twins

SYMMETRIC = [twins.TestGRR, twins.TestSUE, twins.TestOUE, twins.TestSubsetSelection, twins.TestHRR1]
TABLES = [twins.TestTabularKRR, twins.TestTabularGeometric, twins.TestTabularRectangular]
FIELDS = [twins.TestOLH, twins.TestProjectiveGeometry]
CASES = [*SYMMETRIC, *TABLES, *FIELDS]


def covariances(oracle, contract):
    """(items, estimates, estimates): of one user's estimate, given the item."""
    twin = contract().twin(oracle)
    P = np.array([[float(p) for p in row] for row in twin.table])
    E = np.array([oracle.estimate(a).frequencies for a in one_by_one(oracle, twin.reports)])
    mean = P.T @ E
    return np.einsum("rv,rx,rz->vxz", P, E, E) - np.einsum("vx,vz->vxz", mean, mean)


def mean_over_pairs(given, held):
    even = given[list(held)].mean(axis=0)
    return np.mean([even[x, x] + even[z, z] - 2 * even[x, z] for x, z in combinations(held, 2)])


@pytest.mark.parametrize("contract", CASES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("domain", [2, 3, 4, 5, 6])
def test_enumerated(contract, epsilon, domain) -> None:
    oracle = contract().make(domain, epsilon)
    given = covariances(oracle, contract)
    for held in (None, *range(2, domain + 1)):
        size = held or domain
        found = oracle.difference_variance(7, held) * 7
        first = mean_over_pairs(given, range(size))
        if contract not in FIELDS:
            assert found == pytest.approx(first, rel=1e-9)
            assert found != pytest.approx(1.001 * first, rel=1e-9)  # it can fail
        else:  # over the ways to number the items, which these few items do not exhaust: near
            assert found == pytest.approx(first, rel=0.25)
        assert isinstance(found, float)


@pytest.mark.parametrize("contract", FIELDS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_over_all_ways_to_number_the_items(contract, epsilon) -> None:
    """Domains that fill their space, any items of which may be held."""
    for domain in range(2, 10):
        oracle = contract().make(domain, epsilon)
        q, t = oracle._order
        if domain != (q**t if contract is twins.TestOLH else (q**t - 1) // (q - 1)):
            continue
        given = covariances(oracle, contract)
        for held in range(2, domain + 1):
            expected = np.mean(
                [mean_over_pairs(given, chosen) for chosen in combinations(range(domain), held)]
            )
            assert oracle.difference_variance(1, held) == pytest.approx(expected, rel=1e-9), (
                domain,
                held,
            )


@pytest.mark.parametrize("contract", CASES, ids=lambda c: c.__name__)
def test_wrong_numbers_of_users(contract) -> None:
    oracle = contract().make(5, 1.0)
    for n in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="n must be"):
            oracle.difference_variance(n)
    assert oracle.difference_variance(10) == pytest.approx(oracle.difference_variance(1) / 10)


@pytest.mark.slow
@pytest.mark.parametrize("contract", SYMMETRIC + FIELDS, ids=lambda c: c.__name__)
def test_large_domains(contract) -> None:
    assert math.isfinite(contract().make(1000, 1.0).difference_variance(1, 3))
