"""Dates: where the first and the last bin begin and end."""

import datetime as dt

import numpy as np
import pytest

from frequency import Between, Dates, InvalidCell


@pytest.mark.parametrize("last", ["2013-10-28", dt.date(2013, 10, 28), np.datetime64("2013-10-28")])
@pytest.mark.parametrize(("every", "bins"), [("minute", 1440), ("hour", 24), ("day", 1)])
def test_the_last_day_is_a_whole_one(last, every, bins):
    attribute = Dates("x", "2013-10-26", last, every)
    assert attribute.bins == 3 * bins
    assert attribute.coded(["2013-10-28T09:00"]).items[0] == 2 * bins + 9 * bins // 24
    assert attribute.coded(["2013-10-28T23:59:59"]).items[0] == 3 * bins - 1
    with pytest.raises(InvalidCell, match="to 2013-10-28"):
        attribute.coded(["2013-10-29"])
    assert attribute.asked(Between("2013-10-28", "2013-10-28")) == (2 * bins, 3 * bins)
    assert Dates(
        **{key: attribute.content()[key] for key in ("name", "first", "last", "every")}
    ) == (attribute)


def test_the_last_month_is_a_whole_one():
    assert Dates("x", "2013-01", "2013-02").bins == 59
    assert Dates("x", "2013-01", "2013-02", "hour").bins == 24 * 59


@pytest.mark.parametrize(
    "last", ["2013-10-28T00", "2013-10-28 00:00", dt.datetime(2013, 10, 28), "2013-10-28T00:59:59"]
)
def test_a_time_is_in_the_last_hour(last):
    """And so files of before, whose last hour is written, mean what they meant."""
    attribute = Dates("x", "2013-10-26", last, "hour")
    assert attribute.bins == 49
    assert attribute.last == "2013-10-28T00"


def test_times_with_a_zone_are_refused_with_what_to_write():
    for value in ("2013-01-01T05:00Z", dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)):
        with pytest.raises(InvalidCell, match=r"as local time, such as 2013-01-31T09:30"):
            Dates("x", "2013-01-01", "2013-01-02").coded([value])


def test_dates_beyond_the_calendar_of_files_are_refused():
    with pytest.raises(ValueError, match="of the years 0 to 9999"):
        Dates("x", np.datetime64("2000-01-01"), np.datetime64("10000-01-01"))
