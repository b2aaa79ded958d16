"""Each method of post-processing keeps the guarantees that its docstring gives, and is what a slow,
obvious twin says it is.
"""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn
from scipy.integrate import quad, simpson
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import norm as gaussian

from frequency import postprocess
from frequency.exceptions import FrequencyError, InvalidEstimates
from frequency.postprocess import (
    base_cut,
    base_pos,
    mle_apx,
    norm,
    norm_cut,
    norm_mul,
    norm_sub,
    power,
    power_ns,
    project_simplex,
)

SETTINGS = settings(derandomize=True, deadline=None, max_examples=40)
P, Q = 0.5, 0.25
"""Within their range, [-1, 3], lie all the estimates drawn below; b = 1/3."""

METHODS = {
    "base_pos": base_pos,
    "base_cut": lambda values: base_cut(values, 0.1),
    "norm": norm,
    "norm_mul": norm_mul,
    "norm_sub": norm_sub,
    "norm_cut": norm_cut,
    "mle_apx": lambda values: mle_apx(values, P, Q),
    "power": lambda values: power(values, 0.1, 1000),
    "power_ns": lambda values: power_ns(values, 0.1, 1000),
}
NON_NEGATIVE = METHODS.keys() - {"norm"}
SUM_TO_ONE = {"norm", "norm_mul", "norm_sub", "mle_apx", "power_ns"}
IDEMPOTENT = METHODS.keys() - {"power", "power_ns"}
KEEP_A_DISTRIBUTION = IDEMPOTENT - {"base_cut"}

# Floats, and multiples of 1/8, among which there are ties, zeros and sums of exactly 1.
estimates = stn.arrays(
    np.float64,
    st.integers(1, 9),
    elements=st.one_of(st.floats(-1, 1.5), st.integers(-8, 12).map(lambda k: k / 8)),
)


def distributions_over(size):
    return (
        st.lists(st.integers(0, 99), min_size=size, max_size=size)
        .filter(any)
        .map(lambda k: np.array(k) / sum(k))
    )


distributions = st.integers(1, 9).flatmap(distributions_over)
degenerate = pytest.mark.parametrize(
    "values",
    [
        [0.3],
        [0.0],
        [-0.2],
        [1.0],
        [1.4],
        [0.0] * 4,
        [-0.5, -0.25, -0.5],
        [1.5] * 3,
        [0.1] * 10,
        [1.5, 1.25, 0.0],
    ],
    ids=str,
)


def all_of(names):
    return pytest.mark.parametrize("name", sorted(names))


def check_non_negative(result):
    assert np.all(result >= 0)


def check_sum(result):
    assert result.sum() == pytest.approx(1, abs=1e-12)


@SETTINGS
@given(estimates)
def test_new_float_array_of_the_same_shape(values):
    before = values.copy()
    values.flags.writeable = False
    for name, method in METHODS.items():
        result = method(values)
        assert result.dtype == np.float64, name
        assert result.shape == values.shape, name
        assert not np.shares_memory(result, values), name
        assert np.array_equal(values, before), name
        assert np.all(np.isfinite(result)), name
        assert np.array_equal(method(values.tolist()), result), name


@all_of(METHODS)
@degenerate
def test_degenerate_estimates(name, values):
    result = METHODS[name](values)
    assert np.all(np.isfinite(result))
    if name in NON_NEGATIVE:
        check_non_negative(result)
    if name in SUM_TO_ONE:
        check_sum(result)


@SETTINGS
@given(estimates)
def test_non_negative_and_sums_to_one(values):
    for name, method in METHODS.items():
        result = method(values)
        assert name not in NON_NEGATIVE or np.all(result >= 0), name
        assert name not in SUM_TO_ONE or result.sum() == pytest.approx(1, abs=1e-12), name


@SETTINGS
@given(estimates)
def test_twice_is_once(values):
    for name in IDEMPOTENT:
        once = METHODS[name](values)
        assert METHODS[name](once) == pytest.approx(once, abs=1e-12), name


