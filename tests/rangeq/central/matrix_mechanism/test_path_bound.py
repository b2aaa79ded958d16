"""The bound of prefixes and ranges, against dense matrices."""

import numpy as np
import pytest

from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram
from rangeq.central.matrix_mechanism.path_bound import has_free_end, least_path_error, root_diagonal
from rangeq.central.matrix_mechanism.workload import InvalidWorkload, QuerySet
from tests.rangeq.central.matrix_mechanism.test_reflected_kernel import second_difference

NAMES = ("prefixes", "ranges")


@pytest.mark.parametrize("size", [1, 2, 3, 10, 97, 300])
@pytest.mark.parametrize("free", [False, True])
def test_the_root_is_that_of_the_dense_matrix(size, free):
    mu = np.random.default_rng(size).random(size) ** 3 + 1e-3
    mu /= mu.mean()
    root = np.sqrt(mu)
    inner = root[:, None] * np.linalg.inv(second_difference(size, free)) * root
    values, vectors = np.linalg.eigh(inner)
    expected = (vectors**2) @ np.sqrt(values)
    found = root_diagonal(mu, free)
    assert found == pytest.approx(expected, rel=3e-4)
    assert found.sum() <= expected.sum() * (1 + 2.8e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_spectral_bound_has_a_closed_form_at_any_size(name):
    size = 100_003
    k = np.arange(1, size + 1)
    angles = (2 * k - 1) / (4 * size + 2) if name == "prefixes" else k / (2 * size + 2)
    expected = (1 / (2 * np.sin(np.pi * angles))).sum()
    found = root_diagonal(np.ones(size), has_free_end(name)).sum()
    assert expected * (1 - 1e-4) < found <= expected * (1 + 2.8e-6)


@pytest.mark.parametrize("size", [1, 2, 5, 64, 200])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_below_the_optimum_and_near_it(name, size):
    gram = QuerySet(name, size).gram
    optimum = optimal_gram(gram, 1e-5).value
    assert 0.998 * optimum < least_path_error(name, size) < optimum


def test_the_factor_covers_the_series():
    # 2 ln 2 / pi sum 2^k / (4^k + x), times sqrt(x), for x over one period
    x = np.exp(np.linspace(0, np.log(4), 1001))
    k = np.arange(-60, 61)[:, None]
    ratio = 2 * np.log(2) / np.pi * (2.0**k / (4.0**k + x)).sum(axis=0) * np.sqrt(x)
    assert 2.5e-6 < np.abs(ratio - 1).max() < 2.8e-6


def test_refused():
    with pytest.raises(InvalidWorkload, match="prefixes or ranges"):
        least_path_error("cells", 10)
    for size in (0, 1 << 21, 10.0, True):
        with pytest.raises(ValueError, match="size"):
            least_path_error("ranges", size)
