"""Ball arithmetic (python-flint): its precision belongs to the whole process, and is set here only.

A computation sets the precision of all that it does, so that its numbers are the same whatever the
caller uses balls for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import RLock

from flint import arb, ctx, fmpq

_LOCK = RLock()


@contextmanager
def precision(bits: int = 53) -> Iterator[None]:
    """Balls have this many bits within (by default as floats), and as many as before afterwards.

    It decorates functions, too. Threads take turns: one that comes meanwhile waits for the end.
    Nothing in it may wait for another thread.
    """
    with _LOCK:
        before = ctx.prec
        try:
            ctx.prec = bits
            yield
        finally:
            ctx.prec = before


def ball(x: Fraction) -> arb:
    """A rational number as a ball of the present precision."""
    return arb(fmpq(x.numerator, x.denominator))
