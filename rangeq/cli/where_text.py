"""Conditions on attributes as text, such as ``age 18:64 and sex female``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from frequency.exceptions import InvalidQuestion
from frequency.schema import Attribute, Categorical, Numeric, Ordered, Schema
from frequency.schema.domain import MOST_ATTRIBUTES
from mechdesign.base import Between, listed, printable, shown

_AND = re.compile(r"\sand(?=\s)")

_COMPARED = re.compile("[<>≤≥]")  # how a comparison begins, which is no condition here

_DASHED = re.compile(r"\s*(-?[0-9.]+)\s*-\s*([0-9.]+)\s*")  # A range as it is written elsewhere

# What conditions cannot be joined by, where it is still in one of them.
_JOINED = re.compile(r"\s(or|and)\s", re.IGNORECASE)

_BEGUN = re.compile(r"[^\W\d]\w*[\s=]+\S")  # how a condition with a name begins

_SHOWN = 8  # values that a message names


def where_of(text: str, schema: Schema, found: Sequence[str] | None = None) -> dict[str, Any]:
    """Read a text as a question to `SurveyEstimate.answer`.

    A text is one or more conditions with " and " between them. A condition is a name, a space,
    "=" or "==", and what the attribute must be; with one attribute the name may be left out. That
    is a value or label, several with commas between them of which it may be one, or of ordered
    attributes ``FIRST:LAST``, both included, where either end may be missing; or what tables call
    an item. Names and labels may hold any of these separators: a text is taken for one label if it
    can be, and the longest names and labels are tried first.

    >>> from frequency import Numeric
    >>> age = Numeric("age", low=0, high=120, whole=True)
    >>> state = Categorical("state", ["Washington, D.C.", "Trinidad and Tobago", "Texas"])
    >>> where_of("state Trinidad and Tobago and age 18:", Schema([age, state]))
    {'state': 'Trinidad and Tobago', 'age': Between(first='18', last=None)}
    >>> where_of("state Texas,Washington, D.C.", Schema([age, state]))
    {'state': ['Texas', 'Washington, D.C.']}
    """
    names = sorted(schema.names, key=len, reverse=True)
    ands = [
        (separator.start(), separator.end())
        for separator in _AND.finditer(text)
        if any(True for name in names for _ in _after(name, text[separator.end() :]))
    ]
    if len(ands) >= MOST_ATTRIBUTES:
        raise InvalidQuestion(f"there are {len(ands) + 1} conditions: {shown(text)}")
    wrong: list[tuple[tuple[int, int, int], InvalidQuestion, str]] = []

    @cache
    def read(start: int) -> list[tuple[str, Any]] | None:
        """The conditions from a place on, if they are such."""
        ends = [(end, after) for end, after in ands if end > start]
        for end, after in [(len(text), None), *reversed(ends)]:
            readings = list(_named(text[start:end], names))
            # What is one value as it stands first; else as they come
            readings.sort(key=lambda reading: not _is_value(schema[reading[0]], reading[1], found))
            for name, given in readings:
                try:
                    value = _value_of(schema[name], given, found)
                except InvalidQuestion as error:
                    hint = _hint(schema[name], given, names)
                    wrong.append(((start, -end, -len(given)), error, hint))
                    continue
                rest = [] if after is None else read(after)
                if rest is not None:
                    return [(name, value), *rest]
        return None

    conditions = read(0)
    if conditions is None and not wrong:
        raise InvalidQuestion(
            f"a condition begins with the name of an attribute, {listed(schema.names)}, got"
            f" {shown(text)}"
        )
    if conditions is None:  # as far as anything could be read, in the shortest condition there
        _, error, hint = max(wrong, key=lambda failure: failure[0])
        raise InvalidQuestion(f"{error}{hint}")
    asked = dict(conditions)
    if len(asked) < len(conditions):
        raise InvalidQuestion(f"an attribute is named twice in {shown(text)}")
    return asked


def _hint(attribute: Attribute, given: str, names: Sequence[str]) -> str:
    """Guess what was meant by a condition that is none; or nothing."""
    joined, dashed = _JOINED.search(given), _DASHED.fullmatch(given)
    if joined and joined[0] == " and ":
        return f": {shown(given[joined.end() :])} is about none of {listed(names)}"
    if joined:
        less = "; 'or' is not supported" if joined[1].lower() == "or" else ""
        return f": join conditions with ' and '{less}"
    if dashed and isinstance(attribute, Numeric):
        return f": a range is {dashed[1]}:{dashed[2]}"
    if len(names) == 1 and not isinstance(attribute, Categorical) and _BEGUN.match(given):
        name = printable(attribute.name)
        return f": a condition may begin with the name of the attribute, which is {name}"
    return ""


def _after(name: str, text: str) -> Iterator[str]:
    """Yield what may stand after a name; nothing if the text does not begin with it."""
    given = text.lstrip()
    if given.startswith(name):
        rest = given[len(name) :]
        if rest[:1].isspace():
            yield rest[1:]
        if rest[:1] in ("<", ">"):  # of which it is said how a range is asked for
            yield rest
        if rest.lstrip()[:1] == "=":
            yield rest.lstrip()[1:]
        if rest.lstrip()[:2] == "==":
            yield rest.lstrip()[2:]


def _named(condition: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The attributes that a condition may be about, and what it may say of them."""
    if len(names) == 1:
        yield names[0], condition
    for name in names:
        yield from ((name, given) for given in _after(name, condition))


