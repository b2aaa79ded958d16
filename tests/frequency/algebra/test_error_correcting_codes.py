"""Codes: encoding is evaluation of a polynomial and then a Hadamard row; decoding finds the word of
the highest score.

False alarms: comparisons of decoders are seeded and exact or, where they count, at 1e-6 by a
binomial test.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from frequency.algebra.finite_field import Field
from frequency.heavy import Code
from tests.goodness_of_fit import FALSE_ALARM

LENGTHS = range(1, 65)


class Slow:
    """Encoding from the definition: solve for the polynomial's coefficients, evaluate it by
    Horner's rule, spell out the signs.
    """

    def __init__(self, code):
        self.code, order = code, 1 << code.symbol
        field, grid = Field(order), np.arange(order)
        self.product = [
            [int(x) for x in field.multiply(np.full(order, a), grid)] for a in range(order)
        ]
        self.inverse = [0] + [row.index(1) for row in self.product[1:]]

    def coefficients(self, values):
        """Of the polynomial of least degree with these values at 0, 1, ...: Gaussian elimination on
        the Vandermonde matrix.
        """
        n, times = len(values), self.product
        rows = []
        for x, value in enumerate(values):
            powers = [1]
            for _ in range(n - 1):
                powers.append(times[powers[-1]][x])
            rows.append([*powers, value])
        for k in range(n):
            pivot = next(r for r in range(k, n) if rows[r][k])
            rows[k], rows[pivot] = rows[pivot], rows[k]
            rows[k] = [times[self.inverse[rows[k][k]]][a] for a in rows[k]]
            for r in range(n):
                if r != k and rows[r][k]:
                    rows[r] = [
                        a ^ times[rows[r][k]][b] for a, b in zip(rows[r], rows[k], strict=True)
                    ]
        return [row[-1] for row in rows]

    def minus(self, word):
        """The whole codeword, 1 for -1."""
        code = self.code
        symbols = [
            word >> (code.symbol * i) & ((1 << code.symbol) - 1) for i in range(code.symbols)
        ]
        polynomial, result = self.coefficients(symbols), []
        for x in range(code.blocks):
            value = 0
            for coefficient in reversed(polynomial):
                value = self.product[value][x] ^ coefficient
            top, rest = value >> (code.symbol - 1), value & ((1 << (code.symbol - 1)) - 1)
            result += [
                (top + (rest & place).bit_count()) % 2 for place in range(1 << (code.symbol - 1))
            ]
        return result


def random_words(bits, count, seed=0):
    words = np.random.default_rng([bits, seed]).integers(
        0, 1 << bits, size=count, dtype=np.uint64, endpoint=False
    )
    words[:2] = 0, (1 << bits) - 1
    return words


def signs_of(code, words):
    return 1 - 2 * code.minus(words[:, None], np.arange(code.length)[None])


def codebook(code):
    return signs_of(code, np.arange(1 << code.bits, dtype=np.uint64))


def codes_of(bits):
    """All codes for words of so many bits."""
    for symbol in range(1, 9):
        if 2 * -(-bits // symbol) <= 1 << symbol:
            yield Code(bits, symbol)


# --------------------------------------------------------------------------------------- encoding


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8, 9, 16, 23, 33, 64])
def test_encoding_is_evaluation(bits):
    for code in (Code.best(bits), next(codes_of(bits))):
        slow, words = Slow(code), random_words(bits, 4)
        found = code.minus(words[:, None], np.arange(code.length)[None])
        assert found.shape == (4, code.length)
        assert found.tolist() == [slow.minus(int(word)) for word in words]
        index = np.random.default_rng(1).integers(0, code.length, size=4)  # one place a word
        assert code.minus(words, index).tolist() == found[np.arange(4), index].tolist()


@pytest.mark.parametrize("bits", LENGTHS)
def test_sizes(bits):
    """Room for the word and no symbol to spare; twice as many blocks; a constant rate for the same
    symbols.
    """
    for code in codes_of(bits):
        assert (code.symbols - 1) * code.symbol < bits <= code.symbols * code.symbol
        assert code.blocks == 2 * code.symbols <= 1 << code.symbol
        assert code.length == code.blocks * 2 ** (code.symbol - 1)
        assert code.distance > Fraction(1, 4)
    best = Code.best(bits)
    assert best.symbols == -(-bits // 8)
    assert best in list(codes_of(bits))
    # As few wasted bits as so many equal symbols can waste
    assert best.symbols * best.symbol - bits < best.symbols


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 8, 9])
def test_distance(bits):
    """Of all pairs of words, by comparing all codewords: the codes are linear, so those with word 0
    would do.
    """
    for code in codes_of(bits):
        book = codebook(code)
        apart = (code.length - book @ book.T) // 2
        np.fill_diagonal(apart, code.length)
        assert Fraction(int(apart.min()), code.length) >= code.distance
        blocks = (
            book.reshape(len(book), 1, code.blocks, -1) != book[:1].reshape(1, 1, code.blocks, -1)
        ).sum(axis=3)[1:, 0]
        half = 1 << (code.symbol - 1)
        assert np.isin(blocks, [0, half // 2, half] if half > 1 else [0, 1]).all()
        assert ((blocks > 0).sum(axis=1) >= code.blocks - code.symbols + 1).all()
        assert (
            apart[0]
            == apart[0][np.arange(len(book))[:, None] ^ np.arange(len(book))][
                np.arange(len(book)), 0
            ]
        ).all()


def test_distance_is_attained():
    """The bound is no better than the codes: words that differ in as few blocks as possible, in
    half of the signs of each.
    """
    code = Code(6, 3)
    book = codebook(code)
    assert Fraction(int((book[0] != book[1:]).sum(axis=1).min()), code.length) == code.distance


# --------------------------------------------------------------------------------------- decoding


@pytest.mark.parametrize("bits", LENGTHS)
def test_round_trip(bits):
    """Of codewords, of their multiples, and of codewords in noise that is no match for them."""
    words = random_words(bits, 4)
    best = Code.best(bits)
    noise = np.random.default_rng(bits).integers(-8, 9, size=(4, best.length))
    for code in {best, next(codes_of(bits))}:
        signs = signs_of(code, words)
        sums = signs * [[1], [3], [1e9], [1 << 40]] if code != best else signs * 9 + noise
        for soft in (True, False):
            found = code.decode(sums, soft=soft)
            assert found.dtype == np.uint64
            assert found.tolist() == words.tolist()


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 10, 12])
def test_decoding_is_maximum_likelihood(bits):
    """Against the scores of all words: the likeliest one at high signal, for every code; and, for
    the best code, often at low.
    """
    for code in codes_of(bits):
        book, rng = codebook(code), np.random.default_rng([bits, code.symbol])
        words = random_words(bits, 200)
        for strength, least in (
            (2.0, 0.995),
            (0.35, (0.9 if bits <= 8 else 0.6) if code == Code.best(bits) else 0.0),
        ):
            sums = strength * book[words.astype(int)] + rng.normal(size=(200, code.length))
            scores = sums @ book.T
            found = code.decode(sums).astype(int)
            reached = scores[np.arange(200), found] >= scores.max(axis=1) - 1e-9
            assert reached.mean() >= least, (code, strength)


def test_short_words_are_decoded_exactly():
    """Where all symbols are tried the decoder finds the likeliest word, whatever the sums."""
    for code in (Code(1, 1), Code(2, 2), Code(3, 3)):
        sums = np.random.default_rng(code.bits).normal(size=(300, code.length))
        assert (code.decode(sums).astype(int) == (sums @ codebook(code).T).argmax(axis=1)).all()


def test_the_comparison_can_fail():
    """A decoder that is told the sums of all but the last blocks fails more often."""
    code = Code(10, 5)
    book, words = codebook(code), random_words(10, 200)
    sums = 0.35 * book[words.astype(int)] + np.random.default_rng(3).normal(size=(200, code.length))
    spoilt = sums.copy()
    spoilt[:, code.length // 2 :] = 0
    scores = sums @ book.T
    reached = scores[np.arange(200), code.decode(spoilt).astype(int)] >= scores.max(axis=1) - 1e-9
    assert reached.mean() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16, 33, 64])
def test_rounding_loses(bits):
    """The sums themselves against their signs: never significantly worse, and clearly better where
    either sometimes fails.
    """
    code, rows = Code.best(bits), 150
    words, rng = random_words(bits, rows), np.random.default_rng(bits)
    hits = {True: 0, False: 0}
    for strength in (0.2, 0.3, 0.4):
        sums = strength * signs_of(code, words) + rng.normal(size=(rows, code.length))
        right = {soft: code.decode(sums, soft=soft) == words for soft in hits}
        only = [int((right[a] & ~right[not a]).sum()) for a in (True, False)]
        assert (
            stats.binomtest(only[1], max(1, sum(only)), 0.5, alternative="greater").pvalue
            > FALSE_ALARM
        )
        for soft in hits:
            hits[soft] += int(right[soft].sum())
    assert hits[True] > hits[False]


def test_zeros_are_plus():
    """When only signs count: 0 counts as +, so that sums of 0 are the codeword of the word 0."""
    for bits in (1, 8, 20, 64):
        code = Code.best(bits)
        assert code.decode(np.zeros((2, code.length)), soft=False).tolist() == [0, 0]


@pytest.mark.parametrize("bits", [1, 2, 5, 9, 12, 20, 63, 64])
def test_sums_that_say_nothing(bits):
    """Zeros, single entries, the largest integers, pure noise: always some word of the universe."""
    for code in (Code.best(bits), next(codes_of(bits))):
        rng = np.random.default_rng(bits)
        rows = np.zeros((8, code.length))
        rows[1] = 1
        rows[2] = -1
        rows[3, 0] = 1
        rows[4, -1] = -(2.0**62)
        rows[5] = 2.0**62 * rng.choice([-1, 1], size=code.length)
        rows[6:] = rng.normal(size=(2, code.length))
        largest = np.full((1, code.length), np.iinfo(np.int64).max)
        for soft in (True, False):
            for sums in (rows, largest, -largest):
                found = code.decode(sums, soft=soft)
                assert all(int(word) < 1 << bits for word in found)
            assert code.decode(rows[:0], soft=soft).shape == (0,)


def test_spare_bits_are_not_used():
    """Sums that favour a last symbol beyond the word's bits give a word within them, and the
    likeliest one.
    """
    code = Code(9, 5)  # two symbols of five bits: one to spare
    wide = Code(10, 5)
    outside = np.arange(512, 1024, dtype=np.uint64)[::17]
    sums = signs_of(wide, outside).astype(float)
    found = code.decode(sums).astype(int)
    assert (found < 512).all()
    scores = sums @ codebook(code).T
    assert (scores[np.arange(len(sums)), found] >= 0.75 * scores.max(axis=1)).all()


def test_how_many_rows_at_a_time_does_not_matter(monkeypatch):
    code = Code.best(20)
    sums = np.random.default_rng(5).normal(size=(30, code.length)) + 0.3 * signs_of(
        code, random_words(20, 30)
    )
    whole = code.decode(sums)
    for at_once in (1, 50_000, 100_000):
        monkeypatch.setattr("frequency.algebra.error_correcting_codes._AT_ONCE", at_once)
        assert code.decode(sums).tolist() == whole.tolist()


# -------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("symbol", [0, -1, 9, 1.0, "4", None, True, [4]])
def test_wrong_symbols(symbol):
    with pytest.raises(ValueError, match="symbol must be a number of bits"):
        Code(8, symbol)


@pytest.mark.parametrize(("bits", "symbol"), [(64, 4), (3, 1), (9, 2), (33, 4)])
def test_no_room(bits, symbol):
    with pytest.raises(ValueError, match="blocks have no room"):
        Code(bits, symbol)


def test_room_is_used_up():
    """Exactly as many blocks as points is room enough."""
    for bits, symbol in product((1, 4, 12, 32), (1, 2, 3, 4)):
        blocks = 2 * -(-bits // symbol)
        if blocks == 1 << symbol:
            code = Code(bits, symbol)
            words = random_words(bits, 5)
            assert code.decode(signs_of(code, words)).tolist() == words.tolist()


@pytest.mark.parametrize("bits", [0, 65, -1])
def test_wrong_bits(bits):
    with pytest.raises(ValueError, match="bits must be an integer, 1 to 64"):
        Code(bits, 8)


@pytest.mark.parametrize("symbol", [np.int64(8), np.uint8(8)])
def test_numpy_integers(symbol):
    """They are accepted: then they must work."""
    code = Code(64, symbol)
    assert code == Code(64, 8)
    assert code.decode(signs_of(code, random_words(64, 3))).tolist() == random_words(64, 3).tolist()
    assert type(code.symbol) is int
