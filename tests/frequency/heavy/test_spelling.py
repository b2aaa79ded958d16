"""Spellings: texts go to words and come back, and prefixes that no text has are known as such."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency.heavy.spelling import Prefixed, Spelling, code_lengths
from tests.frequency.heavy.test_universe import AWKWARD, strings

SETTINGS = settings(derandomize=True, deadline=None, max_examples=200)


def codes():
    """The canonical code, from its definition: texts of 0 and 1 by byte."""
    found, code, before = {}, 0, 0
    for length, byte in sorted((n, byte) for byte, n in enumerate(code_lengths()) if n):
        code <<= length - before
        found[byte] = f"{code:0{length}b}"
        code, before = code + 1, length
    return found


CODES = codes()


def spelt(text):
    """The bits of a text and its end."""
    return "".join(
        f"{byte & 63:06b}" if 0x80 <= byte < 0xC0 else CODES[byte] for byte in (*text.encode(), 0)
    )


def row_of(bits, limbs):
    filled = bits.ljust(64 * limbs, "0")
    return [int(filled[64 * k : 64 * k + 64], 2) for k in range(limbs)]


def test_codes_are_a_prefix_code_without_gaps():
    some = sorted(CODES.values())
    assert not any(b.startswith(a) for a, b in pairwise(some))
    assert sum(2 ** (12 - len(code)) for code in some) == 1 << 12
    assert sorted(CODES) == [*range(0x80), *range(0xC2, 0xF5)]


@pytest.mark.slow
@SETTINGS
@given(
    st.integers(1, 64).flatmap(
        lambda size: st.tuples(st.just(size), st.lists(strings(size), max_size=6))
    )
)
def test_texts_come_back(case):
    size, values = case
    spelling = Spelling(size)
    rows = spelling.words([value.encode() for value in values])
    assert rows.dtype == np.uint64
    assert rows.tolist() == [row_of(spelt(value), spelling.limbs) for value in values]
    assert spelling.texts(rows) == values
    assert spelling.bits(rows).tolist() == [len(spelt(value)) for value in values]


@pytest.mark.parametrize("size", [1, 2, 9, 31, 64])
def test_the_longest_texts(size):
    spelling = Spelling(size)
    values = ["\x01" * size, "e" * size, "", "\x7f" * (size - 1)]
    rows = spelling.words([value.encode() for value in values])
    assert spelling.texts(rows) == values
    assert int(spelling.bits(rows).max()) == spelling.most


def grown(spelling, steps):
    """All possible prefixes after some steps, and their lengths."""
    found, length = spelling.root, 0
    for step in steps:
        length += step
        nodes, used = spelling.children(found, step)
        parent, end = np.nonzero(nodes >= 0)
        rows = found.rows[parent] | spelling.ends(spelling.limbs, step, length)[end]
        found = Prefixed(rows, nodes[parent, end], used[parent, end])
    return found, length


@pytest.mark.parametrize("steps", [(10,), (3, 8), (1,) * 9, (7, 6), (16,)], ids=str)
def test_prefixes_of_one_character_or_two(steps):
    """Exactly those of the texts of at most two bytes."""
    spelling = Spelling(2)
    letters = [chr(k) for k in range(1, 128)]
    texts = ["", *letters, *map("".join, product(letters, repeat=2))]
    texts += [chr(k) for k in range(0x80, 0x800)]
    found, length = grown(spelling, steps)
    every = [spelt(text) for text in texts]
    expected = {bits.ljust(length, "0")[:length] for bits in every}
    rows = {tuple(row_of(bits, spelling.limbs)) for bits in expected}
    assert {tuple(row) for row in found.rows.tolist()} == rows
    assert len(found.rows) == len(rows)
    whole = {tuple(row_of(bits, spelling.limbs)) for bits in every if len(bits) <= length}
    assert {tuple(row) for row in found.rows[found.ended].tolist()} == whole


@pytest.mark.slow
@SETTINGS
@given(strings(30), st.lists(st.integers(1, 16), min_size=30, max_size=30))
def test_every_prefix_of_a_text_is_possible(text, steps):
    """Walking down along one text, also across limbs."""
    spelling, bits = Spelling(30), spelt(text)
    path, here, length = bits.ljust(spelling.limbs * 64, "0"), spelling.root, 0
    for step in steps:
        if length + step > spelling.most:
            break
        end = int(path[length : length + step], 2)
        length += step
        nodes, used = spelling.children(here, step)
        rows = here.rows | spelling.ends(spelling.limbs, step, length)[end]
        here = Prefixed(rows, nodes[:, end], used[:, end])
        assert here.rows.tolist() == [row_of(path[:length], spelling.limbs)]
        assert here.nodes[0] >= 0
        assert here.ended[0] == (length >= len(bits))
        if length >= len(bits):
            assert here.used[0] == len(text.encode())


def test_random_bits_are_texts_or_no_prefix_of_any():
    """Down to the end, with the last characters of every kind: whatever ends can be read."""
    spelling, rng = Spelling(5), np.random.default_rng(3)
    here, length = spelling.root, 0
    while length < spelling.most:
        step = min(8, spelling.most - length)
        length += step
        nodes, used = spelling.children(here, step)
        parent, end = np.nonzero(nodes >= 0)
        some = rng.permutation(len(parent))[:3000]
        parent, end = parent[some], end[some]
        rows = here.rows[parent] | spelling.ends(spelling.limbs, step, length)[end]
        here = Prefixed(rows, nodes[parent, end], used[parent, end])
    assert here.ended.all()
    texts = spelling.texts(here.rows)
    assert all(len(text.encode()) <= 5 and "\0" not in text for text in texts)
    assert spelling.words([text.encode() for text in texts]).tolist() == here.rows.tolist()
    assert len({len(text.encode()) - len(text) for text in texts}) >= 4


def test_awkward_texts():
    spelling = Spelling(64)
    assert spelling.texts(spelling.words([text.encode() for text in AWKWARD])) == AWKWARD
    assert spelling.words([]).shape == (0, spelling.limbs)
    for size in (0, 65, 1.5, "3", True):
        with pytest.raises(ValueError, match="size"):
            Spelling(size)
