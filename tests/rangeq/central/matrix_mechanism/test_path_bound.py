"""The bound of prefixes and ranges, against dense matrices."""

import numpy as np
import pytest

from rangeq.central.matrix_mechanism.gram_optimum import (
    least_path_error,
    optimal_gram,
    path_weights,
    root_diagonal,
)
from rangeq.central.matrix_mechanism.workload import Workload, gram_of
from tests.rangeq.central.matrix_mechanism.test_reflected_kernel import second_difference


@pytest.mark.parametrize("size", [1, 2, 3, 10, 97, 300])
@pytest.mark.parametrize("start", [0.0, 0.3, 1.0])
def test_the_root_is_that_of_the_dense_matrix(size, start):
    mu = np.random.default_rng(size).random(size) ** 3 + 1e-3
    mu /= mu.mean()
    root = np.sqrt(mu)
    inner = root[:, None] * np.linalg.inv(second_difference(size, start)) * root
    values, vectors = np.linalg.eigh(inner)
    expected = (vectors**2) @ np.sqrt(values)
    found = root_diagonal(mu, start)
    assert found == pytest.approx(expected, rel=3e-4)
    assert found.sum() <= expected.sum() * (1 + 2.8e-6)


@pytest.mark.parametrize("fixed", [False, True])
def test_the_spectral_bound_has_a_closed_form_at_any_size(fixed):
    size = 100_003
    k = np.arange(1, size + 1)
    angles = k / (2 * size + 2) if fixed else (2 * k - 1) / (4 * size + 2)
    expected = (1 / (2 * np.sin(np.pi * angles))).sum()
    found = root_diagonal(np.ones(size), float(fixed)).sum()
    assert expected * (1 - 1e-4) < found <= expected * (1 + 2.8e-6)


@pytest.mark.parametrize("size", [1, 2, 5, 64, 200])
@pytest.mark.parametrize(("prefixes", "ranges"), [(1, 0), (0, 1), (2.5, 0.5), (300, 1)])
def test_it_is_below_the_optimum_and_near_it(prefixes, ranges, size):
    named = ((prefixes, "prefixes"), (ranges, "ranges"))
    workload = Workload.of([(w, name) for w, name in named if w], size)
    assert path_weights(workload) == (prefixes, ranges)
    gram, error = gram_of(workload)
    optimum = optimal_gram(gram, 1e-5, error).value
    assert 0.998 * optimum < least_path_error(prefixes, ranges, size) < optimum


def test_the_factor_covers_the_series():
    # 2 ln 2 / pi sum 2^k / (4^k + x), times sqrt(x), for x over one period
    x = np.exp(np.linspace(0, np.log(4), 1001))
    k = np.arange(-60, 61)[:, None]
    ratio = 2 * np.log(2) / np.pi * (2.0**k / (4.0**k + x)).sum(axis=0) * np.sqrt(x)
    assert 2.5e-6 < np.abs(ratio - 1).max() < 2.8e-6


@pytest.mark.parametrize(
    ("workload", "domain"),
    [
        ("cells", 9),
        ([(1, "prefixes"), (1, "width-2")], 9),
        ("ranges", (3, 3)),
        ("ranges", (1 << 20) + 1),
        ([[1, 1, 0], [0, 1, 1]], 3),
    ],
)
def test_other_workloads_have_no_path(workload, domain):
    assert path_weights(Workload.of(workload, domain)) is None


@pytest.mark.parametrize("size", [0, 1 << 21, 10.0, True])
def test_sizes_that_are_refused(size):
    with pytest.raises(ValueError, match="size"):
        least_path_error(1, 0, size)
