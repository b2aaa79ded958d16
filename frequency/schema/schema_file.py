"""Schemas in files: TOML for people, JSON for programs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from mechdesign.base.files import opened, replacing
from mechdesign.base.strict_json import JSON_BYTES, from_json, intact, require_shallow, spelt
from mechdesign.base.text import shown

FORMAT, VERSION = "mechdesign.schema", 1

LONGEST_KEY = 32
"""The most parts of a key with dots in a TOML file."""

DEEPEST = 32
"""The depth to which lists and tables of a TOML file may be nested in each other."""

_WORDS = re.compile(
    r"""
      (?P<part> [A-Za-z0-9_-]++
              | \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?: \"{3,5} | \Z )
              | '{3} (?: [^'] | '(?!'') )*+ (?: '{3,5} | \Z )
              | " (?: [^"\\\n] | \\. )*+ "?
              | ' [^'\n]*+ '? )
    | (?P<dot> \. ) | (?P<space> [ \t]++ )
    | (?P<open> [\[{] ) | (?P<close> [\]}] )
    | (?P<comment> \# [^\n]*+ ) | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The words of a TOML text: keys and their dots, brackets, and what holds neither."""


def text_of(content: dict[str, Any], path: str | os.PathLike[str]) -> str:
    """The text of a file."""
    full = {"format": FORMAT, "version": VERSION, **content}
    if _suffix(path) == ".json":
        return json.dumps(full, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    import tomli_w

    return tomli_w.dumps(full)


def save_content(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write such a file, replacing it in one step or not at all."""
    text = spelt(text_of(content, path))
    with replacing(path) as stream:
        stream.write(text)


def content_in(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what such a file holds."""
    suffix = _suffix(path)
    with opened(path) as stream:
        text = stream.read(JSON_BYTES + 1)
    with intact(path, "no schema"):
        if len(text) > JSON_BYTES:
            raise ValueError(f"longer than {JSON_BYTES} bytes")
        content = from_json(text) if suffix == ".json" else _from_toml(text)
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise ValueError(f"not a schema file (format {FORMAT!r} expected)")
        version = content.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise ValueError(f"version {shown(version)}, this library reads version {VERSION}")
    return content


def _from_toml(text: bytes) -> Any:
    import tomllib

    spelt = text.decode()
    _require_shallow(spelt)
    content = tomllib.loads(spelt)
    require_shallow(content)  # a key of many parts is as many tables
    return content


def _require_shallow(text: str) -> None:
    """Raise ValueError for longer keys, or a deeper nesting, than a schema may have.

    The time and the memory of the standard library's reader grow with the square of a key's parts.
    This takes one step for each word, and what it misreads after the first error of a text, that
    reader does not reach.
    """
    parts = depth = 0
    joined = False
    for word in _WORDS.finditer(text):
        kind = word.lastgroup
        if kind == "part":
            parts, joined = (parts + 1 if joined else 1), False
        elif kind == "dot":
            joined = True
        elif kind != "space":
            parts, joined = 0, False
            depth += (kind == "open") - (kind == "close")
        if parts > LONGEST_KEY or depth > DEEPEST:
            line = 1 + text.count("\n", 0, word.start())
            raise ValueError(
                f"line {line}: a key has at most {LONGEST_KEY} parts, and lists and tables are"
                f" nested at most {DEEPEST} deep"
            )


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ValueError(f"{path}: the name of a schema's file ends in .toml or .json")
    return suffix
