"""Released quantiles: values in units, files that are read as they were written, and lies."""

import json
from fractions import Fraction

import numpy as np
import pytest

from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema
from mechdesign import InvalidFile
from mechdesign.base.files import digest_of
from rangeq.central import (
    QuantileRelease,
    ReleasedQuantiles,
    TreeQuantiles,
    count_cells,
    load_release,
)

AGE = Schema([Numeric("age", low=0, high=99, whole=True, unit="years", missing="item")])
PAY = Schema([Numeric("pay", [0, 1, 2.5, 10, 100])])
SEEN = Schema([Dates("seen", "2020-01-01", "2020-12-31", "month", outside="item")])
Q = (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10))


def bins(schema):
    return schema.attributes[0].bins


@pytest.mark.parametrize("schema", [AGE, PAY, SEEN], ids=lambda schema: schema.names[0])
@pytest.mark.parametrize("kind", [QuantileRelease, TreeQuantiles])
@pytest.mark.parametrize("epsilon", [1, 0.5, "1/3"])
def test_what_is_saved_is_loaded(schema, kind, epsilon, tmp_path):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 20, schema.sizes)
    released = ReleasedQuantiles.draw(schema, kind(bins(schema), Q, epsilon), counts, rng)
    path = tmp_path / "a.release"
    released.save(path)
    found = ReleasedQuantiles.load(path)
    assert found == released
    assert found.columns() == released.columns()
    assert found.mechanism.audit() == kind(bins(schema), Q, epsilon).audit()
    assert load_release(path) == released
    assert (found.q, len(found.bins)) == (Q, 3)


def test_quantiles_are_in_units():
    ages = np.random.default_rng(1).binomial(99, 0.4, 5000)
    counts = count_cells(AGE, [{"age": [*ages.tolist(), *[None] * 3000]}])
    mechanism = QuantileRelease(100, Q, 100)
    released = ReleasedQuantiles.draw(AGE, mechanism, counts, np.random.default_rng(2))
    expected = np.quantile(ages, [0.25, 0.5, 0.9]).astype(int).tolist()
    assert released.values.tolist() == expected  # of those who have a value
    assert [end.tolist() for end in released.ends] == [expected, expected]
    assert str(released).splitlines() == [
        "quantile  age (years)",
        *(f"{float(q):<8}  {value}" for q, value in zip(Q, expected, strict=True)),
    ]
    wide = ReleasedQuantiles(PAY, QuantileRelease(4, Q, 1), (0, 2, 3))
    assert wide.columns() == {
        "quantile": [0.25, 0.5, 0.9],
        "value": [0.5, 6.25, 55.0],
        "first": [0.0, 2.5, 10.0],
        "last": [1.0, 10.0, 100.0],
    }
    assert str(wide).splitlines()[2].split() == ["0.5", "2.5", "to", "10"]
    dates = ReleasedQuantiles(SEEN, QuantileRelease(12, Q, 1), (0, 5, 11))
    assert str(dates.ends[0][1]).startswith("2020-06-01")


@pytest.mark.parametrize("n", [0, 1])
def test_nobody_and_one_user(n):
    counts = count_cells(AGE, [{"age": [50] * n}])
    for kind in (QuantileRelease, TreeQuantiles):
        released = ReleasedQuantiles.draw(AGE, kind(100, Q, 1), counts, np.random.default_rng(1))
        assert all(0 <= one < 100 for one in released.bins)


def test_parts_that_do_not_belong_together():
    mechanism = QuantileRelease(100, Q, 1)
    with pytest.raises(ValueError, match="has 4 bins, and the mechanism is for 100"):
        ReleasedQuantiles.draw(PAY, mechanism, np.zeros(4, dtype=int))
    for schema in (
        Schema([Boolean("alive")]),
        Schema([Categorical("sex", ["f", "m"])]),
        Schema([*AGE, *PAY]),
    ):
        with pytest.raises(ValueError, match="of one ordered attribute"):
            ReleasedQuantiles.draw(schema, mechanism, np.zeros(2, dtype=int))
    for found in ((1, 2), (1, 2, 100), (1, 2, -1), (1, 2, 3.0), (1, 2, True)):
        with pytest.raises(ValueError, match="bin"):
            ReleasedQuantiles(AGE, mechanism, found)
    with pytest.raises(TypeError, match="one of QuantileRelease, TreeQuantiles, got a int"):
        ReleasedQuantiles(AGE, 7, (1, 2, 3))


LIES = {
    "of another version": lambda c: c.update(version=4),
    "with more in it": lambda c: c.update(more=1),
    "of a smaller epsilon": lambda c: c.update(epsilon="1/10"),
    "of an epsilon that is none": lambda c: c.update(epsilon=1),
    "of another alpha": lambda c: c.update(alpha="1/2"),
    "of another mechanism": lambda c: c.update(mechanism="Hierarchy"),
    "of no mechanism": lambda c: c.update(mechanism=[]),
    "of more quantiles": lambda c: c["q"].append("1/3"),
    "of no quantiles": lambda c: c.update(q=[]),
    "of quantiles beyond": lambda c: c.update(q=["2", "1/2", "1/4"]),
    "of values beyond": lambda c: c["bins"].__setitem__(0, 100),
    "of values that are none": lambda c: c["bins"].__setitem__(0, "1"),
    "of no values": lambda c: c.update(bins=None),
    "of another schema": lambda c: c.update(schema=PAY.content()),
    "of no schema": lambda c: c.update(schema=None),
}


@pytest.mark.parametrize("lie", LIES)
def test_files_that_lie_are_refused(lie, tmp_path):
    path = tmp_path / "a.release"
    ReleasedQuantiles(AGE, QuantileRelease(100, Q, 1), (1, 50, 99)).save(path)
    content = json.loads(path.read_text())
    LIES[lie](content)
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match=r"a\.release: "):
        load_release(path)


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "a.release"
    ReleasedQuantiles(AGE, QuantileRelease(100, Q, 1), (1, 50, 99)).save(path)
    path.write_text(path.read_text().replace("50", "51"))
    with pytest.raises(InvalidFile, match="digest"):
        load_release(path)
