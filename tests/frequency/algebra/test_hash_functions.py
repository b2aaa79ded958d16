"""The public random functions are fixed for ever, live in GF(2^64), and are exactly 5-wise
independent.
"""

import hashlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency.algebra.hash_functions import FEW, LinearHash, PublicBits, features
from tests.contracts.oracle import gf64, public_bit

SETTINGS = settings(derandomize=True, deadline=None, max_examples=150)
TOP = 1 << 63
MODULUS = (1 << 64) | 0b11011


def remainder(a):
    """A polynomial over GF(2), as an integer, modulo x^64 + x^4 + x^3 + x + 1: by long division."""
    while a.bit_length() > 64:
        a ^= MODULUS << (a.bit_length() - 65)
    return a


def multiply(a, b):
    return remainder(product_of(a, b))


def product_of(a, b):
    total = 0
    while b:
        total, a, b = total ^ (a if b & 1 else 0), a << 1, b >> 1
    return total


def slow_features(x):
    return x, multiply(multiply(x, x), x)


def vector(x):
    """(1, x, x^3) as 129 bits."""
    x, cube = slow_features(x)
    return 1 | x << 1 | cube << 65


def rank(vectors):
    """Over GF(2), of integers as vectors of bits."""
    basis: list[int] = []
    for v in vectors:
        for b in basis:
            v = min(v, v ^ b)
        if v:
            basis.append(v)
    return len(basis)


def library_vectors(items):
    x, cube = features(np.array(items, dtype=np.int64))
    return [1 | a << 1 | b << 65 for a, b in zip(x.tolist(), cube.tolist(), strict=True)]


# -------------------------------------------------------------------------------------- the field


def test_the_modulus_is_irreducible():
    """Rabin's test: x^(2^64) = x, and x^(2^32) - x has no factor in common with the modulus; 2 is
    the only prime factor of 64.
    """

    def gcd(a, b):
        while b:
            while a.bit_length() >= b.bit_length():
                a ^= b << (a.bit_length() - b.bit_length())
            a, b = b, a
        return a

    power = 2
    for squarings in range(1, 65):
        power = multiply(power, power)
        if squarings == 32:
            assert gcd(MODULUS, power ^ 2) == 1
    assert power == 2


ITEMS = [
    0,
    1,
    2,
    3,
    255,
    256,
    1 << 21,
    (1 << 22) - 1,
    (1 << 32) - 1,
    1 << 32,
    1 << 62,
    TOP - 1,
    TOP - 2,
    0x5555555555555555,
]


def check_features(items):
    x, cube = features(np.array(items, dtype=np.int64))
    assert x.dtype == cube.dtype == np.uint64
    assert list(zip(x.tolist(), cube.tolist(), strict=True)) == [
        slow_features(item) for item in items
    ]


def test_features_are_cubes():
    check_features(ITEMS)
    check_features(list(range(2000)))
    check_features([1 << b for b in range(63)])
    check_features([(1 << b) - 1 for b in range(64)])
    for item in ITEMS:  # whatever else is in the array
        check_features([item])
        (x,), (cube,) = features(np.array([item - (1 << 63)]))  # 2^64 less than an item
        assert (x, cube) == slow_features(item + (1 << 63))
    assert [part.shape for part in features(np.zeros((2, 3), dtype=np.int64))] == [(2, 3), (2, 3)]
    assert [len(part) for part in features(np.zeros(0, dtype=np.int64))] == [0, 0]


@SETTINGS
@given(
    st.lists(
        st.one_of(st.integers(0, TOP - 1), st.integers(0, 1 << 20), st.sampled_from(ITEMS)),
        min_size=1,
        max_size=20,
    )
)
def test_features_are_cubes_of_any_items(items):
    check_features(items)


def test_features_leave_the_items_alone():
    items = np.array(ITEMS, dtype=np.int64)
    features(items)
    assert items.tolist() == ITEMS


# ----------------------------------------------------------------------------------- independence


@SETTINGS
@given(
    st.lists(
        st.one_of(st.integers(0, TOP - 1), st.integers(0, 300)), min_size=5, max_size=5, unique=True
    )
)
def test_any_five_items_are_independent(items):
    assert rank(library_vectors(items)) == 5


@SETTINGS
@given(st.integers(1, TOP - 1), st.integers(1, TOP - 1), st.integers(1, TOP - 1))
def test_structured_items_are_independent(x, y, z):
    """Those that depend on each other as bit strings: sums, shifts, and multiples in the field."""
    double = multiply(2, x) % TOP
    for items in (
        (0, x, y, z, x ^ y ^ z),
        (0, x, y, x ^ y, z),
        (0, x, x ^ 1, x ^ 2, x ^ 3),
        (x, y, z, x ^ y, x ^ z),
        (0, 1, x, x ^ 1, double),
    ):
        if len(set(items)) == 5:
            assert rank(library_vectors(items)) == 5


