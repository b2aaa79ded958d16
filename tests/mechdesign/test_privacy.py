"""The budget: which alpha and neighbours are accepted, and that no rounding favours the leak."""

import copy
import math
import pickle
import subprocess
import sys
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InexactNumber, Mechanism, Metric, Privacy, design, named
from tests.mechdesign.relations import RELATIONS, distance, line

SETTINGS = settings(derandomize=True, deadline=None, max_examples=80)
TINY = Fraction(1, 10**400)


@contextmanager
def precision(bits):
    before, flint.ctx.prec = flint.ctx.prec, bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def ball(value):
    """A ball that certainly contains an exact fraction."""
    value = Fraction(value)
    return flint.arb(flint.fmpz(int(value.numerator))) / flint.arb(
        flint.fmpz(int(value.denominator))
    )


def certainly_at_least_exp(alpha, epsilon):
    """alpha >= exp(-epsilon), proved in ball arithmetic (a comparison of balls is true only when it
    is certain).
    """
    alpha, epsilon = Fraction(alpha), Fraction(epsilon)
    # 1 - alpha may be as small as the smaller of the two denominators allows.
    with precision(
        4 * 1100 + 2 * (alpha.denominator.bit_length() + epsilon.denominator.bit_length())
    ):
        return bool(ball(alpha) >= (-ball(epsilon)).exp())


def test_the_independent_bound_can_say_no():
    # Exp(-1) = 0.36787944117144...
    assert not certainly_at_least_exp(Fraction(36787944117, 10**11), 1)
    assert certainly_at_least_exp(Fraction(36787944118, 10**11), 1)


@pytest.mark.parametrize("alpha", ["9/10", "0.9", Fraction(9, 10), Decimal("0.9")], ids=repr)
def test_alpha_however_written(alpha):
    assert Privacy(alpha=alpha) == Privacy(alpha=Fraction(9, 10))
    assert Privacy(alpha=alpha).alpha == Fraction(9, 10)
    assert hash(Privacy(alpha=alpha)) == hash(Privacy(alpha="18/20"))


@pytest.mark.parametrize(
    "alpha", [0, -1, "-1/2", 2, "1.0000000001", 1 + TINY, -TINY], ids=lambda a: str(a)[:12]
)
def test_alpha_out_of_range(alpha):
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\]"):
        Privacy(alpha=alpha)


def test_alpha_beyond_floats_out_of_range():
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\]"):
        Privacy(alpha=10**400)


@pytest.mark.parametrize("alpha", [0.9, 1.0, np.float64(0.5), True, None], ids=repr)
def test_floats_are_refused(alpha):
    with pytest.raises(InexactNumber):
        Privacy(alpha=alpha)


def test_alpha_at_its_ends():
    assert Privacy(alpha=1).epsilon == 0.0
    assert Privacy(alpha=TINY).alpha == TINY
    assert Privacy(alpha=TINY).epsilon == pytest.approx(400 * math.log(10), rel=1e-15)
    assert Privacy(alpha=1 - TINY).epsilon > 0


def test_a_long_alpha_is_printed_briefly():
    """To twelve digits, marked as rounded; a short one is printed exactly."""
    assert repr(Privacy(alpha="9/10")) == "Privacy(alpha=9/10, neighbours='adjacent')"
    assert "alpha=~1.00000000000E-400," in repr(Privacy(alpha=TINY))
    assert "alpha=~1.00000000000E-5000," in repr(Privacy(alpha=Fraction(1, 10**5000)))
    assert "alpha=~0.333333333333," in repr(Privacy(alpha=Fraction(10**30, 3 * 10**30 + 1)))


