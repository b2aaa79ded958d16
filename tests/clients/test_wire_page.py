"""docs/wire.md and the pages below it are complete: every field of every report, and all that any
description holds.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from frequency.core.mixture import Mixture
from frequency.core.protocol import channel_of
from frequency.schema.column import NO_VALUE
from rangeq.grids import HIO
from rangeq.grids.level_sketch import LevelSketch
from tests.clients.value_cases import schemas
from tests.contracts.examples import COLLECTED, PROTOCOLS

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "clients" / "vectors"
FOLDER = ROOT / "docs" / "wire"
PAGE = "".join(
    path.read_text(encoding="utf-8")
    for path in [FOLDER.with_suffix(".md"), *sorted(FOLDER.glob("*.md"))]
)
EVERY = [*PROTOCOLS, *(protocol for protocol, _ in COLLECTED), HIO([64] * 10, 1.0)]
NAMES = [f"{k}-{type(protocol).__name__}" for k, protocol in enumerate(EVERY)]


def section(title):
    """The text below a heading, until the next."""
    return re.split("\n##? ", PAGE.split(f"\n{title}\n")[1])[0]


def rows(text):
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def quoted(text):
    return re.findall("`([^`]*)`", text)


FIELDS = [
    (quoted(names), dict(re.findall(r"`(\w+)` ([^`]*?)(?:, |$)", fields)))
    for names, fields in rows(section("## A report"))
]
"""Of each protocol the fields of its payload, and how many bytes each takes."""

STEPS = {
    name: quoted(keys)
    for name, keys in re.findall(r"### `(\w+)`\n\nKeys: (.*)\.\n", section("## Steps"))
}
EXPRESSIONS = {
    name: len(re.findall(", ", re.sub(r"\[\[.*?\], \.\.\]|\[widths, \.\.\]", "list", form)))
    for name, form in re.findall(r'^\| `\["(\w+)"(.*?)\]` \|', PAGE, re.MULTILINE)
}


def around(channel):
    """The channel whose reports another one sends."""
    for name in ("inner", "base"):
        inside = getattr(channel, name, None)
        if inside is not None and inside.report_dtype == channel.report_dtype:
            return around(inside)
    return channel


def measures(channel):
    """What the table's formulas speak of."""
    known: dict[str, Any] = {
        "ceil": math.ceil,
        "w": lambda m: next(k for k in (1, 2, 4, 8) if m < 1 << 8 * k),
    }
    names = ("domain", "coefficients", "padded", "hashes", "width", "rows", "channels", "bits")
    known |= {name: getattr(channel, name) for name in names if hasattr(channel, name)}
    law, code = getattr(channel, "law", channel), getattr(channel, "code", None)
    known |= {"outputs": getattr(law, "outputs", None), "length": getattr(code, "length", None)}
    if {"field", "dimension"} <= set(channel.parameters):
        known |= {"q": channel.parameters["field"], "t": channel.parameters["dimension"]}
    if isinstance(channel, LevelSketch):
        known["combinations"] = math.prod(map(len, channel.widths))
    if isinstance(channel, Mixture):
        known["parts"] = len(channel.parts)
        known["longest"] = max(part.report_dtype.itemsize for part in channel.parts)
    return known


@pytest.mark.parametrize("protocol", EVERY, ids=NAMES)
def test_fields_of_payloads(protocol):
    channel = around(channel_of(protocol))
    dtype, known = channel.report_dtype, measures(channel)
    mine = [fields for names, fields in FIELDS if type(protocol).__name__ in names]
    if mine == [{}]:  # that of the protocol that it is around
        assert type(protocol).__name__ in ("Paired", "PaddedSets", "Survey")
        return
    (fields,) = [fields for fields in mine if tuple(fields) == dtype.names]
    sizes = {name: eval(form.replace("^", "**"), known) for name, form in fields.items()}
    assert sizes == {name: dtype[name].itemsize for name in dtype.names}
    assert sum(sizes.values()) == dtype.itemsize == protocol.client()["bytes"]


def steps_of(step):
    """All steps in a description, and all expressions."""
    yield step
    for key in ("then", "oracle"):
        if key in step:
            yield from steps_of(step[key])
    if step["do"] == "mixture":
        for channel in step["channels"]:
            yield from steps_of(channel)


def expressions_of(step):
    return step.get("maps", []) + ([step["cell"]] if "cell" in step else [])


def test_every_step_and_expression_is_there():
    found: dict[str, set[Any]] = {"steps": set(), "expressions": set()}
    for protocol in EVERY:
        for step in steps_of(protocol.client()["report"]):
            assert set(step) == {"do", *STEPS[step["do"]]}, step
            found["steps"].add(step["do"])
            for name, *given in expressions_of(step):
                assert EXPRESSIONS[name] == len(given), name
                found["expressions"].add(name)
    assert found["steps"] == set(STEPS)
    assert found["expressions"] == set(EXPRESSIONS)


def test_every_key_of_a_description_is_there():
    keys = {name for row in rows(section("## A description")) for name in quoted(row[0])}
    kinds = {
        json.loads(kind): {"kind", *quoted(others.split(", perhaps")[0])}
        for row in rows(section("## Values"))
        for (kind,), others in [(quoted(row[0]), row[1])]
    }
    taken = set()
    for protocol in EVERY:
        description = protocol.client()
        assert set(description) == keys
        waiting = [description["takes"]]
        while waiting:
            takes = waiting.pop()
            assert set(takes) - {"none"} == kinds[takes["kind"]]
            taken.add(takes["kind"])
            waiting += [takes[key] for key in ("of", "as") if takes.get(key)]
    assert taken == set(kinds)


def test_every_attribute_is_there():
    text = section("## Values in labels and units")
    always = set(quoted(text.split("An attribute has the keys")[1].split(", and more")[0]))
    keys = {json.loads(quoted(kind)[0]): always | set(quoted(more)) for kind, more, _ in rows(text)}
    told = [attribute.client_values for _, schema, _ in schemas() for attribute in schema]
    assert {one["kind"]: set(one) for one in told} == keys
    for word in NO_VALUE[1:]:
        assert f"`{word}`" in text
    spaces = [ord(one) for one in map(chr, range(sys.maxunicode)) if one.isspace()]
    listed = text.split("**Spaces at the ends** are")[1].split("\n")[0]
    ends = re.findall(r"U\+(\w+)(?: to U\+(\w+))?", listed)
    ranges = [range(int(first, 16), int(last or first, 16) + 1) for first, last in ends]
    assert [one for some in ranges for one in some] == spaces


def test_reports_of_many_days_are_there():
    text = (FOLDER / "many-days.md").read_text(encoding="utf-8")
    first, second, third = (
        {name for row in rows(part) for name in quoted(row[0])}
        for part in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    )
    assert second == set(STEPS) - {"slots", "choice"}
    vectors = json.loads((VECTORS / "memoised.json").read_text(encoding="utf-8"))
    keys = {name for row in rows(section("## A description")) for name in quoted(row[0])}
    for part in vectors["protocols"]:
        assert set(part["client"]) == {*keys, "memoised"}
        assert set(part["client"]["memoised"]) == first
        for one in part["days"]:
            assert set(one) == {"values", "start", "tape", "reports", "state"}
            assert set(json.loads(one["state"])) == third
