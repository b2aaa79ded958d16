"""A released table in the formats that statistical offices publish: Excel, PX, SDMX-CSV, JSON-stat.

- Excel: a sheet of values, a row for each cell, and one with the statement.
- PX, of PC-Axis (PX file format specification, version 2013): the axes are the stub, the numbers of
  a cell the heading; the statement is a note. A number that is not known is "..", one of a cell
  that there cannot be "-".
- SDMX-CSV 2.0.0: a row for each cell, with the estimate as the observation, its standard error and
  interval as attributes, ``OBS_STATUS`` E (estimated), O (missing) or M (cannot exist), and
  ``CONF_STATUS`` F (free): nothing is suppressed.
- JSON-stat 2.0: a dataset whose last dimension are the numbers of a cell.
- Parquet: a column for each axis and each number, the statement in the metadata.

Texts are never formulas, and nothing that is written depends on anything but what was released.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base import comma_separated, needing, replacing, untaken
from mechdesign.tables.axes import Axes

#: What an Excel sheet holds, and a cell of it.
_MOST_ROWS, _MOST_CHARACTERS = (1 << 20) - 1, (1 << 15) - 1

_PIECE = 200  # characters of a text in a line of PX

_CODE = re.compile(r"[A-Za-z0-9_@$-]+")  # of SDMX

#: The agency and the name of tables in SDMX, where an office has none of its own.
STRUCTURE = "MECHDESIGN:COUNTS(1.0)"

# By the names of numbers here; others have theirs in capitals.
_SDMX = {"estimate": "OBS_VALUE", "standard error": "STD_ERROR"}

# The columns before those of the axes, and after those of the numbers.
_SDMX_BEFORE = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
_SDMX_AFTER = ("OBS_STATUS", "CONF_STATUS")


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table of released numbers, with names and labels for its axes.

    Parameters
    ----------
    axes : Axes
        The names and labels.
    numbers : mapping of str to array_like
        What is said of every cell, by name: each of as many numbers as there are cells, in the
        order of `Axes.cells`. Integers are written as such, others with two decimals; NaN where
        there is none.
    title : str
        What is counted.
    statement : str
        Whom the release protects, and how; of several lines.
    impossible : array_like of bool, optional
        Shape (cells,): the cells that there cannot be, such as groups that do not exist. What
        `numbers` says of them is not written.
    """

    axes: Axes
    numbers: Mapping[str, npt.ArrayLike]
    title: str
    statement: str
    impossible: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        if self._empty.shape != (self.axes.size,) or self._empty.dtype != np.bool_:
            raise ValueError(f"impossible: a bool is expected for each of {self.axes.size} cells")
        for name, array in self._arrays.items():
            if array.shape != (self.axes.size,) or array.dtype.kind not in "iuf":
                raise ValueError(f"{name}: a number is expected for each of {self.axes.size} cells")

    @property
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: np.asarray(array) for name, array in self.numbers.items()}

    @property
    def _empty(self) -> npt.NDArray[Any]:
        """Which cells there cannot be."""
        none = np.zeros(self.axes.size, dtype=bool)
        return none if self.impossible is None else np.asarray(self.impossible)

    @property
    def _columns(self) -> list[str]:
        """The names of numbers, none of which is that of an axis."""
        return [untaken(name, self.axes.names) for name in self.numbers]

    def _texts(self, empty: str = "") -> Iterator[list[str]]:
        """The numbers of each cell as they are written, "" where there is none."""
        arrays = [
            [_text(value, array.dtype.kind == "f") for value in array.tolist()]
            for array in self._arrays.values()
        ]
        for impossible, row in zip(self._empty.tolist(), zip(*arrays, strict=True), strict=True):
            yield [empty] * len(row) if impossible else [*row]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format of its name, replacing it in one step or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            It ends in ``.xlsx``, ``.px``, ``.sdmx.csv``, ``.json`` (JSON-stat) or ``.parquet``.

        Raises
        ------
        ValueError
            Another ending, or a table that is too large for the format.
        ImportError
            The library of the format is not installed.
        """
        name = Path(path).name.lower()
        written = next((make for end, make in _FORMATS.items() if name.endswith(end)), None)
        if written is None:
            raise ValueError(f"a published table ends in {', '.join(_FORMATS)}, got {name!r}")
        data = written(self)
        with replacing(path) as stream:
            stream.write(data)

    def px(self) -> bytes:
        """Return the table in the PX format of PC-Axis, in UTF-8."""
        heading = untaken("number", self.axes.names)
        axes = dict(
            zip((*self.axes.names, heading), (*self.axes.labels, self._columns), strict=True)
        )
        for labels in axes.values():
            if len(set(map(_px, labels))) < len(labels):
                raise ValueError("labels that differ in quotes alone are the same in a PX file")
        decimals = 2 if any(array.dtype.kind == "f" for array in self._arrays.values()) else 0
        lines = [
            'CHARSET="ANSI";',
            'AXIS-VERSION="2013";',
            'CODEPAGE="utf-8";',
            'LANGUAGE="en";',
            f'CREATION-DATE="{datetime.now(UTC):%Y%m%d %H:%M}";',
            f"DECIMALS={decimals};",
            f"SHOWDECIMALS={decimals};",
            'MATRIX="COUNTS";',
            'SUBJECT-CODE="COUNTS";',
            'SUBJECT-AREA="Counts of people";',
            f"TITLE={_px(self.title)};",
            f"CONTENTS={_px(self.title)};",
            'UNITS="people";',
            f"STUB={','.join(map(_px, self.axes.names))};",
            f"HEADING={_px(heading)};",
            *(f"VALUES({_px(n)})={_px_list(labels)};" for n, labels in axes.items()),
            'DATASYMBOL2="not available";',
            *(['DATASYMBOLNIL="there is no such cell";'] if self._empty.any() else []),
            f"NOTE={_px(self.statement)};",
            "DATA=",
            *(" ".join(text or '".."' for text in row) for row in self._texts('"-"')),
        ]
        return ("\r\n".join(lines) + ";\r\n").encode()

    def sdmx_csv(self) -> bytes:
        """Return the table as SDMX-CSV 2.0.0, of codes, or of codes with labels."""
        names = [_SDMX.get(name, _code(name).upper()) for name in self.numbers]
        ids = _codes(self.axes.names, {*_SDMX_BEFORE, *names, *_SDMX_AFTER})
        codes = [dict(zip(each, _codes(each), strict=True)) for each in self.axes.labels]
        plain = all(code == label for each in codes for label, code in each.items())
        lines = [
            [
                *_SDMX_BEFORE,
                *(
                    code if code == name else f"{code}: {name}"
                    for name, code in zip(self.axes.names, ids, strict=True)
                ),
                *names,
                *_SDMX_AFTER,
            ]
        ]
        observed = names.index("OBS_VALUE") if "OBS_VALUE" in names else 0
        rows = zip(self.axes.cells(), self._texts(), self._empty.tolist(), strict=True)
        for labels, numbers, impossible in rows:
            status = "M" if impossible else "E" if numbers[observed] else "O"
            cell = [each[label] for each, label in zip(codes, labels, strict=True)]
            if not plain:
                cell = [f"{code}: {label}" for code, label in zip(cell, labels, strict=True)]
            lines.append(["dataflow", STRUCTURE, "I", *cell, *numbers, status, "F"])
        return comma_separated(lines).encode()

    def json_stat(self) -> bytes:
        """Return the table as a dataset of JSON-stat 2.0."""
        metric = untaken("number", self.axes.names)
        columns = self._columns
        dimensions = {
            name: {"label": name, "category": {"index": [*labels]}}
            for name, labels in zip(self.axes.names, self.axes.labels, strict=True)
        }
        units = {
            name: {"label": "people", "decimals": 2 if array.dtype.kind == "f" else 0}
            for name, array in zip(columns, self._arrays.values(), strict=True)
        }
        dimensions[metric] = {
            "label": metric,
            "category": {"index": columns, "unit": units},
        }
        values = [
            [
                None if impossible or math.isnan(value) else value
                for value, impossible in zip(array.tolist(), self._empty.tolist(), strict=True)
            ]
            for array in self._arrays.values()
        ]
        impossible = np.repeat(self._empty, len(columns)).tolist()
        status: dict[str, Any] = (
            {"status": {str(k): "-" for k, none in enumerate(impossible) if none}}
            if any(impossible)
            else {}
        )
        content = {
            "version": "2.0",
            "class": "dataset",
            "label": self.title,
            "updated": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "note": self.statement.splitlines(),
            "role": {"metric": [metric]},
            "id": [*self.axes.names, metric],
            "size": [*self.axes.shape, len(columns)],
            "dimension": dimensions,
            **status,
            "value": [value for cell in zip(*values, strict=True) for value in cell],
        }
        return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()

    def xlsx(self) -> bytes:
        """Return the table as an Excel workbook: a sheet "table", and a sheet "statement"."""
        if self.axes.size >= _MOST_ROWS:
            raise ValueError(f"{self.axes.size} cells are more rows than an Excel sheet has")
        texts = (*self.axes.names, *(label for each in self.axes.labels for label in each))
        if any(len(text) > _MOST_CHARACTERS for text in texts):
            raise ValueError(
                f"a label has more than {_MOST_CHARACTERS} characters, an Excel cell's"
            )
        with needing("Excel files need XlsxWriter", "office"):
            from xlsxwriter import Workbook

        stream = io.BytesIO()
        with Workbook(stream, {"in_memory": True}) as book:
            table, bold = book.add_worksheet("table"), book.add_format({"bold": True})
            forms = [
                book.add_format({"num_format": "0.00" if array.dtype.kind == "f" else "0"})
                for array in self._arrays.values()
            ]
            for place, name in enumerate((*self.axes.names, *self._columns)):
                table.write_string(0, place, name, bold)
            arrays = [
                np.where(self._empty, np.nan, array).tolist() for array in self._arrays.values()
            ]
            rows = zip(*arrays, strict=True)
            first = len(self.axes.names)
            for row, (labels, values) in enumerate(zip(self.axes.cells(), rows, strict=True), 1):
                for place, label in enumerate(labels):
                    table.write_string(row, place, label)  # never a formula
                for place, (value, form) in enumerate(zip(values, forms, strict=True), first):
                    if not math.isnan(value):
                        table.write_number(row, place, value, form)
            table.freeze_panes(1, first)
            table.autofit()
            said = book.add_worksheet("statement")
            for row, line in enumerate([self.title, "", *self.statement.splitlines()]):
                said.write_string(row, 0, line)
        return stream.getvalue()

    def parquet(self) -> bytes:
        """Return the table as a Parquet file, with the statement in its metadata."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        cells = [*self.axes.cells()]
        labels = {
            name: pa.array([cell[place] for cell in cells]).dictionary_encode()
            for place, name in enumerate(self.axes.names)
        }
        numbers = {
            name: pa.array(array, from_pandas=True, mask=self._empty | np.isnan(array))
            for name, array in zip(self._columns, self._arrays.values(), strict=True)
        }
        said = {"title": self.title, "statement": self.statement}
        stream = io.BytesIO()
        table = pa.table({**labels, **numbers}).replace_schema_metadata(said)
        pq.write_table(table, stream)
        return stream.getvalue()


