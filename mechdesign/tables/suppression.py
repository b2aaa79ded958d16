"""SuppressionRule: small counts of a table left out, the others rounded, as offices publish them.

This is no mechanism and promises nothing: what can be concluded from such a table is computed in
`mechdesign.tables.suppression_reconstruction`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mechdesign.base import Booleans, Integers, checked_counts, exact_sum, set_fields, shown, whole
from mechdesign.exceptions import InvalidCount

LARGEST_TOTAL = (1 << 31) - 1  #: The largest grand total of a table whose suppression is looked at.


def with_totals(counts: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a table of counts with its totals: last along each axis is the sum of what precedes.

    Shapes: `counts` (a, b, ...); returns (a + 1, b + 1, ...).

    >>> with_totals([[1, 2], [3, 4]]).tolist()
    [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    """
    table = np.asarray(counts)
    for axis in range(table.ndim):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    return table


def totals_of(shape: tuple[int, ...]) -> Booleans:
    """Return which entries of a table with totals are totals; ``shape`` includes them."""
    cells = np.zeros(shape, dtype=np.bool_)
    cells[(slice(-1),) * len(shape)] = True
    return ~cells


def lines(shape: tuple[int, ...]) -> Iterator[Integers]:
    """The lines of a table with totals: in each the last entry is the sum of the others."""
    numbers = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    for axis, length in enumerate(shape):
        yield from np.moveaxis(numbers, axis, -1).reshape(-1, length)


