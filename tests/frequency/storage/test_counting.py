"""Counts travel between processes in few bytes."""

import numpy as np

from frequency.storage import workers as counting


def test_counts_travel_in_few_bytes():
    for most, dtype in ((127, np.int8), (128, np.int16), (1 << 15, np.int32), (1 << 31, np.int64)):
        for counts in (np.array([most, 0]), np.array([-most - 1, 3])):
            assert np.array_equal(counting.narrowed(counts), counts)
        assert counting.narrowed(np.array([most])).dtype == dtype
        first = counting.Part(counting.narrowed(np.array([most, 1])), ())
        assert counting.merge(first, first).counts.tolist() == [2 * most, 2]
    assert counting.narrowed(np.array([-129])).dtype == np.int16
