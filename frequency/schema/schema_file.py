"""Schemas in files: TOML for people, JSON for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mechdesign import InvalidFile
from mechdesign._support.files import replacing
from mechdesign._support.strict_json import JSON_BYTES, from_json, spelt
from mechdesign._support.text import shown

FORMAT, VERSION = "mechdesign.schema", 1


def text_of(content: dict[str, Any], path: str | os.PathLike[str]) -> str:
    """The text of a file.

    Parameters
    ----------
    content : dict
        As `Schema.content` gives it; with a digest, or without one for somebody to change it.
    path : str or os.PathLike
        Whose name says whether it is TOML or JSON.

    Returns
    -------
    str
        Which `content_in` reads.

    Raises
    ------
    ValueError
        The name ends in neither .toml nor .json.
    """
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
    """What such a file holds.

    Parameters
    ----------
    path : str or os.PathLike
        TOML or JSON, by its name.

    Returns
    -------
    dict
        The content, unchecked, without the file's format and version.

    Raises
    ------
    InvalidFile
        It is no such file.
    ValueError
        Its name ends in neither .toml nor .json.
    """
    suffix = _suffix(path)
    with open(path, "rb") as stream:
        text = stream.read(JSON_BYTES + 1)
    try:
        if len(text) > JSON_BYTES:
            raise ValueError(f"longer than {JSON_BYTES} bytes")
        content = from_json(text) if suffix == ".json" else _from_toml(text)
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise ValueError(f"not a schema file (format {FORMAT!r} expected)")
        version = content.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise ValueError(f"version {shown(version)}, this library reads version {VERSION}")
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path}: {error}") from error
    return content


def _from_toml(text: bytes) -> Any:
    import tomllib

    return tomllib.loads(text.decode())


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ValueError(f"{path}: the name of a schema's file ends in .toml or .json")
    return suffix
