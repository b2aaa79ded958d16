"""A public random setting, and an oracle's report about what the setting makes of the item."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import Coins, uniform
from frequency.core.aggregate import Aggregate
from frequency.core.blanket import JointLaw, mixed
from frequency.core.channel import Channel, Reports, forwarded
from frequency.core.oracle import Oracle
from frequency.core.tally import Sample, public
from frequency.core.transport import Step, tossed, unstated
from mechdesign.base import BitSource, Floats, Items
from mechdesign.symbolic import PublicDrawProof


class PublicDraw(Channel):
    """A setting drawn without looking at the item, and the report of a cell that depends on both.

    The setting is one number or a few, and public; `base` reports the cell. The setting does not
    depend on the item, so that a report's privacy loss is that of the cell's. The counts are those
    of `base`, for each setting apart: shape (*settings, *base).
    """

    #: What a report calls its setting, and the report of the cell.
    fields: ClassVar[tuple[str, str]]

    @property
    @abstractmethod
    def base(self) -> Oracle:
        """The oracle over the cells."""

    @property
    @abstractmethod
    def _settings(self) -> tuple[int, ...]:
        """The number of values of each number of a setting, from 0 on."""

    @property
    @abstractmethod
    def _probabilities(self) -> tuple[Floats, ...]:
        """The probabilities of the values of each number: the numbers are independent."""

    @property
    @abstractmethod
    def _chances(self) -> tuple[tuple[int, Fraction], ...]:
        """The numbers of settings with each probability, exactly."""

    @abstractmethod
    def _draw(self, number: Callable[[int], Items]) -> tuple[Items, ...]:
        """A setting for each user: ``number(k)`` draws a uniform 0 .. k-1 for each of them."""

    @abstractmethod
    def _cell(self, items: Items, setting: tuple[Items, ...]) -> Items:
        """The cell that each item is in under its setting."""

    @property
    def _coins(self) -> list[Step]:
        """The public coins that a setting is, as descriptions have them: see ``docs/wire.md``."""
        raise unstated(self)

    @property
    def _expression(self) -> list[Any]:
        """Return `_cell` of an item as an expression of descriptions: see ``docs/wire.md``."""
        raise unstated(self)

    @property
    def client_half(self) -> Step:
        return tossed(self._coins, self._expression, self.base.client_half)

    @property
    def report_bits(self) -> int:
        return sum((n - 1).bit_length() for n in self._settings) + self.base.report_bits

    batch_size = forwarded("base.batch_size")
    likelihoods = forwarded("base.likelihoods")
    menus = forwarded("base.menus")
    dominating_law = forwarded("base.dominating_law")  # of items that are never in one cell
    audit = forwarded("base.audit")

    def _numbers(self, reports: Reports) -> npt.NDArray[np.int64]:
        """The settings of reports: shape (users, numbers), of which none need be possible."""
        numbers = reports[self.fields[0]].reshape(len(reports), len(self._settings))
        return numbers.astype(np.int64)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        setting = self._draw(partial(uniform, len(items), source=source))
        cell = self.fields[1]
        self._tell(reports, setting)
        self.base.fill(self._cell(items, setting), reports[cell], source)

    def _tell(self, reports: Reports, setting: tuple[Items, ...]) -> None:
        column = reports[self.fields[0]]
        column[...] = np.stack(setting, axis=1).reshape(column.shape)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        known = (self._numbers(reports) < np.array(self._settings)).all(axis=1)
        return known & self.base.possible(reports[self.fields[1]])

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (*self._settings, *self.base.counts_shape)

    def _by_setting(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the counts of each setting in a row: shape (settings, *base)."""
        return counts.reshape(-1, *self.base.counts_shape)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        setting = np.ravel_multi_index(tuple(self._numbers(reports).T), self._settings)
        first = setting[:, None] * math.prod(self.base.counts_shape)
        cells = self.base.cells_of(reports[self.fields[1]]) + first
        return np.bincount(cells.ravel(), minlength=math.prod(self.counts_shape)).reshape(
            self.counts_shape
        )

    def consistent(self, aggregate: Aggregate) -> bool:
        counts = self._by_setting(aggregate.counts)
        if (counts < 0).any() or counts.sum(dtype=np.float64) >= 2.0**62:
            return False  # what follows sums up to less than 2^63
        together = Aggregate(self.base.signature, aggregate.n, counts.sum(axis=0))
        if not self.base.consistent(together):
            return False
        # Those of each setting too are whole reports, and no report has a cell twice.
        counts = counts.reshape(len(counts), -1)
        reports, rest = np.divmod(counts.sum(axis=1), self.base.cells)
        return not rest.any() and bool((counts.max(axis=1) <= reports).all())

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        probabilities = np.ones(())
        for of_number in self._probabilities:
            probabilities = np.multiply.outer(probabilities, of_number)
        rows = self._by_setting(counts)
        users = rows.reshape(len(rows), -1).sum(axis=1) // self.base.cells
        settings = public(n, users, probabilities.ravel())
        if self.base.cells == 1:
            return [settings, *super().samples(n, counts)]
        groups = zip(rows, users.tolist(), strict=True)
        return [settings, *(sample for row, m in groups for sample in self.base.samples(m, row))]

    # Without an item, the setting is as likely: what remains is the cell's.

    def blank(self, coins: Coins) -> Reports:
        reports, place = np.zeros(len(coins), dtype=self.report_dtype), count()
        self._tell(reports, self._draw(lambda k: coins.uniform(next(place), k)))
        reports[self.fields[1]] = self.base.blank(coins.after(next(place)))
        return reports

    def likelihood(self, reports: Reports, items: Items) -> Items:
        cell = self._cell(items, tuple(self._numbers(reports).T))
        return self.base.likelihood(reports[self.fields[1]], cell)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result, cell = reports.copy(), self.fields[1]
        result[cell] = self.base.candidate(reports[cell], numbers, largest)
        return result

    def cells_together(self, items: Items) -> tuple[Items, Items]:
        """The cells that some items are in together, and in how many settings of all.

        Settings count as often as they are drawn. Shapes: `items` (items,), at least one; returns
        (combinations, items) and (combinations,).
        """
        sizes: list[int] = []

        def first(k: int) -> Items:
            sizes.append(k)
            return np.zeros(1, dtype=np.int64)

        self._draw(first)
        every = iter(np.indices(sizes).reshape(len(sizes), -1))
        setting = self._draw(lambda k: next(every))
        users = len(setting[0])
        cells = [self._cell(np.repeat(item[None], users, axis=0), setting) for item in items]
        combinations, times = np.unique(np.stack(cells, axis=1), axis=0, return_counts=True)
        return combinations, times

    def joint_law(self, items: Items) -> JointLaw:
        cells, times = self.cells_together(items)
        total = int(times.sum())
        return mixed(
            (Fraction(count, total), self.base.joint_law(row))
            for row, count in zip(cells, times.tolist(), strict=True)
        )

    def proof(self) -> PublicDrawProof:
        return PublicDrawProof(self.base.proof(), self._chances, name=type(self).__name__)
