"""The exact factorization of a basis against dense elimination by FLINT, on systems with every kind
of component.
"""

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.lp.basis import Factorization, SingularBasis, to_fmpq, to_fraction

SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)
COEFFICIENTS = [fmpq(1), fmpq(-1), fmpq(2), fmpq(1, 3), fmpq(-9, 10)]


def row(terms):
    return {v: to_fmpq(Fraction(a)) for v, a in terms.items()}


def dense(rows, variables):
    return fmpq_mat(
        len(rows), len(variables), [line.get(v, fmpq(0)) for line in rows for v in variables]
    )


def column(values):
    return fmpq_mat(len(values), 1, list(values))


def check(rows: list[dict], variables: list[int], rng: random.Random | None = None) -> bool:
    """The same answers as dense elimination, or SingularBasis exactly when the determinant is zero;
    whether it is not.
    """
    rng = rng or random.Random(1)
    matrix = dense(rows, variables)
    if matrix.det() == 0:
        with pytest.raises(SingularBasis):
            Factorization(rows, variables).solve([fmpq(1)] * len(rows))
        with pytest.raises(SingularBasis):
            Factorization(rows, variables).solve_transposed(dict.fromkeys(variables, fmpq(1)))
        return False
    factors = Factorization(rows, variables)
    unit = rng.randrange(len(rows))
    rights = [
        [fmpq(0)] * len(rows),
        [fmpq(int(r == unit)) for r in range(len(rows))],
        [fmpq(rng.randrange(-5, 6), rng.randrange(1, 4)) for _ in rows],
        [fmpq(rng.choice([0, 0, 0, 1, -2])) for _ in rows],
    ]
    for right in rights:  # one factorization serves any number of right sides
        x = factors.solve(right)
        assert set(x) == set(variables)
        assert [x[v] for v in variables] == matrix.solve(column(right)).entries()
        # Entries of the transposed right side that are 0 may be left out.
        given_entries = {
            v: value
            for v, value in zip(variables, right, strict=True)
            if value != 0 or rng.random() < 0.3
        }
        before = dict(given_entries)
        assert (
            factors.solve_transposed(given_entries)
            == matrix.transpose().solve(column(right)).entries()
        )
        assert given_entries == before
    return True


def random_system(rng: random.Random, size: int, long_share: float) -> tuple[list[dict], list[int]]:
    """Rows of one, two and many variables over scattered variable numbers."""
    variables = rng.sample(range(3 * size), size)
    rows = []
    for _ in range(size):
        width = (
            rng.choice([3, 4, size]) if rng.random() < long_share else rng.choice([1, 2, 2, 2, 2])
        )
        rows.append({v: rng.choice(COEFFICIENTS) for v in rng.sample(variables, min(width, size))})
    return rows, variables


@pytest.mark.parametrize("long_share", [0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_random_systems(size, long_share):
    rng = random.Random(1000 * size + int(10 * long_share))
    regular = sum(check(*random_system(rng, size, long_share), rng) for _ in range(80))
    # The comparison means something only if both outcomes occur (all-long systems are hardly ever
    # singular).
    assert regular > 0
    assert regular < 80 or long_share == 1.0 or size == 1


def random_forest(
    rng: random.Random, sizes: Sequence[int], longs: int
) -> tuple[list[dict], list[int]]:
    """Components of the given sizes, trees, with a row to spare in all but ``longs`` of them, and
    as many long rows.
    """
    size = sum(sizes)
    numbers = rng.sample(range(2 * size), size)
    rows, start = [], 0
    for k, count in enumerate(sizes):
        own = numbers[start : start + count]
        start += count
        for place in range(1, count):
            rows.append(
                {
                    own[place]: rng.choice(COEFFICIENTS),
                    own[rng.randrange(place)]: rng.choice(COEFFICIENTS),
                }
            )
        if k >= longs:
            # A row to spare: one variable, anywhere in the tree, or one more edge, which closes a
            # cycle.
            rows.append(
                {
                    v: rng.choice(COEFFICIENTS)
                    for v in rng.sample(own, min(rng.choice([1, 2, 2]), count))
                }
            )
    for _ in range(longs):
        chosen = rng.sample(numbers, rng.randrange(3, size + 1))
        rows.append({v: rng.choice(COEFFICIENTS) for v in chosen})
    rng.shuffle(rows)
    rng.shuffle(numbers)
    return rows, numbers


@SETTINGS
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 6), st.integers(0, 10**6)
)
def test_trees_and_cycles_tied_together_by_long_rows(sizes, longs, seed):
    """What a basis of a mechanism looks like. Long rows reach into components that are determined
    already, too.
    """
    rng = random.Random(seed)
    check(*random_forest(rng, sizes, min(longs, len(sizes)) if sum(sizes) >= 3 else 0), rng)


def test_most_random_forests_are_regular():
    """The test above compares solutions, not only refusals."""
    regular = 0
    for seed in range(40):
        rng = random.Random(seed)
        sizes = [rng.randrange(1, 7) for _ in range(rng.randrange(2, 6))]
        regular += check(
            *random_forest(rng, sizes, rng.randrange(len(sizes)) if sum(sizes) >= 3 else 0), rng
        )
    assert 20 < regular < 40


@pytest.mark.parametrize("end", [0, 7, 19])
def test_a_long_chain(end):
    """x[k+1] = x[k] / 2, determined at one place, in every direction from there."""
    rows = [row({k: 1, k + 1: -2}) for k in range(19)]
    assert check([*rows, row({end: 3})], list(range(20)))
    assert check([row({end: 3}), *reversed(rows)], list(range(19, -1, -1)))
    x = Factorization([*rows, row({end: 1})], list(range(20))).solve([fmpq(0)] * 19 + [fmpq(1)])
    assert [to_fraction(x[k]) for k in range(20)] == [Fraction(2) ** (end - k) for k in range(20)]
    assert check([*rows, row(dict.fromkeys(range(20), 1))], list(range(20)))


