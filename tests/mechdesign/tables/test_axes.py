"""The axes of contingency tables."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.exceptions import InvalidTable
from mechdesign.tables.axes import Axes

AXES = Axes({"region": ["n", "s"], "age": ["young", "old"], "answer": ["yes", "no", "?"]})


def test_cells_are_in_the_order_of_a_flat_array():
    places = np.arange(12).reshape(AXES.shape)
    assert (AXES.shape, AXES.size) == ((2, 2, 3), 12)
    for flat, labels in enumerate(AXES.cells()):
        where = dict(zip(AXES.names, labels, strict=True))
        assert places[AXES.where(where)].tolist() == [flat]


def test_margins_are_sums_over_the_other_axes():
    values = np.random.default_rng(1).integers(0, 9, AXES.shape)
    assert AXES.margin(values, ["answer", "region"]).tolist() == values.sum(axis=1).tolist()
    assert AXES.margin(values, []).tolist() == values.sum()
    for names in ([], ["age"], ["answer", "region"], list(AXES.names)):
        sums = np.bincount(AXES.groups(names), weights=values.ravel())
        assert sums.tolist() == AXES.margin(values, names).ravel().tolist()


def test_conditions_choose_cells():
    values = np.arange(12).reshape(AXES.shape)
    chosen = AXES.where({"answer": ["yes", "?"], "age": "old"})
    assert values[chosen].tolist() == values[:, 1, [0, 2]].ravel().tolist()
    assert AXES.where({}).all()
    assert not AXES.where({"age": []}).any()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, "names of axes are texts, one at least"),
        ({"a": []}, "labels of 'a' are texts, one at least"),
        ({"a": "xy"}, "labels of 'a' are texts"),
        ({"a": ["x", 3]}, "labels of 'a' are texts"),
        ({"a": ["x", " "]}, "labels of 'a' are texts"),
        ({"": ["x"]}, "names of axes are texts"),
        ({"a": ["x", "y", "x"]}, "'x' comes twice"),
    ],
)
def test_what_are_no_axes_is_refused(labels, message):
    with pytest.raises(InvalidTable, match=message):
        Axes(labels)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"sex": "f"}, "axes are some of region, age, answer"),
        ({"age": "middle"}, "age has the labels young, old, got 'middle'"),
        ({"age": ["old", 3]}, "got 3"),
    ],
)
def test_what_is_not_there_is_refused(where, message):
    with pytest.raises(InvalidTable, match=message):
        AXES.where(where)
    for names in (["sex"], ["age", "age"], "age"):
        with pytest.raises(InvalidTable):
            AXES.margin(np.zeros(AXES.shape), names)
