"""The nodes of a hierarchy whose union is a range, by listing all."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rangeq.grids.cells import tree_cells
from rangeq.grids.systems.hio import intervals


@pytest.mark.parametrize(("size", "branching"), [(1, 4), (7, 2), (16, 4), (21, 4)])
def test_intervals_are_the_fewest_nodes(size: int, branching: int) -> None:
    levels = tree_cells(size, branching)
    for left in range(size):
        for right in range(left, size):
            covered = np.zeros(size, dtype=int)
            count = 0
            for level, start, end in intervals(levels, left, right):
                covered[levels[level][start] : levels[level][end]] += 1
                count += end - start
            assert (covered[left : right + 1] == 1).all()
            assert covered.sum() == right - left + 1
            # Fewest: a node counts if it is in the range and its parent is not.
            inside = [
                {(a, b) for a, b in pairwise(edges) if left <= a and b <= right + 1}
                for edges in levels
            ]
            fewest = {node for nodes in inside for node in nodes}
            fewest = {
                n
                for n in fewest
                if not any(m != n and m[0] <= n[0] and n[1] <= m[1] for m in fewest)
            }
            assert count == len(fewest)