@dataclass(frozen=True)
class SuppressionRule:
    """A rule for publishing a table of counts: small ones are suppressed, others may be rounded.

    Totals of every order and the grand total are counts, too: those below the threshold are
    suppressed as cells are.

    Attributes
    ----------
    threshold : int
        Counts below it are suppressed; 0: none.
    base : int, default 1
        Counts that are not suppressed are rounded to its multiples; 1: not rounded.
    rounding : {"nearest", "random"}, default "nearest"
        To the nearest multiple, halves upwards; or to one of the two multiples around, at random,
        so that the mean is right and multiples remain.
    zeros : bool, default False
        Whether zeros are suppressed as well, if the threshold is above 0.
    complementary : bool, default False
        Whether more is suppressed until no line of the table, such as a row with its total, has
        exactly one suppressed entry: each time its smallest count above 0 that is not the grand
        total. The mark is the same. This is the usual rule of thumb, not a proof of anything.
    totals : {"exact", "rounded", "none"}, default "exact"
        Whether totals are published as they are, rounded as cells are, or not at all.

    Raises
    ------
    ValueError
        A field is none of these; complementary suppression without totals; or a published 0 could
        stand for zeros and for counts above suppressed ones.
    """

    threshold: int
    base: int = 1
    rounding: Literal["nearest", "random"] = "nearest"
    zeros: bool = False
    complementary: bool = False
    totals: Literal["exact", "rounded", "none"] = "exact"

    def __post_init__(self) -> None:
        threshold = whole(self.threshold, "threshold", 0, LARGEST_TOTAL)
        base = whole(self.base, "base", 1, LARGEST_TOTAL)
        for name, allowed in (
            ("rounding", ("nearest", "random")),
            ("totals", ("exact", "rounded", "none")),
            ("zeros", (False, True)),
            ("complementary", (False, True)),
        ):
            if getattr(self, name) not in allowed:
                choices = " or ".join(map(repr, allowed))
                raise ValueError(f"{name} must be {choices}, got {shown(getattr(self, name))}")
        set_fields(self, threshold=threshold, base=base)
        if self.complementary and self.totals == "none":
            raise ValueError("complementary suppression hides counts from totals: publish some")
        if not self.zeros and 1 < threshold <= self.reach[1]:
            raise ValueError(
                f"a published 0 could stand for 0 or for {threshold}, but not for what is between:"
                f" suppress zeros, or take a threshold of 0, 1 or more than {self.reach[1]}"
            )

    @property
    def reach(self) -> tuple[int, int]:
        """The distances of the least and the largest count below and above a rounded number."""
        if self.rounding == "random":
            return self.base - 1, self.base - 1
        return self.base // 2, (self.base - 1) // 2

    def publish(
        self,
        counts: npt.ArrayLike,
        sizes: npt.ArrayLike | None = None,
        rng: np.random.Generator | None = None,
    ) -> SuppressedTable:
        """Suppress and round a table.

        Parameters
        ----------
        counts : array_like of int
            The true counts, of any shape (a, b, ...), each at least 0.
        sizes : array_like of int, optional
            The sizes of the groups if they are public, of the same shape: no count is above.
        rng : numpy.random.Generator, optional
            For random rounding; None: one seeded by the operating system.

        Returns
        -------
        SuppressedTable

        Raises
        ------
        InvalidCount
            A count is no such integer.
        ValueError
            The shapes differ, or the table is empty or too large.
        """
        cells, groups = _checked(counts, sizes)
        table = with_totals(cells)
        suppressed = (table < self.threshold) & (self.zeros | (table > 0))
        if self.complementary:
            self._complement(table.ravel(), suppressed.ravel(), table.shape)
        rounded = self._rounded(table, rng)
        is_total = totals_of(table.shape)
        if self.totals == "exact":
            rounded[is_total] = table[is_total]
        if self.totals == "none":
            rounded[is_total] = suppressed[is_total] = 0
        rounded[suppressed] = 0
        return SuppressedTable(self, rounded, suppressed, groups)

    @staticmethod
    def _complement(counts: Integers, suppressed: Booleans, shape: tuple[int, ...]) -> None:
        """Suppress more, in place, until no line has exactly one suppressed entry."""
        changed = True
        while changed:
            changed = False
            for line in lines(shape):
                if suppressed[line].sum() != 1:
                    continue
                free = line[~suppressed[line] & (counts[line] > 0) & (line != len(counts) - 1)]
                if len(free):
                    suppressed[free[np.argmin(counts[free])]] = changed = True

    def _rounded(self, counts: Integers, rng: np.random.Generator | None) -> Integers:
        """Each count rounded."""
        if self.base == 1:
            return counts.copy()
        if self.rounding == "nearest":
            return (counts + self.base // 2) // self.base * self.base
        below, rest = np.divmod(counts, self.base)
        draws = (rng or np.random.default_rng()).integers(self.base, size=rest.shape)
        return (below + (draws < rest)) * self.base


@dataclass(frozen=True, eq=False)
class SuppressedTable:
    """A table as readers see it: published numbers, and marks where counts are suppressed.

    Attributes
    ----------
    rule : SuppressionRule
        How it was made, which readers know.
    values : numpy.ndarray of int64
        Published numbers with totals, shape (a + 1, b + 1, ...); 0 where suppressed, and in the
        place of totals that are not published.
    suppressed : numpy.ndarray of bool
        Where there is a mark, of the same shape.
    sizes : numpy.ndarray of int64 or None
        The public sizes of the groups, shape (a, b, ...).

    Raises
    ------
    ValueError
        Shapes that do not fit each other, or a rounded number that is no multiple of the base.
    """

    rule: SuppressionRule
    values: Integers
    suppressed: Booleans
    sizes: Integers | None = None

    def __post_init__(self) -> None:
        values = checked_counts(self.values, LARGEST_TOTAL)
        suppressed = np.asarray(self.suppressed, dtype=np.bool_)
        sizes = None if self.sizes is None else checked_counts(self.sizes, LARGEST_TOTAL)
        cells = tuple(length - 1 for length in values.shape)
        if not cells or min(cells) < 1 or suppressed.shape != values.shape:
            raise ValueError(
                "a published table has cells and totals along each axis, and as many marks; got"
                f" values of shape {values.shape}, suppressed {suppressed.shape}"
            )
        if sizes is not None and sizes.shape != cells:
            raise ValueError(f"the table has {cells} cells, sizes have shape {sizes.shape}")
        rounded = self.rule.totals == "rounded" or ~totals_of(values.shape)
        wrong = (values % self.rule.base != 0) & rounded
        if wrong.any():
            raise ValueError(f"{values[wrong][0]} is no multiple of {self.rule.base}")
        set_fields(self, values=values, suppressed=suppressed, sizes=sizes)

    @property
    def protected(self) -> Booleans:
        """The entries that are not published as they are: suppressed, or rounded and above 0.

        A rounded 0 counts as well, if it can stand for anything else.
        """
        low, high = self.known()
        rounded = (self.values > 0) | (low < high)
        if self.rule.base == 1:
            rounded[:] = False
        if self.rule.totals != "rounded":
            rounded[totals_of(self.values.shape)] = False
        return self.suppressed | rounded

    def known(self) -> tuple[Integers, Integers]:
        """Return what readers who know the rule conclude from each entry by itself.

        Returns
        -------
        low, high : numpy.ndarray of int64
            The least and the largest count that the entry can stand for, shape (a + 1, b + 1, ...);
            every count between is possible. Of totals that are not published, 0 and
            `LARGEST_TOTAL`.
        """
        rule = self.rule
        is_total = totals_of(self.values.shape)
        below, above = rule.reach
        low, high = self.values - below, self.values + above
        if rule.totals == "exact":
            low[is_total] = high[is_total] = self.values[is_total]
        # What is published is no suppressed count
        low = np.maximum(low, rule.threshold if rule.zeros else max(rule.threshold, 1))
        if not rule.zeros:
            low[self.values == 0] = 0
            if rule.threshold > 1:
                high[self.values == 0] = 0
        low[self.suppressed] = 0 if rule.zeros else 1
        # A mark may be complementary, but for the grand total's
        high[self.suppressed] = LARGEST_TOTAL if rule.complementary else rule.threshold - 1
        if self.suppressed.flat[-1]:
            high.flat[-1] = rule.threshold - 1
        if rule.totals == "none":
            low[is_total], high[is_total] = 0, LARGEST_TOTAL
        if self.sizes is not None:
            high = np.minimum(high, with_totals(self.sizes))
        return low, np.minimum(high, LARGEST_TOTAL)


def _checked(
    counts: npt.ArrayLike, sizes: npt.ArrayLike | None
) -> tuple[Integers, Integers | None]:
    """A table of counts and its sizes; raises what `SuppressionRule.publish` says."""
    cells = checked_counts(counts, LARGEST_TOTAL)
    if cells.ndim == 0 or cells.size == 0:
        raise ValueError(f"a table has at least one axis and one cell, got shape {cells.shape}")
    groups = None
    if sizes is not None:
        groups = checked_counts(sizes, LARGEST_TOTAL)
        if groups.shape != cells.shape:
            raise ValueError(f"counts have shape {cells.shape}, sizes {groups.shape}")
        if (cells > groups).any():
            place = tuple(np.argwhere(cells > groups)[0].tolist())
            raise InvalidCount(place, int(cells[place]), int(groups[place]))
    if exact_sum(cells if groups is None else groups) > LARGEST_TOTAL:
        raise ValueError(f"the grand total must be at most {LARGEST_TOTAL}")
    return cells, groups
