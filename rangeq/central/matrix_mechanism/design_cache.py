"""Where a design is kept, so that it is made once: a file for each request."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from mechdesign import InvalidFile
from rangeq.central.matrix_mechanism.strategy_file import (
    StoredStrategy,
    load_strategy,
    save_strategy,
)
from rangeq.central.matrix_mechanism.workload import QuerySet, Workload

VERSION = 1
"""Counts changes of the search: designs of another version are not found again."""


class DesignFile:
    """The file of a request in a directory of designs.

    What is there is as good as what is designed, or damaged: then it is designed anew. Its bound is
    taken on trust, its sensitivities are not.

    Parameters
    ----------
    directory : str or os.PathLike
        Where designs are kept; made if there is none.
    workload : Workload
        What is asked.
    noise : str
        What else the strategy depends on: the kind of noise, and the like.
    tolerance : float
        As for `workload_optimal`.
    """

    def __init__(
        self, directory: str | os.PathLike[str], workload: Workload, noise: str, tolerance: float
    ) -> None:
        terms = [
            [float(term.weight).hex(), [_told(own) for own in term.factors]]
            for term in workload.terms
        ]
        asked = [VERSION, list(workload.sizes), terms, noise, float(tolerance).hex()]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        self.path = Path(directory) / f"{digest[:32]}.npz"

    def load(self) -> StoredStrategy | None:
        """The strategy and its bound, if there is an intact file with both."""
        with suppress(FileNotFoundError, InvalidFile):
            found = load_strategy(self.path)
            return found if found.bound is not None else None
        return None

    def save(self, found: StoredStrategy) -> None:
        """Keep a design, in one step or not at all.

        Parameters
        ----------
        found : StoredStrategy
            The strategy and its bound.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        save_strategy(self.path, *found)


def _told(queries: QuerySet) -> str:
    if queries.matrix is None:
        return queries.name
    shape, data = queries.matrix.shape, queries.matrix.astype("<f8").tobytes()
    return f"{shape} {hashlib.sha256(data).hexdigest()}"
