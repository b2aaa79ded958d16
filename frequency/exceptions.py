"""Typed errors of the frequency protocols."""

from __future__ import annotations

from mechdesign.base import printable, shown

A_VALUE = "a value"  #: What a cell is expected to hold where it holds none.


class FrequencyError(Exception):
    """Base of every error that this package raises on purpose; its message is safe to print."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidValue(FrequencyError, ValueError):
    """A user's value is not an item of the domain; nothing has been drawn.

    Attributes
    ----------
    index : int or tuple of int
        The position of the first bad one.
    value : object
        What was found there.
    largest : int
        Items are 0 .. largest.
    """

    def __init__(self, index: int | tuple[int, ...], value: object, largest: int) -> None:
        self.index, self.value, self.largest = index, value, largest
        super().__init__(index, value, largest)

    def __str__(self) -> str:
        return (
            f"values[{self.index}] = {shown(self.value)} is not an item 0 .. {self.largest};"
            " nothing was drawn"
        )


class InvalidCell(InvalidValue):
    """A cell of a table that its attribute does not take; nothing has been drawn.

    Attributes
    ----------
    row : int
        The row of the first bad one, from 0.
    column : str
        Its column.
    value : object
        What is there; None if nothing is.
    expected : str
        What there may be, in words.
    """

    def __init__(self, row: int, column: str, value: object, expected: str) -> None:
        self.row, self.column, self.expected = row, column, expected
        super().__init__(row, value, 0)
        self.args = (row, column, value, expected)

    def __str__(self) -> str:
        return f"row {self.row}, {self.wrong}; nothing was drawn"

    @property
    def wrong(self) -> str:
        """The fault without its place."""
        column = printable(repr(self.column))
        if self.expected == A_VALUE:
            empty = self.value is None
            content = "the cell is empty" if empty else f"{shown(self.value)} is no value"
            return (
                f"column {column}: {content}, and the schema refuses missing values"
                ' (missing = "item" or "skip" takes them)'
            )
        content = "no value" if self.value is None else shown(self.value)
        return f"column {column}: {content} is not {printable(self.expected)}"


class UnknownColumn(FrequencyError, ValueError):
    """A table has no such column, has it twice, or is no table."""


class InvalidReport(FrequencyError, ValueError):
    """A report, or a message of reports, that no client of this oracle can have sent."""


class IncompatibleAggregate(FrequencyError, ValueError):
    """An aggregate of another protocol or other parameters, or bytes that hold no intact one."""


class NotIdentifiable(FrequencyError, ValueError):
    """A mechanism whose reports do not determine the frequencies.

    Two populations give the same distribution of reports.
    """


class InvalidEstimates(FrequencyError, ValueError):
    """Estimates, or their deviations, that cannot be post-processed.

    Attributes
    ----------
    index : int or None
        The first bad entry; None if it is the shape.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(message)


class InvalidQuestion(FrequencyError, ValueError):
    """A question that is none about the attributes of an estimate.

    Attributes
    ----------
    index : int or None
        The place of the first bad one among many questions; None if it is something else.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(message)


class UnknownVariance(FrequencyError, ValueError):
    """The variance of an answer, and so its interval, is not known."""


class WorkersLost(FrequencyError, OSError):
    """Processes or machines that shared the work ended, or never came.

    What had been counted is kept, with ``resume``.
    """
