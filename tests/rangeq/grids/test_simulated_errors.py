"""Predicted errors of conjunctions: what is simulated, and what collections measure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from frequency.schema import Domain
from rangeq.grids import HDG, HIO, LHIO, MSW, TDG, HaarHRR2D, RangeCALM, Uniform, WaveGrid
from rangeq.grids.sampling import REFERENCE_RECORDS, ExpectedRecords, drawn_records
from rangeq.grids.simulated_errors import (
    _epsilon_node,
    _errors,
    _gain,
    _inside,
    _Miniature,
    _populations,
    _ranges,
    _user_node,
    conjunction_errors,
)


def root_mean_square(errors: Any) -> float:
    return math.sqrt(np.mean([error**2 for _, error in errors]))


def measured(system: Any, attributes: Domain, epsilon: float, n: int, records: Any) -> float:
    """The mean squared error of ranges of the first two attributes, from one collection of all."""
    rng = np.random.default_rng(11)
    protocol = system(attributes, epsilon, n)
    asked = tuple(range(min(2, len(attributes))))
    estimate = protocol.estimate(protocol.simulate(1, rng, records))
    left, right = (
        np.stack(ends, axis=1)
        for ends in zip(*(_ranges(attributes.sizes[k], rng) for k in asked), strict=True)
    )
    inside = (records[:, None, asked] >= left) & (records[:, None, asked] <= right)
    found = estimate.answers(asked, left, right)
    return float(np.mean((found - inside.all(axis=2).mean(axis=0)) ** 2))


def predicted_over_measured(
    system: Any, sizes: list[int], epsilon: float, n: int, repeats: int = 1
) -> float:
    attributes, squares = Domain.of(sizes), []
    for run in range(repeats):
        for name in REFERENCE_RECORDS:
            records = drawn_records(name, attributes, n, np.random.default_rng([run, 7]))
            squares.append(measured(system, attributes, epsilon, n, records))
    predicted = root_mean_square(conjunction_errors(system, attributes, epsilon, n))
    return predicted / math.sqrt(np.mean(squares))


@pytest.mark.parametrize("system", [HDG, TDG, RangeCALM, LHIO, Uniform])
def test_errors_are_predicted(system: Any) -> None:
    """To a factor of 1.5 over the populations, of four attributes of eight values."""
    assert 1 / 1.5 < predicted_over_measured(system, [8] * 4, 1.0, 20_000) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "sizes", "epsilon", "n"),
    [
        (WaveGrid, [64] * 3, 1.0, 50_000),
        (WaveGrid, [16] * 2, 2.5, 20_000),
        (WaveGrid, [12, 3, 8], 1.0, 60_000),
        (HDG, [64] * 6, 2.0, 100_000),
        (HDG, [50], 0.7, 20_000),
        (TDG, [32, 8, 16], 1.0, 50_000),
        (RangeCALM, [16] * 3, 3.0, 50_000),
        (LHIO, [20] * 3, 2.0, 50_000),
        (HIO, [16] * 2, 1.0, 50_000),
        (MSW, [24] * 3, 1.0, 50_000),
    ],
)
def test_errors_of_other_collections_are_predicted(
    system: Any, sizes: list[int], epsilon: float, n: int
) -> None:
    assert 1 / 1.5 < predicted_over_measured(system, sizes, epsilon, n) < 1.5


def test_groups_have_as_many_users_as_in_the_whole() -> None:
    """Each pair of two of six attributes is a twenty-first; the third stands for four others."""
    n = 210_000
    small = _Miniature(HDG([16] * 6, 1.0, n), (1, 4, 2), n, [False] * 3)
    shares = dict(_populations(small.sizes, (1, 4, 2), None))["normal"]
    held = np.random.default_rng(1).multinomial(n, shares((0, 1)).ravel()).reshape(16, 16)
    aggregate = small._collected(shares, held, np.random.default_rng(2))
    users = small._channel.part_users(aggregate)
    expected = np.array([1, 1, 1, 1, 4, 4]) * n / 21
    assert (np.abs(users - expected) < 6 * np.sqrt(expected)).all()


@pytest.mark.parametrize("d", [6, 12])
def test_parts_of_waves_have_as_many_users_as_in_the_whole(d: int) -> None:
    """Of pairs a sixth report on halves, and a fifth of all users, or 2 / d, on one attribute."""
    n, alone = 900_000, min(1 / 5, 2 / d)
    small = _Miniature(WaveGrid([16] * d, 4.0), (1, 4, 2), n, [False] * 3)
    shares = dict(_populations(small.sizes, (1, 4, 2), None))["normal"]
    held = np.random.default_rng(1).multinomial(n, shares((0, 1)).ravel()).reshape(16, 16)
    aggregate = small._collected(shares, held, np.random.default_rng(2))
    pairs = np.array([1, d - 2, d - 2]) * n * (1 - alone) / (d * (d - 1) / 2)
    expected = np.array([*(pairs * 5 / 6), *[n * alone / d] * 3, *(pairs / 6)])
    users = small._channel.part_users(aggregate)
    assert (np.abs(users - expected) < 6 * np.sqrt(expected)).all()


def test_sums_over_boxes() -> None:
    rng = np.random.default_rng(4)
    table = rng.random((5, 7))
    left = np.array([[0, 2], [3, 0], [4, 6]])
    right = np.array([[2, 5], [3, 6], [4, 6]])
    boxes = zip(left, right, strict=True)
    assert _inside(table, left, right) == pytest.approx(
        [table[a : c + 1, b : d + 1].sum() for (a, b), (c, d) in boxes]
    )
    assert _inside(table[0], left[:, :1], right[:, :1]) == pytest.approx(
        [table[0, a : c + 1].sum() for (a, _), (c, _) in zip(left, right, strict=True)]
    )


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_no_query_asks_for_all_values(size: int) -> None:
    first, last = _ranges(size, np.random.default_rng(1))
    assert (first <= last).all()
    assert size == 1 or (last - first < size - 1).all()
    if size == 3:
        seen = set(zip(first.tolist(), last.tolist(), strict=True))
        assert seen == {(0, 0), (1, 1), (2, 2), (0, 1), (1, 2)}


@pytest.mark.slow
def test_errors_between_what_is_simulated_follow_a_power_law() -> None:
    attributes = Domain.of([4, 4])
    low, high = _epsilon_node(1), _epsilon_node(2)
    few, many = round(_user_node(8)), round(_user_node(9))
    assert (few, many) == (10_000, 30_000)
    at = {
        (epsilon, n): dict(_errors(WaveGrid, attributes, epsilon, n, None, ()))
        for epsilon in (low, high)
        for n in (few, many)
    }
    for epsilon, n in at:
        assert dict(conjunction_errors(WaveGrid, attributes, epsilon, n)) == pytest.approx(
            at[epsilon, n]
        )
    epsilon, n = 1.7, 20_000
    a = (_gain(epsilon) - _gain(low)) / (_gain(high) - _gain(low))
    b = math.log(n / few) / math.log(many / few)
    for name, error in conjunction_errors(WaveGrid, attributes, epsilon, n):
        corners = [math.log(at[e, u][name]) for e in (low, high) for u in (few, many)]
        weights = [(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b]
        assert math.log(error) == pytest.approx(np.dot(corners, weights))


@pytest.mark.parametrize("system", [RangeCALM, LHIO, HIO])
def test_errors_of_unbiased_answers_fall_as_noise_does(system: Any) -> None:
    attributes = Domain.of([8, 8])
    (once,), (again,) = (conjunction_errors(system, attributes, 1.0, n) for n in (100, 10**10))
    assert again[1] == pytest.approx(once[1] / 10**4)


def test_what_is_known_of_systems() -> None:
    attributes = Domain.of([4, 4])
    assert conjunction_errors(HaarHRR2D, attributes, 1.0, 1000) == ()
    with pytest.raises(ValueError, match="pairs of attributes"):
        conjunction_errors(TDG, Domain.of([4]), 1.0, 1000)
    errors = dict(conjunction_errors(Uniform, Domain.of([8, 8]), 1.0, 10**6))
    assert errors["even"] < 0.002 < 0.1 < min(errors["normal"], errors["clusters"])
    for n in (1, 2):  # nobody may report on the pair
        assert all(error > 0 for _, error in conjunction_errors(TDG, attributes, 1.0, n))


@pytest.mark.slow
@pytest.mark.parametrize("system", [HDG, TDG, RangeCALM, LHIO, HIO, MSW, Uniform])
def test_a_guess_stands_for_the_population(system: Any) -> None:
    attributes = Domain.of([4, 4, 4])
    records = drawn_records("clusters", attributes, 20_000, np.random.default_rng(3))
    like = ExpectedRecords.of(records, attributes)
    ((name, error),) = conjunction_errors(system, attributes, 1.0, 30_000, like)
    assert name == "like"
    reference = dict(conjunction_errors(system, attributes, 1.0, 30_000))
    assert 0.6 < error / reference.get("clusters", reference["even"]) < 1.6
