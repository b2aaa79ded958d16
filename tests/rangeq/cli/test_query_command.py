"""The commands collect and query: from files of reports to answers, without a line of Python.

The slow twin of the command is Python: for every kind of protocol the answers are those of the
estimate that a few lines give.
"""

import csv
import io
import json
import math
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest

import frequency
import frequency.heavy
import frequency.marginals
import rangeq
import rangeq.grids
from frequency import (
    GRR,
    Boolean,
    Categorical,
    Dates,
    Numeric,
    Schema,
    Survey,
    Text,
    difference,
    ratio,
)
from frequency.exceptions import UnknownVariance
from frequency.schema import least_squares
from frequency.storage import load_aggregate, save_aggregate, save_protocol, write_reports
from mechdesign import ZCDP, Privacy, tables
from mechdesign.cli import main
from rangeq import Between, HaarHRR
from rangeq.central import (
    CentralFlat,
    GroupedSums,
    QuantileRelease,
    Regions,
    Release,
    ReleasedQuantiles,
    release_regions,
    workload_optimal,
)
from rangeq.cli.answer_rows import HEADINGS, AnswerList, AnswerRow
from rangeq.cli.collected import source_of
from rangeq.cli.published_answers import published_table

AGE = Numeric("age", low=0, high=31, whole=True, unit="years", missing="item")
DELAY = Numeric("delay", [-60, 0, 15, 60, 600], unit="minutes")
SEX = Categorical("sex", ["female", "male"])
STATE = Categorical("state", ["Texas", "Washington, D.C.", "a and age 3"], missing="item")
SEEN = Dates("seen", "2013-01-01", "2013-12-31", "month")
SMOKES = Boolean("smokes")
WORD = Text("word", 1)
MANY = [Numeric(name, low=-60, high=600, bins=2048, missing="item") for name in ("age", "delay")]
RECORDS = {"a": 4, "b": 6}
NUMBERS = np.arange(4000) % 30 % 20


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    output = capsys.readouterr()
    return code, output.out, output.err


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][: len(HEADINGS)] == HEADINGS
    return {row[0]: row[1 : len(HEADINGS)] for row in rows[1:]}


def values(text):
    """The value and the interval of each question."""
    return {
        question: [float(cell) if cell else None for cell in (row[0], row[2], row[3])]
        for question, row in table(text).items()
    }


@pytest.fixture
def asked(tmp_path, capsys):
    """Saves a protocol and an aggregate of the values, and asks for answers."""

    def ask(protocol, answers, *questions):
        aggregate = protocol.aggregate(protocol.privatize(answers, np.random.default_rng(1)))
        save_protocol(tmp_path / "protocol.json", protocol)
        save_aggregate(tmp_path / "aggregate.ldp", aggregate)
        place, given = tmp_path / "aggregate.ldp", tmp_path / "protocol.json"
        found = run(capsys, "query", place, "--protocol", given, *questions)
        return found, aggregate

    return ask


def people(n=4000):
    rng = np.random.default_rng(1)
    ages = rng.binomial(31, 0.4, n).astype(object)
    ages[::7] = None
    seen = np.datetime64("2013-01-01") + rng.integers(0, 365, n)
    return {
        "age": ages,
        "delay": rng.uniform(-60, 600, n),
        "sex": np.array(SEX.labels)[rng.integers(0, 2, n)],
        "state": np.array([*STATE.labels, None], dtype=object)[rng.integers(0, 4, n)],
        "seen": seen,
        "smokes": rng.integers(0, 2, n).astype(bool),
        "word": np.array(["h", "y", "x"])[rng.integers(0, 3, n)],
    }


def told(answer):
    """What a row says of an answer."""
    error = ends = None
    with suppress(UnknownVariance):
        error = answer.variance**0.5
    with suppress(UnknownVariance):
        ends = answer.interval()
    return [answer.value, error, *(ends or (None, None))]


def survey(make, *attributes):
    schema = Schema(attributes)
    return Survey(make(schema), schema)


