"""Systems of polynomials against their values at single alphas."""

from random import Random

import pytest
from flint import fmpq, fmpq_mat, fmpz_poly

from mechdesign.symbolic.program import solved


@pytest.mark.parametrize("seed", range(10))
def test_systems_of_polynomials_aresolved(seed):
    """Substitution: the matrix times the solution is the right side, identically."""
    random = Random(seed)
    size = random.randint(1, 6)
    square = [
        [
            fmpz_poly([random.randint(-3, 3) for _ in range(random.randint(0, 3))])
            for _ in range(size)
        ]
        for _ in range(size)
    ]
    for k in range(size):
        square[k][k] += fmpz_poly([0, 0, 0, 5])
    right = [fmpz_poly([random.randint(-3, 3), 1]) for _ in range(size)]
    solution, denominator = solved(square, right)
    for row, side in zip(square, right, strict=True):
        assert (
            sum((a * x for a, x in zip(row, solution, strict=True)), fmpz_poly([0]))
            == side * denominator
        )
    alpha = fmpq(2, 7)
    numbers = fmpq_mat(size, size, [p(alpha) for row in square for p in row])
    values = numbers.solve(fmpq_mat(size, 1, [p(alpha) for p in right])).entries()
    assert values == [x(alpha) / denominator(alpha) for x in solution]
