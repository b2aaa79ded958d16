"""Estimates of the frequencies of items, as they print."""

import numpy as np

from frequency import GRR


def test_a_table_of_the_largest_says_that_they_were_picked():
    oracle = GRR(20, 1.0)
    estimate = oracle.estimate(oracle.simulate(np.full(20, 50), np.random.default_rng(1)))
    *lines, last = estimate.table(largest=3).splitlines()
    assert len(lines) == 4
    assert last.startswith("The largest of 20, and so too large on average")
    assert (
        len(estimate.table(largest=None).splitlines())
        == len(estimate.table(largest=20).splitlines())
        == 21
    )
