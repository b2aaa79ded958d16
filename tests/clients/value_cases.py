"""Attributes of every kind and policy, values good and bad, and what the schema makes of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, get_args

from frequency import Boolean, Categorical, Dates, InvalidCell, Numeric, Schema, Text
from frequency.clients.device import canonical, sponge
from frequency.heavy.listing import Universe
from frequency.schema.attribute import Attribute, Missing

REFUSED = False
"""In the place of a payload: the value is refused. None: the user does not report."""

TRUTH = (1 << 64) - 1
"""The word of which a lie is the truth."""

SHAPES: dict[str, Callable[..., Attribute]] = {
    "labels": lambda **given: Categorical(
        "x",
        ["a", "NA", "7", "-1", "true", "\u00e4", "\U0001f600", "7.5", " b", "\ud800", "2013-01-31"],
        **given,
    ),
    "fractions as labels": lambda **given: Categorical(
        "x", [0.5, "0.00001", "0.0000001", "-2.5", "1e-05", "0.30000000000000004"], **given
    ),
    "numbers as labels": lambda **given: Categorical(
        "x", [0, "7.0", "1e3", "1000", "100000000000000000000", "-0"], **given
    ),
    "one label": lambda **given: Categorical("x", ["female"], **given),
    "yes or no": lambda **given: Boolean("x", **given),
    "years of age": lambda **given: Numeric("x", low=0, high=120, whole=True, **given),
    "one integer": lambda **given: Numeric("x", low=5, high=5, whole=True, **given),
    "steps of integers": lambda **given: Numeric(
        "x", low=-9, high=90, bins=10, whole=True, **given
    ),
    "uneven steps": lambda **given: Numeric("x", low=-3, high=9, bins=5, whole=True, **given),
    "edges of integers": lambda **given: Numeric("x", [-3, 0, 4, 9], whole=True, **given),
    "ratios of integers": lambda **given: Numeric(
        "x", low=1, high=9999, bins=6, spacing="logarithmic", whole=True, **given
    ),
    "largest integers": lambda **given: Numeric(
        "x", [-(2**53) + 2, 7, 2**53 - 2], whole=True, **given
    ),
    "largest integer": lambda **given: Numeric(
        "x", low=2**53 - 5, high=2**53 - 2, whole=True, **given
    ),
    "edges": lambda **given: Numeric("x", [-2.5, 0, 7, 7.5], **given),
    "steps": lambda **given: Numeric("x", low=2000, high=7000, bins=50, **given),
    "tenths": lambda **given: Numeric("x", low=0, high=1, bins=10, **given),
    "ratios": lambda **given: Numeric(
        "x", low=100, high=1e6, bins=24, spacing="logarithmic", **given
    ),
    "one bin": lambda **given: Numeric("x", [0.1 + 0.2, 0.75], **given),
    "smallest numbers": lambda **given: Numeric("x", [-5e-324, 0, 5e-324, 1e-310, 1e-5], **given),
    "largest numbers": lambda **given: Numeric("x", [-(2.0**53) + 2, 0.5, 2.0**53 - 2], **given),
    "minutes": lambda **given: Dates(
        "x", "2013-01-01 05:00", "2013-01-01 06:30", "minute", **given
    ),
    "hours": lambda **given: Dates("x", "1969-12-31 20:00", "1970-01-02 07:00", "hour", **given),
    "days": lambda **given: Dates("x", "2012-02-20", "2013-03-01", **given),
    "weeks": lambda **given: Dates("x", "1899-12-27", "1900-03-31", "week", **given),
    "months": lambda **given: Dates("x", "1999-11-30", "2013-03-01", "month", **given),
    "quarters": lambda **given: Dates("x", "2012-02", "2013-03-01", "quarter", **given),
    "first years": lambda **given: Dates("x", "0000-01", "0004-12", "year", **given),
    "last years": lambda **given: Dates("x", "9990-01", "9999-12", "year", **given),
    **{
        f"text of {size}": lambda size=size, **given: Text("x", size, **given) for size in (1, 5, 8)
    },
}
"""Attributes by what they are, of any policies."""

JSON_VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 5, 7, 9, -1, -3, -4, 8, 120, 121, 1000, 2000, 7000, 2**53 - 1),
    *(2**53 - 2, 2**53 - 3, 2**53 - 6, 2 - 2**53, 1 - 2**53, 0.0, -0.0, 0.5, 7.0, 7.5, -2.5, 1.5),
    *(0.1, 0.30000000000000004, 0.3, 0.75, 1e-5, 1e-310, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(1e20, 1e21, 1e300, -1e300, 1.7976931348623157e308, 2.0**53, 120.99999999999999, 1e6, 6999.9),
    *(1e-7, 1.5e-7, 0.25, "outside", "missing", " outside", "0.5", "-2.5", "0.00001"),
    *("", " ", "NA", " NA\n", "na", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>", "NAN"),
    *("\u00a0NA\u3000", "\x85nan\x1c", "\ufeffNA", "\u180eNA", "\u200bNA", "\x00", "NA\x1f"),
    *("a", "A", " a", "b", " b", "\u00e4", "a\u0308", "\U0001f600", "\ud800", "female", "true"),
    *("True", " TRUE ", "yes", "Y", "t", "no", "N", "f", "F", "\ufeffyes", "\u2003no\x1d", "\x85T"),
    *("0", "1", "-1", "-0", "7", " 7", "7 ", "\t7\r\n", "7.0", "7.", "07", "+7", ".7e1", "7e0"),
    *("70e-1", "1e3", "1E+3", "1e", "e1", ".", "+", "", "1_000", "0x10", "0b1", "1,5", "--1"),
    *("\u0667", "\uff17", "\u00a07", "\x0b7", "\u20037", "infinity", "Infinity", "-inf", "1e400"),
    *("1e-400", "-1e400", "7.5", "7.500000000000000000000000000001", "7d", "7f", "1e0001", "- 1"),
    *("9007199254740990", "9007199254740993", "9007199254740991.4", "0.1", ".30000000000000004"),
    *("100000000000000000000", "1e20", "5e-324", "2.5e-324", "2.4e-324", "4.9e-324", "1e-5"),
    *("2013-01-31", "2013-01-31 ", " 2013-01-31", "\u00a02013-01-31", "2013-02-28", "2013-02-29"),
    *("2012-02-29", "1900-02-29", "2000-02-29T23:59:59", "2013-02-30", "2013-04-31", "2013-13-01"),
    *("2013-00-01", "2013-01-00", "2013-1-1", "2013", "2013-01", "2013-02-", "20130131", "2013-03"),
    *("2013-01-01T05", "2013-01-01 05:59", "2013-01-01T05:59:59", "2013-01-01T05:59:59.999999999"),
    *("2013-01-01T05:00:00.1234567890", "2013-01-01T05:00:00.", "2013-01-01t05", "2013-01-01  05"),
    *("2013-01-01T24:00", "2013-01-01T23:60", "2016-12-31T23:59:60", "2013-01-01T05:00Z"),
    *("2013-01-01T05:00+00:00", "0000-01-01", "0000-02-29", "0000-02-30", "0001-01-01", "0400-01"),
    *("1969-12-31T23:59:59.5", "1970-01-01", "1899-12-26", "1899-12-27", "1900-03-31T23:59:59"),
    *("1500-01-01T00:00:00.123456789", "9999-12-31T23:59:59", "9999-12-31", "10000-01-01"),
    *("-001-01-01", "\u0662013-01-01", "2013-01-01\x0b", "\x0c2013-01-01", "2013-01-01\x1c"),
    *("abcde", "abcdef", "abcdefgh", "abcdefghi", "abcd\u00e9", "abcdefg\u00e9", "a\U0001f600"),
    *("abcdef\U0001f600", "\U0001f600\U0001f600\U0001f600", "a\x00", "abcdefgh\x00", "\ud83d"),
    *("abcdefghi\udc00", "\u20ac\u20ac\u20ac", "a\u200d\u0301b", "\x7f", "\u00ff", [], [7], ["a"]),
    *({}, {"x": 7}, {"x": "a"}, {"x": None}, {"y": 7}, {"x": 7, "y": 1}),
]
"""Values as JSON has them, so that clients in every language can be asked."""


def policies(shape: str) -> Iterator[dict[str, str]]:
    """Every pair of policies that attributes of a shape may have."""
    kind = type(SHAPES[shape]())
    for missing, outside in product(get_args(Missing), kind.policies):
        yield {"missing": missing, "outside": outside}


RECORDS: list[tuple[Schema, list[Any]]] = [
    (
        Schema(
            [
                Categorical("sex", ["female", "male"], missing="skip"),
                Numeric("age", low=0, high=120, whole=True, missing="item", outside="clip"),
                Dates("day", "2013-01-01", "2013-12-31", "month", missing="skip", outside="item"),
            ]
        ),
        [
            ["male", 37, "2013-02-28"],
            ["female", "37", "2014-01-01T05:00"],
            ["female", 200, "2013-12"],
            ["female", None, "2013-12"],
            [None, 37, "2013-12"],
            ["male", 37, "NA"],
            [None, 37.5, "2013-12"],
            [None, 37, "2013-12-32"],
            ["other", 37, None],
            ["male", 37],
            ["male", 37, "2013-02-28", 0],
            {"sex": "male", "age": 37, "day": "2013-02-28"},
            {"day": "2013-02-28", "age": -1, "sex": "female", "name": "x"},
            {"day": "2013-02-28", "sex": "female"},
            {"sex": None, "age": None, "day": None},
            "male",
        ],
    ),
    (
        Schema([Boolean("0", missing="item", outside="item"), Categorical("a", ["7", "\u00e4"])]),
        [
            [True, 7],
            [2, 7.0],
            [None, "\u00e4"],
            {"a": "7", "0": "no"},
            {"a": 7, "0": [1]},
            {"a": "8", "0": 1},
        ],
    ),
]
"""Schemas of several attributes, and values."""


def schemas() -> Iterator[tuple[str, Schema, list[Any]]]:
    """Schemas of every kind of attribute, policy and number of attributes, and their own values."""
    for shape, make in SHAPES.items():
        for given in policies(shape):
            attribute = make(**given)
            name = f"{shape}, missing {given['missing']}, outside {given['outside']}"
            yield name, Schema([attribute]), near(attribute)
    for schema, values in RECORDS:
        yield f"{len(schema)} attributes", schema, values


def near(attribute: Attribute) -> list[Any]:
    """Values next to the ends of an attribute's bins."""
    if not isinstance(attribute, Numeric):
        return []
    found: list[Any] = []
    cuts = attribute.cuts.tolist()
    for cut in [*cuts[:3], *cuts[len(cuts) // 2 :][:2], *cuts[-2:]]:
        found += [cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf), repr(cut)]
        if attribute.whole:
            found += [cut - 1, str(cut - 1), cut + 0.5]
    return found


def payload_of(schema: Schema, value: Any) -> bytes | bool | None:
    """What a truthful report of one user's values says, by the code for tables."""
    if isinstance(value, dict):
        table = {name: [one] for name, one in value.items()}
        if not set(schema.names) <= set(table):
            return REFUSED
    else:
        row = [value] if len(schema) == 1 else value
        if not isinstance(row, (list, tuple)) or len(row) != len(schema):
            return REFUSED
        table = {name: [one] for name, one in zip(schema.names, row, strict=True)}
    try:
        encoded = schema.encode(table)
    except InvalidCell:
        return REFUSED
    if encoded.skipped:
        return None
    if isinstance(schema.attributes[0], Text):
        size = schema.attributes[0].bytes
        item = int(Universe(8 * size, text=True).words(encoded.columns[0])[0])
    else:
        item = int(schema.domain.items([[int(column[0]) for column in encoded.columns]])[0])
    return item.to_bytes(width_of(schema), "little")


def width_of(schema: Schema) -> int:
    """The bytes of a truthful report."""
    size = math.prod(schema.sizes)
    return next(width for width in (1, 2, 4, 8) if size <= 1 << 8 * width)


def truthful(schema: Schema) -> dict[str, Any]:
    """The description of a client whose reports are the items, where words are all `TRUTH`."""
    size = math.prod(schema.sizes)
    exact = size if size < 1 << 53 else str(size)
    if isinstance(schema.attributes[0], Text):
        inner: dict[str, Any] = {"kind": "string", "bytes": schema.attributes[0].bytes}
    elif len(schema) == 1:
        inner = {"kind": "item", "size": exact}
    else:
        names, sizes = list(schema.names), list(schema.sizes)
        inner = {"kind": "record", "names": names, "sizes": sizes, "number": True}
    values = [attribute.client_values for attribute in schema]
    width = width_of(schema)
    content = {
        "format": "mechdesign.client",
        "version": 1,
        "protocol": "Truth",
        "wire": "00" * 8,
        "bytes": width,
        "epsilon": "inf",
        "odds": "inf",
        "takes": {"kind": "schema", "attributes": values, "as": inner},
        "report": {
            "do": "lie",
            "outcomes": exact,
            "lie": 1,
            "width": width,
            "field": None,
            "signs": 0,
        },
    }
    return signed(content)


def signed(content: dict[str, Any]) -> dict[str, Any]:
    """A description with the digest that matches."""
    return {**content, "digest": f"shake256:{sponge(canonical(content), 32).hex()}"}
