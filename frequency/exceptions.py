"""Typed errors of the frequency protocols."""

from __future__ import annotations

from mechdesign._support.text import printable, shown


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
    """What is asked of an estimate is no question about its attributes.

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