def test_all_quintuples_of_small_items_are_independent():
    """In characteristic 2 a dependency is a subset that sums to zero: none of 1 .. 5 of the first
    64 items.
    """
    vectors = library_vectors(range(64))
    assert 0 not in vectors
    assert len(set(vectors)) == 64
    pairs: dict[int, list[tuple[int, int]]] = {}
    for a, b in combinations(range(64), 2):
        pairs.setdefault(vectors[a] ^ vectors[b], []).append((a, b))
    assert all(len(found) == 1 for found in pairs.values())  # no four items
    assert not set(pairs) & set(vectors)  # no three
    triples = {vectors[a] ^ vectors[b] ^ vectors[c] for a, b, c in combinations(range(64), 3)}
    # No five: a triple that sums to the same as a pair. (The constant already forbids odd subsets.)
    assert not triples & set(pairs)


def test_some_six_items_are_dependent():
    """So the independence is 5-wise and no more: two triples with equal sums. Six such bits have an
    even number of ones.
    """
    vectors, seen = library_vectors(range(64)), dict[int, tuple[int, int]]()
    six = next(
        (*seen[total], *triple)
        for triple in combinations(range(64), 3)
        if (total := vectors[triple[0]] ^ vectors[triple[1]] ^ vectors[triple[2]]) in seen
        or seen.setdefault(total, triple) is None
    )
    assert len(set(six)) == 6
    assert rank(library_vectors(six)) == 5
    bits = PublicBits("hash", 0, 500).bits(np.arange(500)[:, None], features(np.array(six)))
    assert not (bits.sum(axis=1) % 2).any()
    assert {int(row.sum()) for row in bits} == {0, 2, 4, 6}


