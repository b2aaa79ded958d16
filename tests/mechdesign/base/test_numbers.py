"""Exact numbers: what is let in, and what is refused."""

import math
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import settings

from mechdesign import InexactNumber, InvalidPrior
from mechdesign.base.numbers import exact, exact_sum, ordered, whole

SETTINGS = settings(derandomize=True, deadline=None, max_examples=100)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, Fraction(3)),
        (Fraction(-2, 6), Fraction(-1, 3)),
        ("9/10", Fraction(9, 10)),
        ("0.9", Fraction(9, 10)),
        ("-1e-3", Fraction(-1, 1000)),
        (" 1/2 ", Fraction(1, 2)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1e-30"), Fraction(1, 10**30)),
        (np.int8(-7), Fraction(-7)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
        (10**5000, Fraction(10**5000)),
    ],
    ids=lambda value: f"{value!r:.20}" if not isinstance(value, int | Fraction) else "",
)
def test_exact_accepts(value, expected):
    result = exact(value)
    assert type(result) is Fraction
    assert result == expected
    # A numpy integer left inside a Fraction would overflow later.
    assert type(result.numerator) is int
    assert type(result.denominator) is int


@pytest.mark.parametrize(
    "value",
    [
        0.9,
        1.0,
        0.0,
        float("inf"),
        float("nan"),
        np.float64(0.5),
        np.float32(0.5),
        np.float16(1),
        True,
        False,
        np.True_,
        None,
        1j,
        [1],
        b"1",
    ],
    ids=repr,
)
def test_exact_refuses_what_is_not_exact(value):
    with pytest.raises(InexactNumber, match="alpha must be exact") as caught:
        exact(value, "alpha")
    assert caught.value.name == "alpha"
    assert caught.value.value is value
    assert isinstance(caught.value, TypeError)


def test_refusal_suggests_the_number_that_was_meant():
    with pytest.raises(InexactNumber, match=r"Fraction\(9, 10\) or '0\.9'"):
        exact(0.9)


def test_refusal_suggests_something_acceptable_for_numpy_floats():
    with pytest.raises(InexactNumber) as caught:
        exact(np.float64(0.9))
    suggestion = str(caught.value).rsplit("or ", 1)[1].strip("'")
    assert exact(suggestion) == Fraction(9, 10)


@pytest.mark.parametrize(
    "value", ["inf", "-inf", "nan", "1/0", "", "nine tenths", "1/2/3", "1//2", "1 2", "0,9"]
)
def test_exact_refuses_strings_that_are_not_finite_numbers(value):
    with pytest.raises(ValueError, match="must be a finite rational number"):
        exact(value)


@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN", "sNaN"])
def test_exact_refuses_decimals_that_are_not_finite(value):
    with pytest.raises(ValueError, match="must be a finite rational number"):
        exact(Decimal(value))


@pytest.mark.parametrize(
    "value",
    [
        "1e1000000000",
        "1e-1000000000",
        "-1E+999999999999999999999",
        "0." + "0" * 10 + "1e-100000",
        Decimal("1e1000000"),
        Decimal("1e-1000000"),
    ],
    ids=lambda value: str(value)[:16],
)
def test_numbers_longer_than_any_memory_are_refused_at_once(value):
    """A dozen characters must not stand for gigabytes: the exponent is looked at before anything is
    computed.
    """
    with pytest.raises(ValueError, match="must be a finite rational number"):
        exact(value)


def test_exponents_that_are_merely_large_are_exact():
    assert exact("1e1000") == 10**1000
    assert exact("-1e-1000") == Fraction(-1, 10**1000)
    assert exact(Decimal("25e-3")) == Fraction(1, 40)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_become_integers_of_python(value):
    assert whole(value, "k", 1, 3) == 3
    assert type(whole(value, "k")) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float64(3), "3", None, [3], -1, 4])
def test_what_is_not_a_whole_number_in_range_is_refused(value):
    with pytest.raises(ValueError, match=r"^k must be a number of items, 0 to 3, got "):
        whole(value, "k", 0, 3, what="a number of items")


def test_the_message_about_a_whole_number_is_short_safe_and_of_the_type_wanted():
    with pytest.raises(InvalidPrior) as caught:
        whole("\x1b[2J" + "x" * 1000, "k", 1, 1 << 32, error=InvalidPrior)
    assert str(caught.value).startswith("k must be an integer, 1 to 2^32, got '\\x1b[2Jxxx")
    assert len(str(caught.value)) < 120
    with pytest.raises(ValueError, match="k must be an integer, at least 1, got 0"):
        whole(0, "k", 1)


@pytest.mark.parametrize("kind", ["i1", "u1", "<i4", ">i4", "u4", "i8", "u8"])
def test_sums_of_integers_are_exact(kind):
    limits = np.iinfo(kind)
    for values in (
        np.array([], dtype=kind),
        np.array([limits.min, limits.max, limits.max, 1], dtype=kind),
        np.full((5, 7), limits.min, dtype=kind),
        np.full((5, 7), limits.max, dtype=kind)[::2, 1:],
        np.array([-3, 5], dtype="i8").astype(kind),
    ):
        found = exact_sum(values)
        assert type(found) is int
        assert found == sum(map(int, values.ravel()))


def test_numbers_are_read_in_the_same_way_in_any_context_of_decimals():
    with localcontext(prec=2) as context:
        context.traps[InvalidOperation] = False
        for text in ("1e99999999999999999999", "1e99999999"):
            with pytest.raises(ValueError, match="finite rational"):
                exact(text)
        assert exact(Decimal("0.123456")) == Fraction(123456, 10**6)
        assert exact("1.25e3") == 1250


def test_an_order_does_not_depend_on_rounding():
    exactly = {"d": 0.3, "b": 0.1 + 0.2, "c": 0.3 * (1 + 1e-13), "a": 0.3 * (1 + 1e-6), "e": 0.0}
    exactly |= {"far": math.inf, "away": math.inf}
    for names in permutations(exactly):
        assert ordered(names, exactly.__getitem__, str) == [*"ebcda", "away", "far"]
        first, second = (name for name in names if name in ("away", "far"))
        assert ordered(names, exactly.__getitem__)[-2:] == [first, second]
    # A second number counts where the first ones are equal, and is compared in the same way
    sizes = {"a": 3, "b": 2, "c": 2}
    tied = {"a": 1.0, "b": 1.0 + 1e-15, "c": 1.0 - 1e-15}
    assert ordered("abc", tied.__getitem__, sizes.__getitem__, str) == ["b", "c", "a"]
    assert ordered("cab", tied.__getitem__, sizes.__getitem__) == ["c", "b", "a"]
    assert ordered([], len, str) == []
    assert ordered([10**400 + 1, 10**400, 3], int) == [3, 10**400, 10**400 + 1]


def test_numbers_that_differ_are_ordered_as_ever():
    values = np.random.default_rng(5).random(300).tolist()
    assert ordered(values, float) == sorted(values)
    assert ordered(values, lambda x: -x, str) == sorted(values, reverse=True)