@SETTINGS
@given(distributions)
def test_a_distribution_stays(values):
    for name in KEEP_A_DISTRIBUTION:
        assert METHODS[name](values) == pytest.approx(values, abs=1e-14), name


@SETTINGS
@given(estimates)
def test_order_is_kept(values):
    for name, method in METHODS.items():
        result = method(values)[np.argsort(values)]
        # The quadrature of power has a rounding of its own.
        assert np.all(np.diff(result) >= (-1e-9 if name.startswith("power") else 0)), name


@SETTINGS
@given(st.data())
def test_permuting_the_items_permutes_the_result(data):
    values = data.draw(estimates)
    order = np.array(data.draw(st.permutations(range(values.size))))
    for name, method in METHODS.items():
        assert method(values[order]) == pytest.approx(method(values)[order], abs=1e-12), name


@pytest.mark.parametrize(
    "method",
    [base_cut, lambda v, s: power(v, s, 50), lambda v, s: power_ns(v, s, 50)],
    ids=range(3),
)
@SETTINGS
@given(st.data())
def test_deviations_belong_to_their_items(method, data):
    values = data.draw(estimates)
    deviations = data.draw(stn.arrays(np.float64, values.size, elements=st.floats(0.02, 1)))
    order = np.array(data.draw(st.permutations(range(values.size))))
    assert method(values[order], deviations[order]) == pytest.approx(
        method(values, deviations)[order], abs=1e-12
    )
    assert np.array_equal(method(values, np.full(values.size, 0.25)), method(values, 0.25))


@all_of(METHODS)
@pytest.mark.parametrize("shape", [(0,), (), (2, 2), (1, 0)], ids=str)
def test_shapes_refused(name, shape):
    with pytest.raises(InvalidEstimates, match="shape") as caught:
        METHODS[name](np.zeros(shape))
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, FrequencyError)
    assert caught.value.index is None


@all_of(METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(name, bad):
    with pytest.raises(InvalidEstimates, match=r"values\[2\] = -?(nan|inf)") as caught:
        METHODS[name]([0.5, 0.25, bad, np.nan])
    assert caught.value.index == 2
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.index) == (str(caught.value), 2)


@pytest.mark.parametrize(
    "method",
    [base_cut, lambda v, s: power(v, s, 50), lambda v, s: power_ns(v, s, 50)],
    ids=range(3),
)
def test_bad_deviations(method):
    for deviations, message, index in [
        ([0.1], "shape", None),
        ([[0.1, 0.1]], "shape", None),
        ([0.1, -0.1], r"deviations\[1\] = -0.1", 1),
        ([np.nan, 0.1], r"deviations\[0\]", 0),
        (np.inf, r"deviations\[0\]", 0),
    ]:
        with pytest.raises(InvalidEstimates, match=message) as caught:
            method([0.5, 0.5], deviations)
        assert caught.value.index == index


# Base


def farther_than(candidate, values, result):
    return np.sum((candidate - values) ** 2) >= np.sum((result - values) ** 2) - 1e-12


@SETTINGS
@given(st.data())
def test_base_pos_is_the_nearest_non_negative_array(data):
    values = data.draw(estimates)
    result = base_pos(values)
    assert np.array_equal(result[values >= 0], values[values >= 0])
    assert farther_than(
        data.draw(stn.arrays(np.float64, values.size, elements=st.floats(0, 2))), values, result
    )


@SETTINGS
@given(estimates, st.floats(0, 0.5), st.floats(0.01, 0.99))
def test_base_cut_keeps_what_is_above_the_threshold_unchanged(values, deviation, level):
    threshold = max(0.0, gaussian.ppf(1 - level / values.size) * deviation)
    expected = [v if v > threshold else 0.0 for v in values]
    near = np.abs(values - threshold) < 1e-9
    assert np.array_equal(base_cut(values, deviation, level)[~near], np.array(expected)[~near])


