"""Text: short texts that nobody can list, of which the frequent ones are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frequency.exceptions import A_VALUE
from frequency.schema.attribute import Attribute, Coded
from frequency.schema.column import Column, texts_of
from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import whole
from mechdesign.base.text import printable

LONGEST = 64
"""Bytes of the longest texts."""


@dataclass(frozen=True)
class Text(Attribute):
    """An attribute of short texts, of which the frequent ones are found: see `frequency.heavy`.

    Numbers, truths and dates are taken as labels are written: see `Categorical`.

    Parameters
    ----------
    name : str
        The column's name.
    bytes : int, default 8
        The length of the longest in UTF-8, 1 to 64. Of more than 8 only `PrefixExtension` finds the
        frequent ones.
    unit : str, default ""
        Such as "language".
    missing : str, default "refuse"
        "refuse", "item", which is the empty text, or "skip": see `Attribute`.
    outside : str, default "refuse"
        Of texts that are too long: "refuse", or "clip", their first characters stand for them.

    Raises
    ------
    ValueError
        Another length, or what `Attribute` refuses.
    """

    bytes: int = 8

    kind: ClassVar[str] = "text"
    policies: ClassVar[tuple[str, ...]] = ("refuse", "clip")

    def __post_init__(self) -> None:
        super().__post_init__()
        what = f"the number of bytes of {printable(self.name)}"
        set_fields(self, bytes=whole(self.bytes, "bytes", 1, LONGEST, what=what))

    @property
    def size(self) -> int:
        return 1 << (8 * self.bytes)

    @property
    def values(self) -> str:
        return f"a text of at most {self.bytes} bytes of UTF-8"

    def coded(self, values: Any) -> Coded:
        column = values if isinstance(values, Column) else Column(self.name, values)
        codes, entries = column.factors()
        written = [next(iter(texts_of(value)), None) for value in entries]
        texts = [None if value is None else self._fitting(value) for value in written]
        for code, text in enumerate(texts):
            if text is None:
                raise self._refusal(column, int(np.argmax(codes == code)), self.values)
        absent = codes < 0
        if self.missing == "refuse" and absent.any():
            raise self._refusal(column, int(np.argmax(absent)), A_VALUE)
        lookup = np.array([*texts, "" if self.missing == "item" else None], dtype=object)
        clipped = np.array(
            [*(value != text for value, text in zip(written, texts, strict=True)), False]
        )
        return Coded(lookup[codes], int(clipped[codes].sum()))

    def _fitting(self, value: str) -> str | None:
        """The text that stands for a text; None if none does."""
        if "\0" in value:
            return None
        try:
            spelt = value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        if len(spelt) <= self.bytes:
            return value
        return spelt[: self.bytes].decode(errors="ignore") if self.outside == "clip" else None

    def asked(self, given: Any) -> Any:
        return given

    def _content(self) -> dict[str, Any]:
        return {"bytes": self.bytes}
