"""Conditions as text: every label and value can be asked for, and what is wrong is named."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency import (
    Between,
    Boolean,
    Categorical,
    Dates,
    InvalidQuestion,
    Numeric,
    Ordinal,
    Schema,
    Text,
)
from frequency.schema.attribute import Span
from rangeq.cli.where_text import where_of

AGE = Numeric("age", low=0, high=120, whole=True, unit="years", missing="item")
GROUP = Numeric("age group", low=0, high=119, bins=12, whole=True)
DELAY = Numeric("delay", [-60, 0, 0.1, 0.3, 600], unit="minutes", outside="item")
RENT = Numeric("rent", [0, 18, 64, 100], unit="euros")
SEX = Categorical("sex", ["female", "male"], missing="item")
SMOKES = Boolean("smokes")
SEEN = Dates("seen", "2013-01-01", "2014-12-31", "month")
MINUTE = Dates("minute", "2013-01-01 05:00", "2013-01-01 23:59", "minute")
YEAR = Dates("year", "2013-01-01", "2014-12-31", "year")
WEEK = Dates("week", "2013-01-01", "2013-12-31", "week")
HOSTILE = [
    "a",
    "b",
    "a,b",
    "a and b",
    "a and age 5",
    "and",
    "age 5",
    "label 7",
    "a:b",
    "=",
    "1:2",
    "x = y",
    ", ",
    "a,",
    " a",
    "x ",
    "\tb",
    "sex female",
    "Trinidad and Tobago",
    "Washington, D.C.",
]
LABEL = Categorical("label", HOSTILE)
OFTEN = Ordinal("often", ["never", "often", "daily"])


@pytest.mark.parametrize(
    ("attributes", "text", "expected"),
    [
        ([AGE], "18:64", {"age": Between("18", "64")}),
        ([AGE], "age 18:64", {"age": Between("18", "64")}),
        ([AGE], " age = 18 : 64 ", {"age": Between("18", "64")}),
        ([AGE], "age=44", {"age": "44"}),
        ([AGE, SEX], "age==44 and sex == female", {"age": "44", "sex": "female"}),
        ([LABEL], "label == =", {"label": "="}),
        ([OFTEN], "often:", {"often": Between("often", None)}),
        (
            [OFTEN, SEX],
            "often never:often and sex male",
            {"often": Between("never", "often"), "sex": "male"},
        ),
        ([OFTEN], "never,daily", {"often": ["never", "daily"]}),
        ([AGE], "44", {"age": "44"}),
        ([AGE], "60:", {"age": Between("60", None)}),
        ([AGE], ":17", {"age": Between(None, "17")}),
        ([AGE], ":", {"age": Between(None, None)}),
        ([AGE], "missing", {"age": "missing"}),
        ([AGE], "1, 2,missing", {"age": ["1", " 2", "missing"]}),
        ([AGE, SEX], "age 18:64 and sex female", {"age": Between("18", "64"), "sex": "female"}),
        ([AGE, SEX], "sex=female  and  age=18:", {"sex": "female", "age": Between("18", None)}),
        ([AGE, GROUP], "age group 0:9", {"age group": Between("0", "9")}),
        (
            [AGE, GROUP],
            "age group 10 to 19 and age 12",
            {"age group": Between(10, 19), "age": "12"},
        ),
        ([DELAY], "-60:-1.5", {"delay": Between("-60", "-1.5")}),
        ([DELAY], "outside", {"delay": "outside"}),
        ([DELAY], "0.1 to 0.3", {"delay": Between(0.1, 0.3)}),
        ([SMOKES], "YES", {"smokes": "YES"}),
        ([SEEN], "2013-02", {"seen": "2013-02"}),
        ([SEEN], "seen 2013:2014", {"seen": Between("2013", "2014")}),
        ([YEAR], "2014", {"year": "2014"}),
        ([SEEN], "seen 2013-01-01:2013-03-31", {"seen": Between("2013-01-01", "2013-03-31")}),
        (
            [SEEN, SEX],
            "seen 2013-01: and sex male",
            {"seen": Between("2013-01", None), "sex": "male"},
        ),
        ([MINUTE], "2013-01-01 05:07", {"minute": "2013-01-01 05:07"}),
        (
            [MINUTE],
            "2013-01-01 05:00:2013-01-01 06:30",
            {"minute": Between("2013-01-01 05:00", "2013-01-01 06:30")},
        ),
        ([MINUTE], "2013-01-01 05:00:", {"minute": Between("2013-01-01 05:00", None)}),
        ([MINUTE], ":2013-01-01 05:30", {"minute": Between(None, "2013-01-01 05:30")}),
        ([LABEL], "a,b", {"label": "a,b"}),
        ([LABEL], "b,a", {"label": ["b", "a"]}),
        ([LABEL], "b,a,b", {"label": ["b", "a,b"]}),
        ([LABEL], "b,Washington, D.C.", {"label": ["b", "Washington, D.C."]}),
        ([LABEL], "label 7", {"label": "label 7"}),
        ([LABEL], "label label 7", {"label": "label 7"}),
        ([LABEL, AGE], "label a and age 5", {"label": "a and age 5"}),
        ([LABEL, AGE], "label b and age 5", {"label": "b", "age": "5"}),
        ([LABEL, AGE], "age 5 and label a and age 5", {"age": "5", "label": "a and age 5"}),
        ([LABEL, AGE], "label a,and and age 5", {"label": ["a", "and"], "age": "5"}),
    ],
)
def test_texts_are_read(attributes, text, expected):
    schema = Schema(attributes)
    where = where_of(text, schema)
    assert where == expected
    for name, value in where.items():
        schema[name].asked(value)


@pytest.mark.parametrize("label", HOSTILE)
@pytest.mark.parametrize("form", ["{}", "label {}", "label={}"])
def test_every_label_can_be_asked_for(label, form):
    assert where_of(form.format(label), Schema([LABEL])) == {"label": label}


@pytest.mark.parametrize("label", HOSTILE)
def test_every_label_can_be_asked_for_among_others(label):
    schema = Schema([AGE, LABEL, SEX])
    assert where_of(f"age 3:5 and label {label}", schema) == {
        "age": Between("3", "5"),
        "label": label,
    }
    expected = {"label": label, "sex": "male"}
    if label != "sex female":
        assert where_of(f"label {label} and sex male", schema) == expected


@pytest.mark.parametrize("attribute", [AGE, GROUP, DELAY, SEX, SMOKES, SEEN, WEEK, LABEL])
def test_what_tables_call_an_item_asks_for_it(attribute):
    """Whatever stands in an answer's question can be asked."""
    schema = Schema([attribute])
    for item, label in enumerate(attribute.item_labels):
        asked = attribute.asked(where_of(f"{attribute.name} {label}", schema)[attribute.name])
        if isinstance(asked, Span):
            assert (float(asked.first), float(asked.last)) == (item, item + 1)
        else:
            assert asked == item


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "and", " ", " and ", ",", ":", "=", "name", "y a"]))
        .map("".join)
        .filter(bool),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