SURVEYS: dict[str, Any] = {
    "frequencies": (
        survey(lambda schema: GRR(schema.sizes[0], 2.0), STATE),
        {
            "Texas": "Texas",
            "state Washington, D.C.": "Washington, D.C.",
            "a and age 3,Texas": ["a and age 3", "Texas"],
            "missing": "missing",
        },
    ),
    "ranges": (
        survey(lambda schema: HaarHRR(schema.sizes[0], 2.0), AGE),
        {
            "age 18:25": Between(18, 25),
            "10:": Between(10, None),
            "age=:9": Between(None, 9),
            "age 3,4,missing": [3, 4, "missing"],
            "age missing": "missing",
        },
    ),
    "bins": (
        survey(lambda schema: HaarHRR(schema.sizes[0], 2.0), DELAY),
        {
            "-60:0": Between(-60, 0),
            "delay -30:7.5": Between(-30, 7.5),
            "delay 15 to 60": Between(15, 60),
        },
    ),
    "dates": (
        survey(lambda schema: HaarHRR(schema.sizes[0], 2.0), SEEN),
        {
            "2013-02:2013-04": Between("2013-02", "2013-04"),
            "2013-02-10:": Between("2013-02-10", None),
        },
    ),
    "one bit": (
        survey(lambda schema: frequency.heavy.OneBit(GRR(schema.sizes[0], 0.6)), SMOKES),
        {"yes": "yes", "smokes f": "no"},
    ),
    "square wave": (
        survey(lambda schema: rangeq.SquareWave(schema.sizes[0], 2.0), DELAY),
        {"0:60": Between(0, 60), "5:60": Between(5, 60)},
    ),
    "shaped": (
        survey(lambda schema: rangeq.shaped(schema.sizes[0], 2.0, 4000), AGE),
        {"age 18:25": Between(18, 25)},
    ),
    "marginals": (
        survey(lambda schema: frequency.marginals.MargPS(schema.domain, 2, 2.0), STATE, SEX, AGE),
        {
            "state a and age 3 and age 4": {"state": "a and age 3", "age": 4},
            "sex female and age 18:": {"sex": "female", "age": Between(18, None)},
            "state Texas,missing": {"state": ["Texas", "missing"]},
        },
    ),
    "conjunctions": (
        survey(lambda schema: rangeq.grids.best(schema.domain, 2.0, 4000), DELAY, SEX),
        {
            "sex male and delay 0:60": {"delay": Between(0, 60), "sex": "male"},
            "delay 0:7": {"delay": Between(0, 7)},
        },
    ),
    "grids": (
        survey(lambda schema: rangeq.grids.TDG(schema.domain, 2.0, 4000), AGE, DELAY),
        {"age 3:9 and delay 0:": {"age": Between(3, 9), "delay": Between(0, None)}},
    ),
    "each attribute": (
        survey(lambda schema: rangeq.PerAttribute.of(schema.domain, 2.0, "sex"), AGE, SEX),
        {
            "age 3:9 and sex female": {"age": Between(3, 9), "sex": "female"},
            "sex male": {"sex": "male"},
        },
    ),
    "words": (
        survey(lambda schema: frequency.heavy.PrefixExtension(8, 6.0, True), WORD),
        {"y": "y", "word h": "h"},
    ),
    "frequent labels": (
        survey(lambda schema: frequency.heavy.PrefixExtension(3, 6.0), STATE),
        {"state Texas": "Texas", "missing": "missing"},
    ),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_answers_are_those_of_python(name, asked):
    protocol, questions = SURVEYS[name]
    given = [part for text in questions for part in ("--where", text)]
    own = ["--raw"] * (name == "marginals")  # which are asked by the model of all without it
    (code, out, err), aggregate = asked(protocol, people(), *given, "--json", *own)
    estimate = protocol.estimate(aggregate)
    assert (code, "4000 users reported" in err) == (0, True)
    content = json.loads(out)
    assert (content["n"], content["confidence"]) == (4000, 0.95)
    for row, (text, where) in zip(content["answers"], questions.items(), strict=True):
        answer = estimate.answer(where)
        assert row["question"] == text
        assert row["unit"] == "fraction of the users"
        assert [row[key] for key in HEADINGS[1:5]] == told(answer)
        assert row["interpolated"] == (
            text in ("delay -30:7.5", "2013-02-10:", "5:60", "delay 0:7")
        )


@pytest.mark.parametrize("name", SURVEYS)
def test_cells_are_those_of_python(name, asked):
    protocol, _ = SURVEYS[name]
    names = protocol.schema.names[:1]
    own = ["--raw"] * (name == "marginals")
    (code, out, _), aggregate = asked(protocol, people(), "--marginal", names[0], *own)
    estimate = protocol.estimate(aggregate)
    columns = estimate.columns(names)
    expected = dict(zip(columns.pop(names[0]), zip(*columns.values(), strict=True), strict=True))
    rows = table(out)
    assert code == 0
    assert list(rows) == [f"{names[0]} {label}" for label in expected]
    for label, row in expected.items():
        shown = rows[f"{names[0]} {label}"][:4]
        assert [float(cell) if cell else None for cell in shown] == list(row)


@pytest.mark.parametrize("name", SURVEYS)
def test_without_a_question_there_are_answers(name, asked):
    """Each of which can be asked for."""
    protocol, _ = SURVEYS[name]
    (code, out, _), _ = asked(protocol, people())
    rows = table(out)
    assert code == 0
    where = [one for one in rows if not one.startswith("quantile ")]
    several = {"conjunctions": ["delay"], "grids": ["age", "delay"], "each attribute": ["age"]}
    names = [f" of {one}" for one in several.get(name, ())]
    names += [""] * (name in ("ranges", "bins", "dates", "square wave", "shaped"))
    deciles = [f"quantile 0.{k}{of}" for of in names for k in range(1, 10)]
    assert [one for one in rows if one not in where] == deciles
    if name in ("ranges", "shaped"):
        assert where == ["age missing"]
    if name == "marginals":
        assert len(where) == 4 * 2 + 4 * 33 + 2 * 33
    again = [part for text in where for part in ("--where", text)]
    (code, out, _), _ = asked(protocol, people(), *again)
    assert code == 0
    twice = table(out)
    assert [float(twice[one][0]) for one in where] == pytest.approx(
        [float(rows[one][0]) for one in where]
    )


@pytest.mark.parametrize(
    "name",
    ["ranges", "bins", "dates", "square wave", "shaped", "conjunctions", "grids", "each attribute"],
)
def test_quantiles_are_those_of_python(name, asked):
    protocol, _ = SURVEYS[name]
    one, *others = protocol.schema
    first = f"0.25 of {one.name}" if others else "0.25"
    given = ["--quantile", first, "--quantile", f"0.5 of {one.name}", "--confidence", "0.8"]
    (code, out, _), aggregate = asked(protocol, people(), *given)
    estimate = protocol.estimate(aggregate)
    rows = table(out)
    assert code == 0
    assert list(rows) == [f"quantile {first}", f"quantile 0.5 of {one.name}"]
    for phi, row in zip((0.25, 0.5), rows.values(), strict=True):
        ends = ["", ""]
        with suppress(UnknownVariance):
            ends = [*map(str, estimate.quantile_interval(phi, 0.8, one.name))]
        assert (ends == ["", ""]) == (name == "square wave")
        value = str(estimate.quantile(phi, one.name))
        assert row == [value, "", *ends, one.unit or one.name, "no" if one.single else "yes"]


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("conjunctions", "sex male", {"sex": "male"}),
        ("grids", "age 3:9", {"age": Between(3, 9)}),
        ("marginals", "sex male", {"sex": "male"}),
    ],
)
def test_quantiles_among_users_who_meet_conditions(name, text, where, asked):
    protocol, _ = SURVEYS[name]
    of = "age" if name == "marginals" else "delay"
    given = [f"0.25 of {of} where {text}", f"0.5 of {of} where {text}", f"0.5 of {of}"]
    if name == "marginals":
        del given[2]  # it has no quantiles of all users
    (code, out, _), aggregate = asked(
        protocol, people(), *(word for one in given for word in ("--quantile", one))
    )
    estimate, rows = protocol.estimate(aggregate), table(out)
    if name == "marginals":  # which are asked by the model of all
        estimate = estimate.fitted()
    assert (code, list(rows)) == (0, [f"quantile {one}" for one in given])
    for phi, asking in ((0.25, given[0]), (0.5, given[1])):
        ends = [*map(str, estimate.quantile_interval(phi, 0.95, of, where))]
        row = rows[f"quantile {asking}"]
        assert [row[0], *row[2:4]] == [str(estimate.quantile(phi, of, where)), *ends]


def test_cells_of_several_attributes(asked):
    protocol, _ = SURVEYS["marginals"]
    (code, out, _), aggregate = asked(protocol, people(), "--marginal", "sex, state", "--raw")
    estimate = protocol.estimate(aggregate)
    expected = estimate.answer({"sex": "male", "state": "missing"})
    row = table(out)["sex male and state missing"]
    assert (code, len(table(out))) == (0, 8)
    assert [float(cell) for cell in row[:4]] == pytest.approx(told(expected))
    both = survey(lambda schema: frequency.marginals.MargPS(schema.domain, 2, 2.0), SEX, SMOKES)
    (code, out, _), _ = asked(both, people(), "--cells")
    assert list(table(out)) == [
        f"sex {a} and smokes {b}" for a in ("female", "male") for b in ("no", "yes")
    ]


def test_the_fitted_model_answers_if_it_is_asked(asked, tmp_path, capsys):
    protocol, questions = SURVEYS["marginals"]
    given = [word for text in questions for word in ("--where", text)]
    (code, out, err), aggregate = asked(protocol, people(), *given, "--fitted")
    estimate = protocol.estimate(aggregate).fitted()
    assert (code, "--fitted" in err) == (0, False)
    for text, where in questions.items():
        found = [float(cell) if cell else None for cell in table(out)[text][:4]]
        assert found == pytest.approx(told(estimate.answer(where)))
    (_, usual, _), _ = asked(protocol, people(), *given)
    assert usual == out
    (_, plain, err), _ = asked(protocol, people(), *given, "--raw")
    assert "mostly errs less: without --raw" in err
    assert plain != out
    code, out, err = asked(protocol, people(), "--raw", "--fitted")[0]
    assert (code, out, "two queries" in err) == (2, "", True)
    code, out, err = asked(SURVEYS["ranges"][0], people(), "--fitted")[0]
    assert (code, out, "no model is fitted" in err) == (2, "", True)


def test_names_with_commas(asked):
    pair = Schema([Categorical("a, b", ["x", "y"]), Categorical("a", ["x", "y"])])
    protocol = Survey(frequency.marginals.InpHT(pair.domain, 2, 2.0), pair)
    rows = {"a, b": ["x", "y"] * 500, "a": ["y"] * 1000}
    given = ["--marginal", "a, b,a", "--where", "a, b x", "--raw"]
    (code, out, _), aggregate = asked(protocol, rows, *given)
    estimate = protocol.estimate(aggregate)
    assert code == 0
    assert list(table(out)) == [f"a, b {k} and a {j}" for k in "xy" for j in "xy"] + ["a, b x"]
    assert values(out)["a, b x"][0] == estimate.answer({"a, b": "x"}).value


