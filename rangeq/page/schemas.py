"""A schema as a form, and a form as a schema: what somebody knows of each column.

A field of the column of place 0 is called ``kind:0``, ``labels:0``, and so on. What a form has no
field for, such as heaps, is kept of the attribute that it was filled with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from frequency.schema import (
    Attribute,
    Boolean,
    Categorical,
    Dates,
    MissingCode,
    Numeric,
    Ordinal,
    Schema,
    Text,
)
from rangeq.page.choices import InvalidChoice, pointed

#: The fields of a column, and what they hold at first.
FIELDS = {
    **dict.fromkeys(("kind", "labels", "low", "high", "bins", "edges", "first", "last"), ""),
    "every": "day",
    "yes": "",
    "no": "",
    "unit": "",
    "outside": "refuse",
    "missing": "refuse",
    "codes": "",
}

_CLASSES = {"labels": Categorical, "order": Ordinal, "yesno": Boolean, "text": Text}
_CLASSES |= {"whole": Numeric, "number": Numeric, "dates": Dates}


class ColumnForm(NamedTuple):
    """A column of the form."""

    name: str
    fields: Mapping[str, str]
    title: str = ""  # what the file, or the schema, calls it
    doubt: str = ""  # what is to be looked at


def blank_form(
    name: str, notes: Mapping[str, Any], doubt: str = "", used: bool = True
) -> ColumnForm:
    """A column with what its file says of it, of which no cell was read."""
    known = dict(notes.get("labels", ()))
    codes = list(notes.get("missing", ()))
    codes += [code for code in known if isinstance(code, str) and code[:1] == "." and code != "."]
    labels = [*dict.fromkeys(label for code, label in known.items() if code not in codes)]
    fields = {**FIELDS, "codes": _spelt([MissingCode(c, known.get(c, "")) for c in codes])}
    if codes:
        fields["missing"] = "item"
    if len(labels) > 1 and used:
        fields |= {"kind": "order" if notes.get("ordered") else "labels"}
        fields |= {"labels": "\n".join(labels)}
    return ColumnForm(name, fields, notes.get("title", ""), doubt)


def form_of(attribute: Attribute, doubt: str = "") -> ColumnForm:
    """A column as it is described already."""
    told: dict[str, Any] = {"unit": attribute.unit, "missing": attribute.missing}
    told |= {"outside": attribute.outside, "codes": _spelt(attribute.missing_codes)}
    if isinstance(attribute, Numeric):
        told["kind"] = "whole" if attribute.whole else "number"
        if attribute.edges is not None:
            told["edges"] = "; ".join(f"{edge:.15g}" for edge in attribute.edges)
        else:
            assert attribute.low is not None
            assert attribute.high is not None
            each = attribute.whole and attribute.bins == attribute.high - attribute.low + 1
            told |= {"low": f"{attribute.low:.15g}", "high": f"{attribute.high:.15g}"}
            told["bins"] = "" if each else str(attribute.bins)
    elif isinstance(attribute, Categorical):
        told["kind"] = "order" if isinstance(attribute, Ordinal) else "labels"
        told["labels"] = "\n".join(attribute.labels)
    elif isinstance(attribute, Dates):
        told |= {"kind": "dates", "every": attribute.every}
        told |= {"first": str(attribute.first), "last": str(attribute.last)}
    elif isinstance(attribute, Boolean):
        told["kind"] = "yesno"
        told |= {"yes": ", ".join(map(str, attribute.true))}
        told |= {"no": ", ".join(map(str, attribute.false))}
    elif isinstance(attribute, Text):
        told["kind"] = "text"
    fields = {**FIELDS, **told}
    try:
        same = _attribute(attribute.name, fields, attribute, "") == attribute
    except (ValueError, TypeError):
        same = False
    if not same:
        fields["kind"] = "kept"
    return ColumnForm(attribute.name, fields, attribute.title, doubt)


def told_in(place: int, given: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The fields of the column of a place, as a form has them."""
    return {
        what: given.get(f"{what}:{place}", [first])[-1].strip() for what, first in FIELDS.items()
    }


def schema_of_form(
    columns: Sequence[ColumnForm], given: Mapping[str, Sequence[str]], known: Schema | None = None
) -> Schema:
    """Return the schema that a form describes."""
    attributes: list[Attribute] = []
    for place, column in enumerate(columns):
        told = told_in(place, given)
        if told["kind"]:
            before = known[column.name] if known is not None and column.name in known else None
            try:
                attributes.append(_attribute(column.name, told, before, column.title))
            except InvalidChoice as refusal:
                raise InvalidChoice(str(refusal), f"{refusal.field}:{place}") from None
            except (ValueError, TypeError) as refusal:
                raise InvalidChoice(str(refusal), f"kind:{place}") from None
    if not attributes:
        raise InvalidChoice("describe one column at least", "kind:0")
    return Schema(attributes, "" if known is None else known.public_source)


