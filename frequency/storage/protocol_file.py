"""A protocol as a small JSON file, for client, collectors and server to agree on.

The file names a class and the arguments that make it, and what follows from
them: the parameters that decide how a report is drawn, and the description that clients run.
Loading makes the protocol anew, and refuses the file if these come out otherwise. Files of version
1, which have no description, are read too.
"""

from __future__ import annotations

import inspect
import json
import os
import stat
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from frequency.clients.device import canonical
from frequency.core import (
    Channel,
    Oracle,
    Protocol,
    Reports,
    channel_of,
    differing,
    given_arguments,
)
from frequency.schema import Domain, Schema
from frequency.storage.batch_file import BatchFile, ReportsFile, batch_of
from frequency.storage.line_file import LineFile
from mechdesign import InvalidFile, Mechanism
from mechdesign.base import (
    ANYTHING,
    TEXT,
    Format,
    from_json,
    from_text,
    intact,
    list_of,
    optional,
    printable,
    record,
    replacing,
    require_declared,
    require_same,
    row_of,
    shown,
    spelt,
    table_of,
    to_text,
    whole_number,
)
from mechdesign.mechanism.files import Work, checked, described

_ARGUMENTS = {"protocol": TEXT, "arguments": table_of(ANYTHING)}

_PROTOCOL = record(_ARGUMENTS)  # A protocol within a file; `_decoded` checks each argument

# The fields of a file; what is agreed on is compared with that of the protocol, and so is this.
_FIELDS = {**_ARGUMENTS, "agreed": table_of(ANYTHING)}

_FORM = Format(
    "mechdesign.protocol", {1: _FIELDS, 2: {**_FIELDS, "client": optional(table_of(ANYTHING))}}
)

# The forms in which a domain is written; the second in older files.
_SIZES = dict.fromkeys(("attributes", "sizes"), list_of(row_of(TEXT, whole_number(1))))

# Whose public classes a file can name; of other modules, only those that were imported before.
_MODULES = ("frequency", "frequency.marginals", "frequency.heavy", "rangeq", "rangeq.grids")


def save_protocol(path: str | os.PathLike[str], protocol: Any) -> None:
    """Write a protocol as JSON, replacing the file in one step or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        Where; what is there is replaced.
    protocol : Channel or Protocol
        Of `frequency`, `frequency.marginals`, `frequency.heavy`, `rangeq` or `rangeq.grids`, or of
        a module of one's own, which must be imported before the file is loaded.

    Raises
    ------
    TypeError
        It is no protocol, or one of a class that is neither public in this library nor in a module
        that can be imported, whose file nobody could load.
    ValueError
        It would be longer than 2^28 bytes, such as that of a survey with millions of labels.
    """
    channel_of(protocol)  # TypeError for what is no protocol, such as a path in its place
    stated = {**_encoded(protocol), "agreed": _agreed(protocol), "client": _client(protocol)}
    lines = []
    for key, value in _FORM.written(stated).items():
        indent = None if key == "client" else 1  # what only programs read is on one line
        lines.append(f" {json.dumps(key)}: {json.dumps(value, indent=indent, allow_nan=False)}")
    text = spelt("{\n" + ",\n".join(lines) + "\n}\n")
    with replacing(path) as stream:
        stream.write(text)


def load_protocol(path: str | os.PathLike[str]) -> Any:
    """Return the protocol in a file; it equals the one that was saved.

    Parameters
    ----------
    path : str or os.PathLike
        What `save_protocol` wrote.

    Returns
    -------
    Channel or Protocol
        Of the class that was saved.

    Raises
    ------
    InvalidFile
        Not such a file, another version, cut short, changed since it was written, of a class or
        with arguments that this library does not have, or with parameters that this version of the
        library would not draw its reports by.
    """
    if Path(path).suffix == ".toml":
        raise InvalidFile(f"{path} looks like a schema: mechdesign protocol makes a protocol of it")
    content = _FORM.load(path)
    with intact(path):
        named = {key: content[key] for key in ("protocol", "arguments")}
        protocol = _decoded(named, str(path), Work(content))
        ours, theirs = canonical(_agreed(protocol)), canonical(content["agreed"])
        if ours != theirs:  # in which 1, 1.0 and true differ
            raise ValueError(
                f"this library would draw reports otherwise: of {differing(ours, theirs)}"
            )
        _require_arguments(_encoded(protocol), named)
        # What clients run is made of parameters that were agreed on
        if "client" in content and canonical(_client(protocol)) != canonical(content["client"]):
            raise ValueError("its description for clients is not that of the protocol")
    return protocol


def _require_arguments(written: Any, given: Any) -> None:
    """Raise ValueError unless a protocol has the arguments of its file, to the type."""
    if isinstance(given, dict) and isinstance(written, dict) and "arguments" in given:
        require_same(written["protocol"], given["protocol"])
        # Older files may lack some, and name a domain by its sizes
        for name, value in given["arguments"].items():
            _require_arguments(written["arguments"].get(name), value)
    elif not (isinstance(given, dict) and "sizes" in given):
        require_same(written, given)