def test_base_cut_by_hand():
    # Phi^-1(1 - 0.05 / 2) = 1.95996
    assert base_cut([0.0195, 0.0197], 0.01).tolist() == [0.0, 0.0197]
    assert base_cut([0.05, 0.05], [0.1, 0.01]).tolist() == [0.0, 0.05]
    assert base_cut([0.5, 0.0, -0.5], 0.0).tolist() == [0.5, 0.0, 0.0]
    # For one item and a level above 1/2 the quantile is negative; the threshold is 0.
    assert base_cut([-0.1], 1.0, level=0.9).tolist() == [0.0]
    assert base_cut([0.1], 1.0, level=0.9).tolist() == [0.1]


@pytest.mark.parametrize("level", [0.01, 0.05, 0.5])
def test_base_cut_rarely_keeps_absent_items(level):
    items, deviations = 20, np.linspace(0.01, 0.2, 20)
    noise = np.random.default_rng(5).normal(size=(4000, items)) * deviations
    rate = np.mean([base_cut(row, deviations, level).any() for row in noise])
    # For independent errors the probability is 1 - (1 - level / d)^d, a little below the level.
    truth = 1 - (1 - level / items) ** items
    assert truth <= level
    assert rate == pytest.approx(truth, abs=4 * np.sqrt(truth / 4000))


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, np.nan])
def test_levels(level):
    with pytest.raises(ValueError, match="level"):
        base_cut([0.5], 0.1, level)


# Norm, Norm-Mul


@SETTINGS
@given(st.data())
def test_norm_is_the_nearest_array_of_sum_one_and_keeps_differences(data):
    values = data.draw(estimates)
    result = norm(values)
    assert result - result[0] == pytest.approx(values - values[0], abs=1e-12)
    candidate = data.draw(stn.arrays(np.float64, values.size, elements=st.floats(-1, 1)))
    assert farther_than(candidate + (1 - candidate.sum()) / values.size, values, result)


@SETTINGS
@given(estimates)
def test_norm_mul_keeps_ratios(values):
    result = norm_mul(values)
    positive = np.maximum(values, 0)
    if positive.any():
        assert result * positive.sum() == pytest.approx(positive, abs=1e-12)
    else:
        assert np.all(result == 1 / values.size)


def test_norm_mul_of_extreme_floats():
    assert norm_mul([5e-324, 5e-324]).tolist() == [0.5, 0.5]
    assert norm_mul([1.5e308, 1.5e308, -1.5e308]).tolist() == [0.5, 0.5, 0.0]


# Norm-Sub


def simplex_over_supports(values, b=0.0):
    """The nearest distribution, by trying every set of positive items and keeping the best that is
    feasible; exact.
    """
    v = [Fraction(float(value)) for value in values]
    b = Fraction(b)
    best = None
    for size in range(1, len(v) + 1):
        for support in itertools.combinations(range(len(v)), size):
            r = (sum(v[i] for i in support) - 1) / (size + b)
            f = [(v[i] - r) / (1 + b * r) if i in support else Fraction(0) for i in range(len(v))]
            if min(f) >= 0:
                cost = sum((x - y) ** 2 / (1 + b * y) for x, y in zip(v, f, strict=True))
                best = min(best or (cost, f), (cost, f))
    assert best is not None
    return [float(x) for x in best[1]]


def by_sorting(values, b):
    """How many of the largest stay positive, and their sum: each as long as it is above the rest.

    `_support` finds the same by dropping what is too low.
    """
    kept, total = 0, 0.0
    for value in sorted(values, reverse=True):
        if kept and value * (kept + 1 + b) <= total + value - 1:
            break
        kept, total = kept + 1, total + value
    return kept, total