_FORMATS: dict[str, Callable[[PublishedTable], bytes]] = {
    ".xlsx": PublishedTable.xlsx,
    ".px": PublishedTable.px,
    ".sdmx.csv": PublishedTable.sdmx_csv,
    ".json": PublishedTable.json_stat,
    ".parquet": PublishedTable.parquet,
}


def _text(value: float, decimal: bool) -> str:
    if not decimal:
        return str(value)
    return "" if math.isnan(value) else f"{value:.2f}"


def _px(text: str) -> str:
    """Quote a text for PX: lines are parted by "#", and there is no quote in it."""
    # In pieces, as programs cut lines that are too long
    plain = "#".join(text.splitlines()).replace('"', "'")
    pieces = [plain[i : i + _PIECE] for i in range(0, len(plain), _PIECE)] or [""]
    return "\r\n".join(f'"{piece}"' for piece in pieces)


def _px_list(labels: Iterable[str]) -> str:
    return ",\r\n".join(map(_px, labels))


def _code(text: str) -> str:
    """A text with nothing that a code of SDMX may not have."""
    code = re.sub(r"[^A-Za-z0-9_@$-]+", "_", text).strip("_")
    return code if _CODE.fullmatch(code) else "X"


def _codes(texts: tuple[str, ...], reserved: Collection[str] = ()) -> list[str]:
    """Different codes for different texts, none of the reserved ones: the text where it is one."""
    codes: list[str] = []
    kept = {text for text in texts if _CODE.fullmatch(text)}.difference(reserved)
    taken = kept.union(reserved)
    for text in texts:
        code, number = text, 1
        if text not in kept:
            code = base = _code(text)
            while code in taken:
                number += 1
                code = f"{base}_{number}"
            taken.add(code)
        codes.append(code)
    return codes
