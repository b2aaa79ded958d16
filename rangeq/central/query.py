"""What is asked of a curator's estimate, along every attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core.answer import conditions, plain
from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.core.intervals import InvalidRange as InvalidRange
from rangeq.core.intervals import checked_ends


class Query(NamedTuple):
    """Boxes of cells, or products of sets of places.

    Attributes
    ----------
    shape : tuple of int
        That of the answers: () for one question.
    first, last : numpy.ndarray of int64
        Shape (attributes, questions): closed ends of boxes.
    weights : list of list of numpy.ndarray, or None
        For each question and attribute 1 for the places in the set, else 0; None where the boxes
        say it all.
    """

    shape: tuple[int, ...]
    first: Integers
    last: Integers
    weights: list[list[Floats]] | None = None

    @classmethod
    def of(cls, where: Any, sizes: Sequence[int]) -> Query:
        """What `CentralEstimate.answer` is asked."""
        shape, asked = conditions(where, cls.names(sizes), sizes)
        ends = np.zeros((2, len(sizes), int(np.prod(shape))), dtype=np.int64)
        ends[1] = np.array(sizes)[:, None] - 1
        sets = {}
        for one in asked:
            runs = one.runs()
            if len(runs) == 1:
                ends[:, one.place] = [np.broadcast_to(end, shape).ravel() for end in runs[0]]
            else:
                sets[one.place] = one.weights(np.arange(sizes[one.place]))
        if not sets:
            return cls(shape, ends[0], ends[1])
        weights = []
        for first, last in zip(*(end.T for end in ends), strict=True):
            places = [np.arange(size) for size in sizes]
            weights.append(
                [
                    sets[i] if i in sets else ((place >= first[i]) & (place <= last[i])) * 1.0
                    for i, place in enumerate(places)
                ]
            )
        return cls(shape, ends[0], ends[1], weights)

    @staticmethod
    def names(sizes: Sequence[int]) -> list[str]:
        """What the attributes are called."""
        return ["cell"] if len(sizes) == 1 else [f"attribute {i}" for i in range(len(sizes))]

    @classmethod
    def range(cls, first: npt.ArrayLike, last: npt.ArrayLike, sizes: Sequence[int]) -> Query:
        """Ranges of the only attribute."""
        if len(sizes) > 1:
            raise InvalidRange(
                f"a range is of one attribute, and there are {len(sizes)}: ask by answer"
            )
        a, b = checked_ends(first, last, sizes[0])
        return cls(a.shape, a.reshape(1, -1), b.reshape(1, -1))

    def by(
        self,
        boxes: Callable[[Integers, Integers], Any],
        sets: Callable[[Sequence[Floats]], Any] | None = None,
    ) -> Any:
        """What functions say of each question.

        Shapes: `boxes` (attributes, questions).
        """
        if self.weights is None or sets is None:
            found = np.asarray(boxes(self.first, self.last))
        else:
            found = np.array([sets(weights) for weights in self.weights], dtype=np.float64)
        return plain(found.reshape(self.shape))