def test_the_forms_of_answers(asked, tmp_path):
    protocol, _ = SURVEYS["bins"]
    questions = ["--where", "5:60", "--quantile", "0.5", "--where", "0:60"]
    (_, plain, _), aggregate = asked(protocol, people(), *questions)
    estimate = protocol.estimate(aggregate)
    target = tmp_path / "answers.csv"
    (code, out, err), _ = asked(protocol, people(), *questions, "--out", target)
    assert (code, out) == (0, f"wrote {target}: 3 answers\n")
    assert "4000 users reported" in err
    assert target.read_text() == plain.replace("\r", "")
    assert list(table(plain)) == ["5:60", "quantile 0.5", "0:60"]  # in the order of the questions
    (code, out, _), _ = asked(protocol, people(), *questions, "--json")
    target = tmp_path / "answers.json"
    (code, _, _), _ = asked(protocol, people(), *questions, "--out", target)
    assert target.read_text() == out
    (code, out, err), _ = asked(protocol, people(), *questions, "--table")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "4000 users reported"
    assert lines[1].split("  ")[0] == "question"
    assert "95% interval" in lines[1]
    cut, whole = (next(line for line in lines if line.startswith(one)) for one in ("5:60", "0:60"))
    assert " *" in cut
    assert " *" not in whole
    told_error = estimate.answer(Between(0, 60)).variance ** 0.5
    assert f"  {told_error:.3f}  " in whole
    assert "Interpolated answers (* in tables)" in out
    assert "probability of about 95%" in out


def test_rounded_numbers():
    rows = [
        AnswerRow("a", 0.123456, 0.0123, 0.099, 0.148, "users"),
        AnswerRow("b", 12345.678, 250.0, 11845.0, 12845.0, "users"),
        AnswerRow("c", 0.5, None, None, None, "users"),
        AnswerRow("d", 44, None, 40, 47, "years"),
        AnswerRow("e", 0.5, math.inf, -math.inf, math.inf, "users", True),
        AnswerRow("f", 0.5, 0.0, 0.5, 0.5, "users"),
        AnswerRow("g", 0.123456, None, 0.10, 0.18, "users"),
        AnswerRow("h\x1b[2J", -1e-20, 1e-21, -3e-20, 1e-20, "users"),
    ]
    lines = AnswerList(rows, 7, 0.9, ["A note."]).table().splitlines()
    assert lines[0] == "7 users reported"
    cells = {line[:1]: line.split() for line in lines[2:-1]}
    assert cells["a"] == ["a", "0.123", "0.012", "0.099", "to", "0.148", "users"]
    assert cells["b"] == ["b", "12346", "250", "11845", "to", "12845", "users"]
    assert cells["c"] == ["c", "0.5000", "users"]
    assert cells["d"] == ["d", "44", "40", "to", "47", "years"]
    assert cells["e"] == ["e", "0.5000", "*", "users"]
    assert cells["f"] == ["f", "0.5000", "0.0000", "0.5000", "to", "0.5000", "users"]
    assert cells["g"][:5] == ["g", "0.123", "0.100", "to", "0.180"]
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "A note."


def test_an_answer_without_bounds_says_why(asked):
    question = ["--where", "10:20", "--table"]
    (code, output, _), _ = asked(rangeq.HaarHRR(32, 2.0), NUMBERS[:1], *question)  # 1 of 5 levels
    assert code == 0
    assert "has no ends: nobody reported on a part of the question" in output
    (_, output, _), _ = asked(rangeq.HaarHRR(32, 2.0), NUMBERS, *question)
    assert "no ends" not in output


def test_collect_then_query(tmp_path, capsys):
    protocol = rangeq.HaarHRR(32, 2.0)
    reports = protocol.privatize(NUMBERS, np.random.default_rng(1))
    save_protocol(tmp_path / "protocol.json", protocol)
    for k, part in enumerate(np.array_split(reports, 3)):
        write_reports(tmp_path / "reports" / f"{k}.parquet", protocol, part)
    collect = [
        "collect",
        tmp_path / "reports",
        "--protocol",
        tmp_path / "protocol.json",
        "--out",
        tmp_path / "aggregate.ldp",
    ]
    code, out, _ = run(capsys, *collect, "--resume", tmp_path / "state")
    assert (code, "4000 reports of 3 files counted, 0 files refused" in out) == (0, True)
    assert load_aggregate(tmp_path / "aggregate.ldp", protocol) == protocol.aggregate(reports)

    code, _, err = run(capsys, *collect)
    assert (code, "exists; use --force" in err) == (2, True)
    (tmp_path / "reports" / "3.parquet").write_text("hello")
    code, _, _ = run(
        capsys,
        *collect,
        "--force",
        "--resume",
        tmp_path / "state",
        "--refused",
        tmp_path / "refused.csv",
    )
    assert code == 1
    rows = list(csv.reader((tmp_path / "refused.csv").read_text().splitlines()))
    assert rows[0] == ["file", "reports left out", "reason"]
    assert rows[1][:2] == [str(tmp_path / "reports" / "3.parquet"), "all"]
    assert load_aggregate(tmp_path / "aggregate.ldp", protocol).n == 4000

    query = ["query", tmp_path / "aggregate.ldp", "--protocol", tmp_path / "protocol.json"]
    wanted = ["--where", "0:9", "--where", "item 3", "--quantile", "0.5"]
    code, out, err = run(capsys, *query, *wanted, "--out", tmp_path / "answers.csv")
    assert (code, "3 answers" in out, "4000 users reported" in err) == (0, True, True)
    answers = values((tmp_path / "answers.csv").read_text())
    estimate = protocol.estimate(protocol.aggregate(reports))
    assert answers["0:9"] == [estimate.range(0, 9), *estimate.answer(Between(0, 9)).interval()]
    assert answers["item 3"] == [estimate.range(3, 3), *estimate.answer(Between(3, 3)).interval()]
    assert answers["quantile 0.5"] == [estimate.quantile(0.5), *estimate.quantile_interval(0.5)]


@pytest.mark.parametrize(
    "protocol",
    [
        frequency.GRR(20, 2.0),
        frequency.HadamardCountMeanSketch(20, 2.0),
        rangeq.HierarchicalHistogram(20, 2.0),
        frequency.heavy.OneBit(frequency.GRR(20, 0.6)),
        rangeq.PaddedSets(GRR(21, 2.0), 1),
    ],
)
def test_items_without_a_schema(protocol, asked):
    given = NUMBERS[:, None] if isinstance(protocol, rangeq.PaddedSets) else NUMBERS
    (code, out, _), aggregate = asked(
        protocol, given, "--where", "3", "--where", "item 17:19", "--where", "2,5", "--cells"
    )
    estimate = protocol.estimate(aggregate)
    rows = table(out)
    assert code == 0
    for text, where in (("3", 3), ("item 17:19", Between(17, 19)), ("2,5", [2, 5]), ("item 7", 7)):
        assert [float(cell) for cell in rows[text][:4]] == pytest.approx(
            told(estimate.answer(where))
        )
    assert len(rows) == 23


def test_items_of_a_domain_that_is_too_large_to_list(asked):
    for sketch in (
        frequency.HadamardCountMeanSketch(1 << 40, 2.0),
        frequency.heavy.OneBit(frequency.HadamardCountMeanSketch(1 << 40, 0.6)),
    ):
        (code, out, _), aggregate = asked(sketch, NUMBERS, "--where", "3:4", "--where", "7,9")
        estimate = sketch.estimate(aggregate, items=[3, 4, 7, 9])
        assert code == 0
        assert values(out)["3:4"][0] == pytest.approx(estimate.answer(Between(3, 4)).value)
        assert values(out)["7,9"][0] == pytest.approx(estimate.answer([7, 9]).value)
    for wrong, message in (
        (["--where", ":"], "ask for fewer"),
        (["--where", str(1 << 40)], "item is an integer from 0 to 1099511627775"),
        (["--where", "4:3"], "4 is above 3"),
        (["--where", "x"], "got 'x'"),
        (["--quantile", "0.5"], "has no quantiles"),
        ([], "more than 1048576"),
    ):
        (code, out, err), _ = asked(sketch, NUMBERS, *wrong)
        assert (code, out, message in err) == (2, "", True), err


