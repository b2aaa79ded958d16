"""Workloads: sets of linear queries over the frequencies of items, and their Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mechdesign.base.arrays import Floats
from mechdesign.base.numbers import whole
from mechdesign.base.text import shown

NAMES = ("histogram", "prefixes", "ranges")
"""The workloads known by name: all single items; 0 .. b for all b; a .. b for all a <= b."""


def gram(workload: str | npt.ArrayLike, domain: int) -> tuple[Floats, int]:
    """The Gram matrix W'W of a workload, shape (domain, domain), and its number of queries.

    Parameters
    ----------
    workload : str or array_like
        One of `NAMES`, or a matrix W of shape (queries, domain): finite numbers, one row a query.
    domain : int
        The number of items, at least 1.
    """
    if isinstance(workload, str):
        item = np.arange(domain, dtype=np.float64)
        least, most = np.minimum.outer(item, item), np.maximum.outer(item, item)
        if workload == "histogram":
            return np.eye(domain), domain
        if workload == "prefixes":
            return domain - most, domain
        if workload == "ranges":
            return (least + 1) * (domain - most), domain * (domain + 1) // 2
        raise ValueError(
            f"workload must be a matrix or one of {', '.join(NAMES)}, got {shown(workload)}"
        )
    matrix = np.asarray(workload, dtype=np.float64)
    if (
        matrix.ndim != 2
        or matrix.shape[1] != domain
        or not len(matrix)
        or not np.isfinite(matrix).all()
    ):
        raise ValueError(
            f"a workload must be a matrix of finite numbers with {domain} columns, got shape"
            f" {matrix.shape}"
        )
    result: Floats = matrix.T @ matrix
    if not np.isfinite(result).all():
        raise ValueError(
            "a workload's numbers are so large that the sums of their squares overflow"
        )
    return result, len(matrix)


def marginals(cardinalities: Sequence[int], way: int) -> Floats:
    """All cells of all marginals of ``way`` attributes: a matrix of shape (cells, items).

    Items are numbered with the last attribute fastest.
    """
    sizes = _sizes(cardinalities)
    way = whole(way, "way", 0, len(sizes), what="a number of attributes")
    blocks = []
    for chosen in combinations(range(len(sizes)), way):
        block: Floats = np.ones((1, 1))
        for attribute, size in enumerate(sizes):
            block = np.asarray(
                np.kron(block, np.eye(size) if attribute in chosen else np.ones((1, size))),
                dtype=np.float64,
            )
        blocks.append(block)
    return np.concatenate(blocks)


def parities(attributes: int, way: int) -> Floats:
    """All parities of 1 .. ``way`` bits: a matrix of shape (queries, 2^attributes).

    A query is the sum over items of (-1)^(the sum of the chosen bits).
    """
    attributes = whole(attributes, "attributes", 1, 16)
    way = whole(way, "way", 1, attributes, what="a number of attributes")
    sets = [
        chosen for size in range(1, way + 1) for chosen in combinations(range(attributes), size)
    ]
    masks = np.array([sum(1 << bit for bit in chosen) for chosen in sets])
    bits: Floats = 1.0 - 2.0 * (np.bitwise_count(masks[:, None] & np.arange(1 << attributes)) & 1)
    return bits


def product(*workloads: npt.ArrayLike) -> Floats:
    """Queries on several attributes: every product of one query of each.

    Items are numbered with the last attribute fastest.
    """
    result: Floats = np.ones((1, 1))
    for workload in workloads:
        matrix = np.asarray(workload, dtype=np.float64)
        if matrix.ndim != 2:
            raise ValueError(
                f"every workload must be a matrix of queries, got shape {matrix.shape}"
            )
        result = np.asarray(np.kron(result, matrix), dtype=np.float64)
    return result


def _sizes(cardinalities: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(
        whole(size, "each cardinality", 1, what="a number of values") for size in cardinalities
    )
    if not sizes:
        raise ValueError("cardinalities must be numbers of values, at least one, got none")
    return sizes
