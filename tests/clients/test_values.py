"""A client makes of every value the item that `Schema.encode` makes of it, or refuses it too."""

import datetime as dt
import json
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rangeq.grids
from frequency import (
    GRR,
    OUE,
    Boolean,
    Categorical,
    Dates,
    Numeric,
    Schema,
    Survey,
    Text,
    heavy,
    marginals,
)
from frequency.clients import Client, ClientError, RefusedValue, load_client
from frequency.schema import Domain
from frequency.storage import load_protocol, save_protocol
from tests.clients.node import Node, evaluated
from tests.clients.value_cases import (
    JSON_VALUES,
    RECORDS,
    REFUSED,
    SHAPES,
    TRUTH,
    near,
    payload_of,
    policies,
    signed,
    truthful,
)
from tests.tape import Tape

SETTINGS = settings(derandomize=True, deadline=None, max_examples=400)
DEVICE = Path(__file__).parents[2] / "frequency" / "clients" / "device.py"


def told(client: Client, value: Any) -> Any:
    """A payload, or that the value is refused."""
    try:
        return client.privatize_one(value)
    except RefusedValue:
        return REFUSED


def truth(schema: Schema) -> Client:
    return load_client(json.loads(json.dumps(truthful(schema))), words=lambda: TRUTH)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_value_of_every_attribute(shape):
    kinds = set()
    for given_policies in policies(shape):
        attribute = SHAPES[shape](**given_policies)
        schema = Schema([attribute])
        client = truth(schema)
        for value in [*JSON_VALUES, *near(attribute)]:
            expected = payload_of(schema, value)
            assert told(client, value) == expected, (given_policies, value)
            kinds.add(expected if expected in (REFUSED, None) else "item")
    assert kinds == {REFUSED, None, "item"}


@pytest.mark.parametrize(("schema", "values"), RECORDS, ids=lambda one: "")
def test_records_by_names_and_in_order(schema, values):
    client = truth(schema)
    found = [told(client, value) for value in values]
    assert found == [payload_of(schema, value) for value in values]
    assert REFUSED in found


OTHERS = [
    *(Decimal("7"), Decimal("7.50"), Decimal("NaN"), Decimal("Infinity"), Decimal("1e40")),
    *(Fraction(7), Fraction(15, 2), 10**400, -(10**400), 10**5000, math.nan, math.inf, -math.inf),
    *(np.int8(7), np.float32(7.5), np.float64(7), np.float64("nan"), np.str_("a"), np.bool_(True)),
    *(pd.NA, pd.NaT, pd.Timestamp("2013-01-01 05:00"), pd.Timestamp(1, tz="UTC"), b"a", 7j, "a\0"),
    *(dt.date(2013, 1, 31), dt.datetime(2013, 1, 31), dt.datetime(2013, 1, 1, 5, 59, 59, 999_999)),
    *(dt.datetime(2013, 1, 1, tzinfo=dt.UTC), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.time(5)),
    *(dt.timedelta(1), object(), ("a",), {"a"}, np.array([7]), range(3), 2**53 + 1, 1 << 64),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_values_that_only_python_has(shape):
    for given_policies in policies(shape):
        schema = Schema([SHAPES[shape](**given_policies)])
        client = truth(schema)
        for value in OTHERS:
            assert told(client, value) == payload_of(schema, value), (given_policies, type(value))


DIGITS = st.text("0123456789.+-eE _\t\n\u0663\uff11xn", max_size=9)
SPELT = st.floats(allow_nan=True).map(str) | st.integers().map(str) | DIGITS
NUMBERS = (
    st.floats()
    | st.integers(-(2**70), 2**70)
    | st.decimals(allow_nan=False)
    | st.builds(lambda number, ends: ends[0] + number + ends[1], SPELT, st.tuples(*[SPELT] * 2))
    | st.builds(lambda number, space: space + number, SPELT, st.text(" \t\r\n\x0b\xa0", max_size=2))
)
TIMES = (
    st.datetimes()
    | st.dates()
    | st.datetimes().map(lambda time: time.isoformat(" "))
    | st.dates().map(str)
    | st.from_regex(r"\A[0129]\d[0-9]\d-[01]\d(-[0-3]\d([T ][0-2]\d(:[0-6]\d){0,2})?)?\Z")
    | st.text("0123456789-T:. ", max_size=12)
)
TEXTS = st.text(st.characters(), max_size=9) | st.sampled_from(["NA", "", "yes", "\ud800"])
ANY = [NUMBERS, TIMES, TEXTS, st.booleans() | st.none()]
CLIENTS = [
    (schema, truth(schema))
    for shape in SHAPES
    for given_policies in policies(shape)
    for schema in [Schema([SHAPES[shape](**given_policies)])]
    if "skip" in given_policies.values()
]


@pytest.mark.slow
@SETTINGS
@given(st.sampled_from(CLIENTS), st.one_of(*ANY))
@example(CLIENTS[0], "\ud800")
def test_any_value_of_any_attribute(pair, value):
    schema, client = pair
    assert told(client, value) == payload_of(schema, value)


EDGES = st.lists(
    st.floats(-1e15, 1e15) | st.integers(-(10**6), 10**6), min_size=2, max_size=9, unique=True
).map(sorted)


@pytest.mark.slow
@SETTINGS
@given(EDGES, st.data())
def test_edges_of_every_precision(edges, data):
    schema = Schema([Numeric("x", edges, missing="item", outside="item")])
    client = truth(schema)
    cut = data.draw(st.sampled_from(edges))
    for value in (cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf), repr(cut)):
        assert told(client, value) == payload_of(schema, value)