def _attribute(name: str, told: Mapping[str, str], known: Attribute | None, title: str) -> Any:
    """A column of the form; of what was known of it all that the form does not say is kept."""
    kind = told["kind"]
    if kind == "kept" and known is not None:
        return known
    if kind not in _CLASSES:
        raise InvalidChoice(f"choose what {name} holds", "kind")
    same: Any = known if type(known) is _CLASSES[kind] else None
    found: dict[str, Any] = {"missing": told["missing"] or "refuse", "unit": told["unit"]}
    found |= {"outside": told["outside"] or "refuse", "missing_codes": _codes(told["codes"], known)}
    if kind in ("labels", "order"):
        labels = [line.strip() for line in told["labels"].splitlines() if line.strip()]
        if len(labels) < 2:
            raise InvalidChoice(
                f"{name} has two labels or more: write each in a line of its own", "labels"
            )
        found["labels"] = labels
    elif kind in ("whole", "number"):
        found |= {"whole": kind == "whole", **_bins(name, told)}
        if same is not None and found["edges"] is None and same.edges is None:
            found["spacing"] = same.spacing
    elif kind == "dates":
        found |= {end: told[end] for end in ("first", "last")} | {"every": told["every"]}
    elif kind == "yesno":
        for what, of in (("yes", "true"), ("no", "false")):
            found[of] = [word.strip() for word in told[what].split(",") if word.strip()]
        if same is not None:  # which may have numbers where the form has texts
            found |= {
                of: w
                for of in ("true", "false")
                if [*map(str, w := getattr(same, of))] == found[of]
            }
    # Labels have no nearest one, and texts no others
    if found["outside"] == "clip" and kind in ("labels", "order", "yesno"):
        found["outside"] = "item"
    if kind == "text":
        found |= {"outside": "clip" if same is None else same.outside}
        found |= {} if same is not None else {"bytes": 64}
    if kind in ("yesno", "text"):
        found["unit"] = "" if same is None else same.unit
    if same is not None:
        return replace(same, **found)
    return _CLASSES[kind](name, title=title if known is None else known.title, **found)


def _bins(name: str, told: Mapping[str, str]) -> dict[str, Any]:
    """Edges, or bounds and the number of bins between them."""
    whole = told["kind"] == "whole"
    if told["edges"]:
        texts = told["edges"].split(";") if ";" in told["edges"] else told["edges"].split(",")
        edges = [_number(text.strip(), f"an edge of {name}", "edges") for text in texts]
        if whole and any(edge % 1 for edge in edges):
            raise InvalidChoice(f"the edges of {name} are whole numbers, as its values", "edges")
        found = [int(edge) if whole else edge for edge in edges]
        return {"edges": found, "low": None, "high": None, "bins": 0, "spacing": "equal"}
    ends = [_number(told[end], f"the {end} bound of {name}", end) for end in ("low", "high")]
    bins = _number(told["bins"], f"the bins of {name}", "bins") if told["bins"] else 50.0
    if bins % 1 or bins < 1:
        raise InvalidChoice(f"{name} has a whole number of bins, one at least", "bins")
    if whole and any(end % 1 for end in ends):
        raise InvalidChoice(f"the bounds of {name} are whole numbers, as its values are", "low")
    low, high = (int(end) if whole else end for end in ends)
    number = 0 if whole and not told["bins"] else int(bins)
    return {"edges": None, "low": low, "high": high, "bins": number}


def _number(text: str, what: str, field: str) -> float:
    """A number of the form."""
    try:
        number = float(pointed(text))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidChoice(f"{what} is a number such as 0.5, and not: {text or '(empty)'}", field)
    return number


def _spelt(codes: Sequence[Any]) -> str:
    """Codes of missing values, one in each line, with what they mean."""
    found = map(MissingCode.of, codes)
    return "\n".join(f"{one.code} = {one.label}" if one.label else str(one.code) for one in found)


def _codes(text: str, known: Attribute | None) -> list[Any]:
    """The codes of missing values in a text."""
    before = {} if known is None else {str(MissingCode.of(c).code): c for c in known.missing_codes}
    found: list[Any] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        spelt, _, label = (part.strip() for part in line.partition("="))
        same = MissingCode.of(before.get(spelt, spelt))
        code = same.code if spelt in before else _plain(spelt)
        found.append(MissingCode(code, label, same.missing) if label or same.missing else code)
    return found


def _plain(text: str) -> Any:
    """A code as a number, if it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
