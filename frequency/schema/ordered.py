"""Ordered: attributes whose values are put into bins, of which ranges are asked."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.exceptions import InvalidQuestion
from frequency.schema.attribute import ABSENT, ItemAttribute, Span
from mechdesign.base.linear_algebra import Floats, Items
from mechdesign.base.text import printable, shown


class Ordered(ItemAttribute):
    """An attribute with bins between edges, in order.

    Positions are bins and parts of bins: k + t is t of the way through bin k, from 0 to `bins`.
    """

    ordered: ClassVar[bool] = True
    policies: ClassVar[tuple[str, ...]] = ("refuse", "clip", "item")

    @property
    @abstractmethod
    def cuts(self) -> npt.NDArray[Any]:
        """The edges of the bins, ascending, shape (bins + 1,): numbers, or times to the second.

        Bins are closed on the left and open on the right, but the last one is closed.
        """

    @property
    @abstractmethod
    def single(self) -> bool:
        """Whether each bin is one value, such as a year of age or a day."""

    @abstractmethod
    def _ends(self, given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return where a value, or each of an array, begins and ends, comparable with `cuts`.

        InvalidQuestion for what is none.
        """

    @abstractmethod
    def values_in(self, items: Items, part: Floats) -> npt.NDArray[Any]:
        """The values that are part of the way through bins.

        Parameters
        ----------
        items : numpy.ndarray of int64
            The bins, 0 .. `bins` - 1.
        part : numpy.ndarray of float64
            From 0 to 1.

        Returns
        -------
        numpy.ndarray
            In the attribute's unit: of whole numbers and dates those where that is, in the bin.
        """

    def drawn_in(self, items: Items, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Return values drawn evenly from bins: for synthetic rows.

        Parameters
        ----------
        items : numpy.ndarray of int64
            The bins, 0 .. `bins` - 1: shape (n,).
        rng : numpy.random.Generator
            To draw with.

        Returns
        -------
        numpy.ndarray
            Shape (n,), as of `values_in`.
        """
        return self.values_in(items, rng.random(len(items)))

    @abstractmethod
    def value_text(self, value: Any) -> str:
        """A value as text."""

    def label(self, item: int) -> str:
        first, last = (self.values_in(np.array(item), np.array(part)) for part in (0.0, 1.0))
        ends = (self.value_text(first), self.value_text(last))
        return ends[0] if self.single or ends[0] == ends[1] else " to ".join(ends)

    def _positions(self, values: npt.NDArray[Any]) -> Floats:
        """The positions of values, those outside at the ends."""
        cuts = self.cuts
        inside = np.clip(values, cuts[0], cuts[-1])
        bins = np.minimum(np.searchsorted(cuts, inside, side="right") - 1, self.bins - 1)
        return bins + (inside - cuts[bins]) / (cuts[bins + 1] - cuts[bins])

    def _client_content(self) -> dict[str, Any]:
        return {"cuts": _described(self.cuts)}

    def asked(self, given: Any) -> Any:
        if isinstance(given, tuple):
            return self._span(given)
        return super().asked(given)

    def _span(self, given: tuple[Any, ...]) -> Span:
        if len(given) != 2:
            raise InvalidQuestion(f"a range is a tuple of two ends, got {shown(given)}")
        low, high = given
        ends = [
            self.cuts[:1].reshape(()) if low is None else self._ends(low)[0],
            self.cuts[-1:].reshape(()) if high is None else self._ends(high)[1],
        ]
        try:
            first, last = np.broadcast_arrays(*ends)
        except ValueError:
            raise InvalidQuestion(
                f"the ends of ranges must broadcast, got shapes {ends[0].shape} and {ends[1].shape}"
            ) from None
        span = Span(self._positions(first), self._positions(last))
        bad = (first >= last) | (span.first >= span.last)
        if bad.any():
            point = (first == last).any()  # never of whole numbers and dates, which have a width
            width = ": a single number has no width, unless numbers are whole" if point else ""
            raise InvalidQuestion(
                f"{printable(self.name)} is {self.values}: the range {shown(given)} holds none"
                f"{width}"
            )
        return span

    def _own_item(self, given: Any) -> int | None:
        first, last = self._ends(given)
        if first.ndim or first < self.cuts[0] or last > self.cuts[-1]:
            return None
        start, end = self._positions(first), self._positions(last)
        if start != int(start) or end != start + 1:
            this = f", such as from {shown(given)} to {shown(given)}" if start < end else ""
            raise InvalidQuestion(
                f"{shown(given)} is not a bin of {printable(self.name)}, such as"
                f" {self.label(int(start))}: ask for a range{this}"
            )
        return int(start)


def filled(items: Items, absent: Any, words: Items | None, bins: int) -> Items:
    """The same items, with missing values and the items after the bins that words ask for."""
    items[absent] = ABSENT
    if words is not None:
        items[words >= 0] = bins + words[words >= 0]
    return items


def _described(cuts: npt.NDArray[Any]) -> list[int | str] | dict[str, int]:
    """Return edges without floats: integers, perhaps by their step, and texts of other numbers."""
    if cuts.dtype.kind == "f" and (cuts % 1 != 0).any():
        return [int(cut) if cut % 1 == 0 else repr(cut) for cut in cuts.tolist()]
    whole = cuts.astype(np.int64)
    steps = np.diff(whole)
    if (steps == steps[0]).all():
        return {"first": int(whole[0]), "step": int(steps[0]), "bins": len(steps)}
    integers: list[int | str] = whole.tolist()
    return integers
