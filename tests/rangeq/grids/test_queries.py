"""Queries: grouped by the attributes they ask about, and refused where they are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frequency.schema import Domain
from rangeq.core.estimate import InvalidRange
from rangeq.grids.cells import MOST_ATTRIBUTES, grouped

ATTRIBUTES = Domain.of({"a": 8, "b": 5, "c": 3})


def test_every_query_is_in_the_group_of_its_attributes() -> None:
    rng = np.random.default_rng(1)
    sizes = np.array(ATTRIBUTES.sizes)
    places = np.array([rng.permutation(3)[:2] for _ in range(60)])
    ends = np.sort(rng.integers(0, sizes[places] - 1, size=(2, 60, 2)), axis=0)
    number, groups = grouped(ATTRIBUTES, places, *ends)
    assert number == 60
    assert [group.places for group in groups] == [(0, 1), (0, 2), (1, 2)]
    assert sorted(np.concatenate([group.rows for group in groups])) == list(range(60))
    for group in groups:
        for row, left, right in zip(group.rows, group.left, group.right, strict=True):
            asked = dict(zip(places[row], ends[:, row].T.tolist(), strict=True))
            found = zip(group.places, np.stack([left, right], axis=1).tolist(), strict=True)
            assert dict(found) == asked


def test_attributes_by_name_by_place_or_once_for_all_are_the_same() -> None:
    left, right = [[0, 1], [2, 0]], [[1, 3], [2, 6]]
    _, (expected,) = grouped(ATTRIBUTES, [[2, 0], [2, 0]], left, right)
    assert expected.places == (0, 2)
    assert expected.left.tolist() == [[1, 0], [0, 2]]
    assert expected.right.tolist() == [[3, 1], [6, 2]]
    for places in ([2, 0], ["c", "a"], [["c", "a"]] * 2):
        _, (group,) = grouped(ATTRIBUTES, places, left, right)
        assert group.places == expected.places
        for found, known in zip(group, expected, strict=True):
            np.testing.assert_array_equal(found, known)


def test_attributes_asked_for_in_whole_are_left_out() -> None:
    places = [[0, 1, 2], [2, 0, 1], [0, 1, 2], [1, 2, 0]]
    left, right = [[0, 2, 0], [0, 0, 2], [0, 0, 0], [2, 0, 1]], [[7, 3, 2], [2, 7, 3], [7, 4, 2]]
    number, groups = grouped(ATTRIBUTES, places, left, [*right, [3, 2, 7]])
    assert number == 4
    found = [(g.places, g.rows.tolist(), g.left.tolist(), g.right.tolist()) for g in groups]
    assert found == [
        ((), [2], [[]], [[]]),
        ((1,), [0, 1], [[2], [2]], [[3], [3]]),
        ((0, 1), [3], [[1, 2]], [[7, 3]]),
    ]


def test_no_queries_have_no_groups() -> None:
    nothing = np.zeros((0, 2), dtype=int)
    assert grouped(ATTRIBUTES, nothing, nothing, nothing) == (0, [])


@pytest.mark.parametrize(
    ("places", "left", "right", "index", "message"),
    [
        ([[0, 1], [0, 3]], [[0, 0]] * 2, [[1, 1]] * 2, 1, "attributes are 0 .. 2"),
        ([[0, 1], [-1, 1]], [[0, 0]] * 2, [[1, 1]] * 2, 1, "attributes are 0 .. 2"),
        ([[0, 1], [1, 1]], [[0, 0]] * 2, [[1, 1]] * 2, 1, "distinct attributes"),
        ([0, 1], [[0, 0]] * 2, [[7, 4], [7, 5]], 1, "not ranges within"),
        ([0, 1], [[-1, 0]], [[1, 1]], 0, "not ranges within"),
        ([0, 1], [[0, 2]], [[1, 1]], 0, "not ranges within"),
        (["a", "z"], [[0, 0]], [[1, 1]], None, "an attribute is one of"),
        ([0, 1], [[0.0, 0.0]], [[1, 1]], None, "must be integers"),
        ([0.0, 1.0], [[0, 0]], [[1, 1]], None, "must be integers"),
        ([0, 1], [0, 0], [1, 1], None, "must have shape"),
        ([0, 1], [[0, 0]], [[1, 1]] * 2, None, "must have shape"),
        ([0, 1, 2], [[0, 0]], [[1, 1]], None, "must have shape"),
    ],
)
def test_what_is_no_query_is_refused(
    places: Any, left: Any, right: Any, index: int | None, message: str
) -> None:
    with pytest.raises(InvalidRange, match=message) as caught:
        grouped(ATTRIBUTES, places, left, right)
    assert caught.value.index == index


def test_the_number_of_attributes_is_limited() -> None:
    many = Domain.of([2] * (MOST_ATTRIBUTES + 1))
    zeros = np.zeros((1, MOST_ATTRIBUTES + 1), dtype=int)
    assert grouped(many, np.arange(MOST_ATTRIBUTES), zeros[:, 1:], zeros[:, 1:])[0] == 1
    with pytest.raises(InvalidRange, match="must have shape"):
        grouped(many, np.arange(MOST_ATTRIBUTES + 1), zeros, zeros)
