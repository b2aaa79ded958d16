"""Sums over all ranges or prefixes of an ordered domain: exact integers, in closed form, O(1).

Blocks of ``size`` items tile the domain from item 0; the last may reach beyond it. Workloads are
those of `rangeq.core.tree.WORKLOADS`.
"""

from __future__ import annotations

from mechdesign._support.text import shown


def queries(domain: int, workload: str) -> int:
    """How many queries a workload has.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    workload : str
        "ranges", "all ranges" or "prefixes".

    Returns
    -------
    int
        At least 0.

    Raises
    ------
    ValueError
        An unknown workload.
    """
    counts = {
        "ranges": domain * (domain - 1) // 2,
        "all ranges": domain * (domain + 1) // 2,
        "prefixes": domain,
    }
    if not isinstance(workload, str) or workload not in counts:
        raise ValueError(f"workload must be one of {', '.join(counts)}, got {shown(workload)}")
    return counts[workload]


def blocks_inside(domain: int, size: int, workload: str = "all ranges") -> int:
    """How many pairs (block, query) there are with the block inside the query.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    size : int
        The items of a block, at least 1.
    workload : str, default "all ranges"
        "ranges", "all ranges" or "prefixes".

    Returns
    -------
    int
        Exactly.
    """
    full = domain // size
    first = size * (full * (full - 1) // 2)
    if workload == "prefixes":
        return full * (domain - size + 1) - first  # over blocks at L, the sum of D - L - size + 1
    squares = size * size * ((full - 1) * full * (2 * full - 1) // 6)
    # Of (L + 1)(D - L - size + 1)
    ranges = full * (domain - size + 1) + first * (domain - size) - squares
    return ranges - domain if workload == "ranges" and size == 1 else ranges


def pairs_together(domain: int, size: int, workload: str = "all ranges") -> int:
    """How many triples (query, item of it, item of it) there are with both items in one block.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    size : int
        The items of a block, at least 1.
    workload : str, default "all ranges"
        "ranges", "all ranges" or "prefixes".

    Returns
    -------
    int
        Exactly. Divided by ``size``: the sum over all queries of their squared lengths after
        averaging over blocks.
    """
    full, rest = divmod(domain, size)
    if workload == "prefixes":
        # In the block a prefix ends in
        cut = (full * (size - 1) * size * (2 * size - 1) + rest * (rest + 1) * (2 * rest + 1)) // 6
        return size * size * blocks_inside(domain, size, workload) + cut

    # Items i and k are together in (min + 1)(D - max) ranges: a polynomial.
    def pairs(width: int, blocks: int, first: int, squares: int) -> int:
        # Over pairs of items of a block at L: the sum of (L + 1 + min)(D - L - max); then over
        # blocks, sums of 1, L and L^2.
        least = (width - 1) * width * (2 * width - 1) // 6
        most = width * width * (width - 1) - least
        products = (width * (width - 1) // 2) ** 2
        left, right = first + blocks, domain * blocks - first
        both = domain * blocks + first * (domain - 1) - squares
        return width * width * both - left * most + right * least - products * blocks

    total = pairs(
        size,
        full,
        size * (full * (full - 1) // 2),
        size * size * ((full - 1) * full * (2 * full - 1) // 6),
    )
    if rest:
        total += pairs(rest, 1, full * size, (full * size) ** 2)
    return total - domain if workload == "ranges" else total
