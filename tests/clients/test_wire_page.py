"""docs/wire.md and the pages below it are complete: every field of every report, and all that any
description holds.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frequency.clients import ClientError, load_client
from frequency.clients.device import NO_VALUE
from frequency.core.mixture import Mixture
from frequency.core.protocol import channel_of
from rangeq.grids import HIO
from rangeq.grids.channel import LevelSketch
from tests.clients.node import Node
from tests.clients.test_javascript import GRR, described
from tests.clients.value_cases import schemas
from tests.contracts.examples import COLLECTED, PROTOCOLS

pytest.importorskip("tools.vectors", reason="the tests may be of an installed package")
from tools.vectors import value_of

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
    names = ["domain", "coefficients", "padded", "hashes", "functions", "width", "rows"]
    names += ["channels", "bits"]
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


def integers(content, found=()):
    """Where integers are, as numbers or as texts: the keys and places that lead there."""
    if isinstance(content, (dict, list)):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        for key, one in pairs:
            yield from integers(one, (*found, key))
    elif type(content) is int or (isinstance(content, str) and content.isdecimal()):
        yield found, content


def vectors_of_protocols():
    """Each description in the vectors, with a value, a tape and a report if it has any."""
    for path in sorted(VECTORS.glob("*.json")):
        for part in json.loads(path.read_text(encoding="utf-8")).get("protocols", []):
            some = (one for one in part.get("vectors", []) if one["reports"])
            first = ((one["value"], *one["reports"][0]) for one in some)
            yield part["client"], next(first, None)


TEXTS = ("protocol", "wire", "epsilon", "odds", "digest", "name", "names", "labels", "cuts", "day")
"""Keys of a description whose texts are no integers, even of digits."""


@pytest.mark.slow
def test_integers_are_texts_where_the_page_says():
    """No others are in the vectors; and of those both clients read smaller ones as texts, too."""
    line = section("## Numbers and texts").split("**Integers in JSON**")[1].split("\n- ")[0]
    parts = "(description's.*?always|its `memoised`.*?and in|its `takes`.*?All)"
    report, memoised, takes = (quoted(part) for part in re.findall(parts, line, re.DOTALL))
    assert (report, memoised[0], takes[0]) == (["report"], "memoised", "takes")

    def a_text(where):
        keys = [key for key in where if type(key) is str]
        of = {"memoised": memoised[1:], "takes": takes[1:]}
        return keys[0] == "report" or keys[-1] in of.get(keys[0], ())

    seen = set()
    with Node() as node:
        for description, vector in vectors_of_protocols():
            kind = description["takes"]["kind"]
            for where, found in integers(description):
                keys = tuple(key for key in where if type(key) is str)
                if set(keys) & set(TEXTS):
                    continue
                if isinstance(found, str):
                    assert a_text(where), where
                    assert int(found) >= 1 << 53, where
                if vector is None or (kind, keys) in seen or keys[0] not in ("report", "takes"):
                    continue
                if a_text(where):
                    seen.add((kind, keys))
                    check_text(node, description, where, found, *vector)
        refused = described({**GRR, "version": "1"})
        assert "version" in node.ask(refused, 1)["error"]
        with pytest.raises(ClientError, match="version"):
            load_client(refused)
    assert {keys[-1] for _, keys in seen if keys[0] == "takes"} == set(takes[1:])


def check_text(node, description, where, number, value, tape, report):
    """That clients make the same report of a description with an integer as a text."""
    content = json.loads(json.dumps(description))
    inside = content
    for key in where[:-1]:
        inside = inside[key]
    inside[where[-1]] = str(number)
    changed, words = described(content), np.frombuffer(bytes.fromhex(tape), "<u8").tolist()
    client = load_client(changed, words=iter(words).__next__)
    value = value_of(value)
    expected = report and bytes.fromhex(report)
    assert node.ask(changed, value, words)["report"] == client.report(value) == expected, where


def test_values_of_schemas_have_the_forms_that_the_page_says():
    """Forms that are taken, and no others, have results of their values in the vectors."""
    text = section("## Values in labels and units")
    table = re.findall(r"^\| of \|.*\n(?:\|.*\n)+", text, re.MULTILINE)[0]
    said = {
        (row[0], k): cell.split(":")[0] for row in rows(table) for k, cell in enumerate(row[1:])
    }
    found, unlike_its_value = dict.fromkeys(said, "no"), False
    vectors = json.loads((VECTORS / "values.json").read_text(encoding="utf-8"))
    for group in vectors["groups"]:
        names = [one["name"] for one in group["client"]["takes"]["attributes"]]
        row = "one attribute" if len(names) == 1 else "several"
        told = [*zip([*vectors["values"], *group["own"]], group["results"], strict=True)]
        lists = [result for value, result in told if isinstance(value, list)]
        of_others = {str(value): result for value, result in told if not isinstance(value, list)}
        for value, result in told:
            if isinstance(value, dict):
                assert result is False or set(names) <= set(value)
                found[row, 0] = "yes" if result is not False else found[row, 0]
            elif isinstance(value, list) and len(names) > 1:
                assert result is False or len(value) == len(names)
                found[row, 1] = "yes" if result is not False else found[row, 1]
            elif isinstance(value, list):  # all are alike, whatever is in them
                assert result == lists[0]
                if value and of_others[str(value[0])] != result:
                    unlike_its_value = True
            elif result is not False:
                found[row, 2] = "yes"
    assert unlike_its_value
    assert said == found


def test_every_attribute_is_there():
    text = section("## Values in labels and units")
    always = set(quoted(text.split("An attribute has the keys")[1].split(", and more")[0]))
    table = rows(text.split("An attribute has the keys")[1])
    keys = {json.loads(quoted(kind)[0]): always | set(quoted(more)) for kind, more, _ in table}
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
