"""Finite fields against polynomials written out, and the transforms against brute force, exact to
the last unit.
"""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frequency.algebra.finite_field as library
from frequency import OLH, ProjectiveGeometry
from frequency.algebra import directions as points
from frequency.algebra.finite_field import (
    Field,
    VectorSpace,
    best_order,
    binary_basis,
    orders_near,
    prime_power,
    space,
    walsh_hadamard,
)
from frequency.oracles.projective_geometry import _variance as variance_of_geometry

SETTINGS = settings(derandomize=True, deadline=None, max_examples=80)


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def as_prime_power(n):
    """(p, k), by trying all of them."""
    return next(
        (
            (p, k)
            for k in range(1, n.bit_length())
            for p in (range(2, math.isqrt(n) + 1) if k > 1 else [n])
            if p**k == n and is_prime(p)
        ),
        None,
    )


def is_order(q):
    power = prime_power(q)
    return power is not None and (power[1] == 1 or q <= 256)


SMALL = [q for q in range(2, 33) if as_prime_power(q)]
TABLED = [*SMALL, 49, 81, 125, 127, 128, 243, 251, 256]
LARGE = [257, 509, 65537]


# ----------------------------------------------------------------------------------------- fields


class SlowField:
    """F_q as polynomials over F_p, one element at a time: lists of digits, school multiplication,
    long division.
    """

    def __init__(self, q):
        self.q, (self.p, self.k) = q, as_prime_power(q)
        self.modulus = (
            next(low for low in range(q) if self.irreducible(low)) if self.k > 1 else None
        )

    def digits(self, a, count):
        return [a // self.p**i % self.p for i in range(count)]

    def number(self, digits):
        return sum(d * self.p**i for i, d in enumerate(digits))

    def irreducible(self, low):
        """Whether x^k + low has no monic divisor of degree 1 .. k/2."""
        whole = [*self.digits(low, self.k), 1]
        divisors = (
            [*self.digits(d, degree), 1]
            for degree in range(1, self.k // 2 + 1)
            for d in range(self.p**degree)
        )
        return all(any(self.remainder(whole, divisor)) for divisor in divisors)

    def remainder(self, polynomial, divisor):
        rest, degree = list(polynomial), len(divisor) - 1
        for top in range(len(rest) - 1, degree - 1, -1):
            times = rest[top]
            for i, d in enumerate(divisor):
                rest[top - degree + i] = (rest[top - degree + i] - times * d) % self.p
        return rest[:degree]

    def add(self, a, b):
        return self.number(
            [
                (x + y) % self.p
                for x, y in zip(self.digits(a, self.k), self.digits(b, self.k), strict=True)
            ]
        )

    def multiply(self, a, b):
        if self.k == 1:
            return a * b % self.p
        result = [0] * (2 * self.k - 1)
        for (i, x), (j, y) in product(
            enumerate(self.digits(a, self.k)), enumerate(self.digits(b, self.k))
        ):
            result[i + j] += x * y
        return self.number(
            self.remainder([x % self.p for x in result], [*self.digits(self.modulus, self.k), 1])
        )

    def power(self, a, exponent):
        result = 1
        for bit in f"{exponent:b}":
            result = self.multiply(result, result)
            if bit == "1":
                result = self.multiply(result, a)
        return result

    def trace(self, a):
        """a + a^p + a^(p^2) + ..."""
        total = 0
        for _ in range(self.k):
            total, a = self.add(total, a), self.power(a, self.p)
        return total


@cache
def slow_field(q):
    return SlowField(q)


@cache
def slow_tables(q):
    """Sums and products of all pairs, from digits alone."""
    slow = slow_field(q)
    pairs = list(product(range(q), repeat=2))
    tables = [
        np.array([operation(a, b) for a, b in pairs]).reshape(q, q)
        for operation in (slow.add, slow.multiply)
    ]
    return tables[0], tables[1]


def some_elements(q, count, number=3, seed=0):
    """All tuples of elements if they are at most 2^15, else random ones."""
    if q**number <= 1 << 15:
        return np.array(list(product(range(q), repeat=number))).T
    return np.random.default_rng(seed).integers(0, q, size=(number, count))


@pytest.mark.parametrize("q", TABLED + LARGE)
def test_field_axioms(q):
    field, everything = Field(q), np.arange(q)
    a, b, c = some_elements(q, 20_000)
    add, times = field.add, field.multiply
    for operation, neutral in ((add, 0), (times, 1)):
        np.testing.assert_array_equal(operation(a, b), operation(b, a))
        np.testing.assert_array_equal(operation(operation(a, b), c), operation(a, operation(b, c)))
        np.testing.assert_array_equal(operation(everything, np.full(q, neutral)), everything)
        assert operation(a, b).min() >= 0
        assert operation(a, b).max() < q
    np.testing.assert_array_equal(times(a, add(b, c)), add(times(a, b), times(a, c)))
    assert not add(everything, field.negative(everything)).any()
    assert (times(everything[1:], field.inverse(everything[1:])) == 1).all()
    assert not times(everything, np.zeros(q, dtype=int)).any()


@pytest.mark.parametrize("q", TABLED)
def test_field_is_polynomials_modulo_the_first_irreducible_one(q):
    """Which field it is decides what a report means, so that it must never change."""
    slow, field = slow_field(q), Field(q)
    a, b = some_elements(q, 1500, 2)
    np.testing.assert_array_equal(
        field.add(a, b), [slow.add(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    )
    np.testing.assert_array_equal(
        field.multiply(a, b),
        [slow.multiply(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)],
    )


@pytest.mark.slow
def test_known_products():
    """x times x^(k-1) is the modulus without its leading term: x^8 = x^4 + x^3 + x + 1 is that of
    AES.
    """
    for q, low in (
        (4, 0b11),
        (8, 0b011),
        (16, 0b0011),
        (32, 0b00101),
        (64, 0b000011),
        (128, 0b0000011),
        (256, 0b00011011),
    ):
        assert Field(q).multiply(np.array([2]), np.array([q // 2])).tolist() == [low]
    # FIPS 197, section 4.2
    assert Field(256).multiply(np.array([0x57]), np.array([0x83])).tolist() == [0xC1]
    assert Field(9).multiply(np.array([3]), np.array([3])).tolist() == [2]  # x^2 = -1


@pytest.mark.parametrize("q", [q for q in TABLED if q <= 128] + [243])
def test_dual_is_the_trace_form(q):
    slow, field = slow_field(q), Field(q)
    dual = field.dual
    assert sorted(dual.tolist()) == list(range(q))  # otherwise two characters would be one
    traces = [slow.trace(a) for a in range(q)]
    products = field.multiply(*(pairs := some_elements(q, 600, 2)))
    for z, y, zy in zip(*pairs.tolist(), products.tolist(), strict=True):
        dot = (
            sum(
                s * t
                for s, t in zip(
                    slow.digits(int(dual[z]), slow.k), slow.digits(y, slow.k), strict=True
                )
            )
            % slow.p
        )
        assert dot == traces[zy]


@pytest.mark.parametrize("q", LARGE)
def test_dual_of_a_prime_field_is_the_identity(q):
    np.testing.assert_array_equal(Field(q).dual, np.arange(q))


@pytest.mark.parametrize(
    "q",
    [
        0,
        1,
        6,
        10,
        12,
        14,
        15,
        18,
        20,
        100,
        255,
        289,
        343,
        361,
        512,
        961,
        1024,
        2187,
        65536,
        65537**2,
    ],
)
def test_no_such_field(q):
    with pytest.raises(ValueError, match="the order of a field must be"):
        Field(q)


@pytest.mark.parametrize(("q", "t"), [(2, 0), (2, 54), (256, 7), (257, 7), (6, 2), (3, -1)])
def test_no_such_space(q, t):
    with pytest.raises(ValueError, match=r"order of a field|vector space"):
        VectorSpace(q, t)


# ---------------------------------------------------------------------------------------- vectors

SPACES = [
    *[(2, t) for t in (1, 2, 3, 5, 9)],
    *[(3, t) for t in (1, 2, 3, 6, 7)],
    *[(4, t) for t in (1, 2, 3, 5)],
    *[(5, t) for t in (1, 2, 4)],
    *[(7, t) for t in (1, 2, 3, 4)],
    *[(8, t) for t in (1, 2, 3, 4)],
    *[(9, t) for t in (1, 2, 3)],
    *[(q, t) for q in (11, 13, 16) for t in (1, 2, 3)],
    *[(q, 2) for q in (17, 19, 23, 25, 27, 29, 31, 32, 49)],
]
WIDE = [
    (2, 53),
    (3, 20),
    (4, 26),
    (5, 9),
    (8, 17),
    (9, 11),
    (16, 13),
    (17, 5),
    (81, 4),
    (128, 3),
    (243, 6),
    (256, 6),
    (257, 2),
]
WIDE += [(509, 5), (65537, 3)]


def digits(a, q, t):
    return [a // q**j % q for j in range(t)]


@pytest.mark.parametrize(("q", "t"), SPACES + WIDE)
def test_vectors_against_digits(q, t):
    v, slow = space(q, t), slow_field(q)
    rng = np.random.default_rng([q, t])
    a, x = rng.integers(0, q**t, size=(2, 150))
    a[:10] = [
        0,
        1,
        q**t - 1,
        q - 1,
        q ** (t - 1),
        *rng.integers(0, q ** rng.integers(1, t + 1, size=5)),
    ]
    c = rng.integers(0, q, size=len(a))
    c[10:12] = 0, 1
    dots, scaled = v.dot(a, x).tolist(), v.scale(c, a).tolist()
    for i, (first, second, factor) in enumerate(
        zip(a.tolist(), x.tolist(), c.tolist(), strict=True)
    ):
        total = 0
        for s, r in zip(digits(first, q, t), digits(second, q, t), strict=True):
            total = slow.add(total, slow.multiply(s, r))
        assert dots[i] == total
        assert digits(scaled[i], q, t) == [slow.multiply(factor, d) for d in digits(first, q, t)]
        places = rng.integers(0, t, size=1)
        assert v.digit(a[i : i + 1], places).tolist() == [digits(first, q, t)[places[0]]]
    nonzero = np.concatenate(
        [a[a > 0], [q**j for j in range(t)], [q ** (j + 1) - 1 for j in range(t)]]
    )
    leading = [
        max(j for j, d in enumerate(digits(vector, q, t)) if d) for vector in nonzero.tolist()
    ]
    assert v.leading(nonzero).tolist() == leading
    directions, factors = v.direction(nonzero)
    assert factors.tolist() == [
        vector // q**j for vector, j in zip(nonzero.tolist(), leading, strict=True)
    ]
    units = v.vector(directions)
    assert all(unit // q**j == 1 for unit, j in zip(units.tolist(), leading, strict=True))
    np.testing.assert_array_equal(v.scale(factors, units), nonzero)


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_directions_are_the_points_of_projective_space(q, t):
    v = space(q, t)
    assert v.directions == points(q, t) == sum(q**j for j in range(t))
    vectors = v.vector(np.arange(v.directions))
    assert (np.diff(vectors) > 0).all()  # in the order of their vectors, and so all different
    back, factor = v.direction(vectors)
    np.testing.assert_array_equal(back, np.arange(v.directions))
    assert (factor == 1).all()
    found = np.bincount(v.direction(np.arange(1, v.size))[0])
    np.testing.assert_array_equal(found, np.full(v.directions, q - 1))


# -------------------------------------------------------------------------------------- incidence


@cache
def all_dots(q, t):
    """<a, x> for every direction a and every vector x: from the slow field, digit by digit."""
    sums, products = slow_tables(q)
    where = [q**j + low for j in range(t) for low in range(q**j)]
    total = np.zeros((len(where), q**t), dtype=np.int64)
    for j in range(t):
        a, x = np.array(where) // q**j % q, np.arange(q**t) // q**j % q
        total = sums[total, products[np.ix_(a, x)]]
    return total


def brute_incident(counts, dots):
    if counts.ndim == 1:
        return np.where(dots == 0, counts[:, None], 0).sum(axis=0)
    return np.take_along_axis(counts, dots, axis=1).sum(axis=0)


def summing_to(total, shape, rng, concentrated):
    """Integers >= 0 of this sum: all in a few places, or everywhere about as many."""
    size = math.prod(shape)
    counts = np.zeros(size, dtype=np.int64)
    if concentrated:
        some = rng.choice(size, size=min(3, size), replace=False)
        counts[some] = total // 4
    else:
        counts += rng.integers(0, total // size + 1, size=size) // 2
    counts[rng.integers(size)] += total - int(counts.sum())
    assert counts.min() >= 0
    assert int(counts.sum()) == total
    return counts.reshape(shape)


# Around the sums at which the transform begins to split, and to the largest allowed.
TOTALS = [
    0,
    1,
    1000,
    2**24 - 1,
    2**28 - 1,  # in 32 bits, and no longer
    2**28 + 1,
    2**30 - 1,
    2**31 + 1,
    2**34 + 1,
    2**45 - 1,
    2**57 + 1,
    2**60 + 7,
    2**62 - 1,
    2**62 + 1,
    2**63 - 1,
]


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_incident_counts_exactly(q, t):
    v, dots, rng = space(q, t), all_dots(q, t), np.random.default_rng([q, t, 1])
    for total in TOTALS if v.size <= 1000 else TOTALS[2::4]:
        for shape in ((v.directions, q), (v.directions,)):
            for concentrated in (True, False):
                counts = summing_to(total, shape, rng, concentrated)
                before = counts.copy()
                expected = brute_incident(counts, dots)
                if counts.ndim == 2:
                    found = v.incident(counts)
                else:
                    found, expected = v.through(counts), expected[v.vector(np.arange(v.directions))]
                assert found.dtype == np.int64
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(counts, before)


@pytest.mark.parametrize(("q", "t"), [*SPACES, (11, 3), (13, 2), (17, 2), (25, 2)])
def test_first_vectors_alone(q, t):
    v, rng = space(q, t), np.random.default_rng([q, t, 4])
    for outer in ((), (2,)):
        counts = rng.integers(0, 1000, (*outer, v.directions, q))
        every = v.incident(counts)
        for wanted in sorted({1, 2, q, v.size // q, v.size // q + 1, v.size // 2 + 1, v.size}):
            np.testing.assert_array_equal(v.incident(counts, wanted), every[..., :wanted])
            floats = v.incident(counts / 3, wanted)
            np.testing.assert_allclose(floats, every[..., :wanted] / 3, rtol=1e-9)
        every = v.through(counts[..., 0])
        for wanted in sorted({1, 2, v.directions // 2, v.directions - 1, v.directions} - {0}):
            wanted = min(wanted, v.directions)
            np.testing.assert_array_equal(v.through(counts[..., 0], wanted), every[..., :wanted])


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_incident_of_floats_and_sums(q, t):
    """`sums` is brute force, too, and the adjoint of `incident`."""
    v, dots, rng = space(q, t), all_dots(q, t), np.random.default_rng([q, t, 2])
    counts, flat, weights = (
        rng.normal(size=(v.directions, q)),
        rng.normal(size=v.directions),
        rng.normal(size=v.size),
    )
    near = {"rtol": 0, "atol": 1e-12 * v.size}
    np.testing.assert_allclose(v.incident(counts), brute_incident(counts, dots), **near)
    points = v.vector(np.arange(v.directions))
    np.testing.assert_allclose(v.through(flat), brute_incident(flat, dots)[points], **near)
    found = v.sums(weights)
    expected = np.array([np.bincount(row, weights=weights, minlength=q) for row in dots])
    np.testing.assert_allclose(found, expected, **near)
    assert np.vdot(v.incident(counts), weights) == pytest.approx(
        np.vdot(counts, found), rel=1e-9, abs=1e-9
    )
    several = rng.normal(size=(2, 3, v.size))
    one_by_one = np.stack([v.sums(row) for row in several.reshape(6, -1)])
    assert v.sums(several).shape == (2, 3, v.directions, q)
    np.testing.assert_allclose(v.sums(several), one_by_one.reshape(2, 3, -1, q), **near)
    marked = np.zeros((v.directions, q))
    marked[:, 0] = flat
    np.testing.assert_allclose(v.through(flat), v.incident(marked)[points], **near)


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_many_at_once_are_one_by_one(q, t):
    """Leading axes, of floats and of integers on both sides of the sums at which the transform
    begins to split.
    """
    v, rng = space(q, t), np.random.default_rng([q, t, 4])
    for transform, shape, size in (
        (v.incident, (v.directions, q), v.size),
        (v.through, (v.directions,), v.directions),
    ):
        stack = rng.normal(size=(2, 3, *shape))
        found = transform(stack)
        assert found.shape == (2, 3, size)
        for i, j in product(range(2), range(3)):
            np.testing.assert_allclose(
                found[i, j], transform(stack[i, j]), rtol=0, atol=1e-12 * v.size
            )
        for total in (0, 1000, 2**31 + 1, 2**57 + 1, 2**60):
            stack = np.array(
                [
                    [summing_to(total, shape, rng, concentrated) for concentrated in (True, False)]
                    for _ in range(2)
                ]
            )
            stack[1, 1] = 0
            before, found = stack.copy(), transform(stack)
            assert found.dtype == np.int64
            for i, j in product(range(2), repeat=2):
                np.testing.assert_array_equal(found[i, j], transform(stack[i, j]))
            np.testing.assert_array_equal(stack, before)
        assert transform(np.zeros((0, *shape), dtype=np.int64)).shape == (0, size)
        found = transform(np.zeros((2, 0, *shape)))
        assert found.shape == (2, 0, size)


LARGE_SPACES = [
    (2, 17),
    (3, 10),
    (4, 8),
    (5, 6),
    (7, 5),
    (13, 4),
    (27, 3),
    (127, 2),
    (243, 2),
    (256, 2),
    (257, 2),
]


@pytest.mark.parametrize(("q", "t"), LARGE_SPACES)
def test_large_spaces_lose_no_unit(q, t):
    """At vectors chosen at random, from the library's inner products, which are tested above."""
    v, rng = space(q, t), np.random.default_rng([q, t, 3])
    vectors = v.vector(np.arange(v.directions))
    some = np.concatenate([[0, 1, v.size - 1], rng.integers(0, v.size, size=12)])
    dots = np.array([v.dot(vectors, np.full(v.directions, x)) for x in some])
    for total, concentrated in ((2**27, False), (2**62 + 1, True), (2**63 - 1, False)):
        counts = summing_to(total, (v.directions, q), rng, concentrated)
        expected = [int(counts[np.arange(v.directions), row].sum()) for row in dots]
        assert v.incident(counts)[some].tolist() == expected
        assert v.through(counts[:, 0].copy())[v.direction(some[1:])[0]].tolist() == [
            int(counts[row == 0, 0].sum()) for row in dots[1:]
        ]


# --------------------------------------------------------------------------------- Walsh-Hadamard


@pytest.mark.parametrize("m", range(9))
def test_walsh_hadamard_is_the_matrix(m):
    size, rng = 1 << m, np.random.default_rng(m)
    matrix = np.array([[(-1) ** ((i & j).bit_count()) for j in range(size)] for i in range(size)])
    values = rng.integers(-(1 << 62) // size, (1 << 62) // size, size=(3, 2, size))
    before = values.copy()
    np.testing.assert_array_equal(walsh_hadamard(values), values @ matrix)
    np.testing.assert_array_equal(values, before)
    np.testing.assert_allclose(
        walsh_hadamard(values[0, 0] / 3), matrix @ (values[0, 0] / 3), rtol=1e-12, atol=1e5
    )
    assert walsh_hadamard(values[0, 0].tolist()).tolist() == (matrix @ values[0, 0]).tolist()
    np.testing.assert_array_equal(
        walsh_hadamard(walsh_hadamard(values // size)), values // size * size
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("m", [1, 5, 6, 7, 13, 14, 15, 17])
def test_long_walsh_hadamard_transforms_by_halves(m, order):
    """Of any layout in memory: [[H, H], [H, -H]] is the next of the matrices."""
    values = np.asarray(
        np.random.default_rng(m).integers(-1000, 1000, size=(2, 3, 1 << m)), order=order
    )
    left, right = (walsh_hadamard(half.copy()) for half in np.split(values, 2, axis=-1))
    found = walsh_hadamard(values)
    np.testing.assert_array_equal(found, np.concatenate([left + right, left - right], axis=-1))
    assert found[0, 1, 0] == values[0, 1].sum()


@pytest.mark.parametrize("length", [0, 3, 6, 12, 1000])
def test_walsh_hadamard_of_other_lengths(length):
    with pytest.raises(ValueError, match=f"power of two, got {length}"):
        walsh_hadamard(np.zeros((2, length)))


# ----------------------------------------------------------------------------------------- orders


def test_prime_power():
    for q in range(1500):
        assert prime_power(q) == as_prime_power(q), q
    for q, expected in (
        (2**31 - 1, (2**31 - 1, 1)),
        (65537**2, (65537, 2)),
        (2**40, (2, 40)),
        (99991 * 99989, None),
    ):
        assert prime_power(q) == expected
    assert prime_power(99991 * 99991 * 2) is None


ORDERS = [q for q in range(2, 700) if as_prime_power(q) and (q <= 256 or is_prime(q))]


@SETTINGS
@given(st.integers(-3, 600), st.integers(2, 400), st.integers(0, 200))
def test_orders_near_integers(target, low, width):
    high = low + width
    inside, start = [q for q in ORDERS if low <= q <= high], max(low, min(high, target))
    above, below = [q for q in inside if q >= start], [q for q in inside if q < start]
    assert list(orders_near(target, low, high)) == [*above[:1], *below[-1:]]


def test_orders_near_nothing():
    assert list(orders_near(100, 9, 8)) == []
    assert list(orders_near(6, 6, 6)) == []
    assert list(orders_near(289, 284, 292)) == []


def admissible(domain, least_t, capacity, limit):
    for t in range(least_t, limit.bit_length()):
        for q in range(2, int(limit ** (1 / t)) + 2):
            if q**t <= limit and capacity(q, t) >= domain and is_order(q):
                yield q, t


def hashing_variance(e):
    return lambda q, t: (e + q - 1) ** 2 / (q - 1)


# Odds between the squares of neighbours: e + 1 rounds to one order and another is better, as in
# OLH(20, ln 2.49).
BETWEEN = [1.45, 2.46, 2.49, 6.49, 7.485, 15.49, 30.495]
ODDS = [
    1.0001,
    1.1,
    1.4,
    2.0,
    2.44,
    2.51,
    math.e,
    3.0,
    3.7,
    4.5,
    5.5,
    6.0,
    7.389,
    9.4,
    10.0,
    12.5,
    20.1,
    33.0,
    54.6,
    100.0,
    1e4,
    1e9,
]


def check_least_variance(domain, e, limit):
    protocols = [(1, lambda q, t: q**t, hashing_variance(e))]
    # For fewer items an order just large enough for them is better than one near e + 1
    if domain >= 4 * (e + 1):
        protocols.append((2, points, lambda q, t: variance_of_geometry(q, t, e)))
    for least_t, capacity, variance in protocols:
        q, t = best_order(domain, e + 1, least_t, capacity, variance)
        assert t >= least_t
        assert capacity(q, t) >= domain
        assert q**t <= max(limit, 8 * domain)
        least = min(
            variance(*order)
            for order in admissible(domain, least_t, capacity, max(limit, 8 * domain))
        )
        assert variance(q, t) <= least * (1 + 1e-12), (domain, e, least_t)


@pytest.mark.parametrize("e", ODDS)
@pytest.mark.parametrize("limit", [64, 1500])
def test_best_order_has_the_least_variance(e, limit, monkeypatch):
    """Of all orders and dimensions with room for the domain and a table that is not too large."""
    monkeypatch.setattr(library, "TABLE_LIMIT", limit)
    for domain in [*range(1, 12), 13, 16, 20, 31, 32, 33, 60, 100, 300]:
        check_least_variance(domain, e, limit)


def test_best_order_between_neighbours(monkeypatch):
    monkeypatch.setattr(library, "TABLE_LIMIT", 1500)
    for e, domain in product(BETWEEN, [*range(2, 12), 16, 20, 33, 60, 100]):
        check_least_variance(domain, e, 1500)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1.7, 2.0, 3.0, 4.4, 5.54])
@pytest.mark.parametrize("domain", [2, 5, 100, 1000, 5000])
def test_local_hashing_takes_the_prime_power_nearest(domain, epsilon):
    """With the real limit: nearest to e^eps + 1 in variance, and every dimension that holds the
    domain is allowed.
    """
    (q, t), e = OLH(domain, epsilon)._order, math.exp(epsilon)
    variance = hashing_variance(e)
    sizes = {}
    for order in filter(is_order, range(2, 4 * domain + 1000)):
        dimension = next(j for j in range(1, 30) if order**j >= domain)
        if order**dimension <= library.TABLE_LIMIT:
            sizes[order] = dimension
    best = min(sizes, key=lambda order: variance(order, 1))
    assert (q, t) == (best, sizes[best])
    assert not any(abs(order - 1 - e) < 0.9 * abs(q - 1 - e) for order in sizes)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("domain", [2, 50, 1000, 10**5, 10**6, 2 * 10**6])
def test_tables_stay_small(domain, epsilon):
    for kind, capacity in ((OLH, lambda q, t: q**t), (ProjectiveGeometry, points)):
        q, t = kind(domain, epsilon)._order
        assert capacity(q, t) >= domain
        assert q**t <= max(1 << 22, 8 * domain)


@pytest.mark.parametrize(("q", "t"), [(2, 4), (3, 3), (4, 2), (5, 2), (101, 2)])
def test_rank_by_what_is_orthogonal(q, t):
    """A subspace of dimension r has q^(t - r) vectors orthogonal to it."""
    v, rng = space(q, t), np.random.default_rng(1)
    every = np.arange(v.size)
    for many in (1, 2, 3, 4):
        chosen = rng.integers(0, v.size, many).tolist()
        chosen[-1] = v.difference(chosen[-1], chosen[0]) if many > 2 else chosen[-1]
        assert v.rank(chosen) == v.rank(chosen[::-1]) == v.rank(chosen * 2)
        zero = [v.dot(every, np.full(v.size, vector)) == 0 for vector in chosen]
        assert np.logical_and.reduce(zero).sum() == q ** (t - v.rank(chosen))
    a, b = rng.integers(0, v.size, (2, 50))
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        found = np.full(v.size, v.difference(x, y))
        negative = v.field.negative(v.dot(every, np.full(v.size, y)))
        assert (
            v.dot(every, found) == v.field.add(v.dot(every, np.full(v.size, x)), negative)
        ).all()


def test_binary_basis_by_enumeration():
    rng = np.random.default_rng(2)
    for many in range(6):
        numbers = rng.integers(0, 16, many).tolist()
        spans = []
        for spanning in (numbers, binary_basis(numbers)):
            spans.append({0})
            for number in spanning:
                spans[-1] |= {number ^ other for other in spans[-1]}
        basis = binary_basis(numbers)
        assert spans[0] == spans[1]
        assert len(spans[0]) == 1 << len(basis)
        assert len({number.bit_length() for number in basis}) == len(basis)
