"""Designed noise: optimal with a proof, refused with a proof, and rounded to keys."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from mechdesign import Incompatible, Privacy
from mechdesign.exceptions import SolverFailure, TooLarge
from mechdesign.perturbation import (
    Disclosure,
    NoiseRules,
    PerturbationTable,
    Unroundable,
    design_perturbation,
    rounded_to_keys,
)
from mechdesign.perturbation.noise_rules import broken_rules


def subsets(items: list) -> Iterator[tuple]:
    return chain.from_iterable(combinations(items, k) for k in range(1, len(items) + 1))


def least_delta(
    largest: int, noise: int, variance: float, ratio: float, unbiased: bool, empty_key: str
) -> float:
    """By a constraint for every set of outputs, in floats."""
    pairs = [(c, v) for c in range(largest + 1) for v in range(-min(c, noise), noise + 1)]
    place = {pair: k for k, pair in enumerate(pairs)}
    size = len(pairs) + 1
    upper, limits, equal, right = [], [], [], []
    if empty_key == "zero":  # a cell of nobody always has the same key
        same = np.zeros(size)
        same[place[0, 0]] = 1
        equal.append(same)
        right.append(1)
    for c in range(largest + 1):
        ones, means, squares = np.zeros(size), np.zeros(size), np.zeros(size)
        for v in range(-min(c, noise), noise + 1):
            ones[place[c, v]], means[place[c, v]], squares[place[c, v]] = 1, v, v**2
        equal.append(ones)
        right.append(1)
        upper.append(squares)
        limits.append(variance)
        if unbiased or c >= noise:
            equal.append(means)
            right.append(0)
        for one, other in ((c, c + 1), (c + 1, c)):
            outputs = range(max(0, one - noise), one + noise + 1)
            for chosen in subsets(list(outputs)):
                row = np.zeros(size)
                row[-1] = -1
                for o in chosen:
                    for count, weight in ((one, 1.0), (other, -ratio)):
                        number = place.get((min(count, largest), o - count))
                        if number is not None:
                            row[number] += weight
                upper.append(row)
                limits.append(0)
    cost = np.zeros(size)
    cost[-1] = 1
    found = linprog(cost, np.array(upper), limits, np.array(equal), right)
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("empty_key", ["zero", "drawn"])
@pytest.mark.parametrize("unbiased", ["everywhere", "interior"])
@pytest.mark.parametrize(("largest", "noise"), [(1, 1), (2, 1), (3, 2), (2, 2)])
@pytest.mark.parametrize("variance", ["1/2", "3/2"])
def test_the_least_delta_is_that_over_all_sets_of_outputs(
    largest, noise, variance, unbiased, empty_key
):
    found = design_perturbation(
        largest,
        noise=noise,
        variance=variance,
        objective="delta",
        epsilon=1,
        unbiased=unbiased,
        empty_key=empty_key,
    )
    rules = found.certificate.rules
    expected = least_delta(
        largest,
        noise,
        float(Fraction(variance)),
        float(rules.ratio),
        unbiased == "everywhere",
        empty_key,
    )
    assert found.certificate.gap == 0
    assert float(found.certificate.value) == pytest.approx(expected, abs=1e-8)
    assert found.certificate.verify(found.table)


@pytest.mark.parametrize(
    ("noise", "variance", "delta", "entropy"),
    [
        (3, 1, 0.0567, 0.141),
        (5, 2, 0.00313, 0.0428),
        (8, 4, 0.000155, 0.00726),
        (10, 5, 2.10e-5, 0.00337),
    ],
)
def test_designs_hide_far_more_than_the_greatest_entropy(noise, variance, delta, entropy):
    """Counts of at least ``noise``, epsilon 1: the same variance, up to 160 times the delta."""
    rules = {"noise": noise, "variance": variance}
    best = design_perturbation(noise, objective="delta", epsilon=1, protected=noise, **rules)
    assert best.certificate.gap == 0
    assert float(best.certificate.value) == pytest.approx(delta, rel=5e-3)
    broad = design_perturbation(noise, objective="entropy", **rules)
    assert 0 <= broad.certificate.gap < Fraction(1, 10**6)
    assert float(Disclosure(broad.table).curve_of(noise).delta(1)) == pytest.approx(
        entropy, rel=5e-3
    )
    half = Disclosure(broad.table).curve_of(noise).delta("1/2")
    close = design_perturbation(noise, objective="delta", epsilon="1/2", protected=noise, **rules)
    assert 1 <= float(half / close.certificate.value) < 2.6


ALL = {
    "noise": 10,
    "variance": 5,
    "blocked": 2,
    "stay": "1/10",
    "epsilon": 1,
    "delta": "1/10",
    "protected": 1,
    "monotone": True,
    "keep_zeros": True,
}


@pytest.mark.parametrize("objective", ["L0", "L1", "L2"])
def test_all_rules_at_once(objective: str) -> None:
    found = design_perturbation(20, objective=objective, **ALL)
    assert found.certificate.gap == 0
    table = found.table
    assert table.law(0) == {0: table.keys}
    for count in range(1, 30):
        law = {v: Fraction(k, table.keys) for v, k in table.law(count).items()}
        assert table.bias(count) == 0
        assert table.variance(count) <= 5
        assert not {count + v for v in law} & {1, 2}
        assert max(map(abs, law)) <= 10
        if count > 2:
            assert law[0] >= Fraction(1, 10)
            right = [law.get(v, 0) for v in range(11)]
            assert right == sorted(right, reverse=True)
        curve = Disclosure(table).curve_of(count)
        assert curve.delta(1) <= Fraction(1, 10)
    broken = replace(found.certificate.rules, variance=Fraction(1))
    assert broken_rules(broken, table) == ["variance at most 1"]


def test_a_certificate_of_something_else_is_refused() -> None:
    found = design_perturbation(
        3, noise=2, objective="L1", variance=1, epsilon=1, delta="1/4", protected=1
    )
    certificate = found.certificate
    assert certificate.verify(found.table).reason == "optimal"
    other = design_perturbation(3, noise=2, objective="L2").table
    assert (
        "epsilon" in certificate.verify(other).reason
        or "privacy" in certificate.verify(other).reason
    )
    assert not replace(certificate, bound=certificate.bound + 1).verify(found.table)
    assert not replace(certificate, value=certificate.value + 1).verify(found.table)
    rules = replace(certificate.rules, delta=Fraction(1, 400))
    assert not replace(certificate, rules=rules).verify(found.table)
    group = next(iter(certificate.multipliers))
    wrong = {**certificate.multipliers, group: {0: Fraction(100)}}
    assert "multipliers" in replace(certificate, multipliers=wrong).verify(found.table).reason


def test_the_entropy_under_privacy_has_a_small_gap() -> None:
    found = design_perturbation(
        4,
        noise=3,
        variance=2,
        objective="entropy",
        epsilon=1,
        delta="1/20",
        unbiased="interior",
        empty_key="drawn",
    )
    assert 0 <= found.certificate.gap < Fraction(1, 10**6)
    free = design_perturbation(
        4, noise=3, variance=2, objective="entropy", unbiased="interior", empty_key="drawn"
    )
    assert free.certificate.value < found.certificate.bound
    ratio = found.certificate.rules.ratio
    assert Disclosure(found.table, empty_key="drawn").curve.at_ratio(ratio) <= Fraction(1, 20)
    # Tools give a cell of nobody key 0, and cannot keep that promise: they are not given such rows
    assert Disclosure(found.table).curve.at_ratio(ratio) > Fraction(1, 2)
    kept = design_perturbation(
        4, noise=3, variance=2, objective="entropy", epsilon=1, delta="1/2", unbiased="interior"
    )
    assert kept.table.law(0) == {0: kept.table.keys}
    assert Disclosure(kept.table).curve.at_ratio(ratio) <= Fraction(1, 2)
    assert Disclosure(free.table).curve.at_ratio(ratio) > Fraction(1, 20)


def test_the_greatest_entropy_has_a_quadratic_logarithm() -> None:
    """It is known: proportional to exp(-a v^2) where nothing cuts it."""
    table = design_perturbation(5, noise=5, variance=2, objective="entropy").table
    logarithms = np.log([table.law(5)[v] / table.keys for v in range(-5, 6)])
    curvature = np.diff(logarithms, 2)
    assert np.allclose(curvature, curvature[0], rtol=1e-3)
    assert float(table.variance(5)) == pytest.approx(2, abs=1e-6)


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("rules", "conflict"),
    [
        # ptable lowers pstay without a word where this is asked
        (
            {
                "noise": 2,
                "stay": "9/10",
                "unbiased": "nowhere",
                "epsilon": 1,
                "delta": "1/9",
                "empty_key": "drawn",
            },
            {"no change with probability at least 0.9", "epsilon 1, delta 0.111111"},
        ),
        (
            {"noise": 3, "epsilon": 1, "delta": "1/5"},
            {"unbiased everywhere", "epsilon 1, delta 0.2"},
        ),
        (
            {
                "noise": 1,
                "variance": "1/9",
                "epsilon": 1,
                "delta": "1/20",
                "unbiased": "nowhere",
                "empty_key": "drawn",
            },
            {"epsilon 1, delta 0.05"},
        ),
        (
            {
                "noise": 2,
                "stay": "3/4",
                "unbiased": "nowhere",
                "epsilon": 1,
                "delta": "1/5",
            },
            {
                "epsilon 1, delta 0.2",
                "key 0 for a cell of nobody, which stays 0",
            },
        ),
        ({"noise": 3, "blocked": 4}, {"unbiased everywhere", "no outputs 1 to 4"}),
        (
            {"noise": 3, "blocked": 2, "variance": "1/2"},
            {"no outputs 1 to 2", "variance at most 0.5"},
        ),
    ],
)
def test_rules_that_contradict_each_other_are_named_and_proved(rules, conflict) -> None:
    with pytest.raises(Incompatible) as caught:
        design_perturbation(4, **rules)
    assert set(caught.value.conflict) == conflict
    assert caught.value.proof.verify()
    assert "(proved)" in str(caught.value)
    assert "no noise meets" in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"noise": 0}, "the largest noise"),
        ({"noise": 2, "variance": -1}, "variance is at least 0"),
        ({"noise": 2, "epsilon": 1, "delta": 1}, "delta is 0 to below 1"),
        ({"noise": 2, "delta": "1/2"}, "needs an epsilon"),
        ({"noise": 2, "objective": "delta"}, "needs an epsilon"),
        ({"noise": 2, "objective": "L3"}, "an objective is"),
        ({"noise": 2, "unbiased": "yes"}, "unbiased is"),
        ({"noise": 2, "stay": 2}, "no noise is 0 to 1"),
        ({"noise": 2, "protected": 9}, "the least protected"),
        ({"noise": 2, "empty_key": "some"}, "zero or drawn"),
    ],
)
def test_wrong_numbers_are_refused(rules, message) -> None:
    with pytest.raises(ValueError, match=message):
        design_perturbation(4, **rules)


# ------------------------------------------------------------------------------- rounding to keys


def every_table(rules: NoiseRules, keys: int) -> Iterator[PerturbationTable]:
    """All tables of that many keys that keep the rules."""

    def laws(noises: list[int], left: int) -> Iterator[dict[int, int]]:
        if len(noises) == 1:
            yield {noises[0]: left}
            return
        for number in range(left + 1):
            for rest in laws(noises[1:], left - number):
                yield {noises[0]: number, **rest}

    rows = [list(laws(list(rules.noises(c)), keys)) for c in range(rules.largest + 1)]
    for chosen in product(*rows):
        table = PerturbationTable.of_laws(keys, chosen)
        if not broken_rules(rules, table):
            yield table


@pytest.mark.parametrize("keys", [4, 5, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("objective", ["L0", "L2", "delta"])
def test_rounding_finds_the_best_table_of_so_many_keys(keys: int, objective: str) -> None:
    rules = {
        "noise": 1,
        "unbiased": "interior",
        "variance": "3/4",
        "epsilon": 1,
        "empty_key": "drawn",
    }
    if objective != "delta":
        rules["delta"] = "1/2"
    found = design_perturbation(2, objective=objective, **rules)
    rounded = found.rounded(keys)
    assert rounded.table.keys == keys
    assert not broken_rules(found.certificate.rules, rounded.table)
    values = [
        value_of(table, objective, found.certificate.rules)
        for table in every_table(found.certificate.rules, keys)
    ]
    assert rounded.value == min(values)
    assert rounded.lost == rounded.value - found.certificate.value >= 0
    assert rounded.least == pytest.approx(float(rounded.value), rel=2e-4)  # and it is the best one


def value_of(table: PerturbationTable, objective: str, rules: NoiseRules) -> Fraction:
    if objective == "delta":
        return Disclosure(table, empty_key=rules.empty_key).curve.at_ratio(rules.ratio)
    powers = {"L0": 0, "L2": 2}
    total = sum(
        keys * abs(v) ** powers[objective]
        for c in range(3)
        for v, keys in table.law(c).items()
        if v
    )
    return Fraction(total, 3 * table.keys)


def test_rounding_refuses_too_few_keys() -> None:
    found = design_perturbation(
        2, noise=1, variance="1/9", epsilon=3, delta="1/3", unbiased="interior", empty_key="drawn"
    )
    with pytest.raises(Unroundable, match="no table of 4 keys keeps") as error:
        found.rounded(4)
    # With 4 keys a variance of at most 1/9 is none at all, which shows every count
    assert set(error.value.conflict) == {"variance at most 0.111111", "epsilon 3, delta 0.333333"}
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.conflict) == (str(error.value), error.value.conflict)
    assert isinstance(error.value, SolverFailure)


@pytest.mark.parametrize("objective", ["L0", "delta", "entropy"])
def test_the_variance_may_be_exact(objective: str) -> None:
    rules = {"noise": 3, "variance": "4/3", "objective": objective, "exact_variance": True}
    if objective == "delta":
        rules["epsilon"] = 1
    found = design_perturbation(4, **rules)
    assert [found.table.variance(c) for c in range(6)] == [0, *[Fraction(4, 3)] * 5]
    assert [found.table.bias(c) for c in range(6)] == [0] * 6
    free = design_perturbation(4, **{**rules, "exact_variance": False})
    assert free.certificate.bound <= found.certificate.value
    assert found.rounded(48).table.variance(4) == Fraction(4, 3)
    # Squares of whole numbers add up to an even number if they themselves add up to 0
    with pytest.raises(Unroundable) as error:
        found.rounded(256)
    assert "variance exactly 1.33333" in error.value.conflict
    with pytest.raises(ValueError, match="needs a variance"):
        design_perturbation(4, noise=3, exact_variance=True)


def test_an_exact_variance_that_cannot_be_is_refused() -> None:
    # The noise of 1 is -1 or more, and unbiased: at most 2 (1/3 of 2, 2/3 of -1)
    with pytest.raises(Incompatible) as caught:
        design_perturbation(4, noise=2, variance=3, exact_variance=True)
    assert set(caught.value.conflict) == {"unbiased everywhere", "variance exactly 3"}


def test_tables_of_many_keys_are_rounded_near_them() -> None:
    laws = [{0: 1000}, {-1: 333, 0: 334, 1: 333}, {-2: 100, 0: 750, 1: 100, 2: 50}]
    table = PerturbationTable.of_laws(1000, laws)
    rounded = rounded_to_keys(table, 64)
    assert rounded.table.keys == 64
    assert [rounded.table.bias(c) for c in range(3)] == [table.bias(c) for c in range(3)]
    assert 0 < rounded.lost < Fraction(3, 64)


def test_a_design_that_would_take_hours_is_refused_at_once() -> None:
    with pytest.raises(TooLarge, match="a smaller largest count"):
        design_perturbation(1000, noise=20, objective="delta", epsilon=1)


def test_a_design_of_many_counts_keeps_epsilon_on_the_private_side() -> None:
    rules = NoiseRules(3, 2, epsilon=Fraction(1), delta=Fraction(0))
    assert rules.ratio == 1 / Privacy.from_epsilon(1).alpha < Fraction(27182819, 10**7)