def test_any_label_can_be_asked_for(labels):
    one, other = Categorical("name", labels), Categorical("y", labels)
    for label in labels:
        assert where_of(label, Schema([one])) == {"name": label}
        for form in ("name {}", "name={}"):
            text = form.format(label)
            if text not in labels:
                assert where_of(text, Schema([one])) == {"name": label}
            assert where_of(text, Schema([one, other])) == {"name": label}


def test_the_values_that_were_found_are_what_there_is():
    words = Schema([Text("word", 8)])
    assert where_of("a and b", words, ["a and b", "word x"]) == {"word": "a and b"}
    assert where_of("word a", words, ["a", "word x"]) == {"word": "a"}
    assert where_of("word x", words, ["a", "word x"]) == {"word": "word x"}
    with pytest.raises(InvalidQuestion, match="'z' is not among the 2 frequent values of word"):
        where_of("z", words, ["a", "b"])
    with pytest.raises(InvalidQuestion, match=r"the 0 frequent values of word that were found$"):
        where_of("z", words, [])
    with pytest.raises(InvalidQuestion, match=r"found: 7$"):
        where_of("age 0:3", Schema([AGE]), ["7"])


@pytest.mark.parametrize(
    ("attributes", "text", "message"),
    [
        ([AGE], "", "age is an integer from 0 to 120, got ''"),
        ([AGE], "agee 18:64", "got 'agee 18'"),
        ([AGE], "age > 64", "age 18: is 18 or more, and age :64 is 64 or less; got '> 64'"),
        ([SEX, AGE], "sex male and age <=64", "age :64 is 64 or less; got '<=64'"),
        ([RENT], "rent <= 64", "ranges that end before their last, such as rent 18:64"),
        ([RENT], "rent <= 64", "rent :64 is below 64; got '<= 64'"),
        ([AGE], "64:18", "holds none"),
        ([AGE], "200", "age is an integer from 0 to 120"),
        ([AGE], "1.5", "got '1.5'"),
        ([AGE], "1,2,x", "got 'x'"),
        ([AGE], "0:17,65:", "between commas there are values, and no ranges"),
        ([AGE], "age 18:64 and age 3", "named twice"),
        ([GROUP], "15", "'15' is not a bin of age group, such as 10 to 19: ask for a range"),
        ([SEX], "sex femal", "sex is one of female, male, or missing, got 'femal'"),
        ([SEX], "female:male", "sex is one of female, male, or missing, got 'female:male'"),
        ([SEX, AGE], "femal", "a condition begins with the name of an attribute, sex, age, got"),
        ([SEX, AGE], "sex female and age x", "age is an integer from 0 to 120, got 'x'"),
        ([SEX, AGE], "sex femal and age 18:64", "or missing, got 'femal'"),
        ([SEX, AGE], "sex female and height 3", "got 'female and height 3'"),
        ([SEX, AGE], "sex female and sex male", "named twice"),
        ([SEX, AGE], "and", "a condition begins with"),
        ([SEX, AGE], "age", "a condition begins with"),
        ([SEX, AGE], "age>65", "age is asked for by ranges that include their ends"),
        ([SEX, AGE], "age =", "age is an integer"),
        ([SEX, AGE], " and ".join(["age 3"] * 300), "there are 300 conditions"),
        ([AGE], ",".join(["3"] * 5000) + ",", "got ''"),
        ([SEEN], "2013-13", "seen is a date from 2013-01-01 to 2014-12-31, got '2013-13'"),
        ([SEEN], "2013-02-03", "is not a bin of seen"),
        ([SEEN], "2013", "'2013' is not a bin of seen, such as 2013-01: ask for a range"),
        ([YEAR], "2019", "is a date from"),
        ([WEEK], "2014-03:2013-01", "holds none"),
        ([MINUTE], "2013-01-01 05:00:07", "is not a bin of minute"),
        ([SMOKES], "maybe", "smokes is yes or no"),
        ([AGE], "agee 18:", "got 'agee 18': a condition may begin with the name of the attribute,"),
        ([AGE], "agee 18:", "which is age"),
        ([AGE], "3 or 5", "got '3 or 5': join conditions with ' and '; 'or' is not supported"),
        ([AGE, SEX], "sex male or age 5", ": join conditions with ' and '; 'or' is not supported"),
        ([AGE, SEX], "age 5 and smokes yes", ": 'smokes yes' is about none of age, sex"),
        ([AGE, SEX], "age 5 AND sex male", "'5 AND sex male': join conditions with ' and '"),
        ([AGE], "6-8", "got '6-8': a range is 6:8"),
        ([DELAY, SEX], "sex male and delay -6 - 8.5", "got '-6 - 8.5': a range is -6:8.5"),
    ],
)
def test_what_is_wrong_is_named(attributes, text, message):
    with pytest.raises(InvalidQuestion) as raised:
        where_of(text, Schema(attributes))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_long_texts_are_read_in_no_time():
    labels = [f"{a}, {b}" for a, b in itertools.product("abcdefgh", repeat=2)]
    place = Categorical("place", labels)
    assert where_of(",".join(labels * 20), Schema([place])) == {"place": labels * 20}
    names = [Numeric(f"x{k}", low=0, high=9, whole=True) for k in range(40)]
    text = " and ".join(f"x{k} 3:5" for k in range(40))
    assert where_of(text, Schema(names)) == {f"x{k}": Between("3", "5") for k in range(40)}


def test_line_breaks_of_labels_can_be_typed():
    named = Schema([Categorical("job", ["cook\nor baker", "no\\next", "x"]), AGE])
    assert where_of(r"job cook\nor baker", named) == {"job": "cook\nor baker"}
    assert where_of("job cook\nor baker and age 5", named) == {"job": "cook\nor baker", "age": "5"}
    assert where_of(r"job no\next", named) == {"job": r"no\next"}