def _client(protocol: Any) -> dict[str, Any] | None:
    """Return the description that clients run; None of a protocol of one's own without one."""
    try:
        described: dict[str, Any] = protocol.client()
    except TypeError:
        return None
    return described


def _agreed(protocol: Any) -> dict[str, Any]:
    return from_json(channel_of(protocol).signature)


def _name(kind: type) -> str:
    """Return the module and name by which a file names a class; TypeError where it has none."""
    # Of this library, those that are public; of others, those that an importable module holds by
    # their own name
    for name in _MODULES:
        if kind.__module__.startswith(name.split(".")[0] + "."):
            module = import_module(name)
            if kind.__name__ in module.__all__ and getattr(module, kind.__name__) is kind:
                return f"{name}.{kind.__name__}"
    ours = kind.__module__.split(".")[0] in {name.split(".")[0] for name in _MODULES}
    known = getattr(sys.modules.get(kind.__module__), kind.__name__, None)
    if ours or known is not kind or kind.__module__ == "__main__":
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} is neither public in this library nor of a"
            " module that can be imported, and cannot be named in a file"
        )
    return f"{kind.__module__}.{kind.__name__}"


def _named(name: Any, *bases: type) -> Any:
    """Return the class that a file names, of these bases."""
    module, _, last = name.rpartition(".")
    if module in _MODULES:
        import_module(module)
    # A module that is not of this library must have been imported: to load a file never runs code
    # that nobody asked for, nor calls anything but such a class
    named = getattr(sys.modules.get(module), last, None)
    is_class = inspect.isclass(named) and issubclass(named, bases) and _name(named) == name
    if not is_class or inspect.isabstract(named):
        missing = f"; {shown(module)} has not been imported"
        missing += f" (in a shell: --import {printable(module)})" if module else ""
        missing = missing if module not in sys.modules else ""
        raise ValueError(
            f"{shown(name)} is not a protocol of this library or of an imported module{missing}"
        )
    return named


