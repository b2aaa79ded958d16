"""The published post-processing of the baselines: the same reports, another estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frequency import Between
from rangeq.grids import LHIO, MSW, TDG, HierarchicalHistogram2D, RangeCALM
from tests.rangeq.grids.populations import people

SIZES = [8, 8, 8]
RECORDS = people("normal", 20_000, 3, 8, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("system", "option"),
    [
        (RangeCALM, "nonnegative"),
        (LHIO, "nonnegative"),
        (HierarchicalHistogram2D, "nonnegative"),
        (MSW, "smooth"),
    ],
)
def test_it_is_the_servers_alone_and_printed(system: Any, option: str) -> None:
    default, published = system(SIZES, 1.0), system(SIZES, 1.0, **{option: True})
    assert f"{option}=True" in repr(published)
    assert default != published
    assert default.parameters == published.parameters
    aggregate = default.simulate(1, np.random.default_rng(2), RECORDS)
    where = {0: Between(1, 3), 2: Between(2, 4)}
    values = [system.estimate(aggregate).answer(where).value for system in (default, published)]
    assert values[0] != values[1]


@pytest.mark.parametrize("system", [RangeCALM, LHIO, HierarchicalHistogram2D])
def test_pairs_are_distributions_that_agree(system: Any) -> None:
    protocol = system(SIZES, 1.0, nonnegative=True)
    aggregate = protocol.simulate(1, np.random.default_rng(3), RECORDS)
    estimate, linear = protocol.estimate(aggregate), system(SIZES, 1.0).estimate(aggregate)
    pairs = {(j, k): estimate.response_matrix(j, k) for j, k in ((0, 1), (0, 2), (1, 2))}
    assert min(table.min() for table in pairs.values()) >= 0
    assert all(table.sum() == pytest.approx(1) for table in pairs.values())
    np.testing.assert_allclose(pairs[0, 1].sum(axis=1), pairs[0, 2].sum(axis=1), atol=1e-3)
    np.testing.assert_allclose(pairs[0, 1].sum(axis=0), pairs[1, 2].sum(axis=1), atol=1e-3)
    assert linear.response_matrix(0, 1).min() < 0


def test_calm_is_then_tdg_of_single_values() -> None:
    calm: Any = RangeCALM(SIZES, 1.0, nonnegative=True)
    grids: Any = TDG(SIZES, 1.0, granularity=8)
    aggregate = calm.simulate(1, np.random.default_rng(4), RECORDS)
    assert calm.channel == grids.channel
    np.testing.assert_array_equal(
        calm.estimate(aggregate).response_matrix(1, 2),
        grids.estimate(aggregate).response_matrix(1, 2),
    )


def test_without_noise_it_changes_nothing() -> None:
    systems: tuple[Any, ...] = RangeCALM, LHIO
    for system in systems:
        aggregate = system([2, 2, 2], 12.0).simulate(1, np.random.default_rng(5), RECORDS // 4)
        default, published = (
            system([2, 2, 2], 12.0, nonnegative=option).estimate(aggregate).response_matrix(0, 1)
            for option in (False, True)
        )
        np.testing.assert_allclose(default, published, atol=1e-6)