def test_without_a_question_or_a_schema(asked):
    (code, out, _), _ = asked(frequency.GRR(20, 2.0), NUMBERS)
    assert (code, list(table(out))) == (0, [f"item {x}" for x in range(20)])
    (code, out, _), _ = asked(rangeq.shaped(20, 2.0, 4000), NUMBERS)
    assert list(table(out)) == [f"quantile 0.{k}" for k in range(1, 10)]
    protocol = frequency.marginals.InpHT(frequency.marginals.Domain(RECORDS), 1, 2.0)
    (code, out, _), _ = asked(protocol, np.stack([NUMBERS % 4, NUMBERS % 6], axis=1))
    assert list(table(out)) == [f"a {x}" for x in range(4)] + [f"b {x}" for x in range(6)]
    unnamed = frequency.marginals.InpHT(frequency.marginals.Domain({"": 2, "b": 3}), 1, 2.0)
    (code, out, _), _ = asked(unnamed, np.stack([NUMBERS % 2, NUMBERS % 3], axis=1))
    assert list(table(out)) == [f"attribute 1 {x}" for x in range(2)] + [f"b {x}" for x in range(3)]
    pairs = rangeq.Paired(HaarHRR(40, 2.0))
    (code, out, _), aggregate = asked(
        pairs, np.stack([NUMBERS % 2, NUMBERS], axis=1), "--where", "bit 1 and item 3:9"
    )
    estimate = pairs.estimate(aggregate)
    assert (
        values(out)["bit 1 and item 3:9"][0]
        == estimate.answer({"bit": 1, "item": Between(3, 9)}).value
    )


@pytest.mark.parametrize(
    "protocol",
    [
        frequency.heavy.PrefixExtension(8, 3.0),
        frequency.heavy.OneBit(frequency.heavy.PrefixExtension(8, 0.6)),
        # More items than can be listed
        pytest.param(frequency.heavy.PrefixExtension(25, 3.0), marks=pytest.mark.slow),
    ],
)
def test_heavy_hitters(protocol, asked, tmp_path, capsys):
    reports = protocol.privatize(np.repeat([7, 200], [9_000, 3_000]), np.random.default_rng(1))
    save_protocol(tmp_path / "protocol.json", protocol)
    save_aggregate(tmp_path / "aggregate.ldp", protocol.aggregate(reports))
    query = ["query", tmp_path / "aggregate.ldp", "--protocol", tmp_path / "protocol.json"]
    found = protocol.find(protocol.aggregate(reports))
    code, out, err = run(capsys, *query)
    assert (code, list(table(out))) == (0, [f"item {item}" for item in found.items])
    assert found.statement in err
    code, out, _ = run(capsys, *query, "--where", "7")
    row = table(out)["7"]
    assert [float(cell) for cell in row[:4]] == pytest.approx(told(found.answer(7)))
    code, out, err = run(capsys, *query, "--where", "8")
    assert (code, out) == (2, "")
    assert "'8' is not among the" in err
    code, out, err = run(capsys, *query, "--quantile", "0.5")
    assert (code, "has no quantiles; for these: mechdesign protocol quantiles" in err) == (2, True)


@pytest.mark.parametrize(
    ("protocol", "question", "message"),
    [
        (
            frequency.GRR(20, 2.0),
            ["--quantile", "0.5"],
            "GRR has no quantiles; for these: mechdesign protocol quantiles",
        ),
        (frequency.GRR(20, 2.0), ["--where", "20"], "item is an integer from 0 to 19, got '20'"),
        (frequency.GRR(20, 2.0), ["--where", "3:2"], "holds none"),
        (frequency.GRR(20, 2.0), ["--where", "x 1"], "got 'x 1'"),
        (frequency.GRR(20, 2.0), ["--marginal", "x"], "an attribute is one of item"),
        (frequency.GRR(20, 2.0), ["--marginal", "item,item"], "distinct"),
        (frequency.GRR(20, 2.0), ["--confidence", "1"], "confidence"),
        (frequency.GRR(20, 2.0), ["--confidence", "nan"], "confidence"),
        (frequency.GRR(20, 2.0), ["--out", "x.txt"], "must end in .csv, .json"),
        (rangeq.HaarHRR(20, 2.0), ["--where", "5:9", "--where", "30:40"], "holds none"),
        (rangeq.HaarHRR(20, 2.0), ["--quantile", "x"], "a fraction from 0 to 1"),
        (rangeq.HaarHRR(20, 2.0), ["--quantile", "1.5"], "1.5"),
        (rangeq.HaarHRR(20, 2.0), ["--quantile", "0.5 of age"], "an attribute is one of item"),
        (rangeq.SquareWave(20, 2.0), ["--table", "--json"], "not allowed with"),
        (SURVEYS["frequencies"][0], ["--where", "Texs"], "one of Texas, Washington, D.C., a and"),
        (SURVEYS["frequencies"][0], ["--quantile", "0.5"], "state has no order"),
        (SURVEYS["frequencies"][0], ["--where", "Texas:"], "got 'Texas:'"),
        (SURVEYS["marginals"][0], ["--quantile", "0.5"], "such as --quantile '0.5 of age'"),
        (
            SURVEYS["conjunctions"][0],
            ["--quantile", "0.5 of delay where delay 0:60"],
            "the condition is about delay itself",
        ),
        (
            SURVEYS["conjunctions"][0],
            ["--quantile", "0.5 of delay where sex x"],
            "one of female, male",
        ),
        (SURVEYS["marginals"][0], ["--quantile", "x"], "such as 0.5 or '0.5 of age', got 'x'"),
        (
            SURVEYS["marginals"][0],
            ["--quantile", "0.5 of age"],
            "MargPS has no quantiles; for these: mechdesign protocol quantiles",
        ),
        (
            SURVEYS["marginals"][0],
            ["--where", "state Texas and sex male and age 3:4"],
            "up to 2 attributes, got 3: ('state', 'sex', 'age'); for several attributes together:"
            " mechdesign protocol conjunctions",
        ),
        (SURVEYS["marginals"][0], ["--cells"], "mechdesign protocol conjunctions"),
        (
            SURVEYS["marginals"][0],
            ["--marginal", "sex,sex"],
            "distinct names, got ['sex', 'sex']\n",
        ),
        (
            survey(lambda schema: rangeq.grids.TDG(schema.domain, 2.0, 4000), *MANY),
            ["--cells"],
            "more than 1048576 combinations: ask for some\n",
        ),
        (
            survey(lambda schema: rangeq.PerAttribute.of(schema.domain, 2.0), AGE, SEX),
            ["--where", "sex male and age 3:4"],
            "together: ask for one of them; for several attributes together: mechdesign protocol",
        ),
    ],
)
def test_wrong_questions(protocol, question, message, asked, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = people() if isinstance(protocol, Survey) else NUMBERS
    target = [] if "--out" in question else ["--out", "answers.csv"]
    try:
        (code, out, err), _ = asked(protocol, given, *question, *target)
    except SystemExit as error:  # of argparse
        code, (out, err) = error.code, capsys.readouterr()
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "answers.csv").exists()


def test_what_is_unknown_is_empty(asked):
    protocol, _ = SURVEYS["grids"]
    (code, out, _), _ = asked(protocol, people(), "--where", "age 3:9")
    row = table(out)["age 3:9"]
    assert (code, row[1], row[4]) == (0, "", "fraction of the users")
    assert float(row[2]) <= float(row[0]) <= float(row[3])  # by the bootstrap
    (_, out, _), _ = asked(protocol, people(), "--where", "age 3:9", "--json")
    assert json.loads(out)["answers"][0]["low"] == float(row[2])


