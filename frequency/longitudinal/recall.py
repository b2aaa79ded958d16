"""Finding what a user already keeps, and drawing what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from frequency.core import Reports
from frequency.exceptions import InvalidValue
from mechdesign.base import Items, checked_counts


class Kept(Protocol):
    """The reports that users keep: `held` each, about `items`, in order of appearance."""

    held: npt.NDArray[np.int64]
    items: Items
    reports: Reports


def those_who_report(users: npt.ArrayLike | None, of: int, values: int) -> Items:
    """Return the users who take part on a day: shape (those who take part,)."""
    if users is None:
        who = np.arange(of)
    else:
        who = checked_counts(users, of - 1, InvalidValue)
        if who.ndim != 1 or len(np.unique(who)) != len(who):
            raise ValueError("users must be one-dimensional, each of them once")
    if values != len(who):
        raise ValueError(f"values must be of {len(who)} users, got {values}")
    return who


def recalled(kept: Kept, who: Items, items: Items, draw: Callable[[Items], Reports]) -> Reports:
    """Some users' permanent reports about these items; those missing are drawn and kept.

    Shapes: `who` (some,), `items` (some, ...); returns (some,).
    """
    ranks, held = np.arange(len(kept.items)), kept.held[who]
    same = (kept.items[:, who] == items).all(axis=tuple(range(2, kept.items.ndim)))
    same &= ranks[:, None] < held
    place = np.where(same.any(axis=0), same.argmax(axis=0), held)
    new = np.flatnonzero(place == held)
    if len(new):
        drawn = draw(new)
        if place.max() == len(ranks):
            kept.items = np.concatenate([kept.items, kept.items[:1]])
            kept.reports = np.concatenate([kept.reports, kept.reports[:1]])
        kept.items[place[new], who[new]] = items[new]
        kept.reports[place[new], who[new]] = drawn
        kept.held[who[new]] += 1
    found: Reports = kept.reports[place, who]
    return found