def test_value_object():
    privacy = Privacy(alpha="9/10", neighbours=[(2, 1), (0, 1)])
    with pytest.raises(AttributeError):
        privacy.alpha = Fraction(1, 2)  # type: ignore[misc]  # read-only
    for other in (copy.copy(privacy), copy.deepcopy(privacy), pickle.loads(pickle.dumps(privacy))):
        assert other == privacy
        assert hash(other) == hash(privacy)
    assert privacy != Privacy(alpha="9/10")
    assert privacy != Privacy(alpha="8/10", neighbours=[(0, 1), (1, 2)])
    assert Privacy(alpha="9/10", neighbours=[(1, 0), (1, 2), (2, 1)]) == privacy


EPSILONS = [
    5e-324,
    1e-300,
    1e-12,
    2.0**-24,
    0.1,
    np.float64(0.1),
    1,
    1.0,
    np.int64(2),
    Decimal(2).ln(),
    math.log(2),
    10,
    700,
    1023.9999999,
    1024,
    "0.1",
    "1e-30",
    "7/3",
    Fraction(10**50 + 1, 10**50),
    Fraction(1, 3**500),
    Decimal("1e-400"),
]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=lambda e: repr(e)[:30])
def test_from_epsilon_is_rigorous_and_close(epsilon):
    check_from_epsilon(epsilon)


def check_from_epsilon(epsilon):
    exact = Fraction(epsilon)
    alpha = Privacy.from_epsilon(epsilon).alpha
    assert 0 < alpha <= 1
    if exact == 0:
        assert alpha == 1
        return
    assert certainly_at_least_exp(alpha, exact), (
        "alpha = exp(-epsilon) was rounded towards the leak"
    )
    # And no more than 2^-24 of epsilon is given away.
    with precision(
        4 * 1100 + 2 * (alpha.denominator.bit_length() + exact.denominator.bit_length())
    ):
        assert bool(ball(alpha) <= (-ball(exact * (1 - Fraction(1, 2**24)))).exp())


@SETTINGS
@given(st.floats(min_value=0, max_value=1024, allow_nan=False))
def test_from_epsilon_of_any_float(epsilon):
    check_from_epsilon(epsilon)


@SETTINGS
@given(st.fractions(min_value=0, max_value=1024, max_denominator=10**40))
def test_from_epsilon_of_any_fraction(epsilon):
    check_from_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [1024.5, 1e6, "1e6", 1e308, 10**400], ids=lambda e: str(e)[:10])
def test_a_huge_epsilon_is_treated_as_1024(epsilon):
    assert Privacy.from_epsilon(epsilon) == Privacy.from_epsilon(1024)
    assert certainly_at_least_exp(Privacy.from_epsilon(epsilon).alpha, 1024)


@pytest.mark.parametrize("epsilon", [0, 0.0, -0.0, "0", Fraction(0)], ids=repr)
def test_zero_epsilon(epsilon):
    assert Privacy.from_epsilon(epsilon).alpha == 1


def test_from_epsilon_takes_the_smallest_denominator():
    alpha = Privacy.from_epsilon(1.0).alpha
    low, high = math.exp(-1.0), math.exp(-1.0 * (1 - 2.0**-24))
    for denominator in range(1, alpha.denominator):
        # The margin is far above float error here: neighbours at these denominators are 1e-8 apart.
        assert not low + 1e-14 < math.ceil(low * denominator) / denominator < high - 1e-14


@pytest.mark.parametrize("epsilon", [Fraction(1, (1 << 4096) + 1), f"1/0x1{'0' * 100_000}"])
def test_an_epsilon_that_would_take_forever(epsilon):
    check_from_epsilon(Fraction(1, 1 << 4096))
    with pytest.raises(ValueError, match="at least 2\\^-4096"):
        Privacy.from_epsilon(epsilon)


@pytest.mark.parametrize(
    "epsilon",
    [-1, -5e-324, -1e-300, "-0.1", Fraction(-1, 10**100), Decimal("-1")],
    ids=lambda e: repr(e)[:20],
)
def test_negative_epsilon(epsilon):
    with pytest.raises(ValueError, match="must not be negative"):
        Privacy.from_epsilon(epsilon)


