"""A file that is published, and the entry of a ledger that pays for it: both, or neither.

Two files cannot be replaced in one step. So the ledger decides: while it is locked, a journal
beside it says which file is about to be published; that file is written into a folder that only its
owner may open; the ledger is replaced, with the entry; and the file is moved to its place. Whoever
finds a journal, after a process was killed or the power failed, looks for the entry: if it is
there the file is moved, and if it is not the file is removed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from mechdesign.base import TEXT, Format, synced
from mechdesign.exceptions import InvalidFile

_FORM = Format("mechdesign.pending", {1: {"what": TEXT, "aside": TEXT, "target": TEXT}})

#: Return the names of the collections in a ledger.
Names = Callable[[], Collection[str]]


def is_pending(ledger: Path) -> bool:
    """Whether a file was, or is, about to be published with an entry of this ledger."""
    return _journal(ledger).exists()


@contextmanager
def published(ledger: Path, what: str, target: Path, names: Names) -> Iterator[Path]:
    """Yield where to write a file; it is at its place afterwards if the ledger has its entry.

    Parameters
    ----------
    ledger : Path
        The ledger, which the caller has locked, and writes before the end of the block.
    what : str
        The name of the entry, which the ledger does not have before.
    target : Path
        Where the file is to be.
    names : callable
        Reads the names in the ledger.

    Yields
    ------
    Path
        In a folder that only its owner may open. A path that is written durably, as by
        `mechdesign.base.replacing`.
    """
    aside = Path(mkdtemp(prefix=f".{target.name}.", suffix=".unspent", dir=target.parent))
    try:
        paths = (os.path.relpath(each, ledger.parent) for each in (aside, target))
        values = dict(zip(_FORM.versions[1], (what, *paths), strict=True))
        _FORM.save(_journal(ledger), values)
        yield aside / target.name
    finally:
        settle(ledger, names)
        shutil.rmtree(aside, ignore_errors=True)  # if there is no journal yet


def settle(ledger: Path, names: Names) -> None:
    """Finish what a journal has begun, or undo it: the caller has locked the ledger.

    Parameters
    ----------
    ledger : Path
        The ledger.
    names : callable
        Reads the names in the ledger.

    Raises
    ------
    InvalidFile
        The journal, or the ledger, is damaged: nothing is moved or removed.
    """
    journal = _journal(ledger)
    if not journal.exists():
        return
    said = _FORM.load(journal)
    aside, target = (ledger.parent / said[name] for name in ("aside", "target"))
    # A journal may come from anybody who can write here, and what it names is removed
    pattern = rf"\.{re.escape(target.name)}\.[^.]+\.unspent"
    if aside.parent != target.parent or not re.fullmatch(pattern, aside.name):
        raise InvalidFile(f"{journal} is damaged: {aside} is no folder for what is published")
    written = aside / target.name
    if said["what"] in names() and written.exists():
        with suppress(FileNotFoundError):
            written.chmod(target.stat().st_mode & 0o777)
        written.replace(target)
        synced(target.parent)
    shutil.rmtree(aside, ignore_errors=True)
    journal.unlink()
    # Nobody else writes while the ledger is locked, so that these are of who was killed
    for part in ledger.parent.glob(f".{ledger.name}.*.part"):
        part.unlink(missing_ok=True)


def _journal(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.pending")
