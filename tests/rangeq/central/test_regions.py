"""Trees of regions by names."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.exceptions import InvalidQuestion
from mechdesign.exceptions import InvalidTable
from rangeq.central.regions import Regions

PATHS = [("E", "Kent", "Dover"), ("W",), ("E", "Surrey", "Town"), ("E", "Kent", "Town"), ("E", "X")]


def test_regions_come_by_depth_and_leaves_as_told():
    regions = Regions(PATHS)
    assert [len(path) for path in regions.paths] == [1, 1, 2, 2, 2, 3, 3, 3]
    assert [regions.paths[leaf] for leaf in regions.leaves] == PATHS
    for number, path in enumerate(regions.paths):
        parent = regions.parents[number]
        assert parent < number
        assert path[:-1] == (regions.paths[parent] if parent >= 0 else ())
    assert regions.depths.tolist() == [len(path) - 1 for path in regions.paths]
    assert [regions.paths[k] for k in np.flatnonzero(regions.inner)] == [
        ("E",),
        ("E", "Kent"),
        ("E", "Surrey"),
    ]


def test_sums_are_those_of_the_leaves_below():
    regions, counts = Regions(PATHS), np.array([1, 2, 4, 8, 16])
    for number, path in enumerate(regions.paths):
        below = [leaf[: len(path)] == path for leaf in PATHS]
        assert regions.sums(counts)[number] == counts[below].sum()
    asked = [("E",), ("E", "Kent"), ("W",)]
    numbers = [regions.number(path) for path in asked]
    assert regions.covered(numbers).tolist() == [2, 1, 1, 2, 1]
    assert regions.covered([]).tolist() == [0] * 5


def test_regions_are_found_by_names_and_paths():
    regions = Regions(PATHS)
    assert regions.paths[regions.number("Dover")] == ("E", "Kent", "Dover")
    assert regions.paths[regions.number(["E", "Kent", "Town"])] == ("E", "Kent", "Town")
    with pytest.raises(InvalidQuestion, match="2 regions are called 'Town': give a path"):
        regions.number("Town")
    for unknown in ("London", ("Kent", "Dover"), ()):
        with pytest.raises(InvalidQuestion, match="there is no region"):
            regions.number(unknown)


def test_parents_are_the_same_tree():
    by_parents = Regions.from_parents(
        {"Dover": "Kent", "Guildford": "Surrey", "Kent": "E", "Surrey": "E", "X": "E"}
    )
    by_paths = Regions([("E", "Kent", "Dover"), ("E", "Surrey", "Guildford"), ("E", "X")])
    assert by_parents.paths == by_paths.paths
    assert by_parents.leaves.tolist() == by_paths.leaves.tolist()
    assert repr(by_paths) == "<Regions: 6, of which 3 are leaves>"


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "one leaf at least"),
        (["Kent"], "sequence of names, got 'Kent'"),
        ([()], "sequence of names"),
        ([("E", " ")], "sequence of names"),
        ([("E", 3)], "sequence of names"),
        ([("E", "K"), ("E", "K")], "comes twice"),
        ([("E", "K"), ("E",)], "has parts"),
        ([("E",), ("E", "K")], "has parts"),
    ],
)
def test_what_is_no_tree_is_refused(paths, message):
    with pytest.raises(InvalidTable, match=message):
        Regions(paths)


@pytest.mark.parametrize(
    "parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"x": "a", "a": "b", "b": "a"}]
)
def test_a_region_is_no_part_of_itself(parents):
    with pytest.raises(InvalidTable, match="part of itself"):
        Regions.from_parents(parents)
