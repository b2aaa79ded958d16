"""Sums over all ranges or prefixes of an ordered domain: exact integers, in closed form, O(1).

Blocks of ``size`` items tile the domain from item 0; the last may reach beyond it. Workloads are
those of `rangeq.core.tree.WORKLOADS`.
"""

from __future__ import annotations

from typing import Any

from mechdesign.base.text import shown


def queries(domain: int, workload: str) -> int:
    """How many queries a workload has."""
    counts = {
        "ranges": domain * (domain - 1) // 2,
        "all ranges": domain * (domain + 1) // 2,
        "prefixes": domain,
    }
    if not isinstance(workload, str) or workload not in counts:
        raise ValueError(f"workload must be one of {', '.join(counts)}, got {shown(workload)}")
    return counts[workload]


def blocks_inside(domain: int, size: int, workload: str = "all ranges") -> int:
    """How many pairs (block, query) there are with the block inside the query."""
    full = domain // size
    first = size * (full * (full - 1) // 2)
    if workload == "prefixes":
        return full * (domain - size + 1) - first  # over blocks at L, the sum of D - L - size + 1
    squares = size * size * ((full - 1) * full * (2 * full - 1) // 6)
    # Of (L + 1)(D - L - size + 1)
    ranges = full * (domain - size + 1) + first * (domain - size) - squares
    return ranges - domain if workload == "ranges" and size == 1 else ranges


def pairs_together(domain: int, size: int, workload: str = "all ranges") -> int:
    """How many triples (query, item of it, item of it) there are with both items in one block."""
    full, rest = divmod(domain, size)
    if workload == "prefixes":
        # In the block a prefix ends in
        cut = (full * (size - 1) * size * (2 * size - 1) + rest * (rest + 1) * (2 * rest + 1)) // 6
        return size * size * blocks_inside(domain, size, workload) + cut

    total = pairs_in_blocks(domain, size, full) + pairs_in_blocks(domain, rest, 1, full * size)
    result: int = total - domain if workload == "ranges" else total
    return result


def pairs_in_blocks(domain: Any, size: Any, blocks: Any, start: Any = 0) -> Any:
    """How many triples (range, item of it, item of it) there are with both items in one block.

    Items i and k are together in (min + 1)(domain - max) of all ranges.
    """
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
