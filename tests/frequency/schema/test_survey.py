"""Surveys: a protocol over the items of a schema, for all kinds of protocols."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    Boolean,
    Categorical,
    IncompatibleAggregate,
    InvalidCell,
    Numeric,
    Schema,
    Survey,
    Text,
)
from frequency.heavy import OneBit, PrefixExtension
from frequency.marginals import InpHT, MargPS
from frequency.schema import ClippedValues
from frequency.storage import load_protocol, read_reports, save_protocol, write_reports
from rangeq import Flat, HaarHRR, PerAttribute, SquareWave, shaped
from rangeq.grids import HDG, TDG, WaveGrid

AGE = Numeric("age", low=0, high=31, whole=True, unit="years", outside="clip")
SEX = Categorical("sex", ["female", "male"], missing="item")
WORD = Text("word", 4)
PAIR = Schema([AGE, SEX])

SURVEYS = {
    "oracle": Survey(GRR(3, 1.0), Schema([SEX])),
    "ranges": Survey(HaarHRR(32, 1.0), Schema([AGE])),
    "shaped": Survey(shaped(32, 1.0, 1000), Schema([AGE])),
    "square wave": Survey(SquareWave(32, 1.0), Schema([AGE])),
    "marginals": Survey(MargPS(PAIR.domain, 2, 1.0), PAIR),
    "one marginal": Survey(InpHT(Schema([AGE]).domain, 1, 1.0), Schema([AGE])),
    "grids": Survey(HDG(PAIR.domain, 1.0, 1000), PAIR),
    "per attribute": Survey(PerAttribute.of(PAIR.domain, 1.0), PAIR),
    "texts": Survey(PrefixExtension(32, 1.0, True), Schema([WORD])),
    "integers": Survey(PrefixExtension(5, 1.0), Schema([AGE])),
    "one bit": Survey(OneBit(HRR(32, "1/4")), Schema([AGE])),
}
TABLE = {"age": [7, 31, 0, 12] * 5, "sex": ["male", None, "female", "female"] * 5}
TABLE["word"] = ["home", "way", "", "é"] * 5


@pytest.fixture(params=SURVEYS)
def survey(request):
    return SURVEYS[request.param]


def test_reports_are_those_of_the_items(survey):
    inner = survey.protocol
    columns = survey.schema.encode(TABLE).columns
    items = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    if isinstance(inner, InpHT):
        items = items.reshape(-1, 1)
    for table in (TABLE, pd.DataFrame(TABLE)):
        ours = survey.privatize(table, np.random.default_rng(1))
        theirs = inner.privatize(items, np.random.default_rng(1))
        assert ours.tobytes() == theirs.tobytes()
    np.testing.assert_array_equal(
        survey.aggregate(ours).counts, inner.aggregate(theirs).counts, strict=True
    )


def test_privacy_is_that_of_the_protocol(survey):
    assert survey.audit() == survey.protocol.audit()
    assert survey.privacy == survey.protocol.privacy
    assert survey.max_ratio == survey.protocol.max_ratio
    assert survey.audit().holds
    assert survey.report_bits == survey.protocol.report_bits


def test_a_protocol_file_holds_the_schema(survey, tmp_path):
    save_protocol(tmp_path / "protocol.json", survey)
    loaded = load_protocol(tmp_path / "protocol.json")
    assert loaded == survey
    assert loaded.schema == survey.schema
    assert loaded.channel.signature == survey.channel.signature


def test_messages_and_files_are_read_back(survey, tmp_path):
    reports = survey.privatize(TABLE, np.random.default_rng(1))
    assert (
        survey.reports_from_bytes(survey.reports_to_bytes(reports)).tobytes() == reports.tobytes()
    )
    aggregate = survey.aggregate(reports)
    assert survey.aggregate_from_bytes(aggregate.to_bytes()) == aggregate
    assert (aggregate + aggregate).n == 2 * len(reports)
    write_reports(tmp_path / "reports.parquet", survey, reports)
    assert read_reports(tmp_path / "reports.parquet", survey).tobytes() == reports.tobytes()


def test_aggregates_of_another_schema_are_refused():
    other = Survey(HaarHRR(32, 1.0), Schema([Numeric("age", low=1, high=32, whole=True)]))
    mine = SURVEYS["ranges"]
    aggregate = other.aggregate(other.privatize({"age": [3]}))
    with pytest.raises(IncompatibleAggregate, match=r"differ in schema: 32 kinds of records \(sha"):
        mine.estimate(aggregate)
    with pytest.raises(IncompatibleAggregate, match="HaarHRR and of Survey"):
        mine.estimate(HaarHRR(32, 1.0).aggregate(HaarHRR(32, 1.0).privatize([3])))
    sexes = Schema([Numeric("age", low=1, high=32, whole=True), Boolean("smokes")])
    both = Survey(WaveGrid(sexes, 1.0), sexes)
    with pytest.raises(IncompatibleAggregate, match="differ in schema: age, smokes"):
        mine.estimate(both.aggregate(both.privatize({"age": [3], "smokes": [True]})))
    same = Survey(Flat(32, 1.0), mine.schema)
    with pytest.raises(IncompatibleAggregate, match="of Flat and of HaarHRR"):
        mine.estimate(same.aggregate(same.privatize({"age": [3]})))


def test_simulation_has_the_law_of_the_protocol():
    survey = SURVEYS["oracle"]
    aggregate = survey.simulate([500, 300, 200], np.random.default_rng(1))
    again = survey.protocol.simulate([500, 300, 200], np.random.default_rng(1))
    assert (aggregate.n, aggregate.counts.tolist()) == (1000, again.counts.tolist())
    named = survey.simulate(10, np.random.default_rng(1), {"sex": ["male", None]})
    assert named.n == 20


def test_clipped_values_are_said():
    survey = SURVEYS["ranges"]
    with pytest.warns(ClippedValues, match="2 of age"):
        survey.privatize({"age": [40, 3, -1]})
    tally: Counter[str] = Counter()
    assert len(survey.privatize({"age": [40, 3, -1]}, None, tally)) == 3
    assert tally == {"age": 2, "": 0}


def test_users_without_a_value_may_be_left_out():
    age = Numeric("age", low=0, high=31, whole=True, missing="skip")
    survey = Survey(HaarHRR(32, 1.0), Schema([age]))
    tally: Counter[str] = Counter()
    reports = survey.privatize({"age": [3, None, 4, None]}, np.random.default_rng(1), tally)
    assert len(reports) == 2
    assert tally[""] == 2


def test_nothing_is_drawn_where_a_cell_is_bad():
    rng = np.random.default_rng(1)
    with pytest.raises(InvalidCell, match=r"row 1, column 'sex': 'x' is not one of female, male"):
        SURVEYS["oracle"].privatize({"sex": ["male", "x"]}, rng)
    assert rng.random() == np.random.default_rng(1).random()


@pytest.mark.parametrize(
    ("protocol", "schema", "message"),
    [
        (GRR(4, 1.0), Schema([SEX]), "one attribute of 4 items; the schema has sex: 3"),
        (GRR(3, 1.0), PAIR, "one attribute of 3 items"),
        (GRR(3, 1.0), SEX, "must be a frequency.Schema"),
        (TDG(PAIR.domain, 1.0, 1000), Schema([SEX, AGE]), "records of"),
        (TDG([32, 3], 1.0, 1000), PAIR, "records of {'0': 32, '1': 3}"),
        (PrefixExtension(32, 1.0, True), Schema([AGE]), "texts of 4 bytes"),
        (PrefixExtension(40, 1.0, True), Schema([WORD]), "texts of 5 bytes"),
        (PrefixExtension(4, 1.0), Schema([AGE]), "one attribute of 16 items"),
        (OLH(1 << 32, 1.0), Schema([WORD]), "one attribute of 4294967296 items"),
    ],
)
def test_a_schema_of_other_attributes_is_refused(protocol, schema, message):
    with pytest.raises(ValueError, match=message):
        Survey(protocol, schema)


def test_what_is_no_protocol_is_refused():
    with pytest.raises(TypeError, match="expected a protocol"):
        Survey(7, Schema([Boolean("a")]))


def test_one_bit_of_an_oracle_is_estimated_and_not_listed():
    survey = Survey(OneBit(GRR(3, 0.6)), Schema([SEX]))
    aggregate = survey.aggregate(survey.privatize({"sex": TABLE["sex"]}))
    inner = survey.protocol.estimate(survey.channel.inner_aggregate(aggregate))
    found = survey.estimate(aggregate)
    assert found.answer("male").value == inner.answer(1).value
    assert found.columns()["sex"] == ["female", "male", "missing"]