def test_nothing_that_is_read_is_replaced(tmp_path, capsys):
    protocol = frequency.GRR(4, 1.0)
    place, reports = tmp_path / "protocol.json", tmp_path / "reports" / "a.parquet"
    save_protocol(place, protocol)
    write_reports(reports, protocol, protocol.privatize([1, 2], np.random.default_rng(1)))
    before = {path: path.read_bytes() for path in (place, reports)}
    collect = ["collect", "--force", tmp_path / "reports", "--protocol", place, "--out"]
    same = tmp_path / "x.csv"
    for wrong in (
        [reports],
        [place],
        [same, "--refused", same],
        [same, "--resume", same],
        [tmp_path / "y", "--resume", reports],
    ):
        code, _, err = run(capsys, *collect, *wrong)
        assert (code, "would replace" in err) == (2, True)
    assert {path: path.read_bytes() for path in (place, reports)} == before
    assert not same.exists()


def test_odd_names_reach_neither_terminal_nor_table(tmp_path, capsys):
    save_protocol(tmp_path / "protocol.json", frequency.GRR(4, 1.0))
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a\x1b[31m\udcff.parquet").write_text("x")
    collect = [
        "collect",
        tmp_path / "reports",
        "--protocol",
        tmp_path / "protocol.json",
        "--out",
        tmp_path / "x",
    ]
    code, out, _ = run(capsys, *collect, "--refused", tmp_path / "refused.csv")
    assert (code, "\x1b" in out, "a\\x1b[31m\\udcff.parquet" in out) == (1, False, True)
    assert "\\udcff" in (tmp_path / "refused.csv").read_text()


def test_files_that_are_not_what_they_should_be(tmp_path, capsys, asked):
    protocol = frequency.GRR(20, 2.0)
    asked(protocol, NUMBERS)
    place, aggregate = tmp_path / "protocol.json", tmp_path / "aggregate.ldp"
    save_protocol(tmp_path / "other.json", frequency.GRR(20, 1.0))
    assert run(capsys, "query", aggregate, "--protocol", tmp_path / "other.json")[0] == 1
    assert run(capsys, "query", place, "--protocol", place)[0] == 1
    assert run(capsys, "query", aggregate, "--protocol", aggregate)[0] == 1
    assert run(capsys, "query", tmp_path / "missing", "--protocol", place)[0] == 2
    assert (
        run(capsys, "collect", tmp_path / "missing", "--protocol", place, "--out", tmp_path / "x")[
            0
        ]
        == 2
    )
    (tmp_path / "empty").mkdir()
    assert (
        run(capsys, "collect", tmp_path / "empty", "--protocol", place, "--out", tmp_path / "x")[0]
        == 2
    )
    assert not (tmp_path / "x").exists()
    _, _, err = run(capsys, "query", aggregate, "--protocol", tmp_path / "other.json")
    assert (
        f"{aggregate}: not an aggregate of this protocol: of GRR and of GRR, which differ in alpha:"
        " that of epsilon 2 and that of epsilon 1" in err
    )


def test_files_of_another_kind_are_named(tmp_path, capsys, asked):
    protocol = frequency.GRR(20, 2.0)
    asked(protocol, NUMBERS)
    place, aggregate = tmp_path / "protocol.json", tmp_path / "aggregate.ldp"
    table, cut, schema = (tmp_path / name for name in ("people.csv", "cut.ldp", "people.toml"))
    table.write_text("age\n5\n")
    for length, told in ((3, "is not an aggregate"), (40, "digest"), (-1, "digest")):
        cut.write_bytes(aggregate.read_bytes()[:length])
        _, _, err = run(capsys, "query", cut, "--protocol", place)
        assert told in err
    code, _, err = run(capsys, "query", table, "--protocol", place)
    assert (code, err) == (
        1,
        f"mechdesign: {table} is not an aggregate: mechdesign collect makes one of reports\n",
    )
    schema.write_text('format = "mechdesign.schema"\n')
    code, _, err = run(capsys, "query", aggregate, "--protocol", schema)
    assert code == 1
    assert "people.toml looks like a schema: mechdesign protocol makes a protocol of it" in err


@pytest.mark.parametrize(
    ("protocol", "shape"),
    [
        (rangeq.HaarHRR(32, 2.0), 0),
        (frequency.OLH(32, 2.0), 0),
        (frequency.heavy.PrefixExtension(8, 2.0), 0),
        (rangeq.grids.MSW([8, 8], 2.0, n=1000), (0, 2)),
    ],
)
def test_an_aggregate_of_nobody_has_no_answers(protocol, shape, asked, tmp_path, capsys):
    aggregate = protocol.aggregate(protocol.privatize(np.zeros(shape, int)))
    save_protocol(tmp_path / "protocol.json", protocol)
    save_aggregate(tmp_path / "aggregate.ldp", aggregate)
    place, given = tmp_path / "aggregate.ldp", tmp_path / "protocol.json"
    code, out, err = run(capsys, "query", place, "--protocol", given)
    assert code == 2
    assert out == ""
    assert "aggregate.ldp holds no reports" in err


@pytest.mark.slow
def test_answers_take_no_library_that_they_do_not_need(asked, tmp_path):
    asked(SURVEYS["ranges"][0], people())
    given = ["query", "aggregate.ldp", "--protocol", "protocol.json", "--where", "18:", "--table"]
    code = (
        "import sys; from mechdesign.cli import main; main(sys.argv[1:]);"
        "heavy = ['matplotlib', 'pyarrow', 'pandas', 'narwhals', 'scipy.special', 'scipy.stats'];"
        "found = [name for name in heavy if name in sys.modules]; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code, *given], check=True, cwd=tmp_path)


@pytest.fixture
def released(tmp_path, capsys):
    """A curator's release of a table, and the answers of a query."""

    def ask(schema, *questions, mechanism=None):
        sizes = schema.sizes
        counts = np.random.default_rng(1).integers(0, 200, sizes)
        chosen = mechanism or CentralFlat(sizes, 1.0)
        release = Release.draw(schema, chosen, counts, np.random.default_rng(2))
        release.save(tmp_path / "people.release")
        return run(capsys, "query", tmp_path / "people.release", *questions), release.estimate

    return ask


def test_a_release_carries_its_schema(released):
    schema = Schema([AGE, SEX])
    where = {
        "age 3:9 and sex female": {"age": Between(3, 9), "sex": "female"},
        "age 18:": {"age": Between(18, None)},
    }
    given = [part for text in where for part in ("--where", text)]
    (code, out, err), estimate = released(schema, *given, "--quantile", "0.5 of age")
    rows = table(out)
    assert (code, f"about {estimate.n:.0f} users" in err) == (0, True)
    for text, asked in where.items():
        assert [float(cell) for cell in rows[text][:4]] == told(estimate.answer(asked))
        assert rows[text][4] == "users"
    low, high = estimate.quantile_interval(0.5, attribute="age")
    row = rows["quantile 0.5 of age"]
    assert row[:5] == [str(estimate.quantile(0.5, "age")), "", str(low), str(high), "years"]
    (code, out, _), _ = released(schema)
    assert code == 0
    deciles = [f"quantile 0.{k} of age" for k in range(1, 10)]
    assert list(table(out)) == [*deciles, "age missing", "sex female", "sex male"]
    (code, out, _), _ = released(Schema([DELAY]), "--table")
    assert (code, "quantile 0.5" in out, "delay 0 to 15" in out, " users" in out) == (
        0,
        *[True] * 3,
    )


@pytest.mark.parametrize("ending", [".px", ".sdmx.csv", ".xlsx", ".parquet"])
def test_all_cells_are_a_table_of_an_office(released, tmp_path, ending):
    schema = Schema([AGE, SEX])
    out = tmp_path / f"cells{ending}"
    (code, _, _), estimate = released(schema, "--out", out)
    assert code == 0
    source = source_of(tmp_path / "people.release", None)
    told = published_table(source, "s").numbers
    answer = estimate.cells(("age", "sex"))
    np.testing.assert_allclose(told["estimate"], np.ravel(answer.value))
    np.testing.assert_allclose(told["standard error"], np.sqrt(np.ravel(answer.variance)))
    if ending == ".parquet":
        frame = pd.read_parquet(out)
        assert [*frame.columns] == ["age", "sex", "estimate", "standard error", "low", "high"]
        np.testing.assert_allclose(frame["estimate"], np.ravel(answer.value))
    else:
        assert out.stat().st_size > 500
    (code, _, err), _ = released(schema, "--where", "age 3", "--out", tmp_path / f"b{ending}")
    assert (code, "no questions beside" in err) == (2, True)
    assert not (tmp_path / f"b{ending}").exists()


def test_sums_alone_are_no_table_of_counts(tmp_path, capsys):
    pay = Schema([Numeric("pay", low=0, high=10, bins=5)])
    sums = GroupedSums(pay)
    mechanism = sums.mechanism(Privacy.from_epsilon(1))
    counts = sums.count([{"pay": [5.0] * 50}], mechanism)
    Release.draw(pay, mechanism, counts, sums=sums).save(tmp_path / "pay.release")
    code, _, err = run(capsys, "query", tmp_path / "pay.release", "--out", tmp_path / "a.px")
    assert (code, "counted together" in err) == (2, True)


def test_a_number_of_users_that_noise_made_negative_is_0(tmp_path, capsys):
    """Whether a table is empty is private: its release goes on, and has an unbiased estimate."""
    schema = Schema([AGE])
    for seed in range(20):
        nobody = np.zeros(schema.sizes, int)
        chosen = CentralFlat(schema.sizes, 1.0)
        release = Release.draw(schema, chosen, nobody, np.random.default_rng(seed))
        if release.estimate.n < -1:
            break
    assert release.estimate.n < -1
    release.save(tmp_path / "nobody.release")
    code, out, _ = run(capsys, "query", tmp_path / "nobody.release", "--where", "3:9", "--table")
    assert (code, out.splitlines()[0]) == (0, "about 0 users")


def test_shares_of_a_release(released):
    schema = Schema([AGE, SEX])
    asked = ("--where", "sex male and age 3:9", "--quantile", "0.5 of age", "--shares")
    (code, out, _), estimate = released(schema, *asked)
    rows = table(out)
    assert code == 0
    expected = estimate.shares(estimate.answer({"sex": "male", "age": Between(3, 9)}))
    first = rows["sex male and age 3:9"]
    assert [float(cell) for cell in first[:4]] == pytest.approx(told(expected))
    assert first[4] == "fraction of the users"
    assert rows["quantile 0.5 of age"][0] == str(estimate.quantile(0.5, "age"))


@pytest.mark.parametrize("names", ["age", "sex", "age,sex"])
def test_a_picture_shows_the_shares_of_a_release(names, released, tmp_path):
    schema, drawn = Schema([AGE, SEX]), {}
    for given in ((), ("--shares",)):
        target = tmp_path / f"picture{len(given)}.svg"
        (code, _, err), _ = released(schema, "--marginal", names, "--plot", target, *given)
        assert code == 0, err
        drawn[given] = target.read_text()
    assert "<!-- fraction of the users" in drawn["--shares",]
    assert "<!-- users" not in drawn["--shares",]
    assert "<!-- users" in drawn[()]
    assert "<!-- fraction of the users" not in drawn[()]


def test_released_quantiles(tmp_path, capsys):
    schema, place = Schema([DELAY]), tmp_path / "delay.release"
    mechanism = QuantileRelease(4, (0.25, 0.5), 1.0)
    released = ReleasedQuantiles.draw(schema, mechanism, [50, 300, 90, 2], np.random.default_rng(1))
    released.save(place)
    code, out, err = run(capsys, "query", place)
    rows = table(out)
    assert (code, list(rows)) == (0, ["quantile 0.25", "quantile 0.5"])
    assert [float(row[0]) for row in rows.values()] == released.values.tolist()
    assert all(row[1:4] == ["", "", ""] for row in rows.values())
    assert "they have no intervals" in err
    code, out, _ = run(capsys, "query", place, "--quantile", "0.5 of delay", "--json")
    content = json.loads(out)
    assert (code, content["n"], content["answers"][0]["value"]) == (0, None, released.values[1])
    for wrong, message in (
        (["--quantile", "0.3"], "were released, --quantile 0.25, 0.5; for others"),
        (["--where", "0:60"], "mechdesign curate without --quantile"),
        (["--quantile", "0.5 of age"], "an attribute is one of delay"),
        (["--plot", tmp_path / "x.png"], "nothing to draw"),
        (["--fitted"], "and of a curator's release of counts"),
    ):
        code, out, err = run(capsys, "query", place, *wrong)
        assert (code, out, message in err) == (2, "", True), err


RELEASED: dict[str, Callable[[Any], Any]] = {
    "table": lambda rng: tables.release([1, 2], [3, 3], 2, names=["a", "b"], cache=False, rng=rng),
    "contingency": lambda rng: tables.release_contingency(
        [[1, 2], [3, 0]],
        {"town": ["x", "y"], "ill": ["no", "yes"]},
        2,
        within=["town"],
        cache=False,
        rng=rng,
    ),
    "regions": lambda rng: release_regions(
        Regions([["x", "p"], ["x", "q"], ["y"]]), [1, 2, 3], [4, 4, 4], 2, rng=rng
    ),
}
QUESTIONS: dict[str, tuple[list[str], dict[str, float | None]]] = {
    "table": (["a", "b"], {"cell a,b": None, "b": None}),
    "contingency": (["town x and ill no"], {"town x": 3, "town x,y and ill yes": None}),
    "regions": (["region x", "region x / p"], {"x / q": None, "region x,y": None}),
}


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("kind", RELEASED)
def test_a_released_table_answers(kind, seeded, tmp_path, capsys):
    """By its own estimates, and each answer says whether the release is reproducible."""
    release = RELEASED[kind](np.random.default_rng(1) if seeded else None)
    path = tmp_path / "table.json"
    release.save(path)
    code, out, err = run(capsys, "query", path)
    assert code == 0
    assert ("made with a seed" in err) == seeded
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == release.questions.size
    cells, sums = QUESTIONS[kind]
    assert all(any(cell in row["question"] for row in rows) for cell in cells)
    for text, value in sums.items():
        code, out, _ = run(capsys, "query", path, "--where", text)
        (row,) = csv.DictReader(io.StringIO(out))
        assert code == 0
        assert float(row["low"]) <= float(row["value"]) + 3
        assert value is None or float(row["value"]) == pytest.approx(value)
        assert row["unit"] == "people"
    total = release.answer({})
    assert total.interval(0.95)[0] <= total.interval(0.95)[1]
    for refused in (
        ["--quantile", "0.5"],
        ["--plot", tmp_path / "x.png", "--kind", "bars"],
        ["--where", "nowhere z"],
    ):
        code, out, err = run(capsys, "query", path, *refused)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
    name = release.questions.names[0]
    by = ["--where", "", "--by", name] if kind == "contingency" else []
    assert run(capsys, "query", path, "--plot", tmp_path / "x.svg", *by)[0] == 0
    drawn = (tmp_path / "x.svg").read_text()
    assert (f"by {name}" in drawn) == bool(by)
    assert all(label in drawn for label in release.questions.labels[0])


def test_marginals_that_do_not_add_up_say_so(asked, tmp_path, capsys):
    asked(SURVEYS["marginals"][0], people())
    given = ["--protocol", tmp_path / "protocol.json", "--marginal", "sex", "--json"]
    code, out, _ = run(capsys, "query", tmp_path / "aggregate.ldp", *given, "--raw")
    told = json.loads(out)
    whole = sum(row["value"] for row in told["answers"])
    said = f"The cells of sex add up to {whole:.3g}: they are estimated one by one."
    assert (code, any(said in note for note in told["notes"])) == (0, abs(whole - 1) >= 0.005)
    code, out, _ = run(capsys, "query", tmp_path / "aggregate.ldp", *given)
    assert code == 0
    assert "add up to" not in out


def test_an_aggregate_is_no_release(asked, tmp_path, capsys):
    asked(SURVEYS["ranges"][0], people())
    for name, told in (
        ("aggregate.ldp", "is an aggregate: add --protocol FILE.json"),
        ("protocol.json", "--protocol says what an aggregate is of"),
    ):
        code, out, err = run(capsys, "query", tmp_path / name)
        assert (code, out) == (1, "")
        assert told in err


@pytest.mark.parametrize(
    ("name", "questions"),
    [
        ("ranges", []),
        ("frequencies", ["--where", "Texas"]),
        ("marginals", ["--where", "sex male", "--marginal", "state"]),
        ("square wave", ["--quantile", "0.5"]),
        ("frequent labels", []),
    ],
)
def test_pictures(name, questions, asked, tmp_path):
    target = tmp_path / "picture.svg"
    (code, out, err), _ = asked(SURVEYS[name][0], people(), *questions, "--plot", target)
    assert (code, f"wrote {target}" in err) == (0, True)
    assert out.startswith("question,")
    assert "<svg" in target.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("dates", "histogram", "fraction of the users, each bin"),
        ("dates", "bars", "<!-- 2013-02 -->"),
        ("marginals", "heat-map", "<!-- fraction of the users -->"),
    ],
)
def test_pictures_of_a_kind(name, kind, text, asked, tmp_path):
    target = tmp_path / "picture.svg"
    protocol = SURVEYS[name][0]
    names = ",".join(protocol.schema.names[:2])
    given = ["--marginal", names, "--plot", target, "--force"]
    (code, _, err), _ = asked(protocol, people(), *given)
    assert (code, text in target.read_text()) == (0, False), err
    (code, _, err), _ = asked(protocol, people(), *given, "--kind", kind)
    assert (code, text in target.read_text()) == (0, True), err
    (code, _, err), _ = asked(protocol, people(), "--kind", kind)
    assert (code, "--kind is for --plot" in err) == (2, True)


