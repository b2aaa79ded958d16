"""The exact solver of a basis against a dense solution by FLINT, on systems with every kind of component."""

import random
from fractions import Fraction

import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.exact import Row, SingularBasis, solve, to_fmpq, to_fraction

SETTINGS = settings(derandomize=True, deadline=None, max_examples=50)


def row(terms, bound=0):
    return Row(tuple((v, to_fmpq(Fraction(a))) for v, a in terms.items()), to_fmpq(Fraction(bound)))


def dense(rows, variables):
    place = {v: k for k, v in enumerate(variables)}
    matrix = [[fmpq(0)] * len(variables) for _ in rows]
    for r, line in enumerate(rows):
        for v, a in line.terms:
            matrix[r][place[v]] += a
    return fmpq_mat(len(rows), len(variables), [entry for line in matrix for entry in line])


def check(rows, variables, cost):
    """The same answers as dense elimination, or SingularBasis exactly when the determinant is zero."""
    matrix = dense(rows, variables)
    if matrix.det() == 0:
        with pytest.raises(SingularBasis):
            solve(rows, variables, cost)
        return False
    x, y = solve(rows, variables, cost)
    size = len(rows)
    assert set(x) == set(variables)
    assert [x[v] for v in variables] == matrix.solve(fmpq_mat(size, 1, [line.bound for line in rows])).entries()
    assert y == matrix.transpose().solve(fmpq_mat(size, 1, [cost[v] for v in variables])).entries()
    return True


def random_system(rng, size, long_share):
    """Rows of one, two and many variables over scattered variable numbers, some with a constant."""
    variables = rng.sample(range(3 * size), size)
    rows = []
    for _ in range(size):
        width = rng.choice([3, 4, size]) if rng.random() < long_share else rng.choice([1, 2, 2, 2, 2])
        chosen = rng.sample(variables, min(width, size))
        bound = rng.choice([0, 0, 0, 0, 1, Fraction(-2, 3)])
        rows.append(row({v: rng.choice([1, -1, 2, Fraction(1, 3), Fraction(-9, 10)]) for v in chosen}, bound))
    cost = [to_fmpq(Fraction(rng.randrange(-5, 6), rng.randrange(1, 4))) for _ in range(3 * size)]
    return rows, variables, cost