@pytest.mark.parametrize("b", [0.0, 0.5, 40.0])
@pytest.mark.parametrize(
    "values",
    [
        np.zeros(100),
        -(2.0 ** np.arange(60)),  # each round drops few
        np.random.default_rng(1).normal(0, 0.01, 2000),
        np.random.default_rng(2).dirichlet(np.ones(500)),
        np.random.default_rng(3).standard_cauchy(500) / 100,
        np.array([0.3]),
    ],
    ids=["equal", "doubled", "noise", "distribution", "heavy", "one"],
)
def test_what_stays_positive_is_what_sorting_finds(values, b):
    values = np.maximum(values - values.max(), -1e3 if b == 0 else -0.9 / b)
    count, total = postprocess._support(values, b)
    expected = by_sorting(values.tolist(), b)
    assert count == expected[0]
    assert total == pytest.approx(expected[1], rel=1e-12, abs=1e-12)


@pytest.mark.slow
@settings(SETTINGS, max_examples=40)
@given(estimates.filter(lambda values: values.size <= 6))
def test_norm_sub_over_all_supports(values):
    assert norm_sub(values) == pytest.approx(simplex_over_supports(values), abs=1e-13)


@pytest.mark.parametrize(
    ("size", "scale", "centre"),
    [(2, 1, 0), (50, 0.1, 0), (1000, 0.01, 0), (1000, 3, 50), (3000, 1e-4, -2)],
)
def test_norm_sub_by_bisection(size, scale, centre):
    values = np.random.default_rng(size).normal(centre, scale, size)
    low, high = -values.max() - 1, 1 - values.min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(values + middle, 0).sum() > 1 else (middle, high)
    assert norm_sub(values) == pytest.approx(np.maximum(values + low, 0), abs=1e-13)
    check_sum(norm_sub(values))


@SETTINGS
@given(st.data())
def test_no_distribution_is_nearer_than_norm_sub(data):
    values = data.draw(estimates)
    candidate = data.draw(distributions_over(values.size))
    result = norm_sub(values)
    for step in (1, 0.1, 0.001):
        assert farther_than((1 - step) * result + step * candidate, values, result)


@SETTINGS
@given(estimates, st.floats(-100, 100))
def test_norm_sub_ignores_a_constant(values, constant):
    assert norm_sub(values + constant) == pytest.approx(norm_sub(values), abs=1e-12)


def test_norm_sub_loses_nothing_to_a_large_constant():
    values = np.array([0.5, 0.25, 0.75, -0.875])
    assert np.array_equal(norm_sub(values + 2.0**48), norm_sub(values))


def test_norm_sub_raises_negative_estimates_when_too_little_is_there():
    # Clamping to 0 first, as loops over the positive items do, would give [1, 0], which is farther
    # away.
    assert norm_sub([0.5, -0.25]).tolist() == [0.875, 0.125]
    assert norm_sub([-3.0, -3.0]).tolist() == [0.5, 0.5]


def test_project_simplex_is_norm_sub():
    assert project_simplex is norm_sub


# Norm-Cut


def cut_by_thresholds(values):
    """The best of all thresholds among the estimates, in exact arithmetic; the most frequent share
    1 if none will do.
    """
    v = [Fraction(float(value)) for value in values]
    kept = [[x if x >= theta else 0 for x in v] for theta in {x for x in v if x > 0}]
    fitting = [row for row in kept if sum(row) <= 1]
    if fitting:
        return [float(x) for x in max(fitting, key=sum)]
    if not kept:
        return [0.0] * len(v)
    return [1 / v.count(max(v)) if x == max(v) else 0.0 for x in v]


@pytest.mark.slow
@settings(SETTINGS, max_examples=200)
@given(
    stn.arrays(np.float64, st.integers(1, 9), elements=st.integers(-16, 40).map(lambda k: k / 64))
)
def test_norm_cut_over_all_thresholds(values):
    assert norm_cut(values).tolist() == cut_by_thresholds(values)