def test_what_cannot_be_drawn_writes_nothing(asked, tmp_path):
    target, answers = tmp_path / "picture.png", tmp_path / "answers.csv"
    (code, out, _), _ = asked(SURVEYS["marginals"][0], people(), "--plot", target, "--out", answers)
    assert (code, out, target.exists(), answers.exists()) == (2, "", False, False)
    (code, _, err), _ = asked(SURVEYS["ranges"][0], people(), "--out", answers, "--plot", answers)
    assert (code, "must end in" in err) == (2, True)


def test_no_file_that_is_read_is_replaced(asked, tmp_path):
    protocol, place = SURVEYS["ranges"][0], tmp_path / "protocol.json"
    asked(protocol, people())
    before = place.read_bytes()
    (code, _, err), _ = asked(protocol, people(), "--out", place, "--force")
    assert (code, "would replace what it is made from" in err) == (2, True)
    assert place.read_bytes() == before


SURE = ("--confidence", "0.9999")


@pytest.fixture
def towns(tmp_path, monkeypatch):
    """A release of towns and ages; the schema has a label that needs care."""
    monkeypatch.chdir(tmp_path)
    labels = ["Nord", "West and East", "Ost, alt", "age 3"]
    schema = Schema([Categorical("town", labels, missing="item"), AGE])
    truth = np.zeros(schema.sizes, dtype=int)
    for place, middle in enumerate((10, 20, 5, 28, 15)):
        truth[place, middle - 2 : middle + 3] = 100
    release = Release.draw(schema, CentralFlat(schema.sizes, 2), truth, np.random.default_rng(1))
    release.save("towns.release")
    return release.estimate, [*labels, "missing"]


