"""`rangeq.core.workload_sums` by brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rangeq.core.tree import WORKLOADS
from rangeq.core.workload_sums import blocks_inside, pairs_together, queries


def workload_of(workload: str, domain: int) -> list[tuple[int, int]]:
    every = combinations_with_replacement(range(domain), 2)
    return [
        (a, b)
        for a, b in every
        if {"ranges": a < b, "all ranges": True, "prefixes": a == 0}[workload]
    ]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.sampled_from(WORKLOADS), st.integers(1, 30), st.integers(1, 40))
def test_sums_by_brute_force(workload: str, domain: int, size: int) -> None:
    chosen = workload_of(workload, domain)
    # Of each block, its items in a range
    inside = [np.bincount(np.arange(a, b + 1) // size) for a, b in chosen]
    assert queries(domain, workload) == len(chosen)
    assert blocks_inside(domain, size, workload) == sum(
        int((items == size).sum()) for items in inside
    )
    assert pairs_together(domain, size, workload) == sum(int((items**2).sum()) for items in inside)
