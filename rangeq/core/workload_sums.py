"""Sums over all ranges or prefixes of an ordered domain: exact integers, in closed form, O(1).

Blocks of ``size`` items tile the domain from item 0; the last may reach beyond it. Workloads are
those of `rangeq.core.tree.WORKLOADS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mechdesign.base import Floats, shown


def queries(domain: int, workload: str) -> int:
    """Return how many queries a workload has."""
    counts = {
        "ranges": domain * (domain - 1) // 2,
        "all ranges": domain * (domain + 1) // 2,
        "prefixes": domain,
    }
    if not isinstance(workload, str) or workload not in counts:
        raise ValueError(f"workload must be one of {', '.join(counts)}, got {shown(workload)}")
    return counts[workload]


def blocks_inside(domain: int, size: int, workload: str = "all ranges") -> int:
    """Count the pairs (block, query) with the block inside the query."""
    full = domain // size
    first = size * (full * (full - 1) // 2)
    if workload == "prefixes":
        return full * (domain - size + 1) - first  # over blocks at L, the sum of D - L - size + 1
    squares = size * size * ((full - 1) * full * (2 * full - 1) // 6)
    # Of (L + 1)(D - L - size + 1)
    ranges = full * (domain - size + 1) + first * (domain - size) - squares
    return ranges - domain if workload == "ranges" and size == 1 else ranges


def pairs_together(domain: int, size: int, workload: str = "all ranges") -> int:
    """Count the triples (query, item of it, item of it) with both items in one block."""
    full, rest = divmod(domain, size)
    if workload == "prefixes":
        # In the block a prefix ends in
        cut = (full * (size - 1) * size * (2 * size - 1) + rest * (rest + 1) * (2 * rest + 1)) // 6
        return size * size * blocks_inside(domain, size, workload) + cut

    total = pairs_in_blocks(domain, size, full) + pairs_in_blocks(domain, rest, 1, full * size)
    return total - domain if workload == "ranges" else total


def pairs_in_blocks(domain: Any, size: Any, blocks: Any, start: Any = 0) -> Any:
    """Count the triples (range, item of it, item of it) with both items in one of some blocks."""
    # Items i and k are together in (min + 1)(domain - max) of all ranges
    # Over pairs of items of a block at L: the sum of (L + 1 + min)(D - L - max); then over blocks,
    # sums of L and L^2.
    first = blocks * start + size * (blocks * (blocks - 1) // 2)
    squares = (
        blocks * start**2
        + start * size * blocks * (blocks - 1)
        + size * size * ((blocks - 1) * blocks * (2 * blocks - 1) // 6)
    )
    least = (size - 1) * size * (2 * size - 1) // 6
    most = size * size * (size - 1) - least
    products = (size * (size - 1) // 2) ** 2
    left, right = first + blocks, domain * blocks - first
    both = domain * blocks + first * (domain - 1) - squares
    return size * size * both - left * most + right * least - products * blocks


# ------------------------------------------------------------------------------------------------
# Public populations of an ordered attribute that errors are predicted on where they rest on it.


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


#: Shares of the items, but for their sum, as functions of the items' middles in [0, 1].
#:
#: All alike; a normal density of standard deviation 1/8 around 0.45; exp(-8 x); seven tenths on ten
#: items in shares 1 : 1/2 : ... : 1/10, the rest even; the normal one with six tenths rounded down
#: to every twentieth of the domain.
REFERENCE_POPULATIONS: dict[str, Callable[[Floats], Floats]] = {
    "even": np.ones_like,
    "smooth": _bell,
    "skewed": lambda x: np.exp(-8 * x),
    "spiky": _spiky,
    "heaped": _heaped,
}


def reference_shares(name: str, domain: int) -> Floats:
    """A reference population's shares of the items: shape (domain,), of sum 1."""
    shares = REFERENCE_POPULATIONS[name]((np.arange(domain) + 0.5) / domain)
    return np.asarray(shares / shares.sum())


def checked_shares(like: Any, domain: int) -> tuple[float, ...]:
    """Check a guess of the items' shares, such as counts of people known before: of sum 1.

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
