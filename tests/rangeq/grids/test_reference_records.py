"""Populations of several attributes: what is drawn from them, and guesses of one."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.exceptions import InvalidValue
from frequency.schema import Domain
from rangeq.core.workload_sums import reference_shares
from rangeq.grids.sampling import REFERENCE_RECORDS, ExpectedRecords, drawn_records
from tests.goodness_of_fit import FALSE_ALARM, goodness


@pytest.mark.parametrize("name", REFERENCE_RECORDS)
def test_records_have_the_law_of_their_population(name: str) -> None:
    """Chi-square of pairs of values: not what independent attributes have, but for "even"."""
    attributes = Domain.of([6, 9, 6])
    records = drawn_records(name, attributes, 50_000, np.random.default_rng(2))
    given = [REFERENCE_RECORDS[name](size) for size in attributes.sizes]
    for j, k in attributes.pairs:
        shares = given[j].T @ given[k] / len(given[j])
        assert shares.sum() == pytest.approx(1)
        seen = np.bincount(records[:, j] * shares.shape[1] + records[:, k], minlength=shares.size)
        assert goodness(seen, np.maximum(shares, 1e-12).ravel()) > FALSE_ALARM
        alone = np.outer(shares.sum(axis=1), shares.sum(axis=0)).ravel()
        if name != "even":
            assert goodness(seen, np.maximum(alone, 1e-12)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("name", "margin"),
    [("even", "even"), ("normal", "smooth"), ("skewed", "skewed"), ("heaped", "heaped")],
)
def test_attributes_have_the_distribution_of_one(name: str, margin: str) -> None:
    shares = REFERENCE_RECORDS[name](60).mean(axis=0)
    assert np.abs(np.cumsum(shares - reference_shares(margin, 60))).max() < 0.02


@pytest.mark.parametrize("size", [1, 2, 3])
def test_attributes_of_few_values(size: int) -> None:
    for given in REFERENCE_RECORDS.values():
        found = given(size)
        assert found.shape[1] == size
        assert found.sum(axis=1) == pytest.approx(1)


def test_guesses_of_records_are_compared_by_what_they_hold() -> None:
    attributes = Domain({"a": 3, "b": 2})
    one, other = (ExpectedRecords.of(like, attributes) for like in ([[0, 1]], {"b": [1], "a": [0]}))
    assert one == other
    assert hash(one) == hash(other)
    assert ExpectedRecords.of(one, attributes) == one
    assert one.records.tolist() == [[0, 1]]
    assert one != ExpectedRecords.of([[1, 1]], attributes)
    with pytest.raises(InvalidValue, match="2"):
        ExpectedRecords.of([[0, 2]], attributes)
    with pytest.raises(ValueError, match="like must have a record at least, got none"):
        ExpectedRecords.of(np.zeros((0, 2), dtype=int), attributes)