@SETTINGS
@given(estimates)
def test_norm_cut_at_most_one_and_survivors_unchanged(values):
    result = norm_cut(values)
    assert result.sum() <= 1 + 1e-12
    if values.max() <= 1 and np.count_nonzero(values == values.max()) * values.max() <= 1:
        assert np.all((result == values) | (result == 0))
    if 0 < np.maximum(values, 0).sum() <= 1:
        assert np.array_equal(result, np.maximum(values, 0))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.75, 0.25, 0.25], [0.75, 0, 0]),
        ([0.5, 0.25, 0.25, 0.125], [0.5, 0.25, 0.25, 0]),
        ([0.25, 0.25], [0.25, 0.25]),
        ([1.5, 0.25], [1, 0]),
        ([0.75, 0.75, 0.5], [0.5, 0.5, 0]),
        ([-1, -2], [0, 0]),
    ],
)
def test_norm_cut_by_hand(values, expected):
    assert norm_cut(values).tolist() == expected


def test_norm_cut_keeps_all_of_a_distribution_whose_running_sum_rounds_up():
    samples = [norm_mul(np.random.default_rng(seed).random(1000)) for seed in range(20)]
    rounded_up = [values for values in samples if np.cumsum(np.sort(values)[::-1])[-1] > 1]
    assert rounded_up
    for values in rounded_up:
        assert np.array_equal(norm_cut(values), values)


# MLE-Apx

PROTOCOLS = pytest.mark.parametrize(
    ("p", "q"), [(0.5, 0.25), (0.5, 0.01), (0.75, 0.25), (0.9, 0.6), (0.3, 0.01), (0.99, 0.9)]
)


def ratio(p, q):
    return (p - q) * (1 - p - q) / (q * (1 - q))


def in_range(unit, p, q):
    """Estimates of the protocol from fractions of supporting reports in [0, 1]."""
    return (np.asarray(unit) - q) / (p - q)


def misfit(f, values, b):
    return np.sum((values - f) ** 2 / (1 + b * f))


shares = stn.arrays(
    np.float64,
    st.integers(1, 6),
    elements=st.one_of(st.floats(0, 1), st.integers(0, 8).map(lambda k: k / 8)),
)


@PROTOCOLS
@settings(SETTINGS, max_examples=25)
@given(shares.filter(lambda unit: unit.size <= 5))
def test_mle_apx_over_all_supports(p, q, unit):
    values = in_range(unit, p, q)
    assert mle_apx(values, p, q) == pytest.approx(
        simplex_over_supports(values, ratio(p, q)), abs=1e-9
    )


@PROTOCOLS
def test_mle_apx_by_a_generic_solver(p, q):
    rng, b = np.random.default_rng(3), ratio(p, q)
    for _ in range(4):
        # Reports of a random population, so that the estimates are like those of the protocol.
        truth = rng.dirichlet(np.full(8, 0.3))
        values = in_range(rng.binomial(500, q + (p - q) * truth) / 500, p, q)
        solved = minimize(
            misfit,
            np.full(8, 1 / 8),
            (values, b),
            method="SLSQP",
            bounds=[(0, 1)] * 8,
            constraints=LinearConstraint(np.ones(8), 1, 1),
            options={"ftol": 1e-14, "maxiter": 500},
        )
        result = mle_apx(values, p, q)
        assert misfit(result, values, b) <= solved.fun + 1e-9
        assert result == pytest.approx(solved.x, abs=1e-4)


@PROTOCOLS
@settings(SETTINGS, max_examples=25)
@given(st.data())
def test_no_distribution_is_likelier_than_mle_apx(p, q, data):
    values, b = in_range(data.draw(shares), p, q), ratio(p, q)
    candidate = data.draw(distributions_over(values.size))
    result = mle_apx(values, p, q)
    check_non_negative(result)
    check_sum(result)
    best = misfit(result, values, b)
    for step in (1, 0.1, 0.001):
        assert (
            misfit((1 - step) * result + step * candidate, values, b) >= best * (1 - 1e-9) - 1e-12
        )


