"""Reflected kernels, against the matrices written out entry by entry."""

import numpy as np
import pytest

from rangeq.central.matrix_mechanism.gram_optimum import ReflectedKernel

SIZES = [1, 2, 3, 8, 31, 33, 70, 129]
CASES = [pytest.param(size, shift, id=f"{size}-{shift}") for size in SIZES for shift in (1, 2)]


def written_out(half, size):
    """K from its definition: f continued one step of its period at a time."""
    shift = len(half) - size
    period, sign = 2 * size + shift, (-1 if shift == 1 else 1)

    def f(d):
        if d < 0:
            return f(-d)
        if d < len(half):
            return half[d]
        return sign * f(period - d) if d <= period else sign * f(d - period)

    cells = range(size)
    return np.array([[f(i - j) - sign * f(i + j + shift) for j in cells] for i in cells])


def example(size, shift, seed=0):
    half = np.random.default_rng(seed).integers(-50, 51, size + shift)
    return ReflectedKernel(half, size), written_out(half.tolist(), size)


def second_difference(size, start):
    """Of a path whose left end is free (0), fixed (1), or between them."""
    path = 2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
    path[0, 0] = 1 + start
    return path


@pytest.mark.parametrize(("size", "shift"), CASES)
def test_products_are_those_of_the_matrix(size, shift):
    kernel, matrix = example(size, shift)
    values = np.random.default_rng(1).integers(-9, 10, (4, size))
    assert kernel.apply(values.astype(float)) == pytest.approx(values @ matrix, abs=1e-8)
    for row in values:
        assert kernel.apply_exactly(row).tolist() == (matrix @ row).tolist()


@pytest.mark.parametrize("shift", [1, 2])
def test_exact_products_hold_where_floats_do_not(shift):
    half = np.array([1 << 24, *[(1 << 24) - 3 * k for k in range(1, 20)], 0])[: 19 + shift]
    values = np.random.default_rng(2).integers(0, 1 << 31, 19)
    kernel = ReflectedKernel(half, 19)
    matrix = written_out(half.tolist(), 19)
    exactly = [sum(int(m) * int(x) for m, x in zip(row, values, strict=True)) for row in matrix]
    assert kernel.apply_exactly(values).tolist() == exactly
    assert [int(x) for x in kernel.apply(values.astype(float))] != exactly


@pytest.mark.parametrize(("size", "shift"), CASES)
def test_diagonals_and_sums(size, shift):
    kernel, matrix = example(size, shift)
    assert kernel.diagonal().tolist() == np.diag(matrix).tolist()
    assert kernel.column_sums().tolist() == matrix.sum(axis=0).tolist()
    assert kernel.square_diagonal() == np.diag(matrix @ matrix).tolist()


@pytest.mark.parametrize(("size", "shift"), CASES)
def test_products_with_the_lower_part(size, shift):
    kernel, matrix = example(size, shift)
    values = np.random.default_rng(3).normal(size=size)
    for lag in sorted({0, 1, size // 3, size - 1} & set(range(size))):
        expected = np.tril(matrix, -lag) @ values
        assert kernel.lower_apply(values, lag) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("size", "shift"), CASES)
def test_they_are_functions_of_the_second_difference(size, shift):
    path = second_difference(size, shift - 1)
    values, vectors = np.linalg.eigh(path)
    root = (vectors / np.sqrt(values)) @ vectors.T
    kernel = ReflectedKernel.of_spectrum(values**-0.5, shift)
    assert written_out(kernel.half.tolist(), size) == pytest.approx(root, abs=1e-8)
    assert kernel.eigenvalues == pytest.approx(values**-0.5)
    back = kernel.power(-2)
    assert written_out(back.half.tolist(), size) == pytest.approx(path, abs=1e-8)
