"""Mixtures: how users are divided among the parts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from frequency import GRR
from frequency.core.mixture import _groups
from mechdesign import PrivacyViolation
from rangeq.core.levels import Levels


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
@pytest.mark.parametrize("numbers", [[], [0], [9], [3, 3], [5, 1], [2, 0, 2, 1, 0, 2]])
def test_groups_are_the_places_of_each_number(numbers, dtype) -> None:
    found = {k: mine.tolist() for k, mine in _groups(np.array(numbers, dtype=dtype))}
    assert found == {
        k: [place for place, number in enumerate(numbers) if number == k]
        for k in sorted(set(numbers))
    }


def levels(*epsilons: float) -> Levels:
    """Half of the users on each of two levels, with these epsilons."""
    parts = tuple(GRR(4, epsilon) for epsilon in epsilons)
    return Levels(4, 1.0, "levels", parts, (1 << 63, 1 << 63))


def test_the_proof_of_a_mixture_names_its_parts_once() -> None:
    proof = levels(1.0, 1.0).proof()
    assert proof.holds
    assert [(of.times, of.chance) for of in proof.parts] == [(2, Fraction(1, 2))]
    assert [of.times for of in levels(1.0, 0.5).proof().parts] == [1, 1]


def test_a_part_that_loses_more_than_the_mixture_has_no_proof() -> None:
    with pytest.raises(PrivacyViolation):
        levels(1.0, 1.5).proof()


def test_what_parts_tell_is_joined() -> None:
    """As one aggregate, of which each part's is what was given; no one reports on the others."""
    channel, rng = levels(1.0, 0.5), np.random.default_rng(1)
    drawn = channel.parts[1].simulated_counts(np.array([0, 3]), np.array([5, 2]), rng)
    joined = channel.joined({1: (7, drawn)})
    assert joined.n == 7
    assert channel.part_users(joined).tolist() == [0, 7]
    assert channel.part_aggregate(joined, 1).counts.tolist() == drawn.tolist()
    assert channel.consistent(channel.require_own(joined))
