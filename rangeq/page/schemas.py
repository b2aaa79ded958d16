"""A schema from a form: what somebody knows of each column, and not what a table holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from frequency.schema import Attribute, Boolean, Categorical, Numeric, Schema, Text
from rangeq.page.choices import InvalidChoice, pointed


def schema_of_form(columns: Sequence[str], given: Mapping[str, Sequence[str]]) -> Schema:
    """Return the schema that a form describes.

    Parameters
    ----------
    columns : sequence of str
        The names of the table's columns.
    given : mapping of str to sequence of str
        The fields of the form: of the column of place 0 ``kind:0``, ``labels:0`` and others.

    Returns
    -------
    Schema
        Of the columns with a kind.

    Raises
    ------
    InvalidChoice
        No column, or one that is described by halves; nothing is written.
    """
    attributes: list[Attribute] = []
    for place, name in enumerate(columns):
        told = {
            what: given.get(f"{what}:{place}", [""])[-1].strip()
            for what in ("kind", "labels", "low", "high", "bins", "unit", "missing", "outside")
        }
        if told["kind"]:
            try:
                attributes.append(_attribute(name, told))
            except (ValueError, TypeError) as refusal:
                raise InvalidChoice(str(refusal)) from None
    if not attributes:
        raise InvalidChoice("describe one column at least")
    return Schema(attributes)


def _attribute(name: str, told: Mapping[str, str]) -> Attribute:
    """A column of the form."""
    shared: dict[str, Any] = {"missing": told["missing"] or "refuse", "unit": told["unit"]}
    outside = told["outside"] or "refuse"
    if told["kind"] == "labels":
        labels = [line.strip() for line in told["labels"].splitlines() if line.strip()]
        if len(labels) < 2:
            raise InvalidChoice(f"{name} has two labels or more: write each in a line of its own")
        # Of labels there is no nearest one
        others: Any = "item" if outside == "clip" else outside
        return Categorical(name, labels, outside=others, **shared)
    if told["kind"] == "yesno":
        return Boolean(name, missing=shared["missing"])
    if told["kind"] == "text":
        return Text(name, bytes=64, missing=shared["missing"], outside="clip")
    if told["kind"] not in ("whole", "number"):
        raise InvalidChoice(f"choose what {name} holds")
    whole = told["kind"] == "whole"
    low, high = (_number(told[end], f"the {end} bound of {name}") for end in ("low", "high"))
    bins = _number(told["bins"], f"the bins of {name}") if told["bins"] else 0 if whole else 50
    if bins % 1 or (told["bins"] and bins < 1):
        raise InvalidChoice(f"{name} has a whole number of bins, one at least")
    if whole and (low % 1 or high % 1):
        raise InvalidChoice(f"the bounds of {name} are whole numbers, as its values are")
    numbers = (int(low), int(high)) if whole else (low, high)
    limits: Any = outside
    return Numeric(
        name, low=numbers[0], high=numbers[1], bins=int(bins), whole=whole, outside=limits, **shared
    )


def _number(text: str, what: str) -> float:
    """A number of the form."""
    try:
        number = float(pointed(text))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidChoice(f"{what} is a number such as 0.5, and not: {text or '(empty)'}")
    return number
