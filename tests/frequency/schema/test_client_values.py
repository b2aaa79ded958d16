"""What clients are told of attributes: all of it, in JSON, and no float."""

import json

import numpy as np
import pytest

from frequency import Boolean, Categorical, Dates, Numeric, Text
from frequency.schema.numeric import Ordered
from tests.frequency.schema.survey_attributes import COUNTRY, ORDERED, SEX, SMOKES


def without_floats(content):
    if isinstance(content, dict):
        return all(map(without_floats, content.values()))
    return all(map(without_floats, content)) if isinstance(content, list) else True


def told_cuts(attribute):
    """The edges as a client reads them."""
    cuts = attribute.client_values["cuts"]
    if isinstance(cuts, dict):
        return [cuts["first"] + cuts["step"] * k for k in range(cuts["bins"] + 1)]
    return [float(cut) if isinstance(cut, str) else cut for cut in cuts]


@pytest.mark.parametrize("attribute", ORDERED, ids=lambda one: f"{one.name} {one.bins}")
def test_edges_are_told_exactly(attribute):
    assert isinstance(attribute, Ordered)
    cuts = attribute.cuts
    if cuts.dtype.kind == "M":
        cuts = cuts.astype("datetime64[s]").astype(np.int64)
    assert told_cuts(attribute) == cuts.tolist()
    told = json.loads(json.dumps(attribute.client_values, allow_nan=False))
    assert told == attribute.client_values
    assert without_floats(told)
    assert told["kind"] == attribute.kind
    assert (told["missing"], told["outside"]) == (attribute.missing, attribute.outside)


def test_what_clients_are_told():
    assert SEX.client_values == {
        "name": "sex",
        "kind": "categorical",
        "missing": "item",
        "outside": "refuse",
        "labels": ["female", "male"],
    }
    assert len(COUNTRY.client_values["labels"]) == 60
    policies = {"missing": "refuse", "outside": "refuse"}
    assert SMOKES.client_values == {"name": "smokes", "kind": "boolean", **policies}
    text = Text("word", 5, missing="skip", outside="clip", unit="language")
    told = {"missing": "skip", "outside": "clip", "bytes": 5}
    assert text.client_values == {"name": "word", "kind": "text", **told}
    age = Numeric("age", low=0, high=120, whole=True, unit="years", outside="clip")
    assert age.client_values["cuts"] == {"first": 0, "step": 1, "bins": 121}
    assert age.client_values["whole"] is True
    assert Numeric("mass", low=2000, high=7000, bins=50).client_values == {
        "name": "mass",
        "kind": "numeric",
        **policies,
        "whole": False,
        "cuts": {"first": 2000, "step": 100, "bins": 50},
    }
    assert Numeric("p", [0, 0.1 + 0.2, 1.0, 5e-1 + 1]).client_values["cuts"] == [
        0,
        "0.30000000000000004",
        1,
        "1.5",
    ]
    assert Numeric("n", [-3, 0, 4], whole=True).client_values["cuts"] == [-3, 0, 4]
    day = Dates("day", "1969-12-31", "1970-01-02")
    told = {"first": -86400, "step": 86400, "bins": 3}
    assert day.client_values == {"name": "day", "kind": "dates", **policies, "cuts": told}
    month = Dates("month", "1970-01", "1970-03", "month")
    assert month.client_values["cuts"] == [0, 31 * 86400, 59 * 86400, 90 * 86400]


@pytest.mark.slow
def test_descriptions_of_many_bins_are_short_where_the_steps_are_equal():
    minutes = Dates("t", "1992-01-01", "2023-11-01", "minute")
    assert minutes.bins > 2**23.9
    assert len(json.dumps(minutes.client_values)) < 150
    seconds = Numeric("n", low=0, high=2**24 - 1, whole=True)
    assert len(json.dumps(seconds.client_values)) < 150
    ratios = Numeric("x", low=1, high=2, bins=1000, spacing="logarithmic")
    assert len(json.dumps(ratios.client_values)) < 20_000


def test_labels_are_told_as_text():
    assert Categorical("x", [7, "a"]).client_values["labels"] == ["7", "a"]
    assert Boolean("x").client_values.keys() == {"name", "kind", "missing", "outside"}


def test_edges_are_integers_that_json_holds_exactly():
    largest = 2**53 - 2
    attribute = Numeric("n", low=largest - 3, high=largest, whole=True)
    assert attribute.coded([largest]).items.tolist() == [3]
    assert attribute.coded([str(largest - 3)]).items.tolist() == [0]
    with pytest.raises(ValueError, match="must be an integer, got 9007199254740991"):
        Numeric("n", low=0, high=largest + 1, bins=2, whole=True)
    with pytest.raises(ValueError, match="must be a finite number"):
        Numeric("x", [0.5, 2.0**53])
