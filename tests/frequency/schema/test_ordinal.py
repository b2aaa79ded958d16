"""Labels with an order: ranges, quantiles, pictures and drafts; and what people round to."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

from frequency.exceptions import InvalidQuestion
from frequency.schema import Boolean, Categorical, Dates, Numeric, Ordinal, Schema, Survey
from frequency.schema.draft import draft_schema
from frequency.storage.table import blocks
from mechdesign.base import Between
from rangeq import Flat

LABELS = ["never", "18-29: seldom", "often, or more", "daily"]


@pytest.fixture
def reads():
    return Ordinal("reads", LABELS, missing="item", title="How often?")


def test_items_are_those_of_labels_without_an_order(reads):
    plain = Categorical("reads", LABELS, missing="item", title="How often?")
    values = [*LABELS, None, "missing", "daily"]
    for given in (values, pd.Series(values), pa.array(values), pd.Series(values, dtype="category")):
        assert reads.coded(given).items.tolist() == plain.coded(given).items.tolist()
    assert reads.client_values == plain.client_values
    assert (reads.ordered, plain.ordered) == (True, False)
    with pytest.raises(ValueError, match="must be one of"):
        Ordinal("reads", LABELS, outside="clip")


@pytest.mark.parametrize("name", ["a.toml", "a.json"])
def test_files_have_them_as_categorical(reads, name, tmp_path):
    schema = Schema([reads, Categorical("sex", ["f", "m"])])
    schema.save(tmp_path / name)
    assert Schema.load(tmp_path / name) == schema
    content = reads.content()
    assert (content["kind"], content["ordered"]) == ("categorical", True)
    content["ordered"] = False
    assert type(Schema.of_content({"attributes": [content]}).attributes[0]) is Categorical
    for wrong in (1, "yes"):
        content["ordered"] = wrong
        with pytest.raises(ValueError, match="ordered is true or false"):
            Schema.of_content({"attributes": [content]})
    boolean = {**Boolean("b").content(), "ordered": True}
    with pytest.raises(ValueError, match="has no 'ordered'"):
        Schema.of_content({"attributes": [boolean]})


def test_ranges_of_labels_are_those_of_their_places(reads):
    ends = [None, *range(4)]
    for low, high in itertools.product(ends, ends):
        given = Between(*(end if end is None else LABELS[end] for end in (low, high)))
        first, last = 0 if low is None else low, 4 if high is None else high + 1
        if first < last:
            span = reads.asked(given)
            assert (span.first, span.last) == (first, last)
        else:
            with pytest.raises(InvalidQuestion, match="holds none"):
                reads.asked(given)
    assert reads.asked("18-29: seldom") == 1
    assert reads.asked("18-29: seldom:often, or more") == (1, 3)
    assert reads.asked(["daily", "missing"]) == [3, 4]
    many = reads.asked(Between(np.array(LABELS[:2]), "daily"))
    assert many.first.tolist() == [0, 1]
    for wrong in ("weekly:", Between("weekly", None), 7):
        with pytest.raises(InvalidQuestion, match="is one of never"):
            reads.asked(wrong)


def test_quantiles_are_labels(reads):
    schema = Schema([reads])
    counts = np.array([10, 20, 30, 39, 50])  # the last ones without a value
    survey = Survey(Flat(5, 30, oracle="GRR"), schema)
    columns = [label for label, n in zip([*LABELS, None], counts, strict=True) for _ in range(n)]
    reports = survey.privatize({"reads": columns}, np.random.default_rng(1))
    estimate = survey.estimate(survey.aggregate(reports))
    truth = np.repeat(LABELS, counts[:4])
    levels = np.array([0.01, 0.25, 0.5, 0.59, 0.9, 1.0])
    wanted = [truth[int(np.ceil(level * len(truth))) - 1] for level in levels]
    assert estimate.quantile(levels).tolist() == wanted
    assert estimate.quantile(0.5) == "often, or more"
    low, high = estimate.quantile_interval(0.5)
    assert reads.places(low) <= 2 <= reads.places(high)
    assert estimate.answer("often, or more:").value == pytest.approx(69 / 149, abs=1e-6)
    assert {*estimate.sample(50, np.random.default_rng(1))["reads"]} <= {*LABELS, None}
    for kind in (None, "bars", "histogram", "cdf"):
        figure = estimate.plot(kind=kind)
        texts = [getattr(each, "get_text", str)() for each in figure.findobj()]
        assert {"never", "daily"} <= {*texts}
        assert ("How often?" in texts) == (kind != "bars")


def test_drafts_take_the_order_that_is_known(tmp_path):
    letters = ["low", "middle", "high"]
    values = ["high", "low", None, "high"]
    for table in (
        pd.DataFrame({"a": pd.Categorical(values, letters, ordered=True)}),
        pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(letters))}),
        pa.table(
            {"a": pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2]), letters, ordered=True)}
        ),
    ):
        draft = draft_schema([table], "x")
        assert draft.schema.attributes == (Ordinal("a", letters, missing="item"),)
        assert "delete ordered" in draft.doubts["a"]
    unordered = pd.DataFrame({"a": pd.Categorical(values, letters)})
    assert type(draft_schema([unordered], "x").schema.attributes[0]) is Categorical
    pyreadstat.write_sav(
        pd.DataFrame({"a": [3.0, 1, 9, 3]}),
        tmp_path / "a.sav",
        column_labels={"a": "Level"},
        variable_value_labels={"a": {3: "high", 1: "low", 2: "middle", 9: "refused"}},
        missing_ranges={"a": [9]},
        variable_measure={"a": "ordinal"},
    )
    (one,) = draft_schema(blocks(tmp_path / "a.sav"), "x").schema.attributes
    assert isinstance(one, Ordinal)
    assert (one.labels, one.title) == (tuple(letters), "Level")


def test_heaps_are_said_and_change_nothing():
    plain = Numeric("age", low=0, high=99, whole=True)
    heaped = Numeric("age", low=0, high=99, whole=True, heaps=[5, 10])
    assert heaped.rounding == "multiples of 5 and 10"
    assert heaped.coded([5, 7]).items.tolist() == plain.coded([5, 7]).items.tolist()
    assert heaped.client_values == plain.client_values
    days = Dates("day", "2020-01-01", "2020-12-31", heaps=["month", "year"])
    assert days.rounding == "the first of a month and the first of a year"
    schema = Schema([heaped, days])
    assert Schema.of_content(schema.content()) == schema
    refused: list[Any] = [[0], [-5], 5, ["5"], [2.5]]
    for wrong in refused:
        with pytest.raises(ValueError, match="heap"):
            Numeric("age", low=0, high=99, whole=True, heaps=wrong)
    refused = [["day"], "month"]
    for wrong in refused:
        with pytest.raises(ValueError, match="heaps of day"):
            Dates("day", "2020-01-01", "2020-12-31", heaps=wrong)


def test_a_draft_asks_about_heaps():
    rng = np.random.default_rng(1)
    ages = rng.integers(18, 90, 2000)
    assert draft_schema([pd.DataFrame({"age": ages})], "x").doubts == {}
    rounded = np.where(rng.random(2000) < 0.5, ages // 10 * 10, ages)
    doubt = draft_schema([pd.DataFrame({"age": rounded})], "x").doubts["age"]
    assert doubt.endswith("multiples of 10: do people round? heaps = [10]")
    assert draft_schema([pd.DataFrame({"age": rounded[:50]})], "x").doubts == {}
    often_none = np.where(rng.random(2000) < 0.5, 0, ages)
    assert draft_schema([pd.DataFrame({"drinks": often_none})], "x").doubts == {}
