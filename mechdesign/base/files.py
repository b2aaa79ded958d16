"""Regular files: opened without waiting, replaced in one step or not at all; and JSON in them."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import shutil
import stat
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self

from filelock import FileLock

from mechdesign.base.fields import ANYTHING, TEXT, FieldType, record
from mechdesign.base.text import FULL, printable, reason, shown
from mechdesign.exceptions import DiskFull, InvalidFile, InvalidMechanism, IrregularFile


def opened(path: str | os.PathLike[str], mode: str = "rb", **options: Any) -> IO[Any]:
    """Open a regular file to read it: what every reader of files calls."""
    return open(path, mode, opener=_regular, **options)


def _regular(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise IrregularFile(path) from error
        raise
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return handle
    os.close(handle)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise IrregularFile(path)


def locked(path: str | os.PathLike[str]) -> AbstractContextManager[object]:
    """Return a lock on a file, which one thread of one process holds at a time."""
    # It is on a second file, since the first is replaced meanwhile. The second file is not removed;
    # the system releases the lock of a process that ends.
    return FileLock(f"{os.path.realpath(path)}.lock").acquire(poll_interval=0.005)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a stream to a temporary file that replaces ``path``, durably, once it is complete.

    If anything fails, ``path`` is unchanged. Of a symbolic link the target is replaced.
    """
    # If anything fails, the temporary file is removed. The new file has the permission bits of the
    # one that it replaces.
    target = Path(os.path.realpath(path))
    mode = None
    if target.exists():
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFile(os.fspath(path))
        mode = stat.S_IMODE(status.st_mode)
    elif os.path.islink(path):
        raise FileNotFoundError(errno.ENOENT, "a symbolic link that leads nowhere", os.fspath(path))
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")

    def private(path: str, flags: int) -> int:
        # Before it has the permissions of the file that it replaces, only its owner may read it.
        return os.open(path, flags, 0o666 if mode is None else 0o600)

    try:
        with open(aside, "xb", opener=private) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            aside.chmod(mode)
        aside.replace(target)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in FULL:
            raise DiskFull(os.fspath(path)) from error
        raise
    synced(target.parent)


def synced(directory: Path) -> None:
    """Write the entries of a directory to disk, where the system can, to survive a power cut."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ------------------------------------------------------------------------------------------------
# JSON that can be read in one way only, and JSON files with a digest.
#
# No key of an object may be repeated or unknown, versions are integers, and each field holds what
# the format declares of it: see `mechdesign.base.fields`.


JSON_DEPTH = 64  #: The deepest nesting of lists and objects that `from_json` reads.

JSON_BYTES = 1 << 28  #: The longest text that `from_json` reads.


def from_json(text: str | bytes) -> Any:
    """Return what a JSON text says, if it can be read in one way only."""
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
    text, given_text = (json.dumps(value, sort_keys=True) for value in (written, given))
    if text == given_text:
        return
    if isinstance(written, dict) and isinstance(given, dict):
        for key in sorted({*written, *given}):
            require_same(written.get(key), given.get(key))
    raise ValueError(f"it holds {shown(given)} where {shown(written)} follows from the rest")


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the key "format" of a file; empty if it is no JSON object that has one."""
    with opened(path) as stream:
        text = stream.read(JSON_BYTES + 1)
    try:
        content = from_json(text)
    except ValueError:
        return ""
    kind = content.get("format") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else ""


def require_version(version: Any, versions: Collection[int]) -> int:
    """The version of a file, if it is one of those that are read."""
    if type(version) is not int or version not in versions:
        read = ", ".join(map(str, versions))
        raise ValueError(f"version {shown(version)}, this library reads version {read}")
    return version