@SETTINGS
@given(shares, st.sampled_from([0.51, 0.625, 0.75, 0.99]))
def test_mle_apx_is_norm_sub_for_symmetric_reports(unit, p):
    values = in_range(unit, p, 1 - p)
    assert mle_apx(values, p, 1 - p) == pytest.approx(norm_sub(values), abs=1e-12)


def test_mle_apx_has_the_variance_of_the_protocol():
    # q (1-q) (1 + b f) is the variance of a report that supports with probability p f + q (1 - f),
    # but for a term (p-q)^2 f (1-f) that is the randomness of the population, not of the protocol.
    for p, q, f in itertools.product([0.5, 0.8], [0.1, 0.4], [0, 0.3, 1]):
        assert q * (1 - q) * (1 + ratio(p, q) * f) == pytest.approx(
            f * p * (1 - p) + (1 - f) * q * (1 - q)
        )


@pytest.mark.parametrize(
    ("p", "q"), [(0.25, 0.5), (0.5, 0.5), (0.5, 0), (1, 0.5), (np.nan, 0.5), (0.5, -0.1)]
)
def test_mle_apx_probabilities(p, q):
    with pytest.raises(ValueError, match="0 < q < p < 1"):
        mle_apx([0.5, 0.5], p, q)


@pytest.mark.parametrize("bad", [-1.01, 3.01])
def test_mle_apx_refuses_what_no_reports_give(bad):
    assert mle_apx([-1.0, 3.0], P, Q).tolist() == [0.0, 1.0]
    with pytest.raises(InvalidEstimates, match="between -1 and 3") as caught:
        mle_apx([0.5, bad], P, Q)
    assert caught.value.index == 1


# Power


def posterior_mean(value, deviation, users, s):
    """Simpson on log x, on ever finer stretches of where the posterior is within exp(-45) of its
    peak.
    """
    low, high = 0.0, np.log(users)
    for _ in range(6):
        t = np.linspace(low, high, 4001)
        x = np.exp(t) / users
        density = (1 - s) * t - (x - value) ** 2 / (2 * deviation**2)
        density -= density.max()
        where = np.flatnonzero(density > -45)
        low, high = t[max(where[0] - 1, 0)], t[min(where[-1] + 1, t.size - 1)]
    return simpson(np.exp(density) * x, x=t) / simpson(np.exp(density), x=t)


@pytest.mark.slow
def test_power_integrates_as_a_plain_quadrature():
    rng = np.random.default_rng(11)
    for _ in range(250):
        users, s, deviation = (
            int(10 ** rng.uniform(0.4, 9)),
            rng.uniform(0, 10),
            10 ** rng.uniform(-4, 0),
        )
        # Far from 0 in either unit, and where prior and likelihood compete.
        values = np.array(
            [
                rng.uniform(-1, 1.2),
                rng.uniform(-20, 20) * deviation,
                rng.uniform(2, 10) * deviation,
                1 / users,
            ]
        )
        values = values[values < 1.2]
        got = postprocess._posterior_means(values, np.full(values.size, deviation), users, s)
        expected = [posterior_mean(value, deviation, users, s) for value in values]
        assert got == pytest.approx(expected, rel=1e-6)


def mean_of_power_law(s, users):
    return (
        quad(lambda x: x ** (1 - s), 1 / users, 1, limit=500)[0]
        / quad(lambda x: x**-s, 1 / users, 1, limit=500)[0]
    )


@pytest.mark.parametrize("s", [0.3, 1.0, 1.5, 2.0, 3.7])
def test_the_prior_has_the_mean_of_the_estimates(s):
    assert postprocess._exponent(mean_of_power_law(s, 500), 500) == pytest.approx(s, rel=1e-6)
    mean = np.array([0.1, 0.05, -0.03]).mean()
    assert mean_of_power_law(postprocess._exponent(mean, 500), 500) == pytest.approx(mean)