def test_means_and_sums_are_those_of_python(towns, capsys):
    estimate, labels = towns
    asked = ["--mean", "age", "--sum", "age where town Ost, alt", "--mean", "age where town age 3"]
    code, out, err = run(capsys, "query", "towns.release", *asked)
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))[1:]
    assert [row[0] for row in rows] == [
        "mean age",
        "sum age where town Ost, alt",
        "mean age where town age 3",
    ]
    answers = [
        estimate.mean("age"),
        estimate.total("age", {"town": "Ost, alt"}),
        estimate.mean("age", {"town": "age 3"}),
    ]
    for row, answer in zip(rows, answers, strict=True):
        expected = [answer.value, answer.variance**0.5, *answer.interval()]
        assert [float(cell) for cell in row[1:5]] == pytest.approx(expected)
        assert row[5:] == ["years", "no"]
    assert "means and sums are of the users who have a value" in err
    code, out, err = run(
        capsys, "query", "towns.release", "--mean", "age", "--by", "town", "--json", *SURE
    )
    told = json.loads(out)["answers"]
    assert [one["question"] for one in told] == [f"mean age where town {name}" for name in labels]
    for one, middle in zip(told, (10, 20, 5, 28, 15), strict=True):
        assert one["low"] < middle < one["high"]
        assert one["high"] - one["low"] < 6


@pytest.mark.parametrize("question", [("--where", "age 8:12"), ("--quantile", "0.5 of age")])
def test_a_question_is_asked_of_each_label(towns, capsys, question):
    _, labels = towns
    joint = " and " if question[0] == "--where" else " where "
    code, out, _ = run(capsys, "query", "towns.release", *question, "--by", "town")
    assert code == 0
    each = [part for name in labels for part in (question[0], f"{question[1]}{joint}town {name}")]
    plain = list(csv.reader(io.StringIO(run(capsys, "query", "towns.release", *each)[1])))
    # With a column of the labels behind
    assert list(csv.reader(io.StringIO(out))) == [
        [*row, label] for row, label in zip(plain, ["town", *labels], strict=True)
    ]


def test_intervals_of_three_attributes_hold_on_average_and_say_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    sizes = {"a": 40, "b": 40, "c": 8}
    protocol = rangeq.grids.WaveGrid(sizes, 2.0, 2000)
    records = np.stack([rng.integers(0, size, 2000) for size in sizes.values()], axis=1)
    save_protocol("protocol.json", protocol)
    save_aggregate("all.ldp", protocol.aggregate(protocol.privatize(records, rng)))
    of_three, of_two = ["--where", "a 9: and b :30 and c 3:"], ["--where", "a 9: and b :30"]
    each, average = "ach interval holds", "f the intervals of many questions hold"
    for questions, expected in (
        (of_two, (True, False)),
        (of_three, (False, True)),
        ([*of_two, *of_three], (True, True)),
        ([*of_two, "--on-average"], (False, True)),
    ):
        code, out, _ = run(
            capsys, "query", "all.ldp", "--protocol", "protocol.json", *questions, "--table"
        )
        assert code == 0
        assert (each in out, average in out) == expected
        assert ("collect marginals" in out) == (" and " in questions[1])
    # So do fractions of a group, and those whose ends lie within bins
    given = ["--where", "a 9: and b :30 given c 3"]
    out = run(capsys, "query", "all.ldp", "--protocol", "protocol.json", *given, "--table")[1]
    assert (each in out, average in out) == (False, True)
    # No mosaic has so many items: the answers are drawn in its place
    given = ["all.ldp", "--protocol", "protocol.json", *of_three, "--plot", "three.svg"]
    code, out, err = run(capsys, "query", *given)
    assert code == 0, err
    assert len(table(out)) == 1
    assert "wrote three.svg" in err
    code, out, err = run(capsys, "query", *given, "--kind", "mosaic", "--force")
    assert (code, out) == (2, "")