@dataclass(frozen=True)
class Format:
    """A kind of JSON document: its name, and its fields in each version that is read."""

    name: str
    versions: Mapping[int, Mapping[str, FieldType]]  # the last one is written
    sealed: bool = True  # whether a document holds a digest of the rest of it

    @property
    def part(self) -> FieldType:
        """A document within another one, which is read by a class of its own."""
        form = record(self.versions[max(self.versions)])
        return FieldType(form.what, form.check, write=form.write)

    def require(self, content: Any) -> dict[str, Any]:
        """The content of a document; ValueError unless it is of this format, and intact."""
        if not isinstance(content, dict) or content.get("format") != self.name:
            kind = self.name.rpartition(".")[2]
            raise ValueError(f"not a {kind} file (format {self.name!r} expected)")
        version = require_version(content.get("version"), self.versions)
        fields = {"format": TEXT, "version": ANYTHING, **self.versions[version]}
        if self.sealed:
            fields["digest"] = TEXT
            if "digest" in content and content["digest"] != digest_of(content):
                raise ValueError(
                    "the digest does not match: the file was changed after it was written"
                )
        try:
            record(fields).require(content)
        except ValueError as error:
            raise ValueError(f"malformed: {error}") from error
        return content

    def load(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return what a file of this format holds, as JSON has it."""
        try:
            with opened(path) as stream:
                content = from_json(stream.read(JSON_BYTES + 1))
        except UnicodeDecodeError as error:
            kind = self.name.rpartition(".")[2]
            raise InvalidFile(f"{path}: binary, as an aggregate is, and no {kind} file") from error
        except ValueError as error:
            raise InvalidFile(f"{path}: not JSON, or cut short: {error}") from error
        try:
            return self.require(content)
        except ValueError as error:
            raise InvalidFile(f"{path}: {error!s:.300}") from error

    def read(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return what an object has in the place of each field of a document."""
        fields = self.versions[content.get("version", max(self.versions))]
        return {name: field.read(content[name]) for name, field in fields.items()}

    def written(self, values: Any) -> dict[str, Any]:
        """The document of an object, or of a dictionary, that has what `read` returns."""
        version = max(self.versions)
        content = record(self.versions[version]).write(values)
        content = {"format": self.name, "version": version, **content}
        return {**content, "digest": digest_of(content)} if self.sealed else content

    def require_same(self, values: Any, content: dict[str, Any], but: str = "") -> None:
        """Raise ValueError unless an object is written as its document has it, to the type."""
        fields = self.versions[content["version"]]
        written = record(fields).write(values)
        for name in fields:
            if name != but:
                require_same(written[name], content[name])

    def save(self, path: str | os.PathLike[str], values: Any) -> None:
        """Write a file that `load` reads, in one step or not at all."""
        text = spelt(json.dumps(self.written(values), indent=1, allow_nan=False) + "\n")
        with replacing(path) as stream:
            stream.write(text)


class Document(ABC):
    """An object that is kept in a JSON file, and made and checked again from what that says."""

    form: ClassVar[Format]  #: the fields of the file, by version

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what its file says: the values of its fields, as an object has them.

        Returns
        -------
        dict of str to object
            By the names of the fields.

        Raises
        ------
        ValueError
            `load` would refuse the file, since it takes too long to check.
        """

    @classmethod
    @abstractmethod
    def of_content(cls, content: dict[str, Any], where: str) -> Self:
        """Return the object of a document.

        Parameters
        ----------
        content : dict of str to object
            What the file says, as JSON has it: its fields have been checked.
        where : str
            What errors call the file.

        Returns
        -------
        object
            Of this class.

        Raises
        ------
        ValueError
            It says something that is not true.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file (.json) that `load` reads, replacing one in one step or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            Where; what is there is replaced.

        Raises
        ------
        ValueError
            `load` would refuse the file, since it takes too long to check.
        """
        self.form.save(path, self.content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote; its mechanisms and their privacy are checked again.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        object
            Equal to the one that was saved.

        Raises
        ------
        InvalidFile
            Not such a file, another version, truncated, or changed since it was written.
        InvalidMechanism, PrivacyViolation
            It is intact but claims what is not true.
        """
        content = cls.form.load(path)
        with intact(path):
            return cls.of_content(content, str(path))


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


# ------------------------------------------------------------------------------------------------
# The progress of a long computation, on standard error.


_REDRAWN, _WRITTEN = 0.2, 5.0  #: Seconds after which a bar is drawn anew, and a line is written.

_PERCENTAGE = "{desc}: {percentage:.0f}%{postfix} [{elapsed}<{remaining}]"
_STEPS, _NO_STEPS = "{desc}: {n_fmt} {unit}{postfix} [{elapsed}]", "{desc}{postfix} [{elapsed}]"


class ProgressMeter:
    """A bar on a terminal, a line every few seconds elsewhere. A context manager.

    It is redrawn at regular times, also when the computation reports nothing. A computation that
    ends within seconds writes no line. ``total`` is the steps in all, where they are known;
    ``unit`` the name of a step, such as "rows", "B" for bytes: without both steps are not shown.
    """

    def __init__(
        self, description: str, total: int | None = None, unit: str = "", *, shown: bool = True
    ) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._steps, self._text, self._began = 0, "", time.monotonic()
        self._done = threading.Event()
        # The thread ends with the meter, too: an interrupt may come before `__exit__` does
        given = weakref.ref(self), self._done
        self._watch = threading.Thread(target=_report, args=given, daemon=True) if shown else None

    def __enter__(self) -> Self:
        if self._watch is not None:
            self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._watch is not None:
            self._watch.join()

    def update(self, steps: int = 1) -> None:
        """Report that so many more steps are done."""
        self._steps += steps

    def say(self, text: str) -> None:
        """Set the text that says what is going on; calls are cheap."""
        self._text = text

    def _line(self, terminal: bool) -> str:
        from tqdm import tqdm  # imported here: quick computations do not need it

        if self._total is not None:
            layout = "{l_bar}{bar}{r_bar}" if terminal else _PERCENTAGE
        else:
            layout = _STEPS if self._unit else _NO_STEPS
        return tqdm.format_meter(
            self._steps,
            self._total or 0,
            time.monotonic() - self._began,
            ncols=shutil.get_terminal_size().columns - 1 if terminal else None,
            prefix=printable(self._description),
            unit=self._unit,
            unit_scale=self._unit == "B",
            bar_format=layout,
            postfix=printable(self._text),
        )


def _report(meter: Callable[[], ProgressMeter | None], done: threading.Event) -> None:
    """Show the progress that a meter has made, as long as there is one."""
    terminal, width = sys.stderr.isatty(), 0
    while not done.wait(_REDRAWN if terminal else _WRITTEN):
        if (known := meter()) is None:
            break
        line = known._line(terminal)
        del known
        if terminal:
            print(f"\r{line:{width}}", end="", file=sys.stderr, flush=True)
            width = len(line)
        else:
            print(line, file=sys.stderr, flush=True)
    if terminal:
        print(end="\r" + " " * width + "\r" if width else "", file=sys.stderr, flush=True)
