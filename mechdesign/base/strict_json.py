"""JSON that can be read in one way only, and JSON files with a digest.

No key of an object may be repeated or unknown, versions are integers, and each field holds what the
format declares of it: see `mechdesign.base.fields`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mechdesign.base.fields import ANYTHING, TEXT, FieldType, record
from mechdesign.base.files import opened, replacing
from mechdesign.base.text import reason, shown
from mechdesign.exceptions import InvalidFile, InvalidMechanism

JSON_DEPTH = 64
"""The deepest nesting of lists and objects that `from_json` reads."""

JSON_BYTES = 1 << 28
"""The longest text that `from_json` reads."""


def from_json(text: str | bytes) -> Any:
    """What a JSON text says, if it can be read in one way only."""
    if len(text) > JSON_BYTES:
        raise ValueError(f"{len(text)} bytes are more than the {JSON_BYTES} that are read")
    try:
        value = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError as error:
        raise ValueError(f"nested deeper than {JSON_DEPTH}") from error
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise ValueError(reason(error)) from error
    require_shallow(value)
    return value


def require_shallow(value: Any) -> None:
    """Raise ValueError for lists and objects that are nested deeper than `JSON_DEPTH`."""
    level, depth = [value], 0
    while level := [
        inner
        for outer in level
        if isinstance(outer, (list, dict))
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        depth += 1
        if depth > JSON_DEPTH:
            raise ValueError(f"nested deeper than {JSON_DEPTH}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} occurs twice")
    return content


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.20} is no finite number")
    return value


@contextmanager
def intact(path: str | os.PathLike[str], what: str = "malformed") -> Iterator[None]:
    """Turns the errors of malformed content into InvalidFile, in plain words."""
    try:
        yield
    except (InvalidFile, InvalidMechanism):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InvalidFile(f"{path}: {what}: {reason(error):.300}") from error
    except RecursionError as error:
        raise InvalidFile(f"{path}: {what}: {reason(error)}") from error


def require_same(written: Any, given: Any) -> None:
    """Raise ValueError unless what was read is written as it was found, to the type."""
    spelt_, found = (json.dumps(one, sort_keys=True) for one in (written, given))
    if spelt_ == found:
        return
    if isinstance(written, dict) and isinstance(given, dict):
        for key in sorted({*written, *given}):
            require_same(written.get(key), given.get(key))
    raise ValueError(f"it holds {shown(given)} where {shown(written)} follows from the rest")


def format_of(path: str | os.PathLike[str]) -> str:
    """What a file says under its key "format"; empty if it is no JSON object that has one."""
    with opened(path) as stream:
        text = stream.read(JSON_BYTES + 1)
    try:
        content = from_json(text)
    except ValueError:
        return ""
    kind = content.get("format") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else ""


def content_of(
    path: str | os.PathLike[str],
    kind: str,
    versions: Mapping[int, Mapping[str, FieldType]],
    *,
    sealed: bool = True,
) -> dict[str, Any]:
    """What a JSON file of this kind holds."""
    try:
        with opened(path) as stream:
            content = from_json(stream.read(JSON_BYTES + 1))
    except UnicodeDecodeError as error:
        name = kind.rpartition(".")[2]
        raise InvalidFile(f"{path}: binary, as an aggregate is, and no {name} file") from error
    except ValueError as error:
        raise InvalidFile(f"{path}: not JSON, or cut short: {error}") from error
    if not isinstance(content, dict) or content.get("format") != kind:
        raise InvalidFile(
            f"{path}: not a {kind.rpartition('.')[2]} file (format {kind!r} expected)"
        )
    found = content.get("version")
    if type(found) is not int or found not in versions:
        read = ", ".join(map(str, versions))
        raise InvalidFile(f"{path}: version {shown(found)}, this library reads version {read}")
    fields = {"format": TEXT, "version": ANYTHING, **versions[found]}
    if sealed:
        fields["digest"] = TEXT
        if "digest" in content and content["digest"] != digest_of(content):
            raise InvalidFile(
                f"{path}: the digest does not match: the file was changed after it was written"
            )
    with intact(path):
        record(fields).require(content)
    return content


def write_content(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a file that `content_of` reads, with a digest, in one step or not at all."""
    kept = {**content, "digest": digest_of(dict(content))}
    text = spelt(json.dumps(kept, indent=1, allow_nan=False) + "\n")
    with replacing(path) as stream:
        stream.write(text)


def spelt(text: str) -> bytes:
    """The bytes of a JSON text that is to be written."""
    content = text.encode()
    if len(content) > JSON_BYTES:
        raise ValueError(
            f"the file would have {len(content)} bytes, more than the {JSON_BYTES} that are read"
        )
    return content


def digest_of(content: dict[str, Any]) -> str:
    """SHA-256 of everything in a JSON file but its own digest."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return (
        "sha256:"
        + hashlib.sha256(
            json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
    )