def test_a_chain_with_shifts():
    """x[k+1] = x[k] + 1: right sides travel along the rows of a component, also into a long row."""
    chain = [row({k + 1: 1, k: -1}) for k in range(4)]
    x = Factorization([*chain, row({2: 1})], list(range(5))).solve([fmpq(1)] * 4 + [fmpq(10)])
    assert [x[k] for k in range(5)] == [8, 9, 10, 11, 12]
    x = Factorization([*chain, row(dict.fromkeys(range(5), 1))], list(range(5))).solve(
        [fmpq(1)] * 4 + [fmpq(5)]
    )
    assert [x[k] for k in range(5)] == [-1, 0, 1, 2, 3]


def test_a_regular_cycle():
    """x = 2y, y = 2z, z = 2x leaves only zero, and whatever hangs on it follows."""
    rows = [row({0: 1, 1: -2}), row({1: 1, 2: -2}), row({2: 1, 0: -2}), row({3: 1, 0: 1, 1: 1})]
    assert check(rows, [0, 1, 2, 3])
    x = Factorization(rows, [0, 1, 2, 3]).solve([fmpq(0)] * 3 + [fmpq(5)])
    assert [to_fraction(x[v]) for v in range(4)] == [0, 0, 0, 5]


def test_rows_to_spare_of_every_shape():
    assert check([row({4: 3})], [4])
    assert check([row({0: 1}), row({0: 1, 1: -1}), row({1: 1, 2: -1})], [2, 0, 1])
    # The single-variable row sits in the middle of the tree, not at its root.
    assert check([row({1: 2}), row({0: 1, 1: -1}), row({1: 1, 2: -1})], [0, 1, 2])
    # Two rows between the same two variables.
    assert check([row({0: 1, 1: -1}), row({0: 1, 1: 1})], [0, 1])
    assert check([row({0: 1, 1: -1}), row({1: 1, 0: -2})], [1, 0])
    # A cycle with a tail, and beside it a component that a long row determines.
    rows = [
        row({0: 1, 1: -1}),
        row({1: 1, 2: -1}),
        row({2: 1, 0: 1}),
        row({2: 1, 3: -5}),
        row({4: 1, 5: -3}),
        row({3: 1, 4: 1, 5: 1}),
    ]
    assert check(rows, [0, 1, 2, 3, 4, 5])
    # A long row whose variables all belong to one component, the only one.
    assert check([row({0: 1, 1: -1}), row({1: 1, 2: -1}), row({0: 1, 1: 1, 2: 1})], [0, 1, 2])


@pytest.mark.parametrize(
    ("rows", "variables"),
    [
        ([row({0: 1, 1: -1}), row({1: 2, 0: -2})], [0, 1]),
        ([row({0: 1}), row({0: 1, 1: -1}), row({1: 1})], [0, 1, 2]),
        ([row({0: 1}), row({0: 1})], [0, 1]),
        ([row({0: 1}), row({0: 2}), row({1: 1})], [0, 1, 2]),
        ([row({0: 1, 1: 1, 2: 1}), row({0: 1, 1: 1, 2: 1}), row({0: 1, 1: -1})], [0, 1, 2]),
        ([row({0: 1, 1: 1, 2: 1}), row({0: 1, 1: 1, 2: 1}), row({0: 1, 1: 1, 2: 1})], [0, 1, 2]),
        ([row({0: 1, 1: -1}), row({1: 1, 2: -1}), row({2: 1, 0: -1})], [0, 1, 2]),
        ([row({0: 1, 1: -2}), row({1: 1, 2: -2}), row({2: 4, 0: -1})], [0, 1, 2]),
        ([row({}), row({0: 1})], [0, 1]),
        ([row({0: 1})], [0, 1]),
        ([row({0: 1}), row({1: 1})], [0]),
        ([], [0]),
        ([row({0: 1})], []),
        # One component with too many rows, one with too few: the numbers of rows and variables
        # agree.
        ([row({0: 1}), row({0: 1, 1: -1}), row({0: 1, 1: 1}), row({2: 1, 3: -1})], [0, 1, 2, 3]),
        # A long row where everything is determined already, and a component that no row determines.
        ([row({0: 1}), row({1: 1}), row({2: 1}), row({0: 1, 1: 1, 2: 1})], [0, 1, 2, 3]),
        # The long row cancels along the tree: x = y = z, x + y - 2 z.
        ([row({0: 1, 1: -1}), row({1: 1, 2: -1}), row({0: 1, 1: 1, 2: -2})], [0, 1, 2]),
    ],
)
def test_dependent_rows(rows, variables):
    with pytest.raises(SingularBasis):
        Factorization(rows, variables).solve([fmpq(1)] * len(rows))
    with pytest.raises(SingularBasis):
        Factorization(rows, variables).solve_transposed({v: fmpq(1) for v in variables})


def test_nothing_to_solve():
    factors = Factorization([], [])
    assert factors.solve([]) == {}
    assert factors.solve_transposed({}) == []


def test_fractions_there_and_back():
    for value in (Fraction(0), Fraction(-3, 7), Fraction(10**500, 3**700)):
        assert to_fraction(to_fmpq(value)) == value
        assert type(to_fraction(to_fmpq(value)).numerator) is int