def test_fractions_of_a_group_are_those_of_python(towns, capsys):
    estimate, labels = towns
    code, out, err = run(
        capsys, "query", "towns.release", "--where", "age 8:12 given town Ost, alt", "--where",
        "age 8:12 given town Nord and age 3", "--where", "age 8:12 given age 3"
    )  # fmt: skip
    assert code == 2
    assert "age: on both sides of given" in err
    asked = ["age 8:12 given town Ost, alt", "town Nord given age 8:12"]
    code, out, err = run(
        capsys, "query", "towns.release", *(part for one in asked for part in ("--where", one))
    )
    assert code == 0, err
    for question, part, whole in (
        (asked[0], {"age": Between(8, 12), "town": "Ost, alt"}, {"town": "Ost, alt"}),
        (asked[1], {"age": Between(8, 12), "town": "Nord"}, {"age": Between(8, 12)}),
    ):
        told = frequency.share(estimate.answer(part), estimate.answer(whole))
        value, low, high = values(out)[question]
        assert [value, low, high] == pytest.approx([told.value, *told.interval()])
        assert 0 <= low <= value <= high <= 1
        assert table(out)[question][4] == "fraction of these"
    asked = ["--where", "age 8:12 given", "--by", "town"]
    code, out, _ = run(capsys, "query", "towns.release", *asked)
    assert code == 0
    assert list(table(out)) == [f"age 8:12 given town {label}" for label in labels]
    assert table(out)["age 8:12 given town Ost, alt"][0] == str(
        frequency.share(
            estimate.answer({"age": Between(8, 12), "town": "Ost, alt"}),
            estimate.answer({"town": "Ost, alt"}),
        ).value
    )


def test_groups_without_a_question_are_how_many_have_each_label(towns, capsys):
    _, labels = towns
    code, out, _ = run(capsys, "query", "towns.release", "--by", "town")
    assert (code, out) == run(capsys, "query", "towns.release", "--marginal", "town")[:2]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["town"] for row in rows] == [*labels]
    code, out, _ = run(capsys, "query", "towns.release", "--by", "town", "--json")
    assert [one["cell"]["town"] for one in json.loads(out)["answers"]] == [*labels]


def test_groups_are_drawn_in_their_order(towns, capsys):
    code, _, err = run(
        capsys, "query", "towns.release", "--mean", "age", "--by", "town", "--plot", "by.svg"
    )
    assert code == 0, err
    assert "wrote by.svg" in err
    for wrong, said in (
        (["--mean", "age", "--by", "city"], "city"),
        (["--mean", "age", "--by", "age"], "about age itself"),
        (["--marginal", "age", "--by", "town"], "--by is for --where"),
        (["--mean", "age", "--sum", "age", "--by", "town", "--plot", "b.svg"], "one question"),
        (["--mean", "town"], "has no order"),
        (["--mean", "pay"], "pay"),
    ):
        code, _, err = run(capsys, "query", "towns.release", *wrong)
        assert code == 2
        assert said in err


def test_what_does_not_follow_from_marginals_is_asked_of_the_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    schema = Schema([SEX, SMOKES, AGE])
    mechanism = workload_optimal("marginals", schema.sizes, ZCDP(1), cache=False).mechanism
    truth = np.full(schema.sizes, 20)
    Release.draw(schema, mechanism, truth, np.random.default_rng(1)).save("m.release")
    for asked in (
        ["--where", "sex male and smokes yes and age 5:"],
        ["--marginal", ""],
        ["--mean", "age where sex male and smokes yes"],
        ["--mean", "age where sex male", "--by", "smokes"],
        ["--quantile", "0.5 of age where sex male and smokes yes"],
    ):
        code, _, err = run(capsys, "query", "m.release", *asked)
        assert code == 2
        assert "--fitted answers from the model" in err
        assert run(capsys, "query", "m.release", *asked, "--fitted")[0] == 0


def test_a_group_of_nobody_is_a_row_without_a_value(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    schema = Schema([SEX, AGE])
    truth = np.zeros(schema.sizes, dtype=int)
    truth[0, 5] = 1000
    for seed in range(20):
        release = Release.draw(
            schema, CentralFlat(schema.sizes, 1), truth, np.random.default_rng(seed)
        )
        if release.estimate.answer({"sex": "male"}).value < 0:
            break
    release.save("nobody.release")
    code, out, _ = run(capsys, "query", "nobody.release", "--mean", "age", "--by", "sex")
    assert code == 0
    assert list(csv.reader(io.StringIO(out)))[2][1:5] == [""] * 4
    code, _, err = run(capsys, "query", "nobody.release", "--mean", "age where sex male")
    assert code == 2
    assert "nobody meets the condition" in err


@pytest.mark.parametrize(("option", "combined"), [("--difference", difference), ("--ratio", ratio)])
def test_groups_are_compared_with_one_of_them(towns, capsys, option, combined):
    estimate, labels = towns
    code, out, _ = run(
        capsys, "query", "towns.release", "--mean", "age", "--by", "town", option, labels[1]
    )
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))[1:]
    word = "less" if option == "--difference" else "over"
    assert [row[0] for row in rows] == [
        f"mean age where town {label} {word} {labels[1]}" for label in labels if label != labels[1]
    ]
    reference = estimate.mean("age", {"town": labels[1]})
    others = (label for label in labels if label != labels[1])
    for row, label in zip(rows, others, strict=True):
        answer = combined(estimate.mean("age", {"town": label}), reference)
        low, high = answer.interval()
        told = [float(cell) for cell in row[1:5]]
        assert told == pytest.approx([answer.value, answer.variance**0.5, low, high])
        assert row[5] == ("years" if option == "--difference" else "times")


def test_numbers_of_groups_are_compared_with_their_covariance(towns, capsys):
    estimate, labels = towns
    code, out, _ = run(
        capsys, "query", "towns.release", "--where", "age 8:12", "--by", "town", "--difference",
        labels[0], "--json",
    )  # fmt: skip
    assert code == 0
    first = json.loads(out)["answers"][0]
    pair = [{"age": "8:12", "town": label} for label in (labels[1], labels[0])]
    one, other = (estimate.answer(where) for where in pair)
    both = estimate.answer({"age": "8:12", "town": [labels[1], labels[0]]})
    assert first["value"] == pytest.approx(one.value - other.value)
    expected = 2 * one.variance + 2 * other.variance - both.variance
    assert first["standard error"] == pytest.approx(expected**0.5)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--mean", "age", "--difference", "x"], "are for --by"),
        (["--mean", "age", "--by", "town", "--difference", "x"], "no group 'x' among"),
        (["--mean", "age", "--by", "town", "--difference", "x", "--ratio", "x"], "two queries"),
        (["--quantile", "0.5 of age", "--by", "town", "--ratio", "age 3"], "no error"),
    ],
)
def test_what_cannot_be_compared(towns, capsys, more, said):
    code, _, err = run(capsys, "query", "towns.release", *more)
    assert (code, said in err) == (2, True)


def test_lines_are_those_of_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hours = Numeric("hours", low=0, high=9, whole=True)
    schema = Schema([AGE, hours])
    truth = np.random.default_rng(2).integers(0, 90, schema.sizes)
    release = Release.draw(schema, CentralFlat(schema.sizes, 2), truth, np.random.default_rng(1))
    release.save("l.release")
    code, out, err = run(capsys, "query", "l.release", "--line", "age on hours", "--json")
    assert code == 0, err
    told = json.loads(out)
    line = least_squares(release.estimate, "age", "hours")
    for row, answer, name in zip(
        told["answers"],
        (line.intercept, line.slope, line.correlation),
        ("intercept", "slope", "correlation"),
        strict=True,
    ):
        assert row["question"] == f"line age on hours: {name}"
        assert row["value"] == pytest.approx(answer.value)
        assert row["low"] == pytest.approx(answer.interval().low)
    assert any("middles of bins" in note for note in told["notes"])
    for wrong, said in (("age", "such as"), ("age on town", "town"), ("age on age", "twice")):
        code, _, err = run(capsys, "query", "l.release", "--line", wrong)
        assert (code, said in err) == (2, True)
    code, _, err = run(capsys, "query", "l.release", "--line", "age on hours", "--by", "hours")
    assert (code, "--by is for" in err) == (2, True)
