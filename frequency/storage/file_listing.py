"""The files of reports below the paths that a caller names: nothing is left out silently."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from frequency.storage.formats import SUFFIXES

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass
class Listing:
    """The listing of what there is to read.

    Attributes
    ----------
    sizes : dict of str to int
        The bytes of each file, by its absolute path.
    refused : dict of str to str
        Why a file or a directory below one that was named cannot be read, by its absolute path.
    """

    sizes: dict[str, int] = field(default_factory=dict)
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
