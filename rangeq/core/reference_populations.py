"""Public populations of an ordered attribute that errors are predicted on where they rest on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mechdesign.base.linear_algebra import Floats


def _bell(x: Floats) -> Floats:
    return np.exp(-(((x - 0.45) / 0.125) ** 2) / 2)


def _spiky(x: Floats) -> Floats:
    result = np.full(len(x), 0.3 / len(x))
    places = (np.arange(10) * ((np.sqrt(5) - 1) / 2) % 1 * len(x)).astype(np.int64)
    shares = 1 / np.arange(1, 11)
    np.add.at(result, places, 0.7 * shares / shares.sum())
    return result


def _heaped(x: Floats) -> Floats:
    step = max(2, len(x) // 20)
    result = 0.4 * _bell(x)
    result[::step] += 0.6 * np.add.reduceat(_bell(x), np.arange(0, len(x), step))
    return result


REFERENCE_POPULATIONS: dict[str, Callable[[Floats], Floats]] = {
    "even": np.ones_like,
    "smooth": _bell,
    "skewed": lambda x: np.exp(-8 * x),
    "spiky": _spiky,
    "heaped": _heaped,
}
"""Shares of the items, but for their sum, as functions of the items' middles in [0, 1].

All alike; a normal density of standard deviation 1/8 around 0.45; exp(-8 x); seven tenths on ten
items in shares 1 : 1/2 : ... : 1/10, the rest even; the normal one with six tenths rounded down to
every twentieth of the domain.
"""


def reference_shares(name: str, domain: int) -> Floats:
    """A reference population's shares of the items: shape (domain,), of sum 1."""
    shares = REFERENCE_POPULATIONS[name]((np.arange(domain) + 0.5) / domain)
    return np.asarray(shares / shares.sum())


def checked_shares(like: Any, domain: int) -> tuple[float, ...]:
    """A guess of the items' shares, such as counts of people known before, with sum 1.

    Shapes: `like` (domain,).

    Examples
    --------
    >>> checked_shares([1, 3], 2)
    (0.25, 0.75)
    """
    try:
        shares = np.asarray(like, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"like must be numbers, got a {type(like).__name__}") from error
    if shares.shape != (domain,):
        raise ValueError(
            f"like must be {domain} numbers, one for each item in order, got shape {shares.shape}"
        )
    bad = ~np.isfinite(shares) | (shares < 0)
    if bad.any():
        place = int(np.argmax(bad))
        raise ValueError(
            f"like must be finite numbers of at least 0, got {shares[place]} for item {place}"
        )
    if not shares.any():
        raise ValueError("like must have a number above 0, got none")
    shares = shares / shares.max()  # sums of the largest floats overflow
    return tuple((shares / shares.sum()).tolist())