@pytest.mark.slow
@SETTINGS
@given(st.integers(-(2**53) + 2, 2**53 - 2), st.integers(0, 2**24), st.data())
def test_whole_numbers_at_equal_steps(low, more, data):
    high = min(low + more, 2**53 - 2)
    bins = data.draw(st.integers(1, min(high - low + 1, 1000)))
    schema = Schema([Numeric("x", low=low, high=high, bins=bins, whole=True, outside="clip")])
    client, value = truth(schema), data.draw(st.integers(low - 2, high + 2))
    for given_value in (value, float(value), str(value)):
        assert told(client, given_value) == payload_of(schema, given_value)


LABELS = Categorical("sex", ["female", "male"], missing="skip")
AGE = Numeric("age", low=0, high=19, whole=True, outside="clip")
WORDS = Text("word", 2, missing="item", outside="clip")
FLOWN = Dates("flown", "2013-01-01", "2013-01-09")
BOTH = Schema([LABELS, Boolean("smokes")])
SURVEYS: list[tuple[Survey, list[Any]]] = [
    (Survey(GRR(2, 1.0), Schema([LABELS])), ["male", "female", {"sex": "male"}]),
    (Survey(OUE(20, 1.0), Schema([AGE])), [0, "7", 19.0, 300]),
    (Survey(GRR(9, 1.0), Schema([FLOWN])), ["2013-01-02", dt.date(2013, 1, 9)]),
    (Survey(rangeq.HaarHRR(20, 1.0), Schema([AGE])), [19, -7]),
    (Survey(heavy.TreeHist(16, 2.0, text=True), Schema([WORDS])), ["a", "abc", "\u00e9", None, ""]),
    (Survey(heavy.UniqueHeavyHitter(8, 2.0), Schema([AGE])), [0, 19, "7"]),
    (Survey(heavy.OneBit(heavy.TreeHist(16, 2.0, text=True)), Schema([WORDS])), ["a", "abc"]),
    (Survey(marginals.InpHT(BOTH.domain, 2, 1.0), BOTH), [["male", True], ("female", "n")]),
    (Survey(heavy.OneBit(marginals.InpEM(BOTH.domain, 2, 1.0)), BOTH), [["male", 0]]),
    (Survey(rangeq.grids.HDG(BOTH.domain, 1.0, 200), BOTH), [{"smokes": 1, "sex": "male"}]),
]
"""Surveys of every kind of values that protocols take, and values."""