def test_five_bits_are_uniform_over_all_keys():
    """The library's function with every key: items below 8 use 3 bits of the linear part, 7 of the
    cube's, and the constant.
    """
    keys = np.arange(1 << 11)
    public = PublicBits("hash", 0, len(keys))
    public._table = (
        (keys & 7).astype(np.uint64),
        (keys >> 3 & 127).astype(np.uint64),
        (keys >> 10).astype(np.uint8),
    )
    bits = public.bits(keys[:, None], features(np.arange(8))).astype(np.int64)
    for items in combinations(range(8), 5):
        patterns = bits[:, items] @ (1 << np.arange(5))
        assert np.bincount(patterns, minlength=32).tolist() == [len(keys) // 32] * 32


def test_the_same_in_a_tiny_field():
    """(1, x, x^3) in GF(16), all 2^9 keys and all quintuples: what makes it work is the field and
    not the number of bits.
    """

    def cube(x):
        def times(a, b):
            total = product_of(a, b)
            for top in (6, 5, 4):
                if total >> top & 1:
                    total ^= 0b10011 << (top - 4)
            return total

        return times(times(x, x), x)

    columns = np.array([1 | x << 1 | cube(x) << 5 for x in range(16)])
    bits = np.bitwise_count(np.arange(512)[:, None] & columns).astype(np.int64) & 1
    for items in combinations(range(16), 5):
        assert (np.bincount(bits[:, items] @ (1 << np.arange(5)), minlength=32) == 16).all()


# ------------------------------------------------------------------------------- a fixed function


def by_hand(label, seed, rows, row, item):
    """A bit from the definition: SHAKE-256 of a text, a word for x, then a word for x^3, then a
    byte for the constant.
    """
    stream = hashlib.shake_256(f"frequency:{label}:{seed}".encode()).digest(17 * rows)
    linear, cubic = (
        int.from_bytes(stream[at : at + 8], "little") for at in (8 * row, 8 * rows + 8 * row)
    )
    x, cube = slow_features(item)
    return (
        (linear & x).bit_count() + (cubic & cube).bit_count() + (stream[16 * rows + row] & 1)
    ) % 2


@pytest.mark.parametrize(
    ("label", "seed", "rows"),
    [("hash", 0, 1), ("hash", 7, 40), ("projection", 0, 40), ("projection", 2**70, 9)],
)
def test_public_bits_by_hand(label, seed, rows):
    found = PublicBits(label, seed, rows).bits(np.arange(rows)[:, None], features(np.array(ITEMS)))
    assert found.dtype == np.uint8
    assert found.tolist() == [
        [by_hand(label, seed, rows, row, item) for item in ITEMS] for row in range(rows)
    ]


def test_public_bits_broadcast():
    public, rows, items = PublicBits("hash", 3, 20), np.arange(20), np.arange(100, 120)
    table = public.bits(rows[:, None], features(items))
    assert public.bits(rows, features(items)).tolist() == np.diag(table).tolist()
    assert public.bits(np.array(4), features(items)).tolist() == table[4].tolist()


VECTOR = "399462632026a7ecfe332e5603abe3e8"
"""Eight items under 16 functions of label "hash" and seed 0, a row of hexadecimal digits for each
item.
"""


def test_public_bits_never_change():
    """A change here makes every client in the field send nonsense to the server."""
    bits = PublicBits("hash", 0, 16).bits(
        np.arange(16)[:, None],
        features(np.array([0, 1, 2, 3, 1000, 1 << 32, TOP - 1, 12345678901])),
    )
    assert np.packbits(bits.T, axis=1).tobytes().hex() == VECTOR
    assert PublicBits("hash", 0, 2)._table[0].tolist() == [476088169498413660, 629585159369994699]


@pytest.mark.parametrize("change", [("hash", 1, 64), ("projection", 0, 64), ("hash", 0, 65)])
def test_other_names_are_other_functions(change):
    items = features(np.arange(64))
    mine, other = (
        PublicBits(*which).bits(np.arange(64)[:, None], items)
        for which in (("hash", 0, 64), change)
    )
    # 4096 pairs of fair, pairwise independent bits agree 2048 times, give or take 32: ten
    # deviations.
    assert abs(int((mine == other).sum()) - 2048) < 320


def test_public_bits_are_balanced():
    """Over rows and items: ones are half of all, and any two items agree on half of the rows."""
    bits = (
        PublicBits("projection", 5, 1 << 14)
        .bits(np.arange(1 << 14)[:, None], features(np.arange(40)))
        .astype(np.int64)
    )
    signs = 1 - 2 * bits
    deviation = 1 << 7
    assert (np.abs(signs.sum(axis=0)) < 6 * deviation).all()
    # 820 sums: false alarm 2e-6
    assert (np.abs(signs.T @ signs - np.eye(40, dtype=int) * (1 << 14)) < 6 * deviation).all()


def test_public_bits_are_those_of_the_definition():
    items = np.array([0, 1, 2, 3, 12345, (1 << 40) + 1, (1 << 63) - 1])
    x, cube = features(items)
    assert x.tolist() == items.tolist()
    assert cube.tolist() == [gf64(v, gf64(v, v)) for v in items.tolist()]
    found = PublicBits("hash", 7, 5).bits(np.arange(5)[:, None], (x, cube))
    assert found.tolist() == [
        [public_bit("hash", 7, 5, row, v) for v in items.tolist()] for row in range(5)
    ]


def test_any_five_items_have_independent_public_bits():
    """No two, and no four, of the vectors (1, x, x^3) sum to zero (an odd number cannot), so any
    five are linearly independent.
    """
    rng = np.random.default_rng(0)
    for items in (range(40), [int(v) for v in rng.integers(0, 1 << 63, size=40)]):
        vectors = [(v, gf64(v, gf64(v, v))) for v in items]
        assert len(set(vectors)) == 40
        sums = {}
        for pair in combinations(range(40), 2):
            a, b = (vectors[k] for k in pair)
            key = (a[0] ^ b[0], a[1] ^ b[1])
            assert key not in sums
            sums[key] = pair


def test_linear_hash():
    """Against the definition: parities of rows of a matrix; linear; and what all places say of a
    zero.
    """
    hash_, rng = LinearHash("any", 3, 18), np.random.default_rng(0)
    x, y = (rng.integers(0, 2**64, size=50, dtype=np.uint64) for _ in range(2))
    assert (hash_(x ^ y) == hash_(x) ^ hash_(y) ^ hash_.zero).all()
    assert hash_(np.zeros(1, dtype=np.uint64)).tolist() == [hash_.zero]
    for word in x[:5].tolist():
        bits = [(int(row) & word).bit_count() % 2 for (row,) in hash_._rows]
        assert int(hash_(np.array([word], dtype=np.uint64))[0]) == hash_.zero ^ sum(
            bit << k for k, bit in enumerate(bits)
        )
    assert hash_(x).max() < 1 << 18
    many = rng.integers(0, 2**64, size=2 * FEW, dtype=np.uint64)
    assert hash_(many).tolist() == [int(hash_(many[k : k + 1])[0]) for k in range(len(many))]
    assert hash_(many.reshape(2, FEW)).tolist() == hash_(many).reshape(2, FEW).tolist()
    assert hash_(many[:6].reshape(2, 3)).tolist() == hash_(many)[:6].reshape(2, 3).tolist()
    assert (
        LinearHash("any", 3, 18)(x).tolist()
        == hash_(x).tolist()
        != LinearHash("any", 4, 18)(x).tolist()
    )