def test_negative_epsilon_beyond_floats():
    with pytest.raises(ValueError, match="must not be negative"):
        Privacy.from_epsilon(-(10**400))


@pytest.mark.parametrize(
    "epsilon",
    [
        math.inf,
        -math.inf,
        math.nan,
        np.float64("nan"),
        "inf",
        "nan",
        Decimal("NaN"),
        Decimal("-Infinity"),
        "one",
    ],
    ids=repr,
)
def test_epsilon_that_is_not_a_number(epsilon):
    with pytest.raises(ValueError, match="finite"):
        Privacy.from_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [True, None, [1.0], 1j], ids=repr)
def test_epsilon_of_the_wrong_type(epsilon):
    with pytest.raises(InexactNumber):
        Privacy.from_epsilon(epsilon)


def check_epsilon(alpha):
    epsilon = Privacy(alpha=alpha).epsilon
    assert isinstance(epsilon, float)
    assert epsilon > 0
    # exp(-epsilon) <= alpha: what is reported is at least what may be lost ...
    assert certainly_at_least_exp(alpha, Fraction(epsilon)), "epsilon understates the loss"
    # ... and not by more than two units in the last place.
    below = math.nextafter(math.nextafter(epsilon, 0), 0)
    assert not certainly_at_least_exp(alpha, Fraction(below)) or below == 0


@pytest.mark.parametrize(
    "alpha",
    [
        TINY,
        1 - TINY,
        Fraction(1, 2),
        Fraction(9, 10),
        Fraction(99, 100),
        1 - Fraction(1, 10**30),
        1 - Fraction(1, 2**1074),
        Fraction(2**70 - 1, 2**70),
        Fraction(1, 3**2000),
    ],
    ids=lambda a: f"{float(a):.3g}",
)
def test_epsilon_never_understates(alpha):
    check_epsilon(alpha)


@SETTINGS
@given(
    st.fractions(min_value=Fraction(1, 10**30), max_value=1, max_denominator=10**60).filter(
        lambda a: 0 < a < 1
    )
)
def test_epsilon_never_understates_for_any_alpha(alpha):
    check_epsilon(alpha)


@SETTINGS
@given(st.floats(min_value=1e-300, max_value=1024))
def test_epsilon_there_and_back(epsilon):
    """The epsilon of the alpha chosen for an epsilon is not above it, but for the last place."""
    back = Privacy.from_epsilon(epsilon).epsilon
    assert (
        epsilon * (1 - 2.0**-23)
        <= back
        <= math.nextafter(math.nextafter(epsilon, math.inf), math.inf)
    )


def brute_pairs(neighbours, inputs):
    every = [(j, k) for j in range(inputs) for k in range(j + 1, inputs)]
    if isinstance(neighbours, list):
        listed = {frozenset(edge) for edge in neighbours}
        return {(j, k) for j, k in every if frozenset((j, k)) in listed}
    reach = {"adjacent": 1, "all": inputs}.get(neighbours, neighbours)
    return {(j, k) for j, k in every if k - j <= reach}


@pytest.mark.parametrize("inputs", [1, 2, 5])
@pytest.mark.parametrize(
    "neighbours",
    [
        "adjacent",
        "all",
        1,
        2,
        3,
        4,
        5,
        100,
        np.int32(2),
        [(0, 1)],
        [(1, 0), (0, 1)],
        [(4, 0), (2, 1), (0, 2)],
    ],
    ids=repr,
)
def test_pairs(neighbours, inputs):
    privacy = Privacy(alpha="1/2", neighbours=neighbours)
    if isinstance(neighbours, list) and max(map(max, neighbours)) >= inputs:
        with pytest.raises(ValueError, match=f"the inputs are 0 .. {inputs - 1}"):
            privacy.pairs(inputs)
        return
    pairs = privacy.pairs(inputs)
    assert pairs.dtype == np.int64
    assert pairs.shape == (len(pairs), 2)
    listed = [tuple(pair) for pair in pairs.tolist()]
    assert len(set(listed)) == len(listed)
    assert set(listed) == brute_pairs(neighbours, inputs)