@pytest.mark.parametrize(("survey", "values"), SURVEYS, ids=lambda one: "")
def test_a_survey_is_asked_by_the_array_path_and_its_client_alike(survey, values, tmp_path):
    save_protocol(tmp_path / "protocol.json", survey)
    assert load_protocol(tmp_path / "protocol.json") == survey
    rng = np.random.default_rng(1)
    drawn: list[int] = []

    def word() -> int:
        drawn.append(int(rng.integers(1 << 64, dtype=np.uint64)))
        return drawn[-1]

    client = load_client(tmp_path / "protocol.json", words=word)
    assert client.protocol == "Survey"
    for value in values * 5:
        drawn.clear()
        report = client.report(value)
        cells = (
            value
            if isinstance(value, dict)
            else dict(
                zip(
                    survey.schema.names,
                    (value if isinstance(value, (list, tuple)) else [value]),
                    strict=True,
                )
            )
        )
        table = {name: [cell] for name, cell in cells.items()}
        reports = np.zeros(1, dtype=survey.report_dtype)
        items = survey.inner_items(survey.schema.encode(table))
        survey.channel.fill(survey.channel.items_of(items), reports, Tape(drawn))
        assert report == survey.wire + reports.tobytes()
        assert survey.aggregate(reports).n == 1
    assert survey.privatize_one(values[0]) is not None


def test_what_is_refused_is_told_before_anything_is_drawn():
    def never() -> int:
        raise AssertionError("a word was drawn")

    species = Categorical("species", [f"kind {k}" for k in range(9)], missing="skip")
    schema = Schema([species, AGE, FLOWN])
    client = load_client(truthful(schema), words=never)
    for value, message in (
        (["kind 0", 37, None], "flown is a date or time in its range, without a zone, got None"),
        (["kind 0", 37.5, "2013-01-01"], "age is an integer from 0 to below 20, got 37.5"),
        (["kind 10", 3, "2013-01-01"], "species is one of kind 0, kind 1, .*, .., got 'kind 10'"),
        ([None, 3, "2013-02-01"], "flown is a date"),
        ([None, 10**5000, "2013-01-01"], "age is an integer .*, got a huge integer"),
        (
            {"species": None, "age": 3},
            "expected a value of each of species, age, flown, got none of flown",
        ),
        (["kind 0", 3], r"expected a value of each of species, age, flown, got \['kind 0', 3\]"),
    ):
        with pytest.raises(RefusedValue, match=message):
            client.report(value)
    assert client.report([None, 3, "2013-01-01"]) is None
    word = load_client(truthful(Schema([Text("word", 2)])), words=never)
    for text in ("abc", b"ab", 12345, "a\0"):
        with pytest.raises(RefusedValue, match="is not a text of at most 2 bytes of UTF-8"):
            word.report(text)
    with pytest.raises(RefusedValue, match="size is a number from 0 to 2, got '3'"):
        load_client(truthful(Schema([Numeric("size", [0, 2])])), words=never).report("3")


def test_javascript_names_the_attributes_that_have_no_value():
    species = Categorical("species", ["cat", "dog"])
    client = truthful(Schema([species, AGE, FLOWN]))
    record = marginals.MargPS(Domain({"smokes": 2, "works": 3}), 2, 1.0).client()
    of = "expected a value for each of"
    with Node() as node:
        for protocol, value, message in (
            (client, {"age": 3}, f"{of} species, age, flown, got none for species, flown"),
            (client, {}, f"{of} species, age, flown, got none for species, age, flown"),
            (client, ["cat", 3], f"{of} species, age, flown, got a list"),
            (truthful(Schema([species])), {"kind": "cat"}, f"{of} species, got none for species"),
            (record, {"works": 1}, f"{of} smokes, works, got none for smokes"),
            (record, {"smokes": 1, "works": 1, "x": 1}, f"{of} smokes, works, got an object"),
        ):
            assert node.ask(protocol, value, [])["error"] == message


