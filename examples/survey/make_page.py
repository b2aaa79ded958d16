"""Write a static page that asks a schema's questions, and sends private reports.

    python make_page.py protocol.json page/ --title "Departures" --ask "origin=Where from?"

The protocol is a `Survey`. The folder holds all that the page needs, for any static server: the
form, the protocol file, and the client that makes the report in the browser. What is answered
stays there. Reports are posted to ``reports``, beside the page: see collector.py.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from fractions import Fraction
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from frequency import Boolean, Categorical, Dates, Numeric, Survey, Text
from frequency.storage import load_protocol
from mechdesign.base import later
from mechdesign.exceptions import MechanismError

HERE = Path(__file__).parent
CLIENT = HERE.parents[1] / "clients" / "javascript"
COPIED = ("page.js", "page.css")

Texts = dict[str, str]  #: What the page says, by what it is for: as in texts.en.json.


def texts_of(language: str) -> Texts:
    """What the page says in a language, such as "de": of a file here, or of one of your own."""
    own = HERE / f"texts.{language}.json"
    path = own if own.is_file() else Path(language)
    ours: Texts = json.loads((HERE / "texts.en.json").read_text(encoding="utf-8"))
    try:
        texts: Texts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(texts, dict) or not all(isinstance(one, str) for one in texts.values()):
            raise ValueError("it is no record of texts")
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}") from None
    for name, text in ours.items():
        if name not in texts:
            raise SystemExit(f"{path}: there is no text {name!r}, in English: {text}")
        if places_in(texts[name]) != places_in(text):
            raise SystemExit(f"{path}: {name!r} needs the places of the English one: {text}")
    if unknown := sorted(set(texts) - set(ours)):
        raise SystemExit(f"{path}: no page says {unknown[0]!r}")
    return texts


def places_in(text: str) -> set[str]:
    """The places in a text that something is put into."""
    return set(re.findall(r"\{(\w+)\}", text))


def question_of(attribute: Any, text: str, number: int, texts: Texts) -> str:
    """A question as HTML: a label, a hint, what takes the answer, and a place for an error."""
    key, hint, absent = f"question-{number}", hint_of(attribute, texts), ""
    listed = isinstance(attribute, (Categorical, Boolean))
    if attribute.missing != "refuse" and not listed:
        absent = (
            f'<label class="absent"><input type="checkbox" id="{key}-absent">'
            f" {escape(texts['missing_' + attribute.missing])}</label>"
        )
    about = {
        "id": key,
        "data-name": attribute.name,
        "data-expected": texts["label"] if listed else values_of(attribute, texts),
        "aria-describedby": f"{key}-hint {key}-error" if hint else f"{key}-error",
    }
    return (
        f'<div class="question"><label for="{key}">{escape(text)}</label>\n'
        + (f'<p class="hint" id="{key}-hint">{escape(hint)}</p>\n' if hint else "")
        + control(attribute, f"{spelt(about)} required", texts)
        + f'{absent}\n<p class="error" id="{key}-error" hidden></p></div>\n'
    )


def control(attribute: Any, given: str, texts: Texts) -> str:
    """What takes the answer: the values that the schema takes, and no others."""
    if isinstance(attribute, (Categorical, Boolean)):
        options = [(label, label) for label in attribute.item_labels[: attribute.bins]]
        if attribute.outside == "item":
            options.append(("outside", texts["outside"]))  # which is no label then
        rows = "".join(
            f'<option value="{escape(value)}">{escape(label)}</option>' for value, label in options
        )
        if attribute.missing != "refuse":
            absent = escape(texts[f"missing_{attribute.missing}"])
            rows += f'<option data-absent="">{absent}</option>'
        return f'<select {given}><option value="">{escape(texts["choose"])}</option>{rows}</select>'
    if isinstance(attribute, Text):
        own = {"type": "text"}
        if attribute.outside == "refuse":
            own["data-bytes"] = str(attribute.bytes)
    elif isinstance(attribute, Dates):
        ends = attribute.cuts[0], later(attribute.cuts[-1], -1)
        first, last = map(attribute.value_text, ends)
        own = {"type": "datetime-local" if "T" in first else "date", "min": first, "max": last}
    else:
        first, last = attribute.cuts[0].item(), attribute.cuts[-1].item() - attribute.whole
        step = "1" if attribute.whole else "any"
        own = {"type": "number", "step": step, "min": f"{first}", "max": f"{last}"}
    if attribute.outside != "refuse":
        own = {name: value for name, value in own.items() if name not in ("min", "max")}
    return f"<input {spelt(own)} {given}>"


def spelt(attributes: dict[str, str]) -> str:
    """Attributes of an element."""
    return " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())


def hint_of(attribute: Any, texts: Texts) -> str:
    """What is asked for, in words."""
    if isinstance(attribute, (Categorical, Boolean)):
        return ""
    values = values_of(attribute, texts)
    if attribute.unit:
        values = texts["in_unit"].format(values=values, unit=attribute.unit)
    clipped = "longer_is_cut" if isinstance(attribute, Text) else "nearest"
    others = {"refuse": "", "clip": clipped, "item": "one_answer"}[attribute.outside]
    return f"{values[0].upper()}{values[1:]}. {texts.get(others, '')}".strip()


def values_of(attribute: Any, texts: Texts) -> str:
    """The values that there may be, in words."""
    if isinstance(attribute, Text):
        return texts["text"].format(bytes=attribute.bytes)
    if isinstance(attribute, Dates):
        ends = attribute.cuts[0], attribute.cuts[-1] - np.timedelta64(1, "s")
    else:
        ends = attribute.cuts[0], attribute.cuts[-1] - attribute.whole
    low, high = (attribute.value_text(end).replace("T", " ") for end in ends)
    if isinstance(attribute, Dates):
        kind = "time" if ":" in low else "date"
    else:
        kind = "integer" if attribute.whole else "number"
    return texts[kind].format(low=low, high=high)


def meaning_of(survey: Survey, texts: Texts) -> list[dict[str, Any]]:
    """What a report says of each attribute, as a number in which the last one counts fastest.

    Each has its labels, and the probabilities of the true one and of each other. Nothing if a
    report is not itself an answer, but says something about several.
    """
    attributes = [survey.schema[name] for name in survey.schema.names]
    half = survey.client()["report"]
    lies: list[Any] = []
    if half["do"] == "lie" and half["field"] is None and not half["signs"]:
        lies = [(half["outcomes"], half["lie"])]
    elif half["do"] == "attributes":
        lies = half["attributes"]
    if [size for size, _ in lies] != [one.size for one in attributes]:
        return []
    return [
        {
            "name": one.name,
            "labels": labels_of(one, texts),
            "truth": float(1 - Fraction((size - 1) * int(lie), 1 << 64)),
            "lie": float(Fraction(int(lie), 1 << 64)) if size > 1 else None,
        }
        for one, (size, lie) in zip(attributes, lies, strict=True)
    ]


def labels_of(attribute: Any, texts: Texts) -> list[str]:
    """The items as the page calls them."""
    unit = f" {attribute.unit}" if attribute.unit and isinstance(attribute, Numeric) else ""
    own = [f"{label}{unit}" for label in attribute.item_labels[: attribute.bins]]
    return [*own, *(texts[label] for label in attribute.extra)]


def write_page(
    protocol: Path, folder: Path, title: str, questions: dict[str, str], language: str = "en"
) -> None:
    """Write the page of a protocol file into a folder, which is made."""
    texts = texts_of(language)
    try:
        survey = load_protocol(protocol)
    except (OSError, MechanismError) as error:
        raise SystemExit(str(error)) from None
    if not isinstance(survey, Survey):
        raise SystemExit(f"{protocol}: a survey is needed, a protocol with a schema")
    unknown = sorted(set(questions) - set(survey.schema.names))
    if unknown:
        raise SystemExit(f"{protocol}: the schema has no attribute {unknown[0]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    marked = {"odds": '<strong id="odds"></strong>', "reason": '<q id="reason" lang="en"></q>'}
    page = {
        name: escape(text).replace("{odds}", marked["odds"]).replace("{reason}", marked["reason"])
        for name, text in texts.items()
    }
    page |= {
        "title": escape(title),
        "questions": "".join(
            question_of(
                survey.schema[name], questions.get(name, name.replace("_", " ")), number, texts
            )
            for number, name in enumerate(survey.schema.names)
        ),
        "meaning": embedded(meaning_of(survey, texts)),
        "texts": embedded(texts),
    }
    form = Template((HERE / "page.html").read_text(encoding="utf-8")).substitute(page)
    (folder / "index.html").write_text(form, encoding="utf-8")
    shutil.copyfile(protocol, folder / "protocol.json")
    (folder / "client").mkdir(exist_ok=True)
    for name in json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["files"]:
        shutil.copyfile(CLIENT / name, folder / "client" / name)
    for name in COPIED:
        shutil.copyfile(HERE / name, folder / name)


def embedded(content: Any) -> str:
    """JSON inside an element of a page."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("protocol", type=Path, help="the protocol file of a survey")
    parser.add_argument("folder", type=Path, help="where the page is written")
    parser.add_argument("--title", default="Survey")
    parser.add_argument("--ask", action="append", default=[], help="NAME=QUESTION, for each column")
    parser.add_argument(
        "--lang",
        default="en",
        help="the language of all else: en, de, or a file of its texts, such as texts.en.json",
    )
    given = parser.parse_args()
    questions = dict(one.partition("=")[::2] for one in given.ask)
    write_page(given.protocol, given.folder, given.title, questions, given.lang)


if __name__ == "__main__":
    main()