def test_distance_one_is_adjacent():
    assert Privacy(alpha="1/2", neighbours=1) == Privacy(alpha="1/2", neighbours="adjacent")


@pytest.mark.parametrize(
    "neighbours",
    [
        0,
        -1,
        True,
        False,
        "foo",
        "",
        [(1, 1)],
        [(-1, 2)],
        [(0.5, 1)],
        [(0, 1.0)],
        [],
        [(0, True)],
        [(0, 1), (2, 2)],
        [("0", "1")],
        [(0, 1, 2)],
        [(0,)],
    ],
    ids=repr,
)
def test_bad_neighbours(neighbours):
    with pytest.raises(ValueError, match=r"neighbour|unpack"):
        Privacy(alpha="1/2", neighbours=neighbours)


@pytest.mark.parametrize("neighbours", [1.5, None, np.float64(1.0), [1, 2]], ids=repr)
def test_neighbours_of_the_wrong_type(neighbours):
    with pytest.raises((TypeError, ValueError)):
        Privacy(alpha="1/2", neighbours=neighbours)


@pytest.mark.parametrize("edges", [[(0, 3)], [(3, 0)], [(0, 1), (2, 10**30)]], ids=repr)
def test_edges_beyond_the_table(edges):
    with pytest.raises(ValueError, match=r"the inputs are 0 \.\. 2"):
        Mechanism([["1/2"] * 3, ["1/2"] * 3], Privacy(alpha="1/2", neighbours=edges))
    assert (
        Mechanism([["1/2"] * 3, ["1/2"] * 3], Privacy(alpha="1/2", neighbours=[(0, 2)])).inputs == 3
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", [1, 3, 6, 28])
def test_the_callers_decimal_context_changes_nothing(precision):
    program = f"""
import decimal
decimal.getcontext().prec = {precision}
from mechdesign import Privacy
print(Privacy.from_epsilon(1.0).alpha, Privacy(alpha="1/2").epsilon.hex())
"""
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == [
        str(Privacy.from_epsilon(1.0).alpha),
        Privacy(alpha="1/2").epsilon.hex(),
    ]


def test_a_metric_is_a_table():
    metric = Metric(np.array([[0, 3], [3, 0]]))
    assert metric.distances == ((0, 3), (3, 0))
    assert metric == Metric([[0, 3], [3, 0]])
    assert hash(metric) == hash(Metric(((0, 3), (3, 0))))
    assert pickle.loads(pickle.dumps(Privacy(alpha="1/2", neighbours=metric))) == Privacy(
        alpha="1/2", neighbours=metric
    )
    assert repr(metric) == "Metric(distances=((0, 3), (3, 0)))"
    privacy = Privacy(alpha="1/2", neighbours=metric)
    assert privacy.neighbours is metric
    assert privacy.pairs(2).tolist() == [[0, 1]]
    assert privacy.distances(2).tolist() == [3]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n", [1, 4])
def test_pairs_and_their_distances(relation, n):
    neighbours = RELATIONS[relation](n)
    privacy = Privacy(alpha="1/2", neighbours=neighbours)
    found = {
        tuple(pair): d
        for pair, d in zip(
            privacy.pairs(n + 1).tolist(), privacy.distances(n + 1).tolist(), strict=True
        )
    }
    every = [(j, k) for j in range(n + 1) for k in range(j + 1, n + 1)]
    assert found == {
        (j, k): distance(neighbours, j, k)
        for j, k in every
        if distance(neighbours, j, k) is not None
    }


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([], "without neighbours"),
        ([[0]], "without neighbours"),
        ([[0, None], [None, 0]], "without neighbours"),
        ([[0, 1]], "square"),
        ([[0, 1], [1]], "square"),
        ([[0, 1, 1], [1, 0, 1]], "square"),
        ([[0, 1], [2, 0]], "symmetric"),
        ([[0, 1], [None, 0]], "symmetric"),
        ([[1, 1], [1, 0]], "inputs 0 and 0"),
        ([[0, 1], [1, None]], "inputs 1 and 1"),
        ([[0, 0], [0, 0]], "inputs 0 and 1"),
        ([[0, -1], [-1, 0]], "0 .. 1024"),
        ([[0, 1025], [1025, 0]], "0 .. 1024"),
        ([[0, 10**400], [10**400, 0]], "0 .. 1024"),
    ],
    ids=str,
)
def test_tables_that_are_no_metric(table, reason):
    with pytest.raises(ValueError, match=reason):
        Metric(table)