def changed(content: dict[str, Any], **attribute: Any) -> dict[str, Any]:
    """A description with a digest that matches, whose first attribute is another."""
    content = json.loads(json.dumps({key: content[key] for key in content if key != "digest"}))
    content["takes"]["attributes"][0].update(attribute)
    return signed(content)


@pytest.mark.parametrize(
    "wrong", [{"kind": "colour"}, {"cuts": None}, {"cuts": {"first": 0}}, {"cuts": ["a", "b"]}]
)
def test_attributes_that_clients_do_not_know_are_refused_at_once(wrong):
    content = truthful(Schema([AGE]))
    assert load_client(changed(content)).report(7) is not None
    with pytest.raises(ClientError, match="no protocol file"):
        load_client(changed(content, **wrong))


def test_a_policy_that_clients_do_not_know_refuses():
    client = load_client(changed(truthful(Schema([AGE])), missing="guess", outside="guess"))
    for value in (None, 20):
        with pytest.raises(RefusedValue):
            client.report(value)


def test_the_device_reads_values_on_its_command_line(tmp_path):
    for attribute, values in (
        (Categorical("x", ["7.50", "null", "[]"], missing="skip"), ["7.50", "null", "[]", "NA"]),
        (Text("x", 3), ["7", "{}", '"a"']),
        (Numeric("x", [0, 10], outside="item"), ["7", " 7e0", "70"]),
    ):
        path = tmp_path / "client.json"
        path.write_text(json.dumps(truthful(Schema([attribute]))))
        found = subprocess.run(
            [sys.executable, "-I", str(DEVICE), str(path), *values],
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(found.stdout.split()) == len([value for value in values if value != "NA"])


@pytest.fixture(scope="module")
def vectors():
    """What is committed."""
    pytest.importorskip("tools.value_vectors", reason="the tests may be of an installed package")
    from tools import value_vectors

    return json.loads(value_vectors.FILE.read_text())


@pytest.mark.slow
def test_the_vectors_are_those_that_are_made():
    pytest.importorskip("tools.value_vectors", reason="the tests may be of an installed package")
    from tools import value_vectors

    assert value_vectors.FILE.read_text() == value_vectors.text(), (
        "run python -m tools.value_vectors"
    )


@pytest.mark.slow
def test_the_vectors_are_what_the_device_says(vectors):
    words = int(vectors["words"])
    for group in vectors["groups"]:
        client = load_client(group["client"], words=lambda: words)
        values = [*vectors["values"], *group["own"]]
        for value, result in zip(values, group["results"], strict=True):
            expected = bytes.fromhex(result) if isinstance(result, str) else result
            assert told(client, value) == expected, (group["name"], value)


IN_JAVASCRIPT = """
const { load, ClientError } = await import("CLIENT/index.js");
const word = BigInt(given.words);
const told = (client, value) => {
  try {
    const report = client.report(value);
    return report && Buffer.from(report).toString("hex").slice(16);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    return false;
  }
};
const results = given.groups.map(({ client, own }) => {
  const made = load(client, () => word);
  return [...given.values, ...own].map((value) => told(made, value));
});
console.log(JSON.stringify(results));
"""


def test_the_vectors_are_what_javascript_says(vectors):
    found = evaluated(IN_JAVASCRIPT, vectors)
    for group, results in zip(vectors["groups"], found, strict=True):
        values = [*vectors["values"], *group["own"]]
        for value, result, expected in zip(values, results, group["results"], strict=True):
            assert result == expected, (group["name"], value)


@pytest.mark.slow
def test_many_bins_cost_no_more_than_their_list():
    minutes = Dates("t", "1992-01-01", "2023-11-01", "minute")
    labels = Categorical("x", [f"label {k}" for k in range(10**5)])
    uneven = Numeric("x", (np.arange(10**5 + 1.0) ** 1.5).tolist(), outside="clip")
    for attribute, value in ((minutes, "2023-10-31T17:05"), (labels, "label 77"), (uneven, 1e6)):
        schema = Schema([attribute])
        assert truth(schema).privatize_one(value) == payload_of(schema, value)
    assert len(json.dumps(truthful(Schema([minutes])))) < 1000