def _is_value(attribute: Attribute, text: Any, found: Sequence[str] | None = None) -> bool:
    """Whether `Attribute.asked` takes it, or whether it was found."""
    if found is not None:
        return text in found
    try:
        attribute.asked([text] if isinstance(text, str) else text)
    except InvalidQuestion:
        return False
    return True


def _value_of(attribute: Attribute, given: str, found: Sequence[str] | None) -> Any:
    """Return what an attribute must be, as `SurveyEstimate.answer` takes it."""
    name, text = printable(attribute.name), given.strip()
    if found is not None:
        for whole in (given, text):
            if whole in found:
                return whole
        more = ", ..." if len(found) > _SHOWN else ""
        known = f": {listed(found[:_SHOWN])}{more}" if found else ""
        raise InvalidQuestion(
            f"{shown(text)} is not among the {len(found)} frequent values of {name} that were"
            f" found{known}"
        )

    fits = partial(_is_value, attribute)
    # Labels may hold what is hard to type: a backslash with n or t is a line break, or a tab
    for whole in (given, text, text.replace("\\n", "\n").replace("\\t", "\t")):
        if fits(whole):
            return whole
    if attribute.ordered:
        for ends in _ranges(attribute, text):
            if fits(ends):
                return ends
    several = _alternatives(attribute, text, fits)
    if several is not None:
        return several
    if attribute.ordered and text.count(":") == 1 and not fits(Between(text, None)):  # no time
        attribute.asked(*Between.in_text(text))
    if attribute.ordered and _COMPARED.match(text):
        real = isinstance(attribute, Numeric) and not attribute.whole
        how = "end before their last" if real else "include their ends"
        below = "below 64" if real else "64 or less"
        raise InvalidQuestion(
            f"{name} is asked for by ranges that {how}, such as {name} 18:64; {name} 18: is 18 or"
            f" more, and {name} :64 is {below}; got {shown(text)}"
        )
    for part in map(str.strip, text.split(",")):
        if attribute.ordered and any(map(fits, _ranges(attribute, part))):
            raise InvalidQuestion(
                f"{name}: between commas there are values, and no ranges, got {shown(text)}"
            )
        if not fits(part):
            attribute.asked([part])
    attribute.asked([text])
    raise InvalidQuestion(f"{name} is asked for by a value or a range, got {shown(text)}")


def _ranges(attribute: Attribute, text: str) -> Iterator[Between]:
    """The ranges that a text may be, among them the label of a bin."""
    if isinstance(attribute, Ordered) and not attribute.single and " to " in text:
        labels = attribute.item_labels[: attribute.bins]
        if text in labels:
            item = np.array(labels.index(text))
            ends = [attribute.values_in(item, np.array(part))[()] for part in (0.0, 1.0)]
            yield Between(*ends)
    yield from Between.in_text(text)


def _alternatives(attribute: Attribute, text: str, fits: Callable[[Any], bool]) -> list[str] | None:
    """The values between commas, of which a label may hold some; None if one is no value."""
    commas = 0
    if isinstance(attribute, Categorical):
        commas = max(label.count(",") for label in attribute.labels)
    parts = text.split(",")
    # From each part on: the values, if they are such
    best: list[list[str] | None] = [None] * len(parts) + [[]]
    for start in reversed(range(len(parts))):
        for end in range(min(start + commas + 1, len(parts)), start, -1):
            rest, whole = best[end], ",".join(parts[start:end])
            if rest is not None and best[start] is None:
                value = next(
                    (candidate for candidate in (whole, whole.strip()) if fits(candidate)), None
                )
                best[start] = None if value is None else [value, *rest]
    return best[0]