@pytest.mark.parametrize(
    "wrong", [1.0, 0.5, math.inf, math.nan, True, "1", Fraction(1, 2), np.float64(1), [1]], ids=repr
)
def test_distances_are_integers(wrong):
    with pytest.raises(TypeError, match="distance"):
        Metric([[0, wrong], [wrong, 0]])


@pytest.mark.parametrize("wrong", [3, None, [0, 1]], ids=repr)
def test_what_is_no_table(wrong):
    with pytest.raises(TypeError):
        Metric(wrong)


@pytest.mark.parametrize(
    "wrong", [0, -3, True, 2.0, -(10**5000)], ids=["0", "-3", "True", "2.0", "huge"]
)
def test_wrong_precisions(wrong):
    with pytest.raises((ValueError, TypeError)):
        Privacy(alpha="1/2", neighbours=wrong)


def test_a_metric_over_another_number_of_inputs():
    for n in (1, 3):
        with pytest.raises(ValueError, match="between 3 inputs"):
            design(n, Privacy(alpha="1/2", neighbours=line(2)))
        with pytest.raises(ValueError, match="between 3 inputs"):
            named.uniform(n, Privacy(alpha="1/2", neighbours=line(2)))
    assert named.uniform(2, Privacy(alpha="1/2", neighbours=line(2))).audit().holds


@pytest.mark.parametrize(
    "neighbours",
    ["adjacent", "all", 3, 100, [(0, 1), (2, 3)], Metric([[0, 1, None], [1, 0, 2], [None, 2, 0]])],
)
def test_pairs_are_counted_without_being_listed(neighbours: object) -> None:
    privacy = Privacy(alpha="1/2", neighbours=neighbours)
    for inputs in [3] if isinstance(neighbours, Metric) else [4, 5, 17]:
        assert privacy.pair_count(inputs) == len(privacy.pairs(inputs))
    if not isinstance(neighbours, (list, Metric)):
        assert privacy.pair_count(1) == 0


@pytest.mark.parametrize("neighbours", ["adjacent", "all", 1, 2, 3, 9])
def test_steps_are_those_of_the_shortest_chain_of_neighbours(neighbours):
    privacy, inputs = Privacy(alpha="1/2", neighbours=neighbours), 8
    pairs = {tuple(pair) for pair in privacy.pairs(inputs).tolist()}
    for difference in range(inputs):
        for first in range(inputs - difference):
            reached, steps = {first}, 0
            while first + difference not in reached:
                near = [(j, k) for pair in pairs for j, k in (pair, pair[::-1])]
                reached |= {k for j, k in near if j in reached}
                steps += 1
            assert privacy.steps(difference) == steps


@pytest.mark.parametrize("wrong", [-1, 1.0, True, "1"])
def test_steps_are_of_a_difference(wrong):
    with pytest.raises(ValueError, match="difference"):
        Privacy(alpha="1/2").steps(wrong)


def test_steps_are_not_defined_by_a_list_or_by_distances():
    for neighbours in ([(0, 1)], Metric([[0, 1], [1, 0]])):
        with pytest.raises(ValueError, match="by a list or a table"):
            Privacy(alpha="1/2", neighbours=neighbours).steps(1)
