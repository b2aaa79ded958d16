"""Mixtures: how users are divided among the parts."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.core.mixture import _groups


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
@pytest.mark.parametrize("numbers", [[], [0], [9], [3, 3], [5, 1], [2, 0, 2, 1, 0, 2]])
def test_groups_are_the_places_of_each_number(numbers, dtype) -> None:
    found = {k: mine.tolist() for k, mine in _groups(np.array(numbers, dtype=dtype))}
    assert found == {
        k: [place for place, number in enumerate(numbers) if number == k]
        for k in sorted(set(numbers))
    }
