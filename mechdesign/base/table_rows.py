"""Tables of any format as rows of text: CSV without any library, others by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mechdesign.base.csv_rows import AS_IT_IS, BINARY_TABLES, CsvRows, ReadOptions, opened_csv


@contextmanager
def opened_rows(source: Path, options: ReadOptions = AS_IT_IS) -> Iterator[CsvRows]:
    """Open a table of any format that is read: by the end of its name, else as CSV.

    Of what is no text, cells are as `mechdesign.base.table_columns.text_of` writes them.
    """
    if source.suffix.lower() in BINARY_TABLES:
        from mechdesign.base.table_files import opened_table, text_rows  # which need pyarrow

        with opened_table(source, options) as table:
            yield text_rows(source, table)
    else:
        separator = options.separator or ("\t" if ".tsv" in source.suffixes[-2:] else None)
        with opened_csv(source, separator, options.encoding) as rows:
            yield rows
