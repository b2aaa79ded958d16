"""IndexTable: the variables of a mechanism's program, by output and input."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.base.linear_algebra import Booleans, Integers
from mechdesign.exceptions import NotSquare
from mechdesign.values import CountPairs, Counts, Values, distances, values_of


class IndexTable(np.ndarray[tuple[int, ...], np.dtype[np.int64]]):
    """``at[i, j]`` is the number of the variable P[i, j] = Pr[output i | input j].

    It is an integer array of shape (outputs, inputs), to be sliced freely, which knows what its
    rows and columns stand for; a slice of it is an ordinary array that does not.

    Parameters
    ----------
    outputs, inputs : Values or int
        What the rows and the columns stand for; an integer k stands for the counts 0 .. k-1.
    """

    outputs: Values
    inputs: Values

    def __new__(cls, outputs: Values | int, inputs: Values | int) -> IndexTable:
        rows, columns = values_of(outputs), values_of(inputs)
        numbers = np.arange(rows.size * columns.size).reshape(rows.size, columns.size)
        table = numbers.view(cls)
        table.outputs, table.inputs = rows, columns
        return table

    def __getitem__(self, key: Any) -> Any:
        return self.view(np.ndarray)[key]

    @property
    def distances(self) -> Integers:
        """How far output i is from input j, 0 where it is the truth: shape (outputs, inputs)."""
        return distances(self.outputs, self.inputs)

    @property
    def truth(self) -> Integers:
        """The numbers of the cells in which the output is true, one for each input."""
        true = self._true()
        cells: Integers = self[true.argmax(axis=0), np.arange(self.inputs.size)]
        return cells

    @property
    def aligned(self) -> bool:
        """Whether output i and input i are the same count, for every i."""
        return isinstance(self.inputs, Counts) and self.outputs == self.inputs

    def require_ordered(self) -> None:
        """Raise NotSquare for pairs of counts, or where some input has no true output."""
        if isinstance(self.inputs, CountPairs):
            raise NotSquare("this property is about counts in order; pairs of counts have none")
        self._true()

    def _true(self) -> Booleans:
        """Which outputs are true for which inputs, if every input has such an output."""
        true: Booleans = self.distances == 0
        if not true.any(axis=0).all():
            raise NotSquare(
                "this property compares outputs with the truth, but some inputs have no true"
                f" output: the table is {self.outputs.size} x {self.inputs.size}"
            )
        return true
