"""RecordChannel: channels whose users hold records, rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frequency.core import UNNUMBERED, Channel, json_integers
from frequency.schema import Domain
from mechdesign.base import Items


@dataclass(frozen=True)
class RecordChannel(Channel):
    """A channel whose items are rows of a table, one column an attribute.

    Parameters
    ----------
    domain : int
        The number of different records.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    attributes : Domain
        Of the records.
    """

    attributes: Domain

    largest_domain: ClassVar[int] = UNNUMBERED

    @property
    def takes(self) -> dict[str, Any]:
        return self.attributes.takes(numbered=False)

    def items_of(self, values: Any) -> Items:
        return self.attributes.records(values)

    def every_item(self) -> Items:
        return np.stack(np.unravel_index(super().every_item(), self.attributes.sizes), axis=1)

    def attack_items(self) -> list[Items]:
        """Records that tell a user apart well: see `Channel.attack_items`."""
        if self.domain == 1:
            return []
        sizes = np.array(self.attributes.sizes)
        first, last, odd = np.zeros_like(sizes), sizes - 1, np.arange(len(sizes)) % 2
        other = np.where(sizes > 2, sizes // 2, odd * last)
        if (sizes > 1).sum() == 1:  # and there may be no third record
            other = np.where(sizes > 2, sizes // 2, last)
        return [np.stack(rows) for rows in ((first, last, other), (first, last, last))]

    def combination(self, places: Sequence[int]) -> list[Any]:
        """Return the expression of `combined` in descriptions: its name, and what it needs."""
        return [
            "combine",
            [json_integers([place, self.attributes.sizes[place]]) for place in places],
        ]

    def combined(self, records: Items, places: Sequence[int]) -> Items:
        """Return the values of some attributes as one number, the last one's counting fastest.

        Shapes: `records` (users, attributes); returns (users,). Combinations of values are at most
        2^62.
        """
        result = np.zeros(len(records), dtype=np.int64)
        for place in places:
            result *= self.attributes.sizes[place]
            result += records[:, place]
        return result
