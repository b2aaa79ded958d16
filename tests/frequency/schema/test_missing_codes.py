"""Codes of missing values, and labels of codes: in schemas, files and drafts."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

from frequency.exceptions import InvalidCell
from frequency.schema import Boolean, Categorical, Dates, MissingCode, Numeric, Schema, Text
from frequency.schema.column import Column, MissingCodes
from frequency.schema.draft import draft_schema
from frequency.storage.table import blocks
from mechdesign.base import opened_rows
from mechdesign.base.table_columns import noted

VALUES = [35, -9, 97, 98.0, 99, 0, None, 120]

CODES = [-9, "97:99"]


def containers(values):
    texts = [None if value is None else f"{value:g}" for value in values]
    yield values
    yield texts
    yield np.array([np.nan if value is None else value for value in values])
    yield pd.Series(values)
    yield pd.Series(texts)
    yield pd.Series(texts, dtype="category")
    yield pl.Series(texts)
    yield pl.Series(values, strict=False, dtype=pl.Float64)
    yield pa.array(texts)
    yield pa.array(texts).dictionary_encode()
    yield pa.array([None if value is None else int(value) for value in values])


@pytest.mark.parametrize("policy", ["item", "skip"])
def test_codes_are_missing_in_every_container(policy):
    age = Numeric("age", low=0, high=120, whole=True, missing=policy, missing_codes=CODES)
    absent = age.size - 1 if policy == "item" else -1
    expected = [35, absent, absent, absent, absent, 0, absent, 120]
    for values in containers(VALUES):
        assert age.coded(values).items.tolist() == expected
    plain = Numeric("age", low=0, high=120, whole=True, missing=policy)
    assert plain.coded([97]).items.tolist() == [97]


def test_a_code_is_refused_where_missing_values_are():
    age = Numeric("age", low=0, high=120, whole=True, missing_codes=CODES)
    with pytest.raises(InvalidCell) as caught:
        age.coded(pd.Series([1, 2, 98]))
    assert caught.value.row == 2


@pytest.mark.parametrize(
    ("attribute", "values", "items"),
    [
        (
            Categorical("a", ["yes", "no", "01"], missing="item", missing_codes=["-", ".", 8]),
            ["no", "-", " . ", "8", 8.0, "01", ""],
            [1, 3, 3, 3, 3, 2, 3],
        ),
        (
            Boolean("a", missing="item", missing_codes=[7, "dk"]),
            ["true", 0, 7, "dk", "7"],
            [1, 0, 2, 2, 2],
        ),
        (
            Dates("a", "2020-01-01", "2020-01-09", "day", missing="item", missing_codes=[":-1"]),
            ["2020-01-02", "-1", "-99"],
            [1, 9, 9],
        ),
        (
            Text("a", 8, missing="item", missing_codes=["n/k", "9:"]),
            ["abc", "n/k", "17", "8"],
            ["abc", "", "", "8"],
        ),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_codes_of_every_kind(attribute, values, items):
    assert attribute.coded(values).items.tolist() == items


@pytest.mark.parametrize(
    ("codes", "inside", "beside"),
    [
        ([-9], [-9, "-9", "-9.0", -9.0, " -9 "], [9, "\u22129", None, "", "-90", True]),
        (["97:99"], [97, 98.5, "99"], [96.9, "97:99", 100]),
        ([":-1"], [-1, -1e300, "-7"], [0, "-0.5"]),
        (["9e2:"], [900, "1e3"], [899]),
        (["-", ".a"], ["-", " .a"], ["--", ".b", 0]),
        ([":"], [":"], [0, ""]),
    ],
    ids=str,
)
def test_what_codes_are(codes, inside, beside):
    known = MissingCodes(codes)
    assert all(value in known for value in inside)
    assert not any(value in known for value in beside)


@pytest.mark.parametrize(
    "codes",
    [
        *([None], [True], [float("nan")], [float("inf")], [""], [" "], ["9:1"], [1, 1.0]),
        *(["-", " - "], 5, "97", [[1]], ["1.2.3:4"]),
    ],
    ids=str,
)
def test_what_are_no_codes_is_refused(codes):
    with pytest.raises(ValueError, match=r"code"):
        Numeric("age", low=0, high=9, whole=True, missing_codes=codes)


FATES = [-9, {"code": "97:98", "label": "not asked", "missing": "skip"}]


@pytest.mark.parametrize("kind", ["numeric", "text"])
def test_codes_have_fates_of_their_own(kind):
    def item(value):
        """What becomes of a value, looked at by itself."""
        if value is not None and 97 <= value <= 98:
            return None if kind == "text" else -1
        if value is None or value == -9:
            return "" if kind == "text" else 120
        return str(int(value)) if kind == "text" else int(value)

    one = (
        Numeric("a", low=0, high=119, whole=True, missing="item", missing_codes=FATES)
        if kind == "numeric"
        else Text("a", missing="item", missing_codes=FATES)
    )
    values = [35, -9, 97, 98.0, 99, 0, None, 110]
    for given in containers(values):
        assert one.coded(given).items.tolist() == [*map(item, values)]
    assert one.skips
    schema = Schema([one])
    assert schema.encode({"a": values}).skipped == 2


def test_a_code_is_refused_by_itself():
    codes = [-9, {"code": 98, "missing": "refuse"}]
    age = Numeric("age", low=0, high=9, whole=True, missing="skip", missing_codes=codes)
    assert age.coded([1, None, -9]).items.tolist() == [1, -1, -1]
    with pytest.raises(InvalidCell) as caught:
        age.coded([1, None, -9, 98])
    assert caught.value.row == 3


@pytest.mark.parametrize(
    "code",
    [
        *({"label": "x"}, {"code": 1, "name": "x"}, {"code": 1, "label": 5}, {"code": None}),
        *({"code": 1, "missing": "item"}, {"code": 1, "missing": "drop"}, {}),
    ],
    ids=str,
)
def test_what_is_said_of_a_code_is_checked(code):
    with pytest.raises(ValueError, match="code"):
        Numeric("age", low=0, high=9, whole=True, missing_codes=[code])


def test_words_for_yes_and_no_are_ones_own():
    plain = Boolean("ill", missing="item")
    words = Boolean("ill", missing="item", true=["Ja", 2], false=["nein", 1])
    values = ["JA", "nein", 1, "2", 2.0, True, "no", None, 0]
    assert words.coded(values).items.tolist() == [1, 0, 0, 1, 1, 1, 0, 2, 0]
    assert words.client_values == plain.client_values
    assert Schema.of_content(Schema([words]).content()).attributes[0] == words
    with pytest.raises(InvalidCell, match="'ja' is not yes or no"):
        plain.coded(["ja"])
    for wrong in (
        {"true": ["x"], "false": ["X"]},
        {"true": [""]},
        {"false": "no"},
        {"true": [1.5]},
    ):
        with pytest.raises(ValueError, match="ill"):
            Boolean("ill", **wrong)
    with pytest.raises(ValueError, match="two meanings"):
        Boolean("ill", true=["9"], missing_codes=[9])


def test_a_label_is_no_code():
    with pytest.raises(ValueError, match="'98' is a label of a, and a code"):
        Categorical("a", ["1", "98"], missing_codes=["97:99"])


@pytest.mark.parametrize("name", ["a.toml", "a.json"])
def test_files_keep_them(name, tmp_path):
    ages = Numeric("age", low=0, high=9, whole=True, missing="item", missing_codes=[-9, "97:99"])
    schema = Schema([ages, Categorical("a", ["x"], missing_codes=("-", *FATES), title="Letter")])
    schema.save(tmp_path / name)
    assert Schema.load(tmp_path / name) == schema
    plain = Schema([Categorical("a", ["x"])])
    assert "missing_codes" not in plain.attributes[0].content()


@pytest.fixture
def survey(tmp_path):
    """A survey of SPSS with labels, and ranges of missing values."""
    frame = pd.DataFrame(
        {
            "sex": [1.0, 2, 9, 1, 2, 3],
            "age": [35.0, 98, -1, 44, 17, 60],
            "town": ["A", "B", "XX", "", "A", "B"],
        }
    )
    path = tmp_path / "people.sav"
    pyreadstat.write_sav(
        frame,
        path,
        column_labels={"sex": "Sex of respondent", "age": "Age", "town": "Town"},
        variable_value_labels={"sex": {1: "male", 2: "female", 9: "no answer"}},
        missing_ranges={"sex": [9], "age": [{"lo": 97, "hi": 99}, -1]},
    )
    return path


def test_a_draft_knows_what_a_file_of_spss_says(survey):
    draft = draft_schema(blocks(survey), "a survey")
    sex, age, _ = draft.schema.attributes
    assert isinstance(sex, Categorical)
    assert sex.labels == ("male", "female", "3")  # a value without a label keeps its number
    assert (sex.missing, sex.title) == ("item", "Sex of respondent")
    assert sex.missing_codes == (MissingCode(9, "no answer"),)
    assert isinstance(age, Numeric)
    assert (age.low, age.high) == (17, 60)
    assert set(age.missing_codes) == {"97:99", -1}


def test_a_draft_names_values_without_a_label(tmp_path):
    pyreadstat.write_sav(
        pd.DataFrame({"trust": [float(k) for k in (0, 10, 2, 1, 7, 99)]}),
        tmp_path / "a.sav",
        variable_value_labels={"trust": {0: "none", 10: "full", 99: "refused"}},
        missing_ranges={"trust": [99]},
    )
    draft = draft_schema(blocks(tmp_path / "a.sav"), "x")
    (trust,) = draft.schema.attributes
    assert isinstance(trust, Categorical)
    assert trust.labels == ("none", "1", "2", "7", "full")
    assert draft.doubts["trust"] == "1, 2, 7: values without a label keep their number"


def test_a_draft_asks_about_a_label_of_several_codes(tmp_path):
    pyreadstat.write_sav(
        pd.DataFrame({"job": [1.0, 2, 7, 8]}),
        tmp_path / "a.sav",
        variable_value_labels={"job": {1: "clerk", 2: "nurse", 7: "other", 8: "other"}},
    )
    draft = draft_schema(blocks(tmp_path / "a.sav"), "x")
    assert draft.schema.attributes == (Categorical("job", ["clerk", "nurse", "other"]),)
    assert "several codes have the label 'other'" in draft.doubts["job"]


def test_rows_of_spss_and_of_csv_are_the_same_items(survey, tmp_path):
    schema = draft_schema(blocks(survey), "a survey").schema
    found = [schema.encode(block).columns for block in blocks(survey)]
    text = "sex,age,town\nmale,35,A\nfemale,98,B\n9,-1,XX\nmale,44,\nfemale,17,A\n3,60,B\n"
    (tmp_path / "people.csv").write_text(text)
    expected = [schema.encode(block).columns for block in blocks(tmp_path / "people.csv")]
    for columns, others in zip(found, expected, strict=True):
        for one, other in zip(columns, others, strict=True):
            assert one.tolist() == other.tolist()
    assert found[0][0].tolist() == [0, 1, 3, 0, 1, 2]
    assert found[0][1].tolist() == [18, 44, 44, 27, 0, 43]


def test_what_a_file_declares_missing_is_missing_whatever_the_schema_says(survey):
    """Else -1 would be clipped into the first bin."""
    age = Numeric("age", low=0, high=120, whole=True, missing="item", outside="clip")
    (block,) = blocks(survey)
    coded = Schema([age]).encode(block)
    assert coded.columns[0].tolist() == [35, 121, 121, 44, 17, 60]
    assert coded.clipped == {}


def test_missing_values_of_stata_come_by_name(tmp_path):
    frame = pd.DataFrame({"answer": [1.0, 2.0, 1.0, np.nan], "years": [3, 4, 5, 6]})
    pyreadstat.write_dta(
        frame.astype({"answer": object}).assign(answer=[1, 2, "a", 1]),
        tmp_path / "a.dta",
        variable_value_labels={"answer": {1: "often", 2: "never"}},
        missing_user_values={"answer": ["a"]},
    )
    draft = draft_schema(blocks(tmp_path / "a.dta"), "Stata")
    answer = draft.schema.attributes[0]
    assert isinstance(answer, Categorical)
    assert answer.labels == ("often", "never")
    assert answer.missing_codes == (".a",)
    (block,) = blocks(tmp_path / "a.dta")
    assert draft.schema.encode(block).columns[0].tolist() == [0, 1, 2, 0]
    with opened_rows(tmp_path / "a.dta") as rows:  # as the releases of tables read them
        assert [cells[0] for cells, _ in rows.rows] == ["often", "never", ".a", "often"]


@pytest.mark.parametrize(
    ("values", "bounds", "codes", "said"),
    [
        ([*range(18, 80), -9], (18, 79), (-9,), "-9: codes"),
        ([*range(5), 99], (0, 4), (99,), "99: codes"),
        ([*range(18, 60), -9, 997, 998], (18, 59), (-9, 997, 998), "-9, 997, 998: codes"),
        ([*range(96), 97, 98, 99], (0, 99), (), "97, 98, 99: are these codes"),
        ([*range(-20, 20)], (-20, 19), (), ""),
        ([0, 1, 2, 3, 4, 5, 50, 99], (0, 50), (99,), "99: codes"),
        ([99], (99, 99), (), ""),
        ([1.5, 2.5, 99], (1.5, 99), (), ""),
    ],
    ids=str,
)
def test_drafts_take_no_extreme_code_for_a_bound(values, bounds, codes, said):
    draft = draft_schema([pd.DataFrame({"n": [*values, values[0]]})], "a table")
    (found,) = draft.schema.attributes
    assert isinstance(found, Numeric)
    assert found.missing_codes == codes
    assert draft.doubts.get("n", "").startswith(said)
    if found.whole:
        assert (found.low, found.high) == bounds
    # Every value is taken
    assert len(draft.schema.encode({"n": values}).columns[0]) == len(values)


def test_columns_without_codes_are_left_alone():
    column = Column("a", pa.array(["x", "y"]))
    assert column.without(MissingCodes([5])) is column
    numbers = Column("a", np.arange(4))
    assert numbers.without(MissingCodes([5])) is numbers
    assert numbers.labelled(lambda label: True) is numbers


def test_codes_of_truths_have_labels():
    field = noted("a", pa.float64(), "", [(1, "Yes"), (2, "No"), (3, "perhaps")], [])
    table = pa.table([pa.array([1.0, 2, 1])], schema=pa.schema([field]))
    assert Schema([Boolean("a")]).encode(table).columns[0].tolist() == [1, 0, 1]
    # Without labels of a file they are what they are
    with pytest.raises(InvalidCell):
        Boolean("a").coded([1, 2])


# --------------------------------------------------------------------- numbers and dates as written


@pytest.mark.parametrize(
    ("form", "texts", "numbers"),
    [
        ({"thousands": ","}, ["2,161", "950", "1,000,000.5", "-3"], [2161, 950, 1_000_000.5, -3]),
        ({"decimal": ","}, ["72,78", "5", "0,5"], [72.78, 5, 0.5]),
        ({"thousands": ".", "decimal": ","}, ["1.234,5", "12", "9.876"], [1234.5, 12, 9876]),
        ({"thousands": "'"}, ["1'000", "1000"], [1000, 1000]),
    ],
    ids=str,
)
def test_numbers_are_read_as_they_are_written(form, texts, numbers):
    edges = [-10, *np.add(sorted({*numbers}), -0.25), 2e6]
    attribute = Numeric("pay", edges, **form)
    expected = Numeric("pay", edges).coded(numbers).items.tolist()
    for values in (texts, pd.Series(texts), pl.Series(texts), pa.array(texts), numbers):
        assert attribute.coded(values).items.tolist() == expected
    content = Schema([attribute]).content()
    assert Schema.of_content(content).attributes[0] == attribute


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"thousands": ","}, "21,61"),
        ({"thousands": ","}, "2,1610"),
        ({"decimal": ","}, "72.78"),
        ({"thousands": ".", "decimal": ","}, "1.5"),
        ({"thousands": ".", "decimal": ","}, "1,000.5"),
        ({"thousands": ","}, "1e3"),
    ],
    ids=str,
)
def test_no_other_form_of_a_number_is_guessed(form, text):
    with pytest.raises(InvalidCell):
        Numeric("pay", low=0, high=1e6, bins=5, **form).coded([text])


def test_forms_that_are_none_are_refused():
    for form in ({"thousands": ",,"}, {"decimal": ";"}, {"thousands": ".", "decimal": "."}):
        with pytest.raises(ValueError, match="thousands"):
            Numeric("pay", low=0, high=9, bins=5, **form)
    for wrong in (["%d.%m"], "%d.%m.%Y", [5], ["%H:%M"], ["%Y-%m-%d %q"]):
        with pytest.raises(ValueError, match="date_format of day"):
            Dates("day", "2020-01-01", "2020-12-31", date_format=wrong)
    for zone in ("Mars/Base", "../etc", "Europe"):
        with pytest.raises(ValueError, match="zone of day"):
            Dates("day", "2020-01-01", "2020-12-31", zone=zone)


def test_dates_are_read_in_the_formats_in_order():
    day = Dates("day", "2013-01-01", "2013-12-31", date_format=["%d.%m.%Y", "%m/%d/%Y"])
    texts = ["04.03.2013", "04/03/2013", "1.1.2013"]
    expected = [62, 92, 0]
    for values in (texts, pd.Series(texts), pa.array(texts)):
        assert day.coded(values).items.tolist() == expected
    assert day.coded(pd.to_datetime(pd.Series(["2013-03-04"]))).items.tolist() == [62]
    for wrong in ("2013-03-04", "29.02.2013", "13/13/2013"):
        with pytest.raises(InvalidCell):
            day.coded([wrong])
    assert Schema.of_content(Schema([day]).content()).attributes[0] == day
    plain = Dates("day", "2013-01-01", "2013-12-31")
    assert {"date_format", "zone"}.isdisjoint(plain.content())


def test_times_with_a_zone_are_counted_by_their_local_date():
    day = Dates("day", "2013-03-01", "2013-11-30", zone="Europe/Berlin")
    texts = ["2013-03-04T23:30:14Z", "2013-03-04T23:30:14+01:00", "2013-03-04T23:30:14"]
    expected = [4, 3, 3]
    assert day.coded(texts).items.tolist() == expected
    aware = pd.Series(pd.to_datetime(["2013-03-04T23:30:14Z"]))
    assert day.coded(aware).items.tolist() == [4]
    assert day.coded(pa.array(aware)).items.tolist() == [4]
    # Days of 23 and 25 hours, and an hour that there is not
    hours = Dates("hour", "2013-03-31 00:00", "2013-03-31 23:00", "hour", zone="Europe/Berlin")
    assert hours.coded(["2013-03-31T00:59:00Z", "2013-03-31T01:00:00Z"]).items.tolist() == [1, 3]
    for wrong in ("2013-03-31T02:30:00", "2013-03-31 02:30"):
        with pytest.raises(InvalidCell):
            hours.coded([wrong])
    back = Dates("hour", "2013-10-27 00:00", "2013-10-27 23:00", "hour", zone="Europe/Berlin")
    assert back.coded(["2013-10-27T00:30:00Z", "2013-10-27T01:30:00Z"]).items.tolist() == [2, 2]
    with pytest.raises(InvalidCell):
        Dates("day", "2013-03-01", "2013-11-30").coded(["2013-03-04T23:30:14Z"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2,161", "950"], {"thousands": ",", "decimal": "."}),
        (["72,78", "3,5", "1,25"], {"thousands": "", "decimal": ","}),
        (["1.234,5", "950"], {"thousands": ".", "decimal": ","}),
    ],
)
def test_drafts_read_numbers_as_they_are_written(values, expected):
    draft = draft_schema([pd.DataFrame({"pay": values})], "a table")
    (pay,) = draft.schema.attributes
    assert isinstance(pay, Numeric)
    assert {"thousands": pay.thousands, "decimal": pay.decimal} == expected
    assert draft.schema.encode({"pay": values}).clipped == {}


def test_drafts_read_dates_of_one_form_and_ask_about_two():
    table = pd.DataFrame({"born": ["04.03.2013", "31.12.2013"], "seen": ["04/03/2013", "5/6/2013"]})
    draft = draft_schema([table], "a table")
    born, seen = draft.schema.attributes
    assert isinstance(born, Dates)
    assert born.date_format == ("%d.%m.%Y",)
    assert isinstance(seen, Categorical)
    assert "%m/%d/%Y or as %d/%m/%Y" in draft.doubts["seen"]
    assert draft.schema.encode(table).columns[0].tolist()[0] == 0