@pytest.mark.parametrize("long_share", [0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_random_systems(size, long_share):
    rng = random.Random(1000 * size + int(10 * long_share))
    regular = sum(check(*random_system(rng, size, long_share)) for _ in range(120))
    # The comparison means something only if both outcomes occur (all-long systems are hardly ever singular).
    assert regular > 0
    assert regular < 120 or long_share == 1.0 or size == 1


@SETTINGS
@given(st.integers(2, 9), st.integers(0, 3), st.integers(0, 10**6))
def test_trees_with_long_rows(size, long_rows, seed):
    """What a basis of a mechanism looks like: trees of two-variable rows, tied together by a few long rows."""
    rng = random.Random(seed)
    trees = min(long_rows + 1, size)
    parent = [None if v < trees else rng.randrange(v) for v in range(size)]
    rows = [row({v: 1, p: -rng.choice([1, Fraction(1, 2), Fraction(9, 10)])}) for v, p in enumerate(parent) if p is not None]
    rows += [row({v: rng.choice([1, 1, 2]) for v in range(size) if v < 2 or rng.random() < 0.7}, 1) for _ in range(trees)]
    rng.shuffle(rows)
    check(rows, list(range(size)), [fmpq(rng.randrange(-3, 4)) for _ in range(size)])


def test_a_regular_cycle_is_dead():
    """x = 2y, y = 2z, z = 2x leaves only zero."""
    rows = [row({0: 1, 1: -2}), row({1: 1, 2: -2}), row({2: 1, 0: -2}), row({3: 1, 0: 1, 1: 1}, 5)]
    assert check(rows, [0, 1, 2, 3], [fmpq(k) for k in (1, 2, 3, 4)])
    x, _ = solve(rows, [0, 1, 2, 3], [fmpq(0)] * 4)
    assert [to_fraction(x[v]) for v in range(4)] == [0, 0, 0, 5]


def test_dead_components_of_every_shape():
    cost = [fmpq(k + 1, 7) for k in range(9)]
    assert check([row({4: 3})], [4], cost)
    assert check([row({0: 1}), row({0: 1, 1: -1}), row({1: 1, 2: -1})], [2, 0, 1], cost)
    # The single-variable row sits in the middle of the tree, not at its root.
    assert check([row({1: 2}), row({0: 1, 1: -1}), row({1: 1, 2: -1})], [0, 1, 2], cost)
    assert check([row({0: 1, 1: -1}), row({0: 1, 1: 1})], [0, 1], cost)
    # A cycle with a tail, a chord that closes elsewhere, and a live component beside it.
    rows = [
        row({0: 1, 1: -1}),
        row({1: 1, 2: -1}),
        row({2: 1, 0: 1}),
        row({2: 1, 3: -5}),
        row({4: 1, 5: -3}),
        row({3: 1, 4: 1, 5: 1}, 8),
    ]
    assert check(rows, [0, 1, 2, 3, 4, 5], cost)


def test_constants():
    cost = [fmpq(k - 2, 3) for k in range(5)]
    assert check([row({0: 2}, 3)], [0], cost)
    assert check([row({0: 2}, 3), row({0: 1, 1: -4})], [0, 1], cost)
    # Two variables and a constant is a long row, although it has two terms.
    assert check([row({0: 1, 1: 1}, 1), row({0: 1, 1: -1})], [0, 1], cost)
    assert check([row({0: 1, 1: 1}, 1), row({0: 1, 1: 2}, -1)], [0, 1], cost)
    assert check([row({0: 1}, 1), row({1: 1}, 2), row({0: 1, 1: 1, 2: 1}, 7)], [0, 1, 2], cost)


@pytest.mark.parametrize(
    ("rows", "variables"),
    [
        ([row({0: 1, 1: -1}), row({1: 2, 0: -2})], [0, 1]),
        ([row({0: 1}), row({0: 1, 1: -1}), row({1: 1})], [0, 1]),
        ([row({0: 1}, 1), row({0: 1}, 2)], [0, 1]),
        ([row({0: 1}, 1), row({0: 1}, 1)], [0, 1]),
        ([row({0: 1}, 1), row({0: 1, 1: -1}), row({1: 1}, 1)], [0, 1, 2]),
        ([row({0: 1, 1: 1, 2: 1}, 1), row({0: 1, 1: 1, 2: 1}, 2), row({0: 1, 1: -1})], [0, 1, 2]),
        ([row({0: 1, 1: -1}), row({1: 1, 2: -1}), row({2: 1, 0: -1})], [0, 1, 2]),
        ([row({}), row({0: 1}, 1)], [0, 1]),
        ([row({0: 1}, 1)], [0, 1]),
        ([row({0: 1}, 1), row({1: 1}, 1)], [0]),
        # One dead component too heavy, one too light: the numbers of rows and variables agree.
        ([row({0: 1}), row({0: 1, 1: -1}), row({0: 1, 1: 1}), row({2: 1, 3: -1})], [0, 1, 2, 3]),
    ],
)
def test_singular_systems(rows, variables):
    with pytest.raises(SingularBasis):
        solve(rows, variables, [fmpq(1)] * 5)


def test_nothing_to_solve():
    assert solve([], [], []) == ({}, [])


def test_fractions_there_and_back():
    for value in (Fraction(0), Fraction(-3, 7), Fraction(10**500, 3**700)):
        assert to_fraction(to_fmpq(value)) == value
        assert type(to_fraction(to_fmpq(value)).numerator) is int
