"""The bound on the values of patterns against all of them."""

import numpy as np
import pytest

from mechdesign.local.bounds import most_valued
from mechdesign.local.optimality import Criterion
from mechdesign.local.workload_mechanism import workload_optimal
from tests.mechdesign.local.workloads import all_rows, some_gram, some_prior


def some_case(k, seed, ratio):
    rng = np.random.default_rng(seed)
    criterion = Criterion(np.eye(k), some_prior(k, seed), ratio)
    slope, multipliers = some_gram(k, seed + 100)[1], rng.normal(size=k) * rng.choice([0.1, 10])
    most = criterion.priced(slope, multipliers, all_rows(k, ratio)).max()
    return criterion, slope, multipliers, float(most)


@pytest.mark.parametrize("ratio", [1.1, 3.0, 50.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 5, 9])
def test_branch_and_bound_finds_the_most(k, seed, ratio):
    criterion, slope, multipliers, most = some_case(k, seed, ratio)
    # The guess is the most itself, or too low
    found = most_valued(criterion, slope, multipliers, most, 1e-6, 500)
    assert most <= found <= most + 1e-6 + 1e-9 * abs(most)
    below = most_valued(criterion, slope, multipliers, most - 0.1 * abs(most), 1e-6, 500)
    assert below >= most - 1e-9 * abs(most)


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_no_pattern_is_above_the_bound(seed, rounds):
    ratio = 1 + np.random.default_rng(seed).exponential(5.0)
    criterion, slope, multipliers, most = some_case(7, seed, ratio)
    for guess in (most - 1, most, most + 1):
        found = most_valued(criterion, slope, multipliers, guess, 1e-3, rounds)
        assert found >= max(guess, most - 1e-9 * abs(most))


@pytest.mark.parametrize("criterion", ["average", "worst"])
@pytest.mark.parametrize(
    ("name", "epsilon", "most"), [("prefixes", 4.0, 0.02), ("ranges", 4.0, 0.02)]
)
def test_bound_of_many_inputs_is_near(name, epsilon, most, criterion):
    """Where the ideal, which knows the trace only, is several times too low."""
    design = workload_optimal(name, 20, epsilon, criterion)
    assert 0 <= design.gap <= most


def test_bounds_of_branch_and_bound_and_of_all_patterns_agree(monkeypatch):
    whole = workload_optimal("prefixes", 10, 3.0)
    monkeypatch.setattr("mechdesign.local.workload_mechanism._ALL_PATTERNS", 9)
    parted = workload_optimal("prefixes", 10, 3.0)
    assert parted.bound <= whole.variance
    assert parted.bound >= 0.98 * whole.bound
