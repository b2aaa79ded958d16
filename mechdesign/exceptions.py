"""Typed errors. Each says what was wrong, what was expected, and the offending number."""

from __future__ import annotations

import copyreg
from fractions import Fraction
from typing import ClassVar

from mechdesign.base import brief, printable, shown


class MechanismError(Exception):
    """Base of every error that this package raises on purpose; its message is safe to print."""

    #: Whether it answers the request, with no, rather than says that the request was wrong.
    is_answer: ClassVar[bool] = False

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[object, ...]:
        # The message is made from the attributes, so the default, which calls the class with the
        # message, would fail.
        make = copyreg.__newobj__  # type: ignore[attr-defined]
        return make, (type(self), *self.args), self.__dict__


class InexactNumber(MechanismError, TypeError):
    """A float (or another inexact value) was given where exactness is promised."""

    def __init__(self, name: str, value: object) -> None:
        self.name, self.value = name, value
        hint = ""
        if isinstance(value, float):
            short = (
                Fraction(value).limit_denominator(1000)
                if value == value and abs(value) < 1e300
                else None
            )
            hint = (
                f"; write Fraction({short.numerator}, {short.denominator}) or '{float(value)!r}'"
                if short is not None
                else ""
            )
        super().__init__(
            f"{name} must be exact (int, Fraction, Decimal or a string such as '9/10'), "
            f"got {type(value).__name__} {value!r:.60}{hint}"
        )


class InvalidMechanism(MechanismError, ValueError):
    """A table is not a mechanism: ragged, negative, or a column that does not sum to one."""

    is_answer = True


class InvalidPrior(MechanismError, ValueError):
    """Weights over the inputs that are not a probability distribution of the right length."""


class NotSquare(MechanismError, ValueError):
    """A property or loss that compares output i with input i was asked of a rectangular table."""


class PrivacyViolation(MechanismError):
    """A table does not keep the privacy that it claims.

    Attributes: ``ratio`` (exact, or infinity), ``allowed`` (1/alpha, or a power of it under a
    metric), ``output`` and ``inputs`` where it is reached.
    """

    is_answer = True

    def __init__(
        self, ratio: Fraction | float, allowed: Fraction, output: int | str, inputs: tuple[int, int]
    ) -> None:
        self.ratio, self.allowed, self.output, self.inputs = ratio, allowed, output, inputs
        super().__init__(
            f"not private: Pr[{output} | {inputs[0]}] / Pr[{output} | {inputs[1]}] ="
            f" {brief(ratio, 12)} exceeds the {brief(allowed, 12)} that alpha allows"
        )


class DeltaViolation(PrivacyViolation):
    """A table does not keep the (epsilon, delta) that it claims.

    Attributes: ``delta`` and ``allowed_delta``, both exact, and ``inputs``, where it is reached;
    ``ratio``, ``allowed`` and ``output`` are those of the largest ratio, which delta may excuse.
    """

    def __init__(
        self,
        delta: Fraction,
        allowed_delta: Fraction,
        inputs: tuple[int, int],
        ratio: Fraction | float,
        allowed: Fraction,
        output: int | str,
    ) -> None:
        super().__init__(ratio, allowed, output, inputs)
        self.delta, self.allowed_delta = delta, allowed_delta
        self.args = (
            f"not private: inputs {inputs[0]} and {inputs[1]} need a delta of"
            f" {brief(delta, 12)}, above the {brief(allowed_delta, 12)} that is claimed",
        )

    def __reduce__(self) -> tuple[object, ...]:
        about = self.delta, self.allowed_delta, self.inputs, self.ratio, self.allowed, self.output
        return type(self), about


class NotPure(MechanismError, ValueError):
    """What needs a promise of epsilon alone was asked of a table that promises a delta besides."""


class Infeasible(MechanismError):
    """No mechanism has all the properties asked for."""

    is_answer = True


class CertificateRejected(MechanismError):
    """A certificate does not prove what it claims about a mechanism."""

    is_answer = True


class SolverFailure(MechanismError, RuntimeError):
    """The linear programming solver stopped without an answer."""


class TooLarge(MechanismError, ValueError):
    """A design would take more time or memory than there usually is.

    Attributes: ``n``, and ``seconds`` and ``bytes``, both estimated by rules of thumb.
    """

    def __init__(self, n: int, seconds: float, size: int, remedy: str = "") -> None:
        self.n, self.seconds, self.bytes, self._remedy = n, seconds, size, remedy
        super().__init__(
            f"a design for n = {shown(n)} would take about {_duration(seconds)} and "
            f"{size / 2**30:,.1f} GiB; nothing was done{remedy and f' ({remedy})'}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.n, self.seconds, self.bytes, self._remedy)


def _duration(seconds: float) -> str:
    units = (("years", 365 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60))
    name, unit = next((pair for pair in units if seconds >= 2 * pair[1]), ("seconds", 1))
    return f"{seconds / unit:,.0f} {name}"


class InvalidCount(MechanismError, ValueError):
    """A true count that the mechanism has no column for.

    Attributes: ``index`` is the position of the first bad count, ``value`` that count, ``largest``
    the largest that is allowed.
    """

    def __init__(self, index: int | tuple[int, ...], value: object, largest: int) -> None:
        self.index, self.value, self.largest = index, value, largest
        super().__init__(
            f"counts[{index}] = {shown(value)} is not an integer between 0 and {largest}; nothing"
            " was released"
        )


class NoUnbiasedEstimate(MechanismError, ValueError):
    """The outputs of a mechanism do not determine what is estimated, even on average."""


class InvalidFile(MechanismError, ValueError):
    """A file that cannot be trusted: truncated, tampered with, or of another format."""

    is_answer = True


class IrregularFile(MechanismError, OSError):
    """A named pipe, a device, a socket or a directory where a regular file is expected.

    Attributes: ``path``.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: not a regular file, which is what is read and written here")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


class DiskFull(MechanismError, OSError):
    """There is no room for a file on its disk. Nothing was written; what was there is unchanged.

    Attributes: ``path``.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: there is no room on the disk; nothing was written")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


class InvalidTable(MechanismError, ValueError):
    """A file of rows and columns that is malformed, or holds what the columns may not."""


class NoRows(InvalidTable):
    """A table with a header and nothing below it."""


class InvalidExpression(MechanismError, ValueError):
    """An objective or a constraint of the table that is not convex, not exact or not known."""


class UnboundedRatio(MechanismError, ValueError):
    """A report or output is possible for one input and impossible for a neighbour."""


class UnstatedLikelihoods(MechanismError, TypeError):
    """A protocol does not state how likely its reports are, so that nothing is proved of many."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name} does not state how likely its reports are: it must implement pair_laws() and"
            " attack_laws(), see mechdesign.accounting.shuffling.StatesLikelihoods"
        )


class TooFewReports(MechanismError, ValueError):
    """A collection has fewer reports than its statement of privacy is about."""
