"""Columns as numbers: the same, and strictly the same, from every library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from frequency import InvalidCell
from frequency.schema.column import Column, is_no_value, number_of

LIBRARIES = {
    "list": list,
    "pandas": pd.Series,
    "pandas objects": lambda texts: pd.Series(texts, dtype=object),
    "polars": lambda texts: pl.Series("column", texts),
    "pyarrow": lambda texts: pa.chunked_array([texts]),
}
NUMBERS = ["1e1", " 5", "5 ", "\t5", "+5", "-.5", "5.", "00007", "-0", "1e-400", "0.1", "5\n"]
NOTHING = ["", "NA", " NaN", "nan", "NULL", "<NA>"]
OTHERS = ["1_0", "0x10", "１", "1,5", "-nan", "NAN", "1d1", "5e", "true", "1 2", "\xa05", "five"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", NUMBERS + NOTHING + OTHERS)
def test_texts_are_numbers_in_every_library_or_in_none(library, text):
    column = Column("mass", LIBRARIES[library](["3", text, "4"]))
    if text in OTHERS:
        with pytest.raises(InvalidCell) as error:
            column.numbers()
        assert (error.value.row, error.value.value) == (1, text)
    else:
        expected = np.nan if is_no_value(text) else number_of(text)
        assert np.array_equal(column.numbers(), [3.0, expected, 4.0], equal_nan=True)
