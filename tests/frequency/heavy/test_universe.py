"""Universes: integers and strings go to words and come back, and prefixes that no string has are
known as such.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency import InvalidValue
from frequency.heavy import InvalidString, Universe

SETTINGS = settings(derandomize=True, deadline=None, max_examples=200)
AWKWARD = [
    "",
    "a",
    "ab",
    "ä",
    "日",
    "🦆",
    "\x01",
    "\x7f",
    "\x80",
    "\u07ff",
    "\u0800",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
]


def spelt(string, size):
    """The word of a string, from the definition."""
    data = string.encode("utf-8")
    return sum(byte << (8 * (size - 1 - k)) for k, byte in enumerate(data))


def as_string(word, size):
    """The string whose word this is, or None: by decoding, and encoding again."""
    data = int(word).to_bytes(size, "big").rstrip(b"\0")
    try:
        string = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in string else string


def strings(size):
    """Strings of at most ``size`` bytes without U+0000 and surrogates."""
    letters = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
    return st.text(letters, max_size=size).filter(lambda s: len(s.encode()) <= size)


# ---------------------------------------------------------------------------------------- strings


@pytest.mark.slow
@SETTINGS
@given(
    st.integers(1, 8).flatmap(
        lambda size: st.tuples(st.just(size), st.lists(strings(size), max_size=6))
    )
)
def test_strings_come_back(case):
    size, values = case
    universe = Universe(8 * size, text=True)
    words = universe.words(values)
    assert words.dtype == np.uint64
    assert words.tolist() == [spelt(value, size) for value in values]
    assert universe.values(words).tolist() == values
    assert universe.possible(words, 8 * size).all()
    for length in range(1, 8 * size + 1):
        assert universe.possible(words >> np.uint64(8 * size - length), length).all()


@pytest.mark.parametrize("size", range(1, 9))
def test_awkward_strings(size):
    universe = Universe(8 * size, text=True)
    fit = [s for s in AWKWARD if len(s.encode()) <= size]
    assert universe.values(universe.words(fit)).tolist() == fit
    assert len(set(universe.words(fit).tolist())) == len(fit)
    full = "x" * size
    assert universe.values(universe.words(full)).tolist() == [full]
    for kind in (np.array(fit, dtype=object), tuple(fit), iter(fit), np.array(["a", "b"])):
        assert universe.words(kind).dtype == np.uint64
    assert universe.words([]).shape == universe.values(universe.words([])).shape == (0,)


@pytest.mark.parametrize(
    "bad",
    [
        "abc",
        "日",
        "é" * 2,
        "\0",
        "a\0",
        "\ud800",
        "a\udfff",
        None,
        5,
        1.5,
        b"ab",
        ["a"],
        np.nan,
        True,
    ],
    ids=lambda value: ascii(value),
)
def test_bad_strings_are_named(bad):
    """The first one, with its position; also when it comes after good ones."""
    universe = Universe(16, text=True)
    for values in ([bad], ["a", bad, "abcdef", None]):
        with pytest.raises(InvalidString, match="nothing was drawn") as refused:
            universe.words(values)
        assert isinstance(refused.value, InvalidValue)
        assert refused.value.index == len(values) // 2 - (len(values) == 4)
        assert len(str(refused.value)) < 200


def test_masked_strings_are_refused():
    with pytest.raises(InvalidString) as refused:
        Universe(16, text=True).words(np.ma.array(["a", "b"], mask=[False, True]))
    assert refused.value.index == 1


def test_tables_of_strings_are_refused():
    for values in (np.array([["a", "b"]]), np.array("ab")):
        with pytest.raises(ValueError, match="one-dimensional"):
            Universe(16, text=True).words(values)


@pytest.mark.parametrize("values", [None, 5, b"x"], ids=repr)
def test_what_is_no_list_is_refused(values):
    with pytest.raises((TypeError, ValueError)):
        Universe(16, text=True).words(values)


# --------------------------------------------------------------------------- what can be a prefix


def completions(size, length, known):
    """For every prefix of a length whether the word of one of all strings begins with it."""
    return np.isin(np.arange(1 << length), known >> (8 * size - length))


@pytest.fixture(scope="module")
def two_bytes():
    return np.array([word for word in range(1 << 16) if as_string(word, 2) is not None])


def test_possible_is_decoding(two_bytes):
    """All 16-bit words; and prefixes of whole bytes."""
    universe = Universe(16, text=True)
    found = universe.possible(np.arange(1 << 16, dtype=np.uint64), 16)
    assert np.flatnonzero(found).tolist() == two_bytes.tolist()
    assert len(two_bytes) == 1 + 127 + 127**2 + (0x800 - 0x80)
    first = universe.possible(np.arange(256, dtype=np.uint64), 8)
    assert first.tolist() == completions(2, 8, two_bytes).tolist()
    one = Universe(8, text=True).possible(np.arange(256, dtype=np.uint64), 8)
    assert np.flatnonzero(one).tolist() == list(range(128))


def test_nothing_possible_is_left_out(two_bytes):
    """Of prefixes of any length: what some string begins with is possible."""
    universe = Universe(16, text=True)
    for length in range(1, 17):
        found = universe.possible(np.arange(1 << length, dtype=np.uint64), length)
        assert found[completions(2, length, two_bytes)].all(), length


@pytest.mark.parametrize("length", [3, 4, 11, 12, 13])
def test_parts_of_bytes(length, two_bytes):
    """Exactly the prefixes of some string."""
    found = Universe(16, text=True).possible(np.arange(1 << length, dtype=np.uint64), length)
    assert found.tolist() == completions(2, length, two_bytes).tolist()


@pytest.mark.slow
def test_possible_of_longer_words():
    """Random words of 3 to 8 bytes, near strings so that some are: against decoding."""
    rng = np.random.default_rng(4)
    for size in range(3, 9):
        universe = Universe(8 * size, text=True)
        pool = [s for s in AWKWARD if s]
        words = []
        for _ in range(1500):
            data = bytearray("".join(rng.choice(pool, size=4)).encode()[:size].ljust(size, b"\0"))
            for _ in range(int(rng.integers(0, 3))):
                data[rng.integers(size)] = rng.choice(
                    [
                        0,
                        0x41,
                        0x80,
                        0xBF,
                        0xC0,
                        0xC2,
                        0xE0,
                        0xED,
                        0xF0,
                        0xF4,
                        0xF5,
                        0xFF,
                        rng.integers(256),
                    ]
                )
            words.append(int.from_bytes(data, "big"))
        found = universe.possible(np.array(words, dtype=np.uint64), 8 * size)
        expected = [as_string(word, size) is not None for word in words]
        assert found.tolist() == expected
        assert 0.1 < np.mean(expected) < 0.95
        # And prefixes: of whole bytes, those that bytes can be added to. A character needs at most
        # three more.
        for whole in range(1, size):
            room = min(3, size - whole)
            prefixes = np.array(
                [word >> 8 * (size - whole) for word in words[:200]], dtype=np.uint64
            )
            endings = [
                b"",
                b"\x80",
                b"\xa0\x80",
                b"\x80\x80",
                b"\x90\x80\x80",
                b"\x80\x80\x80",
                b"\x90",
            ]
            endings += [b"\xa0"]
            expected = [
                any(
                    len(e) <= room
                    and as_string(
                        int.from_bytes(
                            (int(p).to_bytes(whole, "big") + e).ljust(size, b"\0"), "big"
                        ),
                        size,
                    )
                    is not None
                    for e in endings
                )
                for p in prefixes
            ]
            assert universe.possible(prefixes, 8 * whole).tolist() == expected, (size, whole)


@pytest.mark.parametrize(("length", "step"), [(0, 5), (3, 9), (8, 8), (11, 5), (12, 12), (16, 0)])
def test_possible_children_are_possible(length, step):
    """Prefix by prefix; also of parents that are not possible."""
    universe, rng = Universe(24, text=True), np.random.default_rng(5)
    pool = [spelt(s, 3) >> (24 - length) for s in AWKWARD if len(s.encode()) <= 3]
    parents = np.array([*pool, *rng.integers(0, 1 << length, 30)], dtype=np.uint64)
    children = parents[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)
    found = universe.possible_children(parents, length, step)
    assert found.shape == children.shape
    assert found.tolist() == [universe.possible(row, length + step).tolist() for row in children]
    assert Universe(24).possible_children(parents, length, step).all()


def test_all_prefixes_of_integers_are_possible():
    universe = Universe(20)
    assert universe.possible(np.arange(1 << 10, dtype=np.uint64), 10).all()
    assert universe.possible(np.zeros(0, dtype=np.uint64), 10).shape == (0,)


# --------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("bits", [1, 2, 8, 31, 32, 53, 63, 64])
def test_integers_come_back(bits):
    universe, top = Universe(bits), (1 << bits) - 1
    values = sorted({0, 1, top // 2, top - 1, top})
    words = universe.words(np.array(values, dtype=np.uint64))
    assert words.dtype == np.uint64
    assert words.tolist() == values
    back = universe.values(words)
    assert back.tolist() == values
    assert back.dtype == (np.uint64 if bits == 64 else np.int64)
    assert universe.size == 1 << bits
    assert universe.words(top).tolist() == [top]
    assert universe.words([]).shape == (0,)


@pytest.mark.parametrize("bits", [1, 8, 53, 63])
def test_python_integers(bits):
    top = (1 << bits) - 1
    for values in (
        [0, 1, top],
        (0, top),
        np.array([0, top], dtype=object),
        range(2),
        [np.int64(0), top],
    ):
        assert Universe(bits).words(values).tolist() == list(values)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2**63],
        [2**64 - 1, 0],
        np.array([0, 2**63], dtype=object),
        np.ma.array(np.array([1, 2**63], dtype=np.uint64)),
    ],
    ids=["small first", "large first", "objects", "masked array without masks"],
)
def test_large_integers_of_any_kind(values):
    assert Universe(64).words(values).tolist() == [int(value) for value in values]


def test_large_integers():
    for values in ([2**63, 2**64 - 1], np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 2**64 - 1):
        assert (
            Universe(64).words(values).tolist()
            == np.ravel(np.array(values, dtype=np.uint64)).tolist()
        )


@pytest.mark.parametrize("bits", [1, 8, 53, 54, 63, 64])
def test_what_is_no_item_is_refused(bits):
    top = (1 << bits) - 1
    for bad in (top + 1, -1, 0.5, float("nan"), float("inf"), "0", None, b"0", 2**70):
        with pytest.raises(InvalidValue) as refused:
            Universe(bits).words([0, bad] if not isinstance(bad, float) else np.array([bad]))
        assert refused.value.largest == top
    with pytest.raises(InvalidValue) as refused:
        Universe(bits).words(np.ma.array([0, 1], mask=[False, True]))
    assert refused.value.index == 1


def test_floats():
    """Integral ones are integers as long as floats can hold all of them; beyond, they are not what
    was meant.
    """
    assert Universe(53).words([1.0, 2.0**53 - 1]).tolist() == [1, 2**53 - 1]
    for bits in (54, 64):
        with pytest.raises(InvalidValue):
            Universe(bits).words([1.0])
        assert Universe(bits).words(np.zeros(0)).shape == (0,)


def test_tables_are_refused():
    with pytest.raises(ValueError, match="one-dimensional"):
        Universe(8).words([[1, 2]])


# -------------------------------------------------------------------------------------- universes


@pytest.mark.parametrize("bits", [0, -1, 65, 8.0, "8", None, True, [8]])
def test_wrong_bits(bits):
    with pytest.raises(ValueError, match="bits must be an integer, 1 to 64"):
        Universe(bits)


@pytest.mark.parametrize("text", [1, 0, "yes", None, np.True_])
def test_wrong_text(text):
    with pytest.raises(ValueError, match="text must be True"):
        Universe(8, text)


@pytest.mark.parametrize("bits", [1, 7, 9, 63])
def test_strings_are_whole_bytes(bits):
    with pytest.raises(ValueError, match="multiple of 8"):
        Universe(bits, text=True)


def test_equality():
    assert Universe(np.int64(8)) == Universe(8)
    assert type(Universe(np.uint8(8)).bits) is int
    assert hash(Universe(8)) == hash(Universe(8))
    assert Universe(8) != Universe(8, text=True)
