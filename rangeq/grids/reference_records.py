"""Public populations of several attributes, and guesses of one, to predict errors on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from frequency.schema import Domain
from mechdesign.base.linear_algebra import Floats, Items
from rangeq.core.reference_populations import reference_shares

_HIDDEN = 33
"""The number of values of what attributes have in common."""


def _alike(margin: str, correlation: float) -> Callable[[int], Floats]:
    """A distribution of attributes whose normal scores have all the same correlation."""

    def given(size: int) -> Floats:
        common = ndtri((np.arange(_HIDDEN) + 0.5) / _HIDDEN)[:, None]
        sums = np.concatenate([[0.0], np.cumsum(reference_shares(margin, size))])
        scores = ndtri(np.clip(sums / sums[-1], 0.0, 1.0))
        # A one-factor Gaussian copula: given the common score an attribute's score is normal, with
        # the rest of the variance
        conditional = (scores - np.sqrt(correlation) * common) / np.sqrt(1 - correlation)
        return np.diff(ndtr(conditional), axis=1)

    return given


def _clusters(size: int) -> Floats:
    x = (np.arange(size) + 0.5) / size
    bells = np.exp(-(((x - np.array([[0.25], [0.7]])) / 0.05) ** 2) / 2) + 1e-9
    return np.asarray(bells / bells.sum(axis=1, keepdims=True))


REFERENCE_RECORDS: dict[str, Callable[[int], Floats]] = {
    "even": _alike("even", 0.0),
    "normal": _alike("smooth", 0.8),
    "skewed": _alike("skewed", 0.6),
    "clusters": _clusters,
    "spiky": _alike("spiky", 0.5),
    "heaped": _alike("heaped", 0.6),
}
"""Attributes that are independent of each other given a hidden value: the distribution of one
attribute under each hidden value, all as likely, as functions of the attribute's size, to arrays of
shape (hidden values, size).

All records alike; and the others of `rangeq.core.reference_populations.REFERENCE_POPULATIONS`,
whose normal scores are correlated by 0.8, 0.6, 0.5 and 0.6; in clusters every attribute is near a
quarter or near seven tenths of its domain, with a deviation of a twentieth, and in all attributes
on the same side.
"""


def drawn_records(name: str, attributes: Domain, n: int, rng: np.random.Generator) -> Items:
    """Records drawn from a reference population.

    The result has shape (n, attributes).
    """
    given = {size: REFERENCE_RECORDS[name](size) for size in set(attributes.sizes)}
    hidden = rng.integers(0, len(next(iter(given.values()))), n)
    columns = []
    for size in attributes.sizes:
        # Row k of the cumulative distributions is shifted by k, so that one search draws for all
        # hidden values
        sums = np.minimum(given[size].cumsum(axis=1), 1.0)
        sums += np.arange(len(sums))[:, None]
        drawn = np.searchsorted(sums.ravel(), hidden + rng.random(n), side="right")
        columns.append(np.clip(drawn - hidden * size, 0, size - 1))
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class ExpectedRecords:
    """Records that stand for those to come: a guess of the population.

    Attributes
    ----------
    attributes : Domain
        Of the records.
    held : bytes
        The records, as rows of 64-bit integers.
    """

    attributes: Domain
    held: bytes = field(repr=False)

    @classmethod
    def of(cls, like: Any, attributes: Domain) -> ExpectedRecords:
        """Check records from a table.

        Shapes: `like` (records, attributes).
        """
        if isinstance(like, ExpectedRecords):
            like = like.records
        none = isinstance(like, (list, tuple)) and not like  # whose shape says nothing
        records = np.zeros((0, len(attributes))) if none else attributes.records(like)
        if not len(records):
            raise ValueError("like must have a record at least, got none")
        return cls(attributes, records.tobytes())

    @property
    def records(self) -> Items:
        """The records, shape (records, attributes)."""
        return np.frombuffer(self.held, dtype=np.int64).reshape(-1, len(self.attributes))
