"""A file a library, in the library's own words. Only the standard library may be imported at the
top: the rest may be what fails.

A file may define the following; a library without one of them does not have the feature:

FEATURES
    What is tried first, on a fresh installation: a name, and a call that raises if it does not
    work.
PROBES
    What the library says or does when asked about itself: a name, and a call that returns a few
    words.
oracle(kind, domain, epsilon)
    An object with ``privatize(values)`` -> reports and ``estimate(reports)`` -> fractions of all
    items.
noise(kind, epsilon, n)
    A function of a count and a number of draws -> that many private versions of the count. n: a
    truncated kind is of 0 .. n.
ranges(kind, domain, epsilon)
    A function of true counts -> counts of all cells.
quantiles(kind, domain, epsilon, probabilities)
    A function of true counts -> cells.
heavy(kind, bits, epsilon)
    An object with ``privatize(values)`` -> reports and ``find(reports, k)`` -> items.
prepared(values)
    A list of items 0, 1, ... as the library wants them, made before the clock starts.

A kind that the library has not got raises `Absent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Absent(LookupError):
    """The library does not offer this."""


def choice(table: Mapping[str, Any], kind: str) -> Any:
    """What ``table`` holds for this kind."""
    if kind not in table:
        raise Absent(kind)
    return table[kind]
