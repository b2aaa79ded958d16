"""The sampler is exact: every word decides as the definition in fractions says, and nothing is
drawn for a wrong count.
"""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign.noise.sampling as sampling
from mechdesign import InvalidCount, Mechanism, Privacy, named
from mechdesign.base.numbers import checked_counts
from mechdesign.noise.sampling import Sampler
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD, Tape

SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)


def columns_of(weights):
    return [list(column) for column in zip(*weights, strict=True)]


def definition(column, denominator, words):
    """The output of U = 0.words in base 2^64, or None while more words matter: cumulative
    probabilities that are <= U.
    """
    low = sum(Fraction(word, WORD ** (k + 1)) for k, word in enumerate(words))
    high = low + Fraction(1, WORD ** len(words))  # U < high
    cumulative = [Fraction(sum(column[: i + 1]), denominator) for i in range(len(column))]
    sure, possible = sum(c <= low for c in cumulative), sum(c < high for c in cumulative)
    return sure if sure == possible else None


def draw_one(sampler, column, words):
    """The output for a tape of words, and how many of them were read."""
    tape = Tape(words)
    first = tape(1)
    return int(sampler._draw(np.array([column]), first, tape)[0]), tape.used


def interesting_words(column, denominator, bits):
    """Words at and next to every threshold, every end of the range, and some edges of the cells of
    the guide table.
    """
    words = {0, 1, 2, WORD - 1, WORD - 2, WORD // 2, WORD // 2 - 1}
    shift = 64 - bits
    for i in range(len(column)):
        threshold = sum(column[: i + 1]) * WORD // denominator
        cell = threshold >> shift
        words |= {threshold + step for step in (-1, 0, 1)}
        words |= {(cell + k << shift) + step for k in (-1, 0, 1, 2) for step in (-1, 0, 1)}
    return sorted(word for word in words if 0 <= word < WORD)


def check_every_threshold(weights, denominator):
    sampler = Sampler(weights, denominator)
    for j, column in enumerate(columns_of(weights)):
        for word in interesting_words(column, denominator, sampler._bits):
            for rest in ([0] * 40, [WORD - 1] * 40, [WORD * 3 // 10] * 40):
                words = [word, *rest]
                found, used = draw_one(sampler, j, words)
                assert found == definition(column, denominator, words[:used]), (j, word)
                assert column[found] > 0
                # No word is wasted: an integer part that no threshold shares decides at once.
                if definition(column, denominator, words[:1]) is not None:
                    assert used == 1


@pytest.mark.parametrize(
    ("weights", "denominator"),
    [
        ([[1, 2], [2, 1]], 3),
        ([[1, 1], [1, 1]], 2),
        ([[1], [1], [1], [1]], 4),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 1]], 1),
        ([[0, 3], [5, 0], [0, 2], [0, 0]], 5),
        ([[1, 1, 1]], 1),
        ([[7], [0], [0], [6], [0]], 13),
        ([[1], [WORD - 2], [1]], WORD),
        ([[1], [WORD - 1], [1]], WORD + 1),
        ([[WORD // 4096], [WORD - WORD // 4096]], WORD),
        ([[1], [1], [3**50 - 2]], 3**50),
        ([[1], [10**500 - 2], [1]], 10**500),
        ([[10**500 // 3], [10**500 - 10**500 // 3]], 10**500),
    ],
    ids=lambda value: "" if isinstance(value, int) else f"{len(value)}x{len(value[0])}",
)
def test_every_threshold(weights, denominator):
    check_every_threshold(weights, denominator)


@pytest.mark.slow
@SETTINGS
@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), min_size=1, max_size=3
    ),
    st.sampled_from([1, 7, 2**64, 3**45]),
)
def test_every_threshold_of_any_column(columns, blow_up):
    height = max(map(len, columns))
    total = math.lcm(*map(sum, columns)) * blow_up
    columns = [
        [entry * total // sum(column) for entry in column] + [0] * (height - len(column))
        for column in columns
    ]
    check_every_threshold([list(row) for row in zip(*columns, strict=True)], total)


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_ties_are_decided_by_further_words(depth):
    """1/3 is 0.5555... in hexadecimal: a U that starts with as many 5s is not decided by them."""
    third = (WORD - 1) // 3
    sampler = Sampler([[1], [2]], 3)
    for last, output in ((third - 1, 0), (third + 1, 1), (0, 0), (WORD - 1, 1)):
        words = [third] * depth + [last]
        assert draw_one(sampler, 0, words) == (output, depth + 1)
    # The tie is over only when it is decided: all words but the last are needed.
    with pytest.raises(AssertionError, match="more words"):
        draw_one(sampler, 0, [third] * depth)


def test_an_exact_threshold_belongs_to_the_next_output():
    assert draw_one(Sampler([[1], [1]], 2), 0, [WORD // 2]) == (1, 1)
    assert draw_one(Sampler([[1], [1]], 2), 0, [WORD // 2 - 1]) == (0, 1)
    # 2^-128 is the smallest step of two words: only 0, 0 is below it.
    tiny = Sampler([[1], [WORD**2 - 1]], WORD**2)
    assert draw_one(tiny, 0, [0, 0]) == (0, 2)
    assert draw_one(tiny, 0, [0, 1]) == (1, 2)
    assert draw_one(tiny, 0, [1]) == (1, 1)


@SETTINGS
@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=1, max_size=3
    ),
    st.sampled_from([1, 7, 2**64, 3**45]),
)
def test_the_law_read_off_the_thresholds_is_the_one_given(columns, blow_up):
    total = math.lcm(*map(sum, columns)) * blow_up
    columns = [[entry * total // sum(column) for entry in column] for column in columns]
    weights = Sampler([list(row) for row in zip(*columns, strict=True)], total).weights
    assert columns_of(weights) == [[entry << 64 for entry in column] for column in columns]


def test_ties_in_a_batch_read_words_after_the_batch_and_leave_others_alone():
    third = (WORD - 1) // 3
    sampler = Sampler([[1, 2], [2, 1]], 3)
    tape = Tape([0, third, WORD - 1, 2 * third, 0, WORD - 1, 0])
    found = sampler._draw(np.array([0, 0, 1, 1, 1]), tape(5), tape)
    # 2/3 = 0.AAAA...: the tie of the second column resolves upwards or downwards by its own word.
    assert found.tolist() == [0, 1, 1, 0, 0]
    assert tape.used == 7


@pytest.mark.parametrize("column", [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
def test_deterministic_columns(column):
    mechanism = Sampler([[entry] for entry in column], 1)
    for source in (None, np.random.default_rng(0)):
        assert set(mechanism.draw([0] * 1000, source).tolist()) == {column.index(1)}


def test_one_output():
    assert Mechanism([[1, 1]], Privacy(alpha=1)).release([0, 1, 1]).tolist() == [0, 0, 0]


def test_zero_probabilities_are_never_drawn():
    mechanism = Sampler([[0, 1], [1, 0], [0, 1], [1, 0], [0, 0]], 2)
    found = mechanism.draw(np.tile([0, 1], 20_000), np.random.default_rng(1)).reshape(-1, 2)
    assert set(found[:, 0].tolist()) == {1, 3}
    assert set(found[:, 1].tolist()) == {0, 2}


@pytest.mark.parametrize("inputs", [257, 5000])
def test_many_inputs(inputs):
    """The guide table shrinks as inputs grow; the answers must not change."""
    weights = [[1 + (i + j) % 3 for j in range(inputs)] for i in range(3)]
    sampler = Sampler(weights, 6)
    counts = np.arange(inputs)
    words = np.random.default_rng(2).integers(0, WORD, size=inputs, dtype=np.uint64)
    found = sampler._draw(counts, words, Tape([]))
    for j in range(inputs):
        assert found[j] == definition([row[j] for row in weights], 6, [int(words[j])])


DRAWS = 200_000


def p_value(outputs, probabilities):
    return goodness(np.bincount(outputs, minlength=len(probabilities)), probabilities)


@pytest.mark.parametrize("column", [0, 3, 6])
@pytest.mark.parametrize(
    "mechanism",
    [named.geometric(6, alpha="9/10"), named.explicit_fair(6, alpha=Fraction(1, 3))],
    ids=["GM", "EM"],
)
def test_goodness_of_fit(mechanism, column):
    right = [row[column] for row in mechanism.table]
    outputs = mechanism.release(np.full(DRAWS, column), np.random.default_rng(20_240_601 + column))
    assert p_value(outputs, right) > FALSE_ALARM
    # The same test must be able to fail: one percent of probability moved between two outputs.
    wrong = list(right)
    wrong[column] += Fraction(1, 100)
    wrong[2] -= Fraction(1, 100)
    assert min(wrong) > 0
    assert p_value(outputs, wrong) < FALSE_ALARM


def test_goodness_of_fit_rejects_a_neighbouring_input():
    mechanism = named.geometric(6, alpha="9/10")
    outputs = mechanism.release(np.full(DRAWS, 2), np.random.default_rng(7))
    assert p_value(outputs, [row[2] for row in mechanism.table]) > FALSE_ALARM
    assert p_value(outputs, [row[3] for row in mechanism.table]) < FALSE_ALARM


def test_goodness_of_fit_of_the_secure_source():
    # Not seeded, by nature: this one alarms falsely once in a million runs.
    mechanism = named.geometric(3, alpha="1/2")
    assert (
        p_value(mechanism.release(np.full(20_000, 1)), [row[1] for row in mechanism.table])
        > FALSE_ALARM
    )


def test_reproducible_by_seed():
    mechanism = named.geometric(50, alpha="99/100")
    counts = np.arange(51).repeat(20)
    first, again, other = (
        mechanism.release(counts, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    # Changes here break experiments that people can repeat today.
    digest = hashlib.sha256(first.astype("<i8").tobytes()).hexdigest()
    assert digest == DIGEST
    assert mechanism.release(counts).tolist() != mechanism.release(counts).tolist()


DIGEST = "064b433df5413e858099af2d4df2a2b662e07c68e33584114bd5d51e26aac9b1"


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000, 1 << 20])
def test_chunks_do_not_matter(monkeypatch, chunk):
    mechanism = named.geometric(20, alpha="9/10")
    counts = np.tile(np.arange(21), 30)
    whole = mechanism.release(counts, np.random.default_rng(9))
    monkeypatch.setattr(sampling, "_CHUNK", chunk)
    assert mechanism.release(counts, np.random.default_rng(9)).tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("counts", "shape"),
    [
        (1, ()),
        (np.int8(1), ()),
        (np.array(1), ()),
        ([], (0,)),
        (np.empty((0, 3), dtype=int), (0, 3)),
        ([0, 1, 2], (3,)),
        ((0, 1), (2,)),
        (range(3), (3,)),
        ([[0, 1], [2, 0]], (2, 2)),
        (np.zeros((2, 0, 3)), (2, 0, 3)),
        (np.arange(6).reshape(2, 3).T % 3, (3, 2)),
        (np.array([1.0, 2.0, -0.0]), (3,)),
        (np.array([True, False]), (2,)),
        (np.array([2], dtype=np.uint64), (1,)),
        (np.array([1, Fraction(2), 2.0], dtype=object), (3,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)], ids=["secure", "seeded"])
def test_shapes(counts, shape, rng):
    found = named.geometric(2, alpha="1/2").release(counts, rng)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int64
    assert found.shape == shape
    assert np.all((found >= 0) & (found <= 2))


def test_each_count_gets_its_own_draw_in_place():
    """A deterministic table shows which input went where."""
    swap = Sampler([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 1)
    counts = np.arange(12).reshape(3, 4).T % 3
    assert swap.draw(counts).tolist() == ((counts + 2) % 3).tolist()


def test_series():
    pandas = pytest.importorskip("pandas")
    mechanism = named.geometric(2, alpha="1/2")
    assert mechanism.release(pandas.Series([0, 1, 2])).shape == (3,)
    assert mechanism.release(pandas.Series([0, 2], dtype="Int64")).shape == (2,)
    with pytest.raises(InvalidCount) as caught:
        mechanism.release(pandas.Series([0, None, 9], dtype="Int64"))
    assert caught.value.index == 1


class Liar(int):
    """An integer that no conversion accepts."""

    def __int__(self):
        raise ValueError("no")


BAD = [
    ([0, -1, -2], 1),
    ([2, 3, -1], 1),
    ([0, 1, 2, 2.5, 9], 3),
    ([0.0, math.nan, 5.0], 1),
    ([0.0, 1.0, math.inf], 2),
    ([-math.inf], 0),
    ([1e300, 0], 0),
    (["1"], 0),
    (np.array(["0", "1"], dtype=object), 0),
    (np.array([0, "1"], dtype=object), 1),
    ([b"1"], 0),
    ([0, None, "x"], 1),
    ([0, 2**70], 1),
    ([0, -(2**70)], 1),
    ([0, 2**63], 1),
    (np.array([1, 2**64 - 1], dtype=np.uint64), 1),
    (np.array([0, 300], dtype=np.uint16), 1),
    (np.array([0, -128], dtype=np.int8), 1),
    (np.array([0, 1, [2]], dtype=object), 2),
    (np.array([0, {}], dtype=object), 1),
    (np.array([0, 1.5, 1], dtype=object), 1),
    (np.array([Fraction(1), Fraction(1, 2)], dtype=object), 1),
    (np.array([0, Liar(1)], dtype=object), 1),
    ([0, 1j], 1),
    ([0, 1 + 0j], 1),
    (np.array([1 + 0j, 0]), 0),
    (np.array([1, 2], dtype="m8[s]"), 0),
    (np.array(["2020-01-01"], dtype="M8[D]"), 0),
    ([[0, 1, 2], [2, 5, -1]], (1, 1)),
    (np.array([[0, 7], [8, 0]]).T, (0, 1)),
    (3, ()),
    (-0.5, ()),
    ("2", ()),
    (None, ()),
]


@pytest.mark.parametrize(("counts", "index"), BAD, ids=lambda value: f"{value!r:.40}")
def test_wrong_counts_are_named_and_cost_nothing(counts, index, monkeypatch):
    mechanism = named.geometric(2, alpha="1/2")
    monkeypatch.setattr(
        "mechdesign.base.numbers.os.urandom",
        lambda size: pytest.fail("randomness was drawn"),
    )
    rng = np.random.default_rng(11)
    rng.integers(0, 2, dtype=np.uint32)  # a half-used word is part of the state, too
    before = rng.bit_generator.state
    for source in (rng, None):
        with pytest.raises(
            InvalidCount, match="not an integer between 0 and 2; nothing was released"
        ) as caught:
            mechanism.release(counts, source)
        assert caught.value.index == index
        assert caught.value.largest == 2
        assert isinstance(caught.value, ValueError)
    assert rng.bit_generator.state == before


def test_a_true_is_one():
    assert checked_counts([True, False], 1).tolist() == [1, 0]
    assert checked_counts([False], 0).tolist() == [0]
    with pytest.raises(InvalidCount) as caught:
        checked_counts([False, True], 0)
    assert caught.value.index == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16])
def test_narrow_types_and_many_inputs(dtype):
    # 5000 does not fit into a byte: the comparison with it must not wrap around.
    assert checked_counts(np.array([0, 100], dtype=dtype), 5000).tolist() == [0, 100]


def test_a_string_among_integers_is_named():
    with pytest.raises(InvalidCount) as caught:
        checked_counts([0, 1, "a"], 3)
    assert caught.value.index == 2


def test_an_enormous_count_is_named():
    with pytest.raises(InvalidCount) as caught:
        checked_counts([0, 10**5000], 3)
    assert caught.value.index == 1


@pytest.mark.parametrize("dtype", [int, float, object, np.uint8])
def test_masked_counts_are_missing(dtype):
    """What lies under the mask is not the count; without one, a masked array is like any other."""
    with pytest.raises(InvalidCount) as caught:
        checked_counts(np.ma.array([0, 1, 2], mask=[False, True, False], dtype=dtype), 3)
    assert caught.value.index == 1
    assert checked_counts(np.ma.array([0, 1, 2], dtype=dtype), 3).tolist() == [0, 1, 2]
    assert checked_counts(np.ma.array([[0, 1], [2, 3]], mask=False, dtype=dtype), 3).tolist() == [
        [0, 1],
        [2, 3],
    ]


@pytest.mark.parametrize("dtype", [int, float, object])
def test_a_fill_value_is_not_a_count(dtype):
    with pytest.raises(InvalidCount) as caught:
        checked_counts(np.ma.array([0, 2], mask=[False, True], fill_value=1, dtype=dtype), 3)
    assert caught.value.index == 1


def test_an_enormous_fraction_is_named():
    with pytest.raises(InvalidCount) as caught:
        checked_counts([0, Fraction(10**5000, 3)], 3)
    assert caught.value.index == 1


def test_short_floats_do_not_round_the_largest_count():
    mechanism = Mechanism.from_weights([[1] * 5000] * 2, 2, Privacy(alpha=1))
    with pytest.raises(InvalidCount):
        mechanism.release(np.array([5000], dtype=np.float16))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, ">i4"])
@pytest.mark.parametrize(
    "counts", [0, 7, 8, [], [7], [8], [[7]], [0, 7], [0, 8, 9], [[1, 2], [3, 100]], [[0], [7]]]
)
def test_integers_are_checked_as_objects_are(dtype, counts):
    """Objects are looked at one by one, in Python."""
    values = np.array(counts, dtype=dtype)
    for signed in (values, -values.astype(np.int64)):
        outcomes = []
        for array in (signed, signed.astype(object)):
            try:
                found = checked_counts(array, 7)
                outcomes.append((found.dtype, found.shape, found.tolist()))
            except InvalidCount as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_checked_counts_are_a_copy():
    counts = np.array([1, 2])
    checked_counts(counts, 2)[0] = 0
    assert counts.tolist() == [1, 2]
