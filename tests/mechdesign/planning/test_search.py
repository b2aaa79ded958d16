"""The search for the least epsilon and the least number of users."""

import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.planning.trust import USERS, Scale, epsilons, least


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(0, 1e9) | st.sampled_from([math.inf, 0.0, 1.0]), min_size=1, max_size=60),
    st.floats(1e-9, 1e9),
    st.floats(0.1, 100),
)
def test_a_search_finds_what_trying_all_finds(errors, target, start):
    errors = sorted(errors, reverse=True)
    scale = Scale(lambda rank: rank + 1, lambda x: math.floor(x) - 1, len(errors) - 1, start, 0.5)
    expected = next((rank + 1 for rank, error in enumerate(errors) if error <= target), None)
    assert least(lambda n: errors[n - 1], target, scale) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.floats(0.1, 10))
def test_where_errors_rise_too_what_is_found_reaches_the_target_and_its_neighbour_does_not(
    errors, target
):
    scale = Scale(lambda rank: rank + 1, lambda x: math.floor(x) - 1, len(errors) - 1, 7.0, 0.5)
    found = least(lambda n: errors[n - 1], target, scale)
    if found is None:
        assert errors[-1] > target
    else:
        assert errors[found - 1] <= target
        assert found == 1 or errors[found - 2] > target


def test_a_power_law_takes_few_steps():
    tried = []

    def error(n):
        tried.append(n)
        return 7 / math.sqrt(n)

    assert least(error, 0.01, USERS) == 490_000
    assert len(tried) <= 6


def test_epsilons_have_four_digits_in_order():
    scale = epsilons(Fraction(16))
    values = [scale.value(rank) for rank in range(0, scale.last + 1, 7)]
    assert values == sorted(set(values))
    assert (scale.value(0), scale.value(9000), scale.value(scale.last)) == (
        Fraction(1, 1000),
        Fraction(1, 100),
        16,
    )
    assert all(float(f"{float(value):.3e}") == float(value) for value in values)
    for rank in range(0, scale.last + 1, 97):
        assert abs(scale.rank(float(scale.value(rank))) - rank) <= 1
    assert epsilons(Fraction(1, 3)).value(epsilons(Fraction(1, 3)).last) == Fraction(3333, 10_000)
    assert epsilons(Fraction(1, 2000)).last == -1
