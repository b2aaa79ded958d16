"""Schemas in files: TOML for people, JSON for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frequency.schema.attribute import Attribute
from frequency.schema.categorical import Boolean, Categorical
from frequency.schema.dates import Dates
from frequency.schema.numeric import Numeric
from frequency.schema.text import Text
from mechdesign import InvalidFile
from mechdesign._support.files import replacing
from mechdesign._support.strict_json import JSON_BYTES, from_json
from mechdesign._support.text import listed, shown

if TYPE_CHECKING:
    from frequency.schema.schema import Schema

FORMAT, VERSION = "mechdesign.schema", 1

_KINDS: dict[str, type[Attribute]] = {
    kind.kind: kind for kind in (Categorical, Numeric, Dates, Boolean, Text)
}


def schema_text(schema: Schema, path: str | os.PathLike[str], digest: bool = True) -> str:
    """The text of a file.

    Parameters
    ----------
    schema : Schema
        What to write.
    path : str or os.PathLike
        Whose name says whether it is TOML or JSON.
    digest : bool, default True
        False: without one, for somebody to change it.

    Returns
    -------
    str
        Which `load_schema` reads.

    Raises
    ------
    ValueError
        The name ends in neither .toml nor .json.
    """
    own = {"digest": schema.digest} if digest else {}
    content = {"format": FORMAT, "version": VERSION, **own, **schema.content()}
    if _suffix(path) == ".json":
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    import tomli_w

    return tomli_w.dumps(content)


def save_schema(path: str | os.PathLike[str], schema: Schema) -> None:
    """See `Schema.save`."""
    text = schema_text(schema, path)
    with replacing(path) as stream:
        stream.write(text.encode())


def load_schema(path: str | os.PathLike[str]) -> Schema:
    """See `Schema.load`."""
    suffix = _suffix(path)
    with open(path, "rb") as stream:
        text = stream.read(JSON_BYTES + 1)
    try:
        if len(text) > JSON_BYTES:
            raise ValueError(f"longer than {JSON_BYTES} bytes")
        content = from_json(text) if suffix == ".json" else _from_toml(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"not a schema file (format {FORMAT!r} expected)")
        if content.get("version") != VERSION or isinstance(content["version"], bool):
            found = shown(content.get("version"))
            raise ValueError(f"version {found}, this library reads version {VERSION}")
        rest = {key: content[key] for key in content if key not in ("format", "version", "digest")}
        schema = schema_of(rest)
        if "digest" in content and content["digest"] != schema.digest:
            raise ValueError(
                "the digest does not match: the file was changed after it was written. To accept"
                " what it holds now, delete the line of the digest"
            )
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path}: {error}") from error
    return schema


def _from_toml(text: bytes) -> Any:
    import tomllib

    return tomllib.loads(text.decode())


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ValueError(f"{path}: the name of a schema's file ends in .toml or .json")
    return suffix


def schema_of(content: Any) -> Schema:
    """The schema with this content.

    Parameters
    ----------
    content : dict
        As `Schema.content` gives it, and as files hold it.

    Returns
    -------
    Schema
        Equal to the one whose content it is.

    Raises
    ------
    ValueError
        It is no content of a schema: the first thing wrong.
    """
    from frequency.schema.schema import Schema

    _require_keys(content, "the schema", {"attributes", "public_source"}, {"attributes"})
    source = content.get("public_source", "")
    if not isinstance(content["attributes"], list) or not isinstance(source, str):
        raise ValueError("attributes is a list of them, and public_source a text")
    return Schema([_attribute(one, k) for k, one in enumerate(content["attributes"])], source)


def _attribute(content: Any, place: int) -> Attribute:
    where = f"attribute {place + 1}"
    if not isinstance(content, dict) or content.get("kind") not in _KINDS:
        found = shown(content.get("kind") if isinstance(content, dict) else content)
        raise ValueError(f"{where}: its kind is one of {listed(_KINDS)}, got {found}")
    kind = _KINDS[content["kind"]]
    if isinstance(content.get("name"), str):
        where += f", {shown(content['name'])}"
    rest = {key: value for key, value in content.items() if key != "kind"}
    known = {field for field in kind.__dataclass_fields__ if field != "_"}
    _require_keys(rest, where, known, {"name"})
    try:
        return kind(**rest)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def _require_keys(content: Any, where: str, known: set[str], needed: set[str]) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"{where} is {shown(content)}")
    unknown, lacking = sorted({*content} - known), sorted(needed - {*content})
    if unknown:
        raise ValueError(f"{where} has no {shown(unknown[0])}; it may have {listed(sorted(known))}")
    if lacking:
        raise ValueError(f"{where} lacks {lacking[0]!r}")