def test_exponents_out_of_range_are_clipped():
    assert [
        postprocess._exponent(mean, 1000) for mean in (-1.0, 0.0, 0.001, 0.0011, 0.51, 2.0)
    ] == [10, 10, 10, 10, 0, 0]


def test_power_is_the_posterior_mean_under_the_fitted_prior():
    values, deviations, users = (
        np.array([0.6, 0.2, 0.05, 0.0, -0.1]),
        np.array([0.01, 0.05, 0.03, 0.03, 0.2]),
        2000,
    )
    s = postprocess._exponent(values.mean(), users)
    expected = [
        posterior_mean(value, deviation, users, s)
        for value, deviation in zip(values, deviations, strict=True)
    ]
    assert power(values, deviations, users) == pytest.approx(expected, rel=1e-6)


def test_power_minimises_the_expected_squared_error():
    # Frequencies drawn from a power law: no function of an estimate beats the posterior mean, not
    # even a scaled or shifted one.
    rng, users, s, deviation = np.random.default_rng(2), 10_000, 1.6, 0.02
    u, d = rng.random(30_000), 1 - s
    truth = (users**-d + u * (1 - users**-d)) ** (1 / d)
    values = truth + rng.normal(0, deviation, truth.size)
    result = power(values, deviation, users)
    error = np.mean((result - truth) ** 2)
    altered = 0.95 * result, 1.05 * result, result + 5e-4, result - 5e-4
    for other in (values, base_pos(values), base_cut(values, deviation), *altered):
        assert error < np.mean((other - truth) ** 2)


@SETTINGS
@given(estimates, st.floats(1e-6, 10), st.integers(2, 10**9))
def test_power_lies_between_one_user_and_all(values, deviation, users):
    result = power(values, deviation, users)
    assert np.all(result >= 1 / users * (1 - 1e-15))
    assert np.all(result <= 1)


@pytest.mark.parametrize("value", [-1e12, -3.0, 0.0, 1e-300, 1.0, 3.0, 1e12])
@pytest.mark.parametrize("deviation", [1e-12, 1e-3, 1e6])
def test_power_of_extreme_estimates(value, deviation):
    result = power([value], deviation, 1000)
    assert 0.001 <= result[0] <= 1
    if deviation == 1e-12:
        assert result[0] == pytest.approx(np.clip(value, 0.001, 1), rel=1e-6)


def test_power_goes_through_all_items():
    values = np.random.default_rng(1).normal(0.001, 0.02, 2 * postprocess._ROWS + 5)
    result = power(values, 0.02, 10_000)
    few = np.array([0, postprocess._ROWS - 1, postprocess._ROWS, values.size - 1])
    s = postprocess._exponent(values.mean(), 10_000)
    assert result[few] == pytest.approx(
        [posterior_mean(value, 0.02, 10_000, s) for value in values[few]], rel=1e-6
    )


@SETTINGS
@given(estimates)
def test_power_ns_is_power_then_norm_sub(values):
    assert np.array_equal(power_ns(values, 0.1, 1000), norm_sub(power(values, 0.1, 1000)))


def test_power_arguments():
    with pytest.raises(InvalidEstimates, match=r"deviations\[1\] = 0 must be above 0"):
        power([0.5, 0.5], [0.1, 0.0], 10)
    with pytest.raises(InvalidEstimates, match="must be above 0"):
        power([0.5, 0.5], 0.0, 10)
    for users in (1, 0, -5):
        with pytest.raises(ValueError, match="at least 2"):
            power([0.5, 0.5], 0.1, users)


@all_of(METHODS.keys() - {"power", "power_ns", "base_cut"})
def test_a_million_items(name):
    values = np.random.default_rng(9).normal(1e-6, 1e-2, 10**6)
    result = METHODS[name](values)
    if name in NON_NEGATIVE:
        check_non_negative(result)
    if name in SUM_TO_ONE:
        assert result.sum() == pytest.approx(1, abs=1e-9)
    if name == "norm_cut":
        assert 0.9 < result.sum() <= 1 + 1e-9