def _encoded(value: Any) -> Any:
    """Return an argument as JSON."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    # What JSON does not have is an object of one entry, or of a class's name and arguments
    if isinstance(value, Fraction):
        return {"fraction": to_text(value)}
    if isinstance(value, (tuple, list)):
        return [_encoded(item) for item in value]
    if isinstance(value, Mechanism):
        return {"mechanism": described(value, value.certificate)}
    if isinstance(value, Schema):
        return {"schema": value.content()}
    if isinstance(value, Domain):
        return {"attributes": [[name, value[name]] for name in value]}
    if isinstance(value, (Channel, Protocol)):
        given = given_arguments(value, inspect.signature(type(value)).parameters)
        arguments = {name: _encoded(argument) for name, argument in given.items()}
        return {"protocol": _name(type(value)), "arguments": arguments}
    if inspect.isclass(value) and issubclass(value, Oracle):
        return {"name": _name(value)}
    raise TypeError(f"a {type(value).__name__} cannot be written to a protocol file")


def _decoded(value: Any, place: str, work: Work) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item, place, work) for item in value)
    if not isinstance(value, dict):
        return value
    if "protocol" in value:
        _PROTOCOL.require(value)
        kind = _named(value["protocol"], Channel, Protocol)
        arguments = {
            name: _decoded(argument, place, work) for name, argument in value["arguments"].items()
        }
        known = inspect.signature(kind).parameters
        for name in arguments:
            if name not in known:
                raise ValueError(f"unknown key {shown(name)}; known: {', '.join(known)}")
        for name, parameter in known.items():
            if name not in arguments and parameter.default is inspect.Parameter.empty:
                raise ValueError(f"the key {name!r} is missing")
        require_declared(kind, arguments)
        return kind(**arguments)
    if len(value) != 1:
        raise ValueError(f"expected an object with one key, got {shown(value)}")
    ((form, content),) = value.items()
    if form == "fraction":
        return from_text(content)
    if form == "name":
        return _named(content, Oracle)
    if form == "mechanism":
        return Mechanism.from_parts(*checked(content, place, work))
    if form == "schema":
        return Schema.of_content(content)
    if form not in _SIZES:
        raise ValueError(f"unknown key {shown(form)}")
    sizes = dict(_SIZES[form].require(content, form))
    if len(sizes) < len(content):
        raise ValueError(f"an attribute occurs twice in {shown(content)}")
    return Domain(sizes)


# ------------------------------------------------------------------------------------------------
# The formats of files of reports, and reading and writing them whatever their format is.
#
# The name of a file says it: ``.ldp`` is a batch, ``.b64`` are lines, and everything else is
# Parquet.


def _parquet() -> type[ReportsFile]:
    """Return the class, loaded only where it is used: it needs pyarrow, which others do without."""
    return import_module("frequency.storage.parquet").ParquetReports


_FORMATS: dict[str, Callable[[], type[ReportsFile]]] = {
    ".parquet": _parquet,
    ".ldp": lambda: BatchFile,
    ".b64": lambda: LineFile,
}

SUFFIXES = tuple(_FORMATS)  #: The endings of the names of files of reports, in any case.


def _format_of(path: str | os.PathLike[str]) -> type[ReportsFile]:
    return _FORMATS.get(Path(path).suffix.lower(), _parquet)()


def file_of(path: str | os.PathLike[str], channel: Channel) -> ReportsFile:
    """Return a file of reports, by the format that its name says."""
    return _format_of(path)(path, channel)


def write_reports(
    path: str | os.PathLike[str], protocol: Any, reports: Reports | Iterable[Reports]
) -> int:
    """Write reports to a file, replacing it in one step or not at all.

    Directories are made as needed.

    Parameters
    ----------
    path : str or os.PathLike
        The name says the format: ``.ldp`` is a batch, ``.b64`` are lines of base64, everything else
        is Parquet. Collectors that are to be told apart write to directories of their own, such as
        ``collector=7/2026-11-21.parquet``.
    protocol : Channel or Protocol
        What the reports are of.
    reports : structured numpy.ndarray or iterable of structured numpy.ndarray
        Of the protocol's ``report_dtype``; several arrays need not fit in memory together.

    Returns
    -------
    int
        How many reports were written.

    Raises
    ------
    InvalidReport
        A report that no client of this protocol can have sent; no file is written.
    ValueError
        Reports that are nearly all the same, and too many for one Parquet file (see
        ``docs/limits/files.md``); no file is written.
    """
    channel, target = channel_of(protocol), Path(path)
    arrays = (
        channel.transport.accepted(array, None)
        for array in ([reports] if isinstance(reports, np.ndarray) else reports)
    )
    kind = _format_of(target)
    # The first is checked before any file or directory is made.
    first = next(arrays, np.zeros(0, dtype=channel.report_dtype))
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as stream:
        return kind.write(stream, channel, chain([first], arrays))


def read_reports(
    path: str | os.PathLike[str], protocol: Any, tally: Counter[str] | None = None
) -> Reports:
    """Return all reports of a file, as an array.

    Parameters
    ----------
    path : str or os.PathLike
        What `write_reports` wrote, or a collector.
    protocol : Channel or Protocol
        What the reports are of.
    tally : collections.Counter, optional
        None: a report that nobody can have sent, or a line that is none, raises InvalidReport. A
        Counter: it is left out, and counted under the reason, such as "impossible".

    Returns
    -------
    numpy.ndarray
        Shape (reports,), of the protocol's ``report_dtype``.

    Raises
    ------
    RefusedFile
        A file of another protocol or of other parameters, of other columns, cut short, or damaged.
    """
    channel = channel_of(protocol)
    parts = file_of(path, channel).batches(None, batch_of(channel), tally)
    return np.concatenate([np.zeros(0, dtype=channel.report_dtype), *parts])


# ------------------------------------------------------------------------------------------------
# The files of reports below the paths that a caller names: nothing is left out silently.


Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass
class Listing:
    """The listing of what there is to read, by absolute path."""

    sizes: dict[str, int] = field(default_factory=dict)  # bytes of each file
    # why a file or a directory below one that was named cannot be read
    refused: dict[str, str] = field(default_factory=dict)


def listing_of(paths: Paths) -> Listing:
    """Return files, and of directories every file below whose name ends as those of reports do.

    Names that begin with "." or "_" are passed over. Links are followed; a directory is listed
    once, however many links lead to it, and by its own name if it is below one that was named.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    listing = Listing()
    listed: set[tuple[int, int]] = set()
    for path in map(os.path.abspath, given):  # the same for whoever resumes elsewhere
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            os.scandir(path).close()
            _list(path, listing, listed)
        elif stat.S_ISREG(status.st_mode):
            listing.sizes[path] = status.st_size
        else:
            raise ValueError(f"{path} is no regular file")
    return listing


def _list(top: str, found: Listing, listed: set[tuple[int, int]]) -> None:
    directories, links = deque([top]), deque[str]()
    while directories or links:
        place = directories.popleft() if directories else links.popleft()
        try:
            status = os.stat(place)
            if (status.st_dev, status.st_ino) in listed:
                continue
            with os.scandir(place) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            found.refused[place] = str(error)
            continue
        listed.add((status.st_dev, status.st_ino))
        for entry in inside:
            if entry.name.startswith((".", "_")):
                continue
            try:
                status = entry.stat()
            except OSError as error:  # a link to nothing: who knows what should be there
                found.refused[entry.path] = str(error)
                continue
            if stat.S_ISDIR(status.st_mode):
                if not entry.is_symlink():
                    directories.append(entry.path)
                elif _is_around(entry.path):
                    found.refused[entry.path] = "a link to a directory that it is in"
                else:
                    links.append(entry.path)
            elif entry.name.lower().endswith(SUFFIXES):
                if stat.S_ISREG(status.st_mode):
                    found.sizes[entry.path] = status.st_size
                else:
                    found.refused[entry.path] = "no regular file"


def _is_around(link: str) -> bool:
    """Whether a link leads to a directory that it is in itself."""
    return Path(os.path.realpath(os.path.dirname(link))).is_relative_to(os.path.realpath(link))
